"""The one body of all generated tests; the tables are in cases/."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from cases import TABLES

from specops import SpecopsError, ValidationError, Violation
from specops.operator import CompiledOperator
from specops.request import Asked, compiled
from specops.tensor import packed_strides
from specops.vocabulary import DATA_TYPES, FEATURE_LEVELS

# Of a table that is for all values of attributes.
_ALL: Mapping[str, Any] = MappingProxyType({})


class Ranks(NamedTuple):
    """A row of RANKS; `chosen` are attributes that the level's table is for."""

    level: str | None
    tensor: str
    fewest: int
    most: int
    chosen: Mapping[str, Any] = _ALL


class Unsupported(NamedTuple):
    """A row of UNSUPPORTED."""

    level: str | None
    tensor: str
    dtype: str
    later: str | None
    chosen: Mapping[str, Any] = _ALL


class Caller(NamedTuple):
    """How an operator is reached: `other` of EQUIVALENCES."""

    dialect: str
    module: str
    function: str
    version: int | None


def ranks(table: ModuleType) -> list[Ranks]:
    return [Ranks(*row) for row in table.RANKS]


def unsupported(table: ModuleType) -> list[Unsupported]:
    return [Unsupported(*row) for row in table.UNSUPPORTED]


def label(table: ModuleType) -> str:
    return f"{table.DIALECT}/{table.MODULE}"


def rows(name: str, *dialects: str) -> list[Any]:
    """All rows of one table, named by operator and row; of these dialects, or of all."""
    out = []
    for table in TABLES:
        if not dialects or table.DIALECT in dialects:
            for row in getattr(table, name):
                parts = [row["id"]] if isinstance(row, dict) else [str(p) for p in row[:3] if p]
                out.append(pytest.param(table, row, id=f"{label(table)}:{'-'.join(parts)}"))
    return out


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def package(dialect: str) -> Any:
    return importlib.import_module("specops" if dialect == "plain" else f"specops.{dialect}")


def function(dialect: str, name: str, version: int | None) -> Any:
    """An operator's function; one of ONNX at the operator set that brought the version."""
    found = getattr(package(dialect), name)
    return found if version is None else partial(found, opset=version)


def function_of(table: ModuleType) -> Any:
    return function(table.DIALECT, table.FUNCTION, table.VERSION)


def operator(table: ModuleType) -> Any:
    return operator_of(table.DIALECT, table.MODULE)


def operator_of(dialect: str, name: str) -> Any:
    return importlib.import_module(f"specops.{dialect}.{name}").OPERATOR


def array(tensor: tuple[str, Any]) -> np.ndarray:
    return np.array(tensor[1], DATA_TYPES[tensor[0]].numpy)


def names(table: ModuleType, kind: str) -> list[str]:
    """The tensors of a kind."""
    return [f.name for f in operator(table).fields if f.kind == kind and f.type == "tensor"]


def inputs_of(table: ModuleType, example: dict[str, Any]) -> list[np.ndarray]:
    return [array(example["tensors"][name]) for name in names(table, "input")]


def outputs_of(table: ModuleType, example: dict[str, Any]) -> list[tuple[str, Any]]:
    """The outputs that the example has, each as (data type, values)."""
    return [example["tensors"][n] for n in names(table, "output") if n in example["tensors"]]


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def check(table: ModuleType, example: dict[str, Any], result: Any) -> None:
    """The outputs are those of the example: exactly, or within the rounding of their data type."""
    wanted = outputs_of(table, example)
    results = listed(result)
    assert len(results) == len(wanted)
    for found, (dtype, values) in zip(results, wanted, strict=True):
        assert found.dtype == DATA_TYPES[dtype].numpy
        assert found.shape == np.shape(values)
        if table.EXACT or DATA_TYPES[dtype].kind != "float":
            np.testing.assert_array_equal(numbers(found), numbers(array((dtype, values))))
        else:
            close(found, np.array(values, np.float64))


def numbers(found: np.ndarray) -> np.ndarray:
    """All elements in a row, in a type whose NaN NumPy knows."""
    flat = np.ravel(found)
    return flat.astype(np.float32) if flat.dtype == ml_dtypes.bfloat16 else flat


