"""The package as users get it: wheel, source distribution, documentation that runs."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from numba.core.dispatcher import Dispatcher

import specops
from specops import kernels

PROJECT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(PROJECT),
        cwd=folder,
    )
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert all(
        n.startswith(("specops/", f"specops-{specops.__version__}.dist-info/")) for n in names
    )
    package = {
        p.relative_to(PROJECT / "generated").as_posix()
        for p in (PROJECT / "generated/specops").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert package <= set(names)
    assert "specops/py.typed" in names


# What may lie in a checkout.
STRAYS = [".env", "notes.txt", "venv/x.py", "tests/x.py.rej", "generated/specops/launch.py.orig"]


def test_the_build_is_reproducible(built: Path, tmp_path: Path) -> None:
    """From another folder, with other times and permissions of files and strays, come the same wheel and sdist."""
    copy = tmp_path / "elsewhere" / "copy"
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        # From Python 3.11.4 on; before, files are extracted as they are.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(copy)
    (source,) = copy.iterdir()
    (source / "PKG-INFO").unlink()  # of the build itself
    for stray in STRAYS:
        (source / stray).parent.mkdir(exist_ok=True)
        (source / stray).write_text("SECRET=1")
    for path in source.rglob("*"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o700 if path.is_dir() else 0o640)
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "dist"),
        str(source),
        cwd=tmp_path,
    )
    for one in (*built.glob("*.whl"), sdist):
        assert (tmp_path / "dist" / one.name).read_bytes() == one.read_bytes(), one.name


def test_the_source_distribution_holds_specs_and_templates(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {
        "specs/directml/argmax.yaml",
        "templates/cases.py.jinja",
        "generator/cli.py",
        "generated/MANIFEST",
    } <= names


def test_the_installed_wheel_runs_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    target = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
    ]
    run(*pip, str(wheel), cwd=tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "import numpy as np, specops\n"
        f"assert specops.__file__.startswith({str(target)!r}), specops.__file__\n"
        "print(specops.argmax(np.array([1, 3, 2], np.float16)), specops.__version__)\n"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).split() == ["1", specops.__version__]


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(specops.__path__, "specops.")]


@pytest.mark.parametrize("name", ["specops", *modules()])
def test_examples_in_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples_in_docstrings() -> None:
    """A parser that finds nothing would pass everywhere."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = sum(
        bool(t.examples) for n in modules() for t in finder.find(importlib.import_module(n))
    )
    assert found >= 110


@pytest.mark.parametrize("path", [*(PROJECT / "specs/plain").glob("*.yaml")], ids=lambda p: p.stem)
def test_functions_tell_what_was_decided(path: Path) -> None:
    spec = yaml.safe_load(path.read_text())
    told = getattr(specops, path.stem).__doc__
    assert "NaN" in told or path.stem == "max_unpool"  # which moves elements, whatever they are
    for decision in spec["silent"]:
        assert " ".join(decision["decided"].split()) in " ".join(told.split())


def test_examples_in_the_readme() -> None:
    failed, attempted = doctest.testfile(str(PROJECT / "README.md"), module_relative=False)
    assert failed == 0
    assert attempted >= 25


def test_the_tour_shows_every_example() -> None:
    sys.path.insert(0, str(PROJECT / "examples"))
    tour = importlib.import_module("tour")
    rows = tour.examples()
    assert len(rows) >= 1347
    assert {row[-1] for row in rows} == {"ok"}


def test_code_of_helpers_does_not_depend_on_their_callers() -> None:
    """Whether they become part of these is told: Numba would take the option of whichever compiles them first."""
    told = 0
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for name, function in vars(importlib.import_module(module.name)).items():
            if isinstance(function, Dispatcher) and function.targetoptions["no_cfunc_wrapper"]:
                called = not function.targetoptions.get("nogil")
                told += called
                assert not called or "forceinline" in function.targetoptions, name
    assert told > 200
