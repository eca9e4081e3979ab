"""The host's side of hardmax: a search that stores a 1 where the greatest element stands, and 0 elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from specops.lowering.search import Search
from specops.tensor import Tensor

_ONE = {"FLOAT16": 0x3C00, "BFLOAT16": 0x3F80, "FLOAT32": 0x3F800000, "FLOAT64": 0x3FF << 52}


class Hardmax(Search):
    """1 at the first greatest element of each group, 0 elsewhere, for fixed types and shape.

    A group holds the elements that differ along `axes` only, in row-major order; each has exactly one 1.

    Args:
        axes: the reduced axes, in any order, unique; may be empty: each element is its own group.
        nan: "ignored" (loses to every number; a group of nothing but NaN has its 1 at its first element) or
            "propagates" (the first NaN has the 1).
        input, output: tensors of one shape and one type, FLOAT16, BFLOAT16, FLOAT32 or FLOAT64.
    """

    def __init__(self, *, axes: Sequence[int], nan: str, input: Tensor, output: Tensor) -> None:
        super().__init__(
            better="greater",
            tie="first",
            nan=nan,
            axes=axes,
            input=input,
            output=output,
            mark=_ONE[output.dtype],
        )
