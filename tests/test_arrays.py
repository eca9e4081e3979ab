"""What is taken and what is refused: arrays, outputs, descriptions, errors, and the process around them."""

from __future__ import annotations

import array
import collections
import copy
import enum
import importlib
import itertools
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import llvmlite.binding
import numpy as np
import pytest
from numba.core.caching import NullCache
from numpy.lib.stride_tricks import as_strided
from untyped import untyped

import specops
from specops import SpecopsError, ValidationError, Violation, cache, launch, onnx
from specops import directml as dml
from specops.directml import ArgmaxOperatorDesc, TensorDesc
from specops.vocabulary import DIRECTML_TYPES

PAGE = np.array([[1, 2, 3], [3, 0, 4], [2, 5, 2]], np.float32)
IMAGE = np.zeros((1, 1, 4, 4), np.float32)
FORMS = [
    pytest.param(specops.argmax, id="plain"),
    pytest.param(dml.argmax, id="directml"),
    pytest.param(lambda x, **k: described(x)(x, **k), id="compiled"),
]


def shown(value: object) -> str:
    """For the name of a test: the same in each process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def described(x: Any) -> Any:
    """The compiled argmax over all axes of float32 [3, 3]."""
    return ArgmaxOperatorDesc(
        InputTensor=TensorDesc("FLOAT32", [3, 3]),
        OutputTensor=TensorDesc("UINT32", [1, 1]),
        Axes=[0, 1],
        AxisDirection="INCREASING",
    ).compile()


def refused(call: Callable[[], Any]) -> Violation:
    """The one violation that a call is refused for."""
    with pytest.raises(ValidationError) as caught:
        call()
    (violation,) = caught.value.violations
    assert violation.found in str(caught.value) and violation.allowed in str(caught.value)
    return violation


# --- inputs ---


class Dlpack:
    """An array of another library, exported by DLPack."""

    def __init__(self, x: np.ndarray) -> None:
        self._x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self._x.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._x.__dlpack_device__()


class Wrapped:
    """An object that gives its own memory through `__array__`."""

    def __init__(self, x: np.ndarray) -> None:
        self._x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        assert dtype is None and not copy
        return self._x


class Copying:
    """An object whose `__array__` cannot do without a copy."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a copy is needed")
        return PAGE.copy()


class Attached:
    """An object that says what is to be done before it shares its memory."""

    def __dlpack__(self, **_options: Any) -> Any:
        raise BufferError("detach\nit first")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Graded(Attached):
    """A tensor of torch that requires a gradient: its `__array__` knows nothing of copies."""

    def __array__(self, dtype: Any = None) -> np.ndarray:
        raise RuntimeError("detach it first")


class Interface:
    """An object with NumPy's array interface."""

    def __init__(self, x: np.ndarray) -> None:
        self.__array_interface__ = x.__array_interface__
        self._x = x


TAKEN: dict[str, Any] = {
    "memoryview": memoryview,
    "dlpack": Dlpack,
    "__array__": Wrapped,
    "__array_interface__": Interface,
    "matrix": lambda x: x.view(np.matrix),
    "subclass": lambda x: x.view(type("Subclass", (np.ndarray,), {})),
    "memmap": lambda x: x.view(np.memmap),
    "read-only": lambda x: (x.flags.__setattr__("writeable", False), x)[1],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_taken(kind: str, form: Any) -> None:
    """Whatever shares its memory is taken, and no subclass comes back."""
    result = form(TAKEN[kind](PAGE.copy()))
    assert np.asarray(result).ravel().tolist() == [7]
    assert type(result) in (np.ndarray, np.int64)


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_array_module(code: str) -> None:
    """The standard library's arrays are taken, in each type that has a NumPy counterpart."""
    x = array.array(code, [1, 5, 2])
    assert specops.argmax(x) == 1
    if code != "d":
        assert dml.argmax(x).tolist() == [1]


def test_other_buffers() -> None:
    """A bytearray is bytes; scalars of NumPy are arrays of rank 0."""
    assert specops.argmax(bytearray(b"adcb")) == 1
    assert specops.argmax(np.float32(3)) == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "value",
    [[[1.0, 2.0]], (1, 2), 1, 2.5, True, None, "abc", b"abc", 1j, {}, {1}, object(), iter([1])],
    ids=shown,
)
def test_no_array(value: Any, form: Any) -> None:
    """What would have to be copied is refused, with the way to an array where there is one."""
    violation = refused(lambda: form(value))
    assert violation.id == "array" and type(value).__name__ in violation.found
    numbers = isinstance(value, list | tuple | int | float | complex)
    assert ("numpy.asarray" in violation.allowed) == numbers


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_never_made(form: Any) -> None:
    """An object that can only be copied is refused."""
    assert refused(lambda: form(Copying())).id == "array"


@pytest.mark.parametrize("form", FORMS)
def test_masked_array(form: Any) -> None:
    """The mask would be ignored, so the array is refused, with a hint."""
    violation = refused(lambda: form(np.ma.masked_array(PAGE, PAGE > 4)))
    assert violation.id == "array" and "filled" in violation.allowed


WIDER = ["g"] if np.dtype("g").itemsize > 8 else []  # a long double that is not float64


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "dtype", ["O", "c8", "c16", "U3", "S2", "M8[s]", "m8[s]", "V4", "f4,f4", *WIDER]
)
def test_other_data_types(dtype: str, form: Any) -> None:
    """Data types without a meaning here are refused by name."""
    x = np.zeros((3, 3), dtype)
    violation = refused(lambda: form(x))
    assert violation.id == "data_type" and str(x.dtype) in violation.found
    assert "float32" in violation.allowed.lower()


@pytest.mark.parametrize("form", FORMS)
def test_byte_order(form: Any) -> None:
    """The other byte order is refused, with the call that mends it."""
    x = PAGE.astype(PAGE.dtype.newbyteorder())
    violation = refused(lambda: form(x))
    assert violation.id == "byte_order" and 'newbyteorder("=")' in violation.allowed
    hint = x.astype(x.dtype.newbyteorder("="))
    assert np.asarray(form(hint)).ravel().tolist() == [7]


def test_data_types_are_those_of_the_chosen_function() -> None:
    """Of a function that is none, those of all are told, and the function too."""
    told = refused(lambda: dml.reduce(PAGE.astype(complex), "SUM"))
    assert told.allowed == "one of FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32"
    with pytest.raises(ValidationError) as caught:
        dml.reduce(PAGE.astype(complex), "TOTAL")
    assert [v.field for v in caught.value.violations] == ["Function", "InputTensor"]
    assert "INT8" in caught.value.violations[1].allowed


def test_byte_order_of_another_data_type() -> None:
    """Where the native order would be refused next, the data type is the mistake."""
    x = PAGE.astype(">f8")
    violation = refused(lambda: dml.argmax(x))
    assert (violation.id, violation.found) == ("supported_data_type", "FLOAT64")
    violation = refused(lambda: described(PAGE)(x))
    assert (violation.id, violation.found) == ("data_type", "dtype >f8")
    assert violation.allowed == "dtype float32"


def test_data_types_of_onnx() -> None:
    """What is wrong with an array's data type is told as in the other dialects."""
    x = PAGE.astype(PAGE.dtype.newbyteorder())
    for call in (lambda: onnx.softmax(x), lambda: onnx.Softmax().compile(x.dtype, x.shape)):
        violation = refused(call)
        assert violation.id == "byte_order" and 'newbyteorder("=")' in violation.allowed
    violation = refused(lambda: onnx.softmax(PAGE.astype(object)))
    assert (violation.id, violation.found) == ("data_type", "dtype object")


def test_data_types_of_an_output_that_nobody_asks_for() -> None:
    x = PAGE.reshape(1, 1, 3, 3)
    for dtype in (np.dtype("c8"), "c8"):
        values = dml.max_pooling2(x, [2, 2], indices=False, indices_dtype=dtype)
        assert values.shape == (1, 1, 2, 2)


def test_byte_order_of_an_output() -> None:
    """A copy of an output would not be written to: its data type is told instead."""
    out = np.empty((), np.dtype(np.int64).newbyteorder())
    violation = refused(lambda: specops.argmax(PAGE, out=out))
    assert (violation.id, violation.allowed) == ("byte_order", "native byte order, dtype int64")


def test_byte_order_of_a_description() -> None:
    """A data type by its name, too, is told in the order that it may have."""
    violation = refused(TensorDesc(">f4", [3]).empty)
    assert violation.found == "'>f4'" and violation.allowed.endswith(
        "; in native byte order, FLOAT32"
    )
    assert refused(TensorDesc(">c8", [3]).empty).allowed == ", ".join(DIRECTML_TYPES)
    with pytest.raises(SpecopsError, match="in native byte order, FLOAT16"):
        specops.warm_up("argmax", dtype=">f2")


@pytest.mark.parametrize("axis", [-2, [-1], (0, -1)], ids=shown)
def test_an_array_without_axes_has_none_to_name(axis: Any) -> None:
    violation = refused(lambda: specops.argmax(np.float32(1), axis=axis))
    assert violation.allowed == "None, 0, -1 or an empty sequence, for there are no axes"


@pytest.mark.parametrize("axis", [0, -1, np.int8(-1)], ids=shown)
@pytest.mark.parametrize("x", [np.float32(3), np.array(3, np.float32)], ids=shown)
def test_an_axis_of_an_array_without_axes(x: Any, axis: Any) -> None:
    """0 and -1 alone name none, as of numpy.max and scipy.special.softmax; 1 is one too many."""
    for name in ("argmax", "argmin", "max", "min", "sum", "prod"):
        found, expected = (getattr(m, name)(x, axis=axis, keepdims=True) for m in (specops, np))
        assert found == expected and found.dtype == expected.dtype and found.shape == ()
    for name in ("mean", "l1_norm", "l2_norm", "logsumexp"):
        assert getattr(specops, name)(x, axis=axis) == x
    for name, expected in (("softmax", 1), ("log_softmax", 0), ("hardmax", 1)):
        assert getattr(specops, name)(x, axis=axis) == expected
        violation = refused(partial(getattr(specops, name), x, axis=1))
        assert (violation.id, violation.found) == ("axis_in_range", "axis = 1, x.sizes = []")


