"""Small planes: each vector of their columns is read down all rows at once.

The tables and tiles of rows of columns would take longer than the reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import cgutils

from memory import _load, _pointer, _prefetch
from target import _bytes_ahead
from vectors import _load_short, _mask


class _Planes(NamedTuple):
    """Planes of rows of adjoining columns."""

    address: Any  # of the first row of the first plane
    count: Any
    step: Any  # bytes from one to the next
    rows: Any
    row_step: Any  # bytes from one to the next
    columns: Any
    readable: Any  # whole vectors that end here, or before, may be read; 0: none


def _each_strip(
    context: Any,
    builder: Any,
    planes: _Planes,
    vector: Any,
    strip: Callable[[Any, Any, Any, Callable[[Any], Any]], None],
) -> None:
    """strip(plane, column, mask, load) for each vector of columns of each plane; load(row) gives its bits.

    `mask` tells its lanes, None all; other lanes hold anything. Meanwhile planes further on are fetched.
    """
    i64 = planes.columns.type
    size = i64(vector.element.width // 8)
    whole = builder.and_(planes.columns, i64(-vector.count))
    left = builder.sub(planes.columns, whole)
    plane_bytes = builder.mul(builder.mul(planes.rows, planes.columns), size)
    further = builder.udiv(i64(_bytes_ahead(context)), plane_bytes)
    further = builder.select(builder.icmp_signed(">", further, i64(1)), further, i64(1))
    ahead = builder.mul(further, planes.step)
    with cgutils.for_range(builder, planes.count) as loop:
        plane = loop.index
        start = builder.add(planes.address, builder.mul(plane, planes.step))

        def strip_at(column: Any, mask: Any) -> None:
            first = builder.add(start, builder.mul(column, size))

            def load(row: Any) -> Any:
                place = builder.add(first, builder.mul(row, planes.row_step))
                _prefetch(builder, _pointer(builder, place, ahead), 1)
                if mask is None:
                    return _load(builder, _pointer(builder, place), vector)
                return _load_short(builder, place, mask, vector, planes.readable)

            strip(plane, column, mask, load)

        strips = cgutils.for_range_slice(builder, i64(0), whole, i64(vector.count), i64)
        with strips as (column, _):
            strip_at(column, None)
        with builder.if_then(builder.icmp_signed(">", left, i64(0))):
            strip_at(whole, _mask(builder, vector, left))
