"""The operators of this package as a backend of ONNX: runs models whose every node they cover.

>>> import numpy as np
>>> import onnx
>>> from specops.onnx import backend
>>> model = onnx.parser.parse_model('''
...     <ir_version: 8, opset_import: ["": 17]>
...     example (float[batch, 3] x) => (float[batch, 3] y) { y = Hardmax(x) }
... ''')
>>> backend.run_model(model, [np.array([[1, 7, 3]], np.float32)])
Outputs(y=array([[0., 1., 0.]], dtype=float32))

`prepare` is for models that run more than once; a run takes arrays of any shapes that the model allows:

>>> prepared = backend.prepare(model)
>>> prepared.run({"x": np.eye(2, 3, dtype=np.float32)})["y"].tolist()
[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]

Beside the operators of `specops.onnx`, each in the version that the model's operator set has in force, there are
Constant and Identity. The axes of a reduction and the output_shape of MaxUnpool are constants or inputs of the model:
one that computes them is refused. Everything is checked before anything runs, also nodes that no output needs, which
are not run; there is no other engine to fall back to.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specops import arrays
from specops.errors import SpecopsError, Unsupported, ValidationError, Violation
from specops.reading import MAX_ENTRIES, shown
from specops.tensor import native
from specops.validation import Subject
from specops.vocabulary import DATA_TYPES, NEWEST_OPSET

try:
    from onnx.backend import base
except ImportError as error:
    raise ImportError(f"{__name__} needs the onnx package: pip install onnx") from error

from specops.onnx.graph import Graph, shape_shown
from specops.onnx.model import of_node, quoted, read

__all__ = [
    "Backend",
    "PreparedModel",
    "Unsupported",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

_PAGE = "https://onnx.ai/onnx/repo-docs/IR.html"
_NODE = Subject("the node", _PAGE)


@functools.lru_cache(maxsize=256)
def _kind(names: tuple[str, ...]) -> Any:
    """The class of what runs return: a named tuple, pickled by its names, as its class has no place to be found at."""
    kind = base.namedtupledict("Outputs", names)
    kind.__reduce__ = lambda outputs: (_outputs, (names, tuple(outputs)))
    return kind


def _outputs(names: tuple[str, ...], arrays: Sequence[np.ndarray]) -> Any:
    return _kind(names)(*arrays)


# What callers of this package's functions may take for an option of the backend.
_NO_OPTIONS = {
    "opset": "opset_version is the operator set of a node; a model has its own",
    "opset_version": "a model has its own operator set",
    "out": "outputs are new arrays",
}


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that would change the result if they were any; others are for other backends."""
    for name, instead in _NO_OPTIONS.items():
        if name in options:
            raise SpecopsError(f"the backend does not take {name}=; {instead}")


