"""The windows of pooling in each dialect and version: how many there are and where they begin, counted one by one.

`check(label, number)` repeats one call, with `label` as "onnx/max_pool_12".
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import oracle
import pytest

import specops
from specops import ValidationError, request
from specops import directml as dml
from specops import onnx as ox
from specops.plain import average_pool
from stress.memory import Arena

CALLS = 250  # of each operator
VERSIONS = {  # an operator set in which the version is in force
    "onnx/max_pool_1": 7,
    "onnx/max_pool_8": 9,
    "onnx/max_pool_10": 10,
    "onnx/max_pool_11": 11,
    "onnx/max_pool_12": 21,
    "onnx/max_pool_22": 22,
    "onnx/average_pool_1": 6,
    "onnx/average_pool_7": 9,
    "onnx/average_pool_10": 10,
    "onnx/average_pool_11": 18,
    "onnx/average_pool_19": 21,
    "onnx/average_pool_22": 28,
    "onnx/lp_pool_1": 1,
    "onnx/lp_pool_2": 10,
    "onnx/lp_pool_11": 17,
    "onnx/lp_pool_18": 21,
    "onnx/lp_pool_22": 22,
}
DIRECTML = [
    "directml/max_pooling",
    "directml/max_pooling1",
    "directml/max_pooling2",
    "directml/average_pooling",
    "directml/average_pooling1",
    "directml/lp_pooling",
    "directml/lp_pooling1",
]
GENERAL = ["plain/max_pool", "plain/average_pool", "plain/lp_pool", *VERSIONS]
LABELS = [*DIRECTML, *GENERAL]
UNPOOLING = {"onnx/max_unpool_9": 10, "onnx/max_unpool_11": 21, "onnx/max_unpool_22": 22}
# From which version on an operator of ONNX has it.
DILATIONS = {"max_pool": 10, "average_pool": 19, "lp_pool": 18}
CEIL_MODE = {"max_pool": 10, "average_pool": 10, "lp_pool": 18}
COUNTED = {"directml": "include_padding", "plain": "count_padding", "onnx": "count_include_pad"}


# What is wrong where windows do not fit; their number is not positive then.
REFUSALS = {"window_fits", "each_window_holds_input", "sizes_positive"}


@dataclass
class Axis:
    """One spatial dimension of a pooling."""

    size: int
    window: int
    stride: int
    dilation: int
    start: int
    end: int

    @property
    def reach(self) -> int:
        return 1 + (self.window - 1) * self.dilation

    def starts(self, ceil: bool) -> list[int]:
        """Where windows begin, seen from the first element of the padding."""
        room = self.start + self.size + self.end - self.reach
        count = (math.ceil(room / self.stride) if ceil else room // self.stride) + 1
        out = [i * self.stride for i in range(count)]
        # PyTorch's rule: with ceil_mode none begins in the padding at the end.
        if ceil and out and out[-1] >= self.start + self.size:
            out.pop()
        return out

    def most(self) -> int:
        """Windows where the last may begin wherever it likes."""
        starts = self.starts(False)
        return len(starts) + (starts[-1] + self.reach < self.start + self.size + self.end)

    def sees(self, start: int) -> bool:
        places = [start - self.start + i * self.dilation for i in range(self.window)]
        return any(0 <= place < self.size for place in places)

    def places(self, number: int) -> list[int]:
        """The positions of a window."""
        first = number * self.stride - self.start
        return [first + i * self.dilation for i in range(self.window)]

    def same(self, upper: bool) -> int:
        """Pad so that there is a window for each `stride` elements; the number of these."""
        count = len(range(0, self.size, self.stride))
        need = max(0, (count - 1) * self.stride + self.reach - self.size)
        small, great = need // 2, need - need // 2
        self.start, self.end = (small, great) if upper else (great, small)
        return count


def drawn(random: np.random.Generator, dilated: bool) -> Axis:
    def one(*choices: int) -> int:
        return int(random.choice(choices))

    return Axis(
        one(1, 2, 3, 4, 5, 6, 7, 8, 9), one(1, 2, 2, 3, 3, 4, 5), one(1, 1, 2, 2, 3, 4, 7),
        one(1, 1, 2, 3) if dilated else 1, one(0, 0, 1, 2, 3), one(0, 0, 1, 2, 3),
    )  # fmt: skip


def combined(
    x: np.ndarray, axes: list[Axis], counts: list[int], p: int, counted: bool
) -> np.ndarray:
    """Averages over windows, or norms where p is not 0."""
    out = np.empty((*x.shape[:2], *counts))
    for index in np.ndindex(*counts):
        windows = [a.places(i) for a, i in zip(axes, index, strict=True)]
        inside = [[n for n in w if 0 <= n < a.size] for a, w in zip(axes, windows, strict=True)]
        if counted:
            padded = [
                sum(-a.start <= n < a.size + a.end for n in w)
                for a, w in zip(axes, windows, strict=True)
            ]
        else:
            padded = [len(i) for i in inside]
        elements = x[np.ix_([0], [0, 1], *inside)].astype(np.float64).reshape(2, -1)
        if p:
            out[0, :, *index] = (abs(elements) ** p).sum(1) ** (1 / p)
        else:
            divisor = float(np.prod(padded))
            out[0, :, *index] = elements.sum(1) / divisor if divisor else np.nan
    return out


def check(label: str, number: int) -> bool:
    """Whether the call was one that is allowed."""
    random = np.random.default_rng([LABELS.index(label), number])
    dialect, name = label.split("/")
    spatial = 2 if dialect == "directml" else int(random.integers(1, 3))
    operator, _, last = name.rpartition("_") if dialect == "onnx" else (name, "", "0")
    version = int(last)
    if dialect == "directml":
        dilated = name in ("max_pooling2", "average_pooling1", "lp_pooling1")
    else:
        dilated = not version or version >= DILATIONS[operator]
    axes = [drawn(random, dilated) for _ in range(spatial)]
    x = random.integers(-9, 9, (1, 2, *(a.size for a in axes))).astype(np.float32)
    arguments: dict[str, Any] = {"strides": [a.stride for a in axes]}
    if dilated:
        arguments["dilations"] = [a.dilation for a in axes]
    indices = operator in ("max_pool", "max_pooling1", "max_pooling2") and version != 1
    if indices:
        arguments["indices"] = True
    counted, p = False, 0
    if operator.startswith("average") and version != 1:
        counted = bool(random.integers(2))
        arguments[COUNTED[dialect]] = counted
    elif operator.startswith("lp"):
        p = arguments["p"] = int(random.integers(1, 4))
    rounds_up = dialect == "plain" or (version > 0 and version >= CEIL_MODE[operator])
    ceil = rounds_up and bool(random.integers(2))
    if ceil:
        arguments["ceil_mode"] = True
    window = [a.window for a in axes]
    auto = (
        str(random.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
        if version
        else "NOTSET"
    )
    counts = []
    if auto != "NOTSET":
        arguments["auto_pad"] = auto
        for axis in axes:
            axis.start = axis.end = 0
            counts.append(
                axis.same(auto == "SAME_UPPER") if auto != "VALID" else len(axis.starts(False))
            )
    else:
        starts, ends = [a.start for a in axes], [a.end for a in axes]
        padding = (
            {"pads": [*starts, *ends]}
            if version
            else {"start_padding": starts, "end_padding": ends}
        )
        arguments |= padding
        counts = [len(a.starts(ceil)) for a in axes]
    allowed = all(counts)
    if dialect == "directml":
        if allowed and random.random() < 0.5:  # DirectML takes sizes that are rounded up, too
            counts = [
                int(random.integers(c, a.most() + 1)) for c, a in zip(counts, axes, strict=True)
            ]
            arguments["output_sizes"] = [1, 2, *counts]
        allowed = allowed and all(
            a.sees(i * a.stride) for a, c in zip(axes, counts, strict=True) for i in range(c)
        )
    module: Any = {"directml": dml, "plain": specops, "onnx": ox}[dialect]
    function: Any = getattr(module, operator)
    if version:
        function = partial(function, opset=VERSIONS[label])
    if not allowed:
        with pytest.raises(ValidationError) as caught:
            function(x, window, **arguments)
        ids = {v.id for v in caught.value.violations}
        assert ids & {"window_fits", "each_window_holds_input"} and ids <= REFUSALS
        return False
    found = function(x, window, **arguments)
    told = f"check({label!r}, {number}): {axes} {arguments}"
    if not operator.startswith("max"):
        expected = combined(x, axes, counts, p, counted)
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5, err_msg=told)
        return True
    wanted = oracle.max_pool(
        x, window, [a.stride for a in axes], [a.dilation for a in axes], [a.start for a in axes], counts,
        "ignored" if dialect == "directml" else "propagates",
    )  # fmt: skip
    for one, other in zip(found if indices else [found], wanted, strict=False):
        np.testing.assert_array_equal(one, other, err_msg=told)
    return True


@pytest.mark.parametrize("label", LABELS)
def test_windows(label: str) -> None:
    seen = [check(label, number) for number in range(CALLS)]
    assert sum(seen) > CALLS // 4
    assert label.startswith("onnx") or seen.count(False) > CALLS // 20


@pytest.mark.parametrize("label", DIRECTML)
def test_output_sizes(label: str) -> None:
    """Of DirectML, from those rounded down to those rounded up: one less or more is refused, along each dimension."""
    function = getattr(dml, label.split("/")[1])
    x = np.ones((1, 1, 7, 6), np.float32)
    for counts in itertools.product(range(2, 6), range(1, 5)):
        call = partial(function, x, [2, 3], strides=[2, 2], output_sizes=[1, 1, *counts])
        if counts[0] in (3, 4) and counts[1] in (2, 3):
            assert call().shape == (1, 1, *counts)
        else:
            with pytest.raises(ValidationError) as caught:
                call()
            assert "output_window_counts" in [v.id for v in caught.value.violations]


def test_gradient_sizes() -> None:
    """As the output sizes of a pooling."""
    x = np.ones((1, 1, 7, 6), np.float32)
    for counts in itertools.product(range(2, 6), range(1, 5)):
        gradient = np.ones((1, 1, *counts), np.float32)
        call = partial(dml.max_pooling_grad, x, gradient, [2, 3], strides=[2, 2])
        if counts[0] in (3, 4) and counts[1] in (2, 3):
            assert call().sum() == gradient.sum()
        else:
            with pytest.raises(ValidationError) as caught:
                call()
            assert "gradient_window_counts" in [v.id for v in caught.value.violations]


def check_unpooling(label: str, number: int) -> set[str]:
    """The rules that a call breaks: the output has what the windows of the pooling reach, without the padding."""
    random = np.random.default_rng([list(UNPOOLING).index(label), number])
    spatial = int(random.integers(1, 7))
    most = 5 if spatial < 4 else 3
    sizes, kernel, strides = (random.integers(1, most, spatial).tolist() for _ in range(3))
    pads = random.choice([-1, 0, 0, 0, 0, 0, 0, 1, 1, 2], 2 * spatial).tolist()
    starts, ends = pads[:spatial], pads[spatial:]
    reached = [
        len({i * s + j for i in range(n) for j in range(k)} | {*range((n - 1) * s)})
        for n, k, s in zip(sizes, kernel, strides, strict=True)
    ]
    left = [r - a - b for r, a, b in zip(reached, starts, ends, strict=True)]
    arguments: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    batch = random.integers(1, 3, 2).tolist()
    expected = set()
    shape = [*batch, *left]
    if random.random() < 0.4:
        least = [min(r, n) for r, n in zip(reached, left, strict=True)]
        shape = [*batch, *(max(0, n + int(random.choice([-1, 0, 0, 1, 1, 3]))) for n in least)]
        if random.random() < 0.2:
            shape[random.integers(2)] += 1
            expected.add("batch_and_channels")
        if any(n < r for n, r in zip(shape[2:], least, strict=True)):
            expected.add("output_shape_large_enough")
        arguments["output_shape"] = shape
    else:
        if min(pads) < 0:
            expected.add("pads_not_negative")
        if min(left) < 0:
            expected.add("pads_leave_something")
    x = np.ones([*batch, *sizes], np.float32)
    indices = np.arange(x.size).reshape(x.shape)
    told = f"check_unpooling({label!r}, {number}): {x.shape} {arguments}"
    try:
        found = ox.max_unpool(x, indices, **arguments, opset=UNPOOLING[label])
    except ValidationError as error:
        assert {v.id for v in error.violations} == expected, told
        return expected
    assert not expected and list(found.shape) == shape, told
    return set()


@pytest.mark.parametrize("label", UNPOOLING)
def test_unpooled_sizes(label: str) -> None:
    broken = [check_unpooling(label, number) for number in range(CALLS)]
    assert len(set().union(*broken)) == 4 and broken.count(set()) > CALLS // 4


@pytest.mark.parametrize("label", GENERAL)
def test_all_numbers_of_dimensions(label: str) -> None:
    """One spatial dimension to six; a window of one entry gives the array itself."""
    dialect, name = label.split("/")
    operator = name.rpartition("_")[0] if dialect == "onnx" else name
    function = getattr(specops, operator)
    if dialect == "onnx":
        function = partial(getattr(ox, operator), opset=VERSIONS[label])
    for rank in range(3, 9):
        x = np.arange(2**rank, dtype=np.float32).reshape([2] * rank)
        np.testing.assert_array_equal(function(x, [1] * (rank - 2)), x)
        if operator == "max_pool" and label != "onnx/max_pool_1":
            values, indices = function(x, [1] * (rank - 2), indices=True)
            np.testing.assert_array_equal(values, x)
            assert indices.shape == x.shape


@pytest.mark.parametrize("version", [1, 2, 22])
def test_norms_of_nothing(version: int) -> None:
    """A spatial size of 0, wherever it stands, gives 0."""
    for shape in ((1, 1, 0), (2, 3, 0, 4), (2, 3, 4, 0), (1, 2, 0, 0, 3)):
        out = ox.global_lp_pool(np.ones(shape, np.float32), opset=version)
        np.testing.assert_array_equal(out, np.zeros((*shape[:2], *(1 for _ in shape[2:]))))


@pytest.mark.parametrize(
    ("shape", "window", "strides", "padding", "dilations"),
    [
        ((3, 67, 150, 3), [31, 1], [2, 2], [14, 0], [1, 1]),
        ((3, 67, 13, 13), [13, 13], [1, 1], [6, 6], [1, 1]),
        ((3, 67, 13, 13), [3, 3], [1, 1], [1, 1], [1, 1]),
        ((3, 67, 14, 15), [3, 4], [2, 3], [1, 2], [1, 1]),
        ((3, 67, 9, 5), [4, 3], [1, 1], [6, 2], [2, 1]),
        ((3, 67, 5, 17), [1, 2], [1, 2], [0, 0], [1, 1]),
        ((3, 67, 20, 2), [17, 2], [3, 1], [8, 1], [1, 1]),
    ],
    ids=str,
)
def test_small_planes(
    shape: tuple[int, ...],
    window: list[int],
    strides: list[int],
    padding: list[int],
    dilations: list[int],
) -> None:
    """Many of them give what each gives alone."""
    x = np.random.default_rng(1).integers(-99, 99, shape).astype(np.float32)
    arguments: dict[str, Any] = {"strides": strides, "dilations": dilations}
    arguments |= {"start_padding": padding, "end_padding": padding}
    for function in (
        partial(specops.max_pool, **arguments),
        partial(specops.max_pool, indices=True, **arguments),
        partial(specops.average_pool, **arguments),
        partial(specops.lp_pool, p=1, **arguments),
    ):
        whole = function(x, window)
        for place in np.ndindex(shape[:2]):
            alone = function(x[place], window)
            for many, one in zip(
                whole if isinstance(whole, tuple) else [whole],
                alone if isinstance(alone, tuple) else [alone],
                strict=True,
            ):
                base = 0
                if many.dtype == np.int64:  # positions count through all planes
                    base = np.ravel_multi_index((*place, 0, 0), shape)
                np.testing.assert_array_equal(many[place] - base, one, str(place))


def test_small_planes_between_forbidden_pages() -> None:
    """Nothing beyond the elements is read or written, with gaps between planes or without."""
    arena, results = Arena(), Arena()
    dtype = np.dtype(np.float32)

    def placed(where: Arena, shape: tuple[int, ...], gap: int, upper: bool) -> np.ndarray:
        row = shape[3] * dtype.itemsize
        plane = shape[2] * row + gap
        strides = (shape[1] * plane, plane, row, dtype.itemsize)
        array = where.place(shape, strides, dtype, upper)
        assert array is not None
        return array

    for planes, n, gap, upper in itertools.product(
        (1, 3, 40), (3, 7, 13, 17, 33), (0, 64), (False, True)
    ):
        x = placed(arena, (1, planes, n, n), gap, upper)
        x[...] = np.random.default_rng(n).integers(-99, 99, x.shape)
        given = x.copy()
        for size, stride, padding in (
            (1, 1, 0),
            (2, 2, 0),
            (3, 1, 1),
            (3, 2, 1),
            (min(n, 13), 1, 2),
        ):
            arguments: dict[str, Any] = {"strides": [stride] * 2, "start_padding": [padding] * 2}
            arguments |= {"end_padding": [padding] * 2}
            for function in (
                partial(specops.max_pool, **arguments),
                partial(specops.average_pool, **arguments),
                partial(specops.lp_pool, p=1, **arguments),
            ):
                wanted = function(given, [size, size])
                out = placed(results, wanted.shape, gap, upper)
                function(x, [size, size], out=out)
                np.testing.assert_array_equal(out, wanted)
                assert results.surroundings_kept(out)
            many = specops.max_pool(x, [size, size], indices=True, **arguments)
            np.testing.assert_array_equal(
                many, specops.max_pool(given, [size, size], indices=True, **arguments)
            )


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_windows_beyond_the_input_beside_forbidden_pages(name: str) -> None:
    """Of windows that lie wholly in the padding nothing is read: their places in memory may be nobody's."""
    arena, dtype = Arena(), np.dtype(name)
    for n, padding, upper, step in itertools.product(
        (1, 3, 40), (1, 5, 900), (False, True), (-1, 1)
    ):
        row = n * dtype.itemsize
        x = arena.place((1, 2, 4, n), (8 * row, 4 * row, row, step * dtype.itemsize), dtype, upper)
        assert x is not None
        x[...] = 1
        arguments: dict[str, Any] = {"kernel_shape": [2, 1], "pads": [0, padding, 0, 0]}
        arguments["strides"] = [1, n + padding]
        for found in ox.max_pool(x, indices=True, opset=10, **arguments):
            assert found.shape == (1, 2, 3, 1)
            assert (found == (-1 if found.dtype == np.int64 else -np.inf)).all()
        assert (ox.max_pool(x, opset=10, **arguments) == -np.inf).all()
        assert (ox.average_pool(x, count_include_pad=1, **arguments) == 0).all()
        assert (ox.lp_pool(x, **arguments) == 0).all()


def test_sizes_below_zero() -> None:
    """Of a spec whose rules forget windows that do not fit, the sizes are told, not that there is no memory."""
    forgetful = replace(average_pool.OPERATOR, rules=())
    inputs = {"x": (np.dtype(np.float32), (2, 3))}
    with pytest.raises(ValidationError) as caught:
        request.compiled(forgetful, inputs, {"window_size": (5,)}, {})
    (violation,) = caught.value.violations
    assert (violation.id, violation.found) == ("shape", "shape (2, -1)")
    assert request.compiled(forgetful, inputs, {"window_size": (4,)}, {}).outputs["out"].sizes == (
        2,
        0,
    )
