"""Nothing is lost on the way: each constraint's id arrives everywhere, and the counts have floors.

A run that collects nothing, or a spec that lost a rule together with its test, is red here.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import symtable
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trees
import yaml
from trees import PROJECT

from generator.expr import language
from generator.lint.subject import MODULE_NAMES

GENERATED = PROJECT / "generated"

SPECS = sorted(
    path.relative_to(PROJECT / "specs").with_suffix("").as_posix()
    for path in (PROJECT / "specs").glob("*/*.yaml")
)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def table(spec: str) -> ModuleType:
    """The generated table of cases of one operator."""
    name = spec.replace("/", "_")
    found = importlib.util.spec_from_file_location(
        f"traced_{name}", GENERATED / "tests" / "cases" / f"{name}.py"
    )
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def rule_ids(tree: ast.Module) -> dict[str, str]:
    """The id of each `Rule(...)` of a module, with the name of the function that checks it."""
    out = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Rule"
        ):
            id = node.args[0]
            assert isinstance(id, ast.Constant)
            check = next(k.value for k in node.keywords if k.arg == "check")
            assert isinstance(check, ast.Name)
            out[str(id.value)] = check.id
    return out


def listed(tree: ast.Module) -> list[str]:
    """The ids that the docstring lists under `Constraints:`."""
    text = (ast.get_docstring(tree) or "").partition("Constraints:\n")[2]
    return re.findall(r"^    (\w+): ", text.split("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize("spec", SPECS)
def test_each_constraint_arrives(spec: str) -> None:
    """In the validator's table and as its function, in the docstring, and in the table of violations."""
    ids = [c["id"] for c in read(PROJECT / "specs" / f"{spec}.yaml")["constraints"]]
    source = (GENERATED / "specops" / f"{spec}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert rule_ids(tree) == {id: id for id in ids}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(ids) <= functions
    assert listed(tree) == ids, spec
    own = [id for id, _, _ in table(spec).VIOLATIONS]
    assert own[: len(ids)] == ids


@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith("directml/")])
def test_each_constraint_of_tensors_arrives(spec: str) -> None:
    """For each tensor that it holds for, in the table of violations; and in the module of tensor rules."""
    constraints = read(PROJECT / "specs/vocabulary.yaml")["tensor_constraints"]
    tree = ast.parse((GENERATED / "specops/directml/tensor_rules.py").read_text(encoding="utf-8"))
    assert rule_ids(tree) == {c["id"]: c["id"] for c in constraints}
    data = read(PROJECT / "specs" / f"{spec}.yaml")
    wanted = {
        (c["id"], f["name"])
        for c in constraints
        for f in data["fields"]
        if f["type"] == "tensor" and c.get("only") in (None, f["kind"])
    }
    own = {c["id"] for c in data["constraints"]}
    found = {(id, field) for id, field, _ in table(spec).VIOLATIONS if id not in own}
    assert found == wanted


@pytest.mark.parametrize("spec", SPECS)
def test_each_example_arrives(spec: str) -> None:
    ids = [e["id"] for e in read(PROJECT / "specs" / f"{spec}.yaml")["examples"]]
    assert [e["id"] for e in table(spec).EXAMPLES] == ids


@pytest.mark.parametrize("spec", SPECS)
def test_each_equivalence_arrives(spec: str) -> None:
    """Each case of each equivalence is a row, against the operator that the spec names."""
    entries = read(PROJECT / "specs" / f"{spec}.yaml").get("equivalences", [])
    wanted = [e["operator"] for e in entries for _ in e["cases"]]
    assert ["/".join(row["other"][:2]) for row in table(spec).EQUIVALENCES] == wanted


