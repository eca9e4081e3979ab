"""The values that templates lay out, most of them of one operator: what they say is decided here, in no template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from generator import cases, decided, layout, parameters, rule_functions
from generator.cases import DocstringCall, ExampleValues, Need, Ranks, Same, Unsupported, Violation
from generator.decided import Decided
from generator.expr import Expr, parse
from generator.field_types import field_type
from generator.lint import Linted
from generator.model import Erratum, FieldSpec, PageEntry, SupportRow
from generator.names import capitalised, description_class, host_class, snake_case
from generator.parameters import ParameterValues, SignatureValues
from generator.resolve import Operator, Rule, kernel_scope

# Where a page has its data types. NumPy's pages have no such table: what their functions take is decided here.
_SUPPORT_PLACES = {
    "directml": "Tensor support",
    "onnx": "Type Constraints",
    "plain": "(decided)",
}
_EXPRESSION_TYPES = {"int": "int", "ints": "tuple[int, ...]", "bool": "bool", "float": "float"}
_REQUIRED_TYPES = {"tensor": "Tensor", "ints": "Sequence[int]", "float": "float"}
_RETURNED = {
    "int": "int",
    "ints": "Sequence[int]",
    "bool": "bool",
    "float": "float",
    "dtype": "str",
}


@dataclass(frozen=True)
class FieldValues:
    """A field of the struct."""

    name: str
    doc: str
    annotation: str
    absent: bool  # whether callers may leave it out
    entry: list[str]  # the arguments of `Field(...)`


@dataclass(frozen=True)
class InputValues:
    """An input array of the function."""

    name: str
    doc: str
    argument: str
    dtypes: list[str]  # with the versions that take them, where not all do


@dataclass(frozen=True)
class AllowedValues:
    """What a tensor may be, by one table."""

    name: str
    low: int
    high: int
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class SupportValues:
    """One table of the page."""

    since: str | None
    tensors: list[AllowedValues]
    when: tuple[str, tuple[str, ...]] | None
    place: str  # behind a tensor's name, which of the tables it is


@dataclass(frozen=True)
class FunctionValues:
    """A function of the module, made of an expression."""

    name: str
    parameters: list[tuple[str, str]]  # with their types
    body: str
    returns: str
    doc: str


@dataclass(frozen=True)
class RuleValues:
    """A rule, and its function."""

    id: str
    field: str
    allowed: str
    sentence: str
    origin: str
    page: str | None
    decided: str | None
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    parameters: list[tuple[str, str]]
    body: str
    only: str | None

    @property
    def name(self) -> str:
        return self.id


@dataclass(frozen=True)
class LoweredValues:
    """What a kernel is told, as Python text, and why it was decided so."""

    name: str
    text: str
    decided: str | None = None


@dataclass(frozen=True)
class OperatorValues:
    """One operator, or one version of it; an ONNX operator in all its versions."""

    dialect: str
    name: str
    class_name: str
    title: str
    summary: str
    earlier: list[str]  # what older versions do, where that is something else
    introduced: str | None
    support_place: str
    page: PageEntry
    fields: list[FieldValues]
    inputs: list[InputValues]
    support: list[SupportValues]
    ranks: list[Ranks]
    rules: list[RuleValues]
    computed: list[FunctionValues]
    derived: list[tuple[str, list[str]]]  # with the arguments of `Computed(...)`
    imports: dict[str, list[str]]  # for them, by module
    given: list[tuple[str, str]]
    kernel: str
    lowering: str
    lowered: list[LoweredValues]
    lower_reads: list[tuple[str, str]]
    decided: list[Decided]
    notes: list[Decided]  # of these what is said of allowed calls
    errata: list[Erratum]
    special_floats: list[str]
    parameters: list[ParameterValues]
    asked: list[tuple[str, str]]
    attributes: list[tuple[str, str]]
    scalars: bool
    out: str
    result: str
    signatures: list[SignatureValues]
    returns: str
    memory_order: str
    examples: list[ExampleValues]
    violations: list[Violation]
    needs: list[Need]
    unsupported: list[Unsupported]
    equivalences: list[Same]

    @property
    def shown(self) -> ExampleValues:
        """The example of docstrings."""
        return next((e for e in self.examples if e.call.plain), self.examples[0])

    @property
    def call(self) -> DocstringCall:
        return self.shown.call

    @property
    def annotations(self) -> list[str]:
        """Those of its function."""
        texts = [text for s in self.signatures for text in (*s.arguments, s.returns)]
        return [*(p.annotation for p in self.parameters), self.out, self.result, *texts]

    @property
    def typing(self) -> list[str]:
        """What its module needs of the module `typing`."""
        used = " ".join(self.annotations)
        names = ["Any"] if self.parameters else []  # which its cache takes as they are
        names += ["ClassVar"] if self.dialect == "directml" else []
        names += [name for name in ("Any", "Literal", "SupportsIndex") if name in used]
        return sorted({*names, *(["overload"] if self.signatures else [])})

    @property
    def sequences(self) -> bool:
        """Whether its module names `Sequence`."""
        described = [f.annotation for f in self.fields] if self.dialect == "directml" else []
        texts = [*self.annotations, *described, *(f.returns for f in self.computed)]
        return any("Sequence" in text for text in texts)


@dataclass(frozen=True)
class VersionsValues:
    """What only an operator in all its versions has."""

    compiled: str
    compiled_for: str
    modules: list[tuple[int | None, str]]  # by version, oldest first


def operator(op: Operator, linted: Linted) -> OperatorValues:
    spec, name = op.spec, op.source.name
    kernel = spec.semantics.kernel
    expressions = [
        *op.defaults.values(),
        *op.derived.values(),
        *op.sizes.values(),
        *op.dtypes.values(),
    ]
    tables = cases.tables(op, linted)
    arguments = cases.array_arguments(spec)
    listed = parameters.of([op], linted)
    return OperatorValues(
        dialect=op.source.dialect,
        name=name,
        class_name=description_class(name),
        title=spec.operator + (f"-{spec.since_version}" if spec.since_version else ""),
        summary=spec.summary,
        earlier=[],
        introduced=spec.introduced,
        support_place=_SUPPORT_PLACES[op.source.dialect],
        page=spec.page,
        fields=[_field(f, op) for f in spec.fields],
        inputs=[
            InputValues(f.name, f.doc, arguments[f.name], parameters.dtypes(i, [op]))
            for i, f in enumerate(spec.tensors("input"))
        ],
        support=[_support(row) for row in spec.support],
        ranks=[row for table in spec.support for row in _ranks(table)],
        rules=[rule(r, op) for r in op.rules],
        computed=_computed(op),
        derived=[(n, [n, _tuple(e.names())]) for n, e in op.derived.items()],
        imports=rule_imports([*(r.require for r in op.rules), *expressions, *op.meanings.values()]),
        given=[(f.name, f"inputs[{i}]") for i, f in enumerate(spec.tensors("input"))],
        kernel=kernel,
        lowering=host_class(kernel),
        lowered=_lowered(op, linted),
        lower_reads=_lower_reads(op),
        decided=decided.of_operator(op),
        notes=decided.of_results(op),
        errata=spec.errata,
        special_floats=cases.special_floats(
            [[e.given, [t.data for t in e.expect.values()]] for e in spec.examples]
        ),
        parameters=listed,
        asked=parameters.asked(op),
        attributes=parameters.attributes([op]),
        scalars=parameters.scalars(op),
        out=parameters.out(op),
        result=parameters.result(op),
        signatures=parameters.signatures(op, listed, list(arguments.values())),
        returns=parameters.returns(op),
        memory_order=parameters.memory_order(op),
        examples=tables.examples,
        violations=tables.violations,
        needs=tables.needs,
        unsupported=tables.unsupported,
        equivalences=tables.equivalences,
    )


def versions(ops: Sequence[Operator], newest: OperatorValues, linted: Linted) -> dict[str, Any]:
    """An ONNX operator in all its versions, oldest first. What is said of it are the values of the newest."""
    spec = ops[-1].spec
    listed = [*parameters.of(ops, linted), parameters.OPSET]
    inputs = [replace(f, dtypes=parameters.dtypes(i, ops)) for i, f in enumerate(newest.inputs)]
    whole = replace(
        newest,
        name=ops[-1].source.family,
        class_name=spec.operator,
        title=spec.operator,
        earlier=parameters.before(
            {o.spec.since_version or 0: o.spec.summary for o in reversed(ops)}
        ),
        inputs=inputs,
        parameters=listed,
        signatures=parameters.signatures(ops[-1], listed, [f.argument for f in inputs]),
        attributes=parameters.attributes(ops),
    )
    only = VersionsValues(
        compiled=_compiled(newest),
        compiled_for=_compiled_for(newest),
        modules=[(o.spec.since_version, o.source.name) for o in ops],
    )
    return {"op": whole, "versions": only}


def _compiled(op: OperatorValues) -> str:
    """What Python shows of the compiled operator of the example."""
    example = op.shown
    shown = [f"{n}: {t[0]} {example.sizes[n]}" for n, t in example.tensors.items()]
    return f"<{op.title}({', '.join(shown)})>"


def _compiled_for(op: OperatorValues) -> str:
    """The arguments by which the example is compiled."""
    pairs = [
        f'"{given.dtype}", {op.shown.sizes[f.name]}'
        for f, given in zip(op.inputs, op.call.inputs, strict=True)
    ]
    return ", ".join([pairs[0], *(f"({pair})" for pair in pairs[1:])])


# --- fields ---


def _field(field: FieldSpec, op: Operator) -> FieldValues:
    absent = bool(field.length_of or field.optional)
    annotation = field_type(field.type).arguments + (" | None" if absent else "")
    return FieldValues(field.name, field.doc, annotation, absent, _entry(field, op))


def _entry(field: FieldSpec, op: Operator) -> list[str]:
    """The arguments of `Field(...)`, as Python text."""
    out = [f'"{field.name}"', f'"{field.kind}"', f'"{field.type}"']
    for key in ("length_of", "axes_of", "one_for_each"):
        if getattr(field, key) is not None:
            out.append(f'{key}="{getattr(field, key)}"')
    if field.name in op.defaults:
        default = op.defaults[field.name]
        out.append(f"default={_computed_text(f'{snake_case(field.name)}_default', default)}")
        if field.repeats:
            out.append("repeats=True")
    elif field.default is not None:
        text = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
        out.append(f"default={text}")
    if field.name in op.sizes:
        sizes = op.sizes[field.name]
        out.append(f"sizes={_computed_text(f'{snake_case(field.name)}_sizes', sizes)}")
    if field.name in op.dtypes:
        dtype = op.dtypes[field.name]
        out.append(f"dtype={_computed_text(f'{snake_case(field.name)}_dtype', dtype)}")
    elif field.dtype is not None:
        out.append(f'dtype="{field.dtype}"')
    if field.optional is not None:
        out.append(f'optional="{field.optional}"')
    if field.sizes_argument is not None:
        out.append(f'sizes_argument="{field.sizes_argument}"')
    return out


def _computed_text(function: str, expression: Expr) -> str:
    names = expression.names()
    return f"Computed({function}, {_tuple(names)})"


def _tuple(names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"


def _computed(op: Operator) -> list[FunctionValues]:
    """The functions of defaults, derived values and sizes, and the derived values by name."""
    out = []
    for name, expression in op.defaults.items():
        out.append(
            _function(f"{snake_case(name)}_default", expression, op, f"The default of {name}.")
        )
    for entry in op.spec.derived:
        if entry.name in op.derived:
            out.append(_function(entry.name, op.derived[entry.name], op, entry.doc))
    for name, expression in op.sizes.items():
        doc = f"The sizes of {name} that follow from the other fields."
        out.append(_function(f"{snake_case(name)}_sizes", expression, op, doc))
    for name, expression in op.dtypes.items():
        doc = f"The data type of {name} that follows from the other fields."
        out.append(_function(f"{snake_case(name)}_dtype", expression, op, doc))
    return out


def _function(name: str, expression: Expr, op: Operator, doc: str) -> FunctionValues:
    return FunctionValues(
        name,
        _parameters(op, expression.names()),
        _body(expression),
        returns=_RETURNED[expression.type],
        doc=doc,
    )


def _body(expression: Expr) -> str:
    return "\n".join(expression.returned(layout.WITHIN))


def _parameters(op: Operator, names: Iterable[str]) -> list[tuple[str, str]]:
    """The fields and derived values of these names with their Python types, in the struct's order."""
    names = set(names)
    fields = [(f.name, field_type(f.type).rules) for f in op.spec.fields if f.name in names]
    derived = [(n, _EXPRESSION_TYPES[e.type]) for n, e in op.derived.items() if n in names]
    return fields + derived


