"""Errors of reductions and poolings beside those of the peers, on the same inputs.

python -m benchmarks.accuracy    # half a minute

An error is that of the worst output, in units in the last place of the data type: at the result or, for sums and
averages, at the sum or average of the magnitudes. The truth is computed with math.fsum.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import product

import numpy as np

from benchmarks.cells import Array, Cell
from benchmarks.implementations import NAMES, Unsupported

LENGTHS = (100, 10_000, 1_000_000)
TRUTHS: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "l2_norm": lambda g: math.sqrt(math.fsum(v * v for v in g)),
    "logsumexp": lambda g: _logsumexp(g, max(g)),
}
POOLS = [  # shape, window and stride: a short window, and a long one over many planes
    ((1, 2, 65, 65), (5, 5), 2),
    ((1, 32, 25, 25), (13, 13), 1),
]
HEADING = "worst error, in units in the last place"


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    ).parse_args()
    print(_row(HEADING, NAMES))
    for operator in TRUTHS:
        for dtype in ("float32", "float16"):
            for n in LENGTHS:
                if dtype == "float16" and n > 10_000 and operator == "sum":
                    continue  # beyond its greatest number
                cell = Cell(operator, dtype, (4, n), axes=(1,))
                x = cell.input()
                _line(cell, x, [_reduced(operator, row) for row in _rows(x)])
    for operator, pool, dtype in product(
        ("average_pool", "lp_pool"), POOLS, ("float32", "float16")
    ):
        shape, window, stride = pool
        cell = Cell(operator, dtype, shape, window=window, strides=(stride,) * 2, padding=(0, 0))
        x = cell.input()
        _line(cell, x, [_pooled(operator, w) for w in _windows(x, window, stride)])


def _rows(x: Array) -> Iterable[list[float]]:
    return (row.astype(np.float64).tolist() for row in x)


def _windows(x: Array, window: tuple[int, int], stride: int) -> Iterable[list[float]]:
    views = np.lib.stride_tricks.sliding_window_view(x, window, (2, 3))
    return _rows(views[..., ::stride, ::stride, :, :].reshape(-1, math.prod(window)))


def _reduced(operator: str, group: list[float]) -> tuple[float, float]:
    """The truth, and the number by whose unit in the last place errors are measured."""
    truth = TRUTHS[operator](group)
    return truth, math.fsum(map(abs, group)) if operator == "sum" else truth


def _logsumexp(group: list[float], greatest: float) -> float:
    return greatest + math.log(math.fsum(math.exp(v - greatest) for v in group))


def _pooled(operator: str, group: list[float]) -> tuple[float, float]:
    if operator == "lp_pool":
        return _reduced("l2_norm", group)
    truth, scale = _reduced("sum", group)
    return truth / len(group), scale / len(group)


def _line(cell: Cell, x: Array, truths: list[tuple[float, float]]) -> None:
    shown = []
    for name in NAMES:
        module = import_module(f"benchmarks.implementations.{name}")
        try:
            (result,) = module.prepare(cell, x, 1)()
        except Unsupported:
            shown.append("-")
            continue
        if result.size != len(truths):
            shown.append("wrong shape")
            continue
        errors = [
            abs(found - truth) / float(np.spacing(np.array(abs(scale), cell.dtype)))
            for found, (truth, scale) in zip(result.ravel().tolist(), truths, strict=True)
        ]
        shown.append(f"{np.max(errors):.2f}")  # NaN where one is: Python's `max` would pass it over
    print(_row(cell.name, shown), flush=True)


def _row(name: str, columns: Iterable[str]) -> str:
    """The names of the pooling cells are the longest, with 49 characters."""
    return f"{name:<50}" + "".join(f"{text:>14}" for text in columns)


if __name__ == "__main__":
    main()
