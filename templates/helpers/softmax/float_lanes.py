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

from apart import _load_apart, _pointers
from constants import _of_type
from exact import _lost
from few_lanes import _Few, _few, _load_few, _store_few
from float_math import LOWEST, _exp, _greater_float, _log
from half import _bfloat_to_float, _float_to_bfloat, _float_to_half, _half_to_float
from llvm import _const, _scalar
from memory import VECTOR_BYTES, _load, _opaque, _pointer, _prefetch, _splat, _stream
from order_key import _mirror
from shuffles import _lanes_from, _shuffled
from target import _target_has
from vectors import _any


class Lanes(types.Type):
    """A vector of VECTOR_BYTES bytes; `element` is float32, float64, or int16 for order keys of 16-bit floats."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.count = VECTOR_BYTES * 8 // element.bitwidth
        super().__init__(f"Lanes({element} x {self.count})")


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, _lanes_vector(lanes))


register_model(Lanes)(_LanesModel)

_FLOATS = Lanes(types.float32)
_DOUBLES = Lanes(types.float64)
_KEYS = Lanes(types.int16)
_ELEMENTS = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int16: ir.IntType(16),
}
# Of float16 and bfloat16; the bits before are the lowest number's.
_MINUS_INF = {types.int16: 0xFC00, types.uint16: 0xFF80}


def _lanes_of(kind: Any) -> Lanes:
    return _DOUBLES if kind == types.float64 else _FLOATS


def _keys_of(kind: Any) -> Lanes:
    """The lanes in which elements are compared: 16-bit floats by order keys, twice as many as of float32."""
    return _KEYS if kind.bitwidth == 16 else _lanes_of(kind)


def _lanes_vector(lanes: Lanes) -> Any:
    return ir.VectorType(_ELEMENTS[lanes.element], lanes.count)


def _memory(kind: Any, lanes: Lanes) -> Any:
    """The vector type as it lies in memory."""
    if kind.bitwidth == 16:
        return ir.VectorType(ir.IntType(16), lanes.count)
    return _lanes_vector(lanes)


def _float_lanes(context: Any, builder: Any, kind: Any, bits: Any) -> Any:
    """Elements as they lie in memory, as lanes."""
    if kind == types.int16:
        return _half_to_float(context, builder, bits)
    return _bfloat_to_float(builder, bits) if kind == types.uint16 else bits


def _rounded(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Lanes as the nearest elements, as they lie in memory."""
    if kind == types.int16:
        return _float_to_half(context, builder, value)
    return _float_to_bfloat(builder, value) if kind == types.uint16 else value


def _few_or_all(context: Any, builder: Any, typed: Any, lanes: Lanes, count: Any) -> _Few | None:
    """The first `count` lanes, or None, all of them, where its type `typed` is none's."""
    return None if typed == types.none else _few(context, builder, _lanes_vector(lanes), count)


lane_count = _of_type(lambda kind: _lanes_of(kind).count)  # elements of a vector


