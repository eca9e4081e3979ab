"""Outputs that share memory with an input or with another output: a right answer or a clear error, never a wrong one.

A buffer holds an input; the outputs are views of the same buffer, or of one beside it: the same array, shifted by any
number of bytes, reversed, transposed, every second element, fields of one record, empty. Where the call answers, the
input is unchanged and the answer is the oracle's; where it refuses, no byte of the buffer is changed.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter

import numpy as np
from draw import POISON, Random

from specops import ValidationError
from stress.draws import FAMILIES, valid
from stress.draws.common import Call
from stress.memory import copy_bits, reach

KINDS = ["same", "shifted", "reversed", "transposed", "alternate", "fields", "apart", "random"]


def strides_of(random: Random, kind: str, shape: tuple[int, ...], item: int) -> list[int]:
    """Strides of a view whose elements do not overlap one another."""
    order = list(range(len(shape)))[::-1]
    if kind == "transposed":
        order = order[::-1]
    elif kind == "random":
        order = [int(d) for d in random.permutation(len(shape))]
    step = item
    if kind in ("alternate", "fields"):
        step = 2 * item
    elif kind == "random":
        step = item * int(random.integers(1, 3)) + int(random.integers(2))
    strides = [0] * len(shape)
    for d in order:
        strides[d] = step
        step *= max(1, shape[d])
        if kind == "reversed" or (kind == "random" and random.random() < 0.3):
            strides[d] = -strides[d]
    return strides


def views(
    random: Random, kind: str, call: Call, given: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """One buffer; an input of the given values in it; and the outputs, in it too."""
    tensors = [(given.shape, given.dtype), *call.outputs]
    placed = []
    at = 0
    for number, (shape, dtype) in enumerate(tensors):
        own = kind if number or kind in ("alternate", "fields", "random") else "same"
        strides = strides_of(random, own, shape, dtype.itemsize)
        before, behind = reach(shape, strides, dtype.itemsize)
        start = 0
        if kind == "shifted" and number:
            start = int(random.integers(0, given.nbytes + 2 * dtype.itemsize))
        elif kind in ("alternate", "fields"):  # between the elements of the one before
            start = dtype.itemsize * (number % 2)
        elif kind == "random":
            start = int(random.integers(0, 64))
        elif kind == "apart":
            start = at
        at = start + before + behind
        placed.append((shape, dtype, strides, start + before, start + before + behind))
    buffer = np.full(max(end for *_, end in placed) + 8, POISON, np.uint8)
    arrays = [
        np.ndarray(shape, dtype, buffer, at, strides) for shape, dtype, strides, at, _ in placed
    ]
    x = arrays[0]
    copy_bits(x, given)
    return buffer, x, arrays[1:]


def check_case(seed: int, number: int) -> str:
    """One case. Returns what became of it."""
    random = np.random.default_rng([seed, number, 7])
    call = valid(random, FAMILIES[number % len(FAMILIES)])
    kind = KINDS[random.integers(len(KINDS))]
    try:
        inputs = list(call.inputs)
        at = int(random.integers(len(inputs)))
        buffer, x, outputs = views(random, kind, call, inputs[at])
        inputs[at] = x
        given, values = buffer.copy(), x.copy()
        out = outputs[0] if len(outputs) == 1 else tuple(outputs)
        apart = not any(
            np.may_share_memory(a, b) for i, a in enumerate([x, *outputs]) for b in outputs[i:]
        )
        try:
            call.function(*inputs, **call.arguments, out=out)
        except ValidationError as error:
            assert {v.id for v in error.violations} <= {"overlap", "output_overlap"}, str(error)
            assert not apart, f"refused, though nothing is shared: {error}"
            assert np.array_equal(buffer, given), "a refused call changed memory"
            return f"{kind}, refused"
        bits = f"u{x.dtype.itemsize}"
        assert np.array_equal(x.view(bits), values.view(bits)), "the input was changed"
        call.check(outputs, *inputs)
        return f"{kind}, right"
    except Exception as error:
        raise AssertionError(
            f"{number}, {kind}, {call}: {type(error).__name__}: {error}"
        ) from error


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60, help="time to run for (default: 60)")
    parser.add_argument("--count", type=int, default=10**9, help="maximum number of cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    parser.add_argument("--case", type=int, help="repeat this case alone")


def run(options: argparse.Namespace) -> int:
    if options.case is not None:
        try:
            print(check_case(options.seed, options.case))
        except AssertionError:
            traceback.print_exc()
            return 1
        return 0
    counts: Counter[str] = Counter()
    end = time.monotonic() + options.seconds
    number = 0
    while number < options.count and time.monotonic() < end:
        try:
            counts[check_case(options.seed, number)] += 1
        except AssertionError as error:
            counts["finding"] += 1
            print(f"finding: {error}", flush=True)
        number += 1
        if number % 5000 == 0:
            print(f"{number} cases", flush=True)
    for kind, count in sorted(counts.items()):
        print(f"{count:8} {kind}")
    print(f"overlap: {number} cases, {counts['finding']} findings (seed {options.seed})")
    return counts["finding"]
