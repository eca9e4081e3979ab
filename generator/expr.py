"""The constraint language: a small total subset of Python's expressions.

Parsed with `ast`, accepted node by node, typed, and either evaluated here (for the linter's self-tests) or written out
as Python (for the generated validators). Evaluation always ends, and soon: loops run over ranks, lengths and the
elements of arrays, which have at most 64 entries; there are no powers, shifts or string operations; bounds.py refuses
what could become long or large all the same. An index outside
its array, and a division by zero, make a constraint false.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import operator
import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator import bounds, rule_functions
from generator.bounds import Bound
from generator.diagnostics import suggestion

Type = str  # "int", "float", "bool", "str", "dtype", "ints", "tensor"

ATTRIBUTES: dict[str, Type] = {
    "sizes": "ints",
    "strides": "ints",
    "dtype": "dtype",
    "flags": "str",
    "dimension_count": "int",
    "total_bytes": "int",
    "alignment": "int",
}

FUNCTIONS: dict[str, tuple[tuple[Type, ...], Type]] = {
    "rank": (("tensor",), "int"),
    "len": (("ints",), "int"),
    "range": (("int",), "ints"),
    "min": (("int", "int"), "int"),
    "max": (("int", "int"), "int"),
    "unique": (("ints",), "bool"),
    "product": (("ints",), "int"),
    "all": (("bools",), "bool"),
    "any": (("bools",), "bool"),
    "greatest": (("dtype",), "int"),
    "item_bytes": (("dtype",), "int"),
    "implied_bytes": (("tensor",), "int"),
    "distinct_addresses": (("tensor",), "bool"),
    "power_of_two": (("int",), "bool"),
    "windows_hold_input": (("ints",) * 6, "bool"),
}

# What a function of a tensor reads of it.
_READS = {
    "rank": ("sizes",),
    "distinct_addresses": ("sizes", "strides"),
    "implied_bytes": ("sizes", "strides", "dtype"),
}

_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}

# Signs of other languages, and what stands for them here.
_OTHERS = (
    (r"(?<![=!<>])=(?!=)", "`==` for equal"),
    ("&&", "`and` for &&"),
    (r"\|\|", "`or` for ||"),
    ("!(?!=)", "`not` for !"),
)

_EQUALITY = (ast.Eq, ast.NotEq)

_TRUTH = "write a condition, as in `rank(x) > 0`; a field that is true or false is one, as in `not keepdims`"
_INDEX = (
    "an index is a loop variable, a `uint`, a number, a rank or a length, a remainder of these, or a sum;"
    " the last entry is `x.sizes[-1 % rank(x)]`"
)

MAX_LOOPS = 2
MAX_NODES = 200
MAX_INTEGER = 2**127


class ExpressionError(Exception):
    """What is wrong with an expression, and where in its text."""

    def __init__(
        self, code: str, message: str, label: str, offset: int = 0, length: int = 1, help: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.label = code, message, label
        self.offset, self.length, self.help = offset, length, help


class BudgetSpent(Exception):
    """Evaluations took too many steps together."""


@dataclass
class Budget:
    """The steps that evaluations may take together."""

    steps: int = field(default_factory=lambda: bounds.MAX_STEPS)

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise BudgetSpent


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

    def evaluate(
        self, values: Mapping[str, Any], data_types: Mapping[str, Any], budget: Budget | None = None
    ) -> Any:
        return _Evaluator(data_types, budget or Budget()).value(self.tree, dict(values))

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
    checker = _Checker(scope, data_types, signed, words)
    find = checker.data_type if want == "dtype" else checker.type
    found = find(tree, dict(scope))
    if want is None and found in ("tensor", "str", "dtype"):
        want = "ints"
    numeric = want == "number" and found in ("int", "float")
    if want is not None and found != want and not numeric:
        raise ExpressionError("E204", f"expected {_a(want)}", f"this is {_a(found)}", 0, len(text))
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
        raise ExpressionError("E201", "an expression is one line of ASCII", "here")
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


def _a(type: Type) -> str:
    names = {
        "bool": "a condition",
        "int": "a number",
        "float": "a number",
        "number": "a number",
        "ints": "a list of numbers",
        "str": "a word",
        "dtype": "a data type",
        "tensor": "a tensor",
    }
    return names.get(type, "a condition for each element")


class _Checker:
    """Types an expression, node by node; what is not named here is refused."""

    def __init__(
        self,
        fields: Mapping[str, Type],
        data_types: Collection[str],
        signed: Container[str],
        words: Collection[str],
    ) -> None:
        self.fields, self.data_types, self.signed = fields, data_types, signed
        self.words = {*data_types, *words}
        self.reads: list[str] = []
        self.loops = 0
        self.indices: set[str] = set()  # loop variables that are never negative

    def type(self, node: ast.expr, scope: dict[str, Type]) -> Type:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.error(
                "E202", node, "this is not part of the constraint language", "not allowed"
            )
        found: Type = method(node, scope)
        return found

    def want(self, node: ast.expr, scope: dict[str, Type], *types: Type) -> Type:
        found = self.type(node, scope)
        if found not in types:
            raise self.error("E204", node, f"expected {_a(types[0])}", f"this is {_a(found)}")
        return found

    def data_type(self, node: ast.expr, scope: dict[str, Type]) -> Type:
        """A tensor's, a word that is one, or a condition that chooses among these."""
        if isinstance(node, ast.IfExp):
            self.want(node.test, scope, "bool")
            self.data_type(node.body, scope)
            return self.data_type(node.orelse, scope)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.type(node, scope)
            if node.value not in self.data_types:
                help = suggestion(node.value, self.data_types)
                message = f"`{node.value}` is not a data type"
                raise self.error("E203", node, message, "unknown name", help)
            return "dtype"
        return self.want(node, scope, "dtype")

    def error(
        self, code: str, node: ast.expr, message: str, label: str, help: str = ""
    ) -> ExpressionError:
        end = node.end_col_offset if node.end_col_offset is not None else node.col_offset + 1
        return ExpressionError(code, message, label, node.col_offset, end - node.col_offset, help)

    def _constant(self, node: ast.Constant, scope: dict[str, Type]) -> Type:
        if isinstance(node.value, bool):
            raise self.error(
                "E202", node, f"`{node.value}` is not part of the language", "not allowed", _TRUTH
            )
        if not isinstance(node.value, int | str):
            raise self.error(
                "E202", node, "a literal is a whole number or a word in quotes", "not allowed"
            )
        if isinstance(node.value, int) and node.value >= 2**64:
            raise self.error("E202", node, "a number has at most 64 bits", "too large")
        if isinstance(node.value, str) and not node.value.replace("_", "").isalnum():
            raise self.error("E202", node, "a word has letters, digits and _", "not allowed")
        return "int" if isinstance(node.value, int) else "str"

    def _name(self, node: ast.Name, scope: dict[str, Type]) -> Type:
        if node.id not in scope and node.id in ("true", "false"):
            raise self.error(
                "E202", node, f"`{node.id}` is not part of the language", "not allowed", _TRUTH
            )
        if node.id not in scope:
            known = [n for n in scope if n not in FUNCTIONS]
            raise self.error(
                "E203",
                node,
                f"`{node.id}` is not a field of this operator",
                "unknown name",
                f'a word stands in quotes: "{node.id}"'
                if node.id in self.words
                else suggestion(node.id, known),
            )
        if node.id in self.fields and self.fields[node.id] != "tensor":
            self.reads.append(node.id)
        return scope[node.id]

    def _attribute(self, node: ast.Attribute, scope: dict[str, Type]) -> Type:
        self.want(node.value, scope, "tensor")
        if node.attr not in ATTRIBUTES:
            raise self.error(
                "E203",
                node,
                f"a tensor has no `{node.attr}`",
                "unknown",
                suggestion(node.attr, ATTRIBUTES),
            )
        if isinstance(node.value, ast.Name):
            self.reads.append(f"{node.value.id}.{node.attr}")
        return ATTRIBUTES[node.attr]

    def _subscript(self, node: ast.Subscript, scope: dict[str, Type]) -> Type:
        self.want(node.value, scope, "ints")
        index = node.slice
        if isinstance(index, ast.Slice):
            raise self.error(
                "E202",
                index,
                "a slice is not part of the language",
                "not allowed",
                "a loop picks entries, as in `[x.sizes[d] for d in range(1, rank(x))]`",
            )
        if not self.never_negative(index, scope):
            raise self.error(
                "E202",
                index,
                "an index may not become negative",
                "could be negative",
                _INDEX,
            )
        self.want(index, scope, "int")
        return "int"

    def never_negative(self, node: ast.expr, scope: dict[str, Type]) -> bool:
        if isinstance(node, ast.Name):
            unsigned = self.fields.get(node.id) == "int" and node.id not in self.signed
            return unsigned or node.id in self.indices
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in ("rank", "len")
        if not isinstance(node, ast.BinOp):
            return False
        if isinstance(node.op, ast.Mod):  # as in Python: the sign of what stands on the right
            return self.never_negative(node.right, scope)
        return (
            isinstance(node.op, ast.Add)
            and self.never_negative(node.left, scope)
            and self.never_negative(node.right, scope)
        )

    def _call(self, node: ast.Call, scope: dict[str, Type]) -> Type:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            raise self.error(
                "E203",
                node.func,
                f"`{ast.unparse(node.func)}` is not a function of the constraint language",
                "unknown function",
                suggestion(name, FUNCTIONS),
            )
        parameters, result = FUNCTIONS[name]
        if name == "range" and len(node.args) == 2:
            parameters = ("int", "int")
        if node.keywords or len(node.args) != len(parameters):
            plural = "s" if len(parameters) > 1 else ""
            raise self.error(
                "E204",
                node,
                f"`{name}` takes {len(parameters)} argument{plural}",
                f"given {len(node.args)}",
            )
        for argument, wanted in zip(node.args, parameters, strict=True):
            self.argument(name, argument, wanted, scope)
        if name == "range":
            self.bounded(node)
        return result

    def argument(self, name: str, node: ast.expr, wanted: Type, scope: dict[str, Type]) -> None:
        """One argument of a function: a loop where the function takes one, or a value of its type."""
        if isinstance(node, ast.GeneratorExp):
            if wanted not in ("ints", "bools") or name in ("len", "windows_hold_input"):
                raise self.error("E204", node, f"`{name}` takes {_a(wanted)}", "not a loop")
            self.loop(node, scope, "bool" if wanted == "bools" else "int")
            return
        if wanted == "bools":
            raise self.error(
                "E204",
                node,
                f"`{name}` takes a loop, as in `{name}(... for i in ...)`",
                "not a loop",
            )
        if wanted == "dtype":
            self.data_type(node, scope)
        else:
            self.want(node, scope, wanted)
        if name in _READS and isinstance(node, ast.Name):
            self.reads += [f"{node.id}.{attribute}" for attribute in _READS[name]]

    def bounded(self, node: ast.Call) -> None:
        """A range is short, and never begins below 0."""
        if not self.short(node.args[-1]):
            raise self.error(
                "E202",
                node.args[-1],
                "`range` ends at a rank, a length or a number up to 64",
                "could be long",
            )
        if len(node.args) == 2 and not self.never_negative(node.args[0], {}):
            raise self.error(
                "E202",
                node.args[0],
                "`range` may not begin below 0",
                "could be negative",
                "begin at 0 and leave out the rest, as in `[d for d in range(rank(x)) if d >= first]`",
            )

    def short(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int) and node.value <= 64
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return self.short(node.left) and self.short(node.right)
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("rank", "len")
        )

    def loop(
        self, node: ast.GeneratorExp | ast.ListComp, scope: dict[str, Type], element: Type
    ) -> None:
        if len(node.generators) != 1:
            raise self.error("E202", node, "a loop has one `for`", "not allowed")
        clause = node.generators[0]
        if len(clause.ifs) > 1 or clause.is_async or not isinstance(clause.target, ast.Name):
            message = "a loop is `... for name in ...`, with one `if` at most"
            raise self.error("E202", node, message, "not allowed")
        if clause.target.id in {*scope, *FUNCTIONS, "__debug__"}:  # Python assigns no such name
            raise self.error(
                "E202",
                clause.target,
                f"`{clause.target.id}` already has a meaning",
                "choose another name",
            )
        self.loops += 1
        if self.loops > MAX_LOOPS:
            raise self.error(
                "E202", node, f"at most {MAX_LOOPS} loops in an expression", "one too many"
            )
        self.want(clause.iter, scope, "ints")
        name = clause.target.id
        if self.unsigned(clause.iter, scope):
            self.indices.add(name)
        inner = {**scope, name: "int"}
        for condition in clause.ifs:
            self.want(condition, inner, "bool")
        self.want(node.elt, inner, element)
        self.indices.discard(name)

    def unsigned(self, node: ast.expr, scope: dict[str, Type]) -> bool:
        """Whether a list of numbers has none below 0: a field, a part of a tensor, a range."""
        if isinstance(node, ast.List):
            return all(
                self.unsigned(element.value, scope)
                if isinstance(element, ast.Starred)
                else self.never_negative(element, scope)
                for element in node.elts
            )
        if isinstance(node, ast.Name):
            return node.id not in self.signed
        return isinstance(node, ast.Attribute | ast.Call)

    def _listcomp(self, node: ast.ListComp, scope: dict[str, Type]) -> Type:
        self.loop(node, scope, "int")
        return "ints"

    def _list(self, node: ast.List, scope: dict[str, Type]) -> Type:
        for element in node.elts:
            if isinstance(element, ast.Starred):
                self.want(element.value, scope, "ints")
            else:
                self.want(element, scope, "int")
        return "ints"

    def _boolop(self, node: ast.BoolOp, scope: dict[str, Type]) -> Type:
        for value in node.values:
            self.want(value, scope, "bool")
        return "bool"

    def _unaryop(self, node: ast.UnaryOp, scope: dict[str, Type]) -> Type:
        if isinstance(node.op, ast.Not):
            return self.want(node.operand, scope, "bool")
        if isinstance(node.op, ast.USub):
            return self.want(node.operand, scope, "int")
        raise self.error(
            "E202", node, "this operator is not part of the constraint language", "not allowed"
        )

    def _binop(self, node: ast.BinOp, scope: dict[str, Type]) -> Type:
        if type(node.op) not in _ARITHMETIC:
            raise self.error(
                "E202",
                node,
                "this operator is not part of the constraint language",
                "not allowed",
                "arithmetic is + - * // %",
            )
        self.want(node.left, scope, "int")
        return self.want(node.right, scope, "int")

    def _compare(self, node: ast.Compare, scope: dict[str, Type]) -> Type:
        operands = (node.left, *node.comparators)
        if any(map(_names_dtype, operands)) and all(isinstance(op, _EQUALITY) for op in node.ops):
            for operand in operands:  # words beside a data type are data types, too
                self.data_type(operand, scope)
            return "bool"
        left = self.want(node.left, scope, "int", "float", "str", "dtype", "bool")
        numbers = ("int", "float")
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARE:
                raise self.error(
                    "E202",
                    node,
                    "this comparison is not part of the constraint language",
                    "not allowed",
                )
            if isinstance(op, ast.In | ast.NotIn):
                self.want(node.left, scope, "int")
                self.want(right, scope, "ints")
            else:
                if left == "dtype":
                    self.data_type(right, scope)
                else:
                    self.want(right, scope, *(numbers if left in numbers else (left,)))
                if left not in numbers and not isinstance(op, _EQUALITY):
                    raise self.error(
                        "E204", node, "only numbers have an order", f"these are {_a(left)}"
                    )
        return "bool"

    def _ifexp(self, node: ast.IfExp, scope: dict[str, Type]) -> Type:
        if _names_dtype(node):
            return self.data_type(node, scope)
        self.want(node.test, scope, "bool")
        found = self.want(node.body, scope, "int", "bool", "str", "ints")
        return self.want(node.orelse, scope, found)


