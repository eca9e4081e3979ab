"""How marks are stored where the greatest elements stand, and 0 elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from specops.kernels import search as kernel
from specops.lowering import search_strategy
from specops.lowering.axes import Axis, by_memory, ceildiv, coalesce, elements, table
from specops.lowering.search_strategy import Lanes, Strategy
from specops.lowering.search_visit import Visit
from specops.lowering.search_walk import NO_AXES, search_walk
from specops.lowering.walk import Walk, walk_of
from specops.tensor import packed_strides

PLACES_BYTES = 1 << 19  # of indices that are found before marks are stored
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
    after: bool = False  # rows of marks are stored when all places are found
    before: Stores | None = None  # all 0


@dataclass(frozen=True)
class Marking:
    """How marks are stored for fixed types and shape: elements of an output of the input's shape and type."""

    mark: int  # the bits of one
    element_bytes: int
    large: bool  # input of machine.LARGE_BYTES

    def of(self, visit: Visit, strategy: Strategy, parts: int, split: bool, past: bool) -> Marks:
        """Where marks and zeros of one set of strides go.

        A group that is one run, and is not cut into parts, is stored with its mark (0.6 of the time of 8 KiB, past the
        caches). So are rows of columns (0.5 to 0.9), if need be when all places are found.

        Of others zeros are set along with the search where both walk the output the same way. Elsewhere they are set
        beforehand, in the output's own order; so are those that go `past` the caches, for which a short row's mark
        would wait (1.7 times).
        """
        size, columns = self.element_bytes, strategy.lanes is Lanes.COLUMNS
        marked = by_memory(visit.reduced_out)
        marks = table(coalesce(visit.reduced_out))
        if strategy.lanes is Lanes.PLANES:
            return Marks(marks, NO_AXES)
        # Whether indices are told apart in an element's width.
        fits = elements(marked) <= 1 << 8 * size
        group = coalesce(marked)
        one_run = parts == 1 and not split and len(group) == 1 and group[0].stride == size
        if one_run and (columns or not past or group[0].size * size >= PAST_ROW_BYTES):
            return Marks(marks, table(group), past=past, stored=kernel.BY_GROUPS)
        if columns and parts == 1:
            run = visit.kept[-1]
            if run.other_stride == size and fits:
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
        by_rows = any(axis in across and axis.stride == size for axis in everything[-1:])
        few = visit.groups * size <= PLACES_BYTES
        if by_rows and few and fits and parts == 1 and not columns:
            return Marks(NO_AXES, NO_AXES, after=True)
        return Marks(marks, NO_AXES, before=self._zeros(everything, past))

    def rows_of_marks(
        self, kept: list[Axis], marked: list[Axis], past: bool
    ) -> tuple[list[Axis], Stores]:
        """The kept axes of a search that stores places in the order of the output, and what makes marks of these."""
        size = self.element_bytes
        order = sorted(range(len(kept)), key=lambda i: -abs(kept[i].other_stride))
        weights = packed_strides([kept[i].size for i in order])
        steps = {i: size * w for i, w in zip(order, weights, strict=True)}
        searched = [axis._replace(other_stride=steps[i]) for i, axis in enumerate(kept)]
        stored = coalesce(Axis(kept[i].size, steps[i], kept[i].other_stride) for i in order)
        columns = stored[-1].size
        tile = search_strategy.tile_of(columns, search_strategy.TILE_BYTES, size)
        group = coalesce(by_memory(marked))
        settings = {
            kernel.TILE: tile,
            kernel.ZERO_ROWS: self._adjoining(group, columns, tile),
            kernel.MARK: self.mark,
            kernel.PAST: past,
        }
        tables = table(stored), NO_AXES, NO_AXES, table(group)
        walk = search_walk(settings, *tables)
        items = elements(stored[:-1]) * ceildiv(columns, tile)
        return searched, Stores(walk, items)

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
