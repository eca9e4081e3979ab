"""The imports of a kernel module as one block, as a formatter would lay it out: those of all that is pasted."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from generator import layout

# What kernels import besides helpers, in the groups that a formatter makes.
_GROUPS = (
    ("__future__",),
    ("collections", "functools", "math", "typing"),
    ("llvmlite", "numba", "numpy"),
)
KNOWN = tuple(itertools.chain(*_GROUPS))


class _Line(NamedTuple):
    """An import statement without the names; in the order of the block."""

    group: int
    of_names: bool  # `from module import names`
    module: str
    renamed: str

    def text(self, names: Iterable[str]) -> str:
        behind = f" as {self.renamed}" if self.renamed else ""
        if not self.of_names:
            return f"import {self.module}{behind}"
        return layout.imported([f"{n}{behind}" for n in sorted(names, key=_by_kind)], self.module)


def is_known(module: str) -> bool:
    """
    >>> [is_known(module) for module in ("numba.core", "numbers", ".numba")]
    [True, False, False]
    """
    return module.partition(".")[0] in KNOWN


def brought(imports: Iterable[ast.Import | ast.ImportFrom]) -> set[tuple[str, str]]:
    """(name, what it stands for) of each name that imports of known modules bring.

    >>> sorted(brought(ast.parse("from numba import types; import numpy as np; from memory import least").body))
    [('np', 'numpy'), ('types', 'numba.types')]
    """
    return {
        (_bound(alias), _stands_for(node, alias))
        for node in imports
        for alias in node.names
        if is_known(_module(node, alias))
    }


def of(imports: Iterable[ast.Import | ast.ImportFrom], named: Collection[str]) -> str:
    """Of these imports those of known modules, as far as what they bring is `named`.

    >>> imports = ast.parse("from numba import types, njit; import numpy as np; import math").body
    >>> print(of(imports, ["types", "np", "njit"]))
    import numpy as np
    from numba import njit, types
    """
    lines: dict[_Line, set[str]] = {}
    for node in imports:
        for alias in node.names:
            of_names, module, bound = (
                isinstance(node, ast.ImportFrom),
                _module(node, alias),
                _bound(alias),
            )
            if is_known(module) and (bound in named or module == "__future__"):
                group = next(n for n, g in enumerate(_GROUPS) if module.partition(".")[0] in g)
                line = _Line(group, of_names, module, alias.asname or "")
                lines.setdefault(line, set()).add(alias.name)
    groups = itertools.groupby(sorted(lines), key=lambda line: line.group)
    return "\n\n".join("\n".join(n.text(lines[n]) for n in group) for _, group in groups)


def _module(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name


def _bound(alias: ast.alias) -> str:
    """The name that it brings."""
    return alias.asname or alias.name.split(".")[0]


def _stands_for(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}"
    return alias.name if alias.asname else _bound(alias)  # of a package the modules in it add none


def _by_kind(name: str) -> tuple[bool, str]:
    """Constants, then classes, then the rest: small letters come behind capitals."""
    return not name.isupper(), name
