"""What the functions on arrays share: from arrays and arguments to the validated values of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from specops import arrays, tensor, validation
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.tensor import Tensor
from specops.validation import NotUnderstood, Operator


def values(
    operator: Operator,
    inputs: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    attributes: Mapping[str, object],
    outputs: Mapping[str, tuple[object, Callable[..., list[int]], tuple[str, ...]]],
) -> dict[str, Any]:
    """The validated value of each field.

    Args:
        operator: whose fields they are.
        inputs: data type and shape of each input array.
        attributes: the arguments, by the field's name.
        outputs: for each output its data type, the function that gives its sizes, and the fields this function takes.

    Raises:
        ValidationError: with every violation.
    """
    found: list[Violation] = []
    read: dict[str, Any] = {}
    for name, (dtype, shape) in inputs.items():
        read[name] = tensor.packed(arrays.data_type(np.empty(0, dtype), operator, name), shape)
    for field in operator.fields:
        if field.name not in attributes:
            continue
        try:
            if field.axes_of is not None:
                read[field.name] = validation.axes(
                    attributes[field.name], len(read[field.axes_of].sizes)
                )
            else:
                read[field.name] = validation.attribute(field, attributes[field.name])
        except NotUnderstood as problem:
            found.append(
                operator.violation(
                    "field_type", field.name, problem.found, problem.allowed, field.name
                )
            )
    for field in operator.fields:
        if field.length_of in read:
            read[field.name] = len(read[field.length_of])
    for name, (asked, sizes, reads) in outputs.items():
        try:
            dtype_name = validation.data_type(asked)
        except NotUnderstood as problem:
            found.append(
                operator.violation("field_type", name, problem.found, problem.allowed, name)
            )
            continue
        if all(r in read for r in reads):
            read[name] = tensor.packed(dtype_name, tuple(sizes(**{r: read[r] for r in reads})))
    unknown = frozenset(f.name for f in operator.fields if f.name not in read)
    found += operator.violations(read, None, unknown)
    if found:
        raise ValidationError(found)
    return read


def compiled(
    operator: Operator, read: Mapping[str, Any], kernel: Callable[..., None]
) -> CompiledOperator:
    """The operator for validated values."""
    tensors = {
        kind: {f.name: read[f.name] for f in operator.fields if f.kind == kind}
        for kind in ("input", "output")
    }
    return CompiledOperator(operator, tensors["input"], tensors["output"], kernel)


_FROZEN = (str, int, np.integer, np.bool_, np.dtype, type)


def frozen(value: Any) -> Any:
    """The value as part of a cache's key; a TypeError where it has no form in which equal means same."""
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(v if type(v) is int else _index(v) for v in value)
    if value is None or isinstance(value, _FROZEN):
        return value
    raise TypeError(f"{type(value).__name__} is no key")


def _index(value: object) -> int:
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} is no integer")


def cached(make: Any, array: np.ndarray, *arguments: Any) -> Any:
    """`make(dtype, shape, ...)` from its cache, or made anew where an argument cannot be a key of it."""
    try:
        return make(array.dtype, array.shape, *map(frozen, arguments))
    except TypeError:
        return make.__wrapped__(array.dtype, array.shape, *arguments)


class Reduction:
    """A compiled operator whose output keeps reduced axes with size 1, or drops them, as NumPy's functions do."""

    def __init__(
        self, operator: CompiledOperator, output: Tensor, axes: tuple[int, ...], keepdims: bool
    ) -> None:
        self._operator, self._axes, self._keepdims = operator, axes, keepdims
        kept = tuple(n for d, n in enumerate(output.sizes) if keepdims or d not in axes)
        self._output = tensor.packed(output.dtype, kept)

    def __call__(self, x: np.ndarray, out: np.ndarray | None, operator: Operator) -> Any:
        """Run on `x`; a scalar where no axis is left, as NumPy does."""
        if out is None:
            result = self._operator(x)
            return result if self._keepdims else result.reshape(self._output.sizes)[()]
        arrays.check_output(out, (x,), operator, "out")
        arrays.check(out, self._output, operator, "out")
        self._operator(x, out=out if self._keepdims else np.expand_dims(out, self._axes))
        return out
