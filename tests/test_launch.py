"""How chunks are run: each item once, on any number of threads, and what they raise is raised."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numba import carray, njit, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from specops import launch
from specops.kernels import chunks, reduce

ITEMS = 1000


@intrinsic
def pointer(_context, address):
    def codegen(_context, builder, _signature, values):
        return builder.inttoptr(values[0], _context.get_value_type(types.CPointer(types.int64)))

    return types.CPointer(types.int64)(types.int64), codegen


@njit(nogil=True)
def count(_walk, x, out, other, begin, end):
    """out[i] += x[i] + other, but for items that are negative."""
    source, target = carray(pointer(x), ITEMS), carray(pointer(out), ITEMS)
    for i in range(begin, end):
        if source[i] < 0:
            raise MemoryError
        target[i] += source[i] + other


@pytest.fixture(scope="module")
def kernel() -> launch.Kernel:
    return launch.Kernel(count)


@pytest.fixture(params=["one thread", "threads", "workqueue"])
def layer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "workqueue":
        monkeypatch.setattr(launch, "_layer", "workqueue")
    with launch.num_threads(1 if request.param == "one thread" else 2):
        yield request.param


def run(kernel: launch.Kernel, source: np.ndarray, items: int = ITEMS) -> np.ndarray:
    out = np.zeros(ITEMS, np.int64)
    addresses = launch.address(source), launch.address(out)
    kernel(0, *addresses, 7, items, large=True, alive=(source, out))
    return out


@pytest.mark.parametrize("items", [0, 1, 2, 3, 999, ITEMS])
def test_each_item_once(kernel: launch.Kernel, layer: str, items: int) -> None:
    """No item is left out, none runs twice, and none beyond the last."""
    source = np.arange(ITEMS)
    expected = np.where(source < items, source + 7, 0)
    np.testing.assert_array_equal(run(kernel, source, items), expected)


@pytest.mark.parametrize("place", [0, 500, ITEMS - 1])
def test_what_a_chunk_raises(kernel: launch.Kernel, layer: str, place: int) -> None:
    """Out of memory, for one, is no result."""
    source = np.arange(ITEMS)
    source[place] = -1
    with pytest.raises(MemoryError):
        run(kernel, source)
    source[place] = 1
    run(kernel, source)


@reduce.entry
def greedy(_walk, _x, _out, _other, _begin, _end):
    reduce.release(reduce.allocate(1 << 60))


def test_no_memory_for_scratch(layer: str) -> None:
    """It is said whose memory there is none for, on any threads."""
    with pytest.raises(MemoryError, match="no memory for a thread's scratch"):
        run(launch.Kernel(greedy), np.zeros(ITEMS, np.int64))


def test_one_launcher_for_all_kernels(kernel: launch.Kernel) -> None:
    """Only chunks are compiled anew for a kernel: the functions that call them have one signature."""
    run(kernel, np.arange(ITEMS))
    for function in (chunks.serial, chunks.parallel):
        assert len(function.signatures) <= 1
    assert count.signatures == [chunks.SIGNATURE.args]


def test_kernels_are_made_once() -> None:
    """The same kind is the same kernel."""
    made = []

    def chunk_for(*kind: int) -> object:
        made.append(kind)
        return count

    kernels = launch.kernels(chunk_for)
    assert kernels(16, True) is kernels(16, True) is not kernels(32, True)
    assert made == [(16, True), (32, True)]


FOUND_AGAIN = """
import numpy as np
import specops
from specops import directml as dml
x = np.random.default_rng(1).random((1, 1, 8, 9), np.float32)
specops.max_pool(x, [3, 3])
specops.average_pool(x, [3, 3])
dml.max_pooling_grad(x, np.ones((1, 1, 7, 8), np.float32), [2, 2])
specops.l2_norm(x, axis=1)
"""


def number(n):
    if n > 7:
        n = n / 2
    return n


def pair(n):
    both = (n, n)
    if n > 7:
        both = (0.5, 0.5)
    return both[0]


def choice(n):
    return n if n > 7 else 0.5


def results(n):
    if n > 7:
        return n
    return 0.5


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (number, "`n` is int64 here, and float64 in number"),
        (pair, r"`both` is UniTuple\(int64 x 2\) here, and UniTuple\(float64 x 2\) in pair"),
        (choice, "a value is int64 here, and float64 in choice"),
        (results, "a value is int64 here, and float64 in results"),
    ],
)
def test_values_of_two_types_are_refused(function: Callable[[int], float], text: str) -> None:
    """They would be floats all along, which do not hold every integer."""
    for compiled in (reduce.helper(function), reduce.entry(function)):
        with pytest.raises(TypingError, match=text):
            compiled.compile((types.int64,))


def test_other_versions_of_numba_compile_in_their_own_way(tmp_path: Path) -> None:
    """What the pipeline is made of may be something else there."""
    code = """
import numba
import numba.core.compiler
import numpy as np
numba.version_info = numba.version_info._replace(short=(0, 99))
import specops
from specops.kernels import reduce

@reduce.helper
def same(n):
    return n

assert same._compiler.pipeline_class is numba.core.compiler.Compiler
x = np.arange(9.0).reshape(1, 3, 3)
assert specops.argmax(x) == 8
assert specops.average_pool(x, [3, 3]) == 4
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)


def test_compiled_code_is_found_again(tmp_path: Path) -> None:
    """A second process compiles nothing, also where a chunk calls a function that a factory made for it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    files = []
    for _ in range(2):
        command = [sys.executable, "-c", FOUND_AGAIN]
        subprocess.run(command, env=environment, check=True, timeout=300)
        files.append({p.name for p in tmp_path.rglob("*.nbc")})
    assert len(files[0]) > 4
    assert files[0] == files[1]


SCRATCH = """
import numpy as np
import specops
from specops import directml as dml
x = np.random.default_rng(1).random((40, 4000), np.float32)
planes = x.reshape(1, 4, 200, 200)
for axis in (0, 1):
    assert np.array_equal(specops.argmax(x, axis=axis), x.argmax(axis))
    assert np.allclose(specops.softmax(x, axis=axis).sum(axis), 1)
    assert np.allclose(specops.l2_norm(x, axis=axis), np.sqrt(np.square(x).sum(axis)))
assert np.array_equal(specops.max_pool(planes, [1, 1]), planes)
assert np.array_equal(specops.average_pool(planes, [1, 1]), planes)
assert np.array_equal(dml.max_pooling_grad(planes, planes, [1, 1]), planes)
assert np.array_equal(dml.average_pooling_grad(planes, [1, 1]), planes)
"""


def test_scratch_memory_is_kept_as_long_as_it_is_used() -> None:
    """Kernels know it by its address alone; what is freed goes back to the system at once here, where malloc can."""
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "512"}
    command = [sys.executable, "-c", SCRATCH]
    subprocess.run(command, env=environment, check=True, timeout=300)


def test_an_interrupt_waits_for_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They write to the caller's memory: none is under way, and none begins, when the interrupt is raised."""
    began: list[int] = []
    ended: list[int] = []

    def serial(begin: int, end: int) -> None:
        began.append(begin)
        time.sleep(0.1)
        ended.append(begin)

    def interrupted(_futures: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch.chunks, "serial", serial)
    monkeypatch.setattr(launch, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch._share((), 8, 4, None)
    known = sorted(ended)
    assert known and sorted(began) == known
    time.sleep(0.3)
    assert sorted(began) == known
