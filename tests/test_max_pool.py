"""The contract of max pooling: each type, window, layout, tie and NaN, values and indices, against the oracle.

Every random case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from draw import (
    EDGES,
    INPUT_LAYOUTS,
    LAYOUTS,
    MEMORY_LAYOUTS,
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
    values,
)
from oracle import NAN_RULES, lowest, numbers
from pool_draw import (
    LARGE,
    TRANSPOSED,
    USUAL,
    beside,
    random_windows,
    rows_shared,
    simple,
    tall_windows,
)
from pool_oracle import Windows, check_values

import specops
from specops.kernels import max_pool as max_pool_kernel
from specops.lowering import machine, pool_reduction, pool_transposed, pooling
from specops.lowering import max_pool as max_pool_lowering
from specops.lowering.max_pool import MaxPool
from specops.lowering.pool_packed import packs
from specops.tensor import packed
from specops.vocabulary import DATA_TYPES
from stress.memory import Arena

FLOAT_TYPES = ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"]
TYPES = [*FLOAT_TYPES, *(f"{s}INT{w}" for s in ("", "U") for w in (64, 32, 16, 8)), "BOOL"]
INDEX_TYPES = ["UINT32", "UINT64", "INT64"]
ORDERS = ["row_major", "column_major"]
# Of these none can be transposed: windows of nothing but padding, at either end; steps between windows, or within them;
# elements that no window has; fewer planes than a vector has lanes, and fewer elements than are transposed at once;
# three axes. Of one it would not pay: few outputs of many elements.
LEFT = [
    ((64, 4, 9), Windows((2, 3), (1, 1), (1, 1), (2, 1), (6, 9))),
    ((64, 4, 9), Windows((2, 3), (1, 1), (1, 1), (1, 1), (6, 9))),
    ((64, 9, 9), Windows((3, 3), (2, 1), (1, 1), (1, 1), (5, 9))),
    ((64, 9, 9), Windows((3, 3), (1, 1), (1, 2), (1, 2), (9, 9))),
    ((64, 9, 9), Windows((3, 3), (1, 1), (1, 1), (1, 1), (9, 7))),
    ((7, 9, 9), Windows((3, 3), (1, 1), (1, 1), (1, 1), (9, 9))),
    ((64, 1, 1), Windows((2, 2), (1, 1), (1, 1), (1, 1), (2, 2))),
    ((64, 12, 9), Windows((11, 9), (1, 1), (1, 1), (0, 0), (2, 1))),
    ((64, 2, 9, 9), Windows((2, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1), (1, 9, 9))),
]
CASES = 240  # for each type
BATCH = 120


def lowered(
    windows: Windows,
    name: str,
    shape: tuple[int, ...],
    nan: str,
    order: str,
    index_type: str | None,
) -> MaxPool:
    sizes = windows.sizes(shape)
    return MaxPool(
        window=windows.window,
        strides=windows.strides,
        dilations=list(windows.dilations),
        start_padding=windows.padding,
        nan=nan,
        index_order=order,
        input=packed(name, shape),
        output=packed(name, sizes),
        indices=packed(index_type, sizes) if index_type else None,
    )


def check_pool(
    random: Random,
    name: str,
    x: np.ndarray,
    windows: Windows,
    nan: str,
    order: str,
    index_type: str,
    kind: str = "",
) -> None:
    """With indices and without, into random layouts or those of a kind."""
    expected, places = windows.expected(x, nan, order)
    out = output(random, expected.shape, x.dtype, kind)
    lowered(windows, name, x.shape, nan, order, None)(x, out.array)
    check_values(out.array, expected, False)
    out.check_surroundings()
    out = output(random, expected.shape, x.dtype, kind)
    indices = output(random, expected.shape, numpy_type(index_type), kind)
    lowered(windows, name, x.shape, nan, order, index_type)(x, out.array, indices.array)
    np.testing.assert_array_equal(indices.array, places.astype(indices.array.dtype), "indices")
    check_values(out.array, expected, True)
    out.check_surroundings()
    indices.check_surroundings()


# --- random cases ---


def check_case(name: str, number: int, group: int = 0) -> None:
    random = np.random.default_rng([TYPES.index(name), number, group])
    shape, windows = random_windows(random)
    nan, order = str(random.choice(NAN_RULES)), str(random.choice(ORDERS))
    index_type = str(random.choice(INDEX_TYPES))
    kind = str(random.choice(INPUT_LAYOUTS))
    x, buffer = laid_out(random, values(random, name, shape), kind)
    if random.random() < 0.3:
        x.flags.writeable = False
    text = (
        f"check_case({name!r}, {number}, {group}): {kind} {shape} {x.strides}, {windows}, {nan}, {order}, "
        f"{index_type}"
    )
    with case(text, buffer):
        check_pool(random, name, x, windows, nan, order, index_type)


@pytest.mark.parametrize("batch", range(CASES // BATCH))
@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str, batch: int) -> None:
    """Random shapes, windows, layouts and values give what the oracle gives."""
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        check_case(name, number)


@pytest.mark.parametrize("longest", [8, 512])
@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "INT64"])
def test_small_lines_and_items(name: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into short lines and small items, or without lines, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(pooling, "LINE_BYTES", 128)
    monkeypatch.setattr(pooling, "LONGEST_LINE", longest)
    monkeypatch.setattr(pooling, "ITEM_BYTES", 64)
    monkeypatch.setattr(pooling, "EDGE", 2)
    monkeypatch.setattr(max_pool_lowering, "GROUPED", 1)
    for number in range(120):
        if number == 60:
            last_item_first(monkeypatch)
        check_case(name, number, longest)


@pytest.mark.parametrize("name", ["UINT8", "INT16", "BFLOAT16", "FLOAT16"])
def test_wide_states(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States of 64 bits, which elements of 8 and 16 need where an item has many positions, give the same."""
    monkeypatch.setattr(max_pool_lowering, "state_widths", lambda _width: [64])
    for number in range(60):
        check_case(name, number, 64)


