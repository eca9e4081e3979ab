"""The nets hold: a damaged kernel, spec, vocabulary or template turns a table, the linter or a floor red."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trees
from test_trace import Floors
from trees import ARGMAX, VOCABULARY, Tree

from generator import exits


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all, so that kernels which a case leaves alone come from the cache."""
    return trees.copy(tmp_path_factory.mktemp("sabotage") / "tree", specs=trees.FEW)


@pytest.fixture
def sabotaged(base: Path, run: Callable[[list[str]], trees.Result]) -> Iterator[Tree]:
    """The shared tree, as the project has it; mended afterwards."""
    yield Tree(base, run)
    for name in ("specs", "templates"):
        shutil.rmtree(base / name)
    trees.copy(base, specs=trees.FEW)


def tables(tree: Tree) -> trees.Result:
    """Generate, and run the generated tables."""
    generated = tree("generate")
    assert generated.code == exits.OK, generated.err
    # argmax alone: the damage is done to it, and the other kernels would be compiled anew each time.
    chosen = ("-k", "directml/argmax or plain/argmax")
    pytest_ = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(tree.root))
    tests = str(tree.root / "generated" / "tests")
    return trees.run_generated(tree.root, *pytest_, *chosen, tests)


def replace(tree: Tree, file: str, old: str, new: str) -> None:
    """Replace each occurrence, of which there must be one."""
    text = tree.text(file)
    assert old in text, f"{file} has no: {old}"
    tree.write(file, text.replace(old, new))


def test_unharmed_is_green(sabotaged: Tree) -> None:
    """Without damage the tables are green, so that red means the damage."""
    result = tables(sabotaged)
    assert result.code == 0, result.said
    assert " passed" in result.out


KERNEL = "templates/kernels/search.py"
LOWERING = "templates/runtime/lowering/search.py"

# name: (file, old, new, the test that turns red)
RED_TABLES = {
    "kernel: index one too large": (
        KERNEL,
        "best == rule.nan_key else index",
        "best == rule.nan_key else index + 1",
        "test_function",
    ),
    "kernel: NaN compares as a number": (
        "templates/helpers/order_key.py",
        "return builder.select(nan, nan_key, key)",
        "return key",
        "test_function",
    ),
    "kernel: nothing but NaN has an index": (
        LOWERING,
        'self._nan_is_0 = infinity is not None and nan == "ignored"',
        "self._nan_is_0 = False",
        "test_function",
    ),
    "kernel: the other end of the order": (
        LOWERING,
        'flip if better == "greater" else ~flip',
        'flip if better != "greater" else ~flip',
        "test_function",
    ),
    "kernel: the least of a vector's keys": (
        "templates/helpers/vectors.py",
        "llvm.vector.reduce.smax.",
        "llvm.vector.reduce.smin.",
        "test_function",
    ),
    "template: tie swapped": (
        "templates/rules.jinja",
        "{{ p.name }}={{ p.text }},",
        '{{ p.name }}={{ p.text | replace("first", "second") | replace("last", "first")'
        ' | replace("second", "last") }},',
        "test_function",
    ),
    "template: a rule's check is another's": (
        "templates/rules.jinja",
        "check={{ rule.id }},",
        "check={{ rules[0].id }},",
        "test_",
    ),
    "template: no rule waits for another": (
        "templates/rules.jinja",
        "{% if rule.needs %}",
        "{% if false %}",
        "test_violation",
    ),
    "template: a data type of the table is lost": (
        "templates/rules.jinja",
        "dtypes={{ t.dtypes | literal(20, 7) }},",
        "dtypes={{ t.dtypes[1:] | literal(20, 7) }},",
        "test_function",
    ),
    "runtime: violations are not found": (
        "templates/runtime/validation.py",
        "if not rule.holds(values):",
        "if False:",
        "test_violation",
    ),
    "spec: expected value of an example": (
        ARGMAX,
        "OutputTensor: {dtype: UINT32, data: [[7]]}",
        "OutputTensor: {dtype: UINT32, data: [[5]]}",
        "test_function",
    ),
    "spec: NaN rule": (ARGMAX, "    value: ignored\n", "    value: propagates\n", "test_function"),
}


@pytest.mark.parametrize("name", RED_TABLES)
def test_tables_turn_red(sabotaged: Tree, name: str) -> None:
    file, old, new, where = RED_TABLES[name]
    replace(sabotaged, file, old, new)
    result = tables(sabotaged)
    assert result.code == 1, f"{name}: nobody noticed\n{result.said}"
    assert f"FAILED generated/tests/test_cases.py::{where}" in result.out, result.out


TYPES_4_1 = "dtypes: [FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8]"

