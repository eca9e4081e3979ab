"""The verbs that tell: list, explain, diff; and new, which begins a spec."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trees
import yaml
from pydantic import BaseModel
from trees import ARGMAX, PROJECT, SENTENCE, Tree

from generator import (
    cli,
    compare,
    diagnostics,
    exits,
    import_block,
    model,
    names,
    prune,
    resolve,
    structure,
)
from generator.diagnostics import Report
from generator.lint.entries import CHECKS
from generator.lint.subject import TODO
from specops.command import checks

Run = Callable[[list[str]], trees.Result]


@pytest.mark.parametrize(
    ("module", "least"),
    [(diagnostics, 1), (names, 5), (prune, 3), (import_block, 3), (structure, 1)],
)
def test_examples_of_the_generator(module: Any, least: int) -> None:
    failed, attempted = doctest.testmod(module)
    assert (failed, attempted >= least) == (0, True)


@pytest.mark.parametrize(("system", "code"), [(trees.WINDOWS, exits.OK), (os, exits.ERRORS)])
def test_a_reader_that_has_seen_enough_as_windows_tells_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: Any,
    code: int,
) -> None:
    monkeypatch.setattr(cli, "os", system)
    with trees.Unread((tmp_path / "out").open("wb")) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(["list", "argmax"]) == code
    assert bool(capsys.readouterr().err) == (code != exits.OK)


# --- list ---


def test_list(run: Run) -> None:
    """One line for each spec, with its counts."""
    lines = run(["list"]).out.splitlines()
    ids = [line.split()[0] for line in lines[1:]]
    specs = (PROJECT / "specs").glob("*/*.yaml")
    assert sorted(ids) == sorted(f"{p.parent.name}/{p.stem}" for p in specs)
    cells = {line.split()[0]: line.split()[1] for line in lines[1:]}
    assert (cells["directml/argmax"], cells["onnx/hardmax_13"]) == ("3.0", "13")
    assert lines[0].split() == [
        "operator",
        "since",
        "kernel",
        "fields",
        "constraints",
        "examples",
        "tests",
    ]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("directml/argmax", r"directml/argmax"),
        ("onnx/hardmax", r"onnx/hardmax_\d+"),
        ("hardmax_11", r"onnx/hardmax_11"),
        ("hardmax", r"(onnx/hardmax_\d+|(plain|directml)/hardmax)"),
    ],
)
def test_list_of_a_name(run: Run, name: str, files: str) -> None:
    """A name without its dialect or its version stands for all of them."""
    rows = json.loads(run(["list", name, "--format", "json"]).out)
    ids = [f"{p.parent.name}/{p.stem}" for p in (PROJECT / "specs").glob("*/*.yaml")]
    assert rows and {row["operator"] for row in rows} == {i for i in ids if re.fullmatch(files, i)}
    assert all(row["examples"] > 0 and row["tests"] > row["examples"] for row in rows)


# --- explain ---

EXPLAINED = {
    "specs/vocabulary.yaml": [
        "FLOAT16, ",
        "data types of directml",
        "arg_reduce, ",
        "sizes_positive",
    ],
    "directml/max_pooling2": [
        "DML_OPERATOR_MAX_POOLING2 (directml/max_pooling2, since feature level 2.1)",
        "OutputIndicesTensor",
        "window_reach",
        "each_window_holds_input",
        "Wrong on the page",
        "The same by other operators",
    ],
    "onnx/softmax": ["(onnx/softmax_1, version 1)", "(onnx/softmax_13, version 13)"],
    "specs/plain/argmax.yaml": ["argmax (plain/argmax)"],
    r".\specs\plain\argmax.yaml": ["argmax (plain/argmax)"],
    r"generated\specops\onnx\hardmax.py": ["as generated", "specs/onnx/hardmax_11.yaml"],
    "axes_unique": ["axes_unique of directml/argmax (specs/directml/argmax.yaml:", "broken by"],
    "alignment": ["alignment of each tensor of DirectML (specs/vocabulary.yaml:"],
    "arg_reduce": [
        "kernel arg_reduce, with results that are exact",
        "UINT32, UINT64, INT32, INT64",
        "axes (expression: ints)",
        "first\n          the first in row-major order",
        "left_sizes(output, input, axes)",
        "Used by\n  directml/argmax, ",
    ],
    "kernels/reduce": [
        "that of input",
        "output: UINT32, UINT64, INT32, INT64",
        "directml/reduce, ",
    ],
    "kernels/max_unpool": ["any data type"],
    "same_outside_windows": [
        "same_outside_windows(tensor, other, window), shared (specs/vocabulary.yaml:",
        "used by kernels/average_pool, ",
    ],
    "all_positive": ["used by directml/average_pooling, ", "kernels/max_pool"],
    "e222": ["E222: `violate` must break its constraint and no other"],
    "generated/specops/onnx/hardmax.py": [
        "as generated",
        "specs/onnx/hardmax_11.yaml",
        "templates/onnx/operator.py.jinja",
    ],
    "templates/directml/operator.py.jinja": [
        "templates/directml/operator.py.jinja makes\n  generated/specops/directml/activation_hardmax.py\n"
    ],
    r"templates\kernels\reduce.py": ["makes\n  generated/specops/kernels/reduce.py\n"],
    "specs/directml/argmax": ["DML_OPERATOR_ARGMAX (directml/argmax, since feature level 3.0)"],
    "specs/vocabulary": ["specs/vocabulary.yaml: words that specs share"],
    "specs/plain/": ["dialect plain, with tensors of 0 to 64 dimensions", "plain/argmax, plain/"],
    "kernels/": ["kernels\n  kernels/arg_reduce\n      Index of the", "\n  kernels/hardmax\n"],
    "DML_AXIS_DIRECTION": [
        "enum DML_AXIS_DIRECTION: Which of",
        "INCREASING = 0, DECREASING = 1",
        "AxisDirection of directml/argmin",
    ],
    "BFLOAT16": ["data type BFLOAT16: float of 16 bits, bfloat16 of NumPy; in onnx, plain\n"],
    "supported_data_type": ["a check of the runtime"],
    "windows_hold_input": ["(ints, ints, ints, ints, ints, ints), which gives bool: a function"],
    "E4": ["E401: ", "\nE406: "],
    "templates/helpers/axes.py": [
        "templates/helpers/axes.py: Tables of axes in",
        "\n  generated/specops/kernels/search.py\n",
    ],
    "two_tables": ["templates/helpers/axes.py: Tables of axes in"],
    "generator/model.py": ["generated/spec.schema.json\n  generated/vocabulary.schema.json\n"],
}


@pytest.mark.parametrize("subject", EXPLAINED)
def test_explain(run: Run, subject: str) -> None:
    result = run(["explain", subject])
    assert (result.code, result.err) == (exits.OK, "")
    for text in EXPLAINED[subject]:
        assert text in result.out


def test_options_stand_before_the_verb_or_behind_it(run: Run, tmp_path: Path) -> None:
    """Behind it counts, where both are given."""
    root, format = ["--root", str(trees.BASE)], ["--format", "json"]
    good = run(["list", *root, *format])
    assert [r["operator"] for r in json.loads(good.out)] == ["directml/argmax"]
    assert run([*root, *format, "list"]) == run([*root, "list", *format]) == good
    assert run(["--root", str(tmp_path), "--format", "github", "list", *root, *format]) == good


@pytest.mark.parametrize(
    "verb", [["generate"], ["lint"], ["new", "plain/x", "--like", "plain/max"]]
)
def test_a_root_without_specs_is_named(run: Run, verb: list[str], tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        result = run([*verb, "--root", str(root)])
        assert (result.code, result.out) == (exits.ERRORS, "")
        assert result.err == (
            f"error[E005]: there is no folder `{root / 'specs'}`\n"
            "  = help: `--root` names the folder that holds specs/\n\n"
        )


def test_explain_what_nobody_knows(run: Run, tmp_path: Path) -> None:
    """Its name is compared, and of those that have the nearest one the dialect or folder."""
    tree = trees.Tree(trees.copy(tmp_path / "tree", specs=".*(argm|hardmax|softmax).*"), run)
    for subject, meant in {
        "onnx/hardmax_12": "onnx/hardmax_11",
        "onnx/hardmax_14": "onnx/hardmax_13",
        "onnx/hardmx_12": "onnx/hardmax_1",
        "directml/sofmax": "plain/softmax",
        "sofmax": "softmax",
        "directm/argmax": "directml/argmax",
        "directml/argmx": "directml/argmax",
        "specs/directml/argmx.yaml": "directml/argmax",
        "generated/specops/directml/argmx.py": "generated/specops/directml/argmax.py",
        "templates/kernels/redce.py": "templates/kernels/reduce.py",
        "templates/helpers/axs.py": "templates/helpers/axes.py",
        "DML_AXIS_DIRECTON": "DML_AXIS_DIRECTION",
    }.items():
        result = tree("explain", subject)
        assert result.code == exits.ERRORS
        assert result.err.endswith(f"help: did you mean `{meant}`?\n\n"), subject
    assert "explain E2` shows all codes that begin with E2\n" in tree("explain", "E299").err
    assert "explain E` shows all codes that begin with E\n" in tree("explain", "e999").err
    assert "help: known here: `kernels/arg_reduce`, `kern" in tree("explain", "kernels/zzz").err
    assert "help: known here: `generated/DECIDED" in tree("explain", "generated/").err


@pytest.mark.parametrize("name", ["zzz", "onnx/zzz"])
def test_a_name_that_is_near_to_none(run: Run, name: str) -> None:
    """All operators are more than a message can show."""
    count = len(list((PROJECT / "specs").glob("*/*.yaml")))
    help = f"  = help: `python -m generator list` shows {count} operators\n"
    for verb in (["explain", name], ["list", name], ["new", "plain/x", "--like", name]):
        assert run(verb).err.splitlines(keepends=True)[1] == help


def test_the_path_of_a_spec_is_a_name(tree: Tree) -> None:
    """As a shell completes it, also of a spec that is still to be written."""
    paths = [
        "specs/directml/argmax.yaml",
        "./specs/directml/argmax",
        r"specs\directml\argmax.yaml",
    ]
    for path in paths:
        assert tree("lint", path).out.startswith("1 spec ok ")
        assert tree("generate", "--dry-run", path).code == exits.OK
        assert tree("list", path).out == tree("list", "directml/argmax").out
    assert tree("diff", *paths[:2]).out == "no difference in meaning\n"
    assert tree("new", "specs/directml/argmost.yaml", "--like", paths[0]).code == exits.OK
    assert TODO in tree.text("specs/directml/argmost.yaml")
    assert "a `TODO` is left" in tree("lint", "specs/directml/argmost.yaml").err
    assert "did you mean `directml/argmax`?" in tree("lint", "specs/directml/argmx.yaml").err


def test_paths_from_the_current_folder(small: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell completes them there, and those from the root of the file system."""
    root = small.root
    for folder, path in [
        (root, "specs/directml/argmax.yaml"),
        (root / "specs", "directml/argmax.yaml"),
        (root / "specs/directml", "argmax.yaml"),
        (root / "specs", "../specs/directml"),
        (PROJECT, str(root / "specs/directml/argmax.yaml")),
        (PROJECT, str(root / "specs/directml")),
    ]:
        monkeypatch.chdir(folder)
        assert small("lint", path).out.startswith("1 spec ok "), path
        if path.endswith(".yaml"):
            assert small("explain", path).out.startswith("DML_OPERATOR_ARGMAX "), path
    elsewhere = small.path("other/argmax.yaml")
    elsewhere.parent.mkdir()
    elsewhere.write_text(small.text(ARGMAX), encoding="utf-8")
    monkeypatch.chdir(elsewhere.parent)
    for path in ("argmax.yaml", str(elsewhere), f"{'a' * 300}.yaml"):
        result = small("lint", path)
        assert result.code == exits.ERRORS, "another operator is not taken for it"
        assert "error[E006]: there is no operator" in result.err
    new = str(root / "specs/directml/argmin.yaml")
    assert small("new", new, "--like", str(root / "specs/directml/argmax.yaml")).code == exits.OK


