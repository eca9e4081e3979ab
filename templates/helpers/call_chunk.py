"""A kernel's chunk, called by its address."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

SIGNATURE = types.void(*(types.int64,) * 6)  # of a chunk
LAUNCH = types.void(types.int64, *SIGNATURE.args)  # of the functions here


def _called(context: Any, builder: Any, values: Any) -> Any:
    """The status of the chunk at address values[0], called with the rest."""
    convention = context.call_conv
    kind = convention.get_function_type(types.none, SIGNATURE.args)
    function = builder.inttoptr(values[0], kind.as_pointer())
    status, _ = convention.call_function(builder, function, types.none, SIGNATURE.args, values[1:])
    return status


@intrinsic
def call(
    _context: Any,
    chunk: Any,
    walk: Any,
    x: Any,
    out: Any,
    other: Any,
    begin: Any,
    end: Any,
) -> Any:
    """Call the chunk at an address; what it raises is raised."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        status = _called(context, builder, values)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return LAUNCH, codegen


@intrinsic
def fails(
    _context: Any,
    chunk: Any,
    walk: Any,
    x: Any,
    out: Any,
    other: Any,
    begin: Any,
    end: Any,
) -> Any:
    """Call a chunk; 1 if it raised, else 0."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        status = _called(context, builder, values)
        return builder.zext(status.is_error, context.get_value_type(types.int64))

    return types.int64(*LAUNCH.args), codegen
