"""What specs decide where pages are silent, and what pages have wrong: the values of DECIDED.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from generator.lint import Linted
from generator.model import DIALECTS
from generator.resolve import Operator, families


@dataclass(frozen=True)
class Decided:
    """What was decided, by the id of a rule, a parameter of the kernel or an entry of `silent`."""

    id: str
    text: str


def values(linted: Linted) -> dict[str, Any]:
    of_tensors = [Decided(r.id, r.decided) for r, _ in linted.tensor_rules if r.decided]
    groups = [
        group
        for dialect in DIALECTS
        for group in families([o for o in linted.operators if o.source.dialect == dialect])
    ]
    return {"operators": [_decisions(group) for group in groups], "tensors": of_tensors}


def _decisions(group: list[Operator]) -> dict[str, Any]:
    """What was decided of an operator, of ONNX in all its versions: their texts differ little."""
    spec, source = group[-1].spec, group[-1].source
    versions = [o.spec.since_version for o in group if o.spec.since_version]
    held = f", {_listed(versions)}" if versions else ""
    return {
        "name": spec.operator,
        "id": f"{source.dialect}/{source.family}{held}",
        "pages": {(o.spec.page.address, o.spec.page.revision): o.spec.page for o in group}.values(),
        "decided": _once(group, lambda o: [(d.id, d.text) for d in of_operator(o)]),
        "errata": _once(group, lambda o: [(e.page, e.correction) for e in o.spec.errata]),
    }


def _once(
    group: list[Operator], said: Callable[[Operator], list[tuple[str, ...]]]
) -> list[tuple[tuple[str, ...], str]]:
    """Each distinct entry with the versions that it holds for, in the newest's order; those of one name together."""
    held: dict[tuple[str, ...], list[int]] = {}
    for o in reversed(group):
        for entry in dict.fromkeys(said(o)):
            held.setdefault(entry, []).insert(0, o.spec.since_version or 0)
    names = list(dict.fromkeys(name for name, *_ in held))
    order = sorted(held, key=lambda entry: (names.index(entry[0]), held[entry]))
    return [(entry, _held(held[entry], len(group))) for entry in order]


def _held(versions: list[int], count: int) -> str:
    """Which of an operator's versions these are, to stand behind a name; nothing where it has only one."""
    if count == 1:
        return ""
    return " (all versions)" if len(versions) == count else f" ({_listed(versions)})"


def _listed(versions: list[int]) -> str:
    return f"version{'s' if len(versions) > 1 else ''} {', '.join(map(str, versions))}"


def of_operator(op: Operator) -> list[Decided]:
    """What the page leaves open, in the order of the spec."""
    spec = op.spec
    rules = [Decided(c.id, c.decided) for c in spec.constraints if c.decided]
    return [*rules, *of_results(op)]


def of_results(op: Operator) -> list[Decided]:
    """The same without the rules: what it says of calls that are allowed."""
    spec = op.spec
    meanings = [Decided(n, m.decided) for n, m in spec.semantics.meanings.items() if m.decided]
    return [*meanings, *(Decided(d.id, d.decided) for d in spec.silent)]