def test_a_draft_keeps_nobody_from_other_operators(small: Tree) -> None:
    """Of which nothing is generated; what is generated of a spec is never left out for its errors."""
    assert small("generate").code == exits.OK
    assert small("new", "directml/argmin", "--like", "directml/argmax").code == exits.OK
    small.edit(ARGMAX, *SENTENCE)
    assert small("generate").code == exits.ERRORS
    warning = "warning: 1 other file below specs/ with errors"
    checked = small("check", "argmax")
    assert checked.code == exits.DIFFERENCES
    assert warning in checked.err
    result = small("generate", "argmax")
    assert result.code == exits.OK
    assert warning in result.err
    assert small("check", "argmax").code == exits.OK
    assert not small.path("generated/specops/directml/argmin.py").exists()
    named = small("generate", "argmin")
    assert named.code == exits.ERRORS
    assert "error[E250]" in named.err

    small.write("generated/specops/directml/argmin.py", "as if it was generated\n")
    result = small("generate", "argmax")
    assert result.code == exits.ERRORS
    assert "error[E250]" in result.err


def test_a_dialect_names_all_its_operators(tree: Tree) -> None:
    names = sorted(f"plain/{path.stem}" for path in tree.path("specs/plain").glob("*.yaml"))
    assert tree("list", "plain").out == tree("list", *names).out
    assert tree("lint", "plain").out.startswith(f"{len(names)} spec")


