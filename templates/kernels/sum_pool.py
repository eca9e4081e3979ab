# mypy: allow-untyped-defs, no-check-untyped-defs
"""Sums over windows, for any float type and layout: averages, norms, and the gradient of averages.

A sum separates as a maximum does: the rows of each window are added up in a line of scratch memory, then shifted
copies of the line by doubling, so that large windows cost little more than small ones. Sums of other windows are
never subtracted: neither infinities nor cancellation go from one window to the next. Addresses are raw and strides
are in bytes; the element's type, the sums' and what is added up make a new compiled version.
"""

from __future__ import annotations

import numpy as np

from compiled import entry, helper
from memory import (
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    item_size,
    least,
    most,
    release,
    split,
    store_integer,
)
from pool_line import Pieces, Planes, clear_ranks, copy_rank, rank_size
from pool_packed import pack_averages, packed_chunk
from pool_walk import (
    BATCH,
    BATCH_COLUMNS,
    BOX_COLUMNS,
    BUFFER,
    COLUMNS,
    DILATION,
    EDGE,
    HIGH,
    LANE_OUT,
    LANES,
    LOW,
    OUT_SIZE,
    OUT_STEP,
    PADDING,
    PAST,
    PITCH,
    PLANE,
    PLANES,
    ROWS,
    RULE,
    SCRATCH,
    SIZE,
    SPATIAL,
    STEP,
    STRIDE,
    TILE,
    WINDOW,
    _batch,
    _between,
    _double,
    _tables,
    _windows,
    line_chunk,
)
from sum_line import (
    KINDS,
    _write_lines,
    add_quotients,
    add_to_sum,
    copy_sums,
    get_sum,
    load_float,
    set_elements,
    set_sums,
    store_float,
)
from sum_run import RUN_BYTES
from sum_window import SUMS_EDGES, doubles, sums_together, window_norm, window_sum
from walk import axis_of, integers
from window_group import edge_bytes

POWER = RULE  # direct: the bits of p of |x|**p, a double; 0 for an average
SURE_FROM, SURE_TO = RULE + 1, RULE + 2  # direct: norms between these doubles are right; 0: none
EXPONENT = RULE  # lines: p of |x|**p where it is not 1 or 2: an integer, or the bits of a double
TOGETHER = 16  # rows of a window added up one by one; their sums are added to those of others

# What a window's elements add to its sum: themselves, |x|, x**2, or |x|**p of a whole p or of any.
POWERS = {"sum": None, "magnitude": (0,), "square": (0, 0), "power": (0, 0, 0), "real": (0,) * 4}


@helper
def _counted(spatial, d, output):
    """Elements of a window along axis d that count in its divisor."""
    axis = axis_of(spatial, d, COLUMNS)
    return _between(spatial, d, output, axis[LOW], axis[HIGH])[1]


@helper
def _divisor(spatial, axes, row):
    """The divisor of output position `row`, row-major in the first `axes` axes."""
    divisor = 1.0
    for d in range(axes - 1, -1, -1):
        row, digit = split(row, axis_of(spatial, d, COLUMNS)[OUT_SIZE])
        divisor *= _counted(spatial, d, digit)
    return divisor


@helper
def _set_divisors(spatial, d, line, first, count, pitch, wide, kind):
    """Fill a line with the divisors of `count` windows along axis d, from number `first` on, each `pitch` times.

    Those between the edges are alike, and set at once: averages of rows of several tiles take 0.25 to 0.5 of the time.
    """
    axis = axis_of(spatial, d, COLUMNS)
    begin = ceildiv(axis[LOW] + axis[PADDING], axis[STRIDE])
    last = axis[HIGH] - 1 - (axis[WINDOW] - 1) * axis[DILATION] + axis[PADDING]
    end = last // axis[STRIDE] + 1  # at most `begin` where there is none between them
    size = pitch * rank_size(wide, kind)
    i = 0
    while i < count:
        output = first + i
        alike = least(end - output, count - i) if begin <= output < end else 1
        counted = float(_counted(spatial, d, output))
        set_sums(line + i * size, alike * pitch, counted, wide, kind)
        i += alike


