"""float16 and bfloat16 to float32 and back, on scalars and vectors of bits: rounded to nearest even, NaN made quiet.

From float64 they are rounded by way of a float32 that tells whether it is exact: see _to_odd and _to_sticky.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from llvm import _const
from memory import _opaque
from shuffles import _lanes_from, _side_by_side
from target import _target_has


def _like(type_: Any, element: Any) -> Any:
    """`element`, or a vector of as many as `type_` has."""
    return ir.VectorType(element, type_.count) if isinstance(type_, ir.VectorType) else element


def _converts_half(context: Any) -> bool:
    """Whether the target converts float16 itself; elsewhere LLVM calls a symbol that is not there and aborts."""
    return _target_has(context, "f16c", on_arm=True)


def _half_to_float(context: Any, builder: Any, bits: Any) -> Any:
    """float32 of float16 `bits` (i16)."""
    float_ = _like(bits.type, ir.FloatType())
    if _converts_half(context):
        if bits.type == ir.IntType(16) and _target_has(context, "f16c", on_arm=False):
            # LLVM would load it into a part of a vector's register, and so wait for what that held before. Gradients of
            # averages over whole planes, one element of which is loaded for each plane, take 0.2 to 0.5 of the time.
            bits = _opaque(builder, bits)
        value = builder.fpext(builder.bitcast(bits, _like(bits.type, ir.HalfType())), float_)
        return _unknown_halves(context, builder, value)
    integer = _like(bits.type, ir.IntType(32))

    wide = builder.zext(bits, integer)
    magnitude = builder.and_(wide, _const(integer, 0x7FFF))
    # As a float this is 2**-112 times the value, exactly and for subnormals too.
    small = builder.bitcast(builder.shl(magnitude, _const(integer, 13)), float_)
    rescale = _const(float_, 2.0**112)
    value = builder.bitcast(builder.fmul(small, rescale), integer)
    special = builder.icmp_unsigned(">=", magnitude, _const(integer, 0x7C00))
    exponent = builder.select(special, _const(integer, 0x7F800000), _const(integer, 0))
    quiet = builder.select(
        builder.icmp_unsigned(">", magnitude, _const(integer, 0x7C00)),
        _const(integer, 0x400000),
        _const(integer, 0),
    )
    sign = builder.shl(builder.and_(wide, _const(integer, 0x8000)), _const(integer, 16))
    parts = builder.or_(builder.or_(value, exponent), builder.or_(quiet, sign))
    return builder.bitcast(parts, float_)


def _unknown_halves(context: Any, builder: Any, value: Any) -> Any:
    """Floats that LLVM does not know to be converted halves, in registers of 8.

    If it knows, it compares the halves in place of the floats, for which it converts them once more: up to 1.1 of the
    time without AVX-512.
    """
    vector = value.type
    whole = isinstance(vector, ir.VectorType) and vector.count % 8 == 0
    if not whole or _target_has(context, "avx512f", on_arm=True):
        return value
    numbers = range(0, vector.count, 8)
    pieces = [_opaque(builder, _lanes_from(builder, value, first, 8)) for first in numbers]
    return _side_by_side(builder, pieces)


def _float_to_half(context: Any, builder: Any, value: Any) -> Any:
    """float16 bits (i16) of a float32."""
    short = _like(value.type, ir.IntType(16))
    if _converts_half(context):
        return builder.bitcast(builder.fptrunc(value, _like(value.type, ir.HalfType())), short)
    integer = _like(value.type, ir.IntType(32))

    bits = builder.bitcast(value, integer)
    sign = builder.and_(bits, _const(integer, 0x80000000))
    magnitude = builder.xor(bits, sign)
    odd = builder.and_(builder.lshr(magnitude, _const(integer, 13)), _const(integer, 1))
    rebias = _const(integer, (15 - 127) * 2**23 + 0xFFF)
    normal = builder.lshr(builder.add(builder.add(magnitude, rebias), odd), _const(integer, 13))
    # Adding 0.5 leaves the subnormal's bits, rounded, at the end of the sum's.
    half = _const(value.type, 0.5)
    lowest = builder.fadd(builder.bitcast(magnitude, value.type), half)
    subnormal = builder.sub(builder.bitcast(lowest, integer), _const(integer, 0x3F000000))
    small = builder.icmp_unsigned("<", magnitude, _const(integer, 0x38800000))
    result = builder.select(small, subnormal, normal)
    large = builder.icmp_unsigned(">=", magnitude, _const(integer, 0x47800000))
    result = builder.select(large, _const(integer, 0x7C00), result)
    payload = builder.and_(builder.lshr(magnitude, _const(integer, 13)), _const(integer, 0x1FF))
    nan = builder.icmp_unsigned(">", magnitude, _const(integer, 0x7F800000))
    result = builder.select(nan, builder.or_(payload, _const(integer, 0x7E00)), result)
    return builder.trunc(builder.or_(result, builder.lshr(sign, _const(integer, 16))), short)


def _bfloat_to_float(builder: Any, bits: Any) -> Any:
    """float32 of bfloat16 `bits` (i16)."""
    integer = _like(bits.type, ir.IntType(32))
    wide = builder.zext(bits, integer)
    shifted = builder.shl(wide, _const(integer, 16))
    return builder.bitcast(shifted, _like(bits.type, ir.FloatType()))


def _float_to_bfloat(builder: Any, value: Any) -> Any:
    """bfloat16 bits (i16) of a float32; every NaN becomes the quiet one of its sign."""
    integer = _like(value.type, ir.IntType(32))

    bits = builder.bitcast(value, integer)
    odd = builder.and_(builder.lshr(bits, _const(integer, 16)), _const(integer, 1))
    rounded = builder.lshr(
        builder.add(builder.add(bits, _const(integer, 0x7FFF)), odd), _const(integer, 16)
    )
    sign = builder.and_(builder.lshr(bits, _const(integer, 16)), _const(integer, 0x8000))
    nan = builder.fcmp_unordered("uno", value, value)
    result = builder.select(nan, builder.or_(sign, _const(integer, 0x7FC0)), rounded)
    return builder.trunc(result, _like(value.type, ir.IntType(16)))


def _to_odd(builder: Any, value: Any) -> Any:
    """float32 of a float64, its last bit 1 where it is not exact: what is rounded again is then rounded as once."""
    near = builder.fptrunc(value, _like(value.type, ir.FloatType()))
    again = builder.fpext(near, value.type)
    bits = builder.bitcast(near, _like(value.type, ir.IntType(32)))
    one = _const(bits.type, 1)
    sizes = [builder.bitcast(v, _like(v.type, ir.IntType(64))) for v in (again, value)]
    sign = _const(sizes[0].type, 1)
    sizes = [builder.shl(size, sign) for size in sizes]
    inexact = builder.fcmp_ordered("!=", again, value)
    above = builder.and_(inexact, builder.icmp_unsigned(">", *sizes))
    bits = builder.select(above, builder.sub(bits, one), bits)
    bits = builder.select(inexact, builder.or_(bits, one), bits)
    return builder.bitcast(bits, near.type)


def _to_sticky(builder: Any, value: Any) -> Any:
    """float32 of a float64 that rounds to float16 as the float64 does, in 0.3 of the operations of _to_odd.

    Of what a float16 is far too short for, a bit tells whether there is any. (A bfloat16 may be as small as a float32,
    which would lose that bit.)
    """
    bits = builder.bitcast(value, _like(value.type, ir.IntType(64)))
    low = _const(bits.type, 2**32 - 1)
    any_low = builder.add(builder.and_(bits, low), low)  # in bit 32
    bits = builder.and_(builder.or_(bits, any_low), builder.not_(low))
    return builder.fptrunc(builder.bitcast(bits, value.type), _like(value.type, ir.FloatType()))


def _to_16_bits(context: Any, builder: Any, value: Any, half: bool) -> Any:
    """float16 (`half`) or bfloat16 bits (i16) of a float32 or float64, rounded once."""
    if value.type == _like(value.type, ir.DoubleType()):
        value = (_to_sticky if half else _to_odd)(builder, value)
    return _float_to_half(context, builder, value) if half else _float_to_bfloat(builder, value)
