"""What the draws of all families share: a call, descriptions and nodes as functions, and numbers of any size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from draw import WIDE_EDGES, Random, numpy_type, random_shape

from specops import onnx as ox
from specops.directml import TensorDesc
from specops.directml.registry import OPERATORS
from specops.vocabulary import NEWEST_OPSET

# Few compiled versions serve them: those of FLOAT32, FLOAT16, UINT8, UINT16 and INT64.
TYPES = ["FLOAT32", "FLOAT16", "UINT8", "INT8", "INT16", "UINT16", "INT64", "UINT64"]
WIDE_TYPES = [*TYPES, "BFLOAT16", "BOOL"]
FLOATS = ["FLOAT32", "FLOAT16"]
OPSETS = [1, 8, 10, 11, 12, 13, 22, NEWEST_OPSET]
WILD = [0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32]
WIDER = [*WILD, -1, -2, 2**33, 2**62, 2**63 - 1, -(2**63)]
Shape = tuple[int, ...]
Members = dict[str, Any]  # of a description, and the feature level


@dataclass
class Call:
    """A call that ought to succeed, `function(*inputs, **arguments, out=...)`, and what it ought to give."""

    function: Callable[..., Any]
    name: str  # of the first input's data type
    inputs: Sequence[np.ndarray]
    arguments: dict[str, Any]
    outputs: list[tuple[Shape, np.dtype]]
    check: Callable[..., None]  # of the list of outputs, and the inputs in their places
    form: str

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        shapes = " and ".join(str(array.shape) for array in self.inputs)
        called = getattr(self.function, "__name__", "")
        return f"{self.form} {called} of {self.name} {shapes}: {given}"


@dataclass
class Node:
    """A node of an ONNX operator, to compile for inputs of data types and shapes."""

    operator: str
    attributes: dict[str, Any]
    inputs: list[tuple[str, list[int]]]


class Described:
    """`function(*inputs, **members, feature_level, out)` that compiles a description and runs it."""

    def __init__(self, operator: str) -> None:
        self.description = OPERATORS[f"DML_OPERATOR_{operator}"]
        self.__name__ = operator

    def __call__(
        self, *inputs: Any, out: Any = None, feature_level: Any = None, **members: Any
    ) -> Any:
        return self.description(**members).compile(feature_level)(*inputs, out=out)


def onnx_node(operator: str) -> Callable[..., Any]:
    """`function(*inputs, **attributes, out)` that compiles a node and runs it."""

    def function(*inputs: Any, out: Any = None, **attributes: Any) -> Any:
        like = [
            x
            if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray)
            else np.zeros((1, 1, 1), np.float32)
            for x in inputs
        ]
        (dtype, shape), *more = [(x.dtype, x.shape) for x in like]
        node = getattr(ox, operator)(**attributes)
        return node.compile(dtype, shape, *more)(*inputs, out=out)

    function.__name__ = operator
    return function


def onnx_function(operator: str, form: str) -> Callable[..., Any]:
    """The operator of this name in camel case, as a compiled node or as the function of its name in snake case."""
    if form == "compiled":
        return onnx_node(operator)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operator).lower()
    function: Callable[..., Any] = getattr(ox, name)
    return function


def drawn_from(random: Random, choices: Sequence[Any]) -> Any:
    """One of them, as it is: NumPy's `choice` would make an array of them."""
    return choices[int(random.integers(len(choices)))]


def small_shape(random: Random, highest: int, lowest: int = 1) -> Shape:
    """Mostly of some hundred elements, so that the oracle is quick; in part of few rows, of many columns."""
    while True:
        shape = random_shape(random, highest, lowest)
        if len(shape) > 1 and random.random() < 0.4:
            few = random.choice([1, 2, 2, 3, 4], min(len(shape), 4))
            few[random.integers(-2, 0)] = random.choice([*random.integers(8, 130, 9), *WIDE_EDGES])
            shape = (1,) * (len(shape) - len(few)) + tuple(map(int, few))
        elements = math.prod(shape)
        if elements <= 700 or (elements <= 20000 and random.random() < 0.05):
            return shape


def listed(random: Random, axes: Shape, rank: int) -> list[Any]:
    """The same axes, some from the end, in the forms of a list."""
    signed = [a - rank if random.random() < 0.3 else a for a in axes]
    return [signed, tuple(signed), np.array(signed, np.int64), [np.int8(a) for a in signed]]


def spelled(random: Random, axes: Shape, rank: int) -> Any:
    """The same axes in one of the forms that functions take."""
    forms = listed(random, axes, rank)
    if len(axes) == 1:
        forms += [forms[0][0], np.int64(forms[0][0])]
    if sorted(axes) == list(range(rank)):
        forms.append(None)
    return drawn_from(random, forms)


def reduced_shape(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    return tuple(1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes)


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


# --- descriptions and nodes at random: whether they are right is not known beforehand ---


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


def wild_level(random: Random) -> str | None:
    levels = [None, "6.4", "5.1", "5.0", "4.1", "3.0", "2.1", "1.0"]
    return levels[int(random.integers(16)) % 12 % 8]


def wild_attribute(random: Random, count: int) -> list[int]:
    """Numbers of 64 bits, most of them small."""
    if random.random() < 0.8:
        return [int(n) for n in random.integers(1, 4, count)]
    return [WIDER[i] for i in random.integers(len(WIDER), size=count)]


def wild_shape(random: Random, rank: int) -> list[int]:
    shape = wild_numbers(random, rank, bool(random.integers(2)))
    if random.random() < 0.2:
        shape[random.integers(rank)] = WIDER[random.integers(len(WIDER))]
    return shape


def tensors_of(function: Described, members: Members, kind: str) -> list[TensorDesc]:
    """The inputs of a description, or its outputs, those that are there."""
    fields = [f.name for f in function.description.OPERATOR.fields if f.kind == kind]
    found = [members.get(name) for name in fields]
    return [tensor for tensor in found if isinstance(tensor, TensorDesc)]


def call_of(
    function: Described, members: Members, inputs: Sequence[np.ndarray], check: Callable[..., None]
) -> Call:
    """The call that an accepted description stands for."""
    outputs = [
        (tuple(tensor.Sizes), numpy_type(tensor.DataType))
        for tensor in tensors_of(function, members, "output")
    ]
    name = tensors_of(function, members, "input")[0].DataType
    return Call(function, name, inputs, members, outputs, check, "wild description")
