"""The greatest order keys of many short rows, and their places: vectors have one position of as many rows as lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import NEAR_STEPS
from llvm import _least_integer
from memory import _load, _pointer, _splat, _store, _vector
from narrow import _at_each_position
from order_key import _order_key, _rule
from shuffles import _shuffled
from vectors import _greater

LONGEST_BYTES = 128  # of a row: 0.35 to 0.9 of the time, of longer ones 0.8 to 1.3


def _splat_number(builder: Any, number: Any, vector: Any) -> Any:
    """A small number in every lane."""
    element = vector.element
    return _splat(builder, builder.trunc(number, element) if element.width < 64 else number, vector)


@intrinsic
def search_transposed(
    _context: Any,
    best: Any,
    where: Any,
    address: Any,
    step: Any,
    n: Any,
    ahead: Any,
    late: Any,
    rule: Any,
) -> Any:
    """The best key of each of as many rows as a vector has lanes, and its place, in scratch: see search_rows.

    Rows have n elements and begin `step` bytes apart; for `late` see greatest_place. What lies `ahead` bytes further on
    is fetched.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        best, where, address, step, n, ahead, late = values[:7]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        element = vector.element
        i64 = n.type
        last = builder.select(late, builder.sub(n, i64(1)), i64(0))
        keys = cgutils.alloca_once_value(builder, _least_integer(vector))
        # Where all keys are the least, no other is better.
        places = cgutils.alloca_once_value(builder, _splat_number(builder, last, vector))
        below = _splat(builder, builder.zext(late, element), vector)
        floor = builder.add(_least_integer(vector), below)

        def take(number: Any, bits: Any) -> None:
            new, old = _order_key(builder, bits, rule), builder.load(keys)
            # Keys by a maximum, not by the mask for places: no step waits for the mask of the one before.
            builder.store(_greater(builder, new, old), keys)
            beaten = builder.sub(_greater(builder, old, floor), below)
            better = builder.icmp_signed(">", new, beaten)
            number = _splat_number(builder, number, vector)
            builder.store(builder.select(better, number, builder.load(places)), places)

        # Elements that are met again, in their order, change nothing.
        _at_each_position(builder, address, step, n, vector, ahead, take)
        _store(builder, builder.load(keys), _pointer(builder, best))
        _store(builder, builder.load(places), _pointer(builder, where))
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(i64, i64, i64, i64, i64, i64, flag, rule), codegen


@intrinsic
def mark_near_rows(_context: Any, address: Any, n: Any, places: Any, mark: Any, flip: Any) -> Any:
    """Store rows that adjoin, as many as a vector has lanes, of so few elements n that they are near: `mark` at the
    place that stands at `places`, 0 elsewhere."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, places, mark, flip = values
        vector = _vector(flip.type)
        lanes = range(vector.count)
        found = _load(builder, _pointer(builder, places), vector)
        mark = _splat_number(builder, mark, vector)

        def rows_of(size: int) -> None:
            for first in range(0, size * vector.count, vector.count):
                rows = _shuffled(builder, found, found, [(first + lane) // size for lane in lanes])
                own = ir.Constant(vector, [(first + lane) % size for lane in lanes])
                here = builder.icmp_signed("==", rows, own)
                bits = builder.select(here, mark, ir.Constant(vector, None))
                offset = n.type(first * vector.element.width // 8)
                _store(builder, bits, _pointer(builder, address, offset))

        for size in NEAR_STEPS[1:]:
            with builder.if_then(builder.icmp_signed("==", n, n.type(size))):
                rows_of(size)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, flip), codegen
