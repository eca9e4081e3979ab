"""The host's side of arg_reduce: a search that stores the index of the greatest element."""

from __future__ import annotations

from specops.lowering.search import Search


class ArgReduce(Search):
    """Index of the greatest (or least) element of each reduced group, of nothing 0, for fixed types and shape.

    Args:
        better: "greater" or "less".
        tie: which of several equal elements wins, "first" or "last".
        nan: "ignored" (loses to every number; a group of nothing but NaN gives 0) or "propagates" (beats every number).
        axes: the reduced axes, in any order, unique; may be empty.
        input, output: the tensors; the output, of a 4- or 8-byte integer type, has size 1 along each reduced axis, or
            lacks these axes.
    """