# Beside the golden spec: another of another dialect, and words that nothing uses.
MORE_WORDS = {
    "    values: {INCREASING: 0, DECREASING: 1}\n": """
  DML_OTHER:
    doc: What no field is of.
    values: {ONE: 0, TWO: 1}
""",
    "ignored: NaN loses against every number, extreme: NaN wins against every number}\n": """
    requires: [no_repeats(axes)]
    dtypes: {output: [UINT32, INT8]}
  other_kernel:
    doc: What no operator computes.
    inputs: [input, second]
    outputs: [output]
    exact: false
    dtypes: {output: input}
    parameters:
      way:
        doc: Where to.
        of: second
        values: {up: to the top, down: to the bottom}
        dtypes: {up: {second: [INT8]}, down: {second: input}}
  plain_kernel:
    doc: What nobody tells anything.
    inputs: [input]
    outputs: [output]
    exact: true
    parameters: {}
""",
    '    allowed: "{array} has no value twice"\n': """
  as_long:
    parameters: [array, other]
    require: len(array) == len(other)
    allowed: "{array} is as long as {other}"
""",
    "    violate: {sizes: 0}\n": """
    only: output
""",
}
FILES = {
    "templates/helpers/few.py": '"""Few helpers."""\n\n\ndef used(): ...\n\n\ndef unused(): ...\n',
    "templates/kernels/one.py": "from few import used\n\n\nONE = used\n",
    "templates/kernels/other.py": "OTHER = 1\n",
    "templates/runtime/three.py": "",
    "templates/tests/test_cases.py": "",
    "generated/specops/three.py": "by hand",
    "generated/specops/kernels/one.py": "as it was",
}
ASKED = [
    *("DML_OPERATOR_ARGMIN_SMALL", "argmin_few", "arg_reduce", "other_kernel", "plain_kernel"),
    *("axes_unique", "same_rank", "no_repeats", "as_long", "sizes_positive"),
    *("of_nothing", "wrong_word", "vocabulary", "plain", "directml", "kernels", "DML_OTHER"),
    *("DML_AXIS_DIRECTION", "BOOL", "power_of_two", "templates/helpers/few.py", "unused"),
    *("templates/kernels/one.py", "templates/runtime/three.py", "generated/specops/three.py"),
    *("generated/specops/kernels/one.py", "generated/specops/plain/argmin_few.py"),
    # Words that are near to each of a kind.
    *(
        "axs_unique",
        "no_repeat",
        "as_lng",
        "sizes_positiv",
        "of_nothin",
        "wrong_wrd",
        "othr_kernel",
    ),
    *("DML_OTHR", "FLOAT3", "power_of_tw", "supported_data_typ", "templates/helpers/fw.py"),
]


