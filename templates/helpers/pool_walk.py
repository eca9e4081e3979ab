"""The walk over the windows of a pooling, and over lines of their rows' ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compiled import entry, helper, inlined, separate
from memory import (
    NEAR_STEPS,
    VECTOR_BYTES,
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    item_size,
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
    clear_ranks,
    copy_rank,
    fold_block,
    fold_line,
    rank_rows,
    rank_rows_apart,
    rank_size,
)
from strips import WIDEST
from walk import axis_of, integers

# A walk by lines, by packed planes or window by window is made of these settings, then two tables of axes, whose
# lengths are among the settings:
# batch    rows of (size, input stride, output stride, indices stride, index weight), one at least
# spatial  rows of (size, output size, window, stride, dilation, padding, input stride, output stride, indices stride,
#          position weight, low, high), outermost first, two at least; of an average's divisor, positions from low to
#          high - 1 count
LANES = 0  # lines: size of the batch axis whose elements stand side by side in a line; 1: none
PITCH = 1  # lines: of them, those taken together
LANE_OUT = 2  # output stride
LANE_INDICES = 3  # indices stride
LANE_WEIGHT = 4  # index weight
TILE = 5  # lines: innermost output positions taken together
ROWS = 6  # in an item; lines: rows of output positions; direct, unpooling: positions; planes with one window: planes
SCRATCH = 7  # lines: bytes of scratch memory
DENSE = 8  # bytes from one spatial position to the next, where one stride serves; else 0
WIDTH = 9  # bytes of an index; 0: no indices are wanted
COLUMN_MAJOR = 10  # indices count so within the spatial plane
PLANE = 11  # positions of a spatial plane; packed: ranks of one; unpooling: positions of the output
LINE = 12  # lines, packed: ranks from one line to the next
BUFFER = 13  # lines, packed: bytes of all lines
TALL = 14  # lines: rows of input become lines first, and these are folded by doubling too; packed: sums by doubling
BATCH = 15  # lengths of the tables
SPATIAL = 16
RULE = 17  # flip, nan_key and inf
BLANK = 20  # the value of a window of nothing but padding
BLOCK = 21  # gradient: positions whose sums are in scratch memory, of each of the PITCH planes
PLANES = 22  # packed: planes of an item; lines: as well, one after the other, or 1 where an item is a part of one
FIND = 23  # gradient: the address of the chunk that finds the greatest elements
TABLE_AT = 24  # packed: the address of the table
KEPT = 25  # packed: ranks from one plane to the next of the rows that are kept, where not all are; else 0
GIVEN = 26  # unpooling: elements that an item reads; 0: all
STRAY = 27  # unpooling: set to 1 if one of them belongs to another item
SEVERAL = 28  # gradient: planes of an item, each of them with PITCH side by side
OUT_DENSE = 29  # gradient: as DENSE, of the output
PAST = 30  # lines, gradients: outputs, or indices where they are wanted, go past the caches
EDGE = 31  # direct: see window_group; 0: each window by itself
SETTINGS = 32

BATCH_COLUMNS, COLUMNS, BOX_COLUMNS = 5, 12, 3
SIZE, OUT_SIZE, WINDOW, STRIDE, DILATION, PADDING = 0, 1, 2, 3, 4, 5
STEP, OUT_STEP, INDEX_STEP, WEIGHT, LOW, HIGH = 6, 7, 8, 9, 10, 11

FIRST_POSITION = np.int64(0)  # a literal would make another version of what it is passed to
TABLE = 256  # rows of a window whose offsets are in a table
GAP_BYTES = WIDEST * VECTOR_BYTES  # behind each plane's lines: what rank_rows may write there
# The largest stride of outputs that are picked out of whole vectors of ranks: 0.45 to 0.8 of the time of 3 and 4.
NEAR_STRIDE = NEAR_STEPS[-1]
# Behind all lines: where every second rank is wanted, twice as much is read, and so on.
SLACK_BYTES = NEAR_STRIDE * GAP_BYTES
PIECES = 4  # of a window that are joined at once, when the rest was doubled
SUM_PIECES = 7
BLOCK_WINDOW = 9  # rows of windows that are joined block by block, at least: 0.7 to 1 of the time


class Window(NamedTuple):
    """A window in some axes: the elements of it that the input has."""

    total: Any
    offset: Any  # of the first
    position: Any
    out: Any  # offset of the window's output
    indices: Any


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
def _batch(batch, axes, item):
    """Offsets in input, output and indices, and index, of a row-major position in the batch axes."""
    first = 0
    second = 0
    third = 0
    index = 0
    for d in range(axes - 1, -1, -1):
        axis = axis_of(batch, d, BATCH_COLUMNS)
        item, digit = split(item, axis[0])
        first += digit * axis[1]
        second += digit * axis[2]
        third += digit * axis[3]
        index += digit * axis[4]
    return first, second, third, index


@helper
def _between(spatial, d, output, low, high):
    """(first, count): the elements, by number, of a window along axis d whose positions are low to high - 1."""
    axis = axis_of(spatial, d, COLUMNS)
    start = output * axis[STRIDE] - axis[PADDING]
    dilation, window = axis[DILATION], axis[WINDOW]
    before, left = low - start, high - start
    if dilation == 1:
        first = most(before, 0)
        stop = least(window, left)
    else:
        first = ceildiv(most(before, 0), dilation)
        stop = least(window, ceildiv(most(left, 0), dilation))
    return first, most(stop - first, 0)


@helper
def _windows(spatial, axes, row, box):
    """The window of output position `row`, row-major in the first `axes` axes.

    Fills box with (number of elements inside, step, position weight) for each axis.
    """
    total = 1
    offset = 0
    position = 0
    out_offset = 0
    index_offset = 0
    for d in range(axes - 1, -1, -1):
        axis = axis_of(spatial, d, COLUMNS)
        dilation = axis[DILATION]
        row, digit = split(row, axis[OUT_SIZE])
        first, count = _between(spatial, d, digit, FIRST_POSITION, axis[SIZE])
        start = digit * axis[STRIDE] - axis[PADDING] + first * dilation
        total *= count
        inside = axis_of(box, d, BOX_COLUMNS)
        inside[0], inside[1], inside[2] = count, dilation * axis[STEP], dilation * axis[WEIGHT]
        offset += start * axis[STEP]
        position += start * axis[WEIGHT]
        out_offset += digit * axis[OUT_STEP]
        index_offset += digit * axis[INDEX_STEP]
    return Window(total, offset, position, out_offset, index_offset)


@helper
def _element(box, axes, number):
    """Input offset and position of a window's element, counted from the first inside."""
    offset = 0
    position = 0
    for d in range(axes - 1, -1, -1):
        inside = axis_of(box, d, BOX_COLUMNS)
        number, digit = split(number, inside[0])
        offset += digit * inside[1]
        position += digit * inside[2]
    return offset, position


