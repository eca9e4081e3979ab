"""Calls of every operator through each dialect: arguments that ought to give an answer, and what the oracle says.

Each module draws families of operators: `valid` a call that ought to succeed, `wild` a description with any numbers in
it, `wild_call` the call that such a description stands for (None where its oracle would take long), and `node` an ONNX
node with any numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from draw import Random

from specops import onnx as ox
from stress.draws import arg_reduce, average_pool, max_pool, normalized, pool_grad, reduce
from stress.draws.common import Call, Described, Members, tensors_of

MODULES: dict[str, ModuleType] = {
    "argmax": arg_reduce,
    "argmin": arg_reduce,
    "hardmax": normalized,
    "softmax": normalized,
    "log_softmax": normalized,
    "max_pool": max_pool,
    "reduce": reduce,
    "average_pool": average_pool,
    "pool_grad": pool_grad,
}
FAMILIES = list(MODULES)


def valid(random: Random, family: str) -> Call:
    """A call that ought to succeed."""
    call: Call = MODULES[family].valid(random, family)
    return call


def wild(random: Random, family: str) -> tuple[Described, Members]:
    """A description of an operator of the family with any numbers in it, many of them wrong or huge."""
    operator, members = MODULES[family].wild(random, family)
    return Described(operator), members


def wild_call(random: Random, family: str, function: Described, members: Members) -> Call | None:
    """The call that an accepted description stands for; None where it is not small."""
    tensors = [t for kind in ("input", "output") for t in tensors_of(function, members, kind)]
    if any(math.prod(tensor.Sizes) > 2000 for tensor in tensors):
        return None
    call: Call | None = MODULES[family].wild_call(random, function, members)
    return call


def wild_node(random: Random, family: str) -> tuple[Callable[[], Any], str]:
    """A node of an ONNX operator to compile for shapes, with any numbers of 64 bits in it; and its text."""
    node = MODULES[family].node(random, family)
    (dtype, shape), *more = node.inputs

    def make() -> Any:
        return getattr(ox, node.operator)(**node.attributes).compile(dtype, shape, *more)

    return make, f"{node.operator} {node.attributes} for {node.inputs}"
