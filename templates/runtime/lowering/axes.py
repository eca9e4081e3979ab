"""Axes as a kernel walks them: byte strides, merged where one stride serves, none of size 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Axis(NamedTuple):
    """One axis: its size, the input's stride, and another stride (the output's, or the index weight)."""

    size: int
    stride: int
    other_stride: int


def ceildiv(n: int, size: int) -> int:
    """How many pieces of `size` it takes to hold n.

    >>> ceildiv(8, 4), ceildiv(9, 4)
    (2, 3)
    """
    return -(-n // size)


def evened(n: int, most: int) -> int:
    """The least size of pieces that cuts n into as few as pieces of size `most` do.

    Read the other way, where n is cut into `most` pieces of one size: how many of them are not empty.

    >>> evened(100, 30), evened(10, 8)
    (25, 5)
    """
    return ceildiv(n, ceildiv(n, most))


def coalesce(axes: Iterable[Axis]) -> list[Axis]:
    """Drop axes of size 1 and merge neighbours that one stride serves.

    >>> coalesce([Axis(2, 12, 6), Axis(1, 99, 99), Axis(3, 4, 2)])
    [Axis(size=6, stride=4, other_stride=2)]
    """
    return [Axis(*axis) for axis in merge(axes)]


def merge(axes: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Axes as (size, steps..), neighbours merged where every step allows, none of size 1."""
    merged: list[tuple[int, ...]] = []
    for size, *steps in axes:
        if size == 1:
            continue
        whole = size
        if merged and merged[-1][1:] == tuple(step * size for step in steps):
            whole *= merged.pop()[0]
        merged.append((whole, *steps))
    return merged


def reverse(axis: Axis) -> tuple[Axis, int, int]:
    """The axis walked from its other end, and how far both of its starting points move."""
    steps = axis.size - 1
    flipped = Axis(axis.size, -axis.stride, -axis.other_stride)
    return flipped, steps * axis.stride, steps * axis.other_stride


def by_memory(axes: Iterable[Axis]) -> list[Axis]:
    """The greatest input stride first, so that memory is walked forward in the innermost loops."""
    return sorted(axes, key=lambda axis: -abs(axis.stride))


def elements(axes: Iterable[Axis]) -> int:
    """How many elements lie along these axes."""
    return math.prod(axis.size for axis in axes)


def table(axes: Sequence[Axis]) -> Sequence[Axis]:
    """Axes as a kernel reads them; at least one row."""
    return axes or [Axis(1, 0, 0)]
