"""The walk of a search."""

from __future__ import annotations

import numpy as np

from specops.kernels import search as kernel
from specops.lowering.walk import Table, Walk, walk_of

NO_AXES = np.empty((0, 3), np.int64)


def search_walk(settings: dict[int, int], *tables: Table) -> Walk:
    """The settings by number, others 0, then the tables in the kernel's order; those at the end may be left out."""
    block = np.zeros(kernel.SETTINGS, np.int64)
    for place, value in settings.items():
        block[place] = value
    block[kernel.KEPT_RANK : kernel.KEPT_RANK + len(tables)] = [len(table) for table in tables]
    return walk_of(block, *tables)
