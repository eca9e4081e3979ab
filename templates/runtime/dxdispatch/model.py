"""A whole model: resources, dispatchables and commands, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from specops.dxdispatch import files, npy
from specops.dxdispatch import values as initial
from specops.dxdispatch.files import Refused
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.operators import BindPoint, Dispatchable, dispatchable
from specops.dxdispatch.problems import Report, did_you_mean
from specops.dxdispatch.values import BUFFER_TYPES, Initial, Wrong

MAX_ENTRIES = 500  # resources, and dispatchables, so that checking them ends soon
_UINT32, _UINT64 = 2**32 - 1, 2**64 - 1
_IMAGES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Limits:
    """What a model may use, so that no file can exhaust a machine.

    Attributes:
        memory: bytes of all buffers together. Files may be as large in total, printed values take a sixteenth of it,
            and all commands together touch at most 64 times as many bytes of buffers.
    """

    memory: int = 1 << 30

    @property
    def printed(self) -> int:
        return self.memory // 16

    @property
    def touched(self) -> int:
        return self.memory * 64


@dataclass(frozen=True)
class Resource:
    """A buffer: `bytes` of it, of which the first `initial.nbytes` are filled; `dtype` is None for mixed values."""

    name: str
    node: Node
    dtype: str | None
    bytes: int
    initial: Initial

    @property
    def count(self) -> int:
        """Elements that were filled."""
        return 0 if self.dtype is None else self.initial.nbytes // BUFFER_TYPES[self.dtype].itemsize


@dataclass(frozen=True)
class Bound:
    """A tensor and the part of a buffer that it is in, from `offset` bytes on."""

    point: BindPoint
    resource: Resource
    offset: int


@dataclass(frozen=True)
class Dispatch:
    """Run an operator on buffers."""

    target: Dispatchable
    bindings: tuple[Bound, ...]  # without OWNED_BY_DML ones


@dataclass(frozen=True)
class Print:
    """Print a buffer's values."""

    resource: Resource
    verbose: bool


@dataclass(frozen=True)
class WriteFile:
    """Write a buffer to a file of the output folder."""

    node: Node
    resource: Resource
    path: str
    dimensions: tuple[int, ...]  # of a .npy file; empty for raw bytes

    @property
    def is_npy(self) -> bool:
        return self.path.lower().endswith(".npy")


Command = Dispatch | Print | WriteFile


@dataclass
class Model:
    """A checked model, ready to run."""

    file: str
    report: Report
    resources: dict[str, Resource] = field(default_factory=dict)
    dispatchables: dict[str, Dispatchable] = field(default_factory=dict)
    owned: dict[str, tuple[Bound, ...]] = field(default_factory=dict)  # by dispatchable
    commands: list[Command] = field(default_factory=list)
    output: Path | None = None


@dataclass(frozen=True)
class Folders:
    """Where a model's files are: read below one folder, written below another, if any."""

    model: Path
    input: Path
    output: Path | None


