"""The host's side of the softmax kernel: a strategy by strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from specops import launch
from specops.kernels import softmax as kernel
from specops.lowering import machine, planes
from specops.lowering.axes import Axis, ceildiv, coalesce, elements, evened, reverse, table
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.reversal import Reversal, direction, reversal_chunk, reverse_back
from specops.lowering.walk import Walk, walk_of
from specops.tensor import Tensor

_SHORT = launch.chunks_of(kernel.short_rows)
_NARROW = launch.chunks_of(kernel.narrow_rows)
_ROWS = launch.chunks_of(kernel.rows)
_COLUMNS = launch.chunks_of(kernel.columns)
_PLANES = launch.chunks_of(kernel.planes)
_COMBINE = launch.Chunk(kernel.combine)


SCRATCH_BYTES = 1 << 18  # of a row's exponentials, or of a tile's lanes, which stay in L2
# Of the exponentials of a row that is one run, as its results are, which stay in the cache.
KEPT_BYTES = 1 << 19
BLOCK_BYTES = 1 << 14  # of a long row measured together
TILE_BYTES = 4096  # of one row of a tile,
PAST_TILE_BYTES = 8192  # of large outputs: fewer ends (0.8 to 1 of the time)
LEAST_TILE_BYTES = 2048  # narrower ones are slower than idle threads, beyond the cache
SHARED_TILES = 4  # of columns that stay in cache: narrower tiles are better than split groups
LEAST_ROWS = 16  # of a tile, where several rows are taken as one
# Runs are taken as columns if they have at most so many vectors, and their groups so many runs, and so many for the
# square of a run's vectors: joining columns takes as long as some rows do. With fewer 1.5 times as long as by rows.
RUN_VECTORS = 26
LEAST_RUNS = 16
RUNS_OF_SQUARE = 1 / 3
BLOCK_ROWS = 1 << 10  # of a tile, whose offsets are kept together
PAST_RUN_BYTES = 1 << 11  # a run shorter than this has too many ends
# Of an element, against one in a full vector of contiguous ones:
NEAR_COST = 1.5  # where elements are picked out of vectors, or adjoin along neither axis and lie nearer along this one;
STRIDED_COST = 5.0  # of others;
GROUP_COST = 100.0  # of a group whose elements do not adjoin, if vectors lie along it, besides
PART_ITEMS = 8  # items that are enough for the threads to share
LARGE_BYTES = 1 << 16  # input from which a second thread pays: 0.7 of the time up to 256 KiB


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    chunk: launch.Chunk
    walk: Walk
    second: Walk | None  # the walk that writes, where groups are split
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    items: int
    groups: int
    parts: int
    reversals: tuple[Reversal, ...]


class _Strategy(NamedTuple):
    """How groups are computed: by rows, by small planes, or by columns.

    Of columns `tile` together, `copies` rows taken as one, or, where they are short runs of groups, `run` one group.
    """

    chunk: Callable[..., launch.Chunk]
    items: int
    part_bytes: int  # that an item reads; 0 where groups have no parts
    inner_bytes: int  # of a run that it stores
    block: int  # elements of a group measured together
    tile: int = 1
    near: bool = False  # a tile stays in the cache
    copies: int = 1
    last_columns: int = 1  # of the last plane of each row of planes
    in_place: bool = False  # a row's exponentials are kept where its results go
    run: int = 1  # of columns, adjoining ones that are one group


class Softmax:
    """Softmax, or its logarithm, of each group of elements, for a fixed type and shape.

    Args:
        result: "probability" or "logarithm".
        nan: "propagates", told as to every host object, though there is no other rule: a NaN or +inf, or nothing but
            -inf, makes its whole group NaN.
        axes: the axes along which a group lies; may be empty (each element is its own group).
        input, output: the tensors, of one shape and type.
    """

    def __init__(
        self, *, axes: Sequence[int], result: str, nan: str, input: Tensor, output: Tensor
    ) -> None:
        self._sizes = input.sizes
        self._output = output
        self.axes = frozenset(axes)
        self._logarithm = result == "logarithm"
        self._dtype = input.dtype
        self._element_bytes = input.numpy_dtype.itemsize
        self._lane_bytes = max(self._element_bytes, 4)
        self._lanes = kernel.VECTOR_BYTES // self._lane_bytes
        input_bytes = math.prod(self._sizes) * self._element_bytes
        self._empty = input_bytes == 0
        self._large = input_bytes >= LARGE_BYTES
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Compute `x` into `out`, both of the described shape and type, at any strides."""
        if self._empty:
            return
        plan = self._plans[x.strides, out.strides]
        source = launch.address(x) + plan.shift
        target = launch.address(out) + plan.out_shift
        large = self._large
        if plan.second is None:
            plan.chunk.run(plan.walk.at, source, target, 0, plan.items, large)
        else:
            number = plan.groups * plan.parts
            pairs = np.empty(2 * number, np.float64)
            partial = launch.address(pairs)
            plan.chunk.run(plan.walk.at, source, target, partial, plan.items, large)
            _COMBINE.run(plan.walk.at, 0, 0, partial, plan.groups, number >= launch.MANY_PARTS)
            plan.chunk.run(plan.second.at, source, target, partial, plan.items, large)
        if plan.reversals:
            reverse_back(plan.reversals, out, large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides."""
        return [
            *(run(self._dtype) for run in (_SHORT, _NARROW, _ROWS, _COLUMNS, _PLANES)),
            _COMBINE,
            reversal_chunk(self._element_bytes),
        ]

    def _plan(self, strides: Strides, out_strides: Strides) -> _Plan:
        out_strides, moved, reversals = direction(self._output, self.axes, strides, out_strides)
        kept, reduced, shift, out_shift = self._sides(strides, out_strides)
        groups = elements(kept)
        past = machine.outgrows(
            machine.PAST_BYTES, self._sizes, strides, out_strides, self._element_bytes
        )
        strategy = self._runs(kept, reduced, past)
        if (
            strategy is None
            and not self._are_narrow(kept, reduced)
            and self._lanes_across(kept, reduced)
        ):
            strategy = self._small_planes(kept, reduced) or self._columns(kept, reduced, past)
        elif strategy is None:
            strategy = self._rows(kept, reduced, past)
        by_rows = strategy.chunk is _ROWS
        total = elements(reduced)
        chunk, block, most = strategy.chunk, strategy.block, machine.PARTIALS // groups
        parts = machine.parts_for(strategy.items, PART_ITEMS, strategy.part_bytes, most)
        parts = evened(total, parts)  # none empty
        if by_rows and parts == 1 and self._is_short(reduced, block):
            chunk = _NARROW if self._is_narrow(total) else _SHORT
        if by_rows and parts > 1 and block >= total:
            block = BLOCK_BYTES // self._element_bytes
        settings = [0] * kernel.SETTINGS
        settings[kernel.LOGARITHM] = self._logarithm
        settings[kernel.PARTS] = parts
        settings[kernel.BLOCK] = block
        settings[kernel.TILE] = strategy.tile
        settings[kernel.NEAR] = strategy.near and parts == 1
        settings[kernel.COPIES] = strategy.copies
        settings[kernel.IN_PLACE] = strategy.in_place and parts == 1
        settings[kernel.LAST_COLUMNS] = strategy.last_columns
        settings[kernel.RUN] = strategy.run
        settings[kernel.KEPT_RANK] = max(1, len(kept))
        settings[kernel.REDUCED_RANK] = len(reduced)
        settings[kernel.TOTAL] = total
        # Columns of 16 bits take so long to compute that stores within the cache are no slower.
        past = past and (by_rows or self._element_bytes != 2)
        settings[kernel.PAST] = past and strategy.inner_bytes >= PAST_RUN_BYTES
        tables = table(kept), table(reduced)
        second = None
        if parts > 1:
            settings[kernel.PHASE] = kernel.WRITE
            second = walk_of(settings, *tables)
            settings[kernel.PHASE] = kernel.MEASURE
        return _Plan(
            chunk=chunk(self._dtype),
            walk=walk_of(settings, *tables),
            second=second,
            shift=shift,
            out_shift=out_shift + moved,
            items=strategy.items * parts,
            groups=groups,
            parts=parts,
            reversals=reversals,
        )

    def _sides(
        self, strides: Strides, out_strides: Strides
    ) -> tuple[list[Axis], list[Axis], int, int]:
        """Kept and reduced axes by memory, no input stride negative, and by how many bytes both arrays begin later.

        Groups of one element are columns of one row.
        Axes along which elements repeat go where they are in the output: 0.05 to 0.2 of the time.
        """
        shift = out_shift = 0
        sides: tuple[list[Axis], list[Axis]] = ([], [])
        for a, (n, stride, out_stride) in enumerate(
            zip(self._sizes, strides, out_strides, strict=True)
        ):
            axis = Axis(n, stride, out_stride)
            if n > 1:
                if stride < 0 or (stride == 0 and out_stride < 0):
                    axis, moved, out_moved = reverse(axis)
                    shift += moved
                    out_shift += out_moved
                sides[a in self.axes].append(axis)
        kept, reduced = (
            coalesce(sorted(side, key=lambda axis: -(axis.stride or abs(axis.other_stride))))
            for side in sides
        )
        return kept, reduced or [Axis(1, 0, 0)], shift, out_shift

    def _small_planes(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy | None:
        """Lanes along the innermost kept axis, where groups are columns of planes small or cut; None elsewhere."""
        size = self._element_bytes
        last = planes.cut_planes(kept, reduced, size) if kept[-1].other_stride == size else 0
        if not last:
            return None
        total, columns = reduced[0].size, kept[-1].size
        return _Strategy(
            chunk=_PLANES,
            items=elements(kept) // columns,
            part_bytes=0,
            inner_bytes=columns * size,
            block=total,
            last_columns=last,
        )

    def _columns(self, kept: list[Axis], reduced: list[Axis], past: bool) -> _Strategy:
        size, lane_bytes, lanes = self._element_bytes, self._lane_bytes, self._lanes
        groups = elements(kept)
        total = elements(reduced)
        widest = (PAST_TILE_BYTES if past else TILE_BYTES) // lane_bytes
        copies = self._copies(kept[-1], reduced[-1], widest, total)
        columns = kept[-1].size * copies
        kept[-1] = kept[-1]._replace(size=columns)
        n, stride, out_stride = reduced[-1]
        reduced[-1] = Axis(n // copies, stride * copies, out_stride * copies)
        total //= copies
        tile = widest = min(widest, columns)
        near = widest * lane_bytes * total <= SCRATCH_BYTES
        # Tiles of so many lanes are halved until there are enough of them, or of the parts that groups are split into:
        # of tall columns these are better (0.65 to 0.9 of the time for 4096 x 4096).
        if near:
            halved, enough = 2 * lanes + 1, SHARED_TILES
        else:
            halved, enough = 2 * LEAST_TILE_BYTES // lane_bytes, PART_ITEMS
            parts = min(total * size * tile // machine.PART_BYTES, machine.PARTIALS // groups)
            enough //= max(1, parts)
        if copies == 1:
            while groups // columns * ceildiv(columns, tile) < enough and tile >= halved:
                tile //= 2
            tile = min(columns, ceildiv(tile, lanes) * lanes)
        return _Strategy(
            chunk=_COLUMNS,
            items=groups * copies // columns * ceildiv(columns, tile),
            part_bytes=total * size * tile,
            inner_bytes=tile * size,
            block=min(total, BLOCK_ROWS),
            tile=tile,
            near=near,
            copies=copies,
        )

    def _runs(self, kept: list[Axis], reduced: list[Axis], past: bool) -> _Strategy | None:
        """Short runs that adjoin, of groups that have many, as columns: 0.1 to 1.1 of the time; or None.

        The axes become those of columns, in place.
        """
        size, lane_bytes = self._element_bytes, self._lane_bytes
        if not kept or len(reduced) < 2:
            return None
        n, *steps = reduced[-1]
        across, *run_steps = kept[-1]
        total, groups = elements(reduced[:-1]), elements(kept)
        adjoin = steps == [size, size] and run_steps == [n * size, n * size]
        widest = (PAST_TILE_BYTES if past else TILE_BYTES) // lane_bytes
        # Tiles for both threads, or all groups together, which are then cut into parts.
        together = min(across, widest // n)
        if together < across or total * size * across * n < 2 * machine.PART_BYTES:
            together = min(together, groups // SHARED_TILES)
        vectors = ceildiv(n, self._lanes)
        many = total >= max(LEAST_RUNS, RUNS_OF_SQUARE * vectors**2)
        if not adjoin or not many or vectors > RUN_VECTORS or together == 0:
            return None
        if together < across:  # tiles of whole vectors, if they hold so many runs
            together -= together % min(together, self._lanes // math.gcd(n, self._lanes))
        reduced.pop()
        kept[-1] = Axis(across * n, size, size)
        return _Strategy(
            chunk=_COLUMNS,
            items=groups // across * ceildiv(across, together),
            part_bytes=total * size * together * n,
            inner_bytes=together * n * size,
            block=min(total, BLOCK_ROWS),
            tile=together * n,
            near=together * n * lane_bytes * total <= SCRATCH_BYTES,
            run=n,
        )

    def _rows(self, kept: list[Axis], reduced: list[Axis], past: bool) -> _Strategy:
        size, inner = self._element_bytes, reduced[-1].size
        total = elements(reduced)
        vectors = total // inner * ceildiv(inner, self._lanes)
        keeps = self._is_one_run(reduced) and not (past or self._logarithm)
        fits = vectors * kernel.VECTOR_BYTES <= (KEPT_BYTES if keeps else SCRATCH_BYTES)
        return _Strategy(
            chunk=_ROWS,
            items=elements(kept),
            part_bytes=total * size,
            inner_bytes=inner * size,
            block=total if fits else BLOCK_BYTES // size,
            # 0.8 to 0.95 of the time.
            in_place=keeps and fits and size == self._lane_bytes,
        )

    def _is_short(self, reduced: list[Axis], block: int) -> bool:
        """Whether groups are one contiguous run each, of few vectors.

        Their results need not go past the cache: their lines are there before they are stored.
        """
        most = min(kernel.SUM_VECTORS * self._lanes, block)
        return self._is_one_run(reduced) and reduced[0].size <= most

    def _is_narrow(self, total: int) -> bool:
        """Whether a run of so many elements is transposed."""
        narrowest, widest = kernel.NARROW[self._dtype]
        return bool(narrowest <= total <= widest)

    def _are_narrow(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether groups are such runs, and enough of them to fill vectors."""
        many = bool(kept) and kept[-1].size >= self._lanes
        return many and self._is_one_run(reduced) and self._is_narrow(reduced[0].size)

    def _is_one_run(self, reduced: list[Axis]) -> bool:
        """Whether a group's elements adjoin, and its results."""
        return len(reduced) == 1 and self._adjoins(reduced[0])

    def _adjoins(self, axis: Axis) -> bool:
        """Whether elements adjoin along an axis, and results."""
        return axis.stride == axis.other_stride == self._element_bytes

    def _copies(self, kept: Axis, reduced: Axis, columns: int, total: int) -> int:
        """How many rows of columns are taken as one row, of at most `columns`: few fill no vectors.

        1.8 times as fast for 28 columns, 4 times for 10.
        """
        row = kept.size * self._element_bytes
        if not (self._adjoins(kept) and reduced.stride == reduced.other_stride == row):
            return 1
        most = min(columns // kept.size, total // LEAST_ROWS, reduced.size)
        return next((n for n in range(most, 1, -1) if reduced.size % n == 0), 1)

    def _lanes_across(self, kept: list[Axis], reduced: list[Axis]) -> bool:
        """Whether vectors lie along the innermost kept axis, not along the innermost reduced one."""
        if not kept:
            return False

        total = elements(reduced)
        copies = self._copies(kept[-1], reduced[-1], TILE_BYTES // self._lane_bytes, total)
        columns = kept[-1]._replace(size=kept[-1].size * copies)

        def furthest(axis: Axis) -> int:
            return max(axis.stride, abs(axis.other_stride))

        def cost(axis: Axis, other: Axis, of_group: float) -> float:
            waste = self._lanes * ceildiv(axis.size, self._lanes) / axis.size
            if self._adjoins(axis):
                return waste
            near = furthest(axis) <= kernel.NEAR_STEPS[-1] * self._element_bytes
            near = near or (furthest(axis) < furthest(other) and not self._adjoins(other))
            return waste * (NEAR_COST if near else STRIDED_COST) + of_group / axis.size

        return cost(columns, reduced[-1], 0.0) < cost(reduced[-1], columns, GROUP_COST)
