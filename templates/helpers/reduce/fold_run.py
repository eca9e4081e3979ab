"""Folds of one run of a group into the lanes of a vector of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from apart import _load_apart
from fold import Fold, _rule_of
from fold_state import _join_narrow, _key_of_number, _narrow, _pieces, _start, _stored
from folds import _fold_into, _load_row, _together
from memory import VECTOR_BYTES, _pointer, _prefetch
from strips import _strips
from vectors import _Extremes, _greater

_Load = Callable[[int, Any], Any]  # the bits of a vector, by its number and its lanes (None: all)


class Lead(NamedTuple):
    """What is fetched for each element of a run while that is folded.

    It lies `ahead` bytes further on in the run or, where the run ends before, as far behind the beginning of the next
    run. To this `skipped` is added: the bytes of whole runs between.
    """

    fetches: Any  # False: nothing is
    ahead: Any
    pitch: Any  # bytes from the first element that is folded to the next run
    skipped: Any


def _fetch(builder: Any, lead: Lead, start: Any, run_bytes: Any, offset: Any, size: int) -> None:
    """Fetch what a Lead tells for `size` bytes, at `offset` of a run of so many bytes."""
    with builder.if_then(lead.fetches):
        later = builder.add(offset, lead.ahead)
        inside = builder.icmp_signed("<", later, run_bytes)
        in_next = builder.add(builder.sub(later, run_bytes), lead.pitch)
        later = builder.add(builder.select(inside, later, in_next), lead.skipped)
        for line in range(0, size, VECTOR_BYTES):
            place = builder.gep(start, [builder.add(later, offset.type(line))])
            _prefetch(builder, place, 1)


def _each_vector(
    builder: Any,
    fold: Fold,
    start: Any,
    n: Any,
    fetch: Callable[[Any, int], None],
    more: Callable[[_Load, int], None],
) -> None:
    """Call `more(load, rows)` for whole vectors of n adjoining elements, so many `rows` at once, then one by one.

    Before it takes several, `fetch(offset, size)` is called for these bytes of the run.
    """
    i64 = n.type
    length = fold.count * fold.bits // 8
    position = i64(0)
    for rows in (_together(fold), 1):
        end = builder.mul(builder.and_(n, i64(-rows * fold.count)), i64(fold.bits // 8))
        strip = cgutils.for_range_slice(builder, position, end, i64(rows * length), i64)
        with strip as (offset, _):

            def load(i: int, few: Any, offset: Any = offset) -> Any:
                place = builder.gep(start, [builder.add(offset, i64(i * length))])
                return _load_row(builder, fold, place, few)

            if rows > 1:
                fetch(offset, rows * length)
            more(load, rows)
        position = end


@intrinsic
def fold_run(
    _context: Any,
    fold: Any,
    rule: Any,
    at: Any,
    gap: Any,
    fresh: Any,
    address: Any,
    n: Any,
    left: Any,
    step: Any,
    lead: Any,
) -> Any:
    """Fold n elements of one group, `step` bytes apart, into the lanes of a vector of states, `fresh` ones at first.

    With those behind the n the run has `left` elements. What is fetched meanwhile is told by a Lead.
    """

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _, rule, at, gap, fresh, address, n, left, step, packed = values
        f = fold.fold
        i64 = n.type
        rule = _rule_of(builder, f, rule)
        size, lanes = i64(f.bits // 8), i64(f.count)
        start = _pointer(builder, address)
        lead, run_bytes = Lead(*cgutils.unpack_tuple(builder, packed)), builder.mul(left, size)
        places = _pieces(context, builder, f, at, gap, i64(0))
        state = _start(builder, f, fresh, places)

        def more(load: _Load, rows: int, count: Any = None, state: list[Any] = state) -> None:
            _fold_into(context, builder, f, rule, state, load, rows, count, True)

        def fetch(offset: Any, size: int) -> None:
            _fetch(builder, lead, start, run_bytes, offset, size)

        def part_at(offset: Any) -> _Load:
            return lambda _i, few: _load_row(builder, f, builder.gep(start, [offset]), few)

        def in_turn() -> None:
            narrow = _narrow(builder, f, state)

            def take(load: _Load, rows: int) -> None:
                more(load, rows, state=state if rows > 1 else narrow)

            _each_vector(builder, f, start, n, fetch, take)
            rest = builder.and_(n, i64(f.count - 1))
            with builder.if_then(builder.icmp_signed(">", rest, i64(0))):
                more(part_at(builder.mul(builder.sub(n, rest), size)), 1, rest, narrow)
            _join_narrow(context, builder, f, narrow, state)

        def greatest() -> None:
            # Of all vectors first, and no key until then: 0.7 to 0.9 of the time, 1.2 to 1.5 where there is NaN. The
            # last one overlaps others.
            end = builder.mul(builder.sub(n, lanes), size)
            extremes = _Extremes(builder, part_at(i64(0))(0, None))

            def take(load: _Load, rows: int) -> None:
                extremes.more([load(i, None) for i in range(rows)])

            def by_key(load: _Load, i: int) -> None:
                more(lambda _i, few: load(i, few), 1)

            def by_keys(load: _Load, rows: int) -> None:
                for i in range(rows):
                    by_key(load, i)

            _each_vector(builder, f, start, n, fetch, take)
            take(part_at(end), 1)
            bits, some_nan = extremes.greatest(rule[0], rule[2])
            with builder.if_else(some_nan, likely=False) as (then, otherwise):
                with then:
                    _each_vector(builder, f, start, n, fetch, by_keys)
                    more(part_at(end), 1)
                with otherwise:
                    key = _key_of_number(builder, rule, bits)
                    builder.store(_greater(builder, builder.load(state[0]), key), state[0])

        def scattered() -> None:
            vector = ir.VectorType(f.element, f.count)

            def strip(position: Any, count: Any) -> None:
                first = builder.add(address, builder.mul(position, step))
                more(lambda _i, _m: _load_apart(builder, first, step, vector, count), 1, count)

            _strips(builder, f.count, n, strip)

        adjoining = builder.icmp_signed("==", step, size)
        with builder.if_else(adjoining) as (then, otherwise):
            with then:
                if f.operation == "greatest" and f.floats:
                    whole = builder.icmp_signed(">=", n, lanes)
                    with builder.if_else(whole) as (several, one):
                        with several:
                            greatest()
                        with one:
                            more(part_at(i64(0)), 1, n)
                else:
                    in_turn()
            with otherwise:
                scattered()
        _stored(builder, places, [builder.load(variable) for variable in state])
        return context.get_dummy_value()

    i64, flag = types.int64, types.boolean
    return types.void(fold, i64, i64, i64, flag, i64, i64, i64, i64, lead), codegen
