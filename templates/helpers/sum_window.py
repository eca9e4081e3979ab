"""Sums and norms of windows, one by one or of a row together, in float64 with the rounding errors of all additions.

Of long windows that overlap, the columns that all of a group share are added up once. Those before and behind them are
added up from there outward, and a window's sum is that of what is shared, one from before and one from behind. Nothing
is subtracted: what a window has not does not go into its sum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from compiled import helper
from memory import item_size, least, most
from pool_walk import (
    BOX_COLUMNS,
    COLUMNS,
    PADDING,
    SIZE,
    STEP,
    STRIDE,
    WINDOW,
    _element,
    _windows,
)
from sum_line import get_sum, load_float, set_sums
from sum_run import RUN_BYTES, RUN_SUMS, add_run, greatest_magnitude
from walk import axis_of

MOST_POWER = 64  # of whole ones; of greater ones float64 holds too few
UNSCALED_POWER = 6  # most p for which float64 holds |x|**p of any x of at most 32 bits
EDGE = 1 << 12  # columns at most by which the windows of a group begin apart, and end
EDGE_BYTES = 8 * (EDGE + 1)  # of their sums, or of those of the windows
WINDOW_BYTES = 5 * EDGE_BYTES + RUN_BYTES  # scratch memory of sums_together


@intrinsic
def doubles(_context: Any, address: Any) -> Any:
    """The float64 from `address` on, to be indexed."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.int64), codegen


@helper
def _plus(result, lost, value):
    """A sum and its rounding errors with an element more (Neumaier)."""
    more = result + value
    if abs(result) >= abs(value):
        lost += (result - more) + value
    else:
        lost += (value - more) + result
    return more, lost


@helper
def _with(result, lost):
    """A sum with its rounding errors, which are none of one that is not finite."""
    return result + lost if math.isfinite(lost) else result


@helper
def _sum(first, box, axes, total, p, top, sums, kind):
    """(sum, rounding errors) of the elements of a window, or of (|x| / top)**p; `sums`: RUN_BYTES of scratch memory."""
    inner = axis_of(box, axes - 1, BOX_COLUMNS)
    n, step = inner[0], inner[1]
    power = int(p) if p <= MOST_POWER else -1
    by_runs = step == item_size(kind) and n >= RUN_SUMS and power == p
    if by_runs:
        set_sums(sums, 2 * RUN_SUMS, 0.0, np.float64(0), kind)
    result = 0.0
    lost = 0.0
    for row in range(total // most(n, 1)):
        place = first + _element(box, axes - 1, row)[0]
        if by_runs:
            add_run(sums, place, n, top, power, kind)
            continue
        for i in range(n):
            value = load_float(kind, place + i * step)
            if p > 0:
                value = (abs(value) / top) ** p
            result, lost = _plus(result, lost, value)
    for i in range(RUN_SUMS if by_runs else 0):
        result, lost = _plus(result, lost, get_sum(sums, i, np.float64(0), kind))
        lost += get_sum(sums, RUN_SUMS + i, np.float64(0), kind)
    return result, lost


@helper
def window_sum(first, box, axes, total, sums, kind):
    """Sum of the elements of a window; `sums` as in _sum."""
    result, lost = _sum(first, box, axes, total, 0.0, 1.0, sums, kind)
    return _with(result, lost)


@helper
def window_norm(first, box, axes, total, p, sums, kind):
    """(sum of |x|**p)**(1 / p) over a window, whatever the magnitudes; `sums` as in _sum."""
    inner = axis_of(box, axes - 1, BOX_COLUMNS)
    n, step = inner[0], inner[1]
    adjoining = step == item_size(kind) and n >= RUN_SUMS
    top = 0.0
    for row in range(total // most(n, 1)):
        place = first + _element(box, axes - 1, row)[0]
        if adjoining:
            value = greatest_magnitude(place, n, kind)
            if math.isnan(value):
                return value
            top = max(top, value)
            continue
        for i in range(n):
            value = abs(load_float(kind, place + i * step))
            if math.isnan(value):
                return value
            top = max(top, value)
    if top == 0.0 or math.isinf(top):
        return top
    result, lost = _sum(first, box, axes, total, p, top, sums, kind)
    return top * _with(result, lost) ** (1.0 / p)


@helper
def _added(value, power):
    """What an element adds: itself, or its magnitude to a whole power."""
    term = abs(value) if power > 0 else value
    for _ in range(1, power):
        term *= abs(value)
    return term


@helper
def _add_columns(totals, losses, first, box, axes, rows, columns, step, p, kind):
    """The sums of some columns over a window's rows, with their rounding errors."""
    for i in range(columns):
        totals[i] = losses[i] = 0.0
    for row in range(rows):
        place = first + _element(box, axes - 1, row)[0]
        for i in range(columns):
            value = load_float(kind, place + i * step)
            totals[i], losses[i] = _plus(totals[i], losses[i], _added(value, int(p)))


@helper
def _add_up(totals, losses, begin, end, onward):
    """Each sum from `begin` to before `end` with those before it, of which `onward` steps lead to the next."""
    for i in range(begin + onward, end, onward):
        lost = losses[i] + losses[i - onward]
        totals[i], losses[i] = _plus(totals[i - onward], lost, totals[i])


@helper
def sums_together(spatial, axes, position, column, limit, plane, box, p, scratch, kind):
    """Sums, or those of |x|**p, of windows whose outputs adjoin in a row, from the one at `position` on.

    Returns how many there are, at most `limit`; they stand at `scratch`, WINDOW_BYTES, as float64. None where no column
    is in all of them.
    """
    inner = axes - 1
    axis = axis_of(spatial, inner, COLUMNS)
    size, window, stride, step = axis[SIZE], axis[WINDOW], axis[STRIDE], axis[STEP]
    together = least(limit, EDGE // stride + 1)
    begin = column * stride - axis[PADDING]
    last = begin + (together - 1) * stride
    low, shared_from = most(begin, 0), most(last, 0)
    shared_to, high = least(begin + window, size), least(last + window, size)
    if shared_from >= shared_to:
        return 0
    whole = _windows(spatial, axes, position, box)
    inside = axis_of(box, inner, BOX_COLUMNS)
    first, rows = plane + whole.offset, whole.total // inside[0]

    found = doubles(scratch)
    before, before_lost = doubles(scratch + EDGE_BYTES), doubles(scratch + 2 * EDGE_BYTES)
    behind, behind_lost = doubles(scratch + 3 * EDGE_BYTES), doubles(scratch + 4 * EDGE_BYTES)
    columns = shared_from - low
    _add_columns(before, before_lost, first, box, axes, rows, columns, step, p, kind)
    _add_up(before, before_lost, columns - 1, -1, -1)
    columns = high - shared_to
    place = first + (shared_to - low) * step
    _add_columns(behind, behind_lost, place, box, axes, rows, columns, step, p, kind)
    _add_up(behind, behind_lost, 0, columns, 1)
    inside[0] = shared_to - shared_from
    place = first + (shared_from - low) * step
    total, sums = rows * inside[0], scratch + 5 * EDGE_BYTES
    shared, shared_lost = _sum(place, box, axes, total, p, 1.0, sums, kind)

    for i in range(together):
        start = begin + i * stride
        result, lost = shared, shared_lost
        at = most(start, 0) - low
        if at < shared_from - low:
            result, lost = _plus(result, lost + before_lost[at], before[at])
        at = least(start + window, size) - shared_to - 1
        if at >= 0:
            result, lost = _plus(result, lost + behind_lost[at], behind[at])
        found[i] = _with(result, lost)
    return together
