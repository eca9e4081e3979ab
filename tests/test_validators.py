"""The validator of ARGMAX against a predicate written by hand from the page, on thousands of random descriptions.

The predicate knows the meaning that a description was made with, and shares nothing with the rules under test.
`check(number)` repeats one description.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from specops import ValidationError
from specops import directml as dml
from specops.directml import (
    ArgmaxOperatorDesc,
    ArgminOperatorDesc,
    ReduceOperatorDesc,
    TensorDesc,
)

DESCRIPTIONS = 24_000
BATCHES = 12

# --- what the pages say ---

LEVELS = ["1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1", "5.2"]
LEVELS += ["6.0", "6.1", "6.2", "6.3", "6.4"]
BYTES = {"FLOAT64": 8, "FLOAT32": 4, "FLOAT16": 2, "BFLOAT16": 2, "BOOL": 1}
BYTES |= {f"{sign}INT{width}": width // 8 for sign in ("", "U") for width in (8, 16, 32, 64)}
INDEX_TYPES = {"INT64", "INT32", "UINT64", "UINT32"}
NARROW_TYPES = {"FLOAT32", "FLOAT16", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"}
GREATEST = {"INT32": 2**31 - 1, "UINT32": 2**32 - 1, "INT64": 2**63 - 1, "UINT64": 2**64 - 1}
MOST_ELEMENTS = 2**32 - 1

BROKEN = object()  # the meaning of a value that is not of its field's type
Faults = set[tuple[str, str]]


@dataclass
class Given:
    """A value as it is written, and what it means: None where the member is left to its default."""

    value: Any
    meaning: Any


@dataclass
class Described:
    """A tensor as it is written."""

    DataType: Given
    Sizes: Given
    Strides: Given = field(default_factory=lambda: Given(None, None))
    Flags: Given = field(default_factory=lambda: Given("NONE", "NONE"))
    DimensionCount: Given = field(default_factory=lambda: Given(None, None))
    TotalTensorSizeInBytes: Given = field(default_factory=lambda: Given(None, None))
    GuaranteedBaseOffsetAlignment: Given = field(default_factory=lambda: Given(0, 0))
    instead: Given | None = None  # something that is no description at all

    def written(self) -> Any:
        if self.instead is not None:
            return self.instead.value
        return TensorDesc(**{name: getattr(self, name).value for name in MEMBERS})


MEMBERS = (
    "DataType",
    "Sizes",
    "Strides",
    "Flags",
    "DimensionCount",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


@dataclass
class Description:
    """An operator as it is written, and the feature level that it is asked for."""

    InputTensor: Described
    OutputTensor: Described
    AxisCount: Given
    Axes: Given
    AxisDirection: Given
    level: Given

    def written(self) -> ArgmaxOperatorDesc:
        return ArgmaxOperatorDesc(
            InputTensor=self.InputTensor.written(),
            OutputTensor=self.OutputTensor.written(),
            AxisCount=self.AxisCount.value,
            Axes=self.Axes.value,
            AxisDirection=self.AxisDirection.value,
        )


def least_bytes(sizes: tuple[int, ...], strides: tuple[int, ...] | None, item: int) -> int:
    """Bytes up to the last element, in whole groups of 4."""
    if strides is None:
        elements = math.prod(sizes)
    else:
        elements = 1
        for size, stride in zip(sizes, strides, strict=True):
            elements += (size - 1) * stride
    return (
        math.ceil(elements * item / 4) * 4 if elements < 2**40 else (elements * item + 3) // 4 * 4
    )


def elements_apart(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether each dimension, from the least stride on, steps past all the elements within it."""
    steps = sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1)
    past = 1  # the first address beyond the elements so far
    for stride, size in steps:
        if stride < past:
            return False
        past += stride * (size - 1)
    return True


