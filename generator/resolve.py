"""From a structurally valid spec to one whose names and expressions are resolved.

A shared constraint is written out with its arguments here, so that all later stages see only plain ones.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from typing import Any

from generator import expr
from generator.bounds import Bound
from generator.diagnostics import Report, suggestion
from generator.expr import Expr, ExpressionError
from generator.field_types import field_type
from generator.model import (
    Constraint,
    KernelEntry,
    OperatorSpec,
    Spec,
    SpecTree,
    TensorConstraint,
)
from generator.source import Document, KeyPath


@dataclass(frozen=True)
class Rule:
    """A constraint, resolved."""

    id: str
    field: str
    require: Expr
    allowed: str
    page: str | None
    decided: str | None
    needs: tuple[str, ...]
    violate: dict[str, Any]
    path: KeyPath


@dataclass(frozen=True)
class Use:
    """A shared constraint over some names: those of an operator's fields, or of a kernel's tensors and parameters."""

    constraint: str
    arguments: tuple[str, ...]
    require: Expr
    allowed: str


# What each kernel requires, each behind those that it needs.
Requirements = Mapping[str, tuple[Use, ...]]


@dataclass(frozen=True)
class Operator:
    """A spec with its resolved expressions: what values.py makes values for templates of."""

    source: Spec
    rules: tuple[Rule, ...]
    defaults: Mapping[str, Expr]  # of each array that has one
    derived: Mapping[str, Expr]
    sizes: Mapping[str, Expr]  # of each output
    dtypes: Mapping[str, Expr]  # of each output whose data type an expression chooses
    meanings: Mapping[str, Expr]  # of the kernel parameters that are expressions

    @property
    def spec(self) -> OperatorSpec:
        return self.source.spec

    @property
    def id(self) -> str:
        """Its name everywhere: "directml/argmax"."""
        return f"{self.source.dialect}/{self.source.name}"


def scope(spec: OperatorSpec) -> dict[str, str]:
    """The type of each field in expressions; an enum's value is a word."""
    return {f.name: field_type(f.type).expression for f in spec.fields}


def tensor_rules(tree: SpecTree, report: Report) -> tuple[tuple[Rule, TensorConstraint], ...]:
    """The rules that hold for every tensor, over the one name `tensor`."""
    out = []
    for i, constraint in enumerate(tree.vocabulary.tensor_constraints):
        path: KeyPath = ("tensor_constraints", i)
        require = _expression(
            constraint.require,
            {"tensor": "tensor"},
            "bool",
            tree.vocabulary.data_types,
            tree.document,
            (*path, "require"),
            report,
        )
        if require is not None:
            out.append(
                (_rule(constraint, constraint.field, require, constraint.allowed, path), constraint)
            )
    return tuple(out)


def kernel_scope(kernel: KernelEntry) -> dict[str, str]:
    """The type of each tensor of a kernel, and of each parameter that takes an expression, in what it requires."""
    told = {p: str(e.expression) for p, e in kernel.parameters.items() if e.expression}
    return told | dict.fromkeys((*kernel.inputs, *kernel.outputs), "tensor")


def requirements(tree: SpecTree, report: Report) -> Requirements:
    """What the kernels need. What cannot be resolved is in the report and left out."""
    out: dict[str, tuple[Use, ...]] = {}
    for name, kernel in tree.vocabulary.kernels.items():
        names = kernel_scope(kernel)
        what = f"a tensor of kernel `{name}`, nor a parameter that takes an expression"
        uses = [
            _use(text, ("kernels", name, "requires", i), names, what, tree.document, tree, report)
            for i, text in enumerate(kernel.requires)
        ]
        out[name] = tuple(use for use in uses if use is not None)
    return out


