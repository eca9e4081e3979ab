"""What all compiled code is made of: addresses, sizes, loads and stores, scratch memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compiled import helper
from constants import _of_type
from llvm import _call, _width

VECTOR_BYTES = 64  # one AVX-512 register or cache line; LLVM splits it where registers are narrower


def _vector(element: Any, registers: int = 1) -> Any:
    """The vector type of VECTOR_BYTES bytes, or of so many times as many."""
    return ir.VectorType(element, registers * VECTOR_BYTES * 8 // _width(element))


def _splat(builder: Any, value: Any, type_: Any) -> Any:
    """The scalar `value` in every lane of the vector type `type_` (or itself for a scalar type)."""
    if not isinstance(type_, ir.VectorType):
        return value
    one = builder.insert_element(ir.Constant(type_, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), type_.count), None)
    return builder.shuffle_vector(one, ir.Constant(type_, ir.Undefined), zeros)


def _pointer(builder: Any, address: Any, offset: Any = None) -> Any:
    """A byte pointer at `address + offset`."""
    pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
    return pointer if offset is None else builder.gep(pointer, [offset])


def _load(builder: Any, pointer: Any, type_: Any) -> Any:
    """Load a value of any alignment."""
    return builder.load(builder.bitcast(pointer, type_.as_pointer()), align=1)


def _store(builder: Any, value: Any, pointer: Any) -> None:
    """Store a value at any alignment."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)


# Elements, by which others lie apart, that are so few that they are picked out of whole vectors.
NEAR_STEPS = (1, 2, 3, 4)


def _shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """The lanes of a, then b, that have these numbers."""
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
    return builder.shuffle_vector(a, b, numbers)


def _side_by_side(builder: Any, parts: list[Any]) -> Any:
    """Vectors of as many lanes, a power of 2 of them, as one."""
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffled(builder, a, b, order) for a, b in pairs]
    return parts[0]


def _interleaved(builder: Any, a: Any, b: Any) -> Any:
    """The lanes of a and b in turn."""
    lanes = a.type.count
    return _shuffled(builder, a, b, [lane + which for lane in range(lanes) for which in (0, lanes)])


def _in_turn(builder: Any, vector: Any) -> list[Any]:
    """The two vectors that were interleaved."""
    lanes = vector.type.count
    return [_shuffled(builder, vector, vector, list(range(i, lanes, 2))) for i in (0, 1)]


def _collected(builder: Any, vectors: list[Any], places: list[int]) -> Any:
    """A vector of what stands at so many `places`, in rising order, counted through all of the vectors; of one, all."""
    lanes = vectors[0].type.count
    value, order = vectors[0], places
    for number, vector in enumerate(vectors[1:], 1):
        begin = number * lanes
        # Those before have what comes before this one, each element in its lane.
        order = [
            lane if place < begin else lanes + min(place - begin, lanes - 1)
            for lane, place in zip(order, places, strict=True)
        ]
        value = _shuffled(builder, value, vector, order)
        order = list(range(lanes))
    return value


def _lanes_from(builder: Any, vector: Any, first: int, count: int) -> Any:
    """So many lanes from number `first` on."""
    undefined = ir.Constant(vector.type, ir.Undefined)
    return _shuffled(builder, vector, undefined, list(range(first, first + count)))


