"""Models of DxDispatch, DirectML's command-line runner, on any CPU and system.

    from specops import dxdispatch

    dxdispatch.run("model.json")                            # prints as DxDispatch does
    dxdispatch.check("model.json", feature_level="4.1")     # a list of all that is wrong, with places

What is read: resources with array, constant, sequence, file (raw bytes and .npy) and mixed initial values;
dispatchables that are DirectML operators of this package; the commands dispatch, print and writeFile; comments and
trailing commas. What is not: HLSL, ONNX and serialized-graph dispatchables, deferred resources, images. Each is refused
with its place in the file, before anything runs.

As in DxDispatch: counts (AxisCount, ...) must be there; members it does not know are ignored, here with a warning; a
sequence adds up in its data type; `print` shows as many elements as were initialised, floats with six digits.
Otherwise than in DxDispatch:
- 8-bit integers are printed as numbers, where it prints raw characters;
- `sourcePath` is found below the model's folder only, not below the current one; `targetPath` below a folder that the
  caller names, without which nothing is written;
- a `.npy` file with `dimensions` holds as many elements as these say, without the buffer's padding;
- a finite number that is infinite in its data type, and a name that stands twice in one object, are errors;
- an operator runs once, untimed, before its first dispatch is timed: that call compiles its kernels;
- the first line says that it runs on the CPU, and there are no GPU timings.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy.typing as npt

from specops import reading
from specops.dxdispatch import parser, reader
from specops.dxdispatch.context import Context
from specops.dxdispatch.limits import Limits, Usage
from specops.dxdispatch.model import Model
from specops.dxdispatch.problems import ModelError, Problem, Report, TooMany
from specops.dxdispatch.runner import Output, Runner, Timing
from specops.errors import SpecopsError
from specops.reading import NotUnderstood

__all__ = ["Limits", "Model", "ModelError", "Problem", "Timing", "check", "load", "run"]


class Options(TypedDict, total=False):
    """What `load` takes beside a file."""

    feature_level: str | None
    input_folder: str | os.PathLike[str] | None
    output_folder: str | os.PathLike[str] | None
    limits: Limits


_DEFAULT_LIMITS = Limits()
_DEFAULT_TIMING = Timing()


def load(
    path: str | os.PathLike[str],
    *,
    feature_level: str | None = None,
    input_folder: str | os.PathLike[str] | None = None,
    output_folder: str | os.PathLike[str] | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> Model:
    """Read and check a model; nothing runs yet.

    Args:
        path: the model's file.
        feature_level: "4.1", "4_1" or "DML_FEATURE_LEVEL_4_1" to check against that level's tables; None for the
            general definition, which may allow more than any level.
        input_folder: where `sourcePath` is found; None for the model's folder.
        output_folder: where `targetPath` is written; None refuses to write.
        limits: what the model may use.

    Returns:
        The model, which `run` takes, once or many times.

    Raises:
        ModelError: with all that is wrong, each with its place.
        SpecopsError: there is no such feature level.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from specops import dxdispatch
    >>> text = '''{
    ...     "resources": { "input": { "initialValuesDataType": "FLOAT32", "initialValues": [3, 1, 4] } },
    ...     "dispatchables": {},
    ...     "commands": [{ "type": "print", "resource": "input" }]
    ... }'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.json")
    ...     _ = path.write_text(text)
    ...     model = dxdispatch.load(path)
    >>> values = dxdispatch.run(model)
    Running on 'CPU'
    Resource 'input': 3, 1, 4
    """
    model = _read(path, feature_level, input_folder, output_folder, limits, will_run=True)
    model.report.fail()
    return model


def check(
    path: str | os.PathLike[str],
    *,
    feature_level: str | None = None,
    input_folder: str | os.PathLike[str] | None = None,
    output_folder: str | os.PathLike[str] | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> list[Problem]:
    """All that is wrong with a model, in the order of the file, and warnings; arguments as for `load`.

    Without `output_folder` the names of written files are checked all the same, but not what would be in their way.

    Raises:
        SpecopsError: there is no such feature level.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from specops import dxdispatch
    >>> text = '''{
    ...     "resources": {},
    ...     "dispatchables": {},
    ...     "commands": [{ "type": "print", "resource": "output" }]
    ... }'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.json")
    ...     _ = path.write_text(text)
    ...     problems = dxdispatch.check(path)
    >>> for p in problems:
    ...     print(f"line {p.line}, {p.path}: {p.message}")
    line 4, commands[0].resource: there is no resource "output"
    """
    model = _read(path, feature_level, input_folder, output_folder, limits, will_run=False)
    return sorted(model.report.problems, key=lambda p: (p.line, p.column))


def run(
    model: str | os.PathLike[str] | Model,
    *,
    timing: Timing = _DEFAULT_TIMING,
    output: Output | None = None,
    begin: Callable[[str], None] = lambda name: None,
    **options: Unpack[Options],
) -> dict[str, npt.NDArray[Any]]:
    """Run a model, printing what DxDispatch prints.

    Args:
        model: a file, or what `load` returned.
        timing: how often each dispatch runs, and what is told of it.
        output: where the lines go; None for standard output.
        begin: called before each dispatch, which may take long, with the name of its dispatchable.
        options: as for `load`; none for what `load` returned, which was checked with its own.

    Returns:
        The values of each resource afterwards, one-dimensional, by name; none for resources of several types.

    Raises:
        ModelError: with all that is wrong, each with its place; nothing ran. While it runs: a file cannot be read or
            written.
        SpecopsError: there is no such feature level, or no memory for a resource.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from specops import dxdispatch
    >>> text = '''{
    ...     "resources": {
    ...         "input": { "initialValuesDataType": "FLOAT32", "initialValues": [3, 1, 4] },
    ...         "output": { "initialValuesDataType": "UINT32", "initialValues": [0] }
    ...     },
    ...     "dispatchables": {
    ...         "greatest": {
    ...             "type": "DML_OPERATOR_ARGMAX",
    ...             "desc": {
    ...                 "InputTensor": { "DataType": "FLOAT32", "Sizes": [3] },
    ...                 "OutputTensor": { "DataType": "UINT32", "Sizes": [1] },
    ...                 "AxisCount": 1,
    ...                 "Axes": [0],
    ...                 "AxisDirection": "DML_AXIS_DIRECTION_INCREASING"
    ...             }
    ...         }
    ...     },
    ...     "commands": [
    ...         {
    ...             "type": "dispatch",
    ...             "dispatchable": "greatest",
    ...             "bindings": { "InputTensor": "input", "OutputTensor": "output" }
    ...         },
    ...         { "type": "print", "resource": "output" }
    ...     ]
    ... }'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.json")
    ...     _ = path.write_text(text)
    ...     values = dxdispatch.run(path)  # doctest: +ELLIPSIS
    Running on 'CPU'
    Dispatch 'greatest': 1 iterations, ... ms median (CPU)
    Resource 'output': 2
    >>> values["output"]
    array([2], dtype=uint32)
    """
    if isinstance(model, Model) and options:
        raise TypeError(f"a loaded model takes no {', '.join(options)}; `load` does")
    loaded = model if isinstance(model, Model) else load(model, **options)
    lines = sys.stdout if output is None else output
    lines.write("Running on 'CPU'\n")
    return Runner(loaded, lines, timing, begin).run()


def _read(
    path: str | os.PathLike[str],
    feature_level: str | None,
    input_folder: str | os.PathLike[str] | None,
    output_folder: str | os.PathLike[str] | None,
    limits: Limits,
    *,
    will_run: bool,
) -> Model:
    try:
        wanted = reading.feature_level(feature_level)
    except NotUnderstood as problem:
        message = f"there is no feature level {problem.found}; there are {problem.allowed}"
        raise SpecopsError(message) from None
    file = Path(path)
    report = Report(str(path))
    output = None if output_folder is None else Path(output_folder)
    model = Model(report.file, report, output=output)
    text = _text(file, report)
    if text is None:
        return model
    report.text = text
    root = parser.parse(report)
    if root is None:
        return model
    home = file.resolve()
    input = home.parent if input_folder is None else Path(input_folder)
    context = Context(root, model, input, {home}, Usage(limits), wanted, will_run)
    with contextlib.suppress(TooMany):
        reader.read(context)
    return model


def _text(file: Path, report: Report) -> str | None:
    """The file's text; None with the reason in the report."""
    try:
        with file.open("rb") as opened:
            data = opened.read(parser.MAX_BYTES + 1)
        if len(data) > parser.MAX_BYTES:
            hint = "put large data into .npy files"
            report.error(None, f"more than {parser.MAX_BYTES} bytes", hint)
            return None
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        report.error(None, f"byte {error.start} is not UTF-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        report.error(None, f"cannot be read: {reason or error}")
    return None
