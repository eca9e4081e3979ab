# mypy: allow-untyped-defs, no-check-untyped-defs
"""Greatest element of each window, and its position, for any type, layout and NaN rule; its gradient, and unpooling.

The maximum separates: the rows of each window are joined in a line of scratch memory, then shifted copies of the
line with each other, doubling the shift, so that large windows cost little more than small ones. Several lines are
taken together, one after the other in memory. Addresses are raw and strides are in bytes, so that only the
element's width, whether it is a float, and the width of a rank make a new compiled version.

    wide     what holds a rank, a dummy of its type or a pair of such; None: no indices are wanted
    indices  of `gradient` the windows' gradients, and their strides; its outputs are as the inputs, not as the windows
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beside import PLACE_BYTES, add_lanes, put_lanes
from chunk import call
from compiled import entry, helper, separate
from max_window import WINNERS_EDGES, _winner, winners_together
from memory import (
    VECTOR_BYTES,
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    item_size,
    least,
    load_integer,
    most,
    release,
    split,
    store_integer,
)
from pool_line import Pieces, Runs, clear_ranks, rank_size, store_elements, store_found
from pool_packed import pack_elements, packed_chunk
from pool_walk import (
    BATCH,
    BATCH_COLUMNS,
    BLANK,
    BLOCK,
    BOX_COLUMNS,
    COLUMN_MAJOR,
    COLUMNS,
    DENSE,
    DILATION,
    EDGE,
    FIND,
    FIRST_POSITION,
    GIVEN,
    INDEX_STEP,
    LANE_INDICES,
    LANE_OUT,
    LANE_WEIGHT,
    LANES,
    LINE,
    OUT_DENSE,
    OUT_SIZE,
    OUT_STEP,
    PADDING,
    PAST,
    PITCH,
    PLANE,
    PLANES,
    ROWS,
    RULE,
    SETTINGS,
    SEVERAL,
    SIZE,
    SPATIAL,
    STEP,
    STRAY,
    STRIDE,
    TABLE,
    TILE,
    WEIGHT,
    WIDTH,
    WINDOW,
    _batch,
    _between,
    _element,
    _tables,
    _windows,
    line_chunk,
)
from sum_line import KINDS, add_to_sum, copy_as_sum, load_float, round_sums
from walk import axis_of, integers, lane_types, narrowed, rule_of
from window_group import edge_bytes
from zero import zero_bytes

FOUND = 1 << 13  # windows whose greatest elements are found together, for the gradient
MOST_PLACES = 16  # of a window whose gradients, of planes side by side, are given place by place


@helper
def _store_index(address, index, width):
    if width == 4:
        store_integer(np.int32(0), address, index)
    else:
        store_integer(np.int64(0), address, index)


@helper
def _address(how, spatial, plane, position):
    """Address of the element at a position of a plane."""
    if how[DENSE] != 0:
        return plane + position * how[DENSE]
    for d in range(how[SPATIAL]):
        axis = axis_of(spatial, d, COLUMNS)
        digit, position = split(position, axis[WEIGHT])
        plane += digit * axis[STEP]
    return plane


@helper
def _column_major(spatial, axes, position):
    """The position counted with the first axis fastest."""
    index = 0
    weight = 1
    for d in range(axes):
        axis = axis_of(spatial, d, COLUMNS)
        digit, position = split(position, axis[WEIGHT])
        index += digit * weight
        weight *= axis[SIZE]
    return index


@helper
def _scatter(
    how, spatial, spare, plane, plane_step, target, index_target, base, n, blank, wide, flip
):
    """Store n elements, and their indices, of which scratch memory holds the elements or the positions."""
    axis = axis_of(spatial, how[SPATIAL] - 1, COLUMNS)
    alone = how[PITCH] == 1
    step = axis[OUT_STEP] if alone else how[LANE_OUT]
    if wide is None:
        for i in range(n):
            store_integer(flip, target + i * step, load_integer(flip, spare + i * item_size(flip)))
        return
    index_step = axis[INDEX_STEP] if alone else how[LANE_INDICES]
    weight = 0 if alone else how[LANE_WEIGHT]
    for i in range(n):
        position = load_integer(np.int64(0), spare + i * 8)
        index = -1
        if position < 0:
            store_integer(flip, target + i * step, blank)
        else:
            element = _address(how, spatial, plane + i * plane_step, position)
            store_integer(flip, target + i * step, load_integer(flip, element))
            if how[COLUMN_MAJOR] != 0:
                position = _column_major(spatial, how[SPATIAL], position)
            index = base + i * weight + position
        _store_index(index_target + i * index_step, index, how[WIDTH])


@helper
def _store_positions(how, spatial, outputs, places, planes, ranks, pieces, _spare, wide, rule):
    """Store the positions, side by side, of an item's outputs, for the gradient: a quarter less to compile."""
    inner = how[SPATIAL] - 1
    axis, row_axis = axis_of(spatial, inner, COLUMNS), axis_of(spatial, inner - 1, COLUMNS)
    pitch, size = how[PITCH], rank_size(wide, rule.flip)
    line, row = how[LINE] * size, row_axis[INDEX_STEP]
    # All lines at once, each of them one run, or one by one, a run for each place.
    turns, turn_line, turn_row = 1, 0, 0
    runs, run_line, run_row, n_run = outputs.rows, line, row, outputs.columns
    if pitch > 1:
        turns, turn_line, turn_row = outputs.rows, line, row
        runs, run_line = outputs.columns, axis[STRIDE] * pitch * size
        run_row, n_run = axis[INDEX_STEP], outputs.lanes
        pieces = Pieces(1, pieces.count, pieces.step, pieces.last)
    for turn in range(turns):
        store_found(
            None,
            0,
            0,
            places.indices + turn * turn_row,
            planes.indices,
            run_row,
            Runs(
                line=ranks + turn * turn_line,
                planes=planes.count,
                plane_line=planes.line,
                count=runs,
                line_step=run_line,
                n=n_run,
                pieces=pieces,
            ),
            places.origin,
            0,
            0,
            8,
            rule.flip,
            False,
            wide,
            rule,
        )


