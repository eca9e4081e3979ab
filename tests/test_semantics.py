"""A spec is not decoration: what it says changes what is generated, and what the kernels return."""

from __future__ import annotations

import json
import re

import pytest
import trees
from trees import ARGMAX, VOCABULARY, Tree

from generator import exits

# The answers of the operator to calls that tell all its meanings apart; keyed by what each one shows.
PROBE = """
import json
import re
import numpy as np
from specops import directml as dml

inf, nan = np.inf, np.nan
def ask(x, axes, direction="INCREASING"):
    return dml.argmax(np.array(x, np.float32), axes=axes, axis_direction=direction).ravel().tolist()

print(json.dumps({
    "extreme": ask([[1, 3, 2, -1]], [1]),
    "first": ask([[5, 1, 5, 1]], [1]),
    "last": ask([[5, 1, 5, 1]], [1], "DECREASING"),
    "nan": ask([[1, nan, 2, nan]], [1]),
    "all_nan": ask([[nan, nan]], [1], "DECREASING"),
    "axes": ask([[1, 5], [7, 3], [2, 9]], [0]),
}))
"""
UNCHANGED = {
    "extreme": [1],
    "first": [0],
    "last": [2],
    "nan": [2],
    "all_nan": [0],
    "axes": [1, 2],
}

# key: (old text, new text, the answers that become others)
CHANGES = {
    "nothing": ("kernel: arg_reduce", "kernel: arg_reduce", {}),
    "better": (
        "better: {value: greater,",
        "better: {value: less,",
        {"extreme": [3], "first": [1], "last": [3], "nan": [0], "axes": [0, 1]},
    ),
    "tie": (
        "values: {INCREASING: first, DECREASING: last}",
        "values: {INCREASING: last, DECREASING: first}",
        {"first": [2], "last": [0]},
    ),
    "tie_by_nothing": (
        "    by: AxisDirection\n    values: {INCREASING: first, DECREASING: last}\n",
        "    value: last\n",
        {"first": [2], "last": [2]},
    ),
    "nan": ("    value: ignored\n", "    value: propagates\n", {"nan": [1], "all_nan": [1]}),
}


def answers(tree: Tree) -> dict[str, object]:
    result = trees.run_generated(tree.root, "-c", PROBE)
    assert result.code == 0, result.err
    found: dict[str, object] = json.loads(result.out)
    return found


@pytest.mark.parametrize("key", CHANGES)
def test_meaning(generated: Tree, key: str) -> None:
    """Each value under `semantics` decides what the kernel returns; what it does not decide stays."""
    old, new, changed = CHANGES[key]
    generated.edit(ARGMAX, old, new)
    if key == "tie_by_nothing":
        said = "silent:\n  - {id: axis_direction, decided: It has no effect.}\n"
        generated.edit(ARGMAX, "silent:\n", said)
    assert generated("check").code == (exits.DIFFERENCES if changed else exits.OK)
    assert generated("generate").code == exits.OK
    assert answers(generated) == {**UNCHANGED, **changed}


