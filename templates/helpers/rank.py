"""Ranks: what pooling keeps of its elements, on scalars and vectors.

A rank is an integer of which the greatest is wanted. Without positions (`wide` None) it is as wide as the element
and turns back into it; `nan_key` is then what to add to numbers so that all NaN wrap round to the losing, or the
winning, end. With them the order key fills the upper bits and the inverted position the lower ones, so that one
maximum finds the element and settles ties; the lowest bit keeps the sign of a zero. The least rank is padding's.

Where sums are wanted, `wide` is a float, and so are the ranks, which are added up; padding is 0. The rule is then
another one: (kind, power, exponent). The type of `kind`, which stands in the place of `flip`, tells the element's:
int16 float16, uint16 bfloat16, int32 float32, int64 float64. `power` is None for the elements as they are, or a tuple
of one zero for |x|, two for x**2, three for |x|**p of which `exponent` is p, of float64; four where p is not whole, and
`exponent` the bits of a float64.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from float_math import _power
from half import _bfloat_to_float, _half_to_float, _like
from memory import _splat
from order_key import Rule, _mirror, _order_key

# By a sum's width, far below what sums of powers are certain to be right from.
LEAST_POWER = {32: 2.0**-140, 64: 2.0**-1060}


def _rank_type(wide: Any, flip: Any) -> Any:
    """What holds a rank: the type of `wide`, an integer of a pair of it, or one of the element's width."""
    if isinstance(wide, types.Float):
        return ir.FloatType() if wide == types.float32 else ir.DoubleType()
    if wide == types.none:
        return ir.IntType(flip.bitwidth)
    if isinstance(wide, types.BaseTuple):
        return ir.IntType(wide.dtype.bitwidth * wide.count)
    return ir.IntType(wide.bitwidth)


def _scalar(type_: Any) -> Any:
    return type_.element if isinstance(type_, ir.VectorType) else type_


def _is_float(type_: Any) -> bool:
    return isinstance(_scalar(type_), ir.FloatType | ir.DoubleType)


def _width(type_: Any) -> int:
    """Bits of a rank."""
    if _is_float(type_):
        return 32 if type_ == ir.FloatType() else 64
    return int(type_.width)


def _least(type_: Any) -> Any:
    """Padding's rank."""
    if _is_float(type_):
        count = type_.count if isinstance(type_, ir.VectorType) else 0
        return ir.Constant(type_, [0.0] * count if count else 0.0)
    if isinstance(type_, ir.VectorType):
        return ir.Constant(type_, [-(2 ** (type_.element.width - 1))] * type_.count)
    return ir.Constant(type_, -(2 ** (type_.width - 1)))


def _resize(builder: Any, value: Any, element: Any) -> Any:
    """`value` cut or sign-extended to the integer `element`."""
    target = _like(value.type, element)
    width = value.type.element.width if isinstance(value.type, ir.VectorType) else value.type.width
    if width == element.width:
        return value
    return builder.trunc(value, target) if width > element.width else builder.sext(value, target)


def _rank(builder: Any, bits: Any, position: Any, element: Any, rule: Rule) -> Any:
    """Rank of `bits`, of the integer type `element`; `position` is inverted (None: without position)."""
    flip, nan_key, inf = rule
    if position is None:
        if inf is None:
            return builder.xor(bits, _splat(builder, flip, bits.type))
        return builder.add(_mirror(builder, bits), _splat(builder, nan_key, bits.type))
    if inf is not None:
        # As only maxima are pooled, that of floats is 0 anyway: an operation less.
        flip = flip.type(0)
    key = _order_key(builder, bits, Rule(flip, nan_key, inf))
    wanted = _like(bits.type, element)
    width = _scalar(bits.type).width
    low = _splat(builder, element(element.width - width), wanted)
    if inf is None:
        return builder.or_(builder.shl(builder.zext(key, wanted), low), position)
    sign = builder.lshr(bits, _splat(builder, _scalar(bits.type)(width - 1), bits.type))
    if wanted != element and element.width == 2 * width:
        # Sign and key in one shuffle, in place of two extensions, a shift and a join (0.85 to 0.95 of the time).
        count = bits.type.count
        numbers = [lane + half for lane in range(count) for half in (0, count)]
        order = ir.Constant(ir.VectorType(ir.IntType(32), 2 * count), numbers)
        rank = builder.bitcast(builder.shuffle_vector(sign, key, order), wanted)
        return builder.or_(rank, position)
    rank = builder.or_(builder.shl(builder.zext(key, wanted), low), position)
    return builder.or_(rank, builder.zext(sign, wanted))


def farthest(rank: int, bits: int) -> int:
    """From where positions count back, and how many there may be, in ranks of so many bits of elements of `bits`."""
    return int(2 ** (rank - bits - 1) - 1)


