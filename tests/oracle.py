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


def args_of_groups(groups: np.ndarray, better: str, last: bool, nan: str) -> np.ndarray:
    """Position of the extreme element of each group, a row of at least one element."""
    missing = np.isnan(groups) if groups.dtype.kind == "f" else np.zeros(groups.shape, bool)
    present = np.where(missing, -math.inf if better == "greater" else math.inf, groups)
    if groups.dtype.kind != "f":
        present = groups  # as it is: no float holds all of 64 bits
    best = present.max(1, keepdims=True) if better == "greater" else present.min(1, keepdims=True)
    candidates = ~missing & (groups == best)
    if nan == "propagates":
        candidates = np.where(missing.any(1, keepdims=True), missing, candidates)
    backward = candidates[:, ::-1].argmax(1)
    places = groups.shape[1] - 1 - backward if last else candidates.argmax(1)
    return np.where(candidates.any(1), places, 0)


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
    shape = [1 if d in reduced else n for d, n in enumerate(x.shape)]
    groups = numbers(x).transpose(kept + reduced).reshape(math.prod(shape), -1)
    return args_of_groups(groups, better, last, nan).reshape(shape)


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


def softmax_of_groups(groups: np.ndarray, log: bool) -> np.ndarray:
    """Softmax of each group, a row, or its logarithm, in the groups' own type."""
    top = groups.max(1, keepdims=True)
    below = groups - np.where(np.isinf(top), math.nan, top).astype(groups.dtype)
    powers = np.exp(below)
    others = powers.copy()
    np.put_along_axis(others, groups.argmax(1)[:, None], 0, 1)  # the greatest counts 1, exactly
    rest = others.sum(1, keepdims=True)
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
    if x.size == 0:
        return wide(x)
    groups = wide(x).transpose(kept + reduced)
    rows = groups.reshape(-1, math.prod(x.shape[d] for d in reduced))
    ordered = softmax_of_groups(rows, log).reshape(groups.shape)
    return ordered.transpose(np.argsort(kept + reduced))


def lowest(dtype: np.dtype) -> object:
    """What pooling gives for a window of nothing but padding."""
    if dtype == np.bool_:
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def first_greatest(elements: list[float], nan: str) -> int:
    """Position of the element that wins a window."""
    present = [x for x in elements if not math.isnan(x)]
    if len(present) < len(elements) and (nan == "propagates" or not present):
        return next(i for i, x in enumerate(elements) if math.isnan(x))
    return elements.index(max(present))


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
            if places:
                seen_here = [scalars[base + offset] for offset, _ in places]
                offset, index = places[first_greatest(seen_here, nan)]
                values[(*batch, *output)] = elements[base + offset]
                indices[(*batch, *output)] = base + index
    return values, indices
