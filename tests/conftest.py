"""Fixtures of the generator's tests, and the option that accepts new texts."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trees

from generator import cli, exits, paste, render

# Signals, and memory that may not be touched.
POSIX = ["test_posix.py", "test_stress.py", "test_stress_specs.py"]
collect_ignore = [] if os.name == "posix" else POSIX

# Hundreds of tests generate from the same templates: what follows from a text alone is found once.
for module, name in ((paste, "module_of"), (render, "syntax_error")):
    setattr(module, name, functools.cache(getattr(module, name)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="write expected texts anew instead of comparing them"
    )


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], trees.Result]:
    """Runs the command in this process."""

    def run(arguments: list[str]) -> trees.Result:
        capsys.readouterr()
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return trees.Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def tree(tmp_path: Path, run: Callable[[list[str]], trees.Result]) -> trees.Tree:
    """A copy of the project's templates and of a few of its specs, not yet generated."""
    return trees.Tree(trees.copy(tmp_path / "tree", specs=trees.FEW), run)


@pytest.fixture(scope="session")
def generated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tree` is, generated: made once, and not to be changed."""
    root = trees.copy(tmp_path_factory.mktemp("generated") / "tree", specs=trees.FEW)
    assert cli.main(["generate", "--root", str(root)]) == exits.OK
    return root


@pytest.fixture
def generated(
    tmp_path: Path, run: Callable[[list[str]], trees.Result], generated_once: Path
) -> trees.Tree:
    """A copy of that, which may be changed."""
    return trees.Tree(shutil.copytree(generated_once, tmp_path / "tree"), run)


@pytest.fixture
def whole(tmp_path: Path, run: Callable[[list[str]], trees.Result]) -> trees.Tree:
    """A copy of all of the project's specs and templates, not yet generated."""
    return trees.Tree(trees.copy(tmp_path / "tree"), run)


@pytest.fixture
def small(tmp_path: Path, run: Callable[[list[str]], trees.Result]) -> trees.Tree:
    """A copy of the small good tree of one spec, with the project's templates; not yet generated."""
    return trees.Tree(shutil.copytree(trees.BASE, tmp_path / "small"), run)


@pytest.fixture
def two_states(
    generated: trees.Tree,
) -> tuple[trees.Tree, dict[str, bytes]]:
    """A tree whose specs and templates ask for a state that differs in several files from what it has, and this.

    Two operators are enough for that, and quick.
    """
    kept = (trees.ARGMAX, "specs/plain/argmax.yaml")
    for path in generated.path("specs").glob("*/*.yaml"):
        if path.relative_to(generated.root).as_posix() not in kept:
            path.unlink()
    text = generated.text("specs/plain/argmax.yaml")
    start, end = text.index("equivalences:\n"), text.index("silent:\n")
    generated.write("specs/plain/argmax.yaml", text[:start] + text[end:])
    assert generated("generate").code == exits.OK
    old = generated.generated()
    generated.edit(trees.ARGMAX, *trees.SENTENCE)
    generated.edit(trees.ARGMAX, "id: columns", "id: each_column")
    generated.edit("templates/runtime/errors.py", "from __future__", "# more\nfrom __future__")
    generated.write("templates/runtime/extra/new.py", '"""New."""\n')
    generated.path("specs/plain/argmax.yaml").rename(generated.path("specs/plain/arg_max.yaml"))
    generated.edit("specs/plain/arg_max.yaml", "operator: argmax", "operator: arg_max")
    return generated, old


@pytest.fixture
def expect(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a file; `--accept` writes the file instead."""

    def expect(path: Path, text: str) -> None:
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
            return
        expected = path.read_text(encoding="utf-8") if path.is_file() else ""
        name = path.relative_to(trees.PROJECT).as_posix()
        file = Path(request.path).relative_to(trees.PROJECT).as_posix()
        assert text == expected, (
            f"{name} has another text; where the new one is right, accept it with\n"
            f"    python -m pytest {file} --accept\nand read the diff"
        )

    return expect