@pytest.mark.parametrize(
    ("axis", "found"),
    [
        ((-1, 1), "axis = [-1, 1] (counted from 0: [1, 1])"),
        (np.array([1, 1]), "axis = [1, 1]"),
        (5, "axis = 5, x.sizes = [2, 0]"),
        ([0, -1, 5], "axis = [0, -1, 5] (counted from 0: [0, 1, 5]), x.sizes = [2, 0]"),
        (-1, "axis = -1 (counted from 0: [1]), x.sizes = [2, 0]"),
        (None, "axis = [0, 1], x.sizes = [2, 0]"),
    ],
    ids=shown,
)
def test_axes_are_shown_as_they_were_given(axis: Any, found: str) -> None:
    with pytest.raises(ValidationError) as caught:
        specops.argmax(np.ones((2, 0)), axis)
    assert caught.value.violations[0].found == found


@pytest.mark.parametrize(
    ("window", "rule"),
    [([7, 2], "window_fits"), ([1 << 31, 1 << 31], "window_fits")],
)
def test_sizes_that_follow_from_a_mistake_are_not_another(window: list[int], rule: str) -> None:
    image = np.zeros((1, 1, 6, 8), np.float32)
    assert refused(lambda: dml.max_pooling2(image, window_size=window)).id == rule


def test_a_data_type_that_is_asked_for_is_a_mistake_of_its_own() -> None:
    image = np.zeros((1, 1, 6, 8), np.float32)
    with pytest.raises(ValidationError) as caught:
        dml.max_pooling2(image, window_size=[7, 2], indices=True, indices_dtype="FLOAT32")
    assert [v.field for v in caught.value.violations] == ["OutputIndicesTensor", "WindowSize"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: dml.argmax(PAGE, axes=[9], output_dtype="FLOT32"),
            ["OutputTensor field_type", "Axes axes_in_range"],
        ),
        (
            lambda: dml.argmax(PAGE.astype(np.float64), axes=[0], output_dtype="FLOAT32"),
            ["InputTensor supported_data_type", "OutputTensor supported_data_type"],
        ),
        (
            lambda: dml.reduce(PAGE, "SUM", axes=[9], output_dtype="INT32"),
            ["Axes axes_in_range", "OutputTensor same_dtype"],
        ),
        (
            lambda: onnx.max_pool(IMAGE, [2, 2], indices=untyped("x"), pads=[1]),
            ["Indices field_type", "pads pads_length"],
        ),
        (
            lambda: dml.lp_pooling(IMAGE, window_size=[1, 1], start_padding=[2, 0], p=0),
            ["P p_positive", "OutputTensor each_window_holds_input"],
        ),
        (
            lambda: dml.average_pooling(IMAGE.astype(np.int64), [2, 2], start_padding=[5, 0]),
            ["InputTensor supported_data_type", "OutputTensor each_window_holds_input"],
        ),
        (
            lambda: dml.max_unpooling(PAGE, PAGE.astype(np.uint32), output_sizes=[3, 3]),
            [
                f"{name} supported_dimension_count"
                for name in ("InputTensor", "IndicesTensor", "OutputTensor")
            ],
        ),
        (
            lambda: dml.average_pooling(IMAGE, [2], strides=[1]),
            ["DimensionCount spatial_dimensions"],
        ),
        (
            lambda: dml.max_pooling1(
                IMAGE, [2, 2], strides=[0, 0], indices=True, indices_dtype="FLOAT32"
            ),
            ["OutputIndicesTensor supported_data_type", "Strides strides_positive"],
        ),
        (
            lambda: dml.reduce(PAGE, "SUM", axes=untyped("x"), output_dtype="INT32"),
            ["Axes field_type", "OutputTensor same_dtype"],
        ),
        (
            lambda: dml.argmax(PAGE.astype(complex), axes=[9], output_dtype="FLOAT32"),
            ["InputTensor data_type", "OutputTensor supported_data_type", "Axes axes_in_range"],
        ),
        (
            lambda: specops.max_unpool(PAGE.astype(complex), PAGE.astype(">i8"), [1]),
            ["x data_type", "indices byte_order"],
        ),
        (
            lambda: dml.reduce(PAGE.astype(">i4"), "AVERAGE", axes=[9]),
            ["InputTensor supported_data_type", "Axes axes_in_range"],
        ),
        (
            lambda: dml.reduce(PAGE.astype(">i4"), "SUM", axes=[9]),
            ["Axes axes_in_range", "InputTensor byte_order"],
        ),
    ],
)
def test_each_mistake_is_told_once(call: Any, expected: list[str]) -> None:
    """A mistake in one argument hides none in another, and is not told of what follows from it."""
    with pytest.raises(ValidationError) as caught:
        call()
    assert [f"{v.field} {v.id}" for v in caught.value.violations] == expected


def test_a_compiled_operator_checks_its_arrays() -> None:
    """Type, shape and number of arrays must be as described."""
    operator = described(PAGE)
    for dtype in (np.float64, complex, np.dtypes.StringDType()):
        x = PAGE.astype(dtype)
        assert refused(partial(operator, x)).id == "data_type"
    assert refused(lambda: operator(PAGE[:2])).id == "shape"
    assert refused(lambda: operator(PAGE[None])).id == "shape"
    for arguments in ((), (PAGE, PAGE)):
        with pytest.raises(SpecopsError, match=f"found {len(arguments)}"):
            operator(*arguments)


def test_a_description_does_not_bind_strides() -> None:
    """A compiled operator honours the strides of each array that it is given."""
    operator = described(PAGE)
    wide = np.zeros((5, 9), np.float32)
    for x in (PAGE, PAGE.T.copy().T, wide[1:4, ::4]):
        x[...] = PAGE
        assert operator(x).tolist() == [[7]]


# --- arguments ---


@pytest.mark.parametrize(
    "axis",
    [1.0, "0", True, [True], [0.5], {0}, {0: 1}, -3, [-3], [[0]], np.array([[0]]), object()]
    + [np.array(0.5), np.array([0.5]), np.array("a"), [np.array(0.5)], [np.array([0])], list],
    ids=shown,
)
@pytest.mark.parametrize("form", [FORMS[0], FORMS[1]])
def test_axes_that_are_none(axis: Any, form: Any) -> None:
    """What is no axis is refused as such, and nothing but a ValidationError is raised."""
    assert refused(lambda: form(PAGE, axis)).id == "field_type"


@pytest.mark.parametrize(
    "axis",
    [1, -1, np.int8(1), np.array(1), [1], (1,), np.array([1]), [np.uint8(1)], range(1, 2), [-1]],
    ids=shown,
)
def test_axes_of_any_form(axis: Any) -> None:
    """An integer or a sequence of them, Python's or NumPy's, negative or not."""
    assert specops.argmax(PAGE, axis).tolist() == [2, 2, 1]
    assert dml.argmax(PAGE, axis).tolist() == [[2], [2], [1]]


class Sizes(tuple[int, ...]):
    """As torch.Size is one."""


class Member(enum.IntEnum):
    LAST = 2


@pytest.mark.parametrize(
    "axis",
    [[1, 2], range(1, 3), np.array([1, 2]), Sizes((1, 2)), (np.int8(1), Member.LAST)],
    ids=shown,
)
def test_axes_that_mean_the_same_are_validated_once(axis: Any) -> None:
    """Whatever holds them: to validate takes 30 times as long as a small call."""
    compiled = importlib.import_module("specops.plain.max")._compiled
    x = np.zeros((4, 3, 5), np.float32)
    specops.max(x, (1, 2))
    before = compiled.cache_info()
    assert specops.max(x, axis).shape == (4,)
    assert compiled.cache_info() == before._replace(hits=before.hits + 1)


@pytest.mark.parametrize("axis", [range(10**30), (True,), [False, True]], ids=shown)
def test_axes_that_are_none_do_not_pass_for_others(axis: Any) -> None:
    x = np.zeros((4, 3, 5), np.float32)
    specops.max(x, (0, 1))
    assert refused(lambda: specops.max(x, axis)).found == repr(axis)


def test_an_axis_that_changes_the_input() -> None:
    """What an argument's own code does to an array is seen before a kernel runs."""
    x = np.ones((1 << 20, 1))

    class Axis:
        def __index__(self) -> int:
            x.resize((1, 1 << 20), refcheck=False)
            return 1

    with pytest.raises(specops.ValidationError, match=r"x: found shape \(1, 1048576\)"):
        specops.sum(x, Axis())


@pytest.mark.parametrize("rank", [0, 64])
def test_fewest_and_most_dimensions(rank: int) -> None:
    """As NumPy has them, of outputs, too."""
    x = np.full([1] * rank, 3, np.float32)
    for search in (specops.argmax, specops.argmin):
        found = search(x, keepdims=True)
        assert found == 0 and np.ndim(found) == rank
    plain = (specops.sum, specops.mean, specops.prod, specops.max, specops.min)
    for function in (*plain, specops.l1_norm, specops.l2_norm, specops.logsumexp):
        found = function(x, keepdims=True)
        assert found == x and found.shape == x.shape
    found = specops.max_unpool(x, np.zeros(x.shape, np.int64), x.shape)
    assert found == x and found.shape == x.shape


