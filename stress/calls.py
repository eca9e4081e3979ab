"""Valid and invalid calls of every operator: each gives the oracle's answer or the documented error.

Every tensor lies against a page that may not be touched, with poison around and between its elements. The calls are
made in a child process, so that a crash is a finding with its number; `--family F --case N` repeats it alone, in this
process.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from draw import INPUT_LAYOUTS, LAYOUTS, Random, layout, numpy_type

from specops import ValidationError
from specops.directml import TensorDesc
from specops.lowering.max_pool import MaxPool
from specops.lowering.max_pool_grad import MaxPoolGrad
from specops.operator import CompiledOperator
from stress import children, scale
from stress.draws import FAMILIES, valid, wild, wild_call, wild_node
from stress.draws.common import Call, tensors_of
from stress.draws.wrong import wrong_arguments, wrong_inputs, wrong_outputs
from stress.memory import Arena, copy_bits, reach

SLICE = 20.0  # seconds of one family's turn
LIMIT = 60.0  # seconds for one call
FINE = "fine: "  # what a case of no finding says, before its kind
SHARES = {"valid": 0.5, "faulty": 0.3, "wild": 0.15, "node": 0.05}


class Bench:
    """The arenas of up to two inputs and two outputs."""

    def __init__(self) -> None:
        self.inputs = [Arena(), Arena()]
        self.outputs = [Arena(), Arena()]


def placed(random: Random, arena: Arena, kind: str, shape: Any, dtype: np.dtype) -> np.ndarray:
    """A tensor of some layout, at an edge of the arena."""
    upper, moved = bool(random.integers(2)), int(kind == "misaligned")
    strides = layout(random, kind, shape, dtype.itemsize).strides
    array = arena.place(shape, strides, dtype, upper, moved)
    if array is None:
        strides = layout(random, "c", shape, dtype.itemsize).strides
        array = arena.place(shape, strides, dtype, upper)
    assert array is not None
    return array


def arrays(random: Random, bench: Bench, call: Call) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The inputs and the outputs in their places."""
    inputs = []
    for arena, values in zip(bench.inputs, call.inputs, strict=False):
        kind = str(random.choice(INPUT_LAYOUTS))
        x = placed(random, arena, kind, values.shape, values.dtype)
        copy_bits(x, values)
        if random.random() < 0.3:
            x.flags.writeable = False
        if random.random() < 0.1:
            x = x.view(type("Subclass", (np.ndarray,), {}))
        inputs.append(x)
    outputs = []
    for arena, (shape, dtype) in zip(bench.outputs, call.outputs, strict=False):
        outputs.append(placed(random, arena, str(random.choice(LAYOUTS)), shape, dtype))
    return inputs, outputs


def asked(outputs: list[Any]) -> Any:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def taken(arenas: Sequence[Arena]) -> list[tuple[Arena, np.ndarray]]:
    """The bytes of the tensors and around them."""
    return [(arena, arena.taken()) for arena in arenas]


def unchanged(states: list[tuple[Arena, np.ndarray]]) -> bool:
    return all(arena.unchanged(before) for arena, before in states)


def succeeds(random: Random, bench: Bench, call: Call) -> None:
    """The call gives the oracle's answer, and touches nothing but the outputs' elements."""
    inputs, outputs = arrays(random, bench, call)
    before = taken(bench.inputs[: len(inputs)])
    if random.random() < 0.2:
        result = call.function(*inputs, **call.arguments)
        found = [np.asarray(r) for r in (result if len(outputs) > 1 else [result])]
        given = []
    else:
        given = outputs
        result = call.function(*inputs, **call.arguments, out=asked(outputs))
        found = list(result) if len(outputs) > 1 else [result]
        assert all(f is o for f, o in zip(found, outputs, strict=True)), "another array is returned"
    assert unchanged(before), "an input was changed"
    for array, (shape, dtype) in zip(found, call.outputs, strict=True):
        assert (array.shape, array.dtype) == (shape, dtype), f"found {array.shape} of {array.dtype}"
    call.check(found, *(np.asarray(x) for x in inputs))
    for arena, array in zip(bench.outputs, given, strict=False):
        assert arena.surroundings_kept(array), (
            "bytes outside the elements of an output were changed"
        )


