"""Vectors of the lanes of others, in another order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def _shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """The lanes of a, then b, that have these numbers."""
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
    return builder.shuffle_vector(a, b, numbers)


def _side_by_side(builder: Any, parts: list[Any]) -> Any:
    """Vectors of as many lanes, a power of 2 of them, as one."""
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffled(builder, a, b, order) for a, b in pairs]
    return parts[0]


def _interleaved(builder: Any, a: Any, b: Any) -> Any:
    """The lanes of a and b in turn."""
    lanes = a.type.count
    return _shuffled(builder, a, b, [lane + which for lane in range(lanes) for which in (0, lanes)])


def _in_turn(builder: Any, vector: Any) -> list[Any]:
    """The two vectors that were interleaved."""
    lanes = vector.type.count
    return [_shuffled(builder, vector, vector, list(range(i, lanes, 2))) for i in (0, 1)]


def _collected(builder: Any, vectors: list[Any], places: list[int]) -> Any:
    """A vector of what stands at so many `places`, in rising order, counted through all of the vectors; of one, all."""
    lanes = vectors[0].type.count
    value, order = vectors[0], places
    for number, vector in enumerate(vectors[1:], 1):
        begin = number * lanes
        # Those before have what comes before this one, each element in its lane.
        order = [
            lane if place < begin else lanes + min(place - begin, lanes - 1)
            for lane, place in zip(order, places, strict=True)
        ]
        value = _shuffled(builder, value, vector, order)
        order = list(range(lanes))
    return value


def _lanes_from(builder: Any, vector: Any, first: int, count: int) -> Any:
    """So many lanes from number `first` on."""
    undefined = ir.Constant(vector.type, ir.Undefined)
    return _shuffled(builder, vector, undefined, list(range(first, first + count)))
