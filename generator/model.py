"""The typed form of specs/: what a vocabulary and an operator's spec may say.

pydantic checks structure and reports all errors with their paths; source.py knows the place of each path. What needs
more than one field is in lint/.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from generator import schema
from generator.field_types import FIELD_TYPES
from generator.names import family
from generator.source import Document

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def _printable(text: str) -> str:
    """Text that goes into docstrings and comments: one line, no control characters, nothing that ends a docstring or
    is run as an example of one.
    """
    if not text.isprintable() or not text.isascii():
        raise PydanticCustomError("text", "text must be printable ASCII on one line")
    if text.isspace():
        raise PydanticCustomError("text", "text may not be blank")
    if '"""' in text or "\\" in text or text.endswith('"'):
        raise PydanticCustomError(
            "text", "text may not hold a backslash or three quotes, nor end in a quote"
        )
    if ">>>" in text:
        raise PydanticCustomError("text", "text may not hold >>>, which doctest runs")
    return text


def _reason(text: str) -> str:
    if text.startswith("The page is silent"):
        raise PydanticCustomError(
            "text", "say why it was decided so: that the page is silent holds for each decision"
        )
    return text


def _python_name(name: str) -> str:
    if not _NAME.match(name) or keyword.iskeyword(name) or len(name) > 64:
        raise PydanticCustomError(
            "identifier",
            "a name has letters, digits and _, a letter first, and is no Python keyword",
        )
    return name


def _word(section: str) -> AfterValidator:
    """Checks that a string is a word of one section of the vocabulary."""

    def check(value: str, info: ValidationInfo) -> str:
        allowed = (info.context or {})[section]
        if value not in allowed:
            raise PydanticCustomError("unknown_word", "unknown", {"allowed": list(allowed)})
        return value

    return AfterValidator(check)


# What a URL is made of, without the quote that a docstring or a text could end in.
ADDRESS = r"^https://[A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]+$"
RANKS = r"^[0-9]{1,2}\.\.[0-9]{1,2}$"
OPERATOR_ID = r"^[a-z]+/[a-z][a-z0-9_]*$"
LEVEL = r"^[0-9]{1,2}\.[0-9]{1,2}$"
WORDS = r"^[a-z]+( [a-z]+)*$"

Name = Annotated[str, StringConstraints(max_length=64), AfterValidator(_python_name)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=400), AfterValidator(_printable)]
Reason = Annotated[Text, AfterValidator(_reason)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=400)]
Words = Annotated[str, StringConstraints(pattern=WORDS, max_length=64)]
Address = Annotated[str, StringConstraints(pattern=ADDRESS, max_length=200)]
DataType = Annotated[str, _word("data_types"), schema.WordOf("data_types")]
Level = Annotated[str, _word("feature_levels"), schema.WordOf("feature_levels")]
FieldTypeName = Annotated[str, _word("field_types"), schema.WordOf("field_types")]
Kernel = Annotated[str, _word("kernels"), schema.WordOf("kernels")]
FieldKind = Literal["input", "output", "attribute"]


_PAGE = "Where the page says it."
_DECIDED = "Why it was decided so, where the page is silent."


def _key(description: str, default: Any = ...) -> Any:
    """A key of a spec, with what editors show of it."""
    if isinstance(default, list):
        return Field(default_factory=list, description=description)
    return Field(default, description=description)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _something(cls, value: Any, info: ValidationInfo) -> Any:
        """A key that may be left out has a value where it stands: else a forgotten one would read as left out."""
        if value is None and cls.model_fields[info.field_name or ""].default is None:
            raise PydanticCustomError("nothing", "nothing")
        return value


# --- vocabulary.yaml ---


class DataTypeEntry(Strict):
    bytes: Literal[1, 2, 4, 8]
    kind: Literal["float", "signed", "unsigned", "bool"]
    numpy: Literal[
        "bool", "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "uint32", "uint64",
    ]  # fmt: skip


class Ranked(Strict):
    """A range of numbers of dimensions, both ends in it."""

    ranks: Annotated[str, StringConstraints(pattern=RANKS)]

    @property
    def low(self) -> int:
        return int(self.ranks.split("..")[0])

    @property
    def high(self) -> int:
        return int(self.ranks.split("..")[1])


