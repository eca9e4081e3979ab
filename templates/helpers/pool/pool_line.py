"""Lines of states in scratch memory, and vector loops over them: made of rows, folded, turned into outputs."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import NEAR_STEPS, _load_apart
from compiled import inlined
from few_lanes import _load_few
from greatest import _element_bits, _inverted, _low, _parts, _resize, farthest
from llvm import _const, _width
from loops import _by_count, _cases, _prefer_small_code, _rounds
from memory import VECTOR_BYTES, _load, _place, _pointer, _prefetch, _splat, _store, _vector
from order_key import _rule
from pool_state import PoolState
from state_lanes import (
    _collected_states,
    _held,
    _joined,
    _load_states,
    _padding_state,
    _selected,
    _store_states,
)
from stores import _store_lanes, _store_past
from strips import WIDEST, _after, _runs
from target import _zen
from vectors import _any, _lesser


class Runs(NamedTuple):
    """How many runs there are: so many of n elements or states each, in each of so many planes."""

    planes: Any
    count: Any
    n: Any


class Strided(NamedTuple):
    """Where runs are: the address of the first one, and the bytes from one plane and from one run to the next."""

    address: Any
    plane_step: Any
    run_step: Any


class Source(NamedTuple):
    """Runs of input elements, the first taps of windows: as Strided, and their positions."""

    address: Any
    plane_step: Any
    run_step: Any
    step: Any  # bytes from one element to the next, where they do not adjoin
    position: Any
    run_weight: Any  # what is added to the position from one run, and from one element, to the next
    weight: Any  # 0 or 1


class Taps(NamedTuple):
    """Further taps of windows that are joined at once: in two tables of int64, where they are from the first."""

    offsets: Any
    positions: Any  # twice these, as states have a bit below them
    count: Any
    fresh: Any  # none of the same windows are joined yet


class Pieces(NamedTuple):
    """What states are yet to be joined of: so many, `step` states apart, the last of them `last` states from the first.

    `stride`: states from one output of a run to the next, one of NEAR_STEPS where outputs are stored.
    """

    stride: Any
    count: Any
    step: Any
    last: Any


class States(NamedTuple):
    """Runs of states that are yet to be joined of pieces: as Strided."""

    address: Any
    plane_step: Any
    run_step: Any
    pieces: Any


class Lines(NamedTuple):
    """Lines of states of an item: where the first is, the bytes to the next plane, line and output, and the pieces."""

    address: Any
    plane_step: Any
    line_step: Any
    step: Any
    pieces: Any


class Scratch(NamedTuple):
    """Scratch memory of a chunk: addresses, and the table of a box."""

    offsets: Any  # of taps, and twice their positions: two tables of int64
    positions: Any
    box: Any
    lines: Any  # of states, and buffers for as many
    doubled: Any
    rest: Any  # what does not fill a whole piece of a window; None but for sums
    divisors: Any  # of columns, then of rows; None but for sums
    spare: Any  # a run that is not yet stored


class Indices(NamedTuple):
    """What indices are, of `size` bytes: base + i * weight + position, and `plane_base` more in each further plane."""

    base: Any
    plane_base: Any
    weight: Any
    size: Any


@inlined
def lane_runs(pitch, lanes, places, adjoin):
    """How many runs the `lanes` of so many places of a line are, and the elements of each.

    `adjoin`: where a place has `pitch` lanes, as all do but in the last set of planes, the next one's follow.
    """
    if pitch == 1:
        return 1, places
    if adjoin and lanes == pitch:
        return 1, places * pitch
    return places, lanes


# Bytes from a row to what is fetched ahead: large inputs take 0.6 to 1 of the time, small 1 to 1.03.
AHEAD = 32768
# The same on Zen 5 (0.86 to 1 of that) where a row's columns are places, not planes.
_AHEAD_IN_ROW = 8192


@intrinsic
def clear_states(_context: Any, line: Any, n: Any, kind: Any) -> Any:
    """Set n states, and up to a vector more, to padding."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        vector = _vector(kind.state.type)
        i64 = ir.IntType(64)
        start = _pointer(builder, values[0])
        stop = builder.mul(values[1], i64(kind.state.bytes))
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            _store_states(builder, _padding_state(_held(vector)), builder.gep(start, [offset]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, kind), codegen


def _join_taps_of(
    context: Any, builder: Any, signature: Any, values: Any, pool: PoolState, apart: bool
) -> None:
    """See join_taps; `apart`: elements do not adjoin."""
    target = Strided(*cgutils.unpack_tuple(builder, values[0]))
    source = Source(*cgutils.unpack_tuple(builder, values[1]))
    runs = Runs(*cgutils.unpack_tuple(builder, values[2]))
    taps = Taps(*cgutils.unpack_tuple(builder, values[3]))
    i64 = ir.IntType(64)
    rule = pool.rule(builder, signature, values)
    offsets, positions = (builder.inttoptr(t, i64.as_pointer()) for t in taps[:2])
    ahead, level = i64(AHEAD), 2
    if _zen(context) >= 5:
        places = builder.icmp_signed("!=", source.weight, i64(0))
        ahead, level = builder.select(places, i64(_AHEAD_IN_ROW), ahead), 1
    whole = _vector(pool.type, WIDEST if pool.positions else 1)
    if pool.positions:
        low = ir.VectorType(_low(pool.type, pool.element), whole.count)
        numbers = ir.Constant(low, list(range(0, 2 * low.count, 2)))
        along = _splat(builder, _resize(builder, source.weight, low.element), low)
        weights = builder.mul(along, numbers)
    fresh = builder.trunc(taps.fresh, ir.IntType(1))

    def strip(
        rounds: Any, vector: Any, plane: Any, number: Any, first: Any, done: Any, few: Any
    ) -> None:
        narrow = ir.VectorType(pool.element, vector.count)
        held = _held(vector)
        best, padding = cgutils.alloca_once(builder, held), _padding_state(held)
        size = i64(pool.bytes)
        steps = (plane, target.plane_step), (number, target.run_step), (first, size)
        place = _place(builder, target.address, *steps)
        if pool.sums:
            builder.store(padding, best)
        else:
            old = _load_states(builder, place, vector)
            begin = padding
            if not pool.positions:
                lowest = _splat(builder, pool.lowest(builder, rule), vector)
                begin = lowest if few is None else builder.select(few.mask, lowest, padding)
            builder.store(builder.select(fresh, begin, old), best)
        step = source.step if apart else i64(narrow.element.width // 8)
        steps = (plane, source.plane_step), (number, source.run_step), (first, step)
        first_tap = _place(builder, source.address, *steps)
        start = None
        if pool.positions:
            start = builder.add(source.position, builder.mul(number, source.run_weight))
            start = builder.add(start, builder.mul(first, source.weight))
            start = _inverted(builder, start, pool.type, pool.element)
            start = builder.sub(_splat(builder, start, low), weights)

        def join_tap(tap: Any) -> None:
            offset = builder.load(builder.gep(offsets, [tap]))
            pointer = builder.gep(first_tap, [offset])
            _prefetch(builder, builder.gep(pointer, [ahead]), level)
            where = None
            if pool.positions:
                where = builder.load(builder.gep(positions, [tap]))
                where = _splat(builder, _resize(builder, where, low.element), low)
                where = builder.sub(start, where)
            if apart:
                address = builder.ptrtoint(pointer, i64)
                count = None if few is None else few.count
                bits = _load_apart(builder, address, step, narrow, count)
            else:
                bits = _load_few(builder, pointer, few, narrow)
            state = pool.of(context, builder, bits, where, rule)
            if few is not None:
                state = _selected(builder, few.mask, state, padding)
            builder.store(_joined(builder, state, builder.load(best)), best)

        _rounds(builder, rounds, join_tap)
        found = builder.load(best)
        if not pool.sums:
            _store_states(builder, found, place)
            return
        with builder.if_else(fresh) as (then, otherwise):
            with then:
                _store(builder, found, place)
            with otherwise:  # what the strip before has added is not added again
                old = _load(builder, place, vector)
                more = _after(builder, done, builder.fadd(old, found), old)
                _store(builder, more, place)

    def strips(rounds: Any) -> None:
        halves = not pool.positions and not apart  # `weights` are those of a whole vector
        _runs(context, builder, whole, *runs, partial(strip, rounds), halves)

    if apart:
        strips(taps.count)
    else:
        _by_count(builder, taps.count, strips)


def _joining_taps(apart: bool) -> Any:
    """An intrinsic that joins taps of runs whose elements adjoin, or of others."""

    @intrinsic
    def join(
        _context: Any, target: Any, source: Any, runs: Any, taps: Any, kind: Any, rule: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _join_taps_of(context, builder, signature, values, kind.state, apart)
            return context.get_dummy_value()

        return types.void(target, source, runs, taps, kind, rule), codegen

    return join


# Join runs of states, at a Strided, with those of all taps of a Source, kept in a register meanwhile. Of fresh taps the
# old states do not count. A run may be written WIDEST registers further, with padding or with what stood there.
join_taps = _joining_taps(apart=False)
join_taps_apart = _joining_taps(apart=True)


def _folded(
    builder: Any, source: Any, vectors: int, vector: Any, pieces: tuple[Any, Any, Any]
) -> list[Any]:
    """Neighbouring vectors at `source`, each joined of those `step` bytes apart, the last at `last` bytes.

    In this order, as rows are: sums have the same bits.
    """
    count, step, last = pieces
    i64 = last.type
    size = vector.count * _width(vector) // 8
    places = [builder.gep(source, [i64(i * size)]) for i in range(vectors)]
    best = [cgutils.alloca_once(builder, _held(vector)) for _ in range(vectors)]
    several = builder.icmp_signed(">", i64(count) if isinstance(count, int) else count, i64(1))
    first = builder.select(several, i64(0), last)
    for one, place in zip(best, places, strict=True):
        builder.store(_load_states(builder, builder.gep(place, [first]), vector), one)

    def join(offset: Any) -> None:
        for one, place in zip(best, places, strict=True):
            state = _load_states(builder, builder.gep(place, [offset]), vector)
            builder.store(_joined(builder, builder.load(one), state), one)

    between = count - 2 if isinstance(count, int) else builder.sub(count, i64(2))
    _rounds(builder, between, lambda n: join(builder.mul(builder.add(n, i64(1)), step)))
    with builder.if_then(several):
        join(last)
    return [builder.load(one) for one in best]


@intrinsic
def fold_line(_context: Any, target: Any, source: Any, n: Any, pieces: Any, kind: Any) -> Any:
    """target[i] = source[i], source[i + step], .., source[i + last] joined, for n states and up to a vector more.

    May be in place. One piece: a copy of those at `last`.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _prefer_small_code(builder)
        target, source, n = values[:3]
        joined_of = Pieces(*cgutils.unpack_tuple(builder, values[3]))
        vector = _vector(kind.state.type)
        i64 = ir.IntType(64)
        size = i64(kind.state.bytes)
        near, to = _pointer(builder, source), _pointer(builder, target)
        step, last = builder.mul(joined_of.step, size), builder.mul(joined_of.last, size)
        shifts = (joined_of.count, step, last)
        stop = builder.mul(n, size)
        with cgutils.for_range_slice(builder, i64(0), stop, i64(VECTOR_BYTES), i64) as (offset, _):
            (best,) = _folded(builder, builder.gep(near, [offset]), 1, vector, shifts)
            _store_states(builder, best, builder.gep(to, [offset]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, pieces, kind), codegen


@intrinsic
def fold_block(
    _context: Any,
    target: Any,
    source: Any,
    runs: Any,
    window: Any,
    kind: Any,
) -> Any:
    """Join `window` runs of n states, a vector at least, from each of the runs on, which are no more than `window`.

    Target and source are Strided, of runs as far apart. The last run of the first window is in all windows: up to it
    runs are joined backwards, after it onwards, so that a window costs as much whatever it has.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target = Strided(*cgutils.unpack_tuple(builder, values[0]))
        source = Strided(*cgutils.unpack_tuple(builder, values[1]))
        planes, count, n = cgutils.unpack_tuple(builder, values[2])
        window = values[3]
        _prefer_small_code(builder)
        vector = _vector(kind.state.type)
        i64 = n.type
        one, size, lanes = i64(1), i64(kind.state.bytes), i64(vector.count)
        end = builder.sub(n, lanes)
        padding = _padding_state(_held(vector))
        best = cgutils.alloca_once(builder, padding.type)

        def strip(plane: Any, first: Any) -> None:
            rows = _place(builder, source.address, (plane, source.plane_step), (first, size))
            windows = _place(builder, target.address, (plane, target.plane_step), (first, size))

            def place(start: Any, row: Any) -> Any:
                return builder.gep(start, [builder.mul(row, source.run_step)])

            def join_row(row: Any) -> Any:
                state = _load_states(builder, place(rows, row), vector)
                joined = _joined(builder, state, builder.load(best))
                builder.store(joined, best)
                return joined

            builder.store(padding, best)
            with cgutils.for_range(builder, builder.sub(window, count)) as loop:
                join_row(builder.add(count, loop.index))
            with cgutils.for_range(builder, count) as loop:
                row = builder.sub(builder.sub(count, one), loop.index)
                _store_states(builder, join_row(row), place(windows, row))
            builder.store(padding, best)
            with cgutils.for_range_slice(builder, one, count, one, i64) as (row, _):
                more = join_row(builder.add(builder.sub(window, one), row))
                state = _load_states(builder, place(windows, row), vector)
                _store_states(builder, _joined(builder, state, more), place(windows, row))

        with (
            cgutils.for_range(builder, planes) as loop,
            cgutils.for_range_slice(builder, i64(0), n, lanes, i64) as (begin, _),
        ):
            strip(loop.index, _lesser(builder, begin, end))
        return context.get_dummy_value()

    return types.void(target, source, runs, types.int64, kind), codegen


def _fold_runs(
    context: Any, builder: Any, vector: Any, values: Any, run: Any, halves: bool = False
) -> None:
    """`run(plane, number, states, first, few)` for the folded states of strips of runs; for `halves` see _runs.

    `values`: States and Runs.
    """
    states = States(*cgutils.unpack_tuple(builder, values[0]))
    runs = Runs(*cgutils.unpack_tuple(builder, values[1]))
    pieces = Pieces(*cgutils.unpack_tuple(builder, states.pieces))
    i64 = runs.n.type
    state_bytes = _width(vector) // 8
    size = i64(state_bytes)
    shifts = builder.mul(pieces.step, size), builder.mul(pieces.last, size)

    def near(
        stride: int,
        count: Any,
        vector: Any,
        plane: Any,
        number: Any,
        first: Any,
        _done: Any,
        few: Any,
    ) -> None:
        step = i64(stride * state_bytes)
        steps = (plane, states.plane_step), (number, states.run_step), (first, step)
        source = _place(builder, states.address, *steps)
        joined = _folded(builder, source, stride, vector, (count, *shifts))
        places = list(range(0, stride * vector.count, stride))
        run(plane, number, _collected_states(builder, joined, places), first, few)

    def strips(stride: int, halves: bool, count: Any) -> None:
        _runs(context, builder, vector, *runs, partial(near, stride, count), halves)

    def by_stride(stride: Any) -> None:
        if stride in (1, 2):
            _by_count(builder, pieces.count, partial(strips, stride, halves))
        elif stride in NEAR_STEPS:
            strips(stride, False, pieces.count)
        # There is no other: see Pieces.

    _cases(builder, pieces.stride, NEAR_STEPS, by_stride)


@intrinsic
def copy_state(_context: Any, target: Any, source: Any, kind: Any) -> Any:
    """Copy one state."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        state = _load(builder, _pointer(builder, values[1]), kind.state.type)
        _store(builder, state, _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, kind), codegen


@intrinsic
def copy_element(_context: Any, target: Any, source: Any, kind: Any) -> Any:
    """Copy the bits of one element."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[1]), kind.state.element)
        _store(builder, bits, _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, kind), codegen


@intrinsic
def store_elements(
    _context: Any, target: Any, states: Any, runs: Any, past: Any, kind: Any, rule: Any
) -> Any:
    """Store the elements of runs of outputs at a Strided; if `past`, past the caches: see drain_stores."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to, past = Strided(*cgutils.unpack_tuple(builder, values[0])), values[3]
        order = _rule(builder, signature, values)

        def run(plane: Any, number: Any, joined: Any, first: Any, few: Any) -> None:
            place = _place(builder, to.address, (plane, to.plane_step), (number, to.run_step))
            bits = _element_bits(builder, joined, order)
            _store_past(builder, bits, place, first, few, past)

        _fold_runs(context, builder, _vector(kind.state.type), values[1:3], run, halves=True)
        return context.get_dummy_value()

    return types.void(target, states, runs, types.boolean, kind, rule), codegen


@intrinsic
def store_found(
    _context: Any,
    out: Any,
    indices_out: Any,
    states: Any,
    runs: Any,
    indices: Any,
    blank: Any,
    past: Any,
    kind: Any,
    rule: Any,
) -> Any:
    """Store elements as store_elements does, at `out`, and their Indices at `indices_out`, if `past` past the caches.

    The indices alone where `out` is None. True if there was a NaN: its bits are not in its state, and the element
    stored is to be replaced.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        elements_wanted = signature.args[0] != types.none
        out = Strided(*cgutils.unpack_tuple(builder, values[0])) if elements_wanted else None
        indices_out = Strided(*cgutils.unpack_tuple(builder, values[1]))
        base, plane_base, weight, size = Indices(*cgutils.unpack_tuple(builder, values[4]))
        blank, past = values[5:7]
        order = _rule(builder, signature, values)
        state_type, bits_type = kind.state.type, kind.state.element
        # The keys, and the positions, of two registers of wide states fill one: 0.86 to 0.95 of the time.
        vector = _vector(state_type, WIDEST if state_type.width > 32 else 1)
        narrow = ir.VectorType(bits_type, vector.count)
        some = ir.VectorType(ir.IntType(1), vector.count)
        found = cgutils.alloca_once_value(builder, ir.Constant(some, None))

        def store_bits(target: Any, key: Any, low: Any, padding: Any, first: Any, few: Any) -> None:
            if order.inf is None:
                bits = builder.xor(key, _splat(builder, order.flip, narrow))
            else:
                highest = _const(narrow, bits_type.width - 1)
                negative = builder.ashr(key, highest)
                bits = builder.sub(builder.xor(key, negative), negative)
                sign = builder.shl(_resize(builder, low, bits_type), highest)
                bits = builder.or_(bits, sign)
                nan = builder.icmp_signed("==", key, _splat(builder, order.nan_key, narrow))
                nan = builder.and_(nan, builder.not_(padding))
                if few is not None:
                    nan = builder.and_(nan, few.mask)
                builder.store(builder.or_(builder.load(found), nan), found)
            bits = builder.select(padding, _splat(builder, blank, narrow), bits)
            _store_lanes(builder, bits, target, first, few)

        def store_indices(
            target: Any, start: Any, low: Any, padding: Any, first: Any, few: Any, integer: Any
        ) -> None:
            wanted = ir.VectorType(integer, vector.count)
            numbers = ir.Constant(wanted, list(range(vector.count)))
            steps = _splat(builder, _resize(builder, weight, integer), wanted)
            steps = builder.mul(steps, numbers)
            start = builder.add(start, builder.mul(first, weight))
            start = builder.add(start, start.type(farthest(state_type.width, bits_type.width)))
            start = _splat(builder, _resize(builder, start, integer), wanted)
            back = builder.lshr(low, _const(low.type, 1))
            if integer.width < low.type.element.width:
                back = builder.trunc(back, wanted)
            elif integer.width > low.type.element.width:
                back = builder.zext(back, wanted)
            index = builder.sub(builder.add(start, steps), back)
            index = builder.select(padding, _const(wanted, -1), index)
            _store_past(builder, index, target, first, few, past)

        def run(plane: Any, number: Any, joined: Any, first: Any, few: Any) -> None:
            key, low = _parts(builder, joined, bits_type)
            padding = builder.icmp_signed("==", low, ir.Constant(low.type, None))
            if out is not None:
                place = _place(
                    builder, out.address, (plane, out.plane_step), (number, out.run_step)
                )
                store_bits(place, key, low, padding, first, few)
            steps = (plane, indices_out.plane_step), (number, indices_out.run_step)
            place = _place(builder, indices_out.address, *steps)
            start = builder.add(base, builder.mul(plane, plane_base))
            short = builder.icmp_signed("==", size, size.type(4))
            with builder.if_else(short) as (then, otherwise):
                with then:
                    store_indices(place, start, low, padding, first, few, ir.IntType(32))
                with otherwise:
                    store_indices(place, start, low, padding, first, few, ir.IntType(64))

        _fold_runs(context, builder, vector, values[2:4], run)
        return _any(builder, builder.load(found))

    args = (out, indices_out, states, runs, indices, blank, types.boolean, kind, rule)
    return types.boolean(*args), codegen
