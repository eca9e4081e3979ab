"""`diff`: two operators compared by meaning, not by text.

Left out is what decides nothing: descriptions, places on the page, and the data of tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.model import FieldSpec, Meaning
from generator.names import yaml_word
from generator.resolve import Operator


def operators(one: Operator, other: Operator) -> list[str]:
    """One line for each difference; nothing where both mean the same."""
    out: list[str] = []
    _section(out, "", _since(one), _since(other))
    _section(out, "field", _fields(one), _fields(other))
    order = [f.name for f in one.spec.fields], [f.name for f in other.spec.fields]
    if order[0] != order[1] and sorted(order[0]) == sorted(order[1]):
        out.append(f"~ order of fields: {', '.join(order[0])} -> {', '.join(order[1])}")
    _section(out, "derived", _derived(one), _derived(other))
    _section(out, "data types of", _support(one), _support(other))
    _section(out, "constraint", _rules(one), _rules(other))
    _section(out, "semantics", _semantics(one), _semantics(other))
    _section(out, "equivalence", _equivalences(one), _equivalences(other))
    _section(out, "decided", _silent(one), _silent(other))
    _section(out, "erratum", _errata(one), _errata(other))
    return out


def _section(out: list[str], what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for key in [*one, *(k for k in other if k not in one)]:
        name = f"{what} {key}".strip()
        if key not in other:
            out.append(f"- {name}: {one[key]}")
        elif key not in one:
            out.append(f"+ {name}: {other[key]}")
        elif one[key] != other[key]:
            out.append(f"~ {name}: {one[key]} -> {other[key]}")


def _said(keys: Mapping[str, Any]) -> str:
    """The keys that a part of a spec has, each with its value."""
    return ", ".join(f"{k} {yaml_word(v)}" for k, v in keys.items() if v is not None)


def _since(o: Operator) -> dict[str, Any]:
    since = {"introduced": o.spec.introduced, "version": o.spec.since_version}
    return {key: value for key, value in since.items() if value is not None}


def _derived(o: Operator) -> dict[str, str]:
    return {name: expression.text for name, expression in o.derived.items()}


def _equivalences(o: Operator) -> dict[str, str]:
    return {e.id: f"{e.operator}: {e.says}" for e in o.spec.equivalences}


def _fields(o: Operator) -> dict[str, str]:
    def text(f: FieldSpec) -> str:
        expressions = {"default": o.defaults, "sizes": o.sizes, "dtype": o.dtypes}
        resolved = {key: of[f.name].text for key, of in expressions.items() if f.name in of}
        return _said({**f.model_dump(exclude={"name", "doc"}), **resolved})

    return {f.name: text(f) for f in o.spec.fields}


def _support(o: Operator) -> dict[str, str]:
    return {
        " ".join(
            part for part in (name, row.condition, f"from {row.since}" if row.since else "") if part
        ): f"{t.ranks} dimensions, {', '.join(sorted(t.dtypes))}"
        for row in o.spec.support
        for name, t in row.tensors.items()
    }


def _rules(o: Operator) -> dict[str, str]:
    return {
        r.id: f"{r.field}: {r.require.text}" + (f" needs {', '.join(r.needs)}" if r.needs else "")
        for r in o.rules
    }


def _semantics(o: Operator) -> dict[str, str]:
    def text(name: str, m: Meaning) -> str:
        if name in o.meanings:
            return o.meanings[name].text
        return str(m.value) if m.value is not None else f"by {m.by}: {m.values}"

    return {
        "kernel": o.spec.semantics.kernel,
        **{name: text(name, m) for name, m in o.spec.semantics.meanings.items()},
    }


def _errata(o: Operator) -> dict[str, str]:
    return {e.id: e.correction for e in o.spec.errata}


def _silent(o: Operator) -> dict[str, str]:
    return {d.id: d.decided for d in o.spec.silent}
