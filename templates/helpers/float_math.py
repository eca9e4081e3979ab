"""What is computed with vectors of floats: exp, log, the greater of two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir

from llvm import _call, _const, _on_lanes, _width
from target import _target_has

EXP_SCALE = 2.0**64  # _exp's results bear this factor, so that none of them is subnormal
LOWEST = {32: -(2.0**128 - 2.0**104), 64: -1.7976931348623157e308}  # finite numbers, by width

# By the vector's width: bits of the mantissa, and the bias of the exponent.
_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
# By the vector's width: the least argument of exp that does not round to 0, and ln 2 in two parts, the first with so
# few bits that its multiples are exact.
_EXP = {
    32: (-104.0, 0.693359375, -2.12194440e-4),
    64: (-745.5, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
_POWER_FROM, _POWER_TO = -708.0, 709.0  # exp of what is between them is a normal float64
_LOG2_E = 1.4426950408889634
_LN2 = 0.693147182464599609375  # rounded to float32, with an error of 2**-29
# By the element's width: exp(r) = 1 + r * polynomial, for 16 bits of a degree less, whose error, 9e-8, is little beside
# half an ulp (1.05 times as fast).
_EXP_TERMS = {
    16: (
        0.9999997019767761,
        0.4999914765357971,
        0.16667653620243073,
        0.041898176074028015,
        0.008289217948913574,
    ),
    32: (
        1.0,
        0.5,
        0.16666504740715027,
        0.041666463017463684,
        0.008369184099137783,
        0.0013933685841038823,
    ),
    64: (
        1.0,
        0.5000000000000006,
        0.1666666666666667,
        0.04166666666657277,
        0.008333333333326112,
        0.0013888888932619635,
        0.0001984126987490126,
        2.4801504180837137e-05,
        2.7557255297969643e-06,
        2.7626426376580335e-07,
        2.5105259538448494e-08,
    ),
}
# By the element's width: how many roots of 2 are tabled where vectors can be permuted.
_ROOTS = {16: 32, 32: 16}
_ROOT_TERMS = (1.0, 0.5000161528587341, 0.16666717827320099)  # exp(r) = 1 + r * polynomial
# exp(r) = _SQUARE[1] * ((r + _SQUARE_STEPS / 32 * ln 2)**2 + _SQUARE[0]), exactly 1 for r = 0. The error, 2e-7 and as
# much of rounding, is little beside half an ulp of 16 bits; a multiplication less than a polynomial (0.93 of the time).
_SQUARE_STEPS = 46
_SQUARE = (0.9999477863311768, 0.5018168687820435)
# By the vector's width: the bits of the root of 1/2, and ln 2 in two parts; then the polynomial of log (as in FreeBSD's
# msun).
_LOG = {
    32: (0x3F3504F3, 6.9313812256e-01, 9.0580006145e-06),
    64: (0x3FE6A09E667F3BCD, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
_LOG_TERMS = {
    32: (
        0.66666662693023682,
        0.40000972151756287,
        0.28498786687850952,
        0.24279078841209412,
    ),
    64: (
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    ),
}


def _muladd(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, fused where the target can: `llvm.fma` would be a call of libm elsewhere."""
    return _on_lanes(builder, "fmuladd", a, b, c)


def _polynomial(builder: Any, terms: tuple[float, ...], x: Any) -> Any:
    """terms[0] + terms[1] * x + terms[2] * x**2 + .."""
    result = _const(x.type, terms[-1])
    for term in reversed(terms[:-1]):
        result = _muladd(builder, result, x, _const(x.type, term))
    return result


def _fuses(context: Any) -> bool:
    """Whether the target fuses `_muladd`."""
    return _target_has(context, "fma", on_arm=True)


