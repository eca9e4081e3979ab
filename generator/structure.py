"""Text of specs/ -> the typed model; what does not fit becomes diagnostics, all at once."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from generator import schema, source
from generator.diagnostics import Report, Span, character, suggestion
from generator.model import (
    ADDRESS,
    DIALECTS,
    LEVEL,
    OPERATOR_ID,
    RANKS,
    WORDS,
    OperatorSpec,
    Spec,
    SpecTree,
    TensorData,
    Vocabulary,
)
from generator.names import MODULE_NAME, is_module, yaml_word
from generator.source import Document, KeyPath

VOCABULARY = "specs/vocabulary.yaml"
_NEW_KERNEL = "`python -m generator explain kernels` tells what each computes, CONTRIBUTING.md how to make one"


def operator_id(file: str) -> str:
    """The id of the operator that a spec's file is for, also where its ending is another."""
    return file.removeprefix("specs/").rsplit(".", 1)[0]


def operator_name(text: str) -> str:
    """The name on the command line that a spec's path stands for, also one without its ending; else the text itself.

    >>> [operator_name(text) for text in ("specs/onnx/argmax_13.yaml", "./specs/directml/", "argmax")]
    ['onnx/argmax_13', 'directml', 'argmax']
    """
    name = text.replace("\\", "/").removeprefix("./")
    if name.startswith("specs/") or name.endswith((".yaml", ".yml")):
        name = operator_id(name).rstrip("/")
    return name


def load_tree(root: Path, report: Report, without: Collection[str] = ()) -> SpecTree | None:
    """Read all of `root`/specs but the files `without`, and what others say of their operators.

    None with the reasons in the report when anything is wrong with its structure.
    """
    document = source.load(root / VOCABULARY, VOCABULARY, report)
    if document is None:
        return None
    vocabulary: Vocabulary | None = _validate(Vocabulary, document, {}, report)
    if vocabulary is None:
        return None
    words = vocabulary.words()
    specs = []
    read = {root / VOCABULARY, *(root / file for file in without)}
    absent = {operator_id(file) for file in without}
    for dialect in DIALECTS:
        for path in _files(root / "specs" / dialect, f"specs/{dialect}", report):
            file = f"specs/{dialect}/{path.name}"
            read.add(path)
            if file in without:
                continue
            text = source.load(path, file, report)
            if text is None:
                report.stopped.add(file)
                continue
            if not is_module(path.stem):
                report.add(
                    "E105",
                    f"the file name `{path.name}` becomes a module: use {MODULE_NAME}",
                    text.span(()),
                )
            spec = _validate(OperatorSpec, text, words, report)
            if spec is not None:
                known = [e for e in spec.equivalences if e.operator not in absent]
                spec = spec.model_copy(update={"equivalences": known})
                specs.append(Spec(dialect, path.stem, text, spec))
            else:
                report.stopped.add(file)
    _unread(root, read, report)
    if not specs and not without and not report:
        help = f"a spec is specs/DIALECT/name.yaml, the dialect one of {', '.join(DIALECTS)}"
        report.add("E005", "there are no specs below specs/", Span("specs"), help=help)
    return None if report else SpecTree(vocabulary, document, tuple(specs))


def _files(folder: Path, name: str, report: Report) -> list[Path]:
    """The specs of a dialect. What cannot be read is not empty: all that it gave would go from generated/."""
    try:
        return sorted(
            (p for p in folder.iterdir() if p.name.endswith(".yaml")), key=lambda p: p.name
        )
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not folder.is_symlink():
            return []
        report.add(
            "E005",
            f"cannot read the folder `{name}`: {error.strerror}",
            Span(name),
            help="make it a folder that you may read, or remove it if its operators are to go",
        )
        return []


def _unread(root: Path, read: set[Path], report: Report) -> None:
    """Tell of YAML files that are no specs where they are: whoever wrote them believes that they count."""
    for folder, folders, files in os.walk(root / "specs"):
        folders.sort()
        for path in sorted(Path(folder, file) for file in files):
            if path.suffix.lower() in (".yaml", ".yml") and path not in read:
                file = path.relative_to(root).as_posix()
                report.add(
                    "E005",
                    f"`{file}` is not read",
                    Span(file),
                    help=f"a spec is specs/DIALECT/name.yaml, the dialect one of {', '.join(DIALECTS)};"
                    " move, rename or remove the file",
                )
        if report.full:
            return


def validate_tensor(
    data: object, path: KeyPath, document: Document, vocabulary: Vocabulary, report: Report
) -> TensorData | None:
    """A tensor in `given` of an example."""
    tensor: TensorData | None = _validate(
        TensorData, document, vocabulary.words(), report, data=data, path=path
    )
    return tensor