@pytest.mark.parametrize("two", [2, np.int8(2), np.array(2)], ids=shown)
def test_an_integer_for_every_entry(two: Any) -> None:
    """In place of the number that a default repeats: for each spatial dimension, of ONNX's pads at both its ends."""
    image, window = np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5), (3, 3)
    given = {"strides": two, "start_padding": two, "end_padding": two, "dilations": two}
    for pool in (specops.max_pool, dml.max_pooling2):
        assert pool(image, window, **given).tolist() == [[[[12, 14, 14], [12, 14, 14]]]]
    found = onnx.max_pool(image, window, strides=two, pads=two, dilations=two)
    assert found.tolist() == [[[[12, 14, 14], [12, 14, 14]]]]


@pytest.mark.parametrize(
    "value", [-1, 1 << 32, 1.5, "2", True, [1.5, 2], [[2]], object()], ids=shown
)
def test_what_stands_for_no_entry(value: Any) -> None:
    violation = refused(lambda: specops.max_pool(IMAGE, (2, 2), strides=value))
    assert (violation.field, violation.id) == ("strides", "field_type")
    assert violation.allowed.startswith("an integer or a sequence of at most 64 integers from")


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("window_size", lambda: specops.max_pool(IMAGE, untyped(2), strides=2)),
        ("WindowSize", lambda: dml.max_pooling2(IMAGE, untyped(2), strides=2)),
        ("kernel_shape", lambda: onnx.max_pool(IMAGE, untyped(2), strides=2)),
    ],
)
def test_an_integer_does_not_tell_how_many(field: str, call: Any) -> None:
    """The window says how many spatial dimensions there are, so that it is a sequence."""
    violation = refused(call)
    assert (violation.field, violation.id, violation.found) == (field, "field_type", "2")
    assert violation.allowed.endswith(", one for each spatial dimension, such as (2, 2)")


def test_where_no_default_repeats_a_number() -> None:
    """An integer stands for no list of another kind, and for none in a description."""
    assert refused(lambda: onnx.reduce_sum(PAGE, axes=untyped(1))).field == "axes"
    image = TensorDesc("FLOAT32", [1, 1, 4, 4])
    desc = dml.MaxPoolingOperatorDesc(
        InputTensor=image,
        OutputTensor=image,
        WindowSize=[1, 1],
        Strides=[1, 1],
        StartPadding=untyped(0),
        EndPadding=[0, 0],
    )
    assert refused(desc.validate).field == "StartPadding"


def test_axes_beyond_the_rank() -> None:
    """Out of range and repeated axes are refused under the ids of their rules."""
    assert refused(lambda: specops.argmax(PAGE, 2)).id == "axis_in_range"
    assert refused(lambda: specops.argmax(PAGE, (0, -2))).id == "axis_unique"
    assert refused(lambda: dml.argmax(PAGE, [2])).id == "axes_in_range"
    assert refused(lambda: dml.argmax(PAGE, [1, -1])).id == "axes_unique"
    assert refused(lambda: specops.argmax(np.zeros((2, 0)))).id == "reduced_not_empty"
    assert refused(lambda: specops.max(np.zeros((2, 0)))).id == "reduced_not_empty"
    assert refused(lambda: dml.argmax(np.zeros((2, 0), np.int8))).id == "sizes_positive"
    for rank in (0, 9):
        with pytest.raises(ValidationError) as caught:
            dml.argmax(np.zeros((1,) * rank, np.int8))
        assert {v.id for v in caught.value.violations} == {"supported_dimension_count"}


@pytest.mark.parametrize(
    "value", [2, -1, 1.0, "yes", None, np.array([True]), np.array(1), [True]], ids=shown
)
def test_flags_are_booleans(value: Any) -> None:
    """`keepdims` and `last` take True and False, Python's or NumPy's, and 1 and 0 as ONNX writes them."""
    assert refused(lambda: specops.argmax(PAGE, 0, keepdims=value)).field == "keepdims"
    assert refused(lambda: specops.argmax(PAGE, 0, last=value)).field == "last"
    assert specops.argmax(PAGE, 0, untyped(np.True_), untyped(np.False_)).shape == (1, 3)
    assert specops.argmax(PAGE, 0, untyped(1), untyped(0)).shape == (1, 3)


@pytest.mark.parametrize(
    "direction",
    ["increasing", "", None, 2, -1, True, 1.0, b"INCREASING", [0], np.array([1]), np.array(0.5)],
    ids=shown,
)
def test_directions_that_are_none(direction: Any) -> None:
    """A direction is a name or a number of the enum; True is neither."""
    assert refused(lambda: dml.argmax(PAGE, 0, direction)).id == "field_type"


def test_directions_of_any_form() -> None:
    """Full name, suffix and number are the same."""
    x = np.array([3, 2, 3], np.int8)
    numbers = (untyped(np.uint8(0)), untyped(np.int64(1)))
    for first, last in (("INCREASING", "DECREASING"), (0, 1), numbers):
        assert dml.argmax(x, 0, first).tolist() == [0]
        assert dml.argmax(x, 0, last).tolist() == [2]
    assert dml.argmax(x, 0, "DML_AXIS_DIRECTION_DECREASING").tolist() == [2]
    for word in ("decreasing", "Decreasing"):
        violation = refused(partial(dml.argmax, x, 0, word))
        assert violation.allowed == "INCREASING, DECREASING; in capitals, DECREASING"
    violation = refused(partial(dml.argmax, x, 0, "DML_AXIS_DIRECTION_decreasing"))
    assert violation.allowed.endswith("; in capitals, DML_AXIS_DIRECTION_DECREASING")
    for word in ("up", "", "DML_AXIS_DIRECTION_"):
        violation = refused(partial(dml.argmax, x, 0, word))
        assert violation.allowed == "INCREASING, DECREASING"


@pytest.mark.parametrize("dtype", ["FLOAT33", 3, "", {"a": 1}, [("a",)], object()], ids=shown)
def test_data_types_that_are_none(dtype: Any) -> None:
    """What names no data type is refused as such."""
    assert refused(lambda: dml.argmax(PAGE, 0, output_dtype=dtype)).id == "field_type"


@pytest.mark.parametrize("dtype", ["c8", "i4,i4", ">i4"])
def test_data_types_that_no_tensor_has(dtype: str) -> None:
    """They are told as of an array, in whatever form they are given."""
    array = np.zeros((3, 1), dtype)
    told = refused(lambda: dml.argmax(PAGE, 1, out=array))
    assert told.id == ("byte_order" if dtype == ">i4" else "data_type")
    of_an_input = refused(lambda: onnx.softmax(array))
    for form in (dtype, array.dtype, array.dtype.type if dtype == "c8" else array.dtype):
        assert refused(partial(dml.argmax, PAGE, 1, output_dtype=form)) == told
        call = partial(onnx.Softmax().compile, form, array.shape)
        assert refused(call) == of_an_input


def test_byte_order_of_a_data_type_that_an_output_may_not_have() -> None:
    """The native order would be refused next."""
    told = refused(lambda: dml.argmax(PAGE, 1, output_dtype=">f4"))
    assert (told.id, told.found) == ("data_type", "dtype >f4")


def test_data_types_of_any_form() -> None:
    """Full name, suffix and NumPy's dtypes; those that the page does not list are refused."""
    for dtype in ("INT64", "DML_TENSOR_DATA_TYPE_INT64", "int64", np.int64, np.dtype("i8"), int):
        assert dml.argmax(PAGE, 0, output_dtype=dtype).dtype == np.int64
    for unlisted in ("FLOAT32", float, np.uint8, bool, "INT16"):
        violation = refused(partial(dml.argmax, PAGE, 0, output_dtype=unlisted))
        assert violation.id == "supported_data_type"


def test_the_data_type_of_an_output_is_that_of_its_array() -> None:
    """Where no other is asked for; one output's array or a tuple of several."""
    for dtype in (np.int64, np.uint64, np.int32, np.uint32):
        out = np.zeros((1, 3), dtype)
        assert dml.argmax(PAGE, 0, out=out) is out and out.tolist() == [[1, 2, 1]]
        kept = out.view(Lies)
        assert dml.reduce(PAGE, "ARGMAX", 0, out=kept) is kept
    violation = refused(
        lambda: dml.argmax(PAGE, 0, output_dtype="UINT32", out=np.zeros((1, 3), int))
    )
    assert (violation.id, violation.allowed) == ("data_type", "dtype uint32")
    image = np.zeros((1, 1, 6, 8), np.float32)
    outs = np.zeros((1, 1, 3, 4), np.float32), np.zeros((1, 1, 3, 4), np.uint64)
    assert dml.max_pooling2(image, [2, 2], strides=[2, 2], indices=True, out=outs) is outs
    assert outs[1][0, 0, 1].tolist() == [16, 18, 20, 22]
    named = collections.namedtuple("named", "elements indices")(*outs)
    assert dml.max_pooling2(image, [2, 2], strides=[2, 2], indices=True, out=named) is named
    for wrong in (outs[0], outs[:1]):
        call = partial(dml.max_pooling2, image, [2, 2], strides=[2, 2], indices=True)
        assert refused(partial(call, out=wrong)).id == "output_count"


# --- outputs ---


def buffer(size: int) -> np.ndarray:
    return np.zeros(size, np.uint8)


