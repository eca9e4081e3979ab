"""The ONNX backend: onnx's own conformance cases, graphs of several nodes, and every kind of refusal."""

from __future__ import annotations

import io
import os
import pickle
import re
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper
from processes import python
from trees import Tree
from untyped import untyped

from specops import SpecopsError, ValidationError
from specops import onnx as ox
from specops.errors import NoMemoryError, Unsupported
from specops.onnx import backend, graph
from specops.onnx.registry import OPERATORS
from specops.vocabulary import DATA_TYPES, NEWEST_OPSET

OWN = {*OPERATORS, "Constant", "Identity"}


@pytest.fixture(autouse=True)
def no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be computed by onnx itself."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("onnx.reference was called")

    monkeypatch.setattr(onnx.reference, "ReferenceEvaluator", refuse)


# --- onnx's own cases ---

# Cases that consist of our operators but are not run, each with what its refusal says: tensors alone are supported,
# and up to operator set 10 LogSoftmax has no negative axis.
EXCLUDED = {
    "test_log_softmax_lastdim": "LogSoftmax-1.*\n.*axis = -1.*axis is not negative",
    "test_identity_opt": "is of kind optional, not a tensor",
    "test_identity_sequence": "is of kind sequence, not a tensor",
}

# Cases that are themselves wrong, each with the reason.
WRONG = {
    # The indices count the sizes that follow from the attributes, not those of the given output_shape, as onnxruntime
    # and PyTorch count them, and MaxPool gives them: onnx#2398, onnxruntime#2193.
    "test_maxunpool_export_with_output_shape",
}

# How many cases of each operator there are at least: a runner that finds nothing would pass.
FLOORS = {
    "ArgMax": 16,
    "ArgMin": 16,
    "AveragePool": 25,
    "Constant": 1,
    "GlobalAveragePool": 2,
    "GlobalLpPool": 0,
    "GlobalMaxPool": 2,
    "Hardmax": 7,
    "Identity": 3,
    "LogSoftmax": 9,
    "LpPool": 8,
    "MaxPool": 28,
    "MaxUnpool": 1,
    "ReduceL1": 9,
    "ReduceL2": 9,
    "ReduceLogSum": 5,
    "ReduceLogSumExp": 9,
    "ReduceMax": 11,
    "ReduceMean": 10,
    "ReduceMin": 10,
    "ReduceProd": 9,
    "ReduceSum": 14,
    "ReduceSumSquare": 9,
    "Softmax": 10,
}
if tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 23):
    FLOORS["ReduceMax"] = 10  # the eleventh came with 1.23


class Conformance:
    """onnx's cases: the models by name, and the runner's test of each."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from onnx.backend.test import BackendTest  # noqa: PLC0415
            from onnx.backend.test.loader import load_model_tests  # noqa: PLC0415

            self.runner = BackendTest(backend, __name__)
            kinds = ("node", "simple", "pytorch-converted", "pytorch-operator")
            loaded = [case for kind in kinds for case in load_model_tests(kind=kind)]
        self.models = {
            case.name: case.model or onnx.load(Path(case.model_dir) / "model.onnx")
            for case in loaded
        }
        self.own = {
            name: found for name, m in self.models.items() if (found := operators(m)) <= OWN
        }
        for name in self.own:
            self.runner.include(f"^{name}_cpu$")
        for name in {*EXCLUDED, *WRONG}:
            self.runner.exclude(f"^{name}_cpu$")
        self.tests = {
            test._testMethodName.removesuffix("_cpu"): test
            for test in self.runner.test_suite
            if isinstance(test, unittest.TestCase)
            and not getattr(getattr(test, test._testMethodName), "__unittest_skip__", False)
        }


def operators(model: onnx.ModelProto) -> set[str]:
    """The operators of a model, each with its domain where that is not ONNX's own."""
    return {
        f"{n.domain}:{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type
        for n in model.graph.node
    }


@pytest.fixture(scope="module")
def conformance() -> Conformance:
    return Conformance()


@pytest.mark.parametrize("operator", sorted(OWN))
def test_conformance(operator: str, conformance: Conformance) -> None:
    """Every case of onnx whose every node is ours, with the runner's own comparison."""
    mine = {n: t for n, t in conformance.tests.items() if operator in conformance.own[n]}
    assert len(mine) >= FLOORS[operator]
    result = unittest.TestResult()
    for test in mine.values():
        test.run(result)
    failed = [f"{test}\n{text}" for test, text in result.failures + result.errors]
    assert not failed, "\n".join(failed)
    assert not result.skipped
    assert result.testsRun == len(mine)


def test_all_own_cases_run_but_those_that_are_excluded(conformance: Conformance) -> None:
    excluded = {*EXCLUDED, *WRONG}
    assert {*conformance.tests} | excluded == {*conformance.own}
    assert not {*conformance.tests} & excluded
    assert len(conformance.tests) >= sum(FLOORS.values())


@pytest.mark.parametrize(("name", "reason"), EXCLUDED.items())
def test_excluded_cases_are_refused(name: str, reason: str, conformance: Conformance) -> None:
    with pytest.raises(SpecopsError, match=reason):
        backend.prepare(conformance.models[name])
    assert not backend.is_compatible(conformance.models[name])


def test_every_other_case_is_refused(conformance: Conformance) -> None:
    """Each with all that is missing; none crashes, and none is taken for one of ours."""
    others = {n: m for n, m in conformance.models.items() if n not in conformance.own}
    assert len(others) > 1000
    for name, model in others.items():
        with pytest.raises(Unsupported) as caught:
            backend.prepare(model)
        assert not backend.is_compatible(model)
        lacking = [n for n in operators(model) if n not in OWN]
        for operator in lacking:
            assert f'"{operator.rpartition(":")[2]}"' in "".join(caught.value.reasons), name


def test_light_models_are_refused() -> None:
    """The image classifiers that come with onnx: Conv and others, each named with its place."""
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    models = sorted(folder.glob("*.onnx"))
    assert len(models) >= 5
    for path in models:
        with pytest.raises(Unsupported) as caught:
            backend.prepare(path)
        place = r'node \d+.*: operator "Conv" version \d+ of domain "ai.onnx" at operator set \d+'
        assert any(re.match(place, reason) for reason in caught.value.reasons)
        assert len(str(caught.value).splitlines()) <= 23


# --- models of our own ---

FLOAT = TensorProto.FLOAT
X = np.array([[1, 7, 3], [9, 2, 9]], np.float32)


def value(name: str, dtype: int = FLOAT, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str | onnx.ValueInfoProto],
    opset: int = 17,
    initializers: Sequence[onnx.TensorProto] = (),
    **options: Any,
) -> onnx.ModelProto:
    """A model; of an output that is given by its name alone, the type is not said."""
    infos = [onnx.ValueInfoProto(name=o) if isinstance(o, str) else o for o in outputs]
    graph = helper.make_graph(nodes, "g", inputs, infos, initializer=initializers)
    return helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)], **options
    )


def one(operator: str, shape: Any = (2, 3), opset: int = 17, **attributes: Any) -> onnx.ModelProto:
    """A model of one node from x to y."""
    node = helper.make_node(operator, ["x"], ["y"], name="only", **attributes)
    return model_of([node], [value("x", FLOAT, shape)], ["y"], opset)