class DialectEntry(Ranked):
    """What a tensor of a dialect may be at most."""

    dtypes: Annotated[list[Name], Field(min_length=1)]


class Dialects(Strict):
    directml: DialectEntry
    onnx: DialectEntry
    plain: DialectEntry

    def of(self, dialect: str) -> DialectEntry:
        entry: DialectEntry = getattr(self, dialect)
        return entry


DIALECTS = tuple(Dialects.model_fields)


class OpsetEntry(Strict):
    newest: int


class EnumEntry(Strict):
    doc: Text
    values: dict[Name, int]
    empty: Name | None = _key("The value that an empty text stands for.", None)


# Of tensors of a kernel: the data types that it may have, or the tensor whose data type it has.
TensorTypes = dict[Name, Name | Annotated[list[Name], Field(min_length=1)]]


class Parameter(Strict):
    """What a kernel can be told: one of some values, or an expression."""

    doc: Text
    values: dict[Name, Text] | None = None
    dtypes: dict[Name, TensorTypes] = _key(
        "For values that take other data types: what replaces entries of the kernel's `dtypes`.", {}
    )
    expression: Literal["ints", "number"] | None = None
    of: Name | None = _key(
        "The tensor that it is about: specs without it leave it out, and the first value holds.",
        None,
    )


class KernelEntry(Strict):
    """What a kernel computes: from which tensors, into which, and what it is told.

    A spec's inputs and outputs fill `inputs` and `outputs` in order; what is missing at the end is absent.
    """

    doc: Text
    inputs: list[Name]
    outputs: list[Name]
    exact: bool = _key("Whether results are exact, or right but for the rounding of the data type.")
    dtypes: TensorTypes = _key(
        "The data types that a tensor may have, or the tensor whose data type it has; one that is not named may have"
        " any.",
        {},
    )
    parameters: dict[Name, Parameter]
    requires: list[Expression] = _key(
        "What must hold of tensors and parameters, or the kernel would reach beyond them: shared constraints.",
        [],
    )

    def untold(self, spec: OperatorSpec) -> dict[str, str]:
        """The parameters about tensors that a spec lacks, each with the value that holds then."""
        counts = [len(spec.tensors(kind)) for kind in ("input", "output")]
        absent = [*self.inputs[counts[0] :], *self.outputs[counts[1] :]]
        about = {n: p.values for n, p in self.parameters.items() if p.of in absent and p.values}
        return {name: next(iter(values)) for name, values in about.items()}


class SharedConstraint(Strict):
    parameters: list[Name]
    require: Expression
    allowed: Text


class PageEntry(Strict):
    title: Text
    address: Address
    revision: Text


class TensorConstraint(Strict):
    id: Name
    field: Name
    require: Expression
    allowed: Text
    only: Literal["input", "output"] | None = None
    page: Text | None = None
    decided: Reason | None = None
    needs: list[Name] = Field(default_factory=list)
    violate: dict[Name, Any]


class Vocabulary(Strict):
    data_types: dict[Name, DataTypeEntry]
    dialects: Dialects
    feature_levels: list[Annotated[str, StringConstraints(pattern=LEVEL)]] = Field(min_length=1)
    enums: dict[Name, EnumEntry]
    kernels: dict[Name, KernelEntry]
    constraints: dict[Name, SharedConstraint]
    opsets: OpsetEntry
    tensor_page: PageEntry
    tensor_constraints: list[TensorConstraint]

    def words(self) -> dict[str, list[str]]:
        """The allowed words of each section, in the vocabulary's order: the context of validation and of the schema."""
        return {
            "data_types": list(self.data_types),
            "feature_levels": self.feature_levels,
            "kernels": list(self.kernels),
            "field_types": [*FIELD_TYPES, *self.enums],
        }


# --- an operator's spec ---


