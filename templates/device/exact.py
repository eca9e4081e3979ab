"""Additions with what rounding loses in them."""

from __future__ import annotations

from typing import Any


def _lost(builder: Any, a: Any, b: Any, whole: Any) -> Any:
    """What rounding lost in whole = a + b, exactly (Knuth)."""
    from_b = builder.fsub(whole, a)
    from_a = builder.fsub(whole, from_b)
    return builder.fadd(builder.fsub(a, from_a), builder.fsub(b, from_b))


def _two_sum(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what rounding lost in it."""
    whole = builder.fadd(a, b)
    return whole, _lost(builder, a, b, whole)
