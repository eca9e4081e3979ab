"""Folds: elements of many groups become one number each, in vectors.

What a group has come to so far is its state: a lane in each of one to three arrays of lanes, `gap` bytes apart, in
scratch memory. `rule` is the address of six int64: flip, nan_key, inf (see the order keys), what becomes of the
state in the end (NONE, MEAN, ROOT or LOG), the elements of a group, and whether integers are unsigned.

Operations, and their states:
  sum, magnitudes, squares   the sum, in float64 for floats; of FLOAT64 also its rounding errors, and for squares the
                             power of two that elements were divided by
  product                    for floats the mantissa and the exponent of 2: no product of a few lanes overflows
  exponentials               the sum of exp(x - top) * EXP_SCALE; of wide ones its rounding errors; the top, which
                             few elements exceed, by RISE at most
  greatest                   the greatest order key, which tells -0.0 from 0.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl

from float_math import (
    EXP_SCALE,
    LOWEST,
    _exp,
    _greater_float,
    _lesser_float,
    _log,
    _muladd,
    _same,
    _width,
)
from half import (
    _bfloat_to_float,
    _float_to_bfloat,
    _float_to_half,
    _half_to_float,
    _is_zen,
    _to_odd,
)
from memory import VECTOR_BYTES, _load, _pointer, _prefetch, _splat
from order_key import _mirror
from vectors import _extreme, _extremes, _greater, _mask, _masked_load

NONE = 0
MEAN = 1
ROOT = 2
LOG = 3

FOLD = 8  # vectors that are added to each other first: nothing waits for the sum before
GROUPS = 8  # states folded across their lanes together; of most folds, results stored together
AHEAD_IN_RUN = 8192  # bytes fetched ahead along a run
RISE = 8.0  # by which an element exceeds the top before that is raised

_ADDED = ("sum", "magnitudes", "squares")
_FLOATS = {"FLOAT16": 16, "BFLOAT16": 16, "FLOAT32": 32, "FLOAT64": 64}
_DOUBLE = ir.DoubleType()
_EXPONENT = 0x7FF << 52  # bits of a double's exponent


class Fold:
    """An operation on the elements of a data type; signed integers stand for unsigned ones but in exponentials."""

    def __init__(self, dtype: str, operation: str) -> None:
        self.dtype = dtype
        self.operation = operation
        self.floats = dtype in _FLOATS
        self.bits = _FLOATS.get(dtype) or int(dtype.lstrip("UINT"))
        self.element = ir.IntType(self.bits)
        exact = operation == "greatest" or not (self.floats or operation == "exponentials")
        self.lane = self.element if exact else _DOUBLE
        self.wide = not exact and dtype not in ("FLOAT16", "BFLOAT16", "FLOAT32")
        self.count = 8 if self.wide else 16
        self.arrays = 1
        if exact:
            self.count = VECTOR_BYTES * 8 // self.bits
        elif operation == "product":
            self.arrays = 2
        else:
            scaled = operation == "exponentials" or (self.wide and operation == "squares")
            self.arrays = 1 + self.wide + scaled
        # A sum of floats that are converted first.
        self.converts = self.floats and operation in _ADDED and not self.wide
        self.lane_bytes = 8 if self.lane == _DOUBLE else self.bits // 8
        self.state_bytes = self.arrays * self.lane_bytes
        # So much arithmetic that the processor does not look far enough ahead itself.
        self.slow = operation == "exponentials" or (self.bits == 16 and not exact)


class _FoldType(types.Type):
    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        super().__init__(f"Fold({fold.dtype}, {fold.operation})")


register_model(_FoldType)(models.OpaqueModel)


@typeof_impl.register(Fold)
def _type_of_fold(fold: Fold, _context: Any) -> _FoldType:
    return _FoldType(fold)


@lower_constant(_FoldType)
def _constant_fold(context: Any, _builder: Any, _type: Any, _fold: Fold) -> Any:
    return context.get_dummy_value()


def _vector_of(element: Any, count: int) -> Any:
    return ir.VectorType(element, count)


def _bits_of(value: Any) -> Any:
    return _vector_of(ir.IntType(64), value.type.count)


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    fnty = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), arguments)


def _on_lanes(builder: Any, name: str, value: Any) -> Any:
    """LLVM's intrinsic `name` of a vector of floats."""
    width = 32 if value.type.element == ir.FloatType() else 64
    return _call(builder, f"llvm.{name}.v{value.type.count}f{width}", value.type, value)


def _widened(builder: Any, value: Any) -> Any:
    """Doubles of floats."""
    if value.type.element != ir.FloatType():
        return value
    return builder.fpext(value, _vector_of(_DOUBLE, value.type.count))


def _rule_of(builder: Any, fold: Fold, rule: Any) -> tuple[Any, ...]:
    """flip, nan_key and inf in an element's width, where elements are compared."""
    if fold.operation != "greatest":
        return ()
    words = [
        _load(builder, _pointer(builder, rule, ir.IntType(64)(8 * i)), ir.IntType(64))
        for i in range(3)
    ]
    return tuple(w if fold.bits == 64 else builder.trunc(w, fold.element) for w in words)


