"""The constraint language: what it takes, what it refuses, and that linter and validator mean the same by it."""

from __future__ import annotations

import ast
import itertools
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import trees
from trees import PROJECT, VOCABULARY, Tree

from generator import exits, expr, selftest, structure, tensors
from generator.diagnostics import Report
from generator.expr import language
from generator.expr.evaluator import Budget
from generator.expr.language import ExpressionError
from specops import rule_functions
from specops import tensor as runtime
from specops.vocabulary import DATA_TYPES

FIELDS = {
    "x": "tensor",
    "y": "tensor",
    "axes": "ints",
    "count": "int",
    "flag": "bool",
    "mode": "str",
}


@pytest.fixture(scope="module")
def data_types() -> dict[str, Any]:
    tree = structure.load_tree(PROJECT, Report())
    assert tree is not None
    return tree.vocabulary.data_types


ACCEPTED = [
    ("rank(x) == rank(y)", "bool"),
    ("count == len(axes)", "bool"),
    ("all(a < rank(x) for a in axes)", "bool"),
    ("any(x.sizes[d] > y.sizes[d] for d in range(rank(x)))", "bool"),
    ("all(all(a + b < 9 for a in axes) for b in x.sizes)", "bool"),
    ("unique(axes) and not flag or count >= 3", "bool"),
    ("1 <= count < 3", "bool"),
    ("1 in axes and 2 not in x.sizes", "bool"),
    ("product(a for a in axes) in [n for n in x.sizes]", "bool"),
    ("0 <= count in axes", "bool"),
    ('x.dtype == "FLOAT32" or y.dtype != "INT8"', "bool"),
    ('mode == "SAME_UPPER"', "bool"),
    ("product(x.sizes[a] for a in axes) - 1 <= greatest(y.dtype)", "bool"),
    ('item_bytes("INT8") + item_bytes("FLOAT32" if flag else x.dtype)', "int"),
    ('("INT8" if flag else x.dtype) == "INT8" and "INT8" == x.dtype == y.dtype', "bool"),
    ('mode == "INT8" and mode == ("INT8" if flag else "NONE")', "bool"),
    ("x.total_bytes >= implied_bytes(x) and distinct_addresses(x)", "bool"),
    ("x.alignment == 0 or power_of_two(x.alignment)", "bool"),
    ("(count if flag else 0) == 0", "bool"),
    ("[1 if d in axes else x.sizes[d] for d in range(rank(x))]", "ints"),
    ("[1, count, rank(x) * 2]", "ints"),
    ("axes", "ints"),
    ("[s // 2 + s % 3 - -1 for s in x.sizes]", "ints"),
    ("x.sizes[0 + 1]", "int"),
    ("0x10 + 1_000", "int"),
    ("x.sizes if flag else axes", "ints"),
    ("18446744073709551615", "int"),
    ("[s for s in x.sizes if s > 1 and s not in axes]", "ints"),
    ("[x.sizes[0], *axes, *x.sizes]", "ints"),
    ("range(count % rank(x), rank(x))", "ints"),
    ("x.sizes[count % rank(x)]", "int"),
    ("x.sizes[count + 1]", "int"),
    ("range(count, rank(x))", "ints"),
    ("[axes[i + len(axes)] for i in range(1, 1 + rank(x))]", "ints"),
    ("max(min(count, 3), rank(x) - 1)", "int"),
    ("windows_hold_input(x.sizes, y.sizes, axes, axes, axes, [0 for a in axes])", "bool"),
]


@pytest.mark.parametrize(("text", "type_"), ACCEPTED)
def test_accepted(text: str, type_: str) -> None:
    parsed = expr.parse(text, FIELDS, type_, DATA_TYPES)
    assert (parsed.text, parsed.type) == (text, type_)


