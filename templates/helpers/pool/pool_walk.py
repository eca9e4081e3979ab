"""The walk over the windows of a pooling by lines: of states, along the last axis, in scratch memory.

What is done for an item, outputs of several planes:

- Which they are, and where: `plane_set`, `stretch_of` along the last two axes, `window_of` in the others.
- `_make_lines`: of each row of windows a line, a state for each column, is joined of the windows' taps in all axes but
  the last. Tall windows, whose rows are had by doubling, get one for each row of the input instead, of taps in all axes
  but the last two, and `fold_window_rows` makes the former of these.
- `_join_columns`: along the lines windows are joined by doubling, until a few pieces are left of each.
- `store` joins these, and makes outputs of states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
from plane_sets import PlaneSet, plane_set, plane_sets
from pool_line import (
    Lines,
    Pieces,
    Runs,
    Scratch,
    Source,
    Strided,
    Taps,
    clear_states,
    copy_state,
    fold_line,
    join_taps,
    join_taps_apart,
    lane_runs,
)
from pool_settings import (
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
    tables_of,
)
from pool_state import state_size
from walk import integers
from windows import (
    BOX_BYTES,
    Box,
    Stretch,
    Window,
    element_at,
    outputs_of,
    reach_of,
    span_of,
    stretch_of,
    window_of,
)

TABLE = 256  # taps whose offsets are in a table


class Item(NamedTuple):
    """Outputs of several planes: so many rows and columns, for one window in the other axes."""

    planes: PlaneSet
    outer: Any  # number of that window
    rows: Stretch
    columns: Stretch
    source: Any  # address of the first plane
    out: Any  # of its first output
    other: Any  # of that one's index or position; of norms, of the doubt that all items share
    origin: Any  # the position in a plane from which those of states are counted
    new_columns: Any  # they are others than those of the item before
    new_outputs: Any  # so are columns or rows


@inlined
def _fill_taps(tables, scratch, window, first, count):
    """Fill the tables of `count` taps, from number `first` on, of a window in all axes but the last.

    `window` is the one in all axes but the last two. Along the last but one they go slowest, so that a window which
    padding cuts there has a part of the table.
    """
    axis = tables.rows
    row_step, row_weight = axis.dilation * axis.step, axis.dilation * axis.weight
    for i in range(count):
        row, number = split(first + i, window.box.total)
        offset, position = element_at(window.box, number)
        twice = 2 * (position + row * row_weight)
        store_integer(np.int64(0), scratch.offsets + i * 8, offset + row * row_step)
        store_integer(np.int64(0), scratch.positions + i * 8, twice)


@inlined
def _outer_window(tables, scratch, outer):
    """The window in all axes but the last two, whose taps are in the tables now, and how many taps a line has."""
    window = window_of(tables.spatial, tables.settings[SPATIAL] - 2, outer, scratch.box)
    taps = window.box.total  # of a line, where padding cuts none
    if tables.settings[TALL] == 0:
        taps *= tables.rows.window
    _fill_taps(
        tables, scratch, window, np.int64(0), least(taps, TABLE)
    )  # 0 would make another version
    return window, taps


@inlined
def _rows_of_lines(tables, count):
    """How many lines `count` rows of windows get in each plane, and how many rows of the input they are apart."""
    axis = tables.rows
    if tables.settings[TALL] != 0:
        return span_of(axis, count), 1
    return count, axis.stride


@inlined
def _taps_inside(tables, window, row, lines):
    """Of a line's taps, the first of which is in row `row` of the input, or before it, those that the input has.

    Returns the first row of them, how many there are, and how many lines, up to `lines`, have as many.
    """
    axis = tables.rows
    reach, total = reach_of(axis), window.box.total
    if tables.settings[TALL] != 0:
        if row < 0:
            return row, 0, least(-row, lines)
        if row < axis.size:
            return row, total, least(axis.size - row, lines)
        return row, 0, lines
    if total > 0 and row >= 0 and row + reach < axis.size:
        return (
            row,
            total * axis.window,
            least((axis.size - 1 - reach - row) // axis.stride + 1, lines),
        )
    cut = ceildiv(most(-row, 0), axis.dilation)
    stop = axis.window
    if row + reach >= axis.size:
        stop = ceildiv(most(axis.size - row, 0), axis.dilation)
    return row + cut * axis.dilation, most(stop - cut, 0) * total, 1


@helper
def _join_apart(target, source, runs, taps, kind, rule):
    """As join_taps_apart, in a function of its own: amid the chunk others take up to 1.1 times as long."""
    join_taps_apart(target, source, runs, taps, kind, rule)


@inlined
def _join_all_taps(
    tables, scratch, window, most_taps, count, target, source, runs, block, kind, rule
):
    """Join `count` of so many taps at most, `block` at once; of more than their tables hold, part by part."""
    apart = tables.settings[PITCH] == 1 and source.step != element_size(kind)
    joined = np.int64(0)
    while joined < count:
        filled = least(count - joined, TABLE)
        if most_taps > TABLE:
            _fill_taps(tables, scratch, window, joined, filled)
        for at in range(0, filled, block):
            taps = Taps(
                scratch.offsets + at * 8,
                scratch.positions + at * 8,
                least(filled - at, block),
                joined + at == 0,
            )
            if apart:
                _join_apart(target, source, runs, taps, kind, rule)
            else:
                join_taps(target, source, runs, taps, kind, rule)
        joined += filled


@inlined
def _make_lines(tables, scratch, window, most_taps, item, lines, block, kind, rule):
    """Join the taps of each line of an item: of alike lines at once, or of the runs of one line."""
    settings, size, element_bytes = tables.settings, state_size(kind), element_size(kind)
    pitch, planes, columns = settings[PITCH], item.planes, item.columns
    rows, axis = tables.rows, tables.columns
    count, stride = _rows_of_lines(tables, item.rows.count)
    places = columns.high - columns.low
    # Of each row of the input. Positions of places count up, those of lanes do not.
    adjoin = settings[INDEX_BYTES] == 0 and axis.step == pitch * element_bytes
    runs, n = lane_runs(pitch, planes.lanes, places, adjoin)
    weight = 1 if pitch == 1 else 0
    source = item.source + window.offset + (columns.start + columns.low) * axis.step
    target = lines.address + columns.low * pitch * size
    # Of lines of nothing but padding nothing is read: not even `source` need be memory of the input.
    done = 0 if places > 0 else count
    while done < count:
        row, taps, alike = _taps_inside(
            tables, window, item.rows.start + done * stride, count - done
        )
        line = target + done * lines.line_step
        for p in range(planes.count if taps == 0 and settings[TALL] == 0 else 0):
            clear_states(line + p * lines.plane_step, places * pitch, kind)
        first, position = source + row * rows.step, (row - most(item.rows.start, 0)) * rows.weight
        run_count, run_step = alike, lines.line_step
        source_step, run_weight = stride * rows.step, stride * rows.weight
        if runs != 1:
            run_count, run_step, source_step, run_weight, alike = (
                runs,
                pitch * size,
                axis.step,
                1,
                1,
            )
        _join_all_taps(
            tables,
            scratch,
            window,
            most_taps,
            taps,
            Strided(line, lines.plane_step, run_step),
            Source(first, tables.planes.step, source_step, axis.step, position, run_weight, weight),
            Runs(planes.count, run_count, n),
            block,
            kind,
            rule,
        )
        done += alike


@helper
def _clear_ends(tables, columns, lines, planes, rows, kind):
    """Set the states that are not in the input's columns to padding, in so many lines of each plane."""
    size, pitch, n = state_size(kind), tables.settings[PITCH], tables.settings[LINE]
    low, high = columns.low * pitch, columns.high * pitch
    for i in range(planes * rows):
        plane, row = split(i, rows)
        line = lines.address + plane * lines.plane_step + row * lines.line_step
        clear_states(line, low, kind)
        clear_states(line + high * size, n - high, kind)


