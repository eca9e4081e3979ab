"""Vectors of floats as Numba values: load and store any float type at any stride, exp and log of all lanes.

The element's type is told by a number of type int16 (float16), uint16 (bfloat16), float32 or float64, the `kind`;
16-bit floats are computed in float32.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from half import _bfloat_to_float, _float_to_bfloat, _float_to_half, _half_to_float
from order_key import VECTOR_BYTES, _load, _pointer, _splat


class Lanes(types.Type):
    """A vector of VECTOR_BYTES bytes; `element` is float32 or float64."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.count = VECTOR_BYTES * 8 // element.bitwidth
        super().__init__(f"Lanes({element} x {self.count})")


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Any) -> None:
        element = ir.FloatType() if lanes.element == types.float32 else ir.DoubleType()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.count))


register_model(Lanes)(_LanesModel)

_FLOATS = Lanes(types.float32)
_DOUBLES = Lanes(types.float64)

EXP_SCALE = 2.0**64  # exp_lanes' results bear this factor, so that none of them is subnormal
LOWEST = {types.float32: -(2.0**128 - 2.0**104), types.float64: -1.7976931348623157e308}

# By the vector's element: least argument of exp that does not round to 0, ln 2 in two parts (the first with so few
# bits that its multiples are exact), the width of the mantissa and the bias; exp(r) = 1 + r * polynomial, of a degree
# less for 16-bit elements (its error, 9e-8, is little beside half an ulp: 1.05 times as fast); the polynomial of log
# (as in FreeBSD's msun).
_EXP = {
    types.float32: (-104.0, 0.693359375, -2.12194440e-4, 127, 23),
    types.float64: (-745.5, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1023, 52),
}
_LN2 = 0.693147182464599609375  # rounded to float32, with an error of 2**-29
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
_LOG_TERMS = {
    types.float32: (
        0.66666662693023682,
        0.40000972151756287,
        0.28498786687850952,
        0.24279078841209412,
    ),
    types.float64: (
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    ),
}


def _lanes_of(kind: Any) -> Lanes:
    return _DOUBLES if kind == types.float64 else _FLOATS


def _vector(lanes: Lanes) -> Any:
    return ir.VectorType(
        ir.FloatType() if lanes.element == types.float32 else ir.DoubleType(), lanes.count
    )


def _memory(kind: Any, lanes: Lanes) -> Any:
    """The vector type as it lies in memory."""
    if kind.bitwidth == 16:
        return ir.VectorType(ir.IntType(16), lanes.count)
    return _vector(lanes)


def _same(vector: Any, value: float) -> Any:
    return ir.Constant(vector, [value] * vector.count)


