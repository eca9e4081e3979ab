"""The walk over the windows of a pooling, and over lines of their rows' ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import (
    BATCH_COLUMNS,
    BATCH_OTHER,
    BATCH_OUT,
    BATCH_SIZE,
    BATCH_STEP,
    BATCH_WEIGHT,
    offsets_of,
)
from compiled import entry, helper, inlined, separate
from doubling import double_lines, fold_window_rows
from memory import (
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    least,
    most,
    release,
    split,
    store_integer,
)
from pool_line import (
    Lines,
    Pieces,
    Planes,
    Rows,
    Scratch,
    clear_ranks,
    copy_rank,
    fold_line,
    rank_rows,
    rank_rows_apart,
)
from pool_settings import (
    BATCH,
    BUFFER,
    GAP_BYTES,
    LANE_OTHER,
    LANE_OUT,
    LANE_WEIGHT,
    LANES,
    LINE,
    NEAR_STRIDE,
    PAST,
    PITCH,
    PLANES,
    ROWS,
    SCRATCH,
    SPATIAL,
    TALL,
    TILE,
    WIDTH,
    pool_tables,
)
from ranks import element_size, rank_size
from walk import axis_of, integers
from windows import (
    BOX_COLUMNS,
    COLUMNS,
    DILATION,
    OTHER_STEP,
    OUT_SIZE,
    OUT_STEP,
    PADDING,
    SIZE,
    STEP,
    STRIDE,
    WEIGHT,
    WINDOW,
    Window,
    element_at,
    window_of,
)

TABLE = 256  # rows of a window whose offsets are in a table


class LineRows(NamedTuple):
    """Rows of the input, or of the padding, at which an item's lines begin."""

    first: Any
    count: Any
    stride: Any


class Span(NamedTuple):
    """A line along the last axis: the position where it begins, and which of its places the input has."""

    start: Any
    low: Any
    high: Any


class Outputs(NamedTuple):
    """Which outputs an item has, of each of its planes, and what the item before was other in."""

    outer: Any  # position in all spatial axes but the last two
    row: Any  # the first of the last axis but one
    rows: Any
    column: Any  # the first of the last axis
    columns: Any
    lanes: Any  # places of the batch axis that stand side by side
    new_column: Any
    new_place: Any  # column or row


class Places(NamedTuple):
    """Where an item's first plane is: addresses, an index, and the position from which positions are counted."""

    source: Any  # of the plane
    out: Any  # of the item's first output
    indices: Any
    base: Any  # index of the plane's first element
    origin: Any


@helper
def _fill_tables(box, spatial, axes, total, first, count, offsets, positions):
    """Offsets and doubled positions of elements of a window but its last axis, from number `first` on.

    Those of the last but one axis go slowest: a window that its padding cuts has a part of them. In the first `axes`
    axes, which are before it, a window has `total`.
    """
    axis = axis_of(spatial, axes, COLUMNS)
    row_step, row_weight = axis[DILATION] * axis[STEP], axis[DILATION] * axis[WEIGHT]
    for r in range(count):
        row, number = split(first + r, total)
        offset, position = element_at(box, axes, number)
        place = 2 * (position + row * row_weight)
        store_integer(np.int64(0), offsets + r * 8, offset + row * row_step)
        store_integer(np.int64(0), positions + r * 8, place)


