"""`generate` and `check`: what they write, what they refuse, and that nothing but the specs decides the output."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trees
from trees import ARGMAX, PROJECT, SENTENCE, Tree, clear_error, orphan

from generator import (
    cases,
    cli,
    decided,
    exits,
    lint,
    output,
    paste,
    plan,
    render,
    selection,
    structure,
    values,
)
from generator.diagnostics import Report
from generator.expr.evaluator import Budget
from generator.paste import Helpers
from generator.prune import statements, unreached, without
from generator.resolve import Operator

VALIDATOR = "generated/specops/directml/argmax.py"
CASES = "generated/tests/cases/directml_argmax.py"


def times(tree: Tree) -> dict[str, int]:
    folder = tree.root / "generated"
    return {p.as_posix(): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


# --- what is written -------------------------------------------------------------------------------------------------


def test_first_run_writes_all_and_second_nothing(tree: Tree) -> None:
    """The second run touches no file, and `check` agrees that there is nothing to do."""
    first = tree("generate")
    assert first.code == exits.OK
    count = len(tree.generated()) - 1
    assert re.fullmatch(
        rf"\d+ operators, {count} files: {count} new, 0 unchanged \(\d+\.\d s\)\n", first.out
    )
    before = times(tree)
    second = tree("generate")
    assert (second.code, second.err) == (exits.OK, "")
    assert f"{count} files: {count} unchanged" in second.out
    assert times(tree) == before
    checked = tree("check")
    assert (checked.code, checked.out, checked.err) == (exits.OK, f"{count} files up to date\n", "")
    assert times(tree) == before


def test_project_is_up_to_date() -> None:
    """The committed files are what the committed specs and templates give."""
    assert cli.main(["check"]) == exits.OK


def test_only_what_changed_is_written(generated: Tree) -> None:
    """A changed sentence of one spec touches that operator's files and the manifest, nothing else."""
    before = times(generated)
    generated.edit(ARGMAX, *SENTENCE)
    assert "2 updated" in generated("generate").out
    changed = {Path(p).name for p, t in times(generated).items() if before[p] != t}
    assert changed == {"argmax.py", "directml_argmax.txt", "MANIFEST"}
    assert b"look through" in generated.generated()["specops/directml/argmax.py"]


def test_dry_run_writes_nothing(generated: Tree) -> None:
    """--dry-run lists each change with its kind and leaves the folder as it is."""
    generated.edit(ARGMAX, *SENTENCE)
    generated.path("generated/specops/py.typed").unlink()
    orphan(generated, "specops/old.py")
    generated.write("generated/specops/tensor.py", "x = 1\n")
    before, at = generated.generated(), times(generated)
    assert generated("generate", "--dry-run") == generated("generate"), "refused in the same words"
    result = generated("generate", "--dry-run", "--force")
    assert result.code == exits.OK
    *listed, summary = result.out.splitlines()
    assert listed == [
        "stale: generated/specops/directml/argmax.py",
        "orphan: generated/specops/old.py",
        "stale: generated/specops/pages/directml_argmax.txt",
        "missing: generated/specops/py.typed",
        "edited: generated/specops/tensor.py",
    ]
    assert "would be: 3 updated, 1 new, 1 removed" in summary
    assert (generated.generated(), times(generated)) == (before, at)


def test_dry_run_on_nothing_makes_no_folder(tree: Tree) -> None:
    assert tree("generate", "--dry-run").code == exits.OK
    assert not tree.path("generated").exists()


@pytest.mark.parametrize("manifest", ["with", "without"])
def test_foreign_files_stay(generated: Tree, manifest: str) -> None:
    """What was never generated is named and kept, in a folder that never was the generator's, too, until it is told."""
    if manifest == "without":
        shutil.rmtree(generated.path("generated"))
    generated.write("generated/photos/1.jpg", "dear\n")
    generated.write("generated/notes", "dear\n")
    generated.write("generated/.DS_Store", "")
    generated.write("generated/specops/.tensor.py.swp", "")
    for name in (".idea/notes", "specops/tensor.py~", "specops/__pycache__/tensor.pyc"):
        generated.write(f"generated/{name}", "")
    before = generated.generated()
    result = generated("generate")
    assert (result.code, result.out) == (exits.ERRORS, "")
    assert result.err == "".join(
        f"error[E301]: generated/{name} belongs to no spec and is not in generated/MANIFEST\n"
        "  = help: move what you need out of generated/; `--force` removes it\n\n"
        for name in ("notes", "photos/1.jpg")
    )
    assert generated.generated() == before
    assert "2 removed" in generated("generate", "--force").out
    assert generated("check").code == exits.OK


def test_orphans_go_with_their_folders(generated: Tree) -> None:
    """What no spec asks for is removed, and the folders that it leaves empty."""
    orphan(generated, "specops/webnn/old/hardmax.py")
    generated.write("generated/specops/webnn/old/__pycache__/hardmax.pyc", "")
    generated.path("specs/plain/argmax.yaml").unlink()
    result = generated("generate")
    assert result.code == exits.OK
    assert "4 removed" in result.out
    assert not generated.path("generated/specops/webnn").exists()
    assert not generated.path("generated/specops/plain/argmax.py").exists()
    assert not generated.path("generated/tests/cases/plain_argmax.py").exists()
    assert "plain_argmax" not in generated.text("generated/tests/cases/__init__.py")
    assert generated("check").code == exits.OK


def test_partial_generate(generated: Tree) -> None:
    """With a name only that operator's files are compared and written; the others keep their state."""
    generated.edit(ARGMAX, *SENTENCE)
    generated.edit(
        "specs/plain/argmax.yaml", "doc: Array to search;", "doc: Array to look through;"
    )
    orphan(generated, "specops/old.py")
    assert generated("check", "directml/argmax").out.count("error: ") == 2
    assert generated("check", "argmax").out.count("error: ") == 4
    before = generated.generated()
    assert "2 updated" in generated("generate", "directml/argmax").out
    after = generated.generated()
    assert {p for p in after if after[p] != before[p]} == {
        "specops/pages/directml_argmax.txt",
        "specops/directml/argmax.py",
        "MANIFEST",
    }
    assert generated("check", "directml/argmax").code == exits.OK
    result = generated("check", "plain/argmax")
    assert result.code == exits.DIFFERENCES
    assert "plain/argmax.py is out of date" in result.out, "not taken for a hand edit"
    assert generated("generate", "argmax").code == exits.OK
    assert generated.path("generated/specops/old.py").exists(), "only a full run removes orphans"
    assert "old.py" in generated("check").out
    assert generated("generate", "--force").code == exits.OK
    assert generated("check").code == exits.OK


