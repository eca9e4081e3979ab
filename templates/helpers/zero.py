"""Setting memory to 0, exactly the bytes asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compiled import helper
from memory import VECTOR_BYTES, _pointer, _stream, aligned, store_element


@intrinsic
def zero_bytes(_context: Any, address: Any, count: Any) -> Any:
    """Set `count` contiguous bytes to 0, 1 at least.

    By overlapping stores of one width: calling memset takes longer than a short row.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, count = values
        i64 = count.type
        start = _pointer(builder, address)

        def store(width: int, offset: Any) -> None:
            type_ = ir.VectorType(ir.IntType(8), width)
            place = builder.bitcast(builder.gep(start, [offset]), type_.as_pointer())
            builder.store(ir.Constant(type_, None), place, align=1)

        def below(width: int) -> None:
            """Fewer than 2 * `width` bytes."""
            enough = builder.icmp_signed(">=", count, i64(width))
            with builder.if_else(enough) as (then, otherwise):
                with then:
                    store(width, i64(0))
                    store(width, builder.sub(count, i64(width)))
                with otherwise:
                    if width > 1:
                        below(width // 2)

        long = builder.icmp_signed(">=", count, i64(VECTOR_BYTES))
        with builder.if_else(long) as (then, otherwise):
            with then:
                # Aligned but for both ends: a store across two cache lines takes twice as long.
                last = builder.sub(count, i64(VECTOR_BYTES))
                over = builder.and_(address, i64(VECTOR_BYTES - 1))
                first = builder.sub(i64(VECTOR_BYTES), over)
                store(VECTOR_BYTES, i64(0))
                strip = cgutils.for_range_slice(builder, first, last, i64(VECTOR_BYTES), i64)
                with strip as (offset, _):
                    store(VECTOR_BYTES, offset)
                store(VECTOR_BYTES, last)
            with otherwise:
                below(VECTOR_BYTES // 2)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def _stream_zeros(_context: Any, begin: Any, end: Any) -> Any:
    """Set whole cache lines to 0 past the caches; `drain_stores` must follow."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        begin, end = values
        line = ir.VectorType(ir.IntType(8), VECTOR_BYTES)
        strip = cgutils.for_range_slice(builder, begin, end, begin.type(VECTOR_BYTES), begin.type)
        with strip as (address, _):
            _stream(builder, ir.Constant(line, None), _pointer(builder, address), VECTOR_BYTES)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@helper
def zero_past_caches(address, count):
    """Set `count` contiguous bytes to 0; `drain_stores` must follow. A line stored to both ways would wait."""
    end = address + count
    first = aligned(address)
    last = end & -VECTOR_BYTES
    if first >= last:
        zero_bytes(address, count)
        return
    if first > address:
        zero_bytes(address, first - address)
    _stream_zeros(first, last)
    if end > last:
        zero_bytes(last, end - last)


@helper
def zero_run(address, count, step, size):
    """Set `count` elements of `size` bytes that are `step` bytes apart to 0."""
    if step == size:
        zero_bytes(address, count * size)
    elif step == -size:
        zero_bytes(address + (count - 1) * step, count * size)
    else:
        for i in range(count):
            store_element(address + i * step, np.int64(0), size)


@helper
def zero_run_past(address, count, step, size, past):
    """As zero_run, but elements that adjoin go `past` the caches; short rows need zero_run alone, which is less."""
    if past and step == size:
        zero_past_caches(address, count * size)
    else:
        zero_run(address, count, step, size)
