"""Versions of an operator in words: for docstrings, and copied into the package, for its messages."""

from __future__ import annotations


def within(having: list[int], versions: list[int]) -> str:
    """Some of the versions in words, both oldest first: a newer one may have dropped what they have."""
    first = versions.index(having[0])
    if having == versions[first:]:
        return f"from version {having[0]} on"
    if having == versions[first : first + len(having)] and len(having) > 1:
        return f"in versions {having[0]} to {having[-1]}"
    return f"in version{'s' * (len(having) > 1)} {', '.join(map(str, having))}"
