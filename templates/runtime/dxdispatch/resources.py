"""Resources: buffers, how large each is, and what fills how much of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from specops.dxdispatch import files, npy
from specops.dxdispatch.context import Context
from specops.dxdispatch.files import Refused
from specops.dxdispatch.model import Resource
from specops.dxdispatch.nodes import UINT32, UINT64, Items, Node
from specops.dxdispatch.values import (
    ALLOWED_TYPES,
    FromFile,
    Given,
    Initial,
    Sequence,
    Wrong,
    buffer_type,
    name_of,
    numbers,
    scalar,
)

_Filled = tuple[Initial, np.dtype | None] | None


def resource(name: str, node: Node, context: Context) -> Resource | None:
    """A buffer; None with all that is wrong with it in the report."""
    if not node.is_object():
        return None
    before = node.report.errors
    dtype = None  # of values of a type each, and of a .npy file, which has its own
    named = node.get("initialValuesDataType")
    if named is not None and named.value not in ("UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN"):
        dtype = _data_type(named)
    values = node.get("initialValues")
    if values is None:
        node.error("initialValues is missing")
        return None
    filled = _initial(values, dtype, context) if node.report.errors == before else None
    size = node.integer("sizeInBytes", UINT64, 0)
    offset = node.integer("initialValuesOffsetInBytes", UINT64, 0)
    node.unknown(
        (
            "initialValues", "initialValuesDataType", "sizeInBytes", "resampleSize", "resampleMode",
            "initialValuesOffsetInBytes",
        )
    )  # fmt: skip
    if filled is None or size is None or offset is None or node.report.errors > before:
        return None
    initial, dtype = filled
    if initial.nbytes == 0:
        values.error("no values; allowed: at least one")
        return None
    if node.get("sizeInBytes") is None:
        size = -(-initial.nbytes // 4) * 4
    if initial.nbytes + offset > size:
        found = f"{size} bytes; the initial values take {initial.nbytes} from byte {offset} on"
        (node.get("sizeInBytes") or node).error(found)
        return None
    if offset:
        place = node.get("initialValuesOffsetInBytes") or node
        place.warn("DxDispatch checks this offset but puts the values at byte 0")
    if not context.usage.memory.add(node, size):
        return None
    return Resource(name, node, dtype, size, initial)


def _data_type(node: Node) -> np.dtype | None:
    """A data type; None, with an error, where it is none."""
    try:
        return buffer_type(node.value)
    except Wrong as error:
        node.error(f"found {node.kind()}; {error}")
        return None


def _scalar(node: Node, dtype: np.dtype) -> Any:
    """A value of a data type; None, with an error, where it is none."""
    try:
        return scalar(node.value, dtype)
    except Wrong as error:
        node.error(f"found {node.kind()}; {error}")
        return None


def _initial(node: Node, dtype: np.dtype | None, context: Context) -> _Filled:
    """What fills a buffer, and its data type, which a .npy file may bring."""
    value = node.value
    if value == "deferred":
        node.error("deferred resources are out of reach; they belong to ONNX dispatchables")
        return None
    if isinstance(value, Items):
        data = _mixed(value) if dtype is None else _array(value, dtype)
        return None if data is None else (Given(data), dtype)
    if isinstance(value, dict):
        kinds = [k for k in ("value", "valueStart", "sourcePath") if k in value]
        if kinds == ["sourcePath"]:
            return _file(node, dtype, context)
        if len(kinds) == 1:
            if dtype is not None:
                return _repeated(node, dtype)
            place = node.parent or node
            place.error(f"initialValuesDataType is missing; allowed: {ALLOWED_TYPES}")
            return None
    node.refuse("an array, or an object with exactly one of value, valueStart and sourcePath")
    return None


def _array(items: Items, dtype: np.dtype) -> np.ndarray | None:
    """Values of one type; None, with an error for the first that is not of it."""
    plain = numbers(items.values, dtype)
    if plain is not None:
        return plain
    data = np.empty(len(items), dtype)
    for i, value in enumerate(items.values):
        try:
            data[i] = scalar(value, dtype)
        except Wrong as error:
            items[i].error(f"found {items[i].kind()}; {error}")
            return None
    return data


def _mixed(items: Items) -> np.ndarray | None:
    """The bytes of values with a type each, one behind the other; None with errors."""
    parts = []
    for entry in items:
        if not isinstance(entry.value, dict):
            found = f"found {entry.kind()}; allowed without initialValuesDataType: type and value"
            hint = 'as {"type": "UINT32", "value": 42}, or add initialValuesDataType'
            entry.error(found, hint)
            return None
        kind, value = entry.get("type"), entry.get("value")
        number = None
        if kind is None or value is None:
            entry.error(f"{'type' if kind is None else 'value'} is missing")
        elif (dtype := _data_type(kind)) == np.float16:
            message = "DxDispatch has no FLOAT16 in lists of typed values"
            kind.error(f"found {kind.kind()}; {message}")
        elif dtype is not None:
            number = _scalar(value, dtype)
        parts.append(None if number is None else number.tobytes())
    whole = [part for part in parts if part is not None]
    return np.frombuffer(b"".join(whole), np.uint8) if len(whole) == len(parts) else None


def _repeated(node: Node, dtype: np.dtype) -> _Filled:
    """A constant or a sequence."""
    count = node.integer("valueCount", UINT32)
    names = ("value",) if "value" in node.value else ("valueStart", "valueDelta")
    found = []
    for name in names:
        member = node.get(name)
        if member is None:
            node.error(f"{name} is missing")
        elif (number := _scalar(member, dtype)) is not None:
            found.append(number)
    node.unknown((*names, "valueCount"))
    if count is None or len(found) < len(names):
        return None
    if len(names) == 1:
        return Given(np.broadcast_to(found[0], count)), dtype
    return Sequence(found[0], found[1], count), dtype


def _file(node: Node, dtype: np.dtype | None, context: Context) -> _Filled:
    place = node.string("sourcePath")
    if place is None:
        return None
    text = place.value
    if files.is_image(text):
        place.error("images are out of reach", "convert it to a .npy file")
        return None
    try:
        path, size = files.source(context.input, text)
        begin = 0
        if text.lower().endswith(".npy"):
            with files.open_regular(path) as file:
                own, count, begin = npy.header(file, size)
            size = count * own.itemsize
            # To NumPy, None is float64's equal.
            if dtype is not None and dtype != own:
                wanted = name_of(dtype)
                place.error(f"{text} has {name_of(own)}, initialValuesDataType is {wanted}")
                return None
            dtype = own
    except Refused as error:
        place.error(error.message, error.hint)
        return None
    except OSError as error:
        place.error(f'"{text}" cannot be read: {error.strerror or error}')
        return None
    if dtype is None:
        message = f"raw bytes need initialValuesDataType; allowed: {ALLOWED_TYPES}"
        (node.parent or node).error(message)
        return None
    context.sources.add(path)
    return FromFile(path, begin, size), dtype
