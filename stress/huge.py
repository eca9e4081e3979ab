"""Tensors of more than 2^31 elements, and strides beyond 2^31 bytes, within 7 GiB: right, or refused beforehand.

Zeros that are only read take no memory on most systems, so the true need is mostly that of the outputs.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
import traceback
from collections.abc import Callable

import numpy as np

import specops
from specops import ValidationError
from specops import directml as dml
from specops import onnx as ox
from specops.directml import ArgmaxOperatorDesc, TensorDesc

GIB = 1 << 30
LONG = 2**31 + 5
as_strided = np.lib.stride_tricks.as_strided


def marked(shape: tuple[int, ...], dtype: type, *places: tuple[int, ...]) -> np.ndarray:
    """Zeros with ones."""
    x: np.ndarray = np.zeros(shape, dtype)
    for place in places:
        x[place] = 1
    return x


def equal(found: object, wanted: object) -> None:
    assert np.array_equal(np.asarray(found), np.asarray(wanted)), f"found {found}, not {wanted}"


def refused(call: Callable[[], object], *ids: str) -> None:
    try:
        call()
    except ValidationError as error:
        found = {v.id for v in error.violations}
        assert found == set(ids), found
    else:
        raise AssertionError("not refused")


# --- argmax ---


def one_row() -> None:
    """uint8 [2^31 + 5]: the index needs more than 31 bits, both directions, both outputs."""
    x = marked((LONG,), np.uint8, (LONG - 2,), (LONG - 1,))
    equal(specops.argmax(x), LONG - 2)
    equal(specops.argmax(x, last=True), LONG - 1)
    equal(specops.argmax(x[::-1], last=True), 1)
    equal(specops.argmin(x, last=True), LONG - 3)
    equal(dml.argmax(x, 0, "INCREASING", "UINT32"), [LONG - 2])
    equal(dml.argmax(x, 0, "DECREASING", "INT64"), [LONG - 1])
    equal(ox.argmax(x), [LONG - 2])
    with specops.num_threads(1):
        equal(specops.argmax(x), LONG - 2)


def not_in_32_bits() -> None:
    """An index that its type cannot hold is refused beforehand, at once."""
    x = np.broadcast_to(np.zeros((), np.uint8), (LONG,))
    start = time.monotonic()
    refused(lambda: dml.argmax(x, 0, "INCREASING", "INT32"), "index_fits")
    fits = np.broadcast_to(np.zeros((), np.uint8), (2**31,))
    equal(dml.argmax(fits, 0, "DECREASING", "INT32"), [2**31 - 1])
    refused(lambda: dml.argmax(np.broadcast_to(np.uint8(0), (2**32,))), "element_count")
    whole = np.broadcast_to(np.uint8(0), (2**32 - 1,))
    equal(dml.argmax(whole, 0, "DECREASING", "UINT32"), [2**32 - 2])
    for sizes, ids in (([2**16, 2**16], ["element_count"]), ([2**16, 2**16 - 1], [])):
        description = ArgmaxOperatorDesc(
            InputTensor=TensorDesc("FLOAT32", sizes, Strides=[0, 0]),
            OutputTensor=TensorDesc("UINT32", [1, 1]),
            Axes=[0, 1],
            AxisDirection="INCREASING",
        )
        if ids:
            refused(description.validate, *ids)
        else:
            description.validate()
    assert time.monotonic() - start < 10, "a refusal takes long"


def broadcast() -> None:
    """float32 of 2^32 and of 2^60 elements, by strides of 0: only what differs is looked at."""
    row = marked((2**16,), np.float32, (77,))
    x = np.broadcast_to(row, (2**16, 2**16))
    equal(specops.argmax(x), 77)
    equal(specops.argmax(x, last=True), (2**16 - 1) * 2**16 + 77)
    y = np.broadcast_to(row[:, None], (2**16, 2**16))
    equal(specops.argmax(y, last=True), 78 * 2**16 - 1)
    equal(specops.argmax(y, 0), np.full(2**16, 77))
    z = np.broadcast_to(row[:4], (2**20, 2**20, 2**18, 4))
    equal(specops.argmax(z, last=True), math.prod(z.shape) - 1)
    assert specops.argmax(np.broadcast_to(np.float32(1), (2**60,)), last=True) == 2**60 - 1


def far_apart() -> None:
    """Strides of more than 2^31 and 2^32 bytes, forwards and backwards, on both sides."""
    memory = np.zeros(6 * GIB, np.uint8)
    for step in (2**31 + 7, 2**32 + 9):
        x = as_strided(memory[1000:], (2, 3), (step, 5))
        x[1, 2], x[0, 1] = 9, 8
        equal(specops.argmax(x), 5)
        equal(specops.argmax(x, 0), [0, 0, 1])
        equal(specops.argmax(x, 1), [1, 2])
        equal(specops.argmax(x[::-1, ::-1], 1), [0, 1])
        x[...] = 0
    out = as_strided(memory[:8].view(np.int64), (2,), (2**32 + 8,))
    specops.argmax(marked((2, 9), np.uint8, (0, 3), (1, 8)), 1, out=out)
    equal(out, [3, 8])
    values = as_strided(memory[:4].view(np.float32), (2, 2), (2**32 + 8, 4))
    specops.softmax(np.zeros((2, 2), np.float32), 1, out=values)
    equal(values, np.full((2, 2), 0.5))
    specops.hardmax(np.zeros((2, 2), np.float32), 0, out=values)
    equal(values, [[1, 1], [0, 0]])
    specops.max_pool(np.ones((2, 3), np.float32), [1, 2], out=values)
    equal(values, np.ones((2, 2)))


def kept() -> None:
    """2^29 + 3 groups of two elements: 4 GiB of indices."""
    out = np.empty(2**29 + 3, np.int64)
    x = np.zeros((2, 2**29 + 3), np.uint8)
    x[1, -1] = 1
    specops.argmax(x, 0, out=out)
    assert out[-1] == 1 and not out[:-1].any()


def columns() -> None:
    """uint8 [46349, 46349]: each axis, from both ends."""
    n = 46349
    x = marked((n, n), np.uint8, (n - 1, 3), (5, n - 1), (n - 1, n - 1))
    equal(specops.argmax(x, last=True), n * n - 1)
    first = specops.argmax(x, 0)
    assert first[3] == n - 1 and first[-1] == 5 and first.sum() == n + 4
    second = specops.argmax(x, 1, last=True)
    assert second[5] == second[-1] == n - 1 and (second[6:-1] == n - 1).all()
    equal(specops.argmax(x.T, last=True), n * n - 1)


# --- hardmax and softmax ---


def hardmax() -> None:
    """float16 [2^31 + 5] from one value: a one, and more than 2^31 zeros."""
    x = np.broadcast_to(np.float16(1), (LONG,))
    out = np.empty(LONG, np.float16)
    specops.hardmax(x, out=out)
    assert out[0] == 1 and not out[1:].any()
    row = marked((1,), np.float16)
    out.fill(3)
    specops.hardmax(np.broadcast_to(row, (LONG, 1)), 1, out=out[:, None])
    assert (out == 1).all()


def softmax() -> None:
    """float16 [2^31 + 5] of one value: the sum counts every element."""
    x = np.broadcast_to(np.float16(2), (LONG,))
    out = np.empty(LONG, np.float16)
    specops.log_softmax(x, out=out)
    wanted = np.float16(-math.log(LONG))
    assert (out == wanted).all(), (out[0], out[-1], wanted)
    specops.softmax(np.broadcast_to(np.float16(2), (LONG, 1)), 1, out=out[:, None])
    assert (out == 1).all()


# --- max pooling ---


def pooling() -> None:
    """uint8 of more than 2^31 elements, windows apart: indices beyond 2^31 in 32 and 64 bits."""
    n = 46352
    x = marked((1, 1, n, n), np.uint8, (0, 0, n - 1, n - 2), (0, 0, 7, 9))
    windows = [2, 2], [n - 2, n - 2]
    for index_type in ("UINT32", "UINT64"):
        values, indices = dml.max_pooling1(x, *windows, indices=True, indices_dtype=index_type)
        equal(values, [[[[0, 0], [0, 1]]]])
        equal(indices, [[[[0, n - 2], [(n - 2) * n, n * n - 2]]]])
    values, indices = specops.max_pool(x, [n, n], indices=True)
    equal(indices.ravel(), [7 * n + 9])
    batches = marked((3, 1, 2**30, 1), np.uint8, (2, 0, 2**30 - 1, 0))
    values, indices = ox.max_pool(batches, [2, 1], strides=[2**30 - 2, 1], indices=True)
    equal(values.ravel(), [0, 0, 0, 0, 0, 1])
    equal(indices.ravel(), [0, 2**30 - 2, 2**30, 2**31 - 2, 2**31, 3 * 2**30 - 1])
    column = ox.max_pool(x, *windows[:1], strides=windows[1], indices=True, storage_order=1)[1]
    equal(column, [[[[0, (n - 2) * n], [n - 2, (n - 2) * n + n - 1]]]])


def pooling_of_a_line() -> None:
    """uint8 [2^31 + 5] with small windows everywhere: as many outputs, their indices in 32 bits."""
    x = np.zeros((1, 1, LONG), np.uint8)
    x[0, 0, -1] = 1
    out = np.empty((1, 1, LONG - 1), np.uint8)
    dml.max_pooling1(x, [2], out=out)
    assert out[0, 0, -1] == 1 and not out[0, 0, :-1].any()
    del out
    values, indices = dml.max_pooling1(x, [5], [4], indices=True)
    count = (LONG - 5) // 4 + 1
    assert values.size == count and values.ravel()[-1] == x[0, 0, 4 * (count - 1) :][:5].max()
    assert (indices.ravel()[:-1] == np.arange(0, 4 * (count - 1), 4, dtype=np.uint32)).all()


# --- reductions, averages, unpooling and gradients ---


def reductions() -> None:
    """More than 2^31 elements of uint8, and of one repeated value: every one counts, in rows and in columns."""
    equal(ox.reduce_max(marked((LONG,), np.uint8, (LONG - 1,)), [0]), [1])
    n = 46349
    x = marked((n, n), np.uint8, (n - 1, 3), (5, n - 1))
    for axis in (0, 1):
        found = ox.reduce_max(x, [axis], keepdims=False)
        assert found[[3, n - 1] if axis == 0 else [5, n - 1]].all() and found.sum() == 2
    equal(ox.reduce_sum(np.broadcast_to(np.uint64(3), (LONG,)), [0]), [3 * LONG])
    ones = np.broadcast_to(np.float32(1), (2, LONG))
    equal(specops.l2_norm(ones, 1), np.full(2, np.float32(math.sqrt(LONG))))
    equal(ox.reduce_mean(np.broadcast_to(np.float16(3), (LONG, 2)), [0]), [[3, 3]])


def averages() -> None:
    """float16 [2^31 + 5] with small windows everywhere, and apart."""
    x = np.broadcast_to(np.float16(3), (1, 1, LONG))
    out = np.empty((1, 1, LONG - 1), np.float16)
    specops.average_pool(x, [2], out=out)
    assert (out == 3).all()
    del out
    x = np.zeros((1, 1, LONG), np.float16)
    x[..., -2] = 10
    found = specops.average_pool(x, [5], [4])
    first = 4 * (found.size - 1)
    assert found[0, 0, -1] == (2 if first + 5 >= LONG - 1 else 0) and not found[0, 0, :-1].any()


def unpooling() -> None:
    """float16 [2^31 + 5] from two elements: at their indices, and as gradients of windows that far apart."""
    out = np.empty((1, 1, 1, LONG), np.float16)
    two = np.array([[[[2, 6]]]], np.float16)
    indices = np.array([[[[LONG - 1, 7]]]])
    specops.max_unpool(two, indices, out.shape, out=out)
    assert out[0, 0, 0, LONG - 1] == 2 and out[0, 0, 0, 7] == 6 and np.count_nonzero(out) == 2
    apart = [1, 2], [1, LONG - 2]
    dml.average_pooling_grad(two, *apart, output_sizes=out.shape, out=out)
    equal(out[0, 0, 0, [0, 1, LONG - 2, LONG - 1]], [1, 1, 3, 3])
    assert np.count_nonzero(out) == 4
    x = np.broadcast_to(np.float16(1), out.shape)
    dml.max_pooling_grad(x, two, *apart, out=out)
    equal(out[0, 0, 0, [0, LONG - 2]], [2, 6])
    assert np.count_nonzero(out) == 2


SCENARIOS: dict[str, tuple[Callable[[], None], float]] = {  # each with the GiB that it needs
    "one_row": (one_row, 2.1),
    "not_in_32_bits": (not_in_32_bits, 0.1),
    "broadcast": (broadcast, 0.1),
    "far_apart": (far_apart, 6.1),
    "kept": (kept, 5.1),
    "columns": (columns, 2.1),
    "hardmax": (hardmax, 6.1),
    "softmax": (softmax, 6.1),
    "pooling": (pooling, 5.2),
    "pooling_of_a_line": (pooling_of_a_line, 7.0),
    "reductions": (reductions, 2.1),
    "averages": (averages, 6.4),
    "unpooling": (unpooling, 6.4),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", choices=list(SCENARIOS), help="one scenario; all by default")


def run(options: argparse.Namespace) -> int:
    chosen = [options.scenario] if options.scenario else list(SCENARIOS)
    most = max(SCENARIOS[name][1] for name in chosen)
    print(f"this takes up to {most:g} GiB of memory at a time", flush=True)
    findings = 0
    for name in chosen:
        scenario, need = SCENARIOS[name]
        start = time.monotonic()
        try:
            scenario()
        except Exception:
            findings += 1
            print(f"finding: {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"{name}: right ({need:g} GiB, {time.monotonic() - start:.0f} s)", flush=True)
        gc.collect()
    print(f"huge: {len(chosen)} scenarios, {findings} findings")
    return findings
