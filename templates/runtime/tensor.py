"""A tensor as the rules see it, and the functions that rules call on tensors and data types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specops.rule_functions import buffer_bytes, nested
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
    """Strides in elements of a row-major tensor without gaps.

    >>> packed_strides([2, 3, 4])
    (12, 4, 1)
    """
    strides = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def packed(dtype: str, sizes: tuple[int, ...]) -> Tensor:
    """A row-major tensor without gaps."""
    strides = packed_strides(sizes)
    return Tensor(
        dtype, sizes, strides, len(sizes), buffer_bytes(sizes, strides, item_bytes(dtype))
    )


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
