"""Every diagnostic, with the bad input beside the exact text it gives: diagnostics/NAME.yaml and NAME.txt.

A case is a change of the small good tree in diagnostics/base:

    in: the changed file, where it is not the spec
    replace, with: a piece of the file, which must be there once, and what stands there instead
    write: the whole text of the file; remove: there is no such file; move: it has another name
    again: names of copies of the file, each with what is replaced there by what
    encoding: of the file; pad: so many blanks are added to it
    command: the verb and its operators, where it is not `lint`
    edited: a generated file that somebody edits before the command runs
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trees
import yaml

from generator import exits, source
from generator.diagnostics import Report, Span

FOLDER = Path(__file__).parent / "diagnostics"
BASE = trees.BASE
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))

Run = Callable[[list[str]], trees.Result]


def bad_tree(name: str, root: Path, run: Run) -> list[str]:
    """Make the tree of a case; the command to run on it."""
    case: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    known = {"in", "replace", "with", "write", "remove", "move", "encoding", "pad", "command"}
    assert case.keys() <= {*known, "again", "edited"}, "a case has another key"
    shutil.copytree(BASE, root)
    command = case.get("command", ["lint"])
    file = case.get("in", trees.ARGMAX)
    if command[0] != "lint":
        shutil.copytree(trees.PROJECT / "templates", root / "templates")
    tree = trees.Tree(root, run)
    if "edited" in case:
        assert tree("generate").code == 0
        tree.write(case["edited"], "by hand\n")
    if "replace" in case:
        tree.edit(file, case["replace"], case["with"])
    if "write" in case:
        tree.write(file, case["write"])
    for copy, changes in case.get("again", {}).items():
        tree.write(copy, tree.text(file))
        for old, new in changes.items():
            tree.edit(copy, old, new)
    if "encoding" in case:
        tree.path(file).write_bytes(tree.text(file).encode(case["encoding"]))
    if "pad" in case:
        tree.write(file, tree.text(file) + " " * case["pad"])
    if "remove" in case:
        tree.path(file).unlink()
    if "move" in case:
        tree.path(case["move"]).parent.mkdir(exist_ok=True)
        tree.path(file).rename(tree.path(case["move"]))
    return [*command, "--root", str(root)]


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, tmp_path: Path, run: Run, expect: Callable[[Path, str], None]) -> None:
    """The command prints exactly the text beside the case, says the code of its name, and exits with 2."""
    result = run(bad_tree(name, tmp_path / "tree", run))
    expect(FOLDER / f"{name}.txt", result.err)
    assert result.code == exits.ERRORS
    assert result.out == ""
    assert f"error[{name.split('_', maxsplit=1)[0]}]: " in result.err


def test_base_is_good(run: Run) -> None:
    """What the cases change is without errors, so that each error comes from the change."""
    result = run(["lint", "--root", str(BASE)])
    assert (result.code, result.err) == (exits.OK, "")


def test_what_has_no_effect_may_be_explained(small: trees.Tree) -> None:
    """An attribute that nothing reads is good where an entry of `silent` says why."""
    text = small.text(trees.ARGMAX)
    field = "  - {name: AxisMode, kind: attribute, type: uint, default: 0, doc: Nothing.}\n"
    text = text.replace("\nsupport:\n", f"{field}\nsupport:\n")
    small.write(trees.ARGMAX, text)
    assert "nothing reads `AxisMode`" in small("lint").err
    why = "silent:\n  - {id: axis_mode, decided: It changes nothing.}\n"
    small.write(trees.ARGMAX, text.replace("errata: []", f"{why}errata: []"))
    assert (small("lint").code, small("lint").err) == (exits.OK, "")


def with_rule(tree: trees.Tree, require: str, violate: str) -> None:
    """A further constraint, over a derived value, too."""
    derived = "  - {name: count, value: product(InputTensor.sizes), doc: Elements.}\n"
    derived += "  - {name: twice, value: 2 * count, doc: Twice as many.}\n"
    tree.edit(trees.ARGMAX, "\nsupport:\n", f"\nderived:\n{derived}\nsupport:\n")
    rule = f"require: {require}, allowed: so, field: InputTensor, decided: So., violate: {violate}"
    tree.edit(trees.ARGMAX, "\nsemantics:\n", f"  - {{id: more, {rule}}}\n\nsemantics:\n")


def test_rules_of_what_a_bad_tensor_gives_are_not_asked(small: trees.Tree) -> None:
    """Derived values follow from its sizes, others from these: no size is 0 where a rule of tensors has failed."""
    with_rule(small, "twice > 2", "{InputTensor.sizes: [1, 1]}")
    assert (small("lint").code, small("lint").err) == (exits.OK, "")


def test_rules_of_outputs_are_not_asked_of_inputs(small: trees.Tree) -> None:
    with_rule(small, "InputTensor.alignment + twice < 16", "{InputTensor.alignment: 12}")
    assert "it breaks alignment instead" in small("lint").err
    small.edit(
        trees.VOCABULARY, "violate: {alignment: 12}", "violate: {alignment: 12}\n    only: output"
    )
    assert (small("lint").code, small("lint").err) == (exits.OK, "")


@pytest.mark.parametrize(
    ("violate", "good"),
    [
        ("{InputTensor.strides: [99, 1]}", True),
        ("{InputTensor.total_bytes: 64, InputTensor.strides: [99, 1]}", False),
        (
            "{InputTensor.strides: [99, 1, 1], InputTensor.sizes: [1, 2, 1], OutputTensor.sizes: [1, 1, 1]}",
            True,
        ),
    ],
)
def test_parts_of_a_changed_tensor(small: trees.Tree, violate: str, good: bool) -> None:
    """Its buffer's size follows from its strides where it is not changed itself; sizes come first."""
    rule = "field: total_bytes, require: tensor.total_bytes >= implied_bytes(tensor), allowed: so"
    rule = f"  - {{id: held, {rule}, page: Here, violate: {{total_bytes: 0}}}}\n"
    small.edit(trees.VOCABULARY, "\ndialects:\n", f"{rule}\ndialects:\n")
    with_rule(small, "'InputTensor.strides[0] + twice < 20'", violate)
    result = small("lint")
    assert result.code == (exits.OK if good else exits.ERRORS), result.err
    assert ("breaks more than `more`" in result.err) != good


