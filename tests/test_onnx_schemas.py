"""What specs say of ONNX's operators, beside its own schemas: versions, fields, defaults, types, quotes of errata."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import onnx
import pytest
import trees
from onnx import TensorProto, defs, helper

from generator.diagnostics import Report
from generator.model import FieldSpec, Spec
from generator.structure import load_tree
from specops import ValidationError
from specops import onnx as ox

TREE = load_tree(trees.PROJECT, Report())
assert TREE is not None
SPECS = {f"{s.spec.operator}-{s.spec.since_version}": s for s in TREE.specs if s.dialect == "onnx"}
OPERATORS = {spec.spec.operator for spec in SPECS.values()}
SCHEMAS = {
    f"{s.name}-{s.since_version}": s
    for s in defs.get_all_schemas_with_history()
    if s.domain == "" and s.name in OPERATORS and s.since_version <= TREE.vocabulary.opsets.newest
}
# An older onnx lacks the newest versions, and other releases word their pages otherwise.
KNOWN = sorted(SPECS.keys() & SCHEMAS.keys())
REVISION = f"onnx {onnx.__version__}"
OTHER_NAMES = {"double": "FLOAT64", "float": "FLOAT32"}
KINDS = {
    "INT": ("int", "bool"),
    "INTS": ("int[]",),
    "FLOAT": ("float",),
    "STRING": ("ONNX_AUTO_PAD",),
}
# What a schema leaves open, and a spec requires: `silent` says why.
REQUIRED = {("LpPool-1", "kernel_shape")}


def optional(parameter: defs.OpSchema.FormalParameter) -> bool:
    return bool(parameter.option == defs.OpSchema.FormalParameterOption.Optional)


def joined(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def fields(spec: Spec, kind: str) -> list[FieldSpec]:
    return [field for field in spec.spec.fields if field.kind == kind]


def test_all_versions_are_there() -> None:
    """All that the schemas have up to the newest operator set; and no other, where they are those of the pages."""
    assert SCHEMAS.keys() <= SPECS.keys()
    if all(spec.spec.page.revision == REVISION for spec in SPECS.values()):
        assert SCHEMAS.keys() == SPECS.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_inputs_and_outputs(name: str) -> None:
    spec, schema = SPECS[name], SCHEMAS[name]
    for kind, parameters in ("input", schema.inputs), ("output", schema.outputs):
        found = [
            (f.name, f.optional is not None or f.default is not None) for f in fields(spec, kind)
        ]
        assert found == [(p.name, optional(p)) for p in parameters]


@pytest.mark.parametrize("name", KNOWN)
def test_attributes(name: str) -> None:
    """Their types, which of them are required, and the defaults; those of arrays are computed."""
    schema = SCHEMAS[name]
    found = {field.name: field for field in fields(SPECS[name], "attribute")}
    assert found.keys() == schema.attributes.keys()
    for attribute in schema.attributes.values():
        field = found[attribute.name]
        assert field.type in KINDS[attribute.type.name]
        required = attribute.required or (name, attribute.name) in REQUIRED
        assert (field.default is None) == required
        if attribute.type.name != "INTS" and not required:
            default = onnx.helper.get_attribute_value(attribute.default_value)
            assert field.default == (default.decode() if isinstance(default, bytes) else default)


@pytest.mark.parametrize("name", KNOWN)
def test_data_types(name: str) -> None:
    spec, schema = SPECS[name], SCHEMAS[name]
    (table,) = spec.spec.support
    tensors = table.tensors
    types = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
    for parameter in (*schema.inputs, *schema.outputs):
        if parameter.name in tensors:
            names = [
                t[len("tensor(") : -1] for t in types.get(parameter.type_str, [parameter.type_str])
            ]
            wanted = {OTHER_NAMES.get(t, t.upper()) for t in names}
            assert set(tensors[parameter.name].dtypes) == wanted


@pytest.mark.parametrize("name", KNOWN)
def test_errata_quote_the_page(name: str) -> None:
    """Word for word, where the installed onnx is that of the page."""
    spec, schema = SPECS[name].spec, SCHEMAS[name]
    parts = (*schema.attributes.values(), *schema.inputs, *schema.outputs)
    text = joined(" ".join([schema.doc, *(part.description for part in parts)]))
    missing = [e.id for e in spec.errata if joined(e.printed) not in text]
    assert missing == [] or spec.page.revision != REVISION


def inferred(name: str, size: int, attributes: dict[str, Any]) -> int:
    """How many windows onnx's shape inference has."""
    operator, version = name.split("-")
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", int(version))]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets)
    shaped = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return int(shaped.graph.output[0].type.tensor_type.shape.dim[2].dim_value)


@pytest.mark.parametrize("name", [n for n in KNOWN if n.startswith(("MaxPool-", "AveragePool-"))])
def test_sizes_beside_shape_inference(name: str) -> None:
    """Before version 22 it keeps the window that ceil_mode drops; auto_pad with ceil_mode is left out."""
    schema, pool = SCHEMAS[name], getattr(ox, SPECS[name].family)
    pads = [(0, 0), (1, 0), (0, 3), (2, 1)]
    asked: list[tuple[dict[str, Any], int]] = [
        ({"auto_pad": a}, 0) for a in ("VALID", "SAME_LOWER")
    ]
    asked += [({"pads": [*p]}, sum(p)) for p in pads]
    if "ceil_mode" in schema.attributes:
        asked += [({"pads": [*p], "ceil_mode": 1}, sum(p)) for p in pads]
    wrong, seen = [], 0
    for size, kernel, stride in itertools.product(range(1, 7), range(1, 4), range(1, 4)):
        for other, padding in asked:
            attributes = {"kernel_shape": [kernel], "strides": [stride], **other}
            x = np.zeros((1, 1, size), np.float32)
            try:
                wanted = pool(x, **attributes, opset=schema.since_version).shape[2]
            except ValidationError:
                continue
            if "ceil_mode" in other and schema.since_version < 22:
                wanted = -((kernel - size - padding) // stride) + 1
            seen += 1
            if inferred(name, size, attributes) != wanted:
                wrong.append((size, attributes, wanted))
    assert seen > 200
    assert wrong == [] or SPECS[name].spec.page.revision != REVISION
