"""The host's side of norms over windows."""

from __future__ import annotations

from collections.abc import Sequence

from specops.lowering.pool_axes import Sliding
from specops.lowering.sum_pool import SumPool
from specops.tensor import Tensor


class LpPool(SumPool):
    """(sum of |x|**p)**(1 / p) over each window, for a fixed type and shape; 0 for a window of nothing but padding.

    Args:
        window, strides, dilations, start_padding: for each of the last `len(window)` dimensions.
        p: at least 1; more than 64 is slow, and so is one that is not whole of float64.
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
        p: float,
        input: Tensor,
        output: Tensor,
    ) -> None:
        function = {1.0: "l1", 2.0: "l2"}.get(p)
        if input.dtype == "FLOAT64" and p == 2:
            function = None  # the reduction scales all elements first: 1.5 times as long
        super().__init__(
            sliding=Sliding(window, strides, dilations, start_padding),
            p=p,
            counted=(),
            function=function,
            input=input,
            output=output,
        )
