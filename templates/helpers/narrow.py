"""Narrow rows become columns: vectors have one position of as many rows as lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import NEAR_STEPS, _load_near, _picked
from memory import VECTOR_BYTES, _place, _pointer, _prefetch, _store, _vector
from transposing import _each_unit, _load_transposed, _unit
from vectors import _lesser


def _at_each_position(
    builder: Any,
    address: Any,
    step: Any,
    n: Any,
    vector: Any,
    ahead: Any,
    body: Callable[[Any, Any], None],
) -> None:
    """`body(number, bits)`: what as many rows as a vector has lanes have at each of n positions.

    Rows begin `step` bytes apart, as the host's narrow_rows has them. Positions come in order, but some come again.
    What lies `ahead` bytes further on is fetched.
    """
    i64, unit = n.type, _unit(vector)
    size = i64(vector.element.width // 8)

    def fetch(number: Any) -> None:
        # Lines: rows that adjoin fill as many as each has elements.
        offset = builder.mul(number, i64(VECTOR_BYTES))
        _prefetch(builder, _pointer(builder, address, builder.add(ahead, offset)), 1)

    def by_units(least: int) -> None:
        def of_unit(first: Any, some: Any) -> None:
            numbers = [builder.add(first, i64(i)) for i in range(some.count)]
            for number in numbers:
                fetch(number)
            start = builder.add(address, builder.mul(first, size))
            vectors = _load_transposed(builder, start, step, vector.count, some)
            for number, bits in zip(numbers, vectors, strict=True):
                body(number, bits)

        _each_unit(builder, n, unit, least, of_unit)

    # Rows that are shorter than a unit, and near to each other: 0.5 to 0.8 of the time.
    *steps, furthest = (n for n in NEAR_STEPS if n < unit.count)

    def picked() -> None:
        with cgutils.for_range(builder, n) as loop:
            fetch(loop.index)
            start = builder.add(address, builder.mul(loop.index, size))

            def of_furthest() -> Any:
                return _picked(builder, start, furthest, vector)

            body(
                loop.index, _load_near(builder, start, step, vector, tuple(steps[1:]), of_furthest)
            )

    if not steps:
        by_units(unit.count)
        return
    near = builder.icmp_signed("<=", step, builder.mul(size, i64(furthest)))
    with builder.if_else(near) as (then, otherwise):
        with then:
            picked()
        with otherwise:
            by_units(min(NEAR_STEPS[-1], unit.count // 2))


@intrinsic
def transpose(
    _context: Any,
    target: Any,
    gap: Any,
    address: Any,
    step: Any,
    rows: Any,
    n: Any,
    ahead: Any,
    kind: Any,
) -> Any:
    """Copy rows of n elements of `kind`'s width, as many as a vector has lanes at least, so that they are columns.

    Rows begin `step` bytes apart, and what is at one position of all rows `gap` bytes.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, gap, address, step, rows, n, ahead, _ = values
        vector = _vector(ir.IntType(kind.bitwidth))
        i64 = n.type
        lanes, size = i64(vector.count), i64(kind.bitwidth // 8)
        last = builder.sub(rows, lanes)
        with cgutils.for_range_slice(builder, i64(0), rows, lanes, i64) as (begin, _):
            first = _lesser(builder, begin, last)
            start = builder.add(address, builder.mul(first, step))
            to = builder.add(target, builder.mul(first, size))

            def put(number: Any, bits: Any) -> None:
                _store(builder, bits, _place(builder, to, (number, gap)))

            _at_each_position(builder, start, step, n, vector, ahead, put)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(*(i64,) * 7, kind), codegen