def is_refused(random: Random, bench: Bench, call: Call) -> str:
    """With something wrong in it the call is refused, and no byte is written. Returns what was wrong."""
    inputs, outputs = arrays(random, bench, call)
    states = taken([*bench.inputs[: len(inputs)], *bench.outputs[: len(outputs)]])
    arguments, given = dict(call.arguments), list[Any](inputs)
    wrong = []
    arrays_given = [f"input {number}" for number in range(len(inputs))]
    places = random.permutation([*arguments, *arrays_given, "out"])
    for place in places[: 1 + (random.random() < 0.2)].tolist():
        if place in arrays_given:
            at = arrays_given.index(place)
            choices = wrong_inputs(call, at)
        elif place == "out":
            at = int(random.integers(len(outputs)))
            choices = wrong_outputs(outputs[at])
        else:
            choices = wrong_arguments(call, place)
        if not choices:
            continue
        value = choices[random.integers(len(choices))]
        if place in arrays_given:
            given[at] = value
        elif place == "out":
            outputs = [*outputs[:at], value, *outputs[at + 1 :]]
        else:
            arguments[place] = value
        wrong.append(f"{place} = {type(value).__name__} {value!r:.80}")
    if not wrong:
        return ""
    text = "; ".join(wrong)
    try:
        call.function(*given, **arguments, out=asked(outputs))
    except ValidationError as error:
        assert str(error) and error.violations, "an empty error"
    else:
        raise AssertionError(f"not refused: {text}")
    finally:
        assert unchanged(states), f"bytes were changed by a refused call: {text}"
    return text


def either(random: Random, bench: Bench, family: str) -> str:
    """A description at random is refused, or right if it can be run."""
    function, members = wild(random, family)
    level = members["feature_level"]
    given = {name: value for name, value in members.items() if name != "feature_level"}
    description = function.description(**given)
    try:
        description.validate(level)
    except ValidationError:
        return "refused"
    compiled = description.compile(level)
    call = wild_call(random, family, function, members)
    if call is None:
        planned(random, compiled)
        return "accepted"
    inputs = in_place(bench.inputs, random, tensors_of(function, members, "input"))
    outputs = in_place(bench.outputs, random, tensors_of(function, members, "output"))
    if inputs is None or outputs is None:
        return "accepted"
    for array, values in zip(inputs, call.inputs, strict=True):
        copy_bits(array, values)
    before = taken(bench.inputs[: len(inputs)])
    compiled(*inputs, out=asked(outputs))
    assert unchanged(before), "an input was changed"
    call.check(outputs, *inputs)
    for arena, array in zip(bench.outputs, outputs, strict=False):
        assert arena.surroundings_kept(array), (
            "bytes outside the elements of an output were changed"
        )
    return "run"


def in_place(
    arenas: Sequence[Arena], random: Random, tensors: Sequence[TensorDesc]
) -> list[np.ndarray] | None:
    """Arrays with the described strides; None where one is too large."""
    arrays = []
    for arena, tensor in zip(arenas, tensors, strict=False):
        sizes, dtype = tuple(tensor.Sizes), numpy_type(tensor.DataType)
        strides = layout(random, "c", sizes, dtype.itemsize).strides
        if tensor.Strides is not None:
            strides = tuple(s * dtype.itemsize for s in tensor.Strides)
        array = arena.place(sizes, strides, dtype, bool(random.integers(2)))
        if array is None:
            return None
        arrays.append(array)
    return arrays


def planned(random: Random, compiled: CompiledOperator) -> None:
    """The walk of tensors that are too large to be run: its numbers fit 64 bits."""
    tensors = [*compiled._inputs.values(), *compiled._outputs.values()]
    steps = [tuple(s * t.numpy_dtype.itemsize for s in t.strides) for t in tensors]
    for number in range(len(compiled._inputs)):
        if random.random() < 0.5:
            steps[number] = (0,) * len(steps[number])
    everything = list(zip([tensor.sizes for tensor in tensors], steps, strict=True))
    if any(sum(reach(sizes, steps, 8)) >= 2**63 for sizes, steps in everything):
        return  # no array has such strides
    if any(math.prod(tensor.sizes) * tensor.numpy_dtype.itemsize >= 2**63 for tensor in tensors):
        return  # nor is any so large, even where its strides are 0
    if any(0 in sizes for sizes, _ in everything):
        return
    lowered: Any = compiled._lowered
    if isinstance(lowered, MaxPool) and len(compiled._outputs) == 1:
        steps.append(())  # no indices
    elif isinstance(lowered, MaxPoolGrad):
        steps = [steps[0], steps[2], steps[1]]
    lowered._plan(*steps)