def test_all_that_is_told(tmp_path: Path, run: Run, expect: Callable[[Path, str], None]) -> None:
    """Of two small specs and what belongs to them, as one reads it in a review."""
    golden = PROJECT / "tests" / "golden"
    shutil.copytree(golden / "specs", tmp_path / "specs")
    small = Tree(tmp_path, run)
    for before, behind in MORE_WORDS.items():
        small.edit(trees.VOCABULARY, before, before + behind.lstrip("\n"))
    for name, text in FILES.items():
        small.write(name, text)
    digest = hashlib.sha256(FILES["generated/specops/kernels/one.py"].encode()).hexdigest()
    small.write("generated/MANIFEST", f"{digest}  specops/kernels/one.py\n")
    spec = "specs/directml/argmin_small.yaml"
    text = small.text(spec)
    small.write(spec, f"{text}silent:\n  - {{id: of_nothing, decided: There is no index then.}}\n")
    for old, new in {
        "DML_OPERATOR_ARGMIN_SMALL": "argmin_few",
        "introduced: .*\n": "",
        '  - since: "4.1"(.|\n)*?  - since: "3.0"\n    I': "  - I",
        "  - {name: AxisCount.*\n": "",
        "  - id: same_rank(.|\n)*?(?=  - id)": "",
        "errata:(.|\n)*": "errata: []\n",
    }.items():
        text, count = re.subn(old, new, text)
        assert count == 1, old
    small.write("specs/plain/argmin_few.yaml", text)
    told = [f"$ list\n{small('list').said}"]
    told += [f"$ explain {subject}\n{small('explain', subject).said}" for subject in ASKED]
    expect(golden / "explained.txt", "\n".join(told))


# --- diff ---


def test_diff(run: Run) -> None:
    """What differs in meaning, and nothing else."""
    result = run(["diff", "directml/argmax", "directml/argmin"])
    assert result.code == exits.DIFFERENCES
    assert "~ semantics better: greater -> less" in result.out.splitlines()
    result = run(["diff", "onnx/softmax_11", "onnx/softmax_13"])
    keys = "kind attribute, type int, default"
    assert f"~ field axis: {keys} 1 -> {keys} -1" in result.out
    same = run(["diff", "directml/argmax", "directml/argmax"])
    assert (same.code, same.out) == (exits.OK, "no difference in meaning\n")


# The parts of a spec, each with a change of every key that decides something, and with the keys that decide nothing.
PARTS: dict[type[BaseModel], tuple[str, tuple[str | int, ...], dict[str, Any], set[str]]] = {
    model.OperatorSpec: (
        "directml/max_pooling2",
        (),
        {"introduced": "4.1", "since_version": 3},
        {"operator", "summary", "page", "examples"},
    ),
    model.FieldSpec: (
        "directml/max_pooling2",
        ("fields", 1),
        {
            "kind": "input",
            "type": "uint",
            "length_of": "Strides",
            "axes_of": "InputTensor",
            "one_for_each": "dimension",
            "default": 3,
            "sizes": "[1]",
            "sizes_argument": "shape",
            "dtype": "FLOAT16",
            "optional": "values",
        },
        {"name", "doc"},
    ),
    model.Derived: ("directml/max_pooling2", ("derived", 0), {"value": "[1]"}, {"name", "doc"}),
    model.SupportRow: (
        "directml/max_pooling2",
        ("support", 0),
        {"since": "6.0", "when": {"Direction": ["INCREASING"]}},
        set(),
    ),
    model.TensorSupport: (
        "directml/max_pooling2",
        ("support", 0, "InputTensor"),
        {"ranks": "4..6", "dtypes": ["FLOAT32"]},
        set(),
    ),
    model.Constraint: (
        "directml/max_pooling2",
        ("constraints", 14),
        {"field": "Strides", "require": "all(steps > 0 for steps in room)", "needs": []},
        {"id", "use", "allowed", "page", "decided", "violate"},
    ),
    model.Semantics: ("directml/max_pooling2", ("semantics",), {"kernel": "hardmax"}, set()),
    model.Meaning: (
        "directml/argmax",
        ("semantics", "tie"),
        {"value": "first", "by": "Direction", "values": {"INCREASING": "last"}},
        {"page", "decided"},
    ),
    model.Equivalence: (
        "directml/max_pooling2",
        ("equivalences", 0),
        {"says": "Always the same.", "operator": "directml/max_pooling"},
        {"id", "page", "decided", "cases"},
    ),
    model.Decision: ("directml/max_pooling2", ("silent", 0), {"decided": "Otherwise."}, {"id"}),
    model.Erratum: (
        "directml/max_pooling2",
        ("errata", 0),
        {"printed": "a", "right": "b"},
        {"id", "page"},
    ),
}
# The keys of a spec that hold the other parts.
LISTS = {
    "fields",
    "derived",
    "support",
    "constraints",
    "semantics",
    "equivalences",
    "silent",
    "errata",
}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_diff_sees_each_key(part: type[BaseModel]) -> None:
    """A change of any key that decides something is a difference, and one of the others is none."""
    name, path, changes, others = PARTS[part]
    assert {*changes, *others} == {*part.model_fields} - LISTS
    tree = structure.load_tree(PROJECT, Report())
    assert tree is not None
    source = next(s for s in tree.specs if f"{s.dialect}/{s.name}" == name)
    before = resolve.operator(source, tree, Report())

    def differences(key: str, value: object) -> list[str]:
        data = source.spec.model_dump(exclude_none=True)
        place: Any = data
        for step in path:
            place = place[step]
        assert place.get(key) != value
        place[key] = value
        spec = model.OperatorSpec.model_validate(data, context=tree.vocabulary.words())
        after = resolve.operator(dataclasses.replace(source, spec=spec), tree, Report())
        return compare.operators(before, after)

    for key, value in changes.items():
        assert differences(key, value), key
    for key in others & {"doc", "summary", "allowed", "decided"}:
        assert not differences(key, "Other words."), key


