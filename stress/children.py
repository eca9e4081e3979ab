"""Numbered cases in forked children, which a parent watches: a hang, a crash or hunger for memory ends one child."""

from __future__ import annotations

import ast
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MEMORY = 3 << 30  # bytes of address space
BATCH = 200  # cases of one child, after which its parent hears of them


def outcomes(
    run: Callable[[int], str],
    count: int,
    seconds: float,
    end: float = float("inf"),
    memory: int = MEMORY,
) -> Iterator[tuple[int, str]]:
    """Each case from 0 on with what `run` says of it, until the time `end`.

    A case that does not end within `seconds`, or ends its process, says so itself; a new child goes on behind it.
    """
    first = 0
    while first < count and time.monotonic() < end:
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as results:
            state = mmap.mmap(-1, 8)
            state[:] = struct.pack("q", first)
            child = os.fork()
            if child == 0:
                _child(
                    run,
                    range(first, min(first + BATCH, count)),
                    end,
                    memory,
                    state,
                    Path(results.name),
                )
            failed = _watch(child, state, seconds)
            (first,) = struct.unpack("q", state[:])
            for line in results:
                number, _, outcome = line.partition(" ")
                yield int(number), ast.literal_eval(outcome)
        if failed:
            yield first, failed
            first += 1


def _watch(child: int, state: mmap.mmap, seconds: float) -> str:
    """Why the child ended in the middle of a case; empty where it came to its end."""
    last, since = b"", time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "" if status == 0 else f"the process ended with status {status}"
        now = state[:]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > seconds:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"not ended after {seconds:.0f} s"
        time.sleep(0.01)


def _child(
    run: Callable[[int], str],
    numbers: range,
    end: float,
    memory: int,
    state: mmap.mmap,
    results: Path,
) -> None:
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        with results.open("a", encoding="utf-8") as file:
            for number in numbers:
                if time.monotonic() > end:
                    break
                outcome = run(number)
                print(number, ascii(outcome), file=file, flush=True)
                state[:] = struct.pack("q", number + 1)
        code = 0
    finally:
        os._exit(code)
