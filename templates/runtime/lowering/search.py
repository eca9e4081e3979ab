"""A search on the host's side: which chunk runs, with which walk, for one set of strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from specops import launch
from specops.kernels import search as kernel
from specops.lowering import machine, planes
from specops.lowering.axes import Axis, by_memory, coalesce, elements, evened, table
from specops.lowering.keys import keys_of
from specops.lowering.plans import Array, Plans, Strides
from specops.lowering.reversal import Reversal, direction, reversal_chunk, reverse_back
from specops.lowering.search_marks import Marking, Marks, Stores
from specops.lowering.search_strategy import Lanes, Preferred, Strategies, Strategy
from specops.lowering.search_visit import Visit, visited
from specops.lowering.search_walk import NO_AXES, search_walk
from specops.lowering.walk import Walk
from specops.tensor import Tensor, packed_strides

_SHORT = launch.chunks_of(kernel.short_rows)
_ROWS = launch.chunks_of(kernel.rows)
_COLUMNS = launch.chunks_of(kernel.columns)
_PLANES = launch.chunks_of(kernel.planes)
_COMBINE = launch.Chunk(kernel.combine)
_ZERO = launch.Chunk(kernel.zero)

PART_ITEMS = 16  # enough for the threads to share: joining parts costs (1.3 times for bytes)
SPREAD_BYTES = 1 << 18  # of a block of repeated elements that is copied at once


def _spread(out: Array, source: Array) -> None:
    """Copy the computed elements to those that repeat them, in blocks: NumPy copies a source that overlaps."""
    if out.nbytes <= SPREAD_BYTES:
        out[...] = source
        return
    axis = out.shape.index(max(out.shape))
    for half in (slice(0, out.shape[axis] // 2), slice(out.shape[axis] // 2, None)):
        block = (slice(None),) * axis + (half,)
        _spread(out[block], source if source.shape[axis] == 1 else source[block])


class _Plan(NamedTuple):
    """The walk for one set of strides."""

    chunk: launch.Chunk
    walk: Walk
    join: Walk  # the walk that joins parts
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    items: int
    groups: int
    parts: int
    zeros: Stores | None  # beforehand, of a whole output
    repeated: tuple[slice, ...] | None  # kept axes of stride 0 cut to one element
    reversals: tuple[Reversal, ...]


class Search:
    """Where the greatest (or least) element of each reduced group stands, for fixed types and shape.

    Args:
        better: "greater" or "less".
        tie: which of several equal elements wins, "first" or "last".
        nan: "ignored" (loses to every number; in a group of nothing but NaN the first wins) or "propagates" (beats
            every number).
        axes: the reduced axes, in any order, unique; may be empty.
        input, output: the tensors.
        mark: bits that are stored at the element's place in an output of the input's shape and type, which is 0
            elsewhere; None stores the element's index within its group, in an output of a 4- or 8-byte integer type.
    """

    def __init__(
        self,
        *,
        better: str,
        tie: str,
        nan: str,
        axes: Sequence[int],
        input: Tensor,
        output: Tensor,
        mark: int | None = None,
    ) -> None:
        self._sizes = input.sizes
        self.axes = frozenset(axes)
        self._last = tie == "last"
        width, least, greatest, flip, infinity = keys_of(input.dtype)
        self._element_bytes = width // 8
        self._output = output
        self._out_bytes = output.numpy_dtype.itemsize
        nan_key = greatest if nan == "propagates" else least
        self._kind = (width, infinity is not None)
        self._rule = (flip if better == "greater" else ~flip, nan_key, infinity or 0)
        # Of booleans True is the greatest, and False, whose key is that of any type's least element, the least.
        self._ceiling = least + 1 if (input.dtype, better) == ("BOOL", "greater") else greatest
        # Half of random ones are True: of such rows few elements are read.
        self._soon = input.dtype == "BOOL"
        self._nan_is_0 = infinity is not None and nan == "ignored"
        input_bytes = math.prod(self._sizes) * self._element_bytes
        self._moved = input_bytes + math.prod(output.sizes) * self._out_bytes
        self._large = input_bytes >= machine.LARGE_BYTES
        self._uncached = input_bytes > machine.UNCACHED_BYTES
        self._empty = input_bytes == 0
        self._strategies = Strategies(
            element_bytes=self._element_bytes,
            out_bytes=self._out_bytes,
            one_hot=mark is not None,
            uncached=self._uncached,
        )
        self._marking = None
        if mark is not None:
            self._marking = Marking(mark, self._element_bytes, self._large)
        self._plans = Plans(self._plan)

    def __call__(self, x: Array, out: Array) -> None:
        """Write the result for `x` to `out`; shapes and types as declared, any strides."""
        if self._empty:
            out[...] = 0
            return
        plan = self._plans[x.strides, out.strides]
        source = launch.address(x) + plan.shift
        target = launch.address(out) + plan.out_shift
        zeros, large = plan.zeros, self._large
        if zeros is not None:
            _ZERO.run(zeros.walk.at, 0, target, 0, zeros.items, large)
        if plan.parts == 1:
            plan.chunk.run(plan.walk.at, source, target, 0, plan.items, large)
        else:
            number = plan.groups * plan.parts
            pairs = np.empty(2 * number, np.int64)
            partial = launch.address(pairs)
            plan.chunk.run(plan.walk.at, source, target, partial, plan.items, large)
            many = number >= launch.MANY_PARTS
            _COMBINE.run(plan.join.at, 0, target, partial, plan.groups, many)
        if plan.reversals:
            reverse_back(plan.reversals, out, large)
        if plan.repeated is not None:
            _spread(out, out[plan.repeated])

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run, whatever the strides."""
        searches = _SHORT, _ROWS, _COLUMNS, _PLANES
        if self._marking is None:
            run = [search(*self._kind, False) for search in searches]
            return [*run, _COMBINE, reversal_chunk(self._out_bytes)]
        one_hot = [search(*self._kind, True) for search in searches]
        # Rows alone are searched for pairs before any mark is stored.
        others = [search(*self._kind, False) for search in (_SHORT, _ROWS)]
        return [*one_hot, *others, _COMBINE, _ZERO, reversal_chunk(self._out_bytes)]

    def _plan(self, strides: Strides, out_strides: Strides) -> _Plan:
        marking = self._marking
        out_strides, moved, reversals = direction(
            self._output, self.axes, strides, out_strides, marks=marking is not None, copies=True
        )
        visit = visited(self._sizes, self.axes, self._last, strides, out_strides)
        kept, reduced = visit.kept, visit.reduced
        transposed = self._strategies.transposes(visit)
        # Marks of rows that are transposed do not go past the caches: 0.15 to 1.05 of the time.
        past = (
            marking is not None
            and not transposed
            and machine.outgrows(
                machine.PAST_BYTES, self._sizes, strides, out_strides, self._element_bytes
            )
        )
        strategy = self._strategies.of(visit, transposed, past)
        if marking is None and strategy.lanes is Lanes.PLANES:
            # Of few rows, indices are much of what is moved: past the caches they take 0.6 to 0.95 of the time; where
            # planes end within a vector of them, 1.2 to 2.7 times as long.
            whole = visit.kept[-1].size % (kernel.VECTOR_BYTES // 8) == 0
            past = whole and machine.goes_past(self._output, out_strides, self._moved)
        parts, split = self._parts(visit, strategy)
        marks = Marks(NO_AXES, NO_AXES, past=past)
        if marking is not None:
            marks = marking.of(visit, strategy, parts, split, past)
        settings = self._settings(visit, strategy, marks, parts, split)
        preferred = table(strategy.preferred.axes) if strategy.preferred else NO_AXES
        beside = table(strategy.beside) if strategy.beside else NO_AXES
        tables = table(kept), table(reduced), marks.axes, marks.zeros
        walk = join = search_walk(settings, *tables, preferred, beside)
        if split:
            walk = self._walk_of_parts(settings, kept, reduced)
        search = {Lanes.ROWS: _ROWS, Lanes.PLANES: _PLANES, Lanes.COLUMNS: _COLUMNS}[strategy.lanes]
        if self._is_short(visit, strategy, marks, parts, split):
            search = _SHORT
        one_hot = marking is not None and not split
        return _Plan(
            chunk=search(*self._kind, one_hot),
            walk=walk,
            join=join,
            shift=visit.shift,
            out_shift=visit.out_shift + moved,
            items=strategy.items * parts,
            groups=visit.groups,
            parts=parts,
            zeros=marks.before,
            repeated=visit.repeated,
            reversals=reversals,
        )

    def _settings(
        self, visit: Visit, strategy: Strategy, marks: Marks, parts: int, split: bool
    ) -> dict[int, int]:
        """Of the walk that searches groups, or joins what their parts gave."""
        preferred = strategy.preferred or Preferred([], 0, 0)
        return {
            kernel.CONTIGUOUS: strategy.contiguous,
            kernel.LAST: self._last,
            kernel.LATE: strategy.late,
            kernel.PREFERRED_AT: preferred.at,
            kernel.PREFERRED_INDEX: preferred.first_index,
            kernel.ORDERED: visit.ordered,
            kernel.BASE: visit.base,
            kernel.TILE: strategy.tile,
            kernel.PARTS: parts,
            kernel.PART_WEIGHT: visit.reduced[0].other_stride if split else 0,
            kernel.OUT_BYTES: self._out_bytes,
            kernel.NAN_IS_0: self._nan_is_0,
            kernel.MARK: self._marking.mark if self._marking else 0,
            kernel.OVERLAP: strategy.overlap[0],
            kernel.OVERLAP_INDEX: strategy.overlap[1],
            kernel.ZERO_ROWS: marks.zero_rows,
            kernel.PAST: marks.past,
            kernel.STORED: marks.stored,
            kernel.CEILING: self._ceiling,
            kernel.SOON: self._soon,
            kernel.UNCACHED: self._uncached,
            kernel.LAST_COLUMNS: strategy.last_columns,
            kernel.TRANSPOSED: strategy.transposed,
            **{kernel.RULE + i: value for i, value in enumerate(self._rule)},
        }

    def _walk_of_parts(
        self, settings: dict[int, int], kept: list[Axis], reduced: list[Axis]
    ) -> Walk:
        """The walk that takes each step along the outermost reduced axis as a group of its own, in the order of memory.

        It stores pairs where those of parts are.
        """
        pair = kernel.PAIR_BYTES
        weights = packed_strides([axis.size for axis in kept])
        places = [
            axis._replace(other_stride=pair * w) for axis, w in zip(kept, weights, strict=True)
        ]
        outermost, *runs = reduced
        places.append(outermost._replace(other_stride=pair * elements(kept)))
        groups = coalesce(by_memory(places))
        settings = settings | {kernel.PARTS: 1, kernel.OUT_BYTES: pair}
        return search_walk(settings, table(groups), table(runs))

    def _is_short(
        self, visit: Visit, strategy: Strategy, marks: Marks, parts: int, split: bool
    ) -> bool:
        """Whether each row is one short run that adjoins, with marks and zeros along one axis at most."""
        runs = visit.reduced[1:] if split else visit.reduced
        short = len(runs) == 1 and runs[0].size * self._element_bytes <= kernel.SHORT_BYTES
        whole = split or (parts == 1 and len(marks.axes) <= 1 and len(marks.zeros) <= 1)
        along_rows = strategy.lanes is Lanes.ROWS and strategy.contiguous
        return along_rows and short and whole and not marks.past

    def _parts(self, visit: Visit, strategy: Strategy) -> tuple[int, bool]:
        """The parts of each group, none empty, and whether each is a group of its own to the search."""
        kept, reduced, total, groups = visit.kept, visit.reduced, visit.total, visit.groups
        most = machine.PARTIALS // groups
        parts = machine.parts_for(strategy.items, PART_ITEMS, strategy.part_bytes, most)
        split = False
        # Of bytes, one that none can beat mostly ends the search of a group soon.
        if parts == 1 and strategy.lanes is Lanes.ROWS and reduced and self._element_bytes > 1:
            outermost = reduced[0].size
            parts = planes.parts_in_order(kept, reduced, self._element_bytes, most)
            parts = evened(outermost, parts)  # of whole runs: 0.45 to 1 of the time
            split = parts == outermost
        return evened(total, parts), split