@helper
def _thin(line, n, stride, kind):
    """Move every `stride`-th state of a line to its begin: n of them."""
    size = state_size(kind)
    for i in range(n):
        copy_state(line + i * size, line + i * stride * size, kind)


@helper
def _join_columns(tables, scratch, item, lines, kind):
    """Join lines of windows' rows along the last axis, but for some pieces."""
    axis, size, pitch = tables.columns, state_size(kind), tables.settings[PITCH]
    planes = item.planes.count
    n = planes * (lines.plane_step // size)
    source, pieces = double_lines(
        scratch.doubled, scratch.rest, lines.address, n, axis.window, axis.dilation * pitch, kind
    )
    stride = 1 if pitch > 1 else axis.stride
    pieces = Pieces(stride, pieces.count, pieces.step, pieces.last)
    if stride > NEAR_STRIDE:
        fold_line(scratch.doubled, source, n - reach_of(axis), pieces, kind)
        source, pieces = scratch.doubled, Pieces(1, 1, 0, 0)
        for i in range(planes * item.rows.count):
            plane, row = split(i, item.rows.count)
            line = source + plane * lines.plane_step + row * lines.line_step
            _thin(line, item.columns.count, stride, kind)
    return Lines(source, lines.plane_step, lines.line_step, axis.stride * pitch * size, pieces)


def line_chunk(kind, read_rule, block, store):
    """Chunk that works line by line; an item is SHARE rows of a tile of a plane, or of PITCH planes side by side.

    Of small planes an item is several, whose lines are joined as one: 1.1 to 2 times as fast for 13 x 13 elements.
    Positions are counted from an item's first element. `read_rule(settings)` returns what states are made by, of
    `block` taps of a window at once: a Rule of the greatest, p of norms, else None. `store` writes an item's outputs,
    and to the other array indices or positions of the greatest, or that a norm is in doubt; for averages there is none.
    """
    sums = kind.sums
    buffers = 4 if sums else 2

    @entry
    def chunk(walk, x, out, other, begin, end):
        prefer_small_code()
        tables = tables_of(walk)
        settings = tables.settings
        rule = read_rule(settings)
        buffer = settings[BUFFER]
        before = aligned(16 * TABLE + BOX_BYTES * settings[SPATIAL])
        memory = allocate(before + settings[SCRATCH])
        lines_at = memory + before
        scratch = Scratch(
            offsets=memory,
            positions=memory + 8 * TABLE,
            box=integers(memory + 16 * TABLE),
            lines=lines_at,
            doubled=lines_at + buffer,
            rest=lines_at + 2 * buffer if sums else None,
            divisors=lines_at + 3 * buffer if sums else None,
            spare=lines_at + buffers * buffer,
        )
        size, element_bytes = state_size(kind), element_size(kind)
        tile, share, most_planes = settings[TILE], settings[SHARE], settings[PLANES]
        tall, line_step = settings[TALL] != 0, settings[LINE] * size
        gap = GAP_BYTES if most_planes > 1 else 0
        axis, rows_axis = tables.columns, tables.rows
        outers = outputs_of(tables.spatial, settings[SPATIAL] - 2)
        blocks, tiles = ceildiv(rows_axis.out_size, share), ceildiv(axis.out_size, tile)
        sets = plane_sets(settings, tables.batch, most_planes)
        last_outer, last_row, last_column, last_low, last_high = -1, -1, -1, -1, -1
        window, most_taps = Window(Box(scratch.box, 0, 0), 0, 0, 0, 0), 0
        for number in range(begin, end):
            # Tiles go fastest: their rows are one after the other in memory.
            rest, column = split(number, tiles)
            rest, row = split(rest, blocks)
            rest, outer = split(rest, outers)
            planes = plane_set(settings, tables.batch, sets, rest, element_bytes)
            rows = stretch_of(rows_axis, row * share, share)
            columns = stretch_of(axis, column * tile, tile)
            if outer != last_outer:
                window, most_taps = _outer_window(tables, scratch, outer)
            new_columns = columns.first != last_column
            new_outputs = new_columns or rows.first != last_row or outer != last_outer
            new_ends = columns.low != last_low or columns.high != last_high
            last_outer, last_row, last_column = outer, rows.first, columns.first
            last_low, last_high = columns.low, columns.high
            item = Item(
                planes=planes,
                outer=outer,
                rows=rows,
                columns=columns,
                source=x + planes.source,
                out=out
                + planes.out
                + window.out
                + rows.first * rows_axis.out_step
                + columns.first * axis.out_step,
                other=other
                + planes.other
                + window.other
                + rows.first * rows_axis.other_step
                + columns.first * axis.other_step,
                origin=window.position
                + most(rows.start, 0) * rows_axis.weight
                + columns.start
                + columns.low,
                new_columns=new_columns,
                new_outputs=new_outputs,
            )
            plane_step = _rows_of_lines(tables, rows.count)[0] * line_step + gap
            lines = Lines(lines_at, plane_step, line_step, size, Pieces(1, 1, 0, 0))
            if tall and (new_ends or new_outputs):
                clear_states(lines_at, most_planes * (plane_step // size), kind)
            elif new_ends and not tall:
                _clear_ends(tables, columns, lines, most_planes, share, kind)
            _make_lines(tables, scratch, window, most_taps, item, lines, block, kind, rule)
            if tall:
                lines = fold_window_rows(tables, scratch, item, lines, kind)
                if lines.address == lines_at:
                    last_row = -1  # what is there is to be cleared
            lines = _join_columns(tables, scratch, item, lines, kind)
            store(tables, scratch, item, lines, kind, rule)
        if settings[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk
