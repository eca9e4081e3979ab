"""Windows over the last axes of a tensor: where one is, and the elements of it that the input has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compiled import inlined
from memory import ceildiv, least, most, split
from walk import axis_of

# Columns of the table `spatial`, with a row for each axis that windows move along, outermost first.
SIZE, OUT_SIZE, WINDOW, STRIDE, DILATION, PADDING = 0, 1, 2, 3, 4, 5
STEP, OUT_STEP, OTHER_STEP, WEIGHT = 6, 7, 8, 9  # bytes in input, output and other array; positions
LOW, HIGH = 10, 11  # positions from low to high - 1 count in the divisor of an average
COLUMNS = 12
# Columns of a box, with a row for each axis: how many elements of a window are inside the input, and from one to the
# next the bytes and the positions.
INSIDE, INSIDE_STEP, INSIDE_WEIGHT = 0, 1, 2
BOX_COLUMNS = 3

FIRST_POSITION = np.int64(0)  # a literal would make another version of what it is passed to


class Window(NamedTuple):
    """A window in some axes: the elements of it that the input has."""

    total: Any
    offset: Any  # of the first
    position: Any
    out: Any  # offset of the window's output
    other: Any  # in the other array


@inlined
def elements_between(spatial, d, output, low, high):
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


@inlined
def window_of(spatial, axes, row, box):
    """The window of output position `row`, row-major in the first `axes` axes.

    Fills the box.
    """
    total = 1
    offset = 0
    position = 0
    out_offset = 0
    other_offset = 0
    for d in range(axes - 1, -1, -1):
        axis = axis_of(spatial, d, COLUMNS)
        dilation = axis[DILATION]
        row, digit = split(row, axis[OUT_SIZE])
        first, count = elements_between(spatial, d, digit, FIRST_POSITION, axis[SIZE])
        start = digit * axis[STRIDE] - axis[PADDING] + first * dilation
        total *= count
        inside = axis_of(box, d, BOX_COLUMNS)
        inside[INSIDE] = count
        inside[INSIDE_STEP] = dilation * axis[STEP]
        inside[INSIDE_WEIGHT] = dilation * axis[WEIGHT]
        offset += start * axis[STEP]
        position += start * axis[WEIGHT]
        out_offset += digit * axis[OUT_STEP]
        other_offset += digit * axis[OTHER_STEP]
    return Window(total, offset, position, out_offset, other_offset)


@inlined
def element_at(box, axes, number):
    """Input offset and position of a window's element, counted from the first inside."""
    offset = 0
    position = 0
    for d in range(axes - 1, -1, -1):
        inside = axis_of(box, d, BOX_COLUMNS)
        number, digit = split(number, inside[INSIDE])
        offset += digit * inside[INSIDE_STEP]
        position += digit * inside[INSIDE_WEIGHT]
    return offset, position
