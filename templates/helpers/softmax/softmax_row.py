"""Softmax of one group at a time: it is measured block by block, and written."""

from __future__ import annotations

import math

from axes import AXIS_OTHER_STRIDE, AXIS_STRIDE, axis_entries, axis_entry, run_at
from compiled import inlined
from float_lanes import (
    exp_lanes,
    greater,
    greatest,
    lane_count,
    lane_kind,
    load_lanes,
    lowest,
    lowest_keys,
    minus,
    plus,
    poke,
    prefetch,
    splat,
    store_lanes,
    total,
)
from memory import VECTOR_BYTES, ceildiv, element_size, least
from softmax_result import STORED, sum_added, write_run
from softmax_short import greatest_keys

SUM_VECTORS = 64  # added in plain float; their sums are added with their rounding errors


@inlined
def _row_top(kind, axes, x, begin, end):
    """The greatest of positions begin to end of one group."""
    size, lanes = element_size(kind), lane_count(kind)
    step = axis_entry(axes, axes.rank - 1, AXIS_STRIDE)
    top, top_key = splat(kind, lowest(kind)), lowest_keys(kind)
    position = begin
    while position < end:
        offset, _, left = run_at(axes, position, end)
        address = x + offset
        position += left
        if step == size:
            top_key = greatest_keys(kind, address, left, top_key)
        else:
            for _ in range(left // lanes):
                top = greater(top, load_lanes(kind, address, step, None))
                address += lanes * step
            left %= lanes
            if left:
                top = greater(top, load_lanes(kind, address, step, left))
    return greatest(kind, top_key) if step == size else greatest(kind, top)


@inlined
def _row_sum(kind, axes, x, top, scratch, advance, begin, end, ahead):
    """Sum of exp(x - top) * EXP_SCALE over positions begin to end; each vector of it is left in `scratch`.

    Meanwhile what lies `ahead` bytes further is fetched.
    """
    size, lanes = element_size(kind), lane_count(kind)
    step = axis_entry(axes, axes.rank - 1, AXIS_STRIDE)
    tops = splat(kind, top)
    high = splat(kind, 0.0)
    low = splat(kind, 0.0)
    position = begin
    while position < end:
        offset, _, left = run_at(axes, position, least(end, position + SUM_VECTORS * lanes))
        address = x + offset
        position += left
        part = splat(kind, 0.0)
        if step == size:
            for _ in range(left // lanes):
                e = exp_lanes(kind, minus(load_lanes(kind, address, None, None), tops))
                poke(scratch, e)
                part = plus(part, e)
                prefetch(address + ahead, 1, 0)
                address += lanes * size
                scratch += advance
            left %= lanes
            if left:
                e = exp_lanes(kind, minus(load_lanes(kind, address, None, left), tops))
                store_lanes(lane_kind(kind), scratch, None, left, e)
                part = plus(part, e)
                scratch += advance
        else:
            for _ in range(left // lanes):
                e = exp_lanes(kind, minus(load_lanes(kind, address, step, None), tops))
                poke(scratch, e)
                part = plus(part, e)
                address += lanes * step
                scratch += advance
            left %= lanes
            if left:
                e = exp_lanes(kind, minus(load_lanes(kind, address, step, left), tops))
                poke(scratch, e)
                part = plus(part, e)
                scratch += advance
        high, low = sum_added(high, low, part)
    return total(high) + total(low)


@inlined
def measure_row(kind, axes, x, block, scratch, advance, begin, end, ahead):
    """(top, sum) of positions begin to end of one group, block by block; see _row_sum."""
    top, high, low = lowest(kind), 0.0, 0.0
    position = begin
    while position < end:  # a range would divide by its step
        till = least(position + block, end)
        higher = _row_top(kind, axes, x, position, till)
        if not higher <= top:
            if position > begin:
                scale = math.exp(top - higher)
                high *= scale
                low *= scale
            top = higher
        added = _row_sum(kind, axes, x, top, scratch, advance, position, till, ahead)
        whole = high + added
        low += added - (whole - high) if high >= added else high - (whole - added)
        high = whole
        position = till
    return top, high + low


@inlined
def write_row(kind, source, past, axes, x, out, top, factor, scratch, begin, end, after):
    """Results of positions begin to end of one group.

    `after`: bytes to where the next group's results begin, or 0 if they stay in the cache; for groups of one run.
    """
    lanes = lane_count(kind)
    tops, factors = splat(kind, top), splat(kind, factor)
    inner = axes.rank - 1
    _, step, out_step = axis_entries(axes, inner)
    # Stores to it would wait for its lines one by one (1.4 times as fast for runs of 784 float16).
    next_run = axis_entry(axes, inner - 1, AXIS_OTHER_STRIDE) if inner > 0 else after
    position = begin
    while position < end:
        offset, out_offset, left = run_at(axes, position, end)
        write_run(
            kind,
            source,
            past,
            x + offset,
            step,
            out + out_offset,
            out_step,
            left,
            scratch,
            tops,
            factors,
            None,
            next_run,
        )
        position += left
        if source == STORED:
            scratch += ceildiv(left, lanes) * VECTOR_BYTES
