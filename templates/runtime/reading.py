"""What callers give, read as fields and functions take it: numbers, data types, enums, feature levels and axes.

Whatever is not of its type raises NotUnderstood, which says what is allowed.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from specops.tensor import named
from specops.validation import Field
from specops.vocabulary import DATA_TYPES, EMPTY, ENUMS, FEATURE_LEVELS

MAX_ENTRIES = 64  # of an array in a description; no operator has more dimensions
_UINT_MAX = 2**32 - 1
_INT_MAX = 2**63 - 1


class NotUnderstood(Exception):
    """A value that is not of its field's type: what was found, and what is allowed.

    `argument` is the one to blame in place of the field, if there is one.
    """

    def __init__(self, found: str, allowed: str, argument: str | None = None) -> None:
        super().__init__(found, allowed, argument)
        self.found, self.allowed, self.argument = found, allowed, argument


def shown(value: object) -> str:
    """A value as part of a message, on one line."""
    try:
        text = repr(value)
    except Exception:  # an integer of too many digits, or what a class likes
        text = f"a value of type {type(value).__name__}"
    text = " ".join(line.strip() for line in text.splitlines())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _index(value: object) -> int | None:
    """The value as an integer; None for booleans, times and for what is none."""
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return None
    try:
        # An int itself, of a class derived from it.
        return int.__int__(operator.index(value))  # type: ignore[arg-type]
    except Exception:  # a class may raise what it likes
        return None


def _entries(value: object) -> list[Any] | None:
    """The entries of a sequence, at most 64; None for all else."""
    if isinstance(value, str | bytes | bytearray | Mapping | set | type):
        return None
    try:
        if getattr(value, "ndim", 1) != 1 or len(value) > MAX_ENTRIES:  # type: ignore[arg-type]
            return None
        entries = list(itertools.islice(iter(value), MAX_ENTRIES + 1))  # type: ignore[call-overload]
    except Exception:  # a class may raise what it likes
        return None
    return entries if len(entries) <= MAX_ENTRIES else None


def integer(value: object, high: int = _UINT_MAX, low: int = 0) -> int:
    """An integer; Python's and NumPy's are taken, booleans and floats are not."""
    number = _index(value)
    if number is None or not low <= number <= high:
        raise NotUnderstood(shown(value), f"an integer from {low} to {high}")
    return number


def integers(
    value: object, high: int = _UINT_MAX, low: int = 0, each: str | None = None
) -> tuple[int, ...]:
    """An array of integers, at most 64 of them: one for `each` of something."""
    allowed = f"a sequence of at most {MAX_ENTRIES} integers from {low} to {high}"
    if each is not None:
        allowed += f", one for each {each}, such as (2, 2)"
    elif (number := _index(value)) is not None and low <= number <= high:
        allowed += f", such as [{number}]"
    entries = _entries(value)
    if entries is None:
        raise NotUnderstood(shown(value), allowed)
    try:
        return tuple(integer(v, high, low) for v in entries)
    except NotUnderstood:
        raise NotUnderstood(shown(value), allowed) from None


def number(value: object) -> float:
    """A finite number; Python's and NumPy's are taken, booleans are not."""
    given = value if isinstance(value, float | np.floating) else _index(value)
    try:
        real = math.nan if given is None else float(given)
    except Exception:  # beyond the range; and a class may raise what it likes
        real = math.nan
    if not math.isfinite(real):
        raise NotUnderstood(shown(value), "a finite number")
    return real


def boolean(value: object) -> bool:
    """A Python or NumPy boolean, or 0 or 1 as attributes of ONNX have it."""
    # No array without dimensions: it may be meant for another argument, as `out`.
    if isinstance(value, bool | np.bool_) or (
        not isinstance(value, np.ndarray) and _index(value) in (0, 1)
    ):
        return bool(value)
    allowed = "True, False, 1 or 0"
    if isinstance(value, np.ndarray):
        allowed += "; an array to write to is given by name, as out="
    raise NotUnderstood(shown(value), allowed)


def enum_value(value: object, name: str) -> str:
    """A value of an enum: its full name, its suffix or its number; the suffix is returned."""
    values = ENUMS[name]
    if isinstance(value, str) and not value and name in EMPTY:
        return EMPTY[name]
    one = name.removesuffix("S")  # of DML_TENSOR_FLAGS: DML_TENSOR_FLAG_NONE
    for prefix in (f"{name}_", f"{one}_"):
        if isinstance(value, str) and value.removeprefix(prefix) in values:
            return value.removeprefix(prefix)
    number = _index(value)
    for suffix, code in values.items():
        if code == number:
            return suffix
    raise NotUnderstood(shown(value), ", ".join(values) + _in_capitals(value, values, f"{one}_"))


def _in_capitals(value: object, names: Iterable[str], prefix: str) -> str:
    """A hint for a name, with or without its prefix, whose letters are not all capitals."""
    name = value.upper() if isinstance(value, str) else ""
    return f"; in capitals, {name}" if name.removeprefix(prefix) in names else ""


def data_type(value: object, allowed: Sequence[str] = tuple(DATA_TYPES)) -> str:
    """A data type: full name, suffix, or anything NumPy takes for a dtype; the suffix is returned.

    `allowed` are those that the message names where the value is none.
    """
    dtype = numpy_dtype(value, allowed)
    name = named(dtype)
    if name is not None and dtype.isnative:
        return name
    hint = f"; in native byte order, {name}" if name in allowed else ""
    raise NotUnderstood(shown(value), ", ".join(allowed) + hint)


def numpy_dtype(value: object, allowed: Sequence[str] = tuple(DATA_TYPES)) -> np.dtype:
    """The same as NumPy's dtype, which may be one that the vocabulary does not have."""
    prefix = "DML_TENSOR_DATA_TYPE_"
    if isinstance(value, str) and value.removeprefix(prefix) in DATA_TYPES:
        return DATA_TYPES[value.removeprefix(prefix)].numpy
    if value is not None and not isinstance(value, np.generic):  # a scalar is no data type
        try:
            return np.dtype(value)  # type: ignore[call-overload, no-any-return]
        except Exception:  # a class may raise what it likes
            pass
    hint = _in_capitals(value, allowed, prefix)
    raise NotUnderstood(shown(value), ", ".join(allowed) + hint)


