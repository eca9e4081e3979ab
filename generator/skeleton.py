"""`new`: a spec to begin from. What surely differs becomes a TODO, which `lint` refuses."""

from __future__ import annotations

import re
from pathlib import Path

from generator.lint import TODO
from generator.model import DIALECTS


class Refused(Exception):
    """Why no skeleton was written."""


# Keys whose text is about one operator alone.
_OWN = ("operator", "summary", "title", "address", "revision")


def write(root: Path, name: str, like: str) -> str:
    """Write the skeleton, begun from the operator `like`; its path below specs/. Never over a file that is there."""
    dialect = like.split("/", maxsplit=1)[0]
    match = re.fullmatch(r"([a-z]+)/([a-z][a-z0-9_]{0,63})", name)
    if match is None or match[1] not in DIALECTS:
        raise Refused(f"`{name}` is not a dialect and a name; write it as {dialect}/argmin"
                      f" (dialects: {', '.join(DIALECTS)})")  # fmt: skip
    if match[1] != dialect:
        raise Refused(f"`{name}` cannot begin from {like}: the dialects say different things")
    target = root / "specs" / f"{name}.yaml"
    try:
        lines = (root / "specs" / f"{like}.yaml").read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise Refused(f"specs/{like}.yaml is not UTF-8") from None
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(_blank(lines)))
    except FileExistsError:
        raise Refused(f"specs/{name}.yaml is already there") from None
    return f"{name}.yaml"


def _blank(lines: list[str]) -> list[str]:
    """The spec's lines with a TODO for the operator's own words and for the results of its examples."""
    out = []
    section, expecting = "", False
    for line in lines:
        if line and not line[0].isspace() and ":" in line:
            section = line.split(":")[0]
        indent, text = line[: len(line) - len(line.lstrip())], line.strip()
        key, _, value = text.removeprefix("- ").partition(":")
        expecting = key == "expect" or (expecting and not text.startswith("- "))
        if key in _OWN and section in ("operator", "summary", "page"):
            filled = {"operator": f"{TODO}_{_name(value)}", "address": f"https://{TODO}"}
            out.append(f"{indent}{key}: {filled.get(key, TODO)}")
        elif section == "examples" and expecting:
            out.append(re.sub(r"data: [^{}]*", f"data: {TODO}", line))
        else:
            out.append(line)
    return out


def _name(value: str) -> str:
    return re.sub(r"\W", "_", value.strip())