def tensor_faults(name: str, tensor: Described) -> tuple[Faults, set[str]]:
    """What is wrong with one tensor by itself, and which members say nothing therefore."""
    if tensor.instead is not None:
        return {("field_type", name)}, set(MEMBERS)
    broken = [member for member in MEMBERS if getattr(tensor, member).meaning is BROKEN]
    if broken:
        return {("field_type", f"{name}.{member}") for member in broken}, set(MEMBERS)
    ids = set()
    lost = set()
    sizes, strides = tensor.Sizes.meaning, tensor.Strides.meaning
    item = BYTES[tensor.DataType.meaning]
    count = tensor.DimensionCount.meaning
    if count is not None and count != len(sizes):
        ids.add("dimension_count")
    if 0 in sizes:
        ids.add("sizes_positive")
        lost.add("Sizes")
    if math.prod(sizes) > MOST_ELEMENTS:
        ids.add("element_count")
        lost.add("Sizes")
    if strides is not None and len(strides) != len(sizes):
        ids.add("strides_length")
    elif 0 not in sizes:
        total = tensor.TotalTensorSizeInBytes.meaning
        least = least_bytes(sizes, strides, item)
        if least >= 2**64 and "element_count" not in ids:
            ids.add("total_size_in_64_bits")
            lost.add("Sizes")
        elif total is not None and total < least:
            ids.add("total_size")
        if name == "OutputTensor" and strides is not None and not elements_apart(sizes, strides):
            ids.add("output_overlap")
    alignment = tensor.GuaranteedBaseOffsetAlignment.meaning
    if bin(alignment).count("1") > 1:
        ids.add("alignment")
    if 0 < alignment < item:
        ids.add("alignment_covers_element")
    if name == "OutputTensor" and tensor.Flags.meaning == "OWNED_BY_DML":
        ids.add("owned_by_dml")
    return {(id, name) for id in ids}, lost


def expected_faults(given: Description) -> Faults:
    """Each violation of a description as (constraint, field), by the pages of ARGMAX and of the buffer tensor."""
    faults: Faults = set()
    lost: dict[str, set[str]] = {}
    tensors = {"InputTensor": given.InputTensor, "OutputTensor": given.OutputTensor}
    for name, tensor in tensors.items():
        found, lost[name] = tensor_faults(name, tensor)
        faults |= found

    input_types = NARROW_TYPES | {"INT64", "UINT64"}
    if given.level.meaning is BROKEN:
        faults.add(("feature_level", "feature_level"))
    elif given.level.meaning is not None:
        at = LEVELS.index(given.level.meaning)
        if at < LEVELS.index("3.0"):
            faults.add(("feature_level", "feature_level"))  # the rest is held to the newest table
        elif at < LEVELS.index("4.1"):
            input_types = NARROW_TYPES
    for name, types in (("InputTensor", input_types), ("OutputTensor", INDEX_TYPES)):
        if "DataType" in lost[name]:
            continue
        if tensors[name].DataType.meaning not in types:
            faults.add(("supported_data_type", name))
            lost[name].add("DataType")
        if "Sizes" not in lost[name] and not 1 <= len(tensors[name].Sizes.meaning) <= 8:
            faults.add(("supported_dimension_count", name))

    if given.AxisDirection.meaning is BROKEN:
        faults.add(("field_type", "AxisDirection"))
    if given.AxisCount.meaning is BROKEN:
        faults.add(("field_type", "AxisCount"))
    axes = given.Axes.meaning
    if axes is BROKEN:
        faults.add(("field_type", "Axes"))
    sizes = None if "Sizes" in lost["InputTensor"] else given.InputTensor.Sizes.meaning
    result: Any = None if "Sizes" in lost["OutputTensor"] else given.OutputTensor.Sizes.meaning
    ranks_agree = sizes is not None and result is not None and len(sizes) == len(result)
    if sizes is not None and result is not None and not ranks_agree:
        faults.add(("same_rank", "OutputTensor"))
    if axes is BROKEN:
        return faults
    if given.AxisCount.meaning not in (None, BROKEN, len(axes)):
        faults.add(("axis_count", "AxisCount"))
    different = len({*axes}) == len(axes)
    if not different:
        faults.add(("axes_unique", "Axes"))
    if sizes is None:
        return faults
    if any(axis >= len(sizes) for axis in axes):
        faults.add(("axes_in_range", "Axes"))
        return faults
    if ranks_agree:
        reduced = list(sizes)
        for axis in axes:
            reduced[axis] = 1
        if list(result) != reduced:
            faults.add(("reduced_sizes", "OutputTensor"))
    if different and "DataType" not in lost["OutputTensor"]:
        greatest = GREATEST[given.OutputTensor.DataType.meaning]
        if math.prod(sizes[axis] for axis in axes) > greatest + 1:
            faults.add(("index_fits", "OutputTensor"))
    return faults


# --- random descriptions ---