OUTPUTS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "list": (lambda x: [0, 0, 0], "array"),
    "masked": (lambda x: np.ma.zeros((1, 3), np.uint32), "array"),
    "read-only": (lambda x: np.broadcast_to(np.zeros((), np.uint32), (1, 3)), "writable"),
    "frozen": (lambda x: np.frombuffer(bytes(12), np.uint32).reshape(1, 3), "writable"),
    "dtype": (lambda x: np.zeros((1, 3), np.float16), "supported_data_type"),
    "byte order": (lambda x: np.zeros((1, 3), np.dtype(np.uint32).newbyteorder()), "byte_order"),
    "object": (lambda x: np.zeros((1, 3), object), "data_type"),
    "shape": (lambda x: np.zeros((3, 1), np.uint32), "shape"),
    "rank": (lambda x: np.zeros(3, np.uint32), "shape"),
    "input": (lambda x: x.view(np.uint32)[:1], "overlap"),
    "beside": (lambda x: x.view(np.uint32)[1:2], "overlap"),
    "repeated": (
        lambda x: np.lib.stride_tricks.as_strided(np.zeros(3, np.uint32), (1, 3), (4, 0)),
        "output_overlap",
    ),
    "by 2 bytes": (
        lambda x: np.ndarray((1, 3), np.uint32, buffer(99), 0, (4, 2)),
        "output_overlap",
    ),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_refused_outputs(kind: str) -> None:
    """An output of the wrong type, shape or memory is an error, and nothing is written."""
    make, id = OUTPUTS[kind]
    x = PAGE.copy()
    out = make(x)
    before = np.array(out, copy=True)
    assert refused(lambda: dml.argmax(x, [0], out=out)).id == id
    id = id.removeprefix("supported_")  # of a description it is one that fits another
    compiled = ArgmaxOperatorDesc(
        InputTensor=TensorDesc("FLOAT32", [3, 3]),
        OutputTensor=TensorDesc("UINT32", [1, 3]),
        Axes=[0],
        AxisDirection=0,
    ).compile()
    assert refused(lambda: compiled(x, out=out)).id == id
    np.testing.assert_array_equal(np.array(out), before)
    np.testing.assert_array_equal(x, PAGE)


@pytest.mark.parametrize("kind", ["list", "read-only", "repeated", "dtype", "shape", "input"])
def test_refused_outputs_of_the_plain_form(kind: str) -> None:
    """The same for `specops.argmax`, whose output is int64 and drops the axes."""
    x = np.arange(9.0).reshape(3, 3)
    strided = np.lib.stride_tricks.as_strided
    out = {
        "list": [0, 0, 0],
        "read-only": np.broadcast_to(np.int64(0), (3,)),
        "repeated": strided(np.zeros(1, np.int64), (3,), (0,)),
        "dtype": np.zeros(3, np.int32),
        "shape": np.zeros((1, 3), np.int64),
        "input": x.view(np.int64)[0],
    }[kind]
    ids = {"list": "array", "read-only": "writable", "repeated": "output_overlap"}
    ids |= {"dtype": "data_type", "input": "overlap"}
    assert refused(lambda: specops.argmax(x, 0, out=out)).id == ids.get(kind, kind)


@pytest.mark.parametrize(
    ("function", "dtype", "remedy"),
    [
        (specops.sum, "int32", "int64"),
        (specops.sum, "uint8", "uint64"),
        (specops.sum, "bool", "int64"),
        (specops.mean, "int16", "float64"),
        (partial(dml.reduce, function="SUM"), "int8", "int64"),
        (partial(dml.reduce, function="AVERAGE"), "uint16", "float32"),
        (partial(dml.reduce, function="AVERAGE"), "int64", None),
        (specops.sum, "complex64", None),
    ],
)
def test_what_holds_integers_is_told(function: Any, dtype: str, remedy: str | None) -> None:
    """The first data type of the table that holds all of theirs, of their kind before others."""
    allowed = refused(lambda: function(np.zeros((1, 2), dtype))).allowed
    assert allowed.partition("astype")[2] == (f"(numpy.{remedy}) makes one" if remedy else "")


def test_what_another_library_says() -> None:
    """Why it does not share its memory is told; the usual advice would not help."""
    violation = refused(lambda: specops.argmax(Attached()))
    assert violation.found == "a value of type Attached (detach it first)"
    assert "numpy.asarray" not in violation.allowed
    assert "numpy.asarray" in refused(lambda: specops.argmax([1, 2])).allowed
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        violation = refused(lambda: specops.argmax(Graded()))
    assert violation.found == "a value of type Graded (detach it first)" and not told


def test_what_to_do_with_tensors_of_torch() -> None:
    """NumPy knows nothing of their bfloat16, and an output is a NumPy array; both share the memory."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Unsupported dtype in DLTensor.")

    parts = {"device": "cpu", "layout": "torch.strided", "dtype": "torch.bfloat16"}
    of_torch = {"__module__": "torch", "__dlpack__": refuse, **parts}
    kind = type("Tensor", (), of_torch)
    tensor = kind()
    shared = "detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)"
    violation = refused(lambda: specops.softmax(tensor))
    assert violation.allowed.endswith(f"that shares its memory: use its {shared}")
    violation = refused(lambda: specops.softmax(PAGE, out=tensor))
    assert violation.allowed == f"a NumPy array to write to: use its {shared}"
    tensor = type("Parameter", (kind,), {"dtype": "torch.float32"})()
    violation = refused(lambda: specops.softmax(PAGE, out=tensor))
    assert violation.allowed == "a NumPy array to write to: use its detach().numpy()"
    negated = type("Tensor", (), {**of_torch, "is_neg": lambda _: True, "__dlpack__": None})()
    violation = refused(lambda: specops.sum(negated))
    assert "negated" in violation.found and violation.allowed.endswith("use its resolve_neg()")
    others = [{"device": "cuda:0"}, {"layout": "torch.sparse_coo"}, {"dtype": "torch.float8_e5m2"}]
    for out in [1], type("dtype", (), of_torch)(), *(type("T", (kind,), o)() for o in others):
        violation = refused(partial(specops.softmax, PAGE, out=untyped(out)))
        assert violation.allowed == "a NumPy array to write to"


@pytest.mark.parametrize("function", [dml.argmax, onnx.softmax, specops.softmax])
def test_docstrings_tell_the_names_that_violations_have(function: Any) -> None:
    field = refused(lambda: function(PAGE.astype(complex))).field
    told = f"Violations name x `{field}`" in " ".join(function.__doc__.split())
    assert told == (field != "x")


def test_parts_of_an_output() -> None:
    """Sizes and data types of outputs are arguments of their own."""
    one = np.ones(2)
    told = refused(lambda: specops.max_unpool(one, np.array([0, 1]), [-1]))
    assert (told.field, told.found) == ("out", "output_sizes = (-1,)")
    told = refused(lambda: specops.max_unpool(one, np.array([0, 1]), untyped(4)))
    assert (told.field, told.found) == ("out", "output_sizes = 4")
    told = refused(lambda: dml.argmax(np.ones((1, 2), np.float32), output_dtype="INT99"))
    assert (told.field, told.found) == ("OutputTensor", "dtype 'INT99'")
    told = refused(partial(dml.argmax, np.ones(2, np.float32), output_dtype="Int32"))
    assert told.allowed == "INT64, INT32, UINT64, UINT32; in capitals, INT32"


def test_sizes_of_an_output_have_the_name_of_their_argument() -> None:
    """Nobody gave OutputTensor; where nobody gave output_sizes, its sizes have their own name."""
    x = np.ones((1, 1, 4, 4), np.float32)
    told = refused(partial(dml.max_unpooling, x, x.astype(np.uint32), [2, 1, 8, 8]))
    assert told.found == "output_sizes = [2, 1, 8, 8], InputTensor.sizes = [1, 1, 4, 4]"
    told = refused(partial(dml.max_unpooling, x, x.astype(np.uint32), [1, 1, 0, 8]))
    assert told.found == "output_sizes = [1, 1, 0, 8]"
    told = refused(partial(dml.max_pooling, x, [2, 2], output_sizes=[1, 1, 9, 9]))
    assert "output_sizes = [1, 1, 9, 9]" in told.found and "OutputTensor" not in told.found


def test_out_of_a_data_type_that_no_tensor_has() -> None:
    """All that the output may have are named, not only the one that it has if none is asked."""
    told = refused(partial(dml.argmax, np.ones(2, np.float32), out=np.zeros(1, np.complex64)))
    assert (told.field, told.found) == ("OutputTensor", "dtype complex64")
    assert told.allowed == "one of INT64, INT32, UINT64, UINT32"
    told = refused(
        partial(dml.reduce, np.ones(2, np.float32), "SUM", out=np.zeros(1, np.complex64))
    )
    assert told.allowed == "one of FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32"
    told = refused(partial(dml.argmax, np.ones(2, np.float32), out=np.zeros(1, ">i4")))
    assert told.id == "byte_order"


def test_indices_have_the_name_of_their_flag() -> None:
    """`indices` asks max_pool for them, and max_unpool takes them under that name."""
    values, found = specops.max_pool(PAGE, (3, 3), indices=True)
    back = specops.max_unpool(values, indices=found, output_sizes=PAGE.shape)
    assert found.tolist() == [[7]] and np.flatnonzero(back).tolist() == [7]
    assert "indices: Whether to return the indices too." in str(specops.max_pool.__doc__)


def test_elements_that_overlap_by_bytes() -> None:
    """Strides of 4 and 6 bytes put one element of 4 bytes upon half of another."""
    out = np.ndarray((2, 2), np.uint32, buffer(64), 0, (6, 4))
    x = np.zeros((2, 2, 3), np.int8)
    call = lambda: dml.argmax(x[..., :1], [], out=out[..., None])  # noqa: E731
    assert refused(call).id == "output_overlap"


def test_strides_of_a_size_1_axis_mean_nothing() -> None:
    """They are neither an overlap nor read; for an output of one element none matter."""
    strided = np.lib.stride_tricks.as_strided
    out = strided(np.zeros(3, np.uint32), (1, 3), (0, 4))
    assert dml.argmax(PAGE, 0, out=out) is out and out.tolist() == [[1, 2, 1]]
    out = strided(np.zeros(3, np.uint32), (1, 1), (0, 0))
    assert dml.argmax(PAGE, out=out).tolist() == [[7]]
    out = strided(np.zeros(0, np.int64), (0, 3), (0, 0))
    assert specops.argmax(np.zeros((0, 3, 2)), 2, out=out) is out


def test_out_of_a_subclass() -> None:
    """The caller's own object is written to and returned."""
    out: np.ndarray = np.zeros((1, 3), np.uint32).view(type("Subclass", (np.ndarray,), {}))
    assert dml.argmax(PAGE, 0, out=out) is out
    assert np.asarray(out).tolist() == [[1, 2, 1]]


