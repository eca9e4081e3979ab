"""Poolings, their gradients and unpooling, plainly, as `oracle` has them; and how far off sums may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from oracle import max_pool, numbers

EPSILON = {"FLOAT32": 2.0**-24, "FLOAT16": 2.0**-11, "FLOAT64": 2.0**-53, "BFLOAT16": 2.0**-8}
LEAST = {"FLOAT32": 2.0**-149, "FLOAT16": 2.0**-24, "FLOAT64": 2.0**-1074, "BFLOAT16": 2.0**-133}
GREATEST = {  # what is farther from 0 by half its last place rounds to infinity
    "FLOAT32": 2.0**128 - 2.0**104,
    "FLOAT16": 65504.0,
    "FLOAT64": math.ldexp(1 - 2.0**-53, 1024),
    "BFLOAT16": 2.0**128 - 2.0**120,
}
Shares = list[list[float]]  # what each input element is given
NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Windows:
    """The windows of a pooling, one number for each spatial dimension, and the output's spatial sizes."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[int, ...]
    outputs: tuple[int, ...]

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.window)], *self.outputs)

    def expected(self, x: np.ndarray, nan: str, order: str) -> tuple[np.ndarray, np.ndarray]:
        return max_pool(
            x, self.window, self.strides, self.dilations, self.padding, self.outputs, nan, order
        )


def check_values(out: np.ndarray, expected: np.ndarray, to_the_bit: bool) -> None:
    """Equal numbers; to the bit where a value has an index: its zero has a sign, its NaN a payload."""
    if to_the_bit:
        unsigned = f"u{out.dtype.itemsize}"
        np.testing.assert_array_equal(out.view(unsigned), expected.view(unsigned), "values' bits")
    else:
        np.testing.assert_array_equal(numbers(out), numbers(expected), "values")


