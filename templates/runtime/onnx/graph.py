"""A model's graph: checked as a whole, put in order, and compiled for the shapes of a run."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from specops import reading, request
from specops.errors import SpecopsError, Unsupported, ValidationError, Violation
from specops.onnx.model import Attribute, Model, Node, Value, newest_version, quoted
from specops.onnx.registry import OPERATORS
from specops.onnx.versions import Versions
from specops.operator import CompiledOperator
from specops.reading import NotUnderstood
from specops.request import Asked
from specops.validation import Field, Operator
from specops.vocabulary import DATA_TYPES, NEWEST_OPSET

Shape = tuple[int, ...]
Numbers = tuple[int, ...]

_MAX_PLANS = 32  # shapes of inputs that a graph stays compiled for
_DOMAIN = "ai.onnx"
_BUILT_IN = ("Constant", "Identity")  # beside those that have specs
_SUPPORTED = (*OPERATORS, *_BUILT_IN)

# Each attribute of Constant: the version that brought it, its kind, and the data type that it gives a number.
_CONSTANTS = {
    "value": (1, "TENSOR", None),
    "sparse_value": (11, "SPARSE_TENSOR", None),
    "value_float": (12, "FLOAT", np.float32),
    "value_floats": (12, "FLOATS", np.float32),
    "value_int": (12, "INT", np.int64),
    "value_ints": (12, "INTS", np.int64),
    "value_string": (12, "STRING", None),
    "value_strings": (12, "STRINGS", None),
}


@dataclass(frozen=True)
class Step:
    """A node: an operator, or None where the output is the input.

    Attributes:
        inputs: by the operator's field, the tensor that it reads.
        numbers: by the operator's field, the value that it reads before it can be compiled.
        outputs: by the operator's field, the value that it gives.
        wanted: those of the outputs that the model's own follow from; without any the node is checked, but never run.
        last: values that no later step to run reads.
    """

    node: Node
    operator: Operator | None
    inputs: Mapping[str, str]
    numbers: Mapping[str, str]
    outputs: Mapping[str, str]
    attributes: Mapping[str, object]
    wanted: Mapping[str, str] = dataclasses.field(default_factory=dict)
    last: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A step that is compiled for shapes; `function` is None where the output is the input."""

    function: Callable[..., Any] | None
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]
    last: tuple[str, ...]


