"""The annotations of the functions: mypy checks this file, and each call does what they say.

Where they do not allow a call, mypy refuses a comment that ignores nothing.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pytest

import specops
from specops import ValidationError
from specops import directml as dml
from specops import onnx as ox

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Shared:
    """What has no more of an array than its memory."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return X


def test_data_types_of_results() -> None:
    assert assert_type(specops.softmax(X, -1), npt.NDArray[np.float32]).dtype == np.float32
    assert assert_type(specops.average_pool(X, [2]), npt.NDArray[np.float32]).dtype == np.float32
    assert assert_type(specops.softmax(Shared()), npt.NDArray[Any]).dtype == np.float32
    unpooled = specops.max_unpool(X, np.arange(12).reshape(3, 4), (12,))
    assert assert_type(unpooled, npt.NDArray[np.float32]).dtype == np.float32
    assert assert_type(dml.argmax(X, [0]), np.ndarray).dtype == np.uint32
    assert assert_type(ox.argmax(X), np.ndarray).dtype == np.int64


def test_reductions_to_scalars_and_arrays() -> None:
    """Over all axes a scalar; over some an array, or a scalar where no other is left."""
    assert isinstance(assert_type(specops.argmax(X), np.int64), np.int64)
    assert isinstance(assert_type(specops.max(X, axis=None), np.float32), np.float32)
    assert isinstance(assert_type(specops.argmax(X, 0), npt.NDArray[np.int64] | Any), np.ndarray)
    assert isinstance(assert_type(specops.max(X, 0), npt.NDArray[np.float32] | Any), np.ndarray)
    assert isinstance(specops.max(X, (0, 1)), np.float32)
    kept = assert_type(specops.sum(X, keepdims=True), npt.NDArray[np.float32] | Any)
    assert kept.shape == (1, 1)
    out = np.empty((), np.float32)
    assert specops.sum(X, out=out) is out
    assert assert_type(specops.sum(Shared()), npt.NDArray[Any] | Any) == 66


def test_optional_outputs() -> None:
    assert assert_type(specops.max_pool(X, [2]), npt.NDArray[np.float32]).shape == (3, 3)
    values, indices = specops.max_pool(X, [2], indices=True)
    assert assert_type(values, npt.NDArray[np.float32]).dtype == np.float32
    assert assert_type(indices, npt.NDArray[np.int64]).dtype == np.int64
    for asked in (True, False):
        assert isinstance(specops.max_pool(X, [2], indices=asked), tuple) == asked
    both = specops.max_pool(X, [2], indices=True, out=(None, indices))
    assert both[1] is indices
    assert specops.max_pool(X, [2], out=(values,)) is values
    assert isinstance(specops.max_pool(X, [2], out=(None,)), np.ndarray)
    image = X.reshape(1, 1, 3, 4)
    assert (
        len(assert_type(ox.max_pool(image, [2, 2], indices=True), tuple[np.ndarray, np.ndarray]))
        == 2
    )
    assert assert_type(dml.max_pooling1(image, window_size=[2, 2]), np.ndarray).ndim == 4


def test_compiled_operators() -> None:
    compiled = ox.Softmax().compile("float32", [3, 4])
    assert assert_type(compiled(X), np.ndarray | Any).shape == (3, 4)
    values, _ = ox.MaxPool(kernel_shape=[2], indices=True).compile("float32", [1, 3, 4])(X[None])
    assert values.shape == (1, 3, 3)


def test_arguments_that_are_taken() -> None:
    axis, two = np.array([0, 1]), np.array([2, 2])
    assert specops.sum(X, axis) == 66
    assert specops.sum(X, np.int8(0), keepdims=np.True_).shape == (1, 4)
    assert specops.sum(X, 0, keepdims=1).shape == (1, 4)
    assert specops.max_pool(X, [2], strides=3, ceil_mode=1).shape == (3, 2)
    assert specops.max_pool(X, two, strides=np.int64(2)).shape == (1, 2)
    assert specops.max_pool(X, range(2, 3), dilations=[np.uint8(1)]).shape == (3, 3)
    assert specops.argmax(array.array("d", [1, 3, 2])) == 1
    assert specops.argmax(memoryview(b"\1\3\2")) == 1
    assert specops.argmax(np.float32(1)) == 0


def test_arguments_that_are_not() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: specops.argmax([1, 2]),  # type: ignore[call-overload]
        lambda: specops.argmax("abc"),  # type: ignore[call-overload]
        lambda: specops.softmax(1.0),  # type: ignore[call-overload]
        lambda: specops.max_pool([[1]], [1]),  # type: ignore[call-overload]
        lambda: specops.max_pool(X, [1.5]),  # type: ignore[list-item]
        lambda: specops.sum(X, "0"),  # type: ignore[arg-type]
        lambda: specops.sum(X, keepdims=None),  # type: ignore[call-overload]
        lambda: dml.argmax([[1]], [0]),  # type: ignore[arg-type]
        lambda: ox.argmax([1]),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(ValidationError):
            call()
