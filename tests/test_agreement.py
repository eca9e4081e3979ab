"""Linter and generated validator say the same of descriptions at random: every rule of every operator is evaluated from
its spec by the one, and runs as generated Python in the other.

Functions of numbers that rules call are one module, in both: test_expr.py holds them against looking at each element
and each window.

`check("directml/argmax", 17)` repeats one description.
"""

from __future__ import annotations

import contextlib
import importlib
import random
from collections import Counter
from functools import cache
from typing import Any

import pytest
import trees

from generator import lint, structure, tensors
from generator.diagnostics import Report
from generator.selftest import SelfTest
from specops import ValidationError
from specops.request import Asked, compiled
from specops.tensor import Tensor
from specops.vocabulary import DATA_TYPES, FEATURE_LEVELS

DESCRIPTIONS = 400  # of each operator


@cache
def specs() -> dict[str, SelfTest]:
    report = Report()
    tree = structure.load_tree(trees.PROJECT, report)
    assert tree is not None
    linted = lint.lint(tree, report)
    assert not report
    return {o.id: SelfTest(o, tree, linted.tensor_rules, report) for o in linted.operators}


LABELS = sorted(
    f"{p.parent.name}/{p.stem}" for p in (trees.PROJECT / "specs").glob("*/*.yaml")
)  # fmt: skip

PARTS = ["strides", "dtype", "total_bytes", "alignment", "dimension_count"]
NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def number(random_: random.Random, old: int) -> int:
    return max(
        0,
        random_.choice([old - 1, old + 1, old - 1, old + 1, *NUMBERS[:7], random_.choice(NUMBERS)]),
    )


def numbers(random_: random.Random, old: tuple[int, ...]) -> list[int]:
    new = list(old)
    match random_.randrange(6):
        case 5:
            new = [random_.choice([0, 1, 2, 9, 2**32 - 1]) for _ in new[random_.randrange(2) :]]
        case 0 if new:
            new.pop(random_.randrange(len(new)))
        case 1 if len(new) < 9:
            new.insert(random_.randrange(len(new) + 1), random_.choice([1, 1, 0, 2]))
        case 2 if len(new) > 1:
            random_.shuffle(new)
        case _ if new:
            i = random_.randrange(len(new))
            new[i] = number(random_, new[i])
    return new


def change(random_: random.Random, test: SelfTest, values: dict[str, Any]) -> dict[str, Any]:
    """What breaks some rule by the spec, or any change of one value."""
    field = random_.choice(test.spec.fields)
    value = values.get(field.name)
    if test.operator.rules and random_.random() < 0.4:
        rule = random_.choice(test.operator.rules)
        return dict(rule.violate)
    if isinstance(value, tensors.Tensor):
        if test.tensor_rules and random_.random() < 0.3:
            rule, _ = random_.choice(test.tensor_rules)
            return {f"{field.name}.{key}": new for key, new in rule.violate.items()}
        low, high = (
            getattr(test.spec.support[0].tensors[field.name], end) for end in ("low", "high")
        )
        part = random_.choice(["sizes", "sizes", "sizes", *PARTS])
        old = getattr(value, part)
        if part == "dtype":
            return {
                f"{field.name}.dtype": random_.choice(
                    test.spec.support[0].tensors[field.name].dtypes
                )
            }
        new: Any = numbers(random_, old) if isinstance(old, tuple) else number(random_, old)
        if part == "alignment":
            new = random_.choice([0, 1, 2, 3, 4, 8, 16])
        fits = part != "sizes" or low <= len(new) <= high
        return {f"{field.name}.{part}": new} if fits else {}
    if isinstance(value, tuple):
        return {field.name: numbers(random_, value)}
    if isinstance(value, bool):
        return {field.name: not value}
    if isinstance(value, int):
        return {field.name: number(random_, value)}
    enum = test.tree.vocabulary.enums.get(field.type)
    return {field.name: random_.choice(list(enum.values))} if enum else {}


