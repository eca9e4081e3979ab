"""Terminals, links and pipes as POSIX has them: conftest.py leaves these tests out elsewhere."""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_dxdispatch
import trees
from test_command import ARGMAX, environment, started
from test_dxdispatch import Case, with_values, writing
from trees import clear_error

from generator import exits, output
from generator.listing import files_below
from specops.dxdispatch import files


def on_terminal(*arguments: str, **changes: str) -> str:
    """What `python -m specops` writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "specops", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(COLUMNS="80", **changes),
        close_fds=True,
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
        process.wait(timeout=120)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


ESCAPE = "\x1b["


def test_colours_are_for_terminals() -> None:
    text = on_terminal("run", ARGMAX, "--feature-level", "1.0")
    assert f"{ESCAPE}1;31merror:{ESCAPE}0m" in text
    text = on_terminal("explain", "plain/argmax")
    assert f"{ESCAPE}1mFields{ESCAPE}0m" in text


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours(changes: dict[str, str]) -> None:
    text = on_terminal("run", ARGMAX, "--feature-level", "1.0", **changes)
    assert "error:" in text and ESCAPE not in text


def test_an_empty_no_color_counts_for_nothing() -> None:
    assert ESCAPE in on_terminal("explain", "plain/argmax", NO_COLOR="")


def test_lines_fit_the_terminal() -> None:
    text = re.sub(r"\x1b\[\d+m", "", on_terminal("list"))
    assert max(map(len, text.splitlines())) == 80


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    text = on_terminal("warmup", "plain/argmax")
    assert "[........................] 0/1 plain/argmax FLOAT32" in text
    assert text.rstrip().split("\n")[-1].split("\r")[-1].startswith(f"{ESCAPE}K1 operator")
    assert started("warmup", "plain/argmax", cwd=tmp_path).stderr == ""


def test_a_run_shows_what_it_is_at(tmp_path: Path) -> None:
    text = on_terminal("run", ARGMAX)
    assert "\r[........................] 0/2 columns" in text
    assert "\r[############............] 1/2 rows" in text
    seen = [line.split(f"\r{ESCAPE}K")[-1] for line in text.rstrip().split("\n")]
    plain = started("run", ARGMAX, cwd=tmp_path)
    times = re.compile(r"\d+\.\d{4}")
    assert plain.stderr == ""
    assert times.sub("*", "\n".join(seen)) == times.sub("*", plain.stdout.rstrip())
    text = on_terminal("run", ARGMAX, "-t", "600000", "--time-limit", "1", NO_COLOR="1")
    assert f"0/2 columns{ESCAPE}K\r{ESCAPE}Kerror: not finished within 1 s\n" in text


# --- streams that cannot be written to ---


def on_full_disk(
    stream: str, *arguments: str, cwd: Path, **changes: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m specops`, of which one stream is a file that may not grow."""
    with (cwd / "stream").open("wb") as file:
        streams: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            stream: file,
        }
        return subprocess.run(
            [sys.executable, "-m", "specops", *arguments],
            cwd=cwd,
            env=environment(**changes),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
            check=False,
            **streams,
        )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["--version"], ["list"], ["list", "--help"], ["explain", "argmax"]],
)
def test_output_that_is_lost_is_an_error(
    arguments: list[str], unbuffered: str, tmp_path: Path
) -> None:
    done = on_full_disk("stdout", *arguments, cwd=tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, b"error: File too large\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["lst"], 2),
        (["--wait"], 2),
        (["run"], 2),
        (["list", "argmx"], 2),
        (["run", "none.json"], 1),
        (["run", "warned.json"], 0),
    ],
)
def test_an_error_that_nobody_reads_is_told_by_the_exit_code(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    model = '{"resources": {}, "dispatchables": {}, "commands": [], "more": 1}'
    (tmp_path / "warned.json").write_text(model)
    assert on_full_disk("stderr", *arguments, cwd=tmp_path).returncode == code


# --- links and pipes ---

case = test_dxdispatch.case  # a fixture


def test_links_that_lead_out(case: Case, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.bin").write_bytes(bytes(8))
    for folder in (case.folder, case.output):
        (folder / "file").symlink_to(secret / "x.bin")
        (folder / "folder").symlink_to(secret)
        (folder / "loop").symlink_to(folder / "loop")
    for path in ("file", "folder/x.bin", "loop"):
        case.refused(with_values({"sourcePath": path}))
    for path in ("file", "folder/y.bin", "folder/new/y.bin"):
        case.refused(writing(path), output_folder=case.output)
    assert [p.name for p in secret.iterdir()] == ["x.bin"]
    (case.folder / "inside").symlink_to(case.folder / "real")
    (case.folder / "real").write_bytes(bytes(4))
    assert case.values(with_values({"sourcePath": "inside"}))["r"].tolist() == [0]


def test_a_link_in_place_of_a_folder_that_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may put it there just then."""
    ours, secret = tmp_path / "ours", tmp_path / "secret"
    ours.mkdir()
    secret.mkdir()
    monkeypatch.setattr(Path, "mkdir", lambda path, **_: path.symlink_to(secret))
    with pytest.raises(files.Refused, match="leads out of"):
        files.write(ours, "folder/y.bin", [b"y"])
    assert list(secret.iterdir()) == []


def test_a_pipe_does_not_hang(case: Case) -> None:
    os.mkfifo(case.folder / "pipe")
    assert "not a regular file" in case.refused(with_values({"sourcePath": "pipe"})).message
    (case.folder / "folder").mkdir()
    case.refused(with_values({"sourcePath": "folder"}))
    (case.output / "folder").mkdir()
    assert "is a folder" in case.refused(writing("folder"), output_folder=case.output).message


def test_a_sparse_file_is_limited(case: Case) -> None:
    """Windows would fill the disk."""
    with (case.folder / "big").open("wb") as file:
        file.truncate(1 << 40)
    assert "the limit is" in case.refused(with_values({"sourcePath": "big"})).message


@pytest.mark.parametrize("path", ["a" * 256, "a" * 256 + "/y.bin"])
def test_names_that_are_too_long(case: Case, path: str) -> None:
    """A system's own limit is refused in its place, for files that are read and that are written."""
    problem = case.refused(with_values({"sourcePath": path}))
    assert problem.path == "resources.r.initialValues.sourcePath"
    problem = case.refused(writing(path), output_folder=case.output)
    assert problem.path == "commands[0].targetPath"
    assert "cannot be written: " in problem.message
    assert list(case.output.iterdir()) == []


# --- a run that ends early ---

WRITES = """
{"resources": {"r": {"initialValuesDataType": "INT8", "initialValues": [1]}}, "dispatchables": {},
 "commands": [{"type": "writeFile", "resource": "r", "targetPath": "r.bin"}]}
"""
SLOW_DISK = """
import time
from specops.dxdispatch.runner import Runner
def slow(*_):
    yield b"half"
    print("half is written", flush=True)
    time.sleep(600)
Runner._content = slow
"""


# What runs for minutes, without Python's lock, and takes no notice of signals.
BUSY = """
import hashlib
def busy():
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""
BUSY_DISK = """
from specops.dxdispatch.runner import Runner
def slow(*_):
    yield b"half"
    busy()
Runner._content = slow
"""
BUSY_KERNEL = """
from specops import launch
launch.Chunk.run = lambda *_, **__: busy()
"""
PATIENT_DISK = SLOW_DISK.replace("half is written", "busy")
# What a shell runs in the background ignores Ctrl-C, and so do its children.
LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def ends(number: int, code: str, model: str, folder: Path) -> tuple[int, str]:
    """The exit code of a run that is sent a signal while it is busy, and what it says; no half of a file stays."""
    (folder / "m.json").write_text(WRITES)
    (folder / "out").mkdir()
    run = f"{LISTENS}{code}\nimport sys; from specops.command.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", run, "run", model, "-o", "out"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert any(line == "busy\n" for line in process.stdout)
        process.send_signal(number)
        try:
            end = process.wait(timeout=20)
        finally:
            process.kill()
        said = process.stderr.read()
    assert list((folder / "out").iterdir()) == []
    return end, said


@pytest.mark.parametrize(
    "code", [BUSY + BUSY_KERNEL, BUSY + BUSY_DISK, PATIENT_DISK], ids=["kernel", "disk", "patient"]
)
@pytest.mark.parametrize(("number", "end"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run(number: int, end: int, code: str, tmp_path: Path) -> None:
    """Within a moment, whatever it is at."""
    model = ARGMAX if BUSY_KERNEL in code else "m.json"
    said = "error: interrupted\n" if end == 130 else ""
    assert ends(number, code, model, tmp_path) == (end, said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_the_caller_handles(number: int, tmp_path: Path) -> None:
    """Is left to the caller, however long that takes."""
    own = f"""
import sys, signal
def own(*_):
    time.sleep(1)  # longer than the command leaves to Python itself
    sys.exit(7)
signal.signal({int(number)}, own)
"""
    assert ends(number, PATIENT_DISK + own, "m.json", tmp_path) == (7, "")


def test_the_time_limit_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(WRITES)
    options = ("-o", "out", "--time-limit", "1")
    result = started("run", "m.json", *options, cwd=tmp_path, code=SLOW_DISK)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "half is written")
    assert list((tmp_path / "out").iterdir()) == []


# --- generated/ ---

States = tuple[trees.Tree, dict[str, bytes]]


@pytest.mark.parametrize(
    "place", ["generated", "generated/specops/directml", "generated/specops/tensor.py"]
)
@pytest.mark.parametrize("verb", ["generate", "check"])
def test_nothing_is_written_through_a_link(generated: trees.Tree, place: str, verb: str) -> None:
    """A link in place of a folder leads out of generated/: what is there is neither overwritten nor an orphan."""
    outside = generated.root.parent / "outside"
    generated.path(place).rename(outside)
    if outside.is_dir():
        (outside / "mine.py").write_text("x = 1\n")
    generated.path(place).symlink_to(outside)
    generated.edit(trees.ARGMAX, "doc: Tensor to search.", "doc: Tensor to look through.")
    before = trees.contents(outside) if outside.is_dir() else outside.read_bytes()
    result = generated(verb, *(["--force"] if verb == "generate" else []))
    clear_error(result)
    assert f"{place}: a link or no file at all; remove it" in result.err
    assert (trees.contents(outside) if outside.is_dir() else outside.read_bytes()) == before
    generated.path(place).unlink()
    assert generated("generate", "--force").code == exits.OK


def test_a_link_to_a_cache(generated: trees.Tree) -> None:
    """Caches go with a folder that becomes empty, but not those elsewhere."""
    outside = generated.root.parent / "outside"
    outside.mkdir()
    (outside / "mine.pyc").write_bytes(b"x")
    generated.write("generated/specops/old/x.py", "x = 1\n")
    generated.path("generated/specops/old/__pycache__").symlink_to(outside)
    clear_error(generated("generate", "--force"))
    assert (outside / "mine.pyc").exists()


@pytest.mark.parametrize("file", [trees.ARGMAX, trees.VOCABULARY, "generated/specops/pipe.py"])
def test_a_pipe_in_the_tree(generated: trees.Tree, file: str) -> None:
    """Nobody waits for what never comes."""
    generated.path(file).unlink(missing_ok=True)
    os.mkfifo(generated.path(file))
    result = generated("generate")
    assert result.code == exits.ERRORS
    assert Path(file).name in result.err


# Each call to the system by which `generate` changes files.
CALLS = ["mkdir", "open", "write", "chmod", "replace", "unlink", "rmdir"]


def counted(stop: Callable[[str], None], patch: pytest.MonkeyPatch) -> None:
    """Call `stop` before each change of a file, with the name of the call; half of the data is written before it."""

    def wrapped(name: str, real: Any) -> Any:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            if name != "open" or arguments[0] & os.O_CREAT:
                stop(name)
            return real(path, *arguments, **options)

        return call

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            written = super().write(data[: len(data) // 2])
            stop("write")
            return written + super().write(data[len(data) // 2 :])

    for name in CALLS:
        if name != "write":
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
    patch.setattr(os, "fdopen", File)


OLD = {"same.py": b"same", "a/changed.py": b"old" * 999, "a/b/gone.py": b"x", "gone/too.py": b"y"}
NEW = {"same.py": b"same", "a/changed.py": b"new" * 999, "a/c/more.py": b"z", "extra.py": b"e"}


def update(folder: Path, wanted: dict[str, bytes]) -> list[output.Difference]:
    """What `generate` does with rendered files."""
    state = output.read(folder)
    differences = output.compare(state, wanted, whole=True)
    output.write(folder, state, wanted, differences)
    return differences


def full(patch: pytest.MonkeyPatch, folder: Path, stop: Callable[[str], None]) -> bool:
    counted(stop, patch)
    try:
        update(folder, NEW)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        return False
    return True


def killed(patch: pytest.MonkeyPatch, folder: Path, stop: Callable[[str], None]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            counted(stop, patch)
            update(folder, NEW)
            os._exit(0)
        except OSError:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 7)
    return status == 0


@pytest.mark.parametrize("end", [full, killed])
def test_an_end_at_every_step(end: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of a file in turn fails, or the process ends there; a write with half of its data written.

    Every file is the old or the new one, none looks edited by hand, and the next run mends all and tidies up.
    """
    folder = tmp_path / "generated"
    for n in range(200):
        shutil.rmtree(folder, ignore_errors=True)
        update(folder, OLD)
        calls = 0

        def stop(name: str, _n: int = n) -> None:
            nonlocal calls
            calls += 1
            if calls == _n + 1 and end is full:
                raise OSError(errno.ENOSPC, "No space left on device", name)
            if calls == _n + 1:
                os._exit(7)

        with monkeypatch.context() as patch:
            done = end(patch, folder, stop)
        now = output.read(folder).texts
        assert all(
            now.get(path) in (OLD.get(path), NEW.get(path)) for path in OLD.keys() | NEW.keys()
        )
        assert now.keys() <= OLD.keys() | NEW.keys()
        assert not any(d.by_hand for d in update(folder, NEW))
        after = trees.contents(folder)
        assert after.pop("MANIFEST")
        assert after == NEW
        if done and calls <= n:
            break
    assert n >= 20


def test_files_that_may_not_grow(two_states: States) -> None:
    """A real limit of the system in place of a full disk: larger files fail, and keep what they had."""
    tree, old = two_states
    folder = tree.root / "generated"

    def before() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [sys.executable, "-m", "generator", "generate", "--root", str(tree.root)],
        cwd=trees.PROJECT,
        preexec_fn=before,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exits.ERRORS
    assert ": File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.rglob(".specops-*"))
    now = trees.contents(folder)
    assert tree("generate").code == exits.OK
    new = tree.generated()
    assert all(now[path] in (old.get(path), new.get(path)) for path in now if path != "MANIFEST")
    assert now != new


def test_a_tree_that_is_read_only(two_states: States) -> None:
    """A clear error, and nothing has changed; root may write anywhere, so a mere user tries it."""
    tree, _ = two_states
    before = tree.generated()
    for path in [tree.root / "generated", *(tree.root / "generated").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    as_a_mere_user(lambda: clear_error(tree("generate")), tree)
    assert tree.generated() == before
    for path in [tree.root / "generated", *(tree.root / "generated").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert tree("generate").code == exits.OK


def test_everybody_may_read_what_is_generated(tree: trees.Tree) -> None:
    """Whatever the user's own files are for."""
    before = os.umask(0o077)
    try:
        assert tree("generate").code == exits.OK
    finally:
        os.umask(before)
    files = [p for p in tree.path("generated").rglob("*") if p.is_file()]
    assert {p.stat().st_mode & 0o777 for p in files} == {0o644}


def as_a_mere_user(act: Callable[[], None], tree: trees.Tree) -> None:
    """Do this in a child process without root's rights, to which all of the tree belongs."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                for path in tree.root.parents[:4]:  # as far as pytest made them
                    path.chmod(path.stat().st_mode | 0o011)
                for path in [tree.root, *tree.root.rglob("*")]:
                    os.chown(path, 65534, 65534)
                os.seteuid(65534)
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_is_closed(two_states: States, mode: int) -> None:
    """One of many, in a tree that is open otherwise: nothing is written, and what cannot be read is not missing."""
    tree, _ = two_states
    before = tree.generated()
    closed = tree.path("generated/specops/plain")

    def act() -> None:
        closed.chmod(mode)
        for verb in ("generate", "check"):
            result = tree(verb)
            if (verb, mode) == ("check", 0o555):
                assert result.code == exits.DIFFERENCES
                continue
            clear_error(result)
            assert re.search(r"generated/specops/plain\S*: Permission denied", result.err)
        closed.chmod(0o755)
        assert tree.generated() == before

    as_a_mere_user(act, tree)


def test_helpers_that_cannot_be_listed(two_states: States) -> None:
    """They are not missing: one error, in place of one for each import of them."""
    tree, _ = two_states

    def act() -> None:
        closed = tree.path("templates/helpers")
        closed.chmod(0o000)
        result = tree("check")
        closed.chmod(0o755)
        clear_error(result)
        assert "templates/helpers: Permission denied" in result.err
        assert result.err.count("error") == 1

    as_a_mere_user(act, tree)


def test_files_of_a_folder_of_templates(tmp_path: Path) -> None:
    """In order, and no pipes or links to nowhere, as editors leave them."""
    names = [f"{folder}{number}.py" for folder in ("", "below/") for number in range(9, -1, -1)]
    (tmp_path / "below").mkdir()
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "link.py").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "below/pipe.py")
    assert files_below(tmp_path) == sorted(tmp_path / name for name in names)


def test_a_link_to_nowhere_is_no_empty_folder(tree: trees.Tree) -> None:
    shutil.rmtree(tree.path("specs/plain"))
    tree.path("specs/plain").symlink_to("/nowhere")
    result = tree("lint")
    assert result.code == exits.ERRORS
    assert "error[E005]: cannot read the folder `specs/plain`: No such file" in result.err


@pytest.mark.parametrize("mode", [0o000, 0o311])
def test_specs_that_cannot_be_listed(two_states: States, mode: int) -> None:
    """They are not gone: nothing of theirs is removed."""
    tree, _ = two_states
    before = tree.generated()

    def act() -> None:
        tree.path("specs/plain").chmod(mode)
        for verb in ("generate", "check", "lint"):
            result = tree(verb)
            assert result.code == exits.ERRORS
            said = "error[E005]: cannot read the folder `specs/plain`: Permission denied\n"
            assert result.err.startswith(said)
        tree.path("specs/plain").chmod(0o755)
        assert tree.generated() == before

    as_a_mere_user(act, tree)


@pytest.mark.parametrize("format", ["text", "json", "github"])
def test_names_of_files_that_are_no_text(tree: trees.Tree, format: str) -> None:
    """Any bytes may name a file: they are escaped, also where they would be a command of GitHub's."""
    command = [sys.executable, "-m", "generator"]
    options: dict[str, Any] = {
        "cwd": trees.PROJECT,
        "env": {**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    rest = ["--root", str(tree.root), "--format", format]
    names = [b"x\n::error title=a::b.yaml"]
    if sys.platform != "darwin":  # which takes UTF-8 alone
        names.append(b"\xff\xfe.yaml")
    tree("generate")
    for verb, folder in (("lint", "specs"), ("check", "generated")):
        for name in names:
            path = os.path.join(os.fsencode(tree.root), folder.encode(), name)
            with open(path, "wb"):
                pass
            done = subprocess.run([*command, verb, *rest], **options, check=False)
            os.unlink(path)
            assert done.returncode == (exits.ERRORS if verb == "lint" else exits.DIFFERENCES)
            assert b"Traceback" not in done.stdout
            assert b"\n::error title=a" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check"], exits.DIFFERENCES),
        (["diff", "directml/argmax", "plain/argmax"], exits.DIFFERENCES),
        (["lint", "argmx"], exits.ERRORS),
        (["lint", "argmx", "--format", "github"], exits.ERRORS),
        (["lint"], exits.OK),
    ],
)
def test_a_reader_that_has_seen_enough(
    two_states: States,
    arguments: list[str],
    code: int,
) -> None:
    """The exit code is that of a run whose reader sees all, and nothing is said of the pipe."""
    tree, _ = two_states
    tree.path("specs/plain/arg_max.yaml").rename(tree.path("specs/plain/argmax.yaml"))
    tree.edit("specs/plain/argmax.yaml", "operator: arg_max", "operator: argmax")
    command = [sys.executable, "-m", "generator", *arguments, "--root", str(tree.root)]
    ours, theirs = os.pipe()
    os.close(ours)
    for stderr in (subprocess.PIPE, theirs):
        with subprocess.Popen(command, cwd=trees.PROJECT, stdout=theirs, stderr=stderr) as process:
            said = process.stderr.read() if process.stderr else b""
            assert process.wait(timeout=120) == code
        assert b"roken" not in said and b"Traceback" not in said
    os.close(theirs)


def test_output_that_cannot_be_written(two_states: States, tmp_path: Path) -> None:
    """Nobody takes what was not written for good."""
    command = [sys.executable, "-m", "generator", "list", "--root", str(two_states[0].root)]
    with (tmp_path / "out").open("wb") as file:
        done = subprocess.run(
            command,
            cwd=trees.PROJECT,
            stdout=file,
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        )
    assert done.returncode == exits.ERRORS
    assert done.stderr == b"error: File too large: <stdout>\n"
