"""Calls of every operator through each dialect: arguments that ought to give an answer, and what the oracle says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import oracle
from draw import Random, numpy_type, random_axes, random_shape, values
from test_max_pool import check_values
from test_softmax import check_close, numbers

import specops
from specops import directml as dml
from specops import onnx as ox
from specops.directml import TensorDesc
from specops.directml.registry import OPERATORS

FAMILIES = ["argmax", "argmin", "hardmax", "softmax", "log_softmax", "max_pool"]
# Few compiled versions serve them: those of FLOAT32, FLOAT16, UINT8 and INT64.
TYPES = ["FLOAT32", "FLOAT16", "UINT8", "INT8", "INT64", "UINT64"]
WIDE_TYPES = [*TYPES, "BFLOAT16", "BOOL"]
FLOATS = ["FLOAT32", "FLOAT16"]
Shape = tuple[int, ...]


@dataclass
class Call:
    """A call that ought to succeed, `function(x, **arguments, out=...)`, and what it ought to give."""

    function: Callable[..., Any]
    name: str  # of x's data type
    x: np.ndarray
    arguments: dict[str, Any]
    outputs: list[tuple[Shape, np.dtype]]
    check: Callable[
        [np.ndarray, list[np.ndarray]], None
    ]  # of the array in its place, and the outputs
    form: str = field(default="")

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.form} of {self.name} {self.x.shape}: {given}"


class Described:
    """`function(x, **members, feature_level, out)` that compiles a description and runs it."""

    def __init__(self, operator: str) -> None:
        self.description = OPERATORS[f"DML_OPERATOR_{operator}"]

    def __call__(self, x: Any, out: Any = None, feature_level: Any = None, **members: Any) -> Any:
        return self.description(**members).compile(feature_level)(x, out=out)


def small_shape(random: Random, highest: int, lowest: int = 1) -> Shape:
    """Mostly of some hundred elements, so that the oracle is quick."""
    while True:
        shape = random_shape(random, highest, lowest)
        if math.prod(shape) <= 700 or random.random() < 0.02:
            return shape


def spelled(random: Random, axes: Shape, rank: int) -> Any:
    """The same axes in one of the forms that functions take."""
    signed = [a - rank if random.random() < 0.3 else a for a in axes]
    forms: list[Any] = [
        signed,
        tuple(signed),
        np.array(signed, np.int64),
        [np.int8(a) for a in signed],
    ]
    if len(axes) == 1:
        forms += [signed[0], np.int64(signed[0])]
    if sorted(axes) == list(range(rank)):
        forms.append(None)
    return forms[random.integers(len(forms))]


def described(random: Random, name: str, shape: Shape) -> TensorDesc:
    """A description of the tensor; some with members that only say what follows anyway, or with gaps."""
    changes: dict[str, Any] = {}
    if random.random() < 0.3:
        step, strides = 1, [0] * len(shape)
        for d in map(int, random.permutation(len(shape))):
            strides[d] = step * int(random.integers(1, 3))
            step = strides[d] * shape[d]
        changes["Strides"] = strides
    if random.random() < 0.3:
        changes["DimensionCount"] = len(shape)
    if random.random() < 0.3:
        changes["GuaranteedBaseOffsetAlignment"] = int(random.choice([8, 256]))
    data_type = [name, f"DML_TENSOR_DATA_TYPE_{name}", numpy_type(name)][random.integers(3)]
    return TensorDesc(data_type, shape, **changes)


# --- argmax and argmin ---


def arg_reduce(random: Random, family: str) -> Call:
    better = "greater" if family == "argmax" else "less"
    form = str(random.choice(["plain", "directml", "description", "onnx", "compiled"]))
    name = str(random.choice(WIDE_TYPES if form == "plain" else TYPES))
    shape = small_shape(random, 8, 0 if form == "plain" else 1)
    axes, last = random_axes(random, len(shape)), bool(random.integers(2))
    keepdims, nan, output = True, "extreme", "INT64"
    arguments: dict[str, Any]
    if form == "plain":
        keepdims = bool(random.integers(2))
        function = getattr(specops, family)
        arguments = {"axis": spelled(random, axes, len(shape)), "keepdims": keepdims, "last": last}
    elif form in ("onnx", "compiled"):
        axes = (int(random.integers(len(shape))),)
        opset = int(random.choice([1, 7, 11, 12, 13, 28]))
        last = last and opset >= 12
        keepdims = bool(random.integers(2))
        function = getattr(ox, family)
        negative = opset >= 11 and random.random() < 0.5
        axis = axes[0] - len(shape) if negative else axes[0]
        arguments = {"axis": axis, "keepdims": keepdims, "opset": opset}
        if opset >= 12:
            arguments["select_last_index"] = last
        if form == "compiled":
            function = onnx_node("ArgMax" if family == "argmax" else "ArgMin")
    else:
        nan, output = "ignored", str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
        direction = [["INCREASING", 0], ["DECREASING", 1]][last][random.integers(2)]
        sizes = [1 if d in axes else n for d, n in enumerate(shape)]
        if form == "directml":
            function = getattr(dml, family)
            arguments = {
                "axes": spelled(random, axes, len(shape)),
                "axis_direction": direction,
                "output_dtype": [output, numpy_type(output)][random.integers(2)],
            }
        else:
            function = Described(family.upper())
            level = (
                ["4.1", "6.4", None]
                if name.endswith("64")
                else ["3.0", "DML_FEATURE_LEVEL_5_0", None]
            )
            arguments = {
                "InputTensor": described(random, name, shape),
                "OutputTensor": described(random, output, tuple(sizes)),
                "AxisCount": [len(axes), None][random.integers(2)],
                "Axes": [axes, list(axes)][random.integers(2)],
                "AxisDirection": direction,
                "feature_level": level[random.integers(3)],
            }
    result = tuple(1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes)
    dtype = numpy_type(output)

    def check(x: np.ndarray, found: list[np.ndarray]) -> None:
        expected = oracle.arg_reduce(x, axes, better, last, nan).reshape(result).astype(dtype)
        np.testing.assert_array_equal(found[0], expected)

    return Call(
        function, name, values(random, name, shape), arguments, [(result, dtype)], check, form
    )


def onnx_node(operator: str) -> Callable[..., Any]:
    """`function(x, **attributes, out)` that compiles a node and runs it."""

    def function(x: Any, out: Any = None, **attributes: Any) -> Any:
        x = (
            np.asarray(x)
            if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray)
            else x
        )
        like = x if isinstance(x, np.ndarray) else np.zeros((1, 1, 1), np.float32)
        return getattr(ox, operator)(**attributes).compile(like.dtype, like.shape)(x, out=out)

    return function


# --- softmax, its logarithm, hardmax ---


def normalized(random: Random, family: str) -> Call:
    form = str(
        random.choice(
            ["plain", "directml", "directml1", "description", "description1", "onnx", "compiled"]
        )
    )
    name = str(random.choice(FLOATS))
    shape = small_shape(random, 8)
    rank = len(shape)
    axes = random_axes(random, rank)
    nan = "extreme" if form in ("plain", "onnx", "compiled") else "ignored"
    arguments: dict[str, Any] = {}
    if form == "plain":
        function = getattr(specops, family)
        arguments = {"axis": spelled(random, axes, rank)}
    elif form in ("onnx", "compiled"):
        opset = int(random.choice([1, 11, 12, 13, 28]))
        axis = int(random.integers(-rank if opset >= 11 else 0, rank))
        axes = (axis % rank,) if opset >= 13 else tuple(range(axis % rank, rank))
        arguments = {"axis": axis, "opset": opset}
        names = {"hardmax": "Hardmax", "softmax": "Softmax", "log_softmax": "LogSoftmax"}
        function = getattr(ox, family) if form == "onnx" else onnx_node(names[family])
    elif form == "directml1":
        function = getattr(dml, f"activation_{family}1")
        arguments = {"axes": spelled(random, axes, rank)}
    elif form == "description1":
        function = Described(f"ACTIVATION_{family.upper()}1")
        arguments = {
            "InputTensor": described(random, name, shape),
            "OutputTensor": described(random, name, shape),
            "AxisCount": None,
            "Axes": list(axes),
            "feature_level": [None, "5.1", "6_4"][random.integers(3)],
        }
    else:
        shape = (*(1,) * (rank - 2), *shape[-2:])  # the older operators take no others
        axes = (rank - 1,)
        function = getattr(dml, f"activation_{family}")
        if form == "description":
            function = Described(f"ACTIVATION_{family.upper()}")
            level = [None, "3.0", "6.4"]
            arguments = {
                "InputTensor": described(random, name, shape),
                "OutputTensor": described(random, name, shape),
                "feature_level": level[random.integers(3)],
            }

    def check(x: np.ndarray, found: list[np.ndarray]) -> None:
        if family == "hardmax":
            expected = oracle.hardmax(x, axes, nan)
            np.testing.assert_array_equal(oracle.numbers(found[0]), oracle.numbers(expected))
        else:
            result = "probability" if family == "softmax" else "logarithm"
            check_close(name, x, axes, result, found[0])

    x = (values if family == "hardmax" else numbers)(random, name, shape)
    return Call(function, name, x, arguments, [(shape, x.dtype)], check, form)


# --- max pooling ---


@dataclass
class Pool:
    """Numbers of a pooling for each spatial dimension, and the sizes that follow."""

    window: list[int]
    strides: list[int]
    dilations: list[int]
    start: list[int]
    end: list[int]
    outputs: list[int]


def windows_hold_input(sizes: Shape, pool: Pool) -> bool:
    """By trying each window."""
    for n, w, s, d, p, o in zip(
        sizes, pool.window, pool.strides, pool.dilations, pool.start, pool.outputs, strict=True
    ):
        for i in range(o):
            if not any(0 <= i * s - p + j * d < n for j in range(w)):
                return False
    return True


def pool_of(random: Random, sizes: Shape, ceil: str, dilated: bool = True) -> Pool:
    """A pooling that fits; `ceil`: "" rounds down, "page" up, "onnx" up without windows that begin in the padding."""
    pool = Pool([], [], [], [], [], [])
    work = 2500 // max(1, math.prod(sizes) // 40)
    for n in sizes:
        while True:
            w = int(random.integers(1, 6))
            d = int(random.choice([1, 1, 2, 3])) if dilated else 1
            p, q = (int(random.choice([0, 0, 1, 2, 5])) for _ in range(2))
            s = int(random.choice([1, 1, 2, 3, w, 7]))
            room = n + p + q - (w - 1) * d - 1
            if room >= 0:
                break
        steps = room // s if not ceil else -(-room // s)
        o = steps + 1
        if ceil == "onnx" and steps * s >= n + p:
            o = steps
        if o * w > work:
            s = w = d = 1
            p = q = 0
            s = n
            o = 1
        work = max(1, work // (o * w))
        for to, number in zip(
            (pool.window, pool.strides, pool.dilations, pool.start, pool.end, pool.outputs),
            (w, s, d, p, q, o),
            strict=True,
        ):
            to.append(number)
    return pool


def pooling_shape(random: Random, batches: int, spatial: int) -> Shape:
    sizes = [int(random.choice([1, 1, 2, 3])) for _ in range(batches)]
    left = 60
    for _ in range(spatial):
        n = int(random.integers(1, max(2, min(left, 24))))
        left //= n
        sizes.append(n)
    return tuple(sizes)


def max_pool(random: Random, family: str) -> Call:
    form = str(
        random.choice(["plain", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2", "onnx", "compiled"])
    )
    form_of_description = form.startswith("MAX") and random.random() < 0.5
    batches = 2
    spatial = int(random.choice([1, 2, 2, 3]))
    opset = int(random.choice([1, 8, 10, 11, 12, 22, 28]))
    name = str(random.choice(TYPES))
    ceil, dilated, nan, order, index_type = "", True, "extreme", "row_major", "INT64"
    indices = bool(random.integers(2))
    if form == "plain":
        batches = int(random.integers(0, 4))
        name = str(random.choice(WIDE_TYPES))
        ceil = ["", "onnx"][random.integers(2)]
    elif form in ("onnx", "compiled"):
        name = str(
            random.choice(["FLOAT32", "FLOAT16", "UINT8", "INT8"] if opset >= 12 else FLOATS)
        )
        dilated = opset >= 10
        ceil = ["", "onnx"][random.integers(2)] if opset >= 10 else ""
        indices = indices and opset >= 8
        order = ["row_major", "column_major"][random.integers(2)] if opset >= 8 else order
    else:
        nan, index_type = "ignored", str(random.choice(["UINT32", "UINT64"]))
        dilated = form == "MAX_POOLING2"
        indices = indices and form != "MAX_POOLING"
        ceil = ["", "page"][random.integers(2)]
        if form != "MAX_POOLING1":
            spatial = int(random.choice([2, 2, 3]))
    while True:
        shape = pooling_shape(random, batches, spatial)
        sizes = shape[batches:]
        pool = pool_of(random, sizes, ceil, dilated)
        if not form.startswith("MAX") or windows_hold_input(sizes, pool):
            break
    arguments: dict[str, Any]
    result = (*shape[:batches], *pool.outputs)
    if form == "plain":
        function = specops.max_pool
        arguments = {
            "window_size": pool.window,
            "strides": pool.strides,
            "start_padding": tuple(pool.start),
            "end_padding": pool.end,
            "dilations": np.array(pool.dilations),
            "ceil_mode": bool(ceil),
            "indices": indices,
        }
    elif form in ("onnx", "compiled"):
        function = ox.max_pool if form == "onnx" else onnx_node("MaxPool")
        arguments = {
            "kernel_shape": pool.window,
            "strides": pool.strides,
            "pads": pool.start + pool.end,
            "auto_pad": [None, "NOTSET", ""][random.integers(3)],
            "indices": indices,
            "opset": opset,
        }
        if dilated:
            arguments |= {"dilations": pool.dilations, "ceil_mode": int(bool(ceil))}
        if opset >= 8:
            arguments["storage_order"] = order == "column_major"
    elif form_of_description:
        function = Described(form)
        arguments = {
            "InputTensor": described(random, name, shape),
            "OutputTensor": described(random, name, result),
            "DimensionCount": [None, spatial][random.integers(2)],
            "WindowSize": pool.window,
            "Strides": pool.strides,
            "StartPadding": pool.start,
            "EndPadding": pool.end,
            "feature_level": [None, "6.4"][random.integers(2)] if spatial > 1 else None,
        }
        if form != "MAX_POOLING":
            arguments["OutputIndicesTensor"] = (
                described(random, index_type, result) if indices else None
            )
        if form == "MAX_POOLING2":
            arguments["Dilations"] = pool.dilations
    else:
        function = getattr(dml, form.lower())
        arguments = {
            "window_size": pool.window,
            "strides": pool.strides,
            "start_padding": pool.start,
            "end_padding": pool.end,
            "output_sizes": result,
        }
        if form != "MAX_POOLING":
            arguments |= {"indices": indices, "indices_dtype": index_type}
        if form == "MAX_POOLING2":
            arguments["dilations"] = pool.dilations
    x = values(random, name, shape)
    outputs = [(result, x.dtype)] + [(result, numpy_type(index_type))] * indices

    def check(x: np.ndarray, found: list[np.ndarray]) -> None:
        wanted, places = oracle.max_pool(
            x, pool.window, pool.strides, pool.dilations, pool.start, pool.outputs, nan, order
        )
        if indices:
            np.testing.assert_array_equal(found[1], places.astype(found[1].dtype))
        check_values(found[0], wanted, indices)

    return Call(function, name, x, arguments, outputs, check, form)


def valid(random: Random, family: str) -> Call:
    """A call that ought to succeed."""
    if family == "max_pool":
        return max_pool(random, family)
    if family in ("argmax", "argmin"):
        return arg_reduce(random, family)
    return normalized(random, family)


# --- what ought to be refused ---


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
        return "Raises()"


JUNK = ["junk", 1.5, object(), {}, b"x", 1j, Raises(), float("nan"), np.float32(1)]
NUMBERS = [*JUNK, 2**70, -(2**70)]


def wrong_tensors(tensor: TensorDesc) -> list[Any]:
    """Descriptions that are wrong in one member, and what is none."""
    members = {name: getattr(tensor, name) for name in tensor.__dataclass_fields__}
    rank = len(tensor.Sizes)
    changes: list[dict[str, Any]] = [
        {"DataType": value} for value in ("junk", None, "COMPLEX64", ">f4", Raises())
    ]
    changes += [
        {"Sizes": value} for value in ((0,) * rank, [2**40] * rank, (1,) * 65, "1", 2, Raises())
    ]
    changes += [{"Sizes": (2**17,) * max(2, rank), "Strides": None, "DimensionCount": None}]
    changes += [
        {"Strides": value} for value in ([1] * (rank + 1), "1", [-1] * rank, [2**70] * rank, 3)
    ]
    changes += [{"TotalTensorSizeInBytes": value} for value in (0, 3, -4, 2**70, "4", 1.0)]
    changes += [{"GuaranteedBaseOffsetAlignment": value} for value in (3, 1 << 33, "8", -8, None)]
    changes += [{"DimensionCount": value} for value in (rank + 1, 0, "1", -1)]
    changes += [{"Flags": value} for value in ("junk", 2, None, -1)]
    return [TensorDesc(**{**members, **change}) for change in changes] + [
        None,
        5,
        np.zeros(3),
        "junk",
    ]


def wrong_arguments(call: Call, name: str) -> list[Any]:
    """Values of an argument, each of which ought to be refused."""
    rank, value = call.x.ndim, call.arguments[name]
    if name in ("InputTensor", "OutputTensor"):
        return wrong_tensors(value)
    if name == "OutputIndicesTensor":
        return wrong_tensors(value)[:-4] + [5, "junk"] if value is not None else [5, "junk"]
    if name in ("axis", "axes", "Axes"):
        out = [*NUMBERS, rank + 1, -rank - 1, [[0]], True, "0", {0}]
        if call.form in ("plain", "directml", "directml1"):
            out += [[rank], (0, -rank), [0] * 65, np.array([[0]])] if rank else [[0]]
        return out + [[rank], [0, 0], [-1], None] if name == "Axes" else out
    if name in ("keepdims", "last", "select_last_index", "ceil_mode", "storage_order"):
        return [*NUMBERS, 2, -1, [True]]
    if name in ("axis_direction", "AxisDirection"):
        return [*NUMBERS, 2, -1, True, None, "increasing"]
    if name in ("output_dtype", "indices_dtype"):
        return (
            [*JUNK[:-2], "float32", "uint8", ">i4", 3, None]
            if call.outputs[1:] or name[0] == "o"
            else []
        )
    if name == "opset":
        return [*NUMBERS, 0, 10**6, -1, True]
    if name == "auto_pad":
        return [*JUNK, 7, -1, "same_upper"]
    if name == "feature_level":
        return [*JUNK, "9.9", 3, "0.9", True, b"4.1"]
    if name == "AxisCount":
        return [*NUMBERS, len(call.arguments["Axes"]) + 1, -1]
    if name == "DimensionCount":
        return [*NUMBERS, rank, 0, -1]
    if name == "indices":
        return [*NUMBERS, 2]
    count = len(value)
    out = [*NUMBERS, [-1] * count, [1] * (count + 1), [2**70] * count, [0.5] * count, 1, [1] * 65]
    if name == "output_sizes":
        return [*out[:-2], [0] * count, [n + 9 for n in value]]
    if count:
        out.append([])
    if "pad" not in name.lower():
        out.append([0] * count)
    if name in ("window_size", "kernel_shape", "WindowSize"):
        out.append([10**6] * count)
    return out


def wrong_inputs(x: np.ndarray) -> list[Any]:
    """What is no input, or not that one's."""
    out: list[Any] = [
        x.tolist(),
        None,
        "abc",
        5,
        object(),
        Raises(),
        np.ma.masked_array(np.zeros(x.shape, np.float32)),
    ]
    if x.dtype.itemsize > 1:
        out.append(np.zeros(x.shape, x.dtype.newbyteorder()))
    out += [
        x.astype(np.complex64),
        x.astype(object),
        np.zeros(x.shape, "S2"),
        np.zeros(x.shape, "M8[s]"),
    ]
    out += [np.zeros(x.shape, "V4"), np.zeros(x.shape, "f4,f4"), np.zeros(x.shape, np.longdouble)]
    return out


