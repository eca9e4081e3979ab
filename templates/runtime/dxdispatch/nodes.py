"""The values of a model file as nodes that know their place and say what is wrong there."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from specops.dxdispatch.problems import MAX_PROBLEMS, Problem, Report, did_you_mean

UINT32, UINT64 = 2**32 - 1, 2**64 - 1  # the greatest of the types that DxDispatch reads members as


class Node:
    """A value of a file.

    `value` is None, a bool, an int, a float, a str, a dict of nodes, or Items. `parent` and `key` say which member of
    which node it is. What is wrong with it is added to `report`.
    """

    __slots__ = ("key", "offset", "parent", "report", "value")

    def __init__(
        self, report: Report, offset: int, parent: Node | None = None, key: str | int = ""
    ) -> None:
        self.report, self.offset, self.parent, self.key = report, offset, parent, key
        self.value: Any = None

    def path(self) -> str:
        """The way from the root, as "commands[2].bindings"."""
        steps: list[str] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            steps.append(f"[{node.key}]" if isinstance(node.key, int) else f".{node.key}")
            node = node.parent
        return "".join(reversed(steps)).lstrip(".")

    def get(self, name: str) -> Node | None:
        """The member of an object; None where there is none, or where this is no object."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    def kind(self) -> str:
        """What the value is, for messages."""
        if isinstance(self.value, dict):
            return "an object"
        if isinstance(self.value, Items):
            return "an array"
        if isinstance(self.value, str):
            return f'"{self.value[:60]}"'
        if self.value is None or isinstance(self.value, bool):
            return json.dumps(self.value)
        return str(self.value)

    __repr__ = kind

    # --- what is wrong with it ---

    def problem(
        self, message: str, hint: str = "", severity: str = "error", id: str = ""
    ) -> Problem:
        """A problem at this place, which is not added to the report."""
        return self.report.problem(self.offset, self.path(), message, hint, severity, id)

    def error(self, message: str, hint: str = "", id: str = "") -> None:
        """Add an error; raises TooMany where there are enough of them."""
        self.report.add(self.problem(message, hint, id=id))

    def warn(self, message: str, name: str = "", known: Iterable[str] = ()) -> None:
        """Add a warning, as of a name that is none of the known ones; of very many only the first are kept."""
        if self.report.warnings < MAX_PROBLEMS:
            self.report.add(self.problem(message, did_you_mean(name, known), "warning"))

    def refuse(self, allowed: str, hint: str = "") -> None:
        """An error for a value that is not what is allowed."""
        self.error(f"found {self.kind()}; allowed: {allowed}", hint)

    # --- what its members must be ---

    def refuse_member(self, name: str, allowed: str, hint: str = "") -> None:
        """An error for a member that is missing or is not what is allowed; of one that is there, its path names it."""
        member = self.get(name)
        if member is None:
            self.error(f"{name} is missing; allowed: {allowed}", hint)
        else:
            member.refuse(allowed, hint)

    def unknown(self, known: tuple[str, ...]) -> None:
        """Warnings for members that are none of the known ones."""
        for name, member in self.value.items():
            if name not in known:
                member.warn("not read", name, known)

    def is_object(self) -> bool:
        """Whether this has members at all; an error where it has none."""
        if isinstance(self.value, dict):
            return True
        self.refuse("an object")
        return False

    def may_have(self, name: str, kind: type, allowed: str) -> bool:
        """Whether a member is of a kind, or not there at all; an error for others."""
        return self.get(name) is None or self.member(name, kind, allowed) is not None

    def member(self, name: str, kind: type, allowed: str, hint: str = "") -> Node | None:
        """A member of a kind; None, with an error, where it is of another one or missing."""
        member = self.get(name)
        if member is not None and isinstance(member.value, kind):
            return member
        self.refuse_member(name, allowed, hint)
        return None

    def string(self, name: str) -> Node | None:
        """A member that is a string; None, with an error, where it is none or missing."""
        return self.member(name, str, "a string")

    def integer(self, name: str, high: int, default: int | None = None) -> int | None:
        """An integer member; None, with an error, where it is none or missing without a default."""
        member = self.get(name)
        if member is None and default is not None:
            return default
        if member is not None and type(member.value) is int and 0 <= member.value <= high:
            return member.value
        self.refuse_member(name, f"an integer from 0 to {high}")
        return None


class Items:
    """The entries of an array: plain values as they are, which keeps large arrays small, and nodes."""

    __slots__ = ("node", "offsets", "values")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.values: list[Any] = []
        self.offsets = array("I")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Node:
        value = self.values[i]
        if isinstance(value, Node):
            return value
        node = Node(self.node.report, self.offsets[i], self.node, i)
        node.value = value
        return node

    def __iter__(self) -> Iterator[Node]:
        return (self[i] for i in range(len(self)))
