"""Buffers between pages that may not be touched: a read or write beyond them ends the process."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence

import numpy as np
from draw import POISON

from specops.tensor import packed_strides

PAGE = mmap.PAGESIZE
MARGIN = 512  # poisoned bytes on the side of a tensor that lies away from its page's edge


def reach(shape: Sequence[int], strides: Sequence[int], item: int) -> tuple[int, int]:
    """The bytes that a tensor takes before its element [0, 0, ..] and from there on."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return -sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + item


def copy_bits(to: np.ndarray, values: np.ndarray) -> None:
    """NaN with their payloads."""
    bits = f"u{to.dtype.itemsize}"
    to.view(bits)[...] = values.view(bits)


class Arena:
    """Memory for one tensor at a time, with a forbidden page (on POSIX) before it and behind it."""

    def __init__(self, size: int = 1 << 20) -> None:
        self._map = mmap.mmap(-1, size + 2 * PAGE)
        self._all = np.frombuffer(self._map, np.uint8)
        self.bytes = self._all[PAGE:-PAGE]
        start = self._all.ctypes.data
        if os.name == "posix":
            protect = ctypes.CDLL(None, use_errno=True).mprotect
            protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            for page in (start, start + size + PAGE):
                if protect(page, PAGE, 0):
                    raise OSError(ctypes.get_errno(), "mprotect")
        self.used = slice(0, 0)

    def place(
        self,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: np.dtype,
        upper: bool,
        moved: int = 0,
    ) -> np.ndarray | None:
        """A tensor against the upper or lower edge, but for `moved` bytes, in poison; None where it does not fit."""
        before, behind = reach(shape, strides, dtype.itemsize)
        whole = before + behind + moved
        if whole + MARGIN > self.bytes.size:
            return None
        if upper:
            self.used = slice(self.bytes.size - whole - MARGIN, self.bytes.size)
            offset = self.bytes.size - behind - moved
        else:
            self.used = slice(0, whole + MARGIN)
            offset = before + moved
        self.bytes[self.used] = POISON
        return np.ndarray(tuple(shape), dtype, self.bytes, offset, tuple(strides))

    def place_packed(self, shape: Sequence[int], dtype: np.dtype, upper: bool) -> np.ndarray:
        """As `place`, row-major and without gaps, of one that fits."""
        strides = tuple(step * dtype.itemsize for step in packed_strides(shape))
        array = self.place(shape, strides, dtype, upper)
        assert array is not None
        return array

    def taken(self) -> np.ndarray:
        """A copy of the tensor's bytes and the poison around them."""
        return self.bytes[self.used].copy()

    def unchanged(self, taken: np.ndarray) -> bool:
        return np.array_equal(self.bytes[self.used], taken)

    def surroundings_kept(self, array: np.ndarray) -> bool:
        """Whether the poison between and around the elements of the tensor is still there. Overwrites these."""
        if array.size:
            blank = array.view(f"V{array.dtype.itemsize}")
            blank[...] = bytes([POISON] * array.dtype.itemsize)
        return bool((self.bytes[self.used] == POISON).all())
