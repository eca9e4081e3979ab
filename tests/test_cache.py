"""Compiled code on disk: used, damaged, refused, told apart."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core.caching import NullCache
from numba.core.registry import cpu_target
from processes import KERNELS, SMALL, SMALL_RESULT, done, python

import specops
from specops import cache, launch

NOTHING_COMPILED = """
assert sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels) >= 2
assert not any(kernel.stats.cache_misses for kernel in kernels)
"""


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where the folder that is named is a file, one warning says why, and where code is kept, if it is."""
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below"):
        result = python(SMALL, NUMBA_CACHE_DIR=str(folder))
        done(result, SMALL_RESULT)
        assert result.stderr.count("RuntimeWarning") == 1, result.stderr
        elsewhere = f"for NUMBA_CACHE_DIR={folder} cannot be written to: "
        assert elsewhere in result.stderr or "compiled anew" in result.stderr, result.stderr
    assert file.read_text() == "no folder"


def test_a_read_only_cache_folder(tmp_path: Path) -> None:
    """A folder that cannot be written to is no reason to fail."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    result = python(SMALL, NUMBA_CACHE_DIR=str(folder))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") <= 1, result.stderr


# As for another user, also where the user of the tests may write everywhere. No other folder is looked into: the
# package's may hold what other tests have compiled.
READ_ONLY = """
import os
from numba.core.caching import CacheImpl, IndexDataCacheFile, UserProvidedCacheLocator
opened = os.open
def refused(*_, **__):
    raise PermissionError(13, "Permission denied")
def read(path, flags, *rest, **options):
    return (refused if flags & os.O_CREAT else opened)(path, flags, *rest, **options)
os.open = read
IndexDataCacheFile._open_for_write = refused
CacheImpl._locator_classes = [UserProvidedCacheLocator]
"""
# Numba's cache as on Windows, where it says nothing of a refusal.
WINDOWS = """
import os, types
from numba.core import caching
caching.os = types.SimpleNamespace(**{**vars(os), "name": "nt"})
"""


def filled(folder: Path, files: dict[Path, bytes]) -> None:
    """A cache of these files."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


# A pickle that raises MemoryError.
ASKS_FOR_TOO_MUCH = b"\x80\x05\x96" + (2**62).to_bytes(8, "little")


