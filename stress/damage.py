"""Damages to Python code: each a small change of one place in a function's body."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import yaml

from stress import PROJECT

COMPARISONS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
CALLS = {"all": "any", "any": "all", "min": "max", "max": "min"}
# What code that writes LLVM's instructions may say instead: `builder.add(a, b)`, `builder.icmp_signed("<", a, b)`.
INSTRUCTIONS = {
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "and_": "or_",
    "or_": "and_",
    "xor": "or_",
    "shl": "lshr",
    "lshr": "shl",
    "ashr": "lshr",
    "fadd": "fsub",
    "fsub": "fadd",
    "fmul": "fadd",
    "fdiv": "fmul",
    "sext": "zext",
    "zext": "sext",
    "icmp_signed": "icmp_unsigned",
    "icmp_unsigned": "icmp_signed",
}
PREDICATES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
# Calls of functions with such names, and their bodies, change no result: when memory is fetched, and in which order
# other threads see what was written.
NO_RESULT = ("prefetch", "fence")


def siblings() -> dict[str, set[str]]:
    """Of each word of the vocabulary those that may stand in its place."""
    data = yaml.safe_load((PROJECT / "specs" / "vocabulary.yaml").read_text(encoding="utf-8"))
    groups = [list(e["values"]) for e in data["enums"].values()]
    parameters = [p for k in data["kernels"].values() for p in k["parameters"].values()]
    groups += [list(p["values"]) for p in parameters if "values" in p]
    out: dict[str, set[str]] = {}
    only = {word for group in groups if len(group) == 1 for word in group}  # says nothing there
    for group in groups:
        for word in {*group} - only:
            out.setdefault(word, set()).update({*group} - {word})
    return out


WORDS = siblings()


def damages(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield from node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.If | ast.While):
        yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield ast.comprehension(node.target, node.iter, [], 0)
    elif isinstance(node, ast.Call):
        yield from damaged_calls(node)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int | float):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        elif isinstance(node.value, str):
            yield from map(ast.Constant, sorted(WORDS.get(node.value, ())))


def damaged_calls(node: ast.Call) -> Iterator[ast.AST]:
    match node.func:
        case ast.Name(name) if name in CALLS:
            yield ast.Call(ast.Name(CALLS[name]), node.args, node.keywords)
        case ast.Attribute(ast.Name("builder") as builder, name):
            if name in INSTRUCTIONS:
                other = ast.Attribute(builder, INSTRUCTIONS[name])
                yield ast.Call(other, node.args, node.keywords)
            match name, node.args:
                case "select", [condition, yes, no]:
                    yield ast.Call(node.func, [condition, no, yes], node.keywords)
                case _, [ast.Constant(sign), *rest] if sign in PREDICATES:
                    opposite = ast.Constant(PREDICATES[sign])
                    yield ast.Call(node.func, [opposite, *rest], node.keywords)


class _Replace(ast.NodeTransformer):
    def __init__(self, place: int, new: ast.AST) -> None:
        self.place, self.new, self.at = place, new, -1

    def visit(self, node: ast.AST) -> ast.AST:
        self.at += 1
        return self.new if self.at == self.place else self.generic_visit(node)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """In the order of NodeTransformer."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


@dataclass
class Mutant:
    """One damage to a tree: what stands at the place with this number, in the order of `walk`."""

    name: str
    function: str  # the outermost around it
    root: ast.Module
    place: int
    new: ast.AST

    def tree(self) -> ast.Module:
        tree = copy.deepcopy(self.root)
        _Replace(self.place, self.new).visit(tree)
        return ast.fix_missing_locations(tree)


def mutants(root: ast.Module, name: str) -> Iterator[Mutant]:
    """Every damage to the bodies of a tree's functions."""
    inside: dict[int, str] = {}
    for function in ast.walk(root):  # outer functions come before inner ones
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    inside.setdefault(id(node), function.name)
    for node in ast.walk(root):
        if no_result(node):
            for part in ast.walk(node):
                inside.pop(id(part), None)
    for place, node in enumerate(walk(root)):
        if id(node) in inside:
            for new in damages(node):
                line, column = (getattr(node, a, 0) for a in ("lineno", "col_offset"))
                shown = f"{name}:{line}:{column}: {text(node)} -> {text(new)}"
                yield Mutant(shown, inside[id(node)], root, place, new)


def no_result(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name) | ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
            return any(word in name for word in NO_RESULT)
    return False


def reached(tree: ast.Module, roots: Iterable[str]) -> set[str]:
    """The functions and classes of a module that others use, or that these name."""
    named = {
        node.name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    rest = [node for node in tree.body if getattr(node, "name", "") not in named]
    todo = [*roots, *(n.id for part in rest for n in ast.walk(part) if isinstance(n, ast.Name))]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name in named and name not in found:
            found.add(name)
            todo += named[name]
    return found


def with_users(tree: ast.Module, name: str) -> ast.Module:
    """The statements that bind this name or use it, directly or not; the whole module where none binds it."""
    binds, uses = [], []
    for statement in tree.body:
        names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
        binds.append({n.id for n in names if isinstance(n.ctx, ast.Store)})
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            binds[-1] = {statement.name}
        uses.append({n.id for n in names})
    found: set[int] = set()
    affected = {name}
    while True:
        more = {i for i, used in enumerate(uses) if used & affected or name in binds[i]} - found
        if not more:
            break
        found |= more
        affected |= set().union(*(binds[i] for i in more))
    whole = not any(name in names for names in binds)
    return tree if whole else ast.Module([tree.body[i] for i in sorted(found)], [])


def text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]
