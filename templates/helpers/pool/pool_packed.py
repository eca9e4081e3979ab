"""Poolings of small planes: their states are packed, so that no vector is for one short row alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from batch import batch_axis
from compiled import entry
from doubling import double_lines
from few_lanes import _masked_load, _masked_store
from greatest import _element_bits
from llvm import _call, _letters
from loops import _by_count
from memory import (
    VECTOR_BYTES,
    _load,
    _pointer,
    _prefetch,
    _splat,
    _store,
    _vector,
    allocate,
    least,
    release,
)
from order_key import _rule
from pool_line import AHEAD, Pieces, _folded, fold_line
from pool_settings import BUFFER, KEPT, LINE, PLANE_PITCH, PLANES, TABLE_AT, TALL, pool_tables
from pool_state import state_size
from state_lanes import _joined, _padding_state
from sums import _nearest_bits
from walk import integers
from windows import reach_of, span_of, spatial_axis

# The table of a walk by packed planes is a head, an entry for each vector of an item's states, one for each vector of
# results, then, for averages, as many vectors of divisors.
# Head: how many states there are up to where the last window begins, and up to the last result; entries of states and
# of results.
SPAN, RESULT_SPAN, ENTRIES, RESULTS = 0, 1, 2, 3
HEAD = 4
ENTRY = 3  # mask of the lanes in use, as many first lanes, bytes of the elements before


def _entry_of(builder: Any, table: Any, number: Any, lanes: int) -> tuple[Any, Any, Any]:
    """The masks and the bytes of a vector's entry."""
    i64 = number.type
    entry = _pointer(builder, table, builder.mul(number, i64(8 * ENTRY)))
    words = [_load(builder, builder.gep(entry, [i64(8 * i)]), i64) for i in range(ENTRY)]
    bits, some = ir.IntType(lanes), ir.VectorType(ir.IntType(1), lanes)
    cut = (builder.trunc(word, bits) if lanes < 64 else word for word in words[:2])
    used, first = (builder.bitcast(word, some) for word in cut)
    return used, first, words[2]


def _moved(builder: Any, way: str, bits: Any, used: Any) -> Any:
    """The first lanes moved to those in use, by "expand", or these to the first ones, by "compress"; 0 elsewhere.

    Within registers: to memory it is slow on Zen 4, from memory, for float32 on Zen 5, 1.2 to 1.7 times as long.
    """
    name = f"llvm.x86.avx512.mask.{way}.{_letters(bits.type)}"
    return _call(builder, name, bits.type, bits, ir.Constant(bits.type, None), used)


@intrinsic
def _spread_states(
    _context: Any, line: Any, source: Any, table: Any, count: Any, kind: Any, rule: Any
) -> Any:
    """The states of contiguous elements in so many vectors: in lanes that are in use, and padding in others."""

    pool = kind.state

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, source, table, count = values[:4]
        vector = _vector(pool.type)
        narrow = ir.VectorType(pool.element, vector.count)
        rule = pool.rule(builder, signature, values)
        lowest = _splat(builder, pool.lowest(builder, rule), vector)
        with cgutils.for_range(builder, count) as loop:
            used, first, offset = _entry_of(builder, table, loop.index, vector.count)
            pointer = _pointer(builder, source, offset)
            _prefetch(builder, builder.gep(pointer, [offset.type(AHEAD)]), 2)
            bits = _moved(builder, "expand", _masked_load(builder, pointer, first, narrow), used)
            state = pool.of(context, builder, bits, None, rule)
            state = _joined(builder, state, lowest)
            state = builder.select(used, state, _padding_state(vector))
            place = builder.mul(loop.index, loop.index.type(VECTOR_BYTES))
            _store(builder, state, _pointer(builder, line, place))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, i64, i64, kind, rule), codegen


