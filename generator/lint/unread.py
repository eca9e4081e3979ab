"""Attributes and derived values that nothing reads: callers would set them in vain."""

from __future__ import annotations

from generator.lint.subject import Subject
from generator.source import KeyPath


class Unread(Subject):
    def check(self) -> None:
        read = self.read()
        named: list[tuple[str, KeyPath]] = [
            (field.name, ("fields", i, "name"))
            for i, field in enumerate(self.spec.fields)
            if field.type != "tensor" and field.length_of is None
        ]
        named += [(entry.name, ("derived", i, "name")) for i, entry in enumerate(self.spec.derived)]
        for name, path in named:
            if name not in read:
                self.report.add(
                    "E216",
                    f"nothing reads `{name}`",
                    self.document.span(path),
                    "has no effect",
                    help="leave it out, or let semantics, a constraint or an expression read it",
                )

    def read(self) -> set[str]:
        """Names that decide what is computed, or what is refused."""
        expressions = [expression for expression, _ in self.expressions()]
        expressions += self.operator.meanings.values()
        names = {name for e in expressions for name in e.names()}
        names |= {m.by for m in self.spec.semantics.meanings.values() if m.by is not None}
        return names.union(*(row.when or () for row in self.spec.support))
