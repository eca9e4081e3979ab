"""Reductions in exact numbers: what the result of a group is, and how far off one may be.

How far a sum, or what follows from one, may be from the exact one: `UNIT` times the sum of its terms' magnitudes, and
half an ulp of the result's type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from draw import FLOATS, numpy_type

NAN, INF = math.nan, math.inf
UNIT = {"FLOAT16": 2.0**-21, "BFLOAT16": 2.0**-49, "FLOAT32": 2.0**-49, "FLOAT64": 2.0**-51}
LEAST = 1074  # 2**-LEAST is the least double
EMPTY = {  # of floats
    "sum": 0.0,
    "mean": NAN,
    "product": 1.0,
    "l1": 0.0,
    "l2": 0.0,
    "sum_square": 0.0,
    "log_sum": -INF,
    "log_sum_exp": -INF,
    "max": -INF,
    "min": INF,
}


def groups_of(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """A row for each group, the groups in row-major order."""
    kept = [d for d in range(x.ndim) if d not in axes]
    count = math.prod(x.shape[d] for d in kept)
    size = math.prod(x.shape[d] for d in axes)
    return x.transpose(*kept, *sorted(axes)).reshape(count, size)


def ulp(name: str, x: Fraction) -> Fraction:
    exponent, mantissa = FLOATS[name]
    least = 2 - (1 << (exponent - 1))
    if x == 0:
        power = least
    else:
        x = abs(x)
        power = x.numerator.bit_length() - x.denominator.bit_length()
        power -= Fraction(2) ** power > x
    return Fraction(2) ** (max(power, least) - mantissa)


@cache
def bound(name: str) -> Fraction:
    """The least number that rounds to infinity."""
    exponent, _ = FLOATS[name]
    return Fraction(2) ** (1 << (exponent - 1)) - ulp(name, Fraction(1)) * (
        Fraction(2) ** ((1 << (exponent - 1)) - 2)
    )


def check_number(name: str, exact: Fraction, error: Fraction, found: float) -> None:
    """`found` is the exact number, but for an error and its rounding."""
    error += ulp(name, exact) / 2
    most = bound(name)
    if not math.isfinite(found):
        assert found == (INF if exact > 0 else -INF), f"{found}, exact {float_of(exact)}"
        assert abs(exact) + error >= most, f"{found}, exact {float_of(exact)}"
        return
    off = abs(Fraction(found) - exact)
    assert off <= error, (
        f"{found}, exact {float_of(exact)}: {float_of(off / error)} times the limit"
    )


def float_of(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return INF if x > 0 else -INF


def root_of(x: Fraction) -> Fraction:
    """Exact to 128 bits."""
    shift = 2 * max(0, 140 - x.numerator.bit_length() // 2 + x.denominator.bit_length() // 2)
    return Fraction(math.isqrt((x.numerator << (2 * shift)) // x.denominator), 1 << shift)


def log_of(x: Fraction) -> float:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    rest = float(x / Fraction(2) ** power)
    if rest > 1.4:
        rest, power = rest / 2, power + 1
    elif rest < 0.7:
        rest, power = rest * 2, power - 1
    return power * math.log(2) + math.log(rest)


def check_floats(name: str, function: str, nan: str, group: list[float], found: float) -> None:
    if function in ("max", "min"):
        numbers = [x for x in group if not math.isnan(x)]
        blank = len(numbers) < len(group) and (nan == "propagates" or not numbers)
        if blank:
            assert math.isnan(found)
            return
        choose = max if function == "max" else min
        wanted = choose(numbers, key=lambda x: (x, math.copysign(1, x)))
        assert (found, math.copysign(1, found)) == (wanted, math.copysign(1, wanted))
        return
    infinite = {x for x in group if math.isinf(x)}
    if any(math.isnan(x) for x in group):
        assert math.isnan(found)
    elif function == "product":
        check_product(name, group, found)
    elif function == "log_sum_exp":
        check_exponentials(name, group, found)
    elif infinite and function in ("sum", "mean", "log_sum"):
        finite = [abs(x) for x in group if math.isfinite(x)]
        if name == "FLOAT64" and total_of(finite) >= bound(name):
            return  # infinite on the way, perhaps of the other sign
        wanted = sum(infinite)  # NaN of both
        if function == "log_sum" and wanted < 0:
            wanted = NAN
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))
    elif infinite:
        assert found == INF
    else:
        check_sum(name, function, group, found)


def total_of(group: list[float], power: int = 1) -> Fraction:
    """The exact sum of finite numbers, or of their squares: all are multiples of the least double."""
    wholes = (n << (LEAST + 1 - d.bit_length()) for n, d in (x.as_integer_ratio() for x in group))
    return Fraction(sum(n**power for n in wholes), 1 << (LEAST * power))


def check_sum(name: str, function: str, group: list[float], found: float) -> None:
    power = 2 if function in ("l2", "sum_square") else 1
    exact, magnitudes = total_of(group, power), total_of([abs(x) for x in group], power)
    error = Fraction(UNIT[name]) * magnitudes
    if name == "FLOAT64" and abs(exact) < magnitudes and magnitudes >= bound(name):
        return  # it may overflow on the way
    if function == "l1":
        exact = magnitudes
    elif function == "mean":
        exact, error = exact / len(group), error / len(group)
        if name == "FLOAT64" and magnitudes >= bound(name):
            assert found == (INF if exact > 0 else -INF)
            return
        error += abs(exact) * Fraction(UNIT[name])
    elif function == "l2":
        exact = root_of(exact)
        error = exact * Fraction(UNIT[name])
    elif function == "log_sum":
        if name == "FLOAT64" and exact >= bound(name):
            assert found == INF  # as the sum
            return
        if abs(exact) <= error:
            return  # its sign is not sure
        if exact < 0:
            assert math.isnan(found)
            return
        logarithm = log_of(exact)
        unsure = float(error / exact) + 2.0**-50 * max(1, abs(logarithm))
        exact, error = Fraction(logarithm), Fraction(unsure)
    check_number(name, exact, error, found)


def check_product(name: str, group: list[float], found: float) -> None:
    negative = sum(math.copysign(1, x) < 0 for x in group) % 2 == 1
    if any(math.isinf(x) for x in group):
        if 0 in group:
            assert math.isnan(found)
        else:
            assert found == (-INF if negative else INF)
        return
    assert (math.copysign(1, found) < 0) == negative
    if 0 in group:
        assert found == 0
        return
    product, power = 1, 0
    for x in group:
        numerator, denominator = x.as_integer_ratio()
        product *= numerator
        power -= denominator.bit_length() - 1
    exact = product * Fraction(2) ** power
    # One rounding for each product, and for FLOAT64 another one of a subnormal result.
    error = abs(exact) * len(group) * Fraction(2) ** -52
    if name == "FLOAT64":
        error += ulp(name, exact) / 2
    check_number(name, exact, error, found)


def check_exponentials(name: str, group: list[float], found: float) -> None:
    top = max(group, default=-INF)
    if math.isinf(top):
        assert found == top
        return
    below = [top - x for x in group]
    terms = [math.exp(-t) for t in below]
    total = math.fsum(terms)
    exact = top + math.log(total)
    unit = 2.0**-52 if name == "FLOAT64" else 2.0**-24
    spread = math.fsum(t * e for t, e in zip(below, terms, strict=True) if e > 0) / total
    error = unit * (spread + 8) + 2.0**-50 * abs(top) + 2.0**-50 * abs(exact - top)
    check_number(name, Fraction(exact), Fraction(error), found)


def wrapped(name: str, number: int) -> int:
    info = np.iinfo(numpy_type(name))
    return (number - int(info.min)) % (1 << info.bits) + int(info.min)


def check_integers(name: str, function: str, group: list[int], found: int) -> None:
    if function in ("max", "min"):
        assert found == (max if function == "max" else min)(group)
        return
    if function == "product":
        assert found == wrapped(name, math.prod(group))
        return
    if function == "log_sum_exp":
        top = max(group)
        exact = top + math.log(math.fsum(math.exp(x - top) for x in group))
        check_cut(name, exact, found)
        return
    terms = {"l1": [abs(x) for x in group]}.get(function, group)
    if function in ("l2", "sum_square"):
        terms = [x * x for x in group]
    total = wrapped(name, sum(terms))
    if function == "mean":
        assert found == (abs(total) // len(group)) * (1 if total >= 0 else -1)
    elif function == "l2":
        assert found == (math.isqrt(total) if total >= 0 else np.iinfo(numpy_type(name)).min)
    elif function == "log_sum":
        check_cut(name, math.log(total) if total > 0 else -INF, found)
    else:
        assert found == total


def check_cut(name: str, exact: float, found: int) -> None:
    """`exact` was cut towards 0, or a neighbour of it."""
    info = np.iinfo(numpy_type(name))
    near = [exact, exact * (1 - 2.0**-50), exact * (1 + 2.0**-50)]
    wanted = {
        int(info.min) if x <= info.min else int(info.max) if x >= info.max else int(x) for x in near
    }
    assert min(wanted) <= found <= max(wanted), f"{found}, exact {exact}"


def of_nothing(name: str, function: str) -> float:
    """The result of a group of no elements: of integers the nearest number to that of floats, 0 for NaN."""
    exact = EMPTY[function]
    if name in FLOATS:
        return exact
    if name == "BOOL":
        return exact > 0
    info = np.iinfo(numpy_type(name))
    return 0 if math.isnan(exact) else int(min(max(exact, info.min), info.max))


def check_results(
    name: str, function: str, nan: str, x: np.ndarray, axes: Sequence[int], out: np.ndarray
) -> None:
    """Each group's result in `out`, in row-major order."""
    groups, found = groups_of(x, axes), out.reshape(-1)
    if name in FLOATS:
        with np.errstate(invalid="ignore"):
            groups, found = groups.astype(np.float64), found.astype(np.float64)
    assert len(groups) == len(found)
    for number, (group, result) in enumerate(zip(groups.tolist(), found.tolist(), strict=True)):
        try:
            if name in FLOATS:
                check_floats(name, function, nan, group, result)
            else:
                check_integers(name, function, group, result)
        except AssertionError as error:
            raise AssertionError(f"group {number} {group[:20]}: {error}") from error
