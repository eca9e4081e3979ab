"""Scratch memory of a chunk."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from order_key import VECTOR_BYTES


@intrinsic
def allocate(_context: Any, size: Any) -> Any:
    """The address of `size` bytes that begin where a cache line does, until they are released.

    Raises:
        MemoryError: there is no memory.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        i64 = ir.IntType(64)
        # Before it stands the address of the block that it lies in.
        extra = i64(VECTOR_BYTES + 8)
        block = context.nrt.allocate(builder, builder.add(values[0], extra))
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
