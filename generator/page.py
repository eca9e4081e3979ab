"""All that is known of one operator, or of one kernel, as a page for a terminal."""

from __future__ import annotations

import textwrap
from typing import Any

from generator.lint import Linted
from generator.model import FieldSpec
from generator.names import yaml_word
from generator.resolve import Operator, Rule

WIDTH = 96


def operator(o: Operator, specs: Linted) -> str:
    """Fields, tables, constraints, semantics, examples, decisions and mistakes of its page."""
    spec = o.spec
    since = f", since feature level {spec.introduced}" if spec.introduced else ""
    if spec.since_version is not None:
        since = f", version {spec.since_version}"
    out = [f"{spec.operator} ({o.id}{since})", f"  {spec.summary}"]
    out += [f"  {spec.page.title}", f"  {spec.page.address} ({spec.page.revision})", "", "Fields"]
    for f in spec.fields:
        optional = ", optional" if f.optional else ""
        out += item(f"{f.name} ({f.kind}{optional}, {f.type}{_default(f, o)})", f.doc)
    if spec.derived:
        out += ["", "Derived"]
        for entry in spec.derived:
            out += item(entry.name, entry.doc, entry.value)
    out += ["", "Data types"]
    for row in spec.support:
        for name, t in row.tensors.items():
            since = f" from level {row.since}" if row.since else ""
            when = f" {row.condition}" if row.condition else ""
            out += item(f"{name}{when}{since}: {t.low} to {t.high} dimensions", ", ".join(t.dtypes))
    out += ["", "Constraints"]
    out += item("supported_data_type", "a tensor has one of the data types listed for it.")
    out += item("supported_dimension_count", "a tensor has as many dimensions as listed for it.")
    for r in o.rules:
        out += _rule(r)
    if o.source.dialect == "directml":
        out += ["", "Constraints of each tensor"]
        for r, constraint in specs.tensor_rules:
            out += _rule(r, constraint.only)
    out += ["", f"Semantics: kernel {spec.semantics.kernel}"]
    for name, m in spec.semantics.meanings.items():
        chosen = ", ".join(f"{v} where {m.by} is {k}" for k, v in (m.values or {}).items())
        out += item(f"{name}: {m.value or chosen} ({origin(m.page, None)})", m.decided)
    out += ["", "Examples"]
    for e in spec.examples:
        given = ", ".join(f"{k} = {_data(v)}" for k, v in e.given.items())
        expect = ", ".join(f"{k} = {_data(v.model_dump())}" for k, v in e.expect.items())
        out += item(f"{e.id} ({origin(e.page, e.decided)})", given, f"gives {expect}")
    if spec.equivalences:
        out += ["", "The same by other operators"]
        for same in spec.equivalences:
            out += item(f"{same.operator} ({origin(same.page, same.decided)})", same.says)
    if spec.silent:
        out += ["", "Also decided, where the page is silent"]
        for decision in spec.silent:
            out += item(decision.id, decision.decided)
    if spec.errata:
        out += ["", "Wrong on the page"]
        for erratum in spec.errata:
            out += item(f"{erratum.id} ({erratum.page})", erratum.correction)
    return "\n".join(out)


def _default(field: FieldSpec, o: Operator) -> str:
    """Its default in words. A struct of DirectML has none: they are those of the function here."""
    if field.default is None:
        return ""
    whose = "default of the function" if o.source.dialect == "directml" else "default"
    return f", {whose} {yaml_word(field.default)}"


def _rule(r: Rule, only: str | None = None) -> list[str]:
    kinds = f"; {only}s only" if only else ""
    head = f"{r.id} ({origin(r.page, None)}{kinds})"
    return item(head, f"{r.allowed}.", r.require.text, r.decided)


def kernel(name: str, specs: Linted) -> str:
    """What it computes, what it can be told and what it requires: for the `semantics` of a spec."""
    entry = specs.tree.vocabulary.kernels[name]
    results = "exact" if entry.exact else "right but for the rounding of their data type"
    out = [f"kernel {name}, with results that are {results}", f"  {entry.doc}", "", "Tensors"]
    for kind, tensors in (("input", entry.inputs), ("output", entry.outputs)):
        for tensor in tensors:
            out += item(f"{tensor} ({kind})", _types(entry.dtypes.get(tensor)))
    out += ["", "Parameters"] if entry.parameters else []
    for parameter, told in entry.parameters.items():
        given = f"expression: {told.expression}" if told.expression else "one of its values"
        about = f", where there is {told.of}" if told.of else ""
        out += item(f"{parameter} ({given}{about})", told.doc)
        for value, meaning in (told.values or {}).items():
            taken = [f"{t}: {_types(dtypes)}" for t, dtypes in told.dtypes.get(value, {}).items()]
            out += textwrap.indent("\n".join(item(value, meaning, *taken)), "    ").split("\n")
    out += ["", "Requires"] if specs.requirements[name] else []
    for r in specs.requirements[name]:
        out += item(f"{r.constraint}({', '.join(r.arguments)})", f"{r.allowed}.")
    users = [o.id for o in specs.operators if o.spec.semantics.kernel == name]
    used = textwrap.wrap(
        ", ".join(users) or "no operator", WIDTH, initial_indent="  ", subsequent_indent="  "
    )
    return "\n".join([*out, "", "Used by", *used])


def _types(dtypes: str | list[str] | None) -> str:
    """Data types of a kernel's tensor as the vocabulary has them."""
    if isinstance(dtypes, str):
        return f"that of {dtypes}"
    return ", ".join(dtypes or ["any data type"])


def _data(value: Any) -> str:
    return f"{value['dtype']} {value['data']}" if isinstance(value, dict) else str(value)


def origin(page: str | None, decided: str | None) -> str:
    """Where a rule comes from."""
    return f"page: {page}" if page else f"decided: {decided}" if decided else "decided"


def item(head: str, *texts: str | None) -> list[str]:
    """One entry of a section: its head, and its texts below it."""
    lines = [f"  {head}"]
    for text in texts:
        if text:
            lines += textwrap.wrap(text, WIDTH, initial_indent="      ", subsequent_indent="      ")
    return lines
