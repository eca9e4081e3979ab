"""Which poolings are a reduction: those of whole planes, and those of rows that are windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from specops import launch
from specops.lowering.plans import Array
from specops.tensor import Tensor, packed

if TYPE_CHECKING:
    from specops.lowering.reduce import Reduce

ROW_BYTES = 32  # of windows that lie side by side along the last axis and are reduced: 0.2 to 0.9 of the time


def reduction(
    function: str,
    nan: str,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    input: Tensor,
    output: Tensor,
) -> Callable[[Array, Array], None] | None:
    """The reduction that gives the same: of whole planes, in 0.3 to 0.9 of the time, or of rows; else None."""
    split, axes = None, whole_axes(window, dilations, start_padding, input, output)
    if not axes:
        if any(start_padding) or not _are_rows(window, strides, dilations, input, output):
            return None
        split, axes = (*output.sizes, window[-1]), (len(input.sizes),)
    # Only here: other poolings need not wait for its kernels.
    from specops.lowering.reduce import Reduce

    read = input if split is None else packed(input.dtype, split)
    reduce = Reduce(function=function, nan=nan, axes=axes, input=read, output=output)
    return reduce if split is None else partial(_reduce_rows, reduce, split)


def whole_axes(
    window: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    input: Tensor,
    output: Tensor,
) -> tuple[int, ...]:
    """The spatial axes where one window is all of a plane, of more than one element; else none."""
    first = len(input.sizes) - len(window)
    whole = tuple(window) == input.sizes[first:] and math.prod(output.sizes[first:]) == 1
    moved = _are_dilated(window, dilations) or any(start_padding)
    return (
        tuple(range(first, len(input.sizes)))
        if whole and not moved and math.prod(window) > 1
        else ()
    )


def _are_dilated(window: Sequence[int], dilations: Sequence[int]) -> bool:
    return any(n > 1 and step > 1 for n, step in zip(window, dilations, strict=True))


def _are_rows(
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    input: Tensor,
    output: Tensor,
) -> bool:
    """Whether windows lie side by side along the last axis, long enough to be reduced one by one."""
    if _are_dilated(window, dilations):
        return False
    *others, width = window
    *other_strides, stride = strides
    beside = stride == width and output.sizes[-1] * width <= input.sizes[-1]
    alone = {*others, *other_strides} <= {1} and output.sizes[:-1] == input.sizes[:-1]
    return beside and alone and width * input.numpy_dtype.itemsize >= ROW_BYTES


def _reduce_rows(reduce: Reduce, sizes: tuple[int, ...], x: Array, out: Array) -> None:
    """`sizes`: those of the rows as which `x` is read, from the first on."""
    used = sizes[-2] * sizes[-1]
    reduce(x[..., :used].reshape(sizes), out)


def reduction_chunks(function: str, dtype: str) -> list[launch.Chunk]:
    """All that `reduction` may run, whatever the plane."""
    from specops.lowering.reduce import Reduce

    one = packed(dtype, (1,))
    return Reduce(function=function, nan="propagates", axes=(0,), input=one, output=one).chunks()
