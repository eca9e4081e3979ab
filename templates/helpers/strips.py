"""Loops over runs of lanes in strips of a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from few_lanes import _few, _has_masks
from loops import _prefer_small_code
from memory import _splat
from vectors import _lesser

WIDEST = 2  # registers of a vector of states, at most


def _strips(builder: Any, lanes: int, columns: Any, strip: Callable[[Any, Any], None]) -> None:
    """Call `strip(column, count)` for each vector of columns; `count` is None but for a last part of one."""
    i64 = columns.type
    whole = builder.and_(columns, i64(-lanes))
    loop = cgutils.for_range_slice(builder, i64(0), whole, i64(lanes), i64)
    with loop as (column, _):
        strip(column, None)
    left = builder.sub(columns, whole)
    with builder.if_then(builder.icmp_signed(">", left, i64(0))):
        strip(whole, left)


def _runs(
    context: Any,
    builder: Any,
    vector: Any,
    planes: Any,
    count: Any,
    n: Any,
    run: Any,
    halves: bool = False,
) -> None:
    """Call `run(vector, plane, number, first, done, few)` for each strip of `count` runs of n lanes in each plane.

    A strip is a vector of lanes, from lane `first` on. The last one of a run overlaps the one before it, by `done`
    lanes. A run shorter than a vector is one strip, whose lanes `few` tells; for others that is None.

    `halves`: where the target has no masks, runs shorter than a vector have strips of half a vector. Small planes take
    0.35 to 0.75 of the time so, but there is more to compile.
    """
    _prefer_small_code(builder)
    i64 = n.type

    def each(strip: Any) -> None:
        with (
            cgutils.for_range(builder, planes) as plane,
            cgutils.for_range(builder, count) as loop,
        ):
            strip(plane.index, loop.index)

    def of_few(vector: Any) -> None:
        few = _few(context, builder, vector, n)
        each(lambda plane, number: run(vector, plane, number, i64(0), i64(0), few))

    def of_whole(vector: Any, otherwise: Any) -> None:
        lanes = i64(vector.count)
        last = builder.sub(n, lanes)

        def strips(plane: Any, number: Any) -> None:
            with cgutils.for_range_slice(builder, i64(0), n, lanes, i64) as (begin, _):
                first = _lesser(builder, begin, last)
                run(vector, plane, number, first, builder.sub(begin, first), None)

        with builder.if_else(builder.icmp_signed(">=", n, lanes)) as (then, other):
            with then:
                each(strips)
            with other:
                otherwise()

    if halves and not _has_masks(context):
        half = ir.VectorType(vector.element, vector.count // 2)
        of_whole(vector, lambda: of_whole(half, lambda: of_few(half)))
    else:
        of_whole(vector, lambda: of_few(vector))


def _after(builder: Any, done: Any, value: Any, old: Any) -> Any:
    """`value`, in the first `done` lanes `old`."""
    numbers = ir.VectorType(ir.IntType(32), value.type.count)
    done = _splat(builder, builder.trunc(done, ir.IntType(32)), numbers)
    new = builder.icmp_signed(">=", ir.Constant(numbers, list(range(numbers.count))), done)
    return builder.select(new, value, old)
