"""Bindings: the part of a buffer that each tensor of an operator is in."""

from __future__ import annotations

from specops.dxdispatch.context import Context
from specops.dxdispatch.model import Bound, Resource
from specops.dxdispatch.nodes import UINT64, Items, Node
from specops.dxdispatch.operators import BindPoint, Dispatchable

_Bindings = tuple[Bound, ...] | None  # None, with errors, where one does not fit


def owned(made: Dispatchable, context: Context) -> _Bindings:
    """Of the OWNED_BY_DML tensors, which the dispatchable binds."""
    node = made.node.get("bindings")
    if node is None:
        return _bind(made.node, {}, made, True, context)
    return _bind(node, node.value, made, True, context) if node.is_object() else None


def dispatched(node: Node, made: Dispatchable | None, context: Context) -> _Bindings:
    """Of all other tensors, which a dispatch binds.

    Of a dispatchable that could not be read no tensors are known; how resources are named is checked all the same.
    """
    if made is None:
        for entry in node.value.values():
            _part(entry, context)
        return None
    bound = _bind(node, node.value, made, False, context)
    _no_output_is_shared(node, bound or ())
    return bound


def _bind(
    place: Node, entries: dict[str, Node], made: Dispatchable, owned: bool, context: Context
) -> _Bindings:
    """The parts of buffers that tensors are bound to, either those that are owned or all others."""
    before = place.report.errors
    points = [p for p in made.points if p.owned == owned]
    names = [p.name for p in points]
    for name, entry in entries.items():
        if name not in names:
            _stray(name, entry, made, names)
    out = []
    for point in points:
        if point.name not in entries:
            place.error(f"{point.name} of {made.name} is not bound to a resource")
            continue
        bound = _bound(entries[point.name], point, context)
        if bound is None:
            continue
        out.append(bound)
        if owned:  # copied, so that later commands cannot change it
            context.usage.memory.add(bound.resource.node, point.bytes)
    return None if place.report.errors > before else tuple(out)


def _stray(name: str, entry: Node, made: Dispatchable, names: list[str]) -> None:
    """What is to be bound, and not here."""
    other = next((p for p in made.points if p.name == name), None)
    if other is not None and other.owned:
        message = "OWNED_BY_DML: bound by the dispatchable itself, not by a dispatch"
        entry.error(message, 'move it to "bindings" of the dispatchable')
    elif other is not None:
        message = "only OWNED_BY_DML tensors are bound by the dispatchable"
        entry.error(message, "bind it in the dispatch command")
    elif name in made.optional:
        entry.warn(f"{made.name} does not describe this tensor; not bound")
    else:
        entry.warn(f"{made.name} has no such tensor; not bound", name, names)


def _bound(node: Node, point: BindPoint, context: Context) -> Bound | None:
    part = _part(node, context)
    if part is None:
        return None
    node, resource, begin = part
    left = max(0, resource.bytes - begin)
    if begin % point.alignment:
        found = f"{point.name} begins at byte {begin}; allowed: a multiple of {point.alignment}"
        node.error(found, "elementOffset x elementSizeInBytes is where it begins")
    elif left < point.bytes:
        found = f'"{resource.name}" has {left} bytes from byte {begin} on'
        node.error(f"{found}; {point.name} takes {point.bytes}")
    else:
        return Bound(point, resource, begin)
    return None


def _part(node: Node, context: Context) -> tuple[Node, Resource, int] | None:
    """The resource that is named for a tensor, from which byte on it is bound, and where that is said."""
    if isinstance(node.value, Items):
        if len(node.value) != 1:
            count = len(node.value)
            node.error(f"Bind point requires 1 resource, but {count} were bound")
            return None
        node = node.value[0]
    named, size, offset = node, 0, 0
    if isinstance(node.value, dict):
        node.unknown(
            (
                "name", "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
                "counterOffsetBytes", "shape",
            )
        )  # fmt: skip
        name = node.string("name")
        if name is None:
            return None
        named = name
        # Of some only the types count, as DxDispatch reads them: they are of no use to operators.
        numbers = "elementSizeInBytes", "elementOffset", "elementCount", "counterOffsetBytes"
        read = [node.integer(number, UINT64, 0) for number in numbers]
        fine = [node.may_have(text, str, "a string") for text in ("format", "counter")]
        fine.append(node.may_have("shape", Items, "an array"))
        if None in read or not all(fine):
            return None
        size, offset = read[0] or 0, read[1] or 0
    elif not isinstance(node.value, str):
        node.refuse("a resource's name, or an object with it")
        return None
    resource = context.resource(named)
    if resource is None:
        return None
    if size == 0 and resource.dtype is not None:
        size = resource.dtype.itemsize
    return node, resource, offset * size


def _no_output_is_shared(node: Node, bound: tuple[Bound, ...]) -> None:
    """An output may share no byte with another tensor: no operator here has an in-place form."""
    for i, one in enumerate(bound):
        for other in bound[:i]:
            if (
                "output" in (one.point.kind, other.point.kind)
                and one.resource is other.resource
                and one.offset < other.offset + other.point.bytes
                and other.offset < one.offset + one.point.bytes
            ):
                shared = (
                    f'{one.point.name} and {other.point.name} share memory of "{one.resource.name}"'
                )
                place = node.get(one.point.name) or node
                place.error(shared, "an output needs memory of its own")
