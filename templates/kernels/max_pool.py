# mypy: allow-untyped-defs, no-check-untyped-defs
"""Greatest element of each window, and its position, for any type, layout and NaN rule.

The maximum separates: the rows of each window are joined in a line of scratch memory, then shifted copies of the
line with each other, doubling the shift, so that large windows cost little more than small ones. Several lines are
taken together, one after the other in memory. Addresses are raw and strides are in bytes, so that only the
element's width, whether it is a float, and the width of a state make a new compiled version.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import (
    BATCH_COLUMNS,
    BATCH_OTHER,
    BATCH_OUT,
    BATCH_SIZE,
    BATCH_STEP,
    BATCH_WEIGHT,
    offsets_of,
)
from compiled import entry, helper
from greatest import Greatest
from max_window import WINNERS_EDGES, window_winner, winners_together
from memory import (
    allocate,
    ceildiv,
    element_size,
    least,
    load_index,
    load_integer,
    most,
    release,
    split,
    store_element,
    store_integer,
)
from pool_line import (
    Destination,
    Indices,
    Pieces,
    Runs,
    copy_element,
    lane_runs,
    store_elements,
    store_found,
)
from pool_packed import pack_elements, packed_chunk
from pool_settings import (
    BATCH,
    BLANK,
    COLUMN_MAJOR,
    DENSE,
    EDGE,
    INDEX_BYTES,
    LANE_OTHER,
    LANE_OUT,
    LANE_WEIGHT,
    LINE,
    PAST,
    PITCH,
    RULE,
    SHARE,
    SPATIAL,
    pool_tables,
)
from pool_state import state_size
from pool_transposed import transposed_chunk, transposed_elements
from pool_walk import TABLE, line_chunk
from walk import axis_of, integers, lane_types, narrowed, product_of, rule_of
from window_group import edge_bytes
from windows import (
    BOX_COLUMNS,
    COLUMNS,
    OTHER_STEP,
    OUT_SIZE,
    OUT_STEP,
    SIZE,
    STEP,
    STRIDE,
    WEIGHT,
    window_of,
)


@helper
def _address(settings, spatial, plane, position):
    """Address of the element at a position of a plane."""
    if settings[DENSE] != 0:
        return plane + position * settings[DENSE]
    for d in range(settings[SPATIAL]):
        axis = axis_of(spatial, d, COLUMNS)
        digit, position = split(position, axis[WEIGHT])
        plane += digit * axis[STEP]
    return plane


@helper
def _column_major(spatial, axes, position):
    """The position counted with the first axis fastest."""
    index = 0
    weight = 1
    for d in range(axes):
        axis = axis_of(spatial, d, COLUMNS)
        digit, position = split(position, axis[WEIGHT])
        index += digit * weight
        weight *= axis[SIZE]
    return index


@helper
def _scatter_elements(settings, spatial, spare, target, n, kind):
    """Store n elements that scratch memory holds."""
    step = axis_of(spatial, settings[SPATIAL] - 1, COLUMNS)[OUT_STEP]
    if settings[PITCH] > 1:
        step = settings[LANE_OUT]
    for i in range(n):
        copy_element(target + i * step, spare + i * element_size(kind), kind)


@helper
def _scatter_found(
    settings, spatial, spare, plane, plane_step, target, index_target, base, n, blank, kind
):
    """Store n elements, and their indices, of which scratch memory holds the positions."""
    axis = axis_of(spatial, settings[SPATIAL] - 1, COLUMNS)
    alone = settings[PITCH] == 1
    step = axis[OUT_STEP] if alone else settings[LANE_OUT]
    index_step = axis[OTHER_STEP] if alone else settings[LANE_OTHER]
    weight = 0 if alone else settings[LANE_WEIGHT]
    for i in range(n):
        position = load_integer(np.int64(0), spare + i * 8)
        index = -1
        if position < 0:
            store_integer(blank, target + i * step, blank)
        else:
            element = _address(settings, spatial, plane + i * plane_step, position)
            copy_element(target + i * step, element, kind)
            if settings[COLUMN_MAJOR] != 0:
                position = _column_major(spatial, settings[SPATIAL], position)
            index = base + i * weight + position
        store_element(index_target + i * index_step, index, settings[INDEX_BYTES])


class Layout(NamedTuple):
    """How an item's outputs are stored: line by line, all runs of one at once; or all lines at once, one run each."""

    lines: Any
    line_step: Any  # bytes from one line's states to those of the next; then those of its outputs and indices
    line_out: Any
    line_index: Any
    runs: Any
    run_step: Any
    run_out: Any
    run_index: Any
    n: Any  # states of a run
    weight: Any  # what is added to the index from one state to the next, beside its position
    plane_step: Any  # bytes from one state's plane to that of the next


