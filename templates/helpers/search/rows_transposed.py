"""The greatest order keys of many short rows, and their places: vectors have one position of as many rows as lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from llvm import _least_integer
from memory import VECTOR_BYTES, _pointer, _prefetch, _splat, _store, _vector
from order_key import _order_key, _rule
from target import _target_has
from transposing import UNIT_BYTES, _each_unit, _load_transposed, _unit
from vectors import _greater

LONGEST_BYTES = 128  # of a row: 0.35 to 0.9 of the time, of longer ones 0.8 to 1.3


@intrinsic
def transposes(_context: Any, n: Any, flip: Any) -> Any:
    """Whether rows of n elements of `flip`'s width are searched together.

    Vectors of less than 256 bits take up to 1.8 times as long.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        if not _target_has(context, "avx2", on_arm=False):
            return ir.IntType(1)(0)
        n = values[0]
        size = flip.bitwidth // 8
        enough = builder.icmp_signed(">=", n, n.type(UNIT_BYTES // size))
        few = builder.icmp_signed("<=", n, n.type(LONGEST_BYTES // size))
        return builder.and_(enough, few)

    return types.boolean(types.int64, flip), codegen


@intrinsic
def search_transposed(
    _context: Any,
    best: Any,
    where: Any,
    address: Any,
    n: Any,
    ahead: Any,
    late: Any,
    rule: Any,
) -> Any:
    """The best key of each of as many rows as a vector has lanes, and its place, in scratch: see search_rows.

    Rows of n elements adjoin; for `late` see greatest_place. What lies `ahead` bytes further on is fetched.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        best, where, address, n, ahead, late = values[:6]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        unit, element = _unit(vector), vector.element
        i64 = n.type
        size = i64(element.width // 8)
        step = builder.mul(n, size)
        lowest = _least_integer(vector)
        keys = cgutils.alloca_once_value(builder, lowest)
        places = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        ties = _splat(builder, late, ir.VectorType(ir.IntType(1), vector.count))

        def take(number: Any, bits: Any) -> None:
            new, old = _order_key(builder, bits, rule), builder.load(keys)
            # Keys by a maximum, not by the mask for places: no step waits for the mask of the one before.
            builder.store(_greater(builder, new, old), keys)
            equal = builder.and_(builder.icmp_signed("==", new, old), ties)
            better = builder.or_(builder.icmp_signed(">", new, old), equal)
            if element.width < 64:
                number = builder.trunc(number, element)
            number = _splat(builder, number, vector)
            builder.store(builder.select(better, number, builder.load(places)), places)

        def search(first: Any) -> None:
            # Where units overlap, elements are met again in their order, which changes nothing.
            numbers = [builder.add(first, i64(i)) for i in range(unit.count)]
            for number in numbers:  # of lines as well: rows fill as many as each has elements
                offset = builder.mul(number, i64(VECTOR_BYTES))
                _prefetch(builder, _pointer(builder, address, builder.add(ahead, offset)), 1)
            start = builder.add(address, builder.mul(first, size))
            vectors = _load_transposed(builder, start, step, unit)
            for number, bits in zip(numbers, vectors, strict=True):
                take(number, bits)

        _each_unit(builder, n, unit, search)
        _store(builder, builder.load(keys), _pointer(builder, best))
        _store(builder, builder.load(places), _pointer(builder, where))
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(i64, i64, i64, i64, i64, flag, rule), codegen
