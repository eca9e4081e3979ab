"""The command: python -m generator VERB [operator ...].

Exit codes: 0 fine, 1 differences, 2 errors in specs or templates, 3 a bug of the generator.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from generator import compare, explain, imports, lint, output, plan, skeleton, structure
from generator.diagnostics import Report, Span, annotation, escaped, suggestion
from generator.lint import Linted
from generator.model import DIALECTS, SpecTree
from generator.names import stands_for
from generator.output import Difference
from generator.plan import File
from generator.render import Renderer

PROJECT = Path(__file__).resolve().parent.parent

OK, DIFFERENCES, ERRORS, BUG = 0, 1, 2, 3


class Stop(Exception):
    """Ends a verb with an exit code, after its report was shown."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


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
        code: int = options.run(options)
        return code
    except Stop as stop:
        return stop.code
    except OSError as error:
        show(_of_system(error, options.root), options.format)
        return ERRORS
    except KeyboardInterrupt:
        print("interrupted; every file is whole, run the command again", file=sys.stderr)
        return ERRORS
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
        epilog="Exit codes: 0 fine, 1 differences, 2 errors in specs or templates, 3 a bug of the generator.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")

    def verb(name: str, run: Any, help: str, operators: bool = True) -> argparse.ArgumentParser:
        description = help[0].upper() + help[1:] + "."
        sub = verbs.add_parser(name, parents=[everywhere], help=help, description=description)
        if operators:
            sub.add_argument(
                "operators",
                nargs="*",
                metavar="operator",
                type=structure.operator_name,
                help="e.g. argmax, directml/argmax or specs/directml/argmax.yaml (default: all)",
            )
        sub.set_defaults(run=run)
        return sub

    generate = verb(
        "generate", _generate, "write what changed to generated/, and remove what no spec asks for"
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
        _check,
        "compare generated/ with the specs, and fail on any difference; write nothing",
    )
    verb("lint", _lint, "check the specs alone, including each spec's self-test")
    verb("list", _list, "list the operators with their counts of constraints, examples and tests")
    explain = verb(
        "explain",
        _explain,
        "show what is known of an operator, a constraint, a word of the vocabulary, an error code or a file",
        operators=False,
    )
    explain.add_argument(
        "subject",
        help="e.g. argmax, directml/argmax, directml, axes_in_range, kernels/reduce, kernels, FLOAT16, E222, E2, a "
        "file below specs/ or generated/, or a template that makes such files",
    )
    new = verb("new", _new, "create a draft spec from an existing one, with TODOs", operators=False)
    name = structure.operator_name
    help = "dialect and name of the new operator, e.g. directml/argmin"
    new.add_argument("name", type=name, help=help)
    help = "operator whose spec to copy"
    new.add_argument("--like", type=name, required=True, metavar="OPERATOR", help=help)
    diff = verb(
        "diff",
        _diff,
        "compare two operators by meaning; exit code 1 if they differ",
        operators=False,
    )
    diff.add_argument("one", metavar="A", type=name, help="an operator, e.g. directml/argmax")
    diff.add_argument("other", metavar="B", type=name, help="the operator to compare it with")
    return parser


# --- shared steps ---


def show(report: Report, format: str) -> None:
    """Errors on standard error for people, on standard output for programs."""
    if format == "text":
        print(report.text(), file=sys.stderr)
    else:
        print(report.json() if format == "json" else report.github())


def fail(report: Report, options: argparse.Namespace) -> None:
    if report:
        show(report, options.format)
        raise Stop(ERRORS)


def linted(options: argparse.Namespace) -> Linted:
    """The specs below --root, or the end of the run with all that is wrong with them."""
    specs, _, told = sound(options)
    _check_hosts(specs.tree, options, told)
    fail(told, options)
    return specs


def _check_hosts(tree: SpecTree, options: argparse.Namespace, report: Report) -> None:
    for kernel in tree.vocabulary.kernels:
        host = f"runtime/lowering/{kernel}.py"
        if not (_templates(options) / host).is_file():
            report.add(
                "E403",
                f"there is no `templates/{host}`",
                tree.document.key_span(("kernels", kernel)),
                "the host's side of this kernel",
            )


class Sound(NamedTuple):
    """The specs without errors, the files that are left out for theirs, and all these errors with all files' lines."""

    specs: Linted
    left_out: list[str]
    told: Report


