"""Sums in lines of scratch memory, and the elements that they become."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import NEAR_STEPS
from compiled import helper
from few_lanes import _load_few, _store_few
from half import _like
from llvm import _const
from loops import _cases
from memory import _load, _place, _pointer, _splat, _store, _vector, element_size, split
from pool_line import Runs, States, Strided, _fold_runs, copy_element
from pool_outputs import layout_of
from pool_settings import LANE_OUT, PAST, PITCH
from pool_state import state_size
from shuffles import _shuffled
from state_lanes import _padding_state
from stores import _store_lanes, _store_past
from strips import _after, _runs, _strips
from sums import Sums, _float_of, _nearest_bits
from vectors import _any


def _as_state(builder: Any, value: Any, element: Any) -> Any:
    """A float64 as a scalar of a line's type."""
    return value if element == ir.DoubleType() else builder.fptrunc(value, element)


@intrinsic
def load_float(_context: Any, address: Any, kind: Any) -> Any:
    """The element at `address` as a float64."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[0]), kind.state.element)
        return _float_of(context, builder, bits, kind.state.dtype, ir.DoubleType())

    return types.float64(types.int64, kind), codegen


@intrinsic
def store_float(_context: Any, address: Any, value: Any, kind: Any) -> Any:
    """Store the element nearest to a float64."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _nearest_bits(context, builder, values[1], kind.state)
        _store(builder, bits, _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.float64, kind), codegen


def _as_sum(builder: Any, bits: Any, sums: Sums) -> Any:
    """Bits of elements as what the sum of 0 and each becomes: of -0.0 that is 0.0, and every NaN is quiet.

    Elements of 16 bits are not converted for that: 0.3 of the time.
    """
    if sums.element.width != 16:
        element = ir.FloatType() if sums.element.width == 32 else ir.DoubleType()
        value = builder.bitcast(bits, _like(bits.type, element))
        return builder.bitcast(builder.fadd(value, _const(value.type, 0.0)), bits.type)
    half, short = sums.dtype == "FLOAT16", bits.type
    magnitude = builder.and_(bits, _const(short, 0x7FFF))
    sign = builder.and_(bits, _const(short, 0x8000))
    quiet = builder.or_(bits if half else sign, _const(short, 0x200 if half else 0x7FC0))
    zero = builder.icmp_unsigned("==", magnitude, _const(short, 0))
    nan = builder.icmp_unsigned(">", magnitude, _const(short, 0x7C00 if half else 0x7F80))
    return builder.select(nan, quiet, builder.select(zero, _const(short, 0), bits))


@intrinsic
def copy_as_sum(_context: Any, target: Any, source: Any, kind: Any) -> Any:
    """Copy an element; see _as_sum."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[1]), kind.state.element)
        _store(builder, _as_sum(builder, bits, kind.state), _pointer(builder, values[0]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, kind), codegen


@intrinsic
def set_sums(_context: Any, line: Any, n: Any, value: Any, kind: Any) -> Any:
    """Set n sums to a float64, exactly these."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = kind.state.type
        value = _as_state(builder, values[2], element)
        start = builder.inttoptr(values[0], element.as_pointer())
        with cgutils.for_range(builder, values[1]) as loop:
            _store(builder, value, builder.gep(start, [loop.index]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, kind), codegen


@intrinsic
def add_to_sum(_context: Any, line: Any, number: Any, value: Any, kind: Any) -> Any:
    """Add a float64 to sum `number` of a line."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = kind.state.type
        place = builder.gep(builder.inttoptr(values[0], element.as_pointer()), [values[1]])
        old = _load(builder, place, element)
        _store(builder, builder.fadd(old, _as_state(builder, values[2], element)), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, kind), codegen


@intrinsic
def get_sum(_context: Any, line: Any, number: Any, kind: Any) -> Any:
    """Sum `number` of a line as a float64."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = kind.state.type
        place = builder.gep(builder.inttoptr(values[0], element.as_pointer()), [values[1]])
        value = _load(builder, place, element)
        return value if element == ir.DoubleType() else builder.fpext(value, ir.DoubleType())

    return types.float64(types.int64, types.int64, kind), codegen


class Planes(NamedTuple):
    """Planes whose elements are added to sums: how many, and the bytes to the next one's line, and its elements."""

    count: Any
    line: Any
    source: Any


@intrinsic
def add_quotients(
    _context: Any,
    planes: Any,
    line: Any,
    address: Any,
    n: Any,
    divisors: Any,
    scale: Any,
    kind: Any,
) -> Any:
    """Add n contiguous elements of each plane, each divided by its divisor * scale, to the plane's line."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        planes = Planes(*cgutils.unpack_tuple(builder, values[0]))
        line, address, n, divisors, scale = values[1:6]
        element = kind.state.type
        size = n.type(kind.state.bytes)
        scale = _as_state(builder, scale, element)

        def strip(vector: Any, plane: Any, _number: Any, first: Any, done: Any, few: Any) -> None:
            narrow = ir.VectorType(kind.state.element, vector.count)
            divisor = _load(builder, _place(builder, divisors, (first, size)), vector)
            place = _place(builder, line, (plane, planes.line), (first, size))
            old = _load(builder, place, vector)
            item = n.type(narrow.element.width // 8)
            pointer = _place(builder, address, (plane, planes.source), (first, item))
            bits = _load_few(builder, pointer, few, narrow)
            value = _float_of(context, builder, bits, kind.state.dtype, element)
            value = builder.fdiv(value, builder.fmul(divisor, _splat(builder, scale, vector)))
            # Nothing is added to lanes that keep their sums: a masked store would not be forwarded to the next load.
            value = _after(builder, done, value, _padding_state(vector))
            if few is not None:
                value = builder.select(few.mask, value, _padding_state(vector))
            _store(builder, builder.fadd(old, value), place)

        _runs(context, builder, _vector(element), planes.count, n.type(1), n, strip)
        return context.get_dummy_value()

    i64 = types.int64
    args = (planes, i64, i64, i64, i64, types.float64, kind)
    return types.void(*args), codegen


@intrinsic
def copy_sums(_context: Any, target: Any, source: Any, n: Any, kind: Any) -> Any:
    """Copy n sums that adjoin, and touch no others."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, source, n = values[:3]
        element = kind.state.type
        size = n.type(kind.state.bytes)

        def strip(vector: Any, _plane: Any, _number: Any, first: Any, _done: Any, few: Any) -> None:
            value = _load_few(builder, _place(builder, source, (first, size)), few, vector)
            _store_few(builder, value, _place(builder, target, (first, size)), few)

        one = n.type(1)
        _runs(context, builder, _vector(element), one, one, n, strip)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, kind), codegen


