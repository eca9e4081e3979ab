"""What was planned for an operator, by the strides of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt

Array = npt.NDArray[Any]  # that a call is given
Strides = tuple[int, ...]  # bytes, of one array
Planned = TypeVar("Planned")

MOST = 64  # sets of strides remembered


class Plans(dict[tuple[Strides, ...], Planned]):
    """Plans by strides, each made when it is first asked for.

    >>> plans = Plans(lambda x, out: (x, out))
    >>> plans[(8,), (4,)]
    ((8,), (4,))

    Args:
        make: makes a plan of the strides of each array.
    """

    def __init__(self, make: Callable[..., Planned]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, strides: tuple[Strides, ...]) -> Planned:
        plan = self._make(*strides)
        if len(self) >= MOST:
            self.clear()
        self[strides] = plan
        return plan
