"""Windows that slide over the last dimensions: their numbers, and what each dialect calls them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from draw import Random
from pool_oracle import Windows

from specops.vocabulary import ENUMS
from stress.draws.common import (
    FLOATS,
    OPSETS,
    WILD,
    Members,
    Node,
    Shape,
    drawn_from,
    wild_attribute,
    wild_numbers,
    wild_shape,
)


@dataclass
class Pool:
    """Numbers of a pooling for each spatial dimension, and the sizes that follow."""

    window: list[int]
    strides: list[int]
    dilations: list[int]
    start: list[int]
    end: list[int]
    outputs: list[int]

    def windows(self) -> Windows:
        """The same for the oracles."""
        numbers = (self.window, self.strides, self.dilations, self.start, self.outputs)
        return Windows(*(tuple(map(int, several)) for several in numbers))

    def add(self, *numbers: int) -> None:
        """One more dimension; the numbers in the order of the fields."""
        for field, number in zip(vars(self).values(), numbers, strict=True):
            field.append(number)


def windows_hold_input(sizes: Shape, pool: Pool) -> bool:
    """By trying each window."""
    for n, w, s, d, p, o in zip(
        sizes, pool.window, pool.strides, pool.dilations, pool.start, pool.outputs, strict=True
    ):
        for i in range(o):
            if not any(0 <= i * s - p + j * d < n for j in range(w)):
                return False
    return True


def pool_of(random: Random, sizes: Shape, ceil: str, dilated: bool = True) -> Pool:
    """A pooling that fits; `ceil`: "" rounds down, "page" up, "onnx" up without windows that begin in the padding."""
    pool = Pool([], [], [], [], [], [])
    work = 2500 // max(1, math.prod(sizes) // 40)
    for n in sizes:
        while True:
            w = int(random.integers(1, 6))
            d = int(random.choice([1, 1, 2, 3])) if dilated else 1
            p, q = (int(random.choice([0, 0, 1, 2, 5])) for _ in range(2))
            s = int(random.choice([1, 1, 2, 3, w, 7]))
            room = n + p + q - (w - 1) * d - 1
            if room >= 0:
                break
        steps = room // s if not ceil else -(-room // s)
        o = steps + 1
        if ceil == "onnx" and steps * s >= n + p:
            o = steps
        if o * w > work:
            s = w = d = 1
            p = q = 0
            s = n
            o = 1
        work = max(1, work // (o * w))
        pool.add(w, s, d, p, q, o)
    return pool


def auto_padded(random: Random, sizes: Shape, auto: str, dilated: bool) -> Pool:
    """A pooling whose padding follows from an ONNX auto_pad other than NOTSET."""
    pool = Pool([], [], [], [], [], [])
    for n in sizes:
        while True:
            w, s = (int(number) for number in random.integers(1, 4, 2))
            d = int(random.choice([1, 1, 2, 3])) if dilated else 1
            reach = (w - 1) * d + 1
            if auto != "VALID" or reach <= n:
                break
        if auto == "VALID":
            pool.add(w, s, d, 0, 0, (n - reach) // s + 1)
            continue
        o = -(-n // s)
        padding = max(0, (o - 1) * s + reach - n)
        first = padding // 2 if auto == "SAME_UPPER" else padding - padding // 2
        pool.add(w, s, d, first, padding - first, o)
    return pool


def pooling_shape(random: Random, batches: int, spatial: int) -> Shape:
    sizes = [int(random.choice([1, 1, 2, 3])) for _ in range(batches)]
    left = 60
    for _ in range(spatial):
        n = int(random.integers(1, max(2, min(left, 24))))
        left //= n
        sizes.append(n)
    return tuple(sizes)


def pool_of_shape(
    random: Random, batches: int, spatial: int, ceil: str, dilated: bool, held: bool
) -> tuple[Shape, Pool]:
    """An input's shape and a pooling of it; `held`: each window holds some of the input."""
    while True:
        shape = pooling_shape(random, batches, spatial)
        pool = pool_of(random, shape[batches:], ceil, dilated)
        if not held or windows_hold_input(shape[batches:], pool):
            return shape, pool


# --- what the dialects call them ---


def for_numpy(pool: Pool, ceil: str) -> dict[str, Any]:
    return {
        "window_size": pool.window,
        "strides": pool.strides,
        "start_padding": tuple(pool.start),
        "end_padding": pool.end,
        "dilations": np.array(pool.dilations),
        "ceil_mode": bool(ceil),
    }