class Reader:
    """Reads a model from nodes; all that is wrong is in the report afterwards."""

    def __init__(
        self,
        report: Report,
        folders: Folders,
        limits: Limits,
        feature_level: str | None,
        *,
        will_run: bool,
    ) -> None:
        self._report = report
        self._folders = folders
        self._limits = limits
        self._level = feature_level
        self._will_run = will_run
        self._broken: set[tuple[str, str]] = set()  # (section, name) of what could not be read
        self._memory = self._printed = self._touched = self._written = 0
        self._exceeded: set[str] = set()  # of these limits, each told once
        self._sources: set[Path] = set()
        self.model = Model(report.file, report, output=folders.output)

    def read(self, root: Node) -> None:
        """Read all three sections."""
        if not isinstance(root.value, dict):
            self._report.error(root, f"found {root.kind()}; allowed: a model, which is an object")
            return
        self._unknown(root, ("$schema", "resources", "dispatchables", "commands"))
        for name, read in (("resources", self._resource), ("dispatchables", self._dispatchable)):
            entries = self._section(root, name)
            if len(entries) > MAX_ENTRIES:
                found = f"{len(entries)} entries; at most {MAX_ENTRIES} are read"
                self._report.error(root.value[name], found)
                return
            for key, node in entries.items():
                read(key, node)
        commands = root.get("commands")
        if commands is None or not isinstance(commands.value, Items):
            self._refuse(root, "commands", "an array")
            return
        for node in commands.value:
            command = self._command(node)
            if command is not None:
                self.model.commands.append(command)

    # --- shared ---

    def _refuse(self, node: Node, name: str, allowed: str, hint: str = "") -> None:
        """An error for a member that is missing or is not what is allowed; of one that is there, its path names it."""
        member = node.get(name)
        found = f"{name} is missing" if member is None else f"found {member.kind()}"
        self._report.error(member or node, f"{found}; allowed: {allowed}", hint)

    def _section(self, root: Node, name: str) -> dict[str, Node]:
        node = root.get(name)
        if node is None or not isinstance(node.value, dict):
            hint = "" if node else did_you_mean(name, root.value)
            self._refuse(root, name, "an object", hint)
            return {}
        return node.value

    def _unknown(self, node: Node, known: tuple[str, ...]) -> None:
        for name, member in node.value.items():
            if name not in known:
                self._report.warn(member, "not read", name, known)

    def _is_object(self, node: Node) -> bool:
        if isinstance(node.value, dict):
            return True
        self._report.error(node, f"found {node.kind()}; allowed: an object")
        return False

    def _integer(self, node: Node, name: str, high: int, default: int | None) -> int | None:
        """An integer member; None, with an error, where it is none or missing without a default."""
        member = node.get(name)
        if member is None and default is not None:
            return default
        if member is not None and type(member.value) is int and 0 <= member.value <= high:
            return member.value
        self._refuse(node, name, f"an integer from 0 to {high}")
        return None

    def _is_of(self, node: Node, name: str, kind: type, allowed: str) -> bool:
        """Whether a member is of a kind, or not there at all; an error for others."""
        member = node.get(name)
        if member is None or isinstance(member.value, kind):
            return True
        self._refuse(node, name, allowed)
        return False

    def _text(self, node: Node, name: str) -> str | None:
        member = node.get(name)
        if member is not None and isinstance(member.value, str):
            return member.value
        self._refuse(node, name, "a string")
        return None

    def _named(self, section: str, node: Node, what: str) -> Any:
        """What a name stands for; None, with an error unless it was already blamed, where that is nothing."""
        table: dict[str, Any] = getattr(self.model, section)
        name = node.value
        if isinstance(name, str) and name in table:
            return table[name]
        if not isinstance(name, str) or (section, name) not in self._broken:
            broken = sorted(other for of, other in self._broken if of == section)
            known = list(dict.fromkeys([*table, *broken]))
            hint = did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}"
            self._report.error(node, f"there is no {what} {node.kind()}", hint)
        return None

    def _spend(self, node: Node, kind: str, amount: int, limit: int, what: str) -> bool:
        """Count towards a limit; False, with an error, where it is exceeded."""
        total = getattr(self, kind) + amount
        if total > limit and kind in self._exceeded:
            return False
        if total > limit:
            self._exceeded.add(kind)
            hint = "raise it with --max-memory, or Limits(memory=...)"
            self._report.error(node, f"{what} {total} bytes in total; the limit is {limit}", hint)
            return False
        setattr(self, kind, total)
        return True

    # --- resources ---

    def _resource(self, name: str, node: Node) -> None:
        self._broken.add(("resources", name))
        if not self._is_object(node):
            return
        before = len(self._report.errors)
        dtype = None
        named = node.get("initialValuesDataType")
        if named is not None and named.value not in ("UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN"):
            try:
                dtype = initial.buffer_type(named.value)
            except Wrong as error:
                self._report.error(named, f"found {named.kind()}; {error}")
        values = node.get("initialValues")
        if values is None:
            self._report.error(node, "initialValues is missing")
            return
        filled: Initial | None = None
        if len(self._report.errors) == before:
            filled, dtype = self._initial(values, dtype)
        size = self._integer(node, "sizeInBytes", _UINT64, 0)
        offset = self._integer(node, "initialValuesOffsetInBytes", _UINT64, 0)
        self._unknown(
            node,
            (
                "initialValues", "initialValuesDataType", "sizeInBytes", "resampleSize", "resampleMode",
                "initialValuesOffsetInBytes",
            ),
        )  # fmt: skip
        if filled is None or size is None or offset is None or len(self._report.errors) > before:
            return
        if filled.nbytes == 0:
            self._report.error(values, "no values; allowed: at least one")
            return
        if node.get("sizeInBytes") is None:
            size = -(-filled.nbytes // 4) * 4
        if filled.nbytes + offset > size:
            found = f"{size} bytes; the initial values take {filled.nbytes} from byte {offset} on"
            self._report.error(node.get("sizeInBytes") or node, found)
            return
        if offset:
            place = node.get("initialValuesOffsetInBytes") or node
            message = "DxDispatch checks this offset but puts the values at byte 0"
            self._report.warn(place, message)
        if self._spend(node, "_memory", size, self._limits.memory, "buffers of"):
            self.model.resources[name] = Resource(name, node, dtype, size, filled)

    def _initial(self, node: Node, dtype: str | None) -> tuple[Initial | None, str | None]:
        """What fills a buffer, and its data type, which a .npy file may bring."""
        value = node.value
        if value == "deferred":
            message = "deferred resources are out of reach; they belong to ONNX dispatchables"
            self._report.error(node, message)
            return None, None
        if isinstance(value, Items):
            return (self._mixed(value) if dtype is None else self._array(value, dtype)), dtype
        if isinstance(value, dict):
            kinds = [k for k in ("value", "valueStart", "sourcePath") if k in value]
            if len(kinds) == 1:
                if kinds[0] == "sourcePath":
                    return self._file(node, dtype)
                if dtype is not None:
                    return self._repeated(node, kinds[0], dtype), dtype
                parent = node.parent or node
                allowed = ", ".join(BUFFER_TYPES)
                self._report.error(parent, f"initialValuesDataType is missing; allowed: {allowed}")
                return None, None
        forms = "an array, or an object with exactly one of value, valueStart and sourcePath"
        self._report.error(node, f"found {node.kind()}; allowed: {forms}")
        return None, None

    def _array(self, items: Items, dtype: str) -> Initial | None:
        try:
            return initial.Given(initial.numbers(items.values, dtype).view(np.uint8))
        except Wrong:
            for i, value in enumerate(items.values):
                try:
                    initial.scalar(value, dtype)
                except Wrong as error:
                    self._report.error(items[i], f"found {items[i].kind()}; {error}")
                    break
        return None

    def _mixed(self, items: Items) -> Initial | None:
        """Values with a type each, one behind the other."""
        parts = []
        fine = True
        for entry in items:
            if not isinstance(entry.value, dict):
                found = (
                    f"found {entry.kind()}; allowed without initialValuesDataType: type and value"
                )
                hint = 'as {"type": "UINT32", "value": 42}, or add initialValuesDataType'
                self._report.error(entry, found, hint)
                return None
            kind, value = entry.get("type"), entry.get("value")
            if kind is None or value is None:
                lost = "type" if kind is None else "value"
                self._report.error(entry, f"{lost} is missing")
                fine = False
                continue
            try:
                dtype = initial.buffer_type(kind.value)
                if dtype == "FLOAT16":
                    raise Wrong("DxDispatch has no FLOAT16 in lists of typed values")
            except Wrong as error:
                self._report.error(kind, f"found {kind.kind()}; {error}")
                fine = False
                continue
            try:
                parts.append(initial.scalar(value.value, dtype).tobytes())
            except Wrong as error:
                self._report.error(value, f"found {value.kind()}; {error}")
                fine = False
        return initial.Given(np.frombuffer(b"".join(parts), np.uint8)) if fine else None

    def _repeated(self, node: Node, kind: str, dtype: str) -> Initial | None:
        """A constant or a sequence."""
        count = self._integer(node, "valueCount", _UINT32, None)
        names = ("value",) if kind == "value" else ("valueStart", "valueDelta")
        found = []
        for name in names:
            member = node.get(name)
            if member is None:
                self._report.error(node, f"{name} is missing")
                continue
            try:
                found.append(initial.scalar(member.value, dtype))
            except Wrong as error:
                self._report.error(member, f"found {member.kind()}; {error}")
        self._unknown(node, (*names, "valueCount"))
        if count is None or len(found) < len(names):
            return None
        if kind == "value":
            return initial.Constant(found[0], count)
        return initial.Sequence(found[0], found[1], count)

    def _file(self, node: Node, dtype: str | None) -> tuple[Initial | None, str | None]:
        text = self._text(node, "sourcePath")
        place = node.get("sourcePath") or node
        if text is None:
            return None, dtype
        if text.lower().endswith(_IMAGES):
            self._report.error(place, "images are out of reach", "convert it to a .npy file")
            return None, dtype
        try:
            path, size = files.source(self._folders.input, text)
            begin = 0
            if text.lower().endswith(".npy"):
                with files.open_regular(path) as file:
                    own, count, begin = npy.header(file, size)
                size = count * BUFFER_TYPES[own].itemsize
                if dtype not in (None, own):
                    self._report.error(place, f"{text} has {own}, initialValuesDataType is {dtype}")
                    return None, dtype
                dtype = own
        except (Refused, OSError) as error:
            message, hint = (
                (error.message, error.hint) if isinstance(error, Refused) else (str(error), "")
            )
            self._report.error(place, message, hint)
            return None, dtype
        if dtype is None:
            allowed = ", ".join(BUFFER_TYPES)
            message = f"raw bytes need initialValuesDataType; allowed: {allowed}"
            self._report.error(node.parent or node, message)
            return None, None
        self._sources.add(path)
        return initial.FromFile(path, begin, size), dtype

    # --- dispatchables ---

    def _dispatchable(self, name: str, node: Node) -> None:
        self._broken.add(("dispatchables", name))
        made = dispatchable(name, node, self._level, self._report)
        if made is None:
            return
        bindings = node.get("bindings")
        owned = [p for p in made.points if p.owned]
        bound: list[Bound] = []
        if bindings is not None or owned:
            before = len(self._report.errors)
            bound = self._bind(bindings or node, made, owned, bindings is not None)
            for b in bound:
                self._spend(
                    b.resource.node, "_memory", b.point.bytes, self._limits.memory, "buffers of"
                )
            if len(self._report.errors) > before:
                return
        self.model.dispatchables[name] = made
        self.model.owned[name] = tuple(bound)

    # --- commands ---

    def _command(self, node: Node) -> Command | None:
        if not self._is_object(node):
            return None
        kind = self._text(node, "type")
        if kind is None:
            return None
        verbs: dict[str, Callable[[Node], Command | None]] = {
            "dispatch": self._dispatch,
            "print": self._print,
            "writefile": self._write_file,
        }
        verb = verbs.get(kind.lower())
        if verb is None:
            names = ("dispatch", "print", "writeFile")
            place = node.get("type") or node
            hint = did_you_mean(kind, names)
            self._report.error(place, f'found "{kind}"; allowed: {", ".join(names)}', hint)
            return None
        return verb(node)

    def _resource_of(self, node: Node) -> Resource | None:
        member = node.get("resource")
        if member is None:
            self._report.error(node, "resource is missing")
            return None
        resource: Resource | None = self._named("resources", member, "resource")
        return resource

    def _print(self, node: Node) -> Command | None:
        self._unknown(node, ("type", "resource", "verbose"))
        resource = self._resource_of(node)
        verbose = node.get("verbose")
        if verbose is not None and not isinstance(verbose.value, bool):
            self._report.error(verbose, f"found {verbose.kind()}; allowed: true or false")
            return None
        if resource is None:
            return None
        if resource.dtype is None:
            place = node.get("resource") or node
            message = f'"{resource.name}" holds values of several types, which cannot be printed'
            self._report.error(place, message, "write it to a file")
            return None
        used = resource.initial.nbytes
        if not self._spend(node, "_printed", used, self._limits.printed, "printed values of"):
            return None
        return Print(resource, verbose is not None and verbose.value)

    def _write_file(self, node: Node) -> Command | None:
        self._unknown(node, ("type", "resource", "targetPath", "dimensions"))
        resource = self._resource_of(node)
        text = self._text(node, "targetPath")
        if text is None:
            return None
        place = node.get("targetPath") or node
        sizes = self._dimensions(node)
        if text.lower().endswith(_IMAGES):
            self._report.error(place, "images are out of reach", "write a .npy file")
            return None
        try:
            files.relative(text)
            if self._folders.output is not None:
                path = files.target(self._folders.output, text)
                if path in (*self._sources, self._folders.model):
                    raise Refused(f'"{text}" is read by this model, and would be overwritten')
            elif self._will_run:
                hint = "name one with --output-path, or output_folder"
                raise Refused("no folder to write to was given", hint)
        except Refused as error:
            self._report.error(place, error.message, error.hint)
            return None
        if resource is None or sizes is None:
            return None
        command = WriteFile(node, resource, text, sizes)
        if command.is_npy:
            if resource.dtype is None:
                found = f'"{resource.name}" holds values of several types'
                self._report.error(
                    place, found, "write it under another name than .npy, as raw bytes"
                )
                return None
            whole = resource.bytes // BUFFER_TYPES[resource.dtype].itemsize
            if math.prod(sizes) > whole:
                found = f"{math.prod(sizes)} elements; the buffer holds {whole}"
                self._report.error(node.get("dimensions") or node, found)
                return None
        if not self._spend(
            node, "_written", resource.bytes, self._limits.memory, "written files of"
        ):
            return None
        return command

    def _dimensions(self, node: Node) -> tuple[int, ...] | None:
        member = node.get("dimensions")
        if member is None or member.value is None:
            return ()
        if not isinstance(member.value, Items) or len(member.value) > 64:
            self._report.error(
                member, f"found {member.kind()}; allowed: an array of up to 64 sizes"
            )
            return None
        for entry in member.value:
            if type(entry.value) is not int or not 0 <= entry.value <= _UINT32:
                found = f"found {entry.kind()}; allowed: an integer from 0 to {_UINT32}"
                self._report.error(entry, found)
                return None
        return tuple(member.value.values)

    def _dispatch(self, node: Node) -> Command | None:
        self._unknown(node, ("type", "dispatchable", "bindings", "threadGroupCount"))
        self._is_of(node, "threadGroupCount", Items, "an array")
        named = node.get("dispatchable")
        if named is None:
            self._report.error(node, "dispatchable is missing")
            return None
        made: Dispatchable | None = self._named("dispatchables", named, "dispatchable")
        bindings = node.get("bindings")
        if bindings is None or not isinstance(bindings.value, dict):
            self._refuse(node, "bindings", "an object")
            return None
        if made is None:
            for entry in bindings.value.values():
                self._part(entry)
            return None
        before = len(self._report.errors)
        bound = self._bind(bindings, made, [p for p in made.points if not p.owned], True)
        if len(self._report.errors) > before:
            return None
        self._apart(bindings, bound)
        touched = sum(b.point.bytes for b in bound)
        if not self._spend(node, "_touched", touched, self._limits.touched, "dispatches touch"):
            return None
        return Dispatch(made, tuple(bound))

    # --- bindings ---

    def _bind(
        self, node: Node, made: Dispatchable, points: list[BindPoint], given: bool
    ) -> list[Bound]:
        """The parts of buffers that tensors are bound to; errors for all that do not fit."""
        if given and not isinstance(node.value, dict):
            self._report.error(node, f"found {node.kind()}; allowed: an object")
            return []
        entries: dict[str, Node] = node.value if given else {}
        names = [p.name for p in points]
        for name, entry in entries.items():
            if name in names:
                continue
            other = next((p for p in made.points if p.name == name), None)
            if other is not None and other.owned:
                message = "OWNED_BY_DML: bound by the dispatchable itself, not by a dispatch"
                self._report.error(entry, message, 'move it to "bindings" of the dispatchable')
            elif other is not None:
                message = "only OWNED_BY_DML tensors are bound by the dispatchable"
                self._report.error(entry, message, "bind it in the dispatch command")
            elif name in made.optional:
                message = f"{made.name} does not describe this tensor; not bound"
                self._report.warn(entry, message)
            else:
                message = f"{made.name} has no such tensor; not bound"
                self._report.warn(entry, message, name, names)
        out = []
        for point in points:
            if point.name not in entries:
                self._report.error(node, f"{point.name} of {made.name} is not bound to a resource")
                continue
            bound = self._bound(entries[point.name], point)
            if bound is not None:
                out.append(bound)
        return out

    def _part(self, node: Node) -> tuple[Node, Resource, int] | None:
        """The resource that is named for a tensor, from which byte on it is bound, and where that is said."""
        if isinstance(node.value, Items):
            if len(node.value) != 1:
                count = len(node.value)
                self._report.error(node, f"Bind point requires 1 resource, but {count} were bound")
                return None
            node = node.value[0]
        named, size, offset = node, 0, 0
        if isinstance(node.value, dict):
            known = (
                "name", "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
                "counterOffsetBytes", "shape",
            )  # fmt: skip
            self._unknown(node, known)
            if self._text(node, "name") is None:
                return None
            named = node.value["name"]
            names = "elementSizeInBytes", "elementOffset", "elementCount", "counterOffsetBytes"
            read = [self._integer(node, name, _UINT64, 0) for name in names]
            # Of no use to operators; of their types all the same, as DxDispatch reads them.
            texts = [self._is_of(node, name, str, "a string") for name in ("format", "counter")]
            if None in read or not all([*texts, self._is_of(node, "shape", Items, "an array")]):
                return None
            size, offset = read[0] or 0, read[1] or 0
        elif not isinstance(node.value, str):
            found = f"found {node.kind()}; allowed: a resource's name, or an object with it"
            self._report.error(node, found)
            return None
        resource: Resource | None = self._named("resources", named, "resource")
        if resource is None:
            return None
        if size == 0 and resource.dtype is not None:
            size = BUFFER_TYPES[resource.dtype].itemsize
        return node, resource, offset * size

    def _bound(self, node: Node, point: BindPoint) -> Bound | None:
        part = self._part(node)
        if part is None:
            return None
        node, resource, begin = part
        if begin % point.alignment:
            found = f"{point.name} begins at byte {begin}; allowed: a multiple of {point.alignment}"
            self._report.error(node, found, "elementOffset x elementSizeInBytes is where it begins")
            return None
        if resource.bytes - begin < point.bytes:
            left = max(0, resource.bytes - begin)
            found = f'"{resource.name}" has {left} bytes from byte {begin} on'
            self._report.error(node, f"{found}; {point.name} takes {point.bytes}")
            return None
        return Bound(point, resource, begin)

    def _apart(self, node: Node, bound: list[Bound]) -> None:
        """An output may share no byte with another tensor: no operator here has an in-place form."""
        for i, one in enumerate(bound):
            for other in bound[:i]:
                if "output" not in (one.point.kind, other.point.kind):
                    continue
                if one.resource is other.resource and (
                    one.offset < other.offset + other.point.bytes
                    and other.offset < one.offset + one.point.bytes
                ):
                    place = node.get(one.point.name) or node
                    shared = f'{one.point.name} and {other.point.name} share memory of "{one.resource.name}"'
                    self._report.error(place, shared, "an output needs memory of its own")
