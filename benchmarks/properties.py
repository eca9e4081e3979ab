"""What a user waits for beside large calls: small calls, first calls, growth with size, threads, memory.

Each is measured in processes of its own: python -m benchmarks.properties NAME ARGUMENT prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cell
from benchmarks.implementations import NAMES
from benchmarks.measure import ROOT, Worker, absent

SMALL = Cell("argmax", "float32", (32, 10), axes=(1,))
RUNS = 5  # of a process whose start is timed
# Of such processes: modules are kept compiled, as they are unless that variable forbids it.
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

# By name: an operator, the data type and shape of its input, its other arguments.
Calls = dict[str, tuple[str, str, tuple[int, ...], dict[str, Any]]]

# First calls, by what they compile.
FIRST: Calls = {
    "argmax rows float32": ("argmax", "float32", (32, 100), {"axis": 1}),
    "argmax columns float32": ("argmax", "float32", (32, 100), {"axis": 0}),
    "argmax columns int64": ("argmax", "int64", (32, 100), {"axis": 0}),
    "hardmax rows float16": ("hardmax", "float16", (32, 100), {"axis": 1}),
    "softmax rows float32": ("softmax", "float32", (32, 100), {"axis": 1}),
    "softmax rows float16": ("softmax", "float16", (32, 100), {"axis": 1}),
    "softmax columns float32": ("softmax", "float32", (32, 100), {"axis": 0}),
    "softmax columns float16": ("softmax", "float16", (32, 100), {"axis": 0}),
    "softmax long row float64": ("softmax", "float64", (100000,), {"axis": 0}),
    "max_pool float32": ("max_pool", "float32", (1, 1, 9, 9), {"window_size": (3, 3)}),
    "max_pool with indices float32": (
        "max_pool",
        "float32",
        (1, 1, 9, 9),
        {"window_size": (3, 3), "indices": True},
    ),
    "max_pool with indices uint64": (
        "max_pool",
        "uint64",
        (1, 1, 9, 9),
        {"window_size": (3, 3), "indices": True},
    ),
    "sum rows float32": ("onnx.reduce_sum", "float32", (32, 100), {"axes": [1]}),
    "logsumexp columns float16": ("logsumexp", "float16", (32, 100), {"axis": 0}),
    "l2_norm rows float64": ("l2_norm", "float64", (32, 100), {"axis": 1}),
    "average_pool float32": ("average_pool", "float32", (1, 1, 9, 9), {"window_size": (3, 3)}),
    "lp_pool float64": ("lp_pool", "float64", (1, 1, 9, 9), {"window_size": (3, 3)}),
    "max_pooling_grad float32": (
        "directml.max_pooling_grad",
        "float32",
        (1, 1, 9, 9),
        {"input_gradient": np.ones((1, 1, 7, 7), np.float32), "window_size": (3, 3)},
    ),
    "average_pooling_grad float16": (
        "directml.average_pooling_grad",
        "float16",
        (1, 1, 9, 9),
        {"window_size": (3, 3)},
    ),
}
# Calls whose outputs are compared in memory: rows, columns, strided, split groups, windows.
MEMORY: Calls = {
    "argmax rows": ("argmax", "float32", (4096, 4096), {"axis": 1}),
    "argmax columns": ("argmax", "float32", (4096, 4096), {"axis": 0}),
    "argmax one row": ("argmax", "float16", (1 << 24,), {"axis": 0}),
    "hardmax columns": ("hardmax", "float16", (4096, 4096), {"axis": 0}),
    "softmax rows": ("softmax", "float32", (4096, 4096), {"axis": 1}),
    "softmax columns": ("softmax", "float16", (4096, 4096), {"axis": 0}),
    "softmax one row": ("softmax", "float32", (1 << 24,), {"axis": 0}),
    "max_pool": ("max_pool", "float32", (4, 16, 512, 512), {"window_size": (3, 3)}),
    "max_pool with indices": (
        "max_pool",
        "float16",
        (4, 16, 512, 512),
        {"window_size": (13, 13), "indices": True},
    ),
    "sum rows": ("onnx.reduce_sum", "float32", (4096, 4096), {"axes": [1]}),
    "logsumexp columns": ("logsumexp", "float16", (4096, 4096), {"axis": 0}),
    "average_pool": ("average_pool", "float16", (4, 16, 512, 512), {"window_size": (3, 3)}),
}
THREADED = [
    Cell("argmax", "float32", (4096, 4096), axes=(1,)),
    Cell("argmax", "float32", (4096, 4096), axes=(0,)),
    Cell("argmax", "float32", (16777216,), axes=(0,)),
    Cell("argmax", "float32", (1048576, 16), axes=(1,)),
    Cell("hardmax", "float32", (4096, 4096), axes=(1,)),
    Cell("softmax", "float32", (4096, 4096), axes=(1,)),
    Cell("softmax", "float32", (16777216,), axes=(0,)),
    Cell("softmax", "float16", (4096, 4096), axes=(0,)),
    Cell("max_pool", "float32", (32, 64, 112, 112), window=(3, 3), strides=(2, 2), padding=(1, 1)),
]
# Calls that a program makes amid other work, large enough for a second thread.
APART: Calls = {
    "max 1.5 MB": ("max", "float32", (32, 3, 64, 64), {}),
    "max 16 MB": ("max", "float32", (4096, 1000), {"axis": 1}),
    "softmax 1.5 MB": ("softmax", "float32", (384, 1000), {"axis": 1}),
    "max_pool 3 MB": ("max_pool", "float32", (4, 64, 56, 56), {"window_size": (3, 3)}),
}
BUSY = (0, 1, 2)  # other processes meanwhile


def measure(*, full: bool) -> dict[str, Any]:
    """All of it; without `full` what is done in seconds."""
    found: dict[str, Any] = {"small_call_us": _small_calls(), "import_s": _imports()}
    if full:
        found["first_call_s"] = _first_calls()
        found["growth"] = {name: _child("growth", name) for name in ("argmax", "softmax")}
        found["two_threads"] = _two_threads()
        found["apart_us"] = {f"{busy} busy processes": _apart(busy) for busy in BUSY}
        found["extra_mib"] = {name: _child("memory", name)["mib"] for name in MEMORY}
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """As text."""
    out = ["", "A small call, argmax of 32x10 float32:"]
    out += [f"    {v:8.2f} us  {k}" for k, v in found["small_call_us"].items()]
    out += ["", "Import, median of new processes:"]
    out += [f"    {v:8.2f} s   {k}" for k, v in found["import_s"].items()]
    if "first_call_s" in found:
        out += [
            "",
            "First call: empty cache, full cache, a full one beyond a one-line njit function's:",
        ]
        one = found["first_call_s"]["a one-line njit function"]["full"]
        for name, seconds in found["first_call_s"].items():
            beyond = (seconds["full"] - one) * 1e3
            out.append(
                f"    {seconds['empty']:6.2f} s {seconds['full']:6.2f} s {beyond:6.0f} ms  {name}"
            )
        out += ["", "Growth with size, one axis of float32: bytes, microseconds, GB/s:"]
        for name, sizes in found["growth"].items():
            out += [
                f"    {name:8} {int(n):>11} {s * 1e6:12.1f} {int(n) / s / 1e9:8.2f}"
                for n, s in sizes.items()
            ]
        out += ["", "Two threads against one:"]
        out += [f"    {v:8.2f}x  {k}" for k, v in found["two_threads"].items()]
        out += ["", "Calls 2 ms apart, median (mean) in us, on one thread and on two:"]
        for name in APART:
            for busy, times in found["apart_us"].items():
                shown = [f"{t[name]['median']:7.0f} ({t[name]['mean']:7.0f})" for t in times]
                out.append(f"    {'  '.join(shown)}  {name}, {busy}")
        out += ["", "Peak memory beyond inputs and outputs, two threads:"]
        out += [f"    {v:8.2f} MiB  {k}" for k, v in found["extra_mib"].items()]
    return out


def _child(*arguments: str, **environment: str) -> Any:
    """What `python -m benchmarks.properties ..` says on its last line."""
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.properties", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**ENVIRONMENT, "NUMBA_NUM_THREADS": "2", **environment},
    )
    return json.loads(result.stdout.splitlines()[-1])


def _small_calls() -> dict[str, float]:
    found = dict(_child("small", ""))
    for name in NAMES[1:]:
        if name not in absent():
            with Worker(name, 2) as worker:
                if "unsupported" not in worker.ask(cell=SMALL.as_json()):
                    found[name] = statistics.median(worker.ask(turn=0.3)["seconds"]) * 1e6
    return found


def _imports() -> dict[str, float]:
    """Seconds of whole processes."""
    codes = {
        "numpy and numba": "import numpy, numba",
        "numpy, numba and specops": "import numpy, numba, specops",
    }
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(2 * RUNS):
        for name, code in codes.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=ENVIRONMENT)
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(some) for name, some in times.items()}


def _first_calls() -> dict[str, dict[str, float]]:
    """Seconds of the first call of a process, Numba itself being warm, as it is after any other compiled function."""
    found = {}
    for name in ("a one-line njit function", *FIRST):
        with tempfile.TemporaryDirectory() as cache:
            runs = [
                _child("first", name, NUMBA_CACHE_DIR=cache)["seconds"] for _ in range(RUNS + 1)
            ]
        found[name] = {"empty": runs[0], "full": statistics.median(runs[1:])}
    return found


def _two_threads() -> dict[str, float]:
    """The median of rounds in which one process with one thread and one with two take turns."""
    found = {}
    with Worker("specops", 1) as one, Worker("specops", 2) as two:
        for cell in THREADED:
            times: dict[Worker, list[float]] = {one: [], two: []}
            for worker in times:
                worker.ask(cell=cell.as_json())
            for _ in range(7):
                for worker, some in times.items():
                    some.extend(worker.ask(turn=0.05)["seconds"])
                    time.sleep(0.03)
            found[cell.name] = statistics.median(times[one]) / statistics.median(times[two])
    return found


def _apart(busy: int) -> list[dict[str, dict[str, float]]]:
    """What calls take beside so many other processes that never wait: on one thread, and on two."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        return [_child("apart", threads) for threads in ("1", "2")]
    finally:
        for other in others:
            other.kill()
            other.wait()


