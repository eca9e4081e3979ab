"""Folds: rows of columns become states, in vectors; how states are folded across their lanes, joined and copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import _load_apart
from few_lanes import _few, _load_few
from fold import _DOUBLE, Fold, _bits_type, _rule_of
from fold_product import _times_narrow, _within
from fold_state import (
    _key,
    _key_of_number,
    _loaded,
    _neutral_terms,
    _pieces,
    _places,
    _start,
    _states_added,
    _states_joined,
    _stored,
    _summed,
    _terms,
    _terms_folded,
)
from llvm import _const
from loops import _tree
from memory import _pointer, _prefetch, _prefetch_line
from seldom import _beyond, _some_set, _unless_one
from shuffles import _shuffled
from strips import _strips
from target import _by_single_rows, _zen
from vectors import _any, _Extremes, _greater

FOLD = 8  # vectors that are added to each other first: nothing waits for the sum before
FOLD_FAST = 4  # the same where that pays: see _together
_Join = Callable[[list[Any], list[Any]], list[Any]]

GROUPS = 8  # states folded across their lanes together; of most folds, results stored together


def _together(fold: Fold) -> int:
    """Vectors of a run, or rows of columns, that are folded together, the same on all processors: sums round alike.

    Of elements that are wide and take little to fold 4: on Zen 5 0.85 to 1 of the time, of maxima beyond the caches
    0.7 to 0.9; of 16 bits it would be 1.0 to 1.1, of products of float64 1.2 to 1.9.
    """
    takes_long = fold.slow or (fold.wide and fold.operation == "product")
    return FOLD if takes_long or fold.bits < 32 else FOLD_FAST


def _fold_part(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    state: list[Any],
    load: Callable[[int, Any], Any],
    rows: int,
    count: Any,
    one_group: bool,
    fresh: bool = False,
) -> list[Any]:
    """The state with `rows` vectors, of each the first `count` lanes; `load` gives their bits by number and lanes."""
    few = None
    if count is not None:
        # The mask of at most 64 lanes: numbers of 8 bits will do.
        few = _few(context, builder, ir.VectorType(ir.IntType(8), fold.count), count)
    if fold.operation == "greatest" and fold.floats and rows > 1:
        key = _greatest_of_floats(builder, fold, rule, [load(i, few) for i in range(rows)])
        if few is not None:
            key = builder.select(few.mask, key, _neutral_terms(fold, key.type))
        return [_greater(builder, state[0], key)]

    width = state[0].type.count  # of the pieces in which the state is

    def terms(i: int) -> list[Any]:
        bits = load(i, few)
        values = []
        for first in range(0, fold.count, width):
            places = list(range(first, first + width))
            value = _terms(context, builder, fold, rule, _shuffled(builder, bits, bits, places))
            if few is not None:
                wanted = _shuffled(builder, few.mask, few.mask, places)
                value = builder.select(wanted, value, _neutral_terms(fold, value.type))
            values.append(value)
        return values

    if fold.converts:
        return _summed(context, builder, fold, state, rows, terms, fresh)
    if fold.widens:
        return _times_narrow(builder, state, rows, terms)
    return _terms_folded(
        context, builder, fold, state, rows, lambda i: terms(i)[0], one_group, fresh
    )


def _fold_into(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    state: list[Any],
    load: Callable[[int, Any], Any],
    rows: int,
    count: Any,
    one_group: bool,
) -> None:
    """As _fold_part, for a state in variables."""
    old = [builder.load(variable) for variable in state]
    new = _fold_part(context, builder, fold, rule, old, load, rows, count, one_group)
    for variable, value in zip(state, new, strict=True):
        builder.store(value, variable)


def _greatest_of_floats(builder: Any, fold: Fold, rule: tuple[Any, ...], rows: list[Any]) -> Any:
    """The greatest key of several vectors of floats; each needs a key only if there is NaN among them.

    Columns take 0.9 to 1 of the time so.
    """
    extremes = _Extremes(builder, rows[0])
    extremes.more(rows[1:])
    bits, some_nan = extremes.greatest(rule[0], rule[2])
    key = cgutils.alloca_once_value(builder, _key_of_number(builder, rule, bits))
    with builder.if_then(some_nan, likely=False):
        keys = [_key(builder, fold, rule, bits) for bits in rows]
        greatest = _tree(range(len(rows)), keys.__getitem__, lambda a, b: _greater(builder, a, b))
        builder.store(greatest, key)
    return builder.load(key)


def _load_row(builder: Any, fold: Fold, pointer: Any, few: Any) -> Any:
    return _load_few(builder, pointer, few, ir.VectorType(fold.element, fold.count))


@intrinsic
def fold_rows(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    ahead: Any,
    columns: Any,
    singly: Any,
) -> Any:
    """Fold rows of adjoining columns into a state for each column; returns how many rows are.

    That is the greatest multiple of those that are folded together; or, where they are folded `singly`, which takes
    `by_single_rows` and a fold of any_number, all. Row r begins at address + the int64 at `offsets` + 8 * r; what is
    fetched are the rows that are `ahead` rows further on in that table.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, rows, ahead, columns, singly = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        size = i64(f.bits // 8)
        level = 1 if _zen(context) >= 5 else 2  # on Zen 5 0.7 to 1 of the time
        table = builder.inttoptr(offsets, i64.as_pointer())

        def part(row: Any, together: int) -> None:
            starts, later = [], []
            for r in range(together):
                number = builder.add(row, i64(r))
                offset = builder.load(builder.gep(table, [number]))
                starts.append(_pointer(builder, address, offset))
                offset = builder.load(builder.gep(table, [builder.add(ahead, number)]))
                later.append(_pointer(builder, address, offset))
            each = 1 if f.in_turn else together
            at_first = builder.and_(fresh, builder.icmp_signed("==", row, i64(0)))

            def strip(column: Any, count: Any) -> None:
                offset = builder.mul(column, size)

                def rows_from(first: int) -> Callable[[int, Any], Any]:
                    def load(i: int, few: Any) -> Any:
                        start, further = starts[first + i], later[first + i]
                        _prefetch(builder, builder.gep(further, [offset]), level)
                        return _load_row(builder, f, builder.gep(start, [offset]), few)

                    return load

                places = _pieces(context, builder, f, at, gap, column)
                state = _start(builder, f, at_first, places)
                new = [builder.load(variable) for variable in state]
                for r in range(0, together, each):
                    load = rows_from(r)
                    new = _fold_part(context, builder, f, rule, new, load, each, count, False)
                _stored(builder, places, new)

            _strips(builder, f.count, columns, strip)

        together = _together(f)
        folded = builder.and_(rows, i64(-together))
        may_be_single = _by_single_rows(context) and f.any_number
        several = builder.select(singly, i64(0), folded) if may_be_single else folded
        with cgutils.for_range_slice(builder, i64(0), several, i64(together), i64) as (row, _):
            part(row, together)
        if not may_be_single:
            return folded
        single = builder.select(singly, rows, i64(0))
        with cgutils.for_range_slice(builder, i64(0), single, i64(1), i64) as (row, _):
            part(row, 1)
        return builder.select(singly, rows, folded)

    i64, flag = types.int64, types.boolean
    return types.int64(fold, i64, i64, i64, flag, i64, i64, i64, i64, i64, flag), codegen


def _fold_few(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    fresh: Any,
    places: list[Any],
    rows: Any,
    row: Callable[[Any, Any], Any],
    count: Any,
) -> None:
    """Fold so many rows of a vector of columns into the states at `places`; `row` gives bits by number and lanes."""
    state = _start(builder, fold, fresh, places)
    with cgutils.for_range(builder, rows) as down:

        def load(_i: int, few: Any) -> Any:
            return row(down.index, few)

        _fold_into(context, builder, fold, rule, state, load, 1, count, False)
    _stored(builder, places, [builder.load(variable) for variable in state])


@intrinsic
def fold_few(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    columns: Any,
) -> Any:
    """Fold fewer rows than are folded together; see fold_rows."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, rows, columns = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        table = builder.inttoptr(offsets, i64.as_pointer())

        def strip(column: Any, count: Any) -> None:
            start = builder.add(address, builder.mul(column, i64(f.bits // 8)))

            def row(number: Any, few: Any) -> Any:
                offset = builder.load(builder.gep(table, [number]))
                return _load_row(builder, f, _pointer(builder, start, offset), few)

            places = _pieces(context, builder, f, at, gap, column)
            _fold_few(context, builder, f, rule, fresh, places, rows, row, count)

        _strips(builder, f.count, columns, strip)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64), codegen


@intrinsic
def fold_scattered(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    columns: Any,
    step: Any,
    ahead: Any,
) -> Any:
    """Fold rows of columns that are `step` bytes apart; see fold_rows.

    Where columns lie side by side, as short groups do, a vector of them has about as many lines of memory as there are
    rows: as many are fetched, `ahead` bytes further on; none where that is 0.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, rows, columns, step, ahead = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        table = builder.inttoptr(offsets, i64.as_pointer())

        def strip(fetches: bool, column: Any, count: Any) -> None:
            start = builder.add(address, builder.mul(column, step))
            places = _places(builder, f, at, gap, column, f.count)

            def row(number: Any, _few: Any) -> Any:
                if fetches:
                    _prefetch_line(builder, start, ahead, number)
                first = builder.add(start, builder.load(builder.gep(table, [number])))
                return _load_apart(builder, first, step, ir.VectorType(f.element, f.count), count)

            _fold_few(context, builder, f, rule, fresh, places, rows, row, count)

        # A branch for each row, too, takes up to 1.5 times as long.
        none = builder.icmp_signed("==", ahead, i64(0))
        with builder.if_else(none) as (then, otherwise):
            with then:
                _strips(builder, f.count, columns, lambda *of: strip(False, *of))
            with otherwise:
                _strips(builder, f.count, columns, lambda *of: strip(True, *of))
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, *(i64,) * 6), codegen


