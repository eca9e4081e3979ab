"""Sums in lines of scratch memory, float32 or float64 as `wide` is, and the elements that they become."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compiled import helper
from few_lanes import _load_few, _store_few
from half import _like, _to_16_bits
from memory import _load, _pointer, _splat, _store, item_size, load_integer, split, store_integer
from pool_line import Pieces, Planes, Runs, _fold_runs, rank_size
from pool_walk import COLUMNS, LANE_OUT, LINE, OUT_STEP, PAST, PITCH, SPATIAL
from rank import _float_of, _may_vanish, _raised, _raised_to_real, _rank_type, _scalar, _width
from stores import _store_lanes, _store_past
from strips import _after, _place, _runs, _vector
from vectors import _any
from walk import axis_of

KINDS = {
    "FLOAT16": np.int16(0),
    "BFLOAT16": np.uint16(0),
    "FLOAT32": np.int32(0),
    "FLOAT64": np.int64(0),
}


def _bits_of(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """The bits of the element nearest to a float32 or float64."""
    if kind.bitwidth == 16:
        return _to_16_bits(context, builder, value, half=kind == types.int16)
    if _scalar(value.type) == ir.DoubleType() and kind == types.int32:
        value = builder.fptrunc(value, _like(value.type, ir.FloatType()))
    return builder.bitcast(value, _like(value.type, ir.IntType(kind.bitwidth)))


def _as_rank(builder: Any, value: Any, element: Any) -> Any:
    """A float64 as a scalar of a line's type."""
    return value if element == ir.DoubleType() else builder.fptrunc(value, element)


@intrinsic
def load_float(_context: Any, kind: Any, address: Any) -> Any:
    """The element at `address` as a float64."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[1]), ir.IntType(kind.bitwidth))
        return _float_of(context, builder, bits, kind, ir.DoubleType())

    return types.float64(kind, types.int64), codegen


@intrinsic
def store_float(_context: Any, kind: Any, address: Any, value: Any) -> Any:
    """Store the element nearest to a float64."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _bits_of(context, builder, values[2], kind)
        _store(builder, bits, _pointer(builder, values[1]))
        return context.get_dummy_value()

    return types.void(kind, types.int64, types.float64), codegen


def _as_sum(builder: Any, bits: Any, kind: Any) -> Any:
    """Bits of elements as what the sum of 0 and each becomes: of -0.0 that is 0.0, and every NaN is quiet.

    Elements of 16 bits are not converted for that: 0.3 of the time.
    """
    if kind.bitwidth != 16:
        element = ir.FloatType() if kind.bitwidth == 32 else ir.DoubleType()
        value = builder.bitcast(bits, _like(bits.type, element))
        return builder.bitcast(
            builder.fadd(value, _splat(builder, element(0.0), value.type)), bits.type
        )
    half = kind == types.int16

    def constant(value: int) -> Any:
        return _splat(builder, ir.IntType(16)(value), bits.type)

    magnitude = builder.and_(bits, constant(0x7FFF))
    sign = builder.and_(bits, constant(0x8000))
    quiet = builder.or_(bits if half else sign, constant(0x200 if half else 0x7FC0))
    zero = builder.icmp_unsigned("==", magnitude, constant(0))
    nan = builder.icmp_unsigned(">", magnitude, constant(0x7C00 if half else 0x7F80))
    return builder.select(nan, quiet, builder.select(zero, constant(0), bits))


