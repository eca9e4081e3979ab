"""Softmax of short rows: several are computed together."""

from __future__ import annotations

import numpy as np

from compiled import helper, inlined
from float_lanes import (
    exp_lanes,
    get_lane,
    greater,
    greatest,
    key_count,
    lane_count,
    load_keys,
    load_lanes,
    lowest_keys,
    minus,
    peek,
    plus,
    poke,
    prefetch,
    rounded_quarters,
    splat,
    store_lanes,
    times,
    total_of_four,
)
from memory import VECTOR_BYTES, ceildiv, element_size
from softmax_result import factors_of

TOGETHER = 16  # short rows at most, of at most as many vectors; of longer ones 4 at most


@inlined
def greatest_keys(kind, x, n, top):
    """The greatest of `top` and n contiguous elements, as load_keys loads them.

    By two, of which none waits for the one before (0.9 of the time of float32 in L2).
    """
    size, keys = element_size(kind), key_count(kind)
    other = top
    tail = n % keys
    body = (n - tail) * size
    for at in range(VECTOR_BYTES, body, 2 * VECTOR_BYTES):
        top = greater(top, load_keys(kind, x + at - VECTOR_BYTES, None))
        other = greater(other, load_keys(kind, x + at, None))
    if body % (2 * VECTOR_BYTES):
        top = greater(top, load_keys(kind, x + body - VECTOR_BYTES, None))
    if tail:
        other = greater(other, load_keys(kind, x + body, tail))
    return greater(top, other)


@inlined
def _measure_short_row(kind, x, n, tops_at, sums_at, scratch, ahead, out):
    """The greatest of a contiguous row goes to all lanes at `tops_at`, each lane's sum of exponentials to `sums_at`.

    The exponentials are left in `scratch`. Meanwhile one of the next rows, `ahead` bytes further, is fetched, and where
    this one goes (1.4 times as fast beyond L2).
    """
    size, lanes = element_size(kind), lane_count(kind)
    tops = splat(kind, greatest(kind, greatest_keys(kind, x, n, lowest_keys(kind))))
    poke(tops_at, tops)
    tail = n % lanes
    body = (n - tail) * size
    added = splat(kind, 0.0)
    for at in range(0, body, lanes * size):
        e = exp_lanes(kind, minus(load_lanes(kind, x + at, None, None), tops))
        added = plus(added, e)
        poke(scratch, e)
        scratch += VECTOR_BYTES
        prefetch(x + ahead + at, 1, 0)
        prefetch(out + at, 1, 1)
    if tail:
        e = exp_lanes(kind, minus(load_lanes(kind, x + body, None, tail), tops))
        added = plus(added, e)
        poke(scratch, e)
    poke(sums_at, added)


@inlined
def _write_short_row(kind, x, out, n, tops, factors, scratch, logarithm):
    """Results of a contiguous row, from the exponentials in `scratch` or, if they are logarithms, from the input."""
    size, lanes = element_size(kind), lane_count(kind)
    tail = n % lanes
    body = (n - tail) * size
    if logarithm:
        for at in range(0, body, lanes * size):
            value = minus(minus(load_lanes(kind, x + at, None, None), tops), factors)
            store_lanes(kind, out + at, None, None, value)
        if tail:
            value = minus(minus(load_lanes(kind, x + body, None, tail), tops), factors)
            store_lanes(kind, out + body, None, tail, value)
    else:
        for at in range(0, body, lanes * size):
            store_lanes(kind, out + at, None, None, times(peek(kind, scratch), factors))
            scratch += VECTOR_BYTES
        if tail:
            store_lanes(kind, out + body, None, tail, times(peek(kind, scratch), factors))


@helper
def several_rows(kind, x, step, ahead, out, out_step, rows, n, scratch, logarithm):
    """At most TOGETHER short rows of n elements each; for each one that lies `ahead` bytes further is fetched.

    Their factors are computed as vectors, and nothing waits for one row's (1.2 times as fast for 128 float32, 1.4 for
    float16). In `scratch` there are a vector of sums for each row, then one of tops for each, the factors, of four rows
    in a vector, and the exponentials.
    """
    lanes = lane_count(kind)
    sums_at = scratch
    tops_at = sums_at + TOGETHER * VECTOR_BYTES
    factors_at = tops_at + TOGETHER * VECTOR_BYTES
    powers_at = factors_at + TOGETHER // 4 * VECTOR_BYTES
    row_bytes = (n // lanes + 1) * VECTOR_BYTES
    for r in range(rows):
        at = r * VECTOR_BYTES
        powers = powers_at + r * row_bytes
        target = out + r * out_step
        _measure_short_row(kind, x + r * step, n, tops_at + at, sums_at + at, powers, ahead, target)
    for four in range(ceildiv(rows, 4)):
        at = sums_at + four * 4 * VECTOR_BYTES
        totals = total_of_four(
            peek(kind, at),
            peek(kind, at + VECTOR_BYTES),
            peek(kind, at + 2 * VECTOR_BYTES),
            peek(kind, at + 3 * VECTOR_BYTES),
        )
        exact = factors_of(np.float64(0), totals, splat(np.float64(0), 0.0), logarithm)
        poke(factors_at + four * VECTOR_BYTES, rounded_quarters(kind, exact))
    for r in range(rows):
        tops = peek(kind, tops_at + r * VECTOR_BYTES)
        factors = splat(kind, get_lane(kind, factors_at, r * (lanes // 4)))
        powers = powers_at + r * row_bytes
        _write_short_row(
            kind, x + r * step, out + r * out_step, n, tops, factors, powers, logarithm
        )
