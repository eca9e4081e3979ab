"""ONNX's versions: which one is in force, what each lacks, and the operator that compiles once."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from untyped import untyped

import specops
from specops import SpecopsError, ValidationError, Violation
from specops import onnx as ox
from specops.version_words import within
from specops.vocabulary import NEWEST_OPSET

CUBE = np.array([[[3, 1], [2, 5]], [[4, 4], [0, 9]]], np.float32)

# The versions of each operator, as ONNX's own schemas list them.
VERSIONS = {
    "argmax": [1, 11, 12, 13],
    "argmin": [1, 11, 12, 13],
    "hardmax": [1, 11, 13],
    "softmax": [1, 11, 13],
    "log_softmax": [1, 11, 13],
    "max_pool": [1, 8, 10, 11, 12, 22],
}

REDUCTIONS = [n for n in dir(ox) if n.startswith("reduce_") and callable(getattr(ox, n))]


def refused(call: Callable[[], object]) -> tuple[Violation, ...]:
    with pytest.raises(ValidationError) as caught:
        call()
    return caught.value.violations


@pytest.mark.parametrize("name", VERSIONS)
def test_all_versions_are_there(name: str) -> None:
    module = importlib.import_module(f"specops.onnx.{name}")
    assert sorted(module.VERSIONS.operators) == VERSIONS[name]


@pytest.mark.parametrize(
    ("opset", "ones"),
    [(1, 2), (10, 2), (11, 2), (12, 2), (13, 4), (21, 4), (NEWEST_OPSET, 4), (None, 4)],
)
def test_version_in_force(opset: int | None, ones: int) -> None:
    """Up to operator set 12 axis 1 stands for all axes from 1 on, from 13 on for itself."""
    assert ox.hardmax(CUBE, axis=1, opset=opset).sum() == ones


def test_defaults_of_versions() -> None:
    """Where no axis is named, 1 up to operator set 12, then the last."""
    np.testing.assert_array_equal(ox.hardmax(CUBE, opset=12), ox.hardmax(CUBE, axis=1, opset=12))
    np.testing.assert_array_equal(ox.hardmax(CUBE, opset=13), ox.hardmax(CUBE, axis=2, opset=13))
    assert (ox.hardmax(CUBE, opset=12) != ox.hardmax(CUBE, opset=13)).any()


@pytest.mark.parametrize("opset", [NEWEST_OPSET + 1, 0, -1, 13.0, "13", True, [13]], ids=repr)
def test_operator_sets_that_are_none(opset: Any) -> None:
    (violation,) = refused(lambda: ox.softmax(CUBE, opset=opset))
    assert violation.field == "opset"
    assert f"{NEWEST_OPSET}" in violation.allowed


@pytest.mark.parametrize(
    ("call", "field", "version"),
    [
        (lambda: ox.argmax(CUBE, select_last_index=1, opset=11), "select_last_index", 12),
        (lambda: ox.max_pool(CUBE, [1], dilations=[1], opset=8), "dilations", 10),
        (lambda: ox.max_pool(CUBE, [1], ceil_mode=0, opset=9), "ceil_mode", 10),
        (lambda: ox.max_pool(CUBE, [1], storage_order=0, opset=1), "storage_order", 8),
        (lambda: ox.max_pool(CUBE, [1], indices=True, opset=7), "Indices", 8),
        (lambda: ox.max_pool(CUBE, [1], indices=untyped(1), opset=1), "Indices", 8),
    ],
)
def test_what_a_version_lacks(call: Any, field: str, version: int) -> None:
    """Even with the value that is the default elsewhere: the message names the version that brought it."""
    (violation,) = refused(call)
    assert (violation.id, violation.field) == ("version", field)
    assert f"from version {version} on" in violation.allowed


@pytest.mark.parametrize(
    ("having", "words"),
    [
        ([7, 10, 22], "from version 7 on"),
        ([22], "from version 22 on"),
        ([7, 10], "in versions 7 to 10"),
        ([1, 7, 10], "in versions 1 to 10"),
        ([7], "in version 7"),
        ([1, 22], "in versions 1, 22"),
    ],
)
def test_versions_that_have_an_attribute(having: list[int], words: str) -> None:
    """Also one that a newer version dropped, in messages and in docstrings."""
    since = [1, 7, 10, 22]
    assert within(having, since) == words


def test_attributes_that_are_default_in_a_version_without_them() -> None:
    """What nobody asks for is no attribute of the node."""
    np.testing.assert_array_equal(ox.max_pool(CUBE, [2], opset=1), ox.max_pool(CUBE, [2], opset=22))
    np.testing.assert_array_equal(ox.argmax(CUBE, opset=1), ox.argmax(CUBE))


def test_negative_axis() -> None:
    assert refused(lambda: ox.softmax(CUBE, axis=-1, opset=1))[0].field == "axis"
    np.testing.assert_array_equal(
        ox.softmax(CUBE, axis=-1, opset=11), ox.softmax(CUBE, axis=2, opset=11)
    )


@pytest.mark.parametrize("axis", [3, -4, 2**63 - 1, -(2**63), 2**63, None, 1.0, "1", [1]], ids=repr)
def test_axes_that_are_none(axis: Any) -> None:
    if axis is None:
        assert ox.softmax(CUBE, axis=None).shape == CUBE.shape  # the version's default
        return
    for opset in (1, 11, 13):
        assert [v.field for v in refused(lambda: ox.softmax(CUBE, axis=axis, opset=opset))] == [  # noqa: B023
            "axis"
        ]


HUGE = 2**62


@pytest.mark.parametrize("opset", [1, 8, 10, 11, 12, 22])
@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [HUGE], "strides": [2 * HUGE - 1], "pads": [2 * HUGE - 1, HUGE - 1]},
        {"kernel_shape": [1], "strides": [2**32], "pads": [0, 0]},
        {"kernel_shape": [1], "pads": [2**32, 0]},
        {"kernel_shape": [2**32], "pads": [2**32, 2**32]},
        {"kernel_shape": [2**40], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [5], "dilations": [HUGE - 1], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [2], "dilations": [2 * HUGE - 1], "pads": [2 * HUGE - 1, 0]},
        {"kernel_shape": [2**31], "dilations": [2**31], "auto_pad": "SAME_UPPER"},
    ],
    ids=str,
)
def test_numbers_beyond_32_bits(attributes: dict[str, Any], indices: bool, opset: int) -> None:
    """They would leave the array, so they are refused beforehand."""
    if ("dilations" in attributes and opset < 10) or (indices and opset < 8):
        return
    extra: dict[str, Any] = {"indices": True} if indices else {}
    x = np.ones((1, 1, 5), np.float32)
    ids = {v.id for v in refused(lambda: ox.max_pool(x, **attributes, **extra, opset=opset))}
    assert ids == {"within_32_bits"}


@pytest.mark.parametrize("opset", [1, 8, 10, 11, 12, 22])
def test_the_greatest_stride(opset: int) -> None:
    x = np.arange(1, 6, dtype=np.float32)[None, None]
    assert ox.max_pool(x, [1], strides=[2**32 - 1], opset=opset).tolist() == [[[1]]]


@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("name", [n for n in VERSIONS if n != "max_pool"])
def test_the_first_axis_from_the_end(name: str, opset: int) -> None:
    function = getattr(ox, name)
    np.testing.assert_array_equal(
        function(CUBE, axis=-3, opset=opset), function(CUBE, axis=0, opset=opset)
    )


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_first_and_the_last_axis_of_a_reduction(name: str) -> None:
    """Counted from the start and from the end, in each version; beyond them there is none."""
    function = getattr(ox, name)
    for version in sorted(importlib.import_module(f"specops.onnx.{name}").VERSIONS.operators):
        for axis in (0, 2, -1, -3):
            found = function(CUBE, axes=[axis], opset=version)
            assert found.shape == tuple(1 if i == axis % 3 else 2 for i in range(3)), version
        for axis in (3, -4):
            call = partial(function, CUBE, axes=[axis], opset=version)
            assert [v.id for v in refused(call)] == ["axes_allowed"], version


def test_numbers_of_32_bits() -> None:
    """Just below that limit windows are right, most of them in the padding."""
    x = np.arange(1, 6, dtype=np.float32)[None, None]
    far = 2**32 - 1
    values, indices = ox.max_pool(x, [1], strides=[far], pads=[far, 0], indices=True)
    assert values.tolist() == [[[-np.inf, 1]]]
    assert indices.tolist() == [[[-1, 0]]]
    values = ox.max_pool(x, [2], dilations=[far - 1], pads=[far, 0])
    assert values.tolist() == [[[-np.inf, 1, 2, 3, 4, 5][: values.shape[-1]]]]


def test_bfloat16_by_version() -> None:
    x = CUBE.astype(ml_dtypes.bfloat16)
    assert ox.hardmax(x, opset=13).dtype == x.dtype
    (violation,) = refused(lambda: ox.hardmax(x, opset=12))
    assert (violation.id, violation.found) == ("supported_data_type", "BFLOAT16")
    (violation,) = refused(lambda: ox.max_pool(x, [1], opset=21))
    assert ox.max_pool(x, [1], opset=22).dtype == x.dtype


def test_rank_0_and_no_elements() -> None:
    """Without an axis softmax has no meaning; without elements its result has none."""
    assert (
        refused(lambda: ox.softmax(np.zeros((), np.float32)))[0].id == "supported_dimension_count"
    )
    for opset in (1, 11, 13):
        assert ox.softmax(np.zeros((0, 3), np.float32), opset=opset).shape == (0, 3)
        assert ox.softmax(np.zeros((3, 0), np.float32), opset=opset).shape == (3, 0)
    assert ox.argmax(np.zeros((3, 0), np.int8), axis=0).shape == (1, 0)
    for function in (ox.argmax, ox.argmin):
        for opset in (1, 11, 12, 13):
            assert function(np.zeros((3, 1), np.float32), axis=1, opset=opset).tolist() == [[0]] * 3
    assert (
        refused(lambda: ox.argmax(np.zeros((3, 0), np.int8), axis=1))[0].id == "reduced_not_empty"
    )


@pytest.mark.parametrize("opset", [1, 8, 10, 11, 12, 22])
def test_empty_auto_pad(opset: int) -> None:
    """An empty text counts as NOTSET, as models have it; other texts are refused with a list."""
    same = ox.max_pool(CUBE, [2], auto_pad="", pads=[1, 1], opset=opset)
    np.testing.assert_array_equal(same, ox.max_pool(CUBE, [2], pads=[1, 1], opset=opset))
    (violation,) = refused(lambda: ox.max_pool(CUBE, [2], auto_pad="SAME", opset=opset))
    assert (violation.field, violation.allowed) == (
        "auto_pad",
        "NOTSET, SAME_UPPER, SAME_LOWER, VALID",
    )


# --- the operator that compiles once ---


def test_compiled() -> None:
    operator = ox.Hardmax(axis=-1, opset=13).compile(np.float32, (2, 2, 2))
    np.testing.assert_array_equal(operator(CUBE), ox.hardmax(CUBE, axis=-1, opset=13))
    out = np.empty_like(CUBE)
    assert operator(CUBE[::-1], out=out) is out
    np.testing.assert_array_equal(out, ox.hardmax(CUBE[::-1]))
    with pytest.raises(ValidationError, match="shape"):
        operator(CUBE[0])
    with pytest.raises(ValidationError, match="float64"):
        operator(CUBE.astype(np.float64))


@pytest.mark.parametrize("dtype", ["bfloat16", ml_dtypes.bfloat16, "BFLOAT16"], ids=repr)
def test_compiled_for_named_types(dtype: Any) -> None:
    operator = ox.Softmax().compile(dtype, [2, 2, 2])
    assert operator(CUBE.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float33", [2]), (None, [2]), ("float32", 2), ("float32", [-1]), ("float32", "22")],
)
def test_compiled_for_what_is_no_tensor(dtype: Any, shape: Any) -> None:
    (violation,) = refused(lambda: ox.Softmax().compile(dtype, shape))
    assert (violation.id, violation.field) == ("field_type", "input")


def test_compiled_for_other_inputs_than_it_has() -> None:
    two = ("float32", [1, 1, 2])
    for more in ([], [two, two]):
        (violation,) = refused(partial(ox.MaxUnpool(kernel_shape=[2]).compile, *two, *more))
        assert (violation.id, violation.field) == ("input_count", "X, I")
        assert violation.found == f"{1 + len(more)} arrays"
    for wrong in ("int64", 3, ["int64"], ("int64", [1, 1, 2], 0)):
        (violation,) = refused(
            partial(ox.MaxUnpool(kernel_shape=[2]).compile, *two, untyped(wrong))
        )
        assert (violation.id, violation.field) == ("field_type", "I")
        assert violation.allowed == "a data type and a shape"


def test_two_outputs() -> None:
    """A tuple, also for `out`; without `indices` one array."""
    pool = ox.MaxPool(kernel_shape=[2], indices=True, opset=12).compile("float32", [2, 2, 2])
    values, indices = pool(CUBE)
    assert values.tolist() == [[[3], [5]], [[4], [9]]]
    assert indices.tolist() == [[[0], [3]], [[4], [7]]]
    assert indices.dtype == np.int64
    outs = (np.empty((2, 2, 1), np.float32), np.empty((2, 2, 1), np.int64))
    assert pool(CUBE, out=outs) is outs
    assert outs[1].tolist() == indices.tolist()
    mine, made = pool(CUBE, out=(outs[0], None))
    assert mine is outs[0]
    assert made.tolist() == indices.tolist()
    with pytest.raises(SpecopsError, match="2 outputs"):
        pool(CUBE, out=outs[0])
    with pytest.raises(SpecopsError, match="2 outputs"):
        pool(CUBE, out=outs[:1])
    with pytest.raises(ValidationError, match="meets that of another output"):
        same = np.empty((2, 2, 1), np.int64)
        ox.MaxPool(kernel_shape=[2], indices=True).compile("int8", [2, 2, 2])(
            CUBE.astype(np.int8), out=(same.view(np.int8)[..., :1], same)
        )
    with pytest.raises(ValidationError, match="memory of its own"):
        buffer = np.empty(8, np.int64)
        shared = buffer.view(np.float32)[:4].reshape(2, 2, 1)
        pool(CUBE, out=(shared, buffer[:4].reshape(2, 2, 1)))


def test_nodes_show_themselves() -> None:
    assert repr(ox.Hardmax(axis=1, opset=12)) == "<Hardmax-11(axis=1)>"
    asked = [repr(ox.MaxPool(kernel_shape=[2], indices=wanted)) for wanted in (True, False)]
    assert asked == ["<MaxPool-22(kernel_shape=[2], Indices)>", "<MaxPool-22(kernel_shape=[2])>"]
    assert repr(ox.Hardmax().compile("float32", [2, 3])) == (
        "<Hardmax-13(input: FLOAT32 [2, 3], output: FLOAT32 [2, 3])>"
    )


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (ox.max_pool, "indices: Whether to return Indices too. From version 8 on."),
        (ox.max_pool, "for each entry of kernel_shape. From version 10 on. pads:"),
        (
            ox.max_pool,
            "BFLOAT16 (from version 22 on), INT8 (from version 12 on), UINT8 (from version 12",
        ),
        (ox.reduce_log_sum, "BFLOAT16 (from version 13 on), INT64 (in versions 1 to 18), INT32"),
        (ox.max_unpool, "Data types: INT64. "),
        (
            ox.softmax,
            "None means -1; before version 13 it means 1. Before version 13: First axis of a",
        ),
        (
            ox.softmax,
            "from the end. Before version 11: First axis of a group, which holds all axes from",
        ),
        (
            ox.softmax,
            "along one axis. Before version 13: Exponential of each element, divided by the",
        ),
        (ox.argmax, "None means 0. Before version 11: Axis to reduce; not negative. "),
        (
            ox.lp_pool,
            "p: The exponent of the norm. None means 2. A whole number from version 2 on. ",
        ),
    ],
)
def test_versions_are_told_apart(function: Any, told: str) -> None:
    """In the docstring, which is that of the newest: in its types, arguments, their defaults, and what it does."""
    assert told in " ".join(function.__doc__.split())


@pytest.mark.parametrize("name", ["max_pool", "reduce_max"])
def test_what_newer_versions_have_besides_is_not_told_twice(name: str) -> None:
    """Where the sentence of an older version is how that of the newer one begins."""
    assert "Before version" not in getattr(ox, name).__doc__


def test_plain_function_with_a_part_of_out() -> None:
    """What is not given is made and returned, in each dialect."""
    values = np.empty((2, 2, 1), np.float32)
    functions: list[Callable[..., Any]] = [specops.max_pool, ox.max_pool]
    for function in functions:
        mine, made = function(CUBE, [2], indices=True, out=(values, None))
        assert mine is values
        assert made.tolist() == [[[0], [3]], [[4], [7]]]
        both = function(CUBE, [2], indices=True, out=(None, None))
        assert all(isinstance(part, np.ndarray) for part in both)
        again = function(CUBE, [2], indices=True, out=[values, made])
        assert type(again) is tuple and again[0] is values and again[1] is made


@pytest.mark.parametrize(("ceil_mode", "count"), [(0, 6), (1, 5)])
def test_ceil_mode_drops_one_window_at_most(ceil_mode: int, count: int) -> None:
    """As PyTorch and ONNX's shape inference have it, though more windows lie in the padding at the end."""
    x = np.arange(4, dtype=np.float32)[None, None]
    assert ox.max_pool(x, [2], pads=[0, 3], ceil_mode=ceil_mode).shape == (1, 1, count)


def test_violations_show_what_was_given() -> None:
    """Not what is derived from it."""
    (violation,) = refused(lambda: ox.max_pool(CUBE, [5]))
    assert "kernel_shape = [5]" in violation.found
    assert "X.sizes = [2, 2, 2]" in violation.found
    assert "room" not in violation.found
