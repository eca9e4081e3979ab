"""NumPy, each cell in the fastest way it offers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.cells import BACKWARD, REDUCTIONS, Array, Cell


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    del threads  # NumPy's reductions use one
    if cell.operator in BACKWARD:
        return _backward(cell, x)
    if cell.window:
        return _pool(cell, x)
    if cell.operator == "argmax":
        return _argmax(cell, x)
    if cell.operator == "hardmax":
        return _hardmax(cell, x)
    if cell.operator in REDUCTIONS:
        return _reduction(cell, x)
    return _softmax(cell, x)


def _flattened(cell: Cell, x: Array) -> Callable[[], tuple[Array, int]]:
    """NumPy's argmax takes one axis: several are brought together, which copies unless they are neighbours."""
    if len(cell.axes) == 1:
        return lambda: (x, cell.axes[0])
    kept = [d for d in range(x.ndim) if d not in cell.axes]
    shape = (*(x.shape[d] for d in kept), math.prod(x.shape[d] for d in cell.axes))
    return lambda: (x.transpose(*kept, *cell.axes).reshape(shape), -1)


def _argmax(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    flattened = _flattened(cell, x)
    shape = cell.output_shape(x)
    if not shape:
        return lambda: (np.asarray(np.argmax(x)),)
    out = np.empty(shape, np.int64)

    def run() -> tuple[Array, ...]:
        values, axis = flattened()
        return (np.argmax(values, axis, out=out),)

    return run


def _reduction(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    wide = np.float32 if cell.dtype == "float16" else None

    def l2_norm() -> Array:
        norms: Array = np.sqrt(np.square(x, dtype=wide).sum(cell.axes))
        return norms.astype(x.dtype, copy=False)

    def logsumexp() -> Array:
        top = x.max(cell.axes, keepdims=True)
        total = np.exp(x - top, dtype=wide).sum(cell.axes)
        logarithms: Array = np.log(total).astype(x.dtype, copy=False) + top.reshape(total.shape)
        return logarithms

    run = {
        "sum": lambda: x.sum(cell.axes),
        "prod": lambda: x.prod(cell.axes),
        "max": lambda: x.max(cell.axes),
        "l2_norm": l2_norm,
        "logsumexp": logsumexp,
    }[cell.operator]
    return lambda: (np.asarray(run()),)


def _hardmax(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    flattened = _flattened(cell, x)
    kept = [d for d in range(x.ndim) if d not in cell.axes]
    order = np.argsort([*kept, *cell.axes])
    # Used again and filled: the pages of new zeros are not there until they are written to.
    marks = np.empty(flattened()[0].shape, x.dtype)

    def run() -> tuple[Array, ...]:
        values, axis = flattened()
        marks.fill(0)
        np.put_along_axis(marks, values.argmax(axis, keepdims=True), 1, axis)
        if len(cell.axes) == 1:
            return (marks,)
        shape = [x.shape[d] for d in (*kept, *cell.axes)]
        return (marks.reshape(shape).transpose(order),)

    return run


def _softmax(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    out = np.empty(x.shape, x.dtype)
    powers = np.empty(x.shape, x.dtype)
    wide = np.promote_types(x.dtype, np.float32)

    def softmax() -> tuple[Array, ...]:
        np.subtract(x, x.max(cell.axes, keepdims=True), out=out)
        np.exp(out, out=out)
        total = out.sum(cell.axes, wide, keepdims=True).astype(x.dtype)
        return (np.divide(out, total, out=out),)

    def log_softmax() -> tuple[Array, ...]:
        np.subtract(x, x.max(cell.axes, keepdims=True), out=out)
        np.exp(out, out=powers)
        total = np.log(powers.sum(cell.axes, wide, keepdims=True)).astype(x.dtype)
        return (np.subtract(out, total, out=out),)

    return softmax if cell.operator == "softmax" else log_softmax


def pooled(cell: Cell, x: Array) -> tuple[Array, ...]:
    """The greatest element of each window, and its position."""
    values, indices = _pool(replace(cell, operator="max_pool_with_indices"), x)()
    return values, indices


def _places(cell: Cell, x: Array) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """(pooled, unpooled) elements of each place of the window that is not padding."""
    first, shape = x.ndim - len(cell.window), cell.pooled_shape(x)
    for place in product(*map(range, cell.window)):
        to, source = [slice(None)] * first, [slice(None)] * first
        for d, w in enumerate(place):
            n, s, offset = x.shape[first + d], cell.strides[d], w - cell.padding[d]
            begin = max(0, -(offset // s))
            end = min(shape[first + d], (n - 1 - offset) // s + 1)
            to.append(slice(begin, end))
            source.append(slice(begin * s + offset, (end - 1) * s + offset + 1, s))
        yield tuple(to), tuple(source)


def _counts(cell: Cell, x: Array) -> Array:
    """Elements of each window."""
    first = x.ndim - len(cell.window)
    counts = np.zeros(cell.pooled_shape(x)[first:], x.dtype)
    for to, _ in _places(cell, x):
        counts[to[first:]] += 1
    return counts


def _pool(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    """Window place by window place: quicker than a view of all windows."""
    shape = cell.output_shape(x)
    values = np.empty(shape, x.dtype)
    lowest = -np.inf if cell.dtype.startswith("float") else np.iinfo(cell.dtype).min
    if cell.operator == "max_pool_with_indices":
        positions = np.arange(x.size).reshape(x.shape)
        indices = np.empty(shape, np.int64)
    counts, places = _counts(cell, x), list(_places(cell, x))

    def pool() -> tuple[Array, ...]:
        values.fill(lowest)
        for to, source in places:
            np.maximum(values[to], x[source], out=values[to])
        return (values,)

    def pool_with_indices() -> tuple[Array, ...]:
        values.fill(lowest)
        indices.fill(-1)
        for to, source in places:
            better = (x[source] > values[to]) | (indices[to] < 0)
            np.copyto(values[to], x[source], where=better)
            np.copyto(indices[to], positions[source], where=better)
        return values, indices

    def average_pool() -> tuple[Array, ...]:
        values.fill(0)
        for to, source in places:
            np.add(values[to], x[source], out=values[to])
        return (np.divide(values, counts, out=values),)

    def lp_pool() -> tuple[Array, ...]:
        values.fill(0)
        for to, source in places:
            values[to] += np.square(x[source])
        return (np.sqrt(values, out=values),)

    return {
        "max_pool": pool,
        "max_pool_with_indices": pool_with_indices,
        "average_pool": average_pool,
        "lp_pool": lp_pool,
    }[cell.operator]


def _backward(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    out = np.empty_like(x)
    if cell.operator == "max_unpool":
        values, indices = pooled(cell, x)
    else:
        gradient, counts, places = cell.gradient(x), _counts(cell, x), list(_places(cell, x))
        find = _pool(replace(cell, operator="max_pool_with_indices"), x)

    def average_pool_grad() -> tuple[Array, ...]:
        out.fill(0)
        shares = gradient / counts
        for to, source in places:
            out[source] += shares[to]
        return (out,)

    def max_pool_grad() -> tuple[Array, ...]:
        flat = np.zeros(x.size, x.dtype)
        np.add.at(flat, find()[1].ravel(), gradient.ravel())
        return (flat.reshape(x.shape),)

    def max_unpool() -> tuple[Array, ...]:
        out.fill(0)
        np.put(out, indices, values)
        return (out,)

    return {
        "average_pool_grad": average_pool_grad,
        "max_pool_grad": max_pool_grad,
        "max_unpool": max_unpool,
    }[cell.operator]
