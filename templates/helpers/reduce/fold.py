"""The operation of a reduction on the elements of a data type, as compiled code knows it.

Operations, and the states that groups of elements come to:
  sum, magnitudes, squares   the sum, in float64 for floats (of FLOAT16 joined from float32 sums of a few elements); of
                             FLOAT64 also its rounding errors, and for squares the power of two that elements were
                             divided by
  product                    for floats the mantissa and the exponent of 2: no product of four lanes overflows
  exponentials               the sum of exp(x - top) * EXP_SCALE; of wide ones its rounding errors; the top, which
                             few elements exceed, by RISE at most
  greatest                   the greatest order key, which tells -0.0 from 0.0

A state is a lane in each of one to three arrays of lanes, `gap` bytes apart, in scratch memory. `rule` is the address
of six int64: flip, nan_key, inf (see the order keys), what becomes of the state in the end (NONE, MEAN, ROOT or LOG),
the elements of a group, and whether integers are unsigned.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl

from constants import _of_type
from memory import VECTOR_BYTES, _load, _pointer
from target import _bytes_ahead, _zen

_ADDED = ("sum", "magnitudes", "squares")
_FLOAT_BITS = {"FLOAT16": 16, "BFLOAT16": 16, "FLOAT32": 32, "FLOAT64": 64}
_DOUBLE = ir.DoubleType()


class Fold:
    """An operation on the elements of a data type; signed integers stand for unsigned ones but in exponentials."""

    def __init__(self, dtype: str, operation: str) -> None:
        self.dtype = dtype
        self.operation = operation
        self.floats = dtype in _FLOAT_BITS
        self.bits = _FLOAT_BITS.get(dtype) or int(dtype.removeprefix("U").removeprefix("INT"))
        self.element = ir.IntType(self.bits)
        exact = operation == "greatest" or not (self.floats or operation == "exponentials")
        self.lane = self.element if exact else _DOUBLE
        self.wide = not exact and dtype not in ("FLOAT16", "BFLOAT16", "FLOAT32")
        self.count = 8 if self.wide else 16
        self.arrays = 1
        if exact:
            self.count = VECTOR_BYTES * 8 // self.bits
        elif operation == "product":
            self.arrays = 2
        else:
            scaled = operation == "exponentials" or (self.wide and operation == "squares")
            self.arrays = 1 + self.wide + scaled
        # A sum of floats that are converted first, and such a sum or product.
        self.converts = self.floats and operation in _ADDED and not self.wide
        self.widens = self.converts or (self.floats and operation == "product" and not self.wide)
        self.lane_bytes = 8 if self.lane == _DOUBLE else self.bits // 8
        self.state_bytes = self.arrays * self.lane_bytes
        # A few vectors are folded to each other before they are to a state: sums of float16 in float32, and products
        # that cannot overflow before they are.
        product = operation == "product" and dtype in ("FLOAT32", "FLOAT16")
        self.narrows = product or (self.converts and dtype == "FLOAT16")
        # Rows of columns are added one after the other, so that it makes no difference how many are taken together;
        # of 16 bits FOLD are.
        self.in_turn = self.converts and self.bits == 32
        # Whether rows may be taken one by one without a difference.
        self.any_number = exact or self.in_turn
        # So much arithmetic that the processor does not look far enough ahead itself.
        self.slow = operation == "exponentials" or (self.bits == 16 and not exact)
        # Whether results take so long that whole vectors of them are made at once: see finishes_fast.
        self.finished_apart = operation == "exponentials"
        # So few operations for an element that the states of several short runs stay in registers: see fold_groups.
        few = exact or operation in _ADDED
        compared = operation == "greatest" and self.floats
        self.stays = few and self.bits >= (64 if compared else 32)
        # Elements, at most, of a run that is folded one vector after the other, and of rows without fetching ahead:
        # longer rows take up to 1.3 times as long so, shorter ones 0.65 to 1 of the time.
        self.short = (16 if self.bits == 32 and not self.slow else 8) * self.count
        # Rows of products of which each vector is tested take 1.3 times as long.
        tested = self.floats and operation == "product" and not self.narrows
        self.short_row = 4 * self.count if tested else self.short


class _FoldType(types.Type):
    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.bitwidth = fold.bits
        super().__init__(f"Fold({fold.dtype}, {fold.operation})")


register_model(_FoldType)(models.OpaqueModel)


@typeof_impl.register(Fold)
def _type_of_fold(fold: Fold, _context: Any) -> _FoldType:
    return _FoldType(fold)


@lower_constant(_FoldType)
def _constant_fold(context: Any, _builder: Any, _type: Any, _fold: Fold) -> Any:
    return context.get_dummy_value()


def _bits_type(value: Any) -> Any:
    return ir.VectorType(ir.IntType(64), value.type.count)


def _widened(builder: Any, value: Any) -> Any:
    """Doubles of floats."""
    if value.type.element != ir.FloatType():
        return value
    return builder.fpext(value, ir.VectorType(_DOUBLE, value.type.count))


def _rule_of(builder: Any, fold: Fold, rule: Any) -> tuple[Any, ...]:
    """flip, nan_key and inf in an element's width, where elements are compared."""
    if fold.operation != "greatest":
        return ()
    words = [
        _load(builder, _pointer(builder, rule, ir.IntType(64)(8 * i)), ir.IntType(64))
        for i in range(3)
    ]
    return tuple(w if fold.bits == 64 else builder.trunc(w, fold.element) for w in words)


lane_bytes = _of_type(lambda fold: fold.fold.lane_bytes)  # of each array of a state
fold_lanes = _of_type(lambda fold: fold.fold.count)  # elements of a vector
state_arrays = _of_type(lambda fold: fold.fold.arrays)  # of lanes


@intrinsic
def fetches_runs(_context: Any, fold: Any, run_bytes: Any) -> Any:
    """Whether even adjoining runs of so many bytes had better be fetched ahead.

    Always where a fold computes long. Of others an Intel that is asked takes 0.92 to 1 of the time beyond its
    second-level cache, Zen 5 0.6 to 0.95, earlier ones 1.1 to 1.4. Not the greatest byte of a long run: often that is
    255, and ends it (0.9 of the time).
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        f, zen, i1 = fold.fold, _zen(context), ir.IntType(1)
        if f.slow or zen == 0:
            return i1(True)
        if zen < 5:
            return i1(False)
        if f.operation == "greatest" and f.bits == 8:
            return builder.icmp_signed("<", values[1], values[1].type(_bytes_ahead(context)))
        return i1(True)

    return types.boolean(fold, types.int64), codegen


@intrinsic
def settles(_context: Any, fold: Any) -> Any:
    """Whether there is a state that no element changes, a constant."""

    def codegen(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(1)(fold.fold.operation == "greatest")

    return types.boolean(fold), codegen
