"""What the command `specops` writes to a terminal. Pseudo-terminals are POSIX's: conftest.py leaves this out elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_command import ARGMAX, environment, started


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
