"""Additions with what rounding loses in them."""

from __future__ import annotations

from typing import Any


def _two_sum(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what rounding lost in it (Knuth)."""
    whole = builder.fadd(a, b)
    from_b = builder.fsub(whole, a)
    from_a = builder.fsub(whole, from_b)
    return whole, builder.fadd(builder.fsub(a, from_a), builder.fsub(b, from_b))