@helper
def _store_outputs(how, spatial, outputs, places, planes, ranks, pieces, spare, wide, rule):
    """Store the outputs of an item, and their indices, whose ranks are yet to be joined of pieces."""
    inner = how[SPATIAL] - 1
    size, item_bytes = rank_size(wide, rule.flip), item_size(rule.flip)
    pitch, width, line = how[PITCH], how[WIDTH], how[LINE]
    axis, row_axis = axis_of(spatial, inner, COLUMNS), axis_of(spatial, inner - 1, COLUMNS)
    stride, out_step, index_step = axis[STRIDE], axis[OUT_STEP], axis[INDEX_STEP]
    row_out, row_index = row_axis[OUT_STEP], row_axis[INDEX_STEP]
    blank = narrowed(how[BLANK], rule.flip)
    # Ranks that stand side by side, in the line and in the outputs.
    plain = out_step == item_bytes and (width == 0 or index_step == width)
    if pitch > 1:
        plain = how[LANE_OUT] == item_bytes and (width == 0 or how[LANE_INDICES] == width)
    plain = plain and how[COLUMN_MAJOR] == 0
    # One run of all places, or one of the lanes of each place.
    runs, n_run, along, weight, plane_step = 1, outputs.columns, 0, 0, 0
    if pitch > 1:
        runs, n_run, along = outputs.columns, outputs.lanes, stride * pitch * size
        weight, plane_step = how[LANE_WEIGHT], item_bytes
        pieces = Pieces(1, pieces.count, pieces.step, pieces.last)
        whole = plain and stride == 1 and outputs.lanes == pitch
        if wide is None and whole and out_step == pitch * item_bytes:
            runs, n_run = 1, outputs.columns * pitch
    # All runs of lines that are one run each, or those of one line; one run only where more is to be done.
    outer_runs, inner_runs, outer_line, inner_line = 1, outputs.rows, 0, line * size
    steps = (0, row_out, 0, row_index)
    if runs > 1:
        outer_runs, inner_runs, outer_line, inner_line = outputs.rows, runs, line * size, along
        steps = (row_out, out_step, row_index, index_step)
    outer_out_step, run_out, outer_index_step, run_index = steps
    # All planes at once, or, where there is more to do in one of them, one by one.
    together = planes.count if plain else 1
    plane, i = 0, 0
    while plane < planes.count:
        ranks_at = ranks + plane * planes.line + i * outer_line
        to = places.out + plane * planes.out + i * outer_out_step
        index_to = places.indices + plane * planes.indices + i * outer_index_step
        base = places.base + plane * planes.base
        # Elements or positions that are not yet outputs go to scratch memory, run by run: those of a NaN too.
        direct = plain
        done = 0
        while done < inner_runs:
            some_nan = False
            joined = Runs(
                line=ranks_at + done * inner_line,
                planes=together,
                plane_line=planes.line,
                count=inner_runs if direct else 1,
                line_step=inner_line,
                n=n_run,
                pieces=pieces,
            )
            if wide is None:
                target, past = to if direct else spare, direct and how[PAST] != 0
                store_elements(target, planes.out, run_out, joined, past, rule)
            else:
                some_nan = store_found(
                    to if direct else spare + n_run * 8,
                    planes.out,
                    run_out,
                    index_to if direct else spare,
                    planes.indices,
                    run_index,
                    joined,
                    base + places.origin if direct else places.origin,
                    planes.base,
                    weight if direct else 0,
                    width if direct else 8,
                    blank,
                    direct and how[PAST] != 0,
                    wide,
                    rule,
                )
            if direct:
                if not some_nan or together > 1:
                    break
                direct = False
                continue
            _scatter(
                how,
                spatial,
                spare,
                places.source + plane * planes.source,
                plane_step,
                to + done * run_out,
                index_to + done * run_index,
                base,
                n_run,
                blank,
                wide,
                rule.flip,
            )
            done += 1
        if some_nan and together > 1:
            together = 1
            continue
        i += 1
        if i == outer_runs:
            i = 0
            plane += together


