"""Folds of short runs of adjoining elements: a run's few vectors go into one vector of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fold import Fold, _rule_of, _vector_of
from fold_state import _loaded, _neutral, _places, _stored
from folds import _fold_into, _fold_part, _load_row
from memory import _pointer, _prefetch
from vectors import _load_short


def _fold_each(
    context: Any, builder: Any, fold: Fold, fresh: bool, values: Any, ahead: Any
) -> None:
    """Fold runs, each into its vector of states, `fresh` ones or what is there; see fold_short and fold_runs."""
    rule, at, gap, address, n, step, runs, readable = values
    i64 = n.type
    rule = _rule_of(builder, fold, rule)
    vector = _vector_of(fold.element, fold.count)
    before = builder.and_(builder.sub(n, i64(1)), i64(-fold.count))  # the last vector
    rest = builder.sub(n, before)
    behind = builder.mul(before, i64(fold.bits // 8))

    def fetched(place: Any) -> Any:
        if ahead is not None:
            _prefetch(builder, _pointer(builder, place, ahead), 1)
        return place

    def short(place: Any) -> Callable[[int, Any], Any]:
        return lambda _i, mask: _load_short(builder, fetched(place), mask, vector, readable)

    def each(folded: Callable[[Any, list[Any]], list[Any]]) -> None:
        with cgutils.for_range(builder, runs) as loop:
            lane = builder.mul(loop.index, i64(fold.count))
            places = _places(builder, fold, at, gap, lane, fold.count)
            state = _neutral(fold, fold.count) if fresh else _loaded(builder, places)
            first = builder.add(address, builder.mul(loop.index, step))
            _stored(builder, places, folded(first, state))

    def of_one(first: Any, state: list[Any]) -> list[Any]:
        # Of so few elements, pieces take 1.05 times as long.
        load = short(first)
        return _fold_part(context, builder, fold, rule, state, load, 1, n, True, fresh)

    def of_several(first: Any, old: list[Any]) -> list[Any]:
        state = [cgutils.alloca_once_value(builder, value) for value in old]

        def more(load: Callable[[int, Any], Any], count: Any) -> None:
            _fold_into(context, builder, fold, rule, state, load, 1, count, True)

        length = i64(fold.count * fold.bits // 8)
        with cgutils.for_range_slice(builder, i64(0), behind, length, i64) as (offset, _):
            place = fetched(builder.add(first, offset))
            more(lambda _i, mask: _load_row(builder, fold, _pointer(builder, place), mask), None)
        more(short(builder.add(first, behind)), rest)
        return [builder.load(variable) for variable in state]

    with builder.if_else(builder.icmp_signed("==", before, i64(0))) as (then, otherwise):
        with then:
            each(of_one)
        with otherwise:
            each(of_several)


@intrinsic
def short_elements(_context: Any, fold: Any) -> Any:
    """Elements, at most, of a run that is folded one vector after the other, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(fold.fold.short)

    return types.int64(fold), codegen


@intrinsic
def fold_short(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    address: Any,
    n: Any,
    step: Any,
    groups: Any,
    readable: Any,
) -> Any:
    """Fold groups of n adjoining elements, at most short_elements, each into a vector of states of its own.

    They are `step` bytes apart. What ends before `readable` may be read.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _fold_each(context, builder, fold.fold, True, values[1:], None)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64, i64, i64), codegen


@intrinsic
def fold_runs(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    address: Any,
    n: Any,
    step: Any,
    groups: Any,
    readable: Any,
    ahead: Any,
) -> Any:
    """As fold_short, into vectors of states that are there; what lies `ahead` bytes further is fetched."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _fold_each(context, builder, fold.fold, False, values[1:-1], values[-1])
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64, i64, i64, i64), codegen
