"""Lines of ranks: what pooling keeps of its elements in scratch memory, and vector loops over them.

A rank is an integer of which the greatest is wanted. Without positions (`wide` None) it is as wide as the element
and turns back into it; `nan_key` is then what to add to numbers so that all NaN wrap round to the losing, or the
winning, end. With them the order key fills the upper bits and the inverted position the lower ones, so that one
maximum finds the element and settles ties; the lowest bit keeps the sign of a zero. The least rank is padding's.

Where sums are wanted, `wide` is a float, and so are the ranks, which are added up; padding is 0. The type of `flip`
then tells the element's: int16 float16, uint16 bfloat16, int32 float32, int64 float64. `nan_key` is None for the
elements as they are, or a tuple of one zero for |x|, two for x**2, three for |x|**p of which `inf` is p, of float64.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from half import _bfloat_to_float, _half_to_float, _like
from memory import VECTOR_BYTES, _load, _pointer, _prefetch, _splat
from order_key import _mirror, _order_key, _rule
from vectors import _any, _masked_load, _masked_store

AHEAD = 32768  # bytes from a row to what is fetched ahead: large inputs take 0.6 to 1 of the time, small 1 to 1.03
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


def _rank(builder: Any, bits: Any, position: Any, element: Any, rule: tuple[Any, Any, Any]) -> Any:
    """Rank of `bits`, of the integer type `element`; `position` is inverted (None: without position)."""
    flip, nan_key, inf = rule
    if position is None:
        if inf is None:
            return builder.xor(bits, _splat(builder, flip, bits.type))
        return builder.add(_mirror(builder, bits), _splat(builder, nan_key, bits.type))
    if inf is not None:
        # As only maxima are pooled, that of floats is 0 anyway: an operation less.
        flip = flip.type(0)
    key = _order_key(builder, bits, (flip, nan_key, inf))
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


def _inverted(builder: Any, position: Any, element: Any, low: int) -> Any:
    """What stands in the lower bits of a rank for a 64-bit position: less for a later one, never 0."""
    position = _resize(builder, position, element)
    return builder.shl(builder.sub(element(2 ** (low - 1) - 1), position), element(1))


def _lowest(builder: Any, type_: Any, wide: Any, rule: tuple[Any, Any, Any]) -> Any:
    """The least rank of an element: without positions it keeps a losing NaN above padding."""
    least = _least(type_)
    if wide != types.none or rule[2] is None:
        return least
    above = builder.icmp_signed(">", rule[1], rule[1].type(0))
    return builder.add(least, _splat(builder, builder.zext(above, rule[1].type), type_))


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


def _term(
    context: Any, builder: Any, bits: Any, kind: Any, power: Any, element: Any, exponent: Any
) -> Any:
    """What an element adds to a sum. A power that is too small is none: only a sum of zeros is 0."""
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
        term = _raised(builder, _magnitude(builder, value), exponent)
    least = _splat(builder, element(LEAST_POWER[_width(element)]), value.type)
    magnitude = _magnitude(builder, value)
    least = builder.select(builder.fcmp_ordered("<", magnitude, least), magnitude, least)
    return builder.select(builder.fcmp_ordered("<", term, least), least, term)


def _first_lanes(builder: Any, count: int, n: Any) -> Any:
    """True in the first `n` of `count` lanes, n < count."""
    bits = ir.IntType(count)
    n = builder.trunc(n, bits) if count < 64 else n
    ones = builder.sub(builder.shl(bits(1), n), bits(1))
    return builder.bitcast(ones, ir.VectorType(ir.IntType(1), count))


def _store(builder: Any, value: Any, pointer: Any) -> None:
    """Store a value at any alignment."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)


def _place(builder: Any, address: Any, *steps: tuple[Any, Any]) -> Any:
    """A pointer at `address`, so many steps of so many bytes further."""
    for number, step in steps:
        address = builder.add(address, builder.mul(number, step))
    return _pointer(builder, address)


