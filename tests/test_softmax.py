"""The contract of softmax and its logarithm: accuracy for each type, shape and layout, against the oracle.

Every random case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    MEMORY_LAYOUTS,
    PLANES,
    WIDE_EDGES,
    Call,
    case,
    laid_out,
    last_item_first,
    layout,
    noted,
    numpy_type,
    of_8_mebibytes,
    output,
    planes_cut,
    random_axes,
    random_shape,
    scaled,
    small_planes,
    values,
)
from oracle import softmax, wide
from softmax_oracle import check_close, greatest, ulp

import specops
from specops.kernels import softmax as softmax_kernel
from specops.lowering import machine, planes
from specops.lowering import softmax as lowering
from specops.lowering.axes import Axis
from specops.lowering.softmax import Softmax
from specops.tensor import packed
from stress.memory import Arena

TYPES = ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"]
RESULTS = ["probability", "logarithm"]
CASES = 600  # for each type
BATCH = 200
SETS = [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]  # of axes of a rank of 3


def operator(name: str, shape: tuple[int, ...], axes: Any, result: str) -> Softmax:
    return Softmax(
        axes=axes,
        result=result,
        nan="propagates",
        input=packed(name, shape),
        output=packed(name, shape),
    )


def run(name: str, x: np.ndarray, axes: Any, result: str) -> np.ndarray:
    out = np.full_like(x, 7)
    operator(name, x.shape, axes, result)(x, out)
    return out


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def test_ulp() -> None:
    """The bounds rest on it: by literals, and as NumPy has it."""
    assert ulp("BFLOAT16", np.array([1, 255.0, 256, 0])).tolist() == [2**-7, 1, 2, 2.0**-133]
    for name in ("FLOAT16", "FLOAT32", "FLOAT64"):
        dtype = numpy_type(name)
        info = np.finfo(dtype)
        x = np.array([0, 1, 0.999, 3, 1e-7, info.tiny, info.tiny / 2, info.max / 2], dtype)
        assert np.array_equal(ulp(name, x.astype(np.longdouble)), np.spacing(x))


# --- random cases ---


def check_case(name: str, number: int, group: int = 0) -> None:
    random = np.random.default_rng([TYPES.index(name), number, group])
    shape = random_shape(random, 8 if number % 4 else 3, 0)
    axes = random_axes(random, len(shape))
    kind = str(random.choice(INPUT_LAYOUTS))
    x, buffer = laid_out(random, scaled(random, name, shape), kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    given_axes = [axes, list(axes)][random.integers(2)]
    out = output(random, shape, x.dtype)
    result = RESULTS[random.integers(2)]
    text = (
        f"check_case({name!r}, {number}, {group}): {kind} {shape} {x.strides} to {out.kind} {out.array.strides}, "
        f"axes {axes}, {result}"
    )
    with case(text, buffer):
        operator(name, shape, given_axes, result)(x, out.array)
        check_close(name, x, axes, result, out.array)
        out.check_surroundings()


@pytest.mark.parametrize("batch", range(CASES // BATCH))
@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str, batch: int) -> None:
    """Random shapes, axes, layouts and values give what the oracle gives, as near as the type allows."""
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        check_case(name, number)


@pytest.mark.parametrize("name", TYPES)
def test_parts_and_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into parts, blocks and tiles of a few elements, over threads, past the cache, small cases give the same."""
    monkeypatch.setattr(lowering, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PAST_BYTES", 0)
    monkeypatch.setattr(lowering, "PAST_RUN_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    monkeypatch.setattr(lowering, "TILE_BYTES", 256)
    monkeypatch.setattr(lowering, "PAST_TILE_BYTES", 256)
    monkeypatch.setattr(lowering, "LEAST_TILE_BYTES", 128)
    monkeypatch.setattr(lowering, "SCRATCH_BYTES", 1024)
    monkeypatch.setattr(lowering, "BLOCK_BYTES", 256)
    monkeypatch.setattr(lowering, "BLOCK_ROWS", 3)
    monkeypatch.setattr(lowering, "LEAST_ROWS", 1)
    monkeypatch.setattr(lowering, "LEAST_RUNS", 1)
    monkeypatch.setattr(lowering, "RUNS_OF_SQUARE", 0)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    monkeypatch.setattr(planes, "FEW_ROWS", 0)
    for number in range(300):
        if number == 150:
            last_item_first(monkeypatch)
        check_case(name, number, 1)


@pytest.mark.parametrize("name", TYPES)
def test_narrow_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as many of which as a vector has lanes are transposed: of each length, whatever number is left over.

    A row's result is the same whatever rows are beside it, also where it is written over it.
    """
    taken = noted(monkeypatch, lowering, "_NARROW")
    random = np.random.default_rng(TYPES.index(name))
    narrowest, widest = softmax_kernel.NARROW[name]
    calls = 0
    for n, result in itertools.product(range(narrowest, widest + 1), RESULTS):
        x = scaled(random, name, (32 + n % 17, n + 1))
        for given in (x[:, 1:].copy(), x[::-1, 1:]):
            out = output(random, given.shape, x.dtype, "c")
            operator(name, given.shape, (1,), result)(given, out.array)
            check_close(name, given, (1,), result, out.array)
            out.check_surroundings()
            copy = given.copy()
            some = copy[: 16 + n % 15]
            operator(name, some.shape, (1,), result)(some, some)
            assert np.array_equal(bits(some), bits(out.array[: len(some)].copy()))
            assert np.array_equal(bits(copy[len(some) :]), bits(given[len(some) :].copy()))
            calls += 2
    assert len(taken) == calls


@pytest.mark.parametrize("name", TYPES)
def test_narrow_rows_of_several_runs(name: str) -> None:
    """Runs of fewer rows than a vector has lanes, and of more, between which there are gaps in both arrays."""
    random = np.random.default_rng(TYPES.index(name))
    _, widest = softmax_kernel.NARROW[name]
    for n, run, result in itertools.product((2, 5, widest), (1, 3, 15, 17, 40), RESULTS):
        x = scaled(random, name, (3, 5, run + 1, n + 2))[:, :, 1:, :n]
        buffer = np.full((3, 5, run + 2, n + 3), 77, x.dtype)
        out = buffer[..., :run, 2 : n + 2]
        operator(name, x.shape, (3,), result)(x, out)
        check_close(name, x, (3,), result, out)
        out[...] = 77
        assert (buffer == 77).all()


@pytest.mark.parametrize(("name", "bound"), [("FLOAT32", 8), ("FLOAT64", 4)])
def test_logarithms_of_nearly_1(name: str, bound: int) -> None:
    """Of narrow rows: what the sum has beside 1 is not lost in it; in units in the last place."""
    dtype = numpy_type(name)
    narrowest, widest = softmax_kernel.NARROW[name]
    random = np.random.default_rng(widest)
    for n in range(narrowest, widest + 1):
        x = random.uniform(-30, -15, (40, n)).astype(dtype)
        x[np.arange(40), random.integers(0, n, 40)] = 0
        out = np.empty_like(x)
        operator(name, x.shape, (1,), "logarithm")(x, out)
        beside = np.exp(np.where(x == 0, -INF, x).astype(np.float64)).sum(1)
        wanted = -np.log1p(beside)
        found = out.max(1).astype(np.float64)
        assert (np.abs(found - wanted) <= bound * np.spacing(np.abs(wanted).astype(dtype))).all(), n


@pytest.mark.parametrize("name", TYPES)
def test_small_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of planes of few elements, or of few rows, to outputs of any layout."""
    monkeypatch.setattr(lowering, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)  # planes have none
    taken = noted(monkeypatch, lowering, "_PLANES")
    calls = noted(monkeypatch, planes, "cut_planes")
    random = np.random.default_rng(TYPES.index(name))
    monkeypatch.setattr(planes, "CUT_BYTES", 256)
    for like in small_planes(random, name, PLANES + LONG_PLANES):
        for result, kind in itertools.product(RESULTS, LAYOUTS):
            like[...] = scaled(random, name, like.shape)
            out = output(random, like.shape, like.dtype, kind)
            operator(name, like.shape, (1,), result)(like, out.array)
            check_close(name, like, (1,), result, out.array)
            out.check_surroundings()
    assert len(taken) >= 130 and planes_cut(calls) >= 10


RUNS = [  # shapes and axes of groups of many short runs: of few elements to several vectors, of few groups and of many
    ((17, 70, 7), (0, 2)),
    ((16, 3, 130, 15), (0, 3)),
    ((4, 5, 4, 2, 63), (0, 2, 4)),
    ((40, 4, 129), (0, 2)),
    ((16, 30, 2), (0, 2)),
    ((21, 33, 5), (0, 2)),
    ((18, 66, 16), (0, 2)),
    ((3, 7, 9, 31), (0, 1, 3)),
    ((40, 4, 64), (0, 2)),
    ((5, 9, 2, 33), (0, 1, 3)),
    ((40, 4, 17), (0, 2)),
    ((19, 3, 16), (0, 2)),
]


@pytest.mark.parametrize("name", TYPES)
def test_short_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs of many groups or few, as columns where they adjoin, and with gaps between them."""
    monkeypatch.setattr(lowering, "LARGE_BYTES", 0)
    taken = cut = 0
    random = np.random.default_rng(TYPES.index(name))
    for number, ((shape, axes), kind) in enumerate(itertools.product(RUNS, LAYOUTS)):
        monkeypatch.setattr(lowering, "LEAST_RUNS", (16, 2)[number % 2])
        monkeypatch.setattr(lowering, "RUNS_OF_SQUARE", (1 / 3, 0)[number % 2])
        monkeypatch.setattr(machine, "PART_BYTES", (1 << 18, 48)[number // len(LAYOUTS) % 2])
        monkeypatch.setattr(lowering, "TILE_BYTES", (4096, 256)[number % 3 == 0])
        monkeypatch.setattr(lowering, "SCRATCH_BYTES", (1 << 18, 1024)[number % 3 == 0])
        monkeypatch.setattr(machine, "PAST_BYTES", (1 << 24, 0)[number % 5 == 0])
        monkeypatch.setattr(lowering, "PAST_RUN_BYTES", (1 << 11, 0)[number % 5 == 0])
        within = scaled(random, name, (*shape[:-1], shape[-1] + 2))[..., 1:-1]
        x = np.ascontiguousarray(within)
        for given, result in itertools.product((x, x[::-1], within), RESULTS):
            out = output(random, shape, x.dtype, kind)
            kernel = operator(name, shape, axes, result)
            kernel(given, out.array)
            check_close(name, given, axes, result, out.array)
            out.check_surroundings()
            plan = kernel._plans[given.strides, out.array.strides]
            runs = plan.walk.block[softmax_kernel.RUN] > 1
            taken += runs
            cut += runs and plan.parts > 1
        backward = np.zeros_like(x)[..., ::-1]
        operator(name, shape, axes, "probability")(x, backward)
        check_close(name, x, axes, "probability", backward)
    assert taken >= 20 and cut >= 10


@pytest.mark.parametrize("name", TYPES)
def test_columns_do_not_depend_on_each_other(name: str) -> None:
    """A column's bits are the same wherever the array begins in memory, and whatever is beside it."""
    kind = packed(name, (1,)).numpy_dtype
    x = np.random.default_rng(5).standard_normal((200, 100)).astype(kind)
    first = run(name, x, (0,), "probability")
    for shift in (16, 32, 48):
        memory = np.zeros(x.nbytes + 128, np.uint8)
        begin = -memory.ctypes.data % 64 + shift
        moved = memory[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape)
        moved[...] = x
        assert run(name, moved, (0,), "probability").tobytes() == first.tobytes()
    other = x.copy()
    other[0, 50] = 9
    found = run(name, other, (0,), "probability")
    assert (bits(found) != bits(first)).any(0).nonzero()[0].tolist() == [50]


# --- accuracy ---


def worst_errors(name: str, x: np.ndarray, axis: int) -> tuple[float, float]:
    """The greatest relative error of probabilities, beyond half an ulp in 16 bits; and of logarithms, in ulp of
    max(1, |exact|) of float32 (float64), beyond half an ulp in 16 bits."""
    exact = softmax(x, (axis,))
    error = np.abs(wide(run(name, x, (axis,), "probability")) - exact)
    exact_log = softmax(x, (axis,), True)
    error_log = np.abs(wide(run(name, x, (axis,), "logarithm")) - exact_log)
    if name in ("FLOAT16", "BFLOAT16"):
        error = np.maximum(error - ulp(name, exact) / 2, 0)
        error_log = np.maximum(error_log - ulp(name, exact_log) / 2, 0)
    computed = "FLOAT64" if name == "FLOAT64" else "FLOAT32"
    unit = ulp(computed, np.maximum(1, np.abs(exact_log)))
    return float((error / exact).max()), float((error_log / unit).max())


ROWS = [2, 3, 10, 100, 1000, 32_000, 1_000_000]


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("name", TYPES)
def test_normal_inputs(name: str, n: int) -> None:
    """Standard normal inputs, as rows and as columns: no bound of the text above, but plain numbers.

    Logarithms: t and log(sum) are at most the magnitude of the result, so their roundings and the result's are at most
    half an ulp each; the sum's error, 1e-6 at most and ten times less as a rule, adds half an ulp of a result near 1.
    """
    random = np.random.default_rng(n)
    groups = max(1, min(100, 64_000 // n))
    rows = random.standard_normal((groups, n)).astype(numpy_type(name))
    limit = 4e-15 if name == "FLOAT64" else 1e-6 if n <= 32_000 else 1.5e-6
    for x, axis in ((rows, 1), (np.ascontiguousarray(rows.T), 0)):
        error, error_log = worst_errors(name, x, axis)
        assert error <= limit
        assert error_log <= 2


@pytest.mark.parametrize("scale", [10, 100])
@pytest.mark.parametrize("name", TYPES)
def test_wide_inputs(name: str, scale: int) -> None:
    """Inputs far apart: the bounds of the text above, of which the rounding of x - top is the most."""
    random = np.random.default_rng(scale)
    for shape in ((200, 10), (60, 1000), (2, 32_000)):
        x = (random.standard_normal(shape) * scale).astype(numpy_type(name))
        for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            for result in RESULTS:
                check_close(name, given, (axis,), result, run(name, given, (axis,), result))


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT64"])
def test_sums_are_1(name: str) -> None:
    """The probabilities of a group add up to 1."""
    random = np.random.default_rng(1)
    limit = 1e-6 if name == "FLOAT32" else 4e-15
    for n, scale in itertools.product((1, 2, 17, 1000, 100_003), (1, 10, 100)):
        x = (random.standard_normal((3, n)) * scale).astype(numpy_type(name))
        for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            out = run(name, given, (axis,), "probability").astype(np.float64)
            for group in np.moveaxis(out, axis, 1).tolist():
                assert abs(math.fsum(group) - 1) <= limit


@pytest.mark.parametrize("shape", [(2**16,), (2**16, 8), (8, 2**16)], ids=str)
def test_equal_elements_add_up(shape: tuple[int, ...]) -> None:
    """Rounding goes the same way in each addition of equal numbers: a sum that does not carry it along is wrong."""
    axis = 1 if shape[0] == 8 else 0
    for number in (-0.1, -0.35667494, -1.3):
        x = np.full(shape, number, np.float32)
        np.moveaxis(x, axis, 0)[0] = 0
        power = np.exp(np.float64(np.float32(number)))
        exact = power / (1 + (shape[axis] - 1) * power)
        last = np.moveaxis(specops.softmax(x, axis), axis, 0)[-1]
        np.testing.assert_allclose(last.astype(np.float64), exact, rtol=8e-7)


@pytest.mark.parametrize("name", TYPES)
def test_every_depth_below_the_top(name: str) -> None:
    """exp over its whole range, down through the subnormal numbers to 0, in small steps."""
    depth = 760 if name == "FLOAT64" else 110
    below = -np.linspace(0, depth, 40_001).astype(numpy_type(name))
    rows = np.stack([np.zeros_like(below), below], axis=1)
    for x, axis in ((rows, 1), (np.ascontiguousarray(rows.T), 0), (below[None], 1)):
        for result in RESULTS:
            check_close(name, x, (axis,), result, run(name, x, (axis,), result))


HALVES = np.arange(1 << 16, dtype=np.uint16)


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16"])
def test_all_16_bit_numbers(name: str) -> None:
    """Each of the 65,536 patterns beside 0, in every position of a vector."""
    x = np.zeros((1 << 16, 2), np.uint16)
    x[:, 1] = HALVES
    x = x.view(numpy_type(name))
    for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        for result in RESULTS:
            check_close(name, given, (axis,), result, run(name, given, (axis,), result))


# --- what is easily wrong ---

NAN, INF = float("nan"), float("inf")
LITERALS: list[tuple[list[float], list[float], list[float]]] = [  # group, probabilities, logarithms
    ([0, -200], [1, 1.383896526736737e-87], [-1.383896526736737e-87, -200]),
    ([1000, 1000], [0.5, 0.5], [-0.6931471805599453] * 2),
    ([-1000, -1000], [0.5, 0.5], [-0.6931471805599453] * 2),
    ([65504, 65504, -65504], [0.5, 0.5, 0], [-0.6931471805599453] * 2 + [-131008.6931471806]),
    ([7], [1], [0]),
    ([-0.0], [1], [0]),
    ([-INF, 3], [0, 1], [-INF, 0]),
    ([-INF, -INF], [NAN, NAN], [NAN, NAN]),
    ([-INF], [NAN], [NAN]),
    ([INF, 3], [NAN, NAN], [NAN, NAN]),
    ([INF], [NAN], [NAN]),
    ([NAN, 3, -INF], [NAN] * 3, [NAN] * 3),
    ([-INF, 1, -NAN], [NAN] * 3, [NAN] * 3),
    ([0, 0, 0, 0], [0.25] * 4, [-1.3862943611198906] * 4),
    ([0, 1], [0.2689414213699951, 0.7310585786300049], [-1.3132616875182228, -0.3132616875182228]),
]


@pytest.mark.parametrize(("group", "probability", "logarithm"), LITERALS, ids=str)
@pytest.mark.parametrize("name", TYPES)
def test_literals(
    name: str, group: list[float], probability: list[float], logarithm: list[float]
) -> None:
    """A short group by literals: as rows and as columns, few and many."""
    dtype = numpy_type(name)
    exponent, mantissa = FLOATS[name]
    relative = 1e-6 + 2.0 ** -(mantissa + 1) if mantissa < 52 else 4e-15
    tiny = 2.0 ** (3 - (1 << (exponent - 1)) - mantissa)  # the least subnormal number
    for result, wanted in zip(RESULTS, (probability, logarithm), strict=True):
        if result == "logarithm":
            tiny = max(tiny, 2e-87)  # what 1 + exp(-200) has beyond 1 is kept or lost
        for width in (1, 3, 70):
            with np.errstate(over="ignore"):
                expected = np.tile(np.array(wanted, np.float64), (width, 1))
                expected[np.abs(expected) > greatest(name)] *= INF
            rows = np.tile(np.array(group, dtype), (width, 1))
            found = run(name, rows, (1,), result).astype(np.float64)
            np.testing.assert_allclose(found, expected, relative, tiny)
            columns = np.ascontiguousarray(rows.T)
            found = run(name, columns, (0,), result).astype(np.float64)
            np.testing.assert_allclose(found, expected.T, relative, tiny)
            if INF not in np.abs(wanted) and 0 in wanted:  # exactly
                assert (found[expected.T == 0] == 0).all()


@pytest.mark.parametrize("name", TYPES)
def test_the_logarithm_is_none_of_an_underflow(name: str) -> None:
    """[0, -200] gives 0 and -200 exactly, where the probability is 0 in most types."""
    for n in (2, 5, 70):
        x = np.full((n, n), -200, numpy_type(name))
        np.fill_diagonal(x, 0)
        for axis in (0, 1):
            out = run(name, x, (axis,), "logarithm")
            # In float64 the logarithm of the greatest is -exp(-200) * (n - 1): anything so small will do.
            assert np.array_equal(np.where(np.abs(out) < 1e-84, 0, out), x)


@pytest.mark.parametrize("name", TYPES)
def test_no_axes(name: str) -> None:
    """Each element is its own group: 1 and 0, NaN for NaN and infinities."""
    x = np.array([[1, -0.0, 3e4, -3e4], [NAN, -NAN, INF, -INF]], numpy_type(name))
    for result, number in zip(RESULTS, (1, 0), strict=True):
        out = run(name, x, (), result)
        assert (out[0] == number).all() and np.isnan(out[1].astype(np.float32)).all()
        assert run(name, np.array(5, x.dtype), (), result) == number
        long = values(np.random.default_rng(3), name, (3, 1, 2_001))
        check_close(name, long, (), result, run(name, long, (), result))


@pytest.mark.parametrize("name", TYPES)
def test_huge_numbers(name: str) -> None:
    """At the ends of the type's range nothing overflows on the way."""
    top = greatest(name)
    x = np.array([[top, top, -top], [top, top / 2, 0], [-top, -top, -top], [0, top, -top]])
    x = x.astype(numpy_type(name))
    for given, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        expected = np.array([[0.5, 0.5, 0], [1, 0, 0], [1 / 3] * 3, [0, 1, 0]])
        found = run(name, given, (axis,), "probability").astype(np.float64)
        relative = 1e-6 + 2.0 ** -(FLOATS[name][1] + 1)
        np.testing.assert_allclose(found, expected if axis else expected.T, relative)
        check_close(name, given, (axis,), "logarithm", run(name, given, (axis,), "logarithm"))


@pytest.mark.parametrize("length", WIDE_EDGES)
@pytest.mark.parametrize("name", TYPES)
def test_every_element_counts(name: str, length: int) -> None:
    """One element outweighs the others, at, before and after the edge of a vector, block or tile; or they are equal."""
    places = sorted({p for e in (*EDGES, length, 0) for p in (e - 1, e) if 0 <= p < length})
    rows = np.full((len(places) + 1, length), -200, numpy_type(name))
    rows[np.arange(len(places)), places] = 3
    rows[-1] = 0
    expected = (rows == 3).astype(np.float64)
    expected[-1] = 1 / length
    relative = 1e-6 + 2.0 ** -(FLOATS[name][1] + 1)
    columns = np.ascontiguousarray(rows.T)
    for given, axis, wanted in (
        (rows, 1, expected),
        (rows[:, ::-1], 1, expected[:, ::-1]),
        (columns, 0, expected.T),
        (columns[:, ::-1], 0, expected.T[:, ::-1]),
    ):
        found = run(name, given, (axis,), "probability").astype(np.float64)
        np.testing.assert_allclose(found, wanted, relative, 1e-80)


@pytest.mark.parametrize("columns", EDGES)
@pytest.mark.parametrize("name", TYPES)
def test_each_column_is_its_own(name: str, columns: int) -> None:
    """As many columns as fill a vector or a tile, one less, one more; NaN and infinities stay in theirs."""
    random = np.random.default_rng(columns)
    x = random.standard_normal((6, columns)).astype(numpy_type(name))
    x[random.integers(6, size=5), random.integers(columns, size=5)] = [NAN, INF, -INF, -NAN, -INF]
    x[:, random.integers(columns)] = -INF
    for result in RESULTS:
        check_close(name, x, (0,), result, run(name, x, (0,), result))
        rows = np.ascontiguousarray(x.T)
        check_close(name, rows, (1,), result, run(name, rows, (1,), result))


@pytest.mark.parametrize("name", TYPES)
def test_axes_in_any_order(name: str) -> None:
    """Lists, tuples and ranges in any order, rank above 8."""
    x = np.random.default_rng(1).standard_normal((4, 5, 6, 3)).astype(numpy_type(name))
    for result in RESULTS:
        for axes in itertools.permutations(range(1, 4)):
            for several in (list(axes), tuple(axes), range(1, 4)):
                check_close(name, x, axes, result, run(name, x, several, result))
    deep = np.random.default_rng(2).standard_normal((2,) * 14).astype(numpy_type(name))
    for some in (range(0, 14, 2), range(7), range(7, 14), range(14)):
        check_close(name, deep, tuple(some), "probability", run(name, deep, some, "probability"))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4), (0, 0)], ids=str)
def test_no_elements(name: str, shape: tuple[int, ...]) -> None:
    """Nothing is read or written, whatever the axes."""
    random = np.random.default_rng(1)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            out = output(random, shape, numpy_type(name), "c")
            x = np.zeros(shape, numpy_type(name))
            operator(name, shape, axes, "probability")(x, out.array)
            out.check_surroundings()


# --- layouts ---


@pytest.mark.parametrize("name", TYPES)
def test_each_pair_of_layouts(name: str) -> None:
    """Every input layout with every output layout; one operator serves them all."""
    random = np.random.default_rng(7)
    shape = (5, 6, 17)
    for axes, result in itertools.product(SETS, RESULTS):
        kernel = operator(name, shape, axes, result)
        for kind, out_kind in itertools.product(INPUT_LAYOUTS, LAYOUTS):
            x, _ = laid_out(random, random.standard_normal(shape).astype(numpy_type(name)), kind)
            out = output(random, shape, x.dtype, out_kind)
            kernel(x, out.array)
            try:
                check_close(name, x, axes, result, out.array)
                out.check_surroundings()
            except AssertionError as error:
                text = f"{kind} to {out_kind}, axes {axes}, {result}"
                raise AssertionError(f"{text}: {error}") from error


@pytest.mark.parametrize("name", TYPES)
def test_field_of_a_structured_array(name: str) -> None:
    """Fields of packed records on both sides: the other fields stay."""
    random = np.random.default_rng(1)
    dtype = numpy_type(name)
    fields = [("before", "u1"), ("x", f"V{dtype.itemsize}"), ("after", "u2")]
    records, results = np.zeros((9, 70), fields), np.zeros((9, 70), fields)
    results["before"], results["after"] = 3, 517
    x, out = records["x"].view(dtype), results["x"].view(dtype)
    x[...] = random.standard_normal(x.shape)
    for axes, result in itertools.product(SETS[:3], RESULTS):
        operator(name, x.shape, axes, result)(x, out)
        check_close(name, x, axes, result, out)
        assert (results["before"] == 3).all() and (results["after"] == 517).all()


# --- threads ---

LARGE = [  # shape, axes
    ((500_001,), (0,)),  # one long row
    ((5, 100_001), (1,)),
    ((300, 2_001), (0,)),  # wide columns
    ((15_001, 40), (0,)),  # few columns, many rows
    ((150_001, 3), (0,)),
    ((9_011, 33), (1,)),  # many short rows
    ((20_011, 5), (1,)),
    ((7, 500, 129), (1,)),  # an axis in the middle
    ((16, 128, 129), (0, 2)),
    ((16, 128, 129), (0, 1, 2)),
    ((70, 1_000), ()),
]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
def test_large(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Arrays that are split over threads: right, and the same bits on one thread, on two and on all."""
    random = np.random.default_rng(math.prod(shape))
    dtype = numpy_type(name)
    for number, result in enumerate(RESULTS):
        kind = INPUT_LAYOUTS[(LARGE.index((shape, axes)) + 4 * number) % len(INPUT_LAYOUTS)]
        x, _ = laid_out(random, random.standard_normal(shape).astype(dtype), kind)
        kernel = operator(name, shape, axes, result)
        for out_kind in ("c", "any"):
            outs = []
            for threads in (1, 2, 8):
                out = output(np.random.default_rng(1), shape, dtype, out_kind)
                with specops.num_threads(threads):
                    kernel(x, out.array)
                out.check_surroundings()
                outs.append(bits(out.array))
            check_close(name, x, axes, result, outs[0].view(dtype))
            for several in outs[1:]:
                assert np.array_equal(outs[0], several), f"{kind} to {out_kind}: threads matter"


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("shape", "axes"), LARGE[:5], ids=str)
def test_large_with_special_numbers(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """A split group: -inf in whole parts of it counts nothing; one NaN or +inf anywhere makes it NaN."""
    random = np.random.default_rng(1)
    x = random.standard_normal(shape).astype(numpy_type(name))
    (axis,) = axes
    half = [slice(None)] * len(shape)
    half[axis] = slice(shape[axis] // 3, None)
    x[tuple(half)] = -INF
    for result in RESULTS:
        check_close(name, x, axes, result, run(name, x, axes, result))
        for number in (NAN, INF):
            y = x.copy()
            y.flat[random.integers(y.size)] = number
            check_close(name, y, axes, result, run(name, y, axes, result))
        y = np.full_like(x, -INF)
        assert np.isnan(run(name, y, axes, result).astype(np.float32)).all()


def test_many_threads_at_once() -> None:
    """One operator called from many threads, each with layouts of its own."""
    shape, axes = (40, 30, 50), (0, 2)
    kernel = operator("FLOAT32", shape, axes, "probability")
    random = np.random.default_rng(5)
    inputs = []
    for i in range(36):
        x = random.standard_normal(shape).astype(np.float32)
        inputs.append(laid_out(random, x, INPUT_LAYOUTS[i % len(INPUT_LAYOUTS)])[0])

    def repeat(i: int) -> bool:
        mine = np.random.default_rng(i)
        for _ in range(10):
            out = output(mine, shape, inputs[i].dtype)
            kernel(inputs[i], out.array)
            out.check_surroundings()
            check_close("FLOAT32", inputs[i], axes, "probability", out.array)
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(repeat, range(len(inputs))))


# --- memory ---


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_between_forbidden_pages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing beyond the elements is read or written: that would end the process."""
    arena, results, dtype = Arena(), Arena(), numpy_type(name)
    lengths = 1, 3, 15, 17, 32, 33, 63, 300, 541, 1025, 1039
    for n, groups in itertools.product(lengths, (1, 3, 9, 70)):
        for axis, apart, gap, upper in itertools.product((0, 1), (1, 2), (0, 64), (False, True)):
            step = apart * dtype.itemsize
            x = arena.place((groups, n), (n * step + gap, step), dtype, upper)
            out = results.place((groups, n), (n * step + gap, step), dtype, upper)
            assert x is not None and out is not None
            x[...] = 1
            specops.softmax(x, axis=axis, out=out)
            np.testing.assert_allclose(out.astype(np.float64), 1 / x.shape[axis], rtol=1e-3)
            assert results.surroundings_kept(out)
    monkeypatch.setattr(planes, "CUT_BYTES", 256)
    columns = [(shape, (1,)) for shape in PLANES + LONG_PLANES]
    for (shape, axes), upper in itertools.product(columns + RUNS, (False, True)):
        x, out = (place.place_packed(shape, dtype, upper) for place in (arena, results))
        x[...] = 1
        specops.softmax(x, axis=axes, out=out)
        group = math.prod(shape[d] for d in axes)
        np.testing.assert_allclose(out.astype(np.float64), 1 / group, rtol=1e-3)
        assert results.surroundings_kept(out)


@pytest.mark.parametrize(
    ("kept", "reduced", "across"),
    [  # sizes, then steps in elements
        ((4096, 1000), (1000, 1), False),
        ((1000, 1), (4096, 1000), True),
        ((4096, 2000), (1000, 2), False),  # picked out of vectors
        ((1000, 2), (4096, 2000), True),
        ((512, 32768), (512, 64), False),  # the nearer ones
        ((512, 64), (512, 32768), True),
        ((2048, 160), (20, 8), True),  # short groups
        ((4096, 3), (3, 1), True),  # idle lanes
        ((3, 1), (4096, 3), True),  # none, as several rows are taken as one
        ((3, 1), (4096, 100), False),
    ],
)
def test_the_axis_of_vectors(kept: tuple[int, int], reduced: tuple[int, int], across: bool) -> None:
    """Vectors lie along the axis whose elements are loaded soonest."""
    kernel = operator("FLOAT32", (8, 8), (1,), "probability")
    axes = [[Axis(n, 4 * step, 4 * step)] for n, step in (kept, reduced)]
    assert kernel._lanes_across(*axes) == across


@pytest.mark.parametrize("name", TYPES)
def test_elements_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element, every second, to every fifth, of either array, whichever axis the vectors lie along."""
    arena, results, random = Arena(), Arena(), np.random.default_rng(6)
    dtype = numpy_type(name)

    def place(arena: Arena, n: int, apart: int) -> np.ndarray:
        step = apart * dtype.itemsize
        x = arena.place((3, n), (n * step, step), dtype, True)
        assert x is not None
        return x

    for cost, n in itertools.product((0, 1e9), (7, 8, 9, 15, 16, 17, 33, 129)):
        monkeypatch.setattr(lowering, "GROUP_COST", cost)
        for apart, out_apart in itertools.product(range(1, 6), (1, 2)):
            x, out = place(arena, n, apart), place(results, n, out_apart)
            x[...] = random.standard_normal(x.shape)
            for axis, result in itertools.product((0, 1), RESULTS):
                operator(name, x.shape, (axis,), result)(x, out)
                check_close(name, x, (axis,), result, out)


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout."""
    for name, kind in itertools.product(TYPES, MEMORY_LAYOUTS):
        x = of_8_mebibytes(kind, numpy_type(name))
        place = layout(np.random.default_rng(4), "any", x.shape, x.itemsize)
        buffer = np.zeros(place.bytes, np.uint8)
        for number, axes in enumerate(SETS[1:]):
            kernel = operator(name, x.shape, axes, RESULTS[number % 2])
            out_kind = "c" if len(axes) % 2 else "any"
            out = np.zeros(x.shape, x.dtype)
            if out_kind == "any":
                out = place.view(buffer, x.shape, x.dtype)
            yield f"{name} {kind} to {out_kind} {axes}", partial(kernel, x, out)