def test_partial_generate_leaves_no_import_of_a_missing_file(small: Tree) -> None:
    """What belongs to all operators imports the files of each: those of another are written where there are none."""
    assert small("generate").code == exits.OK
    for name in ("argmost", "argleast"):
        text = small.text(ARGMAX).replace("_ARGMAX\n", f"_{name.upper()}\n")
        small.write(f"specs/directml/{name}.yaml", text)
    missing = "error: generated/specops/directml/argleast.py is missing"
    assert missing in small("check", "argmost").out
    assert "6 new" in small("generate", "argmost").out
    used = ("-c", "from specops.directml import argmost, argleast")
    assert trees.run_generated(small.root, *used) == trees.Result(0, "", "")
    assert small("check").code == exits.OK


# --- check turns red -------------------------------------------------------------------------------------------------


def red(tree: Tree, file: str, said: str, help: str, *before_it: str) -> str:
    """`check` exits with 1, names this file and no others but those, shows a diff and the command that mends it."""
    before = tree.generated()
    result = tree("check")
    assert result.code == exits.DIFFERENCES
    assert re.findall(r"^error: (.+)$", result.out, re.MULTILINE) == [
        f"{name} {said}" for name in (*before_it, file)
    ]
    assert f"--- {file}\n+++ from " in result.out
    assert f"  = help: {help}" in result.out
    assert tree.generated() == before, "check never writes"
    github = tree("check", "--format", "github")
    assert github.code == exits.DIFFERENCES
    assert github.out.startswith("::error ") and f"::error file={file}," in github.out
    return result.out


GENERATE = "run `python -m generator generate` and commit the result"


def test_check_stale(generated: Tree) -> None:
    generated.edit(ARGMAX, *SENTENCE)
    page = "generated/specops/pages/directml_argmax.txt"
    out = red(generated, page, "is out of date", GENERATE, VALIDATOR)
    assert "+++ from specs/directml/argmax.yaml" in out
    assert "-        InputTensor: Tensor to search." in out
    assert "+        InputTensor: Tensor to look through." in out


def test_check_stale_template(generated: Tree) -> None:
    generated.edit("templates/runtime/errors.py", "from __future__", "# more\nfrom __future__")
    out = red(generated, "generated/specops/errors.py", "is out of date", GENERATE)
    assert "+++ from templates/runtime/errors.py" in out
    assert "+# more" in out


def test_check_missing(generated: Tree) -> None:
    generated.path(CASES).unlink()
    out = red(generated, CASES, "is missing", GENERATE)
    assert '+DIALECT = "directml"' in out


def test_check_orphan(generated: Tree) -> None:
    orphan(generated, "specops/directml/argmean.py")
    out = red(generated, "generated/specops/directml/argmean.py", "belongs to no spec", GENERATE)
    assert "-x = 1" in out


@pytest.mark.parametrize(
    ("lines", "more"), [(37, ""), (38, "... 1 more lines"), (99, "... 62 more lines")]
)
def test_a_long_difference_is_cut(lines: int, more: str) -> None:
    """After its head of three lines and 37 others; what is left out is counted."""
    shown = output.Difference("orphan", "a.py", "x\n" * lines, "").diff("no spec").split("\n")
    assert len(shown) == 40 + bool(more)
    assert shown[-1] == (more or "-x")


def test_check_hand_edited(generated: Tree) -> None:
    text = generated.text(VALIDATOR)
    generated.write(VALIDATOR, text.replace("ranks=(1, 8)", "ranks=(1, 9)"))
    help = (
        "move the change to templates/directml/operator.py.jinja,"
        " then run `python -m generator generate --force`"
    )
    out = red(generated, VALIDATOR, "was edited by hand", help)
    assert "-                    ranks=(1, 9)," in out
    assert "+                    ranks=(1, 8)," in out


# A file that no template makes, with the module that does.
WITHOUT_TEMPLATE = {
    "generated/specops/pages/directml_argmax.txt": "generator/page.py",
    "generated/specops/catalogue.json": "generator/catalogue.py",
    "generated/spec.schema.json": "generator/model.py",
    "generated/vocabulary.schema.json": "generator/model.py",
}


def test_the_place_for_a_change_is_told(generated: Tree) -> None:
    """Of files without a template too, by `check`, `generate` and `explain`."""
    for file in WITHOUT_TEMPLATE:
        generated.write(file, generated.text(file) + " ")
    checked, refused = generated("check").out, generated("generate").err
    for file, origin in WITHOUT_TEMPLATE.items():
        assert f"{file} was edited by hand" in checked
        assert f"  = help: move the change to {origin}, then run" in checked
        assert f"  = help: move the change to {origin}; `--force` overwrites it" in refused
        assert f"  by {origin}\n" in generated("explain", file).out
    assert "+++ from generator/model.py" in checked
    assert "templates/" not in checked + refused


def test_each_place_for_a_change_is_there() -> None:
    report = Report()
    tree = structure.load_tree(PROJECT, report)
    assert tree is not None
    files = plan.files(lint.lint(tree, report), PROJECT / "templates")
    assert [f.path for f in files if not (PROJECT / f.origin).is_file()] == []


