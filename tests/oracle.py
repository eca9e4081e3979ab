"""Expected results, slowly and plainly: NumPy and the standard library only, nothing of the package under test."""

from __future__ import annotations

import numpy as np

BETTER = ("greater", "less")
NAN_RULES = ("ignored", "extreme")


def numbers(x: np.ndarray) -> np.ndarray:
    """The same values in a type that NumPy compares: float16 and bfloat16 become float32, exactly."""
    if x.dtype.name == "bfloat16":
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if x.dtype == np.float16:
        return x.astype(np.float32)
    return x


def arg_of_group(group: np.ndarray, better: str, last: bool, nan: str) -> int:
    """Position of the extreme element of a one-dimensional group of at least one element."""
    missing = np.isnan(group) if group.dtype.kind == "f" else np.zeros(group.shape, bool)
    if missing.any() and nan == "extreme":
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
            "extreme": the first (`last`: last) NaN wins.
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
