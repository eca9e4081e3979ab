"""The host's side of the arg_reduce kernel: order keys by data type, a strategy by strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specops import geometry, launch
from specops.geometry import Axis, ceildiv, evened
from specops.kernels import arg_reduce as kernel
from specops.lowering import machine
from specops.lowering.keys import keys_of
from specops.lowering.plans import Plans
from specops.tensor import Tensor

Array = npt.NDArray[Any]

_SHORT = launch.chunks_of(kernel.short_rows)
_ROWS = launch.chunks_of(kernel.rows)
_COLUMNS = launch.chunks_of(kernel.columns)
_PLANES = launch.chunks_of(kernel.planes)
_COMBINE = launch.Chunk(kernel.combine)
_ZERO = launch.Chunk(kernel.zero)
_MARKED = launch.chunks_of(kernel.marked)
_NO_AXES = np.empty((0, 3), np.int64)


# Of one row of a tile: best keys and row numbers stay in L1. Less makes two of a row of 4000 bytes, read by halves (1.2
# times).
TILE_BYTES = 1 << 12
# The same of input of machine.FAR_BYTES, whose rows lie FAR_STEP apart: narrow tiles read little of each page (0.7 to
# 0.9 of the time).
FAR_TILE_BYTES = 1 << 14
FAR_STEP = 1 << 12
# Of rows along whole axes that are taken as one, so that the others are in order: 0.1 to 0.7 of the time.
JOINED_BYTES = 1 << 13
PLACES_BYTES = 1 << 19  # of indices that are found before marks are stored
PART_ITEMS = 16  # enough for the threads to share: joining parts costs (1.3 times for bytes)
# Of rows, and of columns of which less than SHORT_ROW_BYTES adjoin: parts that are compact take 0.5 to 0.8 of the time.
MANY_PART_ITEMS = 64
SHORT_ROW_BYTES = 1 << 9
# Rows of so many bytes that lie apart in an output: marks after zeros take 0.5 to 0.9 of the time.
ZEROS_FIRST_BYTES = range(1 << 7, 1 << 10)
PAST_ROW_BYTES = 1 << 13  # of a row past the caches that is stored with its mark: see _marks
# Of outputs that go past the caches only small planes of so many bytes are stored as they are searched: 0.2 to 0.6 of
# the time, larger ones up to 1.9. Of others all are.
PAST_PLANE_BYTES = 1 << 11
CUT_ITEM_BYTES = 4  # of an element of long planes that are cut: 0.75 to 1.1 of the time, of narrower ones 1 to 1.2
# Of long planes that are cut and marked as they are searched, at most: 0.4 to 1 of the time.
CUT_MARKED_ROWS = 4
SHORT = 10  # elements of a group, and to the next one, with lanes along the groups: 0.1 to 0.9 of the time
# The same of groups of several such runs, fewer where groups do not fill their vectors: 0.02 to 0.6 of the time.
SHORT_RUN = 24
NEXT_BYTES = 16  # elements of the axis beside a narrow one that fill enough lanes


def _spread(out: Array, source: Array) -> None:
    """Copy the computed elements to those that repeat them, in blocks: NumPy copies a source that overlaps."""
    if out.nbytes <= 1 << 18:
        out[...] = source
        return
    axis = out.shape.index(max(out.shape))
    for half in (slice(0, out.shape[axis] // 2), slice(out.shape[axis] // 2, None)):
        block = (slice(None),) * axis + (half,)
        _spread(out[block], source if source.shape[axis] == 1 else source[block])


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    run: launch.Chunk
    walk: npt.NDArray[np.int64]
    walk_at: int  # its address
    join: npt.NDArray[np.int64]  # the walk that joins parts
    join_at: int
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    items: int
    groups: int
    parts: int
    zeros: _Stores | None  # beforehand, of a whole output
    rows: _Stores | None  # of marks, when all places are found: these are what the search stores
    repeated: tuple[slice, ...] | None  # kept axes of stride 0 cut to one element


class _Stores(NamedTuple):
    """What is stored apart from the search."""

    walk: npt.NDArray[np.int64]
    walk_at: int  # its address
    items: int


@dataclass
class _Visit:
    """The elements in the order in which they are visited, for one set of strides."""

    kept: list[Axis]
    marked: list[Axis]  # the reduced axes of an output that has them
    reduced: list[Axis]
    shift: int  # as of _Plan
    out_shift: int
    base: int  # index of the first element visited
    repeated: tuple[slice, ...] | None  # as of _Plan

    @property
    def groups(self) -> int:
        return geometry.elements(self.kept)

    @property
    def total(self) -> int:
        """Steps along the reduced axes."""
        return geometry.elements(self.reduced)

    @property
    def ordered(self) -> bool:
        """Whether reduced elements come in the order of preference."""
        weights = [abs(axis.other_stride) for axis in self.reduced]
        return weights == sorted(weights, reverse=True)

    def turn(self, i: int) -> None:
        """Walk a reduced axis from its other end."""
        self.reduced[i], moved, index = geometry.reverse(self.reduced[i])
        self.shift += moved
        self.base += index


class _Preferred(NamedTuple):
    """The reduced axes of a group in the order of preference, the place of the first element, and its index."""

    axes: list[Axis]
    at: int
    first: int


class _Way(NamedTuple):
    """How groups are searched: by rows, by small planes, or by columns.

    Of columns `tile` together, rows along the axes `beside` taken as one.
    """

    search: Callable[..., launch.Chunk]
    contiguous: bool
    items: int
    part_bytes: int  # that an item reads; 0 where groups have no parts
    late: bool = False
    preferred: _Preferred | None = None  # of dense groups
    tile: int = 1
    row_bytes: int = 0  # of columns, adjoining ones that an item reads
    beside: tuple[Axis, ...] = ()
    overlap: tuple[int, int] = (0, 0)  # of the last such row with the one before: bytes, index
    last_columns: int = 1  # of the last plane of each row of planes


class _Marks(NamedTuple):
    """Where marks go in an output, and how its other elements become 0."""

    marks: npt.NDArray[np.int64]  # the table of axes
    zeros: npt.NDArray[np.int64]  # that of a group's elements, stored with the search
    zero_rows: int = 1
    past: bool = False  # zeros, and marks among them, go past the caches; or indices
    stored: int = 0  # setting STORED
    after: bool = False  # rows of marks are stored when all places are found
    before: _Stores | None = None  # all 0


class Search:
    """Where the greatest (or least) element of each reduced group stands, for fixed types and shape.

    Args:
        better: "greater" or "less".
        tie: which of several equal elements wins, "first" or "last".
        nan: "ignored" (loses to every number; in a group of nothing but NaN the first wins) or "propagates" (beats
            every number).
        axes: the reduced axes, in any order, unique; may be empty.
        input, output: the tensors.
        mark: bits that are stored at the element's place in an output of the input's shape and type, which is 0
            elsewhere; None stores the element's index within its group, in an output of a 4- or 8-byte integer type.
    """

    def __init__(
        self,
        *,
        better: str,
        tie: str,
        nan: str,
        axes: Sequence[int],
        input: Tensor,
        output: Tensor,
        mark: int | None = None,
    ) -> None:
        self._sizes = input.sizes
        self.axes = frozenset(axes)
        self._last = tie == "last"
        width, least, greatest, flip, infinity = keys_of(input.dtype)
        self._item_size = width // 8
        self._output = output
        self._out_size = output.numpy_dtype.itemsize
        self._mark = mark
        nan_key = greatest if nan == "propagates" else least
        self._kind = (width, infinity is not None)
        self._rule = (flip if better == "greater" else ~flip, nan_key, infinity or 0)
        # Of booleans True is the greatest, and False, whose key is that of any type's least element, the least.
        self._ceiling = least + 1 if (input.dtype, better) == ("BOOL", "greater") else greatest
        self._blanks = infinity is not None and nan == "ignored"
        input_bytes = math.prod(self._sizes) * self._item_size
        self._moved = input_bytes + math.prod(output.sizes) * self._out_size
        self._large = input_bytes >= machine.LARGE_BYTES
        self._far = input_bytes >= machine.FAR_BYTES
        self._uncached = input_bytes > machine.UNCACHED_BYTES
        self._empty = input_bytes == 0
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Write the result for `x` to `out`; shapes and types as declared, any strides."""
        if self._empty:
            return
        plan = self._plans[x.strides, out.strides]
        source = launch.address(x) + plan.shift
        target = launch.address(out) + plan.out_shift
        zeros, rows, large = plan.zeros, plan.rows, self._large
        if zeros is not None:
            _ZERO(zeros.walk_at, 0, target, 0, zeros.items, large=large)
        if rows is not None:
            places = np.empty(plan.groups * self._item_size, np.uint8)
            at, store = launch.address(places), _MARKED(self._kind[0])
            plan.run(plan.walk_at, source, at, 0, plan.items, large=large)
            store(rows.walk_at, at, target, 0, rows.items, large=large)
        elif plan.parts == 1:
            plan.run(plan.walk_at, source, target, 0, plan.items, large=large)
        else:
            number = plan.groups * plan.parts
            pairs = np.empty(2 * number, np.int64)
            partial = launch.address(pairs)
            plan.run(plan.walk_at, source, target, partial, plan.items, large=large)
            many = number >= launch.MANY_PARTS
            _COMBINE(plan.join_at, 0, target, partial, plan.groups, large=many)
        if plan.repeated is not None:
            _spread(out, out[plan.repeated])

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides."""
        searches = _SHORT, _ROWS, _COLUMNS, _PLANES
        if self._mark is None:
            return [*(search(*self._kind, False) for search in searches), _COMBINE]
        one_hot = [search(*self._kind, True) for search in searches]
        # Rows alone are searched for places or pairs before any mark is stored.
        others = [search(*self._kind, False) for search in (_SHORT, _ROWS)]
        return [*one_hot, *others, _COMBINE, _ZERO, _MARKED(self._kind[0])]

    def _plan(self, strides: tuple[int, ...], out_strides: tuple[int, ...]) -> _Plan:
        visit = self._visit(strides, out_strides)
        kept, reduced = visit.kept, visit.reduced
        past = self._mark is not None and geometry.outgrows(
            machine.PAST_BYTES, self._sizes, strides, out_strides, self._item_size
        )
        if self._lanes_across(kept, reduced):
            way = self._small_planes(visit, past) or self._columns(visit)
        else:
            way = self._rows(visit)
        if self._mark is None and way.search is _PLANES:
            # Of few rows, indices are much of what is moved: past the caches they take 0.7 to 0.9 of the time.
            past = geometry.goes_past(self._output, out_strides, self._moved)
        parts, split = self._parts(visit, way)
        marks = self._marks(visit, way, parts, split, past)
        rows = None
        if marks.after:
            kept, rows = self._rows_of_marks(kept, visit.marked, past)
        settings = self._settings(visit, way, marks, parts, split)
        preferred = geometry.table(way.preferred.axes) if way.preferred else _NO_AXES
        beside = geometry.table(way.beside) if way.beside else _NO_AXES
        tables = geometry.table(kept), geometry.table(reduced), marks.marks, marks.zeros
        walk = join = self._walk(settings, *tables, preferred, beside)
        if split:
            walk = self._walk_of_parts(settings, kept, reduced)
        search = _SHORT if self._is_short(visit, way, marks, parts, split) else way.search
        one_hot = self._mark is not None and not marks.after and not split
        return _Plan(
            search(*self._kind, one_hot),
            walk,
            launch.address(walk),
            join,
            launch.address(join),
            visit.shift,
            visit.out_shift,
            way.items * parts,
            visit.groups,
            parts,
            marks.before,
            rows,
            visit.repeated,
        )

    def _settings(
        self, visit: _Visit, way: _Way, marks: _Marks, parts: int, split: bool
    ) -> dict[int, int]:
        """Of the walk that searches groups, or joins what their parts gave."""
        preferred = way.preferred or _Preferred([], 0, 0)
        return {
            kernel.CONTIGUOUS: way.contiguous,
            kernel.LAST: self._last,
            kernel.LATE: way.late,
            kernel.PREFERRED_AT: preferred.at,
            kernel.PREFERRED_INDEX: preferred.first,
            kernel.ORDERED: visit.ordered,
            kernel.BASE: visit.base,
            kernel.TILE: way.tile,
            kernel.PARTS: parts,
            kernel.PART_WEIGHT: visit.reduced[0].other_stride if split else 0,
            kernel.WIDTH: self._out_size,
            kernel.BLANKS: self._blanks,
            kernel.MARK: self._mark or 0,
            kernel.OVERLAP: way.overlap[0],
            kernel.OVERLAP_INDEX: way.overlap[1],
            kernel.ZERO_ROWS: marks.zero_rows,
            kernel.PAST: marks.past,
            kernel.STORED: marks.stored,
            kernel.CEILING: self._ceiling,
            kernel.UNCACHED: self._uncached,
            kernel.LAST_COLUMNS: way.last_columns,
        }

    def _walk_of_parts(
        self, settings: dict[int, int], kept: list[Axis], reduced: list[Axis]
    ) -> npt.NDArray[np.int64]:
        """The walk that takes each step along the outermost reduced axis as a group of its own, in the order of memory.

        It stores pairs where those of parts are.
        """
        pair = kernel.PAIR_BYTES
        weights = geometry.index_weights([axis.size for axis in kept])
        places = [
            axis._replace(other_stride=pair * w) for axis, w in zip(kept, weights, strict=True)
        ]
        outermost, *runs = reduced
        places.append(outermost._replace(other_stride=pair * geometry.elements(kept)))
        groups = geometry.coalesce(geometry.by_memory(places))
        settings = settings | {kernel.PARTS: 1, kernel.WIDTH: pair}
        return self._walk(settings, geometry.table(groups), geometry.table(runs))

    def _is_short(self, visit: _Visit, way: _Way, marks: _Marks, parts: int, split: bool) -> bool:
        """Whether each row is one short run that adjoins, with marks and zeros along one axis at most."""
        runs = visit.reduced[1:] if split else visit.reduced
        short = len(runs) == 1 and runs[0].size * self._item_size <= kernel.SHORT_BYTES
        whole = split or (parts == 1 and len(marks.marks) <= 1 and len(marks.zeros) <= 1)
        return way.search is _ROWS and way.contiguous and short and whole and not marks.past

    def _visit(self, strides: tuple[int, ...], out_strides: tuple[int, ...]) -> _Visit:
        """Kept axes by memory, all strides positive; reduced ones so that the preferred element comes first."""
        shift = out_shift = base = 0
        dropped = len(out_strides) < len(strides)
        remaining = iter(out_strides)
        order = sorted(self.axes)
        weights = geometry.index_weights([self._sizes[a] for a in order])
        weight_of = dict(zip(order, weights, strict=True))
        kept, marked = [], []
        repeated: list[slice] = []
        for a, (n, stride) in enumerate(zip(self._sizes, strides, strict=True)):
            if a in self.axes:
                if not dropped:
                    marked.append(Axis(n, next(remaining), weight_of[a]))
                    repeated.append(slice(None))
                continue
            out_stride = next(remaining)
            computed_once = n > 1 and stride == 0  # then copied
            repeated.append(slice(0, 1) if computed_once else slice(None))
            if n == 1 or computed_once:
                continue
            axis = Axis(n, stride, out_stride)
            if stride < 0:
                axis, moved, out_moved = geometry.reverse(axis)
                shift += moved
                out_shift += out_moved
            kept.append(axis)
        logical = geometry.coalesce(
            Axis(self._sizes[a], strides[a], weight) for a, weight in weight_of.items()
        )
        varying = []
        for axis in logical:
            if axis.stride:
                varying.append(axis)
            elif self._last:  # all its elements are equal: only the preferred one is visited
                base += (axis.size - 1) * axis.other_stride
        reduced = geometry.by_memory(varying)
        visit = _Visit(
            geometry.coalesce(geometry.by_memory(kept)),
            marked,
            reduced,
            shift,
            out_shift,
            base,
            tuple(repeated) if slice(0, 1) in repeated else None,
        )
        if self._last:  # so that the first visited is the preferred one
            for i in range(len(reduced)):
                visit.turn(i)
        return visit

    def _small_planes(self, visit: _Visit, past: bool) -> _Way | None:
        """Lanes along the innermost kept axis, where groups are columns of planes small or cut; None elsewhere."""
        kept, reduced, size = visit.kept, visit.reduced, self._item_size
        few = bool(reduced) and reduced[0].size <= kernel.BYTE_ROWS
        if not few or not kept or kept[-1].other_stride != self._out_size:
            return None
        rows = reduced[0].size
        cut = size >= CUT_ITEM_BYTES
        if self._mark is not None:
            if [axis.size for axis in geometry.coalesce(visit.marked)] != [rows]:
                return None
            if past and rows * kept[-1].size * size > PAST_PLANE_BYTES:
                return None
            cut = rows <= CUT_MARKED_ROWS and not past
        if cut:
            last = geometry.cut_planes(kept, reduced, size)
        else:
            last = kept[-1].size if geometry.small_planes(kept, reduced, size) else 0
        if not last:
            return None
        return _Way(
            search=_PLANES,
            contiguous=True,
            items=visit.groups // kept[-1].size,
            part_bytes=0,
            last_columns=last,
        )

    def _lanes_across(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether lanes lie along the innermost kept axis, not along a reduced one."""
        if not kept or not reduced:
            return bool(kept)
        if geometry.lone_columns(kept, reduced, self._item_size):
            return False
        if kept[-1].stride < abs(reduced[-1].stride):
            return True
        return self._lanes_across_few(kept, reduced)

    def _lanes_across_few(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether groups, or their runs, are so few elements, and so near, that lanes had better lie along them."""
        size = self._item_size
        n, columns = reduced[-1].size, kept[-1].size
        if len(reduced) > 1:
            filled = columns + -columns % (kernel.VECTOR_BYTES // size)
            return n * filled <= SHORT_RUN * columns and kept[-1].stride <= SHORT_RUN * size
        near = kept[-1].stride <= SHORT * size and columns * size >= kernel.VECTOR_BYTES
        # Marks are stored one by one then: 2 to 4 times as long as with their rows, if these adjoin; else 0.2 to 0.5.
        alone = self._mark is None or abs(reduced[-1].stride) != size
        return alone and n <= SHORT and near

    def _lanes_along_the_next(self, kept: list[Axis]) -> bool:
        """Whether lanes had better lie along the next axis, in whose steps the innermost lies: 0.1 to 0.6 of the time.

        The next adjoins in the output, and its elements lie near to each other in the input.
        """
        if len(kept) < 2 or kept[-2].other_stride != self._out_size:
            return False
        long = kept[-2].size * self._item_size >= NEXT_BYTES
        return long and kept[-2].stride <= kernel.NEAR_STEPS[-1] * self._item_size

    def _columns(self, visit: _Visit) -> _Way:
        """Lanes along the innermost kept axis, or along the next one."""
        size, kept, reduced = self._item_size, visit.kept, visit.reduced
        if self._mark is None and self._lanes_along_the_next(kept):
            kept[-2:] = kept[-1], kept[-2]
        across = kept[-1].size
        contiguous = kept[-1].stride == size
        far = self._far and bool(reduced) and abs(reduced[-1].stride) >= FAR_STEP
        tile = self._tile(across, FAR_TILE_BYTES if far else TILE_BYTES)
        beside, overlap = self._cut_beside(visit) if contiguous and reduced else ((), (0, 0))
        wide = across * geometry.elements(beside)
        if beside:
            tile = wide
        row_bytes = size * min(wide, tile)
        return _Way(
            search=_COLUMNS,
            contiguous=contiguous,
            items=visit.groups // across * ceildiv(across, tile),
            part_bytes=visit.total * row_bytes,
            tile=tile,
            row_bytes=row_bytes,
            beside=beside,
            overlap=overlap,
        )

    def _cut_beside(self, visit: _Visit) -> tuple[tuple[Axis, ...], tuple[int, int]]:
        """Cut off the axes along which rows that adjoin are taken as one; which these are, and how such rows overlap.

        Whole axes, until the others are in the order of preference, and a part of the next, which leaves that order.
        """
        size, reduced = self._item_size, visit.reduced
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

    def _tile(self, columns: int, most: int) -> int:
        """Columns of a tile of at most so many bytes: all tiles alike, of whole lines."""
        size = self._item_size
        return geometry.whole_lines(evened(columns, most // size), size)

    def _rows(self, visit: _Visit) -> _Way:
        """Lanes along the innermost reduced axis; along all of them where a group is dense, in whatever order."""
        reduced = visit.reduced
        preferred = self._preferred(visit)
        late = False
        contiguous = bool(reduced) and abs(reduced[-1].stride) == self._item_size
        if contiguous:
            if reduced[-1].stride < 0:
                visit.turn(-1)
            late = (reduced[-1].other_stride < 0) != self._last
        return _Way(
            search=_ROWS,
            contiguous=contiguous,
            items=visit.groups,
            part_bytes=visit.total * self._item_size,
            late=late,
            preferred=preferred,
        )

    def _preferred(self, visit: _Visit) -> _Preferred | None:
        """Of a group whose elements all adjoin, though not in the order of the index; its axes are turned forward."""
        runs = geometry.merge((axis.size, abs(axis.stride)) for axis in visit.reduced)
        if visit.ordered or runs != [(visit.total, self._item_size)]:
            return None
        for i, axis in enumerate(visit.reduced):
            if axis.stride < 0:
                visit.turn(i)
        axes = sorted(visit.reduced, key=lambda axis: -abs(axis.other_stride))
        at, index = 0, visit.base
        for i, axis in enumerate(axes):
            if (axis.other_stride < 0) != self._last:
                axes[i], moved, further = geometry.reverse(axis)
                at += moved
                index += further
        return _Preferred(axes, at, index)

    def _parts(self, visit: _Visit, way: _Way) -> tuple[int, bool]:
        """The parts of each group, none empty, and whether each is a group of its own to the search."""
        kept, reduced, total, groups = visit.kept, visit.reduced, visit.total, visit.groups
        parts, enough = 1, PART_ITEMS
        if way.search is not _COLUMNS or way.row_bytes < SHORT_ROW_BYTES:
            enough = MANY_PART_ITEMS
        if way.items < enough:
            parts = min(way.part_bytes // machine.PART_BYTES, enough // way.items)
            parts = max(1, min(parts, machine.PARTIALS // groups))
        split = False
        if parts == 1 and way.search is _ROWS and reduced:
            most = machine.PARTIALS // groups
            parts = geometry.parts_in_order(kept, reduced, self._item_size, most)
            split = parts == reduced[0].size
        return evened(total, parts), split

    def _marks(self, visit: _Visit, way: _Way, parts: int, split: bool, past: bool) -> _Marks:
        """Zeros are set along with the search where both walk the output the same way, else beforehand in the output's
        own order; and where they go `past` the caches, for a short row's mark would wait for them (1.7 times).

        A group that is one run, and is not cut into parts, is stored with its mark (0.6 of the time of 8 KiB, past the
        caches). So are rows of columns (0.5 to 0.9), if need be when all places are found.
        """
        if self._mark is None:
            return _Marks(_NO_AXES, _NO_AXES, past=past)
        size, columns = self._item_size, way.search is _COLUMNS
        marked = geometry.by_memory(visit.marked)
        marks = geometry.table(geometry.coalesce(visit.marked))
        if way.search is _PLANES:
            return _Marks(marks, _NO_AXES)
        # Whether indices are told apart in an element's width.
        fits = geometry.elements(marked) <= 1 << 8 * size
        group = geometry.coalesce(marked)
        one_run = parts == 1 and not split and len(group) == 1 and group[0].stride == size
        if one_run and (columns or not past or group[0].size * size >= PAST_ROW_BYTES):
            return _Marks(marks, geometry.table(group), 1, past, kernel.BY_GROUPS)
        if columns and parts == 1:
            run = visit.kept[-1]
            if run.other_stride == size and fits:
                rows = self._adjoining(group, run.size, way.tile)
                apart = past and rows == 1 and min(run.size, way.tile) * size in ZEROS_FIRST_BYTES
                if not apart:
                    return _Marks(marks, geometry.table(group), rows, past, kernel.BY_ROWS)
        across = [Axis(axis.size, axis.other_stride, 0) for axis in visit.kept]
        group = geometry.coalesce(axis._replace(other_stride=0) for axis in marked)
        everything = geometry.by_memory(across + group)
        alike = everything[-1:] == (across if columns else group)[-1:]
        long = columns or (group and group[-1].size * size >= PAST_ROW_BYTES)
        if not split and (not self._large or (alike and (long or not past))):
            zero_rows = 1
            if way.beside and group[-1].stride == across[-1].stride * across[-1].size:
                zero_rows = group.pop().size
            return _Marks(marks, geometry.table(group), zero_rows, past)
        by_rows = any(axis in across and axis.stride == size for axis in everything[-1:])
        few = visit.groups * size <= PLACES_BYTES
        if by_rows and few and fits and parts == 1 and not columns:
            return _Marks(_NO_AXES, _NO_AXES, after=True)
        axes = geometry.table(geometry.coalesce(everything))
        settings = np.zeros(kernel.ZERO_SETTINGS, np.int64)
        settings[kernel.ZERO_WIDTH] = self._out_size
        settings[kernel.ZERO_PAST] = past
        settings[kernel.ZERO_RANK] = len(axes)
        walk = np.concatenate((settings, axes.ravel()))
        before = _Stores(walk, launch.address(walk), geometry.elements(everything))
        return _Marks(marks, _NO_AXES, before=before)

    def _adjoining(self, group: list[Axis], columns: int, tile: int) -> int:
        """How many rows of columns adjoin in the output, in the order of the index; taken off the group's axes."""
        if tile >= columns and group and group[-1][1:] == (columns * self._item_size, 1):
            return group.pop().size
        return 1

    def _rows_of_marks(
        self, kept: list[Axis], marked: list[Axis], past: bool
    ) -> tuple[list[Axis], _Stores]:
        """The kept axes of a search that stores places in the order of the output, and what makes marks of these."""
        order = sorted(range(len(kept)), key=lambda i: -abs(kept[i].other_stride))
        weights = geometry.index_weights([kept[i].size for i in order])
        steps = {i: self._item_size * w for i, w in zip(order, weights, strict=True)}
        searched = [axis._replace(other_stride=steps[i]) for i, axis in enumerate(kept)]
        stored = geometry.coalesce(
            Axis(kept[i].size, steps[i], kept[i].other_stride) for i in order
        )
        columns = stored[-1].size
        tile = self._tile(columns, TILE_BYTES)
        group = geometry.coalesce(geometry.by_memory(marked))
        settings = {
            kernel.TILE: tile,
            kernel.ZERO_ROWS: self._adjoining(group, columns, tile),
            kernel.MARK: self._mark or 0,
            kernel.PAST: past,
        }
        tables = geometry.table(stored), _NO_AXES, _NO_AXES, geometry.table(group)
        walk = self._walk(settings, *tables)
        items = geometry.elements(stored[:-1]) * ceildiv(columns, tile)
        return searched, _Stores(walk, launch.address(walk), items)

    def _walk(
        self, settings: dict[int, int], *tables: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The block that tells the kernel what to do: settings, then the tables of axes."""
        block = np.zeros(kernel.SETTINGS, np.int64)
        for place, value in settings.items():
            block[place] = value
        block[kernel.KEPT_RANK : kernel.KEPT_RANK + len(tables)] = [len(table) for table in tables]
        block[kernel.RULE : kernel.RULE + 3] = self._rule
        return np.concatenate((block, *(table.ravel() for table in tables)))


class ArgReduce(Search):
    """Index of the greatest (or least) element of each reduced group, for fixed types and shape.

    Args:
        better: "greater" or "less".
        tie: which of several equal elements wins, "first" or "last".
        nan: "ignored" (loses to every number; a group of nothing but NaN gives 0) or "propagates" (beats every number).
        axes: the reduced axes, in any order, unique; may be empty.
        input, output: the tensors; the output, of a 4- or 8-byte integer type, has size 1 along each reduced axis, or
            lacks these axes.
    """