@pytest.mark.parametrize("spec", SPECS)
def test_no_name_is_taken_twice(spec: str) -> None:
    """What a module imports and defines beside the spec's own names is what the linter keeps specs from."""
    source = (GENERATED / "specops" / f"{spec}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    places = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets]
    places += [n.target for n in tree.body if isinstance(n, ast.AnnAssign)]
    names |= {place.id for place in places if isinstance(place, ast.Name)}
    assert names - {"annotations"} <= MODULE_NAMES | language.FUNCTIONS.keys()


@pytest.mark.parametrize("spec", SPECS)
def test_readme_names_each_operator(spec: str) -> None:
    """The README's table has each function, and each version of ONNX's."""
    dialect, _, name = spec.partition("/")
    lines = (PROJECT / "README.md").read_text(encoding="utf-8").partition("## Operators")[2]
    cells = [line.split("|") for line in lines.split("\n## ")[0].splitlines() if "`" in line]
    column = {"directml": 2, "onnx": 3, "plain": 4}[dialect]
    version = re.search(r"_(\d+)$", name) if dialect == "onnx" else None
    function = name[: version.start()] if version else name
    rows = [c[column] for c in cells if len(c) > column and f"`{function}`" in c[column]]
    assert len(rows) == 1, function
    assert version is None or version[1] in re.findall(r"\d+", rows[0])


@pytest.mark.parametrize(("folder", "below"), [("generator", ""), ("templates", "runtime")])
def test_contributing_names_each_module(folder: str, below: str) -> None:
    """The table of which part is in which file: files, patterns of names, and folders, which stand for all in them."""
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition(f"### In `{folder}/`\n")[2].partition("\n#")[0].splitlines()
    cells = [row.split("|")[2] for row in rows if "|" in row]
    named = [name for cell in cells for name in re.findall(r"`([\w/*]+(?:\.py|/))`", cell)]
    assert [name for name in named if not any((PROJECT / folder).glob(name))] == []
    # Of these two folders, whose rows say little, only the kernels' host classes need no rows of their own.
    kernels = read(PROJECT / "specs/vocabulary.yaml")["kernels"]
    patterns = [f"runtime/lowering/{kernel}.py" for kernel in kernels]
    patterns += [name for name in named if name not in ("runtime/", "runtime/lowering/")]
    patterns = [f"{name}*" if name.endswith("/") else name for name in patterns]
    files = (PROJECT / folder / below).rglob("[!_]*.py")
    modules = sorted(path.relative_to(PROJECT / folder).as_posix() for path in files)
    assert [m for m in modules if not any(fnmatch(m, pattern) for pattern in patterns)] == []


def test_violations_are_asserted_by_id() -> None:
    """The one body of the tests compares the ids of all violations with the row's id, both for both dialects."""
    body = (GENERATED / "tests/test_cases.py").read_text(encoding="utf-8")
    compared = "assert [(v.id, v.field) for v in caught.value.violations] == [(id, field)]"
    assert body.count(compared) == 2
    collected = collect()
    for spec in SPECS:
        for id, field, _ in table(spec).VIOLATIONS:
            name = rf"test_violation_of_a_\w+\[{re.escape(spec)}:{id}-{field}"
            assert re.search(name, collected), (spec, id, field)


ALL, FUNCTIONS = ("directml", "onnx", "plain"), ("onnx", "plain")
# Of each generated test the table whose rows it runs, none where it runs once for an operator, and the dialects.
RUNS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "test_function": ("EXAMPLES", ALL),
    "test_description": ("EXAMPLES", ("directml",)),
    "test_compiled_node": ("EXAMPLES", ("onnx",)),
    "test_violation_of_a_description": ("VIOLATIONS", ("directml",)),
    "test_violation_of_a_call": ("VIOLATIONS", FUNCTIONS),
    "test_unsupported_data_type": ("UNSUPPORTED", ("directml",)),
    "test_data_types_of_a_function": (None, FUNCTIONS),
    "test_feature_levels": (None, ("directml",)),
    "test_supported_data_types": ("RANKS", ("directml",)),
    "test_ranks": ("RANKS", ("directml",)),
    "test_ranks_of_a_function": (None, FUNCTIONS),
    "test_needs": ("NEEDS", ALL),
    "test_equivalence": ("EQUIVALENCES", ALL),
}


def test_each_row_is_run() -> None:
    """By each test of its table, and no table is without rows of a dialect."""
    wanted: Counter[tuple[str, str]] = Counter()
    for cases in map(table, SPECS):
        for test, (rows, dialects) in RUNS.items():
            if cases.DIALECT in dialects:
                wanted[test, cases.DIALECT] += len(getattr(cases, rows)) if rows else 1
    assert all(wanted.values())
    assert Counter(re.findall(r"::(test_\w+)\[(\w+)/", collect())) == wanted


# --- floors ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floors:
    """How much there is of everything. Raise a floor when something is added; it never sinks unnoticed."""

    operators: int
    constraints: int
    tensor_constraints: int
    examples: int
    equivalences: int
    data_types: int  # pairs of a data type and a tensor, over all tables

    @staticmethod
    def of(root: Path) -> Floors:
        specs = [read(path) for path in sorted((root / "specs").glob("*/*.yaml"))]
        return Floors(
            operators=len(specs),
            constraints=sum(len(s["constraints"]) for s in specs),
            tensor_constraints=len(read(root / "specs/vocabulary.yaml")["tensor_constraints"]),
            examples=sum(len(s["examples"]) for s in specs),
            equivalences=sum(len(s.get("equivalences", [])) for s in specs),
            data_types=sum(
                len(tensor["dtypes"])
                for s in specs
                for row in s["support"]
                for tensor in row.values()
                if isinstance(tensor, dict) and "dtypes" in tensor
            ),
        )

    def missing(self) -> list[str]:
        """What there is less of than the floor says."""
        return [
            f"{name}: {getattr(self, name)} < {floor}"
            for name, floor in vars(FLOORS).items()
            if getattr(self, name) < floor
        ]


