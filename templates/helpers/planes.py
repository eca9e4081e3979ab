"""Small planes, and long ones of few rows that are cut: each vector of columns is read down all rows at once.

The tables and tiles of rows of columns would take longer than the reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import cgutils

from compiled import inlined
from few_lanes import _few, _load_short
from memory import _load, _pointer, _prefetch, most, split
from strips import _strips
from target import bytes_ahead

WRITTEN_OUT = (2, 3, 4)  # rows of planes that are read down without a loop: in 0.5 to 1 of the time
_PLANE_LANES = 256  # columns of planes whose results are stored together


class SmallPlanes(NamedTuple):
    """Planes, each of so many rows of adjoining columns."""

    address: Any  # of the first row of the first plane
    count: Any
    step: Any  # bytes from one to the next
    rows: Any
    row_step: Any  # bytes from one to the next
    columns: Any
    ahead: Any  # how many bytes further on is fetched


@inlined
def planes_together(columns, last):
    """How many planes are taken together: one where others of its row have more columns, which `last` tells."""
    return most(_PLANE_LANES // columns, 1) if last == columns else 1


@inlined
def columns_before(item, in_row, columns, last):
    """Columns of the plane before number `item`, of each `in_row` of which the last one has `last`."""
    _, begun = split(item, in_row)
    return columns if begun else last


@inlined
def planes_ahead(rows, row_bytes):
    """How many planes further on those lie that are fetched."""
    return most(bytes_ahead() // (rows * row_bytes), 1)


def _each_strip(
    context: Any,
    builder: Any,
    planes: SmallPlanes,
    vector: Any,
    strip: Callable[[Any, Any, Any, Callable[[Any], Any]], None],
) -> None:
    """strip(plane, column, few, load) for each vector of columns of each plane; load(row) gives its bits.

    `few` tells its lanes, None all; other lanes hold anything.
    """
    i64 = planes.columns.type
    size = i64(vector.element.width // 8)
    with cgutils.for_range(builder, planes.count) as loop:
        plane = loop.index
        start = builder.add(planes.address, builder.mul(plane, planes.step))

        def strip_at(column: Any, count: Any) -> None:
            first = builder.add(start, builder.mul(column, size))
            few = None if count is None else _few(context, builder, vector, count)

            def load(row: Any) -> Any:
                place = builder.add(first, builder.mul(row, planes.row_step))
                _prefetch(builder, _pointer(builder, place, planes.ahead), 1)
                if few is None:
                    return _load(builder, _pointer(builder, place), vector)
                return _load_short(builder, place, few, vector)

            strip(plane, column, few, load)

        _strips(builder, vector.count, planes.columns, strip_at)