class FieldSpec(Strict):
    """One member of the operator's struct, in the struct's order."""

    name: Name = _key("The page's name of the field.")
    kind: FieldKind
    type: FieldTypeName
    doc: Text = _key("What it is, in one sentence of our own.")
    length_of: Name | None = _key("This number is the length of that array.", None)
    axes_of: Name | None = _key("This array holds axes of that tensor.", None)
    one_for_each: Words | None = _key("What this array has one entry for each of, in words.", None)
    default: bool | int | float | str | None = _key(
        "The functions' default; of an array an expression.", None
    )
    sizes: Expression | None = _key("Of an output: its sizes, from what stands above it.", None)
    sizes_argument: Name | None = _key("The functions' argument that asks for other sizes.", None)
    dtype: Expression | None = _key(
        "Of an output: its data type, that of a tensor as `x.dtype`, or an expression that chooses.",
        None,
    )
    optional: Name | None = _key(
        "Of an output that may be absent: the functions' argument that asks for it.", None
    )

    @property
    def chooses_dtype(self) -> bool:
        """Whether an expression gives its data type, rather than a word or a tensor's."""
        return self.dtype is not None and " " in self.dtype

    @property
    def dtype_of(self) -> str:
        """The tensor whose data type it has; empty where it has another."""
        tensor, _, part = (self.dtype or "").partition(".")
        return tensor if part == "dtype" and tensor.isidentifier() else ""

    @property
    def repeats(self) -> bool:
        """Whether its default repeats a number, in place of which the functions take another."""
        return re.fullmatch(r"\[-?\d+ for [^\[\]]+\]", str(self.default)) is not None

    @property
    def told(self) -> bool:
        """Whether callers give it as a value: neither a tensor nor the length of an array."""
        return self.type != "tensor" and self.length_of is None


class Derived(Strict):
    """A value that follows from inputs and attributes, named because several expressions need it."""

    name: Name
    value: Expression
    doc: Text


class TensorSupport(Ranked):
    dtypes: Annotated[list[DataType], Field(min_length=1)]


class SupportRow(Strict):
    """One table of the page: what each tensor may be from a feature level on. The other keys are tensor fields."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, TensorSupport] = Field(init=False)
    since: Level | None = None
    when: dict[Name, Annotated[list[Name], Field(min_length=1)]] | None = _key(
        "An attribute, and those of its values that the table is for.", None
    )

    @property
    def chosen(self) -> dict[str, str]:
        """The attribute and the first of its values that the table is for; empty where it is for all."""
        return {name: values[0] for name, values in (self.when or {}).items()}

    @property
    def condition(self) -> str:
        """When it is the table, in words; empty where it always is."""
        return "".join(f"where {n} is {' or '.join(v)}" for n, v in (self.when or {}).items())

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is the table for these attributes."""
        return all(values.get(name) in allowed for name, allowed in (self.when or {}).items())

    @property
    def tensors(self) -> dict[str, TensorSupport]:
        return self.__pydantic_extra__


class Constraint(Strict):
    """A rule between fields."""

    id: Name = _key("Its name in validator, messages, tests and docstrings.")
    field: Name = _key("The field to blame.")
    use: Expression | None = _key("A shared constraint with its fields.", None)
    require: Expression | None = _key("What must hold, in the constraint language.", None)
    allowed: Text | None = _key("What is allowed, in words; part of the error message.", None)
    page: Text | None = _key(_PAGE, None)
    decided: Reason | None = _key(_DECIDED, None)
    needs: list[Name] = _key("Rules above it without which it has no meaning.", [])
    violate: dict[str, Any] = _key("The smallest change of the first example that breaks it.")

    @property
    def shared(self) -> str:
        """The name of the shared constraint that it uses; empty where it has a `require` of its own."""
        return (self.use or "").partition("(")[0].strip()


class Meaning(Strict):
    """What one kernel parameter is set to: a value, or a value for each value of a field."""

    value: Expression | None = _key("A fixed value, or an expression.", None)
    by: Name | None = _key("The field that chooses.", None)
    values: dict[str, Name] | None = _key("For each value of that field one of the kernel's.", None)
    page: Text | None = _key(_PAGE, None)
    decided: Reason | None = _key(_DECIDED, None)


