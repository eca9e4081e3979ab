"""What all compiled code is made of: addresses, sizes, loads and stores, scratch memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compiled import helper, inlined
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


def _place(builder: Any, address: Any, *steps: tuple[Any, Any]) -> Any:
    """A pointer at `address`, so many steps of so many bytes further."""
    for number, step in steps:
        address = builder.add(address, builder.mul(number, step))
    return _pointer(builder, address)


def _load(builder: Any, pointer: Any, type_: Any) -> Any:
    """Load a value of any alignment."""
    return builder.load(builder.bitcast(pointer, type_.as_pointer()), align=1)


def _store(builder: Any, value: Any, pointer: Any) -> None:
    """Store a value at any alignment."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=1)


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


@inlined
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
