"""The contract of the reductions: each type, shape, layout and function, against exact numbers.

Every random case follows from its number in PAIRS and its own alone: `check_case(3, 217)` repeats one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from draw import (
    EDGES,
    FLOATS,
    INPUT_LAYOUTS,
    LAYOUTS,
    LONG_PLANES,
    PLANES,
    Call,
    case,
    laid_out,
    last_item_first,
    lone_columns,
    noted,
    numpy_type,
    of_8_mebibytes,
    output,
    packed_records,
    planes_cut,
    random_axes,
    random_shape,
    small_planes,
    values,
)
from reduce_oracle import (
    EMPTY,
    UNIT,
    check_number,
    check_results,
    of_nothing,
)

import specops
from specops.lowering import machine, planes
from specops.lowering import reduce as lowering
from specops.lowering.axes import Axis
from specops.lowering.reduce import Reduce
from specops.tensor import packed, packed_strides
from stress.memory import Arena

NAN, INF = math.nan, math.inf
# Each compiled version of the kernel takes a second or two: not all types have all functions here.
OF_TYPE = {
    "FLOAT32": "sum mean product l1 l2 sum_square log_sum log_sum_exp max min",
    "FLOAT64": "sum mean product l2 sum_square log_sum_exp min",
    "FLOAT16": "sum product l2 log_sum_exp max",
    "BFLOAT16": "mean product max",
    "INT32": "sum mean product l1 l2 sum_square log_sum max",
    "UINT32": "sum mean log_sum min",
    "INT64": "mean sum_square log_sum_exp max",
    "UINT64": "l1 log_sum_exp min",
    "INT8": "min",
    "UINT8": "max",
    "BOOL": "max min",
    "INT16": "max",
    "UINT16": "min",
}
PAIRS = [(name, function) for name, all_ in OF_TYPE.items() for function in all_.split()]
CASES = 50  # for each pair
SETS = [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]  # of axes of a rank of 3


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if d in axes else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in axes)


def operator(
    name: str, function: str, shape: tuple[int, ...], axes: Any, nan: str, keep: bool = True
) -> Reduce:
    out = packed(name, reduced_shape(shape, axes, keep))
    return Reduce(function=function, nan=nan, axes=axes, input=packed(name, shape), output=out)


def run(name: str, function: str, x: np.ndarray, axes: Any, nan: str = "propagates") -> np.ndarray:
    """Without the reduced axes."""
    out = np.full(reduced_shape(x.shape, axes, False), 7, x.dtype)
    operator(name, function, x.shape, axes, nan, False)(x, out)
    return out


# --- random cases ---


def drawn(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random values; of floats more often ordinary ones, whose sums each element counts in."""
    if name in FLOATS and random.random() < 0.6:
        scale = float(random.choice([1, 1, 30, 1e-3]))
        return (random.standard_normal(shape) * scale).astype(numpy_type(name))
    return values(random, name, shape)


