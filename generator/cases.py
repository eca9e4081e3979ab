"""The rows of an operator's case table: its examples, the changes that break its rules, what its tables refuse."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from generator import layout
from generator.calls import Calls, Unfit
from generator.expr import Expr
from generator.expr.evaluator import Budget, BudgetSpent
from generator.lint import Linted
from generator.model import Equivalence, Example, FieldSpec, OperatorSpec
from generator.names import array_argument, snake_case
from generator.resolve import Operator, Rule
from generator.selftest import tensor_patches
from generator.tensors import make_tensor, shape


@dataclass(frozen=True)
class DocstringInput:
    """An input array of a docstring's call."""

    argument: str
    dtype: str  # NumPy's name
    data: Any


@dataclass(frozen=True)
class DocstringCall:
    """An example as the line of a docstring and what it prints."""

    inputs: list[DocstringInput]
    arguments: dict[str, Any]
    several: bool  # outputs
    exact: bool
    rounded: bool
    expected: Any
    plain: bool  # whether a docstring can show it


@dataclass(frozen=True)
class ExampleValues:
    """An example with all that follows for it."""

    id: str
    origin: str
    tensors: dict[str, tuple[str, Any]]
    sizes: dict[str, list[int]]
    attributes: dict[str, Any]
    arguments: dict[str, Any]
    level: str | None
    call: DocstringCall


@dataclass(frozen=True)
class Violation:
    """A change of the first example that breaks a rule."""

    id: str
    field: str
    patch: dict[str, Any]


class Ranks(NamedTuple):
    """How many dimensions a table allows a tensor; `chosen` is one value of an attribute that the table is for."""

    level: str | None
    tensor: str
    fewest: int
    most: int
    chosen: dict[str, str]


class Unsupported(NamedTuple):
    """A data type that a table does not allow a tensor, and the level from which on another does."""

    level: str | None
    tensor: str
    dtype: str
    later: str | None
    chosen: dict[str, str]


class Caller(NamedTuple):
    """How tests reach an operator."""

    dialect: str
    module: str
    function: str
    version: int | None


@dataclass(frozen=True)
class Same:
    """A case of an equivalence: both calls."""

    id: str
    nan: bool
    sizes: list[int]
    this: dict[str, Any]
    other: Caller
    that: dict[str, Any]


@dataclass(frozen=True)
class Need:
    """A change of the first example that breaks a rule and another one, which it needs."""

    id: str
    need: str
    patch: dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """All tables of an operator's cases."""

    examples: list[ExampleValues]
    violations: list[Violation]
    needs: list[Need]
    unsupported: list[Unsupported]
    equivalences: list[Same]

    @property
    def rows(self) -> int:
        """How many there are of all."""
        return sum(len(getattr(self, table.name)) for table in fields(self))


def tables(operator: Operator, linted: Linted) -> Tables:
    examples = [_example(e, operator, linted) for e in operator.spec.examples]
    return Tables(
        examples=examples,
        violations=_violations(operator, linted),
        needs=list(_needs(operator, examples[0], linted)),
        unsupported=_unsupported(operator, linted),
        equivalences=[
            row for e in operator.spec.equivalences for row in _equivalence(e, operator, linted)
        ],
    )


# --- examples ---


def _example(example: Example, operator: Operator, linted: Linted) -> ExampleValues:
    spec = operator.spec
    data_types = linted.tree.vocabulary.data_types
    tensors = {
        f.name: (example.given[f.name]["dtype"], example.given[f.name]["data"])
        for f in spec.tensors("input")
    }
    tensors |= {name: (t.dtype, t.data) for name, t in example.expect.items()}
    sizes = {name: shape(data) for name, (_, data) in tensors.items()}
    given = {
        f.name: example.given.get(f.name, f.default)
        for f in spec.fields
        if f.type != "tensor" and f.name not in operator.defaults
    }
    given |= {n: v for n, v in example.given.items() if n in operator.defaults}
    given = {n: v for n, v in given.items() if v is not None}
    values: dict[str, Any] = {
        name: make_tensor(dtype, tuple(sizes[name]), data_types)
        for name, (dtype, _) in tensors.items()
    }
    values |= {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}
    calls = Calls(operator, data_types)
    whole = calls.complete(values)
    implied = {snake_case(n) for n in _implied(values, whole, calls)}
    computed = {n: list(whole[n]) for n in operator.defaults if n not in given}
    arguments = {snake_case(n): v for n, v in given.items() if spec.field(n).length_of is None}
    defaults = {snake_case(f.name): f.default for f in spec.fields}
    dtypes = {n: d for n, (d, _) in tensors.items()}
    asked = _asked(operator, dtypes, sizes, whole, linted)
    own = {
        n: e.evaluate(whole, data_types) if isinstance(e, Expr) else e
        for n, e in {**{f.name: f.dtype for f in spec.fields}, **operator.dtypes}.items()
    }
    shown = {n: v for n, v in arguments.items() if v != defaults[n] and n not in implied}
    return ExampleValues(
        id=example.id,
        origin=example.page or "(decided)",
        tensors=tensors,
        sizes=sizes,
        attributes={**given, **computed},
        arguments={**arguments, **asked},
        level=_level(operator, tensors, sizes, whole),
        call=_call(spec, tensors, {**shown, **_not_default(asked, spec, own)}, linted),
    )


