"""specops run: a DxDispatch model, run or only checked."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from specops import dxdispatch
from specops.command.interrupt import ends_at_signals
from specops.command.terminal import Progress, complain, counted, erase, exit_now, paint, say
from specops.dxdispatch import Limits, ModelError, Problem, Timing, files
from specops.dxdispatch.model import Dispatch
from specops.errors import UsageError


def run(options: argparse.Namespace) -> int:
    """The verb."""
    if options.format != "text" and not options.validate_only:
        raise UsageError("--format is for --validate-only")
    with ends_at_signals():
        return _limited(options)


def _limited(options: argparse.Namespace) -> int:
    """Run within the time limit."""
    if not options.time_limit:
        return _run(options)
    # Kernels run without Python's lock, and cannot be interrupted but by the end of the process.
    watch = threading.Timer(options.time_limit, _give_up, [options.time_limit])
    watch.daemon = True
    watch.start()
    try:
        return _run(options)
    finally:
        watch.cancel()


def _give_up(seconds: int) -> None:
    complain("error", f"not finished within {seconds} s", "raise it with --time-limit")
    files.abandon()
    exit_now(1)


def _run(options: argparse.Namespace) -> int:
    chosen = {
        "feature_level": options.feature_level,
        "input_folder": options.input_path,
        "output_folder": options.output_path,
        "limits": Limits(options.max_memory),
    }
    if options.validate_only:
        return _validate(options, dxdispatch.check(options.model, **chosen))
    timing = Timing(
        iterations=options.dispatch_iterations,
        milliseconds=options.milliseconds_to_run,
        repeat=options.dispatch_repeat,
        interval=options.dispatch_interval,
        warmup=options.warmup_samples,
        verbosity=options.timing_verbosity,
    )
    try:
        model = dxdispatch.load(options.model, **chosen)
        _show(model.report.problems, sys.stderr)
        with Progress(sum(isinstance(c, Dispatch) for c in model.commands)) as progress:

            def begin(name: str) -> None:
                progress.begin(name)
                progress.end()

            dxdispatch.run(model, timing=timing, output=_Lines(), begin=begin)
    except ModelError as error:
        sys.stdout.flush()
        _show(error.problems, sys.stderr)
        return 1
    return 0


class _Lines:
    """Standard output, where no bar may stand in the way."""

    def write(self, text: str, /) -> None:
        erase()
        sys.stdout.write(text)


def _validate(options: argparse.Namespace, problems: Sequence[Problem]) -> int:
    errors = sum(p.severity == "error" for p in problems)
    if options.format == "json":
        say(json.dumps([asdict(p) for p in problems], indent=1))
        return 1 if errors else 0
    _show(problems, sys.stdout)
    level = "the general definitions"
    if options.feature_level:
        level = f"feature level {options.feature_level}"
    warnings = counted(len(problems) - errors, "warning")
    if errors:
        say(f"{counted(errors, 'error')}, {warnings} ({level})")
        return 1
    say(f"{paint('valid', 'green', sys.stdout)} for {level}, {warnings}")
    return 0


def _show(problems: Sequence[Problem], stream: TextIO) -> None:
    for p in problems:
        colour = "red" if p.severity == "error" else "yellow"
        place = paint(f"{p.place}:", "bold", stream)
        path = f"{p.path}: " if p.path else ""
        say(f"{place} {paint(f'{p.severity}:', colour, stream)} {path}{p.message}", stream)
        if p.hint:
            say(f"  hint: {p.hint}", stream)