def exported() -> onnx.ModelProto:
    """As PyTorch's exporter writes them: names with slashes, Identity and Constant nodes, dynamic axes, value_info."""
    nodes = [
        helper.make_node("Constant", [], ["/c"], "/Constant", value_int=1, doc_string="t.py(3)"),
        helper.make_node("Identity", ["input.1"], ["/id"], "/Identity"),
        helper.make_node(
            "MaxPool",
            ["/id"],
            ["/pool", "/where"],
            "/pool/MaxPool",
            kernel_shape=[2, 2],
            strides=[2, 2],
            pads=[0, 0, 0, 0],
            dilations=[1, 1],
            ceil_mode=0,
            doc_string="torch/nn/functional.py(782): max_pool2d",
        ),
        helper.make_node("Softmax", ["/pool"], ["probs"], "/Softmax", axis=1),
        helper.make_node("ArgMax", ["/pool"], ["best"], "/ArgMax", axis=1, keepdims=0),
        helper.make_node("LogSoftmax", ["/pool"], ["/unused"], "/LogSoftmax", axis=1),
    ]
    symbols = ["batch", 3, "h", "w"]
    model = model_of(
        nodes,
        [value("input.1", FLOAT, symbols)],
        [
            value("probs", FLOAT, ["batch", 3, "Softmaxprobs_dim_2", "Softmaxprobs_dim_3"]),
            value("best", TensorProto.INT64, ["batch", None, None]),
        ],
        producer_name="pytorch",
        producer_version="2.3.0",
    )
    model.graph.value_info.append(value("/pool", FLOAT, ["batch", 3, None, None]))
    model.graph.doc_string = "exported"
    return model


def test_exported_model() -> None:
    prepared = backend.prepare(exported())
    assert prepared.input_names == ("input.1",)
    assert prepared.output_names == ("probs", "best")
    rng = np.random.default_rng(1)
    for batch, size in ((1, 4), (2, 6), (1, 4), (0, 4)):
        x = rng.normal(size=(batch, 3, size, size)).astype(np.float32)
        for inputs in ([x], (x,), {"input.1": x}, x):
            got = prepared.run(inputs)
            pooled = ox.max_pool(x, [2, 2], strides=[2, 2])
            np.testing.assert_array_equal(got[0], ox.softmax(pooled, axis=1))
            np.testing.assert_array_equal(got["best"], ox.argmax(pooled, axis=1, keepdims=0))


def test_what_nothing_reads_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Indices nor the last node are part of the outputs."""
    calls = []
    compute = ox.CompiledOperator.run

    def counted(self: Any, *arguments: Any) -> Any:
        calls.append(repr(self))
        return compute(self, *arguments)

    monkeypatch.setattr(ox.CompiledOperator, "run", counted)
    backend.run_model(exported(), [np.zeros((1, 3, 2, 2), np.float32)])
    assert [re.sub(r"-.*", "", c) for c in calls] == ["<MaxPool", "<Softmax", "<ArgMax"]
    assert "Indices" not in calls[0]


UNREAD: list[tuple[str, list[onnx.NodeProto], list[onnx.TensorProto], str]] = [
    ("axis", [helper.make_node("Softmax", ["x"], ["z"], axis=9)], [], "axis_allowed"),
    (
        "attribute",
        [helper.make_node("MaxPool", ["x"], ["z"], kernel_shape=[0, 3])],
        [],
        "kernel_shape_positive",
    ),
    (
        "of an unread output",
        [
            helper.make_node("MaxPool", ["x"], ["z", "i"], kernel_shape=[1, 1]),
            helper.make_node("Softmax", ["z"], ["y2"]),
            helper.make_node("ReduceMax", ["i"], ["w"], axes=[4]),
        ],
        [],
        "axes_allowed",
    ),
    (
        "behind others",
        [
            helper.make_node("Identity", ["x"], ["a"]),
            helper.make_node("ArgMax", ["a"], ["b"], axis=1, keepdims=0),
            helper.make_node("ReduceMax", ["b"], ["z"], axes=[3]),
        ],
        [],
        "axes_allowed",
    ),
    (
        "of a constant",
        [helper.make_node("Softmax", ["c"], ["z"], axis=2)],
        [numpy_helper.from_array(X, "c")],
        "axis_allowed",
    ),
]


@pytest.mark.parametrize(
    ("nodes", "initializers", "id"), [u[1:] for u in UNREAD], ids=[u[0] for u in UNREAD]
)
def test_what_nothing_reads_is_checked(
    nodes: list[onnx.NodeProto], initializers: list[onnx.TensorProto], id: str
) -> None:
    """As soon as shapes are known: by the model, or by a run."""
    every = [helper.make_node("Softmax", ["x"], ["y"]), *nodes]
    x = np.zeros((1, 3, 2, 2), np.float32)
    model = model_of(every, [value("x", FLOAT, x.shape)], ["y"], 17, initializers)
    with pytest.raises(ValidationError) as caught:
        backend.prepare(model)
    assert [v.id for v in caught.value.violations] == [id]
    model = model_of(every, [value("x", FLOAT, ["n", "c", "h", "w"])], ["y"], 17, initializers)
    with pytest.raises(ValidationError) as caught:
        backend.prepare(model).run([x])
    assert [v.id for v in caught.value.violations] == [id]


def test_nodes_are_checked_as_far_as_shapes_are_known() -> None:
    """One input has no shape: what the other decides is checked all the same, and the rest by a run."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["y"], axis=1),
        helper.make_node("Softmax", ["u"], ["z"], axis=1),
    ]
    for sizes, known in (([2], True), ([2, 2], False)):
        declared = [value("x", FLOAT, ["n", "m"]), value("u", FLOAT, sizes)]
        for outputs in (["y"], ["y", "z"]):
            model = model_of(nodes, declared, outputs)
            if known:
                with pytest.raises(ValidationError, match=r"node 1, Softmax-13: 1 violation"):
                    backend.prepare(model)
            else:
                prepared = backend.prepare(model)
                assert prepared.run([X, X[:, :2]]).y.shape == (2, 3)


