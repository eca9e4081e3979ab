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


def _units(builder: Any, address: Any, step: Any, lanes: int) -> list[list[Any]]:
    """Pointers to the units of each of so many vectors: unit u of vector k is of row u * lanes + k.

    Rows are `step` bytes apart.
    """
    pointers = []
    for _ in range(_rows_of(lanes)):
        pointers.append(_pointer(builder, address))
        address = builder.add(address, step)
    return _of_vectors(pointers, lanes)


def _rows_of(lanes: int) -> int:
    """How many rows have units in so many vectors."""
    return lanes * VECTOR_BYTES // UNIT_BYTES


def _of_vectors(pointers: list[Any], lanes: int) -> list[list[Any]]:
    """Pointers to units of rows in turn, as _units orders them."""
    return [pointers[k::lanes] for k in range(lanes)]


def _load_units(builder: Any, pointers: list[Any], unit: Any) -> Any:
    """A vector of units, one after the other."""
    return _side_by_side(builder, [_load(builder, pointer, unit) for pointer in pointers])


def _load_transposed(builder: Any, address: Any, step: Any, unit: Any) -> list[Any]:
    """A unit of each of as many rows as a vector has lanes: vectors of one element of each; see _units."""
    return _load_each(builder, _units(builder, address, step, unit.count), unit)


def _load_each(builder: Any, units: list[list[Any]], unit: Any) -> list[Any]:
    """Vectors of one element of each of these units."""
    return _transposed(builder, [_load_units(builder, pointers, unit) for pointers in units])


def _store_each(builder: Any, vectors: list[Any], units: list[list[Any]]) -> None:
    """The reverse of _load_each."""
    for bits, pointers in zip(_transposed(builder, vectors), units, strict=True):
        for u, pointer in enumerate(pointers):
            _store(builder, _lanes_from(builder, bits, u * len(units), len(units)), pointer)


def _each_unit(builder: Any, n: Any, unit: Any, body: Callable[[Any], None]) -> None:
    """`body(first)` for units of n elements, one at least, of which the last may overlap the one before it."""
    i64, lanes = n.type, n.type(unit.count)
    with cgutils.for_range_slice(builder, i64(0), n, lanes, i64) as (begin, _):
        body(_lesser(builder, begin, builder.sub(n, lanes)))
