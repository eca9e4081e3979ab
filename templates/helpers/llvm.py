"""Calls of LLVM's own functions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """What the function `name`, of a `result` type, makes of the arguments."""
    fnty = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), arguments)