def test_numbers_of_what_nothing_reads() -> None:
    """Axes of a node that is not run are checked once a run gives them."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["y"]),
        helper.make_node("ReduceMax", ["x", "axes"], ["z"]),
    ]
    declared = [value("x", FLOAT, [2, 3]), value("axes", TensorProto.INT64, [1])]
    prepared = backend.prepare(model_of(nodes, declared, ["y"], 18))
    assert prepared.run([X, np.array([1])]).y.shape == (2, 3)
    with pytest.raises(ValidationError, match="ReduceMax-18"):
        prepared.run([X, np.array([2])])
    wrong = model_of(nodes, declared, [value("y", FLOAT, [3, 2])], 18)
    with pytest.raises(SpecopsError, match="is said to be"):
        backend.prepare(wrong)


def test_only_the_indices() -> None:
    nodes = [helper.make_node("MaxPool", ["x"], ["", "i"], kernel_shape=[2])]
    model = model_of(nodes, [value("x", FLOAT, [1, 1, 4])], ["i"])
    (indices,) = backend.run_model(model, [np.array([[[1, 5, 5, 0]]], np.float32)])
    assert indices.tolist() == [[[1, 1, 2]]]


def test_nodes_in_any_order() -> None:
    nodes = [
        helper.make_node("ArgMax", ["b"], ["y"], axis=1),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("Hardmax", ["x"], ["a"]),
    ]
    (y,) = backend.run_model(model_of(nodes, [value("x", FLOAT, [2, 3])], ["y"]), [X])
    assert y.tolist() == [[1], [0]]
    nodes = [
        helper.make_node("MaxUnpool", ["w", "i"], ["y"], kernel_shape=[2]),
        helper.make_node("Identity", ["v"], ["w"]),
        helper.make_node("MaxPool", ["x"], ["v", "i"], kernel_shape=[2], strides=[2]),
    ]
    prepared = backend.prepare(model_of(nodes, [value("x", FLOAT, [1, 1, 4])], ["y"]))
    assert prepared.run([np.array([[[1, 3, 4, 2]]], np.float32)])["y"].tolist() == [[[0, 3, 4]]]
    assert len(prepared._graph._ordered_steps) == 3, "one that reads from two others comes once"


def test_versions_follow_the_operator_set() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for opset in (1, 10, 11, 12, 13, NEWEST_OPSET):
        (y,) = backend.run_model(one("Hardmax", (2, 2, 2), opset, axis=1), [x])
        np.testing.assert_array_equal(y, ox.hardmax(x, axis=1, opset=opset))
    assert y.sum() == 4


def test_attributes_without_a_type() -> None:
    """Version 1 of the IR has none: the field that is set tells the kind; all later ones must have it."""
    pool = one("MaxPool", (1, 1, 4), 1, kernel_shape=[2], auto_pad="VALID")
    argmax = one("ArgMax", (2, 3), 1, axis=1, keepdims=0)
    constant = model_of([helper.make_node("Constant", [], ["y"])], [], ["y"], 1)
    constant.graph.node[0].attribute.add(name="value").t.CopyFrom(numpy_helper.from_array(X))
    line = np.array([[[1, 5, 2, 0]]], np.float32)
    for model, inputs, wanted in (
        (pool, [line], [[[5, 5, 2]]]),
        (argmax, [X], [1, 0]),
        (constant, [], X.tolist()),
    ):
        del model.opset_import[:]
        model.ir_version = 1
        for attribute in model.graph.node[0].attribute:
            attribute.ClearField("type")
        assert backend.run_model(model, inputs).y.tolist() == wanted
        model.graph.node[0].attribute[0].f = 1.5
        with pytest.raises(SpecopsError, match="has no type"):
            backend.prepare(model)
    with pytest.raises(ValidationError, match=r"kernel_shape: found a value of kind FLOAT"):
        wrong = one("MaxPool", (1, 1, 4), 1, kernel_shape=1.5)
        wrong.graph.node[0].attribute[0].ClearField("type")
        wrong.ir_version = 1
        backend.prepare(wrong)


def test_the_long_name_of_the_domain() -> None:
    model = one("Softmax")
    model.graph.node[0].domain = model.opset_import[0].domain = "ai.onnx"
    assert backend.is_compatible(model)
    model.opset_import.append(helper.make_opsetid("", 17))
    assert backend.is_compatible(model)
    model.opset_import.append(helper.make_opsetid("", 18))
    with pytest.raises(SpecopsError, match="two operator sets"):
        backend.prepare(model)


def test_an_empty_auto_pad_is_none_and_only_that() -> None:
    model = one("MaxPool", (1, 1, 3), kernel_shape=[2], auto_pad="")
    (y,) = backend.run_model(model, [np.array([[[1, 2, 3]]], np.float32)])
    assert y.tolist() == [[[2, 3]]]
    with pytest.raises(ValidationError, match=r"axis: found a value of kind STRING"):
        backend.prepare(one("Softmax", axis=""))


# --- initializers and constants ---


def test_initializers_are_constants_or_defaults() -> None:
    """One that is an input too may be given by name, or with all inputs in order."""
    node = helper.make_node("ArgMax", ["w"], ["y"], axis=1, keepdims=0)
    other = helper.make_node("ArgMin", ["x"], ["z"], axis=1, keepdims=0)
    weights = numpy_helper.from_array(X, "w")
    declared = [value("w", FLOAT, [2, 3]), value("x", FLOAT, [2, 3])]
    prepared = backend.prepare(model_of([node, other], declared, ["y", "z"], 17, [weights]))
    assert (prepared.input_names, prepared.optional_input_names) == (("x",), ("w",))
    assert [y.tolist() for y in prepared.run([X])] == [[1, 0], [0, 1]]
    assert [y.tolist() for y in prepared.run({"x": X, "w": -X})] == [[0, 1], [0, 1]]
    assert [y.tolist() for y in prepared.run([-X, X])] == [[0, 1], [0, 1]]
    constant = backend.prepare(model_of([node], [], ["y"], 17, [weights]))
    assert constant.run([])[0].tolist() == constant.run({})[0].tolist() == [1, 0]


def tensor_type(dtype: np.dtype) -> int:
    """ONNX's number of a NumPy type; onnx's own function knows bfloat16 from onnx 1.19 on."""
    name = dtype.name.upper()
    name = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}.get(name, name)
    number: int = TensorProto.DataType.Value(name)
    return number


@pytest.mark.parametrize("name", DATA_TYPES)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_tensors_of_every_data_type(name: str, raw: bool) -> None:
    """Initializers, from their bytes or from lists of numbers, as onnx itself writes and reads them."""
    dtype = DATA_TYPES[name].numpy
    numbers = np.array([[0, 1, 2], [100, 3, 1]]) - (50 if DATA_TYPES[name].kind == "signed" else 0)
    array = numbers.astype(dtype)
    number = tensor_type(dtype)
    if raw:
        tensor = helper.make_tensor("w", number, [2, 3], array.tobytes(), raw=True)
    else:
        tensor = helper.make_tensor("w", number, [2, 3], array.ravel().tolist())
        assert not tensor.HasField("raw_data")
    nodes = [helper.make_node("Identity", ["w"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    model = model_of(nodes, [value("x", number, ["n"])], ["y", "z"], 17, [tensor])
    y, z = backend.run_model(model, [array[0]])
    assert (y.dtype, z.dtype) == (dtype, dtype)
    np.testing.assert_array_equal(y, array)
    np.testing.assert_array_equal(y, numpy_helper.to_array(tensor))
    np.testing.assert_array_equal(z, array[0])


CONSTANTS: list[tuple[dict[str, Any], np.ndarray]] = [
    ({"value": numpy_helper.from_array(X)}, X),
    ({"value": numpy_helper.from_array(np.array(3, np.int8))}, np.array(3, np.int8)),
    ({"value_float": 1.5}, np.array(1.5, np.float32)),
    ({"value_floats": [1.5, -2.0]}, np.array([1.5, -2], np.float32)),
    ({"value_int": -7}, np.array(-7, np.int64)),
    ({"value_ints": [1, 2, 3]}, np.array([1, 2, 3], np.int64)),
]


@pytest.mark.parametrize(
    ("attribute", "expected"), CONSTANTS, ids=[str([*c[0]]) for c in CONSTANTS]
)
def test_constants(attribute: dict[str, Any], expected: np.ndarray) -> None:
    model = model_of([helper.make_node("Constant", [], ["y"], **attribute)], [], ["y"])
    (y,) = backend.run_model(model, [])
    assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(y, expected)


def sparse(
    indices: Any, shape: Sequence[int] = (2, 3), name: str = "", dtype: Any = np.float32
) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.array([5, 6], dtype), name)
    return helper.make_sparse_tensor(
        values, numpy_helper.from_array(np.array(indices, np.int64)), list(shape)
    )


@pytest.mark.parametrize("indices", [[1, 3], [[0, 1], [1, 0]]], ids=["linear", "by axis"])
def test_sparse_constants_and_initializers(indices: Any) -> None:
    expected = [[0, 5, 0], [6, 0, 0]]
    model = model_of(
        [helper.make_node("Constant", [], ["y"], sparse_value=sparse(indices))], [], ["y"]
    )
    assert backend.run_model(model, [])[0].tolist() == expected
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], [], ["y"])
    model.graph.sparse_initializer.append(sparse(indices, name="w"))
    assert backend.run_model(model, [])[0].tolist() == expected


@pytest.mark.parametrize(
    ("indices", "shape"),
    [
        ([1, 6], (2, 3)),
        ([-1, 1], (2, 3)),
        ([1], (2, 3)),
        ([[0], [1]], (2, 3)),
        ([[0, 3], [1, 0]], (2, 3)),
        ([1, 2], (2**20, 2**20)),
        ([1, 2], (2**40, 2**40)),
        ([1, 2], (-1, 3)),
    ],
    ids=str,
)
def test_sparse_tensors_that_are_none(indices: Any, shape: Any) -> None:
    tensor = sparse(indices, shape)
    model = model_of([helper.make_node("Constant", [], ["y"], sparse_value=tensor)], [], ["y"])
    with pytest.raises(SpecopsError, match='node 0: attribute "sparse_value"'):
        backend.prepare(model)


# --- data types and arrays ---


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64], ids=str)
def test_small_and_large_floats(dtype: Any) -> None:
    number = tensor_type(np.dtype(dtype))
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2]),
        helper.make_node("Softmax", ["p"], ["s"]),
        helper.make_node("Hardmax", ["s"], ["y"]),
    ]
    model = model_of(nodes, [value("x", number, [1, "c", None])], [value("y", number)], 22)
    x = np.array([[[1, 2, 3, 3], [4, 3, 1, 0]]]).astype(dtype)
    (y,) = backend.run_model(model, [x])
    assert y.dtype == dtype
    assert y.tolist() == [[[0, 1, 0], [1, 0, 0]]]


def test_arrays_with_strides_and_results_of_their_own() -> None:
    """Inputs are neither copied nor written; outputs share no memory with them, nor with one another."""
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Hardmax", ["x"], ["h"])]
    model = model_of(nodes, [value("x", FLOAT, [3, 2])], ["y", "h", "x", "y"])
    x = X.T
    x.flags.writeable = False
    outputs = backend.run_model(model, [x])
    np.testing.assert_array_equal(outputs[0], x)
    for i, a in enumerate(outputs):
        assert a.flags.writeable
        assert not np.may_share_memory(a, x)
        assert not any(np.may_share_memory(a, b) for b in outputs[:i])
    weights = model_of([], [], ["w"], 17, [numpy_helper.from_array(X, "w")])
    prepared = backend.prepare(weights)
    prepared.run([])[0][:] = 0
    np.testing.assert_array_equal(prepared.run([])[0], X)


def test_compiled_for_a_bounded_number_of_shapes() -> None:
    prepared = backend.prepare(one("ArgMax", ["n", "m"], axis=1, keepdims=0))
    for n in range(1, 100):
        (y,) = prepared.run([np.eye(n, 2, dtype=np.float32)])
        assert len(y) == n
    assert prepared._graph._plan.cache_info().currsize <= 32


# --- refusals before anything runs ---


def with_input(dtype: int) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["x"], ["y"])
    return model_of([node], [value("x", dtype, [1])], ["y"])


def with_sequence() -> onnx.ModelProto:
    info = helper.make_tensor_sequence_value_info("x", FLOAT, None)
    return model_of([helper.make_node("Identity", ["x"], ["y"])], [info], ["y"])


def with_domain() -> onnx.ModelProto:
    model = one("Softmax")
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    return model


def with_function() -> onnx.ModelProto:
    """A model's own function comes before an operator of the same name."""
    model = one("Softmax")
    body = [helper.make_node("Identity", ["a"], ["b"])]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("", "Softmax", ["a"], ["b"], body, opsets))
    return model


def with_overload() -> onnx.ModelProto:
    model = one("Softmax")
    model.graph.node[0].overload = "other"
    return model


CONV = helper.make_node("Conv", ["x", "x"], ["c"], name="conv1")
LOOP_BODY = helper.make_graph([], "body", [], [])
REFUSED: list[tuple[str, Any, str]] = [
    (
        "operator",
        lambda: model_of([CONV], [value("x", FLOAT, [2, 3])], ["c"]),
        'node 0 ("conv1"): operator "Conv" version 11 of domain "ai.onnx" at operator set 17 is not supported',
    ),
    (
        "in a dead branch",
        lambda: model_of(
            [helper.make_node("Softmax", ["x"], ["y"]), CONV], [value("x", FLOAT, [2, 3])], ["y"]
        ),
        'node 1 ("conv1"): operator "Conv"',
    ),
    (
        "subgraph",
        lambda: model_of(
            [helper.make_node("If", ["x"], ["y"], then_branch=LOOP_BODY, else_branch=LOOP_BODY)],
            [value("x", TensorProto.BOOL, [])],
            ["y"],
        ),
        'node 0: operator "If" version 16 of domain "ai.onnx" at operator set 17 has a subgraph',
    ),
    (
        "subgraphs",
        lambda: one("Softmax", branches=[LOOP_BODY]),
        '"Softmax" version 13 of domain "ai.onnx" at operator set 17 has a subgraph',
    ),
    (
        "newer set",
        lambda: one("Softmax", opset=NEWEST_OPSET + 1),
        f"newest known is {NEWEST_OPSET}",
    ),
    ("strings", lambda: with_input(TensorProto.STRING), 'input "x" has data type STRING'),
    ("8 bits", lambda: with_input(TensorProto.FLOAT8E4M3FN), "has data type FLOAT8E4M3FN"),
    ("unknown type", lambda: with_input(99), "has data type number 99"),
    ("sequence", with_sequence, 'input "x" is of kind sequence, not a tensor'),
    (
        "string constant",
        lambda: model_of([helper.make_node("Constant", [], ["y"], value_string="a")], [], ["y"]),
        'node 0: attribute "value_string" is a tensor of strings',
    ),
    (
        "string tensor",
        lambda: model_of(
            [], [], ["w"], 17, [helper.make_tensor("w", TensorProto.STRING, [1], ["a"])]
        ),
        'initializer "w" has data type STRING',
    ),
    (
        "sparse tensor",
        lambda: constant(sparse_value=sparse([1, 3], dtype=np.complex64)),
        'node 0: attribute "sparse_value": values has data type COMPLEX64',
    ),
    (
        "older set",
        lambda: one("MaxUnpool", opset=8),
        'operator "MaxUnpool" of domain "ai.onnx" at operator set 8 is there from 9 on',
    ),
    (
        "domain",
        with_domain,
        'node 0 ("only"): operator "Softmax" of domain "com.example" at operator set 3',
    ),
    (
        "function",
        with_function,
        '"Softmax" version 13 of domain "ai.onnx" at operator set 17 is a function',
    ),
    ("overload", with_overload, "is a function of the model"),
]


