"""Loops whose few rounds are written out, and operations on many values as a tree of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _prefer_small_code(builder: Any) -> None:
    """Else LLVM unrolls short loops of the function (1.1 times as slow), and copies long helpers into it."""
    builder.function.attributes.add("optsize")


@intrinsic
def prefer_small_code(_context: Any) -> Any:
    """Compile the calling function for size."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        _prefer_small_code(builder)
        return context.get_dummy_value()

    return types.void(), codegen


def _cases(builder: Any, value: Any, cases: tuple[int, ...], body: Any) -> None:
    """`body(n)` for the one of the cases, an int, that the value is, else for the value itself."""
    rest = builder.append_basic_block("rest")
    end = builder.append_basic_block("end")
    switch = builder.switch(value, rest)
    for n in cases:
        block = builder.append_basic_block(f"of_{n}")
        switch.add_case(value.type(n), block)
        builder.position_at_end(block)
        body(n)
        builder.branch(end)
    builder.position_at_end(rest)
    body(value)
    builder.branch(end)
    builder.position_at_end(end)


def _by_count(builder: Any, count: Any, body: Any) -> None:
    """`body(n)` for a number of rounds: an int up to 3, whose rounds the body writes out, or `count` itself.

    Windows of 3 x 3 over small planes take 0.8 to 0.9 of the time.
    """
    _cases(builder, count, (1, 2, 3), body)


def _rounds(builder: Any, count: Any, body: Any) -> None:
    """`body(i)` for i from 0 on, `count` times; written out where that is an int."""
    if isinstance(count, int):
        for i in range(count):
            body(ir.IntType(64)(i))
    else:
        with cgutils.for_range(builder, count) as loop:
            body(loop.index)


def _tree(items: range, leaf: Callable[[int], Any], operation: Callable[[Any, Any], Any]) -> Any:
    """Pairs first, then pairs of these: errors and waiting grow with the logarithm."""
    if len(items) == 1:
        return leaf(items[0])
    half = len(items) // 2
    a, b = (_tree(part, leaf, operation) for part in (items[:half], items[half:]))
    return operation(a, b)