@intrinsic
def copy_as_sum(_context: Any, kind: Any, target: Any, source: Any) -> Any:
    """Copy an element; see _as_sum."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        bits = _load(builder, _pointer(builder, values[2]), ir.IntType(kind.bitwidth))
        _store(builder, _as_sum(builder, bits, kind), _pointer(builder, values[1]))
        return _context.get_dummy_value()

    return types.void(kind, types.int64, types.int64), codegen


@intrinsic
def set_sums(_context: Any, line: Any, n: Any, value: Any, wide: Any, kind: Any) -> Any:
    """Set n sums to a float64, exactly these."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = _rank_type(wide, kind)
        value = _as_rank(builder, values[2], element)
        start = builder.inttoptr(values[0], element.as_pointer())
        with cgutils.for_range(builder, values[1]) as loop:
            _store(builder, value, builder.gep(start, [loop.index]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, wide, kind), codegen


@intrinsic
def add_to_sum(_context: Any, line: Any, number: Any, value: Any, wide: Any, kind: Any) -> Any:
    """Add a float64 to sum `number` of a line."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = _rank_type(wide, kind)
        place = builder.gep(builder.inttoptr(values[0], element.as_pointer()), [values[1]])
        old = _load(builder, place, element)
        _store(builder, builder.fadd(old, _as_rank(builder, values[2], element)), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, wide, kind), codegen


@intrinsic
def get_sum(_context: Any, line: Any, number: Any, wide: Any, kind: Any) -> Any:
    """Sum `number` of a line as a float64."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        element = _rank_type(wide, kind)
        place = builder.gep(builder.inttoptr(values[0], element.as_pointer()), [values[1]])
        value = _load(builder, place, element)
        return value if element == ir.DoubleType() else builder.fpext(value, ir.DoubleType())

    return types.float64(types.int64, types.int64, wide, kind), codegen


@intrinsic
def add_quotients(
    _context: Any,
    planes: Any,
    line: Any,
    address: Any,
    n: Any,
    divisors: Any,
    scale: Any,
    wide: Any,
    kind: Any,
) -> Any:
    """Add n contiguous elements of each plane, each divided by its divisor * scale, to the plane's line."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        planes = Planes(*cgutils.unpack_tuple(builder, values[0]))
        line, address, n, divisors, scale = values[1:6]
        element = _rank_type(wide, kind)
        size = n.type(_width(element) // 8)
        scale = _as_rank(builder, scale, element)

        def strip(vector: Any, plane: Any, _number: Any, first: Any, done: Any, few: Any) -> None:
            narrow = ir.VectorType(ir.IntType(kind.bitwidth), vector.count)
            divisor = _load(builder, _place(builder, divisors, (first, size)), vector)
            place = _place(builder, line, (plane, planes.line), (first, size))
            old = _load(builder, place, vector)
            item = n.type(kind.bitwidth // 8)
            pointer = _place(builder, address, (plane, planes.source), (first, item))
            bits = _load_few(builder, pointer, few, narrow)
            value = _float_of(context, builder, bits, kind, element)
            value = builder.fdiv(value, builder.fmul(divisor, _splat(builder, scale, vector)))
            value = _after(builder, done, builder.fadd(old, value), old)
            if few is not None:
                value = builder.select(few.mask, value, old)
            _store(builder, value, place)

        _runs(context, builder, _vector(element), planes.count, n.type(1), n, strip)
        return context.get_dummy_value()

    i64 = types.int64
    args = (planes, i64, i64, i64, i64, types.float64, wide, kind)
    return types.void(*args), codegen


@intrinsic
def copy_sums(_context: Any, target: Any, source: Any, n: Any, wide: Any, kind: Any) -> Any:
    """Copy n sums that adjoin, and touch no others."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, source, n = values[:3]
        element = _rank_type(wide, kind)
        size = n.type(_width(element) // 8)

        def strip(vector: Any, _plane: Any, _number: Any, first: Any, _done: Any, few: Any) -> None:
            value = _load_few(builder, _place(builder, source, (first, size)), few, vector)
            _store_few(builder, value, _place(builder, target, (first, size)), few)

        one = n.type(1)
        _runs(context, builder, _vector(element), one, one, n, strip)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, wide, kind), codegen


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
    wide: Any,
    kind: Any,
) -> Any:
    """Store the elements nearest to `count` runs of n adjoining sums, which adjoin, too; if `past`, past the caches."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        target, target_step, line, line_step, count, n, past = values[:7]
        element = _rank_type(wide, kind)
        size = n.type(_width(element) // 8)

        def strip(vector: Any, number: Any, _line: Any, first: Any, _done: Any, few: Any) -> None:
            value = _load(
                builder, _place(builder, line, (number, line_step), (first, size)), vector
            )
            place = _place(builder, target, (number, target_step))
            bits = _bits_of(context, builder, value, kind)
            _store_past(builder, bits, place, first, few, past)

        _runs(context, builder, _vector(element), count, n.type(1), n, strip)
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 6, types.boolean, wide, kind), codegen


@intrinsic
def set_elements(_context: Any, kind: Any, address: Any, n: Any, value: Any) -> Any:
    """Set n contiguous elements to that nearest to a float."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, address, n, value = values
        bits = _bits_of(context, builder, value, kind)
        start = _pointer(builder, address)

        def strip(vector: Any, _plane: Any, _number: Any, first: Any, _done: Any, few: Any) -> None:
            _store_lanes(builder, _splat(builder, bits, vector), start, first, few)

        one = n.type(1)
        _runs(context, builder, _vector(bits.type), one, one, n, strip)
        return context.get_dummy_value()

    return types.void(kind, types.int64, types.int64, value), codegen


