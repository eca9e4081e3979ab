"""How chunks are run: each item once, on any number of threads, and what they raise is raised."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import carray, njit, types
from numba.core import config
from numba.core.errors import TypingError
from numba.extending import intrinsic

from specops import launch, workers
from specops.kernels import chunks, reduce
from specops.workers import Workers

ITEMS = 1000
SLOW = 123_456
LOOKS = 4 * chunks.SPINS


@intrinsic
def pointer(_context: Any, address: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], _context.get_value_type(types.CPointer(types.int64)))

    return types.CPointer(types.int64)(types.int64), codegen


@njit(nogil=True)
def count(_walk: int, x: int, out: int, other: int, begin: int, end: int) -> None:
    """out[i] += x[i] + other, but for items that are negative; SLOW takes long."""
    source, target = carray(pointer(x), ITEMS), carray(pointer(out), ITEMS)
    for i in range(begin, end):
        if source[i] < 0:
            raise MemoryError
        if source[i] == SLOW:
            for _ in range(LOOKS):
                chunks.relax()
        target[i] += source[i] + other


@pytest.fixture(scope="module")
def chunk() -> launch.Chunk:
    return launch.Chunk(count)


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So many, also on a machine with fewer cores."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", request.param)
    monkeypatch.setattr(launch, "_workers", None)
    yield request.param
    if launch._workers:
        assert states(launch._workers) <= {chunks.FREE, chunks.ASLEEP}


def run(chunk: launch.Chunk, source: np.ndarray, items: int = ITEMS) -> np.ndarray:
    out = np.zeros(ITEMS, np.int64)
    addresses = launch.address(source), launch.address(out)
    chunk.run(0, *addresses, 7, items, True)
    return out


@pytest.mark.parametrize("items", [0, 1, 2, 3, 999, ITEMS])
def test_each_item_once(chunk: launch.Chunk, threads: int, items: int) -> None:
    """No item is left out, none runs twice, and none beyond the last."""
    source = np.arange(ITEMS)
    expected = np.where(source < items, source + 7, 0)
    np.testing.assert_array_equal(run(chunk, source, items), expected)


@pytest.mark.parametrize("place", [0, 500, ITEMS - 1])
def test_what_a_chunk_raises(chunk: launch.Chunk, threads: int, place: int) -> None:
    """Out of memory, for one, is no result."""
    source = np.arange(ITEMS)
    source[place] = -1
    with pytest.raises(MemoryError):
        run(chunk, source)
    source[place] = 1
    run(chunk, source)


@reduce.entry
def greedy(_walk: int, _x: int, _out: int, _other: int, _begin: int, _end: int) -> None:
    reduce.release(reduce.allocate(1 << 60))


def test_no_memory_for_scratch(threads: int) -> None:
    """It is said whose memory there is none for, on any threads."""
    with pytest.raises(MemoryError, match="no memory for a thread's scratch"):
        run(launch.Chunk(greedy), np.zeros(ITEMS, np.int64))


def test_one_launcher_for_all_chunks(chunk: launch.Chunk) -> None:
    """Only chunks are compiled anew: the functions that call them have one signature."""
    run(chunk, np.arange(ITEMS))
    for function in (chunks.serial, chunks.parallel, chunks.serve):
        assert len(function.signatures) <= 1
    assert count.signatures == [chunks.SIGNATURE.args]


def test_chunks_are_made_once() -> None:
    """The same kind is the same chunk."""
    made = []

    def chunk_for(*kind: int) -> object:
        made.append(kind)
        return count

    chunk = launch.chunks_of(chunk_for)
    assert chunk(16, True) is chunk(16, True) is not chunk(32, True)
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


def number(n: float) -> float:
    if n > 7:
        n = n / 2
    return n


def pair(n: float) -> float:
    both = (n, n)
    if n > 7:
        both = (0.5, 0.5)
    return both[0]


def choice(n: float) -> float:
    return n if n > 7 else 0.5


def results(n: float) -> float:
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


# --- the board on which callers and workers find each other ---


def words(of: Workers) -> np.ndarray:
    """A board, a row for each worker, after one of its own."""
    rows = of.most + 1
    return np.ctypeslib.as_array(
        (ctypes.c_int64 * (chunks.LINE * rows)).from_address(of.board)
    ).reshape(rows, chunks.LINE)


def states(of: Workers | None) -> set[int]:
    assert of is not None
    return set(words(of)[1:, 0].tolist())


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Six workers that never look into their mailboxes, as if other processes had all cores."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 7)
    six = Workers(0, 6)
    six.number = 6
    monkeypatch.setattr(launch, "_workers", six)
    return six


def test_no_worker_comes(chunk: launch.Chunk, absent: Workers) -> None:
    """The caller does all, and takes the job back: nobody reads it when it is gone."""
    source = np.arange(ITEMS)
    np.testing.assert_array_equal(run(chunk, source), source + 7)
    assert states(absent) == {chunks.FREE}


def test_workers_with_other_jobs_are_left_alone(chunk: launch.Chunk, absent: Workers) -> None:
    mailboxes = words(absent)[1:, 0]
    others = [64, 64 + chunks.ASLEEP, 64 + chunks.BEGUN, 64 + chunks.AWAITED]
    mailboxes[1:5] = others
    run(chunk, np.arange(ITEMS))
    assert mailboxes.tolist() == [chunks.FREE, *others, chunks.FREE]


def bells(of: Workers) -> list[int]:
    """Which workers somebody has rung for, in their order."""
    acquire = ctypes.pythonapi.PyThread_acquire_lock
    return [acquire(ctypes.c_void_p(int(bell)), 0) for bell in words(of)[1:, chunks.BELL]]


@pytest.mark.parametrize(("wanted", "rung"), [(5, chunks.WAKES), (2, 1)])
def test_sleepers_are_woken_by_turns(
    chunk: launch.Chunk, absent: Workers, wanted: int, rung: int
) -> None:
    """The caller rings for two, who would ring for others; those for whom nobody did sleep on."""
    row = words(absent)[1:]
    row[:, 0] = chunks.ASLEEP
    source = np.arange(ITEMS)
    source[0] = SLOW
    with launch.num_threads(wanted):
        np.testing.assert_array_equal(run(chunk, source), source + 7)
    assert row[:, 0].tolist() == [chunks.FREE] * rung + [chunks.ASLEEP] * (6 - rung)
    assert bells(absent) == [1] * rung + [0] * (6 - rung)


def test_sleepers_are_woken_where_it_pays(chunk: launch.Chunk, absent: Workers) -> None:
    """Not for a short job, but where another one has just ended, or where no part of it tells how long it takes."""
    row = words(absent)[1:]
    source = np.arange(ITEMS)
    short = 0 if njit(lambda: chunks.ticks())() else 1  # noqa: PLW0108 (Numba takes no intrinsic)
    for items, last, rung in [(ITEMS, 0, short), (chunks.PIECES, 0, 1), (ITEMS, 2**62, 1)]:
        row[:, 0] = chunks.ASLEEP
        words(absent)[0, chunks.LAST] = last
        with launch.num_threads(2):
            run(chunk, source, items)
        assert sum(bells(absent)) == rung, (items, last)


def test_workers_sleep_and_wake(chunk: launch.Chunk, threads: int) -> None:
    """Without a job they take no time of a processor; with one they come again."""
    source = np.arange(ITEMS)
    for _ in range(3):
        np.testing.assert_array_equal(run(chunk, source), source + 7)
        if threads == 1:
            return
        deadline = time.monotonic() + 60
        while states(launch._workers) != {chunks.ASLEEP}:
            assert time.monotonic() < deadline, "workers do not sleep"
            time.sleep(0.01)


TURNS: list[int] = []


@ctypes.CFUNCTYPE(ctypes.c_int)
def give_way() -> int:
    TURNS.append(1)
    return 0


@pytest.mark.parametrize("threads", [2], indirect=True)
@pytest.mark.parametrize("there", [True, False], ids=["there", "absent"])
def test_a_waiting_worker_lets_others_have_the_core(
    chunk: launch.Chunk, threads: int, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it keeps it from the caller, or other processes. Without such a function of the system it waits as well."""
    function = ctypes.cast(give_way, ctypes.c_void_p).value
    monkeypatch.setattr(workers, "_gives_way", lambda: function if there else 0)
    TURNS.clear()
    test_workers_sleep_and_wake(chunk, threads)
    assert bool(TURNS) == there
    assert len(TURNS) <= 4 * (chunks.SPINS // chunks.TURN)


def test_the_system_has_a_function_that_gives_way() -> None:
    """Linux, macOS and Windows have one."""
    assert workers._gives_way() != 0


def test_a_caller_waits_for_a_worker_that_takes_long(chunk: launch.Chunk, threads: int) -> None:
    """It sleeps meanwhile; whoever has the last item, the result is whole."""
    source = np.arange(ITEMS)
    source[[0, ITEMS // 2, ITEMS - 1]] = SLOW
    for _ in range(20):
        np.testing.assert_array_equal(run(chunk, source), source + 7)


@pytest.mark.parametrize("threads", [3], indirect=True)
def test_many_callers_at_once(chunk: launch.Chunk, threads: int) -> None:
    """They share the workers, or do without, for some ten thousand calls."""
    source = np.arange(ITEMS)
    end = time.monotonic() + 6
    run(chunk, source)

    def call(seed: int) -> int:
        random, out = np.random.default_rng(seed), np.empty(ITEMS, np.int64)
        wrong = 0
        while time.monotonic() < end:
            out[:] = 0
            chunk.run(0, launch.address(source), launch.address(out), 7, ITEMS, True)
            wrong += not np.array_equal(out, source + 7)
            if random.random() < 0.01:
                time.sleep(random.random() * 3e-3)  # workers sleep
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(call, range(4))) == 0


def limited(start: Callable[..., int], number: int) -> Callable[..., int]:
    """A system that gives so many threads."""
    left = list(range(number))

    def begin(*arguments: int) -> int:
        return start(*arguments) if left and left.pop() >= 0 else workers._NO_THREAD

    return begin


def test_threads_that_cannot_be_had(chunk: launch.Chunk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large calls do with those that there are, and ask again."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 4)
    monkeypatch.setattr(launch, "_workers", None)
    start, source, numbers = workers._start, np.arange(ITEMS), []
    for left in (0, 2, 9):
        monkeypatch.setattr(workers, "_start", limited(start, left))
        np.testing.assert_array_equal(run(chunk, source), source + 7)
        assert launch._workers
        numbers.append(launch._workers.number)
    assert numbers == [0, 2, 3]


def test_a_call_while_workers_are_started(
    chunk: launch.Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal's handler may make one: it does not wait for what its own thread is about."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    monkeypatch.setattr(launch, "_workers", None)
    start: Callable[..., int] = workers._start
    source = np.arange(ITEMS)

    def interrupted(*arguments: int) -> int:
        np.testing.assert_array_equal(run(chunk, source), source + 7)
        return start(*arguments)

    monkeypatch.setattr(workers, "_start", interrupted)
    np.testing.assert_array_equal(run(chunk, source), source + 7)


def test_a_call_while_workers_are_made(
    chunk: launch.Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above: it makes no others, whose threads nobody would find again."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    monkeypatch.setattr(launch, "_workers", None)
    source, made = np.arange(ITEMS), []

    def interrupted(serve: int, most: int) -> Workers:
        made.append(most)
        if len(made) == 1:
            np.testing.assert_array_equal(run(chunk, source), source + 7)
        return Workers(serve, most)

    monkeypatch.setattr(launch, "Workers", interrupted)
    np.testing.assert_array_equal(run(chunk, source), source + 7)
    assert made == [1]


def test_no_memory_for_a_lock(chunk: launch.Chunk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that would start workers tells it; the next asks again."""
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    monkeypatch.setattr(launch, "_workers", None)
    source = np.arange(ITEMS)
    with monkeypatch.context() as patch, pytest.raises(MemoryError, match="for a lock"):
        patch.setattr(workers, "_allocate", lambda: None)
        run(chunk, source)
    np.testing.assert_array_equal(run(chunk, source), source + 7)


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000", 99), ("150000 100000", 2), ("50000 100000", 1), ("", 99)]
)
def test_cores_that_a_container_has(
    text: str, cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(workers, "_QUOTA", str(tmp_path / "cpu.max"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(99), raising=False)
    assert workers._cores() == cores
    monkeypatch.setattr(workers, "_QUOTA", str(tmp_path / "none"))
    assert workers._cores() == 99
