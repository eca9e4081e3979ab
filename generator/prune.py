"""Kernels hold what they use: of the helpers that are pasted into one, those that nothing reaches are left out."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement at the top of a kernel or of helpers.

    >>> text = "def f(a): return g(a, h)\\nA: int = 1\\nB, (C, D) = 2, (3, 4)\\nB[E] = C.name = 5"
    >>> function, *others = statements(ast.parse(text).body, text.split("\\n"))
    >>> function.defines, sorted(function.names)
    (['f'], ['f', 'g', 'h'])
    >>> [other.defines for other in others]
    [['A'], ['B', 'C', 'D'], []]
    """

    first: int  # of its lines, with decorators and the comments above, from 0 on
    text: str
    node: ast.stmt

    @cached_property
    def defines(self) -> list[str]:
        """The names that it defines."""
        node = self.node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return [node.name]
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        return [name.id for name in names if isinstance(name.ctx, ast.Store)]

    @cached_property
    def registers(self) -> set[str]:
        """What it tells another module of: the arguments of a call that it is, or is decorated with."""
        calls: list[ast.expr] = [self.node.value] if isinstance(self.node, ast.Expr) else []
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            calls = self.node.decorator_list
        told = (call for call in calls if isinstance(call, ast.Call))
        return {name for call in told for name in _named(ast.unparse(call))}

    @cached_property
    def names(self) -> set[str]:
        """The names in it that are the module's, with its own."""
        return _named(self.text)


def statements(nodes: Iterable[ast.stmt], lines: Sequence[str]) -> tuple[Statement, ...]:
    out: list[Statement] = []
    above = 0  # where the statement above ends, which may be a text with a # in it
    for node in nodes:
        decorators = getattr(node, "decorator_list", [])
        first = min(n.lineno for n in (node, *decorators)) - 1
        while first > above and lines[first - 1].startswith("#"):
            first -= 1
        above = node.end_lineno or 0
        out.append(Statement(first, "\n".join(lines[first : node.end_lineno]), node))
    return tuple(out)


def unreached(
    own: Iterable[Statement], helpers: Collection[Statement]
) -> tuple[set[Statement], set[str]]:
    """Statements of helpers that a kernel's own ones do not reach, directly or by others; and all names in the rest.

    Constants in capitals stay, but for those with an underscore: the host's side reads them.

    >>> text = "def a(b): return c(b, d)\\ndef b(): ...\\ndef c(): ..."
    >>> own, *helpers = statements(ast.parse(text).body, text.split("\\n"))
    >>> dropped, names = unreached([own], helpers)
    >>> [statement.defines for statement in dropped], sorted(names)
    ([['b']], ['a', 'c', 'd'])
    """
    shared = {name for statement in helpers for name in statement.defines}
    dropped = {statement for statement in helpers if _may_go(statement, shared)}
    reached: set[str] = set()
    waiting = {*own, *helpers} - dropped
    while waiting:
        reached |= {name for statement in waiting for name in statement.names}
        waiting = {
            statement
            for statement in dropped
            if not reached.isdisjoint((*statement.defines, *(statement.registers & shared)))
        }
        dropped -= waiting
    return dropped, reached


def _may_go(statement: Statement, helpers: set[str]) -> bool:
    if statement.defines:
        return not any(map(_for_the_host, statement.defines))
    return isinstance(statement.node, ast.Expr) and not statement.registers.isdisjoint(helpers)


def _for_the_host(name: str) -> bool:
    return name.isupper() and not name.startswith("_")


def _named(text: str) -> set[str]:
    """The names in it that are the module's: a function's own variable is no helper of the same name."""
    return {name for name, shared in _symbols(symtable.symtable(text, "", "exec")) if shared}


def _symbols(scope: symtable.SymbolTable) -> Iterator[tuple[str, bool]]:
    """The names of a scope and of those within it, and whether each may be the module's there.

    In a class one is, where it is read before it is assigned: `split = inlined(split)`.
    """
    members = isinstance(scope, symtable.Class)
    for symbol in scope.get_symbols():
        yield symbol.get_name(), symbol.is_global() or (members and symbol.is_referenced())
    for inner in scope.get_children():
        yield from _symbols(inner)


def without(lines: Sequence[str], dropped: Iterable[Statement]) -> list[str]:
    """Lines without some statements and the comments above them, the blank lines around each as many as before.

    >>> text = "A = 1\\n# more\\nB = 2\\n\\n\\ndef f():\\n    ...\\n"
    >>> lines = text.split("\\n")
    >>> without(lines, statements(ast.parse(text).body, lines)[1:2])
    ['A = 1', '', '', 'def f():', '    ...', '']
    """
    out = list(lines)
    for statement in sorted(dropped, key=lambda statement: -statement.first):
        begin, end = statement.first, statement.first + len(statement.text.split("\n"))
        before = len(list(_blank(reversed(out[:begin]))))
        behind = len(list(_blank(iter(out[end:]))))
        out[begin - before : end + behind] = [""] * max(before, behind)
    return out


def _blank(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line:
            return
        yield line
