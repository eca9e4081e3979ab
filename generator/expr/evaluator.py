"""The value of an expression that was checked: it becomes functions once, for it is evaluated many times."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
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


@dataclass
class Run:
    """What an evaluation has besides values: the data types, and the steps that it may take."""

    data_types: Mapping[str, Any]
    budget: Budget


Scope = Mapping[str, Any]
Code = Callable[[Scope, Run], Any]


def compiled(tree: ast.expr) -> Code:
    """What computes a checked expression from the values of its names; numbers beyond 128 bits raise OverflowError.

    A step is a part of the expression, those of a loop again in each round.
    """
    steps, value = _parts(tree), _code(tree)

    def code(scope: Scope, run: Run) -> Any:
        run.budget.spend(steps)
        return value(scope, run)

    return code


def _parts(*nodes: ast.expr) -> int:
    return sum(isinstance(part, ast.expr) for node in nodes for part in ast.walk(node))


def _code(node: ast.expr) -> Code:
    match node:
        case ast.Constant(value=constant):
            return lambda scope, run: constant
        case ast.Name(id=name):
            return lambda scope, run: scope[name]
        case ast.Attribute(attr=part):
            of = _code(node.value)
            return lambda scope, run: getattr(of(scope, run), part)
        case ast.Subscript():
            of, at = _code(node.value), _code(node.slice)
            return lambda scope, run: of(scope, run)[at(scope, run)]
        case ast.BoolOp():
            return _boolean(node)
        case ast.UnaryOp():
            operand = _code(node.operand)
            if isinstance(node.op, ast.Not):
                return lambda scope, run: not operand(scope, run)
            return lambda scope, run: -operand(scope, run)
        case ast.BinOp():
            left, right, operation = _code(node.left), _code(node.right), ARITHMETIC[type(node.op)]
            return lambda scope, run: _limited(operation(left(scope, run), right(scope, run)))
        case ast.Compare():
            return _comparison(node)
        case ast.IfExp():
            test, body, other = _code(node.test), _code(node.body), _code(node.orelse)
            return lambda scope, run: (body if test(scope, run) else other)(scope, run)
        case ast.List():
            return _list(node)
        case ast.ListComp() | ast.GeneratorExp():
            rounds = _loop(node)
            return lambda scope, run: tuple(rounds(scope, run))
        case ast.Call(func=ast.Name(id=name)):
            return _call(name, node.args)
    raise AssertionError(f"unchecked node {node!r}")


def _boolean(node: ast.BoolOp) -> Code:
    parts = [_code(value) for value in node.values]
    if isinstance(node.op, ast.And):
        return lambda scope, run: all(part(scope, run) for part in parts)
    return lambda scope, run: any(part(scope, run) for part in parts)


def _list(node: ast.List) -> Code:
    """A starred element stands for the entries of a list."""
    elements = [
        (_code(e.value), True) if isinstance(e, ast.Starred) else (_code(e), False)
        for e in node.elts
    ]

    def entries(scope: Scope, run: Run) -> Iterator[Any]:
        for element, several in elements:
            value = element(scope, run)
            yield from value if several else (value,)

    return lambda scope, run: tuple(entries(scope, run))


def _comparison(node: ast.Compare) -> Code:
    """As in Python, nothing is evaluated beyond the first comparison that is false."""
    first = _code(node.left)
    others = [
        (COMPARE[type(op)], _code(n)) for op, n in zip(node.ops, node.comparators, strict=True)
    ]

    def compare(scope: Scope, run: Run) -> bool:
        left = first(scope, run)
        for holds, comparator in others:
            right = comparator(scope, run)
            if not holds(left, right):
                return False
            left = right
        return True

    return compare


def _loop(node: ast.ListComp | ast.GeneratorExp) -> Callable[[Scope, Run], Iterator[Any]]:
    clause = node.generators[0]
    assert isinstance(clause.target, ast.Name)
    name, over, element = clause.target.id, _code(clause.iter), _code(node.elt)
    conditions = [_code(condition) for condition in clause.ifs]
    steps = _parts(node.elt, *clause.ifs)

    def rounds(scope: Scope, run: Run) -> Iterator[Any]:
        inner = dict(scope)
        for item in over(scope, run):
            run.budget.spend(steps)
            inner[name] = item
            if all(condition(inner, run) for condition in conditions):
                yield element(inner, run)

    return rounds


def _call(name: str, arguments: list[ast.expr]) -> Code:
    if name in ("all", "any"):
        loop = arguments[0]
        assert isinstance(loop, ast.GeneratorExp)
        rounds, test = _loop(loop), all if name == "all" else any
        return lambda scope, run: test(rounds(scope, run))
    function, values = _FUNCTIONS[name], [_code(argument) for argument in arguments]
    return lambda scope, run: function(run, *(value(scope, run) for value in values))


def _limited(value: int) -> int:
    if abs(value) >= MAX_INTEGER:
        raise OverflowError("more than 128 bits")
    return value


def _greatest(run: Run, dtype: str) -> int:
    entry = run.data_types[dtype]
    if entry.kind not in ("signed", "unsigned"):
        raise ArithmeticError(f"{dtype} has no greatest integer")
    bits: int = 8 * entry.bytes - (entry.kind == "signed")
    return (1 << bits) - 1


def _implied_bytes(run: Run, tensor: Any) -> int:
    item = run.data_types[tensor.dtype].bytes
    return rule_functions.buffer_bytes(tensor.sizes, tensor.strides, item)


def _windows_hold_input(run: Run, *values: Any) -> bool:
    run.budget.spend(bounds.WINDOWS * len(values[0]))
    return rule_functions.windows_hold_input(*values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rank": lambda run, tensor: len(tensor.sizes),
    "len": lambda run, values: len(values),
    "range": lambda run, *ends: range(*ends),
    "min": lambda run, *values: min(values),
    "max": lambda run, *values: max(values),
    "unique": lambda run, values: rule_functions.unique(values),
    "product": lambda run, values: _limited(rule_functions.product(values)),
    "greatest": _greatest,
    "item_bytes": lambda run, dtype: run.data_types[dtype].bytes,
    "implied_bytes": _implied_bytes,
    "distinct_addresses": lambda run, t: rule_functions.nested(t.sizes, t.strides),
    "power_of_two": lambda run, value: rule_functions.power_of_two(value),
    "windows_hold_input": _windows_hold_input,
}
