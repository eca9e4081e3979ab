"""Axes as a kernel walks them: byte strides, merged where one stride serves, none of size 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specops.tensor import Tensor

CACHE_LINE = 64  # bytes
PLANE_BYTES = 1 << 14  # of its cache lines at most: larger planes take 1.0 to 1.2 of the time
NARROW_ROWS = 64  # most rows of a small plane whose rows fill less than half a cache line
FEW_ROWS = 10  # most rows of long planes, which are cut: more may want the same places of the first-level cache
CUT_BYTES = 1 << 11  # of a row of what such planes are cut into
# Bytes of inputs and outputs together from which outputs may go past the caches: see goes_past.
MOVED_PAST_BYTES = 3 << 23
CORE_CACHE_BYTES = 1 << 22  # input that no longer stays in a core's own cache
RUN_BYTES = 1 << 10  # least part of a group that is split for the order of memory
# Columns that are read one by one, each down its rows: of rows at most so many bytes apart, and so many of them.
LONE_PITCH = 32
LONE_ROWS = 100
LONE_COLUMNS = 4  # at most, where they adjoin
LONE_BYTES = 16  # of their elements, at most, where they do not


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


def whole_lines(n: int, item: int) -> int:
    """The least number of elements from n on that fills cache lines.

    >>> whole_lines(3, 4), whole_lines(17, 4)
    (16, 32)
    """
    return n + -n % (CACHE_LINE // item)


def index_weights(sizes: Sequence[int]) -> list[int]:
    """Row-major weights: what one step along each axis adds to the index.

    >>> index_weights([2, 3, 4])
    [12, 4, 1]
    """
    weights = []
    weight = 1
    for size in reversed(sizes):
        weights.append(weight)
        weight *= size
    return weights[::-1]


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


def outgrows(
    limit: int, sizes: Sequence[int], strides: Sequence[int], out_strides: Sequence[int], item: int
) -> bool:
    """Whether an output has `limit` bytes, or half as many while it and its input, with their gaps, span twice as many.

    >>> outgrows(48, [4, 3], [12, 4], [12, 4], 4), outgrows(64, [4, 3], [12, 4], [12, 4], 4)
    (True, False)
    >>> outgrows(64, [4, 3], [36, 4], [12, 4], 4)
    True
    """
    size = math.prod(sizes) * item
    steps = zip(sizes, strides, out_strides, strict=True)
    span = 2 * item + sum((n - 1) * (abs(step) + abs(out)) for n, step, out in steps)
    return size >= limit or (2 * size >= limit and span >= 2 * limit)


def goes_past(output: Tensor, strides: Sequence[int], moved: int) -> bool:
    """Whether an output of these strides may go past the caches; `moved`: its bytes together with the inputs'.

    Not where it has gaps: of a line that is written in parts each waits for memory, up to 10 times as long.

    >>> from specops.tensor import packed
    >>> output = packed("FLOAT32", (2, 3))
    >>> goes_past(output, (12, 4), MOVED_PAST_BYTES), goes_past(output, (16, 4), MOVED_PAST_BYTES)
    (True, False)
    """
    axes = sorted(zip(output.sizes, strides, strict=True), key=lambda axis: -abs(axis[1]))
    dense = merge(axes) == [(math.prod(output.sizes), output.numpy_dtype.itemsize)]
    return moved >= MOVED_PAST_BYTES and dense


def by_memory(axes: Iterable[Axis]) -> list[Axis]:
    """The greatest input stride first, so that memory is walked forward in the innermost loops."""
    return sorted(axes, key=lambda axis: -abs(axis.stride))


def elements(axes: Iterable[Axis]) -> int:
    """How many elements lie along these axes."""
    return math.prod(axis.size for axis in axes)


def small_planes(kept: Sequence[Axis], reduced: Sequence[Axis], item: int) -> bool:
    """Whether groups are the columns of planes so small that each vector of columns is read down all rows at once.

    False for many rows of few columns: several such rows are faster taken as one. The last axes are the innermost ones.

    >>> small_planes([Axis(64, 784, 56), Axis(14, 4, 4)], [Axis(14, 56, 0)], 4)
    True
    >>> small_planes([Axis(64, 4096, 16), Axis(4, 4, 4)], [Axis(256, 16, 0)], 4)
    False
    """
    if len(kept) < 2 or len(reduced) != 1 or kept[-1].stride != item:
        return False
    columns, rows = kept[-1].size, reduced[0].size
    wide = 2 * columns * item >= CACHE_LINE
    row_bytes = ceildiv(columns * item, CACHE_LINE) * CACHE_LINE
    return rows * row_bytes <= PLANE_BYTES and (wide or rows <= NARROW_ROWS)


def lone_columns(kept: Sequence[Axis], reduced: Sequence[Axis], item: int) -> bool:
    """Whether columns, with gaps between them or their rows, are so few that lanes had better lie down each of them.

    Groups of many rows take 0.02 to 0.9 of the time so. The last axes are the innermost ones.

    >>> lone_columns([Axis(3, 1, 1)], [Axis(1000, 4, 0)], 1), lone_columns([Axis(2, 2, 1)], [Axis(1000, 4, 0)], 1)
    (True, True)
    >>> lone_columns([Axis(4, 1, 1)], [Axis(1000, 4, 0)], 1), lone_columns([Axis(2, 4, 4)], [Axis(1000, 64, 0)], 4)
    (False, False)
    """
    if not kept or not reduced:
        return False
    (columns, step, _), (rows, pitch, _) = kept[-1], reduced[-1]
    if rows < LONE_ROWS or not 0 < abs(pitch) <= LONE_PITCH:
        return False
    if step == item:
        return columns <= LONE_COLUMNS and abs(pitch) != columns * item
    return columns * item <= LONE_BYTES


def cut_planes(kept: list[Axis], reduced: Sequence[Axis], item: int) -> int:
    """Cut long planes of few rows, in place; returns the columns of the last piece, of small planes all, of others 0.

    >>> kept = [Axis(8, 12000, 12000), Axis(1000, 4, 4)]
    >>> cut_planes(kept, [Axis(3, 4000, 4000)], 4), kept[1:]
    (488, [Axis(size=2, stride=2048, other_stride=2048), Axis(size=512, stride=4, other_stride=4)])
    """
    if not kept:
        return 0
    columns, step, other = kept[-1]
    few = len(reduced) == 1 and reduced[0].size <= FEW_ROWS and step == item
    if few and columns * item > CUT_BYTES:
        each = ceildiv(columns, ceildiv(columns * item, CUT_BYTES))
        each = whole_lines(each, item)  # pieces nearly alike
        number = ceildiv(columns, each)
        kept[-1:] = [Axis(number, step * each, other * each), Axis(each, step, other)]
        return columns - (number - 1) * each
    return columns if small_planes(kept, reduced, item) else 0


def parts_in_order(kept: Sequence[Axis], reduced: Sequence[Axis], item: int, most: int) -> int:
    """Into how many parts groups of rows are split, at most, so that memory is walked in order; 1 if that does not pay.

    Where groups lie within the outermost reduced axis, it is walked so by this axis's parts.

    >>> rows = [Axis(1 << 10, 1 << 10, 4)]
    >>> parts_in_order(rows, [Axis(8, 1 << 20, 0), Axis(256, 4, 0)], 4, 100)
    8
    >>> parts_in_order(rows, [Axis(256, 4, 0)], 4, 100)
    1
    """
    outermost = reduced[0]
    if not kept or kept[-1].stride >= abs(outermost.stride):
        return 1
    total = elements(reduced)
    beyond_core = elements(kept) * total * item >= CORE_CACHE_BYTES
    if not beyond_core or total * item // outermost.size < RUN_BYTES:
        return 1
    return max(1, min(outermost.size, most))


def table(axes: Sequence[Axis]) -> npt.NDArray[np.int64]:
    """Axes as a kernel reads them; at least one row."""
    return np.array(axes or [Axis(1, 0, 0)], np.int64).reshape(-1, 3)
