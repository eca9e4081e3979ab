"""The process around calls: threads, the import, forks, other processes."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from processes import KERNELS, done, python

import specops
from specops import SpecopsError, ThreadLimitError, launch, onnx


def limited() -> Generator[None]:
    with specops.num_threads(1):
        yield


def test_the_limit_of_threads() -> None:
    """Process-wide and local limits nest; wrong numbers are refused."""
    all_of_them = specops.get_num_threads()
    assert all_of_them >= 1
    with specops.num_threads(1):
        assert specops.get_num_threads() == 1
        with specops.num_threads(10**6):
            assert specops.get_num_threads() == all_of_them
        with ThreadPoolExecutor(1) as pool:  # another thread has a context of its own
            assert pool.submit(specops.get_num_threads).result() == all_of_them
    kept = specops.num_threads(1)
    for _ in range(2):
        with kept, specops.num_threads(None):
            assert specops.get_num_threads() == all_of_them
            with kept:
                assert specops.get_num_threads() == 1
            assert specops.get_num_threads() == all_of_them
    assert kept(specops.get_num_threads)() == 1
    suspended = limited()
    next(suspended)
    with specops.num_threads(None):  # not the block that ends next
        suspended.close()
        assert specops.get_num_threads() == all_of_them
    suspended = limited()
    next(suspended)
    with specops.num_threads(None), specops.num_threads(1):  # which both go on
        suspended.close()
        assert specops.get_num_threads() == 1
    assert specops.get_num_threads() == all_of_them
    try:
        specops.set_num_threads(1)
        assert specops.get_num_threads() == 1
        with specops.num_threads(10**6):  # a block's own limit may be more
            assert specops.get_num_threads() == all_of_them
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(specops.get_num_threads).result() == 1
    finally:
        specops.set_num_threads(None)
    assert specops.get_num_threads() == all_of_them
    wrong: Any
    for wrong in (0, -1, True, 1.0, "1"):
        for limit in (specops.num_threads, specops.set_num_threads):
            with pytest.raises(
                ThreadLimitError, match=r"it must be an integer from 1 to \d+, or None"
            ) as caught:
                limit(wrong)
            assert isinstance(caught.value, SpecopsError) and isinstance(caught.value, ValueError)
    assert specops.get_num_threads() == all_of_them


def test_what_a_limit_of_threads_can_decorate() -> None:
    """A function whose body runs in its call: of others it would hold nowhere."""

    @specops.num_threads(1)
    def limited() -> int:
        return specops.get_num_threads()

    async def coroutine() -> None:
        pass

    def generator() -> Iterator[None]:
        yield

    async def asynchronous() -> AsyncIterator[None]:
        yield

    class Caller:
        async def __call__(self) -> None:
            pass

        def __repr__(self) -> str:
            return "caller"

    assert limited() == 1
    named = {f.__name__: f for f in (coroutine, generator, asynchronous)}
    for name, function in {
        **named,
        "functools.partial": partial(generator),
        "caller": Caller(),
    }.items():
        with pytest.raises(SpecopsError, match=f"cannot decorate {name}"):
            specops.num_threads(1)(function)


def test_concurrent_calls() -> None:
    """Sixteen threads at once, large and small calls, each with its own limit: all right."""
    random = np.random.default_rng(1)
    inputs = [random.random((n, 700), np.float32) for n in (3, 300, 900, 31) for _ in range(4)]
    expected = [(x.argmax(0), x.argmax(1), x.argmax()) for x in inputs]

    def work(number: int) -> None:
        x, wanted = inputs[number % 16], expected[number % 16]
        with specops.num_threads(1 + number % 3):
            for axis, result in ((0, wanted[0]), (1, wanted[1]), (None, wanted[2])):
                np.testing.assert_array_equal(specops.argmax(x, axis), result)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(320)))


PARALLEL = """
import sys
import numpy as np
import specops
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from functools import partial
x = np.random.default_rng(1).random((600, 700), np.float32)
def check(_=None):
    for axis in (0, 1, None):
        assert np.array_equal(specops.argmax(x, axis), x.argmax(axis))
"""


def test_import_is_quick_and_compiles_nothing() -> None:
    """An import of the package reads no compiled code and makes none; Numba's own import is the most of it."""
    code = """
import time
import numba, ml_dtypes
from numba.core import event
recorder = event.RecordingListener()
with event.install_listener("numba:compile", recorder):
    start = time.perf_counter()
    import specops, specops.directml
    took = time.perf_counter() - start
    import importlib, pkgutil, specops.kernels
    for module in pkgutil.iter_modules(specops.kernels.__path__):
        importlib.import_module(f"specops.kernels.{module.name}")
assert recorder.buffer == [], recorder.buffer
assert took < 1.5, took
"""
    checks = """
assert not any(kernel.signatures for kernel in kernels)
print("done")
"""
    done(python(code + KERNELS + checks))


def test_a_first_call_while_the_interpreter_ends() -> None:
    """When no thread can be started any more a kernel is compiled, or loaded, in the one that calls."""
    code = """
import atexit
import numpy as np
import specops
atexit.register(lambda: print(specops.argmax(np.array([1, 3, 2], np.float32)), "done"))
"""
    done(python(code), "1 done\n")