# One unit in the last place of 1, for each type that results are rounded to.
PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def close(found: np.ndarray, exact: np.ndarray) -> None:
    """Within half a unit in the last place beside the error of computing in float32 (or of a few units in float64).

    Logarithms are differences of larger numbers: those near 0 are right to a unit in the last place of 1.
    """
    computed = found.dtype if found.dtype == np.float64 else np.dtype(np.float32)
    with np.errstate(over="ignore"):
        rounded = exact.astype(found.dtype).astype(np.float64)
    exact = np.where(np.isinf(rounded), rounded, exact)
    relative = PRECISION[found.dtype.name] / 2 + (2e-15 if computed == np.float64 else 1e-6)
    least = float(ml_dtypes.finfo(found.dtype).smallest_subnormal)
    absolute = PRECISION[computed.name] if (exact < 0).any() else least
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=relative, atol=absolute)


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
    directml = package("directml")
    described = {name: directml.TensorDesc(**members) for name, members in tensors.items()}
    return getattr(directml, table.DESCRIPTION)(**described, **attributes)


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
    """The function gives the example's outputs, and writes the same into `out`."""
    inputs, wanted = inputs_of(table, example), outputs_of(table, example)
    call = partial(function_of(table), *inputs, **example["arguments"])
    check(table, example, call())
    outs = tuple(np.full_like(array(tensor), 99) for tensor in wanted)
    out = outs if len(outs) > 1 else outs[0]
    assert call(out=out) is out
    check(table, example, out)


@pytest.mark.parametrize(("table", "example"), rows("EXAMPLES", "directml"))
def test_description(table: ModuleType, example: dict[str, Any]) -> None:
    """The description compiles at the first level that has its data types, and the compiled operator gives the same."""
    inputs, wanted = inputs_of(table, example), outputs_of(table, example)
    compiled = description(table, example).compile(feature_level=example["level"])
    check(table, example, compiled(*inputs))
    outs = tuple(np.full_like(array(tensor), 99) for tensor in wanted)
    out = outs if len(outs) > 1 else outs[0]
    compiled(*inputs, out=out)
    check(table, example, out)


@pytest.mark.parametrize(("table", "example"), rows("EXAMPLES", "onnx"))
def test_compiled_node(table: ModuleType, example: dict[str, Any]) -> None:
    """The operator that holds a node's attributes compiles for a data type and a shape, and gives the same."""
    inputs = inputs_of(table, example)
    name = operator(table).name.split("-")[0]
    node = getattr(package("onnx"), name)(**example["arguments"], opset=table.VERSION)
    first, *more = [(x.dtype, x.shape) for x in inputs]
    check(table, example, node.compile(*first, *more)(*inputs))


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


def changed(table: ModuleType, patch: dict[str, Any]) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The arrays and the arguments of the first example with some values changed."""
    example = table.EXAMPLES[0]
    inputs = dict(zip(names(table, "input"), inputs_of(table, example), strict=True))
    arguments = dict(example["arguments"])
    for target, value in patch.items():
        name, _, attribute = target.partition(".")
        if not attribute:
            arguments[snake_case(name)] = value
            continue
        x = inputs[name]
        dtype, sizes = x.dtype, x.shape
        if attribute == "dtype":
            dtype = DATA_TYPES[value].numpy
        else:
            sizes = [value] * x.ndim if isinstance(value, int) else value
        inputs[name] = np.broadcast_to(np.zeros((), dtype), sizes)
    return list(inputs.values()), arguments


@pytest.mark.parametrize(("table", "row"), rows("VIOLATIONS", "onnx", "plain"))
def test_violation_of_a_call(table: ModuleType, row: tuple[str, str, dict[str, Any]]) -> None:
    """The same for functions that have no description: the change is made to the array and the arguments."""
    id, field, patch = row
    inputs, arguments = changed(table, patch)
    with pytest.raises(ValidationError) as caught:
        function_of(table)(*inputs, **arguments)
    assert [(v.id, v.field) for v in caught.value.violations] == [(id, field)]


@pytest.mark.parametrize(("table", "row"), rows("UNSUPPORTED", "directml"))
def test_unsupported_data_type(table: ModuleType, row: tuple[Any, ...]) -> None:
    """A level's table refuses what it does not list, and says from which level on it is allowed."""
    level, field, dtype, later, chosen = Unsupported(*row)
    example = table.EXAMPLES[0]
    values = {**example["attributes"], **chosen}
    patch = {f"{field}.dtype": dtype, **chosen}
    allowed = next(s for s in operator(table).support if s.since == level and s.holds(values))
    for name, (own, _) in example["tensors"].items():  # the others are of types that the level has
        if name != field and own not in allowed.tensors[name].dtypes:
            patch[f"{name}.dtype"] = allowed.tensors[name].dtypes[0]
    with pytest.raises(ValidationError) as caught:
        description(table, example, patch).validate(feature_level=level)
    found = [v for v in caught.value.violations if v.id == "supported_data_type"]
    assert [(v.field, v.found) for v in found] == [(field, dtype)]
    assert later is None or f"{dtype} from feature level {later} on" in found[0].allowed


