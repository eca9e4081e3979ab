"""Temporary trees of specs and templates, and the command run on them: what the tests of the generator share."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from generator import exits, output

PROJECT = Path(__file__).resolve().parent.parent
BASE = PROJECT / "tests/diagnostics/base"
ARGMAX = "specs/directml/argmax.yaml"
VOCABULARY = "specs/vocabulary.yaml"
FEW = "argm.*|.*hardmax.*"  # operators of three sources and several versions, equivalent to one another
# A change of the spec that leaves it good.
SENTENCE = ("doc: Tensor to search.", "doc: Tensor to look through.")
# `os` for a module that is to take it for that of Windows.
WINDOWS = SimpleNamespace(**{**vars(os), "name": "nt"})


class Unread(io.TextIOWrapper):
    """A stream whose reader has gone, as Windows tells it."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


class Tree:
    """A folder with specs/ and templates/ that a test may change."""

    def __init__(self, root: Path, run: Callable[[list[str]], Result]) -> None:
        self.root = root
        self._run = run

    def __call__(self, verb: str, *arguments: str) -> Result:
        """Run `python -m generator VERB` in this process."""
        return self._run([verb, *arguments, "--root", str(self.root)])

    def path(self, name: str) -> Path:
        return self.root / name

    def text(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(text.encode("utf-8"))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace `old`, which must be there, and only once."""
        text = self.text(name)
        assert text.count(old) == 1, f"{name} has {text.count(old)} times: {old}"
        self.write(name, text.replace(old, new))

    def generated(self) -> dict[str, bytes]:
        """All files of generated/, with the manifest, without caches."""
        return contents(self.root / "generated")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts)
    }


def copy(target: Path, *, specs: str = ".*") -> Path:
    """In a new folder the project's templates, its vocabulary, and the specs whose stems match the pattern `specs`."""
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache", "*.md")
    shutil.copytree(PROJECT / "templates", target / "templates", ignore=ignored)
    for path in (PROJECT / "specs").rglob("*.yaml"):
        if path.match(VOCABULARY) or re.fullmatch(specs, path.stem):
            place = target / path.relative_to(PROJECT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    return target


def spawn(
    *arguments: str,
    python: str = sys.executable,
    cwd: Path = PROJECT,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> Result:
    """Run a Python interpreter with these arguments."""
    done = subprocess.run(
        [python, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def run_generated(root: Path, *arguments: str, timeout: float = 300) -> Result:
    """Run Python with the package below `root`/generated, and a cache of its own for the kernels."""
    environment = {
        "PYTHONPATH": str(root / "generated"),
        "NUMBA_CACHE_DIR": str(root / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return spawn(*arguments, cwd=root, environment=environment, timeout=timeout)


def orphan(tree: Tree, path: str) -> None:
    """A file that the generator once made, and that no spec asks for."""
    text, manifest = "x = 1\n", "generated/MANIFEST"
    tree.write(f"generated/{path}", text)
    listed = tree.text(manifest) if tree.path(manifest).is_file() else ""
    tree.write(manifest, f"{listed}{output.digest(text.encode())}  {path}\n")


def clear_error(result: Result) -> None:
    """An error of the writing, told without a traceback."""
    assert result.code == exits.ERRORS
    assert result.err.startswith("error[E302]: ")
    assert "Traceback" not in result.said


def old_or_new(tree: Tree, old: dict[str, bytes], new: dict[str, bytes]) -> None:
    """Each file is as in one of two states."""
    now = tree.generated()
    now = {path: data for path, data in now.items() if not Path(path).name.startswith(".specops-")}
    for path in (old.keys() | new.keys()) - {"MANIFEST"}:
        assert now.get(path) in (old.get(path), new.get(path)), f"{path} is neither old nor new"
    assert now.keys() <= old.keys() | new.keys()