def operator(source: Spec, tree: SpecTree, report: Report) -> Operator:
    """Resolve one spec. What cannot be resolved is in the report and left out."""
    spec, document = source.spec, source.document
    data_types = tree.vocabulary.data_types

    def parse(
        text: str,
        names: Mapping[str, str],
        want: str | None,
        *path: str | int,
        later: Collection[str] = (),
    ) -> Expr | None:
        return _expression(
            text, names, want, data_types, document, path, report, signed, bounds, later
        )

    fields = scope(spec)
    signed = {
        f.name for f in spec.fields if f.type == "int[]"
    }  # lists whose entries may be negative
    given = {name: type for name, type in fields.items() if spec.field(name).kind != "output"}
    defaults: dict[str, Expr] = {}
    derived: dict[str, Expr] = {}
    bounds: dict[str, Bound] = {}  # of derived values
    sizes: dict[str, Expr] = {}
    dtypes: dict[str, Expr] = {}
    meanings: dict[str, Expr] = {}
    for i, field in enumerate(spec.fields):
        if isinstance(field.default, str) and field.type.endswith("[]"):
            _keep(defaults, field.name, parse(field.default, given, "ints", "fields", i, "default"))
    names = dict(given)
    later = [entry.name for entry in spec.derived]
    for i, entry in enumerate(spec.derived):
        expression = parse(entry.value, names, None, "derived", i, "value", later=later[i:])
        _keep(derived, entry.name, expression)
        names.setdefault(entry.name, expression.type if expression else "ints")
        signed.add(entry.name)
        if expression is not None:
            bounds.setdefault(entry.name, expression.bound)
    known = dict(names)
    for i, field in enumerate(spec.fields):
        if field.sizes is not None:
            _keep(sizes, field.name, parse(field.sizes, known, "ints", "fields", i, "sizes"))
        if field.dtype is not None and field.chooses_dtype:
            _keep(dtypes, field.name, parse(field.dtype, names, "dtype", "fields", i, "dtype"))
        if field.kind == "output":
            known[field.name] = "tensor"
    rules = []
    for i, constraint in enumerate(spec.constraints):
        path: KeyPath = ("constraints", i)
        resolved = _constraint(
            constraint, path, {**names, **fields}, signed, bounds, source, tree, report
        )
        if resolved is not None:
            rules.append(_rule(constraint, constraint.field, *resolved, path))
    kernel = tree.vocabulary.kernels[spec.semantics.kernel]
    for name, meaning in spec.semantics.meanings.items():
        parameter = kernel.parameters.get(name)
        if parameter is not None and parameter.expression is not None and meaning.value is not None:
            want = parameter.expression
            _keep(meanings, name, parse(meaning.value, known, want, "semantics", name, "value"))
    return Operator(source, tuple(rules), defaults, derived, sizes, dtypes, meanings)


def _keep(into: dict[str, Expr], name: str, expression: Expr | None) -> None:
    if expression is not None:
        into[name] = expression


def _rule(
    constraint: Constraint | TensorConstraint,
    field: str,
    require: Expr,
    allowed: str,
    path: KeyPath,
) -> Rule:
    c = constraint
    return Rule(c.id, field, require, allowed, c.page, c.decided, tuple(c.needs), c.violate, path)


def _expression(
    text: str,
    names: Mapping[str, str],
    want: str | None,
    data_types: Collection[str],
    document: Document,
    path: KeyPath,
    report: Report,
    signed: Container[str] = (),
    bounds: Mapping[str, Bound] | None = None,
    later: Collection[str] = (),
) -> Expr | None:
    """The expression at `path`; `later` are names that have no value yet."""
    try:
        return expr.parse(text, names, want, data_types, signed, bounds)
    except ExpressionError as error:
        span = document.within(path, error.offset, error.length)
        message, help = error.message, error.help
        name = text[error.offset : error.offset + error.length]
        if error.code == "E203" and name in later:
            message = f"`{name}` is not derived above this"
            help = "a derived value reads fields, and derived values above it"
        report.add(error.code, message, span, error.label, help=help)
        return None


