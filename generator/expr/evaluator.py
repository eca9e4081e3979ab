"""The value of an expression that was checked."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator import rule_functions
from generator.expr import bounds
from generator.expr.language import ARITHMETIC, COMPARE

MAX_INTEGER = 2**127


class BudgetSpent(Exception):
    """Evaluations took too many steps together."""


@dataclass
class Budget:
    """The steps that evaluations may take together."""

    steps: int = field(default_factory=lambda: bounds.MAX_STEPS)

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise BudgetSpent


class Evaluator:
    """Evaluates a checked tree; numbers beyond 128 bits raise OverflowError."""

    def __init__(self, data_types: Mapping[str, Any], budget: Budget) -> None:
        self.data_types, self.budget = data_types, budget

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self.budget.spend(1)
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return scope[node.id]
            case ast.Attribute():
                return getattr(self.value(node.value, scope), node.attr)
            case ast.Subscript():
                return self.value(node.value, scope)[self.value(node.slice, scope)]
            case ast.BoolOp():
                test = all if isinstance(node.op, ast.And) else any
                return test(self.value(v, scope) for v in node.values)
            case ast.UnaryOp():
                operand = self.value(node.operand, scope)
                return not operand if isinstance(node.op, ast.Not) else -operand
            case ast.BinOp():
                return self.limited(
                    ARITHMETIC[type(node.op)](
                        self.value(node.left, scope), self.value(node.right, scope)
                    )
                )
            case ast.Compare():
                return self.compare(node, scope)
            case ast.IfExp():
                return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case ast.List():
                return tuple(itertools.chain(*(self.entries(v, scope) for v in node.elts)))
            case ast.ListComp() | ast.GeneratorExp():
                return tuple(self.loop(node, scope))
            case ast.Call(func=ast.Name(id=name)):
                return self.call(name, node.args, scope)
        raise AssertionError(f"unchecked node {node!r}")

    def entries(self, node: ast.expr, scope: dict[str, Any]) -> tuple[int, ...]:
        """What an element of a list stands for: itself, or with a star the entries of a list."""
        if isinstance(node, ast.Starred):
            return tuple(self.value(node.value, scope))
        return (self.value(node, scope),)

    def compare(self, node: ast.Compare, scope: dict[str, Any]) -> bool:
        """As in Python, nothing is evaluated beyond the first comparison that is false."""
        left = self.value(node.left, scope)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def loop(self, node: ast.ListComp | ast.GeneratorExp, scope: dict[str, Any]) -> Iterator[Any]:
        clause = node.generators[0]
        assert isinstance(clause.target, ast.Name)
        for item in self.value(clause.iter, scope):
            inner = {**scope, clause.target.id: item}
            if all(self.value(condition, inner) for condition in clause.ifs):
                yield self.value(node.elt, inner)

    def call(self, name: str, arguments: list[ast.expr], scope: dict[str, Any]) -> Any:
        if name in ("all", "any"):
            loop = arguments[0]
            assert isinstance(loop, ast.GeneratorExp)
            return {"all": all, "any": any}[name](self.loop(loop, scope))
        values = [self.value(argument, scope) for argument in arguments]
        value = values[0]
        match name:
            case "rank":
                return len(value.sizes)
            case "len":
                return len(value)
            case "range":
                return range(*values)
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "unique":
                return rule_functions.unique(value)
            case "product":
                return self.limited(rule_functions.product(value))
            case "greatest":
                entry = self.data_types[value]
                if entry.kind not in ("signed", "unsigned"):
                    raise ArithmeticError(f"{value} has no greatest integer")
                return 2 ** (8 * entry.bytes - (entry.kind == "signed")) - 1
            case "item_bytes":
                return self.data_types[value].bytes
            case "implied_bytes":
                item = self.data_types[value.dtype].bytes
                return rule_functions.buffer_bytes(value.sizes, value.strides, item)
            case "distinct_addresses":
                return rule_functions.nested(value.sizes, value.strides)
            case "power_of_two":
                return rule_functions.power_of_two(value)
            case "windows_hold_input":
                self.budget.spend(bounds.WINDOWS * len(values[0]))
                return rule_functions.windows_hold_input(*values)
        raise AssertionError(f"unchecked function {name}")

    @staticmethod
    def limited(value: int) -> int:
        if abs(value) >= MAX_INTEGER:
            raise OverflowError("more than 128 bits")
        return value