@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "UINT64"])
def test_windows_too_long_for_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By runs where elements adjoin, vectors and what is left of them; else element by element; or by groups."""
    monkeypatch.setattr(pooling, "LONGEST_LINE", 1)
    random = np.random.default_rng(TYPES.index(name))
    for number in range(80):
        edge = int(random.choice([1, 3, 16, 50])) if number >= 40 else 4096
        monkeypatch.setattr(pooling, "EDGE", edge)
        monkeypatch.setattr(max_pool_lowering, "GROUPED", 1)
        window = (int(random.integers(1, 4)), int(random.integers(6, 140)))
        shape = (2, window[0] + 1, window[1] + int(random.integers(40)))
        stride, padding = int(random.integers(1, 9)), int(random.choice([0, 0, 1, 70]))
        windows = simple(shape, window, stride, min(padding, window[0] - 1))
        x = values(random, name, shape)
        if number % 2:  # ties, often in several rows
            x = x.ravel()[random.integers(0, 3, x.size)].reshape(shape)
        x, _ = laid_out(random, x, str(random.choice(["c", "c", "any"])))
        nan, order = str(random.choice(NAN_RULES)), str(random.choice(ORDERS))
        try:
            check_pool(random, name, x, windows, nan, order, "INT64")
        except AssertionError as error:
            raise AssertionError(
                f"{number}: {shape} {x.strides}, {windows}, {nan}, {edge}: {error}"
            ) from error


@pytest.mark.parametrize(
    ("window", "stride", "padding"),
    [(33000, 1, 0), (40000, 3, 39000), (33000, 4097, 5), (20000, 20000, 0), (44999, 1, 44998)],
)
@pytest.mark.parametrize("name", ["FLOAT32", "INT64"])
def test_long_windows(
    name: str, window: int, stride: int, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each window as NumPy's search finds it, over one row and with few values, so that there are ties."""
    monkeypatch.setattr(max_pool_lowering, "GROUPED", 1)
    random = np.random.default_rng(window)
    x = random.integers(0, 50, (1, 45000)).astype(numpy_type(name))
    x[0, random.integers(0, 45000, 3)] = 60
    windows = simple(x.shape, (window,), stride, padding)
    count = windows.outputs[0]
    out, indices = np.full((1, count), 77, x.dtype), np.full((1, count), -7, np.int64)
    lowered(windows, name, x.shape, "ignored", "row_major", "INT64")(x, out, indices)
    begins = [i * stride - padding for i in range(count)]
    wanted = [x[0, max(b, 0) : b + window].argmax() + max(b, 0) for b in begins]
    np.testing.assert_array_equal(indices[0], wanted)
    np.testing.assert_array_equal(out[0], x[0, wanted])
    lowered(windows, name, x.shape, "ignored", "row_major", None)(x, out)
    np.testing.assert_array_equal(out[0], x[0, wanted])


def test_every_type_is_drawn() -> None:
    assert set(TYPES) == set(DATA_TYPES)


# --- what is easily wrong ---

NAN, INF = float("nan"), float("inf")
TIES = [  # a window; where its greatest element stands with NaN ignored; where NaN propagates
    ([3, 2, 3], 0, 0),
    ([1, 3, 3], 1, 1),
    ([-0.0, 0.0, -0.0], 0, 0),
    ([0.0, -0.0, 0.0], 0, 0),
    ([-1, -0.0, 0.0], 1, 1),
    ([NAN, -INF, NAN], 1, 0),
    ([-NAN, -INF, -INF], 1, 0),
    ([-INF, -INF, NAN], 0, 2),
    ([NAN, -NAN, NAN], 0, 0),
    ([1, -NAN, INF], 2, 1),
    ([INF, INF, NAN], 0, 2),
    ([1, NAN, 2], 2, 1),
]


@pytest.mark.parametrize(("window", "ignored", "propagated"), TIES, ids=str)
@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_ties_and_nan(name: str, window: list[float], ignored: int, propagated: int) -> None:
    """One window by literals: along each of three dimensions, few and many, channels first and last."""
    random = np.random.default_rng(1)
    dtype = numpy_type(name)
    for nan, place in (("ignored", ignored), ("propagates", propagated)):
        for axis, channels in itertools.product(range(3), (1, 3, 40)):
            shape = [1, 1, 1]
            shape[axis] = 3
            one = np.array(window, dtype).reshape(shape)
            x = np.ascontiguousarray(np.broadcast_to(one, (channels, *shape)))
            for given in (x, np.ascontiguousarray(x.transpose(1, 2, 3, 0)).transpose(3, 0, 1, 2)):
                windows = simple(given.shape, shape)
                kernel = lowered(windows, name, given.shape, nan, "row_major", "INT64")
                out = output(random, (channels, 1, 1, 1), dtype)
                indices = output(random, out.array.shape, np.dtype(np.int64))
                kernel(given, out.array, indices.array)
                flat = np.arange(channels) * 3 + place
                assert indices.array.reshape(-1).tolist() == flat.tolist()
                check_values(out.array.reshape(-1), x.reshape(-1)[flat], True)
                out = output(random, (channels, 1, 1, 1), dtype)
                lowered(windows, name, given.shape, nan, "row_major", None)(given, out.array)
                check_values(out.array.reshape(-1), x.reshape(-1)[flat], False)


