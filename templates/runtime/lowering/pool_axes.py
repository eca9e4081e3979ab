"""The axes of what is pooled, in the order of the pooling kernels' tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Sliding(NamedTuple):
    """How windows slide over the last dimensions: an entry of each for each of these."""

    window: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    start_padding: Sequence[int]

    @property
    def is_dilated(self) -> bool:
        """Whether elements of a window lie apart."""
        return any(n > 1 and step > 1 for n, step in zip(self.window, self.dilations, strict=True))


class BatchAxis(NamedTuple):
    """An axis of planes, as in the table `batch`: its size, and what one step along it adds."""

    size: int
    step: int  # bytes of the input
    out_step: int  # bytes of the output
    other_step: int  # bytes of the other array, as of indices
    weight: int  # positions


class SpatialAxis(NamedTuple):
    """An axis that windows move along, as in the table `spatial`."""

    size: int
    out_size: int
    window: int
    stride: int
    dilation: int
    padding: int
    step: int  # as those of a BatchAxis
    out_step: int
    other_step: int
    weight: int
    low: int  # positions from low to high - 1 count in the divisor of an average
    high: int

    @property
    def reach(self) -> int:
        """Positions from the first of a window to the last."""
        return (self.window - 1) * self.dilation

    @property
    def pitch(self) -> int:
        """From one packed row, or plane, to the next: what a window has behind a row is the padding before the next.

        >>> axis = SpatialAxis(5, 5, 3, 1, 1, 1, 4, 4, 0, 1, 0, 5)
        >>> axis.pitch, axis._replace(padding=0).pitch
        (6, 7)
        """
        last = (self.out_size - 1) * self.stride
        return max(self.padding + self.size, last + 1, last + self.reach + 1 - self.padding)

    @property
    def elements(self) -> slice:
        """Which states those of the input are."""
        return slice(self.padding, self.padding + self.size)

    @property
    def windows(self) -> slice:
        """At which states windows begin."""
        return slice(0, (self.out_size - 1) * self.stride + 1, self.stride)

    def divisors(self) -> npt.NDArray[np.int64]:
        """Of each window, the positions that count.

        >>> SpatialAxis(5, 3, 3, 2, 2, 2, 4, 4, 0, 1, 0, 5).divisors().tolist()
        [2, 3, 2]
        """
        start = np.arange(self.out_size) * self.stride - self.padding
        before, end = (-((start - edge) // self.dilation) for edge in (self.low, self.high))
        return np.asarray(np.maximum(np.minimum(end, self.window) - np.maximum(before, 0), 0))
