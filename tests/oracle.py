"""Expected results, slowly and plainly: NumPy and the standard library only, nothing of the package under test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

BETTER = ("greater", "less")
NAN_RULES = ("ignored", "propagates")


def numbers(x: np.ndarray) -> np.ndarray:
    """The same values in a type that NumPy compares: float16 and bfloat16 become float32, exactly."""
    if x.dtype.name == "bfloat16":
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if x.dtype == np.float16:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return x.astype(np.float32)
    return x


def arg_of_group(group: np.ndarray, better: str, last: bool, nan: str) -> int:
    """Position of the extreme element of a one-dimensional group of at least one element."""
    missing = np.isnan(group) if group.dtype.kind == "f" else np.zeros(group.shape, bool)
    if missing.any() and nan == "propagates":
        candidates = missing
    elif missing.all():
        return 0
    else:
        present = group[~missing]
        best = present.max() if better == "greater" else present.min()
        candidates = ~missing & (group == best)
    places = np.flatnonzero(candidates)
    return int(places[-1] if last else places[0])


def arg_reduce(
    x: np.ndarray,
    axes: tuple[int, ...],
    better: str = "greater",
    last: bool = False,
    nan: str = "ignored",
) -> np.ndarray:
    """Index of the extreme element of each group; reduced axes keep the size 1.

    Args:
        x: the array; its reduced axes are not empty.
        axes: the reduced axes, in any order. An index counts row-major over them in ascending order.
        better: "greater" for argmax, "less" for argmin.
        last: whether the last of several equal elements wins; -0.0 equals +0.0.
        nan: "ignored": NaN loses to every number, and a group of nothing but NaN gives 0;
            "propagates": the first (`last`: last) NaN wins.
    """
    assert better in BETTER and nan in NAN_RULES
    reduced = sorted(axes)
    kept = [d for d in range(x.ndim) if d not in reduced]
    groups = numbers(x).transpose(kept + reduced)
    shape = [1 if d in reduced else n for d, n in enumerate(x.shape)]
    out = np.zeros([x.shape[d] for d in kept], np.int64)
    for position in np.ndindex(out.shape):
        out[position] = arg_of_group(groups[position].reshape(-1), better, last, nan)
    return out.reshape(shape)


def hardmax(x: np.ndarray, axes: tuple[int, ...], nan: str = "ignored") -> np.ndarray:
    """1 at the first greatest element of each group, 0 elsewhere, in the type of `x`.

    Args:
        x: a float array; its reduced axes are not empty.
        axes: the reduced axes, in any order, perhaps none: then each element is its own group.
        nan: as of `arg_reduce`; a group of nothing but NaN has its 1 at its first element.
    """
    winners = arg_reduce(x, axes, "greater", False, nan)
    reduced = sorted(axes)
    out = np.zeros(x.shape, x.dtype)
    for group in np.ndindex(winners.shape):
        element = list(group)
        rest = int(winners[group])
        for d in reversed(reduced):
            rest, element[d] = divmod(rest, x.shape[d])
        out[tuple(element)] = 1
    return out


def wide(x: np.ndarray) -> np.ndarray:
    """The same values with more bits than the result needs: long double for float64, else float64.

    Some systems' long double is float64 itself.
    """
    with np.errstate(invalid="ignore"):  # as in `numbers`
        return np.array(numbers(x), np.longdouble if x.dtype == np.float64 else np.float64)


def softmax_of_group(group: np.ndarray, log: bool) -> np.ndarray:
    """Softmax of a one-dimensional group, or its logarithm, in the group's own type."""
    top = group.max()
    if np.isnan(group).any() or np.isinf(top):
        return np.full(group.shape, np.nan, group.dtype)
    below = group - top
    powers = np.exp(below)
    others = np.delete(powers, group.argmax())  # the greatest element itself counts 1, exactly
    rest = math.fsum(others) if group.dtype == np.float64 else others.sum()
    result: np.ndarray = below - np.log1p(rest) if log else powers / (1 + rest)
    return result


