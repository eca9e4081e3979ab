"""The constraint language: a small total subset of Python's expressions.

Parsed with `ast`, accepted node by node, typed, and either evaluated here (for the linter's self-tests) or written out
as Python (for the generated validators). Evaluation always ends, and soon: loops run over ranks, lengths and the
elements of arrays, which have at most 64 entries; there are no powers, shifts or string operations. An index outside
its array, and a division by zero, make a constraint false.

Here an expression is read, and written out. `language` has the types, functions and operators, `checker` finds an
expression's type, `bounds` refuses what could become long or large all the same, and `evaluator` computes its value.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generator.diagnostics import suggestion
from generator.expr import bounds
from generator.expr.bounds import Bound
from generator.expr.checker import Checker
from generator.expr.evaluator import Budget, Code, Run, compiled
from generator.expr.language import ExpressionError, Type, in_words

# Signs of other languages, and what stands for them here.
_OTHERS = (
    (r"(?<![=!<>])=(?!=)", "`==` for equal"),
    ("&&", "`and` for &&"),
    (r"\|\|", "`or` for ||"),
    ("!(?!=)", "`not` for !"),
    ("<>", "`!=` for <>"),
    (r"\bAND\b", "`and` for AND"),
    (r"\bOR\b", "`or` for OR"),
    (r"\bNOT\b", "`not` for NOT"),
)
_OTHER_SIGNS = {
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2212": "-",
    "\u00d7": "*",
    "\u00f7": "//",
}

MAX_NODES = 200
NO_VALUE = (KeyError, IndexError, ArithmeticError)  # raised by an expression that has none


@dataclass(frozen=True)
class Expr:
    """A checked expression: text, tree, type, what it reads, as "Axes" or "InputTensor.sizes", its bound."""

    text: str
    tree: ast.expr
    type: Type
    reads: tuple[str, ...]
    bound: Bound

    def rename(self, names: Mapping[str, str]) -> Expr:
        """The same expression over other names."""
        text = self.text
        places = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id in names]
        for node in sorted(places, key=lambda n: -n.col_offset):
            text = text[: node.col_offset] + names[node.id] + text[node.end_col_offset :]
        heads = [(read.split(".")[0], read) for read in self.reads]
        reads = tuple(names.get(head, head) + read.removeprefix(head) for head, read in heads)
        return Expr(text, ast.parse(text, mode="eval").body, self.type, reads, self.bound)

    def variables(self) -> set[str]:
        """The loop variables."""
        loops = [n for n in ast.walk(self.tree) if isinstance(n, ast.comprehension)]
        return {loop.target.id for loop in loops if isinstance(loop.target, ast.Name)}

    def words(self) -> list[tuple[str, str, int]]:
        """Each name that is compared with a word: the name, the word and where its quotation marks begin."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Compare):
                sides = (node.left, *node.comparators)
                names = [side.id for side in sides if isinstance(side, ast.Name)]
                texts = [
                    s for s in sides if isinstance(s, ast.Constant) and isinstance(s.value, str)
                ]
                found += [(n, str(t.value), t.col_offset) for n in names for t in texts]
        return found

    def calls(self) -> set[str]:
        """The functions that it calls."""
        return {
            n.func.id
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }

    def functions(self) -> set[str]:
        """The functions that it calls, but for those that Python has."""
        return {name for name in self.calls() if not hasattr(builtins, name)}

    def names(self) -> list[str]:
        """The fields that occur, in the order of their first occurrence in `reads`."""
        return list(dict.fromkeys(read.split(".")[0] for read in self.reads))

    def returned(self, width: int) -> list[str]:
        """`return expression` as lines of at most `width`, broken as a formatter would."""
        line = f"return {self.text}"
        if len(line) <= width:
            return [line]
        tree = self.tree
        if isinstance(tree, ast.Call):
            opening, closing = f"return {self.part(tree.func)}(", ")"
            parts = self.arguments(tree)
        elif isinstance(tree, ast.ListComp):
            opening, closing, parts = "return [", "]", self.loop(tree)
        elif isinstance(tree, ast.BoolOp | ast.IfExp):
            opening, closing, parts = "return (", ")", self.operands(tree)
        else:
            return [line]
        flat = " ".join(parts).removesuffix(",")
        body = [flat] if len(flat) + 4 <= width else parts
        return [opening, *(f"    {part}" for part in body), closing]

    def fits(self, width: int) -> bool:
        """Whether no line of `returned` is wider."""
        return max(map(len, self.returned(width))) <= width

    def arguments(self, node: ast.Call) -> list[str]:
        """The arguments of a function, each on its line; of a loop its parts."""
        first = node.args[0]
        if isinstance(first, ast.GeneratorExp):
            return self.loop(first)
        return [f"{self.part(argument)}," for argument in node.args]

    def loop(self, node: ast.GeneratorExp | ast.ListComp) -> list[str]:
        """A loop in lines: its element, its `for`, its `if`."""
        clause = node.generators[0]
        marks = [self.text.rindex("for", 0, clause.target.col_offset)]
        marks += [self.text.rindex("if", 0, c.col_offset) for c in clause.ifs]
        # Its brackets, of a generator those of the call, are within its own columns.
        return self.cut([node.col_offset + 1, *marks, (node.end_col_offset or 0) - 1])

    def operands(self, node: ast.BoolOp | ast.IfExp) -> list[str]:
        """The operands of `and`, `or` and `if .. else` with their parentheses, each but the first behind its word."""
        if isinstance(node, ast.IfExp):
            test = self.text.rindex("if", 0, node.test.col_offset)
            other = self.text.rindex("else", 0, node.orelse.col_offset)
            return self.cut([0, test, other, len(self.text)])
        word = "and" if isinstance(node.op, ast.And) else "or"
        words = [self.text.rindex(word, 0, v.col_offset) for v in node.values[1:]]
        return self.cut([0, *words, len(self.text)])

    def cut(self, places: list[int]) -> list[str]:
        """The pieces of the text between these places."""
        return [self.text[a:b].strip() for a, b in itertools.pairwise(places)]

    def part(self, node: ast.expr) -> str:
        return self.text[node.col_offset : node.end_col_offset]

    @cached_property
    def code(self) -> Code:
        return compiled(self.tree)

    def evaluate(
        self, values: Mapping[str, Any], data_types: Mapping[str, Any], budget: Budget | None = None
    ) -> Any:
        return self.code(values, Run(data_types, budget or Budget()))

    def holds(
        self, values: Mapping[str, Any], data_types: Mapping[str, Any], budget: Budget | None = None
    ) -> bool:
        """Whether a constraint holds; an index outside its array, a division by zero or a huge number make it false."""
        try:
            return bool(self.evaluate(values, data_types, budget))
        except (IndexError, ArithmeticError):
            return False