class Graph:
    """All of a model that does not depend on the shapes of its inputs.

    Raises:
        Unsupported: with each node that this package lacks.
        SpecopsError: the model is not valid.
        ValidationError: a node breaks its operator's rules.
    """

    def __init__(self, model: Model) -> None:
        self.subject = model.subject
        self.inputs = {value.name: value for value in model.inputs}
        self.outputs = tuple(value.name for value in model.outputs)
        self._declared = model.outputs
        self._violations: list[Violation] = []
        self.required = tuple(n for n in self.inputs if n not in model.constants)
        steps, self.constants = self._steps(model)
        self._check_names(model)
        ordered = self._ordered(steps)
        self._check_types(ordered, model)
        if self._violations:
            raise ValidationError(self._violations)
        self._ordered_steps = self._needed(ordered)
        to_run = [step for step in self._ordered_steps if step.wanted]
        read = {n for step in to_run for n in step.inputs.values()} | {*self.outputs}
        self.numbers = {n for step in ordered for n in step.numbers.values()}
        self._numbers_to_run = {n for step in to_run for n in step.numbers.values()}
        self._described = {n: (a.dtype, a.shape) for n, a in self.constants.items()}
        self._told = {n: a for n, a in self.constants.items() if n in self.numbers}
        self.constants = {n: a for n, a in self.constants.items() if n in read}
        self._make_cache()

    def _make_cache(self) -> None:
        self._plan = lru_cache(maxsize=_MAX_PLANS)(self._compile)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_cache()

    def plan(
        self, shapes: Mapping[str, Shape], numbers: Mapping[str, Numbers] = MappingProxyType({})
    ) -> tuple[Call, ...]:
        """The calls for inputs of these shapes, and of these values where these decide what is computed.

        Of an input that is not given, those of its initializer.
        """
        return self._plan(tuple(shapes.items()), tuple(numbers.items()))[0]

    def compile_ahead(self) -> None:
        """Compile for the shapes that a model gives of its inputs, if it does; then its outputs' must be right.

        Where it gives only some of them, the nodes that these decide are checked.
        """
        sizes = {n: self.inputs[n].sizes for n in self.required}
        known = {
            name: tuple(size for size in shape if isinstance(size, int))
            for name, shape in sizes.items()
            if shape is not None and all(isinstance(size, int) for size in shape)
        }
        if len(known) < len(sizes) or self._numbers_to_run.intersection(self.required):
            self._compile(tuple(known.items()), ())
            return
        _, shapes = self._plan(tuple(known.items()), ())
        for value in self._declared:
            if not _fits(shapes[value.name], value.sizes):
                said, found = shape_shown(value), list(shapes[value.name])
                raise self.invalid(
                    f"output {quoted(value.name)} is said to be {said}, but is {found}"
                )

    def invalid(self, problem: str) -> SpecopsError:
        return SpecopsError(f"{self.subject} is not valid: {problem}")

    # --- checks that need no shapes ---

    def _check_names(self, model: Model) -> None:
        """Each value has one source, and each that is read has one."""
        if len(self.inputs) < len(model.inputs):
            raise self.invalid("two inputs have one name")
        if not model.outputs:
            raise self.invalid("it has no outputs")
        sources = {*self.inputs, *model.constants}
        for node in model.nodes:
            for name in filter(None, node.outputs):
                if name in sources:
                    raise self.invalid(f"{node} gives {quoted(name)}, which is there already")
                sources.add(name)
        for node in model.nodes:
            for name in filter(None, node.inputs):
                if name not in sources:
                    raise self.invalid(f"{node} reads {quoted(name)}, which nothing gives")
        for name in self.outputs:
            if name not in sources:
                raise self.invalid(f"nothing gives its output {quoted(name)}")

    def _opset(self, model: Model, missing: list[str]) -> int:
        """The operator set of ONNX's own operators; 0 where no node needs one."""
        opset = model.opsets.get(_DOMAIN, 0)
        if _DOMAIN in model.opsets and opset < 1:
            raise self.invalid(f"it imports operator set {opset}")
        if not opset and any(node.domain == _DOMAIN for node in model.nodes):
            raise self.invalid(f"it imports no operator set of domain {_DOMAIN}")
        if opset > NEWEST_OPSET:
            missing.append(f"it imports operator set {opset}; the newest known is {NEWEST_OPSET}")
        return min(opset, NEWEST_OPSET)

    def _steps(self, model: Model) -> tuple[list[Step], dict[str, np.ndarray]]:
        """A step for each node but Constant, and the constants that these give beside the model's own."""
        missing = list(model.missing)
        opset = self._opset(model, missing)
        steps = []
        constants = dict(model.constants)
        for node in model.nodes:
            reason = _lacking(node, model.opsets)
            if reason is not None:
                missing.append(f"{node}: {reason}")
            elif node.operator == "Constant":
                name = self._single(node, 0)[1]
                constants[name] = self._constant(node, opset)
            elif node.operator == "Identity":
                (source,), name = self._single(node, 1)
                self._no_attributes(node)
                steps.append(Step(node, None, {"input": source}, {}, {"output": name}, {}))
            else:
                steps.append(self._step(node, OPERATORS[node.operator], opset))
        given = {n: step for step in steps for n in step.outputs.values()}
        sourced = []
        for step in steps:
            numbers = {field: _source(name, given) for field, name in step.numbers.items()}
            for field, source in numbers.items():
                if source in given and given[source].operator is not None:
                    reason = "is computed by the model; it must be a constant or an input"
                    missing.append(f"{step.node}: what it reads as {field} {reason}")
            sourced.append(replace(step, numbers=numbers))
        if missing:
            raise Unsupported(self.subject, missing, f"Operators are {', '.join(_SUPPORTED)}.")
        return sourced, constants

    def _single(self, node: Node, count: int) -> tuple[list[str], str]:
        """The names that a node of so many inputs reads, and the one that it gives; all must be there."""
        inputs, outputs = [n for n in node.inputs if n], [n for n in node.outputs if n]
        names = [node.inputs, inputs, node.outputs, outputs]
        if [*map(len, names)] != [count, count, 1, 1]:
            raise self.invalid(f"{node}: {node.operator} has {count} inputs and one output")
        return inputs, outputs[0]

    def _no_attributes(self, node: Node) -> None:
        for name in node.attributes:
            raise self.invalid(f"{node}: {node.operator} has no attribute {quoted(name)}")

    def _constant(self, node: Node, opset: int) -> np.ndarray:
        if len(node.attributes) != 1:
            raise self.invalid(f"{node}: Constant has exactly one attribute")
        ((name, attribute),) = node.attributes.items()
        since, kind, dtype = _CONSTANTS.get(name, (0, "", None))
        if not since:
            raise self.invalid(f"{node}: Constant has no attribute {quoted(name)}")
        if opset < since:
            raise self.invalid(
                f"{node}: Constant at operator set {opset} has no {name}; it has it from version {since} on"
            )
        if attribute.kind != kind:
            raise self.invalid(f"{node}: {name} is of kind {attribute.kind}, not {kind}")
        if dtype is None:
            tensor: np.ndarray = attribute.value
            return tensor
        array = np.array(attribute.value, dtype)
        array.flags.writeable = False
        return array

    def _step(self, node: Node, versions: Versions, opset: int) -> Step:
        operator = versions.in_force(opset)
        found: list[Violation] = []
        ends: dict[str, dict[str, str]] = {}
        for kind, names in (("input", node.inputs), ("output", node.outputs)):
            fields = [f for f in operator.fields if f.kind == kind]
            for name in names[len(fields) :]:
                if name:
                    found.append(self._surplus(versions, operator, kind, len(names)))
                    break
            ends[kind] = {f.name: n for f, n in zip(fields, names, strict=False) if n}
            for field in fields:
                needed = field.default is None and field.axes_of is None
                if kind == "input" and needed and field.name not in ends[kind]:
                    found.append(operator.violation("absent", field.name, "none", "an input"))
        if not ends["output"]:
            found.append(operator.violation("absent", "outputs", "none", "an output with a name"))
        attributes = self._attributes(node, versions, operator, found)
        self._violations += self._placed(found, node, operator)
        told = {field.name for field in operator.told}
        inputs = {f: n for f, n in ends["input"].items() if f not in told}
        numbers = {f: n for f, n in ends["input"].items() if f in told}
        return Step(node, operator, inputs, numbers, ends["output"], attributes)

    def _surplus(self, versions: Versions, operator: Operator, kind: str, count: int) -> Violation:
        known = [f for f in operator.fields if f.kind == kind]
        later = [f for f in versions.newest.fields if f.kind == kind][len(known) :]
        if later:
            return versions.unknown(operator, later[0].name)
        return operator.violation(f"{kind}_count", f"{kind}s", str(count), f"at most {len(known)}")

    def _attributes(
        self, node: Node, versions: Versions, operator: Operator, found: list[Violation]
    ) -> dict[str, object]:
        fields = {f.name: f for f in operator.told if f.kind == "attribute"}
        every = [f for o in versions.operators.values() for f in o.told]
        known = {f.name for f in every if f.kind == "attribute"}
        attributes: dict[str, object] = {}
        for name, attribute in node.attributes.items():
            if name in fields:
                field = fields[name]
                try:
                    attributes[name] = _typed(field, attribute)
                except NotUnderstood as problem:
                    found.append(
                        operator.violation("field_type", name, problem.found, problem.allowed, name)
                    )
            elif name in known:
                found.append(versions.unknown(operator, name))
            else:
                allowed = f"one of {', '.join(fields)}"
                found.append(operator.violation("attribute", quoted(name), "an attribute", allowed))
        for name, field in fields.items():
            if field.default is None and field.axes_of is None and name not in node.attributes:
                found.append(operator.violation("absent", name, "none", "a value", name))
        return attributes

    def _ordered(self, steps: list[Step]) -> list[Step]:
        """Each step behind those whose values it reads; otherwise in the order of the nodes."""
        giver = {name: i for i, step in enumerate(steps) for name in step.outputs.values()}
        waiting = [{giver[n] for n in step.inputs.values() if n in giver} for step in steps]
        readers: dict[int, list[int]] = {}
        for i, needs in enumerate(waiting):
            for j in needs:
                readers.setdefault(j, []).append(i)
        ready = [i for i, needs in enumerate(waiting) if not needs]
        order: list[Step] = []
        while ready:
            i = heapq.heappop(ready)
            order.append(steps[i])
            for reader in readers.get(i, ()):
                waiting[reader].discard(i)
                if not waiting[reader]:
                    heapq.heappush(ready, reader)
        if len(order) < len(steps):
            stuck = next(step.node for i, step in enumerate(steps) if waiting[i])
            raise self.invalid(f"{stuck} is part of a circle, or reads from one")
        return order

    def _check_types(self, steps: list[Step], model: Model) -> None:
        """The data type of each value follows from those of the inputs and constants."""
        dtypes: dict[str, str | None] = {
            name: reading.data_type(array.dtype) for name, array in self.constants.items()
        }
        for value in model.inputs:
            assert value.dtype is not None
            if dtypes.setdefault(value.name, value.dtype) != value.dtype:
                raise self.invalid(
                    f"input {quoted(value.name)} is {value.dtype}, its initializer {dtypes[value.name]}"
                )
            if value.name in self.constants:
                found = self.constants[value.name].shape
                if not _fits(found, value.sizes):
                    raise self.invalid(
                        f"input {quoted(value.name)} is {shape_shown(value)}, its initializer {list(found)}"
                    )
        for step in steps:
            if step.operator is None:
                dtypes[step.outputs["output"]] = dtypes.get(step.inputs["input"])
                continue
            given = {field: dtypes.get(name) for field, name in step.inputs.items()}
            self._check_support(step, step.operator, given)
            self._check_numbers(step, step.operator, dtypes)
            for field in step.operator.fields:
                if field.kind == "output" and field.name in step.outputs:
                    like, _, part = str(field.dtype).partition(".")
                    dtypes[step.outputs[field.name]] = given.get(like) if part else like
        for value in model.outputs:
            if (
                None not in (value.dtype, dtypes.get(value.name))
                and value.dtype != dtypes[value.name]
            ):
                raise self.invalid(
                    f"output {quoted(value.name)} is said to be {value.dtype}, but is {dtypes[value.name]}"
                )

    def _check_numbers(
        self, step: Step, operator: Operator, dtypes: Mapping[str, str | None]
    ) -> None:
        """Numbers that a node is compiled for are int64, in one dimension."""
        found = []
        for field, name in step.numbers.items():
            if dtypes.get(name) != "INT64":
                shown = str(dtypes.get(name))
                found.append(operator.violation("supported_data_type", field, shown, "INT64"))
            sizes = self.inputs[name].sizes if name in self.inputs else None
            if name in self.constants:
                sizes = self.constants[name].shape
            if sizes is not None and len(sizes) != 1:
                shown = f"{len(sizes)} dimensions"
                found.append(
                    operator.violation("supported_dimension_count", field, shown, "1 dimension")
                )
        self._violations += self._placed(found, step.node, operator)

    def _check_support(
        self, step: Step, operator: Operator, given: Mapping[str, str | None]
    ) -> None:
        for field, dtype in given.items():
            allowed = operator.support[0].tensors[field].dtypes
            if dtype is not None and dtype not in allowed:
                violation = operator.violation(
                    "supported_data_type", field, dtype, ", ".join(allowed), operator.support_place
                )
                self._violations += self._placed([violation], step.node, operator)

    def _placed(
        self, violations: Iterable[Violation], node: Node, operator: Operator
    ) -> list[Violation]:
        """Violations that tell the node, too."""
        label = f"{self.subject}, {node}, {operator.name}"
        return [replace(violation, operator=label) for violation in violations]

    def _needed(self, steps: list[Step]) -> tuple[Step, ...]:
        """The steps, each with what of its outputs the model's own follow from."""
        read = set(self.outputs)
        needed = []
        for step in reversed(steps):
            wanted = {f: n for f, n in step.outputs.items() if n in read}
            last = tuple({n for n in step.inputs.values() if n not in read}) if wanted else ()
            if wanted:
                read.update(step.inputs.values())
            needed.append(replace(step, wanted=wanted, last=last))
        return tuple(reversed(needed))

    # --- compilation for shapes ---

    def _compile(
        self, shapes: tuple[tuple[str, Shape], ...], numbers: tuple[tuple[str, Numbers], ...]
    ) -> tuple[tuple[Call, ...], dict[str, Shape]]:
        """The calls, and the shapes of the model's outputs; nodes that none of these follow from are checked alone."""
        known = dict(self._described)
        told: dict[str, object] = {**self._told, **dict(numbers)}
        for name, shape in shapes:
            dtype = self.inputs[name].dtype
            assert dtype is not None
            known[name] = (DATA_TYPES[dtype].numpy, shape)
        calls = []
        found: list[Violation] = []
        for step in self._ordered_steps:
            if not (
                known.keys() >= {*step.inputs.values()} and told.keys() >= {*step.numbers.values()}
            ):
                continue  # reads what a step with violations would give, or what only a run gives
            sources = tuple(step.inputs.values())
            if step.operator is None:
                known[step.outputs["output"]] = known[sources[0]]
                if step.wanted:
                    calls.append(Call(None, sources, tuple(step.wanted.values()), step.last))
                continue
            inputs = {field: known[name] for field, name in step.inputs.items()}
            values = {**step.attributes, **{f: told[n] for f, n in step.numbers.items()}}
            try:
                compiled = _compiled(step.operator, inputs, values, step.outputs)
            except ValidationError as error:
                found += self._placed(error.violations, step.node, step.operator)
                continue
            for field, tensor in compiled.outputs.items():
                if field in step.outputs:
                    known[step.outputs[field]] = (tensor.numpy_dtype, tensor.sizes)
            if not step.wanted:
                continue
            if len(step.wanted) < len(step.outputs):
                compiled = _compiled(step.operator, inputs, values, step.wanted)
            names = tuple(step.wanted.get(field) for field in compiled.outputs)
            calls.append(Call(compiled, sources, names, step.last))
        if found:
            raise ValidationError(found)
        return tuple(calls), {name: known[name][1] for name in self.outputs if name in known}


