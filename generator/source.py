"""YAML text -> plain data, with the place of every key and value.

Only the part of YAML that cannot surprise: no anchors, aliases, tags or several documents, no duplicate keys, no
comment behind a text without quotes, and no plain scalar that YAML 1.1 and YAML 1.2 read differently (`no`, `3_0`,
`0o17`). Built from parser events with a stack of our own, so that neither nesting nor aliases can exhaust memory or the
interpreter's stack.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from generator import syntax
from generator.diagnostics import Note, Report, Span, character

MAX_BYTES = 1 << 18
MAX_DEPTH = 40
MAX_ENTRIES = 256  # of a list or a mapping
MAX_WHOLE, MAX_DECIMAL = 40, 400  # characters of a number, without and with a point or an exponent

KeyPath = tuple[str | int, ...]

_C_LOADER = getattr(yaml, "CLoader", None)

# What readers of YAML, or editors, take differently: its place as a group, what it is, what to write instead.
_REFUSED = (
    (
        re.compile("([\r\x85\u2028\u2029])"),  # "\r\n" is "\n" by now
        "a line end that is neither LF nor CR LF",
        "YAML begins a new line here and many editors do not: write a plain line end, or none",
    ),
    (
        # In front of a comment; texts are ASCII.
        re.compile("^[^#\n]*?([\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000])", re.MULTILINE),
        "a blank that is none to YAML: {}",
        "write a plain blank",
    ),
    (
        re.compile("^(?! *#)[^\n]*?(\t)", re.MULTILINE),  # but for lines of comments
        "a tab, which YAML readers take differently",
        "write blanks",
    ),
)
_COMMENT = re.compile(" *#")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?\Z")
_SPECIAL = {
    ".inf": float("inf"),
    "+.inf": float("inf"),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
}
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}
# What some YAML reader takes for a boolean or a number, and a person for a word or a version.
_AMBIGUOUS = re.compile(
    r"(y|n|yes|no|on|off|true|false|null)\Z|[-+]?[0-9][0-9_]*\Z|[-+]?0[xob][0-9a-f_]+\Z"
    r"|[-+]?[0-9]+(:[0-9]+)+(\.[0-9]*)?\Z|[-+]?[0-9][0-9_]*\.[0-9_]*\Z|[-+]?\.(inf|nan)\Z"
    r"|[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)e[-+]?[0-9]+\Z"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}((t|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}.*)?\Z",
    re.IGNORECASE,
)


@dataclass
class Document:
    """The data of one file; `values` and `keys` map a path such as ("fields", 0, "name") to its place."""

    file: str
    data: Any = None
    values: dict[KeyPath, Span] = field(default_factory=dict)
    keys: dict[KeyPath, Span] = field(default_factory=dict)
    exact: set[KeyPath] = field(default_factory=set)

    def span(self, path: KeyPath) -> Span:
        """The value's place, or that of the nearest enclosing one."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Span(self.file, 1, 1))

    def key_span(self, path: KeyPath) -> Span:
        return self.keys.get(path) or self.span(path)

    def within(self, path: KeyPath, offset: int, length: int) -> Span:
        """A part of a scalar's text, where the text stands in the file letter by letter."""
        span = self.span(path)
        return span.shifted(offset, length) if path in self.exact else span


def load(path: Path, name: str, report: Report) -> Document | None:
    """Read one YAML file; `name` is how messages call it. None when it could not be read: the report says why."""
    try:
        if path.exists() and not path.is_file():  # a pipe would keep us waiting
            report.add("E005", f"`{name}` is not a regular file", Span(name))
            return None
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        report.add("E005", f"cannot read `{name}`: {error.strerror}", Span(name))
        return None
    if len(raw) > MAX_BYTES:
        report.add("E005", f"`{name}` has more than {MAX_BYTES} bytes", Span(name))
        return None
    try:
        text = raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        report.lines[name] = raw.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        before = raw[: error.start].decode("utf-8")
        report.add(
            "E005",
            f"byte {error.start} is not UTF-8",
            _place(name, before, len(before)),
            "here",
            help="save the file as UTF-8",
        )
        return None
    return parse(text, name, report)


