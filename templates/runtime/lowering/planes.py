"""Groups by their axes: columns of planes that are small, or cut, lone columns, rows in the order of memory."""

from __future__ import annotations

from collections.abc import Sequence

from specops.lowering import machine
from specops.lowering.axes import Axis, ceildiv, elements

PLANE_BYTES = 1 << 14  # of its cache lines at most: larger planes take 1.0 to 1.2 of the time
NARROW_ROWS = 64  # most rows of a small plane whose rows fill less than half a cache line
FEW_ROWS = 10  # most rows of long planes, which are cut: more may want the same places of the first-level cache
CUT_BYTES = 1 << 11  # of a row of what such planes are cut into
# Columns that are read one by one, each down its rows: of rows at most so many bytes apart, and so many of them.
LONE_PITCH = 32
LONE_ROWS = 100
LONE_COLUMNS = 4  # at most, where they adjoin
LONE_BYTES = 16  # of their elements, at most, where they do not
CORE_CACHE_BYTES = 1 << 22  # input that no longer stays in a core's own cache
RUN_BYTES = 1 << 10  # least part of a group that is split for the order of memory


def small_planes(kept: Sequence[Axis], reduced: Sequence[Axis], element_bytes: int) -> bool:
    """Whether groups are the columns of planes so small that each vector of columns is read down all rows at once.

    False for many rows of few columns: several such rows are faster taken as one. The last axes are the innermost ones.

    >>> small_planes([Axis(64, 784, 56), Axis(14, 4, 4)], [Axis(14, 56, 0)], 4)
    True
    >>> small_planes([Axis(64, 4096, 16), Axis(4, 4, 4)], [Axis(256, 16, 0)], 4)
    False
    """
    if len(kept) < 2 or len(reduced) != 1 or kept[-1].stride != element_bytes:
        return False
    columns, rows = kept[-1].size, reduced[0].size
    wide = 2 * columns * element_bytes >= machine.CACHE_LINE
    row_bytes = ceildiv(columns * element_bytes, machine.CACHE_LINE) * machine.CACHE_LINE
    return rows * row_bytes <= PLANE_BYTES and (wide or rows <= NARROW_ROWS)


def cut_planes(kept: list[Axis], reduced: Sequence[Axis], element_bytes: int) -> int:
    """Cut long planes of few rows, in place; returns the columns of the last piece, of small planes all, of others 0.

    >>> kept = [Axis(8, 12000, 12000), Axis(1000, 4, 4)]
    >>> cut_planes(kept, [Axis(3, 4000, 4000)], 4), kept[1:]
    (488, [Axis(size=2, stride=2048, other_stride=2048), Axis(size=512, stride=4, other_stride=4)])
    """
    columns, step, other = kept[-1]
    few = len(reduced) == 1 and reduced[0].size <= FEW_ROWS and step == element_bytes
    if few and columns * element_bytes > CUT_BYTES:
        each = ceildiv(columns, ceildiv(columns * element_bytes, CUT_BYTES))
        each = machine.whole_lines(each, element_bytes)  # pieces nearly alike
        number = ceildiv(columns, each)
        kept[-1:] = [Axis(number, step * each, other * each), Axis(each, step, other)]
        return columns - (number - 1) * each
    return columns if small_planes(kept, reduced, element_bytes) else 0


def narrow_rows(
    kept: Sequence[Axis], reduced: Sequence[Axis], element_bytes: int, near: int
) -> bool:
    """Whether groups are rows of adjoining elements that can be transposed, and enough of them to fill vectors.

    Rows of fewer than `near` elements must lie that near to each other, whole elements apart: they are picked out of
    vectors.

    >>> narrow_rows([Axis(16, 12, 4)], [Axis(3, 4, 0)], 4, 4), narrow_rows([Axis(15, 12, 4)], [Axis(3, 4, 0)], 4, 4)
    (True, False)
    >>> narrow_rows([Axis(16, 20, 4)], [Axis(3, 4, 0)], 4, 4), narrow_rows([Axis(16, 20, 4)], [Axis(4, 4, 0)], 4, 4)
    (False, True)
    >>> narrow_rows([Axis(16, 13, 4)], [Axis(3, 4, 0)], 4, 4), narrow_rows([Axis(16, 17, 4)], [Axis(4, 4, 0)], 4, 4)
    (False, True)
    """
    if not kept or len(reduced) != 1:
        return False
    (rows, pitch, _), (n, step, _) = kept[-1], reduced[0]
    many = rows * element_bytes >= machine.CACHE_LINE
    apart = abs(step) == element_bytes and n * element_bytes <= pitch
    picked = pitch <= near * element_bytes and pitch % element_bytes == 0
    return many and apart and (n >= near or picked)


def lone_columns(kept: Sequence[Axis], reduced: Sequence[Axis], element_bytes: int) -> bool:
    """Whether columns, with gaps between them or their rows, are so few that lanes had better lie down each of them.

    Groups of many rows take 0.02 to 0.9 of the time so. The last axes are the innermost ones.

    >>> lone_columns([Axis(3, 1, 1)], [Axis(1000, 4, 0)], 1), lone_columns([Axis(2, 2, 1)], [Axis(1000, 4, 0)], 1)
    (True, True)
    >>> lone_columns([Axis(4, 1, 1)], [Axis(1000, 4, 0)], 1), lone_columns([Axis(2, 4, 4)], [Axis(1000, 64, 0)], 4)
    (False, False)
    """
    if not kept or not reduced:
        return False
    (columns, step, _), (rows, pitch, _) = kept[-1], reduced[-1]
    if rows < LONE_ROWS or not 0 < abs(pitch) <= LONE_PITCH:
        return False
    if step == element_bytes:
        return columns <= LONE_COLUMNS and abs(pitch) != columns * element_bytes
    return columns * element_bytes <= LONE_BYTES


def parts_in_order(
    kept: Sequence[Axis], reduced: Sequence[Axis], element_bytes: int, most: int
) -> int:
    """Into how many parts groups of rows are split, at most, so that memory is walked in order; 1 if that does not pay.

    Where groups lie within the outermost reduced axis, it is walked so by this axis's parts: 0.55 to 0.8 of the time.

    >>> rows = [Axis(1 << 10, 1 << 10, 4)]
    >>> parts_in_order(rows, [Axis(8, 1 << 20, 0), Axis(256, 4, 0)], 4, 100)
    8
    >>> parts_in_order(rows, [Axis(256, 4, 0)], 4, 100)
    1
    """
    outermost = reduced[0]
    if not kept or kept[-1].stride >= abs(outermost.stride):
        return 1
    total = elements(reduced)
    beyond_core = elements(kept) * total * element_bytes >= CORE_CACHE_BYTES
    if not beyond_core or total * element_bytes // outermost.size < RUN_BYTES:
        return 1
    return max(1, min(outermost.size, most))