class PreparedModel(base.BackendRep):
    """A model that is checked and ready to run on many arrays; made by `prepare`.

    It is compiled for each combination of input shapes when that first occurs, and stays so for the last 32 of them.

    Attributes:
        input_names: the inputs that each run must give, in the model's order.
        optional_input_names: inputs that have an initializer, which a run may replace by name.
        output_names: the outputs, in the model's order.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._subject = Subject(graph.subject, _PAGE)
        self.input_names = graph.required
        self.optional_input_names = tuple(n for n in graph.inputs if n not in graph.required)
        self.output_names = graph.outputs
        graph.compile_ahead()

    def __reduce__(self) -> tuple[type[PreparedModel], tuple[Graph]]:
        return type(self), (self._graph,)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Run on input arrays.

        Args:
            inputs: a sequence of the required inputs (or of all inputs) in the model's order, a mapping from names, or
                the only required input itself. Arrays of the model's data types and shapes, with any strides; they
                are never written to. bfloat16 is that of ml_dtypes.
            kwargs: of other backends; without effect.

        Returns:
            The outputs, as a named tuple of arrays that share no memory with the inputs; also by name, as `y["name"]`.

        Raises:
            ValidationError: an input is missing or unknown, is not of the model's data type or shape, or its shape
                breaks a rule of a node's operator.
            SpecopsError: outputs to write to are given, as `out`.
        """
        _check_options(kwargs)
        graph = self._graph
        given = self._checked(self._named(inputs))
        shapes = {name: array.shape for name, array in given.items()}
        numbers = {n: self._numbers(n, given[n]) for n in graph.numbers if n in given}
        calls = graph.plan(shapes, numbers)
        values = {**graph.constants, **given}
        foreign = {id(array) for array in values.values()}
        for call in calls:
            sources = [values[name] for name in call.inputs]
            result = sources[0] if call.function is None else call.function(*sources)
            results = result if len(call.outputs) > 1 else (result,)
            for name, array in zip(call.outputs, results, strict=True):
                if name is not None:
                    values[name] = array
            for name in call.last:
                del values[name]
        outputs = []
        for name in graph.outputs:
            array = values[name]
            outputs.append(array.copy() if id(array) in foreign else array)
            foreign.add(id(array))
        return _outputs(graph.outputs, outputs)

    def _numbers(self, name: str, array: np.ndarray) -> tuple[int, ...]:
        """The values of an input that a node is compiled for, such as axes."""
        if array.ndim != 1 or array.size > MAX_ENTRIES:
            allowed = f"one dimension of at most {MAX_ENTRIES} numbers"
            raise self._subject.refusal("shape", name, f"shape {list(array.shape)}", allowed)
        return tuple(array.tolist())

    def _named(self, inputs: Any) -> dict[str, Any]:
        """Each given input by its name; those that are missing or unknown are refused."""
        required, every = self._graph.required, tuple(self._graph.inputs)
        if isinstance(inputs, Mapping):
            given = {n: inputs[n] for n in every if n in inputs}
            found = [
                self._subject.violation("unknown_input", str(name), "a value", _listed(every))
                for name in inputs
                if name not in given
            ]
            found += [
                self._subject.violation("missing_input", name, "none", "an array")
                for name in required
                if name not in given
            ]
            if found:
                raise ValidationError(found)
            return given
        several = isinstance(inputs, list | tuple)
        values = inputs if several else [inputs]
        for names in (required, every):
            if len(values) == len(names):
                return dict(zip(names, values, strict=True))
        text = f"{len(values)}" if several else f"a value of type {type(inputs).__name__}"
        raise self._subject.refusal("input_count", "inputs", text, _listed(required))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The inputs as arrays of the model's data types and shapes."""
        found: list[Violation] = []
        checked = {}
        symbols: dict[str, tuple[int, str]] = {}
        for name, value in given.items():
            try:
                array = arrays.as_array(value, self._subject, name)
            except ValidationError as error:
                found += error.violations
                continue
            declared = self._graph.inputs[name]
            assert declared.dtype is not None
            dtype = DATA_TYPES[declared.dtype].numpy
            if native(array.dtype) != dtype:
                found.append(
                    self._subject.violation(
                        "data_type", name, f"dtype {array.dtype}", f"dtype {dtype}"
                    )
                )
            elif not array.dtype.isnative:
                found.append(arrays.byte_order(array.dtype, self._subject, name))
            sizes = declared.sizes
            if sizes is not None:
                fits = len(sizes) == array.ndim
                for size, symbol in zip(array.shape, sizes, strict=False):
                    if isinstance(symbol, int):
                        fits = fits and size == symbol
                    elif symbol is not None and fits:
                        first, where = symbols.setdefault(symbol, (size, name))
                        if first != size:
                            allowed = f"{symbol} = {first}, as in {where}"
                            found.append(
                                self._subject.violation(
                                    "symbol", name, f"{symbol} = {size}", allowed
                                )
                            )
                if not fits:
                    text = f"shape {list(array.shape)}"
                    found.append(
                        self._subject.violation(
                            "shape", name, text, f"shape {shape_shown(declared)}"
                        )
                    )
            checked[name] = array
        if found:
            raise ValidationError(found)
        return checked