def _inverted(builder: Any, position: Any, element: Any, bits: int) -> Any:
    """What stands in the lower bits of a rank for a 64-bit position: less for a later one, never 0."""
    position = _resize(builder, position, element)
    left = builder.sub(element(farthest(element.width, bits)), position)
    return builder.shl(left, element(1))


def _parts(builder: Any, ranks: Any, element: Any) -> tuple[Any, Any]:
    """(order keys, of type `element`; lower bits: the position, inverted, and the sign) of vectors of ranks.

    The lower bits of padding's are 0, those of no other.
    """
    vector = ranks.type
    width = vector.element.width
    if width == 2 * element.width:
        halves = builder.bitcast(ranks, ir.VectorType(element, 2 * vector.count))
        order = ir.VectorType(ir.IntType(32), vector.count)
        low, key = (
            builder.shuffle_vector(
                halves, halves, ir.Constant(order, list(range(half, 2 * vector.count, 2)))
            )
            for half in (0, 1)
        )
        return key, low
    low = width - element.width
    key = builder.lshr(ranks, _splat(builder, vector.element(low), vector))
    key = builder.trunc(key, ir.VectorType(element, vector.count))
    return key, builder.and_(ranks, _splat(builder, vector.element(2**low - 1), vector))


def _element_bits(builder: Any, rank: Any, rule: Rule) -> Any:
    """The element of a rank without position; that of padding is the lowest number."""
    flip, shift, inf = (None if r is None else _splat(builder, r, rank.type) for r in rule)
    if inf is None:
        return builder.xor(rank, flip)
    lowest = builder.not_(inf)  # -inf, mirrored
    padding = builder.icmp_signed("==", rank, _least(rank.type))
    return _mirror(builder, builder.select(padding, lowest, builder.sub(rank, shift)))


def _lowest(builder: Any, type_: Any, wide: Any, rule: Rule) -> Any:
    """The least rank of an element: without positions it keeps a losing NaN above padding."""
    least = _least(type_)
    if wide != types.none or rule.inf is None:
        return least
    shift = rule.nan_key
    above = builder.icmp_signed(">", shift, shift.type(0))
    return builder.add(least, _splat(builder, builder.zext(above, shift.type), type_))


def _joined(builder: Any, a: Any, b: Any) -> Any:
    """The rank of two together."""
    if _is_float(a.type):
        return builder.fadd(a, b)
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _float_of(context: Any, builder: Any, bits: Any, kind: Any, element: Any) -> Any:
    """The float, of type `element`, of an element's bits."""
    if kind == types.int16:
        value = _half_to_float(context, builder, bits)
    elif kind == types.uint16:
        value = _bfloat_to_float(builder, bits)
    else:
        narrow = ir.FloatType() if kind == types.int32 else ir.DoubleType()
        value = builder.bitcast(bits, _like(bits.type, narrow))
    wanted = _like(bits.type, element)
    return value if value.type == wanted else builder.fpext(value, wanted)


def _magnitude(builder: Any, value: Any) -> Any:
    vector = f"v{value.type.count}" if isinstance(value.type, ir.VectorType) else ""
    name = f"llvm.fabs.{vector}f{_width(_scalar(value.type))}"
    fnty = ir.FunctionType(value.type, [value.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), [value])


def _may_vanish(kind: Any, element: Any) -> bool:
    """Whether squares of elements may be too small or too great for the type of their sums."""
    return bool(kind == types.int64 or (kind != types.int16 and element == ir.FloatType()))


def _raised(builder: Any, value: Any, exponent: Any) -> Any:
    """value**exponent: a square for each bit of the exponent behind the first, and a product for each 1 of them."""
    one = _splat(builder, _scalar(value.type)(1.0), value.type)
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


def _term(context: Any, builder: Any, bits: Any, element: Any, rule: Any, values: Any) -> Any:
    """What an element adds to a sum, by the type of a rule of sums and its values.

    A power that is too small is none: only a sum of zeros is 0.
    """
    kind, power = rule[0], rule[1]
    value = _float_of(context, builder, bits, kind, element)
    if power == types.none:
        return value
    if power.count == 1:
        return _magnitude(builder, value)
    if power.count == 2:
        term = builder.fmul(value, value)
        if not _may_vanish(kind, element):
            return term
    else:
        exponent = builder.extract_value(values, 2)
        raised = _raised if power.count == 3 else partial(_raised_to_real, context)
        term = raised(builder, _magnitude(builder, value), exponent)
    least = _splat(builder, element(LEAST_POWER[_width(element)]), value.type)
    magnitude = _magnitude(builder, value)
    least = builder.select(builder.fcmp_ordered("<", magnitude, least), magnitude, least)
    return builder.select(builder.fcmp_ordered("<", term, least), least, term)
