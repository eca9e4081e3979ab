"""Reading an ONNX model: from a file, bytes or a ModelProto to plain values. Nothing is interpreted here.

What is read may be damaged or hostile: every failure is a SpecopsError.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from specops.errors import NoMemoryError, SpecopsError
from specops.vocabulary import DATA_TYPES

_SPARSE_LIMIT = 2**31  # bytes of a sparse tensor made dense; a file can hold no more in a dense one
_ONNX_NAMES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}
_ELEMENT_TYPES: dict[int, str] = {
    onnx.TensorProto.DataType.Value(_ONNX_NAMES.get(name, name)): name for name in DATA_TYPES
}
_NUMBERS = {name: number for number, name in _ELEMENT_TYPES.items()}

# The field that holds the elements of a tensor without raw data; of all other data types `int32_data`.
_TYPED_DATA = {
    "FLOAT32": "float_data",
    "FLOAT64": "double_data",
    "INT64": "int64_data",
    "UINT32": "uint64_data",
    "UINT64": "uint64_data",
}
_BITS = ("FLOAT16", "BFLOAT16")  # whose typed data are their bits as integers

# The kind of an attribute by the field that holds its value, as far as version 1 of the IR has them.
_KINDS = {
    "f": "FLOAT",
    "i": "INT",
    "s": "STRING",
    "t": "TENSOR",
    "g": "GRAPH",
    "floats": "FLOATS",
    "ints": "INTS",
    "strings": "STRINGS",
    "tensors": "TENSORS",
    "graphs": "GRAPHS",
}


@dataclass(frozen=True)
class Value:
    """What a model says of one of its inputs or outputs.

    Attributes:
        name: of the value.
        dtype: the vocabulary's name of its data type; None where an output's is not said.
        sizes: a number, a symbol, or None for an unknown size; None where even the rank is unknown.
    """

    name: str
    dtype: str | None
    sizes: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Attribute:
    """An attribute's ONNX kind ("INT", "FLOATS", ...), and its value where it is a number, text or tensor."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Node:
    """One node; `function` says whether it calls a function of the model itself."""

    index: int
    name: str
    domain: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    function: bool

    def __str__(self) -> str:
        return f"node {self.index} ({quoted(self.name)})" if self.name else f"node {self.index}"


@dataclass(frozen=True)
class Model:
    """A model's only graph, with the operator set that it imports of each domain.

    `missing` are inputs, outputs and constants of kinds that this package lacks, one sentence each.
    """

    subject: str
    opsets: Mapping[str, int]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    constants: Mapping[str, np.ndarray]
    nodes: tuple[Node, ...]
    missing: tuple[str, ...]


def quoted(text: str) -> str:
    """Text from a model as part of a message."""
    short = text if len(text) <= 60 else f"{text[:57]}..."
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in short)
    return f'"{"".join(shown)}"'


def _text(value: Any) -> str:
    """Text of a model; protobuf gives bytes where it is damaged."""
    if not isinstance(value, str):
        raise ValueError("a text in it is not UTF-8")
    return value


