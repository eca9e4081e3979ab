"""What an operator says that its calls may run is all that they run, whatever the shapes and strides."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import specops
from specops import directml as dml
from specops import launch
from specops.command.catalogue import entries
from specops.command.main import main
from specops.operator import CompiledOperator

SHAPES = [
    (3, 4, 5, 6),
    (1, 1, 4, 9000),
    (1, 1, 40, 40),
    (2, 3, 300, 300),
    (64, 2, 7, 5),
    (1, 8, 1, 70000),
]
POOLS = [(1, 1), (3, 2), (4, 5)]

Call = Callable[[np.ndarray, np.random.Generator], Any]


def axes(x: np.ndarray, random: np.random.Generator) -> tuple[int, ...]:
    return tuple(np.flatnonzero(random.integers(0, 2, x.ndim)).tolist())


def window(x: np.ndarray, random: np.random.Generator) -> list[int]:
    sizes = [*POOLS, x.shape[2:], (1, x.shape[3])]
    wanted = sizes[random.integers(len(sizes))]
    return [min(w, n) for w, n in zip(wanted, x.shape[2:], strict=True)]


def max_pooling_grad(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    wanted = window(x, random)
    pooled = [n - w + 1 for n, w in zip(x.shape[2:], wanted, strict=True)]
    gradient = np.zeros((*x.shape[:2], *pooled), x.dtype)
    return dml.max_pooling_grad(x, gradient, window_size=wanted)


CALLS: dict[str, Call] = {
    "argmax": lambda x, r: specops.argmax(x, axis=axes(x, r)),
    "argmin, the last": lambda x, r: specops.argmin(x, axis=axes(x, r), last=True, keepdims=True),
    "hardmax": lambda x, r: specops.hardmax(x, axis=axes(x, r)),
    "softmax": lambda x, r: specops.softmax(x, axis=axes(x, r)),
    "log_softmax": lambda x, r: specops.log_softmax(x, axis=axes(x, r)),
    "l1_norm": lambda x, r: specops.l1_norm(x, axis=axes(x, r)),
    "l2_norm": lambda x, r: specops.l2_norm(x, axis=axes(x, r)),
    "logsumexp": lambda x, r: specops.logsumexp(x, axis=axes(x, r)),
    "reduce": lambda x, r: dml.reduce(x, function="MAX", axes=axes(x, r)),
    "reduce to indices": lambda x, r: dml.reduce(
        x, function="ARGMAX", axes=axes(x, r), output_dtype="UINT32"
    ),
    "max_pool": lambda x, r: specops.max_pool(x, window(x, r)),
    "max_pool, indices": lambda x, r: specops.max_pool(x, window(x, r), indices=True),
    "average_pool": lambda x, r: specops.average_pool(x, window(x, r)),
    "lp_pool": lambda x, r: specops.lp_pool(x, window(x, r), p=r.choice([1, 2])),
    "lp_pool, other p": lambda x, r: specops.lp_pool(x, window(x, r), p=r.choice([3, 64, 65, 2.5])),
    "max_unpool": lambda x, r: specops.max_unpool(x, np.zeros(x.shape, np.uint32), x.shape),
    "max_pooling_grad": max_pooling_grad,
    "average_pooling_grad": lambda x, r: dml.average_pooling_grad(
        x, window_size=[1, r.choice([1, 3, 9000])]
    ),
}


Used = dict[int, set[launch.Kernel]]  # by the operator's id in memory


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Used:
    """The kernels that operators call; none of them runs, and nothing is compiled."""
    operators: Used = {}
    kernels: set[launch.Kernel] = set()

    def run(self: launch.Kernel, *_addresses: int, **_how: Any) -> None:
        kernels.add(self)

    def address(self: launch.Kernel) -> int:
        kernels.add(self)
        return 1

    call = CompiledOperator.__call__

    def checked(self: CompiledOperator, *inputs: Any, out: Any = None) -> Any:
        kernels.clear()
        result = call(self, *inputs, out=out)
        assert kernels <= set(self._kernel.kernels())
        operators.setdefault(id(self._operator), set()).update(kernels)
        return result

    monkeypatch.setattr(launch.Kernel, "__call__", run)
    monkeypatch.setattr(launch.Kernel, "address", address)
    monkeypatch.setattr(CompiledOperator, "__call__", checked)
    return operators


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_run_what_was_said(
    name: str, dtype: str, used: Used, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiled operator, and by the command that compiles ahead whatever the attributes."""
    random = np.random.default_rng(1)
    for shape in SHAPES * 4:
        order = random.permutation(len(shape))
        x = np.zeros([shape[a] for a in order], dtype).transpose(np.argsort(order))
        CALLS[name](x, random)
    warmed: set[launch.Kernel] = set()
    monkeypatch.setattr(launch, "warm_up", warmed.update)
    modules = {e.id: import_module(f"specops.{e.id.replace('/', '.')}") for e in entries()}
    (operator,) = [name for name, module in modules.items() if id(module.OPERATOR) in used]
    assert main(["warmup", operator, "--dtype", dtype]) == 0
    assert any(used.values())
    assert set.union(*used.values()) <= warmed