class Draw:
    """Random choices of plain Python values."""

    def __init__(self, number: int) -> None:
        self._random = np.random.default_rng([number, 7])

    def chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self._random.integers(low, high + 1))

    def one(self, choices: Any) -> Any:
        choices = list(choices)
        return choices[self.integer(0, len(choices) - 1)]

    def shuffled(self, items: Any) -> list[Any]:
        items = list(items)
        return [items[i] for i in self._random.permutation(len(items))]


class NoIndex:
    """An object whose `__index__` fails."""

    def __index__(self) -> int:
        raise TypeError("no index")


NO_INTEGERS = [-1, True, 1.0, "1", b"1", [1], 2**64, 10**5000, np.bool_(True), np.float32(1)]
NO_INTEGERS += [object(), np.array([1, 2]), np.array(0.5), NoIndex(), int, {}, float("nan"), 1j]
NO_LISTS: list[Any] = [
    None,
    3,
    "12",
    b"ab",
    {1: 2},
    {1, 2},
    [1.5],
    [[1]],
    [True],
    [-1],
    [2**32],
    [None],
    ["1"],
]
NO_LISTS += [np.array([[1]]), np.array(1), np.array([1.5]), iter([1]), object(), [1] * 65]
NO_LISTS += [[10**5000], [np.array([1, 2])], list, range, [NoIndex()], [1, "a"]]
NO_TYPES = [None, "", "FLOAT33", "float33", 4, -1, object(), [], {}, ">f4", "O", "c8", "f4,f4"]
NO_TYPES += [{"a": 1}, b"xx", "DML_TENSOR_DATA_TYPE_", "DML_TENSOR_DATA_TYPE_UINT4", (1, 2, 3)]
NO_NAMES = [None, "", "none", "increasing", "SIDEWAYS", 2, -1, True, 0.0, b"NONE", [], {}, object()]
NO_NAMES += [np.array([0]), np.array(0.5), 10**5000, NoIndex(), "DML_AXIS_DIRECTION_", int]
NO_LEVELS = ["", "9.9", "7.0", "3", 3.0, 4, [], {}, b"4.1", True, "DML_FEATURE_LEVEL_9_0", object()]
NO_TENSORS = [None, "FLOAT32", {}, [], 3, object(), np.zeros(3, np.float32), TensorDesc]


def broken(draw: Draw, values: list[Any]) -> Given:
    return Given(draw.one(values), BROKEN)


def number(draw: Draw, value: int) -> Given:
    form: Callable[[int], Any] = draw.one([int, int, np.int64 if value < 2**63 else int])
    return Given(form(value), value)


def numbers(draw: Draw, values: Any) -> Given:
    values = tuple(int(value) for value in values)
    form = draw.one([list, tuple, list, lambda v: np.array(v, np.int64), map_numpy])
    return Given(form(values), values)


def map_numpy(values: tuple[int, ...]) -> list[Any]:
    return [np.uint32(value) for value in values]


def data_type(draw: Draw, name: str) -> Given:
    forms: list[Any] = [name, name, f"DML_TENSOR_DATA_TYPE_{name}"]
    if name not in ("BFLOAT16", "BOOL"):
        forms += [name.lower(), np.dtype(name.lower()), np.dtype(name.lower()).type]
    return Given(draw.one(forms), name)


def enum(draw: Draw, name: str, values: dict[str, int], value: str) -> Given:
    code = values[value]
    return Given(draw.one([value, f"{name}_{value}", code, np.uint8(code), np.array(code)]), value)


def direction(draw: Draw) -> Given:
    values = {"INCREASING": 0, "DECREASING": 1}
    return enum(draw, "DML_AXIS_DIRECTION", values, draw.one(values))


def flags(draw: Draw, value: str) -> Given:
    return enum(draw, "DML_TENSOR_FLAGS", {"NONE": 0, "OWNED_BY_DML": 1}, value)


def level(draw: Draw, name: str | None) -> Given:
    if name is None:
        return Given(None, None)
    under = name.replace(".", "_")
    return Given(draw.one([name, under, f"DML_FEATURE_LEVEL_{under}"]), name)


def some_strides(draw: Draw, sizes: tuple[int, ...], *, repeat: bool) -> Given:
    """None, packed, permuted, padded, or (for inputs) repeated along some dimensions."""
    if draw.chance(0.4) or math.prod(sizes) > 2**20:
        return Given(None, None)
    order = list(range(len(sizes)))[::-1]
    if draw.chance(0.5):
        order = draw.shuffled(order)
    strides = [0] * len(sizes)
    step = 1
    for d in order:
        if repeat and draw.chance(0.2):
            continue
        if draw.chance(0.2):
            step += draw.integer(1, 5)
        strides[d] = step
        step *= sizes[d]
    return numbers(draw, strides)


