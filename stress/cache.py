"""The cache of compiled code on disk, in every bad state: the result is right, with one warning at most.

Each scenario runs processes on a copy of the package, or on a cache folder of its own; all of them are made in a
temporary folder.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import specops

SECONDS = 600  # for one process; eight compile at once

# Small and large calls of three types, first from one thread, then from eight.
CODE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import specops
x = (np.arange(600 * 700) * 7919 % 10007).reshape(600, 700)
def results(dtype):
    y = (x % 251 if dtype == np.uint8 else x).astype(dtype)
    large = specops.argmax(y, 1).tolist() == y.argmax(1).tolist()
    return large, int(specops.argmax(y[:3, :5])), specops.argmax(y[:3, :5], 0).tolist()
types = (np.float32, np.uint8, np.int64)[: int(sys.argv[1])]
if sys.argv[2:]:
    with ThreadPoolExecutor(8) as pool:
        print(list(pool.map(results, types * 8))[: len(types)])
else:
    print([results(dtype) for dtype in types])
"""


class Cache:
    """A folder for the cache, and a copy of the package whose path it is keyed by."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "package"
        self.folder = folder / "cache"
        shutil.copytree(
            Path(specops.__file__).parent,
            self.package / "specops",
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    def start(
        self,
        types: int = 3,
        threads: bool = False,
        limit: int | None = None,
        changes: Mapping[str, str] = {},
    ) -> subprocess.Popen[str]:
        """A process that computes with so many types; no file of it grows beyond the limit."""
        command = [sys.executable, "-c", CODE, str(types), *["threads"] * threads]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.package),
            "NUMBA_CACHE_DIR": str(self.folder),
        }
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", **changes}
        before = None
        if limit is not None:
            before = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        return subprocess.Popen(
            command,
            env=environment,
            cwd=self.package,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509 (no other thread runs here)
        )

    def check(
        self,
        types: int = 3,
        threads: bool = False,
        limit: int | None = None,
        warnings: int = 0,
        changes: Mapping[str, str] = {},
    ) -> None:
        """One process is right, with so many warnings at most."""
        finished(self.start(types, threads, limit, changes), types, warnings)

    def files(self) -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in sorted(self.folder.rglob("*")) if p.is_file()}


def finished(process: subprocess.Popen[str], types: int, warnings: int) -> None:
    """The process ends well, within its time."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"not ended after {SECONDS} s") from None
    assert process.returncode == 0, f"ended with {process.returncode}: {err[-2000:]}"
    assert out.strip() == expected(types), f"found {out}"
    assert err.count("RuntimeWarning") <= warnings and (warnings or not err), err[-2000:]


def expected(types: int) -> str:
    """By the standard library alone."""
    x = [[(r * 700 + c) * 7919 % 10007 for c in range(5)] for r in range(3)]
    out = []
    for number in range(types):
        y = [[v % 251 if number == 1 else v for v in row] for row in x]
        flat = [v for row in y for v in row]
        columns = [[row[c] for row in y] for c in range(5)]
        out.append((True, flat.index(max(flat)), [column.index(max(column)) for column in columns]))
    return str(out)


# --- scenarios ---


def warm(cache: Cache, _seconds: float) -> str:
    """A second process compiles nothing and writes nothing."""
    cache.check()
    before = cache.files()
    assert before
    cache.check()
    assert cache.files() == before, "a warm cache was written to"
    return f"{len(before)} files"


def damaged(cache: Cache, seconds: float) -> str:
    """Files that are cut anywhere, emptied, filled with zeros or junk, removed, or folders."""
    cache.check()
    whole = cache.files()
    draw = random.Random(1)
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end or rounds < 3:
        rounds += 1
        shutil.rmtree(cache.folder)
        wounds = []
        for path, data in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = draw.choice(
                ["whole", "whole", "cut", "empty", "zeros", "junk", "removed", "folder"]
            )
            wounds.append(kind)
            if kind == "folder":
                path.mkdir()
            elif kind != "removed":
                cut = data[: draw.randrange(len(data))]
                texts = {
                    "whole": data,
                    "cut": cut,
                    "empty": b"",
                    "zeros": bytes(len(data)),
                    "junk": draw.randbytes(500),
                }
                path.write_bytes(texts[kind])
        try:
            cache.check(threads=rounds % 2 == 0, warnings=1)
        except AssertionError as error:
            raise AssertionError(f"round {rounds}, {wounds}: {error}") from error
    return f"{rounds} rounds"