def test_diff_sees_the_order_of_fields() -> None:
    tree = structure.load_tree(PROJECT, Report())
    assert tree is not None
    source = next(s for s in tree.specs if s.file == trees.ARGMAX)
    turned = source.spec.model_copy(update={"fields": source.spec.fields[::-1]})
    one, other = (
        resolve.operator(dataclasses.replace(source, spec=spec), tree, Report())
        for spec in (source.spec, turned)
    )
    names = [f.name for f in source.spec.fields]
    order = f"~ order of fields: {', '.join(names)} -> {', '.join(names[::-1])}"
    assert compare.operators(one, other) == [order]


def test_diff_of_a_name_that_means_several(run: Run) -> None:
    result = run(["diff", "argmax", "directml/argmin"])
    assert result.code == exits.ERRORS
    assert "`argmax` stands for several operators" in result.err
    assert "onnx/argmax_13" in result.err


# --- new ---


@pytest.mark.parametrize(
    ("name", "like"),
    [("directml/argmost", "directml/argmax"), ("onnx/hardmax_29", "onnx/hardmax_13")],
)
def test_new(tree: Tree, name: str, like: str) -> None:
    """A spec to begin from: `lint` asks for each TODO, and for nothing of the specs that were there."""
    result = tree("new", name, "--like", like)
    assert result.code == exits.OK
    assert TODO in tree.text(f"specs/{name}.yaml")
    lint = tree("lint")
    assert lint.code == exits.ERRORS
    assert f"specs/{name}.yaml" in lint.err
    assert f"specs/{like}.yaml" not in lint.err
    again = tree("new", name, "--like", like)
    assert again.code == exits.ERRORS
    assert "is already there" in again.err


@pytest.mark.parametrize(
    ("name", "like", "operator"),
    [
        ("directml/argmost", "directml/argmax", "DML_OPERATOR_ARGMOST"),
        ("plain/nanargmax", "plain/argmax", "nanargmax"),
        ("onnx/hardmax_29", "onnx/hardmax_13", "Hardmax"),
        ("onnx/arg_most_29", "onnx/hardmax_13", f"{TODO}_Hardmax"),
    ],
)
def test_new_writes_a_name_that_is_known(tree: Tree, name: str, like: str, operator: str) -> None:
    """And keeps the results of another version of the same operator."""
    assert tree("new", name, "--like", like).code == exits.OK
    old, new = (yaml.safe_load(tree.text(f"specs/{id}.yaml")) for id in (like, name))
    assert new["operator"] == operator
    assert (new["examples"] == old["examples"]) == (operator == "Hardmax")


def test_an_unfinished_spec_keeps_nobody_from_reading_others(tree: Tree) -> None:
    """Verbs that tell leave out specs with errors, of any kind, and say so."""
    assert tree("new", "directml/argmost", "--like", "directml/argmax").code == exits.OK
    tree.write("specs/plain/broken.yaml", "operator: [")
    for arguments in (
        ["list", "argmin"],
        ["explain", "argmin"],
        ["diff", "plain/argmax", "plain/argmin"],
    ):
        result = tree(*arguments)
        assert result.code in (exits.OK, exits.DIFFERENCES)
        assert "argmin" in result.out or "less" in result.out
        names = re.findall(r"^warning: specs/(\S+)\.yaml has errors", result.err, re.MULTILINE)
        assert names == ["directml/argmost", "plain/broken"]
        assert "error" not in result.err.replace("has errors", "")
    nothing = tree("explain", "nope")
    assert nothing.code == exits.ERRORS
    assert "nothing is known of `nope`" in nothing.err


def test_an_unfinished_spec_that_is_asked_for_shows_its_errors(tree: Tree) -> None:
    """Of `explain` and `diff` as CONTRIBUTING names them for a spec that lint refuses."""
    assert tree("new", "directml/argmost", "--like", "directml/argmax").code == exits.OK
    for arguments in (
        ["list", "argmost"],
        ["explain", "argmost"],
        ["explain", "specs/directml/argmost.yaml"],
        ["explain", "generated/specops/directml/argmost.py"],
        ["diff", "directml/argmax", "directml/argmost"],
    ):
        result = tree(*arguments)
        assert result.code == exits.ERRORS
        assert "error[E250]: a `TODO` is left" in result.err
        assert "nothing is known" not in result.err
        assert "no operator" not in result.err


def test_lint_of_a_name_tells_of_it_alone(tree: Tree) -> None:
    """Drafts of others hide neither its errors nor those of the vocabulary, and are counted."""
    assert tree("new", "directml/argmost", "--like", "directml/argmax").code == exits.OK
    tree.write("specs/plain/broken.yaml", "operator: [")
    counted = "warning: 2 other files below specs/ with errors; `python -m generator lint` shows"
    good = tree("lint", "argmin")
    assert (good.code, good.err.count("\n")) == (exits.OK, 1) and counted in good.err
    assert re.match(r"\d specs ok", good.out)
    tree.edit("specs/plain/argmin.yaml", "use: all_in_range(axis, ", "use: all_in_range(axes, ")
    result = tree("lint", "argmin")
    assert result.code == exits.ERRORS
    assert re.findall(r"error\[\w+\]: .*", result.err) == [
        "error[E203]: `axes` is not a field of this operator"
    ]
    tree.edit("specs/vocabulary.yaml", "kind: bool, numpy: bool", "kind: bool, numpy: int8")
    result = tree("lint", "argmin")
    assert result.err.count("error[E203]") == result.err.count("error[E215]") == 1
    assert result.err.count("error[") == 2


