"""Compiled code on disk, by Numba's cache: files apart for all that code depends on, folders that can only be read.

A function's files lie in the first of Numba's folders (`NUMBA_CACHE_DIR`, the package's __pycache__, the user's) that
can be written to, or that holds them already.
"""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import sys
import time
import warnings
from typing import Any

import numba
from numba.core import config
from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache
from numba.core.registry import cpu_target

from specops._version import __version__

COMPILED_ANEW = "kernels are compiled anew in each process"
_HINT = "set NUMBA_CACHE_DIR to a folder that can be written to"

_ATTEMPTS = 3 if os.name == "nt" else 1  # to keep code

_refused: dict[str, str] = {}  # folders that cannot be written to: why
_lost: tuple[str, str] | None = None  # why code of a function was not kept, and what to do
_warned = False


def enable(function: Any, kind: tuple[int | str, ...]) -> None:
    """Let a function's code be looked for and kept on disk, where a folder for it can be found."""
    try:
        _name_apart(function.py_func, kind)
        function._cache = _Cache(function.py_func)
        _tell_of_another(function._cache.cache_path)
    except (RuntimeError, OSError, ValueError) as error:
        places = ", ".join(f"{folder} ({why})" for folder, why in _refused.items())
        source = function.py_func.__code__.co_filename
        if places:
            not_kept(f"no folder can be written to: {places}")
        elif os.path.exists(source):
            not_kept(repr(error))
        else:  # of archives Numba goes by the name
            not_kept(
                f"{source} is no file",
                "unpack the package, or give its archive a name that ends in .zip",
            )


def _tell_of_another(folder: str) -> None:
    """Warn where code is kept elsewhere than the user has asked for."""
    named = config.CACHE_DIR
    if named and not folder.startswith(os.path.join(named, "")):
        why = next((why for path, why in _refused.items() if path.startswith(named)), None)
        locators = getattr(config, "CACHE_LOCATOR_CLASSES", "")  # older versions of Numba have none
        if why:
            reason = f"NUMBA_CACHE_DIR={named} cannot be written to: {why}"
        elif locators:
            reason = (
                f"NUMBA_CACHE_LOCATOR_CLASSES={locators} decides where, not NUMBA_CACHE_DIR={named}"
            )
        else:
            reason = f"Numba does not use NUMBA_CACHE_DIR={named} for a package in an archive"
        _warn(f"compiled code is kept in {folder}, for {reason}")


def lost() -> tuple[str, str] | None:
    """Why code that this process compiled was not kept, and what to do; None where all of it was."""
    return _lost


def not_kept(reason: str, hint: str = _HINT) -> None:
    """Say, once in a process, that compiled code is lost at its end."""
    global _lost
    _lost = _lost or (reason, hint)
    _warn(f"{COMPILED_ANEW}, for the cache failed: {reason}; {hint}")


def _warn(text: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class _ReadOnly:
    """Makes a locator of Numba's also take a folder that holds the function's files and cannot be written to."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)  # type: ignore[call-arg]
        self._qualname = function.__qualname__

    def ensure_cache_path(self: Any) -> None:
        folder = self.get_cache_path()
        try:
            _try_out(folder)
        except OSError as error:
            _refused[folder] = _reason(error)
            version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
            name = f"*.{self._qualname.replace('<', '').replace('>', '')}-*.{version}.nbi"
            if not glob.glob(name, root_dir=folder):
                raise


def _try_out(folder: str) -> None:
    """Raise OSError where no file can be made in the folder.

    Numba asks tempfile, which on Windows takes that for a name in use and tries on for a day.
    """
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f".specops-{secrets.token_hex(8)}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)


class _Files(CompileResultCacheImpl):
    _locator_classes = tuple(
        type(locator.__name__, (_ReadOnly, locator), {}) for locator in CacheImpl._locator_classes
    )


class _Cache(FunctionCache):
    """Numba's cache of one function, which never fails: what cannot be kept costs a compilation and one warning."""

    _impl_class = _Files
    # What is damaged may ask for any amount of memory; or this process has little.
    _perhaps: MemoryError | None = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        self._perhaps = None
        try:
            return super().load_overload(signature, context)
        except MemoryError as error:
            self._perhaps = error
        except Exception as error:  # of any type
            self._drop(error)
        return None

    def _drop(self, damage: Exception) -> None:
        """Empty the index, so that the code is compiled and kept once more."""
        try:
            self.flush()
        except OSError as error:
            self.disable()
            not_kept(
                f"{self.cache_path} holds damaged files ({damage!r}), which cannot be replaced: {_reason(error)}"
            )
        else:
            _warn(f"damaged files of the cache in {self.cache_path} are replaced: {damage!r}")

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Numba's own says nothing of a refusal on Windows, as another process may just have the file open.

        What took more memory to load than there was is damaged if there was enough to compile.
        """
        if self._perhaps is not None:
            self._drop(self._perhaps)
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._save_overload(signature, compiled)
                return
            except Exception as error:
                if not (left and isinstance(error, PermissionError)):
                    not_kept(f"{self.cache_path}: {_reason(error)}")
                    return
            time.sleep(0.02)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        """What an entry of the index stands for, beside all that the file's name says.

        Numba's own key holds what the function closes over; a compiled function there differs in each process, so that
        the code would never be found again.
        """
        return signature, codegen.magic_tuple()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or repr(error)


def _name_apart(function: Any, kind: tuple[int | str, ...]) -> None:
    """Name the files of a function's cache by all that its compiled code depends on.

    Numba writes an index and then, under a number, the code. A process that is stopped between the two, or another that
    writes meanwhile, leaves a number that stands for the code of another kind, processor or version. By name, no two of
    these share a file.
    """
    processor = cpu_target.target_context.codegen().magic_tuple()
    parts = (_source(function), numba.__version__, processor, kind)
    suffix = "_" + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    function.__qualname__ = function.__qualname__.removesuffix(suffix) + suffix


def _source(function: Any) -> tuple[bytes, ...]:
    """The text of a function's module; in a frozen program, which has none, what tells its releases apart."""
    module = function.__globals__.get("__spec__")
    try:
        return (module.loader.get_data(module.origin),)
    except (AttributeError, TypeError, ImportError, OSError):
        return __version__.encode(), function.__code__.co_code
