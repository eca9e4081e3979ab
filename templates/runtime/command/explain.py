"""specops explain: all that is known of an operator, or of a rule."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap

from specops.catalogue import entries, find, near, related
from specops.command.checks import CHECKS
from specops.command.terminal import paint, say
from specops.errors import UsageError


def run(options: argparse.Namespace) -> int:
    """The verb."""
    try:
        found = find(options.subject, "operator and no rule")
    except UsageError as error:
        if not (_rule(options.subject) or _check(options.subject)):
            rules = (
                m for e in entries() for m in re.findall(r"^  ([a-z]\w+)(?: \(|$)", e.page(), re.M)
            )
            hint = error.hint or near(options.subject, [*rules, *CHECKS])
            raise UsageError(error.message, hint) from None
        return 0
    for i, entry in enumerate(found):
        if i:
            say("\n")
        for line in entry.page().rstrip("\n").split("\n"):
            say(paint(line, "bold", sys.stdout) if line[:1].strip() else line)
    longer = [f"{e.dialect}/{e.name}" for e in related(options.subject)]
    if longer:
        say()
        say(textwrap.fill(f"See also: {', '.join(longer)}", 96, subsequent_indent="  "))
    older = [
        e.id
        for e in entries()
        for n in found
        if not e.newest and n.newest and (e.dialect, e.name) == (n.dialect, n.name)
    ]
    if older:
        say(f"\nOlder versions: {', '.join(older)}")
    return 0


def _check(name: str) -> bool:
    """What a check of the package's own is about; False where there is none of this name."""
    if name not in CHECKS:
        return False
    say(paint(name, "bold", sys.stdout))
    say(f"      {CHECKS[name]}")
    say("  of all calls, descriptions or models; no page has a rule for it")
    return True


def _rule(name: str) -> bool:
    """What the pages say of a rule or decision of this name; False where there is none."""
    if not re.fullmatch(r"\w+", name):
        return False
    said: dict[tuple[str, ...], list[str]] = {}
    for entry in entries():
        lines = entry.page().split("\n")
        for i, line in enumerate(lines):
            if line == f"  {name}" or line.startswith(f"  {name} ("):
                rest = lines[i + 1 :]
                end = next((k for k, t in enumerate(rest) if not t.startswith(" " * 6)), len(rest))
                said.setdefault((line.strip(), *rest[:end]), []).append(entry.id)
    for (head, *texts), operators in said.items():
        say(paint(head, "bold", sys.stdout))
        for text in texts:
            say(text)
        say(
            textwrap.fill(
                f"of {', '.join(operators)}", 96, initial_indent="  ", subsequent_indent="  "
            )
        )
    return bool(said)
