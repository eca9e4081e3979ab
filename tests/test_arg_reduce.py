"""The contract of argmax on arrays: each type, shape, layout, tie and NaN, against the oracle.

Every case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from draw import (
    INPUT_LAYOUTS,
    LONG_PLANES,
    MEMORY_LAYOUTS,
    PLANES,
    WIDE_EDGES,
    Call,
    Random,
    case,
    check_output,
    laid_out,
    last_item_first,
    lone_columns,
    noted,
    numpy_type,
    of_8_mebibytes,
    packed_records,
    planes_cut,
    random_axes,
    random_shape,
    short_lengths,
    small_planes,
    values,
)
from oracle import arg_reduce

import specops
from specops import directml as dml
from specops.directml import ArgmaxOperatorDesc, TensorDesc
from specops.kernels import search as kernel
from specops.lowering import machine, planes, search, search_strategy
from specops.lowering.arg_reduce import ArgReduce
from specops.tensor import packed
from specops.vocabulary import DATA_TYPES
from stress.memory import Arena

FLOAT_TYPES = ["FLOAT32", "FLOAT16"]
INTEGER_TYPES = [f"{sign}INT{width}" for sign in ("", "U") for width in (64, 32, 16, 8)]
PAGE_TYPES = [*FLOAT_TYPES, *INTEGER_TYPES]  # of DML_ARGMAX
TYPES = [*PAGE_TYPES, "FLOAT64", "BFLOAT16", "BOOL"]
OUTPUT_TYPES = ["UINT32", "INT32", "UINT64", "INT64"]
CASES = 320  # for each type
BATCH = 80

# --- one case ---


def check_case(name: str, number: int) -> None:
    """One random case, through each of the forms that take the type."""
    random = np.random.default_rng([TYPES.index(name), number])
    plain_only = name not in PAGE_TYPES
    shape = random_shape(random, 8, 0 if plain_only or number % 8 == 0 else 1)
    axes = random_axes(random, len(shape))
    last = bool(random.integers(2))
    kind = str(random.choice(INPUT_LAYOUTS))
    x, buffer = laid_out(random, values(random, name, shape), kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    output_type = str(random.choice(OUTPUT_TYPES))
    text = f"check_case({name!r}, {number}): {kind} {shape} {x.strides}, axes {axes}, last {last}"
    with case(text, buffer):
        if not plain_only and shape:
            check_directml(random, name, x, axes, last, output_type)
        check_plain(random, x, axes, last)
        check_lowering(random, name, x, axes, last, output_type)


def check_directml(
    random: Random,
    name: str,
    x: np.ndarray,
    axes: tuple[int, ...],
    last: bool,
    output_type: str,
) -> None:
    """`directml.argmax` and the compiled description: any output type, NaN ignored."""
    expected = arg_reduce(x, axes, "greater", last, "ignored")
    direction = ["INCREASING", "DECREASING"][last]
    dtype = numpy_type(output_type)
    signed_axes = [a - x.ndim if random.random() < 0.3 else a for a in axes]
    result = dml.argmax(x, signed_axes, direction, output_type)
    np.testing.assert_array_equal(result, expected.astype(dtype), strict=True)

    def function(out: np.ndarray) -> np.ndarray:
        return dml.argmax(x, axes, direction, output_type, out=out)

    check_output(function, random, expected.shape, dtype, expected)
    described = ArgmaxOperatorDesc(
        InputTensor=TensorDesc(name, x.shape),
        OutputTensor=TensorDesc(output_type, expected.shape),
        Axes=axes,
        AxisDirection=direction,
    )
    compiled = described.compile("5.0")
    np.testing.assert_array_equal(compiled(x), expected.astype(dtype), strict=True)

    def operator(out: np.ndarray) -> Any:
        return compiled(x, out=out)

    check_output(operator, random, expected.shape, dtype, expected)


def check_plain(random: Random, x: np.ndarray, axes: tuple[int, ...], last: bool) -> None:
    """`specops.argmax`: int64, the first or last NaN wins, axes dropped or kept."""
    expected = arg_reduce(x, axes, "greater", last, "propagates")
    keepdims = bool(random.integers(2))
    kept = [n for d, n in enumerate(expected.shape) if keepdims or d not in axes]
    axis: Any = axes
    if len(axes) == 1 and random.random() < 0.5:
        axis = axes[0]
    elif len(axes) == x.ndim and random.random() < 0.5:
        axis = None
    result = specops.argmax(x, axis, keepdims, last)
    np.testing.assert_array_equal(np.asarray(result), expected.reshape(kept), strict=True)

    def function(out: np.ndarray) -> Any:
        return specops.argmax(x, axis, keepdims, last, out=out)

    check_output(function, random, tuple(kept), np.dtype(np.int64), expected)


def check_lowering(
    random: Random,
    name: str,
    x: np.ndarray,
    axes: tuple[int, ...],
    last: bool,
    output_type: str,
) -> None:
    """The kernel behind every dialect: both directions of the search, both rules for NaN."""
    better = str(random.choice(["greater", "less"]))
    nan = str(random.choice(["ignored", "propagates"]))
    expected = arg_reduce(x, axes, better, last, nan)
    kernel = ArgReduce(
        better=better,
        tie="last" if last else "first",
        nan=nan,
        axes=sorted(axes),
        input=packed(name, x.shape),
        output=packed(output_type, expected.shape),
    )

    def run(out: np.ndarray) -> np.ndarray:
        kernel(x, out)
        return out

    check_output(run, random, expected.shape, numpy_type(output_type), expected)


@pytest.mark.parametrize("batch", range(CASES // BATCH))
@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str, batch: int) -> None:
    """Random shapes, axes, layouts, values and outputs give what the oracle gives."""
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        check_case(name, number)


def test_every_type_is_drawn() -> None:
    assert set(TYPES) == set(DATA_TYPES)


@pytest.mark.parametrize("name", ["FLOAT16", "UINT8"])
def test_between_forbidden_pages(name: str) -> None:
    """Nothing beyond the elements is read: that would end the process."""
    arena, dtype = Arena(), numpy_type(name)
    for n, groups in itertools.product((*range(1, 18), 31, 32, 33, 63, 64, 65, 300), (1, 3, 70)):
        for axis, gap, upper in itertools.product((0, 1), (0, 64), (False, True)):
            x = arena.place((groups, n), (n * dtype.itemsize + gap, dtype.itemsize), dtype, upper)
            assert x is not None
            x[...] = 1
            x[-1, -1] = 2
            assert np.array_equal(specops.argmax(x, axis), np.argmax(x, axis))
    for shape, upper in itertools.product(PLANES, (False, True)):
        x = arena.place_packed(shape, dtype, upper)
        x[...] = 1
        x[-1, -1, -1] = 2
        for given in (x, x[:, ::-1], x[:, 1:]):
            assert np.array_equal(specops.argmax(given, 1), np.argmax(given, 1))


@pytest.mark.parametrize("name", TYPES)
def test_short_rows(name: str) -> None:
    """Rows of all lengths up to ten vectors, as many as are searched together, a few less and a few more."""
    random = np.random.default_rng(TYPES.index(name))
    lanes = kernel.VECTOR_BYTES // numpy_type(name).itemsize
    for n in short_lengths(lanes):
        x = values(random, name, (2 * lanes + 3, n + 2))
        for rows, last in itertools.product((lanes - 1, lanes, 2 * lanes + 3), (False, True)):
            records = packed_records(x[:rows, :n], 1 + n % 3)
            for given in (x[:rows, :n].copy(), x[:rows, 1 : n + 1][:, ::-1], records):
                check_lowering(random, name, given, (1,), last, "INT64")
        same = np.full((2 * lanes + 3, n), x[0, 0])
        for last in (False, True):
            check_lowering(random, name, same, (1,), last, "UINT32")


# --- splitting: threads, parts, tiles, blocks ---


@pytest.mark.parametrize("name", TYPES)
def test_parts_and_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into parts of a few elements and narrow tiles, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    monkeypatch.setattr(search_strategy, "TILE_BYTES", 256)
    monkeypatch.setattr(machine, "BESIDE", 12)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    monkeypatch.setattr(planes, "FEW_ROWS", 0)
    check_split(name, 1, monkeypatch)


@pytest.mark.parametrize("name", TYPES)
def test_order_of_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that lie within an outer reduced axis, searched part by part in the order of memory, give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(planes, "CORE_CACHE_BYTES", 0)
    monkeypatch.setattr(machine, "UNCACHED_BYTES", 0)
    monkeypatch.setattr(planes, "RUN_BYTES", 0)
    check_split(name, 2, monkeypatch)


def test_parts_of_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where each part is several runs: all of them are searched."""
    monkeypatch.setattr(planes, "CORE_CACHE_BYTES", 0)
    monkeypatch.setattr(planes, "RUN_BYTES", 0)
    for seed, last in itertools.product(range(4), (False, True)):
        random = np.random.default_rng(seed)
        x = values(random, "FLOAT32", (4, 6, 3, 40))[..., :33]
        check_lowering(random, "FLOAT32", x, (0, 2, 3), last, "INT64")


