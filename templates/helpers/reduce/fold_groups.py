"""Folds of short runs, GROUPS of them at once, whose states stay in registers until each group has its result.

Where a fold has few operations for an element: 0.55 to 1 of the time within the caches on Zen 5, 0.65 to 1.1 with
vectors of 256 bits. Factors and squares near the ends of a double's range need more operations: runs of such go through
memory after that, which takes 1.2 to 1.5 times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from few_lanes import _few, _load_few
from fold import Fold, _rule_of
from fold_short import _fold_short, _ShortRuns
from fold_state import (
    _loaded,
    _neutral,
    _neutral_terms,
    _states_added,
    _stored,
    _summed,
    _terms,
    _terms_folded,
)
from folds import GROUPS, _loaded_vectors, _store_across
from loops import _tree
from memory import _load, _pointer, _prefetch, _splat
from seldom import _CALM_POWER, _beyond, _unless_zero
from vectors import _any

# Factors from 2**-64 to 2**64 are multiplied as they are: eight of them, of two lanes and four vectors, before a
# product is brought back.
FACTOR_POWER = 64


class _RunFold(NamedTuple):
    """How a run is folded in registers; the vectors that it comes to on the way are `values`."""

    # Values of the last vector, by its bits and the lanes that are wanted: others are met elsewhere, or are anything.
    first: Callable[[Any, Any], list[Any]]
    # Values with the bits of another vector.
    more: Callable[[list[Any], Any], list[Any]]
    # The state, and lanes for which it has to be made in memory; None where there are never any.
    state: Callable[[list[Any]], tuple[list[Any], Any]]


def _run_fold_of(context: Any, builder: Any, fold: Fold, rule: Any) -> _RunFold | None:
    """How a fold folds runs in registers; None if it does not."""
    if fold.operation in ("product", "squares") and fold.wide and fold.floats:
        return _by_doubles(context, builder, fold)
    return _by_states(context, builder, fold, rule) if fold.stays else None


def _by_states(context: Any, builder: Any, fold: Fold, rule: Any) -> _RunFold:
    """Values are the state."""

    def folded(values: list[Any], bits: Any, wanted: Any = None) -> list[Any]:
        value = _terms(context, builder, fold, rule, bits)
        if wanted is not None:
            value = builder.select(wanted, value, _neutral_terms(fold, value.type))
        if fold.converts:
            return _summed(
                context, builder, fold, values, 1, lambda _i: [value], wanted is not None
            )
        if wanted is not None:
            return [value, *values[1:]]
        return _terms_folded(context, builder, fold, values, 1, lambda _i: value, one_group=True)

    return _RunFold(
        lambda bits, wanted: folded(_neutral(fold, fold.count), bits, wanted),
        folded,
        lambda values: (values, None),
    )


def _by_doubles(context: Any, builder: Any, fold: Fold) -> _RunFold:
    """Products, or sums of squares, of doubles as they are, none of which comes near the least or the greatest.

    Runs of 17 to 32 elements take 0.6 to 0.75 of the time so.
    """
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

    return _RunFold(first, more, state)


def _last_vectors(
    context: Any, builder: Any, fold: Fold, runs: _ShortRuns, starts: list[Any]
) -> tuple[list[Any], Any]:
    """The bits of the last vector of each run, and the lanes that are not those of a vector before it."""
    i64 = runs.n.type
    lanes, size = i64(fold.count), i64(fold.bits // 8)
    vector = ir.VectorType(fold.element, fold.count)
    numbers = ir.Constant(ir.VectorType(i64, fold.count), list(range(fold.count)))
    bits = [cgutils.alloca_once(builder, vector) for _ in starts]
    wanted = cgutils.alloca_once(builder, ir.VectorType(ir.IntType(1), fold.count))

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
    context: Any, builder: Any, fold: Fold, run_fold: _RunFold, runs: _ShortRuns, ahead: Any
) -> list[tuple[list[Any], Any]]:
    """The state of each of GROUPS runs, and lanes as _RunFold has them; behind the last run there are any."""
    i64 = runs.n.type
    vector = ir.VectorType(fold.element, fold.count)
    size = fold.bits // 8
    starts = []
    address, last = runs.address, builder.sub(runs.count, i64(1))
    for group in range(GROUPS):
        starts.append(address)
        more = builder.icmp_signed("<", i64(group), last)
        address = builder.add(address, builder.select(more, runs.step, i64(0)))
    before = builder.and_(builder.sub(runs.n, i64(1)), i64(-fold.count))
    behind = builder.mul(before, i64(size))

    def fetch(place: Any) -> None:
        with builder.if_then(builder.icmp_signed("!=", ahead, i64(0))):
            _prefetch(builder, _pointer(builder, builder.add(place, ahead)), 1)

    lasts, wanted = _last_vectors(context, builder, fold, runs, starts)
    values = [
        [cgutils.alloca_once_value(builder, value) for value in run_fold.first(bits, wanted)]
        for bits in lasts
    ]
    # Run by run, in the order of memory: all runs vector by vector take 1.1 to 1.3 times as long beyond the caches.
    for group, (start, variables) in enumerate(zip(starts, values, strict=True)):
        some = builder.icmp_signed("<", i64(group), runs.count)
        end = builder.add(start, builder.select(some, behind, i64(0)))
        strip = cgutils.for_range_slice(builder, start, end, i64(fold.count * size), i64)
        with strip as (place, _):
            fetch(place)
            bits = _load(builder, _pointer(builder, place), vector)
            _stored(builder, variables, run_fold.more(_loaded(builder, variables), bits))
        fetch(end)
    return [run_fold.state(_loaded(builder, variables)) for variables in values]


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
        run_fold = _run_fold_of(context, builder, f, _rule_of(builder, f, rule))

        def finish(states: list[list[Any]]) -> None:
            _store_across(context, builder, f, states, results, result_gap)

        def in_memory() -> list[list[Any]]:
            _fold_short(context, builder, f, rule, at, gap, runs, True, ahead)
            return _loaded_vectors(builder, f, at, gap)

        if run_fold is None:
            finish(in_memory())
            return context.get_dummy_value()
        found = _states_of_runs(context, builder, f, run_fold, runs, ahead)
        states, lanes = [state for state, _ in found], [some for _, some in found]
        if lanes[0] is None:
            finish(states)
            return context.get_dummy_value()
        left = _any(builder, _tree(range(GROUPS), lanes.__getitem__, builder.or_))
        with builder.if_else(left, likely=False) as (then, otherwise):
            with then:
                # Of others as they are: what a run comes to does not depend on those beside it.
                chosen = []
                for own, some, other in zip(states, lanes, in_memory(), strict=True):
                    flag = _any(builder, some)
                    pairs = zip(other, own, strict=True)
                    chosen.append([builder.select(flag, *pair) for pair in pairs])
                finish(chosen)
            with otherwise:
                finish(states)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, *(i64,) * 10), codegen
