"""The command `specops`: how it ends, and what is told of errors."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from specops.command import options
from specops.command.terminal import complain, exit_now, is_unread, say, settle
from specops.errors import SpecopsError, UsageError

OK, INVALID, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130

_CODES = (
    "Exit codes: 0 fine; 1 a model that is not valid or cannot be run; 2 wrong usage; 3 a bug; 130 interrupted;"
    " 143 terminated."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    previous = sys.unraisablehook
    sys.unraisablehook = partial(_unraisable, previous)
    with warnings.catch_warnings():
        warnings.showwarning = _warning
        try:
            try:
                asked = options.read(given, _CODES)
                code = int(asked.run(asked))
            except SystemExit as end:  # argparse, or a signal
                code = end.code if isinstance(end.code, int) else USAGE
            sys.stdout.flush()
            return code
        except UsageError as error:
            complain("error", error.message, error.hint)
            return USAGE
        except SpecopsError as error:
            complain("error", str(error))
            return INVALID
        except OSError as error:
            if is_unread(error):  # the reader has seen enough
                return OK
            complain("error", f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
            return INVALID
        except MemoryError:
            complain("error", "not enough memory")
            return INVALID
        except KeyboardInterrupt:
            complain("error", "interrupted")
            return INTERRUPTED
        except Exception as error:
            if os.environ.get("SPECOPS_TRACEBACK"):
                say(traceback.format_exc(), sys.stderr)
            hint = "a bug of specops; with SPECOPS_TRACEBACK=1 it shows where"
            complain("error", f"{type(error).__name__}: {str(error)[:200]}", hint)
            return BUG
        finally:
            sys.unraisablehook = previous
            for stream in (sys.stdout, sys.stderr):
                settle(stream)


def _unraisable(previous: Callable[[Any], Any], lost: Any) -> None:
    """LLVM calls back while it compiles; Python would forget an interrupt that comes just then."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        previous(lost)
        return
    complain("error", "interrupted")
    exit_now(INTERRUPTED)


def _warning(message: Warning | str, *_rest: Any, **_options: Any) -> None:
    complain("warning", str(message).split("\n", maxsplit=1)[0][:300])
