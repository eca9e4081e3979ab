"""The types of an expression, and what it reads."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Mapping

from generator.diagnostics import counted, suggestion
from generator.expr.language import (
    ARITHMETIC,
    ATTRIBUTES,
    COMPARE,
    FUNCTIONS,
    READS,
    ExpressionError,
    Type,
    in_words,
)

_EQUALITY = (ast.Eq, ast.NotEq)

_TRUTH = "write a condition, as in `rank(x) > 0`; a field that is true or false is one, as in `not keepdims`"
_ENTRIES = "entries are compared, as in `all(x.sizes[d] == y.sizes[d] for d in range(rank(x)))`"
_INDEX = (
    "an index is a `uint`, a number, a rank, a length, a variable of a loop over such, a remainder, or a sum of these;"
    " the last entry is `x.sizes[-1 % rank(x)]`"
)

MAX_LOOPS = 2


class Checker:
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

    def want(self, node: ast.expr, scope: dict[str, Type], *types: Type, lists: str = "") -> Type:
        """One of these types; `lists` is the help where a list is found in their place."""
        found = self.type(node, scope)
        if found not in types:
            wanted = "number" if {"int", "float"} <= {*types} else types[0]
            message, help = f"expected {in_words(wanted)}", lists if found == "ints" else ""
            raise self.error("E204", node, message, f"this is {in_words(found)}", help)
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
                "E202",
                node,
                "a literal is a whole number or a word in quotes",
                "not allowed",
                "leave the key out where there is no value" if node.value is None else "",
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
            raise self.error(
                "E204",
                node,
                f"`{name}` takes {counted(len(parameters), 'argument')}",
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
                raise self.error("E204", node, f"`{name}` takes {in_words(wanted)}", "not a loop")
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
        if name in READS and isinstance(node, ast.Name):
            self.reads += [f"{node.id}.{attribute}" for attribute in READS[name]]

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
        if type(node.op) not in ARITHMETIC:
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
        left = self.want(node.left, scope, "int", "float", "str", "dtype", "bool", lists=_ENTRIES)
        numbers = ("int", "float")
        for place, op, right in zip(operands, node.ops, node.comparators, strict=False):
            if type(op) not in COMPARE:
                raise self.error(
                    "E202",
                    node,
                    "this comparison is not part of the constraint language",
                    "not allowed",
                )
            looks_in = isinstance(op, ast.In | ast.NotIn)
            if left == "ints" or (looks_in and left != "int"):  # of a chain, that of the one before
                word = looks_in and left in ("str", "dtype")
                help = (
                    "write a comparison for each word, as in `a == ... or a == ...`" if word else ""
                )
                raise self.error(
                    "E204", place, f"expected {in_words('int')}", f"this is {in_words(left)}", help
                )
            if looks_in:
                left = self.want(right, scope, "ints")
                continue
            if left not in numbers and not isinstance(op, _EQUALITY):
                raise self.error(
                    "E204", node, "only numbers have an order", f"these are {in_words(left)}"
                )
            if left == "dtype":
                self.data_type(right, scope)
            else:
                types = numbers if left in numbers else (left,)
                left = self.want(right, scope, *types, lists=_ENTRIES)
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
