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
    batch_axis,
    offsets_of,
)
from compiled import entry, helper, inlined
from greatest import Greatest
from loops import prefer_small_code
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
    Indices,
    Runs,
    States,
    Strided,
    copy_element,
    store_elements,
    store_found,
)
from pool_outputs import Outputs, layout_of
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
from walk import integers, lane_types, narrowed, rule_of
from window_group import edge_bytes
from windows import BOX_BYTES, outputs_of, spatial_axis, window_of


@helper
def _address(settings, spatial, plane, position):
    """Address of the element at a position of a plane."""
    if settings[DENSE] != 0:
        return plane + position * settings[DENSE]
    for d in range(settings[SPATIAL]):
        axis = spatial_axis(spatial, d)
        digit, position = split(position, axis.weight)
        plane += digit * axis.step
    return plane


@helper
def _counted(settings, spatial, position):
    """The position as indices count it: with the last axis fastest, or with the first."""
    if settings[COLUMN_MAJOR] == 0:
        return position
    index = 0
    weight = 1
    for d in range(settings[SPATIAL]):
        axis = spatial_axis(spatial, d)
        digit, position = split(position, axis.weight)
        index += digit * weight
        weight *= axis.size
    return index


@helper
def _store_winner(settings, spatial, plane, position, target, index_target, base, flip):
    """Store the element at a position of a plane, and its index if indices are wanted."""
    element = _address(settings, spatial, plane, position)
    store_integer(flip, target, load_integer(flip, element))
    if settings[INDEX_BYTES] != 0:
        index = base + _counted(settings, spatial, position)
        store_element(index_target, index, settings[INDEX_BYTES])


@helper
def _outputs_of(item):
    return Outputs(item.planes.count, item.planes.lanes, item.rows.count, item.columns.count)


@helper
def _store_positions(tables, _scratch, item, lines, kind, rule):
    """Store the positions, side by side, of an item's outputs, for the gradient: a quarter less to compile."""
    layout = layout_of(tables, _outputs_of(item), lines, False)
    plane_step = tables.planes.other_step
    for line in range(layout.lines):
        states, target = (
            lines.address + line * layout.line_states,
            item.other + line * layout.line_other,
        )
        store_found(
            None,
            Strided(target, plane_step, layout.run_other),
            States(states, lines.plane_step, layout.run_states, lines.pieces),
            Runs(item.planes.count, layout.runs, layout.n),
            Indices(item.origin, 0, 0, 8),
            rule.flip,
            False,
            kind,
            rule,
        )


class Part(NamedTuple):
    """A line of some of an item's planes, and of that one run, or all of them where `run` is below 0."""

    plane: Any
    planes: Any
    line: Any
    run: Any


@helper
def _element_steps(tables):
    """Bytes from one element of a run to the next, in the output and in the other array."""
    axis = tables.columns
    if tables.settings[PITCH] > 1:
        return tables.settings[LANE_OUT], tables.settings[LANE_OTHER]
    return axis.out_step, axis.other_step


@helper
def _scatter_elements(tables, spare, target, n, kind):
    """Store n elements that scratch memory holds."""
    step, size = _element_steps(tables)[0], element_size(kind)
    for i in range(n):
        copy_element(target + i * step, spare + i * size, kind)


@helper
def _scatter_found(tables, spare, source, target, index_target, base, n, blank, kind):
    """Store n elements, and their indices, of which scratch memory holds the positions in their planes."""
    settings, spatial, size = tables.settings, tables.spatial, element_size(kind)
    step, index_step = _element_steps(tables)
    weight = settings[LANE_WEIGHT]
    if settings[PITCH] == 1:
        size, weight = 0, 0
    for i in range(n):
        position = load_integer(np.int64(0), spare + i * 8)
        index = -1
        if position < 0:
            store_integer(blank, target + i * step, blank)
        else:
            element = _address(settings, spatial, source + i * size, position)
            copy_element(target + i * step, element, kind)
            index = base + i * weight + _counted(settings, spatial, position)
        store_element(index_target + i * index_step, index, settings[INDEX_BYTES])


