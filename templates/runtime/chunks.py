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

_ARGUMENTS = (types.int64,) * 6
SIGNATURE = types.void(*_ARGUMENTS)


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
    """Call the chunk at address `chunk`; what it raises is raised."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.none, _ARGUMENTS)
        function = builder.inttoptr(values[0], kind.as_pointer())
        status, _ = convention.call_function(builder, function, types.none, _ARGUMENTS, values[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.int64, *_ARGUMENTS), codegen


@njit(nogil=True)
def serial(chunk, walk, x, out, other, begin, end):
    """Items begin to end, in this thread."""
    _call(chunk, walk, x, out, other, begin, end)


@njit(nogil=True, parallel=True)
def parallel(chunk, walk, x, out, other, items, tasks):
    """All items, in `tasks` shares of (nearly) equal size."""
    for task in prange(tasks):
        _call(chunk, walk, x, out, other, items * task // tasks, items * (task + 1) // tasks)
