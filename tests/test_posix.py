"""Terminals, links and pipes as POSIX has them: conftest.py leaves these tests out elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import test_dxdispatch
from test_command import ARGMAX, environment, started
from test_dxdispatch import Case, with_values, writing


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


def test_a_pipe_does_not_hang(case: Case) -> None:
    os.mkfifo(case.folder / "pipe")
    assert "not a regular file" in case.refused(with_values({"sourcePath": "pipe"})).message
    (case.folder / "folder").mkdir()
    case.refused(with_values({"sourcePath": "folder"}))
    (case.output / "folder").mkdir()
    assert "is a folder" in case.refused(writing("folder"), output_folder=case.output).message
