"""Runs every page example through the generated kernels, then argmax on a large tensor beside NumPy's.

python examples/tour.py
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import specops
from specops import directml as dml
from specops.vocabulary import DATA_TYPES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "generated" / "tests"))


def examples() -> list[tuple[str, ...]]:
    """One row for each example: operator, example, arguments, what it gives, whether that is right."""
    from cases import TABLES  # noqa: PLC0415  (found on the path that is set above)

    rows: list[tuple[str, ...]] = []
    for table in TABLES:
        package = "specops" if table.DIALECT == "plain" else f"specops.{table.DIALECT}"
        function: Any = getattr(importlib.import_module(package), table.FUNCTION)
        fields = importlib.import_module(f"specops.{table.DIALECT}.{table.MODULE}").OPERATOR.fields
        given = [f.name for f in fields if f.kind == "input" and f.type == "tensor"]
        expected = [f.name for f in fields if f.kind == "output"]
        version = {} if table.VERSION is None else {"opset": table.VERSION}
        for example in table.EXAMPLES:
            tensors = [example["tensors"][name] for name in given]
            inputs = [np.array(data, DATA_TYPES[dtype].numpy) for dtype, data in tensors]
            result = function(*inputs, **example["arguments"], **version)
            results = result if isinstance(result, tuple) else (result,)
            wanted = [
                example["tensors"][name][1] for name in expected if name in example["tensors"]
            ]
            right = len(results) == len(wanted) and all(map(same, results, wanted))
            arguments = ", ".join(f"{k}={v}" for k, v in example["arguments"].items())
            shown = ", ".join(str(rounded(r).tolist()) for r in results)
            name = f"{table.DIALECT}.{table.MODULE}"
            rows.append((name, example["id"], arguments, shown, "ok" if right else "WRONG"))
    return rows


def rounded(result: np.ndarray) -> np.ndarray:
    """To be read: integers as they are, floats with four digits."""
    return result if result.dtype.kind in "iub" else result.astype(np.float64).round(4)


finfo: Any = ml_dtypes.finfo  # it has no types


def same(result: np.ndarray, wanted: Any) -> bool:
    """Equal but for the rounding of the data type."""
    exact = np.array(wanted, np.float64)
    unit = 0.0 if result.dtype.kind in "iub" else float(finfo(result.dtype).eps)
    return bool(
        result.shape == exact.shape
        and np.allclose(result.astype(np.float64), exact, rtol=unit, atol=unit, equal_nan=True)
    )


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Aligned columns."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )


def milliseconds(call: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The medians of two calls, timed in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(15):
        for function, found in zip((call, other), times, strict=True):
            start = time.perf_counter()
            function()
            found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[0]), statistics.median(times[1])


def numpy_argmax(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    """Over one axis as it is, over several after they are moved behind the others and joined."""
    if len(axes) == 1:
        return x.argmax(axes[0])
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    return moved.reshape(*moved.shape[: -len(axes)], -1).argmax(-1)


def beside_numpy() -> list[tuple[str, ...]]:
    """argmax of a batch of feature maps, 64 x 256 x 28 x 28, over different axes."""
    rows: list[tuple[str, ...]] = []
    for dtype in (np.float32, np.float16, np.uint8):
        x = (np.random.default_rng(0).random((64, 256, 28, 28)) * 200).astype(dtype)
        for axes in ((3,), (1,), (0, 2, 3)):
            assert np.array_equal(specops.argmax(x, axes), numpy_argmax(x, axes))

            ours, theirs = milliseconds(
                partial(specops.argmax, x, axes), partial(numpy_argmax, x, axes)
            )
            row = (
                x.dtype.name,
                str(axes),
                f"{ours:.2f} ms",
                f"{theirs:.2f} ms",
                f"{theirs / ours:.1f}x",
            )
            rows.append(row)
    return rows


def main() -> int:
    rows = examples()
    wrong = sum(row[-1] != "ok" for row in rows)
    counts = Counter(row[0] for row in rows)
    good = Counter(row[0] for row in rows if row[-1] == "ok")
    summary = [(name, f"{good[name]} of {n}") for name, n in counts.items()]
    print(table(("operator", "examples as expected"), summary))
    if wrong:
        print(
            "\n"
            + table(
                ("operator", "example", "arguments", "result", ""),
                [r for r in rows if r[-1] != "ok"],
            )
        )
    print(f"\n{len(rows) - wrong} of {len(rows)} examples as expected")
    x = np.array([3, 2, 1, 2, 3], np.float32)
    print(f"\nThe page's tie: dml.argmax({x.tolist()}) = {dml.argmax(x)[0]}", end=", ")
    print(f"with axis_direction DECREASING = {dml.argmax(x, axis_direction='DECREASING')[0]}")
    print(
        "\nspecops.argmax of a tensor of shape (64, 256, 28, 28), beside numpy (medians, in turn):\n"
    )
    print(table(("dtype", "axes", "specops", "numpy", "ratio"), beside_numpy()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
