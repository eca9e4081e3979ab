"""Max pooling."""

from __future__ import annotations

import numpy as np
import oracle
from draw import Random, numpy_type, values
from pool_oracle import check_values

import specops
from specops import directml as dml
from specops.vocabulary import NEWEST_OPSET
from stress.draws import windows
from stress.draws.common import (
    FLOATS,
    TYPES,
    WIDE_TYPES,
    Call,
    Described,
    Members,
    Node,
    call_of,
    described,
    onnx_function,
    wild_level,
    wild_tensor,
)
from stress.draws.windows import Pool

FORMS = ["plain", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2", "onnx", "compiled"]


def valid(random: Random, family: str) -> Call:
    form = str(random.choice(FORMS))
    batches = 2
    spatial = int(random.choice([1, 2, 2, 3]))
    name = str(random.choice(TYPES))
    ceil, nan, order, index_type = "", "propagates", "row_major", "INT64"
    indices = bool(random.integers(2))
    if form == "plain":
        batches = int(random.integers(0, 4))
        name = str(random.choice(WIDE_TYPES))
        ceil = ["", "onnx"][random.integers(2)]
        shape, pool = windows.pool_of_shape(random, batches, spatial, ceil, True, False)
        function = specops.max_pool
        arguments = {**windows.for_numpy(pool, ceil), "indices": indices}
    elif form in ("onnx", "compiled"):
        opset = int(random.choice([1, 8, 10, 11, 12, 22, NEWEST_OPSET]))
        name = str(
            random.choice(["FLOAT32", "FLOAT16", "UINT8", "INT8"] if opset >= 12 else FLOATS)
        )
        indices = indices and opset >= 8
        shape = windows.pooling_shape(random, 2, spatial)
        pool, arguments = windows.for_onnx(random, shape[2:], opset >= 10, opset >= 10)
        arguments |= {"indices": indices, "opset": opset}
        if opset >= 8:
            order = ["row_major", "column_major"][random.integers(2)]
            arguments["storage_order"] = order == "column_major"
        function = onnx_function("MaxPool", form)
    else:
        nan, index_type = "ignored", str(random.choice(["UINT32", "UINT64"]))
        dilated = form == "MAX_POOLING2"
        indices = indices and form != "MAX_POOLING"
        ceil = ["", "page"][random.integers(2)]
        if form != "MAX_POOLING1":
            spatial = int(random.choice([2, 2, 3]))
        shape, pool = windows.pool_of_shape(random, 2, spatial, ceil, dilated, True)
        result = (*shape[:2], *pool.outputs)
        if random.random() < 0.5:
            function = Described(form)
            arguments = {
                "InputTensor": described(random, name, shape),
                "OutputTensor": described(random, name, result),
                **windows.for_description(random, pool, dilated),
            }
            if form != "MAX_POOLING":
                arguments["OutputIndicesTensor"] = (
                    described(random, index_type, result) if indices else None
                )
        else:
            function = getattr(dml, form.lower())
            arguments = {**windows.for_directml(pool, dilated), "output_sizes": result}
            if form != "MAX_POOLING":
                arguments |= {"indices": indices, "indices_dtype": index_type}
    result = (*shape[:batches], *pool.outputs)
    x = values(random, name, shape)
    outputs = [(result, x.dtype)] + [(result, numpy_type(index_type))] * indices

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(found, x, pool, nan, order)

    return Call(function, name, [x], arguments, outputs, check, form)


def check_result(found: list[np.ndarray], x: np.ndarray, pool: Pool, nan: str, order: str) -> None:
    """Of the values, and the indices if there are any."""
    wanted, places = oracle.max_pool(
        x, pool.window, pool.strides, pool.dilations, pool.start, pool.outputs, nan, order
    )
    if found[1:]:
        np.testing.assert_array_equal(found[1], places.astype(found[1].dtype))
    check_values(found[0], wanted, len(found) > 1)


def wild(random: Random, family: str) -> tuple[str, Members]:
    operator = str(random.choice(["MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"]))
    small = bool(random.random() < 0.5)
    name, rank = str(random.choice(TYPES)), int(random.choice([3, 4, 4, 5, 5, 8]))
    sizes, result, members = windows.wild_windows(random, rank, small, operator == "MAX_POOLING2")
    members |= {
        "InputTensor": wild_tensor(random, name, sizes, small, 0.05),
        "OutputTensor": wild_tensor(random, name, result, small, 0.02),
        "feature_level": wild_level(random),
    }
    if operator != "MAX_POOLING" and random.random() < 0.6:
        index_type = str(random.choice(["UINT32", "UINT64"]))
        members["OutputIndicesTensor"] = wild_tensor(random, index_type, result, small, 0.02)
    return operator, members


def wild_call(random: Random, function: Described, members: Members) -> Call | None:
    tensor = members["InputTensor"]
    pool = windows.pool_of_members(members, members["OutputTensor"].Sizes[2:])
    if pool is None:
        return None

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(found, x, pool, "ignored", "row_major")

    x = values(random, tensor.DataType, tuple(tensor.Sizes))
    return call_of(function, members, [x], check)


def node(random: Random, family: str) -> Node:
    made = windows.pooling_node(random, "MaxPool")
    made.attributes["indices"] = bool(random.integers(2))
    return made
