"""Sizes by which several kernels' host sides choose a strategy alike, as caches, memory and threads are.

Whole numbers in capitals, here (but a cache line's), in launch and in each of the modules beside this one, are
thresholds that choose a strategy. Results are right with any smaller one, too, from 1 on, of `*_BYTES` and `*TILE` from
64 on: `stress/scale.py` draws such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from specops.lowering.axes import merge
from specops.tensor import Tensor

CACHE_LINE = 64  # bytes

LARGE_BYTES = 1 << 18  # input, of poolings output, too, from which a second thread pays
PART_BYTES = 1 << 18  # a part smaller than this is not worth a thread
PARTIALS = 1 << 15  # (key, index) or (top, sum) pairs of parts, half a MiB
FAR_BYTES = 1 << 24  # input that the caches hold in part, if at all
UNCACHED_BYTES = 1 << 25  # larger input is in none of them
PAST_BYTES = 1 << 24  # output from which it, or its zeros, go past them: see outgrows
# Bytes of inputs and outputs together from which outputs may go past the caches: see goes_past.
MOVED_PAST_BYTES = 3 << 23
BESIDE = 400  # columns that narrow rows taken as one have, at most, about


def whole_lines(n: int, element_bytes: int) -> int:
    """The least number of elements from n on that fills cache lines.

    >>> whole_lines(3, 4), whole_lines(17, 4)
    (16, 32)
    """
    return n + -n % (CACHE_LINE // element_bytes)


def parts_for(items: int, enough: int, part_bytes: int, most: int) -> int:
    """Into how many parts each of so few items is split, that there are enough for the threads to share; 1 of others.

    Args:
        enough: items, or parts.
        part_bytes: that an item reads: no part reads less than PART_BYTES.
        most: parts of an item, at most, whatever else.

    >>> parts_for(3, 8, 10 * PART_BYTES, 100), parts_for(3, 8, PART_BYTES, 100), parts_for(8, 8, 10 * PART_BYTES, 100)
    (2, 1, 1)
    """
    if items >= enough:
        return 1
    return max(1, min(part_bytes // PART_BYTES, enough // items, most))


def outgrows(
    limit: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    out_strides: Sequence[int],
    element_bytes: int,
) -> bool:
    """Whether an output has `limit` bytes; half are enough if it and its input, gaps included, span twice the limit.

    >>> outgrows(48, [4, 3], [12, 4], [12, 4], 4), outgrows(64, [4, 3], [12, 4], [12, 4], 4)
    (True, False)
    >>> outgrows(64, [4, 3], [36, 4], [12, 4], 4)
    True
    """
    size = math.prod(sizes) * element_bytes
    steps = zip(sizes, strides, out_strides, strict=True)
    span = 2 * element_bytes + sum((n - 1) * (abs(step) + abs(out)) for n, step, out in steps)
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
