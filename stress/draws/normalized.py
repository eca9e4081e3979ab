"""Softmax, its logarithm, and hardmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
from draw import Random, random_axes, scaled, values
from softmax_oracle import check_close

import specops
from specops import directml as dml
from specops import onnx as ox
from specops.vocabulary import NEWEST_OPSET
from stress.draws.arg_reduce import axis_node
from stress.draws.common import (
    FLOATS,
    Call,
    Described,
    Members,
    Node,
    Shape,
    call_of,
    described,
    onnx_node,
    small_shape,
    spelled,
    wild_level,
    wild_numbers,
    wild_tensor,
)

NODES = {"hardmax": "Hardmax", "softmax": "Softmax", "log_softmax": "LogSoftmax"}


def valid(random: Random, family: str) -> Call:
    form = str(
        random.choice(
            ["plain", "directml", "directml1", "description", "description1", "onnx", "compiled"]
        )
    )
    name = str(random.choice(FLOATS))
    shape = small_shape(random, 8)
    rank = len(shape)
    axes = random_axes(random, rank)
    nan = "propagates" if form in ("plain", "onnx", "compiled") else "ignored"
    arguments: dict[str, Any] = {}
    if form == "plain":
        function = getattr(specops, family)
        arguments = {"axis": spelled(random, axes, rank)}
    elif form in ("onnx", "compiled"):
        opset = int(random.choice([1, 11, 12, 13, NEWEST_OPSET]))
        axis = int(random.integers(-rank if opset >= 11 else 0, rank))
        axes = (axis % rank,) if opset >= 13 else tuple(range(axis % rank, rank))
        arguments = {"axis": axis, "opset": opset}
        function = getattr(ox, family) if form == "onnx" else onnx_node(NODES[family])
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

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(family, name, found[0], x, axes, nan)

    x = drawn(random, family, name, shape)
    return Call(function, name, [x], arguments, [(shape, x.dtype)], check, form)


def drawn(random: Random, family: str, name: str, shape: Shape) -> np.ndarray:
    return (values if family == "hardmax" else scaled)(random, name, shape)


def check_result(
    family: str, name: str, found: np.ndarray, x: np.ndarray, axes: Shape, nan: str
) -> None:
    if family == "hardmax":
        expected = oracle.hardmax(x, axes, nan)
        np.testing.assert_array_equal(oracle.numbers(found), oracle.numbers(expected))
    else:
        result = "probability" if family == "softmax" else "logarithm"
        check_close(name, x, axes, result, found)


def wild(random: Random, family: str) -> tuple[str, Members]:
    small = bool(random.random() < 0.5)
    name, rank = str(random.choice(FLOATS)), int(random.integers(1, 9))
    sizes = wild_numbers(random, rank, small)
    members: Members = {
        "InputTensor": wild_tensor(random, name, sizes, small),
        "OutputTensor": wild_tensor(random, name, sizes, small, 0.02),
        "feature_level": wild_level(random),
    }
    if random.random() < 0.5:
        return f"ACTIVATION_{family.upper()}", members
    members["Axes"] = [d for d in range(rank) if random.random() < 0.5]
    return f"ACTIVATION_{family.upper()}1", members


def wild_call(random: Random, function: Described, members: Members) -> Call:
    tensor = members["InputTensor"]
    name, shape = tensor.DataType, tuple(tensor.Sizes)
    axes = tuple(members.get("Axes", [len(shape) - 1]))
    operator = function.description.OPERATOR.name
    family = operator.removeprefix("DML_OPERATOR_ACTIVATION_").removesuffix("1").lower()

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(family, name, found[0], x, axes, "ignored")

    return call_of(function, members, [drawn(random, family, name, shape)], check)


def node(random: Random, family: str) -> Node:
    return axis_node(random, NODES[family])
