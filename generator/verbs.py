"""The verbs of the command, each a function of its options that returns an exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping

from generator import compare, explain, output, plan, skeleton, structure
from generator.diagnostics import Report, Span, annotation, counted, escaped
from generator.exits import DIFFERENCES, OK, fail
from generator.lint import Linted
from generator.model import DIALECTS
from generator.output import Difference
from generator.paste import helper_paths
from generator.plan import File
from generator.selection import (
    chosen,
    clashes,
    linted,
    linted_by_name,
    named,
    readable,
    suggested,
    templates_of,
    told_of,
    wanted,
)


def generate(options: argparse.Namespace) -> int:
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
    counts = {kind: sum(d.kind in kinds for d in differences) for kind, kinds in _KINDS.items()}
    summary = [f"{n} {kind}" for kind, n in counts.items() if n]
    unchanged = len(data) - sum(n for kind, n in counts.items() if kind != "removed")
    would = "would be: " if options.dry_run else ""
    seconds = time.perf_counter() - start
    restored = ["the manifest restored"] if lost else []
    changes = ", ".join([*summary, f"{unchanged} unchanged", *restored])
    sizes = f"{counted(len(specs.operators), 'operator')}, {counted(len(data), 'file')}"
    print(f"{sizes}: {would}{changes} ({seconds:.1f} s)")
    return OK


_KINDS = {"updated": ("stale", "edited"), "new": ("missing",), "removed": ("orphan", "foreign")}


def check(options: argparse.Namespace) -> int:
    data, files, whole, _, state = wanted(options)
    folder = options.root / "generated"
    differences = output.compare(state, data, whole)
    if whole and not differences:
        differences = output.compare_manifest(folder, data)
    if not differences:
        print(f"{counted(len(data), 'file')} up to date" if options.format != "json" else "[]")
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


def lint(options: argparse.Namespace) -> int:
    specs = linted_by_name(options) if options.operators else linted(options)
    clashing = clashes(plan.files(specs, templates_of(options)), specs, options)
    fail(told_of(options.operators, clashing) if options.operators else clashing, options)
    ids = chosen(specs, options)
    operators = [o for o in specs.operators if o.id in ids]
    constraints = sum(len(o.rules) for o in operators)
    examples = sum(len(o.spec.examples) for o in operators)
    if options.format == "json":
        print("[]")
    else:
        counts = f"{counted(constraints, 'constraint')}, {counted(examples, 'example')}"
        print(f"{counted(len(operators), 'spec')} ok ({counts})")
    return OK


def list_operators(options: argparse.Namespace) -> int:
    specs = readable(options, options.operators)
    ids = chosen(specs, options)
    rows = explain.rows(specs, [o for o in specs.operators if o.id in ids])
    print(json.dumps(rows, indent=2) if options.format == "json" else explain.table(rows))
    return OK


def explain_subject(options: argparse.Namespace) -> int:
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
    templates = templates_of(options)
    files = plan.files(specs, templates)
    paths = {f"generated/{f.path}": f for f in files}
    if subject in paths:
        return explain.file(paths[subject], options.root)
    text = explain.origin(files, subject) or explain.helper(files, templates, subject)
    if text is None:
        report = Report()
        origins = [*(f.origin for f in files), *helper_paths(templates)]
        known = [*explain.subjects(specs, subject), *paths, *origins]
        help = explain.near_codes(subject) or suggested(subject, known, len(specs.operators))
        report.add("E006", f"nothing is known of `{subject}`", help=help)
        fail(report, options)
    assert text is not None
    return text


def new(options: argparse.Namespace) -> int:
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


def diff(options: argparse.Namespace) -> int:
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
