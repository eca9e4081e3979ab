"""Damaged and hostile specs: always diagnostics or sound Python, soon, and nothing of a spec becomes code.

Case n of a seed is the same on every machine. A hang, a crash and hunger for memory are findings too.
"""

from __future__ import annotations

import argparse
import ast
import copy
import doctest
import random
import re
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from test_diagnostics import mutated

from generator import lint, plan, structure
from generator.diagnostics import Report
from generator.expr.language import ATTRIBUTES
from generator.render import Renderer
from stress import PROJECT, children

SECONDS = 60.0  # of one case, on a busy machine
LARGE = 20_000  # values of a spec that is damaged no further
MOST = 10**9  # cases
MARK = "Zq9x"  # what tells a hostile string wherever it ends up


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60, help="time to run for (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random draws (default: 0)")
    parser.add_argument(
        "--case", type=int, help="run this case alone, in this process, and keep its files"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="draw guided by coverage; needs atheris"
    )


def run(options: argparse.Namespace) -> int:
    if options.coverage:
        return guided(options.seconds, options.seed)
    if options.case is not None:
        folder = Path(tempfile.mkdtemp())
        outcome = Case(options.seed, options.case).run(folder)
        print(f"{outcome}; the files are in {folder}")
        return int(outcome not in GOOD)
    return watch(options.seconds, options.seed)


# --- what is damaged -------------------------------------------------------------------------------------------------


def bases() -> list[dict[str, str]]:
    """Small trees of good specs: the one of the diagnostics, and each real spec by itself."""
    small = PROJECT / "tests" / "diagnostics" / "base" / "specs"
    real = PROJECT / "specs"
    found = [(small, small / "directml" / "argmax.yaml")]
    found += [(real, path) for path in sorted(real.glob("*/*.yaml"))]
    out = []
    for root, path in found:
        text = path.read_text(encoding="utf-8")
        # Equivalences name operators that are not there.
        text = re.sub(r"^equivalences:\n(?:[ -].*\n|\n)*", "", text, flags=re.MULTILINE)
        vocabulary = (root / "vocabulary.yaml").read_text(encoding="utf-8")
        out.append({"vocabulary.yaml": vocabulary, path.relative_to(root).as_posix(): text})
    return out


BASES = bases()

WORDS = [
    f'{MARK}"', f'{MARK}"""', f"{MARK}'''", f"{MARK}'", f"{MARK}\\", f"{MARK}\n{MARK}", f"{MARK}\r", f"{MARK}\x00",
    f'"""\nimport {MARK}\n"""', f'");{MARK}();("', f"'+{MARK}()+'", f"{{{{ {MARK}() }}}}", f"{{% raw %}}{MARK}",
    f"{{# {MARK}", f"#}}{MARK}", f"*/{MARK}", f"-->{MARK}", f"#{MARK}", f"\x1b[31m{MARK}", f"\u2028{MARK}()",
    f"\x0c{MARK}()", f"\u202e{MARK}", f"{MARK}\ud800", f"{MARK}\U0001f600", f"{{{MARK}}}", f"{{0.__class__}}{MARK}",
    f"%s%n{MARK}", f"../../{MARK}", f"/{MARK}", f"{MARK}\t", f" {MARK} ", f"{MARK}é", f"ﬁ{MARK}", f"__{MARK}__",
    f"{MARK}\\N{{DIGIT ONE}}", f'""" + {MARK}() + """', f"{MARK};import os", f"lambda: {MARK}", f"{MARK}=1",
    f"$({MARK})", f"`{MARK}`", f"<script>{MARK}", f'{MARK}""', f'"{MARK}', "class", "Class", "Import", "None", "self",
    "__class__", "_", "", " ", "x" * 65, MARK * 20, "é", "TODO",
    f">>> {MARK}()", f">>> {MARK}",
]  # fmt: skip

