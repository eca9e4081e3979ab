"""The types of arguments, by the names that signatures show them by.

Calls check what type checkers cannot see: an object may share memory that is not an array's, as `bytes` does, and is
refused then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt


class SupportsDLPack(Protocol):
    """What shares its memory by DLPack, as tensors of torch do."""

    def __dlpack__(self) -> Any: ...


class SupportsArray(Protocol):
    """What makes a NumPy array over its memory, as a Series of pandas does."""

    def __array__(self) -> Any: ...


class SupportsArrayInterface(Protocol):
    """What says where its memory is."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class SupportsBuffer(Protocol):
    """What has the buffer protocol, as an `array.array` does."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


Scalar = TypeVar("Scalar", bound=np.generic)

# A NumPy array, or an object that shares its memory.
Array: TypeAlias = (
    np.ndarray | SupportsDLPack | SupportsArray | SupportsArrayInterface | SupportsBuffer
)
# A sequence of integers: a list, a tuple, an array of one dimension.
Integers: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]
# One axis, several, or None for all.
Axes: TypeAlias = SupportsIndex | Integers | None
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Flag: TypeAlias = bool | np.bool_ | Literal[0, 1]
