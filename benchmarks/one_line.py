"""What a first call is compared with."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def one() -> int:
    return 1
