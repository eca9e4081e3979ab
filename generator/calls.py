"""All values of a call, from those that are given: defaults, lengths, derived values, outputs that are allocated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generator import model, rule_functions
from generator.expr import NO_VALUE, Expr, bounds
from generator.expr.evaluator import Budget
from generator.field_types import field_type
from generator.names import is_quoted_number, yaml_word
from generator.resolve import Operator
from generator.tensors import Tensor, make_tensor

# How a value is written, by its type in Python.
_WRITTEN = {
    tuple: "a list of whole numbers",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "not there",
}


class Unfit(ValueError):
    """A change that does not fit what it is of, as "Axes" or "InputTensor.sizes"."""

    def __init__(self, target: str, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.target, self.help = target, help


class Calls:
    """Calls of one operator. What the expressions take is counted in `budget`, where that is given."""

    def __init__(
        self,
        operator: Operator,
        data_types: Mapping[str, model.DataTypeEntry],
        budget: Budget | None = None,
    ) -> None:
        self.operator, self.spec = operator, operator.spec
        self.data_types, self.budget = data_types, budget

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """With the defaults of arrays, the lengths and the derived values; what cannot be computed is left out."""
        values = dict(given)
        for name, default in self.operator.defaults.items():
            if name not in values:
                self._compute(values, name, default)
        for field in self.spec.fields:
            if field.length_of in values:
                values.setdefault(field.name, len(values[field.length_of]))
        for name, expression in self.operator.derived.items():
            self._compute(values, name, expression)
        return values

    def of_one_input(
        self, values: dict[str, Any], sizes: tuple[int, ...], table: model.SupportRow
    ) -> dict[str, Any]:
        """All values of a call with one input of these sizes, and the outputs that are not optional."""
        first, *others = self.spec.tensors("input")
        dtype = table.tensors[first.name].dtypes[0]
        values[first.name] = make_tensor(dtype, sizes, self.data_types)
        values |= {field.name: None for field in (*others, *self.spec.tensors("output"))}
        values = self.complete(values)
        for field in self.spec.tensors("output"):
            if field.optional is None:
                dtype = self._output_dtype(field, values, table)
                values[field.name] = make_tensor(dtype, sizes, self.data_types)
        values = self.complete(values)
        self._allocate(values)
        return self.complete(values)

    def _output_dtype(
        self, field: model.FieldSpec, values: dict[str, Any], table: model.SupportRow
    ) -> str:
        """The data type of an output that nobody describes: as its field says, else the first that it may have."""
        if field.name in self.operator.dtypes:
            chosen = dict(values)
            self._compute(chosen, field.name, self.operator.dtypes[field.name])
            if field.name in chosen:
                return str(chosen[field.name])
        elif field.dtype is not None:
            source, _, part = field.dtype.partition(".")
            if not part:
                return source
            if values[source] is not None:
                return str(values[source].dtype)
        return table.tensors[field.name].dtypes[0]

    def changed(self, first: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        """The first example with what a `violate` changes. Raises Unfit."""
        values = dict(first)
        # A change of sizes or data type makes a packed tensor; so these come first.
        for target, value in sorted(
            patch.items(), key=lambda item: not item[0].endswith((".sizes", ".dtype"))
        ):
            name, _, attribute = target.partition(".")
            given = tuple(value) if isinstance(value, list) else value
            if not attribute:
                like = first[name] if name in first else self.complete(first)[name]
                values[name] = self._typed(given, like, target, self.spec.field(name).type)
                continue
            tensor: Tensor | None = values[name]
            if tensor is None:
                raise Unfit(target, f"the first example has no `{name}`")
            self._check_chosen(target, name, attribute)
            if isinstance(getattr(tensor, attribute), tuple) and type(given) is int:
                given = (given,) * len(tensor.sizes)
            given = self._typed(given, getattr(tensor, attribute), target, "uint[]")
            if attribute in ("sizes", "dtype"):
                sizes = given if attribute == "sizes" else tensor.sizes
                values[name] = make_tensor(
                    given if attribute == "dtype" else tensor.dtype, sizes, self.data_types
                )
            else:
                values[name] = replace(tensor, **{attribute: given})
                if attribute == "strides" and f"{name}.total_bytes" not in patch:
                    item = self.data_types[tensor.dtype].bytes
                    values[name] = replace(
                        values[name],
                        total_bytes=rule_functions.buffer_bytes(tensor.sizes, given, item),
                    )
        for field in self.spec.fields:
            if field.length_of in patch and field.name not in patch:
                values.pop(field.name, None)
        values = self.complete(values)
        if self.operator.source.dialect != "directml":
            self._allocate(values)
        return values

    def _check_chosen(self, target: str, name: str, attribute: str) -> None:
        """Callers choose this part of a tensor. Raises Unfit."""
        if self.operator.source.dialect == "directml":
            return
        field = self.spec.field(name)
        chosen = field.kind == "input" or (attribute == "dtype" and self.spec.dtype_argument(field))
        if attribute not in ("sizes", "dtype") or not chosen:
            chosen = "sizes and dtype of inputs, and the dtype of an output that has a choice"
            raise Unfit(target, f"callers of a function choose {chosen}, not `{target}`")

    def _allocate(self, values: dict[str, Any]) -> None:
        """Outputs as the functions make them: nobody describes them."""
        for field in self.spec.tensors("output"):
            if values[field.name] is not None and field.name in self.operator.sizes:
                tensor = values[field.name]
                sizes = self.operator.sizes[field.name]
                self._compute(values, field.name, sizes)
                sizes = values.get(field.name, tensor.sizes)
                values[field.name] = make_tensor(tensor.dtype, tuple(sizes), self.data_types)

    def _typed(self, value: Any, like: Any, target: str, type_: str) -> Any:
        """The value, if it is of the type of what stands there. Raises Unfit."""
        if target.endswith(".dtype") and not (isinstance(value, str) and value in self.data_types):
            raise Unfit(target, f"`{yaml_word(value)[:40]}` is not a data type")
        allowed = field_type(type_).range
        low, high = allowed or (0, 0)
        numbers = isinstance(value, tuple) and all(
            type(v) is int and low <= v <= high for v in value
        )
        if isinstance(value, tuple) and len(value) > bounds.ARRAY:
            raise Unfit(target, f"an array has at most {bounds.ARRAY} entries")
        if type(value) is not type(like) or (isinstance(like, tuple) and not numbers):
            written = _WRITTEN.get(type(like), "a tensor")
            if isinstance(like, tuple):
                written += f" from {low} to {high}"
            entries = value if isinstance(value, tuple) else (value,)
            help = "a number has no quotes" if any(map(is_quoted_number, entries)) else ""
            raise Unfit(target, f"`{target}` is {written}; found `{yaml_word(value)[:40]}`", help)
        if type(value) is int and allowed is not None and not low <= value <= high:
            raise Unfit(target, f"`{target}` goes from {low} to {high}")
        if isinstance(value, str) and not re.fullmatch(r"\w+", value, re.ASCII):
            raise Unfit(target, f"`{target}` is a word of letters, digits and _")
        return value

    def _compute(self, values: dict[str, Any], name: str, expression: Expr) -> None:
        values.pop(name, None)
        try:
            result = expression.evaluate(values, self.data_types, self.budget)
        except NO_VALUE:
            return
        values[name] = tuple(result) if isinstance(result, range) else result
