"""Rows of a few vectors, two at least, which are visited without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from few_lanes import _has_masks
from loops import _cases
from memory import VECTOR_BYTES


def _few_vectors(context: Any, width: int) -> int:
    """The most vectors of a row that is visited without a loop: more take 1.0 to 1.25 of the time of a loop."""
    return 8 if width in (16, 32) and _has_masks(context) else 4


@intrinsic
def few_elements(_context: Any, flip: Any) -> Any:
    """The most elements, of `flip`'s width, of such a row, a constant."""

    def codegen(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        width = flip.bitwidth
        return ir.IntType(64)(_few_vectors(context, width) * VECTOR_BYTES * 8 // width)

    return types.int64(flip), codegen


def _each_of_few(
    context: Any, builder: Any, n: Any, vector: Any, body: Callable[[list[Any]], None]
) -> None:
    """`body(places)`: where each vector of a row of n elements begins; the last may overlap the one before it.

    The row has 2 vectors at least, and few_elements at most.
    """
    i64, lanes = n.type, vector.count
    last = builder.sub(n, i64(lanes))

    def of_vectors(count: Any) -> None:
        if isinstance(count, int):  # the rest of _cases is never met
            body([*(i64(i * lanes) for i in range(count - 1)), last])

    width = VECTOR_BYTES * 8 // lanes
    vectors = builder.udiv(builder.add(n, i64(lanes - 1)), i64(lanes))
    _cases(builder, vectors, tuple(range(2, _few_vectors(context, width) + 1)), of_vectors)