def test_an_output_beside_the_input_in_one_buffer() -> None:
    """Separate parts of one allocation share no memory."""
    memory = np.zeros(36 + 12, np.uint8)
    x = memory[:36].view(np.float32).reshape(3, 3)
    x[...] = PAGE
    out = memory[36:].view(np.uint32).reshape(1, 3)
    assert dml.argmax(x, 0, out=out).tolist() == [[1, 2, 1]]


# --- descriptions ---


def test_the_view_of_a_description() -> None:
    """Padding, broadcasting and an offset, on any contiguous buffer, sharing its memory."""
    padded = TensorDesc("FLOAT32", [2, 3], Strides=[4, 1])
    assert padded.implied_bytes == 28
    memory = bytearray(40)
    view = padded.view(memory, 8)
    assert view.shape == (2, 3) and view.strides == (16, 4)
    view[...] = [[1, 2, 3], [4, 5, 6]]
    assert np.frombuffer(memory, np.float32).tolist() == [0, 0, 1, 2, 3, 0, 4, 5, 6, 0]
    repeated = TensorDesc("INT16", [3, 2], Strides=[0, 1]).view(np.array([7, 8], np.int16))
    assert repeated.tolist() == [[7, 8]] * 3
    assert TensorDesc("UINT8", [2]).view(b"abc", 1).tolist() == [98, 99]
    assert not TensorDesc("UINT8", [2]).view(b"abc").flags.writeable
    odd = TensorDesc("FLOAT32", [1]).view(bytearray(5), 1)
    odd[...] = 1.5
    assert specops.argmax(odd) == 0


def test_implied_bytes() -> None:
    """From the first to the last element, rounded up to a multiple of 4."""
    assert TensorDesc("FLOAT16", [3, 3]).implied_bytes == 20
    assert TensorDesc("UINT8", [5]).implied_bytes == 8
    assert TensorDesc("INT64", [2, 2], Strides=[10, 3]).implied_bytes == 112
    assert TensorDesc("INT64", [1000, 1000], Strides=[0, 0]).implied_bytes == 8


@pytest.mark.parametrize(
    ("memory", "offset"),
    [
        (bytes(35), 0),
        (bytes(36), 1),
        (bytes(99), 64),
        (b"", 0),
        (bytes(36), -1),
        (bytes(36), 0.0),
        (bytes(36), None),
        (bytes(36), 2**63),
        (bytes(36), 2**64),
        ([0] * 36, 0),
        (None, 0),
        (np.zeros(200, np.uint8)[::2], 0),
        (np.zeros(36, object), 0),
        ("a" * 36, 0),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_refused_buffers(memory: Any, offset: Any) -> None:
    """A buffer that is too small or none at all gives one violation, never memory beyond it."""
    assert refused(lambda: TensorDesc("FLOAT32", [3, 3]).view(memory, offset)).id == "tensor_desc"


def test_descriptions_without_a_view() -> None:
    """A description that is itself wrong has no view, no array and no size, by the ids that an operator tells."""
    for wrong, ids in (
        (TensorDesc("FLOAT33", [3]), ["field_type"]),
        (TensorDesc("FLOAT32", [0]), ["sizes_positive"]),
        (TensorDesc("FLOAT32", [3], Strides=[1, 1]), ["strides_length"]),
        (TensorDesc("FLOAT32", [3], TotalTensorSizeInBytes=8), ["total_size"]),
    ):
        calls = (
            wrong.empty,
            lambda wrong=wrong: wrong.view(bytes(99)),
            lambda wrong=wrong: wrong.implied_bytes,
        )
        for call in calls:
            with pytest.raises(ValidationError) as caught:
                call()
            assert [v.id for v in caught.value.violations] == ids
    with pytest.raises(ValidationError) as caught:
        TensorDesc("FLOAT32", [0, 3]).empty()
    (violation,) = caught.value.violations
    assert (violation.field, violation.found) == ("TensorDesc", "TensorDesc.sizes = [0, 3]")


def test_a_description_too_large_for_memory() -> None:
    """It has a size, but no array: an error of this package."""
    far = TensorDesc("FLOAT64", [2**16, 2**15], Strides=[2**32 - 1, 2**31])
    assert far.implied_bytes > 2**50
    with pytest.raises(SpecopsError, match="no memory for TensorDesc"):
        far.empty()


def test_the_described_output_is_allocated() -> None:
    """Without `out`, an output with strides is a view of the described buffer."""
    compiled = ArgmaxOperatorDesc(
        InputTensor=TensorDesc("FLOAT32", [3, 3]),
        OutputTensor=TensorDesc("UINT32", [3, 1], Strides=[5, 2], TotalTensorSizeInBytes=64),
        Axes=[1],
        AxisDirection="INCREASING",
    ).compile("3.0")
    out = compiled(PAGE)
    assert out.tolist() == [[2], [2], [1]] and out.strides == (20, 8)
    base = out
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.nbytes == 64
    plain = np.zeros((3, 1), np.uint32)
    assert compiled(PAGE, out=plain) is plain
    empty = TensorDesc("UINT32", [3, 1], Strides=[5, 2]).empty()
    assert empty.strides == (20, 8) and compiled(PAGE, out=empty).tolist() == [[2], [2], [1]]


def test_the_memory_order_of_new_outputs() -> None:
    """As NumPy's functions choose it: that of the input, in which repeated elements count as row-major."""
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    for given in (
        x,
        x.transpose(0, 2, 3, 1),
        x[:, ::-1, ::2],
        x[0, :, None].T,
        np.broadcast_to(x[0, 0, 0], (4, 3, 5)),
        np.broadcast_to(x[0, 0, 0][:, None], (4, 5, 3)),
        np.broadcast_to(x[0, 0].T, (3, 5, 4)),
        np.broadcast_to(x[:1].transpose(0, 3, 1, 2), (6, 5, 3, 4)),
        np.broadcast_to(x[0, 0, ::-1].T[..., None], (5, 4, 7)),
    ):
        found, wanted = specops.softmax(given, axis=0), np.positive(given)
        long = [a for a, n in enumerate(given.shape) if n > 1]
        assert [found.strides[a] for a in long] == [wanted.strides[a] for a in long]


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (1, -1), ()], ids=str)
@pytest.mark.parametrize("keepdims", [False, True], ids=["dropped", "kept"])
def test_the_memory_order_of_reductions(axis: Any, keepdims: bool) -> None:
    """As NumPy's functions choose it: that of the input's axes which are left."""
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    for given in (x, x.T, x.transpose(0, 2, 3, 1), x[:, ::-1, ::2].transpose(2, 0, 3, 1)):
        found, wanted = (f(given, axis, keepdims=keepdims) for f in (specops.sum, np.sum))
        long = [a for a, n in enumerate(wanted.shape) if n > 1]
        assert [found.strides[a] for a in long] == [wanted.strides[a] for a in long]
        np.testing.assert_array_equal(found, wanted)
        if axis != ():  # which ONNX reads as all
            summed = onnx.reduce_sum(given, untyped(np.ravel(axis)), keepdims=int(keepdims))
            assert summed.strides == found.strides
        if isinstance(axis, int):
            searched = onnx.argmax(given, axis=axis, keepdims=int(keepdims))
            wanted = np.argmax(given, axis, keepdims=keepdims)
            long = [a for a, n in enumerate(wanted.shape) if n > 1]
            assert [searched.strides[a] for a in long] == [2 * found.strides[a] for a in long]
            np.testing.assert_array_equal(searched, wanted)
    flat = specops.max_unpool(np.ones((2, 3), np.float32), np.arange(6).reshape(2, 3), (6,))
    assert flat.tolist() == [1] * 6, "of fewer dimensions without a reduction"
    assert specops.sum(np.zeros((3, 0, 4, 5)).T, 2).tolist() == np.zeros((5, 4, 3)).tolist()


# --- errors ---


def test_all_violations_come_together() -> None:
    """Independent mistakes are reported in one error, with all that is known of each."""
    with pytest.raises(ValidationError) as caught:
        ArgmaxOperatorDesc(
            InputTensor=TensorDesc("FLOAT64", [3, 3], GuaranteedBaseOffsetAlignment=12),
            OutputTensor=TensorDesc("FLOAT32", [1, 3], Flags="OWNED_BY_DML"),
            AxisCount=4,
            Axes=[0, 0],
            AxisDirection="SIDEWAYS",
        ).validate("4.1")
    error = caught.value
    assert isinstance(error, SpecopsError) and isinstance(error, ValueError)
    assert sorted((v.id, v.field) for v in error.violations) == [
        ("alignment", "InputTensor"),
        ("axes_unique", "Axes"),
        ("axis_count", "AxisCount"),
        ("field_type", "AxisDirection"),
        ("owned_by_dml", "OutputTensor"),
        ("supported_data_type", "InputTensor"),
        ("supported_data_type", "OutputTensor"),
    ]
    for violation in error.violations:
        assert violation.operator == "DML_OPERATOR_ARGMAX"
        assert violation.page.startswith("https://learn.microsoft.com/")
        for part in (violation.id, violation.field, violation.found, violation.allowed):
            assert part and part in str(error)
    assert "7 violations" in str(error)


