"""What needs more than one field: cross-references, levels, and each spec's test of itself.

A constraint must be broken by its own `violate` and by nothing else; an example must satisfy every constraint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator import expr, model, resolve
from generator.diagnostics import Note, Report, Span, suggestion
from generator.model import Example, TensorConstraint, Tree_
from generator.resolve import Operator, Rule
from generator.source import Document, Path_

TODO = "TODO"


@dataclass(frozen=True)
class Tensor:
    """A tensor as constraints see it."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dimension_count: int
    total_bytes: int
    alignment: int = 0
    flags: str = "NONE"


@dataclass(frozen=True)
class Linted:
    """All specs, resolved and found good."""

    tree: Tree_
    tensor_rules: tuple[tuple[Rule, TensorConstraint], ...]
    operators: tuple[Operator, ...]


def lint(tree: Tree_, report: Report) -> Linted:
    """Check all specs; findings go to the report."""
    _vocabulary(tree, report)
    tensor_rules = resolve.tensor_rules(tree, report)
    remembered: dict[tuple[str, Tensor], bool] = {}
    operators = []
    for source in tree.specs:
        before = len(report.diagnostics)
        _todo(source.document, report)
        operator = resolve.operator(source, tree, report)
        _Spec(operator, tree, report).check()
        if len(report.diagnostics) == before and len(tensor_rules) == len(
            tree.vocabulary.tensor_constraints
        ):
            _SelfTest(operator, tree, tensor_rules, remembered, report).run()
        operators.append(operator)
    return Linted(tree, tensor_rules, tuple(operators))


def _todo(document: Document, report: Report) -> None:
    def walk(value: object, path: Path_) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*path, key))
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                walk(inner, (*path, i))
        elif isinstance(value, str) and TODO in value:
            report.add("E250", f"a `{TODO}` is left", document.span(path), "fill this in")

    walk(document.data, ())


def _vocabulary(tree: Tree_, report: Report) -> None:
    ids: dict[str, Path_] = {}
    for i, constraint in enumerate(tree.vocabulary.tensor_constraints):
        path: Path_ = ("tensor_constraints", i)
        _origin(
            constraint.page,
            constraint.decided,
            "constraint",
            constraint.id,
            path,
            tree.document,
            report,
        )
        _unique(ids, constraint.id, path, tree.document, report)
        _needs(constraint.needs, ids, constraint.id, path, tree.document, report)
    for name, kernel in tree.vocabulary.kernels.items():
        for parameter, entry in kernel.parameters.items():
            if (entry.values is None) == (entry.expression is None):
                report.add(
                    "E212",
                    f"parameter `{parameter}` needs one of `values` and `expression`",
                    tree.document.key_span(("kernels", name, "parameters", parameter)),
                )