def _picked(builder: Any, address: Any, step: int, vector: Any) -> Any:
    """A vector of elements that lie `step` elements apart; nothing before the first or behind the last is read."""
    lanes = vector.count
    wanted = [step * lane for lane in range(lanes)]
    begins = [min(part * lanes, wanted[-1] - lanes + 1) for part in range(step)]
    pointer = builder.inttoptr(address, vector.element.as_pointer())
    parts = [_load(builder, builder.gep(pointer, [ir.IntType(32)(n)]), vector) for n in begins]
    # The last part begins earlier than behind the one before it.
    places = [at // lanes * lanes + at - begins[at // lanes] for at in wanted]
    return _collected(builder, parts, places)


def _pointers(builder: Any, address: Any, step: Any, count: Any, vector: Any) -> list[Any]:
    """One pointer for each lane, `step` bytes apart; the lanes behind the first `count` repeat the last of these.

    One access for each lane is twice as fast as a masked gather or scatter instruction, and needs no branches.
    """
    pointers = []
    for lane in range(vector.count):
        if lane:
            further = builder.add(address, step)
            if count is not None:
                inside = builder.icmp_signed("<", ir.IntType(64)(lane), count)
                further = builder.select(inside, further, address)
            address = further
        pointers.append(builder.inttoptr(address, vector.element.as_pointer()))
    return pointers


def _one_by_one(builder: Any, address: Any, step: Any, vector: Any, count: Any) -> Any:
    """As _load_apart, an element after the other."""
    value = ir.Constant(vector, ir.Undefined)
    for lane, pointer in enumerate(_pointers(builder, address, step, count, vector)):
        element = builder.load(pointer, align=1)
        value = builder.insert_element(value, element, ir.IntType(32)(lane))
    return value


def _load_apart(builder: Any, address: Any, step: Any, vector: Any, count: Any = None) -> Any:
    """The elements at address, address + step, ..: a whole vector, or the first `count`; other lanes repeat the last.

    Of a whole vector, elements that lie near to each other are picked out of all that lies between the first and the
    last: 0.2 to 0.7 of the time. Others are loaded one by one.
    """
    if count is not None:
        return _one_by_one(builder, address, step, vector, count)
    size = _width(vector) // 8
    value = cgutils.alloca_once(builder, vector)

    def choose(steps: tuple[int, ...]) -> None:
        if not steps:
            builder.store(_one_by_one(builder, address, step, vector, None), value)
            return
        near = builder.icmp_signed("==", step, step.type(steps[0] * size))
        with builder.if_else(near) as (then, otherwise):
            with then:
                builder.store(_picked(builder, address, steps[0], vector), value)
            with otherwise:
                choose(steps[1:])

    choose(NEAR_STEPS)
    return builder.load(value)


def _opaque(builder: Any, value: Any) -> Any:
    """An integer, or a vector of 256 bits at most, in a register of x86, whose contents LLVM does not know."""
    kind = "r" if isinstance(value.type, ir.IntType) else "x"
    function = ir.FunctionType(value.type, [value.type])
    hidden = builder.asm(function, "", f"={kind},0", [value], False)
    hidden.attributes.add("readnone")
    return hidden


def _stream(builder: Any, value: Any, pointer: Any, size: int) -> None:
    """Store a vector of `size` bytes past the caches, which need not read its line first: 1.3x to 2x beyond them.

    The address is a multiple of the size; `drain_stores` must follow.
    """
    place = builder.bitcast(pointer, value.type.as_pointer())
    store = builder.store(value, place, align=size)
    store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))


