"""What is taken and what is refused: arrays, arguments, outputs; the errors that say so."""

from __future__ import annotations

import array
import collections
import enum
import importlib
import itertools
import pickle
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from refusals import refused
from untyped import untyped

import specops
from specops import SpecopsError, ValidationError, Violation, onnx
from specops import directml as dml
from specops.directml import ArgmaxOperatorDesc, TensorDesc
from specops.dxdispatch import ModelError
from specops.errors import Unsupported
from specops.vocabulary import DIRECTML_TYPES
from stress.draws.wrong import Raises

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


class CopyingByName:
    """The same, whose `__array__` takes what it is asked for by any name."""

    def __array__(self, dtype: Any = None, **options: Any) -> np.ndarray:
        return Copying().__array__(dtype, **options)


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


class Struct:
    """An object with that interface for C alone."""

    def __init__(self, x: np.ndarray) -> None:
        self.__array_struct__ = x.__array_struct__
        self._x = x


TAKEN: dict[str, Any] = {
    "memoryview": memoryview,
    "dlpack": Dlpack,
    "__array__": Wrapped,
    "__array_interface__": Interface,
    "__array_struct__": Struct,
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
@pytest.mark.parametrize("kind", [Copying, CopyingByName])
def test_a_copy_is_never_made(kind: type, form: Any) -> None:
    """An object that can only be copied is refused."""
    assert refused(lambda: form(kind())).id == "array"


@pytest.mark.parametrize("form", FORMS)
def test_masked_array(form: Any) -> None:
    """The mask would be ignored, so the array is refused, with a hint."""
    violation = refused(lambda: form(np.ma.masked_array(PAGE, PAGE > 4)))
    assert violation.id == "array" and "filled" in violation.allowed


def test_what_makes_an_array_is_told() -> None:
    assert "numpy.frombuffer" in refused(lambda: specops.max(b"abc")).allowed
    violation = refused(lambda: specops.argmax(PAGE, axis=0, out=np.ma.zeros(3, np.int64)))
    assert (violation.found, "its data" in violation.allowed) == ("a masked array", True)


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
    "value", [-1, 1 << 32, 1.5, "2", bytearray(2), True, [1.5, 2], [[2]], object()], ids=shown
)
def test_what_stands_for_no_entry(value: Any) -> None:
    violation = refused(lambda: specops.max_pool(IMAGE, (2, 2), strides=value))
    assert (violation.field, violation.id) == ("strides", "field_type")
    assert violation.allowed.startswith("an integer or a sequence of at most 64 integers from")


@pytest.mark.parametrize("one", [1, np.int64(1), np.array(1)], ids=shown)
def test_an_integer_that_is_no_list_of_one(one: Any) -> None:
    assert refused(lambda: onnx.reduce_max(PAGE, axes=one)).allowed.endswith(", such as [1]")
    with pytest.raises(ValidationError, match="to 4294967295 "):
        TensorDesc("FLOAT32", untyped(-1)).empty()


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


def test_arguments_are_told_as_they_were_given() -> None:
    """On one line, and not as the cache keeps them."""
    told = refused(lambda: specops.argmax(PAGE, 1, untyped(np.full((8, 8), 2))))
    assert told.field == "keepdims" and "\n" not in str(told)
    assert told.allowed == "True, False, 1 or 0; an array to write to is given by name, as out="
    assert refused(lambda: specops.argmax(PAGE, keepdims=untyped([]))).found == "[]"
    assert refused(lambda: specops.max(PAGE, [-9, 0])).found == "[-9, 0]"
    assert refused(lambda: specops.max(PAGE, (-9, 0))).found == "(-9, 0)"


def test_the_range_of_axes_is_told_at_both_ends() -> None:
    functions = [specops.argmax, specops.softmax, partial(dml.reduce, function="SUM")]
    for function in functions:
        for axis in (-3, 2, [0, 2]):
            name = "axes" if isinstance(function, partial) else "axis"
            told = refused(partial(untyped(function), PAGE, **{name: axis}))
            assert told.allowed.endswith("each from -2 to 1")
    assert refused(lambda: specops.max(np.array(1.0), 1)).allowed.endswith("there are no axes")
    assert "from" not in refused(lambda: specops.max(PAGE, [1, 1])).allowed


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
    for dtype in (np.uint32, np.uint64):
        several = [outs[0], np.zeros((1, 1, 3, 4), dtype)]
        dml.max_pooling2(image, [2, 2], strides=[2, 2], indices=True, out=several)
        assert several[1][0, 0, 1].tolist() == [16, 18, 20, 22]
    pair = collections.namedtuple("pair", "elements indices")
    named = pair(*outs)
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


