"""Loops over runs of lanes in strips of a vector, and what is stored of them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from few_lanes import _few, _has_masks, _store_few
from memory import VECTOR_BYTES, _lanes_from, _pointer, _splat, _stream
from rank import _width

WIDEST = 2  # registers of a vector of ranks, at most
PIECE_BYTES = 16  # that go past the caches at once: arrays begin at multiples of no more


def _place(builder: Any, address: Any, *steps: tuple[Any, Any]) -> Any:
    """A pointer at `address`, so many steps of so many bytes further."""
    for number, step in steps:
        address = builder.add(address, builder.mul(number, step))
    return _pointer(builder, address)


def _vector(element: Any, registers: int = 1) -> Any:
    return ir.VectorType(element, registers * VECTOR_BYTES * 8 // _width(element))


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
    """`run(vector, plane, number, first, done, few)` for `count` runs of each plane, of n lanes, in strips of a vector.

    The last strip overlaps: its first `done` lanes were those of the strip before. `few` is None but where there is no
    whole one. `halves`: without masks, runs shorter than a vector have strips of half a one, which takes 0.35 to 0.75
    of the time of small planes; not where there would be much more to compile.
    """
    builder.function.attributes.add("optsize")  # else LLVM unrolls what _by_count leaves
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
                first = builder.select(builder.icmp_signed("<", begin, last), begin, last)
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


def _cases(builder: Any, value: Any, cases: tuple[int, ...], body: Any) -> None:
    """`body(n)` for the one of the cases, an int, that the value is, else for the value itself."""
    rest = builder.append_basic_block("rest")
    end = builder.append_basic_block("end")
    switch = builder.switch(value, rest)
    for n in cases:
        block = builder.append_basic_block(f"of_{n}")
        switch.add_case(value.type(n), block)
        builder.position_at_end(block)
        body(n)
        builder.branch(end)
    builder.position_at_end(rest)
    body(value)
    builder.branch(end)
    builder.position_at_end(end)


def _by_count(builder: Any, count: Any, body: Any) -> None:
    """`body(n)` for a number of rounds: an int up to 3, whose rounds the body writes out, or `count` itself.

    Windows of 3 x 3 over small planes take 0.8 to 0.9 of the time.
    """
    _cases(builder, count, (1, 2, 3), body)


def _rounds(builder: Any, count: Any, body: Any) -> None:
    """`body(i)` for i from 0 on, `count` times; written out where that is an int."""
    if isinstance(count, int):
        for i in range(count):
            body(ir.IntType(64)(i))
    else:
        with cgutils.for_range(builder, count) as loop:
            body(loop.index)


def _after(builder: Any, done: Any, value: Any, old: Any) -> Any:
    """`value`, in the first `done` lanes `old`."""
    numbers = ir.VectorType(ir.IntType(32), value.type.count)
    done = _splat(builder, builder.trunc(done, ir.IntType(32)), numbers)
    new = builder.icmp_signed(">=", ir.Constant(numbers, list(range(numbers.count))), done)
    return builder.select(new, value, old)


def _store_lanes(builder: Any, value: Any, start: Any, first: Any, few: Any) -> None:
    """Store a vector, or a few of its lanes, as the elements from number `first` on."""
    offset = builder.mul(first, first.type(value.type.element.width // 8))
    pointer = builder.gep(start, [offset])
    _store_few(builder, value, pointer, few)


def _store_past(builder: Any, value: Any, start: Any, first: Any, few: Any, past: Any) -> None:
    """As _store_lanes; whole vectors, where `past` is True, past the caches by pieces, if these are aligned."""
    size = value.type.element.width // 8
    lanes = PIECE_BYTES // size
    if few is not None or value.type.count < lanes:
        _store_lanes(builder, value, start, first, few)
        return
    i64 = first.type
    place = builder.gep(start, [builder.mul(first, i64(size))])
    bits = builder.and_(builder.ptrtoint(place, i64), i64(PIECE_BYTES - 1))
    past = builder.and_(past, builder.icmp_unsigned("==", bits, i64(0)))
    with builder.if_else(past) as (then, otherwise):
        with then:
            for lane in range(0, value.type.count, lanes):
                piece = builder.gep(place, [i64(size * lane)])
                _stream(builder, _lanes_from(builder, value, lane, lanes), piece, PIECE_BYTES)
        with otherwise:
            _store_lanes(builder, value, start, first, None)
