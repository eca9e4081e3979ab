"""What needs more than one field: cross-references, names, levels. Then each spec's test of itself, in selftest.py."""

from __future__ import annotations

import builtins
import itertools
import keyword
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from generator import expr, layout, model, names, resolve
from generator.diagnostics import Note, Report, suggestion
from generator.expr import Expr
from generator.model import SpecTree, TensorConstraint
from generator.resolve import Operator, Rule
from generator.selftest import RANGES, SelfTest, Tensor
from generator.source import Document, KeyPath

TODO = "TODO"

# Names with a meaning in generated modules, besides Python's own and the functions of expressions.
MODULE_NAMES = {
    "Allowed", "Any", "Asked", "Callable", "ClassVar", "CompiledOperator", "Computed", "Field", "OPERATOR", "Operator",
    "OperatorDesc", "Rule", "Sequence", "Support", "TENSOR_PAGE", "TENSOR_RULES", "Tensor", "TensorDesc", "VERSIONS",
    "VersionedOperator", "Versions", "arrays", "dataclass", "functions", "lower", "lru_cache", "np", "validate",
}  # fmt: skip
_ARGUMENTS = {"compiled", "inputs", "opset", "out", "output_dtype", "self", "x"}
_BUILTINS = {*dir(builtins)} - {"input"}  # ONNX has tensors of that name, and no module asks a user
# Of builtins, as functions.
_NUMPY_NAMES = {"abs", "all", "any", "max", "min", "pow", "round", "sum"}
_PACKAGE_NAMES = {"get_num_threads", "num_threads", "set_num_threads"}

_DEFAULTS = {
    "bool": "true or false",
    "uint": "a whole number",
    "int": "a whole number",
    "float": "a number with a point",
}
MAX_ELEMENTS = 100_000  # of the input of an equivalence's case


# NumPy's types, with those of ml_dtypes: their kind and their bytes.
_NUMPY_TYPES = {
    "bool": ("bool", 1),
    "float16": ("float", 2),
    "bfloat16": ("float", 2),
    "float32": ("float", 4),
    "float64": ("float", 8),
    **{f"int{8 * n}": ("signed", n) for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}": ("unsigned", n) for n in (1, 2, 4, 8)},
}


@dataclass(frozen=True)
class Linted:
    """All specs, resolved and found good."""

    tree: SpecTree
    tensor_rules: tuple[tuple[Rule, TensorConstraint], ...]
    operators: tuple[Operator, ...]


def lint(tree: SpecTree, report: Report) -> Linted:
    """Check all specs; findings go to the report."""
    _vocabulary(tree, report)
    tensor_rules = resolve.tensor_rules(tree, report)
    remembered: dict[tuple[str, Tensor], bool] = {}
    operators, sound = [], []
    for source in tree.specs:
        before = report.count
        _todo(source.document, report)
        operator = resolve.operator(source, tree, report)
        _Spec(operator, tree, report).check()
        if report.count == before and len(tensor_rules) == len(tree.vocabulary.tensor_constraints):
            SelfTest(operator, tree, tensor_rules, remembered, report).run()
        operators.append(operator)
        if report.count == before:
            sound.append(operator)
    _families(sound, report)
    if not report:
        _equivalences(operators, tree, tensor_rules, report)
    return Linted(tree, tensor_rules, tuple(operators))


def _equivalences(
    operators: list[Operator],
    tree: SpecTree,
    tensor_rules: tuple[tuple[Rule, TensorConstraint], ...],
    report: Report,
) -> None:
    """Both calls of each case are such as their operators allow, and have something to compare."""
    known = {o.id: o for o in operators}
    for operator in operators:
        document = operator.source.document
        for i, entry in enumerate(operator.spec.equivalences):
            path: KeyPath = ("equivalences", i)
            sides = {"this": operator, "that": known[entry.operator]}
            tests = {
                side: SelfTest(called, tree, tensor_rules, {}, report, document)
                for side, called in sides.items()
            }
            for j, case in enumerate(entry.cases):
                at: KeyPath = (*path, "cases", j)
                this, that = (
                    test.call(getattr(case, side), tuple(case.sizes), (*at, side))
                    for side, test in tests.items()
                )
                if this and that and not {*this.dtypes} & {*that.dtypes}:
                    taken = f"{operator.id} takes {', '.join(this.dtypes)}"
                    report.add(
                        "E224",
                        "no data type is one of both calls",
                        document.key_span((*at, "that")),
                        f"{taken}; {entry.operator} {', '.join(that.dtypes)}",
                    )