# name: (file, old, new, code)
SAME_DTYPE = """\
  - id: same_dtype
    use: same_dtype(OutputTensor, InputTensor)
    field: OutputTensor
    page: Tensor constraints
    violate: {OutputTensor.dtype: FLOAT16}
"""
RED_LINT = {
    "a data type dropped from the newest table": (
        ARGMAX,
        TYPES_4_1,
        TYPES_4_1.replace("FLOAT16, ", ""),
        "E230",
    ),
    "a data type dropped that the function's output has": (
        ARGMAX,
        "OutputTensor: {ranks: 1..8, dtypes: [INT64, INT32, UINT64, UINT32]}",
        "OutputTensor: {ranks: 1..8, dtypes: [INT64, INT32, UINT64]}",
        "E103",
    ),
    "a data type dropped that an example has": (
        ARGMAX,
        "dtypes: [FLOAT32, FLOAT16, ",
        "dtypes: [FLOAT16, ",
        "E224",
    ),
    "a rank dropped that an older level has": (
        ARGMAX,
        f"ranks: 1..8\n      {TYPES_4_1}",
        f"ranks: 3..8\n      {TYPES_4_1}",
        "E230",
    ),
    "a rank dropped that an example has": (
        ARGMAX,
        "ranks: 1..8",
        "ranks: 3..8",
        "E224",
    ),
    "a result set free from its input's data type": (
        "specs/directml/activation_hardmax1.yaml",
        SAME_DTYPE,
        "",
        "E226",
    ),
    "a function set free from its input's data type": (
        "specs/plain/hardmax.yaml",
        "dtype: x.dtype",
        "dtype: FLOAT32",
        "E226",
    ),
    "a constraint weakened": (
        ARGMAX,
        "use: no_repeats(Axes)",
        "use: length_is(AxisCount, Axes)",
        "E221",
    ),
    "a shared constraint weakened": (
        VOCABULARY,
        "require: all(a < rank(tensor) for a in axes)",
        "require: all(a <= rank(tensor) for a in axes)",
        "E221",
    ),
    "a constraint of tensors weakened": (
        VOCABULARY,
        "require: all(s > 0 for s in tensor.sizes)",
        "require: all(s >= 0 for s in tensor.sizes)",
        "E221",
    ),
    "a constraint strengthened": (
        VOCABULARY,
        "require: all(a < rank(tensor) for a in axes)",
        "require: all(a + 1 < rank(tensor) for a in axes)",
        "E220",
    ),
    "a `needs` forgotten": (ARGMAX, "    needs: [same_rank, axes_in_range]\n", "", "E222"),
    "an example that contradicts a rule": (
        ARGMAX,
        "data: [[1, 2, 1]]}",
        "data: [[1], [2], [1]]}",
        "E220",
    ),
    "a constraint that others need removed": (
        ARGMAX,
        "- id: same_rank",
        "- id: equal_rank",
        "E213",
    ),
}


@pytest.mark.parametrize("name", RED_LINT)
def test_lint_turns_red(sabotaged: Tree, name: str) -> None:
    file, old, new, code = RED_LINT[name]
    replace(sabotaged, file, old, new)
    result = sabotaged("lint")
    assert result.code == exits.ERRORS, f"{name}: nobody noticed"
    assert f"error[{code}]: " in result.err, result.err


POOLING = "specs/directml/max_pooling2.yaml"
# A result's data type that follows only where indices are wanted; a derived value that most data types have not.
WITH_INDICES = """\
  - id: same_dtype
    require: OutputTensor.dtype == InputTensor.dtype and OutputIndicesTensor.dtype != "INT8"
    allowed: OutputTensor and InputTensor have the same data type
"""
GREATEST = """\
derived:
  - {name: top, value: greatest(InputTensor.dtype), doc: The greatest number.}
"""


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (SAME_DTYPE[: SAME_DTYPE.index("    field")], WITH_INDICES, "E226"),
        ("derived:\n", GREATEST, "E225"),
    ],
    ids=["an absent output", "no value"],
)
def test_what_proves_data_types(whole: Tree, old: str, new: str, code: str) -> None:
    """A constraint proves nothing where a tensor that it reads may be absent; an expression may have no value."""
    replace(whole, POOLING, old, new)
    result = whole("lint", "directml/max_pooling2")
    assert result.code == exits.ERRORS
    assert f"error[{code}]: " in result.err, result.err


# What is consistently gone from a spec leaves no trace in it: then the floors of test_trace.py are red.
GONE = {
    "a constraint": ("  - id: index_fits\n", "\nsemantics:"),
    "an example": ("  - id: no_axes\n", "\nerrata:"),
}


@pytest.mark.parametrize("name", GONE)
def test_floors_turn_red(whole: Tree, name: str) -> None:
    start, end = GONE[name]
    text = whole.text(ARGMAX)
    a, b = text.index(start), text.index(end)
    whole.write(ARGMAX, text[:a] + text[b:])
    assert whole("lint").code == exits.OK
    assert Floors.of(whole.root).missing()


def test_floors_turn_red_for_a_data_type(whole: Tree) -> None:
    """INT64 is in no example and in one table: only the floor notices that it is gone."""
    replace(whole, ARGMAX, TYPES_4_1, TYPES_4_1.replace("INT64, INT32, ", "INT32, "))
    assert whole("lint").code == exits.OK
    assert Floors.of(whole.root).missing()