def _support(row: SupportRow) -> SupportValues:
    tensors = [AllowedValues(n, t.low, t.high, tuple(t.dtypes)) for n, t in row.tensors.items()]
    when = next(iter((row.when or {}).items()), None)
    return SupportValues(
        row.since,
        tensors,
        when=(when[0], tuple(when[1])) if when else None,
        place=_places(row.condition, f"from level {row.since}" if row.since else ""),
    )


def _places(*parts: str) -> str:
    return "".join(f" {part}" for part in parts if part)


def _ranks(row: SupportRow) -> list[Ranks]:
    return [Ranks(row.since, n, t.low, t.high, row.chosen) for n, t in row.tensors.items()]


# --- rules ---


def rule(found: Rule, op: Operator | None = None, only: str | None = None) -> RuleValues:
    """A rule with its function; of an operator, or of each tensor."""
    quoted = op is not None and found.allowed.split()[0] in (f.name for f in op.spec.fields)
    return RuleValues(
        id=found.id,
        field=found.field,
        allowed=found.allowed,
        sentence=found.allowed if quoted else capitalised(found.allowed),
        origin=found.page if found.page is not None else "(decided)",
        page=found.page,
        decided=found.decided,
        needs=found.needs,
        reads=found.require.reads,
        parameters=_parameters(op, found.require.names()) if op else [("tensor", "Tensor")],
        body=_body(found.require),
        only=only,
    )


