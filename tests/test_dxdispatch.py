"""Models of DxDispatch: what is read and printed, what is refused and where, and what a hostile file cannot do."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import random
import re
from array import array
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trees
from untyped import untyped

from specops import SpecopsError, dxdispatch
from specops.directml.registry import OPERATORS
from specops.dxdispatch import Limits, ModelError, Problem, Timing, files, npy, parser, runner
from specops.dxdispatch.problems import MAX_PROBLEMS
from specops.errors import NoMemoryError

GALLERY = trees.PROJECT / "examples" / "models"
DATA_TYPES = [
    "FLOAT64", "FLOAT32", "FLOAT16", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8",
]  # fmt: skip


def model(**changes: Any) -> dict[str, Any]:
    """A model of an argmax over rows; a change replaces a section."""
    return {
        "resources": {
            "x": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 3, 0, 4]},
            "y": {"initialValuesDataType": "UINT32", "initialValues": [7, 7]},
        },
        "dispatchables": {"op": {"type": "ARGMAX", "desc": desc()}},
        "commands": [
            {"type": "dispatch", "dispatchable": "op", "bindings": bindings()},
            {"type": "print", "resource": "y"},
        ],
        **changes,
    }


def desc(**changes: Any) -> dict[str, Any]:
    """The fields of the argmax."""
    return {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [2, 3]},
        "OutputTensor": {"DataType": "UINT32", "Sizes": [2, 1]},
        "AxisCount": 1,
        "Axes": [1],
        "AxisDirection": "INCREASING",
        **changes,
    }


def bindings(**changes: Any) -> dict[str, Any]:
    return {"InputTensor": "x", "OutputTensor": "y", **changes}


class Case:
    """A folder with a model, and what happens with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "model"
        self.folder.mkdir()
        self.output = folder / "output"
        self.output.mkdir()
        self.file = self.folder / "model.json"

    def write(self, content: Any) -> Case:
        """The model: an object, or its text."""
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        self.file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return self

    def run(self, content: Any, **options: Any) -> list[str]:
        """The lines that the model prints, without the times."""
        out = io.StringIO()
        dxdispatch.run(self.write(content).file, output=out, output_folder=self.output, **options)
        return re.sub(r"\d+\.\d{4} ms", "* ms", out.getvalue()).split("\n")[:-1]

    def values(self, content: Any, **options: Any) -> dict[str, np.ndarray]:
        """The values of all resources afterwards."""
        self.write(content)
        return dxdispatch.run(self.file, output=io.StringIO(), **options)

    def problems(self, content: Any, **options: Any) -> list[Problem]:
        """What is wrong; running is refused with the same errors, and prints nothing."""
        self.write(content)
        found = dxdispatch.check(self.file, **options)
        out = io.StringIO()
        if any(p.severity == "error" for p in found):
            with pytest.raises(ModelError):
                dxdispatch.run(self.file, output=out, **options)
        assert out.getvalue() == ""
        return found

    def refused(self, content: Any, **options: Any) -> Problem:
        """The one error."""
        errors = [p for p in self.problems(content, **options) if p.severity == "error"]
        assert len(errors) == 1, [str(p) for p in errors]
        return errors[0]

    def at(self, problem: Problem) -> str:
        """The text that a problem points to."""
        line = self.file.read_text(encoding="utf-8").split("\n")[problem.line - 1]
        return line[problem.column - 1 :]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def with_values(values: Any, dtype: str | None = "FLOAT32", **more: Any) -> dict[str, Any]:
    """A model of one resource, printed where that is possible."""
    resource = {"initialValues": values, **more}
    if dtype is not None:
        resource["initialValuesDataType"] = dtype
    return {
        "resources": {"r": resource},
        "dispatchables": {},
        "commands": [{"type": "print", "resource": "r"}] if dtype else [],
    }


# --- the gallery ---


