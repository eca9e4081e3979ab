"""The host's side of the max_pool kernel: ranks by data type and plane, lanes and tiles by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specops import geometry, launch
from specops.kernels import max_pool as kernel
from specops.lowering.keys import keys_of
from specops.lowering.plans import Plans
from specops.tensor import Tensor

Array = npt.NDArray[Any]

_LINES = launch.kernels(kernel.lines)
_DIRECT = launch.kernels(kernel.direct)


LINE_BYTES = 1 << 14  # wanted for lines taken together, to stay in L1
TALL_BYTES = 1 << 16  # wanted for lines folded by doubling, of which neighbouring items share some
LONGEST_LINE = 1 << 17  # allowed for a wide window
ITEM_BYTES = 1 << 15  # input of an item, roughly
LARGE_BYTES = 1 << 18  # input and output from which a second thread pays


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    run: launch.Kernel
    walk: npt.NDArray[np.int64]
    walk_at: int  # its address
    items: int


def _merge(axes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Axes as (size, steps..), neighbours merged where every step allows, none of size 1."""
    merged: list[tuple[int, ...]] = []
    for size, *steps in axes:
        if size == 1:
            continue
        whole = size
        if merged and merged[-1][1:] == tuple(step * size for step in steps):
            whole *= merged.pop()[0]
        merged.append((whole, *steps))
    return merged


