"""Poolings of many planes by long windows: a vector has one position of as many planes as it has lanes.

No lane is padding then, and along each axis a window costs as much whatever it has: 0.05 to 1.05 of the time of lines
and of packed planes. Where states are wider than elements, a position has several vectors of them, of as many planes as
a vector has elements; the second ones of all positions stand behind all first ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from batch import batch_axis, offsets_of
from compiled import entry, helper
from greatest import _element_bits
from loops import _prefer_small_code
from memory import (
    VECTOR_BYTES,
    _load,
    _place,
    _prefetch,
    _splat,
    _store,
    _vector,
    aligned,
    allocate,
    ceildiv,
    element_size,
    least,
    most,
    release,
    split,
)
from order_key import _rule
from pool_settings import BATCH, SHARE, TILE, TRANSPOSED_BYTES, pool_tables
from pool_state import PoolState, _state_parts, state_parts, state_size
from shuffles import _lanes_from, _side_by_side
from state_lanes import _joined, _padding_state
from sums import _nearest_bits
from transposing import _each_unit, _load_transposed, _store_each, _unit, _units
from vectors import _any, _greater, _lesser
from windows import spatial_axis


class Positions(NamedTuple):
    """Positions of planes, the vectors from one row to the next, and the bytes to the next row, column and plane."""

    rows: Any
    columns: Any
    pitch: Any
    row_step: Any
    step: Any
    plane_step: Any


class Buffer(NamedTuple):
    """Vectors of states: where the first ones of all positions stand, and the bytes to the second ones."""

    address: Any
    part: Any


class Vectors(NamedTuple):
    """Lines of vectors of states: where the first begins, and the bytes to the next line, and to the next vector."""

    address: Any
    line_step: Any
    step: Any


class Along(NamedTuple):
    """Windows that begin side by side, `padding` before the first of n elements, of which each has one at least."""

    n: Any
    windows: Any
    window: Any
    padding: Any


def _each_position(
    builder: Any,
    positions: Positions,
    unit: Any,
    one: Callable[[Any, Any, Any], None],
    several: Callable[[Any], None],
) -> None:
    """`one(number, row, column)` where planes lie side by side; else `several(first)` for units of elements."""
    i64 = positions.rows.type
    element_bytes = i64(unit.element.width // 8)
    beside = builder.icmp_signed("==", positions.plane_step, element_bytes)
    with builder.if_else(beside) as (then, otherwise):
        with (
            then,
            cgutils.for_range(builder, positions.rows) as rows,
            cgutils.for_range(builder, positions.columns) as columns,
        ):
            row, column = rows.index, columns.index
            one(builder.add(builder.mul(row, positions.pitch), column), row, column)
        with otherwise:
            n = builder.mul(positions.rows, positions.columns)
            _each_unit(builder, n, unit, unit.count, lambda first, _: several(first))


@intrinsic
def _read_positions(
    _context: Any, target: Any, source: Any, positions: Any, kind: Any, rule: Any
) -> Any:
    """Read a vector of planes, from `source` on: vectors of states for each position.

    What the next vector of planes has is fetched (0.65 to 1 of the time).
    """
    pool = kind.state

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target, part = cgutils.unpack_tuple(builder, values[0])
        source = values[1]
        where = Positions(*cgutils.unpack_tuple(builder, values[2]))
        rule = pool.rule(builder, signature, values)
        vector = _vector(pool.element)
        unit = _unit(vector)
        lowest = _splat(builder, pool.lowest(builder, rule), _vector(pool.type))
        i64 = target.type
        size, element_bytes = i64(VECTOR_BYTES), i64(pool.element.width // 8)
        next_source = builder.add(source, builder.mul(where.plane_step, i64(vector.count)))

        def store(bits: Any, number: Any) -> None:
            lanes = vector.count // _state_parts(pool)
            for k in range(_state_parts(pool)):
                some = _lanes_from(builder, bits, k * lanes, lanes)
                state = pool.of(context, builder, some, None, rule)
                if not pool.sums:
                    state = _joined(builder, state, lowest)
                _store(builder, state, _place(builder, target, (number, size), (i64(k), part)))

        def one(number: Any, row: Any, column: Any) -> None:
            steps = (row, where.row_step), (column, where.step)
            _prefetch(builder, _place(builder, next_source, *steps), 2)
            store(_load(builder, _place(builder, source, *steps), vector), number)

        def several(first: Any) -> None:
            # All lines of the next planes, which adjoin, too, by and by: as many for each position as lanes fill.
            ahead = _place(builder, next_source, (first, size))
            for k in range(unit.count):
                _prefetch(builder, builder.gep(ahead, [i64(k * VECTOR_BYTES)]), 2)
            address = builder.add(source, builder.mul(first, element_bytes))
            vectors = _load_transposed(builder, address, where.plane_step, vector.count, unit)
            for i, bits in enumerate(vectors):
                store(bits, builder.add(first, i64(i)))

        _each_position(builder, where, unit, one, several)
        return context.get_dummy_value()

    return types.void(target, types.int64, positions, kind, rule), codegen


def _store_tile(
    builder: Any, values: Any, pool: PoolState, finish: Callable[[Any, Any], Any]
) -> None:
    """Store what `finish(states, number)` makes of a vector of states of a position."""
    target = values[0]
    source, part = cgutils.unpack_tuple(builder, values[1])
    where = Positions(*cgutils.unpack_tuple(builder, values[2]))
    vector, states = _vector(pool.element), _vector(pool.type)
    unit = _unit(vector)
    i64 = target.type
    size, element_bytes = i64(VECTOR_BYTES), i64(pool.element.width // 8)

    def elements(number: Any) -> Any:
        places = [
            _place(builder, source, (number, size), (i64(k), part))
            for k in range(_state_parts(pool))
        ]
        return _side_by_side(
            builder, [finish(_load(builder, place, states), number) for place in places]
        )

    def one(number: Any, row: Any, column: Any) -> None:
        place = _place(builder, target, (row, where.row_step), (column, where.step))
        _store(builder, elements(number), place)

    def several(first: Any) -> None:
        vectors = [elements(builder.add(first, i64(i))) for i in range(unit.count)]
        address = builder.add(target, builder.mul(first, element_bytes))
        units = _units(builder, address, where.plane_step, vector.count, unit.count)
        _store_each(builder, vectors, units)

    _each_position(builder, where, unit, one, several)


@intrinsic
def transposed_elements(
    _context: Any, target: Any, source: Any, positions: Any, kind: Any, rule: Any
) -> Any:
    """Store the elements of a vector of planes, from `target` on, of states as _read_positions makes them."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        order = _rule(builder, signature, values)

        def finish(joined: Any, _number: Any) -> Any:
            return _element_bits(builder, joined, order)

        _store_tile(builder, values, kind.state, finish)
        return context.get_dummy_value()

    return types.void(types.int64, source, positions, kind, rule), codegen