def sound(options: argparse.Namespace, names: list[str] | None = None) -> Sound:
    """The specs below --root that have no errors: what the errors of one hide of others is asked without it.

    What does not go away with a spec, as an error of the vocabulary, ends the run, with errors of those of the `names`,
    of all specs where these are None.
    """
    left_out: set[str] = set()
    told = Report()
    while True:
        report = Report()
        tree = structure.load_tree(options.root, report, left_out)
        specs = lint.lint(tree, report) if tree is not None else None
        if specs is not None and not report:
            return Sound(specs, sorted(left_out), _joined(told, report))
        found = {d.span.file for d in report.diagnostics if d.span is not None} - left_out
        if not found or (names is None and report.full):
            show(_joined(told if names is None else _of(names, told), report), options.format)
            if structure.VOCABULARY in left_out and options.format == "text":
                left = "further checks are left out until it has no errors"
                print(f"note: {structure.VOCABULARY}: {left}", file=sys.stderr)
            raise Stop(ERRORS)
        left_out |= found
        told = _joined(told, report)


def _joined(*reports: Report) -> Report:
    """All that these tell, once."""
    told = list(dict.fromkeys(d for r in reports for d in r.diagnostics))
    lines = {file: text for r in reports for file, text in r.lines.items()}
    return Report(told, lines, len(told))


def _of(names: list[str], report: Report) -> Report:
    """What is told of the specs that these names mean."""
    told = [
        d
        for d in report.diagnostics
        if d.span and any(stands_for(n, structure.operator_id(d.span.file)) for n in names)
    ]
    return Report(told, report.lines, len(told))


def readable(options: argparse.Namespace, names: list[str]) -> Linted:
    """The specs without errors, for verbs that only tell of them; a warning names each of the others.

    Where one of the `names` means only specs with errors, or none is left, the run ends with these errors.
    """
    specs, left_out, told = sound(options, names)
    ids = [o.id for o in specs.operators]
    meant = [n for n in names if not any(stands_for(n, i) for i in ids)]
    fail(_of(meant, told) if ids else told, options)
    for file in left_out:
        warning = f"warning: {escaped(file)} has errors and is left out"
        print(f"{warning}; `python -m generator lint` shows them", file=sys.stderr)
    return specs


def linted_by_name(options: argparse.Namespace) -> Linted:
    """The specs without errors, or the end of the run with errors of those that are named; others are counted."""
    specs, left_out, told = sound(options, options.operators)
    report = _of(options.operators, told)
    _check_hosts(specs.tree, options, report)
    fail(report, options)
    if left_out:
        others = f"{_count(len(left_out), 'other file')} below specs/ with errors"
        print(f"warning: {others}; `python -m generator lint` shows them", file=sys.stderr)
    return specs


def chosen(specs: Linted, options: argparse.Namespace) -> list[str]:
    """The ids of the operators that are named on the command line; all where none is."""
    ids = [o.id for o in specs.operators]
    return named(ids, options.operators, options) if options.operators else ids


def named(ids: list[str], names: list[str], options: argparse.Namespace) -> list[str]:
    """Those of the ids that names stand for: without its dialect, or its version, for all of them."""
    out = []
    report = Report()
    for name in names:
        found = [i for i in ids if stands_for(name, i)]
        if not found:
            report.add(
                "E006",
                f"there is no operator `{name}`",
                help=_suggestion(name, [*ids, *(i.split("/")[1] for i in ids)], len(ids)),
            )
        out += found
    fail(report, options)
    return out


def _suggestion(name: str, known: Iterable[str], operators: int) -> str:
    """What may be meant; where no name is near, what shows all operators, of which there are so many."""
    help = suggestion(name, known)
    if help.startswith("did you mean") or name.rpartition("/")[0] not in ("", *DIALECTS):
        return help
    return f"`python -m generator list` shows {_count(operators, 'operator')}"


def clashes(files: Sequence[File], specs: Linted, options: argparse.Namespace) -> Report:
    """Specs whose modules would take the place of others."""
    report = Report()
    documents = {o.source.file: o.source.document for o in specs.operators}
    for file, path in plan.clashes(files):
        source = file.sources[0]
        line = documents[source].key_span(("operator",)).line
        report.add(
            "E105",
            f"generated/{path} has another meaning",
            report.line(options.root, source, line),
            "whose module would be there",
            help=f"name {source} otherwise",
        )
    return report


