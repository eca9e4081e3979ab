"""One implementation in a process of its own: python -m benchmarks.worker NAME THREADS.

It reads a line of JSON at a time, {"cell": ..} or {"turn": seconds}, and answers with one.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cells import Array, Cell
from benchmarks.implementations import Unsupported

DIGESTED = 1 << 16  # elements of an output that are compared
SLOW = 1.0  # seconds of a first call that is not repeated
LEAST_SECONDS = 2e-4  # of one measurement: quicker calls are repeated within it


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    implementation = importlib.import_module(f"benchmarks.implementations.{name}")
    run: Callable[[], tuple[Array, ...]] | None = None
    repeats = 1
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any]
        if "cell" in asked:
            run = None  # frees the last cell's memory
            cell = Cell.of(asked["cell"])
            try:
                run = implementation.prepare(cell, cell.input(), threads)
                once, outputs = _once(run)
                answer = {"digest": _digest(outputs), "seconds": once}
                if once < SLOW:
                    answer["seconds"], _ = _once(run)
                repeats = max(1, round(LEAST_SECONDS / answer["seconds"]))
            except Unsupported as reason:
                answer = {"unsupported": str(reason)}
        else:
            assert run is not None
            answer = {"seconds": _turn(run, repeats, asked["turn"])}
        print(json.dumps(answer), file=answers, flush=True)


def _once(run: Callable[[], tuple[Array, ...]]) -> tuple[float, tuple[Array, ...]]:
    begin = time.perf_counter()
    outputs = run()
    return max(time.perf_counter() - begin, 1e-7), outputs


def _turn(run: Callable[[], Any], repeats: int, budget: float) -> list[float]:
    """Seconds of a call, measured for as long as the budget lasts."""
    run()  # caches and threads wake up
    times: list[float] = []
    end = time.perf_counter() + budget
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(repeats):
            run()
        times.append((time.perf_counter() - begin) / repeats)
    return times


def _digest(outputs: tuple[Array, ...]) -> float:
    """A number that implementations which agree share: of the first output, for indices are counted differently."""
    values = outputs[0].ravel()[:DIGESTED].astype(np.float64)
    # Not by a dot product, after which BLAS's threads keep a core busy for some 80 ms.
    return float((values * np.linspace(1, 2, values.size)).sum())


if __name__ == "__main__":
    main()