def _key(builder: Any, fold: Fold, rule: tuple[Any, ...], bits: Any) -> Any:
    """The total order of the elements, NaN apart, as that of signed integers."""
    flip, nan_key, inf = (_splat(builder, r, bits.type) for r in rule)
    if not fold.floats:
        return builder.xor(bits, flip)
    key = builder.xor(_mirror(builder, bits), flip)
    magnitude = builder.and_(bits, _same(bits.type, 2 ** (fold.bits - 1) - 1))
    is_nan = builder.icmp_signed(">", magnitude, inf)
    return builder.select(is_nan, nan_key, key)


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
            return convert(bits, _vector_of(_DOUBLE, count))
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
        value = builder.bitcast(bits, _vector_of(single, count))
    if operation == "product" or (operation in _ADDED and dtype != "FLOAT16"):
        value = _widened(builder, value)
    if operation == "magnitudes" and fold.converts and _is_zen(context):
        # LLVM would take them of whole vectors before these are converted in pieces (1.6 times as long).
        value = _on_lanes(builder, "arithmetic.fence", value)
    if operation == "magnitudes" or (fold.wide and operation == "squares"):
        value = _on_lanes(builder, "fabs", value)
    return value


def _blank(fold: Fold, type_: Any) -> Any:
    """Terms that change nothing."""
    if fold.operation == "greatest":
        return _same(type_, -(2 ** (fold.bits - 1)))
    if fold.operation == "product":
        return _same(type_, 1)
    if fold.operation == "exponentials":
        return _same(type_, float("-inf"))
    return _same(type_, 0 if isinstance(type_.element, ir.IntType) else -0.0)


def _neutral(fold: Fold, count: int) -> list[Any]:
    """The state of no elements, in so many lanes."""
    vector = _vector_of(fold.lane, count)
    if fold.lane != _DOUBLE:
        return [_blank(fold, vector)]
    zero = _same(vector, 0.0)
    if fold.operation == "product":
        return [_same(vector, 1.0), zero]
    sums = [_same(vector, -0.0), *([zero] if fold.wide else [])]
    if fold.operation == "exponentials":
        lowest = LOWEST[64 if fold.wide else 32]
        return [zero, *sums[1:], _same(vector, lowest)]
    if len(sums) < fold.arrays:
        return [*sums, _same(vector, _LEAST_SCALE)]
    return sums


_LEAST_SCALE = 2.0**-1000
_GREATEST_SCALE = 2.0**1000


def _scale_of(builder: Any, magnitude: Any) -> Any:
    """The power of two of a magnitude, such that neither it nor its reciprocal is subnormal."""
    bits = builder.bitcast(magnitude, _bits_of(magnitude))
    power = builder.and_(bits, _same(bits.type, _EXPONENT))
    power = builder.bitcast(power, magnitude.type)
    least, most = _same(power.type, _LEAST_SCALE), _same(power.type, _GREATEST_SCALE)
    power = _greater_float(builder, power, least)
    return _lesser_float(builder, power, most)


def _reciprocal(builder: Any, power: Any) -> Any:
    """1 / power, of a power of two."""
    bits = builder.bitcast(power, _bits_of(power))
    return builder.bitcast(builder.sub(_same(bits.type, 2046 << 52), bits), power.type)


def _plus(context: Any, builder: Any, a: Any, b: Any) -> Any:
    """a + b of converted floats."""
    if not _is_zen(context):
        return builder.fadd(a, b)
    # 1 * a + b, of a factor that LLVM does not see through.
    one = _on_lanes(builder, "arithmetic.fence", _same(a.type, 1.0))
    return _muladd(builder, one, a, b)