def nowhere(cache: Cache, _seconds: float) -> str:
    """No folder at all that could be written to: neither the one named, nor the package's, nor the user's."""
    blocked = cache.package / "blocked"
    blocked.write_text("no folder")
    for folder in (cache.package / "specops").rglob("*.py"):
        place = folder.parent / "__pycache__"
        if not place.exists():
            place.write_text("no folder")
    homes = {"HOME": str(blocked), "XDG_CACHE_HOME": str(blocked), "LOCALAPPDATA": str(blocked)}
    for changes in ({"NUMBA_CACHE_DIR": ""}, {"NUMBA_CACHE_DIR": str(blocked / "below")}):
        cache.check(1, warnings=1, changes={**homes, **changes})
    assert not cache.folder.exists()
    return "2 processes"


def full(cache: Cache, _seconds: float) -> str:
    """A disk on which no file, or only a small one, can be written; what is left behind does no harm."""
    sizes = (0, 700, 3000, 8000, 60_000)
    for limit in sizes:
        shutil.rmtree(cache.folder, ignore_errors=True)
        cache.check(2, limit=limit, warnings=1)
        cache.check(2, warnings=1)
    cache.check(2)
    return f"{2 * len(sizes)} processes"


def contended(cache: Cache, _seconds: float) -> str:
    """Many processes fill an empty cache at once; the next one finds all of it, and all of it is right."""
    rounds = 2
    for _ in range(rounds):
        shutil.rmtree(cache.folder, ignore_errors=True)
        several = [cache.start(threads=number % 2 == 0) for number in range(8)]
        for process in several:
            finished(process, 3, 0)
        for _ in range(2):
            cache.check()
    return f"{8 * rounds} processes"


def killed(cache: Cache, seconds: float) -> str:
    """Processes that are killed while they fill the cache."""
    draw = random.Random(2)
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end or rounds < 2:
        rounds += 1
        shutil.rmtree(cache.folder, ignore_errors=True)
        process = cache.start()
        time.sleep(1 + draw.random() * 8)
        process.kill()
        process.communicate()
        cache.check()
    return f"{rounds} processes killed"


@contextmanager
def older(cache: Cache) -> Iterator[None]:
    """An older version of the package stands in the place of this one: its answers are wrong."""
    file = cache.package / "specops" / "kernels" / "search.py"
    text, times = file.read_text(encoding="utf-8"), file.stat()
    wrong = text.replace(
        "store_element(address, index, width)", "store_element(address,index+1,width)"
    )
    assert wrong != text and len(wrong) == len(text)
    file.write_text(wrong, encoding="utf-8")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    try:
        yield
    finally:
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def outdated(cache: Cache, _seconds: float) -> str:
    """After an upgrade no old code is run, not even where the first new process found a full disk."""
    limits = (None, 8000)
    for limit in limits:
        shutil.rmtree(cache.folder, ignore_errors=True)
        with older(cache):
            process = cache.start()
            out, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 0 and out.strip() != expected(3), (
                f"the older version is right: {out} {err}"
            )
        if limit is not None:
            cache.check(limit=limit, warnings=1)
        cache.check()
        cache.check()
    return f"{len(limits)} upgrades"


SCENARIOS: dict[str, Callable[[Cache, float], str]] = {
    "warm": warm,
    "damaged": damaged,
    "nowhere": nowhere,
    "full": full,
    "contended": contended,
    "killed": killed,
    "outdated": outdated,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="time for each scenario that draws at random (default: 60)",
    )
    parser.add_argument("--scenario", choices=list(SCENARIOS), help="one scenario; all by default")


def run(options: argparse.Namespace) -> int:
    chosen = [options.scenario] if options.scenario else list(SCENARIOS)
    findings = 0
    for name in chosen:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                text = SCENARIOS[name](Cache(Path(folder)), options.seconds)
            except AssertionError as error:
                findings += 1
                print(f"finding: {name}: {error}", flush=True)
            else:
                print(f"{name}: right, {text} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"cache: {len(chosen)} scenarios, {findings} findings")
    return findings