def wrong_outputs(array: np.ndarray) -> list[Any]:
    """What is no output in `array`'s place; overlap has a verb of its own."""
    frozen = array.view()
    frozen.flags.writeable = False
    out: list[Any] = [
        array.tolist(),
        frozen,
        5,
        "abc",
        np.ma.masked_array(np.zeros(array.shape, array.dtype)),
    ]
    out += [
        array[None],
        np.zeros((*array.shape, 2), array.dtype),
        np.zeros(array.shape, np.complex64),
    ]
    out += [np.zeros(array.shape, np.int16), np.zeros(array.shape, object)]
    if array.dtype.itemsize > 1 and array.dtype.kind != "V":
        out.append(np.zeros(array.shape, array.dtype.newbyteorder()))
    if any(n > 1 for n in array.shape):
        strides = [0 if n > 1 else 8 for n in array.shape]
        out.append(np.ndarray(array.shape, array.dtype, bytearray(64), 0, strides))
        if array.dtype.itemsize > 1:
            count = sum(n - 1 for n in array.shape) + array.dtype.itemsize
            out.append(np.ndarray(array.shape, array.dtype, bytearray(count), 0, [1] * array.ndim))
    return out


# --- descriptions at random: whether they are right is not known beforehand ---

WILD = [0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32]


