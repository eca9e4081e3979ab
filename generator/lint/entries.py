"""What entries of every list have: an origin, an id of their own, and needs that stand above them."""

from __future__ import annotations

import re
from collections.abc import Collection

from generator.diagnostics import Note, Report, Span, suggestion
from generator.model import Constraint, TensorConstraint
from generator.source import Document, KeyPath

# What the runtime calls its own checks of a call, a description or a model.
CHECKS = {
    "absent", "array", "attribute", "byte_order", "data_type", "feature_level", "field_type", "input_count",
    "missing_input", "not_computable", "opset", "output_count", "outputs_info", "overlap", "shape",
    "supported_data_type", "supported_dimension_count", "symbol", "tensor_desc", "unknown_input", "version", "writable",
}  # fmt: skip


def check_origin(
    page: str | None,
    decided: str | None,
    what: str,
    id: str,
    path: KeyPath,
    document: Document,
    report: Report,
) -> None:
    if (page is None) == (decided is None):
        found = "no origin" if page is None else "two origins"
        report.add(
            "E210",
            f"{what} `{id}` has {found}",
            document.span((*path, "id") if (*path, "id") in document.values else path),
            help="name the place on the page with `page:`, or own the choice with `decided:` and its reason",
        )


def check_unique(
    names: dict[str, KeyPath],
    name: str,
    path: KeyPath,
    document: Document,
    report: Report,
    key: str = "id",
) -> None:
    """An entry's id, or what another key calls it, is its own; `names` are those above it, and it is added to them."""
    if name in names:
        first = Note(document.span((*names[name], key)), "first here")
        span = document.span((*path, key))
        said = "used" if key == "id" else "named"
        report.add("E211", f"`{name}` is {said} twice", span, "again", notes=[first])
    names.setdefault(name, path)


def check_sentence(
    sentence: str, parameters: Collection[str], of: str, span: Span, report: Report
) -> None:
    """Braces in what a shared constraint says is allowed hold its parameters."""
    for word, brace in re.findall(r"\{([^{}]*)\}|([{}])", sentence):
        if brace:
            report.add("E203", f"a `{brace}` stands alone", span, "braces hold a parameter")
        elif word not in parameters:
            message = f"`{word}` is not a parameter of `{of}`"
            report.add("E203", message, span, "unknown name", help=suggestion(word, parameters))


def check_rule(
    rule: Constraint | TensorConstraint,
    ids: dict[str, KeyPath],
    every: Collection[str],
    path: KeyPath,
    document: Document,
    report: Report,
) -> None:
    """Its origin, its id and its needs; `ids` are those above it, `every` all of its list."""
    check_origin(rule.page, rule.decided, "constraint", rule.id, path, document, report)
    check_unique(ids, rule.id, path, document, report)
    if rule.id in CHECKS:
        report.add(
            "E211",
            f"`{rule.id}` is already a check of the runtime",
            document.span((*path, "id")),
            "again",
            help="choose another id: messages and tests name a rule by it",
        )
    known = [id for id in ids if id != rule.id]
    for i, need in enumerate(rule.needs):
        if need in known:
            continue
        label, help = "unknown", suggestion(need, known)
        if need in every:
            label = "itself" if need == rule.id else "stands below"
            help = "leave it out" if need == rule.id else f"move `{need}` above this one"
        report.add(
            "E213",
            f"`{need}` is not a constraint above this one",
            document.span((*path, "needs", i)),
            label,
            help=help,
        )


def too_long(place: Span, help: str, report: Report) -> None:
    report.add(
        "E202",
        "this expression does not fit the lines of a generated module",
        place,
        "too long",
        help=help,
    )