@helper
def _double(target, rest, source, n, window, unit, wide, flip):
    """Join the n ranks of lines over parts of a window, in steps of `unit` ranks, until few are left.

    Returns where the lines are then, and what makes a window: how many pieces, and the ranks from one to the next and
    from the first to the last. The last may overlap; where it may not, for sums, it is what does not fill a whole
    piece, in lines at `rest`.
    """
    have = 1
    if rest is None:
        while have * PIECES < window:
            shift = have * unit
            fold_line(target, source, n - shift, 2, shift, shift, wide, flip)
            source = target
            have *= 2
        return source, ceildiv(window, have), have * unit, (window - have) * unit
    size = rank_size(wide, flip)
    left = window
    fresh = True
    while have * SUM_PIECES < left:
        if left & have:
            left -= have
            shift = left * unit
            if fresh:
                fold_line(rest, source, n - shift, 1, 0, shift, wide, flip)
            else:
                away = shift + (source - rest) // size
                fold_line(rest, rest, n - shift, 2, 0, away, wide, flip)
            fresh = False
        shift = have * unit
        fold_line(target, source, n - shift, 2, shift, shift, wide, flip)
        source = target
        have *= 2
    pieces = left // have
    last = (pieces - 1) * have * unit
    if not fresh:
        pieces += 1
        last = (rest - source) // size
    return source, pieces, have * unit, last


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
        offset, position = _element(box, axes, number)
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
def _clear_ends(folded, lines, low, high, line, share, span, wide, flip):
    """Set the ranks before `low` and from `high` on to padding in each of the lines, `share` of them in a plane."""
    size = rank_size(wide, flip)
    for i in range(lines):
        plane, row = split(i, share)
        place = folded + (plane * span + row * line) * size
        clear_ranks(place, low, wide, flip)
        clear_ranks(place + high * size, line - high, wide, flip)


@separate
def _rank_apart(planes, lines, rows, fresh, wide, rule):
    """As rank_rows_apart, in a function of its own: amid the chunk others take up to 1.1 times as long."""
    rank_rows_apart(planes, lines, rows, fresh, wide, rule)


@helper
def _rank_lines(how, spatial, box, total, table, planes, lines, rows, block, wide, rule):
    """Rank rows, also more of them than their tables hold."""
    apart = how[PITCH] == 1 and rows.step != item_size(rule[0])
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
                _rank_apart(planes, lines, part, fresh, wide, rule)
            else:
                rank_rows(planes, lines, part, fresh, wide, rule)
            done += some
            ranked += some


