"""The walk over the windows of a pooling, and over lines of their rows' states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import BATCH_COLUMNS, BATCH_OTHER, BATCH_OUT, BATCH_STEP, BATCH_WEIGHT
from compiled import entry, helper, inlined
from doubling import double_lines, fold_window_rows
from loops import prefer_small_code
from memory import (
    aligned,
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
from plane_sets import plane_set, plane_sets
from pool_line import (
    Lines,
    Pieces,
    Planes,
    Rows,
    Scratch,
    clear_states,
    copy_state,
    fold_line,
    join_rows,
    join_rows_apart,
    lane_runs,
)
from pool_settings import (
    BATCH,
    BUFFER,
    GAP_BYTES,
    INDEX_BYTES,
    LINE,
    NEAR_STRIDE,
    PAST,
    PITCH,
    PLANES,
    SCRATCH,
    SHARE,
    SPATIAL,
    TALL,
    TILE,
    pool_tables,
)
from pool_state import state_size
from walk import axis_of, integers, product_of
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
    """Which outputs an item has, of each of its planes, and how they differ from those of the item before."""

    outer: Any  # position in all spatial axes but the last two
    row: Any  # the first of the last axis but one
    rows: Any
    column: Any  # the first of the last axis
    columns: Any
    lanes: Any  # places of the batch axis that stand side by side
    new_column: Any  # they are in other columns
    new_place: Any  # in other columns or rows


class Places(NamedTuple):
    """Where an item's first plane is: addresses, an index, and the position from which positions are counted."""

    source: Any  # of the plane
    out: Any  # of the item's first output
    other: Any  # of its index or position; of norms, of the doubt that all items share
    base: Any  # index of the plane's first element
    origin: Any


@inlined
def _fill_tables(box, spatial, axes, total, first, count, offsets, positions):
    """Table the offsets, and twice the positions, of `count` elements of a window in all axes but the last.

    The first one has the number `first`. The last but one of the axes goes slowest, so that a window which padding cuts
    along it has a part of the table. In the `axes` before that a window has `total` elements.
    """
    axis = axis_of(spatial, axes, COLUMNS)
    row_step, row_weight = axis[DILATION] * axis[STEP], axis[DILATION] * axis[WEIGHT]
    for r in range(count):
        row, number = split(first + r, total)
        offset, position = element_at(box, axes, number)
        place = 2 * (position + row * row_weight)
        store_integer(np.int64(0), offsets + r * 8, offset + row * row_step)
        store_integer(np.int64(0), positions + r * 8, place)


@inlined
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
def _clear_ends(lines, count, low, high, line, share, plane_states, kind):
    """Set the states before `low` and from `high` on to padding in each of the lines, `share` of them in a plane."""
    size = state_size(kind)
    for i in range(count):
        plane, row = split(i, share)
        place = lines + (plane * plane_states + row * line) * size
        clear_states(place, low, kind)
        clear_states(place + high * size, line - high, kind)


@helper
def _join_apart(planes, lines, rows, fresh, kind, rule):
    """As join_rows_apart, in a function of its own: amid the chunk others take up to 1.1 times as long."""
    join_rows_apart(planes, lines, rows, fresh, kind, rule)


@inlined
def _join_all_rows(settings, spatial, box, total, table, planes, lines, rows, block, kind, rule):
    """Join rows, also more of them than their tables hold."""
    apart = settings[PITCH] == 1 and rows.step != element_size(kind)
    joined = np.int64(0)
    while joined < rows.count:
        more = least(rows.count - joined, TABLE)
        if table > TABLE:
            axes = settings[SPATIAL] - 2
            _fill_tables(box, spatial, axes, total, joined, more, rows.offsets, rows.positions)
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
            fresh = joined == 0
            if apart:
                _join_apart(planes, lines, part, fresh, kind, rule)
            else:
                join_rows(planes, lines, part, fresh, kind, rule)
            done += some
            joined += some


