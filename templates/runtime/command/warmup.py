"""specops warmup: compile ahead what a first call would compile, into Numba's cache on disk."""

from __future__ import annotations

import argparse
import time
import warnings

from specops import ahead, cache
from specops.command.terminal import Progress, complain, counted, say


def run(options: argparse.Namespace) -> int:
    """The verb."""
    steps = ahead.steps(options.operators, options.dtype)
    begin = time.perf_counter()
    with Progress(len(steps)) as progress, warnings.catch_warnings():
        warnings.filterwarnings("ignore", cache.COMPILED_ANEW)  # told below, as an error
        for step in steps:
            progress.begin(str(step))
            step.compile()
            progress.end()
    seconds = time.perf_counter() - begin
    if lost := cache.lost():
        reason, hint = lost
        complain("error", f"compiled, but not kept: {reason}", hint)
        return 1
    operators = len({step.entry.id for step in steps})
    dtypes = len({step.dtype for step in steps})
    say(
        f"{counted(operators, 'operator')}, {counted(dtypes, 'data type')}: ready in {seconds:.1f} s"
    )
    return 0
