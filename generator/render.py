"""Values through a template to text. Errors of a template have a place; Python output is parsed before it is kept."""

from __future__ import annotations

import re
import textwrap
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from generator import layout
from generator.diagnostics import Report, Span
from generator.names import family
from generator.paste import Helpers
from generator.plan import File, Filled, KernelModule, Written
from generator.values import FunctionValues, RuleValues

_NO_TEXT = re.compile("[\ud800-\udfff]")  # what stands for bytes that are not UTF-8


class Renderer:
    """Renders the files of a plan with the templates of one folder; the report tells which of them it cannot read."""

    def __init__(self, templates: Path, report: Report) -> None:
        self.templates = templates
        self.root = templates.parent
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(templates),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        self.environment.filters |= {
            "literal": literal,
            "wrap": wrap,
            "indent": indent,
            "imported": layout.imported,
            "call": call,
            "example": example,
            "define": define,
            "names": names,
            "keywords": keywords,
            "mapping": mapping,
        }
        self.helpers = Helpers(templates, report)

    def render(self, file: File, report: Report) -> str | None:
        """The file's text; None with the reasons in the report."""
        match file:
            case Filled():
                text = self.filled(file, report)
            case KernelModule():
                text = self.helpers.pasted(file.origin, report)
            case Written():
                text = file.text()
            case _:
                raise TypeError(file)
        if text is None:
            return None
        if not self.decodes(text, file, report):
            return None
        if not file.path.endswith(".py"):
            return text
        if not self.parses(text, file, report):
            return None
        return text if isinstance(file, Filled) else f"{header(file)}\n{text}"

    def filled(self, file: Filled, report: Report) -> str | None:
        values = file.values()  # an error here is none of the template
        try:
            template = self.environment.get_template(file.origin.removeprefix("templates/"))
            return template.render(header=header(file), **values)
        except jinja2.TemplateNotFound as error:
            span = self.line(error, report) or Span(file.origin)
            report.add("E403", f"there is no template `templates/{error.name}`", span)
        except jinja2.TemplateSyntaxError as error:
            report.add(
                "E402",
                f"cannot read this template: {(error.message or '').rstrip('.')}",
                report.line(self.root, f"templates/{error.name}", error.lineno),
            )
        except Exception as error:
            span = self.line(error, report) or report.line(self.root, file.origin, 1)
            report.add("E401", f"{error}", span, f"while rendering {', '.join(file.sources)}")
        return None

    def decodes(self, text: str, file: File, report: Report) -> bool:
        """Whether it is a text at all."""
        foreign = _NO_TEXT.search(text)
        if foreign is not None:
            number = text.count("\n", 0, foreign.start()) + 1
            span = report.line(self.root, file.origin, number)
            report.add("E404", "this file is not UTF-8", span)
        return foreign is None

    def parses(self, text: str, file: File, report: Report) -> bool:
        error = syntax_error(text, file.path)
        if error is None:
            return True
        line = getattr(error, "lineno", 1) or 1
        lines = text.split("\n")
        shown = lines[line - 1].strip() if line <= len(lines) else ""
        # Lines of what is copied are those of its origin.
        copied = isinstance(file, Written)
        span = report.line(self.root, file.origin, line) if copied else Span(file.origin)
        message = (
            f"generated/{file.path}, made by {file.origin}, is not Python: {error} at `{shown}`"
        )
        report.add("E404", message, span)
        return False

    def line(self, error: Exception, report: Report) -> Span | None:
        """The template's line that was being rendered; None where there was none yet."""
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".jinja")
        ]
        if not frames:
            return None
        name = Path(frames[-1].filename).relative_to(self.templates).as_posix()
        return report.line(self.root, f"templates/{name}", frames[-1].lineno or 1)


def syntax_error(text: str, path: str) -> SyntaxError | ValueError | None:
    """Why a text is not Python."""
    try:
        compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return error
    return None


def header(file: File) -> str:
    """Who, from what, how: three lines that change only when one of these does."""
    sources = ", ".join((*file.sources, file.origin))
    several = len(file.operators) > 1  # all versions of one operator
    operators = {family(o) if several else o for o in file.operators}
    targets = " ".join(sorted(n.split("/")[1] for n in operators))
    lines = (
        "Generated by the specops generator: edits here are overwritten.",
        f"From {sources}.",
        f"Regenerate with: python -m generator generate{' ' + targets if targets else ''}",
    )
    if file.path.endswith(".md"):
        return "\n".join(("<!--", *lines, "-->"))
    return "\n".join(f"# {line}" for line in lines)