@helper
def _layout(settings, spatial, outputs, adjoin, kind):
    """See Layout; `adjoin`: the lanes of a place adjoin those of the next, in the line and in the outputs."""
    inner, pitch = settings[SPATIAL] - 1, settings[PITCH]
    axis, row_axis = axis_of(spatial, inner, COLUMNS), axis_of(spatial, inner - 1, COLUMNS)
    line_step = settings[LINE] * state_size(kind)
    runs, n = lane_runs(pitch, outputs.lanes, outputs.columns, adjoin)
    weight, plane_step = (settings[LANE_WEIGHT], element_size(kind)) if pitch > 1 else (0, 0)
    if runs == 1:
        return Layout(
            lines=1,
            line_step=0,
            line_out=0,
            line_index=0,
            runs=outputs.rows,
            run_step=line_step,
            run_out=row_axis[OUT_STEP],
            run_index=row_axis[OTHER_STEP],
            n=n,
            weight=weight,
            plane_step=plane_step,
        )
    return Layout(
        lines=outputs.rows,
        line_step=line_step,
        line_out=row_axis[OUT_STEP],
        line_index=row_axis[OTHER_STEP],
        runs=runs,
        run_step=axis[STRIDE] * pitch * state_size(kind),
        run_out=axis[OUT_STEP],
        run_index=axis[OTHER_STEP],
        n=n,
        weight=weight,
        plane_step=plane_step,
    )


@helper
def _store_positions(
    settings, spatial, outputs, places, planes, line_at, pieces, _scratch, kind, rule
):
    """Store the positions, side by side, of an item's outputs, for the gradient: a quarter less to compile."""
    layout = _layout(settings, spatial, outputs, False, kind)
    if settings[PITCH] > 1:
        pieces = Pieces(1, pieces.count, pieces.step, pieces.last)
    for line in range(layout.lines):
        store_found(
            None,
            Destination(places.other + line * layout.line_index, planes.other, layout.run_index),
            Runs(
                line=line_at + line * layout.line_step,
                planes=planes.count,
                plane_line=planes.line,
                count=layout.runs,
                line_step=layout.run_step,
                n=layout.n,
                pieces=pieces,
            ),
            Indices(places.origin, 0, 0, 8),
            rule.flip,
            False,
            kind,
            rule,
        )


@helper
def _is_plain(settings, axis, element_bytes):
    """Whether states that stand side by side in a line do so in the outputs."""
    step, index_step, index_bytes = axis[OUT_STEP], axis[OTHER_STEP], settings[INDEX_BYTES]
    if settings[PITCH] > 1:
        step, index_step = settings[LANE_OUT], settings[LANE_OTHER]
    indices_do = index_bytes == 0 or index_step == index_bytes
    return step == element_bytes and indices_do and settings[COLUMN_MAJOR] == 0