def _families(operators: list[Operator], report: Report) -> None:
    """All versions of an ONNX operator have its one name; of other dialects each operator has its own."""
    first: dict[str, Operator] = {}
    others: dict[tuple[str, str], Operator] = {}
    for operator in operators:
        if operator.source.dialect != "onnx":
            known = others.setdefault((operator.source.dialect, operator.spec.operator), operator)
            if known is not operator:
                report.add(
                    "E211",
                    f"`{operator.spec.operator}` is also the name of {known.id}",
                    operator.source.document.span(("operator",)),
                    "again",
                    notes=[Note(known.source.document.span(("operator",)), "first here")],
                )
            continue
        known = first.setdefault(names.family(operator.source.name), operator)
        if known.spec.operator != operator.spec.operator:
            note = Note(known.source.document.span(("operator",)), "another version")
            report.add(
                "E211",
                f"`{operator.spec.operator}` is another name than that of {known.id}",
                operator.source.document.span(("operator",)),
                "differs",
                notes=[note],
                help="all versions of an operator have one name; another operator has another file name",
            )


def _todo(document: Document, report: Report) -> None:
    def walk(value: object, path: KeyPath) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*path, key))
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                walk(inner, (*path, i))
        elif isinstance(value, str) and TODO in value:
            report.add("E250", f"a `{TODO}` is left", document.span(path), "fill this in")

    walk(document.data, ())


def _vocabulary(tree: SpecTree, report: Report) -> None:
    ids: dict[str, KeyPath] = {}
    for i, constraint in enumerate(tree.vocabulary.tensor_constraints):
        path: KeyPath = ("tensor_constraints", i)
        _origin(
            constraint.page,
            constraint.decided,
            "constraint",
            constraint.id,
            path,
            tree.document,
            report,
        )
        _unique(ids, constraint.id, path, tree.document, report)
        _needs(constraint.needs, ids, constraint.id, path, tree.document, report)
        places: list[tuple[str, KeyPath]] = [(constraint.field, (*path, "field"))]
        places += [(key, (*path, "violate", key)) for key in constraint.violate]
        for part, place in places:
            if part not in expr.ATTRIBUTES:
                span = (
                    tree.document.key_span(place)
                    if place[-1] == part
                    else tree.document.span(place)
                )
                report.add(
                    "E203",
                    f"`{part}` is not a part of a tensor",
                    span,
                    "unknown name",
                    help=suggestion(part, expr.ATTRIBUTES),
                )
    _shared(tree, report)
    for name, data_type in tree.vocabulary.data_types.items():
        own = (data_type.kind, data_type.bytes)
        kind, size = _NUMPY_TYPES.get(data_type.numpy, own)
        if (kind, size) != own:
            report.add(
                "E215",
                f"{name} is not what NumPy calls {data_type.numpy}",
                tree.document.span(("data_types", name, "numpy")),
                f"that is {kind}, of {size} bytes",
            )
    for name, enum in tree.vocabulary.enums.items():
        numbers = list(enum.values.values())
        for i, (value, number) in enumerate(enum.values.items()):
            if number in numbers[:i]:
                report.add(
                    "E211",
                    f"`{value}` has the number of another value",
                    tree.document.span(("enums", name, "values", value)),
                    "again",
                )
        if enum.empty is not None and enum.empty not in enum.values:
            report.add(
                "E103",
                f"`{enum.empty}` is not a value of {name}",
                tree.document.span(("enums", name, "empty")),
                "unknown value",
                help=suggestion(enum.empty, enum.values),
            )
    for name, kernel in tree.vocabulary.kernels.items():
        arguments = [*kernel.inputs, *kernel.outputs, *kernel.parameters]
        for argument in sorted({a for a in arguments if arguments.count(a) > 1}):
            report.add(
                "E211",
                f"kernel `{name}` has `{argument}` twice",
                tree.document.key_span(("kernels", name)),
                "again",
            )
        for tensor, dtypes in kernel.dtypes.items():
            at: KeyPath = ("kernels", name, "dtypes", tensor)
            if tensor not in arguments:
                report.add(
                    "E203",
                    f"`{tensor}` is not a tensor of kernel `{name}`",
                    tree.document.key_span(at),
                    "unknown name",
                    help=suggestion(tensor, [*kernel.inputs, *kernel.outputs]),
                )
            for i, dtype in enumerate(dtypes):
                if dtype not in tree.vocabulary.data_types:
                    report.add(
                        "E103",
                        f"`{dtype}` is not a data type",
                        tree.document.span((*at, i)),
                        "unknown value",
                        help=suggestion(dtype, tree.vocabulary.data_types),
                    )
        for parameter, entry in kernel.parameters.items():
            if (entry.values is None) == (entry.expression is None):
                report.add(
                    "E212",
                    f"parameter `{parameter}` needs one of `values` and `expression`",
                    tree.document.key_span(("kernels", name, "parameters", parameter)),
                )


