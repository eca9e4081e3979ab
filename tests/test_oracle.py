"""The oracle itself, against literals and against numpy.argmax."""

from __future__ import annotations

import ast
import decimal
import sys
from decimal import Decimal
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest
from oracle import arg_reduce, hardmax, max_pool, softmax

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
        ([1, NAN, INF, NAN], "greater", False, "propagates", 1),
        ([1, NAN, INF, NAN], "greater", True, "propagates", 3),
        ([1, NAN, -INF, NAN], "less", False, "propagates", 1),
        ([NAN, NAN], "greater", True, "propagates", 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_ties_and_nan(
    values: list[float], better: str, last: bool, nan: str, expected: int, dtype: type
) -> None:
    """Ties, signed zeros and both rules for NaN, in each type of float."""
    x: np.ndarray = np.array(values, dtype)
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
    """On one axis, NumPy's own argmax and argmin follow the rule "propagates"."""
    random = np.random.default_rng(axis)
    x = random.integers(-2, 3, (3, 4, 5)).astype(dtype)
    if x.dtype.kind == "f":
        x[random.random(x.shape) < 0.1] = np.nan
    for better, function in (("greater", np.argmax), ("less", np.argmin)):
        expected = function(x, axis=axis, keepdims=True)
        assert np.array_equal(arg_reduce(x, (axis,), better, False, "propagates"), expected)


FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ((0,), [[0, 0, 0], [1, 0, 1], [0, 1, 0]]),
        ((1,), [[0, 0, 1], [0, 0, 1], [0, 1, 0]]),
        ((0, 1), [[0, 0, 0], [0, 0, 0], [0, 1, 0]]),
        ((1, 0), [[0, 0, 0], [0, 0, 0], [0, 1, 0]]),
        ((), [[1, 1, 1]] * 3),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_hardmax_of_the_page(axes: tuple[int, ...], expected: list[list[int]], dtype: type) -> None:
    """A 1 where ARGMAX finds its index; no axes: each element is the greatest of its group."""
    result = hardmax(np.array(PAGE, dtype), axes)
    assert result.dtype == dtype and result.tolist() == expected


@pytest.mark.parametrize(
    ("values", "nan", "expected"),
    [
        ([3, 2, 3], "ignored", [1, 0, 0]),
        ([-1, -0.0, 0.0], "ignored", [0, 1, 0]),
        ([NAN, -INF, NAN], "ignored", [0, 1, 0]),
        ([NAN, NAN], "ignored", [1, 0]),
        ([-INF, -INF], "ignored", [1, 0]),
        ([1, -NAN, INF, NAN], "propagates", [0, 1, 0, 0]),
        ([1, INF, INF], "propagates", [0, 1, 0]),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_hardmax_of_ties_and_nan(
    values: list[float], nan: str, expected: list[int], dtype: type
) -> None:
    assert hardmax(np.array(values, dtype), (0,), nan).tolist() == expected


def test_hardmax_over_axes_apart() -> None:
    """The first of equal elements in the order of ascending axes: [0, 1] of the first slice, not [1, 0]."""
    x = np.zeros((2, 2, 2), np.float32)
    x[0, 0, 1] = x[1, 0, 0] = x[1, 1, 0] = 5
    for axes in ((0, 2), (2, 0)):
        assert hardmax(x, axes).tolist() == [[[0, 1], [0, 0]], [[0, 0], [1, 0]]]
    assert hardmax(np.array(3, np.float32), ()).tolist() == 1


def exactly(values: list[float]) -> tuple[list[Decimal], list[Decimal]]:
    """Probabilities and logarithms to 60 digits."""
    with decimal.localcontext(prec=60):
        powers = [Decimal(v).exp() for v in values]
        total = sum(powers, Decimal(0))
        return [p / total for p in powers], [(p / total).ln() for p in powers]


@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        [0.25, -3.5, 7.125, 7.125],
        [-50, 0, 0.5],
        [100, 30.5, -20, 99.75],
        [-600, 100],
        [0, -200],
        [i * 0.0625 for i in range(-300, 300)],
    ],
    ids=len,
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_in_decimals(values: list[float], dtype: type) -> None:
    """The values are exact in each type, so each type's result is exact but for the last bits of the wide type."""
    x: np.ndarray = np.array(values, dtype)
    assert x.tolist() == values
    limit = Decimal(8 * float(np.finfo(softmax(x, (0,)).dtype).eps))
    for log, expected in enumerate(exactly(values)):
        for place, (result, wanted) in enumerate(
            zip(softmax(x, (0,), bool(log)), expected, strict=True)
        ):
            numerator, denominator = result.as_integer_ratio()
            with decimal.localcontext(prec=60):  # a wide type may have 34 digits
                error = abs(Decimal(numerator) / denominator - wanted)
                assert error <= limit * max(abs(wanted), Decimal(log)), place
    assert softmax(x, (0,)).dtype == (np.longdouble if dtype == np.float64 else np.float64)


@pytest.mark.parametrize(
    ("values", "probability", "logarithm"),
    [
        ([1, 1], [0.5, 0.5], [-0.6931471805599453] * 2),
        ([-1e30, -1e30], [0.5, 0.5], [-0.6931471805599453] * 2),
        ([3e38, -3e38], [1, 0], [0, -6e38]),
        ([0, -200], [1, 1.3838965267367376e-87], [-1.3838965267367376e-87, -200]),
        ([-INF, 2], [0, 1], [-INF, 0]),
        ([-INF, -INF], [NAN, NAN], [NAN, NAN]),
        ([INF, 2], [NAN, NAN], [NAN, NAN]),
        ([-NAN, 2, -INF], [NAN] * 3, [NAN] * 3),
        ([7], [1], [0]),
    ],
)
def test_softmax_by_literals(
    values: list[float], probability: list[float], logarithm: list[float]
) -> None:
    x = np.array(values, np.float64)
    np.testing.assert_allclose(softmax(x, (0,)).astype(float), probability, 1e-15)
    np.testing.assert_allclose(softmax(x, (0,), True).astype(float), logarithm, 1e-15)


def test_softmax_groups() -> None:
    """Groups lie along the axes; without axes each element is one."""
    x = np.log(np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.float64))
    tenths = [[[0.1, 0.2], [0.3, 0.4]], [[5 / 26, 6 / 26], [7 / 26, 8 / 26]]]
    outer = [[[1 / 14, 2 / 14], [3 / 22, 4 / 22]], [[5 / 14, 6 / 14], [7 / 22, 8 / 22]]]
    for axes in ((1, 2), (2, 1)):
        np.testing.assert_allclose(softmax(x, axes).astype(float), tenths, 1e-15)
    np.testing.assert_allclose(softmax(x, (0, 2)).astype(float), outer, 1e-15)
    assert (softmax(x, ()) == 1).all() and (softmax(x, (), True) == 0).all()
    assert np.isnan(softmax(np.array(-INF, np.float32), ()))
    assert softmax(np.array(4, ml_dtypes.bfloat16), ()).tolist() == 1


@pytest.mark.parametrize(
    "dtype", [*FLOATS, *(f"{sign}{width}" for sign in "iu" for width in (1, 2, 4, 8))]
)
def test_max_pool_by_hand(dtype: type | str) -> None:
    """2x2 windows in steps of 2 over 3x5, from one row and column before the input."""
    x = np.array([[1, 2, 3, 4, 5], [10, 9, 8, 7, 6], [5, 10, 15, 1, 15]], dtype)
    values, indices = max_pool(x, (2, 2), (2, 2), (1, 1), (1, 1), (2, 3))
    assert values.dtype == x.dtype and indices.dtype == np.int64
    assert values.tolist() == [[1, 3, 5], [10, 15, 15]]
    assert indices.tolist() == [[0, 2, 4], [5, 12, 14]]
    columns = max_pool(x, (2, 2), (2, 2), (1, 1), (1, 1), (2, 3), "ignored", "column_major")[1]
    assert columns.tolist() == [[0, 6, 12], [1, 8, 14]]  # row + 3 * column


def test_max_pool_with_dilation_batches_and_padding() -> None:
    """Windows of two elements, two apart, over two batches; what sees only padding gives -1."""
    x = np.array([[1, 5, 2, 5], [8, 7, 6, 9]], np.int16)
    values, indices = max_pool(x, (2,), (1,), (2,), (3,), (8,))
    low = -(2**15)  # outputs 0 to 7 look at inputs -3 -1, -2 0, -1 1, 0 2, 1 3, 2 4, 3 5, 4 6
    assert values.tolist() == [[low, 1, 5, 2, 5, 2, 5, low], [low, 8, 7, 8, 9, 6, 9, low]]
    assert indices.tolist() == [[-1, 0, 1, 2, 1, 2, 3, -1], [-1, 4, 5, 4, 7, 6, 7, -1]]
    planes = np.arange(12, dtype=np.uint8).reshape(2, 1, 2, 3)
    values, indices = max_pool(
        planes, (2, 1), (1, 1), (1, 1), (0, 0), (1, 3), index_order="column_major"
    )
    assert values.tolist() == [[[[3, 4, 5]]], [[[9, 10, 11]]]]
    assert indices.tolist() == [[[[1, 3, 5]]], [[[7, 9, 11]]]]


@pytest.mark.parametrize(
    ("window", "nan", "expected"),
    [
        ([3, 2, 3], "ignored", 0),
        ([-1, -0.0, 0.0], "ignored", 1),
        ([NAN, -INF, -INF], "ignored", 1),
        ([NAN, -NAN, NAN], "ignored", 0),
        ([1, NAN, 2], "ignored", 2),
        ([1, NAN, -NAN], "propagates", 1),
        ([INF, INF, NAN], "propagates", 2),
        ([-INF, -INF, -INF], "propagates", 0),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_max_pool_of_ties_and_nan(
    window: list[float], nan: str, expected: int, dtype: type
) -> None:
    """The very element: the sign of its zero, the payload of its NaN."""
    x: np.ndarray = np.array(window, dtype)
    values, indices = max_pool(x, (3,), (1,), (1,), (0,), (1,), nan)
    assert indices.tolist() == [expected]
    assert values.tobytes() == x[expected].tobytes()


def test_max_pool_lowest() -> None:
    """What a window of nothing but padding gives."""
    for dtype, low in (
        ("i1", -128),
        ("u8", 0),
        ("i8", -(2**63)),
        ("f2", -INF),
        ("f8", -INF),
        (ml_dtypes.bfloat16, -INF),
        ("?", False),
    ):
        values, indices = max_pool(np.ones(2, dtype), (1,), (1,), (1,), (1,), (2,))
        assert values.tolist() == [low, 1] and indices.tolist() == [-1, 0]


def test_max_pool_64_bits_are_exact() -> None:
    x = np.array([2**63 - 2, 2**63 - 1, 2**53, 2**53 + 1], np.uint64)
    values, indices = max_pool(x, (2,), (2,), (1,), (0,), (2,))
    assert values.tolist() == [2**63 - 1, 2**53 + 1] and indices.tolist() == [1, 3]


@pytest.mark.parametrize("name", ["oracle", "pool_oracle", "reduce_oracle", "softmax_oracle"])
def test_oracles_import_nothing_but_numpy(name: str) -> None:
    """An oracle that shared code with the package would share its mistakes; of `draw` they take facts of types."""
    tree = ast.parse(Path(oracle.__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(a.name for a in node.names)
        elif isinstance(node, ast.Import):
            found |= {a.name: set() for a in node.names}
    assert found.pop("draw", set()) <= {"FLOATS", "numpy_type"}
    modules = {module.split(".")[0] for module in found} - {"oracle"}
    assert modules <= {"numpy", *sys.stdlib_module_names}
