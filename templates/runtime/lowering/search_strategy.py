"""How groups are searched: with lanes along their rows, across their columns, or down small planes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from specops.kernels import search as kernel
from specops.lowering import machine, planes
from specops.lowering.axes import Axis, ceildiv, coalesce, elements, evened, merge, reverse
from specops.lowering.search_visit import Visit

# Of one row of a tile: best keys and row numbers stay in L1. Less makes two of a row of 4000 bytes, read by halves (1.2
# times).
TILE_BYTES = 1 << 12
# The same of input that no cache holds, of which narrow tiles read little of each page: 0.85 to 1 of the time, in the
# caches 1 to 1.5.
UNCACHED_TILE_BYTES = 1 << 14
# Of rows along whole axes that are taken as one, so that the others are in order: 0.1 to 0.7 of the time.
JOINED_BYTES = 1 << 13
# Of outputs that go past the caches only small planes of so many bytes are stored as they are searched: 0.2 to 0.6 of
# the time, larger ones up to 1.9. Of others all are.
PAST_PLANE_BYTES = 1 << 11
CUT_ITEM_BYTES = 4  # of an element of long planes that are cut: 0.75 to 1.1 of the time, of narrower ones 1 to 1.2
SHORT = 10  # elements of a group, and to the next one, with lanes along the groups: 0.1 to 0.9 of the time
# The same of groups of several such runs, fewer where groups do not fill their vectors: 0.02 to 0.6 of the time.
SHORT_RUN = 24
# Of a run of bytes of a dense group whose runs come in order: in longer ones, one that none can beat ends the search
# soon, which saves 0.3 to 0.8 of the time. Of other elements order takes 1.0 to 30 times as long.
BYTE_RUN = 12
NEXT_BYTES = 16  # elements of the axis beside a narrow one that fill enough lanes


class Lanes(Enum):
    """What the lanes of a vector hold."""

    ROWS = 0  # elements of one group
    PLANES = 1  # columns of small planes, or of a part of a long one
    COLUMNS = 2  # columns of tiles


class Preferred(NamedTuple):
    """The reduced axes of a group in the order of preference, the place of the first element, and its index."""

    axes: list[Axis]
    at: int
    first_index: int


class Strategy(NamedTuple):
    """How groups are searched.

    Of columns `tile` together, rows along the axes `beside` taken as one.
    """

    lanes: Lanes
    contiguous: bool
    items: int
    part_bytes: int  # that an item reads; 0 where groups have no parts
    late: bool = False
    preferred: Preferred | None = None  # of dense groups
    transposed: bool = False  # rows so narrow that many are searched together
    tile: int = 1
    beside: tuple[Axis, ...] = ()
    overlap: tuple[int, int] = (0, 0)  # of the last such row with the one before: bytes, index
    last_columns: int = 1  # of the last plane of each row of planes


def tile_of(columns: int, most: int, size: int) -> int:
    """Columns of a tile of at most so many bytes, of elements of `size` bytes: all tiles alike, of whole lines."""
    return machine.whole_lines(evened(columns, most // size), size)


@dataclass(frozen=True)
class Strategies:
    """The strategies of searches for fixed types and shape."""

    element_bytes: int
    out_bytes: int  # of an element of the output
    one_hot: bool  # marks are stored, no indices
    uncached: bool  # input that no cache holds

    def of(self, visit: Visit, transposed: bool, past: bool) -> Strategy:
        """That for one set of strides, for which the visit's axes may be turned, put in another order, and cut off.

        `transposed`: see `transposes`. `past`: marks go past the caches.
        """
        if not transposed and self._lanes_across(visit.kept, visit.reduced):
            return self._small_planes(visit, past) or self._columns(visit)
        return self._rows(visit)._replace(transposed=transposed)

    def transposes(self, visit: Visit) -> bool:
        """Whether groups are rows so narrow that they are transposed: those of indices only if these adjoin."""
        kept, reduced, size = visit.kept, visit.reduced, self.element_bytes
        if not planes.narrow_rows(kept, reduced, size, kernel.NEAR_STEPS[-1]):
            return False
        adjoin = self.one_hot or kept[-1].other_stride == self.out_bytes
        return adjoin and reduced[0].size * size <= kernel.LONGEST_BYTES

    def _small_planes(self, visit: Visit, past: bool) -> Strategy | None:
        """Lanes along the innermost kept axis, where groups are columns of planes small or cut; None elsewhere."""
        kept, reduced, size = visit.kept, visit.reduced, self.element_bytes
        few = bool(reduced) and reduced[0].size <= kernel.BYTE_ROWS
        if not few or kept[-1].other_stride != self.out_bytes:
            return None
        rows = reduced[0].size
        cut = size >= CUT_ITEM_BYTES
        if self.one_hot:
            if [axis.size for axis in coalesce(visit.reduced_out)] != [rows]:
                return None
            if past and rows * kept[-1].size * size > PAST_PLANE_BYTES:
                return None
            cut = not past  # marked as they are searched: 0.4 to 1 of the time
        if cut:
            last = planes.cut_planes(kept, reduced, size)
        else:
            last = kept[-1].size if planes.small_planes(kept, reduced, size) else 0
        if not last:
            return None
        return Strategy(
            lanes=Lanes.PLANES,
            contiguous=True,
            items=visit.groups // kept[-1].size,
            part_bytes=0,
            last_columns=last,
        )

    def _lanes_across(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether lanes lie along the innermost kept axis, not along a reduced one."""
        if not kept or not reduced:
            return bool(kept)
        if planes.lone_columns(kept, reduced, self.element_bytes):
            return False
        if kept[-1].stride < abs(reduced[-1].stride):
            return True
        return self._lanes_across_few(kept, reduced)

    def _lanes_across_few(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether groups, or their runs, are so few elements, and so near, that lanes had better lie along them."""
        size = self.element_bytes
        n, columns = reduced[-1].size, kept[-1].size
        if len(reduced) > 1:
            filled = columns + -columns % (kernel.VECTOR_BYTES // size)
            return n * filled <= SHORT_RUN * columns and kept[-1].stride <= SHORT_RUN * size
        near = kept[-1].stride <= SHORT * size and columns * size >= kernel.VECTOR_BYTES
        # Marks are stored one by one then: 2 to 4 times as long as with their rows, if these adjoin; else 0.2 to 0.5.
        alone = not self.one_hot or abs(reduced[-1].stride) != size
        return alone and n <= SHORT and near

    def _lanes_along_the_next(self, kept: list[Axis]) -> bool:
        """Whether lanes had better lie along the next axis, in whose steps the innermost lies: 0.1 to 0.6 of the time.

        The next adjoins in the output, and its elements lie near to each other in the input.
        """
        if len(kept) < 2 or kept[-2].other_stride != self.out_bytes:
            return False
        long = kept[-2].size * self.element_bytes >= NEXT_BYTES
        return long and kept[-2].stride <= kernel.NEAR_STEPS[-1] * self.element_bytes

    def _columns(self, visit: Visit) -> Strategy:
        """Lanes along the innermost kept axis, or along the next one."""
        size, kept, reduced = self.element_bytes, visit.kept, visit.reduced
        if not self.one_hot and self._lanes_along_the_next(kept):
            kept[-2:] = kept[-1], kept[-2]
        across = kept[-1].size
        contiguous = kept[-1].stride == size
        tile = tile_of(across, UNCACHED_TILE_BYTES if self.uncached else TILE_BYTES, size)
        beside, overlap = self._cut_beside(visit) if contiguous and reduced else ((), (0, 0))
        wide = across * elements(beside)
        if beside:
            tile = wide
        return Strategy(
            lanes=Lanes.COLUMNS,
            contiguous=contiguous,
            items=visit.groups // across * ceildiv(across, tile),
            part_bytes=visit.total * size * min(wide, tile),
            tile=tile,
            beside=beside,
            overlap=overlap,
        )

    def _cut_beside(self, visit: Visit) -> tuple[tuple[Axis, ...], tuple[int, int]]:
        """Cut off the axes along which rows that adjoin are taken as one; which these are, and how such rows overlap.

        Whole axes, until the others are in the order of preference, and a part of the next, which leaves that order.
        """
        size, reduced = self.element_bytes, visit.reduced
        columns = visit.kept[-1].size
        axes: list[Axis] = []

        def adjoins() -> bool:
            return abs(reduced[-1].stride) == columns * size

        while not visit.ordered and adjoins() and reduced[-1].size * columns * size <= JOINED_BYTES:
            if reduced[-1].stride < 0:
                visit.turn(-1)
            axes.insert(0, reduced.pop())
            columns *= axes[0].size
        overlap = 0, 0
        if adjoins():
            n, stride, weight = reduced[-1]
            # So many that joining their winners takes as long as folding all rows: 0.2 to 0.9 of the time of BESIDE.
            worth = math.isqrt((visit.total if visit.ordered else n) // columns)
            taken_as_one = min(worth, ceildiv(n, ceildiv(n * columns, machine.BESIDE)))
            if taken_as_one > 1:
                taken = ceildiv(n, taken_as_one)
                shared = taken * taken_as_one - n
                overlap = shared * stride, shared * weight
                reduced[-1] = Axis(taken, stride * taken_as_one, weight * taken_as_one)
                if stride < 0:  # the one at the lowest address comes first
                    visit.shift += stride * (taken_as_one - 1)
                    visit.base += weight * (taken_as_one - 1)
                    stride, weight = -stride, -weight
                axes.insert(0, Axis(taken_as_one, stride, weight))
        return tuple(axes), overlap

    def _rows(self, visit: Visit) -> Strategy:
        """Lanes along the innermost reduced axis; along all of them where a group is dense, in whatever order."""
        reduced = visit.reduced
        preferred = self._preferred(visit)
        late = False
        contiguous = bool(reduced) and abs(reduced[-1].stride) == self.element_bytes
        if contiguous:
            if reduced[-1].stride < 0:
                visit.turn(-1)
            late = (reduced[-1].other_stride < 0) != visit.last
        return Strategy(
            lanes=Lanes.ROWS,
            contiguous=contiguous,
            items=visit.groups,
            part_bytes=visit.total * self.element_bytes,
            late=late,
            preferred=preferred,
        )

    def _preferred(self, visit: Visit) -> Preferred | None:
        """Of a group whose elements all adjoin, though not in the order of the index; its axes are turned forward."""
        runs = merge((axis.size, abs(axis.stride)) for axis in visit.reduced)
        if len(visit.reduced) < 2 or runs != [(visit.total, self.element_bytes)]:
            return None
        if visit.ordered and self.element_bytes == 1 and visit.reduced[-1].size > BYTE_RUN:
            return None
        for i, axis in enumerate(visit.reduced):
            if axis.stride < 0:
                visit.turn(i)
        axes = sorted(visit.reduced, key=lambda axis: -abs(axis.other_stride))
        at, index = 0, visit.base
        for i, axis in enumerate(axes):
            if (axis.other_stride < 0) != visit.last:
                axes[i], moved, further = reverse(axis)
                at += moved
                index += further
        return Preferred(axes, at, index)
