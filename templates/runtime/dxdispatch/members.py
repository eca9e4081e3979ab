"""What members of an object must be; errors for those that are not."""

from __future__ import annotations

from specops.dxdispatch.nodes import Node
from specops.dxdispatch.problems import Report

UINT32, UINT64 = 2**32 - 1, 2**64 - 1  # the greatest of the types that DxDispatch reads members as


class Members:
    """Reads members of objects."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def refuse(self, node: Node, name: str, allowed: str, hint: str = "") -> None:
        """An error for a member that is missing or is not what is allowed; of one that is there, its path names it."""
        member = node.get(name)
        found = f"{name} is missing" if member is None else f"found {member.kind()}"
        self._report.error(member or node, f"{found}; allowed: {allowed}", hint)

    def unknown(self, node: Node, known: tuple[str, ...]) -> None:
        """Warnings for members that are none of the known ones."""
        for name, member in node.value.items():
            if name not in known:
                self._report.warn(member, "not read", name, known)

    def is_object(self, node: Node) -> bool:
        """Whether this has members at all; an error where it has none."""
        if isinstance(node.value, dict):
            return True
        self._report.error(node, f"found {node.kind()}; allowed: an object")
        return False

    def is_of(self, node: Node, name: str, kind: type, allowed: str) -> bool:
        """Whether a member is of a kind, or not there at all; an error for others."""
        member = node.get(name)
        if member is None or isinstance(member.value, kind):
            return True
        self.refuse(node, name, allowed)
        return False

    def integer(self, node: Node, name: str, high: int, default: int | None) -> int | None:
        """An integer member; None, with an error, where it is none or missing without a default."""
        member = node.get(name)
        if member is None and default is not None:
            return default
        if member is not None and type(member.value) is int and 0 <= member.value <= high:
            return member.value
        self.refuse(node, name, f"an integer from 0 to {high}")
        return None

    def text(self, node: Node, name: str) -> str | None:
        """A string member; None, with an error, where it is none or missing."""
        member = node.get(name)
        if member is not None and isinstance(member.value, str):
            return member.value
        self.refuse(node, name, "a string")
        return None
