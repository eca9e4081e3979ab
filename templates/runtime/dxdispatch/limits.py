"""What a model may use, and what it uses of that."""

from __future__ import annotations

from dataclasses import dataclass

from specops.dxdispatch.nodes import Node
from specops.dxdispatch.problems import Report

_PRINTED = 16
_TOUCHED = 64


@dataclass(frozen=True)
class Limits:
    """What a model may use, so that no file can exhaust a machine.

    Attributes:
        memory: bytes of all buffers together. Files may be as large in total, printed values take a sixteenth of it,
            and all commands together touch at most 64 times as many bytes of buffers.
    """

    memory: int = 1 << 30

    @property
    def printed(self) -> int:
        return self.memory // _PRINTED

    @property
    def touched(self) -> int:
        return self.memory * _TOUCHED


class Count:
    """Bytes that count towards one limit."""

    def __init__(self, report: Report, limit: int, what: str, share: str = "") -> None:
        self._report = report
        self._limit = limit
        self._what = what
        self._share = share  # of the memory that a model may use
        self._total = 0
        self._exceeded = False  # told once

    def add(self, node: Node, amount: int) -> bool:
        """Count an amount; False, and not counted, where that exceeds the limit. The first time is an error."""
        total = self._total + amount
        if total <= self._limit:
            self._total = total
            return True
        if not self._exceeded:
            self._exceeded = True
            found = f"{self._what} {total} bytes in total; the limit is {self._limit}{self._share}"
            hint = "raise it with --max-memory, or Limits(memory=...)"
            self._report.error(node, found, hint)
        return False


class Usage:
    """What one model uses."""

    def __init__(self, report: Report, limits: Limits) -> None:
        self.memory = Count(report, limits.memory, "buffers of")
        self.written = Count(report, limits.memory, "written files of")
        printed, touched = f", 1/{_PRINTED} of the memory's", f", {_TOUCHED} times the memory's"
        self.printed = Count(report, limits.printed, "printed values of", printed)
        self.touched = Count(report, limits.touched, "dispatches touch", touched)
