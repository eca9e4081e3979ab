"""Fields and derived values: their names, kinds, defaults, and what outputs have."""

from __future__ import annotations

import math

from generator import model, names
from generator.diagnostics import Report, suggestion
from generator.field_types import field_type
from generator.lint.entries import check_unique
from generator.lint.subject import Subject
from generator.model import Spec
from generator.source import KeyPath

_ARGUMENTS = {"compiled", "inputs", "opset", "out", "output_dtype", "self", "x"}


def sound_members(source: Spec, report: Report) -> bool:
    """Whether each field has a name of its own, and a type of its kind: all that reads fields goes by these."""
    before, document = report.count, source.document
    seen: dict[str, KeyPath] = {}
    for i, field in enumerate(source.spec.fields):
        path: KeyPath = ("fields", i)
        check_unique(seen, field.name, path, document, report, "name")
        is_tensor = field.type == "tensor"
        numbers = field.type == "int[]" and source.dialect == "onnx"
        allowed = {"input": is_tensor or numbers, "output": is_tensor}
        if not allowed.get(field.kind, not is_tensor):
            kinds = "inputs and outputs are tensors, attributes are not; an ONNX input may be int[]"
            report.add(
                "E214",
                f"`{field.name}` is {field.kind} but its type is {field.type}",
                document.span((*path, "type")),
                help=kinds,
            )
    return report.count == before


class Fields(Subject):
    def check(self) -> None:
        self.fields()
        self.arguments()
        self.derived()

    def fields(self) -> None:
        arguments: dict[str, str] = {}
        for i, field in enumerate(self.spec.fields):
            path: KeyPath = ("fields", i)
            self.taken(field.name, (*path, "name"))
            if field.told or field in self.spec.tensors("input")[1:]:
                make = names.snake_case if field.told else names.array_argument
                argument = make(field.name)
                self.taken(argument, (*path, "name"), _ARGUMENTS)
                other = arguments.setdefault(argument, field.name)
                if other != field.name:
                    self.report.add(
                        "E211",
                        f"`{field.name}` and `{other}` are both the argument `{argument}`",
                        self.document.span((*path, "name")),
                        "again",
                    )
            self.output(field, path)
            for key, kinds in (("length_of", ["uint[]"]), ("axes_of", ["tensor"])):
                target = getattr(field, key)
                known = [
                    f.name
                    for f in self.spec.fields
                    if f.type in kinds and (key == "length_of" or f.kind == "input")
                ]
                if target is not None:
                    what = "an input" if key == "axes_of" else "a `uint[]`"
                    self.unknown(target, (*path, key), known, f"{what} of this operator")
            if field.one_for_each is not None and not field.type.endswith("[]"):
                self.report.add(
                    "E214",
                    f"`one_for_each` belongs to an array, and `{field.name}` is none",
                    self.document.key_span((*path, "one_for_each")),
                    "not here",
                )
            self.default(field, (*path, "default"))

    def arguments(self) -> None:
        """All arguments of the function have names of their own."""
        taken = {names.snake_case(f.name) for f in self.spec.fields if f.told}
        taken |= {names.array_argument(f.name) for f in self.spec.tensors("input")[1:]}
        for i, field in enumerate(self.spec.fields):
            if field.kind != "output":
                continue
            for key in ("optional", "sizes_argument"):
                name = getattr(field, key)
                if name is None:
                    continue
                own = [name, f"{name}_dtype"] if key == "optional" else [name]
                for argument in own:
                    if argument in taken:
                        self.report.add(
                            "E211",
                            f"`{argument}` is already an argument of the function",
                            self.document.span(("fields", i, key)),
                            "again",
                        )
                taken.update(own)

    def output(self, field: model.FieldSpec, path: KeyPath) -> None:
        """What only outputs have, and all of them."""
        keys = ("sizes", "dtype", "sizes_argument", "optional")
        if field.kind != "output":
            for key in keys:
                if getattr(field, key) is not None:
                    self.report.add(
                        "E214",
                        f"`{key}` belongs to an output, and `{field.name}` is none",
                        self.document.key_span((*path, key)),
                        "not here",
                    )
            return
        lacks = [] if field.sizes or field.sizes_argument else ["`sizes`"]
        lacks += ["`dtype`"] if field.dtype is None else []
        if lacks:
            self.report.add(
                "E214",
                f"output `{field.name}` needs {' and '.join(lacks)}",
                self.document.span((*path, "name")),
                help="the functions allocate it: `sizes` says how large, `dtype` of which type where none is asked for",
            )
        if field.dtype is not None and not field.chooses_dtype:
            known = [
                *self.spec.dtypes(field.name),
                *(f"{t.name}.dtype" for t in self.spec.tensors("input")),
            ]
            if field.dtype not in known:
                self.value(field.dtype, (*path, "dtype"), known)
        for key in ("sizes_argument", "optional"):
            argument = getattr(field, key)
            if argument is not None:
                self.taken(argument, (*path, key), _ARGUMENTS)

    def default(self, field: model.FieldSpec, path: KeyPath) -> None:
        if field.default is None:
            return
        if field.type.endswith("[]") and isinstance(field.default, str):
            self.default_expression(field, path)
            return
        enum = self.vocabulary.enums.get(field.type)
        known = list(enum.values) if enum else []
        type_ = field_type(field.type)
        finite = not isinstance(field.default, float) or math.isfinite(field.default)
        wrong = type(field.default) is not type_.default or not finite
        if type(field.default) is int and type_.range is not None:
            low, high = type_.range
            wrong = wrong or not low <= field.default <= high
        if wrong or (enum and field.default not in known):
            help = suggestion(str(field.default), known) or type_.allowed or "leave it out"
            if field.type.endswith("[]"):
                help = 'the default of an array is an expression in quotes, as in "[0, 0]"'
            if names.is_quoted_number(field.default):
                help = f"a number has no quotes; {help}"
            self.report.add(
                "E103",
                f"`{names.yaml_word(field.default)}` is not a value of {field.type}",
                self.document.span(path),
                "unknown value",
                help=help,
            )

    def default_expression(self, field: model.FieldSpec, path: KeyPath) -> None:
        """Functions compute it where the array is not given, field by field."""
        if field.axes_of is not None:
            self.report.add(
                "E214",
                f"`{field.name}` has `axes_of`, so it has no default",
                self.document.key_span(path),
                "not here",
                help="callers give the axes; leave out `default` or `axes_of`",
            )
        above = set(self.names[: self.names.index(field.name)])
        default = self.operator.defaults.get(field.name)
        for name in default.names() if default else ():
            read = self.spec.field(name).length_of or name
            if read not in above and read in self.operator.defaults:
                known = "itself" if read == field.name else f"the default of `{read}`"
                self.report.add(
                    "E203",
                    f"the default of `{field.name}` needs {known}",
                    self.document.span(path),
                    f"reads `{name}`",
                    help="it may read arrays with a default where they stand above it",
                )

    def derived(self) -> None:
        """Their names stand beside those of fields, in expressions and as functions."""
        seen: dict[str, KeyPath] = {}
        for i, entry in enumerate(self.spec.derived):
            path: KeyPath = ("derived", i)
            self.taken(entry.name, (*path, "name"), [*self.names, *self.functions()])
            check_unique(seen, entry.name, path, self.document, self.report, "name")