def rule_imports(expressions: Iterable[Expr]) -> dict[str, list[str]]:
    """What modules with rules import for them: the functions that expressions call, by their modules, and tensors."""
    functions = sorted(set().union(*(e.functions() for e in expressions)))
    of_numbers = [f for f in functions if hasattr(rule_functions, f)]
    of_tensors = ["Tensor", *(f for f in functions if f not in of_numbers)]
    modules = {"specops.rule_functions": of_numbers, "specops.tensor": of_tensors}
    return {module: names for module, names in modules.items() if names}


# --- the kernel ---


def requirements(linted: Linted) -> dict[str, Any]:
    """What the kernels require: constraints as functions, and for each kernel those that it names."""
    vocabulary = linted.tree.vocabulary
    kernels: dict[str, list[list[str]]] = {}
    types: dict[str, list[str]] = {}  # of the parameters of each constraint
    for kernel, required in linted.requirements.items():
        known = kernel_scope(vocabulary.kernels[kernel])
        kernels[kernel] = [
            [f"_{use.constraint}", _tuple(use.arguments), layout.quoted(use.allowed)]
            for use in required
        ]
        types |= {use.constraint: [known[name] for name in use.arguments] for use in required}
    constraints, requires = [], []
    for name in (n for n in vocabulary.constraints if n in types):
        shared = vocabulary.constraints[name]
        scope = dict(zip(shared.parameters, types[name], strict=True))
        requires.append(parse(shared.require, scope, "bool", vocabulary.data_types))
        sentence = re.sub("[{}]", "`", shared.allowed)
        constraints.append(
            FunctionValues(
                f"_{name}",
                [(p, _REQUIRED_TYPES[type]) for p, type in scope.items()],
                _body(requires[-1]),
                returns="bool",
                doc=f"{capitalised(sentence)}.",
            )
        )
    return {"constraints": constraints, "kernels": kernels, "imports": rule_imports(requires)}