def test_case_tables_are_made_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files have those of an operator; to lint needs none."""
    made: list[str] = []
    tables = cases.tables

    def counted(operator: Operator, linted: lint.Linted) -> cases.Tables:
        made.append(operator.id)
        return tables(operator, linted)

    monkeypatch.setattr(cases, "tables", counted)
    assert tree("lint").code == 0
    assert made == []
    assert tree("generate").code == 0
    assert made
    assert len(made) == len(set(made))


@pytest.mark.parametrize(("steps", "count"), [(9, 0), (10**6, 2)])
def test_needs_that_take_too_long(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, steps: int, count: int
) -> None:
    """Those that are found within the limit are cases, and nothing fails."""
    monkeypatch.setattr(cases, "Budget", lambda: Budget(steps))
    assert tree("generate").code == exits.OK
    assert tree.text(CASES).count('"index_fits",\n        "axes_') == count


@pytest.mark.parametrize(
    ("data", "dtype", "alike"),
    [
        (0.1, "float64", True),
        (0.1, "float32", False),
        (0.1, "float16", False),
        ([0.5, [3, 0.1]], "float16", False),
        ([0.5, [3, 0.25]], "float16", True),
        (100000001, "int32", True),
    ],
)
def test_numbers_that_print_as_they_are_written(data: object, dtype: str, alike: bool) -> None:
    """Of others a docstring would show more digits than the page."""
    assert cases._printed_alike(data, dtype) == alike


def test_check_hand_edited_with_manifest(generated: Tree) -> None:
    """An edit whose hash was written into the manifest is no hand edit then, but still a difference."""
    text = generated.text(VALIDATOR)
    edited = text.replace("ranks=(1, 8)", "ranks=(1, 9)")
    generated.write(VALIDATOR, edited)
    old, new = (hashlib.sha256(t.encode()).hexdigest() for t in (text, edited))
    generated.edit("generated/MANIFEST", old, new)
    red(generated, VALIDATOR, "is out of date", GENERATE)


def test_check_looks_at_the_manifest(generated: Tree) -> None:
    """A manifest that is gone or damaged is a difference too: without it nobody can tell who edited a file."""
    manifest = generated.path("generated/MANIFEST")
    manifest.unlink()
    result = generated("check")
    assert result.code == exits.DIFFERENCES
    assert "generated/MANIFEST" in result.out
    dry = generated("generate", "--dry-run")
    assert dry.out.startswith("missing: generated/MANIFEST\n")
    assert ", the manifest restored (" in dry.out
    assert not manifest.exists()
    assert ", the manifest restored (" in generated("generate").out
    assert "restored" not in generated("generate").out
    generated.write("generated/MANIFEST", generated.text("generated/MANIFEST").replace("a", "b"))
    assert generated("check").code == exits.DIFFERENCES
    assert generated("generate").code == exits.OK
    assert generated("check").code == exits.OK


def test_bytes_that_are_no_text(small: Tree) -> None:
    """In generated files, those of nobody and the manifest: differences as others are."""
    assert small("generate").code == exits.OK
    before = small.generated()
    for name in ("MANIFEST", "specops/tensor.py", "notes"):
        small.path(f"generated/{name}").write_bytes(before.get(name, b"") + b"\xff\n")
    result = small("check")
    assert result.code == exits.DIFFERENCES
    assert result.out.count("\n-\ufffd\n") == 2
    assert small("generate", "--force").code == exits.OK
    small.path("generated/MANIFEST").write_bytes(before["MANIFEST"] + b"\xff\n")
    assert "-\ufffd\n" in small("check").out
    assert small("generate").code == exits.OK
    assert small.generated() == before


def test_check_json(generated: Tree) -> None:
    generated.path(CASES).unlink()
    result = generated("check", "--format", "json")
    assert result.code == exits.DIFFERENCES
    assert result.out == (
        '[\n  {\n    "kind": "missing",\n'
        f'    "file": "{CASES}",\n'
        f'    "message": "{CASES} is missing",\n'
        f'    "help": "{GENERATE}"\n'
        "  }\n]\n"
    )
    assert generated("generate").code == exits.OK
    assert generated("check", "--format", "json").out == "[]\n"


# --- what is refused -------------------------------------------------------------------------------------------------


def test_generate_refuses_a_hand_edit(generated: Tree) -> None:
    """E301, and nothing at all is written then, not even files that nobody edited."""
    generated.write("generated/specops/tensor.py", "x = 1\n")
    generated.edit(ARGMAX, *SENTENCE)
    generated.path(CASES).unlink()
    before, at = generated.generated(), times(generated)
    result = generated("generate")
    assert (result.code, result.out) == (exits.ERRORS, "")
    assert result.err == (
        "error[E301]: generated/specops/tensor.py was edited by hand\n"
        "  = help: move the change to templates/runtime/tensor.py; `--force` overwrites it\n\n"
    )
    assert (generated.generated(), times(generated)) == (before, at)
    assert generated("generate", "--force").code == exits.OK
    assert generated("check").code == exits.OK
    assert b"look through" in generated.generated()["specops/directml/argmax.py"]


def test_a_refusal_names_its_file_for_programs(small: Tree) -> None:
    assert small("generate").code == exits.OK
    name = "generated/specops/tensor.py"
    small.write(name, "x = 1\n")
    record = json.loads(small("generate", "--format", "json").out)[0]
    help = "move the change to templates/runtime/tensor.py; `--force` overwrites it"
    message = f"{name} was edited by hand"
    assert record == {"code": "E301", "message": message, "file": name, "help": help}
    assert small("generate", "--format", "github").out == (
        f"::error file={name},title=E301::{message}; help: {help}\n"
    )


def test_generate_refuses_to_remove_a_hand_edit(generated: Tree) -> None:
    """Of an operator that is gone; its other files go without being asked for, and so do those of no operator."""
    text = generated.text("generated/specops/plain/argmax.py")
    orphan(generated, "specops/extra.py")
    generated.write("generated/specops/plain/argmax.py", "x = 1\n")
    generated.path("specs/plain/argmax.yaml").unlink()
    before, at = generated.generated(), times(generated)
    result = generated("generate")
    assert (result.code, result.out) == (exits.ERRORS, "")
    assert result.err == (
        "error[E301]: generated/specops/plain/argmax.py belongs to no spec and was edited by hand\n"
        "  = help: move what you need out of generated/; `--force` removes it\n\n"
    )
    assert (generated.generated(), times(generated)) == (before, at)
    generated.write("generated/specops/plain/argmax.py", text)
    assert "4 removed" in generated("generate").out
    assert generated("check").code == exits.OK


@pytest.mark.parametrize("verb", ["generate", "check"])
def test_an_error_in_any_spec_stops_all(generated: Tree, verb: str) -> None:
    """With one bad spec nothing is written, also nothing of the good ones, and also with a good one's name."""
    generated.edit(ARGMAX, *SENTENCE)
    generated.edit("specs/plain/argmax.yaml", "kernel: arg_reduce", "kernel: arg_redcue")
    before, at = generated.generated(), times(generated)
    for names in ([], ["directml/argmax"]):
        result = generated(verb, *names)
        assert result.code == exits.ERRORS
        assert "specs/plain/argmax.yaml" in result.err
        assert (generated.generated(), times(generated)) == (before, at)


def test_an_error_in_a_template_writes_nothing(generated: Tree) -> None:
    generated.edit(ARGMAX, *SENTENCE)
    generated.edit("templates/plain/init.py.jinja", "{{ header }}", "{{ headr }}")
    before = generated.generated()
    result = generated("generate")
    assert result.code == exits.ERRORS
    assert "error[E401]: 'headr' is undefined" in result.err
    assert generated.generated() == before


def test_an_error_in_a_template_is_told_once(small: Tree) -> None:
    """However many specs are rendered with it."""
    text = small.text(ARGMAX)
    small.write("specs/directml/argmin.yaml", text.replace("_ARGMAX\n", "_ARGMIN\n", 1))
    shutil.copytree(PROJECT / "templates", small.path("templates"))
    template = "templates/directml/operator.py.jinja"
    small.write(template, small.text(template).replace("{{ header }}", "{{ headr }}", 1))
    result = small("generate")
    assert result.code == exits.ERRORS
    assert result.err.count("error[") == 1
    assert "error[E401]: 'headr' is undefined\n --> templates/directml/operator" in result.err


