"""The arguments of an operator's function, and what it returns: as Python has them, and in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from generator import cases
from generator.field_types import field_type
from generator.lint import Linted
from generator.model import FieldSpec, OperatorSpec
from generator.names import capitalised, snake_case, yaml_word
from generator.resolve import Operator
from generator.version_words import within

# Those of `specops.types`.
_ARRAY, _FLAG, _INTEGERS = "types.Array", "types.Flag", "types.Integers"
_ONE_OR_MORE = f"SupportsIndex | {_INTEGERS}"
_OUT = "out: np.ndarray | None = None"


@dataclass(frozen=True)
class ParameterValues:
    """An argument of the function behind the arrays, `default` as Python text; `passed` stands for it within."""

    name: str
    annotation: str
    default: str | None
    doc: str
    passed: str = ""


@dataclass(frozen=True)
class SignatureValues:
    """A way to call the function that type checkers tell from others: its arguments as Python text."""

    arguments: list[str]
    returns: str


OPSET = ParameterValues(
    "opset",
    "int | None",
    "None",
    "The operator set, which picks the version in force; None means the newest known.",
)


def of(ops: Sequence[Operator], linted: Linted) -> list[ParameterValues]:
    """The arguments of an operator's function behind the array; of several versions all that any of them has.

    Those that a caller must give come first.
    """
    spec = ops[-1].spec
    versions: dict[str, dict[int, FieldSpec]] = {}  # of each attribute
    for op in reversed(ops):
        for field in op.spec.fields:
            if field.told:
                versions.setdefault(field.name, {})[op.spec.since_version or 0] = field
    required: list[ParameterValues] = []
    others: list[ParameterValues] = []
    for having in versions.values():
        must = all(f.axes_of is None and f.default is None for f in having.values())
        flags = _FLAG if ops[-1].source.dialect == "plain" else f"{_FLAG} | int"
        (required if must else others).append(_parameter(having, must, _since(ops), flags, linted))
    for field in spec.tensors("output"):
        if field.sizes_argument and not field.sizes:
            doc = f"Sizes of {field.name}."
            required.append(ParameterValues(field.sizes_argument, _INTEGERS, None, doc))
    asked = [p for i, f in enumerate(spec.tensors("output")) for p in _of_output(f, i, ops)]
    return required + others + asked


def before(texts: Mapping[int, str]) -> list[str]:
    """What is said of older versions, from the newest on, where it is not how the next newer begins."""
    return [
        f"Before version {newer}: {text}"
        for (newer, said), (_, text) in pairwise(texts.items())
        if not said.startswith(text.removesuffix("."))
    ]


def dtypes(position: int, ops: Sequence[Operator]) -> list[str]:
    """The data types of an input, each with the versions that take it, unless all do; those of the newest first."""
    taking: dict[str, list[int]] = {}
    for op in reversed(ops):
        for field in op.spec.tensors("input")[position : position + 1]:
            for dtype in op.spec.dtypes(field.name):
                taking.setdefault(dtype, []).insert(0, op.spec.since_version or 0)
    return [
        dtype if versions == _since(ops) else f"{dtype} ({within(versions, _since(ops))})"
        for dtype, versions in taking.items()
    ]


def _since(ops: Sequence[Operator]) -> list[int]:
    return [op.spec.since_version or 0 for op in ops]


def _parameter(
    having: dict[int, FieldSpec], must: bool, versions: list[int], flags: str, linted: Linted
) -> ParameterValues:
    """One argument, from the attribute in the versions that have it, the newest first."""
    field = next(iter(having.values()))
    enum = linted.tree.vocabulary.enums.get(field.type)
    doc = [field.doc]
    types = {"bool": flags, "int[]": _INTEGERS, "uint[]": _INTEGERS}
    types |= {"int": "SupportsIndex", "uint": "SupportsIndex", "float": "types.Real"}
    annotations = [
        _ONE_OR_MORE if f.repeats else types.get(f.type, field_type(f.type).arguments)
        for f in having.values()
    ]
    annotation = " | ".join(dict.fromkeys(annotations))
    default = None if must else f'"{field.default}"' if enum else repr(field.default)
    if field.axes_of is not None:
        annotation = "types.Axes"
        if "None" not in field.doc:
            doc += [
                "An integer or a sequence of them; negative ones count from the end;",
                "None means all axes.",
            ]
    elif enum:
        doc.append(f"One of {', '.join(enum.values)}.")
    elif field.repeats:
        doc.append("An integer stands for every entry.")
    computed = field.type.endswith("[]") and field.axes_of is None
    if not must and (computed or len(versions) > 1):
        annotation, default = f"{annotation} | None", "None"
        doc.append(f"None means {_defaults(having)}.")
    if len(having) < len(versions):
        doc.append(f"{capitalised(within(sorted(having), versions))}.")
    whole = [version for version, f in having.items() if f.type in ("int", "uint")]
    if whole and len(whole) < len(having):
        doc.append(f"A whole number {within(sorted(whole), versions)}.")
    doc += before({version: f.doc for version, f in having.items()})
    return ParameterValues(snake_case(field.name), annotation, default, " ".join(doc))


def _defaults(having: dict[int, FieldSpec]) -> str:
    """An attribute's default in words, with those that other versions have."""
    defaults = [(version, field.default) for version, field in having.items()]
    return _default_doc(yaml_word(defaults[0][1])) + "".join(
        f"; before version {newer} it means {_default_doc(yaml_word(older))}"
        for (newer, default), (_, older) in pairwise(defaults)
        if older != default  # 2 and 2.0 are one
    )