def _storing(indexed: bool) -> Any:
    """Store the outputs of an item, whose states are yet to be joined of pieces; with their indices if `indexed`."""

    @helper
    def store(settings, spatial, outputs, places, planes, line_at, pieces, scratch, kind, rule):
        """Straight from states to outputs that are plain: all planes, and all runs of a line, at once.

        Others go run by run, by way of scratch memory. So do those with indices where a NaN is met, whose bits are not
        in its state: the line is stored again, plane by plane, and in the plane that has the NaN run by run.
        """
        spare, pitch, index_bytes = scratch.spare, settings[PITCH], settings[INDEX_BYTES]
        axis, element_bytes = axis_of(spatial, settings[SPATIAL] - 1, COLUMNS), element_size(kind)
        blank = narrowed(settings[BLANK], rule.flip)
        plain = _is_plain(settings, axis, element_bytes)
        adjoin = not indexed and plain and axis[STRIDE] == 1
        adjoin = adjoin and axis[OUT_STEP] == pitch * element_bytes
        layout = _layout(settings, spatial, outputs, adjoin, kind)
        if pitch > 1:
            pieces = Pieces(1, pieces.count, pieces.step, pieces.last)
        together = planes.count if plain else 1
        straight = plain
        plane, line = 0, 0
        while plane < planes.count:
            states = line_at + plane * planes.line + line * layout.line_step
            to = places.out + plane * planes.out + line * layout.line_out
            index_to = places.other + plane * planes.other + line * layout.line_index
            base = places.base + plane * planes.base
            some_nan = False
            some = layout.runs if straight else 1
            for run in range(0, layout.runs, some):
                joined = Runs(
                    line=states + run * layout.run_step,
                    planes=together,
                    plane_line=planes.line,
                    count=some,
                    line_step=layout.run_step,
                    n=layout.n,
                    pieces=pieces,
                )
                target = to + run * layout.run_out
                past = straight and settings[PAST] != 0
                if not indexed:
                    elements = Destination(
                        target if straight else spare, planes.out, layout.run_out
                    )
                    store_elements(elements, joined, past, kind, rule)
                    if not straight:
                        _scatter_elements(settings, spatial, spare, target, layout.n, kind)
                    continue
                index_target = index_to + run * layout.run_index
                some_nan = store_found(
                    Destination(
                        target if straight else spare + layout.n * 8, planes.out, layout.run_out
                    ),
                    Destination(
                        index_target if straight else spare, planes.other, layout.run_index
                    ),
                    joined,
                    Indices(
                        base + places.origin if straight else places.origin,
                        planes.base,
                        layout.weight if straight else 0,
                        index_bytes if straight else 8,
                    ),
                    blank,
                    past,
                    kind,
                    rule,
                )
                if not straight:
                    _scatter_found(
                        settings,
                        spatial,
                        spare,
                        places.source + plane * planes.source,
                        layout.plane_step,
                        target,
                        index_target,
                        base,
                        layout.n,
                        blank,
                        kind,
                    )
            if straight and some_nan:
                straight = together > 1
                together = 1
                continue
            straight = plain
            line += 1
            if line == layout.lines:
                line = 0
                plane += together

    return store


_store_elements = _storing(indexed=False)
_store_found = _storing(indexed=True)


@helper
def _store_transposed(_spatial, _tile, target, source, positions, _divisors, _none, kind, rule):
    """Store the outputs of a tile of planes, whose states are joined."""
    transposed_elements(target, source, positions, kind, rule)


@helper
def _store_winner(settings, spatial, plane, position, target, index_target, base, flip):
    """Store the element at a position of a plane, and its index if indices are wanted."""
    element = _address(settings, spatial, plane, position)
    store_integer(flip, target, load_integer(flip, element))
    if settings[INDEX_BYTES] != 0:
        if settings[COLUMN_MAJOR] != 0:
            position = _column_major(spatial, settings[SPATIAL], position)
        store_element(index_target, base + position, settings[INDEX_BYTES])


