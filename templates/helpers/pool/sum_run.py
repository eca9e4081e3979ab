"""Runs of adjoining elements: their sums in float64, with the rounding errors of all additions; their magnitudes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from exact import _two_sum
from few_lanes import _few, _load_few
from llvm import _const, _on_lanes
from memory import VECTOR_BYTES, _load, _pointer, _splat, _store, _vector
from powers import _raised
from sums import _float_of
from vectors import _greater, _greatest_lane

RUN_REGISTERS = 4  # additions that do not wait for each other
RUN_SUMS = RUN_REGISTERS * VECTOR_BYTES // 8
RUN_BYTES = 2 * 8 * RUN_SUMS  # of the sums, and of their rounding errors behind them


def _over(
    context: Any, builder: Any, address: Any, n: Any, lanes: int, bits: Any, visit: Any
) -> None:
    """`visit(values, mask)` for the bits of n adjoining elements, so many at a time; the last are masked."""
    narrow = ir.VectorType(bits, lanes)
    start = _pointer(builder, address)
    size = n.type(bits.width // 8)
    whole = builder.and_(n, n.type(-lanes))
    with cgutils.for_range_slice(builder, n.type(0), whole, n.type(lanes), n.type) as (first, _):
        visit(_load(builder, builder.gep(start, [builder.mul(first, size)]), narrow), None)
    left = builder.sub(n, whole)
    with builder.if_then(builder.icmp_signed(">", left, n.type(0))):
        few = _few(context, builder, narrow, left)
        place = builder.gep(start, [builder.mul(whole, size)])
        visit(_load_few(builder, place, few, narrow), few.mask)


@intrinsic
def add_run(_context: Any, sums: Any, address: Any, n: Any, top: Any, power: Any, kind: Any) -> Any:
    """Add n adjoining elements, or of (|x| / top)**power where that is not 0, to RUN_SUMS sums at `sums`."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        sums, address, n, top, power, _ = values
        vector = _vector(ir.DoubleType(), RUN_REGISTERS)
        places = [_pointer(builder, sums, n.type(i * 8 * RUN_SUMS)) for i in range(2)]
        state = [cgutils.alloca_once_value(builder, _load(builder, p, vector)) for p in places]
        top = _splat(builder, top, vector)

        def adder(term: Any) -> Any:
            def add(bits: Any, mask: Any) -> None:
                value = term(_float_of(context, builder, bits, kind.state.dtype, vector.element))
                if mask is not None:
                    value = builder.select(mask, value, ir.Constant(vector, None))
                total, lost = (builder.load(s) for s in state)
                total, more = _two_sum(builder, total, value)
                builder.store(total, state[0])
                builder.store(builder.fadd(lost, more), state[1])

            return add

        def powered(value: Any) -> Any:
            return _raised(builder, builder.fdiv(_on_lanes(builder, "fabs", value), top), power)

        bits = kind.state.element
        with builder.if_else(builder.icmp_signed("==", power, power.type(0))) as (then, otherwise):
            with then:
                _over(context, builder, address, n, vector.count, bits, adder(lambda value: value))
            with otherwise:
                _over(context, builder, address, n, vector.count, bits, adder(powered))
        for place, variable in zip(places, state, strict=True):
            _store(builder, builder.load(variable), place)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, types.float64, i64, kind), codegen


@intrinsic
def greatest_magnitude(_context: Any, address: Any, n: Any, kind: Any) -> Any:
    """The greatest |x| of n adjoining elements, NaN if one is."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, _ = values
        bits = kind.state.element
        lanes = VECTOR_BYTES * 8 // bits.width
        vector = ir.VectorType(bits, lanes)
        best = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        magnitude = _const(vector, 2 ** (bits.width - 1) - 1)

        def greater(value: Any, _mask: Any) -> None:
            # As integers, magnitudes have the order of floats, and those of NaN are the greatest.
            value, old = builder.and_(value, magnitude), builder.load(best)
            builder.store(_greater(builder, value, old), best)

        _over(context, builder, address, n, lanes, bits, greater)
        found = _greatest_lane(builder, builder.load(best))
        return _float_of(context, builder, found, kind.state.dtype, ir.DoubleType())

    return types.float64(types.int64, types.int64, kind), codegen