@pytest.mark.parametrize("table", [t for t in TABLES if t.DIALECT != "directml"], ids=label)
def test_data_types_of_a_function(table: ModuleType) -> None:
    """A function takes exactly the data types of its table; for those that it takes nothing is compiled here."""
    about = {id for id, _, patch in table.VIOLATIONS if any(p.endswith("dtype") for p in patch)}
    about |= {"same_dtype"}
    for field in names(table, "input"):
        allowed = operator(table).support[0].tensors[field].dtypes
        refused = {u.dtype for u in unsupported(table) if u.tensor == field}
        assert {*allowed, *refused} == set(DATA_TYPES)
        for name in allowed:
            found = [(v.id, v.field) for v in violations(partial(lowered, table, field, name))]
            assert ("supported_data_type", field) not in found
            assert {id for id, _ in found} <= about
        for name in refused:
            inputs, arguments = changed(table, {f"{field}.dtype": name})
            with pytest.raises(ValidationError) as caught:
                function_of(table)(*inputs, **arguments)
            found = [(v.id, v.field) for v in caught.value.violations]
            assert ("supported_data_type", field) in found
            assert {id for id, _ in found} <= {"supported_data_type", *about}


def lowered(table: ModuleType, field: str, dtype: str) -> CompiledOperator:
    """The operator of the first example, an input of another data type: as its function makes it, before it runs."""
    op, example = operator(table), table.EXAMPLES[0]
    tensors = {
        n: (DATA_TYPES[t].numpy, np.shape(data)) for n, (t, data) in example["tensors"].items()
    }
    inputs = {n: tensors[n] for n in names(table, "input")}
    inputs[field] = (DATA_TYPES[dtype].numpy, inputs[field][1])
    arguments = {f.name: snake_case(f.name) for f in op.told}
    attributes = {
        name: example["arguments"][argument]
        for name, argument in arguments.items()
        if argument in example["arguments"]
    }
    outputs = {
        f.name: Asked(sizes=None if f.sizes else tensors[f.name][1])
        for f in op.fields
        if f.kind == "output" and f.name in tensors
    }
    return compiled(op, inputs, attributes, outputs)


@pytest.mark.parametrize("table", [t for t in TABLES if t.DIALECT == "directml"], ids=label)
def test_feature_levels(table: ModuleType) -> None:
    """The operator exists from its level on, under each spelling of the level."""
    at = FEATURE_LEVELS.index
    example = table.EXAMPLES[0]
    desc = description(table, example)
    for level in FEATURE_LEVELS:
        for spelling in (
            level,
            level.replace(".", "_"),
            f"DML_FEATURE_LEVEL_{level.replace('.', '_')}",
        ):
            if example["level"] and at(level) >= at(example["level"]):
                desc.validate(feature_level=spelling)
            elif at(level) < at(table.INTRODUCED):
                with pytest.raises(SpecopsError, match=table.INTRODUCED):
                    desc.validate(feature_level=spelling)


def violations(call: Any) -> list[Violation]:
    try:
        call()
    except ValidationError as error:
        return list(error.violations)
    return []


def broken(call: Any) -> list[str]:
    """The constraints that a call breaks."""
    return [v.id for v in violations(call)]


@pytest.mark.parametrize(("table", "row"), rows("RANKS", "directml"))
def test_supported_data_types(table: ModuleType, row: tuple[Any, ...]) -> None:
    """A level's table takes all that it does not refuse."""
    level, field, _, _, chosen = Ranks(*row)
    example = table.EXAMPLES[0]
    key = (level, field, chosen)
    refused = {u.dtype for u in unsupported(table) if (u.level, u.tensor, u.chosen) == key}
    assert field in example["tensors"] and refused < set(DATA_TYPES)
    for dtype in set(DATA_TYPES) - refused:
        desc = description(table, example, {f"{field}.dtype": dtype, **chosen})
        found = violations(partial(desc.validate, feature_level=level))
        assert ("supported_data_type", field) not in [(v.id, v.field) for v in found]