@pytest.mark.parametrize("name", TYPES)
def test_least_values_beat_padding(name: str) -> None:
    """A window with a real element never takes padding's place, be the element the least there is; and only then."""
    dtype = numpy_type(name)
    least = [lowest(dtype), NAN, -NAN, -INF] if name in FLOAT_TYPES else [lowest(dtype)]
    for number, shape, nan in itertools.product(
        least, ((4,), (3, 4), (2, 20, 3), (2, 3, 3, 40)), NAN_RULES
    ):
        x = np.full(shape, number, dtype)
        window = (3, 3)[: min(2, x.ndim)]
        windows = simple(shape, window, 2, 5)  # the corners see padding only
        random = np.random.default_rng(1)
        check_pool(random, name, x, windows, nan, "row_major", "UINT32")
        expected, places = windows.expected(x, nan, "row_major")
        assert (places == -1).any() and (places >= 0).any()
        assert (numbers(expected)[places == -1] == lowest(dtype)).all()


@pytest.mark.parametrize("name", TYPES)
def test_odd_windows(name: str) -> None:
    """Windows of 1, windows larger than the input, strides and dilations that jump over it, padding beyond it."""
    random = np.random.default_rng(2)
    for windows in (
        Windows((1, 1), (1, 1), (1, 1), (0, 0), (5, 7)),
        Windows((1, 1), (3, 2), (9, 9), (0, 0), (2, 4)),
        Windows((1, 1), (1, 1), (1, 1), (3, 2), (12, 12)),
        Windows((9, 30), (1, 1), (1, 1), (4, 15), (5, 7)),
        Windows((9, 30), (2, 3), (1, 1), (20, 40), (12, 16)),
        Windows((3, 3), (1, 1), (6, 8), (6, 8), (5, 7)),
        Windows((2, 2), (1, 1), (5, 7), (5, 7), (11, 15)),
        Windows((2, 2), (50, 50), (1, 1), (1, 1), (3, 3)),
        Windows((2, 3), (7, 9), (1, 1), (0, 0), (1, 1)),
        Windows((64, 1), (1, 1), (1, 1), (63, 0), (69, 7)),
        Windows((1, 64), (1, 1), (1, 1), (0, 63), (5, 71)),
        Windows((2, 2), (1, 1), (1, 1), (100, 100), (3, 3)),
    ):
        for shape, nan, order in itertools.product(((5, 7), (2, 3, 5, 7)), NAN_RULES, ORDERS):
            for kind in ("c", "any"):
                x, _ = laid_out(random, values(random, name, shape), kind)
                check_pool(random, name, x, windows, nan, order, "UINT32")


@pytest.mark.parametrize("name", TYPES)
def test_elements_apart(name: str) -> None:
    """Every second, to every fifth, element of rows, backwards too; nothing is read beyond, where pages end."""
    arena, random, dtype = Arena(), np.random.default_rng(8), numpy_type(name)
    for n, apart in itertools.product((3, 16, 17, 33, 70), (-2, -1, 2, 3, 4, 5)):
        step = apart * dtype.itemsize
        row = abs(step) * n
        x = arena.place((2, 4, n), (4 * row, row, step), dtype, apart > 0)
        assert x is not None
        x[...] = values(random, name, x.shape)
        for window, stride, padding in (((2, 3), 1, 1), ((3, 3), 2, 0), ((4, 2), 3, 1)):
            windows = simple(x.shape, window, stride, padding)
            check_pool(random, name, x, windows, "propagates", "row_major", "INT64")


