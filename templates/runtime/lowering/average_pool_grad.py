"""The host's side of the gradient of averages over windows: see the average_pool_grad kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specops import launch
from specops.kernels import average_pool_grad as kernel
from specops.lowering import machine, pooling
from specops.lowering.average_pool import counted
from specops.lowering.axes import ceildiv, merge
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.pool_axes import Sliding, SpatialAxis
from specops.lowering.pooling import Axes, Plan, Windows
from specops.lowering.sum_pool import sum_width, sum_widths
from specops.lowering.walk import walk_of
from specops.tensor import Tensor

_LINES = launch.chunks_of(kernel.lines)
_WHOLE = launch.chunks_of(kernel.whole)
_DIRECT = launch.chunks_of(kernel.direct)


class AveragePoolGrad:
    """What an average's input elements get of its windows' gradients, for a fixed type and shape.

    Args:
        window, strides, start_padding, end_padding: for each of the last `len(window)` dimensions.
        divisor: as of AveragePool.
        input: the gradient of the average's output.
        output: the gradient of its input; elements in no window get 0.
    """

    def __init__(
        self,
        *,
        window: Sequence[int],
        strides: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        divisor: str,
        input: Tensor,
        output: Tensor,
    ) -> None:
        self._dtype = input.dtype
        self._element_bytes = input.numpy_dtype.itemsize
        holders = math.prod(ceildiv(w, s) for w, s in zip(window, strides, strict=True))
        self._width = sum_width(input.dtype, holders)
        spatial = output.sizes[len(output.sizes) - len(window) :]
        self._windows = Windows(
            kernel,
            Sliding(window, strides, [1] * len(window), start_padding),
            output,
            input,
            state_bytes=[self._width // 8],
            buffers=4,
            counted=counted(spatial, start_padding, end_padding, divisor),
        )
        elements = math.prod(output.sizes)
        self._empty = elements == 0
        self._no_windows = math.prod(input.sizes) == 0
        self._moved = (math.prod(input.sizes) + elements) * self._element_bytes
        self._large = self._moved >= machine.LARGE_BYTES
        self._output = output
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Write the input's gradient to `out` from that of the output, `x`, at any strides."""
        if self._empty:
            return
        if self._no_windows:
            out[...] = 0
            return
        pooling.run(self._plans[x.strides, out.strides], x, out, large=self._large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides and the window."""
        widths = sum_widths(self._dtype)
        by_sums = [run(self._dtype, width) for run in (_LINES, _WHOLE) for width in widths]
        return [*by_sums, _DIRECT(self._dtype)]

    def _plan(self, strides: Strides, out_strides: Strides) -> Plan:
        axes = self._windows.axes(strides, out_strides)
        if self._has_whole_windows(axes.spatial):
            return self._of_whole(axes)
        if self._windows.fits(self._width // 8, axes.spatial[-1]):
            return self._by_lines(axes, out_strides)
        parts = self._windows.direct(axes, grouped=False)
        planes = math.prod(axis.size for axis in parts.batch)
        elements = math.prod(axis.size for axis in parts.spatial)
        items = planes * ceildiv(elements, int(parts.settings[kernel.SHARE]))
        return Plan(_DIRECT(self._dtype), parts.walk(), items)

    def _by_lines(self, axes: Axes, out_strides: Strides) -> Plan:
        state_bytes, lanes, beside = self._width // 8, axes.lane.size, axes.batch[-1].size
        rows = math.prod(axis.size for axis in axes.spatial[:-1])
        n, window = axes.spatial[-1].size, axes.spatial[-1].window
        line_states = pooling.LINE_BYTES // state_bytes
        pitch = max(1, min(lanes, line_states // min(n + window - 1, 2 * window - 1)))
        tile = max(1, min(n, max(line_states // pitch, 2 * window - 1) - window + 1))
        share = max(1, pooling.ITEM_BYTES // (tile * pitch * self._element_bytes))
        line_bytes = (tile + window - 1) * pitch * state_bytes
        together = 1
        if pitch == 1 and tile == n and share >= rows:
            plane_bytes = rows * n * self._element_bytes
            together = min(pooling.LINE_BYTES // line_bytes, pooling.ITEM_BYTES // plane_bytes)
            together = max(1, min(together, beside))
        settings = self._windows.settings(axes)
        settings[kernel.PITCH], settings[kernel.TILE], settings[kernel.SHARE] = pitch, tile, share
        settings[kernel.PLANES] = together
        spare = max(tile, pitch) * self._element_bytes
        self._windows.set_scratch(settings, together * line_bytes, spare)
        past = machine.goes_past(self._output, out_strides, self._moved)
        settings[kernel.PAST] = past and pooling.lanes_go_past(kernel, settings)
        planes = math.prod(axis.size for axis in axes.batch)
        sets = planes // beside * ceildiv(beside, together)
        items = sets * ceildiv(lanes, pitch) * ceildiv(n, tile) * ceildiv(rows, share)
        walk = walk_of(settings, axes.batch, axes.spatial)
        return Plan(_LINES(self._dtype, self._width), walk, items)

    def _has_whole_windows(self, spatial: list[SpatialAxis]) -> bool:
        """Whether each plane has one window, which holds all its elements, and these adjoin."""
        if any(axis.out_size != 1 or axis.window - axis.padding < axis.size for axis in spatial):
            return False
        steps = [(axis.size, axis.out_step) for axis in spatial]
        elements = math.prod(n for n, _ in steps)
        return merge(steps) in ([], [(elements, self._element_bytes)])

    def _of_whole(self, axes: Axes) -> Plan:
        """The plan for that: 0.03 to 0.2 of the time of lines."""
        axes = axes.one_by_one()
        elements = math.prod(axis.size for axis in axes.spatial)
        share = max(1, pooling.ITEM_BYTES // (elements * self._element_bytes))
        settings = self._windows.settings(axes)
        settings[kernel.PLANE], settings[kernel.SHARE] = elements, share
        items = ceildiv(math.prod(axis.size for axis in axes.batch), share)
        walk = walk_of(settings, axes.batch, axes.spatial)
        return Plan(_WHOLE(self._dtype, self._width), walk, items)