@intrinsic
def is_settled(_context: Any, fold: Any, at: Any) -> Any:
    """Whether a lane of a vector of states has the greatest of all keys."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        f = fold.fold
        if f.operation != "greatest":
            return ir.IntType(1)(0)
        zero = ir.IntType(64)(0)
        (keys,) = _loaded(builder, _places(builder, f, values[1], zero, zero, f.count))
        greatest = _const(keys.type, 2 ** (f.bits - 1) - 1)
        return _any(builder, builder.icmp_signed("==", keys, greatest))

    return types.boolean(fold, types.int64), codegen


def _across(builder: Any, states: list[list[Any]], joined: _Join) -> list[Any]:
    """GROUPS states across their lanes, one for each; `joined` makes one of two."""

    def parts(a: list[Any], b: list[Any], places: list[int]) -> list[Any]:
        return [_shuffled(builder, *pair, places) for pair in zip(a, b, strict=True)]

    def group(state: list[Any]) -> list[Any]:
        """GROUPS lanes of one group."""
        count = state[0].type.count
        while count > GROUPS:
            count //= 2
            low, high = [*range(count)], [*range(count, 2 * count)]
            state = joined(parts(state, state, low), parts(state, state, high))
        return state

    def pairs(some: list[list[Any]]) -> list[Any]:
        """Lanes of these groups in turn, as many of each."""
        if len(some) == 1:
            return group(some[0])
        half = len(some) // 2
        a, b = pairs(some[:half]), pairs(some[half:])
        each = GROUPS // half  # lanes of a group in a, or b
        front = [i for i in range(2 * GROUPS) if i % each < each // 2]
        back = [i for i in range(2 * GROUPS) if i % each >= each // 2]
        return joined(parts(a, b, front), parts(a, b, back))

    return pairs(states)


def _across_simply(
    builder: Any, states: list[list[Any]], joined: _Join, bits: Any, last: float, simply: _Join
) -> list[Any]:
    """As _across; where no lane has one of `bits` the last array is `last`, and the others are joined `simply`.

    0.75 of the time in short rows.
    """
    result = [cgutils.alloca_once(builder, ir.VectorType(_DOUBLE, GROUPS)) for _ in states[0]]

    def put(state: list[Any]) -> None:
        for variable, value in zip(result, state, strict=True):
            builder.store(value, variable)

    with builder.if_else(_some_set(builder, bits), likely=False) as (then, otherwise):
        with then:
            put(_across(builder, states, joined))
        with otherwise:
            simple = _across(builder, [state[:-1] for state in states], simply)
            put([*simple, _const(simple[0].type, last)])
    return [builder.load(variable) for variable in result]


def _across_states(context: Any, builder: Any, fold: Fold, states: list[list[Any]]) -> list[Any]:
    """The states that GROUPS vectors of states come to across their lanes, one for each."""

    def joined(a: list[Any], b: list[Any]) -> list[Any]:
        return _states_joined(context, builder, fold, a, b, one_top=True)

    def any_of(bits: Callable[[list[Any]], Any]) -> Any:
        return _tree(range(GROUPS), lambda g: bits(states[g]), builder.or_)

    if fold.operation == "product" and fold.lane == _DOUBLE:
        # The product of 16 mantissas from 2**-32 to 2**32 is a normal double, but two of these need not be.
        bits = builder.or_(
            any_of(lambda state: _beyond(builder, state[0], 32)),
            any_of(lambda state: builder.bitcast(state[1], _bits_type(state[1]))),
        )
        result = _across_simply(
            builder, states, joined, bits, 0.0, lambda a, b: [builder.fmul(a[0], b[0])]
        )
        return _within(builder, result)
    if fold.operation == "squares" and fold.wide:
        return _across_simply(
            builder,
            states,
            joined,
            any_of(lambda state: _unless_one(builder, state[-1])),
            1.0,
            lambda a, b: _states_added(context, builder, a, b),
        )
    return _across(builder, states, joined)


def _loaded_vectors(builder: Any, fold: Fold, at: Any, gap: Any) -> list[list[Any]]:
    """GROUPS vectors of states that follow each other from `at` on."""
    firsts = [at.type(group * fold.count) for group in range(GROUPS)]
    return [_loaded(builder, _places(builder, fold, at, gap, i, fold.count)) for i in firsts]


def _store_across(
    context: Any, builder: Any, fold: Fold, states: list[list[Any]], results: Any, gap: Any
) -> None:
    """Store the states that GROUPS vectors of states come to across their lanes, one for each, from `results` on."""
    result = _across_states(context, builder, fold, states)
    _stored(builder, _places(builder, fold, results, gap, results.type(0), GROUPS), result)


@intrinsic
def store_across(_context: Any, fold: Any, at: Any, gap: Any, results: Any, result_gap: Any) -> Any:
    """Fold each of GROUPS vectors of states across its lanes: a state for each of them in `results`."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, at, gap, results, result_gap = values
        f = fold.fold
        states = _loaded_vectors(builder, f, at, gap)
        _store_across(context, builder, f, states, results, result_gap)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64), codegen


