"""Reads a model section by section, and checks all of it before anything runs."""

from __future__ import annotations

from specops.dxdispatch.bindings import owned
from specops.dxdispatch.commands import command
from specops.dxdispatch.context import Context
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.operators import dispatchable
from specops.dxdispatch.problems import did_you_mean
from specops.dxdispatch.resources import resource

MAX_ENTRIES = 500  # resources, and dispatchables, so that checking them ends soon


def read(context: Context) -> None:
    """Read all three sections into the model; all that is wrong is in the report afterwards."""
    root, model = context.root, context.model
    if not isinstance(root.value, dict):
        root.refuse("a model, which is an object")
        return
    root.unknown(("$schema", "resources", "dispatchables", "commands"))
    for section, add in (("resources", _add_resource), ("dispatchables", _add_dispatchable)):
        hint = "" if section in root.value else did_you_mean(section, root.value)
        entries = root.member(section, dict, "an object", hint)
        if entries is None:
            continue
        if len(entries.value) > MAX_ENTRIES:
            entries.error(f"{len(entries.value)} entries; at most {MAX_ENTRIES} are read")
            return
        for name, node in entries.value.items():
            add(name, node, context)
    commands = root.member("commands", Items, "an array")
    for node in commands.value if commands else ():
        made = command(node, context)
        if made is not None:
            model.commands.append(made)


def _add_resource(name: str, node: Node, context: Context) -> None:
    made = resource(name, node, context)
    if made is not None:
        context.model.resources[name] = made


def _add_dispatchable(name: str, node: Node, context: Context) -> None:
    made = dispatchable(name, node, context.feature_level)
    bound = None if made is None else owned(made, context)
    if made is not None and bound is not None:
        context.model.dispatchables[name] = made
        context.model.owned[name] = bound
