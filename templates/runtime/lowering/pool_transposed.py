"""The walk of long windows over many planes: see `transposed_chunk` of the pooling kernels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from specops.lowering import machine
from specops.lowering.axes import ceildiv, evened, merge
from specops.lowering.pool_axes import SpatialAxis
from specops.lowering.pooling import NO_LANE, Axes, WalkParts

NEAR = 256  # positions that stay in the first-level cache
TILE = 4096  # vectors of a tile, at most: two buffers of 256 KiB
SPARE = 4  # of so many planes one may be done twice, at most,
SPARE_FAR = 8  # of large ones whose elements adjoin
# Rows of windows, of all rows of outputs, for each row that is read of the input, at least: with one row of outputs it
# takes up to 1.7 times as long.
SHARED = 3
CLASH_BYTES = 1 << 16  # see _clash


class Limits(NamedTuple):
    """For what it pays.

    Attributes:
        near, near_beside, far: the shortest windows along both axes, of planes whose elements adjoin and of others, of
            at most NEAR positions, and of larger ones.
        plane: positions of a plane whose elements adjoin, at most.
        read, read_plane: times as many positions as outputs, at most, of a tile, and of a plane whose elements adjoin.
        longest: the longest windows; None where their length does not matter.
    """

    near: int
    near_beside: int
    far: int
    plane: int
    read: int
    read_plane: int
    longest: int | None = None


class _Tile(NamedTuple):
    """Outputs of a plane that are made together: so many rows and columns, at most."""

    rows: SpatialAxis
    columns: SpatialAxis
    share: int
    width: int

    @property
    def read(self) -> int:
        """Positions of the input that its windows have."""
        return _read(self.rows, self.share) * _read(self.columns, self.width)

    def pays(self, read: int) -> bool:
        """Whether neighbouring windows share enough; `read`: see Limits."""
        few = self.read > read * self.share * self.width
        return not few and self.share * self.rows.window >= SHARED * _read(self.rows, self.share)

    @property
    def positions(self) -> int:
        """That a buffer is for: those of the input, in rows of an odd number, or of outputs."""
        width = max(self.width, _read(self.columns, self.width) | 1)
        return max(self.share, _read(self.rows, self.share)) * width


def transposed_walk(
    kernel: Any, axes: Axes, element_bytes: int, state_bytes: int, limits: Limits
) -> WalkParts | None:
    """The walk where it pays, else None; for states without positions."""
    *others, rows, columns = axes.spatial
    batch = [axis for axis in (*axes.batch, axes.lane) if axis.size > 1]
    if others or not batch:
        return None
    beside = axes.lane != NO_LANE
    planes, lanes = batch[-1], kernel.VECTOR_BYTES // element_bytes
    shortest, spare = limits.far, SPARE if beside else SPARE_FAR
    if rows.size * columns.size <= NEAR:
        shortest, spare = limits.near_beside if beside else limits.near, SPARE
    vectors = ceildiv(planes.size, lanes)
    if planes.size < lanes or (vectors * lanes - planes.size) * spare > planes.size:
        return None
    if not all(_serves(axis, shortest, limits.longest) for axis in (rows, columns)):
        return None
    tile = _Tile(rows, columns, rows.out_size, columns.out_size)
    positions = TILE * element_bytes // state_bytes
    if beside:
        tile = _reduced(tile, positions)
        serves = planes.out_step == element_bytes and tile.pays(limits.read)
    else:
        few = rows.size * columns.size <= limits.plane and tile.pays(limits.read_plane)
        clash = any(_clash(step, lanes) for step in (planes.step, planes.out_step))
        serves = few and not clash and _adjoin(kernel, rows, columns, element_bytes)
    items = vectors * ceildiv(rows.out_size, tile.share) * ceildiv(columns.out_size, tile.width)
    items *= math.prod(axis.size for axis in batch[:-1])
    # One item is for one thread, lines are for all.
    moved = lanes * element_bytes * (tile.read + tile.share * tile.width)
    alone = items == 1 and moved >= machine.LARGE_BYTES
    if not serves or alone or tile.positions > positions:
        return None
    settings = np.zeros(kernel.SETTINGS, np.int64)
    settings[kernel.SHARE], settings[kernel.TILE] = tile.share, tile.width
    settings[kernel.TRANSPOSED_BYTES] = tile.positions * kernel.VECTOR_BYTES
    settings[kernel.BATCH], settings[kernel.SPATIAL] = len(batch), 2
    return WalkParts(state_bytes, settings, batch, axes.spatial, items)


def _serves(axis: SpatialAxis, shortest: int, longest: int | None) -> bool:
    """Whether its windows are of such lengths, begin side by side and have an element each."""
    inside = axis.padding < axis.window and axis.out_size - axis.padding <= axis.size
    fits = shortest <= axis.window <= (longest or axis.window)
    return inside and fits and axis.stride == axis.dilation == 1


def _clash(step: int, lanes: int) -> bool:
    """Whether planes so many bytes apart fall into few sets of the caches: that takes 1.1 to 2.2 times as long.

    >>> _clash(4096, 16), _clash(4100, 16), _clash(2048, 16)
    (True, False, False)
    """
    return lanes * math.gcd(step, CLASH_BYTES) >= CLASH_BYTES


def _adjoin(kernel: Any, rows: SpatialAxis, columns: SpatialAxis, element_bytes: int) -> bool:
    """Whether a plane's elements adjoin, and are all in windows, and its outputs do; either fill a unit at least."""
    spatial = rows, columns
    if any(axis.out_size - 1 - axis.padding + axis.window < axis.size for axis in spatial):
        return False
    along = [(axis.size, axis.step) for axis in spatial]
    out_along = [(axis.out_size, axis.out_step) for axis in spatial]
    for steps in (along, out_along):
        n = math.prod(size for size, _ in steps)
        if n * element_bytes < kernel.UNIT_BYTES or merge(steps) != [(n, element_bytes)]:
            return False
    return True


def _read(axis: SpatialAxis, outputs: int) -> int:
    """Elements that so many windows side by side have, at most."""
    return min(axis.size, outputs - 1 + axis.window)


def _reduced(tile: _Tile, positions: int) -> _Tile:
    """The tile halved, along the longer side, until it has no more positions, or is one output."""
    while tile.positions > positions and tile.share * tile.width > 1:
        if tile.share >= tile.width:
            tile = tile._replace(share=ceildiv(tile.share, 2))
        else:
            tile = tile._replace(width=ceildiv(tile.width, 2))
    share, width = evened(tile.rows.out_size, tile.share), evened(tile.columns.out_size, tile.width)
    return tile._replace(share=share, width=width)
