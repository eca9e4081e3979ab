"""What ought to be refused: values of each argument, inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from specops.directml import TensorDesc
from stress.draws.common import Call


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


JUNK = ["junk", 1.5, object(), {}, b"x", 1j, Raises(), np.timedelta64(1, "s")]
JUNK += [float("nan"), np.float32(1)]
FLAGS = [
    "keepdims",
    "last",
    "select_last_index",
    "ceil_mode",
    "storage_order",
    "noop_with_empty_axes",
    "count_padding",
    "count_include_pad",
    "include_padding",
    "IncludePadding",
]
# Arguments whose number may stand for that of each spatial dimension.
ALL_DIMENSIONS = ["strides", "dilations", "pads", "start_padding", "end_padding"]
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
    rank, value, onnx = call.inputs[0].ndim, call.arguments[name], call.form in ("onnx", "compiled")
    if name == "OutputIndicesTensor":
        return wrong_tensors(value)[:-4] + [5, "junk"] if value is not None else [5, "junk"]
    if name.endswith("Tensor"):
        return wrong_tensors(value)
    if name == "axes" and onnx:
        out = [*NUMBERS, 0, True, "0", {0}, [[0]], [rank], [-rank - 1], [0] * 65, [2**70], [None]]
        return [*out, [0, 0], (0, -rank)]
    if name in ("axis", "axes", "Axes"):
        # Without dimensions 0 and -1 are axes, too.
        out = [*NUMBERS, rank + 1, -max(rank, 1) - 1, [[0]], True, "0", {0}]
        if call.form in ("plain", "directml", "directml1"):
            out += [[rank], (0, -rank), [0] * 65, np.array([[0]])] if rank else [[0]]
        return out + [[rank], [0, 0], [-1], None] if name == "Axes" else out
    if name in FLAGS:
        return [*NUMBERS, 2, -1, [True]]
    if name in ("function", "Function"):
        return [*NUMBERS, 12, -1, True, None, "sum", ["SUM"], "DML_REDUCE_FUNCTION_"]
    if name in ("p", "P"):
        wrong = [0, 0.5, -1, -(2**70), float("nan"), float("inf"), True, [2], "2"]
        return [*wrong, *(value for value in JUNK if not isinstance(value, float | np.floating))]
    if name in ("axis_direction", "AxisDirection"):
        return [*NUMBERS, 2, -1, True, None, "increasing"]
    if name in ("output_dtype", "indices_dtype"):
        if name == "indices_dtype" and not call.outputs[1:]:
            return []
        return [*JUNK[:-2], "float32", "uint8", ">i4", 3]
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
    out = [*NUMBERS, [3] * (count + 1), [1] * 65]
    if name not in ALL_DIMENSIONS:
        out.append(1)
    if count:
        out += [[-1] * count, [2**70] * count, [0.5] * count]
    if name in ("output_sizes", "output_shape"):
        return [*out, [0] * count, [n + 9 for n in value]] if count else out
    if count:
        out.append([])
    if "pad" not in name.lower():
        out.append([0] * count)
    filled = call.arguments.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER", 1, 2)
    if name in ("window_size", "kernel_shape", "WindowSize") and not filled:
        out.append([10**6] * count)
    return out


def wrong_inputs(call: Call, number: int) -> list[Any]:
    """What is no input, or not that one's."""
    x = call.inputs[number]
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
        np.zeros(x.shape, np.complex64),
        x.astype(object),
        np.zeros(x.shape, "S2"),
        np.zeros(x.shape, "M8[s]"),
    ]
    out += [np.zeros(x.shape, "V4"), np.zeros(x.shape, "f4,f4")]
    if np.dtype(np.longdouble).itemsize > 8:  # else it is FLOAT64
        out.append(np.zeros(x.shape, np.longdouble))
    if number:  # its sizes follow from the first one's
        out += [x[None], np.zeros((*x.shape, 2), x.dtype)]
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
    other = np.int32 if array.dtype == np.int16 else np.int16
    out += [np.zeros(array.shape, other), np.zeros(array.shape, object)]
    if array.dtype.itemsize > 1 and array.dtype.kind != "V":
        out.append(np.zeros(array.shape, array.dtype.newbyteorder()))
    if array.size > 1:
        strides = [0 if n > 1 else 8 for n in array.shape]
        out.append(np.ndarray(array.shape, array.dtype, bytearray(64), 0, strides))
        if array.dtype.itemsize > 1:
            count = sum(n - 1 for n in array.shape) + array.dtype.itemsize
            out.append(np.ndarray(array.shape, array.dtype, bytearray(count), 0, [1] * array.ndim))
    return out
