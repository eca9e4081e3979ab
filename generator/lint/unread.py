"""Attributes and derived values that nothing reads: callers would set them in vain.

Where a page has such an attribute, an entry of `silent` with its name says why it has no effect.
"""

from __future__ import annotations

from generator.lint.subject import Subject
from generator.names import snake_case
from generator.source import KeyPath


class Unread(Subject):
    def check(self) -> None:
        read = self.read()
        explained = {decision.id for decision in self.spec.silent}
        for i, field in enumerate(self.spec.fields):
            name = snake_case(field.name)
            if field.told and field.name not in read and name not in explained:
                help = (
                    "let semantics, a constraint or an expression read it, or leave it out; why one of the page has no"
                    f" effect stands under `silent`: {{id: {name}, decided: ..}}"
                )
                self.tell(field.name, ("fields", i, "name"), help)
        for i, entry in enumerate(self.spec.derived):
            if entry.name not in read:
                self.tell(entry.name, ("derived", i, "name"), "leave it out")

    def tell(self, name: str, path: KeyPath, help: str) -> None:
        span = self.document.span(path)
        self.report.add("E216", f"nothing reads `{name}`", span, "has no effect", help=help)

    def read(self) -> set[str]:
        """Names that decide what is computed, or what is refused."""
        expressions = [expression for expression, _ in self.expressions()]
        expressions += self.operator.meanings.values()
        names = {name for e in expressions for name in e.names()}
        names |= {m.by for m in self.spec.semantics.meanings.values() if m.by is not None}
        return names.union(*(row.when or () for row in self.spec.support))
