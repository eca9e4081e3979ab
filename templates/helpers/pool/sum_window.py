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
from memory import element_size
from sum_line import get_sum, load_float, set_sums
from sum_run import RUN_SUMS, add_run, greatest_magnitude
from window_group import edge_bytes, group_parts, window_group
from windows import Box, box_axis, element_at, rows_of

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
def _sum(first, box, p, top, sums, kind):
    """(sum, rounding errors) of the elements of a box, the first of which is at `first`, or of (|x| / top)**p.

    `sums`: RUN_BYTES of scratch memory; `kind`: sums in float64.
    """
    inner, rows = box_axis(box.table, box.axes - 1), rows_of(box)
    n, step = inner.count, inner.step
    power = int(p) if p <= MOST_POWER else -1
    by_runs = step == element_size(kind) and n >= RUN_SUMS and power == p
    if by_runs:
        set_sums(sums, 2 * RUN_SUMS, 0.0, kind)
    result = 0.0
    lost = 0.0
    for row in range(rows.total):
        place = first + element_at(rows, row)[0]
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
def window_sum(first, box, sums, kind):
    """Sum of the elements of a box; see _sum."""
    result, lost = _sum(first, box, 0.0, 1.0, sums, kind)
    return _with(result, lost)


@helper
def window_norm(first, box, p, sums, kind):
    """(sum of |x|**p)**(1 / p) over a box, whatever the magnitudes; see _sum."""
    inner, rows = box_axis(box.table, box.axes - 1), rows_of(box)
    n, step = inner.count, inner.step
    adjoining = step == element_size(kind) and n >= RUN_SUMS
    top = 0.0
    for row in range(rows.total):
        place = first + element_at(rows, row)[0]
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
    result, lost = _sum(first, box, p, top, sums, kind)
    return top * _with(result, lost) ** (1.0 / p)


@helper
def _added(value, power):
    """What an element adds: itself, or its magnitude to a whole power."""
    term = abs(value) if power > 0 else value
    for _ in range(1, power):
        term *= abs(value)
    return term


@helper
def _add_columns(totals, losses, first, rows, columns, step, p, kind):
    """The sums of some columns over a window's rows, with their rounding errors."""
    for i in range(columns):
        totals[i] = losses[i] = 0.0
    for row in range(rows.total):
        place = first + element_at(rows, row)[0]
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
def sums_together(axis, edge, window, column, limit, plane, p, scratch, kind):
    """Sums, or those of |x|**p, of windows whose outputs adjoin along an axis, from `column` on.

    The first of them is `window`, whose box is changed. Returns how many there are, at most `limit`; they stand at
    `scratch` as float64. None where no column is in all of them.
    """
    group = window_group(axis, column, limit, edge)
    if group.shared_from >= group.shared_to:
        return 0
    step = axis.step
    table, axes, _ = window.box
    first, rows = plane + window.offset, rows_of(window.box)

    found = doubles(scratch)
    size = edge_bytes(edge)
    before, before_lost = doubles(scratch + size), doubles(scratch + 2 * size)
    behind, behind_lost = doubles(scratch + 3 * size), doubles(scratch + 4 * size)
    columns = group.shared_from - group.low
    _add_columns(before, before_lost, first, rows, columns, step, p, kind)
    _add_up(before, before_lost, columns - 1, -1, -1)
    columns = group.high - group.shared_to
    place = first + (group.shared_to - group.low) * step
    _add_columns(behind, behind_lost, place, rows, columns, step, p, kind)
    _add_up(behind, behind_lost, 0, columns, 1)
    columns = group.shared_to - group.shared_from
    box_axis(table, axes - 1).count = columns
    box, sums = Box(table, axes, rows.total * columns), scratch + SUMS_EDGES * size
    place = first + (group.shared_from - group.low) * step
    shared, shared_lost = _sum(place, box, p, 1.0, sums, kind)

    for i in range(group.count):
        result, lost = shared, shared_lost
        part, behind_part = group_parts(axis, group, i)
        if part >= 0:
            result, lost = _plus(result, lost + before_lost[part], before[part])
        if behind_part >= 0:
            result, lost = _plus(result, lost + behind_lost[behind_part], behind[behind_part])
        found[i] = _with(result, lost)
    return group.count