def some_tensor(draw: Draw, name: str, dtype: str, sizes: tuple[int, ...]) -> Described:
    """A valid tensor."""
    tensor = Described(data_type(draw, dtype), numbers(draw, sizes))
    tensor.Strides = some_strides(draw, sizes, repeat=name == "InputTensor")
    if name == "InputTensor" and draw.chance(0.2):
        tensor.Flags = flags(draw, draw.one(["NONE", "OWNED_BY_DML"]))
    if draw.chance(0.3):
        tensor.DimensionCount = number(draw, len(sizes))
    if draw.chance(0.3):
        least = least_bytes(sizes, tensor.Strides.meaning, BYTES[dtype])
        tensor.TotalTensorSizeInBytes = number(draw, least + draw.one([0, 0, 1, 4, 100, 2**40]))
    if draw.chance(0.3):
        alignment = draw.one([BYTES[dtype], 2 * BYTES[dtype], 16, 256, 2**31])
        tensor.GuaranteedBaseOffsetAlignment = number(draw, alignment)
    return tensor


def some_description(draw: Draw) -> Description:
    """A valid description."""
    rank = draw.integer(1, 8)
    sizes = [draw.one([1, 2, 3, 5]) for _ in range(rank)]
    if draw.chance(0.25):
        sizes = [1] * rank
        sizes[draw.integer(0, rank - 1)] = draw.one([2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1])
    axes = draw.shuffled(d for d in range(rank) if draw.chance(0.5))
    reduced = tuple(1 if d in axes else n for d, n in enumerate(sizes))
    reach = math.prod(sizes[a] for a in axes) - 1
    asked = draw.one([None, *LEVELS[3:]])
    wide = asked is None or LEVELS.index(asked) >= 6
    input_type = draw.one(sorted(NARROW_TYPES) + (["INT64", "UINT64"] * 2 if wide else []))
    output_type = draw.one(sorted(name for name in INDEX_TYPES if reach <= GREATEST[name]))
    return Description(
        InputTensor=some_tensor(draw, "InputTensor", input_type, tuple(sizes)),
        OutputTensor=some_tensor(draw, "OutputTensor", output_type, reduced),
        AxisCount=number(draw, len(axes)) if draw.chance(0.4) else Given(None, None),
        Axes=numbers(draw, axes),
        AxisDirection=direction(draw),
        level=level(draw, asked),
    )


def changed_list(draw: Draw, values: tuple[int, ...], new: list[int]) -> Given:
    """One entry replaced, added or dropped."""
    out = list(values)
    at = draw.integer(0, max(len(out) - 1, 0))
    action = draw.integer(0, 3)
    if action <= 1 and out:
        out[at] = draw.one(new)
    elif action == 2 and out:
        del out[at]
    else:
        out.insert(at, draw.one(new))
    return numbers(draw, out)


def change_tensor(draw: Draw, tensor: Described) -> None:
    """One member becomes another, right or wrong."""
    if draw.chance(0.03):
        tensor.instead = broken(draw, NO_TENSORS)
        return
    member = draw.one(MEMBERS)
    garbage = draw.chance(0.2)
    sizes = tensor.Sizes.meaning if tensor.Sizes.meaning is not BROKEN else (2,)
    if member == "DataType":
        name = draw.one(["INT32", "UINT32", *BYTES])
        tensor.DataType = broken(draw, NO_TYPES) if garbage else data_type(draw, name)
    elif member == "Sizes":
        huge = [65536, 2**31, 2**32 - 1]
        tensor.Sizes = changed_list(draw, sizes, [0, 1, 2, 3, 4, 5, *huge])
        if draw.chance(0.15):
            tensor.Sizes = numbers(draw, [1] * draw.one([0, 1, 2, 8, 9, 10]))
        if garbage:
            tensor.Sizes = broken(draw, NO_LISTS)
    elif member == "Strides":
        strides = tensor.Strides.meaning
        if strides in (None, BROKEN):
            strides = tuple(math.prod(sizes[d + 1 :]) % 2**32 for d in range(len(sizes)))
        tensor.Strides = changed_list(draw, strides, [0, 1, 2, 3, 4, 6, 30, 1000, 2**32 - 1])
        if max(sizes, default=0) >= 2**31 and draw.chance(0.9):
            tensor.Strides = numbers(draw, [2**32 - 1] * len(sizes))
        if garbage:
            tensor.Strides = broken(draw, [v for v in NO_LISTS if v is not None])
    elif member == "Flags":
        tensor.Flags = flags(draw, draw.one(["NONE", "OWNED_BY_DML", "OWNED_BY_DML"]))
        if garbage:
            tensor.Flags = broken(draw, NO_NAMES)
    elif member == "DimensionCount":
        wrong = broken(draw, [*NO_INTEGERS, 2**32])
        tensor.DimensionCount = wrong if garbage else number(draw, draw.integer(0, 9))
    elif member == "TotalTensorSizeInBytes":
        least = 64
        strides = tensor.Strides.meaning
        known = BROKEN not in (tensor.DataType.meaning, tensor.Sizes.meaning, strides)
        if known and 0 not in sizes and (strides is None or len(strides) == len(sizes)):
            least = least_bytes(sizes, strides, BYTES[tensor.DataType.meaning])
        value = draw.one([least - 1, least - 4, least, 0, 2**64 - 1])
        value = min(max(0, value), 2**64 - 1)
        wrong = broken(draw, NO_INTEGERS)
        tensor.TotalTensorSizeInBytes = wrong if garbage else number(draw, value)
    else:
        value = draw.one([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 4096, 2**31, 2**32 - 1])
        wrong = broken(draw, [*NO_INTEGERS, None, 2**32])
        tensor.GuaranteedBaseOffsetAlignment = wrong if garbage else number(draw, value)