def test_int64_and_the_feature_level() -> None:
    """At level 3.0 an INT64 input is refused, and the message names the level that brings it."""
    desc = ArgmaxOperatorDesc(
        InputTensor=TensorDesc("INT64", [4]),
        OutputTensor=TensorDesc("UINT32", [1]),
        Axes=[0],
        AxisDirection="INCREASING",
    )
    violation = refused(lambda: desc.validate(feature_level="3.0"))
    assert (violation.id, violation.field) == ("supported_data_type", "InputTensor")
    assert "INT64 from feature level 4.1 on" in violation.allowed
    assert violation.found == "INT64" and violation.page.endswith("Tensor support 3.0")
    desc.validate()
    for level in ("4.1", "4_1", "DML_FEATURE_LEVEL_4_1", "6.4"):
        assert desc.compile(level)(np.arange(4)).tolist() == [3]
    wrong: Any
    for wrong in ("2.1", "9.9", 4.1, 3, "", b"4.1", [], True):
        violation = refused(partial(desc.validate, wrong))
        assert violation.id == "feature_level"
        assert ('the strings "1.0", ' in violation.allowed) == (not isinstance(wrong, str))


def test_errors_are_pickled() -> None:
    """An error passes from one process to another with its violations and its text."""
    with pytest.raises(ValidationError) as caught:
        dml.argmax(PAGE, [2])
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is ValidationError and str(error) == str(caught.value)
    assert error.violations == caught.value.violations
    assert isinstance(error.violations[0], Violation)


def test_descriptions_and_operators_show_themselves() -> None:
    """Descriptions are values: equal, immutable, picklable."""
    desc = TensorDesc("FLOAT32", (3, 3))
    assert desc == TensorDesc("FLOAT32", (3, 3)) and pickle.loads(pickle.dumps(desc)) == desc
    with pytest.raises(AttributeError):
        untyped(desc).Sizes = (1,)
    assert "FLOAT32" in repr(described(PAGE)) and "DML_OPERATOR_ARGMAX" in repr(described(PAGE))


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda v: [np.uint32(n) for n in v]])
def test_descriptions_of_the_same_are_equal(form: Callable[[list[int]], Any]) -> None:
    """Whatever sequences they are given, which may change afterwards."""
    sizes, axes = form([2, 3]), form([0, 1])
    desc = TensorDesc("FLOAT32", sizes, Strides=sizes)
    same = TensorDesc("FLOAT32", (2, 3), Strides=(2, 3))
    assert desc == same and hash(desc) == hash(same) and repr(desc) == repr(same)
    output = TensorDesc("UINT32", (1, 1))
    asked, other = (
        dml.ArgmaxOperatorDesc(
            InputTensor=tensor, OutputTensor=output, Axes=given, AxisDirection="INCREASING"
        )
        for tensor, given in ((desc, axes), (same, (0, 1)))
    )
    assert asked == other and hash(asked) == hash(other)
    if not isinstance(sizes, tuple):
        sizes[0] = axes[0] = 7
    assert desc == same and asked == other


@pytest.mark.parametrize("dtype", ["FLOAT32", "DML_TENSOR_DATA_TYPE_FLOAT32", np.float32, "f4"])
@pytest.mark.parametrize("flags", ["NONE", "DML_TENSOR_FLAG_NONE", 0])
@pytest.mark.parametrize("direction", ["INCREASING", "DML_AXIS_DIRECTION_INCREASING", 0])
def test_descriptions_by_other_names_are_equal(dtype: Any, flags: Any, direction: Any) -> None:
    """A data type or a value of an enumeration is the same by its name, its page's name and its number."""
    desc = TensorDesc(dtype, (2, 3), Flags=flags)
    assert desc == TensorDesc("FLOAT32", (2, 3)) and hash(desc) == hash(TensorDesc("f4", (2, 3)))
    output = TensorDesc("UINT32", (1, 1))
    asked, other = (
        dml.ArgmaxOperatorDesc(
            InputTensor=desc, OutputTensor=output, Axes=(0, 1), AxisDirection=given
        )
        for given in (direction, "INCREASING")
    )
    assert asked == other and hash(asked) == hash(other)


def test_a_description_keeps_what_cannot_be_read() -> None:
    """It is reported as it was written."""
    desc = TensorDesc("FLOAT32", [2, -3], Strides=untyped({1: 2}))
    with pytest.raises(ValidationError) as caught:
        desc.empty()
    assert [(v.field, v.found) for v in caught.value.violations] == [
        ("TensorDesc.Sizes", "[2, -3]"),
        ("TensorDesc.Strides", "{1: 2}"),
    ]


def test_compiled_operators_pass_to_another_process() -> None:
    """Also after a call: where kernels lie in memory is no part of them."""
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    window: dict[str, Any] = {"kernel_shape": (2, 2)}
    descriptions: list[Any] = [onnx.ArgMax(axis=1), onnx.Softmax(), onnx.ReduceSum(axes=[3])]
    descriptions += [onnx.MaxPool(**window), onnx.AveragePool(**window), onnx.LpPool(**window)]
    operators = [description.compile("float32", x.shape) for description in descriptions]
    expected = [operator(x) for operator in operators]
    code = (
        "import pickle, sys\n"
        "operators, x = pickle.load(sys.stdin.buffer)\n"
        "pickle.dump([operator(x) for operator in operators], sys.stdout.buffer)"
    )
    command, given = [sys.executable, "-c", code], pickle.dumps((operators, x))
    run = subprocess.run(command, input=given, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    for operator, found, wanted in zip(operators, pickle.loads(run.stdout), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(copy.deepcopy(operator)(x), wanted)


# --- threads ---


def limited() -> Generator[None]:
    with specops.num_threads(1):
        yield


def test_the_limit_of_threads() -> None:
    """Process-wide and local limits nest; wrong numbers are refused."""
    all_of_them = specops.get_num_threads()
    assert all_of_them >= 1
    with specops.num_threads(1):
        assert specops.get_num_threads() == 1
        with specops.num_threads(10**6):
            assert specops.get_num_threads() == all_of_them
        with ThreadPoolExecutor(1) as pool:  # another thread has a context of its own
            assert pool.submit(specops.get_num_threads).result() == all_of_them
    kept = specops.num_threads(1)
    for _ in range(2):
        with kept, specops.num_threads(None):
            assert specops.get_num_threads() == all_of_them
            with kept:
                assert specops.get_num_threads() == 1
            assert specops.get_num_threads() == all_of_them
    assert kept(specops.get_num_threads)() == 1
    suspended = limited()
    next(suspended)
    with specops.num_threads(None):  # not the block that ends next
        suspended.close()
        assert specops.get_num_threads() == all_of_them
    assert specops.get_num_threads() == all_of_them
    try:
        specops.set_num_threads(1)
        assert specops.get_num_threads() == 1
        with specops.num_threads(10**6):  # a block's own limit may be more
            assert specops.get_num_threads() == all_of_them
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(specops.get_num_threads).result() == 1
    finally:
        specops.set_num_threads(None)
    assert specops.get_num_threads() == all_of_them
    wrong: Any
    for wrong in (0, -1, True, 1.0, "1"):
        for limit in (specops.num_threads, specops.set_num_threads):
            with pytest.raises(SpecopsError, match=r"it must be an integer from 1 to \d+, or None"):
                limit(wrong)
    assert specops.get_num_threads() == all_of_them


def test_concurrent_calls() -> None:
    """Sixteen threads at once, large and small calls, each with its own limit: all right."""
    random = np.random.default_rng(1)
    inputs = [random.random((n, 700), np.float32) for n in (3, 300, 900, 31) for _ in range(4)]
    expected = [(x.argmax(0), x.argmax(1), x.argmax()) for x in inputs]

    def work(number: int) -> None:
        x, wanted = inputs[number % 16], expected[number % 16]
        with specops.num_threads(1 + number % 3):
            for axis, result in ((0, wanted[0]), (1, wanted[1]), (None, wanted[2])):
                np.testing.assert_array_equal(specops.argmax(x, axis), result)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(320)))


# --- the process ---

SMALL = """
import sys, warnings
import numpy as np
import specops
x = np.array([[1, 9, 3], [4, 5, 6]], np.float32)
print(specops.argmax(x), specops.argmax(x, 0).tolist())
"""
SMALL_RESULT = "1 [1, 0, 1]\n"
KERNELS = """
import gc
from numba.core.dispatcher import Dispatcher
kernels = [k for k in gc.get_objects() if isinstance(k, Dispatcher)]
kernels = [k for k in kernels if k.py_func.__module__.startswith("specops.")]
assert len(kernels) > 3
"""
NOTHING_COMPILED = """
assert sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels) >= 2
assert not any(kernel.stats.cache_misses for kernel in kernels)
"""
PARALLEL = """
import sys
import numpy as np
import specops
from concurrent.futures import ThreadPoolExecutor
from functools import partial
x = np.random.default_rng(1).random((600, 700), np.float32)
def check(_=None):
    for axis in (0, 1, None):
        assert np.array_equal(specops.argmax(x, axis), x.argmax(axis))
"""


