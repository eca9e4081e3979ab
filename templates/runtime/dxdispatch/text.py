"""Values as DxDispatch prints them: C++ streams with six significant digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 15  # values formatted at a time


def flat(values: npt.NDArray[Any]) -> Iterator[str]:
    """All values on one line, in pieces. 8-bit integers are numbers, where DxDispatch prints raw characters."""
    for begin in range(0, values.size, _BLOCK):
        yield ", " if begin else ""
        yield ", ".join(map(_formatter(values), values[begin : begin + _BLOCK].tolist()))


def verbose(values: npt.NDArray[Any]) -> Iterator[str]:
    """One line for each value: index, value, and its bits in upper-case hexadecimal, padded with spaces."""
    shown = _formatter(values)
    width, digits = len(str(values.size)), 2 * values.dtype.itemsize
    bits = values.view(f"u{values.dtype.itemsize}")
    for begin in range(0, values.size, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        entries = zip(values[part].tolist(), bits[part].tolist(), strict=True)
        yield "".join(
            f"[{i:{width}}] {shown(value)} (0x{code:{digits}X})\n"
            for i, (value, code) in enumerate(entries, begin)
        )


def _formatter(values: npt.NDArray[Any]) -> Any:
    return "{:.6g}".format if np.issubdtype(values.dtype, np.floating) else str
