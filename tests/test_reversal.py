"""Outputs that are reversed in place; the operators that compute in the input's direction, and then do so.

Every case follows from its data type and its number alone: `check_case("FLOAT16", 217)` repeats one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from draw import INPUT_LAYOUTS, case, laid_out, noted, numpy_type, random_shape, values
from oracle import arg_reduce, hardmax, softmax

import specops
from specops.lowering import reversal
from specops.lowering.hardmax import Hardmax
from specops.lowering.reduce import Reduce
from specops.lowering.softmax import Softmax
from specops.tensor import packed

TYPES = ["FLOAT16", "FLOAT32", "FLOAT64", "INT8"]  # one of each width
CASES = 300  # for each type
SHAPES = [(2, 4, 7, 5), (3, 10, 70), (2, 30, 3), (5, 8, 2, 3), (600,)]


def reverse(array: np.ndarray, axes: Collection[int], large: bool = False) -> None:
    reversals = reversal._reversals(array.shape, array.strides, axes)
    reversal.reverse_back(reversals, array, large)


def check_case(name: str, number: int) -> None:
    random = np.random.default_rng([TYPES.index(name), number])
    shape = random_shape(random, 5)
    axes = [a for a in range(len(shape)) if random.random() < 0.5]
    kind = str(random.choice([kind for kind in INPUT_LAYOUTS if kind != "broadcast"]))
    array, buffer = laid_out(random, values(random, name, shape), kind)
    before = array.view(f"u{array.itemsize}").copy()
    wanted = buffer.copy()
    offset = array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
    np.ndarray(shape, before.dtype, wanted, offset, array.strides)[...] = np.flip(
        before, tuple(axes)
    )
    large = bool(random.integers(2))
    with case(f"check_case({name!r}, {number}): {shape}, {kind}, axes {axes}"):
        reverse(array, axes, large)
        np.testing.assert_array_equal(array.view(before.dtype), np.flip(before, tuple(axes)))
        assert np.array_equal(buffer, wanted), "bytes outside the elements changed"


@pytest.mark.parametrize("name", TYPES)
def test_random_cases(name: str) -> None:
    for number in range(CASES):
        check_case(name, number)


@pytest.mark.parametrize("name", TYPES)
def test_lengths(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs around those of vectors, alone, along rows, and over runs inside; items shared by two threads."""
    lanes = 64 // numpy_type(name).itemsize
    for n in sorted({n + more for n in (1, lanes, 2 * lanes, 4 * lanes) for more in (-1, 0, 1, 2)}):
        for shape, axes in ((n,), [0]), ((4, n), [1]), ((3, n, 2), [1]), ((2, 3, n), [0, 1]):
            for pairs in (1, 4, 64):
                monkeypatch.setattr(reversal, "PAIRS", pairs)
                array = np.arange(np.prod(shape)).astype(numpy_type(name)).reshape(shape)
                wanted = np.flip(array, tuple(axes)).copy()
                reverse(array, axes, large=True)
                np.testing.assert_array_equal(array, wanted, f"{shape}, axes {axes}, {pairs}")


# Sizes, the input's strides and the output's, reduced axes of the output, and the axes along which it is reversed.
DIRECTIONS = [
    ((500, 40), (160, 4), (160, 4), (), []),
    ((500, 40), (160, -4), (160, 4), (), [1]),
    ((500, 40), (160, -4), (-160, -4), (), []),
    ((500, 40), (160, 4), (160, -4), (), [1]),
    ((500, 40), (-160, -4), (160, 4), (), [1]),  # rows are walked from either end
    ((500, 40), (-4, 2000), (160, 4), (), []),  # stored one by one, whichever way
    ((500, 40), (160, -320), (160, 4), (), []),
    ((500, 40), (160, 0), (160, 4), (), []),
    ((500, 40), (160, -4), (320, 8), (), []),  # do not adjoin
    ((20, 20), (80, -4), (80, 4), (), []),  # too few
    ((500, 3), (12, -4), (12, 4), (), [1]),
    ((500, 3), (12, -4), (12, 4), (1,), []),  # few of another kind than those outside
    ((500, 3), (12, -4), (12, 4), (0, 1), [1]),
    ((500, 5), (20, -4), (20, 4), (1,), [1]),
    ((9, 500, 3), (6000, -12, 4), (6000, 12, 4), (), [1]),  # over short runs
    ((9, 500, 3), (6000, -12, -4), (6000, 12, 4), (), [1, 2]),
    ((9, 500, 3), (6000, -12, 4), (6000, 12, 4), (2,), []),
    ((9, 500, 3), (6000, -12, 4), (6000, 12, 4), (1, 2), [1]),
    ((9, 500, 9), (18000, -36, 4), (18000, 36, 4), (), []),  # over longer ones
    ((9, 500, 9), (18000, -36, 4), (18000, 36, 4), (1, 2), [1]),
    ((9, 500, 33), (66000, -132, 4), (66000, 132, 4), (1, 2), []),
    ((1, 2000, 1), (4, -4, -4), (4, 4, 4), (), [1]),
]