def direct(width, is_float):
    """Chunk that works window by window, where a line or its positions would not fit; an item is SHARE outputs."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        settings, batch, spatial = pool_tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        blank = narrowed(settings[BLANK], lane)
        axes, share = settings[SPATIAL], settings[SHARE]
        axis = axis_of(spatial, axes - 1, COLUMNS)
        n, out_step, index_step = axis[OUT_SIZE], axis[OUT_STEP], axis[OTHER_STEP]
        before = WINNERS_EDGES * edge_bytes(settings[EDGE])
        scratch = allocate(before + 8 * BOX_COLUMNS * axes)
        box = integers(scratch + before)
        outputs = product_of(spatial, axes, COLUMNS, OUT_SIZE)
        blocks = ceildiv(outputs, share)
        for item in range(begin, end):
            outer, row = split(item, blocks)
            row *= share
            stop = least(row + share, outputs)
            x_offset, out_offset, index_offset, base = offsets_of(batch, settings[BATCH], outer)
            plane = x + x_offset
            while row < stop:
                window = window_of(spatial, axes, row, box)
                target = out + out_offset + window.out
                index_target = indices + index_offset + window.other
                count = 0
                if settings[EDGE] != 0 and window.total > 0:
                    column = row % n
                    count = winners_together(
                        spatial,
                        axes,
                        settings[EDGE],
                        window,
                        column,
                        least(n - column, stop - row),
                        plane,
                        box,
                        scratch,
                        rule,
                    )
                for i in range(count):
                    _store_winner(
                        settings,
                        spatial,
                        plane,
                        integers(scratch)[i],
                        target + i * out_step,
                        index_target + i * index_step,
                        base,
                        rule.flip,
                    )
                row += most(count, 1)
                if count > 0:
                    continue
                if window.total == 0:
                    store_integer(rule.flip, target, blank)
                    if settings[INDEX_BYTES] != 0:
                        store_element(index_target, -1, settings[INDEX_BYTES])
                    continue
                first = plane + window.offset
                _key, place = window_winner(first, box, axes, window.total, rule)
                position = window.position + place
                _store_winner(
                    settings, spatial, plane, position, target, index_target, base, rule.flip
                )
        release(scratch)

    return chunk


def whole(width):
    """Chunk that stores the elements of whole planes, whose positions stand where indices are to be.

    An item is SHARE of them, along the innermost of the batch axes.
    """
    bits, _ = lane_types(width, False)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        settings, batch, spatial = pool_tables(walk)
        share, dense, index_bytes = settings[SHARE], settings[DENSE], settings[INDEX_BYTES]
        # Nothing of the walk is read again for each plane: 0.6 of the time.
        plain = dense != 0 and settings[COLUMN_MAJOR] == 0
        axis = axis_of(batch, settings[BATCH] - 1, BATCH_COLUMNS)
        planes, step, weight = axis[BATCH_SIZE], axis[BATCH_STEP], axis[BATCH_WEIGHT]
        out_step, index_step = axis[BATCH_OUT], axis[BATCH_OTHER]
        blocks = ceildiv(planes, share)
        for item in range(begin, end):
            outer, first = split(item, blocks)
            first *= share
            offsets = offsets_of(batch, settings[BATCH], outer * planes + first)
            plane, target, index_target = x + offsets[0], out + offsets[1], indices + offsets[2]
            base = offsets[3]
            for _ in range(least(share, planes - first)):
                position = load_index(index_target, index_bytes)
                if plain:
                    store_integer(bits, target, load_integer(bits, plane + position * dense))
                    store_element(index_target, base + position, index_bytes)
                else:
                    _store_winner(
                        settings, spatial, plane, position, target, index_target, base, bits
                    )
                plane += step
                target += out_step
                index_target += index_step
                base += weight

    return chunk


def _rule_reader(width, is_float):
    """What reads the rule of states of elements of so many bits from a walk's settings."""
    lane, float_lane = lane_types(width, is_float)

    @helper
    def read_rule(settings):
        return rule_of(settings, RULE, lane, float_lane)

    return read_rule


def lines(width, is_float, position_width):
    """Chunk that works line by line; an item is SHARE rows of a tile of a plane, or of PITCH planes side by side.

    `position_width`: see Greatest.
    """
    store = _store_found if position_width else _store_elements
    return line_chunk(Greatest(width, position_width), _rule_reader(width, is_float), TABLE, store)


def positions(width, position_width):
    """Chunk that finds the positions of the greatest floats, for the gradient; see `lines`."""
    return line_chunk(
        Greatest(width, position_width), _rule_reader(width, True), TABLE, _store_positions
    )


def packed(width, is_float):
    """Chunk for small planes without indices: see packed_chunk."""
    return packed_chunk(Greatest(width, 0), _rule_reader(width, is_float), pack_elements)


def transposed(width, is_float):
    """Chunk for long windows without indices: see transposed_chunk."""
    read_rule = _rule_reader(width, is_float)
    return transposed_chunk(Greatest(width, 0), read_rule, _store_transposed)
