"""The greatest order key of each of several columns, and its index, with lanes along them: by blocks of rows.

Best keys and numbers of rows stand in the keys' own width, so nothing is widened; these numbers therefore count within
a block, after which those that changed go to the winners.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from axes import AXIS_OTHER_STRIDE, axis_entries, axis_entry, run_at, volume_of
from column_lanes import SEARCHED_ROWS, search_rows_apart
from compiled import helper, inlined
from memory import element_size, least, load_integer, split
from preference import is_preferred
from vectors import prefer_wide_vectors

BLOCK_ROWS = 1024  # rows of columns whose numbers fit the keys
BYTE_ROWS = 256  # of 8 bits


class Listed(NamedTuple):
    """Rows of a block: how far each lies from a column's first element, and its index."""

    offsets: Any  # int64, in bytes
    indices: Any  # int64


class Found(NamedTuple):
    """Addresses of what was found in a block, column by column, in the keys' own width.

    Where no row was better than those before, the row's number is the greatest there is.
    """

    best: Any  # the greatest key
    where: Any  # the number of its row


class Winners(NamedTuple):
    """Of each column the best so far, as int64."""

    keys: Any
    indices: Any


@helper
def search_apart(found, address, offsets, rows, columns, step, ahead, fresh, rule):
    """As search_rows_apart, in a function of its own."""
    prefer_wide_vectors()
    best, where = found
    search_rows_apart(best, where, address, offsets, rows, columns, step, ahead, fresh, rule)


@inlined
def _better(key, index, winners, c, last):
    best = winners.keys[c]
    return (key > best) | ((key == best) & is_preferred(index, winners.indices[c], last))


@helper
def place_of(item, whole, tiles, tile):
    """Part, position in the outer axes, and first column of an item."""
    part, rest = split(item, whole)
    outer, number = split(rest, tiles)
    return part, outer, number * tile


@helper
def list_rows(listed, preference, reduced, overlap, position, stop):
    """List rows from `position` to `stop`, or, where they are not visited in the order of preference, to a run's end.

    How many they are. The last one is listed several times, up to a multiple of SEARCHED_ROWS. Of each run the last row
    begins before the end of that before it: `overlap` tells by how many bytes, and by what index.
    """
    offsets, indices = listed
    n, step, weight = axis_entries(reduced, reduced.rank - 1)
    rows = 0
    while position < stop and (preference.ordered or rows == 0):
        offset, index, count = run_at(reduced, position, stop)
        index += preference.base
        for r in range(count):
            offsets[rows + r] = offset + r * step
            indices[rows + r] = index + r * weight
        rows += count
        position += count
        if position % n == 0:
            offsets[rows - 1] -= overlap[0]
            indices[rows - 1] -= overlap[1]
    for r in range(rows, rows + -rows % SEARCHED_ROWS):
        offsets[r] = offsets[rows - 1]
        indices[r] = indices[rows - 1]
    return rows


@inlined
def _row_number(where, c, rule):
    """The number of the row in which search_rows found the best key of column `c`, and whether it found one."""
    size = element_size(rule.flip)
    none = 0xFF if size == 1 else -1
    number = np.int64(load_integer(rule.flip, where + c * size)) & none
    return number, number != none


@inlined
def first_winners(winners, found, indices, columns, rule):
    """Keys and indices of what search_rows found in the first block."""
    for c in range(columns):
        number, _ = _row_number(found.where, c, rule)
        winners.keys[c] = load_integer(rule.flip, found.best + c * element_size(rule.flip))
        winners.indices[c] = indices[number]


@inlined
def later_winners(winners, found, indices, columns, preference, rule):
    """What search_rows found in a later block takes the place of what is not as good."""
    size = element_size(rule.flip)
    word = 8 // size
    for c in range(0, columns, word):
        if load_integer(np.int64(0), found.where + c * size) == -1:
            continue  # nothing better in this block: 0.9 of the time of bytes
        for d in range(c, least(c + word, columns)):
            number, changed = _row_number(found.where, d, rule)
            key = np.int64(load_integer(rule.flip, found.best + d * size))
            index = indices[number if changed else 0]
            if not preference.ordered:
                changed = _better(key, index, winners, d, preference.last)
            winners.keys[d] = key if changed else winners.keys[d]
            winners.indices[d] = index if changed else winners.indices[d]


@helper
def join_winners(winners, beside, columns, last):
    """Join the winners of the rows that were taken as one, along the axes `beside`, to those of the first."""
    keys, indices = winners
    weight = axis_entry(beside, beside.rank - 1, AXIS_OTHER_STRIDE)
    rows = volume_of(beside)
    row = np.int64(1)  # not a literal, which would make another version of run_at
    while row < rows:
        _, further, count = run_at(beside, row, rows)
        for c in range(row * columns, (row + count) * columns, columns):
            for d in range(columns):
                key, index = keys[c + d], indices[c + d] + further
                better = _better(key, index, winners, d, last)
                keys[d] = key if better else keys[d]
                indices[d] = index if better else indices[d]
            further += weight
        row += count