@intrinsic
def spread_sums(_context: Any, target: Any, source: Any, n: Any, stride: Any, kind: Any) -> Any:
    """Copy n sums to places `stride` sums from each other, between which 0 stands or is put.

    Near ones as vectors: 0.75 to 0.95 of a gradient's time. Up to a vector more is 0 then, where a line that follows is
    yet to be written.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, source, n, stride = values[:4]
        element = kind.state.type
        vector = _vector(element)
        lanes, i64 = vector.count, n.type
        size = i64(kind.state.bytes)

        def spread(step: int, first: Any, count: Any) -> None:
            value = _load(builder, _place(builder, source, (first, size)), vector)
            if count is not None:
                value = _after(builder, count, _padding_state(vector), value)
            last = builder.mul(
                builder.sub(i64(lanes) if count is None else count, i64(1)), i64(step)
            )
            start = _place(builder, target, (first, i64(step * kind.state.bytes)))
            for begin in range(0, step * lanes, lanes):
                places = range(begin, begin + lanes)
                order = [lanes if place % step else place // step for place in places]
                part = _shuffled(builder, value, _padding_state(vector), order)
                with builder.if_then(builder.icmp_signed("<=", i64(begin), last)):
                    _store(builder, part, builder.gep(start, [i64(begin * kind.state.bytes)]))

        def by_step(step: Any) -> None:
            if isinstance(step, int):
                _strips(builder, lanes, n, partial(spread, step))
                return
            with cgutils.for_range(builder, n) as loop:
                value = _load(builder, _place(builder, source, (loop.index, size)), element)
                steps = builder.mul(loop.index, step)
                _store(builder, value, _place(builder, target, (steps, size)))

        _cases(builder, stride, NEAR_STEPS[1:], by_step)
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 4, kind), codegen


@intrinsic
def round_sums(
    _context: Any,
    target: Any,
    target_step: Any,
    line: Any,
    line_step: Any,
    count: Any,
    n: Any,
    past: Any,
    kind: Any,
) -> Any:
    """Store the elements nearest to `count` runs of n adjoining sums, which adjoin, too; if `past`, past the caches."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, target_step, line, line_step, count, n, past = values[:7]
        element = kind.state.type
        size = n.type(kind.state.bytes)

        def strip(vector: Any, number: Any, _line: Any, first: Any, _done: Any, few: Any) -> None:
            value = _load(
                builder, _place(builder, line, (number, line_step), (first, size)), vector
            )
            place = _place(builder, target, (number, target_step))
            bits = _nearest_bits(context, builder, value, kind.state)
            _store_past(builder, bits, place, first, few, past)

        _runs(context, builder, _vector(element), count, n.type(1), n, strip)
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 6, types.boolean, kind), codegen