@pytest.mark.parametrize(("make", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_unsupported(make: Any, message: str) -> None:
    model = make()
    with pytest.raises(Unsupported) as caught:
        backend.prepare(model)
    assert message in str(caught.value)
    assert any(message in reason for reason in caught.value.reasons)
    assert backend.is_compatible(model) is False


NUMBERS = """
<ir_version: 8, opset_import: ["": 18]>
g (float[n, m] x{input}) => (float y) {init} {{ {before} y = ReduceMax<keepdims = 0>(x, axes) }}
"""


def numbers_model(input: str = "", init: str = "", before: str = "") -> onnx.ModelProto:
    model = onnx.parser.parse_model(NUMBERS.format(input=input, init=init, before=before))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def test_numbers_of_an_input() -> None:
    """Axes that a run gives decide what it computes, and the shapes of what follows; also behind Identity."""
    behind = backend.prepare(numbers_model(", int64[k] a", before="axes = Identity(a)"))
    prepared = backend.prepare(numbers_model(", int64[k] axes"))
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    for axes, wanted in (([0], [7, 5, 3]), ([1], [5, 7]), ([-1], [5, 7]), ([1, 0], 7), ([], 7)):
        for model in (prepared, behind):
            (y,) = model.run([x, np.array(axes, np.int64)])
            assert y.tolist() == wanted
    for axes in ([2], [0, 0]):
        with pytest.raises(ValidationError, match="ReduceMax-18"):
            prepared.run([x, np.array(axes, np.int64)])
    for wrong in (np.zeros(65, np.int64), np.zeros((1, 1), np.int64), np.array([0], np.int32)):
        with pytest.raises(ValidationError):
            prepared.run([x, wrong])


def test_numbers_of_a_constant() -> None:
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    constant = "axes = Constant<value_ints = [1]>()"
    behind = "a = Constant<value_ints = [1]>() b = Identity(a) axes = Identity(b)"
    for init, before in (("<int64[1] axes = {1}>", ""), ("", constant), ("", behind)):
        model = numbers_model(init=init, before=before)
        assert backend.run_model(model, [x]).y.tolist() == [5, 7]
    for name, before in (("axes", ""), ("a", "b = Identity(a) axes = Identity(b)")):
        either = backend.prepare(
            numbers_model(f", int64[1] {name}", f"<int64[1] {name} = {{1}}>", before)
        )
        assert either.run([x]).y.tolist() == [5, 7]
        assert either.run({"x": x, name: np.array([0])}).y.tolist() == [7, 5, 3]


def test_numbers_that_no_run_can_use() -> None:
    for computed in (
        "axes = ArgMax<keepdims = 0>(x)",
        "a = ArgMax<keepdims = 0>(x) axes = Identity(a)",
    ):
        with pytest.raises(Unsupported, match="what it reads as axes is computed by the model"):
            backend.prepare(numbers_model(before=computed))
    with pytest.raises(SpecopsError, match="is part of a circle"):
        backend.prepare(numbers_model(before="a = Identity(axes) axes = Identity(a)"))
    for name, before in (("axes", ""), ("a", "axes = Identity(a)")):
        with pytest.raises(ValidationError, match=r"axes: found 2 dimensions; allowed: 1 dim"):
            backend.prepare(numbers_model(f", int64[1, 2] {name}", before=before))
    with pytest.raises(ValidationError, match=r"axes: found INT32; allowed: INT64"):
        backend.prepare(numbers_model(", int32[k] axes"))


def test_versions_are_looked_up_for_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a fifth of what a graph takes."""
    monkeypatch.delattr(graph, "newest_version")
    backend.prepare(one("Softmax", axis=1))


def test_all_that_is_missing_at_once() -> None:
    nodes = [CONV, helper.make_node("Relu", ["c"], ["y"])]
    model = model_of(nodes, [value("x", TensorProto.STRING, [1])], ["y"], NEWEST_OPSET + 1)
    with pytest.raises(Unsupported) as caught:
        backend.prepare(model)
    assert [r.split(" ")[0] for r in caught.value.reasons] == ["input", "it", "node", "node"]
    assert str(caught.value).endswith("Constant, Identity.")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.reasons) == (str(caught.value), caught.value.reasons)


def test_a_prepared_model_is_pickled() -> None:
    """Also after a run, whose plan is made again."""
    prepared = backend.prepare(one("Softmax"))
    x = np.ones((2, 3), np.float32)
    expected = prepared.run([x])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(prepared)).run([x]), expected)


def test_results_are_pickled() -> None:
    """As worker processes send them; by name, too."""
    results = backend.prepare(one("Softmax")).run([np.ones((2, 3), np.float32)])
    copy = pickle.loads(pickle.dumps(results))
    assert type(copy) is type(results) and copy._fields == results._fields
    np.testing.assert_array_equal(copy[results._fields[0]], results[0])


def changed(**fields: Any) -> onnx.ModelProto:
    model = one("Softmax")
    for name, content in fields.items():
        model.ClearField(name)
        if content is not None:
            setattr(model, name, content)
    return model


def tensor_with(**fields: Any) -> onnx.ModelProto:
    tensor = numpy_helper.from_array(X, "w")
    for name, content in fields.items():
        tensor.ClearField(name)
        if isinstance(content, list):
            getattr(tensor, name).extend(content)
        elif content is not None:
            setattr(tensor, name, content)
    return model_of([], [], ["w"], 17, [tensor])


def node_with(*edits: Any) -> onnx.ModelProto:
    model = one("Softmax", axis=1)
    for edit in edits:
        edit(model.graph.node[0])
    return model


def circle() -> onnx.ModelProto:
    nodes = [helper.make_node("Softmax", ["b"], ["a"]), helper.make_node("Softmax", ["a"], ["b"])]
    return model_of(nodes, [], ["a"])


def constant(opset: int = 17, **attributes: Any) -> onnx.ModelProto:
    return model_of([helper.make_node("Constant", [], ["y"], **attributes)], [], ["y"], opset)


def typed(number: int, field: str, element: int) -> Callable[[], onnx.ModelProto]:
    """A model with an initializer whose second element may not fit its data type."""
    content = {"dims": [2], "data_type": number, "raw_data": None, field: [0, element]}
    return lambda: tensor_with(**content)


def narrow_indices() -> onnx.ModelProto:
    tensor = sparse([1, 3])
    tensor.indices.CopyFrom(numpy_helper.from_array(np.array([1, 3], np.int32)))
    return constant(sparse_value=tensor)


def segment() -> onnx.ModelProto:
    model = tensor_with()
    model.graph.initializer[0].segment.begin = 0
    return model


INVALID: list[tuple[str, Any, str]] = [
    ("no version", lambda: changed(ir_version=None), "it has no IR version"),
    (
        "newer IR",
        lambda: changed(ir_version=onnx.IR_VERSION + 1),
        f"known are 1 to {onnx.IR_VERSION}",
    ),
    ("no graph", lambda: changed(graph=None), "it has no graph"),
    ("no set", lambda: changed(opset_import=None), "imports no operator set of domain ai.onnx"),
    ("set 0", lambda: one("Softmax", opset=0), "imports operator set 0"),
    ("no outputs", lambda: model_of([], [value("x")], []), "it has no outputs"),
    ("output", lambda: model_of([], [value("x")], ["y"]), 'nothing gives its output "y"'),
    (
        "no type",
        lambda: model_of([], [onnx.ValueInfoProto(name="x")], ["x"]),
        'input "x" has no type',
    ),
    ("type 0", lambda: with_input(0), 'input "x" has no data type'),
    ("name", lambda: model_of([], [value("")], ["x"]), "an input has no name"),
    ("inputs", lambda: model_of([], [value("x"), value("x")], ["x"]), "two inputs have one name"),
    (
        "initializers",
        lambda: model_of([], [], ["w"], 17, [numpy_helper.from_array(X, "w")] * 2),
        'two initializers "w"',
    ),
    (
        "initializer",
        lambda: model_of([], [], ["w"], 17, [numpy_helper.from_array(X)]),
        "has no name",
    ),
    (
        "source",
        lambda: node_with(lambda n: n.input.__setitem__(0, "z")),
        'reads "z", which nothing gives',
    ),
    (
        "twice",
        lambda: node_with(lambda n: n.output.__setitem__(0, "x")),
        'gives "x", which is there already',
    ),
    (
        "twice by nodes",
        lambda: model_of([helper.make_node("Softmax", ["x"], ["y"])] * 2, [value("x")], ["y"]),
        'node 1 gives "y", which is there already',
    ),
    ("circle", circle, "is part of a circle"),
    (
        "attributes",
        lambda: node_with(lambda n: n.attribute.append(n.attribute[0])),
        'two attributes "axis"',
    ),
    ("untyped", lambda: node_with(lambda n: n.attribute[0].ClearField("type")), "has no type"),
    (
        "reference",
        lambda: node_with(lambda n: setattr(n.attribute[0], "ref_attr_name", "a")),
        "refers to an attribute of a function",
    ),
    (
        "identity",
        lambda: model_of([helper.make_node("Identity", ["x", "x"], ["y"])], [value("x")], ["y"]),
        "Identity has 1 inputs",
    ),
    (
        "identity's",
        lambda: model_of([helper.make_node("Identity", ["x"], ["y"], axis=1)], [value("x")], ["y"]),
        'Identity has no attribute "axis"',
    ),
    ("constants", lambda: constant(value_int=1, value_float=1.0), "exactly one attribute"),
    ("constant", constant, "exactly one attribute"),
    ("constant's", lambda: constant(value_bool=1), 'Constant has no attribute "value_bool"'),
    ("kind", lambda: constant(value_int=1.0), "value_int is of kind FLOAT, not INT"),
    ("version", lambda: constant(11, value_int=1), "it has it from version 12 on"),
    ("short", lambda: tensor_with(raw_data=b"abc"), "has 3 bytes; FLOAT32 [2, 3] has 24"),
    ("dims", lambda: tensor_with(dims=[2, -3]), "impossible sizes [2, -3]"),
    ("huge", lambda: tensor_with(dims=[2**40, 2**40]), "impossible sizes"),
    ("empty and huge", lambda: tensor_with(dims=[0, 2**62]), "impossible sizes"),
    ("large", lambda: tensor_with(dims=[2**30, 2**30]), "has 24 bytes"),
    ("list", lambda: tensor_with(raw_data=None, float_data=[1.0]), "has 1 elements in float_data"),
    ("twice", lambda: tensor_with(float_data=[1.0]), "its elements in float_data and raw_data"),
    ("no data", lambda: tensor_with(raw_data=None), "has 0 elements in float_data"),
    ("sparse", narrow_indices, "is no list of values with one INT64 index each"),
    ("segment", segment, "is a segment of a tensor"),
    (
        "too large",
        typed(TensorProto.UINT8, "int32_data", 300),
        'initializer "w" has 300 in int32_data; elements of UINT8 are 0 to 255',
    ),
    (
        "too small",
        typed(TensorProto.INT16, "int32_data", -32769),
        "has -32769 in int32_data; elements of INT16 are -32768 to 32767",
    ),
    (
        "unsigned",
        typed(TensorProto.UINT32, "uint64_data", 2**32),
        "has 4294967296 in uint64_data; elements of UINT32 are 0 to 4294967295",
    ),
    (
        "no truth value",
        typed(TensorProto.BOOL, "int32_data", -1),
        "has -1 in int32_data; elements of BOOL are 0 to 1",
    ),
    (
        "bits",
        typed(TensorProto.FLOAT16, "int32_data", 0x13C00),
        "has 80896 in int32_data; bits of FLOAT16 are 0 to 65535",
    ),
    (
        "bits below 0",
        typed(TensorProto.BFLOAT16, "int32_data", -1),
        "has -1 in int32_data; bits of BFLOAT16 are 0 to 65535",
    ),
    (
        "output's type",
        lambda: model_of([], [value("x")], [value("x", TensorProto.INT8)]),
        'output "x" is said to be INT8, but is FLOAT32',
    ),
    (
        "output's size",
        lambda: model_of(
            [helper.make_node("Softmax", ["x"], ["y"])],
            [value("x", FLOAT, [2, 3])],
            [value("y", FLOAT, ["n", 4])],
        ),
        'output "y" is said to be [n, 4], but is [2, 3]',
    ),
    (
        "output's rank",
        lambda: model_of(
            [helper.make_node("Softmax", ["x"], ["y"])],
            [value("x", FLOAT, [2, 3])],
            [value("y", FLOAT, [6])],
        ),
        'output "y" is said to be [6], but is [2, 3]',
    ),
    (
        "default's type",
        lambda: model_of(
            [], [value("w", TensorProto.INT8)], ["w"], 17, [numpy_helper.from_array(X, "w")]
        ),
        'input "w" is INT8, its initializer FLOAT32',
    ),
    (
        "default's shape",
        lambda: model_of(
            [], [value("w", FLOAT, [None, 4])], ["w"], 17, [numpy_helper.from_array(X, "w")]
        ),
        'input "w" is [?, 4], its initializer [2, 3]',
    ),
]


@pytest.mark.parametrize(("make", "message"), [r[1:] for r in INVALID], ids=[r[0] for r in INVALID])
def test_invalid_models(make: Any, message: str) -> None:
    model = make()
    with pytest.raises(SpecopsError) as caught:
        backend.prepare(model)
    assert not isinstance(caught.value, Unsupported | ValidationError)
    assert message in str(caught.value)
    assert backend.is_compatible(model) is False


def test_shapes_of_outputs_of_inputs_without_all_sizes() -> None:
    """Nothing follows for them before a run, which gives what it gives, as in onnxruntime."""
    softmax = helper.make_node("Softmax", ["x"], ["y"])
    model = model_of([softmax], [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, [1, 3])])
    assert backend.run_model(model, [X]).y.shape == (2, 3)


def test_an_output_whose_data_type_is_not_said() -> None:
    """Then nothing is said of it, as where it has no type at all."""
    node = helper.make_node("Softmax", ["x"], ["y"])
    model = model_of([node], [value("x", FLOAT, [2, 3])], [value("y", TensorProto.UNDEFINED, [7])])
    np.testing.assert_array_equal(backend.run_model(model, [X])[0], ox.softmax(X))


def typed_softmax() -> onnx.ModelProto:
    """The data type follows through the graph, though no shape is known."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], name="only"),
    ]
    model = model_of(nodes, [value("x")], ["y"])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32
    return model


BROKEN: list[tuple[str, Any, str, str]] = [
    ("type", lambda: one("Softmax", axis=1.0), "field_type", "Softmax-13"),
    ("attribute", lambda: one("Softmax", axes=[1]), "attribute", "one of axis"),
    (
        "later",
        lambda: one("ArgMax", opset=11, select_last_index=1),
        "version",
        "from version 12 on",
    ),
    ("required", lambda: one("MaxPool", (1, 1, 4)), "absent", "kernel_shape"),
    (
        "enum",
        lambda: one("MaxPool", (1, 1, 4), kernel_shape=[1], auto_pad="SAME"),
        "field_type",
        "SAME_UPPER",
    ),
    (
        "number",
        lambda: one("MaxPool", (1, 1, 4), kernel_shape=[1], auto_pad=1),
        "field_type",
        "kind INT",
    ),
    ("flag", lambda: one("ArgMax", keepdims=2), "field_type", "True, False, 1 or 0"),
    ("range", lambda: one("Softmax", axis=2), "axis_allowed", "axis"),
    (
        "rank",
        lambda: one("MaxPool", (4,), kernel_shape=[2]),
        "supported_dimension_count",
        "1 dimension",
    ),
    ("dtype", typed_softmax, "supported_data_type", "input: found INT64"),
    ("inputs", lambda: node_with(lambda n: n.input.append("x")), "input_count", "at most 1"),
    ("outputs", lambda: node_with(lambda n: n.output.append("z")), "output_count", "at most 1"),
    (
        "input",
        lambda: node_with(lambda n: n.input.__setitem__(0, "")),
        "absent",
        "input: found none",
    ),
    (
        "no outputs",
        lambda: model_of(
            [
                helper.make_node("Softmax", ["x"], [""], name="only"),
                helper.make_node("Identity", ["x"], ["y"]),
            ],
            [value("x", FLOAT, [2, 3])],
            ["y"],
        ),
        "absent",
        "an output with a name",
    ),
    (
        "an attribute before",
        lambda: one("ReduceMax", opset=18, axes=[1]),
        "version",
        "axes: found an attribute; allowed: an input, which it is from version 18 on",
    ),
    (
        "an input later",
        lambda: model_of(
            [helper.make_node("ReduceMax", ["x", "a"], ["y"], name="only")],
            [value("x", FLOAT, [2, 3]), value("a", TensorProto.INT64, [1])],
            ["y"],
            13,
        ),
        "version",
        "axes: found an input; allowed: an attribute, which it is before 18",
    ),
    (
        "indices",
        lambda: model_of(
            [helper.make_node("MaxPool", ["x"], ["y", "i"], name="only", kernel_shape=[1])],
            [value("x", FLOAT, [1, 1, 4])],
            ["y", "i"],
            7,
        ),
        "version",
        "from version 8 on",
    ),
]


@pytest.mark.parametrize(
    ("make", "id", "text"), [r[1:] for r in BROKEN], ids=[r[0] for r in BROKEN]
)
def test_nodes_that_break_rules(make: Any, id: str, text: str) -> None:
    """The same violations as of the operators' functions, with the node's place."""
    with pytest.raises(ValidationError) as caught:
        backend.prepare(make())
    assert id in {v.id for v in caught.value.violations}
    assert text in str(caught.value)
    assert re.search(r'node \d \("only"\), [A-Za-z]+-\d+: ', str(caught.value))


def test_violations_of_several_nodes() -> None:
    """Each names its own node; where all are of one, the head names it."""
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (bfloat16[n, c, 9] x) => (bfloat16[n, c, m] z) {
            y = MaxPool<kernel_shape = [3]>(x)
            z = AveragePool<kernel_shape = [3]>(y)
        }
    """
    with pytest.raises(ValidationError) as caught:
        backend.prepare(onnx.parser.parse_model(text))
    head, *lines = str(caught.value).split("\n  ")
    assert head == "2 violations"
    nodes = [
        "the model, node 0, MaxPool-12: X: found ",
        "the model, node 1, AveragePool-19: X: found ",
    ]
    assert [line[: len(node)] for line, node in zip(lines, nodes, strict=True)] == nodes


def test_surplus_inputs() -> None:
    """However many they are, that is one mistake; names that are empty are none."""
    with pytest.raises(ValidationError) as caught:
        backend.prepare(node_with(lambda n: n.input.extend(["x", "x"])))
    assert [v.id for v in caught.value.violations] == ["input_count"]
    backend.prepare(node_with(lambda n: n.input.append("")))


# --- refusals of a run ---


def wrong_runs() -> Iterator[tuple[str, Any, str]]:
    yield "none", [], "inputs: found 0"
    yield "two", [X, X, X], "inputs: found 3"
    yield "a set", {1, 2}, 'inputs: found a value of type set; allowed: 2: "a", "b"'
    yield "missing", {"a": X}, "b: found none"
    yield "unknown", {"a": X, "b": X, "c": X}, "c: found a value"
    yield "dtype", [X, X.astype(np.float64)], "b: found dtype float64; allowed: dtype float32"
    yield "byte order", [X, X.astype(">f4")], "byte_order"
    yield "objects", [X, X.astype(object)], "data_type"
    yield "rank", [X, X[0]], "b: found shape [3]; allowed: shape [n, 3]"
    yield "size", [X, X[:, :2]], "b: found shape [2, 2]; allowed: shape [n, 3]"
    yield "symbol", [X, X[:1]], "b: found n = 1; allowed: n = 2, as in a"
    yield "list", [X, X.tolist()], "numpy.asarray"
    yield "nothing", [X, None], "b: found a value of type NoneType"
    yield "mask", [X, np.ma.array(X)], "masked"


@pytest.mark.parametrize(
    ("inputs", "message"), [r[1:] for r in wrong_runs()], ids=[r[0] for r in wrong_runs()]
)
def test_inputs_that_are_refused(inputs: Any, message: str) -> None:
    nodes = [helper.make_node("ArgMax", [n], [f"y{n}"]) for n in "ab"]
    declared = [value("a", FLOAT, ["n", "m"]), value("b", FLOAT, ["n", 3])]
    prepared = backend.prepare(model_of(nodes, declared, ["ya", "yb"]))
    with pytest.raises(ValidationError) as caught:
        prepared.run(inputs)
    assert message in str(caught.value)
    assert prepared.run([X, X])[0].shape == (1, 3)


def test_shapes_of_a_run_that_break_rules() -> None:
    """Nothing has run by then; the plan of good shapes stays."""
    model = one("MaxPool", ["n", "c", "w"], kernel_shape=[3])
    prepared = backend.prepare(model)
    with pytest.raises(ValidationError, match=r'node 0 \("only"\), MaxPool-12') as caught:
        prepared.run([np.zeros((1, 1, 2), np.float32)])
    assert [v.id for v in caught.value.violations] == ["window_fits"]
    assert prepared.run([np.zeros((1, 1, 3), np.float32)])[0].shape == (1, 1, 1)


def test_sizes_of_minus_one_and_unknown_ranks() -> None:
    for shape in (None, [-1, -1], [None, 3], [2, 3]):
        info = value("x", FLOAT, shape)
        model = model_of([helper.make_node("Softmax", ["x"], ["y"])], [info], ["y"])
        np.testing.assert_array_equal(backend.run_model(model, [X])[0], ox.softmax(X))


# --- run_node ---


def test_run_node() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2])
    x = np.array([[[1, 3, 2]]], np.float32)
    for inputs in ([x], {"x": x}, x):
        y, i = backend.run_node(node, inputs)
        assert (y.tolist(), i.tolist()) == ([[[3, 3]]], [[[1, 1]]])
    info = [(np.float32, (1, 1, 2)), (np.int64, (1, 1, 2))]
    backend.run_node(node, [x], "CPU", info, opset_version=22)
    for wrong in ([(np.float64, (1, 1, 2))], [(np.float32, (1, 1, 3))], [*info, info[0]]):
        with pytest.raises(ValidationError, match="outputs_info"):
            backend.run_node(node, [x], outputs_info=wrong)
    nonsenses: list[Any] = [3, [3], [None], [10**5000]]
    nonsenses += [[("float33", (1, 1, 2))], [(np.float32,)], [(np.float32, 2)]]
    for nonsense in nonsenses:
        with pytest.raises(ValidationError, match="a data type and a shape for each output"):
            backend.run_node(node, [x], outputs_info=untyped(nonsense))
    with pytest.raises(ValidationError, match="from version 8 on"):
        backend.run_node(node, [x], opset_version=7)
    with pytest.raises(ValidationError, match="found 2"):
        backend.run_node(node, [x, x])
    with pytest.raises(Unsupported, match="newest known"):
        backend.run_node(node, [x], opset_version=NEWEST_OPSET + 1)
    with pytest.raises(Unsupported, match='operator "Conv"'):
        backend.run_node(CONV, [x])
    with pytest.raises(SpecopsError, match=r"onnx\.NodeProto"):
        backend.run_node(one("Softmax"), [x])
    with pytest.raises(SpecopsError, match="data type complex64"):
        backend.run_node(node, [x.astype(np.complex64)])
    only = helper.make_node("MaxPool", ["x"], ["", "i"], kernel_shape=[2])
    (indices,) = backend.run_node(only, [x])
    assert indices.tolist() == [[[1, 1]]]
    x16 = x.astype(ml_dtypes.bfloat16)
    assert backend.run_node(node, [x16])[0].dtype == x16.dtype
    scalar = backend.run_node(helper.make_node("Identity", ["x"], ["y"]), [np.float32(3)])
    assert scalar[0].shape == ()


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    for device in ("CUDA", "CPU:1", "cpu", ""):
        assert not backend.supports_device(device)
        assert not backend.is_compatible(one("Softmax"), device)
        with pytest.raises(Unsupported, match="the only device is CPU"):
            backend.prepare(one("Softmax"), device)
        with pytest.raises(Unsupported, match="the only device is CPU"):
            backend.run_node(helper.make_node("Softmax", ["x"], ["y"]), [X], device)


def test_the_interface_of_onnx() -> None:
    from onnx.backend.base import Backend, BackendRep  # noqa: PLC0415

    assert issubclass(backend.Backend, Backend)
    assert isinstance(backend.Backend.prepare(one("Softmax"), "CPU", option=1), BackendRep)
    for name in ("prepare", "run_model", "run_node", "supports_device", "is_compatible"):
        assert getattr(backend, name).__doc__


def test_options_of_the_package_that_the_backend_does_not_have() -> None:
    """They would change the result, and were they ignored nothing would say so; those of other backends are."""
    node = helper.make_node("Hardmax", ["x"], ["y"])
    with pytest.raises(SpecopsError, match="opset_version is the operator set"):
        backend.run_node(node, [X], opset=11)
    with pytest.raises(SpecopsError, match="outputs are new arrays"):
        backend.prepare(one("Softmax")).run([X], out=np.empty_like(X))
    options: list[Any] = [{"opset": 11}, {"opset_version": 11}, {"out": 11}]
    for option in options:
        with pytest.raises(SpecopsError, match="does not take"):
            backend.run_model(one("Softmax"), [X], **option)
    assert backend.run_model(one("Softmax"), [X], rtol=1e-3)[0].shape == X.shape


# --- files ---


def test_every_form_of_a_model(tmp_path: Path) -> None:
    model = one("Softmax")
    content = model.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with path.open("rb") as file:
        forms = [model, content, bytearray(content), memoryview(content), path, str(path), file]
        for form in [*forms, io.BytesIO(content)]:
            np.testing.assert_array_equal(backend.run_model(form, [X])[0], ox.softmax(X))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "it has no IR version"),
        (b"not a model", "cannot be read"),
        ("nowhere/model.onnx", "nowhere.model.onnx cannot be read: .*No such file"),
        (Path(__file__).parent, "cannot be read"),
        ("a\0b", "cannot be read"),
        (io.StringIO("text"), "binary"),
        (3, "found int"),
        (None, "found NoneType"),
        (helper.make_node("Softmax", ["x"], ["y"]), "found NodeProto"),
    ],
    ids=["empty", "text", "nowhere", "folder", "null", "text file", "number", "None", "node"],
)
def test_what_is_no_model(source: Any, message: str) -> None:
    with pytest.raises(SpecopsError, match=message):
        backend.prepare(source)
    assert not backend.is_compatible(source)


def test_a_model_for_which_there_is_no_memory() -> None:
    class File:
        def read(self) -> bytes:
            raise MemoryError

    with pytest.raises(NoMemoryError, match="the model cannot be read: out of memory"):
        backend.prepare(File())


def external(
    folder: Path, location: str, content: bytes | None = X.tobytes(), **entries: str
) -> Path:
    """A model with a tensor in another file."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=text)
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model_of([], [], ["w"], 17, [tensor]).SerializeToString())
    if content is not None:
        (folder / location).write_bytes(content)
    return path


