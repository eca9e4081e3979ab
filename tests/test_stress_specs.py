"""Short runs of the proofs that go on for as long as they are told to: `python -m stress`."""

from __future__ import annotations

import ast
import os
import signal
import time
from pathlib import Path

import pytest

from stress import children, damage, kernels, mutants, specs


@pytest.mark.parametrize("part", range(4))
def test_specs(part: int, tmp_path: Path) -> None:
    """Damaged specs give diagnostics or sound Python."""
    seen = []
    for number in range(part * 25, (part + 1) * 25):
        outcome = specs.Case(0, number).run(tmp_path)
        assert outcome in specs.GOOD, f"python -m stress specs --seed 0 --case {number}\n{outcome}"
        seen.append(outcome)
    assert set(seen) == {*specs.GOOD}


def test_undamaged_specs_are_sound() -> None:
    """Of each dialect one."""
    for dialect in ("directml", "onnx", "plain"):
        good = next(g for g in specs.BASES[1:] if any(n.startswith(f"{dialect}/") for n in g))
        assert specs.judge(specs.known(good)[0], good, False) == "sound"


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        ({"specops/x.py": "import os\n"}, "imports"),
        ({"specops/x.py": "x = eval('1')\n"}, "calls"),
        ({"specops/x.py": "while True:\n    pass\n"}, "kinds"),
    ],
)
def test_specs_would_notice(files: dict[str, str], finding: str) -> None:
    assert finding in specs.judge(files, specs.BASES[0], False)


def test_specs_would_notice_a_sentence_in_the_code() -> None:
    good = specs.BASES[0]
    before, _ = specs.known(good)
    path = "specops/directml/argmax.py"
    said = specs.judge({path: before[path] + "\nx = 1\n"}, good, True)
    assert said == f"a sentence changed the code of {path}"


def test_children_that_hang_or_die() -> None:
    """They are findings, and the cases behind them run."""

    def run(number: int) -> str:
        while number == 1:
            pass
        if number == 3:
            os._exit(3)
        return f"case {number}"

    found = dict(children.outcomes(run, 5, 1.0))
    assert [found[i] for i in (0, 2, 4)] == ["case 0", "case 2", "case 4"]
    assert "not ended" in found[1]
    assert "status" in found[3]


@pytest.mark.parametrize("label", ["directml/activation_softmax1", "plain/softmax"])
def test_mutants_of_a_validator(label: str) -> None:
    """Each damage makes a test fail."""
    assert mutants.validators(label, float("inf"), set()) == 0


def test_children_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that say no, raise, die, hang or hunger are told from those that say yes."""

    def run(number: int) -> bool:
        match number:
            case 1:
                raise ValueError
            case 2:
                os.kill(os.getpid(), signal.SIGKILL)
            case 3:
                while True:
                    pass
            case 4:
                time.sleep(60)
            case 5:
                bytearray(1 << 40)
        return number != 6

    monkeypatch.setattr(children, "SLACK", 2)
    found = dict(children.apart(run, range(9), 1))
    assert found == {number: number in (0, 7, 8) for number in range(9)}
    assert not dict(children.apart(run, range(9), 1, end=0))


def test_children_hunger_beside_their_parent() -> None:
    """However large the process has become that they are forked from."""

    def run(number: int) -> bool:
        return bool(bytearray(number << 20))

    found = dict(children.apart(run, [64, 256], 10, memory=128 << 20))
    assert found == {64: True, 256: False}
    said = [
        outcome for _, outcome in children.outcomes(lambda _: str(run(64)), 2, 10, memory=128 << 20)
    ]
    assert said == ["True", "True"]


CODE = """
def used(builder, x, n):
    prefetch(x + 1)
    y = builder.select(builder.icmp_signed("<", x, n), x, n)
    return builder.add(y, x) if n > 2 else y
def unused(n):
    return used(n, n, n) + 1
def first(x):
    return used(x, x, x)
def prefetch(x):
    return x + 2
"""
DAMAGED = [
    "4:8: builder.select(builder.icmp_signed('<', x, n), x, n) -> builder.select(builder.icmp_signed('<', x, n), n, x)",
    "4:23: builder.icmp_signed('<', x, n) -> builder.icmp_unsigned('<', x, n)",
    "4:23: builder.icmp_signed('<', x, n) -> builder.icmp_signed('<=', x, n)",
    "5:11: builder.add(y, x) if n > 2 else y -> builder.add(y, x)",
    "5:11: builder.add(y, x) if n > 2 else y -> y",
    "5:11: builder.add(y, x) -> builder.sub(y, x)",
    "5:32: n > 2 -> n >= 2",
    "5:32: n > 2 -> n <= 2",
    "5:36: 2 -> 3",
    "5:36: 2 -> 1",
]


def test_damage() -> None:
    """Each damage of what is used and has a result; the tree itself stays whole."""
    tree = ast.parse(CODE)
    reached = damage.reached(tree, ["first"])
    assert reached == {"used", "first", "prefetch"}
    found = [m for m in damage.mutants(tree, "code") if m.function in reached]
    assert sorted(m.name for m in found) == sorted(f"code:{line}" for line in DAMAGED)
    texts = {ast.unparse(m.tree()) for m in found}
    assert len(texts) == len(found) and ast.unparse(tree) not in texts


def test_each_kernel_has_tests() -> None:
    """Those of all operators that it computes."""
    found = {n: [f.__name__ for f in kernels.Kernel(n).files()] for n in mutants.kernel_names()}
    assert found == {
        "average_pool_grad": ["test_pool_grads"],
        "max_pool": ["test_max_pool", "test_pool_grads"],
        "max_pool_grad": ["test_pool_grads"],
        "max_unpool": ["test_pool_grads"],
        "reduce": ["test_reduce", "test_reversal"],
        "reversal": ["test_reversal"],
        "search": ["test_arg_reduce", "test_hardmax", "test_reversal"],
        "softmax": ["test_reversal", "test_softmax"],
        "sum_pool": ["test_sum_pool"],
    }


def test_mutants_of_a_kernel() -> None:
    """The kernel itself passes, mutants of what each result is multiplied by do not."""
    kernel = kernels.Kernel("softmax")
    all_mutants = list(kernel.mutants())
    assert len(all_mutants) > 1000
    chosen = [None, *[m for m in all_mutants if m.function == "_factors"][:5]]
    tests = kernel.first()[:1]
    found = dict(children.apart(lambda n: kernel.survives(chosen[n], tests), range(6), 60))
    assert found == {n: n == 0 for n in range(6)}