def _muladd(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, fused where the target can: `llvm.fma` would be a call of libm elsewhere."""
    vector = a.type
    name = f"llvm.fmuladd.v{vector.count}f{32 if vector.element == ir.FloatType() else 64}"
    fnty = ir.FunctionType(vector, [vector] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), [a, b, c])


def _fuses(context: Any) -> bool:
    """Whether the target fuses `_muladd`."""
    triple, _name, features = context.codegen().magic_tuple()
    return "+fma" in features.split(",") or triple.startswith(("aarch64", "arm64"))


def _first_lanes(builder: Any, lanes: Lanes, count: Any) -> Any:
    """True in the first `count` lanes, or in all where it is None."""
    if count is None:
        return ir.Constant(ir.VectorType(ir.IntType(1), lanes.count), [1] * lanes.count)
    vector = ir.VectorType(ir.IntType(32), lanes.count)
    limit = _splat(builder, builder.trunc(count, ir.IntType(32)), vector)
    return builder.icmp_signed("<", ir.Constant(vector, list(range(lanes.count))), limit)


def _pointers(builder: Any, address: Any, step: Any, count: Any, memory: Any) -> list[Any]:
    """One pointer for each lane, `step` bytes apart; the lanes behind the first `count` repeat the last of these.

    One access for each lane is twice as fast as a masked gather or scatter instruction, and needs no branches.
    """
    pointers = []
    for i in range(memory.count):
        if i:
            further = builder.add(address, step)
            if count is not None:
                further = builder.select(
                    builder.icmp_signed("<", ir.IntType(64)(i), count), further, address
                )
            address = further
        pointers.append(builder.inttoptr(address, memory.element.as_pointer()))
    return pointers


def _suffix(memory: Any) -> str:
    letter = "i16" if isinstance(memory.element, ir.IntType) else "f32"
    return f"v{memory.count}{'f64' if memory.element == ir.DoubleType() else letter}"


@intrinsic
def lane_count(_context: Any, kind: Any) -> Any:
    """Elements of a vector, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(_lanes_of(kind).count)

    return types.int64(kind), codegen


@intrinsic
def splat(_context: Any, kind: Any, value: Any) -> Any:
    """A vector of `value` (a float64) rounded to its lanes' type."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value, vector = values[1], _vector(lanes)
        if lanes.element == types.float32:
            value = builder.fptrunc(value, ir.FloatType())
        return _splat(builder, value, vector)

    return lanes(kind, types.float64), codegen


@intrinsic
def lowest(_context: Any, kind: Any) -> Any:
    """The lowest finite number of the lanes' type."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.DoubleType()(LOWEST[_lanes_of(kind).element])

    return types.float64(kind), codegen


@intrinsic
def load_lanes(_context: Any, kind: Any, address: Any, step: Any, count: Any) -> Any:
    """The elements at address, address + step, ..; contiguous where `step` is None.

    Only the first `count` of them are read, the other lanes are -inf; all where `count` is None.
    """
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _kind, address, step, count = values
        memory = _memory(kind, lanes)
        whole = signature.args[3] == types.none
        mask = _first_lanes(builder, lanes, None if whole else count)
        i32 = ir.IntType(32)
        name = _suffix(memory)
        zero = ir.Constant(memory, None)
        if signature.args[2] != types.none:
            bits = ir.Constant(memory, ir.Undefined)
            pointers = _pointers(builder, address, step, None if whole else count, memory)
            for i, pointer in enumerate(pointers):
                bits = builder.insert_element(bits, builder.load(pointer, align=1), i32(i))
        elif whole:
            bits = _load(builder, _pointer(builder, address), memory)
        else:
            pointer = builder.bitcast(_pointer(builder, address), memory.as_pointer())
            fnty = ir.FunctionType(memory, [pointer.type, i32, mask.type, memory])
            name = f"llvm.masked.load.{name}.p0"
            function = cgutils.get_or_insert_function(builder.module, fnty, name)
            bits = builder.call(function, [pointer, i32(1), mask, zero])
        if kind == types.int16:
            bits = _half_to_float(context, builder, bits)
        elif kind == types.uint16:
            bits = _bfloat_to_float(builder, bits)
        if whole:
            return bits
        return builder.select(mask, bits, _same(bits.type, float("-inf")))

    return lanes(kind, types.int64, step, count), codegen


@intrinsic
def store_lanes(_context: Any, kind: Any, address: Any, step: Any, count: Any, lanes: Any) -> Any:
    """Store the first `count` lanes, rounded to the elements' type; see load_lanes."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _kind, address, step, count, value = values
        memory = _memory(kind, lanes)
        if kind == types.int16:
            value = _float_to_half(context, builder, value)
        elif kind == types.uint16:
            value = _float_to_bfloat(builder, value)
        whole = signature.args[3] == types.none
        mask = _first_lanes(builder, lanes, None if whole else count)
        i32, void = ir.IntType(32), ir.VoidType()
        name = _suffix(memory)
        if signature.args[2] != types.none:
            pointers = _pointers(builder, address, step, None if whole else count, memory)
            # Backwards: of those that share a place the lowest lane stays.
            for i, pointer in reversed(list(enumerate(pointers))):
                builder.store(builder.extract_element(value, i32(i)), pointer, align=1)
        else:
            pointer = builder.bitcast(_pointer(builder, address), memory.as_pointer())
            if whole:
                builder.store(value, pointer, align=1)
            else:
                fnty = ir.FunctionType(void, [memory, pointer.type, i32, mask.type])
                name = f"llvm.masked.store.{name}.p0"
                function = cgutils.get_or_insert_function(builder.module, fnty, name)
                builder.call(function, [value, pointer, i32(1), mask])
        return context.get_dummy_value()

    return types.void(kind, types.int64, step, count, lanes), codegen


@intrinsic
def stream_lanes(_context: Any, kind: Any, address: Any, lanes: Any) -> Any:
    """As store_lanes of a whole vector to an address aligned to it, past the cache; see `fence`."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, address, value = values
        memory = _memory(kind, lanes)
        if kind == types.int16:
            value = _float_to_half(context, builder, value)
        elif kind == types.uint16:
            value = _float_to_bfloat(builder, value)
        pointer = builder.bitcast(_pointer(builder, address), memory.as_pointer())
        store = builder.store(value, pointer, align=lanes.count * kind.bitwidth // 8)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return types.void(kind, types.int64, lanes), codegen


@intrinsic
def fence(_context: Any) -> Any:
    """Other threads see what was streamed before what is stored after this."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def peek(_context: Any, kind: Any, address: Any) -> Any:
    """A vector of lanes (not of elements) in scratch memory."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _load(builder, _pointer(builder, values[1]), _vector(lanes))

    return lanes(kind, types.int64), codegen


@intrinsic
def poke(_context: Any, address: Any, lanes: Any) -> Any:
    """Store a vector of lanes (not of elements) in scratch memory."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = builder.bitcast(_pointer(builder, values[0]), values[1].type.as_pointer())
        builder.store(values[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, lanes), codegen


def _binary(name: str) -> Any:
    def typing(_context: Any, a: Any, b: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values)

        return a(a, a), codegen

    return intrinsic(typing)


plus = _binary("fadd")
minus = _binary("fsub")
times = _binary("fmul")


def _greater_float(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def greater(_context: Any, a: Any, b: Any) -> Any:
    """The greater lanes; b where either is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _greater_float(builder, *values)

    return a(a, a), codegen


def _halved(builder: Any, value: Any, operation: Any) -> Any:
    """Both halves of the lanes in one."""
    count = value.type.count // 2
    halves = [
        builder.shuffle_vector(
            value,
            ir.Constant(value.type, ir.Undefined),
            ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(at, at + count))),
        )
        for at in (0, count)
    ]
    return operation(*halves)