def node(random: Random, family: str) -> str:
    """An ONNX node with any numbers in it is refused, or can be planned for."""
    make, text = wild_node(random, family)
    try:
        compiled = make()
    except ValidationError:
        return "refused"
    try:
        planned(random, compiled)
    except Exception as error:
        raise AssertionError(f"{text}: {error!r}") from error
    return "accepted"


def check_case(family: str, seed: int, number: int, bench: Bench) -> str:
    """One case, which follows from its seed and number alone. Returns of what kind it was."""
    random = np.random.default_rng([FAMILIES.index(family), seed, number])
    with scale.drawn(random) if random.random() < 0.7 else nullcontext():
        return check(random, family, bench)


def check(random: Random, family: str, bench: Bench) -> str:
    kind = str(random.choice(list(SHARES), p=list(SHARES.values())))
    text = kind
    try:
        if kind == "node":
            return f"node, {node(random, family)}"
        if kind == "wild":
            return f"wild, {either(random, bench, family)}"
        call = valid(random, family)
        text = f"{kind}: {call}"
        if kind == "valid":
            succeeds(random, bench, call)
        elif not is_refused(random, bench, call):
            return "nothing wrong"
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error
    return kind


# --- the verb ---


@cache
def bench() -> Bench:
    """Of the process that asks for it."""
    return Bench()


def turn(family: str, seed: int, first: int, count: int, seconds: float) -> Counter[str]:
    """Cases of a family from number `first` on, in a child as long as none ends it; what they were."""

    def case(number: int) -> str:
        try:
            with warnings.catch_warnings(action="error"):
                return FINE + check_case(family, seed, first + number, bench())
        except AssertionError as error:
            return " | ".join(str(error).splitlines())[:2000]

    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    for number, outcome in children.outcomes(case, count, LIMIT, end, batch=count):
        if outcome.startswith(FINE):
            counts[outcome.removeprefix(FINE)] += 1
        else:
            counts["finding"] += 1
            print(f"finding: {family} {first + number}: {outcome}", flush=True)
    return counts


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", choices=FAMILIES, help="a family of operators; by default all")
    parser.add_argument("--seconds", type=float, default=60, help="for all families together")
    parser.add_argument(
        "--count", type=int, default=sys.maxsize, help="cases of each family at most"
    )
    parser.add_argument("--seed", type=int, default=0, help="what the cases are drawn from")
    parser.add_argument("--case", type=int, help="repeat this one alone")


def run(options: argparse.Namespace) -> int:
    if options.case is not None:
        return repeat(options)
    families = [options.family] if options.family else FAMILIES
    totals = {family: Counter[str]() for family in families}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        open_families = [f for f in families if totals[f].total() < options.count]
        if not open_families:
            break
        for family in open_families:
            seconds = min(SLICE, options.seconds / len(families), max(1.0, end - time.monotonic()))
            done = totals[family].total()
            totals[family] += turn(family, options.seed, done, options.count - done, seconds)
            print(f"{family}: {totals[family].total()} cases, {dict(totals[family])}", flush=True)
    findings = sum(counts["finding"] for counts in totals.values())
    cases = sum(counts.total() for counts in totals.values())
    print(f"calls: {cases} cases, {findings} findings (seed {options.seed})")
    return findings


def repeat(options: argparse.Namespace) -> int:
    """One case in this process."""
    if not options.family:
        raise SystemExit("--case needs --family")
    try:
        print(check_case(options.family, options.seed, options.case, bench()))
    except AssertionError:
        traceback.print_exc()
        return 1
    return 0
