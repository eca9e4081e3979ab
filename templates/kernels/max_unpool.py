# mypy: allow-untyped-defs, no-check-untyped-defs
"""Elements put at their indices, 0 elsewhere, for elements of any width and any layout; strides are in bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import BATCH_BYTES, batch_axis, offsets_of, places_of
from compiled import entry, helper
from memory import ceildiv, element_size, least, load_index, load_integer, split, store_integer
from walk import integers, lane_types
from zero import zero_bytes

# A walk is made of these settings, then two tables of axes: of the input, with the indices' strides, and of the output.
# That of `lanes` has those of a plane of the input, and of the batch.
GIVEN_AXES = 0  # lengths of the tables
OUT_AXES = 1
INDEX_BYTES = 2  # of an index
POSITIONS = 3  # of the output
OUT_STEP = 4  # bytes from one position of the output to the next, where one stride serves; else 0
SHARE = 5  # positions of an item
GIVEN_SHARE = 6  # elements that an item reads; 0: all
STRAY = 7  # set to 1 if one of them belongs to another item
LANES = 8  # of `lanes`: planes side by side
TOGETHER = 9  # of them those of an item
SETTINGS = 10


@helper
def _tables(walk):
    """The settings, and the two tables."""
    given = walk + 8 * SETTINGS
    settings = integers(walk)
    return settings, integers(given), integers(given + BATCH_BYTES * settings[GIVEN_AXES])


@helper
def _clear(table, axes, out, begin, end, lane):
    """Set positions begin to end - 1 of the output to 0."""
    inner = axes - 1
    axis = batch_axis(table, inner)
    n, step, size = axis.size, axis.step, element_size(lane)
    position = begin
    while position < end:
        row, digit = split(position, n)
        count = least(n - digit, end - position)
        address = out + offsets_of(table, inner, row)[0] + digit * step
        if step == size:
            zero_bytes(address, count * size)
        else:
            for i in range(count):
                store_integer(lane, address + i * step, lane)
        position += count


class Given(NamedTuple):
    """Some elements, and their indices."""

    elements: Any
    step: Any
    indices: Any
    index_step: Any
    index_bytes: Any
    count: Any


@helper
def _put(out, step, table, axes, given, low, high, positions, lane):
    """Put elements at those of their indices that are from low to high - 1; whether one is another of the positions.

    `step`: from one position of the output to the next; 0 where they are told by the table. Amid the chunk this takes
    1.5 times as long.
    """
    size = element_size(lane)
    adjoining = step == size and given.step == size and given.index_step == 8
    stray = False
    if adjoining and given.index_bytes == 8:
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
        index = load_index(given.indices + i * given.index_step, given.index_bytes)
        if low <= index < high:
            element = load_integer(lane, given.elements + i * given.step)
            offset = index * step if step != 0 else offsets_of(table, axes, index)[0]
            store_integer(lane, out + offset, element)
        else:
            stray |= 0 <= index < positions
    return stray


def unpool(width):
    """Chunk that puts each element where its index says, and 0 elsewhere; an item is SHARE positions of the output.

    Where an item has GIVEN_SHARE elements, it reads no others, and STRAY is set if one of them belongs elsewhere.
    Otherwise each thread reads all and puts its own. Of a repeated index the last value stays.
    """
    lane, _ = lane_types(width, False)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        settings, given, table = _tables(walk)
        inner, axes, positions = settings[GIVEN_AXES] - 1, settings[OUT_AXES], settings[POSITIONS]
        axis = batch_axis(given, inner)
        n, step, index_step = axis.size, axis.step, axis.other_step
        total = places_of(given, inner + 1)
        share, own = settings[SHARE], settings[GIVEN_SHARE]
        together = 1 if own > 0 else end - begin
        stray = False
        for item in range(begin, end, together):
            low, high = item * share, least((item + together) * share, positions)
            _clear(table, axes, out, low, high, lane)
            first = item * own
            stop = least(first + own, total) if own > 0 else total
            while first < stop:
                row, digit = split(first, n)
                offset, _, index_offset, _ = offsets_of(given, inner, row)
                some = Given(
                    elements=x + offset + digit * step,
                    step=step,
                    indices=indices + index_offset + digit * index_step,
                    index_step=index_step,
                    index_bytes=settings[INDEX_BYTES],
                    count=least(n - digit, stop - first),
                )
                stray |= _put(
                    out, settings[OUT_STEP], table, axes, some, low, high, positions, lane
                )
                first += some.count
        if stray and own > 0:
            settings[STRAY] = 1

    return chunk


@helper
def _put_lanes(out, step, element, at, index_bytes, count, base, plane, positions, lane):
    """Put an element of each of `count` planes side by side at its index; whether one belongs to another plane.

    Indices of the first plane begin with `base`, those of others `plane` further on each; `step`: from one position of
    the output to the next.
    """
    size = element_size(lane)
    stray = False
    for i in range(count):
        index = load_index(at + i * index_bytes, index_bytes)
        place = index - base - i * plane
        if 0 <= place < plane:
            value = load_integer(lane, element + i * size)
            store_integer(lane, out + place * step + i * size, value)
        else:
            stray |= 0 <= index < positions
    return stray


def lanes(width):
    """Chunk as `unpool` of planes that lie side by side in all arrays, as channels last; an item is TOGETHER of them.

    SHARE is the positions of a plane of the output. STRAY is set if an element belongs to another plane.
    """
    lane, _ = lane_types(width, False)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        settings, given, table = _tables(walk)
        inner, positions = settings[GIVEN_AXES] - 1, settings[POSITIONS]
        index_bytes, size = settings[INDEX_BYTES], element_size(lane)
        batch, axis = batch_axis(table, 0), batch_axis(given, inner)
        n, step, index_step = axis.size, axis.step, axis.other_step
        rows = places_of(given, inner)
        plane, out_step = settings[SHARE], settings[OUT_STEP]
        side_by_side, together = settings[LANES], settings[TOGETHER]
        blocks = ceildiv(side_by_side, together)
        stray = False
        for item in range(begin, end):
            number, block = split(item, blocks)
            beside = block * together
            count = least(together, side_by_side - beside)
            elements = x + number * batch.step + beside * size
            at = indices + number * batch.other_step + beside * index_bytes
            target = out + number * batch.out_step + beside * size
            base = (number * side_by_side + beside) * plane
            for position in range(plane):
                zero_bytes(target + position * out_step, count * size)
            for row in range(rows):
                offset, _, index_offset, _ = offsets_of(given, inner, row)
                for i in range(n):
                    stray |= _put_lanes(
                        target,
                        out_step,
                        elements + offset + i * step,
                        at + index_offset + i * index_step,
                        index_bytes,
                        count,
                        base,
                        plane,
                        positions,
                        lane,
                    )
        if stray:
            settings[STRAY] = 1

    return chunk
