"""How far softmax and its logarithm may be from what `oracle` has.

Here `u` is half an ulp of 1 in the type of the computation (2**-24, for float64 2**-53), t = top - x of an element, and
T the mean of t over its group, weighted by the probabilities:

- x - top is rounded: by t * u at most, which exp makes a relative error. The sum's share is the weighted mean, T * u.
- exp, the sum and the quotient add a constant, `CONSTANT`. Of a row, a lane of a vector adds up at most 1024 / lanes
  exponentials one by one, each time with an error of u: of many equal small ones beside a great one in one direction.
- The result is rounded once more where its type is narrower: half an ulp of that type. Below the least normal number
  of the type of the computation, exp and the quotient are each rounded to the grid of subnormals: one step of it.
- The logarithm x - top - log(sum) has, as absolute errors, t * u and log(sum) * u of rounding, (T * u + `CONSTANT`) of
  the sum, and half an ulp of the result.
- The oracle errs by as much once more where it has no more bits than the computation: for float64 on systems whose long
  double is no wider.
"""

from __future__ import annotations

import math

import numpy as np
from draw import FLOATS
from oracle import softmax, wide

CONSTANT = {"FLOAT32": 5e-7, "FLOAT16": 5e-7, "BFLOAT16": 5e-7, "FLOAT64": 2e-15}


def ulp(name: str, x: np.ndarray) -> np.ndarray:
    """The step between the neighbours of `x` in a type, of subnormals below the normal numbers."""
    exponent, mantissa = FLOATS[name]
    least = 2 - (1 << (exponent - 1))
    ordinary = np.isfinite(x) & (x != 0)
    magnitude = np.where(ordinary, np.frexp(np.where(ordinary, x, 1))[1] - 1, least)
    steps: np.ndarray = np.ldexp(np.ones_like(x), np.maximum(magnitude, least) - mantissa)
    return steps


def greatest(name: str) -> float:
    exponent, mantissa = FLOATS[name]
    return math.ldexp(2 - 2.0**-mantissa, (1 << (exponent - 1)) - 1)


def allowed(
    name: str, x: np.ndarray, axes: tuple[int, ...], exact: np.ndarray, result: str
) -> np.ndarray:
    """The greatest error of each element, as the text above has it."""
    computed = "FLOAT64" if name == "FLOAT64" else "FLOAT32"
    unit = 2.0 ** -(FLOATS[computed][1] + 1)
    x = wide(x)
    with np.errstate(invalid="ignore"):
        t = x.max(axes, keepdims=True) - x
        power = np.exp(-t)
        weighted = np.where(power > 0, t * power, 0)
        total = power.sum(axes, keepdims=True)
        lanes = 8 if computed == "FLOAT64" else 16
        additions = min(math.prod(x.shape[a] for a in axes), 1024) / lanes
        spread = unit * (weighted.sum(axes, keepdims=True) / total + additions) + CONSTANT[name]
        if result == "logarithm":
            error: np.ndarray = t * unit + unit * np.log(total) + spread + ulp(name, exact) / 2
            return error
        grid = ulp(computed, np.zeros_like(exact))
        error = np.where(exact > 0, exact * (t * unit + spread) + grid, 0)
        return error if name == computed else error + ulp(name, exact) / 2


def check_close(
    name: str, x: np.ndarray, axes: tuple[int, ...], result: str, out: np.ndarray
) -> None:
    exact = softmax(x, axes, result == "logarithm")
    found = wide(out)
    missing = np.isnan(exact)
    assert np.array_equal(np.isnan(found), missing), "NaN where there should be none, or none"
    if result == "probability":
        assert not np.signbit(found[~missing]).any(), "a probability has a sign"
    with np.errstate(invalid="ignore", over="ignore"):
        limit = allowed(name, x, axes, exact, result)
        if name == "FLOAT64" and exact.dtype == np.float64:
            limit *= 2
        # What rounds to an infinity may be one; what surely does must be.
        step = ulp(name, np.full_like(exact, greatest(name))) / 2
        may = exact - limit <= -(greatest(name) + step)
        close = np.abs(found - exact) <= limit
        good = missing | close | (found == exact) | (may & np.isneginf(found))
    if good.all():
        return
    worst = np.unravel_index(np.argmin(good), good.shape)
    share = float(np.abs(found - exact)[worst] / limit[worst])
    raise AssertionError(
        f"{(~good).sum()} of {good.size} elements are off; first {tuple(map(int, worst))}: x {x[worst]!r}, found "
        f"{out[worst]!r}, exact {exact[worst]!r}: {share:.3g} of what is allowed"
    )
