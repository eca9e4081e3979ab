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
NEAR_BYTES = (
    1 << 7
)  # of a step in the input: elements further apart are read one by one, whichever way
# Of axes of more bytes, or whose next axis outside is of their kind (kept, or reduced): 0.01 to 0.8 of the time, others
# up to 2.5.
FEW_BYTES = 1 << 4
# Of a step over a run of a few elements along an axis of the same kind: 0.15 to 0.9 of the time, longer ones up to 2
# along kept axes. Along reduced ones 0.2 to 0.9 up to NEAR_BYTES.
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


def direction(
    output: Tensor,
    axes: Collection[int],
    strides: Strides,
    out_strides: Strides,
    *,
    marks: bool = False,
) -> Direction:
    """The input's way, along axes where elements would be stored one by one else, or in runs of a few.

    Args:
        axes: the reduced ones of the input, which the output may lack.
        marks: are stored, which stand where their indices say along reduced axes: no reversal there. Over runs it would
            take 1.4 to 3.5 times as long.
    """
    sizes, size = output.sizes, output.numpy_dtype.itemsize
    if len(out_strides) < len(strides):
        strides, axes = tuple(s for a, s in enumerate(strides) if a not in axes), ()
    order = sorted((a for a, n in enumerate(sizes) if n > 1), key=lambda a: -abs(out_strides[a]))

    def of_one_kind(i: int) -> bool:
        """Whether axis number i in this order and the next one inside are; False where there are none."""
        return 0 <= i < len(order) - 1 and (order[i] in axes) == (order[i + 1] in axes)

    def pays(i: int) -> bool:
        stride, out_stride = strides[order[i]], out_strides[order[i]]
        if stride * out_stride >= 0 or abs(stride) > NEAR_BYTES or (marks and order[i] in axes):
            return False
        if abs(out_stride) == size:
            return sizes[order[i]] * size > FEW_BYTES or of_one_kind(i - 1)
        longest = NEAR_BYTES if order[i] in axes else RUN_BYTES
        return not marks and abs(out_stride) <= longest and of_one_kind(i)

    worth = math.prod(sizes) * size >= LEAST_BYTES
    reversed_axes = [a for i, a in enumerate(order) if worth and pays(i)]
    taken = tuple(-s if a in reversed_axes else s for a, s in enumerate(out_strides))
    shift = sum((sizes[a] - 1) * out_strides[a] for a in reversed_axes)
    return Direction(taken, shift, _reversals(sizes, out_strides, reversed_axes))


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
    at, chunk = launch.address(out), reversing(out.itemsize)
    for each in reversals:
        chunk.run(each.walk.at, 0, at + each.one, at + each.other, each.items, large)


def reversing(element_bytes: int) -> launch.Chunk:
    """What reverses elements of so many bytes."""
    return _REVERSE(8 * element_bytes)
