# mypy: allow-untyped-defs, no-check-untyped-defs
"""What an average's input elements get of its windows' gradients, for any float type and layout.

An element's sum is over the windows that hold it, and separates as an average does. Inputs are as the windows, outputs
as what these lie on. Addresses are raw and strides are in bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from batch import batch_axis, offsets_of, places_of
from compiled import entry, helper
from divisors import counted_in_window, divisor_of, set_divisors
from doubling import double_lines
from memory import (
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    element_size,
    least,
    most,
    release,
    split,
)
from plane_sets import plane_set, plane_sets
from pool_line import Lines, Pieces, clear_states, lane_runs
from pool_outputs import Outputs
from pool_settings import (
    BATCH,
    BUFFER,
    PAST,
    PITCH,
    PLANE,
    PLANES,
    SCRATCH,
    SHARE,
    SPATIAL,
    TILE,
    pool_tables,
    tables_of,
)
from pool_state import state_size
from sum_line import (
    LineDivisors,
    Planes,
    add_quotients,
    add_to_sum,
    copy_sums,
    get_sum,
    load_float,
    set_elements,
    spread_sums,
    store_float,
    write_lines,
)
from sums import Sums
from walk import _row_finder, integers
from windows import elements_of, spatial_axis


class Holders(NamedTuple):
    """A row of a table of the windows that hold a position, which has one for each axis."""

    count: Any
    first: Any


_holders_along = _row_finder(Holders)
HOLDERS_BYTES = 8 * len(Holders._fields)  # of a row


class Buffers(NamedTuple):
    """Scratch memory of a chunk: a table of holders, and addresses of lines."""

    holders: Any
    line: Any
    doubled: Any
    rest: Any  # what does not fill a whole piece of a window
    divisors: Any
    spare: Any  # a run that is not yet stored


class Line(NamedTuple):
    """Input elements along the last axis, and the windows that hold one of them."""

    count: Any
    lanes: Any  # places of the batch axis that stand side by side
    start: Any  # where the line begins, in the padded input
    first: Any  # number of the first window
    holders: Any


@helper
def _holders(spatial, axes, row, holders):
    """The windows that hold input position `row`, row-major in the first `axes` axes.

    Fills the table `holders`; returns how many that makes, the offset of the position, and whether it held the same
    already: what such rows get is the same, too (0.6 to 1 of the time).
    """
    total = 1
    offset = 0
    same = True
    for d in range(axes - 1, -1, -1):
        axis = spatial_axis(spatial, d)
        row, digit = split(row, axis.size)
        ahead, stride = digit + axis.padding, axis.stride
        first = ceildiv(most(ahead - axis.window + 1, 0), stride)
        count = most(least(ahead // stride, axis.out_size - 1) - first + 1, 0)
        along = _holders_along(holders, d)
        same = same and along.count == count and along.first == first
        along.count, along.first = count, first
        total *= count
        offset += digit * axis.out_step
    return total, offset, same


@helper
def _holder(spatial, holders, axes, number):
    """Offset and divisor of a window, counted from the first of _holders."""
    offset = 0
    divisor = 1.0
    for d in range(axes - 1, -1, -1):
        along = _holders_along(holders, d)
        number, digit = split(number, along.count)
        output = along.first + digit
        offset += output * spatial_axis(spatial, d).step
        divisor *= counted_in_window(spatial, d, output)
    return offset, divisor


@helper
def _add_quotients_of(settings, spatial, planes, line, address, n, lanes, divisors, scale, kind):
    """Add what n windows of a row of each plane give to each of their elements, lane by lane."""
    size, element_bytes, pitch = state_size(kind), element_size(kind), settings[PITCH]
    step = spatial_axis(spatial, settings[SPATIAL] - 1).step
    if pitch == 1 and step != element_bytes:
        for plane in range(planes.count):
            line_at, start = line + plane * planes.line, address + plane * planes.source
            for i in range(n):
                value = load_float(start + i * step, kind)
                value /= get_sum(divisors, i, kind) * scale
                add_to_sum(line_at, i, value, kind)
        return
    runs, n_run = lane_runs(pitch, lanes, n, step == pitch * element_bytes)
    for i in range(runs):
        away = i * pitch * size
        line_at, start = line + away, address + i * step
        add_quotients(planes, line_at, start, n_run, divisors + away, scale, kind)


@helper
def _spread_places(planes, line, quotients, n, stride, pitch, kind):
    """Copy n places of each plane to where they stand in its line, `stride` places from each other."""
    place = pitch * state_size(kind)
    for plane in range(planes.count):
        to, from_ = line + plane * planes.line, quotients + plane * n * place
        if pitch == 1:
            spread_sums(to, from_, n, stride, kind)
            continue
        for i in range(n):
            copy_sums(to + i * stride * place, from_ + i * place, pitch, kind)


@helper
def _repeat(line, count, quotients, n, at, stride, window, pitch, kind):
    """Copy n places to all elements of their windows, of which the first begins at place `at` of a line."""
    place = pitch * state_size(kind)
    for i in range(n):
        begin = at + i * stride
        for p in range(most(begin, 0), least(begin + window, count)):
            copy_sums(line + p * place, quotients + i * place, pitch, kind)


@helper
def _give_rows(tables, buffers, part, planes, source, target, low, stop, kind):
    """Store what the elements of a line get, in rows `low` to `stop` - 1 of each plane."""
    settings, spatial = tables.settings, tables.spatial
    inner, pitch, size = settings[SPATIAL] - 1, settings[PITCH], state_size(kind)
    axis = tables.columns
    window, stride = axis.window, axis.stride
    held, line, doubled, rest, divisors, spare = buffers
    # Whether windows have nothing in common along the line; whether their quotients are first added up beside it.
    repeated = pitch > 1 and (window <= stride or axis.out_size == 1)
    aside = stride > 1 or repeated
    set_divisors(spatial, inner, divisors, part.first, part.holders, pitch, kind)
    in_all = planes.count * (planes.line // size)
    # Where quotients are added up, and how many places are cleared before.
    added, quotients, places = planes, line + (part.first - part.start) * pitch * size, in_all
    if aside:
        # Once: quotients come to the same places of each row, and nothing else is written to.
        clear_states(line, in_all, kind)
        adjoining = part.holders * pitch
        added = Planes(planes.count, adjoining * size, planes.source)
        quotients, places = doubled, planes.count * adjoining
    source += part.first * axis.step
    _holders_along(held, 0).count = -1  # none has so many
    finished, pieces = line, Pieces(1, 1, 0, 0)
    for row in range(low, stop):
        total, row_out, same = _holders(spatial, inner, row, held)
        if not same:
            clear_states(doubled if aside else line, places, kind)
            for number in range(total if part.holders > 0 else 0):
                offset, divisor = _holder(spatial, held, inner, number)
                given = source + offset
                _add_quotients_of(
                    settings,
                    spatial,
                    added,
                    quotients,
                    given,
                    part.holders,
                    part.lanes,
                    divisors,
                    divisor,
                    kind,
                )
            at = part.first * stride - part.start
            if repeated:
                at -= window - 1
                _repeat(line, part.count, doubled, part.holders, at, stride, window, pitch, kind)
            else:
                if aside:
                    place = line + at * pitch * size
                    _spread_places(planes, place, doubled, part.holders, stride, pitch, kind)
                finished, pieces = double_lines(doubled, rest, line, in_all, window, pitch, kind)
        outputs = Outputs(planes.count, part.lanes, 1, part.count)
        sums = Lines(finished, planes.line, planes.line, pitch * size, pieces)
        no_divisors = LineDivisors(0, 0)
        write_lines(tables, outputs, target + row_out, sums, no_divisors, spare, kind, None)


def lines(dtype, width):
    """Chunk that gives each input element the quotients of the windows that hold it, which it adds up as lines.

    A line has the windows' quotients where their last elements stand, and 0 between: the sum of as many places as a
    window has is what one input element gets. Of planes side by side those of windows that have nothing in common are
    repeated instead (0.7 to 0.9 of the time). An item is SHARE rows of TILE input elements; of small planes it is
    several, whose lines are one after the other (0.15 to 0.6 of the time).
    """
    kind = Sums(dtype, width)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        tables = tables_of(walk)
        settings, batch, spatial = tables.settings, tables.batch, tables.spatial
        before, buffer = aligned(HOLDERS_BYTES * settings[SPATIAL]), settings[BUFFER]
        memory = allocate(before + settings[SCRATCH])
        line = memory + before
        buffers = Buffers(
            holders=integers(memory),
            line=line,
            doubled=line + buffer,
            rest=line + 2 * buffer,
            divisors=line + 3 * buffer,
            spare=line + 4 * buffer,
        )
        inner = settings[SPATIAL] - 1
        pitch, tile, share = settings[PITCH], settings[TILE], settings[SHARE]
        axis = tables.columns
        n, window, stride = axis.size, axis.window, axis.stride
        size, element_bytes = state_size(kind), element_size(kind)
        rows = elements_of(spatial, inner)
        tiles, blocks = ceildiv(n, tile), ceildiv(rows, share)
        sets = plane_sets(settings, batch, settings[PLANES])
        for item in range(begin, end):
            rest, column = split(item, tiles)
            number, low = split(rest, blocks)
            column *= tile
            low *= share
            several = plane_set(settings, batch, sets, number, element_bytes)
            count = least(tile, n - column)
            start = column + axis.padding - window + 1
            first = ceildiv(most(start, 0), stride)
            last = least((start + window + count - 2) // stride, axis.out_size - 1)
            part = Line(count, several.lanes, start, first, most(last - first + 1, 0))
            line_bytes = (count + window - 1) * pitch * size
            planes = Planes(several.count, line_bytes, tables.planes.step)
            source, target = x + several.source, out + several.out + column * axis.out_step
            stop = least(low + share, rows)
            _give_rows(tables, buffers, part, planes, source, target, low, stop, kind)
        if settings[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk


def whole(dtype, width):
    """As `lines`, where one window holds all elements of a plane, which adjoin; an item is SHARE planes."""
    kind = Sums(dtype, width)
    quotient_type = np.float32 if width == 32 else np.float64

    @entry
    def chunk(walk, x, out, _other, begin, end):
        settings, batch, spatial = pool_tables(walk)
        axis = batch_axis(batch, settings[BATCH] - 1)
        n, step, out_step = axis.size, axis.step, axis.out_step
        divisor = divisor_of(spatial, settings[SPATIAL], 0)
        planes = places_of(batch, settings[BATCH])
        first, stop = begin * settings[SHARE], least(end * settings[SHARE], planes)
        while first < stop:
            row, digit = split(first, n)
            count = least(n - digit, stop - first)
            x_offset, out_offset, _, _ = offsets_of(batch, settings[BATCH] - 1, row)
            source, target = x + x_offset + digit * step, out + out_offset + digit * out_step
            for i in range(count):
                quotient = quotient_type(load_float(source + i * step, kind) / divisor)
                # Added to 0, as a line is: of -0.0 that is 0.0.
                set_elements(
                    target + i * out_step, settings[PLANE], quotient + quotient_type(0), kind
                )
            first += count

    return chunk


def direct(dtype):
    """As `lines`, element by element, where a line would not fit; an item is SHARE elements."""
    kind = Sums(dtype, 64)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        settings, batch, spatial = pool_tables(walk)
        axes, share = settings[SPATIAL], settings[SHARE]
        memory = allocate(HOLDERS_BYTES * axes)
        held = integers(memory)
        elements = elements_of(spatial, axes)
        blocks = ceildiv(elements, share)
        for item in range(begin, end):
            plane, low = split(item, blocks)
            low *= share
            x_offset, out_offset, _, _ = offsets_of(batch, settings[BATCH], plane)
            for row in range(low, least(low + share, elements)):
                total, out_start, _same = _holders(spatial, axes, row, held)
                value = 0.0
                for number in range(total):
                    offset, divisor = _holder(spatial, held, axes, number)
                    value += load_float(x + x_offset + offset, kind) / divisor
                store_float(out + out_offset + out_start, value, kind)
        release(memory)

    return chunk