def literal(value: Any, indent: int = 0, prefix: int = 0) -> str:
    """A Python literal as a formatter would lay it out; one character follows it.

    `indent` is the column of the statement, `prefix` how much stands before the value on its line.
    """
    flat = _flat(value)
    fits = indent + prefix + len(flat) + 1 <= layout.WIDTH
    if fits or not isinstance(value, dict | list | tuple):
        return flat
    pad = " " * (indent + 4)
    if isinstance(value, dict):
        rows = [
            f"{pad}{_flat(k)}: {literal(v, indent + 4, len(_flat(k)) + 2)},"
            for k, v in value.items()
        ]
        return "\n".join(["{", *rows, " " * indent + "}"])
    rows = [f"{pad}{literal(v, indent + 4)}," for v in value]
    opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
    return "\n".join([opening, *rows, " " * indent + closing])


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return layout.quoted(value)
    if isinstance(value, float):
        return repr(value).replace("e+", "e")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flat(k)}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flat, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_flat, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def names(values: Sequence[str]) -> str:
    """A tuple of words."""
    return _flat(tuple(values))


def keywords(arguments: Mapping[str, Any]) -> list[str]:
    """The text of arguments that a call names: "axis=1"."""
    return [f"{name}={_flat(value)}" for name, value in arguments.items()]


def mapping(pairs: Sequence[tuple[str, str]], indent: int) -> str:
    """A dictionary of words to Python text as a formatter would lay it out; a comma follows it."""
    entries = [f'"{key}": {text}' for key, text in pairs]
    flat = "{" + ", ".join(entries) + "}"
    if indent + len(flat) + 1 <= layout.WIDTH:
        return flat
    pad = " " * (indent + 4)
    return "\n".join(["{", *(f"{pad}{entry}," for entry in entries), " " * indent + "}"])


def call(arguments: Sequence[str], function: str, indent: int, prefix: int = 0) -> str:
    """A call as a formatter would lay it out, from the text of its arguments; one character follows it.

    `indent` is the column of the statement, `prefix` how much stands before the call on its line.
    """
    flat = f"{function}({', '.join(arguments)})"
    if indent + prefix + len(flat) + 1 <= layout.WIDTH:
        return flat
    pad = " " * (indent + 4)
    body = ", ".join(arguments)
    if len(pad) + len(body) <= layout.WIDTH:
        return f"{function}(\n{pad}{body}\n{' ' * indent})"
    lines = [f"{pad}{_exploded(a, indent + 4)}," for a in arguments]
    return "\n".join([f"{function}(", *lines, " " * indent + ")"])


def example(arguments: Sequence[str], function: str, before: str = "", behind: str = "") -> str:
    """A call as an example of a docstring, between the rest of its line; broken as doctest has it."""
    text = call(arguments, function, len("    >>> "), len(before) + len(behind) - 1)
    return f"{before}{text}{behind}".replace("\n        ", "\n    ... ")


def _exploded(text: str, indent: int) -> str:
    """A tuple of words over several lines, where one is too short."""
    if indent + len(text) + 1 <= layout.WIDTH or not text.startswith("("):
        return text
    pad = " " * (indent + 4)
    return "\n".join(["(", *(f"{pad}{w}," for w in text[1:-1].split(", ")), " " * indent + ")"])


def define(function: FunctionValues | RuleValues, returns: str) -> str:
    """The first lines of a function with these `parameters`, as a formatter would lay them out."""
    parameters = [f"{name}: {type}" for name, type in function.parameters]
    head = f"def {function.name}("
    flat = f"{head}{', '.join(parameters)}) -> {returns}:"
    if len(flat) <= layout.WIDTH:
        return flat
    inner = "    " + ", ".join(parameters)
    lines = [inner] if len(inner) <= layout.WIDTH else [f"    {p}," for p in parameters]
    return "\n".join([head, *lines, f") -> {returns}:"])


def wrap(text: str, indent: int = 0, hang: int = 0, first: int = 0) -> str:
    """Text over several lines; `first` is what already stands on the first line beyond `indent`."""
    lines = textwrap.wrap(
        text,
        layout.WIDTH - indent,
        initial_indent=" " * first,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return ("\n" + " " * indent).join(lines)[first:]


def indent(text: str, width: int) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * width)
