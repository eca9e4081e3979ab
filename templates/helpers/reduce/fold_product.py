"""Products as folds keep them: a mantissa, and apart an exponent, so that nothing overflows or is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from fold import _bits_type, _widened
from llvm import _const, _on_lanes
from loops import _tree
from seldom import _CALM_POWER, _EXPONENT, _beyond, _or_else, _unless_zero


def _normalised(builder: Any, value: Any) -> tuple[Any, Any]:
    """Mantissa, 1/2 to 1, and exponent (as int64); 0, infinities and NaN as they are."""
    integers = _bits_type(value)
    bits = builder.bitcast(value, integers)
    field = builder.and_(builder.lshr(bits, _const(integers, 52)), _const(integers, 0x7FF))
    below = builder.sub(field, _const(integers, 1))
    ordinary = builder.icmp_unsigned("<", below, _const(integers, 0x7FE))
    half = builder.and_(bits, _const(integers, ~_EXPONENT))
    half = builder.or_(half, _const(integers, 1022 << 52))
    mantissa = builder.bitcast(builder.select(ordinary, half, bits), value.type)
    exponent = builder.sub(field, _const(integers, 1022))
    return mantissa, builder.select(ordinary, exponent, ir.Constant(integers, None))


def _product(builder: Any, state: list[Any], mantissa: Any, exponent: Any) -> list[Any]:
    """State times mantissa * 2**exponent; the exponent's bits stand in the lanes of a double."""
    total = builder.add(builder.bitcast(state[1], exponent.type), exponent)
    return [builder.fmul(state[0], mantissa), builder.bitcast(total, state[1].type)]


def _brought_back(builder: Any, state: list[Any]) -> list[Any]:
    """A product whose mantissa is from 1/2 to 1, but for 0, infinities and NaN."""
    mantissa, more = _normalised(builder, state[0])
    total = builder.add(builder.bitcast(state[1], more.type), more)
    return [mantissa, builder.bitcast(total, mantissa.type)]


def _within(builder: Any, state: list[Any]) -> list[Any]:
    """A product in pieces, of which all mantissas are brought back if one has left its range.

    To do so each time takes 1.3 to 2 times as long.
    """
    mantissas = state[::2]
    beyond = _tree(
        range(len(mantissas)),
        lambda i: _beyond(builder, mantissas[i], _CALM_POWER),
        builder.or_,
    )

    def rescaled() -> list[Any]:
        pairs = (_brought_back(builder, state[i : i + 2]) for i in range(0, len(state), 2))
        return [value for pair in pairs for value in pair]

    return _or_else(builder, beyond, state, rescaled)


def _times_narrow(
    builder: Any, state: list[Any], count: int, terms: Callable[[int], list[Any]]
) -> list[Any]:
    """A state times `count` vectors of converted terms, both in as many pieces.

    A state of _narrow has no exponents.
    """
    values = [terms(i) for i in range(count)]
    arrays = len(state) // len(values[0])

    def product(some: list[Any]) -> Any:
        return _tree(range(len(some)), some.__getitem__, builder.fmul)

    def factor(few: range, piece: int) -> Any:
        some = [values[i][piece] for i in few]
        if some[0].type.element == ir.FloatType():  # of two float16 the product is a float32
            some = [_widened(builder, product(some[i : i + 2])) for i in range(0, len(some), 2)]
        return product(some)

    for first in range(0, count, 4):  # of so many float32 the product is a normal double
        few = range(first, min(first + 4, count))
        state = list(state)
        for piece in range(len(values[0])):
            state[arrays * piece] = builder.fmul(state[arrays * piece], factor(few, piece))
        if arrays > 1:
            state = _within(builder, state)
    return state


def _times_wide(builder: Any, state: list[Any], values: list[Any]) -> list[Any]:
    """State times at most eight doubles.

    Multiplied as they are where no pair comes near the least or the greatest double, nor is 0: the same bits, in 0.3 of
    the time; in up to 2.5 where pairs underflow.
    """
    pairs = [
        builder.fmul(*pair) if len(pair) == 2 else pair[0]
        for pair in (values[i : i + 2] for i in range(0, len(values), 2))
    ]
    every, double = range(len(pairs)), values[0].type
    plain = builder.fmul(state[0], _tree(every, pairs.__getitem__, builder.fmul))
    beyond = _tree(every, lambda i: _beyond(builder, pairs[i], _CALM_POWER), builder.or_)
    # What was 0 stays so; what becomes it may be too small for a double.
    grown = _unless_zero(builder, _beyond(builder, plain, _CALM_POWER), state[0])
    beyond = builder.or_(beyond, grown)

    def rescaled() -> list[Any]:
        parts = []
        for value in values:
            tiny = _const(double, 2.0**-1022)
            subnormal = builder.fcmp_ordered("<", _on_lanes(builder, "fabs", value), tiny)
            raised = builder.fmul(value, _const(double, 2.0**54))
            mantissa, more = _normalised(builder, builder.select(subnormal, raised, value))
            lower = builder.sub(more, _const(more.type, 54))
            parts.append((mantissa, builder.select(subnormal, lower, more)))
        numbers = range(len(values))
        mantissa = _tree(numbers, lambda i: parts[i][0], builder.fmul)
        exponent = _tree(numbers, lambda i: parts[i][1], builder.add)
        return _brought_back(builder, _product(builder, state, mantissa, exponent))

    return _or_else(builder, beyond, [plain, state[1]], rescaled)
