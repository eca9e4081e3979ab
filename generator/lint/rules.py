"""Constraints, and that expressions fit the lines of generated modules."""

from __future__ import annotations

from generator import layout
from generator.expr import language
from generator.lint.entries import check_rule, check_sentence, too_long
from generator.lint.subject import Subject
from generator.source import KeyPath


class Rules(Subject):
    def check(self) -> None:
        self.constraints()
        self.layout()

    def constraints(self) -> None:
        ids: dict[str, KeyPath] = {}
        every = [c.id for c in self.spec.constraints]
        directml = self.operator.source.dialect == "directml"
        of_tensors = {c.id for c in self.vocabulary.tensor_constraints if directml}
        for i, constraint in enumerate(self.spec.constraints):
            path: KeyPath = ("constraints", i)
            self.unknown(constraint.field, (*path, "field"), self.names)
            derived = [d.name for d in self.spec.derived]
            self.taken(constraint.id, (*path, "id"), [*self.names, *self.functions(), *derived])
            check_rule(constraint, ids, every, path, self.document, self.report)
            if constraint.id in of_tensors:
                self.report.add(
                    "E211",
                    f"`{constraint.id}` is already a rule of each tensor",
                    self.document.span((*path, "id")),
                    "again",
                    help="choose another id: messages and tests name a rule by it",
                )
            shared = self.vocabulary.constraints.get(constraint.shared)
            if shared is not None and constraint.allowed is not None:
                span = self.document.span((*path, "allowed"))
                check_sentence(
                    constraint.allowed, shared.parameters, constraint.shared, span, self.report
                )
            for target, value in constraint.violate.items():
                name, _, attribute = target.partition(".")
                at: KeyPath = (*path, "violate", target)
                if self.unknown(name, at, self.names):
                    continue
                if target == name and self.spec.field(name).type == "tensor":
                    self.report.add(
                        "E223",
                        f"`{name}` is a tensor, which `violate` changes in a part",
                        self.document.key_span(at),
                        "no part is named",
                        help=f"as in `{name}.sizes`; parts are {', '.join(language.ATTRIBUTES)}",
                    )
                elif self.spec.field(name).type == "tensor":
                    self.unknown(attribute, at, language.ATTRIBUTES, "part of a tensor")
                elif target != name:
                    self.unknown(target, at, self.names)
                elif isinstance(value, str):  # one that is no value breaks `field_type` instead
                    words = self.choices(self.spec.field(name).type)
                    if words and value not in words:
                        self.value(value, at, words)

    def layout(self) -> None:
        """Expressions are written into generated modules, where lines are not endless."""
        for expression, path in self.expressions():
            if not expression.fits(layout.WITHIN):
                self.too_long(path)
        for name, expression in self.operator.meanings.items():
            if not layout.fits(name, expression.text):
                self.too_long(("semantics", name, "value"))

    def too_long(self, path: KeyPath) -> None:
        too_long(self.document.span(path), "name a part of it under `derived`", self.report)
