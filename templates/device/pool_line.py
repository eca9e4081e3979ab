"""Lines of ranks: what max pooling keeps of its elements in scratch memory, and vector loops over them.

A rank is an integer of which the greatest is wanted. Without positions (`wide` None) it is as wide as the element
and turns back into it. With them the order key fills the upper bits and the inverted position the lower ones, so that
one maximum finds the element and settles ties; the lowest bit keeps the sign of a zero. The least rank is padding's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from order_key import VECTOR_BYTES, _load, _order_key, _pointer, _rule, _splat


def _rank_type(wide: Any, flip: Any) -> Any:
    """The integer that holds a rank: the element's width, that of `wide`, or of a pair of it."""
    if wide == types.none:
        return ir.IntType(flip.bitwidth)
    if isinstance(wide, types.BaseTuple):
        return ir.IntType(wide.dtype.bitwidth * wide.count)
    return ir.IntType(wide.bitwidth)


def _like(type_: Any, element: Any) -> Any:
    """`element`, or a vector of it with as many lanes as `type_`."""
    return ir.VectorType(element, type_.count) if isinstance(type_, ir.VectorType) else element


def _least(type_: Any) -> Any:
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


def _mirror(builder: Any, bits: Any) -> Any:
    """Bits of a float to an integer that orders as it does, and back: negative magnitudes inverted."""
    element = bits.type.element if isinstance(bits.type, ir.VectorType) else bits.type
    sign = builder.ashr(bits, _splat(builder, element(element.width - 1), bits.type))
    magnitude = _splat(builder, element(2 ** (element.width - 1) - 1), bits.type)
    return builder.xor(bits, builder.and_(sign, magnitude))


def _rank(builder: Any, bits: Any, position: Any, element: Any, rule: tuple[Any, Any, Any]) -> Any:
    """Rank of `bits`, of the integer type `element`; `position` is inverted (None: without position)."""
    flip, nan_key, inf = (None if r is None else _splat(builder, r, bits.type) for r in rule)
    if position is None:
        if inf is None:
            return builder.xor(bits, flip)
        width = element.width
        magnitude = builder.and_(bits, _splat(builder, element(2 ** (width - 1) - 1), bits.type))
        nan = builder.icmp_signed(">", magnitude, inf)
        return builder.select(nan, nan_key, _mirror(builder, bits))
    key = _order_key(builder, bits, rule)
    width = key.type.element.width if isinstance(key.type, ir.VectorType) else key.type.width
    low = element.width - width
    key = _resize(builder, key, element)
    key = builder.shl(key, _splat(builder, element(low), key.type))
    rank = builder.add(key, position)
    if inf is None:
        return rank
    narrow = bits.type.element if isinstance(bits.type, ir.VectorType) else bits.type
    sign = builder.lshr(bits, _splat(builder, narrow(width - 1), bits.type))
    return builder.or_(rank, builder.zext(sign, key.type))


def _inverted(builder: Any, position: Any, element: Any, low: int) -> Any:
    """What stands in the lower bits of a rank for a 64-bit position: less for a later one, never 0."""
    position = _resize(builder, position, element)
    return builder.shl(builder.sub(element(2 ** (low - 1) - 1), position), element(1))


