"""Argmax and argmin."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
from draw import Random, numpy_type, random_axes, values

import specops
from specops import directml as dml
from specops import onnx as ox
from specops.vocabulary import NEWEST_OPSET
from stress.draws.common import (
    FLOATS,
    OPSETS,
    TYPES,
    WIDE_TYPES,
    Call,
    Described,
    Members,
    Node,
    call_of,
    described,
    onnx_node,
    reduced_shape,
    small_shape,
    spelled,
    wild_attribute,
    wild_level,
    wild_numbers,
    wild_shape,
    wild_tensor,
)

NODES = {"argmax": "ArgMax", "argmin": "ArgMin"}
BETTER = {"argmax": "greater", "argmin": "less"}


def valid(random: Random, family: str) -> Call:
    form = str(random.choice(["plain", "directml", "description", "onnx", "compiled"]))
    name = str(random.choice(WIDE_TYPES if form == "plain" else TYPES))
    shape = small_shape(random, 8, 0 if form == "plain" else 1)
    axes, last = random_axes(random, len(shape)), bool(random.integers(2))
    keepdims, nan, output = True, "propagates", "INT64"
    arguments: dict[str, Any]
    if form == "plain":
        keepdims = bool(random.integers(2))
        function = getattr(specops, family)
        arguments = {"axis": spelled(random, axes, len(shape)), "keepdims": keepdims, "last": last}
    elif form in ("onnx", "compiled"):
        axes = (int(random.integers(len(shape))),)
        opset = int(random.choice([1, 7, 11, 12, 13, NEWEST_OPSET]))
        last = last and opset >= 12
        keepdims = bool(random.integers(2))
        function = getattr(ox, family)
        negative = opset >= 11 and random.random() < 0.5
        axis = axes[0] - len(shape) if negative else axes[0]
        arguments = {"axis": axis, "keepdims": keepdims, "opset": opset}
        if opset >= 12:
            arguments["select_last_index"] = last
        if form == "compiled":
            function = onnx_node(NODES[family])
    else:
        nan, output = "ignored", str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
        direction = [["INCREASING", 0], ["DECREASING", 1]][last][random.integers(2)]
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
                "OutputTensor": described(random, output, reduced_shape(shape, axes, True)),
                "AxisCount": [len(axes), None][random.integers(2)],
                "Axes": [axes, list(axes)][random.integers(2)],
                "AxisDirection": direction,
                "feature_level": level[random.integers(3)],
            }
    result = reduced_shape(shape, axes, keepdims)
    x, outputs = values(random, name, shape), [(result, numpy_type(output))]

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_indices(BETTER[family], found[0], x, axes, last, nan)

    return Call(function, name, [x], arguments, outputs, check, form)


def check_indices(
    better: str, found: np.ndarray, x: np.ndarray, axes: Any, last: bool, nan: str
) -> None:
    expected = oracle.arg_reduce(x, axes, better, last, nan).reshape(found.shape)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def wild_axes(random: Random, rank: int) -> list[int]:
    """Mostly right ones."""
    beyond = rank + (random.random() < 0.1)
    axes = [int(a) for a in random.integers(0, beyond, random.integers(0, rank + 1))]
    return sorted(set(axes)) if random.random() < 0.9 else axes


def wild(random: Random, family: str) -> tuple[str, Members]:
    small = bool(random.random() < 0.5)
    rank = int(random.integers(1, 9))
    sizes = wild_numbers(random, rank, small)
    axes = wild_axes(random, rank)
    output = str(random.choice(["UINT32", "INT32", "UINT64", "INT64"]))
    result = [1 if d in axes else n for d, n in enumerate(sizes)]
    return family.upper(), {
        "InputTensor": wild_tensor(random, str(random.choice(TYPES)), sizes, small),
        "OutputTensor": wild_tensor(random, output, result, small, 0.02),
        "Axes": axes,
        "AxisDirection": int(random.integers(2)),
        "feature_level": wild_level(random),
    }


def wild_call(random: Random, function: Described, members: Members) -> Call:
    tensor, axes, last = members["InputTensor"], members["Axes"], members["AxisDirection"] == 1
    better = BETTER[function.description.OPERATOR.name.removeprefix("DML_OPERATOR_").lower()]

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_indices(better, found[0], x, axes, last, "ignored")

    x = values(random, tensor.DataType, tuple(tensor.Sizes))
    return call_of(function, members, [x], check)


def node(random: Random, family: str) -> Node:
    return axis_node(random, NODES[family])


def axis_node(random: Random, operator: str) -> Node:
    """Of an operator whose attribute is one axis."""
    rank = int(random.integers(1, 7))
    axis = int(random.integers(-rank, rank))
    if random.random() < 0.2:
        axis = wild_attribute(random, 1)[0]
    attributes = {"opset": int(random.choice(OPSETS)), "axis": axis}
    return Node(operator, attributes, [(str(random.choice(FLOATS)), wild_shape(random, rank))])