def _lowered(op: Operator, linted: Linted) -> list[LoweredValues]:
    """The kernel's parameters and tensors: each with the Python text of its value and the reason."""
    out = []
    for name, meaning in op.spec.semantics.meanings.items():
        if name in op.meanings:
            text = op.meanings[name].text
        elif meaning.by is not None and meaning.values is not None:
            boolean = op.spec.field(meaning.by).type == "bool"
            keys = {
                k: {"true": "True", "false": "False"}[k] if boolean else f'"{k}"'
                for k in meaning.values
            }
            chosen = [f'{keys[k]}: "{v}"' for k, v in meaning.values.items()]
            text = f"{{{', '.join(chosen)}}}[{meaning.by}]"
            if not layout.fits(name, text):
                rows = "".join(f"            {row},\n" for row in chosen)
                text = f"{{\n{rows}        }}[{meaning.by}]"
        else:
            text = f'"{meaning.value}"'
        out.append(LoweredValues(name, text, meaning.decided))
    kernel = linted.tree.vocabulary.kernels[op.spec.semantics.kernel]
    untold = kernel.untold(op.spec)
    out += [LoweredValues(n, f'"{v}"') for n, v in untold.items()]
    for kind, names in (("input", kernel.inputs), ("output", kernel.outputs)):
        fields = [f.name for f in op.spec.tensors(kind)]
        fields += ["None"] * (len(names) - len(fields))
        out += [LoweredValues(n, f) for n, f in zip(names, fields, strict=True)]
    return out