@inlined
def _make_lines(
    settings,
    spatial,
    window,
    table,
    line_rows,
    span,
    lanes,
    source,
    planes,
    scratch,
    block,
    kind,
    rule,
):
    """Make the lines of an item's planes: alike lines at once, or the runs of one line."""
    inner = settings[SPATIAL] - 1
    size, element_bytes = state_size(kind), element_size(kind)
    pitch, line, tall = settings[PITCH], settings[LINE] * size, settings[TALL] != 0
    step, row_axis = axis_of(spatial, inner, COLUMNS)[STEP], axis_of(spatial, inner - 1, COLUMNS)
    row_step, row_weight = row_axis[STEP], row_axis[WEIGHT]
    places = span.high - span.low
    # Of each row of the input. Positions of places count up, those of lanes do not.
    adjoin = settings[INDEX_BYTES] == 0 and step == pitch * element_bytes
    runs, n = lane_runs(pitch, lanes, places, adjoin)
    along = 1 if pitch == 1 else 0
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
            clear_states(place + p * planes.line, places * pitch, kind)
        _join_all_rows(
            settings,
            spatial,
            scratch.box,
            window.total,
            table,
            planes,
            Lines(place, start, position, count, place_step, source_step, position_step),
            Rows(scratch.offsets, scratch.positions, inside, n, step, along),
            block,
            kind,
            rule,
        )
        done += alike


@helper
def _thin(lines, count, line, n, stride, kind):
    """Move every `stride`-th state of so many lines, `line` bytes apart, to their begins: n of each."""
    size = state_size(kind)
    for _ in range(count):
        for i in range(n):
            copy_state(lines + i * size, lines + i * stride * size, kind)
        lines += line


@inlined
def _span_of(axis, column, count):
    """The line of so many outputs from `column` on."""
    start = column * axis[STRIDE] - axis[PADDING]
    length = (count - 1) * axis[STRIDE] + 1 + (axis[WINDOW] - 1) * axis[DILATION]
    low = least(most(-start, 0), length)
    return Span(start, low, most(least(axis[SIZE] - start, length), low))


@inlined
def _outer_window(settings, spatial, row, scratch):
    """The window in all axes but the last two, in the tables too, and how many elements make a state, unless cut."""
    outer_axes = settings[SPATIAL] - 2
    window = window_of(spatial, outer_axes, row, scratch.box)
    table = window.total
    if settings[TALL] == 0:
        table *= axis_of(spatial, outer_axes, COLUMNS)[WINDOW]
    _fill_tables(
        scratch.box,
        spatial,
        outer_axes,
        window.total,
        np.int64(0),  # not a literal, which would make another version
        least(table, TABLE),
        scratch.offsets,
        scratch.positions,
    )
    return window, table