def newest_version(node: Node, opset: int) -> str:
    """The version of an operator that this package lacks, where onnx knows it: "version 11 "."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        version = onnx.defs.get_schema(node.operator, opset, domain).since_version
    except Exception:  # of a domain, operator or set that onnx does not know
        return ""
    return f"version {version} "


def of_node(node: Any, inputs: Mapping[str, np.ndarray], opset: int) -> Any:
    """A model of one node, for these inputs. Raises SpecopsError."""
    with _located("the node"):
        model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
        model.opset_import.add(domain="", version=opset)
        model.graph.node.append(node)
        for name, array in inputs.items():
            dtype = next((n for n, e in DATA_TYPES.items() if e.numpy == array.dtype), None)
            if dtype is None:
                raise SpecopsError(
                    f"input {quoted(name)} has data type {array.dtype}; known are {', '.join(DATA_TYPES)}"
                )
            tensor = model.graph.input.add(name=name).type.tensor_type
            tensor.elem_type = _NUMBERS[dtype]
            tensor.shape.SetInParent()
            for size in array.shape:
                tensor.shape.dim.add(dim_value=size)
        for name in node.output:
            if name:
                model.graph.output.add(name=name)
    return model


def read(source: Any) -> Model:
    """A model from a path, bytes, an open file or a ModelProto.

    Raises:
        SpecopsError: it cannot be read, or is no valid model.
    """
    folder: Path | None = None
    subject = "the model"
    if isinstance(source, onnx.ModelProto):
        proto = source
    else:
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            subject, folder = f"the model {path}", path.parent
            with _located(subject):
                content = path.read_bytes()
        elif isinstance(source, bytes | bytearray | memoryview):
            content = bytes(source)
        elif hasattr(source, "read"):
            with _located(subject):
                content = source.read()
            if not isinstance(content, bytes):
                raise SpecopsError("the model's file must be opened in binary mode")
        else:
            raise SpecopsError(
                f"a model is a path, bytes, an open binary file or an onnx.ModelProto; found "
                f"{type(source).__name__}"
            )
        with _located(subject):
            proto = onnx.ModelProto.FromString(content)
    with _located(subject):
        return _Reader(proto, subject, folder).model()


@contextmanager
def _located(subject: str) -> Iterator[None]:
    """Whatever goes wrong with a damaged file, as one SpecopsError."""
    try:
        yield
    except SpecopsError:
        raise
    except MemoryError:
        raise NoMemoryError(f"{subject} cannot be read: out of memory") from None
    except Exception as error:  # protobuf and the file system raise what they like
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SpecopsError(f"{subject} cannot be read: {text}") from error


class _Reader:
    def __init__(self, proto: Any, subject: str, folder: Path | None) -> None:
        self.proto, self.subject, self.folder = proto, subject, folder
        self.missing: list[str] = []  # what this package lacks

    def invalid(self, problem: str) -> SpecopsError:
        return SpecopsError(f"{self.subject} is not valid: {problem}")

    def model(self) -> Model:
        proto = self.proto
        if not 1 <= proto.ir_version <= onnx.IR_VERSION:
            raise self.invalid(
                f"its IR version is {proto.ir_version}; known are 1 to {onnx.IR_VERSION}"
                if proto.HasField("ir_version")
                else "it has no IR version"
            )
        if not proto.HasField("graph"):
            raise self.invalid("it has no graph")
        graph = proto.graph
        opsets = self.opsets()
        functions = {(_domain(f.domain), _text(f.name)) for f in proto.functions}
        nodes = tuple(self.node(i, n, functions) for i, n in enumerate(graph.node))
        constants: dict[str, np.ndarray] = {}
        for tensor in graph.initializer:
            name = _text(tensor.name)
            self.add(constants, name, self.tensor(tensor, f"initializer {quoted(name)}"))
        for sparse in graph.sparse_initializer:
            name = _text(sparse.values.name)
            self.add(constants, name, self.sparse(sparse, f"initializer {quoted(name)}"))
        inputs = tuple(self.value(v, "input") for v in graph.input)
        outputs = tuple(self.value(v, "output") for v in graph.output)
        missing = tuple(self.missing)
        return Model(self.subject, opsets, inputs, outputs, constants, nodes, missing)

    def add(self, constants: dict[str, np.ndarray], name: str, array: np.ndarray | None) -> None:
        if not name:
            raise self.invalid("an initializer has no name")
        if name in constants:
            raise self.invalid(f"there are two initializers {quoted(name)}")
        if array is not None:
            constants[name] = array

    def opsets(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for entry in self.proto.opset_import:
            domain = _domain(entry.domain)
            if found.setdefault(domain, entry.version) != entry.version:
                raise self.invalid(f"it imports two operator sets of domain {quoted(domain)}")
        if not self.proto.opset_import and self.proto.ir_version < 3:
            found["ai.onnx"] = 1
        return found

    def value(self, info: Any, kind: str) -> Value:
        name = _text(info.name)
        where = f"{kind} {quoted(name)}"
        if not name:
            raise self.invalid(f"an {kind} has no name")
        which = info.type.WhichOneof("value")
        if which is None and kind == "output":
            return Value(name, None, None)
        if which is None:
            raise self.invalid(f"{where} has no type")
        if which != "tensor_type":
            self.missing.append(f"{where} is of kind {which.removesuffix('_type')}, not a tensor")
            return Value(name, None, None)
        tensor = info.type.tensor_type
        if tensor.elem_type == onnx.TensorProto.UNDEFINED and kind == "output":
            return Value(name, None, None)
        dtype = self.dtype(tensor.elem_type, where)
        sizes = tuple(map(_size, tensor.shape.dim)) if tensor.HasField("shape") else None
        return Value(name, dtype, sizes)

    def dtype(self, number: int, where: str) -> str | None:
        if number in _ELEMENT_TYPES:
            return _ELEMENT_TYPES[number]
        if number == onnx.TensorProto.UNDEFINED:
            raise self.invalid(f"{where} has no data type")
        known = onnx.TensorProto.DataType.DESCRIPTOR.values_by_number
        name = known[number].name if number in known else f"number {number}"
        self.missing.append(f"{where} has data type {name}; known are {', '.join(DATA_TYPES)}")
        return None

    # --- nodes ---

    def node(self, index: int, proto: Any, functions: set[tuple[str, str]]) -> Node:
        domain = _domain(proto.domain)
        function = (domain, proto.op_type) in functions or bool(getattr(proto, "overload", ""))
        inputs, outputs = tuple(map(_text, proto.input)), tuple(map(_text, proto.output))
        label, operator = _text(proto.name), _text(proto.op_type)
        attributes: dict[str, Attribute] = {}
        node = Node(index, label, domain, operator, inputs, outputs, attributes, function)
        for attribute in proto.attribute:
            name = _text(attribute.name)
            if name in attributes:
                raise self.invalid(f"{node} has two attributes {quoted(name)}")
            attributes[name] = self.attribute(attribute, node)
        return node

    def attribute(self, proto: Any, node: Node) -> Attribute:
        where = f"{node}: attribute {quoted(proto.name)}"
        if proto.ref_attr_name:
            raise self.invalid(f"{where} refers to an attribute of a function")
        kind = self.kind(proto)
        if kind == "UNDEFINED":
            raise self.invalid(f"{where} has no type")
        constant = node.operator == "Constant" and node.domain == "ai.onnx" and not node.function
        value: Any = None
        if kind == "INT":
            value = proto.i
        elif kind == "INTS":
            value = tuple(proto.ints)
        elif kind == "FLOAT":
            value = proto.f
        elif kind == "FLOATS":
            value = tuple(proto.floats)
        elif kind == "STRING" and not constant:
            value = proto.s.decode("utf-8", "backslashreplace")
        elif kind == "TENSOR" and constant:
            value = self.tensor(proto.t, where)
        elif kind == "SPARSE_TENSOR" and constant:
            value = self.sparse(proto.sparse_tensor, where)
        elif proto.name in ("value_string", "value_strings") and constant:
            self.missing.append(f"{where} is a tensor of strings")
        return Attribute(kind, value)

    def kind(self, proto: Any) -> str:
        """The kind of an attribute; of version 1 of the IR, which had no types, the one whose field is set."""
        kinds = onnx.AttributeProto.AttributeType.DESCRIPTOR.values_by_number
        if self.proto.ir_version == 1 and not proto.HasField("type"):
            given = [_KINDS[f.name] for f, _ in proto.ListFields() if f.name in _KINDS]
            return given[0] if len(given) == 1 else "UNDEFINED"
        return kinds[proto.type].name if proto.type in kinds else "UNDEFINED"

    # --- tensors ---

    def tensor(self, proto: Any, where: str) -> np.ndarray | None:
        """A tensor's elements, not writable; None where this package lacks its data type."""
        name = self.dtype(proto.data_type, where)
        if proto.HasField("segment"):
            raise self.invalid(f"{where} is a segment of a tensor")
        shape = self.shape(
            proto.dims, where, 1 if name is None else DATA_TYPES[name].numpy.itemsize
        )
        if name is None:
            return None
        dtype = DATA_TYPES[name].numpy
        count = math.prod(shape)
        fields = [f.name for f, _ in proto.ListFields() if f.name.endswith("_data")]
        if len(fields) > 1:
            raise self.invalid(f"{where} has its elements in {' and '.join(fields)}")
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            content = self.external(proto, count * dtype.itemsize, where)
        elif proto.HasField("raw_data"):
            content = bytes(proto.raw_data)
        else:
            return self.typed(proto, name, shape, where)
        if len(content) != count * dtype.itemsize:
            raise self.invalid(
                f"{where} has {len(content)} bytes; {name} {list(shape)} has {count * dtype.itemsize}"
            )
        return _from_bytes(content, dtype).reshape(shape)

    def typed(self, proto: Any, name: str, shape: tuple[int, ...], where: str) -> np.ndarray:
        dtype, field = DATA_TYPES[name].numpy, _TYPED_DATA.get(name, "int32_data")
        elements = getattr(proto, field)
        if len(elements) != math.prod(shape):
            raise self.invalid(
                f"{where} has {len(elements)} elements in {field}; {list(shape)} has {math.prod(shape)}"
            )
        wide = {"float_data": np.float32, "double_data": np.float64, "uint64_data": np.uint64}
        array = np.array(elements, wide.get(field, np.int64))
        stored = np.dtype(np.uint16) if name in _BITS else dtype
        if stored.kind in "biu":
            limits = np.iinfo(stored) if stored.kind != "b" else None
            low, high = (limits.min, limits.max) if limits else (0, 1)
            beyond = array[(array < low) | (array > high)]
            if beyond.size:
                what = "bits of" if name in _BITS else "elements of"
                raise self.invalid(
                    f"{where} has {beyond[0]} in {field}; {what} {name} are {low} to {high}"
                )
        array = array.astype(stored, copy=False)
        array = array.view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def sparse(self, proto: Any, where: str) -> np.ndarray | None:
        """A sparse tensor made dense."""
        values = self.tensor(proto.values, f"{where}: values")
        indices = self.tensor(proto.indices, f"{where}: indices")
        shape = self.shape(proto.dims, where, 1 if values is None else values.itemsize)
        if values is None or indices is None:
            return None
        count = math.prod(shape)
        if count * values.itemsize > _SPARSE_LIMIT:
            raise self.invalid(f"{where} has {count} elements; dense it may have 2 GiB")
        if values.ndim != 1 or indices.dtype != np.int64 or len(indices.shape) not in (1, 2):
            raise self.invalid(f"{where} is no list of values with one INT64 index each")
        limits = np.array([count] if indices.ndim == 1 else shape, np.int64)
        places = indices.reshape(-1, 1) if indices.ndim == 1 else indices
        if (
            places.shape != (len(values), len(limits))
            or not ((places >= 0) & (places < limits)).all()
        ):
            raise self.invalid(f"{where} has indices outside its shape {list(shape)}")
        dense = np.zeros(shape, values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
        dense.flags.writeable = False
        return dense

    def shape(self, dims: Iterable[int], where: str, item_bytes: int) -> tuple[int, ...]:
        shape = tuple(dims)
        # NumPy counts an array's bytes in 63 bits, as if sizes of 0 were 1.
        elements = math.prod(size or 1 for size in shape)
        too_many = elements >= 2**62 or elements * item_bytes >= 2**63
        if len(shape) > 64 or any(size < 0 for size in shape) or too_many:
            raise self.invalid(f"{where} has impossible sizes {list(shape[:64])}")
        return shape

    def external(self, proto: Any, length: int, where: str) -> bytes:
        """Bytes from another file, which must lie in the model's own folder, also behind links."""
        entries = {_text(entry.key): _text(entry.value) for entry in proto.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise SpecopsError(
                f"{where} is stored in another file, {quoted(location)}: give the model by its path"
            )
        relative = Path(location)
        if not relative.parts or relative.anchor or ".." in relative.parts:
            raise self.invalid(
                f'{where} is stored at {quoted(location)}; allowed: a path below the model\'s folder, without ".."'
            )
        folder = self.folder.resolve()
        path = (folder / relative).resolve()
        if path == folder or not path.is_relative_to(folder):
            raise self.invalid(
                f"{where} is stored outside the model's folder, at {quoted(location)}"
            )
        offset = _byte_count(entries.get("offset", "0"))
        stored = _byte_count(entries.get("length", str(length)))
        if offset is None or stored != length:
            raise self.invalid(
                f"{where} has a wrong place in {quoted(location)}; its length is {length}"
            )
        if not stat.S_ISREG(path.stat().st_mode):
            raise self.invalid(f"{where} is stored in {quoted(location)}, which is no file")
        if path.stat().st_size < offset + length:
            raise self.invalid(f"{where} ends behind the end of {quoted(location)}")
        with path.open("rb") as file:
            file.seek(offset)
            content: bytes = file.read(length)
        return content


def _domain(domain: Any) -> str:
    """The operators of ONNX itself have an empty domain, or its long name."""
    return _text(domain) or "ai.onnx"


def _size(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None  # some exporters write -1
    return _text(dim.dim_param) or None


def _byte_count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _from_bytes(content: bytes, dtype: np.dtype) -> np.ndarray:
    """Little-endian elements as an array, without a copy where the machine has the same order."""
    if dtype == np.bool_:
        truth: np.ndarray = np.frombuffer(content, np.uint8) != 0
        truth.flags.writeable = False
        return truth
    stored = np.frombuffer(content, f"<u{dtype.itemsize}")
    array: np.ndarray = stored.astype(f"u{dtype.itemsize}", copy=False).view(dtype)
    return array
