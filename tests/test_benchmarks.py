"""The benchmark's cells are sound, and it runs."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks import onnx_models, report
from benchmarks.cells import Cell, cells
from benchmarks.implementations import LIMIT, Unsupported
from benchmarks.implementations import numpy as peer
from benchmarks.implementations import specops as ours
from benchmarks.measure import Row, Worker, agree
from specops.onnx import backend


def small(cell: Cell) -> Cell:
    """The cell with short axes."""
    shape = tuple(min(n, 17 - 2 * d) for d, n in enumerate(cell.shape))
    return Cell.of({**cell.as_json(), "shape": shape})


def test_cells() -> None:
    """Each cell has a name of its own, and all that it asks of an implementation can be computed."""
    all_of_them = list(cells())
    assert len({c.name for c in all_of_them}) == len(all_of_them) >= 320
    assert {c.dtype for c in all_of_them} == {"float64", "float32", "float16", "uint8", "int64"}
    assert 5 < sum(c.quick for c in all_of_them) < len(all_of_them) / 4


def test_numpy_computes_the_same() -> None:
    """What is compared in time is the same in value."""
    some = [small(c) for c in cells() if c.dtype in {"float32", "uint8"}]
    for cell in {c.name: c for c in some}.values():
        x = cell.input()
        results = [module.prepare(cell, x, 1)() for module in (ours, peer)]
        for a, b in zip(*results, strict=True):
            assert a.shape == b.shape, cell
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-5, err_msg=cell.name)


def test_onnx_models_compute_the_same() -> None:
    """By onnx's own evaluator, but where it is wrong: of indices of long windows, of max unpooling to given sizes."""
    wide = [c for c in cells() if c.dtype == "float32"]
    some = {(c.operator, c.view, len(c.axes), len(c.window)): small(c) for c in wide}
    for cell in some.values():
        x = cell.input()
        given = onnx_models.inputs(cell, x)
        if cell.operator.endswith("_grad"):
            with pytest.raises(Unsupported, match="no gradients"):
                onnx_models.model(cell, x, given)
            continue
        model = onnx_models.model(cell, x, given)
        if cell.operator in ("max_pool_with_indices", "max_unpool"):
            results = backend.run_model(model, given)
        else:
            results = ReferenceEvaluator(model).run(None, given)
        for a, b in zip(results, peer.prepare(cell, x, 1)(), strict=True):
            assert a.shape == b.shape, cell
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5, err_msg=cell.name)


def test_workers_and_report() -> None:
    """A process answers what it is asked; the summary names what misses its aim."""
    cell = Cell("argmax", "float32", (64, 100), axes=(1,))
    row = Row(cell)
    for name in ("specops", "numpy", LIMIT):
        with Worker(name, 1) as worker:
            assert worker.ask(cell=cell.as_json())["seconds"] > 0
            row.seconds[name] = min(worker.ask(turn=0.01)["seconds"])
    assert row.best_peer == "numpy"
    assert cell.name in report.line(row)
    row.seconds = {"specops": 2e-3, "numpy": 1e-3, "torch": 3e-3, LIMIT: 1e-3}
    assert row.ratio == row.share == 0.5
    assert any("0.50" in line and cell.name in line for line in report.summary([row]))


def test_which_results_differ() -> None:
    """A result that is no number is none of a peer's numbers."""
    nan, inf = float("nan"), float("inf")
    for one, other in ((nan, nan), (inf, inf), (1000.0, 1001.0), (0.0, 1e-3)):
        assert agree(one, other) and agree(other, one)
    for one, other in ((nan, 1.0), (nan, inf), (inf, 1.0), (inf, -inf), (1000.0, 1003.0)):
        assert not agree(one, other) and not agree(other, one)


def test_a_worker_ends_though_a_process_that_it_began_lives() -> None:
    """That holds the pipes which the worker wrote to, for as long as it sleeps."""
    begins = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])"
    with Worker("numpy", 1) as worker:
        worker._process.kill()
        worker._process.communicate()
        worker._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"{begins}; print(flush=True); input()",
                "import time; time.sleep(30)",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert worker._process.stdout
        worker._process.stdout.readline()
        left = time.perf_counter()
    assert time.perf_counter() - left < 20


def test_a_worker_that_died_is_told() -> None:
    with pytest.raises((RuntimeError, BrokenPipeError)) as caught, Worker("numpy", 1) as worker:
        worker._process.kill()
        worker._process.wait()
        worker.ask(cell=Cell("argmax", "float32", (64, 100), axes=(1,)).as_json())
    assert caught.value.__context__ is None


def test_moved_bytes() -> None:
    """The limit counts what must be read and written, once."""
    assert Cell("argmax", "uint8", (6, 10), axes=(1,)).moved_bytes() == (60, 6 * 8)
    assert Cell("softmax", "float16", (6, 10), axes=(1,)).moved_bytes() == (120, 120)
    pool = Cell(
        "max_pool_with_indices",
        "float32",
        (1, 2, 8, 8),
        window=(2, 2),
        strides=(2, 2),
        padding=(0, 0),
    )
    assert pool.moved_bytes() == (512, 2 * 16 * (4 + 8))
    rows = Cell("argmax", "float32", (8, 10), view="every_second_row", axes=(1,))
    assert rows.moved_bytes() == (4 * 10 * 4, 4 * 8)
