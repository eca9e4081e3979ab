"""What kernels require: what breaks it is refused before a kernel runs; what holds it stays in its own memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trees import PROJECT

from generator.diagnostics import Report
from generator.structure import load_tree
from specops.errors import SpecopsError
from specops.lowering.arg_reduce import ArgReduce
from specops.lowering.average_pool import AveragePool
from specops.lowering.average_pool_grad import AveragePoolGrad
from specops.lowering.hardmax import Hardmax
from specops.lowering.lp_pool import LpPool
from specops.lowering.max_pool import MaxPool
from specops.lowering.max_pool_grad import MaxPoolGrad
from specops.lowering.max_unpool import MaxUnpool
from specops.lowering.reduce import Reduce
from specops.lowering.softmax import Softmax
from specops.tensor import Tensor, packed
from specops.vocabulary import DATA_TYPES
from stress.memory import Arena

IMAGE, POOLED = (2, 3, 8, 9), (2, 3, 4, 5)
WINDOWS = {"window": [2, 3], "strides": [2, 2], "dilations": [1, 1], "start_padding": [0, 1]}
END = {"end_padding": [0, 1]}
SEARCH = {"axes": [1], "nan": "ignored"}
DIVISOR = {"divisor": "inside"}

# Each kernel with a call that it can compute: its class, what it is told, and the sizes of its tensors.
CALLS: dict[str, tuple[Any, dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "arg_reduce": (
        ArgReduce,
        {**SEARCH, "better": "less", "tie": "last"},
        {"input": (2, 3, 4), "output": (2, 4)},
    ),
    "hardmax": (Hardmax, SEARCH, {"input": (2, 3), "output": (2, 3)}),
    "softmax": (
        Softmax,
        {"axes": [1], "result": "logarithm", "nan": "propagates"},
        {"input": (2, 3), "output": (2, 3)},
    ),
    "reduce": (Reduce, {**SEARCH, "function": "sum"}, {"input": (2, 3, 4), "output": (2, 1, 4)}),
    "average_pool": (
        AveragePool,
        {**WINDOWS, **END, **DIVISOR},
        {"input": IMAGE, "output": POOLED},
    ),
    "lp_pool": (LpPool, {**WINDOWS, "p": 2.0}, {"input": IMAGE, "output": POOLED}),
    "average_pool_grad": (
        AveragePoolGrad,
        {**{k: v for k, v in WINDOWS.items() if k != "dilations"}, **END, **DIVISOR},
        {"input": POOLED, "output": IMAGE},
    ),
    "max_pool_grad": (
        MaxPoolGrad,
        {**WINDOWS, "nan": "ignored"},
        {"input": IMAGE, "gradient": POOLED, "output": IMAGE},
    ),
    "max_unpool": (MaxUnpool, {}, {"input": POOLED, "indices": POOLED, "output": IMAGE}),
    "max_pool": (
        MaxPool,
        {**WINDOWS, "nan": "propagates", "index_order": "row_major"},
        {"input": IMAGE, "output": POOLED, "indices": POOLED},
    ),
}


def lowered(kernel: str, told: dict[str, Any], sizes: dict[str, tuple[int, ...]]) -> Any:
    """The kernel's host side for float32 tensors of these sizes."""
    made, _, _ = CALLS[kernel]
    return made(**told, **tensors(kernel, sizes))


