"""What kernels require: what breaks it is refused before a kernel runs; what holds it stays in its own memory."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trees import PROJECT

from generator import values
from generator.diagnostics import Report
from generator.resolve import requirements
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
from specops.requirements import lowered
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


def made(kernel: str, told: dict[str, Any], sizes: dict[str, tuple[int, ...]]) -> Any:
    """The kernel's host side for float32 tensors of these sizes."""
    host, _, _ = CALLS[kernel]
    return lowered("OPERATOR", kernel, host, **told, **tensors(kernel, sizes))


def tensors(kernel: str, sizes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    indices = {"indices"} | ({"output"} if kernel == "arg_reduce" else set())
    return {n: packed("INT64" if n in indices else "FLOAT32", s) for n, s in sizes.items()}


def wrong_calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kernels, what each requires, and changes of its good call that break this and nothing that stands before it."""
    beyond = "each of axes is from 0 on and less than the number of dimensions of input"
    for kernel, (_, told, sizes) in CALLS.items():
        if "axes" in told:
            rank = len(sizes["input"])
            yield kernel, beyond, {"axes": [rank]}
            yield kernel, beyond, {"axes": [-1]}
            yield kernel, "no value of axes is repeated", {"axes": [1, 1]}
        if "window" in told:
            yield from wrong_windows(kernel, told)
    wrong: tuple[int, ...]
    for kernel in ("arg_reduce", "reduce"):
        all_or_others = "output has the dimensions of input, all of them or all but axes"
        yield kernel, all_or_others, {"output": (2, 3, 1, 4)}
        yield kernel, all_or_others, {"output": (2,)}
        kept = "where output has all dimensions of input, it has its sizes, with 1 for each of axes"
        for wrong in ((2, 3, 1), (2, 3, 4), (2, 1, 5), (1, 1, 4)):
            yield kernel, kept, {"output": wrong}
        left = "where output lacks axes, it has the other sizes of input"
        for wrong in ((2, 3), (3, 4), (2, 5)):
            yield kernel, left, {"output": wrong}
    long = "the greatest possible index of a group fits the data type of output"
    yield "arg_reduce", long, {"input": (2, 2**63 + 1, 4)}
    large = "the index of the last element of input fits the data type of indices"
    yield "max_pool", large, {"input": (2, 3, 2**63, 9)}
    like = [("hardmax", "output", "input"), ("softmax", "output", "input")]
    like += [("max_pool_grad", "output", "input"), ("max_unpool", "indices", "input")]
    for kernel, one, other in [*like, ("max_pool", "indices", "output")]:
        own = CALLS[kernel][2][one]
        ranks = f"{one} and {other} have the same number of dimensions"
        yield kernel, ranks, {one: (*own, 1)}
        yield kernel, ranks, {one: own[1:]}
        for axis, n in enumerate(own):
            changed = {one: (*own[:axis], n + 1, *own[axis + 1 :])}
            yield kernel, f"{one} and {other} have the same sizes", changed


def wrong_windows(kernel: str, told: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    lists = [name for name in told if name in {*WINDOWS, *END}]
    yield kernel, "window has at least one entry", {name: [] for name in lists}
    for name in lists[1:]:
        for wrong in (told[name][:1], [*told[name], 1]):
            yield kernel, f"{name} has one entry for each of window", {name: wrong}
        if name.endswith("padding"):
            yield kernel, f"none of {name} is negative", {name: [0, -1]}
        else:
            yield kernel, f"each of {name} is at least 1", {name: [1, 0]}
    many = "window has at most one entry for each dimension of input"
    yield kernel, many, {name: [1] * 5 for name in lists}
    if kernel in ("average_pool", "lp_pool"):
        yield kernel, "none of window is negative", {"window": [2, -1]}
    else:
        yield kernel, "each of window is at least 1", {"window": [2, 0]}
    pooled = "gradient" if kernel == "max_pool_grad" else "output"
    own = CALLS[kernel][2][pooled]
    ranks = f"{pooled} and input have the same number of dimensions"
    yield kernel, ranks, {pooled: (*own, 1)}
    yield kernel, ranks, {pooled: own[1:]}
    batch = "but for the last dimensions, one for each of window, {} has the sizes of input"
    for wrong in ((3, 3, *own[2:]), (2, 4, *own[2:])):
        yield kernel, batch.format(pooled), {pooled: wrong}


WRONG = list(wrong_calls())


@pytest.mark.parametrize("kernel", CALLS)
def test_good_calls_are_taken(kernel: str) -> None:
    _, told, sizes = CALLS[kernel]
    made(kernel, told, sizes)


@pytest.mark.parametrize(
    ("kernel", "required", "changes"), WRONG, ids=[f"{k} {c}" for k, _, c in WRONG]
)
def test_what_a_kernel_cannot_compute_is_refused(
    kernel: str, required: str, changes: dict[str, Any]
) -> None:
    _, told, sizes = CALLS[kernel]
    with pytest.raises(SpecopsError) as caught:
        made(
            kernel,
            {n: changes.get(n, v) for n, v in told.items()},
            {n: changes.get(n, v) for n, v in sizes.items()},
        )
    message = str(caught.value)
    assert message.startswith(f"OPERATOR: kernel {kernel} requires that {required}; found ")
    shown = {n: list(v) if isinstance(v, list | tuple) else [v] for n, v in changes.items()}
    assert any(f"{name} {value}" in message for name, value in shown.items())


def test_each_requirement_is_here() -> None:
    report = Report()
    tree = load_tree(PROJECT, report)
    assert tree is not None
    required = requirements(tree, report)
    found = {kernel: [use.allowed for use in uses] for kernel, uses in required.items()}
    assert list(CALLS) == list(found)
    for kernel, allowed in found.items():
        assert set(allowed) == {words for other, words, _ in WRONG if other == kernel}, kernel


def test_numbers_can_be_required(tmp_path: Path) -> None:
    """Not only lists: what a parameter of one number may be."""
    shutil.copytree(PROJECT / "specs", tmp_path / "specs")
    vocabulary = tmp_path / "specs" / "vocabulary.yaml"
    text = vocabulary.read_text(encoding="utf-8")
    rule = "  one_or_two: {parameters: [p], require: p == 1 or p >= 2, allowed: '{p} is 1 or from 2 on'}\n"
    text = text.replace("\nconstraints:\n", "\nconstraints:\n" + rule)
    before = "      p: {doc: The exponent of the norm., expression: number}\n    requires:\n"
    assert text.count(before) == 1
    text = text.replace(before, before + "      - one_or_two(p)\n")
    vocabulary.write_text(text, encoding="utf-8")
    report = Report()
    tree = load_tree(tmp_path, report)
    assert tree is not None
    required = requirements(tree, report)
    assert report.count == 0 and required["lp_pool"][0].allowed == "p is 1 or from 2 on"
    linted: Any = SimpleNamespace(tree=tree, requirements=required)
    (function,) = (f for f in values.requirements(linted)["constraints"] if f.name == "_one_or_two")
    assert function.parameters == [("p", "float")]


def test_what_a_kernel_is_told_is_no_index(tmp_path: Path) -> None:
    """A negative axis would be one from the end, in Python alone."""
    shutil.copytree(PROJECT / "specs", tmp_path / "specs")
    vocabulary = tmp_path / "specs" / "vocabulary.yaml"
    text = vocabulary.read_text(encoding="utf-8")
    rule = "      - no_repeats(axes)\n"
    text = text.replace(rule, rule + "      - axes_not_empty(axes, input)\n", 1)
    vocabulary.write_text(text, encoding="utf-8")
    report = Report()
    tree = load_tree(tmp_path, report)
    assert tree is not None
    requirements(tree, report)
    (error,) = report.diagnostics
    assert error.code == "E204" and "an index may not become negative" in error.message


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
        made(kernel, told, sizes)(*given)


@pytest.mark.parametrize("pooled", [(2, 3, 4, 0), (2, 3, 0, 0), (2, 3, 0, 5)], ids=str)
@pytest.mark.parametrize("kernel", ["average_pool_grad", "max_pool_grad"])
def test_no_windows_give_no_gradient(kernel: str, pooled: tuple[int, ...]) -> None:
    _, told, sizes = CALLS[kernel]
    none = {n: pooled if own == POOLED else own for n, own in sizes.items()}
    given = [np.ones(own, np.float32) for own in none.values()]
    made(kernel, told, none)(*given)
    assert not given[-1].any()
