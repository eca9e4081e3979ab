"""Bindings: the part of a buffer that each tensor of an operator is in."""

from __future__ import annotations

from specops.dxdispatch.limits import Usage
from specops.dxdispatch.model import Bound, Resource
from specops.dxdispatch.names import Names
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.operators import BindPoint, Dispatchable
from specops.dxdispatch.problems import UINT64, Report
from specops.dxdispatch.values import BUFFER_TYPES


class Bindings:
    """Reads bindings, those of a dispatchable and those of a dispatch."""

    def __init__(self, report: Report, resources: Names[Resource], usage: Usage) -> None:
        self._report = report
        self._resources = resources
        self._usage = usage

    def owned(self, made: Dispatchable) -> tuple[Bound, ...] | None:
        """Of the OWNED_BY_DML tensors, which the dispatchable binds; None, with errors, where one does not fit."""
        points = [p for p in made.points if p.owned]
        bindings = made.node.get("bindings")
        if bindings is None and not points:
            return ()
        if bindings is not None and not self._report.is_object(bindings):
            return None
        before = len(self._report.errors)
        entries = {} if bindings is None else bindings.value
        bound = self._bind(bindings or made.node, entries, made, points)
        for b in bound:  # copied, so that later commands cannot change it
            self._usage.memory.add(b.resource.node, b.point.bytes)
        return None if len(self._report.errors) > before else tuple(bound)

    def dispatched(self, node: Node, made: Dispatchable | None) -> tuple[Bound, ...] | None:
        """Of all other tensors, which a dispatch binds; None, with errors, where one does not fit.

        Of a dispatchable that could not be read no tensors are known; how resources are named is checked all the same.
        """
        if made is None:
            for entry in node.value.values():
                self._part(entry)
            return None
        before = len(self._report.errors)
        bound = self._bind(node, node.value, made, [p for p in made.points if not p.owned])
        if len(self._report.errors) > before:
            return None
        self._apart(node, bound)
        return tuple(bound)

    def _bind(
        self, place: Node, entries: dict[str, Node], made: Dispatchable, points: list[BindPoint]
    ) -> list[Bound]:
        """The parts of buffers that tensors are bound to; errors for all that do not fit."""
        names = [p.name for p in points]
        for name, entry in entries.items():
            if name not in names:
                self._stray(name, entry, made, names)
        out = []
        for point in points:
            if point.name not in entries:
                self._report.error(place, f"{point.name} of {made.name} is not bound to a resource")
                continue
            bound = self._bound(entries[point.name], point)
            if bound is not None:
                out.append(bound)
        return out

    def _stray(self, name: str, entry: Node, made: Dispatchable, names: list[str]) -> None:
        """What is to be bound, and not here."""
        other = next((p for p in made.points if p.name == name), None)
        if other is not None and other.owned:
            message = "OWNED_BY_DML: bound by the dispatchable itself, not by a dispatch"
            self._report.error(entry, message, 'move it to "bindings" of the dispatchable')
        elif other is not None:
            message = "only OWNED_BY_DML tensors are bound by the dispatchable"
            self._report.error(entry, message, "bind it in the dispatch command")
        elif name in made.optional:
            message = f"{made.name} does not describe this tensor; not bound"
            self._report.warn(entry, message)
        else:
            message = f"{made.name} has no such tensor; not bound"
            self._report.warn(entry, message, name, names)

    def _bound(self, node: Node, point: BindPoint) -> Bound | None:
        part = self._part(node)
        if part is None:
            return None
        node, resource, begin = part
        if begin % point.alignment:
            found = f"{point.name} begins at byte {begin}; allowed: a multiple of {point.alignment}"
            self._report.error(node, found, "elementOffset x elementSizeInBytes is where it begins")
            return None
        if resource.bytes - begin < point.bytes:
            left = max(0, resource.bytes - begin)
            found = f'"{resource.name}" has {left} bytes from byte {begin} on'
            self._report.error(node, f"{found}; {point.name} takes {point.bytes}")
            return None
        return Bound(point, resource, begin)

    def _part(self, node: Node) -> tuple[Node, Resource, int] | None:
        """The resource that is named for a tensor, from which byte on it is bound, and where that is said."""
        if isinstance(node.value, Items):
            if len(node.value) != 1:
                count = len(node.value)
                self._report.error(node, f"Bind point requires 1 resource, but {count} were bound")
                return None
            node = node.value[0]
        named, size, offset = node, 0, 0
        if isinstance(node.value, dict):
            known = (
                "name", "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
                "counterOffsetBytes", "shape",
            )  # fmt: skip
            report = self._report
            report.unknown(node, known)
            if report.string(node, "name") is None:
                return None
            named = node.value["name"]
            names = "elementSizeInBytes", "elementOffset", "elementCount", "counterOffsetBytes"
            read = [report.integer(node, name, UINT64, 0) for name in names]
            # Of no use to operators; of their types all the same, as DxDispatch reads them.
            texts = [report.is_of(node, name, str, "a string") for name in ("format", "counter")]
            if None in read or not all([*texts, report.is_of(node, "shape", Items, "an array")]):
                return None
            size, offset = read[0] or 0, read[1] or 0
        elif not isinstance(node.value, str):
            found = f"found {node.kind()}; allowed: a resource's name, or an object with it"
            self._report.error(node, found)
            return None
        resource = self._resources.find(named)
        if resource is None:
            return None
        if size == 0 and resource.dtype is not None:
            size = BUFFER_TYPES[resource.dtype].itemsize
        return node, resource, offset * size

    def _apart(self, node: Node, bound: list[Bound]) -> None:
        """An output may share no byte with another tensor: no operator here has an in-place form."""
        for i, one in enumerate(bound):
            for other in bound[:i]:
                if "output" not in (one.point.kind, other.point.kind):
                    continue
                if one.resource is other.resource and (
                    one.offset < other.offset + other.point.bytes
                    and other.offset < one.offset + one.point.bytes
                ):
                    place = node.get(one.point.name) or node
                    shared = f'{one.point.name} and {other.point.name} share memory of "{one.resource.name}"'
                    self._report.error(place, shared, "an output needs memory of its own")
