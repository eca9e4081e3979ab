# mypy: allow-untyped-defs, no-check-untyped-defs
"""Compiled functions that call a kernel's chunk by its address, here or on several threads.

They are compiled once for all kernels: a parallel function of its own would double what each kernel costs to compile.
A chunk takes four addresses (its walk, the input, the output, and one more) and the items to work on, begin to end.
"""

from __future__ import annotations

from typing import Any

from numba import njit, prange, types
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
def _call(
    _context: Any,
    chunk: Any,
    walk: Any,
    x: Any,
    out: Any,
    other: Any,
    begin: Any,
    end: Any,
) -> Any:
    """Call a chunk; what it raises is raised."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        status = _called(context, builder, values)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return LAUNCH, codegen


@intrinsic
def _fails(
    _context: Any,
    chunk: Any,
    walk: Any,
    x: Any,
    out: Any,
    other: Any,
    begin: Any,
    end: Any,
) -> Any:
    """Call a chunk; 1 if it raised, else 0. Numba loses what is raised within a prange."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        status = _called(context, builder, values)
        return builder.zext(status.is_error, context.get_value_type(types.int64))

    return types.int64(*LAUNCH.args), codegen


@njit(nogil=True)
def serial(chunk, walk, x, out, other, begin, end):
    """Items begin to end, in this thread."""
    _call(chunk, walk, x, out, other, begin, end)


@njit(nogil=True, parallel=True)
def parallel(chunk, walk, x, out, other, items, tasks):
    """All items, in `tasks` shares of (nearly) equal size."""
    failed = 0
    for task in prange(tasks):
        begin, end = items * task // tasks, items * (task + 1) // tasks
        failed += _fails(chunk, walk, x, out, other, begin, end)
    if failed != 0:
        raise MemoryError("no memory for a thread's scratch")  # all that a chunk can raise
