"""The contract of average and norm pooling: each type, window, layout and special value, against sums in Python.

Every random case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from draw import (
    INPUT_LAYOUTS,
    LAYOUTS,
    MEBI,
    PACKED,
    Call,
    Random,
    case,
    laid_out,
    last_item_first,
    noted,
    numpy_type,
    of_8_mebibytes,
    output,
)
from oracle import numbers
from pool_draw import (
    DIVISORS,
    LARGE,
    TRANSPOSED,
    USUAL,
    beside,
    drawn,
    drawn_pooling,
    random_windows,
    rows_shared,
    simple,
    tall_windows,
)
from pool_oracle import (
    EPSILON,
    GREATEST,
    LEAST,
    Pooling,
    Windows,
    check_close,
    doubles,
)

import specops
from specops.kernels import average_pool_grad, max_pool, max_pool_grad
from specops.kernels import sum_pool as sum_pool_kernel
from specops.lowering import machine, pool_transposed, pooling, sum_pool
from specops.lowering.average_pool import AveragePool
from specops.lowering.lp_pool import LpPool
from specops.lowering.pool_axes import BatchAxis, SpatialAxis
from specops.lowering.pool_packed import packs
from specops.tensor import packed
from stress.memory import Arena

TYPES = ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"]
CASES = 150  # for each type
NAN, INF = math.nan, math.inf


def lowered(pool: Pooling, name: str, shape: tuple[int, ...]) -> AveragePool | LpPool:
    w = pool.windows
    fields: dict[str, Any] = {
        "window": w.window,
        "strides": w.strides,
        "dilations": list(w.dilations),
        "start_padding": w.padding,
        "input": packed(name, shape),
        "output": packed(name, w.sizes(shape)),
    }
    if pool.p:
        return LpPool(p=pool.p, **fields)
    return AveragePool(divisor=pool.divisor, end_padding=pool.end, **fields)


def check_pool(
    random: Random, name: str, x: np.ndarray, pool: Pooling, kind: str = ""
) -> np.ndarray:
    """Into a random layout, or one of a kind."""
    expected, error = pool.expected(name, x)
    out = output(random, expected.shape, x.dtype, kind)
    lowered(pool, name, x.shape)(x, out.array)
    check_close(name, out.array, expected, error)
    out.check_surroundings()
    return out.array


def check_case(name: str, number: int, group: int = 0) -> None:
    random = np.random.default_rng([TYPES.index(name), number, group])
    shape, windows = random_windows(random)
    pool = drawn_pooling(random, windows)
    kind = str(random.choice(INPUT_LAYOUTS))
    x, buffer = laid_out(random, drawn(random, name, shape), kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    text = f"check_case({name!r}, {number}, {group}): {kind} {shape} {x.strides}, {pool}"
    with case(text, buffer):
        check_pool(random, name, x, pool)


@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str) -> None:
    """Random shapes, windows, layouts and values give what sums in Python give."""
    for number in range(CASES):
        check_case(name, number)


@pytest.mark.parametrize("longest", [8, 512])
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_small_lines_and_items(name: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into short lines and small items, or without lines, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(pooling, "LINE_BYTES", 128)
    monkeypatch.setattr(pooling, "LONGEST_LINE", longest)
    monkeypatch.setattr(pooling, "ITEM_BYTES", 64)
    for number in range(100):
        if number == 50:
            last_item_first(monkeypatch)
        check_case(name, number, longest)


@pytest.mark.parametrize("name", TYPES)
def test_windows_too_long_for_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By runs where elements adjoin, vectors and what is left of them; else element by element; or by groups."""
    monkeypatch.setattr(pooling, "LONGEST_LINE", 1)
    random = np.random.default_rng(TYPES.index(name))
    for number in range(80):
        edge = int(random.choice([1, 3, 16, 50])) if number >= 40 else 4096
        monkeypatch.setattr(pooling, "EDGE", edge)
        monkeypatch.setattr(sum_pool, "GROUPED", 1)
        window = (int(random.integers(1, 4)), int(random.integers(30, 140)))
        shape = (2, window[0] + 1, window[1] + int(random.integers(40)))
        stride, padding = int(random.integers(1, 9)), int(random.choice([0, 0, 1, 70]))
        pool = drawn_pooling(random, simple(shape, window, stride, padding))
        x, _ = laid_out(random, drawn(random, name, shape), str(random.choice(["c", "c", "any"])))
        try:
            check_pool(random, name, x, pool)
        except AssertionError as error:
            text = f"{number}: {shape} {x.strides}, {pool}, {edge}"
            raise AssertionError(f"{text}: {error}") from error


LONG_ROW = 21000
LONG = [  # windows too long for lines, in rows of several groups: window, stride, dilation, padding at both ends
    (8300, 1, 1, 0),
    (9001, 3, 1, 5000),
    (9001, 3, 1, 8999),
    (16500, 4095, 1, 100),
    (16500, 4097, 1, 100),
    (20999, 1, 1, 20998),
    (9000, 1, 1, 9003),
    (9000, 9000, 1, 0),
    (8300, 2, 2, 10),
]


@pytest.mark.parametrize(("window", "stride", "dilation", "padding"), LONG)
@pytest.mark.parametrize("name", TYPES)
def test_long_windows(
    name: str,
    window: int,
    stride: int,
    dilation: int,
    padding: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole numbers, whose sums are exact; over two rows, and down to one NaN, infinities only where they are."""
    monkeypatch.setattr(sum_pool, "GROUPED", 1)
    random = np.random.default_rng(window)
    plain = random.integers(-3, 4, (2, LONG_ROW)).astype(np.float64)
    plain[:, -7:] = 5
    for p, spoiled in ((0, False), (0, True), (1, False), (2, True), (3, False), (7, False)):
        x = plain.astype(numpy_type(name))
        if spoiled:
            x[0, [8200, 15000]] = INF
            x[1, 19000] = NAN
        spread = dilation * (window - 1) + 1
        count = (LONG_ROW + 2 * padding - spread) // stride + 1
        windows = Windows((2, window), (1, stride), (1, dilation), (0, padding), (1, count))
        pool = Pooling(windows, (0, padding), "" if p else "inside", p=p)
        out = np.full((1, count), 77, x.dtype)
        lowered(pool, name, x.shape)(x, out)
        columns = (np.abs(doubles(x)) ** p if p else doubles(x)).sum(0)
        wanted = np.zeros(count)
        for i in range(count):
            begin = i * stride - padding
            first = begin + -(begin // dilation) * dilation if begin < 0 else begin
            inside = columns[first : max(0, begin + spread) : dilation]
            with np.errstate(invalid="ignore"):
                wanted[i] = inside.sum() ** (1 / p) if p else inside.sum() / (2 * inside.size)
        error = np.abs(wanted) * (EPSILON[name] + 4 * EPSILON["FLOAT64"]) + LEAST[name] / 2
        check_close(name, out, wanted[None], error[None])


# --- what is easily wrong ---


def pooled(pool: Pooling, name: str, x: np.ndarray) -> list[Any]:
    out = np.full(pool.windows.sizes(x.shape), 77, x.dtype)
    lowered(pool, name, x.shape)(x, out)
    found: list[Any] = numbers(out).astype(np.float64).tolist()
    return found


@pytest.mark.parametrize("name", TYPES)
def test_divisors_by_literals(name: str) -> None:
    """What counts of a window: start padding and end padding or neither, and never what an output reaches beyond."""
    x = np.array([1, 2, 6], numpy_type(name))
    windows = Windows((3,), (2,), (1,), (1,), (4,))
    padded = pooled(Pooling(windows, (2,), "padded"), name, x)
    assert padded[:3] == pytest.approx([1, 8 / 3, 0], rel=EPSILON[name])
    assert math.isnan(padded[3])  # beyond the padding
    inside = pooled(Pooling(windows, (2,), "inside"), name, x)
    assert inside[:2] == [1.5, 4]
    assert math.isnan(inside[2])  # nothing but padding
    assert math.isnan(inside[3])


@pytest.mark.parametrize("name", TYPES)
def test_norms_by_literals(name: str) -> None:
    """Magnitudes, squares and cubes; windows of nothing but padding give 0."""
    x = np.array([[3, -4, 0, 12]], numpy_type(name))
    windows = Windows((2,), (1,), (1,), (2,), (8,))
    for p, expected in (
        (1, [0, 3, 7, 4, 12, 12, 0, 0]),
        (2, [0, 3, 5, 4, 12, 12, 0, 0]),
        (3, [0, 3, 91 ** (1 / 3), 4, 12, 12, 0, 0]),
        (1.5, [0, 3, 5.584250376480029, 4, 12, 12, 0, 0]),
    ):
        got = pooled(Pooling(windows, (4,), p=p), name, x)[0]
        assert got == pytest.approx(expected, rel=2 * EPSILON[name])
    x = np.array([[1, -1.5, 0, 1.75]], numpy_type(name))  # of powers that float64 holds
    got = pooled(Pooling(windows, (4,), p=1000), name, x)[0]
    assert got == pytest.approx([0, 1, 1.5, 1.5, 1.75, 1.75, 0, 0], rel=2 * EPSILON[name])


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT64"])
@pytest.mark.parametrize("special", [NAN, INF, -INF])
def test_specials_stay_in_their_windows(name: str, special: float) -> None:
    """One NaN or infinity in each place: exactly the windows that hold it show it."""
    for width, stride in itertools.product((2, 5, 13, 20), (1, 2, 3)):
        windows = simple((1, 40), (width,), stride)
        for place in (0, 7, 20, 39):
            x = np.ones((1, 40), numpy_type(name))
            x[0, place] = special
            for pool in (
                Pooling(windows, (0,), "inside"),
                *(Pooling(windows, (0,), p=p) for p in (2, 3, 2.5)),
            ):
                got = pooled(pool, name, x)[0]
                for o, value in enumerate(got):
                    held = o * stride <= place < o * stride + width
                    assert math.isfinite(value) == (not held), (width, stride, place, o)


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT64", "BFLOAT16"])
def test_norms_neither_overflow_nor_vanish(name: str) -> None:
    """Powers beyond the type's range on both sides: results are as near as others are."""
    dtype = numpy_type(name)
    top = GREATEST[name] / 4
    tiny = 2.0 ** {"FLOAT32": -140, "FLOAT64": -1060, "BFLOAT16": -130}[name]
    random = np.random.default_rng(1)
    for scale, p in itertools.product((top, tiny), (1, 2, 3, 64, 2.7, 63.9)):
        for shape, kind in (((2, 3, 9, 40), "c"), ((1, 40, 5, 5), "fortran"), ((7, 9), "any")):
            plain = random.standard_normal(shape) / 4
            x, _ = laid_out(random, (plain * scale).astype(dtype), kind)
            x[..., 0] = 0
            pool = Pooling(simple(shape, (2, 2), 2), (0, 0), p=p)
            check_pool(random, name, x, pool)
    specials = np.array([GREATEST[name], 2.0**-126, 0, 0, 1, INF, 1, NAN], dtype).reshape(1, 8)
    least = np.array([LEAST[name], 0, 0, -0.0, 3 * LEAST[name], 0, 0, 1], dtype).reshape(1, 8)
    greatest = np.full((1, 4), GREATEST[name], dtype)
    for p in (2, 3, 64, 2.7, 63.9):
        check_pool(random, name, specials, Pooling(simple((1, 8), (2,)), (0,), p=p))
        got = pooled(Pooling(simple((1, 8), (2,), 2), (0,), p=p), name, least)
        assert got == [[LEAST[name], 0, 3 * LEAST[name], 1]]
        assert pooled(Pooling(simple((1, 4), (2,)), (0,), p=p), name, greatest) == [[INF] * 3]


@pytest.mark.parametrize("name", ["FLOAT32", "BFLOAT16"])
def test_norms_of_groups_neither_overflow_nor_vanish(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of windows too long for lines, by groups or not: of elements as great and as small as there are."""
    monkeypatch.setattr(pooling, "LONGEST_LINE", 1)
    monkeypatch.setattr(pooling, "EDGE", 2)
    monkeypatch.setattr(sum_pool, "GROUPED", 1)
    for p, number in itertools.product(range(1, 10), (GREATEST[name], LEAST[name])):
        x = np.zeros((1, 40), numpy_type(name))
        x[0, 20] = number
        assert pooled(Pooling(simple(x.shape, (21,)), (0,), p=p), name, x) == [[number] * 20]


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16", "FLOAT32"])
def test_powers_of_any_exponent(name: str) -> None:
    """Of windows side by side and others, of adjoining elements and others, results are the nearest or nearly so."""
    random = np.random.default_rng(3)
    for p, stride, kind in itertools.product((1.01, 2.5, 31.4, 63.9), (1, 3), ("c", "any")):
        shape = (3, 7, 40)
        scale = 2.0 ** random.integers(-8, 8, shape)
        x, _ = laid_out(random, (random.random(shape) * scale).astype(numpy_type(name)), kind)
        pool = Pooling(simple(shape, (3, 3), stride), (0, 0), p=p)
        exact, _ = pool.expected(name, x)
        got = doubles(check_pool(random, name, x, pool))
        assert (np.abs(got - exact) <= 1.001 * EPSILON[name] * exact).all(), (p, stride, kind)


@pytest.mark.parametrize(("name", "bits"), [("FLOAT16", 11), ("BFLOAT16", 8)])
def test_rounded_once(name: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A little more than halfway between two numbers, too little for float32: by lines and element by element."""
    x = np.zeros((1, 8192), numpy_type(name))
    x[0, [5, 4000, 8000]] = [8192, 8192 * 2.0**-bits, 8192 * 2.0**-26]
    pool = Pooling(simple(x.shape, (8192,)), (0,), "inside")
    assert pooled(pool, name, x) == [[1 + 2.0 ** (1 - bits)]]
    monkeypatch.setattr(pooling, "LONGEST_LINE", 1)
    assert pooled(pool, name, x) == [[1 + 2.0 ** (1 - bits)]]
    assert pooled(pool, name, -x) == [[-1 - 2.0 ** (1 - bits)]]


def test_long_windows_keep_what_rounding_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little beside what is great and cancels, in one lane of a vector and in several, and in what is left."""
    monkeypatch.setattr(pooling, "LONGEST_LINE", 1)
    for places in ((5, 37, 69), (5, 6, 7), (0, 97, 99), (98, 97, 3)):
        x = np.zeros((1, 100))
        x[0, places] = [2.0**60, 1, -(2.0**60)]
        assert pooled(Pooling(simple(x.shape, (100,)), (0,), "inside"), "FLOAT64", x) == [[0.01]]


@pytest.mark.parametrize("name", ["FLOAT32", "BFLOAT16"])
def test_odd_windows(name: str) -> None:
    """Windows of 1, windows larger than the input, strides and dilations that jump over it, padding beyond it."""
    random = np.random.default_rng(2)
    for windows in (
        Windows((1, 1), (1, 1), (1, 1), (0, 0), (5, 7)),
        Windows((1, 1), (3, 2), (9, 9), (0, 0), (2, 4)),
        Windows((9, 30), (1, 1), (1, 1), (4, 15), (5, 7)),
        Windows((9, 30), (2, 3), (1, 1), (20, 40), (12, 16)),
        Windows((3, 3), (1, 1), (6, 8), (6, 8), (5, 7)),
        Windows((2, 2), (50, 50), (1, 1), (1, 1), (3, 3)),
        Windows((64, 1), (1, 1), (1, 1), (63, 0), (69, 7)),
        Windows((1, 64), (1, 1), (1, 1), (0, 63), (5, 71)),
        Windows((2, 2), (1, 1), (1, 1), (100, 100), (3, 3)),
    ):
        for shape, kind in itertools.product(((5, 7), (2, 3, 5, 7)), ("c", "any")):
            x, _ = laid_out(random, random.standard_normal(shape).astype(numpy_type(name)), kind)
            for end in ((0, 0), (1, 40)):
                check_pool(random, name, x, Pooling(windows, end, "padded"))
            check_pool(random, name, x, Pooling(windows, (0, 0), "inside"))
            check_pool(random, name, x, Pooling(windows, (0, 0), p=2))


@pytest.mark.parametrize("name", TYPES)
def test_elements_apart(name: str) -> None:
    """Every second, to every fifth, element of rows, backwards too; nothing is read beyond, where pages end."""
    arena, random, dtype = Arena(), np.random.default_rng(8), numpy_type(name)
    for n, apart in itertools.product((3, 16, 17, 33, 70), (-2, -1, 2, 3, 4, 5)):
        step = apart * dtype.itemsize
        row = abs(step) * n
        x = arena.place((2, 4, n), (4 * row, row, step), dtype, apart > 0)
        assert x is not None
        x[...] = drawn(random, name, x.shape)
        for window, stride, padding in (((2, 3), 1, 1), ((3, 3), 2, 0), ((4, 2), 3, 1)):
            windows = simple(x.shape, window, stride, padding)
            for pool in (Pooling(windows, (0, 0), "inside"), Pooling(windows, (0, 0), p=2)):
                check_pool(random, name, x, pool)


@pytest.mark.parametrize("name", TYPES)
def test_windows_side_by_side(name: str) -> None:
    """Long windows that lie side by side along the last axis make a reduction of rows, in any layout."""
    random = np.random.default_rng(TYPES.index(name))
    shape, window = (2, 3, 2, 75), (1, 35)
    windows = Windows(window, window, (1, 1), (0, 0), (2, 2))
    for kind in INPUT_LAYOUTS:
        x, _ = laid_out(random, drawn(random, name, shape), kind)
        for pool in (
            Pooling(windows, (0, 0), "inside"),
            Pooling(windows, (0, 0), "padded"),
            Pooling(windows, (0, 0), p=1),
            Pooling(windows, (0, 0), p=2),
        ):
            scaled = name == "FLOAT64" and pool.p == 2
            assert (lowered(pool, name, shape)._reduction is None) == scaled
            check_pool(random, name, x, pool)


@pytest.mark.parametrize("name", TYPES)
def test_whole_planes(name: str) -> None:
    """A window that is all of a plane makes a reduction, whatever the end padding; one padded before makes none."""
    random = np.random.default_rng(TYPES.index(name))
    for shape, rank in (((3, 40, 7, 7), 2), ((2, 5, 4, 3, 6), 3), ((6, 33), 1), ((4, 2, 1, 5), 2)):
        windows = simple(shape, shape[-rank:])
        for kind in INPUT_LAYOUTS:
            x, _ = laid_out(random, drawn(random, name, shape), kind)
            for pool in (
                Pooling(windows, (0,) * rank, "inside"),
                Pooling(windows, (2,) * rank, "padded"),
                Pooling(windows, (0,) * rank, p=1),
                Pooling(windows, (0,) * rank, p=2),
            ):
                scaled = name == "FLOAT64" and pool.p == 2
                assert (lowered(pool, name, shape)._reduction is None) == scaled
                check_pool(random, name, x, pool)
    for window, padding, p in (((5, 7), (1, 0), 0), ((5, 7), (0, 0), 3), ((4, 7), (0, 0), 2)):
        pool = Pooling(Windows(window, (1, 1), (1, 1), padding, (1, 1)), (0, 0), "padded", p)
        assert lowered(pool, name, (2, 5, 7))._reduction is None
        check_pool(random, name, drawn(random, name, (2, 5, 7)), pool)


@pytest.mark.parametrize("name", TYPES)
def test_packed_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Averages of small planes that adjoin are packed where the processor can; those with gaps between rows are not."""
    random = np.random.default_rng(TYPES.index(name))
    taken = noted(monkeypatch, sum_pool, "_PACKED")
    for (*shape, columns), sizes in PACKED:
        x = drawn(random, name, (*shape, columns + 1))[..., 1:]
        for given, divisor, end in itertools.product((x.copy(), x), DIVISORS, (0, 1)):
            pool = Pooling(Windows(*sizes), (end,) * len(sizes[0]), divisor)
            check_pool(random, name, given, pool, "c")
    assert len(taken) == packs() * len(PACKED) * 2 * len(DIVISORS)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("tiled", [False, True])
def test_transposed_planes(name: str, tiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows over as many planes as a vector has lanes, which adjoin or lie side by side; these in tiles as well."""
    cases = TRANSPOSED
    if tiled:
        monkeypatch.setattr(pool_transposed, "TILE", 64)
        cases = [TRANSPOSED[2], *TRANSPOSED[4:]]  # of small windows: those of others do not fit
    monkeypatch.setattr(pool_transposed, "SHARED", 0)
    monkeypatch.setattr(sum_pool, "LONGEST", 99)
    for shortest in ("SHORT", "SHORTEST", "COSTLY"):
        monkeypatch.setattr(sum_pool, shortest, 2)
    random = np.random.default_rng(TYPES.index(name))
    taken = noted(monkeypatch, sum_pool, "_TRANSPOSED")
    calls = 0
    for (*batch, planes, rows, columns), windows in cases:
        shape = (*batch, planes // numpy_type(name).itemsize, rows, columns)
        x = drawn(random, name, shape)
        apart = beside(x)
        for given in (x, apart, apart[..., ::-1, ::-1])[tiled:]:
            for divisor, p in (("inside", 0), ("padded", 0), ("", 1), ("", 2), ("", 3), ("", 2.5)):
                if p == 2.5 and name == "FLOAT64":
                    continue  # computed window by window
                pool = Pooling(windows, (2, 1), divisor, p)
                out = np.empty_like(given, shape=windows.sizes(shape))
                lowered(pool, name, shape)(given, out)
                check_close(name, out, *pool.expected(name, given))
                calls += 1
    assert len(taken) == calls


@pytest.mark.parametrize(
    ("name", "shape", "window", "padding", "wanted"),
    [
        ("FLOAT32", (64, 31, 32), (9, 9), 4, True),
        ("FLOAT32", (64, 32, 32), (9, 9), 4, False),  # planes in few sets of the caches
        ("FLOAT32", (64, 36, 36), (5, 5), 0, False),  # the same of outputs, and short windows
        ("FLOAT64", (64, 38, 38), (7, 7), 0, False),
        ("FLOAT32", (64, 7, 60), (7, 7), 0, False),  # one row of outputs
        ("FLOAT32", (64, 7, 7), (7, 7), (1, 0), False),  # outputs of less than a unit
        ("FLOAT32", (64, 24, 24), (23, 23), 0, False),  # few outputs of many elements
        ("FLOAT32", (64, 24, 24), (7, 17), (3, 8), False),  # sums of float32 over long windows,
        ("FLOAT32", (64, 24, 24), (17, 17), 8, True),  # and of float64
        ("FLOAT64", (64, 24, 24), (17, 17), 8, False),
        ("FLOAT32", (16, 60, 60), (9, 9), 4, False),  # one item
        ("FLOAT32", (32, 60, 60), (9, 9), 4, True),
        ("FLOAT16", (64, 60, 60), (9, 9), 4, False),  # too much scratch memory
    ],
)
def test_which_planes_are_transposed(
    name: str,
    shape: tuple[int, int, int],
    window: tuple[int, int],
    padding: int | tuple[int, int],
    wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = noted(monkeypatch, sum_pool, "_TRANSPOSED")
    before = padding if isinstance(padding, tuple) else (padding, padding)
    sizes = [n + 2 * p - w + 1 for n, p, w in zip(shape[1:], before, window, strict=True)]
    windows = Windows(window, (1, 1), (1, 1), before, tuple(sizes))
    random = np.random.default_rng(math.prod(shape))
    x = random.normal(size=shape).astype(numpy_type(name))
    out = np.empty((shape[0], *sizes), x.dtype)
    pool = lowered(Pooling(windows, before, "padded"), name, shape)
    assert sum_pool._TRANSPOSED(name, pool._width, "average") in pool.chunks()
    taken.clear()
    pool(x, out)
    assert len(taken) == wanted
    last = x[-1, -window[0] + before[0] :, -window[1] + before[1] :].astype(np.float64)
    assert math.isclose(out[-1, -1, -1], last.sum() / math.prod(window), rel_tol=0.01, abs_tol=1e-3)


def test_plans_of_packed_planes_are_small() -> None:
    """Neither a plan nor what makes it grows with the window; other operators of the same planes share its table."""
    windows = Windows((3999, 1), (1, 1), (1, 1), (1999, 0), (2000, 1))
    pool = Pooling(windows, (1999, 0), "inside")
    x = np.ones((3, 2000, 1), np.float16)
    out = np.empty_like(x)
    lowered(pool, "FLOAT16", (2, 2000, 1))(x[:2], out[:2])
    tracemalloc.start()
    try:
        operator = lowered(pool, "FLOAT16", x.shape)
        operator(x, out)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out.tolist() == x.tolist()
    assert kept < MEBI / 16
    assert most < MEBI / 2


@pytest.mark.parametrize("name", TYPES)
def test_packed_planes_have_the_same_bits(name: str) -> None:
    """Elements are added in the same order where planes are packed and where they are not."""
    random = np.random.default_rng(TYPES.index(name))
    for rows in range(1, 14):
        windows = simple((9, rows + 6, 5), (rows, int(random.integers(1, 5))), 1, 0)
        pool = Pooling(windows, (0, 0), "inside")
        x = random.normal(size=(9, rows + 6, 6)).astype(numpy_type(name))[..., 1:]
        x[0] = -0.0
        results = [output(random, windows.sizes(x.shape), x.dtype, "c").array for _ in range(2)]
        for given, result in zip((x, x.copy()), results, strict=True):
            lowered(pool, name, x.shape)(given, result)
        assert results[0].tobytes() == results[1].tobytes(), windows


def test_divisors_of_rows_of_several_tiles() -> None:
    """Between the edges all windows count alike; at each edge, and behind it, they count less."""
    for n, window, stride, padding, dilation in (
        (9_000, 3, 1, 1, 1),
        (9_000, 2, 2, 0, 1),
        (10_000, 5, 3, 4, 2),
        (8_200, 40, 7, 39, 1),
    ):
        windows = simple((1, n), (window,), stride, padding, dilation)
        x = np.ones((2, n), np.float32)
        for divisor in DIVISORS:
            pool = Pooling(windows, (padding // 2,), divisor)
            check_pool(np.random.default_rng(n), "FLOAT32", x, pool, "c")


@pytest.mark.parametrize("window", [*range(1, 18), 21, 31, 33, 47, 63, 64, 65, 100])
def test_each_width_of_a_window(window: int) -> None:
    """Wide and tall windows are made of blocks: with each stride and dilation, each element once."""
    random = np.random.default_rng(window)
    name = "FLOAT32"
    for stride, dilation, down in itertools.product((1, 2, 3, 4, 5), (1, 2), (False, True)):
        reach = (window - 1) * dilation + 1
        n = reach + 20
        outputs = (n + window // 2 - reach) // stride + 2
        along = ((1, window), (1, stride), (1, dilation), (0, window // 2), (2, outputs))
        windows = Windows(*(pair[::-1] if down else pair for pair in along))
        shape = (1, n, 2) if down else (1, 2, n)
        x = random.integers(-99, 99, shape).astype(numpy_type(name))
        check_pool(random, name, x, Pooling(windows, (0, 0), "inside"))
        last = np.ascontiguousarray(np.moveaxis(np.repeat(x[None], 3, 1), 1, -1))
        check_pool(random, name, np.moveaxis(last, -1, 1), Pooling(windows, (0, 0), p=1))


@pytest.mark.parametrize(
    "kernel",
    [max_pool, max_pool_grad, sum_pool_kernel, average_pool_grad],
    ids=lambda k: k.__name__,
)
def test_axes_are_in_the_order_of_the_kernels(kernel: Any) -> None:
    """The host's fields and the kernels' columns are the same, in number and order; settings are within the walk's."""
    assert kernel.SpatialAxis._fields == SpatialAxis._fields
    assert kernel.BatchAxis._fields == BatchAxis._fields
    own = ("BLOCK", "FIND", "SEVERAL", "OUT_DENSE", "EXPONENT", "POWER", "SURE_FROM", "SURE_TO")
    settings = [getattr(kernel, name, kernel.OWN) for name in own]
    assert min(settings) == kernel.OWN > kernel.EDGE and max(settings) < kernel.SETTINGS


@pytest.mark.parametrize("tall_bytes", [pooling.TALL_BYTES, 4096])
def test_tall_windows(tall_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added up by doubling where windows share many: each height, whole planes and blocks of them."""
    monkeypatch.setattr(pooling, "TALL_BYTES", tall_bytes)
    taken = rows_shared(monkeypatch)
    random = np.random.default_rng(8)
    for x, windows in tall_windows(lambda shape: drawn(random, "FLOAT32", shape)):
        check_pool(random, "FLOAT32", x, Pooling(windows, (0, 0, 0), "inside"), "c")
    assert sum(taken) > 10


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT64"])
def test_windows_of_many_elements(name: str) -> None:
    """Hundreds of rows, and rows of thousands: the error does not grow with the window."""
    random = np.random.default_rng(6)
    for shape, window, kind in (
        ((2, 700, 5), (300, 2), "sliced"),
        ((1, 30, 30, 4), (23, 24, 2), "c"),
        ((1, 5000), (4000,), "c"),
        ((1, 600, 100), (600, 100), "c"),
        ((1, 2, 300, 300), (300, 300), "fortran"),
        ((1, 40_000), (36_000,), "c"),  # no line holds it
    ):
        x, _ = laid_out(random, (random.random(shape) + 1).astype(numpy_type(name)), kind)
        windows = simple(shape, window, 77)
        check_pool(random, name, x, Pooling(windows, (0,) * len(window), "inside"))
        check_pool(random, name, x, Pooling(windows, (0,) * len(window), p=2))


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT64"])
def test_no_elements(name: str) -> None:
    """No batch or no output: nothing is written. No input: every window holds nothing but padding."""
    random = np.random.default_rng(1)
    for shape, outputs in (
        ((0, 3, 4, 4), (2, 2)),
        ((2, 5, 5), (0, 3)),
        ((2, 0, 5), (2, 3)),
        ((2, 5, 0), (4, 3)),
        ((0,), (4,)),
    ):
        ones = (1,) * len(outputs)
        windows = Windows((2,) * len(outputs), ones, ones, ones, outputs)
        x = np.zeros(shape, numpy_type(name))
        for pool in (Pooling(windows, ones, "inside"), Pooling(windows, ones, "padded")):
            check_pool(random, name, x, pool)
        check_pool(random, name, x, Pooling(windows, ones, p=2))


def test_many_dimensions() -> None:
    """12 batch and 6 spatial dimensions; no batch dimension at all."""
    random = np.random.default_rng(6)
    shape = (1, 2) * 3 + (1,) * 6 + (2, 3) * 3
    x, _ = laid_out(random, drawn(random, "FLOAT16", shape), "permuted")
    windows = Windows((2,) * 6, (2,) * 6, (1,) * 6, (0, 1) * 3, (1, 2) * 3)
    for pool in (Pooling(windows, (0, 1) * 3, "padded"), Pooling(windows, (0,) * 6, p=2)):
        check_pool(random, "FLOAT16", x, pool, "permuted")
    x, _ = laid_out(random, drawn(random, "FLOAT16", (17,)), "negative")
    check_pool(random, "FLOAT16", x, Pooling(simple((17,), (3,), 2, 1), (1,), "padded"))


# --- layouts ---


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16"])
def test_each_pair_of_layouts(name: str) -> None:
    """Every input layout with every output layout; one operator serves them all."""
    random = np.random.default_rng(7)
    for number, (sizes, window, stride, padding, dilation) in enumerate(USUAL[:3]):
        shape = (2, 3, *sizes)
        windows = simple(shape, window, stride, padding, dilation)
        pool = (
            Pooling(windows, (1, 1), DIVISORS[number])
            if number < 2
            else Pooling(windows, (0, 0), p=2)
        )
        kernel = lowered(pool, name, shape)
        for kind in INPUT_LAYOUTS:
            x, _ = laid_out(random, drawn(random, name, shape), kind)
            expected, error = pool.expected(name, x)
            for out_kind in LAYOUTS:
                out = output(random, expected.shape, x.dtype, out_kind)
                kernel(x, out.array)
                check_close(name, out.array, expected, error)
                out.check_surroundings()


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("channels", [1, 3, 16, 33, 130])
def test_channels_last(name: str, channels: int) -> None:
    """NHWC memory under NCHW sizes, on both sides or one."""
    random = np.random.default_rng(channels)
    for sizes, window, stride, padding, dilation in USUAL if channels < 100 else USUAL[:1]:
        x = drawn(random, name, (1, *sizes, channels)).transpose(0, 3, 1, 2)
        windows = simple(x.shape, window, stride, padding, dilation)
        for pool in (Pooling(windows, (padding,) * 2, "padded"), Pooling(windows, (0, 0), p=2)):
            expected, error = pool.expected(name, x)
            for last in (False, True):
                out = np.full(expected.shape, 7, x.dtype)
                if last:
                    out = np.ascontiguousarray(out.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
                lowered(pool, name, x.shape)(x, out)
                check_close(name, out, expected, error)


# --- threads ---


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize(("shape", "window", "stride", "padding", "dilation"), LARGE, ids=str)
def test_large(
    name: str,
    shape: tuple[int, ...],
    window: tuple[int, ...],
    stride: int,
    padding: int,
    dilation: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inputs that are split over threads: right, and to the bit the same on one thread, on two and on all."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng(math.prod(shape))
    windows = simple(shape, window, stride, padding, dilation)
    x = random.standard_normal(shape).astype(numpy_type(name))
    for pool in (
        Pooling(windows, (padding,) * len(window), "padded"),
        Pooling(windows, (0,) * len(window), p=2),
    ):
        expected, error = pool.expected(name, x)
        kernel = lowered(pool, name, shape)
        channels_last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
        for given, kind in itertools.product((x, channels_last), ("c", "any", "fortran")):
            out = output(random, expected.shape, x.dtype, kind)
            results = []
            for threads in (1, 2, 8):
                out.array[...] = NAN
                with specops.num_threads(threads):
                    kernel(given, out.array)
                check_close(name, out.array, expected, error)
                results.append(numbers(out.array.copy()))
            out.check_surroundings()
            for result in results[1:]:
                np.testing.assert_array_equal(result, results[0])


# --- memory ---


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout, averages and norms."""
    for name, kind in itertools.product(["FLOAT32", "FLOAT16"], [*INPUT_LAYOUTS, "read-only"]):
        x = of_8_mebibytes(kind, numpy_type(name))
        for window, stride, padding in (((2, 2), 2, 0), ((13, 13), 7, 6)):
            windows = simple(x.shape, window, stride, padding)
            out = np.zeros(windows.sizes(x.shape), x.dtype)
            for pool in (Pooling(windows, (0, 0), "inside"), Pooling(windows, (0, 0), p=2)):
                kernel = lowered(pool, name, x.shape)
                yield f"{name} {kind} {pool}", partial(kernel, x, out)
