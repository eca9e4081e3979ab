"""The contract of the gradients of average and max pooling, and of max unpooling, against sums in Python.

Every random case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from draw import (
    INPUT_LAYOUTS,
    LAYOUTS,
    Call,
    Random,
    case,
    laid_out,
    last_item_first,
    noted,
    numpy_type,
    of_8_mebibytes,
    output,
    random_shape,
    values,
)
from oracle import NAN_RULES, numbers
from pool_draw import DIVISORS, LARGE, USUAL, drawn, random_windows, simple
from pool_oracle import Windows, average_grad, check_close, max_grad, unpooled

import specops
from specops import launch
from specops.lowering import machine, max_pool_grad, max_unpool, pooling
from specops.lowering.average_pool_grad import AveragePoolGrad
from specops.lowering.max_pool_grad import MaxPoolGrad
from specops.lowering.max_unpool import MaxUnpool
from specops.tensor import packed

TYPES = ["FLOAT32", "FLOAT16", "FLOAT64", "BFLOAT16"]
CASES = 100  # for each type


def average_operator(
    name: str, shape: tuple[int, ...], w: Windows, end: tuple[int, ...], divisor: str
) -> AveragePoolGrad:
    return AveragePoolGrad(
        window=w.window,
        strides=w.strides,
        start_padding=w.padding,
        end_padding=end,
        divisor=divisor,
        input=packed(name, w.sizes(shape)),
        output=packed(name, shape),
    )


def max_operator(name: str, shape: tuple[int, ...], w: Windows, nan: str) -> MaxPoolGrad:
    return MaxPoolGrad(
        window=w.window,
        strides=w.strides,
        dilations=w.dilations,
        start_padding=w.padding,
        nan=nan,
        input=packed(name, shape),
        gradient=packed(name, w.sizes(shape)),
        output=packed(name, shape),
    )


def check(
    random: Random,
    name: str,
    run: Callable[[np.ndarray], None],
    expected: tuple[np.ndarray, np.ndarray],
    kind: str = "",
) -> np.ndarray:
    out = output(random, expected[0].shape, numpy_type(name), kind)
    run(out.array)
    check_close(name, out.array, *expected)
    out.check_surroundings()
    return out.array


def check_average(
    random: Random, name: str, shape: tuple[int, ...], w: Windows, kind: str = "", given: str = ""
) -> None:
    """The gradient of an average, from a layout of a kind into one of a kind, random ones by default."""
    w = Windows(w.window, w.strides, (1,) * len(w.window), w.padding, w.outputs)
    end = tuple(int(random.integers(0, k + 2)) for k in w.window)
    divisor = str(random.choice(DIVISORS))
    given = given or str(random.choice(INPUT_LAYOUTS))
    gradient, buffer = laid_out(random, drawn(random, name, w.sizes(shape)), given)
    with case(f"average {divisor} {end}, {name} {given} {shape} {w}", buffer):
        kernel = average_operator(name, shape, w, end, divisor)
        expected = average_grad(name, gradient, shape, w, end, divisor)
        check(random, name, lambda out: kernel(gradient, out), expected, kind)


def check_max(
    random: Random, name: str, shape: tuple[int, ...], w: Windows, kind: str = "", given: str = ""
) -> None:
    """The gradient of max pooling, as check_average."""
    nan = str(random.choice(NAN_RULES))
    kinds = [given or str(random.choice(INPUT_LAYOUTS)) for _ in range(2)]
    gradient, buffer = laid_out(random, drawn(random, name, w.sizes(shape)), kinds[0])
    x, x_buffer = laid_out(random, values(random, name, shape), kinds[1])
    with case(f"max {nan}, {name} {kinds} {shape} {w}", buffer, x_buffer):
        kernel = max_operator(name, shape, w, nan)
        expected = max_grad(name, x, gradient, w, nan)
        check(random, name, lambda out: kernel(x, gradient, out), expected, kind)


def check_case(name: str, number: int, group: int = 0) -> None:
    random = np.random.default_rng([TYPES.index(name), number, group])
    shape, windows = random_windows(random)
    check_average(random, name, shape, windows)
    check_max(random, name, shape, windows)


@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str) -> None:
    """Random shapes, windows, layouts and values give what sums in Python give."""
    for number in range(CASES):
        check_case(name, number)


@pytest.mark.parametrize("longest", [8, 512])
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_small_blocks(name: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into short lines and small blocks, or without lines, over threads, small cases give the same."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    monkeypatch.setattr(pooling, "LINE_BYTES", 128)
    monkeypatch.setattr(pooling, "LONGEST_LINE", longest)
    monkeypatch.setattr(pooling, "ITEM_BYTES", 64)
    monkeypatch.setattr(pooling, "EDGE", 2)
    monkeypatch.setattr(max_pool_grad, "GROUPED", 1)
    monkeypatch.setattr(max_pool_grad, "SUM_BYTES", longest)
    monkeypatch.setattr(max_pool_grad, "SIDE_BY_SIDE_BYTES", longest)
    monkeypatch.setattr(max_pool_grad, "PLANE_BYTES", 4 * longest)
    for number in range(60):
        if number == 30:
            last_item_first(monkeypatch)
        check_case(name, number, longest)


def test_wide_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of 64 bits, which elements of 16 need where an item has many positions, give the same."""
    monkeypatch.setattr(max_pool_grad, "state_widths", lambda _width: [64])
    for number in range(60):
        check_case("FLOAT16", number, 64)


