"""States that are added up: the elements of a data type, in float32 or float64."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from half import _bfloat_to_float, _half_to_float, _like, _to_16_bits
from llvm import _scalar
from pool_state import PoolState
from state_lanes import _padding_state

FLOAT_BITS = {"FLOAT16": 16, "BFLOAT16": 16, "FLOAT32": 32, "FLOAT64": 64}


class Sums(PoolState):
    """Sums, of `width` bits, of elements of a data type; `divided`: in the end each is divided by a divisor."""

    def __init__(
        self, dtype: str, width: int, *, divided: bool = False, operation: str = "elements"
    ) -> None:
        type_ = ir.FloatType() if width == 32 else ir.DoubleType()
        name = f"Sums({dtype}, {width}, {operation}, {divided})"
        super().__init__(name, FLOAT_BITS[dtype], type_, sums=True)
        self.dtype = dtype
        self.divided = divided

    def rule(self, builder: Any, signature: Any, values: Any) -> Any:
        return values[-1]

    def of(self, context: Any, builder: Any, bits: Any, position: Any, rule: Any) -> Any:
        return _float_of(context, builder, bits, self.dtype, self.type)

    def lowest(self, builder: Any, rule: Any) -> Any:
        return _padding_state(self.type)

    def finished(self, context: Any, builder: Any, value: Any, rule: Any) -> tuple[Any, Any]:
        """What vectors of sums become in the end, and which of these are not certain to be right; None: all are."""
        return value, None


def _float_of(context: Any, builder: Any, bits: Any, dtype: str, wanted: Any) -> Any:
    """The float, of type `wanted` or a vector of it, of the bits of elements."""
    if dtype == "FLOAT16":
        value = _half_to_float(context, builder, bits)
    elif dtype == "BFLOAT16":
        value = _bfloat_to_float(builder, bits)
    else:
        narrow = ir.FloatType() if dtype == "FLOAT32" else ir.DoubleType()
        value = builder.bitcast(bits, _like(bits.type, narrow))
    wanted = _like(bits.type, wanted)
    return value if value.type == wanted else builder.fpext(value, wanted)


def _nearest_bits(context: Any, builder: Any, value: Any, sums: Sums) -> Any:
    """The bits of the element nearest to a float32 or float64."""
    if sums.element.width == 16:
        return _to_16_bits(context, builder, value, half=sums.dtype == "FLOAT16")
    if _scalar(value.type) == ir.DoubleType() and sums.dtype == "FLOAT32":
        value = builder.fptrunc(value, _like(value.type, ir.FloatType()))
    return builder.bitcast(value, _like(value.type, sums.element))
