"""Threads that help with large calls, and the board on which `chunks.parallel` and `chunks.serve` find each other."""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from specops.kernels import chunks

_ROW_BYTES = chunks.WORD * chunks.LINE

# The locks of Python's own threads: on every system, without the GIL.
_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(
    ("PyThread_acquire_lock", ctypes.pythonapi)
)
_release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyThread_release_lock", ctypes.pythonapi))


class Workers:
    """Threads in `chunks.serve`, which is compiled: they never take the GIL, and end with the process.

    Attributes:
        board: its address.
        number: how many there are: fewer than asked for where the system gives no more.
    """

    def __init__(self, number: int) -> None:
        memory = np.zeros(chunks.LINE * (number + 2), np.int64)
        # Kept for ever: workers look at it even while the interpreter shuts down.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
        begin = -memory.ctypes.data % _ROW_BYTES
        words = memory[begin // chunks.WORD :]
        self.board = memory.ctypes.data + begin
        words[chunks.ACQUIRE], words[chunks.RELEASE] = _address(_acquire), _address(_release)
        self.number = 0
        for worker in range(1, number + 1):
            row = words[chunks.LINE * worker :]
            row[chunks.BELL], row[chunks.DONE] = _locked(), _locked()
            if not self._start(worker):
                break
            self.number = worker

    def _start(self, worker: int) -> bool:
        name, task = f"specops-{worker}", (self.board, worker)
        try:
            threading.Thread(target=chunks.serve, args=task, name=name, daemon=True).start()
        except RuntimeError:  # there are no more, or the interpreter is shutting down
            return False
        return True


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _locked() -> int:
    """A lock that is never freed: whoever acquires it waits until somebody releases it."""
    lock = _allocate()
    if not lock:
        raise MemoryError("no memory for a lock")
    _acquire(lock, 1)
    return int(lock)
