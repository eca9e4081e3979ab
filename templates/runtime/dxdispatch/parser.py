"""The text of a model file: JSON, with the comments and trailing commas of DxDispatch.

No third-party parser for JSON with comments keeps positions without much else; this one reads the dialect of
DxDispatch, neither more nor less, with bounded depth and size.
"""

from __future__ import annotations

import re
from typing import Any

from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.problems import Report

MAX_BYTES = 8 << 20  # of a model file; larger data belongs in .npy files
MAX_DEPTH = 64
MAX_NODES = 200_000  # members of objects, and objects and arrays within arrays
MAX_DIGITS = 400  # of a number

_BLANK = re.compile(r"[ \t\r\n]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# An entry of an array as most are; all others are read step by step, as is a number of many digits.
_ENTRY = re.compile(
    r"[ \t\r\n]*(-?(?:0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?)[ \t\r\n]*,"
)
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WORD = re.compile(r"[A-Za-z_$+.0-9-]+")
_ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


class Unreadable(Exception):
    """The text is not of the dialect: where, what is wrong, and what to do."""

    def __init__(self, offset: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.offset, self.message, self.hint = offset, message, hint


def parse(report: Report) -> Node | None:
    """The root of the report's text; None with an error in the report."""
    try:
        return _Parser(report).document()
    except Unreadable as error:
        report.error(error.offset, error.message, error.hint)
        return None


class _Parser:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._text = report.text
        self._at = 0
        self._nodes = 0

    def document(self) -> Node:
        """The first value; as in DxDispatch, what follows it is not read."""
        self._skip()
        root = Node(self._report, self._at)
        self._fill(root, 0)
        return root

    def _skip(self) -> None:
        while blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()

    def _next(self) -> str:
        """The next character that is neither space nor comment; empty at the end."""
        self._skip()
        return self._text[self._at : self._at + 1]

    def _fill(self, node: Node, depth: int) -> None:
        """Read the value that begins here into a node."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            hint = "put large data into .npy files"
            raise Unreadable(self._at, f"more than {MAX_NODES} objects, arrays and members", hint)
        if depth > MAX_DEPTH:
            raise Unreadable(self._at, f"nested more than {MAX_DEPTH} deep")
        first = self._next()
        if first == "{":
            self._object(node, depth)
        elif first == "[":
            self._array(node, depth)
        else:
            node.value = self._scalar(first)

    def _object(self, node: Node, depth: int) -> None:
        members: dict[str, Node] = {}
        node.value = members
        opened = self._at
        self._at += 1
        while (first := self._next()) != "}":
            if first != '"':
                raise self._unexpected('a name in double quotes or "}"', opened)
            begin = self._at
            name = self._string()
            if name in members:
                raise Unreadable(begin, f'"{name}" stands twice in this object')
            if self._next() != ":":
                raise self._unexpected('":"', opened)
            self._at += 1
            self._skip()
            member = Node(self._report, self._at, node, name)
            self._fill(member, depth + 1)
            members[name] = member
            if self._next() == ",":
                self._at += 1
            elif self._next() != "}":
                raise self._unexpected('"," or "}"', opened)
        self._at += 1

    def _array(self, node: Node, depth: int) -> None:
        items = Items(node)
        node.value = items
        opened = self._at
        self._at += 1
        while True:
            while entry := _ENTRY.match(self._text, self._at):
                items.offsets.append(entry.start(1))
                number = entry[1]
                exact = entry[2] is None and "e" not in number and "E" not in number
                items.values.append(int(number) if exact else float(number))
                self._at = entry.end()
            first = self._next()
            if first == "]":
                break
            items.offsets.append(self._at)
            if first in ("{", "["):
                child = Node(self._report, self._at, node, len(items.values))
                self._fill(child, depth + 1)
                items.values.append(child)
            else:
                items.values.append(self._scalar(first))
            first = self._next()
            if first == ",":
                self._at += 1
            elif first != "]":
                raise self._unexpected('"," or "]"', opened)
        self._at += 1

    def _scalar(self, first: str) -> Any:
        if first == '"':
            return self._string()
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            return self._number(number)
        word = _WORD.match(self._text, self._at)
        if word is not None and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        if word is not None and word[0].lower().strip("+-") in ("nan", "inf", "infinity"):
            quoted = '"nan", "inf" or "-inf"'
            raise Unreadable(self._at, f"{word[0]} is no value of JSON", f"write {quoted}, quoted")
        raise self._unexpected("a value")

    def _number(self, match: re.Match[str]) -> int | float:
        text = match[0]
        if len(text) > MAX_DIGITS:
            raise Unreadable(self._at, f"a number of more than {MAX_DIGITS} characters")
        follows = _WORD.match(self._text, match.end())
        if follows is not None:
            raise Unreadable(self._at, f"{(text + follows[0])[:60]} is no number of JSON")
        self._at = match.end()
        if match[1] is None and match[2] is None:
            return int(text)
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise Unreadable(match.start(), f"{text[:60]} is too large for a number of 64 bits")
        return value

    def _string(self) -> str:
        begin = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            assert plain is not None
            parts.append(plain[0])
            self._at = plain.end()
            stop = self._text[self._at : self._at + 1]
            if stop == '"':
                self._at += 1
                return "".join(parts)
            if not stop:
                raise Unreadable(begin, "a string that never ends")
            if stop != "\\":
                message = "a line ends inside a string" if stop in "\r\n" else "a control character"
                raise Unreadable(self._at, message)
            parts.append(self._escape())

    def _escape(self) -> str:
        code = self._text[self._at + 1 : self._at + 2]
        if code in _ESCAPES:
            self._at += 2
            return _ESCAPES[code]
        if code != "u":
            hint = "a path takes / on every system, or \\\\"
            raise Unreadable(self._at, f"\\{code} is no escape of JSON", hint)
        begin = self._at
        unit = self._unit()
        if 0xD800 <= unit < 0xDC00 and self._text.startswith("\\u", self._at):
            low = self._unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        if 0xD800 <= unit < 0xE000:
            raise Unreadable(begin, "half of a surrogate pair")
        return chr(unit)

    def _unit(self) -> int:
        digits = self._text[self._at + 2 : self._at + 6]
        if not re.fullmatch("[0-9A-Fa-f]{4}", digits):
            raise Unreadable(self._at, "\\u takes four hexadecimal digits")
        self._at += 6
        return int(digits, 16)

    def _unexpected(self, wanted: str, opened: int | None = None) -> Unreadable:
        found = self._next()
        if not found:
            line = (
                ""
                if opened is None
                else f", opened in line {self._text.count(chr(10), 0, opened) + 1}"
            )
            return Unreadable(self._at, f"the file ends where {wanted} is expected{line}")
        if self._text.startswith("/*", self._at):
            return Unreadable(self._at, "a comment that never ends")
        hint = "strings take double quotes" if found == "'" else ""
        word = _WORD.match(self._text, self._at)
        shown = word[0][:60] if word else found
        return Unreadable(self._at, f"found {shown}, expected {wanted}", hint)
