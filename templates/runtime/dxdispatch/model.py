"""A whole model: resources, dispatchables and commands, as they are once it is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from specops.dxdispatch.nodes import Node
from specops.dxdispatch.operators import BindPoint, Dispatchable
from specops.dxdispatch.problems import Report
from specops.dxdispatch.values import Initial


@dataclass(frozen=True)
class Resource:
    """A buffer: `bytes` of it, of which the first `initial.nbytes` are filled; `dtype` is None for mixed values."""

    name: str
    node: Node
    dtype: np.dtype | None
    bytes: int
    initial: Initial

    @property
    def count(self) -> int:
        """Elements that were filled."""
        return 0 if self.dtype is None else self.initial.nbytes // self.dtype.itemsize


@dataclass(frozen=True)
class Bound:
    """A tensor and the part of a buffer that it is in, from `offset` bytes on."""

    point: BindPoint
    resource: Resource
    offset: int


@dataclass(frozen=True)
class Dispatch:
    """Run an operator on buffers."""

    target: Dispatchable
    bindings: tuple[Bound, ...]  # without OWNED_BY_DML ones


@dataclass(frozen=True)
class Print:
    """Print a buffer's values."""

    resource: Resource
    verbose: bool


@dataclass(frozen=True)
class WriteFile:
    """Write a buffer to a file of the output folder."""

    node: Node
    resource: Resource
    path: str
    dimensions: tuple[int, ...]  # of a .npy file; empty for raw bytes

    @property
    def is_npy(self) -> bool:
        return self.path.lower().endswith(".npy")


Command = Dispatch | Print | WriteFile


@dataclass
class Model:
    """A checked model, ready to run."""

    file: str
    report: Report
    resources: dict[str, Resource] = field(default_factory=dict)
    dispatchables: dict[str, Dispatchable] = field(default_factory=dict)
    owned: dict[str, tuple[Bound, ...]] = field(default_factory=dict)  # by dispatchable
    commands: list[Command] = field(default_factory=list)
    output: Path | None = None
