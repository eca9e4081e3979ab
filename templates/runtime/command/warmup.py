"""specops warmup: compile ahead what a first call would compile, into Numba's cache on disk."""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from typing import Any

from specops import cache, functions
from specops.command.catalogue import Entry, UsageError, entries, find, near
from specops.command.terminal import Progress, complain, counted, say
from specops.errors import ValidationError
from specops.functions import Asked
from specops.operator import CompiledOperator
from specops.validation import NotUnderstood, Operator, data_type
from specops.vocabulary import DATA_TYPES


def run(options: argparse.Namespace) -> int:
    """The verb."""
    names = options.operators or sorted({e.name for e in entries()})
    chosen = list(dict.fromkeys(e for name in names for e in find(name)))
    named = [_dtype(name) for name in options.dtype if name != "all"]
    wanted = None if "all" in options.dtype else named
    work = []
    for entry in chosen:
        operator: Operator = import_module(f"specops.{entry.id.replace('/', '.')}").OPERATOR
        allowed = _allowed(operator)
        work += [(entry, operator, d) for d in (wanted or allowed) if d in allowed]
    if not work:
        raise UsageError(f"none of these operators has data type {', '.join(options.dtype)}")
    without: list[str] = []  # what no example can be run in
    begin = time.perf_counter()
    with Progress(len(work)) as progress, warnings.catch_warnings():
        warnings.filterwarnings("ignore", cache.COMPILED_ANEW)  # told below, as an error
        for entry, operator, dtype in work:
            progress.begin(f"{entry.id} {dtype}")
            if not _compile(entry, operator, dtype):
                without.append(f"{entry.id} {dtype}")
            progress.end()
    seconds = time.perf_counter() - begin
    if reason := cache.lost():
        complain("error", f"compiled, but not kept: {reason}", cache.HINT)
        return 1
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
    """Compile what the operator's examples run, and all that other shapes and strides would; False without example."""
    compiled = [_operator(operator, call, dtype) for call in entry.calls]
    for one in compiled:
        if one is not None:
            one.warm_up()
    return any(compiled)


def _operator(operator: Operator, call: dict[str, Any], dtype: str) -> CompiledOperator | None:
    """The operator of an example, with another data type in place of the first input's."""
    kinds = [kind for kind, _ in call["inputs"].values()]
    inputs = {
        name: (DATA_TYPES[dtype if kind == kinds[0] else kind].numpy, tuple(sizes))
        for name, (kind, sizes) in call["inputs"].items()
    }
    outputs = {
        f.name: Asked(f.name in call["outputs"], sizes=call["sizes"].get(f.name))
        for f in operator.fields
        if f.kind == "output"
    }
    try:
        return functions.compiled(operator, inputs, call["attributes"], outputs)
    except ValidationError:  # an example of another data type
        return None
