"""Rows of columns: how many are taken together, and what is fetched ahead."""

from __future__ import annotations

from apart import NEAR_STEPS
from compiled import inlined
from memory import least, most
from target import by_single_rows, bytes_ahead

AHEAD_OF_COLUMNS = 16384  # bytes fetched ahead, of rows of columns
ROWS_AHEAD = 32  # such rows, at most
SINGLE_BYTES = 1 << 14  # rows of so many are no longer taken one by one


@inlined
def rows_ahead(row_bytes, together):
    """How many rows ahead is fetched: at least as many as are taken `together`."""
    return least(most(AHEAD_OF_COLUMNS // row_bytes, together), ROWS_AHEAD)


@inlined
def apart_ahead(step, size, rows):
    """How many bytes ahead is fetched of columns that lie `step` bytes apart; 0: nothing is.

    Only of columns that lie one behind the other in memory, all rows of each, and too far apart to be picked out of
    whole vectors.
    """
    return bytes_ahead() if step > NEAR_STEPS[-1] * size and rows * size <= step else 0


@inlined
def one_by_one(row_step, row_bytes):
    """Whether rows had better be taken one by one beyond the caches: those that adjoin are then read in order."""
    return by_single_rows() and row_step == row_bytes < SINGLE_BYTES


@inlined
def list_ahead(offsets, rows, end, ahead, row_step, goes_on, first, top_row, away):
    """Append to a list of `rows` rows the offsets of `ahead` more, from number `end` on, that are only fetched.

    If the tile `goes_on`, these are its next rows, else the first rows of the next tile, which lies `away` bytes from
    this one. In a tile's `first` block the list begins with such rows, and is read again if it has too few; in later
    blocks only the offset of the first one is known, `top_row`.
    """
    for r in range(ahead):
        if goes_on:
            further = offsets[rows - 1] + (r + 1) * row_step
        elif first:
            further = offsets[r] + away
        else:
            further = top_row + r * row_step + away
        offsets[end + r] = further
