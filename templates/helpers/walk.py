"""The block of int64 that tells a chunk what to do: settings first, then tables of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model

from compiled import helper
from order_key import Rule


@intrinsic
def integers(_context: Any, address: Any) -> Any:
    """The int64 from `address` on, to be indexed; less to compile than an array, and no references to count."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), codegen


class _RowType(types.Type):
    """A row of a table of integers, whose columns are the fields of a NamedTuple, each read or set by its name."""

    def __init__(self, row: Any) -> None:
        self.fields = row._fields
        super().__init__(row.__name__)


register_model(_RowType)(models.OpaqueModel)


def _fields_of(type_: Any) -> Any:
    class Fields(AttributeTemplate):
        key = type_

        def generic_resolve(self, row: Any, name: str) -> Any:
            return types.int64 if name in row.fields else None

    return Fields


infer_getattr(_fields_of(_RowType))


def _field(builder: Any, row: Any, address: Any, name: str) -> Any:
    integers = builder.bitcast(address, ir.IntType(64).as_pointer())
    return builder.gep(integers, [ir.IntType(64)(row.fields.index(name))])


@lower_getattr_generic(_RowType)
def _get_field(_context: Any, builder: Any, row: Any, address: Any, name: str) -> Any:
    return builder.load(_field(builder, row, address, name))


@lower_setattr_generic(_RowType)
def _set_field(_context: Any, builder: Any, signature: Any, values: Any, name: str) -> None:
    address, value = values
    builder.store(value, _field(builder, signature.args[0], address, name))


def _row_finder(row: Any) -> Any:
    """An intrinsic that finds row `d` of a table of integers, of whose columns it knows the names."""

    @intrinsic
    def find(_context: Any, table: Any, d: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            table, d = values
            start = builder.gep(table, [builder.mul(d, d.type(len(row._fields)))])
            return builder.bitcast(start, context.get_value_type(signature.return_type))

        return _RowType(row)(table, types.int64), codegen

    return find


@intrinsic
def narrowed(_context: Any, value: Any, like: Any) -> Any:
    """`value` cut to the type of `like`; None where that is None."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if signature.return_type == types.none:
            return context.get_dummy_value()
        if like.bitwidth == types.int64.bitwidth:
            return values[0]
        return builder.trunc(values[0], values[1].type)

    return like(types.int64, like), codegen


def lane_types(width, is_float):
    """Zeros of an element's width: for its keys, and, where it is a float, for its infinity."""
    lane = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[width](0)
    return lane, lane if is_float else None


@helper
def rule_of(settings, at, lane, float_lane):
    """The rule from setting `at` on; see lane_types."""
    flip, nan_key = narrowed(settings[at], lane), narrowed(settings[at + 1], lane)
    return Rule(flip, nan_key, narrowed(settings[at + 2], float_lane))
