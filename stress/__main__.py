"""The command `python -m stress`: exit code 0 where nothing was found, 1 with findings, 2 with wrong usage."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

# Each is a module of this package with `arguments(parser)` and `run(options)`, which returns the number of findings.
VERBS = {
    "calls": "valid and invalid calls of every operator, on memory between guard pages, against the oracle",
    "layouts": "each of many layouts of an input with each of an output, against the oracle",
    "overlap": "outputs that share memory with an input or another output, in every way",
    "huge": "tensors of more than 2^31 elements, within 7 GiB",
    "threads": "many threads, thread pools, forks, interrupts",
    "board": "all interleavings of callers and of the threads that help them, in a model",
    "cache": "damaged, full, unwritable, contended and outdated caches on disk",
    "specs": "damaged and hostile specs: diagnostics or sound Python, never a traceback, a hang or an injection",
    "mutants": "damaged validators and kernels: the names of those that no test notices",
}


def main(arguments: list[str] | None = None) -> int:
    if os.name != "posix":
        print(
            "error: stress works with forks and forbidden pages, which POSIX systems have",
            file=sys.stderr,
        )
        return 2
    parser = argparse.ArgumentParser(prog="python -m stress", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    modules = {verb: importlib.import_module(f"stress.{verb}") for verb in VERBS}
    for verb, text in VERBS.items():
        modules[verb].arguments(verbs.add_parser(verb, help=text, description=text))
    options = parser.parse_args(arguments)
    return 1 if modules[options.verb].run(options) else 0


if __name__ == "__main__":
    sys.exit(main())