REFUSED = {
    # No word where a data type is needed.
    'greatest("X") == 1': "E203",
    'item_bytes("UINT4") == 1': "E203",
    "greatest(mode) == 1": "E204",
    "item_bytes(x.flags) == 1": "E204",
    "item_bytes(x) == 1": "E204",
    "item_bytes(4) == 1": "E204",
    'item_bytes("FLOAT32" if flag else "Y") == 1': "E203",
    'x.dtype == "UINT4"': "E203",
    '"UINT4" == x.dtype': "E203",
    '(x.dtype if flag else "UINT4") == "INT8"': "E203",
    "x.dtype == mode": "E204",
    "x.dtype == y.flags": "E204",
    "x.dtype == 1": "E204",
    "x.dtype": "E204",
    # No way out of the language.
    "__import__('os').system('true')": "E203",
    "open": "E203",
    "eval('1') == 1": "E203",
    "x.__class__": "E203",
    "x.sizes.__class__": "E204",
    "x.sizes.count(1) == 1": "E203",
    "axes.sizes == axes": "E204",
    "len.sizes == axes": "E203",
    "(lambda: True)()": "E203",
    "lambda: flag": "E202",
    "(n := count) == 1": "E202",
    "f'{count}' == 'a'": "E202",
    "'a b' == mode": "E202",
    "'' == mode": "E202",
    "b'a' == mode": "E202",
    "{1: 2} == count": "E202",
    "{1} == count": "E202",
    "(1, 2) == axes": "E202",
    "{a for a in axes} == axes": "E202",
    "[*count] == axes": "E204",
    "[*axes, *axes[0]] == axes": "E204",
    "*axes": "E201",
    "print(count)": "E203",
    "rank(*x)": "E202",
    "rank(tensor=x) == 1": "E204",
    "await count": "E202",
    "yield": "E201",
    "count; count": "E201",
    "import os": "E201",
    "count = 1": "E201",
    # No way to run long.
    "2 ** count == 1": "E202",
    "1 << count == 1": "E202",
    "count >> 1 == 1": "E202",
    "count / 2 == 1": "E202",
    "count @ 2 == 1": "E202",
    "count & 1 == 1": "E202",
    "~count == 1": "E202",
    "+count == 1": "E202",
    "all(i > 0 for i in range(count))": "E202",
    "all(i > 0 for i in range(65))": "E202",
    "all(i > 0 for i in range(rank(x) * 99))": "E202",
    "all(i > 0 for i in range(x.sizes[0]))": "E202",
    "all(all(all(a < b + c for a in axes) for b in axes) for c in axes)": "E202",
    "all(a < 1 for a in axes) or all(a < 2 for a in axes) or all(a < 3 for a in axes)": "E202",
    "all(a < 1 for a in axes for b in axes)": "E202",
    "all(a < 1 for a in axes if a)": "E204",
    "all(a < 1 for a in axes if a > 0 if a > 1)": "E202",
    "all(i > 0 for i in range(count, rank(x)))": "E202",
    "all(i > 0 for i in range(0, count))": "E202",
    "range(1, 2, 3) == axes": "E204",
    "min(axes) == 1": "E204",
    "min(1, 2, 3) == 1": "E204",
    "windows_hold_input(axes, axes, axes)": "E204",
    "windows_hold_input(axes, axes, axes, axes, axes, count)": "E204",
    "all(a < 1 for a, b in axes)": "E202",
    "18446744073709551616 == count": "E202",
    "mode * 99 == mode": "E204",
    "axes * 99 == axes": "E204",
    "axes + axes == axes": "E204",
    "1+" * 150 + "1 == count": "E202",
    "(" * 250 + "1" + ")" * 250: "E201",
    "-" * 300 + "1 == count": "E202",
    # No surprises.
    "True": "E202",
    "None == count": "E202",
    "... == count": "E202",
    "1.5 == count": "E202",
    "1j == count": "E202",
    "1e3 == count": "E202",
    "axes[-1] == 1": "E202",
    "axes[count] == 1": "E202",
    "axes[0:1] == axes": "E202",
    "axes[rank(x) - 1] == 1": "E202",
    "mode[0] == 1": "E204",
    "all(axes > 1 for axes in x.sizes)": "E202",
    "all(len > 1 for len in axes)": "E202",
    "all(a > 1 for a in axes) and a > 1": "E203",
    "count is 1": "E202",
    "count is not 1": "E202",
    "mode < 'B'": "E204",
    "axes < axes": "E204",
    "axes == [0, 1]": "E204",
    "[0, 1] == axes": "E204",
    "x.sizes == [s for s in x.sizes]": "E204",
    "axes == range(2)": "E204",
    "rank(x if flag else y) == 1": "E204",
    "(x if flag else y).sizes[0] == 1": "E204",
    "flag < flag": "E204",
    "x == y": "E204",
    "count == mode": "E204",
    "count in mode": "E204",
    "mode in axes": "E204",
    "1 in axes < 3": "E204",
    "1 in axes in axes": "E204",
    "1 in axes == flag": "E204",
    "count and flag": "E204",
    "not count": "E204",
    "flag + 1 == 2": "E204",
    "count if count else count": "E204",
    "(count if flag else mode) == 1": "E204",
    "all(axes)": "E204",
    "all([1, 2])": "E204",
    "all(a for a in axes)": "E204",
    "all(flag for a in mode)": "E204",
    "unique(a > 1 for a in axes)": "E204",
    "len(a for a in axes) == 1": "E204",
    "len(x) == 1": "E204",
    "rank(axes) == 1": "E204",
    "rank() == 1": "E204",
    "product() == 1": "E204",
    "[flag]": "E204",
    "[[1]] == axes": "E204",
    "count": "E204",
    "x": "E204",
    "": "E201",
    "  ": "E201",
    "count ==": "E201",
    "count == 1\n": "E201",
    "count\t== 1": "E201",
    "größe == 1": "E201",
    "count == \uff11": "E201",
    "count == 1 # one": "E201",
    "count == 010": "E201",
    "\\x41 == 1": "E201",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    """With its code, and a place that lies within the text."""
    with pytest.raises(ExpressionError) as caught:
        expr.parse(text, FIELDS, "bool", DATA_TYPES, signed={"count"})
    error = caught.value
    assert error.code == REFUSED[text]
    assert 0 <= error.offset <= len(text)
    assert error.length >= 1
    assert error.message
    assert error.label


def test_a_comment_is_refused() -> None:
    """It would end the line that the expression is written into."""
    for text, type_ in (("axes # all", "ints"), ("flag # )", "bool")):
        with pytest.raises(ExpressionError):
            expr.parse(text, FIELDS, type_, DATA_TYPES)


def test_an_index_from_a_list_may_not_be_negative() -> None:
    """A loop variable that takes any number is no safe index: -1 would be the last element."""
    for text in (
        "all(axes[i] > 0 for i in [0 - 1])",
        "all(axes[i] > 0 for i in [-1])",
        "all(axes[i] > 0 for i in [a - 5 for a in axes])",
        "axes[count % (0 - 3)] > 0",
        "all(axes[i] > 0 for i in range(2)) and all(axes[i] > 0 for i in [-1])",
        "axes[count % -rank(x)] > 0",
    ):
        with pytest.raises(ExpressionError) as caught:
            expr.parse(text, FIELDS, "bool", DATA_TYPES)
        assert caught.value.code == "E202"


def test_all_fields_are_read() -> None:
    """A field that occurs is among those that the validator hands over."""
    for text, type_ in ACCEPTED:
        parsed = expr.parse(text, FIELDS, type_, DATA_TYPES)
        occurring = {n.id for n in ast.walk(parsed.tree) if isinstance(n, ast.Name)} & FIELDS.keys()
        assert set(parsed.names()) == occurring, text


# --- the same meaning twice ------------------------------------------------------------------------------------------

PACKAGE = {**vars(rule_functions), **vars(runtime)}
FUNCTIONS = {name: PACKAGE[name] for name in language.FUNCTIONS if name in PACKAGE}
FUNCTIONS |= {"all": all, "any": any, "len": len, "range": range, "min": min, "max": max}


def by_python(code: CodeType, values: dict[str, Any]) -> Any:
    """What the generated validator makes of the text: Python itself, with the functions of the package."""
    try:
        return eval(code, {"__builtins__": {}, **FUNCTIONS, **values})
    except (IndexError, ArithmeticError) as error:
        return type(error)


def by_linter(parsed: expr.Expr, values: dict[str, Any], data_types: dict[str, Any]) -> Any:
    try:
        return parsed.evaluate(values, data_types)
    except (IndexError, ArithmeticError) as error:
        return type(error)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return (
        list(a) == list(b) if isinstance(a, list | tuple | range) else type(a) is type(b) and a == b
    )


class Writer:
    """Writes random expressions of a type."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.variables: list[str] = []

    def __call__(self, type_: str, depth: int) -> str:
        options: list[Callable[[int], str]] = getattr(self, f"{type_}_options")(depth)
        return self.random.choice(options)(depth - 1)

    def int_options(self, depth: int) -> list[Callable[[int], str]]:
        leaf: list[Callable[[int], str]] = [
            lambda d: str(self.random.randrange(6)),
            lambda d: "count",
            lambda d: f"rank({self.tensor()})",
            lambda d: self.random.choice(self.variables or ["count"]),
            lambda d: f"{self.tensor()}.{self.random.choice(['total_bytes', 'alignment'])}",
            lambda d: f"{self.random.choice(['greatest', 'item_bytes'])}({self.tensor()}.dtype)",
        ]
        if depth <= 0:
            return leaf
        return [
            *leaf,
            *[
                lambda d: (
                    f"({self('int', d)} {self.random.choice(['+', '-', '*', '//', '%'])} {self('int', d)})"
                )
            ]
            * 3,
            lambda d: f"-{self('int', d)}",
            lambda d: f"({self('int', d)} if {self('bool', d)} else {self('int', d)})",
            lambda d: f"len({self('ints', d)})",
            lambda d: f"product({self.loop('int', d)})",
            lambda d: f"{self.random.choice(['min', 'max'])}({self('int', d)}, {self('int', d)})",
            lambda d: f"{self('plain', 0)}[{self('int', d)} % rank({self.tensor()})]",
            lambda d: f"{self('plain', 0)}[{self.random.choice([*self.variables, '0', '1 + 1'])}]",
        ]

    def bool_options(self, depth: int) -> list[Callable[[int], str]]:
        if depth <= 0:
            return [
                lambda d: "flag",
                lambda d: "count > 2",
                lambda d: f"unique({self('plain', 0)})",
            ]
        return [
            lambda d: "flag",
            *[lambda d: f"{self('int', d)} {self.compare()} {self('int', d)}"] * 2,
            lambda d: (
                f"{self('int', d)} {self.compare()} {self('int', d)} {self.compare()} {self('int', d)}"
            ),
            lambda d: f"({self('bool', d)} {self.random.choice(['and', 'or'])} {self('bool', d)})",
            lambda d: f"(not {self('bool', d)})",
            lambda d: f"{self('int', d)} {self.random.choice(['in', 'not in'])} {self('ints', d)}",
            lambda d: f"{self('int', d)} {self.compare()} {self('int', d)} in {self('ints', d)}",
            lambda d: f"{self('int', d)} in {self('ints', d)} {self.compare()} {self('int', d)}",
            lambda d: f"{self.random.choice(['all', 'any'])}({self.loop('bool', d)})",
            lambda d: f"{self('ints', d)} {self.random.choice(['==', '!='])} {self('ints', d)}",
            lambda d: f'{self.tensor()}.dtype {self.random.choice(["==", "!="])} "INT32"',
            lambda d: f"power_of_two({self('int', d)})",
            lambda d: f"distinct_addresses({self.tensor()})",
            lambda d: f"({self('bool', d)} if {self('bool', d)} else {self('bool', d)})",
        ]

    def ints_options(self, depth: int) -> list[Callable[[int], str]]:
        if depth <= 0:
            return self.plain_options(0)
        return [
            *self.plain_options(0),
            lambda d: f"[{self('int', d)}, {self('int', d)}]",
            lambda d: f"[{self.loop('int', d)}]",
            lambda d: f"range(rank({self.tensor()}))",
            lambda d: f"range({self.random.randrange(3)}, rank({self.tensor()}))",
            lambda d: f"[{self('int', d)}, *{self('plain', 0)}]",
            lambda d: f"[*{self('plain', 0)}, *{self('plain', 0)}]",
        ]

    def plain_options(self, depth: int) -> list[Callable[[int], str]]:
        return [
            lambda d: "axes",
            lambda d: f"{self.tensor()}.sizes",
            lambda d: f"{self.tensor()}.strides",
        ]

    def tensor(self) -> str:
        return self.random.choice("xy")

    def compare(self) -> str:
        return self.random.choice(["==", "!=", "<", "<=", ">", ">="])

    def loop(self, element: str, depth: int) -> str:
        over = self("ints", depth)
        name = "ijklmn"[len(self.variables) % 6]
        self.variables.append(name)
        inner = self(element, depth)
        condition = f" if {self('bool', 0)}" if self.random.random() < 0.3 else ""
        self.variables.pop()
        return f"{inner} for {name} in {over}{condition}"


def some_tensor(random_: random.Random, data_types: dict[str, Any]) -> Any:
    sizes = tuple(random_.choice((1, 1, 2, 3, 5)) for _ in range(random_.randrange(4)))
    dtype = random_.choice(["INT8", "UINT16", "INT32", "UINT64"])
    made = tensors.make_tensor(dtype, sizes, data_types)
    strides = tuple(random_.choice((s, s, 0, 1)) for s in made.strides)
    return runtime.Tensor(
        dtype, sizes, strides, len(sizes), made.total_bytes, random_.choice((0, 4))
    )


def some_values(random_: random.Random, data_types: dict[str, Any]) -> dict[str, Any]:
    return {
        "x": some_tensor(random_, data_types),
        "y": some_tensor(random_, data_types),
        "axes": tuple(random_.randrange(4) for _ in range(random_.randrange(4))),
        "count": random_.randrange(5),
        "flag": random_.random() < 0.5,
        "mode": random_.choice(["SAME", "VALID"]),
    }


@pytest.mark.parametrize("seed", range(6))
def test_linter_and_validator_agree(seed: int, data_types: dict[str, Any]) -> None:
    """On random expressions and values: the same result, or the same error."""
    random_ = random.Random(seed)
    accepted = 0
    for _ in range(1500):
        type_ = random_.choice(["bool", "bool", "int", "ints"])
        text = Writer(random_)(type_, random_.choice((1, 2, 3)))
        try:
            parsed = expr.parse(text, FIELDS, type_, DATA_TYPES)
        except ExpressionError as error:
            assert error.code in ("E202", "E204"), text
            continue
        accepted += 1
        code = compile(parsed.text, "constraint", "eval")
        for _ in range(4):
            values = some_values(random_, data_types)
            a, b = by_linter(parsed, values, data_types), by_python(code, values)
            if a is not OverflowError:  # which only the linter has
                assert same(a, b), f"{text}\nlinter: {a}\nvalidator: {b}\n{values}"
        assert (
            set(parsed.names())
            >= {n.id for n in ast.walk(parsed.tree) if isinstance(n, ast.Name)} & FIELDS.keys()
        )
    assert accepted > 500


# What the random ones would seldom show, each by itself.
AGREE = [
    "not (1 > 2 > 1 // 0)",
    "not (1 < 2 in axes)",
    "flag == (count > 1)",
    "7 % -3 == -2 and -7 // 2 == -4",
    "count in range(3)",
    "not 1 // 0 == 1",
    "any(axes[i] == 1 for i in range(3))",
]


@pytest.mark.parametrize("text", AGREE)
def test_agree(text: str, data_types: dict[str, Any]) -> None:
    parsed = expr.parse(text, FIELDS, "bool", DATA_TYPES)
    random_ = random.Random(1)
    for axes in ((0, 1), (), (1,), (2, 0, 1)):
        values = {**some_values(random_, data_types), "axes": axes}
        a = by_linter(parsed, values, data_types)
        b = by_python(compile(parsed.text, "constraint", "eval"), values)
        assert same(a, b), f"linter: {a}, validator: {b}"


def test_agree_on_data_types(data_types: dict[str, Any]) -> None:
    """`greatest` and `item_bytes` know the same of each data type, also where there is no greatest integer."""
    for name in data_types:
        values = {"x": runtime.packed(name, (2, 3))}
        for text in ("greatest(x.dtype)", "item_bytes(x.dtype)", "implied_bytes(x)"):
            parsed = expr.parse(text, FIELDS, "int", DATA_TYPES)
            a = by_linter(parsed, values, data_types)
            b = by_python(compile(text, "constraint", "eval"), values)
            assert same(a, b), f"{text} of {name}; linter: {a}, validator: {b}"


def test_agree_on_tensors(data_types: dict[str, Any]) -> None:
    """A packed tensor of the linter is that of the package."""
    for sizes in ((), (0,), (5,), (2, 3), (1, 0, 7), (4, 1, 1, 3)):
        for name in data_types:
            a, b = tensors.make_tensor(name, sizes, data_types), runtime.packed(name, sizes)
            assert vars(a) == vars(b)


# --- written out -----------------------------------------------------------------------------------------------------

LONG = [
    "all((a < rank(x)) for a in axes)",
    "(all(a < rank(x) for a in axes))",
    "all(x.sizes[d] == (1 if d in axes else y.sizes[d]) for d in range(rank(x)))",
    "any(a < 3 for a in (axes))",
    "(flag) or (count > 3 and flag) or (not flag)",
    "((flag and count > 2) and (count < 9))",
    "flag and mode == 'for' and count > 3",
    "rank(x) == 1 or all(a < 1 for a in axes) or count == 1",
]


@pytest.mark.parametrize("text", LONG)
def test_broken_over_lines(text: str) -> None:
    """A long expression is broken into lines that mean the same."""
    parsed = expr.parse(text, FIELDS, "bool", DATA_TYPES)
    for width in (10, 30, 200):
        lines = parsed.returned(width)
        written: Any = ast.parse("def f():\n" + "\n".join(f"    {line}" for line in lines))
        (returned,) = written.body[0].body
        assert ast.dump(returned.value) == ast.dump(ast.parse(text, mode="eval").body), lines


def test_rename() -> None:
    """All names at once, so that two may change places; parts of words and loop variables stay."""
    scope = {"one": "tensor", "other": "tensor", "a": "ints"}
    text = "rank(one) == rank(other) and all(one.sizes[i] > i for i in a)"
    renamed = expr.parse(text, scope, "bool", DATA_TYPES).rename(
        {"one": "other", "other": "one", "a": "axes"}
    )
    assert renamed.text == "rank(other) == rank(one) and all(other.sizes[i] > i for i in axes)"
    assert renamed.reads == ("other.sizes", "one.sizes", "axes")
    assert ast.dump(renamed.tree) == ast.dump(ast.parse(renamed.text, mode="eval").body)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x.sizes[9] == 1", False),
        ("not x.sizes[9] == 1", False),
        ("1 // 0 == 0", False),
        ("1 % 0 == 0", False),
        ("0 != " + " * ".join(["18446744073709551615"] * 3), False),
        ("0 != " + " * ".join(["18446744073709551615"] * 2), False),
        ("product(a + 4294967295 for a in axes) > 0", False),
        ("0 > 0 - " + " * ".join(["18446744073709551615"] * 2), False),
        ("0 != -1 * 18446744073709551615 * 18446744073709551615", False),
        ("flag or 1 // 0 == 0", True),
    ],
)
def test_limits(text: str, result: bool, data_types: dict[str, Any]) -> None:
    """An index outside its array, a division by zero and a number beyond 128 bits make a constraint false."""
    x = tensors.make_tensor("INT8", (1, 2), data_types)
    values = {"x": x, "axes": (1,) * 64, "flag": True}
    parsed = expr.parse(text, FIELDS, "bool", DATA_TYPES)
    assert parsed.holds(values, data_types) is result


BASE = Path(__file__).parent / "diagnostics" / "base"
SPEC = trees.ARGMAX


@pytest.fixture
def small(tmp_path: Path, run: Callable[[list[str]], trees.Result]) -> Tree:
    """The small good tree of the diagnostics."""
    return Tree(shutil.copytree(BASE, tmp_path / "tree"), run)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("      Axes: [0]\n", f"      Axes: {list(range(65))}\n"),
        ("violate: {Axes: [0, 0]}", f"violate: {{Axes: {[0] * 65}}}"),
        (
            "violate: {OutputTensor.sizes: [1, 2, 1]}",
            f"violate: {{OutputTensor.sizes: {[1] * 65}}}",
        ),
    ],
)
def test_arrays_are_short(small: Tree, old: str, new: str) -> None:
    """Loops run over arrays: one of many thousand numbers in a spec would keep the linter busy for hours."""
    small.edit(SPEC, old, new)
    result = small("lint")
    assert result.code == exits.ERRORS
    assert "at most 64" in result.err


def test_checks_that_take_too_long(small: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """All constraints on all examples and changes together have a limit too."""
    monkeypatch.setattr(selftest, "Budget", lambda: Budget(50))
    result = small("lint")
    assert result.code == exits.ERRORS
    assert "error[E202]: the constraints take too long" in result.err


@pytest.mark.parametrize(("type", "negative"), [("int", True), ("uint", False)])
def test_fields_that_may_be_negative_are_no_index(small: Tree, type: str, negative: bool) -> None:
    """Nor are entries of lists: in Python alone they would count from the end."""
    fields = f"  - {{name: Place, kind: attribute, type: {type}, default: 0, doc: A place.}}\n"
    fields += (
        f"  - {{name: Places, kind: attribute, type: '{type}[]', default: '[0]', doc: More.}}\n"
    )
    small.edit(SPEC, "\nsupport:\n", f"{fields}\nsupport:\n")
    for index in ("InputTensor.sizes[Place] > 0", "all(InputTensor.sizes[i] > 0 for i in Places)"):
        text = small.text(SPEC)
        small.edit(SPEC, "all(a < rank(InputTensor) for a in Axes)", index)
        assert ("error[E202]: an index may not become negative" in small("lint").err) == negative
        small.write(SPEC, text)


def test_what_functions_are_not_told_is_shared_by_descriptions_alone(tree: Tree) -> None:
    """A shared constraint may read it, where no function uses it."""
    require = "require: all(a < rank(tensor) for a in axes)"
    tree.edit(trees.VOCABULARY, require, f"{require[:-1]} if tensor.strides[0] >= 0)")
    found = re.findall(r"error\[E203\]: (.*)\n *--> (specs/\w+/\w+)", tree("lint").err)
    assert ("functions are not told `strides` of `x`", "specs/plain/argmax") in found
    assert not any("directml" in file for _, file in found)


@pytest.mark.parametrize("reader", ["sizes", "kernel"])
def test_what_may_be_absent_is_not_read(small: Tree, reader: str) -> None:
    """By the sizes of another output and by what a kernel is told: they are computed where it is absent, too."""
    other = "  - {name: Other, kind: output, type: tensor, doc: Another., sizes: OutputTensor.sizes, dtype: UINT32}\n"
    small.edit(SPEC, "    dtype: UINT32\n", f"    dtype: UINT32\n    optional: wanted\n{other}")
    if reader == "kernel":
        small.edit(SPEC, "sizes: OutputTensor.sizes", "sizes: InputTensor.sizes")
        small.edit(SPEC, "axes: {value: Axes", "axes: {value: OutputTensor.sizes")
    message = "error[E203]: `OutputTensor` is an output that may be absent\n"
    assert small("lint").err.count(message) == 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (SPEC, "[d for d in Axes]", "[d for d in Axes if all(i < 9 for i in range(9))]"),
        (trees.VOCABULARY, "all(s > 0 for s", "all(s > 0 and all(i < 9 for i in range(9)) for s"),
    ],
    ids=["derived", "tensors"],
)
def test_all_steps_are_counted(
    small: Tree, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str
) -> None:
    """Those of derived values, and of the rules of tensors."""
    derived = "derived:\n  - {name: same, value: '[d for d in Axes]', doc: The same.}\n"
    small.edit(SPEC, "\nsupport:\n", f"\n{derived}\nsupport:\n")
    small.edit(SPEC, "no_repeats(Axes)", "no_repeats(same)")
    budgets: list[Budget] = []

    def budget() -> Budget:
        budgets.append(Budget(10**6))
        return budgets[-1]

    monkeypatch.setattr(selftest, "Budget", budget)
    assert small("lint").code == exits.OK
    small.edit(file, old, new)
    assert small("lint").code == exits.OK
    fewer, more = (10**6 - b.steps for b in budgets)
    assert more > fewer + 9


def with_case(tree: Tree, sizes: list[int]) -> None:
    """Another operator, which gives the same for an input of these sizes."""
    text = tree.text(SPEC).replace("_ARGMAX\n", "_ARGMIN\n", 1)
    tree.write("specs/directml/argmin.yaml", text)
    call = "{Axes: [], AxisDirection: INCREASING}"
    case = f"cases: [{{sizes: {sizes}, this: {call}, that: {call}}}]"
    entry = f"  - {{id: same, operator: directml/argmin, decided: So., says: So., {case}}}\n"
    tree.edit(SPEC, "errata: []", f"equivalences:\n{entry}\nerrata: []")


@pytest.mark.parametrize(("rank", "good"), [(0, False), (1, True), (8, True), (9, False)])
def test_ranks_of_cases(small: Tree, rank: int, good: bool) -> None:
    with_case(small, [1] * rank)
    error = f"error[E224]: a case has an input of rank {rank}\n"
    assert small("lint").err.count(error) == (0 if good else 1)


@pytest.mark.parametrize(
    ("sizes", "good"), [([100000], True), ([100001], False), ([0, 100001], False), ([-1], False)]
)
def test_sizes_of_cases(small: Tree, sizes: list[int], good: bool) -> None:
    with_case(small, sizes)
    error = "error[E223]: an input of a case has from 0 to 100000 elements\n"
    assert small("lint").err.count(error) == (0 if good else 1)


@pytest.mark.parametrize("name", ["AxisCount", "InputTensor"])
def test_what_cases_give(small: Tree, name: str) -> None:
    """Attributes that a caller chooses: neither tensors nor lengths."""
    with_case(small, [2, 2])
    small.edit(SPEC, "this: {Axes: [],", f"this: {{{name}: 0, Axes: [],")
    message = f"error[E203]: `{name}` is not an attribute of DML_OPERATOR_ARGMAX\n"
    assert small("lint").err.count(message) == 1


def test_cases_that_take_too_long(small: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an equivalence have a limit of their own, for each of the two operators."""
    with_case(small, [2, 2])
    few = iter([False, False, False, True])
    monkeypatch.setattr(selftest, "Budget", lambda: Budget(50) if next(few, False) else Budget())
    result = small("lint")
    assert result.code == exits.ERRORS
    message = "error[E202]: the constraints take too long on the cases of an equivalence\n"
    assert result.err.startswith(f"{message}  --> specs/directml/argmin.yaml:")


@pytest.mark.parametrize(
    ("require", "message"),
    [
        (
            "'unique([*array, *array])'",
            "this list could have 1024 entries, at most 512 are allowed",
        ),
        ("'all(range(9)[a] > 0 for a in array)'", "an index may not become negative"),
    ],
)
def test_a_shared_constraint_is_as_large_as_its_arguments(
    small: Tree, require: str, message: str
) -> None:
    """And as negative: derived values have more entries than fields, and less than 0 among them."""
    words = f"parameters: [array], require: {require}, allowed: so"
    small.edit(trees.VOCABULARY, "  same_rank:\n", f"  good: {{{words}}}\n  same_rank:\n")
    small.edit(SPEC, "no_repeats(Axes)", "good(Axes)")
    assert message not in small("lint").err
    many = f"[{', '.join(['*Axes'] * 8)}]"
    derived = f"derived:\n  - {{name: many, value: '{many}', doc: Many.}}\n"
    small.edit(SPEC, "\nsupport:\n", f"\n{derived}\nsupport:\n")
    small.edit(SPEC, "good(Axes)", "good(many)")
    assert f"error[E204]: `good` does not fit its arguments: {message}" in small("lint").err


def test_a_case_whose_sizes_cannot_be_computed(small: Tree) -> None:
    """Here for a derived value that they read."""
    with_case(small, [2, 2])
    derived = "derived:\n  - {name: share, value: rank(InputTensor) // len(Axes), doc: A part.}\n"
    small.edit(SPEC, "\nsupport:\n", f"\n{derived}\nsupport:\n")
    small.edit(SPEC, "if d in Axes else", "if share > 0 and d in Axes else")
    small.edit(SPEC, "axes: {value: Axes,", 'axes: {value: "[a for a in Axes if share > 0]",')
    message = "error[E225]: the sizes of OutputTensor of directml/argmax have no value for a case\n"
    assert small("lint").err.startswith(message)


def test_a_case_gives_no_sizes(small: Tree) -> None:
    with_case(small, [2, 2])
    text = small.text("specs/directml/argmin.yaml")
    sizes = re.sub("    sizes: .*\n", "    sizes_argument: output_sizes\n", text)
    small.write("specs/directml/argmin.yaml", sizes)
    message = "error[E224]: a case gives no `output_sizes`, and directml/argmin needs it\n"
    assert message in small("lint").err


def test_a_case_is_of_the_table_of_its_attributes(small: Tree) -> None:
    text = small.text(SPEC)
    start, end = text.index('  - since: "4.1"'), text.index("\nconstraints:")
    out, tables = "OutputTensor: {ranks: 1..8, dtypes: [UINT32]}", ""
    for word, ranks in (("DECREASING", "1..8"), ("INCREASING", "1..2")):
        table = f"InputTensor: {{ranks: {ranks}, dtypes: [FLOAT32]}}, {out}"
        tables += f'  - {{since: "3.0", when: {{AxisDirection: [{word}]}}, {table}}}\n'
    small.write(SPEC, text[:start] + tables + text[end:])
    with_case(small, [1, 1, 1])
    assert "error[E224]: a case has an input of rank 3\n" in small("lint").err


def test_derived_values_do_not_grow_without_end(small: Tree) -> None:
    """Each twice as long, or with twice the digits, as the one above it."""
    for first, next_ in (("[*Axes, *Axes]", "[*{0}, *{0}]"), ("product(Axes) + 2", "{0} * {0}")):
        text = small.text(SPEC)
        lines = [f"  - {{name: d0, value: '{first}', doc: One.}}\n"]
        lines += [
            f"  - {{name: d{i}, value: '{next_.format(f'd{i - 1}')}', doc: One.}}\n"
            for i in range(1, 40)
        ]
        small.write(SPEC, text.replace("\nsupport:", f"\nderived:\n{''.join(lines)}\nsupport:"))
        result = small("lint")
        assert result.code == exits.ERRORS
        assert "at most 512" in result.err or "at most 8192" in result.err
        small.write(SPEC, text)


BOUNDS = [
    ("axes", 64, 64),
    ("[*axes, 1]", 65, 64),
    ("range(3)", 3, 32),
    ("range(1, rank(x) + len(axes))", 128, 32),
    ("[a * a for a in x.sizes]", 64, 128),
    ("[1 for a in [*axes, *axes]]", 128, 1),
    ("axes if flag else [1, 2]", 64, 64),
    ('[greatest("INT8")]', 1, 64),
]


@pytest.mark.parametrize(("text", "entries", "bits"), BOUNDS)
def test_bounds(text: str, entries: int, bits: int) -> None:
    bound = expr.parse(text, FIELDS, "ints", DATA_TYPES).bound
    assert (bound.entries, bound.bits) == (entries, bits)


# --- names that would collide in generated Python --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rank", "unique", "len", "all", "lower", "argmax"])
def test_a_constraint_cannot_take_a_name_of_the_module(small: Tree, name: str) -> None:
    """The id becomes a function: it may not replace what the module imports, calls or defines."""
    small.write(SPEC, small.text(SPEC).replace("axes_in_range", name))
    result = small("generate")
    assert result.code == exits.ERRORS, "accepted"
    assert name in result.err


@pytest.mark.parametrize("name", ["rank", "len", "all", "range"])
def test_a_field_cannot_take_the_name_of_a_function(small: Tree, name: str) -> None:
    """The field becomes a parameter of the rules' functions, which could not call the function any more."""
    small.write(SPEC, small.text(SPEC).replace("AxisCount", name))
    result = small("generate")
    assert result.code == exits.ERRORS, "accepted"
    assert name in result.err


def test_a_field_named_as_a_loop_variable(small: Tree) -> None:
    """A shared constraint with a loop means the same whatever the fields are called."""
    small.edit(
        VOCABULARY,
        "    require: unique(array)\n",
        "    require: all(array[i] < 9 for i in range(len(array)))\n",
    )
    text = (
        small.text(SPEC).replace("Axes", "i").replace("violate: {i: [0, 0]}", "violate: {i: [9]}")
    )
    text = text.replace("    needs: [axes_in_range]\n", "").replace(
        "all(a < rank", "all(a < 9 + rank"
    )
    text = text.replace("violate: {i: [2]}", "violate: {i: [99]}")
    small.write(SPEC, text)
    result = small("lint")
    assert result.code in (exits.OK, exits.ERRORS), result.err


def test_entries_that_may_be_negative_are_no_indices() -> None:
    """ONNX's lists of integers, and lists that are derived."""
    text = "all(x.sizes[a] > 0 for a in axes)"
    expr.parse(text, FIELDS, "bool", DATA_TYPES)
    with pytest.raises(ExpressionError) as caught:
        expr.parse(text, FIELDS, "bool", DATA_TYPES, {"axes"})
    assert caught.value.code == "E202"


def holds_slowly(
    size: int, count: int, window: int, stride: int, dilation: int, start: int
) -> bool:
    return all(
        any(0 <= o * stride - start + j * dilation < size for j in range(window))
        for o in range(count)
    )


def test_windows_hold_input() -> None:
    """The same as looking at each entry of each window."""
    random_ = random.Random(5)
    seen = set()
    for _ in range(20_000):
        axis = (
            random_.randrange(1, 8),
            random_.randrange(1, 9),
            random_.randrange(1, 5),
            random_.randrange(1, 5),
            random_.randrange(1, 12),
            random_.randrange(20),
        )
        wanted = holds_slowly(*axis)
        seen.add(wanted)
        assert rule_functions.windows_hold_input(*[(value,) for value in axis]) is wanted, axis
    assert seen == {True, False}


def addresses(dimensions: list[tuple[int, int]]) -> list[int]:
    """Of all elements, from the stride and the size of each dimension."""
    steps = [[i * stride for i in range(size)] for stride, size in dimensions]
    return [sum(offsets) for offsets in itertools.product(*steps)]


def test_functions_of_memory(data_types: dict[str, Any]) -> None:
    """The same of `implied_bytes` and `distinct_addresses`, with looking at the address of each element."""
    random_ = random.Random(6)
    seen = set()
    for _ in range(4000):
        rank = random_.randrange(4)
        sizes = tuple(random_.randrange(1, 5) for _ in range(rank))
        strides = tuple(random_.choice((0, 1, 2, 3, 4, 5, 9, 12, 20)) for _ in range(rank))
        dimensions = sorted((t, s) for t, s in zip(strides, sizes, strict=True) if s > 1)
        places = addresses(dimensions)
        steps_over = all(
            stride > max(addresses(dimensions[:i])) for i, (stride, _) in enumerate(dimensions)
        )
        unique = len({*places}) == len(places)
        seen.add((steps_over, unique))
        for dtype in ("UINT8", "FLOAT16", "FLOAT64"):
            item = data_types[dtype].bytes
            size = next(n for n in itertools.count(0, 4) if n >= (max(places) + 1) * item)
            x = runtime.Tensor(dtype, sizes, strides, rank, size)
            assert runtime.implied_bytes(x) == size
            assert runtime.distinct_addresses(x) is steps_over
    # Those that step over all inside them share no memory; some that share none do not.
    assert seen == {(True, True), (False, True), (False, False)}


def test_windows_hold_input_soon() -> None:
    """Huge numbers are answered at once, lists of different lengths are refused."""
    huge = 2**32 - 1
    hold = rule_functions.windows_hold_input
    assert not hold((1,), (huge,), (huge,), (1,), (huge,), (huge,))
    assert hold((huge,), (huge,), (huge,), (1,), (huge,), (0,))
    assert not hold((1, 2), (1,), (1,), (1,), (1,), (0,))
    # 140,000 windows in the padding, whose second entries are the input's elements one by one.
    assert hold((139_999,), (139_999,), (2,), (1,), (140_000,), (140_000,))
    assert not hold((139_998,), (139_999,), (2,), (1,), (140_000,), (140_000,))