def said_of(root: Path, planned: plan.File, **templates: str) -> str:
    """What is wrong with a file that is made of these templates."""
    for name, text in templates.items():
        path = root / f"templates/{name}.jinja"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    report = Report()
    assert render.Renderer(root / "templates", report).render(planned, report) is None
    return report.text()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = 1\n\x00\n", 1, "source code string cannot contain null bytes"),
        ("x = 1\n\n  def:\n", 3, "unexpected indent (a.py, line 3) at `def:`"),
        ("x = (", 1, "'(' was never closed (a.py, line 1) at `x = (`"),
        ("x\r\rdef:\n", 3, "invalid syntax (a.py, line 3) at ``"),  # lines of Python only
        ("x = 1\n'\udce9'\n", 2, "this file is not UTF-8"),
    ],
)
def test_modules_that_are_no_python(tmp_path: Path, text: str, line: int, said: str) -> None:
    planned = plan.Written("specops/a.py", (), "templates/runtime/a.py", (), lambda: text)
    path = tmp_path / "templates/runtime/a.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    told = said_of(tmp_path, planned)
    assert said in told
    assert f" --> templates/runtime/a.py:{line}:" in told


@pytest.mark.parametrize(
    ("place", "said", "templates"),
    [
        (
            "b.jinja:2:3",
            "E401]: integer div",
            {"a": "{% include 'b.jinja' %}", "b": "\n  {{ 1 // 0 }}"},
        ),
        (
            "b.jinja:1:1",
            "E403]: there is no",
            {"a": "\n{% include 'b.jinja' %}", "b": "{% include 'c' %}"},
        ),
        ("a.jinja:1:1", "E401]: 'utf-8' codec can't decode", {"a": "a\n\xe9\n"}),
    ],
)
def test_the_place_in_a_template(
    tmp_path: Path, place: str, said: str, templates: dict[str, str]
) -> None:
    """That of the one that another includes; the first line, where none is rendered yet."""
    planned = plan.Filled("specops/a.py", ("specs/",), "templates/a.jinja", (), dict)
    told = said_of(tmp_path, planned, **templates)
    assert told.startswith(f"error[{said}")
    assert f" --> templates/{place}\n" in told


@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("kernels", "error[E302]: templates/kernels: "),
        ("runtime", "error[E403]: there is no `templates/runtime/lowering/arg_reduce.py`"),
    ],
)
def test_missing_templates_remove_nothing(generated: Tree, folder: str, error: str) -> None:
    before = generated.generated()
    shutil.rmtree(generated.path(f"templates/{folder}"))
    result = generated("generate")
    assert result.code == exits.ERRORS
    assert error in result.err
    assert generated.generated() == before


@pytest.mark.parametrize(
    ("removed", "missing"),
    [
        ("lowering/axes.py", ["specops.lowering.axes"]),
        ("dxdispatch", ["specops.dxdispatch", "specops.dxdispatch.model"]),
        ("__main__.py", []),
    ],
)
def test_modules_that_others_import(generated: Tree, removed: str, missing: list[str]) -> None:
    """Where the template of one is removed, the first that imports it is told, and nothing is written."""
    before = generated.generated()
    path = generated.path(f"templates/runtime/{removed}")
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    result = generated("generate")
    assert result.code == (exits.ERRORS if missing else exits.OK)
    for module in missing:
        assert result.err.count(f"no generated file is the module `{module}`\n") == 1
    assert result.err.count("--> templates/runtime/") == result.err.count("error[E403]")
    assert (generated.generated() == before) == bool(missing)


def test_comments_name_no_modules(generated: Tree) -> None:
    """Behind what is imported, on its line or within its parentheses."""
    lines = "def late():\n    from specops import tensor  # noqa: PLC0415 (a circle, else)\n"
    lines += "    from specops import (\n        tensor,  # one, (two)\n        errors,\n    )\n"
    generated.write("templates/runtime/late.py", lines)
    assert generated("generate").code == exits.OK


@pytest.mark.parametrize("verb", ["generate", "check", "lint"])
def test_unknown_operator(generated: Tree, verb: str) -> None:
    before = generated.generated()
    result = generated(verb, "argmx")
    assert result.code == exits.ERRORS
    assert "there is no operator `argmx`\n  = help: did you mean `argmax`?" in result.err
    assert generated.generated() == before


def test_no_verb_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == exits.OK
    out = capsys.readouterr().out
    for word in ("usage: python -m generator", "generate", "check", "lint", "Exit codes"):
        assert word in out


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["generat"])
    assert caught.value.code == exits.ERRORS
    assert "generat" in capsys.readouterr().err


