"""What windows give to those of their elements that they found, lane by lane, of planes side by side."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from few_lanes import _few, _load_few, _store_few
from llvm import _width
from memory import _load, _pointer, _splat, _store
from strips import _strips
from sum_line import _as_sum
from sums import _float_of

GIVEN_LANES = 16  # taken together
PLACE_BYTES = 16  # of a place in a table: its position, and its offset in the target


def _giving(disjoint: bool) -> Any:
    """An intrinsic that gives each of so many lanes of a window's gradient to the place, of `count`, that it found.

    It is added to the sum there, or, of `disjoint` windows, put there, and 0 to the others.
    """

    @intrinsic
    def give(
        _context: Any,
        target: Any,
        table: Any,
        count: Any,
        found: Any,
        given: Any,
        lanes: Any,
        kind: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            target, table, count, found, given, lanes, *_ = values
            i64 = lanes.type
            bits = kind.state.element
            element = bits if disjoint else kind.state.type
            vector, elements, positions = (
                ir.VectorType(t, GIVEN_LANES) for t in (bits, element, i64)
            )

            def at(address: Any, number: Any, bytes_each: int) -> Any:
                return _pointer(builder, address, builder.mul(number, i64(bytes_each)))

            def strip(lane: Any, left: Any) -> None:
                few = None if left is None else _few(context, builder, vector, left)
                value = _load_few(builder, at(given, lane, bits.width // 8), few, vector)
                if disjoint:
                    value = _as_sum(builder, value, kind.state)
                else:
                    value = _float_of(context, builder, value, kind.state.dtype, element)
                wanted = _load(builder, at(found, lane, 8), positions)
                lanes_at = builder.add(target, builder.mul(lane, i64(_width(element) // 8)))
                with cgutils.for_range(builder, count) as loop:
                    entry = at(table, loop.index, PLACE_BYTES)
                    position = _load(builder, entry, i64)
                    offset = _load(builder, builder.gep(entry, [i64(8)]), i64)
                    place = _pointer(builder, lanes_at, offset)
                    hit = builder.icmp_signed("==", wanted, _splat(builder, position, positions))
                    if disjoint:
                        new = builder.select(hit, value, ir.Constant(elements, None))
                        _store_few(builder, new, place, few)
                    else:  # behind the last lanes 0 is added to sums of other places at most
                        old = _load(builder, place, elements)
                        _store(builder, builder.select(hit, builder.fadd(old, value), old), place)

            _strips(builder, GIVEN_LANES, lanes, strip)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6, kind), codegen

    return give


add_lanes = _giving(disjoint=False)
put_lanes = _giving(disjoint=True)