def _storing(indexed: bool) -> Any:
    """Store the outputs of an item, whose states are yet to be joined of pieces; with their indices if `indexed`."""

    @inlined
    def store_part(tables, scratch, item, lines, layout, part, kind, rule):
        """All runs straight from states to outputs that are plain, or one, to any, by way of scratch memory.

        True if a NaN is among the former, whose bits are not in its state: where indices are wanted, these are wrong.
        """
        settings, steps, spare = tables.settings, tables.planes, scratch.spare
        straight, n = part.run < 0, layout.n
        plane, line, run = part.plane, part.line, most(part.run, 0)
        place = lines.address + plane * lines.plane_step
        place += line * layout.line_states + run * layout.run_states
        out = item.out + plane * steps.out_step + line * layout.line_out + run * layout.run_out
        other = item.other + plane * steps.other_step
        other += line * layout.line_other + run * layout.run_other
        states = States(place, lines.plane_step, layout.run_states, lines.pieces)
        runs = Runs(part.planes, layout.runs if straight else 1, n)
        past = straight and settings[PAST] != 0
        if not indexed:
            target = Strided(out if straight else spare, steps.out_step, layout.run_out)
            store_elements(target, states, runs, past, kind, rule)
            if not straight:
                _scatter_elements(tables, spare, out, n, kind)
            return False
        base, blank = item.planes.base + plane * steps.weight, narrowed(settings[BLANK], rule.flip)
        indices = Indices(item.origin, 0, 0, 8)
        if straight:
            weight = settings[LANE_WEIGHT] if settings[PITCH] > 1 else 0
            indices = Indices(base + item.origin, steps.weight, weight, settings[INDEX_BYTES])
        some_nan = store_found(
            Strided(out if straight else spare + n * 8, steps.out_step, layout.run_out),
            Strided(other if straight else spare, steps.other_step, layout.run_other),
            states,
            runs,
            indices,
            blank,
            past,
            kind,
            rule,
        )
        if not straight:
            source = item.source + plane * steps.step
            _scatter_found(tables, spare, source, out, other, base, n, blank, kind)
        return some_nan

    @helper
    def store(tables, scratch, item, lines, kind, rule):
        """All planes, and all runs of a line, at once where outputs are plain.

        With indices, a line that has a NaN is stored again, plane by plane, and in the plane that has the NaN run by
        run.
        """
        prefer_small_code()
        planes, index_bytes = item.planes.count, tables.settings[INDEX_BYTES]
        step, index_step = _element_steps(tables)
        plain = step == element_size(kind) and tables.settings[COLUMN_MAJOR] == 0
        plain = plain and (index_bytes == 0 or index_step == index_bytes)
        # Outputs of a row adjoin, as states do; indices of lanes that stand side by side do not count up.
        pitch = tables.settings[PITCH]
        adjoin = not indexed and plain and lines.step == pitch * state_size(kind)
        adjoin = adjoin and tables.columns.out_step == pitch * element_size(kind)
        layout = layout_of(tables, _outputs_of(item), lines, adjoin)
        for line in range(layout.lines):
            plane, some, run = 0, planes if plain else 1, -1 if plain else 0
            while plane < planes:
                part = Part(plane, some, line, run)
                some_nan = store_part(tables, scratch, item, lines, layout, part, kind, rule)
                if run >= 0:
                    run += 1
                    if run == layout.runs:
                        plane, run = plane + 1, -1 if plain else 0
                elif not some_nan:
                    plane += some
                elif some > 1:
                    some = 1
                else:
                    run = 0

    return store


_store_elements = _storing(indexed=False)
_store_found = _storing(indexed=True)


@helper
def _store_transposed(_spatial, _tile, target, source, positions, _divisors, _none, kind, rule):
    """Store the outputs of a tile of planes, whose states are joined."""
    transposed_elements(target, source, positions, kind, rule)


def direct(width, is_float):
    """Chunk that works window by window, where a line or its positions would not fit; an item is SHARE outputs."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, indices, begin, end):
        settings, batch, spatial = pool_tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        blank = narrowed(settings[BLANK], lane)
        axes, share = settings[SPATIAL], settings[SHARE]
        axis = spatial_axis(spatial, axes - 1)
        n, out_step, index_step = axis.out_size, axis.out_step, axis.other_step
        before = WINNERS_EDGES * edge_bytes(settings[EDGE])
        scratch = allocate(before + BOX_BYTES * axes)
        box = integers(scratch + before)
        outputs = outputs_of(spatial, axes)
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
                if settings[EDGE] != 0 and window.box.total > 0:
                    column = row % n
                    count = winners_together(
                        axis,
                        settings[EDGE],
                        window,
                        column,
                        least(n - column, stop - row),
                        plane,
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
                if window.box.total == 0:
                    store_integer(rule.flip, target, blank)
                    if settings[INDEX_BYTES] != 0:
                        store_element(index_target, -1, settings[INDEX_BYTES])
                    continue
                _key, place = window_winner(plane + window.offset, window.box, rule)
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
        axis = batch_axis(batch, settings[BATCH] - 1)
        planes, step, weight = axis.size, axis.step, axis.weight
        out_step, index_step = axis.out_step, axis.other_step
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
