"""All implementations asked in turn for one cell after the other."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.implementations import LIMIT, NAMES
from benchmarks.worker import SLOW

ROOT = Path(__file__).resolve().parent.parent
PAUSE = 0.03  # after a turn, until the threads of that implementation sleep
TWO_ROUNDS_SECONDS = 0.03  # a call that takes longer is asked for in two rounds
TOLERANCE = 2e-3  # relative difference of two outputs that agree, float16 softmax included


@dataclass
class Row:
    """What was measured of one cell."""

    cell: Cell
    seconds: dict[str, float] = field(default_factory=dict)  # median, by implementation
    unsupported: dict[str, str] = field(default_factory=dict)  # reason, by implementation
    differs: list[str] = field(default_factory=list)  # implementations with another result

    @property
    def ours(self) -> float:
        return self.seconds["specops"]

    @property
    def best_peer(self) -> str | None:
        peers = {n: s for n, s in self.seconds.items() if n not in {"specops", LIMIT}}
        return min(peers, key=lambda n: peers[n]) if peers else None

    @property
    def ratio(self) -> float | None:
        """How often we finish while the fastest peer does once."""
        return None if self.best_peer is None else self.seconds[self.best_peer] / self.ours

    @property
    def share(self) -> float:
        """Of the streaming limit."""
        return self.seconds[LIMIT] / self.ours

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.cell.name,
            "cell": self.cell.as_json(),
            "seconds": self.seconds,
            "unsupported": self.unsupported,
            "differs": self.differs,
        }


class Worker:
    """The process of one implementation."""

    def __init__(self, name: str, threads: int) -> None:
        limits = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            # In CI OpenVINO sends nothing to its makers, for which it would fork amid its threads.
            env={**os.environ, **dict.fromkeys(limits, str(threads)), "CI": "true"},
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """The answer to one line of JSON."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.name} died at {question}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        # Not read to their end: a process that a peer began may hold them. Nor may what is left be written.
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def absent() -> list[str]:
    """Peers that are not installed."""
    return [name for name in NAMES if find_spec(name) is None]


def measure(cells: Iterable[Cell], *, threads: int, rounds: int, turn: float) -> Iterator[Row]:
    """A row for each cell: the median over `rounds` turns of `turn` seconds."""
    missing = absent()
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(name, threads))
            for name in (*NAMES, LIMIT)
            if name not in missing
        ]
        for cell in cells:
            yield _row(cell, workers, rounds, turn)


def _row(cell: Cell, workers: list[Worker], rounds: int, turn: float) -> Row:
    row = Row(cell)
    times: dict[str, list[float]] = {}
    digests: dict[str, float] = {}
    turns: dict[str, int] = {}
    for worker in workers:
        answer = worker.ask(cell=cell.as_json())
        if "unsupported" in answer:
            row.unsupported[worker.name] = answer["unsupported"]
            continue
        times[worker.name] = []
        digests[worker.name] = answer["digest"]
        once = answer["seconds"]
        if once > SLOW:
            times[worker.name].append(once)
        turns[worker.name] = 0 if once > SLOW else 2 if once > TWO_ROUNDS_SECONDS else rounds
        time.sleep(PAUSE)
    for r in range(rounds):
        for worker in workers:
            if r >= turns.get(worker.name, 0):
                continue
            times[worker.name] += worker.ask(turn=turn)["seconds"]
            time.sleep(PAUSE)
    row.seconds = {name: statistics.median(some) for name, some in times.items()}
    ours = digests["specops"]
    row.differs = [n for n, theirs in digests.items() if n != LIMIT and not agree(ours, theirs)]
    return row


def agree(ours: float, theirs: float) -> bool:
    """Whether digests are of outputs that agree: NaN agrees with NaN alone, an infinity with itself."""
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
