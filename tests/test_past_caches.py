"""Large results go past the caches: they have the same bits as those that do not, and nothing else is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from draw import numpy_type, values

from specops.kernels import max_pool as kernel  # as of all poolings
from specops.kernels import reduce as reduce_kernel
from specops.kernels import search as search_kernel
from specops.lowering import machine, pooling
from specops.lowering.arg_reduce import ArgReduce
from specops.lowering.average_pool import AveragePool
from specops.lowering.average_pool_grad import AveragePoolGrad
from specops.lowering.lp_pool import LpPool
from specops.lowering.max_pool import MaxPool
from specops.lowering.max_pool_grad import MaxPoolGrad
from specops.lowering.reduce import Reduce
from specops.tensor import Tensor, packed

Sizes = tuple[int, ...]
BOTH = {"window": (3, 2), "strides": (2, 2), "start_padding": (1, 1)}
WINDOWS: dict[str, Any] = {**BOTH, "dilations": (1, 1)}
AVERAGES: dict[str, Any] = {**BOTH, "end_padding": (1, 1), "divisor": "inside"}
PLANE, POOLED = (7, 6), (4, 4)

# Of the operator, by what is pooled and what that gives; and whether it goes from the latter to the former.
Make = Callable[[Tensor, Tensor], Any]
OPERATORS: dict[str, tuple[Make, bool]] = {
    "max_pool": (
        lambda x, y: MaxPool(
            **WINDOWS, nan="ignored", index_order="row_major", input=x, output=y, indices=None
        ),
        False,
    ),
    "average_pool": (
        lambda x, y: AveragePool(**AVERAGES, dilations=(1, 1), input=x, output=y),
        False,
    ),
    "lp_pool": (lambda x, y: LpPool(**WINDOWS, p=2, input=x, output=y), False),
    "average_pool_grad": (lambda x, y: AveragePoolGrad(**AVERAGES, input=y, output=x), True),
    "max_pool_grad": (
        lambda x, y: MaxPoolGrad(**WINDOWS, nan="ignored", input=x, gradient=y, output=x),
        True,
    ),
}


def channels_last(memory: np.ndarray, plane: Sizes, channels: int) -> np.ndarray:
    return memory.reshape(2, *plane, channels).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("channels", [15, 16, 48])
@pytest.mark.parametrize("called", OPERATORS)
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_same_bits(name: str, called: str, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On several threads, into memory at multiples of 16 bytes and between."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    make, backward = OPERATORS[called]
    random = np.random.default_rng(channels)
    x = channels_last(values(random, name, (2, *PLANE, channels)), PLANE, channels)
    y = channels_last(values(random, name, (2, *POOLED, channels)), POOLED, channels)
    like, plane = (x, PLANE) if backward else (y, POOLED)
    given = [y] if backward else [x]
    if called == "max_pool_grad":
        given = [x, y]
    for shift in (0, 1):
        found = []
        for least in (0, 1 << 60):
            monkeypatch.setattr(machine, "MOVED_PAST_BYTES", least)
            memory = np.full(like.size + 40, 7, numpy_type(name))
            begin = -(memory.ctypes.data // memory.itemsize) % 16 + 16 + shift
            out = channels_last(memory[begin:][: like.size], plane, channels)
            operator = make(packed(name, x.shape), packed(name, y.shape))
            other: list[Sizes] = [()] if called == "max_pool" else [a.strides for a in given[1:]]
            plan = operator._plans[given[0].strides, out.strides, *other]
            whole = channels % pooling.PAST_LANES == 0 or called == "max_pool_grad"
            assert plan.walk.block[kernel.PAST] == (least == 0 and whole)
            wider = channels_last(np.empty(2 * like.size, out.dtype), plane, 2 * channels)
            gaps = wider[:, :channels].strides
            assert operator._plans[given[0].strides, gaps, *other].walk.block[kernel.PAST] == 0
            operator(*given, out)
            found.append(out.tobytes())
            assert {*memory[:begin], *memory[begin + like.size :]} == {7}
        assert found[0] == found[1]


def check_few_rows(
    monkeypatch: pytest.MonkeyPatch,
    x: np.ndarray,
    output: Tensor,
    past: int,
    make: Callable[[], Any],
) -> None:
    """Of groups along axis 1 results have the same bits past the caches, setting `past`; not those with gaps."""
    monkeypatch.setattr(machine, "LARGE_BYTES", 0)
    planes, columns = output.sizes
    for shift in (0, 1):
        found = []
        for least in (0, 1 << 60):
            monkeypatch.setattr(machine, "MOVED_PAST_BYTES", least)
            memory = np.full(planes * columns + 40, 7, output.numpy_dtype)
            begin = -(memory.ctypes.data // memory.itemsize) % 16 + 16 + shift
            out = memory[begin:][: planes * columns].reshape(planes, columns)
            operator = make()
            assert operator._plans[x.strides, out.strides].walk.block[past] == (least == 0)
            gaps = np.empty((planes, 2 * columns), out.dtype)[:, :columns].strides
            assert operator._plans[x.strides, gaps].walk.block[past] == 0
            operator(x, out)
            found.append(out.tobytes())
            assert {*memory[:begin], *memory[begin + planes * columns :]} == {7}
        assert found[0] == found[1]


@pytest.mark.parametrize("rows", [2, 3, 4, 6])
@pytest.mark.parametrize("function", ["sum", "product", "l2", "max", "log_sum_exp"])
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_reductions_of_few_rows(
    name: str, function: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those of exponentials, which are finished apart."""
    columns = 2100  # cut into pieces, whose last vector is a part of one
    x = values(np.random.default_rng(rows), name, (3, rows, columns))
    output = packed(name, (3, columns))

    def make() -> Reduce:
        given = packed(name, x.shape)
        return Reduce(function=function, nan="ignored", axes=[1], input=given, output=output)

    check_few_rows(monkeypatch, x, output, reduce_kernel.PAST, make)


@pytest.mark.parametrize("index_type", ["UINT32", "INT64"])
@pytest.mark.parametrize("rows", [2, 4, 7])
@pytest.mark.parametrize("name", ["FLOAT16", "FLOAT32", "INT64"])
def test_indices_of_few_rows(
    name: str, rows: int, index_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of long planes, which are cut; those of narrow elements are not."""
    columns = 152 if name == "FLOAT16" else 2100
    x = values(np.random.default_rng(rows), name, (3, rows, columns))
    output = packed(index_type, (3, columns))

    def make() -> ArgReduce:
        given = packed(name, x.shape)
        return ArgReduce(
            better="greater", tie="first", nan="ignored", axes=[1], input=given, output=output
        )

    check_few_rows(monkeypatch, x, output, search_kernel.PAST, make)