def _validate(
    model: Any,
    document: Document,
    words: dict[str, list[str]],
    report: Report,
    *,
    data: Any = None,
    path: KeyPath = (),
) -> Any:
    try:
        return model.model_validate(document.data if not path else data, context=words)
    except ValidationError as error:
        errors = [
            {**e, "loc": (*path, *_plain(e["loc"])), "of_key": "[key]" in e["loc"]}
            for e in error.errors(include_url=False)
        ]
    _structure_errors(_Shape(model, words, len(path)), errors, document, report)
    return None


def _plain(loc: tuple[int | str, ...]) -> KeyPath:
    """pydantic marks a dictionary's key and a union's branch inside the path; neither is part of the data."""
    parts = [part for part in loc if part not in ("[key]", "__pydantic_extra__")]
    if "default" in parts:  # of a field
        parts = parts[: parts.index("default") + 1]
    return tuple(parts)


_EXPECTED = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "string_type": "a text",
    "int_type": "a whole number",
    "bool_type": "true or false",
}
_EXPRESSIONS = ("value", "sizes", "require")
_TYPES = {"string": "a text", "integer": "a whole number", "object": "a mapping"}
_PATTERNS = {
    RANKS: "ranks are two numbers, as in `1..8`",
    ADDRESS: "an address begins with https:// and has no blanks, quotes, backslashes or braces",
    OPERATOR_ID: "an operator is a dialect and a name, as in `directml/argmax`",
    LEVEL: "a feature level is two numbers, as in `4.1`",
    WORDS: "words are in small letters, as in `spatial dimension`",
}


@dataclass(frozen=True)
class _Shape:
    """What a model says of each path of a document, in which the model's own data lies `depth` levels deep."""

    model: Any
    words: dict[str, list[str]]
    depth: int

    def at(self, path: KeyPath) -> dict[str, Any]:
        """The JSON Schema of what is at a path; empty where there is none."""
        node: dict[str, Any] = schema.of(self.model, self.words)
        for part in path[self.depth :]:
            node = (
                node.get("items", {})
                if isinstance(part, int)
                else node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
            )
        return node


def _structure_errors(shape: _Shape, errors: list[Any], document: Document, report: Report) -> None:
    missing = {e["loc"] for e in errors if e["type"] == "missing"}
    misspelt = {_misspelt(shape, e): e["loc"] for e in errors if e["type"] == "missing"}
    misspelt.pop((), None)
    told = set(misspelt.values())
    for path, lacking in misspelt.items():
        key, name = path[-1], lacking[-1]
        message = f"`{key}` is not a key here, and `{name}` is missing"
        hint = f"write a blank behind `{name}:`" if ":" in str(key) else f"did you mean `{name}`?"
        report.add("E101", message, document.key_span(path), "unknown key", help=hint)
    errors = [e for e in errors if not any(p == e["loc"][: len(p)] for p in misspelt)]
    for e in errors:
        if report.full:
            return
        if e["type"] == "extra_forbidden":
            told |= _unknown_key(shape, e["loc"], missing, document, report)
    unions: set[KeyPath] = set()
    for e in errors:
        if e["loc"][-1:] == ("default",) and e["type"].endswith("_type"):
            if e["loc"] not in unions:
                _wrong_default(e, document, report)
            unions.add(e["loc"])
        elif e["type"] == "missing" and e["loc"] not in told:
            path = e["loc"]
            report.add("E102", f"`{path[-1]}` is missing", document.key_span(path[:-1]), "in here")
        elif e["type"] not in ("extra_forbidden", "missing"):
            _wrong_value(e, shape, document, report)


def _misspelt(shape: _Shape, error: Any) -> KeyPath:
    """The key that stands for a missing one where others than those of the model may be; () where none does."""
    path = error["loc"]
    node = shape.at(path[:-1])
    if not node.get("additionalProperties"):
        return ()
    given = (key for key in error["input"] if isinstance(key, str))
    others = {key.partition(":")[0].lower(): key for key in given if key not in node["properties"]}
    near = difflib.get_close_matches(str(path[-1]), others, n=1)
    return (*path[:-1], others[near[0]]) if near else ()


def _unknown_key(
    shape: _Shape, path: KeyPath, missing: set[KeyPath], document: Document, report: Report
) -> set[KeyPath]:
    """Tell of a key that is none, and in the same breath of the missing one that it may stand for."""
    absent = [str(p[-1]) for p in missing if p[:-1] == path[:-1]]
    hint = suggestion(str(path[-1]), absent or shape.at(path[:-1]).get("properties", {}))
    meant = [name for name in absent if hint == f"did you mean `{name}`?"]
    key, colon, _ = str(path[-1]).partition(":")
    if colon and key in shape.at(path[:-1]).get("properties", {}):
        hint = f"write a blank behind `{key}:`"
    lack = f", and `{meant[0]}` is missing" if meant else ""
    message = f"`{path[-1]}` is not a key here{lack}"
    report.add("E101", message, document.key_span(path), "unknown key", help=hint)
    return {(*path[:-1], name) for name in meant}


