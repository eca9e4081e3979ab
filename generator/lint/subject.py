"""A spec, and what the checks of its parts have in common."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

from generator import names
from generator.diagnostics import Report, suggestion
from generator.expr import Expr, language
from generator.model import SpecTree
from generator.resolve import Operator
from generator.source import KeyPath

TODO = "TODO"  # in a draft

# Names with a meaning in generated modules, besides Python's own and the functions of expressions.
MODULE_NAMES = {
    "Allowed", "Any", "Asked", "Callable", "ClassVar", "CompiledOperator", "Computed", "Field", "Literal", "OPERATOR",
    "Operator", "OperatorDesc", "Rule", "Sequence", "Support", "SupportsIndex", "TENSOR_PAGE", "TENSOR_RULES", "Tensor",
    "TensorDesc", "VERSIONS", "VersionedOperator", "Versions", "arrays", "dataclass", "functions", "lower", "lowered",
    "lru_cache", "np", "npt", "overload", "request", "types", "validate",
}  # fmt: skip
BUILTINS = {*dir(builtins)} - {"input"}  # ONNX has tensors of that name, and no module asks a user


class Subject:
    """The spec of an operator, whose cross-references are checked."""

    def __init__(self, operator: Operator, tree: SpecTree, report: Report) -> None:
        self.operator, self.spec, self.document = operator, operator.spec, operator.source.document
        self.vocabulary, self.shared, self.report = tree.vocabulary, tree.document, report
        self.start = report.count  # what is told beyond these is of this check
        self.names = [f.name for f in self.spec.fields]
        self.specs = tree.specs

    def expressions(self) -> list[tuple[Expr, KeyPath]]:
        """All that the generated module computes, and where it is written."""
        places: list[tuple[Expr, KeyPath]] = []
        op = self.operator
        of_fields = {"default": op.defaults, "sizes": op.sizes, "dtype": op.dtypes}
        for i, field in enumerate(self.spec.fields):
            for key, found in of_fields.items():
                if field.name in found:
                    places.append((found[field.name], ("fields", i, key)))
        for i, entry in enumerate(self.spec.derived):
            if entry.name in self.operator.derived:
                places.append((self.operator.derived[entry.name], ("derived", i, "value")))
        for rule in self.operator.rules:
            written: KeyPath = (*rule.path, "require")
            path = written if written in self.document.values else (*rule.path, "use")
            places.append((rule.require, path))
        return places

    def functions(self) -> list[str]:
        """The names of functions that compute values of fields."""
        fields = [names.snake_case(f.name) for f in self.spec.fields]
        return [f"{name}_{what}" for name in fields for what in ("default", "dtype", "sizes")]

    def choices(self, type: str) -> list[str]:
        if type == "bool":
            return ["false", "true"]
        enum = self.vocabulary.enums.get(type)
        return list(enum.values) if enum else []

    def unknown(
        self, name: str, path: KeyPath, known: Iterable[str], what: str = "a field of this operator"
    ) -> bool:
        known = list(known)
        if name in known:
            return False
        # A name is the value at the path, or the last key of the path itself.
        at_key = name in str(path[-1]).split(".") and path in self.document.keys
        self.report.add(
            "E203",
            f"`{name}` is not {what}",
            self.document.key_span(path) if at_key else self.document.span(path),
            "unknown name",
            help=suggestion(name, known),
        )
        return True

    def value(self, value: str, path: KeyPath, known: Iterable[str], more: str = "") -> None:
        """`more` is what to do where none of the known ones is meant."""
        help = suggestion(value, known)
        if more and not help.endswith("?"):
            help += f"; {more}"
        self.report.add(
            "E103",
            f"`{value}` is not one of the allowed values",
            self.document.span(path),
            "unknown value",
            help=help,
        )

    def taken(self, name: str, path: KeyPath, also: Iterable[str] = ()) -> None:
        """Names become functions and parameters of a generated module, where they may not replace another."""
        own = {self.operator.source.name, names.host_class(self.spec.semantics.kernel)}
        known = {*BUILTINS, *language.FUNCTIONS, *MODULE_NAMES, *own, *also}
        if name in known or keyword.iskeyword(name):
            self.report.add(
                "E105",
                f"`{name}` has another meaning in the generated module",
                self.document.span(path),
                "taken",
                help="choose another name",
            )