FLOORS = Floors(
    operators=125,
    constraints=577,
    tensor_constraints=9,
    examples=1347,
    equivalences=152,
    data_types=1709,
)
TESTS = {"generated/tests": 5500, "tests": 5500}
DIAGNOSTICS = 235


def collect(folder: str = "generated/tests") -> str:
    result = trees.spawn(
        *("-m", "pytest", folder, "--collect-only", "-q", "-p", "no:cacheprovider"),
        # What it shows is read: no options of this run.
        environment={"PYTHONPATH": f"{PROJECT / 'generated'}", "PYTEST_ADDOPTS": ""},
    )
    assert result.code == 0, result.said
    return result.out


def test_floors() -> None:
    assert Floors.of(PROJECT).missing() == []


@pytest.mark.parametrize("folder", TESTS)
def test_floor_of_collected_tests(folder: str) -> None:
    found = re.search(r"(\d+) tests collected", collect(folder))
    assert found
    assert int(found[1]) >= TESTS[folder]


def test_floor_of_diagnostics() -> None:
    assert len(list((PROJECT / "tests/diagnostics").glob("*.yaml"))) >= DIAGNOSTICS


# --- what may not be there -------------------------------------------------------------------------------------------


def test_nothing_by_hand_below_generated() -> None:
    """Each file is in the manifest, and the manifest names no other."""
    lines = (GENERATED / "MANIFEST").read_text(encoding="utf-8").splitlines()
    named = {line.partition("  ")[2] for line in lines}
    assert named | {"MANIFEST"} == set(trees.contents(GENERATED))


def test_nothing_is_skipped() -> None:
    """No test is marked as skipped or as expected to fail."""
    marks = re.compile(
        r"\b(?:pytest\.(?:skip|xfail|importorskip)|mark\.(?:skip|skipif|xfail)|unittest\.skip)\b"
    )
    files = [*(PROJECT / "tests").rglob("*.py"), *(PROJECT / "templates/tests").rglob("*")]
    assert len(files) > 5
    for path in files:
        if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts:
            assert not marks.search(path.read_text(encoding="utf-8")), path


def test_generated_package_imports_only_what_it_may() -> None:
    """numpy, numba (with llvmlite), ml_dtypes, the standard library and itself: nothing of the generator.

    The ONNX backend imports onnx, too, which is an extra.
    """
    always = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "ml_dtypes", "specops"}
    backend = [GENERATED / "specops/onnx" / name for name in ("backend.py", "model.py")]
    for path in (GENERATED / "specops").rglob("*.py"):
        allowed = {*always, "onnx"} if path in backend else always
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert {n.split(".")[0] for n in names} <= allowed, path


KERNELS = [p for p in (GENERATED / "specops/kernels").glob("*.py") if p.stem != "__init__"]


def test_kernels_stand_alone() -> None:
    """A kernel imports nothing of this package: a cache on disk does not see changes of other files."""
    assert KERNELS
    for path in KERNELS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                assert not (node.module or "").startswith("specops"), path


def test_kernels_define_each_name_once_and_use_it() -> None:
    """Helpers of several files are pasted into one: a name of two would replace the first, one of none is noise."""
    package = GENERATED / "specops"
    hosts = [*(package / "lowering").glob("*.py"), package / "launch.py", package / "workers.py"]
    text = "".join(p.read_text(encoding="utf-8") for p in hosts)
    taken = {*re.findall(r"\b(?:kernel|chunks|max_pool)\.(\w+)", text)}
    for path in KERNELS:
        code = path.read_text(encoding="utf-8")
        body = ast.parse(code).body
        functions = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        names = [n.name for n in functions]
        private = set()
        for node in body:
            if isinstance(node, ast.Assign):
                targets = [n for t in node.targets for n in ast.walk(t)]
                constants = [n.id for n in targets if isinstance(n, ast.Name)]
                names += constants
                private |= {n for n in constants if n.startswith("_")}
        assert len(names) == len({*names}), path
        code = code.replace("from __future__ import annotations\n", "")  # it hides what these read
        read = {*_read(symtable.symtable(code, "", "exec"))}
        plain = {
            f.name for f in functions if not any(isinstance(d, ast.Call) for d in f.decorator_list)
        }
        assert (plain | private) - read <= taken, path


def _read(scope: symtable.SymbolTable) -> Iterator[str]:
    """The module's names that code reads, whatever the scope: a function's own variables are others."""
    for symbol in scope.get_symbols():
        if symbol.is_referenced() and symbol.is_global():
            yield symbol.get_name()
    for inner in scope.get_children():
        yield from _read(inner)
