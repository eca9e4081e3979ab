"""The greatest order key of one group, and the index of its element, with lanes along the group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from axes import (
    AXIS_OTHER_STRIDE,
    AXIS_SIZE,
    Axes,
    axis_entries,
    axis_entry,
    run_at,
    unravel,
    volume_of,
)
from compiled import helper
from key_run import pack, place_in_run, run_key
from memory import VECTOR_BYTES, ceildiv, element_size, least
from order_key import load_key
from preference import is_preferred
from row_lanes import greatest_place_of_many
from target import bytes_ahead

SHORT_BYTES = 127 * 64  # of a row searched without blocks: numbers of its vectors fit a byte
BLOCK_BYTES = 4096  # scanned for its greatest key before the position matters
LEAST_PACKED = 48  # elements of a run that had better be packed: fewer take up to 1.4 times as long
TIES = 64  # greatest elements of a dense group that are compared: 0.1 to 0.2 of the time of floats
RUN_ELEMENTS = 4  # loaded one by one while a short run is searched


class Preferred(NamedTuple):
    """The axes of a dense group in the order of preference."""

    axes: Axes
    at: Any  # bytes from the group's first element to the first of these
    first_index: Any  # of that


@helper
def search_row(preference, reduced, x, rule, begin, end):
    """(key, index) of positions begin to end of one group whose innermost runs are contiguous.

    Of a long run only the greatest key of each block is computed, and the one block that holds the winner is searched.
    What comes after an element that none can beat is not looked at.
    """
    size = element_size(rule.flip)
    block = BLOCK_BYTES // size
    weight = axis_entry(reduced, reduced.rank - 1, AXIS_OTHER_STRIDE)
    best = np.int64(0)
    index = 0
    none = True
    position = begin
    while position < end:
        offset, base, count = run_at(reduced, position, end)
        base += preference.base
        address = x + offset
        position += count
        short = VECTOR_BYTES <= count * size <= SHORT_BYTES
        place = 0
        found = 0
        if short:
            key, place = greatest_place_of_many(
                address, count, bytes_ahead(), preference.late, rule
            )
        else:
            key = np.int64(0)
            for first in range(0, count, block):
                some = least(count - first, block)
                block_key = np.int64(run_key(address + first * size, some, rule))
                if first == 0 or block_key > key or (preference.late and block_key == key):
                    key = block_key
                    found = first
                if key == preference.ceiling and not preference.late:
                    break
        if none or key > best or (key == best and not preference.ordered):
            if not short:
                some = least(count - found, block)
                start = address + found * size
                place = found + place_in_run(start, some, key, preference.late, rule)
            key_index = base + place * weight
            if none or key > best or is_preferred(key_index, index, preference.last):
                none = False
                best = key
                index = key_index
        if best == preference.ceiling and preference.ordered:
            break
    return best, index


@helper
def _first_of_key(preferred, x, key, limit, rule, begin, end):
    """Index of the first element, in the order of preference, whose key is `key`; and whether it is found.

    Of a dense group's places `begin` to `end` in memory; about `limit` elements are looked at.
    """
    axes = preferred.axes
    _, step, weight = axis_entries(axes, axes.rank - 1)
    x += preferred.at
    size = element_size(rule.flip)
    volume = volume_of(axes)
    # Literals would make other versions of what they are passed to.
    position = looked = np.int64(0)
    while position < volume and looked < limit:
        offset, index, count = run_at(axes, position, volume)
        position += count
        # The elements of this run that lie within the part: those before it, and those before its end.
        place = (preferred.at + offset) // size
        before, until = begin - place, end - place
        if step < 0:
            before, until = 1 - until, 1 - before
        elements = abs(step) // size  # from one to the next
        first = ceildiv(before, elements) if before > 0 else 0
        stop = least(count, ceildiv(until, elements)) if until > 0 else 0
        for i in range(first, stop):
            if np.int64(load_key(x + offset, i * step, rule)) == key:
                return preferred.first_index + index + i * weight, True
        looked += 1 + stop - least(first, stop)
    return 0, False


@helper
def search_dense_row(preference, reduced, preferred, x, rule, begin, end):
    """As search_row, of a dense group: 0.01 to 0.3 of the time of short runs; and whether the index was found.

    Of several greatest elements a few are compared; of more, one is soon met in the order of preference, if they are
    not all at its end. Then all runs are searched, which takes twice as long at most.
    """
    size = element_size(rule.flip)
    block = BLOCK_BYTES // size
    best = np.int64(0)
    first = last = begin
    for start in range(begin, end, block):
        key = np.int64(run_key(x + start * size, least(end - start, block), rule))
        if start == begin or key > best:
            best = key
            first = start
        if key == best:
            last = start
    first += place_in_run(x + first * size, least(end - first, block), best, False, rule)
    last += place_in_run(x + last * size, least(end - last, block), best, True, rule)
    index = unravel(reduced, reduced.rank, first)[1]
    place = first
    ties = 0
    while place < last and ties < TIES:
        place += 1
        place += place_in_run(x + place * size, last - place + 1, best, False, rule)
        other = unravel(reduced, reduced.rank, place)[1]
        if is_preferred(other, index, preference.last):
            index = other
        ties += 1
    if place < last:
        runs = ceildiv(end - begin, axis_entry(reduced, reduced.rank - 1, AXIS_SIZE))
        limit = least(RUN_ELEMENTS * runs, end - begin)
        met, found = _first_of_key(preferred, x, best, limit, rule, begin, end)
        if found:
            return best, met, True
    return best, preference.base + index, place >= last


@helper
def _greatest_apart(address, step, count, rule):
    """The greatest key of elements that lie `step` bytes apart, and its place among them."""
    key = load_key(address, 0, rule)
    place = 0
    for i in range(1, count):
        other = load_key(address, i * step, rule)
        if other > key:
            key = other
            place = i
    return np.int64(key), place


@helper
def search_strided_row(preference, reduced, x, packed, rule, begin, end):
    """(key, index) of positions begin to end of one group; blocks of long runs are packed: 0.12 to 1 of the time."""
    size = element_size(rule.flip)
    block = BLOCK_BYTES // size
    _, step, weight = axis_entries(reduced, reduced.rank - 1)
    best = np.int64(0)
    index = 0
    none = True
    position = begin
    while position < end:
        offset, base, count = run_at(reduced, position, least(end, position + block))
        base += preference.base
        address = x + offset
        position += count
        packs = count >= LEAST_PACKED
        place = 0
        if packs:
            pack(packed, address, step, count, rule.flip)
            key = np.int64(run_key(packed, count, rule))
        else:
            key, place = _greatest_apart(address, step, count, rule)
        if none or key > best or (key == best and not preference.ordered):
            if packs:
                place = place_in_run(packed, count, key, False, rule)
            key_index = base + place * weight
            if none or key > best or is_preferred(key_index, index, preference.last):
                none = False
                best = key
                index = key_index
        if best == preference.ceiling and preference.ordered:
            break
    return best, index