def test_comments_that_cut_nothing_off(tmp_path: Path, run: Run) -> None:
    """On lines of their own, behind keys, brackets, quotes and numbers."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    text = tree.text(trees.ARGMAX)
    ends = re.compile(r'([]}":])$', re.MULTILINE)
    tree.write(trees.ARGMAX, ends.sub(r"\1  # of it", text).replace("\n", "\n# of all\n"))
    assert tree.text(trees.ARGMAX).count("of it") > 10
    assert (tree("lint").code, tree("lint").err) == (exits.OK, "")


def test_every_code_has_a_case() -> None:
    """No code without a case, no case without a code, no text without a case."""
    sources = [p.read_text(encoding="utf-8") for p in (trees.PROJECT / "generator").glob("*.py")]
    codes = {code for text in sources for code in re.findall(r'"(E\d{3})"', text)}
    assert codes
    shown = {name[:4] for name in CASES}
    assert shown == codes, (
        "write tests/diagnostics/CODE_what_it_shows.yaml, then\n"
        "    python -m pytest tests/test_diagnostics.py --accept"
    )
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == CASES


@pytest.mark.parametrize("name", CASES)
def test_form(name: str) -> None:
    """Lower case, no full stop, one line for each sentence, and a caret that lies on the text it marks."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text.startswith("error[")
    for line in text.splitlines():
        assert re.match(
            r"error\[E\d{3}\]: |note: | *(-->|:::|=|\|)|\d+ \||$", line.lstrip() or line
        ), line
    for head in re.findall(r"^error\[E\d{3}\]: (.+)$", text, re.MULTILINE):
        assert not head.endswith(".")
        assert not re.match(r"[A-Z][a-z]+ ", head), "lower case"
    for shown, marks in re.findall(r"^ *\d+ \| (.*)\n *\| ( *[\^-]+)", text, re.MULTILINE):
        assert shown
        assert len(marks) <= max(len(shown), marks.index(marks.strip()[0]) + 1)


def test_the_readme_shows_what_is_printed(tree: trees.Tree) -> None:
    """The mistake that the README shows, made in the spec that it names."""
    readme = (trees.PROJECT / "README.md").read_text(encoding="utf-8")
    tree.edit(trees.ARGMAX, "all_in_range(Axes, InputTensor)", "all_in_range(Axes, InputTenser)")
    shown = re.findall(r"```\n(error\[.*?)\n```", readme, re.DOTALL)
    assert [tree("lint").err.rstrip("\n")] == shown


# What the first caret of a case must mark: the wrong word itself, where it is a word.
MARKED = {
    "E002_duplicate_key": "summary",
    "E004_octal": "010",
    "E101_misspelt_key": "sumary",
    "E103_default": "UP",
    "E103_default_of_number": "one",
    "E103_unknown_data_type": "INT7",
    "E103_word_of_enum": '"INCREASIN"',
    "E104_number_for_level": "3.0",
    "E105_code": "x): import os #",
    "E105_hyphen": "axes-unique",
    "E105_key": "Output-Tensor",
    "E105_keyword": "lambda",
    "E106_pattern": "1-8",
    "E202_division": "len(Axes) / 2",
    "E202_fraction": "1.5",
    "E202_power": "2 ** len(Axes)",
    "E203_axes_of_no_tensor": "Axes",
    "E203_by": "Axes",
    "E203_field_of_constraint": "Axis",
    "E203_length_of_no_array": "AxisDirection",
    "E203_unknown_field": "InputTenser",
    "E203_unknown_field_in_use": "Axis",
    "E203_unknown_shared_constraint": "no_repeat",
    "E203_unknown_tensor_in_table": "InTensor",
    "E203_violate": "Axis",
    "E204_argument": "Axes",
    "E211_field": "Axes",
    "E213_unknown": "axes_in_rang",
    "E223_out_of_range": "-1",
    "E223_value": "three",
    "E231_empty_ranks": "8..1",
}


@pytest.mark.parametrize("name", MARKED)
def test_caret(name: str) -> None:
    """The caret stands under the wrong word, not beside it and not under its key."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    found = re.search(r"^ *\d+ \| (.*)\n *\| ( *)(\^+)", text, re.MULTILINE)
    assert found
    line, blanks, carets = found.groups()
    assert line[len(blanks) : len(blanks) + len(carets)] == MARKED[name]


def test_json_and_github(tmp_path: Path, run: Run) -> None:
    """The same errors for programs: on standard output, and nothing else there."""
    command = bad_tree("E211_field", tmp_path / "tree", run)
    result = run([*command, "--format", "json"])
    assert (result.code, result.err) == (exits.ERRORS, "")
    assert json.loads(result.out) == [
        {
            "code": "E211",
            "message": "`Axes` is named twice",
            "file": "specs/directml/argmax.yaml",
            "line": 18,
            "column": 12,
            "length": 4,
            "label": "again",
            "notes": [
                {
                    "file": "specs/directml/argmax.yaml",
                    "line": 17,
                    "column": 12,
                    "label": "first here",
                }
            ],
        }
    ]
    result = run([*command, "--format", "github"])
    assert (result.code, result.err) == (exits.ERRORS, "")
    assert result.out == (
        "::error file=specs/directml/argmax.yaml,line=18,col=12,title=E211::"
        "`Axes` is named twice (again)\n"
    )


def test_addresses(small: trees.Tree) -> None:
    """What URLs are made of, but nothing that ends a docstring, and no link of Markdown is ended either."""
    base = "https://learn.microsoft.com/x"
    (old,) = re.findall("address: (https://.*dml_argmax.*)", small.text(trees.ARGMAX))
    small.edit(trees.ARGMAX, old, f"{base}_(y)?view=directml-1&a=%20~b:c")
    assert small("generate").code == exits.OK
    assert f"]({base}_%28y%29?view=directml-1&a=%20~b:c)" in small.text("generated/DECIDED.md")
    assert f"Page: {base}_(y)?view=" in small.text("generated/specops/directml/argmax.py")
    good = small.text(trees.ARGMAX)
    for bad in ("'", "\\", "{", "}", " y"):
        small.write(trees.ARGMAX, good.replace(f"{base}_(y)", f"{base}{bad}y"))
        assert "error[E106]: an address begins with https://" in small("lint").err, bad


def test_github_escapes() -> None:
    """A percent sign or a line break of a spec or of a file's name cannot end GitHub's command."""
    report = Report()
    report.add("E002", "x", Span("a,title=b\n::error::c.yaml", 1, 2))
    report.add("E001", "100%\n::error::x", Span("a.yaml", 1, 2), "b\r\nc", help="d\ne")
    assert report.github() == (
        "::error file=a%2Ctitle=b%0A%3A%3Aerror%3A%3Ac.yaml,line=1,col=2,title=E002::x\n"
        "::error file=a.yaml,line=1,col=2,title=E001::100%25%0A::error::x (b%0D%0Ac); help: d%0Ae"
    )


def test_all_errors_at_once_sorted_by_place(tmp_path: Path, run: Run) -> None:
    """Errors of several files and lines come together, in the order in which one reads the files."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    argmin = tree.text(trees.ARGMAX).replace("_ARGMAX\n", "_ARGMIN\n", 1)
    tree.write("specs/directml/argmin.yaml", argmin)
    for name in ("argmin", "argmax"):
        file = f"specs/directml/{name}.yaml"
        tree.edit(file, "violate: {Axes: [2]}", "violate: {Axes: [2], Axis: [2]}")
        tree.edit(file, "field: Axes\n    page: Axes", "field: Axs\n    page: Axes")
        tree.edit(file, "type: uint, length_of: Axes,", "type: uint, length_of: Axis,")
        tree.edit(file, "value: greater,", "value: great,")
    tree.edit(trees.VOCABULARY, "require: all(s > 0", "require: all(z > 0")
    records = json.loads(tree("lint", "--format", "json").out)
    places = [(r["file"], r["line"], r["column"]) for r in records]
    assert places == sorted(places)
    assert [r["code"] for r in records] == ["E203", "E203", "E203", "E103"] * 2 + ["E203"]


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("E221", "violate: {Axes: [2]}", "violate: {Axes: [1]}"),
        ("E224", "data: [[1, 0]]", "data: [[1, 0, 0]]"),
        (
            "E231",
            "    InputTensor: {ranks",
            "    when: {AxisDirection: [INCREASING]}\n    InputTensor: {ranks",
        ),
    ],
)
def test_mistakes_of_one_spec_hide_none_of_another(
    code: str, old: str, new: str, tmp_path: Path, run: Run
) -> None:
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    tree.write(trees.ARGMAX, tree.text(trees.ARGMAX).replace(old, new))
    argmin = tree.text(trees.ARGMAX).replace("_ARGMAX\n", "_ARGMIN\n", 1)
    tree.write("specs/directml/argmin.yaml", argmin)
    records = json.loads(tree("lint", "--format", "json").out)
    files = [r["file"] for r in records if r["code"] == code]
    assert files == [trees.ARGMAX, "specs/directml/argmin.yaml"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("summary:", "sumary:", "E101"), ("field: Axes\n    page", "field: Axs\n    page", "E203")],
)
def test_mistakes_of_one_stage_hide_none_of_another_spec(
    old: str, new: str, code: str, tmp_path: Path, run: Run
) -> None:
    """What is asked later is asked of the specs that are sound so far."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    good = tree.text(trees.ARGMAX)
    tree.edit(trees.ARGMAX, old, new)
    tree.write("specs/directml/argmin.yaml", good.replace("_ARGMAX\n", "_ARGMIN\n", 1))
    tree.edit("specs/directml/argmin.yaml", "violate: {Axes: [2]}", "violate: {Axes: [1]}")
    records = json.loads(tree("lint", "--format", "json").out)
    assert [r["code"] for r in records] == [code, "E221"]


def with_examples(tree: trees.Tree, *changes: tuple[str, str]) -> None:
    """An example for each change, all but for these the base's."""
    text = tree.text(trees.ARGMAX)
    example = text[text.index("  - id: columns") : text.index("\nerrata")]
    changed = [
        example.replace("columns", f"columns{i}").replace(old, new)
        for i, (old, new) in enumerate(changes)
    ]
    tree.edit(trees.ARGMAX, example, "".join(changed))


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (
            "E223",
            [
                ("data: [[1, 0]]", "data: [[1, -1]]"),
                ("data: [[1, 2], [3, 0]]", "data: [[1, x]]"),
            ],
        ),
        (
            "E104",
            [
                ("Axes: [0]", "Axes: [-1]"),
                ("Axes: [0]", "Axes: 0"),
                ("INCREASING", "UP"),
            ],
        ),
        (
            "E224",
            [
                ("data: [[1, 0]]", "data: [[1, 0, 0]]"),
                ("data: [[1, 0]]", "data: [[1]]"),
            ],
        ),
        (
            "E224",
            [
                ("UINT32", "FLOAT32"),
                ("data: [[1, 0]]", "data: [[1]]"),
            ],
        ),
    ],
)
def test_mistakes_of_one_example_hide_none_of_another(
    code: str, changes: list[tuple[str, str]], tmp_path: Path, run: Run
) -> None:
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    with_examples(tree, *changes)
    records = json.loads(tree("lint", "--format", "json").out)
    assert [r["code"] for r in records] == [code] * len(changes)


