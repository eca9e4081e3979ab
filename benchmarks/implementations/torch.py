"""PyTorch on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.cells import BACKWARD, REDUCTIONS, Array, Cell
from benchmarks.implementations import Unsupported

_REDUCTIONS: Any = {
    "sum": torch.sum,
    "max": torch.amax,
    "l2_norm": lambda x, axes, out: torch.linalg.vector_norm(x, 2, axes, out=out),
    "logsumexp": torch.logsumexp,
}


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            run = _run(cell, torch.from_numpy(x))
            run()
    except (RuntimeError, NotImplementedError) as error:
        raise Unsupported(str(error).splitlines()[0]) from error

    def outputs() -> tuple[Array, ...]:
        with torch.inference_mode():
            return tuple(result.numpy() for result in run())

    return outputs


def _backward(cell: Cell, x: torch.Tensor) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Of two dimensions; a gradient of max pooling that is told no indices needs those of the pooling."""
    settings = (cell.window, cell.strides, cell.padding)
    out = torch.empty_like(x)
    gradient = torch.from_numpy(cell.gradient(x.numpy()))
    values, indices = functional.max_pool2d(x, *settings, return_indices=True)
    find = torch.ops.aten.max_pool2d_with_indices.out
    average = torch.ops.aten.avg_pool2d_backward.grad_input
    greatest = torch.ops.aten.max_pool2d_with_indices_backward.grad_input
    unpool = torch.ops.aten.max_unpool2d.out

    def max_pool_grad() -> tuple[torch.Tensor]:
        find(x, *settings, out=values, indices=indices)
        return (greatest(gradient, x, *settings, (1, 1), False, indices, grad_input=out),)

    return {
        "average_pool_grad": lambda: (
            average(gradient, x, *settings, False, False, None, grad_input=out),
        ),
        "max_pool_grad": max_pool_grad,
        "max_unpool": lambda: (unpool(values, indices, x.shape[2:], out=out),),
    }[cell.operator]


def _pooling(cell: Cell, x: torch.Tensor) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Two forms have no out: norms, and maxima along one axis."""
    dimensions = len(cell.window)
    settings = (cell.window, cell.strides, cell.padding)
    if cell.operator == "lp_pool":  # it has no padding
        padded = functional.pad(x, [p for p in reversed(cell.padding) for _ in range(2)])
        norm = {2: functional.lp_pool2d, 3: functional.lp_pool3d}[dimensions]
        return lambda: (norm(padded, 2.0, cell.window, cell.strides),)
    if cell.operator == "average_pool":
        average: Any = getattr(torch.ops.aten, f"avg_pool{dimensions}d")
        mean = average(x, *settings, False, False)
        return lambda: (average.out(x, *settings, False, False, out=mean),)
    some = 1 if cell.operator == "max_pool" else 2
    if dimensions == 1:
        if some == 2:
            return lambda: functional.max_pool1d(x, *settings, return_indices=True)
        return lambda: (functional.max_pool1d(x, *settings),)
    find: Any = getattr(torch.ops.aten, f"max_pool{dimensions}d_with_indices")
    values, indices = find(x, *settings)
    return lambda: find.out(x, *settings, out=values, indices=indices)[:some]


def _run(cell: Cell, x: torch.Tensor) -> Callable[[], tuple[torch.Tensor, ...]]:
    if cell.operator in BACKWARD:
        return _backward(cell, x)
    if cell.window:
        return _pooling(cell, x)
    kept = [d for d in range(x.ndim) if d not in cell.axes]
    shape = [x.shape[d] for d in kept]
    if cell.operator in _REDUCTIONS:
        reduce = _REDUCTIONS[cell.operator]
        result = x.new_empty(shape)
        return lambda: (reduce(x, cell.axes, out=result),)

    def grouped() -> tuple[torch.Tensor, int]:
        """With one axis to reduce: several are brought together, which copies unless they are neighbours."""
        if len(cell.axes) == 1:
            return x, cell.axes[0]
        return x.permute(*kept, *cell.axes).reshape(*shape, -1), -1

    def restored(result: torch.Tensor) -> torch.Tensor:
        if len(cell.axes) == 1:
            return result
        order = [(*kept, *cell.axes).index(d) for d in range(x.ndim)]
        return result.reshape(*shape, *(x.shape[d] for d in cell.axes)).permute(order)

    def argmax() -> tuple[torch.Tensor, ...]:
        values, axis = grouped()
        return (torch.argmax(values, axis, out=out),)

    def prod() -> tuple[torch.Tensor, ...]:
        values, axis = grouped()
        return (torch.prod(values, axis, out=out),)

    def hardmax() -> tuple[torch.Tensor, ...]:
        values, axis = grouped()
        out.zero_().scatter_(axis, values.argmax(axis, keepdim=True), 1.0)
        return (restored(out),)

    def softmax() -> tuple[torch.Tensor, ...]:
        values, axis = grouped()
        return (restored(torch.softmax(values, axis, out=out)),)

    def log_softmax() -> tuple[torch.Tensor, ...]:
        values, axis = grouped()
        return (restored(torch.log_softmax(values, axis, out=out)),)

    if cell.operator in REDUCTIONS:
        out = torch.empty(shape, dtype=getattr(torch, cell.output_dtype()))
    else:
        out = torch.empty_like(grouped()[0])
    assert math.prod(shape) > 0
    return {
        "argmax": argmax,
        "prod": prod,
        "hardmax": hardmax,
        "softmax": softmax,
        "log_softmax": log_softmax,
    }[cell.operator]
