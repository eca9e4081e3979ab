"""Reads a model section by section, and checks all of it before anything runs."""

from __future__ import annotations

from specops.dxdispatch.bindings import Bindings
from specops.dxdispatch.commands import Commands
from specops.dxdispatch.initial_values import InitialValues
from specops.dxdispatch.limits import Limits, Usage
from specops.dxdispatch.model import Folders, Model
from specops.dxdispatch.names import Names
from specops.dxdispatch.nodes import Items, Node
from specops.dxdispatch.operators import dispatchable
from specops.dxdispatch.problems import Report, did_you_mean
from specops.dxdispatch.resources import Resources

MAX_ENTRIES = 500  # resources, and dispatchables, so that checking them ends soon


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
        self._level = feature_level
        self.model = Model(report.file, report, output=folders.output)
        self._resource_names = Names(report, "resource", self.model.resources)
        self._dispatchable_names = Names(report, "dispatchable", self.model.dispatchables)
        usage = Usage(report, limits)
        sources = {folders.model}
        initial = InitialValues(report, folders.input, sources)
        self._resources = Resources(report, initial, usage)
        self._bindings = Bindings(report, self._resource_names, usage)
        self._commands = Commands(
            report,
            self._resource_names,
            self._dispatchable_names,
            self._bindings,
            usage,
            output=folders.output,
            sources=sources,
            will_run=will_run,
        )

    def read(self, root: Node) -> None:
        """Read all three sections."""
        if not isinstance(root.value, dict):
            self._report.error(root, f"found {root.kind()}; allowed: a model, which is an object")
            return
        self._report.unknown(root, ("$schema", "resources", "dispatchables", "commands"))
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
            self._report.refuse(root, "commands", "an array")
            return
        for node in commands.value:
            command = self._commands.read(node)
            if command is not None:
                self.model.commands.append(command)

    def _section(self, root: Node, name: str) -> dict[str, Node]:
        """A section's entries; none, with an error, where it is missing or no object."""
        node = root.get(name)
        if node is None or not isinstance(node.value, dict):
            hint = "" if node else did_you_mean(name, root.value)
            self._report.refuse(root, name, "an object", hint)
            return {}
        return node.value

    def _resource(self, name: str, node: Node) -> None:
        self._resource_names.begin(name)
        resource = self._resources.read(name, node)
        if resource is not None:
            self.model.resources[name] = resource

    def _dispatchable(self, name: str, node: Node) -> None:
        self._dispatchable_names.begin(name)
        made = dispatchable(name, node, self._level, self._report)
        bound = None if made is None else self._bindings.owned(made)
        if made is not None and bound is not None:
            self.model.dispatchables[name] = made
            self.model.owned[name] = bound
