"""Initial values of a buffer: from JSON to bytes, in the data type's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from specops.dxdispatch.files import Refused, open_regular
from specops.vocabulary import DATA_TYPES, DIRECTML_TYPES

# The data types of buffers; the 4-bit ones are no data there either.
BUFFER_TYPES = {name: DATA_TYPES[name].numpy for name in DIRECTML_TYPES}
ALLOWED_TYPES = ", ".join(BUFFER_TYPES)

_NAMES = {dtype: name for name, dtype in BUFFER_TYPES.items()}
_WORDS = ("nan", "inf", "-inf")
_BLOCK = 1 << 20  # elements written at a time

Bytes = npt.NDArray[np.uint8]


class Wrong(Exception):
    """A value that is none of its data type."""


def buffer_type(name: object) -> np.dtype:
    """The data type of a name; raises Wrong."""
    if isinstance(name, str) and name.removeprefix("DML_TENSOR_DATA_TYPE_") in BUFFER_TYPES:
        return BUFFER_TYPES[name.removeprefix("DML_TENSOR_DATA_TYPE_")]
    raise Wrong(f"allowed: {ALLOWED_TYPES}")


def name_of(dtype: np.dtype) -> str:
    """The name of a buffer's data type."""
    return _NAMES[dtype]


def scalar(value: object, dtype: np.dtype) -> Any:
    """One value of a data type; raises Wrong."""
    if dtype.kind == "f":
        if isinstance(value, str) and value.lower() in _WORDS:
            number = float(value)
        elif type(value) in (int, float):
            number = _finite(value, dtype)
        else:
            raise Wrong(f'allowed: a number, "nan", "inf" or "-inf" for {name_of(dtype)}')
        with np.errstate(all="ignore"):
            return np.asarray(number).astype(dtype)[()]
    limits = np.iinfo(dtype)
    if type(value) is not int or not limits.min <= value <= limits.max:
        raise Wrong(f"allowed: an integer from {limits.min} to {limits.max} for {name_of(dtype)}")
    return np.asarray(value, dtype)[()]


def _finite(value: Any, dtype: np.dtype) -> float:
    with np.errstate(all="ignore"):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if np.isinf(np.asarray(number).astype(dtype)):
            raise Wrong(f'too large for {name_of(dtype)}; "inf" stands for infinity')
    return number


def numbers(values: list[Any], dtype: np.dtype) -> npt.NDArray[Any] | None:
    """The values, if all are plain numbers of the data type; else None, for `scalar` to look at each."""
    kinds = set(map(type, values))
    try:
        if dtype.kind == "f" and kinds <= {int, float}:
            wide = np.array(values, np.float64)
            with np.errstate(all="ignore"):
                out = wide.astype(dtype)
            return None if np.isinf(out).any() else out
        if kinds == {int}:
            limits = np.iinfo(dtype)
            if limits.min <= min(values) and max(values) <= limits.max:
                return np.array(values, dtype)
    except OverflowError:
        pass
    return None


@dataclass(frozen=True)
class Given:
    """Values that stand in the model; one value many times is a broadcast array."""

    data: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def write(self, buffer: Bytes) -> None:
        buffer.view(self.data.dtype)[:] = self.data


@dataclass(frozen=True)
class Sequence:
    """`count` values, each the last plus `delta`, rounded (or wrapped) each time as the data type does."""

    start: np.generic
    delta: np.generic
    count: int

    @property
    def nbytes(self) -> int:
        return self.count * self.start.dtype.itemsize

    def write(self, buffer: Bytes) -> None:
        out = buffer.view(self.start.dtype)
        out[0] = self.start
        with np.errstate(all="ignore"):
            for begin in range(0, self.count - 1, _BLOCK):
                block = out[begin : begin + _BLOCK + 1]
                block[1:] = self.delta
                np.add.accumulate(block, dtype=block.dtype, out=block)


@dataclass(frozen=True)
class FromFile:
    """Bytes of a file that was found when the model was checked."""

    path: Path
    begin: int
    nbytes: int

    def write(self, buffer: Bytes) -> None:
        try:
            with open_regular(self.path) as file:
                file.seek(self.begin)
                got = file.readinto(buffer.data)
        except OSError as error:
            raise Refused(f"{self.path.name} cannot be read: {error.strerror or error}") from None
        if got != self.nbytes:
            raise Refused(f"{self.path.name} changed while the model ran")


# What a buffer is filled with: `write` fills `nbytes` bytes, and raises Refused where a file changed meanwhile.
Initial = Given | Sequence | FromFile
