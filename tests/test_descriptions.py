"""Descriptions of tensors: their views and sizes, what is equal, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from refusals import refused
from untyped import untyped

import specops
from specops import SpecopsError, ValidationError, onnx, request
from specops import directml as dml
from specops.directml import ArgmaxOperatorDesc, TensorDesc
from specops.errors import NoMemoryError
from specops.lowering.plans import MOST, Plans
from specops.plain.argmax import OPERATOR as ARGMAX
from specops.validation import Computed

PAGE = np.array([[1, 2, 3], [3, 0, 4], [2, 5, 2]], np.float32)


def test_the_view_of_a_description() -> None:
    """Padding, broadcasting and an offset, on any contiguous buffer, sharing its memory."""
    padded = TensorDesc("FLOAT32", [2, 3], Strides=[4, 1])
    assert padded.implied_bytes == 28
    memory = bytearray(40)
    view = padded.view(memory, 8)
    assert view.shape == (2, 3) and view.strides == (16, 4)
    view[...] = [[1, 2, 3], [4, 5, 6]]
    assert np.frombuffer(memory, np.float32).tolist() == [0, 0, 1, 2, 3, 0, 4, 5, 6, 0]
    repeated = TensorDesc("INT16", [3, 2], Strides=[0, 1]).view(np.array([7, 8], np.int16))
    assert repeated.tolist() == [[7, 8]] * 3
    assert TensorDesc("UINT8", [2]).view(b"abc", 1).tolist() == [98, 99]
    assert not TensorDesc("UINT8", [2]).view(b"abc").flags.writeable
    odd = TensorDesc("FLOAT32", [1]).view(bytearray(5), 1)
    odd[...] = 1.5
    assert specops.argmax(odd) == 0


def test_implied_bytes() -> None:
    """From the first to the last element, rounded up to a multiple of 4."""
    assert TensorDesc("FLOAT16", [3, 3]).implied_bytes == 20
    assert TensorDesc("UINT8", [5]).implied_bytes == 8
    assert TensorDesc("INT64", [2, 2], Strides=[10, 3]).implied_bytes == 112
    assert TensorDesc("INT64", [1000, 1000], Strides=[0, 0]).implied_bytes == 8


@pytest.mark.parametrize(
    ("memory", "offset"),
    [
        (bytes(35), 0),
        (bytes(36), 1),
        (bytes(99), 64),
        (b"", 0),
        (bytes(36), -1),
        (bytes(36), 0.0),
        (bytes(36), None),
        (bytes(36), 2**63),
        (bytes(36), 2**64),
        ([0] * 36, 0),
        (None, 0),
        (np.zeros(200, np.uint8)[::2], 0),
        (np.zeros(36, object), 0),
        ("a" * 36, 0),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_refused_buffers(memory: Any, offset: Any) -> None:
    """A buffer that is too small or none at all gives one violation, never memory beyond it."""
    assert refused(lambda: TensorDesc("FLOAT32", [3, 3]).view(memory, offset)).id == "tensor_desc"


def test_a_view_has_the_described_size_and_alignment() -> None:
    """As in models of DxDispatch."""
    sized = TensorDesc("FLOAT32", [3], TotalTensorSizeInBytes=32)
    assert sized.view(bytes(36), 4).shape == (3,)
    violation = refused(lambda: sized.view(bytes(36), 5))
    assert (violation.field, violation.found) == ("buffer", "31 bytes from byte 5 on")
    assert violation.allowed == "at least 32"
    aligned = TensorDesc("FLOAT32", [3], GuaranteedBaseOffsetAlignment=64)
    assert aligned.view(bytes(76), 64).shape == aligned.view(bytes(12)).shape == (3,)
    violation = refused(lambda: aligned.view(bytes(99), 32))
    assert (violation.field, violation.found) == ("byte_offset", "32")
    assert violation.allowed == "a multiple of 64"
    with pytest.raises(ValidationError) as caught:
        aligned.view(bytes(99), 96)
    assert [v.field for v in caught.value.violations] == ["byte_offset", "buffer"]


def test_descriptions_without_a_view() -> None:
    """A description that is itself wrong has no view, no array and no size, by the ids that an operator tells."""
    for wrong, ids in (
        (TensorDesc("FLOAT33", [3]), ["field_type"]),
        (TensorDesc("FLOAT32", [0]), ["sizes_positive"]),
        (TensorDesc("FLOAT32", [3], Strides=[1, 1]), ["strides_length"]),
        (TensorDesc("FLOAT32", [3], TotalTensorSizeInBytes=8), ["total_size"]),
        (TensorDesc("FLOAT32", [2**31, 1], Strides=[2**32 - 1, 1]), ["total_size_in_64_bits"]),
        (
            TensorDesc("INT16", [2**32 - 1], [2**32 - 1], TotalTensorSizeInBytes=8),
            ["total_size_in_64_bits"],
        ),
    ):
        calls = (
            wrong.empty,
            lambda wrong=wrong: wrong.view(bytes(99)),
            lambda wrong=wrong: wrong.implied_bytes,
        )
        for call in calls:
            with pytest.raises(ValidationError) as caught:
                call()
            assert [v.id for v in caught.value.violations] == ids
    with pytest.raises(ValidationError) as caught:
        TensorDesc("FLOAT32", [0, 3]).empty()
    (violation,) = caught.value.violations
    assert (violation.field, violation.found) == ("TensorDesc", "TensorDesc.sizes = [0, 3]")


def test_a_description_too_large_for_memory() -> None:
    """It has a size, but no array: an error of this package."""
    largest = TensorDesc("UINT8", [2**32 - 1], Strides=[2**32 - 1])
    assert largest.implied_bytes == (2**32 - 2) * (2**32 - 1) + 2
    far = TensorDesc("FLOAT64", [2**16, 2**15], Strides=[2**32 - 1, 2**31])
    assert far.implied_bytes > 2**50
    with pytest.raises(NoMemoryError, match="no memory for TensorDesc") as caught:
        far.empty()
    assert isinstance(caught.value, SpecopsError) and isinstance(caught.value, MemoryError)
    with pytest.raises(NoMemoryError, match="no memory for out of sizes"):  # NumPy: ValueError
        specops.max_unpool(np.ones(2, np.float32), np.arange(2), (2**31, 2**31, 4))


def test_a_kernel_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compiled code raises is told as an error of this package, too."""
    compiled = onnx.Softmax(axis=0).compile("float32", [3])
    lowered = Mock(side_effect=MemoryError("no memory for a thread's scratch"))
    monkeypatch.setattr(compiled, "_lowered", lowered)
    with pytest.raises(NoMemoryError, match=r"^Softmax-13: no memory for a thread's scratch$"):
        compiled(np.zeros(3, np.float32))
    starved = replace(compiled._operator, lower=Mock(side_effect=MemoryError))
    with pytest.raises(NoMemoryError, match="Softmax-13: not enough memory"):
        dml.CompiledOperator(starved, compiled._values)


