"""What a spec may give: the first and the last value of each type, and those beyond."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import trees

from generator.diagnostics import Report
from generator.given import Given
from generator.structure import load_tree


@pytest.fixture(scope="module")
def given() -> Given:
    """Of an operator that no test asks for more than its fields."""
    tree = load_tree(trees.PROJECT, Report())
    assert tree is not None
    source = next(s for s in tree.specs if (s.dialect, s.name) == ("directml", "argmax"))
    operator: Any = SimpleNamespace(spec=source.spec, defaults={})
    return Given(operator, tree, source.document, Report())


TIES = "DML_AXIS_DIRECTION"
ATTRIBUTES: list[tuple[str, list[Any], list[Any]]] = [
    ("uint", [0, 2**32 - 1], [-1, 2**32, True, 1.0, "1", None]),
    ("int", [-(2**63), 2**63 - 1], [-(2**63) - 1, 2**63, False]),
    ("uint[]", [[], [0, 2**32 - 1], [0] * 64], [0, [-1], [2**32], [True], [1.0], [0] * 65, None]),
    ("int[]", [[-(2**63), 2**63 - 1]], [[-(2**63) - 1], [2**63], [[1]]]),
    ("bool", [True, False], [0, 1, "true"]),
    ("float", [1, -0.5, 3.4e38], [math.inf, math.nan, True, "1"]),
    (TIES, ["INCREASING"], ["increasing", 0, ["INCREASING"], None]),
]


@pytest.mark.parametrize(("type", "good", "bad"), ATTRIBUTES, ids=[a[0] for a in ATTRIBUTES])
def test_attributes(given: Given, type: str, good: list[Any], bad: list[Any]) -> None:
    field = given.spec.field("Axes").model_copy(update={"type": type})
    for values, errors in ((good, 0), (bad, 1)):
        for value in values:
            before = given.report.count
            given.attribute(field, value, ("examples", 0, "given", "Axes"))
            assert given.report.count == before + errors, value


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers(given: Given, bits: int) -> None:
    half = 2 ** (bits - 1)
    for name, low, high in ((f"INT{bits}", -half, half - 1), (f"UINT{bits}", 0, 2 * half - 1)):
        values: list[Any] = [low - 1, low, high, high + 1, 0.0, True]
        assert [given.fits(v, name) for v in values] == [False, True, True, False, False, False]


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16", "FLOAT32"])
def test_numbers_that_round_to_infinity(given: Given, name: str) -> None:
    """From halfway on between the greatest number and the one that would be next."""
    dtype = given.data_types[name].numpy
    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype)
    greatest = float(info.max)
    halfway = greatest + 2.0 ** (info.maxexp - info.nmant - 2)
    for sign in (1, -1):
        for value in (greatest, float(np.nextafter(halfway, 0)), math.inf):
            assert given.fits(sign * value, name)
        for value in (halfway, 2 * halfway):
            assert not given.fits(sign * value, name)
    assert float(np.float64(greatest).astype(dtype)) == greatest
    assert given.fits(math.nan, name) and not given.fits(True, name)
