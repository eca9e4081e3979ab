"""A spec's test of itself.

An example must satisfy every constraint; a constraint must be broken by its own `violate` and by nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from generator import model
from generator.calls import Calls, Unfit
from generator.diagnostics import Note, Report, Span
from generator.expr import NO_VALUE, Expr, bounds
from generator.expr.evaluator import Budget, BudgetSpent
from generator.given import Given
from generator.model import Example, SpecTree, TensorConstraint
from generator.names import yaml_word
from generator.resolve import Operator, Rule, Use
from generator.source import Document, KeyPath
from generator.tensors import Tensor

_WHY_NO_VALUE = "an index, a divisor or a name may be wrong"


class AllowedCall(NamedTuple):
    """A call that an operator allows: what its input may be, and the elements of its outputs."""

    support: model.TensorSupport
    elements: list[int]


class Broken(NamedTuple):
    """A constraint that fails; one of each tensor with the tensor that breaks it."""

    rule: Rule
    tensor: str = ""

    @property
    def field(self) -> str:
        """The field to blame."""
        return self.tensor or self.rule.field

    def found(self, values: Mapping[str, Any]) -> str:
        """What decides it, as validators show it."""
        shown = []
        for read in self.rule.require.reads:
            name, _, part = read.partition(".")
            value = values[self.tensor or name]
            value = getattr(value, part) if part else value
            shown.append(f"{self.tensor or name}{'.' * bool(part)}{part} = {_shown(value)}")
        return f"found {', '.join(shown)}"


class Gap(NamedTuple):
    """What a table of `support` lacks: the id of the check in the package, and the key of the tensor that tells it."""

    id: str
    key: str
    found: str
    allowed: str


class SelfTest:
    """Examples must satisfy the constraints; each `violate` must break its constraint and no other."""

    def __init__(
        self,
        operator: Operator,
        tree: SpecTree,
        tensor_rules: tuple[tuple[Rule, TensorConstraint], ...],
        report: Report,
        document: Document | None = None,
        requirements: tuple[Use, ...] = (),
        remembered: dict[tuple[str, Tensor], bool] | None = None,
    ) -> None:
        self.operator, self.spec = operator, operator.spec
        self.document = document or operator.source.document
        self.tree, self.report = tree, report
        self.data_types = tree.vocabulary.data_types
        self.given = Given(operator, tree, self.document, report)
        self.requirements = requirements
        self.remembered = {} if remembered is None else remembered
        self.tensor_rules = tensor_rules if operator.source.dialect == "directml" else ()
        self.budget = Budget()
        self.calls = Calls(operator, self.data_types, self.budget)
        self.told: set[KeyPath] = set()  # expressions, of an example above

    def run(self) -> None:
        try:
            self.examples()
        except BudgetSpent:
            self.too_long("the examples and the changes that break them")

    def too_long(self, on: str) -> None:
        self.report.add(
            "E202",
            f"the constraints take too long on {on}",
            self.operator.source.document.key_span(("constraints",)),
            f"more than {bounds.MAX_STEPS} steps",
        )

    def examples(self) -> None:
        first: dict[str, Any] | None = None
        for i, example in enumerate(self.spec.examples):
            before = self.report.count
            values = self.given.example(example, ("examples", i))
            if values is not None:
                self.example(example, self.calls.complete(values), ("examples", i))
            if i == 0 and self.report.count == before:
                first = values
        if first is None:  # what `violate` changes is no good
            return
        for rule in self.operator.rules:
            self.violate(rule, first, rule.violate, self.document)
        for rule, _, patch in tensor_patches(self.operator, self.tensor_rules):
            self.violate(rule, first, patch, self.tree.document)

    def call(
        self, given: Mapping[str, Any], sizes: tuple[int, ...], path: KeyPath
    ) -> AllowedCall | None:
        """A call of the operator, as an equivalence's case makes one: its constraints hold for these attributes.

        None where the operator does not allow it.
        """
        before = self.report.count
        values = self.given.attributes(given, path)
        if self.report.count != before:
            return None
        table = next(row for row in self.spec.support if row.holds(values))
        inputs = self.spec.tensors("input")
        support = table.tensors[inputs[0].name]
        elements: list[int] = []
        needed = sum(field.optional is None for field in inputs)
        if needed > 1:
            self.report.add(
                "E224",
                f"a case has one input, and {self.operator.id} needs {needed}",
                self.document.key_span(path),
            )
        elif asked := [f.sizes_argument for f in self.spec.tensors("output") if f.sizes is None]:
            self.report.add(
                "E224",
                f"a case gives no `{asked[0]}`, and {self.operator.id} needs it",
                self.document.key_span(path),
            )
        elif not support.low <= len(sizes) <= support.high:
            self.report.add(
                "E224",
                f"a case has an input of rank {len(sizes)}",
                self.document.span((*path[:-1], "sizes")),
                f"{inputs[0].name} of {self.operator.id} has {support.ranks}",
            )
        else:
            elements = self.allowed(values, sizes, table, path)
        return AllowedCall(support, elements) if self.report.count == before else None

    def allowed(
        self,
        values: dict[str, Any],
        sizes: tuple[int, ...],
        table: model.SupportRow,
        path: KeyPath,
    ) -> list[int]:
        """The constraints hold for the call at `path`, of these attributes and an input of these sizes.

        Returns the elements of each output.
        """
        try:
            values = self.calls.of_one_input(values, sizes, table)
            broken = self.broken(values)
            elements = [] if broken else self.elements(values, path)
        except BudgetSpent:
            self.too_long("the cases of an equivalence")
            return []
        # Of each rule the first: an output follows from an input.
        first = {b.rule.id: b for b in reversed(broken)}
        for b in first.values():
            given = self.spec.tensors("input")[0].name
            at = (*path[:-1], "sizes") if b.field == given else (*path, b.field)
            self.report.add(
                "E220",
                f"a case breaks constraint `{b.rule.id}` of {self.operator.id}",
                self.document.keys.get(at) or self.document.key_span(path),
                b.found(values),
                help=f"both calls must satisfy every constraint; allowed: {b.rule.allowed}",
            )
        return elements

    def elements(self, values: Mapping[str, Any], path: KeyPath) -> list[int]:
        """Of each output that is always there, for the call at `path`."""
        counts = []
        for field in self.spec.tensors("output"):
            if field.optional is not None:
                continue
            try:
                sizes = self.operator.sizes[field.name].evaluate(
                    values, self.data_types, self.budget
                )
                counts.append(math.prod(sizes))
            except NO_VALUE:
                self.report.add(
                    "E225",
                    f"the sizes of {field.name} of {self.operator.id} have no value for a case",
                    self.document.key_span(path),
                    "cannot be computed",
                    help=_WHY_NO_VALUE,
                )
        return counts

    def computable(self, example: Example, values: dict[str, Any], span: Span) -> bool:
        """Of what satisfies all constraints, each expression must have a value; whether it has."""
        fields = {f.name: i for i, f in enumerate(self.spec.fields)}
        missing: list[KeyPath] = [
            ("fields", fields[name], "default")
            for name in self.operator.defaults
            if name not in values
        ]
        missing += [
            ("derived", i, "value")
            for i, derived in enumerate(self.spec.derived)
            if derived.name not in values
        ]
        present = {name for name in fields if values.get(name) is not None}
        places: list[tuple[KeyPath, Expr]] = [
            (("fields", fields[name], part), expression)
            for part, expressions in (
                ("sizes", self.operator.sizes),
                ("dtype", self.operator.dtypes),
            )
            for name, expression in expressions.items()
            if name in present
        ]
        places += [(("semantics", name), e) for name, e in self.operator.meanings.items()]
        for path, expression in places:
            try:
                expression.evaluate(values, self.data_types, self.budget)
            except NO_VALUE:
                missing.append(path)
        for path in missing:
            if path in self.told:
                continue  # told of an example above
            self.told.add(path)
            above = "a default is computed from fields above it; " if path[-1] == "default" else ""
            self.report.add(
                "E225",
                f"this has no value for example `{example.id}`",
                self.document.key_span(path),
                "cannot be computed",
                notes=[Note(span, "the example")],
                help=f"{above}{_WHY_NO_VALUE}",
            )
        return not missing

    def required(self, example: Example, values: dict[str, Any], span: Span) -> None:
        """What the kernel needs holds of an example's tensors, and of what it is told."""
        kernel = self.tree.vocabulary.kernels[self.spec.semantics.kernel]
        told = {
            name: expression.evaluate(values, self.data_types, self.budget)
            for name, expression in self.operator.meanings.items()
        }
        arguments = dict(told)
        for kind, names in (("input", kernel.inputs), ("output", kernel.outputs)):
            for name, field in zip(names, self.spec.tensors(kind), strict=False):
                arguments[name] = values[field.name]
        for requirement in self.requirements:
            given = {name: arguments.get(name) for name in requirement.arguments}
            if None in given.values():
                continue  # about a tensor that is absent
            if requirement.require.holds(given, self.data_types, self.budget):
                continue
            shown = [f"{name} {_shown(value)}" for name, value in given.items()]
            self.report.add(
                "E227",
                f"kernel {self.spec.semantics.kernel} cannot compute example `{example.id}`",
                self.document.key_span(
                    ("semantics", next((n for n in given if n in told), "kernel"))
                ),
                ", ".join(shown),
                notes=[Note(span, "the example")],
                help=f"it requires that {requirement.allowed}; correct what it is told, or let a constraint require it",
            )
            return

    def example(self, example: Example, values: dict[str, Any], path: KeyPath) -> None:
        span, keys = self.document.span((*path, "id")), self.document.keys
        start = self.report.count
        broken = self.broken(values)
        good = not broken and self.computable(example, values, span)
        for b in broken:
            parts: list[KeyPath] = [(*path, part, b.field) for part in ("given", "expect")]
            self.report.add(
                "E220",
                f"example `{example.id}` breaks constraint `{b.rule.id}`",
                next((keys[part] for part in parts if part in keys), span),
                b.found(values),
                notes=[Note(self.rule_span(b.rule), "constraint")],
                help=f"allowed: {b.rule.allowed}",
            )
        for field in self.spec.tensors():
            before = self.report.count
            self.supported(example, field, values, path)
            if good and self.report.count == before:
                self.sized(example, field, values, path)
        if good and self.report.count == start:
            self.required(example, values, span)

    def supported(
        self, example: Example, field: model.FieldSpec, values: dict[str, Any], path: KeyPath
    ) -> None:
        """A tensor of an example has a data type and a rank of the newest table."""
        part = "expect" if field.kind == "output" else "given"
        for gap in self.not_in_tables(field, values):
            self.report.add(
                "E224",
                f"example `{example.id}`: {field.name} is {gap.found}",
                self.document.span((*path, part, field.name, gap.key)),
                f"the newest table of `support` has {gap.allowed}",
            )

    def not_in_tables(self, field: model.FieldSpec, values: dict[str, Any]) -> Iterator[Gap]:
        """What of a tensor the newest table lacks."""
        table = next((row for row in self.spec.support if row.holds(values)), None)
        tensor = values[field.name]
        if tensor is None or table is None:
            return
        support, rank = table.tensors[field.name], len(tensor.sizes)
        if tensor.dtype not in support.dtypes:
            allowed = ", ".join(support.dtypes)
            yield Gap("supported_data_type", "dtype", tensor.dtype, allowed)
        if not support.low <= rank <= support.high:
            yield Gap("supported_dimension_count", "data", f"of rank {rank}", support.ranks)

    def sized(
        self, example: Example, field: model.FieldSpec, values: dict[str, Any], path: KeyPath
    ) -> None:
        """An output of an example has the sizes that the functions give it, where callers give none."""
        sizes, tensor = self.operator.sizes.get(field.name), values[field.name]
        if sizes is None or tensor is None or field.sizes_argument is not None:
            return
        inferred = tuple(sizes.evaluate(values, self.data_types, self.budget))
        if inferred != tensor.sizes:
            self.report.add(
                "E224",
                f"example `{example.id}`: {field.name} has sizes {list(tensor.sizes)}",
                self.document.span((*path, "expect", field.name, "data")),
                f"`sizes` of the field gives {list(inferred)}",
            )

    def rule_span(self, rule: Rule) -> Span:
        """Where the rule's expression stands; a tensor's rule stands in the vocabulary."""
        own = rule.path[0] == "constraints"
        document = self.operator.source.document if own else self.tree.document
        return document.span(
            (*rule.path, "require" if (*rule.path, "require") in document.values else "use")
        )

    def violate(
        self, rule: Rule, first: dict[str, Any], patch: dict[str, Any], document: Document
    ) -> None:
        span = document.key_span((*rule.path, "violate"))
        try:
            values = self.calls.changed(first, patch)
        except Unfit as error:
            # A rule of each tensor names the part alone.
            key = dict(zip(patch, rule.violate, strict=True))[error.target]
            place = document.span((*rule.path, "violate", key))
            message = f"`violate` of `{rule.id}` does not fit: {error}"
            self.report.add("E223", message, place, help=error.help)
            return
        broken = [b.rule.id for b in self.broken(values)]
        others = [id for id in broken if id != rule.id]
        if document is self.document:  # the vocabulary's changes are of any operator's tensors
            others += [g.id for f in self.spec.tensors() for g in self.not_in_tables(f, values)]
        if rule.id not in broken:
            first_one = f"it changes the first example, `{self.spec.examples[0].id}`"
            help = first_one if document is self.document else ""
            if others:
                help = "choose a change that keeps these: a rule is not asked where one that it needs failed"
            self.report.add(
                "E221",
                f"`violate` does not break `{rule.id}`",
                span,
                f"it breaks {', '.join(others)} instead"
                if others
                else "this case still satisfies the constraint",
                help=help,
            )
        elif others:
            help = "change one thing at a time, so that the generated test proves which check fired"
            own = [r.id for r in self.operator.rules]
            ids = own if rule.id in own else [r.id for r, _ in self.tensor_rules]
            later = ids[ids.index(rule.id) :]
            below = [f"`{id}`" for id in others if id in later]
            above = [f"`{id}`" for id in others if id in ids and id not in later]
            if below:
                help += f"; or add `needs: [{rule.id}]` to {', '.join(below)}"
            elif above:
                help += f"; or move it above {', '.join(above)}, and add `needs: [{rule.id}]` there"
            self.report.add(
                "E222",
                f"`violate` breaks more than `{rule.id}`",
                span,
                f"also breaks {', '.join(others)}",
                help=help,
            )

    def tensor_holds(self, rule: Rule, tensor: Tensor) -> bool:
        """Remembered, since examples and their changes have few different tensors."""
        key = (rule.id, tensor)
        if key not in self.remembered:
            self.remembered[key] = rule.require.holds(
                {"tensor": tensor}, self.data_types, self.budget
            )
        return self.remembered[key]

    def broken(self, values: Mapping[str, Any]) -> list[Broken]:
        """The constraints that fail. Tensors come first; a rule that reads what failed there is skipped."""
        failed: list[Broken] = []
        bad: set[str] = set()
        for field in self.spec.tensors():
            if values[field.name] is None:
                continue
            failed_here: list[str] = []
            for rule, constraint in self.tensor_rules:
                if constraint.only not in (None, field.kind) or any(
                    need in failed_here for need in rule.needs
                ):
                    continue
                if not self.tensor_holds(rule, values[field.name]):
                    failed_here.append(rule.id)
                    failed.append(Broken(rule, field.name))
                    bad.add(f"{field.name}.{rule.field}")
        for name, derived in self.operator.derived.items():
            if any(read in bad or f"{read}.sizes" in bad for read in derived.names()):
                bad.add(name)
        unsettled = {b.rule.id for b in failed}  # rules that failed or could not be asked
        for rule in self.operator.rules:
            heads = {read.split(".")[0] for read in rule.require.reads}
            if any(name in values and values[name] is None for name in heads):
                continue  # about a tensor that is absent
            unknown = any(name not in values for name in heads)  # derived, and not computable
            if (
                unknown
                or unsettled.intersection(rule.needs)
                or bad.intersection(rule.require.reads)
            ):
                unsettled.add(rule.id)
            elif not rule.require.holds(values, self.data_types, self.budget):
                unsettled.add(rule.id)
                failed.append(Broken(rule))
        return failed


def tensor_patches(
    operator: Operator, tensor_rules: tuple[tuple[Rule, TensorConstraint], ...]
) -> Iterator[tuple[Rule, str, dict[str, Any]]]:
    """The changes of the first example that break a tensor's own rules, for each tensor that it has."""
    present = {*operator.spec.examples[0].expect, *operator.spec.examples[0].given}
    for rule, constraint in tensor_rules:
        for field in operator.spec.tensors():
            if constraint.only in (None, field.kind) and field.name in present:
                patch = {f"{field.name}.{key}": value for key, value in rule.violate.items()}
                yield rule, field.name, patch


def _shown(value: Any) -> str:
    """What a rule or a kernel is given, in a message: of a tensor its sizes."""
    found = value.sizes if isinstance(value, Tensor) else value
    return yaml_word(list(found) if isinstance(found, range) else found)
