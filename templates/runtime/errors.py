"""What can go wrong, as one family of exceptions.

>>> from specops.errors import ValidationError
>>> issubclass(ValidationError, ValueError)
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


def remade(kind: type[SpecopsError], *arguments: Any) -> SpecopsError:
    """An error that was pickled, to which its attributes are added: a class of its own may be made of others."""
    return kind.__new__(kind, *arguments)


class SpecopsError(Exception):
    """The root of all errors that this package raises on purpose."""


class NoMemoryError(SpecopsError, MemoryError):
    """There is no memory for an output, or for what is kept while a call runs."""


class ThreadLimitError(SpecopsError, ValueError):
    """A limit of threads that is no such number."""


class UsageError(SpecopsError):
    """A name that stands for nothing, or options that do not go together; and a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Unsupported(SpecopsError):
    """A model, or a device, that asks for what this package does not have.

    Attributes:
        reasons: one sentence for each thing it lacks; of a node with its place, operator, domain and version. The
            message shows the first 20.
    """

    def __init__(self, subject: str, reasons: Iterable[str], hint: str = "") -> None:
        self.subject, self.reasons, self.hint = subject, tuple(reasons), hint
        lines = [f"{subject} is not supported:", *self.reasons[:20]]
        if len(self.reasons) > 20:
            lines.append(f"and {len(self.reasons) - 20} more, in `reasons`")
        super().__init__("\n  ".join([*lines, hint] if hint else lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return remade, (type(self), *self.args), self.__dict__


@dataclass(frozen=True)
class Violation:
    """One rule that a call breaks.

    Attributes:
        id: the rule's id, the same in the spec, the validator and the tests.
        operator: the operator's name on its page.
        field: the field to blame.
        found: what was given.
        allowed: what is allowed.
        page: the address of the page, and the place on it where the page says so.
    """

    id: str
    operator: str
    field: str
    found: str
    allowed: str
    page: str

    def __str__(self) -> str:
        return f"{self.field}: found {self.found}; allowed: {self.allowed} [{self.id}; {self.page}]"


class ValidationError(SpecopsError, ValueError):
    """A call or a description that its page does not allow; `violations` names each broken rule."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = found = tuple(violations)
        head = f"{len(found)} violation{'s' if len(found) > 1 else ''}"
        lines = [str(v) for v in found]
        if len({v.operator for v in found}) == 1:
            head = f"{found[0].operator}: {head}"
        else:  # of several nodes of a model, each with its own
            lines = [f"{v.operator}: {line}" for v, line in zip(found, lines, strict=True)]
        super().__init__("\n  ".join([head, *lines]))

    def __reduce__(self) -> tuple[Any, ...]:
        return remade, (type(self), *self.args), self.__dict__
