"""From a structurally valid spec to one whose names and expressions are resolved.

A shared constraint is written out with its arguments here, so that all later stages see only plain ones.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from generator import expr
from generator.diagnostics import Report, suggestion
from generator.expr import Expr
from generator.expr.bounds import Bound
from generator.expr.language import DESCRIBED, ExpressionError
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


def families(operators: Sequence[Operator]) -> Iterator[list[Operator]]:
    """All versions of each ONNX operator, oldest first."""
    order = sorted(operators, key=lambda o: (o.source.family, o.spec.since_version or 0))
    for _, group in itertools.groupby(order, key=lambda o: o.source.family):
        yield list(group)


@dataclass(frozen=True)
class _Names:
    """What expressions at one place may read."""

    types: Mapping[str, str]
    signed: frozenset[str]  # numbers, and lists with entries, that may be negative
    bounds: Mapping[str, Bound]  # of derived values

    def also(self, types: Mapping[str, str]) -> _Names:
        return replace(self, types={**self.types, **types})

    def derived(self, name: str, value: Expr | None) -> _Names:
        """And a derived value; where it is not understood, a list."""
        type = value.type if value else "ints"
        types = {**self.types, name: self.types.get(name, type)}
        bounds = {name: value.bound, **self.bounds} if value else self.bounds
        return _Names(types, self.signed | {name}, bounds)


def scope(spec: OperatorSpec) -> dict[str, str]:
    """The type of each field in expressions; an enum's value is a word."""
    return {f.name: field_type(f.type).expression for f in spec.fields}


def tensor_rules(tree: SpecTree, report: Report) -> tuple[tuple[Rule, TensorConstraint], ...]:
    """The rules that hold for every tensor, over the one name `tensor`."""
    out = []
    reader = _Reader(tree.document, tree, report)
    names = _Names({"tensor": "tensor"}, frozenset(), {})
    for i, constraint in enumerate(tree.vocabulary.tensor_constraints):
        path: KeyPath = ("tensor_constraints", i)
        require = reader.expression(constraint.require, (*path, "require"), names, "bool")
        if require is not None:
            out.append((_rule(constraint, require, constraint.allowed, path), constraint))
    return tuple(out)


def kernel_scope(kernel: KernelEntry) -> dict[str, str]:
    """The type of each tensor of a kernel, and of each parameter that takes an expression, in what it requires."""
    types = {"ints": "ints", "number": "float"}
    told = {p: types[e.expression] for p, e in kernel.parameters.items() if e.expression}
    return told | dict.fromkeys((*kernel.inputs, *kernel.outputs), "tensor")


def requirements(tree: SpecTree, report: Report) -> Requirements:
    """What the kernels need. What cannot be resolved is in the report and left out."""
    out: dict[str, tuple[Use, ...]] = {}
    reader = _Reader(tree.document, tree, report)
    for name, kernel in tree.vocabulary.kernels.items():
        # What a kernel is told may be negative: nothing but a requirement says that it is not.
        names = _Names(kernel_scope(kernel), frozenset(kernel.parameters), {})
        what = f"a tensor of kernel `{name}`, nor a parameter that takes an expression"
        uses = [
            reader.use(text, ("kernels", name, "requires", i), names, what)
            for i, text in enumerate(kernel.requires)
        ]
        out[name] = tuple(use for use in uses if use is not None)
    return out


