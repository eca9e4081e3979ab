"""A wrong row of a table of cases turns its test red: the generated tests compare all that their rows say."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trees

Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def body() -> Iterator[ModuleType]:
    """The one body of the generated tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(trees.PROJECT / "generated" / "tests")
        yield importlib.import_module("test_cases")


ARGMAX, PLAIN, POOL = "directml_argmax", "plain_argmax", "onnx_max_pool_12"
# Both rules are broken, neither needs the other.
BOTH = {"Axes": [0, 0], "AxisCount": 2, "InputTensor.alignment": 12}
# A test, a table, a place in it, and what is wrong there.
WRONG: list[tuple[str, str, Place, Any]] = [
    ("test_function", ARGMAX, ("EXAMPLES", 0, "tensors", "OutputTensor", 0), "UINT64"),
    ("test_function", ARGMAX, ("EXAMPLES", 0, "tensors", "OutputTensor", 1), [1, 2, 1]),
    ("test_function", ARGMAX, ("EXAMPLES", 2, "tensors", "OutputTensor", 1), [[5]]),
    ("test_function", "plain_softmax", ("EXAMPLES", 0, "tensors", "out", 1, 0, 0), 0.0900309),
    ("test_function", "plain_max_pool", ("EXAMPLES", 2, "arguments", "indices"), False),
    ("test_description", ARGMAX, ("EXAMPLES", 3, "attributes", "AxisDirection"), "DECREASING"),
    ("test_description", ARGMAX, ("EXAMPLES", 0, "level"), "2.1"),
    ("test_description", ARGMAX, ("EXAMPLES", 2, "tensors", "OutputTensor", 1), [[5]]),
    ("test_compiled_node", "onnx_softmax_13", ("EXAMPLES", 0, "arguments", "axis"), 0),
    ("test_violation_of_a_description", ARGMAX, ("VIOLATIONS", 0, 0), "axes_unique"),
    ("test_violation_of_a_description", ARGMAX, ("VIOLATIONS", 0, 1), "Axes"),
    ("test_violation_of_a_description", ARGMAX, ("VIOLATIONS", 0, 2), {}),
    ("test_violation_of_a_description", ARGMAX, ("VIOLATIONS", 0, 2), BOTH),
    ("test_violation_of_a_call", PLAIN, ("VIOLATIONS", 0, 0), "axis_unique"),
    ("test_violation_of_a_call", PLAIN, ("VIOLATIONS", 0, 1), "x"),
    ("test_violation_of_a_call", PLAIN, ("VIOLATIONS", 0, 2), {}),
    ("test_unsupported_data_type", ARGMAX, ("UNSUPPORTED", 0, 2), "FLOAT16"),
    ("test_unsupported_data_type", ARGMAX, ("UNSUPPORTED", 13, 3), "4.0"),
    ("test_supported_data_types", ARGMAX, ("UNSUPPORTED", 0, 2), "BOOL"),
    ("test_data_types_of_a_function", POOL, ("UNSUPPORTED", 0, 2), "UINT16"),
    ("test_data_types_of_a_function", POOL, ("UNSUPPORTED", -1), (None, "X", "FLOAT32", None)),
    ("test_feature_levels", ARGMAX, ("EXAMPLES", 0, "level"), "2.1"),
    ("test_feature_levels", ARGMAX, ("INTRODUCED",), "2.1"),
    *[("test_ranks", ARGMAX, ("RANKS", 2, 2), wrong) for wrong in (0, 2)],
    *[("test_ranks", ARGMAX, ("RANKS", 2, 3), wrong) for wrong in (7, 9)],
    *[("test_ranks_of_a_function", POOL, ("RANKS", 0, 2), wrong) for wrong in (2, 4)],
    *[("test_ranks_of_a_function", POOL, ("RANKS", 0, 3), wrong) for wrong in (7, 9)],
    ("test_needs", ARGMAX, ("NEEDS", 1, 1), "axes_in_range"),
    ("test_needs", ARGMAX, ("NEEDS", 1), ("alignment", "axes_unique", BOTH)),
    ("test_needs", PLAIN, ("NEEDS", 0, 0), "axis_in_range"),
    ("test_needs", PLAIN, ("NEEDS", 0, 1), "axis_unique"),
    ("test_equivalence", PLAIN, ("EQUIVALENCES", 0, "that", "axis"), 0),
    ("test_equivalence", PLAIN, ("EQUIVALENCES", 0, "that", "select_last_index"), True),
    ("test_equivalence", PLAIN, ("EQUIVALENCES", 3, "nan"), True),
]


