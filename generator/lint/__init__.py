"""What needs more than one field: cross-references, names, levels. Then each spec's test of itself, in selftest.py."""

from __future__ import annotations

from dataclasses import dataclass

from generator import names, resolve
from generator.diagnostics import Note, Report, Span
from generator.lint.entries import check_origin, check_unique
from generator.lint.equivalences import Equivalences, check_calls
from generator.lint.examples import check_contradictions
from generator.lint.fields import Fields, sound_members
from generator.lint.kernel_types import KernelTypes
from generator.lint.naming import Naming
from generator.lint.rules import Rules
from generator.lint.semantics import Semantics
from generator.lint.subject import TODO
from generator.lint.tables import Tables
from generator.lint.unread import Unread
from generator.lint.versions import check_versions
from generator.lint.vocabulary import check_layout, check_vocabulary
from generator.lint.words import Words
from generator.model import SpecTree, TensorConstraint
from generator.resolve import Operator, Requirements, Rule
from generator.selftest import SelfTest
from generator.source import Document, KeyPath
from generator.tensors import Tensor


@dataclass(frozen=True)
class Linted:
    """All specs, resolved and found good."""

    tree: SpecTree
    tensor_rules: tuple[tuple[Rule, TensorConstraint], ...]
    requirements: Requirements
    operators: tuple[Operator, ...]


def lint(tree: SpecTree, report: Report) -> Linted:
    """Check all specs; findings go to the report."""
    start = report.count
    check_vocabulary(tree, report)
    tensor_rules = resolve.tensor_rules(tree, report)
    requirements = resolve.requirements(tree, report)
    check_layout(tree, tensor_rules, requirements, report)
    vocabulary_sound = report.count == start
    remembered: dict[tuple[str, Tensor], bool] = {}
    operators, sound = [], []
    for source in tree.specs:
        before = report.count
        _todo(source.document, report)
        if not sound_members(source, report):
            report.stopped.add(source.file)
            continue
        operator = resolve.operator(source, tree, report)
        _spec(operator, tree, report)
        if report.count == before and vocabulary_sound:
            Unread(operator, tree, report).check()
            KernelTypes(operator, tree, report).check()
            required = requirements[source.spec.semantics.kernel]
            test = SelfTest(
                operator,
                tree,
                tensor_rules,
                report,
                requirements=required,
                remembered=remembered,
            )
            test.run()
        elif report.count != before:
            report.stopped.add(source.file)
        operators.append(operator)
        if report.count == before:
            sound.append(operator)
    _families(sound, report)
    check_versions(sound, report)
    if not report:
        check_calls(operators, tree, tensor_rules, report)
    return Linted(tree, tensor_rules, requirements, tuple(operators))


def _spec(operator: Operator, tree: SpecTree, report: Report) -> None:
    """The cross-references of one spec."""
    for part in (Naming, Fields, Words, Tables, Rules, Semantics, Equivalences):
        part(operator, tree, report).check()
    document = operator.source.document
    silent: dict[str, KeyPath] = {}
    for i, decision in enumerate(operator.spec.silent):
        check_unique(silent, decision.id, ("silent", i), document, report)
    ids: dict[str, KeyPath] = {}
    for i, example in enumerate(operator.spec.examples):
        path: KeyPath = ("examples", i)
        check_unique(ids, example.id, path, document, report)
        check_origin(example.page, example.decided, "example", example.id, path, document, report)
    check_contradictions(operator.spec.examples, document, report)


def _families(operators: list[Operator], report: Report) -> None:
    """All versions of an ONNX operator have its one name; otherwise each operator has its own name and class."""
    first: dict[tuple[str, str], Operator] = {}  # of each family
    named: dict[tuple[str, str], Operator] = {}
    classes: dict[str, Operator] = {}
    for operator in operators:
        dialect = operator.source.dialect
        known = first.setdefault((dialect, operator.source.family), operator)
        if known.spec.operator != operator.spec.operator:
            _again(
                operator,
                known,
                f"`{operator.spec.operator}` is another name than that of {known.id}",
                report,
                ("differs", "another version"),
                "all versions of an operator have one name; another operator has another file name",
            )
            continue
        other = named.setdefault((dialect, operator.spec.operator), known)
        if other is not known:
            message = f"`{operator.spec.operator}` is also the name of {other.id}"
            _again(operator, other, message, report)
        elif dialect == "directml":
            made = names.description_class(operator.source.name)
            other = classes.setdefault(made, operator)
            if other is not operator:
                message = f"`{made}` is also the class of {other.id}"
                help = "classes are named by the specs' file names, without _: choose another one"
                _again(operator, other, message, report, help=help)


def _again(
    operator: Operator,
    known: Operator,
    message: str,
    report: Report,
    labels: tuple[str, str] = ("again", "first here"),
    help: str = "",
) -> None:
    """Tell of two operators whose names do not fit together."""
    here, there = (o.source.document.span(("operator",)) for o in (operator, known))
    report.add("E211", message, here, labels[0], notes=[Note(there, labels[1])], help=help)


def _todo(document: Document, report: Report) -> None:
    """All of them as one, so that they hide no other mistake."""
    places: list[Span] = []

    def walk(value: object, path: KeyPath) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*path, key))
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                walk(inner, (*path, i))
        elif isinstance(value, str) and TODO in value:
            places.append(document.span(path))

    walk(document.data, ())
    if not places:
        return
    more = ", ".join(str(place.line) for place in places[1:])
    help = f"more of them are in line{'s' * (len(places) > 2)} {more}" if more else ""
    report.add("E250", f"a `{TODO}` is left", places[0], "fill this in", help=help)
