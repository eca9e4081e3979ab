# mypy: allow-untyped-defs, no-check-untyped-defs
"""What an average's input elements get of its windows' gradients, for any float type and layout.

An element's sum is over the windows that hold it, and separates as an average does. Inputs are as the windows, outputs
as what these lie on. Addresses are raw and strides are in bytes.
"""

from __future__ import annotations

import numpy as np

from batch import BATCH_COLUMNS, BATCH_OUT, BATCH_SIZE, BATCH_STEP, offsets_of
from compiled import entry, helper
from divisors import counted_in_window, divisor_of, set_divisors
from doubling import double_lines
from memory import aligned, allocate, ceildiv, drain_stores, least, most, release, split
from pool_line import Pieces, Planes, clear_ranks
from pool_settings import (
    BATCH,
    BUFFER,
    LANE_OUT,
    LANES,
    PAST,
    PITCH,
    PLANE,
    PLANES,
    ROWS,
    SCRATCH,
    SPATIAL,
    TILE,
    pool_tables,
)
from ranks import element_size, rank_size
from sum_line import (
    OutputBlock,
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
from walk import axis_of, integers
from windows import COLUMNS, OUT_SIZE, OUT_STEP, PADDING, SIZE, STEP, STRIDE, WINDOW

# Columns of a table of the windows that hold a position, with a row for each axis: how many, and which is the first.
HELD, FIRST_HELD = 0, 1
HOLDER_COLUMNS = 2


@helper
def _holders(spatial, axes, row, holders):
    """The windows that hold input position `row`, row-major in the first `axes` axes.

    Fills the table `holders`; returns how many that makes, the offset of the position, and whether it held the same
    already.
    """
    total = 1
    offset = 0
    same = True
    for d in range(axes - 1, -1, -1):
        axis = axis_of(spatial, d, COLUMNS)
        row, digit = split(row, axis[SIZE])
        ahead, stride = digit + axis[PADDING], axis[STRIDE]
        first = ceildiv(most(ahead - axis[WINDOW] + 1, 0), stride)
        count = most(least(ahead // stride, axis[OUT_SIZE] - 1) - first + 1, 0)
        held = axis_of(holders, d, HOLDER_COLUMNS)
        same = same and held[HELD] == count and held[FIRST_HELD] == first
        held[HELD], held[FIRST_HELD] = count, first
        total *= count
        offset += digit * axis[OUT_STEP]
    return total, offset, same


@helper
def _holder(spatial, holders, axes, number):
    """Offset and divisor of a window, counted from the first of _holders."""
    offset = 0
    divisor = 1.0
    for d in range(axes - 1, -1, -1):
        held = axis_of(holders, d, HOLDER_COLUMNS)
        number, digit = split(number, held[HELD])
        output = held[FIRST_HELD] + digit
        offset += output * axis_of(spatial, d, COLUMNS)[STEP]
        divisor *= counted_in_window(spatial, d, output)
    return offset, divisor


@helper
def _add_shares(how, spatial, planes, line, address, n, columns, divisors, scale, ranks):
    """Add what n windows of a row of each plane give to each of their elements, lane by lane."""
    size, item_bytes, pitch = rank_size(ranks), element_size(ranks), how[PITCH]
    step = axis_of(spatial, how[SPATIAL] - 1, COLUMNS)[STEP]
    if pitch == 1 and step != item_bytes:
        for plane in range(planes.count):
            line_at, start = line + plane * planes.line, address + plane * planes.source
            for i in range(n):
                value = load_float(ranks, start + i * step)
                value /= get_sum(divisors, i, ranks) * scale
                add_to_sum(line_at, i, value, ranks)
        return
    runs, n_run = n, columns
    if pitch == 1:
        runs, n_run = 1, n
    elif columns == pitch and step == pitch * item_bytes:
        runs, n_run = 1, n * pitch
    for i in range(runs):
        away = i * pitch * size
        line_at, start = line + away, address + i * step
        add_quotients(planes, line_at, start, n_run, divisors + away, scale, ranks)


@helper
def _move_apart(planes, line, shares, n, apart, pitch, ranks):
    """Copy n places of each plane to where they stand in its line, `apart` places from each other."""
    place = pitch * rank_size(ranks)
    for plane in range(planes.count):
        to, from_ = line + plane * planes.line, shares + plane * n * place
        if pitch == 1:
            spread_sums(to, from_, n, apart, ranks)
            continue
        for i in range(n):
            copy_sums(to + i * apart * place, from_ + i * place, pitch, ranks)


@helper
def _repeat(line, count, shares, n, at, apart, window, pitch, ranks):
    """Copy n places to all elements of their windows, of which the first begins at place `at` of a line."""
    place = pitch * rank_size(ranks)
    for i in range(n):
        begin = at + i * apart
        for p in range(most(begin, 0), least(begin + window, count)):
            copy_sums(line + p * place, shares + i * place, pitch, ranks)


def gradient(dtype, width):
    """Chunk that gives each input element the shares of the windows that hold it, which it adds up as lines.

    A line has the windows' quotients where their last elements stand, and 0 between: the sum of as many places as a
    window has is what one input element gets. Of planes side by side those of windows that have nothing in common are
    repeated instead (0.7 to 0.9 of the time). An item is ROWS rows of TILE input elements; of small planes it is
    several, whose lines are one after the other (0.15 to 0.6 of the time).
    """
    ranks = Sums(dtype, width)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = pool_tables(walk)
        # A table of holders, then lines, and room for a run that is not yet stored.
        before = aligned(8 * HOLDER_COLUMNS * how[SPATIAL])
        memory = allocate(before + how[SCRATCH])
        held = integers(memory)
        line = memory + before
        doubled = line + how[BUFFER]
        rest_lines = doubled + how[BUFFER]
        divisors = rest_lines + how[BUFFER]
        spare = divisors + how[BUFFER]
        inner = how[SPATIAL] - 1
        lanes, pitch, tile, share = how[LANES], how[PITCH], how[TILE], how[ROWS]
        axis = axis_of(spatial, inner, COLUMNS)
        n, out_n, window = axis[SIZE], axis[OUT_SIZE], axis[WINDOW]
        stride, padding = axis[STRIDE], axis[PADDING]
        size, item_bytes = rank_size(ranks), element_size(ranks)
        # Whether windows have nothing in common along the line; whether their quotients are first added up beside it.
        repeated = pitch > 1 and (window <= stride or out_n == 1)
        aside = stride > 1 or repeated
        rows = 1
        for d in range(inner):
            rows *= axis_of(spatial, d, COLUMNS)[SIZE]
        # The planes of an item are along the innermost of the batch axes.
        batch_axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        beside, plane_x = batch_axis[BATCH_SIZE], batch_axis[BATCH_STEP]
        plane_out = batch_axis[BATCH_OUT]
        most_planes = how[PLANES]
        sets = ceildiv(beside, most_planes)
        tiles = ceildiv(n, tile)
        blocks = ceildiv(rows, share)
        groups = ceildiv(lanes, pitch)
        for item in range(begin, end):
            rest, column = split(item, tiles)
            column *= tile
            outer, low = split(rest, blocks)
            low *= share
            group, lane_at = split(outer, groups)
            lane_at *= pitch
            rest, plane = split(group, sets)
            plane *= most_planes
            columns = least(pitch, lanes - lane_at)
            x_offset, out_offset, _, _ = offsets_of(batch, how[BATCH], rest * beside + plane)
            source = x + x_offset + lane_at * item_bytes
            target = out + out_offset + lane_at * how[LANE_OUT]
            target += column * axis[OUT_STEP]
            count = least(tile, n - column)
            length = count + window - 1
            # Where the line begins, in the padded input.
            start = column + padding - window + 1
            first = ceildiv(most(start, 0), stride)
            last = least((column + padding + count - 1) // stride, out_n - 1)
            holders = most(last - first + 1, 0)
            set_divisors(spatial, inner, divisors, first, holders, pitch, ranks)
            line_bytes = length * pitch * size
            several = least(most_planes, beside - plane)
            planes = Planes(several, line_bytes, plane_x, plane_out, 0, 0)
            in_all = several * length * pitch
            adjoining = holders * pitch
            shares, added = line + (first - start) * pitch * size, planes
            if aside:
                # Once: quotients come to the same places of each row, and nothing else is written to.
                clear_ranks(line, in_all, ranks)
                shares = doubled
                added = Planes(several, adjoining * size, plane_x, plane_out, 0, 0)
            held[HELD] = -1
            finished, pieces = line, Pieces(1, 1, 0, 0)
            for row in range(low, least(low + share, rows)):
                total, row_out, same = _holders(spatial, inner, row, held)
                if not same:
                    if aside:
                        clear_ranks(doubled, several * adjoining, ranks)
                    else:
                        clear_ranks(line, in_all, ranks)
                    for number in range(total if holders > 0 else 0):
                        offset, divisor = _holder(spatial, held, inner, number)
                        _add_shares(
                            how,
                            spatial,
                            added,
                            shares,
                            source + offset + first * axis[STEP],
                            holders,
                            columns,
                            divisors,
                            divisor,
                            ranks,
                        )
                    if repeated:
                        at = first * stride - padding - column
                        _repeat(line, count, doubled, holders, at, stride, window, pitch, ranks)
                    else:
                        if aside:
                            place = line + (first * stride - start) * pitch * size
                            _move_apart(planes, place, doubled, holders, stride, pitch, ranks)
                        finished, pieces = double_lines(
                            doubled, rest_lines, line, in_all, window, pitch, ranks
                        )
                write_lines(
                    how,
                    spatial,
                    OutputBlock(1, count, columns),
                    target + row_out,
                    finished,
                    planes,
                    pieces,
                    0,
                    0,
                    spare,
                    ranks,
                    None,
                )
        if how[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk


def gradient_whole(dtype, width):
    """As `gradient`, where one window holds all elements of a plane, which adjoin; an item is ROWS planes."""
    ranks = Sums(dtype, width)
    share_type = np.float32 if width == 32 else np.float64

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = pool_tables(walk)
        axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        n, step, out_step = axis[BATCH_SIZE], axis[BATCH_STEP], axis[BATCH_OUT]
        divisor, planes = divisor_of(spatial, how[SPATIAL], 0), 1
        for d in range(how[BATCH]):
            planes *= axis_of(batch, d, BATCH_COLUMNS)[BATCH_SIZE]
        first, stop = begin * how[ROWS], least(end * how[ROWS], planes)
        while first < stop:
            row, digit = split(first, n)
            count = least(n - digit, stop - first)
            x_offset, out_offset, _, _ = offsets_of(batch, how[BATCH] - 1, row)
            source, target = x + x_offset + digit * step, out + out_offset + digit * out_step
            for i in range(count):
                share = share_type(load_float(ranks, source + i * step) / divisor)
                # Added to 0, as a line is: of -0.0 that is 0.0.
                set_elements(ranks, target + i * out_step, how[PLANE], share + share_type(0))
            first += count

    return chunk


def gradient_direct(dtype):
    """As `gradient`, element by element, where a line would not fit; an item is ROWS elements."""
    ranks = Sums(dtype, 64)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = pool_tables(walk)
        axes, share = how[SPATIAL], how[ROWS]
        memory = allocate(8 * HOLDER_COLUMNS * axes)
        held = integers(memory)
        elements = 1
        for d in range(axes):
            elements *= axis_of(spatial, d, COLUMNS)[SIZE]
        blocks = ceildiv(elements, share)
        for item in range(begin, end):
            plane, low = split(item, blocks)
            low *= share
            x_offset, out_offset, _, _ = offsets_of(batch, how[BATCH], plane)
            for row in range(low, least(low + share, elements)):
                total, out_start, _same = _holders(spatial, axes, row, held)
                value = 0.0
                for number in range(total):
                    offset, divisor = _holder(spatial, held, axes, number)
                    value += load_float(ranks, x + x_offset + offset) / divisor
                store_float(ranks, out + out_offset + out_start, value)
        release(memory)

    return chunk