@helper
def _store_winner(how, spatial, plane, position, target, index_target, base, flip):
    """Store the element at a position of a plane, and its index if indices are wanted."""
    element = _address(how, spatial, plane, position)
    store_integer(flip, target, load_integer(flip, element))
    if how[WIDTH] != 0:
        if how[COLUMN_MAJOR] != 0:
            position = _column_major(spatial, how[SPATIAL], position)
        _store_index(index_target, base + position, how[WIDTH])


def direct(width, is_float):
    """Chunk that works window by window, where a line or its positions would not fit; an item is ROWS outputs."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        how, batch, spatial = _tables(walk)
        rule = rule_of(how, RULE, lane, float_lane)
        blank = narrowed(how[BLANK], lane)
        axes, share = how[SPATIAL], how[ROWS]
        axis = axis_of(spatial, axes - 1, COLUMNS)
        n, out_step, index_step = axis[OUT_SIZE], axis[OUT_STEP], axis[INDEX_STEP]
        before = WINNERS_EDGES * edge_bytes(how[EDGE])
        scratch = allocate(before + 8 * BOX_COLUMNS * axes)
        box = integers(scratch + before)
        outputs = 1
        for d in range(axes):
            outputs *= axis_of(spatial, d, COLUMNS)[OUT_SIZE]
        blocks = ceildiv(outputs, share)
        for item in range(begin, end):
            outer, row = split(item, blocks)
            row *= share
            stop = least(row + share, outputs)
            x_offset, out_offset, index_offset, base = _batch(batch, how[BATCH], outer)
            plane = x + x_offset
            while row < stop:
                window = _windows(spatial, axes, row, box)
                target = out + out_offset + window.out
                index_target = indices + index_offset + window.indices
                count = 0
                if how[EDGE] != 0 and window.total > 0:
                    column = row % n
                    count = winners_together(
                        spatial,
                        axes,
                        how[EDGE],
                        window,
                        column,
                        least(n - column, stop - row),
                        plane,
                        box,
                        scratch,
                        rule,
                    )
                for i in range(count):
                    _store_winner(
                        how,
                        spatial,
                        plane,
                        integers(scratch)[i],
                        target + i * out_step,
                        index_target + i * index_step,
                        base,
                        rule.flip,
                    )
                row += most(count, 1)
                if count > 0:
                    continue
                if window.total == 0:
                    store_integer(rule.flip, target, blank)
                    if how[WIDTH] != 0:
                        _store_index(index_target, -1, how[WIDTH])
                    continue
                first = plane + window.offset
                _key, place = _winner(first, box, axes, window.total, rule)
                position = window.position + place
                _store_winner(how, spatial, plane, position, target, index_target, base, rule.flip)
        release(scratch)

    return chunk


def _rule_reader(width, is_float):
    """What reads the rule of ranks of elements of so many bits from a walk's settings."""
    lane, float_lane = lane_types(width, is_float)

    @helper
    def read_rule(how):
        return rule_of(how, RULE, lane, float_lane)

    return read_rule


