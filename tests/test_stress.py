"""A short run of each verb of `python -m stress` that finds nothing, and what each of them would find."""

from __future__ import annotations

import itertools
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
import pytest
import trees

from specops.lowering import machine
from stress import board, calls, draws, layouts, mutants, overlap, scale
from stress.__main__ import VERBS, main
from stress.draws import average_pool, reduce
from stress.draws.common import Call
from stress.memory import Arena

FAMILIES = draws.FAMILIES
Draw = Callable[[np.random.Generator, str], Call]


@pytest.fixture(scope="module")
def bench() -> calls.Bench:
    return calls.Bench()


@pytest.fixture
def few_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function of each type takes a second to compile."""
    for function in reduce.DRAWN:
        wide = function in ("sum", "mean", "log_sum", "max", "min", "argmax", "argmin")
        types = ["FLOAT32", "FLOAT16", "INT32"] if wide else ["FLOAT32"]
        monkeypatch.setitem(reduce.DRAWN, function, types)
    monkeypatch.setattr(average_pool, "PLAIN_TYPES", draws.common.FLOATS)


# --- calls ---


@pytest.mark.parametrize("family", FAMILIES)
def test_calls(family: str, bench: calls.Bench, few_types: None) -> None:
    """Each kind of case comes up, and each is as it should be."""
    kinds = {calls.check_case(family, 1, number, bench) for number in range(250)}
    assert {"valid", "faulty", "wild, refused", "wild, run", "node, accepted"} <= kinds


def test_calls_in_a_child(capfd: pytest.CaptureFixture[str]) -> None:
    """The command makes them in a process of its own, and counts them."""
    options = ["--family", "argmin", "--count", "40", "--seed", "2", "--seconds", "60"]
    assert main(["calls", *options]) == 0
    assert "calls: 40 cases, 0 findings (seed 2)" in capfd.readouterr().out
    assert main(["calls", "--family", "argmin", "--case", "3"]) == 0


@pytest.mark.parametrize("upper", [True, False])
def test_a_touch_beyond_a_tensor_ends_the_process(upper: bool) -> None:
    """Guard pages are in force at both edges, for reads as for writes."""
    code = f"""
import ctypes
from stress.memory import Arena
import numpy as np
arena = Arena()
x = arena.place((8,), (2,), np.dtype(np.int16), {upper})
beyond = x.ctypes.data + ({upper} and 16 or -1)
x[0], x[7] = 1, 2
print("placed", flush=True)
ctypes.string_at(beyond, 1)
print("read beyond")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=trees.PROJECT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "placed\n" and done.returncode != 0