def test_lint_of_a_name_shows_the_line_of_a_kernel(tree: Tree) -> None:
    tree.path("templates/runtime/lowering/arg_reduce.py").unlink()
    result = tree("lint", "argmin")
    assert result.code == exits.ERRORS
    assert re.search(r"\n *\d+ \|   arg_reduce:\n", result.err)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Hardmax(Search)", "class Hardmax(Search"),
        ("class Hardmax(Search)", "Hardmax = Search\n\n\nclass Other(Search)"),
        ("class Hardmax(Search)", "Hardmax: type = Search\n\n\nclass Other(Search)"),
        ("self, *, axes", "self, axes"),
        ("nan: str, input", "other: str, input"),
    ],
    ids=["unreadable", "assigned", "annotated", "positional", "other"],
)
def test_lint_asks_host_classes_that_are_plain(tree: Tree, old: str, new: str) -> None:
    """What cannot be read is told when it is rendered."""
    tree.edit("templates/runtime/lowering/hardmax.py", old, new)
    result = tree("lint")
    if new.startswith("other"):
        assert result.code == exits.ERRORS and "takes other arguments: `nan`, `other`" in result.err
    else:
        assert result.code == exits.OK, result.err


def test_a_draft_hides_no_mistake(tree: Tree) -> None:
    """All that is still to do is one error, with its lines, and others stand beside it."""
    assert tree("new", "directml/argmost", "--like", "directml/argmax").code == exits.OK
    tree.edit("specs/directml/argmost.yaml", "use: all_in_range(Axes, ", "use: all_in_range(Axis, ")
    text = (tree.root / "specs/directml/argmost.yaml").read_text(encoding="utf-8")
    lines = [str(n) for n, line in enumerate(text.split("\n"), 1) if "TODO" in line]
    result = tree("lint")
    assert result.err.count("error[") == 2 and "`Axis` is not a field" in result.err
    assert f"argmost.yaml:{lines[0]}:" in result.err
    assert f"more of them are in lines {', '.join(lines[1:])}\n" in result.err


def test_what_refers_to_an_unfinished_spec_is_told(tree: Tree) -> None:
    """Equivalences name other operators; those that one with errors leaves behind are no errors."""
    before = tree("list").out.splitlines()
    tree.edit("specs/directml/argmax.yaml", "kind: input", "kind: imput")
    result = tree("list")
    assert result.code == exits.OK
    named = re.findall(r"^warning: (\S+) has errors", result.err, re.MULTILINE)
    assert named == ["specs/directml/argmax.yaml"]
    assert len(result.out.splitlines()) == len(before) - 1
    assert tree("list", "argmax").code == exits.OK  # other dialects have it, too


def test_an_unfinished_copy_leaves_its_original(tree: Tree) -> None:
    """That both have one name is told once the copy has no other error."""
    text = tree.text("specs/directml/argmax.yaml")
    tree.write("specs/directml/a_copy.yaml", text.replace("Axes", "Axis", 1))
    result = tree("list", "directml/argmax")
    assert result.code == exits.OK
    named = re.findall(r"^warning: (\S+) has errors", result.err, re.MULTILINE)
    assert named == ["specs/directml/a_copy.yaml"]


def test_a_spec_of_another_ending_is_told(tree: Tree) -> None:
    """What refers to it is no error here either."""
    spec = tree.root / "specs/directml/argmax.yaml"
    spec.rename(spec.with_suffix(".yml"))
    assert tree("list", "argmin").code == exits.OK
    result = tree("explain", "directml/argmax")
    assert result.code == exits.ERRORS
    assert "`specs/directml/argmax.yml` is not read" in result.err


def test_what_is_no_spec_keeps_nobody_from_reading_specs(tree: Tree) -> None:
    tree.write("specs/plain/foo.yml", "")
    tree.write("specs/foo.yaml", "")
    result = tree("list", "argmin")
    assert result.code == exits.OK
    assert "warning: specs/foo.yaml has errors and is left out" in result.err
    assert "warning: specs/plain/foo.yml has errors" in result.err


def test_no_spec_without_errors(tree: Tree) -> None:
    for path in (tree.root / "specs").glob("*/*.yaml"):
        path.write_text("operator: [", encoding="utf-8")
    result = tree("list")
    assert result.code == exits.ERRORS
    assert "error[E001]" in result.err


def test_a_broken_vocabulary_keeps_from_all(tree: Tree) -> None:
    tree.edit("specs/vocabulary.yaml", "feature_levels:", "feature_level:")
    result = tree("list")
    assert result.code == exits.ERRORS
    assert "specs/vocabulary.yaml" in result.err