@pytest.mark.parametrize("name", TYPES)
def test_windows_side_by_side(name: str) -> None:
    """Long windows that lie side by side along the last axis make a reduction of rows, in any layout; others none."""
    random = np.random.default_rng(TYPES.index(name))
    least = pool_reduction.ROW_BYTES // numpy_type(name).itemsize
    for shape, width in (
        ((3, 2, 3 * least), least),
        ((2, 3, 2, 70 + least), 35),
        ((4, 5 * least + 3), least + 1),
        ((2, 2, 1, 40), 33),
    ):
        rank = max(1, len(shape) - 2)
        window = (*(1,) * (rank - 1), width)
        outputs = (*shape[len(shape) - rank : -1], shape[-1] // width)
        windows = Windows(window, window, (1,) * rank, (0,) * rank, outputs)
        assert lowered(windows, name, shape, "ignored", "row_major", None)._reduction is not None
        for nan, kind in itertools.product(NAN_RULES, INPUT_LAYOUTS):
            x, _ = laid_out(random, values(random, name, shape), kind)
            check_pool(random, name, x, windows, nan, "row_major", "UINT32")
    for windows in (
        Windows((1, 35), (1, 34), (1, 1), (0, 0), (2, 2)),
        Windows((1, 35), (1, 35), (1, 2), (0, 0), (2, 2)),
        Windows((1, 35), (1, 35), (1, 1), (0, 1), (2, 2)),
        Windows((1, 35), (1, 35), (1, 1), (0, 0), (2, 3)),
        Windows((1, 35), (1, 35), (1, 1), (0, 0), (1, 2)),
        Windows((1, 35), (1, 35), (1, 1), (0, 0), (3, 2)),
        Windows((1, 35), (2, 35), (1, 1), (0, 0), (1, 2)),
        Windows((1, 35), (2, 35), (1, 1), (0, 0), (2, 2)),
        Windows((2, 35), (1, 35), (1, 1), (0, 0), (2, 2)),
        Windows((1, least - 1), (1, least - 1), (1, 1), (0, 0), (2, 3)),
    ):
        assert lowered(windows, name, (3, 2, 70), "ignored", "row_major", None)._reduction is None
        check_pool(
            random,
            name,
            values(random, name, (3, 2, 70)),
            windows,
            "propagates",
            "row_major",
            "UINT32",
        )


@pytest.mark.parametrize("name", TYPES)
def test_whole_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that is all of a plane makes a reduction or a search, in any layout; padded or dilated it makes none."""
    monkeypatch.setattr(pooling, "PLANES_TOGETHER", 7)
    for limit in ("SEARCHED", "SEARCHED_BESIDE"):
        monkeypatch.setattr(max_pool_lowering, limit, 0)
    monkeypatch.setattr(max_pool_lowering, "POSITIONS_BESIDE", dict.fromkeys((8, 16, 32), 20))
    random = np.random.default_rng(TYPES.index(name))
    for shape, rank in (((3, 40, 7, 7), 2), ((2, 5, 4, 3, 6), 3), ((6, 33), 1), ((4, 2, 1, 5), 2)):
        windows = simple(shape, shape[-rank:])
        operator = lowered(windows, name, shape, "ignored", "row_major", None)
        assert operator._reduction is not None
        operator = lowered(windows, name, shape, "ignored", "row_major", "UINT32")
        assert operator._search is not None
        for nan, kind, order in itertools.product(NAN_RULES, INPUT_LAYOUTS, ORDERS):
            x, _ = laid_out(random, values(random, name, shape), kind)
            check_pool(random, name, x, windows, nan, order, str(random.choice(INDEX_TYPES)))
    for windows in (
        Windows((5, 7), (1, 1), (1, 1), (1, 0), (1, 1)),
        Windows((5, 7), (1, 1), (1, 2), (0, 0), (1, 1)),
        Windows((5, 6), (1, 1), (1, 1), (0, 0), (1, 1)),
        Windows((5, 7), (1, 1), (1, 1), (0, 0), (2, 1)),
    ):
        assert lowered(windows, name, (2, 5, 7), "ignored", "row_major", None)._reduction is None
        assert lowered(windows, name, (2, 5, 7), "ignored", "row_major", "UINT32")._search is None
        check_pool(
            random,
            name,
            values(random, name, (2, 5, 7)),
            windows,
            "propagates",
            "row_major",
            "UINT32",
        )


def test_two_elements_apart_are_no_whole_plane() -> None:
    """A dilated window of as many elements as a plane has reaches beyond it."""
    x = np.array([[[1, 2, 3], [4, 5, 6]]], np.float32)
    check_pool(
        np.random.default_rng(1),
        "FLOAT32",
        x,
        Windows((2, 3), (1, 1), (2, 1), (0, 0), (1, 1)),
        "ignored",
        "row_major",
        "UINT32",
    )


@pytest.mark.parametrize("name", TYPES)
def test_packed_planes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small planes that adjoin are packed where the processor can; those with gaps between rows are not."""
    random = np.random.default_rng(TYPES.index(name))
    taken = noted(monkeypatch, max_pool_lowering, "_PACKED")
    for (*shape, columns), sizes in PACKED:
        x = values(random, name, (*shape, columns + 1))[..., 1:]
        for given, nan in itertools.product((x.copy(), x), NAN_RULES):
            check_pool(random, name, given, Windows(*sizes), nan, "row_major", "UINT32", "c")
    assert len(taken) == packs() * len(PACKED) * len(NAN_RULES)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("tile", "calls"), [(pool_transposed.TILE, 36), (64, 16)])
def test_transposed_planes(
    name: str, tile: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows over as many planes as a vector has lanes, which adjoin or lie side by side, whole or in tiles."""
    monkeypatch.setattr(pool_transposed, "TILE", tile)
    transpose_short_windows(monkeypatch)
    random = np.random.default_rng(TYPES.index(name))
    taken = noted(monkeypatch, max_pool_lowering, "_TRANSPOSED")
    for shape, windows in TRANSPOSED:
        x = values(random, name, shape)
        apart = beside(values(random, name, shape))
        for given, nan in itertools.product((x, apart, apart[..., ::-1, ::-1]), NAN_RULES):
            expected, _ = windows.expected(given, nan, "row_major")
            out = np.empty_like(given, shape=expected.shape)
            lowered(windows, name, shape, nan, "row_major", None)(given, out)
            check_values(out, expected, False)
    assert len(taken) == calls


def test_transposed_planes_of_many_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than of channels, which lie side by side: each is an item."""
    transpose_short_windows(monkeypatch)
    taken = noted(monkeypatch, max_pool_lowering, "_TRANSPOSED")
    windows = Windows((3, 3), (1, 1), (1, 1), (1, 1), (9, 9))
    x = np.moveaxis(values(np.random.default_rng(1), "FLOAT32", (20, 9, 9, 16)), -1, 1)
    expected, _ = windows.expected(x, "ignored", "row_major")
    out = np.zeros_like(x)
    lowered(windows, "FLOAT32", x.shape, "ignored", "row_major", None)(x, out)
    check_values(out, expected, False)
    assert len(taken) == 1


@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "INT64"])
def test_planes_that_are_not_transposed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transpose_short_windows(monkeypatch)
    random = np.random.default_rng(TYPES.index(name))
    taken = noted(monkeypatch, max_pool_lowering, "_TRANSPOSED")
    for shape, windows in LEFT:
        x = values(random, name, shape)
        check_pool(random, name, x, windows, "propagates", "row_major", "UINT32", "c")
    for shape, windows in LEFT[:4]:  # neither where planes lie side by side
        x = beside(values(random, name, shape))
        expected, _ = windows.expected(x, "ignored", "row_major")
        out = beside(np.empty_like(expected))
        lowered(windows, name, shape, "ignored", "row_major", None)(x, out)
        check_values(out, expected, False)
    # An output whose planes do not lie side by side, as those of the input do; and one whose rows do not adjoin.
    windows = Windows((3, 3), (1, 1), (1, 1), (1, 1), (9, 9))
    x = values(random, name, (9, 9, 64))
    for given in (np.moveaxis(x, -1, 0), np.moveaxis(x, -1, 0).copy()):
        out = np.empty((64, 9, 10), x.dtype)[..., 1:]
        lowered(windows, name, given.shape, "ignored", "row_major", None)(given, out)
        check_values(out, windows.expected(given, "ignored", "row_major")[0], False)
    # Images that lie side by side in the output alone; their one channel would in the input, were it several.
    x = np.moveaxis(values(random, name, (64, 9, 9, 2))[..., :1], -1, 1)
    out = np.moveaxis(np.empty((1, 9, 9, 64), x.dtype), -1, 0)
    lowered(windows, name, x.shape, "ignored", "row_major", None)(x, out)
    check_values(out, windows.expected(x, "ignored", "row_major")[0], False)
    # One plane less than a vector has lanes: the vector would begin before the first.
    fewer = (max_pool_kernel.VECTOR_BYTES // numpy_type(name).itemsize - 1, 9, 9)
    check_pool(
        random, name, values(random, name, fewer), windows, "ignored", "row_major", "UINT32", "c"
    )
    assert not taken


def transpose_short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_transposed, "SHARED", 0)
    for shortest in ("SHORTEST", "SHORTEST_NEAR", "UNPACKED", "UNPACKED_BESIDE", "UNPACKED_NEAR"):
        monkeypatch.setattr(max_pool_lowering, shortest, 2)