# Without masks, and without conversions of halves or, where this processor has all of that, with these.
PROCESSORS = {"generic": ""}
HASWELL = ["sse4.2", "popcnt", "avx", "avx2", "f16c", "fma", "bmi", "bmi2", "lzcnt", "movbe"]
if all(llvmlite.binding.get_host_cpu_features().get(feature) for feature in HASWELL):
    PROCESSORS["haswell"] = ",".join(f"+{feature}" for feature in HASWELL)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_few_lanes_at_the_end_of_memory(processor: str) -> None:
    """Without masked loads and stores, nothing is read behind the last page or stored behind the last lane."""
    code = """
import numpy as np
import specops
from specops import onnx
from stress.memory import Arena

inputs, outputs = Arena(), Arena()
random = np.random.default_rng(4)

def check(function, shape, dtype, expected):
    for upper in (True, False):
        x = inputs.place_packed(shape, np.dtype(dtype), upper)
        x[...] = random.integers(0, 9, shape)
        exact = expected(x)
        out = outputs.place_packed(exact.shape, exact.dtype, upper)
        function(x, out)
        np.testing.assert_allclose(out, exact, rtol=2e-3)
        assert outputs.surroundings_kept(out), (function, shape, dtype)

def one_hot(x):
    return (np.arange(x.shape[1]) == x.argmax(1)[:, None]).astype(x.dtype)

def softmax(x):
    powers = np.exp(x.astype(float) - x.max(0))
    return (powers / powers.sum(0)).astype(x.dtype)

for n in (*range(1, 40), 63, 64, 65, 100, 127):
    for dtype in (np.uint8, np.int64):
        check(lambda x, out: specops.argmax(x, axis=0, out=out), (9, n), dtype, lambda x: x.argmax(0))
        check(
            lambda x, out: onnx.reduce_max(x, axes=[1], keepdims=0, out=out),
            (400, n), dtype, lambda x: x.max(1),
        )
    check(lambda x, out: specops.hardmax(x, axis=1, out=out), (40, n), np.float16, one_hot)
    check(lambda x, out: specops.argmax(x, axis=1, out=out), (70, n), np.uint8, lambda x: x.argmax(1))
    check(lambda x, out: specops.softmax(x, axis=0, out=out), (20, n), np.float16, softmax)
    check(
        lambda x, out: specops.max_pool(x, [2, 1], out=out),
        (3, 2, 2, n), np.uint8, lambda x: x.max(2, keepdims=True),
    )

def with_nan(x):
    x[::2, x.shape[1] // 2] = np.nan
    return x.argmax(1)

for n in (30, 100, 1001):
    check(lambda x, out: specops.argmax(x, axis=1, out=out), (9, n), np.float32, with_nan)

def all_padding(x, out):
    specops.max_pool(x, [1, 2], strides=[1, 7], start_padding=[0, 5], end_padding=[0, 1], out=out)

check(all_padding, (1, 1, 12, 2), np.uint8, lambda x: np.zeros((1, 1, 12, 1), x.dtype))
print("done")
"""
    chosen = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": PROCESSORS[processor]}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=trees.PROJECT,
        env={**os.environ, **chosen, "PYTHONPATH": str(trees.PROJECT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_what_calls_would_find(
    bench: calls.Bench, monkeypatch: pytest.MonkeyPatch, few_types: None
) -> None:
    """Wrong answers, a changed input, a byte beside the output, a call that is not refused, another error."""

    def broken(how: str, real: Draw = draws.valid) -> Draw:
        def valid(random: np.random.Generator, family: str) -> Call:
            call = real(random, family)
            function = call.function

            def wrong(*inputs: object, out: np.ndarray | None = None, **named: object) -> object:
                try:
                    result = function(*inputs, out=out, **named)
                except ValueError:
                    if how == "takes all":
                        return out
                    raise TypeError("of another kind") from None
                if how == "answer":
                    np.asarray(result)[...] = 77
                elif how.startswith("input"):
                    arena = bench.inputs[int(how[-1])]
                    arena.bytes[arena.used] += 1
                elif how == "beside":
                    bench.outputs[0].bytes[bench.outputs[0].used.start] ^= 255
                return result

            call.function = wrong
            return call

        return valid

    for how, family, text in (
        ("answer", "argmax", "Arrays are not equal"),
        ("answer", "reduce", ": 77.0, exact"),
        ("answer", "average_pool", "77.0), not"),
        ("answer", "pool_grad", "Arrays are not equal"),
        ("input 0", "argmax", "an input was changed"),
        ("input 1", "pool_grad", "an input was changed"),
        ("beside", "argmax", "bytes"),
        ("takes all", "argmax", "not refused"),
        ("takes all", "pool_grad", "not refused: input 1"),
        ("another error", "argmax", "TypeError"),
    ):
        monkeypatch.setattr(calls, "valid", broken(how))
        for number in range(300):
            try:
                calls.check_case(family, 1, number, bench)
            except AssertionError as error:
                if text in str(error):
                    break
        else:
            pytest.fail(f"{how!r} of {family} is not found")


def test_poison(bench: calls.Bench) -> None:
    """Bytes between the elements of a tensor are watched."""
    arena = Arena()
    x = arena.place((3,), (4,), np.dtype(np.int16), True)
    assert x is not None
    x[...] = 5
    assert arena.surroundings_kept(x)
    x = arena.place((3,), (4,), np.dtype(np.int16), True)
    assert x is not None
    arena.bytes[-4] = 0
    assert not arena.surroundings_kept(x)


# --- layouts ---


@pytest.mark.parametrize("family", FAMILIES)
def test_layouts(family: str, few_types: None) -> None:
    """Of each call all pairs of layouts are right, of most more than one."""
    pairs = [int(layouts.check_case(family, 1, number).split()[0]) for number in range(30)]
    assert sum(pairs) > 300


def test_layouts_of_few_and_of_many_axes() -> None:
    assert layouts.layouts(()) == {"packed": ()}
    assert layouts.layouts((1, 3)) == {
        "packed": (3, 1),
        "a gap along axis 1": (6, 2),
        "axis 1 backward": (3, -1),
    }
    assert layouts.layouts((2, 3)) == {
        "packed": (3, 1),
        "a gap along axis 0": (6, 1),
        "axis 0 backward": (-3, 1),
        "a gap along axis 1": (6, 2),
        "axis 1 backward": (3, -1),
        "axes in the order 1, 0": (1, 2),
    }
    assert layouts.orders([0, 1, 2]) == [*itertools.permutations(range(3))][1:]
    many = [(3, 2, 1, 0), (1, 2, 3, 0), (0, 2, 3, 1), (0, 1, 3, 2)]
    assert layouts.orders([0, 1, 2, 3]) == many


def test_what_layouts_would_find() -> None:
    """A wrong answer in one pair of layouts, a byte beside the output's elements, a changed input."""

    def twice(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.multiply(x, 2, out=out)
        return out

    def wrong(x: np.ndarray, out: np.ndarray) -> None:
        twice(x, out)[..., -1] += out.strides[0] < 0 < x.strides[0]

    def beside(x: np.ndarray, out: np.ndarray) -> None:
        if out.strides[1] == 2 * out.itemsize:
            np.lib.stride_tricks.as_strided(out, (2, 5), (out.strides[0], out.itemsize))[...] = 0
        twice(x, out)

    def changed(x: np.ndarray, out: np.ndarray) -> None:
        x[...] = twice(x, out)

    def check(found: list[np.ndarray], x: np.ndarray) -> None:
        np.testing.assert_array_equal(found[0], 2 * x, "not twice as much")

    random, x = np.random.default_rng(0), np.arange(6, dtype=np.float32).reshape(2, 3)
    for function, text in (
        (twice, ""),
        (wrong, "axis 0 backward: AssertionError: .*not twice as much"),
        (beside, "outputs a gap along axis 1: AssertionError: bytes beside an output were changed"),
        (changed, "an input was changed"),
    ):
        call = Call(function, "FLOAT32", [x], {}, [(x.shape, x.dtype)], check, "form")
        if text:
            with pytest.raises(AssertionError, match=f"(?s){text}"):
                layouts.check_call(random, call, 0, told=False)
        else:
            assert layouts.check_call(random, call, 0, told=False) == "36 pairs"


def test_layouts_in_a_child(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["layouts", "--family", "argmin", "--seed", "2"]
    assert main([*command, "--count", "5", "--seconds", "60"]) == 0
    assert "of 5 calls, 0 findings (seed 2)" in capfd.readouterr().out
    assert main([*command, "--case", "3"]) == 0
    *told, last = capfd.readouterr().out.splitlines()
    assert last == f"{len(told)} pairs" and all("inputs packed" in line for line in told[:1])


def test_sizes_are_drawn_small_and_put_back() -> None:
    """What the host's side chooses by; functions forget what they compiled meanwhile."""
    before = [vars(module)[name] for module, name in scale.sizes()]
    assert (machine, "LARGE_BYTES") in scale.sizes()
    with scale.drawn(np.random.default_rng(0)):
        during = [vars(module)[name] for module, name in scale.sizes()]
    assert before == [vars(module)[name] for module, name in scale.sizes()]
    assert all(0 < small <= size for small, size in zip(during, before, strict=True))
    assert len(before) / 4 < sum(map(operator.lt, during, before))


# --- the others ---


def test_overlap(few_types: None) -> None:
    kinds = {overlap.check_case(1, number) for number in range(600)}
    for kind in overlap.KINDS:
        assert {f"{kind}, right", f"{kind}, refused"} & kinds, kind


@pytest.mark.parametrize("scenario", ["not_in_32_bits", "broadcast"])
def test_huge(scenario: str) -> None:
    """Those that take no memory; the others are for the command."""
    assert main(["huge", "--scenario", scenario]) == 0


@pytest.mark.parametrize("scenario", ["callers", "interrupts"])
def test_threads(scenario: str) -> None:
    assert main(["threads", "--scenario", scenario, "--seconds", "2"]) == 0


def test_board() -> None:
    assert main(["board"]) == 0


class FreesFirst(board.Model):
    """A worker frees its mailbox, then tells a caller that waits."""

    def serve(self, at_work: Any, number: int, at: Any) -> Any:
        for after, then in super().serve(at_work, number, at):
            if then.at == "tell":
                rows = list(after.rows)
                rows[number - self.callers] = (board.NOBODY, board.FREE)
                yield after._replace(rows=tuple(rows)), then
            else:
                yield after, then


class WakesNobody(board.Model):
    """A caller leaves a sleeper for awake."""

    def call(self, at_work: Any, number: int, at: Any) -> Any:
        for after, then in super().call(at_work, number, at):
            rows = [(o, board.FREE if o == number + 1 else state) for o, state in after.rows]
            yield (after._replace(rows=tuple(rows)) if at.at == "back" else after), then


class WaitsForNone(board.Model):
    """A caller returns though a worker has begun."""

    def call(self, at_work: Any, number: int, at: Any) -> Any:
        for after, then in super().call(at_work, number, at):
            if then.at == "await":
                yield at_work, at._replace(worker=at.worker + 1)
            else:
                yield after, then


@pytest.mark.parametrize("broken", [FreesFirst, WakesNobody, WaitsForNone])
def test_the_model_of_the_board_finds(broken: type[board.Model]) -> None:
    with pytest.raises(board.Wrong):
        broken(1, 2, 2, 1, 1).states()


def test_cache() -> None:
    """One of its scenarios: the tests of arrays have much of the others."""
    assert main(["cache", "--scenario", "nowhere"]) == 0


def test_survivors_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    lines = "print('kernels/softmax: a name'); print('{\"survivors\": 3}')"
    assert mutants.survivors_of([sys.executable, "-c", lines]) == 3
    assert capfd.readouterr().out == "kernels/softmax: a name\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise ValueError", 1), ("import os; os.kill(os.getpid(), 9)", -9), ("exit(2)", 2)],
)
def test_what_fails_is_no_survivor(code: str, status: int) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        mutants.survivors_of([sys.executable, "-c", code])
    assert caught.value.returncode == status


def test_every_verb_is_there() -> None:
    for verb in VERBS:
        with pytest.raises(SystemExit) as caught:
            main([verb, "--help"])
        assert caught.value.code == 0