@helper
def _fold_blocks(how, axis, folded, doubled, several, some, span, low, high, wide, flip):
    """As _fold_rows, block by block of windows that have a row in common, to lines at `doubled`.

    A line has a vector at least: what is written of one beyond `high` is padding, of the next line before `low` too.
    """
    size = rank_size(wide, flip)
    line = how[LINE] * size
    window, dilation = axis[WINDOW], axis[DILATION]
    clear_ranks(doubled, several * some * how[LINE], wide, flip)
    for first in range(dilation):
        for row in range(first, some, window * dilation):
            at = row * line + low * size
            fold_block(
                doubled + at,
                folded + at,
                several,
                some * line,
                span * size,
                dilation * line,
                most(high - low, VECTOR_BYTES // size),
                window,
                least(window, ceildiv(some - row, dilation)),
                wide,
                flip,
            )


@helper
def _fold_rows(how, axis, folded, doubled, rest, several, some, span, low, high, wide, flip):
    """Fold lines of rows of the input, of several planes, to those of `some` rows of windows.

    Of a line the ranks from `low` to `high` - 1 are not padding. Returns where the lines are then, over those that were
    there or beside them.
    """
    size, line = rank_size(wide, flip), how[LINE]
    window, stride, dilation = axis[WINDOW], axis[STRIDE], axis[DILATION]
    by_blocks = stride == 1 and window >= BLOCK_WINDOW and line * size >= VECTOR_BYTES
    if rest is not None:
        # Rows are added one by one: of sums no wider than elements the error would grow with the window. In float32
        # that of 4096 rows is below half the last place of 16 bits.
        by_blocks = by_blocks and size > item_size(flip)
    if by_blocks:
        _fold_blocks(how, axis, folded, doubled, several, some, span, low, high, wide, flip)
        return doubled
    source, pieces, shift, last = _double(
        doubled, rest, folded, several * span, window, dilation * line, wide, flip
    )
    # Rows that move together. In place only if the vector more that is written is not read later.
    alike = some if stride == 1 else 1
    in_place = alike == some and (window - 1) * dilation * line * size >= VECTOR_BYTES
    target = doubled
    if source == doubled and not in_place:
        target = folded
    for i in range(several * some // alike):
        plane, row = split(i * alike, some)
        row *= stride
        fold_line(
            target + i * alike * line * size,
            source + (plane * span + row * line) * size,
            alike * line,
            pieces,
            shift,
            last,
            wide,
            flip,
        )
    return target


@inlined
def _rank_item(
    how,
    spatial,
    box,
    window,
    table,
    line_rows,
    span,
    lanes,
    source,
    folded,
    planes,
    offsets,
    positions,
    block,
    wide,
    rule,
):
    """Rank the lines of an item's planes at `folded`: alike lines at once, or the runs of one line."""
    inner, flip = how[SPATIAL] - 1, rule[0]
    size, item_bytes = rank_size(wide, flip), item_size(flip)
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
        place = folded + done * line + span.low * pitch * size
        position = (row - most(line_rows.first, 0)) * row_weight
        start = source + row * row_step
        for p in range(planes.count if inside == 0 and not tall else 0):
            clear_ranks(place + p * planes.line, places * pitch, wide, flip)
        _rank_lines(
            how,
            spatial,
            box,
            window.total,
            table,
            planes,
            Lines(place, start, position, count, place_step, source_step, position_step),
            Rows(offsets, positions, inside, n, step, along),
            block,
            wide,
            rule,
        )
        done += alike


@helper
def _thin(lines, count, line, n, stride, wide, flip):
    """Move every `stride`-th rank of so many lines, `line` bytes apart, to their begins: n of each."""
    size = rank_size(wide, flip)
    for _ in range(count):
        for i in range(n):
            copy_rank(lines + i * size, lines + i * stride * size, wide, flip)
        lines += line


@helper
def _tables(walk):
    """The settings, and the tables batch and spatial."""
    how = integers(walk)
    batch = walk + 8 * SETTINGS
    return how, integers(batch), integers(batch + 8 * BATCH_COLUMNS * how[BATCH])


def line_chunk(read_rule, wide, sums, block, store):
    """Chunk that works line by line; an item is ROWS rows of a tile of a plane, or of PITCH planes side by side.

    Of small planes an item is several, whose lines are joined as one: 1.1 to 2 times as fast for 13 x 13 elements.
    Positions are counted from an item's first element. `read_rule(how)` returns what ranks are made by, of `block` rows
    of a window at once; `store` writes an item's outputs.
    """
    buffers = 4 if sums else 2

    @entry
    def chunk(walk, x, out, indices, begin, end):
        how, batch, spatial = _tables(walk)
        rule = read_rule(how)
        flip = rule[0]
        # Two tables of int64, a box, then buffers of lines, and room for a run that is not yet stored.
        before = aligned(8 * (2 * TABLE + BOX_COLUMNS * how[SPATIAL]))
        offsets = allocate(before + how[SCRATCH])
        positions = offsets + 8 * TABLE
        box = integers(positions + 8 * TABLE)
        folded = offsets + before
        inner = how[SPATIAL] - 1
        outer_axes = inner - 1
        size, item_bytes = rank_size(wide, flip), item_size(flip)
        lanes, pitch, tile, share = how[LANES], how[PITCH], how[TILE], how[ROWS]
        tall, line, most_planes = how[TALL] != 0, how[LINE], how[PLANES]
        gap = GAP_BYTES // size if most_planes > 1 else 0
        axis = axis_of(spatial, inner, COLUMNS)
        n, out_n, stride, padding = axis[SIZE], axis[OUT_SIZE], axis[STRIDE], axis[PADDING]
        unit, reach = axis[DILATION] * pitch, (axis[WINDOW] - 1) * axis[DILATION]
        row_axis = axis_of(spatial, outer_axes, COLUMNS)
        rows, row_stride = row_axis[OUT_SIZE], row_axis[STRIDE]
        row_reach = (row_axis[WINDOW] - 1) * row_axis[DILATION]
        doubled = folded + how[BUFFER]
        spare = folded + buffers * how[BUFFER]
        # What sums need besides: pieces of another size, and their divisors.
        rest_lines = doubled + how[BUFFER] if sums else None
        outers = 1
        for d in range(outer_axes):
            outers *= axis_of(spatial, d, COLUMNS)[OUT_SIZE]
        # The planes of an item are along the innermost of the batch axes.
        batch_axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        beside, plane_x, plane_out = batch_axis[0], batch_axis[1], batch_axis[2]
        plane_index, plane_base = batch_axis[3], batch_axis[4]
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
                window = _windows(spatial, outer_axes, outer_row, box)
                table = window.total * (1 if tall else row_axis[WINDOW])
                tabled = least(table, TABLE)
                _fill_tables(box, spatial, outer_axes, window.total, 0, tabled, offsets, positions)
                last_first = -1
            group, lane_at = split(outer, groups)
            lane_at *= pitch
            rest, plane = split(group, sets)
            plane *= most_planes
            several = least(most_planes, beside - plane)
            x_offset, out_offset, index_offset, base = _batch(
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
                    clear_ranks(folded, most_planes * apart, wide, flip)
            elif moved:
                ends = low * pitch, high * pitch
                _clear_ends(folded, most_planes * share, *ends, line, share, apart, wide, flip)
            last_low, last_high, last_first, last_column = low, high, first, column
            source = x + x_offset + lane_at * item_bytes
            _rank_item(
                how,
                spatial,
                box,
                window,
                table,
                line_rows,
                Span(start, low, high),
                columns,
                source,
                folded,
                Planes(several, apart * size, plane_x, plane_out, plane_index, plane_base),
                offsets,
                positions,
                block,
                wide,
                rule,
            )
            finished = folded
            if tall:
                finished = _fold_rows(
                    how,
                    row_axis,
                    folded,
                    doubled,
                    rest_lines,
                    several,
                    some,
                    apart,
                    low * pitch,
                    high * pitch,
                    wide,
                    flip,
                )
                if finished == folded:
                    last_first = -1  # these lines are to be cleared again
                apart = some * line
            ranks = several * apart
            finished, number, shift, last = _double(
                doubled, rest_lines, finished, ranks, axis[WINDOW], unit, wide, flip
            )
            pieces = Pieces(stride, number, shift, last)
            if pitch == 1 and stride > NEAR_STRIDE:
                fold_line(doubled, finished, ranks - reach, number, shift, last, wide, flip)
                finished = doubled
                pieces = Pieces(1, 1, shift, 0)
                for p in range(several):
                    place = doubled + p * apart * size
                    _thin(place, some, line * size, count, stride, wide, flip)
            target = out + out_offset + window.out + lane_at * how[LANE_OUT]
            target += first * row_axis[OUT_STEP] + column * axis[OUT_STEP]
            index_target = indices + index_offset + window.indices + lane_at * how[LANE_INDICES]
            index_target += first * row_axis[INDEX_STEP] + column * axis[INDEX_STEP]
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
                spare,
                wide,
                rule,
            )
        if how[PAST] != 0:
            drain_stores()
        release(offsets)

    return chunk