def test_values_that_no_rule_gives() -> None:
    """They are refused, though no rule is broken: a spec that lacks one is no reason to compute anything."""
    lost = Computed(lambda: 1 // 0, ())
    fields = tuple(replace(f, sizes=lost) if f.kind == "output" else f for f in ARGMAX.fields)
    for wrong, name in (
        (replace(ARGMAX, derived={"lost": lost}), "lost"),
        (replace(ARGMAX, fields=fields), "out"),
    ):
        x = {"x": (np.dtype(np.float32), (3,))}
        violation = refused(partial(request.compiled, wrong, x, {}, {}))
        assert (violation.id, violation.field) == ("not_computable", name)


def test_plans_are_kept_for_a_bounded_number_of_strides() -> None:
    plans = Plans(lambda strides: strides)
    for n in range(MOST + 1):
        assert plans[((n,),)] == (n,)
    assert len(plans) == 1


def test_the_described_output_is_allocated() -> None:
    """Without `out`, an output with strides is a view of the described buffer."""
    compiled = ArgmaxOperatorDesc(
        InputTensor=TensorDesc("FLOAT32", [3, 3]),
        OutputTensor=TensorDesc("UINT32", [3, 1], Strides=[5, 2], TotalTensorSizeInBytes=64),
        Axes=[1],
        AxisDirection="INCREASING",
    ).compile("3.0")
    out = compiled(PAGE)
    assert out.tolist() == [[2], [2], [1]] and out.strides == (20, 8)
    base = out
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.nbytes == 64
    plain = np.zeros((3, 1), np.uint32)
    assert compiled(PAGE, out=plain) is plain
    empty = TensorDesc("UINT32", [3, 1], Strides=[5, 2]).empty()
    assert empty.strides == (20, 8) and compiled(PAGE, out=empty).tolist() == [[2], [2], [1]]


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda v: [np.uint32(n) for n in v]])
def test_descriptions_of_the_same_are_equal(form: Callable[[list[int]], Any]) -> None:
    """Whatever sequences they are given, which may change afterwards."""
    sizes, axes = form([2, 3]), form([0, 1])
    desc = TensorDesc("FLOAT32", sizes, Strides=sizes)
    same = TensorDesc("FLOAT32", (2, 3), Strides=(2, 3))
    assert desc == same and hash(desc) == hash(same) and repr(desc) == repr(same)
    output = TensorDesc("UINT32", (1, 1))
    asked, other = (
        dml.ArgmaxOperatorDesc(
            InputTensor=tensor, OutputTensor=output, Axes=given, AxisDirection="INCREASING"
        )
        for tensor, given in ((desc, axes), (same, (0, 1)))
    )
    assert asked == other and hash(asked) == hash(other)
    if not isinstance(sizes, tuple):
        sizes[0] = axes[0] = 7
    assert desc == same and asked == other


