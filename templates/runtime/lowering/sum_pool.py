"""The host's side of sums over windows: see the sum_pool kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specops import geometry, launch
from specops.kernels import sum_pool as kernel
from specops.lowering import machine, pooling
from specops.lowering.plane_tables import packs
from specops.lowering.plans import Plans
from specops.lowering.pooling import Array, Plan, Strides, WalkParts, Windows, planned
from specops.tensor import Tensor

_LINES = launch.kernels(kernel.lines)
_DIRECT = launch.kernels(kernel.direct)
_PACKED = launch.kernels(kernel.packed)

GROUPED = 40  # see Windows
UNSCALED_POWER = 6  # most p for which float64 holds |x|**p of any x of at most 32 bits


class SumPool:
    """A sum over each window and what is made of it, for a fixed type and shape.

    Args:
        added: what a window's elements add to its sum: one of the kernel's POWERS.
        power: p of a norm; 0 for an average.
        counted: for each dimension, the positions (from, to) that count in the divisor of an average.
        function: that of Reduce which gives the same for windows that are all of a plane; None if none does.
    """

    def __init__(
        self,
        *,
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        added: str,
        power: float,
        counted: Sequence[tuple[int, int]],
        function: str | None,
        input: Tensor,
        output: Tensor,
    ) -> None:
        self._function = function
        self._reduction = None
        if function is not None:
            self._reduction = pooling.reduction(
                function, "propagates", window, strides, dilations, start_padding, input, output
            )
        self._dtype = input.dtype
        self._added = added
        self._power = power
        # Windows without elements, of an input that has none, make no lines.
        exact = added != "real" or input.dtype != "FLOAT64"
        self._by_lines = exact and power <= kernel.MOST_POWER and 0 not in window
        self._widths = [64] if added in ("power", "real") else sum_widths(input.dtype)
        # Whether no window's elements need to be scaled by the greatest of them.
        unscaled = power in range(UNSCALED_POWER + 1) and input.dtype != "FLOAT64"
        self._width = max(self._widths[0], sum_width(input.dtype, math.prod(window)))
        self._packs = power == 0 and self._by_lines and packs()
        self._windows = Windows(
            kernel,
            window,
            strides,
            dilations,
            start_padding,
            input,
            output,
            ranks=[self._width // 8],
            buffers=4,
            counted=counted,
            packs=self._packs,
            costly=added == "real",
            grouped=GROUPED if power == 0 or unscaled else 0,
        )
        elements = math.prod(output.sizes)
        self._empty = elements == 0
        self._moved = (math.prod(input.sizes) + elements) * input.numpy_dtype.itemsize
        self._large = self._moved >= machine.LARGE_BYTES
        self._output = output
        self._plans = Plans(self._plan)
        self._repairs = Plans(self._repair)

    def __call__(self, x: Array, out: Array) -> None:
        """Write what the windows of `x` give to `out`, both of the described shape and type, at any strides."""
        if self._empty:
            return
        if self._reduction is not None:
            self._reduction(x, out)
            return
        strides = x.strides, out.strides
        doubt = np.zeros(1, np.int64) if self._power > 1 else None
        pooling.run(self._plans[strides], x, out, doubt, large=self._large)
        if doubt is not None and doubt[0]:
            pooling.run(self._repairs[strides], x, out, large=self._large)

    def kernels(self) -> list[launch.Kernel]:
        """All that calls may run, whatever the strides and the window."""
        kernels = [_DIRECT(self._dtype)]
        if self._by_lines:
            kernels += [_LINES(self._dtype, width, self._added) for width in self._widths]
        if self._packs:
            kernels += [_PACKED(self._dtype, width) for width in self._widths]
        if self._function is not None:
            kernels += pooling.reduction_kernels(self._function, self._dtype)
        return kernels

    def _plan(self, strides: Strides, out_strides: Strides) -> Plan:
        power = self._power
        walk = self._windows.walk(strides, out_strides, by_lines=self._by_lines)
        if walk.table is not None:
            run = _PACKED(self._dtype, self._width)
        elif walk.rank_bytes:
            run = _LINES(self._dtype, self._width, self._added)
            exponent = power if self._added == "real" else int(power)
            walk.settings[kernel.EXPONENT] = np.array(exponent).view(np.int64)
            past = geometry.goes_past(self._output, out_strides, self._moved)
            walk.settings[kernel.PAST] = past and pooling.lanes_go_past(kernel, walk.settings)
        else:
            return self._direct(walk)
        tables = walk.settings, walk.batch, walk.spatial
        return planned(run, walk.items, *tables, table=walk.table)

    def _repair(self, strides: Strides, out_strides: Strides) -> Plan:
        """For norms made by lines, of which some are not certain to be right."""
        walk = self._windows.walk(strides, out_strides, by_lines=False)
        safe = kernel.SAFE_32 if self._width == 32 else kernel.SAFE_64
        for setting, limit in zip((kernel.SURE_FROM, kernel.SURE_TO), safe, strict=True):
            walk.settings[setting] = np.float64(limit ** (2 / self._power)).view(np.int64)
        return self._direct(walk)

    def _direct(self, walk: WalkParts) -> Plan:
        walk.settings[kernel.POWER] = np.float64(self._power).view(np.int64)
        return planned(_DIRECT(self._dtype), walk.items, walk.settings, walk.batch, walk.spatial)


FEW = {"FLOAT32": 256, "FLOAT16": 4096, "BFLOAT16": 4096}  # elements that float32 adds up well


def sum_width(dtype: str, elements: int) -> int:
    """Bits of the sums for windows of so many elements.

    >>> sum_width("FLOAT32", 9), sum_width("FLOAT32", 961)
    (32, 64)
    """
    return 64 if elements > FEW.get(dtype, 0) else 32


def sum_widths(dtype: str) -> list[int]:
    """Those that windows of any size have.

    >>> sum_widths("FLOAT16"), sum_widths("FLOAT64")
    ([32, 64], [64])
    """
    return [32, 64] if dtype in FEW else [64]