# Roots of sums, of either width, whose squares are certainly neither lost nor infinite: others but 0 are computed in
# another way. Of sums of other powers, it is the sums that are as safe as these squares.
SAFE_32 = (2.0**-55, 2.0**63)
SAFE_64 = (2.0**-480, 2.0**510)


def _root(builder: Any, value: Any, exponent: Any, kind: Any) -> Any:
    """value**(1 / exponent), of float64s.

    A guess, wrong by 0.4 % at most, then Halley's steps, each of which leaves the cube of the error: no tables.
    """
    vector = value.type
    integers = ir.VectorType(ir.IntType(64), vector.count)

    def same(number: float) -> Any:
        return ir.Constant(vector, [number] * vector.count)

    one = same(1.0)
    p = _splat(builder, builder.sitofp(exponent, vector.element), vector)

    def bent(number: Any, by: float) -> Any:
        """The number with a parabola between integers, which makes 2**x of it where it stands for 1 + x, or back."""
        whole = builder.sitofp(builder.fptosi(number, integers), vector)
        part = builder.fsub(number, whole)
        more = builder.fmul(part, builder.fsub(one, part))
        return builder.fadd(number, builder.fmul(more, same(by)))

    bits = builder.sitofp(builder.bitcast(value, integers), vector)
    logarithm = bent(builder.fmul(bits, same(2.0**-52)), 0.3475)
    bias = same(1023.0)
    logarithm = builder.fadd(builder.fdiv(builder.fsub(logarithm, bias), p), bias)
    bits = builder.fmul(bent(logarithm, -0.34), same(2.0**52))
    root = builder.bitcast(builder.fptosi(bits, integers), vector)
    for _ in range(3 if kind == types.int64 else 2):
        quotient = builder.fdiv(_raised(builder, root, exponent), value)
        above = builder.fmul(builder.fadd(p, one), quotient)
        above = builder.fadd(above, builder.fsub(p, one))
        excess = builder.fsub(quotient, one)
        step = builder.fdiv(builder.fadd(excess, excess), above)
        root = builder.fsub(root, builder.fmul(root, step))
    positive = builder.fcmp_ordered(">", value, same(0.0))
    finite = builder.fcmp_ordered("<", value, same(math.inf))
    return builder.select(builder.and_(positive, finite), root, value)


