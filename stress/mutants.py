"""Damaged validators and kernels: each damage must make a test fail; those that none notices are named.

A validator is damaged in memory, in all ways; its generated cases run, then hand-written ones. A kernel is damaged in
a copy of the package, at places drawn from a seed; small contract cases run on it, then all the tests of the kernel.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stress import PROJECT, children

SECONDS = 60.0  # of one validator's tests
KERNEL_SECONDS = 120.0  # of one kernel's compilation and cases
TESTS_SECONDS = 900.0  # of all tests of a kernel


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="part of a name, such as directml/argmax or kernels/softmax"
    )


def run(options: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * options.minutes
    survivors = 0
    for operator in operators():
        if options.only in operator and time.monotonic() < end:
            survivors += validators(operator, end)
    kernels = [k for k in KERNELS if options.only in f"kernels/{k}"]
    for i, name in enumerate(kernels):
        share = (end - time.monotonic()) / (len(kernels) - i)
        survivors += kernel(name, options.seed, time.monotonic() + share)
    return survivors


# --- damage to code --------------------------------------------------------------------------------------------------

COMPARISONS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
CALLS = {"all": "any", "any": "all", "min": "max", "max": "min"}


def siblings() -> dict[str, set[str]]:
    """Of each word of the vocabulary those that may stand in its place."""
    data = yaml.safe_load((PROJECT / "specs" / "vocabulary.yaml").read_text(encoding="utf-8"))
    groups = [list(e["values"]) for e in data["enums"].values()]
    parameters = [p for k in data["kernels"].values() for p in k["parameters"].values()]
    groups += [list(p["values"]) for p in parameters if "values" in p]
    out: dict[str, set[str]] = {}
    for group in groups:
        for word in group:
            out.setdefault(word, set()).update({*group} - {word})
    return out


WORDS = siblings()


def damages(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield from node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.If | ast.While):
        yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield ast.comprehension(node.target, node.iter, [], 0)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield ast.Call(ast.Name(CALLS[node.func.id]), node.args, node.keywords)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int | float):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        elif isinstance(node.value, str):
            yield from map(ast.Constant, sorted(WORDS.get(node.value, ())))


class _Replace(ast.NodeTransformer):
    def __init__(self, place: int, new: ast.AST) -> None:
        self.place, self.new, self.at = place, new, -1

    def visit(self, node: ast.AST) -> ast.AST:
        self.at += 1
        return self.new if self.at == self.place else self.generic_visit(node)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """In the order of NodeTransformer."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


@dataclass
class Mutant:
    """One damage to a tree: what stands at the place with this number, in the order of `walk`."""

    name: str
    root: ast.AST
    place: int
    new: ast.AST

    def tree(self) -> ast.AST:
        return ast.fix_missing_locations(
            _Replace(self.place, self.new).visit(copy.deepcopy(self.root))
        )


def mutants(root: ast.AST, name: str) -> Iterator[Mutant]:
    """Every damage to the bodies of a tree's functions."""
    bodies = [s for f in ast.walk(root) if isinstance(f, ast.FunctionDef) for s in f.body]
    inside = {id(n) for statement in bodies for n in ast.walk(statement)}
    for place, node in enumerate(walk(root)):
        if id(node) in inside:
            for new in damages(node):
                shown = f"{name}:{getattr(node, 'lineno', 0)}: {text(node)} -> {text(new)}"
                yield Mutant(shown, root, place, new)


def text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


# --- validators ------------------------------------------------------------------------------------------------------


def operators() -> list[str]:
    import cases  # noqa: PLC0415

    return [f"{t.DIALECT}/{t.MODULE}" for t in cases.TABLES]


@dataclass
class Damage:
    """A change of an operator's module in memory, with what it replaces."""

    name: str
    apply: Callable[[], None]


def put(owner: Any, attribute: str, value: Any) -> None:
    """Set an attribute of a frozen dataclass."""
    object.__setattr__(owner, attribute, value)


def computed(operator: Any) -> Iterator[Any]:
    """Each value of an operator that a function computes."""
    yield from operator.derived.values()
    yield operator.lower
    for field in operator.fields:
        yield from (c for c in (field.default, field.sizes) if hasattr(c, "function"))


