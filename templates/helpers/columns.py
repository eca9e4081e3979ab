"""Rows of columns: how many are taken together, and what is fetched ahead."""

from __future__ import annotations

from compiled import inlined
from memory import NEAR_STEPS, least, most
from target import by_single_rows, bytes_ahead

AHEAD_OF_COLUMNS = 16384  # bytes fetched ahead, of rows of columns
ROWS_AHEAD = 32  # such rows, at most
SINGLE_BYTES = 1 << 14  # rows of so many are no longer taken one by one


@inlined
def rows_ahead(row_bytes, together):
    """How many rows are fetched ahead, of which up to so many are taken together."""
    return least(most(AHEAD_OF_COLUMNS // row_bytes, together), ROWS_AHEAD)


@inlined
def apart_ahead(step, size, rows):
    """How far ahead columns of so many rows are fetched that lie `step` bytes apart; 0: they are not.

    They are where they lie side by side, and are not read as whole vectors, which is in the order of memory.
    """
    return bytes_ahead() if step > NEAR_STEPS[-1] * size and rows * size <= step else 0


@inlined
def one_by_one(row_step, row_bytes):
    """Whether rows, `row_step` bytes apart, are taken one by one if memory is waited for: it is read in order then."""
    return by_single_rows() and row_step == row_bytes < SINGLE_BYTES


@inlined
def list_ahead(offsets, rows, end, ahead, row_step, goes_on, first, top_row, away):
    """Add rows to be fetched to a list of `rows` rows, from number `end` on.

    These are the tile's next ones if it `goes_on`; else the first ones of the next tile, `away` bytes from this tile's,
    with which the list still begins in the `first` block, where it may repeat itself; later `top_row` tells the offset
    of the first of them.
    """
    for r in range(ahead):
        if goes_on:
            further = offsets[rows - 1] + (r + 1) * row_step
        elif first:
            further = offsets[r] + away
        else:
            further = top_row + r * row_step + away
        offsets[end + r] = further
