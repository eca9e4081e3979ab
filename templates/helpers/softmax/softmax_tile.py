"""Softmax of a tile of columns: it is measured, and written, rows by rows."""

from __future__ import annotations

import math

import numpy as np

from axes import axis_entries, run_at
from compiled import helper, inlined
from float_lanes import (
    MEASURED_ROWS,
    exceed,
    exp_lanes,
    exp_rows,
    get_lane,
    greater,
    greatest,
    greatest_rows,
    lane_count,
    lane_kind,
    load_double,
    load_lanes,
    load_rows,
    lowest,
    minus,
    peek,
    plus,
    poke,
    prefetch_rows,
    set_lane,
    splat,
    store_double,
    store_lanes,
    times,
    total,
    where_less,
)
from float_math import EXP_SCALE
from memory import VECTOR_BYTES, element_size, least, store_integer
from softmax_result import factor_of, factors_of, sum_added, write_run
from walk import integers

LEAD_ROWS = 8  # of a tile, fetched ahead of those that are measured,
WRITE_LEAD_ROWS = 4  # or written


@inlined
def table_rows_of_tile(axes, table, tabled, position, till):
    """Table the offsets of rows from `position` to `till`, in the input and in the output, if others are `tabled`.

    The position that is tabled then.
    """
    if tabled == position:
        return tabled
    _, step, out_step = axis_entries(axes, axes.rank - 1)
    row = position
    while row < till:
        offset, out_offset, count = run_at(axes, row, till)
        for _ in range(count):
            store_integer(np.int64(0), table, offset)
            store_integer(np.int64(0), table + 8, out_offset)
            table += 16
            offset += step
            out_offset += out_step
        row += count
    return position


@inlined
def _scale(kind, top, higher):
    """By what sums below `top` are multiplied to be sums below a higher one."""
    return times(exp_lanes(kind, minus(top, higher)), splat(kind, 1 / EXP_SCALE))


@helper
def _fold(kind, state, gap, address, offsets, vectors):
    """Count MEASURED_ROWS rows of contiguous columns in the tops and sums of these, which are at `state`.

    Each element is loaded once: twice as fast as to find the greatest first. Nor does anything wait for it: only what
    is more than 1 above the top takes its place (1.1 times as fast).
    """
    for _ in range(vectors):
        rows = load_rows(kind, address, offsets)
        prefetch_rows(address, offsets + 16 * LEAD_ROWS)
        high_at = state + gap
        low_at = high_at + gap
        top = peek(kind, state)
        highest = greatest_rows(rows, top)
        high, low = peek(kind, high_at), peek(kind, low_at)
        if exceed(highest, top):
            # Each column for itself: its bits do not depend on those beside it.
            highest = where_less(plus(top, splat(kind, 1.0)), highest, highest, top)
            scale = _scale(kind, top, highest)
            high = times(high, scale)
            low = times(low, scale)
            top = highest
            poke(state, top)
        high, low = sum_added(high, low, exp_rows(kind, rows, top))
        poke(high_at, high)
        poke(low_at, low)
        state += VECTOR_BYTES
        address += lane_count(kind) * element_size(kind)


@helper
def _fold_copies(kind, state, gap, x, step, offsets, rows, count, spare):
    """As _fold, for `count` columns, less than a vector or `step` bytes apart: copied first.

    Of at most MEASURED_ROWS rows. At `spare` there are MEASURED_ROWS vectors and the table of their offsets.
    """
    size, lanes = element_size(kind), lane_count(kind)
    for r in range(MEASURED_ROWS):
        value = splat(kind, -math.inf)
        row = x + integers(offsets)[2 * r]
        if r < rows and step == size:
            value = load_lanes(kind, row, None, count)
        elif r < rows and count == lanes:
            value = load_lanes(kind, row, step, None)
        elif r < rows:
            value = load_lanes(kind, row, step, count)
        store_lanes(kind, spare + r * lanes * size, None, None, value)
    _fold(kind, state, gap, spare, spare + MEASURED_ROWS * VECTOR_BYTES, 1)


@helper
def measure_block(kind, state, gap, tile, step, table, rows, spare):
    """Count tabled rows of a tile in the tops and sums at `state`; see _fold."""
    columns = tile.columns
    lanes = lane_count(kind)
    lane_bytes = VECTOR_BYTES // lanes
    for r in range(0, rows, MEASURED_ROWS):
        here = table + 16 * r
        left = rows - r
        c = 0
        while c < columns:
            at = state + c * lane_bytes
            first = tile.x + c * step
            count = least(lanes, columns - c)
            if step == element_size(kind) and left >= MEASURED_ROWS and count == lanes:
                vectors = (columns - c) // lanes
                _fold(kind, at, gap, first, here, vectors)
                c += vectors * lanes
            else:
                _fold_copies(kind, at, gap, first, step, here, left, count, spare)
                c += count


