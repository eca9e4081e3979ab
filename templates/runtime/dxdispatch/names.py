"""Names by which other parts of a model speak of a section's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from specops.dxdispatch.nodes import Node
from specops.dxdispatch.problems import Report, did_you_mean

Entry = TypeVar("Entry")


class Names(Generic[Entry]):
    """The names of one section.

    Args:
        what: an entry of it, for messages.
        read: the entries that could be read, by name; it grows as they are.
    """

    def __init__(self, report: Report, what: str, read: Mapping[str, Entry]) -> None:
        self._report = report
        self._what = what
        self._read = read
        self._begun: set[str] = set()

    def begin(self, name: str) -> None:
        """An entry is about to be read. Where that fails it is blamed itself, and what names it is not."""
        self._begun.add(name)

    def find(self, node: Node) -> Entry | None:
        """What a name stands for; None, with an error unless it was already blamed, where that is nothing."""
        name = node.value
        if isinstance(name, str) and name in self._read:
            return self._read[name]
        if not isinstance(name, str) or name not in self._begun:
            known = list(dict.fromkeys([*self._read, *sorted(self._begun)]))
            hint = did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}"
            self._report.error(node, f"there is no {self._what} {node.kind()}", hint)
        return None
