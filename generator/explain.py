"""What is known, as text for a terminal: operators, constraints, words of the vocabulary, codes of errors, files."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from generator import cases, output, page, structure
from generator.codes import CODES
from generator.diagnostics import Report
from generator.expr.language import FUNCTIONS
from generator.lint import Linted
from generator.lint.entries import CHECKS
from generator.model import DIALECTS
from generator.names import stands_for
from generator.paste import Helpers
from generator.plan import File
from generator.resolve import Operator, Rule

_EXPRESSIONS = "specs/README.md#expressions"
_CODE = re.compile(r"[Ee][0-9]{0,3}")
_KERNELS = "kernels/"  # before the name of a kernel, which operators may have, too


def rows(specs: Linted, operators: list[Operator]) -> list[dict[str, Any]]:
    """One record for each operator, for `list`."""
    return [
        {
            "operator": o.id,
            "since": str(o.spec.introduced or o.spec.since_version or ""),
            "kernel": o.spec.semantics.kernel,
            "fields": len(o.spec.fields),
            "constraints": len(o.rules),
            "examples": len(o.spec.examples),
            "tests": cases.tables(o, specs).rows,
        }
        for o in operators
    ]


def table(records: list[dict[str, Any]]) -> str:
    """Records as aligned columns: words to the left, numbers to the right."""
    heads = list(records[0])
    cells = [heads, *([str(r[h]) for h in heads] for r in records)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    numeric = [isinstance(records[0][h], int) for h in heads]
    return "\n".join(
        "  ".join(
            c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    )


def subjects(specs: Linted, subject: str) -> list[str]:
    """All that `explain` knows by name, for suggestions for `subject`."""
    kernels = list(specs.tree.vocabulary.kernels)
    if subject.startswith(_KERNELS):
        return [_KERNELS + name for name in kernels]
    own = [d.id for o in specs.operators for d in o.spec.silent]
    own += [e.id for o in specs.operators for e in o.spec.errata]
    rules = [r.id for o in specs.operators for r in o.rules] + [r.id for r, _ in specs.tensor_rules]
    names = [o.id for o in specs.operators] + [o.source.name for o in specs.operators]
    words = specs.tree.vocabulary
    others = [*words.enums, *words.data_types, *FUNCTIONS, *sorted(CHECKS), *CODES]
    return list(dict.fromkeys([*names, *rules, *words.constraints, *own, *kernels, *others]))


def code(subject: str) -> str | None:
    """The codes that begin so."""
    if not _CODE.fullmatch(subject):
        return None
    found = [c for c in CODES if c.startswith(subject.upper())]
    return "\n".join(f"{c}: {CODES[c]}" for c in found) or None


def near_codes(subject: str) -> str:
    """What to ask for in place of a code that is none; nothing where it is no code at all."""
    if not _CODE.fullmatch(subject):
        return ""
    digit = subject[:2].upper()
    begun = digit if any(c.startswith(digit) for c in CODES) else "E"
    return f"`python -m generator explain {begun}` shows all codes that begin with {begun}"


def operators(specs: Linted, subject: str) -> str | None:
    """The pages of the operators of a name: of one dialect or version, or of all that have it."""
    found = [o for o in specs.operators if stands_for(subject, o.id) or subject == o.spec.operator]
    return "\n\n\n".join(page.operator(o, specs) for o in found) or None


def _rule(r: Rule) -> list[str]:
    origin = page.origin(r.page, r.decided)
    return page.item(f"{r.allowed}.", r.require.text, origin, f"broken by {r.violate}")


def constraint(specs: Linted, subject: str) -> str | None:
    """A constraint, own or shared, a decision or an erratum wherever it occurs."""
    out = []
    for o in specs.operators:
        for d in o.spec.silent:
            if d.id == subject:
                out += [f"{subject} of {o.id}", *page.item(f"decided: {d.decided}")]
        for e in o.spec.errata:
            if e.id == subject:
                out += [f"{subject} of {o.id} ({e.page})", *page.item(e.correction)]
        for r in o.rules:
            if r.id == subject:
                line = o.source.document.span((*r.path, "id")).line
                out += [f"{subject} of {o.id} ({o.source.file}:{line})"]
                out += _rule(r)
    for r, _ in specs.tensor_rules:
        if r.id == subject:
            line = specs.tree.document.span((*r.path, "id")).line
            out += [f"{subject} of each tensor of DirectML ({structure.VOCABULARY}:{line})"]
            out += _rule(r)
    return "\n".join([*out, *_shared(specs, subject)]) or None


def _shared(specs: Linted, subject: str) -> list[str]:
    """A shared constraint, and what uses it; nothing where there is none of this name."""
    words = specs.tree.vocabulary
    shared = words.constraints.get(subject)
    if shared is None:
        return []
    line = specs.tree.document.key_span(("constraints", subject)).line
    users = [o.id for o in specs.operators if subject in [c.shared for c in o.spec.constraints]]
    users += [
        _KERNELS + name
        for name, uses in specs.requirements.items()
        if subject in [use.constraint for use in uses]
    ]
    head = f"{subject}({', '.join(shared.parameters)}), shared ({structure.VOCABULARY}:{line})"
    used = f"used by {', '.join(users)}" if users else "used by nothing"
    return [head, *page.item(f"{shared.allowed}.", shared.require, used)]


def kernel(specs: Linted, subject: str) -> str | None:
    """The page of a kernel; "kernels/reduce" is one whose name operators have, too."""
    name = subject.removeprefix(_KERNELS)
    return page.kernel(name, specs) if name in specs.tree.vocabulary.kernels else None


def word(specs: Linted, subject: str) -> str | None:
    """The vocabulary, a dialect, all kernels, an enum, a data type, a function of expressions, or a check."""
    words = specs.tree.vocabulary
    subject = subject.rstrip("/")
    if subject == structure.operator_id(structure.VOCABULARY):
        return _vocabulary(specs)
    if subject in DIALECTS:
        return _dialect(specs, subject)
    if subject == _KERNELS.rstrip("/"):
        items = [page.item(_KERNELS + name, entry.doc) for name, entry in words.kernels.items()]
        return "\n".join(["kernels", *itertools.chain(*items)])
    if subject in words.enums:
        return _enum(specs, subject)
    if entry := words.data_types.get(subject):
        having = ", ".join(d for d in DIALECTS if subject in words.dialects.of(d).dtypes)
        bits = f"{entry.kind} of {8 * entry.bytes} bits"
        return f"data type {subject}: {bits}, {entry.numpy} of NumPy; in {having}"
    if subject in FUNCTIONS:
        takes, gives = FUNCTIONS[subject]
        head = f"{subject}({', '.join(takes)}), which gives {gives}"
        return f"{head}: a function of expressions; {_EXPRESSIONS} describes it"
    if subject in CHECKS:
        return f"{subject}: a check of the runtime, so no id of a constraint; `specops explain {subject}` tells more"
    return None


def _dialect(specs: Linted, name: str) -> str:
    entry = specs.tree.vocabulary.dialects.of(name)
    out = [f"dialect {name}, with tensors of {entry.low} to {entry.high} dimensions"]
    out += page.item("data types", ", ".join(entry.dtypes))
    ids = [o.id for o in specs.operators if o.source.dialect == name]
    return "\n".join(out + page.item("operators", ", ".join(ids)))


def _enum(specs: Linted, name: str) -> str:
    entry = specs.tree.vocabulary.enums[name]
    fields = [(o.id, f) for o in specs.operators for f in o.spec.fields]
    users = [f"{f.name} of {id}" for id, f in fields if f.type == name]
    out = [f"enum {name}: {entry.doc}"]
    out += page.item("values", ", ".join(f"{word} = {n}" for word, n in entry.values.items()))
    return "\n".join(out + (page.item("type of", ", ".join(users)) if users else []))


def helper(files: Iterable[File], templates: Path, subject: str) -> str | None:
    """A file of templates/helpers, or one that defines a name, and the kernel modules that hold what they use of it."""
    report = Report()
    helpers = Helpers(templates, report)
    origins = {f.path: f.origin for f in files if f.origin.startswith("templates/kernels/")}
    kernels = {path: helpers.read(origin, report) for path, origin in origins.items()}
    out = []
    for module in helpers.modules.values():
        if subject in (module.path, *module.names):
            used = [p for p, kernel in kernels.items() if kernel and module in helpers.used(kernel)]
            doc = ast.get_docstring(ast.parse(module.head)) or ""
            out += [f"{module.path}: {doc}", "pasted, as far as they use it, into"]
            out += [f"  generated/{path}" for path in used]
    return "\n".join(out) or None


def _vocabulary(specs: Linted) -> str:
    """The words that specs share."""
    words = specs.tree.vocabulary
    parts: dict[str, Iterable[str]] = {
        "data types": words.data_types,
        **{f"data types of {d}": words.dialects.of(d).dtypes for d in DIALECTS},
        "feature levels": words.feature_levels,
        "enums": words.enums,
        "kernels": words.kernels,
        "shared constraints": words.constraints,
        "rules of each tensor of DirectML": [r.id for r, _ in specs.tensor_rules],
    }
    out = [f"{structure.VOCABULARY}: words that specs share"]
    for name, known in parts.items():
        out += page.item(name, ", ".join(known))
    return "\n".join(out)


def origin(files: Iterable[File], subject: str) -> str | None:
    """The files that a template, or a module of the generator, makes."""
    made = [f"  generated/{f.path}" for f in files if f.origin == subject]
    return "\n".join([f"{subject} makes", *made]) if made else None


def file(planned: File, root: Path) -> str:
    """Where a generated file comes from, and whether it is as it was generated."""
    state = output.read(root / "generated")
    data = state.texts.get(planned.path)
    known = state.manifest.get(planned.path, set())
    found = (
        "missing"
        if data is None
        else "as generated"
        if output.digest(data) in known
        else "edited by hand"
    )
    out = [f"generated/{planned.path}: {found}"]
    if planned.sources:
        out.append(f"  from {', '.join(planned.sources)}")
    out.append(f"  by {planned.origin}")
    if planned.operators:
        out.append(f"  for {', '.join(planned.operators)}")
    if data is not None:
        out.append(f"  sha256 {output.digest(data)}")
    return "\n".join(out)
