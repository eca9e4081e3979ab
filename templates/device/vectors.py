"""Vectors of integers: loading a part of one, fetching ahead, the greater of two, the width that LLVM prefers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from order_key import _splat


def _mask(builder: Any, vector: Any, count: Any) -> Any:
    """True in the first `count` lanes."""
    numbers = ir.Constant(vector, list(range(vector.count)))
    limit = count
    if vector.element.width < 64:
        limit = builder.trunc(count, vector.element)
    return builder.icmp_signed("<", numbers, _splat(builder, limit, vector))


def _masked_load(builder: Any, pointer: Any, mask: Any, vector: Any) -> Any:
    """Load the masked lanes, touch no other memory; the rest is 0."""
    name = f"llvm.masked.load.v{vector.count}i{vector.element.width}.p0"
    typed = builder.bitcast(pointer, vector.as_pointer())
    i32 = ir.IntType(32)
    fnty = ir.FunctionType(vector, [typed.type, i32, mask.type, vector])
    function = cgutils.get_or_insert_function(builder.module, fnty, name)
    return builder.call(function, [typed, i32(1), mask, ir.Constant(vector, None)])


def _greater(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed(">", a, b), a, b)


@intrinsic
def prefer_wide_vectors(_context: Any) -> Any:
    """Compile the calling function, kept apart, to 512-bit vectors where there are any: LLVM prefers 256 bits."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        attributes = builder.function.attributes
        attributes.add("noinline")  # else the caller's attributes win
        set.add(
            attributes, '"prefer-vector-width"="512"'
        )  # llvmlite's own method knows no such name
        return context.get_dummy_value()

    return types.void(), codegen
