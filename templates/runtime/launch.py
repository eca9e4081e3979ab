"""How chunks are run: on how many threads, with a cache on disk where one can be kept, safely after a fork.

set_num_threads(1)          # serial, for the whole process
with num_threads(2): ...    # in this context (thread or task) only
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from specops.errors import SpecopsError, ThreadLimitError

try:
    from numba.core import config
except ValueError as error:
    if "Number of threads" not in str(error):
        raise
    found = os.environ.get("NUMBA_NUM_THREADS")
    raise SpecopsError(
        f"Numba cannot be imported: NUMBA_NUM_THREADS is {found}; it must be at least 1, or not be set"
    ) from error
from numba.core.caching import NullCache

from specops import cache
from specops.kernels import chunks
from specops.reading import NotUnderstood, integer, shown
from specops.workers import Workers

MANY_PARTS = 1 << 12  # parts of groups that a second thread joins faster than one

_Function = TypeVar("_Function", bound=Callable[..., Any])

_limit: int | None = None
# Those around a call, the innermost last.
_blocks: ContextVar[tuple[num_threads, ...]] = ContextVar("specops_num_threads", default=())
_SIGNATURES = {
    chunks.serial: chunks.LAUNCH,
    chunks.parallel: chunks.PARALLEL,
    chunks.serve: chunks.SERVE,
}
_lock = threading.RLock()
_compiling = threading.Lock()
_compiled: set[Any] = set()
_workers: Workers | None = None
_starting = False  # workers


def get_num_threads() -> int:
    """Threads that a large call may use: the limit set here, and no more than Numba's own."""
    blocks = _blocks.get()
    limit = blocks[-1].limit if blocks else _limit
    available = _available()
    return available if limit is None else min(limit, available)


def _available() -> int:
    """Numba's own limit."""
    return int(getattr(config, "NUMBA_NUM_THREADS"))  # noqa: B009 (Numba sets it at run time)


def set_num_threads(n: SupportsIndex | None) -> None:
    """Limit the threads of every call in this process that is not in a block of `num_threads`.

    1 means serial, None means Numba's own limit.

    Raises:
        ThreadLimitError: n is neither an integer of at least 1 nor None; a ValueError.

    >>> import specops
    >>> specops.set_num_threads(1)
    >>> specops.get_num_threads()
    1
    >>> specops.set_num_threads(None)
    """
    global _limit
    _limit = _checked(n)


class num_threads(ContextDecorator):
    """Limit the threads of the calls made in this block or decorated function, in this thread or task only.

    It holds in place of the process's limit, be it less or more, and of those of blocks around it. 1 means serial, None
    means Numba's own limit. It may be kept and used for many blocks.

    Raises:
        ThreadLimitError: n is neither an integer of at least 1 nor None; a ValueError.
        SpecopsError: it is to decorate a coroutine function or a generator function, whose body does not run in the
            call; a block within the body holds there.

    >>> import specops
    >>> with specops.num_threads(1):
    ...     specops.get_num_threads()
    1
    """

    def __init__(self, n: SupportsIndex | None) -> None:
        self.limit = _checked(n)

    def __call__(self, func: _Function) -> _Function:
        kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
        called = getattr(func, "__call__", func)  # noqa: B004 (an object's own, where it is no function)
        if any(is_kind(f) for is_kind in kinds for f in (func, called)):
            name = getattr(func, "__name__", None) or shown(func)
            raise SpecopsError(
                f"num_threads cannot decorate {name}: its body does not run in the call that makes a"
                " coroutine or a generator; use a block of num_threads within it"
            )
        return super().__call__(func)

    def __enter__(self) -> None:
        _blocks.set((*_blocks.get(), self))

    def __exit__(self, *_error: object) -> None:
        blocks = _blocks.get()
        # Not always the last: a generator that is closed within another block ends its own.
        for i in reversed(range(len(blocks))):
            if blocks[i] is self:
                _blocks.set(blocks[:i] + blocks[i + 1 :])
                break


def _checked(n: SupportsIndex | None) -> int | None:
    try:
        return None if n is None else integer(n, low=1)
    except NotUnderstood as problem:
        message = f"the number of threads is {problem.found}; it must be {problem.allowed}, or None"
        raise ThreadLimitError(message) from None


