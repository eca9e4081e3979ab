"""What a field can be: how each type is written in a spec, in expressions, and in Python."""

from __future__ import annotations

from typing import NamedTuple

_UNSIGNED, _SIGNED = (0, 2**32 - 1), (-(2**63), 2**63 - 1)


class FieldType(NamedTuple):
    """One type of fields.

    Args:
        expression: its type in the constraint language.
        rules: its Python type in the rules' functions.
        arguments: its Python type where callers give it.
        default: the Python type of a default that is no expression; None where there is none.
        written: such a default in words.
        range: of its numbers, both ends in it.
    """

    expression: str
    rules: str
    arguments: str
    default: type | None = None
    written: str = ""
    range: tuple[int, int] | None = None

    @property
    def allowed(self) -> str:
        """Such a default in words, with its range; nothing where there is none."""
        return self.written and self.written + (
            " from {} to {}".format(*self.range) if self.range else ""
        )

    @property
    def given(self) -> str:
        """What an example gives, in words with its range."""
        if self.expression == "ints":
            return "a list in brackets, of whole numbers from {} to {}".format(*self.range or ())
        return "a finite number" if self.expression == "float" else self.allowed


_INTS = FieldType("ints", "tuple[int, ...]", "Sequence[int]")
_INT = FieldType("int", "int", "int", int, "a whole number")

FIELD_TYPES = {
    "tensor": FieldType("tensor", "Tensor", "TensorDesc"),
    "uint": _INT._replace(range=_UNSIGNED),
    "uint[]": _INTS._replace(range=_UNSIGNED),
    "int": _INT._replace(range=_SIGNED),
    "int[]": _INTS._replace(range=_SIGNED),
    "float": FieldType("float", "float", "float", float, "a number with a point"),
    "bool": FieldType("bool", "bool", "bool | int", bool, "true or false"),
}
_ENUM = FieldType("str", "str", "str | int", str)


def field_type(name: str) -> FieldType:
    """One of these, or that of every enum."""
    return FIELD_TYPES.get(name, _ENUM)