def test_a_bug_of_the_generator(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception shows its traceback, says whose fault it is, and has an exit code of its own."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(plan, "files", fail)
    result = tree("generate")
    assert result.code == exits.BUG
    assert "planted" in result.err
    assert "bug of the generator" in result.err
    assert not tree.path("generated").exists()


# --- files and folders that cannot be written ------------------------------------------------------------------------


def test_a_file_where_a_folder_should_be(tree: Tree) -> None:
    """It is an orphan, and goes before the folder is made."""
    orphan(tree, "specops")
    assert tree("generate").code == exits.OK
    assert tree("check").code == exits.OK


def test_a_file_in_place_of_generated(tree: Tree) -> None:
    tree.write("generated", "in the way\n")
    clear_error(tree("generate"))
    assert tree.text("generated") == "in the way\n"


def test_what_the_system_refuses_is_told_to_programs(small: Tree) -> None:
    small.write("generated", "in the way\n")
    result = small("generate", "--format", "json")
    assert (result.code, result.err) == (exits.ERRORS, "")
    (record,) = json.loads(result.out)
    assert (record["code"], record["file"]) == ("E302", "generated")
    result = small("generate", "--format", "github")
    assert (result.code, result.err) == (exits.ERRORS, "")
    assert result.out.startswith(
        "::error file=generated,title=E302::generated: Not a directory; help: "
    )


@pytest.mark.parametrize("way", ["empty", "full"])
def test_a_folder_where_a_file_should_be(generated: Tree, way: str) -> None:
    """All targets are looked at before the first is written: nothing has changed, the manifest neither."""
    target = generated.path("generated/specops/tensor.py")
    target.unlink()
    target.mkdir()
    if way == "full":
        generated.write("generated/specops/tensor.py/keep", "in the way\n")
    generated.edit(ARGMAX, *SENTENCE)
    before, at = generated.generated(), times(generated)
    for options in ([], ["--dry-run"]):
        result = generated("generate", "--force", *options)
        clear_error(result)
        assert result.err == (
            "error[E302]: generated/specops/tensor.py: Is a directory\n"
            "  = help: a file is to be written here: remove the folder,"
            " then run `python -m generator generate` again; nothing was written\n\n"
        )
        assert (generated.generated(), times(generated)) == (before, at)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(28, "No space left")]
)
def test_a_folder_that_cannot_be_written(
    generated: Tree, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """A clear message with the file's name and what to do; no temporary file stays behind."""
    generated.edit(ARGMAX, *SENTENCE)
    before = generated.generated()
    real = os.replace

    def fail(source: str, target: Path) -> None:
        if target.name != "MANIFEST":
            raise type(error)(error.errno, error.strerror, source)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        result = generated("generate")
    clear_error(result)
    first = "generated/specops/directml/argmax.py"
    said, help, _ = result.err.split("\n", 2)
    assert said.startswith(f"error[E302]: {first}: {error.strerror}")
    assert help == (
        "  = help: mend this, then run `python -m generator generate` again;"
        " until then generated/ is partly written"
    )
    now = generated.generated()
    assert {path for path in now if now[path] != before.get(path)} == {"MANIFEST"}
    assert generated("generate").code == exits.OK


def test_a_run_that_fails_forgets_no_hand_edit(
    small: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that it was not asked for: neither these nor what was never generated are as generated then."""
    text = small.text(ARGMAX).replace("_ARGMAX\n", "_ARGMIN\n", 1)
    small.write("specs/directml/argmin.yaml", text)
    assert small("generate").code == exits.OK
    for name in ("specops/directml/argmin.py", "notes"):
        small.write(f"generated/{name}", "by hand\n")
    small.edit(ARGMAX, *SENTENCE)
    real = os.replace

    def fail(source: str, target: Path) -> None:
        if target.name != "MANIFEST":
            raise OSError(28, "No space left", source)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        clear_error(small("generate", "argmax"))
    refused = small("generate").err
    assert "error[E301]: generated/specops/directml/argmin.py was edited by hand\n" in refused
    assert "error[E301]: generated/notes belongs to no spec and is not in" in refused


def test_a_folder_where_the_manifest_should_be(small: Tree) -> None:
    assert small("generate").code == exits.OK
    small.path("generated/MANIFEST").unlink()
    small.path("generated/MANIFEST").mkdir()
    small.edit(ARGMAX, *SENTENCE)
    before = small.generated()
    result = small("generate", "--force")
    clear_error(result)
    assert "a file is to be written here: remove the folder" in result.err
    assert "; nothing was written\n" in result.err
    assert small.generated() == before


def test_an_orphan_that_somebody_removed(small: Tree) -> None:
    """It is gone from the manifest, too."""
    assert small("generate").code == exits.OK
    orphan(small, "specops/old.py")
    small.path("generated/specops/old.py").unlink()
    assert small("check").code == exits.DIFFERENCES
    assert small("generate").code == exits.OK
    assert "specops/old.py" not in small.text("generated/MANIFEST")
    assert small("check").code == exits.OK


# --- determinism -----------------------------------------------------------------------------------------------------


def pythons() -> list[str]:
    """This interpreter, and the others on the machine that have what the generator needs."""
    found = [sys.executable]
    for minor in range(11, 16):
        path = shutil.which(f"python3.{minor}")
        if path is not None and minor != sys.version_info.minor:
            ready = trees.spawn("-c", "import jinja2, yaml, pydantic", python=path)
            found += [path] if ready.code == 0 else []
    return found


SETTINGS = [
    {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "1", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONUTF8": "0"},
    {
        "PYTHONHASHSEED": "random",
        "TZ": "Pacific/Kiritimati",
        "COLUMNS": "20",
        "PYTHONOPTIMIZE": "2",
    },
    {"PYTHONHASHSEED": "2", "PYTHONUTF8": "1", "PYTHONWARNINGS": "error", "NO_COLOR": "1"},
]


def test_output_depends_on_nothing_else(tmp_path: Path) -> None:
    """Other folders, hash seeds, locales, time zones, Python versions: the bytes of the committed files."""
    committed = trees.contents(PROJECT / "generated")
    assert len(committed) > 20
    interpreters = pythons()
    assert interpreters
    runs = [(python, setting) for python in interpreters for setting in SETTINGS]
    for i, (python, setting) in enumerate(runs):
        root = trees.copy(tmp_path / f"tree {i}" / "çşğ")
        elsewhere = tmp_path / f"elsewhere {i}"
        elsewhere.mkdir()
        result = trees.spawn(
            *(
                "-m",
                "generator",
                "generate",
                "--root",
                str(root) if i % 2 else os.path.relpath(root, elsewhere),
            ),
            python=python,
            cwd=elsewhere,
            environment={"PYTHONPATH": str(PROJECT), **setting},
        )
        assert result.code == exits.OK, (python, setting, result.err)
        assert trees.contents(root / "generated") == committed, (python, setting)


def test_windows_line_ends_change_nothing(whole: Tree) -> None:
    """A checkout with CRLF gives the same bytes."""
    for path in [*whole.path("specs").rglob("*.yaml"), *whole.path("templates").rglob("*")]:
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert whole("generate").code == exits.OK
    assert whole.generated() == trees.contents(PROJECT / "generated")


# --- what generated files say of themselves --------------------------------------------------------------------------


def test_headers(generated: Tree) -> None:
    """Three stable lines: who, from which existing files, how; no date, version or line number in them."""
    files = [p for p in generated.generated() if p.endswith(".py")]
    assert len(files) > 20
    for file in files:
        lines = generated.text(f"generated/{file}").split("\n")
        assert lines[0] == "# Generated by the specops generator: edits here are overwritten."
        match = re.fullmatch(r"# From ([^ ]+(?:, [^ ]+)*)\.", lines[1])
        assert match, lines[1]
        sources = match[1].split(", ")
        assert sources[-1].startswith(("templates/", "generator/"))
        for name in sources:
            root = PROJECT if name.startswith("generator/") else generated.root
            assert (root / name).exists(), name
        assert re.fullmatch(
            r"# Regenerate with: python -m generator generate(?: [a-z0-9_]+)*", lines[2]
        )
        assert not re.search(r"\d{4}-\d\d|\d+:\d+|line \d|v\d", "".join(lines[:3]))


def test_command_of_a_header_mends_the_file(generated: Tree) -> None:
    """What the third line says brings the file up to date again."""
    for file in ("specops/directml/argmax.py", "specops/tensor.py"):
        text = generated.text(f"generated/{file}")
        arguments = text.split("\n")[2].partition("python -m generator ")[2].split()
        generated.path(f"generated/{file}").unlink()
        assert generated(*arguments).code == exits.OK
        assert generated.text(f"generated/{file}") == text


def test_manifest(generated: Tree) -> None:
    """Each file once with the hash of its bytes, in the form that sha256sum reads."""
    files = generated.generated()
    lines = files.pop("MANIFEST").decode().splitlines()
    assert lines == [f"{hashlib.sha256(files[p]).hexdigest()}  {p}" for p in sorted(files)]


def test_files_end_well(generated: Tree) -> None:
    """UTF-8 without surprises: no CR, no tab, no trailing blank, one line end at the end."""
    for file, data in generated.generated().items():
        text = data.decode("utf-8")
        assert not re.search(r"[\r\t]| +$", text, re.MULTILINE), file
        assert text == "" or (text.endswith("\n") and not text.endswith("\n\n")), file


def test_golden(
    tmp_path: Path, run: Callable[[list[str]], trees.Result], expect: Callable[[Path, str], None]
) -> None:
    """One small operator with everything that is generated for it, as one reads it in a review."""
    golden = PROJECT / "tests" / "golden"
    root = tmp_path / "tree"
    shutil.copytree(golden / "specs", root / "specs")
    shutil.copytree(PROJECT / "templates", root / "templates")
    assert run(["generate", "--root", str(root)]).code == exits.OK
    written = trees.contents(root / "generated")
    spec = b"specs/directml/argmin_small.yaml"
    own = [p for p in written if spec in written[p][:300] or p == "DECIDED.md"]
    assert "specops/directml/argmin_small.py" in own
    assert "tests/cases/directml_argmin_small.py" in own
    for path in own:
        expect(golden / "generated" / path, written[path].decode())
    assert sorted(trees.contents(golden / "generated")) == sorted(own)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('a "word" that\'s more', "'a \"word\" that\\'s more'"),
        ("that's a \"more", '"that\'s a \\"more"'),
    ],
)
def test_quotes_in_texts(small: Tree, text: str, quoted: str) -> None:
    """Of a spec and of a shared constraint that a kernel requires: Python has them as a formatter would."""
    yaml = text.replace("'", "''")
    small.edit(trees.VOCABULARY, '"{array} has no value twice"', f"'{yaml}'")
    small.edit(
        ARGMAX, "allowed: each axis is less than the number of dimensions", f"allowed: '{yaml}'"
    )
    assert small("generate").code == exits.OK
    assert f'("axes",), {quoted}),\n' in small.text("generated/specops/requirements.py")
    module = small.text("generated/specops/directml/argmax.py")
    assert module.count(f" allowed={quoted},\n") == 2


@pytest.mark.parametrize("over", [0, 1])
def test_lines_are_as_wide_as_they_may_be(over: int) -> None:
    """100 columns, with what follows on the line."""

    def filling(line: str) -> str:
        return "a" * (100 + over - len(line))

    def function(line: str) -> Any:
        return SimpleNamespace(name="f", parameters=[(filling(line), "int")])

    lines = [
        render.literal((filling('    ("", 1),'), 1), 4),
        render.mapping([(filling('    {"": b},'), "b")], 4),
        render.call([filling("    f(, b),"), "b"], "f", 4),
        render.define(function("def f(: int) -> b:"), "b"),
    ]
    assert ["\n" in text for text in lines] == [bool(over)] * 4
    broken = [
        render.call([filling("        , b"), "b"], "function", 4),
        render.define(function("    : int"), "b"),
    ]
    assert [",\n" in text for text in broken] == [bool(over)] * 2


def test_functions_of_all_expressions_are_imported(small: Tree) -> None:
    """Those of sizes, data types and semantics, too, of which no constraint calls them."""
    changes = {
        "[1 if d in Axes else": "[1 if d in Axes and product(Axes) >= 0 else",
        "dtype: UINT32\n": 'dtype: \'"UINT32" if power_of_two(rank(InputTensor)) else "UINT32"\'\n',
        "axes: {value: Axes,": "axes: {value: '[a for a in Axes if item_bytes(InputTensor.dtype) > 0]',",
    }
    for old, new in changes.items():
        small.edit(ARGMAX, old, new)
    assert small("generate").code == exits.OK
    module = small.text("generated/specops/directml/argmax.py")
    for name in ("product", "power_of_two", "item_bytes"):
        assert re.search(rf"^from specops\.\w+ import .*\b{name}\b", module, re.MULTILINE), name


def test_what_editors_leave_beside_templates(tmp_path: Path) -> None:
    """Hidden files, backups and caches are no templates; and no package is made of no operators."""
    names = [
        *("kernels/a.py", "helpers/a.py", "helpers/b/c.py", "runtime/a.py", "runtime/b/c.txt"),
        *("kernels/.a.py", "kernels/a.py.orig", "helpers/b/.c.py", "helpers/a.py.orig"),
        *("runtime/.a.py", "runtime/b/c.txt~", "runtime/b/__pycache__/c.pyc", "tests/.a.py"),
        *("runtime/.tool_cache/b/c.txt", "helpers/.a/d.py", "kernels/__pycache__/d.py"),
    ]
    for name in names:
        path = tmp_path / "templates" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    report = Report()
    tree = structure.load_tree(trees.BASE, report)
    assert tree is not None
    files = plan.files(lint.lint(tree, report), tmp_path / "templates")
    folders = ("templates/kernels/", "templates/runtime/", "templates/tests/")
    copied = [f.origin.removeprefix("templates/") for f in files if f.origin.startswith(folders)]
    assert sorted(copied) == ["kernels/a.py", "runtime/a.py", "runtime/b/c.txt"]
    assert paste.helper_paths(tmp_path / "templates") == [
        "templates/helpers/a.py",
        "templates/helpers/b/c.py",
    ]
    packages = [
        f.path for f in files if f.path.endswith("/__init__.py") and f.path.startswith("specops")
    ]
    assert packages == ["specops/__init__.py", "specops/directml/__init__.py"]


def test_decisions_of_all_versions() -> None:
    """Each is told once in its operator's section, with just the versions that have it."""
    text = (PROJECT / "generated" / "DECIDED.md").read_text(encoding="utf-8")
    told: set[tuple[str, str, str]] = set()
    section = r"^## \S+ \((\w+/\w+)(?:, versions? ([\d, ]+))?\)$(.*?)(?=^## |\Z)"
    for id, listed, body in re.findall(section, text, re.MULTILINE | re.DOTALL):
        bullet = r"^- \*\*(\w+)\*\*(?: \((?:all versions|versions? ([\d, ]+))\))?: (.*)$"
        bullets = re.findall(bullet, body, re.MULTILINE)
        assert len({(name, said) for name, _, said in bullets}) == len(bullets), id
        for name, only, said in bullets:
            versions = (only or listed).split(", ")
            told |= {(f"{id}_{v}" if v else id, name, said) for v in versions}
    report = Report()
    tree = structure.load_tree(PROJECT, report)
    assert tree is not None
    linted = lint.lint(tree, report)
    known = {(o.id, d.id, d.text) for o in linted.operators for d in decided.of_operator(o)}
    assert told == known


def test_integers_are_shown_as_they_are(tree: Tree) -> None:
    """Only floats of a kernel that rounds are shown rounded."""
    text = (PROJECT / "specs/plain/mean.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\[FLOAT64.*?\]", "[INT32]", text)
    data = "x: {dtype: INT32, data: [[1, -2, 3], [6, 4, -1]]}, axis: [1]"
    result = "out: {dtype: INT32, data: [0, 3]}"
    example = f"  - {{id: rows, page: a, given: {{{data}}}, expect: {{{result}}}}}\n"
    text = text[: text.index("  - id: rows\n")] + example + text[text.index("\nsilent:") :]
    tree.write("specs/plain/mean.yaml", text)
    assert tree("generate").code == exits.OK
    module = tree.text("generated/specops/plain/mean.py")
    assert ">>> specops.mean(x, axis=[1]).tolist()\n    [0, 3]\n" in module


def test_an_attribute_that_a_newer_version_lacks() -> None:
    """The function of all versions takes it, and hands it on."""
    report = Report()
    tree = structure.load_tree(PROJECT, report)
    assert tree is not None
    linted = lint.lint(tree, report)
    first, *newer = (o for o in linted.operators if o.source.file.startswith("specs/onnx/hardmax_"))
    gone = first.spec.field("axis").model_copy(update={"name": "formerSize"})
    spec = first.spec.model_copy(update={"fields": [*first.spec.fields, gone]})
    first = dataclasses.replace(first, source=dataclasses.replace(first.source, spec=spec))
    newest = values.operator(newer[-1], linted)
    whole = values.versions([first, *newer], newest, linted)["op"]
    assert [p.name for p in whole.parameters] == ["axis", "former_size", "opset"]
    assert whole.attributes == [("axis", "axis"), ("formerSize", "former_size")]


def test_a_derived_value_may_be_a_float(tree: Tree) -> None:
    text = (PROJECT / "specs/plain/lp_pool.yaml").read_text(encoding="utf-8")
    derived = "derived:\n  - {name: power, value: p, doc: The exponent again.}\n"
    text = text.replace("derived:\n", derived).replace("require: p >= 1", "require: power >= 1")
    text = text[: text.index("\nequivalences:")] + text[text.index("\nsilent:") :]
    tree.write("specs/plain/lp_pool.yaml", text)
    assert tree("generate").code == exits.OK
    module = tree.text("generated/specops/plain/lp_pool.py")
    assert "def power(p: float) -> float:\n" in module
    assert "def p_allowed(power: float) -> bool:\n" in module


def test_examples_are_short_and_give_no_defaults() -> None:
    """A call that is too long goes on below the prompt; what it leaves out is what the other arguments imply."""
    modules = trees.contents(PROJECT / "generated" / "specops")
    for file, data in modules.items():
        if b"From specs/" in data[:300]:
            shown = re.findall(r"^ *(?:>>>|\.\.\.) .*", data.decode(), re.MULTILINE)
            assert all(len(line) <= 102 for line in shown), file  # an array is not broken
    short = b">>> dml.max_pooling_grad(x, input_gradient, window_size=[2, 2])"
    assert short in modules["directml/max_pooling_grad.py"]
    given = b"x, window_size=[3, 3], strides=[2, 2], start_padding=[1, 1], end_padding=[1, 1]"
    broken = b">>> specops.lp_pool(\n    ...     " + given + b"\n    ... ).astype"
    assert broken in modules["plain/lp_pool.py"]


def test_only_what_numpy_has_a_method_for_is_compared_with_it(tree: Tree) -> None:
    """Each line of a docstring runs, whatever a plain function is named."""
    text = tree.text("specs/plain/argmax.yaml")
    own = text.replace("operator: argmax\n", "operator: webnn_arg_max\n")
    tree.write("specs/plain/webnn_arg_max.yaml", own)
    assert tree("generate").code == exits.OK
    assert "x[position] == x.max()" in tree.text("generated/specops/plain/argmax.py")
    assert "unravel_index(" not in tree.text("generated/specops/plain/webnn_arg_max.py")


def test_leftovers_are_tidied(generated: Tree) -> None:
    """Temporary files of a run that was killed go with the next run."""
    generated.write(f"generated/specops/{output._TEMPORARY}0abc12ef", "half")
    others = [f"{output._TEMPORARY}notes", f"{output._TEMPORARY}1abc12ef/notes"]
    for name in others:
        generated.write(f"generated/{name}", "dear")
    assert generated("check").code == exits.OK
    assert generated("generate").code == exits.OK
    left = [p for p in generated.root.rglob(f"{output._TEMPORARY}*") if p.is_file()]
    assert left == [generated.path(f"generated/{others[0]}")]
    assert generated.text(f"generated/{others[1]}") == "dear"


def test_each_helper_has_a_name_of_its_own() -> None:
    """Whoever reads a kernel need not ask which of two is meant."""
    found: dict[str, list[str]] = {}
    for module in Helpers(PROJECT / "templates", Report()).modules.values():
        for name in module.names:
            found.setdefault(name, []).append(module.path)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_an_underscore_tells_what_a_helper_is_for() -> None:
    """Compiled functions that other modules call have none; what is private, or emits code, has one."""
    paths = [p for d in ("helpers", "kernels") for p in (PROJECT / "templates" / d).rglob("*.py")]
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    imports = [
        node
        for module in modules.values()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
    ]
    shared = {(node.module, name.name) for node in imports for name in node.names}
    wrong = []
    for path in sorted((PROJECT / "templates" / "helpers").rglob("*.py")):
        for node in modules[path].body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                maker = ast.unparse(
                    node.value.func
                )  # of compiled functions, where it is one of the helpers'
                names = [ast.unparse(n) for n in node.targets if maker.startswith("_")]
                wrong += [n for n in names if ((path.stem, n) in shared) == n.startswith("_")]
            elif isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
                compiled = decorators & {"helper", "inlined", "intrinsic", "separate"}
                emits = "builder" in [argument.arg for argument in node.args.args]
                called = bool(compiled) and (path.stem, node.name) in shared
                if (compiled or emits) and called == node.name.startswith("_"):
                    wrong.append(f"{path.name}: {node.name}")
    assert wrong == []


def pasted(root: Path, kernel: str, **helpers: str) -> tuple[str | None, str]:
    """What becomes of a kernel and its helpers, and what is wrong with them."""
    folder = root / "templates"
    for path, text in {
        "kernels/k": kernel,
        **{f"helpers/{n}": t for n, t in helpers.items()},
    }.items():
        file = folder / f"{path}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1"))
    report = Report()
    return Helpers(folder, report).pasted("templates/kernels/k.py", report), report.text()