def test_many_windows_of_one_element() -> None:
    """More windows than are looked at together, along one dimension and along the last of two."""
    random = np.random.default_rng(3)
    shape: tuple[int, ...]
    for shape, windows in (
        ((1, 3, 30_000), Windows((2, 3), (1, 1), (1, 1), (1, 2), (4, 30_002))),
        ((1, 5, 3, 700), Windows((2, 3, 3), (1, 1, 1), (2, 1, 5), (1, 2, 1), (5, 5, 700))),
    ):
        check_max(random, "FLOAT32", shape, windows, "c", "c")
    for shape, windows in (
        ((1, 1, 30_000), Windows((1, 3), (1, 2), (1, 1), (0, 2), (1, 15_001))),
        ((1, 30), Windows((900,), (1,), (1,), (899,), (929,))),
        ((1, 40_000), Windows((36_000,), (30_000,), (1,), (5,), (2,))),  # no line holds it
    ):
        check_average(random, "FLOAT32", shape, windows, "c", "c")


def test_few_windows_of_many_elements() -> None:
    """More positions than the narrow states of 16 bits count; windows as long as lines may be, of several planes."""
    random = np.random.default_rng(4)
    windows = Windows((3, 2), (1, 15_000), (1, 1), (0, 0), (1, 2))
    check_max(random, "FLOAT16", (1, 3, 20_000), windows, "c", "c")
    check_average(random, "FLOAT32", (3, 6_000), Windows((6_000,), (50,), (1,), (70,), (3,)), "c")
    check_average(random, "FLOAT32", (2, 90, 100), simple((90, 100), (90, 100)), "c")


def test_sums_of_many_windows_are_wide() -> None:
    """What one row gets of thousands of windows: a great share first, beside which float32 would lose the others."""
    windows = Windows((4000, 1), (1, 1), (1, 1), (0, 0), (4000, 3))
    gradient = np.full(windows.outputs, 4000, np.float32)
    gradient[0] = 4000 * 2.0**24
    out = np.empty((7999, 3), np.float32)
    average_operator("FLOAT32", out.shape, windows, (0, 0), "inside")(gradient, out)
    assert (out[3999] == 2.0**24 + 4000).all()  # of 3999 shares of 1, to the nearest even