@helper
def _store_sums(
    how, spatial, outputs, places, planes, ranks, pieces, spare, wide, kind, power, exponent
):
    """Store the outputs of an item, of lines of sums."""
    inner = how[SPATIAL] - 1
    size, pitch = rank_size(wide, kind), how[PITCH]
    # A divisor is the product of its column's and its row's.
    by_column = spare - how[BUFFER]
    by_row = by_column + outputs.columns * pitch * size
    if power is None:
        if outputs.new_column:
            _set_divisors(
                spatial, inner, by_column, outputs.column, outputs.columns, pitch, wide, kind
            )
        by_outer = _divisor(spatial, inner - 1, outputs.outer) if outputs.new_place else 0.0
        for i in range(outputs.rows if outputs.new_place else 0):
            counted = by_outer * _counted(spatial, inner - 1, outputs.row + i)
            set_sums(by_row + i * size, 1, counted, wide, kind)
    doubtful = _write_lines(
        how,
        spatial,
        places.out,
        ranks,
        planes,
        outputs.rows,
        outputs.columns,
        outputs.lanes,
        pieces,
        by_column,
        by_row,
        spare,
        wide,
        kind,
        power,
        exponent,
    )
    if power is not None and doubtful:
        store_integer(np.int64(0), places.indices, 1)


@helper
def _store_outputs(how, spatial, outputs, places, planes, ranks, pieces, spare, wide, rule):
    """As _store_sums; only by arguments that are None does Numba drop branches."""
    _store_sums(how, spatial, outputs, places, planes, ranks, pieces, spare, wide, *rule)


def _dummy(width):
    """A dummy of the type of sums of so many bits."""
    return np.float32(0) if width == 32 else np.float64(0)


def lines(dtype, width, added):
    """Chunk that works line by line, with sums of `width` bits; `added`: one of POWERS, the last two with 64 bits only.

    Where a norm is not certain to be right, the int64 at `indices` is set to 1: `direct` computes those anew. Here the
    code for it would be a fifth of the compilation.
    """
    kind, power = KINDS[dtype], POWERS[added]
    wide = _dummy(width)

    if added in ("power", "real"):

        @helper
        def read_rule(how):
            return kind, power, how[EXPONENT]

    else:

        @helper
        def read_rule(_how):
            return kind, power, None

    return line_chunk(read_rule, wide, True, TOGETHER, _store_outputs)


def packed(dtype, width):
    """Chunk for averages of small planes, with sums of `width` bits: see packed_chunk."""
    kind = KINDS[dtype]

    @helper
    def read_rule(_how):
        return kind, None, None

    return packed_chunk(read_rule, _dummy(width), True, pack_averages)


def direct(dtype):
    """Chunk that works window by window, for any power, and where a line would not fit; an item is ROWS outputs.

    Of norms that `lines` has stored, those are left that are sure to be right.
    """
    kind, double = KINDS[dtype], KINDS["FLOAT64"]

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = _tables(walk)
        axes, share = how[SPATIAL], how[ROWS]
        inner = axes - 1
        axis = axis_of(spatial, inner, COLUMNS)
        n, out_step = axis[OUT_SIZE], axis[OUT_STEP]
        p = load_float(double, walk + 8 * POWER)
        sure_from = load_float(double, walk + 8 * SURE_FROM)
        sure_to = load_float(double, walk + 8 * SURE_TO)
        before = SUMS_EDGES * edge_bytes(how[EDGE]) + RUN_BYTES
        scratch = allocate(before + 8 * BOX_COLUMNS * axes)
        box = integers(scratch + before)
        outputs = 1
        for d in range(axes):
            outputs *= axis_of(spatial, d, COLUMNS)[OUT_SIZE]
        blocks = ceildiv(outputs, share)
        for item in range(begin, end):
            plane, position = split(item, blocks)
            position *= share
            stop = least(position + share, outputs)
            x_offset, out_offset, _, _ = _batch(batch, how[BATCH], plane)
            while position < stop:
                outer, column = split(position, n)
                beside = least(n - column, stop - position)
                target = out + out_offset + _windows(spatial, inner, outer, box).out
                target += column * out_step
                shared = 0
                if how[EDGE] != 0:
                    plane_at = x + x_offset
                    shared = sums_together(
                        spatial,
                        axes,
                        how[EDGE],
                        position,
                        column,
                        beside,
                        plane_at,
                        box,
                        p,
                        scratch,
                        kind,
                    )
                for i in range(shared):
                    value = doubles(scratch)[i]
                    if p > 0:
                        value **= 1.0 / p
                    else:
                        value /= _divisor(spatial, axes, position + i)
                    store_float(kind, target + i * out_step, value)
                if shared > 0:
                    position += shared
                    continue
                if how[EDGE] != 0:
                    beside = 1  # the next one may share columns again
                for i in range(beside):
                    place = target + i * out_step
                    if sure_from > 0.0:
                        value = load_float(kind, place)
                        if not (0.0 < value < sure_from or value > sure_to):
                            continue
                    window = _windows(spatial, axes, position + i, box)
                    first = x + x_offset + window.offset
                    if p > 0:
                        value = window_norm(first, box, axes, window.total, p, scratch, kind)
                    else:
                        value = window_sum(first, box, axes, window.total, scratch, kind)
                        value /= _divisor(spatial, axes, position + i)
                    store_float(kind, place, value)
                position += beside
        release(scratch)

    return chunk


