"""Commands: dispatch, print and writeFile."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from pathlib import Path

from specops.dxdispatch import files
from specops.dxdispatch.bindings import Bindings
from specops.dxdispatch.files import Refused
from specops.dxdispatch.limits import Usage
from specops.dxdispatch.model import Command, Dispatch, Print, Resource, WriteFile
from specops.dxdispatch.names import Names
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.operators import Dispatchable
from specops.dxdispatch.problems import UINT32, Report, did_you_mean
from specops.dxdispatch.values import BUFFER_TYPES


class Commands:
    """Reads commands.

    Args:
        output: where files are written; None if nowhere.
        sources: files that the model reads, none of which may be written.
        will_run: whether there must be a folder to write to.
    """

    def __init__(
        self,
        report: Report,
        resources: Names[Resource],
        dispatchables: Names[Dispatchable],
        bindings: Bindings,
        usage: Usage,
        *,
        output: Path | None,
        sources: Set[Path],
        will_run: bool,
    ) -> None:
        self._report = report
        self._resources = resources
        self._dispatchables = dispatchables
        self._bindings = bindings
        self._usage = usage
        self._output = output
        self._sources = sources
        self._will_run = will_run

    def read(self, node: Node) -> Command | None:
        """A command; None, with errors, where it cannot be run."""
        if not self._report.is_object(node):
            return None
        kind = self._report.string(node, "type")
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

    # --- dispatch ---

    def _dispatch(self, node: Node) -> Command | None:
        self._report.unknown(node, ("type", "dispatchable", "bindings", "threadGroupCount"))
        self._report.is_of(node, "threadGroupCount", Items, "an array")
        named = node.get("dispatchable")
        if named is None:
            self._report.error(node, "dispatchable is missing")
            return None
        made = self._dispatchables.find(named)
        bindings = node.get("bindings")
        if bindings is None or not isinstance(bindings.value, dict):
            self._report.refuse(node, "bindings", "an object")
            return None
        bound = self._bindings.dispatched(bindings, made)
        if made is None or bound is None:
            return None
        if not self._usage.touched.add(node, sum(b.point.bytes for b in bound)):
            return None
        return Dispatch(made, bound)

    # --- print and writeFile ---

    def _resource(self, node: Node) -> Resource | None:
        member = node.get("resource")
        if member is None:
            self._report.error(node, "resource is missing")
            return None
        return self._resources.find(member)

    def _print(self, node: Node) -> Command | None:
        self._report.unknown(node, ("type", "resource", "verbose"))
        resource = self._resource(node)
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
        if not self._usage.printed.add(node, resource.initial.nbytes):
            return None
        return Print(resource, verbose is not None and verbose.value)

    def _write_file(self, node: Node) -> Command | None:
        self._report.unknown(node, ("type", "resource", "targetPath", "dimensions"))
        resource = self._resource(node)
        text = self._report.string(node, "targetPath")
        if text is None:
            return None
        place = node.get("targetPath") or node
        sizes = self._dimensions(node)
        if not self._may_write(place, text) or resource is None or sizes is None:
            return None
        command = WriteFile(node, resource, text, sizes)
        if command.is_npy and not self._is_array(place, command):
            return None
        if not self._usage.written.add(node, resource.bytes):
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
            if type(entry.value) is not int or not 0 <= entry.value <= UINT32:
                found = f"found {entry.kind()}; allowed: an integer from 0 to {UINT32}"
                self._report.error(entry, found)
                return None
        return tuple(member.value.values)

    def _may_write(self, place: Node, text: str) -> bool:
        """Whether a file of this name can be written; an error where it cannot."""
        if files.is_image(text):
            self._report.error(place, "images are out of reach", "write a .npy file")
            return False
        try:
            files.relative(text)
            if self._output is not None:
                if files.target(self._output, text) in self._sources:
                    raise Refused(f'"{text}" is read by this model, and would be overwritten')
            elif self._will_run:
                hint = "name one with --output-path, or output_folder"
                raise Refused("no folder to write to was given", hint)
        except Refused as error:
            self._report.error(place, error.message, error.hint)
            return False
        return True

    def _is_array(self, place: Node, command: WriteFile) -> bool:
        """Whether a .npy file can hold the buffer: elements of one type, as many as the dimensions say."""
        resource, sizes = command.resource, command.dimensions
        if resource.dtype is None:
            found = f'"{resource.name}" holds values of several types'
            self._report.error(place, found, "write it under another name than .npy, as raw bytes")
            return False
        whole = resource.bytes // BUFFER_TYPES[resource.dtype].itemsize
        if math.prod(sizes) > whole:
            found = f"{math.prod(sizes)} elements; the buffer holds {whole}"
            self._report.error(command.node.get("dimensions") or command.node, found)
            return False
        return True
