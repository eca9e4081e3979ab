"""Kernel modules: the code of a kernel below that of the helpers that it imports, itself or through others.

Numba's cache on disk does not see changes in other files, so that a kernel module holds all that it calls.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from generator import import_block
from generator.diagnostics import Report, suggestion
from generator.listing import modules_below
from generator.prune import Statement, statements, unreached, without


@dataclass(frozen=True)
class Module:
    """A kernel, or a file of helpers."""

    path: str  # "templates/helpers/walk.py"
    head: str  # what stands above the imports
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    lines: tuple[str, ...]  # of the file
    code_begin: int  # the first line below the imports, from 0 on
    statements: tuple[Statement, ...]  # that the code is made of
    late: tuple[int, ...]  # lines of imports, or of texts that stand alone, amid the code

    @property
    def brought(self) -> set[tuple[str, str]]:
        """(name, what it stands for) of the names that imports of others than helpers bring."""
        return import_block.brought(self.imports)

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def names(self) -> list[str]:
        """All that the code defines."""
        return [name for statement in self.statements for name in statement.defines]

    def without(self, dropped: Collection[Statement]) -> str:
        """The code without some of its statements."""
        own = [statement for statement in self.statements if statement in dropped]
        return "\n".join(without(self.lines, own)[self.code_begin :]).strip("\n")


def module_of(path: str, text: str) -> Module:
    """The parts of a file; raises what Python does where they cannot be told apart."""
    tree = ast.parse(text)
    top = list(itertools.takewhile(_of_top, tree.body))
    lines = text.split("\n")  # as `ast` counts them: U+2028 ends no line of Python
    below = statements(tree.body[len(top) :], lines)
    may_import = (s.node for s in below if "import" in s.text)
    late_imports = (n.lineno for node in may_import for n in ast.walk(node) if _imports(n))
    late_texts = (s.node.lineno for s in below if _of_top(s.node) and not _imports(s.node))
    late = tuple(sorted((*late_imports, *late_texts)))
    imports = tuple(node for node in top if _imports(node))
    end = top[-1].end_lineno or 0 if top else 0
    begin = imports[0].lineno - 1 if imports else end
    head = "\n".join(lines[:begin]).strip("\n")
    return Module(path, head, imports, tuple(lines), end, below, late)


def helper_paths(templates: Path) -> list[str]:
    """Of all helpers, "templates/helpers/walk.py"; those that one family of kernels uses lie in a folder of its own."""
    folder = templates / "helpers"
    files = modules_below(folder) if folder.is_dir() else []
    return [file.relative_to(templates.parent).as_posix() for file in files]


class Helpers:
    """The files of templates/helpers; the report tells what is wrong with them."""

    def __init__(self, templates: Path, report: Report) -> None:
        self.root = templates.parent
        modules = [self.read(path, report) for path in helper_paths(templates)]
        self.modules: dict[str, Module] = {}
        # By their names, whichever folder they are in: so they are imported.
        for module in sorted(filter(None, modules), key=lambda module: module.name):
            self.add(module, report)
        # All of them, each below those that it imports: what a module computes at once is there.
        self.order: list[str] = []
        if None not in modules:  # else others may import what could not be read
            for module in self.modules.values():
                self.check(module, report)
                self.arrange(module, (), report)

    def add(self, module: Module, report: Report) -> None:
        """Take a file of helpers, whose name no other one may have."""
        other = self.modules.setdefault(module.name, module)
        if other is not module:
            message = f"helpers of the name `{module.name}` are in {other.path}, too"
            span = report.line(self.root, module.path, 1)
            report.add("E405", message, span, help="rename one: kernels import them by this name")

    def read(self, path: str, report: Report) -> Module | None:
        """A kernel or helpers; None where its parts cannot be told apart."""
        try:
            module = module_of(path, (self.root / path).read_text(encoding="utf-8"))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 1) or 1
            reason = getattr(error, "msg", str(error))
            span = report.line(self.root, path, line)
            report.add("E402", f"cannot read this template: {reason}", span)
            return None
        for line in module.late:
            report.add(
                "E402",
                "an import or a text that stands alone, below code",
                report.line(self.root, path, line),
                "move it to the imports, or make it a comment",
                help="kernels are given what stands below the docstring and the imports",
            )
        return module

    def check(self, module: Module, report: Report) -> None:
        """That all that it imports is there."""
        for line, name, helper in _imported(module):
            message, help = self.objection(name, helper)
            if message:
                report.add("E406", message, report.line(self.root, module.path, line), help=help)

    def objection(self, name: str, helper: str) -> tuple[str, str]:
        """Why a helper, or a module as a whole, cannot be imported, and what can be; else empty texts."""
        own = self.modules.get(name)
        if own is None and not import_block.is_known(name):
            known = suggestion(name, [*import_block.KNOWN, *self.modules])
            return f"kernels and helpers cannot import `{name}`", known
        if helper == "*":
            return f"all names of `{name}` are imported at once", "import those that are used"
        if own is None:
            return "", ""
        if not helper:
            return "helpers are imported by their own names", f"write `from {name} import ..`"
        if helper not in own.names:
            return f"{own.path} does not define `{helper}`", suggestion(helper, own.names)
        return "", ""

    def arrange(self, module: Module, users: tuple[str, ...], report: Report) -> None:
        """Put a module into the order, below those that it imports; `users` import it."""
        path = (*users, module.name)
        for line, name, _ in _imported(module):
            if name in path:
                circle = " -> ".join((*path[path.index(name) :], name))
                span = report.line(self.root, module.path, line)
                report.add("E406", f"helpers import each other: {circle}", span)
            elif name in self.modules and name not in self.order:
                self.arrange(self.modules[name], path, report)
        if module.name not in self.order:
            self.order.append(module.name)

    def pasted(self, path: str, report: Report) -> str | None:
        """The text of a kernel's module; None with the reasons in the report."""
        errors = report.count
        kernel = self.read(path, report)
        if kernel is None:
            return None
        self.check(kernel, report)
        used = self.used(kernel)
        self.distinct(kernel, used, report)
        if report.count > errors:
            return None
        helpers = [statement for module in used for statement in module.statements]
        dropped, named = unreached(kernel.statements, helpers)
        imports = import_block.of((n for m in (kernel, *used) for n in m.imports), named)
        code = "\n\n\n".join(filter(None, (m.without(dropped) for m in (*used, kernel))))
        return "\n\n".join(filter(None, (kernel.head, imports, f"\n{code}\n")))

    def used(self, kernel: Module) -> list[Module]:
        """The helpers that a kernel imports, itself or through others, in their order."""
        found: set[str] = set()
        waiting = [kernel]
        while waiting:
            new = {name for _, name, _ in _imported(waiting.pop())} & self.modules.keys() - found
            waiting += [self.modules[name] for name in new]
            found |= new
        return [self.modules[name] for name in self.order if name in found]

    def distinct(self, kernel: Module, used: list[Module], report: Report) -> None:
        """Tell of names that are defined twice: of two helpers of one name, all would use the one below."""
        modules = (*used, kernel)
        counts = Counter(name for module in modules for name in module.names)
        counts.update(name for name, _ in {pair for module in modules for pair in module.brought})
        for name in (name for name, count in counts.items() if count > 1):
            having = (m.path for m in used if name in (*m.names, *dict(m.brought)))
            files = " and ".join(having) or "this template"
            report.add(
                "E405",
                f"`{name}` is defined twice in this kernel",
                report.line(self.root, kernel.path, 1),
                help=f"a kernel and the helpers in it share their names; rename one in {files}",
            )


def _of_top(node: ast.stmt) -> bool:
    """Whether it is a docstring or an import."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return _imports(node)


def _imports(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imported(module: Module) -> Iterator[tuple[int, str, str]]:
    """(line, module, name) of each name that a module imports; of a module, or under another name, it is empty."""
    for node in module.imports:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                name = "" if alias.asname else alias.name
                yield alias.lineno, "." * node.level + (node.module or ""), name
            else:
                yield alias.lineno, alias.name, ""
