"""The limit that memory sets: as many bytes read and written as the cell must, on all threads, and nothing computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit, prange, set_num_threads

from benchmarks.cells import Array, Cell

BLOCK = 4096  # words read, then as many of the output written as belong to them


@njit(nogil=True)
def _read(words: Array) -> np.int64:
    total = np.int64(0)
    for i in range(words.size):
        total ^= words[i]
    return total


@njit(nogil=True)
def _write(words: Array, value: np.int64) -> None:
    for i in range(words.size):
        words[i] = value


@njit(parallel=True, nogil=True, cache=True)
def _stream(source: Array, target: Array, totals: Array) -> None:
    threads = totals.size
    for t in prange(threads):
        blocks = max(1, (source.size // threads) // BLOCK)
        total = np.int64(0)
        for b in range(blocks):
            part = t * blocks + b
            parts = threads * blocks
            total ^= _read(source[source.size * part // parts : source.size * (part + 1) // parts])
            _write(target[target.size * part // parts : target.size * (part + 1) // parts], total)
        totals[t] = total


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    set_num_threads(threads)
    read, written = cell.moved_bytes()
    source = np.resize(
        x.view(np.uint8).ravel() if x.flags.c_contiguous else np.zeros(1, np.uint8), read
    )
    words = source[: read // 8 * 8].view(np.int64)
    target = np.zeros(max(1, written // 8), np.int64)
    totals = np.zeros(threads, np.int64)

    def run() -> tuple[Array, ...]:
        _stream(words, target, totals)
        return (totals,)

    run()
    return run