# --- in a process of its own ---


def _function(path: str) -> Callable[..., Any]:
    import specops.directml  # noqa: PLC0415 (imports are among what is measured)
    import specops.onnx  # noqa: PLC0415

    function: Callable[..., Any] = attrgetter(path)(specops)
    return function


def _call(name: str, table: Calls) -> Callable[[], Any]:
    operator, dtype, shape, settings = table[name]
    function = _function(operator)
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) % 251
    x = x.astype(dtype)
    return lambda: function(x, **settings)


def small(_name: str) -> dict[str, float]:
    """Microseconds of a call."""
    import specops  # noqa: PLC0415
    from specops import onnx  # noqa: PLC0415

    x = SMALL.input()
    out = np.empty((32, 1), np.int64)
    flat = np.empty(32, np.int64)
    compiled = onnx.ArgMax(axis=1).compile("float32", x.shape)
    calls: dict[str, Callable[[], object]] = {
        "specops, compiled operator": lambda: compiled(x, out=out),
        "specops, function": lambda: specops.argmax(x, axis=1, out=flat),
    }
    found = {}
    for name, call in calls.items():
        for _ in range(1000):
            call()
        times = []
        for _ in range(200):
            begin = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - begin) * 1e4)
        found[name] = statistics.median(times)
    return found


