"""Divisors of averages: how many elements of a window count."""

from __future__ import annotations

from compiled import helper
from memory import ceildiv, least, split
from pool_state import state_size
from sum_line import get_sum, set_sums
from windows import elements_between, reach_of, spatial_axis


@helper
def counted_in_window(spatial, d, output):
    """Elements of a window along axis d that count in its divisor."""
    axis = spatial_axis(spatial, d)
    return elements_between(spatial, d, output, axis.low, axis.high)[1]


@helper
def divisor_of(spatial, axes, row):
    """The divisor of output position `row`, row-major in the first `axes` axes."""
    divisor = 1.0
    for d in range(axes - 1, -1, -1):
        row, digit = split(row, spatial_axis(spatial, d).out_size)
        divisor *= counted_in_window(spatial, d, digit)
    return divisor


@helper
def set_divisors(spatial, d, line, first, count, pitch, kind):
    """Fill a line with the divisors of `count` windows along axis d, from number `first` on, each `pitch` times.

    Those between the edges are alike, and set at once: averages of rows of several tiles take 0.25 to 0.5 of the time.
    """
    axis = spatial_axis(spatial, d)
    begin = ceildiv(axis.low + axis.padding, axis.stride)
    last = axis.high - 1 - reach_of(axis) + axis.padding
    end = last // axis.stride + 1  # at most `begin` where there is none between them
    size = pitch * state_size(kind)
    i = 0
    while i < count:
        output = first + i
        alike = least(end - output, count - i) if begin <= output < end else 1
        counted = float(counted_in_window(spatial, d, output))
        set_sums(line + i * size, alike * pitch, counted, kind)
        i += alike


@helper
def set_products(spatial, line, row, rows, column, columns, kind):
    """Fill a line with the divisors of windows along both of two axes, row by row; behind them are those of columns."""
    size = state_size(kind)
    by_column = line + rows * columns * size
    set_divisors(spatial, 1, by_column, column, columns, 1, kind)
    for i in range(rows):
        by_row = counted_in_window(spatial, 0, row + i)
        for j in range(columns):
            counted = by_row * get_sum(by_column, j, kind)
            set_sums(line + (i * columns + j) * size, 1, counted, kind)