def check_split(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cases, half of them with the last item first, give what NumPy gives."""
    for number in range(100):
        if number == 50:
            last_item_first(monkeypatch)
        random = np.random.default_rng([TYPES.index(name), number, seed])
        shape = random_shape(random, 5)
        axes = random_axes(random, len(shape))
        x, _ = laid_out(random, values(random, name, shape), str(random.choice(INPUT_LAYOUTS)))
        last = bool(random.integers(2))
        try:
            check_lowering(random, name, x, axes, last, str(random.choice(OUTPUT_TYPES)))
        except AssertionError as error:
            text = f"{name} {number}: {shape} {x.strides}, axes {axes}, last {last}"
            raise AssertionError(f"{text}: {error}") from error


@pytest.mark.parametrize("name", TYPES)
def test_narrow_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of few columns that adjoin are searched several at a time; where these do not divide, they overlap."""
    monkeypatch.setattr(machine, "BESIDE", 40)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    monkeypatch.setattr(planes, "FEW_ROWS", 0)
    random = np.random.default_rng(TYPES.index(name))
    for rows, columns in itertools.product((2, 7, 23, 29, 64, 301), (2, 3, 5, 19)):
        shape = (3, rows, columns)
        for number, axes in enumerate(((1,), (0, 1))):
            x = values(random, name, shape)
            for given in (x, x[:, ::-1], x[::-1], x[::-1, ::-1, ::-1]):
                last = bool((rows + columns + number) % 2)
                uncached = 0 if columns % 2 else 1 << 25  # one by one, or several together
                monkeypatch.setattr(machine, "UNCACHED_BYTES", uncached)
                check_lowering(random, name, given, axes, last, "INT64")


@pytest.mark.parametrize("name", TYPES)
def test_columns_out_of_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interleaved groups in another order than that of the index: along all, some or none of the axes rows are one."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 96)
    taken = noted(monkeypatch, search, "_COLUMNS")
    random = np.random.default_rng(TYPES.index(name))
    item = numpy_type(name).itemsize
    for shape in ((2, 3, 50), (3, 50, 4), (2, 20, 30), (3, 4, 5, 6), (2, 3, 2, 3, 2, 3)):
        for joined, last in itertools.product((1, 60 * item, 1 << 13), (False, True)):
            monkeypatch.setattr(search_strategy, "JOINED_BYTES", joined)
            x = np.asfortranarray(values(random, name, shape))
            tied = np.asfortranarray(np.zeros(shape) + (random.random(shape) < 0.1)).astype(x.dtype)
            for given in (x, x[:, ::-1], x[..., ::-1], tied, tied[:, ::-1, ::-1]):
                check_lowering(random, name, given, tuple(range(1, x.ndim)), last, "INT64")
    assert len(taken) == 150


@pytest.mark.parametrize("name", TYPES)
def test_small_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of planes of few elements, or of few rows, with outputs of any width and layout."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)  # planes have none
    taken = noted(monkeypatch, search, "_PLANES")
    calls = noted(monkeypatch, planes, "cut_planes")
    random = np.random.default_rng(TYPES.index(name))
    monkeypatch.setattr(planes, "CUT_BYTES", 256)
    for x in small_planes(random, name, PLANES + LONG_PLANES):
        for output_type, last in itertools.product(("UINT32", "INT64"), (False, True)):
            for _ in range(3):
                check_lowering(random, name, x, (1,), last, output_type)
    assert len(taken) >= 100
    assert planes_cut(calls) >= 40 * (numpy_type(name).itemsize >= 4)


@pytest.mark.parametrize("name", TYPES)
def test_lone_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of few columns is searched down its rows; of one plane and of several together."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    taken = noted(monkeypatch, search, "_ROWS")
    random = np.random.default_rng(TYPES.index(name))
    for x in lone_columns(random, name):
        for axes, last in itertools.product(((1,), (0, 1)), (False, True)):
            check_lowering(random, name, x, axes, last, "INT64")
    assert len(taken) == 32


@pytest.mark.parametrize("name", TYPES)
def test_winner_in_each_block_of_rows(name: str) -> None:
    """Columns longer than the rows that one block numbers: a winner at, before and after each edge, and ties."""
    places = [
        0,
        1,
        *range(250, 262),
        *range(503, 514),
        1019,
        1020,
        1021,
        1023,
        1024,
        1025,
        2047,
        2048,
        2049,
    ]
    x = np.zeros((2100, len(places)), numpy_type(name))
    x[places, np.arange(len(places))] = 1
    wide = np.tile(x, (1, 40))
    for given in (x, wide):
        expected = np.tile(places, given.shape[1] // len(places))
        for last in (False, True):
            np.testing.assert_array_equal(specops.argmax(given, 0, last=last), expected)
        ties = np.maximum(given, given[::-1])
        first = np.minimum(expected, len(x) - 1 - expected)
        np.testing.assert_array_equal(specops.argmax(ties, 0), first)
        np.testing.assert_array_equal(specops.argmax(ties, 0, last=True), len(x) - 1 - first)


@pytest.mark.parametrize("name", TYPES)
def test_columns_of_one_block(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that one block has whole, and longer ones: their indices in outputs of any width and layout."""
    monkeypatch.setattr(machine, "BESIDE", 1)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    monkeypatch.setattr(planes, "FEW_ROWS", 0)
    random = np.random.default_rng(TYPES.index(name))
    columns = 75
    for n in (1, 2, 255, 256, 257, 1024, 1025):
        x = np.zeros((2, n, columns), numpy_type(name))
        x[:, np.linspace(0, n - 1, columns).astype(np.int64), np.arange(columns)] = 1
        if DATA_TYPES[name].kind == "float":
            x[1, :, 7] = np.nan  # where it is ignored, the index is 0
        for given in (x, x[:, ::-1], np.maximum(x, x[:, ::-1])):
            for output, last in itertools.product(("UINT32", "INT64"), (False, True)):
                for _ in range(4):
                    check_lowering(random, name, given, (1,), last, output)


@pytest.mark.parametrize("length", [8064, 8065, 8127, 8128, 8129, 8192, 8384])
@pytest.mark.parametrize("name", ["INT8", "UINT16", "FLOAT16", "INT32", "FLOAT64"])
def test_longest_short_rows(name: str, length: int) -> None:
    """Rows of about as many bytes as are searched without blocks, where numbers of vectors nearly fill a byte."""
    dtype = numpy_type(name)
    length //= dtype.itemsize
    lanes = 64 // dtype.itemsize
    places = sorted(
        {p for d in range(3) for p in (d, lanes - d, length - lanes - d, length - 1 - d)}
    )
    rows = np.zeros((len(places), length), dtype)
    rows[np.arange(len(places)), places] = 1
    ties = np.maximum(rows, rows[:, ::-1])
    expected = np.array(places)
    mirrored = length - 1 - expected
    for last, tied in ((False, np.minimum), (True, np.maximum)):
        np.testing.assert_array_equal(specops.argmax(rows, 1, last=last), expected)
        np.testing.assert_array_equal(specops.argmax(rows[:, ::-1], 1, last=last), mirrored)
        for given in (ties, ties[:, ::-1]):
            found = specops.argmax(given, 1, last=last)
            np.testing.assert_array_equal(found, tied(expected, mirrored))
    same = np.ones((3, length), dtype)
    assert specops.argmax(same, 1).tolist() == [0] * 3
    assert specops.argmax(same, 1, last=True).tolist() == [length - 1] * 3


LARGE = [  # shape, axes
    ((3_000_001,), (0,)),  # one long row
    ((5, 700_001), (1,)),
    ((300, 9_001), (0,)),  # wide columns
    ((70_001, 40), (0,)),  # few columns, many rows
    ((20_011, 33), (1,)),  # many short rows
    ((7, 1_000, 129), (1,)),  # an axis in the middle
    ((16, 512, 129), (0, 2)),
    ((16, 512, 129), (0, 1, 2)),
    ((2, 129, 3, 1_025), (1, 3)),
]


@pytest.mark.parametrize("name", ["UINT8", "FLOAT16", "FLOAT32", "INT64"])
@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
def test_large(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Inputs that are split over threads: right, and the same on one thread, on two and on all."""
    random = np.random.default_rng(math.prod(shape))
    dtype = numpy_type(name)
    several = [random.integers(0, 2, shape).astype(dtype), np.zeros(shape, dtype)]
    several[1].flat[random.integers(0, math.prod(shape), 3)] = 1  # few winners, far apart
    for number, packed_values in enumerate(several):
        kind = INPUT_LAYOUTS[(LARGE.index((shape, axes)) + number) % len(INPUT_LAYOUTS)]
        if dtype.kind == "f":
            packed_values.flat[random.integers(0, packed_values.size, 5)] = np.nan
        x, _ = laid_out(random, packed_values, kind)
        for last in (False, True):
            expected = arg_reduce(x, axes, "greater", last, "propagates")
            found = [specops.argmax(x, axes, keepdims=True, last=last)]
            for threads in (1, 2):
                with specops.num_threads(threads):
                    found.append(specops.argmax(x, axes, keepdims=True, last=last))
            for result in found:
                np.testing.assert_array_equal(result, expected, err_msg=kind, strict=True)
            if shape == LARGE[0][0]:
                ignored = arg_reduce(x, axes, "greater", last, "ignored")
                direction = ["INCREASING", "DECREASING"][last]
                assert dml.argmax(x, axes, direction).tolist() == ignored.tolist()


def test_large_outputs_that_repeat() -> None:
    """What is computed once is copied block by block, also along the longest axis, where it repeats."""
    once = np.array([[3, 9, 9], [9, 3, 5]], np.float32)
    for x in (
        np.broadcast_to(once[0], (40_000, 3)),
        np.broadcast_to(once, (40_000, 2, 3)),
        np.broadcast_to(once[:, np.newaxis], (2, 40_000, 3)),
    ):
        np.testing.assert_array_equal(specops.argmax(x, axis=-1), np.argmax(x, axis=-1))


@pytest.mark.parametrize("length", WIDE_EDGES)
@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "UINT32", "FLOAT32", "FLOAT64"])
def test_the_winner_may_stand_anywhere(name: str, length: int) -> None:
    """Rows and columns of each length around a vector, block or tile; the winner at, before and after each edge."""
    places = sorted(
        {p for edge in (*WIDE_EDGES, length, 0) for p in (edge - 1, edge) if 0 <= p < length}
    )
    rows = np.zeros((len(places), length), numpy_type(name))
    rows[np.arange(len(places)), places] = 1
    expected = np.array(places)
    ties = np.maximum(rows, rows[:, ::-1])
    for last in (False, True):
        mirrored = length - 1 - expected
        tied = np.maximum(expected, mirrored) if last else np.minimum(expected, mirrored)
        for given, wanted in ((rows, expected), (ties, tied)):
            columns = np.ascontiguousarray(given.T)
            np.testing.assert_array_equal(specops.argmax(given, 1, last=last), wanted)
            np.testing.assert_array_equal(specops.argmax(columns, 0, last=last), wanted)
            # Ties are their own mirror image.
            back = length - 1 - wanted if given is rows else wanted
            np.testing.assert_array_equal(specops.argmax(given[:, ::-1], 1, last=last), back)
            np.testing.assert_array_equal(specops.argmax(columns[::-1], 0, last=last), back)


@pytest.mark.parametrize("better", ["greater", "less"])
@pytest.mark.parametrize("name", ["BOOL", "UINT8", "FLOAT16"])
def test_an_element_that_none_can_beat_ends_the_search(name: str, better: str) -> None:
    """In any of the blocks of a long row, or of several runs, in any order of memory; ties before and behind it."""
    dtype = numpy_type(name)
    size = 4 * kernel.BLOCK_BYTES // dtype.itemsize
    extremes = {"BOOL": (False, True), "UINT8": (0, 255), "FLOAT16": (np.nan, np.nan)}
    extreme = extremes[name][better == "greater"]
    for number in range(24):
        random = np.random.default_rng(number)
        x = np.full((2, 3, size), better == "less", dtype)
        x[random.random(x.shape) < random.choice([1, 4]) / size] = extreme
        if number % 3 == 1:
            x = x[:, :, ::-1]
        elif number % 3 == 2:  # in memory the middle axis is outermost
            x = np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
        for axes, last in itertools.product([(2,), (0, 2), (0, 1, 2)], [False, True]):
            expected = arg_reduce(x, axes, better, last, "propagates")
            out = np.empty(expected.shape, np.int64)
            search = ArgReduce(
                better=better,
                tie="last" if last else "first",
                nan="propagates",
                axes=axes,
                input=packed(name, x.shape),
                output=packed("INT64", expected.shape),
            )
            search(x, out)
            np.testing.assert_array_equal(out, expected, err_msg=f"{number} {axes} {last}")


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("function", [specops.argmax, specops.argmin])
def test_booleans(function: Callable[..., np.ndarray], last: bool) -> None:
    """Of a row of many vectors one is looked at before the others: the first, or where the last one wins the last."""
    wanted, lanes = function is specops.argmax, kernel.VECTOR_BYTES
    for n in (5 * lanes, 5 * lanes + 1, 8127):
        ends = 0, 1, lanes - 1, lanes, n - lanes - 1, n - lanes, n - 2, n - 1
        pairs = [*itertools.combinations_with_replacement(ends, 2), (n, n)]
        x = np.full((len(pairs), n + 1), not wanted)
        for row, pair in zip(x, pairs, strict=True):
            row[[*pair]] = wanted
        for given, places in (
            (x[:, :n], pairs),
            (x[:, n - 1 :: -1], [(n - 1 - b, n - 1 - a) for a, b in pairs]),
        ):
            best = [pair[last] if 0 <= pair[0] < n else (n - 1) * last for pair in places]
            assert function(given, 1, last=last).tolist() == best


@pytest.mark.parametrize("columns", WIDE_EDGES)
@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "FLOAT64"])
def test_each_column_is_its_own(name: str, columns: int) -> None:
    """As many columns as fill a vector or a tile, one less, one more: none is missed or mixed up."""
    random = np.random.default_rng(columns)
    x = random.integers(0, 5, (7, columns)).astype(numpy_type(name))
    expected = np.argmax(x, 0)
    np.testing.assert_array_equal(specops.argmax(x, 0), expected)
    np.testing.assert_array_equal(specops.argmax(x[:, ::-1], 0), expected[::-1])
    np.testing.assert_array_equal(specops.argmax(x.T.copy(), 1), expected)


