"""What specs share: constraints, data types, enums, kernels."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from generator import expr, layout
from generator.diagnostics import Report, Span, suggestion
from generator.expr import bounds, language
from generator.lint.entries import check_rule, check_sentence, too_long
from generator.model import DIALECTS, KernelEntry, SpecTree, TensorConstraint, TensorTypes
from generator.resolve import Requirements, Rule
from generator.source import KeyPath

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


def check_vocabulary(tree: SpecTree, report: Report) -> None:
    for check in (_tensor_rules, _shared, _dialects, _numpy_types, _levels, _enums, _kernels):
        check(tree, report)


def check_layout(
    tree: SpecTree,
    tensor_rules: Iterable[tuple[Rule, TensorConstraint]],
    requirements: Requirements,
    report: Report,
) -> None:
    """Rules of each tensor, and what kernels require, are written into generated modules as rules of specs are."""
    rules = [(rule.path, rule.require) for rule, _ in tensor_rules]
    for use in itertools.chain(*requirements.values()):  # each of other names
        rules.append((("constraints", use.constraint), use.require))
    wide = [path for path, require in rules if not require.fits(layout.WITHIN)]
    for path in dict.fromkeys(wide):
        help = "make two rules of it, or shorten the names in it"
        too_long(tree.document.span((*path, "require")), help, report)


def _tensor_rules(tree: SpecTree, report: Report) -> None:
    ids: dict[str, KeyPath] = {}
    every = [c.id for c in tree.vocabulary.tensor_constraints]
    for i, constraint in enumerate(tree.vocabulary.tensor_constraints):
        path: KeyPath = ("tensor_constraints", i)
        check_rule(constraint, ids, every, path, tree.document, report)
        places: list[tuple[str, KeyPath]] = [(constraint.field, (*path, "field"))]
        places += [(key, (*path, "violate", key)) for key in constraint.violate]
        for part, place in places:
            is_key = place[-1] == part
            span = tree.document.key_span(place) if is_key else tree.document.span(place)
            _known(part, language.ATTRIBUTES, "a part of a tensor", span, report)


def _numpy_types(tree: SpecTree, report: Report) -> None:
    """A data type has the kind and the bytes of what NumPy calls it."""
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


def _levels(tree: SpecTree, report: Report) -> None:
    """Oldest first, each once."""
    for i, (older, newer) in enumerate(itertools.pairwise(tree.vocabulary.feature_levels), 1):
        if _numbers(newer) <= _numbers(older):
            twice = newer == older
            report.add(
                "E215",
                f"level {newer} stands {'twice' if twice else f'behind level {older}'}",
                tree.document.span(("feature_levels", i)),
                help="levels stand oldest first, each once",
            )


def _enums(tree: SpecTree, report: Report) -> None:
    """Each value has a number of its own, and an empty text stands for one of them."""
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


def _kernels(tree: SpecTree, report: Report) -> None:
    """Tensors and parameters have names of their own; parameters and data types are told as far as they must be."""
    for name, kernel in tree.vocabulary.kernels.items():
        arguments = [*kernel.inputs, *kernel.outputs, *kernel.parameters]
        for argument in sorted({a for a in arguments if arguments.count(a) > 1}):
            report.add(
                "E211",
                f"kernel `{name}` has `{argument}` twice",
                tree.document.key_span(("kernels", name)),
                "again",
            )
        _tensor_types(tree, kernel, kernel.dtypes, {}, ("kernels", name, "dtypes"), report)
        for parameter, entry in kernel.parameters.items():
            if (entry.values is None) == (entry.expression is None):
                report.add(
                    "E212",
                    f"parameter `{parameter}` needs one of `values` and `expression`",
                    tree.document.key_span(("kernels", name, "parameters", parameter)),
                )
            if entry.of is not None:
                path: KeyPath = ("kernels", name, "parameters", parameter, "of")
                tensors, span = [*kernel.inputs, *kernel.outputs], tree.document.span(path)
                _known(entry.of, tensors, "a tensor of the kernel", span, report)
                if entry.expression is not None:
                    message = f"parameter `{parameter}` needs `values`: the first holds without `{entry.of}`"
                    report.add("E212", message, span)
            for value, dtypes in entry.dtypes.items():
                at: KeyPath = ("kernels", name, "parameters", parameter, "dtypes", value)
                span = tree.document.key_span(at)
                _known(value, entry.values or (), f"a value of `{parameter}`", span, report)
                _tensor_types(tree, kernel, dtypes, kernel.dtypes, at, report)


def _tensor_types(
    tree: SpecTree,
    kernel: KernelEntry,
    dtypes: TensorTypes,
    beside: TensorTypes,
    path: KeyPath,
    report: Report,
) -> None:
    """They name tensors of the kernel, and data types or another tensor that has these; `beside`: what they replace."""
    tensors = [*kernel.inputs, *kernel.outputs]
    whole = {**beside, **dtypes}
    for tensor, taken in dtypes.items():
        at: KeyPath = (*path, tensor)
        _known(tensor, tensors, "a tensor of the kernel", tree.document.key_span(at), report)
        if isinstance(taken, str):
            told = [t for t in tensors if t != tensor and not isinstance(whole.get(t), str)]
            what = "a tensor whose data types are told"
            _known(taken, told, what, tree.document.span(at), report)
            continue
        _data_types(taken, at, tree, report)


def _data_types(dtypes: list[str], path: KeyPath, tree: SpecTree, report: Report) -> None:
    for i, dtype in enumerate(dtypes):
        if dtype in dtypes[:i]:
            report.add("E211", f"`{dtype}` stands twice", tree.document.span((*path, i)), "again")
        elif dtype not in tree.vocabulary.data_types:
            report.add(
                "E103",
                f"`{dtype}` is not a data type",
                tree.document.span((*path, i)),
                "unknown value",
                help=suggestion(dtype, tree.vocabulary.data_types),
            )


def _dialects(tree: SpecTree, report: Report) -> None:
    """Each dialect's data types are known, and an array can have its ranks."""
    for dialect in DIALECTS:
        entry, path = tree.vocabulary.dialects.of(dialect), ("dialects", dialect)
        _data_types(entry.dtypes, (*path, "dtypes"), tree, report)
        if not entry.low <= entry.high <= bounds.ARRAY:
            report.add(
                "E231",
                f"`{entry.ranks}` is no range of ranks",
                tree.document.span((*path, "ranks")),
                f"from .. to; an array has at most {bounds.ARRAY} dimensions",
            )


def _known(name: str, known: Collection[str], what: str, span: Span, report: Report) -> None:
    """Tell of a name that is not one of the known."""
    if name not in known:
        message = f"`{name}` is not {what}"
        report.add("E203", message, span, "unknown name", help=suggestion(name, known))


def _numbers(level: str) -> list[int]:
    return [int(part) for part in level.split(".")]


def _shared(tree: SpecTree, report: Report) -> None:
    """A shared constraint, and what it says is allowed, name its parameters."""
    for name, shared in tree.vocabulary.constraints.items():
        path: KeyPath = ("constraints", name)
        for i, parameter in enumerate(shared.parameters):
            if parameter in shared.parameters[:i]:
                span = tree.document.span((*path, "parameters", i))
                report.add("E211", f"`{name}` has the parameter `{parameter}` twice", span, "again")
        try:
            expr.check_names(shared.require, shared.parameters, name)
        except language.ExpressionError as error:
            span = tree.document.within((*path, "require"), error.offset, error.length)
            report.add(error.code, error.message, span, error.label, help=error.help)
        span = tree.document.span((*path, "allowed"))
        check_sentence(shared.allowed, shared.parameters, name, span, report)
