"""From what a caller asks, arrays and arguments, to an operator that is ready to run, or to all that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specops import arrays, reading, tensor
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood
from specops.validation import Computed, Field, Operator
from specops.vocabulary import DATA_TYPES

Described = tuple[np.dtype, tuple[int, ...]]  # an array, by its data type and its shape


@dataclass(frozen=True)
class Asked:
    """What a caller asks of an output: a data type, other sizes than its own, of an optional one to be there at all.

    None as the data type or the sizes means those that follow from the other arguments.
    """

    wanted: object = True
    dtype: object = None
    sizes: object = None


_UNASKED = Asked(wanted=False)


def compiled(
    operator: Operator,
    inputs: Mapping[str, Described],
    attributes: Mapping[str, object],
    outputs: Mapping[str, Asked],
) -> CompiledOperator:
    """The operator for arrays and arguments.

    Args:
        operator: whose fields they are.
        inputs: each input array, by the field's name.
        attributes: the arguments; of one that is not named, the default.
        outputs: what is asked of outputs; an optional one that is not named is not wanted.

    Raises:
        ValidationError: with every violation.
    """
    request = _Request(operator, inputs, attributes, outputs)
    found = [] if request.is_sound() else request.violations()
    if found:
        raise ValidationError(found)
    return CompiledOperator(operator, request.values, described=False)


class _Request:
    """Fields as far as they are understood: `values`, with what follows from them."""

    def __init__(
        self,
        operator: Operator,
        inputs: Mapping[str, Described],
        attributes: Mapping[str, object],
        outputs: Mapping[str, Asked],
    ) -> None:
        self._operator, self._inputs, self._outputs = operator, inputs, outputs
        self.values: dict[str, Any] = {}
        self._found: list[Violation] = []
        self._unread: set[str] = set()  # fields and parts of tensors that are not known
        self._axes: dict[str, int | tuple[int, ...]] = {}  # as they were given
        for name, (dtype, shape) in inputs.items():
            self._read_input(name, dtype, shape)
        for field in operator.told:
            self._read_argument(field, attributes.get(field.name, field.default))
        operator.complete(self.values, {v.field for v in self._found})
        for name, (dtype, _) in inputs.items():
            if f"{name}.dtype" in self._unread:  # told here, for attributes choose what is allowed
                allowed = operator.data_types(name, self.values)
                self._found.append(arrays.no_data_type(dtype, operator, name, allowed))
        for field in operator.fields:
            if field.kind == "output":
                self._read(field, self._output, field)
        self._unread.update(f.name for f in operator.fields if f.name not in self.values)

    def _read_input(self, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        known = tensor.named(dtype)
        if known is None:
            self._unread.add(f"{name}.dtype")
        self.values[name] = tensor.packed(known or self._operator.data_types(name)[0], shape)

    def _read_argument(self, field: Field, given: object) -> None:
        values = self.values
        if field.axes_of is not None:
            rank = len(values[field.axes_of].sizes)
            self._read(field, reading.axes, given, rank)
            if field.name in values:
                axes = self._axes[field.name] = values[field.name]
                values[field.name] = reading.from_first(axes, rank)
        elif not isinstance(field.default, Computed) or (
            given is not None and given is not field.default
        ):
            self._read(field, reading.argument, field, given)

    def _output(self, field: Field) -> tensor.Tensor | None:
        """The tensor that is allocated for an output; None for one that nobody asks for.

        Where its sizes cannot be computed, these are unread: its data type may still be wrong.
        """
        asked, values = self._outputs.get(field.name, _UNASKED), self.values
        if field.optional is not None and not reading.boolean(asked.wanted):
            return None
        if asked.dtype is not None:
            dtype = _asked_dtype(asked.dtype, self._operator, field.name, values)
        else:
            dtype = _own_dtype(field, values)
        if asked.sizes is not None or field.sizes is None:
            return tensor.packed(dtype, _asked_sizes(asked.sizes, field))
        try:
            if self._unread.isdisjoint(f"{name}.sizes" for name in field.sizes.reads):
                return tensor.packed(dtype, tuple(field.sizes(values)))
        except (KeyError, IndexError, ArithmeticError):
            pass
        self._unread.add(f"{field.name}.sizes")
        return tensor.packed(dtype, ())

    def _read(self, field: Field, reader: Any, *arguments: Any) -> None:
        """Keep what `reader` makes of a field, or why it makes nothing."""
        try:
            self.values[field.name] = reader(*arguments)
        except NotUnderstood as problem:
            name = problem.argument or field.name
            self._found.append(
                self._operator.violation(
                    "field_type", name, problem.found, problem.allowed, field.name
                )
            )
        except ValidationError as error:
            self._found.extend(error.violations)
        except (KeyError, IndexError, ArithmeticError):
            pass  # what an output is follows from fields that a rule refuses

    def is_sound(self) -> bool:
        """Whether plainly nothing is wrong; if not, `violations` tells what is."""
        if self._found or self._unread or not self._operator.accepts(self.values):
            return False
        native = all(dtype.isnative for dtype, _ in self._inputs.values())
        return native and not any(self._negative_sizes())

    def violations(self) -> list[Violation]:
        """All that is wrong."""
        operator, values, found = self._operator, self.values, list(self._found)
        told_as = {
            f"{f.name}.sizes": f.sizes_argument
            for f in operator.fields
            if f.sizes_argument and self._outputs.get(f.name, _UNASKED).sizes is not None
        }
        shown_as = {
            f.name: reading.axes_shown(self._axes[f.name], len(values[f.axes_of].sizes))
            for f in operator.fields
            if f.axes_of is not None and f.name in self._axes
        }
        broken = operator.violations(values, None, frozenset(self._unread), told_as, shown_as)
        found += [self._with_remedy(self._with_range(v)) for v in broken]
        if self._unread and not found:
            found = [operator.not_computable(min(self._unread).partition(".")[0])]
        refused = {v.field for v in found if v.id == "supported_data_type"}
        for name, (dtype, _) in self._inputs.items():
            known = name not in refused and f"{name}.dtype" not in self._unread
            if known and not dtype.isnative:
                found.append(arrays.byte_order(dtype, operator, name))
        found = found or [
            operator.violation("shape", name, f"shape {sizes}", "sizes of at least 0")
            for name, sizes in self._negative_sizes()
        ]
        return self._without_echoes(found)

    def _with_range(self, v: Violation) -> Violation:
        """Of an axis beyond the last one, told with those that there are, by the words for what is no axis."""
        of = next((f.axes_of for f in self._operator.fields if f.name == v.field), None)
        rule = next((r for r in self._operator.rules if r.id == v.id), None)
        if of is None or rule is None or f"{of}.sizes" not in rule.reads:
            return v
        return replace(v, allowed=reading.axes_allowed(len(self.values[of].sizes)))

    def _with_remedy(self, v: Violation) -> Violation:
        """Of integers and booleans that an input may not have, told with what NumPy casts them to without asking."""
        if v.id != "supported_data_type" or v.field not in self._inputs:
            return v
        given, _ = self._inputs[v.field]
        if given.kind not in "iub":
            return v
        names = self._operator.data_types(v.field, self.values)
        allowed = [DATA_TYPES[name].numpy for name in names]
        castable = [d for d in allowed if d.kind in "iuf" and np.can_cast(given, d)]
        if not castable:
            return v
        nearest = min(castable, key=lambda dtype: (dtype.kind == "f", dtype.kind != given.kind))
        return replace(
            v, allowed=f"{v.allowed}; numpy.asarray(x).astype(numpy.{nearest}) makes one of x"
        )

    def _negative_sizes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Outputs that no rule keeps from having less than no elements."""
        for field in self._operator.fields:
            output = self.values.get(field.name) if field.kind == "output" else None
            if output is not None and min(output.sizes, default=0) < 0:
                yield field.name, output.sizes

    def _without_echoes(self, found: list[Violation]) -> list[Violation]:
        """What is wrong with an output because of what is wrong elsewhere is not told once more.

        Its data type and its sizes, where a caller asks for none, follow from other fields.
        """
        operator = self._operator
        allocated = {f.name: f for f in operator.fields if f.kind == "output"}
        lengths = {f.name: f.length_of for f in operator.fields}
        of_data_types = {
            "supported_data_type",
            "data_type",
            *(r.id for r in operator.rules if f"{r.field}.dtype" in r.reads),
        }

        def own(name: str, part: str) -> Any:
            """How a part of an output follows from other fields; None where it is asked for or does not."""
            asked = getattr(self._outputs.get(name, _UNASKED), part)
            if name not in allocated or asked is not None:
                return None
            return getattr(allocated[name], part)

        def behind(source: Any) -> set[str]:
            """The fields that something follows from, through all that is computed of them."""
            if isinstance(source, str):
                return {source.partition(".")[0]}
            out: set[str] = set()
            for name in source.reads if source else ():
                between = operator.derived.get(name) or own(name, "sizes")
                out |= behind(between) if between else {name}
            return out

        def part(v: Violation) -> str:
            return "dtype" if v.id in of_data_types else "sizes"

        wrong: dict[str, set[str]] = {"dtype": set(), "sizes": set()}
        for v in found:
            if own(v.field, part(v)) is None:
                wrong[part(v)].add(lengths.get(v.field) or v.field)  # of a length, the array's

        def follows(v: Violation) -> bool:
            sources = behind(own(v.field, part(v)))
            return v.id != "field_type" and not wrong[part(v)].isdisjoint(sources)

        return [v for v in found if not follows(v)]


