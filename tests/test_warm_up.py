"""What an operator says that its calls may run is all that they run, whatever the shapes and strides."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specops
from specops import ahead, launch
from specops import directml as dml
from specops.catalogue import entries
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
    # Groups are cut in the order of memory, and their places found first; zeros are stored first.
    "hardmax, cut groups": lambda x, r: specops.hardmax(
        np.zeros((8, 400, 1024), x.dtype), axis=(0, 2)
    ),
    "hardmax, rows across": lambda x, r: specops.hardmax(
        np.zeros((1000, 300), x.dtype), axis=1, out=np.empty((300, 1000), x.dtype).T
    ),
    "softmax": lambda x, r: specops.softmax(x, axis=axes(x, r)),
    "log_softmax": lambda x, r: specops.log_softmax(x, axis=axes(x, r)),
    "sum": lambda x, r: specops.sum(x, axis=axes(x, r)),
    "mean": lambda x, r: specops.mean(x, axis=axes(x, r)),
    "prod": lambda x, r: specops.prod(x, axis=axes(x, r)),
    "max": lambda x, r: specops.max(x, axis=axes(x, r)),
    "min": lambda x, r: specops.min(x, axis=axes(x, r)),
    "l1_norm": lambda x, r: specops.l1_norm(x, axis=axes(x, r)),
    "l2_norm": lambda x, r: specops.l2_norm(x, axis=axes(x, r)),
    "logsumexp": lambda x, r: specops.logsumexp(x, axis=axes(x, r)),
    "reduce": lambda x, r: dml.reduce(x, function="MAX", axes=axes(x, r)),
    "reduce to indices": lambda x, r: dml.reduce(
        x, function="ARGMAX", axes=axes(x, r), output_dtype="UINT32"
    ),
    "max_pool": lambda x, r: specops.max_pool(x, window(x, r)),
    "max_pool, indices": lambda x, r: specops.max_pool(x, window(x, r), indices=True),
    # Over many planes that adjoin: these are transposed.
    "max_pool, long windows": lambda x, r: specops.max_pool(
        np.zeros((4, 16, 16, 16), x.dtype), (7, 7)
    ),
    "average_pool, long windows": lambda x, r: specops.average_pool(
        np.zeros((4, 16, 16, 16), x.dtype), (7, 7)
    ),
    "average_pool": lambda x, r: specops.average_pool(x, window(x, r)),
    "lp_pool": lambda x, r: specops.lp_pool(x, window(x, r), p=r.choice([1, 2])),
    "lp_pool, other p": lambda x, r: specops.lp_pool(x, window(x, r), p=r.choice([3, 64, 65, 2.5])),
    "max_unpool": lambda x, r: specops.max_unpool(x, np.zeros(x.shape, np.uint32), x.shape),
    "max_pooling_grad": max_pooling_grad,
    "average_pooling_grad": lambda x, r: dml.average_pooling_grad(
        x, window_size=[1, r.choice([1, 3, 9000])]
    ),
}


Used = dict[int, set[launch.Chunk]]  # by the operator's id in memory


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Used:
    """The chunks that operators run; none of them runs, and nothing is compiled."""
    operators: Used = {}
    chunks: set[launch.Chunk] = set()

    def run(self: launch.Chunk, *_arguments: int) -> None:
        chunks.add(self)

    def address(self: launch.Chunk) -> int:
        chunks.add(self)
        return 1

    compute = CompiledOperator.run

    def checked(self: CompiledOperator, inputs: tuple[Any, ...], out: Any) -> Any:
        chunks.clear()
        result = compute(self, inputs, out)
        assert chunks <= set(self._lowered.chunks())
        operators.setdefault(id(self._operator), set()).update(chunks)
        return result

    monkeypatch.setattr(launch.Chunk, "run", run)
    monkeypatch.setattr(launch.Chunk, "address", address)
    monkeypatch.setattr(CompiledOperator, "run", checked)
    return operators


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_run_what_was_said(
    name: str, dtype: str, used: Used, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiled operator, and by what compiles ahead whatever the attributes: the function and the command."""
    random = np.random.default_rng(1)
    for shape in SHAPES * 4:
        order = random.permutation(len(shape))
        x = np.zeros([shape[a] for a in order], dtype).transpose(np.argsort(order))
        CALLS[name](x, random)
    warmed: list[launch.Chunk] = []
    monkeypatch.setattr(launch, "warm_up", warmed.extend)
    modules = {e.id: import_module(f"specops.{e.id.replace('/', '.')}") for e in entries()}
    (operator,) = [name for name, module in modules.items() if id(module.OPERATOR) in used]
    specops.warm_up(operator, dtype=dtype)
    assert any(used.values())
    assert set.union(*used.values()) <= set(warmed)
    by_function = warmed.copy()
    warmed.clear()
    assert main(["warmup", operator, "--dtype", dtype]) == 0
    assert warmed == by_function


FIRST_CALL = """
import sys
import numpy as np
import specops
from specops import launch

assert not launch._compiled
late = [m for m in sys.modules if m.startswith(("specops.ahead", "specops.command"))]
assert not late, late

compiled = []
compile_one = launch._compile

def noted(function, kind):
    compiled.append((function.__name__, kind))
    compile_one(function, kind)

launch._compile = noted
assert specops.warm_up("plain/max_unpool", dtype="int8") is None
ahead = compiled.copy()
for n in (4, 1 << 20):  # on one thread, and on several
    specops.max_unpool(np.ones(n, np.int8), np.arange(n), [n])
assert ahead, "nothing was compiled ahead"
assert compiled == ahead, compiled[len(ahead):]
"""


