"""Folds of short runs of adjoining elements: the few vectors of each go into one vector of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from constants import _of_type
from few_lanes import _load_short
from fold import Fold, _rule_of
from fold_state import (
    _join_narrow,
    _key_of_number,
    _loaded,
    _narrow,
    _neutral_at,
    _pieces,
    _places,
    _stored,
)
from folds import _fold_into, _fold_part, _load_row, _together
from memory import _pointer, _prefetch
from vectors import _Extremes, _greater


class _ShortRuns(NamedTuple):
    """Runs of n adjoining elements, at most `short` of the fold, `step` bytes apart, each of another group."""

    address: Any  # of the first
    n: Any
    step: Any
    count: Any


def _fold_short(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: Any,
    at: Any,
    gap: Any,
    runs: _ShortRuns,
    fresh: bool,
    ahead: Any,
) -> None:
    """Fold each run into a vector of states: `fresh` ones, or those at `at`.

    What lies `ahead` bytes further is fetched, with fresh states unless that is 0.
    """
    i64 = runs.n.type
    rule = _rule_of(builder, fold, rule)
    vector = ir.VectorType(fold.element, fold.count)
    before = builder.and_(builder.sub(runs.n, i64(1)), i64(-fold.count))  # the last vector
    rest = builder.sub(runs.n, before)
    behind = builder.mul(before, i64(fold.bits // 8))
    length = i64(fold.count * fold.bits // 8)

    def fetch(place: Any) -> None:
        _prefetch(builder, _pointer(builder, place, ahead), 1)

    def load(place: Any, few: Any = None) -> Any:
        """The bits of a vector, or of those of its lanes that `few` tells."""
        if fresh:
            with builder.if_then(builder.icmp_signed("!=", ahead, i64(0))):
                fetch(place)
        else:
            fetch(place)
        if few is None:
            return _load_row(builder, fold, _pointer(builder, place), None)
        return _load_short(builder, place, few, vector)

    def each(fold_run: Callable[[Any, list[Any]], list[Any]], in_pieces: bool) -> None:
        with cgutils.for_range(builder, runs.count) as loop:
            lane = builder.mul(loop.index, i64(fold.count))
            if in_pieces:
                places = _pieces(context, builder, fold, at, gap, lane)
            else:
                places = _places(builder, fold, at, gap, lane, fold.count)
            state = _neutral_at(fold, places) if fresh else _loaded(builder, places)
            first = builder.add(runs.address, builder.mul(loop.index, runs.step))
            _stored(builder, places, fold_run(first, state))

    def of_one(first: Any, state: list[Any]) -> list[Any]:
        return _fold_part(
            context,
            builder,
            fold,
            rule,
            state,
            lambda _i, few: load(first, few),
            1,
            runs.n,
            True,
            fresh,
        )

    def of_several(first: Any, old: list[Any]) -> list[Any]:
        state = [cgutils.alloca_once_value(builder, value) for value in old]
        narrow = _narrow(builder, fold, state)

        def more(to: list[Any], place: Any, rows: int, count: Any = None) -> None:
            def row(i: int, few: Any) -> Any:
                return load(builder.add(place, builder.mul(length, i64(i))), few)

            _fold_into(context, builder, fold, rule, to, row, rows, count, True)

        single = i64(0)
        together = _together(fold)
        if fold.narrows and fold.short > together * fold.count:
            # What is left is no more than may be narrow.
            step = builder.mul(length, i64(together))
            single = builder.mul(builder.sdiv(behind, step), step)
            with cgutils.for_range_slice(builder, i64(0), single, step, i64) as (offset, _):
                more(state, builder.add(first, offset), together)
        with cgutils.for_range_slice(builder, single, behind, length, i64) as (offset, _):
            more(narrow, builder.add(first, offset), 1)
        more(narrow, builder.add(first, behind), 1, rest)
        _join_narrow(context, builder, fold, narrow, state)
        return [builder.load(variable) for variable in state]

    def greatest_of_several(first: Any, old: list[Any]) -> list[Any]:
        # No key but of all vectors: 0.75 to 0.95 of the time, 1.3 where there is NaN. The last one overlaps others.
        extremes = _Extremes(builder, load(first))
        end = builder.sub(builder.mul(runs.n, i64(fold.bits // 8)), length)
        extremes.more([load(builder.add(first, end))])
        with cgutils.for_range_slice(builder, length, behind, length, i64) as (offset, _):
            extremes.more([load(builder.add(first, offset))])
        bits, some_nan = extremes.greatest(rule[0], rule[2])
        key = _greater(builder, old[0], _key_of_number(builder, rule, bits))
        key = cgutils.alloca_once_value(builder, key)
        with builder.if_then(some_nan, likely=False):
            builder.store(of_several(first, old)[0], key)
        return [builder.load(key)]

    compares = fold.operation == "greatest" and fold.floats
    # In pieces float16 takes 0.9 to 0.97 of the time; float32 0.95 to 1.15, in one vector either 1.05.
    in_pieces = fold.narrows
    with builder.if_else(builder.icmp_signed("==", before, i64(0))) as (then, otherwise):
        with then:
            each(of_one, in_pieces=False)
        with otherwise:
            each(greatest_of_several if compares else of_several, in_pieces)


short_row = _of_type(lambda fold: fold.fold.short_row)  # elements, at most, of a short run


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
    count: Any,
    ahead: Any,
) -> Any:
    """Fold short runs, each into one of the vectors of states at `at`; see _fold_short."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, *runs, ahead = values
        _fold_short(context, builder, fold.fold, rule, at, gap, _ShortRuns(*runs), False, ahead)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64, i64, i64), codegen
