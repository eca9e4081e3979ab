"""Lanes beyond a range, and what is computed for their sake: seldom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from fold import _bits_type
from llvm import _const
from vectors import _any

_EXPONENT = 0x7FF << 52  # bits of a double's exponent
# From 2**-256 to 2**256 what is multiplied or squared is left as it is: of four pairs of such factors, or four float32,
# and a mantissa the product has all its bits if it, too, is one of these.
_CALM_POWER = 256


def _beyond(builder: Any, value: Any, power: int) -> Any:
    """Bits of lanes: none where 2**-power <= |value| < 2**power, of which `power` is itself a power of two."""
    bits = builder.bitcast(value, _bits_type(value))
    bits = builder.sub(bits, _const(bits.type, (1023 - power) << 52))
    return builder.and_(bits, _const(bits.type, _EXPONENT & -(2 * power << 52)))


def _unless_zero(builder: Any, bits: Any, value: Any) -> Any:
    """Bits of lanes, none where the value is 0."""
    zero = builder.fcmp_ordered("==", value, _const(value.type, 0.0))
    return builder.select(zero, ir.Constant(bits.type, None), bits)


def _unless_one(builder: Any, value: Any) -> Any:
    """Bits of lanes, none where the value is 1."""
    bits = _bits_type(value)
    return builder.xor(builder.bitcast(value, bits), builder.bitcast(_const(value.type, 1.0), bits))


def _some_set(builder: Any, bits: Any) -> Any:
    """Whether a lane has a bit."""
    return _any(builder, builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, None)))


def _or_else(
    builder: Any, bits: Any, values: list[Any], others: Callable[[], list[Any]]
) -> list[Any]:
    """The values, or, where a lane has a bit, what others() gives in their place: expected to be seldom."""
    variables = [cgutils.alloca_once_value(builder, value) for value in values]
    with builder.if_then(_some_set(builder, bits), likely=False):
        for variable, value in zip(variables, others(), strict=True):
            builder.store(value, variable)
    return [builder.load(variable) for variable in variables]