def test_sets_of_planes_end_with_their_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of planes with gaps an item takes those of one image: of five in fours, none is left of any image."""
    monkeypatch.setattr(max_pool_grad, "PLANE_BYTES", 4 * 8 * 16)
    monkeypatch.setattr(pooling, "ITEM_BYTES", 4 * 4 * 16)
    random = np.random.default_rng(9)
    shape = (3, 5, 4, 4)
    windows = simple(shape, (2, 2))
    x = random.integers(0, 9, (3, 6, 4, 4)).astype(np.float32)[:, :5]
    gradient = random.integers(-9, 9, (3, 6, 3, 3)).astype(np.float32)[:, :5]
    out = np.full((3, 6, 4, 4), 7, np.float32)
    max_operator("FLOAT32", shape, windows, "ignored")(x, gradient, out[:, :5])
    check_close("FLOAT32", out[:, :5], *max_grad("FLOAT32", x, gradient, windows, "ignored"))
    average_operator("FLOAT32", shape, windows, (0, 0), "inside")(gradient, out[:, :5])
    expected = average_grad("FLOAT32", gradient, shape, windows, (0, 0), "inside")
    check_close("FLOAT32", out[:, :5], *expected)
    assert (out[:, 5] == 7).all()


@pytest.mark.parametrize("name", ["FLOAT32", "BFLOAT16"])
def test_odd_windows(name: str) -> None:
    """Windows of 1, windows larger than the input, strides that jump over it, padding beyond it."""
    random = np.random.default_rng(2)
    for windows in (
        Windows((1, 1), (1, 1), (1, 1), (0, 0), (5, 7)),
        Windows((1, 1), (3, 2), (9, 9), (0, 0), (2, 4)),
        Windows((9, 30), (1, 1), (1, 1), (4, 15), (5, 7)),
        Windows((9, 30), (2, 3), (1, 1), (20, 40), (12, 16)),
        Windows((3, 3), (1, 1), (6, 8), (6, 8), (5, 7)),
        Windows((2, 2), (50, 50), (1, 1), (1, 1), (3, 3)),
        Windows((2, 2), (1, 1), (1, 1), (100, 100), (3, 3)),
        Windows((2, 2), (1, 1), (1, 1), (1, 1), (0, 3)),
    ):
        for shape in ((5, 7), (2, 3, 5, 7), (0, 5, 7), (2, 0, 7)):
            check_average(random, name, shape, windows)
            check_max(random, name, shape, windows)


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_each_pair_of_layouts(name: str) -> None:
    """Every input layout with every output layout, channels first and last."""
    random = np.random.default_rng(7)
    for sizes, window, stride, padding, dilation in USUAL:
        shape = (2, 3, *sizes)
        windows = simple(shape, window, stride, padding, dilation)
        for given, kind in itertools.product(INPUT_LAYOUTS, LAYOUTS):
            check_average(random, name, shape, windows, kind, given)
            check_max(random, name, shape, windows, kind, given)


@pytest.mark.parametrize("name", TYPES)
def test_planes_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small planes, of which an item has several, the last one fewer; whole planes with one window; lanes of them."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng(TYPES.index(name))
    for number in range(40):
        if number == 20:
            monkeypatch.setattr(pooling, "ITEM_BYTES", 700)
        planes = int(random.choice([5, 17, 40])), int(random.choice([1, 2, 7]))
        sizes = [int(n) for n in random.integers(1, 8, random.integers(1, 4))]
        padding = [int(p) for p in random.integers(0, 2, len(sizes))]
        if number % 2:  # one window
            window = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
            outputs = [1] * len(sizes)
        else:
            window = [int(random.integers(1, n + 1)) for n in sizes]
            outputs = [int(random.integers(1, n + 1)) for n in sizes]
        strides = tuple(int(n) for n in random.integers(1, 4, len(sizes)))
        ones = (1,) * len(sizes)
        windows = Windows(tuple(window), strides, ones, tuple(padding), tuple(outputs))
        with specops.num_threads(1 + number % 3):
            for kind in ("c", "", "fortran"):
                check_average(random, name, (*planes, *sizes), windows, kind)
                check_max(random, name, (*planes, *sizes), windows, kind)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_whole_planes(name: str, stride: int) -> None:
    """Planes with one window get the same bits wherever the output lies, signs of 0 included."""
    random = np.random.default_rng(stride)
    dtype = numpy_type(name)
    tiny = np.finfo(dtype).smallest_subnormal
    shape = (5, 40, 2, 2)
    windows = Windows((2, 2), (stride, stride), (1, 1), (0, 0), (1, 1))
    gradient = random.choice(np.array([0, -0.0, tiny, -tiny, 1, -3], dtype), (5, 40, 1, 1))
    kernel = average_operator(name, shape, windows, (0, 0), "inside")
    plain, apart = np.empty(shape, dtype), np.empty((5, 40, 2, 4), dtype)[..., ::2]
    for out in (plain, apart):
        kernel(gradient, out)
    bits = f"u{dtype.itemsize}"
    np.testing.assert_array_equal(plain.view(bits), np.ascontiguousarray(apart).view(bits))
    assert not np.signbit(plain[np.broadcast_to(gradient == 0, shape)]).any()


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
def test_windows_apart(name: str) -> None:
    """Windows that have nothing in common are not added up: -0.0 becomes 0.0 all the same, wherever the output lies."""
    x = np.zeros((2, 3, 6, 1), numpy_type(name))
    gradient = np.full((2, 3, 3, 1), -0.0, x.dtype)
    gradient[0, :, 1] = 1.5
    expected = np.zeros(x.shape, x.dtype)
    expected[0, :, 2] = 1.5
    kernel = max_operator(name, x.shape, simple(x.shape, (2, 1), 2), "ignored")
    channels_last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    everything = np.full((4, 12, 12, 4), 7, x.dtype)
    plain, columns = np.full(x.shape, 7, x.dtype), np.full((2, 3, 4, 6), 7, x.dtype)
    lanes = np.full((2, 6, 1, 3), 7, x.dtype)
    cases = [
        (x, plain, plain),
        (x, columns, columns.swapaxes(2, 3)[..., 1:2]),
        (channels_last, lanes, np.moveaxis(lanes, -1, 1)),
    ]
    for steps in itertools.product([1, 2], [1, -1, 2], [1, -1, 2], [1, 2]):
        view = everything[tuple(slice(None, None, step) for step in steps)]
        cases.append((x, everything, view[:2, :3, :6, 1:2]))
    for given, memory, out in cases:
        kernel(given, gradient, out)
        np.testing.assert_array_equal(out, expected)
        assert not np.signbit(out).any()
        out[...] = 7
        assert (memory == 7).all(), "another element was changed"


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16"])
def test_bits_of_windows_apart(name: str) -> None:
    """Every gradient of 16 bits, NaN of all kinds among them, is the same as where it is added to 0."""
    dtype = numpy_type(name)
    gradient = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(1, 256, 256)
    x = np.zeros((1, 256, 512), dtype)
    windows = Windows((1, 2), (1, 2), (1, 1), (0, 0), (256, 256))
    kernel = max_operator(name, x.shape, windows, "ignored")
    put, added = np.empty(x.shape, dtype), np.empty((1, 512, 512), dtype)[:, ::2]
    for out in (put, added):
        kernel(x, gradient, out)
    np.testing.assert_array_equal(put.view(np.uint16), added.copy().view(np.uint16))


@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize(
    ("channels", "block_bytes"), [(3, 1 << 19), (33, 1 << 19), (33, 2000), (300, 1 << 19)]
)
def test_channels_last(
    name: str, channels: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NHWC memory under NCHW sizes, on all sides or some; planes in one block or several."""
    monkeypatch.setattr(max_pool_grad, "SIDE_BY_SIDE_BYTES", block_bytes)
    random = np.random.default_rng(channels)

    def last(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)

    # More places than are compared, from the first window on.
    wide = [((9, 8), (5, 5), 1, 0, 1), ((3, 20), (1, 17), 1, 0, 1)]
    for sizes, window, stride, padding, dilation in USUAL[:1] if channels > 99 else USUAL + wide:
        shape = (1, channels, *sizes)
        for dilated in (False, True):
            windows = simple(shape, window, stride, padding, dilation if dilated else 1)
            x = drawn(random, name, shape)
            gradient = drawn(random, name, windows.sizes(shape))
            if dilated:
                kernel = max_operator(name, shape, windows, "ignored")
                expected = max_grad(name, x, gradient, windows, "ignored")
            else:
                average = average_operator(name, shape, windows, (0, 0), "inside")
                expected = average_grad(name, gradient, shape, windows, (0, 0), "inside")
            for mine in (gradient, last(gradient)):
                for out in (np.full(shape, 7, x.dtype), last(np.full(shape, 7, x.dtype))):
                    if dilated:
                        kernel(last(x), mine, out)
                    else:
                        average(mine, out)
                    check_close(name, out, *expected)


