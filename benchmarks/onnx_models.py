"""A cell as an ONNX model, for the runtimes that read such models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import ModelProto, checker, helper

from benchmarks.cells import BACKWARD, Array, Cell
from benchmarks.implementations import Unsupported
from benchmarks.implementations.numpy import pooled

_NAMES = {
    "argmax": "ArgMax",
    "hardmax": "Hardmax",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
}
_REDUCTIONS = {
    "sum": "ReduceSum",
    "prod": "ReduceProd",
    "max": "ReduceMax",
    "l2_norm": "ReduceL2",
    "logsumexp": "ReduceLogSumExp",
}
_POOLS = {
    "max_pool": "MaxPool",
    "max_pool_with_indices": "MaxPool",
    "average_pool": "AveragePool",
    "lp_pool": "LpPool",
}
OPSET = 13


def inputs(cell: Cell, x: Array) -> dict[str, Array]:
    """What the model takes, contiguous: a copy that is made for that is not counted."""
    if cell.operator == "max_unpool":
        return dict(zip(("x", "indices"), pooled(cell, x), strict=True))
    return {"x": np.ascontiguousarray(x)}


def model(cell: Cell, x: Array, given: dict[str, Array]) -> ModelProto:
    """The operator; where it has one axis and the cell several, between transpositions and reshapes."""
    if cell.operator in BACKWARD and cell.operator != "max_unpool":
        raise Unsupported("ONNX has no gradients")
    nodes = _pooling(cell, x) if cell.window else _reduction(cell, x)
    shape = cell.output_shape(x)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(np.int64))
    own = helper.np_dtype_to_tensor_dtype(np.dtype(cell.output_dtype()))
    results = [helper.make_tensor_value_info("y", own, shape)]
    if cell.operator == "max_pool_with_indices":
        results.append(helper.make_tensor_value_info("indices", kind, shape))
    taken = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in given.items()
    ]
    graph = helper.make_graph(nodes, "cell", taken, results)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    checker.check_model(made)
    return made


def _pooling(cell: Cell, x: Array) -> list[Any]:
    windows = {
        "kernel_shape": cell.window,
        "strides": cell.strides,
        "pads": [*cell.padding, *cell.padding],
    }
    if cell.operator == "max_unpool":
        given = ["x", "indices", "shape"]
        shape = _constant("shape", list(x.shape))
        return [shape, helper.make_node("MaxUnpool", given, ["y"], **windows)]
    outputs = ["y", "indices"] if cell.operator == "max_pool_with_indices" else ["y"]
    return [helper.make_node(_POOLS[cell.operator], ["x"], outputs, **windows)]


def _reduction(cell: Cell, x: Array) -> list[Any]:
    if cell.operator == "sum":  # the first whose axes are an input
        axes = _constant("axes", list(cell.axes))
        return [axes, helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    if cell.operator in _REDUCTIONS:
        node = helper.make_node(
            _REDUCTIONS[cell.operator], ["x"], ["y"], axes=cell.axes, keepdims=0
        )
        return [node]
    extra = {"keepdims": 0} if cell.operator == "argmax" else {}
    name = _NAMES[cell.operator]
    if len(cell.axes) == 1:
        return [helper.make_node(name, ["x"], ["y"], axis=cell.axes[0], **extra)]
    kept = [d for d in range(x.ndim) if d not in cell.axes]
    order = [*kept, *cell.axes]
    sizes = [x.shape[d] for d in order]
    merged = [*sizes[: len(kept)], math.prod(sizes[len(kept) :])]
    nodes = [
        helper.make_node("Transpose", ["x"], ["transposed"], perm=order),
        _constant("merged_shape", merged),
        helper.make_node("Reshape", ["transposed", "merged_shape"], ["merged"]),
    ]
    if cell.operator == "argmax":
        return [*nodes, helper.make_node(name, ["merged"], ["y"], axis=len(kept), **extra)]
    return [
        *nodes,
        helper.make_node(name, ["merged"], ["result"], axis=len(kept)),
        _constant("shape", sizes),
        helper.make_node("Reshape", ["result", "shape"], ["split"]),
        helper.make_node(
            "Transpose", ["split"], ["y"], perm=[order.index(d) for d in range(x.ndim)]
        ),
    ]


def _constant(name: str, values: list[int]) -> Any:
    return helper.make_node("Constant", [], [name], value_ints=values)