def wild_numbers(random: Random, count: int, small: bool) -> list[int]:
    """Numbers up to 2^32, most of them small."""
    if small or random.random() < 0.7:
        return [int(n) for n in random.integers(0 if random.random() < 0.3 else 1, 6, count)]
    return [WILD[i] for i in random.integers(len(WILD), size=count)]


def wild_tensor(
    random: Random, name: str, sizes: list[int], small: bool, wilder: float = 0.1
) -> TensorDesc:
    changes: dict[str, Any] = {}
    if random.random() < 5 * wilder:
        strides = wild_numbers(random, len(sizes), small)
        changes["Strides"] = [0 if random.random() < 0.4 else n for n in strides]
    if random.random() < wilder:
        changes["TotalTensorSizeInBytes"] = int(random.integers(2**40))
    if random.random() < wilder:
        changes["GuaranteedBaseOffsetAlignment"] = int(random.integers(70))
    return TensorDesc(name, sizes, **changes)


def wild(random: Random, family: str) -> tuple[Described, dict[str, Any]]:
    """A description of an operator of the family with any numbers in it, many of them wrong or huge."""
    small = bool(random.random() < 0.5)
    name = str(random.choice(FLOATS if family not in ("argmax", "argmin", "max_pool") else TYPES))
    rank = (
        int(random.integers(1, 9))
        if family != "max_pool"
        else int(random.choice([3, 4, 4, 5, 5, 8]))
    )
    sizes = wild_numbers(random, rank, small)
    level = [None, "6.4", "5.1", "5.0", "4.1", "3.0", "2.1", "1.0"][
        int(random.integers(16)) % 12 % 8
    ]
    members: dict[str, Any] = {
        "InputTensor": wild_tensor(random, name, sizes, small),
        "feature_level": level,
    }
    if family in ("argmax", "argmin"):
        axes = [
            int(a)
            for a in random.integers(
                0, rank + (random.random() < 0.1), random.integers(0, rank + 1)
            )
        ]
        axes = sorted(set(axes)) if random.random() < 0.9 else axes
        result = [1 if d in axes else n for d, n in enumerate(sizes)]
        output = str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
        members |= {
            "OutputTensor": wild_tensor(random, output, result, small, 0.02),
            "Axes": axes,
            "AxisDirection": int(random.integers(2)),
        }
        return Described(family.upper()), members
    if family != "max_pool":
        one = bool(random.integers(2))
        members["OutputTensor"] = wild_tensor(random, name, sizes, small, 0.02)
        if one:
            members["Axes"] = [d for d in range(rank) if random.random() < 0.5]
        return Described(f"ACTIVATION_{family.upper()}{'1' * one}"), members
    operator = str(random.choice(["MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"]))
    spatial = rank - 2
    window, strides, start, end, dilations = (
        wild_numbers(random, spatial, small) for _ in range(5)
    )
    if random.random() < 0.7:  # all right but for one number, perhaps
        sizes = list(pooling_shape(random, 2, spatial))
        members["InputTensor"] = wild_tensor(random, name, sizes, True, 0.03)
        while True:
            pool = pool_of(random, tuple(sizes[2:]), "", operator == "MAX_POOLING2")
            if windows_hold_input(tuple(sizes[2:]), pool):
                break
        window, strides, start, end = pool.window, pool.strides, pool.start, pool.end
        dilations = pool.dilations
        if random.random() < 0.7:
            numbers = [window, strides, start, end, dilations][random.integers(5)]
            numbers[random.integers(spatial)] = WILD[random.integers(len(WILD))]
    if operator != "MAX_POOLING2":
        dilations = [1] * spatial
    result = sizes[:2]
    for i, n in enumerate(sizes[2:]):
        room = n + start[i] + end[i] - (window[i] - 1) * dilations[i] - 1
        result.append(max(0, min(2**32, room // max(1, strides[i]) + 1 + (random.random() < 0.2))))
    members |= {
        "OutputTensor": wild_tensor(random, name, result, small, 0.02),
        "WindowSize": window,
        "Strides": strides,
        "StartPadding": start,
        "EndPadding": end,
    }
    if operator != "MAX_POOLING" and random.random() < 0.6:
        index_type = str(random.choice(["UINT32", "UINT64"]))
        members["OutputIndicesTensor"] = wild_tensor(random, index_type, result, small, 0.02)
    if operator == "MAX_POOLING2":
        members["Dilations"] = dilations
    return Described(operator), members


NODES = {
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "hardmax": "Hardmax",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "max_pool": "MaxPool",
}
WIDER = [*WILD, -1, -2, 2**33, 2**62, 2**63 - 1, -(2**63)]


def wild_node(random: Random, family: str) -> tuple[Callable[[], Any], str]:
    """A node of an ONNX operator to compile for a shape, with any numbers of 64 bits in it; and its text."""
    rank = int(random.integers(1, 7)) if family != "max_pool" else int(random.choice([3, 4, 4, 5]))
    shape = wild_numbers(random, rank, bool(random.integers(2)))
    if random.random() < 0.2:
        shape[random.integers(rank)] = WIDER[random.integers(len(WIDER))]

    def numbers(count: int) -> list[int]:
        if random.random() < 0.8:
            return [int(n) for n in random.integers(1, 4, count)]
        return [WIDER[i] for i in random.integers(len(WIDER), size=count)]

    attributes: dict[str, Any] = {"opset": int(random.choice([1, 8, 10, 11, 12, 13, 22, 28]))}
    if family == "max_pool":
        spatial = rank - 2
        attributes["kernel_shape"] = numbers(spatial)
        for name, count in (("strides", spatial), ("dilations", spatial), ("pads", 2 * spatial)):
            if random.random() < 0.5:
                attributes[name] = numbers(count)
        if random.random() < 0.3:
            attributes["auto_pad"] = int(random.integers(4))
        attributes["indices"] = bool(random.integers(2))
        attributes["ceil_mode"] = bool(random.integers(2)) or None
    else:
        attributes["axis"] = (
            int(random.integers(-rank, rank)) if random.random() < 0.8 else numbers(1)[0]
        )
    name = str(random.choice(FLOATS))
    text = f"{NODES[family]} {attributes} for {name} {shape}"
    return lambda: getattr(ox, NODES[family])(**attributes).compile(name, shape), text


def wild_call(
    random: Random, family: str, members: dict[str, Any], described: Described
) -> Call | None:
    """The call that an accepted description stands for; None where it is not small."""
    tensor = members["InputTensor"]
    shape = tuple(tensor.Sizes)
    result = tuple(members["OutputTensor"].Sizes)
    if max(math.prod(shape), math.prod(result)) > 2000:
        return None
    name = tensor.DataType
    x = values(random, name, shape)
    outputs = [(result, numpy_type(members["OutputTensor"].DataType))]
    if family in ("argmax", "argmin"):
        axes, last = tuple(members["Axes"]), members["AxisDirection"] == 1

        def check(x: np.ndarray, found: list[np.ndarray]) -> None:
            better = "greater" if family == "argmax" else "less"
            expected = oracle.arg_reduce(x, axes, better, last, "ignored")
            np.testing.assert_array_equal(found[0], expected.astype(found[0].dtype))

    elif family == "max_pool":
        window, strides = members["WindowSize"], members["Strides"]
        dilations = members.get("Dilations", [1] * len(window))
        if math.prod(result) * math.prod(window) > 4000 or max(window) > 1000:
            return None
        indices = "OutputIndicesTensor" in members
        if indices:
            outputs.append((result, numpy_type(members["OutputIndicesTensor"].DataType)))

        def check(x: np.ndarray, found: list[np.ndarray]) -> None:
            wanted, places = oracle.max_pool(
                x, window, strides, dilations, members["StartPadding"], result[2:]
            )
            if indices:
                np.testing.assert_array_equal(found[1], places.astype(found[1].dtype))
            check_values(found[0], wanted, indices)

    else:
        axes = tuple(members.get("Axes", [len(shape) - 1]))

        def check(x: np.ndarray, found: list[np.ndarray]) -> None:
            if family == "hardmax":
                np.testing.assert_array_equal(found[0], oracle.hardmax(x, axes))
            else:
                check_close(
                    name, x, axes, ["logarithm", "probability"][family == "softmax"], found[0]
                )

    return Call(described, name, x, members, outputs, check, "wild description")