def test_a_call_compiles_nothing_more() -> None:
    """Nor does the import, which leaves what compiles ahead to those who ask for it."""
    package = str(Path(specops.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        env={**os.environ, "PYTHONPATH": package, "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_each_operator_has_an_example_of_each_data_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that none is passed over in silence."""
    monkeypatch.setattr(launch, "warm_up", lambda _: None)
    steps = ahead.steps([e.id for e in entries()], "all")
    assert {step.entry for step in steps} == set(entries())
    assert [str(step) for step in steps if not step.compile()] == []


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [
        ("float16", ["FLOAT16"]),
        ("DML_TENSOR_DATA_TYPE_FLOAT16", ["FLOAT16"]),
        (np.float16, ["FLOAT16"]),
        (np.dtype("f2"), ["FLOAT16"]),
        ((np.float64, "Float16", "f8"), ["FLOAT64", "FLOAT16"]),
        (iter(["int8", "FLOAT32"]), ["FLOAT32"]),  # softmax has no INT8
        (["all", "float32"], ["FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"]),
        ("all", ["FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"]),
        ("All", ["FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"]),
        (b"float16", ["FLOAT16"]),  # as NumPy takes it: no sequence of numbers
    ],
)
def test_data_types(dtype: Any, meant: list[str]) -> None:
    assert [step.dtype for step in ahead.steps(["plain/softmax"], dtype)] == meant


def test_names() -> None:
    """All of a name, each once; of ONNX the newest version, unless another is named."""
    steps = ahead.steps(["ARGMAX", "plain/argmax", "onnx/argmax_11"], "float32")
    ids = ["directml/argmax", "onnx/argmax_13", "plain/argmax", "onnx/argmax_11"]
    assert [step.entry.id for step in steps] == ids
    functions = ahead.steps(
        ["specops.max", "specops.onnx.argmax", "specops.directml.reduce"], "float32"
    )
    assert [step.entry.id for step in functions] == [
        "plain/max",
        "onnx/argmax_13",
        "directml/reduce",
    ]
    newest = {e.id for e in entries() if e.newest}
    assert {step.entry.id for step in ahead.steps([], "all")} == newest


MISTAKES: list[tuple[list[str], list[str], str]] = [
    (["argmx"], ["float32"], "no operator 'argmx'; `specops list` names all; did you mean `argmax`?"),
    (["softmax", "qqqq"], ["float32"], "no operator 'qqqq'; `specops list` names all"),
    (["softmax"], ["float32", "flot16"], "no data type 'flot16'; there are FLOAT32, "),
    (["softmax"], ["flot16", "all"], "BFLOAT16, BOOL, all; did you mean `FLOAT16`?"),
    (["specops.softmx"], ["float32"], "'specops.softmx'; `specops list` names all; did you mean `plain/softmax`?"),
    (["softmax"], ["float32", "argmax"], "; `argmax` is an operator, and operators come first"),
    (["softmax"], ["float32,float16"], "; several are given each by itself, without commas"),
    (["specops.onnx."], ["float32"], "names all; name a function of it, as `specops.onnx.softmax`"),
    (["unpool"], ["float32"], "; did you mean `directml/max_unpooling` or `onnx/max_unpool` or `plain/max_unpool`?"),
    (["q" * 99], ["float32"], f"no operator '{'q' * 60}'; `specops list` names all"),
    (["softmax"], ["U3"], "no data type 'U3'; there are FLOAT32, "),
    (["plain/softmax"], ["bool", "int8"], "has data type BOOL, INT8; they have FLOAT32, FLOAT16, FLOAT64, BFLOAT16"),
]  # fmt: skip


@pytest.mark.parametrize(("operators", "dtypes", "says"), MISTAKES)
def test_mistakes(
    operators: list[str],
    dtypes: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are told before anything is compiled, and the command tells the same."""
    monkeypatch.delattr(launch, "warm_up")
    with pytest.raises(specops.SpecopsError) as caught:
        specops.warm_up(*operators, dtype=dtypes)
    assert says in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert main(["warmup", *operators, "--dtype", *dtypes]) == 2
    told = capsys.readouterr().err.rstrip().removeprefix("error: ").replace("\n  hint: ", "; ")
    assert told == str(caught.value)


@pytest.mark.parametrize(
    ("operator", "dtype", "says"),
    [
        (specops.softmax, "float32", "is given by its name, as 'argmax'; found <function softmax"),
        (["softmax"], "float32", "is given by its name, as 'argmax'; found ['softmax']"),
        ("softmax", None, "no data type None; there are FLOAT32, "),
        ("softmax", [None], "no data type None; there are FLOAT32, "),
        ("softmax", 5, "no data type 5; there are FLOAT32, "),
        ("softmax", np.float32(1), "no data type np.float32(1.0); there are FLOAT32, "),
        ("softmax", np.complex64, "no data type <class 'numpy.complex64'>; there are FLOAT32, "),
        ("softmax", [], "no data type is named; there are FLOAT32, "),
    ],
)
def test_mistakes_that_no_command_can_make(operator: Any, dtype: Any, says: str) -> None:
    with pytest.raises(specops.SpecopsError) as caught:
        specops.warm_up(operator, dtype=dtype)
    assert says in str(caught.value)