class MaxPool:
    """Greatest element of each window, and where it stands, for fixed types and shape.

    Args:
        window, strides, dilations, start_padding: for each of the last `len(window)` dimensions.
        nan: "ignored" (loses to every number; a window of nothing but NaN gives NaN) or "extreme" (the first NaN wins).
        index_order: "row_major", or "column_major" within each spatial plane.
        input: the tensor.
        output: as the input, with the output's spatial sizes, which decide how far windows go.
        indices: as the output, of UINT32, INT32, UINT64 or INT64; None if not wanted.
    """

    def __init__(
        self,
        *,
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        nan: str,
        index_order: str,
        input: Tensor,
        output: Tensor,
        indices: Tensor | None,
    ) -> None:
        self._sizes = input.sizes
        self._out_sizes = output.sizes
        self._batch = len(self._sizes) - len(window)
        self._windows = list(zip(window, strides, dilations, start_padding, strict=True))
        self._column_major = index_order == "column_major"
        width, least, greatest, flip, infinity = keys_of(input.dtype)
        self._item_size = width // 8
        self._index_size = 0
        if indices is not None:
            self._index_size = 4 if indices.dtype.endswith("32") else 8
        self._plane = math.prod(self._sizes[self._batch :])
        self._rank_width = self._choose_rank(width)
        self._rank_size = self._item_size if indices is None else self._rank_width // 8

        blank = least if infinity is None else infinity | least
        nan_key = greatest if nan == "extreme" else least
        inf = infinity or 0
        self._kind = (width, infinity is not None)
        self._rule = (flip, nan_key, inf)
        self._blank = blank ^ flip
        if indices is None and infinity is not None:
            nans = greatest - infinity  # of each sign
            nan_key = nans if nan == "ignored" else -nans
        self._line_rule = (flip, nan_key, inf)

        elements = math.prod(self._out_sizes)
        self._empty = elements == 0
        moved = math.prod(self._sizes) + elements
        self._large = moved * self._item_size + elements * self._index_size >= LARGE_BYTES
        self._plans = Plans(self._plan)

    def _choose_rank(self, width: int) -> int:
        """Bits of a rank with its position; 0 where no indices are wanted, or none is wide enough."""
        if self._index_size:
            for rank in (32, 64, 128):
                if rank > width and self._plane < 1 << min(rank - width - 1, 62):
                    return rank
        return 0

    def __call__(self, x: Array, out: Array, indices: Array | None = None) -> None:
        """Write the greatest elements of `x` to `out`, and where they stand to `indices`; any strides."""
        if self._empty:
            return
        index_strides = () if indices is None else indices.strides
        plan = self._plans[x.strides, out.strides, index_strides]
        run, _, walk, items = plan
        run(
            walk,
            launch.address(x),
            launch.address(out),
            0 if indices is None else launch.address(indices),
            items,
            large=self._large,
            alive=(x, out, indices, plan),
        )

    def _plan(
        self,
        strides: tuple[int, ...],
        out_strides: tuple[int, ...],
        index_strides: tuple[int, ...],
    ) -> _Plan:
        first, size = self._batch, self._item_size
        index_strides = index_strides or (0,) * len(out_strides)
        weights = geometry.index_weights(self._sizes)
        axes = list(zip(self._sizes, strides, out_strides, index_strides, weights, strict=True))
        batch = axes[:first]
        spatial = [
            (n, self._out_sizes[first + i], *self._windows[i], *steps)
            for i, (n, *steps) in enumerate(axes[first:])
        ]
        if len(spatial) == 1:  # lines are along the last of two axes
            spatial.insert(0, (1, 1, 1, 1, 1, 0, 0, 0, 0, max(1, self._plane)))
        how = np.zeros(kernel.SETTINGS, np.int64)
        how[kernel.WIDTH] = self._index_size
        how[kernel.COLUMN_MAJOR] = self._column_major
        how[kernel.PLANE] = self._plane
        dense = _merge([(n, step, weight) for n, step, _, _, weight in axes[first:]])
        if not dense:
            how[kernel.DENSE] = size
        elif len(dense) == 1 and dense[0][2] == 1:
            how[kernel.DENSE] = dense[0][1]

        inner = spatial[-1]
        n, out_n, window, stride, dilation, _, step = inner[:7]
        reach = (window - 1) * dilation
        lane: tuple[int, ...] = (1, 0, 0, 0, 0)
        if step != size or n == 1:
            for axis in batch:
                if axis[0] > 1 and axis[1] == size:
                    lane = axis
                    batch.remove(axis)
                    break
        merged = _merge(batch)
        planes = math.prod(axis[0] for axis in merged)
        rows = math.prod(axis[1] for axis in spatial[:-1])
        rank = self._rank_size
        line = (out_n - 1) * stride + 1 + reach
        if (self._index_size and rank == 0) or (reach + 1) * rank > LONGEST_LINE:
            if lane[0] > 1:
                merged.append(lane)
                planes *= lane[0]
            share = max(1, ITEM_BYTES // size)
            how[kernel.ROWS] = share
            run, rule = _DIRECT(*self._kind), self._rule
            items = planes * -(-rows * out_n // share)
        else:
            pitch = max(1, min(lane[0], LINE_BYTES // (rank * min(line, 2 * reach + 1))))
            fits = max(LINE_BYTES // (rank * pitch), 2 * reach + 1)
            tile = max(1, min(out_n, (fits - 1 - reach) // stride + 1))
            line = ((tile - 1) * stride + 1 + reach) * pitch
            tall, share, count = self._share_rows(spatial[-2], line * rank)
            blocks = -(-spatial[-2][1] // share) * (rows // spatial[-2][1])
            how[kernel.LANES : kernel.LANE_WEIGHT + 1] = (lane[0], pitch, *lane[2:])
            how[kernel.TILE] = tile
            how[kernel.ROWS] = share
            how[kernel.LINE] = line
            how[kernel.TALL] = tall
            # A vector beyond each line is written; of every second rank, one more is read.
            how[kernel.BUFFER] = -(-(count * line * rank + 4 * kernel.VECTOR_BYTES) // 64) * 64
            spare = max(tile, pitch) * (size + 8 if self._index_size else size)
            how[kernel.SCRATCH] = 2 * how[kernel.BUFFER] + spare + kernel.VECTOR_BYTES
            run, rule = _LINES(*self._kind, self._rank_width), self._line_rule
            items = planes * -(-lane[0] // pitch) * -(-out_n // tile) * blocks
        merged = merged or [(1, 0, 0, 0, 0)]
        how[kernel.BATCH] = len(merged)
        how[kernel.SPATIAL] = len(spatial)
        how[kernel.RULE : kernel.RULE + 3] = rule
        how[kernel.BLANK] = self._blank
        walk = np.concatenate([how, np.ravel(merged), np.ravel(spatial)]).astype(np.int64)
        return _Plan(run, walk, launch.address(walk), items)

    def _share_rows(self, axis: tuple[int, ...], line_bytes: int) -> tuple[bool, int, int]:
        """Whether to fold rows of input by doubling, output rows of an item, and lines in memory meanwhile."""
        _, rows, window, stride, dilation, *_ = axis
        reach = (window - 1) * dilation
        share = min(rows, (TALL_BYTES // line_bytes - 1 - reach) // stride + 1)
        if share > 0:
            count = (share - 1) * stride + 1 + reach
            if count * (1 + window.bit_length()) < share * window:
                return True, share, count
        share = max(1, min(rows, LINE_BYTES // line_bytes))
        return False, share, share