@pytest.mark.parametrize("name", sorted(p.stem for p in GALLERY.glob("*.json")))
def test_gallery(name: str) -> None:
    out = io.StringIO()
    dxdispatch.run(GALLERY / f"{name}.json", output=out)
    expected = (GALLERY / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    found = out.getvalue().split("\n")
    assert len(found) == len(expected)
    for line, pattern in zip(found, expected, strict=True):
        # Only * is a wildcard: the verbose form has brackets.
        assert fnmatchcase(line, pattern.replace("[", "[[]")), line


def test_the_gallery_has_every_operator() -> None:
    names = {op.removeprefix("DML_OPERATOR_").lower() for op in OPERATORS}
    assert {p.stem for p in GALLERY.glob("*.json")} == names
    listed = set(
        re.findall(r"\[(\w+)\.json\]", (GALLERY / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == names


def test_the_gallery_has_no_problems() -> None:
    for path in GALLERY.glob("*.json"):
        assert dxdispatch.check(path) == []


# --- what is printed ---


def test_lines(case: Case) -> None:
    assert case.run(model()) == [
        "Running on 'CPU'",
        "Dispatch 'op': 1 iterations, * ms median (CPU)",
        "Resource 'y': 2, 2",
    ]


FLOATS = [
    (1.0, "1"), (0.1, "0.1"), (1 / 3, "0.333333"), (1e6, "1e+06"), (123456.0, "123456"), (1e-5, "1e-05"),
    (-0.0, "-0"), (0.0001, "0.0001"), (2.5e10, "2.5e+10"), ("nan", "nan"), ("NaN", "nan"), ("inf", "inf"),
    ("-Inf", "-inf"), (7, "7"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["FLOAT32", "FLOAT64"])
def test_floats_have_six_digits(case: Case, dtype: str) -> None:
    lines = case.run(with_values([value for value, _ in FLOATS], dtype))
    assert lines[1] == "Resource 'r': " + ", ".join(shown for _, shown in FLOATS)


@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_each_data_type(case: Case, dtype: str) -> None:
    numpy = np.dtype(dtype.lower())
    high = 65504 if numpy.kind == "f" else int(np.iinfo(numpy).max)
    low = -high if numpy.kind == "f" else int(np.iinfo(numpy).min)
    content = with_values([low, 0, 1, high], f"DML_TENSOR_DATA_TYPE_{dtype}")
    shown = ", ".join(str(v) for v in (low, 0, 1, high))
    assert case.run(content)[1] == f"Resource 'r': {shown}"
    values = case.values(content)["r"]
    assert values.dtype == numpy and values.tolist() == [low, 0, 1, high]


def test_verbose(case: Case) -> None:
    """One line for each value: index as wide as the count, bits in hexadecimal padded with spaces."""
    content = with_values([0, 1, 255, 171] + [0] * 6, "UINT8")
    content["commands"][0]["verbose"] = True
    lines = case.run(content)[1:]
    assert lines[:5] == [
        "Resource 'r':",
        "[ 0] 0 (0x 0)",
        "[ 1] 1 (0x 1)",
        "[ 2] 255 (0xFF)",
        "[ 3] 171 (0xAB)",
    ]
    assert lines[-2:] == ["[ 9] 0 (0x 0)", ""]


@pytest.mark.parametrize(
    ("dtype", "value", "shown"),
    [
        ("FLOAT32", -0.5, "-0.5 (0xBF000000)"),
        ("FLOAT16", 1, "1 (0x3C00)"),
        ("INT64", -1, "-1 (0xFFFFFFFFFFFFFFFF)"),
        ("INT16", 10, "10 (0x   A)"),
        ("FLOAT64", 2, "2 (0x4000000000000000)"),
    ],
)
def test_verbose_bits(case: Case, dtype: str, value: Any, shown: str) -> None:
    content = with_values([value], dtype)
    content["commands"][0]["verbose"] = True
    assert case.run(content)[1:] == ["Resource 'r':", f"[0] {shown}", ""]


def test_only_initialised_elements_are_printed(case: Case) -> None:
    """5 elements of 2 bytes lie in a buffer of 12 bytes; with sizeInBytes it may be larger."""
    assert case.run(with_values([1, 2, 3, 4, 5], "FLOAT16"))[1] == "Resource 'r': 1, 2, 3, 4, 5"
    assert case.run(with_values([1, 2], "INT32", sizeInBytes=64))[1] == "Resource 'r': 1, 2"


def test_a_name_cannot_drive_a_terminal(case: Case) -> None:
    content = with_values([1])
    content["resources"] = {"\x1b[2J\u202e": content["resources"]["r"]}
    content["commands"] = [{"type": "print", "resource": "\x1b[2J\u202e"}]
    assert case.run(content)[1] == "Resource '\\x1b[2J\\u202e': 1"
    content["resources"]["\x1b[2J\u202e"] = 7
    content["commands"] = []
    assert case.refused(content).path == "resources.\\x1b[2J\\u202e"


def test_a_name_of_any_length_is_shortened(case: Case) -> None:
    content = with_values([1])
    content["resources"]["r"]["x" * 500] = 1
    (problem,) = case.problems(content)
    assert problem.path == f"resources.r.{'x' * 385}..." and len(problem.path) == 400


def test_many_values(case: Case) -> None:
    count = 100_000
    content = with_values({"valueStart": 0, "valueDelta": 1, "valueCount": count}, "UINT32")
    assert case.run(content)[1] == "Resource 'r': " + ", ".join(map(str, range(count)))


# --- timing ---


def test_iterations(case: Case) -> None:
    lines = case.run(model(), timing=Timing(iterations=5, warmup=2))
    assert lines[1] == "Dispatch 'op': 5 iterations, * ms median (CPU)"


def test_milliseconds(case: Case) -> None:
    out = io.StringIO()
    case.write(model())
    dxdispatch.run(case.file, output=out, timing=Timing(milliseconds=30, interval=2, repeat=3))
    found = re.search(r"Dispatch 'op': (\d+) iterations", out.getvalue())
    assert found is not None and 2 <= int(found[1]) <= 16


def test_timing_verbosity(case: Case) -> None:
    lines = case.run(model(), timing=Timing(iterations=3, verbosity=2))
    stats = "* ms average, * ms min, * ms median, * ms max"
    assert lines[1:] == [
        "Initialize 'op': * ms",
        "Dispatch 'op': 3 iterations",
        f"CPU Timings (Cold) : 1 samples, {stats}",
        f"CPU Timings (Hot)  : 2 samples, {stats}",
        "The timings of each iteration: ",
        *(f"iteration {i}: * ms (CPU)" for i in range(3)),
        "Resource 'y': 2, 2",
    ]
    # One sample is always hot.
    lines = case.run(model(), timing=Timing(warmup=9, verbosity=1))
    assert lines[3] == f"CPU Timings (Hot)  : 1 samples, {stats}"


def test_the_median_of_many() -> None:
    for count in (1, 2, 9, 10):
        samples = [float(i * 7 % count) for i in range(count)]
        assert runner._median(array("d", samples)) == sorted(samples)[count // 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": 0},
        {"iterations": -1},
        {"repeat": 0},
        {"warmup": -3},
        {"milliseconds": -1},
        {"interval": float("nan")},
        {"verbosity": 3},
        {"iterations": 2.5},
        {"repeat": "2"},
        {"interval": "1"},
        {"milliseconds": 1j},
        {"milliseconds": ""},
    ],
)
def test_timings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    """Of 5 iterations, a warmup of -3 counted two as cold."""
    with pytest.raises(SpecopsError, match="at least 1"):
        Timing(**wrong)


def test_a_word_before_each_dispatch(case: Case) -> None:
    names: list[str] = []
    case.run(model(commands=model()["commands"] * 2), begin=names.append)
    assert names == ["op", "op"]


# --- initial values ---


def test_constant(case: Case) -> None:
    values = case.values(with_values({"value": "-inf", "valueCount": 3}, "FLOAT16"))["r"]
    assert values.tolist() == [-np.inf] * 3


@pytest.mark.parametrize("dtype", ["FLOAT32", "FLOAT16"])
def test_a_sequence_rounds_at_each_step(case: Case, dtype: str) -> None:
    """Adding up, not multiplying: 0.1 + 0.1 + ... in the data type."""
    count = 3000
    found = case.values(
        with_values({"valueStart": 0.1, "valueDelta": 0.1, "valueCount": count}, dtype)
    )["r"]
    numpy = np.dtype(dtype.lower()).type
    expected = [numpy(0.1)]
    for _ in range(count - 1):
        expected.append(numpy(expected[-1] + numpy(0.1)))
    np.testing.assert_array_equal(found, expected)


def test_a_sequence_of_more_than_one_block(case: Case) -> None:
    count = (1 << 20) * 2 + 5
    content = with_values({"valueStart": 7, "valueDelta": 3, "valueCount": count}, "UINT8")
    content["commands"] = []
    found = case.values(content)["r"]
    np.testing.assert_array_equal(found, (7 + 3 * np.arange(count)).astype(np.uint8))


def test_a_sequence_wraps(case: Case) -> None:
    content = with_values({"valueStart": 120, "valueDelta": 10, "valueCount": 3}, "INT8")
    assert case.values(content)["r"].tolist() == [120, -126, -116]


def test_a_file_of_raw_bytes(case: Case) -> None:
    (case.folder / "sub").mkdir()
    (case.folder / "sub" / "data.bin").write_bytes(bytes([1, 0, 2, 0, 3]))
    for path in ("sub/data.bin", "sub\\data.bin", "./sub//data.bin"):
        values = case.values(with_values({"sourcePath": path}, "UINT16"))["r"]
        assert values.tolist() == [1, 2]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_a_npy_file(case: Case, dtype: str, version: tuple[int, int]) -> None:
    """Each version of the format; the data type comes from the file, and must agree where it is named."""
    x = np.arange(6).reshape(2, 3).astype(dtype.lower())
    with (case.folder / "x.NPY").open("wb") as file:
        np.lib.format.write_array(file, x, version)
    for named in (None, dtype):
        values = case.values(with_values({"sourcePath": "x.NPY"}, named))["r"]
        assert values.dtype == x.dtype and values.tolist() == [0, 1, 2, 3, 4, 5]
    for other in DATA_TYPES:
        if other != dtype:
            error = case.refused(with_values({"sourcePath": "x.NPY"}, other))
            assert error.message == f"x.NPY has {dtype}, initialValuesDataType is {other}"
            assert error.path == "resources.r.initialValues.sourcePath"


def test_input_folder(case: Case) -> None:
    (case.output / "data.bin").write_bytes(bytes(4))
    content = with_values({"sourcePath": "data.bin"}, "FLOAT32")
    assert case.values(content, input_folder=case.output)["r"].tolist() == [0]
    assert "cannot be read" in case.refused(content).message


def test_a_file_that_fails_while_it_is_read(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason, as that of a file that cannot be opened, without the number and the path that Python adds."""
    np.save(case.folder / "x.npy", np.zeros(3, np.float32))

    def fails(*_arguments: Any) -> Any:
        raise OSError(5, "Input/output error", "/some/where/x.npy")

    monkeypatch.setattr(npy, "header", fails)
    error = case.refused(with_values({"sourcePath": "x.npy"}, "FLOAT32"))
    assert error.message == '"x.npy" cannot be read: Input/output error'


def test_values_of_several_types(case: Case) -> None:
    """Packed without gaps: 1, 4 and 8 bytes, in a buffer of 16."""
    values = [
        {"name": "a", "type": "UINT8", "value": 42},
        {"type": "FLOAT32", "value": 1.5},
        {"type": "DML_TENSOR_DATA_TYPE_INT64", "value": -1},
    ]
    content = with_values(values, None)
    content["commands"] = [{"type": "writeFile", "resource": "r", "targetPath": "r.bin"}]
    case.run(content)
    expected = b"\x2a" + np.float32(1.5).tobytes() + b"\xff" * 8
    assert (case.output / "r.bin").read_bytes() == expected.ljust(16, b"\0")


BAD_VALUES = [
    ([1, 2.5], "INT32", "[1]", "integer from"),
    ([1, "nan"], "INT32", "[1]", "integer from"),
    ([256], "UINT8", "[0]", "from 0 to 255"),
    ([-1], "UINT64", "[0]", "from 0 to"),
    ([True], "INT32", "[0]", "integer"),
    ([True], "FLOAT32", "[0]", "a number"),
    ([None], "FLOAT32", "[0]", "a number"),
    (["1"], "FLOAT32", "[0]", "a number"),
    ([0, [1]], "FLOAT32", "[1]", "a number"),
    ([0, 1e39], "FLOAT32", "[1]", "too large"),
    ([70000], "FLOAT16", "[0]", "too large"),
    ([10**320], "FLOAT64", "[0]", "too large"),
    ([], "FLOAT32", "", "at least one"),
    ({"value": 1, "valueCount": 0}, "FLOAT32", "", "at least one"),
    ({"value": 1}, "FLOAT32", "", "valueCount is missing"),
    ({"value": 1, "valueCount": -1}, "FLOAT32", ".valueCount", "from 0 to"),
    ({"value": 1, "valueCount": 1.0}, "FLOAT32", ".valueCount", "from 0 to"),
    ({"value": 1, "valueCount": 1 << 32}, "FLOAT32", ".valueCount", "from 0 to"),
    ({"value": "x", "valueCount": 1}, "FLOAT32", ".value", "a number"),
    ({"valueStart": 0, "valueCount": 1}, "FLOAT32", "", "valueDelta is missing"),
    ({"valueStart": 0, "valueDelta": -1, "valueCount": 1}, "UINT8", ".valueDelta", "from 0 to"),
    ({"value": 1, "valueStart": 1, "valueCount": 1}, "FLOAT32", "", "exactly one"),
    ({"valueCount": 1}, "FLOAT32", "", "exactly one"),
    ("deferred", "FLOAT32", "", "out of reach"),
    ("other", "FLOAT32", "", "allowed"),
    (7, "FLOAT32", "", "allowed"),
    (None, "FLOAT32", "", "allowed"),
    ({"sourcePath": "picture.png"}, "FLOAT32", ".sourcePath", "images"),
    ({"sourcePath": "none.bin"}, "FLOAT32", ".sourcePath", "cannot be read"),
    ({"sourcePath": 7}, "FLOAT32", ".sourcePath", "a string"),
]


@pytest.mark.parametrize(("values", "dtype", "place", "says"), BAD_VALUES)
def test_values_that_are_none(case: Case, values: Any, dtype: str, place: str, says: str) -> None:
    problem = case.refused(with_values(values, dtype))
    assert problem.path == f"resources.r.initialValues{place}"
    assert says in problem.message


def test_where_entries_stand(case: Case) -> None:
    """At the number itself, not at the space before it."""
    assert case.at(case.refused(with_values([1, 300, 2], "UINT8"))) == "300,"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (1, "1"), (1.0, "1.0"), (True, "true"), (False, "false"), (None, "null"), ("x", '"x"'),
        ("x" * 99, f'"{"x" * 60}"'),
    ],
)  # fmt: skip
def test_what_was_found_is_shown(case: Case, value: Any, shown: str) -> None:
    assert case.refused(with_values(value)).message.startswith(f"found {shown};")


BAD_RESOURCES = [
    ({"initialValues": [1]}, ".initialValues[0]", "type and value"),
    ({"initialValues": {"value": 1, "valueCount": 1}}, "", "initialValuesDataType is missing"),
    ({"initialValues": {"sourcePath": "raw"}}, "", "initialValuesDataType"),
    ({"initialValuesDataType": "FLOAT32"}, "", "initialValues is missing"),
    ({"initialValuesDataType": "float32", "initialValues": [1]}, ".initialValuesDataType", "FLOAT32, FLOAT16"),
    ({"initialValuesDataType": "UINT4", "initialValues": [1]}, ".initialValuesDataType", "allowed"),
    ({"initialValues": [{"type": "FLOAT16", "value": 1}]}, ".initialValues[0].type", "FLOAT16"),
    ({"initialValues": [{"type": "UINT8", "value": 256}]}, ".initialValues[0].value", "255"),
    ({"initialValues": [{"value": 256}]}, ".initialValues[0]", "type is missing"),
    ({"initialValuesDataType": "FLOAT32", "initialValues": [1, 2], "sizeInBytes": 7}, ".sizeInBytes", "8"),
    ({"initialValuesDataType": "FLOAT32", "initialValues": [1], "sizeInBytes": -1}, ".sizeInBytes", "from 0"),
    (
        {"initialValuesDataType": "FLOAT32", "initialValues": [1], "initialValuesOffsetInBytes": 4},
        "",
        "from byte 4 on",
    ),
    ([1], "", "an object"),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "place", "says"), BAD_RESOURCES)
def test_resources_that_are_none(case: Case, resource: Any, place: str, says: str) -> None:
    (case.folder / "raw").write_bytes(bytes(8))
    problem = case.refused({"resources": {"r": resource}, "dispatchables": {}, "commands": []})
    assert problem.path == f"resources.r{place}" and says in problem.message


DAMAGED = {
    "text": b"hello",
    "empty": b"",
    "version": b"\x93NUMPY\x04\x00\x02\x00{}",
    "header": b"\x93NUMPY\x01\x00\x04\x00{,,}",
    "length": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f",
    "deep": b"\x93NUMPY\x01\x00\x00\x10" + b"(" * 4096,
    "negative": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}".ljust(4096),
    "huge": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}".ljust(4096),
    "short": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}".ljust(4096) + bytes(4),
    "objects": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}".ljust(4096) + bytes(8),
    "big-endian": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}".ljust(4096) + bytes(8),
    "order": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '<f4', 'fortran_order': 'C', 'shape': (2,)}".ljust(4096) + bytes(8),
    "column-major": b"\x93NUMPY\x01\x00\x00\x10"
    + b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}".ljust(4096) + bytes(16),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_npy_files(case: Case, kind: str) -> None:
    (case.folder / "x.npy").write_bytes(DAMAGED[kind])
    problem = case.refused(with_values({"sourcePath": "x.npy"}))
    assert problem.path == "resources.r.initialValues.sourcePath"


def test_a_file_that_shrinks_while_the_model_runs(case: Case) -> None:
    path = case.folder / "x.bin"
    path.write_bytes(bytes(8))
    loaded = dxdispatch.load(case.write(with_values({"sourcePath": "x.bin"})).file)
    path.write_bytes(bytes(4))
    with pytest.raises(ModelError, match="changed while the model ran"):
        dxdispatch.run(loaded, output=io.StringIO())
    path.unlink()
    with pytest.raises(ModelError, match=r"resources\.r: x\.bin cannot be read: No such file"):
        dxdispatch.run(loaded, output=io.StringIO())


def test_values_that_do_not_begin_at_byte_0(case: Case) -> None:
    content = with_values([1], sizeInBytes=8, initialValuesOffsetInBytes=4)
    (problem,) = case.problems(content)
    assert (problem.severity, problem.path) == ("warning", "resources.r.initialValuesOffsetInBytes")
    assert "puts the values at byte 0" in problem.message
    assert case.values(content)["r"].tolist() == [1]


# --- dispatchables ---


@pytest.mark.parametrize("type", ["ARGMAX", "DML_OPERATOR_ARGMAX"])
@pytest.mark.parametrize("place", ["desc", "Desc", None])
def test_where_fields_stand(case: Case, type: str, place: str | None) -> None:
    fields = {place: desc()} if place else desc()
    assert (
        case.run(model(dispatchables={"op": {"type": type, **fields}}))[-1] == "Resource 'y': 2, 2"
    )


FORMS = {
    "nested": {"Type": "BUFFER", "Desc": {"DataType": "FLOAT32", "Sizes": [2, 3]}},
    "full names": {
        "Type": "DML_TENSOR_TYPE_BUFFER",
        "DataType": "DML_TENSOR_DATA_TYPE_FLOAT32",
        "Flags": "DML_TENSOR_FLAG_NONE",
        "Sizes": [2, 3],
    },
    "everything": {
        "DataType": "FLOAT32",
        "Flags": ["NONE"],
        "DimensionCount": 2,
        "Sizes": [2, 3],
        "Strides": [3, 1],
        "TotalTensorSizeInBytes": 24,
        "GuaranteedBaseOffsetAlignment": 256,
    },
    "nulls": {"DataType": "FLOAT32", "Sizes": [2, 3], "Strides": None, "TotalTensorSizeInBytes": 0},
    "two flags": {
        "DataType": "FLOAT32",
        "Sizes": [2, 3],
        "Flags": ["NONE", "DML_TENSOR_FLAG_NONE"],
    },
    "no flags": {"DataType": "FLOAT32", "Sizes": [2, 3], "Flags": []},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_tensor(case: Case, form: str) -> None:
    content = model(dispatchables={"op": {"type": "ARGMAX", "desc": desc(InputTensor=FORMS[form])}})
    assert case.run(content)[-1] == "Resource 'y': 2, 2"
    assert dxdispatch.check(case.file) == []


def test_strides(case: Case) -> None:
    """The same buffer read by columns: [[1, 3], [2, 0], [3, 4]]."""
    changed = desc(
        InputTensor={"DataType": "FLOAT32", "Sizes": [3, 2], "Strides": [1, 3]},
        OutputTensor={"DataType": "UINT32", "Sizes": [1, 2]},
        Axes=[0],
    )
    assert (
        case.run(model(dispatchables={"op": {"type": "ARGMAX", "desc": changed}}))[-1]
        == "Resource 'y': 2, 2"
    )


def tensor(name: str, **member: Any) -> dict[str, Any]:
    """One tensor of the argmax with a further member."""
    return {name: {**desc()[name], **member}}


BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"Axes": [2]}, ".Axes", "axes_in_range"),
    ({"Axes": [1, 1], "AxisCount": 2}, ".Axes", "axes_unique"),
    ({"AxisCount": 2}, ".AxisCount", "axis_count"),
    ({"Axes": 1}, ".Axes", "field_type"),
    ({"Axes": [1.0]}, ".Axes", "field_type"),
    ({"Axes": [True]}, ".Axes", "field_type"),
    ({"Axes": ["1"]}, ".Axes", "field_type"),
    ({"Axes": [[1]]}, ".Axes", "field_type"),
    ({"Axes": {}}, ".Axes", "field_type"),
    ({"Axes": "1"}, ".Axes", "field_type"),
    ({"Axes": [0] * 1000}, ".Axes", "field_type"),
    ({"AxisCount": "1"}, ".AxisCount", "field_type"),
    ({"AxisDirection": "UP"}, ".AxisDirection", "field_type"),
    ({"AxisDirection": 0}, ".AxisDirection", "field_type"),
    ({"AxisDirection": "increasing"}, ".AxisDirection", "field_type"),
    ({"AxisDirection": ["INCREASING"]}, ".AxisDirection", "field_type"),
    ({"InputTensor": 7}, ".InputTensor", "field_type"),
    ({"InputTensor": []}, ".InputTensor", "field_type"),
    ({"OutputTensor": {"DataType": "UINT8", "Sizes": [2, 1]}}, ".OutputTensor.DataType", "supported_data_type"),
    ({"OutputTensor": {"DataType": "UINT32", "Sizes": [2, 2]}}, ".OutputTensor", "reduced_sizes"),
    ({"InputTensor": {"DataType": "FLOAT32", "Sizes": [1] * 9}}, ".InputTensor.Sizes", "supported_dimension_count"),
    ({"InputTensor": {"DataType": "float32", "Sizes": [2, 3]}}, ".InputTensor.DataType", "field_type"),
    ({"InputTensor": {"DataType": "<f4", "Sizes": [2, 3]}}, ".InputTensor.DataType", "field_type"),
    ({"InputTensor": {"DataType": "BFLOAT16", "Sizes": [2, 3]}}, ".InputTensor.DataType", "field_type"),
    ({"InputTensor": {"DataType": 1, "Sizes": [2, 3]}}, ".InputTensor.DataType", "field_type"),
    ({"InputTensor": {"DataType": ["FLOAT32"], "Sizes": [2, 3]}}, ".InputTensor.DataType", "field_type"),
    ({"InputTensor": {"DataType": "FLOAT32", "Sizes": [0, 3]}}, ".InputTensor.Sizes", "sizes_positive"),
    (tensor("InputTensor", Strides=[1]), ".InputTensor.Strides", "strides_length"),
    (tensor("InputTensor", DimensionCount=3), ".InputTensor.DimensionCount", "dimension_count"),
    (tensor("InputTensor", TotalTensorSizeInBytes=20), ".InputTensor.TotalTensorSizeInBytes", "total_size"),
    (tensor("InputTensor", GuaranteedBaseOffsetAlignment=3), ".InputTensor.GuaranteedBaseOffsetAlignment", ""),
    (tensor("InputTensor", Flags="OTHER"), ".InputTensor.Flags", "field_type"),
    (tensor("InputTensor", Flags=["NONE", "OTHER"]), ".InputTensor.Flags", "field_type"),
    (tensor("InputTensor", Flags=[0]), ".InputTensor.Flags", "field_type"),
    (tensor("InputTensor", Flags=0), ".InputTensor.Flags", "field_type"),
    (tensor("OutputTensor", Flags=["DML_TENSOR_FLAG_OWNED_BY_DML"]), ".OutputTensor.Flags", "owned_by_dml"),
    (tensor("OutputTensor", Flags="OWNED_BY_DML"), ".OutputTensor.Flags", "owned_by_dml"),
    ({"InputTensor": {"Type": "INVALID", "DataType": "FLOAT32", "Sizes": [2, 3]}}, ".InputTensor.Type", ""),
    ({"InputTensor": {"Desc": 7}}, ".InputTensor.Desc", "field_type"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "place", "id"), BAD_FIELDS)
def test_violations_have_places(case: Case, changes: dict[str, Any], place: str, id: str) -> None:
    content = model(dispatchables={"op": {"type": "ARGMAX", "desc": desc(**changes)}})
    problems = [p for p in case.problems(content) if p.severity == "error"]
    matching = [p for p in problems if p.path == f"dispatchables.op.desc{place}" and id in p.id]
    assert matching, [str(p) for p in problems]
    problem = matching[0]
    if problem.id:
        assert f"[{problem.id}]" in problem.hint
    name = place.rsplit(".", maxsplit=1)[-1]
    value = changes
    for part in place.strip(".").split("."):
        value = value[part]
    line = case.file.read_text(encoding="utf-8").split("\n")[problem.line - 1]
    assert line[: problem.column - 1].endswith(f'"{name}": ')
    assert case.at(problem)[0] == json.dumps(value)[0]


KINDS_OF_JSON = [
    ("AVERAGE_POOLING", {"IncludePadding": 1}, "found 1; allowed: true or false"),
    ("AVERAGE_POOLING", {"IncludePadding": 0.0}, "found 0.0; allowed: true or false"),
    ("AVERAGE_POOLING", {"IncludePadding": "true"}, 'found "true"; allowed: true or false'),
    ("AVERAGE_POOLING", {"WindowSize": 3}, "found 3; allowed: an array of at most 64 integers from 0 to"),
    ("AVERAGE_POOLING", {"IncludePadding": None}, "IncludePadding is missing; allowed: true or false"),
    ("LP_POOLING", {"P": True}, "found true; allowed: an integer from 0 to 4294967295"),
    ("LP_POOLING", {"DimensionCount": False}, "found false; allowed: an integer"),
    ("LP_POOLING", {"Strides": [1, True]}, "found [1, true]; allowed: an array"),
    ("LP_POOLING", {"Strides": [1, "2"]}, 'found [1, "2"]; allowed: an array'),
    ("LP_POOLING", {"Strides": [1, None]}, "found [1, null]; allowed: an array"),
    ("LP_POOLING", {"InputTensor": True}, "found true; allowed: an object"),
    ("LP_POOLING", {"InputTensor": {"DataType": "FLOAT32", "Sizes": True}}, "found true; allowed: an array"),
    (
        "LP_POOLING",
        {"InputTensor": {"DataType": "FLOAT32", "Sizes": [1], "TotalTensorSizeInBytes": True}},
        "found true; allowed: an integer",
    ),
    (
        "LP_POOLING",
        {"InputTensor": {"DataType": "FLOAT32", "Sizes": [1], "Flags": ["NONE", True]}},
        'found ["NONE", true]; allowed: NONE',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "says"), KINDS_OF_JSON)
def test_kinds_are_those_of_json(case: Case, name: str, changes: dict[str, Any], says: str) -> None:
    """Booleans are no numbers and numbers no booleans; messages show values as JSON has them."""
    fields: dict[str, Any] = {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 5]},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]},
        "DimensionCount": 2,
        "Strides": [1, 1],
        "WindowSize": [1, 2],
        "StartPadding": [0, 0],
        "EndPadding": [0, 0],
        **({"P": 2} if name == "LP_POOLING" else {"IncludePadding": True}),
        **changes,
    }
    content = model(dispatchables={"op": {"type": name, "desc": fields}})
    messages = [p.message for p in case.problems(content) if p.severity == "error"]
    assert any(message.startswith(says) for message in messages), messages


@pytest.mark.parametrize("name", list(desc()))
def test_each_field_is_required(case: Case, name: str) -> None:
    """Also a count, which DxDispatch does not take from its array."""
    for changed in ({k: v for k, v in desc().items() if k != name}, desc(**{name: None})):
        content = model(dispatchables={"op": {"type": "ARGMAX", "desc": changed}})
        problem = case.refused(content)
        assert problem.message.startswith(f"{name} is missing")
        assert problem.path.startswith("dispatchables.op.desc")


@pytest.mark.parametrize("name", ["DataType", "Sizes"])
def test_each_member_of_a_tensor_is_required(case: Case, name: str) -> None:
    tensor = {k: v for k, v in {"DataType": "FLOAT32", "Sizes": [2, 3]}.items() if k != name}
    content = model(dispatchables={"op": {"type": "ARGMAX", "desc": desc(InputTensor=tensor)}})
    problem = case.refused(content)
    assert problem.message.startswith(f"{name} is missing")
    assert problem.path == "dispatchables.op.desc.InputTensor"


OUT_OF_REACH = [
    ("hlsl", "HLSL"),
    ("HLSL", "HLSL"),
    ("onnx", "ONNX"),
    ("dmlSerializedGraph", "serialized"),
    ("DML_OPERATOR_GEMM", "not available"),
    ("argmax", "not available"),
    ("ARGMAXX", "not available"),
    ("", "not available"),
    (7, "a string"),
    (None, "a string"),
]


@pytest.mark.parametrize(("type", "says"), OUT_OF_REACH)
def test_out_of_reach(case: Case, type: Any, says: str) -> None:
    """One error at the type, and none at the commands that use it."""
    problem = case.refused(model(dispatchables={"op": {"type": type, "sourcePath": "x"}}))
    assert problem.path == "dispatchables.op.type" and says in problem.message
    assert case.at(problem).startswith(json.dumps(type))


def test_a_misspelt_operator(case: Case) -> None:
    problem = case.refused(model(dispatchables={"op": {"type": "ARGMAXX", "desc": desc()}}))
    assert problem.hint == "did you mean `ARGMAX`?"


def test_settings_are_checked(case: Case) -> None:
    fine: dict[str, Any] = {
        "type": "ARGMAX",
        "desc": desc(),
        "executionFlags": ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE"],
        "dmlCompileType": "DmlCompileGraph",
    }
    assert case.problems(model(dispatchables={"op": fine})) == []
    bad = {**fine, "executionFlags": "FAST", "dmlCompileType": "DmlCompile"}
    problems = case.problems(model(dispatchables={"op": bad}))
    names = ["executionFlags", "dmlCompileType"]
    assert [p.path for p in problems] == [f"dispatchables.op.{name}" for name in names]


def test_feature_level(case: Case) -> None:
    assert "from feature level 3.0 on" in case.refused(model(), feature_level="2.1").message
    changed = desc(InputTensor={"DataType": "INT64", "Sizes": [2, 3]})
    resources = {
        **model()["resources"],
        "x": {"initialValuesDataType": "INT64", "initialValues": [0] * 6},
    }
    content = model(resources=resources, dispatchables={"op": {"type": "ARGMAX", "desc": changed}})
    assert case.problems(content, feature_level="DML_FEATURE_LEVEL_4_1") == []
    assert case.refused(content, feature_level="4_0").id == "supported_data_type"
    with pytest.raises(SpecopsError, match="no feature level"):
        dxdispatch.check(case.file, feature_level="9.9")
    with pytest.raises(SpecopsError, match=r'level 4\.1; there are the strings "1\.0", "2\.0", '):
        dxdispatch.check(case.file, feature_level=untyped(4.1))


def test_unknown_fields_are_ignored_with_a_warning(case: Case) -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3], "Stride": [1, 1]}
    content = model(
        dispatchables={"op": {"type": "ARGMAX", "desc": desc(Axis=1, InputTensor=tensor)}}
    )
    problems = case.problems(content)
    assert [p.severity for p in problems] == ["warning", "warning"]
    assert sorted(p.path for p in problems) == [
        "dispatchables.op.desc.Axis",
        "dispatchables.op.desc.InputTensor.Stride",
    ]
    assert {p.hint for p in problems} == {"did you mean `Axes`?", "did you mean `Strides`?"}
    assert case.run(content)[-1] == "Resource 'y': 2, 2"


# --- commands and bindings ---


def dispatching(**changes: Any) -> dict[str, Any]:
    command = {"type": "dispatch", "dispatchable": "op", "bindings": bindings(**changes)}
    return model(commands=[command, {"type": "print", "resource": "y"}])


@pytest.mark.parametrize(
    "form",
    [
        {"name": "x"},
        ["x"],
        [
            {
                "name": "x",
                "elementCount": 1,
                "elementSizeInBytes": 4,
                "elementOffset": 0,
                "format": "UNKNOWN",
            }
        ],
    ],
)
def test_forms_of_a_binding(case: Case, form: Any) -> None:
    assert case.run(dispatching(InputTensor=form))[-1] == "Resource 'y': 2, 2"


def test_element_offset(case: Case) -> None:
    """In elements of the resource, or of a size of its own."""
    content = dispatching(InputTensor={"name": "x", "elementOffset": 4})
    content["resources"]["x"]["initialValues"] = [9, 9, 9, 9, 1, 2, 3, 5, 0, 4]
    assert case.run(content)[-1] == "Resource 'y': 2, 0"
    content["commands"][0]["bindings"]["InputTensor"] = {
        "name": "x", "elementOffset": 1, "elementSizeInBytes": 16,
    }  # fmt: skip
    assert case.run(content)[-1] == "Resource 'y': 2, 0"


BAD_BINDINGS = [
    ({"InputTensor": "z"}, ".InputTensor", "no resource"),
    ({"InputTensor": None}, ".InputTensor", "a resource's name"),
    ({"InputTensor": 1}, ".InputTensor", "a resource's name"),
    ({"InputTensor": []}, ".InputTensor", "1 resource, but 0"),
    ({"InputTensor": ["x", "x"]}, ".InputTensor", "1 resource, but 2"),
    ({"InputTensor": {}}, ".InputTensor", "name"),
    ({"InputTensor": {"name": 5}}, ".InputTensor.name", "a string"),
    ({"InputTensor": {"name": "z"}}, ".InputTensor.name", "no resource"),
    ({"InputTensor": {"name": "x", "elementOffset": -1}}, ".InputTensor.elementOffset", "from 0"),
    ({"InputTensor": {"name": "x", "elementOffset": 1}}, ".InputTensor", "multiple of 16"),
    ({"InputTensor": {"name": "x", "elementOffset": 4}}, ".InputTensor", "takes 24"),
    ({"InputTensor": {"name": "x", "elementOffset": 2**64 - 4}}, ".InputTensor", "takes 24"),
    (
        {"InputTensor": {"name": "x", "counterOffsetBytes": -3}},
        ".InputTensor.counterOffsetBytes",
        "from 0",
    ),
    ({"InputTensor": {"name": "x", "format": ["R32"]}}, ".InputTensor.format", "a string"),
    ({"InputTensor": {"name": "x", "counter": 17}}, ".InputTensor.counter", "a string"),
    ({"InputTensor": {"name": "x", "shape": "2x3"}}, ".InputTensor.shape", "an array"),
    ({"OutputTensor": "x"}, ".OutputTensor", "share memory"),
    ({"InputTensor": "y"}, ".InputTensor", "takes 24"),
]


@pytest.mark.parametrize(("changes", "place", "says"), BAD_BINDINGS)
def test_bindings_that_do_not_fit(case: Case, changes: Any, place: str, says: str) -> None:
    problem = case.refused(dispatching(**changes))
    assert problem.path == f"commands[0].bindings{place}" and says in problem.message


def test_guaranteed_alignment(case: Case) -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3], "GuaranteedBaseOffsetAlignment": 64}
    content = dispatching(InputTensor={"name": "x", "elementOffset": 4})
    content["resources"]["x"]["initialValues"] = [0] * 64
    content["dispatchables"]["op"]["desc"]["InputTensor"] = tensor
    assert "multiple of 64" in case.refused(content).message


def test_missing_and_unknown_bindings(case: Case) -> None:
    content = dispatching(InputTenser="x")
    del content["commands"][0]["bindings"]["InputTensor"]
    warning, error = sorted(case.problems(content), key=lambda p: p.severity, reverse=True)
    assert "InputTensor of op is not bound" in error.message
    assert error.path == "commands[0].bindings"
    assert warning.hint == "did you mean `InputTensor`?"


def test_a_binding_of_a_tensor_that_is_not_described(case: Case) -> None:
    """The operator has it, so its name is no mistake."""
    pool = {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 1]},
        "DimensionCount": 2,
        "WindowSize": [2, 3],
        "StartPadding": [0, 0],
        "EndPadding": [0, 0],
        "Strides": [1, 1],
    }
    content = dispatching(OutputIndicesTensor="y")
    content["dispatchables"]["op"] = {"type": "MAX_POOLING1", "desc": pool}
    (problem,) = case.problems(content)
    assert problem.message == "op does not describe this tensor; not bound"


def test_parts_of_one_buffer(case: Case) -> None:
    """Input and output may lie in one buffer where they share no byte."""
    content = dispatching(InputTensor={"name": "b"}, OutputTensor={"name": "b", "elementOffset": 8})
    content["resources"]["b"] = {
        "initialValuesDataType": "FLOAT32",
        "initialValues": [0, 1, 0, 5, 0, 0] + [0] * 6,
    }
    values = case.values(content)["b"]
    assert values.view(np.uint32)[8:10].tolist() == [1, 0]
    content["commands"][0]["bindings"]["OutputTensor"]["elementOffset"] = 4
    assert "share memory" in case.refused(content).message


def owned(flags: Any = "OWNED_BY_DML", **changes: Any) -> dict[str, Any]:
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3], "Flags": flags}
    op = {
        "type": "ARGMAX",
        "desc": desc(InputTensor=tensor),
        "bindings": {"InputTensor": "x"},
        **changes,
    }
    command = {"type": "dispatch", "dispatchable": "op", "bindings": {"OutputTensor": "y"}}
    return model(dispatchables={"op": op}, commands=[command, {"type": "print", "resource": "y"}])


def test_owned_by_dml(case: Case) -> None:
    """Such an input is handed over before the commands run: what they write to the buffer changes nothing."""
    content = owned()
    assert case.run(content)[-1] == "Resource 'y': 2, 2"
    content["dispatchables"]["overwrite"] = {
        "type": "ACTIVATION_HARDMAX1",
        "desc": {
            "InputTensor": {"DataType": "FLOAT32", "Sizes": [6]},
            "OutputTensor": {"DataType": "FLOAT32", "Sizes": [6]},
            "AxisCount": 1,
            "Axes": [0],
        },
    }
    content["resources"]["z"] = {
        "initialValuesDataType": "FLOAT32",
        "initialValues": [1, 0, 0, 0, 0, 0],
    }
    content["commands"].insert(
        0,
        {
            "type": "dispatch",
            "dispatchable": "overwrite",
            "bindings": {"InputTensor": "z", "OutputTensor": "x"},
        },
    )
    assert case.run(content)[-1] == "Resource 'y': 2, 2"


@pytest.mark.parametrize(
    "flags", ["DML_TENSOR_FLAG_OWNED_BY_DML", ["NONE", "DML_TENSOR_FLAG_OWNED_BY_DML", "OWNED_BY_DML"]]
)  # fmt: skip
def test_forms_of_a_flag(case: Case, flags: Any) -> None:
    assert case.run(owned(flags))[-1] == "Resource 'y': 2, 2"


def test_owned_by_dml_is_bound_in_one_place(case: Case) -> None:
    content = owned()
    content["commands"][0]["bindings"]["InputTensor"] = "x"
    assert "bound by the dispatchable itself" in case.refused(content).message
    content = owned()
    del content["dispatchables"]["op"]["bindings"]
    assert "InputTensor of op is not bound" in case.refused(content).message
    content = owned(bindings={"InputTensor": "x", "OutputTensor": "y"})
    assert "only OWNED_BY_DML tensors" in case.refused(content).message


BAD_COMMANDS = [
    ({"type": "dispatch"}, "", "dispatchable is missing"),
    ({"type": "dispatch", "dispatchable": "op"}, "", "bindings is missing"),
    ({"type": "dispatch", "dispatchable": "po", "bindings": {}}, ".dispatchable", "no dispatchable"),
    ({"type": "dispatch", "dispatchable": [], "bindings": {}}, ".dispatchable", "no dispatchable"),
    ({"type": "dispatch", "dispatchable": "op", "bindings": []}, ".bindings", "found an array; allowed: an object"),
    ({"type": "print"}, "", "resource is missing"),
    ({"type": "print", "resource": "z"}, ".resource", "no resource"),
    ({"type": "print", "resource": "y", "verbose": 1}, ".verbose", "true or false"),
    ({"type": "prnt", "resource": "y"}, ".type", "dispatch, print, writeFile"),
    ({"resource": "y"}, "", "type"),
    ({"type": 7}, ".type", "found 7; allowed: a string"),
    ("print", "", "an object"),
    ({"type": "writeFile", "resource": "y"}, "", "targetPath is missing"),
    ({"type": "writeFile", "resource": "z", "targetPath": "z"}, ".resource", "no resource"),
    ({"type": "writeFile", "resource": "y", "targetPath": "y.png"}, ".targetPath", "images"),
    ({"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [3]}, ".dimensions", "3 elements"),
    ({"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": 3}, ".dimensions", "an array"),
    ({"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [-1]}, ".dimensions[0]", "from 0"),
    ({"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [True]}, ".dimensions[0]", "from 0"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "place", "says"), BAD_COMMANDS)
def test_commands_that_are_none(case: Case, command: Any, place: str, says: str) -> None:
    content = model(commands=[*model()["commands"], command])
    problem = case.refused(content, output_folder=case.output)
    assert problem.path == f"commands[2]{place}" and says in problem.message
    assert not re.match(r"\w+: ", problem.message)  # the path names it already


@pytest.mark.parametrize(
    ("section", "allowed"),
    [("resources", "an object"), ("dispatchables", "an object"), ("commands", "an array")],
)
def test_sections_that_are_none(case: Case, section: str, allowed: str) -> None:
    content: dict[str, Any] = {"resources": {}, "dispatchables": {}, "commands": []}
    problem = case.refused({**content, section: 7})
    assert (problem.path, problem.message) == (section, f"found 7; allowed: {allowed}")
    del content[section]
    problem = case.refused(content)
    assert (problem.path, problem.message) == ("", f"{section} is missing; allowed: {allowed}")


def test_printing_values_of_several_types(case: Case) -> None:
    content = with_values([{"type": "UINT8", "value": 1}], None)
    content["commands"] = [{"type": "print", "resource": "r"}]
    assert "several types" in case.refused(content).message
    content["commands"] = [{"type": "writeFile", "resource": "r", "targetPath": "r.npy"}]
    assert "several types" in case.refused(content, output_folder=case.output).message


def test_types_of_commands_ignore_case(case: Case) -> None:
    content = model(commands=[{"type": "PRINT", "resource": "y"}])
    assert case.run(content)[-1] == "Resource 'y': 7, 7"


def test_everything_wrong_at_once_in_order(case: Case) -> None:
    content = model(
        dispatchables={"op": {"type": "ARGMAX", "desc": desc(Axes=[5], AxisDirection="UP")}},
        commands=[
            {"type": "dispatch", "dispatchable": "op", "bindings": {}},
            {"type": "print", "resource": "q"},
        ],
    )
    content["resources"]["bad"] = {"initialValuesDataType": "INT8", "initialValues": [200]}
    problems = case.problems(content)
    assert [p.path for p in problems] == [
        "resources.bad.initialValues[0]",
        "dispatchables.op.desc.Axes",
        "dispatchables.op.desc.AxisDirection",
        "commands[1].resource",
    ]
    assert [p.line for p in problems] == sorted(p.line for p in problems)


def test_what_is_broken_has_a_name_and_bindings(case: Case) -> None:
    """An operator that is refused is one that commands can name, and what they bind to it is looked up."""
    broken = desc(AxisCount=2)
    content = model(
        dispatchables={"op": {"type": "ARGMAX", "desc": broken}},
        commands=[
            {"type": "dispatch", "dispatchable": "op", "bindings": bindings(InputTensor="z")},
            {"type": "dispatch", "dispatchable": "opp", "bindings": bindings()},
            {
                "type": "dispatch",
                "dispatchable": "?",
                "bindings": bindings(OutputTensor=["x", "y"]),
            },
        ],
    )
    _, *problems = case.problems(content)
    assert [(p.path, p.message, p.hint) for p in problems] == [
        ("commands[0].bindings.InputTensor", 'there is no resource "z"', "there are: x, y"),
        ("commands[1].dispatchable", 'there is no dispatchable "opp"', "did you mean `op`?"),
        ("commands[2].dispatchable", 'there is no dispatchable "?"', "there are: op"),
        (
            "commands[2].bindings.OutputTensor",
            "Bind point requires 1 resource, but 2 were bound",
            "",
        ),
    ]


def test_errors_are_values(case: Case) -> None:
    case.write(model(commands=7))
    with pytest.raises(ModelError) as caught:
        dxdispatch.load(case.file)
    error = caught.value
    assert isinstance(error, SpecopsError) and isinstance(error, ValueError)
    assert str(error).startswith(f"{case.file}:")
    copy = pickle.loads(pickle.dumps(error))
    assert copy.problems == error.problems


def test_a_flood_of_errors_ends(case: Case) -> None:
    content = model(commands=[{"type": "print", "resource": "nothing"}] * 5000)
    assert len(case.problems(content)) == MAX_PROBLEMS


# --- writing ---


def writing(path: str, resource: str = "y", **more: Any) -> dict[str, Any]:
    return model(commands=[{"type": "writeFile", "resource": resource, "targetPath": path, **more}])


@pytest.mark.parametrize("path", ["deep/er/h.dat", "deep\\er\\h.dat", "./deep//er/h.dat"])
def test_write_raw(case: Case, path: str) -> None:
    """The whole buffer, with the bytes behind the values; it is told under the name that the file has."""
    content = writing(path, "h")
    content["resources"]["h"] = {"initialValuesDataType": "FLOAT16", "initialValues": [1, 2, 3]}
    lines = case.run(content)
    target = case.output / "deep" / "er" / "h.dat"
    assert lines[-1] == f"Resource 'h' written to '{target}'"
    assert target.read_bytes() == np.array([1, 2, 3, 0], np.float16).tobytes()
    assert [p.name for p in target.parent.iterdir()] == ["h.dat"]


@pytest.mark.parametrize(
    ("dimensions", "shape"),
    [(None, (4,)), ([], (4,)), ([3], (3,)), ([1, 3, 1], (1, 3, 1)), ([2, 2], (2, 2))],
)
def test_write_npy(case: Case, dimensions: list[int] | None, shape: tuple[int, ...]) -> None:
    more = {} if dimensions is None else {"dimensions": dimensions}
    content = writing("h.npy", "h", **more)
    content["resources"]["h"] = {"initialValuesDataType": "FLOAT16", "initialValues": [1, 2, 3]}
    case.run(content)
    found = np.load(case.output / "h.npy", allow_pickle=False)
    expected = np.array([1, 2, 3, 0], np.float16)[: int(np.prod(shape))].reshape(shape)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected, strict=True)


def test_what_was_written_can_be_read(case: Case) -> None:
    case.run(writing("y.npy"))
    (case.output / "y.npy").rename(case.folder / "y.npy")
    assert case.values(with_values({"sourcePath": "y.npy"}, None))["r"].tolist() == [7, 7]


def test_without_a_folder_nothing_is_written(case: Case) -> None:
    case.write(writing("y.bin"))
    with pytest.raises(ModelError, match="no folder to write to"):
        dxdispatch.run(case.file, output=io.StringIO())
    assert dxdispatch.check(case.file) == []


@pytest.mark.parametrize("path", ["model.json", "x.bin", "x.bin/y.npy", "sub"])
def test_without_a_folder_to_write_to_nothing_is_in_the_way(case: Case, path: str) -> None:
    """The model's own folder is not taken for it: what is there, the model may write elsewhere."""
    (case.folder / "x.bin").write_bytes(bytes(24))
    (case.folder / "sub").mkdir()
    content = writing(path)
    content["resources"]["x"]["initialValues"] = {"sourcePath": "x.bin"}
    case.write(content)
    assert dxdispatch.check(case.file) == []
    assert case.problems(content, output_folder=case.output) == []


@pytest.mark.parametrize("path", ["../y.npy", "/y.npy", "NUL"])
def test_without_a_folder_to_write_to_names_are_checked(case: Case, path: str) -> None:
    case.write(writing(path))
    assert [p.path for p in dxdispatch.check(case.file)] == ["commands[0].targetPath"]


@pytest.mark.parametrize("place", ["output", "output/a"])
def test_a_file_in_place_of_a_folder(case: Case, place: str) -> None:
    """It is told before anything runs, with the file that is in the way."""
    case.output.rmdir()
    file = case.folder.parent / place
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"")
    problem = case.refused(writing("a/y.bin"), output_folder=case.output)
    assert problem.path == "commands[0].targetPath"
    assert problem.message == f'"a/y.bin" cannot be written: {file.resolve()} is no folder'
    assert "--output-path" in problem.hint


def test_a_file_that_is_in_the_way_when_the_model_runs(case: Case) -> None:
    loaded = dxdispatch.load(case.write(writing("a/y.bin")).file, output_folder=case.output)
    (case.output / "a").write_bytes(b"")
    with pytest.raises(
        ModelError, match=r"commands\[0\]: \"a/y\.bin\" cannot be written: .*no folder"
    ):
        dxdispatch.run(loaded, output=io.StringIO())


def test_a_file_is_replaced_not_followed(case: Case, tmp_path: Path) -> None:
    """A link in the output folder to a file in it is followed; a hard link's other name keeps its content."""
    other = tmp_path / "other"
    other.write_text("mine")
    os.link(other, case.output / "y.bin")
    case.run(writing("y.bin"))
    assert other.read_text() == "mine"
    assert (case.output / "y.bin").stat().st_size == 8


def test_the_model_and_its_files_are_not_overwritten(case: Case) -> None:
    (case.folder / "x.bin").write_bytes(bytes(24))
    for name in ("model.json", "x.bin", "sub/../x.bin", "./x.bin"):
        content = writing(name)
        content["resources"]["x"]["initialValues"] = {"sourcePath": "x.bin"}
        problem = case.refused(content, output_folder=case.folder)
        assert problem.path == "commands[0].targetPath"


# --- a hostile file ---

OUTSIDE = [
    "../secret", "a/../../secret", "..\\secret", "/etc/passwd", "\\\\server\\share\\x", "C:\\x", "C:x", "file:stream",
    "", ".", "..", "/", "x\0y", "x\ny", "NUL", "con.txt", "con .txt", "sub/aux.npy", "CONIN$", "conout$.txt", "com\xb9",
    "x.", "x ", "a" * 5000, "a/" * 500 + "a", "\x1b[2J",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_that_lead_out(case: Case, path: str) -> None:
    (case.folder.parent / "secret").write_bytes(bytes(8))
    problem = case.refused(with_values({"sourcePath": path}))
    assert problem.path == "resources.r.initialValues.sourcePath"
    problem = case.refused(writing(path), output_folder=case.output)
    assert problem.path == "commands[0].targetPath"
    assert problem.message.isprintable()
    assert sorted(p.name for p in case.folder.parent.iterdir()) == ["model", "output", "secret"]


HUGE = [
    with_values({"value": 0, "valueCount": 2**32 - 1}),
    with_values({"valueStart": 0, "valueDelta": 1, "valueCount": 2**32 - 1}, "UINT8"),
    with_values([1], sizeInBytes=2**63),
    with_values([1], sizeInBytes=2**64 - 1),
]


@pytest.mark.parametrize("content", HUGE)
def test_memory_is_limited(case: Case, content: Any) -> None:
    problem = case.refused(content)
    assert problem.path == "resources.r" and "the limit is 1073741824" in problem.message
    assert "--max-memory" in problem.hint


@pytest.mark.parametrize("size", [2**62, 2**63])  # for NumPy, the second is no size at all
def test_more_memory_than_there_is(case: Case, size: int) -> None:
    content = with_values([1], sizeInBytes=size)
    with pytest.raises(NoMemoryError, match=f"no memory for resource 'r' of {size} bytes"):
        case.values(content, limits=Limits(size))


def test_limits_count_together_and_can_be_raised(case: Case) -> None:
    content = with_values({"value": 0, "valueCount": 1000}, "UINT8")
    content["resources"]["s"] = content["resources"]["r"]
    content["commands"] = []
    assert case.problems(content, limits=Limits(2000)) == []
    assert case.refused(content, limits=Limits(1999)).path == "resources.s"


def test_printing_and_writing_are_limited(case: Case) -> None:
    content = with_values({"value": 0, "valueCount": 1 << 16}, "UINT8")
    content["commands"] *= 2
    limits = Limits(1 << 20)  # prints 64 KiB
    assert case.refused(content, limits=limits).path == "commands[1]"
    command = {"type": "writeFile", "resource": "r", "targetPath": "r"}
    content["commands"] = [command] * 17
    assert case.refused(content, limits=limits, output_folder=case.output).path == "commands[16]"


def test_work_is_limited(case: Case) -> None:
    content = model()
    content["commands"] = [content["commands"][0]] * 200
    assert case.problems(content, limits=Limits(200 * 32 // 64)) == []
    assert case.refused(content, limits=Limits(200 * 32 // 64 - 1)).path == "commands[198]"


UNREADABLE = {
    "empty": ("", 1, 1, "the file ends"),
    "spaces": (" \n ", 2, 2, "the file ends"),
    "end in an object": ('{"a": 1', 1, 8, "opened in line 1"),
    "end in a comment": ('{"a": 1 /* never', 1, 9, "a comment that never ends"),
    "end in a string": ('{"a', 1, 2, "never ends"),
    "line end in a string": ('{"a\n": 1}', 1, 4, "a line ends inside a string"),
    "single quotes": ("{'a': 1}", 1, 2, "found '"),
    "no colon": ('{"a" 1}', 1, 6, 'expected ":"'),
    "no comma": ('{"a": [1 2]}', 1, 10, 'expected "," or "]"'),
    "two commas": ('{"a": [1,,2]}', 1, 10, "found ,"),
    "leading zero": ('{"a": 01}', 1, 7, "01 is no number"),
    "plus": ('{"a": +1}', 1, 7, "found +1"),
    "point": ('{"a": 1.}', 1, 7, "1. is no number"),
    "hexadecimal": ('{"a": 0x10}', 1, 7, "0x10 is no number"),
    "infinity": ('{"a": -Infinity}', 1, 7, "is no value"),
    "nan": ('{"a": NaN}', 1, 7, "NaN is no value of JSON"),
    "overflow": ('{"a": 1e999}', 1, 7, "too large"),
    "digits": ('{"a": ' + "9" * 5000 + "}", 1, 7, "characters"),
    "word": ('{"a": yes}', 1, 7, "found yes"),
    "escape": ('{"a": "\\x"}', 1, 8, "no escape"),
    "short unicode": ('{"a": "\\u12"}', 1, 8, "four hexadecimal digits"),
    "surrogate": ('{"a": "\\ud800"}', 1, 8, "surrogate"),
    "control character": ('{"a": "\x01"}', 1, 8, "control character"),
    "twice": ('{"a": 1,\n "a": 2}', 2, 2, "stands twice"),
    "deep array": ("[" * 100000, 1, 66, "nested more than"),
    "deep object": ('{"a":' * 100000, 1, 326, "nested more than"),
    "wide array": (
        "[" + "[]," * 300000,
        1,
        3 * parser.MAX_NODES - 1,
        "objects, arrays and members",
    ),
    "wide object": (
        "{" + "".join(f'"{i:06}":0,' for i in range(300000)),
        1,
        11 * parser.MAX_NODES,
        "objects, arrays and members",
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_text_that_is_not_json(case: Case, kind: str) -> None:
    text, line, column, says = UNREADABLE[kind]
    problem = case.refused(text)
    assert (problem.line, problem.column) == (line, column), problem.message
    assert says in problem.message


@pytest.mark.parametrize("text", ["\\ud800\\u0041", "\\ud800\\ud800", "\\udc00\\ud800"])
def test_halves_of_surrogate_pairs(case: Case, text: str) -> None:
    problem = case.refused(f'{{"a": "{text}"}}')
    assert (problem.column, problem.message) == (8, "half of a surrogate pair")


def test_the_dialect(case: Case) -> None:
    """Comments of C and C++, trailing commas, escapes, and text behind the model, which is not read."""
    text = """\ufeff// first
    { /* a
    comment */ "resources": { "r\\u00e9\\ud83d\\ude00\\n": { "initialValuesDataType": "FLOAT32", // "x": [
      "initialValues": [ -0.5e1 , 2E+0, /**/ 3, ], }, },
    "dispatchables": {},
    "commands": [ { "type": "print", "resource": "r\\u00e9\\ud83d\\ude00\\n", }, ],
    } trailing [ text"""
    assert case.run(text) == ["Running on 'CPU'", "Resource 'r\u00e9\U0001f600\\n': -5, 2, 3"]


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "null", "{}"])
def test_json_that_is_no_model(case: Case, text: str) -> None:
    assert {p.severity for p in case.problems(text)} == {"error"}


def test_files_that_cannot_be_read(case: Case, tmp_path: Path) -> None:
    case.file.write_bytes(b'{"a": "\xff"}')
    (problem,) = dxdispatch.check(case.file)
    assert "byte 7 is not UTF-8" in problem.message and problem.line == 0
    (problem,) = dxdispatch.check(tmp_path)
    assert "cannot be read" in problem.message
    (problem,) = dxdispatch.check(tmp_path / "none.json")
    assert "cannot be read" in problem.message
    case.file.write_bytes(b" " * (parser.MAX_BYTES + 1))
    (problem,) = dxdispatch.check(case.file)
    assert "more than" in problem.message


def test_a_flood_of_warnings_hides_no_error(case: Case) -> None:
    content = {**{f"a{i}": 0 for i in range(3 * MAX_PROBLEMS)}, **model()}
    problems = case.problems(content)
    assert len(problems) == MAX_PROBLEMS
    assert case.run(content)[-1] == "Resource 'y': 2, 2"
    assert case.refused({**content, "commands": [7]}).path == "commands[0]"


def test_a_flood_of_dispatchables(case: Case) -> None:
    op = {"type": "ARGMAX", "desc": desc()}
    content = model(dispatchables={f"op{i}": op for i in range(501)}, commands=[])
    assert case.refused(content).path == "dispatchables"


def test_large_arrays_are_read(case: Case) -> None:
    count = 300_000
    content = with_values(list(range(count)), "UINT32")
    content["commands"] = []
    assert int(case.values(content)["r"].sum()) == count * (count - 1) // 2


TOKENS = [
    "{", "}", "[", "]", ",", ":", '"', "\\", "0", "-1", "1e308", "4294967296", "18446744073709551616", "null", "true",
    '"nan"', '""', "[]", "{}", "//", "/*", "*/", "\n", "\0", "\ud800", "\u202e", '"../x"', '"FLOAT16"', '"INT64"',
]  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """The text with a few parts cut, doubled, exchanged or replaced."""
    for _ in range(chance.randint(1, 3)):
        begin = chance.randrange(len(text))
        end = min(len(text), begin + chance.randint(0, 12))
        other = chance.randrange(len(text))
        replacement = chance.choice(
            [
                "",
                chance.choice(TOKENS),
                text[begin:end] * 2,
                text[other : other + chance.randint(1, 40)],
            ]
        )
        text = text[:begin] + replacement + text[end:]
    return text


def renamed(value: Any, chance: random.Random, pool: list[Any]) -> Any:
    """The same tree with some values exchanged for others."""
    if chance.random() < 0.04:
        return chance.choice(pool)
    if isinstance(value, dict):
        return {k: renamed(v, chance, pool) for k, v in value.items() if chance.random() > 0.01}
    if isinstance(value, list):
        return [renamed(v, chance, pool) for v in value]
    return value


POOL: list[Any] = [
    None, True, 0, 1, -1, 2, 16, 2**31, 2**32 - 1, 2**64, 1.5, 1e300, "", "x", "y", "nan", "FLOAT16", "UINT8", "ARGMAX",
    "DECREASING", "OWNED_BY_DML", [], [0], [1, 1], [2, 3], [2**32 - 1] * 8, {}, {"DataType": "FLOAT32", "Sizes": [1]},
    {"value": 1, "valueCount": 6}, {"sourcePath": "model.json"}, [[[]]],
]  # fmt: skip


def attempt(case: Case, text: str) -> bool:
    """Whether a model ran; every other end than a ModelError fails the test."""
    case.write(text)
    limits = Limits(1 << 16)
    try:
        dxdispatch.run(case.file, output=io.StringIO(), output_folder=case.output, limits=limits)
    except ModelError as error:
        assert error.problems and all(str(p).isprintable() for p in error.problems)
        return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_mutated_files_never_end_in_a_traceback(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    base = owned()
    base["commands"].append(
        {"type": "writeFile", "resource": "y", "targetPath": "y.npy", "dimensions": [2]}
    )
    text = json.dumps(base)
    ran = sum(attempt(case, mutated(text, chance)) for _ in range(60))
    ran += sum(attempt(case, json.dumps(renamed(base, chance, POOL))) for _ in range(60))
    assert 0 < ran < 120
    assert {p.name for p in case.folder.parent.iterdir()} == {"model", "output"}


# --- the rest ---


def test_without_commands_nothing_runs(case: Case) -> None:
    assert case.run(model(commands=[])) == ["Running on 'CPU'"]


def test_it_prints_to_standard_output(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    dxdispatch.run(case.write(model()).file)
    assert capsys.readouterr().out.startswith("Running on 'CPU'\nDispatch 'op'")


def test_a_loaded_model_runs_again(case: Case) -> None:
    loaded = dxdispatch.load(case.write(model()).file)
    for _ in range(2):
        values = dxdispatch.run(loaded, output=io.StringIO())
        assert values["y"].tolist() == [2, 2]
    with pytest.raises(TypeError, match="takes no feature_level"):
        dxdispatch.run(loaded, feature_level="1.0")


def test_each_directml_operator_is_found() -> None:
    specs = {p.stem for p in (trees.PROJECT / "specs" / "directml").glob("*.yaml")}
    assert {op.removeprefix("DML_OPERATOR_").lower() for op in OPERATORS} == specs


def test_a_new_directml_operator_is_found(generated: trees.Tree) -> None:
    """A spec is enough: the registry names it, and so models reach it."""
    text = generated.text(trees.ARGMAX).replace("DML_OPERATOR_ARGMAX", "DML_OPERATOR_ARGMOST")
    generated.write("specs/directml/argmost.yaml", text)
    assert generated("generate").code == 0
    registry = generated.text("generated/specops/directml/registry.py")
    assert '"DML_OPERATOR_ARGMOST": ArgmostOperatorDesc' in registry
    assert generated.path("generated/specops/pages/directml_argmost.txt").is_file()
    assert "directml/argmost" in generated.text("generated/specops/catalogue.json")


def test_owned_tensors_count_as_memory(case: Case) -> None:
    """They are copied: a file of many dispatchables that own one buffer cannot exhaust a machine."""
    content = owned()
    del content["commands"][1]
    assert case.problems(content, limits=Limits(32 + 24)) == []
    assert "the limit is 55" in case.refused(content, limits=Limits(32 + 24 - 1)).message


def test_an_output_may_end_where_an_input_begins(case: Case) -> None:
    content = dispatching(InputTensor={"name": "b", "elementOffset": 4}, OutputTensor="b")
    tensor = {"DataType": "UINT32", "Sizes": [4, 1]}
    content["dispatchables"]["op"]["desc"]["InputTensor"]["Sizes"] = [4, 3]
    content["dispatchables"]["op"]["desc"]["OutputTensor"] = tensor
    content["resources"]["b"] = {
        "initialValuesDataType": "FLOAT32",
        "initialValues": [0] * 4 + [0, 1, 0, 5, 0, 0, 0, 0, 2, 0, 3, 0],
    }
    assert case.values(content)["b"].view(np.uint32)[:4].tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("shape", [(6,), (1, 6), (6, 1)])
def test_column_major_files_that_are_row_major_too(case: Case, shape: tuple[int, ...]) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}}}".encode().ljust(4096)
    (case.folder / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00\x00\x10" + header + np.arange(6, dtype="<f4").tobytes()
    )
    values = case.values(with_values({"sourcePath": "x.npy"}))
    assert values["r"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Neither a half of the file, nor a temporary one, nor a word of it; what was there before stays."""
    (tmp_path / "y.bin").write_bytes(b"before")

    def blocks() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(files.Refused, match="No space left on device"):
        files.write(tmp_path, "y.bin", blocks())
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("y.bin", b"before")]
    files.write(tmp_path, "y.bin", [b"after"])
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("y.bin", b"after")]
    assert not files._under_way
