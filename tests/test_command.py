"""The command `specops`: verbs, exit codes, hints, colours."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trees

import specops
from specops import cache, dxdispatch
from specops.catalogue import entries, find
from specops.command import interrupt, terminal
from specops.command import main as command
from specops.dxdispatch import ModelError, files

GALLERY = trees.PROJECT / "examples" / "models"
ARGMAX = str(GALLERY / "argmax.json")
PACKAGE = Path(specops.__file__).parent

Run = Callable[..., trees.Result]


@pytest.fixture
def specops_(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def run(*arguments: str) -> trees.Result:
        capsys.readouterr()
        code = command.main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return trees.Result(code, captured.out, captured.err)

    return run


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, in which the package under test is found."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(PACKAGE.parent), "TERM": "xterm", **changes}


def started(
    *arguments: str, cwd: Path, code: str = "", **changes: str
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m specops` in a process of its own, where `code` may have changed something before."""
    run = f"{code}\nimport sys; from specops.command.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, *(["-c", run] if code else ["-m", "specops"]), *arguments],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


# --- the whole command ---


def test_without_a_verb_it_explains_itself(specops_: Run) -> None:
    for arguments in ((), ("--help",)):
        result = specops_(*arguments)
        assert result.code == command.OK and "Exit codes: 0 fine" in result.out
        assert all(f"\n    {verb} " in result.out for verb in ("list", "explain", "run", "warmup"))


@pytest.mark.parametrize("verb", ["list", "explain", "run", "warmup"])
def test_help_has_examples(specops_: Run, verb: str) -> None:
    result = specops_(verb, "--help")
    assert result.code == command.OK
    assert f"examples:\n  specops {verb}" in result.out and "Exit codes: 0 fine" in result.out


@pytest.mark.parametrize("verb", ["list", "explain", "run"])
def test_examples_of_the_help_work(
    specops_: Run, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.json").write_bytes(Path(ARGMAX).read_bytes())
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    examples = re.findall(rf"^  specops ({verb}.*?)(?: +#.*)?$", specops_(verb, "--help").out, re.M)
    assert examples
    for example in examples:
        assert specops_(*example.split()).code == command.OK, example


def test_version(specops_: Run) -> None:
    assert specops_("--version").out == f"specops {specops.__version__}\n"


MISTAKES: list[tuple[list[str], int, str, str]] = [
    (["lst"], 2, "there is no verb 'lst'", "did you mean `list`?"),
    (["xyzzy"], 2, "there is no verb 'xyzzy'", "there are list, explain, run, warmup"),
    (["--wait"], 2, "`specops` does not take '--wait'", "`specops --help` explains the options"),
    (["--a_b=3", "list"], 2, "`specops` does not take '--a_b=3'", "`specops --help` explains the options"),
    (["--versio"], 2, "`specops` does not take '--versio'", "did you mean `--version`?"),
    (["--", "list"], 2, "`specops` does not take '--'", "`specops --help` explains the options"),
    (["list", "argmx"], 2, "there is no operator 'argmx'", "did you mean `argmax`?"),
    (["list", "qqqq"], 2, "there is no operator 'qqqq'; `specops list` names all", ""),
    (["explain", "directml/softmax"], 2, "no operator and no rule", "`directml/activation_softmax` and 1 more"),
    (["explain", "harmax"], 2, "no operator and no rule 'harmax'", "did you mean `hardmax`?"),
    (["explain", "lp_pool_12"], 2, "no rule 'lp_pool_12'", "its versions are `onnx/lp_pool_1`, `onnx/lp_pool_2`, "),
    (["explain", "onnx/Softmax_9"], 2, "no operator", "are `onnx/softmax_1`, `onnx/softmax_11`, `onnx/softmax_13`"),
    (["explain", "softmax1"], 2, "no operator and no rule 'softmax1'", "`directml/activation_softmax1`?"),
    (["explain", "maxpooling"], 2, "no rule 'maxpooling'", "`directml/max_pooling`, `directml/max_pooling1`"),
    (["explain", "directml"], 2, "no operator and no rule 'directml'", "more have it in their names"),
    (["explain", ""], 2, "no operator and no rule ''; `specops list` names all", ""),
    (["explain"], 2, "the following arguments are required: subject", "`specops explain --help`"),
    (["explain", "axes_uniqe"], 2, "no operator and no rule 'axes_uniqe'", "did you mean `axes_unique`?"),
    (["list", "--frmat", "json"], 2, "does not take '--frmat'", "did you mean `--format`?"),
    (["run", ARGMAX, "--dispatch_iteration", "3"], 2, "does not take", "did you mean `--dispatch-iterations`?"),
    (["run", ARGMAX, "more"], 2, "does not take 'more'", "`specops run --help`"),
    (["run", ARGMAX, "-i", "0"], 2, "'0' is no integer from 1", "--help"),
    (["run", ARGMAX, "-i", "9" * 5000], 2, "is no integer", "--help"),
    (["run", ARGMAX, "--feature-level", "9"], 2, "there is no feature level '9'; there are 1.0, 2.0", "--help"),
    (["run", ARGMAX, "--max-memory", "much"], 2, "'much' is no number of bytes", "--help"),
    (["run", ARGMAX, "--input-path", "nowhere"], 2, "'nowhere' is no folder", "--help"),
    (["run", ARGMAX, "--format", "json"], 2, "--format is for --validate-only", ""),
    (["run", "none.json"], 1, "none.json: error: cannot be read", ""),
    (["warmup", "specops.onnx"], 2, "there is no operator", "name a function of it, as `specops.onnx.softmax`"),
    (["warmup", "argmx"], 2, "there is no operator 'argmx'", "did you mean `argmax`?"),
    (["warmup", "--dtype", "flot16"], 2, "no data type 'flot16'; there are FLOAT32, ", "did you mean `FLOAT16`?"),
    (["warmup", "directml/argmax", "--dtype", "bool"], 2, "has data type BOOL; they have FLOAT32, FLOAT16, ", ""),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "says", "hint"), MISTAKES)
def test_mistakes(specops_: Run, arguments: list[str], code: int, says: str, hint: str) -> None:
    """One line, and a hint below it where there is one."""
    result = specops_(*arguments)
    assert (result.code, result.out) == (code, "")
    first, *rest = result.err.splitlines()
    assert says in first
    assert [line for line in rest if hint in line] if hint else not rest
    assert all(line.startswith("  hint: ") for line in rest)


def test_a_bug_is_one_line(specops_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr(dxdispatch, "check", fail)
    result = specops_("run", ARGMAX, "--validate-only")
    assert result.code == command.BUG
    assert result.err.splitlines()[0] == "error: RuntimeError: surprise"


def test_a_bug_shows_where_it_is_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(dxdispatch, "check")
    monkeypatch.setenv("SPECOPS_TRACEBACK", "1")
    assert command.main(["run", ARGMAX, "--validate-only"]) == command.BUG
    told = capsys.readouterr().err
    assert told.startswith("Traceback") and "models.py" in told and "\nerror: Attrib" in told


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), command.INTERRUPTED),
        (MemoryError(), command.INVALID),
        (PermissionError(13, "Permission denied", "x"), command.INVALID),
        (OSError("without a number"), command.INVALID),
        (specops.SpecopsError("no"), command.INVALID),
    ],
)
def test_other_ends(
    specops_: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(dxdispatch, "load", fail)
    result = specops_("run", ARGMAX)
    assert result.code == code and len(result.err.splitlines()) == 1
    assert "None" not in result.err


@pytest.mark.parametrize(
    ("text", "told"), [("first\nsecond", "first"), ("!" * 301, "!" * 300)], ids=["lines", "long"]
)
@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(
    specops_: Run, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    def warn(*_: Any, **__: Any) -> list[Any]:
        warnings.warn(text, stacklevel=2)
        return []

    monkeypatch.setattr(dxdispatch, "check", warn)
    result = specops_("run", ARGMAX, "--validate-only")
    assert (result.code, result.err) == (command.OK, f"warning: {told}\n")


def test_what_python_cannot_raise_is_told() -> None:
    """As without the command, but for an interrupt."""
    told: list[Any] = []
    lost = SimpleNamespace(exc_value=ValueError())
    command._unraisable(told.append, lost)
    assert told == [lost]


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "specops", "explain", "argmax"],
        env=environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == command.OK


@pytest.mark.parametrize(("system", "code"), [(trees.WINDOWS, command.OK), (os, command.INVALID)])
def test_a_reader_that_has_seen_enough_as_windows_tells_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: Any,
    code: int,
) -> None:
    monkeypatch.setattr(terminal, "os", system)
    with trees.Unread((tmp_path / "out").open("wb")) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert command.main(["list"]) == code
    assert bool(capsys.readouterr().err) == (code != command.OK)
    if code == command.OK:
        named = OSError(errno.EINVAL, "Invalid argument", "a?b")
        assert not terminal.is_unread(named)


