"""Types of LLVM, and calls of its own functions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """What the function `name`, of a `result` type, makes of the arguments."""
    fnty = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), arguments)


def _scalar(type_: Any) -> Any:
    return type_.element if isinstance(type_, ir.VectorType) else type_


def _is_float(type_: Any) -> bool:
    return isinstance(_scalar(type_), ir.FloatType | ir.DoubleType)


def _width(type_: Any) -> int:
    """Bits of a number."""
    if _is_float(type_):
        return 32 if type_ == ir.FloatType() else 64
    return int(type_.width)
