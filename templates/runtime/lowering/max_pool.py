"""The host's side of the max_pool kernel: states by data type and plane, lanes and tiles by strides."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specops import launch
from specops.kernels import max_pool as kernel
from specops.lowering import machine, pooling
from specops.lowering.keys import keys_of
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.pool_axes import Sliding
from specops.lowering.pool_packed import packs
from specops.lowering.pool_reduction import reduction, reduction_chunks, whole_axes
from specops.lowering.pool_transposed import Limits, transposed_walk
from specops.lowering.pooling import Plan, WalkParts, Windows
from specops.tensor import Tensor, packed

if TYPE_CHECKING:
    from specops.lowering.search import Search

_LINES = launch.chunks_of(kernel.lines)
_DIRECT = launch.chunks_of(kernel.direct)
_PACKED = launch.chunks_of(kernel.packed)
_TRANSPOSED = launch.chunks_of(kernel.transposed)
_WHOLE = launch.chunks_of(kernel.whole)

GROUPED = 200  # see Windows; of one row float64 would do with 40, float32 with 100
# The shortest windows, along both axes, for which planes are transposed: they and longer ones take 0.05 to 1.05 of the
# time, others up to twice it. The latter where small planes are not packed.
SHORTEST, SHORTEST_NEAR = 9, 7
UNPACKED, UNPACKED_BESIDE, UNPACKED_NEAR = 7, 5, 3
PLANE = 1000  # positions of such planes that adjoin, at most: lines take 0.3 to 1 of the time of larger ones
READ, READ_PLANE = 4, 10  # see Limits
# Whole planes with indices are searched where that takes 0.25 to 1.1 of the time of lines: those of 64 bits always,
# others of so many elements in all; where many planes lie side by side, of more, and with so many positions at least,
# by the bits of an element. Elsewhere it takes up to twice as long.
SEARCHED = 1 << 15
MANY_BESIDE = 32
SEARCHED_BESIDE = 1 << 17
POSITIONS_BESIDE = {8: 49, 16: 100, 32: 49}
INDICES_PAST = 2  # times as many bytes as of elements from which indices go past the caches


def state_widths(width: int) -> list[int]:
    """Bits of the state of an element of so many bits with its position, the least first: see Windows, `state_bytes`.

    >>> state_widths(16), state_widths(32)
    ([32, 64], [64])
    """
    return {8: [32, 64], 16: [32, 64], 32: [64], 64: [128]}[width]


def _limits() -> Limits:
    """For which windows planes are transposed."""
    near, near_beside, far = UNPACKED_NEAR, UNPACKED_BESIDE, UNPACKED
    if packs():
        near, near_beside, far = SHORTEST_NEAR, SHORTEST_NEAR, SHORTEST
    return Limits(near, near_beside, far, plane=PLANE, read=READ, read_plane=READ_PLANE)


def _search(nan: str, axes: Sequence[int], input: Tensor, indices: Tensor) -> Search:
    """Of the positions of the greatest elements along whole axes."""
    # Only here: other poolings need not wait for its kernels.
    from specops.lowering.search import Search

    return Search(better="greater", tie="first", nan=nan, axes=axes, input=input, output=indices)


def _searched_beside(width: int, elements: int, positions: int) -> int:
    """How many whole planes may lie side by side where these are searched; 0 where none are."""
    if width == 64 or (elements >= SEARCHED_BESIDE and positions >= POSITIONS_BESIDE[width]):
        return sys.maxsize
    return MANY_BESIDE - 1 if elements >= SEARCHED else 0


class MaxPool:
    """Greatest element of each window, and where it stands, for fixed types and shape.

    Args:
        window, strides, dilations, start_padding: for each of the last `len(window)` dimensions.
        nan: "ignored" (loses to every number; a window of nothing but NaN gives NaN) or "propagates" (the first NaN
            wins).
        index_order: "row_major", or "column_major" within each spatial plane.
        input: the tensor.
        output: as the input, with the output's spatial sizes, which decide how far windows go.
        indices: as the output, of UINT32, UINT64 or INT64; None if not wanted.
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
        sliding = Sliding(window, strides, dilations, start_padding)
        width, least, greatest, flip, infinity = keys_of(input.dtype)
        self._nan = nan
        self._dtype = input.dtype
        self._column_major = index_order == "column_major"
        self._indexed = indices is not None
        self._reduction = self._search = None
        index_bytes = 0
        if indices is None:
            self._reduction = reduction("max", nan, sliding, input, output)
        else:
            index_bytes = indices.numpy_dtype.itemsize
            axes = whole_axes(sliding, input, output)
            self._most_beside = _searched_beside(width, math.prod(input.sizes), math.prod(window))
            if axes and self._most_beside:
                self._search = _search(nan, axes, input, indices)
        # Without indices a state is as wide as the element.
        self._state_bytes = [w // 8 for w in state_widths(width)] if self._indexed else [width // 8]
        self._windows = Windows(
            kernel,
            sliding,
            input,
            output,
            state_bytes=self._state_bytes,
            index_bytes=index_bytes,
            grouped=GROUPED,
            packs=not self._indexed and packs(),
        )

        blank = least if infinity is None else infinity | least
        nan_key = greatest if nan == "propagates" else least
        inf = infinity or 0
        self._kind = (width, infinity is not None)
        self._whole = _WHOLE(width)
        self._rule = (flip, nan_key, inf)
        self._blank = blank ^ flip
        if indices is None and infinity is not None:
            nans = greatest - infinity  # of each sign
            nan_key = nans if nan == "ignored" else -nans
        self._line_rule = (flip, nan_key, inf)

        elements = math.prod(output.sizes)
        self._empty = elements == 0
        moved = (math.prod(input.sizes) + elements) * (width // 8) + elements * index_bytes
        self._large = moved >= machine.LARGE_BYTES
        self._past = (output, moved) if indices is None else (indices, moved // INDICES_PAST)
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array, indices: Array | None = None) -> None:
        """Write the greatest elements of `x` to `out`, and where they stand to `indices`; any strides."""
        if self._empty:
            return
        if self._reduction is not None:
            self._reduction(x, out)
            return
        plan = self._plans[x.strides, out.strides, () if indices is None else indices.strides]
        if self._search is not None and indices is not None and plan.chunk is self._whole:
            self._search(x, indices)
        pooling.run(plan, x, out, indices, large=self._large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides and the plane."""
        chunks = [*map(self._lines, self._state_bytes), _DIRECT(*self._kind)]
        if self._indexed:
            chunks.append(self._whole)
            one = packed(self._dtype, (1,))
            return chunks + _search(self._nan, (0,), one, packed("INT64", (1,))).chunks()
        chunks.append(_TRANSPOSED(*self._kind))
        if packs():
            chunks.append(_PACKED(*self._kind))
        return chunks + reduction_chunks("max", self._dtype)

    def _lines(self, state_bytes: int) -> launch.Chunk:
        return _LINES(*self._kind, 8 * state_bytes if self._indexed else 0)

    def _plan(self, strides: Strides, out_strides: Strides, index_strides: Strides) -> Plan:
        parts, run, rule = self._walk(strides, out_strides, index_strides)
        output, moved = self._past
        past = machine.goes_past(output, index_strides or out_strides, moved)
        parts.settings[kernel.PAST] = past and pooling.lanes_go_past(kernel, parts.settings)
        parts.settings[kernel.COLUMN_MAJOR] = self._column_major
        parts.settings[kernel.RULE : kernel.RULE + 3] = rule
        parts.settings[kernel.BLANK] = self._blank
        return Plan(run, parts.walk(), parts.items, parts.table)

    def _walk(
        self, strides: Strides, out_strides: Strides, index_strides: Strides
    ) -> tuple[WalkParts, launch.Chunk, tuple[int, int, int]]:
        """The parts of the walk, the chunk that it is for, and the rule of its states."""
        if not self._indexed:
            axes = self._windows.axes(strides, out_strides)
            parts = transposed_walk(
                kernel, axes, self._state_bytes[0], self._state_bytes[0], _limits()
            )
            if parts is not None:
                return parts, _TRANSPOSED(*self._kind), self._line_rule
        if self._search is not None:
            axes = self._windows.axes(strides, out_strides, index_strides)
            if axes.lane.size <= self._most_beside:
                return self._windows.planes(axes), self._whole, self._rule
        parts = self._windows.walk(strides, out_strides, index_strides)
        if parts.table is not None:
            return parts, _PACKED(*self._kind), self._line_rule
        if parts.state_bytes:
            return parts, self._lines(parts.state_bytes), self._line_rule
        return parts, _DIRECT(*self._kind), self._rule
