"""The block of int64 that tells a search what to do: settings, then tables of axes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specops.kernels import search as kernel

Table = npt.NDArray[np.int64]

NO_AXES = np.empty((0, 3), np.int64)


def walk_of(settings: dict[int, int], *tables: Table) -> Table:
    """The settings by number, others 0, then the tables in the kernel's order; those at the end may be left out."""
    block = np.zeros(kernel.SETTINGS, np.int64)
    for place, value in settings.items():
        block[place] = value
    block[kernel.KEPT_RANK : kernel.KEPT_RANK + len(tables)] = [len(table) for table in tables]
    return np.concatenate((block, *(table.ravel() for table in tables)))