def _compiled(
    operator: Operator,
    inputs: Mapping[str, tuple[np.dtype, Shape]],
    attributes: Mapping[str, object],
    outputs: Container[str],
) -> CompiledOperator:
    """The operator with those of its optional outputs that are among these fields."""
    optional = (f.name for f in operator.fields if f.optional is not None)
    return request.compiled(
        operator, inputs, attributes, {name: Asked(name in outputs) for name in optional}
    )


def _source(name: str, given: Mapping[str, Step]) -> str:
    """What a value is the same as, before all Identity nodes."""
    for _ in range(len(given)):  # a circle is refused elsewhere
        if name not in given or given[name].operator is not None:
            break
        name = given[name].inputs["input"]
    return name


def _lacking(node: Node, opsets: Mapping[str, int]) -> str | None:
    """Why this package does not have a node's operator; None where it has."""
    if node.function:
        return f"{_in_full(node, opsets)} is a function of the model"
    if node.domain != _DOMAIN:
        return f"operator {_in_full(node, opsets)} is of another domain than {_DOMAIN}"
    if any(a.kind in ("GRAPH", "GRAPHS") for a in node.attributes.values()):
        return f"operator {_in_full(node, opsets)} has a subgraph"
    if node.operator in _BUILT_IN:
        return None
    if node.operator not in OPERATORS:
        return f"operator {_in_full(node, opsets)} is not supported"
    first = min(OPERATORS[node.operator].operators)
    if opsets.get(_DOMAIN, 0) < first:
        return f"operator {_in_full(node, opsets)} is there from {first} on"
    return None


