"""Long windows that overlap and whose outputs adjoin in a row: groups, of which what all windows share is read once.

Columns before and behind those that are shared are joined from there outward. A window has what is shared, a part of
what is before and a part of what is behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from compiled import helper
from memory import least, most


class Group(NamedTuple):
    """Windows side by side, and which columns of the input they have."""

    count: Any
    begin: Any  # of the first window, maybe in the padding
    low: Any  # the first column of any window
    shared_from: Any
    shared_to: Any  # not above shared_from where no column is in all windows
    high: Any  # behind the last column of any window


@helper
def edge_bytes(edge):
    """Of 8 bytes for each column before or behind what is shared, or for each window of a group."""
    return 8 * (edge + 1)


@helper
def window_group(axis, column, limit, edge):
    """The windows from the one of output `column` of an axis on: at most `limit`, and `edge` columns apart."""
    size, window, stride = axis.size, axis.window, axis.stride
    count = least(limit, edge // stride + 1)
    begin = column * stride - axis.padding
    last = begin + (count - 1) * stride
    low, high = most(begin, 0), least(last + window, size)
    return Group(count, begin, low, most(last, 0), least(begin + window, size), high)


@helper
def group_parts(axis, group, number):
    """Where a window of a group begins in what is before, and ends in what is behind; -1: it has none of it."""
    start = group.begin + number * axis.stride
    before = most(start, 0)
    behind = least(start + axis.window, axis.size) - group.shared_to - 1
    return before - group.low if before < group.shared_from else -1, most(behind, -1)
