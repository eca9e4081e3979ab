"""What the host's side of all poolings shares: the walk over windows, with lanes and tiles by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from specops import launch
from specops.lowering import machine
from specops.lowering.axes import ceildiv, evened, merge
from specops.lowering.plans import Array, Strides
from specops.lowering.pool_axes import BatchAxis, Sliding, SpatialAxis
from specops.lowering.pool_packed import plane_table
from specops.lowering.walk import Walk, Words, walk_of
from specops.tensor import Tensor, packed_strides

LINE_BYTES = 1 << 14  # wanted for lines taken together, to stay in L1
PACKED_BYTES = 1 << 12  # wanted for planes that are packed: no slower, of shorter tables
TALL_BYTES = 1 << 16  # wanted for lines folded by doubling, of which neighbouring items share some
LONGEST_LINE = 1 << 17  # allowed for a wide window, in two buffers; half of it in four
EDGE = 1 << 12  # columns by which windows of a group lie apart, at most: 160 KiB of scratch memory
# Elements that do not adjoin are read one by one, whether windows are joined by groups or each by itself.
APART_GROUPED = 8  # times less must such windows span
PLANES_TOGETHER = 1 << 8  # of which one element each is stored
ITEM_BYTES = 1 << 15  # input of an item, roughly
# Of channels last, a multiple of which goes past the caches: that takes 0.65 to 1 of the time, of other numbers of
# channels it would take 0.9 to 1.5. Gradients of max pooling, of any number, take 0.8 to 0.9.
PAST_LANES = 16


class Plan(NamedTuple):
    """The walk for one set of strides, and the chunk that it is for."""

    chunk: launch.Chunk
    walk: Walk
    items: int
    table: Words | None = None  # whose address the walk has


def lanes_go_past(kernel: Any, settings: Words) -> bool:
    """Whether those of channels last do: all channels of a position at once, in whole vectors."""
    lanes, pitch = settings[[kernel.LANES, kernel.PITCH]]
    return bool(pitch > 1 and pitch == lanes and lanes % PAST_LANES == 0)


def run(
    plan: Plan,
    x: Array,
    out: Array,
    other: Array | None = None,
    *,
    large: bool,
    walk: Walk | None = None,
) -> None:
    """Run a plan on arrays of the strides that it was made for.

    Args:
        other: the third array that a chunk takes.
        walk: a copy of the plan's walk, for a chunk that writes to it.
    """
    plan.chunk.run(
        (walk or plan.walk).at,
        launch.address(x),
        launch.address(out),
        0 if other is None else launch.address(other),
        plan.items,
        large,
    )


NO_LANE = BatchAxis(1, 0, 0, 0, 0)


class Axes(NamedTuple):
    """What a walk is over: planes, and the axes that windows move along."""

    lane: BatchAxis  # whose elements stand side by side in a line; NO_LANE where none do
    batch: list[BatchAxis]  # the others of planes, one at least
    spatial: list[SpatialAxis]  # two at least, for lines are along the last of two

    def one_by_one(self) -> Axes:
        """The same without a lane: its planes are among the others."""
        batch = [axis for axis in (*self.batch, self.lane) if axis.size > 1]
        return Axes(NO_LANE, batch or self.batch, self.spatial)


class WalkParts(NamedTuple):
    """What a walk is made of: callers fill in settings that are their own, then `walk` joins the parts.

    Args:
        state_bytes: of a state in a line, 0 where it may not work by lines.
        table: of small planes that are packed; None of others.
    """

    state_bytes: int
    settings: Words
    batch: list[BatchAxis]
    spatial: list[SpatialAxis]
    items: int
    table: Words | None = None

    def walk(self) -> Walk:
        return walk_of(self.settings, self.batch, self.spatial)


class Windows:
    """Windows over the last dimensions of a tensor.

    Args:
        kernel: the module of the chunks that walk over them.
        input, output: the tensor that the windows lie on, and the one with an element for each of them.
        state_bytes: of a state in a line, the least first; where indices are wanted, one of those that hold the
            positions of an item's elements is taken, counted from the first.
        index_bytes: of an index; 0 where none are wanted.
        buffers: of lines, in scratch memory.
        counted: for each spatial dimension, the positions (from, to) that count in the divisor of an average.
        packs: whether small planes may be packed, of values alone or of averages.
        costly: whether a state takes much longer to make than to read, even without a position.
        grouped: times the stride that windows too long for lines span at least, so that groups of them, which share
            most columns, take no longer than each by itself; 0: none are grouped.
    """

    def __init__(
        self,
        kernel: Any,
        sliding: Sliding,
        input: Tensor,
        output: Tensor,
        *,
        state_bytes: Sequence[int],
        index_bytes: int = 0,
        buffers: int = 2,
        counted: Sequence[tuple[int, int]] = (),
        packs: bool = False,
        costly: bool = False,
        grouped: int = 0,
    ) -> None:
        self._packs = packs
        self._costly = costly
        self._grouped = grouped
        self._sums = f"f{state_bytes[0]}" if counted else None
        self._kernel = kernel
        self._sizes = input.sizes
        self._out_sizes = output.sizes
        self._batch = len(self._sizes) - len(sliding.window)
        self._windows = list(zip(*sliding, strict=True))
        self._element_bytes = input.numpy_dtype.itemsize
        self._state_bytes = state_bytes
        self._index_bytes = index_bytes
        self._buffers = buffers
        self._counted = counted or [(0, 0)] * len(sliding.window)
        self._plane = math.prod(self._sizes[self._batch :])

    def walk(
        self,
        strides: Strides,
        out_strides: Strides,
        other_strides: Strides = (),
        *,
        by_lines: bool = True,
    ) -> WalkParts:
        """A walk for arrays of these strides; without lines where a line would be too long or no state serves."""
        axes = self.axes(strides, out_strides, other_strides)
        if self._packs:
            packed = self._packed(axes.spatial, strides, out_strides)
            if packed is not None:
                return packed
        for state_bytes in self._state_bytes if by_lines else ():
            settings = self.settings(axes)
            items = self._set_lines(settings, state_bytes, axes)
            if items > 0:
                return WalkParts(state_bytes, settings, axes.batch, axes.spatial, items)
        return self.direct(axes, grouped=by_lines)

    def direct(self, axes: Axes, *, grouped: bool) -> WalkParts:
        """A walk window by window; `grouped`: long ones by groups, where that pays."""
        kernel = self._kernel
        axes = axes.one_by_one()
        settings = self.settings(axes)
        share = max(1, ITEM_BYTES // self._element_bytes)
        settings[kernel.SHARE] = share
        settings[kernel.EDGE] = self._edge(axes.spatial[-1]) if grouped else 0
        windows = math.prod(axis.out_size for axis in axes.spatial)
        planes = math.prod(axis.size for axis in axes.batch)
        return WalkParts(0, settings, axes.batch, axes.spatial, planes * ceildiv(windows, share))

    def planes(self, axes: Axes) -> WalkParts:
        """A walk plane by plane, several along the innermost of the batch axes together."""
        axes = axes.one_by_one()
        settings = self.settings(axes)
        share = min(PLANES_TOGETHER, max(1, axes.batch[-1].size))
        settings[self._kernel.SHARE] = share
        *outer, beside = (axis.size for axis in axes.batch)
        items = math.prod(outer) * ceildiv(beside, share)
        return WalkParts(0, settings, axes.batch, axes.spatial, items)

    def settings(self, axes: Axes) -> Words:
        """Those that walks by lines and window by window have in common."""
        kernel = self._kernel
        settings = np.zeros(kernel.SETTINGS, np.int64)
        settings[kernel.INDEX_BYTES] = self._index_bytes
        settings[kernel.PLANE] = self._plane
        settings[kernel.DENSE] = self._dense_step(axes.spatial)
        settings[kernel.BATCH] = len(axes.batch)
        settings[kernel.SPATIAL] = len(axes.spatial)
        settings[kernel.LANES] = settings[kernel.PITCH] = axes.lane.size
        settings[kernel.LANE_OUT] = axes.lane.out_step
        settings[kernel.LANE_OTHER] = axes.lane.other_step
        settings[kernel.LANE_WEIGHT] = axes.lane.weight
        return settings

    def set_scratch(self, settings: Words, lines: int, spare: int) -> None:
        """Set the bytes of scratch memory: of so many of lines in each buffer, and of a run that is not yet stored."""
        kernel = self._kernel
        buffer = ceildiv(lines + kernel.SLACK_BYTES, machine.CACHE_LINE) * machine.CACHE_LINE
        settings[kernel.BUFFER] = buffer
        settings[kernel.SCRATCH] = self._buffers * buffer + spare + kernel.VECTOR_BYTES

    def fits(self, state_bytes: int, axis: SpatialAxis) -> bool:
        """Whether lines of states of so many bytes along the last axis are not too long."""
        return (axis.reach + 1) * state_bytes * self._buffers <= 2 * LONGEST_LINE

    def axes(self, strides: Strides, out_strides: Strides, other_strides: Strides = ()) -> Axes:
        """What a walk for arrays of these strides is over."""
        other_strides = other_strides or (0,) * len(out_strides)
        weights = packed_strides(self._sizes)
        steps = zip(self._sizes, strides, out_strides, other_strides, weights, strict=True)
        axes = [BatchAxis(*axis) for axis in steps]
        first = self._batch
        along = zip(
            axes[first:], self._out_sizes[first:], self._windows, self._counted, strict=True
        )
        spatial = [
            SpatialAxis(axis.size, out_size, *window, *axis[1:], low, high)
            for axis, out_size, window, (low, high) in along
        ]
        if len(spatial) == 1:
            weight = max(1, self._plane)
            spatial.insert(0, SpatialAxis(1, 1, 1, 1, 1, 0, 0, 0, 0, weight, low=0, high=1))
        batch = axes[:first]
        lane = self._take_lane(batch, spatial[-1])
        merged = [BatchAxis(*axis) for axis in merge(batch)]
        return Axes(lane, merged or [NO_LANE], spatial)

    def _edge(self, axis: SpatialAxis) -> int:
        """By how many columns windows of a group may lie apart; 0 where each is joined by itself."""
        adjoin = axis.step == self._element_bytes
        least = axis.stride * ceildiv(self._grouped, 1 if adjoin else APART_GROUPED)
        grouped = self._grouped > 0 and axis.dilation == 1 and axis.window > max(least, EDGE)
        return EDGE if grouped else 0

    def _dense_step(self, spatial: list[SpatialAxis]) -> int:
        """Bytes from one position of a plane to the next in the input, where one step serves; else 0."""
        dense = merge((axis.size, axis.step, axis.weight) for axis in spatial)
        if not dense:
            return self._element_bytes
        (_, step, weight), *more = dense
        return step if not more and weight == 1 else 0

    def _take_lane(self, batch: list[BatchAxis], last: SpatialAxis) -> BatchAxis:
        """The batch axis whose elements adjoin, taken out of `batch`, where those of the last axis do not."""
        if last.step != self._element_bytes or last.size == 1:
            for axis in batch:
                if axis.size > 1 and axis.step == self._element_bytes:
                    batch.remove(axis)
                    return axis
        return NO_LANE

    def _packed(
        self, spatial: list[SpatialAxis], strides: Strides, out_strides: Strides
    ) -> WalkParts | None:
        """A walk for small planes whose states are packed; None for others, and where they do not adjoin."""
        kernel, size, state_bytes = self._kernel, self._element_bytes, self._state_bytes[0]
        *outer, rows, columns = spatial
        lanes, plane = kernel.VECTOR_BYTES // state_bytes, rows.pitch * columns.pitch
        # As many vectors as rows have otherwise, or fewer: 0.2 to 1 of the time.
        few = plane <= lanes * rows.out_size * ceildiv(columns.out_size, lanes)
        if outer or not few or plane * state_bytes > LINE_BYTES:
            return None
        for sizes, steps in ((self._sizes, strides), (self._out_sizes, out_strides)):
            if merge(zip(sizes, steps, strict=True)) != [(math.prod(sizes), size)]:
                return None
        planes = math.prod(self._sizes[: self._batch])
        together = min(planes, max(1, PACKED_BYTES // (plane * state_bytes)))
        kept = rows.pitch
        if rows.stride == 1 and (kept - rows.out_size) * columns.pitch >= lanes:
            # Without rows in which no window begins: 0.8 of the time of 13 x 13. A vector of them at least: more of a
            # plane is written than is kept, and must not reach the next one.
            kept = rows.out_size
        table = plane_table(rows, columns, kept, together, lanes, size, self._sums)
        settings = np.zeros(kernel.SETTINGS, np.int64)
        settings[kernel.LINE] = columns.pitch
        settings[kernel.PLANE_PITCH] = plane
        settings[kernel.PLANES] = together
        settings[kernel.TALL] = self._by_doubling(spatial[-2], rows.out_size)
        settings[kernel.KEPT] = kept * columns.pitch if kept < rows.pitch else 0
        settings[kernel.BUFFER] = table.states * state_bytes + kernel.SLACK_BYTES
        settings[kernel.TABLE_AT] = launch.address(table.words)
        settings[kernel.BATCH], settings[kernel.SPATIAL] = 1, 2
        plane_bytes = size * rows.size * columns.size
        out_bytes = size * rows.out_size * columns.out_size
        batch = [BatchAxis(planes, plane_bytes, out_bytes, 0, 0)]
        return WalkParts(
            state_bytes, settings, batch, spatial, ceildiv(planes, together), table.words
        )

    def _set_lines(self, settings: Words, state_bytes: int, axes: Axes) -> int:
        """Set how lines of such states are taken together; returns how many items there are, 0 if such do not serve."""
        kernel, size = self._kernel, self._element_bytes
        lane, batch, spatial = axes
        last = spatial[-1]
        out_n, stride, reach = last.out_size, last.stride, last.reach
        if not self.fits(state_bytes, last):
            return 0
        line = (out_n - 1) * stride + 1 + reach
        pitch = max(1, min(lane.size, LINE_BYTES // (state_bytes * min(line, 2 * reach + 1))))
        fits = max(LINE_BYTES // (state_bytes * pitch), 2 * reach + 1)
        tile = max(1, min(out_n, (fits - 1 - reach) // stride + 1))
        tile = evened(out_n, tile)  # of one width, not a narrow one at the end
        line = ((tile - 1) * stride + 1 + reach) * pitch
        tall, share, count = self._share_rows(spatial[-2], line * state_bytes)
        if self._index_bytes:
            held = kernel.farthest(8 * state_bytes, 8 * size)
            if self._positions(spatial, tile, share) > held:
                return 0
        planes = math.prod(axis.size for axis in batch)
        rows = math.prod(axis.out_size for axis in spatial[:-1])
        plane_bytes, together = count * line * state_bytes, 1
        beside = batch[-1].size
        if pitch == 1 and tile == out_n and share == rows and planes > 1:
            plane_bytes += kernel.GAP_BYTES
            together = max(1, min(beside, LINE_BYTES // plane_bytes))
        out_rows = spatial[-2].out_size
        blocks = ceildiv(out_rows, share) * (rows // max(1, out_rows))
        settings[kernel.PITCH] = pitch
        settings[kernel.TILE] = tile
        settings[kernel.SHARE] = share
        settings[kernel.LINE] = line
        settings[kernel.TALL] = tall
        settings[kernel.PLANES] = together
        spare = max(tile, pitch) * (size + 8 if self._index_bytes else size)
        self.set_scratch(settings, together * plane_bytes, spare)
        sets = planes // beside * ceildiv(beside, together)
        return sets * ceildiv(lane.size, pitch) * ceildiv(out_n, tile) * blocks

    @staticmethod
    def _positions(spatial: list[SpatialAxis], tile: int, share: int) -> int:
        """How many positions an item has from its first element to its last, at most."""
        outputs = [*(1 for _ in spatial[2:]), share, tile]
        positions = 1
        for count, axis in zip(outputs, spatial, strict=True):
            last = (count - 1) * axis.stride + axis.reach
            positions += min(axis.size - 1, last) * axis.weight
        return positions

    def _share_rows(self, axis: SpatialAxis, line_bytes: int) -> tuple[bool, int, int]:
        """Whether to fold rows of input by doubling, output rows of an item, and lines in memory meanwhile."""
        rows, stride, reach = axis.out_size, axis.stride, axis.reach
        share = min(rows, (TALL_BYTES // line_bytes - 1 - reach) // stride + 1)
        if share > 0 and self._by_doubling(axis, share):
            return True, share, (share - 1) * stride + 1 + reach
        share = max(1, min(rows, LINE_BYTES // line_bytes))
        return False, share, share

    def _by_doubling(self, axis: SpatialAxis, share: int) -> bool:
        """Whether so many rows of outputs are had by folding rows of input by doubling, not by joining all of each."""
        window, stride = axis.window, axis.stride
        count = (share - 1) * stride + 1 + axis.reach
        # States that take longer to make than to read are made once: those with positions of rows that move together.
        once = self._costly or (self._index_bytes > 0 and stride == 1)
        if once and count < share * window:
            return True
        return count * (1 + window.bit_length()) < share * window
