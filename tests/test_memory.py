"""No copy of an input or output is made, in whatever layout: calls on 8 MiB take hardly any memory."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from draw import MEBI, PACKED, Call, check_resident_memory, check_traced_memory

import specops
from specops import directml as dml

# Each has `memory_calls()`: calls of a kernel on arrays of each layout.
MODULES = ["arg_reduce", "hardmax", "max_pool", "pool_grads", "reduce", "softmax", "sum_pool"]
LIMIT = 2 * MEBI  # for two threads, 1 MiB for each


@pytest.mark.parametrize("module", MODULES)
def test_no_copy_is_made(module: str) -> None:
    """Of the memory that NumPy and Python take."""
    with specops.num_threads(2):
        check_traced_memory(importlib.import_module(f"test_{module}").memory_calls(), LIMIT)


@pytest.mark.parametrize("module", MODULES)
def test_compiled_code_makes_no_copy(module: str) -> None:
    """Of what compiled code allocates by itself."""
    check_resident_memory(f"test_{module}", LIMIT)


ALLOCATED = """
import ctypes
import sys

import llvmlite.binding as llvm
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python, rtsys

rtsys.initialize(cpu_target.target_context)
allocating = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
freeing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
allocate = allocating(_nrt_python.c_helpers["Allocate"])
free = freeing(_nrt_python.c_helpers["Free"])
held, most = {}, 0

@allocating
def noted(size):
    global most
    address = allocate(size)
    held[address] = size
    most = max(most, sum(held.values()))
    return address

@freeing
def freed(address):
    del held[address]
    free(address)

# Code is linked with these from here on.
llvm.add_symbol("NRT_Allocate", ctypes.cast(noted, ctypes.c_void_p).value)
llvm.add_symbol("NRT_Free", ctypes.cast(freed, ctypes.c_void_p).value)

sys.path.insert(0, sys.argv[1])
import specops
import test_memory

with specops.num_threads(1):
    for label, call in test_memory.scratch_calls():
        most = 0
        call()
        assert most < int(sys.argv[2]), f"{label}: {most} bytes"
        assert not held, label
print("done")
"""


def channels_last(shape: tuple[int, ...]) -> np.ndarray:
    return np.moveaxis(np.ones((shape[0], *shape[2:], shape[1]), np.float32), -1, 1)


def scratch_calls() -> Iterator[Call]:
    """Calls whose lines, tables, tiles, blocks of sums or buffers would be large if they were not limited."""
    for x, window in (
        (np.ones((1, 1, 1, 64_000), np.float32), 60_000),
        (np.ones((1, 1, 1, 64_000), np.float32), 4000),
        (channels_last((1, 8000, 1, 40)), 20),
    ):
        sizes, strides = [1, window], [1, max(1, window // 60)]
        gradient = specops.average_pool(x, sizes, strides)
        text = f"{window} of {x.shape}"
        yield f"average, {text}", partial(specops.average_pool, x, sizes, strides)
        yield f"max, {text}", partial(specops.max_pool, x, sizes, strides)
        yield f"max and indices, {text}", partial(specops.max_pool, x, sizes, strides, indices=True)
        yield (
            f"average's gradient, {text}",
            partial(dml.average_pooling_grad, gradient, sizes, strides),
        )
    x = np.ones((1, 1, 1, 64_000), np.float32)
    yield "dilated", partial(specops.max_pool, x, [1, 3], dilations=[1, 30_000], indices=True)
    tall = np.ones((2, 100_000, 3), np.float32)
    yield "tall planes", partial(specops.average_pool, tall, [1, 3], start_padding=[0, 1])
    for x in (np.ones((1, 300, 30, 30), np.float32), channels_last((32, 256, 8, 8))):
        gradient = np.ones((*x.shape[:2], 1, 1), np.float32)
        yield f"max's gradient, {x.shape}", partial(dml.max_pooling_grad, x, gradient, x.shape[2:])
    x = channels_last((1, 256, 40, 40))
    yield "max's gradient, channels last", partial(dml.max_pooling_grad, x, x[..., 1:, 1:], [2, 2])
    for x, axis in (
        (np.ones((9, 300_000), np.float32), 1),
        (np.ones((9, 600_000), np.float16), 1),
        (np.ones((11, 300_000), np.float32), 0),
        (np.ones((70_000, 17), np.float32)[:, :16], 0),
        (np.ones((70_000, 8, 2), np.float32), (0, 2)),
        (np.ones((9, 30_000, 3), np.float32)[..., :2], (1, 2)),
        (np.ones((2, 1000, 400, 2), np.float32), (0, 2)),
    ):
        for function in (specops.softmax, specops.log_softmax, specops.sum, specops.hardmax):
            yield f"{function.__name__}, {x.dtype} {x.shape}", partial(function, x, axis)


def test_scratch_memory_of_a_thread() -> None:
    """All that compiled code allocates is less than 1 MiB for a thread, however long windows are."""
    command = [sys.executable, "-c", ALLOCATED, str(Path(__file__).parent), str(MEBI)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr


GUARDED = """
import ctypes
import mmap
import sys

import llvmlite.binding as llvm
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

rtsys.initialize(cpu_target.target_context)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
held, free = {}, {}

@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
def allocate(size):
    # The last page may not be touched, and what is allocated ends before it, but for what aligns it.
    pages = -(-size // mmap.PAGESIZE) + 1
    blocks = free.setdefault(pages, [])
    if not blocks:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        first = libc.mmap(None, pages * mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        assert libc.mprotect(first + (pages - 1) * mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
        blocks.append(first)
    block = blocks.pop()
    address = block + (pages - 1) * mmap.PAGESIZE - size & -8
    held[address] = blocks, block
    return address

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def release(address):
    blocks, block = held.pop(address)
    blocks.append(block)

# Code is linked with these from here on.
llvm.add_symbol("NRT_Allocate", ctypes.cast(allocate, ctypes.c_void_p).value)
llvm.add_symbol("NRT_Free", ctypes.cast(release, ctypes.c_void_p).value)

sys.path.insert(0, sys.argv[1])
import test_memory

test_memory.small_calls()
print("done")
"""


def small_calls() -> None:
    """Random cases, and small planes that are packed."""
    for module in ("max_pool", "sum_pool", "pool_grads", "softmax", "arg_reduce", "hardmax"):
        for number in range(30):
            importlib.import_module(f"test_{module}").check_case("FLOAT32", number)
    for shape, (window, strides, dilations, padding, outputs) in PACKED:
        x = np.ones(shape, np.float32)
        ends = [
            max(0, (n - 1) * stride + (w - 1) * dilation + 1 - size - before)
            for n, stride, w, dilation, size, before in zip(
                outputs, strides, window, dilations, shape[-len(window) :], padding, strict=True
            )
        ]
        for function in (specops.max_pool, specops.average_pool):
            result = function(x, window, strides, padding, ends, dilations)
            assert result.shape[-len(window) :] == outputs


def test_scratch_memory_before_a_forbidden_page() -> None:
    """Nothing beyond what was allocated is read or written (seen on Linux only)."""
    if sys.platform != "linux":
        return
    command = [sys.executable, "-X", "faulthandler", "-c", GUARDED, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr
