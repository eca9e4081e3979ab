"""The greatest order key of a short row, with its place: without a search, so that the processor overlaps many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from few_lanes import _few, _load_short
from few_vectors import _each_of_few
from llvm import _const, _least_integer
from loops import _tree
from memory import VECTOR_BYTES, _load, _pointer, _prefetch, _splat, _vector
from order_key import _floats_of, _order_key, _rule
from vectors import WORD_LANES, _any, _greater, _greatest_lane, _lane_bits, _lesser

LEAST_BY_FLOATS = 3  # whole vectors before the last of a row that is compared as floats: 1.1 of the time with fewer


def _lowest(builder: Any, word: Any) -> Any:
    return builder.cttz(word, ir.IntType(1)(0))


def _highest(builder: Any, word: Any) -> Any:
    return builder.sub(word.type(WORD_LANES - 1), builder.ctlz(word, ir.IntType(1)(0)))


def _end(builder: Any, word: Any, late: Any) -> Any:
    """The lowest bit of a word, `late` the highest."""
    return builder.select(late, _highest(builder, word), _lowest(builder, word))


@intrinsic
def greatest_place(_context: Any, address: Any, n: Any, late: Any, rule: Any) -> Any:
    """(key, position) of the first (`late`: last) greatest of n contiguous elements, n at most one vector.

    Without a search, so that the processor overlaps many short rows. Half a vector will do for half as many (0.75 of
    the time).
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n, late = values[:3]
        rule = _rule(builder, signature, values)
        i64 = n.type
        found_key = cgutils.alloca_once(builder, i64)
        found_place = cgutils.alloca_once(builder, i64)

        def search(vector: Any) -> None:
            few = _few(context, builder, vector, n)
            bits = _load_short(builder, address, few, vector)
            keys = _order_key(builder, bits, rule)
            least = _least_integer(vector)
            key = _greatest_lane(builder, builder.select(few.mask, keys, least))
            equal = builder.icmp_signed("==", keys, _splat(builder, key, vector))
            found = _lane_bits(builder, builder.and_(few.mask, equal))
            builder.store(_end(builder, found, late), found_place)
            builder.store(builder.sext(key, i64) if key.type.width < 64 else key, found_key)

        full = _vector(rule.flip.type)
        half = ir.VectorType(full.element, full.count // 2)
        fits = builder.icmp_signed("<=", n, i64(half.count))
        with builder.if_else(fits) as (then, otherwise):
            with then:
                search(half)
            with otherwise:
                search(full)
        found = builder.load(found_key), builder.load(found_place)
        return context.make_tuple(builder, signature.return_type, found)

    pair = types.UniTuple(types.int64, 2)
    i64, flag = types.int64, types.boolean
    return pair(i64, i64, flag, rule), codegen


@intrinsic
def greatest_place_of_few(
    _context: Any, address: Any, n: Any, ahead: Any, late: Any, rule: Any
) -> Any:
    """As greatest_place_of_many, of 2 vectors to few_elements: 0.6 to 0.95 of the time.

    Keys stay in registers: the greatest is found first, then its places, as the bits of words.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n, ahead, late = values[:4]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        i64, lanes = n.type, vector.count
        found_key, found_place = (cgutils.alloca_once(builder, i64) for _ in range(2))

        def load(place: Any) -> Any:
            offset = builder.mul(place, i64(vector.element.width // 8))
            pointer = _pointer(builder, address, offset)
            _prefetch(builder, builder.gep(pointer, [ahead]), 1)
            return _order_key(builder, _load(builder, pointer, vector), rule)

        def search(places: list[Any]) -> None:
            keys = [load(place) for place in places]
            best = _tree(range(len(keys)), keys.__getitem__, lambda a, b: _greater(builder, a, b))
            key = _greatest_lane(builder, best)
            wanted = _splat(builder, key, vector)
            found = [_lane_bits(builder, builder.icmp_signed("==", own, wanted)) for own in keys]
            # Words of as many vectors as fit; the last vector, which may overlap, has one of its own.
            words, each = [], WORD_LANES // lanes
            for first in range(0, len(found) - 1, each):
                together = found[first : min(first + each, len(found) - 1)]
                word = together[0]
                for i, more in enumerate(together[1:], 1):
                    word = builder.or_(word, builder.shl(more, i64(i * lanes)))
                words.append((places[first], word))
            words.append((places[-1], found[-1]))
            early = _first_place(builder, words, _lowest)
            place = builder.select(late, _first_place(builder, words[::-1], _highest), early)
            builder.store(place, found_place)
            builder.store(builder.sext(key, i64) if key.type.width < 64 else key, found_key)

        _each_of_few(context, builder, n, vector, search)
        found = builder.load(found_key), builder.load(found_place)
        return context.make_tuple(builder, signature.return_type, found)

    pair = types.UniTuple(types.int64, 2)
    i64, flag = types.int64, types.boolean
    return pair(i64, i64, i64, flag, rule), codegen


def _first_place(builder: Any, words: list[tuple[Any, Any]], bit: Callable[[Any, Any], Any]) -> Any:
    """The place of a bit of the first word that has one; each word with the place of its lowest bit."""
    (begin, word), *rest = words
    place = builder.add(begin, bit(builder, word))
    if not rest:
        return place
    none = builder.icmp_signed("==", word, word.type(0))
    return builder.select(none, _first_place(builder, rest, bit), place)


@intrinsic
def greatest_place_of_many(
    _context: Any, address: Any, n: Any, ahead: Any, late: Any, rule: Any
) -> Any:
    """(key, position) of the first (`late`: last) greatest of n contiguous elements, 1 to 127 vectors.

    Each lane notes in which vector it met its greatest key: without a search, whose mispredicted end makes the
    processor wait for memory. What lies `ahead` bytes further on is fetched. Floats of 32 and 64 bits are compared as
    they are, and once more by keys where NaN is among them: 0.65 to 0.85 of the time without AVX-512, with it 0.95
    to 1.0, up to 1.2 with NaN in half of the rows.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, n, ahead, late = values[:4]
        rule = _rule(builder, signature, values)
        vector = _vector(rule.flip.type)
        i64 = n.type
        width = vector.element.width
        start = _pointer(builder, address)
        last = builder.mul(builder.sub(n, i64(vector.count)), i64(width // 8))
        # The last vector visited overlaps the one before it: no scalar tail.
        first = builder.select(late, last, i64(0))
        step = builder.select(late, i64(-VECTOR_BYTES), i64(VECTOR_BYTES))
        one_by_one = _const(vector, 1)
        best, where = (cgutils.alloca_once(builder, vector) for _ in range(2))

        def bits(offset: Any) -> Any:
            pointer = builder.gep(start, [offset])
            _prefetch(builder, builder.gep(pointer, [ahead]), 1)
            return _load(builder, pointer, vector)

        def visit(values: Callable[[Any], Any], exceeds: Callable[[Any, Any], Any]) -> Any:
            """The greatest value of each lane, and `where`."""
            begun = values(bits(first))
            top = cgutils.alloca_once_value(builder, begun)
            number = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
            builder.store(ir.Constant(vector, None), where)

            def fold(offset: Any) -> None:
                new, old = values(bits(offset)), builder.load(top)
                builder.store(builder.add(builder.load(number), one_by_one), number)
                greater = exceeds(new, old)
                builder.store(builder.select(greater, new, old), top)
                places = builder.select(greater, builder.load(number), builder.load(where))
                builder.store(places, where)

            size = i64(VECTOR_BYTES)
            with cgutils.for_range_slice(builder, size, last, size, i64) as (offset, _):
                fold(builder.select(late, builder.sub(last, offset), offset))
            fold(builder.sub(last, first))
            return builder.load(top)

        def by_keys() -> None:
            def greater(new: Any, old: Any) -> Any:
                return builder.icmp_signed(">", new, old)

            builder.store(visit(lambda found: _order_key(builder, found, rule), greater), best)

        def by_floats() -> Any:
            """Whether NaN is among them."""
            floats = _floats_of(vector)
            flip = _splat(builder, builder.and_(rule.flip, _least_integer(rule.flip.type)), vector)
            unordered = cgutils.alloca_once_value(builder, ir.Constant(vector, None))

            def values(found: Any) -> Any:
                value = builder.bitcast(builder.xor(found, flip), floats)
                nan = builder.sext(builder.fcmp_unordered("uno", value, value), vector)
                builder.store(builder.or_(builder.load(unordered), nan), unordered)
                return value

            top = visit(values, lambda new, old: builder.fcmp_ordered(">", new, old))
            top = builder.xor(builder.bitcast(top, vector), flip)
            builder.store(_order_key(builder, top, rule), best)
            nan = builder.icmp_signed("!=", builder.load(unordered), ir.Constant(vector, None))
            return _any(builder, nan)

        if rule.inf is None or width == 16:
            by_keys()
        else:
            few = builder.icmp_signed("<", last, i64(LEAST_BY_FLOATS * VECTOR_BYTES))
            keys_wanted = cgutils.alloca_once_value(builder, few)
            with builder.if_then(builder.not_(few)):
                builder.store(by_floats(), keys_wanted)
            with builder.if_then(builder.load(keys_wanted)):
                by_keys()

        key = _greatest_lane(builder, builder.load(best))
        equal = builder.icmp_signed("==", builder.load(best), _splat(builder, key, vector))
        places = builder.load(where)
        least = _least_integer(vector)
        backward = builder.select(equal, builder.sub(ir.Constant(vector, None), places), least)
        earliest = _greatest_lane(builder, backward)
        found = _lane_bits(
            builder, builder.icmp_signed("==", backward, _splat(builder, earliest, vector))
        )
        lane = _end(builder, found, late)
        earliest = builder.sext(earliest, i64) if width < 64 else earliest
        steps = builder.mul(builder.sub(i64(0), earliest), step)
        shift = i64((width // 8).bit_length() - 1)
        offset = builder.add(first, steps)
        offset = _lesser(builder, _greater(builder, offset, i64(0)), last)
        place = builder.add(builder.ashr(offset, shift), lane)
        key = builder.sext(key, i64) if width < 64 else key
        return context.make_tuple(builder, signature.return_type, (key, place))

    pair = types.UniTuple(types.int64, 2)
    i64, flag = types.int64, types.boolean
    return pair(i64, i64, i64, flag, rule), codegen