@intrinsic
def transposed_sums(
    _context: Any,
    target: Any,
    source: Any,
    positions: Any,
    divisors: Any,
    kind: Any,
    exponent: Any,
) -> Any:
    """As transposed_elements, of sums: what they become. True if a result is not certain to be right.

    Sums that are divided are so by that of `divisors` which is their position's.
    """
    pool = kind.state

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        doubtful = cgutils.alloca_once_value(builder, ir.IntType(1)(0))

        def finish(sums: Any, number: Any) -> Any:
            if pool.divided:
                place = _place(builder, values[3], (number, number.type(pool.bytes)))
                divisor = _load(builder, place, pool.type)
                sums = builder.fdiv(sums, _splat(builder, divisor, sums.type))
            value, unsafe = pool.finished(context, builder, sums, values[-1])
            if unsafe is not None:
                some = builder.or_(builder.load(doubtful), _any(builder, unsafe))
                builder.store(some, doubtful)
            return _nearest_bits(context, builder, value, pool)

        _store_tile(builder, values, pool, finish)
        return builder.load(doubtful)

    i64 = types.int64
    return types.boolean(i64, source, positions, i64, kind, exponent), codegen


@intrinsic
def _join_windows(
    _context: Any, target: Any, source: Any, lines: Any, along: Any, kind: Any
) -> Any:
    """Join the vectors of each of so many lines to those of its windows.

    Windows are taken by as many as each has elements. All of these have one in common, the last of the first: from
    there on states are joined backwards, for what windows have up to it, then onwards, for what they have beyond.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        to = Vectors(*cgutils.unpack_tuple(builder, values[0]))
        source = Vectors(*cgutils.unpack_tuple(builder, values[1]))
        n, windows, window, padding = cgutils.unpack_tuple(builder, values[3])
        _prefer_small_code(builder)
        vector = _vector(kind.state.type)
        i64 = n.type
        zero, one = i64(0), i64(1)
        # From a window's number to its last element.
        to_last = builder.sub(builder.sub(window, one), padding)
        best = cgutils.alloca_once(builder, vector)

        def join_group(line: Any, first: Any) -> None:
            elements, results = (
                builder.add(at.address, builder.mul(line, at.line_step)) for at in (source, to)
            )
            stop = _lesser(builder, builder.add(first, window), windows)

            def join(element: Any) -> None:
                state = _load(builder, _place(builder, elements, (element, source.step)), vector)
                builder.store(_joined(builder, state, builder.load(best)), best)

            def place(number: Any) -> Any:
                return _place(builder, results, (number, to.step))

            def join_window(number: Any) -> None:
                old = _load(builder, place(number), vector)
                _store(builder, _joined(builder, builder.load(best), old), place(number))

            def backwards(begin: Any, end: Any) -> Any:
                """Elements from `begin` down to `end`, where there is one."""
                return cgutils.for_range(builder, builder.add(builder.sub(begin, end), one))

            common = _lesser(builder, builder.add(first, to_last), builder.sub(n, one))
            # Where the last window begins, and the first one: before the elements, or at one of them.
            last = builder.sub(builder.sub(stop, one), padding)
            begin = _greater(builder, builder.sub(first, padding), zero)
            builder.store(_padding_state(vector), best)
            with backwards(common, _greater(builder, builder.add(last, one), zero)) as loop:
                join(builder.sub(common, loop.index))
            with backwards(last, begin) as loop:
                element = builder.sub(last, loop.index)
                join(element)
                _store(builder, builder.load(best), place(builder.add(element, padding)))
            # Those that begin in padding have what the first element's has.
            end = _lesser(builder, padding, stop)
            with cgutils.for_range_slice(builder, first, end, one, i64) as (number, _):
                _store(builder, builder.load(best), place(number))
            builder.store(_padding_state(vector), best)
            second = builder.add(first, one)
            inside = _greater(builder, _lesser(builder, stop, builder.sub(n, to_last)), second)
            with cgutils.for_range_slice(builder, second, inside, one, i64) as (number, _):
                join(builder.add(number, to_last))
                join_window(number)
            with cgutils.for_range_slice(builder, inside, stop, one, i64) as (number, _):
                join_window(number)

        with (
            cgutils.for_range(builder, values[2]) as line,
            cgutils.for_range_slice(builder, zero, windows, window, i64) as (first, _),
        ):
            join_group(line.index, first)
        return context.get_dummy_value()

    return types.void(target, source, types.int64, along, kind), codegen


@helper
def _windows_part(axis, first, windows):
    """The elements of so many windows from number `first` on: where they begin, and what they are."""
    start = first - axis.padding
    begin = most(start, 0)
    n = least(start + windows - 1 + axis.window, axis.size) - begin
    return begin, Along(n, windows, axis.window, begin - start)


class Tile(NamedTuple):
    """Outputs of planes: the first row and column, and whether they are others than those of the item before."""

    row: Any
    column: Any
    new: Any


def transposed_chunk(kind, read_rule, store):
    """Chunk for planes that lie side by side, or whose elements adjoin, as those of their outputs do.

    An item is as many planes as a vector has elements, along the innermost of the batch axes, and in these a tile of
    SHARE and TILE outputs, which is all of a plane whose elements adjoin. Windows begin side by side. The last item of
    a tile ends with the last plane, and computes some again that the one before has computed. `read_rule` as of
    line_chunk; `store` stores what joined states become.
    """
    size, divided = VECTOR_BYTES, kind.divided

    @entry
    def chunk(walk, x, out, other, begin, end):
        settings, batch, spatial = pool_tables(walk)
        rule = read_rule(settings)
        parts = state_parts(kind)
        lanes, share, tile = size // element_size(kind), settings[SHARE], settings[TILE]
        # A divisor for each output, and for each column. Vectors begin at multiples of their size: 0.8 of the time.
        before = aligned((share + 1) * tile * state_size(kind)) if divided else 0
        part = settings[TRANSPOSED_BYTES]
        divisors = allocate(before + 2 * parts * part)
        first = Buffer(divisors + before, part)
        second = Buffer(first.address + parts * part, part)
        plane_axis = batch_axis(batch, settings[BATCH] - 1)
        planes, step = plane_axis.size, plane_axis.step
        out_step = plane_axis.out_step
        row_axis, axis = spatial_axis(spatial, 0), spatial_axis(spatial, 1)
        vectors = ceildiv(planes, lanes)
        blocks, tiles = ceildiv(row_axis.out_size, share), ceildiv(axis.out_size, tile)
        last = -1
        for item in range(begin, end):
            rest, vector = split(item, vectors)
            plane = least(vector * lanes, planes - lanes)
            outer, number = split(rest, blocks * tiles)
            row, column = split(number, tiles)
            row *= share
            column *= tile
            x_offset, out_offset, _, _ = offsets_of(batch, settings[BATCH] - 1, outer)
            top, down = _windows_part(row_axis, row, least(share, row_axis.out_size - row))
            left, across = _windows_part(axis, column, least(tile, axis.out_size - column))
            # Rows an odd number of vectors apart are in different sets of the caches.
            pitch = across.n | 1 if step == element_size(kind) else across.n
            source = x + x_offset + plane * step + top * row_axis.step + left * axis.step
            _read_positions(
                first,
                source,
                Positions(down.n, across.n, pitch, row_axis.step, axis.step, step),
                kind,
                rule,
            )
            line, out_line = pitch * size, across.windows * size
            for k in range(parts):
                here, there = first.address + k * part, second.address + k * part
                _join_windows(
                    Vectors(there, size, line), Vectors(here, size, line), across.n, down, kind
                )
                _join_windows(
                    Vectors(here, out_line, size),
                    Vectors(there, line, size),
                    down.windows,
                    across,
                    kind,
                )
            target = out + out_offset + plane * out_step
            target += row * row_axis.out_step + column * axis.out_step
            store(
                spatial,
                Tile(row, column, number != last),
                target,
                first,
                Positions(
                    down.windows,
                    across.windows,
                    across.windows,
                    row_axis.out_step,
                    axis.out_step,
                    out_step,
                ),
                divisors,
                other,
                kind,
                rule,
            )
            last = number
        release(divisors)

    return chunk
