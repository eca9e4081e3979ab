"""Outputs of the input's shape: a mark where the greatest element of a group stands, 0 elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from axes import AXIS_STRIDE, axis_entries, axis_entry, run_at, volume_of
from column_lanes import _place_down
from compiled import helper
from few_lanes import _few, _store_few
from few_vectors import _each_of_few
from loops import _cases, _rounds
from memory import (
    VECTOR_BYTES,
    _load,
    _pointer,
    _splat,
    _store,
    _stream,
    _vector,
    ceildiv,
    element_size,
    least,
    load_integer,
    store_element,
    store_integer,
)
from order_key import _rule
from planes import WRITTEN_OUT, SmallPlanes, _each_strip
from vectors import _unless
from zero import zero_past_caches, zero_run_past

# Rows that adjoin are taken as one up to about so many: 0.65 of the time of 20 columns.
MARKED_VECTORS = 8
MORE_PLACES = (MARKED_VECTORS + 1) * VECTOR_BYTES  # behind those of a row, see _mark_run


@intrinsic
def store_one_hot(_context: Any, address: Any, n: Any, place: Any, mark: Any, flip: Any) -> Any:
    """Store n elements of `flip`'s width, at most one vector: `mark` at `place`, 0 elsewhere."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, place, mark, flip = values
        vector = _vector(flip.type)
        bits = _marked(builder, ir.Constant(vector, list(range(vector.count))), place, mark)
        pointer = _pointer(builder, address)
        full = builder.icmp_signed("==", n, n.type(vector.count))
        with builder.if_else(full) as (then, otherwise):
            with then:
                _store(builder, bits, pointer)
            with otherwise:
                _store_few(builder, bits, pointer, _few(context, builder, vector, n))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, flip), codegen


@intrinsic
def store_one_hot_of_few(
    _context: Any, address: Any, n: Any, place: Any, mark: Any, flip: Any
) -> Any:
    """As store_one_hot, of 2 vectors to few_elements: 0.45 to 0.95 of the time."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, place, mark, flip = values
        vector = _vector(flip.type)
        numbers = ir.Constant(vector, list(range(vector.count)))

        def store(places: list[Any]) -> None:
            for first in places:
                bits = _marked(builder, numbers, builder.sub(place, first), mark)
                offset = builder.mul(first, n.type(flip.type.width // 8))
                _store(builder, bits, _pointer(builder, address, offset))

        _each_of_few(context, builder, n, vector, store)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, flip), codegen


@intrinsic
def _stream_one_hot(_context: Any, line: Any, place: Any, mark: Any, flip: Any) -> Any:
    """Store one cache line of elements of `flip`'s width past the caches: `mark` at `place`, 0 elsewhere."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        line, place, mark, flip = values
        vector = _vector(flip.type)
        numbers = ir.Constant(vector, list(range(vector.count)))
        bits = _marked(builder, numbers, place, mark)
        _stream(builder, bits, _pointer(builder, line), VECTOR_BYTES)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, flip), codegen


@intrinsic
def _mark_few(
    _context: Any, address: Any, n: Any, places: Any, number: Any, mark: Any, flip: Any
) -> Any:
    """Store n elements of `flip`'s width, at most a vector: `mark` where the place at `places` is `number`, else 0."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, places, number, mark, flip = values
        vector = _vector(flip.type)
        bits = _marked(builder, _load(builder, _pointer(builder, places), vector), number, mark)
        few = _few(context, builder, vector, n)
        _store_few(builder, bits, _pointer(builder, address), few)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, i64, flip), codegen


@intrinsic
def _mark_vectors(
    _context: Any,
    address: Any,
    count: Any,
    places: Any,
    number: Any,
    mark: Any,
    stream: Any,
    flip: Any,
) -> Any:
    """As _mark_few for `count` vectors; where they `stream` past the caches, `address` begins a cache line."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, count, places, number, mark, stream, flip = values
        vector = _vector(flip.type)
        i64 = count.type
        stop = builder.mul(count, i64(VECTOR_BYTES))
        with builder.if_else(stream) as branches:
            for branch, past in zip(branches, (True, False), strict=True):
                loop = cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64)
                with branch, loop as (offset, _):
                    found = _load(builder, _pointer(builder, places, offset), vector)
                    bits = _marked(builder, found, number, mark)
                    pointer = _pointer(builder, address, offset)
                    if past:
                        _stream(builder, bits, pointer, VECTOR_BYTES)
                    else:
                        _store(builder, bits, pointer)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, i64, types.boolean, flip), codegen


def _marked(builder: Any, places: Any, number: Any, mark: Any) -> Any:
    """`mark` in the lanes whose place is `number`, else 0."""
    vector = places.type
    if vector.element.width < 64:
        number = builder.trunc(number, vector.element)
        mark = builder.trunc(mark, vector.element)
    here = builder.icmp_signed("==", places, _splat(builder, number, vector))
    return builder.select(here, _splat(builder, mark, vector), ir.Constant(vector, None))


