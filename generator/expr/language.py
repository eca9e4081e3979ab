"""What expressions are made of: types, functions, operators, and what is said of a mistake."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

Type = str  # "int", "float", "bool", "str", "dtype", "ints", "tensor"

ATTRIBUTES: dict[str, Type] = {
    "sizes": "ints",
    "strides": "ints",
    "dtype": "dtype",
    "flags": "str",
    "dimension_count": "int",
    "total_bytes": "int",
    "alignment": "int",
}

# What descriptions of DirectML tell of a tensor: functions take arrays with any.
DESCRIBED = ("strides", "flags", "total_bytes", "alignment")

FUNCTIONS: dict[str, tuple[tuple[Type, ...], Type]] = {
    "rank": (("tensor",), "int"),
    "len": (("ints",), "int"),
    "range": (("int",), "ints"),
    "min": (("int", "int"), "int"),
    "max": (("int", "int"), "int"),
    "unique": (("ints",), "bool"),
    "product": (("ints",), "int"),
    "all": (("bools",), "bool"),
    "any": (("bools",), "bool"),
    "greatest": (("dtype",), "int"),
    "item_bytes": (("dtype",), "int"),
    "implied_bytes": (("tensor",), "int"),
    "distinct_addresses": (("tensor",), "bool"),
    "power_of_two": (("int",), "bool"),
    "windows_hold_input": (("ints",) * 6, "bool"),
}

# What a function of a tensor reads of it.
READS = {
    "rank": ("sizes",),
    "distinct_addresses": ("sizes", "strides"),
    "implied_bytes": ("sizes", "strides", "dtype"),
}

ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class ExpressionError(Exception):
    """What is wrong with an expression, and where in its text."""

    def __init__(
        self, code: str, message: str, label: str, offset: int = 0, length: int = 1, help: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.label = code, message, label
        self.offset, self.length, self.help = offset, length, help


def in_words(type: Type) -> str:
    names = {
        "bool": "a condition",
        "int": "a whole number",
        "float": "a float",
        "number": "a number",
        "ints": "a list of numbers",
        "str": "a word",
        "dtype": "a data type",
        "tensor": "a tensor",
    }
    return names.get(type, "a condition for each element")