def for_onnx(
    random: Random, sizes: Shape, rounds: bool, dilated: bool
) -> tuple[Pool, dict[str, Any]]:
    """A pooling, and the attributes of an operator that can round up, and has dilations."""
    ceil = rounds and bool(random.integers(2))
    attributes: dict[str, Any]
    if random.random() < 0.25:
        auto = str(random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        pool = auto_padded(random, sizes, auto, dilated)
        attributes = {"auto_pad": drawn_from(random, [auto, ENUMS["ONNX_AUTO_PAD"][auto]])}
    else:
        pool = pool_of(random, sizes, "onnx" if ceil else "", dilated)
        given = drawn_from(random, [None, "NOTSET", ""])
        attributes = {"auto_pad": given, "pads": pool.start + pool.end}
    attributes |= {"kernel_shape": pool.window, "strides": pool.strides}
    if dilated:
        attributes["dilations"] = pool.dilations
    if rounds:
        attributes["ceil_mode"] = int(ceil)
    return pool, attributes


def for_directml(pool: Pool, dilated: bool) -> dict[str, Any]:
    arguments = {
        "window_size": pool.window,
        "strides": pool.strides,
        "start_padding": pool.start,
        "end_padding": pool.end,
    }
    return {**arguments, "dilations": pool.dilations} if dilated else arguments


def for_description(random: Random, pool: Pool, dilated: bool) -> Members:
    spatial = len(pool.window)
    members = {
        "DimensionCount": [None, spatial][random.integers(2)],
        "WindowSize": pool.window,
        "Strides": pool.strides,
        "StartPadding": pool.start,
        "EndPadding": pool.end,
        "feature_level": [None, "6.4"][random.integers(2)] if spatial > 1 else None,
    }
    return {**members, "Dilations": pool.dilations} if dilated else members


# --- any numbers ---


def wild_windows(
    random: Random, rank: int, small: bool, dilated: bool
) -> tuple[list[int], list[int], Members]:
    """The sizes of a pooling's input and output, and the members that say how it pools."""
    sizes = wild_numbers(random, rank, small)
    spatial = rank - 2
    window, strides, start, end, dilations = (
        wild_numbers(random, spatial, small) for _ in range(5)
    )
    if random.random() < 0.7:  # all right but for one number, perhaps
        shape, pool = pool_of_shape(random, 2, spatial, "", dilated, True)
        sizes = list(shape)
        window, strides, start, end = pool.window, pool.strides, pool.start, pool.end
        dilations = pool.dilations
        if random.random() < 0.7:
            numbers = [window, strides, start, end, dilations][random.integers(5)]
            numbers[random.integers(spatial)] = WILD[random.integers(len(WILD))]
    if not dilated:
        dilations = [1] * spatial
    result = sizes[:2]
    for i, n in enumerate(sizes[2:]):
        room = n + start[i] + end[i] - (window[i] - 1) * dilations[i] - 1
        result.append(max(0, min(2**32, room // max(1, strides[i]) + 1 + (random.random() < 0.2))))
    members = {"WindowSize": window, "Strides": strides, "StartPadding": start, "EndPadding": end}
    return sizes, result, {**members, "Dilations": dilations} if dilated else members


def pool_of_members(members: Members, outputs: Shape) -> Pool | None:
    """None where the oracle would take long."""
    window = members["WindowSize"]
    if math.prod(outputs) * math.prod(window) > 4000 or max(window) > 1000:
        return None
    dilations = members.get("Dilations", [1] * len(window))
    start, end = members["StartPadding"], members["EndPadding"]
    return Pool(window, members["Strides"], dilations, start, end, list(outputs))


def pooling_node(random: Random, operator: str) -> Node:
    rank = int(random.choice([3, 4, 4, 5]))
    attributes: dict[str, Any] = {"opset": int(random.choice(OPSETS))}
    spatial = rank - 2
    attributes["kernel_shape"] = wild_attribute(random, spatial)
    for name, count in (("strides", spatial), ("dilations", spatial), ("pads", 2 * spatial)):
        if random.random() < 0.5:
            attributes[name] = wild_attribute(random, count)
    if random.random() < 0.3:
        attributes["auto_pad"] = int(random.integers(4))
    attributes["ceil_mode"] = bool(random.integers(2)) or None
    return Node(operator, attributes, [(str(random.choice(FLOATS)), wild_shape(random, rank))])
