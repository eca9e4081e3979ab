"""The tables by which states of small planes are packed: see `packed_chunk` of the pooling kernels."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.core.registry import cpu_target

from specops.lowering.axes import ceildiv
from specops.lowering.pool_axes import SpatialAxis


@functools.cache
def packs() -> bool:
    """Whether the code may move lanes of any width together and apart; elsewhere that is done one by one."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return {"+avx512vbmi2", "+avx512bw", "+avx512vl"} <= set(features.split(","))


class PlaneTable(NamedTuple):
    """What a chunk is told of items of so many planes."""

    words: npt.NDArray[np.int64]
    states: int  # of an item, in whole vectors


@functools.lru_cache(maxsize=64)
def plane_table(
    rows: SpatialAxis,
    columns: SpatialAxis,
    kept: int,
    planes: int,
    lanes: int,
    element_bytes: int,
    sums: str | None,
) -> PlaneTable:
    """The table for items of so many planes.

    Args:
        kept: rows of a plane that are left when rows are joined.
        sums: the type of those that are to be divided, for averages.
    """
    line = columns.pitch
    elements = np.zeros((planes, rows.pitch, line), np.bool_)
    elements[:, rows.elements, columns.elements] = True
    windows = np.zeros((planes, kept, line), np.bool_)
    windows[:, rows.windows, columns.windows] = True
    result_span = int(np.flatnonzero(windows)[-1]) + 1
    span = result_span + (planes - 1) * (rows.pitch - kept) * line
    entries = _vectors(elements, span + rows.reach * line + columns.reach, lanes)
    results = _vectors(windows, result_span, lanes)
    head = np.array([span, result_span, len(entries), len(results)])
    parts = [head, _entries(entries, element_bytes), _entries(results, element_bytes)]
    if sums is not None:
        divisors = np.ones(windows.shape, sums)
        divisors[:, rows.windows, columns.windows] = np.outer(rows.divisors(), columns.divisors())
        parts.append(_vectors(divisors, result_span, lanes).view(np.int64))
    return PlaneTable(np.concatenate([part.ravel() for part in parts]), entries.size)


def _vectors(states: npt.NDArray[Any], count: int, lanes: int) -> npt.NDArray[Any]:
    """The first `count` of what is said of states, in whole vectors; of those that are missing 0.

    >>> _vectors(np.array([1, 2, 3]), 5, 4).tolist()
    [[1, 2, 3, 0], [0, 0, 0, 0]]
    """
    whole = ceildiv(count, lanes) * lanes
    first = states.ravel()[:whole]
    return np.pad(first, (0, whole - len(first))).reshape(-1, lanes)


def _entries(used: npt.NDArray[np.bool_], element_bytes: int) -> npt.NDArray[np.int64]:
    """Of each vector: a mask of the lanes in use, one of as many first lanes, bytes of the elements before.

    >>> _entries(np.array([[0, 1, 1, 0], [0, 1, 0, 0]], np.bool_), 4).tolist()
    [[6, 3, 0], [2, 1, 8]]
    """
    counts = np.count_nonzero(used, axis=1)
    before = (np.cumsum(counts) - counts) * element_bytes
    first = np.arange(used.shape[1]) < counts[:, np.newaxis]
    return np.stack([_masks(used), _masks(first), before], axis=1)


def _masks(lanes: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Vectors of at most 64 lanes, each as the bits of a word."""
    words = np.zeros((len(lanes), 8), np.uint8)
    packed = np.packbits(lanes, axis=1, bitorder="little")
    words[:, : packed.shape[1]] = packed
    return np.asarray(words.view("<i8").ravel(), np.int64)
