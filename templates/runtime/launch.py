"""How kernels are run: on how many threads, with a cache on disk where one can be kept, safely after a fork.

set_num_threads(1)          # serial, for the whole process
with num_threads(2): ...    # in this context (thread or task) only
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config
from numba.core.caching import NullCache
from numba.np.ufunc.parallel import threading_layer

from specops import cache
from specops.errors import SpecopsError
from specops.kernels import chunks
from specops.validation import NotUnderstood, integer

MANY_PARTS = 1 << 12  # parts of groups that a second thread joins faster than one

_limit: int | None = None
_local_limit: ContextVar[int | None] = ContextVar("specops_num_threads", default=None)
_lock = threading.Lock()
_compiling = threading.Lock()
_compiled: set[Any] = set()
_pool: ThreadPoolExecutor | None = None
_layer: str | None = None  # Numba's, once known; "serial" in a child that must not use it


def get_num_threads() -> int:
    """Threads that a large call may use: the limit set here, and no more than Numba's own."""
    limit = _local_limit.get() or _limit
    available = 1 if limit == 1 else _available()
    return available if limit is None else min(limit, available)


def _available() -> int:
    """Numba's own limit; asking for it starts the threading layer."""
    try:
        return int(numba.get_num_threads())
    except ValueError as error:
        raise SpecopsError(f"Numba's threading layer cannot start: {error}") from error


def set_num_threads(n: int | None) -> None:
    """Limit the threads of every call in this process; 1 means serial, None means Numba's own limit."""
    global _limit
    _limit = None if n is None else _checked(n)


@contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Limit the threads of the calls made in this block, in this thread or task only."""
    token = _local_limit.set(_checked(n))
    try:
        yield
    finally:
        _local_limit.reset(token)


def _checked(n: int) -> int:
    try:
        return integer(n, low=1)
    except NotUnderstood as problem:
        message = f"the number of threads is {problem.found}; it must be {problem.allowed}"
        raise SpecopsError(message) from None


class Kernel:
    """A chunk of compiled code, and the ways to run it over a range of items.

    Args:
        chunk: of `chunks.SIGNATURE`, compiled with nogil: `chunk(walk, x, out, other, begin, end)`.
        kind: tells this chunk from others that the same function makes.
    """

    def __init__(self, chunk: Callable[..., Any], kind: tuple[int | str, ...] = ()) -> None:
        self._chunk: Any = chunk
        self._kind = kind
        self._address = 0

    def address(self) -> int:
        """Where the chunk lies, which is compiled, or loaded from the cache, if it is not yet."""
        if self._address == 0:
            _ready(chunks.serial)
            _ready(self._chunk, self._kind)
            compiled = self._chunk.overloads[chunks.SIGNATURE.args]
            name = compiled.fndesc.llvm_func_name
            self._address = compiled.library.get_pointer_to_function(name)
        return self._address

    def __call__(
        self, walk: int, x: int, out: int, other: int, items: int, *, large: bool, alive: Any
    ) -> None:
        """Run all items; on several threads if `large`. `alive` is kept while any thread works.

        `walk`, `x`, `out` and `other` are addresses.
        """
        chunk = self._address or self.address()
        threads = min(get_num_threads(), items) if large else 1
        if threads <= 1:
            chunks.serial(chunk, walk, x, out, other, 0, items)
            return
        arguments = (chunk, walk, x, out, other)
        layer = _layer or _find_layer()
        if layer == "serial":
            chunks.serial(*arguments, 0, items)
        elif layer == "workqueue":
            _share(arguments, items, threads, alive)
        else:
            _ready(chunks.parallel)
            chunks.parallel(*arguments, items, threads)


def kernels(chunk_for: Callable[..., Any]) -> Callable[..., Kernel]:
    """The kernels whose chunks `chunk_for(*kind)` makes: one for each kind, when it is first asked for."""

    @functools.cache
    def kernel(*kind: int | str) -> Kernel:
        return Kernel(chunk_for(*kind), (chunk_for.__name__, *kind))

    return kernel


def warm_up(ahead: Iterable[Kernel]) -> None:
    """Compile kernels, or load them from the cache, for as many threads as calls may use."""
    for kernel in ahead:
        kernel.address()
    if get_num_threads() > 1 and (_layer or _find_layer()) not in ("serial", "workqueue"):
        _ready(chunks.parallel)


def _share(arguments: tuple[int, ...], items: int, threads: int, alive: Any) -> None:
    """Items on threads of our own: Numba's workqueue aborts the process on concurrent calls."""

    parts = _Parts()

    def part(task: int, _alive: Any) -> None:
        with parts.one() as wanted:
            if wanted:
                chunks.serial(*arguments, items * task // threads, items * (task + 1) // threads)

    pool = _shared_pool()
    futures: list[Future[None]] = []
    interrupt = None
    try:
        for task in range(1, threads):
            try:
                futures.append(pool.submit(part, task, alive))
            except RuntimeError:  # the interpreter is shutting down
                part(task, alive)
        part(0, alive)
        wait(futures)
    finally:
        # The others still write to the caller's memory: an interrupt that comes here is raised when they have ended.
        while True:
            try:
                parts.end()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt
    for future in futures:
        future.result()


class _Parts:
    """Which parts of a call are under way: an interrupt may have lost the future of one."""

    def __init__(self) -> None:
        self._running, self._ended = 0, False
        self._changed = threading.Condition()

    @contextmanager
    def one(self) -> Iterator[bool]:
        """Around a part: whether it is still wanted."""
        with self._changed:
            wanted = not self._ended
            self._running += wanted
        try:
            yield wanted
        finally:
            with self._changed:
                self._running -= wanted
                self._changed.notify_all()

    def end(self) -> None:
        """None begins from now on, and none is under way when this returns."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: not self._running)


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
    signature = chunks.LAUNCH if function in (chunks.serial, chunks.parallel) else chunks.SIGNATURE
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
    if hasattr(np.ndarray, "__array_interface__") and 2 * ctypes.sizeof(ctypes.c_void_p) == _DATA:
        probe = np.zeros(4, np.int8)
        if all(_quick_address(p) == _public_address(p) for p in (probe, probe[1:], probe[::-1])):
            return _quick_address
    return _public_address


address = _choose_address()  # of an array's element [0, 0, ..]


def _find_layer() -> str:
    """Start Numba's threading layer (no kernel runs yet) and ask for its name."""
    global _layer
    _available()
    _layer = str(threading_layer())
    return _layer


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            workers = max(1, _available() - 1)
            _pool = ThreadPoolExecutor(workers, thread_name_prefix="specops")
        return _pool


def _after_fork() -> None:
    """In a child: no threads of the parent's live on.

    GNU OpenMP kills a child that uses it again; TBB may be in no state to be used.
    """
    global _layer, _pool, _lock, _compiling
    _lock = threading.Lock()
    _compiling = threading.Lock()
    _pool = None
    try:
        if threading_layer() in ("omp", "tbb"):
            _layer = "serial"
    except ValueError:  # no layer was started: the child may start its own
        pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
