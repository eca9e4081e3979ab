"""Each of an input's layouts with each of an output's: the oracle's answer, and nothing written beside it.

Calls are drawn as for `stress calls`, half of them as if the caches were small. In each, tensors are packed, in every
order of up to three axes and some of more, or have a gap or run backward along one axis. The first answer is the
oracle's; one that is not the same to the bit is compared with the oracle as well.
"""

from __future__ import annotations

import argparse
import itertools
import time
import traceback
from contextlib import nullcontext

import numpy as np
from draw import Random

from specops.tensor import packed_strides
from stress import children, scale
from stress.draws import FAMILIES, valid
from stress.draws.common import Call, Shape
from stress.memory import Arena, copy_bits

LIMIT = 120.0  # seconds for one call in all layouts
BYTES = 1 << 22  # of a tensor at most, with gaps

Strides = tuple[int, ...]


def layouts(shape: Shape) -> dict[str, Strides]:
    """Strides in elements, by what makes them."""
    packed = packed_strides(shape)
    found = {"packed": tuple(packed)}
    long = [d for d, size in enumerate(shape) if size > 1]
    for axis in long:
        sizes = [2 * size if d == axis + 1 else size for d, size in enumerate(shape)]
        gap = packed_strides(sizes) if axis + 1 < len(shape) else [2 * step for step in packed]
        found[f"a gap along axis {axis}"] = tuple(gap)
        turned = [-step if d == axis else step for d, step in enumerate(packed)]
        found[f"axis {axis} backward"] = tuple(turned)
    for order in orders(long):
        steps, step = [1] * len(shape), 1
        for d in reversed(order):
            steps[d] = step
            step *= shape[d]
        found[f"axes in the order {', '.join(map(str, order))}"] = tuple(steps)
    return found


def orders(axes: list[int]) -> list[tuple[int, ...]]:
    """Others than the given one: of three axes all, of more these turned round and each axis moved to the end."""
    if len(axes) <= 3:
        return list(itertools.permutations(axes))[1:]
    moved = [[d for d in axes if d != axis] + [axis] for axis in axes[:-1]]
    return [tuple(order) for order in (axes[::-1], *moved)]


class Table:
    """The arenas of a call's tensors, and what to compare with."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._inputs = [Arena(BYTES) for _ in call.inputs]
        self._outputs = [Arena(BYTES) for _ in call.outputs]
        self._wanted: list[bytes] = []

    def check(self, edges: int, given: list[Strides], asked: list[Strides]) -> None:
        """The call with its tensors in layouts, at one of the four pairs of edges."""
        call = self._call
        inputs = [
            at_edge(arena, x.shape, strides, x.dtype, edges % 2 == 0)
            for arena, x, strides in zip(self._inputs, call.inputs, given, strict=True)
        ]
        for x, values in zip(inputs, call.inputs, strict=True):
            copy_bits(x, values)
        outputs = [
            at_edge(arena, shape, strides, dtype, edges < 2)
            for arena, (shape, dtype), strides in zip(
                self._outputs, call.outputs, asked, strict=True
            )
        ]
        before = [arena.taken() for arena in self._inputs]
        out = outputs[0] if len(outputs) == 1 else tuple(outputs)
        call.function(*inputs, **call.arguments, out=out)
        assert all(map(Arena.unchanged, self._inputs, before)), "an input was changed"
        found = [array.tobytes() for array in outputs]
        if found != self._wanted:
            call.check(outputs, *inputs)
            self._wanted = self._wanted or found
        for arena, array in zip(self._outputs, outputs, strict=True):
            assert arena.surroundings_kept(array), "bytes beside an output were changed"


def at_edge(
    arena: Arena, shape: Shape, strides: Strides, dtype: np.dtype, upper: bool
) -> np.ndarray:
    steps = [step * dtype.itemsize for step in strides]
    array = arena.place(shape, steps, dtype, upper)
    assert array is not None, f"{shape} with gaps takes more than {arena.bytes.size} bytes"
    return array


def check_case(family: str, seed: int, number: int, told: bool = False) -> str:
    """A call in all pairs of layouts; where it is `told`, each before it is tried."""
    random = np.random.default_rng([seed, number, 11])
    call = valid(random, family)
    with scale.drawn(random) if random.random() < 0.5 else nullcontext():
        return check_call(random, call, number, told)


def check_call(random: Random, call: Call, number: int, told: bool) -> str:
    table = Table(call)
    inputs = [layouts(x.shape) for x in call.inputs]
    outputs = [layouts(shape) for shape, _ in call.outputs]
    pairs = list(itertools.product(inputs[0], outputs[0]))
    for first, result in pairs:
        names = [first, *(some(random, others) for others in inputs[1:])]
        results = [result, *(some(random, others) for others in outputs[1:])]
        text = f"{number}, {call}; inputs {'; '.join(names)}; outputs {'; '.join(results)}"
        if told:
            print(text, flush=True)
        try:
            table.check(
                int(random.integers(4)),
                [of[name] for of, name in zip(inputs, names, strict=True)],
                [of[name] for of, name in zip(outputs, results, strict=True)],
            )
        except Exception as error:
            raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error
    return f"{len(pairs)} pairs"


def some(random: Random, names: dict[str, Strides]) -> str:
    return list(names)[random.integers(len(names))]


# --- the verb ---


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", choices=FAMILIES, help="a family of operators; by default all")
    parser.add_argument("--seconds", type=float, default=60, help="for all calls together")
    parser.add_argument("--count", type=int, default=10**9, help="calls at most")
    parser.add_argument("--seed", type=int, default=0, help="what the calls are drawn from")
    parser.add_argument(
        "--case", type=int, help="repeat this call alone, each pair told beforehand"
    )


def run(options: argparse.Namespace) -> int:
    families = [options.family] if options.family else FAMILIES

    def family(number: int) -> str:
        return families[number % len(families)]

    if options.case is not None:
        try:
            print(check_case(family(options.case), options.seed, options.case, told=True))
        except AssertionError:
            traceback.print_exc()
            return 1
        return 0

    def case(number: int) -> str:
        try:
            return check_case(family(number), options.seed, number)
        except AssertionError as error:
            return f"finding: {' | '.join(str(error).splitlines())[:2000]}"

    calls = pairs = findings = 0
    end = time.monotonic() + options.seconds
    for number, outcome in children.outcomes(case, options.count, LIMIT, end):
        calls += 1
        if outcome.endswith(" pairs"):
            pairs += int(outcome.removesuffix(" pairs"))
            continue
        findings += 1
        print(f"{family(number)} {number}: {outcome}", flush=True)
    print(f"layouts: {pairs} pairs of {calls} calls, {findings} findings (seed {options.seed})")
    return findings