def softmax(x: np.ndarray, axes: tuple[int, ...], log: bool = False) -> np.ndarray:
    """Softmax of each group, or its logarithm, as float64, or as long double where `x` is float64.

    Args:
        x: a float array.
        axes: the axes along which a group lies, perhaps none: then each element is its own group.
        log: whether to give the logarithm.

    A NaN or +inf, or nothing but -inf, makes its whole group NaN; -inf among numbers gives 0 (-inf).
    """
    reduced = sorted(axes)
    kept = [d for d in range(x.ndim) if d not in reduced]
    result = wide(x)
    groups = result.transpose(kept + reduced)
    sizes = [x.shape[d] for d in reduced]
    for position in np.ndindex(*(x.shape[d] for d in kept)):
        group = groups[position].reshape(-1)
        groups[position] = softmax_of_group(group, log).reshape(sizes)
    return result


def lowest(dtype: np.dtype) -> object:
    """What pooling gives for a window of nothing but padding."""
    if dtype == np.bool_:
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def beats(new: float, old: float, nan: str) -> bool:
    """Whether an element that comes later takes the place of the greatest so far."""
    if math.isnan(new):
        return nan == "propagates" and not math.isnan(old)
    if math.isnan(old):
        return nan == "ignored"
    return new > old


def dot(numbers: Sequence[int], weights: Sequence[int]) -> int:
    return sum(n * w for n, w in zip(numbers, weights, strict=True))


def max_pool(
    x: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    out_spatial: Sequence[int],
    nan: str = "ignored",
    index_order: str = "row_major",
) -> tuple[np.ndarray, np.ndarray]:
    """The greatest element of each window, and where it stands in `x`.

    Args:
        x: the array; its last dimensions, as many as the window has, are spatial, those before are batches.
        window, strides, dilations, start_padding: one number for each spatial dimension. Along each, output o looks at
            the inputs o * stride - start_padding + j * dilation for j in 0..window - 1 that exist.
        out_spatial: the output's spatial sizes.
        nan: "ignored": NaN loses to every number; "propagates": the first NaN wins.
        index_order: "row_major" over all of x, or "column_major": the first spatial dimension counts fastest.

    Returns:
        The elements themselves (of equal ones the first in the window's row-major order), in the type of `x`, and int64
        indices; a window of nothing but padding gives -inf, or an integer type's least value, and -1.
    """
    assert nan in NAN_RULES and index_order in ("row_major", "column_major")
    sizes = x.shape[x.ndim - len(window) :]
    batches = x.shape[: x.ndim - len(window)]
    plane = math.prod(sizes)
    elements = np.ascontiguousarray(x).reshape(-1)
    scalars = numbers(elements).tolist()  # Python's int and float: exact, and compared exactly
    row_major = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    column_major = [math.prod(sizes[:d]) for d in range(len(sizes))]
    weights = row_major if index_order == "row_major" else column_major
    values = np.full((*batches, *out_spatial), lowest(x.dtype), x.dtype)
    indices = np.full(values.shape, -1, np.int64)
    for output in np.ndindex(*out_spatial):
        seen = []  # along each dimension, the inputs under the window
        for o, w, s, d, p, n in zip(
            output, window, strides, dilations, start_padding, sizes, strict=True
        ):
            along = [o * s - p + j * d for j in range(w)]
            seen.append([i for i in along if 0 <= i < n])
        places = [
            (dot(place, row_major), dot(place, weights)) for place in itertools.product(*seen)
        ]
        for number, batch in enumerate(np.ndindex(*batches)):
            base = number * plane
            winner, best = None, math.nan
            for offset, index in places:
                new = scalars[base + offset]
                if winner is None or beats(new, best, nan):
                    winner, best = (base + offset, base + index), new
            if winner is not None:
                values[(*batch, *output)] = elements[winner[0]]
                indices[(*batch, *output)] = winner[1]
    return values, indices
