"""What softmax gives of elements whose group is measured, or its logarithm."""

from __future__ import annotations

import math

from compiled import helper, inlined
from float_lanes import (
    divided,
    exp_lanes,
    lane_count,
    lane_kind,
    lanes_at,
    load_lanes,
    log_lanes,
    minus,
    plus,
    prefetch,
    rounding,
    splat,
    store_lanes,
    stream_lanes,
    times,
    where_less,
)
from float_math import EXP_SCALE
from memory import VECTOR_BYTES, element_size

STORED = 0  # results come from exponentials kept in scratch, or in their place,
COMPUTED = 1  # from the input again,
LOGARITHMS = 2  # or are logarithms


@helper
def factor_of(total, logarithm):
    """What is subtracted from x - top, or multiplied with exp(x - top) * EXP_SCALE."""
    if not total >= EXP_SCALE / 2:  # nothing but -inf, or NaN
        return math.nan
    return math.log(total / EXP_SCALE) if logarithm else 1.0 / total


@inlined
def factors_of(kind, high, low, logarithm):
    """As factor_of, of sums high + low."""
    whole = plus(high, low)
    if logarithm:
        # The rest counts where the whole is nearly 1.
        rest = divided(rounding(high, low, whole), whole)
        factor = plus(log_lanes(times(whole, splat(kind, 1 / EXP_SCALE))), rest)
    else:
        factor = divided(splat(kind, 1.0), whole)
    return where_less(whole, splat(kind, EXP_SCALE / 2), splat(kind, math.nan), factor)


@inlined
def sum_added(high, low, part):
    """Sums and their rounding errors with another part."""
    whole = plus(high, part)
    return whole, plus(low, rounding(high, part, whole))


@inlined
def results_of(source, kind, x, tops, factors):
    """Results of elements: probabilities where they are COMPUTED, else logarithms."""
    if source == COMPUTED:
        return times(exp_lanes(kind, minus(x, tops)), factors)
    return minus(minus(x, tops), factors)


@inlined
def _value(kind, source, x, step, count, at, scratch, tops, factors):
    """Results of a vector of elements, or of the first `count`; their lanes lie `at` bytes further on in scratch."""
    if source == STORED:
        powers = load_lanes(lane_kind(kind), scratch + at, None, count)
        value = times(powers, lanes_at(kind, factors, at))
    else:
        value = load_lanes(kind, x, step, count)
        top, factor = lanes_at(kind, tops, at), lanes_at(kind, factors, at)
        value = results_of(source, kind, value, top, factor)
    return value


@inlined
def _store_apart(kind, out, out_step, count, value):
    if out_step == element_size(kind):
        store_lanes(kind, out, None, count, value)
    else:
        store_lanes(kind, out, out_step, count, value)


@inlined
def _write_apart(kind, source, x, step, out, out_step, left, scratch, tops, factors):
    """As write_run, of elements, or results, that do not adjoin."""
    lanes = lane_count(kind)
    at = 0
    for _ in range(left // lanes):
        value = _value(kind, source, x, step, None, at, scratch, tops, factors)
        _store_apart(kind, out, out_step, None, value)
        x += lanes * step
        out += lanes * out_step
        at += VECTOR_BYTES
    left %= lanes
    if left:
        value = _value(kind, source, x, step, left, at, scratch, tops, factors)
        _store_apart(kind, out, out_step, left, value)


@inlined
def _write_adjoining(kind, source, past, x, out, left, scratch, tops, factors, ahead, out_ahead):
    """As write_run, of elements and results that adjoin.

    Meanwhile what lies `ahead` bytes further is fetched or, where that is None, what lies `out_ahead` bytes further in
    the output, unless that is 0. If results go past the cache, of the output only the line in which a later run begins
    is fetched, `out_ahead` bytes further: that run's first elements do not fill it, and the stores behind them would
    wait for it (1.05 to 1.2 times as fast).
    """
    size, lanes = element_size(kind), lane_count(kind)
    vector = lanes * size
    lane_bytes = VECTOR_BYTES // lanes
    at = 0
    short = 0
    # Stores past the cache, where results would not fit (1.2 to 1.6 times as fast), must be aligned; in columns others
    # had better be (1.3 times).
    before = -out % vector
    aligned = left >= 4 * lanes and before % size == 0
    if ahead is None:
        aligned = aligned and past
    if aligned:
        short = before // size
    past = past and aligned
    if past:
        prefetch(out + out_ahead, 1, 1)
    while left > 0:
        if short == 0:
            for _ in range(left // lanes):
                value = _value(kind, source, x, None, None, at, scratch, tops, factors)
                if past:
                    stream_lanes(kind, out, value)
                else:
                    store_lanes(kind, out, None, None, value)
                if ahead is not None:
                    prefetch(x + ahead, 2, 0)
                elif out_ahead != 0 and not past:
                    prefetch(out + out_ahead, 1, 1)
                x += vector
                out += vector
                at += VECTOR_BYTES
            left %= lanes
            short = left
        else:
            count, short = short, 0
            value = _value(kind, source, x, None, count, at, scratch, tops, factors)
            store_lanes(kind, out, None, count, value)
            x += count * size
            out += count * size
            at += count * lane_bytes
            left -= count


@inlined
def write_run(
    kind, source, past, x, step, out, out_step, left, scratch, tops, factors, ahead, out_ahead
):
    """Results of `left` elements, `step` bytes apart, of a group or of a group each.

    `tops` and `factors` are vectors of lanes, or addresses of one lane for each element; for `ahead` and `out_ahead`
    see _write_adjoining.
    """
    if step == element_size(kind) and out_step == element_size(kind):
        _write_adjoining(kind, source, past, x, out, left, scratch, tops, factors, ahead, out_ahead)
    else:
        _write_apart(kind, source, x, step, out, out_step, left, scratch, tops, factors)
