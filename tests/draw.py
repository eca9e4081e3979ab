"""Values, layouts and poisoned buffers, drawn from a random generator: what the contract tests of all kernels share."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specops import launch
from specops.kernels import chunks
from specops.lowering import planes
from specops.vocabulary import DATA_TYPES

POISON = 0xA5
GUARD = 64  # bytes on each side of a tensor
EDGES = [15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513]
WIDE_EDGES = [*EDGES, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097]
FLOATS = {"FLOAT16": (5, 10), "BFLOAT16": (8, 7), "FLOAT32": (8, 23), "FLOAT64": (11, 52)}
Random = np.random.Generator


def numpy_type(name: str) -> np.dtype:
    return DATA_TYPES[name].numpy


def last_item_first(patch: pytest.MonkeyPatch) -> None:
    """Kernels run item by item, the last one first: what an item does to another's part of the output is seen."""

    def run(self: launch.Chunk, *arguments: int) -> None:
        *addresses, items, _large = arguments
        for item in reversed(range(items)):
            chunks.serial(self.address(), *addresses, item, item + 1)

    patch.setattr(launch.Chunk, "run", run)


# --- values ---


def special_bits(name: str) -> list[int]:
    """Bit patterns where orders go wrong."""
    width = numpy_type(name).itemsize * 8
    if name == "BOOL":
        return [0, 1]
    if name in FLOATS:
        exponent, mantissa = FLOATS[name]
        inf, sign, quiet = ((1 << exponent) - 1) << mantissa, 1 << (width - 1), 1 << (mantissa - 1)
        magnitudes = [
            0,  # zero
            1,  # the least subnormal
            (1 << mantissa) - 1,  # the greatest subnormal
            1 << mantissa,  # the least normal
            ((1 << (exponent - 1)) - 1) << mantissa,  # one
            inf - 1,  # the greatest number
            inf,
            inf + 1,  # NaN: signalling, quiet, with a payload, all bits
            inf + quiet,
            inf + quiet + 5,
            sign - 1,
        ]
        return [m | s for m in magnitudes for s in (0, sign)]
    top = 1 << (width - 1)
    beyond = [2**53, 2**53 + 1] if width == 64 else []
    return [0, 1, 2, top - 2, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1, *beyond]


