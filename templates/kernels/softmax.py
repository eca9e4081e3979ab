# mypy: allow-untyped-defs, no-check-untyped-defs
"""Softmax and its logarithm over groups of elements, for any float type and layout.

Addresses are raw and strides are in bytes, so that only the element's type makes a new compiled version; `kind` is a
number that tells it (see below). A group is measured (its greatest element `top`, or one at most 1 below it; the sum of
exp(x - top)), then written.

    walk     address of int64: the settings below, then the kept axes, then the reduced ones, as rows of
             (size, input stride, output stride), one each at least
    partial  address of float64: (top, sum) of each part of each group, where groups are split into parts;
             `combine` leaves (top, factor) in each group's first

`short_rows`, `narrow_rows`, `rows`, `columns` and `planes` are apart: a call needs one of them, and less is compiled.
Helpers take addresses, no arrays: counting references to these took a quarter of a short row's time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from axes import AXIS_SIZE, Axes, axis_entries, axis_entry, run_at, two_tables, unravel
from compiled import entry, helper, inlined
from float_lanes import (
    MEASURED_ROWS,
    exp_lanes,
    greater,
    lane_count,
    load_double,
    load_lanes,
    lowest,
    minus,
    peek,
    plus,
    poke,
    prefetch,
    splat,
    store_double,
    store_lanes,
    times,
)
from memory import (
    VECTOR_BYTES,
    allocate,
    ceildiv,
    drain_stores,
    element_size,
    least,
    most,
    release,
    split,
    store_integer,
)
from planes import WRITTEN_OUT, columns_before, planes_ahead
from softmax_narrow import TABLE_ENTRY, set_row, table_rows, transposed_groups
from softmax_result import (
    COMPUTED,
    LOGARITHMS,
    STORED,
    factor_of,
    factors_of,
    results_of,
    sum_added,
)
from softmax_row import measure_row, write_row
from softmax_short import TOGETHER, several_rows
from softmax_tile import (
    LEAD_ROWS,
    WRITE_LEAD_ROWS,
    clear_tile,
    join_copies,
    measure_block,
    repeat_columns,
    restore_columns,
    restore_runs,
    save_columns,
    save_runs,
    set_factors,
    set_factors_of_runs,
    table_rows_of_tile,
    write_block,
)
from target import row_ahead
from walk import integers

LOGARITHM = 0  # of the probability
PHASE = 1  # WHOLE, MEASURE or WRITE
PARTS = 2  # parts that each group is split into
BLOCK = 3  # elements (`rows`) or rows of a tile (`columns`) that are measured together
TILE = 4  # `columns`: columns taken together
KEPT_RANK = 5  # axes of each table
REDUCED_RANK = 6
TOTAL = 7  # elements of a group
PAST = 8  # whether results go past the cache
NEAR = 9  # `columns`: whether a tile stays in cache
COPIES = 10  # `columns`: rows of so few columns that so many of them are taken as one
IN_PLACE = 11  # `rows`: exponentials are kept where results go
LAST_COLUMNS = 12  # `planes`: columns of the last of those that one is cut into; others have the innermost kept axis
RUN = 13  # `columns`: adjoining columns that are one group
SETTINGS = 14

WHOLE = 0
MEASURE = 1
WRITE = 2

# Elements, from and to, of rows that are transposed, as many of them as a vector has lanes: 0.3 to 0.95 of the time, of
# 7 and 8 float64 1.2 to 1.5 times; of 29 to 32 float32, nearly two whole vectors, it would be 1.0 to 1.1 times.
NARROW = {"FLOAT16": (2, 32), "BFLOAT16": (2, 32), "FLOAT32": (2, 28), "FLOAT64": (2, 8)}

L1_BYTES = 1 << 15  # of what is worked on together

_KINDS = {
    "FLOAT16": np.int16(0),
    "BFLOAT16": np.uint16(0),
    "FLOAT32": np.float32(0),
    "FLOAT64": np.float64(0),
}


def short_rows(dtype):
    """Chunk of groups that are each one contiguous run of at most SUM_VECTORS vectors, and not narrow."""
    kind = _KINDS[dtype]

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        settings, kept, _reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        lanes = lane_count(kind)
        logarithm = settings[LOGARITHM] != 0
        _, step, out_step = axis_entries(kept, kept.rank - 1)
        n = settings[TOTAL]
        # Input, output and exponentials of rows that are computed together stay in L1 (0.8 to 1 of the time).
        row_bytes = 2 * n * element_size(kind) + (n // lanes + 1) * VECTOR_BYTES
        together = TOGETHER if n <= TOGETHER * lanes else 4
        while together > 2 and together * row_bytes > L1_BYTES:
            together //= 2
        ahead = row_ahead(step)
        vectors = 2 * TOGETHER + TOGETHER // 4 + together * (n // lanes + 1)
        scratch = allocate(vectors * VECTOR_BYTES)
        for r in range(TOGETHER):  # sums of rows that are not there
            poke(scratch + r * VECTOR_BYTES, splat(kind, 0.0))
        item = begin
        while item < end:
            offset, out_offset, count = run_at(kept, item, end)
            address, target = x + offset, out + out_offset
            item += count
            for row in range(0, count, together):
                several_rows(
                    kind,
                    address + row * step,
                    step,
                    ahead,
                    target + row * out_step,
                    out_step,
                    least(together, count - row),
                    n,
                    scratch,
                    logarithm,
                )
        release(scratch)

    return chunk


def narrow_rows(dtype):
    """Chunk of groups that are each one contiguous run of so few elements that they are transposed: see NARROW."""
    kind = _KINDS[dtype]

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        settings, kept, _reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        lanes = lane_count(kind)
        logarithm = settings[LOGARITHM] != 0
        _, step, out_step = axis_entries(kept, kept.rank - 1)
        n = settings[TOTAL]
        ahead = most(row_ahead(step), lanes * step)
        scratch = allocate(n * VECTOR_BYTES + lanes * TABLE_ENTRY)
        table = scratch + n * VECTOR_BYTES
        tabled = False  # rows of one run
        item = begin
        while item < end:
            offset, out_offset, count = run_at(kept, item, end)
            groups = count // lanes
            if groups == 0:
                groups, tabled = 1, False
                table_rows(table, lanes, kept, item, end)
            elif not tabled:
                tabled = True
                for r in range(lanes):
                    set_row(table, r, r * step, r * out_step)
            # Here alone, so that the same code gives each row's bits, whatever rows are beside it.
            transposed_groups(
                kind,
                x + offset,
                step,
                ahead,
                out + out_offset,
                out_step,
                table,
                groups,
                n,
                scratch,
                logarithm,
            )
            item += groups * lanes
        release(scratch)

    return chunk


def rows(dtype):
    """Chunk with lanes along the innermost reduced axis; an item is a part of a group."""
    kind = _KINDS[dtype]

    @entry
    def chunk(walk, x, out, partial, begin, end):
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        past = settings[PAST] != 0
        phase, parts, block, n = settings[PHASE], settings[PARTS], settings[BLOCK], settings[TOTAL]
        logarithm = settings[LOGARITHM] != 0
        share = ceildiv(n, parts)
        stored = parts == 1 and n <= block and not logarithm
        source = STORED if stored else LOGARITHMS if logarithm else COMPUTED
        advance = VECTOR_BYTES if stored else 0
        in_place = settings[IN_PLACE] != 0
        vectors = 1
        if stored and not in_place:
            # Each run ends in a vector of its own.
            run, lanes = axis_entry(reduced, reduced.rank - 1, AXIS_SIZE), lane_count(kind)
            vectors = n // run * ceildiv(run, lanes)
        scratch = allocate(vectors * VECTOR_BYTES)
        for item in range(begin, end):
            group, first = split(item, parts)
            first *= share
            stop = least(first + share, n)
            offset, out_offset = unravel(kept, kept.rank, group)
            start, target = x + offset, out + out_offset
            powers = target if in_place else scratch
            if phase == WRITE:
                top = load_double(partial, 2 * group * parts)
                factor = load_double(partial, 2 * group * parts + 1)
            else:
                # What is fetched meanwhile: the next block, or group (1.2 times as fast where it lies in runs).
                ahead = block * element_size(kind)
                if n <= block:
                    ahead = unravel(kept, kept.rank, group + 1)[0] - offset
                top, added = measure_row(
                    kind, reduced, start, block, powers, advance, first, stop, ahead
                )
                if phase == MEASURE:
                    store_double(partial, 2 * item, top)
                    store_double(partial, 2 * item + 1, added)
                    continue
                factor = factor_of(added, logarithm)
            after = unravel(kept, kept.rank, group + 1)[1] - out_offset if past else 0
            write_row(
                kind,
                source,
                past,
                reduced,
                start,
                target,
                top,
                factor,
                powers,
                first,
                stop,
                after,
            )
        if past:
            drain_stores()
        release(scratch)

    return chunk


class Tile(NamedTuple):
    """Columns that are computed together."""

    x: int  # where the first of them begins
    out: int
    columns: int
    group: int  # the first of the groups that they are, or that they are copies of


@inlined
def _tile_at(settings, kept, x, out, item):
    """A tile by its number."""
    tile = settings[TILE]
    inner = kept.rank - 1
    across, step, out_step = axis_entries(kept, inner)
    outer, number = split(item, ceildiv(across, tile))
    offset, out_offset = unravel(kept, inner, outer)
    first = number * tile
    return Tile(
        x=x + offset + first * step,
        out=out + out_offset + first * out_step,
        columns=least(tile, across - first),
        group=(outer * (across // settings[COPIES]) + first) // settings[RUN],
    )


def columns(dtype):
    """Chunk with lanes along the innermost kept axis, row by row; an item is a part of a tile of groups.

    In scratch each column has three lanes, `gap` bytes from one to the next: at `state` its top, then its sum, which
    later becomes its factor, then the sum's rounding errors.
    """
    kind = _KINDS[dtype]

    @entry
    def chunk(walk, x, out, partial, begin, end):
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        lanes = lane_count(kind)
        phase, parts, block, n = settings[PHASE], settings[PARTS], settings[BLOCK], settings[TOTAL]
        logarithm, past = settings[LOGARITHM] != 0, settings[PAST] != 0
        copies, run = settings[COPIES], settings[RUN]
        _, step, out_step = axis_entries(kept, kept.rank - 1)
        share = ceildiv(n, parts)
        source = LOGARITHMS if logarithm else COMPUTED
        gap = (settings[TILE] // lanes + 3) * VECTOR_BYTES
        spare_bytes = MEASURED_ROWS * VECTOR_BYTES + 16 * (MEASURED_ROWS + LEAD_ROWS)
        table_bytes = 16 * (least(n, block) + LEAD_ROWS)
        spare = allocate(spare_bytes + 3 * gap + table_bytes)
        for r in range(MEASURED_ROWS + LEAD_ROWS):
            row = spare + MEASURED_ROWS * VECTOR_BYTES + 16 * r
            store_integer(np.int64(0), row, r * lanes * element_size(kind))
        state = spare + spare_bytes
        table = state + 3 * gap  # offsets of a block of rows, and of LEAD_ROWS behind it
        tabled = -1
        for item in range(begin, end):
            number, part = split(item, parts)
            tile = _tile_at(settings, kept, x, out, number)
            groups = tile.columns // copies
            pairs = partial + 16 * tile.group * parts
            first = part * share
            stop = least(first + share, n)
            if phase == WRITE:
                if run > 1:
                    restore_runs(kind, state, gap, pairs, 16 * parts, tile.columns, run)
                else:
                    restore_columns(kind, state, gap, pairs, 16 * parts, groups)
            else:
                clear_tile(kind, state, gap, tile.columns)
                for position in range(first, stop, block):
                    till = least(position + block + LEAD_ROWS, stop)
                    tabled = table_rows_of_tile(reduced, table, tabled, position, till)
                    rows = least(block, stop - position)
                    measure_block(kind, state, gap, tile, step, table, rows, spare)
                if copies > 1:
                    join_copies(kind, state, gap, groups, copies)
                if phase == MEASURE:
                    pairs += 16 * part
                    if run > 1:
                        save_runs(kind, state, gap, pairs, 16 * parts, tile.columns, run)
                    else:
                        save_columns(kind, state, gap, pairs, 16 * parts, groups)
                    continue
                if run > 1:
                    set_factors_of_runs(kind, state, gap, tile.columns, run, logarithm)
                else:
                    set_factors(kind, state, gap, tile.columns, logarithm)
            if copies > 1:
                repeat_columns(kind, state, groups, copies)
                repeat_columns(kind, state + gap, groups, copies)
            # What is fetched meanwhile: the next tile, or rows of this one that the cache did not hold.
            ahead, later = tile.x, table + 16 * WRITE_LEAD_ROWS
            if settings[NEAR] != 0:
                ahead, later = _tile_at(settings, kept, x, out, number + 1).x, table
            for position in range(first, stop, block):
                till = least(position + block + LEAD_ROWS, stop)
                tabled = table_rows_of_tile(reduced, table, tabled, position, till)
                rows = least(block, stop - position)
                write_block(
                    kind,
                    source,
                    past,
                    tile,
                    step,
                    out_step,
                    table,
                    rows,
                    state,
                    state + gap,
                    ahead,
                    later,
                )
        if past:
            drain_stores()
        release(spare)

    return chunk


class RowSteps(NamedTuple):
    """Bytes from one row of a plane to the next, and from a row to what is fetched meanwhile."""

    step: int
    ahead: int
    out_step: int
    out_ahead: int


@inlined
def _down(kind, x, out, steps, rows, n, scratch, logarithm):
    """Results of a vector of adjoining columns, or of its first `n`, if that is not None, down all rows of a plane.

    The exponentials are left in `scratch`.
    """
    zeros = splat(kind, 0.0)
    tops = splat(kind, lowest(kind))
    row = x
    for _ in range(rows):
        tops = greater(tops, load_lanes(kind, row, None, n))
        prefetch(row + steps.ahead, 1, 0)
        row += steps.step
    high, low = zeros, zeros
    row, target, powers = x, out, scratch
    for first in range(0, rows, MEASURED_ROWS):
        part = zeros
        for _ in range(least(MEASURED_ROWS, rows - first)):
            e = exp_lanes(kind, minus(load_lanes(kind, row, None, n), tops))
            poke(powers, e)
            part = plus(part, e)
            prefetch(target + steps.out_ahead, 1, 1)
            row += steps.step
            target += steps.out_step
            powers += VECTOR_BYTES
        high, low = sum_added(high, low, part)
    factors = factors_of(kind, high, low, logarithm)
    row, target, powers = x, out, scratch
    for _ in range(rows):
        if logarithm:
            value = results_of(LOGARITHMS, kind, load_lanes(kind, row, None, n), tops, factors)
        else:
            value = times(peek(kind, powers), factors)
        store_lanes(kind, target, None, n, value)
        row += steps.step
        target += steps.out_step
        powers += VECTOR_BYTES


@helper
def _down_rows(kind, x, out, steps, rows, n, scratch, logarithm):
    """As _down, compiled once for each type of `n`."""
    _down(kind, x, out, steps, rows, n, scratch, logarithm)


@inlined
def _down_each(kind, x, out, steps, rows, vectors, scratch, logarithm):
    """As _down, of so many whole vectors side by side."""
    for _ in range(vectors):
        _down(kind, x, out, steps, rows, None, scratch, logarithm)
        x += lane_count(kind) * element_size(kind)
        out += lane_count(kind) * element_size(kind)


@helper
def _down_few(kind, x, out, steps, rows, vectors, scratch, logarithm):
    """As _down_each, of so few rows that no loop is needed over them: one of WRITTEN_OUT."""
    if rows == 2:
        _down_each(kind, x, out, steps, 2, vectors, scratch, logarithm)
    elif rows == 3:
        _down_each(kind, x, out, steps, 3, vectors, scratch, logarithm)
    elif rows == 4:
        _down_each(kind, x, out, steps, 4, vectors, scratch, logarithm)


def planes(dtype):
    """Chunk with lanes along the innermost kept axis, of small planes; an item is one, or a piece of a long one."""
    kind = _KINDS[dtype]

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        size, lanes = element_size(kind), lane_count(kind)
        logarithm = settings[LOGARITHM] != 0
        inner = kept.rank - 1
        columns = axis_entry(kept, inner, AXIS_SIZE)
        outer = Axes(kept.entries, inner)
        in_row, step, out_step = axis_entries(kept, inner - 1)
        rows, row_step, out_row_step = axis_entries(reduced, 0)
        few_rows = rows in WRITTEN_OUT
        further = planes_ahead(rows, columns * size)
        steps = RowSteps(row_step, further * step, out_row_step, further * out_step)
        scratch = allocate(rows * VECTOR_BYTES)
        item = begin
        while item < end:
            offset, out_offset, count = run_at(outer, item, end)
            start, target = x + offset, out + out_offset
            item += count
            last = columns_before(item, in_row, columns, settings[LAST_COLUMNS])
            for number in range(1, count + 1):
                some = last if number == count else columns
                tail = some % lanes
                body = (some - tail) * size
                if few_rows:
                    vectors = some // lanes
                    _down_few(kind, start, target, steps, rows, vectors, scratch, logarithm)
                else:
                    for at in range(0, body, lanes * size):
                        _down_rows(
                            kind, start + at, target + at, steps, rows, None, scratch, logarithm
                        )
                if tail:
                    at = body
                    _down_rows(kind, start + at, target + at, steps, rows, tail, scratch, logarithm)
                start += step
                target += out_step
        release(scratch)

    return chunk


@entry
def combine(walk, _x, _out, partial, begin, end):
    """Chunk that leaves the (top, factor) of each group at its first part; an item is a group."""
    settings = integers(walk)
    parts, logarithm = settings[PARTS], settings[LOGARITHM] != 0
    for group in range(begin, end):
        place = 2 * group * parts
        top = load_double(partial, place)
        for p in range(1, parts):
            top = max(top, load_double(partial, place + 2 * p))
        added = 0.0
        for p in range(parts):
            scale = math.exp(load_double(partial, place + 2 * p) - top)
            added += load_double(partial, place + 2 * p + 1) * scale
        store_double(partial, place, top)
        store_double(partial, place + 1, factor_of(added, logarithm))