def lines(width, is_float, rank_width, store=_store_outputs):
    """Chunk that works line by line; an item is ROWS rows of a tile of a plane, or of PITCH planes side by side.

    `rank_width`: bits of a rank with its position, 32, 64 or 128; 0 where no indices are wanted. `store`: of
    `line_chunk`.
    """
    zero = np.int64(0)
    wide = {0: None, 32: np.int32(0), 64: zero, 128: (zero, zero)}[rank_width]
    return line_chunk(_rule_reader(width, is_float), wide, False, TABLE, store)


def packed(width, is_float):
    """Chunk for small planes without indices: see packed_chunk."""
    return packed_chunk(_rule_reader(width, is_float), None, False, pack_elements)


# Columns of a table of boxes, with a row for each axis: the positions that are cut into boxes, how many and which one
# is the first; how many a box has, at most; where the present box begins, and how many it has.
WHOLE, FIRST, STEP_OF_BOX, FROM, COUNT = 0, 1, 2, 3, 4
BOXES_COLUMNS = 5


@helper
def _cut(boxes, axes, limit):
    """Steps along each axis that make boxes of at most `limit` places, which adjoin; returns how many boxes."""
    count = 1
    for d in range(axes - 1, -1, -1):
        axis = axis_of(boxes, d, BOXES_COLUMNS)
        step = most(1, least(axis[WHOLE], limit))
        axis[STEP_OF_BOX] = step
        limit //= step
        count *= ceildiv(axis[WHOLE], step)
    return count


@helper
def _box(boxes, axes, number):
    """Set where a box begins along each axis, and its sizes; returns how many places it has."""
    places = 1
    for d in range(axes - 1, -1, -1):
        axis = axis_of(boxes, d, BOXES_COLUMNS)
        n, step = axis[WHOLE], axis[STEP_OF_BOX]
        parts = ceildiv(n, step)
        number, begin = split(number, parts)
        begin *= step
        count = least(step, n - begin)
        axis[FROM], axis[COUNT] = axis[FIRST] + begin, count
        places *= count
    return places


@helper
def _row_of(boxes, axes, steps, row):
    """Offset of the first place of a row of the present box; `steps`: a column of the table of axes."""
    inner = axes - 1
    offset = axis_of(boxes, inner, BOXES_COLUMNS)[FROM] * axis_of(steps, inner, COLUMNS)[0]
    for d in range(inner - 1, -1, -1):
        axis = axis_of(boxes, d, BOXES_COLUMNS)
        row, digit = split(row, axis[COUNT])
        offset += (axis[FROM] + digit) * axis_of(steps, d, COLUMNS)[0]
    return offset


