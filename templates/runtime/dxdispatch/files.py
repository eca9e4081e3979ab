"""Files that a model names: read from one folder, written to one folder, never outside them."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"}
_DEVICES |= {device + digit for device in ("com", "lpt") for digit in "0123456789\xb9\xb2\xb3"}
_IMAGES = (".jpg", ".jpeg", ".png")

_begins = threading.Lock()
_under_way: set[Path] = set()  # files that are not whole yet


class Refused(Exception):
    """A file that may not or cannot be used: why, and what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def is_image(text: str) -> bool:
    """Whether a name is an image's: these are out of reach, to read and to write."""
    return text.lower().endswith(_IMAGES)


def relative(text: str) -> Path:
    """The path that a model names, as one below a folder. On every system / and \\ separate folders."""
    if not text or len(text) > 1000 or not text.isprintable():
        raise Refused("no path of a file")
    parts = text.replace("\\", "/").split("/")
    if not parts[0] or ":" in text:
        raise Refused(f'"{text}" is absolute', "name it relative to its folder")
    parts = [part for part in parts if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f'"{text}" leaves its folder', "paths may not contain ..")
    reserved = [p for p in parts if p.split(".")[0].strip().lower() in _DEVICES]
    if not parts or reserved or any(p.endswith((" ", ".")) for p in parts):
        raise Refused(f'"{text}" is no name of a file on every system')
    return Path(*parts)


def _inside(path: Path, folder: Path, text: str) -> Path:
    """The path with all links followed, which must stay in the folder."""
    try:
        resolved = path.resolve()
        home = folder.resolve()
    except (OSError, RuntimeError) as error:
        raise Refused(f'"{text}" cannot be followed: {_reason(error)}') from None
    if not resolved.is_relative_to(home):
        raise Refused(f'"{text}" leads out of {home}', "links may not leave the folder")
    return resolved


def source(folder: Path, text: str) -> tuple[Path, int]:
    """An existing regular file below the folder, and its size in bytes."""
    path = _inside(folder / relative(text), folder, text)
    try:
        with open_regular(path) as file:
            return path, os.fstat(file.fileno()).st_size
    except OSError as error:
        hint = f"it is looked for in {folder}"
        raise Refused(f'"{text}" cannot be read: {_reason(error)}', hint) from None


def open_regular(path: Path) -> BufferedReader:
    """Open for reading what is a regular file and no link; never waits, as for a pipe."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    number = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError("not a regular file")
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def target(folder: Path, text: str) -> Path:
    """Where in the folder to write; the file need not exist."""
    path = _inside(folder / relative(text), folder, text)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = False
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise Refused(f'"{text}" cannot be written: {_reason(error)}') from None
    if is_folder:
        raise Refused(f'"{text}" is a folder')
    for above in path.parents:
        if os.path.exists(above) and not os.path.isdir(above):
            hint = "rename it, or name another folder with --output-path, or output_folder"
            raise Refused(f'"{text}" cannot be written: {above} is no folder', hint)
    return path


def write(folder: Path, text: str, blocks: Iterable[bytes | memoryview]) -> None:
    """Write a file as a whole or not at all; what was there before is replaced, a link is not followed."""
    path = target(folder, text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _inside(path.parent, folder, text)  # once more, with all folders there
        temporary = path.parent / f".specops-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with _begins:
                _under_way.add(temporary)
                number = os.open(temporary, flags, 0o666)
            with os.fdopen(number, "wb") as file:
                for block in blocks:
                    file.write(block)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            _under_way.discard(temporary)
    except OSError as error:
        raise Refused(f'"{text}" cannot be written: {_reason(error)}') from None


def abandon() -> None:
    """Remove files that are not whole, and let none begin: for a thread that is about to end the process.

    Windows removes no file that is open.
    """
    _begins.acquire()
    for temporary in tuple(_under_way):
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
