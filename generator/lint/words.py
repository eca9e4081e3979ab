"""Words in expressions: values of the enums of the fields that they are compared with."""

from __future__ import annotations

from generator.diagnostics import Span, suggestion
from generator.lint.subject import Subject
from generator.source import KeyPath


class Words(Subject):
    def check(self) -> None:
        types = {field.name: field.type for field in self.spec.fields}
        for expression, path in self.expressions():
            for name, word, offset in expression.words():
                known = self.choices(types.get(name, ""))
                if known and word not in known:
                    self.report.add(
                        "E103",
                        f"`{word}` is not a value of {types[name]}",
                        self.place(word, path, offset),
                        "unknown value",
                        help=suggestion(word, known),
                    )

    def place(self, word: str, path: KeyPath, offset: int) -> Span:
        """Where a word stands with its quotation marks: of a shared constraint in the vocabulary."""
        if path[-1] != "use":
            return self.document.within(path, offset, len(word) + 2)
        name = self.spec.constraints[int(path[1])].shared
        text = self.vocabulary.constraints[name].require.replace("'", '"')
        at = text.index(f'"{word}"')
        return self.shared.within(("constraints", name, "require"), at, len(word) + 2)