def waiting(random_: random.Random, test: SelfTest, turn: int) -> dict[str, Any]:
    """What breaks a rule and another that it needs, each by turns; lists may be too long in place of too short."""
    rules = {rule.id: rule for rule in test.operator.rules}
    pairs = [(rule, rules[need]) for rule in rules.values() for need in rule.needs]
    if not pairs:
        return {}
    rule, need = pairs[turn % len(pairs)]
    patch = dict(rule.violate)
    round_ = turn // len(pairs)
    if round_ % 2:
        longer = [1] * (1 + round_ // 2 % 3)
        return patch | {
            k: [*v, *longer] if isinstance(v, list) and len(v) < 7 else v
            for k, v in need.violate.items()
        }
    # The rule in each entry, so that some are left where the other is broken.
    patch |= {k: [2 * max(v)] * len(v) for k, v in patch.items() if isinstance(v, list) and v}
    for key, value in need.violate.items():
        cut = random_.randrange(1, 3)
        both = key in patch and isinstance(value, list)
        patch[key] = [*value[:cut], *patch[key][cut:]] if both else value
    return patch


def check(label: str, case: int) -> list[str]:
    """The rules that a description breaks."""
    random_ = random.Random(f"{label} {case}")
    test = specs()[label]
    dialect, name = label.split("/")
    operator = importlib.import_module(f"specops.{dialect}.{name}").OPERATOR
    i = random_.randrange(len(test.spec.examples)) if random_.random() < 0.5 else 0
    first = test.given.example(test.spec.examples[i], ("examples", i))
    assert first is not None
    patch = waiting(random_, test, case // 3) if case % 3 == 0 else {}
    for _ in range(0 if patch else random_.choice((1, 1, 2, 2, 3, 4))):
        patch |= change(random_, test, test.calls.complete(first))
    try:
        values = test.calls.changed(first, patch)
    except ValueError:  # a change of what is not there
        return []
    expected = [b.rule.id for b in test.broken(values)]
    given = {
        f.name: Tensor(**vars(v)) if isinstance(v, tensors.Tensor) else v
        for f in test.spec.fields
        if (v := values.get(f.name, first)) is not first
    }
    operator.complete(given, set(given))
    found = [v.id for v in operator.violations(given)]
    assert operator.accepts(given) == (not found), f"check({label!r}, {case}): {patch}"
    if dialect == "directml":
        level = random_.choice(FEATURE_LEVELS)
        assert operator.accepts(given, level) == (not operator.violations(given, level)), level
    rules = [id for id in found if not id.startswith("supported_") and id != "not_computable"]
    # What the linter does not look at may keep the validator from asking a rule.
    if any(id.startswith("supported_") for id in found):
        expected = [id for id in expected if id in rules]
    assert sorted(rules) == sorted(expected), f"check({label!r}, {case}): {patch}"
    return found


@pytest.mark.parametrize("label", LABELS)
def test_agreement(label: str) -> None:
    seen = Counter(id for case in range(DESCRIPTIONS) for id in set(check(label, case)))
    rules = [rule.id for rule in specs()[label].operator.rules]
    assert not [id for id in rules if not seen[id]], "rules that are never broken here"


@pytest.mark.parametrize("label", [n for n in LABELS if not n.startswith("directml/")])
def test_data_types(label: str) -> None:
    """A function takes its table's data types, and the outputs that it makes are of types that the table has, too."""
    test = specs()[label]
    dialect, name = label.split("/")
    operator = importlib.import_module(f"specops.{dialect}.{name}").OPERATOR
    example = test.given.example(test.spec.examples[0], ("examples", 0))
    assert example is not None
    tensors: dict[str, Any] = {
        f.name: example.get(f.name) for f in operator.fields if f.type == "tensor"
    }
    inputs = {
        f.name: (DATA_TYPES[tensors[f.name].dtype].numpy, tensors[f.name].sizes)
        for f in operator.fields
        if f.kind == "input" and tensors.get(f.name)
    }
    attributes = {f.name: example[f.name] for f in operator.told if f.name in example}
    outputs = {
        f.name: Asked(sizes=None if f.sizes else tensors[f.name].sizes)
        for f in operator.fields
        if f.kind == "output"
    }
    for field, (_, sizes) in inputs.items():
        allowed = set()
        for name, dtype in DATA_TYPES.items():
            given = inputs | {field: (dtype.numpy, sizes)}
            with contextlib.suppress(ValidationError):
                compiled(operator, given, attributes, outputs)
                allowed.add(name)
        assert allowed == set(test.spec.support[0].tensors[field].dtypes), field
