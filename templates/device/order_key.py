"""Order keys: signed integers that stand in the same order as the elements, so one comparison serves all types."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from memory import _load, _pointer, _splat


def _order_key(builder: Any, bits: Any, rule: tuple[Any, Any, Any]) -> Any:
    """Key of `bits` (a scalar or a vector); `rule` is (flip, nan_key, inf), inf None for integers.

    Integers: `bits ^ flip`. Floats: sign and magnitude become two's complement (so -0.0 == +0.0),
    then `^ flip`; a magnitude above infinity's is NaN and gets `nan_key`. All in the elements' own
    width: Numba would widen to 64 bits and lose the lanes.
    """
    flip, nan_key, inf = (None if r is None else _splat(builder, r, bits.type) for r in rule)
    if inf is None:
        return builder.xor(bits, flip)
    element = bits.type.element if isinstance(bits.type, ir.VectorType) else bits.type
    width = element.width
    sign = builder.ashr(bits, _splat(builder, element(width - 1), bits.type))
    magnitude = builder.and_(bits, _splat(builder, element(2 ** (width - 1) - 1), bits.type))
    key = builder.xor(builder.sub(builder.xor(magnitude, sign), sign), flip)
    nan = builder.icmp_signed(">", magnitude, inf)
    if bits.type != element and width > 16:
        # An operation less, where vectors of floats are compared (0.9 of the time of a row).
        real = ir.FloatType() if width == 32 else ir.DoubleType()
        value = builder.bitcast(bits, ir.VectorType(real, bits.type.count))
        nan = builder.fcmp_unordered("uno", value, value)
    return builder.select(nan, nan_key, key)


def _mirror(builder: Any, bits: Any) -> Any:
    """Bits of a float to an integer that orders as it does, and back: negative magnitudes inverted."""
    element = bits.type.element if isinstance(bits.type, ir.VectorType) else bits.type
    sign = builder.ashr(bits, _splat(builder, element(element.width - 1), bits.type))
    magnitude = _splat(builder, element(2 ** (element.width - 1) - 1), bits.type)
    return builder.xor(bits, builder.and_(sign, magnitude))


def _rule(signature: Any, values: Any) -> tuple[Any, Any, Any]:
    """The last three arguments (flip, nan_key, inf) of an intrinsic."""
    return values[-3], values[-2], None if signature.args[-1] == types.none else values[-1]


@intrinsic
def load_key(_context: Any, address: Any, offset: Any, flip: Any, nan_key: Any, inf: Any) -> Any:
    """Key of the element at `address + offset`."""

    def codegen(_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[0], values[1]), values[2].type)
        return _order_key(builder, bits, _rule(signature, values))

    return flip(types.int64, types.int64, flip, nan_key, inf), codegen