def of_validators(module: types.ModuleType) -> Iterator[Damage]:
    """All damages to the functions and tables of an operator's module."""
    operator = module.OPERATOR
    # All operators share the rules of tensors.
    shared = operator.tensor_rules if operator.name == "DML_OPERATOR_ARGMAX" else ()
    places = [(rule, "check") for rule in (*operator.rules, *shared)]
    places += [(c, "function") for c in computed(operator)]
    for owner, attribute in places:
        function = getattr(owner, attribute)
        tree = ast.parse(inspect.getsource(function))
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef)
        definition.body = [
            s for s in definition.body if not isinstance(s, ast.Expr)
        ]  # the docstring
        definition.returns = None
        for argument in definition.args.args:
            argument.annotation = None
        for mutant in mutants(tree, function.__name__):
            yield damaged(owner, attribute, function, mutant)
    for rule in operator.rules:
        rest = tuple(r for r in operator.rules if r is not rule)
        yield Damage(f"rule {rule.id} removed", lambda rest=rest: put(operator, "rules", rest))
        yield Damage(
            f"rule {rule.id} negated", lambda r=rule, c=rule.check: put(r, "check", negated(c))
        )
        for need in rule.needs:
            needs = tuple(n for n in rule.needs if n != need)
            yield Damage(
                f"rule {rule.id} does not need {need}", lambda r=rule, n=needs: put(r, "needs", n)
            )
    for rule in operator.tensor_rules:
        rest = tuple(r for r in operator.tensor_rules if r is not rule)
        yield Damage(
            f"tensor rule {rule.id} removed", lambda rest=rest: put(operator, "tensor_rules", rest)
        )
    for row in operator.support:
        rest = tuple(r for r in operator.support if r is not row)
        yield Damage(f"table {row.since} removed", lambda rest=rest: put(operator, "support", rest))
        for name, allowed in row.tensors.items():
            low, high = allowed.ranks
            made = (
                {f.name for f in operator.fields if f.kind == "output"}
                if not operator.tensor_rules
                else ()
            )
            for ranks in ((low - 1, high), (low + 1, high), (low, high - 1), (low, high + 1)):
                wider = ranks[0] < low or ranks[1] > high
                if wider and (name in made or not {*ranks} <= {*range(65)}):
                    continue  # NumPy has no such arrays; an output that a function makes has no rank of its own
                what = f"table {row.since}: ranks of {name} {ranks}"
                yield Damage(what, lambda a=allowed, r=ranks: put(a, "ranks", r))
            for dtype in allowed.dtypes:
                rest = tuple(d for d in allowed.dtypes if d != dtype)
                what = f"table {row.since}: {name} without {dtype}"
                yield Damage(what, lambda a=allowed, r=rest: put(a, "dtypes", r))


def damaged(owner: Any, attribute: str, function: Any, mutant: Mutant) -> Damage:
    def apply() -> None:
        space = dict(function.__globals__)
        exec(compile(mutant.tree(), mutant.name, "exec"), space)
        put(owner, attribute, space[function.__name__])

    return Damage(mutant.name, apply)


def negated(check: Any) -> Any:
    return lambda **values: not check(**values)


def tests(label: str) -> list[tuple[str, Callable[[], None]]]:
    """The tests that should notice, the quickest first."""
    import test_cases  # noqa: PLC0415

    found = []
    for name, function in vars(test_cases).items():
        if not name.startswith("test_"):
            continue
        (mark,) = function.pytestmark
        for row in mark.args[1]:
            values = row.values if hasattr(row, "values") else (row,)
            if test_cases.label(values[0]) == label:
                found.append((name, lambda f=function, v=values: f(*v)))
    order = [
        "test_violation",
        "test_unsupported",
        "test_feature",
        "test_ranks",
        "test_data",
        "test_",
    ]
    found.sort(
        key=lambda item: next(i for i, start in enumerate(order) if item[0].startswith(start))
    )
    return [*found, *by_hand(label)]


