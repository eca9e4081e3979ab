"""What a command line asks for: the specs, those of them that it names, the files that follow from them."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from generator import imports, lint, output, plan, structure
from generator.diagnostics import Report, counted, escaped, suggestion
from generator.exits import Stop, fail, show
from generator.lint import Linted
from generator.model import DIALECTS, SpecTree
from generator.names import host_class, stands_for
from generator.plan import File
from generator.render import Renderer

PROJECT = Path(__file__).resolve().parent.parent


def linted(options: argparse.Namespace) -> Linted:
    """The specs below --root, or the end of the run with all that is wrong with them."""
    specs, _, told = sound(options)
    _check_hosts(specs.tree, options, told)
    fail(told, options)
    return specs


def _check_hosts(tree: SpecTree, options: argparse.Namespace, report: Report) -> None:
    for kernel, entry in tree.vocabulary.kernels.items():
        host = f"runtime/lowering/{kernel}.py"
        path, name = templates_of(options) / host, host_class(kernel)
        arguments = {*entry.parameters, *entry.inputs, *entry.outputs}
        differ = _host(path, name, arguments) if path.is_file() else None
        if not path.is_file():
            message = f"there is no `templates/{host}`"
        elif differ is None:
            message = f"templates/{host} has no class `{name}`"
        elif differ:
            others = ", ".join(f"`{argument}`" for argument in sorted(differ))
            message = f"`{name}` in templates/{host} takes other arguments: {others}"
        else:
            continue
        report.add(
            "E403",
            message,
            tree.document.key_span(("kernels", kernel)),
            "the host's side of this kernel",
            help="its class takes the parameters, inputs and outputs by these names"
            if path.is_file()
            else f"it has the class `{name}`: CONTRIBUTING.md tells of what",
        )


def _host(path: Path, name: str, arguments: Collection[str]) -> set[str] | None:
    """The arguments that a class does not take by name, or needs beyond them; None where there is no such class.

    A class that is not made by one plain statement, or whose arguments are not, is not asked for them. What cannot be
    read is told when it is rendered.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return set()
    made = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if len(made) != 1:
        return set() if any(_binds(node, name) for node in ast.walk(tree)) else None
    init = [node for node in ast.walk(made[0]) if getattr(node, "name", None) == "__init__"]
    if len(init) != 1 or not isinstance(init[0], ast.FunctionDef) or init[0].decorator_list:
        return set()
    taken = init[0].args
    if len(taken.posonlyargs + taken.args) != 1 or taken.vararg or taken.kwarg:
        return set()
    known = {a.arg for a in taken.kwonlyargs}
    pairs = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    needed = {a.arg for a, default in pairs if default is None}
    return {*arguments} - known | needed - {*arguments}


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.ClassDef(name=bound) | ast.FunctionDef(name=bound):
            return bound == name
        case ast.Name(id=bound, ctx=ast.Store()):
            return bound == name
        case ast.alias(name=bound, asname=other):
            return (other or bound) == name
    return False


class Sound(NamedTuple):
    """The specs without errors, the files that are left out for theirs, and all these errors with all files' lines."""

    specs: Linted
    left_out: list[str]
    told: Report


def sound(options: argparse.Namespace, names: list[str] | None = None) -> Sound:
    """The specs below --root that have no errors.

    Errors of one spec can hide those of others, so these are asked again without it.

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
            report.stopped |= left_out & {structure.VOCABULARY}
            show(_joined(told if names is None else told_of(names, told), report), options.format)
            raise Stop
        left_out |= found
        told = _joined(told, report)


def _joined(*reports: Report) -> Report:
    """All that these tell, once."""
    told = list(dict.fromkeys(d for r in reports for d in r.diagnostics))
    lines = {file: text for r in reports for file, text in r.lines.items()}
    return Report(told, lines, len(told), {file for r in reports for file in r.stopped})


def told_of(names: list[str], report: Report) -> Report:
    """What is told of the specs that these names mean."""

    def meant(file: str) -> bool:
        return any(_means(n, structure.operator_id(file)) for n in names)

    told = [d for d in report.diagnostics if d.span and meant(d.span.file)]
    return Report(told, report.lines, len(told), set(filter(meant, report.stopped)))


def _means(name: str, id: str) -> bool:
    """Whether a name on the command line means this operator, also as one of its dialect."""
    return stands_for(name, id) or (name in DIALECTS and id.startswith(f"{name}/"))


def readable(options: argparse.Namespace, names: list[str]) -> Linted:
    """The specs without errors, for verbs that only tell of them; a warning names each of the others.

    Where one of the `names` means only specs with errors, or none is left, the run ends with these errors.
    """
    specs, left_out, told = sound(options, names)
    ids = [o.id for o in specs.operators]
    meant = [n for n in names if not any(_means(n, i) for i in ids)]
    fail(told_of(meant, told) if ids else told, options)
    for file in left_out:
        warning = f"warning: {escaped(file)} has errors and is left out"
        print(f"{warning}; `python -m generator lint` shows them", file=sys.stderr)
    return specs


def linted_by_name(options: argparse.Namespace, generated: Collection[str] = ()) -> Linted:
    """The specs without errors, or the end of the run with errors of those that are named; others are counted.

    So it ends with errors of specs of which there are `generated` files: others that are written would be without them.
    """
    specs, left_out, told = sound(options, options.operators)
    ids = map(structure.operator_id, left_out)
    needed = [id for id in ids if f"specops/{id}.py" in generated]
    report = told_of([*options.operators, *needed], told)
    _check_hosts(specs.tree, options, report)
    fail(report, options)
    if left_out:
        others = f"{counted(len(left_out), 'other file')} below specs/ with errors"
        print(f"warning: {others}; `python -m generator lint` shows them", file=sys.stderr)
    return specs


def chosen(specs: Linted, options: argparse.Namespace) -> list[str]:
    """The ids of the operators that are named on the command line; all where none is."""
    ids = [o.id for o in specs.operators]
    return named(ids, options.operators, options) if options.operators else ids


def named(ids: list[str], names: list[str], options: argparse.Namespace) -> list[str]:
    """Those of the ids that names stand for: without its dialect or version, or as a dialect, for all of them."""
    out = []
    report = Report()
    for name in names:
        found = [i for i in ids if _means(name, i)]
        if not found:
            report.add(
                "E006",
                f"there is no operator `{name}`",
                help=suggested(name, [*ids, *(i.split("/")[1] for i in ids)], len(ids)),
            )
        out += found
    fail(report, options)
    return out


def suggested(name: str, known: Iterable[str], operators: int) -> str:
    """What may be meant; where no name is near, what shows all operators, of which there are so many."""
    help = suggestion(name, known)
    if help.startswith("did you mean") or name.rpartition("/")[0] not in ("", *DIALECTS):
        return help
    return f"`python -m generator list` shows {counted(operators, 'operator')}"


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
    renderer = Renderer(templates_of(options), report)
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
        package, _, name = module.rpartition(".")
        help = f"it is made of templates/kernels/{name}.py" if package == "specops.kernels" else ""
        report.add("E403", f"no generated file is the module `{module}`", place, help=help)
    fail(report, options)
    return out


def templates_of(options: argparse.Namespace) -> Path:
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
    whole = not options.operators
    if whole:
        specs = linted(options)
        state = output.read(options.root / "generated")
    else:
        state = output.read(options.root / "generated")
        specs = linted_by_name(options, state.texts)
    ids = set(chosen(specs, options))
    everything = rendered(specs, options)

    def belongs(file: File) -> bool:
        # Files of all operators import those of each: none of these may be missing.
        missing = file.path not in state.texts
        return whole or missing or not file.operators or bool(ids & set(file.operators))

    files = {f.path: f for f in everything if belongs(f)}
    data = {f.path: data for f, data in everything.items() if f.path in files}
    return Wanted(data, files, whole, specs, state)
