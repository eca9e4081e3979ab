"""Runs of elements that change places."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from few_lanes import _few, _has_masks, _masked_load, _masked_store
from memory import VECTOR_BYTES, _load, _pointer, _store
from shuffles import _shuffled


@intrinsic
def swap_adjoining(
    _context: Any, one: Any, other: Any, other_step: Any, count: Any, lane: Any
) -> Any:
    """Swap the first of `count` adjoining elements with those at `other`, by vectors; returns how many are.

    These adjoin as well, in the same direction or in the opposite one, or none are swapped.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        one, other, other_step, count, _ = values
        i64 = count.type
        size = lane.bitwidth // 8
        vector = ir.VectorType(ir.IntType(lane.bitwidth), VECTOR_BYTES // size)
        lanes = vector.count
        whole = builder.and_(count, i64(-lanes))
        swapped = cgutils.alloca_once_value(builder, i64(0))

        def turned(value: Any) -> Any:
            return _shuffled(builder, value, value, [*reversed(range(lanes))])

        def place(start: Any, number: Any) -> Any:
            return _pointer(builder, start, builder.mul(number, i64(size)))

        def strip(first: Any, backward: bool) -> None:
            at, to = place(one, first), place(other, first)
            if backward:
                to = place(other, builder.sub(i64(1 - lanes), first))
            a, b = _load(builder, at, vector), _load(builder, to, vector)
            _store(builder, turned(b) if backward else b, at)
            _store(builder, turned(a) if backward else a, to)

        def rest_backward() -> None:
            left = builder.sub(count, whole)
            few = _few(context, builder, vector, left)
            at, to = place(one, whole), place(other, builder.sub(i64(1), count))
            a, b = (_masked_load(builder, p, few.mask, vector) for p in (at, to))
            # Turned, they are in the last lanes.
            before = builder.mul(builder.sub(left, i64(lanes)), i64(size))
            for value, target in ((b, at), (a, to)):
                target_before = builder.gep(target, [before])
                _masked_store(builder, turned(value), target_before, turned(few.mask))

        for step in (size, -size):
            with builder.if_then(builder.icmp_signed("==", other_step, i64(step))):
                loop = cgutils.for_range_slice(builder, i64(0), whole, i64(lanes), i64)
                with loop as (first, _):
                    strip(first, step < 0)
                builder.store(whole, swapped)
                # Not forward: such runs may adjoin, as pixels do, and the next load would wait for these stores.
                if step < 0 and _has_masks(context):
                    rest_backward()
                    builder.store(count, swapped)
        return builder.load(swapped)

    i64 = types.int64
    return i64(i64, i64, i64, i64, lane), codegen
