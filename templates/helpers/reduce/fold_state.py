"""States of folds: the terms that elements add, how states are joined, and where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from exact import _two_sum
from float_math import EXP_SCALE, LOWEST, _exp, _greater_float, _lesser_float, _muladd
from fold import _ADDED, _DOUBLE, Fold, _bits_type, _widened
from fold_product import _brought_back, _product, _times_narrow, _times_wide
from half import _bfloat_to_float, _half_to_float
from llvm import _const, _least_integer, _on_lanes, _width
from loops import _tree
from memory import _splat
from order_key import _mirror
from seldom import _CALM_POWER, _EXPONENT, _beyond, _or_else, _unless_one, _unless_zero
from shuffles import _shuffled
from target import _zen
from vectors import _any, _greater

RISE = 8.0  # by which an element exceeds the top before that is raised


def _key(builder: Any, fold: Fold, rule: tuple[Any, ...], bits: Any) -> Any:
    """The total order of the elements, NaN apart, as that of signed integers."""
    flip, nan_key, inf = (_splat(builder, r, bits.type) for r in rule)
    if not fold.floats:
        return builder.xor(bits, flip)
    key = builder.xor(_mirror(builder, bits), flip)
    magnitude = builder.and_(bits, _const(bits.type, 2 ** (fold.bits - 1) - 1))
    is_nan = builder.icmp_signed(">", magnitude, inf)
    return builder.select(is_nan, nan_key, key)


def _key_of_number(builder: Any, rule: tuple[Any, ...], bits: Any) -> Any:
    """As _key, of floats none of which is NaN."""
    return builder.xor(_mirror(builder, bits), _splat(builder, rule[0], bits.type))


def _element_of_key(builder: Any, fold: Fold, rule: tuple[Any, ...], key: Any) -> Any:
    """The bits of a key; those of some NaN for NaN's."""
    bits = builder.xor(key, _splat(builder, rule[0], key.type))
    if not fold.floats:
        return bits
    return _mirror(builder, bits)


def _terms(context: Any, builder: Any, fold: Fold, rule: tuple[Any, ...], bits: Any) -> Any:
    """What elements contribute: of 16-bit floats in float32 where few of them cannot overflow."""
    operation, dtype, count = fold.operation, fold.dtype, bits.type.count
    if operation == "greatest":
        return _key(builder, fold, rule, bits)
    if not fold.floats:
        if operation == "exponentials":
            convert = builder.uitofp if dtype.startswith("U") else builder.sitofp
            return convert(bits, ir.VectorType(_DOUBLE, count))
        if operation == "squares":
            return builder.mul(bits, bits)
        if operation == "magnitudes":
            negative = builder.icmp_signed("<", bits, ir.Constant(bits.type, None))
            return builder.select(negative, builder.neg(bits), bits)
        return bits
    if dtype == "FLOAT16":
        value = _half_to_float(context, builder, bits)
    elif dtype == "BFLOAT16":
        value = _bfloat_to_float(builder, bits)
    else:
        single = ir.FloatType() if dtype == "FLOAT32" else _DOUBLE
        value = builder.bitcast(bits, ir.VectorType(single, count))
    if operation in (*_ADDED, "product") and dtype != "FLOAT16":
        value = _widened(builder, value)
    if operation == "magnitudes" and _splits(context, fold):
        # LLVM would take them of whole vectors before these are converted in pieces (1.6 times as long).
        value = _on_lanes(builder, "arithmetic.fence", value)
    if operation == "magnitudes" or (fold.wide and operation == "squares"):
        value = _on_lanes(builder, "fabs", value)
    return value


def _neutral_terms(fold: Fold, type_: Any) -> Any:
    """Terms that change nothing."""
    if fold.operation == "greatest":
        return _least_integer(type_)
    if fold.operation == "product":
        return _const(type_, 1)
    if fold.operation == "exponentials":
        return _const(type_, float("-inf"))
    return _const(type_, 0 if isinstance(type_.element, ir.IntType) else -0.0)


