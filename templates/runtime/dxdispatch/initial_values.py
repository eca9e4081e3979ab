"""The member initialValues of a resource: in which of its forms it is, and what that fills a buffer with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specops.dxdispatch import files, npy
from specops.dxdispatch.files import Refused
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.problems import UINT32, Report
from specops.dxdispatch.values import (
    BUFFER_TYPES,
    Constant,
    FromFile,
    Given,
    Initial,
    Sequence,
    Wrong,
    buffer_type,
    numbers,
    scalar,
)


class InitialValues:
    """Reads initial values.

    Args:
        folder: where files are found.
        sources: where to add the files that are read, which may not be written.
    """

    def __init__(self, report: Report, folder: Path, sources: set[Path]) -> None:
        self._report = report
        self._folder = folder
        self._sources = sources

    def read(self, node: Node, dtype: str | None) -> tuple[Initial | None, str | None]:
        """What fills a buffer, and its data type, which a .npy file may bring."""
        value = node.value
        if value == "deferred":
            message = "deferred resources are out of reach; they belong to ONNX dispatchables"
            self._report.error(node, message)
            return None, None
        if isinstance(value, Items):
            return (self._mixed(value) if dtype is None else self._array(value, dtype)), dtype
        if isinstance(value, dict):
            kinds = [k for k in ("value", "valueStart", "sourcePath") if k in value]
            if len(kinds) == 1:
                if kinds[0] == "sourcePath":
                    return self._file(node, dtype)
                if dtype is not None:
                    return self._repeated(node, kinds[0], dtype), dtype
                parent = node.parent or node
                allowed = ", ".join(BUFFER_TYPES)
                self._report.error(parent, f"initialValuesDataType is missing; allowed: {allowed}")
                return None, None
        forms = "an array, or an object with exactly one of value, valueStart and sourcePath"
        self._report.error(node, f"found {node.kind()}; allowed: {forms}")
        return None, None

    def _array(self, items: Items, dtype: str) -> Initial | None:
        try:
            return Given(numbers(items.values, dtype).view(np.uint8))
        except Wrong:
            for i, value in enumerate(items.values):
                try:
                    scalar(value, dtype)
                except Wrong as error:
                    self._report.error(items[i], f"found {items[i].kind()}; {error}")
                    break
        return None

    def _mixed(self, items: Items) -> Initial | None:
        """Values with a type each, one behind the other."""
        parts = []
        fine = True
        for entry in items:
            if not isinstance(entry.value, dict):
                found = (
                    f"found {entry.kind()}; allowed without initialValuesDataType: type and value"
                )
                hint = 'as {"type": "UINT32", "value": 42}, or add initialValuesDataType'
                self._report.error(entry, found, hint)
                return None
            kind, value = entry.get("type"), entry.get("value")
            if kind is None or value is None:
                lost = "type" if kind is None else "value"
                self._report.error(entry, f"{lost} is missing")
                fine = False
                continue
            try:
                dtype = buffer_type(kind.value)
                if dtype == "FLOAT16":
                    raise Wrong("DxDispatch has no FLOAT16 in lists of typed values")
            except Wrong as error:
                self._report.error(kind, f"found {kind.kind()}; {error}")
                fine = False
                continue
            try:
                parts.append(scalar(value.value, dtype).tobytes())
            except Wrong as error:
                self._report.error(value, f"found {value.kind()}; {error}")
                fine = False
        return Given(np.frombuffer(b"".join(parts), np.uint8)) if fine else None

    def _repeated(self, node: Node, kind: str, dtype: str) -> Initial | None:
        """A constant or a sequence."""
        count = self._report.integer(node, "valueCount", UINT32, None)
        names = ("value",) if kind == "value" else ("valueStart", "valueDelta")
        found = []
        for name in names:
            member = node.get(name)
            if member is None:
                self._report.error(node, f"{name} is missing")
                continue
            try:
                found.append(scalar(member.value, dtype))
            except Wrong as error:
                self._report.error(member, f"found {member.kind()}; {error}")
        self._report.unknown(node, (*names, "valueCount"))
        if count is None or len(found) < len(names):
            return None
        if kind == "value":
            return Constant(found[0], count)
        return Sequence(found[0], found[1], count)

    def _file(self, node: Node, dtype: str | None) -> tuple[Initial | None, str | None]:
        text = self._report.string(node, "sourcePath")
        place = node.get("sourcePath") or node
        if text is None:
            return None, dtype
        if files.is_image(text):
            self._report.error(place, "images are out of reach", "convert it to a .npy file")
            return None, dtype
        try:
            path, size = files.source(self._folder, text)
            begin = 0
            if text.lower().endswith(".npy"):
                with files.open_regular(path) as file:
                    own, count, begin = npy.header(file, size)
                size = count * BUFFER_TYPES[own].itemsize
                if dtype not in (None, own):
                    self._report.error(place, f"{text} has {own}, initialValuesDataType is {dtype}")
                    return None, dtype
                dtype = own
        except Refused as error:
            self._report.error(place, error.message, error.hint)
            return None, dtype
        except OSError as error:
            self._report.error(place, f'"{text}" cannot be read: {error.strerror or error}')
            return None, dtype
        if dtype is None:
            allowed = ", ".join(BUFFER_TYPES)
            message = f"raw bytes need initialValuesDataType; allowed: {allowed}"
            self._report.error(node.parent or node, message)
            return None, None
        self._sources.add(path)
        return FromFile(path, begin, size), dtype
