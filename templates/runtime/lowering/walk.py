"""The block of int64 that tells a chunk what to do: settings, then tables of axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specops import launch

Table = npt.NDArray[np.int64]


class Walk(NamedTuple):
    """What a chunk reads at an address, which is good while the block lives: whoever keeps a walk keeps both."""

    block: Table
    at: int

    def copy(self) -> Walk:
        """Another that says the same, for a chunk that writes to its walk."""
        return _placed(self.block.copy())


def walk_of(settings: Table, *tables: npt.ArrayLike) -> Walk:
    """The walk of these settings and tables, one after the other.

    >>> walk_of(np.array([7, 2]), [(3, 8, 0), (5, 4, 4)]).block.tolist()
    [7, 2, 3, 8, 0, 5, 4, 4]
    """
    parts = (settings, *tables)
    return _placed(np.concatenate([np.asarray(part, np.int64).ravel() for part in parts]))


def _placed(block: Table) -> Walk:
    return Walk(block, launch.address(block))