def _neutral(fold: Fold, count: int) -> list[Any]:
    """The state of no elements, in so many lanes."""
    vector = ir.VectorType(fold.lane, count)
    if fold.lane != _DOUBLE:
        return [_neutral_terms(fold, vector)]
    zero = _const(vector, 0.0)
    if fold.operation == "product":
        return [_const(vector, 1.0), zero]
    sums = [_const(vector, -0.0), *([zero] if fold.wide else [])]
    if fold.operation == "exponentials":
        lowest = LOWEST[64 if fold.wide else 32]
        return [zero, *sums[1:], _const(vector, lowest)]
    if len(sums) < fold.arrays:
        return [*sums, _const(vector, 1.0)]
    return sums


def _neutral_at(fold: Fold, places: list[Any]) -> list[Any]:
    """The state of no elements, in pieces as wide as those at `places`."""
    width: int = places[0].type.pointee.count
    return _neutral(fold, width) * (fold.count // width)


_LEAST_SCALE = 2.0**-1000
_GREATEST_SCALE = 2.0**1000


def _scale_of(builder: Any, magnitude: Any) -> Any:
    """The power of two of a magnitude, such that neither it nor its reciprocal is subnormal."""
    bits = builder.bitcast(magnitude, _bits_type(magnitude))
    power = builder.and_(bits, _const(bits.type, _EXPONENT))
    power = builder.bitcast(power, magnitude.type)
    least, most = _const(power.type, _LEAST_SCALE), _const(power.type, _GREATEST_SCALE)
    power = _greater_float(builder, power, least)
    return _lesser_float(builder, power, most)


def _known_scale(builder: Any, state: list[Any]) -> Any:
    """The scale of a sum of squares, the least of nothing but zeros."""
    zero = builder.fcmp_ordered("==", state[0], _const(state[0].type, 0.0))
    return builder.select(zero, _const(state[0].type, _LEAST_SCALE), state[-1])


def _reciprocal(builder: Any, power: Any) -> Any:
    """1 / power, of a power of two."""
    bits = builder.bitcast(power, _bits_type(power))
    return builder.bitcast(builder.sub(_const(bits.type, 2046 << 52), bits), power.type)


def _sum_of_two(context: Any, builder: Any, a: Any, b: Any) -> Any:
    """a + b, which Zen makes where it neither converts nor makes other additions."""
    if _zen(context) == 0:
        return builder.fadd(a, b)
    # Zen converts where it adds, and multiplies and adds elsewhere (0.65 to 0.9 of the time): 1 * a + b, of a factor
    # that LLVM does not see through.
    one = _on_lanes(builder, "arithmetic.fence", _const(a.type, 1.0))
    return _muladd(builder, one, a, b)


def _states_added(context: Any, builder: Any, a: list[Any], b: list[Any]) -> list[Any]:
    """Sums, with their rounding errors where there are such."""
    if len(a) == 1:
        return [builder.fadd(a[0], b[0])]

    def plus(a: Any, b: Any) -> Any:
        return _sum_of_two(context, builder, a, b)

    whole, lost = _two_sum(builder, a[0], b[0], plus)
    return [whole, plus(builder.fadd(a[1], b[1]), lost)]


def _times(builder: Any, sums: list[Any], factor: Any) -> list[Any]:
    return [builder.fmul(s, factor) for s in sums]


def _depth(builder: Any, x: Any, top: Any) -> Any:
    """x - top, 0 for an infinity that is the top."""
    same = builder.fcmp_ordered("==", x, top)
    return builder.select(same, ir.Constant(x.type, None), builder.fsub(x, top))


def _exp_of(context: Any, builder: Any, fold: Fold, depth: Any) -> Any:
    narrow = depth.type.element == ir.FloatType()
    return _exp(context, builder, depth, min(fold.bits, 32) if narrow else 64)


def _lowered(context: Any, builder: Any, fold: Fold, sums: list[Any], depth: Any) -> list[Any]:
    """Sums of exponentials below a top that has risen by -depth."""
    scale = _widened(builder, _exp_of(context, builder, fold, depth))
    return _times(builder, sums, builder.fmul(scale, _const(scale.type, 1 / EXP_SCALE)))


def _states_joined(
    context: Any,
    builder: Any,
    fold: Fold,
    a: list[Any],
    b: list[Any],
    one_top: bool = False,
) -> list[Any]:
    """Two states as one; `one_top`: of exponentials below one and the same top."""
    operation = fold.operation
    if operation == "greatest":
        return [_greater(builder, a[0], b[0])]
    if not isinstance(a[0].type.element, ir.DoubleType | ir.FloatType):
        return [(builder.mul if operation == "product" else builder.add)(a[0], b[0])]
    if operation == "product":
        product = _product(builder, a, b[0], builder.bitcast(b[1], _bits_type(b[1])))
        return _brought_back(builder, product)
    if operation == "exponentials":
        top = a[-1]
        if one_top:
            return [*_states_added(context, builder, a[:-1], b[:-1]), top]
        top = _greater_float(builder, a[-1], b[-1])
        a, b = (
            _lowered(context, builder, fold, s[:-1], _depth(builder, s[-1], top)) for s in (a, b)
        )
        return [*_states_added(context, builder, a, b), top]
    if operation == "squares" and fold.wide:
        scale = _greater_float(builder, *(_known_scale(builder, state) for state in (a, b)))
        inverse = _reciprocal(builder, scale)
        sides = []
        for state in (a, b):
            factor = builder.fmul(state[-1], inverse)
            # One factor after the other: its square may be too small.
            sides.append(_times(builder, _times(builder, state[:-1], factor), factor))
        return [*_states_added(context, builder, *sides), scale]
    return _states_added(context, builder, a, b)


def _terms_folded(
    context: Any,
    builder: Any,
    fold: Fold,
    state: list[Any],
    count: int,
    term: Callable[[int], Any],
    one_group: bool,
    fresh: bool = False,
) -> list[Any]:
    """The state with `count` vectors of terms.

    `one_group`: all lanes are of one group, and have one top; `fresh`: the state is that of no elements.
    """
    operation, numbers = fold.operation, range(count)

    def sum_of(values: list[Any]) -> Any:
        return _tree(numbers, values.__getitem__, builder.fadd)

    if operation == "product" and fold.lane == _DOUBLE:
        return _times_wide(builder, state, [term(i) for i in numbers])
    if operation == "exponentials":
        terms = [term(i) for i in numbers]
        old = state[-1]
        if not fold.wide:
            old = builder.fptrunc(old, terms[0].type)
        top = _tree(numbers, terms.__getitem__, lambda a, b: _greater_float(builder, a, b))
        sums = state[:-1]
        if fresh:
            if one_group:
                top = _everywhere(builder, top)
            top = _greater_float(builder, top, old)
            depths = [_depth(builder, t, top) for t in terms]
        else:
            # Raised seldom: each time rounds the sums, and costs an exponential. Else nothing waits for the greatest
            # (1.3 times as fast).
            most = _const(top.type, -LOWEST[_width(top.type)])
            enough = _lesser_float(builder, most, builder.fadd(old, _const(old.type, RISE)))
            raised = builder.fcmp_ordered(">", top, enough)
            variables = [cgutils.alloca_once_value(builder, v) for v in (*sums, old, old, *terms)]
            with builder.if_then(_any(builder, raised), likely=False):
                top = _everywhere(builder, top) if one_group else builder.select(raised, top, old)
                lowered = _lowered(context, builder, fold, sums, _depth(builder, old, top))
                # Infinities have no difference.
                finite = [_lesser_float(builder, most, t) for t in (top, *terms)]
                for variable, value in zip(variables, (*lowered, top, *finite), strict=True):
                    builder.store(value, variable)
            values = [builder.load(variable) for variable in variables]
            sums, (top, finite_top, *terms) = values[: len(sums)], values[len(sums) :]
            depths = [builder.fsub(t, finite_top) for t in terms]
        powers = [_exp_of(context, builder, fold, d) for d in depths]
        added = _widened(builder, sum_of(powers))
        sums = _states_added(
            context, builder, sums, [added, *(_const(added.type, -0.0) for _ in sums[1:])]
        )
        return [*sums, _widened(builder, top)]
    if operation == "squares" and fold.wide:
        terms = [term(i) for i in numbers]
        top = _tree(numbers, terms.__getitem__, lambda a, b: _greater_float(builder, a, b))

        def squared(values: list[Any]) -> list[Any]:
            added = sum_of([builder.fmul(value, value) for value in values])
            return [added, _const(added.type, -0.0)]

        def scaled() -> list[Any]:
            known = _known_scale(builder, state)
            scale = _greater_float(builder, known, _scale_of(builder, top))
            inverse = _reciprocal(builder, scale)
            factor = builder.fmul(known, inverse)
            sums = _times(builder, _times(builder, state[:-1], factor), factor)
            more = squared([builder.fmul(t, inverse) for t in terms])
            return [*_states_added(context, builder, sums, more), scale]

        # As they are where squares come near neither the least nor the greatest double: 0.5 to 0.8 of the time.
        beyond = _unless_zero(builder, _beyond(builder, top, _CALM_POWER), top)
        bits = builder.or_(beyond, _unless_one(builder, state[-1]))
        plain = [
            *_states_added(context, builder, state[:-1], squared(terms)),
            _const(top.type, 1.0),
        ]
        return _or_else(builder, bits, plain, scaled)

    def leaf(i: int) -> list[Any]:
        value = term(i)
        return [value, _const(value.type, -0.0)] if fold.wide else [value]

    def joined(a: list[Any], b: list[Any]) -> list[Any]:
        return _states_joined(context, builder, fold, a, b)

    return joined(state, _tree(numbers, leaf, joined))


def _summed(
    context: Any,
    builder: Any,
    fold: Fold,
    state: list[Any],
    count: int,
    terms: Callable[[int], list[Any]],
    fresh: bool,
) -> list[Any]:
    """The sums of a state with `count` vectors of converted terms, both in as many pieces; see _terms_folded."""
    squares = fold.operation == "squares"

    def leaf(i: int) -> list[Any]:
        values = terms(i)
        if not squares:
            return values
        values = [builder.fmul(v, v) for v in values]
        if i + 1 < count:
            pairs = zip(terms(i + 1), values, strict=True)
            values = [_muladd(builder, v, v, square) for v, square in pairs]
        return values

    def plus(a: list[Any], b: list[Any]) -> list[Any]:
        return [_sum_of_two(context, builder, *pair) for pair in zip(a, b, strict=True)]

    # Squares are exact: two are added with one rounding in either way, in this one with an operation less (0.9 to 1 of
    # the time).
    if squares and count == 1 and not fresh and fold.bits == 32:
        return [_muladd(builder, v, v, old) for v, old in zip(terms(0), state, strict=True)]
    added = _tree(range(0, count, 2 if squares else 1), leaf, plus)
    if state[0].type.element == _DOUBLE:
        added = [_widened(builder, value) for value in added]
    return added if fresh else plus(added, state)


def _narrow(builder: Any, fold: Fold, state: list[Any]) -> list[Any]:
    """The variables into which a few vectors at most are folded, one by one, until _join_narrow.

    As many as are folded together. Short sums of a fold that narrows take 0.55 to 0.95 of the time so. For other folds
    these variables are the state.
    """
    if not fold.narrows:
        return state
    if fold.operation == "product":
        return [
            cgutils.alloca_once_value(builder, _const(mantissa.type.pointee, 1.0))
            for mantissa in state[::2]
        ]
    vectors = [ir.VectorType(ir.FloatType(), variable.type.pointee.count) for variable in state]
    return [cgutils.alloca_once_value(builder, _const(vector, -0.0)) for vector in vectors]


def _join_narrow(
    context: Any, builder: Any, fold: Fold, narrow: list[Any], state: list[Any]
) -> None:
    """Fold what _narrow came to into the state."""
    if narrow is state:
        return
    old = [builder.load(variable) for variable in state]
    more = [builder.load(variable) for variable in narrow]
    if fold.operation == "product":
        new = _times_narrow(builder, old, 1, lambda _i: more)
    else:
        new = [
            _sum_of_two(context, builder, _widened(builder, sums), value)
            for sums, value in zip(more, old, strict=True)
        ]
    for variable, value in zip(state, new, strict=True):
        builder.store(value, variable)


def _everywhere(builder: Any, value: Any) -> Any:
    """The greatest lane in all lanes."""
    step = value.type.count // 2
    while step:
        other = _shuffled(builder, value, value, [i ^ step for i in range(value.type.count)])
        value = _greater_float(builder, value, other)
        step //= 2
    return value


def _places(builder: Any, fold: Fold, at: Any, gap: Any, lane: Any, count: int) -> list[Any]:
    """Pointers to `count` lanes of each array of a state."""
    i64 = ir.IntType(64)
    address = builder.add(at, builder.mul(lane, i64(fold.lane_bytes)))
    vector = ir.VectorType(fold.lane, count)
    return [
        builder.inttoptr(builder.add(address, builder.mul(gap, i64(a))), vector.as_pointer())
        for a in range(fold.arrays)
    ]


def _splits(context: Any, fold: Fold) -> bool:
    """Whether converted elements are folded in pieces of 256 bits, as Zen converts them best before Zen 5."""
    return fold.widens and 0 < _zen(context) < 5


def _pieces(context: Any, builder: Any, fold: Fold, at: Any, gap: Any, lane: Any) -> list[Any]:
    """Pointers to a vector of states, or to the pieces of it in which the target adds best."""
    width = fold.count
    if _splits(context, fold):
        width = 8 if fold.dtype == "FLOAT16" else 4  # 256 bits of what elements are converted to
    firsts = [builder.add(lane, lane.type(first)) for first in range(0, fold.count, width)]
    return [place for first in firsts for place in _places(builder, fold, at, gap, first, width)]


def _loaded(builder: Any, places: list[Any]) -> list[Any]:
    return [builder.load(place, align=1) for place in places]


def _stored(builder: Any, places: list[Any], state: list[Any]) -> None:
    for place, value in zip(places, state, strict=True):
        builder.store(value, place, align=1)


def _start(builder: Any, fold: Fold, fresh: Any, places: list[Any]) -> list[Any]:
    """Variables with the states at `places`, or, where it is `fresh`, those of no elements."""
    state = [cgutils.alloca_once(builder, place.type.pointee) for place in places]
    neutral = _neutral_at(fold, places)
    with builder.if_else(fresh) as (then, otherwise):
        with then:
            for variable, value in zip(state, neutral, strict=True):
                builder.store(value, variable)
        with otherwise:
            for variable, value in zip(state, _loaded(builder, places), strict=True):
                builder.store(value, variable)
    return state


@intrinsic
def reset(_context: Any, fold: Any, at: Any, gap: Any, lanes: Any) -> Any:
    """States of no elements, as whole vectors."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, at, gap, lanes = values
        f = fold.fold
        i64 = lanes.type
        with cgutils.for_range_slice(builder, i64(0), lanes, i64(f.count), i64) as (lane, _):
            _stored(builder, _places(builder, f, at, gap, lane, f.count), _neutral(f, f.count))
        return context.get_dummy_value()

    return types.void(fold, types.int64, types.int64, types.int64), codegen
