"""The first lanes of a vector: their mask, and loads and stores that touch no memory behind them."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from llvm import _call, _letters, _width
from memory import _load, _pointer, _splat, _store
from shuffles import _lanes_from
from target import _target_has

PAGE_BYTES = 4096  # memory is readable by whole pages, of that many bytes or a multiple


class _Few(NamedTuple):
    """The first lanes of a vector, all at most."""

    count: Any
    mask: Any  # True in these lanes
    by_mask: bool  # see _has_masks


def _has_masks(context: Any) -> bool:
    """Whether the target loads and stores masked lanes of any width."""
    return _target_has(context, "avx512bw", on_arm=False)


def _few(context: Any, builder: Any, vector: Any, count: Any) -> _Few:
    """The first `count` lanes of vectors of as many lanes as this one."""
    return _Few(count, _mask(builder, vector, count), _has_masks(context))


def _mask(builder: Any, vector: Any, count: Any) -> Any:
    """True in the first `count` lanes."""
    integers = ir.VectorType(ir.IntType(min(_width(vector), 64)), vector.count)
    numbers = ir.Constant(integers, list(range(vector.count)))
    limit = builder.trunc(count, integers.element) if integers.element.width < 64 else count
    return builder.icmp_signed("<", numbers, _splat(builder, limit, integers))


def _masked_load(builder: Any, pointer: Any, mask: Any, vector: Any) -> Any:
    """Load the masked lanes, touch no other memory; the rest is 0."""
    typed = builder.bitcast(pointer, vector.as_pointer())
    name = f"llvm.masked.load.{_letters(vector)}.p0"
    align, rest = ir.IntType(32)(1), ir.Constant(vector, None)
    return _call(builder, name, vector, typed, align, mask, rest)


def _masked_store(builder: Any, value: Any, pointer: Any, mask: Any) -> None:
    """Store the masked lanes, touch no other memory."""
    typed = builder.bitcast(pointer, value.type.as_pointer())
    name = f"llvm.masked.store.{_letters(value.type)}.p0"
    _call(builder, name, ir.VoidType(), value, typed, ir.IntType(32)(1), mask)


def _load_few(builder: Any, pointer: Any, few: _Few | None, vector: Any) -> Any:
    """Load the first lanes, none to all (None: all); the rest is 0.

    With masks no other memory is touched, without them none of other pages.
    """
    if few is None:
        return _load(builder, pointer, vector)
    if few.by_mask:
        return _masked_load(builder, pointer, few.mask, vector)
    address = builder.ptrtoint(pointer, ir.IntType(64))
    # Where there are no lanes, their address may be in no page at all.
    nowhere = builder.ptrtoint(cgutils.alloca_once(builder, vector), address.type)
    some = builder.icmp_signed(">", few.count, few.count.type(0))
    bits = _load_short(builder, builder.select(some, address, nowhere), few, vector)
    return builder.select(few.mask, bits, ir.Constant(vector, None))


def _load_short(builder: Any, address: Any, few: _Few, vector: Any) -> Any:
    """As _load_few, of one lane at least, but the rest is anything: all are read, unless that leaves the page.

    Masked loads take twice as long; without masks for lanes of 8 or 16 bits, LLVM has a branch for each, which takes
    2 to 25 times as long.
    """
    in_page = builder.and_(address, address.type(PAGE_BYTES - 1))
    end = builder.add(in_page, address.type(vector.count * _width(vector) // 8))
    over = builder.sub(end, address.type(PAGE_BYTES))
    value = cgutils.alloca_once(builder, vector)
    leaves = builder.icmp_signed(">", over, over.type(0))
    with builder.if_else(leaves, likely=False) as (then, otherwise):
        with then:
            if few.by_mask:
                bits = _masked_load(builder, _pointer(builder, address), few.mask, vector)
            else:
                bits = _load_at_page_end(builder, address, few, vector, over)
            builder.store(bits, value)
        with otherwise:
            builder.store(_load(builder, _pointer(builder, address), vector), value)
    return builder.load(value)


def _load_at_page_end(builder: Any, address: Any, few: _Few, vector: Any, over: Any) -> Any:
    """The first lanes of a vector that ends `over` bytes behind the page where it begins; see _load_short."""
    i64 = address.type
    buffer = cgutils.alloca_once(builder, ir.ArrayType(vector, 2))
    place = builder.bitcast(buffer, ir.IntType(8).as_pointer())
    # If they end in this page, the vector that ends with it holds them, moved by so many bytes; else the next page may
    # be read as well.
    without = builder.mul(builder.sub(i64(vector.count), few.count), i64(_width(vector) // 8))
    ends = builder.icmp_signed("<=", over, without)
    moved = builder.select(ends, over, i64(0))
    _store(builder, _load(builder, _pointer(builder, builder.sub(address, moved)), vector), place)
    return _load(builder, builder.gep(place, [moved]), vector)


def _store_few(builder: Any, value: Any, pointer: Any, few: _Few | None) -> None:
    """Store the first lanes (None: all), touch no other memory."""
    if few is None:
        _store(builder, value, pointer)
    elif few.by_mask:
        _masked_store(builder, value, pointer, few.mask)
    else:
        _store_by_halves(builder, value, pointer, few.count)


def _store_by_halves(builder: Any, value: Any, pointer: Any, count: Any) -> None:
    """Store the first `count` lanes, all at most: for each binary digit of it a piece of so many."""
    i64, size = count.type, _width(value.type) // 8
    address = builder.ptrtoint(pointer, i64)
    pieces = [value]
    lanes = value.type.count
    while lanes:
        before = builder.and_(count, i64(-2 * lanes))
        place = _pointer(builder, address, builder.mul(before, i64(size)))
        rest = cgutils.alloca_once_value(builder, pieces[0])
        digit = builder.and_(count, i64(lanes))
        with builder.if_then(builder.icmp_unsigned("!=", digit, i64(0))):
            _store(builder, pieces[0], place)
            if len(pieces) == 2:
                builder.store(pieces[1], rest)
        lanes //= 2
        if lanes:
            left = builder.load(rest)
            pieces = [_lanes_from(builder, left, begin, lanes) for begin in (0, lanes)]
