"""Types and constants of LLVM, and calls of its own functions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """What the function `name`, of a `result` type, makes of the arguments."""
    fnty = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, fnty, name), arguments)


def _on_lanes(builder: Any, name: str, *values: Any) -> Any:
    """What LLVM's function `name` makes of numbers of one type, or of the lanes of vectors."""
    type_ = values[0].type
    return _call(builder, f"llvm.{name}.{_letters(type_)}", type_, *values)


def _const(type_: Any, value: float) -> Any:
    """A constant: `value`, in each lane of a vector."""
    if isinstance(type_, ir.VectorType):
        return ir.Constant(type_, [value] * type_.count)
    return ir.Constant(type_, value)


def _least_integer(type_: Any) -> Any:
    """The least signed integer, in each lane of a vector: the bit that is the sign."""
    return _const(type_, -(2 ** (_width(type_) - 1)))


def _scalar(type_: Any) -> Any:
    """The type of a vector's lanes, or the type itself."""
    return type_.element if isinstance(type_, ir.VectorType) else type_


def _is_float(type_: Any) -> bool:
    return isinstance(_scalar(type_), ir.FloatType | ir.DoubleType)


def _width(type_: Any) -> int:
    """Bits of a number, or of a vector's lane."""
    scalar = _scalar(type_)
    if isinstance(scalar, ir.IntType):
        return int(scalar.width)
    return 32 if scalar == ir.FloatType() else 64


def _letters(type_: Any) -> str:
    """As LLVM names the type in its functions' names, such as v16f32."""
    lanes = f"v{type_.count}" if isinstance(type_, ir.VectorType) else ""
    return f"{lanes}{'f' if _is_float(type_) else 'i'}{_width(type_)}"