@intrinsic
def lane_kind(_context: Any, kind: Any) -> Any:
    """The kind whose elements are as these lanes: that of FLOAT32 for 16 bits, else `kind`."""
    element = _lanes_of(kind).element

    def codegen(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return context.get_value_type(element)(0.0)

    return element(kind), codegen


@intrinsic
def splat(_context: Any, kind: Any, value: Any) -> Any:
    """A vector of `value` (a float64) rounded to its lanes' type."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value, vector = values[1], _lanes_vector(lanes)
        if lanes.element == types.float32:
            value = builder.fptrunc(value, ir.FloatType())
        return _splat(builder, value, vector)

    return lanes(kind, types.float64), codegen


@intrinsic
def lowest(_context: Any, kind: Any) -> Any:
    """The lowest finite number of the lanes' type."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.DoubleType()(LOWEST[_lanes_of(kind).element.bitwidth])

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
        few = _few_or_all(context, builder, signature.args[3], lanes, count)
        if signature.args[2] != types.none:
            bits = _load_apart(builder, address, step, memory, few and few.count)
        else:
            bits = _load_few(builder, _pointer(builder, address), few, memory)
        bits = _float_lanes(context, builder, kind, bits)
        if few is None:
            return bits
        return builder.select(few.mask, bits, _const(bits.type, float("-inf")))

    return lanes(kind, types.int64, step, count), codegen


key_count = _of_type(lambda kind: _keys_of(kind).count)  # elements of a vector of load_keys


@intrinsic
def load_keys(_context: Any, kind: Any, address: Any, count: Any) -> Any:
    """Contiguous elements as `greater` and `greatest` compare them: 16-bit ones are not converted; see load_lanes."""
    lanes = _keys_of(kind)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _kind, address, count = values
        vector = _lanes_vector(lanes)
        few = _few_or_all(context, builder, signature.args[2], lanes, count)
        bits = _load_few(builder, _pointer(builder, address), few, vector)
        if few is not None:
            lowest = _MINUS_INF.get(kind, float("-inf"))
            bits = builder.select(few.mask, bits, _const(vector, lowest))
        return bits if lanes != _KEYS else _mirror(builder, bits)

    return lanes(kind, types.int64, count), codegen


@intrinsic
def lowest_keys(_context: Any, kind: Any) -> Any:
    """The lowest finite number, as load_keys loads it."""
    lanes = _keys_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        vector = _lanes_vector(lanes)
        if lanes == _KEYS:
            return _mirror(builder, _const(vector, _MINUS_INF[kind] - 1))
        return _const(vector, LOWEST[lanes.element.bitwidth])

    return lanes(kind), codegen


@intrinsic
def store_lanes(_context: Any, kind: Any, address: Any, step: Any, count: Any, lanes: Any) -> Any:
    """Store the first `count` lanes, rounded to the elements' type; see load_lanes."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _kind, address, step, count, value = values
        memory = _memory(kind, lanes)
        value = _rounded(context, builder, kind, value)
        few = _few_or_all(context, builder, signature.args[3], lanes, count)
        if signature.args[2] != types.none:
            pointers = _pointers(builder, address, step, few and few.count, memory)
            # Backwards: of those that share a place the lowest lane stays.
            for i, pointer in reversed(list(enumerate(pointers))):
                element = builder.extract_element(value, ir.IntType(32)(i))
                builder.store(element, pointer, align=1)
        else:
            _store_few(builder, value, _pointer(builder, address), few)
        return context.get_dummy_value()

    return types.void(kind, types.int64, step, count, lanes), codegen


@intrinsic
def stream_lanes(_context: Any, kind: Any, address: Any, lanes: Any) -> Any:
    """As store_lanes of a whole vector to an address aligned to it, past the cache; see drain_stores."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, address, value = values
        value = _rounded(context, builder, kind, value)
        if kind.bitwidth == 16 and _target_has(context, "f16c", on_arm=False):
            # LLVM would make one instruction of what narrows and the store, which goes to the caches.
            value = _opaque(builder, value)
        _stream(builder, value, _pointer(builder, address), lanes.count * kind.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(kind, types.int64, lanes), codegen


@intrinsic
def peek(_context: Any, kind: Any, address: Any) -> Any:
    """A vector of lanes (not of elements) in scratch memory."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _load(builder, _pointer(builder, values[1]), _lanes_vector(lanes))

    return lanes(kind, types.int64), codegen


@intrinsic
def lanes_at(_context: Any, kind: Any, place: Any, offset: Any) -> Any:
    """`place` where it is a vector of lanes, or the one in scratch memory at address `place` + `offset`."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        if place == lanes:
            return values[1]
        return _load(builder, _pointer(builder, values[1], values[2]), _lanes_vector(lanes))

    return lanes(kind, place, types.int64), codegen


@intrinsic
def poke(_context: Any, address: Any, lanes: Any) -> Any:
    """Store a vector of lanes, not of elements."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = builder.bitcast(_pointer(builder, values[0]), values[1].type.as_pointer())
        builder.store(values[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, lanes), codegen


MEASURED_ROWS = 8  # vectors that are measured together: more would leave no registers


@intrinsic
def load_rows(_context: Any, kind: Any, address: Any, offsets: Any) -> Any:
    """MEASURED_ROWS contiguous vectors, at `address` and every second of the int64 at `offsets` (in bytes)."""
    lanes = _lanes_of(kind)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _kind, address, offsets = values
        rows = []
        for row in range(MEASURED_ROWS):
            offset = builder.load(_number(builder, offsets, ir.IntType(64)(2 * row), offsets.type))
            pointer = _pointer(builder, builder.add(address, offset))
            rows.append(
                _float_lanes(context, builder, kind, _load(builder, pointer, _memory(kind, lanes)))
            )
        return context.make_tuple(builder, signature.return_type, rows)

    return types.UniTuple(lanes, MEASURED_ROWS)(kind, types.int64, types.int64), codegen


def _binary(name: str) -> Any:
    def typing(_context: Any, a: Any, b: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values)

        return a(a, a), codegen

    return intrinsic(typing)


plus = _binary("fadd")
minus = _binary("fsub")
times = _binary("fmul")


def _greater_element(builder: Any, a: Any, b: Any) -> Any:
    if _scalar(a.type) == ir.IntType(16):
        return builder.select(builder.icmp_signed(">", a, b), a, b)
    return _greater_float(builder, a, b)


@intrinsic
def greater(_context: Any, a: Any, b: Any) -> Any:
    """The greater lanes; of floats b where either is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _greater_element(builder, *values)

    return a(a, a), codegen


@intrinsic
def greatest_rows(_context: Any, rows: Any, top: Any) -> Any:
    """Of each lane the greatest of `top` and all rows; anything where one is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        tops = [*cgutils.unpack_tuple(builder, values[0]), values[1]]
        while len(tops) > 1:
            tops = [*tops[2:], _greater_float(builder, tops[0], tops[1])]
        return tops[0]

    return top(rows, top), codegen


@intrinsic
def exceed(_context: Any, a: Any, b: Any) -> Any:
    """Whether any lane of a is more than 1 above that of b."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        a, b = values
        return _any(builder, builder.fcmp_ordered(">", a, builder.fadd(b, _const(b.type, 1.0))))

    return types.boolean(a, a), codegen


def _halved(builder: Any, value: Any, operation: Any) -> Any:
    """Both halves of the lanes in one."""
    count = value.type.count // 2
    return operation(*(_lanes_from(builder, value, first, count) for first in (0, count)))


def _lanes_folded(builder: Any, value: Any, operation: Any) -> Any:
    """One value of all lanes, by halves."""
    while value.type.count > 1:
        value = _halved(builder, value, operation)
    return builder.extract_element(value, ir.IntType(32)(0))


@intrinsic
def greatest(_context: Any, kind: Any, lanes: Any) -> Any:
    """The greatest of lanes or keys, as a float64; any of them or NaN where one is NaN."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = _lanes_folded(builder, values[1], lambda a, b: _greater_element(builder, a, b))
        if lanes == _KEYS:
            value = _float_lanes(context, builder, kind, _mirror(builder, value))
        return builder.fpext(value, ir.DoubleType()) if value.type == ir.FloatType() else value

    return types.float64(kind, lanes), codegen


@intrinsic
def total(_context: Any, lanes: Any) -> Any:
    """The sum of all lanes in float64."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[0]
        if lanes.element == types.float32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), lanes.count))
        return _lanes_folded(builder, value, builder.fadd)

    return types.float64(lanes), codegen


