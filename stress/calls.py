"""Valid and invalid calls of every operator: each gives the oracle's answer or the documented error.

Every tensor lies against a page that may not be touched, with poison around and between its elements. The calls are
made in a child process, so that a crash is a finding with its number; `--family F --case N` repeats it alone, in this
process.
"""

from __future__ import annotations

import argparse
import mmap
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from draw import INPUT_LAYOUTS, LAYOUTS, Random, layout

from specops import ValidationError
from specops.lowering.max_pool import MaxPool
from specops.operator import CompiledOperator
from stress import PROJECT
from stress.draws import (
    FAMILIES,
    Call,
    valid,
    wild,
    wild_call,
    wild_node,
    wrong_arguments,
    wrong_inputs,
    wrong_outputs,
)
from stress.memory import Arena, reach

SLICE = 20.0  # seconds of one family's turn
LIMIT = 60.0  # seconds for one call
SHARES = {"valid": 0.5, "faulty": 0.3, "wild": 0.15, "node": 0.05}


class Bench:
    """The arenas of the input and of up to two outputs."""

    def __init__(self) -> None:
        self.input = Arena()
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


def arrays(random: Random, bench: Bench, call: Call) -> tuple[np.ndarray, list[np.ndarray]]:
    """The input and the outputs in their places."""
    kind = str(random.choice(INPUT_LAYOUTS))
    x = placed(random, bench.input, kind, call.x.shape, call.x.dtype)
    bits = f"u{x.dtype.itemsize}"
    x.view(bits)[...] = call.x.view(bits)
    if random.random() < 0.3:
        x.flags.writeable = False
    if random.random() < 0.1:
        x = x.view(type("Subclass", (np.ndarray,), {}))
    outputs = []
    for arena, (shape, dtype) in zip(bench.outputs, call.outputs, strict=False):
        outputs.append(placed(random, arena, str(random.choice(LAYOUTS)), shape, dtype))
    return x, outputs


def asked(outputs: list[Any]) -> Any:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def succeeds(random: Random, bench: Bench, call: Call) -> None:
    """The call gives the oracle's answer, and touches nothing but the outputs' elements."""
    x, outputs = arrays(random, bench, call)
    before = bench.input.taken()
    if random.random() < 0.2:
        result = call.function(x, **call.arguments)
        found = [np.asarray(r) for r in (result if len(outputs) > 1 else [result])]
        given = []
    else:
        given = outputs
        result = call.function(x, **call.arguments, out=asked(outputs))
        found = list(result) if len(outputs) > 1 else [result]
        assert all(f is o for f, o in zip(found, outputs, strict=True)), "another array is returned"
    assert bench.input.unchanged(before), "the input was changed"
    for array, (shape, dtype) in zip(found, call.outputs, strict=True):
        assert (array.shape, array.dtype) == (shape, dtype), f"found {array.shape} of {array.dtype}"
    call.check(np.asarray(x), found)
    for arena, array in zip(bench.outputs, given, strict=False):
        assert arena.surroundings_kept(array), (
            "bytes outside the elements of an output were changed"
        )


def is_refused(random: Random, bench: Bench, call: Call) -> str:
    """With something wrong in it the call is refused, and no byte is written. Returns what was wrong."""
    x, outputs = arrays(random, bench, call)
    states = [(arena, arena.taken()) for arena in (bench.input, *bench.outputs[: len(outputs)])]
    arguments, given = dict(call.arguments), x
    wrong = []
    places = random.permutation([*arguments, "x", "out"])
    for place in places[: 1 + (random.random() < 0.2)].tolist():
        if place == "x":
            choices = wrong_inputs(call.x)
        elif place == "out":
            at = int(random.integers(len(outputs)))
            choices = wrong_outputs(outputs[at])
        else:
            choices = wrong_arguments(call, place)
        if not choices:
            continue
        value = choices[random.integers(len(choices))]
        if place == "x":
            given = value
        elif place == "out":
            outputs = [*outputs[:at], value, *outputs[at + 1 :]]
        else:
            arguments[place] = value
        wrong.append(f"{place} = {type(value).__name__} {value!r:.80}")
    if not wrong:
        return ""
    text = "; ".join(wrong)
    try:
        call.function(given, **arguments, out=asked(outputs))
    except ValidationError as error:
        assert str(error) and error.violations, "an empty error"
    else:
        raise AssertionError(f"not refused: {text}")
    finally:
        for arena, before in states:
            assert arena.unchanged(before), f"bytes were changed by a refused call: {text}"
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
    call = wild_call(random, family, members, function)
    if call is None:
        planned(random, compiled, given["InputTensor"].Strides)
        return "accepted"
    tensors = [given["InputTensor"], given["OutputTensor"], given.get("OutputIndicesTensor")]
    views = []
    upper = bool(random.integers(2))
    for tensor, arena in zip(tensors, (bench.input, *bench.outputs), strict=True):
        if tensor is None:
            continue
        item = np.dtype(call.x.dtype if not views else call.outputs[len(views) - 1][1]).itemsize
        strides = [s * item for s in tensor.Strides] if tensor.Strides is not None else None
        sizes = tuple(tensor.Sizes)
        if strides is None:
            strides = layout(random, "c", sizes, item).strides
        dtype = call.x.dtype if not views else call.outputs[len(views) - 1][1]
        array = arena.place(sizes, strides, dtype, upper)
        if array is None:
            return "accepted"
        views.append(array)
    x, *outputs = views
    bits = f"u{x.dtype.itemsize}"
    x.view(bits)[...] = call.x.view(bits)
    before = bench.input.taken()
    compiled(x, out=asked(outputs))
    assert bench.input.unchanged(before), "the input was changed"
    call.check(x, outputs)
    for arena, array in zip(bench.outputs, outputs, strict=False):
        assert arena.surroundings_kept(array), (
            "bytes outside the elements of an output were changed"
        )
    return "run"


