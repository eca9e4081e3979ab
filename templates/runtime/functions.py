"""What the functions on arrays share: from arrays and arguments to an operator that is ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specops import arrays, reading, tensor
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood
from specops.validation import Computed, Field, Operator
from specops.vocabulary import DATA_TYPES


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
    inputs: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    attributes: Mapping[str, object],
    outputs: Mapping[str, Asked],
) -> CompiledOperator:
    """The operator for arrays and arguments.

    Args:
        operator: whose fields they are.
        inputs: data type and shape of each input array, by the field's name.
        attributes: the arguments; of one that is not named, the default.
        outputs: what is asked of outputs; an optional one that is not named is not wanted.

    Raises:
        ValidationError: with every violation.
    """
    found: list[Violation] = []
    values: dict[str, Any] = {}
    unread: set[str] = set()  # fields and parts of tensors that are not known
    shown_as: dict[str, str] = {}  # axes as they were given

    def read(field: Field, reader: Any, *arguments: Any) -> None:
        try:
            values[field.name] = reader(*arguments)
        except NotUnderstood as problem:
            found.append(
                operator.violation(
                    "field_type",
                    problem.argument or field.name,
                    problem.found,
                    problem.allowed,
                    field.name,
                )
            )
        except ValidationError as error:
            found.extend(error.violations)
        except (KeyError, IndexError, ArithmeticError):
            pass  # what an output is follows from fields that a rule refuses

    for name, (dtype, shape) in inputs.items():
        known = tensor.named(dtype)
        if known is None:
            unread.add(f"{name}.dtype")
        values[name] = tensor.packed(known or operator.data_types(name)[0], shape)
    for field in operator.told():
        given = attributes.get(field.name, field.default)
        if field.axes_of is not None:
            rank = len(values[field.axes_of].sizes)
            read(field, reading.axes, given, rank)
            if field.name in values:
                shown_as[field.name] = reading.axes_shown(values[field.name], rank)
                values[field.name] = reading.from_first(values[field.name], rank)
        elif not isinstance(field.default, Computed) or (
            given is not None and given is not field.default
        ):
            read(field, reading.argument, field, given)
    operator.complete(values, {v.field for v in found})
    for name, (dtype, _) in inputs.items():
        if f"{name}.dtype" in unread:  # told here, for attributes choose what is allowed
            allowed = operator.data_types(name, values)
            found.append(arrays.no_data_type(dtype, operator, name, allowed))
    for field in operator.fields:
        if field.kind == "output":
            asked = outputs.get(field.name, _UNASKED)
            read(field, _output, field, values, asked, operator, unread)
    unread |= {f.name for f in operator.fields if f.name not in values}
    told_as = {
        f"{f.name}.sizes": f.sizes_argument
        for f in operator.fields
        if f.sizes_argument and outputs.get(f.name, _UNASKED).sizes is not None
    }
    broken = operator.violations(values, None, frozenset(unread), told_as, shown_as)
    broken = [_with_range(v, operator, values) for v in broken]
    found += [_with_remedy(v, operator, values, inputs) for v in broken]
    if unread and not found:
        found = [operator.not_computable(min(unread).partition(".")[0])]
    refused = {v.field for v in found if v.id == "supported_data_type"}
    for name, (dtype, _) in inputs.items():
        if not dtype.isnative and name not in refused and f"{name}.dtype" not in unread:
            found.append(arrays.byte_order(dtype, operator, name))
    found = found or list(_negative_sizes(operator, values))
    if found:
        raise ValidationError(_without_echoes(found, operator, outputs))
    return CompiledOperator(operator, values, described=False)


def _with_range(v: Violation, operator: Operator, values: Mapping[str, Any]) -> Violation:
    """Of an axis beyond the last one, told with those that there are, by the words for what is no axis."""
    of = next((f.axes_of for f in operator.fields if f.name == v.field), None)
    rule = next((r for r in operator.rules if r.id == v.id), None)
    if of is None or rule is None or f"{of}.sizes" not in rule.reads:
        return v
    return replace(v, allowed=reading.axes_allowed(len(values[of].sizes)))


def _with_remedy(
    v: Violation,
    operator: Operator,
    values: Mapping[str, Any],
    inputs: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
) -> Violation:
    """Of integers and booleans that an input may not have, told with what NumPy casts them to without asking."""
    if (
        v.id != "supported_data_type"
        or v.field not in inputs
        or inputs[v.field][0].kind not in "iub"
    ):
        return v
    given = inputs[v.field][0]
    allowed = [DATA_TYPES[name].numpy for name in operator.data_types(v.field, values)]
    castable = [dtype for dtype in allowed if dtype.kind in "iuf" and np.can_cast(given, dtype)]
    castable.sort(key=lambda dtype: (dtype.kind == "f", dtype.kind != given.kind))
    if not castable:
        return v
    return replace(v, allowed=f"{v.allowed}; astype(numpy.{castable[0]}) makes one")


def _negative_sizes(operator: Operator, values: Mapping[str, Any]) -> Iterator[Violation]:
    """What is told where no rule keeps an output from having less than no elements."""
    for field in operator.fields:
        output = values[field.name] if field.kind == "output" else None
        if output is not None and min(output.sizes, default=0) < 0:
            text = f"shape {output.sizes}"
            yield operator.violation("shape", field.name, text, "sizes of at least 0")


def _without_echoes(
    found: list[Violation], operator: Operator, outputs: Mapping[str, Asked]
) -> list[Violation]:
    """What is wrong with an output because of what is wrong elsewhere is not told once more.

    Its data type and its sizes, where a caller asks for none, follow from other fields.
    """
    allocated = {f.name: f for f in operator.fields if f.kind == "output"}
    lengths = {f.name: f.length_of for f in operator.fields}
    of_data_types = {
        "supported_data_type",
        "data_type",
        *(r.id for r in operator.rules if f"{r.field}.dtype" in r.reads),
    }

    def own(name: str, part: str) -> Any:
        """How a part of an output follows from other fields; None where it is asked for or does not."""
        asked = getattr(outputs.get(name, _UNASKED), part)
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


def _output(
    field: Field,
    values: Mapping[str, Any],
    asked: Asked,
    operator: Operator,
    unread: set[str],
) -> tensor.Tensor | None:
    """The tensor that is allocated for an output; None for one that nobody asks for.

    Where its sizes cannot be computed, these are added to what is `unread`: its data type may still be wrong.
    """
    if field.optional is not None and not reading.boolean(asked.wanted):
        return None
    if asked.dtype is not None:
        dtype = _asked_dtype(asked.dtype, operator, field.name, values)
    else:
        dtype = _own_dtype(field, values)
    if asked.sizes is not None or field.sizes is None:
        return tensor.packed(dtype, _asked_sizes(asked.sizes, field))
    try:
        if unread.isdisjoint(f"{name}.sizes" for name in field.sizes.reads):
            return tensor.packed(dtype, tuple(field.sizes(values)))
    except (KeyError, IndexError, ArithmeticError):
        pass
    unread.add(f"{field.name}.sizes")
    return tensor.packed(dtype, ())


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


KEPT = 1024  # compiled operators of a function, one for each shape and each set of arguments: some 6 KB each

Inputs = tuple[tuple[np.dtype, tuple[int, ...]], ...]  # data type and shape of each input array

# Types themselves: a class derived from them may be hashed, iterated or read as a number as it likes.
_INTEGERS = frozenset({int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})
_FLOATS = frozenset(np.dtype(code).type for code in np.typecodes["Float"])
_SEQUENCES = frozenset({list, tuple, range, np.ndarray})
_FROZEN = _INTEGERS | _FLOATS | {type(None), str, float, bool, np.bool_, type}


def _frozen(value: Any) -> Any:
    """A value of another type as part of a cache's key; a TypeError where it has no form in which equal means same.

    Axes and sizes as a range, a torch.Size or members of an IntEnum are what they would be as a tuple of integers.
    """
    kind = type(value)
    if kind is range and value[reading.MAX_ENTRIES :]:
        raise TypeError("a range may have any number of entries")
    if kind in _SEQUENCES or (issubclass(kind, tuple) and kind.__iter__ is tuple.__iter__):
        return tuple([v if type(v) is int else _index(v) for v in value])
    if issubclass(kind, np.dtype):
        return value
    return _index(value)


def _index(value: object) -> int:
    kind = type(value)
    if kind in _INTEGERS:
        return int(value)  # type: ignore[call-overload, no-any-return]
    if issubclass(kind, int) and kind is not bool and kind.__index__ is int.__index__:
        return int.__index__(value)  # type: ignore[arg-type]
    raise TypeError(f"{kind.__name__} is no key")


def cached(make: Any, inputs: Sequence[np.ndarray], *arguments: Any) -> Any:
    """`make(inputs, ...)` from its cache, or made anew where an argument cannot be a key of it.

    It is told the data type and the shape of each input array.
    """
    described = tuple([(array.dtype, array.shape) for array in inputs])
    try:
        # Most are as they are: 0.05 us less for each than by a call.
        key = [a if type(a) in _FROZEN else _frozen(a) for a in arguments]
    except TypeError:
        compiled = make.__wrapped__(described, *arguments)
        # Such arguments may run code that changes an array's shape.
        compiled.checked(inputs)
        return compiled
    try:
        return make(described, *key)
    except ValidationError:
        # Told of the arguments as they were given, not of the key.
        return make.__wrapped__(described, *arguments)


def output_dtype(asked: object, out: Any, position: int = 0) -> object:
    """The data type that is asked of an output; where none is, that of the array at its position in `out`.

    Its name, or one without a name itself, which is refused.
    """
    if asked is not None or out is None:
        return asked
    several = out if isinstance(out, tuple | list) else (out,)
    if position < len(several) and issubclass(type(several[position]), np.ndarray):
        # Of a derived class, which may say of itself what is not so, as NumPy has it.
        dtype = np.asarray(several[position]).dtype
        return tensor.named(dtype) or dtype
    return None


def unwrapped(result: np.ndarray) -> np.ndarray | np.generic:
    """An array without dimensions as a scalar, as NumPy's functions return it."""
    return result[()] if result.ndim == 0 else result
