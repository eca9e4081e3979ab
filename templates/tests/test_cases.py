"""The one body of all generated tests; the tables are in cases/."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cases import TABLES

from specops import SpecopsError, ValidationError
from specops.directml import TensorDesc
from specops.tensor import packed_strides
from specops.vocabulary import DATA_TYPES, FEATURE_LEVELS


def rows(name: str, dialect: str | None = None) -> list[Any]:
    """All rows of one table, named by operator and row."""
    out = []
    for table in TABLES:
        if dialect in (None, table.DIALECT):
            for row in getattr(table, name):
                label = (
                    row["id"]
                    if isinstance(row, dict)
                    else "-".join(str(part) for part in row[:3] if part)
                )
                out.append(pytest.param(table, row, id=f"{table.DIALECT}/{table.FUNCTION}:{label}"))
    return out


def module(table: ModuleType) -> Any:
    return importlib.import_module(
        "specops" if table.DIALECT == "plain" else f"specops.{table.DIALECT}"
    )


def array(tensor: tuple[str, Any]) -> np.ndarray:
    return np.array(tensor[1], DATA_TYPES[tensor[0]].numpy)


def operator(table: ModuleType) -> Any:
    return importlib.import_module(f"specops.{table.DIALECT}.{table.FUNCTION}").OPERATOR


def split(table: ModuleType, example: dict[str, Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The example's inputs and outputs, in the order of the fields."""
    fields = [f for f in operator(table).fields if f.type == "tensor"]
    data = {f.name: array(example["tensors"][f.name]) for f in fields}
    return [data[f.name] for f in fields if f.kind == "input"], [
        data[f.name] for f in fields if f.kind == "output"
    ]


def description(
    table: ModuleType, example: dict[str, Any], patch: dict[str, Any] | None = None
) -> Any:
    """The example's description, with some values changed: "Axes" or "InputTensor.sizes"."""
    tensors = {
        name: {"DataType": tensor[0], "Sizes": list(array(tensor).shape)}
        for name, tensor in example["tensors"].items()
    }
    attributes = dict(example["attributes"])
    for target, value in (patch or {}).items():
        name, _, attribute = target.partition(".")
        if not attribute:
            attributes[name] = value
            continue
        member = MEMBERS[attribute]
        rank = len(tensors[name]["Sizes"])
        tensors[name][member] = (
            [value] * rank if member in ("Sizes", "Strides") and isinstance(value, int) else value
        )
    described = {name: TensorDesc(**members) for name, members in tensors.items()}
    return getattr(module(table), table.DESCRIPTION)(**described, **attributes)


MEMBERS = {
    "dtype": "DataType",
    "sizes": "Sizes",
    "strides": "Strides",
    "flags": "Flags",
    "dimension_count": "DimensionCount",
    "total_bytes": "TotalTensorSizeInBytes",
    "alignment": "GuaranteedBaseOffsetAlignment",
}


@pytest.mark.parametrize(("table", "example"), rows("EXAMPLES"))
def test_function(table: ModuleType, example: dict[str, Any]) -> None:
    """The function gives the example's output, and writes the same into `out`."""
    inputs, outputs = split(table, example)
    function = getattr(module(table), table.FUNCTION)
    extra = (
        {"keepdims": True} if table.DIALECT == "plain" else {"output_dtype": str(outputs[0].dtype)}
    )
    arguments = {**example["arguments"], **extra}
    result = function(*inputs, **arguments)
    assert result.dtype == outputs[0].dtype
    np.testing.assert_array_equal(result, outputs[0], strict=True)
    out = np.full_like(outputs[0], 99)
    assert function(*inputs, **arguments, out=out) is out
    np.testing.assert_array_equal(out, outputs[0], strict=True)


@pytest.mark.parametrize(("table", "example"), rows("EXAMPLES", "directml"))
def test_description(table: ModuleType, example: dict[str, Any]) -> None:
    """The description compiles at the operator's first level, and the compiled operator gives the example's output."""
    inputs, outputs = split(table, example)
    compiled = description(table, example).compile(feature_level=table.INTRODUCED)
    np.testing.assert_array_equal(compiled(*inputs), outputs[0], strict=True)
    out = np.full_like(outputs[0], 99)
    compiled(*inputs, out=out)
    np.testing.assert_array_equal(out, outputs[0], strict=True)


