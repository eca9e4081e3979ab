"""Softmax of many narrow rows, which are transposed: vectors have one position of as many rows as lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

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
from float_math import LOWEST, _greater_float, _same
from memory import (
    VECTOR_BYTES,
    _lanes_from,
    _load,
    _prefetch,
    _store,
    item_size,
    least,
    load_integer,
    store_integer,
)
from softmax_result import _factors, _sum_added
from strips import _place
from transposing import _each_unit, _load_transposed, _transposed, _unit, _units


@intrinsic
def load_positions(
    _context: Any,
    kind: Any,
    target: Any,
    address: Any,
    step: Any,
    n: Any,
    ahead: Any,
    out: Any,
) -> Any:
    """Lanes of the n elements of as many rows as a vector has lanes: in scratch a vector for each position.

    Returns the greatest of each row. Meanwhile as many bytes are fetched from `ahead` bytes further on, and from `out`,
    where the results go.
    """
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, target, address, step, n, ahead, out = values
        unit = _unit(_memory(kind, lanes))
        i64 = n.type
        size = kind.bitwidth // 8
        lowest = _same(_lanes_vector(lanes), LOWEST[lanes.element.bitwidth])
        tops = cgutils.alloca_once_value(builder, lowest)

        def load(first: Any) -> None:
            # As many bytes as these elements of all rows have: which ones does not matter.
            for place, write in ((builder.add(address, ahead), 0), (out, 1)):
                lines = _place(builder, place, (first, i64(lanes.count * size)))
                for at in range(0, unit.count * lanes.count * size, VECTOR_BYTES):
                    _prefetch(builder, builder.gep(lines, [i64(at)]), 1, write)
            start = builder.add(address, builder.mul(first, i64(size)))
            for i, bits in enumerate(_load_transposed(builder, start, step, unit)):
                value = _float_lanes(context, builder, kind, bits)
                builder.store(_greater_float(builder, builder.load(tops), value), tops)
                place = _place(builder, target, (builder.add(first, i64(i)), i64(VECTOR_BYTES)))
                _store(builder, value, place)

        _each_unit(builder, n, unit, load)
        return builder.load(tops)

    return lanes(kind, *(types.int64,) * 6), codegen


@intrinsic
def store_positions(
    _context: Any,
    kind: Any,
    source: Any,
    address: Any,
    step: Any,
    n: Any,
    factors: Any,
    logarithm: Any,
) -> Any:
    """Store what load_positions loads: of lanes in scratch times `factors`, or, of logarithms, minus these."""
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, source, address, step, n, factors, logarithm = values
        unit = _unit(_memory(kind, lanes))
        i64 = n.type

        def element(number: Any) -> Any:
            place = _place(builder, source, (number, i64(VECTOR_BYTES)))
            value = _load(builder, place, _lanes_vector(lanes))
            result = builder.select(
                logarithm, builder.fsub(value, factors), builder.fmul(value, factors)
            )
            return _rounded(context, builder, kind, result)

        def store(first: Any) -> None:
            vectors = [element(builder.add(first, i64(i))) for i in range(unit.count)]
            start = builder.add(address, builder.mul(first, i64(kind.bitwidth // 8)))
            units = _units(builder, start, step, unit.count)
            for bits, pointers in zip(_transposed(builder, vectors), units, strict=True):
                for u, pointer in enumerate(pointers):
                    _store(builder, _lanes_from(builder, bits, u * unit.count, unit.count), pointer)

        _each_unit(builder, n, unit, store)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(kind, i64, i64, i64, i64, factors, types.boolean), codegen


@helper
def transposed_groups(kind, x, step, ahead, out, out_step, groups, n, scratch, logarithm):
    """So many times as many rows as a vector has lanes; see transposed_rows."""
    lanes = lane_count(kind)
    for _ in range(groups):
        tops = load_positions(kind, scratch, x, step, n, ahead, out)
        high, low = splat(kind, 0.0), splat(kind, 0.0)
        for place in range(scratch, scratch + n * VECTOR_BYTES, VECTOR_BYTES):
            below = minus(peek(kind, place), tops)
            e = exp_lanes(kind, below)
            high, low = _sum_added(high, low, e)
            poke(place, below if logarithm else e)
        factors = _factors(kind, high, low, logarithm)
        store_positions(kind, scratch, out, out_step, n, factors, logarithm)
        x += lanes * step
        out += lanes * out_step


@helper
def copy_row(kind, target, source, n):
    """Copy n elements that adjoin."""
    bits = np.int16(0)
    for at in range(0, n * item_size(kind), 2):
        store_integer(bits, target + at, load_integer(bits, source + at))


@helper
def transposed_rows(kind, x, step, ahead, out, out_step, rows, n, scratch, logarithm):
    """Rows of n elements that adjoin; what lies `ahead` bytes further is fetched.

    Those left over are copied, so that each row has the same bits, whatever rows are beside it. `scratch` holds n
    vectors, then as many rows as a vector has lanes.
    """
    lanes, row_bytes = lane_count(kind), n * item_size(kind)
    groups, left = divmod(rows, lanes)
    transposed_groups(kind, x, step, ahead, out, out_step, groups, n, scratch, logarithm)
    if left == 0:
        return
    x += (rows - left) * step
    out += (rows - left) * out_step
    copies = scratch + n * VECTOR_BYTES
    for r in range(lanes):
        copy_row(kind, copies + r * row_bytes, x + least(r, left - 1) * step, n)
    transposed_groups(kind, copies, row_bytes, 0, copies, row_bytes, 1, n, scratch, logarithm)
    for r in range(left):
        copy_row(kind, out + r * out_step, copies + r * row_bytes, n)