def test_kernel_cannot_compute_each_example(tmp_path: Path, run: Run) -> None:
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    tree.edit(trees.ARGMAX, "axes: {value: Axes,", 'axes: {value: "[a + 1 for a in Axes]",')
    with_examples(tree, ("", ""), ("[[1, 0]]", "[[1], [0]]"), ("Axes: [0]", "Axes: [0]"))
    records = json.loads(tree("lint", "--format", "json").out)
    assert [r["code"] for r in records] == ["E227", "E227", "E224"]


def test_what_has_no_value_is_told_once(tmp_path: Path, run: Run) -> None:
    """However many examples lack it."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    tree.edit(trees.ARGMAX, "InputTensor.sizes[d] for", "InputTensor.sizes[9] for")
    with_examples(tree, ("", ""), ("", ""))
    records = json.loads(tree("lint", "--format", "json").out)
    assert [r["code"] for r in records].count("E225") == 1


@pytest.mark.parametrize("errors", [200, 201, 5000])
def test_too_many_errors(errors: int, tmp_path: Path, run: Run) -> None:
    """200 of them are told, and that there are more."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    tree.write("specs/plain/argmax.yaml", "".join(f"a: {i}\n" for i in range(errors + 1)))
    records = json.loads(tree("lint", "--format", "json").out)
    assert [r["code"] for r in records].count("E002") == min(errors, 200)
    assert [r["message"] for r in records if r["code"] == "E005"] == ["more than 200 errors"] * (
        errors > 200
    )


