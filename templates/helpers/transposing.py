"""Rows transposed in registers: vectors of units, each of another row, become vectors of one element of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from memory import VECTOR_BYTES, _load, _pointer, _store
from shuffles import _lanes_from, _shuffled, _side_by_side
from vectors import _lesser

UNIT_BYTES = 16  # of a row that are transposed at once: as much as instructions interleave


def _unit(vector: Any) -> Any:
    """As many elements of one row as are transposed at once."""
    return ir.VectorType(vector.element, vector.count * UNIT_BYTES // VECTOR_BYTES)


def _transposed(builder: Any, vectors: list[Any]) -> list[Any]:
    """As many vectors as a unit has lanes: lane i of each unit of vector k becomes lane k of that unit of vector i."""
    lanes, unit = vectors[0].type.count, len(vectors)
    starts = range(0, lanes, unit)
    orders = [
        [which + start + i for start in starts for i in half for which in (0, lanes)]
        for half in (range(unit // 2), range(unit // 2, unit))
    ]
    # Interleaving those that lie half of them apart, as often as halves can be made.
    for _ in range(unit.bit_length() - 1):
        pairs = zip(vectors[: unit // 2], vectors[unit // 2 :], strict=True)
        vectors = [_shuffled(builder, a, b, order) for a, b in pairs for order in orders]
    return vectors


def _units(builder: Any, address: Any, step: Any, rows: int, lanes: int) -> list[list[Any]]:
    """Pointers to a unit of each of so many rows, `step` bytes apart: unit u of vector k is of row u * lanes + k."""
    pointers = []
    for _ in range(rows):
        pointers.append(_pointer(builder, address))
        address = builder.add(address, step)
    return _of_vectors(pointers, lanes)


def _of_vectors(pointers: list[Any], lanes: int) -> list[list[Any]]:
    """Pointers to units of rows in turn, as _units orders them."""
    return [pointers[k::lanes] for k in range(lanes)]


def _load_units(builder: Any, pointers: list[Any], unit: Any) -> Any:
    """A vector of units, one after the other."""
    return _side_by_side(builder, [_load(builder, pointer, unit) for pointer in pointers])


def _load_transposed(builder: Any, address: Any, step: Any, rows: int, unit: Any) -> list[Any]:
    """A unit of each of so many rows: vectors of one element of each; see _units."""
    return _load_each(builder, _units(builder, address, step, rows, unit.count), unit)


def _load_each(builder: Any, units: list[list[Any]], unit: Any) -> list[Any]:
    """Vectors of one element of each of these units."""
    return _transposed(builder, [_load_units(builder, pointers, unit) for pointers in units])


def _store_each(builder: Any, vectors: list[Any], units: list[list[Any]]) -> None:
    """The reverse of _load_each."""
    for bits, pointers in zip(_transposed(builder, vectors), units, strict=True):
        for u, pointer in enumerate(pointers):
            _store(builder, _lanes_from(builder, bits, u * len(units), len(units)), pointer)


def _each_unit(
    builder: Any, n: Any, unit: Any, least: int, body: Callable[[Any, Any], None]
) -> None:
    """`body(first, some)` for the units of n elements, and parts of units, of `least` elements, which n has at least.

    Parts are all of fewer elements than a unit has, or a rest that one part holds. They, and the last unit, may overlap
    what comes before.
    """
    i64 = n.type
    position = i64(0)
    for count in sorted({unit.count, least}, reverse=True):
        last = builder.sub(n, i64(count))
        end = n
        if count > least:
            fits = builder.icmp_signed(">=", last, position)
            end = builder.select(fits, builder.sub(n, i64(least)), position)
        some = ir.VectorType(unit.element, count)
        with cgutils.for_range_slice(builder, position, end, i64(count), i64) as (begin, _):
            body(_lesser(builder, begin, last), some)
        position = builder.and_(builder.add(end, i64(count - 1)), i64(-count))  # behind the last
