"""Tables of axes in the block of int64 that tells a chunk what to do."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from compiled import inlined
from memory import least, split
from walk import integers

AXIS_BYTES = 24  # of a row of a table


@inlined
def _two_tables(walk, settings, kept, reduced):
    """The `settings` numbers a walk begins with, then its tables kept and reduced, as (integers, rows).

    Their lengths are the settings number `kept` and `reduced`.
    """
    how = integers(walk)
    kept_at = walk + 8 * settings
    reduced_at = kept_at + AXIS_BYTES * how[kept]
    return how, (integers(kept_at), how[kept]), (integers(reduced_at), how[reduced])


@intrinsic
def _entry(_context: Any, table: Any, d: Any, column: Any) -> Any:
    """One number of a table of axes (integers, rows)."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        table, d, column = values
        row = builder.mul(d, d.type(AXIS_BYTES // 8))
        return builder.load(
            builder.gep(builder.extract_value(table, 0), [builder.add(row, column)])
        )

    return types.int64(table, types.int64, types.int64), codegen


@inlined
def _axis(table, d):
    return _entry(table, d, 0), _entry(table, d, 1), _entry(table, d, 2)


@inlined
def _unravel(table, count, position):
    """Sums of (stride, second stride) for a row-major position in the first `count` axes."""
    first = 0
    second = 0
    for d in range(count - 1, 0, -1):
        size, stride, other = _axis(table, d)
        outer = position // size  # not `split`: marks of columns take 1.1 times as long
        digit = position - outer * size
        position = outer
        first += digit * stride
        second += digit * other
    if count > 0:
        first += position * _entry(table, 0, 1)
        second += position * _entry(table, 0, 2)
    return first, second


@inlined
def _run_at(table, position, end):
    """As _unravel for a position in all axes, and how many from there to `end` lie along the innermost axis."""
    inner = table[1] - 1
    size, stride, other = _axis(table, inner)
    outer, digit = 0, position
    if inner > 0:  # no division before each of many short rows (1.1 times)
        outer, digit = split(position, size)
    first, second = _unravel(table, inner, outer)
    return first + digit * stride, second + digit * other, least(size - digit, end - position)


@inlined
def _volume(table):
    """Elements of all axes together."""
    total = 1
    for d in range(table[1]):
        total *= _entry(table, d, 0)
    return total
