"""Which of a group's equal elements is preferred, and in which order they are visited."""

from __future__ import annotations

from typing import Any, NamedTuple

from compiled import inlined


class Preference(NamedTuple):
    """Of equal elements the first one visited where they are `ordered`, else that of the least index, or the greatest.

    Where they are ordered, nothing behind an element that none can beat needs to be looked at.
    """

    base: Any  # index of the first element visited
    ordered: Any  # elements are visited in the order of preference
    last: Any  # the greatest index is preferred
    late: Any  # within an innermost run that adjoins, the element at the highest address is
    ceiling: Any  # the greatest key that an element can have


@inlined
def is_preferred(index, other, last):
    """Whether of equal elements that of `index` is preferred to the other, where they come in no order."""
    return (index < other) != last
