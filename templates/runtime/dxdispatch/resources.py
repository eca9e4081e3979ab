"""Resources: buffers, how large each is and how much of it is filled."""

from __future__ import annotations

from specops.dxdispatch.initial_values import InitialValues
from specops.dxdispatch.limits import Usage
from specops.dxdispatch.model import Resource
from specops.dxdispatch.nodes import Node
from specops.dxdispatch.problems import UINT64, Report
from specops.dxdispatch.values import Initial, Wrong, buffer_type


class Resources:
    """Reads resources."""

    def __init__(self, report: Report, initial: InitialValues, usage: Usage) -> None:
        self._report = report
        self._initial = initial
        self._usage = usage

    def read(self, name: str, node: Node) -> Resource | None:
        """A buffer; None with all that is wrong with it in the report."""
        if not self._report.is_object(node):
            return None
        before = len(self._report.errors)
        dtype = self._data_type(node)
        values = node.get("initialValues")
        if values is None:
            self._report.error(node, "initialValues is missing")
            return None
        filled: Initial | None = None
        if len(self._report.errors) == before:
            filled, dtype = self._initial.read(values, dtype)
        size = self._report.integer(node, "sizeInBytes", UINT64, 0)
        offset = self._report.integer(node, "initialValuesOffsetInBytes", UINT64, 0)
        self._report.unknown(
            node,
            (
                "initialValues", "initialValuesDataType", "sizeInBytes", "resampleSize", "resampleMode",
                "initialValuesOffsetInBytes",
            ),
        )  # fmt: skip
        if filled is None or size is None or offset is None or len(self._report.errors) > before:
            return None
        if filled.nbytes == 0:
            self._report.error(values, "no values; allowed: at least one")
            return None
        if node.get("sizeInBytes") is None:
            size = -(-filled.nbytes // 4) * 4
        if filled.nbytes + offset > size:
            found = f"{size} bytes; the initial values take {filled.nbytes} from byte {offset} on"
            self._report.error(node.get("sizeInBytes") or node, found)
            return None
        if offset:
            place = node.get("initialValuesOffsetInBytes") or node
            message = "DxDispatch checks this offset but puts the values at byte 0"
            self._report.warn(place, message)
        if not self._usage.memory.add(node, size):
            return None
        return Resource(name, node, dtype, size, filled)

    def _data_type(self, node: Node) -> str | None:
        """None for values of a type each, for a .npy file's own type, and, with an error, for what is no type."""
        named = node.get("initialValuesDataType")
        if named is None or named.value in ("UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN"):
            return None
        try:
            return buffer_type(named.value)
        except Wrong as error:
            self._report.error(named, f"found {named.kind()}; {error}")
            return None
