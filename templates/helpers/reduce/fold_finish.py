"""The end of a fold: the results that follow from states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from float_math import EXP_SCALE, _log
from fold import _DOUBLE, Fold, _bits_type, _rule_of
from fold_down import _folded_down
from fold_product import _normalised
from fold_state import _element_of_key, _loaded, _places
from folds import GROUPS
from half import _to_16_bits
from llvm import _call, _const, _letters, _on_lanes
from loops import _cases
from memory import _load, _pointer, _splat
from planes import WRITTEN_OUT, SmallPlanes, _each_strip
from seldom import _or_else
from stores import _store_past
from vectors import _greater, _lesser

NONE = 0
MEAN = 1
ROOT = 2
LOG = 3


def _log_of(builder: Any, value: Any) -> Any:
    """log of any doubles."""
    vector = value.type
    tiny = builder.fcmp_ordered("<", value, _const(vector, 2.0**-1022))
    raised = builder.select(tiny, builder.fmul(value, _const(vector, 2.0**54)), value)
    result = _log(builder, raised)
    lowered = builder.fsub(result, _const(vector, 54 * 0.6931471805599453))
    result = builder.select(tiny, lowered, result)
    infinity = _const(vector, float("inf"))
    result = builder.select(builder.fcmp_ordered("==", value, infinity), infinity, result)
    zero = ir.Constant(vector, None)
    result = builder.select(
        builder.fcmp_ordered("==", value, zero), _const(vector, float("-inf")), result
    )
    return builder.select(
        builder.fcmp_ordered("<", value, zero), _const(vector, float("nan")), result
    )


def _sum_of(builder: Any, sums: list[Any]) -> Any:
    """A sum with its rounding errors, unless these are none of a finite one."""
    if len(sums) == 1:
        return sums[0]
    whole = builder.fadd(*sums)
    good = builder.fcmp_ordered("ord", whole, whole)
    zero = builder.fcmp_ordered("==", sums[1], ir.Constant(whole.type, None))
    return builder.select(builder.and_(good, builder.not_(zero)), whole, sums[0])


def _power_of_two(builder: Any, exponent: Any) -> Any:
    """2**exponent, for exponents of normal numbers."""
    bits = builder.add(exponent, _const(exponent.type, 1023))
    bits = builder.shl(bits, _const(bits.type, 52))
    return builder.bitcast(bits, ir.VectorType(_DOUBLE, bits.type.count))


class _Finish:
    """What becomes of states in the end."""

    def __init__(self, context: Any, builder: Any, fold: Fold, address: Any) -> None:
        self.context, self.builder, self.fold = context, builder, fold
        i64 = ir.IntType(64)
        self.rule = _rule_of(builder, fold, address)
        self.finish, self.total, self.unsigned = (
            _load(builder, _pointer(builder, address, i64(8 * i)), i64) for i in (3, 4, 5)
        )

    def _changed(self, finish: int, value: Any, change: Callable[[Any], Any]) -> Any:
        """change(value) where that is asked for."""
        builder = self.builder
        result = cgutils.alloca_once_value(builder, value)
        with builder.if_then(builder.icmp_signed("==", self.finish, self.finish.type(finish))):
            builder.store(change(value), result)
        return builder.load(result)

    def _number(self, state: list[Any]) -> Any:
        """Doubles."""
        builder, operation = self.builder, self.fold.operation
        if operation == "product":
            mantissa, exponent = state[0], builder.bitcast(state[1], _bits_type(state[1]))

            def scaled() -> list[Any]:
                value, more = _normalised(builder, mantissa)
                whole = builder.add(exponent, more)
                # Beyond these a double is 0 or infinite anyway; halves of them are exponents of normal ones.
                whole = _greater(builder, whole, _const(whole.type, -1100))
                whole = _lesser(builder, whole, _const(whole.type, 1100))
                half = builder.ashr(whole, _const(whole.type, 1))
                for part in (half, builder.sub(whole, half)):
                    value = builder.fmul(value, _power_of_two(builder, part))
                return [value]

            return _or_else(builder, exponent, [mantissa], scaled)[0]
        if operation == "exponentials":
            total = _sum_of(builder, state[:-1])
            total = builder.fmul(total, _const(total.type, 1 / EXP_SCALE))
            return builder.fadd(state[-1], _log_of(builder, total))
        if operation == "squares" and self.fold.wide:
            value, scale = _sum_of(builder, state[:-1]), state[-1]
            root = self._changed(ROOT, value, lambda v: _on_lanes(builder, "sqrt", v))
            value = builder.fmul(root, scale)
            is_root = builder.icmp_signed("==", self.finish, self.finish.type(ROOT))
            return builder.select(is_root, value, builder.fmul(value, scale))
        value = _sum_of(builder, state)
        if operation == "squares":
            return self._changed(ROOT, value, lambda v: _on_lanes(builder, "sqrt", v))
        if operation == "sum":
            total = _splat(builder, builder.sitofp(self.total, _DOUBLE), value.type)
            value = self._changed(MEAN, value, lambda v: builder.fdiv(v, total))
            return self._changed(LOG, value, lambda v: _log_of(builder, v))
        return value

    def _whole(self, value: Any, signed: bool) -> Any:
        """Doubles cut to whole numbers of the element's type; what is none of its numbers to the nearest, NaN to the
        least."""
        builder, fold = self.builder, self.fold
        result = ir.VectorType(fold.element, value.type.count)
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{_letters(result)}.{_letters(value.type)}"
        number = _call(builder, name, result, value)
        least = _const(result, -(2 ** (fold.bits - 1)) if signed else 0)
        return builder.select(builder.fcmp_unordered("uno", value, value), least, number)

    def _integer(self, value: Any, signed: bool) -> Any:
        """Of sums of integers."""
        builder, fold = self.builder, self.fold
        doubles = ir.VectorType(_DOUBLE, value.type.count)
        convert = builder.sitofp if signed else builder.uitofp

        def mean(sums: Any) -> Any:
            wide = _bits_type(sums)
            if fold.bits < 64:
                sums = (builder.sext if signed else builder.zext)(sums, wide)
            total = _splat(builder, self.total, wide)
            quotient = (builder.sdiv if signed else builder.udiv)(sums, total)
            return builder.trunc(quotient, value.type) if fold.bits < 64 else quotient

        def root(squares: Any) -> Any:
            doubles_root = _on_lanes(builder, "sqrt", convert(squares, doubles))
            whole = self._whole(doubles_root, signed)
            if fold.bits < 64:
                return whole
            # A double's root is at most one too great, as where k * k - 1 is rounded to k * k, and never too small.
            # 2**32 is always too great, and its square has no place in 64 bits.
            whole = _lesser(builder, whole, _const(whole.type, 2**32 - 1))
            above = builder.icmp_unsigned(">", builder.mul(whole, whole), squares)
            return builder.sub(whole, builder.zext(above, whole.type))

        if fold.operation == "squares":
            return self._changed(ROOT, value, root)
        value = self._changed(MEAN, value, mean)
        return self._changed(
            LOG, value, lambda v: self._whole(_log_of(builder, convert(v, doubles)), signed)
        )

    def __call__(self, state: list[Any]) -> Any:
        """Elements."""
        builder, fold = self.builder, self.fold
        if fold.operation == "greatest":
            return _element_of_key(builder, fold, self.rule, state[0])
        if not fold.floats:
            if fold.operation == "exponentials":
                return self._whole(self._number(state), not fold.dtype.startswith("U"))
            if fold.operation in ("product", "magnitudes"):
                return state[0]
            result = cgutils.alloca_once_value(builder, state[0])
            changes = builder.icmp_signed("!=", self.finish, self.finish.type(NONE))
            is_unsigned = builder.icmp_signed("!=", self.unsigned, self.unsigned.type(0))
            with builder.if_then(changes), builder.if_else(is_unsigned) as (then, otherwise):
                for branch, signed in ((then, False), (otherwise, True)):
                    with branch:
                        builder.store(self._integer(state[0], signed), result)
            return builder.load(result)
        value = self._number(state)
        if fold.dtype == "FLOAT64":
            return value
        if fold.dtype == "FLOAT32":
            return builder.fptrunc(value, ir.VectorType(ir.FloatType(), value.type.count))
        return _to_16_bits(self.context, builder, value, half=fold.dtype == "FLOAT16")


@intrinsic
def finish(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    out: Any,
    step: Any,
    count: Any,
) -> Any:
    """Store the results of `count` states, `step` bytes apart; whole vectors of states are read."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, out, step, count = values
        f = fold.fold
        i64 = count.type
        finished = _Finish(context, builder, f, rule)
        size = i64(f.bits // 8)
        adjoining = builder.icmp_signed("==", step, size)
        lanes = f.count if f.operation == "greatest" else GROUPS  # 0.7 to 1 of the time
        block = ir.VectorType(f.element, lanes)
        buffer = cgutils.alloca_once(builder, block)
        with cgutils.for_range_slice(builder, i64(0), count, i64(lanes), i64) as (lane, _):
            elements = finished(_loaded(builder, _places(builder, f, at, gap, lane, lanes)))
            elements = builder.bitcast(elements, block)
            left = builder.sub(count, lane)
            whole = builder.icmp_signed(">=", left, i64(lanes))
            target = builder.add(out, builder.mul(lane, step))
            with builder.if_else(builder.and_(whole, adjoining)) as (then, otherwise):
                with then:
                    place = builder.inttoptr(target, block.as_pointer())
                    builder.store(elements, place, align=1)
                with otherwise:
                    builder.store(elements, buffer)
                    first = builder.bitcast(buffer, f.element.as_pointer())
                    some = builder.select(whole, i64(lanes), left)
                    with cgutils.for_range(builder, some) as loop:
                        place = builder.add(target, builder.mul(loop.index, step))
                        place = builder.inttoptr(place, f.element.as_pointer())
                        value = builder.load(builder.gep(first, [loop.index]))
                        builder.store(value, place, align=1)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(fold, i64, i64, i64, i64, i64, i64), codegen


@intrinsic
def finishes_fast(_context: Any, fold: Any, columns: Any) -> Any:
    """Whether results of planes had better be stored as soon as a vector of columns is folded: 0.65 to 1 of the time.

    A fold that takes long itself, only where few lanes are idle, and none that is finished apart: finishing whole
    vectors of several planes is faster then.
    """

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        f, i1 = fold.fold, ir.IntType(1)
        if f.finished_apart:
            return i1(False)
        if not f.slow:
            return i1(True)
        return builder.icmp_signed(">=", values[1], values[1].type(3 * f.count // 4))

    return types.boolean(fold, types.int64), codegen


@intrinsic
def reduce_planes(
    _context: Any, fold: Any, rule: Any, out: Any, out_step: Any, past: Any, planes: Any
) -> Any:
    """Store the results of the columns of SmallPlanes; those of one adjoin, `out_step` bytes from those of the next.

    If `past`, they go past the caches; see drain_stores. Nothing is compiled for folds that are finished apart.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, out, out_step, past, packed = values
        f = fold.fold
        if f.finished_apart:
            return context.get_dummy_value()
        planes = SmallPlanes(*cgutils.unpack_tuple(builder, packed))
        finished = _Finish(context, builder, f, rule)
        vector = ir.VectorType(f.element, f.count)

        def planes_of(rows: Any) -> None:
            def strip(plane: Any, column: Any, few: Any, load: Callable[[Any], Any]) -> None:
                start = _pointer(builder, out, builder.mul(plane, out_step))
                state = _folded_down(context, builder, f, finished.rule, rows, load)
                elements = builder.bitcast(finished(state), vector)
                _store_past(builder, elements, start, column, few, past)

            _each_strip(context, builder, planes, vector, strip)

        _cases(builder, planes.rows, WRITTEN_OUT, planes_of)
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, planes), codegen