def _implied(given: dict[str, Any], whole: dict[str, Any], calls: Calls) -> list[str]:
    """What a call need not give, for all its values are the same without: arrays that equal their computed defaults."""
    out: list[str] = []
    for name in calls.operator.defaults:
        left = {n: v for n, v in given.items() if n not in (*out, name)}
        if name in given and calls.complete(left) == whole:
            out.append(name)
    return out


def array_arguments(spec: OperatorSpec) -> dict[str, str]:
    """The functions' argument for each input array."""
    return {
        f.name: array_argument(f.name) if i else "x" for i, f in enumerate(spec.tensors("input"))
    }


def _asked(
    operator: Operator,
    dtypes: dict[str, str],
    sizes: dict[str, list[int]],
    values: dict[str, Any],
    linted: Linted,
) -> dict[str, Any]:
    """The arguments that ask for the outputs as an example has them."""
    out: dict[str, Any] = {}
    spec, data_types = operator.spec, linted.tree.vocabulary.data_types
    for field in spec.tensors("output"):
        if field.optional:
            out[field.optional] = field.name in dtypes
        if field.name not in dtypes:
            continue
        if argument := spec.dtype_argument(field):
            out[argument] = dtypes[field.name]
        if field.sizes_argument:
            inferred = None
            if field.name in operator.sizes:
                inferred = list(operator.sizes[field.name].evaluate(values, data_types))
            if inferred != sizes[field.name]:
                out[field.sizes_argument] = sizes[field.name]
    return out


def _not_default(
    asked: dict[str, Any], spec: OperatorSpec, dtypes: dict[str, Any]
) -> dict[str, Any]:
    default = {spec.dtype_argument(f): dtypes[f.name] for f in spec.tensors("output")}
    return {n: v for n, v in asked.items() if v is not False and v != default.get(n)}


def _level(
    operator: Operator,
    tensors: dict[str, Any],
    sizes: dict[str, list[int]],
    values: dict[str, Any],
) -> str | None:
    """The oldest feature level whose table allows the example; None where only the general one does."""
    for row in reversed(operator.spec.support):
        if (row.since and row.holds(values)) and all(
            dtype in row.tensors[name].dtypes
            and row.tensors[name].low <= len(sizes[name]) <= row.tensors[name].high
            for name, (dtype, _) in tensors.items()
        ):
            return row.since
    return None


def _call(
    spec: OperatorSpec, tensors: dict[str, Any], arguments: dict[str, Any], linted: Linted
) -> DocstringCall:
    data_types = linted.tree.vocabulary.data_types
    inputs = [
        DocstringInput(argument, data_types[tensors[name][0]].numpy, tensors[name][1])
        for name, argument in array_arguments(spec).items()
    ]
    outputs = [tensors[f.name] for f in spec.tensors("output") if f.name in tensors]
    exact = linted.tree.vocabulary.kernels[spec.semantics.kernel].exact
    printed = [
        _floats(values, exact) if data_types[t].kind == "float" else values for t, values in outputs
    ]
    expected = printed if len(outputs) > 1 else printed[0]
    return DocstringCall(
        inputs,
        arguments,
        several=len(outputs) > 1,
        exact=exact,
        rounded=not exact and data_types[outputs[0][0]].kind == "float",
        expected=expected,
        # Finite numbers, of NumPy's types, a tensor on a line.
        plain=all(len(str(data)) < layout.WIDTH for data in (*(i.data for i in inputs), expected))
        and not special_floats([data for _, data in tensors.values()])
        and all(data_types[t].numpy != "bfloat16" for t, _ in tensors.values())
        and all(not exact or _printed_alike(data, data_types[t].numpy) for t, data in outputs),
    )


def _printed_alike(data: Any, dtype: str) -> bool:
    """Whether numbers of a data type print as they are written."""
    if isinstance(data, list):
        return all(_printed_alike(d, dtype) for d in data)
    code = {"float16": "e", "float32": "f"}.get(dtype)
    return code is None or struct.unpack(code, struct.pack(code, data))[0] == data


def _floats(data: Any, exact: bool) -> Any:
    if isinstance(data, list):
        return [_floats(d, exact) for d in data]
    return float(data) if exact else round(float(data), 4)


def special_floats(data: Any) -> list[str]:
    """Which of inf and nan occur: literals that Python has no syntax for."""
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return sorted({name for value in inner for name in special_floats(value)})
    if not isinstance(data, float) or math.isfinite(data):
        return []
    return ["nan" if math.isnan(data) else "inf"]


