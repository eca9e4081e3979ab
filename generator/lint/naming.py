"""The names of an operator and of its file, and its version."""

from __future__ import annotations

from generator import names
from generator.lint.subject import BUILTINS, MODULE_NAMES, TODO, Subject

# Of builtins, as functions.
_NUMPY_NAMES = {"abs", "all", "any", "max", "min", "pow", "round", "sum"}
_PACKAGE_NAMES = {name for exports in names.PACKAGE_NAMES.values() for name in exports}


class Naming(Subject):
    def check(self) -> None:
        self.name()
        self.function()
        self.version()

    def name(self) -> None:
        """The command line calls an operator by what stands behind these prefixes, too."""
        name = self.spec.operator.removeprefix(f"{TODO}_")  # of a draft that is told of
        if self.operator.source.dialect == "directml" and not name.startswith("DML_OPERATOR_"):
            self.report.add(
                "E105",
                f"`{self.spec.operator}` does not begin with DML_OPERATOR_",
                self.document.span(("operator",)),
                help="write the name in DML_OPERATOR_TYPE, as DML_OPERATOR_ARGMAX",
            )
            return
        short = self.spec.operator.removeprefix("DML_OPERATOR_").removeprefix("DML_")
        if not short[:1].isalpha():
            self.report.add(
                "E105",
                f"`{self.spec.operator}` has no name behind its prefix",
                self.document.span(("operator",)),
                help="write the page's name, as in DML_OPERATOR_ARGMAX",
            )
        elif TODO not in self.spec.operator:
            self.file()

    def file(self) -> None:
        """It has the operator's name; that of ONNX, where pages write ArgMax, with _ before any words of it."""
        source, name = self.operator.source, self.spec.operator
        if source.dialect == "onnx" and not name[0].isupper():
            self.report.add(
                "E105",
                f"`{name}` does not begin with a capital letter",
                self.document.span(("operator",)),
                help="write the page's name, as in ReduceMax",
            )
            return
        wanted, found = names.file_name(name, source.dialect), source.family
        same = wanted == found
        if source.dialect == "onnx":
            same = name.lower() == found.replace("_", "")
        if not same:
            version = source.name.removeprefix(found)
            self.report.add(
                "E105",
                f"`{name}` is another operator than the file's name says",
                self.document.span(("operator",)),
                f"the file is {source.name}.yaml",
                help=f"name the file {wanted}{version}.yaml, or correct the operator's name"
                if names.is_module(wanted)
                else f"write the operator's name as the file's, `{found}`",
            )

    def function(self) -> None:
        """The file's name becomes a function's, beside what its module calls."""
        name = self.operator.source.family
        called = set().union(*(expression.calls() for expression, _ in self.expressions()))
        if name in called | {*self.functions()} | MODULE_NAMES | _PACKAGE_NAMES | (
            BUILTINS - _NUMPY_NAMES
        ):
            self.report.add(
                "E105",
                f"`{name}`, the file's name, has another meaning in the generated module",
                self.document.span(("operator",)),
                "its function's name",
                help="name the file otherwise",
            )

    def version(self) -> None:
        """What says from when on the operator exists; ONNX's file names end in it."""
        source = self.operator.source
        given = {"introduced": self.spec.introduced, "since_version": self.spec.since_version}
        wanted = {"directml": "introduced", "onnx": "since_version"}.get(source.dialect)
        for key, value in given.items():
            if key == wanted and value is None:
                self.report.add("E102", f"`{key}` is missing", self.document.span(()), "in here")
            elif key != wanted and value is not None:
                self.report.add(
                    "E230",
                    f"`{key}` has no meaning in the dialect {source.dialect}",
                    self.document.key_span((key,)),
                    "not here",
                )
        newest = self.vocabulary.opsets.newest
        if source.dialect == "onnx" and (self.spec.since_version or 0) > newest:
            self.report.add(
                "E230",
                f"version {self.spec.since_version} is newer than the newest operator set, {newest}",
                self.document.span(("since_version",)),
                help="raise `opsets.newest` in specs/vocabulary.yaml",
            )
        if source.dialect == "onnx" and self.spec.since_version is not None:
            if self.spec.since_version < 1:
                self.report.add(
                    "E230",
                    f"there is no version {self.spec.since_version}",
                    self.document.span(("since_version",)),
                    "at least 1",
                    help="it is the operator set that brought the operator as the page has it",
                )
                return
            ending = f"_{self.spec.since_version}"
            if not source.name.endswith(ending):
                self.report.add(
                    "E105",
                    f"the file name `{source.name}.yaml` does not end in the version",
                    self.document.span(("since_version",)),
                    help=f"name it {source.family}{ending}.yaml",
                )