@pytest.mark.parametrize("dtype", ["FLOAT32", "DML_TENSOR_DATA_TYPE_FLOAT32", np.float32, "f4"])
@pytest.mark.parametrize("flags", ["NONE", "DML_TENSOR_FLAG_NONE", 0])
@pytest.mark.parametrize("direction", ["INCREASING", "DML_AXIS_DIRECTION_INCREASING", 0])
def test_descriptions_by_other_names_are_equal(dtype: Any, flags: Any, direction: Any) -> None:
    """A data type or a value of an enumeration is the same by its name, its page's name and its number."""
    desc = TensorDesc(dtype, (2, 3), Flags=flags)
    assert desc == TensorDesc("FLOAT32", (2, 3)) and hash(desc) == hash(TensorDesc("f4", (2, 3)))
    output = TensorDesc("UINT32", (1, 1))
    asked, other = (
        dml.ArgmaxOperatorDesc(
            InputTensor=desc, OutputTensor=output, Axes=(0, 1), AxisDirection=given
        )
        for given in (direction, "INCREASING")
    )
    assert asked == other and hash(asked) == hash(other)


def test_a_description_keeps_what_cannot_be_read() -> None:
    """It is reported as it was written."""
    desc = TensorDesc("FLOAT32", [2, -3], Strides=untyped({1: 2}))
    with pytest.raises(ValidationError) as caught:
        desc.empty()
    assert [(v.field, v.found) for v in caught.value.violations] == [
        ("TensorDesc.Sizes", "[2, -3]"),
        ("TensorDesc.Strides", "{1: 2}"),
    ]


