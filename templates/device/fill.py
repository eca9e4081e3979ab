"""Filling memory with one repeated element, exactly the bytes asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from order_key import VECTOR_BYTES, _pointer, _splat, helper, store_integer


@intrinsic
def fill_bytes(_context: Any, address: Any, count: Any, pattern: Any) -> Any:
    """Repeat `pattern` (8 bytes, one element repeated) over `count` contiguous bytes, whole elements, 2 at least.

    By overlapping stores of one width, so there is no tail: a call of memset costs as much as a short row.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, count, pattern = values
        i64 = count.type
        start = _pointer(builder, address)
        vector = ir.VectorType(i64, VECTOR_BYTES // 8)

        def store(value: Any, offset: Any) -> None:
            place = builder.bitcast(builder.gep(start, [offset]), value.type.as_pointer())
            builder.store(value, place, align=1)

        def below(width: int) -> None:
            """Fewer than 2 * `width` bytes: two stores of `width` bytes."""
            if width >= 8:
                value = _splat(builder, pattern, ir.VectorType(i64, width // 8))
            else:
                value = builder.trunc(pattern, ir.IntType(width * 8))
            enough = builder.icmp_signed(">=", count, i64(width))
            with builder.if_else(enough) as (then, otherwise):
                with then:
                    store(value, i64(0))
                    store(value, builder.sub(count, i64(width)))
                with otherwise:
                    if width > 2:
                        below(width // 2)

        long = builder.icmp_signed(">=", count, i64(VECTOR_BYTES))
        with builder.if_else(long) as (then, otherwise):
            with then:
                value = _splat(builder, pattern, vector)
                last = builder.sub(count, i64(VECTOR_BYTES))
                strip = cgutils.for_range_slice(builder, i64(0), last, i64(VECTOR_BYTES), i64)
                with strip as (offset, _):
                    store(value, offset)
                store(value, last)
            with otherwise:
                below(VECTOR_BYTES // 2)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@helper
def store_element(address, value, width):
    """Store the low 2, 4 or 8 bytes of `value`."""
    if width == 4:
        store_integer(np.int32(0), address, value)
    elif width == 8:
        store_integer(np.int64(0), address, value)
    else:
        store_integer(np.int16(0), address, value)


@helper
def fill_run(address, count, step, pattern, width):
    """Fill `count` elements of `width` bytes that are `step` bytes apart."""
    if step == width:
        fill_bytes(address, count * width, pattern)
    elif step == -width:
        fill_bytes(address + (count - 1) * step, count * width, pattern)
    else:
        for i in range(count):
            store_element(address + i * step, pattern, width)
