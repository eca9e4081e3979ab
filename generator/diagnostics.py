"""Errors with a code, a place, a caret and one line of help; all of them together, sorted by place."""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

MAX_ERRORS = 200  # that are kept; who has more mends these first
_MESSAGE = 500  # characters of a message, which may quote a spec
_BEFORE, _SHOWN = 80, 160  # columns of a line: before the caret, and in all


@dataclass(frozen=True, order=True)
class Span:
    """A place in a text file: line and column count from 1, length in characters on that line.

    Line 0 stands for the file as a whole, or a folder, which the message names.
    """

    file: str
    line: int = 0
    column: int = 0
    length: int = 1

    def shifted(self, columns: int, length: int) -> Span:
        return Span(self.file, self.line, self.column + columns, max(1, length))


@dataclass(frozen=True)
class Note:
    """A second place that explains the first."""

    span: Span
    label: str


@dataclass(frozen=True)
class Diagnostic:
    code: str
    message: str
    span: Span | None = None
    label: str = ""
    notes: tuple[Note, ...] = ()
    help: str = ""


@dataclass
class Report:
    """Collects diagnostics; knows the text of each file, to show the line.

    `count` is how many there were, also beyond those that are kept; of the same one at one place the first is.
    `stopped` are the files whose errors leave out further checks of them.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    lines: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    stopped: set[str] = field(default_factory=set)

    def add(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        label: str = "",
        *,
        notes: Iterable[Note] = (),
        help: str = "",
    ) -> None:
        self.count += 1
        message, label, help = map(_short, (message, label, help))
        known = ((d.code, d.message, d.span) for d in self.diagnostics)
        if self.full or (code, message, span) in known:
            return  # the same again, as of a template for each file that it is for
        if len(self.diagnostics) == MAX_ERRORS:
            self.diagnostics.append(Diagnostic("E005", f"more than {MAX_ERRORS} errors"))
        else:
            self.diagnostics.append(Diagnostic(code, message, span, label, tuple(notes), help))

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def full(self) -> bool:
        """Whether further errors are not kept."""
        return len(self.diagnostics) > MAX_ERRORS

    def forget(self, kept: int) -> None:
        """All but the first that are kept."""
        self.count -= len(self.diagnostics) - kept
        del self.diagnostics[kept:]

    def sorted(self) -> list[Diagnostic]:
        def place(d: Diagnostic) -> tuple[str, int, int, str, str]:
            span = d.span or Span("", 0, 0)
            return (span.file, span.line, span.column, d.code, d.message)

        return sorted(self.diagnostics, key=place)

    def text(self) -> str:
        return "\n".join(self._text(d) for d in self.sorted())

    def json(self) -> str:
        return json.dumps([_record(d) for d in self.sorted()], indent=2)

    def github(self) -> str:
        return "\n".join(_annotation(d) for d in self.sorted())

    def _text(self, d: Diagnostic) -> str:
        out = [f"error[{d.code}]: {escaped(d.message)}"]
        gutter = " "
        if d.span is not None and d.span.line:
            places = [(d.span, d.label, "^"), *((n.span, n.label, "-") for n in d.notes)]
            gutter = " " * max(len(str(span.line)) for span, _, _ in places)
            out.append(f"{gutter}--> {escaped(d.span.file)}:{d.span.line}:{d.span.column}")
            for span, label, mark in places:
                out.append(f"{gutter} |")
                if span.file != d.span.file:
                    out.append(f"{gutter}::: {escaped(span.file)}:{span.line}:{span.column}")
                text, column = self._line(span), span.column - 1
                first = max(0, column - _BEFORE) if len(text) > _SHOWN else 0
                shown = "".join(map(_column, text[first : first + _SHOWN]))
                under = " " * (column - first) + mark * min(
                    span.length, max(1, _SHOWN - column + first)
                )
                out.append(f"{span.line:>{len(gutter)}} | {shown}")
                out.append(f"{gutter} | {under} {escaped(label)}".rstrip())
        if d.help:
            out.append(f"{gutter} = help: {escaped(d.help)}")
        return "\n".join(out) + "\n"

    def line(self, root: Path, file: str, number: int) -> Span:
        """The place of a line without its indentation, of a file below the root, which is read so that it is shown."""
        path = root / file
        if not path.is_file():
            return Span(file, number, 1)
        self.lines[file] = path.read_text(encoding="utf-8", errors="replace").split("\n")
        text = self._line(Span(file, number))
        return Span(file, number, len(text) - len(text.lstrip()) + 1, max(1, len(text.strip())))

    def marked(self, span: Span) -> str:
        """The text of a place, letter by letter."""
        return self._line(span)[span.column - 1 :][: span.length]

    def _line(self, span: Span) -> str:
        lines = self.lines.get(span.file, [])
        return lines[span.line - 1] if 0 < span.line <= len(lines) else ""


def _short(text: str) -> str:
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]}..."


def _column(char: str) -> str:
    """What stands for a character in a line, one column wide, so that carets stay below what they mark."""
    if char == "\t":
        return " "
    return char if char.isprintable() else "\ufffd"


def escaped(text: str) -> str:
    """Without what moves a terminal's cursor, turns its writing around or cannot be encoded."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def character(char: str) -> str:
    """A character by its name, for it may look like another one."""
    name = unicodedata.name(char, "").lower()
    return f"{name}, U+{ord(char):04X}".removeprefix(", ")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?` where one of the known words is close, else those known, of its folder where there are some.

    What stands before a slash chooses among the same names only: a dialect would make unlike names alike. Of a word
    whose version alone is wrong, the one in force then is meant, of one without a version the newest. So it is with
    feature levels, of which no letter is like another.

    >>> suggestion("onnx/argmax_12", ["onnx/argmax_1", "onnx/argmax_11", "onnx/argmax_13", "plain/argmin"])
    'did you mean `onnx/argmax_11`?'
    >>> suggestion("plain/foo", ["onnx/argmax_1", "plain/argmin"])
    'known here: `plain/argmin`'
    >>> suggestion("4.2", ["1.0", "4.0", "4.1", "6.2"])
    'did you mean `4.1`?'
    """
    known = list(known)
    if known and _numbers(word) and all("." in k and _numbers(k) for k in known):
        in_force = [k for k in known if _numbers(k) <= _numbers(word)]
        return f"did you mean `{max(in_force, key=_numbers) if in_force else min(known, key=_numbers)}`?"
    if alike := [k for k in known if k.lower() == word.lower()]:
        return f"did you mean `{alike[0]}`?"
    close = difflib.get_close_matches(_name(word), dict.fromkeys(map(_name, known)), n=1)
    if close:
        stem, number = _version(word)
        versions = [_name(k) for k in known if _version(k)[0] == stem]
        in_force = [name for name in versions if _version(name)[1] <= number]
        meant = max(in_force or versions, key=lambda name: _version(name)[1], default=close[0])
        same = [k for k in known if _name(k) == meant]
        nearest = difflib.get_close_matches(word, same, n=1, cutoff=0)
        return f"did you mean `{nearest[0]}`?"
    folder, slash, _ = word.rpartition("/")
    known = [k for k in known if slash and k.startswith(f"{folder}/")] or known
    shown = ", ".join(f"`{k}`" for k in known[:20])
    return f"known here: {shown}" + (", ..." if len(known) > 20 else "") if known else ""


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _version(word: str) -> tuple[str, int]:
    """A name without the number behind its last underscore, and that number."""
    stem, _, number = _name(word).rpartition("_")
    if stem and number.isascii() and number.isdecimal() and len(number) < 10:
        return stem, int(number)
    return _name(word), 0


def _numbers(word: str) -> tuple[int, ...]:
    """Those of a feature level, as "4.1"; none of other words."""
    parts = word.split(".")
    if all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return tuple(map(int, parts))
    return ()


def _record(d: Diagnostic) -> dict[str, object]:
    record: dict[str, object] = {"code": d.code, "message": d.message}
    if d.span is not None:
        record["file"] = d.span.file
    if d.span is not None and d.span.line:
        record |= {
            "line": d.span.line,
            "column": d.span.column,
            "length": d.span.length,
        }
    if d.label:
        record["label"] = d.label
    if d.notes:
        record["notes"] = [
            {"file": n.span.file, "line": n.span.line, "column": n.span.column, "label": n.label}
            for n in d.notes
        ]
    if d.help:
        record["help"] = d.help
    return record


def _annotation(d: Diagnostic) -> str:
    message = (
        f"{d.message}"
        + (f" ({d.label})" if d.label else "")
        + (f"; help: {d.help}" if d.help else "")
    )
    if d.span is None:
        return annotation(message, title=d.code)
    if not d.span.line:
        return annotation(message, file=d.span.file, title=d.code)
    return annotation(message, file=d.span.file, line=d.span.line, col=d.span.column, title=d.code)


_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})  # fixed by GitHub
_ESCAPES_OF_PROPERTIES = _ESCAPES | str.maketrans({":": "%3A", ",": "%2C"})


def annotation(message: str, **properties: object) -> str:
    """One line of GitHub's workflow commands: an error."""
    told = ",".join(
        f"{name}={escaped(str(value).translate(_ESCAPES_OF_PROPERTIES))}"
        for name, value in properties.items()
    )
    return f"::error {told}::{escaped(message.translate(_ESCAPES))}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
