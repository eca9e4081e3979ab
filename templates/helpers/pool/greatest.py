"""States of which the greatest is wanted.

Without positions a state is as wide as the element and turns back into it; `nan_key` is then what to add to numbers so
that all NaN wrap round to the losing, or the winning, end. With them the order key fills the upper bits and the
inverted position the lower ones, so that one maximum finds the element and settles ties; the lowest bit keeps the sign
of a zero. The least state is padding's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from half import _like
from llvm import _const, _width
from memory import _splat
from order_key import Rule, _mirror, _order_key, _rule
from pool_state import PoolState
from shuffles import _in_turn, _interleaved
from state_lanes import _halves, _is_halved, _of_halves, _padding_state


class Greatest(PoolState):
    """The greatest of elements of so many bits, by a Rule.

    `position_width`: bits of a state with its position, 32, 64 or 128; 0 where no positions are wanted.
    """

    def __init__(self, width: int, position_width: int) -> None:
        type_ = ir.IntType(position_width or width)
        name = f"Greatest({width}, {position_width})"
        super().__init__(name, width, type_, positions=position_width > 0)

    def rule(self, builder: Any, signature: Any, values: Any) -> Rule:
        return _rule(builder, signature, values)

    def of(self, context: Any, builder: Any, bits: Any, position: Any, rule: Rule) -> Any:
        return _state_of(builder, bits, position, self.type, rule)

    def lowest(self, builder: Any, rule: Rule) -> Any:
        """It keeps a losing NaN above padding; not asked of states with positions."""
        padding = _padding_state(self.type)
        if rule.inf is None:
            return padding
        shift = rule.nan_key
        above = builder.icmp_signed(">", shift, shift.type(0))
        return builder.add(padding, builder.zext(above, shift.type))


def _resize(builder: Any, value: Any, element: Any) -> Any:
    """`value` cut or sign-extended to the integer `element`."""
    target = _like(value.type, element)
    width = _width(value.type)
    if width == element.width:
        return value
    return builder.trunc(value, target) if width > element.width else builder.sext(value, target)


def _state_of(builder: Any, bits: Any, position: Any, integer: Any, rule: Rule) -> Any:
    """State of `bits`, of the type `integer`; `position` is inverted (None: without position)."""
    flip, nan_key, inf = rule
    if position is None:
        if inf is None:
            return builder.xor(bits, _splat(builder, flip, bits.type))
        return builder.add(_mirror(builder, bits), _splat(builder, nan_key, bits.type))
    if inf is not None:
        # As only maxima are pooled, that of floats is 0 anyway: an operation less.
        flip = flip.type(0)
    key = _order_key(builder, bits, Rule(flip, nan_key, inf))
    wanted = _like(bits.type, integer)
    width = bits.type.element.width
    if inf is not None:
        sign = builder.lshr(bits, _const(bits.type, width - 1))
        position = builder.or_(position, builder.zext(sign, position.type))
    if integer.width == 128:
        return _of_halves(builder, key, position)
    if integer.width == 2 * width:
        # One shuffle, in place of two extensions, a shift and a join (0.85 to 0.95 of the time).
        return builder.bitcast(_interleaved(builder, position, key), wanted)
    low = _splat(builder, integer(integer.width - width), wanted)
    return builder.or_(builder.shl(builder.zext(key, wanted), low), position)


def _low(state: Any, element: Any) -> Any:
    """What positions are computed in: as wide as the element where the halves of a state are put together."""
    return element if state.width == 2 * element.width else state


def farthest(state: int, bits: int) -> int:
    """From where positions count back, and how many there may be, in states of so many bits of elements of `bits`.

    The lower half of states of 128 bits has no sign, so that it is compared as the upper one is.
    """
    return int(2 ** (min(state - bits, 63) - 1) - 1)


def _inverted(builder: Any, position: Any, state: Any, element: Any) -> Any:
    """What stands in the lower bits of a state for a 64-bit position: less for a later one, never 0."""
    low = _low(state, element)
    left = builder.sub(low(farthest(state.width, element.width)), _resize(builder, position, low))
    return builder.shl(left, low(1))


def _parts(builder: Any, states: Any, element: Any) -> tuple[Any, Any]:
    """(order keys, of type `element`; lower bits: the position, inverted, and the sign) of vectors of states.

    The lower bits of padding's are 0, those of no other.
    """
    if _is_halved(states.type):
        return _halves(builder, states)
    vector = states.type
    width = vector.element.width
    if width == 2 * element.width:
        low, key = _in_turn(
            builder, builder.bitcast(states, ir.VectorType(element, 2 * vector.count))
        )
        return key, low
    low = width - element.width
    key = builder.lshr(states, _const(vector, low))
    key = builder.trunc(key, ir.VectorType(element, vector.count))
    return key, builder.and_(states, _const(vector, 2**low - 1))


def _element_bits(builder: Any, state: Any, rule: Rule) -> Any:
    """The element of a state without position; that of padding is the lowest number."""
    flip, shift, inf = (None if r is None else _splat(builder, r, state.type) for r in rule)
    if inf is None:
        return builder.xor(state, flip)
    lowest = builder.not_(inf)  # -inf, mirrored
    is_padding = builder.icmp_signed("==", state, _padding_state(state.type))
    return _mirror(builder, builder.select(is_padding, lowest, builder.sub(state, shift)))
