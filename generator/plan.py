"""From linted specs to the list of files to generate, each with ready values for its template.

All decisions are made here; a template only lays out what it is given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import schema
from generator.expr import Expr
from generator.lint import Linted
from generator.model import DIALECTS, FieldSpec, OperatorSpec, Vocabulary
from generator.names import description_class, snake_case
from generator.resolve import Operator, Rule

WIDTH = 100

_DESCRIBED = {"tensor": "TensorDesc", "uint": "int", "uint[]": "Sequence[int]", "bool": "bool"}
_PYTHON_TYPES = {"tensor": "Tensor", "uint": "int", "uint[]": "tuple[int, ...]", "bool": "bool"}


@dataclass(frozen=True, eq=False)
class File:
    """One generated file: `template` with `values`, or `text` as it stands where there is no template to fill."""

    path: str  # below generated/
    sources: tuple[
        str, ...
    ]  # specs it follows from; empty where it follows from its template alone
    template: str
    values: dict[str, Any]
    operators: tuple[str, ...]  # "directml/argmax"; empty where the file belongs to all
    text: str | None = None


def files(linted: Linted, templates: Path) -> list[File]:
    """All files of generated/ but the manifest, sorted by path."""
    out = [*_verbatim(templates), *_kernels(templates), *_shared(linted)]
    for operator in linted.operators:
        out += _operator_files(operator, linted)
    return sorted(out, key=lambda f: f.path)


def _verbatim(templates: Path) -> Iterator[File]:
    """Real Python below templates/runtime and templates/tests, copied with a header."""
    for folder, target in (("runtime", "specops"), ("tests", "tests")):
        for path in sorted((templates / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(templates / folder).as_posix()
                text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
                yield File(f"{target}/{name}", (), f"{folder}/{name}", {}, (), text)


def _kernels(templates: Path) -> Iterator[File]:
    """Each kernel; several operators, and several of their `semantics`, may run on one."""
    for path in sorted((templates / "kernels").glob("*.py.jinja")):
        yield File(f"specops/kernels/{path.stem}", (), f"kernels/{path.name}", {}, ())


def _shared(linted: Linted) -> Iterator[File]:
    vocabulary = linted.tree.vocabulary
    source = ("specs/vocabulary.yaml",)
    words = vocabulary.words()
    for name, model in (("spec", OperatorSpec), ("vocabulary", Vocabulary)):
        document = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$comment": "Generated from generator/model.py and specs/vocabulary.yaml: python -m generator generate",
            **schema.of(model, words),
        }
        text = json.dumps(document, indent=1) + "\n"
        yield File(f"{name}.schema.json", source if name == "spec" else (), "", {}, (), text)
    yield File("specops/vocabulary.py", source, "vocabulary.py.jinja", _vocabulary(vocabulary), ())
    rules = [_rule(rule, tensor=constraint.only) for rule, constraint in linted.tensor_rules]
    values = {
        "rules": rules,
        "functions": _functions([r for r, _ in linted.tensor_rules]),
        "page": vocabulary.tensor_page,
    }
    yield File(
        "specops/directml/tensor_rules.py", source, "directml/tensor_rules.py.jinja", values, ()
    )
    for dialect in DIALECTS:
        operators = [o for o in linted.operators if o.source.dialect == dialect]
        members = [{"module": o.source.name, "names": _exports(o)} for o in operators]
        members += (
            [{"module": "descriptor", "names": ["TensorDesc"]}] if dialect == "directml" else []
        )
        members.sort(key=lambda m: str(m["module"]))
        exports = [name for m in members for name in m["names"]] + _FIXED_EXPORTS[dialect]
        path = "specops/__init__.py" if dialect == "plain" else f"specops/{dialect}/__init__.py"
        yield File(
            path,
            (f"specs/{dialect}/",),
            f"{dialect}/init.py.jinja",
            {"members": members, "exports": sorted(exports, key=_export_order)},
            (),
        )
    decided = [_decisions(o) for o in linted.operators]
    tensors = [{"id": r.id, "text": r.decided} for r, _ in linted.tensor_rules if r.decided]
    files = ("specs/vocabulary.yaml", *(o.source.file for o in linted.operators))
    yield File(
        "DECIDED.md", files, "decided.md.jinja", {"operators": decided, "tensors": tensors}, ()
    )
    everything = [{"dialect": o.source.dialect, "name": o.source.name} for o in linted.operators]
    yield File(
        "tests/cases/__init__.py", ("specs/",), "cases_init.py.jinja", {"operators": everything}, ()
    )


_FIXED_EXPORTS = {
    "directml": ["CompiledOperator"],
    "plain": [
        "SpecopsError",
        "ValidationError",
        "Violation",
        "__version__",
        "get_num_threads",
        "num_threads",
        "set_num_threads",
    ],
}


def _export_order(name: str) -> tuple[bool, str]:
    """Classes first, as linters sort `__all__`."""
    return (not name[0].isupper(), name)


def _exports(operator: Operator) -> list[str]:
    name = operator.source.name
    return sorted([name] if operator.source.dialect == "plain" else [name, description_class(name)])


def _vocabulary(vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "data_types": [
            {
                "name": name,
                "numpy": f"ml_dtypes.{e.numpy}"
                if e.numpy == "bfloat16"
                else f"np.{_numpy(e.numpy)}",
                "kind": e.kind,
            }
            for name, e in vocabulary.data_types.items()
        ],
        "feature_levels": {level: e.directml for level, e in vocabulary.feature_levels.items()},
        "enums": {name: e.values for name, e in vocabulary.enums.items()},
        "tensor_page": vocabulary.tensor_page.address,
    }


def _numpy(name: str) -> str:
    return "bool_" if name == "bool" else name


# --- one operator ---


def _operator_files(operator: Operator, linted: Linted) -> Iterator[File]:
    dialect, name = operator.source.dialect, operator.source.name
    values = {"op": _operator(operator, linted)}
    sources = (operator.source.file,)
    yield File(
        f"specops/{dialect}/{name}.py",
        sources,
        f"{dialect}/operator.py.jinja",
        values,
        (operator.id,),
    )
    yield File(
        f"tests/cases/{dialect}_{name}.py", sources, "cases.py.jinja", values, (operator.id,)
    )


def _operator(operator: Operator, linted: Linted) -> dict[str, Any]:
    """The values that operator and case templates lay out."""
    spec, name = operator.spec, operator.source.name
    attributes = [f for f in spec.fields if f.kind == "attribute"]
    inputs, outputs = spec.tensors("input"), spec.tensors("output")
    return {
        "dialect": operator.source.dialect,
        "name": name,
        "class_name": description_class(name),
        "operator": spec.operator,
        "summary": spec.summary,
        "introduced": spec.introduced,
        "page": spec.page,
        "fields": [_field(f, linted) for f in spec.fields],
        "inputs": [_field(f, linted) for f in inputs],
        "outputs": [_output(f, operator, linted) for f in outputs],
        "parameters": [_field(f, linted) for f in attributes if f.length_of is None],
        "support": [_support(row) for row in spec.support],
        "rules": [_rule(rule, operator=operator) for rule in operator.rules],
        "functions": _functions(
            operator.rules, *operator.sizes.values(), *operator.meanings.values()
        ),
        "kernel": spec.semantics.kernel,
        "lowering": "".join(part.capitalize() for part in spec.semantics.kernel.split("_")),
        "lowered": _lowered(operator),
        "lower_reads": _lower_reads(operator),
        "arguments": _arguments(attributes),
        "decided": _decided(operator),
        "errata": spec.errata,
        "special_floats": _special_floats([e.given for e in spec.examples]),
        **cases(operator, linted),
    }


def _field(field: FieldSpec, linted: Linted) -> dict[str, Any]:
    enum = linted.tree.vocabulary.enums.get(field.type)
    return {
        "name": field.name,
        "snake": snake_case(field.name),
        "kind": field.kind,
        "type": field.type,
        "python": _PYTHON_TYPES.get(field.type, "str"),
        "doc": field.doc,
        "length_of": field.length_of,
        "axes_of": field.axes_of,
        "default": field.default,
        "argument": "x",
        "annotation": _DESCRIBED.get(field.type, "str | int")
        + (" | None" if field.length_of else ""),
        "argument_annotation": "int | Sequence[int] | None"
        if field.axes_of
        else _DESCRIBED.get(field.type, "str | int"),
        "argument_doc": _argument_doc(field, list(enum.values) if enum else []),
    }


def _argument_doc(field: FieldSpec, values: list[str]) -> str:
    if field.axes_of is not None and "None" not in field.doc:
        return " An integer or a sequence of them; negative ones count from the end; None means all axes."
    return f" One of {', '.join(values)}." if values else ""


def _arguments(attributes: list[FieldSpec]) -> str:
    """The functions' arguments by the fields' names, as Python text."""
    return (
        "{"
        + ", ".join(f'"{f.name}": {snake_case(f.name)}' for f in attributes if f.length_of is None)
        + "}"
    )


def _output(field: FieldSpec, operator: Operator, linted: Linted) -> dict[str, Any]:
    sizes = operator.sizes[field.name]
    return {
        **_field(field, linted),
        "dtype": field.dtype,
        "dtype_argument": "output_dtype",
        "read_names": tuple(name for name, _ in _parameters(operator.spec, sizes)),
        "dtypes": operator.spec.support[0].tensors[field.name].dtypes,
        "sizes": "\n".join(sizes.statement("return", WIDTH - 4)),
        "reads": _parameters(operator.spec, sizes),
    }


def _support(row: Any) -> dict[str, Any]:
    tensors = [
        {"name": n, "low": t.low, "high": t.high, "dtypes": tuple(t.dtypes)}
        for n, t in row.tensors.items()
    ]
    return {"since": row.since, "tensors": tensors}


def _rule(
    rule: Rule, *, operator: Operator | None = None, tensor: str | None = None
) -> dict[str, Any]:
    return {
        "id": rule.id,
        "field": rule.field,
        "allowed": rule.allowed,
        "sentence": rule.allowed[0].upper() + rule.allowed[1:],
        "origin": rule.page if rule.page is not None else "(decided)",
        "page": rule.page,
        "decided": rule.decided,
        "needs": rule.needs,
        "reads": rule.require.reads,
        "parameters": _parameters(operator.spec, rule.require)
        if operator
        else [("tensor", "Tensor")],
        "body": "\n".join(rule.require.statement("return", WIDTH - 4)),
        "only": tensor,
    }


def _parameters(spec: OperatorSpec, expression: Expr) -> list[tuple[str, str]]:
    """The fields an expression takes, with their Python types, in the struct's order."""
    names = expression.names()
    return [(f.name, _PYTHON_TYPES.get(f.type, "str")) for f in spec.fields if f.name in names]


