"""How marks are stored where the greatest elements stand, and 0 elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from specops.kernels import search as kernel
from specops.lowering.axes import Axis, by_memory, coalesce, elements, table
from specops.lowering.search_strategy import Lanes, Strategy
from specops.lowering.search_visit import Visit
from specops.lowering.search_walk import NO_AXES
from specops.lowering.walk import Walk, walk_of

# Rows of so many bytes that lie apart in an output: marks after zeros take 0.5 to 0.9 of the time.
ZEROS_FIRST_BYTES = range(1 << 7, 1 << 10)
PAST_ROW_BYTES = 1 << 13  # of a row past the caches that is stored with its mark: see Marking.of


class Stores(NamedTuple):
    """What is stored apart from the search."""

    walk: Walk
    items: int


class Marks(NamedTuple):
    """Where marks go in an output, and how its other elements become 0."""

    axes: Sequence[Axis]  # of marks
    zeros: Sequence[Axis]  # that of a group's elements, stored with the search
    zero_rows: int = 1
    past: bool = False  # zeros, and marks among them, go past the caches; or indices
    stored: int = 0  # setting STORED
    before: Stores | None = None  # all 0


@dataclass(frozen=True)
class Marking:
    """How marks are stored for fixed types and shape: elements of an output of the input's shape and type."""

    mark: int  # the bits of one
    element_bytes: int
    large: bool  # input of machine.LARGE_BYTES

    def of(self, visit: Visit, strategy: Strategy, parts: int, split: bool, past: bool) -> Marks:
        """Where marks and zeros of one set of strides go.

        A group that is one run, and is not cut into parts, is stored with its mark (0.5 to 0.9 of the time of 8 KiB,
        past the caches). So are rows of columns (0.5 to 0.9).

        Of others zeros are set along with the search where both walk the output the same way. Elsewhere they are set
        beforehand, in the output's own order; so are those that go `past` the caches, for which a short row's mark
        would wait (1.7 times).
        """
        size, columns = self.element_bytes, strategy.lanes is Lanes.COLUMNS
        marked = by_memory(visit.reduced_out)
        marks = table(coalesce(visit.reduced_out))
        if strategy.lanes is Lanes.PLANES:
            return Marks(marks, NO_AXES)
        group = coalesce(marked)
        one_run = parts == 1 and not split and len(group) == 1 and group[0].stride == size
        if one_run and (columns or not past or group[0].size * size >= PAST_ROW_BYTES):
            return Marks(marks, table(group), past=past, stored=kernel.BY_GROUPS)
        if columns and parts == 1:
            run = visit.kept[-1]
            # Where indices are told apart in an element's width.
            if run.other_stride == size and elements(marked) <= 1 << 8 * size:
                rows = self._adjoining(group, run.size, strategy.tile)
                row_bytes = min(run.size, strategy.tile) * size
                apart = past and rows == 1 and row_bytes in ZEROS_FIRST_BYTES
                if not apart:
                    return Marks(
                        marks, table(group), zero_rows=rows, past=past, stored=kernel.BY_ROWS
                    )
        across = [Axis(axis.size, axis.other_stride, 0) for axis in visit.kept]
        group = coalesce(axis._replace(other_stride=0) for axis in marked)
        everything = by_memory(across + group)
        alike = everything[-1:] == (across if columns else group)[-1:]
        long = columns or (group and group[-1].size * size >= PAST_ROW_BYTES)
        if not split and (not self.large or (alike and (long or not past))):
            zero_rows = 1
            if strategy.beside and group[-1].stride == across[-1].stride * across[-1].size:
                zero_rows = group.pop().size
            return Marks(marks, table(group), zero_rows=zero_rows, past=past)
        return Marks(marks, NO_AXES, before=self._zeros(everything, past))

    def _adjoining(self, group: list[Axis], columns: int, tile: int) -> int:
        """How many rows of columns adjoin in the output, in the order of the index; taken off the group's axes."""
        if tile >= columns and group and group[-1][1:] == (columns * self.element_bytes, 1):
            return group.pop().size
        return 1

    def _zeros(self, everything: list[Axis], past: bool) -> Stores:
        """What sets all elements of an output to 0."""
        axes = table(coalesce(everything))
        settings = [0] * kernel.ZERO_SETTINGS
        settings[kernel.ZERO_BYTES] = self.element_bytes
        settings[kernel.ZERO_PAST] = past
        settings[kernel.ZERO_RANK] = len(axes)
        return Stores(walk_of(settings, axes), elements(everything))