def _folded(builder: Any, value: Any, operation: Any) -> Any:
    """One value of all lanes, by halves."""
    while value.type.count > 1:
        value = _halved(builder, value, operation)
    return builder.extract_element(value, ir.IntType(32)(0))


@intrinsic
def greatest(_context: Any, lanes: Any) -> Any:
    """The greatest lane, as a float64; any lane or NaN where one is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = _folded(builder, values[0], lambda a, b: _greater_float(builder, a, b))
        return builder.fpext(value, ir.DoubleType()) if value.type == ir.FloatType() else value

    return types.float64(lanes), codegen


@intrinsic
def total(_context: Any, lanes: Any) -> Any:
    """The sum of all lanes in float64."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[0]
        if lanes.element == types.float32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), lanes.count))
        return _folded(builder, value, builder.fadd)

    return types.float64(lanes), codegen


def _of_four(builder: Any, values: Any, operation: Any) -> Any:
    """Quarter i of the lanes filled with what `operation` makes of the lanes of vector i of four."""
    count = values[0].type.count
    integers = ir.VectorType(ir.IntType(32), count)

    def half(a: Any, b: Any, parts: Any, size: int) -> Any:
        order = [part * size + i for part in parts for i in range(size)]
        return builder.shuffle_vector(a, b, ir.Constant(integers, order))

    def joined(a: Any, b: Any, first: Any, second: Any, size: int) -> Any:
        return operation(half(a, b, first, size), half(a, b, second, size))

    a, b, c, d = values
    a, b = (joined(*pair, (0, 2), (1, 3), count // 2) for pair in ((a, b), (c, d)))
    value = joined(a, b, (0, 2, 4, 6), (1, 3, 5, 7), count // 4)
    step = count // 8
    while step > 0:
        order = ir.Constant(integers, [i ^ step for i in range(count)])
        value = operation(value, builder.shuffle_vector(value, value, order))
        step //= 2
    return value


@intrinsic
def greatest_of_four(_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Quarter i of the lanes filled with the greatest lane of vector i; see `greatest`."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _of_four(builder, values, lambda a, b: _greater_float(builder, a, b))

    return a(a, a, a, a), codegen


@intrinsic
def total_of_four(_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Quarter i of lanes of float64 filled with the sum of all lanes of vector i."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        if a.element == types.float32:
            double = ir.VectorType(ir.DoubleType(), a.count)
            values = [_halved(builder, builder.fpext(v, double), builder.fadd) for v in values]
        return _of_four(builder, values, builder.fadd)

    return _DOUBLES(a, a, a, a), codegen


@intrinsic
def narrowed(_context: Any, kind: Any, quarters: Any) -> Any:
    """Quarters of lanes of float64, rounded to quarters of lanes of `kind`."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[1]
        if lanes == quarters:
            return value
        value = builder.fptrunc(value, ir.VectorType(ir.FloatType(), quarters.count))
        integers = ir.VectorType(ir.IntType(32), lanes.count)
        order = [i * quarters.count // lanes.count for i in range(lanes.count)]
        return builder.shuffle_vector(value, value, ir.Constant(integers, order))

    return lanes(kind, quarters), codegen


@intrinsic(prefer_literal=True)
def quarter(_context: Any, lanes: Any, number: Any) -> Any:
    """All lanes filled with the first one of quarter `number`, a literal."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first = number.literal_value * lanes.count // 4
        order = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [first] * lanes.count)
        return builder.shuffle_vector(values[0], values[0], order)

    return lanes(lanes, number), codegen


@intrinsic
def rounding(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """What is lost in c = a + b, exactly (Knuth)."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        a, b, c = values
        from_b = builder.fsub(c, a)
        from_a = builder.fsub(c, from_b)
        return builder.fadd(builder.fsub(a, from_a), builder.fsub(b, from_b))

    return a(a, a, a), codegen


@intrinsic
def exp_lanes(_context: Any, kind: Any, x: Any) -> Any:
    """exp(x) * EXP_SCALE for x <= 0; NaN where it is NaN.

    No fast-math flag: reassociation would undo the rounding to an integer and the two-part ln 2.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = values[1].type
        least, ln2_high, ln2_low, bias, mantissa = _EXP[x.element]
        integers = ir.VectorType(ir.IntType(x.element.bitwidth), x.count)
        d = values[1]
        vanishes = builder.fcmp_ordered("<", d, _same(vector, least))
        # The low bits of (1.5 * 2**mantissa + i) are the integer i.
        magic = _same(vector, 1.5 * 2.0**mantissa + bias + 64)
        shifted = _muladd(builder, d, _same(vector, 1.4426950408889634), magic)
        n = builder.fsub(shifted, magic)
        if x.element == types.float32 and _fuses(context):
            # n times the error of ln 2 is little beside the rounding of d (1.07 times as fast as two parts).
            r = _muladd(builder, n, _same(vector, -_LN2), d)
        else:
            r = _muladd(builder, n, _same(vector, -ln2_high), d)
            r = _muladd(builder, n, _same(vector, -ln2_low), r)
        terms = _EXP_TERMS[kind.bitwidth]
        p = _same(vector, terms[-1])
        for term in reversed(terms[:-1]):
            p = _muladd(builder, p, r, _same(vector, term))
        p = _muladd(builder, p, r, _same(vector, 1.0))
        bits = builder.shl(builder.bitcast(shifted, integers), _same(integers, mantissa))
        # A product, not an addition to the exponent: NaN stays NaN.
        e = builder.fmul(p, builder.bitcast(bits, vector))
        return builder.select(vanishes, ir.Constant(vector, None), e)

    return x(kind, x), codegen


@intrinsic
def log_lanes(_context: Any, x: Any) -> Any:
    """log of normal positive numbers; NaN where x is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        (value,) = values
        vector = value.type
        _least, _high, _low, _bias, mantissa = _EXP[x.element]
        high, low = (
            (6.9313812256e-01, 9.0580006145e-06)
            if x.element == types.float32
            else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
        )
        integers = ir.VectorType(ir.IntType(x.element.bitwidth), x.count)
        # value = 2**k * m with m in sqrt(1/2) to sqrt(2)
        root = {23: 0x3F3504F3, 52: 0x3FE6A09E667F3BCD}[mantissa]
        bits = builder.bitcast(value, integers)
        k = builder.ashr(builder.sub(bits, _same(integers, root)), _same(integers, mantissa))
        m = builder.sub(bits, builder.shl(k, _same(integers, mantissa)))
        k = builder.sitofp(k, vector)
        f = builder.fsub(builder.bitcast(m, vector), _same(vector, 1.0))
        s = builder.fdiv(f, builder.fadd(f, _same(vector, 2.0)))
        z = builder.fmul(s, s)
        terms = _LOG_TERMS[x.element]
        r = _same(vector, terms[-1])
        for term in reversed(terms[:-1]):
            r = _muladd(builder, r, z, _same(vector, term))
        r = builder.fmul(r, z)
        half = builder.fmul(_same(vector, 0.5), builder.fmul(f, f))
        tail = _muladd(builder, k, _same(vector, low), builder.fmul(s, builder.fadd(half, r)))
        result = builder.fadd(
            builder.fmul(k, _same(vector, high)), builder.fsub(f, builder.fsub(half, tail))
        )
        return builder.select(builder.fcmp_unordered("uno", value, value), value, result)

    return x(x), codegen


@intrinsic
def divided(_context: Any, a: Any, b: Any) -> Any:
    """a / b."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.fdiv(*values)

    return a(a, a), codegen


@intrinsic
def where_less(_context: Any, a: Any, b: Any, then: Any, other: Any) -> Any:
    """`then` where a < b, `other` elsewhere and where either is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        a, b, then, other = values
        return builder.select(builder.fcmp_ordered("<", a, b), then, other)

    return a(a, a, a, a), codegen


def _lane_pointer(builder: Any, lanes: Lanes, address: Any, number: Any) -> Any:
    offset = builder.mul(number, number.type(lanes.element.bitwidth // 8))
    pointer = _pointer(builder, address, offset)
    return builder.bitcast(pointer, _vector(lanes).element.as_pointer())


@intrinsic
def get_lane(_context: Any, kind: Any, address: Any, number: Any) -> Any:
    """Lane `number` of those in scratch memory, as a float64."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = builder.load(_lane_pointer(builder, lanes, *values[1:]), align=1)
        return builder.fpext(value, ir.DoubleType()) if value.type == ir.FloatType() else value

    return types.float64(kind, types.int64, types.int64), codegen


@intrinsic
def set_lane(_context: Any, kind: Any, address: Any, number: Any, value: Any) -> Any:
    """Store a float64 as lane `number` of those in scratch memory."""
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[3]
        if lanes.element == types.float32:
            value = builder.fptrunc(value, ir.FloatType())
        builder.store(value, _lane_pointer(builder, lanes, *values[1:3]), align=1)
        return context.get_dummy_value()

    return types.void(kind, types.int64, types.int64, types.float64), codegen


def _number(builder: Any, address: Any, number: Any, type_: Any) -> Any:
    pointer = builder.inttoptr(address, type_.as_pointer())
    return builder.gep(pointer, [number])


@intrinsic
def word(_context: Any, address: Any, number: Any) -> Any:
    """int64 number `number` at an aligned address."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load(_number(builder, values[0], values[1], ir.IntType(64)))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def load_double(_context: Any, address: Any, number: Any) -> Any:
    """float64 number `number` at an aligned address."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load(_number(builder, values[0], values[1], ir.DoubleType()))

    return types.float64(types.int64, types.int64), codegen


@intrinsic
def store_double(_context: Any, address: Any, number: Any, value: Any) -> Any:
    """Store a float64 as number `number` at an aligned address."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, number, value = values
        builder.store(value, _number(builder, address, number, ir.DoubleType()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), codegen


@intrinsic
def prefetch(_context: Any, address: Any, write: Any) -> Any:
    """Ask for the cache line at an address, any address; `write` is None or True."""
    for_write = write != types.none

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        i32 = ir.IntType(32)
        pointer = _pointer(builder, values[0])
        fnty = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, fnty, "llvm.prefetch.p0")
        builder.call(function, [pointer, i32(int(for_write)), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(types.int64, write), codegen
