"""Sums and norms of windows, one by one or by groups, in float64 with the rounding errors of all additions.

Of groups see window_group. Nothing is subtracted: what a window has not does not go into its sum.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from compiled import helper
from memory import element_size, most
from sum_line import get_sum, load_float, set_sums
from sum_run import RUN_SUMS, add_run, greatest_magnitude
from walk import axis_of
from window_group import edge_bytes, group_parts, window_group
from windows import (
    BOX_COLUMNS,
    INSIDE,
    INSIDE_STEP,
    element_at,
    spatial_axis,
    window_of,
)

MOST_POWER = 64  # of greater ones float64 holds too few
SUMS_EDGES = 5  # scratch memory of sums_together, in edge_bytes; RUN_BYTES come on top


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
    """(sum, rounding errors) of the elements of a window, or of (|x| / top)**p.

    `sums`: RUN_BYTES of scratch memory; `kind`: sums in float64.
    """
    inner = axis_of(box, axes - 1, BOX_COLUMNS)
    n, step = inner[INSIDE], inner[INSIDE_STEP]
    power = int(p) if p <= MOST_POWER else -1
    by_runs = step == element_size(kind) and n >= RUN_SUMS and power == p
    if by_runs:
        set_sums(sums, 2 * RUN_SUMS, 0.0, kind)
    result = 0.0
    lost = 0.0
    for row in range(total // most(n, 1)):
        place = first + element_at(box, axes - 1, row)[0]
        if by_runs:
            add_run(sums, place, n, top, power, kind)
            continue
        for i in range(n):
            value = load_float(place + i * step, kind)
            if p > 0:
                value = (abs(value) / top) ** p
            result, lost = _plus(result, lost, value)
    for i in range(RUN_SUMS if by_runs else 0):
        result, lost = _plus(result, lost, get_sum(sums, i, kind))
        lost += get_sum(sums, RUN_SUMS + i, kind)
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
    n, step = inner[INSIDE], inner[INSIDE_STEP]
    adjoining = step == element_size(kind) and n >= RUN_SUMS
    top = 0.0
    for row in range(total // most(n, 1)):
        place = first + element_at(box, axes - 1, row)[0]
        if adjoining:
            value = greatest_magnitude(place, n, kind)
            if math.isnan(value):
                return value
            top = max(top, value)
            continue
        for i in range(n):
            value = abs(load_float(place + i * step, kind))
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
        place = first + element_at(box, axes - 1, row)[0]
        for i in range(columns):
            value = load_float(place + i * step, kind)
            totals[i], losses[i] = _plus(totals[i], losses[i], _added(value, int(p)))


@helper
def _add_up(totals, losses, begin, end, onward):
    """Each sum from `begin` to before `end` with those before it, of which `onward` steps lead to the next."""
    for i in range(begin + onward, end, onward):
        lost = losses[i] + losses[i - onward]
        totals[i], losses[i] = _plus(totals[i - onward], lost, totals[i])


@helper
def sums_together(spatial, axes, edge, position, column, limit, plane, box, p, scratch, kind):
    """Sums, or those of |x|**p, of windows whose outputs adjoin in a row, from the one at `position` on.

    Returns how many there are, at most `limit`; they stand at `scratch` as float64. None where no column
    is in all of them.
    """
    inner = axes - 1
    axis = spatial_axis(spatial, inner)
    step = axis.step
    group = window_group(axis, column, limit, edge)
    if group.shared_from >= group.shared_to:
        return 0
    whole = window_of(spatial, axes, position, box)
    inside = axis_of(box, inner, BOX_COLUMNS)
    first, rows = plane + whole.offset, whole.total // inside[INSIDE]

    found = doubles(scratch)
    size = edge_bytes(edge)
    before, before_lost = doubles(scratch + size), doubles(scratch + 2 * size)
    behind, behind_lost = doubles(scratch + 3 * size), doubles(scratch + 4 * size)
    columns = group.shared_from - group.low
    _add_columns(before, before_lost, first, box, axes, rows, columns, step, p, kind)
    _add_up(before, before_lost, columns - 1, -1, -1)
    columns = group.high - group.shared_to
    place = first + (group.shared_to - group.low) * step
    _add_columns(behind, behind_lost, place, box, axes, rows, columns, step, p, kind)
    _add_up(behind, behind_lost, 0, columns, 1)
    inside[INSIDE] = group.shared_to - group.shared_from
    place = first + (group.shared_from - group.low) * step
    total, sums = rows * inside[INSIDE], scratch + SUMS_EDGES * size
    shared, shared_lost = _sum(place, box, axes, total, p, 1.0, sums, kind)

    for i in range(group.count):
        result, lost = shared, shared_lost
        part, behind_part = group_parts(axis, group, i)
        if part >= 0:
            result, lost = _plus(result, lost + before_lost[part], before[part])
        if behind_part >= 0:
            result, lost = _plus(result, lost + behind_lost[behind_part], behind[behind_part])
        found[i] = _with(result, lost)
    return group.count