@helper
def join_copies(kind, state, gap, columns, copies):
    """Columns that are measured in `copies` parts, which lie behind one another, are joined in the first part."""
    copy_bytes = columns * (VECTOR_BYTES // lane_count(kind))
    for at in range(state, state + copy_bytes, VECTOR_BYTES):
        top = peek(kind, at)
        for part in range(1, copies):
            top = greater(top, peek(kind, at + part * copy_bytes))
        high = splat(kind, 0.0)
        low = splat(kind, 0.0)
        for part in range(copies):
            place = at + part * copy_bytes
            scale = _scale(kind, peek(kind, place), top)
            low = plus(low, times(peek(kind, place + 2 * gap), scale))
            high, low = sum_added(high, low, times(peek(kind, place + gap), scale))
        poke(at, top)
        poke(at + gap, high)
        poke(at + 2 * gap, low)


@helper
def _join_run(kind, begin, end, gap):
    """The top and the sum of adjoining columns that are one group, whose tops are at `begin` to `end`."""
    one_lane = lane_kind(kind)
    lanes = lane_count(kind)
    lane_bytes = VECTOR_BYTES // lanes
    lowest_tops, zeros = splat(kind, lowest(kind)), splat(kind, 0.0)
    tops = lowest_tops
    for at in range(begin, end, VECTOR_BYTES):
        count = least(lanes, (end - at) // lane_bytes)
        tops = greater(tops, load_lanes(one_lane, at, None, count))
    top = greatest(kind, tops)
    tops = splat(kind, top)
    high, low = zeros, zeros
    for at in range(begin, end, VECTOR_BYTES):
        count = least(lanes, (end - at) // lane_bytes)
        own = load_lanes(one_lane, at, None, count)
        scale = _scale(kind, own, tops)
        more = times(load_lanes(one_lane, at + gap, None, count), scale)
        lost = times(load_lanes(one_lane, at + 2 * gap, None, count), scale)
        # Lanes behind the run are -inf.
        low = plus(low, where_less(own, lowest_tops, zeros, lost))
        high, low = sum_added(high, low, where_less(own, lowest_tops, zeros, more))
    return top, total(high) + total(low)


@helper
def _fill_run(kind, begin, end, gap, top, factor):
    """The group's top and factor in all lanes of its columns."""
    one_lane = lane_kind(kind)
    lanes = lane_count(kind)
    lane_bytes = VECTOR_BYTES // lanes
    tops, factors = splat(kind, top), splat(kind, factor)
    for at in range(begin, end, VECTOR_BYTES):
        count = least(lanes, (end - at) // lane_bytes)
        store_lanes(one_lane, at, None, count, tops)
        store_lanes(one_lane, at + gap, None, count, factors)


@helper
def set_factors_of_runs(kind, state, gap, columns, run, logarithm):
    """As set_factors, of columns of which each `run` adjoining ones are one group."""
    lane_bytes = VECTOR_BYTES // lane_count(kind)
    for begin in range(state, state + columns * lane_bytes, run * lane_bytes):
        end = begin + run * lane_bytes
        top, added = _join_run(kind, begin, end, gap)
        _fill_run(kind, begin, end, gap, top, factor_of(added, logarithm))


@helper
def save_runs(kind, state, gap, pairs, step, columns, run):
    """As save_columns, of columns of which each `run` adjoining ones are one group."""
    lane_bytes = VECTOR_BYTES // lane_count(kind)
    for begin in range(state, state + columns * lane_bytes, run * lane_bytes):
        top, added = _join_run(kind, begin, begin + run * lane_bytes, gap)
        store_double(pairs, 0, top)
        store_double(pairs, 1, added)
        pairs += step


@helper
def restore_runs(kind, state, gap, pairs, step, columns, run):
    """As restore_columns, of columns of which each `run` adjoining ones are one group."""
    lane_bytes = VECTOR_BYTES // lane_count(kind)
    for begin in range(state, state + columns * lane_bytes, run * lane_bytes):
        end = begin + run * lane_bytes
        top, factor = load_double(pairs, 0), load_double(pairs, 1)
        _fill_run(kind, begin, end, gap, top, factor)
        pairs += step


@helper
def repeat_columns(kind, state, columns, copies):
    """Lanes of the first columns are copied behind them."""
    copy_bytes = columns * (VECTOR_BYTES // lane_count(kind))
    for part in range(1, copies):
        for at in range(state, state + copy_bytes, VECTOR_BYTES):
            poke(at + part * copy_bytes, peek(kind, at))


@helper
def clear_tile(kind, state, gap, columns):
    """Columns of which nothing is measured yet."""
    for at in range(state, state + columns * (VECTOR_BYTES // lane_count(kind)), VECTOR_BYTES):
        poke(at, splat(kind, lowest(kind)))
        poke(at + gap, splat(kind, 0.0))
        poke(at + 2 * gap, splat(kind, 0.0))


@helper
def set_factors(kind, state, gap, columns, logarithm):
    """The factors of columns take the place of their sums."""
    for at in range(state, state + columns * (VECTOR_BYTES // lane_count(kind)), VECTOR_BYTES):
        high, low = peek(kind, at + gap), peek(kind, at + 2 * gap)
        poke(at + gap, factors_of(kind, high, low, logarithm))


@helper
def save_columns(kind, state, gap, pairs, step, columns):
    """The top and the sum of each column are stored as a pair, `step` bytes apart."""
    for c in range(columns):
        store_double(pairs, 0, get_lane(kind, state, c))
        high, low = state + gap, state + 2 * gap
        store_double(pairs, 1, get_lane(kind, high, c) + get_lane(kind, low, c))
        pairs += step


@helper
def restore_columns(kind, state, gap, pairs, step, columns):
    """Tops and factors of columns, from pairs of them."""
    for c in range(columns):
        set_lane(kind, state, c, load_double(pairs, 0))
        set_lane(kind, state + gap, c, load_double(pairs, 1))
        pairs += step


@helper
def write_block(kind, source, past, tile, step, out_step, table, rows, tops, factors, ahead, later):
    """Results of tabled rows of a tile; what is fetched for each is the row tabled at `later`, from `ahead` on."""
    offsets, later_offsets = integers(table), integers(later)
    for r in range(rows):
        row, out_row = offsets[2 * r], offsets[2 * r + 1]
        out_later = offsets[2 * least(r + WRITE_LEAD_ROWS, rows - 1) + 1]
        write_run(
            kind,
            source,
            past,
            tile.x + row,
            step,
            tile.out + out_row,
            out_step,
            tile.columns,
            0,
            tops,
            factors,
            ahead + later_offsets[2 * r] - tile.x - row,
            out_later - out_row,
        )