def test_axes(generated: Tree) -> None:
    """The expression for the axes decides which axes the kernel reduces: here each axis but those named."""
    generated.edit(ARGMAX, "axes: {value: Axes,", 'axes: {value: "[1 - a for a in Axes]",')
    # All that follows from the axes follows them: the output's sizes, the constraint, the example.
    generated.edit(ARGMAX, "[1 if d in Axes else Inp", "[1 if (1 - d) in Axes else Inp")
    text = generated.text(ARGMAX)
    start, end = text.index("  - id: reduced_sizes"), text.index("  - id: index_fits")
    text = text[:start] + text[end : text.index("\n  - id: rows\n")] + "\n\nerrata: []\n"
    generated.write(ARGMAX, text)
    generated.edit(ARGMAX, "data: [[1, 2, 1]]}", "data: [[2], [2], [1]]}")
    for path in sorted((generated.root / "specs").rglob("arg*.yaml")):  # nothing is its equal now
        text = re.sub(r"(?ms)^equivalences:.*?(?=^\w|\Z)", "", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
    result = generated("generate")
    assert result.code == exits.OK, result.err
    probe = (
        "import numpy as np; from specops import directml as dml;"
        "x = np.array([[1, 5, 0], [7, 3, 9]], np.float32);"
        "print(dml.argmax(x, axes=[0]).tolist(), dml.argmax(x, axes=[1]).tolist())"
    )
    found = trees.run_generated(generated.root, "-c", probe)
    assert found.out == "[[1], [2]] [[1, 0, 1]]\n", found.err


LOWERING = '''"""The host's side of a kernel that counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specops.kernels import last_index as kernel


class LastIndex:
    """The index of the last element, whatever the elements are."""

    def __init__(self, *, better: str, tie: str, nan: str, axes: Sequence[int], input: Any, output: Any) -> None:
        self._count = 1
        for a in axes:
            self._count *= input.sizes[a]

    def __call__(self, x: Any, out: Any) -> None:
        out[...] = kernel.last(self._count)
'''
KERNEL = '''"""Another meaning."""

from numba import njit


@njit
def last(count):  # type: ignore[no-untyped-def]
    return count - 1
'''


def test_kernel(generated: Tree) -> None:
    """Another kernel family is a template, a lowering and a word of the vocabulary; `kernel:` switches to it."""
    generated.write("templates/kernels/last_index.py", KERNEL)
    generated.write("templates/runtime/lowering/last_index.py", LOWERING)
    vocabulary = generated.text(VOCABULARY)
    start = vocabulary.index("  arg_reduce:\n")
    family = vocabulary[start : vocabulary.index("  hardmax:\n")]
    generated.edit(VOCABULARY, family, family + family.replace("arg_reduce", "last_index"))
    generated.edit(ARGMAX, "kernel: arg_reduce", "kernel: last_index")
    result = generated("generate")
    assert result.code == exits.OK, result.err
    # The other operator keeps its kernel, so both are there.
    for module in ("search", "last_index"):
        assert generated.path(f"generated/specops/kernels/{module}.py").is_file()
    assert answers(generated) == {
        "extreme": [3],
        "first": [3],
        "last": [3],
        "nan": [3],
        "all_nan": [1],
        "axes": [2, 2],
    }


# --- the rest of a spec ----------------------------------------------------------------------------------------------

VALIDATOR = "generated/specops/directml/argmax.py"
PAGE = "generated/specops/pages/directml_argmax.txt"
TABLE = "generated/tests/cases/directml_argmax.py"


def differences(tree: Tree) -> dict[str, str]:
    """The diff of each file that `check` finds different."""
    result = tree("check")
    assert result.code == exits.DIFFERENCES
    parts = result.out.split("error: ")[1:]
    return {part.split(" ")[0]: part for part in parts}


def test_data_type(generated: Tree) -> None:
    """A data type that goes: refused by the validator, named in the docstring, tested as unsupported."""
    old = "dtypes: [FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8]"
    generated.edit(ARGMAX, old, old.replace("UINT64, ", ""))
    found = differences(generated)
    assert {VALIDATOR, TABLE} <= found.keys()
    assert "UINT64" in found[VALIDATOR]
    assert '+    ("4.1", "InputTensor", "UINT64", None),' in found[TABLE]
    assert generated("generate").code == exits.OK
    assert '("4.1", "InputTensor", "UINT64", None)' in generated.text(TABLE)
    probe = (
        "import numpy as np; from specops import directml as dml\n"
        "try:\n    dml.argmax(np.zeros(3, np.uint64))\n"
        "except dml.argmax.__globals__['functions'].ValidationError as e:\n    print(e.violations[0].id)"
    )
    assert trees.run_generated(generated.root, "-c", probe).out == "supported_data_type\n"


def test_constraint(generated: Tree) -> None:
    """A changed constraint changes the check, its sentence in docstring and message, and its test."""
    generated.edit(
        ARGMAX,
        "    use: no_repeats(Axes)\n    field: Axes\n",
        "    require: unique(Axes) and len(Axes) <= 4\n    allowed: at most four axes, none twice\n    field: Axes\n",
    )
    generated.edit(
        ARGMAX, "violate: {Axes: [0, 0], AxisCount: 2}", "violate: {Axes: [0, 0, 0], AxisCount: 3}"
    )
    found = differences(generated)
    assert {VALIDATOR, TABLE} <= found.keys()
    assert "+    return unique(Axes) and len(Axes) <= 4" in found[VALIDATOR]
    assert "+    axes_unique: at most four axes, none twice (decided)" in found[VALIDATOR]
    assert generated("generate").code == exits.OK
    text = generated.text(VALIDATOR)
    assert "return unique(Axes) and len(Axes) <= 4" in text
    assert 'allowed="at most four axes, none twice"' in text
    assert '{"Axes": [0, 0, 0], "AxisCount": 3}' in generated.text(TABLE)


def test_shared_constraint(generated: Tree) -> None:
    """A constraint of the vocabulary reaches every operator that uses it."""
    generated.edit(
        VOCABULARY, "require: unique(array)", "require: unique(array) and len(array) < 65"
    )
    found = differences(generated)
    assert {VALIDATOR, "generated/specops/plain/argmax.py"} <= found.keys()


def test_removed_constraint(generated: Tree) -> None:
    """It goes from the validator and from the tests."""
    text = generated.text(ARGMAX)
    start, end = text.index("  - id: index_fits"), text.index("\nsemantics:")
    generated.write(ARGMAX, text[:start] + text[end:])
    found = differences(generated)
    assert {VALIDATOR, TABLE} <= found.keys()
    assert generated("generate").code == exits.OK
    assert "index_fits" not in generated.text(VALIDATOR) + generated.text(TABLE)


def test_example(generated: Tree) -> None:
    """A changed example changes the table of cases; the first one the docstrings too."""
    generated.edit(
        ARGMAX,
        "OutputTensor: {dtype: UINT32, data: [[7]]}",
        "OutputTensor: {dtype: UINT32, data: [[5]]}",
    )
    found = differences(generated)
    assert list(found) == [PAGE, TABLE]
    assert "[[5]]" in found[TABLE] and "[[5]]" in found[PAGE]
    generated.edit(
        ARGMAX,
        "OutputTensor: {dtype: UINT32, data: [[1, 2, 1]]}",
        "OutputTensor: {dtype: UINT32, data: [[1, 2, 0]]}",
    )
    found = differences(generated)
    assert set(found) == {PAGE, TABLE, VALIDATOR}
    assert "+    [[1, 2, 0]]" in found[VALIDATOR]


def test_field(generated: Tree) -> None:
    """A changed default is the function's default."""
    generated.edit(ARGMAX, "    default: INCREASING\n", "    default: DECREASING\n")
    assert '+    axis_direction: str | int = "DECREASING",' in differences(generated)[VALIDATOR]