@pytest.mark.parametrize(
    "content",
    [b"", b"no cache", b"\x80\x05", ASKS_FOR_TOO_MUCH],
    ids=["empty", "text", "cut", "memory"],
)
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache(
    warm_cache: dict[Path, bytes], tmp_path: Path, suffix: str, content: bytes
) -> None:
    """Files that a crash or a full disk left behind cost one compilation and one warning, and are replaced."""
    filled(tmp_path, {p: content if p.suffix == suffix else d for p, d in warm_cache.items()})
    result = python(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"damaged files of the cache in {tmp_path}" in result.stderr
    result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""


STARVED = """
import numpy as np
import specops
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompilerBase
def no_memory(*_, **__):
    raise MemoryError
IndexDataCacheFile.load = CompilerBase.compile_extra = no_memory
try:
    specops.argmax(np.zeros((2, 2), np.float32))
except specops.NoMemoryError as error:
    print(error)
"""


def test_a_process_without_memory_spares_the_cache(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """What it cannot load is not damaged for that."""
    filled(tmp_path, warm_cache)
    result = python(STARVED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, "argmax: not enough memory\n")
    assert result.stderr == ""
    assert all((tmp_path / path).read_bytes() == data for path, data in warm_cache.items())


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_that_cannot_be_replaced(
    warm_cache: dict[Path, bytes], tmp_path: Path, suffix: str
) -> None:
    """It costs a compilation in each process, and a warning that says where it is and why it stays."""
    filled(tmp_path, {p: b"" if p.suffix == suffix else d for p, d in warm_cache.items()})
    result = python(READ_ONLY + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"failed: {tmp_path}" in result.stderr and "EOFError" in result.stderr
    assert "cannot be replaced: Permission denied" in result.stderr


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """The files that one process leaves in an empty cache."""
    folder = tmp_path_factory.mktemp("cache")
    done(python(SMALL, NUMBA_CACHE_DIR=str(folder)), SMALL_RESULT)
    files = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    return files


def test_the_cache_is_used(warm_cache: dict[Path, bytes], tmp_path: Path) -> None:
    """A second process finds what the first one compiled, and says nothing."""
    filled(tmp_path, warm_cache)
    result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""


def test_a_filled_folder_that_cannot_be_written_to(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """It is read, silently; what it does not hold is compiled, with one warning that says which folders and why."""
    filled(tmp_path, warm_cache)
    result = python(READ_ONLY + SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr == ""
    more = SMALL + SMALL.replace("float32", "int8")
    result = python(READ_ONLY + more, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, 2 * SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"no folder can be written to: {tmp_path}" in result.stderr
    assert "Permission denied" in result.stderr and "set NUMBA_CACHE_DIR" in result.stderr


@pytest.mark.parametrize("before", ["", READ_ONLY], ids=["open", "closed"])
def test_tempfile_is_not_asked(tmp_path: Path, before: str) -> None:
    """On Windows it takes a folder that refuses for a name in use, and tries on for a day."""
    asked = """
import tempfile
tempfile.TemporaryFile = tempfile.mkstemp = lambda *_, **__: os._exit(7)
"""
    result = python("import os\n" + before + asked + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert ("no folder can be written to" in result.stderr) == bool(before)
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == (
        set() if before else {".nbi", ".nbc"}
    )


@pytest.mark.parametrize("times", [1, 99])
def test_code_that_windows_refuses_to_keep(tmp_path: Path, times: int) -> None:
    """Another process may have the file open for a moment; what stays refused is told."""
    code = f"""
from specops import cache
cache._ATTEMPTS = 3
save = caching.IndexDataCacheFile._save_data
left = {times}
def refuse(*rest):
    global left
    left -= 1
    if left >= 0:
        raise PermissionError(13, "Permission denied")
    save(*rest)
caching.IndexDataCacheFile._save_data = refuse
"""
    result = python(WINDOWS + code + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    if times == 1:
        assert result.stderr == ""
        result = python(SMALL + KERNELS + NOTHING_COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
        done(result, SMALL_RESULT)
    else:
        assert result.stderr.count("RuntimeWarning") == 1, result.stderr
        assert f"failed: {tmp_path}" in result.stderr and "Permission denied" in result.stderr


def test_a_folder_without_the_code_that_its_index_names(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """Where it cannot be written to either, the code is compiled once, with one warning."""
    filled(tmp_path, {p: data for p, data in warm_cache.items() if p.suffix == ".nbi"})
    result = python(READ_ONLY + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    done(result, SMALL_RESULT)
    assert result.stderr.count("RuntimeWarning") == 1, result.stderr
    assert f"{tmp_path}" in result.stderr and "Permission denied" in result.stderr


def copied(folder: Path) -> Path:
    """A copy of the package, in a folder that can be put on the path."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(specops.__file__).parent, folder / "copy" / "specops", ignore=ignored)
    return folder / "copy"


def test_no_two_kinds_or_versions_share_a_file_of_the_cache(
    warm_cache: dict[Path, bytes], tmp_path: Path
) -> None:
    """Numba writes an index before the code that it points to, so that a shared file could hold the wrong code.

    A process that is stopped between the two, or two that write at once, would leave it so.
    """
    other = tmp_path / "kinds"
    done(python(SMALL.replace("float32", "int8"), NUMBA_CACHE_DIR=str(other)), SMALL_RESULT)
    common = {p.name for p in warm_cache} & {p.name for p in other.rglob("*.nb?")}
    assert common and all(name.startswith("chunks.") for name in common), common
    package = copied(tmp_path)
    for name in ("kernels/chunks.py", "kernels/search.py"):
        with open(package / "specops" / name, "a", encoding="utf-8") as file:
            file.write("# another version\n")
    another = tmp_path / "version"
    done(python(SMALL, PYTHONPATH=str(package), NUMBA_CACHE_DIR=str(another)), SMALL_RESULT)
    names = {p.name for p in another.rglob("*.nb?")}
    assert len(names) == len(warm_cache) and not names & {p.name for p in warm_cache}


def no_data(_path: str) -> bytes:
    raise OSError("no such file in the program")


@pytest.mark.parametrize(
    "spec",
    [
        None,
        SimpleNamespace(origin=None, loader=None),
        SimpleNamespace(origin="x.py", loader=SimpleNamespace()),
        SimpleNamespace(origin="x.py", loader=SimpleNamespace(get_data=no_data)),
    ],
)
def test_names_in_a_program_without_sources(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release, the code, the kind, the processor and Numba's version tell files apart.

    Each process finds the same ones.
    """

    def name(function: Callable[..., Any] = no_data, kind: str = "rows") -> str:
        one = FunctionType(function.__code__, {"__spec__": spec})
        cache._name_apart(one, (kind,))
        return one.__qualname__.split("_")[-1]

    assert name() == name()
    assert len({name(), name(filled), name(kind="columns")}) == 3
    names = [name()]
    codegen = type(cpu_target.target_context.codegen())
    for owner, what, other in (
        (cache, "__version__", "99"),
        (numba, "__version__", "99"),
        (codegen, "magic_tuple", lambda _: ("another",)),
    ):
        monkeypatch.setattr(owner, what, other)
        names.append(name())
    assert len(set(names)) == 4


def test_a_package_in_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that is not named .zip Numba keeps nothing; of others not where NUMBA_CACHE_DIR says."""
    monkeypatch.setattr(cache, "_lost", None)
    monkeypatch.setattr(cache, "_refused", {})
    for archive in ("app.pyz", "app.zip.bak"):
        made: dict[str, Any] = {}
        exec(compile("def chunk(): pass", f"{archive}/specops/kernels/x.py", "exec"), made)
        monkeypatch.setattr(cache, "_warned", False)
        with pytest.warns(RuntimeWarning, match=r"x\.py is no file; unpack the package, or give"):
            cache.enable(SimpleNamespace(py_func=made["chunk"]), ())
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "/named")
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(
        RuntimeWarning, match="Numba does not use NUMBA_CACHE_DIR=/named for a package"
    ):
        cache._tell_of_another("/home/cache")
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(RuntimeWarning, match="code is kept in /named_otherwise/x, for Numba"):
        cache._tell_of_another("/named_otherwise/x")
    monkeypatch.setattr(cache, "_warned", False)
    name = "numba.core.config.CACHE_LOCATOR_CLASSES"
    monkeypatch.setattr(name, "UserWideCacheLocator", raising=False)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_LOCATOR_CLASSES=UserWideCacheLocator dec"):
        cache._tell_of_another("/home/cache")


def test_what_was_lost_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows may be but its consequence."""
    monkeypatch.setattr(cache, "_lost", None)
    monkeypatch.setattr(cache, "_warned", True)
    cache.not_kept("the disk is full", "tidy up")
    cache.not_kept("another reason")
    assert cache.lost() == ("the disk is full", "tidy up")


class FakeDispatcher:
    """What compiles a function, of which the cache is damaged."""

    def __init__(self) -> None:
        self._cache: Any = NullCache()
        self.enabled = self.compiled = 0

    def enable(self) -> None:
        self.enabled += 1
        self._cache = SimpleNamespace(cache_path="somewhere")

    def compile(self, _signature: Any) -> None:
        found = self._cache
        time.sleep(0.05)
        if isinstance(found, SimpleNamespace):
            raise EOFError("a damaged file")
        self.compiled += 1


def test_threads_that_meet_a_damaged_cache_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one drops the cache and compiles, and the others find it done."""
    function = FakeDispatcher()
    monkeypatch.setattr(cache, "enable", lambda function, _kind: function.enable())
    monkeypatch.setattr(cache, "_lost", None)
    monkeypatch.setattr(cache, "_warned", False)
    with ThreadPoolExecutor(4) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for future in [pool.submit(launch._ready, function) for _ in range(4)]:
            future.result()
    assert (function.enabled, function.compiled) == (1, 1)
