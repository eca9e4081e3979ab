"""What order keys of a data type are made with; the kernels' helpers say how."""

from __future__ import annotations

from typing import NamedTuple

from specops.vocabulary import DATA_TYPES

_INFINITY = {"FLOAT16": 0x7C00, "BFLOAT16": 0x7F80, "FLOAT32": 0x7F800000, "FLOAT64": 0x7FF << 52}


class Keys(NamedTuple):
    """The numbers of one data type, as signed integers of its width."""

    width: int  # bits
    least: int
    greatest: int
    flip: int  # brings unsigned numbers into the order of signed ones
    infinity: int | None  # the bits of a float's infinity


def keys_of(dtype: str) -> Keys:
    """Keys for a data type.

    >>> keys_of("UINT8")
    Keys(width=8, least=-128, greatest=127, flip=-128, infinity=None)
    """
    numpy_dtype = DATA_TYPES[dtype].numpy
    width = 8 * numpy_dtype.itemsize
    least = -(1 << (width - 1))
    unsigned = numpy_dtype.kind in "bu"
    return Keys(width, least, ~least, least if unsigned else 0, _INFINITY.get(dtype))
