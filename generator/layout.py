"""How wide generated code is: what the linter measures expressions by, and what they, and imports, are laid out by."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100  # of a line
WITHIN = 96  # of a line of a function's body, without its indentation
ARGUMENT = 92  # of one of a call in a function's body, with its comma


def fits(name: str, text: str) -> bool:
    """Whether `name=text,` fits the line of an argument."""
    return len(f"{name}={text},") <= ARGUMENT


def imported(names: Sequence[str], module: str) -> str:
    """An import statement as a formatter would lay it out."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def quoted(text: str) -> str:
    """A text of a spec, which is printable ASCII without a backslash, with the quotes that a formatter would choose."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + text.replace(quote, f"\\{quote}") + quote