def test_a_kernel_defines_no_name_of_its_helpers(tmp_path: Path) -> None:
    """All of the module would use the one below, and of two of its own, too."""
    kernel = "from a import b\n\n\ndef c(): ...\n\n\ndef d(): ...\n\n\ndef d(): ...\n"
    text, said = pasted(tmp_path, kernel, a="def b(): ...\n\n\ndef c(): ...\n")
    assert text is None
    rename = "  = help: a kernel and the helpers in it share their names; rename one in"
    assert re.findall(rf"`(\w)` is defined twice.*?\n{rename} (.*?)\n", said, re.DOTALL) == [
        ("c", "templates/helpers/a.py"),
        ("d", "this template"),
    ]


KERNEL = """
from __future__ import annotations

import math
from functools import partial

import numba.core.types
from numba import types as kinds, njit, All, MOST, nopython
import numpy as np

from a import a

K = a, math.pi, numba.core.types, kinds, njit, All, MOST, np
"""
MODULE = """
from __future__ import annotations

import math

import numba.core.types
import numba.extending
import numpy as np
from numba import MOST, All, njit, types
from numba import types as kinds


def a(): return numba.extending, types


K = a, math.pi, numba.core.types, kinds, njit, All, MOST, np
"""


def test_imports_of_a_kernel(tmp_path: Path) -> None:
    """One block of those that its module names; two modules of a package are no two things of one name."""
    helper = "import numba.extending\nfrom numba import types\n\n\ndef a(): return numba.extending, types\n"
    assert pasted(tmp_path, KERNEL, a=helper) == (MODULE.lstrip("\n"), "")
    said = pasted(tmp_path, KERNEL.replace("import math", "import math as np"), a=helper)[1]
    assert "`np` is defined twice in this kernel" in said