def _greater_rank(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _first_lanes(builder: Any, count: int, n: Any) -> Any:
    """True in the first `n` of `count` lanes."""
    numbers = ir.VectorType(ir.IntType(32), count)
    limit = _splat(builder, builder.trunc(n, ir.IntType(32)), numbers)
    return builder.icmp_signed("<", ir.Constant(numbers, list(range(count))), limit)


def _masked(builder: Any, verb: str, vector: Any) -> Any:
    """llvm.masked.load or llvm.masked.store for `vector`; the lanes left out touch no memory."""
    name = f"llvm.masked.{verb}.v{vector.count}i{vector.element.width}.p0"
    i32, mask = ir.IntType(32), ir.VectorType(ir.IntType(1), vector.count)
    pointer = vector.as_pointer()
    if verb == "load":
        fnty = ir.FunctionType(vector, [pointer, i32, mask, vector])
    else:
        fnty = ir.FunctionType(ir.VoidType(), [vector, pointer, i32, mask])
    return cgutils.get_or_insert_function(builder.module, fnty, name)


def _store(builder: Any, value: Any, pointer: Any) -> None:
    """Store a value at any alignment."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)


def _vector(element: Any) -> Any:
    return ir.VectorType(element, VECTOR_BYTES * 8 // element.width)


def _runs(builder: Any, vector: Any, n: Any, run: Any) -> None:
    """`run(first, mask)` for strips of n lanes: overlapping at the end, masked where there is no whole one."""
    i64 = n.type
    lanes = i64(vector.count)
    with builder.if_else(builder.icmp_signed(">=", n, lanes)) as (then, otherwise):
        with then:
            last = builder.sub(n, lanes)
            with cgutils.for_range_slice(builder, i64(0), last, lanes, i64) as (first, _):
                run(first, None)
            run(last, None)
        with otherwise:
            run(i64(0), _first_lanes(builder, vector.count, n))


def _store_lanes(builder: Any, value: Any, start: Any, first: Any, mask: Any) -> None:
    """Store a vector, or its masked lanes, as the elements from number `first` on."""
    offset = builder.mul(first, first.type(value.type.element.width // 8))
    pointer = builder.gep(start, [offset])
    if mask is None:
        _store(builder, value, pointer)
    else:
        typed = builder.bitcast(pointer, value.type.as_pointer())
        function = _masked(builder, "store", value.type)
        builder.call(function, [value, typed, ir.IntType(32)(1), mask])


@intrinsic
def rank_size(_context: Any, wide: Any, flip: Any) -> Any:
    """Bytes of a rank, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(_rank_type(wide, flip).width // 8)

    return types.int64(wide, flip), codegen


@intrinsic
def clear_ranks(_context: Any, line: Any, n: Any, wide: Any, flip: Any) -> Any:
    """Set n ranks, and up to a vector more, to padding."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = _vector(_rank_type(wide, flip))
        i64 = ir.IntType(64)
        start = _pointer(builder, values[0])
        stop = builder.mul(values[1], i64(vector.element.width // 8))
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            _store(builder, _least(vector), builder.gep(start, [offset]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, wide, flip), codegen


@intrinsic
def reset_rank(_context: Any, line: Any, wide: Any, flip: Any) -> Any:
    """Set one rank to padding."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _store(builder, _least(_rank_type(wide, flip)), _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, wide, flip), codegen


@intrinsic
def rank_element(
    _context: Any,
    line: Any,
    address: Any,
    position: Any,
    wide: Any,
    flip: Any,
    nan_key: Any,
    inf: Any,
) -> Any:
    """Replace the rank at `line` if that of the element at `address` is greater."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, address, position = values[:3]
        element = _rank_type(wide, flip)
        bits = _load(builder, _pointer(builder, address), values[4].type)
        place = None
        if wide != types.none:
            place = _inverted(builder, position, element, element.width - flip.bitwidth)
        rank = _rank(builder, bits, place, element, _rule(signature, values))
        pointer = _pointer(builder, line)
        _store(builder, _greater_rank(builder, rank, _load(builder, pointer, element)), pointer)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, wide, flip, nan_key, inf), codegen


@intrinsic
def rank_rows(
    _context: Any,
    line: Any,
    address: Any,
    offsets: Any,
    positions: Any,
    rows: Any,
    columns: Any,
    along: Any,
    fresh: Any,
    wide: Any,
    flip: Any,
    nan_key: Any,
    inf: Any,
) -> Any:
    """The greatest rank of each of n contiguous columns over `rows` rows, kept in a register meanwhile.

    Row r begins at address + offsets[r], where the position is positions[r], and `along` (0 or 1) more with each
    column. The line may be written a vector further than `columns`, with padding or with what stood there.
    `fresh`: the line's old ranks do not count.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, address, offsets, positions, rows, columns, along, fresh, _wide, flip_value = values[
            :10
        ]
        element = _rank_type(wide, flip)
        vector = _vector(element)
        narrow = ir.VectorType(flip_value.type, vector.count)
        i64 = ir.IntType(64)
        rule = _rule(signature, values)
        source = _pointer(builder, address)
        target = _pointer(builder, line)
        offset_table = builder.bitcast(_pointer(builder, offsets), i64.as_pointer())
        position_table = builder.bitcast(_pointer(builder, positions), i64.as_pointer())
        best = cgutils.alloca_once(builder, vector)
        numbers = ir.Constant(vector, list(range(0, 2 * vector.count, 2)))
        steps = builder.mul(_splat(builder, _resize(builder, along, element), vector), numbers)

        def strip(column: Any, mask: Any) -> None:
            place = builder.gep(target, [builder.mul(column, i64(element.width // 8))])
            builder.store(_least(vector), best)
            with builder.if_then(builder.not_(builder.trunc(fresh, ir.IntType(1)))):
                builder.store(_load(builder, place, vector), best)
            first = builder.gep(source, [builder.mul(column, i64(narrow.element.width // 8))])
            with cgutils.for_range(builder, rows) as loop:
                offset = builder.load(builder.gep(offset_table, [loop.index]))
                pointer = builder.gep(first, [offset])
                where = None
                if wide != types.none:
                    where = builder.load(builder.gep(position_table, [loop.index]))
                    where = builder.add(where, builder.mul(column, along))
                    where = _inverted(builder, where, element, element.width - flip.bitwidth)
                    where = builder.sub(_splat(builder, where, vector), steps)
                if mask is None:
                    bits = _load(builder, pointer, narrow)
                else:
                    typed = builder.bitcast(pointer, narrow.as_pointer())
                    none = ir.Constant(narrow, None)
                    function = _masked(builder, "load", narrow)
                    bits = builder.call(function, [typed, ir.IntType(32)(1), mask, none])
                rank = _rank(builder, bits, where, element, rule)
                if mask is not None:
                    rank = builder.select(mask, rank, _least(vector))
                builder.store(_greater_rank(builder, rank, builder.load(best)), best)
            _store(builder, builder.load(best), place)

        _runs(builder, vector, columns, strip)
        return context.get_dummy_value()

    i64 = types.int64
    args = (i64, i64, i64, i64, i64, i64, i64, types.boolean, wide, flip, nan_key, inf)
    return types.void(*args), codegen


@intrinsic
def shifted_maximum(
    _context: Any, target: Any, source: Any, shift: Any, n: Any, wide: Any, flip: Any
) -> Any:
    """target[i] = max(source[i], source[i + shift]) for n ranks, and up to a vector more; may be in place."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, source, shift, n = values[:4]
        vector = _vector(_rank_type(wide, flip))
        i64 = ir.IntType(64)
        size = i64(vector.element.width // 8)
        near, to = _pointer(builder, source), _pointer(builder, target)
        far = builder.gep(near, [builder.mul(shift, size)])
        stop = builder.mul(n, size)
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            a = _load(builder, builder.gep(near, [offset]), vector)
            b = _load(builder, builder.gep(far, [offset]), vector)
            _store(builder, _greater_rank(builder, a, b), builder.gep(to, [offset]))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, wide, flip), codegen


def _element_bits(builder: Any, rank: Any, rule: tuple[Any, Any, Any]) -> Any:
    """The element of a rank without position; that of padding is the lowest number."""
    flip, _, inf = (None if r is None else _splat(builder, r, rank.type) for r in rule)
    if inf is None:
        return builder.xor(rank, flip)
    lowest = builder.not_(inf)  # the rank of -inf
    padding = builder.icmp_signed("==", rank, _least(rank.type))
    return _mirror(builder, builder.select(padding, lowest, rank))


@intrinsic
def every_second(_context: Any, target: Any, source: Any, n: Any, wide: Any, flip: Any) -> Any:
    """target[i] = source[2 * i] for n ranks, and up to a vector more; may be in place."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = _vector(_rank_type(wide, flip))
        i64 = ir.IntType(64)
        target, source = _pointer(builder, values[0]), _pointer(builder, values[1])
        stop = builder.mul(values[2], i64(vector.element.width // 8))
        even = ir.Constant(
            ir.VectorType(ir.IntType(32), vector.count), list(range(0, 2 * vector.count, 2))
        )
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            at = builder.gep(source, [builder.mul(offset, i64(2))])
            low = _load(builder, at, vector)
            high = _load(builder, builder.gep(at, [i64(VECTOR_BYTES)]), vector)
            ranks = builder.shuffle_vector(low, high, even)
            _store(builder, ranks, builder.gep(target, [offset]))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, wide, flip), codegen


@intrinsic
def copy_rank(_context: Any, target: Any, source: Any, wide: Any, flip: Any) -> Any:
    """Copy one rank."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        rank = _load(builder, _pointer(builder, values[1]), _rank_type(wide, flip))
        _store(builder, rank, _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, wide, flip), codegen


@intrinsic
def store_elements(
    _context: Any, out: Any, line: Any, n: Any, flip: Any, nan_key: Any, inf: Any
) -> Any:
    """Store the elements of n ranks without positions."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        out, line, n = values[:3]
        vector = _vector(ir.IntType(flip.bitwidth))
        size = n.type(vector.element.width // 8)
        rule = _rule(signature, values)
        source, target = _pointer(builder, line), _pointer(builder, out)

        def run(first: Any, mask: Any) -> None:
            ranks = _load(builder, builder.gep(source, [builder.mul(first, size)]), vector)
            _store_lanes(builder, _element_bits(builder, ranks, rule), target, first, mask)

        _runs(builder, vector, n, run)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, flip, nan_key, inf), codegen


@intrinsic
def store_found(
    _context: Any,
    out: Any,
    indices: Any,
    line: Any,
    n: Any,
    base: Any,
    weight: Any,
    index: Any,
    blank: Any,
    wide: Any,
    flip: Any,
    nan_key: Any,
    inf: Any,
) -> Any:
    """Store the elements of n ranks and, of `index`'s type, their indices: base + i * weight + position.

    True if there was a NaN: its bits are not in its rank, and the element stored is to be replaced.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        out, indices, line, n, base, weight, _index, blank = values[:8]
        flip_value, nan_value, inf_value = _rule(signature, values)
        vector = _vector(_rank_type(wide, flip))
        element = vector.element
        narrow = ir.VectorType(ir.IntType(flip.bitwidth), vector.count)
        wanted = ir.VectorType(ir.IntType(index.bitwidth), vector.count)
        low = element.width - flip.bitwidth
        width = flip.bitwidth
        i64 = n.type
        source, target = _pointer(builder, line), _pointer(builder, out)
        index_target = _pointer(builder, indices)
        numbers = ir.Constant(wanted, list(range(vector.count)))
        steps = _splat(builder, _resize(builder, weight, wanted.element), wanted)
        steps = builder.mul(steps, numbers)
        bit = ir.IntType(1)
        found = cgutils.alloca_once_value(builder, bit(0))

        def run(first: Any, mask: Any) -> None:
            offset = builder.mul(first, i64(element.width // 8))
            ranks = _load(builder, builder.gep(source, [offset]), vector)
            padding = builder.icmp_signed("==", ranks, _least(vector))
            key = builder.ashr(ranks, _splat(builder, element(low), vector))
            key = builder.trunc(key, narrow)
            if inf_value is None:
                bits = builder.xor(key, _splat(builder, flip_value, narrow))
            else:
                last = _splat(builder, narrow.element(width - 1), narrow)
                negative = builder.ashr(key, last)
                bits = builder.sub(builder.xor(key, negative), negative)
                sign = builder.shl(builder.trunc(ranks, narrow), last)
                bits = builder.or_(bits, sign)
                nan = builder.icmp_signed("==", key, _splat(builder, nan_value, narrow))
                nan = builder.and_(nan, builder.not_(padding))
                if mask is not None:
                    nan = builder.and_(nan, mask)
                lanes = builder.bitcast(nan, ir.IntType(vector.count))
                some = builder.icmp_unsigned("!=", lanes, lanes.type(0))
                builder.store(builder.or_(builder.load(found), some), found)
            bits = builder.select(padding, _splat(builder, blank, narrow), bits)
            _store_lanes(builder, bits, target, first, mask)
            place = builder.lshr(builder.not_(ranks), _splat(builder, element(1), vector))
            place = builder.and_(place, _splat(builder, element(2 ** (low - 1) - 1), vector))
            if wanted.element.width < element.width:
                place = builder.trunc(place, wanted)
            elif wanted.element.width > element.width:
                place = builder.zext(place, wanted)
            start = builder.add(base, builder.mul(first, weight))
            start = _splat(builder, _resize(builder, start, wanted.element), wanted)
            place = builder.add(place, builder.add(start, steps))
            none = ir.Constant(wanted, [-1] * vector.count)
            place = builder.select(padding, none, place)
            _store_lanes(builder, place, index_target, first, mask)

        _runs(builder, vector, n, run)
        return builder.load(found)

    i64 = types.int64
    args = (i64, i64, i64, i64, i64, i64, index, blank, wide, flip, nan_key, inf)
    return types.boolean(*args), codegen


@intrinsic
def store_element(_context: Any, out: Any, line: Any, flip: Any, nan_key: Any, inf: Any) -> Any:
    """Store the element of the rank (without position) at `line`."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rank = _load(builder, _pointer(builder, values[1]), values[2].type)
        bits = _element_bits(builder, rank, _rule(signature, values))
        _store(builder, bits, _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, flip, nan_key, inf), codegen


@intrinsic
def rank_position(_context: Any, line: Any, wide: Any, flip: Any) -> Any:
    """Position of the rank at `line`; -1 for padding."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = _rank_type(wide, flip)
        rank = _load(builder, _pointer(builder, values[0]), element)
        low = element.width - flip.bitwidth
        i64 = ir.IntType(64)
        place = builder.lshr(builder.not_(rank), element(1))
        place = builder.and_(place, element(2 ** (low - 1) - 1))
        if element.width > 64:
            place = builder.trunc(place, i64)
        elif element.width < 64:
            place = builder.zext(place, i64)
        padding = builder.icmp_signed("==", rank, _least(element))
        return builder.select(padding, i64(-1), place)

    return types.int64(types.int64, wide, flip), codegen
