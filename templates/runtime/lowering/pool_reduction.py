"""Which poolings are a reduction: those of whole planes, and those of rows that are windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from specops import launch
from specops.lowering.plans import Array
from specops.lowering.pool_axes import Sliding
from specops.tensor import Tensor, packed

if TYPE_CHECKING:
    from specops.lowering.reduce import Reduce

ROW_BYTES = 32  # of windows that lie side by side along the last axis and are reduced: 0.2 to 0.9 of the time


def reduction(
    function: str, nan: str, sliding: Sliding, input: Tensor, output: Tensor
) -> Callable[[Array, Array], None] | None:
    """The reduction that gives the same: of whole planes, in 0.3 to 0.9 of the time, or of rows; else None."""
    split, axes = None, whole_axes(sliding, input, output)
    if not axes:
        if not _are_rows(sliding, input, output):
            return None
        split, axes = (*output.sizes, sliding.window[-1]), (len(input.sizes),)
    # Only here: other poolings need not wait for its kernels.
    from specops.lowering.reduce import Reduce

    read = input if split is None else packed(input.dtype, split)
    reduce = Reduce(function=function, nan=nan, axes=axes, input=read, output=output)
    return reduce if split is None else partial(_reduce_rows, reduce, split)


def whole_axes(sliding: Sliding, input: Tensor, output: Tensor) -> tuple[int, ...]:
    """The spatial axes where one window is all of a plane, of more than one element; else none."""
    window = sliding.window
    first = len(input.sizes) - len(window)
    whole = tuple(window) == input.sizes[first:] and math.prod(output.sizes[first:]) == 1
    moved = sliding.is_dilated or any(sliding.start_padding)
    alone = whole and not moved and math.prod(window) > 1
    return tuple(range(first, len(input.sizes))) if alone else ()


def _are_rows(sliding: Sliding, input: Tensor, output: Tensor) -> bool:
    """Whether windows lie side by side along the last axis, unpadded, long enough to be reduced one by one."""
    if sliding.is_dilated or any(sliding.start_padding):
        return False
    *others, width = sliding.window
    *other_strides, stride = sliding.strides
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