def _in_full(node: Node, opsets: Mapping[str, int]) -> str:
    """A node's operator with its version, its domain and the operator set; onnx takes its time to tell the version."""
    opset = opsets.get(node.domain)
    version = "" if opset is None else newest_version(node, opset)
    at = "" if opset is None else f" at operator set {opset}"
    return f"{quoted(node.operator)} {version}of domain {quoted(node.domain)}{at}"


_KINDS = {
    "uint": "INT",
    "int": "INT",
    "bool": "INT",
    "uint[]": "INTS",
    "int[]": "INTS",
    "float": "FLOAT",
}


def _typed(field: Field, attribute: Attribute) -> object:
    """An attribute's value, as the operator's functions take it."""
    kind = _KINDS.get(field.type, "STRING")
    if attribute.kind != kind:
        raise NotUnderstood(f"a value of kind {attribute.kind}", f"a value of kind {kind}")
    if field.axes_of is None:
        reading.attribute(field, attribute.value)
    value: object = attribute.value
    return value


def _fits(shape: Sequence[int], sizes: Sequence[int | str | None] | None) -> bool:
    return sizes is None or (
        len(shape) == len(sizes)
        and all(not isinstance(s, int) or s == f for f, s in zip(shape, sizes, strict=True))
    )


def shape_shown(value: Value) -> str:
    """The shape that a model gives an input or output."""
    if value.sizes is None:
        return "of any shape"
    return f"[{', '.join('?' if s is None else str(s) for s in value.sizes)}]"
