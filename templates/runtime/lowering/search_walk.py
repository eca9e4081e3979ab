"""The walk of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specops.kernels import search as kernel
from specops.lowering.axes import Axis
from specops.lowering.walk import Walk, walk_of

NO_AXES: Sequence[Axis] = ()


def search_walk(settings: Mapping[int, int], *tables: Sequence[Axis]) -> Walk:
    """The settings by number, others 0, then the tables in the kernel's order; those at the end may be left out."""
    words = [0] * kernel.SETTINGS
    for place, value in settings.items():
        words[place] = value
    for number, axes in enumerate(tables):
        words[kernel.KEPT_RANK + number] = len(axes)
    return walk_of(words, *tables)