class Semantics(Strict):
    """The kernel and what it is told. The other keys are the kernel's parameters."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Meaning] = Field(init=False)
    kernel: Kernel

    @property
    def meanings(self) -> dict[str, Meaning]:
        return self.__pydantic_extra__


class TensorData(Strict):
    dtype: DataType
    data: Any


class Example(Strict):
    id: Name
    page: Text | None = None
    decided: Reason | None = None
    given: dict[Name, Any]
    expect: dict[Name, TensorData]


class EquivalenceCase(Strict):
    """One call of both operators on an input of these sizes; attributes not named take their defaults."""

    sizes: list[int]
    this: dict[Name, Any]
    that: dict[Name, Any]


class Equivalence(Strict):
    """Another operator that gives the same results in these cases."""

    id: Name
    page: Text | None = _key(_PAGE, None)
    decided: Reason | None = _key(_DECIDED, None)
    says: Text = _key("When the two are the same, in one sentence.")
    operator: Annotated[str, StringConstraints(pattern=OPERATOR_ID)] = _key(
        "The other operator, as `directml/argmax`."
    )
    cases: Annotated[list[EquivalenceCase], Field(min_length=1)]


class Erratum(Strict):
    """A mistake on the page: what stands there, and what is right."""

    id: Name
    page: Text
    printed: Text
    right: Text

    @property
    def correction(self) -> str:
        """Both in words. Without quotation marks, for what stands there may be told in ours."""
        return f"the page says: {self.printed}; correct: {self.right}"


class Decision(Strict):
    """What the page leaves open and no constraint or meaning says."""

    id: Name
    decided: Reason


class OperatorSpec(Strict):
    operator: Name = _key("The page's name of the operator.")
    summary: Text = _key("What it does, in one sentence.")
    introduced: Level | None = _key("DirectML: the feature level that brought it.", None)
    since_version: int | None = _key("ONNX: the version of the operator.", None)
    page: PageEntry = _key("The page, so that a changed page can be traced.")
    fields: Annotated[list[FieldSpec], Field(min_length=1)] = _key("In the struct's order.")
    derived: list[Derived] = _key("What follows from the fields and has a name.", [])
    support: Annotated[list[SupportRow], Field(min_length=1)] = _key(
        "Tables by level, newest first."
    )
    constraints: list[Constraint] = _key("Rules between fields.")
    semantics: Semantics = _key("The kernel, and what it is told.")
    examples: Annotated[list[Example], Field(min_length=1)] = _key("The page's own; literals.")
    equivalences: list[Equivalence] = _key("Operators that give the same results.", [])
    silent: list[Decision] = _key("What else the page leaves open, and what was decided.", [])
    errata: list[Erratum] = _key("Mistakes on the page.")

    def field(self, name: str) -> FieldSpec:
        return next(f for f in self.fields if f.name == name)

    def tensors(self, kind: str | None = None) -> list[FieldSpec]:
        return [f for f in self.fields if f.type == "tensor" and kind in (None, f.kind)]

    def dtypes(self, tensor: str) -> tuple[str, ...]:
        """The data types that a tensor may have in general."""
        tables = [row.tensors[tensor] for row in self.support if tensor in row.tensors]
        return tuple(dict.fromkeys(dtype for table in tables for dtype in table.dtypes))

    def dtype_argument(self, output: FieldSpec) -> str:
        """The functions' argument that chooses an output's data type; none where it follows or has no choice."""
        if output.dtype_of or len(self.dtypes(output.name)) == 1:
            return ""
        return f"{output.optional or 'output'}_dtype"


# --- loading ---


@dataclass(frozen=True)
class Spec:
    """One operator's spec with its file and the place of everything in it."""

    dialect: str
    name: str
    document: Document
    spec: OperatorSpec

    @property
    def file(self) -> str:
        return self.document.file

    @property
    def family(self) -> str:
        """Its name, of ONNX that of all versions."""
        return family(self.name) if self.dialect == "onnx" else self.name


@dataclass(frozen=True)
class SpecTree:
    """All of specs/."""

    vocabulary: Vocabulary
    document: Document
    specs: tuple[Spec, ...]