@intrinsic
def drain_stores(_context: Any) -> Any:
    """From here on other threads see what went past the caches."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


def _prefetch(builder: Any, pointer: Any, level: int, write: int = 0) -> None:
    """Fetch a cache line that is wanted soon, to be written to where `write` is 1, into the cache of that level.

    Any address will do. The processor's own fetching does best along memory that is read in order by little
    arithmetic. Elsewhere, as between rows that lie apart and where much is computed, it comes too late: 1.1x to 2x
    beyond the cache. Level 2 is better for rows that lie apart (1.1x to 1.6x): few lines can be under way to level 1.
    Zen 5 differs in both; see where it is asked for.
    """
    i32 = ir.IntType(32)
    how = i32(write), i32(4 - level), i32(1)
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, *how)


def _prefetch_line(builder: Any, address: Any, ahead: Any, number: Any) -> None:
    """Fetch one of the lines that begin `ahead` bytes after the address."""
    offset = builder.add(ahead, builder.mul(number, ahead.type(VECTOR_BYTES)))
    _prefetch(builder, _pointer(builder, address, offset), 1)


@helper
def aligned(n):
    """An address or a number of bytes, rounded up to whole cache lines: a store across two takes as long as two."""
    return (n + VECTOR_BYTES - 1) & -VECTOR_BYTES


def _chosen(sign: str) -> Any:
    """An intrinsic that takes the first of two int64 where it stands so to the second, else the second.

    Numba's `min` and `max` are functions that are compiled for each kernel: 2 to 6 % of its time.
    """

    @intrinsic
    def choose(_context: Any, a: Any, b: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.select(builder.icmp_signed(sign, *values), *values)

        return types.int64(types.int64, types.int64), codegen

    return choose


least = _chosen("<")
most = _chosen(">")


@intrinsic
def split(_context: Any, n: Any, size: Any) -> Any:
    """(n // size, n % size), of n from 0 and size from 1 on: the position in outer axes, and the one in this axis.

    Unlike Numba's, one division of unsigned numbers; by 0 it ends the process.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        outer = builder.udiv(*values)
        digit = builder.sub(values[0], builder.mul(outer, values[1]))
        return context.make_tuple(builder, signature.return_type, (outer, digit))

    i64 = types.int64
    return types.UniTuple(i64, 2)(i64, i64), codegen


@intrinsic
def ceildiv(_context: Any, n: Any, size: Any) -> Any:
    """n / size, rounded up, of n from 0 and size from 1 on; see `split`."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        n, size = values
        return builder.udiv(builder.add(n, builder.sub(size, size.type(1))), size)

    return types.int64(types.int64, types.int64), codegen


# Bytes of an element: of an integer, or of what a PoolState or a Fold is of.
element_size = _of_type(lambda kind: kind.bitwidth // 8)


@intrinsic
def load_integer(_context: Any, like: Any, address: Any) -> Any:
    """The integer of `like`'s type at `address`."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _load(builder, _pointer(builder, values[1]), values[0].type)

    return like(like, types.int64), codegen


@intrinsic
def store_integer(_context: Any, like: Any, address: Any, value: Any) -> Any:
    """Store `value`, cut to `like`'s type, at `address`."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        value = values[2]
        if value.type.width > values[0].type.width:
            value = builder.trunc(value, values[0].type)
        _store(builder, value, _pointer(builder, values[1]))
        return context.get_dummy_value()

    return types.void(like, types.int64, value), codegen


@helper
def store_element(address, value, size):
    """Store the low bytes of `value`, `size` of them: 2, 4 or 8."""
    if size == 4:
        store_integer(np.int32(0), address, value)
    elif size == 8:
        store_integer(np.int64(0), address, value)
    else:
        store_integer(np.int16(0), address, value)


@helper
def load_index(address, size):
    """The index, of `size` bytes: 4 or 8."""
    if size == 4:
        return np.int64(load_integer(np.int32(0), address)) & 0xFFFFFFFF
    return load_integer(np.int64(0), address)


@intrinsic
def allocate(_context: Any, size: Any) -> Any:
    """The address of `size` bytes that begin where a cache line does, until they are released.

    They are lost where an error comes in between, as no memory for another allocation.

    Raises:
        MemoryError: there is no memory.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        i64 = ir.IntType(64)
        # Before it stands the address of the block that it lies in.
        extra = i64(VECTOR_BYTES + 8)
        block = context.nrt.allocate_unchecked(builder, builder.add(values[0], extra))
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, block)):
            text = "no memory for a thread's scratch"
            context.call_conv.return_user_exc(builder, MemoryError, (text,))
        first = builder.ptrtoint(block, i64)
        address = builder.and_(builder.add(first, extra), i64(-VECTOR_BYTES))
        place = builder.inttoptr(builder.sub(address, i64(8)), i64.as_pointer())
        builder.store(first, place)
        return address

    return types.int64(types.int64), codegen


@intrinsic
def release(_context: Any, address: Any) -> Any:
    """Give back what was allocated."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        i64 = ir.IntType(64)
        place = builder.inttoptr(builder.sub(values[0], i64(8)), i64.as_pointer())
        block = builder.inttoptr(builder.load(place), cgutils.voidptr_t)
        context.nrt.free(builder, block)
        return context.get_dummy_value()

    return types.void(types.int64), codegen
