"""What the processor that is compiled for can do, and in which way it does it best."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _is_arm(context: Any) -> bool:
    """Whether the target is a 64-bit ARM."""
    triple = context.codegen().magic_tuple()[0]
    return bool(triple.startswith(("aarch64", "arm64")))


def _target_has(context: Any, feature: str, on_arm: bool) -> bool:
    """Whether the target is an x86 with this feature, or a 64-bit ARM if these all have its like."""
    features = context.codegen().magic_tuple()[2]
    return f"+{feature}" in features.split(",") or (on_arm and _is_arm(context))


def _zen(context: Any) -> int:
    """The generation of a Zen, 0 for any other processor."""
    generation = context.codegen().magic_tuple()[1].partition("znver")[2]
    return int(generation) if generation.isdecimal() else 0


def _bytes_ahead(context: Any) -> int:
    """How far ahead memory that is read in order is fetched; on Zen 5 twice as far takes 0.7 to 0.95 of the time."""
    return 16384 if _zen(context) >= 5 else 8192


@intrinsic
def bytes_ahead(_context: Any) -> Any:
    """See _bytes_ahead; a constant."""

    def codegen(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(_bytes_ahead(context))

    return types.int64(), codegen


@intrinsic
def row_ahead(_context: Any, step: Any) -> Any:
    """How many bytes ahead the row lies that is fetched while one is computed, of rows `step` bytes apart.

    It is the next one. On Zen 5 it is the one 8 KiB ahead, the second at least: 0.75 to 1 of the time.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        (step,) = values
        if _zen(context) < 5:
            return step
        negative = builder.icmp_signed("<", step, step.type(0))
        row_bytes = builder.select(negative, builder.neg(step), step)
        most, one = step.type(4096), step.type(1)
        row_bytes = builder.select(builder.icmp_signed("<", row_bytes, most), row_bytes, most)
        row_bytes = builder.select(builder.icmp_signed(">", row_bytes, one), row_bytes, one)
        return builder.mul(step, builder.udiv(step.type(8192), row_bytes))

    return types.int64(types.int64), codegen


def _by_single_rows(context: Any) -> bool:
    """Whether rows of columns that adjoin had better be read one by one, in the order of memory, beyond the caches.

    On Zen 5 0.7 to 0.9 of the time, in its caches 1.0 to 1.3.
    """
    return _zen(context) >= 5


@intrinsic
def by_single_rows(_context: Any) -> Any:
    """See _by_single_rows; a constant."""

    def codegen(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(1)(_by_single_rows(context))

    return types.boolean(), codegen
