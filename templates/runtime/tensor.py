"""A tensor as the rules see it, and the functions that rules call on tensors and arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specops.vocabulary import DATA_TYPES


@dataclass(frozen=True)
class Tensor:
    """Data type (by its vocabulary name), sizes and strides in elements, and what a buffer description adds."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dimension_count: int
    total_bytes: int
    alignment: int = 0
    flags: str = "NONE"

    @cached_property
    def numpy_dtype(self) -> np.dtype:
        return DATA_TYPES[self.dtype].numpy

    @cached_property
    def is_packed(self) -> bool:
        """Whether it is row-major and without gaps."""
        return self.strides == packed_strides(self.sizes)


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a row-major tensor without gaps."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def packed(dtype: str, sizes: tuple[int, ...]) -> Tensor:
    """A row-major tensor without gaps."""
    strides = packed_strides(sizes)
    return Tensor(
        dtype, sizes, strides, len(sizes), buffer_bytes(sizes, strides, item_bytes(dtype))
    )


def buffer_bytes(sizes: Sequence[int], strides: Sequence[int], item: int) -> int:
    """The bytes from the first to the last element, rounded up to a multiple of 4."""
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
    return -(-(last + 1) * item // 4) * 4


_NAMES = {entry.numpy: name for name, entry in DATA_TYPES.items()}


def native(dtype: np.dtype) -> np.dtype:
    """The data type in this machine's byte order."""
    # Only where there is another order: NumPy's strings refuse to be asked.
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def named(dtype: np.dtype) -> str | None:
    """The vocabulary's name of an array's data type, in whatever byte order; None where it has none."""
    return _NAMES.get(native(dtype))


# --- the functions of the constraint language ---


def rank(tensor: Tensor) -> int:
    """The number of dimensions."""
    return len(tensor.sizes)


def unique(numbers: Iterable[int]) -> bool:
    """Whether no number occurs twice."""
    numbers = tuple(numbers)
    return len(set(numbers)) == len(numbers)


def product(numbers: Iterable[int]) -> int:
    """The product; 1 for no numbers."""
    return math.prod(numbers)


def greatest(dtype: str) -> int:
    """The greatest value of an integer data type; other types make the rule false."""
    if DATA_TYPES[dtype].kind not in ("signed", "unsigned"):
        raise ArithmeticError(f"{dtype} has no greatest integer")
    return int(np.iinfo(DATA_TYPES[dtype].numpy).max)


def item_bytes(dtype: str) -> int:
    """The size of one element."""
    return DATA_TYPES[dtype].numpy.itemsize


def implied_bytes(tensor: Tensor) -> int:
    """The least size of the buffer that holds the tensor: a multiple of 4."""
    return buffer_bytes(tensor.sizes, tensor.strides, item_bytes(tensor.dtype))


def distinct_addresses(tensor: Tensor) -> bool:
    """Whether, sorted by stride, each dimension steps over all that lies inside it: no two elements share memory."""
    return nested(tensor.sizes, tensor.strides)


def nested(sizes: Sequence[int], strides: Sequence[int], item: int = 1) -> bool:
    """`distinct_addresses` on bare sizes and (positive) strides, for elements of `item` units."""
    reach = item - 1
    for stride, size in sorted(zip(strides, sizes, strict=False)):
        if size > 1 and stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0


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
