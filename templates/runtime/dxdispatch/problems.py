"""What is wrong with a model file, each with its place there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from specops.catalogue import near
from specops.errors import SpecopsError, remade

MAX_PROBLEMS = 100  # errors, and warnings, that are told of one file
_LONGEST = 400  # of a text that a file can make as long as it likes
_LONGEST_NAME = 40  # that is compared with others
_MAX_NAMES = 200


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
    """Collects the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = printable(file)
        self.text = ""  # as soon as it is read
        self.problems: list[Problem] = []
        self.errors = self.warnings = 0  # how many

    def problem(
        self,
        offset: int | None,
        path: str,
        message: str,
        hint: str = "",
        severity: str = "error",
        id: str = "",
    ) -> Problem:
        """A problem at a character of the text, or of the file as a whole."""
        line = column = 0
        if offset is not None:
            line = self.text.count("\n", 0, offset) + 1
            column = offset - self.text.rfind("\n", 0, offset)
        message, hint, path = printable(message), printable(hint), printable(path)
        return Problem(self.file, line, column, path, message, hint, severity, id)

    def add(self, problem: Problem) -> None:
        """Add a problem; raises TooMany where there are enough errors."""
        self.problems.append(problem)
        if problem.severity == "warning":
            self.warnings += 1
            return
        self.errors += 1
        if self.errors >= MAX_PROBLEMS:
            raise TooMany

    def error(self, offset: int | None, message: str, hint: str = "") -> None:
        """Add an error of no member: at a character, or of the file as a whole."""
        self.add(self.problem(offset, "", message, hint))

    def fail(self) -> None:
        """Raise ModelError if there are errors."""
        if self.errors:
            raise ModelError(self.problems)


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