def planned(random: Random, compiled: CompiledOperator, strides: Any = None) -> None:
    """The walk of a tensor that is too large to be run: its numbers fit 64 bits."""
    (tensor,), outputs = compiled._inputs.values(), compiled._outputs.values()
    item = tensor.numpy_dtype.itemsize
    steps = [stride * item for stride in (strides or tensor.strides)]
    if random.random() < 0.5:
        steps = [0] * len(steps)
    everything = [(tensor.sizes, steps)]
    for output in outputs:
        everything.append((output.sizes, [s * output.numpy_dtype.itemsize for s in output.strides]))
    if any(sum(reach(sizes, steps, 8)) >= 2**63 for sizes, steps in everything):
        return  # no array has such strides
    if all(0 not in sizes for sizes, _ in everything):
        kernel: Any = compiled._kernel
        given = [tuple(steps) for _, steps in everything]
        if isinstance(kernel, MaxPool) and len(outputs) == 1:
            given.append(())  # no indices
        kernel._plan(*given)


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
        raise AssertionError(
            f"{family} {number}, {text}: {type(error).__name__}: {error}"
        ) from error
    return kind


# --- the child process ---


def child(options: argparse.Namespace) -> None:
    """Cases one by one; the number of each is written to a file before it begins, findings to standard output."""
    family, number = options.family, options.case
    warnings.simplefilter("error")
    bench = Bench()
    counts: Counter[str] = Counter()
    with open(options.child, "r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        end = time.monotonic() + options.seconds
        while counts.total() < options.count and time.monotonic() < end:
            place[:] = number.to_bytes(8, "little")
            try:
                counts[check_case(family, options.seed, number, bench)] += 1
            except AssertionError as error:
                counts["finding"] += 1
                text = " | ".join(str(error).splitlines())
                print(f"finding: {text[:2000]}", flush=True)
            number += 1
    for kind, count in counts.items():
        print(f"count: {count} {kind}")


def turn(
    family: str, seed: int, number: int, count: int, seconds: float
) -> tuple[int, Counter[str]]:
    """Some cases of a family in a child; the number after the last, and what they were."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "number")
        place.write_bytes(bytes(8))
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "stress",
            "calls",
            "--family",
            family,
        ]
        command += ["--seed", str(seed), "--case", str(number), "--count", str(count)]
        command += ["--seconds", str(seconds), "--child", str(place)]
        with (
            open(Path(folder, "out"), "w+") as out,
            open(Path(folder, "err"), "w+") as err,
            subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=err) as process,
        ):
            at, since = -1, time.monotonic()
            while process.poll() is None:
                time.sleep(0.05)
                now = int.from_bytes(place.read_bytes(), "little")
                if now != at:
                    at, since = now, time.monotonic()
                elif time.monotonic() - since > LIMIT:
                    print(f"finding: {family} {now} takes longer than {LIMIT:g} s", flush=True)
                    counts["finding"] += 1
                    process.kill()
            now = int.from_bytes(place.read_bytes(), "little")
            out.seek(0)
            err.seek(0)
            for line in out:
                kind, _, text = line.rstrip("\n").partition(": ")
                if kind == "finding":
                    print(line, end="", flush=True)
                elif kind == "count":
                    many, _, kind = text.partition(" ")
                    counts[kind] += int(many)
            if process.returncode not in (0, -getattr(signal, "SIGKILL", 9)):
                text = "".join(err.readlines()[-15:])
                print(
                    f"finding: {family} {now} ended the process with {process.returncode}\n{text}",
                    flush=True,
                )
                counts["finding"] += 1
    return now + 1, counts


# --- the verb ---


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--family", choices=FAMILIES, help="one family of operators; all by default"
    )
    parser.add_argument("--seconds", type=float, default=60, help="for all families together")
    parser.add_argument(
        "--count", type=int, default=sys.maxsize, help="cases of each family at most"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="repeat this one alone, or begin here")
    parser.add_argument("--child", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    if options.child:
        child(options)
        return 0
    if options.case is not None:
        return repeat(options)
    families = [options.family] if options.family else FAMILIES
    numbers = dict.fromkeys(families, 0)
    totals = {family: Counter[str]() for family in families}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        open_families = [f for f in families if totals[f].total() < options.count]
        if not open_families:
            break
        for family in open_families:
            seconds = min(SLICE, options.seconds / len(families), max(1.0, end - time.monotonic()))
            left = options.count - totals[family].total()
            numbers[family], counts = turn(family, options.seed, numbers[family], left, seconds)
            totals[family] += counts
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
        print(check_case(options.family, options.seed, options.case, Bench()))
    except AssertionError:
        traceback.print_exc()
        return 1
    return 0