def _default_doc(text: str) -> str:
    each = re.fullmatch(r"\[(\d+) for \w+ in (\w+)\]", text)
    if each:
        return f"{each[1]} for each entry of {snake_case(each[2])}"
    every = re.fullmatch(r"\[(-?\d+) for [^\[\]]+\]", text)
    if every:
        return f"{every[1]} for every entry"
    return f"`{text}`" if text.startswith("[") else text


def _of_output(field: FieldSpec, position: int, ops: Sequence[Operator]) -> list[ParameterValues]:
    """What callers may ask of an output, by its position among the outputs."""
    spec, out = ops[-1].spec, []
    if field.optional:
        doc = f"Whether to return {_in_words(field)} too."
        having = [o for o in ops if any(f.name == field.name for f in o.spec.tensors("output"))]
        if len(having) < len(ops):
            doc += f" {capitalised(within(_since(having), _since(ops)))}."
        out.append(ParameterValues(field.optional, _FLAG, "False", doc))
    argument = spec.dtype_argument(field)
    if argument:
        doc = f"Data type of {field.name}: {', '.join(spec.dtypes(field.name))}, or a NumPy dtype."
        own = "what follows from the other arguments" if field.chooses_dtype else field.dtype
        doc += f" None means that of `out` if given, else {own}."
        if field.optional:
            doc += f" Without `{field.optional}` it has no effect."
        at = f", {position}" if position else ""
        passed = f"functions.output_dtype({argument}, out{at})"
        out.append(ParameterValues(argument, "Any", "None", doc, passed))
    if field.sizes_argument and field.sizes:
        doc = f"All sizes of {field.name}, where not those that follow from the other arguments."
        out.append(ParameterValues(field.sizes_argument, f"{_INTEGERS} | None", "None", doc))
    return out


def _in_words(field: FieldSpec) -> str:
    """An optional output in a sentence; a name that is its flag's too is a noun."""
    return f"the {field.name}" if field.name == field.optional else field.name


def attributes(ops: Sequence[Operator]) -> list[tuple[str, str]]:
    """Each attribute's name and its argument's."""
    names = {f.name: None for o in reversed(ops) for f in o.spec.fields if f.told}
    return [(name, snake_case(name)) for name in names]


def asked(op: Operator) -> list[tuple[str, str]]:
    """For each output of which something may be asked, the arguments of `Asked(...)`."""
    out = []
    for field in op.spec.tensors("output"):
        parts = [field.optional] if field.optional else []
        dtype = op.spec.dtype_argument(field)
        if dtype:
            parts.append(f"dtype={dtype}")
        if field.sizes_argument:
            parts.append(f"sizes={field.sizes_argument}")
        if parts:
            out.append((field.name, f"Asked({', '.join(parts)})"))
    return out


