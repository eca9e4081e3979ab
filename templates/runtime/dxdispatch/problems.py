"""What is wrong with a model file, each with its place there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specops.catalogue import near
from specops.errors import SpecopsError, remade

if TYPE_CHECKING:
    from specops.dxdispatch.nodes import Node

MAX_PROBLEMS = 100  # errors, and warnings, that are told of one file
_LONGEST = 400  # of a text that a file can make as long as it likes
_LONGEST_NAME = 40  # that is compared with others
_MAX_NAMES = 200

UINT32, UINT64 = 2**32 - 1, 2**64 - 1  # the greatest of the types that DxDispatch reads members as


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a model file.

    Attributes:
        file: the file's name as it was given.
        line, column: where in it, counted from 1; 0 for the file as a whole.
        path: the member, as "dispatchables.sum.desc.Axes"; empty for the file as a whole.
        message: what was found, and what is allowed.
        hint: what to do, or where it is written; may be empty.
        severity: "error", or "warning" for what DxDispatch ignores.
        id: of the rule that an operator's page states; empty for all else.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str = ""
    severity: str = "error"
    id: str = ""

    @property
    def place(self) -> str:
        """File, line and column, as editors know them."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.place}: {path}{self.message}"


class ModelError(SpecopsError, ValueError):
    """A model that cannot be run; `problems` names everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        return remade, (type(self), *self.args), self.__dict__


class TooMany(Exception):
    """There are enough problems to stop looking for more."""


class Report:
    """Collects the problems of one file, also of members that are not what they must be."""

    def __init__(self, file: str) -> None:
        self.file = printable(file)
        self.text = ""  # as soon as it is read
        self.problems: list[Problem] = []
        self._warnings = 0

    @property
    def errors(self) -> list[Problem]:
        return [p for p in self.problems if p.severity == "error"]

    def error(self, node: Node, message: str, hint: str = "", id: str = "") -> None:
        """Add an error; raises TooMany where there are enough of them."""
        self._add_error(self._problem(node.offset, node.path(), message, hint, id=id))

    def at(self, offset: int | None, message: str, hint: str = "") -> None:
        """An error at a character of the text, or of the file as a whole."""
        self._add_error(self._problem(offset, "", message, hint))

    def warn(self, node: Node, message: str, name: str = "", known: Iterable[str] = ()) -> None:
        """A warning, as of a name that is none of the known ones; of very many only the first are kept."""
        if self._warnings < MAX_PROBLEMS:
            self._warnings += 1
            hint = did_you_mean(name, known)
            problem = self._problem(node.offset, node.path(), message, hint, severity="warning")
            self.problems.append(problem)

    def fail(self) -> None:
        """Raise ModelError if there are errors."""
        if self.errors:
            raise ModelError(self.problems)

    def failure(self, node: Node, message: str, hint: str = "") -> ModelError:
        """The exception for what goes wrong while a checked model runs."""
        return ModelError([self._problem(node.offset, node.path(), message, hint)])

    # --- what members of an object must be ---

    def refuse(self, node: Node, name: str, allowed: str, hint: str = "") -> None:
        """An error for a member that is missing or is not what is allowed; of one that is there, its path names it."""
        member = node.get(name)
        found = f"{name} is missing" if member is None else f"found {member.kind()}"
        self.error(member or node, f"{found}; allowed: {allowed}", hint)

    def unknown(self, node: Node, known: tuple[str, ...]) -> None:
        """Warnings for members that are none of the known ones."""
        for name, member in node.value.items():
            if name not in known:
                self.warn(member, "not read", name, known)

    def is_object(self, node: Node) -> bool:
        """Whether this has members at all; an error where it has none."""
        if isinstance(node.value, dict):
            return True
        self.error(node, f"found {node.kind()}; allowed: an object")
        return False

    def is_of(self, node: Node, name: str, kind: type, allowed: str) -> bool:
        """Whether a member is of a kind, or not there at all; an error for others."""
        member = node.get(name)
        if member is None or isinstance(member.value, kind):
            return True
        self.refuse(node, name, allowed)
        return False

    def integer(self, node: Node, name: str, high: int, default: int | None) -> int | None:
        """An integer member; None, with an error, where it is none or missing without a default."""
        member = node.get(name)
        if member is None and default is not None:
            return default
        if member is not None and type(member.value) is int and 0 <= member.value <= high:
            return member.value
        self.refuse(node, name, f"an integer from 0 to {high}")
        return None

    def string(self, node: Node, name: str) -> str | None:
        """A string member; None, with an error, where it is none or missing."""
        member = node.get(name)
        if member is not None and isinstance(member.value, str):
            return member.value
        self.refuse(node, name, "a string")
        return None

    def _add_error(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.errors) >= MAX_PROBLEMS:
            raise TooMany

    def _problem(
        self,
        offset: int | None,
        path: str,
        message: str,
        hint: str,
        *,
        severity: str = "error",
        id: str = "",
    ) -> Problem:
        line = column = 0
        if offset is not None:
            line = self.text.count("\n", 0, offset) + 1
            column = offset - self.text.rfind("\n", 0, offset)
        message, hint, path = printable(message), printable(hint), printable(path)
        return Problem(self.file, line, column, path, message, hint, severity, id)


def printable(text: str) -> str:
    """The text without control characters, which could drive a terminal, and no longer than is of use."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 3]}..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """As `near`, of what a file can make as long, and as many, as it likes."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    few = itertools.islice((k for k in known if len(k) <= _LONGEST_NAME), _MAX_NAMES)
    return near(name, few)
