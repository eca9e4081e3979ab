"""The operators that were generated, by all their names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from specops.errors import UsageError

_PACKAGES = {"specops": "plain", "specops.directml": "directml", "specops.onnx": "onnx"}
_FEW = 3  # operators that a hint names


@dataclass(frozen=True, eq=False)
class Entry:
    """One operator, or of ONNX one version of it.

    Attributes:
        id: dialect and name, as "directml/argmax" or "onnx/argmax_13".
        operator: its name on its page.
        since: the feature level or operator set that brought it; may be empty.
        newest: whether it is the newest of its versions.
        summary: one sentence.
        calls: examples of inputs, attributes and outputs, by the fields' names.
    """

    id: str
    operator: str
    since: str
    newest: bool
    summary: str
    calls: tuple[dict[str, Any], ...]

    @property
    def dialect(self) -> str:
        return self.id.split("/")[0]

    @property
    def name(self) -> str:
        """Without dialect and version."""
        name = self.id.split("/")[1]
        return re.sub(r"_[0-9]+$", "", name) if self.dialect == "onnx" else name

    @property
    def names(self) -> set[str]:
        """All that it is called on the command line."""
        name = self.id.split("/")[1]
        short = self.operator.removeprefix("DML_OPERATOR_")
        of_newest = {self.operator, short, self.name, f"{self.dialect}/{self.name}"}
        if self.dialect == "directml":
            words = "".join(word.capitalize() for word in short.split("_"))
            of_newest |= {f"DML_{short}_OPERATOR_DESC", f"{words}OperatorDesc"}
        return {self.id, name} | (of_newest if self.newest else set())

    def is_called(self, name: str) -> bool:
        """Whether a name, in any case, is one of its own."""
        return name.casefold() in {n.casefold() for n in self.names}

    def page(self) -> str:
        """All that is known of it, as text."""
        file = f"{self.id.replace('/', '_')}.txt"
        return (files("specops") / "pages" / file).read_text(encoding="utf-8")


@cache
def entries() -> tuple[Entry, ...]:
    """All operators, in the order of their ids."""
    text = (files("specops") / "catalogue.json").read_text(encoding="utf-8")
    return tuple(
        Entry(**{**record, "calls": tuple(record["calls"])}) for record in json.loads(text)
    )


def find(name: str, sought: str = "operator") -> list[Entry]:
    """The operators of a name, of ONNX the newest versions unless one is named.

    Raises UsageError, which says that there is no such thing as was `sought`.
    """
    own = _of_function(name)
    found = [e for e in entries() if e.is_called(own)]
    if not found:
        known = (n for e in entries() for n in e.names)
        package = name.rstrip(".")
        if package in _PACKAGES:
            hint = f"name a function of it, as `{package}.softmax`"
        else:
            hint = _versions(own) or _named(related(own)) or near(own, known)
        raise UsageError(f"there is no {sought} {name[:60]!r}; `specops list` names all", hint)
    return found


def _of_function(name: str) -> str:
    """The name here of a function by its name in Python, as "onnx/argmax" of "specops.onnx.argmax"."""
    package, _, function = name.rpartition(".")
    dialect = _PACKAGES.get(package)
    return f"{dialect}/{function}" if dialect else name


def related(name: str) -> list[Entry]:
    """Operators whose names have this one within them, as ACTIVATION_SOFTMAX1 has softmax."""
    dialect, _, part = _folded(name).rpartition("/")
    found = []
    for e in entries():
        words = f"{e.name} {e.operator}" if dialect else f"{e.dialect} {e.name} {e.operator}"
        fits = dialect in ("", e.dialect) and part in _folded(words)
        if e.newest and name and fits and not e.is_called(name):
            found.append(e)
    return found


def _versions(name: str) -> str:
    """A hint that names all versions of an ONNX operator; empty where the name is not one's with a number."""
    own, _, number = name.casefold().rpartition("_")
    found = [e.id for e in entries() if e.dialect == "onnx" and own in (e.name, f"onnx/{e.name}")]
    if not number.isdecimal() or not found:
        return ""
    found.sort(key=lambda id: int(id.rpartition("_")[2]))
    return f"its versions are {', '.join(f'`{id}`' for id in found)}"


def _folded(name: str) -> str:
    """Without what people leave out."""
    return name.casefold().replace("_", "")


def _named(found: list[Entry]) -> str:
    """A hint that names some operators."""
    ids = [f"`{e.dialect}/{e.name}`" for e in found]
    if len(ids) > _FEW:
        return f"{', '.join(ids[:_FEW])} and {len(ids) - _FEW} more have it in their names"
    return f"did you mean {' or '.join(ids)}?" if ids else ""


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest of the known words; empty where none is near."""
    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name[:60].casefold(), folded, n=1)
    return f"did you mean `{folded[close[0]]}`?" if close else ""