def operator(source: Spec, tree: SpecTree, report: Report) -> Operator:
    """Resolve one spec. What cannot be resolved is in the report and left out."""
    spec = source.spec
    reader = _Reader(source.document, tree, report, described=source.dialect == "directml")
    reader.outputs = {field.name: field.optional for field in spec.fields if field.kind == "output"}
    defaults: dict[str, Expr] = {}
    derived: dict[str, Expr] = {}
    sizes: dict[str, Expr] = {}
    dtypes: dict[str, Expr] = {}
    meanings: dict[str, Expr] = {}

    def keep(
        into: dict[str, Expr], name: str, text: str, names: _Names, want: str, *path: str | int
    ) -> None:
        expression = reader.expression(text, path, names, want)
        if expression is not None:
            into[name] = expression

    fields = scope(spec)
    names = _Names(
        {name: type for name, type in fields.items() if spec.field(name).kind != "output"},
        frozenset(f.name for f in spec.fields if f.type in ("int", "int[]")),
        {},
    )
    for i, field in enumerate(spec.fields):
        if isinstance(field.default, str) and field.type.endswith("[]"):
            keep(defaults, field.name, field.default, names, "ints", "fields", i, "default")
    later = [entry.name for entry in spec.derived]
    for i, entry in enumerate(spec.derived):
        value = reader.expression(entry.value, ("derived", i, "value"), names, None, later[i:])
        names = names.derived(entry.name, value)
        if value is not None:
            derived[entry.name] = value
        if value is None or reader.guesses(value.names()):
            reader.guessed.add(entry.name)
    known = names
    for i, field in enumerate(spec.fields):
        if field.sizes is not None:
            keep(sizes, field.name, field.sizes, known, "ints", "fields", i, "sizes")
        if field.dtype is not None and field.chooses_dtype:
            keep(dtypes, field.name, field.dtype, names, "dtype", "fields", i, "dtype")
        if field.kind == "output" and field.optional is None:
            known = known.also({field.name: "tensor"})
    rules = []
    for i, constraint in enumerate(spec.constraints):
        path: KeyPath = ("constraints", i)
        resolved = reader.constraint(constraint, path, names.also(fields))
        if resolved is not None:
            rules.append(_rule(constraint, *resolved, path))
    kernel = tree.vocabulary.kernels[spec.semantics.kernel]
    for name, meaning in spec.semantics.meanings.items():
        parameter = kernel.parameters.get(name)
        if parameter is not None and parameter.expression is not None and meaning.value is not None:
            want = parameter.expression
            keep(meanings, name, meaning.value, known, want, "semantics", name, "value")
    return Operator(source, tuple(rules), defaults, derived, sizes, dtypes, meanings)


def _rule(
    constraint: Constraint | TensorConstraint, require: Expr, allowed: str, path: KeyPath
) -> Rule:
    c = constraint
    return Rule(c.id, c.field, require, allowed, c.page, c.decided, tuple(c.needs), c.violate, path)