def _wrong_default(error: Any, document: Document, report: Report) -> None:
    """What is none of the types of the union, each of which has an error of its own."""
    found = _found(error["input"])
    help = 'the default of an array is an expression in quotes, as in "[0, 0]"'
    report.add(
        "E104", "expected a single value", document.span(error["loc"]), f"found {found}", help=help
    )


def _wrong_value(error: Any, shape: _Shape, document: Document, report: Report) -> None:
    kind, path, context = error["type"], error["loc"], error.get("ctx", {})
    if kind == "nothing":
        _nothing(path, shape, document, report)
        return
    span = document.key_span(path) if error["of_key"] else document.span(path)
    found = _found(error["input"])
    if kind == "unknown_word":
        help = suggestion(str(error["input"]), context["allowed"])
        if path == ("semantics", "kernel"):
            help += f"{' ' if help.endswith('?') else '; '}{_NEW_KERNEL}"
        report.add(
            "E103", f"{found} is not one of the allowed values", span, "unknown value", help=help
        )
    elif kind == "literal_error":
        help = f"allowed: {context['expected']}"
        report.add(
            "E103", f"{found} is not one of the allowed values", span, "unknown value", help=help
        )
    elif kind == "identifier":
        report.add("E105", f"{found} is not a name", span, help=error["msg"])
    elif kind == "text":
        label, help = f"found {found}", ""
        other = next((i for i, c in enumerate(error["input"]) if not " " <= c <= "~"), None)
        if other is not None:
            label = "found " + character(error["input"][other])
            if error["input"][other] == "\n":
                help = "write the text on one line, without `>` or `|` in front of it"
            span = span if error["of_key"] else document.within(path, other, 1)
        report.add("E106", error["msg"], span, label, help=help)
    elif kind == "string_pattern_mismatch":
        message = _PATTERNS.get(context["pattern"], "this text has not the right form")
        number = context["pattern"] == RANKS and re.fullmatch("[0-9]{1,2}", str(error["input"]))
        help = "write {0}..{0}".format(error["input"]) if number else ""
        report.add("E106", message, span, f"found {found}", help=help)
    elif kind == "string_too_long":
        message = f"a text here has at most {context['max_length']} characters"
        report.add("E106", message, span, f"found {len(error['input'])}")
    elif kind in ("string_too_short", "too_short"):
        what = "a text" if kind == "string_too_short" else "at least one entry"
        report.add("E106", f"{what} is needed here", span, "empty")
    else:
        expected = _EXPECTED.get(kind, error["msg"].removeprefix("Input should be "))
        quotable = kind == "string_type" and type(error["input"]) in (int, float, bool)
        help = f'quote it: "{report.marked(span)}"' if quotable else ""
        if path[-1:] == ("ranks",) and type(error["input"]) is int:
            help = "write {0}..{0}".format(error["input"])
        if kind == "string_type" and isinstance(error["input"], list) and path[-1] in _EXPRESSIONS:
            help = 'quote an expression as a whole, as in "[0, 1]"'
        if kind == "int_type" and re.fullmatch("[0-9]{1,40}", str(error["input"])):
            help = f"write it without quotes: {error['input']}"
        help = help or _form(shape.at(path), error["input"])
        report.add("E104", f"expected {expected}", span, f"found {found}", help=help)


def _nothing(path: KeyPath, shape: _Shape, document: Document, report: Report) -> None:
    """Tell of a key without a value, which may be left out."""
    node = shape.at(path)
    expected = _TYPES.get("string" if "enum" in node else node.get("type", ""), "a value")
    help = "write its value, or leave the key out"
    report.add("E104", f"expected {expected}", document.span(path), "found nothing", help=help)


def _found(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "nothing"
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in yaml_word(value)[:40])
    return f"`{shown}`"


def _form(node: dict[str, Any], found: object) -> str:
    """How a value of this schema is written, where another type was found; nothing where its type says it all."""
    if "pattern" in node:
        return _PATTERNS[node["pattern"]]
    items = node.get("items", {})
    if "properties" in items and isinstance(found, dict):
        return "begin each entry with `- `"
    if "properties" in items and (found is None or str(found).lower() in ("none", "nothing")):
        return "" if "minItems" in node else "write [] where there are none"
    if items and "properties" not in items and type(found) in (int, str) and found:
        return f"write [{found}]"
    required = node.get("required", [])
    if not required and "value" in node.get("properties", {}):  # an entry of `semantics`
        value = found if type(found) in (int, str) else "..."
        return f"write {{value: {value}, page: ...}}"
    if len(required) > 4:
        return f"its keys are {', '.join(required)}"
    if required:
        return f"write {{{', '.join(f'{key}: ...' for key in required)}}}"
    return ""
