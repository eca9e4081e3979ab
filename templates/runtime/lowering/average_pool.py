"""The host's side of averages over windows."""

from __future__ import annotations

from collections.abc import Sequence

from specops.lowering.pool_axes import Sliding
from specops.lowering.sum_pool import SumPool
from specops.tensor import Tensor


class AveragePool(SumPool):
    """Average of each window, for a fixed type and shape.

    Args:
        window, strides, dilations, start_padding, end_padding: for each of the last `len(window)` dimensions.
        divisor: "inside", the number of input elements in the window, or "padded", that of its positions in the padded
            input, which ends with the end padding: an output rounded up may reach further. 0 / 0 is NaN.
        input: the tensor.
        output: as the input, with the output's spatial sizes, which decide how far windows go.
    """

    def __init__(
        self,
        *,
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        divisor: str,
        input: Tensor,
        output: Tensor,
    ) -> None:
        super().__init__(
            sliding=Sliding(window, strides, dilations, start_padding),
            p=None,
            counted=counted(
                input.sizes[len(input.sizes) - len(window) :], start_padding, end_padding, divisor
            ),
            function="mean",
            input=input,
            output=output,
        )


def counted(
    sizes: Sequence[int], start_padding: Sequence[int], end_padding: Sequence[int], divisor: str
) -> list[tuple[int, int]]:
    """The positions (from, to) along each dimension that count in an average's divisor.

    >>> counted([5], [1], [2], "inside"), counted([5], [1], [2], "padded")
    ([(0, 5)], [(-1, 7)])
    """
    if divisor == "inside":
        return [(0, n) for n in sizes]
    sides = zip(sizes, start_padding, end_padding, strict=True)
    return [(-start, n + end) for n, start, end in sides]