def python(
    code: str, *arguments: str, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a new process."""
    command = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, **environment},
    )


def done(result: subprocess.CompletedProcess[str], stdout: str = "done\n") -> None:
    assert (result.returncode, result.stdout) == (0, stdout), result.stderr


def test_import_is_quick_and_compiles_nothing() -> None:
    """An import of the package reads no compiled code and makes none; Numba's own import is the most of it."""
    code = """
import time
import numba, ml_dtypes
from numba.core import event
recorder = event.RecordingListener()
with event.install_listener("numba:compile", recorder):
    start = time.perf_counter()
    import specops, specops.directml
    took = time.perf_counter() - start
    import importlib, pkgutil, specops.kernels
    for module in pkgutil.iter_modules(specops.kernels.__path__):
        importlib.import_module(f"specops.kernels.{module.name}")
assert recorder.buffer == [], recorder.buffer
assert took < 1.5, took
"""
    checks = """
assert not any(kernel.signatures for kernel in kernels)
print("done")
"""
    done(python(code + KERNELS + checks))


def test_disabled_jit() -> None:
    """Under NUMBA_DISABLE_JIT the import works and a call gives one clear error."""
    code = """
import numpy as np
import specops
try:
    specops.argmax(np.zeros(3))
except specops.SpecopsError as error:
    assert "NUMBA_DISABLE_JIT" in str(error)
    print("done")
"""
    done(python(code, NUMBA_DISABLE_JIT="1"))


@pytest.mark.parametrize("number", ["0", "-3"])
def test_a_number_of_threads_that_numba_refuses(number: str) -> None:
    code = """
try:
    import specops
except Exception as error:
    print(type(error).__name__, error)
"""
    told = f"SpecopsError Numba cannot be imported: NUMBA_NUM_THREADS is {number}; it must be at"
    assert told in python(code, NUMBA_NUM_THREADS=number).stdout


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where the folder that is named is a file, one warning says why, and where code is kept, if it is."""
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below"):
        result = python(SMALL, NUMBA_CACHE_DIR=str(folder))
        done(result, SMALL_RESULT)
        assert result.stderr.count("RuntimeWarning") == 1, result.stderr
        elsewhere = f"for NUMBA_CACHE_DIR={folder} cannot be written to: "
        assert elsewhere in result.stderr or "compiled anew" in result.stderr, result.stderr
    assert file.read_text() == "no folder"


def test_a_read_only_cache_folder(tmp_path: Path) -> None:
    """A folder that cannot be written to is no reason to fail."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    result = python(SMALL, NUMBA_CACHE_DIR=str(folder))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") <= 1, result.stderr


# As for another user, also where the user of the tests may write everywhere. No other folder is looked into: the
# package's may hold what other tests have compiled.
READ_ONLY = """
import os
from numba.core.caching import CacheImpl, IndexDataCacheFile, UserProvidedCacheLocator
opened = os.open
def refused(*_, **__):
    raise PermissionError(13, "Permission denied")
def read(path, flags, *rest, **options):
    return (refused if flags & os.O_CREAT else opened)(path, flags, *rest, **options)
os.open = read
IndexDataCacheFile._open_for_write = refused
CacheImpl._locator_classes = [UserProvidedCacheLocator]
"""
# Numba's cache as on Windows, where it says nothing of a refusal.
WINDOWS = """
import os, types
from numba.core import caching
caching.os = types.SimpleNamespace(**{**vars(os), "name": "nt"})
"""


def filled(folder: Path, files: dict[Path, bytes]) -> None:
    """A cache of these files."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


# A pickle that raises MemoryError.
ASKS_FOR_TOO_MUCH = b"\x80\x05\x96" + (2**62).to_bytes(8, "little")


@pytest.mark.parametrize(
    "content",
    [b"", b"no cache", b"\x80\x05", ASKS_FOR_TOO_MUCH],
    ids=["empty", "text", "cut", "memory"],
)
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache(
    warm_cache: dict[Path, bytes], tmp_path: Path, suffix: str, content: bytes
) -> None:
    """Files that a crash or a full disk left behind cost one compilation and one warning, and are replaced."""
    filled(tmp_path, {p: content if p.suffix == suffix else d for p, d in warm_cache.items()})
    result = python(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"damaged files of the cache in {tmp_path}" in result.stderr
    result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_that_cannot_be_replaced(
    warm_cache: dict[Path, bytes], tmp_path: Path, suffix: str
) -> None:
    """It costs a compilation in each process, and a warning that says where it is and why it stays."""
    filled(tmp_path, {p: b"" if p.suffix == suffix else d for p, d in warm_cache.items()})
    result = python(READ_ONLY + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"failed: {tmp_path}" in result.stderr and "EOFError" in result.stderr
    assert "cannot be replaced: Permission denied" in result.stderr


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """The files that one process leaves in an empty cache."""
    folder = tmp_path_factory.mktemp("cache")
    done(python(SMALL, NUMBA_CACHE_DIR=str(folder)), SMALL_RESULT)
    files = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    return files


def test_the_cache_is_used(warm_cache: dict[Path, bytes], tmp_path: Path) -> None:
    """A second process finds what the first one compiled, and says nothing."""
    filled(tmp_path, warm_cache)
    result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""


def test_a_filled_folder_that_cannot_be_written_to(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """It is read, silently; what it does not hold is compiled, with one warning that says which folders and why."""
    filled(tmp_path, warm_cache)
    result = python(READ_ONLY + SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""
    more = SMALL + SMALL.replace("float32", "int8")
    result = python(READ_ONLY + more, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, 2 * SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"no folder can be written to: {tmp_path}" in result.stderr
    assert "Permission denied" in result.stderr and "set NUMBA_CACHE_DIR" in result.stderr


@pytest.mark.parametrize("before", ["", READ_ONLY], ids=["open", "closed"])
def test_tempfile_is_not_asked(tmp_path: Path, before: str) -> None:
    """On Windows it takes a folder that refuses for a name in use, and tries on for a day."""
    asked = """
import tempfile
tempfile.TemporaryFile = tempfile.mkstemp = lambda *_, **__: os._exit(7)
"""
    result = python("import os\n" + before + asked + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert ("no folder can be written to" in result.stderr) == bool(before)
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == (
        set() if before else {".nbi", ".nbc"}
    )


@pytest.mark.parametrize("times", [1, 99])
def test_code_that_windows_refuses_to_keep(tmp_path: Path, times: int) -> None:
    """Another process may have the file open for a moment; what stays refused is told."""
    code = f"""
from specops import cache
cache._ATTEMPTS = 3
save = caching.IndexDataCacheFile._save_data
left = {times}
def refuse(*rest):
    global left
    left -= 1
    if left >= 0:
        raise PermissionError(13, "Permission denied")
    save(*rest)
caching.IndexDataCacheFile._save_data = refuse
"""
    result = python(WINDOWS + code + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    if times == 1:
        assert result.stderr == ""
        result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
        done(result, SMALL_RESULT)
    else:
        assert result.stderr.count("RuntimeWarning") == 1, result.stderr
        assert f"failed: {tmp_path}" in result.stderr and "Permission denied" in result.stderr


def test_a_folder_without_the_code_that_its_index_names(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """Where it cannot be written to either, the code is compiled once, with one warning."""
    filled(tmp_path, {p: data for p, data in warm_cache.items() if p.suffix == ".nbi"})
    result = python(READ_ONLY + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"{tmp_path}" in result.stderr and "Permission denied" in result.stderr


def copied(folder: Path) -> Path:
    """A copy of the package, in a folder that can be put on the path."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(specops.__file__).parent, folder / "copy" / "specops", ignore=ignored)
    return folder / "copy"


