"""Words that threads share, by their addresses, and the locks of Python's own threads, which wait without the GIL."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from llvm import _call
from target import _is_arm

_WORD = ir.IntType(64)


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def words(_context: Any, count: Any) -> Any:
    """The address of so many words on the stack, all 0, that hold until the function returns."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        (count,) = values
        place = builder.alloca(_WORD, count)
        place.align = 64
        cgutils.memset(builder, place, builder.mul(count, _WORD(8)), 0)
        return builder.ptrtoint(place, _WORD)

    return types.int64(types.int64), codegen


@intrinsic
def load(_context: Any, address: Any) -> Any:
    """A word, and all that its writer wrote before it."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load_atomic(_word(builder, values[0]), "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def store(_context: Any, address: Any, value: Any) -> Any:
    """Write a word, after all that was written before."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        builder.store_atomic(values[1], _word(builder, values[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def add(_context: Any, address: Any, value: Any) -> Any:
    """Add to a word; what it was before."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.atomic_rmw("add", _word(builder, values[0]), values[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def replace(_context: Any, address: Any, old: Any, new: Any) -> Any:
    """Write `new` where the word is `old`; whether it was."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, old, new = values
        both = builder.cmpxchg(_word(builder, address), old, new, "seq_cst", "seq_cst")
        return builder.extract_value(both, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


@intrinsic
def ticks(_context: Any) -> Any:
    """A clock of 2 to 4 GHz; always 0 where programs may have none."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        if not context.codegen().magic_tuple()[0].startswith("x86_64"):
            return _WORD(0)
        return _call(builder, "llvm.readcyclecounter", _WORD)

    return types.int64(), codegen


@intrinsic
def relax(_context: Any) -> Any:
    """Leave the core to its other thread, and to rest, for some 10 to 50 ns."""

    def codegen(context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        triple = context.codegen().magic_tuple()[0]
        if triple.startswith("x86_64"):
            _call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        elif _is_arm(context):
            _call(builder, "llvm.aarch64.isb", ir.VoidType(), ir.IntType(32)(15))
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def give_way(_context: Any, function: Any) -> Any:
    """Let threads that wait for a core have this one, by the system's own function; not at all where that is 0."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        (function,) = values
        kind = ir.FunctionType(ir.IntType(32), [])
        with builder.if_then(builder.icmp_signed("!=", function, function.type(0))):
            builder.call(builder.inttoptr(function, kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def acquire(_context: Any, function: Any, lock: Any) -> Any:
    """Wait for a lock, by PyThread_acquire_lock."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        function, lock = values
        number = ir.IntType(32)
        kind = ir.FunctionType(number, [cgutils.voidptr_t, number])
        lock = builder.inttoptr(lock, cgutils.voidptr_t)
        builder.call(builder.inttoptr(function, kind.as_pointer()), [lock, number(1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def unlock(_context: Any, function: Any, lock: Any) -> Any:
    """Let whoever waits for a lock go on, by PyThread_release_lock."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        function, lock = values
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])
        lock = builder.inttoptr(lock, cgutils.voidptr_t)
        builder.call(builder.inttoptr(function, kind.as_pointer()), [lock])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen
