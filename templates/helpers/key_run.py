"""The greatest order key of a run of adjoining elements, and where it stands.

Explicit LLVM vectors, because LLVM's own vectoriser leaves a search scalar, a tail scalar, and rows shorter than a
vector too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import _load_apart
from compiled import helper
from few_lanes import _few, _load_few
from llvm import _least_integer
from memory import (
    VECTOR_BYTES,
    _load,
    _pointer,
    _prefetch,
    _splat,
    _store,
    _vector,
    element_size,
    least,
    most,
)
from order_key import _order_key, _rule
from strips import _strips
from target import _bytes_ahead, _zen
from vectors import _Extremes, _greater, _greatest_lane, _lane_bits

UNROLLED = 8  # vectors of a long row: 4 are slower beyond the cache (1.1 times), for float32


@intrinsic
def _greatest_key(_context: Any, address: Any, n: Any, rule: Any) -> Any:
    """The greatest key of n contiguous elements, n at least one vector.

    The last vector overlaps the one before it: no scalar tail.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n = values[:2]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        i64 = n.type
        size = i64(vector.element.width // 8)
        start = _pointer(builder, address)
        last = builder.mul(builder.sub(n, i64(vector.count)), size)
        ahead = None
        if _zen(context) >= 5 and vector.element.width > 8:
            # 0.7 to 0.85 of the time beyond the second-level cache; runs of bytes often end at the greatest there is.
            ahead = i64(_bytes_ahead(context))

        def load(offset: Any) -> Any:
            return _load(builder, builder.gep(start, [offset]), vector)

        def each(take: Callable[[list[Any]], None]) -> None:
            """Take the bits of all vectors, several at once.

            Upwards, as processors fetch by themselves; Zen 5 is asked, too.
            """

            def visit(offsets: list[Any]) -> None:
                if ahead is not None:
                    for offset in offsets:
                        _prefetch(builder, builder.gep(start, [builder.add(offset, ahead)]), 1)
                take([load(offset) for offset in offsets])

            position = i64(0)
            for vectors in (UNROLLED, 1):
                stride = i64(vectors * VECTOR_BYTES)
                end = builder.and_(builder.mul(n, size), builder.neg(stride))
                with cgutils.for_range_slice(builder, position, end, stride, i64) as (offset, _):
                    visit([builder.add(offset, i64(i * VECTOR_BYTES)) for i in range(vectors)])
                position = end
            visit([last])

        best = cgutils.alloca_once(builder, vector)

        def by_keys() -> None:
            builder.store(_order_key(builder, load(i64(0)), rule), best)

            def take(rows: list[Any]) -> None:
                key = builder.load(best)
                for bits in rows:
                    key = _greater(builder, key, _order_key(builder, bits, rule))
                builder.store(key, best)

            each(take)

        if rule.inf is None:
            by_keys()
            return _greatest_lane(builder, builder.load(best))

        extremes = _Extremes(builder, load(i64(0)))
        each(extremes.more)
        bits, some_nan = extremes.greatest(rule.flip, rule.inf)
        builder.store(_order_key(builder, bits, rule), best)
        with builder.if_then(some_nan, likely=False):
            by_keys()
        return _greatest_lane(builder, builder.load(best))

    return rule[0](types.int64, types.int64, rule), codegen


@intrinsic
def _greatest_key_lane(_context: Any, address: Any, n: Any, rule: Any) -> Any:
    """The greatest key of n contiguous elements, n at most one vector."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n = values[:2]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        few = _few(context, builder, vector, n)
        bits = _load_few(builder, _pointer(builder, address), few, vector)
        keys = _order_key(builder, bits, rule)
        least = _least_integer(vector)
        return _greatest_lane(builder, builder.select(few.mask, keys, least))

    return rule[0](types.int64, types.int64, rule), codegen


@intrinsic
def _equal_lanes(_context: Any, address: Any, n: Any, key: Any, rule: Any) -> Any:
    """Bit i: the key of element i equals `key`. n elements, or a whole vector where n is None."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n, key = values[:3]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        if vector.element.width < 64:
            key = builder.trunc(key, vector.element)
        pointer = _pointer(builder, address)
        if signature.args[1] == types.none:
            keys = _order_key(builder, _load(builder, pointer, vector), rule)
            equal = builder.icmp_signed("==", keys, _splat(builder, key, vector))
        else:
            few = _few(context, builder, vector, n)
            keys = _order_key(builder, _load_few(builder, pointer, few, vector), rule)
            equal = builder.icmp_signed("==", keys, _splat(builder, key, vector))
            equal = builder.and_(few.mask, equal)
        return _lane_bits(builder, equal)

    return types.int64(types.int64, n, types.int64, rule), codegen


@intrinsic
def _lowest_bit(_context: Any, mask: Any) -> Any:
    """Number of the lowest bit set in a mask that is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.IntType(1)(1))

    return types.int64(types.int64), codegen


@intrinsic
def _highest_bit(_context: Any, mask: Any) -> Any:
    """Number of the highest bit set in a mask that is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.sub(ir.IntType(64)(63), builder.ctlz(values[0], ir.IntType(1)(1)))

    return types.int64(types.int64), codegen


@helper
def _find_key(address, n, key, late, rule):
    """Position of the first (`late`: last) of n contiguous elements, at least one vector, whose key is `key`."""
    size = element_size(rule.flip)
    lanes = VECTOR_BYTES // size
    position = n - lanes if late else 0
    while True:
        mask = _equal_lanes(address + position * size, None, key, rule)
        if late:
            if mask != 0:
                return position + _highest_bit(mask)
            if position == 0:
                return 0
            position = most(position - lanes, 0)
        else:
            if mask != 0:
                return position + _lowest_bit(mask)
            if position == n - lanes:
                return 0  # only if another thread changed the input meanwhile
            position = least(position + lanes, n - lanes)


@intrinsic
def pack(_context: Any, to: Any, address: Any, step: Any, n: Any, element: Any) -> Any:
    """Copy n elements that lie `step` bytes apart to `to`, where they adjoin."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        to, address, step, n, element = values
        vector = _vector(element.type)
        size = n.type(element.type.width // 8)

        def copy(first: Any, load: Callable[[Any], Any]) -> None:
            bits = load(builder.add(address, builder.mul(first, step)))
            _store(builder, bits, _pointer(builder, to, builder.mul(first, size)))

        def strip(first: Any, count: Any) -> None:
            if count is None:
                copy(first, lambda source: _load_apart(builder, source, step, vector))
                return
            with cgutils.for_range(builder, count) as rest:
                number = builder.add(first, rest.index)
                copy(number, lambda source: _load(builder, _pointer(builder, source), element.type))

        _strips(builder, vector.count, n, strip)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, element), codegen


@helper
def run_key(address, n, rule):
    """The greatest key of n contiguous elements."""
    if n >= VECTOR_BYTES // element_size(rule.flip):
        return _greatest_key(address, n, rule)
    return _greatest_key_lane(address, n, rule)


@helper
def place_in_run(address, n, key, late, rule):
    """Position of the first (`late`: last) of n contiguous elements whose key is `key`."""
    if n >= VECTOR_BYTES // element_size(rule.flip):
        return _find_key(address, n, key, late, rule)
    mask = _equal_lanes(address, n, key, rule)
    if mask == 0:
        return 0  # only if another thread changed the input meanwhile
    return _highest_bit(mask) if late else _lowest_bit(mask)
