"""What the functions on arrays share: operators kept by shapes and arguments of arrays, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specops import reading, tensor
from specops.errors import ValidationError
from specops.request import Described

KEPT = 1024  # compiled operators of a function, one for each shape and each set of arguments: some 6 KB each

Inputs = tuple[Described, ...]

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
    key: list[Any] | None
    try:
        # Most are as they are: 0.05 us less for each than by a call.
        key = [a if type(a) in _FROZEN else _frozen(a) for a in arguments]
    except TypeError:
        key = None
    # What fails below is outside of any `except`, so that a traceback tells it once.
    if key is None:
        compiled = make.__wrapped__(described, *arguments)
        # Such arguments may run code that changes an array's shape.
        compiled.checked(inputs)
        return compiled
    try:
        return make(described, *key)
    except ValidationError:
        pass
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