# --- layouts that NumPy makes itself ---


@pytest.mark.parametrize("name", TYPES)
def test_field_of_a_structured_array(name: str) -> None:
    """A field of packed records: strides that are no multiple of the element's size, addresses of any alignment."""
    random = np.random.default_rng(1)
    dtype = numpy_type(name)
    records = np.zeros((9, 11), [("before", "u1"), ("x", f"V{dtype.itemsize}"), ("after", "u2")])
    x = records["x"].view(dtype)
    x[...] = values(random, name, x.shape)
    for axes in ((0,), (1,), (0, 1)):
        expected = arg_reduce(x, axes, "greater", False, "propagates")
        np.testing.assert_array_equal(specops.argmax(x, axes, keepdims=True), expected)


@pytest.mark.parametrize("name", PAGE_TYPES)
def test_channels_last(name: str) -> None:
    """NHWC memory under NCHW sizes, as a description with strides and as a transposed array."""
    random = np.random.default_rng(2)
    n, c, h, w = 2, 5, 7, 6
    memory = values(random, name, (n, h, w, c))
    x = memory.transpose(0, 3, 1, 2)
    strides = [h * w * c, 1, w * c, c]
    tensor = TensorDesc(name, [n, c, h, w], Strides=strides)
    described = tensor.view(memory)
    assert described.strides == x.strides
    for axes in ([1], [2, 3], [0, 1, 2, 3]):
        expected = arg_reduce(x, tuple(axes))
        sizes = list(expected.shape)
        compiled = ArgmaxOperatorDesc(
            InputTensor=tensor,
            OutputTensor=TensorDesc("UINT32", sizes),
            Axes=axes,
            AxisDirection="INCREASING",
        ).compile()
        np.testing.assert_array_equal(compiled(described), expected)
        np.testing.assert_array_equal(dml.argmax(x, axes), expected)