def put(value: Any, place: Place, other: Any) -> Any:
    """The value with another part at this place."""
    if not place:
        return other
    if isinstance(value, dict):
        return {k: put(v, place[1:], other) if k == place[0] else v for k, v in value.items()}
    at = range(len(value))[int(place[0])]
    return type(value)(put(v, place[1:], other) if i == at else v for i, v in enumerate(value))


@pytest.mark.parametrize(("test", "table", "place", "wrong"), WRONG)
def test_a_wrong_row(body: ModuleType, test: str, table: str, place: Place, wrong: Any) -> None:
    """The test is green with the table as it is, and red with this."""
    right = vars(importlib.import_module(f"cases.{table}"))
    run = getattr(body, test)
    rows = "RANKS" if test == "test_supported_data_types" else str(place[0])
    takes_a_row = len(inspect.signature(run).parameters) > 1

    def of(values: dict[str, Any]) -> None:
        chosen = [values[rows][int(place[1])]] if takes_a_row else []
        run(SimpleNamespace(**values), *chosen)

    of(right)
    # A level that is too old is refused by the package itself.
    red = ValueError if "level" in place else (AssertionError, pytest.fail.Exception)
    with pytest.raises(red):
        of(put(right, place, wrong))


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "written and not returned": lambda right, out: right(out=out).copy(),
    "right where it is given": lambda right, out: right() + 1 if out is None else right(out=out),
    "right where none is given": lambda right, out: right() if out is None else out,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_out(body: ModuleType, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """The array that a caller gives holds the result, and is what a function returns."""
    cases = importlib.import_module(f"cases.{ARGMAX}")
    example, wrong = cases.EXAMPLES[0], WAYS[way]
    call = body.function_of(cases)

    def function(x: Any, out: Any = None, **arguments: Any) -> Any:
        return wrong(partial(call, x, **arguments), out)

    compiled = body.description(cases, example).compile(feature_level=None)
    described = SimpleNamespace(
        compile=lambda **_: lambda x, out=None: wrong(partial(compiled, x), out)
    )
    monkeypatch.setattr(body, "function_of", lambda _: function)
    monkeypatch.setattr(body, "description", lambda *_: described)
    with pytest.raises(AssertionError):
        body.test_function(cases, example)
    if way != "written and not returned":
        with pytest.raises(AssertionError):
            body.test_description(cases, example)


def test_each_data_type_is_compared(body: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """That both operators of an equivalence have."""
    cases = importlib.import_module(f"cases.{PLAIN}")
    row, found = cases.EQUIVALENCES[3], []
    call = body.function_of(cases)

    def function(x: Any, **_: Any) -> Any:
        found.append(x.dtype.name)
        return call(x, **row["this"])

    monkeypatch.setattr(body, "function", lambda *_: function)
    monkeypatch.setattr(body, "function_of", lambda _: function)
    body.test_equivalence(cases, row)
    whole = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    assert sorted(found) == sorted([*whole, "float16", "float32"] * 2)


@pytest.mark.parametrize("dtype", ["INT8", "UINT64", "FLOAT32"])
def test_data_of_equivalences(body: ModuleType, dtype: str) -> None:
    """Several values, and each of them several times."""
    values, counts = np.unique(body.drawn([40], dtype, nan=False), return_counts=True)
    assert len(values) >= 4 and max(counts) >= 5