def test_a_kernel_without_helpers(tmp_path: Path) -> None:
    """Nor docstring, nor imports."""
    assert pasted(tmp_path, "K = 1\n") == ("\nK = 1\n", "")
    assert pasted(tmp_path, '"""K."""\n\nK = 1\n') == ('"""K."""\n\n\nK = 1\n', "")


@pytest.mark.parametrize(
    ("kernel", "line", "message"),
    [
        (
            "from a import (\n    b,\n    c,\n)\n",
            "3:5",
            "templates/helpers/a.py does not define `c`",
        ),
        ("from .a import b\n", "1:1", "kernels and helpers cannot import `.a`"),
        ("from .math import log\n", "1:1", "kernels and helpers cannot import `.math`"),
        ("from . import a\n", "1:1", "kernels and helpers cannot import `.`"),
        ("K = 1\n\xe9\n", "1:1", "cannot read this template: 'utf-8' codec can't decode byte 0xe9"),
        ("K = 1\0\n", "1:1", "cannot read this template: source code string cannot contain null"),
    ],
)
def test_what_a_kernel_cannot_be(tmp_path: Path, kernel: str, line: str, message: str) -> None:
    text, said = pasted(tmp_path, kernel, a="def b(): ...\n")
    assert text is None
    assert said.count("error[") == 1
    assert re.match(rf"error\[E40[26]\]: {re.escape(message)}", said)
    assert f"--> templates/kernels/k.py:{line}\n" in said


