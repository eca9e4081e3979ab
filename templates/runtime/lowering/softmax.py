"""The host's side of the softmax kernel: a strategy by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specops import geometry, launch
from specops.kernels import softmax as kernel
from specops.lowering.plans import Plans
from specops.tensor import Tensor

Array = npt.NDArray[Any]

_SHORT = launch.kernels(kernel.short_rows)
_ROWS = launch.kernels(kernel.rows)
_COLUMNS = launch.kernels(kernel.columns)
_COMBINE = launch.Kernel(kernel.combine)


SCRATCH_BYTES = 1 << 18  # of a row's exponentials, or of a tile's lanes, which stay in L2
BLOCK_BYTES = 1 << 14  # of a long row measured together
TILE_BYTES = 4096  # of one row of a tile,
STREAM_TILE_BYTES = 8192  # or past the cache, unless of 16 bits: fewer ends (0.8 to 1 of the time)
LEAST_TILE_BYTES = 2048  # narrower tiles of tall columns are slower than split groups
SHARED_TILES = 4  # of columns that stay in cache: narrower tiles are better than split groups
LEAST_ROWS = 16  # of a tile, where several rows are taken as one
BLOCK_ROWS = 1 << 10  # of a tile, whose offsets are kept together
STREAM_BYTES = 1 << 24  # of output from which it goes past the cache
STREAM_RUN_BYTES = 1 << 11  # a run shorter than this has too many ends
STREAM_VECTORS = 32  # short rows of more vectors had better go past it, too, if of more than 16 bits (0.9 of the time)
PART_BYTES = 1 << 18  # a part smaller than this is not worth a thread
STRIDED_COST = 3.0  # of an element, against one in a full vector of contiguous ones
PARTIALS = 1 << 15  # (top, sum) pairs, half a MiB
PART_ITEMS = 8  # items that are enough for the threads to share
LARGE_BYTES = 1 << 16  # input from which a second thread pays


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    run: launch.Kernel
    walk: npt.NDArray[np.int64]
    walk_at: int  # its address
    second: npt.NDArray[np.int64] | None  # the walk that writes, where groups are split
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    items: int
    groups: int
    parts: int


class Softmax:
    """Softmax, or its logarithm, of each group of elements, for a fixed type and shape.

    Args:
        result: "probability" or "logarithm".
        nan: "propagates": a NaN or +inf, or nothing but -inf, makes its whole group NaN.
        axes: the axes along which a group lies; may be empty (each element is its own group).
        input, output: the tensors, of one shape and type.
    """

    def __init__(
        self, *, axes: Sequence[int], result: str, nan: str, input: Tensor, output: Tensor
    ) -> None:
        self._sizes = input.sizes
        self._axes = frozenset(axes)
        self._logarithm = result == "logarithm"
        self._dtype = input.dtype
        self._item_size = input.numpy_dtype.itemsize
        elements = math.prod(self._sizes)
        self._empty = elements == 0
        self._stream = elements * self._item_size >= STREAM_BYTES
        self._large = elements * self._item_size >= LARGE_BYTES
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Compute `x` into `out`, both of the described shape and type, at any strides."""
        if self._empty:
            return
        plan = self._plans[x.strides, out.strides]
        run, _, walk, second, shift, out_shift, items, groups, parts = plan
        source = launch.address(x) + shift
        target = launch.address(out) + out_shift
        large = self._large
        if second is None:
            run(walk, source, target, 0, items, large=large, alive=(x, out, plan))
            return
        pairs = np.empty(2 * groups * parts, np.float64)
        partial = launch.address(pairs)
        alive = (x, out, plan, pairs)
        run(walk, source, target, partial, items, large=large, alive=alive)
        many = groups * parts >= launch.MANY_PARTS
        _COMBINE(walk, 0, 0, partial, groups, large=many, alive=alive)
        run(launch.address(second), source, target, partial, items, large=large, alive=alive)

    def _plan(self, strides: tuple[int, ...], out_strides: tuple[int, ...]) -> _Plan:
        size = self._item_size
        shift = out_shift = 0
        sides: tuple[list[geometry.Axis], list[geometry.Axis]] = ([], [])
        for a, (n, stride, out_stride) in enumerate(
            zip(self._sizes, strides, out_strides, strict=True)
        ):
            axis = geometry.Axis(n, stride, out_stride)
            if n > 1:
                if stride < 0 or (stride == 0 and out_stride < 0):
                    axis, moved, out_moved = geometry.reverse(axis)
                    shift += moved
                    out_shift += out_moved
                sides[a in self._axes].append(axis)
        kept, reduced = (
            geometry.coalesce(sorted(side, key=lambda axis: (-axis.stride, -abs(axis.second))))
            for side in sides
        )
        lanes = kernel.VECTOR_BYTES // max(size, 4)
        groups = math.prod(axis.size for axis in kept)
        total = math.prod(axis.size for axis in reduced)
        across = self._lanes_across(kept, reduced)
        tile = parts = copies = 1
        inner_bytes = 0
        near = False
        # Past the cache, results of 16 bits still take longer to compute than to store.
        slow_stores = self._stream and size > 2
        if across:
            run = _COLUMNS
            lane_bytes = max(size, 4)
            widest = (STREAM_TILE_BYTES if slow_stores else TILE_BYTES) // lane_bytes
            if kept and reduced:
                copies = self._copies(kept[-1], reduced[-1], widest, total)
                kept[-1] = kept[-1]._replace(size=kept[-1].size * copies)
                n, stride, out_stride = reduced[-1]
                reduced[-1] = geometry.Axis(n // copies, stride * copies, out_stride * copies)
                total //= copies
            columns = kept[-1].size if kept else 1
            widest = min(widest, columns)
            tile = widest
            near = widest * lane_bytes * total <= SCRATCH_BYTES
            block = min(total, BLOCK_ROWS)
            # Tiles of so many lanes are halved until there are enough of them.
            if near:
                halved, enough = 2 * lanes + 1, SHARED_TILES
            else:
                halved, enough = 2 * LEAST_TILE_BYTES // lane_bytes, PART_ITEMS
            if copies == 1:
                while groups // columns * -(-columns // tile) < enough and tile >= halved:
                    tile //= 2
                tile = min(columns, -(-tile // lanes) * lanes)
            items = groups * copies // columns * -(-columns // tile)
            part_bytes = total * size * tile
            inner_bytes = tile * size
        else:
            run = _ROWS
            inner = reduced[-1].size
            inner_bytes = inner * size
            items = groups
            part_bytes = total * size
            vectors = total // inner * -(-inner // lanes)
            block = BLOCK_BYTES // size
            if vectors * kernel.VECTOR_BYTES <= SCRATCH_BYTES:
                block = total
        if items < PART_ITEMS:
            parts = min(part_bytes // PART_BYTES, PART_ITEMS // items, PARTIALS // groups)
            parts = max(1, parts)
            parts = -(-total // -(-total // parts))  # none empty
        short = min((STREAM_VECTORS if slow_stores else kernel.SUM_VECTORS) * lanes, block)
        one_run = not across and len(reduced) == parts == 1
        if one_run and total <= short and reduced[0].stride == reduced[0].second == size:
            run = _SHORT
        if parts > 1 and block >= total and not across:
            block = BLOCK_BYTES // size
        settings = np.zeros(kernel.SETTINGS, np.int64)
        settings[kernel.LOGARITHM] = self._logarithm
        settings[kernel.PARTS] = parts
        settings[kernel.BLOCK] = block
        settings[kernel.TILE] = tile
        settings[kernel.NEAR] = near and parts == 1
        settings[kernel.COPIES] = copies
        settings[kernel.KEPT] = max(1, len(kept))
        settings[kernel.REDUCED] = max(1, len(reduced))
        settings[kernel.TOTAL] = total
        settings[kernel.STREAM] = self._stream and inner_bytes >= STREAM_RUN_BYTES
        axes = (geometry.table(kept).ravel(), geometry.table(reduced).ravel())
        walk = np.concatenate((settings, *axes))
        second = None
        if parts > 1:
            second = walk.copy()
            walk[kernel.PHASE] = kernel.MEASURE
            second[kernel.PHASE] = kernel.WRITE
        return _Plan(
            run(self._dtype),
            walk,
            launch.address(walk),
            second,
            shift,
            out_shift,
            items * parts,
            groups,
            parts,
        )

    def _copies(self, kept: geometry.Axis, reduced: geometry.Axis, columns: int, total: int) -> int:
        """How many rows of columns are taken as one row, of at most `columns`: few fill no vectors.

        1.8 times as fast for 28 columns, 4 times for 10.
        """
        size = self._item_size
        row = kept.size * size
        if not (kept.stride == kept.second == size and reduced.stride == reduced.second == row):
            return 1
        most = min(columns // kept.size, total // LEAST_ROWS, reduced.size)
        return next((n for n in range(most, 1, -1) if reduced.size % n == 0), 1)

    def _lanes_across(self, kept: list[geometry.Axis], reduced: list[geometry.Axis]) -> bool:
        """Whether vectors lie along the innermost kept axis, not along the innermost reduced one."""
        if not kept or not reduced:
            return not reduced

        def cost(axis: geometry.Axis) -> tuple[float, int]:
            size = self._item_size
            lanes = kernel.VECTOR_BYTES // max(size, 4)
            contiguous = axis.stride == axis.second == size
            waste = lanes * -(-axis.size // lanes) / axis.size
            return waste * (1.0 if contiguous else STRIDED_COST), max(axis.stride, abs(axis.second))

        return cost(kept[-1]) < cost(reduced[-1])
