"""The versions of an ONNX operator, each a whole spec, say the same where nothing that one lacks makes a difference."""

from __future__ import annotations

from collections.abc import Sequence

from generator.diagnostics import Note, Report
from generator.resolve import Operator, families


def check_versions(operators: Sequence[Operator], report: Report) -> None:
    """Of derived values of one name."""
    for versions in families([o for o in operators if o.source.dialect == "onnx"]):
        known: dict[str, Operator] = {}  # the version before that has it
        for version in versions:
            for name in version.derived:
                if name in known:
                    _derived(name, known[name], version, report)
                known[name] = version


def _derived(name: str, older: Operator, newer: Operator, report: Report) -> None:
    """A value may differ that reads, in one of the two, what the other has not, or has of another type."""
    values = [o.derived[name] for o in (older, newer)]
    has, had = (
        {**{f.name: f.type for f in o.spec.fields}, **{d: e.type for d, e in o.derived.items()}}
        for o in (newer, older)
    )
    shared = all(has.get(n) == had.get(n) for value in values for n in value.names())
    if values[0].text == values[1].text or not shared:
        return
    there, here = (
        o.source.document.span(("derived", _place(o, name), "value")) for o in (older, newer)
    )
    report.add(
        "E232",
        f"`{name}` is another value than in {older.id}, which has all that it reads",
        here,
        "differs",
        notes=[Note(there, "in the version before")],
        help="make the two equal, or give a value of another meaning another name",
    )


def _place(operator: Operator, name: str) -> int:
    return [entry.name for entry in operator.spec.derived].index(name)