@intrinsic
def set_elements(_context: Any, address: Any, n: Any, value: Any, kind: Any) -> Any:
    """Set n contiguous elements to that nearest to a float."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, n, value, _ = values
        bits = _nearest_bits(context, builder, value, kind.state)
        start = _pointer(builder, address)

        def strip(vector: Any, _plane: Any, _number: Any, first: Any, _done: Any, few: Any) -> None:
            _store_lanes(builder, _splat(builder, bits, vector), start, first, few)

        one = n.type(1)
        _runs(context, builder, _vector(bits.type), one, one, n, strip)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, value, kind), codegen


class RunDivisors(NamedTuple):
    """Divisors of runs of sums: products of one of a line, and of one for the whole run."""

    columns: Any  # address of the line
    column_step: Any  # bytes from a run's line to the next one's
    rows: Any  # address of those for runs
    row_step: Any


@intrinsic
def _store_sums(
    _context: Any,
    target: Any,
    states: Any,
    runs: Any,
    divisors: Any,
    past: Any,
    kind: Any,
    exponent: Any,
) -> Any:
    """Store the elements of runs of outputs, as store_elements does: what their sums become.

    Sums that are divided are so by RunDivisors. True if a result is not certain to be right.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        to = Strided(*cgutils.unpack_tuple(builder, values[0]))
        by, past = RunDivisors(*cgutils.unpack_tuple(builder, values[3])), values[4]
        pool, element = kind.state, kind.state.type
        size = to.address.type(pool.bytes)
        doubtful = cgutils.alloca_once_value(builder, ir.IntType(1)(0))

        def run(plane: Any, number: Any, value: Any, first: Any, few: Any) -> None:
            if pool.divided:
                place = _place(builder, by.columns, (number, by.column_step), (first, size))
                divisor = _load(builder, place, value.type)
                scale = _load(builder, _place(builder, by.rows, (number, by.row_step)), element)
                scale = _splat(builder, scale, value.type)
                value = builder.fdiv(value, builder.fmul(divisor, scale))
            value, unsafe = pool.finished(context, builder, value, values[-1])
            if unsafe is not None:
                if few is not None:
                    unsafe = builder.and_(unsafe, few.mask)
                some = builder.or_(builder.load(doubtful), _any(builder, unsafe))
                builder.store(some, doubtful)
            place = _place(builder, to.address, (plane, to.plane_step), (number, to.run_step))
            bits = _nearest_bits(context, builder, value, pool)
            _store_past(builder, bits, place, first, few, past)

        _fold_runs(context, builder, _vector(element), values[1:3], run, pool.divided)
        return builder.load(doubtful)

    args = (target, states, runs, divisors, types.boolean, kind, exponent)
    return types.boolean(*args), codegen


class LineDivisors(NamedTuple):
    """Addresses of two lines: the divisor of an output is the product of one for its column and one for its row."""

    columns: Any
    rows: Any


@helper
def write_lines(tables, outputs, target, lines, divisors, spare, kind, exponent):
    """Store a block of outputs, the first one at `target`, of Lines of sums, one for each row.

    All planes are stored at once where elements adjoin: small ones take 0.7 to 1 of the time so. True if an output is
    not certain to be right. `spare`: scratch memory for a run.
    """
    settings, axis, plane_out = tables.settings, tables.columns, tables.planes.out_step
    size, element_bytes, pitch = state_size(kind), element_size(kind), settings[PITCH]
    element_out = axis.out_step if pitch == 1 else settings[LANE_OUT]
    plain = element_out == element_bytes
    adjoin = plain and axis.out_step == pitch * element_bytes and lines.step == pitch * size
    layout = layout_of(tables, outputs, lines, adjoin)
    column_step, row_step = pitch * size, 0
    if layout.line_states == 0:  # a run is a line
        column_step, row_step = 0, size
    planes, runs, turns = outputs.planes, layout.runs, 1
    if not plain:  # run by run, by way of scratch memory
        planes, runs, turns = 1, 1, layout.runs
    doubtful = False
    for i in range(outputs.planes // planes * layout.lines):
        plane, line = split(i, layout.lines)
        to = target + plane * plane_out + line * layout.line_out
        states = lines.address + plane * lines.plane_step + line * layout.line_states
        for run in range(turns):
            unsure = _store_sums(
                Strided(to if plain else spare, plane_out, layout.run_out),
                States(
                    states + run * layout.run_states,
                    lines.plane_step,
                    layout.run_states,
                    lines.pieces,
                ),
                Runs(planes, runs, layout.n),
                RunDivisors(
                    divisors.columns + run * column_step,
                    column_step,
                    divisors.rows + line * size + run * row_step,
                    row_step,
                ),
                plain and settings[PAST] != 0,
                kind,
                exponent,
            )
            doubtful = doubtful or unsure
            for n in range(0 if plain else layout.n):
                element = to + run * layout.run_out + n * element_out
                copy_element(element, spare + n * element_bytes, kind)
    return doubtful