@intrinsic
def store_sums(
    _context: Any,
    out: Any,
    plane_out: Any,
    out_step: Any,
    runs: Any,
    divisors: Any,
    divisor_step: Any,
    scales: Any,
    scale_step: Any,
    past: Any,
    wide: Any,
    kind: Any,
    power: Any,
    exponent: Any,
) -> Any:
    """Store the elements of runs of outputs, as store_elements does.

    A sum is divided by its divisor and its run's scale where `power` is None; of |x|**p the root is taken.
    True if a root is not certain to be right.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        out, plane_out, out_step = values[:3]
        divisors, divisor_step, scales, scale_step, past = values[4:9]
        element = _rank_type(wide, kind)
        size = out.type(_width(element) // 8)
        doubtful = cgutils.alloca_once_value(builder, ir.IntType(1)(0))

        def doubt(value: Any, few: Any, squares: int) -> None:
            safe = SAFE_32 if _width(element) == 32 else SAFE_64
            lanes = value.type.count
            low, high = (ir.Constant(value.type, [limit**squares] * lanes) for limit in safe)
            positive = builder.fcmp_ordered(">", value, ir.Constant(value.type, None))
            small = builder.and_(positive, builder.fcmp_ordered("<", value, low))
            unsafe = builder.or_(small, builder.fcmp_ordered(">", value, high))
            if few is not None:
                unsafe = builder.and_(unsafe, few.mask)
            builder.store(builder.or_(builder.load(doubtful), _any(builder, unsafe)), doubtful)

        def run(plane: Any, number: Any, value: Any, first: Any, few: Any) -> None:
            vector = value.type
            if power == types.none:
                place = _place(builder, divisors, (number, divisor_step), (first, size))
                divisor = _load(builder, place, vector)
                scale = _load(builder, _place(builder, scales, (number, scale_step)), element)
                scale = _splat(builder, scale, vector)
                value = builder.fdiv(value, builder.fmul(divisor, scale))
            elif power.count == 2:
                name = f"llvm.sqrt.v{vector.count}f{_width(element)}"
                fnty = ir.FunctionType(vector, [vector])
                function = cgutils.get_or_insert_function(builder.module, fnty, name)
                value = builder.call(function, [value])
                if _may_vanish(kind, element):
                    doubt(value, few, 1)
            elif power.count == 3:
                doubt(value, few, 2)
                value = _root(builder, value, values[-1], kind)
            elif power.count == 4:
                doubt(value, few, 2)
                value = _raised_to_real(context, builder, value, values[-1], root=True)
            target = _place(builder, out, (plane, plane_out), (number, out_step))
            bits = _bits_of(context, builder, value, kind)
            _store_past(builder, bits, target, first, few, past)

        _fold_runs(context, builder, _vector(element), values[3], run, power == types.none)
        return builder.load(doubtful)

    i64 = types.int64
    args = (i64, i64, i64, runs, *(i64,) * 4, types.boolean, wide, kind, power, exponent)
    return types.boolean(*args), codegen


@helper
def _write_lines(
    how,
    spatial,
    target,
    line,
    planes,
    rows,
    columns,
    lanes,
    pieces,
    by_column,
    by_row,
    spare,
    wide,
    kind,
    power,
    exponent,
):
    """Store the outputs of lines of each plane, one for each of `rows`, yet to be joined of pieces.

    A divisor is the product of one in the line `by_column` and one in the line `by_row`.
    """
    inner = how[SPATIAL] - 1
    size, item_bytes, pitch = rank_size(wide, kind), item_size(kind), how[PITCH]
    line_step, line_out = how[LINE] * size, axis_of(spatial, inner - 1, COLUMNS)[OUT_STEP]
    step = axis_of(spatial, inner, COLUMNS)[OUT_STEP]
    # One run of a line's places for each line, or runs of the lanes of its places.
    runs, n_run, run_out, along, column_step, row_step = rows, columns, line_out, line_step, 0, size
    again = 1
    if pitch > 1:
        whole = pieces.stride == 1 and lanes == pitch and how[LANE_OUT] == item_bytes
        if whole and step == pitch * item_bytes:
            n_run = columns * pitch
            step = item_bytes
        else:
            again, runs, n_run = rows, columns, lanes
            run_out, along, row_step = step, pieces.stride * pitch * size, 0
            column_step = pitch * size
            step = how[LANE_OUT]
        pieces = Pieces(1, pieces.count, pieces.step, pieces.last)
    plain = step == item_bytes
    together = planes.count if plain else 1
    doubtful = False
    for turn in range(planes.count // together * again):
        plane, again_row = split(turn, again)
        to = target + plane * planes.out + again_row * line_out
        line_at = line + plane * planes.line + again_row * line_step
        scales = by_row + again_row * size
        for r in range(1 if plain else runs):
            unsure = store_sums(
                to if plain else spare,
                planes.out,
                run_out,
                Runs(
                    line=line_at + r * along,
                    planes=together,
                    plane_line=planes.line,
                    count=runs if plain else 1,
                    line_step=along,
                    n=n_run,
                    pieces=pieces,
                ),
                by_column + r * column_step,
                column_step,
                scales + r * row_step,
                row_step,
                plain and how[PAST] != 0,
                wide,
                kind,
                power,
                exponent,
            )
            doubtful = doubtful or unsure
            if not plain:
                for i in range(n_run):
                    value = load_integer(kind, spare + i * item_bytes)
                    store_integer(kind, to + r * run_out + i * step, value)
    return doubtful
