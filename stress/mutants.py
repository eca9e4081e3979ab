"""Damaged validators and kernels: each damage must make a test fail; those that none notices are named.

Validators are damaged in memory, in all ways, what several have word for word in one of them; the generated cases of
the operator run, then hand-written ones. Kernels are damaged at places drawn from a seed: see kernels.py.
"""

from __future__ import annotations

import argparse
import ast
import faulthandler
import importlib
import inspect
import itertools
import json
import os
import pkgutil
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from stress import PROJECT, children, scale
from stress.damage import Mutant, mutants

SECONDS = 60  # of one validator's tests
NONE = -1  # in place of a number of a damage: none
# Operators that were compiled before; not their kernels.
forget = partial(scale.forget, ("specops.lowering.",))


class Test(NamedTuple):
    """A test of damaged code; of kernels with the data type that it is about."""

    name: str
    run: Callable[[], object]
    dtype: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30, help="time to run for (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    parser.add_argument(
        "--sample",
        type=int,
        default=100,
        help="number of mutants of each kernel module (default: 100)",
    )
    parser.add_argument(
        "--only",
        default="",
        help="damage only what has this in its name, e.g. directml/argmax or kernels/softmax",
    )


def run(options: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * options.minutes
    survivors = 0
    seen: set[str] = set()
    load()
    # The newest versions first: what others share with them is damaged there.
    for operator in reversed(operators()):
        if options.only in operator and time.monotonic() < end:
            survivors += validators(operator, end, seen)
    kernels = [k for k in kernel_names() if options.only in f"kernels/{k}"]
    for i, name in enumerate(kernels):
        share = (end - time.monotonic()) / (len(kernels) - i)
        survivors += kernel(name, options, share)
    return survivors


def load() -> None:
    """What the children have in common, before they are forked."""
    import test_agreement  # noqa: PLC0415

    test_agreement.specs()
    lowering_modules()


def lowering_modules() -> list[types.ModuleType]:
    lowering = importlib.import_module("specops.lowering")
    found = [i.name for i in pkgutil.iter_modules(lowering.__path__)]
    return [importlib.import_module(f"specops.lowering.{name}") for name in found]


def kernel_names() -> list[str]:
    """Modules that compute; `chunks` runs what they compile."""
    folder = PROJECT / "generated" / "specops" / "kernels"
    return sorted(p.stem for p in folder.glob("*.py") if p.stem not in ("__init__", "chunks"))


def kernel(name: str, options: argparse.Namespace, seconds: float) -> int:
    """In a process of its own, where LLVM does not optimise: kernels are compiled in half the time."""
    command = [sys.executable, "-m", "stress.kernels", name]
    for option in ("seed", "sample"):
        command += [f"--{option}", str(getattr(options, option))]
    command += ["--seconds", str(seconds)]
    return survivors_of(command)


def survivors_of(command: list[str]) -> int:
    """What a process counts, in a line that is a JSON object; its other lines are shown.

    Its exit status says nothing but whether it came to its end: a traceback is no survivor.
    """
    environment = {**os.environ, "NUMBA_OPT": "0"}
    counted = {}
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{"):
                counted = json.loads(line)
            else:
                print(line, end="", flush=True)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    number: int = counted["survivors"]
    return number


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
        values = (field.default, field.sizes, field.dtype)
        yield from (c for c in values if hasattr(c, "function"))


def of_validators(module: types.ModuleType, seen: set[str]) -> Iterator[Damage]:
    """All damages to the functions and tables of an operator's module; not to what `seen` holds word for word."""
    operator = module.OPERATOR
    # All operators share the rules of tensors.
    shared = operator.tensor_rules if operator.name == "DML_OPERATOR_ARGMAX" else ()
    places = [(rule, "check") for rule in (*operator.rules, *shared)]
    places += [(c, "function") for c in computed(operator)]
    for owner, attribute in places:
        function = getattr(owner, attribute)
        source = inspect.getsource(function)
        if source in seen:
            continue
        seen.add(source)
        tree = ast.parse(source)
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef)
        # Without the docstring.
        definition.body = [s for s in definition.body if not isinstance(s, ast.Expr)]
        definition.returns = None
        for argument in definition.args.args:
            argument.annotation = None
        for mutant in mutants(tree, function.__name__):
            yield damaged(owner, attribute, function, mutant)
    for rule in operator.rules:
        rest = tuple(r for r in operator.rules if r is not rule)
        yield Damage(f"rule {rule.id} removed", partial(put, operator, "rules", rest))
        opposite = negated(rule.check)
        yield Damage(f"rule {rule.id} negated", partial(put, rule, "check", opposite))
        for need in rule.needs:
            needs = tuple(n for n in rule.needs if n != need)
            yield Damage(f"rule {rule.id} does not need {need}", partial(put, rule, "needs", needs))
    for rule in operator.tensor_rules:
        rest = tuple(r for r in operator.tensor_rules if r is not rule)
        yield Damage(f"tensor rule {rule.id} removed", partial(put, operator, "tensor_rules", rest))
    for row in operator.support:
        rest = tuple(r for r in operator.support if r is not row)
        yield Damage(f"table {row.since} removed", partial(put, operator, "support", rest))
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
                yield Damage(what, partial(put, allowed, "ranks", ranks))
            for dtype in allowed.dtypes:
                rest = tuple(d for d in allowed.dtypes if d != dtype)
                what = f"table {row.since}: {name} without {dtype}"
                yield Damage(what, partial(put, allowed, "dtypes", rest))


def damaged(owner: Any, attribute: str, function: Any, mutant: Mutant) -> Damage:
    def apply() -> None:
        space = dict(function.__globals__)
        exec(compile(mutant.tree(), mutant.name, "exec"), space)
        put(owner, attribute, space[function.__name__])

    return Damage(mutant.name, apply)


def negated(check: Any) -> Any:
    return lambda **values: not check(**values)


def tests(label: str) -> list[Test]:
    """The generated tests that should notice, the quickest first."""
    import test_cases  # noqa: PLC0415

    found: list[Test] = []
    for name, function in vars(test_cases).items():
        if not name.startswith("test_"):
            continue
        (mark,) = function.pytestmark
        for row in mark.args[1]:
            values = row.values if hasattr(row, "values") else (row,)
            if test_cases.label(values[0]) == label:
                found.append(Test(name, partial(function, *values)))
    order = [
        "test_violation",
        "test_unsupported",
        "test_feature",
        "test_ranks",
        "test_data",
        "test_",
    ]
    found.sort(
        key=lambda test: next(i for i, start in enumerate(order) if test.name.startswith(start))
    )
    return found


def by_hand(label: str) -> Iterator[Test]:
    """Hand-written tests of an operator."""
    if label in ("directml/argmax", "directml/argmin", "directml/reduce"):
        import test_validators  # noqa: PLC0415

        for test in calls(test_validators.test_the_greatest_index_fits):
            yield Test("test_validators", test)
        yield Test("test_validators", test_validators.test_data_types_of_reductions)
        for number in range(2000 if label == "directml/argmax" else 0):
            yield Test("test_validators", partial(test_validators.check, number))
    import test_agreement  # noqa: PLC0415

    for number in range(test_agreement.DESCRIPTIONS):
        yield Test("test_agreement", partial(test_agreement.check, label, number))
    if not label.startswith("directml/"):
        yield Test("test_agreement", partial(test_agreement.test_data_types, label))
    if label.startswith("plain/"):
        import test_arrays  # noqa: PLC0415

        for test in calls(test_arrays.test_fewest_and_most_dimensions):
            yield Test("test_arrays", test)
    import test_pool_sizes  # noqa: PLC0415

    if label == "directml/max_pooling_grad":
        yield Test("test_pool_sizes", test_pool_sizes.test_gradient_sizes)
    if label in test_pool_sizes.LABELS:
        for number in range(test_pool_sizes.CALLS):
            yield Test("test_pool_sizes", partial(test_pool_sizes.check, label, number))
        if label in test_pool_sizes.GENERAL:
            yield Test(
                "test_pool_sizes", partial(test_pool_sizes.test_all_numbers_of_dimensions, label)
            )
        if label in test_pool_sizes.DIRECTML:
            yield Test("test_pool_sizes", partial(test_pool_sizes.test_output_sizes, label))
    for number in range(test_pool_sizes.CALLS if label in test_pool_sizes.UNPOOLING else 0):
        yield Test("test_pool_sizes", partial(test_pool_sizes.check_unpooling, label, number))
    if label.startswith("onnx/"):
        import test_onnx  # noqa: PLC0415

        for name, function in vars(test_onnx).items():
            if name.startswith("test_") and "pooling" not in name:
                yield from (Test(f"test_onnx.{name}", call) for call in calls(function))


def calls(function: Any) -> Iterator[Callable[[], object]]:
    """A test with each combination of its parameters."""
    for arguments in parameters(function):
        yield partial(function, **arguments)


def parameters(function: Any) -> Iterator[dict[str, Any]]:
    sets: list[list[dict[str, Any]]] = []
    for mark in getattr(function, "pytestmark", []):
        names, values = mark.args
        if isinstance(names, str):
            sets.append([{names: value} for value in values])
        else:
            sets.append([dict(zip(names, value, strict=True)) for value in values])
    for chosen in itertools.product(*sets):
        yield {name: value for part in chosen for name, value in part.items()}


def noticed(tests: list[Test]) -> str:
    """The test that fails; empty where none does."""
    for test in tests:
        try:
            test.run()
        except BaseException:  # pytest's Failed is none of Exception
            return test.name
    return ""


def validators(label: str, end: float, seen: set[str]) -> int:
    """Damage one operator's validator in all ways; the number of survivors."""
    module = importlib.import_module(f"specops.{label.replace('/', '.')}")
    all_damages, all_tests = list(of_validators(module, seen)), tests(label)
    noticed(all_tests)  # loads kernels that the children have in common
    all_tests += by_hand(label)

    def survives(number: int) -> bool:
        silence()
        forget()
        if number != NONE:
            all_damages[number].apply()
        return not noticed(all_tests)

    start = time.monotonic()
    numbers = [NONE, *range(len(all_damages))]
    found = dict(children.apart(survives, numbers, SECONDS, end))
    assert found.pop(NONE, True), f"a test of {label} fails without damage"
    survivors = [damage for n, damage in enumerate(all_damages) if found.get(n)]
    for damage in survivors:
        print(f"{label}: {damage.name}")
    count(label, len(survivors), len(found), len(all_damages), start)
    return len(survivors)


def silence() -> None:
    """Nothing of this process is to be seen, nor what LLVM says when it gives up."""
    faulthandler.disable()  # pytest's writes to a copy of standard error
    for standard in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), standard)


def count(label: str, survivors: int, done: int, of: int, start: float) -> None:
    number = f"{done} of {of}" if done < of else f"{done}"
    took = time.monotonic() - start
    print(f"... {label}: {number} mutants, {survivors} survived ({took:.0f} s)", flush=True)