def check_case(pair: int, number: int, variant: int = 0) -> None:
    name, function = PAIRS[pair]
    random = np.random.default_rng([pair, number, variant])
    shape = random_shape(random, 8 if number % 4 else 3)
    axes = random_axes(random, len(shape))
    nan = str(random.choice(["ignored", "propagates"]))
    kind = str(random.choice(INPUT_LAYOUTS))
    numbers = drawn(random, name, shape)
    x, buffer = laid_out(random, numbers, kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    keep = bool(random.random() < 0.5)
    kernel = operator(name, function, shape, [axes, list(axes)][random.integers(2)], nan, keep)
    text = f"check_case({pair}, {number}, {variant}): {name} {function} {kind} {shape} {x.strides}, axes {axes}, {nan}"
    with case(text, buffer):
        outputs = [output(random, reduced_shape(shape, axes, keep), x.dtype) for _ in range(2)]
        for out in outputs:  # in two layouts
            kernel(x, out.array)
            out.check_surroundings()
        check_results(name, function, nan, x, axes, outputs[0].array)
        if outputs[0].array.tobytes() != outputs[1].array.tobytes():  # walked in another order
            check_results(name, function, nan, x, axes, outputs[1].array)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_random_cases(pair: int) -> None:
    """Random shapes, axes, layouts and values give what exact numbers give."""
    for number in range(CASES):
        check_case(pair, number)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_parts_and_tiles(pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into parts of a few elements and narrow tiles, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    monkeypatch.setattr(lowering, "TILE_BYTES", 256)
    monkeypatch.setattr(machine, "BESIDE", 12)
    monkeypatch.setattr(planes, "CORE_CACHE_BYTES", 0)
    monkeypatch.setattr(planes, "RUN_BYTES", 0)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    monkeypatch.setattr(planes, "FEW_ROWS", 0)
    for number in range(CASES // 2):
        if number == CASES // 4:
            last_item_first(monkeypatch)
        monkeypatch.setattr(machine, "UNCACHED_BYTES", (0, 1 << 25)[number % 2])
        near_bytes = (0, 1 << 22)[number % 3 == 0]
        monkeypatch.setattr(lowering, "NEAR_BYTES", near_bytes)
        monkeypatch.setattr(lowering, "NARROW_NEAR_BYTES", near_bytes)
        monkeypatch.setattr(planes, "LONE_ROWS", (100, 2)[number % 2])
        check_case(pair, number, 1)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_small_planes(pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of planes of few elements, or of few rows, with outputs of any layout."""
    name, function = PAIRS[pair]
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)  # planes have none
    taken = noted(monkeypatch, lowering, "_PLANES")
    calls = noted(monkeypatch, planes, "cut_planes")
    random = np.random.default_rng(pair)
    monkeypatch.setattr(planes, "CUT_BYTES", 256)
    for number, x in enumerate(small_planes(random, name, PLANES + LONG_PLANES)):
        nan = ("ignored", "propagates")[number % 2]
        out = output(random, reduced_shape(x.shape, (1,), True), x.dtype)
        operator(name, function, x.shape, (1,), nan)(x, out.array)
        check_results(name, function, nan, x, (1,), out.array)
        out.check_surroundings()
    assert len(taken) >= 32 and planes_cut(calls) >= 4


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_lone_columns(pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of few columns is folded down its rows; of one plane and of several together."""
    name, function = PAIRS[pair]
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    taken = noted(monkeypatch, lowering, "_ROWS")
    random = np.random.default_rng(pair)
    for number, x in enumerate(lone_columns(random, name)):
        nan = ("ignored", "propagates")[number % 2]
        axes = ((1,), (0, 1))[number // 2 % 2]
        out = output(random, reduced_shape(x.shape, axes, True), x.dtype)
        operator(name, function, x.shape, axes, nan)(x, out.array)
        check_results(name, function, nan, x, axes, out.array)
        out.check_surroundings()
    assert len(taken) == 8


RUNS = [  # shapes and axes of groups of several runs: of one element to many vectors, of few groups and of many
    ((3, 70, 7), (0, 2)),
    ((2, 3, 130, 15), (0, 3)),
    ((2, 5, 3, 2, 63), (0, 2, 4)),
    ((6, 4, 129), (0, 2)),
    ((3, 66, 16), (0, 2)),
    ((9, 1, 9, 31), (0, 3)),
    ((5, 3, 127), (0, 2)),
]


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_short_runs(pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs of many groups in turn, and rows with gaps between them; in parts and in one, over threads."""
    name, function = PAIRS[pair]
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(lowering, "SHORT_EXPONENTIALS", lowering.SHORT)
    taken = noted(monkeypatch, lowering, "_RUNS")
    random = np.random.default_rng(pair)
    for number, (shape, axes) in enumerate(RUNS):
        monkeypatch.setattr(machine, "PART_BYTES", (1 << 18, 48)[number % 2])
        monkeypatch.setattr(lowering, "NEAR_BYTES", (1 << 22, 0)[number % 2])
        monkeypatch.setattr(lowering, "NARROW_NEAR_BYTES", (1 << 22, 0)[number % 2])
        nan = ("ignored", "propagates")[number % 2]
        x = drawn(random, name, shape)
        within = drawn(random, name, (*shape[:-1], shape[-1] + 2))[..., 1:-1]
        apart = np.repeat(x, 2, -1)[..., ::2]
        last = tuple(range(x.ndim - 2, x.ndim))
        calls = (x, axes), (x[::-1], axes), (within, axes), (within, last), (apart, axes)
        for given, reduced in calls:
            out = output(random, reduced_shape(shape, reduced, True), x.dtype)
            operator(name, function, shape, reduced, nan)(given, out.array)
            check_results(name, function, nan, given, reduced, out.array)
            out.check_surroundings()
    assert len(taken) >= 20


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[" ".join(pair) for pair in PAIRS])
def test_narrow_rows(pair: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as many of which as a vector has lanes are transposed: of each length, with and without gaps, over threads.

    A row's result is the same whatever rows are beside it.
    """
    name, function = PAIRS[pair]
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    taken = noted(monkeypatch, lowering, "_NARROW")
    random = np.random.default_rng(pair)
    dtype = numpy_type(name)
    lanes = machine.CACHE_LINE // dtype.itemsize
    wide = dtype.itemsize == 8 and function != "log_sum_exp"
    for n in (*range(2, 14), 23, 24, 47, 48):
        monkeypatch.setattr(lowering, "NEAR_BYTES", (1 << 22, 0)[n % 2])
        monkeypatch.setattr(lowering, "NARROW_NEAR_BYTES", (1 << 22, 0)[n % 2])
        nan = ("ignored", "propagates")[n % 2]
        rows = lanes + int(random.integers(4 * lanes + 3))
        x = drawn(random, name, (rows, n))
        gap = drawn(random, name, (2, rows, n + 1 + n % 3))[:, ::-1, 1 : n + 1]
        for given in (x, gap, x[: lanes - 1], packed_records(x, 1 + n % 3)):
            axes = (given.ndim - 1,)
            out = output(random, reduced_shape(given.shape, axes, True), x.dtype)
            operator(name, function, given.shape, axes, nan)(given, out.array)
            check_results(name, function, nan, given, axes, out.array)
            out.check_surroundings()
        results = run(name, function, x, (1,), nan)
        some = run(name, function, x[1 : 1 + lanes], (1,), nan)
        assert some.tobytes() == results[1 : 1 + lanes].tobytes()
    assert not taken if wide else len(taken) >= 30


CONVERTED = [
    "FLOAT16 sum",
    "FLOAT16 l2",
    "BFLOAT16 mean",
    "FLOAT32 sum",
    "FLOAT32 l1",
    "FLOAT32 l2",
]


@pytest.mark.parametrize("pair", CONVERTED)
def test_narrow_columns(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows of few columns of converted floats: side by side, down several blocks, in parts and in one."""
    name, function = pair.split()
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(lowering, "DOWN_BYTES", 4096)
    monkeypatch.setattr(lowering, "NEAR_BYTES", 0)
    random = np.random.default_rng(CONVERTED.index(pair))
    for rows, columns in ((200, 8), (133, 64), (99, 16), (120, 33), (77, 3), (67, 65)):
        x = values(random, name, (3, rows, columns))
        wide = values(random, name, (3, rows, columns + 2))[:, ::-1, 1:-1]
        for number, given in enumerate((x, x[:1], wide, x.reshape(3, 1, rows, columns)[::-2])):
            axes = (0, 2) if given.ndim == 4 else (1,)
            monkeypatch.setattr(machine, "PART_BYTES", (1 << 18, 2048)[number % 2])
            nan = ("ignored", "propagates")[number % 2]
            check_results(name, function, nan, given, axes, run(name, function, given, axes, nan))


# --- numbers ---


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_errors_do_not_grow(name: str) -> None:
    """Long sums are as exact as short ones, and no less so than NumPy's."""
    random = np.random.default_rng(1)
    for n in (1_000, 1_000_000):
        for x in (random.random(n), random.standard_normal(n), np.full(n, 0.1)):
            rows = x.astype(numpy_type(name))
            wide = rows.astype(np.float64)
            exact, magnitudes = math.fsum(wide.tolist()), float(np.abs(wide).sum())
            error = Fraction(UNIT[name]) * Fraction(magnitudes)
            for given, axis in ((rows[None], 1), (np.stack([rows] * 3, 1), 0)):
                for found in run(name, "mean", given, (axis,)).astype(np.float64).tolist():
                    check_number(name, Fraction(exact) / n, error / n, found)
                if name == "FLOAT16":
                    continue  # most sums overflow
                for found in run(name, "sum", given, (axis,)).astype(np.float64).tolist():
                    check_number(name, Fraction(exact), error, found)
                    assert abs(found - exact) <= abs(float(np.sum(rows)) - exact) + math.ulp(exact)


def test_exponentials_of_rising_numbers() -> None:
    """Each element is the greatest so far: what was summed before does not lose its digits."""
    for name, least in (("FLOAT32", 2e-7), ("FLOAT64", 1e-15)):
        for top in (1, 30, 1000):
            x = np.linspace(0, top, 300_000).astype(numpy_type(name))
            wide = x.astype(np.float64)
            exact = top + math.log(math.fsum(np.exp(wide - top).tolist()))
            for given, axis in ((x[None], 1), (np.stack([x] * 3, 1), 0)):
                found = run(name, "log_sum_exp", given, (axis,)).astype(np.float64)
                assert np.abs(found - exact).max() <= least * max(1, exact)


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_exponentials_of_infinities(name: str) -> None:
    """Infinities that come before, among and after finite elements, in the same lanes and in others."""
    greatest = np.finfo(numpy_type(name)).max
    x = np.full((6, 1000), 1.0, numpy_type(name))
    x[1, [3, 500, 501, 987]] = INF
    x[2, [3, 500, 501, 987]] = -INF
    x[3], x[3, 999] = -INF, 2.0
    x[4], x[4, 700] = -INF, -greatest
    x[5, 5], x[5, 600] = INF, NAN
    wanted = [1 + math.log(1000), INF, 1 + math.log(996), 2.0, -greatest, NAN]
    for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        found = run(name, "log_sum_exp", given, (axis,)).astype(np.float64)
        np.testing.assert_allclose(found, wanted, rtol=float(np.finfo(x.dtype).eps))
    nothing = np.full((3, 1000), -INF, numpy_type(name))
    for given, axis in ((nothing, 1), (nothing.T.copy(), 0)):
        assert (run(name, "log_sum_exp", given, (axis,)) == -INF).all()


LITERALS: list[tuple[str, str, list[float], float]] = [
    # function, type, group, result
    ("product", "FLOAT32", [2.0**100, 2.0**-100] * 500, 1.0),
    ("product", "FLOAT32", [2.0**100, 2.0**-100] * 16, 1.0),
    ("product", "FLOAT32", [2.0**-126] * 64 + [2.0**-149] * 64 + [2.0**110] * 160, 1.0),
    ("product", "FLOAT32", [2.0**127, *[1.0] * 15] * 9 + [2.0**-149, *[1.0] * 15] * 7, 2.0**100),
    ("product", "FLOAT64", [2.0**250, 2.0**-250] * 16, 1.0),
    ("product", "FLOAT64", [2.0**900, 2.0**-900] * 300, 1.0),
    ("product", "FLOAT64", [2.0**-1074] * 2 + [2.0**1023] * 2, 2.0**-102),
    ("product", "FLOAT64", [1.5 * 2.0**-1023] * 2 + [2.0**1023] * 2, 2.25),
    ("product", "FLOAT64", [2.0**1023, 2.0**1023] * 3, INF),
    ("product", "FLOAT64", [2.0**-1000] * 5, 0.0),
    ("product", "FLOAT64", [-(2.0**-1000)] * 7, -0.0),
    ("product", "FLOAT64", [2.0**1000] * 30, INF),
    ("product", "FLOAT64", [2.0**-1000, -(2.0**-74)], -(2.0**-1074)),
    ("product", "FLOAT32", [INF, 0.0], NAN),
    ("product", "FLOAT32", [-INF, 2.0], -INF),
    ("l2", "FLOAT64", [3e200, 4e200], 5e200),
    ("l2", "FLOAT64", [3e-200, 4e-200], 5e-200),
    ("l2", "FLOAT64", [2.0**-1074] * 4, 2.0**-1073),
    ("l2", "FLOAT64", [2.0**1022] * 2, math.sqrt(2) * 2.0**1022),
    ("l2", "FLOAT64", [-INF, 1.0], INF),
    ("l2", "FLOAT64", [0.0] * 20, 0.0),
    ("l2", "FLOAT32", [3 * 2.0**120, 4 * 2.0**120], 5 * 2.0**120),
    ("l2", "FLOAT32", [3 * 2.0**-145, 4 * 2.0**-145], 5 * 2.0**-145),
    ("l2", "FLOAT16", [30000.0, 40000.0], 50000.0),
    ("sum", "FLOAT64", [1.0, 1e100, 1.0, -1e100], 2.0),
    ("sum", "FLOAT32", [INF, -INF], NAN),
    ("sum", "BFLOAT16", [256.0, 1.0, 2.0**-30], 258.0),  # rounded once: twice would give 256
    ("sum", "FLOAT16", [2048.0, 1.0, *[0.0] * 6, 2.0**-24], 2050.0),  # twice would give 2048
    ("sum", "FLOAT16", [-2048.0, -1.0, *[0.0] * 6, 2.0**-24], -2048.0),
    ("sum", "FLOAT16", [*[60000.0] * 500, 1.0, *[-60000.0] * 500], 1.0),
    ("sum", "FLOAT16", [60000.0, 60000.0, -60000.0], 60000.0),
    ("mean", "FLOAT16", [60000.0] * 100, 60000.0),
    ("mean", "FLOAT32", [3e38] * 100, 3e38),
    ("log_sum", "FLOAT32", [0.0, 0.0], -INF),
    ("log_sum", "FLOAT32", [-1.0], NAN),
    ("log_sum", "FLOAT32", [1.0], 0.0),
    ("log_sum", "FLOAT64", [2.0**-1074] * 4, math.log(2.0**-1072)),
    ("log_sum_exp", "FLOAT32", [1000.0, 1000.0], 1000 + math.log(2)),
    ("log_sum_exp", "FLOAT32", [-1000.0, -1000.0], -1000 + math.log(2)),
    ("log_sum_exp", "FLOAT32", [-INF, -INF], -INF),
    ("log_sum_exp", "FLOAT32", [INF, 1.0, -INF], INF),
    ("log_sum_exp", "FLOAT32", [INF, NAN], NAN),
    ("log_sum_exp", "FLOAT32", [0.0], 0.0),
    ("log_sum_exp", "FLOAT64", [-1e308, 1e308], 1e308),
    ("max", "FLOAT32", [-0.0, 0.0], 0.0),
    ("max", "FLOAT32", [-INF, -INF], -INF),
    ("min", "FLOAT32", [0.0, -0.0], -0.0),
    ("mean", "INT32", [-3, -4], -3),
    ("mean", "UINT32", [2**32 - 1, 1, 6], 2),
    ("sum", "INT32", [2**31 - 1, 1], -(2**31)),
    ("l1", "INT32", [-(2**31), 0], -(2**31)),
    ("l2", "INT32", [3, -5], 5),
    ("l2", "INT64", [2**31, 2**31, 1], -(2**63)),
    ("log_sum", "INT32", [0], -(2**31)),
    ("log_sum", "UINT32", [2**32 - 1], 22),
]


@pytest.mark.parametrize(
    ("function", "name", "group", "wanted"),
    LITERALS,
    ids=[f"{function} {name} {wanted}" for function, name, _, wanted in LITERALS],
)
def test_literals(function: str, name: str, group: list[float], wanted: float) -> None:
    """A group by literals: as rows and as columns, few and many."""
    for width in (1, 3, 40):
        rows = np.tile(np.array(group, numpy_type(name)), (width, 1))
        apart = np.repeat(rows.T, 2, axis=1)[:, ::2]
        columns = np.ascontiguousarray(rows.T)
        for given, axis in ((rows, 1), (columns, 0), (rows[:, ::-1], 1), (apart, 0)):
            found = run(name, function, given, (axis,)).astype(np.float64)
            rounded = np.full(width, wanted, numpy_type(name)).astype(np.float64)
            np.testing.assert_allclose(found, rounded, 2e-16 if name == "FLOAT64" else 1e-7)
            if wanted == 0:
                assert (np.signbit(found) == np.signbit(wanted)).all()


def squares(total: int) -> list[int]:
    """At most 12 integers whose squares have this sum."""
    numbers = []
    while total:
        numbers.append(math.isqrt(total))
        total -= numbers[-1] ** 2
    return numbers + [0] * (12 - len(numbers))


@pytest.mark.parametrize(("name", "most"), [("INT64", 2**63 - 1), ("UINT64", 2**64 - 1)])
def test_roots_of_integers(name: str, most: int) -> None:
    """The root of a sum that float64 does not have is cut, not rounded."""
    random = np.random.default_rng(1)
    roots = [r for power in range(33) for r in (2**power - 1, 2**power, 2**power + 1)]
    roots += [int(2 ** (32 * random.random())) for _ in range(500)]
    roots += [math.isqrt(most) - i for i in range(50)]
    near = {max(0, r * r + off) for r in roots for off in (-1, 0, 1)} | {most - 1, most}
    totals = sorted(total for total in near if total <= most)
    x = np.array([squares(total) for total in totals], numpy_type(name))
    wanted = [math.isqrt(total) for total in totals]
    for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        assert run(name, "l2", given, (axis,)).tolist() == wanted


@pytest.mark.parametrize("n", [24, 64, 128, 131, 500])
@pytest.mark.parametrize("name", ["FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"])
def test_products_of_great_and_small(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of factors that only together are of ordinary size, whatever the size of a few of them."""
    if n == 64:  # in parts of few elements
        monkeypatch.setattr(machine, "LARGE_BYTES", 0)
        monkeypatch.setattr(machine, "PART_BYTES", 64)
    least, most = {"FLOAT64": (60, 1022), "FLOAT16": (1, 14)}.get(name, (60, 126))
    exponents = np.array([e for e in range(least, most + 1) if e < 130 or e % 5 == 0])
    rows = np.full((len(exponents), n), 1.0)
    rows[:, : n // 2] = np.ldexp(1.0, exponents)[:, None]
    rows[:, n // 2 : n // 2 * 2] = np.ldexp(1.0, -exponents)[:, None]
    rows[:, n // 3] *= -1.5
    for x in (rows, rows[:, ::-1], np.random.default_rng(n).permuted(rows, axis=1)):
        typed = np.ascontiguousarray(x).astype(numpy_type(name))
        for axis, array in ((1, typed), (0, typed.T.copy()), (1, typed[-1:])):
            np.testing.assert_array_equal(run(name, "product", array, (axis,)).ravel(), -1.5)


@pytest.mark.parametrize("power", [30, 63, 64, 127, 128, 129, 255])
def test_products_whose_lanes_are_great_and_small(power: int) -> None:
    """Short rows in which every second, fourth or eighth lane has none but small factors, and others great ones."""
    for n, apart in itertools.product((16, 25, 31, 32), (2, 4, 8)):
        small = np.arange(n) // (apart // 2) % 2 == 0
        exponents = np.where(small, -power, power - 1)  # what has a mantissa is below 2**power
        exponents[small.nonzero()[0][: small.sum() - (~small).sum()]] = 0
        x = np.ldexp(1 + np.random.default_rng(n).random((9, n)) / 64, exponents)
        expected = [float(math.prod(map(Fraction, row))) for row in x.tolist()]
        got = run("FLOAT64", "product", x, (1,)).ravel()
        np.testing.assert_allclose(got, expected, rtol=n * 2.0**-53, atol=0)


@pytest.mark.parametrize("function", ["sum", "product", "l2", "max"])
@pytest.mark.parametrize("n", [12, 16, 31])
def test_rows_do_not_depend_on_those_beside_them(function: str, n: int) -> None:
    """Rows that need more operations than others are among them, wherever that is, and rows are few or many."""
    random = np.random.default_rng(n)
    x = random.uniform(0.5, 2, (67, n)) * random.choice([-1, 1], (67, n))
    x[::5, n // 2] = [np.inf, np.nan, 2.0**300, 2.0**-300, 0, 5e-324, -0.0] * 2
    alone = np.concatenate([run("FLOAT64", function, row[None], (1,)).ravel() for row in x])
    for count in (1, 2, 7, 8, 9, 20, 67):
        for first in range(0, 67 - count + 1, 3):
            some = run("FLOAT64", function, x[first : first + count], (1,)).ravel()
            expected = alone[first : first + count]
            np.testing.assert_array_equal(some.view(np.int64), expected.view(np.int64))


@pytest.mark.parametrize("groups", [8, 24])
@pytest.mark.parametrize("name", ["FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"])
def test_products_of_parts(name: str, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups in parts, of which each comes to a number of ordinary size lane by lane, some of them to none together."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 128)
    dtype = numpy_type(name)
    share = 128 // dtype.itemsize
    vectors = share // (8 if name == "FLOAT64" else 16)
    for power in (14, 32):
        each = power // vectors
        rows = np.repeat([2.0**-each, 2.0**each], 4 * share)
        x = np.tile(rows.astype(dtype), (groups, 1))
        for given in (x, x[:, ::-1].copy()):
            np.testing.assert_array_equal(run(name, "product", given, (1,)).ravel(), 1)


@pytest.mark.parametrize("n", [3, 24, 64, 131, 500])
def test_norms_of_great_and_small(n: int) -> None:
    """Of elements whose squares are too great or too small, or 0, beside others; rows of few and of many vectors."""
    exponents = [-1050, -700, -511, -300, -250, 0, 250, 300, 500, 511, 1000]
    pairs = list(itertools.product(exponents, exponents))
    random = np.random.default_rng(n)
    rows = random.uniform(1, 2, (len(pairs), n))
    scale = np.repeat(np.ldexp(1.0, pairs), [n // 2, n - n // 2], axis=1)
    with np.errstate(under="ignore"):
        rows *= scale
    sparse = np.where(random.random(rows.shape) < 0.5, rows, 0)
    for x in (rows, rows[:, ::-1], sparse, random.permuted(rows, axis=1)):
        wanted = [math.hypot(*row) for row in x.tolist()]
        given = np.ascontiguousarray(x)
        for axis, array in ((1, given), (0, given.T.copy())):
            found = run("FLOAT64", "l2", array, (axis,)).ravel()
            np.testing.assert_allclose(found, wanted, rtol=5e-16, atol=5e-324)


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"])
def test_nan_of_the_greatest(name: str) -> None:
    """NaN of either sign loses to every number or beats every number; of nothing but NaN there is NaN."""
    if "max" not in OF_TYPE[name]:
        return
    group = np.array([NAN, -INF, -NAN], numpy_type(name))
    for x, axis in ((np.tile(group, (3, 30)), 1), (np.tile(group[:, None], (30, 3)), 0)):
        assert (run(name, "max", x, (axis,), "ignored") == -INF).all()
        assert np.isnan(run(name, "max", x, (axis,), "propagates").astype(np.float32)).all()
        for nan in ("ignored", "propagates"):
            nothing = np.full_like(x, NAN)
            assert np.isnan(run(name, "max", nothing, (axis,), nan).astype(np.float32)).all()


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16"])
def test_nan_anywhere(name: str) -> None:
    """One NaN, at the ends or in the middle of a row of any number of vectors, beats every number or loses to all."""
    random = np.random.default_rng(8)
    for n in (15, 16, 17, 31, 33, 65, 100, 257, 300, 513, 1000, 20_001):
        places = [0, n // 2, n - n % 16 - 1, n - 1]
        x = random.integers(-99, 99, (len(places) + 1, n)).astype(numpy_type(name))
        x[range(len(places)), places] = [NAN, -NAN, NAN, -NAN]
        for function, quiet in (("max", np.nanmax), ("min", np.nanmin)):
            assert np.array_equal(run(name, function, x, (1,), "ignored"), quiet(x, 1))
            wanted = getattr(np, function)(x, 1)
            assert np.array_equal(run(name, function, x, (1,)), wanted, equal_nan=True)


@pytest.mark.parametrize("function", EMPTY)
def test_groups_of_no_elements(function: str) -> None:
    """Each function's neutral element; where there are no groups, nothing is written."""
    for name in (*FLOATS, "INT32", "UINT32"):
        wanted = of_nothing(name, function)
        shape: tuple[int, ...]
        axes: tuple[int, ...]
        for shape, axes in (((0,), (0,)), ((3, 0, 2), (1,)), ((0, 4), (0, 1))):
            found = run(name, function, np.zeros(shape, numpy_type(name)), axes)
            assert np.array_equal(found.astype(np.float64), np.full(found.shape, wanted), True)
        random = np.random.default_rng(1)
        for shape, axes in (((0, 3), (1,)), ((2, 0, 4), (0, 2)), ((0,), ())):
            out = output(random, reduced_shape(shape, axes, True), numpy_type(name), "c")
            x = np.zeros(shape, numpy_type(name))
            operator(name, function, shape, axes, "propagates")(x, out.array)
            out.check_surroundings()


def test_extremes_of_nothing_bool() -> None:
    """Of no elements: False is the least, True the greatest."""
    x = np.zeros((2, 0), bool)
    assert run("BOOL", "max", x, (1,)).tolist() == [False, False]
    assert run("BOOL", "min", x, (1,)).tolist() == [True, True]


def test_indices() -> None:
    """argmax and argmin are those of the other kernel."""
    x = np.array([[3, 1, 3, 1], [NAN, 2, 5, -1]], np.float32)
    for function, nan, wanted in (
        ("argmax", "ignored", [0, 2]),
        ("argmax", "propagates", [0, 0]),
        ("argmin", "ignored", [1, 3]),
        ("argmin", "propagates", [1, 0]),
    ):
        for name in ("UINT32", "INT32", "INT64", "UINT64"):
            out = np.full((2, 1), 7, numpy_type(name))
            Reduce(
                function=function,
                nan=nan,
                axes=(1,),
                input=packed("FLOAT32", (2, 4)),
                output=packed(name, (2, 1)),
            )(x, out)
            assert out[:, 0].tolist() == wanted


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16", "INT32"])
def test_every_element_counts(name: str) -> None:
    """Rows and columns of each length around a vector, a fold or a tile: none is missed or counted twice."""
    for length in (*EDGES, 1, 2, 3, 7, 8, 9, 4095, 4097):
        for function in ("sum", "max"):
            x = np.zeros((length, 3), numpy_type(name))
            x[:, 1] = 1
            x[length // 2, 2] = 2
            x[length - 1, 0] = 3
            wanted = [3, length, 2] if function == "sum" else [3, 1, 2]
            wanted[2] = (5 if function == "sum" else 3) if length == 1 else wanted[2]
            if length == 1:
                x[0], wanted = [3, 1, 2], [3, 1, 2]
            for given, axis in ((x, 0), (np.ascontiguousarray(x.T), 1), (x[::-1].T, 1)):
                found = run(name, function, given, (axis,)).astype(np.float64)
                exact = np.array(wanted).astype(numpy_type(name)).astype(np.float64)
                assert np.array_equal(found, exact), f"{function} {length} {axis}"


UNBEATEN = {
    ("UINT8", "max"): 255,
    ("INT8", "min"): -128,
    ("INT16", "max"): 2**15 - 1,
    ("FLOAT32", "max"): NAN,
}


@pytest.mark.parametrize("pair", UNBEATEN, ids=str)
def test_a_group_ends_at_what_no_element_changes(pair: tuple[str, str]) -> None:
    """Of long groups no more is read: wherever such an element stands, and of the other groups all is."""
    name, function = pair
    random = np.random.default_rng(9)
    ordinary = random.integers(1, 99, (2, 3, 40_003)).astype(numpy_type(name))
    for place in (None, 0, 17, 33_000, 40_002):
        x = ordinary.copy()
        if place is not None:
            x[1, 1, place] = UNBEATEN[pair]
        for axes in ((2,), (0, 2), (0, 1, 2)):
            wanted = getattr(np, function)(x, axes)
            for given in (x, np.repeat(x, 2, -1)[..., ::2]):
                assert np.array_equal(
                    run(name, function, given, axes).ravel(), wanted.ravel(), True
                )


# --- layouts, threads and memory ---


@pytest.mark.parametrize("function", ["sum", "max"])
def test_each_pair_of_layouts(function: str) -> None:
    """Every input layout with every output layout; one operator serves them all."""
    random = np.random.default_rng(7)
    shape, name = (5, 6, 17), "FLOAT32"
    for axes, keep in itertools.product(SETS, (False, True)):
        kernel = operator(name, function, shape, axes, "propagates", keep)
        for kind, out_kind in itertools.product(INPUT_LAYOUTS, LAYOUTS):
            numbers = random.integers(-99, 99, shape).astype(np.float32)
            x, _ = laid_out(random, numbers, kind)
            out = output(random, reduced_shape(shape, axes, keep), x.dtype, out_kind)
            kernel(x, out.array)
            wanted = getattr(x, function)(axes, keepdims=keep)
            assert np.array_equal(out.array, wanted), f"{kind} to {out_kind}, axes {axes}"
            out.check_surroundings()


def test_rank_above_8() -> None:
    """Ranks that no page knows."""
    x = np.arange(2**12, dtype=np.int32).reshape((2,) * 12)
    for axes in (range(0, 12, 2), range(6), range(6, 12), range(12), (3, 1)):
        assert np.array_equal(run("INT32", "sum", x, axes), x.sum(tuple(axes), np.int32))


LARGE = [  # shape, axes
    ((1_000_001,), (0,)),  # one long row
    ((5, 300_001), (1,)),
    ((300, 3_001), (0,)),  # wide columns
    ((30_001, 40), (0,)),  # few columns, many rows
    ((300_001, 3), (0,)),
    ((300_001, 3), (1,)),
    ((9_011, 33), (1,)),  # many short rows
    ((7, 1_000, 129), (1,)),  # an axis in the middle
    ((16, 256, 129), (0, 2)),
    ((16, 256, 129), (0, 1, 2)),
    ((70, 1_000), ()),
    ((3, 7, 50_001), (0,)),
    ((16, 41, 9, 13), (0, 2)),  # short columns that are read far apart
    ((50_001, 2, 3), (1,)),
]


@pytest.mark.parametrize("pair", [("FLOAT32", "sum"), ("INT32", "sum"), ("UINT8", "max")], ids=str)
@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
def test_large(shape: tuple[int, ...], axes: tuple[int, ...], pair: tuple[str, str]) -> None:
    """Arrays that are split over threads: right, and the same to the last bit on any number of them."""
    name, function = pair
    random = np.random.default_rng(math.prod(shape))
    x = random.integers(0, 256, shape).astype(numpy_type(name))
    wanted = x.max(axes) if function == "max" else x.sum(axes, np.int64).astype(x.dtype)
    for given in (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, -1)[..., ::2]):
        kernel = operator(name, function, shape, axes, "propagates", False)
        for threads in (1, 2, 8):
            out = output(random, reduced_shape(shape, axes, False), x.dtype)
            with specops.num_threads(threads):
                kernel(given, out.array)
            assert np.array_equal(out.array, wanted)
            out.check_surroundings()


def test_the_same_on_any_number_of_threads() -> None:
    """To the last bit, also where sums are rounded."""
    x = np.random.default_rng(3).standard_normal((64, 30_000))
    for name, axes in itertools.product(("FLOAT32", "FLOAT64"), ((0,), (1,), (0, 1))):
        given = x.astype(numpy_type(name))
        found = []
        for threads in (1, 2, 8):
            with specops.num_threads(threads):
                found.append(run(name, "log_sum_exp", given, axes))
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("name", "function"), [("FLOAT32", "sum"), ("FLOAT32", "max"), ("UINT8", "max")]
)
def test_between_forbidden_pages(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing beyond the elements is read or written: that would end the process."""
    arena, results = Arena(), Arena()
    dtype = numpy_type(name)
    for near in ("NEAR_BYTES", "NARROW_NEAR_BYTES"):
        monkeypatch.setattr(lowering, near, 0)
    lengths = *range(1, 14), 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 300, 511, 513
    for n, groups in itertools.product(lengths, (1, 3, 8, 70)):
        for axes, gap, upper in itertools.product(((1,), (0,), (0, 1)), (0, 64), (False, True)):
            shape: tuple[int, ...] = (groups, n)
            x = arena.place(shape, (n * dtype.itemsize + gap, dtype.itemsize), dtype, upper)
            left = reduced_shape(shape, axes, True)
            out = results.place(left, (left[1] * dtype.itemsize, dtype.itemsize), dtype, upper)
            assert x is not None and out is not None
            x[...] = 1
            operator(name, function, shape, axes, "propagates")(x, out)
            assert (out == (x.size // out.size if function == "sum" else 1)).all()
            assert results.surroundings_kept(out)
    monkeypatch.setattr(planes, "CUT_BYTES", 256)
    columns = [(shape, (1,)) for shape in PLANES + LONG_PLANES]
    for (shape, axes), gap, upper in itertools.product(columns + RUNS, (0, 64), (False, True)):
        steps = [s * dtype.itemsize for s in packed_strides((*shape[:-1], shape[-1] + gap))]
        x = arena.place(shape, steps, dtype, upper)
        assert x is not None
        out = results.place_packed(reduced_shape(shape, axes, True), dtype, upper)
        x[...] = 1
        operator(name, function, shape, axes, "propagates")(x, out)
        assert (out == (x.size // out.size if function == "sum" else 1)).all()
        assert results.surroundings_kept(out)


@pytest.mark.parametrize(("name", "function"), [("FLOAT32", "sum"), ("FLOAT16", "max")])
def test_states_before_a_forbidden_page(
    name: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing behind the states of parts is read or written."""
    arena = Arena()

    def empty(size: int, dtype: type[np.uint8]) -> np.ndarray:
        return arena.place_packed((size,), np.dtype(dtype), True)

    monkeypatch.setattr(machine, "PART_BYTES", 48)
    for shape, axes in (((1, 3000), (1,)), ((3, 3000), (1,)), ((3000, 17), (0,)), ((300, 1), (0,))):
        kernel = operator(name, function, shape, axes, "propagates")
        x = np.ones(shape, numpy_type(name))
        out = np.zeros(reduced_shape(shape, axes, True), x.dtype)
        kernel(x, out)  # makes the plan
        with monkeypatch.context() as patch:
            patch.setattr(np, "empty", empty)
            kernel(x, out)
        assert (out == (x.size // out.size if function == "sum" else 1)).all()


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16", "UINT8", "INT64"])
def test_elements_apart(name: str) -> None:
    """Every element, every second, to every fifth: those are read, and nothing behind the last, where a page ends."""
    arena, random, dtype = Arena(), np.random.default_rng(6), numpy_type(name)
    for n, apart in itertools.product((7, 8, 9, 15, 16, 17, 64, 65, 129, 300), range(1, 6)):
        step = apart * dtype.itemsize
        x = arena.place((3, n), (n * step, step), dtype, True)
        assert x is not None
        x[...] = random.integers(0, 99, x.shape)
        for function, axis in itertools.product(("max", "min", "sum"), (0, 1)):
            if function in OF_TYPE[name]:
                wanted = getattr(x.astype(np.int64), function)(axis).astype(dtype)
                assert np.array_equal(run(name, function, x, (axis,)), wanted), f"{n} {apart}"


@pytest.mark.parametrize(
    ("kept", "lanes"),
    [
        ([(4096, 4000), (333, 12)], (333, 12)),  # the nearest of two long ones
        ([(4096, 4000), (20, 12)], (4096, 4000)),
        ([(20, 4000), (20, 12)], None),
    ],
)
def test_the_axis_of_vectors(kept: list[tuple[int, int]], lanes: tuple[int, int] | None) -> None:
    """Vectors lie along the nearest long kept axis where groups are short: (size, bytes apart) of groups of 3."""
    kernel = operator("FLOAT32", "sum", (8, 3), (1,), "propagates")
    axes = [Axis(n, step, 4) for n, step in kept]
    across = kernel._lanes_across(axes, [Axis(3, 4, 0)])
    assert (across[-1][:2] if across else None) == lanes


def test_far_axes_of_long_groups() -> None:
    """Groups of more than a few elements keep their vectors, rather than have them along a far axis."""
    kernel = operator("FLOAT32", "log_sum_exp", (8, 48), (1,), "propagates")
    far, near = Axis(64, 12288, 4), Axis(60, 192, 4)
    group = [Axis(48, 4, 0)]
    assert not kernel._lanes_across([far, near], group)
    assert kernel._lanes_across([far, Axis(64, 192, 4)], group)


@pytest.mark.parametrize(("channels", "several"), [(3, 100), (15, 100), (16, 1)])
def test_columns_that_adjoin_in_the_input_only(channels: int, several: int) -> None:
    """Narrow ones are folded together."""
    kernel = operator("FLOAT32", "sum", (2, 8, 100, channels), (1,), "propagates")
    kept = [Axis(100, 4 * channels, 4), Axis(channels, 4, 400)]
    assert kernel._columns(kept, [Axis(8, 400 * channels, 0)]).several == several


def test_rows_with_gaps_are_not_taken_as_one() -> None:
    """Rows of columns, and those of groups beside each other, are taken as one where they adjoin, and not too long."""
    random = np.random.default_rng(8)
    for shape in ((3, 4, 6, 5), (2, 3, 60, 100)):
        x = random.integers(0, 9, shape).astype(np.float32)
        for given in (x, x[:, :, :-1]):
            sums = run("FLOAT32", "sum", given, (0, 2))
            np.testing.assert_array_equal(sums, given.sum((0, 2)))
        # Its rows lie as far apart as if its columns adjoined.
        repeated = np.broadcast_to(x[0, 0, :, :1], shape[2:])
        sums = run("FLOAT32", "sum", repeated, (0,))
        np.testing.assert_array_equal(sums, repeated.sum(0))


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout."""
    for function, kind in itertools.product(("sum", "log_sum_exp"), INPUT_LAYOUTS):
        x = of_8_mebibytes(kind, np.dtype(np.float32))
        for axes in SETS[1:]:
            kernel = operator("FLOAT32", function, x.shape, axes, "propagates", False)
            out = np.zeros(reduced_shape(x.shape, axes, False), x.dtype)
            yield f"{function} {kind} {axes}", partial(kernel, x, out)
