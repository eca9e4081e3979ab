"""Sums of powers of magnitudes, and their roots: what norms are made of."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from float_math import _power
from llvm import _const, _on_lanes
from memory import _splat
from sums import Sums, _float_of

# By a sum's width, far below what sums of powers are certain to be right from.
LEAST_POWER = {32: 2.0**-140, 64: 2.0**-1060}
# Roots of sums, of either width, whose squares are certainly neither lost nor infinite: others but 0 are computed in
# another way. Of sums of other powers, it is the sums that are as safe as these squares.
SAFE_32 = (2.0**-55, 2.0**63)
SAFE_64 = (2.0**-480, 2.0**510)


class Powers(Sums):
    """Sums of |x|**p, of which the p-th root is taken in the end.

    `operation`: "l1" or "l2", for p of 1 or 2, "lp" of others that are whole, "lp_real" of any, of which the rule has
    the bits of a float64.
    """

    def __init__(self, dtype: str, width: int, operation: str) -> None:
        super().__init__(dtype, width, operation=operation)
        self.operation = operation
        # Whether squares of elements may be too small or too great for the type of their sums.
        self.may_vanish = dtype == "FLOAT64" or (dtype != "FLOAT16" and width == 32)

    def of(self, context: Any, builder: Any, bits: Any, position: Any, rule: Any) -> Any:
        """A power that is too small becomes LEAST_POWER, or the magnitude if that is less: only a sum of zeros is 0."""
        value = _float_of(context, builder, bits, self.dtype, self.type)
        magnitude = _on_lanes(builder, "fabs", value)
        if self.operation == "l1":
            return magnitude
        if self.operation == "l2":
            power = builder.fmul(value, value)
            if not self.may_vanish:
                return power
        elif self.operation == "lp":
            power = _raised(builder, magnitude, rule)
        else:
            power = _raised_to_real(context, builder, magnitude, rule)
        least = _const(value.type, LEAST_POWER[8 * self.bytes])
        least = builder.select(builder.fcmp_ordered("<", magnitude, least), magnitude, least)
        return builder.select(builder.fcmp_ordered("<", power, least), least, power)

    def finished(self, context: Any, builder: Any, value: Any, rule: Any) -> tuple[Any, Any]:
        if self.operation == "l1":
            return value, None
        if self.operation == "l2":
            unsafe = self._unsafe(builder, value, 1) if self.may_vanish else None
            return _on_lanes(builder, "sqrt", value), unsafe
        unsafe = self._unsafe(builder, value, 2)
        if self.operation == "lp":
            return _root(builder, value, rule, self.dtype), unsafe
        return _raised_to_real(context, builder, value, rule, root=True), unsafe

    def _unsafe(self, builder: Any, value: Any, squares: int) -> Any:
        """Which sums are not certain to be right; those of other powers than squares are so from their squares on."""
        safe = SAFE_32 if self.bytes == 4 else SAFE_64
        low, high = (_const(value.type, s**squares) for s in safe)
        positive = builder.fcmp_ordered(">", value, ir.Constant(value.type, None))
        small = builder.and_(positive, builder.fcmp_ordered("<", value, low))
        return builder.or_(small, builder.fcmp_ordered(">", value, high))


def _raised(builder: Any, value: Any, exponent: Any) -> Any:
    """value**exponent: a square for each bit of the exponent behind the first, and a product for each 1 of them."""
    one = _const(value.type, 1.0)
    result = cgutils.alloca_once_value(builder, value)
    i64 = exponent.type
    bits = builder.sub(i64(63), builder.ctlz(exponent, ir.IntType(1)(1)))
    with cgutils.for_range(builder, bits) as loop:
        behind = builder.sub(builder.sub(bits, i64(1)), loop.index)
        wanted = builder.trunc(builder.lshr(exponent, behind), ir.IntType(1))
        power = builder.load(result)
        factor = builder.select(wanted, value, one)
        builder.store(builder.fmul(builder.fmul(power, power), factor), result)
    return builder.load(result)


def _raised_to_real(
    context: Any, builder: Any, value: Any, exponent: Any, root: bool = False
) -> Any:
    """value**p, or its p-th root, of which `exponent` has the bits; see _power."""
    vector = value.type if isinstance(value.type, ir.VectorType) else ir.VectorType(value.type, 1)
    p = builder.bitcast(exponent, ir.DoubleType())
    if root:
        p = builder.fdiv(p.type(1.0), p)
    power = _power(context, builder, builder.bitcast(value, vector), _splat(builder, p, vector))
    return builder.bitcast(power, value.type)


def _root(builder: Any, value: Any, exponent: Any, dtype: str) -> Any:
    """value**(1 / exponent), of float64s.

    A guess, wrong by 0.4 % at most, then Halley's steps, each of which leaves the cube of the error: no tables.
    """
    vector = value.type
    integers = ir.VectorType(ir.IntType(64), vector.count)

    def same(number: float) -> Any:
        return _const(vector, number)

    one = same(1.0)
    p = _splat(builder, builder.sitofp(exponent, vector.element), vector)

    def bent(number: Any, by: float) -> Any:
        """The number with a parabola between integers, which makes 2**x of it where it stands for 1 + x, or back."""
        whole = builder.sitofp(builder.fptosi(number, integers), vector)
        part = builder.fsub(number, whole)
        more = builder.fmul(part, builder.fsub(one, part))
        return builder.fadd(number, builder.fmul(more, same(by)))

    bits = builder.sitofp(builder.bitcast(value, integers), vector)
    logarithm = bent(builder.fmul(bits, same(2.0**-52)), 0.3475)
    bias = same(1023.0)
    logarithm = builder.fadd(builder.fdiv(builder.fsub(logarithm, bias), p), bias)
    bits = builder.fmul(bent(logarithm, -0.34), same(2.0**52))
    root = builder.bitcast(builder.fptosi(bits, integers), vector)
    for _ in range(3 if dtype == "FLOAT64" else 2):
        quotient = builder.fdiv(_raised(builder, root, exponent), value)
        above = builder.fmul(builder.fadd(p, one), quotient)
        above = builder.fadd(above, builder.fsub(p, one))
        excess = builder.fsub(quotient, one)
        step = builder.fdiv(builder.fadd(excess, excess), above)
        root = builder.fsub(root, builder.fmul(root, step))
    positive = builder.fcmp_ordered(">", value, same(0.0))
    finite = builder.fcmp_ordered("<", value, same(math.inf))
    return builder.select(builder.and_(positive, finite), root, value)