class _Reader:
    """Reads the expressions of one document. What cannot be read is in the report, and None.

    `described`: whether all parts of tensors are told, as in descriptions.
    """

    def __init__(
        self, document: Document, tree: SpecTree, report: Report, *, described: bool = True
    ) -> None:
        self.document, self.report, self.described = document, report, described
        self.shared = tree.vocabulary.constraints
        self.data_types = tree.vocabulary.data_types
        self.words = {word for enum in tree.vocabulary.enums.values() for word in enum.values}
        self.outputs: Mapping[str, str | None] = {}  # with what asks for those that may be absent
        self.guessed: set[str] = set()  # derived values that are not understood, or read such

    def expression(
        self,
        text: str,
        path: KeyPath,
        names: _Names,
        want: str | None,
        later: Collection[str] = (),
    ) -> Expr | None:
        """The expression at `path`; `later` are names that have no value yet."""
        try:
            parsed = self.parsed(text, names, want)
            return parsed if self.is_told(parsed, path) else None
        except ExpressionError as error:
            if error.code in ("E202", "E204") and self.guesses(re.findall(r"\w+", text)):
                return None  # of a guessed type nothing is told
            span = self.document.within(path, error.offset, error.length)
            message, help = error.message, error.help
            name = text[error.offset : error.offset + error.length]
            if error.code == "E203" and name in later:
                message = f"`{name}` is not derived above this"
                help = "a derived value reads inputs, attributes, and derived values above it"
            elif error.code == "E203" and self.outputs.get(name) is not None:
                message = f"`{name}` is an output that may be absent"
                help = "read what is always there"
            elif error.code == "E203" and name in self.outputs:
                message = f"`{name}` is an output, whose sizes and data type follow from this"
                help = "read inputs, attributes and derived values; `sizes` also outputs above it"
                if path[-1] == "default":
                    help = "read inputs and attributes"
            if error.code == "E203" and name in self.shared and path[0] == "constraints":
                whole = _call(text) is not None
                help = "it is a shared constraint: write "
                help += f"`use: {text}`" if whole else "a constraint of its own with `use`"
            self.report.add(error.code, message, span, error.label, help=help)
            return None

    def guesses(self, names: Iterable[str]) -> bool:
        """Whether the type of one of them is a guess."""
        return not self.guessed.isdisjoint(names)

    def is_told(self, expression: Expr, path: KeyPath) -> bool:
        """Whether each part of a tensor that it reads is told by somebody."""
        for read in () if self.described else expression.reads:
            name, _, part = read.partition(".")
            if part in DESCRIBED:
                self.report.add(
                    "E203",
                    f"functions are not told `{part}` of `{name}`",
                    self.document.span(path),
                    "read here",
                    help="they take arrays of any strides; of a tensor they know sizes, dtype and dimension_count",
                )
                return False
        return True

    def parsed(self, text: str, names: _Names, want: str | None) -> Expr:
        return expr.parse(
            text, names.types, want, self.data_types, names.signed, names.bounds, self.words
        )

    def constraint(
        self, constraint: Constraint, path: KeyPath, names: _Names
    ) -> tuple[Expr, str] | None:
        """What it requires, and the sentence that says so."""
        if (constraint.use is None) == (constraint.require is None):
            has = "has both" if constraint.use is not None else "needs one of"
            self.report.add(
                "E212",
                f"constraint `{constraint.id}` {has} `use` and `require`",
                self.document.span((*path, "id")),
                help="leave out one of them" if constraint.use is not None else "",
            )
            return None
        if constraint.use is not None:
            what = "a field of this operator"
            used = self.use(constraint.use, (*path, "use"), names, what, constraint.allowed)
            return (used.require, used.allowed) if used else None
        if constraint.allowed is None:
            self.report.add(
                "E102",
                "`allowed` is missing",
                self.document.span((*path, "id")),
                "in here",
                help="say in one sentence what is allowed; it becomes part of the error message",
            )
        text = constraint.require or ""
        require = self.expression(text, (*path, "require"), names, "bool")
        return (require, constraint.allowed) if require and constraint.allowed is not None else None

    def use(
        self, text: str, path: KeyPath, names: _Names, what: str, sentence: str | None = None
    ) -> Use | None:
        """The shared constraint that `text` names, over `names`, each of them `what`; its own `sentence` or another."""
        span = self.document.span(path)
        call = _call(text)
        if call is None:
            help = (
                "write its name and what it is about, as in `same_rank(InputTensor, OutputTensor)`"
            )
            message = "cannot read this use of a shared constraint"
            self.report.add("E201", message, span, "here", help=help)
            return None
        name, nodes = call
        arguments = [node.id for node in nodes]
        shared = self.shared.get(name)
        if shared is None:
            self.report.add(
                "E203",
                f"`{name}` is not a shared constraint",
                self.document.within(path, 0, len(name)),
                "unknown",
                help=suggestion(name, self.shared),
            )
            return None
        if len(arguments) != len(shared.parameters):
            wanted = ", ".join(shared.parameters)
            self.report.add(
                "E204",
                f"`{name}` takes {wanted}",
                span,
                f"given {len(arguments)}",
                help=f"{name}({wanted})",
            )
            return None
        for node in nodes:
            if node.id not in names.types:
                self.report.add(
                    "E203",
                    f"`{node.id}` is not {what}",
                    self.document.within(path, node.col_offset, len(node.id)),
                    "unknown name",
                    help=suggestion(node.id, names.types),
                )
                return None
        bound = dict(zip(shared.parameters, arguments, strict=True))
        parameters = _Names(
            {p: names.types[a] for p, a in bound.items()},
            frozenset(p for p, a in bound.items() if a in names.signed),
            {p: names.bounds[a] for p, a in bound.items() if a in names.bounds},
        )
        try:
            require = self.parsed(shared.require, parameters, "bool")
        except ExpressionError as error:
            try:
                expr.check_names(shared.require, shared.parameters, name)
            except ExpressionError:
                return None  # told in the vocabulary
            if self.guesses(arguments):
                return None
            part = shared.require[error.offset : error.offset + error.length]
            self.report.add(
                "E204",
                f"`{name}` does not fit its arguments: {error.message} (`{part}`: {error.label})",
                span,
                "used here",
                help=f"`{name}` requires {shared.require}",
            )
            return None
        variables = require.variables()
        if clash := next((node for node in nodes if node.id in variables), None):
            self.report.add(
                "E204",
                f"`{name}` has a loop variable of the name `{clash.id}`",
                self.document.within(path, clash.col_offset, len(clash.id)),
                "used here",
                help="rename the loop variable in the vocabulary",
            )
            return None
        require = require.rename(bound)
        if not self.is_told(require, path):
            return None
        return Use(name, tuple(arguments), require, _fill(sentence or shared.allowed, bound))


def _fill(sentence: str, bound: Mapping[str, str]) -> str:
    for parameter, field in bound.items():
        sentence = sentence.replace("{" + parameter + "}", field)
    return sentence


def _call(text: str) -> tuple[str, list[ast.Name]] | None:
    """The function and the arguments of a call, all of them names of ASCII."""
    try:
        node = ast.parse(text, mode="eval").body if text.isascii() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    names = [a for a in node.args if isinstance(a, ast.Name)]
    return (node.func.id, names) if len(names) == len(node.args) else None