NOT_A_NAME = "is not a dialect and a name\n  = help: write it as directml/argmin"
REFUSED = {
    "argmost": NOT_A_NAME,
    "webnn/argmost": NOT_A_NAME,
    "directml/Arg": NOT_A_NAME,
    "../x/y": NOT_A_NAME,
    "directml/a/b": NOT_A_NAME,
    "directml/class": NOT_A_NAME,
    "directml/aux": NOT_A_NAME,
    "directml/_x": f"{NOT_A_NAME} (dialects: directml, onnx, plain; a name of {names.MODULE_NAME})\n",
    "onnx/argmost_1": "cannot begin from directml/argmax: the dialects say different things\n"
    "  = help: name an operator of onnx behind --like, or write the new name as directml/argmost_1\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_new_refuses_other_names(tree: Tree, name: str) -> None:
    """What `lint` would refuse is not written at all."""
    before = trees.contents(tree.root / "specs")
    result = tree("new", name, "--like", "directml/argmax")
    assert result.code == exits.ERRORS
    assert f"error[E006]: `{name}` {REFUSED[name]}" in result.err
    assert trees.contents(tree.root / "specs") == before


@pytest.mark.parametrize(
    ("name", "advised"),
    [
        ("onnx/argmost", "onnx/argmost_13"),
        ("onnx/argmost_", "onnx/argmost_13"),
        ("onnx/argmost_0", "onnx/argmost_13"),
        ("onnx/argmost_027", "onnx/argmost_27"),
        ("onnx/arg_l2", "onnx/arg_l2_13"),
    ],
)
def test_new_needs_the_version(tree: Tree, name: str, advised: str) -> None:
    result = tree("new", name, "--like", "onnx/argmax_13")
    assert result.code == exits.ERRORS
    assert result.err == (
        f"error[E006]: `{name}` does not end in its version\n  = help: write it as {advised}\n\n"
    )
    assert not tree.path(f"specs/{name}.yaml").exists()
    assert tree("new", advised, "--like", "onnx/argmax_13").code == exits.OK


def test_new_advises_a_version_of_onnx(tree: Tree) -> None:
    """Also where the dialect is missing."""
    result = tree("new", "argmost_27", "--like", "onnx/argmax_13")
    assert "write it as onnx/argmin_13 (" in result.err


def test_new_leaves_no_result_of_the_other(whole: Tree) -> None:
    """From each spec: every datum that an example expects is a TODO, in whatever style it is written; no other is."""
    likes = sorted(whole.path("specs").glob("*/*.yaml"))
    assert len(likes) >= 120
    for like in likes:
        name = f"{like.parent.name}/new_29"
        assert whole("new", name, "--like", f"{like.parent.name}/{like.stem}").code == exits.OK
        old, new = (yaml.safe_load(p.read_bytes()) for p in (like, like.with_stem("new_29")))
        like.with_stem("new_29").unlink()
        for example in old["examples"]:
            for tensor in example["expect"].values():
                tensor["data"] = TODO
        for same in old.get("equivalences", ()):
            same["says"] = TODO
        assert new["examples"] == old["examples"], like
        assert new.get("equivalences") == old.get("equivalences"), like
        assert new["errata"] == []
        changed = {key for key in old if new[key] != old[key]} - {"errata"}
        version = {"since_version"} if old.get("since_version") else set()
        assert changed == {"operator", "summary", "page"} & old.keys() | version, like
        assert new.get("since_version", 29) == 29


def test_new_of_another_dialect(small: Tree) -> None:
    """The name that is advised has a version where the dialect needs one, and the digits of no other operator."""
    for like in ("onnx/argmax_13", "directml/argmax_1"):
        small.write(f"specs/{like}.yaml", small.text(ARGMAX))
    for name, like, advised in [
        ("directml/most", "onnx/argmax_13", "or write the new name as onnx/most_13\n"),
        ("directml/most_2", "onnx/argmax_13", "or write the new name as onnx/most_2\n"),
        ("onnx/most", "directml/argmax_1", "or write the new name as directml/most\n"),
        ("most", "directml/argmax_1", "write it as directml/argmin ("),
    ]:
        assert advised in small("new", name, "--like", like).err


def test_versions_are_those_of_onnx(small: Tree) -> None:
    """A number at the end of another name is none: the operator is another, and no operator set is too old for it."""
    result = small("new", "directml/argmax_99", "--like", "directml/argmax")
    assert (result.code, result.err) == (exits.OK, "")
    new = yaml.safe_load(small.text("specs/directml/argmax_99.yaml"))
    assert new["operator"] == "DML_OPERATOR_ARGMAX_99"
    assert {t["data"] for e in new["examples"] for t in e["expect"].values()} == {TODO}


def test_new_from_a_spec_of_an_impossible_name(small: Tree) -> None:
    """What is written can be read."""
    small.write("specs/onnx/one_1.yaml", "operator: 'One: 1'\nsince_version: 1\n")
    assert small("new", "onnx/two_2", "--like", "onnx/one_1").code == exits.OK
    new = yaml.safe_load(small.text("specs/onnx/two_2.yaml"))
    assert new == {"operator": f"{TODO}_One__1", "since_version": 2}


def test_new_tells_of_a_version_that_is_newer_than_all(tree: Tree) -> None:
    """It is written, for the vocabulary may be changed behind it."""
    newest = int(re.findall(r"newest: (\d+)", tree.text(trees.VOCABULARY))[0])
    for version in (newest, newest + 1):
        result = tree("new", f"onnx/hardmax_{version}", "--like", "onnx/hardmax_13")
        assert result.code == exits.OK
        told = f"newer than the newest operator set, {newest}: raise `opsets.newest` in specs/"
        assert (told in result.err) == (version > newest)
    tree.path(trees.VOCABULARY).unlink()
    assert tree("new", "onnx/hardmax_99", "--like", "onnx/hardmax_13").err == ""


def test_new_blanks_texts_of_several_lines(tree: Tree) -> None:
    """Their end in YAML is where the next key begins."""
    tree.edit(trees.ARGMAX, "summary: ", "summary: >\n  ")
    assert tree("new", "directml/argmost", "--like", "directml/argmax").code == exits.OK
    assert "\nsummary: TODO\nintroduced:" in tree.text("specs/directml/argmost.yaml")


def test_new_from_what_is_not_yaml(tree: Tree) -> None:
    tree.write(trees.ARGMAX, "operator: [")
    result = tree("new", "directml/argmost", "--like", "directml/argmax")
    assert result.code == exits.ERRORS
    assert "error[E001]: `[` is not closed" in result.err
    assert not tree.path("specs/directml/argmost.yaml").exists()


# --- lint, of several specs at once ---

WRONG_TOGETHER = {
    "another name": (
        "specs/onnx/hardmax_11.yaml",
        "operator: Hardmax\n",
        "operator: HardMax\n",
        ["error[E211]: `HardMax` is another name than that of onnx/hardmax_1"],
    ),
    "name of another": (
        "specs/directml/argmin.yaml",
        "operator: DML_OPERATOR_ARGMIN\n",
        "operator: DML_OPERATOR_ARGMAX\n",
        ["error[E105]: `DML_OPERATOR_ARGMAX` is another operator than the file's name says"],
    ),
    "attribute of the other": (
        "specs/onnx/hardmax_13.yaml",
        "that: {Axes: [1]}",
        "that: {Axis: [1]}",
        ["error[E203]: `Axis` is not an attribute of DML_OPERATOR_ACTIVATION_HARDMAX1"],
    ),
    "several inputs": (
        "specs/directml/max_pooling1.yaml",
        "operator: directml/max_pooling\n",
        "operator: directml/max_pooling_grad\n",
        ["error[E224]: a case has one input, and directml/max_pooling_grad needs 2"],
    ),
    "huge input": (
        "specs/plain/softmax.yaml",
        "  - {sizes: [",
        "  - {sizes: [99999, ",
        ["error[E223]: an input of a case has from 0 to 100000 elements"],
    ),
    "word of a shared constraint": (
        "specs/vocabulary.yaml",
        'auto == "NOTSET"',
        'auto == "NOT_SET"',
        ["error[E103]: `NOT_SET` is not a value of ONNX_AUTO_PAD\n   --> specs/vocabulary.yaml:"],
    ),
    "data type of an output": (
        "specs/plain/softmax.yaml",
        "dtype: x.dtype",
        "dtype: FLOAT32",
        [
            "as output beside FLOAT64 as input\n",
            "= help: give the field `dtype: x.dtype`, or narrow",
        ],
    ),
    "absent tensor": (
        "specs/directml/max_pooling1.yaml",
        "      OutputIndicesTensor: {dtype: UINT32, data: [[[[2, 2], [4, 7]]]]}\n",
        "",
        ["does not fit: the first example has no `OutputIndicesTensor`"],
    ),
}


@pytest.mark.parametrize("name", WRONG_TOGETHER)
def test_lint_across_specs(whole: Tree, name: str) -> None:
    file, old, new, errors = WRONG_TOGETHER[name]
    text = whole.text(file)
    assert old in text
    whole.write(file, text.replace(old, new, 1))
    result = whole("lint")
    assert result.code == exits.ERRORS
    for error in errors:
        assert error in result.err


ALIKE = {
    "onnx/arg_max_13": (
        "onnx/argmax_13",
        "`ArgMax` is also the name of onnx/arg_max_13",
        "specs/onnx/argmax_13.yaml:1:11",
    ),
    "directml/argmax1": (
        "directml/argmax_1",
        "`Argmax1OperatorDesc` is also the class of directml/argmax1",
        "specs/directml/argmax_1.yaml:1:11",
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_names_that_would_hide_another(small: Tree, name: str) -> None:
    """Operators are found by their ONNX names, and by their classes of DirectML."""
    small.write(trees.VOCABULARY, (PROJECT / trees.VOCABULARY).read_text(encoding="utf-8"))
    other, message, place = ALIKE[name]
    original = (PROJECT / f"specs/{re.sub('argmax_?1$', 'argmax', other)}.yaml").read_text("utf-8")
    text = re.sub(r"(?ms)^equivalences:.*?(?=^\w|\Z)", "", original)
    for id in (name, other):
        number = id.upper().removeprefix("DIRECTML/ARGMAX")
        small.write(f"specs/{id}.yaml", text.replace("_ARGMAX\n", f"_ARGMAX{number}\n", 1))
    result = small("lint")
    assert result.code == exits.ERRORS
    assert f"error[E211]: {message}\n --> {place}\n" in result.err
    assert result.err.count("error[") == 1


@pytest.mark.parametrize(
    ("name", "like", "operator"),
    [
        ("plain/onnx", "plain/argmax", "onnx"),
        ("plain/tensor", "plain/argmax", "tensor"),
        ("onnx/backend_1", "onnx/hardmax_1", "Backend"),
        ("directml/registry", "directml/argmax", "DML_OPERATOR_REGISTRY"),
    ],
)
def test_lint_refuses_names_of_modules(tree: Tree, name: str, like: str, operator: str) -> None:
    """The package has modules of these names already: `generate` would refuse them, too."""
    text = re.sub("^operator: .*", f"operator: {operator}", tree.text(f"specs/{like}.yaml"))
    tree.write(f"specs/{name}.yaml", text)
    result = tree("lint")
    assert result.code == exits.ERRORS
    said = re.match(
        r"error\[E105\]: generated/specops/\S+ has another meaning\n --> (.*)\n", result.err
    )
    assert said and said[1] == f"specs/{name}.yaml:1:1"
    assert f"help: name specs/{name}.yaml otherwise\n" in result.err
    assert tree("lint", name).err == result.err
    assert tree("lint", "argmin").code == exits.OK


def test_the_checks_of_the_runtime_are_known() -> None:
    """The linter keeps their ids from constraints."""
    found = set()
    for path in (PROJECT / "templates/runtime").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in ("Violation", "violation", "refusal"):
                    found.add(node.args[0].value)
    assert "field_type" in found
    assert found - {"output_overlap"} == CHECKS, "this one is a tensor's rule, also for arrays"
    assert {*checks.CHECKS, "supported_data_type", "supported_dimension_count"} == CHECKS
