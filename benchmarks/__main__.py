"""Times every cell of cells.yaml beside the peers, and what else a user waits for.

python -m benchmarks --quick                   # some cells, 3 minutes
python -m benchmarks --full                    # all, about 30 minutes; fails where a peer is not installed
python -m benchmarks --full --json FILE --picture FILE.svg
python -m benchmarks --only 'softmax float32'  # cells whose name holds this
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

from benchmarks import properties, report
from benchmarks.cells import cells
from benchmarks.measure import Row, absent, measure

ROUNDS = 5
QUICK_ROUNDS = 3
TURN = 0.02  # seconds for which an implementation is timed in each


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true", help="some cells")
    size.add_argument("--full", action="store_true", help="all cells, all peers, all properties")
    size.add_argument("--only", metavar="TEXT", help="cells whose name holds TEXT")
    parser.add_argument("--threads", type=int, default=2, help="of each implementation (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios")
    options = parser.parse_args()
    missing = absent()
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        if options.full:
            return 1
    begin = time.perf_counter()
    if options.only is not None:
        chosen = [c for c in cells() if options.only in c.name]
    else:
        chosen = [c for c in cells() if c.quick or options.full]
    if not chosen:
        parser.error(f"no cell has {options.only!r} in its name")
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    rows: list[Row] = []
    print(report.HEADER)
    for row in measure(chosen, threads=options.threads, rounds=rounds, turn=TURN):
        rows.append(row)
        print(report.line(row), flush=True)
    print()
    print("\n".join(report.summary(rows)))
    found = {}
    if options.only is None:
        found = properties.measure(full=options.full)
        print("\n".join(properties.lines(found)))
    if options.json:
        text = json.dumps(
            {
                "machine": f"{platform.machine()}, {options.threads} threads",
                "cells": [row.as_json() for row in rows],
                "properties": found,
            },
            indent=1,
        )
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.picture:
        report.picture(rows, options.picture)
    print(f"{time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