def test_tensors_in_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for content, entries in [
        (X.tobytes(), {}),
        (b"1234" + X.tobytes() + b"56", {"offset": "4"}),
        (b"1234" + X.tobytes() + b"56", {"offset": "4", "length": "24", "checksum": "0"}),
    ]:
        path = external(folder, "weights.bin", content, **entries)
        np.testing.assert_array_equal(backend.run_model(path, [])[0], X)
    (folder / "inner").mkdir()
    np.testing.assert_array_equal(
        backend.run_model(external(folder, "inner/weights.bin"), [])[0], X
    )
    model = model_of([], [], ["w"], 17, [numpy_helper.from_array(X, "w")])
    onnx.save_model(
        model,
        folder / "saved.onnx",
        save_as_external_data=True,
        location="saved.data",
        size_threshold=0,
    )
    np.testing.assert_array_equal(backend.run_model(folder / "saved.onnx", [])[0], X)
    for form in ((folder / "saved.onnx").read_bytes(), (folder / "saved.onnx").open("rb")):
        with pytest.raises(SpecopsError, match="give the model by its path"):
            backend.prepare(form)


def test_tensors_outside_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(X.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "inside").write_bytes(X.tobytes())
    up = ["../model/../secret", "../secret", str(tmp_path / "secret"), "../model/inside"]
    for location in [*up, "a/../inside", str(folder / "inside"), ".", ""]:
        with pytest.raises(SpecopsError, match=r'below the model\'s folder, without "\.\."'):
            backend.prepare(external(folder, location, None))
    outside = []
    try:
        (folder / "link").symlink_to(tmp_path / "secret")
        (folder / "up").symlink_to(tmp_path, target_is_directory=True)
        outside += ["link", "up/secret"]
    except OSError:
        assert os.name == "nt"  # where not everybody may make links
    for location in outside:
        with pytest.raises(SpecopsError, match="outside the model's folder"):
            backend.prepare(external(folder, location, None))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": "1"}, "ends behind the end"),
        ({"offset": "-1"}, "wrong place"),
        ({"offset": "x"}, "wrong place"),
        ({"offset": "9" * 19}, "ends behind the end"),
        ({"offset": "9" * 5000}, "wrong place"),
        ({"length": "23"}, "wrong place"),
        ({"length": "99999999999"}, "wrong place"),
        ({"location": "nowhere"}, "cannot be read"),
        ({"location": "inner"}, "which is no file"),
        ({"location": "a\0b"}, "cannot be read"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_damaged_places_of_tensors(entries: dict[str, str], message: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "weights").write_bytes(X.tobytes())
    given: dict[str, Any] = {"location": "weights", "content": None, **entries}
    path = external(tmp_path, **given)
    with pytest.raises(SpecopsError, match=message):
        backend.prepare(path)


def test_damaged_bytes() -> None:
    """Truncated and mutated models run, or give one SpecopsError; nothing else, and no memory beyond measure."""
    rng = np.random.default_rng(20)
    whole = exported()
    whole.graph.initializer.append(numpy_helper.from_array(X, "w"))
    whole.graph.sparse_initializer.append(sparse([1, 3], name="s"))
    whole.graph.output.extend([value("w", FLOAT, [2, 3]), value("s", FLOAT, [2, 3])])
    content = whole.SerializeToString()
    x = rng.normal(size=(1, 3, 4, 4)).astype(np.float32)
    assert len(backend.run_model(content, [x])) == 4
    outcomes: Counter[str] = Counter()
    damaged = [content[:n] for n in range(0, len(content), max(1, len(content) // 150))]
    for _ in range(500):
        mutable = bytearray(content)
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            mutable[at] = rng.integers(256)
        damaged.append(bytes(mutable))
    for model in damaged:
        try:
            backend.run_model(model, [x])
            outcomes["ran"] += 1
        except SpecopsError as error:
            assert "\0" not in str(error)
            outcomes["refused"] += 1
    assert outcomes["refused"] > 300
    assert outcomes["ran"] > 20


# --- the package around it ---


def test_onnx_is_imported_by_the_backend_alone() -> None:
    done = python("import sys, specops, specops.onnx; print('onnx' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_what_to_install() -> None:
    done = python("import sys; sys.modules['onnx'] = None; from specops.onnx import backend")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "pip install onnx" in last


def test_registry_holds_every_family() -> None:
    """An operator of ONNX is in the backend when it is in the package."""
    assert {"ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "MaxPool", "Softmax"} <= {*OPERATORS}
    assert {*OPERATORS} == {n for n in ox.__all__ if n[0].isupper() and n != "CompiledOperator"}
    assert all(versions.name == name for name, versions in OPERATORS.items())


def test_a_new_spec_is_in_the_backend(tree: Tree) -> None:
    """Without another line of code."""
    spec = tree.text("specs/onnx/hardmax_13.yaml")
    tree.write("specs/onnx/sharpmax_13.yaml", spec.replace("Hardmax", "Sharpmax"))
    assert tree("generate").code == 0
    code = (
        "import numpy as np, onnx\n"
        "from specops.onnx import backend\n"
        "node = onnx.helper.make_node('Sharpmax', ['x'], ['y'])\n"
        "print(backend.run_node(node, [np.array([1, 3, 2], np.float32)])[0].tolist())\n"
    )
    done = python(code, PYTHONPATH=str(tree.root / "generated"))
    assert done.stdout.strip() == "[0.0, 1.0, 0.0]", done.stderr


def test_one_computed_value_as_two_outputs() -> None:
    model = model_of(
        [helper.make_node("Hardmax", ["x"], ["h"])], [value("x", FLOAT, [2, 3])], ["h", "h"]
    )
    first, second = backend.run_model(model, [X])
    assert not np.may_share_memory(first, second)


@pytest.mark.parametrize(("version", "fine"), [(1, True), (2, True), (3, False)])
def test_models_older_than_operator_sets(version: int, fine: bool) -> None:
    model = one("ArgMax", (2, 3), 1, axis=1, keepdims=0)
    del model.opset_import[:]
    model.ir_version = version
    assert backend.is_compatible(model) == fine


def test_too_many_bytes() -> None:
    with pytest.raises(SpecopsError, match=r"has 28 bytes; FLOAT32 \[2, 3\] has 24"):
        backend.prepare(tensor_with(raw_data=X.tobytes() + bytes(4)))


def test_truth_values_of_any_byte() -> None:
    """As NumPy and onnx's own helper have it, every byte but 0 is true."""
    tensor = TensorProto(name="w", dims=[3], data_type=TensorProto.BOOL, raw_data=bytes([0, 1, 2]))
    assert backend.run_model(model_of([], [], ["w"], 17, [tensor]), []).w.tolist() == [
        False,
        True,
        True,
    ]


def test_axes_of_an_input_where_all_shapes_are_given() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[2, 3] x, int64[1] axes) => (float y) { y = ReduceMax<keepdims = 0>(x, axes) }
    """)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    prepared = backend.prepare(model)
    assert prepared.run([x, np.array([1])]).y.tolist() == [5, 7]
    assert prepared.run([x, np.array([0])]).y.tolist() == [7, 5, 3]


def test_inputs_in_another_byte_order() -> None:
    model = model_of(
        [helper.make_node("Identity", ["x"], ["y"])], [value("x", FLOAT, [2, 3])], ["y"]
    )
    for order in (model, one("Softmax", (2, 3))):
        with pytest.raises(ValidationError, match="native byte order") as caught:
            backend.run_model(order, [X.astype(X.dtype.newbyteorder())])
        assert [v.field for v in caught.value.violations] == ["x"]


def test_too_many_numbers_of_an_input() -> None:
    prepared = backend.prepare(numbers_model(", int64[k] axes"))
    with pytest.raises(ValidationError, match="at most 64 numbers"):
        prepared.run([X, np.zeros(65, np.int64)])
