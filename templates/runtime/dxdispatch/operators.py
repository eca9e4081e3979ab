"""Dispatchables: from JSON to the description of a DirectML operator, and its violations to places in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from specops.directml.descriptor import TensorDesc
from specops.directml.registry import OPERATORS
from specops.directml.tensor_rules import TENSOR_RULES
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.problems import did_you_mean
from specops.dxdispatch.values import ALLOWED_TYPES, BUFFER_TYPES
from specops.errors import ValidationError, Violation
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood, enum_value
from specops.validation import Field

_PREFIX = "DML_OPERATOR_"
_EXECUTION_FLAGS = (
    "NONE", "ALLOW_HALF_PRECISION_COMPUTATION", "DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE",
)  # fmt: skip
_NUMBER, _TEXT = (int, float), (str,)
_KINDS: dict[str, tuple[type, ...]] = {  # of JSON, by a field's type; of enums text
    **dict.fromkeys(("uint", "uint[]", "int", "int[]", "float"), _NUMBER),
    "bool": (bool,),
}
_COMPILE_TYPES = ("DmlCompileOp", "DmlCompileGraph")
_ELSEWHERE = {
    "hlsl": "HLSL shaders",
    "onnx": "ONNX models",
    "dmlserializedgraph": "serialized graphs",
}
# What rules allow in Python, as it is in JSON.
_IN_JSON = {
    "a TensorDesc": "an object with DataType and Sizes",
    "True, False, 1 or 0": "true or false",
}
_OWN_MEMBERS = ("type", "Type", "desc", "Desc", "bindings", "executionFlags", "dmlCompileType")

# The member of DML_BUFFER_TENSOR_DESC that a rule of tensors, or of an operator's tables, is about.
_MEMBERS = {
    "dimension_count": "DimensionCount",
    "sizes": "Sizes",
    "strides": "Strides",
    "total_bytes": "TotalTensorSizeInBytes",
    "alignment": "GuaranteedBaseOffsetAlignment",
    "flags": "Flags",
}
_ABOUT = {
    **{rule.id: _MEMBERS.get(rule.field, "") for rule in TENSOR_RULES},
    "supported_data_type": "DataType",
    "supported_dimension_count": "Sizes",
}


@dataclass(frozen=True)
class BindPoint:
    """A tensor of an operator that buffers are bound to."""

    name: str
    kind: str  # input or output
    desc: TensorDesc
    bytes: int
    alignment: int
    owned: bool  # OWNED_BY_DML: bound once, by the dispatchable itself


@dataclass(frozen=True)
class Dispatchable:
    """A validated operator. `points` are its tensors in the order of its fields, without absent optional ones."""

    name: str
    node: Node
    operator: CompiledOperator
    points: tuple[BindPoint, ...]
    optional: tuple[str, ...]  # names of absent optional tensors


def dispatchable(name: str, node: Node, feature_level: str | None) -> Dispatchable | None:
    """The operator; None with all that is wrong with it in the report."""
    if not node.is_object():
        return None
    given = node.get("type")
    if given is None or not isinstance(given.value, str):
        place = given or node
        place.error("a dispatchable needs a type, as a string", "as DML_OPERATOR_ARGMAX")
        return None
    if given.value.lower() in _ELSEWHERE:
        what = _ELSEWHERE[given.value.lower()]
        given.error(f"{what} are out of reach; only DirectML operators are run here")
        return None
    known = {op.removeprefix(_PREFIX): desc for op, desc in OPERATORS.items()}
    description = known.get(given.value.removeprefix(_PREFIX))
    if description is None:
        near = did_you_mean(given.value.removeprefix(_PREFIX), known)
        listed = f"there are {', '.join(known)}"
        given.error(f'operator "{given.value}" is not available here', near or listed)
        return None
    _settings(node)
    desc = node.get("Desc") or node.get("desc") or node
    if not isinstance(desc.value, dict):
        desc.refuse("an object with the operator's fields")
        return None
    before = node.report.errors
    declared = description.OPERATOR.fields
    values = {f.name: _value(f, desc.get(f.name)) for f in declared}
    _lengths(declared, desc, values)
    _tensor_types(declared, desc)
    _unread(desc, [f.name for f in declared])
    try:
        operator = description(**values).compile(feature_level)
    except ValidationError as error:
        for violation in error.violations:
            _violation(violation, desc, given)
        return None
    if node.report.errors > before:
        return None
    tensors = [f for f in declared if f.type == "tensor" and values[f.name] is not None]
    points = tuple(_bind_point(f, values[f.name]) for f in tensors)
    absent = tuple(name for name, value in values.items() if value is None)
    return Dispatchable(name, node, operator, points, absent)


def _bind_point(field: Field, tensor: TensorDesc) -> BindPoint:
    total = tensor.TotalTensorSizeInBytes
    return BindPoint(
        field.name,
        field.kind,
        tensor,
        tensor.implied_bytes if total is None else total,
        max(16, tensor.GuaranteedBaseOffsetAlignment),
        enum_value(tensor.Flags, "DML_TENSOR_FLAGS") == "OWNED_BY_DML",
    )


def _settings(node: Node) -> None:
    """Members that change nothing here are still read as DxDispatch reads them."""
    flags = node.get("executionFlags")
    if flags is not None:
        for entry in flags.value if isinstance(flags.value, Items) else [flags]:
            name = str(entry.value).removeprefix("DML_EXECUTION_FLAG_")
            if not isinstance(entry.value, str) or name not in _EXECUTION_FLAGS:
                entry.refuse(", ".join(_EXECUTION_FLAGS))
    kind = node.get("dmlCompileType")
    if kind is not None and kind.value not in _COMPILE_TYPES:
        kind.refuse(", ".join(_COMPILE_TYPES))


def _value(field: Field, node: Node | None) -> Any:
    """What the description takes for a field; None for what is missing."""
    if node is None or node.value is None:
        return None
    if field.type == "tensor":
        return _tensor(node)
    return _plain(node, _KINDS.get(field.type, _TEXT))


def _plain(node: Node, kinds: tuple[type, ...]) -> Any:
    """A value of one of these kinds, or a list; of all else the node, which is shown as the file has it.

    Nothing takes a node, while Python takes other kinds than JSON: booleans for numbers and numbers for booleans.
    """
    items = node.value
    if isinstance(items, Items):
        return [v if type(v) in _NUMBER else items[i] for i, v in enumerate(items.values)]
    return node.value if type(node.value) in kinds else node


def _tensor(node: Node) -> Any:
    """DML_TENSOR_DESC with a nested Desc, or its short form."""
    if not isinstance(node.value, dict):
        return node
    node = _inner(node)
    values: dict[str, Any] = {}
    for member in fields(TensorDesc):
        entry = node.get(member.name)
        if entry is not None and entry.value is not None:
            kinds = _TEXT if member.name in ("DataType", "Flags") else _NUMBER
            values[member.name] = _plain(entry, kinds)
    named = values.get("DataType")
    if isinstance(named, str) and named.removeprefix("DML_TENSOR_DATA_TYPE_") not in BUFFER_TYPES:
        values["DataType"] = node.get("DataType")
    if isinstance(values.get("Flags"), list):
        values["Flags"] = _flags(values["Flags"])
    if values.get("TotalTensorSizeInBytes") == 0:
        del values["TotalTensorSizeInBytes"]  # computed, as DxDispatch does
    return TensorDesc(values.pop("DataType", None), values.pop("Sizes", None), **values)


def _flags(given: list[Any]) -> Any:
    """An array of flags as one; there is but one that is not NONE."""
    names = [flag.value if isinstance(flag, Node) else flag for flag in given]
    if not all(isinstance(name, str) for name in names):
        return given
    try:
        flags = {enum_value(name, "DML_TENSOR_FLAGS") for name in names} - {"NONE"}
    except NotUnderstood:
        return given
    return flags.pop() if flags else "NONE"


def _inner(node: Node) -> Node:
    nested = node.get("Desc")
    return node if nested is None else nested


def _lengths(declared: tuple[Field, ...], desc: Node, values: dict[str, Any]) -> None:
    """DxDispatch takes no count from the length of its array, though our descriptions do."""
    for field in declared:
        if field.length_of is not None and values[field.name] is None:
            array = values[field.length_of]
            hint = f'add "{field.name}": {len(array)}' if isinstance(array, list) else ""
            desc.error(f"{field.name} is missing; DxDispatch needs it", hint)


def _tensor_types(declared: tuple[Field, ...], desc: Node) -> None:
    """A tensor is a buffer: DirectML has no other type."""
    for field in declared:
        member = desc.get(field.name) if field.type == "tensor" else None
        named = None if member is None else member.get("Type")
        if named is not None and str(named.value).removeprefix("DML_TENSOR_TYPE_") != "BUFFER":
            named.refuse("BUFFER")


def _unread(desc: Node, known: list[str]) -> None:
    """DxDispatch ignores members that it does not know; a misspelt one is worth a word."""
    members = [f.name for f in fields(TensorDesc)]
    for name, member in desc.value.items():
        if name not in known and name not in _OWN_MEMBERS:
            member.warn("no field of this operator; not read", name, known)
        elif name in known and isinstance(member.value, dict):
            inner = _inner(member)
            for part, node in (inner.value if isinstance(inner.value, dict) else {}).items():
                if part not in members and part != "Type":
                    node.warn("no field of a tensor; not read", part, members)


def _violation(violation: Violation, desc: Node, type: Node) -> None:
    """Say what a rule says, at the member that it blames."""
    name, _, member = violation.field.partition(".")
    node = type if name == "feature_level" else desc.get(name)
    place = node or desc
    if node is not None and isinstance(node.value, dict):
        inner = _inner(node)
        place = inner.get(member or _ABOUT.get(violation.id, "")) or inner
    allowed = _IN_JSON.get(violation.allowed, violation.allowed)
    # An array, not what stands for one in Python.
    allowed = re.sub("^a sequence of (.*?)(, such as .*)?$", r"an array of \1", allowed)
    if member == "DataType" and violation.id == "field_type":
        allowed = ALLOWED_TYPES
    hint = f"{violation.page} [{violation.id}]"
    if violation.id == "field_type" and violation.found in ("None", "a value of type NoneType"):
        lost = violation.field if node is None or not member else member
        message = f"{lost} is missing"
    elif violation.allowed == "a TensorDesc":
        message = f"found {place.kind()}"
    elif name == "feature_level":
        message = f"found feature level {violation.found}"
    else:
        message = f"found {violation.found}"
    place.error(f"{message}; allowed: {allowed}", hint, violation.id)
