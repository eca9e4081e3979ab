"""The host's side of the max_pool kernel: ranks by data type and plane, lanes and tiles by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specops import geometry, launch
from specops.kernels import max_pool as kernel
from specops.tensor import Tensor

Array = npt.NDArray[Any]

_LINES = launch.Kernel(kernel.lines, kernel.lines_parallel)
_DIRECT = launch.Kernel(kernel.direct, kernel.direct_parallel)

_INFINITY = {"FLOAT16": 0x7C00, "BFLOAT16": 0x7F80, "FLOAT32": 0x7F800000, "FLOAT64": 0x7FF << 52}
_WIDTH = {"BFLOAT16": 16, "BOOL": 8}  # the others end in their width
_SIGNED: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_PLANS = 64  # sets of strides remembered

LINE_BYTES = 1 << 15  # wanted for each of the two lines, to stay in L1 and L2
LONGEST_LINE = 1 << 17  # allowed for a wide window
ITEM_BYTES = 1 << 15  # input of an item, roughly
LARGE_BYTES = 1 << 18  # input and output from which a second thread pays


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    run: launch.Kernel
    how: npt.NDArray[np.int64]
    batch: npt.NDArray[np.int64]
    spatial: npt.NDArray[np.int64]
    rule: tuple[Any, ...]
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
        width = _WIDTH.get(input.dtype) or int(input.dtype.lstrip("BFINTLOAU"))
        self._item_size = width // 8
        self._index_size = 0
        if indices is not None:
            self._index_size = 4 if indices.dtype.endswith("32") else 8
        self._plane = math.prod(self._sizes[self._batch :])
        self._wide, wide_bytes = self._choose_rank(width)
        self._rank_size = wide_bytes if indices is not None else self._item_size

        signed = _SIGNED[width]
        least, greatest = -(1 << (width - 1)), (1 << (width - 1)) - 1
        infinity = _INFINITY.get(input.dtype)
        unsigned = input.dtype == "BOOL" or input.dtype.startswith("UINT")
        blank = least if infinity is None else infinity | least
        flip = least if unsigned else 0
        lowest_key = least
        nan_key = greatest if nan == "extreme" else lowest_key
        inf = None if infinity is None else signed(infinity)
        self._blank = signed(blank ^ flip)
        self._rule = (signed(flip), signed(nan_key), inf)
        # Without positions the least rank is padding's alone, so NaN that loses ranks second to it.
        nan_rank = max(nan_key, least + 1)
        self._line_rule = (signed(flip), signed(nan_rank if indices is None else nan_key), inf)

        elements = math.prod(self._out_sizes)
        self._empty = elements == 0
        moved = math.prod(self._sizes) + elements
        self._large = moved * self._item_size + elements * self._index_size >= LARGE_BYTES
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}

    def _choose_rank(self, width: int) -> tuple[Any, int]:
        """What tells the kernel the width of a rank with positions, and its bytes; 0 where none is wide enough."""
        if self._index_size == 0:
            return None, width // 8
        for rank in (32, 64, 128):
            if rank > width and self._plane < 1 << min(rank - width - 1, 62):
                zero = np.int64(0)
                return {32: np.int32(0), 64: zero, 128: (zero, zero)}[rank], rank // 8
        return None, 0

    def __call__(self, x: Array, out: Array, indices: Array | None = None) -> None:
        """Write the greatest elements of `x` to `out`, and where they stand to `indices`; any strides."""
        index_strides = () if indices is None else indices.strides
        strides = (x.strides, out.strides, index_strides)
        plan = self._plans.get(strides)
        if plan is None:
            if self._empty:
                return
            plan = self._plan(*strides)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[strides] = plan
        run, how, batch, spatial, rule, items = plan
        run(
            (
                how,
                batch,
                spatial,
                launch.address(x),
                launch.address(out),
                0 if indices is None else launch.address(indices),
                *rule,
            ),
            items,
            large=self._large,
            alive=(x, out, indices),
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
        rule: tuple[Any, ...]
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
            run, rule = _DIRECT, (*self._rule, self._blank)
            items = planes * -(-rows * out_n // share)
        else:
            pitch = max(1, min(lane[0], LINE_BYTES // (rank * min(line, 2 * reach + 1))))
            fits = max(LINE_BYTES // (rank * pitch), 2 * reach + 1)
            tile = max(1, min(out_n, (fits - 1 - reach) // stride + 1))
            length = (tile - 1) * stride + 1 + reach
            share = max(1, min(rows, ITEM_BYTES // (length * pitch * size)))
            how[kernel.LANES : kernel.LANE_WEIGHT + 1] = (lane[0], pitch, *lane[2:])
            how[kernel.TILE] = tile
            how[kernel.ROWS] = share
            # A vector beyond each line is written; of every second rank, one more is read.
            bytes_of_line = length * pitch * rank + 4 * kernel.VECTOR_BYTES
            how[kernel.SCRATCH] = 2 * (-(-bytes_of_line // 64) * 64)
            run, rule = _LINES, (self._wide, *self._line_rule, self._blank)
            items = planes * -(-lane[0] // pitch) * -(-out_n // tile) * -(-rows // share)
        return _Plan(
            run,
            how,
            np.array(merged or [(1, 0, 0, 0, 0)], np.int64).reshape(-1, 5),
            np.array(spatial, np.int64),
            rule,
            items,
        )
