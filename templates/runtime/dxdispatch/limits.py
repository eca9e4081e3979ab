"""What a model may use, and what it uses of that."""

from __future__ import annotations

from dataclasses import dataclass

from specops.dxdispatch.nodes import Node

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


@dataclass
class Count:
    """Bytes that count towards one limit, which may be a share of the memory that a model may use."""

    what: str
    limit: int
    share: str = ""
    total: int = 0
    exceeded: bool = False  # told once

    def add(self, node: Node, amount: int) -> bool:
        """Count an amount; False, and not counted, where that exceeds the limit. The first time is an error."""
        total = self.total + amount
        if total <= self.limit:
            self.total = total
            return True
        if not self.exceeded:
            self.exceeded = True
            found = f"{self.what} {total} bytes in total; the limit is {self.limit}{self.share}"
            node.error(found, "raise it with --max-memory, or Limits(memory=...)")
        return False


class Usage:
    """What one model uses."""

    def __init__(self, limits: Limits) -> None:
        self.memory = Count("buffers of", limits.memory)
        self.written = Count("written files of", limits.memory)
        printed, touched = f", 1/{_PRINTED} of the memory's", f", {_TOUCHED} times the memory's"
        self.printed = Count("printed values of", limits.printed, printed)
        self.touched = Count("dispatches touch", limits.touched, touched)