def _functions(rules: Any, *expressions: Expr) -> list[str]:
    """The functions of specops.tensor that the rules and expressions call."""
    texts = [rule.require.text for rule in rules] + [e.text for e in expressions]
    known = (
        "rank",
        "unique",
        "product",
        "greatest",
        "bytes",
        "implied_bytes",
        "distinct_addresses",
        "power_of_two",
    )
    return sorted(name for name in known if any(re.search(rf"\b{name}\(", text) for text in texts))


def _lowered(operator: Operator) -> list[dict[str, Any]]:
    """The kernel's parameters: each with the Python text of its value and the reason."""
    out = []
    for name, meaning in operator.spec.semantics.meanings.items():
        if name in operator.meanings:
            text = f"sorted({operator.meanings[name].text})"
        elif meaning.by is not None and meaning.values is not None:
            boolean = operator.spec.field(meaning.by).type == "bool"
            keys = {
                k: {"true": "True", "false": "False"}[k] if boolean else f'"{k}"'
                for k in meaning.values
            }
            text = (
                "{"
                + ", ".join(f'{keys[k]}: "{v}"' for k, v in meaning.values.items())
                + f"}}[{meaning.by}]"
            )
        else:
            text = f'"{meaning.value}"'
        out.append({"name": name, "text": text, "page": meaning.page, "decided": meaning.decided})
    return out