def _constraint(
    constraint: Constraint,
    path: KeyPath,
    names: dict[str, str],
    signed: Container[str],
    bounds: Mapping[str, Bound],
    source: Spec,
    tree: SpecTree,
    report: Report,
) -> tuple[Expr, str] | None:
    document = source.document
    if (constraint.use is None) == (constraint.require is None):
        report.add(
            "E212",
            f"constraint `{constraint.id}` needs one of `use` and `require`",
            document.span((*path, "id")),
        )
        return None
    if constraint.require is not None:
        if constraint.allowed is None:
            report.add(
                "E102",
                "`allowed` is missing",
                document.span((*path, "id")),
                "in here",
                help="say in one sentence what is allowed; it becomes part of the error message",
            )
        require = _expression(
            constraint.require,
            names,
            "bool",
            tree.vocabulary.data_types,
            document,
            (*path, "require"),
            report,
            signed,
            bounds,
        )
        return (
            (require, constraint.allowed)
            if require is not None and constraint.allowed is not None
            else None
        )
    used = _use(
        constraint.use or "",
        (*path, "use"),
        names,
        "a field of this operator",
        document,
        tree,
        report,
        signed,
        bounds,
    )
    return (used.require, constraint.allowed or used.allowed) if used else None


def _use(
    text: str,
    path: KeyPath,
    names: Mapping[str, str],
    what: str,
    document: Document,
    tree: SpecTree,
    report: Report,
    signed: Container[str] = (),
    bounds: Mapping[str, Bound] | None = None,
) -> Use | None:
    """The shared constraint that `text` names, over `names`, each of them `what`."""
    span = document.span(path)
    call = _call(text)
    if call is None:
        help = "write its name and what it is about, as in `same_rank(InputTensor, OutputTensor)`"
        report.add("E201", "cannot read this use of a shared constraint", span, "here", help=help)
        return None
    name, arguments = call
    shared = tree.vocabulary.constraints.get(name)
    if shared is None:
        help = suggestion(name, tree.vocabulary.constraints)
        report.add(
            "E203",
            f"`{name}` is not a shared constraint",
            document.within(path, 0, len(name)),
            "unknown",
            help=help,
        )
        return None
    if len(arguments) != len(shared.parameters):
        wanted = ", ".join(shared.parameters)
        report.add(
            "E204",
            f"`{name}` takes {wanted}",
            span,
            f"given {len(arguments)}",
            help=f"{name}({wanted})",
        )
        return None
    for argument in arguments:
        if argument not in names:
            place = document.within(path, text.index(argument), len(argument))
            report.add(
                "E203",
                f"`{argument}` is not {what}",
                place,
                "unknown name",
                help=suggestion(argument, names),
            )
            return None
    bound = dict(zip(shared.parameters, arguments, strict=True))
    try:
        types = {p: names[a] for p, a in bound.items()}
        negative = {p for p, a in bound.items() if a in signed}
        taken = {p: bounds[a] for p, a in bound.items() if bounds and a in bounds}
        require = expr.parse(
            shared.require, types, "bool", tree.vocabulary.data_types, negative, taken
        )
    except ExpressionError as error:
        try:
            expr.check_names(shared.require, shared.parameters, name)
        except ExpressionError:
            return None  # told in the vocabulary
        report.add(
            "E204",
            f"`{name}` does not fit its arguments: {error.message}",
            span,
            "used here",
            help=f"`{name}` requires {shared.require}",
        )
        return None
    clash = sorted(require.variables() & set(arguments))
    if clash:
        place = document.within(path, text.index(clash[0]), len(clash[0]))
        message = f"`{name}` has a loop variable of the name `{clash[0]}`"
        report.add(
            "E204", message, place, "used here", help="rename the loop variable in the vocabulary"
        )
        return None
    return Use(name, tuple(arguments), require.rename(bound), _fill(shared.allowed, bound))


def _fill(sentence: str, bound: Mapping[str, str]) -> str:
    for parameter, field in bound.items():
        sentence = sentence.replace("{" + parameter + "}", field)
    return sentence


def _call(text: str) -> tuple[str, list[str]] | None:
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    names = [a.id for a in node.args if isinstance(a, ast.Name)]
    return (node.func.id, names) if len(names) == len(node.args) else None
