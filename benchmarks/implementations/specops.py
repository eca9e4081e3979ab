"""This package, through its NumPy functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import specops
from benchmarks.cells import BACKWARD, REDUCTIONS, Array, Cell
from specops import directml


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    specops.set_num_threads(threads)
    run = _run(cell, x)
    run()
    return run


def _run(cell: Cell, x: Array) -> Callable[[], tuple[Array, ...]]:
    shape = cell.output_shape(x)
    if cell.window:
        pooling: dict[str, Any] = {
            "window_size": cell.window,
            "strides": cell.strides,
            "start_padding": cell.padding,
            "end_padding": cell.padding,
        }
        values = np.empty_like(x, shape=shape)  # in the memory order of x, as the others return it
        if cell.operator in BACKWARD:
            return _backward(cell, x, pooling, values)
        if cell.operator != "max_pool_with_indices":
            pool = getattr(specops, cell.operator)
            return lambda: (pool(x, **pooling, out=values),)
        both = (values, np.empty_like(x, np.int64, shape=shape))
        return lambda: specops.max_pool(x, **pooling, indices=True, out=both)
    if cell.operator in REDUCTIONS:
        out = np.empty(shape, cell.output_dtype())
    else:
        out = np.empty_like(x)
    function = getattr(specops, cell.operator)
    return lambda: (function(x, axis=cell.axes, out=out),)


def _backward(
    cell: Cell, x: Array, pooling: dict[str, Any], out: Array
) -> Callable[[], tuple[Array, ...]]:
    if cell.operator == "max_unpool":
        given, indices = specops.max_pool(x, **pooling, indices=True)
        return lambda: (specops.max_unpool(given, indices, x.shape, out=out),)
    gradient = cell.gradient(x)
    if cell.operator == "max_pool_grad":
        return lambda: (directml.max_pooling_grad(x, gradient, **pooling, out=out),)
    sizes = x.shape
    return lambda: (
        directml.average_pooling_grad(gradient, **pooling, output_sizes=sizes, out=out),
    )