def values(random: Random, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random values of a type: all bit patterns, special ones, or a few, so that ties are frequent."""
    item = numpy_type(name).itemsize
    unsigned = np.dtype(f"u{item}")
    special = np.array(special_bits(name), unsigned)
    flavour = random.integers(4)
    if flavour == 0 and name != "BOOL":
        bits = random.integers(0, 256, (*shape, item), np.uint8).view(unsigned).reshape(shape)
    else:
        count = (len(special), 3, 2, 1)[flavour]
        bits = random.choice(random.permutation(special)[:count], shape)
    if random.random() < 0.1 and bits.size:  # one element stands out
        bits = np.full(shape, special[0])
        bits.flat[random.integers(bits.size)] = special[-1]
    return np.ascontiguousarray(bits, unsigned).view(numpy_type(name)).reshape(shape)


# --- layouts ---


@dataclass(frozen=True)
class Layout:
    """Where elements stand: byte strides, and the offset of element [0, 0, ..] in a buffer of so many bytes."""

    strides: tuple[int, ...]
    offset: int
    bytes: int

    def view(self, buffer: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.ndarray(shape, dtype, buffer, self.offset, self.strides)


LAYOUTS = [
    "c",
    "fortran",
    "permuted",
    "cropped",
    "sliced",
    "negative",
    "misaligned",
    "field",
    "any",
]
INPUT_LAYOUTS = [*LAYOUTS, "broadcast"]


def layout(random: Random, kind: str, shape: tuple[int, ...], item: int) -> Layout:
    """A random layout of a kind; "broadcast" has strides of 0, the others keep elements apart.

    "cropped" has a gap along one axis, "sliced" along several. "misaligned" ones begin an odd number of bytes away; the
    rows of some lie an odd number apart, as those of packed records.
    """
    rank = len(shape)
    uneven = kind == "misaligned" and sum(shape) % 2
    mixed = kind in ("any", "broadcast")
    cropped = int(random.integers(max(rank, 1))) if kind == "cropped" else -1
    order = list(range(rank))[::-1]
    if kind == "fortran":
        order = order[::-1]
    elif kind == "permuted" or mixed:
        order = [int(d) for d in random.permutation(rank)]
    step = item
    if kind == "field" or (mixed and random.random() < 0.3):
        step = item + int(random.integers(1, 2 * item + 1))
    offset = GUARD
    if kind == "misaligned" or (mixed and random.random() < 0.3):
        offset += 1
    strides = [0] * rank
    for d in order:
        if kind == "broadcast" and random.random() < 0.5:
            continue
        gap = int(random.integers(1, 4)) if kind == "sliced" or mixed else 1 + (d == cropped)
        strides[d] = step * gap
        step = strides[d] * max(shape[d], 1) + uneven
        if kind == "negative" or (mixed and random.random() < 0.3):
            offset += (max(shape[d], 1) - 1) * strides[d]
            strides[d] = -strides[d]
    return Layout(tuple(strides), offset, 2 * GUARD + 1 + step + 2 * item)


def laid_out(random: Random, x: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The values in a layout, with poison around and between them; and the buffer that they stand in.

    With "broadcast" the values along an axis of stride 0 become those of its last index.
    """
    place = layout(random, kind, x.shape, x.dtype.itemsize)
    buffer = np.full(place.bytes, POISON, np.uint8)
    view = place.view(buffer, x.shape, np.dtype(f"u{x.dtype.itemsize}"))
    view[...] = x.view(view.dtype)
    return view.view(x.dtype), buffer


@contextmanager
def case(text: str, *inputs: np.ndarray) -> Iterator[None]:
    """What fails within is told with `text`, which says how to repeat it; so is a change of the inputs' buffers."""
    before = [buffer.copy() for buffer in inputs]
    try:
        yield
        for buffer, old in zip(inputs, before, strict=True):
            assert np.array_equal(buffer, old), "an input was changed"
    except Exception as error:
        raise AssertionError(f"{text}: {error}") from error


PLANES = [  # small ones: how many, their rows, and columns around a vector's
    (3, 2, 4),
    (70, 3, 12),
    (4, 7, 16),
    (2, 9, 5),
    (3, 33, 17),
    (2, 64, 31),
    (5, 6, 64),
    (3, 12, 65),
    (2, 250, 16),
]
LONG_PLANES = [  # of few rows, that are cut as of 256 bytes: the last piece whole, or of fewer columns
    (3, 2, 512),
    (1, 10, 513),
    (2, 3, 300),
    (2, 4, 197),
    (1, 3, 70),
    (2, 1, 300),  # of groups of one element
]


# Planes that are packed for every type, with their windows, strides, dilations, padding and outputs: of one item and of
# several, the last of fewer planes; padding that is shared, longer than a window, none; windows with nothing else; more
# rows of padding than windows begin in; fewer elements in rows where none begins than a vector has lanes.
PACKED = [
    ((700, 5, 5), ((3, 3), (1, 1), (1, 1), (1, 1), (5, 5))),
    ((3, 67, 4, 4), ((2, 2), (2, 2), (1, 1), (0, 0), (2, 2))),
    ((90, 7, 3), ((3, 2), (1, 2), (2, 1), (2, 1), (7, 2))),
    ((130, 2, 2), ((3, 3), (1, 1), (1, 1), (2, 3), (4, 5))),
    ((70, 2, 2), ((2, 1), (1, 1), (1, 1), (3, 2), (8, 6))),
    ((41, 6), ((3,), (2,), (1,), (1,), (3,))),
    ((2, 11, 3), ((3,), (1,), (2,), (4,), (4,))),
    ((35, 3, 1), ((2, 1), (1, 1), (1, 1), (0, 0), (3, 2))),
    ((1, 9, 2), ((9, 2), (1, 1), (1, 1), (8, 1), (9, 2))),
    ((130, 20, 2), ((33, 1), (1, 1), (1, 1), (32, 0), (20, 2))),
    ((90, 8, 3), ((5, 1), (1, 1), (1, 1), (0, 0), (4, 3))),
]


def packed_records(x: np.ndarray, more: int) -> np.ndarray:
    """The rows of a matrix so many bytes from one to the next's beginning, as a field of records without padding."""
    records = np.zeros(len(x), [("row", x.dtype, x.shape[1:]), ("more", "u1", more)])
    rows: np.ndarray = records["row"]
    rows[...] = x
    return rows


def short_lengths(lanes: int) -> list[int]:
    """Lengths around those by which short rows are searched in another way."""
    edges = {*range(2, 12), lanes // 4, *(lanes * vectors for vectors in range(1, 11))}
    return sorted({n + more for n in edges for more in (-1, 0, 1) if n + more > 0})


def noted(patch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The arguments of each call of a module's function from here on, but those by name."""
    calls: list[Any] = []
    function = getattr(module, name)

    def note(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **named)

    patch.setattr(module, name, note)
    return calls


def planes_cut(calls: list[Any]) -> int:
    """Of noted calls of planes.cut_planes those that cut some: pieces of a row adjoin."""
    return sum(
        len(kept) >= 2 and kept[-2].stride == kept[-1].size * item for kept, _, item in calls
    )


def small_planes(
    random: Random, name: str, shapes: list[tuple[int, int, int]] = PLANES
) -> Iterator[np.ndarray]:
    """Planes that adjoin, rows from either end, rows and planes with gaps between them."""
    for number, rows, columns in shapes:
        x = values(random, name, (2 * number, rows + 1, columns + 1))
        whole = np.ascontiguousarray(x[:number, :rows, :columns])
        yield whole
        yield whole[:, ::-1]
        yield x[::2, :rows, 1:]
        yield x[number:, 1:, :columns][::-1]


def lone_columns(random: Random, name: str) -> Iterator[np.ndarray]:
    """Few columns of many rows, with gaps between columns or rows: groups along the middle axis."""
    for channels, taken in (
        (3, slice(2)),
        (4, slice(1, 4)),
        (4, slice(0, 4, 2)),
        (4, slice(None, None, -2)),
    ):
        x = values(random, name, (4, planes.LONE_ROWS + channels, channels))[..., taken]
        yield x
        yield x[::2, ::-1]


def random_shape(random: Random, highest: int, lowest: int = 1) -> tuple[int, ...]:
    """Sizes of at most a few thousand elements, 1 being frequent, some at the edge of a vector, block or tile."""
    rank = int(random.integers(lowest, highest + 1))
    shape = [1] * rank
    left = int(random.choice([30, 300, 3000]))
    for d in random.permutation(rank):
        shape[d] = int(random.choice([1, int(random.integers(1, max(2, min(left, 12))))]))
        left //= shape[d]
    if rank and random.random() < 0.3:
        edge = int(random.choice(WIDE_EDGES if random.random() < 0.3 else EDGES))
        d = random.integers(rank)
        rest = math.prod(shape) // shape[d]
        if rest * edge <= 20000:
            shape[d] = edge
    return tuple(shape)


def random_axes(random: Random, rank: int) -> tuple[int, ...]:
    """In any order; in part neighbours, which may be walked as one."""
    if random.random() < 0.3:
        begin = random.integers(rank + 1)
        chosen = list(range(rank))[begin : random.integers(begin, rank + 1)]
    else:
        chosen = [d for d in range(rank) if random.random() < random.choice([0.2, 0.5, 0.9])]
    return tuple(int(d) for d in random.permutation(chosen))


# --- outputs ---


def check_output(
    run: Any, random: Random, shape: tuple[int, ...], dtype: np.dtype, expected: np.ndarray
) -> None:
    """`run(out)` writes the expected elements, and not one byte between or around them."""
    kind = str(random.choice(LAYOUTS))
    place = layout(random, kind, shape, dtype.itemsize)
    buffer = np.full(place.bytes, POISON, np.uint8)
    wanted = buffer.copy()
    place.view(wanted, shape, dtype)[...] = expected.reshape(shape)
    out = place.view(buffer, shape, dtype)
    assert run(out) is out
    np.testing.assert_array_equal(out, expected.reshape(shape), err_msg=f"out: {kind}")
    assert np.array_equal(buffer, wanted), f"bytes outside the elements of out ({kind}) changed"


@dataclass(frozen=True)
class Output:
    """An array to write to, in a buffer full of poison, for results that are not known to the last bit."""

    kind: str
    array: np.ndarray
    buffer: np.ndarray
    place: Layout

    def check_surroundings(self) -> None:
        """Not one byte between or around the elements was written."""
        rest = self.buffer.copy()
        item = self.array.dtype.itemsize
        self.place.view(rest, self.array.shape, np.dtype(f"V{item}"))[...] = bytes([POISON] * item)
        assert (rest == POISON).all(), f"bytes outside the elements of out ({self.kind}) changed"


def output(random: Random, shape: tuple[int, ...], dtype: np.dtype, kind: str = "") -> Output:
    """An output in a layout of a kind, a random one by default."""
    kind = kind or str(random.choice(LAYOUTS))
    place = layout(random, kind, shape, dtype.itemsize)
    buffer = np.full(place.bytes, POISON, np.uint8)
    return Output(kind, place.view(buffer, shape, dtype), buffer, place)


# --- memory ---

MEBI = 1 << 20
MEMORY_LAYOUTS = [*INPUT_LAYOUTS, "read-only"]


def of_8_mebibytes(kind: str, dtype: np.dtype) -> np.ndarray:
    """An array of 8 MiB and three dimensions, in a layout."""
    random = np.random.default_rng(3)
    shape = (64, 128, 8 * MEBI // dtype.itemsize // (64 * 128))
    place = layout(random, "c" if kind == "read-only" else kind, shape, dtype.itemsize)
    if kind == "broadcast":  # 8 MiB of elements on less memory
        strides = (0, dtype.itemsize * shape[2], dtype.itemsize)
        place = Layout(strides, GUARD, place.bytes + shape[1] * shape[2] * dtype.itemsize + GUARD)
    x = place.view(np.zeros(place.bytes, np.uint8), shape, dtype)
    x.flags.writeable = kind != "read-only"
    return x


RESIDENT = """
import importlib
import sys

sys.path.insert(0, sys.argv[1])

def peak():
    with open("/proc/self/status") as file:
        (line,) = [line for line in file if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

for label, call in importlib.import_module(sys.argv[2]).memory_calls():
    call()  # compiles, touches every page, starts the threads
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = peak()
    call()
    extra = peak() - before
    assert extra < int(sys.argv[3]), f"{label}: {extra} bytes"
print("done")
"""
Call = tuple[str, Callable[[], object]]  # a label, and a call on an output that it is given


def check_traced_memory(calls: Iterable[Call], limit: int) -> None:
    """Each call takes less than so many bytes from NumPy and Python."""
    for label, call in calls:
        call()  # compiles, and starts the threads
        tracemalloc.start()
        try:
            call()
            extra = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert extra < limit, f"{label}: {extra} bytes"


def check_resident_memory(module: str, limit: int) -> None:
    """Each call of `module.memory_calls()` adds less than so many bytes to the process (seen on Linux only).

    What compiled code allocates by itself is seen in the process's resident memory only.
    """
    if sys.platform != "linux":
        return
    command = [sys.executable, "-c", RESIDENT, str(Path(__file__).parent), module, str(limit)]
    # What is freed goes back to the system, or the first call's memory would hide the second's.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.stdout == "done\n", done.stderr


def scaled(random: Random, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Normally distributed numbers of a random scale, with a few infinities, zeros or NaN at times; or any bits."""
    flavour = random.integers(6)
    if flavour == 0:
        return values(random, name, shape)
    scale = random.choice([0.01, 1, 1, 10, 100, 1e4])
    drawn = random.standard_normal(shape) * scale + random.choice([0, 0, 100, -1000])
    x: np.ndarray = drawn.astype(numpy_type(name))
    if flavour < 3 and x.size:
        special = random.choice([-np.inf, -np.inf, -0.0, np.nan, -np.nan, np.inf, 65504, -3e38])
        with np.errstate(over="ignore"):
            x = np.where(random.random(shape) < random.choice([0.02, 0.3, 0.95]), special, x)
            x = x.astype(numpy_type(name))
    return x
