"""A tensor as constraints see it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator import rule_functions
from generator.model import DataTypeEntry


@dataclass(frozen=True)
class Tensor:
    """Data type, sizes and strides in elements, and what a description of a buffer adds."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dimension_count: int
    total_bytes: int
    alignment: int = 0
    flags: str = "NONE"


def make_tensor(
    dtype: str, sizes: tuple[int, ...], data_types: Mapping[str, DataTypeEntry]
) -> Tensor:
    """A packed tensor."""
    strides = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
    total = rule_functions.buffer_bytes(sizes, strides, data_types[dtype].bytes)
    return Tensor(dtype, sizes, strides, len(sizes), total)


def shape(data: Any) -> list[int]:
    """The sizes of nested lists."""
    return [len(data), *(shape(data[0]) if data else [])] if isinstance(data, list) else []