def _shared(tree: SpecTree, report: Report) -> None:
    """A shared constraint, and what it says is allowed, name its parameters."""
    for name, shared in tree.vocabulary.constraints.items():
        path: KeyPath = ("constraints", name)
        for i, parameter in enumerate(shared.parameters):
            if parameter in shared.parameters[:i]:
                span = tree.document.span((*path, "parameters", i))
                report.add("E211", f"`{name}` has the parameter `{parameter}` twice", span, "again")
        span = tree.document.span((*path, "allowed"))
        for word, brace in re.findall(r"\{([^{}]*)\}|([{}])", shared.allowed):
            if brace:
                report.add("E203", f"a `{brace}` stands alone", span, "braces hold a parameter")
            elif word not in shared.parameters:
                report.add(
                    "E203",
                    f"`{word}` is not a parameter of `{name}`",
                    span,
                    "unknown name",
                    help=suggestion(word, shared.parameters),
                )


def _origin(
    page: str | None,
    decided: str | None,
    what: str,
    id: str,
    path: KeyPath,
    document: Document,
    report: Report,
) -> None:
    if (page is None) == (decided is None):
        found = "no origin" if page is None else "two origins"
        report.add(
            "E210",
            f"{what} `{id}` has {found}",
            document.span((*path, "id") if (*path, "id") in document.values else path),
            help="name the place on the page with `page:`, or own the choice with `decided:` and its reason",
        )


def _unique(
    ids: dict[str, KeyPath], id: str, path: KeyPath, document: Document, report: Report
) -> None:
    if id in ids:
        first = Note(document.span((*ids[id], "id")), "first here")
        report.add(
            "E211", f"`{id}` is used twice", document.span((*path, "id")), "again", notes=[first]
        )
    ids.setdefault(id, path)


def _needs(
    needs: list[str],
    earlier: Iterable[str],
    id: str,
    path: KeyPath,
    document: Document,
    report: Report,
) -> None:
    known = [e for e in earlier if e != id]
    for i, need in enumerate(needs):
        if need not in known:
            report.add(
                "E213",
                f"`{need}` is not a constraint above this one",
                document.span((*path, "needs", i)),
                "unknown",
                help=suggestion(need, known),
            )


