"""The command: python -m generator VERB [operator ...].

Exit codes: 0 fine, 1 differences, 2 errors in specs or templates, 3 a bug of the generator, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from generator import structure, verbs
from generator.diagnostics import Report, Span
from generator.exits import BUG, ERRORS, INTERRUPTED, OK, Stop, fail, show
from generator.selection import PROJECT


def main(arguments: list[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be any bytes
    parser = _parser()
    options = parser.parse_args(arguments, argparse.Namespace(root=PROJECT, format="text"))
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = _run(options, parser)
    told = [_tell(sys.stdout, out.getvalue()), _tell(sys.stderr, errors.getvalue())]
    return code if all(told) else ERRORS


def _tell(stream: TextIO | None, text: str) -> bool:
    """Whether the text reached whoever reads. One who has seen enough counts: the exit code tells the rest."""
    if stream is None:  # closed by the caller
        return True
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # Else Python tries once more at its end, and fails.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        told_by_windows = os.name == "nt" and error.errno == errno.EINVAL
        if not (told_by_windows or isinstance(error, BrokenPipeError)):
            print(f"error: {error.strerror}: {stream.name}", file=sys.stderr)
            return False
    return True


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run the verb; its exit code."""
    if options.verb is None:
        parser.print_help()
        return OK
    try:
        _check_root(options)
        _read_names(options)
        code: int = options.run(options)
        return code
    except Stop:
        return ERRORS
    except OSError as error:
        show(_of_system(error, options.root), options.format)
        return ERRORS
    except KeyboardInterrupt:
        print("interrupted; every file is whole, run the command again", file=sys.stderr)
        return INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("error: this is a bug of the generator, not of your spec", file=sys.stderr)
        return BUG


def _check_root(options: argparse.Namespace) -> None:
    report = Report()
    if not (options.root / "specs").is_dir():
        help = "`--root` names the folder that holds specs/"
        report.add("E005", f"there is no folder `{options.root / 'specs'}`", help=help)
    fail(report, options)


def _read_names(options: argparse.Namespace) -> None:
    """What names operators and files, also by paths from the current folder, is read as names below --root."""
    given = vars(options)
    for key in given.keys() & {"name", "like", "one", "other"}:
        given[key] = structure.operator_name(_below(options.root, given[key]))
    if "operators" in given:
        names = [_below(options.root, name) for name in options.operators]
        options.operators = [structure.operator_name(name) for name in names]
    if "subject" in given:
        options.subject = _below(options.root, options.subject)


_FOLDERS = ("specs", "templates", "generator", "generated")  # of a tree


def _below(root: Path, text: str) -> str:
    """The path from the root where a text is a path of what is there; else the text itself."""
    path = Path(text)
    written_as_path = path.suffix or ".." in path.parts
    try:
        if not (path.is_absolute() or (written_as_path and path.exists())):
            return text
    except OSError:  # no name of a file
        return text
    for real in (os.path.abspath, os.path.realpath):
        at, folder = Path(real(path)), Path(real(root))
        if at.is_relative_to(folder):
            return at.relative_to(folder).as_posix()
    # What is elsewhere is no file of this tree; names of its own begin with a folder, from wherever they are given.
    return text if path.parts[0] in _FOLDERS else os.path.abspath(path)


def _of_system(error: OSError, root: Path) -> Report:
    """What the system said, as a diagnostic."""
    report = Report()
    found = error.filename2 or error.filename  # of two, what a file was to replace
    name = os.fsdecode(found) if isinstance(found, str | bytes | Path) else ""
    path = Path(name)
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else name
    said = error.strerror or str(error)
    message = f"{file}: {said}" if name else said
    report.add(
        "E302",
        message,
        Span(file) if name else None,
        help="; ".join(getattr(error, "__notes__", ())),
    )
    return report


def _parser() -> argparse.ArgumentParser:
    # Before the verb or behind it: without defaults here, a verb leaves what was given before it.
    everywhere = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    everywhere.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="folder that holds specs/ (default: this project)",
    )
    everywhere.add_argument(
        "--format",
        choices=("text", "json", "github"),
        help="format of errors, and of all that check, lint and list print: text for people, json for programs, "
        "github for annotations on GitHub (default: text); other verbs print text where there are no errors",
    )
    parser = argparse.ArgumentParser(
        parents=[everywhere],
        prog="python -m generator",
        description="Generate the package in generated/ from the specs.",
        epilog="Exit codes: 0 fine, 1 differences, 2 errors in specs or templates, 3 a bug of the generator,"
        " 130 interrupted.",
    )
    parsers = parser.add_subparsers(dest="verb", metavar="VERB")

    def verb(name: str, run: Any, help: str, operators: bool = True) -> argparse.ArgumentParser:
        description = help[0].upper() + help[1:] + "."
        sub = parsers.add_parser(name, parents=[everywhere], help=help, description=description)
        if operators:
            sub.add_argument(
                "operators",
                nargs="*",
                metavar="operator",
                help="e.g. argmax, directml/argmax, directml or specs/directml/argmax.yaml (default: all)",
            )
        sub.set_defaults(run=run)
        return sub

    generate = verb(
        "generate",
        verbs.generate,
        "write what changed to generated/, and remove what no spec asks for",
    )
    generate.add_argument(
        "--dry-run", action="store_true", help="show what would change; write nothing"
    )
    generate.add_argument(
        "--force",
        action="store_true",
        help="overwrite or remove files that were edited by hand, or that the manifest does not list",
    )
    verb(
        "check",
        verbs.check,
        "compare generated/ with the specs, and fail on any difference; write nothing",
    )
    verb("lint", verbs.lint, "check the specs alone, including each spec's self-test")
    verb(
        "list",
        verbs.list_operators,
        "list the operators with their counts of constraints, examples and tests",
    )
    explain = verb(
        "explain",
        verbs.explain_subject,
        "show what is known of an operator, a constraint, a word of the vocabulary, an error code or a file",
        operators=False,
    )
    explain.add_argument(
        "subject",
        help="e.g. argmax, directml/argmax, directml, axes_in_range, kernels/reduce, kernels, FLOAT16, E222, E2, a "
        "file below specs/ or generated/, or a template that makes such files",
    )
    new = verb(
        "new", verbs.new, "create a draft spec from an existing one, with TODOs", operators=False
    )
    help = "dialect and name of the new operator, e.g. directml/argmin"
    new.add_argument("name", help=help)
    help = "operator whose spec to copy"
    new.add_argument("--like", required=True, metavar="OPERATOR", help=help)
    diff = verb(
        "diff",
        verbs.diff,
        "compare two operators by meaning; exit code 1 if they differ",
        operators=False,
    )
    diff.add_argument("one", metavar="A", help="an operator, e.g. directml/argmax")
    diff.add_argument("other", metavar="B", help="the operator to compare it with")
    return parser