@pytest.mark.parametrize(("table", "row"), rows("VIOLATIONS", "directml"))
def test_violation_of_a_description(
    table: ModuleType, row: tuple[str, str, dict[str, Any]]
) -> None:
    """The change breaks this constraint and no other, and the message names it."""
    id, field, patch = row
    with pytest.raises(ValidationError) as caught:
        description(table, table.EXAMPLES[0], patch).validate()
    assert [(v.id, v.field) for v in caught.value.violations] == [(id, field)]
    violation = caught.value.violations[0]
    assert violation.operator == operator(table).name
    assert violation.page.startswith("https://")
    assert violation.allowed in str(caught.value)
    assert violation.found in str(caught.value)


@pytest.mark.parametrize(("table", "row"), rows("VIOLATIONS", "plain"))
def test_violation_of_a_call(table: ModuleType, row: tuple[str, str, dict[str, Any]]) -> None:
    """The same for functions that have no description: the change is made to the array and the arguments."""
    id, field, patch = row
    example = table.EXAMPLES[0]
    inputs, _ = split(table, example)
    arguments = dict(example["arguments"])
    for target, value in patch.items():
        name, _, attribute = target.partition(".")
        if not attribute:
            arguments[name] = value
        elif (
            name in example["tensors"]
            and attribute == "sizes"
            and name == operator(table).fields[0].name
        ):
            inputs[0] = np.broadcast_to(np.zeros((), inputs[0].dtype), value)
    with pytest.raises(ValidationError) as caught:
        getattr(module(table), table.FUNCTION)(*inputs, **arguments)
    assert [(v.id, v.field) for v in caught.value.violations] == [(id, field)]


@pytest.mark.parametrize(("table", "row"), rows("UNSUPPORTED", "directml"))
def test_unsupported_data_type(table: ModuleType, row: tuple[str, str, str, str | None]) -> None:
    """A level's table refuses what it does not list, and says from which level on it is allowed."""
    level, field, dtype, later = row
    with pytest.raises(ValidationError) as caught:
        description(table, table.EXAMPLES[0], {f"{field}.dtype": dtype}).validate(
            feature_level=level
        )
    (violation,) = caught.value.violations
    assert (violation.id, violation.field, violation.found) == ("supported_data_type", field, dtype)
    assert later is None or f"{dtype} from feature level {later} on" in violation.allowed


@pytest.mark.parametrize(
    "table", [t for t in TABLES if t.DIALECT == "plain"], ids=lambda t: t.FUNCTION
)
def test_data_types_of_a_function(table: ModuleType) -> None:
    """A function takes exactly the data types of its table."""
    inputs, _ = split(table, table.EXAMPLES[0])
    first = operator(table).fields[0].name
    allowed = operator(table).support[0].tensors[first].dtypes
    refused = {row[2] for row in table.UNSUPPORTED if row[1] == first}
    assert {*allowed, *refused} == set(DATA_TYPES)
    for name in refused:
        with pytest.raises(ValidationError):
            getattr(module(table), table.FUNCTION)(inputs[0].astype(DATA_TYPES[name].numpy))


@pytest.mark.parametrize(
    "table", [t for t in TABLES if t.DIALECT == "directml"], ids=lambda t: t.FUNCTION
)
def test_feature_levels(table: ModuleType) -> None:
    """The operator exists from its level on, under each spelling of the level."""
    levels = list(FEATURE_LEVELS)
    desc = description(table, table.EXAMPLES[0])
    for level in levels:
        for spelling in (
            level,
            level.replace(".", "_"),
            f"DML_FEATURE_LEVEL_{level.replace('.', '_')}",
        ):
            if levels.index(level) >= levels.index(table.INTRODUCED):
                desc.validate(feature_level=spelling)
                continue
            with pytest.raises(SpecopsError, match=table.INTRODUCED):
                desc.validate(feature_level=spelling)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: f"{t.DIALECT}/{t.FUNCTION}")
def test_ranks(table: ModuleType) -> None:
    """Each tensor has the dimensions of its table, and no more."""
    if table.DIALECT != "directml":
        return
    for support in operator(table).support:
        for name, allowed in support.tensors.items():
            for rank in (allowed.ranks[0] - 1, allowed.ranks[1] + 1):
                sizes = [1] * rank
                patch = {f"{name}.sizes": sizes, f"{name}.strides": list(packed_strides(sizes))}
                with pytest.raises(ValidationError) as caught:
                    description(table, table.EXAMPLES[0], patch).validate(
                        feature_level=support.since
                    )
                assert "supported_dimension_count" in [v.id for v in caught.value.violations]