@pytest.mark.parametrize(
    "kind", ["list", "read-only", "repeated", "one for two", "dtype", "shape", "input"]
)
def test_refused_outputs_of_the_plain_form(kind: str) -> None:
    """The same for `specops.argmax`, whose output is int64 and drops the axes."""
    x = np.arange(9.0).reshape(3, 3)
    strided = np.lib.stride_tricks.as_strided
    out = {
        "list": [0, 0, 0],
        "read-only": np.broadcast_to(np.int64(0), (3,)),
        "repeated": strided(np.zeros(1, np.int64), (3,), (0,)),
        "one for two": strided(np.zeros(1, np.int64), (2,), (0,)),
        "dtype": np.zeros(3, np.int32),
        "shape": np.zeros((1, 3), np.int64),
        "input": x.view(np.int64)[0],
    }[kind]
    ids = {"list": "array", "read-only": "writable", "repeated": "output_overlap"}
    ids |= {"one for two": "output_overlap", "dtype": "data_type", "input": "overlap"}
    given = x[:, :2] if kind == "one for two" else x
    assert refused(lambda: specops.argmax(given, 0, out=out)).id == ids.get(kind, kind)


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
    told = f"; numpy.asarray(x).astype(numpy.{remedy}) makes one of x"
    assert allowed.endswith(told) if remedy else "astype" not in allowed


def test_what_another_library_says() -> None:
    """Why it does not share its memory is told; the usual advice would not help."""
    violation = refused(lambda: specops.argmax(Attached()))
    assert violation.found == "a value of type Attached (detach it first)"
    assert "numpy.asarray" not in violation.allowed
    assert "numpy.asarray" in refused(lambda: specops.argmax(untyped([1, 2]))).allowed
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        violation = refused(lambda: specops.argmax(Graded()))
    assert violation.found == "a value of type Graded (detach it first)" and not told


def test_what_would_be_copied() -> None:
    """As a DataFrame of several types would: what makes an array of it is told."""

    class Frame:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array(range(2), copy=copy)

    told = refused(lambda: specops.argmax(Frame()))
    assert "Unable to avoid copy" in told.found
    assert told.allowed.endswith("; numpy.asarray makes one")


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
    assert (told.field, told.found) == ("output_sizes", "[-1]")
    told = refused(lambda: specops.max_unpool(one, np.array([0, 1]), untyped(4)))
    assert (told.field, told.found) == ("output_sizes", "4")
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
        np.broadcast_to(x[0, 0, ::-1].T, (3, 5, 4)),
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


class OwnError(ValidationError):
    """As a caller's code may raise it, with what it knows."""

    def __init__(self, layer: int, violations: list[Violation]) -> None:
        super().__init__(violations)
        self.layer = layer


def test_pickled_errors_keep_notes_and_types() -> None:
    found: list[SpecopsError] = [OwnError(3, [Violation("id", "op", "x", "1", "2", "page")])]
    found += [Unsupported("the model", ["a node"]), ModelError([])]
    for error in found:
        error.add_note("in layer 3")
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
        assert vars(copy) == vars(error) and copy.__notes__ == ["in layer 3"]


@pytest.mark.parametrize("axes", [[2], {0, 1}, 1.5, "a", np.array([9]), range(100)])
def test_an_error_is_told_once(axes: Any) -> None:
    """Also where arguments are read again as they were given: no other error stands before it in the traceback."""
    for call in (lambda: dml.argmax(PAGE, axes), lambda: specops.sum(PAGE, axis=axes)):
        with pytest.raises(ValidationError) as caught:
            call()
        assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_descriptions_and_operators_show_themselves() -> None:
    """Descriptions are values: equal, immutable, picklable."""
    desc = TensorDesc("FLOAT32", (3, 3))
    assert desc == TensorDesc("FLOAT32", (3, 3)) and pickle.loads(pickle.dumps(desc)) == desc
    with pytest.raises(AttributeError):
        untyped(desc).Sizes = (1,)
    assert "FLOAT32" in repr(described(PAGE)) and "DML_OPERATOR_ARGMAX" in repr(described(PAGE))


class RaisesWhenShown(Raises):
    """It raises then, too."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")


@pytest.mark.parametrize("name", ["x", "axes", "axis_direction", "output_dtype", "out"])
def test_objects_that_raise(name: str) -> None:
    """What an argument raises when it is looked at never reaches the caller as it is."""
    arguments: dict[str, Any] = {"x": np.ones((2, 3), np.float32), name: RaisesWhenShown()}
    with pytest.raises(ValidationError):
        dml.argmax(**arguments)


@pytest.mark.parametrize("member", ["DataType", "Sizes", "Strides", "Flags", "DimensionCount"])
def test_members_that_raise(member: str) -> None:
    members: dict[str, Any] = {"DataType": "FLOAT32", "Sizes": [2, 3], member: RaisesWhenShown()}
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


# --- classes that say of themselves what is not so ---


class Lies(np.ndarray):
    """Memory that may not be written to, elements that overlap, and of another type."""

    @property
    def flags(self) -> Any:
        return type("F", (), {"writeable": True, "c_contiguous": True})

    @property
    def size(self) -> int:
        return 1

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float16)


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
        np.timedelta64(1, "s"),
        [np.timedelta64(1, "s")],
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
