"""The walk of long windows over many planes: see `transposed_chunk` of the max_pool kernel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from specops import geometry
from specops.geometry import ceildiv, evened
from specops.lowering.plane_tables import packs
from specops.lowering.pool_axes import SpatialAxis
from specops.lowering.pooling import NO_LANE, Axes, WalkParts

# The shortest windows, along both axes: they and longer ones take 0.05 to 1.05 of the time, others up to twice it.
SHORTEST, SHORTEST_NEAR = 9, 7
UNPACKED, UNPACKED_BESIDE, UNPACKED_NEAR = 7, 5, 3  # where small planes are not packed
NEAR = 256  # positions that stay in the first-level cache
PLANE = 1000  # positions of a plane whose elements adjoin, at most: lines take 0.3 to 1 of the time of larger ones
TILE = 4096  # positions of a tile, at most: two buffers of 256 KiB
# Times as many positions as outputs, at most: of a tile, and of a plane whose elements adjoin.
READ, READ_PLANE = 4, 10
SPARE = 4  # of so many planes one may be done twice, at most


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

    @property
    def positions(self) -> int:
        """That a buffer is for: those of the input, in rows of an odd number, or of outputs."""
        width = max(self.width, _read(self.columns, self.width) | 1)
        return max(self.share, _read(self.rows, self.share)) * width


def transposed_walk(kernel: Any, axes: Axes, item_bytes: int) -> WalkParts | None:
    """The walk where it pays for windows of which the greatest values alone are wanted, else None."""
    *others, rows, columns = axes.spatial
    batch = [axis for axis in axes.batch if axis.size > 1]
    beside = axes.lane != NO_LANE
    if beside:
        batch.append(axes.lane)
    if others or not batch:
        return None
    planes, lanes = batch[-1], kernel.VECTOR_BYTES // item_bytes
    vectors = ceildiv(planes.size, lanes)
    if planes.size < lanes or (vectors * lanes - planes.size) * SPARE > planes.size:
        return None
    shortest = _shortest(beside, near=rows.size * columns.size <= NEAR)
    if not all(_serves(axis, shortest) for axis in (rows, columns)):
        return None
    tile = _Tile(rows, columns, rows.out_size, columns.out_size)
    if beside:
        tile = _reduced(tile)
        serves = planes.out_step == item_bytes
    else:
        serves = rows.size * columns.size <= PLANE and _adjoin(kernel, rows, columns, item_bytes)
    most = (READ if beside else READ_PLANE) * tile.share * tile.width
    if not serves or tile.read > most or tile.positions > TILE:
        return None
    settings = np.zeros(kernel.SETTINGS, np.int64)
    settings[kernel.ROWS], settings[kernel.TILE] = tile.share, tile.width
    settings[kernel.BUFFER] = tile.positions * kernel.VECTOR_BYTES
    settings[kernel.BATCH], settings[kernel.SPATIAL] = len(batch), 2
    items = vectors * ceildiv(rows.out_size, tile.share) * ceildiv(columns.out_size, tile.width)
    items *= math.prod(axis.size for axis in batch[:-1])
    return WalkParts(item_bytes, settings, batch, axes.spatial, items)


def _shortest(beside: bool, *, near: bool) -> int:
    """The shortest windows, along both axes, for which it pays."""
    if packs():
        return SHORTEST_NEAR if near else SHORTEST
    if not near:
        return UNPACKED
    return UNPACKED_BESIDE if beside else UNPACKED_NEAR


def _serves(axis: SpatialAxis, shortest: int) -> bool:
    """Whether its windows are long enough, begin side by side and have an element each."""
    inside = axis.padding < axis.window and axis.out_size - axis.padding <= axis.size
    return inside and axis.window >= shortest and axis.stride == axis.dilation == 1


def _adjoin(kernel: Any, rows: SpatialAxis, columns: SpatialAxis, item_bytes: int) -> bool:
    """Whether a plane's elements adjoin, and are all in windows, and its outputs do; either fill a unit at least."""
    spatial = rows, columns
    if any(axis.out_size - 1 - axis.padding + axis.window < axis.size for axis in spatial):
        return False
    along = [(axis.size, axis.step) for axis in spatial]
    out_along = [(axis.out_size, axis.out_step) for axis in spatial]
    for steps in (along, out_along):
        n = math.prod(size for size, _ in steps)
        if n * item_bytes < kernel.UNIT_BYTES or geometry.merge(steps) != [(n, item_bytes)]:
            return False
    return True


def _read(axis: SpatialAxis, outputs: int) -> int:
    """Elements that so many windows side by side have, at most."""
    return min(axis.size, outputs - 1 + axis.window)


def _reduced(tile: _Tile) -> _Tile:
    """The tile halved, along the longer side, until it is small enough or one output."""
    while tile.positions > TILE and tile.share * tile.width > 1:
        if tile.share >= tile.width:
            tile = tile._replace(share=ceildiv(tile.share, 2))
        else:
            tile = tile._replace(width=ceildiv(tile.width, 2))
    share, width = evened(tile.rows.out_size, tile.share), evened(tile.columns.out_size, tile.width)
    return tile._replace(share=share, width=width)
