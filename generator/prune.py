"""Kernels hold what they use: of the helpers that were pasted in, those that nothing reaches are left out."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterator


def pruned(text: str, helpers: Collection[str]) -> tuple[str, set[str]]:
    """A module without the definitions among `helpers` that its own code does not reach, directly or by others.

    With it come all names of the module that stand in its code.

    Constants in capitals stay, but for those with an underscore: the host's side reads them.

    >>> text, names = pruned("def a(b):\\n    return c(b, d)\\n\\n\\ndef b(): ...\\n\\n\\ndef c(): ...\\n", "bc")
    >>> print(text)
    def a(b):
        return c(b, d)
    <BLANKLINE>
    <BLANKLINE>
    def c(): ...
    <BLANKLINE>
    >>> sorted(names)
    ['c', 'd']
    """
    body = ast.parse(text).body
    dropped = {number for number, node in enumerate(body) if _may_go(node, helpers)}
    reached: set[str] = set()
    waiting = [node for number, node in enumerate(body) if number not in dropped]
    while waiting:
        for node in waiting:
            reached |= _named(node)
        kept = {
            number
            for number in dropped
            if reached & {*_defined(body[number])}
            or reached & _registers(body[number]) & {*helpers}
        }
        dropped -= kept
        waiting = [body[number] for number in kept]
    return _without(text, [body[number] for number in sorted(dropped)]), reached


def _may_go(node: ast.stmt, helpers: Collection[str]) -> bool:
    names = _defined(node)
    if names:
        return all(name in helpers and not _for_the_host(name) for name in names)
    return isinstance(node, ast.Expr) and not _registers(node).isdisjoint(helpers)


def _for_the_host(name: str) -> bool:
    return name.isupper() and not name.startswith("_")


def defined(module: ast.Module) -> list[str]:
    """The names that a module defines.

    >>> defined(ast.parse("A: int = 1; B, (C, D) = 2, (3, 4)"))
    ['A', 'B', 'C', 'D']
    """
    return [name for node in module.body for name in _defined(node)]


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _registers(node: ast.stmt) -> set[str]:
    """What a statement tells another module of: the arguments of a call that it is, or is decorated with."""
    calls: list[ast.expr] = [node.value] if isinstance(node, ast.Expr) else []
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        calls = node.decorator_list
    return {name for call in calls if isinstance(call, ast.Call) for name in _named(call)}


def _named(node: ast.stmt | ast.expr) -> set[str]:
    """The names in it that are the module's: a function's own variable is no helper of the same name."""
    symbols = list(_symbols(symtable.symtable(ast.unparse(node), "", "exec")))
    own = {s.get_name() for s in symbols} - {s.get_name() for s in symbols if s.is_global()}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - own


def _symbols(scope: symtable.SymbolTable) -> Iterator[symtable.Symbol]:
    """The names of a scope and of those within it."""
    yield from scope.get_symbols()
    for inner in scope.get_children():
        yield from _symbols(inner)


def _without(text: str, nodes: list[ast.stmt]) -> str:
    """The text without some statements and the comments above them, the blank lines around each as many as before."""
    lines = text.split("\n")  # as `ast` counts them: U+2028 ends no line of Python
    for node in reversed(nodes):
        decorators = getattr(node, "decorator_list", [])
        begin = min(n.lineno for n in (node, *decorators)) - 1
        end = node.end_lineno or node.lineno
        while begin and lines[begin - 1].startswith("#"):
            begin -= 1
        before = len(list(_blank(reversed(lines[:begin]))))
        behind = len(list(_blank(iter(lines[end:]))))
        lines[begin - before : end + behind] = [""] * max(before, behind)
    return "\n".join(lines).rstrip("\n") + "\n"


def _blank(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line:
            return
        yield line
