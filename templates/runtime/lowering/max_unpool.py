"""The host's side of max unpooling: see the max_pool kernel."""

from __future__ import annotations

import math

import numpy as np

from specops import geometry, launch
from specops.kernels import max_pool as kernel
from specops.lowering import pooling
from specops.lowering.plans import Plans
from specops.lowering.pooling import Array, Plan, Strides, planned
from specops.tensor import Tensor

_UNPOOL = launch.kernels(kernel.unpool)

ITEMS = 64  # parts of the output for threads to share


class MaxUnpool:
    """Elements put where their indices say, and 0 elsewhere, for fixed types and shapes.

    An index beyond the output, or below 0, puts nothing anywhere; of equal indices the last one's element stays.

    Args:
        input: the tensor.
        indices: as the input, of UINT32, UINT64 or INT64: row-major positions in the output.
        output: of the input's type.
    """

    def __init__(self, *, input: Tensor, indices: Tensor, output: Tensor) -> None:
        self._sizes, self._out_sizes = input.sizes, output.sizes
        self._item_bytes = input.numpy_dtype.itemsize
        self._index_bytes = indices.numpy_dtype.itemsize
        self._elements = math.prod(output.sizes)
        given = math.prod(input.sizes)
        moved = self._elements * self._item_bytes + given * (self._item_bytes + self._index_bytes)
        self._large = moved >= pooling.LARGE_BYTES
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, indices: Array, out: Array) -> None:
        """Write 0 and the elements of `x` to `out`; any strides."""
        if self._elements == 0:
            return
        plan = self._plans[x.strides, indices.strides, out.strides]
        pooling.run(plan, x, out, indices, large=self._large)

    def kernels(self) -> list[launch.Kernel]:
        """All that calls may run, whatever the strides."""
        return [_UNPOOL(8 * self._item_bytes)]

    def _plan(self, strides: Strides, index_strides: Strides, out_strides: Strides) -> Plan:
        axes = [
            geometry.Axis(*axis) for axis in zip(self._sizes, strides, index_strides, strict=True)
        ]
        given = [(n, step, 0, index_step, 0) for n, step, index_step in geometry.coalesce(axes)]
        places = list(zip(self._out_sizes, out_strides, strict=True))
        taken = [(n, step, 0, 0, 0) for n, step in geometry.merge(places)]
        given, taken = given or [(1, 0, 0, 0, 0)], taken or [(1, self._item_bytes, 0, 0, 0)]
        how = np.zeros(kernel.SETTINGS, np.int64)
        how[kernel.BATCH], how[kernel.SPATIAL] = len(given), len(taken)
        how[kernel.WIDTH] = self._index_bytes
        how[kernel.PLANE] = self._elements
        how[kernel.DENSE] = taken[0][1] if len(taken) == 1 else 0
        share = -(-self._elements // ITEMS)
        how[kernel.ROWS] = share
        items = -(-self._elements // share)
        return planned(_UNPOOL(8 * self._item_bytes), items, how, given, taken)