class _Spec:
    """The cross-references of one spec."""

    def __init__(self, operator: Operator, tree: SpecTree, report: Report) -> None:
        self.operator, self.spec, self.document = operator, operator.spec, operator.source.document
        self.vocabulary, self.report = tree.vocabulary, report
        self.names = [f.name for f in self.spec.fields]
        directml = operator.source.dialect == "directml"
        self.of_tensors = {c.id for c in tree.vocabulary.tensor_constraints if directml}
        self.others = {f"{s.dialect}/{s.name}": s.spec for s in tree.specs}

    def check(self) -> None:
        self.name()
        self.function()
        self.version()
        self.fields()
        self.derived()
        self.support()
        self.constraints()
        self.semantics()
        self.layout()
        self.equivalences()
        silent: dict[str, KeyPath] = {}
        for i, decision in enumerate(self.spec.silent):
            _unique(silent, decision.id, ("silent", i), self.document, self.report)
        ids: dict[str, KeyPath] = {}
        for i, example in enumerate(self.spec.examples):
            _unique(ids, example.id, ("examples", i), self.document, self.report)
            _origin(
                example.page,
                example.decided,
                "example",
                example.id,
                ("examples", i),
                self.document,
                self.report,
            )

    def name(self) -> None:
        """The command line calls an operator by what stands behind these prefixes, too."""
        short = self.spec.operator.removeprefix("DML_OPERATOR_").removeprefix("DML_")
        if not short[:1].isalpha():
            self.report.add(
                "E105",
                f"`{self.spec.operator}` has no name behind its prefix",
                self.document.span(("operator",)),
                help="write the page's name, as in DML_OPERATOR_ARGMAX",
            )

    def function(self) -> None:
        """The file's name becomes a function's, beside what its module calls."""
        source = self.operator.source
        name = names.family(source.name) if source.dialect == "onnx" else source.name
        called = set().union(*(expression.calls() for expression, _ in self.expressions()))
        if name in called | {*self.functions()} | MODULE_NAMES | _PACKAGE_NAMES | (
            _BUILTINS - _NUMPY_NAMES
        ):
            self.report.add(
                "E105",
                f"`{name}`, the file's name, has another meaning in the generated module",
                self.document.span(("operator",)),
                "its function's name",
                help="name the file otherwise",
            )

    def version(self) -> None:
        """What says from when on the operator exists; ONNX's file names end in it."""
        source = self.operator.source
        given = {"introduced": self.spec.introduced, "since_version": self.spec.since_version}
        wanted = {"directml": "introduced", "onnx": "since_version"}.get(source.dialect)
        for key, value in given.items():
            if key == wanted and value is None:
                self.report.add("E102", f"`{key}` is missing", self.document.span(()), "in here")
            elif key != wanted and value is not None:
                self.report.add(
                    "E230",
                    f"`{key}` has no meaning in the dialect {source.dialect}",
                    self.document.key_span((key,)),
                    "not here",
                )
        newest = self.vocabulary.opsets.newest
        if source.dialect == "onnx" and (self.spec.since_version or 0) > newest:
            self.report.add(
                "E230",
                f"version {self.spec.since_version} is newer than the newest operator set, {newest}",
                self.document.span(("since_version",)),
                help="raise `opsets.newest` in specs/vocabulary.yaml",
            )
        if source.dialect == "onnx" and self.spec.since_version is not None:
            ending = f"_{self.spec.since_version}"
            if not source.name.endswith(ending):
                self.report.add(
                    "E105",
                    f"the file name `{source.name}.yaml` does not end in the version",
                    self.document.span(("since_version",)),
                    help=f"name it {names.family(source.name)}{ending}.yaml",
                )

    def expressions(self) -> list[tuple[Expr, KeyPath]]:
        """All that the generated module computes, and where it is written."""
        places: list[tuple[Expr, KeyPath]] = []
        op = self.operator
        of_fields = {"default": op.defaults, "sizes": op.sizes, "dtype": op.dtypes}
        for i, field in enumerate(self.spec.fields):
            for key, found in of_fields.items():
                if field.name in found:
                    places.append((found[field.name], ("fields", i, key)))
        for i, entry in enumerate(self.spec.derived):
            if entry.name in self.operator.derived:
                places.append((self.operator.derived[entry.name], ("derived", i, "value")))
        for rule in self.operator.rules:
            written: KeyPath = (*rule.path, "require")
            path = written if written in self.document.values else (*rule.path, "use")
            places.append((rule.require, path))
        return places

    def layout(self) -> None:
        """Expressions are written into generated modules, where lines are not endless."""
        for expression, path in self.expressions():
            if max(map(len, expression.statement("return", layout.WITHIN))) > layout.WITHIN:
                self.too_long(path)
        for name, expression in self.operator.meanings.items():
            if not layout.fits(name, expression.text):
                self.too_long(("semantics", name, "value"))

    def too_long(self, path: KeyPath) -> None:
        self.report.add(
            "E202",
            "this expression does not fit the lines of a generated module",
            self.document.span(path),
            "too long",
            help="name a part of it under `derived`",
        )

    def unknown(
        self, name: str, path: KeyPath, known: Iterable[str], what: str = "a field of this operator"
    ) -> bool:
        known = list(known)
        if name in known:
            return False
        # A name is the value at the path, or the last key of the path itself.
        at_key = name in str(path[-1]).split(".") and path in self.document.keys
        self.report.add(
            "E203",
            f"`{name}` is not {what}",
            self.document.key_span(path) if at_key else self.document.span(path),
            "unknown name",
            help=suggestion(name, known),
        )
        return True

    def taken(self, name: str, path: KeyPath, also: Iterable[str] = ()) -> None:
        """Names become functions and parameters of a generated module, where they may not replace another."""
        source = self.operator.source.name
        known = {*_BUILTINS, *expr.FUNCTIONS, *MODULE_NAMES, source, *also}
        if name in known or keyword.iskeyword(name):
            self.report.add(
                "E105",
                f"`{name}` has another meaning in the generated module",
                self.document.span(path),
                "taken",
                help="choose another name",
            )

    def fields(self) -> None:
        seen: dict[str, int] = {}
        arguments: dict[str, str] = {}
        for i, field in enumerate(self.spec.fields):
            path: KeyPath = ("fields", i)
            self.taken(field.name, (*path, "name"))
            if field.told or field in self.spec.tensors("input")[1:]:
                make = names.snake_case if field.told else names.array_argument
                argument = make(field.name)
                self.taken(argument, (*path, "name"), _ARGUMENTS)
                other = arguments.setdefault(argument, field.name)
                if other != field.name:
                    self.report.add(
                        "E211",
                        f"`{field.name}` and `{other}` are both the argument `{argument}`",
                        self.document.span((*path, "name")),
                        "again",
                    )
            if field.name in seen:
                first = Note(self.document.span(("fields", seen[field.name], "name")), "first here")
                self.report.add(
                    "E211",
                    f"field `{field.name}` is named twice",
                    self.document.span((*path, "name")),
                    "again",
                    notes=[first],
                )
            seen.setdefault(field.name, i)
            numbers = field.type == "int[]" and self.operator.source.dialect == "onnx"
            is_tensor = field.type == "tensor"
            allowed = {"input": is_tensor or numbers, "output": is_tensor}
            if not allowed.get(field.kind, not is_tensor):
                self.report.add(
                    "E214",
                    f"`{field.name}` is {field.kind} but its type is {field.type}",
                    self.document.span((*path, "type")),
                    help="inputs and outputs are tensors, attributes are not; an ONNX input may be int[]",
                )
            self.output(field, path)
            for key, kinds in (("length_of", ["uint[]"]), ("axes_of", ["tensor"])):
                target = getattr(field, key)
                known = [
                    f.name
                    for f in self.spec.fields
                    if f.type in kinds and (key == "length_of" or f.kind == "input")
                ]
                if target is not None:
                    what = "an input" if key == "axes_of" else "a field"
                    self.unknown(target, (*path, key), known, f"{what} of this operator")
            self.default(field, (*path, "default"))
        self.arguments()

    def arguments(self) -> None:
        """All arguments of the function have names of their own."""
        taken = {names.snake_case(f.name) for f in self.spec.fields if f.told}
        taken |= {names.array_argument(f.name) for f in self.spec.tensors("input")[1:]}
        for i, field in enumerate(self.spec.fields):
            if field.kind != "output":
                continue
            for key in ("optional", "sizes_argument"):
                name = getattr(field, key)
                if name is None:
                    continue
                own = [name, f"{name}_dtype"] if key == "optional" else [name]
                for argument in own:
                    if argument in taken:
                        self.report.add(
                            "E211",
                            f"`{argument}` is already an argument of the function",
                            self.document.span(("fields", i, key)),
                            "again",
                        )
                taken.update(own)

    def output(self, field: model.FieldSpec, path: KeyPath) -> None:
        """What only outputs have, and all of them."""
        keys = ("sizes", "dtype", "sizes_argument", "optional")
        if field.kind != "output":
            for key in keys:
                if getattr(field, key) is not None:
                    self.report.add(
                        "E214",
                        f"`{key}` belongs to an output, and `{field.name}` is none",
                        self.document.key_span((*path, key)),
                        "not here",
                    )
            return
        if (field.sizes or field.sizes_argument) is None or field.dtype is None:
            self.report.add(
                "E214",
                f"output `{field.name}` needs `sizes` and `dtype`",
                self.document.span((*path, "name")),
                help="the functions allocate it; say how large it is, and its data type where none is asked for",
            )
        if field.dtype is not None and not field.chooses_dtype:
            known = [
                *self.spec.dtypes(field.name),
                *(f"{t.name}.dtype" for t in self.spec.tensors("input")),
            ]
            if field.dtype not in known:
                self.value(field.dtype, (*path, "dtype"), known)
        for key in ("sizes_argument", "optional"):
            argument = getattr(field, key)
            if argument is not None:
                self.taken(argument, (*path, key), _ARGUMENTS)

    def default(self, field: model.FieldSpec, path: KeyPath) -> None:
        if field.default is None:
            return
        if field.type.endswith("[]") and isinstance(field.default, str):
            return  # an expression
        enum = self.vocabulary.enums.get(field.type)
        known = list(enum.values) if enum else []
        types = {"bool": bool, "uint": int, "int": int, "float": float}
        of_type = types.get(field.type, str if enum else None)
        finite = not isinstance(field.default, float) or math.isfinite(field.default)
        wrong = type(field.default) is not of_type or not finite
        if type(field.default) is int and field.type in RANGES:
            low, high = RANGES[field.type]
            wrong = wrong or not low <= field.default <= high
        if wrong or (enum and field.default not in known):
            help = suggestion(str(field.default), known) or _DEFAULTS.get(
                field.type, "leave it out"
            )
            self.report.add(
                "E103",
                f"`{names.yaml_word(field.default)}` is not a value of {field.type}",
                self.document.span(path),
                "unknown value",
                help=help,
            )

    def functions(self) -> list[str]:
        """The names of functions that compute values of fields."""
        fields = [names.snake_case(f.name) for f in self.spec.fields]
        return [f"{name}_{what}" for name in fields for what in ("default", "dtype", "sizes")]

    def derived(self) -> None:
        """Their names stand beside those of fields, in expressions and as functions."""
        seen: dict[str, KeyPath] = {}
        for i, entry in enumerate(self.spec.derived):
            path: KeyPath = ("derived", i)
            self.taken(entry.name, (*path, "name"), [*self.names, *self.functions()])
            if entry.name in seen:
                first = Note(self.document.span((*seen[entry.name], "name")), "first here")
                span = self.document.span((*path, "name"))
                self.report.add(
                    "E211", f"`{entry.name}` is named twice", span, "again", notes=[first]
                )
            seen.setdefault(entry.name, path)

    def support(self) -> None:
        tensors = [f.name for f in self.spec.tensors()]
        leveled = self.operator.source.dialect == "directml"
        for i, row in enumerate(self.spec.support):
            path: KeyPath = ("support", i)
            unknown = [self.unknown(name, (*path, name), tensors) for name in row.tensors]
            absent = [t for t in tensors if t not in row.tensors]
            if absent and not any(unknown):
                self.report.add(
                    "E102", f"`{absent[0]}` is missing", self.document.span(path), "in this table"
                )
            self.when(row, path)
            if (
                leveled
                and row.since is None
                and any(r.when == row.when for r in self.spec.support[:i])
            ):
                self.report.add(
                    "E102",
                    "`since` is missing",
                    self.document.span(path),
                    "in this table",
                    help="only the first table, the operator's general definition, may do without",
                )
            elif not leveled and row.since is not None:
                self.report.add(
                    "E230",
                    "`since` names a feature level, and this dialect has none",
                    self.document.key_span((*path, "since")),
                    "not here",
                )
            for name, support in row.tensors.items():
                if support.low > support.high:
                    self.report.add(
                        "E231",
                        f"`{support.ranks}` is empty",
                        self.document.span((*path, name, "ranks")),
                        "from .. to",
                    )
                elif support.high > expr.MAX_ENTRIES:
                    self.report.add(
                        "E231",
                        f"`{support.ranks}` goes beyond {expr.MAX_ENTRIES}",
                        self.document.span((*path, name, "ranks")),
                        f"an array has at most {expr.MAX_ENTRIES} dimensions",
                    )
                for j, dtype in enumerate(support.dtypes):
                    if dtype in support.dtypes[:j]:
                        self.report.add(
                            "E211",
                            f"`{dtype}` stands twice",
                            self.document.span((*path, name, "dtypes", j)),
                            "again",
                        )
                    self.taken_by_kernel(name, dtype, (*path, name, "dtypes", j))
        for group in {str(row.when): row.when for row in self.spec.support}.values():
            self.levels(
                [
                    (i, row)
                    for i, row in enumerate(self.spec.support)
                    if row.when == group and row.since is not None
                ]
            )
        self.choices_of_tables()

    def taken_by_kernel(self, tensor: str, dtype: str, path: KeyPath) -> None:
        """A kernel has no code for a data type that it does not take."""
        name = self.spec.semantics.kernel
        kernel = self.vocabulary.kernels.get(name)
        if kernel is None:
            return  # told with the semantics
        pairs = [
            (field.name, argument)
            for kind, arguments in (("input", kernel.inputs), ("output", kernel.outputs))
            for field, argument in zip(self.spec.tensors(kind), arguments, strict=False)
        ]
        allowed = kernel.dtypes.get(dict(pairs).get(tensor, ""), [dtype])
        if dtype not in allowed:
            self.report.add(
                "E226",
                f"kernel {name} does not take {dtype} as {dict(pairs)[tensor]}",
                self.document.span(path),
                f"it takes {', '.join(allowed)}",
            )

    def when(self, row: model.SupportRow, path: KeyPath) -> None:
        """The attribute that chooses among tables, and its values."""
        if row.when is None:
            return
        at: KeyPath = (*path, "when")
        if len(row.when) != 1:
            self.report.add("E212", "`when` names one attribute", self.document.key_span(at))
            return
        ((name, values),) = row.when.items()
        enums = [f.name for f in self.spec.fields if f.type in self.vocabulary.enums]
        if self.unknown(name, (*at, name), enums, "a field with a fixed set of values"):
            return
        known = self.choices(self.spec.field(name).type)
        for i, value in enumerate(values):
            self.unknown(value, (*at, name, i), known, f"a value of {name}")

    def choices_of_tables(self) -> None:
        """Each value of the attribute that chooses among tables has tables, of one group only."""
        groups = {str(row.when): row.when for row in self.spec.support}
        named = [next(iter(when), "") if when else "" for when in groups.values()]
        span = self.document.key_span(("support",))
        if len(set(named)) > 1:
            self.report.add("E212", "all tables have `when` of one attribute, or none has", span)
            return
        name = named[0]
        if not name or self.report:
            return
        taken = [value for when in groups.values() for value in (when or {})[name]]
        for value in self.choices(self.spec.field(name).type):
            if taken.count(value) != 1:
                found = "no table" if value not in taken else "tables of two groups"
                self.report.add("E231", f"`{value}` of {name} has {found}", span, "one for each")

    def levels(self, rows: list[tuple[int, model.SupportRow]]) -> None:
        """The tables of one group: newest first, none loses a type, the oldest is of the operator's own level."""
        levels = list(self.vocabulary.feature_levels)
        for (i, newer), (j, older) in itertools.pairwise(rows):
            assert newer.since and older.since
            if levels.index(newer.since) <= levels.index(older.since):
                self.report.add(
                    "E231",
                    f"level {older.since} has two tables"
                    if older.since == newer.since
                    else f"level {older.since} stands after {newer.since}",
                    self.document.span(("support", j, "since")),
                    "newest first",
                )
            for name in older.tensors.keys() & newer.tensors.keys():
                for k, dtype in enumerate(older.tensors[name].dtypes):
                    if dtype not in newer.tensors[name].dtypes:
                        still = Note(
                            self.document.span(("support", j, name, "dtypes", k)), "still here"
                        )
                        self.report.add(
                            "E230",
                            f"{name} loses {dtype} at level {newer.since}",
                            self.document.key_span(("support", i, name)),
                            f"level {older.since} has it",
                            notes=[still],
                            help="a newer level never removes a type",
                        )
        if rows and self.spec.introduced is not None and rows[-1][1].since != self.spec.introduced:
            self.report.add(
                "E231",
                f"the oldest table is of level {rows[-1][1].since}, but the operator is of {self.spec.introduced}",
                self.document.span(("support", rows[-1][0], "since")),
            )

    def constraints(self) -> None:
        ids: dict[str, KeyPath] = {}
        for i, constraint in enumerate(self.spec.constraints):
            path: KeyPath = ("constraints", i)
            self.unknown(constraint.field, (*path, "field"), self.names)
            derived = [d.name for d in self.spec.derived]
            self.taken(constraint.id, (*path, "id"), [*self.names, *self.functions(), *derived])
            _origin(
                constraint.page,
                constraint.decided,
                "constraint",
                constraint.id,
                path,
                self.document,
                self.report,
            )
            _unique(ids, constraint.id, path, self.document, self.report)
            if constraint.id in self.of_tensors:
                self.report.add(
                    "E211",
                    f"`{constraint.id}` is already a rule of each tensor",
                    self.document.span((*path, "id")),
                    "again",
                    help="choose another id: messages and tests name a rule by it",
                )
            _needs(constraint.needs, ids, constraint.id, path, self.document, self.report)
            for target in constraint.violate:
                name, _, attribute = target.partition(".")
                at: KeyPath = (*path, "violate", target)
                if self.unknown(name, at, self.names):
                    continue
                if target == name and self.spec.field(name).type == "tensor":
                    self.report.add(
                        "E223",
                        f"`{name}` is a tensor, which `violate` changes in a part",
                        self.document.key_span(at),
                        "no part is named",
                        help=f"as in `{name}.sizes`; parts are {', '.join(expr.ATTRIBUTES)}",
                    )
                elif self.spec.field(name).type == "tensor":
                    self.unknown(attribute, at, expr.ATTRIBUTES, "part of a tensor")
                elif target != name:
                    self.unknown(target, at, self.names)

    def semantics(self) -> None:
        kernel = self.vocabulary.kernels[self.spec.semantics.kernel]
        meanings = self.spec.semantics.meanings
        for name in meanings:
            self.unknown(
                name,
                ("semantics", name),
                kernel.parameters,
                f"a parameter of kernel `{self.spec.semantics.kernel}`",
            )
        for name, parameter in kernel.parameters.items():
            path: KeyPath = ("semantics", name)
            meaning = meanings.get(name)
            if meaning is None:
                self.report.add(
                    "E102",
                    f"`{name}` is missing",
                    self.document.key_span(("semantics",)),
                    "in here",
                    help=parameter.doc,
                )
                continue
            _origin(
                meaning.page, meaning.decided, "semantics", name, path, self.document, self.report
            )
            if (meaning.value is None) == (meaning.by is None) or (meaning.by is None) != (
                meaning.values is None
            ):
                self.report.add(
                    "E212",
                    f"`{name}` needs `value`, or `by` and `values`",
                    self.document.key_span(path),
                )
            elif (
                meaning.value is not None
                and parameter.values is not None
                and meaning.value not in parameter.values
            ):
                self.value(meaning.value, (*path, "value"), parameter.values)
            elif meaning.by is not None:
                self.chosen(meaning, path, parameter)

    def equivalences(self) -> None:
        ids: dict[str, KeyPath] = {}
        for i, entry in enumerate(self.spec.equivalences):
            path: KeyPath = ("equivalences", i)
            _unique(ids, entry.id, path, self.document, self.report)
            _origin(
                entry.page, entry.decided, "equivalence", entry.id, path, self.document, self.report
            )
            other = self.others.get(entry.operator)
            if other is self.spec:
                self.report.add(
                    "E203",
                    f"`{entry.operator}` is this operator itself",
                    self.document.span((*path, "operator")),
                    "name another",
                )
                continue
            if other is None:
                known = [o for o in self.others if o != self.operator.id]
                self.unknown(entry.operator, (*path, "operator"), known, "an operator")
                continue
            for j, case in enumerate(entry.cases):
                elements = math.prod(max(size, 1) for size in case.sizes)
                if min(case.sizes, default=1) < 0 or elements > MAX_ELEMENTS:
                    self.report.add(
                        "E223",
                        f"an input of a case has from 0 to {MAX_ELEMENTS} elements",
                        self.document.span((*path, "cases", j, "sizes")),
                        f"found {case.sizes}",
                    )
                for side, spec in (("this", self.spec), ("that", other)):
                    known = [f.name for f in spec.fields if f.told]
                    for name in getattr(case, side):
                        at: KeyPath = (*path, "cases", j, side, name)
                        self.unknown(name, at, known, f"an attribute of {spec.operator}")

    def value(self, value: str, path: KeyPath, known: Iterable[str]) -> None:
        self.report.add(
            "E103",
            f"`{value}` is not one of the allowed values",
            self.document.span(path),
            "unknown value",
            help=suggestion(value, known),
        )

    def chosen(self, meaning: model.Meaning, path: KeyPath, parameter: model.Parameter) -> None:
        """A meaning chosen by a field: one value for each of the field's."""
        assert meaning.by is not None and meaning.values is not None
        choices = {f.name: self.choices(f.type) for f in self.spec.fields if self.choices(f.type)}
        if parameter.values is None:
            self.report.add(
                "E212",
                "this parameter takes an expression: give it `value`",
                self.document.key_span(path),
            )
            return
        if self.unknown(meaning.by, (*path, "by"), choices, "a field with a fixed set of values"):
            return
        for key in meaning.values:
            at: KeyPath = (*path, "values", key)
            known = not self.unknown(key, at, choices[meaning.by], f"a value of {meaning.by}")
            if known and meaning.values[key] not in parameter.values:
                self.value(meaning.values[key], (*path, "values", key), parameter.values)
        for key in choices[meaning.by]:
            if key not in meaning.values:
                self.report.add(
                    "E102",
                    f"`{key}` is missing",
                    self.document.key_span((*path, "values")),
                    "in here",
                )

    def choices(self, type: str) -> list[str]:
        if type == "bool":
            return ["false", "true"]
        enum = self.vocabulary.enums.get(type)
        return list(enum.values) if enum else []
