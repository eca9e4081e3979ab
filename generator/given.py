"""What a spec gives as values, of an example or a call: read, and checked field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from generator import model, structure
from generator.diagnostics import Report, suggestion
from generator.expr import bounds
from generator.field_types import field_type
from generator.model import Example, SpecTree
from generator.names import yaml_word
from generator.resolve import Operator
from generator.source import Document, KeyPath
from generator.tensors import Tensor, make_tensor

# From these on a number rounds to infinity.
_OVERFLOW = {
    "float16": 65520.0,
    "bfloat16": 2.0**128 - 2.0**119,
    "float32": 2.0**128 - 2.0**103,
}

_GREATEST = {"float16": "65504", "bfloat16": "3.3895e38", "float32": "3.4028e38"}
_SHOWN = 3  # of the wrong values of a tensor


class Given:
    """Values of an operator's fields as a document has them; what is wrong with them goes to the report."""

    def __init__(
        self, operator: Operator, tree: SpecTree, document: Document, report: Report
    ) -> None:
        self.operator, self.spec = operator, operator.spec
        self.tree, self.document, self.report = tree, document, report
        self.data_types = tree.vocabulary.data_types

    def example(self, example: Example, path: KeyPath) -> dict[str, Any] | None:
        """What an example gives, and literal defaults; None, with reasons in the report, where it is no good."""
        before = self.report.count
        values: dict[str, Any] = {}
        names = {f.name for f in self.spec.fields}
        for part in ("given", "expect"):
            for name in getattr(example, part):
                good = [
                    f.name for f in self.spec.fields if (f.kind == "output") == (part == "expect")
                ]
                if name not in good:
                    message = (
                        f"`{name}` is not a field of this operator"
                        if name not in names
                        else f"`{name}` does not belong in `{part}`"
                    )
                    self.report.add(
                        "E203",
                        message,
                        self.document.key_span((*path, part, name)),
                        "here",
                        help=suggestion(name, good),
                    )
        for field in self.spec.fields:
            part = "expect" if field.kind == "output" else "given"
            place: KeyPath = (*path, part, field.name)
            if field.type != "tensor":
                continue
            if field.name in getattr(example, part):
                values[field.name] = self.tensor(getattr(example, part)[field.name], place)
            elif field.optional is not None:
                values[field.name] = None
            else:
                self.missing(field.name, (*path, part))
        values |= self.attributes(example.given, (*path, "given"))
        return values if self.report.count == before else None

    def attributes(self, given: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
        """The attributes that are given at `path`, and literal defaults of the others; what is wrong is reported."""
        values: dict[str, Any] = {}
        for field in self.spec.fields:
            if field.type == "tensor":
                continue
            if field.name in given:
                values[field.name] = self.attribute(field, given[field.name], (*path, field.name))
            elif not self.computed(field):
                if field.default is None:
                    self.missing(field.name, path)
                values[field.name] = field.default
        return values

    def missing(self, name: str, path: KeyPath) -> None:
        self.report.add("E102", f"`{name}` is missing", self.document.key_span(path), "in here")

    def computed(self, field: model.FieldSpec) -> bool:
        """Whether other fields give its value where it is left out."""
        return field.length_of is not None or field.name in self.operator.defaults

    def tensor(self, given: object, path: KeyPath) -> Tensor | None:
        data = given
        if not isinstance(given, model.TensorData):
            data = structure.validate_tensor(
                given, path, self.document, self.tree.vocabulary, self.report
            )
        if not isinstance(data, model.TensorData):
            return None
        sizes = self.shape(data.data, (*path, "data"))
        good = self.representable(data.data, data.dtype, (*path, "data"))
        if sizes is None or not good:
            return None
        return make_tensor(data.dtype, sizes, self.data_types)

    def shape(self, data: object, path: KeyPath) -> tuple[int, ...] | None:
        if not isinstance(data, list):
            return ()
        inner = [self.shape(d, (*path, i)) for i, d in enumerate(data)]
        if None in inner:
            return None
        for i, shape in enumerate(inner):
            if shape != inner[0]:
                self.report.add(
                    "E223",
                    "the data is not rectangular",
                    self.document.span((*path, i)),
                    "differs from the first",
                )
                return None
        first = inner[0] if inner else ()
        assert first is not None
        return (len(data), *first)

    def representable(self, data: object, dtype: str, path: KeyPath) -> bool:
        """Whether all of the data are values of the type; of many that are not, the first are shown."""
        wrong = list(self.wrong(data, dtype, path))
        shown = wrong[: _SHOWN if len(wrong) > _SHOWN + 1 else None]
        for value, place in shown:
            self.refuse(value, dtype, place)
        if more := wrong[len(shown) :]:
            message = f"{len(more)} more of these are not values of {dtype}"
            self.report.add("E223", message, self.document.span(more[0][1]), "the first of them")
        return not wrong

    def wrong(self, data: object, dtype: str, path: KeyPath) -> Iterator[tuple[object, KeyPath]]:
        """What is not a value of the type, and where."""
        if isinstance(data, list):
            for i, inner in enumerate(data):
                yield from self.wrong(inner, dtype, (*path, i))
        elif not self.fits(data, dtype):
            yield data, path

    def fits(self, data: object, dtype: str) -> bool:
        entry = self.data_types[dtype]
        if entry.kind == "bool" or isinstance(data, bool):
            return entry.kind == "bool" and isinstance(data, bool)
        if entry.kind == "float":
            return isinstance(data, int | float) and self.finite(data, entry.numpy)
        low, high = _range(entry)
        return isinstance(data, int) and low <= data <= high

    def refuse(self, data: object, dtype: str, path: KeyPath) -> None:
        """Tell of what is not a value of the type."""
        entry, span = self.data_types[dtype], self.document.span(path)
        label, help = _allowed(entry), ""
        kind = "true or false" if entry.kind == "bool" else "a number"
        if data is None:
            label, help = "found nothing", f"write {kind}"
        elif isinstance(data, str):
            label = "a text"
            word = data.lower().strip("+-.")
            special = entry.kind == "float" and word in ("nan", "inf", "infinity")
            help = "write .nan, .inf or -.inf" if special else f"write {kind}, without quotes"
        number = isinstance(data, int | float) and not isinstance(data, bool)
        written = self.report.marked(span) if number else yaml_word(data)
        self.report.add(
            "E223", f"`{written[:40]}` is not a value of {dtype}", span, label, help=help
        )

    def finite(self, data: Any, dtype: str) -> bool:
        """Whether a number that is written as a finite one is finite in its type."""
        return not abs(data) >= _OVERFLOW.get(dtype, math.inf) or data in (math.inf, -math.inf)

    def attribute(self, field: model.FieldSpec, given: Any, path: KeyPath) -> object:
        enum = self.tree.vocabulary.enums.get(field.type)
        low, high = field_type(field.type).range or (0, 0)
        if field.type.endswith("[]"):
            good = isinstance(given, list) and all(
                type(g) is int and low <= g <= high for g in given
            )
            given = tuple(given) if isinstance(given, list) else given
            if good and len(given) > bounds.ARRAY:
                self.report.add(
                    "E223",
                    f"an array has at most {bounds.ARRAY} entries",
                    self.document.span(path),
                    f"{len(given)} entries",
                )
                return None
        elif field_type(field.type).range is not None:
            good = type(given) is int and low <= given <= high
        elif field.type == "bool":
            good = isinstance(given, bool)
        elif field.type == "float":
            real = isinstance(given, int | float) and not isinstance(given, bool)
            good = real and math.isfinite(given)
        else:
            good = enum is not None and isinstance(given, str) and given in enum.values
        if not good:
            self.report.add(
                "E104",
                f"expected {field.type} for `{field.name}`",
                self.document.span(path),
                "found nothing" if given is None else f"found `{yaml_word(given)[:40]}`",
                help=suggestion(str(given), enum.values)
                if enum
                else f"{field.type} is {field_type(field.type).given}",
            )
        return given


def _range(entry: model.DataTypeEntry) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = 8 * entry.bytes
    if entry.kind == "signed":
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1


def _allowed(entry: model.DataTypeEntry) -> str:
    """The values of a data type, in words."""
    if entry.kind == "bool":
        return "true or false"
    if entry.kind == "float":
        most = _GREATEST.get(entry.numpy)
        return f"a number from -{most} to {most}" if most else "a number"
    low, high = _range(entry)
    return f"a whole number from {low} to {high}"
