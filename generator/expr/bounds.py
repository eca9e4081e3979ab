"""How many entries a list can have, how many bits a number, and how many steps an expression can take, at most.

Fields and tensors come from whoever calls the operator; an array of theirs has at most 64 entries, a number 64 bits.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

ARRAY = 64  # entries
BITS = 64
WINDOWS = 512  # steps of windows_hold_input along an axis, at most

MAX_ENTRIES = 512
MAX_BITS = 1 << 13
MAX_STEPS = 1 << 23


@dataclass(frozen=True)
class Bound:
    """Of a value: its entries, the bits of each, and the steps that it takes to compute it."""

    entries: int = 1
    bits: int = BITS
    steps: int = 0

    def excess(self) -> str:
        """Which limit this is beyond, in words; empty where it is within all."""
        if self.entries > MAX_ENTRIES:
            return f"this list could have {self.entries} entries, at most {MAX_ENTRIES} are allowed"
        if self.bits > MAX_BITS:
            return f"this number could have {self.bits} bits, at most {MAX_BITS} are allowed"
        if self.steps > MAX_STEPS:
            return f"this could take {self.steps} steps, at most {MAX_STEPS} are allowed"
        return ""


NUMBER, LIST = Bound(), Bound(ARRAY)


class Excess(Exception):
    """A part of an expression that could become too large or take too long, and why."""

    def __init__(self, node: ast.expr, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


def of(node: ast.expr, names: Mapping[str, Bound]) -> Bound:
    """The bound of an expression that was checked; `names` has those of fields, derived values and loop variables.

    Raises Excess.
    """
    bound = _of(node, names)
    if reason := bound.excess():
        raise Excess(node, reason)
    return bound


def _of(node: ast.expr, names: Mapping[str, Bound]) -> Bound:
    if isinstance(node, ast.Name):
        return replace(names.get(node.id, LIST), steps=1)
    if isinstance(node, ast.Attribute):
        return Bound(ARRAY, BITS, 2)
    if isinstance(node, ast.Constant):
        return Bound(1, node.value.bit_length() if isinstance(node.value, int) else 1, 1)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _loop(node, names)
    if isinstance(node, ast.Starred):
        starred = of(node.value, names)
        return replace(starred, steps=starred.steps + 1)
    parts = [
        of(child, names) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
    ]
    steps = 1 + sum(p.steps for p in parts)
    bits = max((p.bits for p in parts), default=1)
    match node:
        case ast.List():
            entries = sum(p.entries for p in parts)
            return Bound(entries, bits, steps + entries)
        case ast.IfExp():
            return Bound(max(parts[1].entries, parts[2].entries), bits, steps)
        case ast.Subscript() | ast.UnaryOp():
            return Bound(1, bits, steps)
        case ast.BinOp(op=ast.Mult()):
            return Bound(1, parts[0].bits + parts[1].bits, steps)
        case ast.BinOp():
            return Bound(1, bits + 1, steps)
        case ast.Compare():
            return Bound(1, 1, steps + sum(p.entries for p in parts[1:]))
        case ast.Call(func=ast.Name(id=name)):
            return _call(name, parts[1:], node, steps, names)
    return Bound(1, 1, steps)


def _loop(node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, Bound]) -> Bound:
    clause = node.generators[0]
    assert isinstance(clause.target, ast.Name)
    over = of(clause.iter, names)
    inner = {**names, clause.target.id: Bound(1, over.bits)}
    element = of(node.elt, inner)
    steps = element.steps + sum(of(condition, inner).steps for condition in clause.ifs)
    # The loop, its variable and the parts of a round, which are counted before the first one, too.
    return Bound(over.entries, element.bits, 2 + over.steps + (over.entries + 1) * steps)


def _call(
    name: str, arguments: list[Bound], node: ast.Call, steps: int, names: Mapping[str, Bound]
) -> Bound:
    entries = sum(a.entries for a in arguments)
    bits = max((a.bits for a in arguments), default=1)
    if name == "range":
        return Bound(_end(node.args[-1], names), 32, steps)
    if name == "product":
        return Bound(1, entries * bits, steps + entries)
    if name in ("rank", "len", "item_bytes"):
        return Bound(1, 32, steps)
    if name == "greatest":
        return Bound(1, BITS, steps)
    if name == "implied_bytes":
        return Bound(1, 2 * BITS + 16, steps + ARRAY)
    if name == "distinct_addresses":
        return Bound(1, 1, steps + 8 * ARRAY)
    if name == "windows_hold_input":
        return Bound(1, 1, steps + WINDOWS * max(a.entries for a in arguments))
    return Bound(1, bits, steps + entries)  # min, max, unique, all, any, power_of_two


def _end(node: ast.expr, names: Mapping[str, Bound]) -> int:
    """The greatest value of the end of a range: a sum of lengths, ranks and small numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _end(node.left, names)
    if isinstance(node, ast.BinOp):
        return _end(node.left, names) + _end(node.right, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return of(node.args[0], names).entries
    return ARRAY