@helper
def _find_windows(windows, blocks, axes, spatial):
    """Which windows may hold an element of the present block."""
    for d in range(axes):
        axis, block = axis_of(spatial, d, COLUMNS), axis_of(blocks, d, BOXES_COLUMNS)
        begin, stride = block[FROM] + axis[PADDING], axis[STRIDE]
        reach = (axis[WINDOW] - 1) * axis[DILATION]
        first = ceildiv(most(begin - reach, 0), stride)
        last = least((begin + block[COUNT] - 1) // stride, axis[OUT_SIZE] - 1)
        holders = axis_of(windows, d, BOXES_COLUMNS)
        holders[FIRST], holders[WHOLE] = first, most(last - first + 1, 0)


@helper
def _set_finder(finder, how, spatial, windows, planes, plane_step, columns, item_bytes):
    """A walk that finds the positions (without lines the elements, too) of the present windows, packed; its items.

    Of so many planes one after the other, each of `columns` side by side.
    """
    axes = how[SPATIAL]
    for i in range(SETTINGS):
        finder[i] = how[i]
    finder[BATCH] = 1
    finder[WIDTH] = 8
    finder[LANES], finder[LANE_OUT], finder[LANE_INDICES] = columns, item_bytes, 8
    finder[LANE_WEIGHT] = finder[PAST] = 0
    at_once = how[PLANES] if planes > 1 else 1
    finder[PLANES] = at_once
    place = columns
    outputs = 1
    for d in range(axes - 1, -1, -1):
        axis, box = axis_of(spatial, d, COLUMNS), axis_of(windows, d, BOXES_COLUMNS)
        at = SETTINGS + BATCH_COLUMNS + COLUMNS * d
        for i in range(COLUMNS):
            finder[at + i] = axis[i]
        finder[at + OUT_SIZE] = box[COUNT]
        finder[at + PADDING] -= box[FROM] * axis[STRIDE]
        finder[at + OUT_STEP] = place * item_bytes
        finder[at + INDEX_STEP] = place * 8
        place *= box[COUNT]
        outputs *= box[COUNT]
    axis = axis_of(finder, 1, SETTINGS)  # the one of the batch
    axis[0], axis[1], axis[2], axis[3] = planes, plane_step, place * item_bytes, place * 8
    axis[4] = 0  # positions count anew in each
    share, tile = how[ROWS], how[TILE]
    if tile == 0:  # without lines
        return planes * ceildiv(outputs, share)
    rows = axis_of(windows, axes - 2, BOXES_COLUMNS)[COUNT]
    n = axis_of(windows, axes - 1, BOXES_COLUMNS)[COUNT]
    sets = ceildiv(planes, at_once)
    return sets * (outputs // (rows * n)) * ceildiv(rows, share) * ceildiv(n, tile)


class Block(NamedTuple):
    """Positions of a plane, and where what windows give to them goes."""

    to: Any  # of the first one's first lane
    begin: Any  # the first position
    count: Any
    step: Any  # bytes from one position to the next


class FoundRow(NamedTuple):
    """A row of windows, each of so many lanes, with the positions that they found, side by side."""

    found: Any
    given: Any  # their gradients
    count: Any
    step: Any  # bytes from one window's gradient to the next
    lanes: Any
    lane_step: Any


@separate
def _add_found(block, row, wide, kind):
    """Add the gradients of a row of windows to the sums of their positions.

    Amid the chunk this takes 1.4 times as long; so does one loop for both cases.
    """
    found, given = row.found, row.given
    if row.lanes == 1:
        for i in range(row.count):
            position = load_integer(np.int64(0), found + i * 8) - block.begin
            if 0 <= position < block.count:
                value = load_float(kind, given + i * row.step)
                add_to_sum(block.to + position * block.step, 0, value, wide, kind)
        return
    for _ in range(row.count):
        for lane in range(row.lanes):
            position = load_integer(np.int64(0), found + lane * 8) - block.begin
            if 0 <= position < block.count:
                value = load_float(kind, given + lane * row.lane_step)
                add_to_sum(block.to + position * block.step, lane, value, wide, kind)
        found += row.lanes * 8
        given += row.step


@separate
def _put_found(block, row, kind):
    """As _add_found, of windows that have no position in common: to the output itself, which is 0 before."""
    found, given = row.found, row.given
    if row.lanes == 1:
        for i in range(row.count):
            position = load_integer(np.int64(0), found + i * 8) - block.begin
            if 0 <= position < block.count:
                copy_as_sum(kind, block.to + position * block.step, given + i * row.step)
        return
    for _ in range(row.count):
        for lane in range(row.lanes):
            position = load_integer(np.int64(0), found + lane * 8) - block.begin
            if 0 <= position < block.count:
                place = block.to + position * block.step + lane * item_size(kind)
                copy_as_sum(kind, place, given + lane * row.lane_step)
        found += row.lanes * 8
        given += row.step


def _giving_row(give: Any) -> Any:
    """Give the gradients of a row of windows, of planes side by side, place by place, by `give`.

    `spatial` describes the windows that are found, `number` counts their rows. This takes 0.2 to 0.8 of the time of
    _add_found, of windows apart with up to 4 places 0.4 to 0.8 of _put_found.
    """

    @separate
    def give_row(block, row, spatial, axes, number, box, table, wide, kind):
        inner = axes - 1
        axis = axis_of(spatial, inner, COLUMNS)
        places = integers(table)
        outer = _windows(spatial, inner, number, box)
        place_step = axis[DILATION] * axis[WEIGHT]
        found, given = row.found, row.given
        for i in range(row.count):
            first, count = _between(spatial, inner, i, FIRST_POSITION, axis[SIZE])
            start = outer.position + (i * axis[STRIDE] - axis[PADDING]) * axis[WEIGHT]
            start += first * place_step
            held = 0
            for other in range(outer.total):
                _, position = _element(box, inner, other)
                position += start
                for _ in range(count):
                    if block.begin <= position < block.begin + block.count:
                        places[2 * held] = position
                        places[2 * held + 1] = (position - block.begin) * block.step
                        held += 1
                    position += place_step
            give(block.to, table, held, found, given, row.lanes, wide, kind)
            found += row.lanes * 8
            given += row.step

    return give_row


_add_row = _giving_row(add_lanes)
_put_row = _giving_row(put_lanes)


@helper
def _zero_block(out, step, n, columns, kind):
    """Set n positions of so many columns, which adjoin, to 0."""
    row = columns * item_size(kind)
    runs = n
    if step == row:
        row, runs = row * n, 1
    for i in range(runs):
        zero_bytes(out + i * step, row)


@helper
def _write_sums(to, line, runs, run_out, line_step, n, step, spare, past, wide, kind):
    """Store the elements nearest to runs of n adjoining sums, `step` bytes apart; if `past`, past the caches."""
    size = item_size(kind)
    adjoining = step == size
    for r in range(1 if adjoining else runs):
        round_sums(
            to if adjoining else spare,
            run_out,
            line + r * line_step,
            line_step,
            runs if adjoining else 1,
            n,
            past and adjoining,
            wide,
            kind,
        )
        if not adjoining:
            for i in range(n):
                value = load_integer(kind, spare + i * size)
                store_integer(kind, to + r * run_out + i * step, value)


def positions(width, rank_width):
    """Chunk that finds for `gradient` the positions of the greatest elements; `rank_width`: as of `lines`."""
    return lines(width, True, rank_width, _store_positions)


def gradient(dtype, apart, side_by_side):
    """Chunk that adds up, for each input element, what the windows give in which it is the greatest.

    An item is a block of positions, in each of PITCH planes side by side, of SEVERAL such planes (of small ones many:
    0.15 to 0.7 of the time). Its sums are in scratch memory, and all windows that may hold a position of it are looked
    at, so that no two items add to the same element. Those at the edges are looked at again by the next. The chunk at
    the address FIND, of `positions` or `direct`, finds the positions: called so, it is not compiled a second time as a
    part of this one. `apart`: no two windows have a position in common, there is OUT_DENSE, and lanes adjoin in the
    output. `side_by_side`: there are several lanes, which adjoin in the gradients, and MOST_PLACES of a window at most.
    """
    kind = KINDS[dtype]
    wide = np.float32(0) if kind.itemsize == 2 else np.float64(0)
    zero = np.int64(0)
    give_row = _put_row if apart else _add_row

    @entry
    def chunk(walk, x, out, gradients, begin, end):
        how, batch, spatial = _tables(walk)
        axes = how[SPATIAL]
        inner = axes - 1
        weights, index_steps = axis_of(spatial, 1, WEIGHT), axis_of(spatial, 1, INDEX_STEP)
        out_steps = axis_of(spatial, 1, OUT_STEP)
        size, item_bytes = rank_size(wide, kind), item_size(kind)
        lanes, pitch, gradient_step = how[LANES], how[PITCH], how[LANE_INDICES]
        index_step = axis_of(spatial, inner, COLUMNS)[INDEX_STEP]
        groups = ceildiv(lanes, pitch)
        # The planes of an item are along the innermost of the batch axes.
        batch_axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        beside, plane_x, plane_out = batch_axis[0], batch_axis[1], batch_axis[2]
        plane_given, most_planes = batch_axis[3], how[SEVERAL]
        out_step = how[OUT_DENSE]
        sets = ceildiv(beside, most_planes)
        held = most(FOUND, pitch)
        table = 8 * BOXES_COLUMNS * axes
        finder_bytes = 8 * (SETTINGS + BATCH_COLUMNS + COLUMNS * axes)
        sum_bytes = most_planes * how[BLOCK] * pitch * size
        sum_bytes = 0 if apart else aligned(sum_bytes + 2 * VECTOR_BYTES)
        spare_bytes = most(how[BLOCK], pitch) * item_bytes
        box_bytes = 8 * BOX_COLUMNS * axes
        list_bytes = box_bytes + MOST_PLACES * PLACE_BYTES if side_by_side else 0
        sums = allocate(
            sum_bytes
            + finder_bytes
            + 2 * table
            + list_bytes
            + held * (8 + item_bytes)
            + spare_bytes
        )
        finder_at = sums + sum_bytes
        finder, blocks = integers(finder_at), integers(finder_at + finder_bytes)
        windows = integers(finder_at + finder_bytes + table)
        found_windows = axis_of(finder, 1, SETTINGS + BATCH_COLUMNS)
        lists = finder_at + finder_bytes + 2 * table
        found = lists + list_bytes
        values = found + 8 * held
        spare = values + held * item_bytes
        for d in range(axes):
            axis = axis_of(blocks, d, BOXES_COLUMNS)
            axis[WHOLE], axis[FIRST] = axis_of(spatial, d, COLUMNS)[SIZE], 0
        parts = _cut(blocks, axes, how[BLOCK])
        for item in range(begin, end):
            outer, number = split(item, parts)
            block = _box(blocks, axes, number)
            begin_at = _row_of(blocks, axes, weights, zero)
            group, lane_at = split(outer, groups)
            lane_at *= pitch
            rest, plane = split(group, sets)
            plane *= most_planes
            several = least(most_planes, beside - plane)
            columns = least(pitch, lanes - lane_at)
            x_offset, out_offset, gradient_offset, _ = _batch(
                batch, how[BATCH], rest * beside + plane
            )
            source = x + x_offset + lane_at * item_bytes
            target = out + out_offset + lane_at * how[LANE_OUT]
            given = gradients + gradient_offset + lane_at * gradient_step
            # Where what is given goes, of the first plane, and steps to the next plane and position.
            if apart:
                base, plane_step, row_bytes = target + begin_at * out_step, plane_out, out_step
                for p in range(several):
                    _zero_block(base + p * plane_step, out_step, block, columns, kind)
            else:
                base, plane_step, row_bytes = sums, block * pitch * size, pitch * size
                clear_ranks(sums, several * block * pitch, wide, kind)
            _find_windows(windows, blocks, axes, spatial)
            for part in range(_cut(windows, axes, held // (several * pitch))):
                outputs = _box(windows, axes, part)
                items = _set_finder(
                    finder, how, spatial, windows, several, plane_x, columns, item_bytes
                )
                call(how[FIND], finder_at, source, values, found, zero, items)
                at = found
                n = axis_of(windows, inner, BOXES_COLUMNS)[COUNT]
                rows = outputs // n
                for plane_row in range(several * rows):
                    p, row = split(plane_row, rows)
                    start = given + p * plane_given + _row_of(windows, axes, index_steps, row)
                    place = Block(base + p * plane_step, begin_at, block, row_bytes)
                    found_row = FoundRow(at, start, n, index_step, columns, gradient_step)
                    if side_by_side:
                        boxes, places = integers(lists), lists + box_bytes
                        give_row(
                            place, found_row, found_windows, axes, row, boxes, places, wide, kind
                        )
                    elif apart:
                        _put_found(place, found_row, kind)
                    else:
                        _add_found(place, found_row, wide, kind)
                    at += n * columns * 8
            if apart:
                continue
            n = axis_of(blocks, inner, BOXES_COLUMNS)[COUNT]
            step = axis_of(out_steps, inner, COLUMNS)[0]
            if out_step != 0:
                n, step = block, out_step
            # Positions as runs of lanes, or all in one run.
            runs, length, run_out, element_out = n, columns, step, how[LANE_OUT]
            if pitch == 1:
                runs, length, element_out = 1, n, step
            elif columns == pitch and element_out == item_bytes and step == pitch * item_bytes:
                runs, length = 1, n * pitch
            planes_apart = several
            whole = runs == 1 and n == block and element_out == item_bytes
            if whole and plane_out == length * item_bytes:
                planes_apart, length = 1, length * several
            for p in range(planes_apart):
                for row in range(block // n):
                    _write_sums(
                        target + p * plane_out + _row_of(blocks, axes, out_steps, row),
                        base + p * plane_step + row * n * row_bytes,
                        runs,
                        run_out,
                        row_bytes,
                        length,
                        element_out,
                        spare,
                        how[PAST] != 0,
                        wide,
                        kind,
                    )
        if how[PAST] != 0:
            drain_stores()
        release(sums)

    return chunk


@helper
def _clear(table, axes, out, begin, end, lane):
    """Set positions begin to end - 1 of the output to 0."""
    inner = axes - 1
    axis = axis_of(table, inner, BATCH_COLUMNS)
    n, step, size = axis[0], axis[1], item_size(lane)
    position = begin
    while position < end:
        row, digit = split(position, n)
        count = least(n - digit, end - position)
        address = out + _batch(table, inner, row)[0] + digit * step
        if step == size:
            zero_bytes(address, count * size)
        else:
            for i in range(count):
                store_integer(lane, address + i * step, lane)
        position += count


class Given(NamedTuple):
    """Some elements, and their indices, of `width` bytes."""

    elements: Any
    step: Any
    indices: Any
    index_step: Any
    width: Any
    count: Any


@helper
def _index_of(given, i):
    place = given.indices + i * given.index_step
    if given.width == 4:
        return np.int64(load_integer(np.int32(0), place)) & 0xFFFFFFFF
    return load_integer(np.int64(0), place)


@separate
def _put(out, step, table, axes, given, low, high, positions, lane):
    """Put elements at those of their indices that are from low to high - 1; whether one is another of the positions.

    `step`: from one position of the output to the next; 0 where they are told by the table. Amid the chunk this takes
    1.5 times as long.
    """
    size = item_size(lane)
    adjoining = step == size and given.step == size and given.index_step == 8
    stray = False
    if adjoining and given.width == 8:
        # The same with fewer variables: 0.85 of the time.
        for i in range(given.count):
            index = load_integer(np.int64(0), given.indices + i * 8)
            if low <= index < high:
                element = load_integer(lane, given.elements + i * size)
                store_integer(lane, out + index * size, element)
            else:
                stray |= 0 <= index < positions
        return stray
    for i in range(given.count):
        index = _index_of(given, i)
        if low <= index < high:
            element = load_integer(lane, given.elements + i * given.step)
            offset = index * step if step != 0 else _batch(table, axes, index)[0]
            store_integer(lane, out + offset, element)
        else:
            stray |= 0 <= index < positions
    return stray


def unpool(width):
    """Chunk that puts each element where its index says, and 0 elsewhere; an item is ROWS positions of the output.

    Where an item is GIVEN so many elements, it reads no others, and STRAY is set if one of them belongs elsewhere.
    Otherwise each thread reads all and puts its own. Of a repeated index the last value stays.
    """
    lane, _ = lane_types(width, False)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        how, batch, table = _tables(walk)
        axes, inner, positions = how[SPATIAL], how[BATCH] - 1, how[PLANE]
        axis = axis_of(batch, inner, BATCH_COLUMNS)
        n, step, index_step = axis[0], axis[1], axis[3]
        total = n
        for d in range(inner):
            total *= axis_of(batch, d, BATCH_COLUMNS)[0]
        share = how[GIVEN]
        together = 1 if share > 0 else end - begin
        stray = False
        for item in range(begin, end, together):
            low, high = item * how[ROWS], least((item + together) * how[ROWS], positions)
            _clear(table, axes, out, low, high, lane)
            first = item * share
            stop = least(first + share, total) if share > 0 else total
            while first < stop:
                row, digit = split(first, n)
                offset, _, index_offset, _ = _batch(batch, inner, row)
                given = Given(
                    elements=x + offset + digit * step,
                    step=step,
                    indices=indices + index_offset + digit * index_step,
                    index_step=index_step,
                    width=how[WIDTH],
                    count=least(n - digit, stop - first),
                )
                stray |= _put(out, how[DENSE], table, axes, given, low, high, positions, lane)
                first += given.count
        if stray and share > 0:
            how[STRAY] = 1

    return chunk