def test_what_a_terminal_would_obey(tmp_path: Path, run: Run) -> None:
    """Escapes, turned writing and half characters of a spec are shown, not sent."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    for word in (
        '"\\e[31m\\u202e"',
        '"\\ud800"',
        '"\\n::error::x"',
        "\u202e",
        "\x9b31m",
        f'"{"x" * 9999}"',
    ):
        tree.write("specs/plain/argmax.yaml", f"{word}: 1\n")
        for format in ("text", "json", "github"):
            result = tree("lint", "--format", format)
            assert result.code == exits.ERRORS
            said = result.said.encode("utf-8").decode()
            assert said.replace("\n", "").isprintable()
            assert "\n::error::x" not in said.removeprefix("::error::")
            assert len(said) < 2500


def test_structure_errors_at_once(tmp_path: Path, run: Run) -> None:
    """The same for what pydantic finds, in several files."""
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    tree.write("specs/directml/argmin.yaml", tree.text(trees.ARGMAX))
    for name in ("argmin", "argmax"):
        file = f"specs/directml/{name}.yaml"
        tree.edit(file, "kind: input,", "kind: in,")
        tree.edit(file, "summary:", "sumary:")
        tree.edit(file, "[FLOAT32, INT8]", "[FLOAT32, INT9]")
    records = json.loads(tree("lint", "--format", "json").out)
    assert [(r["code"], r["line"]) for r in records] == [
        ("E101", 2),
        ("E103", 10),
        ("E103", 23),
    ] * 2


# --- the two parsers of PyYAML ---------------------------------------------------------------------------------------


def read_with(loader: Any, text: str) -> Any:
    report = Report()
    document = source.parse(text, "x.yaml", report, loader=loader)
    found = document and (document.data, document.values, document.keys, document.exact)
    return repr(found), report.sorted()


def test_parsers_agree(tmp_path: Path, run: Run) -> None:
    """The C parser and the Python one give the same data, places and diagnostics, on good files and bad ones."""
    assert yaml.__with_libyaml__, "this Python has no C parser, so there is nothing to compare"
    texts = [p.read_text(encoding="utf-8") for p in (trees.PROJECT / "specs").rglob("*.yaml")]
    assert len(texts) >= 3
    for name in CASES:
        if name != "E005_too_large":
            root = tmp_path / name
            bad_tree(name, root, run)
            raw = [path.read_bytes() for path in sorted(root.rglob("*.yaml"))]
            texts += [r.decode("utf-8", "replace") for r in raw]
    for text in dict.fromkeys(texts):
        assert read_with(yaml.CLoader, text) == read_with(None, text)


PLAIN = [
    "no", "on", "3_0", "2:30", "190:20:30.15", "010", "0o17", "0b101", "0x1F", "-0x1f", "+0b1", "1e5", "1.0e5",
    "1.5e+3", "1_0e+3", ".5", "1.", "-1.5", "-.inf", ".NaN", "~", "2024-05-01", "2024-05-01 10:00:00",
    "2024-05-01t10:00:00Z", "4.1.2", "a 1e5", "e5", "0xg",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_scalars_have_one_meaning(text: str) -> None:
    """That of YAML 1.1, as PyYAML reads it, or they are refused."""
    report = Report()
    document = source.parse(f"a: {text}\n", "x.yaml", report)
    if document is None:
        assert [d.code for d in report.diagnostics] == ["E004"]
    else:
        found, other = document.data["a"], yaml.safe_load(text)
        assert (type(found), found) == (type(other), other)


@pytest.mark.parametrize("loader", [yaml.CLoader, None])
@pytest.mark.parametrize(
    "text",
    [
        "a: 1|# c",
        "a: b|",
        "a:|b",
        "a: [1,|2]",
        "a|: 1",
        "a: 'x|y'",
        "a: x|y",
        "|# c",
        "-|b",
        "a: '#'|# b",
    ],
)
def test_tabs(text: str, loader: Any) -> None:
    """Of which the C parser takes more; those on lines of comments count for nothing."""
    report = Report()
    assert (
        source.parse(f"# of\tall\n{text}\n".replace("|", "\t"), "x.yaml", report, loader=loader)
        is None
    )
    (told,) = report.diagnostics
    assert (told.code, told.span) == ("E001", Span("x.yaml", 2, text.index("|") + 1))
    assert told.message.startswith("a tab, ")


@pytest.mark.parametrize("char", "\u00a0\u1680\u2000\u2004\u200a\u202f\u205f\u3000")
def test_blanks_that_are_none(char: str) -> None:
    """Texts are ASCII, and comments may hold what they like."""
    report = Report()
    assert source.parse(f"# a{char}b\na: 1  # a{char}b\n", "x.yaml", report) is not None
    assert source.parse(f"a: [1,{char}2]\n", "x.yaml", report) is None
    assert report.diagnostics[0].message.startswith("a blank that is none to YAML: ")


NUMBERS: dict[str, object] = {
    "0": 0,
    "-0": 0,
    "+5": 5,
    "-5": -5,
    "0xfF": 255,
    "+1.5": 1.5,
    "-.5": -0.5,
    "1.5E+3": 1500.0,
    "1.5e-3": 0.0015,
    ".inf": math.inf,
    "+.inf": math.inf,
    "-.inf": -math.inf,
    "9" * 40: 10**40 - 1,
    "." + "0" * 399: 0.0,
}


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:9])
def test_what_is_a_number(text: str) -> None:
    """As long as it may be, too."""
    document = source.parse(f"a: {text}\n", "x.yaml", Report())
    assert document is not None
    found = document.data["a"]
    assert (type(found), found) == (type(NUMBERS[text]), NUMBERS[text])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9" * 41, "a number of 41 characters"),
        ("." + "0" * 400, "a number of 401 characters"),
        ("-1" + "0" * 350 + ".0", "is beyond all numbers"),
        *(
            (word, "is read differently by different")
            for word in ("NULL", "True", "FALSE", "00", "Y")
        ),
    ],
    ids=lambda text: text[:9],
)
def test_what_is_no_number(text: str, said: str) -> None:
    report = Report()
    assert source.parse(f"a: {text}\n", "x.yaml", report) is None
    assert said in report.text()


def test_a_byte_that_is_no_text(tmp_path: Path) -> None:
    """It is shown where it is, whatever the line ends and the characters before it."""
    path = tmp_path / "a.yaml"
    path.write_bytes("# é\r\nb: é ".encode() + b"\xe9\r\n")
    report = Report()
    assert source.load(path, "a.yaml", report) is None
    assert (
        "byte 12 is not UTF-8\n --> a.yaml:2:6\n  |\n2 | b: é \ufffd\n  |      ^ here"
        in report.text()
    )


@pytest.mark.parametrize("over", [0, 1])
def test_a_file_as_large_as_it_may_be(tmp_path: Path, over: int) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\n#".ljust(source.MAX_BYTES + over))
    assert (source.load(path, "a.yaml", Report()) is None) == bool(over)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a: bcd", 5),
        ("a: 'bcd'", 6),
        ('a: "bcd"', 6),
        # Others are marked as a whole.
        ('a: "\\x62cd"', 4),
        ("a: 'b''d'", 4),
        ("a: b\n     d", 4),
        ("a: >\n  bcd", 4),
    ],
)
def test_a_letter_of_a_text(text: str, column: int) -> None:
    document = source.parse(f"{text}\n", "x.yaml", Report())
    assert document is not None
    assert document.within(("a",), 1, 1).column == column


def test_quotes_make_a_word_of_a_key() -> None:
    document = source.parse('"5": {"no": !!str no}\n', "x.yaml", report := Report())
    assert document is None
    assert [d.message for d in report.diagnostics] == ["tags are not allowed"]


# --- whatever is fed to it -------------------------------------------------------------------------------------------

SNIPPETS = [
    "&a [*a, *a]",
    "*a",
    "!!python/object/apply:os.system ['true']",
    "!<tag:yaml.org,2002:binary> aGk=",
    "{" * 60,
    "[" * 3000,
    "? [a, b]\n: c",
    "- - - - x",
    "<<: {a: 1}",
    "9" * 5000,
    "-9" + "9" * 300,
    "1e999",
    "0x" + "f" * 50,
    ".nan",
    "-.inf",
    "é\u202e\u0000",
    "\U0001f600",
    "\ufeff",
    "\x85\u2028",
    "'unclosed",
    '"\\x41\\U0001F600\\0"',
    "%YAML 9.9\n---",
    "--- |\n text",
    "true",
    "~",
    "",
    "[]",
    "{}",
    "tensor",
    "TODO",
    "a.b.c",
    "x" * 500,
    "\t",
    "...",
    "#",
    ": ",
    "all(a for a in " * 30,
    "2**2**2**99",
    "(" * 300,
    "{{ header }}",
    '"""',
]


