"""Threads that help with large calls, and the board on which `chunks.parallel` and `chunks.serve` find each other."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

import numpy as np

from specops.kernels import chunks

_ROW_BYTES = chunks.WORD * chunks.LINE

# The threads and locks of which Python's own are made: on every system, without the GIL, and nobody's to replace, as
# gevent does with those of `threading`.
_start = ctypes.PYFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyThread_start_new_thread", ctypes.pythonapi)
)
_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(
    ("PyThread_acquire_lock", ctypes.pythonapi)
)
_release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyThread_release_lock", ctypes.pythonapi))
_QUOTA = "/sys/fs/cgroup/cpu.max"
_NO_THREAD = ctypes.c_ulong(-1).value


class Workers:
    """Threads in `chunks.serve`, which know nothing of Python, and end with the process.

    Args:
        serve: its address, as C calls it.
        most: how many there may be.

    Attributes:
        board: its address.
        number: how many there are.
    """

    def __init__(self, serve: int, most: int) -> None:
        self._serve = serve
        self.most = most
        self.number = 0
        memory = np.zeros(chunks.LINE * (most + 2), np.int64)
        # Kept for ever: workers look at it even while the interpreter shuts down.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
        begin = -memory.ctypes.data % _ROW_BYTES
        words = memory[begin // chunks.WORD :]
        self.board = memory.ctypes.data + begin
        words[chunks.ACQUIRE], words[chunks.RELEASE] = _address(_acquire), _address(_release)
        words[chunks.GIVE_WAY] = _gives_way()
        cores = _cores()
        for worker in range(1, most + 1):
            row = words[chunks.LINE * worker :]
            row[chunks.BELL], row[chunks.DONE] = _locked(), _locked()
            row[chunks.NUMBER] = worker
            row[chunks.PATIENCE] = chunks.SPINS if worker < cores else chunks.FEW_SPINS

    def start(self) -> None:
        """Start those that are missing; where the system gives no more, a later call may."""
        while self.number < self.most:
            # Counted first: after an interrupt here a worker is missing, but none is there twice.
            self.number += 1
            if _start(self._serve, self.board + _ROW_BYTES * self.number) == _NO_THREAD:
                self.number -= 1
                return


def _cores() -> int:
    """The cores that this process may use at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    # Elsewhere than in a container of Linux there is no such file; one without a limit says "max".
    with contextlib.suppress(OSError, ValueError):
        with open(_QUOTA, encoding="ascii") as file:
            quota, period = map(int, file.read().split())
        cores = min(cores, -(-quota // period))
    return cores


def _gives_way() -> int:
    """The address of what lets other threads have the core; 0 where there is no such function."""
    windows = os.name == "nt"
    try:
        library = ctypes.CDLL("kernel32" if windows else None)
        return _address(library.SwitchToThread if windows else library.sched_yield)
    except (OSError, TypeError, AttributeError):
        return 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _locked() -> int:
    """A lock that is never freed: whoever acquires it waits until somebody releases it."""
    lock = _allocate()
    if not lock:
        raise MemoryError("no memory for a lock")
    _acquire(lock, 1)
    return int(lock)
