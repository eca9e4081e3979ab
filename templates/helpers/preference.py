"""Which of a group's equal elements is preferred, and in which order they are visited."""

from __future__ import annotations

from typing import Any, NamedTuple

from axes import Axes


class Preference(NamedTuple):
    """Of equal elements the first one visited where they are `ordered`, else that of the least index, or the greatest.

    Where they are ordered, nothing behind an element that none can beat needs to be looked at.
    """

    base: Any  # index of the first element visited
    ordered: Any  # elements are visited in the order of preference
    last: Any  # the greatest index is preferred
    late: Any  # within an innermost run that adjoins, the element at the highest address is
    ceiling: Any  # the greatest key that an element can have


class Preferred(NamedTuple):
    """The axes of a dense group in the order of preference."""

    axes: Axes
    at: Any  # bytes from the group's first element to the first of these
    base: Any  # the index of that
