"""What rules call on numbers alone: the linter calls it, and it is copied into the package, for the validators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def unique(numbers: Iterable[int]) -> bool:
    """Whether no number occurs twice."""
    numbers = tuple(numbers)
    return len(set(numbers)) == len(numbers)


def product(numbers: Iterable[int]) -> int:
    """The product; 1 for no numbers."""
    return math.prod(numbers)


def power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0


def buffer_bytes(sizes: Sequence[int], strides: Sequence[int], item: int) -> int:
    """`implied_bytes` of bare sizes and strides: from the first to the last element, rounded up to a multiple of 4."""
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
    return -(-(last + 1) * item // 4) * 4


def nested(sizes: Sequence[int], strides: Sequence[int], item: int = 1) -> bool:
    """`distinct_addresses` of bare sizes and (positive) strides, for elements of `item` units.

    Sorted by stride, each dimension steps over all that lies inside it: so no two elements share memory.
    """
    reach = item - 1
    for stride, size in sorted(zip(strides, sizes, strict=False)):
        if size > 1 and stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def windows_hold_input(
    sizes: Sequence[int],
    counts: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start: Sequence[int],
) -> bool:
    """Whether no window lies wholly in the padding, along each axis.

    Each list has one entry for each axis: the input's size, the number of windows, the entries of a window, the steps
    between windows and between entries, and the padding before the input.
    """
    axes = (sizes, counts, window, strides, dilations, start)
    if len({len(entries) for entries in axes}) > 1:
        return False
    return all(_windows_hold_input(*axis) for axis in zip(*axes, strict=True))


def _windows_hold_input(
    size: int, count: int, window: int, stride: int, dilation: int, start: int
) -> bool:
    if (count - 1) * stride - start >= size:
        return False
    early = min(count, -(-start // stride))  # windows that begin in the padding before the input
    if early > 0 and -(-start // dilation) >= window:
        return False  # the first window reaches least far
    # The first entry at the input's begin or behind it: none is beyond its end, where that is nearer than a dilation.
    first = -start % dilation
    over = _sum_of_quotients(early, stride, first + max(dilation - size, 0), dilation)
    return over == _sum_of_quotients(early, stride, first, dilation)


def _sum_of_quotients(count: int, step: int, first: int, divisor: int) -> int:
    """The sum of (first + i * step) // divisor for i from 0 to count - 1, as fast as a greatest common divisor."""
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (step // divisor) + count * (first // divisor)
        step, first = step % divisor, first % divisor
        # What is left counts points below a line; seen from its other side they are fewer.
        count, first = divmod(step * count + first, divisor)
        step, divisor = divisor, step
    return total
