"""Numbers that are constants of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _of_type(number: Callable[[Any], int]) -> Any:
    """A function of one argument, for compiled code: the int64 that `number` makes of its type, a constant."""

    @intrinsic
    def constant(_context: Any, kind: Any) -> Any:
        def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
            return ir.IntType(64)(number(kind))

        return types.int64(kind), codegen

    return constant