class Backend(base.Backend):
    """The interface of `onnx.backend.base.Backend`; the functions of this module are its methods."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Check a model, once for many runs.

        The shapes that a model gives of its outputs are compared with those that follow from its inputs where it gives
        all sizes of these; elsewhere they are not.

        Args:
            model: a path, bytes, an open binary file, or an onnx.ModelProto. Tensors that are stored in other files are
                read where a path is given and they lie in the model's folder.
            device: "CPU".
            kwargs: of other backends; without effect.

        Returns:
            The model, ready to `run`; compiled too where it gives the shapes of its inputs.

        Raises:
            Unsupported: the model has nodes, types or operator sets that this package lacks; with each of them.
            ValidationError: nodes break rules of their operators; with every violation. What depends on shapes that the
                model does not give is checked by a run.
            SpecopsError: the model cannot be read, or is not valid; or an option is none of the backend's.
        """
        if not cls.supports_device(device):
            raise Unsupported(f"device {device!r}", ["the only device is CPU"])
        _check_options(kwargs)
        return PreparedModel(Graph(read(model)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Prepare a model and run it once: see `prepare` and `PreparedModel.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: Any,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, Sequence[int]]] | None = None,
        *,
        opset_version: int = NEWEST_OPSET,
        **kwargs: Any,
    ) -> Any:
        """Run one node.

        Args:
            node: an onnx.NodeProto.
            inputs: an array for each input of the node that has a name, in its order; or a mapping from these names.
            device: "CPU".
            outputs_info: data type and shape of each output, which the results must have; None where nothing is said.
            opset_version: the operator set, which picks the version in force.
            kwargs: of other backends; without effect.

        Returns:
            The outputs that have a name, as a named tuple of arrays.

        Raises:
            SpecopsError: as `prepare` and `PreparedModel.run`.

        >>> import numpy as np
        >>> import onnx
        >>> from specops.onnx import backend
        >>> node = onnx.helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
        >>> backend.run_node(node, [np.array([[1, 7, 3]], np.float32)], opset_version=13)
        Outputs(y=array([1]))
        """
        if not cls.supports_device(device):
            raise Unsupported(f"device {device!r}", ["the only device is CPU"])
        _check_options(kwargs)
        names, values = _node_inputs(node, inputs)
        taken = [
            arrays.as_array(value, _NODE, name) for name, value in zip(names, values, strict=True)
        ]
        model = of_node(node, dict(zip(names, taken, strict=True)), opset_version)
        results = PreparedModel(Graph(read(model))).run(taken)
        wanted: list[tuple[np.dtype, tuple[int, ...]]] = []
        expected: Any = outputs_info
        try:
            for expected in outputs_info or ():
                dtype, shape = expected
                wanted.append((np.dtype(dtype), tuple(shape)))
        except (TypeError, ValueError):
            found, allowed = shown(expected), "a data type and a shape for each output"
            raise _NODE.refusal("outputs_info", "outputs_info", found, allowed) from None
        for i, (dtype, shape) in enumerate(wanted):
            array = results[i] if i < len(results) else None
            if array is None or array.dtype != dtype or array.shape != shape:
                found = "none" if array is None else f"{array.dtype} {list(array.shape)}"
                allowed = f"{dtype} {list(shape)}, from outputs_info"
                raise _NODE.refusal("outputs_info", f"output {i}", found, allowed)
        return results

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` takes the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except SpecopsError:
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device: on "CPU", or "CPU:0"."""
        return device in ("CPU", "CPU:0")


def _node_inputs(node: Any, inputs: Any) -> tuple[list[str], list[Any]]:
    """The names of a node's inputs, each once, with the value given for each."""
    try:
        every = [str(name) for name in node.input if name]
    except (AttributeError, UnicodeDecodeError):
        raise SpecopsError(f"a node is an onnx.NodeProto, found {type(node).__name__}") from None
    names = list(dict.fromkeys(every))
    if isinstance(inputs, Mapping):
        inputs = [inputs.get(name) for name in names]
    elif not isinstance(inputs, list | tuple):
        inputs = [inputs]
    if len(inputs) != len(names):
        raise _NODE.refusal("input_count", "inputs", f"{len(inputs)}", _listed(names))
    return names, list(inputs)


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(map(quoted, names))}" if names else "none"


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