def test_the_oldest_level_of_a_data_type_is_told() -> None:
    """Of several levels that have it: who asks for an older one learns the least that would do."""
    tensor = TensorDesc("INT8", [1, 1, 2, 2])
    pooling = dml.MaxPoolingOperatorDesc(
        InputTensor=tensor,
        OutputTensor=TensorDesc("INT8", [1, 1, 1, 1]),
        Strides=[1, 1],
        WindowSize=[2, 2],
        StartPadding=[0, 0],
        EndPadding=[0, 0],
    )
    for level in ("5.0", "3.0"):
        pooling.validate(level)
    with pytest.raises(ValidationError) as caught:
        pooling.validate("1.0")
    assert {v.field for v in caught.value.violations} == {"InputTensor", "OutputTensor"}
    for violation in caught.value.violations:
        assert violation.allowed.endswith("(INT8 from feature level 3.0 on)"), violation


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([1, 3, 112, 110], "rounded down or up; [1, 3, 112, 112] would do"),
        ([1, 2, 112, 112], "are those of InputTensor; [1, 3, 112, 112] would do"),
        ([3, 112, 112], "the same number of dimensions; [1, 3, 112, 112] would do"),
    ],
)
def test_sizes_of_an_output_that_would_do(sizes: list[int], told: str) -> None:
    tensor = TensorDesc("FLOAT32", [1, 3, 224, 224])
    pooling = partial(
        dml.MaxPooling1OperatorDesc,
        InputTensor=tensor,
        OutputTensor=TensorDesc("FLOAT32", sizes),
        OutputIndicesTensor=None,
        Strides=[2, 2],
        StartPadding=[1, 1],
        EndPadding=[1, 1],
    )
    with pytest.raises(ValidationError) as caught:
        pooling(WindowSize=[3, 3]).validate()
    assert [v.allowed.endswith(told) for v in caught.value.violations] == [True]
    # Where another field is wrong, nobody knows.
    with pytest.raises(ValidationError) as caught:
        pooling(WindowSize=[300, 3]).validate()
    assert "would do" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "read"),
    [
        ("DML_TENSOR_FLAG_NONE", "NONE"),
        ("DML_TENSOR_FLAGS_NONE", "NONE"),
        ("NONE", "NONE"),
        (0, "NONE"),
        ("DML_TENSOR_FLAG_OWNED_BY_DML", "OWNED_BY_DML"),
        (1, "OWNED_BY_DML"),
    ],
)
def test_flags_under_their_names_in_the_header(flags: Any, read: str) -> None:
    """What each of them is read as: an input may have both, an output may not be owned."""

    def desc(**outputs: Any) -> ArgmaxOperatorDesc:
        return ArgmaxOperatorDesc(
            InputTensor=TensorDesc("FLOAT32", [2, 3], Flags=flags),
            OutputTensor=TensorDesc("UINT32", [1, 3], **outputs),
            Axes=[0],
            AxisDirection="INCREASING",
        )

    desc().validate()
    if read == "NONE":
        assert desc(Flags=flags).compile().outputs["OutputTensor"].flags == read
    else:
        found = refused(lambda: desc(Flags=flags).validate()).found
        assert found == f"OutputTensor.flags = {read}"


def test_sizes_that_would_not_do_are_not_told() -> None:
    """What is told keeps every rule of the output's sizes, and follows from no output that is wrong itself."""
    pooling = partial(
        dml.MaxPooling1OperatorDesc,
        InputTensor=TensorDesc("FLOAT32", [1, 1, 4, 4]),
        Strides=[1, 1],
        WindowSize=[2, 2],
        EndPadding=[0, 0],
    )
    with pytest.raises(ValidationError) as caught:
        pooling(
            OutputTensor=TensorDesc("FLOAT32", [1, 1, 4, 4]),
            OutputIndicesTensor=TensorDesc("UINT32", [1, 1, 3, 3]),
            StartPadding=[0, 0],
        ).validate()
    told = {v.field: v.allowed for v in caught.value.violations}
    assert told["OutputTensor"].endswith("; [1, 1, 3, 3] would do")
    assert "would do" not in told["OutputIndicesTensor"]
    # A window in the padding alone holds no element, whatever the output.
    with pytest.raises(ValidationError) as caught:
        pooling(OutputTensor=TensorDesc("FLOAT32", [1, 1, 9, 9]), StartPadding=[3, 3]).validate()
    assert "would do" not in str(caught.value)
