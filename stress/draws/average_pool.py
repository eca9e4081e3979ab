"""Averages and norms over windows and over all spatial dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Random
from pool_draw import drawn
from pool_oracle import Pooling, check_close
from reduce_oracle import check_results

import specops
from specops import directml as dml
from specops.vocabulary import NEWEST_OPSET
from stress.draws import windows
from stress.draws.common import (
    FLOATS,
    WILD,
    Call,
    Described,
    Members,
    Node,
    Shape,
    call_of,
    described,
    drawn_from,
    onnx_function,
    wild_attribute,
    wild_level,
    wild_shape,
    wild_tensor,
)
from stress.draws.windows import Pool

DIRECTML = ["AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1"]
ONNX = ["AveragePool", "LpPool"]
GLOBAL = {"GlobalAveragePool": "mean", "GlobalMaxPool": "max", "GlobalLpPool": "norm"}
OPSETS = [1, 2, 7, 10, 11, 18, 19, 22, NEWEST_OPSET]
PLAIN_TYPES = [*FLOATS, "FLOAT64", "BFLOAT16"]
POWERS = [1, 1, 2, 2, 2, 3, 5]


def power(random: Random, real: bool) -> float:
    """The exponent of a norm: an integer, or any number."""
    return float(random.choice([1.5, 2.0, 2.7, 1.0, 63.9])) if real else int(random.choice(POWERS))


def is_average(operator: str) -> bool:
    return operator.lower().startswith("average")


def valid(random: Random, family: str) -> Call:
    called = drawn_from(random, ["average_pool", "lp_pool", *DIRECTML, *ONNX, *ONNX, *GLOBAL])
    if called in GLOBAL:
        return valid_global(random, called)
    average, batches = is_average(called), 2
    count, p = average and bool(random.integers(2)), 0 if average else power(random, False)
    form, name = called, str(random.choice(FLOATS))
    arguments: dict[str, Any]
    if called in ONNX:
        form, opset = str(random.choice(["onnx", "compiled"])), int(random.choice(OPSETS))
        shape = windows.pooling_shape(random, 2, int(random.choice([1, 2, 2, 3])))
        rounds, dilated = (opset >= 10, opset >= 19) if average else (opset >= 18, opset >= 18)
        pool, arguments = windows.for_onnx(random, shape[2:], rounds, dilated)
        arguments["opset"] = opset
        if not average:
            p = power(random, opset < 2)
            arguments["p"] = p
        elif opset >= 7:
            arguments["count_include_pad"] = drawn_from(random, [count, int(count)])
        else:
            count = False
        function = onnx_function(called, form)
    elif called in DIRECTML:
        dilated, ceil = called.endswith("1"), ["", "page"][random.integers(2)]
        spatial = int(random.choice([2, 2, 3]))
        shape, pool = windows.pool_of_shape(random, 2, spatial, ceil, dilated, True)
        result = (*shape[:2], *pool.outputs)
        if random.random() < 0.5:
            function = Described(called)
            arguments = {
                "InputTensor": described(random, name, shape),
                "OutputTensor": described(random, name, result),
                **windows.for_description(random, pool, dilated),
                **({"IncludePadding": count} if average else {"P": p}),
            }
        else:
            function = getattr(dml, called.lower())
            arguments = {
                **windows.for_directml(pool, dilated),
                "output_sizes": result,
                **({"include_padding": count} if average else {"p": p}),
            }
    else:
        form = "plain"
        batches, spatial = int(random.integers(0, 4)), int(random.choice([1, 2, 2, 3]))
        name = str(random.choice(PLAIN_TYPES))
        ceil = ["", "onnx"][random.integers(2)]
        shape, pool = windows.pool_of_shape(random, batches, spatial, ceil, True, False)
        function = getattr(specops, called)
        if not average:
            p = power(random, True)
        more = {"count_padding": count} if average else {"p": p}
        arguments = {**windows.for_numpy(pool, ceil), **more}
    x = drawn(random, name, shape)
    result = (*shape[:batches], *pool.outputs)

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(name, found[0], x, pool, count, p)

    return Call(function, name, [x], arguments, [(result, x.dtype)], check, form)


def check_result(
    name: str, found: np.ndarray, x: np.ndarray, pool: Pool, count: bool, p: float
) -> None:
    """An average where `p` is 0, in which padding may count; else a norm."""
    divisor = "padded" if count else "inside"
    pooling = Pooling(pool.windows(), tuple(pool.end), divisor, p)
    check_close(name, found, *pooling.expected(name, x))


def valid_global(random: Random, called: str) -> Call:
    """Over all spatial dimensions."""
    form, opset = str(random.choice(["onnx", "compiled"])), int(random.choice(OPSETS))
    name = str(random.choice(FLOATS))
    shape = windows.pooling_shape(random, 2, int(random.integers(1, 5)))
    arguments: dict[str, Any] = {"opset": opset}
    p = power(random, opset < 2)
    if GLOBAL[called] == "norm":
        arguments["p"] = p
    x = drawn(random, name, shape)
    result = tuple(n if d < 2 else 1 for d, n in enumerate(shape))

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        if GLOBAL[called] == "norm":
            check_result(name, found[0], x, whole(shape[2:]), False, p)
        else:
            axes = range(2, len(shape))
            check_results(name, GLOBAL[called], "propagates", x, axes, found[0])

    function = onnx_function(called, form)
    return Call(function, name, [x], arguments, [(result, x.dtype)], check, form)


def whole(sizes: Shape) -> Pool:
    """One window over everything."""
    ones, zeros = [1] * len(sizes), [0] * len(sizes)
    return Pool(list(sizes), ones, ones, zeros, zeros, ones)


def wild(random: Random, family: str) -> tuple[str, Members]:
    operator, small = drawn_from(random, DIRECTML), bool(random.random() < 0.5)
    name, rank = str(random.choice(FLOATS)), int(random.choice([3, 4, 4, 4, 5, 5, 8]))
    sizes, result, members = windows.wild_windows(random, rank, small, operator.endswith("1"))
    members |= {
        "InputTensor": wild_tensor(random, name, sizes, small, 0.05),
        "OutputTensor": wild_tensor(random, name, result, small, 0.02),
        "feature_level": wild_level(random),
    }
    if is_average(operator):
        members["IncludePadding"] = bool(random.integers(2))
    else:
        members["P"] = drawn_from(random, WILD) if random.random() < 0.3 else power(random, False)
    return operator, members


def wild_call(random: Random, function: Described, members: Members) -> Call | None:
    tensor = members["InputTensor"]
    pool = windows.pool_of_members(members, members["OutputTensor"].Sizes[2:])
    if pool is None:
        return None
    count, p = members.get("IncludePadding", False), members.get("P", 0)

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        check_result(tensor.DataType, found[0], x, pool, count, p)

    x = drawn(random, tensor.DataType, tuple(tensor.Sizes))
    return call_of(function, members, [x], check)


def node(random: Random, family: str) -> Node:
    operator = drawn_from(random, [*ONNX, *GLOBAL])
    made = windows.pooling_node(random, operator)
    if operator in GLOBAL:
        rank = int(random.integers(3, 9))
        made.attributes = {"opset": made.attributes["opset"]}
        made.inputs = [(str(random.choice(FLOATS)), wild_shape(random, rank))]
    if operator.endswith("LpPool") and random.random() < 0.7:
        made.attributes["p"] = wild_attribute(random, 1)[0]
    elif operator == "AveragePool" and random.random() < 0.5:
        made.attributes["count_include_pad"] = bool(random.integers(2))
    return made
