"""Commands: dispatch, print and writeFile."""

from __future__ import annotations

import math

from specops.dxdispatch import bindings, files
from specops.dxdispatch.context import Context
from specops.dxdispatch.files import Refused
from specops.dxdispatch.model import Command, Dispatch, Print, Resource, WriteFile
from specops.dxdispatch.nodes import UINT32, Items, Node
from specops.dxdispatch.problems import did_you_mean


def command(node: Node, context: Context) -> Command | None:
    """A command; None, with errors, where it cannot be run."""
    if not node.is_object():
        return None
    kind = node.string("type")
    if kind is None:
        return None
    names = {"dispatch": _dispatch, "print": _print, "writeFile": _write_file}
    for name, verb in names.items():
        if kind.value.lower() == name.lower():
            return verb(node, context)
    kind.refuse(", ".join(names), did_you_mean(kind.value, names))
    return None


def _dispatch(node: Node, context: Context) -> Dispatch | None:
    node.unknown(("type", "dispatchable", "bindings", "threadGroupCount"))
    node.may_have("threadGroupCount", Items, "an array")
    named = node.get("dispatchable")
    if named is None:
        node.error("dispatchable is missing")
        return None
    made = context.dispatchable(named)
    bound = node.member("bindings", dict, "an object")
    if bound is None:
        return None
    parts = bindings.dispatched(bound, made, context)
    if made is None or parts is None:
        return None
    fits = context.usage.touched.add(node, sum(b.point.bytes for b in parts))
    return Dispatch(made, parts) if fits else None


def _resource(node: Node, context: Context) -> Resource | None:
    named = node.get("resource")
    if named is None:
        node.error("resource is missing")
        return None
    return context.resource(named)


def _print(node: Node, context: Context) -> Print | None:
    node.unknown(("type", "resource", "verbose"))
    resource = _resource(node, context)
    verbose = node.get("verbose")
    if not node.may_have("verbose", bool, "true or false") or resource is None:
        return None
    if resource.dtype is None:
        place = node.get("resource") or node
        message = f'"{resource.name}" holds values of several types, which cannot be printed'
        place.error(message, "write it to a file")
        return None
    fits = context.usage.printed.add(node, resource.initial.nbytes)
    return Print(resource, verbose is not None and verbose.value) if fits else None


def _write_file(node: Node, context: Context) -> WriteFile | None:
    node.unknown(("type", "resource", "targetPath", "dimensions"))
    resource = _resource(node, context)
    path = node.string("targetPath")
    if path is None:
        return None
    sizes = _dimensions(node.get("dimensions"))
    if not _may_write(path, context) or resource is None or sizes is None:
        return None
    made = WriteFile(node, resource, path.value, sizes)
    if made.is_npy and not _is_array(path, made):
        return None
    return made if context.usage.written.add(node, resource.bytes) else None


def _dimensions(node: Node | None) -> tuple[int, ...] | None:
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, Items) or len(node.value) > 64:
        node.refuse("an array of up to 64 sizes")
        return None
    for entry in node.value:
        if type(entry.value) is not int or not 0 <= entry.value <= UINT32:
            entry.refuse(f"an integer from 0 to {UINT32}")
            return None
    return tuple(node.value.values)


def _may_write(path: Node, context: Context) -> bool:
    """Whether a file of this name can be written; an error where it cannot."""
    text, folder = path.value, context.model.output
    if files.is_image(text):
        path.error("images are out of reach", "write a .npy file")
        return False
    try:
        files.relative(text)
        if folder is not None:
            if files.target(folder, text) in context.sources:
                raise Refused(f'"{text}" is read by this model, and would be overwritten')
        elif context.will_run:
            hint = "name one with --output-path, or output_folder"
            raise Refused("no folder to write to was given", hint)
    except Refused as error:
        path.error(error.message, error.hint)
        return False
    return True


def _is_array(path: Node, made: WriteFile) -> bool:
    """Whether a .npy file can hold the buffer: elements of one type, as many as the dimensions say."""
    resource, count = made.resource, math.prod(made.dimensions)
    if resource.dtype is None:
        found = f'"{resource.name}" holds values of several types'
        path.error(found, "write it under another name than .npy, as raw bytes")
        return False
    whole = resource.bytes // resource.dtype.itemsize
    if count > whole:
        place = made.node.get("dimensions") or made.node
        place.error(f"{count} elements; the buffer holds {whole}")
        return False
    return True
