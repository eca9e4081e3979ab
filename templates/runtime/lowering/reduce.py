"""The host's side of the reduce kernel: sums, products and extremes of groups, a strategy by strides."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from specops import launch
from specops.kernels import reduce as kernel
from specops.lowering import machine, planes
from specops.lowering.axes import Axis, ceildiv, coalesce, elements, evened, reverse, table
from specops.lowering.keys import keys_of
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.reversal import Reversal, direction, reversal_chunk, reverse_back
from specops.lowering.walk import Walk, walk_of
from specops.tensor import Tensor

_ROWS = launch.chunks_of(kernel.rows)
_NARROW = launch.chunks_of(kernel.narrow_rows)
_RUNS = launch.chunks_of(kernel.runs)
_COLUMNS = launch.chunks_of(kernel.columns)
_PLANES = launch.chunks_of(kernel.planes)
_COMBINE = launch.chunks_of(kernel.combine)
_fold_of = functools.cache(kernel.Fold)

# What elements are folded to, what becomes of that in the end, and what no elements give.
_FUNCTIONS = {
    "sum": ("sum", kernel.NONE, 0),
    "mean": ("sum", kernel.MEAN, math.nan),
    "product": ("product", kernel.NONE, 1),
    "l1": ("magnitudes", kernel.NONE, 0),
    "l2": ("squares", kernel.ROOT, 0),
    "sum_square": ("squares", kernel.NONE, 0),
    "log_sum": ("sum", kernel.LOG, -math.inf),
    "log_sum_exp": ("exponentials", kernel.NONE, -math.inf),
    "max": ("greatest", kernel.NONE, -math.inf),
    "min": ("greatest", kernel.NONE, math.inf),
}
_INDICES = {"argmax": "greater", "argmin": "less"}

TILE_BYTES = 16384  # of one row of a tile
TILE = 4096  # columns of it
APART_TILE = 512  # the same where they lie apart, as short groups do: items for several threads
FAR_BESIDE = 1024  # as machine.BESIDE where memory is waited for, 1.2 to 1.4 times as fast
DOWN_COLUMNS = 64  # the same of converted floats: with states in registers 0.7 to 1 of the time
DOWN_BYTES = 1 << 14  # of rows that are folded down together
MANY_ROWS = 8  # fewer are taken as one, whatever joining their states costs
# Rows of at most so many bytes are taken as one, too, where joining their states costs at most a part of folding them,
# of what is folded fast: maxima 0.85 to 1 of the time, sums 0.9 to 1; longer rows 1.0 to 1.2.
JOINED_BYTES = 1 << 10
JOINING_PART = 32
# Of smaller input fetching ahead costs more than it saves: without it 0.75 to 1 of the time.
NEAR_BYTES = 1 << 24
# The same of elements of less than 32 bits that lie in columns or runs, which take so long that the processor does not
# look far enough ahead itself: with NEAR_BYTES 0.65 to 1.25 of the time.
NARROW_NEAR_BYTES = 1 << 22
# Groups whose short runs are taken in turn, where the runs of one group are nearer to each other than to those of the
# next: one, or 16 of them, take up to 1.5 times as long.
RUN_GROUPS = 4
# Elements, at most, of rows that are transposed: 0.4 to 1 of the time, of a fold that takes long 0.35 to 0.9.
NARROW = 24
NARROW_SLOW = 48
NARROW_BYTES = 48  # of such a row, unless the fold takes long
SHORT = 8  # elements of a group that is no row, where lanes along others take 0.5 to 1 of the time
SHORT_WIDE = 10  # the same of 64 bits
SHORT_EXPONENTIALS = 48  # the same for sums of exponentials
LEAST_COLUMNS = 4  # of small planes of few elements: with fewer, lanes along another axis do
LEAST_EXPONENTIALS = 12  # the same for sums of exponentials, where idle lanes cost most
FEW = 64  # elements of all groups of a tile that are no columns; lanes that are enough
PART_ITEMS = 64  # items that are enough for any number of threads
PARTIAL_BYTES = 1 << 19  # of the states of parts


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    chunk: launch.Chunk
    walk: Walk
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    items: int
    groups: int
    parts: int
    partial_bytes: int
    reversals: tuple[Reversal, ...]


class _Strategy(NamedTuple):
    """How groups are folded: by rows, also transposed, by short runs, by small planes, or by columns.

    Of columns, or groups of short runs, `tile` together; of columns `beside` rows taken as one.
    """

    chunk: Callable[..., launch.Chunk]
    items: int
    positions: int  # of a group, that its parts share
    part_bytes: int  # that an item reads; 0 where groups have no parts
    tile: int = 1
    beside: int = 1
    last: int = 1  # rows that are taken as the last one
    several: int = 1  # such rows that are taken together
    last_columns: int = 1  # of the last plane of each row of planes
    cut: bool = False  # whether planes are pieces of long ones
    down: int = 0  # rows that are folded together while states stay in registers


def _adjoin(kept: list[Axis]) -> bool:
    """Whether the rows along the innermost kept axis adjoin each other."""
    return len(kept) > 1 and kept[-2].stride == kept[-1].size * kept[-1].stride


class Reduce:
    """One number of each group of elements, for fixed types and shape; an ArgReduce where that is an index.

    Args:
        function: "sum", "mean", "product", "l1" (the sum of magnitudes), "l2" (the root of the sum of squares),
            "sum_square", "log_sum" (the logarithm of the sum), "log_sum_exp" (that of the sum of exponentials), "max",
            "min", "argmax" or "argmin". Integers wrap; the results of "mean", "l2" and logarithms of them are cut
            towards 0.
        nan: of "max", "min" and the indices: "ignored" (loses to every number) or "propagates" (beats every number).
        axes: the reduced axes, in any order, unique; may be empty.
        input, output: the tensors, of one type but for indices; the output has size 1 along each reduced axis, or
            lacks these axes.
    """

    def __new__(cls, *, function: str, **told: Any) -> Any:
        if function in _INDICES:
            # Only here: a sum need not wait for the kernels of searches.
            from specops.lowering.arg_reduce import ArgReduce

            return ArgReduce(better=_INDICES[function], tie="first", **told)
        return super().__new__(cls)

    def __init__(
        self, *, function: str, nan: str, axes: Sequence[int], input: Tensor, output: Tensor
    ) -> None:
        self.axes = frozenset(axes)
        self._sizes = input.sizes
        self._element_bytes = input.numpy_dtype.itemsize
        fold, finish, empty = _FUNCTIONS[function]
        width, least, greatest, flip, infinity = keys_of(input.dtype)
        unsigned = input.dtype.startswith("U")
        dtype = input.dtype
        if infinity is None:
            # Integers have no infinities: the nearest they have, and 0 for NaN.
            numbers = np.iinfo(np.uint8) if dtype == "BOOL" else np.iinfo(input.numpy_dtype)
            most = 1 if dtype == "BOOL" else numbers.max
            empty = 0 if math.isnan(empty) else max(min(empty, most), numbers.min)
            if fold != "exponentials":
                if unsigned and fold == "magnitudes":
                    fold = "sum"
                dtype = f"INT{width}"
        elif fold == "greatest":
            dtype = f"FLOAT{width}"  # of a width, floats differ by infinity's key only
        self._empty_result = empty
        self._fold = (dtype, fold)
        state = _fold_of(*self._fold)
        self._state_bytes = state.state_bytes
        flip = ~flip if function == "min" else flip
        nan_key = greatest if nan == "propagates" else least
        total = math.prod(n for a, n in enumerate(self._sizes) if a in self.axes)
        self._empty = total == 0 or 0 in output.sizes
        self._rule = (flip, nan_key, infinity or 0, finish, total, unsigned)
        input_bytes = math.prod(self._sizes) * self._element_bytes
        self._output = output
        self._moved = input_bytes + math.prod(output.sizes) * self._element_bytes
        self._large = input_bytes >= machine.LARGE_BYTES
        narrow = self._element_bytes < 4
        self._near = input_bytes <= (NARROW_NEAR_BYTES if narrow else NEAR_BYTES)
        self._near_rows = input_bytes <= NEAR_BYTES
        self._uncached = input_bytes > machine.UNCACHED_BYTES and state.any_number
        self._least_columns = LEAST_COLUMNS
        self._most_short = SHORT_WIDE if self._element_bytes == 8 else SHORT
        if fold == "exponentials":
            self._least_columns, self._most_short = LEAST_EXPONENTIALS, SHORT_EXPONENTIALS
        self._most_narrow = min(NARROW, NARROW_BYTES // self._element_bytes)
        if state.slow or fold == "product":
            self._most_narrow = NARROW_SLOW
        if self._element_bytes == 8 and fold != "exponentials":
            self._most_narrow = 0  # 0.8 to 1.3 of the time
        waits = input_bytes >= machine.FAR_BYTES and not state.slow
        self._beside = FAR_BESIDE if waits else machine.BESIDE
        self._joined_bytes = 0 if state.slow or fold == "product" else JOINED_BYTES
        self._converts = state.converts
        self._short = state.short
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Write the result for `x` to `out`; shapes and types as declared, any strides."""
        if self._empty:
            out[...] = self._empty_result
            return
        plan = self._plans[x.strides, out.strides]
        source = launch.address(x) + plan.shift
        target = launch.address(out) + plan.out_shift
        large = self._large
        if plan.parts == 1:
            plan.chunk.run(plan.walk.at, source, target, 0, plan.items, large)
        else:
            states = np.empty(plan.partial_bytes, np.uint8)
            partial = launch.address(states)
            plan.chunk.run(plan.walk.at, source, target, partial, plan.items, large)
            combine = _COMBINE(*self._fold)
            many = plan.groups * plan.parts >= launch.MANY_PARTS
            combine.run(plan.walk.at, 0, target, partial, plan.groups, many)
        if plan.reversals:
            reverse_back(plan.reversals, out, large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides."""
        folds = [run(*self._fold) for run in (_ROWS, _NARROW, _RUNS, _COLUMNS, _PLANES, _COMBINE)]
        return [*folds, reversal_chunk(self._element_bytes)]

    def _plan(self, strides: Strides, out_strides: Strides) -> _Plan:
        out_strides, moved, reversals = direction(self._output, self.axes, strides, out_strides)
        kept, reduced, shift, out_shift = self._sides(strides, out_strides)
        groups = elements(kept)
        strategy = self._narrow_rows(kept, reduced)
        if strategy is None and (across := self._lanes_across(kept, reduced)) is not None:
            kept = across
            strategy = self._small_planes(kept, reduced) or self._columns(kept, reduced)
        elif strategy is None:
            strategy = self._runs(kept, reduced) or self._rows(kept, reduced)
        parts = self._parts(kept, reduced, strategy)
        settings = [0] * kernel.SETTINGS
        settings[kernel.PARTS] = parts
        settings[kernel.TILE] = strategy.tile
        settings[kernel.BESIDE] = strategy.beside
        settings[kernel.LAST] = strategy.last
        settings[kernel.SEVERAL] = strategy.several
        settings[kernel.UNCACHED] = self._uncached
        settings[kernel.NEAR] = self._near_rows if strategy.chunk is _ROWS else self._near
        settings[kernel.LAST_COLUMNS] = strategy.last_columns
        settings[kernel.DOWN] = strategy.down
        # Of few rows, results are much of what is moved: past the caches they take 0.7 to 0.8 of the time.
        past = strategy.cut and machine.goes_past(self._output, out_strides, self._moved)
        settings[kernel.PAST] = past
        tables = table(kept), table(reduced)
        settings[kernel.KEPT_RANK], settings[kernel.REDUCED_RANK] = map(len, tables)
        settings[kernel.RULE :] = self._rule
        return _Plan(
            chunk=strategy.chunk(*self._fold),
            walk=walk_of(settings, *tables),
            shift=shift,
            out_shift=out_shift + moved,
            items=strategy.items * parts,
            groups=groups,
            parts=parts,
            # Whole vectors of the last states are read, too.
            partial_bytes=parts * groups * self._state_bytes + kernel.VECTOR_BYTES,
            reversals=reversals,
        )

    def _sides(
        self, strides: Strides, out_strides: Strides
    ) -> tuple[list[Axis], list[Axis], int, int]:
        """Kept and reduced axes by memory, all strides positive, and by how many bytes input and output begin later.

        Axes along which elements repeat go outside; of repeated elements one is as great as all. Groups of one element
        are columns of one row.
        """
        shift = out_shift = 0
        dropped = len(out_strides) < len(strides)
        remaining = iter(out_strides)
        sides: tuple[list[Axis], list[Axis]] = ([], [])
        for a, (n, stride) in enumerate(zip(self._sizes, strides, strict=True)):
            reduces = a in self.axes
            out_stride = 0 if reduces and dropped else next(remaining)
            axis = Axis(n, stride, 0 if reduces else out_stride)
            once = reduces and stride == 0 and self._fold[1] == "greatest"
            if n > 1 and not once:
                if stride < 0:
                    axis, moved, out_moved = reverse(axis)
                    shift += moved
                    out_shift += out_moved
                sides[reduces].append(axis)
        kept, reduced = (
            coalesce(sorted(side, key=lambda axis: -axis.stride or -math.inf)) for side in sides
        )
        return kept, reduced or [Axis(1, 0, 0)], shift, out_shift

    def _lanes_across(self, kept: list[Axis], reduced: list[Axis]) -> list[Axis] | None:
        """The kept axes in an order in which lanes lie along the last one; None where they lie along a reduced one."""
        if planes.lone_columns(kept, reduced, self._element_bytes):
            return None
        total = elements(reduced)
        columns = bool(kept) and (total == 1 or kept[-1].stride < reduced[-1].stride)
        small = columns and planes.small_planes(kept, reduced, self._element_bytes)
        if small and kept[-1].size >= self._least_columns:
            return kept
        if kept and (total <= self._most_short if not columns else kept[-1].size * total <= FEW):
            # Lanes along another axis, if one is long: accesses one by one cost less than a vector for each group.
            near = kept if columns or total <= SHORT else kept[-1:]
            nearest = next((axis for axis in reversed(near) if axis.size >= FEW), None)
            if nearest is not None:
                return [*(axis for axis in kept if axis is not nearest), nearest]
        return kept if columns else None

    def _narrow_rows(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy | None:
        """Lanes along the innermost kept axis, where rows of few elements are transposed; None elsewhere."""
        narrow = planes.narrow_rows(kept, reduced, self._element_bytes, kernel.NEAR_STEPS[-1])
        if not narrow or reduced[0].size > self._most_narrow:
            return None
        return _Strategy(
            chunk=_NARROW,
            items=elements(kept),
            positions=reduced[0].size,
            part_bytes=0,
        )

    def _rows(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy:
        total = elements(reduced)
        return _Strategy(
            chunk=_ROWS,
            items=elements(kept),
            positions=total,
            part_bytes=total * self._element_bytes,
        )

    def _runs(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy | None:
        """Lanes along the innermost reduced axis, where each group has many short runs; None elsewhere."""
        if not kept or len(reduced) < 2:
            return None
        n, step, _ = reduced[-1]
        if step != self._element_bytes or n > self._short:
            return None
        across = kept[-1].size
        by_groups = kept[-1].stride < reduced[-2].stride
        tile = min(across, kernel.SHORT_GROUPS if by_groups else RUN_GROUPS)
        items = elements(kept) // across * ceildiv(across, tile)
        positions = elements(reduced[:-1])
        return _Strategy(
            chunk=_RUNS,
            items=items,
            positions=positions,
            part_bytes=positions * n * tile * self._element_bytes,
            tile=tile,
        )

    def _small_planes(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy | None:
        """Lanes along the innermost kept axis, where groups are columns of planes small or cut; None elsewhere."""
        whole = kept[-1].size
        last = planes.cut_planes(kept, reduced, self._element_bytes)
        if not last:
            return None
        columns = kept[-1].size
        return _Strategy(
            chunk=_PLANES,
            items=elements(kept) // columns,
            positions=reduced[0].size,
            part_bytes=0,
            last_columns=last,
            cut=columns < whole,
        )

    def _columns(self, kept: list[Axis], reduced: list[Axis]) -> _Strategy:
        size = self._element_bytes
        across, stride, _ = kept[-1]
        widest = tile = min(TILE_BYTES // size, TILE) if stride == size else APART_TILE
        tile = machine.whole_lines(evened(across, tile), size)  # all alike
        beside = last = several = 1
        narrow = self._converts and stride == size and across <= DOWN_COLUMNS
        if size == 4 and (self._near or DOWN_COLUMNS % across):
            narrow = False  # 1.0 to 1.3 of the time
        if stride == size and reduced[-1].stride == across * size:
            n, row_bytes, _ = reduced[-1]
            most = DOWN_COLUMNS if narrow else self._beside
            beside = ceildiv(n, ceildiv(n * across, most))
            if n >= MANY_ROWS:
                # So many that joining their states takes as long as folding all rows: 0.3 to 1.1 of the time.
                rows = elements(reduced)
                worth = math.isqrt(rows // across)
                if across * size <= self._joined_bytes:
                    worth = max(worth, rows // JOINING_PART)
                beside = min(beside, max(1, worth))
            each = n * across
            adjoin = len(kept) > 1 and kept[-2].stride == each * size
            if adjoin and len(reduced) > 1 and 2 * each <= widest:
                # Rows are read far apart: longer ones are faster (1.1 to 3.2 times; sums of exponentials 0.7 to 0.9).
                beside, several = n, min(widest // each, kept[-2].size)
        elif across * size < kernel.VECTOR_BYTES and stride == size and _adjoin(kept):
            # In the input, but not in the output: together in 0.1 to 0.5 of the time.
            tile, several = across, min(widest // across, kept[-2].size)
        if beside > 1:
            tile = across
            taken = ceildiv(n, beside)
            last = n - (taken - 1) * beside
            reduced[-1] = Axis(taken, row_bytes * beside, 0)
        items = elements(kept) // across * ceildiv(across, tile)
        if several > 1:
            size_of_next = kept[-2].size
            items = items // size_of_next * ceildiv(size_of_next, several)
        total = elements(reduced)
        wide = beside * several * size * min(across, tile)
        down = 0
        if narrow and several == 1:
            down = DOWN_BYTES // wide & -kernel.FOLD
        return _Strategy(
            chunk=_COLUMNS,
            items=items,
            positions=total,
            part_bytes=total * wide,
            tile=tile,
            beside=beside,
            last=last,
            several=several,
            down=down,
        )

    def _parts(self, kept: list[Axis], reduced: list[Axis], strategy: _Strategy) -> int:
        """The parts of each group, none empty."""
        groups, total = elements(kept), strategy.positions
        most = PARTIAL_BYTES // (groups * self._state_bytes)
        parts = machine.parts_for(strategy.items, PART_ITEMS, strategy.part_bytes, most)
        if parts == 1 and strategy.chunk is _ROWS:
            parts = planes.parts_in_order(kept, reduced, self._element_bytes, most)
        return evened(total, parts)
