"""The host's side of sums over windows: see the sum_pool kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specops import launch
from specops.kernels import sum_pool as kernel
from specops.lowering import machine, pooling
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.pool_axes import Sliding
from specops.lowering.pool_packed import packs
from specops.lowering.pool_reduction import reduction, reduction_chunks
from specops.lowering.pool_transposed import TILE, Limits, transposed_walk
from specops.lowering.pooling import Plan, WalkParts, Windows
from specops.tensor import Tensor

_LINES = launch.chunks_of(kernel.lines)
_DIRECT = launch.chunks_of(kernel.direct)
_PACKED = launch.chunks_of(kernel.packed)
_TRANSPOSED = launch.chunks_of(kernel.transposed)

GROUPED = 40  # see Windows
# The shortest windows, along both axes, for which planes are transposed: of types of 16 bits and where small planes are
# not packed, of others, and where powers, or conversions of float16 without AVX-512, take most of the time.
SHORT, SHORTEST, COSTLY = 5, 7, 3
LONGEST = 16  # of windows whose sums are as wide as elements: their errors grow with the window
READ = 40  # see Limits
UNSCALED_POWERS = range(1, 7)  # p of which float64 holds |x|**p of any x of at most 32 bits


class SumPool:
    """A sum over each window and what is made of it, for a fixed type and shape.

    Args:
        p: of a norm; None for an average.
        counted: for each dimension, the positions (from, to) that count in the divisor of an average.
        function: that of Reduce which gives the same for windows that are all of a plane; None if none does.
    """

    def __init__(
        self,
        *,
        sliding: Sliding,
        p: float | None,
        counted: Sequence[tuple[int, int]],
        function: str | None,
        input: Tensor,
        output: Tensor,
    ) -> None:
        self._function = function
        self._reduction = None
        if function is not None:
            self._reduction = reduction(function, "propagates", sliding, input, output)
        self._dtype = input.dtype
        self._element_bytes = input.numpy_dtype.itemsize
        self._p = p or 0.0  # 0: an average
        self._has_roots = self._p > 1
        self._operation = operation(p)
        # Windows without elements, of an input that has none, make no lines.
        exact = self._operation != "lp_real" or input.dtype != "FLOAT64"
        self._by_lines = exact and self._p <= kernel.MOST_POWER and 0 not in sliding.window
        self._widths = [64] if self._operation in ("lp", "lp_real") else sum_widths(input.dtype)
        # Whether no window's elements need to be scaled by the greatest of them.
        unscaled = p is None or (p in UNSCALED_POWERS and input.dtype != "FLOAT64")
        self._width = max(self._widths[0], sum_width(input.dtype, math.prod(sliding.window)))
        self._packs = p is None and self._by_lines and packs()
        self._windows = Windows(
            kernel,
            sliding,
            input,
            output,
            state_bytes=[self._width // 8],
            buffers=4,
            counted=counted,
            packs=self._packs,
            costly=self._operation == "lp_real",
            grouped=GROUPED if unscaled else 0,
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
        doubt = np.zeros(1, np.int64) if self._has_roots else None
        pooling.run(self._plans[strides], x, out, doubt, large=self._large)
        if doubt is not None and doubt[0]:
            pooling.run(self._repairs[strides], x, out, large=self._large)

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides and the window."""
        chunks = [_DIRECT(self._dtype)]
        if self._by_lines:
            kinds = [(self._dtype, width, self._operation) for width in self._widths]
            chunks += [chunk(*kind) for chunk in (_LINES, _TRANSPOSED) for kind in kinds]
        if self._packs:
            chunks += [_PACKED(self._dtype, width) for width in self._widths]
        if self._function is not None:
            chunks += reduction_chunks(self._function, self._dtype)
        return chunks

    def _plan(self, strides: Strides, out_strides: Strides) -> Plan:
        parts, run = self._walk(strides, out_strides)
        if run is None:
            return self._direct(parts)
        real = self._operation == "lp_real"
        parts.settings[kernel.EXPONENT] = np.float64(self._p).view(np.int64) if real else self._p
        past = machine.goes_past(self._output, out_strides, self._moved)
        parts.settings[kernel.PAST] = past and pooling.lanes_go_past(kernel, parts.settings)
        return Plan(run, parts.walk(), parts.items, parts.table)

    def _walk(
        self, strides: Strides, out_strides: Strides
    ) -> tuple[WalkParts, launch.Chunk | None]:
        """The parts of the walk, and the chunk that it is for; None for that which works window by window."""
        if self._by_lines:
            axes = self._windows.axes(strides, out_strides)
            limits = _limits(self._dtype, self._width, self._operation)
            parts = transposed_walk(kernel, axes, self._element_bytes, self._width // 8, limits)
            if parts is not None:
                return parts, _TRANSPOSED(self._dtype, self._width, self._operation)
        parts = self._windows.walk(strides, out_strides, by_lines=self._by_lines)
        if parts.table is not None:
            return parts, _PACKED(self._dtype, self._width)
        if parts.state_bytes:
            return parts, _LINES(self._dtype, self._width, self._operation)
        return parts, None

    def _repair(self, strides: Strides, out_strides: Strides) -> Plan:
        """For norms made by lines, of which some are not certain to be right."""
        parts = self._windows.walk(strides, out_strides, by_lines=False)
        safe = kernel.SAFE_32 if self._width == 32 else kernel.SAFE_64
        for setting, limit in zip((kernel.SURE_FROM, kernel.SURE_TO), safe, strict=True):
            parts.settings[setting] = np.float64(limit ** (2 / self._p)).view(np.int64)
        return self._direct(parts)

    def _direct(self, parts: WalkParts) -> Plan:
        parts.settings[kernel.POWER] = np.float64(self._p).view(np.int64)
        return Plan(_DIRECT(self._dtype), parts.walk(), parts.items)


def _limits(dtype: str, width: int, operation: str) -> Limits:
    """For which windows planes are transposed: it takes 0.1 to 1.05 of the time of lines."""
    wide = dtype == "FLOAT64" or (packs() and dtype == "FLOAT32")
    shortest = SHORTEST if wide else SHORT
    if operation in ("lp", "lp_real") or (dtype == "FLOAT16" and not packs()):
        shortest = COSTLY
    longest = LONGEST if dtype == f"FLOAT{width}" else None
    return Limits(
        near=shortest,
        near_beside=shortest,
        far=shortest,
        plane=TILE,
        read=READ,
        read_plane=READ,
        longest=longest,
    )


def operation(p: float | None) -> str:
    """What the kernel's `lines` calls it.

    >>> operation(None), operation(2), operation(3), operation(1.5)
    ('average', 'l2', 'lp', 'lp_real')
    """
    if p is None:
        return "average"
    by_p = {1.0: "l1", 2.0: "l2"}
    return by_p.get(p, "lp" if float(p).is_integer() else "lp_real")


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
