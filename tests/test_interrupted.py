"""Runs of `generate` that are stopped, killed, or disturbed by another one: no file is half, a later run mends all."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from trees import ARGMAX, PROJECT, SENTENCE, Tree, old_or_new, orphan, spawn

from generator import exits, output

# --- interruption ----------------------------------------------------------------------------------------------------


def brought_up(tree: Tree) -> tuple[Path, dict[str, bytes]]:
    """A copy of generated/ in its old state, and what the new one is, in which the tree is left."""
    start = tree.root.parent / "start"
    shutil.copytree(tree.root / "generated", start)
    assert tree("generate").code == exits.OK
    return start, tree.generated()


def begin_again(tree: Tree, start: Path) -> None:
    shutil.rmtree(tree.root / "generated")
    shutil.copytree(start, tree.root / "generated")


INTERRUPTED_IMPORT = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.argv = ["generator", "lint"]
runpy.run_module("generator", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["generator.cli", "yaml", "pydantic"])
def test_interruption_of_imports(module: str) -> None:
    """They take a large part of a short run; no traceback tells of an interrupt there, either."""
    result = spawn("-c", INTERRUPTED_IMPORT.format(module=module))
    assert (result.code, result.said) == (exits.INTERRUPTED, "interrupted\n")


def test_interruption_at_every_write(
    two_states: tuple[Tree, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at the n-th write, for every n: each file is whole, and a later run with other specs mends all."""
    tree, old = two_states
    start, new = brought_up(tree)
    assert len({p for p in new if new[p] != old.get(p)}) >= 8
    spec = tree.text(ARGMAX)
    later = spec.replace("look through", "read through").replace("each_column", "every_column")
    replace = os.replace
    n = 0
    while True:
        begin_again(tree, start)
        tree.write(ARGMAX, spec)
        calls = 0

        def stop(*arguments: str, _n: int = n) -> None:
            nonlocal calls
            calls += 1
            if calls > _n:
                raise KeyboardInterrupt
            replace(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", stop)
            result = tree("generate")
        if calls <= n:
            assert result.code == exits.OK
            break
        assert result.code == exits.INTERRUPTED
        assert "interrupted" in result.err
        old_or_new(tree, old, new)
        differences = tree("check")
        assert differences.code == exits.DIFFERENCES
        assert "edited by hand" not in differences.out
        tree.write(ARGMAX, later)
        mended = tree("generate")
        assert mended.code == exits.OK, mended.err
        assert tree("check").code == exits.OK
        assert not list(tree.root.rglob(".specops-*"))
        n += 1
    assert n >= 9, "the manifest twice and seven files"


def test_killed_while_writing(two_states: tuple[Tree, dict[str, bytes]]) -> None:
    """A real SIGKILL, at the start of the run's writing or a moment later."""
    tree, old = two_states
    start, new = brought_up(tree)
    spec = tree.text(ARGMAX)
    random_ = random.Random(7)
    # Writing is made slow, so that the signal falls into it.
    slow = (
        "import os, sys, time\nreal = os.replace\n"
        "def replace(*a):\n    time.sleep(0.01)\n    real(*a)\n    time.sleep(0.01)\n"
        "os.replace = replace\nfrom generator.cli import main\n"
        "print('ready', flush=True)\nsys.exit(main(sys.argv[1:]))\n"
    )
    killed = 0
    for _ in range(5):
        begin_again(tree, start)
        tree.write(ARGMAX, spec)
        with subprocess.Popen(
            [sys.executable, "-c", slow, "generate", "--root", str(tree.root)],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            manifest = tree.path("generated/MANIFEST")
            before = manifest.read_bytes()
            while manifest.read_bytes() == before and process.poll() is None:
                time.sleep(0.001)
            time.sleep(random_.random() * 0.2)
            process.kill()
            process.wait()
            killed += process.returncode == -signal.SIGKILL if os.name == "posix" else 1
        old_or_new(tree, old, new)
        tree.write(ARGMAX, spec.replace("look through", "read through"))
        mended = tree("generate")
        assert mended.code == exits.OK, mended.err
        assert tree("check").code == exits.OK
        assert not list(tree.root.rglob(".specops-*"))
    assert killed >= 1


def test_two_generators_at_once(
    two_states: tuple[Tree, dict[str, bytes]],
) -> None:
    """Two runs in the same folder both succeed and leave what one run leaves."""
    tree, _ = two_states
    start, new = brought_up(tree)
    for _ in range(3):
        begin_again(tree, start)
        command = [sys.executable, "-m", "generator", "generate", "--root", str(tree.root)]
        both = [
            subprocess.Popen(
                command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        ends = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [exits.OK, exits.OK], ends
        assert tree.generated() == new


# --- files that another process has open, on Windows -----------------------------------------------------------------


def held(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, file: str, times: int = 1 << 30
) -> list[str]:
    """Refuse, as Windows does for a file that another process has open, the first calls for such a file; noted."""
    refused: list[str] = []
    real = getattr(owner, name)

    def act(path: str | Path, *rest: Any, **options: Any) -> Any:
        if Path(path).match(file) and len(refused) < times:
            refused.append(str(path))
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(owner, name, act)
    monkeypatch.setattr(output, "_HELD", (PermissionError,))
    return refused


def test_a_folder_that_refuses_each_file(small: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told after a few attempts; tempfile would go on for a day on Windows, and is not asked."""
    refused = held(monkeypatch, os, "open", f"{output._TEMPORARY}*")
    monkeypatch.setattr(tempfile, "mkstemp", None)
    result = small("generate")
    assert result.code == exits.ERRORS
    assert "error[E302]: generated/MANIFEST: Permission denied" in result.err
    assert len(refused) == 10


def test_files_that_another_generator_reads(
    generated: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are replaced and removed a moment later."""
    generated.edit(ARGMAX, *SENTENCE)
    orphan(generated, "specops/old.py")
    replaced = held(monkeypatch, os, "replace", f"{output._TEMPORARY}*", 3)
    removed = held(monkeypatch, Path, "unlink", "old.py", 3)
    result = generated("generate")
    assert result.code == exits.OK, result.err
    assert len(replaced) == len(removed) == 3
    assert generated("check").code == exits.OK


@pytest.mark.parametrize("file", ["MANIFEST", "specops/directml/argmax.py"])
def test_a_file_that_another_generator_replaces(
    generated: Tree, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """It is read a moment later; one that stays closed is an error."""
    refused = held(monkeypatch, Path, "read_bytes", f"generated/{file}", 3)
    assert generated("check").code == exits.OK
    assert len(refused) == 3
    held(monkeypatch, Path, "read_bytes", f"generated/{file}")
    assert f"{file}: Permission denied" in generated("check").err


def test_a_temporary_file_that_another_generator_writes(
    generated: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left to that one."""
    name = f"generated/specops/{output._TEMPORARY}0abc12ef"
    generated.write(name, "half")
    refused = held(monkeypatch, Path, "unlink", f"{output._TEMPORARY}*")
    assert generated("generate").code == exits.OK
    assert len(refused) == 1 and generated.path(name).is_file()
