"""States: what pooling keeps of its elements, on scalars and vectors.

Of Greatest a state is an integer of which the greatest is wanted, of Sums a float, and states are added up. Padding's
state is the least integer, and 0.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_constant
from numba.extending import models, register_model, typeof_impl

from constants import _of_type
from llvm import _width


class PoolState:
    """What kind of states a pooling keeps: a constant of compiled code.

    Attributes:
        name: the same for the same.
        element: the integer that holds an element's bits.
        type: what holds a state, an integer or a float.
        sums: whether states are added up.
        positions: whether a state has the position of its element.
        divided: whether sums are divided in the end.
    """

    divided = False

    def __init__(
        self, name: str, width: int, type_: Any, *, sums: bool = False, positions: bool = False
    ) -> None:
        self.name = name
        self.element = ir.IntType(width)
        self.type = type_
        self.sums = sums
        self.positions = positions

    @property
    def bytes(self) -> int:
        """Of a state."""
        return _width(self.type) // 8

    def rule(self, builder: Any, signature: Any, values: Any) -> Any:
        """What states are made by: the last argument of an intrinsic."""
        raise NotImplementedError

    def of(self, context: Any, builder: Any, bits: Any, position: Any, rule: Any) -> Any:
        """The states of elements; `position` is inverted (None: states have none)."""
        raise NotImplementedError

    def lowest(self, builder: Any, rule: Any) -> Any:
        """The least state of an element."""
        raise NotImplementedError


class _StateType(types.Type):
    def __init__(self, state: PoolState) -> None:
        self.state = state
        self.bitwidth = state.element.width
        super().__init__(state.name)


register_model(_StateType)(models.OpaqueModel)


@typeof_impl.register(PoolState)
def _type_of_state(state: Any, _context: Any) -> _StateType:
    return _StateType(state)


@lower_constant(_StateType)
def _constant_state(context: Any, _builder: Any, _type: Any, _state: PoolState) -> Any:
    return context.get_dummy_value()


def _state_parts(state: Any) -> int:
    """Vectors of states that as many elements have as a vector holds."""
    return int(state.bytes * 8 // state.element.width)


state_size = _of_type(lambda kind: kind.state.bytes)
state_parts = _of_type(lambda kind: _state_parts(kind.state))
