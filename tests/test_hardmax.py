"""The contract of hardmax: each type, shape, layout, tie and NaN, against the oracle.

Every case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
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
    INPUT_LAYOUTS,
    LAYOUTS,
    MEMORY_LAYOUTS,
    WIDE_EDGES,
    Call,
    case,
    check_output,
    laid_out,
    last_item_first,
    layout,
    noted,
    numpy_type,
    of_8_mebibytes,
    output,
    packed_records,
    random_axes,
    random_shape,
    short_lengths,
    small_planes,
    values,
)
from oracle import NAN_RULES, hardmax

import specops
from specops.kernels.search import VECTOR_BYTES
from specops.lowering import machine, planes, search, search_marks, search_strategy
from specops.lowering.axes import Axis
from specops.lowering.hardmax import Hardmax
from specops.lowering.search_visit import visited
from specops.tensor import packed
from stress.memory import Arena

TYPES = ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"]
CASES = 600  # for each type
BATCH = 200
SETS = [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]  # of axes of a rank of 3


def operator(name: str, shape: tuple[int, ...], axes: Any, nan: str) -> Hardmax:
    return Hardmax(axes=axes, nan=nan, input=packed(name, shape), output=packed(name, shape))


def run(name: str, x: np.ndarray, axes: Any, nan: str) -> np.ndarray:
    out = np.full_like(x, 7)
    operator(name, x.shape, axes, nan)(x, out)
    return out


def bits(x: np.ndarray) -> np.ndarray:
    """What tells 0.0 and -0.0 apart."""
    return x.view(f"u{x.dtype.itemsize}")


# --- short rows ---


@pytest.mark.parametrize("name", TYPES)
def test_short_rows(name: str) -> None:
    """Rows of all lengths up to ten vectors, as many as are searched together, a few less and a few more."""
    random = np.random.default_rng(TYPES.index(name))
    lanes = VECTOR_BYTES // numpy_type(name).itemsize
    for n in short_lengths(lanes):
        x = values(random, name, (2 * lanes + 3, n + 1))
        for rows, nan in itertools.product((lanes - 1, lanes, 2 * lanes + 3), NAN_RULES):
            for given in (x[:rows, 1:].copy(), x[:rows, 1:], packed_records(x[:rows, 1:], 1)):
                expected = hardmax(given, (1,), nan)
                found = run(name, given, (1,), nan)
                np.testing.assert_array_equal(bits(found), bits(expected), f"{rows} {n}")
                out = output(random, given.shape, given.dtype)
                operator(name, given.shape, (1,), nan)(given, out.array)
                np.testing.assert_array_equal(bits(out.array.copy()), bits(expected))
                out.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
def test_narrow_rows_do_not_go_past_the_caches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are transposed, whatever their marks take; wider ones are not."""
    monkeypatch.setattr(machine, "PAST_BYTES", 1 << 10)
    taken = noted(monkeypatch, search, "_SHORT")
    size = numpy_type(name).itemsize
    for n in (2, 3, 5, 128 // size, 128 // size + 1):
        x = values(np.random.default_rng(n), name, (1024, n))
        assert np.array_equal(run(name, x, (1,), "ignored"), hardmax(x, (1,), "ignored"))
    assert len(taken) == 4


# --- random cases ---


def check_case(name: str, number: int, group: int = 0) -> None:
    random = np.random.default_rng([TYPES.index(name), number, group])
    shape = random_shape(random, 8 if number % 4 else 3, 0)
    axes = random_axes(random, len(shape))
    nan = str(random.choice(NAN_RULES))
    kind = str(random.choice(INPUT_LAYOUTS))
    x, buffer = laid_out(random, values(random, name, shape), kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    kernel = operator(name, shape, [axes, list(axes)][random.integers(2)], nan)

    def run(out: np.ndarray) -> np.ndarray:
        kernel(x, out)
        return out

    text = (
        f"check_case({name!r}, {number}, {group}): {kind} {shape} {x.strides}, axes {axes}, {nan}"
    )
    with case(text, buffer):
        expected = hardmax(x, axes, nan)
        for _ in range(2):  # two layouts of the output
            check_output(run, random, shape, numpy_type(name), expected)


@pytest.mark.parametrize("batch", range(CASES // BATCH))
@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str, batch: int) -> None:
    """Random shapes, axes, layouts and values give what the oracle gives."""
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        check_case(name, number)


@pytest.mark.parametrize("name", TYPES)
def test_parts_and_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into parts of a few elements and narrow tiles, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)
    monkeypatch.setattr(search_strategy, "TILE_BYTES", 256)
    monkeypatch.setattr(machine, "BESIDE", 12)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    check_split(name, 1, monkeypatch)


@pytest.mark.parametrize("name", TYPES)
def test_wide_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles as wide as for input that no cache holds give the same in small cases."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "UNCACHED_BYTES", 0)
    monkeypatch.setattr(search_strategy, "TILE_BYTES", 64)
    monkeypatch.setattr(search_strategy, "UNCACHED_TILE_BYTES", 128)
    check_split(name, 2, monkeypatch)


@pytest.mark.parametrize("name", TYPES)
def test_order_of_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that lie within an outer reduced axis, searched part by part in the order of memory, give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(planes, "CORE_CACHE_BYTES", 0)
    monkeypatch.setattr(machine, "UNCACHED_BYTES", 0)
    monkeypatch.setattr(planes, "RUN_BYTES", 0)
    check_split(name, 3, monkeypatch)


def check_split(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cases, half of them with the last item first."""
    for number in range(300):
        if number == 150:
            last_item_first(monkeypatch)
        check_case(name, number, seed)


@pytest.mark.parametrize("name", TYPES)
def test_zeros_past_the_caches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored past the caches, the zeros of small outputs are the same: at any alignment, and none outside."""
    monkeypatch.setattr(machine, "PAST_BYTES", 0)
    with monkeypatch.context() as patch:
        patch.setattr(search_marks, "PAST_ROW_BYTES", 0)
        for number in range(150):
            check_case(name, number, 2)
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)  # short rows: beforehand
    for number in range(150, 300):
        check_case(name, number, 2)


@pytest.mark.parametrize("past", [0, 1 << 40], ids=["past", "within"])
@pytest.mark.parametrize("name", TYPES)
def test_rows_stored_with_their_marks(
    name: str, past: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long rows, searched in blocks, with the greatest element in any cache line, at any alignment."""
    monkeypatch.setattr(machine, "PAST_BYTES", past)
    random = np.random.default_rng(TYPES.index(name))
    for n in (8_200, 9_001):
        x = values(random, name, (3, n))
        for place in (0, 1, n // 2, n - 40, n - 1):
            x[1] = -1
            x[1, place] = 5
            for kind in LAYOUTS:
                out = output(random, x.shape, x.dtype, kind)
                operator(name, x.shape, (1,), "ignored")(x, out.array)
                expected = hardmax(x, (1,), "ignored")
                assert np.array_equal(bits(out.array), bits(expected)), f"{kind} {n} {place}"
                out.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
def test_narrow_rows_of_repeated_elements(name: str) -> None:
    """Where an input's elements are repeated, a group has more of them than are looked at."""
    random = np.random.default_rng(TYPES.index(name))
    for repeats in (2, 5):
        one = values(random, name, (4, 7, 1))
        x = np.broadcast_to(one, (4, 7, repeats))
        out = output(random, x.shape, x.dtype, "c")
        operator(name, x.shape, (1, 2), "ignored")(x, out.array)
        expected = hardmax(x, (1, 2), "ignored")
        assert np.array_equal(bits(out.array), bits(expected))
        out.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
def test_narrow_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of few columns that adjoin are searched and set to 0 together, with any output beside any input."""
    monkeypatch.setattr(machine, "BESIDE", 40)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    random = np.random.default_rng(TYPES.index(name))
    for rows, columns in itertools.product((2, 7, 23, 64), (2, 3, 19)):
        for axes in ((1,), (0, 1)):
            shape = (3, rows, columns)
            x = values(random, name, shape)
            for given, kind in itertools.product((x, x[:, ::-1], x[::-1]), LAYOUTS):
                out = output(random, shape, x.dtype, kind)
                operator(name, shape, axes, "ignored")(given, out.array)
                expected = hardmax(given, axes, "ignored")
                assert np.array_equal(bits(out.array), bits(expected)), f"{kind} {shape} {axes}"
                out.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
def test_small_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marks of columns of planes of few elements, in outputs of any layout."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PART_BYTES", 48)  # planes have none
    taken = noted(monkeypatch, search, "_PLANES")
    random = np.random.default_rng(TYPES.index(name))
    for x in small_planes(random, name):
        for nan, kind in itertools.product(NAN_RULES, LAYOUTS):
            out = output(random, x.shape, x.dtype, kind)
            operator(name, x.shape, (1,), nan)(x, out.array)
            assert np.array_equal(bits(out.array), bits(hardmax(x, (1,), nan))), f"{kind} {x.shape}"
            out.check_surroundings()
    assert len(taken) >= 100


def test_marks_of_the_last_in_small_planes() -> None:
    """Of several equal elements the last one is marked, of nothing but NaN the first."""
    x = np.zeros((3, 5, 20), np.float32)
    x[:, :, 7], x[:, 1, 8] = np.nan, np.nan
    given, out = packed("FLOAT32", x.shape), np.full(x.shape, 7, np.uint32)
    search.Search(
        better="greater",
        tie="last",
        nan="ignored",
        axes=(1,),
        input=given,
        output=given,
        mark=1,
    )(x, out)
    rows = np.where(np.arange(20) == 7, 0, 4)
    assert np.array_equal(out, np.broadcast_to(np.arange(5)[:, None] == rows, x.shape))


@pytest.mark.parametrize("past", [0, 1 << 40], ids=["past", "within"])
@pytest.mark.parametrize("name", TYPES)
def test_marks_of_columns(name: str, past: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of columns and whole groups are stored with their marks, past the caches or not, at any alignment."""
    monkeypatch.setattr(machine, "PAST_BYTES", past)
    monkeypatch.setattr(planes, "PLANE_BYTES", 0)
    random = np.random.default_rng(TYPES.index(name))
    shapes = [(2, 9, 5, 11), (3, 40, 2, 35), (2, 3, 8, 97), (1, 150, 1, 1), (2, 70, 3, 64)]
    for shape, axes in itertools.product(shapes, ((1,), (0, 2), (2, 1), (0,))):
        x = values(random, name, shape)
        groups = np.moveaxis(np.empty(np.array(shape)[[0, 3, 1, 2]], x.dtype), 1, 3)
        for kind in ("c", "any", "negative", "groups"):
            out = output(random, shape, x.dtype, "c" if kind == "groups" else kind)
            target = groups if kind == "groups" else out.array
            operator(name, shape, axes, "propagates")(x, target)
            expected = hardmax(x, axes, "propagates")
            assert np.array_equal(bits(target), bits(expected)), f"{kind} {shape} {axes}"
            out.check_surroundings()


@pytest.mark.parametrize("past", [0, 1 << 40], ids=["past", "within"])
@pytest.mark.parametrize("name", TYPES)
def test_marks_of_rows_in_columns(name: str, past: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are searched where the output lies by columns."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(machine, "PAST_BYTES", past)
    random = np.random.default_rng(TYPES.index(name))
    for tile, shape in itertools.product(
        (1 << 12, 64), [(2, 5, 7, 9), (3, 4, 40, 6), (1, 33, 1, 70)]
    ):
        monkeypatch.setattr(search_strategy, "TILE_BYTES", tile)
        x = values(random, name, shape)
        given = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, 3)), 3, 1)
        for kind in LAYOUTS:
            out = output(random, shape, x.dtype, kind)
            operator(name, shape, (1,), "ignored")(given, out.array)
            expected = hardmax(x, (1,), "ignored")
            assert np.array_equal(bits(out.array), bits(expected)), f"{kind} {shape}"
            out.check_surroundings()
        last_first = np.empty(shape, x.dtype)[::-1]  # its rows are as those of others
        operator(name, shape, (1,), "ignored")(given, last_first)
        assert np.array_equal(bits(last_first), bits(expected)), shape


@pytest.mark.parametrize("rows", [32_767, 32_769, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("name", TYPES)
def test_more_rows_than_narrow_elements_can_count(name: str, rows: int) -> None:
    """The marks of three columns of many rows, at the ends and where 16 bits come round."""
    for first in (0, rows - 3, rows - 32_767):
        x = np.zeros((rows, 3), numpy_type(name))
        x[first + np.arange(3), np.arange(3)] = 1
        expected = x.copy()
        np.testing.assert_array_equal(run(name, x, (0,), "ignored"), expected)


# --- what is easily wrong ---

NAN, INF = float("nan"), float("inf")
TIES = [  # a group; where the 1 stands with NaN ignored; where NaN propagates
    ([3, 2, 1, 2, 3], 0, 0),
    ([1, 2, 3, 3, 3], 2, 2),
    ([-0.0, 0.0, -0.0], 0, 0),
    ([-1, 0.0, -0.0, 0.0], 1, 1),
    ([-1, -0.0, 0.0], 1, 1),
    ([NAN, -INF, NAN], 1, 0),
    ([-NAN, -INF, NAN], 1, 0),
    ([-INF, -INF], 0, 0),
    ([-INF, NAN], 0, 1),
    ([NAN, NAN, NAN], 0, 0),
    ([1, -NAN, INF, NAN], 2, 1),
    ([INF, INF, -NAN], 0, 2),
    ([5], 0, 0),
    ([NAN], 0, 0),
]


@pytest.mark.parametrize(("group", "ignored", "propagated"), TIES, ids=str)
@pytest.mark.parametrize("name", TYPES)
def test_ties_and_nan(name: str, group: list[float], ignored: int, propagated: int) -> None:
    """A short group by literals: as a row, a column and both, amid others, forward and from behind."""
    dtype = numpy_type(name)
    for nan, place in (("ignored", ignored), ("propagates", propagated)):
        one = np.zeros(len(group), dtype)
        one[place] = 1
        for width in (1, 3, 40):
            rows = np.tile(np.array(group, dtype), (width, 1))
            expected = np.tile(one, (width, 1))
            np.testing.assert_array_equal(run(name, rows, (1,), nan), expected)
            columns = np.ascontiguousarray(rows.T)
            np.testing.assert_array_equal(run(name, columns, (0,), nan), expected.T)
            np.testing.assert_array_equal(run(name, columns.T, (1,), nan), expected)
            backward = np.ascontiguousarray(rows[:, ::-1])[:, ::-1]
            np.testing.assert_array_equal(run(name, backward, (1,), nan), expected)


@pytest.mark.parametrize("name", TYPES)
def test_a_long_group_of_nothing_but_nan(name: str) -> None:
    """Its 1 stands at its first element, also where the group is split, reversed or walked by memory."""
    dtype = numpy_type(name)
    for shape, axes in (
        ((300_001,), (0,)),
        ((3, 200, 700), (1, 2)),
        ((200, 3, 700), (0, 2)),
        ((500, 700), (0,)),
    ):
        x = np.full(shape, np.nan, dtype)
        first = np.zeros(shape, bool)
        first[tuple(slice(0, 1) if d in axes else slice(None) for d in range(len(shape)))] = True
        backward = tuple(slice(None, None, -1) for _ in shape)
        for given in (x, x[backward], x.T.copy().T):
            for nan in NAN_RULES:
                out = np.full(shape, 7, dtype)
                operator(name, shape, axes, nan)(given, out)
                assert np.array_equal(out, first)
                operator(name, shape, axes, nan)(given, out[backward])
                assert np.array_equal(out[backward], first)


@pytest.mark.parametrize("length", WIDE_EDGES)
@pytest.mark.parametrize("name", TYPES)
def test_the_one_may_stand_anywhere(name: str, length: int) -> None:
    """Rows and columns of each length around a vector, block or tile; the 1 at, before and after each edge."""
    places = sorted({p for e in (*WIDE_EDGES, length, 0) for p in (e - 1, e) if 0 <= p < length})
    rows = np.full((len(places), length), -1, numpy_type(name))
    rows[np.arange(len(places)), places] = 2
    expected = rows == 2
    columns = np.ascontiguousarray(rows.T)
    for given, axis, wanted in (
        (rows, 1, expected),
        (rows[:, ::-1], 1, expected[:, ::-1]),
        (columns, 0, expected.T),
        (columns[::-1], 0, expected.T[::-1]),
    ):
        np.testing.assert_array_equal(run(name, given, (axis,), "propagates"), wanted)


@pytest.mark.parametrize("name", TYPES)
def test_elements_apart(name: str) -> None:
    """Every element, every second, to every fifth, up to where a page ends; of equal ones the first, or the last."""
    arena, random, dtype = Arena(), np.random.default_rng(6), numpy_type(name)
    for n, apart in itertools.product((1, 17, 47, 48, 49, 64, 65, 200, 1025), range(1, 6)):
        step = apart * dtype.itemsize
        x = arena.place((3, n), (n * step, step), dtype, True)
        assert x is not None
        for given in (x, x[:, ::-1]):
            given[...] = random.integers(0, n, x.shape)
            numbers = given.astype(np.float64)
            first = numbers.argmax(1)
            assert np.array_equal(specops.argmax(given, axis=1), first)
            last = n - 1 - numbers[:, ::-1].argmax(1)
            assert np.array_equal(specops.argmax(given, axis=1, last=True), last)
            found = run(name, given, (1,), "propagates")
            assert np.array_equal(found, np.arange(n) == first[:, None])
            given[1, n // 2] = np.nan
            assert np.array_equal(
                run(name, given, (1,), "propagates"), hardmax(given, (1,), "propagates")
            )


@pytest.mark.parametrize("name", [*TYPES, "INT64", "INT32", "UINT8"])
def test_columns_apart(name: str) -> None:
    """Down every column, every second, to every fifth, up to where a page ends; of equal ones first or last."""
    arena, random, dtype = Arena(), np.random.default_rng(7), numpy_type(name)
    for rows, n, apart in itertools.product((1, 2, 9, 300), (1, 15, 33, 70), range(1, 6)):
        step = apart * dtype.itemsize
        x = arena.place((rows, n), (n * step, step), dtype, True)
        assert x is not None
        x[...] = random.integers(0, min(rows, 120), x.shape)
        for given in (x, x[::-1], x[:, ::-1]):
            numbers = given.astype(np.float64)
            assert np.array_equal(specops.argmax(given, axis=0), numbers.argmax(0))
            last = rows - 1 - numbers[::-1].argmax(0)
            assert np.array_equal(specops.argmax(given, axis=0, last=True), last)


@pytest.mark.parametrize("name", [*TYPES, "INT64", "UINT8"])
def test_channels_last_in_memory(name: str) -> None:
    """Lanes may lie along an axis that does not adjoin in the input, but in the output."""
    random = np.random.default_rng(9)
    for channels, width in itertools.product(range(1, 7), (3, 16, 40)):
        memory = random.integers(0, 30, (2, 7, width, channels)).astype(numpy_type(name))
        x = memory.transpose(0, 3, 1, 2)
        for axis in range(4):
            wanted = x.astype(np.float64).argmax(axis)
            assert np.array_equal(specops.argmax(x, axis=axis), wanted), f"{x.shape} {axis}"


@pytest.mark.parametrize("part_bytes", [48, 400, 1 << 18])
@pytest.mark.parametrize("name", [*TYPES, "INT64", "UINT8"])
def test_groups_dense_in_another_order(
    name: str, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All elements of a group adjoin, but not in the order of the index: one, few or many of them are the greatest."""
    monkeypatch.setattr(machine, "PART_BYTES", part_bytes)
    random = np.random.default_rng(10)
    for (shape, order), flip in itertools.product(
        (
            ((2, 5, 9, 3), (0, 3, 1, 2)),
            ((3, 2, 30, 2), (0, 3, 1, 2)),
            ((1, 7, 41, 33), (0, 3, 1, 2)),
            ((2, 5, 9, 7), (0, 1, 2, 3)),
            ((1, 3, 41, 33), (0, 1, 2, 3)),
        ),
        itertools.product((1, -1), repeat=3),
    ):
        memory = np.empty(shape, numpy_type(name))
        x = memory[:, :: flip[0], :: flip[1], :: flip[2]].transpose(order)
        n = math.prod(shape[1:])
        for greatest, beside in itertools.product((1, 2, 5, n // 2, n), (False, True)):
            memory[...] = random.integers(0, 100, shape)
            for row in memory.reshape(-1, n):
                places = random.choice(n, greatest, replace=False)
                row[(places[0] + np.arange(greatest)) % n if beside else places] = 101
            numbers = x.reshape(len(x), n).astype(np.float64)
            first, last = numbers.argmax(1), n - 1 - numbers[:, ::-1].argmax(1)
            text = f"{shape} {order} {flip} {greatest} {beside}"
            assert np.array_equal(specops.argmax(x, axis=(1, 2, 3)), first), text
            assert np.array_equal(specops.argmax(x, axis=(1, 2, 3), last=True), last), text
            repeated = np.broadcast_to(x[:, None], (len(x), 2, *x.shape[1:]))
            found = specops.argmax(repeated, axis=(1, 2, 3, 4), last=True)
            assert np.array_equal(found, n + last), text
            assert np.array_equal(specops.argmax(repeated, axis=(1, 2, 3, 4)), first), text
            if name in TYPES:
                memory[memory == 101] = np.nan
                for nan in NAN_RULES:
                    found = run(name, x, (1, 2, 3), nan)
                    assert np.array_equal(found, hardmax(x, (1, 2, 3), nan)), f"{text} {nan}"


@pytest.mark.parametrize("flip", list(itertools.product((1, -1), repeat=2)))
def test_the_one_that_is_preferred_to_many_others(
    flip: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each place of a group's parts, also the first and the last: many in the middle column are as great."""
    monkeypatch.setattr(machine, "PART_BYTES", 200)
    memory = np.zeros((200, 3), np.uint8)
    memory[:, 1] = 1
    x = memory[:: flip[0], :: flip[1]].T
    middle = np.flatnonzero(x)
    for place in range(x.size):
        before = x.flat[place]
        x.flat[place] = 1
        assert specops.argmax(x, axis=(0, 1)) == min(place, middle[0])
        assert specops.argmax(x, axis=(0, 1), last=True) == max(place, middle[-1])
        x.flat[place] = before


@pytest.mark.parametrize("name", TYPES)
def test_dense_groups_that_overlap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of groups that begin within each other the rows are searched in the order of memory, as groups of their own."""
    monkeypatch.setattr(planes, "CORE_CACHE_BYTES", 0)
    n = 9000  # elements of a row that is no short one
    memory = np.random.default_rng(11).integers(0, 200, 5 * n + 7).astype(numpy_type(name))
    size = memory.itemsize
    x = np.lib.stride_tricks.as_strided(memory, (7, n, 5), (size, size, n * size))
    numbers = x.reshape(7, 5 * n).astype(np.float64)
    assert np.array_equal(specops.argmax(x, axis=(1, 2)), numbers.argmax(1))
    last = 5 * n - 1 - numbers[:, ::-1].argmax(1)
    assert np.array_equal(specops.argmax(x, axis=(1, 2), last=True), last)


@pytest.mark.parametrize(
    ("n", "kept", "across", "across_runs"),
    [  # elements of a group, or of its runs, which adjoin; (size, elements apart) of the innermost kept axis
        (3, (100, 3), True, True),
        (10, (16, 10), True, True),
        (3, (15, 3), False, True),
        (3, (6, 3), False, True),
        (3, (5, 3), False, True),
        (6, (3, 6), False, False),
        (11, (100, 11), False, True),
        (3, (100, 11), False, True),
        (24, (16, 24), False, True),
        (25, (16, 25), False, False),
        (3, (100, 25), False, False),
    ],
)
def test_the_axis_of_vectors(
    n: int, kept: tuple[int, int], across: bool, across_runs: bool
) -> None:
    """Vectors lie along short groups, or short runs of groups, that are many and near to each other."""
    strategies = search_strategy.Strategies(
        element_bytes=4, out_bytes=8, one_hot=False, uncached=False
    )
    axis = Axis(kept[0], 4 * kept[1], 8)
    outer, run = Axis(50, 4 * kept[0] * kept[1], n), Axis(n, 4, 1)
    assert strategies._lanes_across_few([axis], [run]) == across
    assert strategies._lanes_across_few([axis], [outer, run]) == across_runs
    # Beside channels that adjoin in the input, an axis that adjoins in the output.
    channels = Axis(kept[1], 4, 8 * kept[0])
    assert strategies._lanes_along_the_next([axis, channels]) == (kept[1] <= 4)
    assert not strategies._lanes_along_the_next([channels, axis])


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
@pytest.mark.parametrize("elements", [2, 3, 5])
def test_short_groups_of_elements_apart(elements: int, name: str) -> None:
    """Lanes lie along the groups where the elements of each do not adjoin; rows have them to themselves."""
    random = np.random.default_rng(elements)
    wide = random.integers(0, 3, (3, 70, 2 * elements)).astype(numpy_type(name))
    given = packed(name, (3, 70, elements))
    host = Hardmax(axes=(2,), nan="propagates", input=given, output=given)
    size = wide.itemsize
    strategies = search_strategy.Strategies(
        element_bytes=size, out_bytes=size, one_hot=True, uncached=False
    )
    for x, across in (
        (wide[..., ::2], True),
        (wide[..., ::-2], True),
        (wide[..., :elements], False),
    ):
        visit = visited(x.shape, {2}, False, x.strides, x[..., ::-1].strides)
        assert strategies._lanes_across(visit.kept, visit.reduced) == across
        wanted = np.arange(elements) == x.argmax(2)[..., None]
        for place in (np.s_[:], np.s_[..., ::-1], np.s_[:, ::-1]):
            out = np.full(x.shape, 7, x.dtype)
            host(x, out[place])
            np.testing.assert_array_equal(out[place], wanted)


@pytest.mark.parametrize("columns", EDGES)
@pytest.mark.parametrize("name", TYPES)
def test_each_column_is_its_own(name: str, columns: int) -> None:
    """As many columns as fill a vector or a tile, one less, one more: none is missed or mixed up."""
    random = np.random.default_rng(columns)
    x = random.integers(0, 4, (6, columns)).astype(numpy_type(name))
    expected = np.arange(6)[:, None] == np.argmax(x, 0)
    np.testing.assert_array_equal(run(name, x, (0,), "ignored"), expected)
    np.testing.assert_array_equal(run(name, x[:, ::-1], (0,), "ignored"), expected[:, ::-1])


@pytest.mark.parametrize("name", TYPES)
def test_edge_cases_of_shapes(name: str) -> None:
    """Rank 0, rank above 8, no elements, no axes, axes in any order and any kind of sequence."""
    dtype = numpy_type(name)
    for nan in NAN_RULES:
        for number in (5, NAN, -INF):
            assert run(name, np.array(number, dtype), (), nan) == 1
        everything = run(name, np.full((3, 1, 5), np.nan, dtype), (), nan)
        assert np.array_equal(everything, np.ones((3, 1, 5)))
    deep = values(np.random.default_rng(2), name, (2,) * 14)
    for some in (range(0, 14, 2), range(7), range(7, 14), range(14)):
        expected = hardmax(deep, tuple(some))
        np.testing.assert_array_equal(run(name, deep, some, "ignored"), expected)
    x = values(np.random.default_rng(1), name, (4, 5, 6, 3))
    for nan, axes in itertools.product(NAN_RULES, itertools.permutations(range(1, 4))):
        wanted = hardmax(x, axes, nan)
        for several in (list(axes), tuple(axes), range(1, 4)):
            np.testing.assert_array_equal(run(name, x, several, nan), wanted)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4), (0, 0)], ids=str)
def test_no_elements(name: str, shape: tuple[int, ...]) -> None:
    """Nothing is read or written, whatever the axes."""
    random = np.random.default_rng(1)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            out = output(random, shape, numpy_type(name), "c")
            operator(name, shape, axes, "ignored")(np.zeros(shape, numpy_type(name)), out.array)
            out.check_surroundings()


# --- layouts ---


@pytest.mark.parametrize("name", TYPES)
def test_each_pair_of_layouts(name: str) -> None:
    """Every input layout with every output layout; one operator serves them all."""
    random = np.random.default_rng(7)
    shape = (5, 6, 17)
    for axes, nan in itertools.product(SETS, NAN_RULES):
        kernel = operator(name, shape, axes, nan)
        for kind, out_kind in itertools.product(INPUT_LAYOUTS, LAYOUTS):
            x, _ = laid_out(random, values(random, name, shape), kind)
            out = output(random, shape, x.dtype, out_kind)
            kernel(x, out.array)
            expected = hardmax(x, axes, nan)
            text = f"{kind} to {out_kind}, axes {axes}, {nan}"
            assert np.array_equal(bits(out.array), bits(expected)), text
            out.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
def test_field_of_a_structured_array(name: str) -> None:
    """Fields of packed records on both sides: the other fields stay."""
    random = np.random.default_rng(1)
    dtype = numpy_type(name)
    fields = [("before", "u1"), ("x", f"V{dtype.itemsize}"), ("after", "u2")]
    records, results = np.zeros((9, 70), fields), np.zeros((9, 70), fields)
    results["before"], results["after"] = 3, 517
    x, out = records["x"].view(dtype), results["x"].view(dtype)
    x[...] = values(random, name, x.shape)
    for axes in SETS[:3]:
        operator(name, x.shape, axes, "propagates")(x, out)
        np.testing.assert_array_equal(out, hardmax(x, axes, "propagates"))
        assert (results["before"] == 3).all() and (results["after"] == 517).all()


# --- threads ---

LARGE = [  # shape, axes
    ((1_000_001,), (0,)),  # one long row
    ((5, 300_001), (1,)),
    ((300, 3_001), (0,)),  # wide columns
    ((30_001, 40), (0,)),  # few columns, many rows
    ((300_001, 3), (0,)),
    ((9_011, 33), (1,)),  # many short rows
    ((7, 1_000, 129), (1,)),  # an axis in the middle
    ((16, 256, 129), (0, 2)),
    ((16, 256, 129), (0, 1, 2)),
    ((70, 1_000), ()),
]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
def test_large(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Arrays that are split over threads: right, and the same on one thread, on two and on all."""
    random = np.random.default_rng(math.prod(shape))
    dtype = numpy_type(name)
    ties = random.integers(0, 2, shape).astype(dtype)
    rare = np.zeros(shape, dtype)  # few winners, far apart
    rare.flat[random.integers(0, rare.size, 3)] = 1
    for number, packed_values in enumerate((ties, rare)):
        nan = NAN_RULES[number]
        packed_values.flat[random.integers(0, rare.size, 5)] = np.nan
        kind = INPUT_LAYOUTS[(LARGE.index((shape, axes)) + 4 * number) % len(INPUT_LAYOUTS)]
        x, _ = laid_out(random, packed_values, kind)
        expected = hardmax(x, axes, nan)
        kernel = operator(name, shape, axes, nan)
        for threads, out_kind in ((1, "c"), (2, "c"), (8, "any"), (2, "negative")):
            out = output(random, shape, dtype, out_kind)
            with specops.num_threads(threads):
                kernel(x, out.array)
            text = f"{kind} to {out_kind}, {threads} threads"
            assert np.array_equal(bits(out.array), bits(expected)), text
            out.check_surroundings()


def test_many_threads_at_once() -> None:
    """One operator called from many threads, each with layouts of its own."""
    shape, axes = (40, 30, 50), (0, 2)
    kernel = operator("FLOAT32", shape, axes, "ignored")
    random = np.random.default_rng(5)
    inputs = [
        laid_out(random, values(random, "FLOAT32", shape), INPUT_LAYOUTS[i % len(INPUT_LAYOUTS)])[0]
        for i in range(36)
    ]
    wanted = [hardmax(x, axes) for x in inputs]

    def repeat(i: int) -> bool:
        mine = np.random.default_rng(i)
        for _ in range(10):
            out = output(mine, shape, inputs[i].dtype)
            kernel(inputs[i], out.array)
            out.check_surroundings()
            if not np.array_equal(bits(out.array), bits(wanted[i])):
                return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(repeat, range(len(inputs))))


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_few_rows_to_outputs_with_gaps(name: str) -> None:
    """Rows along two axes are one in the input, but not in each output: only where they are, long planes are cut."""
    arena, dtype = Arena(), numpy_type(name)
    shape, axes = (2, 2, 2, 1100), (1, 2)
    x = np.random.default_rng(5).integers(-3, 4, shape).astype(dtype)
    groups = x.astype(np.float64).reshape(2, 4, 1100)
    wanted = (np.arange(4)[:, None] == groups.argmax(1)[:, None]).reshape(shape)
    for axis, upper in itertools.product((None, 0, 1, 2, 3), (False, True)):
        strides, step = [0] * 4, dtype.itemsize
        for d in (3, 2, 1, 0):
            strides[d] = step * (2 if d == axis else 1)
            step = strides[d] * shape[d]
        out = arena.place(shape, tuple(strides), dtype, upper)
        assert out is not None
        specops.hardmax(x, axis=axes, out=out)
        np.testing.assert_array_equal(out.astype(np.float64), wanted)
        assert arena.surroundings_kept(out)


# --- memory ---


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout."""
    for name, kind in itertools.product(TYPES, MEMORY_LAYOUTS):
        x = of_8_mebibytes(kind, numpy_type(name))
        place = layout(np.random.default_rng(4), "any", x.shape, x.itemsize)
        buffer = np.zeros(place.bytes, np.uint8)
        for axes in SETS[1:]:
            kernel = operator(name, x.shape, axes, "ignored")
            out_kind = "c" if len(axes) % 2 else "any"
            out = np.zeros(x.shape, x.dtype)
            if out_kind == "any":
                out = place.view(buffer, x.shape, x.dtype)
            yield f"{name} {kind} to {out_kind} {axes}", partial(kernel, x, out)