def _totals_of_four(builder: Any, values: Any) -> Any:
    """Quarter i of the lanes filled with the sum of the lanes of vector i of four."""
    count = values[0].type.count

    def half(a: Any, b: Any, parts: Any, size: int) -> Any:
        return _shuffled(builder, a, b, [part * size + i for part in parts for i in range(size)])

    def joined(a: Any, b: Any, first: Any, second: Any, size: int) -> Any:
        return builder.fadd(half(a, b, first, size), half(a, b, second, size))

    a, b, c, d = values
    a, b = (joined(*pair, (0, 2), (1, 3), count // 2) for pair in ((a, b), (c, d)))
    value = joined(a, b, (0, 2, 4, 6), (1, 3, 5, 7), count // 4)
    step = count // 8
    while step > 0:
        other = _shuffled(builder, value, value, [i ^ step for i in range(count)])
        value = builder.fadd(value, other)
        step //= 2
    return value


@intrinsic
def total_of_four(_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Quarter i of lanes of float64 filled with the sum of all lanes of vector i."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        if a.element == types.float32:
            double = ir.VectorType(ir.DoubleType(), a.count)
            values = [_halved(builder, builder.fpext(v, double), builder.fadd) for v in values]
        return _totals_of_four(builder, values)

    return _DOUBLES(a, a, a, a), codegen


@intrinsic
def rounded_quarters(_context: Any, kind: Any, quarters: Any) -> Any:
    """Quarters of lanes of float64, rounded to quarters of lanes of `kind`."""
    lanes = _lanes_of(kind)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[1]
        if lanes == quarters:
            return value
        value = builder.fptrunc(value, ir.VectorType(ir.FloatType(), quarters.count))
        order = [i * quarters.count // lanes.count for i in range(lanes.count)]
        return _shuffled(builder, value, value, order)

    return lanes(kind, quarters), codegen


@intrinsic
def rounding(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """What is lost in c = a + b, exactly."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _lost(builder, *values)

    return a(a, a, a), codegen


@intrinsic
def exp_lanes(_context: Any, kind: Any, x: Any) -> Any:
    """exp(x) * EXP_SCALE for x <= 8; NaN where it is NaN."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _exp(context, builder, values[1], kind.bitwidth)

    return x(kind, x), codegen


@intrinsic
def exp_rows(_context: Any, kind: Any, rows: Any, top: Any) -> Any:
    """Of each lane the sum of exp(x - top) * EXP_SCALE over the rows."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _kind, rows, top = values
        sums = []
        for x in cgutils.unpack_tuple(builder, rows):
            sums.append(_exp(context, builder, builder.fsub(x, top), kind.bitwidth))
        while len(sums) > 1:
            sums = [*sums[2:], builder.fadd(sums[0], sums[1])]
        return sums[0]

    return top(kind, rows, top), codegen


@intrinsic
def log_lanes(_context: Any, x: Any) -> Any:
    """log of normal positive numbers; NaN where x is NaN."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _log(builder, values[0])

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
    return builder.bitcast(pointer, _lanes_vector(lanes).element.as_pointer())


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


@intrinsic(prefer_literal=True)
def prefetch(_context: Any, address: Any, level: Any, write: Any) -> Any:
    """Ask for the cache line at an address, any address, for the cache of `level`; both literals, `write` 0 or 1."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = _pointer(builder, values[0])
        _prefetch(builder, pointer, level.literal_value, write.literal_value)
        return context.get_dummy_value()

    return types.void(types.int64, level, write), codegen


@intrinsic
def prefetch_rows(_context: Any, address: Any, offsets: Any) -> Any:
    """As prefetch, for what load_rows would load."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, offsets = values
        for row in range(MEASURED_ROWS):
            offset = builder.load(_number(builder, offsets, ir.IntType(64)(2 * row), offsets.type))
            _prefetch(builder, _pointer(builder, address, offset), 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
