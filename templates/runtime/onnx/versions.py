"""The versions of an ONNX operator: which one is in force at an operator set, and what each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from specops import reading, request, types
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood
from specops.request import Asked
from specops.validation import Operator
from specops.version_words import within
from specops.vocabulary import NEWEST_OPSET


class Versions:
    """All versions of one operator.

    Args:
        name: of the operator.
        operators: each version by the operator set that brought it, oldest first.
    """

    def __init__(self, name: str, operators: Mapping[int, Operator]) -> None:
        self.name, self.operators = name, operators
        self.newest = operators[max(operators)]

    def in_force(self, opset: object) -> Operator:
        """The newest version that is no newer than the operator set; None means the newest set.

        Raises:
            ValidationError: the set is not known, or older than the operator.
        """
        first = min(self.operators)
        if opset is None:
            return self.newest
        try:
            number = reading.integer(opset, NEWEST_OPSET, first)
        except NotUnderstood as problem:
            allowed = f"{problem.allowed}: {self.name} is there from {first} on"
            raise self.newest.refusal("opset", "opset", problem.found, allowed) from None
        return self.operators[max(v for v in self.operators if v <= number)]

    def unknown(self, operator: Operator, name: str) -> Violation:
        """That this version lacks an attribute or an output, with those that have it."""
        having = [v for v, o in self.operators.items() if any(f.name == name for f in o.fields)]
        own = next((f.kind for f in operator.fields if f.name == name), None)
        if own is not None:  # an input in some versions and an attribute in others
            inputs = [
                v
                for v, o in self.operators.items()
                if any(f.name == name and f.kind == "input" for f in o.fields)
            ]
            found = "an attribute" if own == "input" else "an input"
            when = f"from version {min(inputs)} on" if own == "input" else f"before {min(inputs)}"
            return operator.violation("version", name, found, f"an {own}, which it is {when}")
        allowed = f"{self.name} has it {within(having, list(self.operators))}"
        return operator.violation("version", name, f"{operator.name} has no {name}", allowed)


def _declined(wanted: object) -> bool:
    return isinstance(wanted, int | np.bool_) and not wanted


class VersionedOperator:
    """The attributes of a node, and the version of the operator that is in force."""

    def __init__(
        self,
        versions: Versions,
        opset: object,
        attributes: Mapping[str, object],
        outputs: Mapping[str, Asked],
    ) -> None:
        self._operator = operator = versions.in_force(opset)
        names = {f.name for f in operator.fields}
        self._attributes = {n: v for n, v in attributes.items() if v is not None}
        self._outputs = {n: asked for n, asked in outputs.items() if not _declined(asked.wanted)}
        given = [*self._attributes, *self._outputs]
        found = [versions.unknown(operator, name) for name in given if name not in names]
        if found:
            raise ValidationError(found)

    def __repr__(self) -> str:
        given = [f"{n}={v!r}" for n, v in self._attributes.items()]
        return f"<{self._operator.name}({', '.join([*given, *self._outputs])})>"

    def compile(
        self, dtype: Any, shape: types.Integers, *more: tuple[Any, types.Integers]
    ) -> CompiledOperator:
        """Validate once for inputs of a data type and a shape; the result runs many times.

        Args:
            dtype: a NumPy dtype or its name; "bfloat16" is that of ml_dtypes.
            shape: the sizes of the input.
            more: data type and shape of each further input array.

        Raises:
            ValidationError: with every violation.
        """
        operator = self._operator
        names = [f.name for f in operator.fields if f.kind == "input" and f.type == "tensor"]
        given = [(dtype, shape), *more]
        if len(given) != len(names):
            allowed = f"{len(names)}, for {', '.join(names)}"
            raise operator.refusal("input_count", ", ".join(names), f"{len(given)} arrays", allowed)
        inputs = {}
        for name, described in zip(names, given, strict=True):
            if not isinstance(described, tuple | list) or len(described) != 2:
                raise operator.refusal(
                    "field_type", name, reading.shown(described), "a data type and a shape"
                )
            own, sizes = described
            try:
                # Where it is none that a tensor has, that is told below, as of an array.
                known = reading.numpy_dtype(own, operator.data_types(name))
                inputs[name] = (known, reading.integers(sizes, np.iinfo(np.int64).max))
            except NotUnderstood as problem:
                raise operator.refusal("field_type", name, problem.found, problem.allowed) from None
        return request.compiled(operator, inputs, self._attributes, self._outputs)
