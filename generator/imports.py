"""Modules that code of the package imports, and that no generated file is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from generator.plan import File, Written

# `from module import names`, as a formatter lays it out: to parse all files takes a tenth of a run.
_IMPORT = re.compile(r"^ *from (specops[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_COMMENT = re.compile("#.*")  # or the rest of a text: no names that are imported


def missing(files: Sequence[File], texts: Mapping[str, str]) -> Iterator[tuple[str, File, int]]:
    """(module, file, line): each missing one once, where code that is copied imports it; texts by path."""
    modules = dict(_modules(texts))
    told: set[str] = set()
    for file in files:
        text = file.text() if isinstance(file, Written) and file.path.endswith(".py") else ""
        text = _COMMENT.sub("", text)
        for found in _IMPORT.finditer(text):
            module, names = found.groups()
            wanted = [module]
            if module in modules:  # a name that it speaks of is no module
                words = (name.split()[0] for name in names.strip("()").split(",") if name.strip())
                wanted += [f"{module}.{word}" for word in words if word not in modules[module]]
            for name in wanted:
                if name not in modules.keys() | told:
                    told.add(name)
                    yield name, file, text.count("\n", 0, found.start()) + 1


def _modules(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """All modules and their folders, with their texts."""
    for folder in {folder for path in texts for folder in PurePosixPath(path).parents}:
        yield ".".join(folder.parts), _code(texts.get(f"{folder}/__init__.py", ""))
    for path, text in texts.items():
        if path.endswith(".py"):
            yield path.removesuffix(".py").replace("/", "."), text


def _code(text: str) -> str:
    """Without the docstring, which speaks of modules that may be missing."""
    body = ast.parse(text).body
    return "\n".join(ast.unparse(node) for node in body if not isinstance(node, ast.Expr))
