"""Ctrl-C and SIGTERM end a run within a moment, also while a kernel runs.

Python handles signals between two steps of its own in the main thread, and a kernel is one step however long it takes.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from specops.command.terminal import complain, exit_now
from specops.dxdispatch import files

_MOMENT = 0.5  # seconds in which Python may end the run by itself


@contextmanager
def ends_at_signals() -> Iterator[None]:
    """Around a run in the main thread. Signals that the caller has handlers for are left to these."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminate = signal.getsignal(signal.SIGTERM)
    watched = (
        {signal.SIGINT} if signal.getsignal(signal.SIGINT) is signal.default_int_handler else set()
    )
    if terminate is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
        watched.add(signal.SIGTERM)
    ended = threading.Event()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    previous = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(ours, watched, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(previous)
        if signal.SIGTERM in watched:
            signal.signal(signal.SIGTERM, terminate)
        theirs.close()
        watch.join()
        ours.close()


def _watch(signals: socket.socket, watched: Container[int], ended: threading.Event) -> None:
    """End the process at a signal, if the main thread does not."""
    while numbers := signals.recv(1):
        if numbers[0] in watched and not ended.wait(_MOMENT):
            if numbers[0] == signal.SIGINT:
                complain("error", "interrupted")
            files.abandon()
            exit_now(_code(numbers[0]))


def _terminated(number: int, _frame: Any) -> NoReturn:
    raise SystemExit(_code(number))


def _code(number: int) -> int:
    """As shells tell the signal that ended a process."""
    return 128 + number