def rendered(specs: Linted, options: argparse.Namespace) -> dict[File, bytes]:
    """Every file of generated/ but the manifest."""
    report = Report()
    renderer = Renderer(_templates(options), report)
    fail(report, options)
    out = {}
    files = plan.files(specs, renderer.templates)
    fail(clashes(files, specs, options), options)
    texts = {}
    for file in files:
        text = renderer.render(file, report)
        if text is not None:
            texts[file.path] = text
            out[file] = text.encode()
    fail(report, options)
    for module, file, line in imports.missing(files, texts):
        place = report.line(renderer.root, file.origin, line)
        report.add("E403", f"no generated file is the module `{module}`", place)
    fail(report, options)
    return out


def _templates(options: argparse.Namespace) -> Path:
    """The tree's own templates where it has some, else the project's."""
    own: Path = options.root / "templates"
    return own if own.is_dir() else PROJECT / "templates"


class Wanted(NamedTuple):
    """The chosen files with their bytes and plans, whether these are all there are, and what is on disk."""

    data: dict[str, bytes]
    files: dict[str, File]
    whole: bool
    specs: Linted
    state: output.State


def wanted(options: argparse.Namespace) -> Wanted:
    specs = linted(options)
    ids = set(chosen(specs, options))
    everything = rendered(specs, options)
    state = output.read(options.root / "generated")
    whole = not options.operators

    def belongs(file: File) -> bool:
        # Files of all operators import those of each: none of these may be missing.
        missing = file.path not in state.texts
        return whole or missing or not file.operators or bool(ids & set(file.operators))

    files = {f.path: f for f in everything if belongs(f)}
    data = {f.path: data for f, data in everything.items() if f.path in files}
    return Wanted(data, files, whole, specs, state)


# --- verbs ---


def _generate(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    data, files, whole, specs, state = wanted(options)
    folder = options.root / "generated"
    differences = output.compare(state, data, whole)
    if not options.force:
        report = Report()
        for difference in differences:
            if difference.by_hand:
                verb = "removes" if difference.removes else "overwrites"
                report.add(
                    "E301",
                    _said(difference),
                    Span(f"generated/{difference.path}"),
                    help=f"{_kept(difference, files)}; `--force` {verb} it",
                )
        fail(report, options)
    output.check(folder, differences)
    lost = output.compare_manifest(folder, data) if whole and not differences else []
    if options.dry_run:
        for difference in [*differences, *lost]:
            print(f"{difference.kind}: generated/{difference.path}")
    else:
        output.write(folder, state, data, differences)
    counts = {kind: sum(d.kind in kinds for d in differences) for kind, kinds in _COUNTED.items()}
    summary = [f"{n} {kind}" for kind, n in counts.items() if n]
    unchanged = len(data) - sum(n for kind, n in counts.items() if kind != "removed")
    would = "would be: " if options.dry_run else ""
    seconds = time.perf_counter() - start
    restored = ["the manifest restored"] if lost else []
    counted = ", ".join([*summary, f"{unchanged} unchanged", *restored])
    sizes = f"{_count(len(specs.operators), 'operator')}, {_count(len(data), 'file')}"
    print(f"{sizes}: {would}{counted} ({seconds:.1f} s)")
    return OK


_COUNTED = {"updated": ("stale", "edited"), "new": ("missing",), "removed": ("orphan", "foreign")}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _check(options: argparse.Namespace) -> int:
    data, files, whole, _, state = wanted(options)
    folder = options.root / "generated"
    differences = output.compare(state, data, whole)
    if whole and not differences:
        differences = output.compare_manifest(folder, data)
    if not differences:
        print(f"{_count(len(data), 'file')} up to date" if options.format != "json" else "[]")
        return OK
    records = [_difference(d, files) for d in differences]
    if options.format == "json":
        print(json.dumps(records, indent=2))
    elif options.format == "github":
        for r in records:
            print(annotation(f"{r['message']}; {r['help']}", file=r["file"], title=r["kind"]))
    else:
        for d, r in zip(differences, records, strict=True):
            file = files.get(d.path)
            source = (file.sources or (file.origin,)) if file else ("no spec",)
            print(
                f"error: {escaped(r['message'])}\n{d.diff(', '.join(source))}\n  = help: {r['help']}\n"
            )
    return DIFFERENCES


_SAID = {
    "stale": "is out of date",
    "missing": "is missing",
    "orphan": "belongs to no spec",
    "foreign": "belongs to no spec and is not in generated/MANIFEST",
    "edited": "was edited by hand",
}


def _said(difference: Difference) -> str:
    said = _SAID[difference.kind]
    if difference.kind == "orphan" and difference.by_hand:
        said += " and was edited by hand"
    return f"generated/{difference.path} {said}"


def _kept(difference: Difference, files: Mapping[str, File]) -> str:
    """What to do first with what somebody did by hand."""
    file = files.get(difference.path)
    return f"move the change to {file.origin}" if file else "move what you need out of generated/"


def _difference(difference: Difference, files: Mapping[str, File]) -> dict[str, str]:
    help = "run `python -m generator generate` and commit the result"
    if difference.by_hand:
        help = f"{_kept(difference, files)}, then run `python -m generator generate --force`"
    return {
        "kind": difference.kind,
        "file": f"generated/{difference.path}",
        "message": _said(difference),
        "help": help,
    }


def _lint(options: argparse.Namespace) -> int:
    specs = linted_by_name(options) if options.operators else linted(options)
    clashing = clashes(plan.files(specs, _templates(options)), specs, options)
    fail(_of(options.operators, clashing) if options.operators else clashing, options)
    ids = chosen(specs, options)
    operators = [o for o in specs.operators if o.id in ids]
    constraints = sum(len(o.rules) for o in operators)
    examples = sum(len(o.spec.examples) for o in operators)
    if options.format == "json":
        print("[]")
    else:
        counts = f"{_count(constraints, 'constraint')}, {_count(examples, 'example')}"
        print(f"{_count(len(operators), 'spec')} ok ({counts})")
    return OK


def _list(options: argparse.Namespace) -> int:
    specs = readable(options, options.operators)
    ids = chosen(specs, options)
    rows = explain.rows(specs, [o for o in specs.operators if o.id in ids])
    print(json.dumps(rows, indent=2) if options.format == "json" else explain.table(rows))
    return OK


def _explain(options: argparse.Namespace) -> int:
    subject = options.subject.replace("\\", "/").removeprefix("./")
    text = explain.code(subject)
    if text is None:
        asked = structure.operator_name(subject)
        name = structure.operator_id(subject).removeprefix("generated/specops/")
        specs = readable(options, [asked, name])
        text = _known(asked, specs, options)
    print(text)
    return OK


def _known(subject: str, specs: Linted, options: argparse.Namespace) -> str:
    """What is known of a subject, or the end of the run."""
    text = explain.operators(specs, subject) or explain.constraint(specs, subject)
    text = text or explain.kernel(specs, subject) or explain.word(specs, subject)
    if text is not None:
        return text
    templates = _templates(options)
    files = plan.files(specs, templates)
    paths = {f"generated/{f.path}": f for f in files}
    if subject in paths:
        return explain.file(paths[subject], options.root)
    text = explain.origin(files, subject) or explain.helper(files, templates, subject)
    if text is None:
        report = Report()
        helpers = sorted(f"templates/helpers/{p.name}" for p in templates.glob("helpers/*.py"))
        known = [*explain.subjects(specs, subject), *paths, *(f.origin for f in files), *helpers]
        help = explain.near_codes(subject) or _suggestion(subject, known, len(specs.operators))
        report.add("E006", f"nothing is known of `{subject}`", help=help)
        fail(report, options)
    assert text is not None
    return text


def _new(options: argparse.Namespace) -> int:
    # Any spec will do to begin from, and others may still be unfinished: so nothing is linted here.
    ids = [f"{d}/{p.stem}" for d in DIALECTS for p in (options.root / "specs" / d).glob("*.yaml")]
    like = _one(sorted(ids), options.like, options)
    report = Report()
    skeleton.write(options.root, options.name, like, report)
    fail(report, options)
    path = f"specs/{options.name}.yaml"
    print(f"{path} begun from {like}: fill in each TODO, then run `python -m generator lint`")
    if warning := skeleton.newer_than_all(options.root, options.name):
        print(f"warning: {warning}", file=sys.stderr)
    return OK


def _diff(options: argparse.Namespace) -> int:
    operators = {o.id: o for o in readable(options, [options.one, options.other]).operators}
    one, other = (_one(list(operators), name, options) for name in (options.one, options.other))
    lines = compare.operators(operators[one], operators[other])
    print("\n".join(lines) if lines else "no difference in meaning")
    return DIFFERENCES if lines else OK


def _one(ids: list[str], name: str, options: argparse.Namespace) -> str:
    """The one operator of a name; a name that several have needs its dialect and version."""
    found = named(ids, [name], options)
    if len(found) > 1:
        report = Report()
        report.add(
            "E006",
            f"`{name}` stands for several operators",
            help=f"say which: {' or '.join(found)}",
        )
        fail(report, options)
    return found[0]
