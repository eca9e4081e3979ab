"""What can go wrong, as one family of exceptions.

>>> from specops.errors import ValidationError
>>> issubclass(ValidationError, ValueError)
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class SpecopsError(Exception):
    """The root of all errors that this package raises on purpose."""


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
        self.violations = tuple(violations)
        count = len(self.violations)
        head = f"{self.violations[0].operator}: {count} violation{'s' if count > 1 else ''}"
        super().__init__("\n  ".join([head, *map(str, self.violations)]))

    def __reduce__(self) -> tuple[type[ValidationError], tuple[tuple[Violation, ...]]]:
        return (ValidationError, (self.violations,))
