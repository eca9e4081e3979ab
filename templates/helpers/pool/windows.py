"""Windows over the last axes of a tensor: where one is, and the elements of it that the input has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compiled import inlined
from memory import ceildiv, least, most, split
from walk import _row_finder


class SpatialAxis(NamedTuple):
    """A row of the table `spatial`, which has one for each axis that windows move along, outermost first."""

    size: Any
    out_size: Any
    window: Any
    stride: Any
    dilation: Any
    padding: Any
    step: Any  # bytes in the input, the output and the other array
    out_step: Any
    other_step: Any
    weight: Any  # positions
    low: Any  # positions from low to high - 1 count in the divisor of an average
    high: Any


spatial_axis = _row_finder(SpatialAxis)
SPATIAL_BYTES = 8 * len(SpatialAxis._fields)  # of a row


class BoxAxis(NamedTuple):
    """A row of the table of a box, which has one for each axis."""

    count: Any
    step: Any  # from one element to the next, in bytes and in positions
    weight: Any


box_axis = _row_finder(BoxAxis)
BOX_BYTES = 8 * len(BoxAxis._fields)  # of a row


class Box(NamedTuple):
    """The elements of a window, or some of them, that the input has."""

    table: Any
    axes: Any
    total: Any


FIRST_POSITION = np.int64(0)  # a literal would make another version of what it is passed to


class Window(NamedTuple):
    """A window in some axes."""

    box: Any
    offset: Any  # of the first element of the box
    position: Any
    out: Any  # offset of the window's output
    other: Any  # in the other array


class Stretch(NamedTuple):
    """Outputs side by side along an axis, and the places that their windows span, of which the input may lack some."""

    first: Any
    count: Any
    start: Any  # position of the first place, below 0 in the padding
    low: Any  # places from low to high - 1 are in the input
    high: Any


@inlined
def reach_of(axis):
    """Positions from the first element of a window to its last."""
    return (axis.window - 1) * axis.dilation


@inlined
def span_of(axis, count):
    """How many places so many windows span."""
    return (count - 1) * axis.stride + 1 + reach_of(axis)


@inlined
def stretch_of(axis, first, most_count):
    """So many outputs from number `first` on, or as many as are left."""
    count = least(most_count, axis.out_size - first)
    start, span = first * axis.stride - axis.padding, span_of(axis, count)
    low = least(most(-start, 0), span)
    return Stretch(first, count, start, low, most(least(axis.size - start, span), low))


@inlined
def outputs_of(spatial, axes):
    """Windows in the first `axes` axes."""
    product = 1
    for d in range(axes):
        product *= spatial_axis(spatial, d).out_size
    return product


@inlined
def elements_of(spatial, axes):
    """Places of the input in the first `axes` axes."""
    product = 1
    for d in range(axes):
        product *= spatial_axis(spatial, d).size
    return product


@inlined
def elements_between(spatial, d, output, low, high):
    """(first, count): the elements, by number, of a window along axis d whose positions are low to high - 1."""
    axis = spatial_axis(spatial, d)
    start = output * axis.stride - axis.padding
    before, left = low - start, high - start
    if axis.dilation == 1:
        first = most(before, 0)
        stop = least(axis.window, left)
    else:
        first = ceildiv(most(before, 0), axis.dilation)
        stop = least(axis.window, ceildiv(most(left, 0), axis.dilation))
    return first, most(stop - first, 0)


@inlined
def window_of(spatial, axes, row, table):
    """The window of output position `row`, row-major in the first `axes` axes.

    Fills the table of its box.
    """
    total = 1
    offset = 0
    position = 0
    out_offset = 0
    other_offset = 0
    for d in range(axes - 1, -1, -1):
        axis = spatial_axis(spatial, d)
        row, digit = split(row, axis.out_size)
        first, count = elements_between(spatial, d, digit, FIRST_POSITION, axis.size)
        start = digit * axis.stride - axis.padding + first * axis.dilation
        total *= count
        inside = box_axis(table, d)
        inside.count = count
        inside.step = axis.dilation * axis.step
        inside.weight = axis.dilation * axis.weight
        offset += start * axis.step
        position += start * axis.weight
        out_offset += digit * axis.out_step
        other_offset += digit * axis.other_step
    return Window(Box(table, axes, total), offset, position, out_offset, other_offset)


@inlined
def element_at(box, number):
    """Input offset and position of an element, counted from the first."""
    offset = 0
    position = 0
    for d in range(box.axes - 1, -1, -1):
        inside = box_axis(box.table, d)
        number, digit = split(number, inside.count)
        offset += digit * inside.step
        position += digit * inside.weight
    return offset, position


@inlined
def rows_of(box):
    """The first elements of the rows of a box, which are along its last axis."""
    inner = box.axes - 1
    return Box(box.table, inner, box.total // most(box_axis(box.table, inner).count, 1))
