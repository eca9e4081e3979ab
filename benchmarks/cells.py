"""The cells of cells.yaml, and their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

Array = npt.NDArray[Any]

RANDOM = 1_000_003  # a prime number: no two rows are alike

REDUCTIONS = ("argmax", "sum", "prod", "max", "l2_norm", "logsumexp")
# They go from what a pooling gave to the shape of what was pooled, which is the cell's.
BACKWARD = ("average_pool_grad", "max_pool_grad", "max_unpool")

_VIEWS: dict[str | None, Callable[[Array], Array]] = {
    None: lambda x: x,
    "nchw": lambda x: x.transpose(0, 3, 1, 2),
    "every_second_row": lambda x: x[::2],
}


@dataclass(frozen=True)
class Cell:
    """One operator, data type, layout and parameters."""

    operator: str
    dtype: str
    shape: tuple[int, ...]  # in memory
    view: str | None = None
    axes: tuple[int, ...] = ()
    window: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    quick: bool = False

    @property
    def name(self) -> str:
        """As it stands in tables."""
        parts = [self.operator, self.dtype, _sizes(self.shape)]
        if self.view:
            parts.append(self.view)
        if self.axes:
            parts.append(f"axes {','.join(map(str, self.axes))}")
        if self.window:
            parts.append(f"{_sizes(self.window)} stride {self.strides[0]} pad {self.padding[0]}")
        return " ".join(parts)

    def input(self) -> Array:
        """Random elements, the same in each process; they repeat after RANDOM of them, which are quickly made."""
        return _VIEWS[self.view](np.resize(self._elements(7), self.shape))

    def gradient(self, x: Array) -> Array:
        """Random elements, one for each window, in the memory order of the input."""
        gradient = np.empty_like(x, shape=self.pooled_shape(x))
        gradient[...] = np.resize(self._elements(8), gradient.shape)
        return gradient

    def _elements(self, seed: int) -> Array:
        random = np.random.default_rng(seed)
        if self.dtype.startswith("float"):
            values: Array = random.standard_normal(RANDOM, np.float32)
            if self.operator == "prod":  # of others no product of a long row is a number
                values = 1 + values / 1024
            return values.astype(self.dtype, copy=False)
        limits = np.iinfo(self.dtype)
        return random.integers(limits.min, limits.max, RANDOM, self.dtype, True)

    def output_shape(self, x: Array) -> tuple[int, ...]:
        """Of the (first) output for this input."""
        if self.operator in REDUCTIONS:
            return tuple(n for d, n in enumerate(x.shape) if d not in self.axes)
        return self.pooled_shape(x) if self.window and self.operator not in BACKWARD else x.shape

    def pooled_shape(self, x: Array) -> tuple[int, ...]:
        """An element for each window."""
        first = x.ndim - len(self.window)
        places = zip(x.shape[first:], self.window, self.strides, self.padding, strict=True)
        return x.shape[:first] + tuple((n + 2 * p - w) // s + 1 for n, w, s, p in places)

    def output_dtype(self) -> str:
        """Of the (first) output."""
        return "int64" if self.operator == "argmax" else self.dtype

    def moved_bytes(self) -> tuple[int, int]:
        """Bytes that must be read and written, whatever the implementation."""
        x = _VIEWS[self.view](np.broadcast_to(np.zeros((), self.dtype), self.shape))
        outputs = math.prod(self.output_shape(x))
        read, written = x.size * x.itemsize, outputs * np.dtype(self.output_dtype()).itemsize
        if self.operator == "max_pool_with_indices":
            written += outputs * 8
        if self.operator in BACKWARD:
            given = x.itemsize + (8 if self.operator == "max_unpool" else 0)
            pooled = math.prod(self.pooled_shape(x)) * given
            read = pooled + (read if self.operator == "max_pool_grad" else 0)
        return read, written

    def as_json(self) -> dict[str, Any]:
        """What `Cell.of` takes."""
        return asdict(self)

    @staticmethod
    def of(values: dict[str, Any]) -> Cell:
        """From JSON or YAML."""
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return Cell(**fields)


def cells() -> Iterator[Cell]:
    """All cells, in the file's order."""
    groups = yaml.safe_load((Path(__file__).parent / "cells.yaml").read_text(encoding="utf-8"))
    for group in groups:
        for operator, dtypes in group["operators"].items():
            for dtype in dtypes:
                for case in group["cases"]:
                    yield Cell.of({"operator": operator, "dtype": dtype, **case})


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
