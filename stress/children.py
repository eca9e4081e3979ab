"""Numbered cases in forked children, which a parent watches: a hang, a crash or hunger for memory ends one child."""

from __future__ import annotations

import ast
import contextlib
import faulthandler
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MEMORY = 3 << 30  # bytes of address space, beside what the parent has
BATCH = 200  # cases of one child, after which its parent hears of them
SLACK = 10  # others may compute on this machine
PROCESSORS = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


def outcomes(
    run: Callable[[int], str],
    count: int,
    seconds: float,
    end: float = float("inf"),
    memory: int = MEMORY,
    batch: int = BATCH,
) -> Iterator[tuple[int, str]]:
    """Each case from 0 on with what `run` says of it, until the time `end`; `batch` of them in one child.

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
                    range(first, min(first + batch, count)),
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
        faulthandler.enable(2)  # a crash says where
        _limit(memory)
        with results.open("a", encoding="utf-8") as file:
            for number in numbers:
                if time.monotonic() > end:
                    break
                outcome = run(number)
                print(number, ascii(outcome), file=file, flush=True)
                state[:] = struct.pack("q", number + 1)
        code = 0
    except Exception:
        traceback.print_exc()  # _exit shows none
    finally:
        os._exit(code)


def apart(
    run: Callable[[int], bool],
    numbers: Iterable[int],
    seconds: int,
    end: float = float("inf"),
    memory: int = MEMORY,
) -> Iterator[tuple[int, bool]]:
    """Each case in a child of its own, as many at once as there are processors, until the time `end`.

    With each comes whether `run` said yes. It did not where it raised, ended its process or took more than `seconds` of
    a processor's time, or `SLACK` times as long by the clock.
    """
    waiting = iter(numbers)
    # By process: the case, and when it has to have ended.
    running: dict[int, tuple[int, float]] = {}
    try:
        while True:
            while len(running) < PROCESSORS and time.monotonic() < end:
                number = next(waiting, None)
                if number is None:
                    break
                child = os.fork()
                if child == 0:
                    _alone(run, number, seconds, memory)
                running[child] = number, time.monotonic() + SLACK * seconds
            if not running:
                return
            for child, (number, last) in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    del running[child]
                    yield number, status == 0
                elif time.monotonic() > last:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.002)
    finally:
        for child in running:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _alone(run: Callable[[int], bool], number: int, seconds: int, memory: int) -> None:
    status = 1
    try:
        _limit(memory)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        status = 0 if run(number) else 1
    finally:
        os._exit(status)


def _limit(memory: int) -> None:
    """So many bytes of address space more than this process has: in a long run of tests that alone is gigabytes."""
    with contextlib.suppress(OSError):  # elsewhere than on Linux the limit does without
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        memory += int(pages) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