def test_streams_that_the_caller_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert command.main(["list"]) == command.OK
    monkeypatch.setattr(sys, "stderr", None)
    assert command.main(["lst"]) == command.USAGE


INTERRUPTED_IN_A_CALLBACK = """
import ctypes, sys
from specops import dxdispatch
from specops.command import main

@ctypes.CFUNCTYPE(None)
def callback():
    raise KeyboardInterrupt

dxdispatch.check = lambda *_, **__: callback() or []
sys.exit(main.main(["run", "model.json", "--validate-only"]))
"""


def test_an_interrupt_while_llvm_compiles(specops_: Run, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stdout) == (command.INTERRUPTED, "")
    assert result.stderr == "error: interrupted\n"
    hook = sys.unraisablehook
    specops_("--version")
    assert sys.unraisablehook is hook


def test_outside_the_checkout(tmp_path: Path) -> None:
    result = started("explain", "directml/argmax", cwd=tmp_path)
    assert result.returncode == 0 and result.stderr == ""
    page = PACKAGE / "pages" / "directml_argmax.txt"
    # Behind it may stand operators of longer names.
    assert result.stdout.startswith(page.read_text(encoding="utf-8"))


def test_output_that_cannot_be_encoded(tmp_path: Path) -> None:
    text = '{"resources": {"é": {"initialValuesDataType": "INT8", "initialValues": [1]}}, "dispatchables": {}, '
    text += '"commands": [{"type": "print", "resource": "é"}]}'
    (tmp_path / "m.json").write_text(text, encoding="utf-8")
    result = started("run", "m.json", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split("\n")[1] == r"Resource '\xe9': 1"


# --- list ---


def test_list(specops_: Run) -> None:
    rows = specops_("list").out.splitlines()
    assert rows[0].split() == ["operator", "since", "summary"]
    names = [row.split()[0] for row in rows[1:]]
    assert names == sorted(names)
    assert {n for n in names if n.startswith("directml/")} == {
        f"directml/{p.stem}" for p in (trees.PROJECT / "specs" / "directml").glob("*.yaml")
    }
    versions = next(row for row in rows if row.startswith("onnx/argmax "))
    assert " 1, 11, 12, 13 " in versions
    (softmax,) = (e for e in entries() if e.newest and (e.dialect, e.name) == ("onnx", "softmax"))
    assert [
        row for row in rows if row.startswith("onnx/softmax ") and row.endswith(softmax.summary)
    ]


def test_list_some(specops_: Run) -> None:
    rows = specops_("list", "argmax", "HARDMAX_11").out.splitlines()[1:]
    named = {f"{e.dialect}/{e.name}" for e in entries() if e.name == "argmax"}
    assert {"directml/argmax", "onnx/argmax"} <= named
    found = [r.split()[0] for r in rows]
    assert found == sorted(found) and named | {"onnx/hardmax"} <= {*found}
    assert all("argmax" in name for name in {*found} - {"onnx/hardmax"})


def test_list_what_has_a_name_within_its_own(specops_: Run) -> None:
    rows = specops_("list", "softmax").out.splitlines()[1:]
    assert {"directml/activation_softmax1", "onnx/softmax"} <= {r.split()[0] for r in rows}
    rows = specops_("list", "maxpooling").out.splitlines()[1:]
    assert rows and all(r.startswith("directml/max_pooling") for r in rows)


def test_list_for_programs(specops_: Run) -> None:
    records = json.loads(specops_("list", "--format", "json").out)
    assert {r["id"] for r in records} == {
        f"{p.parent.name}/{p.stem}" for p in (trees.PROJECT / "specs").glob("*/*.yaml")
    }
    assert {"id", "operator", "since", "summary"} == set(records[0])


# --- explain ---


@pytest.mark.parametrize("entry", [e.id for e in entries()])
def test_each_operator_has_its_page(specops_: Run, entry: str) -> None:
    result = specops_("explain", entry)
    assert result.code == 0 and result.out.splitlines()[0].count(f"({entry}")
    for heading in ("Fields", "Data types", "Constraints", "Examples"):
        assert f"\n{heading}\n" in result.out


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("argmax", ["directml/argmax", "onnx/argmax", "plain/argmax"]),
        ("ArgMax", ["directml/argmax", "onnx/argmax", "plain/argmax"]),
        ("DML_OPERATOR_ARGMAX", ["directml/argmax"]),
        ("onnx/argmax", ["onnx/argmax"]),
        ("argmax_11", ["onnx/argmax_11"]),
        ("LogSoftmax", ["onnx/log_softmax"]),
        ("ACTIVATION_HARDMAX1", ["directml/activation_hardmax1"]),
        ("DML_ACTIVATION_HARDMAX1_OPERATOR_DESC", ["directml/activation_hardmax1"]),
        ("MaxPooling1OperatorDesc", ["directml/max_pooling1"]),
    ],
)
def test_names_of_operators(name: str, ids: list[str]) -> None:
    """Without a version the newest is meant, whichever that is."""
    assert [f"{e.dialect}/{e.name}" if e.newest else e.id for e in find(name)] == ids


