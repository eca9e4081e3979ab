"""specops warmup: compile ahead what a first call would compile, into Numba's cache on disk."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Any

import numpy as np

from specops import functions, launch
from specops.command.catalogue import Entry, UsageError, entries, find, near
from specops.command.terminal import Progress, counted, say
from specops.errors import ValidationError
from specops.functions import Asked
from specops.validation import NotUnderstood, Operator, data_type
from specops.vocabulary import DATA_TYPES

LARGE_BYTES = 1 << 21  # of an input that is worth several threads for any operator


def run(options: argparse.Namespace) -> int:
    """The verb."""
    names = options.operators or sorted({e.name for e in entries()})
    chosen = list(dict.fromkeys(e for name in names for e in find(name)))
    wanted = None if "all" in options.dtype else [_dtype(name) for name in options.dtype]
    work = []
    for entry in chosen:
        operator: Operator = import_module(f"specops.{entry.id.replace('/', '.')}").OPERATOR
        allowed = _allowed(operator)
        work += [(entry, operator, d) for d in (wanted or allowed) if d in allowed]
    if not work:
        raise UsageError(f"none of these operators has data type {', '.join(options.dtype)}")
    without: list[str] = []  # what no example can be run in
    begin = time.perf_counter()
    with Progress(len(work)) as progress:
        for entry, operator, dtype in work:
            progress.begin(f"{entry.id} {dtype}")
            if not _compile(entry, operator, dtype):
                without.append(f"{entry.id} {dtype}")
            progress.end()
    seconds = time.perf_counter() - begin
    operators = len({entry.id for entry, _, _ in work})
    dtypes = len({dtype for _, _, dtype in work})
    say(
        f"{counted(operators, 'operator')}, {counted(dtypes, 'data type')}: ready in {seconds:.1f} s"
    )
    if without:
        say(f"no example to run, so nothing compiled: {', '.join(without)}")
    return 0


def _dtype(name: str) -> str:
    try:
        return data_type(name.upper() if name.upper() in DATA_TYPES else name)
    except NotUnderstood as problem:
        known = [*DATA_TYPES, "all"]
        hint = near(name, known) or f"there are {', '.join(known)}"
        raise UsageError(f"there is no data type {problem.found}", hint) from None


def _allowed(operator: Operator) -> list[str]:
    """The data types of the first input."""
    first = next(f.name for f in operator.fields if f.kind == "input")
    return list(operator.data_types(first))


def _compile(entry: Entry, operator: Operator, dtype: str) -> bool:
    """Run each example of the operator, as it is and enlarged, so that serial and parallel kernels are compiled.

    False where none can be run in this data type.
    """
    ran = False
    for call in entry.calls:
        kinds = [kind for kind, _ in call["inputs"].values()]
        numpy = {
            name: DATA_TYPES[dtype if kind == kinds[0] else kind].numpy
            for name, (kind, _) in call["inputs"].items()
        }
        least = min(
            int(np.prod(sizes)) * numpy[name].itemsize
            for name, (_, sizes) in call["inputs"].items()
        )
        for large in (False, True):
            # So many more entries along the first dimension of all tensors that several threads pay.
            times = -(-LARGE_BYTES // least) if large and least else 1
            inputs = {
                name: (numpy[name], _enlarged(sizes, times))
                for name, (_, sizes) in call["inputs"].items()
            }
            outputs = {
                f.name: Asked(
                    f.name in call["outputs"],
                    sizes=_enlarged(call["sizes"][f.name], times)
                    if f.name in call["sizes"]
                    else None,
                )
                for f in operator.fields
                if f.kind == "output"
            }
            ran |= _call(operator, inputs, call["attributes"], outputs)
            if launch.get_num_threads() == 1:
                break
    return ran


def _enlarged(sizes: list[int], times: int) -> tuple[int, ...]:
    return (sizes[0] * times, *sizes[1:]) if sizes else ()


def _call(
    operator: Operator,
    inputs: dict[str, tuple[np.dtype, tuple[int, ...]]],
    attributes: dict[str, Any],
    outputs: dict[str, Asked],
) -> bool:
    try:
        compiled = functions.compiled(operator, inputs, attributes, outputs)
    except ValidationError:  # an example of another data type, or of one size only
        return False
    compiled(*(np.zeros(shape, dtype) for dtype, shape in inputs.values()))
    return True
