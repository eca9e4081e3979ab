"""Damaged kernels, at places drawn from a seed: part of `python -m stress mutants`.

Numba is loaded once; each mutant takes the kernel's place in a child, with no cache. The tests of the contract run on
FLOAT16 first, which compiles as many branches as any type; those that survive them run the others, also with float16
converted as on a processor that cannot.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import itertools
import json
import random
import sys
import time
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import specops
from specops import launch
from specops.kernels import chunks
from stress import PROJECT, children
from stress.damage import Mutant, mutants, reached, with_users
from stress.mutants import NONE, Test, count, forget, lowering_modules, noticed, parameters, silence

FIRST = "FLOAT16"
OTHERS = ("FLOAT32", "FLOAT64", "BFLOAT16", "INT8", "INT64", "")  # the rest run the same code
FIRST_SECONDS = 60  # of processor time, for the tests of the first type
SECONDS = 300  # for all
COMMON_SECONDS = 20  # for what children have in common
FIRST_SHARE = 0.9  # of the time, at most


def uses(module: types.ModuleType, other: types.ModuleType) -> bool:
    """Whether it has the other one, or what is defined or begun there, among its names."""

    def made(value: object) -> set[str]:
        return {getattr(v, "__module__", "") for v in (value, *getattr(value, "__mro__", ()))}

    return any(v is other or other.__name__ in made(v) for v in vars(module).values())


class Kernel:
    """A kernel's module, what brings it to the tests, and the tests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = importlib.import_module(f"specops.kernels.{name}")
        self.users = [m for m in lowering_modules() if uses(m, self.module)]
        self.source = Path(str(self.module.__file__)).read_text(encoding="utf-8")
        self.tests = list(itertools.chain(*map(tests_of, self.files())))
        assert self.first() and self.others(), f"no tests of {name}"

    def files(self) -> Iterator[types.ModuleType]:
        """The modules of tests that check random cases of it."""
        for path in sorted((PROJECT / "tests").glob("test_*.py")):
            if "\ndef check_case(" in path.read_text(encoding="utf-8"):
                module = importlib.import_module(path.stem)
                if any(uses(module, user) for user in self.users):
                    yield module

    def mutants(self) -> Iterator[Mutant]:
        """Of what is used: some kernels have helpers of which they use a part."""
        tree = ast.parse(self.source)
        users = [n for user in self.users for n in ast.walk(ast.parse(inspect.getsource(user)))]
        used = reached(tree, {n.attr for n in users if isinstance(n, ast.Attribute)})
        return (m for m in mutants(tree, self.name) if m.function in used)

    def damage(self, mutant: Mutant | None) -> None:
        """Put the damaged function and its users into the module, what they use stays compiled; or all, undamaged."""
        changed = ast.parse(self.source)
        if mutant:
            changed = with_users(mutant.tree(), mutant.function)
        exec(compile(changed, str(self.module.__file__), "exec"), vars(self.module))
        for user in self.users:
            importlib.reload(user)
        forget()

    def survives(self, mutant: Mutant | None, tests: list[Test]) -> bool:
        """In a process of its own: whether all of the tests pass."""
        silence()
        launch._compile = compile_alone
        self.damage(mutant)
        return not noticed(tests)

    def first(self) -> list[Test]:
        return [t for t in self.tests if t.dtype == FIRST and "large" not in t.name]

    def others(self) -> list[Test]:
        """Those of large arrays for one type alone: they take long, and notice little that others do not."""
        large = [t for t in self.tests if t.dtype == FIRST and "large" in t.name]
        small = [t for t in self.tests if t.dtype in OTHERS and "large" not in t.name]
        return [*sorted(small, key=lambda t: OTHERS.index(t.dtype)), *large]


def tests_of(module: types.ModuleType) -> Iterator[Test]:
    """The tests of a module."""
    for name, function in vars(module).items():
        if not name.startswith("test_"):
            continue
        patches = "monkeypatch" in inspect.signature(function).parameters
        for arguments in parameters(function):

            def run(f: Any = function, a: Any = arguments, patches: bool = patches) -> None:
                with pytest.MonkeyPatch.context() as patch:
                    f(**a, **({"monkeypatch": patch} if patches else {}))

            dtype = arguments.get("name", "")
            if isinstance(arguments.get("pair"), int):  # number of a data type and a function
                dtype, _ = module.PAIRS[arguments["pair"]]
            yield Test(name, run, dtype)


def compile_alone(function: Any, kind: Any) -> None:
    """In place of `launch._compile`: no cache."""
    function.compile(launch._SIGNATURES.get(function, chunks.SIGNATURE))


def without_half() -> None:
    """Code is generated as if the processor could not convert float16."""
    from numba.core.registry import cpu_target  # noqa: PLC0415

    code = cpu_target.target_context.codegen()
    triple, name, _ = code.magic_tuple()
    type(code).magic_tuple = lambda self: (triple, name, "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="a kernel module, e.g. softmax")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    parser.add_argument("--sample", type=int, default=100, help="number of mutants (default: 100)")
    parser.add_argument("--seconds", type=float, default=600, help="time to run for (default: 600)")
    options = parser.parse_args()
    start = time.monotonic()
    warnings.simplefilter("ignore")
    launch._compile = compile_alone
    kernel = Kernel(options.name)
    found = [*kernel.mutants()]
    random.Random(options.seed).shuffle(found)
    chosen = found[: options.sample]

    # Compiles what the children have in common. They may start threads; they know nothing of their parent's.
    with specops.num_threads(1):
        for test in kernel.first():
            if time.monotonic() < start + COMMON_SECONDS:
                test.run()

    def survives_first(number: int) -> bool:
        return kernel.survives(None if number == NONE else chosen[number], kernel.first())

    def survives_others(number: int) -> bool:
        if number == NONE:
            return kernel.survives(None, kernel.others())
        mutant = chosen[number]
        if "half" in mutant.function:
            without_half()
            if not kernel.survives(mutant, kernel.first()):
                return False
        return kernel.survives(mutant, kernel.others())

    end = start + FIRST_SHARE * options.seconds
    numbers = [NONE, *range(len(chosen))]
    first = dict(children.apart(survives_first, numbers, FIRST_SECONDS, end))
    assert first.pop(NONE), f"a test of {FIRST} fails without damage"
    left = [number for number, survived in sorted(first.items()) if survived]
    survivors = len(left)
    end = start + options.seconds
    for number, survived in children.apart(survives_others, [NONE, *left], SECONDS, end):
        if number == NONE:
            assert survived, "a test fails without damage"
            continue
        left.remove(number)
        if survived:
            print(f"kernels/{chosen[number].name}", flush=True)
        else:
            survivors -= 1
    for number in left:
        print(f"kernels/{chosen[number].name} (not run on all tests)")
    count(f"kernels/{kernel.name}", survivors, len(first), len(found), start)
    print(json.dumps({"survivors": survivors}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