def test_explain_names_older_versions(specops_: Run) -> None:
    *older, newest = (e.id for e in entries() if re.fullmatch(r"onnx/hardmax_\d+", e.id))
    assert older[:2] == ["onnx/hardmax_1", "onnx/hardmax_11"]
    out = specops_("explain", "hardmax").out
    assert f"({newest}, " in out and out.endswith(f"\nOlder versions: {', '.join(older)}\n")
    assert "Older versions" not in specops_("explain", "onnx/hardmax_11").out


def test_explain_names_operators_with_longer_names(specops_: Run) -> None:
    out = specops_("explain", "max_pool").out
    longer = sorted({e.id for e in entries() if "max_pooling" in e.id})
    (named,) = re.findall(r"^See also: (.*?)\n\n", out, re.MULTILINE | re.DOTALL)
    assert len(longer) > 2 and {*longer} <= {*re.split(r",\s+", named)}
    names = [e.name for e in entries()]
    alone = next(n for n in names if not any(n in other and n != other for other in names))
    assert "See also" not in specops_("explain", alone).out


def test_explain_a_rule(specops_: Run) -> None:
    out = specops_("explain", "axes_in_range").out
    assert "axes_in_range (page: Axes)" in out and "directml/argmax" in out
    for rule in ("supported_data_type", "total_size", "owned_by_dml"):
        assert "directml/argmax" in specops_("explain", rule).out
    decision = specops_("explain", "subnormals").out
    assert decision.startswith("subnormals\n") and "directml/activation_hardmax" in decision


def test_explain_a_check_that_no_page_has(specops_: Run) -> None:
    assert "memory of inputs" in specops_("explain", "overlap").out
    assert "did you mean `overlap`?" in specops_("explain", "overlab").err


def test_a_struct_of_directml_has_no_defaults(specops_: Run) -> None:
    out = specops_("explain", "directml/max_pooling1").out
    assert "Strides (attribute, uint[], default of the function [1 for w in WindowSize])" in out
    assert "OutputIndicesTensor (output, optional, tensor)" in out
    assert "axis (attribute, int, default -1)" in specops_("explain", "onnx/softmax").out


def test_the_pages_are_those_of_the_generator(
    specops_: Run, run: Callable[[list[str]], trees.Result]
) -> None:
    assert specops_("explain", "directml/argmin").out == run(["explain", "directml/argmin"]).out


# --- run ---


