"""What the parts of a model are read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from specops.dxdispatch.limits import Usage
from specops.dxdispatch.model import Model, Resource
from specops.dxdispatch.nodes import Node
from specops.dxdispatch.operators import Dispatchable
from specops.dxdispatch.problems import did_you_mean

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Context:
    """What was read so far, and what the rest is read with.

    Attributes:
        root: the whole model, as it is in the file.
        model: what could be read.
        input: the folder in which files are found.
        sources: files that the model reads, none of which may be written.
        feature_level: whose tables count; None for the general definition.
        will_run: whether there must be a folder to write to.
    """

    root: Node
    model: Model
    input: Path
    sources: set[Path]
    usage: Usage
    feature_level: str | None
    will_run: bool

    def resource(self, named: Node) -> Resource | None:
        """The resource of a name; None, with an error, where there is none that could be read."""
        return self._find("resource", self.model.resources, named)

    def dispatchable(self, named: Node) -> Dispatchable | None:
        """The dispatchable of a name; None, with an error, where there is none that could be read."""
        return self._find("dispatchable", self.model.dispatchables, named)

    def _find(self, what: str, read: Mapping[str, Entry], named: Node) -> Entry | None:
        name = named.value
        if isinstance(name, str) and name in read:
            return read[name]
        section = self.root.get(f"{what}s")
        names = section.value if section and isinstance(section.value, dict) else {}
        if not isinstance(name, str) or name not in names:  # else it was blamed itself
            hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}"
            named.error(f"there is no {what} {named.kind()}", hint)
        return None