def _lower_reads(operator: Operator) -> list[tuple[str, str]]:
    """The fields that lowering takes: all tensors, and the attributes that the semantics name."""
    used = {m.by for m in operator.spec.semantics.meanings.values()}
    used |= {name for e in operator.meanings.values() for name in e.names()}
    return [
        (f.name, _PYTHON_TYPES.get(f.type, "str"))
        for f in operator.spec.fields
        if f.type == "tensor" or f.name in used
    ]


def _decided(operator: Operator) -> list[dict[str, str]]:
    """What the page leaves open, in the order of the spec."""
    spec = operator.spec
    rules = [{"id": c.id, "text": c.decided} for c in spec.constraints if c.decided]
    meanings = [
        {"id": n, "text": m.decided} for n, m in spec.semantics.meanings.items() if m.decided
    ]
    return [*rules, *meanings, *({"id": d.id, "text": d.decided} for d in spec.silent)]


def _decisions(operator: Operator) -> dict[str, Any]:
    errata = [e.model_dump() for e in operator.spec.errata]
    page = operator.spec.page
    return {
        "name": operator.spec.operator,
        "id": operator.id,
        "page": page,
        "decided": _decided(operator),
        "errata": errata,
    }


# --- cases ---


def _example(example: Any, operator: Operator, linted: Linted) -> dict[str, Any]:
    spec = operator.spec
    given: dict[str, Any] = {
        f.name: f.default for f in spec.fields if f.kind == "attribute" and f.default is not None
    }
    given |= example.given
    inputs = {
        f.name: (given[f.name]["dtype"], given[f.name]["data"]) for f in spec.tensors("input")
    }
    outputs = {name: (t.dtype, t.data) for name, t in example.expect.items()}
    attributes = {
        f.name: given[f.name] for f in spec.fields if f.kind == "attribute" and f.name in given
    }
    tensors = {**inputs, **outputs}
    (dtype, data), (out_dtype, expected) = next(iter(inputs.values())), next(iter(outputs.values()))
    arguments: dict[str, Any] = {
        snake_case(n): v for n, v in attributes.items() if spec.field(n).length_of is None
    }
    defaults = {snake_case(f.name): f.default for f in spec.fields}
    call = {
        "dtype": linted.tree.vocabulary.data_types[dtype].numpy,
        "data": data,
        "arguments": {n: v for n, v in arguments.items() if v != defaults[n]},
        "expected": expected,
    }
    return {
        "id": example.id,
        "origin": example.page or "(decided)",
        "tensors": tensors,
        "sizes": {name: _shape(data) for name, (_, data) in tensors.items()},
        "attributes": attributes,
        "arguments": arguments,
        "output_dtype": out_dtype,
        "call": call,
    }


