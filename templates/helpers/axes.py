"""Tables of axes in the block of int64 that tells a chunk what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic

from compiled import inlined
from memory import least, split
from walk import integers

AXIS_SIZE, AXIS_STRIDE, AXIS_OTHER_STRIDE = 0, 1, 2  # columns of a table
AXIS_BYTES = 24  # of a row of it


class Axes(NamedTuple):
    """A table of axes."""

    entries: Any  # its integers, row by row
    rank: int


@inlined
def two_tables(walk, count, kept, reduced):
    """The `count` settings a walk begins with, then its tables kept and reduced.

    Their ranks are the settings number `kept` and `reduced`.
    """
    settings = integers(walk)
    kept_at = walk + 8 * count
    reduced_at = kept_at + AXIS_BYTES * settings[kept]
    kept_axes = Axes(integers(kept_at), settings[kept])
    return settings, kept_axes, Axes(integers(reduced_at), settings[reduced])


@intrinsic
def axis_entry(_context: Any, table: Any, d: Any, column: Any) -> Any:
    """One number of a table of axes."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        table, d, column = values
        row = builder.mul(d, d.type(AXIS_BYTES // 8))
        return builder.load(
            builder.gep(builder.extract_value(table, 0), [builder.add(row, column)])
        )

    return types.int64(table, types.int64, types.int64), codegen


@inlined
def axis_entries(table, d):
    size, stride = axis_entry(table, d, AXIS_SIZE), axis_entry(table, d, AXIS_STRIDE)
    return size, stride, axis_entry(table, d, AXIS_OTHER_STRIDE)


@inlined
def unravel(table, count, position):
    """Sums of (stride, other stride) for a row-major position in the first `count` axes."""
    first = 0
    second = 0
    for d in range(count - 1, 0, -1):
        size, stride, other = axis_entries(table, d)
        outer = position // size  # not `split`: marks of columns take 1.1 times as long
        digit = position - outer * size
        position = outer
        first += digit * stride
        second += digit * other
    if count > 0:
        first += position * axis_entry(table, 0, AXIS_STRIDE)
        second += position * axis_entry(table, 0, AXIS_OTHER_STRIDE)
    return first, second


@inlined
def run_at(table, position, end):
    """As unravel for a position in all axes, and how many from there to `end` lie along the innermost axis."""
    inner = table.rank - 1
    size, stride, other = axis_entries(table, inner)
    outer, digit = 0, position
    if inner > 0:  # no division before each of many short rows (1.1 times)
        outer, digit = split(position, size)
    first, second = unravel(table, inner, outer)
    return first + digit * stride, second + digit * other, least(size - digit, end - position)


@inlined
def volume_of(table):
    """Elements of all axes together."""
    total = 1
    for d in range(table.rank):
        total *= axis_entry(table, d, AXIS_SIZE)
    return total