def parse(text: str, name: str, report: Report, *, loader: Any = _C_LOADER) -> Document | None:
    """Read YAML text with the C parser where PyYAML has it; errors are told by the Python parser, so they are equal."""
    report.lines[name] = text.split("\n")
    for pattern, message, help in _REFUSED:
        if found := pattern.search(text):
            place = _place(name, text, found.start(1))
            report.add("E001", message.format(character(found[1])), place, "here", help=help)
            return None
    if syntax.conflict(name, report):
        return None
    before, kept = report.count, len(report.diagnostics)
    events = syntax.Events(yaml.parse(text, Loader=loader or yaml.SafeLoader))
    try:
        document = _Builder(name, report).build(events)
    except yaml.YAMLError as error:
        if loader is not None:
            report.forget(kept)
            return parse(text, name, report, loader=None)
        if isinstance(error, yaml.MarkedYAMLError):
            syntax.tell(error, events, name, text, report)
        else:
            position = getattr(error, "position", 0)
            span = _place(name, text, position if isinstance(position, int) else 0)
            report.add("E001", "a character that YAML does not allow", span, "here")
        return None
    return document if report.count == before else None


def _place(name: str, text: str, position: int) -> Span:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return Span(name, line, column)


class _Builder:
    """Builds one document from events."""

    def __init__(self, file: str, report: Report) -> None:
        self.report = report
        self.document = Document(file)
        self.stack: list[tuple[Any, KeyPath]] = []
        self.pending: list[
            str | None
        ] = []  # the key that waits for its value, one for each open container
        self.documents = 0

    def build(self, events: Any) -> Document:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    self.report.add(
                        "E003",
                        "more than one document in a file",
                        self.place(event),
                        help="leave out this `---`, or make what follows a file of its own",
                    )
                    break
            elif isinstance(event, yaml.AliasEvent):
                self.report.add(
                    "E003", "aliases are not allowed", self.place(event), help="write the value out"
                )
                self.accept(None, event)
            elif isinstance(event, yaml.NodeEvent):
                self.node(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self.stack.pop()
                self.pending.pop()
            if len(self.stack) > MAX_DEPTH:
                self.report.add(
                    "E005", f"nested more than {MAX_DEPTH} levels deep", self.place(event)
                )
                break
            if self.report.full or self.too_many(event):
                break
        if self.documents == 0:
            file = self.document.file
            comments = any(line.strip() for line in self.report.lines[file])
            self.report.add(
                "E001",
                f"`{file}` is empty{' but for comments' if comments else ''}",
                Span(file),
                help="remove it, or write what it is to hold; `python -m generator new` begins a spec",
            )
        return self.document

    def too_many(self, event: Any) -> bool:
        if not self.stack or len(self.stack[-1][0]) <= MAX_ENTRIES:
            return False
        what = "list" if isinstance(self.stack[-1][0], list) else "mapping"
        self.report.add("E005", f"a {what} of more than {MAX_ENTRIES} entries", self.place(event))
        return True

    def node(self, event: Any) -> None:
        if event.anchor is not None:
            self.report.add(
                "E003", "anchors are not allowed", self.place(event), help="write the value out"
            )
        if event.tag is not None:
            self.report.add(
                "E003", "tags are not allowed", self.place(event), help="leave the tag out"
            )
        if isinstance(event, yaml.ScalarEvent):
            self.scalar(event)
            return
        container: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        path = self.accept(container, event)
        self.stack.append((container, path))
        self.pending.append(None)

    def scalar(self, event: Any) -> None:
        plain = event.style in (None, "")
        if self.expects_key():
            self.key(event, plain)
            return
        value = self.plain_value(event) if plain and event.tag is None else event.value
        if plain and (value is None or isinstance(value, str)):
            self.check_end(event, "behind a text" if value else "in place of a value")
        path = self.accept(value, event)
        quoted = event.style in ('"', "'")
        same_line = event.start_mark.line == event.end_mark.line
        width = event.end_mark.column - event.start_mark.column
        if isinstance(value, str) and same_line and width == len(event.value) + 2 * quoted:
            self.document.exact.add(path)
            if quoted:
                span = self.document.values[path]
                self.document.values[path] = span.shifted(1, span.length - 2)

    def check_end(self, event: Any, where: str) -> None:
        """No comment stands behind a text without quotes: it may be meant as a part of it."""
        line, column = event.end_mark.line, event.end_mark.column
        text = self.report.lines[self.document.file][line]
        if _COMMENT.match(text, column):
            begin = text.index("#", column)
            self.report.add(
                "E003",
                f"a comment {where}",
                Span(self.document.file, line + 1, begin + 1, len(text) - begin),
                "a comment begins here",
                help="quote the text if this is a part of it, else write the comment on a line of its own",
            )

    def plain_value(self, event: Any) -> object:
        text = event.value
        if text in _WORDS:
            return _WORDS[text]
        if text in _SPECIAL:
            return _SPECIAL[text]
        whole = bool(_INT.match(text) or _HEX.match(text))
        decimal = bool(_FLOAT.match(text))
        if (whole or decimal) and len(text) > (limit := MAX_WHOLE if whole else MAX_DECIMAL):
            self.report.add(
                "E223",
                f"a number of {len(text)} characters, `{text[:40]}...`",
                self.place(event),
                "too long",
                help=f"a {'whole' if whole else 'decimal'} number has at most {limit} characters;"
                " quote it if a text is meant",
            )
            return text
        if whole:
            return int(text, 16 if _HEX.match(text) else 10)
        if decimal:
            number = float(text)
            if math.isinf(number):
                self.report.add(
                    "E223",
                    f"`{text[:40]}` is beyond all numbers",
                    self.place(event),
                    "too great",
                    help="write .inf if infinity is meant; quote it if a text is meant",
                )
            return number
        if _AMBIGUOUS.match(text):
            self.report.add(
                "E004",
                f"`{text[:40]}` is read differently by different YAML readers",
                self.place(event),
                "ambiguous",
                help=f'for a text quote it, "{text[:40]}"; else write a plain decimal number, true or false',
            )
        return text

    def expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1][0], dict) and self.pending[-1] is None

    def key(self, event: Any, plain: bool) -> None:
        mapping, path = self.stack[-1]
        key, place = event.value, self.place(event)
        if plain and not isinstance(self.plain_value(event), str):
            self.report.add(
                "E004", f"the key `{key}` is not a word", place, help=f'quote it: "{key}"'
            )
        if key in mapping:
            first = Note(self.document.keys[(*path, key)], "first here")
            self.report.add(
                "E002",
                f"duplicate key `{key}`",
                place,
                "the second value would silently win",
                notes=[first],
            )
        else:
            self.document.keys[(*path, key)] = place
        self.pending[-1] = key

    def accept(self, value: Any, event: Any) -> KeyPath:
        """Put a value where it belongs; its path."""
        if not self.stack:
            self.document.data = value
            path: KeyPath = ()
        else:
            container, parent = self.stack[-1]
            if isinstance(container, list):
                path = (*parent, len(container))
                container.append(value)
            elif (key := self.pending[-1]) is not None:
                path = (*parent, key)
                container.setdefault(key, value)
                self.pending[-1] = None
            else:
                self.report.add("E003", "a key must be a word", self.place(event))
                path = (*parent, "?")
                self.pending[-1] = None
        self.document.values.setdefault(path, self.place(event))
        return path

    def place(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        length = end.column - start.column if end.line == start.line else 1
        column = start.column
        if isinstance(event, yaml.ScalarEvent) and start.index == end.index:
            # Nothing: the parsers differ in whether it begins behind blanks.
            column = len(self.report.lines[self.document.file][start.line][:column].rstrip(" "))
        return Span(self.document.file, start.line + 1, column + 1, max(1, length))
