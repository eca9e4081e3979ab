# mypy: allow-untyped-defs, no-check-untyped-defs
"""What the greatest elements of windows get of the windows' gradients, for any float type and layout.

Where they stand is found anew by a chunk of max_pool. Addresses are raw and strides are in bytes. The other array has
the windows' gradients; outputs are as the inputs, not as the windows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import BATCH_BYTES, batch_axis
from beside import PLACE_BYTES, add_lanes, put_lanes
from call_chunk import call
from compiled import entry, helper, inlined
from memory import (
    VECTOR_BYTES,
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    element_size,
    least,
    load_integer,
    most,
    release,
    split,
)
from plane_sets import plane_set, plane_sets
from pool_line import clear_states, copy_element, lane_runs
from pool_settings import (
    BATCH,
    INDEX_BYTES,
    LANE_OTHER,
    LANE_OUT,
    LANE_WEIGHT,
    LANES,
    OWN,
    PAST,
    PITCH,
    PLANES,
    SETTINGS,
    SHARE,
    SPATIAL,
    TILE,
    pool_tables,
    tables_of,
)
from pool_state import state_size
from sum_line import add_to_sum, copy_as_sum, load_float, round_sums
from sums import FLOAT_BITS, Sums
from walk import _row_finder, integers
from windows import (
    BOX_BYTES,
    FIRST_POSITION,
    SPATIAL_BYTES,
    element_at,
    elements_between,
    reach_of,
    spatial_axis,
    window_of,
)
from zero import zero_bytes

FOUND = 1 << 13  # windows whose greatest elements are found together, for the gradient
MOST_PLACES = 16  # of a window whose gradients, of planes side by side, are given place by place

# Settings that are this chunk's own.
BLOCK = OWN  # positions whose sums are in scratch memory, of each of the PITCH planes
FIND = OWN + 1  # the address of the chunk that finds the greatest elements
SEVERAL = OWN + 2  # planes of an item, each of them with PITCH side by side
OUT_DENSE = OWN + 3  # as DENSE, of the output


class Cut(NamedTuple):
    """A row of a table that cuts places into parts, which has one for each axis."""

    whole: Any  # how many places, and which one is the first
    first: Any
    most: Any  # how many a part has at most
    begin: Any  # where the present part begins, and how many it has
    count: Any
    step: Any  # bytes from one to the next, where they are written to or read from


_cut_along = _row_finder(Cut)
CUT_BYTES = 8 * len(Cut._fields)  # of a row


@helper
def _cut(cuts, axes, limit):
    """Set the size along each axis of parts of at most `limit` places, which adjoin; returns how many parts.

    The host counts blocks in the same way.
    """
    count = 1
    for d in range(axes - 1, -1, -1):
        cut = _cut_along(cuts, d)
        cut.most = most(1, least(cut.whole, limit))
        limit //= cut.most
        count *= ceildiv(cut.whole, cut.most)
    return count


@helper
def _take_part(cuts, axes, number):
    """Set where a part begins along each axis, and its sizes; returns how many places it has."""
    places = 1
    for d in range(axes - 1, -1, -1):
        cut = _cut_along(cuts, d)
        n, step = cut.whole, cut.most
        number, begin = split(number, ceildiv(n, step))
        begin *= step
        count = least(step, n - begin)
        cut.begin, cut.count = cut.first + begin, count
        places *= count
    return places


@helper
def _row_of(cuts, axes, row):
    """Offset of the first place of a row of the present part."""
    cut = _cut_along(cuts, axes - 1)
    offset = cut.begin * cut.step
    for d in range(axes - 2, -1, -1):
        cut = _cut_along(cuts, d)
        row, digit = split(row, cut.count)
        offset += (cut.begin + digit) * cut.step
    return offset


@helper
def _first_position(blocks, axes, spatial):
    """The position in its plane at which the present block begins."""
    position = 0
    for d in range(axes):
        position += _cut_along(blocks, d).begin * spatial_axis(spatial, d).weight
    return position


@helper
def _find_windows(windows, blocks, axes, spatial):
    """Which windows may hold an element of the present block."""
    for d in range(axes):
        axis, block = spatial_axis(spatial, d), _cut_along(blocks, d)
        holders = _cut_along(windows, d)
        begin, stride = block.begin + axis.padding, axis.stride
        first = ceildiv(most(begin - reach_of(axis), 0), stride)
        last = least((begin + block.count - 1) // stride, axis.out_size - 1)
        holders.first, holders.whole = first, most(last - first + 1, 0)


@helper
def _set_finder(walk, tables, windows, planes, lanes, element_bytes):
    """A walk that finds the positions (without lines the elements, too) of the present windows, packed; its items.

    Of so many planes one after the other, each of `lanes` side by side.
    """
    settings, axes = tables.settings, tables.settings[SPATIAL]
    finder = integers(walk)
    for i in range(SETTINGS):
        finder[i] = settings[i]
    finder[BATCH] = 1
    _, batch, spatial = pool_tables(walk)
    for i in range(axes * SPATIAL_BYTES // 8):
        spatial[i] = tables.spatial[i]
    finder[INDEX_BYTES] = 8
    finder[LANES], finder[LANE_OUT], finder[LANE_OTHER] = lanes, element_bytes, 8
    finder[LANE_WEIGHT] = finder[PAST] = 0
    at_once = settings[PLANES] if planes > 1 else 1
    finder[PLANES] = at_once
    place = lanes
    outputs = 1
    for d in range(axes - 1, -1, -1):
        axis, part = spatial_axis(spatial, d), _cut_along(windows, d)
        axis.out_size = part.count
        axis.padding -= part.begin * axis.stride
        axis.out_step, axis.other_step = place * element_bytes, place * 8
        place *= part.count
        outputs *= part.count
    axis = batch_axis(batch, 0)
    axis.size, axis.step = planes, tables.planes.step
    axis.out_step, axis.other_step = place * element_bytes, place * 8
    axis.weight = 0  # positions count anew in each
    share, tile = settings[SHARE], settings[TILE]
    if tile == 0:  # without lines
        return planes * ceildiv(outputs, share)
    rows, n = _cut_along(windows, axes - 2).count, _cut_along(windows, axes - 1).count
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


@helper
def _add_found(block, row, kind):
    """Add the gradients of a row of windows to the sums of their positions.

    Amid the chunk this takes 1.4 times as long; so does one loop for both cases.
    """
    found, given = row.found, row.given
    if row.lanes == 1:
        for i in range(row.count):
            position = load_integer(np.int64(0), found + i * 8) - block.begin
            if 0 <= position < block.count:
                value = load_float(given + i * row.step, kind)
                add_to_sum(block.to + position * block.step, 0, value, kind)
        return
    for _ in range(row.count):
        for lane in range(row.lanes):
            position = load_integer(np.int64(0), found + lane * 8) - block.begin
            if 0 <= position < block.count:
                value = load_float(given + lane * row.lane_step, kind)
                add_to_sum(block.to + position * block.step, lane, value, kind)
        found += row.lanes * 8
        given += row.step


@helper
def _put_found(block, row, kind):
    """As _add_found, of windows that have no position in common: to the output itself, which is 0 before."""
    found, given = row.found, row.given
    if row.lanes == 1:
        for i in range(row.count):
            position = load_integer(np.int64(0), found + i * 8) - block.begin
            if 0 <= position < block.count:
                copy_as_sum(block.to + position * block.step, given + i * row.step, kind)
        return
    for _ in range(row.count):
        for lane in range(row.lanes):
            position = load_integer(np.int64(0), found + lane * 8) - block.begin
            if 0 <= position < block.count:
                place = block.to + position * block.step + lane * element_size(kind)
                copy_as_sum(place, given + lane * row.lane_step, kind)
        found += row.lanes * 8
        given += row.step


def _giving_row(give: Any) -> Any:
    """Give the gradients of a row of windows, of planes side by side, place by place, by `give`.

    `spatial` describes the windows that are found, `number` counts their rows. This takes 0.2 to 0.8 of the time of
    _add_found, of disjoint windows with up to 4 places 0.4 to 0.8 of _put_found.
    """

    @helper
    def give_row(block, row, spatial, axes, number, box, table, kind):
        inner = axes - 1
        axis = spatial_axis(spatial, inner)
        places = integers(table)
        outer = window_of(spatial, inner, number, box)
        place_step = axis.dilation * axis.weight
        found, given = row.found, row.given
        for i in range(row.count):
            first, count = elements_between(spatial, inner, i, FIRST_POSITION, axis.size)
            start = outer.position + (i * axis.stride - axis.padding) * axis.weight
            start += first * place_step
            held = 0
            for other in range(outer.box.total):
                _, position = element_at(outer.box, other)
                position += start
                for _ in range(count):
                    if block.begin <= position < block.begin + block.count:
                        places[2 * held] = position
                        places[2 * held + 1] = (position - block.begin) * block.step
                        held += 1
                    position += place_step
            give(block.to, table, held, found, given, row.lanes, kind)
            found += row.lanes * 8
            given += row.step

    return give_row


_add_row = _giving_row(add_lanes)
_put_row = _giving_row(put_lanes)


@helper
def _zero_block(out, step, n, lanes, kind):
    """Set n positions of so many lanes, which adjoin, to 0."""
    row = lanes * element_size(kind)
    runs = n
    if step == row:
        row, runs = row * n, 1
    for i in range(runs):
        zero_bytes(out + i * step, row)


@helper
def _write_sums(to, line, runs, run_out, line_step, n, step, spare, past, kind):
    """Store the elements nearest to runs of n adjoining sums, `step` bytes apart; if `past`, past the caches."""
    size = element_size(kind)
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
            kind,
        )
        if not adjoining:
            for i in range(n):
                copy_element(to + r * run_out + i * step, spare + i * size, kind)


@helper
def _store_block(settings, blocks, block, sums, target, planes, plane_out, spare, kind):
    """Store a block's sums, plane by plane, from `target` on; planes that adjoin as one: 0.75 to 1 of the time."""
    inner = _cut_along(blocks, settings[SPATIAL] - 1)
    pitch, element_bytes, dense = settings[PITCH], element_size(kind), settings[OUT_DENSE]
    row_bytes = pitch * state_size(kind)
    n, step = inner.count, inner.step
    if dense != 0:
        n, step = block, dense
    element_out = step if pitch == 1 else settings[LANE_OUT]
    adjoin = element_out == element_bytes and step == pitch * element_bytes
    runs, length = lane_runs(pitch, planes.lanes, n, adjoin)
    count = planes.count
    whole = runs == 1 and n == block and element_out == element_bytes
    if whole and plane_out == length * element_bytes:
        count, length = 1, length * planes.count
    for p in range(count):
        for row in range(block // n):
            _write_sums(
                target + p * plane_out + _row_of(blocks, settings[SPATIAL], row),
                sums + (p * block + row * n) * row_bytes,
                runs,
                step,
                row_bytes,
                length,
                element_out,
                spare,
                settings[PAST] != 0,
                kind,
            )


class Memory(NamedTuple):
    """Scratch memory of a chunk: addresses."""

    sums: Any  # of a block
    finder: Any  # a walk for the chunk that finds positions
    blocks: Any  # what cuts a plane's positions into parts; then the same of its windows
    windows: Any
    lists: Any  # a box, then the places of a window
    found: Any  # positions
    values: Any  # elements at these, which that chunk stores as well where it has no lines
    spare: Any  # a run that is not yet stored


@inlined
def _allocated(settings, sum_bytes, list_bytes, held, element_bytes):
    """Scratch memory, for `held` positions at once."""
    axes = settings[SPATIAL]
    finder_bytes = 8 * SETTINGS + BATCH_BYTES + SPATIAL_BYTES * axes
    table_bytes = CUT_BYTES * axes
    spare_bytes = most(settings[BLOCK], settings[PITCH]) * element_bytes
    found_bytes = held * (8 + element_bytes)
    sums = allocate(
        sum_bytes + finder_bytes + 2 * table_bytes + list_bytes + found_bytes + spare_bytes
    )
    finder = sums + sum_bytes
    blocks = finder + finder_bytes
    windows = blocks + table_bytes
    lists = windows + table_bytes
    found = lists + list_bytes
    values = found + 8 * held
    return Memory(
        sums, finder, blocks, windows, lists, found, values, values + held * element_bytes
    )


def gradient(dtype, disjoint, side_by_side):
    """Chunk that adds up, for each input element, what the windows give in which it is the greatest.

    An item is a block of positions, in each of PITCH planes side by side, of SEVERAL such planes (of small ones many:
    0.15 to 0.7 of the time). Its sums are in scratch memory, and all windows that may hold a position of it are looked
    at, so that no two items add to the same element. Those at the edges are looked at again by the next. The chunk at
    the address FIND, of `positions` or `direct`, finds the positions: called so, it is not compiled a second time as a
    part of this one. `disjoint`: no two windows have a position in common, there is OUT_DENSE, and lanes adjoin in the
    output (0.35 to 1.15 of the time). `side_by_side`: there are several lanes, which adjoin in the gradients, and
    MOST_PLACES of a window at most.
    """
    kind = Sums(dtype, 32 if FLOAT_BITS[dtype] == 16 else 64)
    zero = np.int64(0)
    give_row = _put_row if disjoint else _add_row

    @entry
    def chunk(walk, x, out, gradients, begin, end):
        tables = tables_of(walk)
        settings, batch, spatial = tables.settings, tables.batch, tables.spatial
        axes = settings[SPATIAL]
        size, element_bytes = state_size(kind), element_size(kind)
        pitch, given_lane_step = settings[PITCH], settings[LANE_OTHER]
        most_planes = settings[SEVERAL]
        sets, plane_out = plane_sets(settings, batch, most_planes), tables.planes.out_step
        out_step = settings[OUT_DENSE]
        held = most(FOUND, pitch)
        sum_bytes = most_planes * settings[BLOCK] * pitch * size
        sum_bytes = 0 if disjoint else aligned(sum_bytes + 2 * VECTOR_BYTES)
        box_bytes = BOX_BYTES * axes
        list_bytes = box_bytes + MOST_PLACES * PLACE_BYTES if side_by_side else 0
        memory = _allocated(settings, sum_bytes, list_bytes, held, element_bytes)
        sums, lists, found, spare = memory.sums, memory.lists, memory.found, memory.spare
        blocks, windows = integers(memory.blocks), integers(memory.windows)
        for d in range(axes):
            axis, cut = spatial_axis(spatial, d), _cut_along(blocks, d)
            cut.whole, cut.first, cut.step = axis.size, 0, axis.out_step
            _cut_along(windows, d).step = axis.other_step
        parts = _cut(blocks, axes, settings[BLOCK])
        for item in range(begin, end):
            number, part_of_plane = split(item, parts)
            block = _take_part(blocks, axes, part_of_plane)
            begin_at = _first_position(blocks, axes, spatial)
            planes = plane_set(settings, batch, sets, number, element_bytes)
            several, lanes = planes.count, planes.lanes
            source, target = x + planes.source, out + planes.out
            given = gradients + planes.other
            # Where what is given goes, of the first plane, and steps to the next plane and position.
            if disjoint:
                base, plane_step, row_bytes = target + begin_at * out_step, plane_out, out_step
                for p in range(several):
                    _zero_block(base + p * plane_step, out_step, block, lanes, kind)
            else:
                base, plane_step, row_bytes = sums, block * pitch * size, pitch * size
                clear_states(sums, several * block * pitch, kind)
            _find_windows(windows, blocks, axes, spatial)
            for part in range(_cut(windows, axes, held // (several * pitch))):
                outputs = _take_part(windows, axes, part)
                items = _set_finder(memory.finder, tables, windows, several, lanes, element_bytes)
                call(settings[FIND], memory.finder, source, memory.values, found, zero, items)
                at = found
                found_windows = pool_tables(memory.finder)[2]
                n = _cut_along(windows, axes - 1).count
                rows = outputs // n
                for plane_row in range(several * rows):
                    p, row = split(plane_row, rows)
                    start = given + p * tables.planes.other_step + _row_of(windows, axes, row)
                    place = Block(base + p * plane_step, begin_at, block, row_bytes)
                    found_row = FoundRow(
                        at, start, n, tables.columns.other_step, lanes, given_lane_step
                    )
                    if side_by_side:
                        boxes, places = integers(lists), lists + box_bytes
                        give_row(place, found_row, found_windows, axes, row, boxes, places, kind)
                    elif disjoint:
                        _put_found(place, found_row, kind)
                    else:
                        _add_found(place, found_row, kind)
                    at += n * lanes * 8
            if not disjoint:
                _store_block(settings, blocks, block, sums, target, planes, plane_out, spare, kind)
        if settings[PAST] != 0:
            drain_stores()
        release(sums)

    return chunk
