"""Sums, products, norms, logarithms of sums, extremes and their indices over axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from draw import FLOATS as FLOAT_BITS
from draw import Random, numpy_type, random_axes, values
from oracle import numbers
from reduce_oracle import check_results, of_nothing

import specops
from specops import directml as dml
from specops.vocabulary import ENUMS, NEWEST_OPSET
from stress.draws.arg_reduce import BETTER, check_indices, wild_axes
from stress.draws.common import (
    FLOATS,
    Call,
    Described,
    Members,
    Node,
    Shape,
    call_of,
    described,
    drawn_from,
    listed,
    onnx_function,
    reduced_shape,
    small_shape,
    spelled,
    wild_attribute,
    wild_level,
    wild_numbers,
    wild_shape,
    wild_tensor,
)

INTEGERS = ["INT32", "UINT32", "INT64", "UINT64"]
SMALL = ["INT8", "UINT8"]
PLAIN = {
    "l1_norm": "l1",
    "l2_norm": "l2",
    "logsumexp": "log_sum_exp",
    "max": "max",
    "mean": "mean",
    "min": "min",
    "prod": "product",
    "sum": "sum",
}
EXTREMES = ("max", "min")
DIRECTML = {
    "ARGMAX": "argmax",
    "ARGMIN": "argmin",
    "AVERAGE": "mean",
    "L1": "l1",
    "L2": "l2",
    "LOG_SUM": "log_sum",
    "LOG_SUM_EXP": "log_sum_exp",
    "MAX": "max",
    "MIN": "min",
    "MULTIPLY": "product",
    "SUM": "sum",
    "SUM_SQUARE": "sum_square",
}
ONNX = {
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "product",
    "ReduceSum": "sum",
    "ReduceSumSquare": "sum_square",
}
OPSETS = [1, 11, 12, 13, 18, 20, NEWEST_OPSET]

# What each function is drawn of, where it has the type at all; each pair is a compiled version or shares one.
WIDE_FLOATS = [*FLOATS, "FLOAT64", "BFLOAT16"]
DRAWN = {function: [*WIDE_FLOATS, *INTEGERS, *SMALL, "BOOL"] for function in DIRECTML.values()}


def directml_types(function: str) -> list[str]:
    types = [*FLOATS, *INTEGERS, *SMALL]
    if function in ("mean", "l2", "log_sum", "log_sum_exp"):
        types = FLOATS
    elif function in ("l1", "sum_square", "product", "sum"):
        types = [*FLOATS, *INTEGERS]
    return [name for name in types if name in DRAWN[function]]


def plain_types(function: str) -> list[str]:
    types = [*WIDE_FLOATS, *INTEGERS, *SMALL, "BOOL"] if function in EXTREMES else WIDE_FLOATS
    return [name for name in types if name in DRAWN[function]]


def onnx_types(function: str, opset: int) -> list[str]:
    types = [*FLOATS, "FLOAT64", *INTEGERS]
    if function in EXTREMES:
        types += [*(SMALL if opset >= 12 else []), *(["BOOL"] if opset >= 20 else [])]
    elif function.startswith("log_sum") and opset >= 28:
        types = WIDE_FLOATS
    return [name for name in types if name in DRAWN[function]]


def axes_as_input(operator: str) -> int:
    """From which operator set on the axes are an input, and an empty list of them may mean none."""
    return 13 if operator == "ReduceSum" else 18


def valid(random: Random, family: str) -> Call:
    form = str(random.choice(["plain", "directml", "description", "onnx", "onnx", "compiled"]))
    lowest = 1 if form in ("directml", "description") else 0
    shape = small_shape(random, 8, lowest)
    if shape and not lowest and random.random() < 0.05:
        shape = tuple(0 if d == random.integers(len(shape)) else n for d, n in enumerate(shape))
    axes = random_axes(random, len(shape))
    keep, nan = True, "propagates"
    arguments: dict[str, Any]
    if form == "plain":
        called = drawn_from(random, list(PLAIN))
        computed = PLAIN[called]
        name = drawn_from(random, plain_types(computed))
        if computed in EXTREMES:  # of nothing there is none
            shape = tuple(1 if d in axes and n == 0 else n for d, n in enumerate(shape))
        keep, function = bool(random.integers(2)), getattr(specops, called)
        arguments = {"axis": spelled(random, axes, len(shape)), "keepdims": keep}
    elif form in ("onnx", "compiled"):
        operator, opset = drawn_from(random, list(ONNX)), int(random.choice(OPSETS))
        computed = ONNX[operator]
        name = str(random.choice(onnx_types(computed, opset)))
        function = onnx_function(operator, form)
        forms = listed(random, axes, len(shape))
        keep = bool(random.integers(2))
        arguments = {"keepdims": drawn_from(random, [keep, int(keep)]), "opset": opset}
        if opset >= axes_as_input(operator):
            arguments["noop_with_empty_axes"] = bool(random.integers(2))
        if not axes and not arguments.get("noop_with_empty_axes"):
            axes = tuple(range(len(shape)))
            forms = [None, [], (), listed(random, axes, len(shape))[0]]
        arguments["axes"] = drawn_from(random, forms)
    else:
        called, nan = drawn_from(random, list(DIRECTML)), "ignored"
        computed = DIRECTML[called]
        name = str(random.choice(directml_types(computed)))
        output = name
        if computed in BETTER:
            output = str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
        spelling = drawn_from(random, [called, f"DML_REDUCE_FUNCTION_{called}"])
        number = ENUMS["DML_REDUCE_FUNCTION"][called]
        if form == "directml":
            function = dml.reduce
            arguments = {
                "function": drawn_from(random, [spelling, number]),
                "axes": spelled(random, axes, len(shape)),
            }
            if computed in BETTER:
                arguments["output_dtype"] = drawn_from(random, [output, numpy_type(output)])
        else:
            function = Described("REDUCE")
            arguments = {
                "Function": drawn_from(random, [spelling, number]),
                "InputTensor": described(random, name, shape),
                "OutputTensor": described(random, output, reduced_shape(shape, axes, True)),
                "AxisCount": [len(axes), None][random.integers(2)],
                "Axes": [axes, list(axes)][random.integers(2)],
                "feature_level": ["5.0" if name not in FLOATS else "3.0", "6.4", None][
                    random.integers(3)
                ],
            }
    dtype = numpy_type(output if computed in BETTER else name)

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(computed, name, nan, found[0], x, axes)

    result = reduced_shape(shape, axes, keep)
    x = drawn(random, name, shape)
    return Call(function, name, [x], arguments, [(result, dtype)], check, form)


def drawn(random: Random, name: str, shape: Shape) -> np.ndarray:
    if name not in FLOAT_BITS or random.random() < 0.4:
        return values(random, name, shape)
    scale = float(random.choice([1, 1, 30, 1e-3]))
    return np.asarray(random.standard_normal(shape) * scale).astype(numpy_type(name))


def check_result(
    function: str, name: str, nan: str, found: np.ndarray, x: np.ndarray, axes: Any
) -> None:
    if function in BETTER:
        check_indices(BETTER[function], found, x, axes, False, nan)
    elif math.prod(x.shape[a] for a in axes):
        check_results(name, function, nan, x, axes, found)
    else:
        wanted = np.full(found.shape, of_nothing(name, function), found.dtype)
        np.testing.assert_array_equal(numbers(found), numbers(wanted))


def wild(random: Random, family: str) -> tuple[str, Members]:
    small = bool(random.random() < 0.5)
    rank = int(random.integers(1, 9)) if random.random() < 0.7 else 4
    sizes, axes = wild_numbers(random, rank, small), wild_axes(random, rank)
    called = drawn_from(random, list(DIRECTML))
    name = str(random.choice(directml_types(DIRECTML[called] if random.random() < 0.9 else "max")))
    output = name
    if called.startswith("ARG") == (random.random() < 0.95):
        output = str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
    result = [1 if d in axes else n for d, n in enumerate(sizes)]
    return "REDUCE", {
        "Function": called,
        "InputTensor": wild_tensor(random, name, sizes, small),
        "OutputTensor": wild_tensor(random, output, result, small, 0.02),
        "Axes": axes,
        "feature_level": wild_level(random),
    }


def wild_call(random: Random, function: Described, members: Members) -> Call:
    tensor, computed = members["InputTensor"], DIRECTML[members["Function"]]

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(computed, tensor.DataType, "ignored", found[0], x, members["Axes"])

    x = drawn(random, tensor.DataType, tuple(tensor.Sizes))
    return call_of(function, members, [x], check)


def node(random: Random, family: str) -> Node:
    operator, rank = drawn_from(random, list(ONNX)), int(random.integers(1, 7))
    attributes: dict[str, Any] = {"opset": int(random.choice(OPSETS))}
    count = int(random.integers(0, rank + 1))
    axes = [int(a) for a in random.permutation(rank)[:count]]
    attributes["axes"] = axes if random.random() < 0.8 else wild_attribute(random, count)
    attributes["keepdims"] = bool(random.integers(2))
    if random.random() < 0.3:
        attributes["noop_with_empty_axes"] = bool(random.integers(2))
    return Node(operator, attributes, [(str(random.choice(FLOATS)), wild_shape(random, rank))])
