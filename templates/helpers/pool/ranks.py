"""Ranks: what pooling keeps of its elements, on scalars and vectors.

Of Greatest a rank is an integer of which the greatest is wanted, of Sums a float, and ranks are added up. Padding's
rank is the least integer, and 0.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_constant
from numba.extending import models, register_model, typeof_impl

from constants import _constant


class Ranks:
    """What is kept of the elements of a pooling: a constant of compiled code.

    Attributes:
        name: the same for the same.
        element: the integer that holds an element's bits.
        rank: what holds a rank, an integer or a float.
        sums: whether ranks are added up.
        positions: whether a rank has the position of its element.
        divided: whether sums are divided in the end.
    """

    divided = False

    def __init__(
        self, name: str, width: int, rank: Any, *, sums: bool = False, positions: bool = False
    ) -> None:
        self.name = name
        self.element = ir.IntType(width)
        self.rank = rank
        self.sums = sums
        self.positions = positions

    @property
    def bytes(self) -> int:
        """Of a rank."""
        return _width(self.rank) // 8

    def rule(self, builder: Any, signature: Any, values: Any) -> Any:
        """What ranks are made by: the last argument of an intrinsic."""
        raise NotImplementedError

    def of(self, context: Any, builder: Any, bits: Any, position: Any, rule: Any) -> Any:
        """The ranks of elements; `position` is inverted (None: ranks have none)."""
        raise NotImplementedError

    def lowest(self, builder: Any, rule: Any) -> Any:
        """The least rank of an element."""
        raise NotImplementedError


class _RanksType(types.Type):
    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        super().__init__(ranks.name)


register_model(_RanksType)(models.OpaqueModel)


@typeof_impl.register(Ranks)
def _type_of_ranks(ranks: Any, _context: Any) -> _RanksType:
    return _RanksType(ranks)


@lower_constant(_RanksType)
def _constant_ranks(context: Any, _builder: Any, _type: Any, _ranks: Ranks) -> Any:
    return context.get_dummy_value()


def _rank_parts(ranks: Any) -> int:
    """Vectors of ranks that as many elements have as a vector holds."""
    return int(ranks.bytes * 8 // ranks.element.width)


rank_size = _constant(lambda ranks: ranks.ranks.bytes)
element_size = _constant(lambda ranks: ranks.ranks.element.width // 8)  # bytes
rank_parts = _constant(lambda ranks: _rank_parts(ranks.ranks))


def _scalar(type_: Any) -> Any:
    return type_.element if isinstance(type_, ir.VectorType) else type_


def _is_float(type_: Any) -> bool:
    return isinstance(_scalar(type_), ir.FloatType | ir.DoubleType)


def _width(type_: Any) -> int:
    """Bits of a rank."""
    if _is_float(type_):
        return 32 if type_ == ir.FloatType() else 64
    return int(type_.width)
