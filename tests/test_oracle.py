"""The oracle itself, against literals and against numpy.argmax."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest
from oracle import arg_reduce

NAN, INF = float("nan"), float("inf")
PAGE = [[1, 2, 3], [3, 0, 4], [2, 5, 2]]


@pytest.mark.parametrize(
    ("axes", "better", "expected"),
    [
        ((0,), "greater", [[1, 2, 1]]),
        ((1,), "greater", [[2], [2], [1]]),
        ((0, 1), "greater", [[7]]),
        ((1, 0), "greater", [[7]]),
        ((), "greater", [[0, 0, 0]] * 3),
        ((0,), "less", [[0, 1, 2]]),
        ((1,), "less", [[0], [1], [0]]),
        ((0, 1), "less", [[4]]),
    ],
)
def test_page(axes: tuple[int, ...], better: str, expected: list[list[int]]) -> None:
    """The examples of the pages of ARGMAX and ARGMIN."""
    assert arg_reduce(np.array(PAGE, np.float32), axes, better).tolist() == expected


def test_indices_count_in_ascending_order_of_the_axes() -> None:
    """The order in which axes are listed has no meaning."""
    x = np.array([[[12, 0], [-101, 11]], [[3, 234], [0, -101]]])
    assert arg_reduce(x, (0, 2)).tolist() == arg_reduce(x, (2, 0)).tolist() == [[[3], [1]]]


@pytest.mark.parametrize(
    ("values", "better", "last", "nan", "expected"),
    [
        ([3, 2, 1, 2, 3], "greater", False, "ignored", 0),
        ([3, 2, 1, 2, 3], "greater", True, "ignored", 4),
        ([1, 2, 3, 2, 1], "less", False, "ignored", 0),
        ([1, 2, 3, 2, 1], "less", True, "ignored", 4),
        ([-0.0, 0.0, -0.0], "greater", False, "ignored", 0),
        ([-0.0, 0.0, -0.0], "less", True, "ignored", 2),
        ([NAN, -INF, NAN], "greater", True, "ignored", 1),
        ([NAN, INF, NAN], "less", False, "ignored", 1),
        ([NAN, NAN], "greater", True, "ignored", 0),
        ([NAN, NAN], "less", True, "ignored", 0),
        ([1, NAN, INF, NAN], "greater", False, "extreme", 1),
        ([1, NAN, INF, NAN], "greater", True, "extreme", 3),
        ([1, NAN, -INF, NAN], "less", False, "extreme", 1),
        ([NAN, NAN], "greater", True, "extreme", 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_ties_and_nan(
    values: list[float], better: str, last: bool, nan: str, expected: int, dtype: type
) -> None:
    """Ties, signed zeros and both rules for NaN, in each type of float."""
    x = np.array(values, dtype)
    assert arg_reduce(x, (0,), better, last, nan).tolist() == [expected]


def test_64_bits_are_exact() -> None:
    """Neighbours beyond the precision of a double are told apart."""
    x = np.array([2**63 - 2, 2**63 - 1, -(2**63), -(2**63) + 1], np.int64)
    assert arg_reduce(x, (0,)).tolist() == [1]
    assert arg_reduce(x, (0,), "less").tolist() == [2]
    y = np.array([2**64 - 2, 2**64 - 1, 2**53, 2**53 + 1], np.uint64)
    assert arg_reduce(y, (0,)).tolist() == [1]
    assert arg_reduce(y[2:], (0,)).tolist() == [1]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u1", "u8", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_numpy_agrees(dtype: str, axis: int) -> None:
    """On one axis, NumPy's own argmax and argmin follow the rule "extreme"."""
    random = np.random.default_rng(axis)
    x = random.integers(-2, 3, (3, 4, 5)).astype(dtype)
    if x.dtype.kind == "f":
        x[random.random(x.shape) < 0.1] = np.nan
    for better, function in (("greater", np.argmax), ("less", np.argmin)):
        expected = function(x, axis=axis, keepdims=True)
        assert np.array_equal(arg_reduce(x, (axis,), better, False, "extreme"), expected)


def test_the_oracle_imports_nothing_but_numpy() -> None:
    """An oracle that shared code with the package would share its mistakes."""
    tree = ast.parse(Path(oracle.__file__).read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
    }
    assert names <= {"numpy", *sys.stdlib_module_names}
