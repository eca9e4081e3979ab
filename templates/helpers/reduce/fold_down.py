"""Columns that are folded down many rows at once: their states stay in registers meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fold import Fold, _rule_of
from fold_state import _join_narrow, _narrow, _neutral, _pieces, _places, _start, _stored
from folds import _fold_into, _fold_part, _load_row, _together
from loops import _cases
from memory import _pointer, _prefetch
from planes import WRITTEN_OUT, SmallPlanes, _each_strip
from strips import _strips
from target import _zen

DOWN_VECTORS = 4  # of a row that are folded together


def _fold_down(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    states: list[list[Any]],
    odd_states: list[list[Any]],
    rows: Any,
    load: Callable[[Any, int, Any], Any],
    count: Any,
) -> None:
    """Fold so many rows of adjoining vectors of columns into variables; `load` gives bits by row, vector and lanes.

    The last rows, fewer than are folded together, go into the `odd_states`. There is no loop over an int of rows.
    """
    i64 = ir.IntType(64)

    def fold_by(together: int, states: list[list[Any]], begin: Any, end: Any) -> None:
        each = 1 if fold.in_turn else together

        def fold_from(top: Any) -> None:
            for first in range(0, together, each):
                number = builder.add(top, i64(first))
                for v, state in enumerate(states):

                    def load_row(i: int, few: Any, number: Any = number, v: int = v) -> Any:
                        return load(builder.add(number, i64(i)), v, few)

                    _fold_into(context, builder, fold, rule, state, load_row, each, count, False)

        if isinstance(rows, int):
            for top in range(begin, end, together):
                fold_from(i64(top))
        else:
            with cgutils.for_range_slice(builder, begin, end, i64(together), i64) as (top, _):
                fold_from(top)

    together = _together(fold)
    if isinstance(rows, int):
        begin, several = 0, rows - rows % together
    else:
        begin, several = i64(0), builder.and_(rows, i64(-together))
    fold_by(together, states, begin, several)
    fold_by(1, odd_states, several, rows)


def _folded_down(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    rows: Any,
    load: Callable[[Any], Any],
) -> list[Any]:
    """The state of so many rows of a vector of columns; load(row) gives its bits.

    An int of rows needs no loop. Sums are still added row by row, for their order makes a difference to the result.
    """
    none = _neutral(fold, fold.count)
    in_any_order = fold.finished_apart or (fold.operation == "product" and fold.narrows)
    if isinstance(rows, int) and in_any_order:

        def load_row(i: int, _few: Any) -> Any:
            return load(ir.IntType(64)(i))

        return _fold_part(context, builder, fold, rule, none, load_row, rows, None, False, True)
    state = [cgutils.alloca_once_value(builder, value) for value in none]
    odd = _narrow(builder, fold, state)
    _fold_down(
        context, builder, fold, rule, [state], [odd], rows, lambda row, _v, _m: load(row), None
    )
    _join_narrow(context, builder, fold, odd, state)
    return [builder.load(variable) for variable in state]


@intrinsic
def fold_down(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    rows: Any,
    row_step: Any,
    columns: Any,
    ahead: Any,
) -> Any:
    """Fold rows of few adjoining columns, `row_step` bytes apart, into their states.

    For floats that are converted; nothing is done with others, which would take 0.85 to 1.2 of the time of fold_rows.
    What is fetched lies `ahead` bytes further.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, rows, row_step, columns, ahead = values
        f = fold.fold
        if not f.converts:
            return context.get_dummy_value()
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        level = 1 if _zen(context) >= 5 else 2  # as fold_rows does

        def down(vectors: int) -> Callable[[Any, Any], None]:
            def strip(column: Any, count: Any) -> None:
                start = builder.add(address, builder.mul(column, i64(f.bits // 8)))

                def load(row: Any, v: int, few: Any) -> Any:
                    offset = builder.mul(row, row_step)
                    offset = builder.add(offset, i64(v * f.count * f.bits // 8))
                    place = _pointer(builder, start, offset)
                    _prefetch(builder, builder.gep(place, [ahead]), level)
                    return _load_row(builder, f, place, few)

                lanes = [builder.add(column, i64(v * f.count)) for v in range(vectors)]
                places = [_pieces(context, builder, f, at, gap, lane) for lane in lanes]
                states = [_start(builder, f, fresh, some) for some in places]
                # Not narrow: LLVM would keep fewer states in registers (1.1 of the time, 1.15 if fold_few did it, too).
                _fold_down(context, builder, f, rule, states, states, rows, load, count)
                for some, state in zip(places, states, strict=True):
                    _stored(builder, some, [builder.load(variable) for variable in state])

            return strip

        together = i64(DOWN_VECTORS * f.count)
        several = builder.and_(columns, builder.neg(together))
        with cgutils.for_range_slice(builder, i64(0), several, together, i64) as (column, _):
            down(DOWN_VECTORS)(column, None)
        single, rest = down(1), builder.sub(columns, several)
        _strips(builder, f.count, rest, lambda c, count: single(builder.add(several, c), count))
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64, i64), codegen


@intrinsic
def fold_planes(_context: Any, fold: Any, rule: Any, at: Any, gap: Any, planes: Any) -> Any:
    """Fold the rows of SmallPlanes into a state for each column.

    Those of a plane stand behind those of the one before. Whole vectors of states are stored.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, packed = values
        f = fold.fold
        planes = SmallPlanes(*cgutils.unpack_tuple(builder, packed))
        rule = _rule_of(builder, f, rule)

        def planes_of(rows: Any) -> None:
            def strip(plane: Any, column: Any, _few: Any, load: Callable[[Any], Any]) -> None:
                state = _folded_down(context, builder, f, rule, rows, load)
                lane = builder.add(builder.mul(plane, planes.columns), column)
                places = _places(builder, f, at, gap, lane, f.count)
                _stored(builder, places, state)

            _each_strip(context, builder, planes, ir.VectorType(f.element, f.count), strip)

        # Few rows of other folds go through reduce_planes.
        cases = WRITTEN_OUT if f.finished_apart else ()
        _cases(builder, planes.rows, cases, planes_of)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, planes), codegen