def _greater_float(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _lesser_float(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _permutes(context: Any, vector: Any) -> bool:
    """Whether the target permutes such vectors in one instruction."""
    wide = vector == ir.VectorType(ir.FloatType(), 16)
    return wide and _target_has(context, "avx512f", on_arm=False)


def _exp_by_roots(builder: Any, d: Any, element: int) -> Any:
    """As _exp: exp(d) = 2**k * 2**(i / roots) * exp(r), which is less to compute: softmax takes 0.9 to 1 of the time.

    The table's entries bear EXP_SCALE. A table of 32 roots takes longer than one of 16, which for 16-bit elements a
    square in place of a polynomial makes up for.
    """
    vector, integers = d.type, ir.VectorType(ir.IntType(32), 16)
    roots = _ROOTS[element]
    square = element == 16
    shift = 24 - roots.bit_length()
    vanishes = builder.fcmp_ordered("<", d, _const(vector, _EXP[32][0]))
    # The low bits of (1.5 * 2**23 + n) are the integer n = roots * k + i.
    magic = 1.5 * 2.0**23
    shifted = _muladd(builder, d, _const(vector, roots * _LOG2_E), _const(vector, magic))
    # To be squared, r is too great by as many steps as n is too small.
    n = builder.fsub(shifted, _const(vector, magic + _SQUARE_STEPS if square else magic))
    r = _muladd(builder, n, _const(vector, -_LN2 / roots), d)
    bits = builder.bitcast(shifted, integers)
    # k lands in the exponent, i below it; the table's entries are lowered by as much as i adds.
    scale = builder.shl(bits, _const(integers, shift))

    exact = np.exp2(np.arange(roots) / roots) * (_SQUARE[1] if square else 1.0)
    rounded = exact.astype(np.float32)
    table = rounded.view(np.int32) - (np.arange(roots) << shift) + (64 << 23)
    root = builder.bitcast(builder.add(_looked_up(builder, table, bits), scale), vector)
    if square:
        e = builder.fmul(root, _muladd(builder, r, r, _const(vector, _SQUARE[0])))
    else:  # with what rounding lost of the root
        rests = (exact / rounded - 1).astype(np.float32).view(np.int32)
        rest = builder.bitcast(_looked_up(builder, rests, bits), vector)
        more = _muladd(builder, _polynomial(builder, _ROOT_TERMS, r), r, rest)
        e = _muladd(builder, root, more, root)
    return builder.select(vanishes, ir.Constant(vector, None), e)


def _looked_up(builder: Any, table: Any, numbers: Any) -> Any:
    """Entries of a table of 16 or 32 int32; only as many low bits of the numbers count."""
    integers = numbers.type
    first, *second = [
        ir.Constant(integers, table[i : i + 16].tolist()) for i in range(0, len(table), 16)
    ]
    name = "vpermi2var.d.512" if second else "permvar.si.512"
    return _call(builder, f"llvm.x86.avx512.{name}", integers, first, numbers, *second)


def _exp(context: Any, builder: Any, d: Any, element: int) -> Any:
    """exp(d) * EXP_SCALE for d <= 8, as exact as elements of so many bits need; NaN where it is NaN."""
    if _permutes(context, d.type):
        return _exp_by_roots(builder, d, element)
    return _exp_by_shift(context, builder, d, element, 64)


def _exp_by_shift(context: Any, builder: Any, d: Any, element: int, raised: int) -> Any:
    """As _exp: exp(d) * 2**raised, where that is a normal number.

    No fast-math flag: reassociation would undo the rounding to an integer and the two-part ln 2.
    """
    vector = d.type
    width = _width(vector)
    least, ln2_high, ln2_low = _EXP[width]
    bias, mantissa = _BIAS[width], _MANTISSA[width]
    integers = ir.VectorType(ir.IntType(width), vector.count)
    vanishes = builder.fcmp_ordered("<", d, _const(vector, least))
    # The low bits of (1.5 * 2**mantissa + i) are the integer i.
    magic = _const(vector, 1.5 * 2.0**mantissa + bias + raised)
    shifted = _muladd(builder, d, _const(vector, _LOG2_E), magic)
    n = builder.fsub(shifted, magic)
    if width == 32 and _fuses(context):
        # n times the error of ln 2 is little beside the rounding of d (1.07 times as fast as two parts).
        r = _muladd(builder, n, _const(vector, -_LN2), d)
    else:
        r = _muladd(builder, n, _const(vector, -ln2_high), d)
        r = _muladd(builder, n, _const(vector, -ln2_low), r)
    p = _polynomial(builder, (1.0, *_EXP_TERMS[element]), r)
    bits = builder.shl(builder.bitcast(shifted, integers), _const(integers, mantissa))
    # A product, not an addition to the exponent: NaN stays NaN.
    e = builder.fmul(p, builder.bitcast(bits, vector))
    return builder.select(vanishes, ir.Constant(vector, None), e)


def _log(builder: Any, value: Any) -> Any:
    """log of normal positive numbers; NaN where it is NaN."""
    vector = value.type
    width = _width(vector)
    (root, high, low), mantissa = _LOG[width], _MANTISSA[width]
    integers = ir.VectorType(ir.IntType(width), vector.count)
    # value = 2**k * m with m in sqrt(1/2) to sqrt(2)
    bits = builder.bitcast(value, integers)
    k = builder.ashr(builder.sub(bits, _const(integers, root)), _const(integers, mantissa))
    m = builder.sub(bits, builder.shl(k, _const(integers, mantissa)))
    k = builder.sitofp(k, vector)
    f = builder.fsub(builder.bitcast(m, vector), _const(vector, 1.0))
    s = builder.fdiv(f, builder.fadd(f, _const(vector, 2.0)))
    z = builder.fmul(s, s)
    r = builder.fmul(_polynomial(builder, _LOG_TERMS[width], z), z)
    half = builder.fmul(_const(vector, 0.5), builder.fmul(f, f))
    tail = _muladd(builder, k, _const(vector, low), builder.fmul(s, builder.fadd(half, r)))
    result = builder.fadd(
        builder.fmul(k, _const(vector, high)), builder.fsub(f, builder.fsub(half, tail))
    )
    return builder.select(builder.fcmp_unordered("uno", value, value), value, result)


def _power(context: Any, builder: Any, value: Any, exponent: Any) -> Any:
    """value**exponent for float64s of at least 0; 0 where it is not normal, NaN where value is.

    To 2**-40 or better: the logarithm's error counts as often as the exponent. That is little beside half an ulp of
    float32, not of float64.
    """
    vector = value.type
    d = builder.fmul(_log(builder, value), exponent)
    power = _exp_by_shift(context, builder, d, 64, 0)
    infinite = builder.fcmp_ordered("==", value, _const(vector, math.inf))
    infinite = builder.or_(infinite, builder.fcmp_ordered(">", d, _const(vector, _POWER_TO)))
    power = builder.select(infinite, _const(vector, math.inf), power)
    zero = builder.fcmp_ordered("==", value, _const(vector, 0.0))
    zero = builder.or_(zero, builder.fcmp_ordered("<", d, _const(vector, _POWER_FROM)))
    return builder.select(zero, _const(vector, 0.0), power)