def feature_level(value: object) -> str | None:
    """A feature level as "4.1", "4_1" or "DML_FEATURE_LEVEL_4_1"; None for the general definition."""
    if value is None:
        return None
    if isinstance(value, str):
        level = value.removeprefix("DML_FEATURE_LEVEL_").replace("_", ".")
        if level in FEATURE_LEVELS:
            return level
        raise NotUnderstood(shown(value), ", ".join(FEATURE_LEVELS))
    strings = ", ".join(f'"{level}"' for level in FEATURE_LEVELS)
    raise NotUnderstood(shown(value), f"the strings {strings}")


def attribute(field: Field, value: object) -> Any:
    """A field's value, typed. Raises NotUnderstood."""
    if field.type == "uint":
        return integer(value)
    if field.type == "uint[]":
        return integers(value, each=field.one_for_each)
    if field.type == "int":
        return integer(value, _INT_MAX, -_INT_MAX - 1)
    if field.type == "int[]":
        return integers(value, _INT_MAX, -_INT_MAX - 1, field.one_for_each)
    if field.type == "float":
        return number(value)
    if field.type == "bool":
        return boolean(value)
    return enum_value(value, field.type)


def argument(field: Field, value: object) -> Any:
    """The same as functions take it: an integer, too, for an array whose default repeats a number."""
    if not field.repeats:
        return attribute(field, value)
    alone = _entries(value) is None and _index(value) is not None
    try:
        return attribute(field, [value])[0] if alone else attribute(field, value)
    except NotUnderstood as problem:
        raise NotUnderstood(shown(value), f"an integer or {problem.allowed}") from None


def axes(value: object, rank: int) -> int | tuple[int, ...]:
    """Axes as functions take them: None for all, one integer or a sequence, negative ones counted from the end.

    An axis beyond the last one is left to the operator's own rule.
    """
    if value is None:
        return tuple(range(rank))
    entries = _entries(value)
    numbers = [_index(axis) for axis in ([value] if entries is None else entries)]
    # Where there are no dimensions, an integer counts as if there were one, as NumPy has it.
    least = -1 if entries is None and not rank else -rank
    out = tuple(n for n in numbers if n is not None and least <= n <= _UINT_MAX)
    if len(out) < len(numbers):
        raise NotUnderstood(shown(value), axes_allowed(rank))
    return out[0] if entries is None else out


def axes_allowed(rank: int) -> str:
    """What axes may be, for a message."""
    if not rank:
        return "None, 0, -1 or an empty sequence, for there are no axes"
    return f"None, an integer or a sequence of integers, each from {-rank} to {rank - 1}"


def from_first(given: int | tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes that were read, counted from the first one."""
    if isinstance(given, int):
        given = (given,) if rank or given > 0 else ()
    return tuple(axis + rank if axis < 0 else axis for axis in given)


def axes_shown(given: int | tuple[int, ...], rank: int) -> str:
    """Axes that were read, for a message: as they were given, negative ones also counted from the first one."""
    written = f"{list(given) if isinstance(given, tuple) else given}"
    counted = f" (counted from 0: {list(from_first(given, rank))})"
    return written + counted if "-" in written else written