def _pack(builder: Any, vector: Any, values: Any, finish: Callable[[Any, Any], Any]) -> None:
    """Join states of pieces, and store what `finish(states, place)` makes of the lanes in use, one after the other."""
    out, line, pieces, table, entries = values[:5]
    pieces = Pieces(*cgutils.unpack_tuple(builder, pieces))
    size = out.type(VECTOR_BYTES // vector.count)
    step, last = builder.mul(pieces.step, size), builder.mul(pieces.last, size)

    def pack_all(count: Any) -> None:
        with cgutils.for_range(builder, entries) as loop:
            used, first, offset = _entry_of(builder, table, loop.index, vector.count)
            place = builder.mul(loop.index, out.type(VECTOR_BYTES))
            source = _pointer(builder, line, place)
            (states,) = _folded(builder, source, 1, vector, (count, step, last))
            bits = finish(states, place)
            bits = _moved(builder, "compress", bits, used)
            _masked_store(builder, bits, _pointer(builder, out, offset), first)

    _by_count(builder, pieces.count, pack_all)


@intrinsic
def pack_elements(
    _context: Any,
    out: Any,
    line: Any,
    pieces: Any,
    table: Any,
    count: Any,
    divisors: Any,
    kind: Any,
    rule: Any,
) -> Any:
    """Store the elements of the lanes in use of so many vectors, of states that are yet to be joined of pieces."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        order = _rule(builder, signature, values)
        vector = _vector(kind.state.type)
        _pack(builder, vector, values, lambda joined, _place: _element_bits(builder, joined, order))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, pieces, i64, i64, i64, kind, rule), codegen


@intrinsic
def pack_averages(
    _context: Any,
    out: Any,
    line: Any,
    pieces: Any,
    table: Any,
    count: Any,
    divisors: Any,
    kind: Any,
    rule: Any,
) -> Any:
    """As pack_elements, of sums, each divided by that of `divisors` which stands in its place."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = _vector(kind.state.type)

        def average(sums: Any, place: Any) -> Any:
            divisor = _load(builder, _pointer(builder, values[5], place), vector)
            return _nearest_bits(context, builder, builder.fdiv(sums, divisor), kind.state)

        _pack(builder, vector, values, average)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(i64, i64, pieces, i64, i64, i64, kind, rule), codegen


def packed_chunk(kind, read_rule, store):
    """Chunk for small planes that adjoin in memory, as their outputs do; an item is PLANES of them.

    States of all its planes are one line. Behind a row comes as much padding as stands before the next: the last
    windows of a row reach into that, those of a plane into the next one's, and what lies between results is not used.
    The last item ends with the last plane, and computes some again that the one before has computed. `read_rule` as of
    line_chunk; `store`: pack_elements, or of sums pack_averages.
    """
    sums = kind.sums
    buffers = 3 if sums else 2

    @entry
    def chunk(walk, x, out, _other, begin, end):
        settings, batch, spatial = pool_tables(walk)
        rule = read_rule(settings)
        size, line, buffer = state_size(kind), settings[LINE], settings[BUFFER]
        spread = allocate(buffers * buffer)
        doubled = spread + buffer
        rest = doubled + buffer if sums else None
        head = integers(settings[TABLE_AT])
        entries = settings[TABLE_AT] + 8 * HEAD
        results = entries + 8 * ENTRY * head[ENTRIES]
        divisors = results + 8 * ENTRY * head[RESULTS]
        axis = batch_axis(batch, 0)
        planes, step, out_step = axis.size, axis.step, axis.out_step
        row_axis, axis = spatial_axis(spatial, 0), spatial_axis(spatial, 1)
        reach, window = reach_of(axis), row_axis.window
        row_unit = row_axis.dilation * line
        row_reach = (window - 1) * row_unit
        n = head[SPAN] + reach
        # Of the rows of a plane that are kept, to the last window's last: behind what is kept that is padding.
        kept = (row_axis.out_size - 1) * line + span_of(axis, axis.out_size)
        for item in range(begin, end):
            first = least(item * settings[PLANES], planes - settings[PLANES])
            _spread_states(spread, x + first * step, entries, head[ENTRIES], kind, rule)
            source, pieces = spread, Pieces(1, window, row_unit, row_reach)
            # Sums of few rows are added one by one, as by lines: results do not depend on the layout.
            if not sums or settings[TALL] != 0:
                source, pieces = double_lines(
                    doubled, rest, spread, n + row_reach, window, row_unit, kind
                )
            if settings[KEPT] > 0:
                for plane in range(settings[PLANES]):
                    fold_line(
                        doubled + plane * settings[KEPT] * size,
                        source + plane * settings[PLANE_PITCH] * size,
                        kept,
                        pieces,
                        kind,
                    )
                source = doubled
            elif pieces.count > 1:
                fold_line(doubled, source, n, pieces, kind)
                source = doubled
            source, pieces = double_lines(
                doubled,
                rest,
                source,
                head[RESULT_SPAN] + reach,
                axis.window,
                axis.dilation,
                kind,
            )
            store(
                out + first * out_step,
                source,
                pieces,
                results,
                head[RESULTS],
                divisors,
                kind,
                rule,
            )
        release(spread)

    return chunk
