"""Vectors of order keys: rows folded into columns, and where the greatest key of each stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import _load_apart
from few_lanes import _few, _load_few
from llvm import _const, _least_integer
from loops import _cases
from memory import VECTOR_BYTES, _load, _pointer, _prefetch, _prefetch_line, _splat, _store, _vector
from order_key import Rule, _order_key, _rule
from planes import WRITTEN_OUT, SmallPlanes, _each_strip
from stores import _store_past
from strips import _strips
from target import _by_single_rows, _zen
from vectors import _unless

SEARCHED_ROWS = 4  # folded while a strip's best keys stay in registers
# Of elements of 32 bits and more, while so many are left: 0.75 to 0.95 of the time; on Zen 5 1.0 to 2.
SEARCHED_ROWS_WIDE = 8


@intrinsic
def store_indices(
    _context: Any,
    address: Any,
    n: Any,
    best: Any,
    where: Any,
    base: Any,
    weight: Any,
    nan_is_0: Any,
    size: Any,
    past: Any,
    rule: Any,
) -> Any:
    """Store n indices of `size` bytes, 8, 4 or 2, side by side from `address` on.

    best, where: keys and row numbers, as search_rows and search_transposed leave them; the index of row r is
    base + r * weight. If `nan_is_0`, the index is 0 where the best key is that of NaN. `past`: past the caches.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n, best, where, base, weight, nan_is_0, size, past = values[:9]
        rule = _rule(builder, signature, values)
        element, i64 = rule.flip.type, n.type
        kept_of_nan = _unless(builder, nan_is_0, i64)
        position = i64(0)
        for lanes in (VECTOR_BYTES // 8, 1):
            narrow, wide = ir.VectorType(element, lanes), ir.VectorType(i64, lanes)
            stop = builder.and_(n, i64(-lanes))
            loop = cgutils.for_range_slice(builder, position, stop, i64(lanes), i64)
            with loop as (column, _):
                offset = builder.mul(column, i64(element.width // 8))
                row = _load(builder, _pointer(builder, where, offset), narrow)
                key = _load(builder, _pointer(builder, best, offset), narrow)
                row = builder.zext(row, wide) if element.width < 64 else row
                steps = builder.mul(row, _splat(builder, weight, wide))
                index = builder.add(steps, _splat(builder, base, wide))
                nan = builder.icmp_signed("==", key, _splat(builder, rule.nan_key, narrow))
                index_if_nan = builder.and_(index, _splat(builder, kept_of_nan, wide))
                index = builder.select(nan, index_if_nan, index)
                for bits in (64, 32, 16):
                    with builder.if_then(builder.icmp_signed("==", size, i64(bits // 8))):
                        stored = ir.VectorType(ir.IntType(bits), lanes)
                        narrowed = builder.trunc(index, stored) if bits < 64 else index
                        _store_past(
                            builder, narrowed, _pointer(builder, address), column, None, past
                        )
            position = stop
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(i64, i64, i64, i64, i64, i64, flag, i64, flag, rule), codegen


@intrinsic
def search_rows(
    _context: Any,
    best: Any,
    where: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    ahead: Any,
    columns: Any,
    fresh: Any,
    singly: Any,
    rule: Any,
) -> Any:
    """Fold rows of contiguous columns into the best keys and the row numbers where they stand.

    best, where: addresses of scratch in the keys' own width, whole vectors. Row r begins at address + offsets[r]; the
    first `rows` are folded, a multiple of SEARCHED_ROWS, several together (one by one where `singly` and
    `by_single_rows`), and for each of them that is fetched which stands `ahead` rows after it. Only a greater key
    replaces the best, so folding a row twice does no harm. `fresh`: the least key in row 0 is the best at first; else
    the best keys are those that stand there, from other rows: their numbers become -1.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        best, where, address, offsets, rows, ahead, columns, fresh, singly = values[:9]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        width = vector.element.width
        single = _by_single_rows(context)
        i64 = columns.type
        size = i64(width // 8)
        table = builder.bitcast(_pointer(builder, offsets), i64.as_pointer())
        lowest = _least_integer(vector.element)
        whole = builder.and_(columns, i64(-vector.count))
        end = builder.mul(whole, size)
        level = 1 if _zen(context) >= 5 else 2  # on Zen 5 0.75 to 1 of the time

        def fold(row: Any, together: int) -> None:
            taken = []
            for r in range(together):
                number = builder.add(row, i64(r))
                start = _pointer(builder, address, builder.load(builder.gep(table, [number])))
                later = builder.load(builder.gep(table, [builder.add(number, ahead)]))
                if width < 64:
                    number = builder.trunc(number, vector.element)
                later = _pointer(builder, address, later)
                taken.append((start, later, _splat(builder, number, vector)))
            at_first = builder.icmp_signed("==", row, i64(0))
            anew = builder.and_(at_first, fresh)
            others = builder.and_(at_first, builder.not_(fresh))
            # Of keys and of numbers: what is kept of those in memory, and what is there instead.
            states = [
                (anew, builder.select(anew, lowest, lowest.type(0))),
                (at_first, builder.select(others, lowest.type(-1), lowest.type(0))),
            ]
            begun = [
                (
                    _splat(builder, _unless(builder, flag, vector.element), vector),
                    _splat(builder, value, vector),
                )
                for flag, value in states
            ]

            def strip(offset: Any, few: Any) -> None:
                best_at = builder.bitcast(_pointer(builder, best, offset), vector.as_pointer())
                where_at = builder.bitcast(_pointer(builder, where, offset), vector.as_pointer())
                keys, numbers = (
                    builder.or_(builder.and_(builder.load(place, align=1), keep), instead)
                    for place, (keep, instead) in zip((best_at, where_at), begun, strict=True)
                )
                for start, later, number in taken:
                    pointer = builder.gep(start, [offset])
                    _prefetch(builder, builder.gep(later, [offset]), level)
                    bits = _load_few(builder, pointer, few, vector)
                    new = _order_key(builder, bits, rule)
                    greater = builder.icmp_signed(">", new, keys)
                    keys = builder.select(greater, new, keys)
                    numbers = builder.select(greater, number, numbers)
                builder.store(keys, best_at, align=1)
                builder.store(numbers, where_at, align=1)

            loop = cgutils.for_range_slice(builder, i64(0), end, i64(VECTOR_BYTES), i64)
            with loop as (offset, _):
                strip(offset, None)
            with builder.if_then(builder.icmp_signed("<", whole, columns)):
                strip(end, _few(context, builder, vector, builder.sub(columns, whole)))

        numbers = (SEARCHED_ROWS, 1) if single else (SEARCHED_ROWS,)
        if width >= 32 and _zen(context) < 5:
            numbers = (SEARCHED_ROWS_WIDE, SEARCHED_ROWS)
        position = i64(0)
        for together in numbers:
            stop = builder.and_(rows, i64(-together))
            if single and together > 1:
                stop = builder.select(singly, position, stop)
            loop = cgutils.for_range_slice(builder, position, stop, i64(together), i64)
            with loop as (row, _):
                fold(row, together)
            position = stop
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(i64, i64, i64, i64, i64, i64, i64, flag, flag, rule), codegen


@intrinsic
def search_rows_apart(
    _context: Any,
    best: Any,
    where: Any,
    address: Any,
    offsets: Any,
    rows: Any,
    columns: Any,
    step: Any,
    ahead: Any,
    fresh: Any,
    rule: Any,
) -> Any:
    """As search_rows, of columns that are `step` bytes apart, and of as many rows as a key's width can count.

    Where columns lie side by side, as short groups do, a vector of them has about as many lines of memory as there are
    rows: as many are fetched, `ahead` bytes further on; none where that is 0.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        best, where, address, offsets, rows, columns, step, ahead, fresh = values[:9]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        width = vector.element.width
        i64 = columns.type
        table = builder.bitcast(_pointer(builder, offsets), i64.as_pointer())

        def strip(column: Any, count: Any) -> None:
            start = builder.add(address, builder.mul(column, step))

            def keys_of(row: Any) -> Any:
                with builder.if_then(builder.icmp_signed("!=", ahead, i64(0))):
                    _prefetch_line(builder, start, ahead, row)
                first = builder.add(start, builder.load(builder.gep(table, [row])))
                bits = _load_apart(builder, first, step, vector, count)
                return _order_key(builder, bits, rule)

            offset = builder.mul(column, i64(width // 8))
            best_at, where_at = (
                builder.bitcast(_pointer(builder, state, offset), vector.as_pointer())
                for state in (best, where)
            )
            keys, numbers = (cgutils.alloca_once(builder, vector) for _ in range(2))
            with builder.if_else(fresh) as (then, otherwise):
                with then:
                    builder.store(keys_of(i64(0)), keys)
                    builder.store(ir.Constant(vector, None), numbers)
                with otherwise:
                    builder.store(builder.load(best_at, align=1), keys)
                    builder.store(_const(vector, -1), numbers)
            begin = builder.zext(fresh, i64)
            with cgutils.for_range_slice(builder, begin, rows, i64(1), i64) as (row, _):
                new, old = keys_of(row), builder.load(keys)
                greater = builder.icmp_signed(">", new, old)
                builder.store(builder.select(greater, new, old), keys)
                number = builder.trunc(row, vector.element) if width < 64 else row
                number = _splat(builder, number, vector)
                builder.store(builder.select(greater, number, builder.load(numbers)), numbers)
            builder.store(builder.load(keys), best_at, align=1)
            builder.store(builder.load(numbers), where_at, align=1)

        _strips(builder, vector.count, columns, strip)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(*(i64,) * 8, types.boolean, rule), codegen


def _place_down(
    builder: Any, rows: Any, vector: Any, rule: Rule, load: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """(best keys, numbers of the rows where they stand) of a vector of columns; load(row) gives its bits."""
    i64 = ir.IntType(64)
    best = cgutils.alloca_once_value(builder, _order_key(builder, load(i64(0)), rule))
    where = cgutils.alloca_once_value(builder, ir.Constant(vector, None))

    def take(number: Any) -> None:
        new, old = _order_key(builder, load(number), rule), builder.load(best)
        greater = builder.icmp_signed(">", new, old)
        builder.store(builder.select(greater, new, old), best)
        if vector.element.width < 64:
            number = builder.trunc(number, vector.element)
        number = _splat(builder, number, vector)
        builder.store(builder.select(greater, number, builder.load(where)), where)

    if isinstance(rows, int):
        for number in range(1, rows):
            take(i64(number))
        return builder.load(best), builder.load(where)
    with cgutils.for_range_slice(builder, i64(1), rows, i64(1), i64) as (row, _):
        take(row)
    return builder.load(best), builder.load(where)


@intrinsic
def search_planes(
    _context: Any,
    best: Any,
    where: Any,
    planes: Any,
    rule: Any,
) -> Any:
    """The best key of each column of SmallPlanes, and the number of its row, in scratch: see search_rows.

    Those of a plane stand behind those of the one before.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        best, where = values[:2]
        planes = SmallPlanes(*cgutils.unpack_tuple(builder, values[2]))
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        size = planes.columns.type(vector.element.width // 8)

        def planes_of(rows: Any) -> None:
            def strip(plane: Any, column: Any, _few: Any, load: Callable[[Any], Any]) -> None:
                found = _place_down(builder, rows, vector, rule, load)
                lane = builder.add(builder.mul(plane, planes.columns), column)
                for first, value in zip((best, where), found, strict=True):
                    place = _pointer(builder, first, builder.mul(lane, size))
                    _store(builder, value, place)

            _each_strip(context, builder, planes, vector, strip)

        _cases(builder, planes.rows, WRITTEN_OUT, planes_of)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, planes, rule), codegen