def test_no_two_kinds_or_versions_share_a_file_of_the_cache(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """Numba writes an index before the code that it points to, so that a shared file could hold the wrong code.

    A process that is stopped between the two, or two that write at once, would leave it so.
    """
    other = tmp_path / "kinds"
    done(python(SMALL.replace("float32", "int8"), NUMBA_CACHE_DIR=str(other)), SMALL_RESULT)
    common = {p.name for p in warm_cache} & {p.name for p in other.rglob("*.nb?")}
    assert common and all(name.startswith("chunks.") for name in common), common
    package = copied(tmp_path)
    for name in ("kernels/chunks.py", "kernels/search.py"):
        with open(package / "specops" / name, "a", encoding="utf-8") as file:
            file.write("# another version\n")
    another = tmp_path / "version"
    done(python(SMALL, PYTHONPATH=str(package), NUMBA_CACHE_DIR=str(another)), SMALL_RESULT)
    names = {p.name for p in another.rglob("*.nb?")}
    assert len(names) == len(warm_cache) and not names & {p.name for p in warm_cache}


def no_data(_path: str) -> bytes:
    raise OSError("no such file in the program")


@pytest.mark.parametrize(
    "spec",
    [
        None,
        SimpleNamespace(origin=None, loader=None),
        SimpleNamespace(origin="x.py", loader=SimpleNamespace()),
        SimpleNamespace(origin="x.py", loader=SimpleNamespace(get_data=no_data)),
    ],
)
def test_names_in_a_program_without_sources(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release, the code and the kind tell files apart, and each process finds the same ones."""

    def name(function: Callable[..., Any] = no_data, kind: str = "rows") -> str:
        one = FunctionType(function.__code__, {"__spec__": spec})
        cache._name_apart(one, (kind,))
        return one.__qualname__.split("_")[-1]

    assert name() == name()
    assert len({name(), name(filled), name(kind="columns")}) == 3
    before = name()
    monkeypatch.setattr(cache, "__version__", "99")
    assert name() != before


class FakeDispatcher:
    """What compiles a function, of which the cache is damaged."""

    def __init__(self) -> None:
        self._cache: Any = NullCache()
        self.enabled = self.compiled = 0

    def enable(self) -> None:
        self.enabled += 1
        self._cache = SimpleNamespace(cache_path="somewhere")

    def compile(self, _signature: Any) -> None:
        found = self._cache
        time.sleep(0.05)
        if isinstance(found, SimpleNamespace):
            raise EOFError("a damaged file")
        self.compiled += 1


def test_threads_that_meet_a_damaged_cache_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one drops the cache and compiles, and the others find it done."""
    function = FakeDispatcher()
    monkeypatch.setattr(cache, "enable", lambda function, _kind: function.enable())
    monkeypatch.setattr(cache, "_lost", None)
    monkeypatch.setattr(cache, "_warned", False)
    with ThreadPoolExecutor(4) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for future in [pool.submit(launch._ready, function) for _ in range(4)]:
            future.result()
    assert (function.enabled, function.compiled) == (1, 1)


def test_signatures_follow_from_widths_alone() -> None:
    """Ranks, layouts, axes, directions and output types compile nothing new."""
    code = """
import numpy as np
import specops
from specops import directml as dml
for dtype in ("INT32", "UINT32"):
    for rank in (1, 2, 5, 8):
        x = np.zeros((2,) * rank, dtype.lower())
        for output in ("UINT32", "INT64"):
            for direction in (0, 1):
                for y in (x, x.T, x[..., ::-1], np.broadcast_to(x[:1], x.shape)):
                    dml.argmax(y, 0, direction, output)
                    dml.argmax(y, None, direction, output)
        specops.argmax(x)
"""
    checks = """
chunks = [k for k in kernels if k.py_func.__name__ == "chunk" and k.signatures]
assert sorted(k.py_func.__qualname__.split(".")[0] for k in chunks) == ["columns", "rows", "short_rows"]
assert all(len(k.signatures) == 1 for k in chunks), chunks
print("done")
"""
    done(python(code + KERNELS + checks))


def test_fork() -> None:
    """A child that is forked after a parallel call computes on, with threads of its own, and so does its parent."""
    code = (
        PARALLEL
        + """
import os
from specops import launch
check()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        alone = launch._workers is None
        check()
        os._exit(42 if alone and launch._workers.number == 1 else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [42] * 3, codes
check()
print("done")
"""
    )
    if hasattr(os, "fork"):
        options = ("-W", "ignore::DeprecationWarning")
        done(python(code, options=options, NUMBA_NUM_THREADS="2"))


def test_one_thread_starts_none() -> None:
    """With the limit 1 a large call stays on the caller's thread; without it another helps."""
    code = (
        PARALLEL
        + """
from specops import launch
specops.set_num_threads(1)
check()
assert launch._workers is None
specops.set_num_threads(None)
check()
assert launch._workers.number == 1
print("done")
"""
    )
    done(python(code, NUMBA_NUM_THREADS="2"))


def test_a_processor_without_half_precision() -> None:
    """float16 is compared by its bits: right on a processor that is told to have no extensions."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from test_arg_reduce import check_case
for number in range(60):
    check_case("FLOAT16", number)
print("done")
"""
    done(python(code, str(Path(__file__).parent), NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""))


def test_a_processor_without_wide_vectors() -> None:
    """Exponentials are right where vectors cannot be permuted, and where multiplying and adding are not fused."""
    code = """
import ml_dtypes
import numpy as np
import specops
random = np.random.default_rng(1)
for dtype, least in ((np.float16, 6e-4), (ml_dtypes.bfloat16, 5e-3), (np.float32, 2e-6)):
    for shape, axis in (((40, 700), 1), ((300, 50), 0), ((70, 9), 1)):
        x = random.uniform(-9, 9, shape).astype(dtype)
        wide = x.astype(np.float64)
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        exact = powers / powers.sum(axis, keepdims=True)
        found = specops.softmax(x, axis=axis).astype(np.float64)
        # Of 16-bit types, subnormal results have fewer digits.
        assert (np.abs(found - exact) <= least * np.maximum(exact, 1e-4)).all()
        total = np.log(powers.sum(axis)) + wide.max(axis)
        found = specops.logsumexp(x, axis=axis).astype(np.float64)
        assert (np.abs(found - total) <= least * np.abs(total)).all()
print("done")
"""
    done(python(code, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""))


def test_sums_are_the_same_on_all_processors() -> None:
    """A Zen adds in other ways, which round as those of the others do, and takes rows one by one where input is large.

    Where elements cancel out, all that is left is what was rounded: any other order of additions shows.
    """
    code = """
import hashlib
import os
import ml_dtypes
import numpy as np
import specops
from specops import onnx
from specops.lowering import machine
machine.UNCACHED_BYTES = int(os.environ.get("UNCACHED_BYTES", machine.UNCACHED_BYTES))
random = np.random.default_rng(2)
x = random.standard_normal((37, 1003)).astype(np.float32)
half = np.ldexp(random.standard_normal((41, 41)), random.integers(0, 60, (41, 41)))
cancelling = random.permuted(np.concatenate((half, -half)), axis=0).astype(np.float32)
digest = hashlib.sha256()
for sums in (
    onnx.reduce_sum(x, axes=[1]),
    onnx.reduce_sum(x.astype(np.float16), axes=[1]),
    onnx.reduce_sum(x.astype(ml_dtypes.bfloat16)[:, 5:21], axes=[1]),
    specops.l1_norm(x, axis=0),
    specops.l2_norm(x, axis=1),
    specops.l2_norm(x.astype(np.float16), axis=0),
    onnx.reduce_sum(cancelling, axes=[0]),
    onnx.reduce_sum(np.ascontiguousarray(cancelling.T), axes=[1]),
    onnx.reduce_sum(np.ldexp(cancelling, -50).astype(np.float16), axes=[0]),
    onnx.reduce_sum(cancelling.astype(np.float64), axes=[0]),
):
    digest.update(sums.tobytes())
print(digest.hexdigest())
"""
    here = python(code)
    assert len(here.stdout) == 65, here.stderr
    done(python(code, UNCACHED_BYTES="0"), here.stdout)
    features = llvmlite.binding.get_host_cpu_features()
    processors = {"generic": ""}
    if features.get("avx2"):
        # With the features of this processor, and without those that it lacks.
        processors |= dict.fromkeys(("znver1", "znver5"), features.flatten())
    for name, has in processors.items():
        large = "0" if name == "znver5" else "33554432"
        there = python(code, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=has, UNCACHED_BYTES=large)
        done(there, here.stdout)


class Raises:
    """An object of another library, at its worst: whatever it is asked, it raises."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> object:
        raise RuntimeError("iter")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


@pytest.mark.parametrize("name", ["x", "axes", "axis_direction", "output_dtype", "out"])
def test_objects_that_raise(name: str) -> None:
    """What an argument raises when it is looked at never reaches the caller as it is."""
    arguments: dict[str, Any] = {"x": np.ones((2, 3), np.float32), name: Raises()}
    with pytest.raises(ValidationError):
        dml.argmax(**arguments)


@pytest.mark.parametrize("member", ["DataType", "Sizes", "Strides", "Flags", "DimensionCount"])
def test_members_that_raise(member: str) -> None:
    members: dict[str, Any] = {"DataType": "FLOAT32", "Sizes": [2, 3], member: Raises()}
    with pytest.raises(ValidationError):
        dml.TensorDesc(**members).empty()


def test_a_sequence_that_never_ends() -> None:
    """A sequence that lies about its length is read no further than its limit."""

    class Endless:
        def __len__(self) -> int:
            return 1

        def __iter__(self) -> Any:
            return iter(int, 1)

    violation = refused(lambda: specops.argmax(np.ones(3), untyped(Endless())))
    assert (violation.id, violation.field) == ("field_type", "axis")


@pytest.mark.parametrize(
    ("flags", "read"),
    [
        ("DML_TENSOR_FLAG_NONE", "NONE"),
        ("DML_TENSOR_FLAGS_NONE", "NONE"),
        ("NONE", "NONE"),
        (0, "NONE"),
        ("DML_TENSOR_FLAG_OWNED_BY_DML", "OWNED_BY_DML"),
        (1, "OWNED_BY_DML"),
    ],
)
def test_flags_under_their_names_in_the_header(flags: Any, read: str) -> None:
    """What each of them is read as: an input may have both, an output may not be owned."""

    def desc(**outputs: Any) -> ArgmaxOperatorDesc:
        return ArgmaxOperatorDesc(
            InputTensor=TensorDesc("FLOAT32", [2, 3], Flags=flags),
            OutputTensor=TensorDesc("UINT32", [1, 3], **outputs),
            Axes=[0],
            AxisDirection="INCREASING",
        )

    desc().validate()
    if read == "NONE":
        assert desc(Flags=flags).compile().outputs["OutputTensor"].flags == read
    else:
        found = refused(lambda: desc(Flags=flags).validate()).found
        assert found == f"OutputTensor.flags = {read}"


# --- classes that say of themselves what is not so ---


class Lies(np.ndarray):
    """Memory that may not be written to, and elements that overlap."""

    @property
    def flags(self) -> Any:
        return type("F", (), {"writeable": True, "c_contiguous": True})

    @property
    def size(self) -> int:
        return 1


class Endless(list[Any]):
    def __iter__(self) -> Any:
        return itertools.count()


class NoKey(int):
    def __hash__(self) -> int:
        raise RuntimeError("not a key")


def test_what_an_output_says_of_itself_is_not_believed() -> None:
    x = np.ones((3, 4), np.float32)
    fixed = np.frombuffer(bytes(12), np.float32).view(Lies)
    overlapping = as_strided(np.zeros(1, np.float32), (3,), (0,)).view(Lies)
    pretended = Mock(spec=np.ndarray)
    for out, id in ((fixed, "writable"), (overlapping, "output_overlap"), (pretended, "array")):
        with pytest.raises(ValidationError) as caught:
            specops.l2_norm(x, 1, out=out)
        assert [v.id for v in caught.value.violations] == [id]
    assert bytes(np.asarray(fixed)) == bytes(12)
    with pytest.raises(ValidationError):
        specops.l2_norm(pretended, 1)


@pytest.mark.parametrize(
    "axis",
    [
        np.timedelta64(1),
        [np.timedelta64(1)],
        np.array([1], "m8[ns]"),
        Mock(spec=int),
        type("Meta", (type,), {"__eq__": lambda *_: True})("Class", (), {}),
    ],
    ids=["time", "times", "array of times", "pretended", "class"],
)
def test_arguments_that_are_no_keys(axis: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        specops.l2_norm(np.ones((3, 4), np.float32), axis)
    assert [v.id for v in caught.value.violations] == ["field_type"]


def test_numbers_of_derived_classes() -> None:
    """As the numbers that they are, whatever their own methods do."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert specops.argmax(x, NoKey(1)).tolist() == specops.argmax(x, [NoKey(1)]).tolist() == [3] * 3
    with pytest.raises(ValidationError):
        specops.argmax(x, Endless())
    with pytest.raises(ValidationError):
        specops.lp_pool(x, [2], p=Mock(spec=float))
