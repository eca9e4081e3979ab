"""generated/ on disk: what is there, what differs, and writing it so that no moment finds half a file.

generated/MANIFEST has the sha256 of each file as it was generated. A file that differs from it was edited by hand.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

MANIFEST = "MANIFEST"
_SHOWN = 40  # lines of a difference
_TEMPORARY = ".specops-"
_TEMPORARY_NAME = re.compile(re.escape(_TEMPORARY) + "[0-9a-f]{8}")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

_EFFECTIVE = os.access in os.supports_effective_ids
_HELD = (PermissionError,) if os.name == "nt" else ()  # a file that another generator has open

_Result = TypeVar("_Result")

Kind = Literal["stale", "missing", "orphan", "foreign", "edited"]


@dataclass(frozen=True)
class Difference:
    """A file of generated/ that is not what the specs ask for."""

    kind: Kind
    path: str
    old: str
    new: str
    by_hand: bool = False  # it is not as it was generated, or never was

    @property
    def removes(self) -> bool:
        """Whether the file goes."""
        return self.kind in ("orphan", "foreign")

    def diff(self, source: str) -> str:
        lines = list(
            difflib.unified_diff(
                self.old.splitlines(),
                self.new.splitlines(),
                f"generated/{self.path}",
                f"from {source}",
                lineterm="",
                n=2,
            )
        )
        more = len(lines) - _SHOWN
        return "\n".join(lines[:_SHOWN] + ([f"... {more} more lines"] if more > 0 else []))


@dataclass
class State:
    """What is on disk."""

    texts: dict[str, bytes] = field(default_factory=dict)
    manifest: dict[str, set[str]] = field(default_factory=dict)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest_text(hashes: Mapping[str, Iterable[str]]) -> str:
    return "".join(f"{h}  {path}\n" for path in sorted(hashes) for h in sorted(hashes[path]))


def read(folder: Path) -> State:
    """All files below generated/; caches, and what editors and systems hide or back up, are nobody's files.

    Raises OSError where something is neither a file nor a folder: nothing is written, removed or read through a link.
    """
    state = State()
    _refuse_strange(folder)
    if not folder.is_dir():
        return state
    for current, folders, names in os.walk(folder, onerror=_refuse_unreadable):
        for name in (*folders, *names):
            _refuse_strange(Path(current, name))
        folders[:] = sorted(f for f in folders if f != "__pycache__" and not _is_hidden(f))
        for name in sorted(names):
            path = Path(current, name)
            relative = path.relative_to(folder).as_posix()
            if not _is_hidden(name):
                with contextlib.suppress(FileNotFoundError):  # removed by another generator
                    state.texts[relative] = _content(path)
    for line in state.texts.pop(MANIFEST, b"").decode("utf-8", "replace").splitlines():
        digest_, _, path_ = line.partition("  ")
        state.manifest.setdefault(path_, set()).add(digest_)
    return state


def _content(path: Path) -> bytes:
    return _patiently(path.read_bytes, _HELD)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.endswith("~")


def _is_temporary(path: Path) -> bool:
    """Whether it is a file that an interrupted run left."""
    return bool(_TEMPORARY_NAME.fullmatch(path.name)) and not path.is_dir()


def _refuse_unreadable(error: OSError) -> None:
    """What cannot be read is not missing."""
    if not isinstance(error, FileNotFoundError):  # removed by another generator
        raise error


def _refuse_strange(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # not there, or removed by another generator
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "a link or no file at all; remove it", str(path))


def compare(state: State, wanted: Mapping[str, bytes], whole: bool) -> list[Difference]:
    """The differences, sorted by path; `whole`: everything that is not wanted is an orphan."""
    out = []
    for path in sorted(wanted):
        old, new = state.texts.get(path), wanted[path]
        if old is None:
            out.append(Difference("missing", path, "", new.decode()))
        elif old != new:
            by_hand = digest(old) not in state.manifest.get(path, ())
            kind: Kind = "edited" if by_hand else "stale"
            text = old.decode("utf-8", "replace")
            out.append(Difference(kind, path, text, new.decode(), by_hand))
    if whole:
        for path in sorted(state.texts.keys() - wanted.keys()):
            old = state.texts[path]
            text = old.decode("utf-8", "replace")
            if path in state.manifest:
                by_hand = digest(old) not in state.manifest[path]
                out.append(Difference("orphan", path, text, "", by_hand))
            else:
                out.append(Difference("foreign", path, text, "", by_hand=True))
    return sorted(out, key=lambda d: d.path)


def compare_manifest(folder: Path, wanted: Mapping[str, bytes]) -> list[Difference]:
    """The manifest where it is not that of the wanted files: without it nobody can tell who edited a file."""
    new = manifest_text({path: {digest(data)} for path, data in wanted.items()})
    path = folder / MANIFEST
    old = _content(path).decode("utf-8", "replace") if path.is_file() else None
    if old == new:
        return []
    return [Difference("missing" if old is None else "stale", MANIFEST, old or "", new)]


def check(folder: Path, differences: Iterable[Difference]) -> None:
    """Raise OSError where a difference cannot be made good: so that nothing is written rather than a half."""
    differences = list(differences)
    removed = {folder / d.path for d in differences if d.removes}
    targets = [folder / d.path for d in differences]
    for target in [*targets, folder / MANIFEST] if targets else []:
        parent = target.parent
        while parent in removed or not os.path.lexists(parent):
            parent = parent.parent
        if target.is_dir():
            raise _error(errno.EISDIR, target, "a file is to be written here: remove the folder")
        if not parent.is_dir():
            raise _error(errno.ENOTDIR, parent, "a folder is to be made here: remove the file")
        if not os.access(parent, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
            raise _error(errno.EACCES, target, f"make {parent} a folder that you may write to")


def _error(number: int, target: Path, help: str, state: str = "nothing was written") -> OSError:
    error = OSError(number, os.strerror(number), str(target))
    error.add_note(f"{help}, then run `python -m generator generate` again; {state}")
    return error


def write(
    folder: Path, state: State, wanted: Mapping[str, bytes], differences: Iterable[Difference]
) -> None:
    """Make the differences good, each file atomically.

    First the manifest with old and new hashes, also of what is removed, then the files, then the manifest as it should
    be: so a run that is interrupted anywhere leaves nothing that looks edited by hand.
    """
    differences = list(differences)
    final = {path: {digest(data)} for path, data in wanted.items()}
    kept = state.manifest.keys() & state.texts.keys() - final.keys() - {d.path for d in differences}
    final |= {path: state.manifest[path] for path in kept}
    if differences:
        both = {path: set(hashes) for path, hashes in final.items()}
        for path, data in state.texts.items():
            if digest(data) in state.manifest.get(path, ()):
                both.setdefault(path, set()).add(digest(data))
        with _told(folder / MANIFEST):
            _replace(folder / MANIFEST, manifest_text(both).encode())
    for difference in differences:
        target = folder / difference.path
        with _told(target):
            if difference.removes:
                _patiently(partial(target.unlink, missing_ok=True), _HELD)
                _remove_empty(target.parent, folder)
            else:
                _replace(target, wanted[difference.path])
    text = manifest_text(final).encode()
    with _told(folder / MANIFEST):
        if not (folder / MANIFEST).is_file() or _content(folder / MANIFEST) != text:
            _replace(folder / MANIFEST, text)
    for leftover in filter(_is_temporary, folder.rglob(f"{_TEMPORARY}*")):
        with contextlib.suppress(FileNotFoundError, *_HELD):  # the file of another generator
            leftover.unlink()


@contextlib.contextmanager
def _told(target: Path) -> Iterator[None]:
    """An error names the target, not a temporary file, and what holds of the others."""
    try:
        yield
    except OSError as error:
        state = "until then generated/ is partly written"
        raise _error(error.errno or 0, target, "mend this", state) from error


def _patiently(act: Callable[[], _Result], passing: tuple[type[OSError], ...]) -> _Result:
    """Try again, for a moment, where another generator may be in the way."""
    for attempt in range(9):
        try:
            return act()
        except passing:
            time.sleep(0.01 * attempt)
    return act()


def _replace(target: Path, data: bytes) -> None:
    """Another generator may tidy away our temporary file in between, or, on Windows, hold the target."""
    _patiently(partial(_write_whole, target, data), (FileNotFoundError, *_HELD))


def _write_whole(target: Path, data: bytes) -> None:
    """Write beside the target, then rename: readers see the old file or the new one.

    On Windows tempfile would take a folder that refuses for a name in use, and hardly ever end.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f"{_TEMPORARY}{secrets.token_hex(4)}"
    handle = os.open(temporary, _NEW_FILE, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _remove_empty(folder: Path, top: Path) -> None:
    while (
        folder != top
        and folder.is_dir()
        and not any(p.name != "__pycache__" for p in folder.iterdir())
    ):
        with contextlib.suppress(OSError):
            for cached in (folder / "__pycache__").glob("*"):
                cached.unlink()
            (folder / "__pycache__").rmdir()
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