def mutated(text: str, random_: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(random_.choice((1, 1, 1, 2, 4))):
        i, j = random_.randrange(len(lines)), random_.randrange(len(lines))
        tokens = re.split(r"(\W)", lines[i])
        k = random_.randrange(len(tokens))
        match random_.randrange(9):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                tokens[k] = random_.choice(SNIPPETS)
                lines[i] = "".join(tokens)
            case 4:
                del tokens[k]
                lines[i] = "".join(tokens)
            case 5:
                other = re.split(r"(\W)", lines[j])
                tokens[k] = random_.choice(other)
                lines[i] = "".join(tokens)
            case 6:
                c = random_.randrange(len(lines[i]) + 1)
                lines[i] = lines[i][:c] + chr(random_.randrange(0x250)) + lines[i][c + 1 :]
            case 7:
                lines[i] = " " * random_.randrange(8) + lines[i].lstrip()
            case 8:
                key, colon, _ = lines[i].partition(": ")
                lines[i] = key + colon + random_.choice(SNIPPETS)
        if not lines:
            lines = [""]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_no_input_gives_a_traceback(seed: int, tmp_path: Path, run: Run) -> None:
    """Specs with random damage give diagnostics or are fine; the generator itself never fails."""
    random_ = random.Random(seed)
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    good = {name: tree.text(name) for name in (trees.ARGMAX, trees.VOCABULARY)}
    good["specs/plain/argmax.yaml"] = (trees.PROJECT / "specs/plain/argmax.yaml").read_text(
        encoding="utf-8"
    )
    outcomes = set()
    for _ in range(60):
        name = random_.choice([trees.ARGMAX, trees.ARGMAX, *good])
        text = mutated(good[name], random_)
        tree.write(name, text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
        result = tree("lint")
        assert result.code in (exits.OK, exits.ERRORS), f"{result.said}\n{text}"
        assert (result.code == exits.ERRORS) == result.err.startswith("error[E"), result.err
        outcomes.add(result.code)
        for file in good:
            tree.path(file).unlink(missing_ok=True)
        for file in (trees.ARGMAX, trees.VOCABULARY):
            tree.write(file, good[file])
    assert outcomes == {exits.OK, exits.ERRORS}


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_give_a_traceback(seed: int, tmp_path: Path, run: Run) -> None:
    """The same for damaged bytes, which need not be text."""
    random_ = random.Random(1000 + seed)
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    good = tree.path(trees.ARGMAX).read_bytes()
    for _ in range(25):
        data = bytearray(good)
        for _ in range(random_.choice((1, 3, 30))):
            data[random_.randrange(len(data))] = random_.randrange(256)
        tree.path(trees.ARGMAX).write_bytes(data[: random_.choice((len(data), 700))])
        result = tree("lint")
        assert result.code in (exits.OK, exits.ERRORS), f"{result.said}\n{bytes(data)!r}"


def test_no_good_spec_gives_a_traceback(tmp_path: Path, run: Run) -> None:
    """What the linter takes can be generated, or has an error in its template: it is no bug of the generator."""
    random_ = random.Random(77)
    tree = trees.Tree(shutil.copytree(BASE, tmp_path / "tree"), run)
    good = tree.text(trees.ARGMAX)
    generated = 0
    for _ in range(150):
        text = mutated(good, random_)
        tree.write(trees.ARGMAX, text.encode("utf-8", "replace").decode())
        if tree("lint").code == exits.OK:
            result = tree("generate", "--dry-run")
            assert result.code == exits.OK, f"{result.said}\n{text}"
            generated += 1
    assert generated > 5
