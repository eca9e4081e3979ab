"""Vectors of states, and single ones: loaded, joined, stored.

LLVM computes integers of 128 bits one by one. A vector of such states is therefore held as a structure of two vectors,
their upper and their lower halves: max pooling of 64-bit elements with indices takes 0.15 to 0.5 of the time; on x86-64
without SSE4.2, which cannot compare 64-bit lanes, 0.5 to 1.8.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from llvm import _const, _is_float, _least_integer
from memory import _load, _store
from shuffles import _collected, _in_turn, _interleaved

_HALF = ir.IntType(64)


def _held(vector: Any) -> Any:
    """The type that holds a vector of states in registers."""
    if vector.element != ir.IntType(128):
        return vector
    half = ir.VectorType(_HALF, vector.count)
    return ir.LiteralStructType([half, half])


def _is_halved(type_: Any) -> bool:
    return isinstance(type_, ir.LiteralStructType)


def _halves(builder: Any, states: Any) -> tuple[Any, Any]:
    """The upper and the lower halves."""
    return builder.extract_value(states, 0), builder.extract_value(states, 1)


def _of_halves(builder: Any, upper: Any, lower: Any) -> Any:
    """States with these upper and lower halves."""
    states = ir.Constant(ir.LiteralStructType([upper.type, lower.type]), ir.Undefined)
    return builder.insert_value(builder.insert_value(states, upper, 0), lower, 1)


def _load_states(builder: Any, pointer: Any, vector: Any) -> Any:
    """Load a vector of states of any alignment."""
    if not _is_halved(_held(vector)):
        return _load(builder, pointer, vector)
    pairs = _load(builder, pointer, ir.VectorType(_HALF, 2 * vector.count))
    lower, upper = _in_turn(builder, pairs)
    return _of_halves(builder, upper, lower)


def _store_states(builder: Any, states: Any, pointer: Any) -> None:
    """Store states at any alignment."""
    if _is_halved(states.type):
        upper, lower = _halves(builder, states)
        states = _interleaved(builder, lower, upper)
    _store(builder, states, pointer)


def _padding_state(type_: Any) -> Any:
    """Padding's state: the least integer, and of sums 0."""
    if _is_halved(type_):
        upper, lower = type_.elements
        return ir.Constant(type_, [_padding_state(upper), ir.Constant(lower, None)])
    if _is_float(type_):
        return _const(type_, 0.0)
    return _least_integer(type_)


def _joined(builder: Any, a: Any, b: Any) -> Any:
    """The state of two together."""
    if _is_halved(a.type):
        (upper, lower), (upper_b, lower_b) = _halves(builder, a), _halves(builder, b)
        same = builder.icmp_signed("==", upper, upper_b)
        below = builder.and_(same, builder.icmp_signed(">", lower, lower_b))
        return _selected(
            builder, builder.or_(builder.icmp_signed(">", upper, upper_b), below), a, b
        )
    if _is_float(a.type):
        return builder.fadd(a, b)
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _selected(builder: Any, mask: Any, a: Any, b: Any) -> Any:
    """States of `a` in the masked lanes, of `b` in others."""
    if not _is_halved(a.type):
        return builder.select(mask, a, b)
    (upper, lower), (upper_b, lower_b) = _halves(builder, a), _halves(builder, b)
    upper = builder.select(mask, upper, upper_b)
    return _of_halves(builder, upper, builder.select(mask, lower, lower_b))


def _collected_states(builder: Any, vectors: list[Any], places: list[int]) -> Any:
    """As _collected, of states."""
    if not _is_halved(vectors[0].type):
        return _collected(builder, vectors, places)
    halves = zip(*(_halves(builder, vector) for vector in vectors), strict=True)
    return _of_halves(builder, *(_collected(builder, list(half), places) for half in halves))