def test_channels_in_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """More channels side by side than a line has room for, in the last tile fewer."""
    monkeypatch.setattr(pooling, "LINE_BYTES", 16 * 4 * 5)
    shape = (1, 33, 7, 9)
    windows = simple(shape, (3, 3))
    gradient = np.random.default_rng(3).integers(-9, 9, windows.sizes(shape)).astype(np.float32)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(gradient, 1, -1)), -1, 1)
    out = np.moveaxis(np.full((1, 7, 9, 33), 7, np.float32), -1, 1)
    average_operator("FLOAT32", shape, windows, (0, 0), "inside")(last, out)
    expected = average_grad("FLOAT32", gradient, shape, windows, (0, 0), "inside")
    check_close("FLOAT32", out, *expected)


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
    """Gradients split over threads and blocks: right, and to the bit the same on any number of threads."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng(math.prod(shape))
    windows = simple(shape, window, stride, padding, dilation)
    x = random.integers(0, 50, shape).astype(numpy_type(name))
    gradient = random.standard_normal(windows.sizes(shape)).astype(x.dtype)
    expected = max_grad(name, x, gradient, windows, "ignored")
    kernel = max_operator(name, shape, windows, "ignored")
    found: list[np.ndarray] = []
    for threads, kind in ((1, "c"), (2, "c"), (8, "any")):
        with specops.num_threads(threads):
            found.append(check(random, name, lambda o: kernel(x, gradient, o), expected, kind))
        np.testing.assert_array_equal(numbers(found[-1]), numbers(found[0]))
    windows = simple(shape, window, stride, padding)
    gradient = random.standard_normal(windows.sizes(shape)).astype(x.dtype)
    average = average_operator(name, shape, windows, (padding,) * len(window), "padded")
    found.clear()
    for threads, kind in ((1, "c"), (2, "c"), (8, "any")):
        with specops.num_threads(threads):
            out = output(random, shape, x.dtype, kind)
            average(gradient, out.array)
        out.check_surroundings()
        found.append(out.array)
        np.testing.assert_array_equal(numbers(found[-1]), numbers(found[0]))
    if math.prod(window) < 20:  # the oracle is slow
        expected = average_grad(name, gradient, shape, windows, (padding,) * len(window), "padded")
        check_close(name, found[0], *expected)


# --- unpooling ---

INDEX_TYPES = ["UINT32", "UINT64", "INT64"]
WIDTHS = ["UINT8", "FLOAT16", "INT32", "FLOAT64"]


def check_unpool(random: Random, name: str, index_type: str) -> None:
    shape, sizes = random_shape(random, 5), random_shape(random, 5)
    x, x_buffer = laid_out(random, values(random, name, shape), str(random.choice(INPUT_LAYOUTS)))
    n, alike = math.prod(sizes), 0
    if len(shape) > 1 and random.random() < 0.5:  # planes of their own
        alike = int(random.integers(1, len(shape)))
        sizes = (*shape[:alike], *sizes[:2])
        n = math.prod(sizes)
    plain = random.integers(0, n, shape)
    if alike:
        plane = n // math.prod(shape[:alike])
        first = np.arange(0, n, plane).reshape(shape[:alike] + (1,) * (len(shape) - alike))
        plain = first + plain % plane
        if random.random() < 0.3:  # all of them, or a stray one
            plain.flat[random.integers(x.size)] = random.integers(n)
    elif random.random() < 0.5:  # none twice, and some of none
        plain = random.permutation(max(n, x.size))[: x.size].reshape(shape)
    plain = plain.astype(np.uint64)
    beyond = [n, n + 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - n, 2**64 - 1]
    for index in beyond[: 4 if index_type == "UINT32" else 9]:
        if random.random() < 0.3:
            plain.flat[random.integers(x.size)] = index
    indices, _ = laid_out(
        random, plain.astype(numpy_type(index_type)), str(random.choice(INPUT_LAYOUTS))
    )
    expected = unpooled(x, indices, n)
    before = x_buffer.copy()
    out = output(random, sizes, x.dtype)
    kernel = MaxUnpool(
        input=packed(name, shape), indices=packed(index_type, shape), output=packed(name, sizes)
    )
    kernel(x, indices, out.array)
    np.testing.assert_array_equal(
        np.ascontiguousarray(out.array).view(expected.dtype).ravel(),
        expected,
        f"{shape} to {sizes}",
    )
    out.check_surroundings()
    assert np.array_equal(x_buffer, before), "the input was changed"


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("parts", [64, 3])
def test_unpool(name: str, index_type: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random positions, twice the same, beyond the output and below 0: the last of equal ones stays."""
    monkeypatch.setattr(max_unpool, "ITEMS", parts)
    monkeypatch.setattr(max_unpool, "OWN_ELEMENTS", 4 * parts)
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    random = np.random.default_rng([parts, WIDTHS.index(name), INDEX_TYPES.index(index_type)])
    for number in range(100):
        if number == 60:
            last_item_first(monkeypatch)
        with specops.num_threads(1 + number % 3):
            check_unpool(random, name, index_type)


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("name", WIDTHS)
def test_unpool_channels_last(name: str, index_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planes side by side, with gaps between positions and rows: indices of their own, strays, beyond the output.

    Where there are no strays, elements are read once.
    """
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    runs = noted(monkeypatch, pooling, "run")
    random = np.random.default_rng([WIDTHS.index(name), INDEX_TYPES.index(index_type)])
    by_lanes = 0
    for number in range(60):
        if number == 40:
            last_item_first(monkeypatch)
        monkeypatch.setattr(max_unpool, "LANES_BYTES", int(random.choice([8, 64, 256])))
        batch, channels = int(random.integers(1, 4)), int(random.choice([2, 3, 16, 65, 300]))
        rank = int(random.integers(1, 4))
        given, sizes = ([int(n) for n in random.integers(1, 5, rank)] for _ in range(2))
        shape, out_shape = (batch, channels, *given), (batch, channels, *sizes)

        def channels_last(array: np.ndarray, gap: int, row_gap: int = 0) -> np.ndarray:
            moved = np.moveaxis(array, 1, -1)
            *outer, columns, planes = moved.shape
            wide = np.full((*outer, columns + row_gap, planes + gap), 77, array.dtype)
            wide[..., :columns, :planes] = moved
            return np.moveaxis(wide[..., :columns, :planes], -1, 1)

        plane, n = math.prod(sizes), math.prod(out_shape)
        first = np.arange(0, n, plane).reshape(batch, channels, *(1,) * rank)
        plain = (first + random.integers(0, plane, shape)).astype(np.uint64)
        strays = number % 3 == 0
        if strays:
            for index in (random.integers(n), n, 2**31, 2**32 - 1):
                plain.flat[random.integers(plain.size)] = index
        x = channels_last(values(random, name, shape), number % 2)
        indices = channels_last(plain.astype(numpy_type(index_type)), number % 5)
        rows_apart = rank > 1 and sizes[-2] > 1 and number % 7 == 0
        blank = np.full(out_shape, 7).astype(numpy_type(name))
        out = channels_last(blank, number % 4, 2 if rows_apart else 0)
        kernel = MaxUnpool(
            input=packed(name, shape),
            indices=packed(index_type, shape),
            output=packed(name, out_shape),
        )
        runs.clear()
        with specops.num_threads(1 + number % 3):
            kernel(x, indices, out)
        assert strays or len(runs) == 1
        by_lanes += runs[0][0].chunk is max_unpool._LANES(8 * out.itemsize)
        expected = unpooled(x, indices, n)
        found = np.ascontiguousarray(out).view(expected.dtype).ravel()
        np.testing.assert_array_equal(found, expected, f"{number}: {shape} to {out_shape}")
        buffer = out
        while buffer.base is not None:
            buffer = buffer.base
        buffer[tuple(map(slice, np.moveaxis(out, 1, -1).shape))] = 77
        assert (buffer == np.array(77).astype(buffer.dtype)).all(), "bytes between elements changed"
    assert by_lanes > 50


def test_unpool_undoes_pooling() -> None:
    """Indices of max pooling put the greatest elements back where they were."""
    random = np.random.default_rng(5)
    x = random.permutation(2 * 3 * 80 * 90).reshape(2, 3, 80, 90).astype(np.float32)
    windows = simple(x.shape, (2, 2), 2)
    pooled, places = windows.expected(x, "ignored", "row_major")
    out = np.full(x.shape, 7, np.float32)
    kernel = MaxUnpool(
        input=packed("FLOAT32", pooled.shape),
        indices=packed("INT64", pooled.shape),
        output=packed("FLOAT32", x.shape),
    )
    kernel(pooled, places, out)
    np.testing.assert_array_equal(out, np.where(np.isin(x, pooled), x, 0))


def test_unpool_of_own_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements that stay in their planes are read once, also after a call in which one did not."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    own = (np.arange(6).reshape(2, 3, 1, 1) * 9 + [[0, 2], [4, 8]]).astype(np.int64)
    stray = own.copy()
    stray[0, 1, 0, 0] = 53
    kernel = MaxUnpool(
        input=packed("FLOAT32", x.shape),
        indices=packed("INT64", x.shape),
        output=packed("FLOAT32", (2, 3, 3, 3)),
    )
    runs: list[launch.Chunk] = []
    run = launch.Chunk.run

    def noted(chunk: launch.Chunk, *arguments: Any) -> None:
        runs.append(chunk)
        run(chunk, *arguments)

    monkeypatch.setattr(launch.Chunk, "run", noted)
    for indices, passes in ((own, 1), (stray, 2), (own, 1)):
        runs.clear()
        out = np.full((2, 3, 3, 3), 7, np.float32)
        kernel(x, indices, out)
        expected = unpooled(x, indices, out.size)
        np.testing.assert_array_equal(out.view(expected.dtype).ravel(), expected)
        assert len(runs) == passes


def test_unpool_of_nothing() -> None:
    """No input: all 0. No output: nothing."""
    for shape, sizes in (((0, 3), (4, 5)), ((2, 3), (0,)), ((), ()), ((2,), (1, 1))):
        kernel = MaxUnpool(
            input=packed("INT32", shape),
            indices=packed("UINT32", shape),
            output=packed("INT32", sizes),
        )
        out = np.full(sizes, 7, np.int32)
        kernel(np.full(shape, 5, np.int32), np.zeros(shape, np.uint32), out)
        assert (out == (5 if math.prod(shape) else 0)).all()


# --- memory ---


def memory_calls() -> Iterator[Call]:
    """Calls on 8 MiB in some layouts."""
    for name, kind in itertools.product(["FLOAT32", "FLOAT16"], ["c", "any", "broadcast"]):
        x = of_8_mebibytes(kind, numpy_type(name))
        out = np.zeros(x.shape, x.dtype)
        for window, stride, padding in (((2, 2), 2, 0), ((13, 13), 7, 6)):
            windows = simple(x.shape, window, stride, padding)
            gradient = np.zeros(windows.sizes(x.shape), x.dtype)
            average = average_operator(name, x.shape, windows, (0, 0), "inside")
            yield f"average {name} {kind} {window}", partial(average, gradient, out)
            greatest = max_operator(name, x.shape, windows, "ignored")
            text = f"max {name} {kind} {window}"
            yield text, partial(greatest, x, gradient, out)
    indices = np.zeros(gradient.shape, np.uint32)
    kernel = MaxUnpool(
        input=packed(name, gradient.shape),
        indices=packed("UINT32", gradient.shape),
        output=packed(name, out.shape),
    )
    yield "unpool", partial(kernel, gradient, indices, out)
