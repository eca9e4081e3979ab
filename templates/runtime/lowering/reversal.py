"""Outputs of which an axis goes the other way than in the input: computed the input's way, then reversed in place."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from specops import launch
from specops.kernels import reversal as kernel
from specops.lowering.axes import Axis, coalesce, elements, table
from specops.lowering.plans import Array, Strides
from specops.lowering.walk import Walk, walk_of
from specops.tensor import Tensor

_REVERSE = launch.chunks_of(kernel.reverse)

LEAST_BYTES = 1 << 12  # of an output that is worth a second chunk
# Of a step in the input: elements further apart are read one by one, whichever way.
NEAR_BYTES = 1 << 7
# An axis whose elements adjoin is reversed if it has more bytes than this, or if the next axis outside is of its kind,
# kept or reduced: 0.01 to 0.8 of the time. Others would take up to 2.5.
FEW_BYTES = 1 << 4
# An axis with runs inside, along an axis of its kind, is reversed if a step along it is at most so many bytes: 0.15 to
# 0.9 of the time, longer ones up to 2. A reduced axis up to NEAR_BYTES: 0.2 to 0.9.
RUN_BYTES = 24
PAIRS = 64  # of an item, at most: threads share those of longer runs


class Reversal(NamedTuple):
    """The pairs of elements that change places along an axis of an output."""

    walk: Walk
    items: int
    one: int  # bytes from the output's element [0, 0, ..] to the one, and to the other of the first pair
    other: int


class Direction(NamedTuple):
    """Which way an output is computed, and what is reversed then."""

    strides: Strides
    shift: int  # bytes to what is its element [0, 0, ..] meanwhile
    reversals: tuple[Reversal, ...]


class _OutputAxis(NamedTuple):
    number: int
    reduced: bool  # its kind: reduced or kept
    size: int
    stride: int  # bytes, in the input
    out_stride: int


def direction(
    output: Tensor,
    axes: Collection[int],
    strides: Strides,
    out_strides: Strides,
    *,
    marks: bool = False,
    copies: bool = False,
) -> Direction:
    """The input's way, along axes where elements would be stored one by one else, or in runs of a few.

    Args:
        axes: the reduced ones of the input, which the output may lack.
        marks: are stored, which stand where their indices say along reduced axes: no reversal there. Over runs it would
            take 1.4 to 3.5 times as long.
        copies: of kept axes along which the input repeats, the first element is computed, and copied afterwards.
    """
    sizes, element_bytes = output.sizes, output.numpy_dtype.itemsize
    if len(out_strides) < len(strides):
        strides, axes = tuple(s for a, s in enumerate(strides) if a not in axes), ()
    if not any(s * out < 0 for s, out in zip(strides, out_strides, strict=True)):
        return Direction(out_strides, 0, ())  # of most: soon, as each new shape is asked
    if copies:
        repeated = (s == 0 and a not in axes for a, s in enumerate(strides))
        sizes = tuple(1 if once else n for n, once in zip(sizes, repeated, strict=True))
    reversed_axes = []
    if math.prod(sizes) * element_bytes >= LEAST_BYTES:
        order = [
            _OutputAxis(a, a in axes, n, stride, out_stride)
            for a, (n, stride, out_stride) in enumerate(
                zip(sizes, strides, out_strides, strict=True)
            )
            if n > 1
        ]
        order.sort(key=lambda axis: -abs(axis.out_stride))
        for outer, axis, inner in zip([None, *order], order, [*order[1:], None], strict=False):
            if _pays(outer, axis, inner, element_bytes, marks):
                reversed_axes.append(axis.number)
    taken = tuple(-s if a in reversed_axes else s for a, s in enumerate(out_strides))
    shift = sum((sizes[a] - 1) * out_strides[a] for a in reversed_axes)
    return Direction(taken, shift, _reversals(sizes, out_strides, reversed_axes))


def _pays(
    outer: _OutputAxis | None,
    axis: _OutputAxis,
    inner: _OutputAxis | None,
    element_bytes: int,
    marks: bool,
) -> bool:
    """Whether the output had better be reversed along an axis, with what lies next outside and inside it."""
    opposite = axis.stride * axis.out_stride < 0
    if not opposite or abs(axis.stride) > NEAR_BYTES or (marks and axis.reduced):
        return False
    if abs(axis.out_stride) == element_bytes:
        alike = outer is not None and outer.reduced == axis.reduced
        return alike or axis.size * element_bytes > FEW_BYTES
    alike = inner is not None and inner.reduced == axis.reduced
    longest = NEAR_BYTES if axis.reduced else RUN_BYTES
    return alike and abs(axis.out_stride) <= longest and not marks


def _reversals(
    sizes: Sequence[int], strides: Strides, reversed_axes: Collection[int]
) -> tuple[Reversal, ...]:
    """Along these axes of an output, those that adjoin together."""
    lowest, axes = 0, []
    for a, (n, stride) in enumerate(zip(sizes, strides, strict=True)):
        lowest += min(0, (n - 1) * stride)
        step = abs(stride)
        axes.append(Axis(n, step, -step if a in reversed_axes else step))
    axes = coalesce(sorted(axes, key=lambda axis: -axis.stride))
    return tuple(_reversal(axes, i, lowest) for i, axis in enumerate(axes) if axis.other_stride < 0)


def _reversal(axes: Sequence[Axis], along: int, lowest: int) -> Reversal:
    """Along one of these axes, all other ones forward from the byte `lowest` on."""
    n, step, _ = axes[along]
    pairs = [axis._replace(other_stride=axis.stride) for axis in axes]
    pairs[along] = Axis(n // 2, step, -step)
    pairs = coalesce(pairs)
    run = Axis(1, 0, 0)
    if len(pairs) > 1 and pairs[-1].size <= PAIRS:
        run = pairs.pop()
    rows = table(pairs)
    settings = [0] * kernel.SETTINGS
    settings[kernel.RANK] = len(rows)
    settings[kernel.RUN], settings[kernel.RUN_STEP], settings[kernel.RUN_OTHER_STEP] = run
    walk = walk_of(settings, rows)
    return Reversal(walk, elements(pairs), one=lowest, other=lowest + (n - 1) * step)


def reverse_back(reversals: Sequence[Reversal], out: Array, large: bool) -> None:
    """Put the elements of an output where they belong."""
    at, chunk = launch.address(out), reversal_chunk(out.itemsize)
    for each in reversals:
        chunk.run(each.walk.at, 0, at + each.one, at + each.other, each.items, large)


def reversal_chunk(element_bytes: int) -> launch.Chunk:
    """What reverses elements of so many bytes."""
    return _REVERSE(8 * element_bytes)