def _vector(element: Any, registers: int = 1) -> Any:
    return ir.VectorType(element, registers * VECTOR_BYTES * 8 // _width(element))


def _runs(builder: Any, vector: Any, planes: Any, count: Any, n: Any, run: Any) -> None:
    """`run(plane, number, first, done, mask)` for `count` runs of each plane, in strips of n lanes.

    The last strip overlaps: its first `done` lanes were those of the strip before. It is masked where there is no
    whole one.
    """
    builder.function.attributes.add("optsize")  # else LLVM unrolls what _by_count leaves
    i64 = n.type
    lanes = i64(vector.count)
    last = builder.sub(n, lanes)
    with builder.if_else(builder.icmp_signed(">=", n, lanes)) as (then, otherwise):
        with (
            then,
            cgutils.for_range(builder, planes) as plane,
            cgutils.for_range(builder, count) as loop,
            cgutils.for_range_slice(builder, i64(0), n, lanes, i64) as (begin, _),
        ):
            first = builder.select(builder.icmp_signed("<", begin, last), begin, last)
            run(plane.index, loop.index, first, builder.sub(begin, first), None)
        with otherwise:
            mask = _first_lanes(builder, vector.count, n)
            with (
                cgutils.for_range(builder, planes) as plane,
                cgutils.for_range(builder, count) as loop,
            ):
                run(plane.index, loop.index, i64(0), i64(0), mask)


def _by_count(builder: Any, count: Any, body: Any) -> None:
    """`body(n)` for a number of rounds: an int up to 3, whose rounds the body writes out, or `count` itself.

    Windows of 3 x 3 over small planes take 0.8 to 0.9 of the time.
    """
    rest = builder.append_basic_block("rest")
    end = builder.append_basic_block("end")
    switch = builder.switch(count, rest)
    for n in (1, 2, 3):
        block = builder.append_basic_block(f"of_{n}")
        switch.add_case(count.type(n), block)
        builder.position_at_end(block)
        body(n)
        builder.branch(end)
    builder.position_at_end(rest)
    body(count)
    builder.branch(end)
    builder.position_at_end(end)


def _rounds(builder: Any, count: Any, body: Any) -> None:
    """`body(i)` for i from 0 on, `count` times; written out where that is an int."""
    if isinstance(count, int):
        for i in range(count):
            body(ir.IntType(64)(i))
    else:
        with cgutils.for_range(builder, count) as loop:
            body(loop.index)


def _after(builder: Any, done: Any, value: Any, old: Any) -> Any:
    """`value`, in the first `done` lanes `old`."""
    numbers = ir.VectorType(ir.IntType(32), value.type.count)
    done = _splat(builder, builder.trunc(done, ir.IntType(32)), numbers)
    new = builder.icmp_signed(">=", ir.Constant(numbers, list(range(numbers.count))), done)
    return builder.select(new, value, old)


def _store_lanes(builder: Any, value: Any, start: Any, first: Any, mask: Any) -> None:
    """Store a vector, or its masked lanes, as the elements from number `first` on."""
    offset = builder.mul(first, first.type(value.type.element.width // 8))
    pointer = builder.gep(start, [offset])
    if mask is None:
        _store(builder, value, pointer)
    else:
        _masked_store(builder, value, pointer, mask)


@intrinsic
def rank_size(_context: Any, wide: Any, flip: Any) -> Any:
    """Bytes of a rank, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(_width(_rank_type(wide, flip)) // 8)

    return types.int64(wide, flip), codegen


@intrinsic
def clear_ranks(_context: Any, line: Any, n: Any, wide: Any, flip: Any) -> Any:
    """Set n ranks, and up to a vector more, to padding."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = _vector(_rank_type(wide, flip))
        i64 = ir.IntType(64)
        start = _pointer(builder, values[0])
        stop = builder.mul(values[1], i64(_width(vector.element) // 8))
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
    """Join the rank at `line` with that of the element at `address`."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, address, position = values[:3]
        element = _rank_type(wide, flip)
        bits = _load(builder, _pointer(builder, address), values[4].type)
        if _is_float(element):
            rank = _term(context, builder, bits, flip, nan_key, element, values[-1])
        else:
            place = None
            if wide != types.none:
                place = _inverted(builder, position, element, element.width - flip.bitwidth)
            rule = _rule(signature, values)
            rank = _rank(builder, bits, place, element, rule)
            rank = _joined(builder, rank, _lowest(builder, element, wide, rule))
        pointer = _pointer(builder, line)
        _store(builder, _joined(builder, rank, _load(builder, pointer, element)), pointer)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, wide, flip, nan_key, inf), codegen


@intrinsic
def rank_rows(
    _context: Any,
    line: Any,
    address: Any,
    position: Any,
    planes: Any,
    plane_line: Any,
    plane_address: Any,
    count: Any,
    line_step: Any,
    address_step: Any,
    position_step: Any,
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
    """The joint rank of each of n contiguous columns over `rows` rows, kept in a register meanwhile.

    Row r begins at address + offsets[r], at position + positions[r] / 2, and `along` (0 or 1) more with each column.
    The line may be written two vectors further than `columns`, with padding or with what stood there.
    `fresh`: the line's old ranks do not count. All this for `count` lines of each of several planes, the given steps
    apart.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, address, position, planes, plane_line, plane_address = values[:6]
        count, line_step, address_step, position_step = values[6:10]
        offsets, positions, rows, columns, along, fresh = values[10:16]
        element = _rank_type(wide, flip)
        sums = _is_float(element)
        positions_wanted = wide != types.none and not sums
        vector = _vector(element, 2 if positions_wanted else 1)
        narrow = ir.VectorType(ir.IntType(flip.bitwidth), vector.count)
        i64 = ir.IntType(64)
        rule: Any = None if sums else _rule(signature, values)
        offset_table = builder.bitcast(_pointer(builder, offsets), i64.as_pointer())
        position_table = builder.bitcast(_pointer(builder, positions), i64.as_pointer())
        best = cgutils.alloca_once(builder, vector)
        if positions_wanted:
            numbers = ir.Constant(vector, list(range(0, 2 * vector.count, 2)))
            steps = builder.mul(_splat(builder, _resize(builder, along, element), vector), numbers)
        least = _least(vector)
        lowest = least if sums else _splat(builder, _lowest(builder, element, wide, rule), vector)
        fresh = builder.trunc(fresh, ir.IntType(1))

        def strip(rounds: Any, plane: Any, number: Any, column: Any, done: Any, mask: Any) -> None:
            size = i64(_width(element) // 8)
            place = _place(builder, line, (plane, plane_line), (number, line_step), (column, size))
            if sums:
                builder.store(least, best)
            else:
                old = _load(builder, place, vector)
                begin = lowest if mask is None else builder.select(mask, lowest, least)
                builder.store(builder.select(fresh, begin, old), best)
            size = i64(narrow.element.width // 8)
            first = _place(
                builder, address, (plane, plane_address), (number, address_step), (column, size)
            )
            start = None
            if positions_wanted:
                start = builder.add(position, builder.mul(number, position_step))
                start = builder.add(start, builder.mul(column, along))
                start = _inverted(builder, start, element, element.width - flip.bitwidth)
                start = builder.sub(_splat(builder, start, vector), steps)

            def join_row(row: Any) -> None:
                offset = builder.load(builder.gep(offset_table, [row]))
                pointer = builder.gep(first, [offset])
                _prefetch(builder, builder.gep(pointer, [i64(AHEAD)]), 2)
                where = None
                if positions_wanted:
                    where = builder.load(builder.gep(position_table, [row]))
                    where = _splat(builder, _resize(builder, where, element), vector)
                    where = builder.sub(start, where)
                bits = _masked_load(builder, pointer, mask, narrow)
                if sums:
                    rank = _term(context, builder, bits, flip, nan_key, element, values[-1])
                else:
                    rank = _rank(builder, bits, where, element, rule)
                if mask is not None:
                    rank = builder.select(mask, rank, least)
                builder.store(_joined(builder, rank, builder.load(best)), best)

            _rounds(builder, rounds, join_row)
            found = builder.load(best)
            if not sums:
                _store(builder, found, place)
                return
            with builder.if_else(fresh) as (then, otherwise):
                with then:
                    _store(builder, found, place)
                with otherwise:  # what the strip before has added is not added again
                    old = _load(builder, place, vector)
                    more = _after(builder, done, builder.fadd(old, found), old)
                    _store(builder, more, place)

        def ranks(rounds: Any) -> None:
            _runs(builder, vector, planes, count, columns, partial(strip, rounds))

        _by_count(builder, rows, ranks)
        return context.get_dummy_value()

    i64 = types.int64
    args = (*(i64,) * 15, types.boolean, wide, flip, nan_key, inf)
    return types.void(*args), codegen


def _folded(
    builder: Any, source: Any, vectors: int, vector: Any, pieces: tuple[Any, Any, Any]
) -> list[Any]:
    """Neighbouring vectors at `source`, each joined of those `step` bytes apart, the last at `last` bytes."""
    count, step, last = pieces
    size = vector.count * _width(vector.element) // 8
    places = [builder.gep(source, [last.type(i * size)]) for i in range(vectors)]

    def piece(place: Any, offset: Any) -> Any:
        return _load(builder, builder.gep(place, [offset]), vector)

    best = [cgutils.alloca_once(builder, vector) for _ in range(vectors)]
    for one, place in zip(best, places, strict=True):
        builder.store(piece(place, last), one)

    def join(number: Any) -> None:
        for one, place in zip(best, places, strict=True):
            rank = piece(place, builder.mul(number, step))
            builder.store(_joined(builder, rank, builder.load(one)), one)

    rest = count - 1 if isinstance(count, int) else builder.sub(count, count.type(1))
    _rounds(builder, rest, join)
    return [builder.load(one) for one in best]


@intrinsic
def fold_line(
    _context: Any,
    target: Any,
    source: Any,
    n: Any,
    pieces: Any,
    step: Any,
    last: Any,
    wide: Any,
    flip: Any,
) -> Any:
    """target[i] = source[i], source[i + step], .., source[i + last] joined, `pieces` of them.

    For n ranks, and up to a vector more; may be in place. One piece: a copy of those at `last`.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, source, n, pieces, step, last = values[:6]
        vector = _vector(_rank_type(wide, flip))
        i64 = ir.IntType(64)
        size = i64(_width(vector.element) // 8)
        near, to = _pointer(builder, source), _pointer(builder, target)
        shifts = (pieces, builder.mul(step, size), builder.mul(last, size))
        stop = builder.mul(n, size)
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            (best,) = _folded(builder, builder.gep(near, [offset]), 1, vector, shifts)
            _store(builder, best, builder.gep(to, [offset]))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, i64, i64, wide, flip), codegen


class _Runs(NamedTuple):
    """Planes of `count` runs of n outputs each, in `line` the given bytes apart; each output folded from pieces."""

    line: Any
    planes: Any
    plane_line: Any
    count: Any
    line_step: Any
    n: Any
    stride: Any  # 1 or 2
    pieces: Any
    step: Any
    last: Any


def _fold_runs(builder: Any, vector: Any, runs: _Runs, run: Any) -> None:
    """`run(plane, number, ranks, first, mask)` for the folded ranks of strips of the runs."""
    i64 = runs.n.type
    bytes_of_rank = _width(vector.element) // 8
    size = i64(bytes_of_rank)
    numbers = ir.VectorType(ir.IntType(32), vector.count)
    even = ir.Constant(numbers, list(range(0, 2 * vector.count, 2)))

    def place(plane: Any, number: Any, first: Any, apart: int) -> Any:
        steps = (plane, runs.plane_line), (number, runs.line_step), (first, i64(apart))
        return _place(builder, runs.line, *steps)

    def folded(source: Any, vectors: int, pieces: Any) -> list[Any]:
        shifts = (pieces, builder.mul(runs.step, size), builder.mul(runs.last, size))
        return _folded(builder, source, vectors, vector, shifts)

    def every(pieces: Any, plane: Any, number: Any, first: Any, _done: Any, mask: Any) -> None:
        (ranks,) = folded(place(plane, number, first, bytes_of_rank), 1, pieces)
        run(plane, number, ranks, first, mask)

    def every_second(plane: Any, number: Any, first: Any, _done: Any, mask: Any) -> None:
        low, high = folded(place(plane, number, first, 2 * bytes_of_rank), 2, runs.pieces)
        run(plane, number, builder.shuffle_vector(low, high, even), first, mask)

    def of_all(pieces: Any) -> None:
        _runs(builder, vector, runs.planes, runs.count, runs.n, partial(every, pieces))

    with builder.if_else(builder.icmp_signed("==", runs.stride, i64(1))) as (then, otherwise):
        with then:
            _by_count(builder, runs.pieces, of_all)
        with otherwise:
            _runs(builder, vector, runs.planes, runs.count, runs.n, every_second)


def _element_bits(builder: Any, rank: Any, rule: tuple[Any, Any, Any]) -> Any:
    """The element of a rank without position; that of padding is the lowest number."""
    flip, shift, inf = (None if r is None else _splat(builder, r, rank.type) for r in rule)
    if inf is None:
        return builder.xor(rank, flip)
    lowest = builder.not_(inf)  # -inf, mirrored
    padding = builder.icmp_signed("==", rank, _least(rank.type))
    return _mirror(builder, builder.select(padding, lowest, builder.sub(rank, shift)))


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
    _context: Any,
    out: Any,
    plane_out: Any,
    out_step: Any,
    line: Any,
    planes: Any,
    plane_line: Any,
    count: Any,
    line_step: Any,
    n: Any,
    stride: Any,
    pieces: Any,
    step: Any,
    last: Any,
    flip: Any,
    nan_key: Any,
    inf: Any,
) -> Any:
    """Store the elements of `count` runs of n outputs of each of several planes, the given steps (bytes) apart.

    Outputs are `stride` (1 or 2) ranks apart, each the greatest of pieces as in fold_line.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        out, plane_out, out_step = values[:3]
        rule = _rule(signature, values)

        def run(plane: Any, number: Any, ranks: Any, first: Any, mask: Any) -> None:
            target = _place(builder, out, (plane, plane_out), (number, out_step))
            _store_lanes(builder, _element_bits(builder, ranks, rule), target, first, mask)

        _fold_runs(builder, _vector(ir.IntType(flip.bitwidth)), _Runs(*values[3:13]), run)
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 13, flip, nan_key, inf), codegen


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


@intrinsic
def store_found(
    _context: Any,
    out: Any,
    plane_out: Any,
    out_step: Any,
    indices: Any,
    plane_index: Any,
    index_step: Any,
    line: Any,
    planes: Any,
    plane_line: Any,
    count: Any,
    line_step: Any,
    n: Any,
    stride: Any,
    pieces: Any,
    step: Any,
    last: Any,
    base: Any,
    plane_base: Any,
    weight: Any,
    width: Any,
    blank: Any,
    wide: Any,
    flip: Any,
    nan_key: Any,
    inf: Any,
) -> Any:
    """Store the elements as store_elements does, and their indices, of `width` bytes: base + i * weight + position, and
    `plane_base` more in each further plane. The indices alone where `out` is None.

    True if there was a NaN: its bits are not in its rank, and the element stored is to be replaced.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        out, plane_out, out_step, indices, plane_index, index_step = values[:6]
        base, plane_base, weight, width, blank = values[16:21]
        flip_value, nan_value, inf_value = _rule(signature, values)
        rank_type = _rank_type(wide, flip)
        vector = _vector(rank_type, 2 if rank_type.width > 32 else 1)
        bits_type = ir.IntType(flip.bitwidth)
        narrow = ir.VectorType(bits_type, vector.count)
        farthest = 2 ** (vector.element.width - flip.bitwidth - 1) - 1
        elements_wanted = signature.args[0] != types.none
        some = ir.VectorType(ir.IntType(1), vector.count)
        found = cgutils.alloca_once_value(builder, ir.Constant(some, None))

        def store_bits(
            target: Any, key: Any, low: Any, padding: Any, first: Any, mask: Any
        ) -> None:
            if inf_value is None:
                bits = builder.xor(key, _splat(builder, flip_value, narrow))
            else:
                highest = _splat(builder, bits_type(flip.bitwidth - 1), narrow)
                negative = builder.ashr(key, highest)
                bits = builder.sub(builder.xor(key, negative), negative)
                sign = builder.shl(_resize(builder, low, bits_type), highest)
                bits = builder.or_(bits, sign)
                nan = builder.icmp_signed("==", key, _splat(builder, nan_value, narrow))
                nan = builder.and_(nan, builder.not_(padding))
                if mask is not None:
                    nan = builder.and_(nan, mask)
                builder.store(builder.or_(builder.load(found), nan), found)
            bits = builder.select(padding, _splat(builder, blank, narrow), bits)
            _store_lanes(builder, bits, target, first, mask)

        def store_indices(
            target: Any, start: Any, low: Any, padding: Any, first: Any, mask: Any, integer: Any
        ) -> None:
            wanted = ir.VectorType(integer, vector.count)
            numbers = ir.Constant(wanted, list(range(vector.count)))
            steps = _splat(builder, _resize(builder, weight, integer), wanted)
            steps = builder.mul(steps, numbers)
            start = builder.add(start, builder.mul(first, weight))
            start = builder.add(start, start.type(farthest))
            start = _splat(builder, _resize(builder, start, integer), wanted)
            back = builder.lshr(low, _splat(builder, low.type.element(1), low.type))
            if integer.width < low.type.element.width:
                back = builder.trunc(back, wanted)
            elif integer.width > low.type.element.width:
                back = builder.zext(back, wanted)
            index = builder.sub(builder.add(start, steps), back)
            index = builder.select(padding, ir.Constant(wanted, [-1] * vector.count), index)
            _store_lanes(builder, index, target, first, mask)

        def run(plane: Any, number: Any, ranks: Any, first: Any, mask: Any) -> None:
            key, low = _parts(builder, ranks, bits_type)
            padding = builder.icmp_signed("==", low, ir.Constant(low.type, None))
            if elements_wanted:
                target = _place(builder, out, (plane, plane_out), (number, out_step))
                store_bits(target, key, low, padding, first, mask)
            target = _place(builder, indices, (plane, plane_index), (number, index_step))
            start = builder.add(base, builder.mul(plane, plane_base))
            short = builder.icmp_signed("==", width, width.type(4))
            with builder.if_else(short) as (then, otherwise):
                with then:
                    store_indices(target, start, low, padding, first, mask, ir.IntType(32))
                with otherwise:
                    store_indices(target, start, low, padding, first, mask, ir.IntType(64))

        _fold_runs(builder, vector, _Runs(*values[6:16]), run)
        return _any(builder, builder.load(found))

    i64 = types.int64
    args = (out, *(i64,) * 19, blank, wide, flip, nan_key, inf)
    return types.boolean(*args), codegen
