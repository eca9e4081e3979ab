"""Rows transposed in registers: vectors of units, each of another row, become vectors of one element of each."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from memory import VECTOR_BYTES, _load, _pointer

UNIT_BYTES = 16  # of a row that are transposed at once: as much as instructions interleave


def _unit(vector: Any) -> Any:
    """As many elements of one row as are transposed at once."""
    return ir.VectorType(vector.element, vector.count * UNIT_BYTES // VECTOR_BYTES)


def _shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(
        a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
    )


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
    for _ in range(lanes * VECTOR_BYTES // UNIT_BYTES):
        pointers.append(_pointer(builder, address))
        address = builder.add(address, step)
    return [pointers[k::lanes] for k in range(lanes)]


def _load_units(builder: Any, pointers: list[Any], unit: Any) -> Any:
    """A vector of units, one after the other."""
    parts = [_load(builder, pointer, unit) for pointer in pointers]
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffled(builder, a, b, order) for a, b in pairs]
    return parts[0]
