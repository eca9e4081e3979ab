"""Stores of vectors, or of their first lanes, as elements of a run; past the caches where that is asked for."""

from __future__ import annotations

from typing import Any

from few_lanes import _store_few
from memory import _stream
from shuffles import _lanes_from

PIECE_BYTES = 16  # that go past the caches at once: arrays begin at multiples of no more


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
