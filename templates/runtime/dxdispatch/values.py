"""Initial values of a buffer: from JSON to bytes, in the data type's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from specops.dxdispatch.files import Refused, open_regular
from specops.vocabulary import DATA_TYPES, DIRECTML_TYPES

# The data types of buffers; the 4-bit ones are no data there either.
BUFFER_TYPES = {name: DATA_TYPES[name].numpy for name in DIRECTML_TYPES}

_WORDS = ("nan", "inf", "-inf")
_BLOCK = 1 << 20  # elements or bytes written at a time

Bytes = npt.NDArray[np.uint8]


class Wrong(Exception):
    """A value that is none of its data type."""


def buffer_type(name: object) -> str:
    """The suffix of a data type's name; raises Wrong."""
    if isinstance(name, str) and name.removeprefix("DML_TENSOR_DATA_TYPE_") in BUFFER_TYPES:
        return name.removeprefix("DML_TENSOR_DATA_TYPE_")
    raise Wrong(f"allowed: {', '.join(BUFFER_TYPES)}")


def scalar(value: object, name: str) -> Any:
    """One value of a data type; raises Wrong."""
    dtype = BUFFER_TYPES[name]
    if dtype.kind == "f":
        if isinstance(value, str) and value.lower() in _WORDS:
            number = float(value)
        elif type(value) in (int, float):
            number = _finite(value, name)
        else:
            raise Wrong(f'allowed: a number, "nan", "inf" or "-inf" for {name}')
        with np.errstate(all="ignore"):
            return np.asarray(number).astype(dtype)[()]
    limits = np.iinfo(dtype)
    if type(value) is not int or not limits.min <= value <= limits.max:
        raise Wrong(f"allowed: an integer from {limits.min} to {limits.max} for {name}")
    return np.asarray(value, dtype)[()]


def _finite(value: Any, name: str) -> float:
    with np.errstate(all="ignore"):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if np.isinf(np.asarray(number).astype(BUFFER_TYPES[name])):
            raise Wrong(f'too large for {name}; "inf" stands for infinity')
    return number


def numbers(values: list[Any], name: str) -> npt.NDArray[Any]:
    """The entries of an array; raises Wrong where one of them is none, for `scalar` to find which."""
    dtype = BUFFER_TYPES[name]
    kinds = set(map(type, values))
    try:
        if dtype.kind == "f" and kinds <= {int, float}:
            wide = np.array(values, np.float64)
            with np.errstate(all="ignore"):
                out = wide.astype(dtype)
            if not np.isinf(out).any():
                return out
        elif kinds == {int}:
            limits = np.iinfo(dtype)
            if limits.min <= min(values) and max(values) <= limits.max:
                return np.array(values, dtype)
    except OverflowError:
        pass
    return np.array([scalar(value, name) for value in values], dtype)


class Initial(Protocol):
    """What a buffer is filled with."""

    @property
    def nbytes(self) -> int: ...

    def write(self, buffer: Bytes) -> None:
        """Fill a buffer of `nbytes` bytes. Raises Refused where a file changed since it was checked."""


@dataclass(frozen=True)
class Given:
    """Values that stand in the model."""

    data: Bytes

    @property
    def nbytes(self) -> int:
        return self.data.size

    def write(self, buffer: Bytes) -> None:
        buffer[:] = self.data


@dataclass(frozen=True)
class Constant:
    """One value, `count` times."""

    value: np.generic
    count: int

    @property
    def nbytes(self) -> int:
        return self.count * self.value.dtype.itemsize

    def write(self, buffer: Bytes) -> None:
        buffer.view(self.value.dtype)[:] = self.value


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