def broken(folder: Path) -> Path:
    """A model with two errors and a warning."""
    text = Path(ARGMAX).read_text(encoding="utf-8")
    text = text.replace('"Axes": [0]', '"Axes": [5]').replace('"print"', '"prnt"', 1)
    text = text.replace('"commands"', '"extra": 1, "commands"')
    path = folder / "broken.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_run(specops_: Run) -> None:
    result = specops_("run", ARGMAX, "--dispatch_iterations=3", "-w", "1", "-v", "1")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "Running on 'CPU'" and lines[-1] == "Resource 'of rows': 2, 2, 1"
    assert "Dispatch 'columns': 3 iterations" in lines


def test_words_after_two_dashes_are_taken_as_they_are(
    specops_: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--a_b.json").write_bytes(Path(ARGMAX).read_bytes())
    result = specops_("run", "--dispatch_iterations", "2", "--", "--a_b.json")
    assert (result.code, result.err) == (0, "")
    assert "--a-b.json: error: cannot be read" in specops_("run", "--", "--a-b.json").err


def test_run_refuses_and_says_where(specops_: Run, tmp_path: Path) -> None:
    path = broken(tmp_path)
    result = specops_("run", str(path))
    assert (result.code, result.out) == (1, "")
    lines = [line for line in result.err.splitlines() if not line.startswith("  hint: ")]
    assert len(lines) == 3
    assert all(
        re.match(rf"{re.escape(str(path))}:\d+:\d+: (error|warning): ", line) for line in lines
    )


def test_a_run_tells_its_warnings(specops_: Run, tmp_path: Path) -> None:
    """They keep it from nothing, and stand apart from what it prints."""
    path = tmp_path / "m.json"
    text = Path(ARGMAX).read_text(encoding="utf-8")
    path.write_text(text.replace('"commands"', '"extra": 1, "commands"'), encoding="utf-8")
    result, quiet = specops_("run", str(path)), specops_("run", ARGMAX)
    assert result.code == 0
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: warning: extra: ", result.err)
    assert result.out.splitlines()[-1] == quiet.out.splitlines()[-1]


def test_validate_only(specops_: Run, tmp_path: Path) -> None:
    result = specops_("run", str(broken(tmp_path)), "--validate-only")
    assert (result.code, result.err) == (1, "")
    assert result.out.splitlines()[-1] == "2 errors, 1 warning (the general definitions)"
    assert "dispatchables.columns.desc.Axes: found Axes = [5]" in result.out
    assert "[axes_in_range]" in result.out
    result = specops_("run", ARGMAX, "--validate-only", "--feature-level", "DML_FEATURE_LEVEL_3_0")
    assert (result.code, result.out) == (0, "valid for feature level 3.0, 0 warnings\n")
    result = specops_("run", ARGMAX, "--validate-only", "--feature-level", "2_1")
    assert result.code == 1 and "exists from feature level 3.0 on" in result.out


def test_validate_only_for_programs(specops_: Run, tmp_path: Path) -> None:
    path = str(broken(tmp_path))
    result = specops_("run", path, "--validate-only", "--format", "json")
    problems = json.loads(result.out)
    assert result.code == 1 and len(problems) == 3
    assert {p["severity"] for p in problems} == {"error", "warning"}
    assert all(p["file"] == path and p["line"] > 0 and p["column"] > 0 for p in problems)


def test_run_writes_below_the_output_folder_only(specops_: Run, tmp_path: Path) -> None:
    text = Path(ARGMAX).read_text(encoding="utf-8")
    command_ = '{ "type": "writeFile", "resource": "input", "targetPath": "a/b.npy" }, '
    path = tmp_path / "m.json"
    path.write_text(text.replace('"commands": [', f'"commands": [{command_}'), encoding="utf-8")
    result = specops_("run", str(path))
    assert result.code == 1 and "--output-path" in result.err
    for option in ("-o", "--output-path", "--output_path", "--output"):
        assert specops_("run", str(path), option, str(tmp_path / option)).code == 0
        assert (tmp_path / option / "a" / "b.npy").is_file()
    # Of an option with its value only the name is DxDispatch's.
    assert specops_("run", str(path), f"--output_path={tmp_path / 'c_d'}").code == 0
    assert (tmp_path / "c_d" / "a" / "b.npy").is_file()


def test_max_memory(specops_: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    values = '{"initialValuesDataType": "UINT8", "initialValues": {"value": 0, "valueCount": 2049}}'
    path.write_text(f'{{"resources": {{"r": {values}}}, "dispatchables": {{}}, "commands": []}}')
    assert specops_("run", str(path)).code == 0
    assert specops_("run", str(path), "--max-memory", "3KiB").code == 0
    result = specops_("run", str(path), "--max-memory", "2k")
    assert result.code == 1 and "the limit is 2048" in result.err
    path.write_text(path.read_text().replace("2049", f"{2**30 + 1}"))
    result = specops_("run", str(path))
    assert result.code == 1 and f"the limit is {2**30}" in result.err


def test_time_limit(tmp_path: Path) -> None:
    result = started("run", ARGMAX, "-t", "600000", "--time-limit", "1", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "error: not finished within 1 s",
        "  hint: raise it with --time-limit",
    ]


def test_no_time_limit(tmp_path: Path) -> None:
    assert started("run", ARGMAX, "-t", "100", "--time-limit", "0", cwd=tmp_path).returncode == 0


def test_an_error_while_running(specops_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ModelError([dxdispatch.Problem("m.json", 3, 4, "resources.x", "changed")])

    monkeypatch.setattr(dxdispatch, "run", fail)
    result = specops_("run", ARGMAX)
    assert (result.code, result.err) == (1, "m.json:3:4: error: resources.x: changed\n")


# --- warmup ---

FULL_DISK = """
from numba.core.caching import IndexDataCacheFile
def full(*_):
    raise OSError(28, "No space left on device")
IndexDataCacheFile._save_data = full
"""
# Numba's cache forgives a refusal there.
REFUSED_ON_WINDOWS = """
import os, types
from numba.core import caching
def refused(*_):
    raise PermissionError(13, "Permission denied")
caching.IndexDataCacheFile._save_data = refused
caching.os = types.SimpleNamespace(**{**vars(os), "name": "nt"})
"""


def test_warmup(specops_: Run) -> None:
    result = specops_("warmup", "plain/argmax", "directml/argmin", "--dtype", "float32")
    assert (result.code, result.err) == (0, "")
    assert re.fullmatch(r"2 operators, 1 data type: ready in \d+\.\d s\n", result.out)


def test_warmup_leaves_nothing_to_compile(tmp_path: Path) -> None:
    """What it compiles is in the cache: another process compiles nothing more for the same operator and data type."""
    cache = tmp_path / "cache"

    def files() -> set[str]:
        return {p.name for p in cache.rglob("*.nbc")}

    changes = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1"}
    assert started("warmup", "directml/argmax", cwd=tmp_path, **changes).returncode == 0
    before = files()
    assert before
    assert started("run", ARGMAX, cwd=tmp_path, **changes).returncode == 0
    assert files() == before


@pytest.mark.parametrize(
    ("code", "why"),
    [(FULL_DISK, "No space left on device"), (REFUSED_ON_WINDOWS, "Permission denied")],
)
def test_warmup_that_keeps_nothing(tmp_path: Path, code: str, why: str) -> None:
    """What is lost at the end of the process is no success."""
    changes = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_NUM_THREADS": "1"}
    result = started("warmup", "plain/argmax", cwd=tmp_path, code=code, **changes)
    assert (result.returncode, result.stdout) == (command.INVALID, "")
    first, hint = result.stderr.splitlines()
    assert first.startswith(f"error: compiled, but not kept: {tmp_path / 'cache'}")
    assert first.endswith(f": {why}")
    assert hint == "  hint: set NUMBA_CACHE_DIR to a folder that can be written to"


def test_warmup_tells_why_nothing_is_kept(specops_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = "no folder can be written to: /x (Permission denied)", "set NUMBA_CACHE_DIR"
    monkeypatch.setattr(cache, "_lost", lost)
    result = specops_("warmup", "plain/argmax")
    assert result.code == command.INVALID
    assert "not kept: no folder can be written to: /x (Permission denied)" in result.err


def test_a_closed_stream_is_no_terminal() -> None:
    with open(os.devnull, encoding="utf-8") as stream:
        pass
    assert not terminal.is_terminal(stream)


class Console(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("session", ["", "1"])
def test_control_sequences_on_windows(monkeypatch: pytest.MonkeyPatch, session: str) -> None:
    """Terminals that set WT_SESSION obey them; the classic consoles would print them."""
    monkeypatch.setattr(terminal, "os", trees.WINDOWS)
    monkeypatch.setenv("WT_SESSION", session)
    monkeypatch.setenv("TERM", "")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console()
    monkeypatch.setattr(sys, "stderr", console)
    with terminal.Progress(1) as progress:
        progress.begin("one")
        terminal.complain("error", "wrong")
    assert ("\x1b" in console.getvalue()) == bool(session)
    assert terminal.width(sys.stderr) is not None


def test_each_option_of_timing_has_its_effect(
    specops_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dxdispatch.Timing] = []
    monkeypatch.setattr(dxdispatch, "run", lambda *_, timing, **__: given.append(timing))
    options = ["-i", "2", "-t", "3", "-r", "4", "-I", "5", "-w", "6", "-v", "1"]
    assert specops_("run", ARGMAX, *options).code == 0
    assert specops_("run", ARGMAX).code == 0
    assert given == [dxdispatch.Timing(2, 3, 4, 5, 6, 1), dxdispatch.Timing()]


def test_versions_are_listed_in_the_order_of_numbers(specops_: Run) -> None:
    row = next(r for r in specops_("list").out.splitlines() if r.startswith("onnx/max_pool "))
    since = re.findall(r"[0-9]+", row.split("  ", maxsplit=1)[1].strip().split("  ")[0])
    assert len(since) > 3 and since == sorted(since, key=int)


def test_input_path(specops_: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.bin").write_bytes(bytes([7, 8]))
    path = tmp_path / "m.json"
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "x.bin"}}
    command_ = {"type": "print", "resource": "r"}
    content = {"resources": {"r": resource}, "dispatchables": {}, "commands": [command_]}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert specops_("run", str(path)).code == 1
    result = specops_("run", str(path), "--input-path", str(tmp_path / "in"))
    assert (result.code, result.out.splitlines()[-1]) == (0, "Resource 'r': 7, 8")


def test_the_time_limit_ends_with_the_run(specops_: Run) -> None:
    """Whoever calls `main` goes on afterwards."""
    before = set(threading.enumerate())
    assert specops_("run", ARGMAX, "--time-limit", "600").code == 0
    for timer in set(threading.enumerate()) - before:
        timer.join(5)
        assert not timer.is_alive()


def test_a_run_leaves_signals_as_they_were(specops_: Run) -> None:
    """To whoever calls `main`."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        terminate = signal.getsignal(signal.SIGTERM)
        previous = signal.set_wakeup_fd(theirs.fileno())
        try:
            assert specops_("run", ARGMAX, "--validate-only").code == 0
        finally:
            left = signal.set_wakeup_fd(previous)
        assert (left, signal.getsignal(signal.SIGTERM)) == (theirs.fileno(), terminate)


def test_an_interrupt_that_python_handles_in_time(
    specops_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Does not end the process of whoever calls `main`."""
    ended: list[int] = []
    monkeypatch.setattr(interrupt, "exit_now", ended.append)
    monkeypatch.setattr(files, "abandon", lambda: None)
    monkeypatch.setattr(dxdispatch, "run", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert specops_("run", ARGMAX).code == command.INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, previous)
    assert ended == []


def test_a_run_in_another_thread(specops_: Run) -> None:
    """Where Python lets nobody handle signals."""
    codes: list[int] = []
    run = threading.Thread(target=lambda: codes.append(specops_("run", ARGMAX).code))
    run.start()
    run.join()
    assert codes == [0]


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [("-i", "4294967295", "4294967296"), ("--max-memory", "1024T", "1025T")],
)
def test_the_greatest_numbers_of_options(specops_: Run, option: str, good: str, bad: str) -> None:
    assert specops_("run", ARGMAX, "--validate-only", option, good).code == 0
    assert specops_("run", ARGMAX, "--validate-only", option, bad).code == 2
