"""How wide generated code is: what the linter measures expressions by, and what they are laid out by."""

from __future__ import annotations

WIDTH = 100  # of a line
WITHIN = 96  # of a line of a function's body, without its indentation
ARGUMENT = 92  # of one of a call in a function's body, with its comma


def fits(name: str, text: str) -> bool:
    """Whether `name=text,` fits the line of an argument."""
    return len(f"{name}={text},") <= ARGUMENT
