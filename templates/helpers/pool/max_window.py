"""The first greatest element of a window, and of long windows that overlap: see window_group."""

from __future__ import annotations

import numpy as np

from compiled import helper
from key_run import place_in_run, run_key
from memory import element_size
from order_key import load_key
from walk import integers
from window_group import edge_bytes, group_parts, window_group
from windows import Box, box_axis, element_at, rows_of

WINNERS_EDGES = 5  # scratch memory of winners_together, in edge_bytes


@helper
def window_winner(first, box, rule):
    """Key and position of the first greatest element of a box, counted from its first, which is at `first`."""
    inner, rows = box_axis(box.table, box.axes - 1), rows_of(box)
    n, step, weight = inner.count, inner.step, inner.weight
    adjoining = step == element_size(rule.flip)
    best = load_key(first, 0, rule)
    best_position = 0
    for row in range(rows.total):
        offset, position = element_at(rows, row)
        place = 0
        key = best
        if adjoining:
            key = run_key(first + offset, n, rule)
            if key > best:
                place = place_in_run(first + offset, n, np.int64(key), False, rule)
        else:
            for i in range(n):
                other = load_key(first, offset + i * step, rule)
                if other > key:
                    key = other
                    place = i
        if key > best:
            best = key
            best_position = position + place * weight
    return best, best_position


@helper
def _first_greatest(key, position, other, other_position):
    """Of two keys the greater, of equal ones that of the first position, row-major, and the position."""
    if other > key or (other == key and other_position < position):
        return other, other_position
    return key, position


@helper
def _column_winners(keys, positions, first, rows, columns, begin, axis, rule):
    """The greatest keys of some columns over a window's rows, and their positions, from column `begin` on."""
    step, weight = axis.step, axis.weight
    for row in range(rows.total):
        offset, position = element_at(rows, row)
        for i in range(begin, begin + columns):
            key = np.int64(load_key(first, offset + i * step, rule))
            if row == 0 or key > keys[i - begin]:
                keys[i - begin], positions[i - begin] = key, position + i * weight


@helper
def _join_up(keys, positions, begin, end, onward):
    """Each winner from `begin` to before `end` with those before it, of which `onward` steps lead to the next."""
    for i in range(begin + onward, end, onward):
        j = i - onward
        keys[i], positions[i] = _first_greatest(keys[i], positions[i], keys[j], positions[j])


@helper
def winners_together(axis, edge, window, column, limit, plane, scratch, rule):
    """Positions of the first greatest elements of windows whose outputs adjoin along an axis, from `column` on.

    The first of them is `window`, which has elements, and whose box is changed. Returns how many there are, at most
    `limit`; they stand at `scratch`, WINNERS_EDGES. None where no column is in all of them.
    """
    group = window_group(axis, column, limit, edge)
    if group.shared_from >= group.shared_to:
        return 0
    table, axes, _ = window.box
    first, rows = plane + window.offset, rows_of(window.box)

    found = integers(scratch)
    size = edge_bytes(edge)
    before, before_at = integers(scratch + size), integers(scratch + 2 * size)
    behind, behind_at = integers(scratch + 3 * size), integers(scratch + 4 * size)
    columns = group.shared_from - group.low
    _column_winners(before, before_at, first, rows, columns, 0, axis, rule)
    _join_up(before, before_at, columns - 1, -1, -1)
    columns, begin = group.high - group.shared_to, group.shared_to - group.low
    _column_winners(behind, behind_at, first, rows, columns, begin, axis, rule)
    _join_up(behind, behind_at, 0, columns, 1)
    begin = group.shared_from - group.low
    columns = group.shared_to - group.shared_from
    box_axis(table, axes - 1).count = columns
    box = Box(table, axes, rows.total * columns)
    shared, shared_at = window_winner(first + begin * axis.step, box, rule)
    shared_at += begin * axis.weight

    for i in range(group.count):
        key, at = np.int64(shared), shared_at
        part, behind_part = group_parts(axis, group, i)
        if part >= 0:
            key, at = _first_greatest(key, at, before[part], before_at[part])
        if behind_part >= 0:
            key, at = _first_greatest(key, at, behind[behind_part], behind_at[behind_part])
        found[i] = window.position + at
    return group.count