def first(name: str) -> dict[str, float]:
    """Seconds of the first call."""
    import numba  # noqa: PLC0415

    if name in FIRST:
        call = _call(name, FIRST)
        # Numba's own start is waited for once by any program that uses it.
        numba.njit(lambda: 0)()
    else:
        from benchmarks.one_line import one  # noqa: PLC0415

        numba.njit(lambda: 0)()
        call = one
    gc.collect()  # a collection that importing Numba made due would come now (50 ms)
    begin = time.perf_counter()
    call()
    return {"seconds": time.perf_counter() - begin}


def growth(operator: str) -> dict[str, float]:
    """Seconds of a call, by bytes of the input."""
    import specops  # noqa: PLC0415

    function = getattr(specops, operator)
    found = {}
    for exponent in range(10, 31, 2):
        x = np.random.default_rng(1).standard_normal((1 << exponent) // 4, np.float32)
        out = np.empty((), np.int64) if operator == "argmax" else np.empty_like(x)
        function(x, axis=0, out=out)
        times = []
        for _ in range(3 if exponent > 24 else 25):
            begin = time.perf_counter()
            function(x, axis=0, out=out)
            times.append(time.perf_counter() - begin)
        found[str(1 << exponent)] = statistics.median(times)
    return found


def apart(threads: str) -> dict[str, dict[str, float]]:
    """Microseconds of calls, each of which comes 2 ms after the one before."""
    import specops  # noqa: PLC0415

    specops.set_num_threads(int(threads))
    found = {}
    for name in APART:
        call = _call(name, APART)
        call()
        times = []
        for _ in range(300):
            end = time.perf_counter() + 2e-3
            while time.perf_counter() < end:
                pass
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e6)
        found[name] = {"median": statistics.median(times), "mean": statistics.fmean(times)}
    return found


def memory(name: str) -> dict[str, float]:
    """MiB beyond input and output, from Linux's peak of resident memory; not a number elsewhere."""
    operator, dtype, shape, settings = MEMORY[name]
    status, peak = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not peak.exists():
        return {"mib": float("nan")}

    def kib(key: str) -> int:
        return int(status.read_text().split(key + ":")[1].split()[0])

    function = _function(operator)
    x = np.ones(shape, dtype)
    result = function(x, **settings)  # compiles, and touches the memory of the outputs
    if not isinstance(result, np.generic):
        settings = {**settings, "out": tuple(result) if isinstance(result, tuple) else result}
        function(x, **settings)
    before = kib("VmRSS")
    peak.write_text("5")
    function(x, **settings)
    return {"mib": max(0, kib("VmHWM") - before) / 1024}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
