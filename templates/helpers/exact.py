"""Additions with what rounding loses in them."""

from __future__ import annotations

from typing import Any


def _lost(builder: Any, a: Any, b: Any, whole: Any, plus: Any = None) -> Any:
    """What rounding lost in whole = a + b, exactly (Knuth); see _two_sum."""
    plus = plus or builder.fadd
    from_b = plus(whole, builder.fneg(a))
    from_a = builder.fsub(whole, from_b)
    return builder.fadd(plus(a, builder.fneg(from_a)), plus(b, builder.fneg(from_b)))


def _two_sum(builder: Any, a: Any, b: Any, plus: Any = None) -> tuple[Any, Any]:
    """a + b, and what rounding lost in it; half of the additions are made by `plus`."""
    whole = builder.fadd(a, b)
    return whole, _lost(builder, a, b, whole, plus)