@dataclass(frozen=True)
class Pooling:
    """An average, by its divisor, or a norm, by its power, of windows."""

    windows: Windows
    end: tuple[int, ...]
    divisor: str = ""
    p: float = 0

    def expected(self, name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The results in float64, and how far from them others may be; NaN where any will do."""
        w = self.windows
        sizes = x.shape[x.ndim - len(w.window) :]
        batches = x.shape[: x.ndim - len(w.window)]
        count = math.prod(batches)
        planes = doubles(x).reshape(count, *sizes)
        result = np.zeros((count, *w.outputs))
        error = np.zeros(result.shape)
        for place in np.ndindex(*w.outputs):
            seen, counted = [], 1
            for o, k, s, d, p, n, end in zip(
                place, w.window, w.strides, w.dilations, w.padding, sizes, self.end, strict=True
            ):
                along = [o * s - p + j * d for j in range(k)]
                seen.append([i for i in along if 0 <= i < n])
                counted *= sum(i < n + end for i in along)
            if self.divisor != "padded":
                counted = math.prod(map(len, seen))
            elements = planes[(slice(None), *np.ix_(*seen))]
            for number, window in enumerate(elements.reshape(count, -1 if count else 0).tolist()):
                one = norm(window, self.p, name) if self.p else mean(window, counted, name)
                result[(number, *place)], error[(number, *place)] = one
        return result.reshape(*batches, *w.outputs), error.reshape(*batches, *w.outputs)


def doubles(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        return numbers(np.ascontiguousarray(x)).astype(np.float64)


def sum_epsilon(name: str) -> float:
    return EPSILON["FLOAT64" if name == "FLOAT64" else "FLOAT32"]


def mean(window: list[float], counted: int, name: str) -> tuple[float, float]:
    """The average, and how far off it may be: rounded once, of sums with a few roundings."""
    if counted == 0:
        return NAN, 0.0
    reach = sum(map(abs, window))
    finite = math.isfinite(reach) or all(map(math.isfinite, window))
    if not finite:
        reach = sum(abs(x) for x in window if math.isfinite(x))
    overflows = reach >= GREATEST["FLOAT64" if name == "FLOAT64" else "FLOAT32"]
    if not finite:
        exact = sum(x for x in window if not math.isfinite(x))
        if math.isnan(exact) or not overflows:
            return exact, 0.0
    if overflows:
        return 0.0, NAN  # sums may be infinite, and of infinities
    exact = math.fsum(window) / counted
    error = EPSILON[name] * abs(exact) + 24 * sum_epsilon(name) * reach / counted + LEAST[name]
    return exact, error


def norm(window: list[float], p: float, name: str) -> tuple[float, float]:
    """The norm; only sums that are results themselves may be infinite."""
    window = list(map(abs, window))
    if math.isnan(sum(window)):
        return NAN, 0.0
    top = max(window, default=0.0)
    if top == 0 or math.isinf(top):
        return top, 0.0
    exact = top * math.fsum([(x / top) ** p for x in window]) ** (1 / p)
    if exact * (1 - EPSILON[name]) > GREATEST[name]:
        return INF, 0.0
    return exact, exact * (EPSILON[name] + 24 * sum_epsilon(name)) + LEAST[name]


def check_close(name: str, got: np.ndarray, expected: np.ndarray, error: np.ndarray) -> None:
    got = doubles(got)
    with np.errstate(invalid="ignore", over="ignore"):
        right = (got == expected) | (np.isnan(got) & np.isnan(expected)) | np.isnan(error)
        right |= np.abs(got - expected) <= error
        # Between the greatest number and infinity either will do.
        right |= (np.abs(expected) + error > GREATEST[name]) & (got == np.copysign(INF, expected))
        right |= np.isinf(expected) & (np.abs(got) == GREATEST[name]) & (error > 0)
    if not right.all():
        place = tuple(int(i[0]) for i in np.nonzero(~right))
        raise AssertionError(f"{place}: {got[place]!r}, not {expected[place]!r} +- {error[place]}")


def totals(name: str, given: Shares, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Their sums, rounded once, and how far off others may be."""
    exact, error = np.zeros(len(given)), np.zeros(len(given))
    for place, shares in enumerate(given):
        reach = sum(abs(share) for share in shares if math.isfinite(share))
        if reach >= GREATEST["FLOAT64" if name == "FLOAT64" else "FLOAT32"]:
            error[place] = math.nan  # sums may be infinite, and of infinities
        elif all(map(math.isfinite, shares)):
            exact[place] = math.fsum(shares)
            error[place] = EPSILON[name] * abs(exact[place]) + LEAST[name]
            error[place] += (8 + len(shares)) * sum_epsilon(name) * reach
            error[place] += len(shares) * LEAST["FLOAT64" if name == "FLOAT64" else "FLOAT32"]
        else:
            exact[place] = sum(shares)
    return exact.reshape(shape), error.reshape(shape)


def average_grad(
    name: str,
    gradient: np.ndarray,
    shape: tuple[int, ...],
    w: Windows,
    end: tuple[int, ...],
    divisor: str,
) -> tuple[np.ndarray, np.ndarray]:
    sizes = shape[len(shape) - len(w.window) :]
    batches = shape[: len(shape) - len(w.window)]
    flat = np.arange(math.prod(sizes)).reshape(sizes)
    scalars = doubles(gradient)
    given: Shares = [[] for _ in range(math.prod(shape))]
    for place in np.ndindex(*w.outputs):
        seen, counted = [], 1
        for o, k, s, p, n, e in zip(place, w.window, w.strides, w.padding, sizes, end, strict=True):
            along = [o * s - p + j for j in range(k)]
            seen.append([i for i in along if 0 <= i < n])
            counted *= sum(i < n + e for i in along)
        if divisor == "inside":
            counted = math.prod(map(len, seen))
        elements = flat[np.ix_(*seen)].ravel().tolist()
        for number, batch in enumerate(np.ndindex(*batches)):
            for element in elements:
                share = float(scalars[(*batch, *place)]) / counted
                given[number * flat.size + element].append(share)
    return totals(name, given, shape)


def max_grad(
    name: str, x: np.ndarray, gradient: np.ndarray, w: Windows, nan: str
) -> tuple[np.ndarray, np.ndarray]:
    _, places = w.expected(x, nan, "row_major")
    given: Shares = [[] for _ in range(x.size)]
    scalars = doubles(gradient).ravel().tolist()
    for place, value in zip(places.ravel().tolist(), scalars, strict=True):
        if place >= 0:
            given[place].append(value)
    return totals(name, given, x.shape)


def unpooled(x: np.ndarray, indices: np.ndarray, elements: int) -> np.ndarray:
    """The bits of the output's elements, so many, in row-major order; of equal indices the last one's element."""
    bits = f"u{x.dtype.itemsize}"
    out = np.zeros(elements, bits)
    given = np.ascontiguousarray(x).view(bits).ravel()
    for place, element in zip(np.ascontiguousarray(indices).ravel().tolist(), given, strict=True):
        if 0 <= place < elements:
            out[place] = element
    return out