def _two_sum(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what rounding lost in it (Knuth)."""
    whole = builder.fadd(a, b)
    from_b = builder.fsub(whole, a)
    from_a = builder.fsub(whole, from_b)
    return whole, builder.fadd(builder.fsub(a, from_a), builder.fsub(b, from_b))


def _added(builder: Any, a: list[Any], b: list[Any]) -> list[Any]:
    """Sums, with their rounding errors where there are such."""
    if len(a) == 1:
        return [builder.fadd(a[0], b[0])]
    whole, lost = _two_sum(builder, a[0], b[0])
    return [whole, builder.fadd(builder.fadd(a[1], b[1]), lost)]


def _times(builder: Any, sums: list[Any], factor: Any) -> list[Any]:
    return [builder.fmul(s, factor) for s in sums]


def _normalised(builder: Any, value: Any) -> tuple[Any, Any]:
    """Mantissa, 1/2 to 1, and exponent (as int64); 0, infinities and NaN as they are."""
    integers = _bits_of(value)
    bits = builder.bitcast(value, integers)
    field = builder.and_(builder.lshr(bits, _same(integers, 52)), _same(integers, 0x7FF))
    below = builder.sub(field, _same(integers, 1))
    ordinary = builder.icmp_unsigned("<", below, _same(integers, 0x7FE))
    half = builder.and_(bits, _same(integers, ~_EXPONENT))
    half = builder.or_(half, _same(integers, 1022 << 52))
    mantissa = builder.bitcast(builder.select(ordinary, half, bits), value.type)
    exponent = builder.sub(field, _same(integers, 1022))
    return mantissa, builder.select(ordinary, exponent, ir.Constant(integers, None))


def _product(builder: Any, state: list[Any], mantissa: Any, exponent: Any) -> list[Any]:
    """State times mantissa * 2**exponent (None: 0); the exponent's bits stand in the lanes of a double."""
    mantissa, more = _normalised(builder, builder.fmul(state[0], mantissa))
    total = builder.add(builder.bitcast(state[1], more.type), more)
    if exponent is not None:
        total = builder.add(total, exponent)
    return [mantissa, builder.bitcast(total, mantissa.type)]


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
    return _times(builder, sums, builder.fmul(scale, _same(scale.type, 1 / EXP_SCALE)))


def _joined(
    context: Any, builder: Any, fold: Fold, a: list[Any], b: list[Any], one_top: bool = False
) -> list[Any]:
    """Two states as one; `one_top`: of exponentials below one and the same top."""
    operation = fold.operation
    if operation == "greatest":
        return [_greater(builder, a[0], b[0])]
    if not isinstance(a[0].type.element, ir.DoubleType | ir.FloatType):
        return [(builder.mul if operation == "product" else builder.add)(a[0], b[0])]
    if operation == "product":
        return _product(builder, a, b[0], builder.bitcast(b[1], _bits_of(b[1])))
    if operation == "exponentials":
        top = a[-1]
        if one_top:
            return [*_added(builder, a[:-1], b[:-1]), top]
        top = _greater_float(builder, a[-1], b[-1])
        a, b = (
            _lowered(context, builder, fold, s[:-1], _depth(builder, s[-1], top)) for s in (a, b)
        )
        return [*_added(builder, a, b), top]
    if operation == "squares" and fold.wide:
        scale = _greater_float(builder, a[-1], b[-1])
        inverse = _reciprocal(builder, scale)
        sides = []
        for state in (a, b):
            factor = builder.fmul(state[-1], inverse)
            # One factor after the other: its square may be too small.
            sides.append(_times(builder, _times(builder, state[:-1], factor), factor))
        return [*_added(builder, *sides), scale]
    return _added(builder, a, b)


def _tree(items: range, leaf: Callable[[int], Any], operation: Callable[[Any, Any], Any]) -> Any:
    """Pairs first, then pairs of these: errors and waiting grow with the logarithm."""
    if len(items) == 1:
        return leaf(items[0])
    half = len(items) // 2
    a, b = (_tree(part, leaf, operation) for part in (items[:half], items[half:]))
    return operation(a, b)


def _folded(
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
        if fold.wide:
            rescale = []
            for i in numbers:
                value = term(i)
                tiny = _same(value.type, 2.0**-1022)
                subnormal = builder.fcmp_ordered("<", _on_lanes(builder, "fabs", value), tiny)
                raised = builder.fmul(value, _same(value.type, 2.0**54))
                mantissa, exponent = _normalised(builder, builder.select(subnormal, raised, value))
                lower = builder.sub(exponent, _same(exponent.type, 54))
                rescale.append((mantissa, builder.select(subnormal, lower, exponent)))
            mantissa = _tree(numbers, lambda i: rescale[i][0], builder.fmul)
            exponent = _tree(numbers, lambda i: rescale[i][1], builder.add)
            return _product(builder, state, mantissa, exponent)
        for first in range(0, count, 4):  # of so many float32 the product is a normal double
            few = range(first, min(first + 4, count))
            state = _product(builder, state, _tree(few, term, builder.fmul), None)
        return state
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
            most = _same(top.type, -LOWEST[_width(top.type)])
            enough = _lesser_float(builder, most, builder.fadd(old, _same(old.type, RISE)))
            raised = builder.fcmp_ordered(">", top, enough)
            variables = [cgutils.alloca_once_value(builder, v) for v in (*sums, old, old, *terms)]
            some = builder.bitcast(raised, ir.IntType(raised.type.count))
            with builder.if_then(builder.icmp_unsigned("!=", some, some.type(0)), likely=False):
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
        sums = _added(builder, sums, [added, *(_same(added.type, -0.0) for _ in sums[1:])])
        return [*sums, _widened(builder, top)]
    if operation == "squares" and fold.wide:
        terms = [term(i) for i in numbers]
        top = _tree(numbers, terms.__getitem__, lambda a, b: _greater_float(builder, a, b))
        scale = _greater_float(builder, state[-1], _scale_of(builder, top))
        inverse = _reciprocal(builder, scale)
        factor = builder.fmul(state[-1], inverse)
        sums = _times(builder, _times(builder, state[:-1], factor), factor)
        parts = [builder.fmul(t, inverse) for t in terms]
        added = sum_of([builder.fmul(p, p) for p in parts])
        return [*_added(builder, sums, [added, _same(added.type, -0.0)]), scale]

    def leaf(i: int) -> list[Any]:
        value = term(i)
        return [value, _same(value.type, -0.0)] if fold.wide else [value]

    def joined(a: list[Any], b: list[Any]) -> list[Any]:
        return _joined(context, builder, fold, a, b)

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
    """The sums of a state with `count` vectors of converted terms, both in as many pieces; see _folded."""
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
        return [_plus(context, builder, *pair) for pair in zip(a, b, strict=True)]

    # Squares are exact: two are added with one rounding in either way, in this one with an operation less.
    added = _tree(range(0, count, 2 if squares else 1), leaf, plus)
    added = [_widened(builder, value) for value in added]
    return added if fresh else plus(added, state)


def _part(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
    order = ir.Constant(_vector_of(ir.IntType(32), len(places)), places)
    return builder.shuffle_vector(a, b, order)


def _everywhere(builder: Any, value: Any) -> Any:
    """The greatest lane in all lanes."""
    step = value.type.count // 2
    while step:
        other = _part(builder, value, value, [i ^ step for i in range(value.type.count)])
        value = _greater_float(builder, value, other)
        step //= 2
    return value


def _places(builder: Any, fold: Fold, at: Any, gap: Any, lane: Any, count: int) -> list[Any]:
    """Pointers to `count` lanes of each array of a state."""
    i64 = ir.IntType(64)
    address = builder.add(at, builder.mul(lane, i64(fold.lane_bytes)))
    vector = _vector_of(fold.lane, count)
    return [
        builder.inttoptr(builder.add(address, builder.mul(gap, i64(a))), vector.as_pointer())
        for a in range(fold.arrays)
    ]


def _pieces(context: Any, builder: Any, fold: Fold, at: Any, gap: Any, lane: Any) -> list[Any]:
    """Pointers to a vector of states, or to the pieces of it in which the target adds best."""
    width = fold.count
    if fold.converts and _is_zen(context):
        width = 8 if fold.dtype == "FLOAT16" else 4  # 256 bits of what elements are converted to
    firsts = [builder.add(lane, lane.type(first)) for first in range(0, fold.count, width)]
    return [place for first in firsts for place in _places(builder, fold, at, gap, first, width)]


def _loaded(builder: Any, places: list[Any]) -> list[Any]:
    return [builder.load(place, align=1) for place in places]


def _stored(builder: Any, places: list[Any], state: list[Any]) -> None:
    for place, value in zip(places, state, strict=True):
        builder.store(value, place, align=1)


def _start(builder: Any, fold: Fold, fresh: Any, places: list[Any], state: list[Any]) -> None:
    """Set variables to the states at `places`, or, where it is `fresh`, to those of no elements."""
    width = places[0].type.pointee.count
    neutral = _neutral(fold, width) * (fold.count // width)
    with builder.if_else(fresh) as (then, otherwise):
        with then:
            for variable, value in zip(state, neutral, strict=True):
                builder.store(value, variable)
        with otherwise:
            for variable, value in zip(state, _loaded(builder, places), strict=True):
                builder.store(value, variable)


@intrinsic
def element_bytes(_context: Any, fold: Any) -> Any:
    """Bytes of an element, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(fold.fold.bits // 8)

    return types.int64(fold), codegen


@intrinsic
def lane_bytes(_context: Any, fold: Any) -> Any:
    """Bytes of a lane of each array of a state, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(fold.fold.lane_bytes)

    return types.int64(fold), codegen


@intrinsic
def lane_count(_context: Any, fold: Any) -> Any:
    """Elements of a vector, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(fold.fold.count)

    return types.int64(fold), codegen


@intrinsic
def state_arrays(_context: Any, fold: Any) -> Any:
    """Arrays of lanes that a state has, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(fold.fold.arrays)

    return types.int64(fold), codegen


@intrinsic
def is_slow(_context: Any, fold: Any) -> Any:
    """Whether a fold computes so long that even adjoining runs had better be fetched ahead, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(1)(fold.fold.slow)

    return types.boolean(fold), codegen


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


def _gathered(builder: Any, fold: Fold, address: Any, step: Any, count: Any) -> Any:
    """The first `count` (None: all) of the elements at address, address + step, ..; other lanes repeat the last one.

    One access for each lane is twice as fast as a masked gather instruction, and needs no branches.
    """
    i64 = ir.IntType(64)
    bits = ir.Constant(_vector_of(fold.element, fold.count), ir.Undefined)
    for lane in range(fold.count):
        if lane:
            further = builder.add(address, step)
            if count is not None:
                inside = builder.icmp_signed("<", i64(lane), count)
                further = builder.select(inside, further, address)
            address = further
        value = _load(builder, _pointer(builder, address), fold.element)
        bits = builder.insert_element(bits, value, ir.IntType(32)(lane))
    return bits


def _fold_part(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    state: list[Any],
    load: Callable[[int, Any], Any],
    rows: int,
    count: Any,
    one_group: bool,
    fresh: bool = False,
) -> list[Any]:
    """The state with `rows` vectors, of each the first `count` lanes; `load` gives their bits by number and mask."""
    mask = None
    if count is not None:
        # Lanes are at most 64: int8 will do for all numbers.
        mask = _mask(builder, _vector_of(ir.IntType(8), fold.count), count)
    if fold.operation == "greatest" and fold.floats and rows > 1:
        key = _greatest_of_floats(builder, fold, rule, [load(i, mask) for i in range(rows)])
        if mask is not None:
            key = builder.select(mask, key, _blank(fold, key.type))
        return [_greater(builder, state[0], key)]

    width = state[0].type.count  # of the pieces in which the state is

    def terms(i: int) -> list[Any]:
        bits = load(i, mask)
        values = []
        for first in range(0, fold.count, width):
            places = list(range(first, first + width))
            value = _terms(context, builder, fold, rule, _part(builder, bits, bits, places))
            if mask is not None:
                wanted = _part(builder, mask, mask, places)
                value = builder.select(wanted, value, _blank(fold, value.type))
            values.append(value)
        return values

    if fold.converts:
        return _summed(context, builder, fold, state, rows, terms, fresh)
    return _folded(context, builder, fold, state, rows, lambda i: terms(i)[0], one_group, fresh)


def _greatest_of_floats(builder: Any, fold: Fold, rule: tuple[Any, ...], rows: list[Any]) -> Any:
    """The greatest key of several vectors of floats; each needs a key only if there is NaN among them."""
    extremes = _extremes(builder, None, rows[0])
    for bits in rows[1:]:
        extremes = _extremes(builder, extremes, bits)
    bits, some_nan = _extreme(builder, extremes, rule[0], rule[2])
    key = cgutils.alloca_once_value(builder, _key(builder, fold, rule, bits))
    with builder.if_then(some_nan, likely=False):
        keys = [_key(builder, fold, rule, bits) for bits in rows]
        greatest = _tree(range(len(rows)), keys.__getitem__, lambda a, b: _greater(builder, a, b))
        builder.store(greatest, key)
    return builder.load(key)


def _load_row(builder: Any, fold: Fold, pointer: Any, mask: Any) -> Any:
    vector = _vector_of(fold.element, fold.count)
    if mask is None:
        return _load(builder, pointer, vector)
    return _masked_load(builder, pointer, mask, vector)


@intrinsic
def fold_run(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    n: Any,
    step: Any,
    fetches: Any,
    ahead: Any,
    pitch: Any,
    skipped: Any,
) -> Any:
    """Fold n elements of one group, `step` bytes apart, into the lanes of a vector of states, `fresh` ones at first.

    What is fetched, if it `fetches`, lies `ahead` bytes further on in the run, or as far beyond its end in the run that
    begins `pitch` bytes later; plus `skipped` bytes, of whole runs, in either case.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, n, step, fetches, ahead, pitch, skipped = values
        f = fold.fold
        i64 = n.type
        rule = _rule_of(builder, f, rule)
        size, lanes = f.bits // 8, f.count
        places = _pieces(context, builder, f, at, gap, i64(0))
        state = [cgutils.alloca_once(builder, place.type.pointee) for place in places]
        _start(builder, f, fresh, places, state)

        def more(load: Callable[[int, Any], Any], rows: int, count: Any) -> None:
            old = [builder.load(variable) for variable in state]
            new = _fold_part(context, builder, f, rule, old, load, rows, count, True)
            for variable, value in zip(state, new, strict=True):
                builder.store(value, variable)

        adjoining = builder.icmp_signed("==", step, i64(size))
        with builder.if_else(adjoining) as (then, otherwise):
            with then:
                start = _pointer(builder, address)

                def rows_at(offset: Any) -> Callable[[int, Any], Any]:
                    def load(i: int, mask: Any) -> Any:
                        place = builder.gep(start, [builder.add(offset, i64(i * lanes * size))])
                        return _load_row(builder, f, place, mask)

                    return load

                run_bytes = builder.mul(n, i64(size))
                position = i64(0)
                for rows in (FOLD, 1):
                    end = builder.mul(builder.and_(n, i64(-rows * lanes)), i64(size))
                    stride = i64(rows * lanes * size)
                    strip = cgutils.for_range_slice(builder, position, end, stride, i64)
                    with strip as (offset, _):
                        if rows > 1:
                            with builder.if_then(fetches):
                                later = builder.add(offset, ahead)
                                inside = builder.icmp_signed("<", later, run_bytes)
                                next_run = builder.add(builder.sub(later, run_bytes), pitch)
                                later = builder.select(inside, later, next_run)
                                later = builder.add(later, skipped)
                                for line in range(0, rows * lanes * size, VECTOR_BYTES):
                                    place = builder.add(later, i64(line))
                                    _prefetch(builder, builder.gep(start, [place]), 1)
                        more(rows_at(offset), rows, None)
                    position = end
                left = builder.and_(n, i64(lanes - 1))
                with builder.if_then(builder.icmp_signed(">", left, i64(0))):
                    more(rows_at(position), 1, left)
            with otherwise:
                strip = cgutils.for_range_slice(builder, i64(0), n, i64(lanes), i64)
                with strip as (position, _):
                    left = builder.sub(n, position)
                    few = builder.icmp_signed("<", left, i64(lanes))
                    count = builder.select(few, left, i64(lanes))
                    first = builder.add(address, builder.mul(position, step))
                    more(lambda _i, _m: _gathered(builder, f, first, step, count), 1, count)
        _stored(builder, places, [builder.load(variable) for variable in state])
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, flag, i64, i64, i64), codegen


@intrinsic
def fold_short(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    address: Any,
    n: Any,
    step: Any,
    groups: Any,
    readable: Any,
) -> Any:
    """Fold groups of n adjoining elements, at most one vector, each into a vector of states of its own.

    They are `step` bytes apart. What ends before `readable` may be read: masked loads take longer.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, address, n, step, groups, readable = values
        f = fold.fold
        i64 = n.type
        rule = _rule_of(builder, f, rule)
        vector = _vector_of(f.element, f.count)
        read = cgutils.alloca_once(builder, vector)
        size = i64(f.count * f.bits // 8)
        with cgutils.for_range(builder, groups) as loop:
            first = builder.add(address, builder.mul(loop.index, step))
            whole = builder.icmp_signed("<=", builder.add(first, size), readable)

            def load(_i: int, mask: Any, first: Any = first, whole: Any = whole) -> Any:
                pointer = _pointer(builder, first)
                with builder.if_else(whole) as (then, otherwise):
                    with then:
                        builder.store(_load(builder, pointer, vector), read)
                    with otherwise:
                        builder.store(_masked_load(builder, pointer, mask, vector), read)
                return builder.load(read)

            # Of so few elements, pieces take 1.05 times as long.
            state = _fold_part(
                context, builder, f, rule, _neutral(f, f.count), load, 1, n, True, True
            )
            lane = builder.mul(loop.index, i64(f.count))
            _stored(builder, _places(builder, f, at, gap, lane, f.count), state)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64, i64, i64), codegen


def _strips(builder: Any, fold: Fold, columns: Any, strip: Callable[[Any, Any], None]) -> None:
    """strip(column, count) for each vector of columns; count is None but for the last, a part of one."""
    i64 = columns.type
    whole = builder.and_(columns, i64(-fold.count))
    loop = cgutils.for_range_slice(builder, i64(0), whole, i64(fold.count), i64)
    with loop as (column, _):
        strip(column, None)
    left = builder.sub(columns, whole)
    with builder.if_then(builder.icmp_signed(">", left, i64(0))):
        strip(whole, left)


@intrinsic
def fold_rows(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    ahead: Any,
    columns: Any,
) -> Any:
    """Fold FOLD rows of adjoining columns into a state for each column.

    Row r begins at address + the int64 at `offsets` + 8 * r; what is fetched is the row that is `ahead` rows further on
    in that table.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, ahead, columns = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        size = i64(f.bits // 8)
        table = builder.inttoptr(offsets, i64.as_pointer())
        starts, later = [], []
        for r in range(FOLD):
            offset = builder.load(builder.gep(table, [i64(r)]))
            starts.append(_pointer(builder, address, offset))
            offset = builder.load(builder.gep(table, [builder.add(ahead, i64(r))]))
            later.append(_pointer(builder, address, offset))

        def strip(column: Any, count: Any) -> None:
            offset = builder.mul(column, size)

            def load(r: int, mask: Any) -> Any:
                if mask is None:
                    _prefetch(builder, builder.gep(later[r], [offset]), 2)
                return _load_row(builder, f, builder.gep(starts[r], [offset]), mask)

            places = _pieces(context, builder, f, at, gap, column)
            state = [cgutils.alloca_once(builder, place.type.pointee) for place in places]
            _start(builder, f, fresh, places, state)
            old = [builder.load(variable) for variable in state]
            new = _fold_part(context, builder, f, rule, old, load, FOLD, count, False)
            _stored(builder, places, new)

        _strips(builder, f, columns, strip)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64), codegen


def _fold_few(
    context: Any,
    builder: Any,
    fold: Fold,
    rule: tuple[Any, ...],
    fresh: Any,
    places: list[Any],
    rows: Any,
    row: Callable[[Any, Any], Any],
    count: Any,
) -> None:
    """Fold so many rows of a vector of columns into the states at `places`; `row` gives its bits by number and mask."""
    state = [cgutils.alloca_once(builder, place.type.pointee) for place in places]
    _start(builder, fold, fresh, places, state)
    with cgutils.for_range(builder, rows) as down:
        old = [builder.load(variable) for variable in state]
        new = _fold_part(
            context, builder, fold, rule, old, lambda _i, m: row(down.index, m), 1, count, False
        )
        for variable, value in zip(state, new, strict=True):
            builder.store(value, variable)
    _stored(builder, places, [builder.load(variable) for variable in state])


@intrinsic
def fold_few(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    columns: Any,
) -> Any:
    """Fold fewer rows than FOLD; see fold_rows."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, rows, columns = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        table = builder.inttoptr(offsets, i64.as_pointer())

        def strip(column: Any, count: Any) -> None:
            start = builder.add(address, builder.mul(column, i64(f.bits // 8)))

            def row(number: Any, mask: Any) -> Any:
                offset = builder.load(builder.gep(table, [number]))
                return _load_row(builder, f, _pointer(builder, start, offset), mask)

            places = _pieces(context, builder, f, at, gap, column)
            _fold_few(context, builder, f, rule, fresh, places, rows, row, count)

        _strips(builder, f, columns, strip)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64), codegen


@intrinsic
def fold_scattered(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    columns: Any,
    step: Any,
) -> Any:
    """Fold rows of columns that are `step` bytes apart; see fold_rows."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, offsets, rows, columns, step = values
        f = fold.fold
        i64 = columns.type
        rule = _rule_of(builder, f, rule)
        table = builder.inttoptr(offsets, i64.as_pointer())

        def strip(column: Any, count: Any) -> None:
            start = builder.add(address, builder.mul(column, step))
            places = _places(builder, f, at, gap, column, f.count)

            def row(number: Any, _mask: Any) -> Any:
                first = builder.add(start, builder.load(builder.gep(table, [number])))
                return _gathered(builder, f, first, step, count)

            _fold_few(context, builder, f, rule, fresh, places, rows, row, count)

        _strips(builder, f, columns, strip)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64, i64), codegen


@intrinsic
def across(_context: Any, fold: Any, at: Any, gap: Any, results: Any, result_gap: Any) -> Any:
    """Fold each of GROUPS vectors of states across its lanes: a state for each of them in `results`."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, at, gap, results, result_gap = values
        f = fold.fold
        i64 = at.type

        def joined(a: list[Any], b: list[Any]) -> list[Any]:
            return _joined(context, builder, f, a, b, one_top=True)

        def parts(a: list[Any], b: list[Any], places: list[int]) -> list[Any]:
            return [_part(builder, *pair, places) for pair in zip(a, b, strict=True)]

        def group(number: int) -> list[Any]:
            """GROUPS lanes of one group."""
            state = _loaded(builder, _places(builder, f, at, gap, i64(number * f.count), f.count))
            count = f.count
            while count > GROUPS:
                count //= 2
                halves = ([*range(count)], [*range(count, 2 * count)])
                state = joined(*(parts(state, state, places) for places in halves))
            return state

        def pairs(numbers: range) -> list[Any]:
            """Lanes of these groups in turn, as many of each."""
            if len(numbers) == 1:
                return group(numbers[0])
            half = len(numbers) // 2
            a, b = pairs(numbers[:half]), pairs(numbers[half:])
            each = GROUPS // half  # lanes of a group in a, or b
            front = [i for i in range(2 * GROUPS) if i % each < each // 2]
            back = [i for i in range(2 * GROUPS) if i % each >= each // 2]
            return joined(parts(a, b, front), parts(a, b, back))

        _stored(
            builder,
            _places(builder, f, results, result_gap, i64(0), GROUPS),
            pairs(range(GROUPS)),
        )
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64), codegen


@intrinsic
def join(_context: Any, fold: Any, at: Any, other: Any, gap: Any, count: Any) -> Any:
    """Join `count` states at `other` to those at `at`, one by one."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, at, other, gap, count = values
        f = fold.fold
        i64 = count.type
        position = i64(0)
        for lanes in (GROUPS, 1):
            end = builder.and_(count, i64(-lanes))
            with cgutils.for_range_slice(builder, position, end, i64(lanes), i64) as (lane, _):
                places = _places(builder, f, at, gap, lane, lanes)
                others = _loaded(builder, _places(builder, f, other, gap, lane, lanes))
                _stored(
                    builder, places, _joined(context, builder, f, _loaded(builder, places), others)
                )
            position = end
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64), codegen


@intrinsic
def copy_states(
    _context: Any, fold: Any, to: Any, to_gap: Any, at: Any, gap: Any, count: Any
) -> Any:
    """Copy `count` states."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, to, to_gap, at, gap, count = values
        f = fold.fold
        targets = _places(builder, f, to, to_gap, count.type(0), 1)
        sources = _places(builder, f, at, gap, count.type(0), 1)
        for target, source in zip(targets, sources, strict=True):
            cgutils.raw_memcpy(builder, target, source, count, f.lane_bytes)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64), codegen


def _log_of(builder: Any, value: Any) -> Any:
    """log of any doubles."""
    vector = value.type
    tiny = builder.fcmp_ordered("<", value, _same(vector, 2.0**-1022))
    raised = builder.select(tiny, builder.fmul(value, _same(vector, 2.0**54)), value)
    result = _log(builder, raised)
    lowered = builder.fsub(result, _same(vector, 54 * 0.6931471805599453))
    result = builder.select(tiny, lowered, result)
    infinity = _same(vector, float("inf"))
    result = builder.select(builder.fcmp_ordered("==", value, infinity), infinity, result)
    zero = ir.Constant(vector, None)
    result = builder.select(
        builder.fcmp_ordered("==", value, zero), _same(vector, float("-inf")), result
    )
    return builder.select(
        builder.fcmp_ordered("<", value, zero), _same(vector, float("nan")), result
    )


def _sum_of(builder: Any, sums: list[Any]) -> Any:
    """A sum with its rounding errors, unless these are none of a finite one."""
    if len(sums) == 1:
        return sums[0]
    whole = builder.fadd(*sums)
    good = builder.fcmp_ordered("ord", whole, whole)
    zero = builder.fcmp_ordered("==", sums[1], ir.Constant(whole.type, None))
    return builder.select(builder.and_(good, builder.not_(zero)), whole, sums[0])


def _power_of_two(builder: Any, exponent: Any) -> Any:
    """2**exponent, for exponents of normal numbers."""
    bits = builder.add(exponent, _same(exponent.type, 1023))
    bits = builder.shl(bits, _same(bits.type, 52))
    return builder.bitcast(bits, _vector_of(_DOUBLE, bits.type.count))


def _clamped(builder: Any, value: Any, least: int, most: int) -> Any:
    low, high = _same(value.type, least), _same(value.type, most)
    value = builder.select(builder.icmp_signed(">", value, low), value, low)
    return builder.select(builder.icmp_signed("<", value, high), value, high)


class _Finish:
    """What becomes of states in the end."""

    def __init__(self, context: Any, builder: Any, fold: Fold, address: Any) -> None:
        self.context, self.builder, self.fold = context, builder, fold
        i64 = ir.IntType(64)
        self.rule = _rule_of(builder, fold, address)
        self.finish, self.total, self.unsigned = (
            _load(builder, _pointer(builder, address, i64(8 * i)), i64) for i in (3, 4, 5)
        )

    def _changed(self, finish: int, value: Any, change: Callable[[Any], Any]) -> Any:
        """change(value) where that is asked for."""
        builder = self.builder
        result = cgutils.alloca_once_value(builder, value)
        with builder.if_then(builder.icmp_signed("==", self.finish, self.finish.type(finish))):
            builder.store(change(value), result)
        return builder.load(result)

    def _number(self, state: list[Any]) -> Any:
        """Doubles."""
        builder, operation = self.builder, self.fold.operation
        if operation == "product":
            mantissa, exponent = state
            exponent = builder.bitcast(exponent, _bits_of(exponent))
            exponent = _clamped(builder, exponent, -1100, 1100)
            half = builder.ashr(exponent, _same(exponent.type, 1))
            rest = builder.sub(exponent, half)
            for part in (half, rest):
                mantissa = builder.fmul(mantissa, _power_of_two(builder, part))
            return mantissa
        if operation == "exponentials":
            total = _sum_of(builder, state[:-1])
            total = builder.fmul(total, _same(total.type, 1 / EXP_SCALE))
            return builder.fadd(state[-1], _log_of(builder, total))
        if operation == "squares" and self.fold.wide:
            value, scale = _sum_of(builder, state[:-1]), state[-1]
            root = self._changed(ROOT, value, lambda v: _on_lanes(builder, "sqrt", v))
            value = builder.fmul(root, scale)
            is_root = builder.icmp_signed("==", self.finish, self.finish.type(ROOT))
            return builder.select(is_root, value, builder.fmul(value, scale))
        value = _sum_of(builder, state)
        if operation == "squares":
            return self._changed(ROOT, value, lambda v: _on_lanes(builder, "sqrt", v))
        if operation == "sum":
            total = _splat(builder, builder.sitofp(self.total, _DOUBLE), value.type)
            value = self._changed(MEAN, value, lambda v: builder.fdiv(v, total))
            return self._changed(LOG, value, lambda v: _log_of(builder, v))
        return value

    def _whole(self, value: Any, signed: bool) -> Any:
        """Doubles cut to whole numbers of the element's type; what is none of its numbers to the nearest, NaN to the
        least."""
        builder, fold = self.builder, self.fold
        count = value.type.count
        result = _vector_of(fold.element, count)
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat.v{count}i{fold.bits}.v{count}f64"
        number = _call(builder, name, result, value)
        least = _same(result, -(2 ** (fold.bits - 1)) if signed else 0)
        return builder.select(builder.fcmp_unordered("uno", value, value), least, number)

    def _integer(self, value: Any, signed: bool) -> Any:
        """Of sums of integers."""
        builder, fold = self.builder, self.fold
        doubles = _vector_of(_DOUBLE, value.type.count)
        convert = builder.sitofp if signed else builder.uitofp

        def mean(sums: Any) -> Any:
            wide = _bits_of(sums)
            if fold.bits < 64:
                sums = (builder.sext if signed else builder.zext)(sums, wide)
            total = _splat(builder, self.total, wide)
            quotient = (builder.sdiv if signed else builder.udiv)(sums, total)
            return builder.trunc(quotient, value.type) if fold.bits < 64 else quotient

        if fold.operation == "squares":
            return self._changed(
                ROOT,
                value,
                lambda v: self._whole(_on_lanes(builder, "sqrt", convert(v, doubles)), signed),
            )
        value = self._changed(MEAN, value, mean)
        return self._changed(
            LOG, value, lambda v: self._whole(_log_of(builder, convert(v, doubles)), signed)
        )

    def __call__(self, state: list[Any]) -> Any:
        """Elements."""
        builder, fold = self.builder, self.fold
        if fold.operation == "greatest":
            return _element_of_key(builder, fold, self.rule, state[0])
        if not fold.floats:
            if fold.operation == "exponentials":
                return self._whole(self._number(state), not fold.dtype.startswith("U"))
            if fold.operation in ("product", "magnitudes"):
                return state[0]
            result = cgutils.alloca_once_value(builder, state[0])
            changes = builder.icmp_signed("!=", self.finish, self.finish.type(NONE))
            is_unsigned = builder.icmp_signed("!=", self.unsigned, self.unsigned.type(0))
            with builder.if_then(changes), builder.if_else(is_unsigned) as (then, otherwise):
                for branch, signed in ((then, False), (otherwise, True)):
                    with branch:
                        builder.store(self._integer(state[0], signed), result)
            return builder.load(result)
        value = self._number(state)
        if fold.dtype == "FLOAT64":
            return value
        if fold.dtype == "FLOAT32":
            return builder.fptrunc(value, _vector_of(ir.FloatType(), value.type.count))
        narrow = _to_odd(builder, value)
        if fold.dtype == "FLOAT16":
            return _float_to_half(self.context, builder, narrow)
        return _float_to_bfloat(builder, narrow)


@intrinsic
def finish(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    out: Any,
    step: Any,
    count: Any,
) -> Any:
    """Store the results of `count` states, `step` bytes apart; whole vectors of states are read."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, out, step, count = values
        f = fold.fold
        i64 = count.type
        finished = _Finish(context, builder, f, rule)
        size = i64(f.bits // 8)
        adjoining = builder.icmp_signed("==", step, size)
        lanes = f.count if f.operation == "greatest" else GROUPS
        block = _vector_of(f.element, lanes)
        buffer = cgutils.alloca_once(builder, block)
        with cgutils.for_range_slice(builder, i64(0), count, i64(lanes), i64) as (lane, _):
            elements = finished(_loaded(builder, _places(builder, f, at, gap, lane, lanes)))
            elements = builder.bitcast(elements, block)
            left = builder.sub(count, lane)
            whole = builder.icmp_signed(">=", left, i64(lanes))
            target = builder.add(out, builder.mul(lane, step))
            with builder.if_else(builder.and_(whole, adjoining)) as (then, otherwise):
                with then:
                    place = builder.inttoptr(target, block.as_pointer())
                    builder.store(elements, place, align=1)
                with otherwise:
                    builder.store(elements, buffer)
                    first = builder.bitcast(buffer, f.element.as_pointer())
                    some = builder.select(whole, i64(lanes), left)
                    with cgutils.for_range(builder, some) as loop:
                        place = builder.add(target, builder.mul(loop.index, step))
                        place = builder.inttoptr(place, f.element.as_pointer())
                        value = builder.load(builder.gep(first, [loop.index]))
                        builder.store(value, place, align=1)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64), codegen
