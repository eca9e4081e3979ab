"""The host's side of max unpooling: see the max_unpool kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from specops import launch
from specops.kernels import max_unpool as kernel
from specops.lowering import machine, pooling
from specops.lowering.axes import Axis, ceildiv, coalesce, merge
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.pool_axes import BatchAxis
from specops.lowering.pooling import Plan
from specops.lowering.walk import walk_of
from specops.tensor import Tensor

_UNPOOL = launch.chunks_of(kernel.unpool)
_LANES = launch.chunks_of(kernel.lanes)

ITEMS = 64  # parts of the output for threads to share
OWN_ELEMENTS = 1 << 12  # of the output, wanted for small planes of an item: 0.3 to 0.85 of the time
# Of planes side by side that are an item, at most: 0.2 to 1 of the time of one line. Fewer, that there are more items,
# take up to 10 times as long, for threads write to the same lines then.
LANES_BYTES = 1 << 8


class _PlanPair(NamedTuple):
    """Both plans for one set of strides."""

    alone: Plan | None  # each item reads its own elements; None where there are no planes alike
    shared: Plan  # each reads all


def _given(
    sizes: Sequence[int], strides: Sequence[int], index_strides: Sequence[int]
) -> list[BatchAxis]:
    """The table of axes of the input, with the indices' strides."""
    axes = (Axis(*axis) for axis in zip(sizes, strides, index_strides, strict=True))
    merged = coalesce(axes) or [Axis(1, 0, 0)]
    return [BatchAxis(n, step, 0, index_step, 0) for n, step, index_step in merged]


class MaxUnpool:
    """Elements put where their indices say, and 0 elsewhere, for fixed types and shapes.

    An index beyond the output, or below 0, puts nothing anywhere; of equal indices the last one's element stays.
    Indices of pooled planes lie in the same planes of the output: first each item reads the elements of its own planes
    (0.3 to 0.6 of the time; side by side, as channels last, 0.01 to 0.4). Only if one of them belongs elsewhere is all
    done anew.

    Args:
        input: the tensor.
        indices: as the input, of UINT32, UINT64 or INT64: row-major positions in the output.
        output: of the input's type.
    """

    def __init__(self, *, input: Tensor, indices: Tensor, output: Tensor) -> None:
        self._sizes, self._out_sizes = input.sizes, output.sizes
        self._element_bytes = input.numpy_dtype.itemsize
        self._index_bytes = indices.numpy_dtype.itemsize
        self._elements = math.prod(output.sizes)
        self._given = math.prod(input.sizes)
        # Of the batch and the channels, where both have them alike.
        sizes = zip(self._sizes[:2], self._out_sizes[:2], strict=False)
        self._planes = math.prod(n for n, _ in takewhile(lambda pair: pair[0] == pair[1], sizes))
        moved = self._elements * self._element_bytes
        moved += self._given * (self._element_bytes + self._index_bytes)
        self._large = moved >= machine.LARGE_BYTES
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, indices: Array, out: Array) -> None:
        """Write 0 and the elements of `x` to `out`; any strides."""
        if self._elements == 0:
            return
        plan = self._plans[x.strides, indices.strides, out.strides]
        if plan.alone is not None:
            walk = plan.alone.walk.copy()  # other calls may be under way
            pooling.run(plan.alone, x, out, indices, large=self._large, walk=walk)
            if walk.block[kernel.STRAY] == 0:
                return
        pooling.run(plan.shared, x, out, indices, large=self._large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides."""
        return [run(8 * self._element_bytes) for run in (_UNPOOL, _LANES)]

    def _plan(self, strides: Strides, index_strides: Strides, out_strides: Strides) -> _PlanPair:
        given = _given(self._sizes, strides, index_strides)
        places = merge(zip(self._out_sizes, out_strides, strict=True))
        taken = [BatchAxis(n, step, 0, 0, 0) for n, step in places or [(1, self._element_bytes)]]
        settings = [0] * kernel.SETTINGS
        settings[kernel.GIVEN_AXES], settings[kernel.OUT_AXES] = len(given), len(taken)
        settings[kernel.INDEX_BYTES] = self._index_bytes
        settings[kernel.POSITIONS] = self._elements
        settings[kernel.OUT_STEP] = taken[0].step if len(taken) == 1 else 0

        def shared_by(share: int, elements: int) -> Plan:
            """Items of so many positions, each of which reads so many elements."""
            settings[kernel.SHARE], settings[kernel.GIVEN_SHARE] = share, elements
            items = ceildiv(self._elements, share)
            walk = walk_of(settings, given, taken)
            return Plan(_UNPOOL(8 * self._element_bytes), walk, items)

        planes = self._planes
        alone = self._lanes(strides, index_strides, out_strides)
        if alone is None and planes > 1:
            plane = self._elements // planes
            together = max(1, min(OWN_ELEMENTS // plane, planes // ITEMS))
            alone = shared_by(together * plane, together * (self._given // planes))
        return _PlanPair(alone, shared_by(ceildiv(self._elements, ITEMS), 0))

    def _lanes(self, strides: Strides, index_strides: Strides, out_strides: Strides) -> Plan | None:
        """Planes that lie side by side in all arrays, as channels last; None elsewhere."""
        size = self._element_bytes
        if min(len(strides), len(out_strides)) < 3 or self._sizes[:2] != self._out_sizes[:2]:
            return None
        adjoining = size, self._index_bytes, size
        places = merge(zip(self._out_sizes[2:], out_strides[2:], strict=True)) or [(1, 0)]
        if (strides[1], index_strides[1], out_strides[1]) != adjoining or len(places) > 1:
            return None
        number, beside = self._sizes[:2]
        given = _given(self._sizes[2:], strides[2:], index_strides[2:])
        batch = BatchAxis(number, strides[0], out_strides[0], index_strides[0], 0)
        together = LANES_BYTES // size
        settings = [0] * kernel.SETTINGS
        settings[kernel.GIVEN_AXES] = len(given)
        settings[kernel.INDEX_BYTES] = self._index_bytes
        settings[kernel.POSITIONS] = self._elements
        settings[kernel.OUT_STEP] = places[0][1]
        settings[kernel.SHARE] = math.prod(self._out_sizes[2:])
        settings[kernel.LANES], settings[kernel.TOGETHER] = beside, together
        items = number * ceildiv(beside, together)
        return Plan(_LANES(8 * size), walk_of(settings, given, [batch]), items)
