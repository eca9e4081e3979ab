"""Operators that a page says are equal: both exist, and their calls can be compared."""

from __future__ import annotations

import math

from generator.diagnostics import Report
from generator.lint.entries import check_origin, check_unique
from generator.lint.subject import Subject
from generator.model import SpecTree, TensorConstraint
from generator.resolve import Operator, Rule
from generator.selftest import SelfTest
from generator.source import KeyPath

MAX_ELEMENTS = 100_000  # of the input of an equivalence's case


class Equivalences(Subject):
    def check(self) -> None:
        others = {f"{s.dialect}/{s.name}": s.spec for s in self.specs}
        ids: dict[str, KeyPath] = {}
        for i, entry in enumerate(self.spec.equivalences):
            path: KeyPath = ("equivalences", i)
            check_unique(ids, entry.id, path, self.document, self.report)
            check_origin(
                entry.page, entry.decided, "equivalence", entry.id, path, self.document, self.report
            )
            other = others.get(entry.operator)
            if other is self.spec:
                self.report.add(
                    "E203",
                    f"`{entry.operator}` is this operator itself",
                    self.document.span((*path, "operator")),
                    "name another",
                )
                continue
            if other is None:
                known = [o for o in others if o != self.operator.id]
                self.unknown(entry.operator, (*path, "operator"), known, "an operator")
                continue
            for j, case in enumerate(entry.cases):
                elements = math.prod(max(size, 1) for size in case.sizes)
                if min(case.sizes, default=1) < 0 or elements > MAX_ELEMENTS:
                    self.report.add(
                        "E223",
                        f"an input of a case has from 0 to {MAX_ELEMENTS} elements",
                        self.document.span((*path, "cases", j, "sizes")),
                        f"found {case.sizes}",
                    )
                for side, spec in (("this", self.spec), ("that", other)):
                    known = [f.name for f in spec.fields if f.told]
                    for name in getattr(case, side):
                        at: KeyPath = (*path, "cases", j, side, name)
                        self.unknown(name, at, known, f"an attribute of {spec.operator}")


def check_calls(
    operators: list[Operator],
    tree: SpecTree,
    tensor_rules: tuple[tuple[Rule, TensorConstraint], ...],
    report: Report,
) -> None:
    """Both calls of each case are such as their operators allow, and have something to compare."""
    known = {o.id: o for o in operators}
    for operator in operators:
        document = operator.source.document
        for i, entry in enumerate(operator.spec.equivalences):
            path: KeyPath = ("equivalences", i)
            sides = {"this": operator, "that": known[entry.operator]}
            tests = {
                side: SelfTest(called, tree, tensor_rules, report, document)
                for side, called in sides.items()
            }
            for j, case in enumerate(entry.cases):
                at: KeyPath = (*path, "cases", j)
                this, that = (
                    test.call(getattr(case, side), tuple(case.sizes), (*at, side))
                    for side, test in tests.items()
                )
                if this is None or that is None:
                    continue
                here, there = this.support.dtypes, that.support.dtypes
                if not {*here} & {*there}:
                    taken = f"{operator.id} takes {', '.join(here)}"
                    report.add(
                        "E224",
                        "no data type is one of both calls",
                        document.key_span((*at, "that")),
                        f"{taken}; {entry.operator} {', '.join(there)}",
                    )
                # Compared element by element, for one of the two may drop dimensions.
                if this.elements != that.elements:
                    counts = [", ".join(map(str, n)) for n in (this.elements, that.elements)]
                    report.add(
                        "E224",
                        "the two calls give different numbers of elements",
                        document.key_span((*at, "that")),
                        f"{operator.id} gives {counts[0]}; {entry.operator} {counts[1]}",
                    )