@pytest.mark.parametrize("name", ["UINT8", "FLOAT16", "FLOAT32", "INT64"])
@pytest.mark.parametrize("size", EDGES)
def test_every_element_is_seen(name: str, size: int) -> None:
    """Rows of each length around a vector; and as many channels, innermost in memory."""
    random = np.random.default_rng(size)
    for window, stride, padding, dilation in (
        (2, 2, 0, 1),
        (3, 2, 1, 1),
        (3, 1, 1, 1),
        (7, 1, 3, 2),
    ):
        row = random.permutation(3 * size).reshape(1, 3, size) % 120
        x = np.ascontiguousarray(row.astype(numpy_type(name)))
        windows = simple(x.shape, (1, window), stride, 0, dilation)
        outputs = (size + 2 * padding - (window - 1) * dilation - 1) // stride + 1
        windows = Windows((1, window), (1, stride), (1, dilation), (0, padding), (3, outputs))
        check_pool(random, name, x, windows, "ignored", "row_major", "UINT32")
        if window < 7:
            memory = np.ascontiguousarray(row.reshape(3, size, 1).transpose(0, 2, 1))
            last = memory.astype(numpy_type(name)).transpose(2, 1, 0)  # [size, 1, 3]
            windows = Windows((1, 2), (1, 1), (1, 1), (0, padding), (1, 3))
            check_pool(random, name, last, windows, "ignored", "row_major", "UINT32")


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 64])
@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "FLOAT64"])
def test_each_width_of_a_window(name: str, window: int) -> None:
    """Wide windows may be computed by doubling or in blocks: each width, with each stride and dilation."""
    random = np.random.default_rng(window)
    for stride, dilation, down in itertools.product((1, 2, 3, 4, 5), (1, 2), (False, True)):
        reach = (window - 1) * dilation + 1
        n = reach + 20
        outputs = (n + window // 2 - reach) // stride + 2
        along = ((1, window), (1, stride), (1, dilation), (0, window // 2), (2, outputs))
        windows = Windows(*(pair[::-1] if down else pair for pair in along))
        shape = (1, n, 2) if down else (1, 2, n)
        x = values(random, name, shape)
        for nan in NAN_RULES:
            check_pool(random, name, x, windows, nan, "row_major", "INT64")


@pytest.mark.parametrize("tall_bytes", [pooling.TALL_BYTES, 4096])
@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "INT64"])
def test_tall_windows(name: str, tall_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are folded by doubling where windows share many: each height, whole planes and blocks of them."""
    monkeypatch.setattr(pooling, "TALL_BYTES", tall_bytes)
    taken = rows_shared(monkeypatch)
    random = np.random.default_rng(8)
    for x, windows in tall_windows(lambda shape: values(random, name, shape)):
        nan = NAN_RULES[len(taken) % 2]
        check_pool(random, name, x, windows, nan, "row_major", "INT64", "c")
    assert sum(taken) > 10


@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "FLOAT64"])
def test_windows_of_many_rows(name: str) -> None:
    """More rows in a window than any table of them holds: the greatest element in the first, last or any of them."""
    random = np.random.default_rng(6)
    for shape, window in (((2, 700, 5), (300, 2)), ((1, 30, 30, 4), (23, 24, 2))):
        x, _ = laid_out(random, values(random, name, shape), "sliced")
        windows = simple(shape, window, 77, 0)
        for nan in NAN_RULES:
            check_pool(random, name, x, windows, nan, "row_major", "INT64")
        rare = np.zeros(shape, numpy_type(name))
        rare[0].flat[random.integers(rare[0].size, size=2)] = 1
        check_pool(random, name, rare, windows, "ignored", "column_major", "INT64")


@pytest.mark.parametrize("name", TYPES)
def test_64_bit_extremes_and_neighbours(name: str) -> None:
    """The special values of each type, each beside each."""
    random = np.random.default_rng(3)
    special = np.unique(
        np.concatenate([values(random, name, (50,)) for _ in range(8)]).view(
            f"u{numpy_type(name).itemsize}"
        )
    )
    pairs = np.array(list(itertools.product(random.permutation(special)[:40], repeat=2)))
    x = pairs.astype(special.dtype).view(numpy_type(name))
    for nan in NAN_RULES:
        check_pool(random, name, x, simple(x.shape, (2,)), nan, "row_major", "INT64")


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_indices_by_literals(index_type: str, order: str) -> None:
    """Flat indices over the whole input, batches included; nothing but padding gives all bits set."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    windows = Windows((2, 2), (2, 2), (1, 1), (0, 0), (2, 3))
    out = np.zeros((2, 2, 3), np.float32)
    indices = np.zeros((2, 2, 3), numpy_type(index_type))
    lowered(windows, "FLOAT32", x.shape, "ignored", order, index_type)(x, out, indices)
    no = -1 if index_type.startswith("INT") else 2 ** int(index_type[-2:]) - 1
    assert out.tolist() == [[[5, 7, -INF], [9, 11, -INF]], [[17, 19, -INF], [21, 23, -INF]]]
    if order == "row_major":
        assert indices.tolist() == [[[5, 7, no], [9, 11, no]], [[17, 19, no], [21, 23, no]]]
    else:  # row r and column c of plane p: 12 * p + r + 3 * c
        assert indices.tolist() == [[[4, 10, no], [5, 11, no]], [[16, 22, no], [17, 23, no]]]


@pytest.mark.parametrize("name", ["INT8", "FLOAT16", "FLOAT32", "INT64"])
def test_planes_of_more_than_65536_elements(name: str) -> None:
    """Positions that no 16-bit number holds, as rows and as one line, in planes of each size around it."""
    random = np.random.default_rng(4)
    for shape in ((2, 256, 256), (1, 257, 257), (2, 65_535), (2, 65_536), (1, 65_537)):
        x, _ = laid_out(random, values(random, name, shape), "c")
        last = (slice(None), *(slice(-2, None) for _ in shape[1:]))
        x[last] = 1
        spatial = shape[1:]
        for stride in (511, 9_973):
            step = tuple(min(stride, max(1, n // 3)) for n in spatial)
            outputs = tuple((n - 1) // s + 1 for n, s in zip(spatial, step, strict=True))
            # The last windows end at the last element.
            padding = tuple(
                (o - 1) * s + 2 - n for n, s, o in zip(spatial, step, outputs, strict=True)
            )
            windows = Windows(
                (2,) * len(spatial),
                step,
                (1,) * len(spatial),
                tuple(max(0, p) for p in padding),
                outputs,
            )
            for order in ORDERS:
                check_pool(random, name, x, windows, "propagates", order, "INT64")


@pytest.mark.parametrize(
    ("shape", "window", "stride", "dilation", "state_bytes"),
    [
        ((1, 183, 181), (3, 3), 1, (1, 1), 4),
        ((1, 183, 181), (2, 3), 2, (1, 1), 4),
        ((1, 20, 41, 50), (2, 2, 2), 2, (1, 1, 1), 4),
        # 2**15 - 1 positions, one less than is too many
        ((1, 14, 31, 151), (2, 3, 3), 1, (6, 1, 1), 4),
        ((1, 16, 32, 128), (2, 3, 3), 1, (7, 1, 1), 8),
    ],
)
def test_positions_from_an_items_first_element(
    shape: tuple[int, ...],
    window: tuple[int, ...],
    stride: int,
    dilation: tuple[int, ...],
    state_bytes: int,
) -> None:
    """A state is as wide as the positions of an item need, however large the plane: 16-bit elements in both widths."""
    random = np.random.default_rng(len(shape))
    x, _ = laid_out(random, values(random, "FLOAT16", shape), "c")
    x[..., -1, -1] = np.inf
    outputs = tuple(
        (n + 2 - (w - 1) * d - 1) // stride + 1
        for n, w, d in zip(shape[1:], window, dilation, strict=True)
    )
    rank = len(window)
    windows = Windows(window, (stride,) * rank, dilation, (1,) * rank, outputs)
    kernel = lowered(windows, "FLOAT16", shape, "ignored", "row_major", "INT64")
    out, indices = (np.empty(windows.sizes(shape), t) for t in (np.float16, np.int64))
    walk = kernel._windows.walk(x.strides, out.strides, indices.strides)
    assert walk.state_bytes == state_bytes
    for nan, order in zip(NAN_RULES, ORDERS, strict=True):
        check_pool(random, "FLOAT16", x, windows, nan, order, "INT64", "c")


def test_a_plane_of_more_than_24_bits() -> None:
    """An 8-bit type whose positions need more than the 24 bits beside it, without lines."""
    shape = (1, 2**24 + 33)
    x = np.zeros(shape, np.uint8)
    x[0, [5, 2**24 - 1, 2**24, 2**24 + 1, 2**24 + 32]] = [7, 3, 3, 4, 9]
    window = (2**20,)
    windows = Windows(window, window, (1,), (2**20 - 33,), (18,))
    kernel = lowered(windows, "UINT8", shape, "ignored", "row_major", "UINT64")
    out, indices = np.zeros((1, 18), np.uint8), np.zeros((1, 18), np.uint64)
    kernel(x, out, indices)
    blocks = [
        range(max(0, i * 2**20 - 2**20 + 33), (i + 1) * 2**20 - 2**20 + 33) for i in range(18)
    ]
    expected = [
        b.start + int(x[0, b.start : b.stop].argmax()) for b in blocks if b.start < shape[1]
    ]
    assert indices[0, : len(expected)].tolist() == expected
    assert out[0, : len(expected)].tolist() == x[0, expected].tolist()


@pytest.mark.parametrize("name", ["UINT8", "FLOAT16", "FLOAT32", "FLOAT64"])
def test_long_lines(name: str) -> None:
    """Lines longer than any buffer: cut into pieces, each piece with its window's reach."""
    random = np.random.default_rng(5)
    dtype = numpy_type(name)
    for n, window, stride, dilation in (
        (40_000, 3, 2, 1),
        (20_001, 2, 1, 1),
        (50_000, 9, 7, 1_000),
        (90_000, 60_000, 9_000, 1),  # a window larger than a buffer
        (90_000, 3, 7_001, 40_000),
    ):
        reach = (window - 1) * dilation + 1
        x = random.integers(0, 100, (1, n)).astype(dtype)
        windows = Windows((window,), (stride,), (dilation,), (5,), ((n + 5 - reach) // stride + 2,))
        check_pool(random, name, x, windows, "ignored", "row_major", "UINT32")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4), (0, 4, 4), (0, 0, 2, 2)], ids=str)
def test_no_elements(name: str, shape: tuple[int, ...]) -> None:
    """No batch: nothing is read or written."""
    random = np.random.default_rng(1)
    windows = simple(shape, (2, 2))
    out = output(random, windows.sizes(shape), numpy_type(name), "c")
    indices = output(random, windows.sizes(shape), np.dtype(np.uint32), "c")
    x = np.zeros(shape, numpy_type(name))
    lowered(windows, name, shape, "ignored", "row_major", None)(x, out.array)
    lowered(windows, name, shape, "ignored", "row_major", "UINT32")(x, out.array, indices.array)
    out.check_surroundings()
    indices.check_surroundings()


@pytest.mark.parametrize("name", ["INT16", "FLOAT32"])
def test_no_elements_on_one_side(name: str) -> None:
    """No output: nothing is written. No input, but outputs: every window holds nothing but padding."""
    random = np.random.default_rng(1)
    for shape, outputs in (
        ((2, 5, 5), (0, 3)),
        ((2, 0, 5), (2, 3)),
        ((2, 5, 0), (4, 3)),
        ((0,), (4,)),
    ):
        ones = (1,) * len(outputs)
        windows = Windows((2,) * len(outputs), ones, ones, ones, outputs)
        x = np.zeros(shape, numpy_type(name))
        check_pool(random, name, x, windows, "ignored", "row_major", "UINT32")


def test_many_dimensions() -> None:
    """12 batch and 8 spatial dimensions; no batch dimension at all."""
    random = np.random.default_rng(6)
    for name in ("FLOAT16", "INT32"):
        shape = (1, 2) * 3 + (1,) * 6 + (2, 3) * 4
        x, _ = laid_out(random, values(random, name, shape), "permuted")
        windows = Windows((2,) * 8, (2,) * 8, (1,) * 8, (0, 1) * 4, (1, 2) * 4)
        for nan, order in itertools.product(NAN_RULES, ORDERS):
            # Gaps along so many dimensions would take gigabytes.
            check_pool(random, name, x, windows, nan, order, "UINT64", "permuted")
        x, _ = laid_out(random, values(random, name, (17,)), "negative")
        check_pool(random, name, x, simple((17,), (3,), 2, 1), "propagates", "row_major", "UINT32")


# --- layouts ---


@pytest.mark.parametrize("name", TYPES)
def test_each_pair_of_layouts(name: str) -> None:
    """Every input layout with every output layout; one operator serves them all."""
    random = np.random.default_rng(7)
    for number, (sizes, window, stride, padding, dilation) in enumerate(USUAL[:3]):
        shape = (2, 3, *sizes)
        windows = simple(shape, window, stride, padding, dilation)
        nan, order = NAN_RULES[number % 2], ORDERS[number % 2]
        plain = lowered(windows, name, shape, nan, order, None)
        indexed = lowered(windows, name, shape, nan, order, "UINT32")
        for kind in INPUT_LAYOUTS:
            x, _ = laid_out(random, values(random, name, shape), kind)
            expected, places = windows.expected(x, nan, order)
            for out_kind in LAYOUTS:
                out = output(random, expected.shape, x.dtype, out_kind)
                plain(x, out.array)
                check_values(out.array, expected, False)
                out.check_surroundings()
                out = output(random, expected.shape, x.dtype, out_kind)
                indices = output(random, expected.shape, np.dtype(np.uint32))
                indexed(x, out.array, indices.array)
                wanted = places.astype(np.uint32)
                np.testing.assert_array_equal(indices.array, wanted, f"{kind} to {out_kind}")
                check_values(out.array, expected, True)
                out.check_surroundings()
                indices.check_surroundings()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("channels", [1, 3, 16, 33, 130])
def test_channels_last(name: str, channels: int) -> None:
    """NHWC memory under NCHW sizes, on both sides or one."""
    random = np.random.default_rng(channels)
    for sizes, window, stride, padding, dilation in USUAL if channels < 100 else USUAL[:1]:
        memory = values(random, name, (1, *sizes, channels))
        x = memory.transpose(0, 3, 1, 2)
        windows = simple(x.shape, window, stride, padding, dilation)
        expected, places = windows.expected(x, "ignored", "row_major")
        for last in (False, True):
            out, indices = np.full_like(expected, 7), np.full_like(places, 7)
            if last:
                out = np.ascontiguousarray(out.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
                indices = np.ascontiguousarray(indices.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            lowered(windows, name, x.shape, "ignored", "row_major", "INT64")(x, out, indices)
            check_values(np.ascontiguousarray(out), expected, True)
            np.testing.assert_array_equal(indices, places)
            out[...] = 7
            lowered(windows, name, x.shape, "ignored", "row_major", None)(x, out)
            check_values(out, expected, False)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("name", ["UINT8", "FLOAT16", "FLOAT32", "INT64"])
def test_indices_past_the_caches(name: str, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels last, in whole vectors or not, with indices at multiples of 16 bytes or between."""
    monkeypatch.setattr(machine, "MOVED_PAST_BYTES", 0)
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng(shift)
    for channels in (15, 16, 48):
        x = values(random, name, (2, 7, 6, channels)).transpose(0, 3, 1, 2)
        windows = simple(x.shape, (3, 2), 2, 1)
        expected, places = windows.expected(x, "ignored", "row_major")
        memory = np.full(places.size + 4, 7)
        last = [places.shape[d] for d in (0, 2, 3, 1)]
        indices = memory[2 + shift :][: places.size].reshape(last).transpose(0, 3, 1, 2)
        out = np.empty_like(indices, expected.dtype)
        operator = lowered(windows, name, x.shape, "ignored", "row_major", "INT64")
        plan = operator._plans[x.strides, out.strides, indices.strides]
        assert plan.walk.block[max_pool_kernel.PAST] == (channels % 16 == 0)
        operator(x, out, indices)
        check_values(out, expected, True)
        np.testing.assert_array_equal(indices, places)
        assert {*memory[: 2 + shift], *memory[2 + shift + places.size :]} == {7}


@pytest.mark.parametrize("name", TYPES)
def test_field_of_a_structured_array(name: str) -> None:
    """Fields of packed records on both sides: the other fields stay."""
    random = np.random.default_rng(1)
    dtype = numpy_type(name)
    fields = [("before", "u1"), ("x", f"V{dtype.itemsize}"), ("after", "u2")]
    records, results = np.zeros((3, 9, 20), fields), np.zeros((3, 9, 20), fields)
    results["before"], results["after"] = 3, 517
    x, out = records["x"].view(dtype), results["x"].view(dtype)
    x[...] = values(random, name, x.shape)
    windows = simple(x.shape, (3, 3), 1, 1)
    lowered(windows, name, x.shape, "propagates", "row_major", None)(x, out)
    check_values(out, windows.expected(x, "propagates", "row_major")[0], False)
    assert (results["before"] == 3).all() and (results["after"] == 517).all()


# --- threads ---


@pytest.mark.parametrize("name", ["UINT8", "FLOAT16", "FLOAT32", "INT64"])
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
    """Inputs that are split over threads: right, and the same on one thread, on two and on all."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng(math.prod(shape))
    windows = simple(shape, window, stride, padding, dilation)
    x = random.integers(0, 50, shape).astype(numpy_type(name))
    if x.dtype.kind == "f":
        x.flat[random.integers(0, x.size, 20)] = np.nan
    expected, places = windows.expected(x, "propagates", "row_major")
    plain = lowered(windows, name, shape, "propagates", "row_major", None)
    indexed = lowered(windows, name, shape, "propagates", "row_major", "UINT32")
    channels_last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    for given in (x, channels_last):
        for threads, kind in ((1, "c"), (2, "c"), (8, "any"), (2, "fortran")):
            with specops.num_threads(threads):
                out = output(random, expected.shape, x.dtype, kind)
                plain(given, out.array)
                check_values(out.array, expected, False)
                out.check_surroundings()
                out = output(random, expected.shape, x.dtype, kind)
                indices = output(random, expected.shape, np.dtype(np.uint32), kind)
                indexed(given, out.array, indices.array)
            np.testing.assert_array_equal(indices.array, places, f"{kind}, {threads} threads")
            check_values(out.array, expected, True)
            out.check_surroundings()
            indices.check_surroundings()


def test_many_threads_at_once() -> None:
    """One operator called from many threads, each with layouts of its own."""
    shape = (4, 20, 30, 31)
    windows = simple(shape, (3, 3), 2, 1)
    random = np.random.default_rng(5)
    kernel = lowered(windows, "FLOAT32", shape, "ignored", "row_major", "INT64")
    inputs = []
    for i in range(18):
        x = values(random, "FLOAT32", shape)
        inputs.append(laid_out(random, x, INPUT_LAYOUTS[i % len(INPUT_LAYOUTS)])[0])
    wanted = [windows.expected(x, "ignored", "row_major") for x in inputs]

    def repeat(i: int) -> bool:
        mine = np.random.default_rng(i)
        expected, places = wanted[i]
        for _ in range(10):
            out = output(mine, expected.shape, expected.dtype)
            indices = output(mine, expected.shape, places.dtype)
            kernel(inputs[i], out.array, indices.array)
            np.testing.assert_array_equal(indices.array, places)
            check_values(out.array, expected, True)
            out.check_surroundings()
            indices.check_surroundings()
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(repeat, range(len(inputs))))


# --- memory ---


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in each layout, with indices and without."""
    for name, kind in itertools.product(TYPES, MEMORY_LAYOUTS):
        x = of_8_mebibytes(kind, numpy_type(name))
        for window, stride, padding in (((2, 2), 2, 0), ((13, 13), 7, 6)):
            windows = simple(x.shape, window, stride, padding)
            out = np.zeros(windows.sizes(x.shape), x.dtype)
            indices = np.zeros(out.shape, np.uint32)
            plain = lowered(windows, name, x.shape, "ignored", "row_major", None)
            yield f"{name} {kind} {window}", partial(plain, x, out)
            indexed = lowered(windows, name, x.shape, "ignored", "row_major", "UINT32")
            text = f"{name} {kind} {window} with indices"
            yield text, partial(indexed, x, out, indices)
