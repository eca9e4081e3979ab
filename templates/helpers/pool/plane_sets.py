"""Which planes an item has: some along the innermost of the batch axes, each of them several side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from batch import batch_axis, offsets_of
from compiled import helper, inlined
from memory import ceildiv, least, split
from pool_settings import BATCH, LANE_OTHER, LANE_OUT, LANE_WEIGHT, LANES, PITCH


class PlaneSet(NamedTuple):
    """Planes of an item, and where the first one is."""

    count: Any
    lanes: Any  # places of the batch axis that stand side by side
    source: Any  # offsets in the input, the output and the other array
    out: Any
    other: Any
    base: Any  # index of the first element


class PlaneSets(NamedTuple):
    """The innermost of the batch axes, planes of a set at most, and how many sets it has: of planes, and of lanes."""

    size: Any
    most: Any
    planes: Any
    lanes: Any


@helper
def plane_sets(settings, batch, most):
    """What all items have in common, each of which has so many planes at most: two divisions less for each."""
    size = batch_axis(batch, settings[BATCH] - 1).size
    return PlaneSets(size, most, ceildiv(size, most), ceildiv(settings[LANES], settings[PITCH]))


@inlined
def plane_set(settings, batch, sets, number, element_bytes):
    """One of the sets of planes, of PITCH lanes at most, whose elements take `element_bytes` in the input."""
    pitch = settings[PITCH]
    rest, lane = split(number, sets.lanes)
    lane *= pitch
    rest, plane = split(rest, sets.planes)
    plane *= sets.most
    source, out, other, base = offsets_of(batch, settings[BATCH], rest * sets.size + plane)
    return PlaneSet(
        least(sets.most, sets.size - plane),
        least(pitch, settings[LANES] - lane),
        source + lane * element_bytes,
        out + lane * settings[LANE_OUT],
        other + lane * settings[LANE_OTHER],
        base + lane * settings[LANE_WEIGHT],
    )
