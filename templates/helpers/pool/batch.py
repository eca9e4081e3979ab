"""Tables of axes of planes, or of elements: what a row-major number is in each of the arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from compiled import inlined
from memory import split
from walk import _row_finder


class BatchAxis(NamedTuple):
    """A row of such a table, which has one for each axis, outermost first: its size, and what a step along it adds."""

    size: Any
    step: Any  # bytes in the input, the output and the other array
    out_step: Any
    other_step: Any
    weight: Any  # to an index


batch_axis = _row_finder(BatchAxis)
BATCH_BYTES = 8 * len(BatchAxis._fields)  # of a row


@inlined
def places_of(table, axes):
    """How many numbers the first `axes` axes make."""
    product = 1
    for d in range(axes):
        product *= batch_axis(table, d).size
    return product


@inlined
def offsets_of(table, axes, number):
    """Offsets in input, output and other array, and index, of a row-major number in the first `axes` axes."""
    first = 0
    second = 0
    third = 0
    index = 0
    for d in range(axes - 1, -1, -1):
        axis = batch_axis(table, d)
        number, digit = split(number, axis.size)
        first += digit * axis.step
        second += digit * axis.out_step
        third += digit * axis.other_step
        index += digit * axis.weight
    return first, second, third, index
