"""The JSON Schemas that editors use."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator import source
from generator.diagnostics import Report

PROJECT = Path(__file__).resolve().parent.parent
SPECS = sorted((PROJECT / "specs").glob("*/*.yaml"))


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((PROJECT / "generated" / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def data(path: Path) -> Any:
    document = source.load(path, path.name, Report())
    assert document is not None
    return document.data


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_specs_follow_it(path: Path) -> None:
    assert not list(validator("spec").iter_errors(data(path)))


def test_the_vocabulary_follows_its_own() -> None:
    assert not list(validator("vocabulary").iter_errors(data(PROJECT / "specs/vocabulary.yaml")))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("operatr",), "a key that is none"),
        (("introduced",), "3.2"),
        (("fields", 0, "kind"), "in"),
        (("fields", 3, "type"), "uint[3]"),
        (("support", 0, "InputTensor", "dtypes", 0), "FLOAT33"),
        (("support", 0, "InputTensor", "ranks"), "1-8"),
        (("constraints", 0, "violate"), [1]),
        (("semantics", "kernel"), "arg_produce"),
        (("examples",), {}),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_it_underlines_mistakes(place: tuple[Any, ...], value: object) -> None:
    spec = copy.deepcopy(data(PROJECT / "specs/directml/argmax.yaml"))
    parent = spec
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    assert list(validator("spec").iter_errors(spec))


def test_it_completes_words_and_explains_keys() -> None:
    """Editors offer the vocabulary's words and show what a key is for."""
    properties = json.loads((PROJECT / "generated/spec.schema.json").read_text(encoding="utf-8"))[
        "properties"
    ]
    assert "4.1" in properties["introduced"]["enum"]
    assert properties["fields"]["items"]["properties"]["axes_of"]["description"]
