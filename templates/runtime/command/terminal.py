"""What a terminal can do: colours, width, a line that is written over."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from types import TracebackType
from typing import NoReturn, TextIO

_CODES = {"bold": "1", "red": "1;31", "yellow": "33", "green": "32"}
_BAR = 24  # characters
_bar_stands = False  # on the terminal's last line


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads the stream."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def obeys(stream: TextIO) -> bool:
    """Whether it is a terminal that obeys control sequences: the classic consoles of Windows print them."""
    return is_terminal(stream) and (os.name != "nt" or bool(os.environ.get("WT_SESSION")))


def has_colours(stream: TextIO) -> bool:
    """Colours are for terminals, and for nobody who sets NO_COLOR (https://no-color.org)."""
    return obeys(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, where the stream has colours."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if has_colours(stream) else text


def width(stream: TextIO) -> int | None:
    """Columns of a terminal; None for all else, where nothing is to be shortened."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else None


def erase() -> None:
    """Free the terminal's last line of a bar."""
    global _bar_stands
    if _bar_stands:
        _bar_stands = False
        _tell("\r\x1b[K")


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print a line."""
    erase()
    if stream is not None and stream is sys.stderr:
        _tell(f"{text}\n")
    else:
        print(text, file=sys.stdout if stream is None else stream)


def _tell(text: str) -> None:
    """Write to standard error. Where that fails nobody reads it, and the exit code tells the rest."""
    with contextlib.suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)


def is_unread(error: OSError) -> bool:
    """Whether the reader of a pipe has gone. Windows says EINVAL, as of a bad name, but then names no file."""
    unnamed = error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or (os.name == "nt" and unnamed)


def settle(stream: TextIO) -> None:
    """Write what is left, or drop it: Python tries once more at its end, and changes the exit code where that fails."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def counted(number: int, noun: str) -> str:
    """As "1 error" or "2 errors"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def complain(kind: str, message: str, hint: str = "") -> None:
    """One line on standard error, and a hint below it."""
    colour = "red" if kind == "error" else "yellow"
    say(f"{paint(f'{kind}:', colour, sys.stderr)} {message}", sys.stderr)
    if hint:
        say(f"  hint: {hint}", sys.stderr)


def exit_now(code: int) -> NoReturn:
    """End the process at once, where no exception can; what was printed is kept."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


class Progress:
    """A bar on standard error while long work goes on; nothing at all where no bar can be erased."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = obeys(sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        erase()

    def begin(self, label: str) -> None:
        """Show what is being done now."""
        global _bar_stands
        if not self._shown:
            return
        full = _BAR * self._done // max(1, self._total)
        bar = "#" * full + "." * (_BAR - full)
        line = f"[{bar}] {self._done}/{self._total} {label}"
        room = (width(sys.stderr) or 80) - 1
        _tell(f"\r{line[:room]}\x1b[K")
        _bar_stands = True

    def end(self) -> None:
        """One part is done."""
        self._done += 1
