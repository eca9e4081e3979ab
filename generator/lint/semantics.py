"""The kernel's parameters, each with a meaning."""

from __future__ import annotations

from generator import model
from generator.lint.entries import check_origin
from generator.lint.subject import Subject
from generator.source import KeyPath


class Semantics(Subject):
    def check(self) -> None:
        kernel = self.vocabulary.kernels[self.spec.semantics.kernel]
        meanings = self.spec.semantics.meanings
        untold = kernel.untold(self.spec)
        for name in meanings:
            if name in untold:
                self.report.add(
                    "E203",
                    f"`{name}` is about `{kernel.parameters[name].of}`, which this operator lacks",
                    self.document.key_span(("semantics", name)),
                    "remove this",
                )
                continue
            self.unknown(
                name,
                ("semantics", name),
                kernel.parameters,
                f"a parameter of kernel `{self.spec.semantics.kernel}`",
            )
        for name, parameter in kernel.parameters.items():
            if name in untold:
                continue
            path: KeyPath = ("semantics", name)
            meaning = meanings.get(name)
            if meaning is None:
                self.report.add(
                    "E102",
                    f"`{name}` is missing",
                    self.document.key_span(("semantics",)),
                    "in here",
                    help=parameter.doc,
                )
                continue
            check_origin(
                meaning.page, meaning.decided, "semantics", name, path, self.document, self.report
            )
            if (meaning.value is None) == (meaning.by is None) or (meaning.by is None) != (
                meaning.values is None
            ):
                self.report.add(
                    "E212",
                    f"`{name}` needs `value`, or `by` and `values`",
                    self.document.key_span(path),
                )
            elif (
                meaning.value is not None
                and parameter.values is not None
                and meaning.value not in parameter.values
            ):
                self.value(meaning.value, (*path, "value"), parameter.values, self.others())
            elif meaning.by is not None:
                self.chosen(meaning, path, parameter)

    def others(self) -> str:
        """Where the meanings of a parameter's values are, for one that the kernel does not have."""
        shown = f"`python -m generator explain kernels/{self.spec.semantics.kernel}`"
        return f"{shown} tells what each means, CONTRIBUTING.md how to make a kernel"

    def chosen(self, meaning: model.Meaning, path: KeyPath, parameter: model.Parameter) -> None:
        """A meaning chosen by a field: one value for each of the field's."""
        assert meaning.by is not None and meaning.values is not None
        choices = {f.name: self.choices(f.type) for f in self.spec.fields if self.choices(f.type)}
        if parameter.values is None:
            self.report.add(
                "E212",
                "this parameter takes an expression: give it `value`",
                self.document.key_span(path),
            )
            return
        if self.unknown(meaning.by, (*path, "by"), choices, "a field with a fixed set of values"):
            return
        for key in meaning.values:
            at: KeyPath = (*path, "values", key)
            known = not self.unknown(key, at, choices[meaning.by], f"a value of {meaning.by}")
            if known and meaning.values[key] not in parameter.values:
                self.value(meaning.values[key], at, parameter.values, self.others())
        for key in choices[meaning.by]:
            if key not in meaning.values:
                self.report.add(
                    "E102",
                    f"`{key}` is missing",
                    self.document.key_span((*path, "values")),
                    "in here",
                )
