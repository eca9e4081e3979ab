# mypy: allow-untyped-defs, no-check-untyped-defs
"""Elements put in the opposite order along an axis, in place, of any width and any layout; strides are in bytes."""

from __future__ import annotations

from axes import AXIS_OTHER_STRIDE, AXIS_STRIDE, Axes, axis_entry, run_at
from compiled import entry, helper
from memory import element_size, load_integer, store_integer
from swapping import swap_adjoining
from walk import integers, lane_types

# A walk is made of these settings, then a table of axes: the strides of one of a pair, and of the other.
RANK = 0  # length of the table
RUN = 1  # pairs of an item
RUN_STEP = 2  # bytes from one of a pair to that of the item's next one,
RUN_OTHER_STEP = 3  # and from the other of it
SETTINGS = 4


@helper
def _swap(one, step, other, other_step, count, lane):
    """Swap so many pairs of elements."""
    size = element_size(lane)
    begin = 0
    if step == size:
        begin = swap_adjoining(one, other, other_step, count, lane)
    for i in range(begin, count):
        at, to = one + i * step, other + i * other_step
        element = load_integer(lane, at)
        store_integer(lane, at, load_integer(lane, to))
        store_integer(lane, to, element)


def reverse(width):
    """Chunk that swaps the elements of pairs, the first of which are at `one` and at `other`; an item is RUN pairs."""
    lane, _ = lane_types(width, False)

    @entry
    def chunk(walk, _x, one, other, begin, end):
        settings = integers(walk)
        pairs = Axes(integers(walk + 8 * SETTINGS), settings[RANK])
        run, run_step, run_other_step = settings[RUN], settings[RUN_STEP], settings[RUN_OTHER_STEP]
        step = axis_entry(pairs, pairs.rank - 1, AXIS_STRIDE)
        other_step = axis_entry(pairs, pairs.rank - 1, AXIS_OTHER_STRIDE)
        item = begin
        while item < end:
            offset, other_offset, count = run_at(pairs, item, end)
            item += count
            if run == 1:
                rows, n, n_step, n_other_step = 1, count, step, other_step
            else:
                rows, n, n_step, n_other_step = count, run, run_step, run_other_step
            for i in range(rows):
                at, to = one + offset + i * step, other + other_offset + i * other_step
                _swap(at, n_step, to, n_other_step, n, lane)

    return chunk
