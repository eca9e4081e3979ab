"""How a verb ends: its exit codes, and what is shown where something is wrong."""

from __future__ import annotations

import argparse
import sys

from generator.diagnostics import Report, escaped

OK, DIFFERENCES, ERRORS, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class Stop(Exception):
    """Ends a verb by errors, after they were shown."""


def show(report: Report, format: str) -> None:
    """Errors on standard error for people, on standard output for programs."""
    if format == "text":
        print(report.text(), file=sys.stderr)
        for file in sorted(report.stopped):
            left = "further checks are left out until it has no errors"
            print(f"note: {escaped(file)}: {left}", file=sys.stderr)
    else:
        print(report.json() if format == "json" else report.github())


def fail(report: Report, options: argparse.Namespace) -> None:
    if report:
        show(report, options.format)
        raise Stop
