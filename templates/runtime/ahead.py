"""What first calls would compile, compiled ahead: step by step, for `specops.warm_up` and for `specops warmup`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from specops import request
from specops.catalogue import Entry, entries, find, near
from specops.errors import UsageError, ValidationError
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood, data_type, shown
from specops.request import Asked
from specops.validation import Operator
from specops.vocabulary import DATA_TYPES

ALL = "all"  # of an operator's data types
_KNOWN = [*DATA_TYPES, ALL]


@dataclass(frozen=True, eq=False)
class Step:
    """One operator in one data type, that of its first input."""

    entry: Entry
    operator: Operator
    dtype: str

    def __str__(self) -> str:
        return f"{self.entry.id} {self.dtype}"

    def compile(self) -> bool:
        """Compile what the operator's examples run, and all that other shapes and strides would.

        False where no example can be run in the data type.
        """
        compiled = [self._compiled(call) for call in self.entry.calls]
        for one in compiled:
            if one is not None:
                one.warm_up()
        return any(compiled)

    def _compiled(self, call: dict[str, Any]) -> CompiledOperator | None:
        """The operator of an example, with another data type in place of the first input's."""
        kinds = [kind for kind, _ in call["inputs"].values()]
        inputs = {
            name: (DATA_TYPES[self.dtype if kind == kinds[0] else kind].numpy, tuple(sizes))
            for name, (kind, sizes) in call["inputs"].items()
        }
        outputs = {
            f.name: Asked(f.name in call["outputs"], sizes=call["sizes"].get(f.name))
            for f in self.operator.fields
            if f.kind == "output"
        }
        try:
            return request.compiled(self.operator, inputs, call["attributes"], outputs)
        except ValidationError:  # an example of another data type
            return None


def steps(operators: Iterable[object], dtype: object) -> list[Step]:
    """All that is to be compiled.

    Args:
        operators: names as the catalogue has them; where there is none, all operators in their newest versions.
        dtype: one data type or several. An operator is left out of those that it does not have.

    Raises:
        UsageError: a name or a data type stands for nothing, or no operator has any of the data types.
    """
    names = list(operators) or sorted({e.name for e in entries()})
    chosen = dict.fromkeys(e for name in names for e in _found(name))
    wanted = _data_types(dtype)
    had: set[str] = set()
    out = []
    for entry in chosen:
        operator: Operator = import_module(f"specops.{entry.id.replace('/', '.')}").OPERATOR
        allowed = _allowed(operator)
        had.update(allowed)
        out += [Step(entry, operator, d) for d in (wanted or allowed) if d in allowed]
    if not out:
        those = ", ".join(d for d in DATA_TYPES if d in had)
        raise UsageError(
            f"none of these operators has data type {', '.join(wanted)}; they have {those}"
        )
    return out


def _found(name: object) -> list[Entry]:
    if not isinstance(name, str):
        raise UsageError(f"an operator is given by its name, as 'argmax'; found {shown(name)}")
    return find(name)


def _data_types(given: object) -> list[str]:
    """Those that are named, each once; none where all are."""
    several = _several(given)
    if not several:
        raise UsageError(f"no data type is named; there are {', '.join(_KNOWN)}")
    named = [_data_type(one) for one in several if not _is_all(one)]
    return [] if any(map(_is_all, several)) else list(dict.fromkeys(named))


def _is_all(given: object) -> bool:
    return isinstance(given, str) and given.casefold() == ALL


def _several(given: object) -> list[object]:
    """What is in a collection; of all else, itself."""
    if not isinstance(given, str | bytes | type):
        try:
            several = iter(given)  # type: ignore[call-overload]
        except TypeError:
            return [given]
        return list(several)
    return [given]


def _data_type(given: object) -> str:
    try:
        if isinstance(given, str) and given.upper() in DATA_TYPES:
            return given.upper()
        return data_type(given, _KNOWN)
    except NotUnderstood as problem:
        hint = _hint(given) if isinstance(given, str) else ""
        message = f"there is no data type {problem.found}; there are {problem.allowed}"
        raise UsageError(message, hint) from None


def _hint(given: str) -> str:
    """What may have been meant by a string that is no data type."""
    if any(e.is_called(given) for e in entries()):
        return f"`{given}` is an operator, and operators come first"
    if "," in given:
        return "several are given each by itself, without commas"
    return near(given, _KNOWN)


def _allowed(operator: Operator) -> list[str]:
    """The data types of the first input."""
    first = next(f.name for f in operator.fields if f.kind == "input")
    return list(operator.data_types(first))