@intrinsic
def mark_planes(
    _context: Any,
    out: Any,
    out_step: Any,
    out_row_step: Any,
    last: Any,
    nan_is_0: Any,
    mark: Any,
    planes: Any,
    rule: Any,
) -> Any:
    """Store all elements of SmallPlanes: `mark` where the best of a column stands, 0 elsewhere.

    Planes are `out_step` bytes apart in the output, and their rows `out_row_step`. The first row visited is row 0 of
    the output, or its `last` one. If `nan_is_0`, the mark of a column of nothing but NaN stands in row 0.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        out, out_step, out_row_step, last, nan_is_0, mark = values[:6]
        planes = SmallPlanes(*cgutils.unpack_tuple(builder, values[6]))
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        i64 = planes.columns.type
        size = i64(vector.element.width // 8)
        bottom = builder.sub(planes.rows, i64(1))
        kept_of_nan = _unless(builder, nan_is_0, vector.element)
        first = builder.select(builder.and_(last, nan_is_0), bottom, i64(0))
        first = builder.trunc(first, vector.element) if vector.element.width < 64 else first

        def planes_of(rows: Any) -> None:
            def strip(plane: Any, column: Any, few: Any, load: Callable[[Any], Any]) -> None:
                best, places = _place_down(builder, rows, vector, rule, load)
                nan = builder.icmp_signed("==", best, _splat(builder, rule.nan_key, vector))
                place_if_nan = builder.and_(places, _splat(builder, kept_of_nan, vector))
                place_if_nan = builder.or_(place_if_nan, _splat(builder, first, vector))
                places = builder.select(nan, place_if_nan, places)
                target = builder.add(out, builder.mul(plane, out_step))
                target = builder.add(target, builder.mul(column, size))

                def store(row: Any) -> None:
                    number = builder.select(last, builder.sub(bottom, row), row)
                    bits = _marked(builder, places, number, mark)
                    place = _pointer(builder, target, builder.mul(row, out_row_step))
                    _store_few(builder, bits, place, few)

                _rounds(builder, rows, store)

            _each_strip(context, builder, planes, vector, strip)

        _cases(builder, planes.rows, WRITTEN_OUT, planes_of)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(i64, i64, i64, flag, flag, i64, planes, rule), codegen


@helper
def _mark_run(address, count, places, period, step, number, mark, past, flip):
    """Store `count` elements of rows that adjoin: `mark` where a column's place is the row's number, 0 elsewhere.

    The first row has the `number`. `step` rows, of `period` elements together, are compared as one: at `places`, in the
    elements' own width, stand the columns' places for the first of them, then less by 1 for each further row, so that
    all are compared with one number. They go on by a vector behind the period.
    """
    size = element_size(flip)
    lanes = VECTOR_BYTES // size
    before = -address % VECTOR_BYTES
    stream = past and before % size == 0
    column = least(before // size, count)  # a store across two cache lines takes twice as long
    if column > 0:
        _mark_few(address, column, places, number, mark, flip)
    left = count - column
    address += column * size
    while left > 0:
        while column >= period:
            column -= period
            number += step
        vectors = least(ceildiv(period - column, lanes), left // lanes)
        if vectors > 0:
            _mark_vectors(address, vectors, places + column * size, number, mark, stream, flip)
            elements = vectors * lanes
        else:
            _mark_few(address, left, places + column * size, number, mark, flip)
            elements = left
        address += elements * size
        column += elements
        left -= elements


@helper
def store_marked(zeros, out, places, columns, rows, mark, past, flip):
    """Store all elements of a tile's groups, of which `rows` rows adjoin."""
    size = element_size(flip)
    lanes = VECTOR_BYTES // size
    together = least(rows, ceildiv(MARKED_VECTORS * lanes, columns))
    period = together * columns
    for c in range(columns, period + lanes):  # see _mark_run
        place = load_integer(flip, places + (c - columns) * size)
        store_integer(flip, places + c * size, np.int64(place) - 1)
    _, step, weight = axis_entries(zeros, zeros.rank - 1)
    position = 0
    volume = volume_of(zeros)
    while position < volume:
        offset, index, count = run_at(zeros, position, volume)
        position += count
        for _ in range(count):
            _mark_run(
                out + offset, rows * columns, places, period, together, index, mark, past, flip
            )
            offset += step
            index += weight


@helper
def one_hot_run(address, count, place, mark, past, flip):
    """Store `count` elements that adjoin: `mark` at `place`, 0 elsewhere.

    Where they go past the caches, so does the line of the mark: stored afterwards, it would have to be read (0.5 to
    1 of the time).
    """
    size = element_size(flip)
    marked = address + place * size
    line = marked & -VECTOR_BYTES
    end = address + count * size
    if past and marked % size == 0 and line >= address and line + VECTOR_BYTES <= end:
        if line > address:
            zero_past_caches(address, line - address)
        _stream_one_hot(line, (marked - line) // size, mark, flip)
        if end > line + VECTOR_BYTES:
            zero_past_caches(line + VECTOR_BYTES, end - line - VECTOR_BYTES)
    else:
        zero_run_past(address, count, size, size, past)
        store_element(marked, mark, size)


@helper
def zero_positions(table, address, size, past, begin, end):
    """Set the elements, of `size` bytes, at positions begin to end of a row-major walk to 0."""
    step = axis_entry(table, table.rank - 1, AXIS_STRIDE)
    position = begin
    while position < end:
        offset, _, count = run_at(table, position, end)
        position += count
        zero_run_past(address + offset, count, step, size, past)