def by_hand(label: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Hand-written tests of an operator."""
    if label in ("directml/argmax", "directml/argmin"):
        import test_validators  # noqa: PLC0415

        for test in calls(test_validators.test_the_greatest_index_fits):
            yield "test_validators", test
        for number in range(2000 if label == "directml/argmax" else 0):
            yield "test_validators", lambda n=number: test_validators.check(n)
    import test_agreement  # noqa: PLC0415

    for number in range(test_agreement.DESCRIPTIONS):
        yield "test_agreement", lambda n=number: test_agreement.check(label, n)
    if "max_pool" in label:
        import test_pool_sizes  # noqa: PLC0415

        for number in range(test_pool_sizes.CALLS):
            yield "test_pool_sizes", lambda n=number: test_pool_sizes.check(label, n)
        if label in test_pool_sizes.LABELS[3:]:
            yield "test_pool_sizes", lambda: test_pool_sizes.test_all_numbers_of_dimensions(label)
        if label in test_pool_sizes.LABELS[:3]:
            yield "test_pool_sizes", lambda: test_pool_sizes.test_output_sizes(label)
    if label.startswith("onnx/"):
        import test_onnx  # noqa: PLC0415

        for name, function in vars(test_onnx).items():
            if name.startswith("test_") and "pooling" not in name:
                yield from ((f"test_onnx.{name}", call) for call in calls(function))


def calls(function: Any) -> Iterator[Callable[[], None]]:
    """A test with each combination of its parameters."""
    sets: list[list[dict[str, Any]]] = []
    for mark in getattr(function, "pytestmark", []):
        names, values = mark.args
        if isinstance(names, str):
            sets.append([{names: value} for value in values])
        else:
            sets.append([dict(zip(names, value, strict=True)) for value in values])
    for chosen in itertools.product(*sets):
        arguments = {name: value for part in chosen for name, value in part.items()}
        yield lambda a=arguments: function(**a)


def noticed(tests: list[tuple[str, Callable[[], None]]]) -> str:
    """The test that fails; empty where none does."""
    for name, test in tests:
        try:
            test()
        except BaseException:  # pytest's Failed is none of Exception
            return name
    return ""


def forget() -> None:
    """Operators that were compiled before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("specops."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def validators(label: str, end: float) -> int:
    """Damage one operator's validator in all ways; the number of survivors."""
    module = importlib.import_module(f"specops.{label.replace('/', '.')}")
    all_damages, all_tests = list(of_validators(module)), tests(label)

    def run(number: int) -> str:
        if number == 0:
            failed = noticed(all_tests)
            assert not failed, f"{failed} of {label} fails without damage"
        child = os.fork()
        if child == 0:
            os._exit(one(number))
        _, status = os.waitpid(child, 0)
        return "survived" if status == 0 else "noticed"

    def one(number: int) -> int:
        try:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            forget()
            all_damages[number].apply()
            return 1 if noticed(all_tests) else 0
        except BaseException:
            return 1

    survivors = []
    start, count = time.monotonic(), 0
    for number, outcome in children.outcomes(run, len(all_damages), SECONDS, end):
        count += 1
        if outcome == "survived":
            survivors.append(all_damages[number])
    for damage in survivors:
        print(f"{label}: {damage.name}", flush=True)
    done = f"{count} of {len(all_damages)}" if count < len(all_damages) else f"{count}"
    print(
        f"... {label}: {done} mutants, {len(survivors)} survived ({time.monotonic() - start:.0f} s)",
        flush=True,
    )
    return len(survivors)


# --- kernels ---------------------------------------------------------------------------------------------------------

# What runs on each: a module of tests with `check_case(data type, number)`, and the module with the sizes of parts.
KERNELS = {
    "arg_reduce": [("test_contract", "arg_reduce"), ("test_hardmax", "arg_reduce")],
    "softmax": [("test_softmax", "softmax")],
    "max_pool": [("test_max_pool", "pooling"), ("test_pool_grads", "pooling")],
    "sum_pool": [("test_sum_pool", "pooling"), ("test_pool_grads", "pooling")],
}
CASES = """
import importlib, sys
sys.path[:0] = sys.argv[2].split(":")
import specops
assert specops.__file__.startswith(sys.argv[2].split(":")[0])
for pair in sys.argv[3:]:
    test, lowering = pair.split(":")
    test, lowering = importlib.import_module(test), importlib.import_module(f"specops.lowering.{lowering}")
    sizes = {k: v for k, v in (("LARGE_BYTES", 0), ("PART_BYTES", 48), ("TILE_BYTES", 256)) if hasattr(lowering, k)}
    for name in sys.argv[1].split(","):
        for number in range(150):
            test.check_case(name, number)
        before = {k: getattr(lowering, k) for k in sizes}
        vars(lowering).update(sizes)
        for number in range(150, 300):
            test.check_case(name, number)
        vars(lowering).update(before)
"""
TYPES = "FLOAT32,FLOAT16"


def kernel(name: str, seed: int, end: float, most: int = 100) -> int:
    """Damage one kernel at places drawn from the seed; the number of survivors."""
    start = time.monotonic()
    source = (PROJECT / "generated" / "specops" / "kernels" / f"{name}.py").read_text(
        encoding="utf-8"
    )
    found = list(mutants(ast.parse(source), name))
    random.Random(seed).shuffle(found)
    survivors, count = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "specops")
        shutil.copytree(
            PROJECT / "generated" / "specops", package, ignore=shutil.ignore_patterns("__pycache__")
        )
        said = contract(name, Path(folder))
        assert said == "survived", f"{name} fails without damage: {said}"
        for mutant in found[:most]:
            if time.monotonic() > end:
                break
            (package / "kernels" / f"{name}.py").write_text(
                ast.unparse(mutant.tree()), encoding="utf-8"
            )
            count += 1
            if contract(name, Path(folder)) == "survived" and passes(name, Path(folder)):
                survivors += 1
                print(f"kernels/{mutant.name}", flush=True)
    seconds = time.monotonic() - start
    print(
        f"... kernels/{name}: {count} of {len(found)} mutants, {survivors} survived ({seconds:.0f} s)",
        flush=True,
    )
    return survivors


def contract(name: str, folder: Path) -> str:
    """The contract cases of a kernel on the package in a folder: "survived" where all are right."""
    cache = folder / "cache"
    for compiled in cache.glob("kernels*"):
        shutil.rmtree(compiled)
    pairs = [f"{test}:{lowering}" for test, lowering in KERNELS[name]]
    command = [sys.executable, "-c", CASES, TYPES, f"{folder}:{PROJECT / 'tests'}", *pairs]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=KERNEL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "not ended"
    return "survived" if done.returncode == 0 else done.stderr[-2000:]


def passes(name: str, folder: Path) -> bool:
    """Whether all the tests of a kernel pass on the package in a folder."""
    files = [str(PROJECT / "tests" / f"{test}.py") for test, _ in KERNELS[name]]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(folder),
    }
    try:
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            timeout=TESTS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