def test_the_shapes_of_edge_cases() -> None:
    """Rank 0, rank above 8, empty results, no axes: as NumPy has them."""
    zero_d = specops.argmax(np.array(5.0))
    assert zero_d.shape == () and zero_d == 0
    assert specops.argmax(np.array(5.0), axis=()).shape == ()
    assert specops.argmax(np.zeros((3, 0, 2)), axis=0).shape == (0, 2)
    assert specops.argmax(np.zeros((3, 0, 2)), axis=(0, 2), keepdims=True).shape == (1, 0, 1)
    deep = np.arange(2**12).reshape((2,) * 12)
    assert specops.argmax(deep) == 2**12 - 1
    assert specops.argmax(deep, axis=tuple(range(0, 12, 2)), last=True).shape == (2,) * 6
    assert (specops.argmax(deep, axis=()) == 0).all()
    assert dml.argmax(np.array([[4, 5]], np.int8), []).tolist() == [[0, 0]]


@pytest.mark.parametrize("name", ["UINT32", "INT64"])
def test_groups_of_nothing(name: str) -> None:
    """Where constraints let them through, their index is 0."""
    out = np.full((3, 1), 77, numpy_type(name))
    search = ArgReduce(
        axes=[1],
        better="greater",
        tie="first",
        nan="ignored",
        input=packed("FLOAT32", (3, 0)),
        output=packed(name, out.shape),
    )
    search(np.empty((3, 0), np.float32), out)
    assert out.tolist() == [[0], [0], [0]]


# --- memory ---


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout."""
    for name, kind in itertools.product(TYPES, MEMORY_LAYOUTS):
        x = of_8_mebibytes(kind, numpy_type(name))
        for axes in ((0,), (2,), (0, 2), (0, 1, 2), ()):
            out = np.zeros([n for d, n in enumerate(x.shape) if d not in axes], np.int64)
            call = functools.partial(specops.argmax, x, axes, out=out)
            yield f"{name} {kind} {axes}", call
        if name in PAGE_TYPES:
            out = np.zeros((x.shape[0], 1, 1), np.uint32)
            yield f"{name} {kind} page", functools.partial(dml.argmax, x, [1, 2], out=out)
