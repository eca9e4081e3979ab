"""Tables of axes of planes, or of elements: what a row-major number is in each of the arrays."""

from __future__ import annotations

from compiled import inlined
from memory import split
from walk import axis_of

# Columns of a table, with a row for each axis, outermost first: its size, and what a step along it adds in the input,
# the output and the other array (bytes), and to an index.
BATCH_SIZE, BATCH_STEP, BATCH_OUT, BATCH_OTHER, BATCH_WEIGHT = 0, 1, 2, 3, 4
BATCH_COLUMNS = 5


@inlined
def offsets_of(table, axes, number):
    """Offsets in input, output and other array, and index, of a row-major number in the first `axes` axes."""
    first = 0
    second = 0
    third = 0
    index = 0
    for d in range(axes - 1, -1, -1):
        axis = axis_of(table, d, BATCH_COLUMNS)
        number, digit = split(number, axis[BATCH_SIZE])
        first += digit * axis[BATCH_STEP]
        second += digit * axis[BATCH_OUT]
        third += digit * axis[BATCH_OTHER]
        index += digit * axis[BATCH_WEIGHT]
    return first, second, third, index