def _lower_reads(op: Operator) -> list[tuple[str, str]]:
    """What lowering takes: all tensors, and what the semantics name."""
    used = {f.name for f in op.spec.tensors()}
    used |= {m.by for m in op.spec.semantics.meanings.values() if m.by}
    used |= {name for e in op.meanings.values() for name in e.names()}
    absent = {f.name for f in op.spec.fields if f.optional}
    return [
        (name, f"{type} | None" if name in absent else type) for name, type in _parameters(op, used)
    ]


# --- what all operators share ---


def vocabulary(linted: Linted) -> dict[str, Any]:
    words = linted.tree.vocabulary
    return {
        "data_types": [
            {
                "name": name,
                "numpy": f"{'ml_dtypes' if e.numpy == 'bfloat16' else 'np'}.{e.numpy}",
                "kind": e.kind,
            }
            for name, e in words.data_types.items()
        ],
        "directml_types": tuple(words.dialects.directml.dtypes),
        "feature_levels": tuple(words.feature_levels),
        "newest_opset": words.opsets.newest,
        "enums": {name: e.values for name, e in words.enums.items()},
        "empty": {name: e.empty for name, e in words.enums.items() if e.empty},
        "tensor_page": words.tensor_page.address,
    }


def tensor_rules(linted: Linted) -> dict[str, Any]:
    return {
        "rules": [rule(found, only=c.only) for found, c in linted.tensor_rules],
        "imports": rule_imports(r.require for r, _ in linted.tensor_rules),
        "page": linted.tree.vocabulary.tensor_page,
    }
