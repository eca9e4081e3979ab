"""Which planes an item has: some along the innermost of the batch axes, each of them several side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from batch import BATCH_COLUMNS, BATCH_SIZE, offsets_of
from compiled import helper
from memory import ceildiv, least, split
from pool_settings import BATCH, LANE_OTHER, LANE_OUT, LANE_WEIGHT, LANES, PITCH
from walk import axis_of


class PlaneSet(NamedTuple):
    """Planes of an item, and where the first one is."""

    count: Any
    lanes: Any  # places of the batch axis that stand side by side
    source: Any  # offsets in the input, the output and the other array
    out: Any
    other: Any
    base: Any  # index of the first element


@helper
def plane_set(how, batch, most, number, item_bytes):
    """One of the sets of at most `most` planes and PITCH lanes, whose elements take `item_bytes` in the input."""
    size = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)[BATCH_SIZE]
    lanes, pitch = how[LANES], how[PITCH]
    rest, lane = split(number, ceildiv(lanes, pitch))
    lane *= pitch
    rest, plane = split(rest, ceildiv(size, most))
    plane *= most
    source, out, other, base = offsets_of(batch, how[BATCH], rest * size + plane)
    return PlaneSet(
        least(most, size - plane),
        least(pitch, lanes - lane),
        source + lane * item_bytes,
        out + lane * how[LANE_OUT],
        other + lane * how[LANE_OTHER],
        base + lane * how[LANE_WEIGHT],
    )