def parse(
    text: str,
    scope: Mapping[str, Type],
    want: Type | None,
    data_types: Collection[str],
    signed: Container[str] = (),
    derived: Mapping[str, Bound] | None = None,
    words: Collection[str] = (),
) -> Expr:
    """Check an expression over the names in `scope`; any value will do where `want` is None. Raises ExpressionError.

    `data_types` are the words for these, `words` all others; `signed` are the names of numbers, and of lists with
    entries, that may be negative; `derived` has the bounds of names that are no fields.
    """
    tree = _read(text)
    checker = Checker(scope, data_types, signed, words)
    find = checker.data_type if want == "dtype" else checker.type
    found = find(tree, dict(scope))
    if want is None and found in ("tensor", "str", "dtype"):
        want = "ints"
    numeric = want == "number" and found in ("int", "float")
    if want is not None and found != want and not numeric:
        raise ExpressionError(
            "E204", f"expected {in_words(want)}", f"this is {in_words(found)}", 0, len(text)
        )
    names = {name: bounds.LIST if type == "ints" else bounds.NUMBER for name, type in scope.items()}
    try:
        bound = bounds.of(tree, {**names, **(derived or {})})
    except bounds.Excess as excess:
        raise checker.error("E202", excess.node, excess.reason, "too much") from None
    return Expr(text.replace("'", '"'), tree, found, tuple(dict.fromkeys(checker.reads)), bound)


def check_names(text: str, parameters: Collection[str], of: str) -> None:
    """Check that an expression over parameters of any type can be read, and names no others. Raises ExpressionError."""
    tree = _read(text)
    nodes = list(ast.walk(tree))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    words = [node for node in nodes if isinstance(node, ast.Name) and node not in calls]
    loops = {word.id for word in words if isinstance(word.ctx, ast.Store)}
    for word in words:
        if word.id in parameters or word.id in loops:
            continue
        message = f"`{word.id}` is not a parameter of `{of}`"
        help = suggestion(word.id, parameters)
        raise ExpressionError("E203", message, "unknown name", word.col_offset, len(word.id), help)


def _read(text: str) -> ast.expr:
    """The tree of an expression. Raises ExpressionError."""
    if not text.isascii() or not text.isprintable():
        at = next(i for i, c in enumerate(text) if not " " <= c <= "~")
        sign = _OTHER_SIGNS.get(text[at])
        help = f"write {sign}" if sign else ""
        raise ExpressionError("E201", "an expression is one line of ASCII", "here", at, help=help)
    for character in "#\\":
        if character in text:
            message = f"`{character}` has no meaning in an expression"
            raise ExpressionError("E201", message, "here", text.index(character))
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        offset = error.offset - 1 if error.offset else len(text)
        message, at = f"cannot read this expression: {error.msg}", min(offset, len(text))
        meant = ", ".join(right for wrong, right in _OTHERS if re.search(wrong, text))
        help = f"write {meant}" if meant else ""
        raise ExpressionError("E201", message, "here", at, help=help) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(
            "E201", "cannot read this expression: it is nested too deeply", "here"
        ) from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError(
            "E202", f"an expression has at most {MAX_NODES} parts", "too long", 0, len(text)
        )
    return tree
