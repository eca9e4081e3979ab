"""`new`: a spec to begin from. What surely differs becomes a TODO, which `lint` refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from generator import source
from generator.diagnostics import Report, Span
from generator.lint.subject import TODO
from generator.model import DIALECTS
from generator.names import MODULE_NAME, family, is_module
from generator.structure import VOCABULARY


def write(root: Path, name: str, like: str, report: Report) -> None:
    """Write the skeleton, begun from the operator `like`. Never over a file that is there."""
    dialect = like.split("/", maxsplit=1)[0]
    ending = like.removeprefix(family(like)) if dialect == "onnx" else ""
    given, _, stem = name.partition("/")
    version = re.search(r"_([1-9][0-9]*)$", stem)
    if given not in DIALECTS or not is_module(stem):
        help = f"write it as {dialect}/argmin{ending} (dialects: {', '.join(DIALECTS)}; a name of {MODULE_NAME})"
        report.add("E006", f"`{name}` is not a dialect and a name", help=help)
        return
    if given != dialect:
        message = f"`{name}` cannot begin from {like}: the dialects say different things"
        other = f"{dialect}/{stem}{'' if version else ending}"
        help = f"name an operator of {given} behind --like, or write the new name as {other}"
        report.add("E006", message, help=help)
        return
    if dialect == "onnx" and version is None:
        digits = name.removeprefix(family(name)).lstrip("_0") or ending.lstrip("_")
        help = f"write it as {family(name).rstrip('_')}_{digits}"
        report.add("E006", f"`{name}` does not end in its version", help=help)
        return
    source_name = f"specs/{like}.yaml"
    if source.load(root / source_name, source_name, report) is None:
        return
    blank = _blank("\n".join(report.lines[source_name]), _New(name, like))
    target = root / "specs" / f"{name}.yaml"
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(blank)
    except FileExistsError:
        report.add("E006", f"specs/{name}.yaml is already there", Span(f"specs/{name}.yaml"))


def newer_than_all(root: Path, name: str) -> str:
    """What to do first where the version of a name is newer than the newest operator set; else nothing."""
    document = source.load(root / VOCABULARY, VOCABULARY, Report())
    version = re.search(r"_([1-9][0-9]*)$", name) if name.startswith("onnx/") else None
    match document.data if document is not None else None:
        case {"opsets": {"newest": int(newest)}} if version and int(version[1]) > newest:
            known = f"version {version[1]} is newer than the newest operator set, {newest}"
            return f"{known}: raise `opsets.newest` in {VOCABULARY}"
    return ""


@dataclass(frozen=True)
class _New:
    """The id of a new operator, and that of the one whose spec it begins from."""

    id: str
    like: str

    @property
    def version(self) -> str:
        return self.id.removeprefix(family(self.id)).lstrip("_")

    @property
    def again(self) -> bool:
        """Whether it is a version of the same operator, whose name and results surely remain."""
        return self.id.startswith("onnx/") and family(self.id) == family(self.like)

    def operator(self, like: str) -> str:
        """Its name where its file's name tells it, of ONNX a TODO; `like` is the other's."""
        dialect, _, stem = self.id.partition("/")
        if dialect == "onnx":
            return like if self.again else re.sub(r"\W", "_", f"{TODO}_{like}")
        return f"DML_OPERATOR_{stem.upper()}" if dialect == "directml" else stem


def _blank(text: str, new: _New) -> str:
    """The spec's text with a TODO for the operator's own words, its examples' results and what it is the same as.

    It has no errata.
    """
    for start, end, todo in reversed(list(_todos(yaml.compose(text), (), new, text))):
        text = f"{text[:start]}: {todo}{text[end:]}"
    return text


def _todos(
    node: Any, path: tuple[str, ...], new: _New, text: str
) -> Iterator[tuple[int, int, str]]:
    """What stands between a key and the end of its value, with what is to stand there instead."""
    if isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            yield from _todos(entry, (*path, ""), new, text)
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        below = (*path, key.value)
        todo = _todo(below, value.value, new)
        if todo:
            yield key.end_mark.index, _end(value, text), todo
        else:
            yield from _todos(value, below, new, text)


def _todo(path: tuple[str, ...], value: object, new: _New) -> str:
    match path:
        case ("operator",):
            return new.operator(str(value))
        case ("since_version",):
            return new.version
        case ("examples", _, "expect", _, "data") if new.again:
            return ""
        case ("page", *_, "address"):
            return f"https://{TODO}"
        case (
            ("summary",)
            | ("page", *_, "title" | "revision")
            | ("examples", _, "expect", _, "data")
            | ("equivalences", _, "says")
        ):
            return TODO
        case ("errata",):
            return "[]"
    return ""


def _end(node: Any, text: str) -> int:
    """Where a value ends: one in block style at the end of its last line, not where the next key begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return len(text[: node.end_mark.index].rstrip())