def _names_dtype(node: ast.expr) -> bool:
    """Whether it is written as a tensor's data type, or as a choice among such and words."""
    if isinstance(node, ast.IfExp):
        return _names_dtype(node.body) or _names_dtype(node.orelse)
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


class _Evaluator:
    """Evaluates a checked tree; numbers beyond 128 bits raise OverflowError."""

    def __init__(self, data_types: Mapping[str, Any], budget: Budget) -> None:
        self.data_types, self.budget = data_types, budget

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self.budget.spend(1)
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return scope[node.id]
            case ast.Attribute():
                return getattr(self.value(node.value, scope), node.attr)
            case ast.Subscript():
                return self.value(node.value, scope)[self.value(node.slice, scope)]
            case ast.BoolOp():
                test = all if isinstance(node.op, ast.And) else any
                return test(self.value(v, scope) for v in node.values)
            case ast.UnaryOp():
                operand = self.value(node.operand, scope)
                return not operand if isinstance(node.op, ast.Not) else -operand
            case ast.BinOp():
                return self.limited(
                    _ARITHMETIC[type(node.op)](
                        self.value(node.left, scope), self.value(node.right, scope)
                    )
                )
            case ast.Compare():
                return self.compare(node, scope)
            case ast.IfExp():
                return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case ast.List():
                return tuple(itertools.chain(*(self.entries(v, scope) for v in node.elts)))
            case ast.ListComp() | ast.GeneratorExp():
                return tuple(self.loop(node, scope))
            case ast.Call(func=ast.Name(id=name)):
                return self.call(name, node.args, scope)
        raise AssertionError(f"unchecked node {node!r}")

    def entries(self, node: ast.expr, scope: dict[str, Any]) -> tuple[int, ...]:
        """What an element of a list stands for: itself, or with a star the entries of a list."""
        if isinstance(node, ast.Starred):
            return tuple(self.value(node.value, scope))
        return (self.value(node, scope),)

    def compare(self, node: ast.Compare, scope: dict[str, Any]) -> bool:
        """As in Python, nothing is evaluated beyond the first comparison that is false."""
        left = self.value(node.left, scope)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def loop(self, node: ast.ListComp | ast.GeneratorExp, scope: dict[str, Any]) -> Iterator[Any]:
        clause = node.generators[0]
        assert isinstance(clause.target, ast.Name)
        for item in self.value(clause.iter, scope):
            inner = {**scope, clause.target.id: item}
            if all(self.value(condition, inner) for condition in clause.ifs):
                yield self.value(node.elt, inner)

    def call(self, name: str, arguments: list[ast.expr], scope: dict[str, Any]) -> Any:
        if name in ("all", "any"):
            loop = arguments[0]
            assert isinstance(loop, ast.GeneratorExp)
            return {"all": all, "any": any}[name](self.loop(loop, scope))
        values = [self.value(argument, scope) for argument in arguments]
        value = values[0]
        match name:
            case "rank":
                return len(value.sizes)
            case "len":
                return len(value)
            case "range":
                return range(*values)
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "unique":
                return rule_functions.unique(value)
            case "product":
                return self.limited(rule_functions.product(value))
            case "greatest":
                entry = self.data_types[value]
                if entry.kind not in ("signed", "unsigned"):
                    raise ArithmeticError(f"{value} has no greatest integer")
                return 2 ** (8 * entry.bytes - (entry.kind == "signed")) - 1
            case "item_bytes":
                return self.data_types[value].bytes
            case "implied_bytes":
                item = self.data_types[value.dtype].bytes
                return rule_functions.buffer_bytes(value.sizes, value.strides, item)
            case "distinct_addresses":
                return rule_functions.nested(value.sizes, value.strides)
            case "power_of_two":
                return rule_functions.power_of_two(value)
            case "windows_hold_input":
                self.budget.spend(bounds.WINDOWS * len(values[0]))
                return rule_functions.windows_hold_input(*values)
        raise AssertionError(f"unchecked function {name}")

    @staticmethod
    def limited(value: int) -> int:
        if abs(value) >= MAX_INTEGER:
            raise OverflowError("more than 128 bits")
        return value
