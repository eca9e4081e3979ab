"""Vectors of integers: the greater and the lesser of two, extremes of floats, masks, wide registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from llvm import _call, _least_integer, _letters
from memory import _splat


def _unless(builder: Any, flag: Any, type_: Any) -> Any:
    """An integer of nothing but ones, or 0 if the flag is set.

    Spread over lanes, and ANDed, it serves all targets; LLVM spreads a flag element by element but for AVX-512.
    """
    return builder.select(flag, type_(0), type_(-1))


WORD_LANES = 64  # that a vector has at most: as many as a word has bits


def _lane_bits(builder: Any, mask: Any) -> Any:
    """A mask as the bits of a word."""
    lanes = mask.type.count
    bits = builder.bitcast(mask, ir.IntType(lanes))
    return builder.zext(bits, ir.IntType(WORD_LANES)) if lanes < WORD_LANES else bits


def _any(builder: Any, mask: Any) -> Any:
    """Whether a lane is True."""
    bits = builder.bitcast(mask, ir.IntType(mask.type.count))
    return builder.icmp_unsigned("!=", bits, bits.type(0))


def _greater(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _lesser(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def _greatest_lane(builder: Any, keys: Any) -> Any:
    """Horizontal maximum."""
    name = f"llvm.vector.reduce.smax.{_letters(keys.type)}"
    return _call(builder, name, keys.type.element, keys)


class _Extremes:
    """The greatest signed, the greatest unsigned and the least unsigned of vectors of floats' bits, lane by lane.

    They tell the greatest float, and the least, for 3 operations an element instead of the 8 of an order key.
    """

    def __init__(self, builder: Any, bits: Any) -> None:
        self._builder = builder
        self._variables = [cgutils.alloca_once_value(builder, bits) for _ in range(3)]

    def more(self, rows: list[Any]) -> None:
        """Take the bits of more vectors."""
        builder = self._builder
        signed, unsigned, least = (builder.load(variable) for variable in self._variables)
        for bits in rows:
            signed = _greater(builder, bits, signed)
            above = builder.icmp_unsigned(">", bits, unsigned)
            unsigned = builder.select(above, bits, unsigned)
            below = builder.icmp_unsigned("<", bits, least)
            least = builder.select(below, bits, least)
        for variable, value in zip(self._variables, (signed, unsigned, least), strict=True):
            builder.store(value, variable)

    def greatest(self, flip: Any, inf: Any) -> tuple[Any, Any]:
        """The bits of the greatest float (of the least, where `flip` is not 0) if none is NaN, and whether one is.

        The greatest float has the greatest signed bits if any is positive, else the least unsigned ones. The least
        float has the greatest unsigned bits if any is negative, else the least ones, too.
        """
        builder = self._builder
        signed, unsigned, least = (builder.load(variable) for variable in self._variables)
        flip, inf = (_splat(builder, value, signed.type) for value in (flip, inf))
        zero = ir.Constant(signed.type, None)
        bits = builder.select(builder.icmp_signed("!=", flip, zero), unsigned, signed)
        found = builder.icmp_signed(">=", builder.xor(bits, flip), zero)
        bits = builder.select(found, bits, least)
        sign = _least_integer(signed.type)
        positive = builder.icmp_signed(">", signed, inf)
        negative = builder.icmp_unsigned(">", unsigned, builder.or_(inf, sign))
        return bits, _any(builder, builder.or_(positive, negative))


@intrinsic
def prefer_wide_vectors(_context: Any) -> Any:
    """Compile the calling function, kept apart, to 512-bit vectors where there are any: LLVM prefers 256 bits."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        attributes = builder.function.attributes
        attributes.add("noinline")  # else the caller's attributes win
        # llvmlite's own method knows no such name.
        set.add(attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen
