"""Folds of short runs, GROUPS of them at once, whose states stay in registers until each group has its result.

Where a fold has few operations for an element that takes 0.7 to 0.9 of the time. What would need more, as factors and
squares near the ends of a double's range do, goes through memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from few_lanes import _few, _load_few
from fold import Fold, _rule_of, _vector_of
from fold_short import _fold_short, _ShortRuns
from fold_state import (
    _blank,
    _loaded,
    _neutral,
    _places,
    _states_added,
    _stored,
    _summed,
    _terms,
    _terms_folded,
)
from folds import GROUPS, _across_states
from loops import _tree
from memory import VECTOR_BYTES, _load, _pointer, _prefetch, _splat
from seldom import _CALM_POWER, _beyond, _unless_zero
from vectors import _any

# Of as many vectors as a short run of products has, each factor from 2**-128 to 2**128: these are normal doubles.
FACTOR_POWER = 128


class _Way(NamedTuple):
    """How a run is folded in registers; the vectors that it comes to on the way are `values`."""

    # Values by the bits of the last vector, and which of its lanes are wanted.
    first: Callable[[Any, Any], list[Any]]
    # Values with the bits of another vector.
    more: Callable[[list[Any], Any], list[Any]]
    # The state, and in which lanes it is not that; None where it always is.
    state: Callable[[list[Any]], tuple[list[Any], Any]]


def _way_of(context: Any, builder: Any, fold: Fold, rule: Any) -> _Way | None:
    """The way of a fold; None if it has none."""
    if fold.operation in ("product", "squares") and fold.wide and fold.floats:
        return _by_doubles(context, builder, fold)
    return _by_states(context, builder, fold, rule) if fold.stays else None


def _by_states(context: Any, builder: Any, fold: Fold, rule: Any) -> _Way:
    def folded(values: list[Any], bits: Any, wanted: Any = None) -> list[Any]:
        value = _terms(context, builder, fold, rule, bits)
        if wanted is not None:
            value = builder.select(wanted, value, _blank(fold, value.type))
        if fold.converts:
            return _summed(
                context, builder, fold, values, 1, lambda _i: [value], wanted is not None
            )
        if wanted is not None:
            return [value, *values[1:]]
        return _terms_folded(context, builder, fold, values, 1, lambda _i: value, one_group=True)

    return _Way(
        lambda bits, wanted: folded(_neutral(fold, fold.count), bits, wanted),
        folded,
        lambda values: (values, None),
    )


def _by_doubles(context: Any, builder: Any, fold: Fold) -> _Way:
    """Products, or sums of squares, of doubles as they are, none of which comes near the least or the greatest."""
    squares = fold.operation == "squares"
    neutral = _neutral(fold, fold.count)

    def term(bits: Any, wanted: Any = None) -> tuple[Any, Any]:
        value = _terms(context, builder, fold, (), bits)
        beyond = _beyond(builder, value, _CALM_POWER if squares else FACTOR_POWER)
        beyond = _unless_zero(builder, beyond, value)
        if squares:
            value = builder.fmul(value, value)
        if wanted is not None:
            value = builder.select(wanted, value, neutral[0])
        return value, beyond

    def first(bits: Any, wanted: Any) -> list[Any]:
        value, beyond = term(bits, wanted)
        return [value, *neutral[1:-1], beyond]

    def more(values: list[Any], bits: Any) -> list[Any]:
        value, beyond = term(bits)
        beyond = builder.or_(values[-1], beyond)
        if squares:
            other = [value, neutral[0]]
            return [*_states_added(context, builder, values[:-1], other), beyond]
        return [builder.fmul(values[0], value), beyond]

    def state(values: list[Any]) -> tuple[list[Any], Any]:
        *some, beyond = values
        lanes = builder.icmp_signed("!=", beyond, ir.Constant(beyond.type, None))
        return [*some, neutral[-1]], lanes

    return _Way(first, more, state)


def _last_vectors(
    context: Any, builder: Any, fold: Fold, runs: _ShortRuns, starts: list[Any]
) -> tuple[list[Any], Any]:
    """The bits of the last vector of each run, and the lanes that are not those of a vector before it."""
    i64 = runs.n.type
    lanes, size = i64(fold.count), i64(fold.bits // 8)
    vector = _vector_of(fold.element, fold.count)
    numbers = ir.Constant(_vector_of(i64, fold.count), list(range(fold.count)))
    bits = [cgutils.alloca_once(builder, vector) for _ in starts]
    wanted = cgutils.alloca_once(builder, _vector_of(ir.IntType(1), fold.count))

    def whole() -> None:
        """It ends where the run does, and so overlaps the vector before it."""
        end = builder.mul(builder.sub(runs.n, lanes), size)
        for start, place in zip(starts, bits, strict=True):
            builder.store(_load(builder, _pointer(builder, start, end), vector), place)
        again = builder.and_(builder.neg(runs.n), builder.sub(lanes, i64(1)))
        met = _splat(builder, again, numbers.type)
        builder.store(builder.icmp_signed(">=", numbers, met), wanted)

    def part() -> None:
        few = _few(context, builder, vector, runs.n)
        for start, place in zip(starts, bits, strict=True):
            builder.store(_load_few(builder, _pointer(builder, start), few, vector), place)
        builder.store(few.mask, wanted)

    with builder.if_else(builder.icmp_signed(">=", runs.n, lanes)) as (then, otherwise):
        with then:
            whole()
        with otherwise:
            part()
    return _loaded(builder, bits), builder.load(wanted)


def _states_of_runs(
    context: Any, builder: Any, fold: Fold, way: _Way, runs: _ShortRuns, ahead: Any
) -> tuple[list[list[Any]], Any]:
    """States of GROUPS runs, of which those behind the last are the last one, and whether some are others."""
    i64 = runs.n.type
    vector = _vector_of(fold.element, fold.count)
    starts = []
    address, last = runs.address, builder.sub(runs.count, i64(1))
    for group in range(GROUPS):
        starts.append(address)
        more = builder.icmp_signed("<", i64(group), last)
        address = builder.add(address, builder.select(more, runs.step, i64(0)))
    before = builder.and_(builder.sub(runs.n, i64(1)), i64(-fold.count))
    behind = builder.mul(before, i64(fold.bits // 8))

    def fetch(place: Any) -> None:
        with builder.if_then(builder.icmp_signed("!=", ahead, i64(0))):
            _prefetch(builder, _pointer(builder, builder.add(place, ahead)), 1)

    lasts, wanted = _last_vectors(context, builder, fold, runs, starts)
    values = [
        [cgutils.alloca_once_value(builder, value) for value in way.first(bits, wanted)]
        for bits in lasts
    ]
    for start, variables in zip(starts, values, strict=True):
        end = builder.add(start, behind)
        with cgutils.for_range_slice(builder, start, end, i64(VECTOR_BYTES), i64) as (place, _):
            fetch(place)
            bits = _load(builder, _pointer(builder, place), vector)
            _stored(builder, variables, way.more(_loaded(builder, variables), bits))
        fetch(end)
    states, others = zip(
        *(way.state(_loaded(builder, variables)) for variables in values), strict=True
    )
    if others[0] is None:
        return list(states), None
    return list(states), _any(builder, _tree(range(GROUPS), others.__getitem__, builder.or_))


@intrinsic
def fold_groups(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    results: Any,
    result_gap: Any,
    address: Any,
    n: Any,
    step: Any,
    count: Any,
    ahead: Any,
) -> Any:
    """Fold each of `count` runs, GROUPS at most, to one state in `results`; `at` is scratch memory for their vectors.

    Runs have n adjoining elements, at most short_row, and begin `step` bytes apart. What lies `ahead` bytes further is
    fetched, unless that is 0.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, results, result_gap, *runs, ahead = values
        f = fold.fold
        runs = _ShortRuns(*runs)
        i64 = runs.n.type
        way = _way_of(context, builder, f, _rule_of(builder, f, rule))

        def finish(states: list[list[Any]]) -> None:
            result = _across_states(context, builder, f, states)
            _stored(builder, _places(builder, f, results, result_gap, i64(0), GROUPS), result)

        def in_memory() -> None:
            _fold_short(context, builder, f, rule, at, gap, runs, True, ahead)
            groups = range(GROUPS)
            places = [_places(builder, f, at, gap, i64(g * f.count), f.count) for g in groups]
            finish([_loaded(builder, place) for place in places])

        if way is None:
            in_memory()
            return context.get_dummy_value()
        states, others = _states_of_runs(context, builder, f, way, runs, ahead)
        if others is None:
            finish(states)
        else:
            with builder.if_else(others, likely=False) as (then, otherwise):
                with then:
                    in_memory()
                with otherwise:
                    finish(states)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, *(i64,) * 10), codegen