# --- what breaks rules ---


def _violations(operator: Operator, linted: Linted) -> list[Violation]:
    """Each constraint with its smallest change; for each tensor those of the tensor's own rules."""
    out = [
        Violation(rule.id, rule.field, _as_called(rule.violate, operator))
        for rule in operator.rules
    ]
    if operator.source.dialect == "directml":
        out += (
            Violation(rule.id, field, patch)
            for rule, field, patch in tensor_patches(operator, linted.tensor_rules)
        )
    return out


def _needs(operator: Operator, example: ExampleValues, linted: Linted) -> Iterator[Need]:
    """Of rules and those that they need, what breaks both at once, and no other that the rule needs.

    So the rule would be told, were it asked. Where one change undoes the other, or the rule cannot be asked then, there
    is none; nor where expressions take too long.
    """
    data_types = linted.tree.vocabulary.data_types
    budget = Budget()
    calls = Calls(operator, data_types, budget)
    described = operator.source.dialect == "directml"
    first: dict[str, Any] = dict.fromkeys(f.name for f in operator.spec.tensors())
    for name, (dtype, _) in example.tensors.items():
        first[name] = make_tensor(dtype, tuple(example.sizes[name]), data_types)
    for name, value in example.attributes.items():
        if described or name not in operator.defaults or name in operator.spec.examples[0].given:
            first[name] = tuple(value) if isinstance(value, list) else value
    rules = {rule.id: rule for rule in operator.rules}

    def broken(rule: Rule, values: dict[str, Any]) -> bool:
        asked = all(values.get(name) is not None for name in rule.require.names())
        return asked and not rule.require.holds(values, data_types, budget)

    def unsettled(rule: Rule, values: dict[str, Any]) -> bool:
        return broken(rule, values) or any(unsettled(rules[id], values) for id in rule.needs)

    for rule in operator.rules:
        for need in (rules[id] for id in rule.needs):
            both = rule.violate | need.violate, need.violate | rule.violate
            for patch in both:
                try:
                    values = calls.changed(first, patch)
                    unasked = [id for id in rule.needs if unsettled(rules[id], values)]
                    shown = broken(rule, values) and broken(need, values) and unasked == [need.id]
                except Unfit:
                    continue
                except BudgetSpent:
                    return
                if shown:
                    yield Need(rule.id, need.id, _as_called(patch, operator))
                    break


def _as_called(patch: dict[str, Any], operator: Operator) -> dict[str, Any]:
    """A change as it is made: to a description's members, or to a function's arguments and arrays."""
    if operator.source.dialect == "directml":
        return patch
    spec = operator.spec
    asked = {f"{f.name}.dtype": spec.dtype_argument(f) for f in spec.tensors("output")}
    return {asked.get(target) or target: value for target, value in patch.items()}


def _unsupported(operator: Operator, linted: Linted) -> list[Unsupported]:
    """For each table and tensor the data types it does not allow, and the level from which on they are."""
    out: list[Unsupported] = []
    every = list(linted.tree.vocabulary.data_types)
    for row in operator.spec.support:
        for name, support in row.tensors.items():
            for dtype in every:
                if dtype not in support.dtypes:
                    later = [
                        r.since
                        for r in operator.spec.support
                        if r.since and r.when == row.when and dtype in r.tensors[name].dtypes
                    ]
                    since = later[-1] if later else None
                    out.append(Unsupported(row.since, name, dtype, since, row.chosen))
    return out


# --- the same by another operator ---


def _equivalence(entry: Equivalence, operator: Operator, linted: Linted) -> list[Same]:
    """One row for each case: both calls, and whether their data may hold NaN."""
    other = next(o for o in linted.operators if o.id == entry.operator)
    both = len(operator.spec.tensors("output")) == len(other.spec.tensors("output"))
    return [
        Same(
            id=f"{entry.id}_{i}" if len(entry.cases) > 1 else entry.id,
            nan=nan_rule(operator) == nan_rule(other),
            sizes=case.sizes,
            this=_arguments(case.this, operator, both),
            other=caller(other),
            that=_arguments(case.that, other, both),
        )
        for i, case in enumerate(entry.cases, 1)
    ]


def _arguments(attributes: dict[str, Any], operator: Operator, both: bool) -> dict[str, Any]:
    out = {snake_case(n): v for n, v in attributes.items()}
    fields: list[FieldSpec] = operator.spec.tensors("output") if both else []
    return out | {f.optional: True for f in fields if f.optional}


def nan_rule(operator: Operator) -> str | None:
    """What the spec says of NaN."""
    meaning = operator.spec.semantics.meanings.get("nan")
    return meaning.value if meaning else None


def caller(operator: Operator) -> Caller:
    source, version = operator.source, operator.spec.since_version
    return Caller(source.dialect, source.name, source.family, version)