class Chunk:
    """Compiled code, and the ways to run it over a range of items.

    Args:
        function: of `chunks.SIGNATURE`, compiled with nogil: `function(walk, x, out, other, begin, end)`.
        kind: tells this chunk from others that the same maker makes.
    """

    def __init__(self, function: Callable[..., Any], kind: tuple[int | str, ...] = ()) -> None:
        self._function: Any = function
        self._kind = kind
        self._address = 0

    def address(self) -> int:
        """Where the chunk lies, which is compiled, or loaded from the cache, if it is not yet."""
        if self._address == 0:
            _ready(chunks.serial)
            _ready(self._function, self._kind)
            compiled = self._function.overloads[chunks.SIGNATURE.args]
            name = compiled.fndesc.llvm_func_name
            self._address = compiled.library.get_pointer_to_function(name)
        return self._address

    def run(self, walk: int, x: int, out: int, other: int, items: int, large: bool) -> None:
        """Run all items; on several threads if `large`. Returns, or raises an interrupt, when none works any more.

        `walk`, `x`, `out` and `other` are addresses; the caller keeps alive what is there.
        """
        chunk = self._address or self.address()
        threads = min(get_num_threads(), items) if large else 1
        if threads <= 1:
            chunks.serial(chunk, walk, x, out, other, 0, items)
            return
        workers = _workers
        if workers is None or workers.number < workers.most:
            workers = _helped()
        addresses = chunk, walk, x, out, other
        if workers is None:
            chunks.serial(*addresses, 0, items)
            return
        if chunks.parallel(*addresses, items, threads, workers.board, workers.number):
            raise MemoryError("no memory for a thread's scratch")


def chunks_of(function_for: Callable[..., Any]) -> Callable[..., Chunk]:
    """The chunks whose functions `function_for(*kind)` makes: one for each kind, when it is first asked for."""

    @functools.cache
    def chunk(*kind: int | str) -> Chunk:
        return Chunk(function_for(*kind), (function_for.__name__, *kind))

    return chunk


def warm_up(ahead: Iterable[Chunk]) -> None:
    """Compile chunks, or load them from the cache, for as many threads as calls may use."""
    for chunk in ahead:
        chunk.address()
    if get_num_threads() > 1:
        _ready(chunks.parallel)
        _ready(chunks.serve)


def _ready(function: Any, kind: tuple[int | str, ...] = ()) -> None:
    """Compile a function once, or load it from the cache on disk.

    In a thread of its own, where no keyboard interrupt is raised: Numba would forget it, or not be usable afterwards.
    """
    if function in _compiled:
        return
    with ThreadPoolExecutor(1) as pool:
        try:
            future = pool.submit(_compile_once, function, kind)
        except RuntimeError:  # the interpreter is shutting down
            _compile_once(function, kind)
        else:
            future.result()


def _compile_once(function: Any, kind: tuple[int | str, ...]) -> None:
    """Whoever comes second finds it done, and a damaged cache dropped."""
    with _compiling:
        if function not in _compiled:
            _compile(function, kind)
            _compiled.add(function)


def _compile(function: Any, kind: tuple[int | str, ...]) -> None:
    """Compile a function, or load it from the cache on disk, which is given up where what it holds is of no use."""
    if getattr(config, "DISABLE_JIT"):  # noqa: B009 (Numba sets it at run time)
        raise SpecopsError(
            "NUMBA_DISABLE_JIT is set, and the kernels cannot run uncompiled; unset it"
        )
    signature = _SIGNATURES.get(function, chunks.SIGNATURE)
    cache.enable(function, kind)
    try:
        function.compile(signature)
    except Exception as error:
        if isinstance(function._cache, NullCache):
            raise
        folder = function._cache.cache_path
        function._cache = NullCache()
        function.compile(signature)
        # What cannot be compiled at all has raised its own error.
        cache.not_kept(f"{folder}: {error!r}")


def _public_address(x: npt.NDArray[Any]) -> int:
    return int(x.__array_interface__["data"][0])


def _quick_address(x: npt.NDArray[Any]) -> int:
    if not isinstance(x, np.ndarray):  # a NumPy scalar has no data pointer: the read would crash
        raise TypeError(f"expected a NumPy array, found {type(x).__name__}")
    return _pointer_at(id(x) + _DATA).value or 0


_pointer_at = ctypes.c_void_p.from_address
# In NumPy's ABI the data pointer comes first, after the object's header.
_DATA = object.__basicsize__


def _choose_address() -> Callable[[npt.NDArray[Any]], int]:
    """The public way takes 0.9 us, a third of a small call; the quick one is taken where it proves right."""
    if 2 * ctypes.sizeof(ctypes.c_void_p) == _DATA:
        probe = np.zeros(4, np.int8)
        if all(_quick_address(p) == _public_address(p) for p in (probe, probe[1:], probe[::-1])):
            return _quick_address
    return _public_address


address = _choose_address()  # of an array's element [0, 0, ..]


def _helped() -> Workers | None:
    """The workers, of whom missing ones are started; None for a signal's handler that comes in between."""
    global _workers, _starting
    with _lock:
        if _starting:
            return None
        try:
            _starting = True
            if _workers is None:
                _ready(chunks.parallel)
                _ready(chunks.serve)
                serve = chunks.serve.overloads[chunks.SERVE.args]
                name = serve.fndesc.llvm_cfunc_wrapper_name
                address = serve.library.get_pointer_to_function(name)
                _workers = Workers(address, _available() - 1)
            _workers.start()
            return _workers
        finally:
            _starting = False


def _after_fork() -> None:
    """In a child, where no threads of the parent's live on."""
    global _workers, _starting, _lock, _compiling
    _lock = threading.RLock()
    _compiling = threading.Lock()
    _workers, _starting = None, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
