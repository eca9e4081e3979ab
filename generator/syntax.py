"""Errors of YAML's grammar, told where they were made: a parser stops where it can read no further, lines later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from generator.diagnostics import Note, Report, Span

# What git leaves where two branches change the same lines.
_CONFLICT = re.compile(r"([<>|]{7} .*|={7})\Z")
# A key, and an entry of a list, without the blank behind its mark.
_TIGHT = {
    ":": re.compile(r" *(?:- +)*[A-Za-z_]\w*(:)[^\s:/]"),
    "-": re.compile(r" *(?:- +)*(-)[A-Za-z_{\[\"']"),
}
# What an author does about the parser's words.
_REMEDIES = {
    "expected <block end>": "entries that belong together begin in one column: look at the indentation of this line",
    "mapping values are not allowed": "indent as the line above, or quote a text that has `: ` in it",
    "cannot start any token": "quote a text that begins with a special character",
    "while parsing a flow": "write a comma between two entries; quote a text with a comma, a bracket or `: ` in it",
}


class Events:
    """A parser's events as they come; the last of them, and the brackets that are open."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.last: Any = None
        self.open: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for event in self.events:
            self.last = event
            if isinstance(event, yaml.CollectionStartEvent):
                self.open.append(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.open.pop()
            yield event


def conflict(name: str, report: Report) -> bool:
    """Whether there are conflict markers; each is told."""
    found = [i for i, line in enumerate(report.lines[name], 1) if _CONFLICT.match(line)]
    for i in found:
        span = Span(name, i, 1, len(report.lines[name][i - 1]))
        report.add("E001", "merge-conflict marker", span, "here", help="resolve the conflict")
    return bool(found)


def tell(error: yaml.MarkedYAMLError, events: Events, name: str, text: str, report: Report) -> None:
    """Tell of the error that ended the events of a text."""
    said = " ".join(part for part in (error.context, error.problem) if part)
    problem = error.problem_mark or error.context_mark
    if problem is None:
        report.add("E001", f"not readable as YAML: {said}", Span(name, 1, 1))
        return
    failure = _Failure(said, problem, error.context_mark, events.last, events.open, name, text)
    tries = (_unclosed_text, _no_blank, _more_behind, _unclosed_bracket)
    if not any(told(failure, report) for told in tries):
        help = next((h for words, h in _REMEDIES.items() if words in said), "")
        report.add("E001", f"not readable as YAML: {said}", failure.place, "here", help=help)


@dataclass(frozen=True)
class _Failure:
    """What a parser says, where it stopped, and where what it was reading begins; the last event, and open events."""

    said: str
    problem: Any
    context: Any
    last: Any
    open: list[Any]
    name: str
    text: str

    @property
    def place(self) -> Span:
        return self.span(self.problem)

    @property
    def brackets(self) -> list[Any]:
        return [event for event in self.open if _is_bracket(event)]

    @property
    def joins(self) -> bool:
        """Whether it stands behind what the last event ends, on the same line."""
        between = self.text[self.last.end_mark.index : self.problem.index]
        return not between.strip(" ")

    def span(self, mark: Any) -> Span:
        return Span(self.name, mark.line + 1, mark.column + 1)


def _unclosed_text(f: _Failure, report: Report) -> bool:
    """A text without its second quote goes on to the first quote of another text, or to the end of the file."""
    message = "a text in quotes is not closed"
    if "scanning a quoted scalar" in f.said and "found unexpected" in f.said:
        report.add("E001", message, f.span(f.context), "begins here")
        return True
    if _is_quoted(f.last) and f.last.start_mark.line < f.last.end_mark.line and f.joins:
        end = f.span(f.last.end_mark).shifted(-1, 1)
        notes = [Note(end, "would end here")]
        report.add("E001", message, f.span(f.last.start_mark), "begins here", notes=notes)
        return True
    return False


def _no_blank(f: _Failure, report: Report) -> bool:
    """A key, or an entry of a list, which the parser took for a text."""
    lines = report.lines[f.name]
    line = f.problem.line
    no_key = "could not find expected ':'" in f.said
    suspects: list[tuple[int, str]] = []
    if no_key:
        suspects = [(f.context.line, ":")]
    elif "expected <block end>" in f.said:
        suspects = [(line, "-")]
    elif "mapping values are not allowed" in f.said:
        above = [i for i in range(line) if lines[i].strip()][-1:]
        suspects = [(line, "-"), *((i, mark) for i in above for mark in _TIGHT)]
    for i, mark in suspects:
        if tight := _TIGHT[mark].match(lines[i]):
            span = Span(f.name, i + 1, tight.start(1) + 1)
            report.add("E001", f"no blank behind `{mark}`", span, "write one behind this")
            return True
    if no_key:
        help = "a key ends in `: `, with a blank behind the colon"
        report.add("E001", "a line without a key", f.span(f.context), "here", help=help)
    return no_key


def _more_behind(f: _Failure, report: Report) -> bool:
    """A value that begins with a quote or a bracket, as an expression may, ends where that is closed."""
    closed = isinstance(f.last, yaml.CollectionEndEvent) and _is_bracket(f.last)
    if not (_is_quoted(f.last) or closed) or not f.joins:
        return False
    if not re.search(r"(found|got) '(?!<stream end>)[^]}]+'$", f.said):
        return False
    help = "what begins with a quote or a bracket ends where that is closed: quote the whole value"
    help += ", or write a comma between two" if f.brackets else "; in '...' a ' is written ''"
    report.add("E001", "more text behind the end of a value", f.place, "here", help=help)
    return True


def _unclosed_bracket(f: _Failure, report: Report) -> bool:
    """A bracket that is closed by another one, or not on the line where it was opened."""
    if not f.brackets or "while parsing a flow" not in f.said:
        return False
    other = re.search(r"got '[]}]'$", f.said)
    end = "<stream end>" in f.said
    start = f.brackets[-1].start_mark
    if not (other or end or start.line < f.problem.line):
        return False
    opened = f.span(start)
    message = f"`{report.marked(opened)}` is not closed"
    if not (other or end):
        message += ", or a comma is missing"
    notes = [] if end else [Note(f.place, "before this")]
    report.add("E001", message, opened, "opened here", notes=notes)
    return True


def _is_quoted(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.style in ("'", '"')


def _is_bracket(event: Any) -> bool:
    """Whether it begins or ends a list or a mapping in brackets."""
    collection = isinstance(event, yaml.CollectionStartEvent | yaml.CollectionEndEvent)
    return collection and event.start_mark.index < event.end_mark.index