def test_helpers_in_a_circle(tmp_path: Path) -> None:
    """It is told without those that only lead to it, and one that imports itself is one, too."""
    helpers = {"a": "from b import b\n", "b": "from c import c\n\n\ndef b(): ...\n"}
    helpers |= {"c": "from b import b\n\n\ndef c(): ...\n", "d": "from d import d\n\n\nd = 1\n"}
    _, said = pasted(tmp_path, "", **helpers)
    assert re.findall("import each other: (.*)", said) == ["b -> c -> b", "d -> d"]


@pytest.mark.parametrize(
    ("text", "helpers", "kept"),
    [
        # Of several names one is for the host, or the kernel's own.
        ("_A, b = 1, 2\nC = 3\n", {"_A", "b", "C"}, "C = 3\n"),
        ("A, b = 1, 2\nC = 3\n", {"A", "b"}, "A, b = 1, 2\nC = 3\n"),
        ("a, b = 1, 2\nC = 3\n", {"b"}, "a, b = 1, 2\nC = 3\n"),
        # Blank lines stay as they were on either side.
        ("def a(): ...\n\n\n_b = 1\nC = 2\n", {"_b"}, "def a(): ...\n\n\nC = 2\n"),
        ("A = 1\n_b = 2\n\n\ndef c(): ...\n", {"_b"}, "A = 1\n\n\ndef c(): ...\n"),
        ("_b = 1\nC = 2\n# end", {"_b"}, "C = 2\n# end\n"),
        # The last line of a text is no comment.
        ('A = """\n# b"""\n# c\n_d = 2\n', {"_d"}, 'A = """\n# b"""\n'),
        ("A = 1  # \u2028\n_b = 2\nC = 3\n", {"_b"}, "A = 1  # \u2028\nC = 3\n"),
        ("b = {}\nb[c] = 1\nc = 2\nD = 3\n", {"b", "c"}, None),
        # A class is told of by its decorator, too.
        ("@tell(b)\nclass Ab: ...\n\n\nb = 1\nC = b\n", {"Ab", "b"}, None),
        ("C = tell\n\n\n@tell(b)\nclass Ab: ...\n\n\nb = 1\n", {"Ab", "b"}, "C = tell\n"),
        # So is a function by a statement, but for the kernel's own.
        ("C = 2\n\n\ntell(b)\nb = 1\n", {"b"}, "C = 2\n"),
        ("C = 2\n\n\ntell(C)\nprint()\n", {"b"}, None),
        # What a class reads of the module may have the name of a member, and that of a method's variable.
        ("class A:\n    b = b\n\n\nb = 1\nc = 2\n", {"b"}, None),
        ("class A:\n    b = 1\n\n\nb = 1\n", {"b"}, "class A:\n    b = 1\n"),
        (
            "class A:\n    def c(self):\n        b = 1\n\n\nb = 1\n",
            {"b"},
            "class A:\n    def c(self):\n        b = 1\n",
        ),
    ],
)
def test_what_of_helpers_is_pasted(text: str, helpers: set[str], kept: str | None) -> None:
    lines = text.split("\n")
    every = statements(ast.parse(text).body, lines)
    shared = [statement for statement in every if {*statement.defines} <= helpers]
    dropped, _ = unreached([statement for statement in every if statement not in shared], shared)
    left = "\n".join(without(lines, dropped)).strip("\n")
    assert f"{left}\n" == (text if kept is None else kept)


@pytest.mark.parametrize(
    ("text", "differ"),
    [
        ("class A:\n    def __init__(self, *, x, out, spare=None): ...", set()),
        ("class A:\n    def __init__(self, *, x, y): ...", {"out", "y"}),
        ("class A:\n    def __init__(self, *, x, **others): ...", set()),
        ("class A(B): ...", set()),
        ("from specops.lowering.b import B as A", set()),
        ("A = B", set()),
        ("if WIDE:\n    class A: ...", set()),
        ("class B:\n    a = A", None),
    ],
)
def test_what_a_host_class_takes(tmp_path: Path, text: str, differ: set[str] | None) -> None:
    """Only what plainly differs is told: a class may be made in other ways."""
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    assert selection._host(path, "A", ["x", "out"]) == differ
