"""Gradients of poolings, and unpooling: operators of two inputs, but for the gradient of an average."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from draw import Random, numpy_type, values
from pool_draw import drawn
from pool_oracle import average_grad, check_close, max_grad, unpooled

import specops
from specops import directml as dml
from specops.vocabulary import NEWEST_OPSET
from stress.draws import windows
from stress.draws.common import (
    FLOATS,
    OPSETS,
    TYPES,
    WIDE_TYPES,
    Call,
    Described,
    Members,
    Node,
    Shape,
    call_of,
    described,
    drawn_from,
    onnx_function,
    small_shape,
    wild_attribute,
    wild_level,
    wild_numbers,
    wild_shape,
    wild_tensor,
)
from stress.draws.windows import Pool

GRADIENTS = ["MAX_POOLING_GRAD", "AVERAGE_POOLING_GRAD"]
INDEX_TYPES = ["UINT32", "UINT64", "INT64"]


def valid(random: Random, family: str) -> Call:
    called = drawn_from(random, [*GRADIENTS, "plain", "MAX_UNPOOLING", "MaxUnpool"])
    return (gradient if called in GRADIENTS else unpooling)(random, called)


# --- gradients ---


def gradient(random: Random, called: str) -> Call:
    of_max, name = called == "MAX_POOLING_GRAD", str(random.choice(FLOATS))
    ceil, spatial = ["", "page"][random.integers(2)], int(random.choice([2, 2, 3]))
    shape, pool = windows.pool_of_shape(random, 2, spatial, ceil, of_max, True)
    result = (*shape[:2], *pool.outputs)
    count = bool(random.integers(2))
    arguments: dict[str, Any]
    if random.random() < 0.5:
        function = Described(called)
        given = {"InputGradientTensor": described(random, name, result)}
        if of_max:
            given["InputTensor"] = described(random, name, shape)
        arguments = {
            **given,
            "OutputGradientTensor": described(random, name, shape),
            **windows.for_description(random, pool, of_max),
            **({} if of_max else {"IncludePadding": count}),
        }
    else:
        function = getattr(dml, called.lower())
        arguments = windows.for_directml(pool, of_max)
        if not of_max:
            arguments |= {"include_padding": count, "output_sizes": shape}
    inputs = [drawn(random, name, result)]
    if of_max:
        inputs.insert(0, values(random, name, shape))

    def check(found: list[np.ndarray], *inputs: np.ndarray) -> None:
        check_gradient(name, found[0], inputs, pool, count)

    outputs = [(shape, numpy_type(name))]
    return Call(function, name, inputs, arguments, outputs, check, called)


def check_gradient(
    name: str, found: np.ndarray, inputs: tuple[np.ndarray, ...], pool: Pool, count: bool
) -> None:
    """Of max pooling where there are two inputs, else of an average, in which padding may count."""
    if len(inputs) == 2:
        x, gradient = inputs
        wanted = max_grad(name, x, gradient, pool.windows(), "ignored")
    else:
        (gradient,) = inputs
        divisor = "padded" if count else "inside"
        end = tuple(pool.end)
        wanted = average_grad(name, gradient, found.shape, pool.windows(), end, divisor)
    check_close(name, found, *wanted)


# --- unpooling ---


def places(random: Random, index_type: str, shape: Shape, elements: int) -> np.ndarray:
    """Indices of so many elements, some twice or of none."""
    count = math.prod(shape)
    plain = random.integers(0, max(1, elements), shape)
    if random.random() < 0.5:  # none twice, and some of none
        plain = random.permutation(max(elements, count))[:count].reshape(shape)
    plain = np.asarray(plain).astype(np.uint64)
    beyond = [elements, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - elements, 2**64 - 1]
    for index in beyond[: 3 if index_type == "UINT32" else 8]:
        if count and elements and random.random() < 0.3:
            plain.flat[random.integers(count)] = index
    return plain.astype(numpy_type(index_type))


def unpooling(random: Random, called: str) -> Call:
    form, index_type = called, str(random.choice(INDEX_TYPES))
    name = str(random.choice(TYPES))
    arguments: dict[str, Any]
    if called == "plain":
        name = str(random.choice(WIDE_TYPES))
        shape, sizes = small_shape(random, 5, 0), small_shape(random, 5, 0)
        function = specops.max_unpool
        arguments = {"output_sizes": drawn_from(random, [sizes, list(sizes)])}
    elif called == "MAX_UNPOOLING":
        index_type = str(random.choice(["UINT32", "UINT64"]))
        shape = windows.pooling_shape(random, 2, 2)
        sizes = (*shape[:2], *(int(n) for n in random.integers(1, 20, 2)))
        if random.random() < 0.5:
            function = Described(called)
            arguments = {
                "InputTensor": described(random, name, shape),
                "IndicesTensor": described(random, index_type, shape),
                "OutputTensor": described(random, name, sizes),
                "feature_level": ["5.0", "6.4", None][random.integers(3)],
            }
        else:
            function = dml.max_unpooling
            arguments = {"output_sizes": sizes}
    else:
        form, index_type = str(random.choice(["onnx", "compiled"])), "INT64"
        name = str(random.choice(FLOATS))
        shape = windows.pooling_shape(random, 2, int(random.choice([1, 2, 2, 3])))
        sizes, arguments = unpooled_sizes(random, shape)
        function = onnx_function(called, form)
    x = values(random, name, shape)
    indices = places(random, index_type, shape, math.prod(sizes))
    return Call(function, name, [x, indices], arguments, [(sizes, x.dtype)], check_unpooled, form)


def unpooled_sizes(random: Random, shape: Shape) -> tuple[Shape, dict[str, Any]]:
    """The sizes of a node's output, and its attributes."""
    count = len(shape) - 2
    kernel, strides = ([int(n) for n in random.integers(1, 5, count)] for _ in range(2))
    steps = [(n - 1) * s + k for n, s, k in zip(shape[2:], strides, kernel, strict=True)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    attributes["opset"] = int(random.choice([9, 10, 11, 21, 22, NEWEST_OPSET]))
    padding = [[int(random.integers(0, (n + 1) // 2)) for n in steps] for _ in range(2)]
    if random.random() < 0.6:
        attributes["pads"] = padding[0] + padding[1]
        steps = [n - p - q for n, p, q in zip(steps, *padding, strict=True)]
    elif random.random() < 0.7:
        steps = [n + int(random.integers(0, 4)) for n in steps]
        attributes["output_shape"] = [*shape[:2], *steps]
    return (*shape[:2], *steps), attributes


def check_unpooled(found: list[np.ndarray], x: np.ndarray, indices: np.ndarray) -> None:
    wanted = unpooled(x, indices, found[0].size)
    elements = np.ascontiguousarray(found[0]).view(wanted.dtype).ravel()
    np.testing.assert_array_equal(elements, wanted)


# --- any numbers ---


def wild(random: Random, family: str) -> tuple[str, Members]:
    operator = drawn_from(random, [*GRADIENTS, "MAX_UNPOOLING"])
    small, level = bool(random.random() < 0.5), {"feature_level": wild_level(random)}
    rank = int(random.choice([3, 4, 4, 4, 5]))
    if operator == "MAX_UNPOOLING":
        sizes = wild_numbers(random, rank, small)
        name, index_type = str(random.choice(TYPES)), str(random.choice(["UINT32", "UINT64"]))
        result = [*sizes[:2], *wild_numbers(random, rank - 2, small)]
        return operator, {
            "InputTensor": wild_tensor(random, name, sizes, small, 0.05),
            "IndicesTensor": wild_tensor(random, index_type, sizes, small, 0.05),
            "OutputTensor": wild_tensor(random, name, result, small, 0.02),
            **level,
        }
    of_max, name = operator == "MAX_POOLING_GRAD", str(random.choice(FLOATS))
    sizes, result, members = windows.wild_windows(random, rank, small, of_max)
    if of_max:
        members["InputTensor"] = wild_tensor(random, name, sizes, small, 0.05)
    else:
        members["IncludePadding"] = bool(random.integers(2))
    return operator, {
        **members,
        "InputGradientTensor": wild_tensor(random, name, result, small, 0.05),
        "OutputGradientTensor": wild_tensor(random, name, sizes, small, 0.02),
        **level,
    }


def wild_call(random: Random, function: Described, members: Members) -> Call | None:
    if "IndicesTensor" in members:
        tensor, indices = members["InputTensor"], members["IndicesTensor"]
        shape = tuple(tensor.Sizes)
        elements = math.prod(members["OutputTensor"].Sizes)
        x = values(random, tensor.DataType, shape)
        drawn_indices = places(random, indices.DataType, shape, elements)
        return call_of(function, members, [x, drawn_indices], check_unpooled)
    tensor, pooled = members["InputGradientTensor"], members.get("InputTensor")
    pool = windows.pool_of_members(members, tensor.Sizes[2:])
    if pool is None:
        return None
    name, count = tensor.DataType, members.get("IncludePadding", False)

    def check(found: list[np.ndarray], *inputs: np.ndarray) -> None:
        check_gradient(name, found[0], inputs, pool, count)

    inputs = [drawn(random, name, tuple(tensor.Sizes))]
    if pooled is not None:
        inputs.insert(0, values(random, name, tuple(pooled.Sizes)))
    return call_of(function, members, inputs, check)


def node(random: Random, family: str) -> Node:
    rank = int(random.choice([3, 4, 4, 5]))
    shape, spatial = wild_shape(random, rank), rank - 2
    attributes: dict[str, Any] = {"opset": int(random.choice(OPSETS))}
    attributes["kernel_shape"] = wild_attribute(random, spatial)
    for name, count in (("strides", spatial), ("pads", 2 * spatial)):
        if random.random() < 0.5:
            attributes[name] = wild_attribute(random, count)
    if random.random() < 0.5:
        more = wild_attribute(random, spatial)
        attributes["output_shape"] = [
            *shape[:2],
            *(n + m for n, m in zip(shape[2:], more, strict=True)),
        ]
    indices = shape if random.random() < 0.9 else wild_shape(random, rank)
    inputs = [(str(random.choice(FLOATS)), shape), ("INT64", indices)]
    return Node("MaxUnpool", attributes, inputs)
