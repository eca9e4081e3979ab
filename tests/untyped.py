"""What annotations do not allow, as callers without a type checker may give it."""

from __future__ import annotations

from typing import Any


def untyped(value: object) -> Any:
    return value