def change(draw: Draw, given: Description) -> None:
    """One random change of a description, which may leave it valid."""
    what = draw.integer(0, 12)
    garbage = draw.chance(0.2)
    axes = given.Axes.meaning if given.Axes.meaning is not BROKEN else (0,)
    if what <= 3:
        change_tensor(draw, given.InputTensor)
    elif what <= 7:
        change_tensor(draw, given.OutputTensor)
    elif what == 8:
        given.Axes = changed_list(draw, axes, [0, 0, 1, 2, 7, 8, 2**32 - 1])
        if garbage:
            given.Axes = broken(draw, NO_LISTS)
    elif what == 9:
        wrong = broken(draw, [*NO_INTEGERS, 2**32])
        given.AxisCount = wrong if garbage else number(draw, draw.integer(0, 9))
    elif what == 12:
        given.OutputTensor.DataType = data_type(draw, "INT32")
    elif what == 10:
        given.AxisDirection = direction(draw) if draw.chance(0.3) else broken(draw, NO_NAMES)
    else:
        given.level = level(draw, draw.one([None, *LEVELS]))
        if garbage:
            given.level = broken(draw, NO_LEVELS)


def description(number: int) -> Description:
    """Description number so-and-so: valid, or with one change or two, sometimes four."""
    draw = Draw(number)
    given = some_description(draw)
    for _ in range(draw.one([0, 1, 1, 1, 2, 2, 4])):
        change(draw, given)
    return given


# --- the comparison ---


def check(number: int) -> Faults:
    """The validator's violations are those of the predicate; nothing but a ValidationError is raised."""
    given = description(number)
    expected = expected_faults(given)
    try:
        written = given.written()
        try:
            written.validate(given.level.value)
            found: Faults = set()
            written.compile(given.level.value)
        except ValidationError as error:
            found = {(violation.id, violation.field) for violation in error.violations}
            assert len(found) == len(error.violations), "one violation twice"
            assert str(error)
    except Exception as error:
        raise AssertionError(f"check({number}): {type(error).__name__}: {error}") from error
    assert found == expected, f"check({number}): found {found}, expected {expected}"
    return expected


SEEN: dict[int, Counter[str]] = {}


def tally(batch: int) -> Counter[str]:
    """How often each constraint was broken in a batch, and how many descriptions were accepted."""
    if batch not in SEEN:
        seen: Counter[str] = Counter()
        share = DESCRIPTIONS // BATCHES
        for number in range(batch * share, (batch + 1) * share):
            faults = expected_faults(description(number))
            seen.update({id for id, _ in faults} or {"accepted"})
            seen["refused"] += bool(faults)
        SEEN[batch] = seen
    return SEEN[batch]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_descriptions(batch: int) -> None:
    """What the predicate accepts is accepted, and what it refuses is refused for the same reasons."""
    share = DESCRIPTIONS // BATCHES
    seen: Counter[str] = Counter()
    wrong = []
    for number in range(batch * share, (batch + 1) * share):
        try:
            faults = check(number)
        except AssertionError as error:
            wrong.append(str(error))
            continue
        seen.update({id for id, _ in faults} or {"accepted"})
        seen["refused"] += bool(faults)
    assert not wrong, f"{len(wrong)} of {share} differ, among them\n" + "\n".join(wrong[:5])
    SEEN[batch] = seen


