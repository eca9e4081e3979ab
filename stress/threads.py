"""Many threads, thread pools, forks and interrupts.

Each scenario runs in a process of its own: nothing may die, hang or differ. `--scenario S` runs one alone.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import oracle

import specops
from specops import directml as dml
from specops import launch
from specops import onnx as ox
from stress import PROJECT

CALLERS = 32
Job = tuple[Callable[[], Any], list[np.ndarray]]  # a call, and its results


def sure(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, in float64."""
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    out: np.ndarray = powers / powers.sum(-1, keepdims=True)
    return out


def logarithm(x: np.ndarray) -> np.ndarray:
    """Of the sum of exponentials over the first axis, in float64."""
    top = x.max(0)
    out: np.ndarray = top + np.log(np.exp(x.astype(np.float64) - top).sum(0))
    return out


@cache
def jobs() -> list[Job]:
    """Calls of every operator, small and large, some over one row, with their results from NumPy and the oracle."""
    random = np.random.default_rng(1)
    out: list[Job] = []

    def add(call: Callable[[], Any], *expected: np.ndarray) -> None:
        out.append((call, list(expected)))

    for shape in ((5, 40), (600, 700), (3, 200_000)):
        for dtype in (np.float32, np.float16, np.uint8):
            x = (random.standard_normal(shape) * 40 + 100).astype(dtype)
            wide = x.astype(np.float32)
            add(partial(specops.argmax, x, 1), wide.argmax(1))
            add(partial(specops.argmin, x, 0), wide.argmin(0))
            add(partial(dml.argmax, x), wide.argmax().reshape(1, 1).astype(np.uint32))
            add(partial(ox.reduce_max, x, [1], keepdims=False), wide.max(1).astype(dtype))
            if dtype == np.uint8:
                continue
            add(partial(specops.softmax, x, 1), sure(wide))
            add(partial(ox.log_softmax, x, 1), np.log(sure(wide)))
            add(partial(specops.logsumexp, x, 0), logarithm(wide))
            add(partial(dml.reduce, x, "AVERAGE", [0]), wide.mean(0, np.float64, keepdims=True))
            pairs = (wide[:, :-1] + wide[:, 1:].astype(np.float64)) / 2
            add(partial(specops.average_pool, x, [2]), pairs)
            hard = np.zeros(shape, dtype)
            hard[np.arange(shape[0]), wide.argmax(1)] = 1
            add(partial(dml.activation_hardmax1, x, [1]), hard)
        x = random.integers(0, 250, (1, 1, *shape)).astype(np.uint8)
        step = [1, 1] if shape[0] == 5 else [1, 97]
        window = [2, 3]
        sizes = [shape[0] - 1, (shape[1] - 3) // step[1] + 1]
        pooled = (
            oracle.max_pool(x, window, step, [1, 1], [0, 0], sizes, "propagates")
            if shape[0] < 600
            else None
        )
        if pooled is not None:
            add(partial(specops.max_pool, x, [2, 3], step, indices=True), *pooled)
            values, places = pooled[0].astype(np.float32), pooled[1]
            back = np.zeros(x.shape, np.float32)
            back.flat[places.ravel()] = values.ravel()
            add(partial(specops.max_unpool, values, places, x.shape), back)
    return out


def check(number: int) -> None:
    """One of the calls, and that its results are right."""
    call, expected = jobs()[number % len(jobs())]
    result = call()
    found = result if isinstance(result, tuple) else (result,)
    for array, wanted in zip(found, expected, strict=True):
        if wanted.dtype == np.float64:
            np.testing.assert_allclose(
                array.astype(np.float64),
                wanted,
                rtol=2e-3,
                atol=2e-7 if array.itemsize > 2 else 2e-3,
            )
        else:
            np.testing.assert_array_equal(array, wanted)


def check_all() -> int:
    for number in range(len(jobs())):
        check(number)
    return len(jobs())


# --- scenarios: each returns what it counted ---


def callers(seconds: float) -> str:
    """32 threads call different operators at once, each with a limit of threads of its own."""
    jobs()
    end = time.monotonic() + seconds
    barrier = threading.Barrier(CALLERS)

    def work(seed: int) -> int:
        random = np.random.default_rng(seed)
        barrier.wait()  # the first calls compile, all at once
        done = 0
        while time.monotonic() < end or done == 0:
            with specops.num_threads(int(random.integers(1, 5))):
                check(int(random.integers(len(jobs()))))
            done += 1
        return done

    with ThreadPoolExecutor(CALLERS) as pool:
        return f"{sum(pool.map(work, range(CALLERS)))} calls from {CALLERS} threads"


def nested(seconds: float) -> str:
    """Thread pools within a thread pool."""

    def inner(number: int) -> int:
        with ThreadPoolExecutor(3) as pool:
            return len(list(pool.map(check, range(number, number + 6))))

    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or done == 0:
        with ThreadPoolExecutor(4) as pool:
            done += sum(pool.map(inner, range(12)))
    return f"{done} calls from pools in pools"


def foreign(seconds: float) -> str:
    """A parallel Numba kernel of somebody else runs in another thread meanwhile, on Numba's own threads."""
    from numba import njit, prange  # noqa: PLC0415 (elsewhere it is not needed)

    def added(x: np.ndarray) -> float:
        out = 0.0
        for i in prange(x.size):
            out += x[i]
        return out

    total = njit(parallel=True, nogil=True)(added)
    x = np.ones(300_000)
    stop = threading.Event()
    sums = [0]

    def work() -> None:
        while not stop.is_set():
            assert total(x) == x.size
            sums[0] += 1

    other = threading.Thread(target=work)
    other.start()
    try:
        text = callers(seconds)
    finally:
        stop.set()
        other.join()
    return f"{text}, {sums[0]} foreign kernels"


def forks(seconds: float) -> str:
    """Children forked after a parallel call, and their children, compute on; so does the parent."""
    check_all()
    forked = 0
    end = time.monotonic() + seconds
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            check_all()

    beside = threading.Thread(target=work, daemon=True)
    beside.start()  # children are forked in the midst of its calls
    while time.monotonic() < end or forked == 0:
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    check_all()
                    grandchild = os.fork()
                    if grandchild == 0:
                        check_all()
                        os._exit(0)
                    code = os.waitpid(grandchild, 0)[1]
                finally:
                    os._exit(1 if code else 0)
            children.append(child)
        check_all()
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert codes == [0] * 3, codes
        forked += 6
    stop.set()
    beside.join()
    return f"{forked} forked processes"


def work_of_process(_number: int) -> int:
    """All calls, then some from threads."""
    count = check_all()
    with ThreadPoolExecutor(4) as pool:
        return count + len(list(pool.map(check, range(20))))


def processes(_seconds: float) -> str:
    """Worker processes of each way to start them, after a parallel call in the parent."""
    check_all()
    done = 0
    methods = multiprocessing.get_all_start_methods()
    for method in methods:
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            done += sum(pool.map(work_of_process, range(4)))
    check_all()
    return f"{done} calls in workers by {', '.join(methods)}"


def libraries(_seconds: float) -> str:
    """Workers of joblib and dask, where they are installed."""
    texts = []
    try:
        joblib = importlib.import_module("joblib")
    except ImportError:
        texts.append("no joblib")
    else:
        for backend in ("threading", "multiprocessing", "loky"):
            run = joblib.Parallel(n_jobs=3, backend=backend)
            texts.append(
                f"joblib {backend}: {sum(run(joblib.delayed(work_of_process)(i) for i in range(6)))} calls"
            )
    try:
        dask = importlib.import_module("dask")
    except ImportError:
        texts.append("no dask")
    else:
        for scheduler in ("threads", "processes"):
            parts = [dask.delayed(work_of_process)(i) for i in range(6)]
            texts.append(
                f"dask {scheduler}: {sum(dask.compute(*parts, scheduler=scheduler))} calls"
            )
    return ", ".join(texts)


def interrupts(seconds: float) -> str:
    """A keyboard interrupt at any moment of a call leaves the process usable, and the call's output to the caller."""
    check_all()
    even = np.zeros((256, 1 << 14), np.float32)
    rising = even + np.arange(1 << 14, dtype=np.float32)
    out = np.empty_like(even)
    random = np.random.default_rng(1)
    x = np.zeros((64, 1 << 20), np.uint8)
    x[:, -1] = 1
    caught = rounds = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or rounds < 3:
        rounds += 1
        interrupted = 0
        finished = threading.Event()

        def interrupt(delay: float, finished: threading.Event = finished) -> None:
            if not finished.wait(delay):
                os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Thread(target=interrupt, args=(random.random() * 0.03,))
        try:
            timer.start()
            for _ in range(5):
                assert (specops.argmax(x, 1) == x.shape[1] - 1).all()
                with specops.num_threads(2):
                    check(rounds)
                specops.softmax(rising, 1, out=out)
        except KeyboardInterrupt:
            interrupted = 1
        while True:
            try:
                finished.set()
                timer.join()
                break
            except KeyboardInterrupt:
                interrupted = 1
        caught += interrupted
        with specops.num_threads(1):
            specops.softmax(even, 1, out=out)
        time.sleep(0.005)  # for those that may still write
        assert (out == 2.0**-14).all(), "the interrupted call wrote to the next one's output"
        check(rounds)
    check_all()
    assert caught, "no interrupt came"
    return f"{caught} interrupts in {rounds} rounds"


def compiling(_seconds: float) -> str:
    """Interrupts while the first calls compile, with an empty cache: made again, the calls are right."""
    todo = jobs()
    stop = threading.Event()

    def interrupt() -> None:
        random = np.random.default_rng(1)
        while not stop.wait(0.1 + random.random()):
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Thread(target=interrupt)
    timer.start()
    caught = number = 0
    while not stop.is_set():
        try:
            while number < len(todo):
                check(number)
                number += 1
            stop.set()
        except KeyboardInterrupt:
            caught += 1
    for _ in range(3):  # one more may come
        try:
            timer.join()
            check_all()
        except KeyboardInterrupt:
            caught += 1
    assert caught, "no interrupt came"
    return f"{caught} interrupts"


def limits(_seconds: float) -> str:
    """The number of threads follows Numba's variable."""
    wanted = int(os.environ["NUMBA_NUM_THREADS"])
    assert specops.get_num_threads() == wanted, specops.get_num_threads()
    check_all()
    helpers = launch._workers.number if launch._workers else 0
    assert helpers == wanted - 1, helpers
    with specops.num_threads(99):
        assert specops.get_num_threads() == wanted
    return f"{wanted} threads"


SCENARIOS = {
    "callers": callers,
    "nested": nested,
    "foreign": foreign,
    "forks": forks,
    "processes": processes,
    "libraries": libraries,
    "interrupts": interrupts,
    "compiling": compiling,
    "limits": limits,
}
SHARE = {  # of the time
    "callers": 1.0,
    "foreign": 0.3,
    "nested": 0.1,
    "forks": 0.1,
    "interrupts": 0.3,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="time for the scenario `callers`, of which some others take a part (default: 60)",
    )
    parser.add_argument("--scenario", choices=list(SCENARIOS), help="one scenario; all by default")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    if options.child:
        # A shell starts what runs in the background with interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(SCENARIOS[options.scenario](options.seconds), flush=True)
        return 0
    findings = runs = 0
    for scenario in [options.scenario] if options.scenario else SCENARIOS:
        for threads in (1, 2, 3) if scenario == "limits" else (4,):
            findings += one(scenario, threads, options.seconds * SHARE.get(scenario, 0))
            runs += 1
    print(f"threads: {runs} scenarios, {findings} findings")
    return findings


def one(scenario: str, threads: int, seconds: float) -> int:
    """One scenario in a process of its own; 1 where it dies, hangs, differs or complains."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-W",
        "ignore::DeprecationWarning",
        "-m",
        "stress",
    ]
    command += ["threads", "--child", "--scenario", scenario, "--seconds", str(seconds)]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
    start, limit = time.monotonic(), 2 * seconds + 300
    with tempfile.TemporaryDirectory() as folder:
        if scenario == "compiling":
            environment["NUMBA_CACHE_DIR"] = folder
        try:
            done = subprocess.run(
                command,
                cwd=PROJECT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"finding: {scenario} hangs: more than {limit:g} s", flush=True)
            return 1
    complaints = [line for line in done.stderr.splitlines() if line]
    # LLVM calls Python back while it compiles; an interrupt that is raised there is only shown.
    if done.returncode or (complaints and scenario != "compiling"):
        print(f"finding: {scenario} ended with {done.returncode}")
        print(*complaints[-30:], sep="\n", flush=True)
        return 1
    print(f"{scenario}: {done.stdout.strip()} ({time.monotonic() - start:.0f} s)", flush=True)
    return 0