@pytest.mark.parametrize(("table", "row"), rows("RANKS", "directml"))
def test_ranks(table: ModuleType, row: tuple[Any, ...]) -> None:
    """A level's table gives the fewest and the most dimensions of a tensor; the others are as many here."""
    level, field, low, high, chosen = Ranks(*row)
    example = table.EXAMPLES[0]
    assert field in example["tensors"]
    together = [r for r in ranks(table) if (r.level, r.chosen) == (level, chosen)]
    allowed = {r.tensor: (r.fewest, r.most) for r in together}
    for rank in (low - 1, low, high, high + 1):
        patch = dict(chosen)
        for name in example["tensors"]:
            own = rank if name == field else min(max(rank, allowed[name][0]), allowed[name][1])
            patch |= {
                f"{name}.sizes": [1] * own,
                f"{name}.strides": list(packed_strides([1] * own)),
            }
        found = broken(partial(description(table, example, patch).validate, feature_level=level))
        assert ("supported_dimension_count" in found) == (not low <= rank <= high)


@pytest.mark.parametrize("table", [t for t in TABLES if t.DIALECT != "directml"], ids=label)
def test_ranks_of_a_function(table: ModuleType) -> None:
    """The same for functions, as far as NumPy has arrays of so many dimensions."""
    first = names(table, "input")[0]
    ((low, high),) = ((r.fewest, r.most) for r in ranks(table) if r.tensor == first)
    for rank in {low - 1, low, high, high + 1} & {*range(65)}:
        inputs, arguments = changed(table, {f"{first}.sizes": [1] * rank})
        call = partial(function_of(table), *inputs, **arguments)
        assert ("supported_dimension_count" in broken(call)) == (not low <= rank <= high)


@pytest.mark.parametrize(("table", "row"), rows("NEEDS"))
def test_needs(table: ModuleType, row: tuple[str, str, dict[str, Any]]) -> None:
    """A rule is not asked where another that it needs is broken: what breaks both gives no message of its own."""
    id, need, patch = row
    if table.DIALECT == "directml":
        found = broken(description(table, table.EXAMPLES[0], patch).validate)
    else:
        inputs, arguments = changed(table, patch)
        found = broken(partial(function_of(table), *inputs, **arguments))
    assert need in found
    assert id not in found


def drawn(sizes: list[int], name: str, nan: bool) -> np.ndarray:
    """Data with many ties, infinities among floats, and NaN where it may be."""
    random = np.random.default_rng(len(sizes) + sum(sizes))
    dtype = DATA_TYPES[name]
    low = 0 if dtype.kind in ("unsigned", "bool") else -3
    data = random.integers(low, 2 if dtype.kind == "bool" else 4, sizes).astype(dtype.numpy)
    if dtype.kind == "float":
        special = [np.inf, -np.inf, -0.0, 0.5, *([np.nan, -np.nan] if nan else [])]
        places = random.random(sizes) < 0.15
        data[places] = random.choice(special, int(places.sum())).astype(dtype.numpy)
    return data


def first_types(op: Any, arguments: dict[str, Any]) -> set[str]:
    """The data types that the first input may have with these arguments."""
    first = next(f.name for f in op.fields if f.kind == "input")
    told = {f.name: arguments.get(snake_case(f.name), f.default) for f in op.told}
    return set(next(s for s in op.support if s.holds(told)).tensors[first].dtypes)


@pytest.mark.parametrize(("table", "row"), rows("EQUIVALENCES"))
def test_equivalence(table: ModuleType, row: dict[str, Any]) -> None:
    """Both operators give the same, for each data type that both have."""
    caller = Caller(*row["other"])
    other = operator_of(caller.dialect, caller.module)
    types = [
        first_types(op, row[call]) for op, call in ((operator(table), "this"), (other, "that"))
    ]
    assert types[0] & types[1]
    for dtype in sorted(types[0] & types[1]):
        x = drawn(row["sizes"], dtype, row["nan"])
        here = listed(function_of(table)(x, **row["this"]))
        there = listed(function(caller.dialect, caller.function, caller.version)(x, **row["that"]))
        assert len(here) == len(there)
        for a, b in zip(here, there, strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b), err_msg=dtype)
