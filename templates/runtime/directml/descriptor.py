"""What all DirectML operator descriptions share: DML_BUFFER_TENSOR_DESC, validation and compilation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from specops import arrays, reading, rule_functions, tensor, validation
from specops.directml.tensor_rules import TENSOR_RULES
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood
from specops.tensor import Tensor
from specops.validation import Operator
from specops.vocabulary import DIRECTML_TYPES, TENSOR_PAGE

_UINT64_MAX = 2**64 - 1


def _keep_read(desc: object, name: str, reader: Callable[[object], Any]) -> None:
    """A value as it is read, whatever its form, so that descriptions of the same are equal, and keys.

    One that cannot be read is left as it was given, for `validate` to report.
    """
    with contextlib.suppress(NotUnderstood):
        object.__setattr__(desc, name, reader(getattr(desc, name)))


@dataclass(frozen=True)
class TensorDesc:
    """DML_BUFFER_TENSOR_DESC: a tensor in a buffer.

    Nothing is checked here: `validate` of an operator's description reports all that is wrong with its tensors.

    Args:
        DataType: "FLOAT32", "DML_TENSOR_DATA_TYPE_FLOAT32" or a NumPy dtype.
        Sizes: 1 to 8 sizes, each at least 1, outermost first.
        Strides: elements from one index to the next, one for each dimension; 0 repeats an input along a dimension;
            None for row-major without gaps.
        Flags: "NONE", or "OWNED_BY_DML" for an input.
        DimensionCount: the length of Sizes; None takes it from there.
        TotalTensorSizeInBytes: the size of the buffer; None takes the least, a multiple of 4.
        GuaranteedBaseOffsetAlignment: 0, or a power of two not below the size of an element.

    >>> from specops.directml import TensorDesc
    >>> TensorDesc("FLOAT16", [3, 3]).implied_bytes
    20
    >>> TensorDesc("FLOAT32", [2, 3], Strides=[4, 1]).empty().strides
    (16, 4)
    """

    DataType: Any
    Sizes: Sequence[int]
    Strides: Sequence[int] | None = None
    Flags: Any = "NONE"
    DimensionCount: int | None = None
    TotalTensorSizeInBytes: int | None = None
    GuaranteedBaseOffsetAlignment: int = 0

    def __post_init__(self) -> None:
        _keep_read(self, "DataType", reading.data_type)
        for name in ("Sizes", "Strides"):
            _keep_read(self, name, reading.integers)
        _keep_read(self, "Flags", partial(reading.enum_value, name="DML_TENSOR_FLAGS"))

    @property
    def implied_bytes(self) -> int:
        """The least size of the buffer in bytes, a multiple of 4."""
        return tensor.implied_bytes(self._tensor())

    def empty(self) -> np.ndarray:
        """A new uninitialised array of the described layout.

        Raises:
            ValidationError: the description is itself not valid.
            NoMemoryError: there is no memory for it.
        """
        described = self._tensor()
        return arrays.allocate(described, _NAME, "TensorDesc")

    def view(self, buffer: Any, byte_offset: int = 0) -> np.ndarray:
        """The described view of a raw buffer.

        Args:
            buffer: any contiguous object with the buffer protocol: bytes, bytearray, memoryview, a NumPy array.
            byte_offset: where in it the tensor begins; a multiple of GuaranteedBaseOffsetAlignment, unless that is 0.
                From there on the buffer has TotalTensorSizeInBytes or, where that is None, at least all elements.

        Raises:
            ValidationError: the described tensor is not inside the buffer, or does not begin where the description
                allows it, or the description is itself not valid.
        """
        described = self._tensor()
        try:
            if "O" in (memoryview(buffer).format or ""):
                raise TypeError("references to objects are no bytes")
            raw = np.frombuffer(buffer, np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise ValidationError(
                [_tensor_violation("buffer", f"{error}", "a contiguous buffer of bytes")]
            ) from None
        if self.TotalTensorSizeInBytes is None:
            steps = zip(described.sizes, described.strides, strict=True)
            needed = (sum((n - 1) * s for n, s in steps) + 1) * described.numpy_dtype.itemsize
        else:
            needed = described.total_bytes
        try:
            offset = reading.integer(byte_offset, _UINT64_MAX)
        except NotUnderstood as problem:
            raise ValidationError(
                [_tensor_violation("byte_offset", problem.found, problem.allowed)]
            ) from None
        broken: list[Violation] = []
        if described.alignment and offset % described.alignment:
            allowed = f"a multiple of {described.alignment}"
            broken.append(_tensor_violation("byte_offset", f"{offset}", allowed))
        if offset + needed > raw.size:
            found = f"{max(0, raw.size - offset)} bytes from byte {offset} on"
            broken.append(_tensor_violation("buffer", found, f"at least {needed}"))
        if broken:
            raise ValidationError(broken)
        return arrays.view(raw, offset, described)

    def _tensor(self) -> Tensor:
        """The described tensor, checked for its own sake."""
        found: list[Violation] = []
        described = read_tensor(self, "TensorDesc", _NAME, TENSOR_PAGE, found)
        if described is not None and not found:
            found += (
                validation.rule_violation(rule, described, "TensorDesc", _NAME, TENSOR_PAGE)
                for rule in validation.broken_rules(TENSOR_RULES, described)
            )
        if described is None or found:
            raise ValidationError(found)
        return described


_NAME = "DML_BUFFER_TENSOR_DESC"


def _tensor_violation(field: str, found: str, allowed: str) -> Violation:
    return Violation("tensor_desc", _NAME, field, found, allowed, TENSOR_PAGE)


def read_tensor(
    given: object, field: str, operator: str, page: str, found: list[Violation]
) -> Tensor | None:
    """The tensor that a TensorDesc describes; None with the reasons in `found` where a value is not of its type."""
    if not isinstance(given, TensorDesc):
        text = f"a value of type {type(given).__name__}"
        place = f"{page} {field}"
        found.append(Violation("field_type", operator, field, text, "a TensorDesc", place))
        return None
    before = len(found)

    def read(name: str, reader: Any, *arguments: Any) -> Any:
        try:
            return reader(getattr(given, name), *arguments)
        except NotUnderstood as problem:
            found.append(
                Violation(
                    "field_type",
                    operator,
                    f"{field}.{name}",
                    problem.found,
                    problem.allowed,
                    TENSOR_PAGE,
                )
            )
            return None

    dtype = read("DataType", reading.data_type, DIRECTML_TYPES)
    sizes = read("Sizes", reading.integers)
    strides = read("Strides", reading.integers) if given.Strides is not None else None
    flags = read("Flags", reading.enum_value, "DML_TENSOR_FLAGS")
    count = read("DimensionCount", reading.integer) if given.DimensionCount is not None else None
    total = (
        read("TotalTensorSizeInBytes", reading.integer, _UINT64_MAX)
        if given.TotalTensorSizeInBytes is not None
        else None
    )
    alignment = read("GuaranteedBaseOffsetAlignment", reading.integer)
    if len(found) > before:
        return None
    strides = tensor.packed_strides(sizes) if strides is None else strides
    total = (
        rule_functions.buffer_bytes(sizes, strides, tensor.item_bytes(dtype))
        if total is None
        else total
    )
    return Tensor(
        dtype, sizes, strides, len(sizes) if count is None else count, total, alignment, flags
    )


@dataclass(frozen=True, kw_only=True)
class OperatorDesc:
    """The base of all operator descriptions: a frozen dataclass with the page's fields."""

    OPERATOR: ClassVar[Operator]

    def __post_init__(self) -> None:
        for field in self.OPERATOR.fields:
            if field.kind == "attribute":
                _keep_read(self, field.name, partial(reading.attribute, field))

    def validate(self, feature_level: str | None = None) -> None:
        """Check every rule of the page.

        Args:
            feature_level: "4.1", "4_1" or "DML_FEATURE_LEVEL_4_1" to check against that level's tables; None for the
                general definition, which may allow more than any level.

        Returns:
            None, if no rule is broken.

        Raises:
            ValidationError: with every violation.

        >>> from specops import directml as dml
        >>> description = dml.ArgmaxOperatorDesc(
        ...     InputTensor=dml.TensorDesc("INT64", [2, 3]),
        ...     OutputTensor=dml.TensorDesc("UINT32", [1, 3]),
        ...     Axes=[0],
        ...     AxisDirection="INCREASING",
        ... )
        >>> description.validate("4.1")
        >>> description.validate("3.0")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        specops.errors.ValidationError: DML_OPERATOR_ARGMAX: 1 violation
          InputTensor: found INT64; allowed: FLOAT32, FLOAT16, ... (INT64 from feature level 4.1 on) ...
        """
        self._validated(feature_level)

    def compile(self, feature_level: str | None = None) -> CompiledOperator:
        """Validate once; the result runs many times.

        Args:
            feature_level: as for `validate`.

        Returns:
            The operator, which is called with arrays of the described data types and shapes.

        Raises:
            ValidationError: with every violation.

        >>> import numpy as np
        >>> from specops import directml as dml
        >>> operator = dml.ArgmaxOperatorDesc(
        ...     InputTensor=dml.TensorDesc("FLOAT32", [2, 3]),
        ...     OutputTensor=dml.TensorDesc("UINT32", [1, 3]),
        ...     Axes=[0],
        ...     AxisDirection="INCREASING",
        ... ).compile()
        >>> operator(np.array([[1, 2, 3], [3, 0, 4]], np.float32))
        array([[1, 0, 1]], dtype=uint32)
        """
        return CompiledOperator(self.OPERATOR, self._validated(feature_level))

    def _validated(self, feature_level: object) -> dict[str, Any]:
        operator, found = self.OPERATOR, list[Violation]()
        values: dict[str, Any] = {}
        level = None
        try:
            level = reading.feature_level(feature_level)
        except NotUnderstood as problem:
            found.append(
                operator.violation("feature_level", "feature_level", problem.found, problem.allowed)
            )
        for field in operator.fields:
            given = getattr(self, field.name)
            if field.length_of is not None and given is None:
                continue
            if field.optional is not None and given is None:
                values[field.name] = None
                continue
            if field.type == "tensor":
                read = read_tensor(given, field.name, operator.name, operator.page, found)
                if read is not None:
                    values[field.name] = read
                continue
            try:
                values[field.name] = reading.attribute(field, given)
            except NotUnderstood as problem:
                found.append(
                    operator.violation(
                        "field_type", field.name, problem.found, problem.allowed, field.name
                    )
                )
        operator.complete(values, {f.name for f in operator.fields})
        unknown = frozenset(f.name for f in fields(self) if f.name not in values)
        if found or unknown or not operator.accepts(values, level):
            found += operator.violations(values, level, unknown)
        if found:
            raise ValidationError(found)
        return values