EXPRESSIONS = [
    "2**2**2**99", "[0] * 10**9 == [0]", "'a' * 10**9 == 'a'", "range(10**12) == 1", "1 << 10**9 == 1",
    "all(all(all(a == b for c in Axes) for b in Axes) for a in Axes)",
    "all(all(windows_hold_input(Axes, Axes, Axes, Axes, Axes, Axes) for b in Axes) for a in Axes)",
    "all(product(Axes) * product(Axes) > b for b in range(64))", "__import__('os').system('true') == 0",
    "().__class__.__bases__[0] == 1", "Axes.__class__ == 1", "(lambda: 1)() == 1", "f'{1}' == '1'", "1 .real == 1",
    "[x for x in Axes for y in Axes] == 1", "{1: 2}[1] == 2", "(yield) == 1", "(x := 1) == 1", "1 if 1else 2",
    "'''a''' == 'a'", "b'a' == b'a'", "0x7f == 0o7", "1_0 == 10", "1j == 1", "... == 1", "not not not 1 == 1",
    "-" * 300 + "1 == 1", "(" * 200 + "1" + ")" * 200 + " == 1", "1" * 390 + " == 1", "1e999 == 1", "a" * 400,
    "all(" + " and ".join(["1 == 1"] * 40) + " for a in Axes)", "len([*Axes, *Axes, *Axes]) > 0",
    "product([" + ", ".join(["*Axes"] * 20) + "]) > 0", "any(True for i in range(0))", "1 is 1", "1 <> 2",
    "1 == 1 #", "1 == 1\n", "\uff11 == 1", "rank(InputTensor) in Axes", "InputTensor == InputTensor", "Axes[-1] == 0",
    "Axes[9] == 0", 'greatest("X") == 1', 'item_bytes("UINT4") == 1', "greatest(AxisDirection) == 1",
    "item_bytes(InputTensor.flags) == 1", 'item_bytes("FLOAT32" if rank(InputTensor) == 1 else "Y") == 1',
    'InputTensor.dtype == "Y"', "greatest(Axes) == 1", "item_bytes(Axes) == 1",
]  # fmt: skip

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 64, 65, 2**31, 2**32, 2**63, 2**64, 10**39, -(10**39), 1.5, 1e308, float("inf"),
    float("nan"), "", [], {}, [[]], [None], {"a": 1}, [1] * 65, list(range(200)), [[1, 2], [3]], [[[[1]]]],
    {"dtype": "FLOAT32", "data": 1}, {"dtype": "INT8", "data": [300]}, "tensor", "1..99", "9..1", "FLOAT32", "greater",
    "InputTensor.dtype", "InputTensor", "Axes", ["Axes"], {"Axes": [0]}, {"Axes.sizes": [1]}, {"InputTensor.x": 1},
    {"InputTensor.sizes": 10**30}, {"InputTensor": 1},
]  # fmt: skip


PARTS = [*ATTRIBUTES, "nope", "__class__"]

Path_ = tuple[Any, ...]