def test_accepted_and_refused_are_frequent() -> None:
    """Neither side is starved: thousands are accepted, thousands refused, each constraint many times."""
    seen: Counter[str] = sum((tally(batch) for batch in range(BATCHES)), Counter())
    assert seen["accepted"] + seen["refused"] == DESCRIPTIONS
    assert seen["accepted"] > DESCRIPTIONS // 4 and seen["refused"] > DESCRIPTIONS // 3
    ids = {rule.id for rule in ArgmaxOperatorDesc.OPERATOR.rules}
    ids |= {rule.id for rule in ArgmaxOperatorDesc.OPERATOR.tensor_rules}
    ids |= {"field_type", "feature_level", "supported_data_type", "supported_dimension_count"}
    assert set(seen) - {"accepted", "refused"} == ids
    rare = {id: count for id, count in seen.items() if count < 60}
    assert not rare


@pytest.mark.parametrize(
    ("operator", "settings"),
    [
        (ArgmaxOperatorDesc, {"AxisDirection": "INCREASING"}),
        (ArgminOperatorDesc, {"AxisDirection": "INCREASING"}),
        (ReduceOperatorDesc, {"Function": "ARGMAX"}),
    ],
)
def test_the_greatest_index_fits(operator: Any, settings: dict[str, Any]) -> None:
    """The last element's index is the greatest INT32; with one element more it is refused."""
    for elements, ids in ((2**31, []), (2**31 + 1, ["index_fits"])):
        desc = operator(
            InputTensor=TensorDesc("INT8", [elements]),
            OutputTensor=TensorDesc("INT32", [1]),
            Axes=[0],
            **settings,
        )
        found = []
        try:
            desc.validate()
        except ValidationError as error:
            found = [v.id for v in error.violations]
        assert found == ids


def test_data_types_of_reductions() -> None:
    """That of the input, of indices UINT32 unless another is wanted."""
    for dtype in (np.float32, np.float16):
        x = np.ones((2, 3), dtype)
        assert dml.reduce(x, "SUM", [1]).dtype == dtype
        assert dml.reduce(x, "ARGMAX", [1]).dtype == np.uint32
        assert dml.reduce(x, "ARGMAX", [1], output_dtype="INT64").dtype == np.int64


def test_accepted_outputs_have_distinct_elements() -> None:
    """Every small set of sizes and strides that is accepted for an output puts no two elements on one address."""
    accepted = 0
    for sizes in itertools.product((1, 2, 3), repeat=3):
        for strides in itertools.product((0, 1, 2, 3, 4, 6, 9), repeat=3):
            output = TensorDesc("UINT32", sizes, Strides=strides)
            desc = ArgmaxOperatorDesc(
                InputTensor=TensorDesc("INT8", sizes),
                OutputTensor=output,
                Axes=[],
                AxisDirection="INCREASING",
            )
            addresses = [
                sum(i * s for i, s in zip(index, strides, strict=True))
                for index in np.ndindex(*sizes)
            ]
            distinct = len({*addresses}) == len(addresses)
            try:
                desc.validate()
                accepted += 1
                assert distinct, (sizes, strides)
            except ValidationError as error:
                assert [v.id for v in error.violations] == ["output_overlap"]
                assert not elements_apart(sizes, strides)
    assert accepted > 500


def test_a_length_is_told_with_its_array() -> None:
    """Who gives no DimensionCount finds the array that it is the length of."""
    tensor = dml.TensorDesc("FLOAT32", [1, 1, 4, 4])
    window: dict[str, Any] = {"WindowSize": [1, 1, 1], "Strides": [1] * 3, "Dilations": [1] * 3}
    padding = {"StartPadding": [0] * 3, "EndPadding": [0] * 3}
    given = {"InputTensor": tensor, "OutputTensor": tensor, **window, **padding}
    with pytest.raises(ValidationError) as caught:
        dml.MaxPooling2OperatorDesc(**given).validate()
    (violation,) = caught.value.violations
    assert violation.id == "spatial_dimensions"
    assert "DimensionCount = 3, WindowSize = [1, 1, 1]" in violation.found
