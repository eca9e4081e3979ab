"""Softmax of many narrow rows, which are transposed: vectors have one position of as many rows as lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from axes import axis_entries, run_at
from compiled import helper
from float_lanes import (
    _float_lanes,
    _lanes_of,
    _lanes_vector,
    _memory,
    _rounded,
    exp_lanes,
    lane_count,
    minus,
    peek,
    poke,
    splat,
)
from float_math import LOWEST, _greater_float
from llvm import _const
from memory import VECTOR_BYTES, _load, _place, _pointer, _prefetch, _store, least, store_integer
from softmax_result import factors_of, sum_added
from transposing import _each_unit, _load_each, _of_vectors, _store_each, _unit

# A table has, for each row of a group, the bytes from the first row to it in the input, then those in the output.
TABLE_ENTRY = 16


def _row_units(builder: Any, address: Any, table: Any, rows: int, unit: Any) -> list[list[Any]]:
    """Pointers to units at `address`, and where that is in the other rows of a group; `table`: of either array."""
    i64 = address.type
    pointers = []
    for row in range(rows):
        offset = _load(builder, _pointer(builder, table, i64(row * TABLE_ENTRY)), i64)
        pointers.append(_pointer(builder, builder.add(address, offset)))
    return _of_vectors(pointers, unit.count)


@intrinsic
def _load_positions(
    _context: Any,
    kind: Any,
    target: Any,
    address: Any,
    table: Any,
    n: Any,
    ahead: Any,
    out: Any,
) -> Any:
    """Lanes of the n elements of each row of a group: in scratch a vector for each position.

    Returns the greatest of each row. Meanwhile as many bytes are fetched from `ahead` bytes further on, and from `out`:
    of rows that adjoin those that come next, and those of the results.
    """
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, target, address, table, n, ahead, out = values
        i64 = n.type
        size = kind.bitwidth // 8
        lowest = _const(_lanes_vector(lanes), LOWEST[lanes.element.bitwidth])
        tops = cgutils.alloca_once_value(builder, lowest)

        def load(first: Any, unit: Any) -> None:
            for place, write in ((builder.add(address, ahead), 0), (out, 1)):
                lines = _place(builder, place, (first, i64(lanes.count * size)))
                for at in range(0, unit.count * lanes.count * size, VECTOR_BYTES):
                    _prefetch(builder, builder.gep(lines, [i64(at)]), 1, write)
            start = builder.add(address, builder.mul(first, i64(size)))
            units = _row_units(builder, start, table, lanes.count, unit)
            for i, bits in enumerate(_load_each(builder, units, unit)):
                value = _float_lanes(context, builder, kind, bits)
                builder.store(_greater_float(builder, builder.load(tops), value), tops)
                place = _place(builder, target, (builder.add(first, i64(i)), i64(VECTOR_BYTES)))
                _store(builder, value, place)

        _each_unit(builder, n, _unit(_memory(kind, lanes)), 2, load)
        return builder.load(tops)

    return lanes(kind, *(types.int64,) * 6), codegen


@intrinsic
def _store_positions(
    _context: Any,
    kind: Any,
    source: Any,
    address: Any,
    table: Any,
    n: Any,
    factors: Any,
    logarithm: Any,
) -> Any:
    """Store what _load_positions loads: of lanes in scratch times `factors`, or, of logarithms, minus these."""
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, source, address, table, n, factors, logarithm = values
        i64 = n.type

        def element(number: Any) -> Any:
            place = _place(builder, source, (number, i64(VECTOR_BYTES)))
            value = _load(builder, place, _lanes_vector(lanes))
            result = builder.select(
                logarithm, builder.fsub(value, factors), builder.fmul(value, factors)
            )
            return _rounded(context, builder, kind, result)

        def store(first: Any, unit: Any) -> None:
            vectors = [element(builder.add(first, i64(i))) for i in range(unit.count)]
            start = builder.add(address, builder.mul(first, i64(kind.bitwidth // 8)))
            out_table = builder.add(table, i64(TABLE_ENTRY // 2))
            units = _row_units(builder, start, out_table, lanes.count, unit)
            _store_each(builder, vectors, units)

        _each_unit(builder, n, _unit(_memory(kind, lanes)), 2, store)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(kind, i64, i64, i64, i64, factors, types.boolean), codegen


@helper
def set_row(table, row, offset, out_offset):
    """Set where a row of a group begins."""
    store_integer(np.int64(0), table + row * TABLE_ENTRY, offset)
    store_integer(np.int64(0), table + row * TABLE_ENTRY + TABLE_ENTRY // 2, out_offset)


@helper
def table_rows(table, rows, axes, first, end):
    """Table a group's rows, which are of several runs, from `first` on; those behind the last repeat it."""
    _, step, out_step = axis_entries(axes, axes.rank - 1)
    begin, out_begin, _ = run_at(axes, first, end)
    row = 0
    while row < rows:
        offset, out_offset, count = run_at(axes, least(first + row, end - 1), end)
        for i in range(least(count, rows - row)):
            set_row(table, row, offset - begin + i * step, out_offset - out_begin + i * out_step)
            row += 1


@helper
def transposed_groups(kind, x, step, ahead, out, out_step, table, groups, n, scratch, logarithm):
    """So many groups, of as many rows of n elements as a vector has lanes, from `x` and `out` on.

    From one group to the next there are so many times `step` and `out_step` bytes. In `scratch` each position has a
    vector.
    """
    lanes = lane_count(kind)
    for _ in range(groups):
        tops = _load_positions(kind, scratch, x, table, n, ahead, out)
        high, low = splat(kind, 0.0), splat(kind, 0.0)
        for place in range(scratch, scratch + n * VECTOR_BYTES, VECTOR_BYTES):
            below = minus(peek(kind, place), tops)
            e = exp_lanes(kind, below)
            # With their rounding errors: logarithms near 0 are what is beside 1 in the sum.
            high, low = sum_added(high, low, e)
            poke(place, below if logarithm else e)
        factors = factors_of(kind, high, low, logarithm)
        _store_positions(kind, scratch, out, table, n, factors, logarithm)
        x += lanes * step
        out += lanes * out_step