def places(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all values."""
    yield path
    for key, inner in (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    ):
        yield from places(inner, (*path, key))


def at(data: Any, path: Path_) -> Any:
    for key in path:
        data = data[key]
    return data


class Damage:
    """Changes the data of one file."""

    def __init__(self, data: Any, random_: random.Random) -> None:
        self.data, self.random = data, random_

    def place(self) -> Path_:
        """Of a value that is not the whole."""
        return self.random.choice([p for p in places(self.data) if p])

    def string(self) -> str:
        word = self.random.choice(WORDS)
        return (
            word if self.random.random() < 0.9 else word * self.random.choice((10, 1000, 100_000))
        )

    def into_a_string(self) -> None:
        paths = [p for p in places(self.data) if isinstance(at(self.data, p), str)]
        path = self.random.choice(paths)
        old, new = at(self.data, path), self.string()
        i = self.random.choice((0, len(old), self.random.randrange(len(old) + 1)))
        at(self.data, path[:-1])[path[-1]] = self.random.choice((new, old[:i] + new + old[i:]))

    def every_occurrence(self) -> None:
        """A name that stands in several places gets another one in all of them."""
        words = [
            w
            for p in places(self.data)
            if isinstance(w := at(self.data, p), str) and w.isidentifier()
        ]
        words += [p[-1] for p in places(self.data) if p and isinstance(p[-1], str)]
        old, new = self.random.choice(words), self.random.choice([*WORDS, *words])

        def renamed(value: Any) -> Any:
            if isinstance(value, dict):
                return {renamed(k): renamed(v) for k, v in value.items()}
            if isinstance(value, list):
                return [renamed(v) for v in value]
            return (
                re.sub(rf"\b{re.escape(old)}\b", lambda _: new, value)
                if isinstance(value, str)
                else value
            )

        self.data = renamed(self.data)

    def key(self) -> None:
        mappings = [
            p for p in places(self.data) if isinstance(at(self.data, p), dict) and at(self.data, p)
        ]
        mapping = at(self.data, self.random.choice(mappings))
        old = self.random.choice(list(mapping))
        new = self.random.choice([self.string(), *mapping])
        items = [(new if k == old else k, v) for k, v in mapping.items()]
        mapping.clear()
        mapping.update(items)

    def value(self) -> None:
        path = self.place()
        at(self.data, path[:-1])[path[-1]] = copy.deepcopy(self.random.choice(VALUES))

    def expression(self) -> None:
        keys = ("require", "use", "value", "sizes", "default", "dtype")
        paths = [
            p
            for p in places(self.data)
            if p and p[-1] in keys and isinstance(at(self.data, p), str)
        ]
        if not paths:
            return
        path = self.random.choice(paths)
        old = at(self.data, path)
        tokens = re.split(r"(\W)", old)
        i = self.random.randrange(len(tokens))
        other = re.split(r"(\W)", at(self.data, self.random.choice(paths)))
        new = [*tokens[:i], self.random.choice([*other, *EXPRESSIONS, *WORDS]), *tokens[i + 1 :]]
        whole = self.random.choice(EXPRESSIONS).replace(
            "Axes", self.random.choice([t for t in tokens if t] or ["a"])
        )
        at(self.data, path[:-1])[path[-1]] = self.random.choice(
            ("".join(new), whole, f"{old} and {whole}")
        )

    def violate(self) -> None:
        """Another target of a change: a field, a part of a tensor, of what is no tensor, of nothing."""
        paths = [p for p in places(self.data) if p and p[-1] == "violate" and at(self.data, p)]
        if not paths:
            return
        mapping = at(self.data, self.random.choice(paths))
        if not isinstance(mapping, dict):
            return
        names = {"InputTensor", ""}
        for path in paths:
            if isinstance(at(self.data, path), dict):
                names |= {str(p).split(".")[0] for p in at(self.data, path)}
        name, part = self.random.choice(sorted(names)), self.random.choice(["", *PARTS])
        mapping[f"{name}.{part}" if part else name] = copy.deepcopy(self.random.choice(VALUES))

    def swap(self) -> None:
        one, other = self.place(), self.place()
        at(self.data, one[:-1])[one[-1]] = copy.deepcopy(at(self.data, other))

    def remove(self) -> None:
        path = self.place()
        del at(self.data, path[:-1])[path[-1]]

    def repeat(self) -> None:
        """An entry of a list again and again."""
        paths = [
            p for p in places(self.data) if isinstance(at(self.data, p), list) and at(self.data, p)
        ]
        entries = at(self.data, self.random.choice(paths))
        entries.extend(
            [copy.deepcopy(self.random.choice(entries))] * self.random.choice((1, 3, 70, 3000))
        )

    def nest(self) -> None:
        path = self.place()
        value = at(self.data, path)
        for _ in range(self.random.choice((1, 2, 30, 60))):
            value = [value] if self.random.random() < 0.7 else {"a": value}
        at(self.data, path[:-1])[path[-1]] = value

    KINDS: tuple[Callable[[Damage], None], ...] = (
        into_a_string, into_a_string, every_occurrence, key, value, value, violate, expression, expression, swap,
        remove, repeat, nest,
    )  # fmt: skip


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def written(data: Any, random_: random.Random) -> str:
    style = random_.choice((False, False, None, True))
    width = random_.choice((80, 2**30))
    return yaml.dump(data, Dumper=_Dumper, default_flow_style=style, width=width, sort_keys=False)


def huge(text: str, random_: random.Random) -> str:
    """Something near the greatest size that is read."""
    n = random_.choice((230_000, 230_000, 1_000_000))
    return random_.choice(
        [
            text + "x: " + "y" * n, text + "x: [" + "&a x, " * (n // 6) + "]", text + "x: [" + "1, " * (n // 3) + "]",
            text + "".join(f"k{i}: 1\n" for i in range(n // 10)), text + "x: " + "1" * n, "[" * n, "{a: " * (n // 4),
            text + 'x: "' + "\\n" * (n // 2) + '"', text + 'x: "' + "\\" * n, text + "? " * (n // 2),
            text + "- " * (n // 2), text + "#" * n, text + "\n" * n,
            text.replace("summary: ", "summary: " + "x " * (n // 2)),
            text.replace("errata: []", "errata:\n" + "  - {id: a, page: b, printed: c, right: d}\n" * (n // 45)),
            text.replace("fields:\n", "fields:\n" + "  - {name: a, kind: input, type: uint, doc: d}\n" * (n // 50)),
            text.replace("fields:\n", "fields:\n" + "  - {nam: a, knd: b}\n" * (n // 25)),
            text.replace("examples:\n", "examples:\n" + "  - {id: a, page: b, given: {}, expect: {}}\n" * (n // 45)),
            re.sub(r"data: \[.*\]", lambda m: "data: [" + "1, " * (n // 3) + "1]", text, count=1),
            re.sub(r"data: \[.*\]", lambda m: "data: " + "[" * 30 + "1" + "]" * 30, text, count=1),
            text.replace("violate: {", "violate: {" + "".join(f"k{i}: 1, " for i in range(n // 12)), 1),
            text + "x: !!str " * (n // 9), text + "a: &a [x]\n" + "".join(f"b{i}: *a\n" for i in range(n // 12)),
        ]
    )  # fmt: skip


@dataclass
class Case:
    """One tree of specs, damaged."""

    seed: int
    number: int

    def files(self) -> tuple[dict[str, bytes], dict[str, str], bool]:
        """The damaged files, the good ones, and whether only sentences differ."""
        random_ = random.Random(f"{self.seed} {self.number}")
        good = random_.choice((BASES[0], random_.choice(BASES)))
        name = random_.choice(
            sorted(good, key=lambda n: n == "vocabulary.yaml") * 2 + [n for n in good if "/" in n]
        )
        text = good[name]
        kind = random_.random()
        sentences = False
        if kind < 0.25:
            text = mutated(text, random_)
        elif kind < 0.28:
            text = huge(text, random_)
        elif kind < 0.32:
            data = bytearray(text.encode())
            for _ in range(random_.choice((1, 3, 30))):
                data[random_.randrange(len(data))] = random_.randrange(256)
            return (
                {**encoded(good), name: bytes(data[: random_.choice((len(data), 700))])},
                good,
                False,
            )
        elif kind < 0.50:
            text = sentence(text, random_)
            sentences = True
        else:
            damage = Damage(yaml.safe_load(text), random_)
            for _ in range(random_.choice((1, 1, 2, 5))):
                # Repeated repetitions would keep YAML's writer busy for minutes.
                small = len(list(places(damage.data))) < LARGE
                if isinstance(damage.data, dict) and damage.data and small:
                    random_.choice(Damage.KINDS)(damage)
            text = written(damage.data, random_)
        if random_.random() < 0.02:
            text = text.replace("\n", random_.choice(("\r\n", "\r", "\x85", "\u2028")))
        return {**encoded(good), name: text.encode("utf-8", "surrogatepass")}, good, sentences

    def run(self, folder: Path) -> str:
        """How it went; anything but the outcomes in GOOD is a finding."""
        return outcome_of(folder, *self.files())


def outcome_of(folder: Path, files: dict[str, bytes], good: dict[str, str], sentences: bool) -> str:
    shutil.rmtree(folder / "specs", ignore_errors=True)
    for name, data in files.items():
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            generated = generate(folder)
            return generated if isinstance(generated, str) else judge(generated, good, sentences)
        except Exception:
            return traceback.format_exc()


GOOD = ("refused", "sound")


def encoded(files: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


def sentence(text: str, random_: random.Random) -> str:
    """Something hostile in a sentence of a spec, whose structure stays as it is."""
    data = yaml.safe_load(text)
    keys = (
        "doc",
        "summary",
        "allowed",
        "page",
        "decided",
        "title",
        "revision",
        "printed",
        "right",
        "says",
    )
    paths = [p for p in places(data) if p and p[-1] in keys and isinstance(at(data, p), str)]
    for _ in range(random_.choice((1, 3))):
        path = random_.choice(paths)
        old, new = at(data, path), random_.choice(WORDS)
        i = random_.choice((0, len(old), random_.randrange(len(old) + 1)))
        at(data, path[:-1])[path[-1]] = random_.choice(
            (old[:i] + new + old[i:], new * random_.choice((1, 3)) or "x")
        )
    return written(data, random_)


# --- what comes of it ------------------------------------------------------------------------------------------------

TEMPLATES = PROJECT / "templates"


def generate(folder: Path) -> dict[str, str] | str:
    """The text of each file that follows from specs; "refused" where there are diagnostics; else a finding."""
    report = Report()
    tree = structure.load_tree(folder, report)
    linted = None if tree is None else lint.lint(tree, report)
    if report or linted is None:
        return refused(report)
    renderer = Renderer(TEMPLATES, report)
    planned = plan.files(linted, TEMPLATES)
    if any(plan.clashes(planned)):
        return "refused"
    files = [f for f in planned if f.sources]
    paths = [f.path for f in files]
    if len({p.lower() for p in paths}) < len(paths):
        return f"two files of one path: {sorted(paths)}"
    for path in paths:
        if (
            not re.fullmatch(r"(?:[A-Za-z_][A-Za-z0-9_]*/)*[A-Za-z_][A-Za-z0-9_.]*", path)
            or ".." in path
        ):
            return f"a strange path: {path!r}"
    out = {}
    for file in files:
        text = renderer.render(file, report)
        if text is not None:
            out[file.path] = text
    # The templates are good, so that an error here blames the wrong one.
    return out if not report else f"not found by the linter: {report.text()[:2000]}"


def refused(report: Report) -> str:
    """Diagnostics, and in every form fit to be shown."""
    if not report:
        return "neither diagnostics nor specs"
    for form in (report.text(), report.json(), report.github()):
        form.encode("utf-8")  # no lone surrogates
        if len(form) > 20 << 20:
            return f"diagnostics of {len(form)} characters"
    odd = {c for c in report.text() if not c.isprintable() and c != "\n"}
    return f"diagnostics with {odd}" if odd else "refused"


def examples(text: str) -> list[str]:
    """What doctest would run of a module's docstrings."""
    parser = doctest.DocTestParser()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = [ast.get_docstring(n) for n in ast.walk(ast.parse(text)) if isinstance(n, documented)]
    return [example.source for doc in docs if doc for example in parser.get_examples(doc)]


@dataclass(frozen=True)
class Code:
    """What Python code can do: the modules it imports, what it calls, and its kinds of nodes."""

    imports: frozenset[str]
    calls: frozenset[str]
    kinds: frozenset[str]

    @classmethod
    def of(cls, texts: list[str]) -> Code:
        imports, calls, kinds = set(), set(), set()
        for text in texts:
            for node in ast.walk(ast.parse("\n".join([text, *examples(text)]))):
                kinds.add(type(node).__name__)
                if isinstance(node, ast.Import):
                    imports |= {a.name for a in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imports.add(f"{node.module}")
                elif isinstance(node, ast.Call):
                    calls.add(ast.unparse(node.func))
        return cls(frozenset(imports), frozenset(calls), frozenset(kinds))


# The language of expressions, and what a changed spec may bring into use.
_EXPRESSIONS = Code.of(
    [
        "rank(t), len(a), range(1), min(1, 2), max(1, 2), unique(a), product(a), all(a), any(a), greatest(t)",
        "item_bytes(t), implied_bytes(t), distinct_addresses(t), power_of_two(1), windows_hold_input(a)",
        "1 + 1 - 1 * 1 // 1 % 1, -1, not a, a and b or c, a == b != c < d <= e > f >= g, a in b, a not in b",
        "a if b else c, [*a, b], [a for b in c if d], (a for b in c), a[0], a.b, 'a', float(nan), float(inf)",
    ]
)
_KNOWN: dict[tuple[tuple[str, str], ...], tuple[dict[str, str], Code]] = {}


def known(good: dict[str, str]) -> tuple[dict[str, str], Code]:
    """What the undamaged specs give."""
    key = tuple(good.items())
    if key not in _KNOWN:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in good.items():
                path = Path(folder, "specs", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            files = generate(Path(folder))
        assert isinstance(files, dict), files
        _KNOWN[key] = files, Code.of([t for p, t in files.items() if p.endswith(".py")])
    return _KNOWN[key]


def skeleton(text: str) -> str:
    """A module without its constants' values: sentences are nowhere else."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value, node.kind = "", None
    return ast.dump(tree)


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a module binds; of a function's overloads none."""
    match node:
        case ast.FunctionDef(decorator_list=[ast.Name("overload")]):
            return []
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.Import(names) | ast.ImportFrom(_, names):
            return [alias.asname or alias.name for alias in names]
        case ast.Assign(targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
    return []


def judge(files: dict[str, str], good: dict[str, str], sentences: bool) -> str:
    """Whether generated modules do what those of undamaged specs do."""
    before, code = known(good)
    for path, text in files.items():
        if not path.endswith(".py"):
            continue
        if sentences and skeleton(text) != skeleton(before[path]):
            return f"a sentence changed the code of {path}"
        if sentences and examples(text) != examples(before[path]):
            return f"a sentence changed the examples of {path}"
        now = Code.of([text])
        count = Counter(name for node in ast.parse(text).body for name in bound(node))
        strange = {
            "two meanings of names": {name for name, times in count.items() if times > 1},
            "imports": {  # math has infinities and NaN
                i
                for i in now.imports - code.imports - {"math"}
                if not re.match(r"specops\.[a-z_]+\.\w+\Z", i)
            },
            "calls": {
                c
                for c in now.calls - code.calls - _EXPRESSIONS.calls
                if not c.endswith("OperatorDesc")
            },
            "kinds": now.kinds - code.kinds - _EXPRESSIONS.kinds,
        }
        for what, names in strange.items():
            if names:
                return f"{path} has {what} as no sound module has: {sorted(names)}"
    return "sound"


# --- guided by coverage ----------------------------------------------------------------------------------------------


def guided(seconds: float, seed: int) -> int:
    """atheris changes the text of a spec, and keeps what reaches new lines of the generator; it ends at a finding."""
    import atheris  # noqa: PLC0415

    atheris.instrument_all()
    good = BASES[0]
    name = next(n for n in good if "/" in n)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        words = Path(folder, "words")
        words.write_text(
            "".join(f'"{w}"\n' for w in re.findall(r"[A-Za-z_]{3,}", good[name])), encoding="utf-8"
        )
        for i, base in enumerate(BASES):
            for path, text in base.items():
                if "/" in path:
                    (corpus / f"{i}").write_text(text, encoding="utf-8")

        def one(data: bytes) -> None:
            outcome = outcome_of(Path(folder), {**encoded(good), name: data}, good, False)
            if outcome not in GOOD:
                raise AssertionError(outcome)

        options = [
            f"-max_total_time={seconds:.0f}",
            f"-seed={seed + 1}",
            f"-timeout={SECONDS:.0f}",
            f"-dict={words}",
        ]
        options += [
            "-rss_limit_mb=3000",
            "-max_len=20000",
            f"-artifact_prefix={PROJECT}/finding-",
            str(corpus),
        ]
        atheris.Setup(["stress", *options], one)
        atheris.Fuzz()  # leaves the process
    return 0


# --- running many ----------------------------------------------------------------------------------------------------


def watch(seconds: float, seed: int) -> int:
    """Cases from 0 on in forked children, until the time is over; the number of findings."""
    if seconds > 30:
        for base in BASES:  # what each child needs
            known(base)
    start = said = time.monotonic()
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:

        def run(number: int) -> str:
            return Case(seed, number).run(Path(folder))

        for number, outcome in children.outcomes(run, MOST, SECONDS, start + seconds):
            counts[outcome if outcome in GOOD else "finding"] += 1
            if outcome not in GOOD:
                print(
                    f"python -m stress specs --seed {seed} --case {number}\n{outcome}\n", flush=True
                )
            if time.monotonic() - said > 20:
                said = time.monotonic()
                print(f"... {counts.total()} cases, {counts['finding']} findings", flush=True)
    counted = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
    print(
        f"specs, seed {seed}: {counts.total()} cases in {time.monotonic() - start:.0f} s: {counted}"
    )
    return counts["finding"]