def _special_floats(data: Any) -> list[str]:
    """Which of inf and nan occur: literals that Python has no syntax for."""
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return sorted({name for value in inner for name in _special_floats(value)})
    if not isinstance(data, float) or math.isfinite(data):
        return []
    return ["nan" if math.isnan(data) else "inf"]


def _shape(data: Any) -> list[int]:
    return [len(data), *(_shape(data[0]) if data else [])] if isinstance(data, list) else []


def cases(operator: Operator, linted: Linted) -> dict[str, list[Any]]:
    """The rows of an operator's case table."""
    return {
        "examples": [_example(e, operator, linted) for e in operator.spec.examples],
        "violations": _violations(operator, linted),
        "unsupported": _unsupported(operator, linted),
    }


def _violations(operator: Operator, linted: Linted) -> list[dict[str, Any]]:
    """Each constraint with its smallest change; for each tensor those of the tensor's own rules."""
    out = [{"id": rule.id, "field": rule.field, "patch": rule.violate} for rule in operator.rules]
    if operator.source.dialect == "directml":
        for rule, constraint in linted.tensor_rules:
            for field in operator.spec.tensors():
                if constraint.only in (None, field.kind):
                    patch = {f"{field.name}.{key}": value for key, value in rule.violate.items()}
                    out.append({"id": rule.id, "field": field.name, "patch": patch})
    return out


def _unsupported(operator: Operator, linted: Linted) -> list[dict[str, Any]]:
    """For each table and tensor the data types it does not allow, and the level from which on they are."""
    out = []
    every = list(linted.tree.vocabulary.data_types)
    for row in operator.spec.support:
        for name, support in row.tensors.items():
            for dtype in every:
                if dtype not in support.dtypes:
                    later = [
                        r.since for r in operator.spec.support if dtype in r.tensors[name].dtypes
                    ]
                    out.append(
                        {
                            "level": row.since,
                            "field": name,
                            "dtype": dtype,
                            "later": later[-1] if later else None,
                        }
                    )
    return out