@helper
def _holders(spatial, axes, row, box):
    """The windows that hold input position `row`, row-major in the first `axes` axes.

    Fills box with (count, first) for each axis; returns how many that makes, the offset of the position, and whether
    box held the same already.
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
        held = axis_of(box, d, BOX_COLUMNS)
        same = same and held[0] == count and held[1] == first
        held[0], held[1] = count, first
        total *= count
        offset += digit * axis[OUT_STEP]
    return total, offset, same


@helper
def _holder(spatial, box, axes, number):
    """Offset and divisor of a window, counted from the first of _holders."""
    offset = 0
    divisor = 1.0
    for d in range(axes - 1, -1, -1):
        held = axis_of(box, d, BOX_COLUMNS)
        number, digit = split(number, held[0])
        output = held[1] + digit
        offset += output * axis_of(spatial, d, COLUMNS)[STEP]
        divisor *= _counted(spatial, d, output)
    return offset, divisor


@helper
def _add_shares(how, spatial, planes, line, address, n, columns, divisors, scale, wide, kind):
    """Add what n windows of a row of each plane give to each of their elements, lane by lane."""
    size, item_bytes, pitch = rank_size(wide, kind), item_size(kind), how[PITCH]
    step = axis_of(spatial, how[SPATIAL] - 1, COLUMNS)[STEP]
    if pitch == 1 and step != item_bytes:
        for plane in range(planes.count):
            line_at, start = line + plane * planes.line, address + plane * planes.source
            for i in range(n):
                value = load_float(kind, start + i * step)
                value /= get_sum(divisors, i, wide, kind) * scale
                add_to_sum(line_at, i, value, wide, kind)
        return
    runs, n_run = n, columns
    if pitch == 1:
        runs, n_run = 1, n
    elif columns == pitch and step == pitch * item_bytes:
        runs, n_run = 1, n * pitch
    for i in range(runs):
        away = i * pitch * size
        line_at, start = line + away, address + i * step
        add_quotients(planes, line_at, start, n_run, divisors + away, scale, wide, kind)


@helper
def _move_apart(planes, line, shares, n, apart, pitch, wide, kind):
    """Copy n places of each plane to where they stand in its line, `apart` places from each other."""
    place = pitch * rank_size(wide, kind)
    for plane in range(planes.count):
        to = line + plane * planes.line
        for i in range(n):
            from_ = shares + (plane * n + i) * place
            if pitch == 1:
                copy_rank(to + i * apart * place, from_, wide, kind)
            else:
                copy_sums(to + i * apart * place, from_, pitch, wide, kind)


@helper
def _repeat(line, count, shares, n, at, apart, window, pitch, wide, kind):
    """Copy n places to all elements of their windows, of which the first begins at place `at` of a line."""
    place = pitch * rank_size(wide, kind)
    for i in range(n):
        begin = at + i * apart
        for p in range(most(begin, 0), least(begin + window, count)):
            copy_sums(line + p * place, shares + i * place, pitch, wide, kind)


def gradient(dtype, width):
    """Chunk that gives each input element the shares of the windows that hold it, which it adds up as lines.

    A line has the windows' quotients where their last elements stand, and 0 between: the sum of as many places as a
    window has is what one input element gets. Of planes side by side those of windows that have nothing in common are
    repeated instead (0.7 to 0.9 of the time). An item is ROWS rows of TILE input elements; of small planes it is
    several, whose lines are one after the other (0.15 to 0.6 of the time).
    """
    kind = KINDS[dtype]
    wide = _dummy(width)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = _tables(walk)
        # A box, then lines, and room for a run that is not yet stored.
        before = aligned(8 * BOX_COLUMNS * how[SPATIAL])
        memory = allocate(before + how[SCRATCH])
        box = integers(memory)
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
        size, item_bytes = rank_size(wide, kind), item_size(kind)
        # Whether windows have nothing in common along the line; whether their quotients are first added up beside it.
        repeated = pitch > 1 and (window <= stride or out_n == 1)
        aside = stride > 1 or repeated
        rows = 1
        for d in range(inner):
            rows *= axis_of(spatial, d, COLUMNS)[SIZE]
        # The planes of an item are along the innermost of the batch axes.
        batch_axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        beside, plane_x, plane_out = batch_axis[0], batch_axis[1], batch_axis[2]
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
            x_offset, out_offset, _, _ = _batch(batch, how[BATCH], rest * beside + plane)
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
            _set_divisors(spatial, inner, divisors, first, holders, pitch, wide, kind)
            line_bytes = length * pitch * size
            several = least(most_planes, beside - plane)
            planes = Planes(several, line_bytes, plane_x, plane_out, 0, 0)
            ranks = several * length * pitch
            adjoining = holders * pitch
            shares, added = line + (first - start) * pitch * size, planes
            if aside:
                shares = doubled
                added = Planes(several, adjoining * size, plane_x, plane_out, 0, 0)
            box[0] = -1
            finished, pieces, shift, away = line, 1, 0, 0
            for row in range(low, least(low + share, rows)):
                total, row_out, same = _holders(spatial, inner, row, box)
                if not same:
                    clear_ranks(line, ranks, wide, kind)
                    if aside:
                        clear_ranks(doubled, several * adjoining, wide, kind)
                    for number in range(total if holders > 0 else 0):
                        offset, divisor = _holder(spatial, box, inner, number)
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
                            wide,
                            kind,
                        )
                    if repeated:
                        at = first * stride - padding - column
                        _repeat(
                            line, count, doubled, holders, at, stride, window, pitch, wide, kind
                        )
                    else:
                        if aside:
                            place = line + (first * stride - start) * pitch * size
                            _move_apart(planes, place, doubled, holders, stride, pitch, wide, kind)
                        finished, pieces, shift, away = _double(
                            doubled, rest_lines, line, ranks, window, pitch, wide, kind
                        )
                _write_lines(
                    how,
                    spatial,
                    target + row_out,
                    finished,
                    planes,
                    1,
                    count,
                    columns,
                    Pieces(1, pieces, shift, away),
                    0,
                    0,
                    spare,
                    wide,
                    kind,
                    (0,),
                    None,
                )
        if how[PAST] != 0:
            drain_stores()
        release(memory)

    return chunk


def gradient_whole(dtype, width):
    """As `gradient`, where one window holds all elements of a plane, which adjoin; an item is ROWS planes."""
    kind = KINDS[dtype]
    share_type = np.float32 if width == 32 else np.float64

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = _tables(walk)
        axis = axis_of(batch, how[BATCH] - 1, BATCH_COLUMNS)
        n, step, out_step = axis[0], axis[1], axis[2]
        divisor, planes = _divisor(spatial, how[SPATIAL], 0), 1
        for d in range(how[BATCH]):
            planes *= axis_of(batch, d, BATCH_COLUMNS)[0]
        first, stop = begin * how[ROWS], least(end * how[ROWS], planes)
        while first < stop:
            row, digit = split(first, n)
            count = least(n - digit, stop - first)
            x_offset, out_offset, _, _ = _batch(batch, how[BATCH] - 1, row)
            source, target = x + x_offset + digit * step, out + out_offset + digit * out_step
            for i in range(count):
                share = share_type(load_float(kind, source + i * step) / divisor)
                # Added to 0, as a line is: of -0.0 that is 0.0.
                set_elements(kind, target + i * out_step, how[PLANE], share + share_type(0))
            first += count

    return chunk


def gradient_direct(dtype):
    """As `gradient`, element by element, where a line would not fit; an item is ROWS elements."""
    kind = KINDS[dtype]

    @entry
    def chunk(walk, x, out, _other, begin, end):
        how, batch, spatial = _tables(walk)
        axes, share = how[SPATIAL], how[ROWS]
        memory = allocate(8 * BOX_COLUMNS * axes)
        box = integers(memory)
        elements = 1
        for d in range(axes):
            elements *= axis_of(spatial, d, COLUMNS)[SIZE]
        blocks = ceildiv(elements, share)
        for item in range(begin, end):
            plane, low = split(item, blocks)
            low *= share
            x_offset, out_offset, _, _ = _batch(batch, how[BATCH], plane)
            for row in range(low, least(low + share, elements)):
                total, out_start, _same = _holders(spatial, axes, row, box)
                value = 0.0
                for number in range(total):
                    offset, divisor = _holder(spatial, box, axes, number)
                    value += load_float(kind, x + x_offset + offset) / divisor
                store_float(kind, out + out_offset + out_start, value)
        release(memory)

    return chunk