def _origin(
    page: str | None,
    decided: str | None,
    what: str,
    id: str,
    path: Path_,
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


def _unique(
    ids: dict[str, Path_], id: str, path: Path_, document: Document, report: Report
) -> None:
    if id in ids:
        first = Note(document.span((*ids[id], "id")), "first here")
        report.add(
            "E211", f"`{id}` is used twice", document.span((*path, "id")), "again", notes=[first]
        )
    ids.setdefault(id, path)


def _needs(
    needs: list[str],
    earlier: Iterable[str],
    id: str,
    path: Path_,
    document: Document,
    report: Report,
) -> None:
    known = [e for e in earlier if e != id]
    for i, need in enumerate(needs):
        if need not in known:
            report.add(
                "E213",
                f"`{need}` is not a constraint above this one",
                document.span((*path, "needs", i)),
                "unknown",
                help=suggestion(need, known),
            )


class _Spec:
    """The cross-references of one spec."""

    def __init__(self, operator: Operator, tree: Tree_, report: Report) -> None:
        self.operator, self.spec, self.document = operator, operator.spec, operator.source.document
        self.vocabulary, self.report = tree.vocabulary, report
        self.names = [f.name for f in self.spec.fields]

    def check(self) -> None:
        if self.operator.source.dialect == "directml" and self.spec.introduced is None:
            self.report.add("E102", "`introduced` is missing", self.document.span(()), "in here")
        self.fields()
        self.support()
        self.constraints()
        self.semantics()
        ids: dict[str, Path_] = {}
        for i, example in enumerate(self.spec.examples):
            _unique(ids, example.id, ("examples", i), self.document, self.report)
            _origin(
                example.page,
                example.decided,
                "example",
                example.id,
                ("examples", i),
                self.document,
                self.report,
            )

    def unknown(
        self, name: str, path: Path_, known: Iterable[str], what: str = "a field of this operator"
    ) -> bool:
        known = list(known)
        if name in known:
            return False
        self.report.add(
            "E203",
            f"`{name}` is not {what}",
            self.document.key_span(path),
            "unknown name",
            help=suggestion(name, known),
        )
        return True

    def fields(self) -> None:
        seen: dict[str, int] = {}
        for i, field in enumerate(self.spec.fields):
            path: Path_ = ("fields", i)
            if field.name in seen:
                first = Note(self.document.span(("fields", seen[field.name], "name")), "first here")
                self.report.add(
                    "E211",
                    f"field `{field.name}` is named twice",
                    self.document.span((*path, "name")),
                    "again",
                    notes=[first],
                )
            seen.setdefault(field.name, i)
            if (field.type == "tensor") == (field.kind == "attribute"):
                self.report.add(
                    "E214",
                    f"`{field.name}` is {field.kind} but its type is {field.type}",
                    self.document.span((*path, "type")),
                    help="inputs and outputs are tensors, attributes are not",
                )
            if field.kind == "output" and (field.sizes is None or field.dtype is None):
                self.report.add(
                    "E214",
                    f"output `{field.name}` needs `sizes` and `dtype`",
                    self.document.span((*path, "name")),
                    help="the functions allocate it; say how large it is, and its data type where none is asked for",
                )
            for key, kinds in (("length_of", ["uint[]"]), ("axes_of", ["tensor"])):
                target = getattr(field, key)
                known = [f.name for f in self.spec.fields if f.type in kinds]
                if target is not None:
                    self.unknown(target, (*path, key), known)
            self.default(field, (*path, "default"))

    def default(self, field: model.FieldSpec, path: Path_) -> None:
        if field.default is None:
            return
        enum = self.vocabulary.enums.get(field.type)
        good = (
            field.default in enum.values
            if enum
            else isinstance(field.default, bool) == (field.type == "bool")
        )
        if not good:
            known = (
                suggestion(str(field.default), enum.values)
                if enum
                else f"a default of type {field.type}"
            )
            self.report.add(
                "E103",
                f"`{field.default}` is not a value of {field.type}",
                self.document.span(path),
                help=known,
            )

    def support(self) -> None:
        tensors = [f.name for f in self.spec.tensors()]
        levels = list(self.vocabulary.feature_levels)
        leveled = self.operator.source.dialect == "directml"
        for i, row in enumerate(self.spec.support):
            path: Path_ = ("support", i)
            unknown = [self.unknown(name, (*path, name), tensors) for name in row.tensors]
            absent = [t for t in tensors if t not in row.tensors]
            if absent and not any(unknown):
                self.report.add(
                    "E102", f"`{absent[0]}` is missing", self.document.span(path), "in this table"
                )
            if leveled != (row.since is not None):
                self.report.add(
                    "E230",
                    "a table has `since`, where the dialect has feature levels",
                    self.document.span(path),
                )
            for name, support in row.tensors.items():
                if support.low > support.high:
                    self.report.add(
                        "E231",
                        f"`{support.ranks}` is empty",
                        self.document.span((*path, name, "ranks")),
                        "from .. to",
                    )
                for j, dtype in enumerate(support.dtypes):
                    if dtype in support.dtypes[:j]:
                        self.report.add(
                            "E211",
                            f"`{dtype}` stands twice",
                            self.document.span((*path, name, "dtypes", j)),
                            "again",
                        )
        rows = [(i, row) for i, row in enumerate(self.spec.support) if row.since is not None]
        for (i, newer), (j, older) in itertools.pairwise(rows):
            assert newer.since and older.since
            if levels.index(newer.since) <= levels.index(older.since):
                self.report.add(
                    "E231",
                    f"level {older.since} stands after {newer.since}",
                    self.document.span(("support", j, "since")),
                    "newest first",
                )
            for name in older.tensors.keys() & newer.tensors.keys():
                for k, dtype in enumerate(older.tensors[name].dtypes):
                    if dtype not in newer.tensors[name].dtypes:
                        still = Note(
                            self.document.span(("support", j, name, "dtypes", k)), "still here"
                        )
                        self.report.add(
                            "E230",
                            f"{name} loses {dtype} at level {newer.since}",
                            self.document.key_span(("support", i, name)),
                            f"level {older.since} has it",
                            notes=[still],
                            help="a newer level never removes a type",
                        )
        if rows and self.spec.introduced is not None and rows[-1][1].since != self.spec.introduced:
            self.report.add(
                "E231",
                f"the oldest table is of level {rows[-1][1].since}, but the operator is of {self.spec.introduced}",
                self.document.span(("support", rows[-1][0], "since")),
            )

    def constraints(self) -> None:
        ids: dict[str, Path_] = {}
        for i, constraint in enumerate(self.spec.constraints):
            path: Path_ = ("constraints", i)
            self.unknown(constraint.field, (*path, "field"), self.names)
            _origin(
                constraint.page,
                constraint.decided,
                "constraint",
                constraint.id,
                path,
                self.document,
                self.report,
            )
            _unique(ids, constraint.id, path, self.document, self.report)
            _needs(constraint.needs, ids, constraint.id, path, self.document, self.report)
            for target in constraint.violate:
                name, _, attribute = target.partition(".")
                at: Path_ = (*path, "violate", target)
                if self.unknown(name, at, self.names):
                    continue
                if self.spec.field(name).type == "tensor":
                    self.unknown(attribute, at, expr.ATTRIBUTES, "part of a tensor")

    def semantics(self) -> None:
        kernel = self.vocabulary.kernels[self.spec.semantics.kernel]
        meanings = self.spec.semantics.meanings
        for name in meanings:
            self.unknown(
                name,
                ("semantics", name),
                kernel.parameters,
                f"a parameter of kernel `{self.spec.semantics.kernel}`",
            )
        for name, parameter in kernel.parameters.items():
            path: Path_ = ("semantics", name)
            meaning = meanings.get(name)
            if meaning is None:
                self.report.add(
                    "E102",
                    f"`{name}` is missing",
                    self.document.key_span(("semantics",)),
                    "in here",
                    help=parameter.doc,
                )
                continue
            _origin(
                meaning.page, meaning.decided, "semantics", name, path, self.document, self.report
            )
            if (meaning.value is None) == (meaning.by is None) or (meaning.by is None) != (
                meaning.values is None
            ):
                self.report.add(
                    "E212",
                    f"`{name}` needs `value`, or `by` and `values`",
                    self.document.key_span(path),
                )
            elif (
                meaning.value is not None
                and parameter.values is not None
                and meaning.value not in parameter.values
            ):
                self.value(meaning.value, (*path, "value"), parameter.values)
            elif meaning.by is not None:
                self.chosen(meaning, path, parameter)

    def value(self, value: str, path: Path_, known: Iterable[str]) -> None:
        self.report.add(
            "E103",
            f"`{value}` is not one of the allowed values",
            self.document.span(path),
            "unknown value",
            help=suggestion(value, known),
        )

    def chosen(self, meaning: model.Meaning, path: Path_, parameter: model.Parameter) -> None:
        """A meaning chosen by a field: one value for each of the field's."""
        assert meaning.by is not None and meaning.values is not None
        choices = {f.name: self.choices(f.type) for f in self.spec.fields if self.choices(f.type)}
        if parameter.values is None:
            self.report.add(
                "E212",
                "this parameter takes an expression: give it `value`",
                self.document.key_span(path),
            )
            return
        if self.unknown(meaning.by, (*path, "by"), choices, "a field with a fixed set of values"):
            return
        for key in meaning.values:
            at: Path_ = (*path, "values", key)
            known = not self.unknown(key, at, choices[meaning.by], f"a value of {meaning.by}")
            if known and meaning.values[key] not in parameter.values:
                self.value(meaning.values[key], (*path, "values", key), parameter.values)
        for key in choices[meaning.by]:
            if key not in meaning.values:
                self.report.add(
                    "E102",
                    f"`{key}` is missing",
                    self.document.key_span((*path, "values")),
                    "in here",
                )

    def choices(self, type: str) -> list[str]:
        if type == "bool":
            return ["false", "true"]
        enum = self.vocabulary.enums.get(type)
        return list(enum.values) if enum else []


class _SelfTest:
    """Examples must satisfy the constraints; each `violate` must break its constraint and no other."""

    def __init__(
        self,
        operator: Operator,
        tree: Tree_,
        tensor_rules: tuple[tuple[Rule, TensorConstraint], ...],
        remembered: dict[tuple[str, Tensor], bool],
        report: Report,
    ) -> None:
        self.operator, self.spec, self.document = operator, operator.spec, operator.source.document
        self.tree, self.report = tree, report
        self.data_types = tree.vocabulary.data_types
        self.remembered = remembered
        self.tensor_rules = tensor_rules if operator.source.dialect == "directml" else ()

    def run(self) -> None:
        first: dict[str, Any] | None = None
        for i, example in enumerate(self.spec.examples):
            values = self.values(example, ("examples", i))
            if values is None:
                return
            first = first or values
            self.example(example, values, ("examples", i))
        if self.report or first is None:
            return
        for rule in self.operator.rules:
            self.violate(rule, first, rule.violate, self.document)
        for rule, constraint in self.tensor_rules:
            for field in self.spec.tensors():
                if constraint.only in (None, field.kind):
                    patch = {f"{field.name}.{key}": value for key, value in rule.violate.items()}
                    self.violate(rule, first, patch, self.tree.document)

    def values(self, example: Example, path: Path_) -> dict[str, Any] | None:
        """The fields' values in an example. None, with reasons in the report, when they do not fit the fields."""
        before = len(self.report.diagnostics)
        values: dict[str, Any] = {}
        names = {f.name for f in self.spec.fields}
        for part in ("given", "expect"):
            for name in getattr(example, part):
                good = [
                    f.name for f in self.spec.fields if (f.kind == "output") == (part == "expect")
                ]
                if name not in good:
                    message = (
                        f"`{name}` is not a field of this operator"
                        if name not in names
                        else f"`{name}` does not belong in `{part}`"
                    )
                    self.report.add(
                        "E203",
                        message,
                        self.document.key_span((*path, part, name)),
                        "here",
                        help=suggestion(name, good),
                    )
        for field in self.spec.fields:
            part = "expect" if field.kind == "output" else "given"
            place: Path_ = (*path, part, field.name)
            given = getattr(example, part).get(field.name, field.default)
            if given is None and field.length_of is None:
                self.report.add(
                    "E102",
                    f"`{field.name}` is missing",
                    self.document.key_span((*path, part)),
                    "in here",
                )
            elif field.type == "tensor":
                values[field.name] = self.tensor(given, place)
            elif given is not None:
                values[field.name] = self.attribute(field, given, place)
        for field in self.spec.fields:
            if field.length_of is not None and isinstance(values.get(field.length_of), tuple):
                values.setdefault(field.name, len(values[field.length_of]))
        return values if len(self.report.diagnostics) == before else None

    def tensor(self, given: object, path: Path_) -> Tensor | None:
        data = given
        if not isinstance(given, model.TensorData):
            data = model.validate_tensor(
                given, path, self.document, self.tree.vocabulary, self.report
            )
        if not isinstance(data, model.TensorData):
            return None
        sizes = self.shape(data.data, (*path, "data"))
        if sizes is None or not self.representable(data.data, data.dtype, (*path, "data")):
            return None
        return make_tensor(data.dtype, sizes, self.data_types)

    def shape(self, data: object, path: Path_) -> tuple[int, ...] | None:
        if not isinstance(data, list):
            return ()
        inner = [self.shape(d, (*path, i)) for i, d in enumerate(data)]
        if None in inner:
            return None
        for i, shape in enumerate(inner):
            if shape != inner[0]:
                self.report.add(
                    "E223",
                    "the data is not rectangular",
                    self.document.span((*path, i)),
                    "differs from the first",
                )
                return None
        first = inner[0] if inner else ()
        assert first is not None
        return (len(data), *first)

    def representable(self, data: object, dtype: str, path: Path_) -> bool:
        if isinstance(data, list):
            return all(self.representable(d, dtype, (*path, i)) for i, d in enumerate(data))
        entry = self.data_types[dtype]
        integer = isinstance(data, int) and not isinstance(data, bool)
        bits = 8 * entry.bytes
        low, high = (
            (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            if entry.kind == "signed"
            else (0, 2**bits - 1)
        )
        good = {
            "float": integer or isinstance(data, float),
            "bool": isinstance(data, bool),
            "signed": integer and low <= data <= high,  # type: ignore[operator]
            "unsigned": integer and low <= data <= high,  # type: ignore[operator]
        }[entry.kind]
        if not good:
            self.report.add(
                "E223", f"`{data}` is not a value of {dtype}", self.document.span(path), "here"
            )
        return good

    def attribute(self, field: model.FieldSpec, given: object, path: Path_) -> object:
        enum = self.tree.vocabulary.enums.get(field.type)
        if field.type == "uint[]":
            good = isinstance(given, list) and all(
                isinstance(g, int) and 0 <= g < 2**32 for g in given
            )
            given = tuple(given) if isinstance(given, list) else given
        elif field.type == "uint":
            good = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**32
        elif field.type == "bool":
            good = isinstance(given, bool)
        else:
            good = enum is not None and given in enum.values
        if not good:
            shown = list(given) if isinstance(given, tuple) else given
            self.report.add(
                "E104",
                f"expected {field.type} for `{field.name}`",
                self.document.span(path),
                f"found `{shown}`",
                help=suggestion(str(given), enum.values) if enum else "",
            )
        return given

    def example(self, example: Example, values: dict[str, Any], path: Path_) -> None:
        span = self.document.span((*path, "id"))
        for id in self.broken(values):
            rule = next(
                r for r in (*self.operator.rules, *(r for r, _ in self.tensor_rules)) if r.id == id
            )
            note = Note(self.rule_span(rule), "constraint")
            self.report.add(
                "E220",
                f"example `{example.id}` breaks constraint `{id}`",
                span,
                "an example must satisfy every constraint",
                notes=[note],
            )
        for field in self.spec.tensors():
            support = self.spec.support[0].tensors[field.name]
            tensor = values[field.name]
            if (
                tensor.dtype not in support.dtypes
                or not support.low <= len(tensor.sizes) <= support.high
            ):
                self.report.add(
                    "E224",
                    f"example `{example.id}`: {field.name} is {tensor.dtype} of rank {len(tensor.sizes)}",
                    span,
                    "not in the newest table of `support`",
                )
            if field.name in self.operator.sizes and not self.report:
                inferred = tuple(self.operator.sizes[field.name].evaluate(values, self.data_types))
                if inferred != tensor.sizes:
                    self.report.add(
                        "E224",
                        f"example `{example.id}`: {field.name} has sizes {list(tensor.sizes)}",
                        span,
                        f"`sizes` of the field gives {list(inferred)}",
                    )

    def rule_span(self, rule: Rule) -> Span:
        """Where the rule's expression stands; a tensor's rule stands in the vocabulary."""
        document = self.document if rule.path[0] == "constraints" else self.tree.document
        return document.span(
            (*rule.path, "require" if (*rule.path, "require") in document.values else "use")
        )

    def violate(
        self, rule: Rule, first: dict[str, Any], patch: dict[str, Any], document: Document
    ) -> None:
        span = document.key_span((*rule.path, "violate"))
        try:
            values = self.patched(first, patch)
        except (TypeError, ValueError) as error:
            self.report.add("E223", f"`violate` of `{rule.id}` does not fit: {error}", span)
            return
        broken = self.broken(values)
        others = [id for id in broken if id != rule.id]
        if rule.id not in broken:
            self.report.add(
                "E221",
                f"`violate` does not break `{rule.id}`",
                span,
                "this case still satisfies the constraint",
            )
        if others:
            self.report.add(
                "E222",
                f"`violate` breaks more than `{rule.id}`",
                span,
                f"also breaks {', '.join(others)}",
                help="change one thing at a time, so that the generated test proves which check fired",
            )

    def patched(self, first: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(first)
        # A change of sizes or data type makes a packed tensor; so these come first.
        for target, value in sorted(
            patch.items(), key=lambda item: not item[0].endswith((".sizes", ".dtype"))
        ):
            name, _, attribute = target.partition(".")
            given = tuple(value) if isinstance(value, list) else value
            if not attribute:
                values[name] = self.typed(given, first[name], target)
                continue
            tensor: Tensor = values[name]
            if isinstance(getattr(tensor, attribute), tuple) and type(given) is int:
                given = (given,) * len(tensor.sizes)
            given = self.typed(given, getattr(tensor, attribute), target)
            if attribute in ("sizes", "dtype"):
                sizes = given if attribute == "sizes" else tensor.sizes
                values[name] = make_tensor(
                    given if attribute == "dtype" else tensor.dtype, sizes, self.data_types
                )
            else:
                values[name] = replace(tensor, **{attribute: given})
                if attribute == "strides" and "total_bytes" not in patch:
                    item = self.data_types[tensor.dtype].bytes
                    values[name] = replace(
                        values[name], total_bytes=expr.implied_bytes(tensor.sizes, given, item)
                    )
        for field in self.spec.fields:
            if field.length_of is not None and field.name not in patch and field.length_of in patch:
                values[field.name] = len(values[field.length_of])
        return values

    def typed(self, value: Any, like: Any, target: str) -> Any:
        if target.endswith(".dtype") and value not in self.data_types:
            raise ValueError(f"`{value}` is not a data type")
        numbers = isinstance(value, tuple) and all(type(v) is int and 0 <= v < 2**32 for v in value)
        if type(value) is not type(like) or (isinstance(like, tuple) and not numbers):
            raise ValueError(f"`{target}` is not {value!r}")
        return value

    def tensor_holds(self, rule: Rule, tensor: Tensor) -> bool:
        """Remembered, since examples and their changes have few different tensors."""
        key = (rule.id, tensor)
        if key not in self.remembered:
            self.remembered[key] = rule.require.holds({"tensor": tensor}, self.data_types)
        return self.remembered[key]

    def broken(self, values: Mapping[str, Any]) -> list[str]:
        """The ids of the constraints that fail. Tensors come first; a rule that reads what failed there is skipped."""
        failed: list[str] = []
        bad: set[str] = set()
        for field in self.spec.tensors():
            failed_here: list[str] = []
            for rule, constraint in self.tensor_rules:
                if constraint.only not in (None, field.kind) or any(
                    need in failed_here for need in rule.needs
                ):
                    continue
                if not self.tensor_holds(rule, values[field.name]):
                    failed_here.append(rule.id)
                    bad.add(f"{field.name}.{rule.field}")
            failed += failed_here
        unsettled = set(failed)  # rules that failed or could not be asked
        for rule in self.operator.rules:
            if unsettled.intersection(rule.needs) or bad.intersection(rule.require.reads):
                unsettled.add(rule.id)
            elif not rule.require.holds(values, self.data_types):
                unsettled.add(rule.id)
                failed.append(rule.id)
        return failed


def make_tensor(
    dtype: str, sizes: tuple[int, ...], data_types: Mapping[str, model.DataTypeEntry]
) -> Tensor:
    """A packed tensor."""
    strides = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
    total = expr.implied_bytes(sizes, strides, data_types[dtype].bytes)
    return Tensor(dtype, sizes, strides, len(sizes), total)
