"""The host's side of the gradient of max pooling: see the max_pool_grad kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specops import launch
from specops.kernels import max_pool
from specops.kernels import max_pool_grad as kernel
from specops.lowering import machine, pooling
from specops.lowering.axes import ceildiv, merge
from specops.lowering.keys import keys_of
from specops.lowering.max_pool import GROUPED, state_widths
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.pool_axes import Sliding, SpatialAxis
from specops.lowering.pooling import Plan, Windows
from specops.tensor import Tensor

_GRADIENT = launch.chunks_of(kernel.gradient)
_POSITIONS = launch.chunks_of(max_pool.positions)
_DIRECT = launch.chunks_of(max_pool.direct)

SUM_BYTES = 1 << 17  # of a block of positions, in scratch memory
# The same of planes side by side, of which a block has few positions, and more windows that others look at, too: 0.5 to
# 0.8 of the time.
SIDE_BY_SIDE_BYTES = 1 << 19
PLANE_BYTES = 1 << 15  # the same, wanted for planes that are an item together
# Places of a window, at most, that are each compared with what the lanes found: with more that takes 1.1 to 2 times as
# long as giving lane by lane. Sums of elements of 16 bits are half as wide as those of others.
PLACES_16 = kernel.MOST_PLACES
PLACES_IN_BLOCKS = 9  # of others, where a plane is cut into blocks
PLACES = 4  # of others, where it is not


class MaxPoolGrad:
    """What the greatest elements of windows get of the windows' gradients, for a fixed type and shape.

    Args:
        window, strides, dilations, start_padding: for each of the last `len(window)` dimensions.
        nan: as of MaxPool. Of equal elements the first gets all.
        input: the tensor that was pooled.
        gradient: the gradient of what max pooling gave.
        output: as the input: its gradient; elements that are no window's greatest get 0.
    """

    def __init__(
        self,
        *,
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        nan: str,
        input: Tensor,
        gradient: Tensor,
        output: Tensor,
    ) -> None:
        self._output = output
        self._dtype = input.dtype
        self._width, least, greatest, _, infinity = keys_of(input.dtype)
        width = self._width
        self._plane = input.sizes[len(input.sizes) - len(window) :]
        self._rule = (0, greatest if nan == "propagates" else least, infinity or 0)
        self._windows = Windows(
            max_pool,
            Sliding(window, strides, dilations, start_padding),
            input,
            gradient,
            state_bytes=[state // 8 for state in state_widths(width)],
            index_bytes=8,
            grouped=GROUPED,
        )
        sides = zip(window, strides, dilations, strict=True)
        # Whether no two windows have an element in common.
        self._disjoint = all((w - 1) * dilation < stride for w, stride, dilation in sides)
        self._places = math.prod(window)
        elements = math.prod(input.sizes)
        self._empty = elements == 0
        self._no_windows = math.prod(gradient.sizes) == 0
        self._sum_bytes = 4 if width == 16 else 8
        self._moved = (2 * elements + math.prod(gradient.sizes)) * (width // 8)
        self._large = self._moved >= machine.LARGE_BYTES
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, gradient: Array, out: Array) -> None:
        """Write the gradient of `x` to `out` from that of its pooled windows; any strides."""
        if self._empty:
            return
        if self._no_windows:
            out[...] = 0
            return
        plan = self._plans[x.strides, out.strides, gradient.strides]
        pooling.run(plan, x, out, gradient, large=self._large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides and the plane."""
        find = [_POSITIONS(self._width, width) for width in state_widths(self._width)]
        place_by_place = self._places <= self._most_places(in_blocks=True)
        give = [
            _GRADIENT(self._dtype, disjoint, side_by_side)
            for disjoint in ((False, True) if self._disjoint else (False,))
            for side_by_side in ((False, True) if place_by_place else (False,))
        ]
        return [*give, *find, _DIRECT(self._width, True)]

    def _most_places(self, *, in_blocks: bool) -> int:
        """Places of a window, at most, that are each compared with what the lanes found."""
        if self._width == 16:
            return PLACES_16
        return PLACES_IN_BLOCKS if in_blocks else PLACES

    def _plan(self, strides: Strides, out_strides: Strides, gradient_strides: Strides) -> Plan:
        parts = self._windows.walk(strides, out_strides, gradient_strides)
        settings = parts.settings
        lanes, pitch = int(settings[kernel.LANES]), int(settings[kernel.PITCH])
        settings[kernel.RULE : kernel.RULE + 3] = self._rule
        plane = math.prod(self._plane)
        most = SUM_BYTES if pitch == 1 else SIDE_BY_SIDE_BYTES
        block = min(plane, max(1, most // (self._sum_bytes * pitch)))
        settings[kernel.BLOCK] = block
        settings[kernel.OUT_DENSE] = self._out_step(parts.spatial)
        windows = max(1, math.prod(axis.out_size for axis in parts.spatial))
        small = PLANE_BYTES // (self._sum_bytes * block * pitch)
        beside = parts.batch[-1].size
        together = max(1, min(kernel.FOUND // (windows * pitch), small, beside))
        settings[kernel.SEVERAL] = together
        blocks = _blocks(self._plane, block)
        planes = math.prod(axis.size for axis in parts.batch)
        sets = planes // beside * ceildiv(beside, together) * ceildiv(lanes, pitch)
        find = _DIRECT(self._width, True)
        if parts.state_bytes:
            find = _POSITIONS(self._width, 8 * parts.state_bytes)
        settings[kernel.FIND] = find.address()
        past = machine.goes_past(self._output, out_strides, self._moved)
        settings[kernel.PAST] = past and pitch in (1, lanes)
        lanes_adjoin = pitch == 1 or settings[kernel.LANE_OUT] == self._width // 8
        disjoint = self._disjoint and settings[kernel.OUT_DENSE] > 0 and lanes_adjoin
        most_places = self._most_places(in_blocks=blocks > 1)
        gradients_adjoin = settings[kernel.LANE_OTHER] == self._width // 8
        side_by_side = self._places <= most_places and pitch > 1 and gradients_adjoin
        run = _GRADIENT(self._dtype, bool(disjoint), bool(side_by_side))
        return Plan(run, parts.walk(), sets * blocks)

    def _out_step(self, spatial: list[SpatialAxis]) -> int:
        """Bytes from one position of a plane to the next in the output, where one step serves; else 0."""
        merged = merge((axis.size, axis.out_step) for axis in spatial)
        return merged[0][1] if len(merged) == 1 else 0


def _blocks(sizes: Sequence[int], limit: int) -> int:
    """How many blocks of at most `limit` places that adjoin a plane has, cut as the kernel's `_cut` cuts it.

    >>> _blocks((5, 8), 24)
    2
    """
    count = 1
    for n in reversed(sizes):
        size = max(1, min(n, limit))
        limit //= size
        count *= ceildiv(n, size)
    return count
