"""Windows and values that poolings are checked with: random ones, and some that are usual or large."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from draw import EDGES, Random, numpy_type, values
from pool_oracle import Pooling, Windows

from specops.lowering import pooling
from specops.lowering.pool_axes import SpatialAxis

USUAL = [  # spatial sizes, window, stride, padding, dilation
    ((9, 11), (3, 3), 2, 1, 1),
    ((8, 12), (2, 2), 2, 0, 1),
    ((7, 7), (3, 3), 1, 1, 1),
    ((13, 13), (5, 5), 1, 2, 1),
    ((6, 9), (3, 2), 1, 1, 2),
]
LARGE = [  # shape, window, stride, padding, dilation
    ((2, 8, 112, 112), (3, 3), 2, 1, 1),
    ((2, 8, 112, 112), (2, 2), 2, 0, 1),
    ((1, 64, 28, 28), (3, 3), 1, 1, 1),
    ((1, 16, 13, 13), (13, 13), 1, 6, 1),
    ((1, 4, 16, 28, 28), (2, 2, 2), 2, 0, 1),
    ((1, 1, 150, 301), (3, 2), 1, 1, 3),
    ((3, 60_000), (5,), 2, 2, 2),
]
# Planes that are transposed for every type: as many as a vector has lanes, or a few less than several have; windows as
# long as the plane and longer, of two elements, more than one group of them; padding on either side that is longer than
# the plane; windows that end before it does.
TRANSPOSED = [
    ((64, 13, 13), Windows((13, 13), (1, 1), (1, 1), (6, 6), (13, 13))),
    ((2, 64, 9, 11), Windows((4, 9), (1, 1), (1, 1), (3, 0), (12, 11))),
    ((125, 7, 5), Windows((2, 7), (1, 1), (1, 1), (0, 6), (7, 11))),
    ((2, 64, 3, 8), Windows((9, 20), (1, 1), (1, 1), (8, 19), (11, 27))),
    ((64, 20, 6), Windows((2, 5), (1, 1), (1, 1), (1, 2), (20, 6))),
    ((64, 8, 21), Windows((3, 3), (1, 1), (1, 1), (1, 1), (8, 21))),
]
DIVISORS = ["inside", "padded"]
NAN, INF = math.nan, math.inf


def simple(
    shape: tuple[int, ...],
    window: Sequence[int],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> Windows:
    """Windows with the same stride, padding on both sides and dilation everywhere, as many as fit."""
    rank = len(window)
    outputs = []
    for n, w in zip(shape[-rank:], window, strict=True):
        room = n + 2 * padding - (w - 1) * dilation - 1
        outputs.append(room // stride + 1)
    strides, dilations, paddings = ((number,) * rank for number in (stride, dilation, padding))
    return Windows(tuple(window), strides, dilations, paddings, tuple(outputs))


def beside(x: np.ndarray) -> np.ndarray:
    """The same values, planes of two axes side by side in memory."""
    return np.moveaxis(np.moveaxis(x, -3, -1).copy(), -1, -3)


def tall_windows(
    draw: Callable[[tuple[int, ...]], np.ndarray],
) -> Iterator[tuple[np.ndarray, Windows]]:
    """Windows of several heights, many of which share rows, each on planes and on channels that stand last."""
    for height, stride, dilation in itertools.product((5, 8, 13, 29), (1, 2), (1, 2)):
        reach = (height - 1) * dilation + 1
        rows = reach + 30
        outputs = (rows + height - reach) // stride + 2  # the last see padding only
        windows = Windows(
            (2, height, 3), (2, stride, 1), (1, dilation, 1), (1, height // 2, 1), (2, outputs, 5)
        )
        x = draw((2, 3, rows, 5))
        yield x, windows
        channels_last = np.moveaxis(np.repeat(x, 3, 0)[None], 1, -1).copy()
        yield np.moveaxis(channels_last, -1, 1), windows


def rows_shared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether windows share their rows: an entry for each time that this is chosen from now on."""
    taken: list[bool] = []
    choose = pooling.Windows._share_rows

    def share_rows(
        self: pooling.Windows, axis: SpatialAxis, line_bytes: int
    ) -> tuple[bool, int, int]:
        choice = choose(self, axis, line_bytes)
        taken.append(choice[0])
        return choice

    monkeypatch.setattr(pooling.Windows, "_share_rows", share_rows)
    return taken


def random_windows(random: Random) -> tuple[tuple[int, ...], Windows]:
    """A shape of up to 3 batch and 6 spatial dimensions, and windows on it, not always within it."""
    spatial = int(random.choice([1, 2, 2, 2, 3, 3, 4, 5, 6]))
    left = int(random.choice([40, 400, 1500]))  # input elements
    work = 3000  # window elements in all
    sizes, window, strides, dilations, padding, outputs = ([0] * spatial for _ in range(6))
    odd = random.random() < 0.3  # sizes that meet no usual rule
    for d in random.permutation(spatial):
        n = int(random.integers(1, max(2, min(left, 14 if spatial < 4 else 5))))
        if spatial < 3 and random.random() < 0.15:
            n = int(random.choice(EDGES[:11]))
        left //= n
        w = int(random.integers(1, 6 if spatial < 4 else 4))
        if odd and random.random() < 0.3:
            w = int(random.integers(1, n + 8))
        w = max(1, min(w, work))
        s = int(random.choice([1, 1, 2, 2, 3, w, w + 1, n]))
        dilation = int(random.choice([1, 1, 1, 2, 3, n + 1 if odd else 1]))
        p = int(random.choice([0, 0, w // 2, w - 1, w + 2 if odd else 1]))
        room = max(0, n + p - (w - 1) * dilation - 1)
        o = room // s + 1 + int(random.choice([0, 0, 1, 4 if odd else 0]))
        if odd and random.random() < 0.2:
            o = int(random.integers(1, o + 3))
        o = max(1, min(o, work // w))
        work = max(1, work // (w * o))
        sizes[d], window[d], strides[d] = n, w, s
        dilations[d], padding[d], outputs[d] = dilation, p, o
    batches = [
        int(random.choice([1, 2, 3, 16, 33], p=[0.2, 0.3, 0.3, 0.1, 0.1]))
        for _ in range(random.integers(4))
    ]
    while math.prod(batches) * math.prod(sizes) > 4000 or math.prod(batches) * 3000 > 9000 * work:
        if not any(n > 1 for n in batches):
            break
        batches[int(np.argmax(batches))] = 1
    windows = Windows(
        tuple(window), tuple(strides), tuple(dilations), tuple(padding), tuple(outputs)
    )
    return (*batches, *sizes), windows


def drawn(random: Random, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random values: plain ones, plain ones with a few special, or any."""
    flavour = random.integers(4)
    if flavour == 0:
        return values(random, name, shape)
    x = random.standard_normal(shape) * 2.0 ** random.integers(-20, 8)
    x = np.asarray(np.abs(x) if flavour == 1 else x).astype(numpy_type(name))
    for special in (NAN, -NAN, INF, -INF, -0.0)[: random.integers(6) if flavour == 2 else 0]:
        if x.size:
            x.flat[random.integers(x.size)] = special
    return x


def drawn_pooling(random: Random, windows: Windows) -> Pooling:
    end = tuple(int(random.choice([0, 0, 1, w // 2, w + 1])) for w in windows.window)
    if random.random() < 0.5:
        return Pooling(windows, end, str(random.choice(DIVISORS)))
    powers = [1, 1, 2, 2, 2, 3, 5, 64, 65, 1.1, 2.5, 63.9]
    return Pooling(windows, end, p=float(random.choice(powers)))