def result(op: Operator) -> str:
    """What the function returns, however it is called."""
    if optional(op):
        return "np.ndarray | tuple[np.ndarray, ...]"
    return "np.ndarray | np.generic" if scalars(op) else "np.ndarray"


def optional(op: Operator) -> FieldSpec | None:
    """The output that callers may ask for, if there is one."""
    return next((f for f in op.spec.tensors("output") if f.optional), None)


def scalars(op: Operator) -> bool:
    """Whether a result without dimensions is returned as a scalar, as NumPy has it."""
    output = op.spec.tensors("output")[0].name
    return op.source.dialect == "plain" and any(t.tensors[output].low == 0 for t in op.spec.support)


def out(op: Operator) -> str:
    """The argument that takes arrays to write to."""
    if optional(op):
        return "out: np.ndarray | Sequence[np.ndarray | None] | None = None"
    return _OUT


def signatures(
    op: Operator, parameters: Sequence[ParameterValues], inputs: Sequence[str]
) -> list[SignatureValues]:
    """The ways to call the function whose results differ in type; none where all are alike."""
    plain, asked = op.source.dialect == "plain", optional(op)
    if not plain and asked is None:
        return []
    spec = op.spec
    same = plain and spec.tensors("output")[0].dtype == f"{spec.tensors('input')[0].name}.dtype"
    scalar = "types.Scalar" if same else "np.int64"
    one = f"npt.NDArray[{scalar}]" if plain else "np.ndarray"
    x = one if same else _ARRAY

    def signature(x: str, returns: str, out: str, **narrowed: str) -> SignatureValues:
        listed = [f"{inputs[0]}: {x}", *(f"{name}: {_ARRAY}" for name in inputs[1:])]
        for p in parameters:
            annotation = narrowed.get(p.name, p.annotation)
            if annotation == "Literal[True]":  # nothing that is left out
                listed += ["*", f"{p.name}: {annotation}"]
            else:
                listed.append(f"{p.name}: {annotation}" + (f" = {p.default}" if p.default else ""))
        return SignatureValues([*listed, out], returns)

    if asked is not None and asked.optional is not None:
        second = "npt.NDArray[np.int64]" if plain else "np.ndarray"
        several = "out: Sequence[np.ndarray | None] | None = None"
        return [
            signature(x, one, _OUT, **{asked.optional: "Literal[False]"}),
            signature(x, f"tuple[{one}, {second}]", several, **{asked.optional: "Literal[True]"}),
            signature(_ARRAY, "Any", out(op)),
        ]
    if not any(p.name == "keepdims" for p in parameters):
        return [signature(x, one, _OUT), signature(_ARRAY, "npt.NDArray[Any]", _OUT)]
    # Which axes are left decides whether it is a scalar; where some may be, that it is an array is only a hint.
    no_axis = {"axis": "None", "keepdims": "Literal[False]"}
    found = [
        signature(x, scalar, "out: None = None", **no_axis),
        signature(x, f"{one} | Any", _OUT),
    ]
    return found + ([signature(_ARRAY, "npt.NDArray[Any] | Any", _OUT)] if same else [])


def returns(op: Operator) -> str:
    """The outputs, each with its data type."""
    first, *others = (
        (f, f"{f.doc} Data type: {_returned_dtype(f, op.spec)}.") for f in op.spec.tensors("output")
    )
    more = (
        f"If `{f.optional}` is true, a tuple of this and {_in_words(f)}: {t}" for f, t in others
    )
    scalar = "A result without dimensions is a NumPy scalar, unless it is in `out`."
    return " ".join([first[1], *more, *([scalar] if scalars(op) else [])])


def _returned_dtype(field: FieldSpec, spec: OperatorSpec) -> str:
    """An output's data type in words; where callers may choose, the argument that says more."""
    argument = spec.dtype_argument(field)
    if argument:
        return f"see `{argument}`"
    if field.dtype_of:
        return f"that of {cases.array_arguments(spec).get(field.dtype_of, field.dtype_of)}"
    return spec.dtypes(field.name)[0]


def memory_order(op: Operator) -> str:
    """What gives new outputs their memory order: not the axes that a reduction may drop."""
    drops = any("keepdims" in sizes.names() for sizes in op.sizes.values())
    return "the axes of x that remain" if drops else "x"