@pytest.mark.parametrize(
    ("sizes", "strides", "out_strides", "reduced", "axes"), DIRECTIONS, ids=str
)
def test_directions(
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    out_strides: tuple[int, ...],
    reduced: tuple[int, ...],
    axes: list[int],
) -> None:
    taken, shift, _ = found = reversal.direction(
        packed("FLOAT32", sizes), reduced, strides, out_strides
    )
    wanted = [-s if a in axes else s for a, s in enumerate(out_strides)]
    assert list(taken) == wanted
    assert shift == sum((sizes[a] - 1) * out_strides[a] for a in axes)
    assert bool(found.reversals) == bool(axes)


def test_direction_of_marks() -> None:
    """Neither over runs nor along reduced axes."""
    for sizes, strides, out_strides, axes in (
        ((9, 500, 3), (6000, -12, 4), (6000, 12, 4), ()),
        ((500, 40), (160, -4), (160, 4), (1,)),
    ):
        told = packed("FLOAT32", sizes), axes, strides, out_strides
        assert reversal.direction(*told).reversals
        assert not reversal.direction(*told, marks=True).reversals
    assert reversal.direction(
        packed("FLOAT32", (500, 40)), (0,), (160, -4), (160, 4), marks=True
    ).reversals


def test_direction_of_outputs_that_lack_axes() -> None:
    output = packed("FLOAT32", (40, 50))
    found = reversal.direction(output, (1, 3), (4000, 8, 80, 4), (200, 4))
    assert found == ((200, 4), 0, ())
    found = reversal.direction(output, (1, 3), (4000, 8, -80, 4), (200, 4))
    assert (found.strides, found.shift, len(found.reversals)) == ((200, -4), 196, 1)
    few = packed("FLOAT32", (500, 3))  # both of one kind
    assert reversal.direction(few, (1,), (84, 12, -4), (12, 4)).reversals


def test_direction_of_an_output_that_is_copied_in_part() -> None:
    """Only what is computed is reversed."""
    told = packed("FLOAT32", (7, 500, 40)), (), (0, 160, -4), (80000, 160, 4)
    for copies, items in ((False, 7 * 500), (True, 500)):
        (each,) = reversal.direction(*told, copies=copies).reversals
        assert each.items == items
    x = np.broadcast_to(np.random.default_rng(1).random((500, 40, 3))[:, ::-1], (7, 500, 40, 3))
    np.testing.assert_array_equal(specops.argmax(x, 3), x.argmax(3))


def flips(rank: int) -> list[tuple[slice, ...]]:
    """All ways to walk some axes backward."""
    return list(itertools.product([slice(None), slice(None, None, -1)], repeat=rank))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_operators(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that are walked backward to outputs that are not, and the other way."""
    monkeypatch.setattr(reversal, "LEAST_BYTES", 1)
    reversed_outputs = noted(monkeypatch, reversal, "_reversal")
    random = np.random.default_rng(7)
    x = random.integers(-4, 5, shape).astype(np.float32)  # with ties
    last = len(shape) - 1
    for axes in {(0,), (last,), tuple({0, last}), tuple(range(1, last + 1)) or (0,)}:
        probabilities = softmax(x, axes).astype(np.float64)
        for flip in flips(len(shape)):
            some = x[flip]
            for function, expected in (
                (specops.argmax, np.squeeze(arg_reduce(some, axes), axes)),
                (specops.hardmax, hardmax(some, axes)),
                (specops.max, some.max(axes)),
                (specops.softmax, probabilities[flip]),
            ):
                text = f"{function.__name__}, axes {axes}, {flip}"
                found = function(some, axes)
                np.testing.assert_allclose(found, expected, 1e-6, err_msg=text)
                if expected.ndim:
                    out = np.empty(expected.shape, found.dtype)[flips(expected.ndim)[-1]]
                    function(some, axes, out=out)
                    np.testing.assert_allclose(out, expected, 1e-6, err_msg=f"backward {text}")
    assert reversed_outputs


def test_what_an_operator_may_run() -> None:
    """What reverses its output is compiled ahead with it."""
    x, groups, indices = (
        packed("FLOAT16", (3, 4)),
        packed("FLOAT16", (3, 1)),
        packed("INT64", (3, 1)),
    )
    told: dict[str, Any] = {"axes": [1], "nan": "propagates", "input": x}
    for operator, element_bytes in (
        (Softmax(result="probability", output=x, **told), 2),
        (Hardmax(output=x, **told), 2),
        (Reduce(function="sum", output=groups, **told), 2),
        (Reduce(function="argmax", output=indices, **told), 8),
    ):
        assert reversal.reversal_chunk(element_bytes) in operator.chunks()
