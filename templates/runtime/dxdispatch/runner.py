"""Runs a checked model: buffers are bytes, tensors are views of them."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from specops.dxdispatch import files, npy, text
from specops.dxdispatch.files import Refused
from specops.dxdispatch.model import Dispatch, Model, Print, Resource, WriteFile
from specops.dxdispatch.problems import ModelError, printable
from specops.dxdispatch.values import Bytes
from specops.errors import NoMemoryError, SpecopsError


class Output(Protocol):
    """Where the lines go."""

    def write(self, text: str, /) -> Any: ...


@dataclass(frozen=True)
class Timing:
    """How often each dispatch runs, and what is told of it.

    Attributes:
        iterations: the minimum per dispatch; at least 1.
        milliseconds: the minimum time per dispatch, at least 0; None for no longer than its iterations.
        repeat: calls per iteration, whose average is reported; at least 1.
        interval: the minimum between the starts of iterations, in milliseconds; at least 0.
        warmup: initial iterations that count as cold and not as hot, at least 0; the last is always hot.
        verbosity: 0 for the median of the hot timings, 1 for initialisation, cold and hot timings, 2 for each
            iteration, too.

    Raises:
        SpecopsError: a number is none of these.
    """

    iterations: int = 1
    milliseconds: float | None = None
    repeat: int = 1
    interval: float = 0.0
    warmup: int = 1
    verbosity: int = 0

    def __post_init__(self) -> None:
        counts = ((self.iterations, 1), (self.repeat, 1), (self.warmup, 0), (self.verbosity, 0))
        counted = all(isinstance(n, Integral) and n >= least for n, least in counts)
        times = [self.interval, *([] if self.milliseconds is None else [self.milliseconds])]
        timed = all(isinstance(t, Real) and t >= 0 for t in times)
        if not (counted and timed and self.verbosity <= 2):
            raise SpecopsError(
                "iterations and repeat are integers of at least 1, warmup is one of at least 0,"
                " milliseconds and interval are at least 0, verbosity is 0, 1 or 2"
            )


class Runner:
    """One run of a model. Buffers are allocated and filled first; then the commands run in their order."""

    def __init__(
        self, model: Model, output: Output, timing: Timing, begin: Callable[[str], None]
    ) -> None:
        self._model = model
        self._output = output
        self._timing = timing
        self._begin = begin
        self._buffers: dict[str, Bytes] = {}
        self._owned: dict[tuple[str, str], Bytes] = {}
        self._initialised: set[str] = set()

    def run(self) -> dict[str, npt.NDArray[Any]]:
        """Run everything; returns the values of each resource that has a data type."""
        self._allocate()
        for command in self._model.commands:
            if isinstance(command, Dispatch):
                self._dispatch(command)
            elif isinstance(command, Print):
                self._print(command)
            else:
                self._write(command)
        typed = (r for r in self._model.resources.values() if r.dtype is not None)
        return {r.name: self._values(r) for r in typed}

    def _line(self, line: str) -> None:
        self._output.write(f"{line}\n")

    def _allocate(self) -> None:
        for resource in self._model.resources.values():
            try:
                buffer = np.zeros(resource.bytes, np.uint8)
                resource.initial.write(buffer[: resource.initial.nbytes])
            except (MemoryError, ValueError):
                raise NoMemoryError(
                    f"no memory for resource {resource.name!r} of {resource.bytes} bytes"
                ) from None
            except Refused as error:
                raise ModelError([resource.node.problem(error.message, error.hint)]) from None
            self._buffers[resource.name] = buffer
        for name, bounds in self._model.owned.items():
            for bound in bounds:  # taken over now: later commands may change the buffer
                begin = bound.offset
                copy = self._buffers[bound.resource.name][begin : begin + bound.point.bytes].copy()
                self._owned[name, bound.point.name] = copy

    def _values(self, resource: Resource) -> npt.NDArray[Any]:
        """The elements that were filled at the beginning, without the bytes behind them."""
        assert resource.dtype is not None
        filled = resource.count * resource.dtype.itemsize
        return self._buffers[resource.name][:filled].view(resource.dtype)

    # --- dispatch ---

    def _dispatch(self, command: Dispatch) -> None:
        call = self._call(command)
        name = command.target.name
        self._begin(printable(name))
        verbosity = self._timing.verbosity
        if name not in self._initialised:
            # The first call compiles the kernels; as inputs are never written, it can be made apart.
            self._initialised.add(name)
            elapsed = _milliseconds(call)
            if verbosity >= 1:
                self._line(f"Initialize '{printable(name)}': {elapsed:.4f} ms")
        samples = self._samples(call)
        cold = samples[: min(len(samples) - 1, self._timing.warmup)]
        hot = samples[len(cold) :]
        head = f"Dispatch '{printable(name)}': {len(samples)} iterations"
        if verbosity == 0:
            self._line(f"{head}, {_median(hot):.4f} ms median (CPU)")
            return
        self._line(head)
        for label, part in (("(Cold)", cold), ("(Hot) ", hot)):
            if part:
                self._line(
                    f"CPU Timings {label} : {len(part)} samples, {sum(part) / len(part):.4f} ms average, "
                    f"{min(part):.4f} ms min, {_median(part):.4f} ms median, {max(part):.4f} ms max"
                )
        if verbosity >= 2:
            self._line("The timings of each iteration: ")
            for i, sample in enumerate(samples):
                self._line(f"iteration {i}: {sample:.4f} ms (CPU)")

    def _call(self, command: Dispatch) -> Callable[[], Any]:
        bound = {b.point.name: b for b in command.bindings}
        inputs: list[npt.NDArray[Any]] = []
        outputs: list[npt.NDArray[Any]] = []
        for point in command.target.points:
            if point.owned:
                view = point.desc.view(self._owned[command.target.name, point.name])
            else:
                part = bound[point.name]
                view = point.desc.view(self._buffers[part.resource.name], part.offset)
            (inputs if point.kind == "input" else outputs).append(view)
        operator = command.target.operator
        out = outputs[0] if len(outputs) == 1 else tuple(outputs)
        return lambda: operator(*inputs, out=out)

    def _samples(self, call: Callable[[], Any]) -> array[float]:
        """Milliseconds of each iteration; millions of them, where a small operator runs for minutes."""
        timing = self._timing
        samples = array("d")
        begin = time.perf_counter()

        def elapsed() -> float:
            return (time.perf_counter() - begin) * 1e3

        while len(samples) < timing.iterations or (
            timing.milliseconds is not None and elapsed() < timing.milliseconds
        ):
            due = elapsed() + timing.interval
            samples.append(_milliseconds(call, timing.repeat))
            rest = due - elapsed()
            if rest > 0:
                time.sleep(rest / 1e3)
        return samples

    # --- print and writeFile ---

    def _print(self, command: Print) -> None:
        values = self._values(command.resource)
        shown = text.verbose(values) if command.verbose else text.flat(values)
        head = f"Resource '{printable(command.resource.name)}':"
        self._output.write(f"{head}\n" if command.verbose else f"{head} ")
        for piece in shown:
            self._output.write(piece)
        self._output.write("\n")

    def _write(self, command: WriteFile) -> None:
        folder = self._model.output
        assert folder is not None
        try:
            files.write(folder, command.path, self._content(command))
        except Refused as error:
            raise ModelError([command.node.problem(error.message, error.hint)]) from None
        name, path = command.resource.name, folder / files.relative(command.path)
        self._line(f"Resource '{printable(name)}' written to '{printable(str(path))}'")

    def _content(self, command: WriteFile) -> Iterator[bytes | memoryview]:
        """The whole buffer, or in a .npy file with dimensions, so many elements of it."""
        data = self._buffers[command.resource.name]
        if command.is_npy:
            dtype = command.resource.dtype
            assert dtype is not None
            shape = command.dimensions or (data.size // dtype.itemsize,)
            yield npy.prefix(dtype, shape)
            data = data[: int(np.prod(shape, dtype=np.int64)) * dtype.itemsize]
        yield data.data


def _milliseconds(call: Callable[[], Any], repeat: int = 1) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) * 1e3 / repeat


def _median(samples: array[float]) -> float:
    middle = len(samples) // 2
    return float(np.partition(samples, middle)[middle])