def tensors(kernel: str, sizes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    indices = {"indices"} | ({"output"} if kernel == "arg_reduce" else set())
    return {n: packed("INT64" if n in indices else "FLOAT32", s) for n, s in sizes.items()}


def wrong_calls() -> dict[str, Callable[[], Any]]:
    """One change of a good call each."""
    calls: dict[str, Callable[[], Any]] = {}

    def add(kernel: str, name: str, value: Any) -> None:
        _, told, sizes = CALLS[kernel]
        changed = {**told, name: value} if name in told else told
        other = {**sizes, name: value} if name in sizes else sizes
        calls[f"{kernel} {name} {value}"] = lambda: lowered(kernel, changed, other)

    for kernel, (_, told, sizes) in CALLS.items():
        if "axes" in told:
            rank = len(sizes["input"])
            for axes in ([rank], [-1], [1, 1]):
                add(kernel, "axes", axes)
        if "window" in told:
            for name in set(told) & {*WINDOWS, *END}:
                add(kernel, name, told[name][:1])
                add(kernel, name, [*told[name], 1])
                add(kernel, name, [-1, 1])
                if name in ("strides", "dilations"):
                    add(kernel, name, [1, 0])
        for name, own in sizes.items():
            if (kernel, name) != ("max_unpool", "output"):
                add(kernel, name, (own[0] + 1, *own[1:]))
                add(kernel, name, (*own, 1))
    for kernel in ("max_pool", "average_pool_grad", "max_pool_grad"):
        add(kernel, "window", [0, 1])
    add("reduce", "output", (2, 3, 1))
    add("reduce", "output", (3, 4))
    return calls


WRONG = wrong_calls()


@pytest.mark.parametrize("kernel", CALLS)
def test_good_calls_are_taken(kernel: str) -> None:
    _, told, sizes = CALLS[kernel]
    lowered(kernel, told, sizes)


@pytest.mark.parametrize("name", sorted(WRONG))
def test_what_a_kernel_cannot_compute_is_refused(name: str) -> None:
    kernel, _ = name.split(maxsplit=1)
    with pytest.raises(SpecopsError, match=f"^kernel {kernel} requires that "):
        WRONG[name]()


def test_each_kernel_is_here() -> None:
    report = Report()
    tree = load_tree(PROJECT, report)
    assert tree is not None
    assert list(CALLS) == list(tree.vocabulary.kernels)


def sizes_of(pick: random.Random, rank: int) -> tuple[list[int], list[int]]:
    """Spatial sizes, and how many windows there are, whether or not these reach beyond the input."""
    sizes = [pick.choice([0, 1, 2, 3, 5, 8, 13, 40]) for _ in range(rank)]
    return sizes, [pick.choice([n, n // 2, n + 1, n + 3, 1, 2, 7, 0, 2 * n, 50]) for n in sizes]


def windows_of(pick: random.Random, kernel: str, rank: int) -> dict[str, Any]:
    choices = {
        "window": [1, 2, 3, 3, 5, 9, 40],
        "strides": [1, 1, 2, 3, 9, 100],
        "dilations": [1, 1, 2, 5, 60],
        "start_padding": [0, 0, 1, 3, 50],
        "end_padding": [0, 0, 1, 3, 50],
    }
    if kernel in ("average_pool", "lp_pool"):
        choices["window"].append(0)
    _, told, _ = CALLS[kernel]
    drawn = {n: [pick.choice(choices[n]) for _ in range(rank)] for n in choices if n in told}
    return {**told, **drawn}


@pytest.mark.parametrize("kernel", [k for k in CALLS if "pool" in k])
def test_poolings_stay_in_their_memory(kernel: str) -> None:
    """Sizes and windows of all kinds, most of which no operator has."""
    pick = random.Random(5)
    arenas = {name: Arena(1 << 21) for name in CALLS[kernel][2]}
    for _ in range(150):
        batch = [pick.choice([1, 2, 3, 17]) for _ in range(pick.choice([0, 1, 2, 2]))]
        rank = pick.choice([1, 2, 2])
        large, small = ((*batch, *sizes) for sizes in sizes_of(pick, rank))
        sizes = {n: large if own == IMAGE else small for n, own in CALLS[kernel][2].items()}
        told = windows_of(pick, kernel, rank) if "window" in CALLS[kernel][1] else {}
        described = tensors(kernel, sizes)
        upper = pick.random() < 0.5
        given = []
        for name, tensor in described.items():
            dtype = DATA_TYPES[tensor.dtype].numpy
            given.append(arenas[name].place_packed(tensor.sizes, dtype, upper))
            given[-1][...] = np.arange(given[-1].size).reshape(tensor.sizes) % 97
        lowered(kernel, told, sizes)(*given)


@pytest.mark.parametrize("kernel", ["average_pool_grad", "max_pool_grad"])
def test_no_windows_give_no_gradient(kernel: str) -> None:
    _, told, sizes = CALLS[kernel]
    none = {n: (2, 3, 0, 5) if own == POOLED else own for n, own in sizes.items()}
    given = [np.ones(own, np.float32) for own in none.values()]
    lowered(kernel, told, none)(*given)
    assert not given[-1].any()