@helper
def _join_along(settings, axis, scratch, lines, planes, rows, columns, kind):
    """Join lines of whole windows' rows along the last axis: where they are then, and what pieces are left."""
    size, pitch, stride = state_size(kind), settings[PITCH], axis[STRIDE]
    in_all = planes.count * (planes.line // size)
    lines, pieces = double_lines(
        scratch.doubled, scratch.rest, lines, in_all, axis[WINDOW], axis[DILATION] * pitch, kind
    )
    if pitch > 1 or stride <= NEAR_STRIDE:
        return lines, Pieces(stride, pieces.count, pieces.step, pieces.last)
    reach = (axis[WINDOW] - 1) * axis[DILATION]
    fold_line(scratch.doubled, lines, in_all - reach, pieces, kind)
    for p in range(planes.count):
        place = scratch.doubled + p * planes.line
        _thin(place, rows, settings[LINE] * size, columns, stride, kind)
    return scratch.doubled, Pieces(1, 1, 0, 0)


@inlined
def _line_rows(axis, first, rows, tall):
    """Where the lines of so many rows of outputs begin: one for each or, if `tall`, for each row that windows have."""
    stride = axis[STRIDE]
    begin = first * stride - axis[PADDING]
    if tall:
        reach = (axis[WINDOW] - 1) * axis[DILATION]
        return LineRows(begin, (rows - 1) * stride + 1 + reach, 1)
    return LineRows(begin, rows, stride)


@inlined
def _item_places(several, window, outputs, line_rows, span, row_axis, axis, x, out, other):
    """Where the first of an item's planes is, in the three arrays."""
    to = out + several.out + window.out
    to += outputs.row * row_axis[OUT_STEP] + outputs.column * axis[OUT_STEP]
    other_to = other + several.other + window.other
    other_to += outputs.row * row_axis[OTHER_STEP] + outputs.column * axis[OTHER_STEP]
    origin = window.position + most(line_rows.first, 0) * row_axis[WEIGHT] + span.start + span.low
    return Places(x + several.source, to, other_to, several.base, origin)


def line_chunk(kind, read_rule, block, store):
    """Chunk that works line by line; an item is SHARE rows of a tile of a plane, or of PITCH planes side by side.

    Of small planes an item is several, whose lines are joined as one: 1.1 to 2 times as fast for 13 x 13 elements.
    Positions are counted from an item's first element. `read_rule(settings)` returns what states are made by, of
    `block` rows of a window at once: a Rule of the greatest, p of norms, else None. `store` writes an item's outputs,
    and to the other array indices or positions of the greatest, or that a norm is in doubt; for averages there is none.
    """
    sums = kind.sums
    buffers = 4 if sums else 2

    @entry
    def chunk(walk, x, out, other, begin, end):
        prefer_small_code()
        settings, batch, spatial = pool_tables(walk)
        rule = read_rule(settings)
        buffer = settings[BUFFER]
        before = aligned(8 * (2 * TABLE + BOX_COLUMNS * settings[SPATIAL]))
        memory = allocate(before + settings[SCRATCH])
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
        inner = settings[SPATIAL] - 1
        size, element_bytes = state_size(kind), element_size(kind)
        pitch, tile = settings[PITCH], settings[TILE]
        share, most_planes = settings[SHARE], settings[PLANES]
        tall, line = settings[TALL] != 0, settings[LINE]
        gap = GAP_BYTES // size if most_planes > 1 else 0
        axis, row_axis = axis_of(spatial, inner, COLUMNS), axis_of(spatial, inner - 1, COLUMNS)
        out_n, rows = axis[OUT_SIZE], row_axis[OUT_SIZE]
        outers = product_of(spatial, inner - 1, COLUMNS, OUT_SIZE)
        blocks, tiles = ceildiv(rows, share), ceildiv(out_n, tile)
        sets = plane_sets(settings, batch, most_planes)
        batch_axis = axis_of(batch, settings[BATCH] - 1, BATCH_COLUMNS)
        steps = batch_axis[BATCH_STEP], batch_axis[BATCH_OUT], batch_axis[BATCH_OTHER]
        plane_base = batch_axis[BATCH_WEIGHT]
        last_low, last_high, last_first, last_column, last_outer = -1, -1, -1, -1, -1
        window = Window(0, 0, 0, 0, 0)  # in all axes but the last two
        table = 0  # elements that make a state where padding cuts none
        for item in range(begin, end):
            # Tiles go fastest: their rows are one after the other in memory.
            rest, column = split(item, tiles)
            rest, first = split(rest, blocks)
            number, outer = split(rest, outers)
            column *= tile
            first *= share
            columns, some = least(tile, out_n - column), least(share, rows - first)
            several = plane_set(settings, batch, sets, number, element_bytes)
            if outer != last_outer:
                window, table = _outer_window(settings, spatial, outer, scratch)
                last_outer, last_first = outer, -1
            span = _span_of(axis, column, columns)
            line_rows = _line_rows(row_axis, first, some, tall)
            new_column = column != last_column
            new_place = new_column or first != last_first
            moved = span.low != last_low or span.high != last_high
            last_low, last_high, last_first, last_column = span.low, span.high, first, column
            # States before the first place that the input has, and before the end; from one plane's lines to the next.
            ends, plane_states = (span.low * pitch, span.high * pitch), line_rows.count * line + gap
            if tall:
                if moved or new_place:
                    clear_states(lines, most_planes * plane_states, kind)
            elif moved:
                _clear_ends(lines, most_planes * share, *ends, line, share, plane_states, kind)
            outputs = Outputs(
                outer, first, some, column, columns, several.lanes, new_column, new_place
            )
            places = _item_places(
                several, window, outputs, line_rows, span, row_axis, axis, x, out, other
            )
            planes = Planes(several.count, plane_states * size, *steps, plane_base)
            _make_lines(
                settings,
                spatial,
                window,
                table,
                line_rows,
                span,
                several.lanes,
                places.source,
                planes,
                scratch,
                block,
                kind,
                rule,
            )
            joined = lines
            if tall:
                joined = fold_window_rows(
                    settings, row_axis, scratch, several.count, some, plane_states, *ends, kind
                )
                if joined == lines:
                    last_first = -1  # these lines are to be cleared again
                planes = Planes(several.count, some * line * size, *steps, plane_base)
            joined, pieces = _join_along(
                settings, axis, scratch, joined, planes, some, columns, kind
            )
            store(settings, spatial, outputs, places, planes, joined, pieces, scratch, kind, rule)
        if settings[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk
