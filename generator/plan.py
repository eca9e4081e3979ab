"""From linted specs to the list of files to generate, each with the making of its template's values.

Which files there are is decided here, what they say in values.py and its like; a template only lays out what it is
given. Values are made when a file is rendered: to lint takes the paths alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from generator import cases, catalogue, decided, page, schema, values
from generator.lint import Linted
from generator.listing import files_below, modules_below
from generator.model import DIALECTS, OperatorSpec, Vocabulary
from generator.names import PACKAGE_NAMES, description_class, natural
from generator.resolve import Operator, families

Values = Callable[[], dict[str, Any]]
Text = Callable[[], str]
Made = Callable[[], values.OperatorValues]


@dataclass(frozen=True, eq=False)
class File:
    """One generated file."""

    path: str  # below generated/
    sources: tuple[str, ...]  # specs it follows from; none where it follows from its origin alone
    origin: str  # where to make a change that no spec makes: "templates/.." or "generator/.."
    operators: tuple[str, ...]  # "directml/argmax"; empty where the file belongs to all


@dataclass(frozen=True, eq=False)
class Filled(File):
    """A template of Jinja, filled with values."""

    values: Values


@dataclass(frozen=True, eq=False)
class Written(File):
    """A text as it stands."""

    text: Text


@dataclass(frozen=True, eq=False)
class KernelModule(File):
    """A kernel, with its helpers pasted into it."""


def files(linted: Linted, templates: Path) -> list[File]:
    """All files of generated/ but the manifest, sorted by path."""
    out = [*_verbatim(templates), *_kernels(templates), *_shared(linted)]
    # Once of each operator: several files have them.
    made = {o.id: cache(partial(values.operator, o, linted)) for o in linted.operators}
    for dialect in DIALECTS:
        operators = [o for o in linted.operators if o.source.dialect == dialect]
        for operator in operators:
            out += _operator(operator, made[operator.id], linted)
        if dialect == "onnx":
            out += [_versions(group, made[group[-1].id], linted) for group in families(operators)]
            out.append(_onnx_registry(operators))
        if operators or dialect == "plain":
            out.append(_package(dialect, operators))
        if dialect == "directml":
            out.append(_directml_registry(operators))
    path, origin = "specops/catalogue.json", "generator/catalogue.py"
    known = partial(catalogue.text, linted, made)
    out.append(Written(path, ("specs/",), origin, (), known))
    return sorted(out, key=lambda f: f.path)


def clashes(files: Sequence[File]) -> Iterator[tuple[File, str]]:
    """Files of operators whose module would take the place of another one, with the path of that."""
    paths = Counter(f.path for f in files)
    modules = {p.removesuffix(".py").removesuffix("/__init__") for p in paths if p.endswith(".py")}
    for file in files:
        if not file.operators:
            continue
        # A function of the package hides a module of its name there.
        shadowed = file.path.replace("specops/plain/", "specops/").removesuffix(".py")
        if paths[file.path] > 1:
            yield file, file.path
        elif shadowed != file.path.removesuffix(".py") and shadowed in modules:
            yield file, f"{shadowed}.py"


def _verbatim(templates: Path) -> Iterator[File]:
    """Real Python below templates/runtime and templates/tests, copied with a header."""
    for folder, target in (("runtime", "specops"), ("tests", "tests")):
        for path in files_below(templates / folder):
            name = path.relative_to(templates / folder).as_posix()
            # What is no text is no Python either, and is told as such.
            text = path.read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n")
            origin = f"templates/{folder}/{name}"
            yield Written(f"{target}/{name}", (), origin, (), partial(str, text))


def _kernels(templates: Path) -> Iterator[File]:
    """Each kernel; several operators, and several of their `semantics`, may run on one."""
    for path in modules_below(templates / "kernels"):
        yield KernelModule(f"specops/kernels/{path.name}", (), f"templates/kernels/{path.name}", ())


def _shared(linted: Linted) -> Iterator[File]:
    vocabulary = linted.tree.vocabulary
    source = ("specs/vocabulary.yaml",)
    for name, model in (("spec", OperatorSpec), ("vocabulary", Vocabulary)):
        text = partial(_schema, model, vocabulary)
        sources = source if name == "spec" else ()
        yield Written(f"{name}.schema.json", sources, "generator/model.py", (), text)
    for name in ("rule_functions.py", "version_words.py"):  # the generator has a use for them, too
        text = partial(Path(__file__).with_name(name).read_text, encoding="utf-8")
        yield Written(f"specops/{name}", (), f"generator/{name}", (), text)
    shared = partial(values.vocabulary, linted)
    template = "templates/vocabulary.py.jinja"
    yield Filled("specops/vocabulary.py", source, template, (), shared)
    template = "templates/requirements.py.jinja"
    required = partial(values.requirements, linted)
    yield Filled("specops/requirements.py", source, template, (), required)
    template = "templates/directml/tensor_rules.py.jinja"
    tensors = partial(values.tensor_rules, linted)
    yield Filled("specops/directml/tensor_rules.py", source, template, (), tensors)
    template = "templates/decided.md.jinja"
    yield Filled("DECIDED.md", ("specs/",), template, (), partial(decided.values, linted))
    everything = [
        {"dialect": o.source.dialect, "name": o.source.name}
        for o in sorted(linted.operators, key=lambda o: natural(o.id))
    ]
    template = "templates/cases_init.py.jinja"
    listed = {"operators": everything}
    yield Filled("tests/cases/__init__.py", ("specs/",), template, (), lambda: listed)


def _schema(model: type[BaseModel], vocabulary: Vocabulary) -> str:
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated from generator/model.py and specs/vocabulary.yaml: python -m generator generate",
        **schema.of(model, vocabulary.words()),
    }
    return json.dumps(document, indent=1) + "\n"


# --- a dialect's package ---


def _package(dialect: str, operators: list[Operator]) -> File:
    """The module that names all that a dialect has."""
    members = []
    if dialect == "onnx":
        for group in families(operators):
            name = group[-1].source.family
            members.append({"module": name, "names": [group[-1].spec.operator, name]})
    else:
        for o in operators:
            name = o.source.name
            description = [description_class(name)] if dialect == "directml" else []
            members.append({"module": name, "names": [*description, name]})
    if dialect == "directml":
        members.append({"module": "descriptor", "names": ["TensorDesc"]})
    members.sort(key=lambda m: str(m["module"]))
    exports = [name for m in members for name in m["names"]] + PACKAGE_NAMES[dialect]
    listed = {"members": members, "exports": sorted(exports, key=_export_order)}
    path = "specops/__init__.py" if dialect == "plain" else f"specops/{dialect}/__init__.py"
    template = f"templates/{dialect}/init.py.jinja"
    return Filled(path, (f"specs/{dialect}/",), template, (), lambda: listed)


def _onnx_registry(operators: list[Operator]) -> File:
    """The module that finds an operator's versions by its ONNX name."""
    members = []
    for group in families(operators):
        name = group[-1].source.family
        title = group[-1].spec.operator
        members.append({"module": name, "constant": name.upper(), "operator": title})
    listed = {"members": members}
    template = "templates/onnx/registry.py.jinja"
    return Filled("specops/onnx/registry.py", ("specs/onnx/",), template, (), lambda: listed)


def _export_order(name: str) -> tuple[bool, str]:
    """Classes first, as linters sort `__all__`."""
    return (not name[0].isupper(), name)


def _directml_registry(operators: list[Operator]) -> File:
    """Each DirectML operator by its name, so that models find it."""
    modules = {o.source.name: description_class(o.source.name) for o in operators}
    members = {**modules, "descriptor": "OperatorDesc"}
    listed = {
        "members": sorted(members.items(), key=lambda m: natural(m[0])),
        "operators": [(o.spec.operator, modules[o.source.name]) for o in operators],
    }
    template = "templates/directml/registry.py.jinja"
    path = "specops/directml/registry.py"
    return Filled(path, ("specs/directml/",), template, (), lambda: listed)


# --- one operator ---


def _operator(operator: Operator, made: Made, linted: Linted) -> Iterator[File]:
    dialect, name = operator.source.dialect, operator.source.name
    sources, users = (operator.source.file,), (operator.id,)
    layout = "version" if dialect == "onnx" else "operator"
    template = f"templates/{dialect}/{layout}.py.jinja"
    path = f"specops/{dialect}/{name}.py"
    yield Filled(path, sources, template, users, lambda: {"op": made()})
    shown = f"specops/pages/{dialect}_{name}.txt"
    text = partial(_page, operator, linted)
    yield Written(shown, sources, "generator/page.py", users, text)
    table = f"tests/cases/{dialect}_{name}.py"
    caller = cases.caller(operator)
    template = "templates/cases.py.jinja"
    yield Filled(table, sources, template, users, lambda: {"op": made(), "caller": caller})


def _page(operator: Operator, linted: Linted) -> str:
    return f"{page.operator(operator, linted)}\n"


def _versions(group: list[Operator], newest: Made, linted: Linted) -> File:
    name = group[-1].source.family
    return Filled(
        f"specops/onnx/{name}.py",
        tuple(o.source.file for o in group),
        "templates/onnx/operator.py.jinja",
        tuple(o.id for o in group),
        lambda: values.versions(group, newest(), linted),
    )
