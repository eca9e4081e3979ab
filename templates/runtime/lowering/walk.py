"""The block of int64 that tells a chunk what to do: settings, then tables of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specops import launch

Words = npt.NDArray[np.int64]


class Walk(NamedTuple):
    """What a chunk reads at an address, which is good while the block lives: whoever keeps a walk keeps both."""

    block: Words
    at: int

    def copy(self) -> Walk:
        """Another that says the same, for a chunk that writes to its walk."""
        return _placed(self.block.copy())


def walk_of(settings: Sequence[int] | Words, *tables: Sequence[Sequence[int]]) -> Walk:
    """The walk of these settings and tables, one after the other.

    >>> walk_of([7, 2], [(3, 8, 0), (5, 4, 4)]).block.tolist()
    [7, 2, 3, 8, 0, 5, 4, 4]
    """
    numbers = [number for rows in tables for row in rows for number in row]
    block = np.empty(len(settings) + len(numbers), np.int64)
    block[: len(settings)] = settings
    block[len(settings) :] = numbers
    return _placed(block)


def _placed(block: Words) -> Walk:
    return Walk(block, launch.address(block))
