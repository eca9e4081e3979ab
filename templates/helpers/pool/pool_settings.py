"""The settings of a walk over windows, and its tables."""

from __future__ import annotations

from typing import Any, NamedTuple

from apart import NEAR_STEPS
from batch import BATCH_BYTES, batch_axis
from compiled import helper
from memory import VECTOR_BYTES
from strips import WIDEST
from walk import integers
from windows import spatial_axis

# A walk by lines, by packed or transposed planes or window by window is made of these settings, then two tables of
# axes, whose lengths are among the settings: those of planes (see batch), one at least, and those that windows move
# along (see windows), two at least.
LANES = 0  # lines: size of the batch axis whose elements stand side by side in a line; 1: none
PITCH = 1  # lines: of them, those taken together
LANE_OUT = 2  # as the columns of a table of batch axes
LANE_OTHER = 3
LANE_WEIGHT = 4
TILE = 5  # lines, transposed: innermost output positions taken together
SHARE = 6  # of an item: lines, transposed: rows of outputs; direct: outputs; planes with one window: planes
SCRATCH = 7  # lines: bytes of scratch memory
DENSE = 8  # bytes from one spatial position to the next, where one stride serves; else 0
INDEX_BYTES = 9  # of an index; 0: no indices are wanted
COLUMN_MAJOR = 10  # indices count so within the spatial plane
PLANE = 11  # positions of a spatial plane
LINE = 12  # lines, packed: states from one line to the next
BUFFER = 13  # lines, packed: bytes of all lines
# Windows' rows are folded by doubling, from lines of single rows of the input.
TALL = 14  # lines; packed: only of sums, as the greatest always are folded so
BATCH = 15  # lengths of the tables
SPATIAL = 16
RULE = 17  # of the greatest: flip, nan_key and inf
BLANK = 20  # the value of a window of nothing but padding
PLANES = 21  # packed: planes of an item; lines: as well, one after the other, or 1 where an item is a part of one
TABLE_AT = 22  # packed: the address of the table
PLANE_PITCH = 23  # packed: states from one plane to the next
KEPT = 24  # packed: the same of the rows that are kept, where not all are; else 0
TRANSPOSED_BYTES = 25  # transposed: of one vector of each position
PAST = 26  # lines, gradients: outputs, or indices where they are wanted, go past the caches
EDGE = 27  # direct: see window_group; 0: each window by itself
OWN = 28  # and further: those that a kernel module has besides
SETTINGS = 32

GAP_BYTES = WIDEST * VECTOR_BYTES  # behind each plane's lines: what join_taps may write there
# The largest stride of outputs that are picked out of whole vectors of states: 0.45 to 0.8 of the time of 3 and 4.
NEAR_STRIDE = NEAR_STEPS[-1]
# Behind all lines: where every second state is wanted, twice as much is read, and so on.
SLACK_BYTES = NEAR_STRIDE * GAP_BYTES


@helper
def pool_tables(walk):
    """The settings, and the tables batch and spatial."""
    settings = integers(walk)
    batch = walk + 8 * SETTINGS
    return settings, integers(batch), integers(batch + BATCH_BYTES * settings[BATCH])


class Tables(NamedTuple):
    """What a walk is made of, with the axes that most is about."""

    settings: Any
    batch: Any
    spatial: Any
    planes: Any  # the innermost of the batch axes
    rows: Any  # the spatial axis from one row to the next, the last but one, and the one along rows, the last
    columns: Any


@helper
def tables_of(walk):
    settings, batch, spatial = pool_tables(walk)
    inner = settings[SPATIAL] - 1
    planes = batch_axis(batch, settings[BATCH] - 1)
    rows, columns = spatial_axis(spatial, inner - 1), spatial_axis(spatial, inner)
    return Tables(settings, batch, spatial, planes, rows, columns)