@intrinsic
def join(_context: Any, fold: Any, at: Any, other: Any, gap: Any, count: Any) -> Any:
    """Join `count` states at `other` to those at `at`, one by one."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, at, other, gap, count = values
        f = fold.fold
        i64 = count.type
        position = i64(0)
        for lanes in (GROUPS, 1):
            end = builder.and_(count, i64(-lanes))
            with cgutils.for_range_slice(builder, position, end, i64(lanes), i64) as (lane, _):
                places = _places(builder, f, at, gap, lane, lanes)
                others = _loaded(builder, _places(builder, f, other, gap, lane, lanes))
                _stored(
                    builder,
                    places,
                    _states_joined(context, builder, f, _loaded(builder, places), others),
                )
            position = end
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64), codegen


@intrinsic
def copy_states(
    _context: Any, fold: Any, to: Any, to_gap: Any, at: Any, gap: Any, count: Any
) -> Any:
    """Copy `count` states."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, to, to_gap, at, gap, count = values
        f = fold.fold
        targets = _places(builder, f, to, to_gap, count.type(0), 1)
        sources = _places(builder, f, at, gap, count.type(0), 1)
        for target, source in zip(targets, sources, strict=True):
            cgutils.raw_memcpy(builder, target, source, count, f.lane_bytes)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64), codegen