def test_an_interrupt_while_a_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when that is done: Numba would forget it, or not be usable afterwards."""
    compiled = []

    def compile(*function: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        compiled.append(function)

    monkeypatch.setattr(launch, "_compile", compile)
    monkeypatch.setattr(launch, "_compiled", set())
    # In the background of a shell, interrupts are ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            launch._ready("a kernel", (8,))
    finally:
        signal.signal(signal.SIGINT, before)
    assert compiled == [("a kernel", (8,))] and launch._compiled == {"a kernel"}


def test_disabled_jit() -> None:
    """Under NUMBA_DISABLE_JIT the import works and a call gives one clear error."""
    code = """
import numpy as np
import specops
try:
    specops.argmax(np.zeros(3))
except specops.SpecopsError as error:
    assert "NUMBA_DISABLE_JIT" in str(error)
    print("done")
"""
    done(python(code, NUMBA_DISABLE_JIT="1"))


@pytest.mark.parametrize("number", ["0", "-3"])
def test_a_number_of_threads_that_numba_refuses(number: str) -> None:
    code = """
try:
    import specops
except Exception as error:
    print(type(error).__name__, error)
"""
    told = f"SpecopsError Numba cannot be imported: NUMBA_NUM_THREADS is {number}; it must be at"
    assert told in python(code, NUMBA_NUM_THREADS=number).stdout


def test_signatures_follow_from_widths_alone() -> None:
    """Ranks, layouts, axes, directions and output types compile nothing new."""
    code = """
import numpy as np
import specops
from specops import directml as dml
for dtype in ("INT32", "UINT32"):
    for rank in (1, 2, 5, 8):
        x = np.zeros((2,) * rank, dtype.lower())
        for output in ("UINT32", "INT64"):
            for direction in (0, 1):
                for y in (x, x.T, x[..., ::-1], np.broadcast_to(x[:1], x.shape)):
                    dml.argmax(y, 0, direction, output)
                    dml.argmax(y, None, direction, output)
        specops.argmax(x)
"""
    checks = """
chunks = [k for k in kernels if k.py_func.__name__ == "chunk" and k.signatures]
assert sorted(k.py_func.__qualname__.split(".")[0] for k in chunks) == ["columns", "rows", "short_rows"]
assert all(len(k.signatures) == 1 for k in chunks), chunks
print("done")
"""
    done(python(code + KERNELS + checks))


def test_fork() -> None:
    """A child that is forked after a parallel call computes on, with threads of its own, and so does its parent."""
    code = (
        PARALLEL
        + """
import os
from specops import launch
check()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        alone = launch._workers is None
        check()
        os._exit(42 if alone and launch._workers.number == 1 else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [42] * 3, codes
check()
print("done")
"""
    )
    if hasattr(os, "fork"):
        options = ("-W", "ignore::DeprecationWarning")
        done(python(code, options=options, NUMBA_NUM_THREADS="2"))


def test_fork_while_another_thread_holds_the_locks() -> None:
    """As one does that compiles, or starts workers: the child waits for none of its parent's threads."""
    code = (
        PARALLEL
        + """
import os, signal, threading
from specops import launch
check()
holder = threading.Thread(target=lambda: [launch._lock.acquire(), launch._compiling.acquire()])
holder.start()
holder.join()
child = os.fork()
if child == 0:
    signal.alarm(100)
    check()
    launch._compiled.clear()
    launch._ready(launch.chunks.serial)
    os._exit(42)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
print("done")
"""
    )
    if hasattr(os, "fork"):
        options = ("-W", "ignore::DeprecationWarning")
        done(python(code, options=options, NUMBA_NUM_THREADS="2"))


def test_one_thread_starts_none() -> None:
    """With the limit 1 a large call stays on the caller's thread; without it another helps."""
    code = (
        PARALLEL
        + """
from specops import launch
specops.set_num_threads(1)
check()
assert launch._workers is None
specops.set_num_threads(None)
check()
assert launch._workers.number == 1
print("done")
"""
    )
    done(python(code, NUMBA_NUM_THREADS="2"))


def test_compiled_operators_pass_to_another_process() -> None:
    """Also after a call: where kernels lie in memory is no part of them."""
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    window: dict[str, Any] = {"kernel_shape": (2, 2)}
    descriptions: list[Any] = [onnx.ArgMax(axis=1), onnx.Softmax(), onnx.ReduceSum(axes=[3])]
    descriptions += [onnx.MaxPool(**window), onnx.AveragePool(**window), onnx.LpPool(**window)]
    operators = [description.compile("float32", x.shape) for description in descriptions]
    expected = [operator(x) for operator in operators]
    code = (
        "import pickle, sys\n"
        "operators, x = pickle.load(sys.stdin.buffer)\n"
        "pickle.dump([operator(x) for operator in operators], sys.stdout.buffer)"
    )
    command, given = [sys.executable, "-c", code], pickle.dumps((operators, x))
    run = subprocess.run(command, input=given, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    for operator, found, wanted in zip(operators, pickle.loads(run.stdout), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        again = copy.deepcopy(operator)
        np.testing.assert_array_equal(again(x), wanted)
        # Nobody described strides: outputs have the memory order of the input, as before.
        other = np.asfortranarray(x)
        assert again(other).strides == operator(other).strides