def _asked_dtype(asked: object, operator: Operator, field: str, values: Mapping[str, Any]) -> str:
    """The data type that is asked of an output.

    Raises:
        NotUnderstood: it is no data type.
        ValidationError: it is one that NumPy has, but no tensor, or not in this byte order.
    """
    allowed = operator.data_types(field, values)
    try:
        dtype = reading.numpy_dtype(asked, allowed)
    except NotUnderstood as problem:
        raise NotUnderstood(f"dtype {problem.found}", problem.allowed) from None
    name = tensor.named(dtype)
    if name is None or not (dtype.isnative or name in allowed):
        raise ValidationError([arrays.no_data_type(dtype, operator, field, allowed)])
    if not dtype.isnative:
        raise ValidationError([arrays.byte_order(dtype, operator, field, is_output=True)])
    return name


def _asked_sizes(asked: object, field: Field) -> tuple[int, ...]:
    """The sizes that are asked of an output. Raises NotUnderstood, which blames the argument they are given by."""
    try:
        return reading.integers(asked)
    except NotUnderstood as problem:
        raise NotUnderstood(problem.found, problem.allowed, field.sizes_argument) from None


def _own_dtype(field: Field, values: Mapping[str, Any]) -> str:
    """The data type of an output for which a caller names none."""
    if isinstance(field.dtype, Computed):
        return str(field.dtype(values))
    assert field.dtype is not None
    like, _, part = field.dtype.partition(".")
    return str(values[like].dtype) if part else like
