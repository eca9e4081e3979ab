"""specops list: one line for each operator."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby

from specops.catalogue import Entry, entries, find, related
from specops.command.terminal import paint, say, width
from specops.errors import UsageError

_HEADS = ("operator", "since", "summary")


def run(options: argparse.Namespace) -> int:
    """The verb."""
    chosen = entries()
    if options.operators:
        named = {(e.dialect, e.name) for name in options.operators for e in _of(name)}
        chosen = tuple(e for e in chosen if (e.dialect, e.name) in named)
    if options.format == "json":
        rows = [
            {"id": e.id, "operator": e.operator, "since": e.since, "summary": e.summary}
            for e in chosen
        ]
        say(json.dumps(rows, indent=1))
        return 0
    families = groupby(chosen, key=lambda e: (e.dialect, e.name))
    rows_shown = [_HEADS, *(_row(list(family)) for _, family in families)]
    first, second = (max(len(row[i]) for row in rows_shown) for i in (0, 1))
    room = width(sys.stdout)
    for row in rows_shown:
        line = f"{row[0]:{first}}  {row[1]:{second}}  {row[2]}"
        line = line if room is None or len(line) <= room else f"{line[: room - 3]}..."
        say(paint(line, "bold", sys.stdout) if row is _HEADS else line)
    return 0


def _of(name: str) -> list[Entry]:
    """The operators of a name, and those that have it within theirs."""
    longer = related(name)
    try:
        return [*find(name), *longer]
    except UsageError:
        if longer:
            return longer
        raise


def _row(family: list[Entry]) -> tuple[str, str, str]:
    """All versions of an operator in one line."""
    since = sorted(
        {e.since for e in family}, key=lambda s: [int(part) for part in s.split(".") if part]
    )
    newest = next(e for e in family if e.newest)
    return f"{newest.dialect}/{newest.name}", ", ".join(since), newest.summary