@helper
def _rows_inside(axis, row, total, tall, lines):
    """Of the rows of a window from `row` on (`tall`: of this row alone) those that the input has.

    Returns the first, the number of elements in all of them, and how many lines, up to `lines`, have as many.
    """
    size, dilation, stride = axis[SIZE], axis[DILATION], axis[STRIDE]
    reach = (axis[WINDOW] - 1) * dilation
    if tall:
        if row < 0:
            return row, 0, least(-row, lines)
        if row < size:
            return row, total, least(size - row, lines)
        return row, 0, lines
    if total > 0 and row >= 0 and row + reach < size:
        return row, total * axis[WINDOW], least((size - 1 - reach - row) // stride + 1, lines)
    cut = ceildiv(most(-row, 0), dilation)
    stop = axis[WINDOW]
    if row + reach >= size:
        stop = ceildiv(most(size - row, 0), dilation)
    return row + cut * dilation, most(stop - cut, 0) * total, 1


@helper
def _clear_ends(lines, count, low, high, line, share, span, ranks):
    """Set the ranks before `low` and from `high` on to padding in each of the lines, `share` of them in a plane."""
    size = rank_size(ranks)
    for i in range(count):
        plane, row = split(i, share)
        place = lines + (plane * span + row * line) * size
        clear_ranks(place, low, ranks)
        clear_ranks(place + high * size, line - high, ranks)


@separate
def _rank_apart(planes, lines, rows, fresh, ranks, rule):
    """As rank_rows_apart, in a function of its own: amid the chunk others take up to 1.1 times as long."""
    rank_rows_apart(planes, lines, rows, fresh, ranks, rule)


@helper
def _rank_lines(how, spatial, box, total, table, planes, lines, rows, block, ranks, rule):
    """Rank rows, also more of them than their tables hold."""
    apart = how[PITCH] == 1 and rows.step != element_size(ranks)
    ranked = np.int64(0)
    while ranked < rows.count:
        more = least(rows.count - ranked, TABLE)
        if table > TABLE:
            axes = how[SPATIAL] - 2
            _fill_tables(box, spatial, axes, total, ranked, more, rows.offsets, rows.positions)
        done = np.int64(0)
        while done < more:
            some = least(more - done, block)
            at = done * 8
            part = Rows(
                rows.offsets + at,
                rows.positions + at,
                some,
                rows.columns,
                rows.step,
                rows.along,
            )
            fresh = ranked == 0
            if apart:
                _rank_apart(planes, lines, part, fresh, ranks, rule)
            else:
                rank_rows(planes, lines, part, fresh, ranks, rule)
            done += some
            ranked += some


@inlined
def _rank_item(
    how, spatial, window, table, line_rows, span, lanes, source, planes, scratch, block, ranks, rule
):
    """Rank the lines of an item's planes: alike lines at once, or the runs of one line."""
    inner = how[SPATIAL] - 1
    size, item_bytes = rank_size(ranks), element_size(ranks)
    pitch, line, tall = how[PITCH], how[LINE] * size, how[TALL] != 0
    step, row_axis = axis_of(spatial, inner, COLUMNS)[STEP], axis_of(spatial, inner - 1, COLUMNS)
    row_step, row_weight = row_axis[STEP], row_axis[WEIGHT]
    places = span.high - span.low
    # Contiguous runs of elements in each row of the input, and whether their positions count up.
    runs, n, along = places, lanes, 0
    if pitch == 1:
        runs, n, along = 1, places, 1
    elif how[WIDTH] == 0 and lanes == pitch and step == pitch * item_bytes:
        runs, n = 1, places * pitch
    source += window.offset + (span.start + span.low) * step
    # Of lines of nothing but padding nothing is read: not even `source` need be memory of the input.
    done = 0 if places > 0 else line_rows.count
    while done < line_rows.count:
        row, inside, alike = _rows_inside(
            row_axis,
            line_rows.first + done * line_rows.stride,
            window.total,
            tall,
            line_rows.count - done,
        )
        count, place_step = alike, line
        source_step, position_step = line_rows.stride * row_step, line_rows.stride * row_weight
        if runs != 1:
            alike, count = 1, runs
            place_step, source_step, position_step = pitch * size, step, 1
        place = scratch.lines + done * line + span.low * pitch * size
        position = (row - most(line_rows.first, 0)) * row_weight
        start = source + row * row_step
        for p in range(planes.count if inside == 0 and not tall else 0):
            clear_ranks(place + p * planes.line, places * pitch, ranks)
        _rank_lines(
            how,
            spatial,
            scratch.box,
            window.total,
            table,
            planes,
            Lines(place, start, position, count, place_step, source_step, position_step),
            Rows(scratch.offsets, scratch.positions, inside, n, step, along),
            block,
            ranks,
            rule,
        )
        done += alike


@helper
def _thin(lines, count, line, n, stride, ranks):
    """Move every `stride`-th rank of so many lines, `line` bytes apart, to their begins: n of each."""
    size = rank_size(ranks)
    for _ in range(count):
        for i in range(n):
            copy_rank(lines + i * size, lines + i * stride * size, ranks)
        lines += line


def line_chunk(ranks, read_rule, block, store):
    """Chunk that works line by line; an item is ROWS rows of a tile of a plane, or of PITCH planes side by side.

    Of small planes an item is several, whose lines are joined as one: 1.1 to 2 times as fast for 13 x 13 elements.
    Positions are counted from an item's first element. `read_rule(how)` returns what ranks are made by, of `block` rows
    of a window at once: a Rule of the greatest, p of norms, else None. `store` writes an item's outputs.
    """
    sums = ranks.sums
    buffers = 4 if sums else 2

    @entry
    def chunk(walk, x, out, indices, begin, end):
        how, batch, spatial = pool_tables(walk)
        rule = read_rule(how)
        buffer, before = how[BUFFER], aligned(8 * (2 * TABLE + BOX_COLUMNS * how[SPATIAL]))
        memory = allocate(before + how[SCRATCH])
        lines = memory + before
        scratch = Scratch(
            offsets=memory,
            positions=memory + 8 * TABLE,
            box=integers(memory + 16 * TABLE),
            lines=lines,
            doubled=lines + buffer,
            rest=lines + 2 * buffer if sums else None,
            divisors=lines + 3 * buffer if sums else None,
            spare=lines + buffers * buffer,
        )
        inner = how[SPATIAL] - 1
        outer_axes = inner - 1
        size, item_bytes = rank_size(ranks), element_size(ranks)
        lanes, pitch, tile, share = how[LANES], how[PITCH], how[TILE], how[ROWS]
        tall, line, most_planes = how[TALL] != 0, how[LINE], how[PLANES]
        gap = GAP_BYTES // size if most_planes > 1 else 0
        axis = axis_of(spatial, inner, COLUMNS)
        n, out_n, stride, padding = axis[SIZE], axis[OUT_SIZE], axis[STRIDE], axis[PADDING]
        unit, reach = axis[DILATION] * pitch, (axis[WINDOW] - 1) * axis[DILATION]
        row_axis = axis_of(spatial, outer_axes, COLUMNS)
        rows, row_stride = row_axis[OUT_SIZE], row_axis[STRIDE]
        row_reach = (row_axis[WINDOW] - 1) * row_axis[DILATION]
        outers = 1
        for d in range(outer_axes):
            outers *= axis_of(spatial, d, COLUMNS)[OUT_SIZE]
        # The planes of an item are along the innermost of the batch axes.
        batch_axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        beside, plane_x = batch_axis[BATCH_SIZE], batch_axis[BATCH_STEP]
        plane_out, plane_index = batch_axis[BATCH_OUT], batch_axis[BATCH_OTHER]
        plane_base = batch_axis[BATCH_WEIGHT]
        sets = ceildiv(beside, most_planes)
        blocks = ceildiv(rows, share)
        tiles = ceildiv(out_n, tile)
        groups = ceildiv(lanes, pitch)
        last_low, last_high, last_first, last_column = -1, -1, -1, -1
        outer_row = -1
        window = Window(0, 0, 0, 0, 0)  # in all axes but the last two
        table = 0  # elements that make a rank where padding cuts none
        for item in range(begin, end):
            # Tiles go fastest: their rows are one after the other in memory.
            rest, column = split(item, tiles)
            column *= tile
            outer, first = split(rest, blocks)
            first *= share
            some = least(share, rows - first)
            outer, row = split(outer, outers)
            if row != outer_row:
                outer_row = row
                window = window_of(spatial, outer_axes, outer_row, scratch.box)
                table = window.total * (1 if tall else row_axis[WINDOW])
                _fill_tables(
                    scratch.box,
                    spatial,
                    outer_axes,
                    window.total,
                    0,
                    least(table, TABLE),
                    scratch.offsets,
                    scratch.positions,
                )
                last_first = -1
            group, lane_at = split(outer, groups)
            lane_at *= pitch
            rest, plane = split(group, sets)
            plane *= most_planes
            several = least(most_planes, beside - plane)
            x_offset, out_offset, index_offset, base = offsets_of(
                batch, how[BATCH], rest * beside + plane
            )
            columns = least(pitch, lanes - lane_at)
            count = least(tile, out_n - column)
            start = column * stride - padding  # the input position at the line's begin
            length = (count - 1) * stride + 1 + reach
            low = least(most(-start, 0), length)
            high = most(least(n - start, length), low)
            moved = low != last_low or high != last_high
            new_column = column != last_column
            new_place = new_column or first != last_first
            line_rows = LineRows(first * row_stride - row_axis[PADDING], some, row_stride)
            if tall:
                line_rows = LineRows(line_rows.first, (some - 1) * row_stride + 1 + row_reach, 1)
            # Ranks from the first line of a plane to that of the next.
            apart = line_rows.count * line + gap
            if tall:
                if moved or new_place:
                    clear_ranks(lines, most_planes * apart, ranks)
            elif moved:
                ends = low * pitch, high * pitch
                _clear_ends(lines, most_planes * share, *ends, line, share, apart, ranks)
            last_low, last_high, last_first, last_column = low, high, first, column
            source = x + x_offset + lane_at * item_bytes
            _rank_item(
                how,
                spatial,
                window,
                table,
                line_rows,
                Span(start, low, high),
                columns,
                source,
                Planes(several, apart * size, plane_x, plane_out, plane_index, plane_base),
                scratch,
                block,
                ranks,
                rule,
            )
            finished = lines
            if tall:
                ends = low * pitch, high * pitch
                finished = fold_window_rows(
                    how, row_axis, scratch, several, some, apart, *ends, ranks
                )
                if finished == lines:
                    last_first = -1  # these lines are to be cleared again
                apart = some * line
            in_all = several * apart
            finished, pieces = double_lines(
                scratch.doubled, scratch.rest, finished, in_all, axis[WINDOW], unit, ranks
            )
            if pitch == 1 and stride > NEAR_STRIDE:
                fold_line(scratch.doubled, finished, in_all - reach, pieces, ranks)
                finished = scratch.doubled
                pieces = Pieces(1, 1, 0, 0)
                for p in range(several):
                    place = finished + p * apart * size
                    _thin(place, some, line * size, count, stride, ranks)
            else:
                pieces = Pieces(stride, pieces.count, pieces.step, pieces.last)
            target = out + out_offset + window.out + lane_at * how[LANE_OUT]
            target += first * row_axis[OUT_STEP] + column * axis[OUT_STEP]
            index_target = indices + index_offset + window.other + lane_at * how[LANE_OTHER]
            index_target += first * row_axis[OTHER_STEP] + column * axis[OTHER_STEP]
            base += lane_at * how[LANE_WEIGHT]
            origin = window.position + most(line_rows.first, 0) * row_axis[WEIGHT] + start + low
            store(
                how,
                spatial,
                Outputs(outer_row, first, some, column, count, columns, new_column, new_place),
                Places(source, target, index_target, base, origin),
                Planes(several, apart * size, plane_x, plane_out, plane_index, plane_base),
                finished,
                pieces,
                scratch,
                ranks,
                rule,
            )
        if how[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk
