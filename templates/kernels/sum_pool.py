# mypy: allow-untyped-defs, no-check-untyped-defs
"""Sums over windows, for any float type and layout: averages and norms.

A sum separates as a maximum does: the rows of each window are added up in a line of scratch memory, then shifted
copies of the line by doubling, so that large windows cost little more than small ones; over many planes, which are
transposed, two steps along each axis do. Sums of other windows are never subtracted: neither infinities nor
cancellation go from one window to the next. Addresses are raw and strides are in bytes; the element's type, the sums'
and what is added up make a new compiled version.
"""

from __future__ import annotations

import numpy as np

from batch import offsets_of
from compiled import entry, helper
from divisors import counted_in_window, divisor_of, set_divisors, set_products
from memory import allocate, ceildiv, least, release, split, store_integer
from pool_outputs import Outputs
from pool_packed import pack_averages, packed_chunk
from pool_settings import BATCH, EDGE, OWN, PITCH, SHARE, SPATIAL, pool_tables
from pool_state import state_size
from pool_transposed import transposed_chunk, transposed_sums
from pool_walk import line_chunk
from powers import Powers
from sum_line import LineDivisors, load_float, set_sums, store_float, write_lines
from sum_run import RUN_BYTES
from sum_window import SUMS_EDGES, doubles, sums_together, window_norm, window_sum
from sums import Sums
from walk import integers
from window_group import edge_bytes
from windows import BOX_BYTES, outputs_of, spatial_axis, window_of

# Settings that are these chunks' own.
EXPONENT = OWN  # lines: p of "lp", of "lp_real" its bits as a double
POWER = OWN  # direct: the bits of p, a double; 0 for an average
SURE_FROM, SURE_TO = OWN + 1, OWN + 2  # direct: norms between these doubles are right; 0: none
TOGETHER = 16  # rows of a window added up one by one; their sums are added to those of others


@helper
def _store_averages(tables, scratch, item, lines, kind, _exponent):
    """Store the outputs of an item, of lines of sums that are to be divided."""
    inner, pitch, size = tables.settings[SPATIAL] - 1, tables.settings[PITCH], state_size(kind)
    planes, rows, columns = item.planes, item.rows, item.columns
    divisors = LineDivisors(scratch.divisors, scratch.divisors + columns.count * pitch * size)
    if item.new_columns:
        set_divisors(
            tables.spatial, inner, divisors.columns, columns.first, columns.count, pitch, kind
        )
    by_outer = divisor_of(tables.spatial, inner - 1, item.outer) if item.new_outputs else 0.0
    for i in range(rows.count if item.new_outputs else 0):
        counted = by_outer * counted_in_window(tables.spatial, inner - 1, rows.first + i)
        set_sums(divisors.rows + i * size, 1, counted, kind)
    outputs = Outputs(planes.count, planes.lanes, rows.count, columns.count)
    write_lines(tables, outputs, item.out, lines, divisors, scratch.spare, kind, None)


@helper
def _store_norms(tables, scratch, item, lines, kind, exponent):
    """Store the outputs of an item, of lines of sums whose roots are wanted.

    Where one is not certain to be right, the int64 at the other array is set to 1: `direct` computes those anew. Here
    the code for it would be a fifth of the compilation.
    """
    planes = item.planes
    outputs = Outputs(planes.count, planes.lanes, item.rows.count, item.columns.count)
    no_divisors = LineDivisors(0, 0)
    if write_lines(tables, outputs, item.out, lines, no_divisors, scratch.spare, kind, exponent):
        store_integer(np.int64(0), item.other, 1)


@helper
def _nothing(_settings):
    return None


@helper
def _exponent_of(settings):
    return settings[EXPONENT]


def lines(dtype, width, operation):
    """Chunk that works line by line, with sums of `width` bits.

    `operation`: "average", or a norm, see Powers; "lp" and "lp_real" with 64 bits only.
    """
    if operation == "average":
        averages = Sums(dtype, width, divided=True)
        return line_chunk(averages, _nothing, TOGETHER, _store_averages)
    read_exponent = _exponent_of if operation in ("lp", "lp_real") else _nothing
    return line_chunk(Powers(dtype, width, operation), read_exponent, TOGETHER, _store_norms)


def packed(dtype, width):
    """Chunk for averages of small planes, with sums of `width` bits: see packed_chunk."""
    return packed_chunk(Sums(dtype, width, divided=True), _nothing, pack_averages)


@helper
def _store_transposed_averages(
    spatial, tile, target, source, positions, divisors, _doubt, kind, _exponent
):
    """Store the outputs of a tile of planes, of sums that are to be divided."""
    rows, columns = positions.rows, positions.columns
    if tile.new:
        set_products(spatial, divisors, tile.row, rows, tile.column, columns, kind)
    transposed_sums(target, source, positions, divisors, kind, None)


@helper
def _store_transposed_norms(
    _spatial, _tile, target, source, positions, _divisors, doubt, kind, exponent
):
    """Store the outputs of a tile of planes, of sums whose roots are wanted; doubts as those of _store_norms."""
    if transposed_sums(target, source, positions, 0, kind, exponent):
        store_integer(np.int64(0), doubt, 1)


def transposed(dtype, width, operation):
    """Chunk for long windows over many planes: see `lines`, and transposed_chunk."""
    if operation == "average":
        averages = Sums(dtype, width, divided=True)
        return transposed_chunk(averages, _nothing, _store_transposed_averages)
    read_exponent = _exponent_of if operation in ("lp", "lp_real") else _nothing
    powers = Powers(dtype, width, operation)
    return transposed_chunk(powers, read_exponent, _store_transposed_norms)


def direct(dtype):
    """Chunk that works window by window, for any power, and where a line would not fit; an item is SHARE outputs.

    Of norms that `lines` has stored, those are left that are sure to be right.
    """
    kind = Sums(dtype, 64)

    @entry
    def chunk(walk, x, out, _other, begin, end):
        settings, batch, spatial = pool_tables(walk)
        axes, share = settings[SPATIAL], settings[SHARE]
        axis = spatial_axis(spatial, axes - 1)
        n, out_step = axis.out_size, axis.out_step
        reals = doubles(walk)
        p, sure_from, sure_to = reals[POWER], reals[SURE_FROM], reals[SURE_TO]
        before = SUMS_EDGES * edge_bytes(settings[EDGE]) + RUN_BYTES
        scratch = allocate(before + BOX_BYTES * axes)
        box = integers(scratch + before)
        outputs = outputs_of(spatial, axes)
        blocks = ceildiv(outputs, share)
        for item in range(begin, end):
            plane, position = split(item, blocks)
            position *= share
            stop = least(position + share, outputs)
            x_offset, out_offset, _, _ = offsets_of(batch, settings[BATCH], plane)
            while position < stop:
                column = position % n
                beside = least(n - column, stop - position)
                window = window_of(spatial, axes, position, box)
                target = out + out_offset + window.out
                shared = 0
                if settings[EDGE] != 0:
                    shared = sums_together(
                        axis,
                        settings[EDGE],
                        window,
                        column,
                        beside,
                        x + x_offset,
                        p,
                        scratch,
                        kind,
                    )
                for i in range(shared):
                    value = doubles(scratch)[i]
                    if p > 0:
                        value **= 1.0 / p
                    else:
                        value /= divisor_of(spatial, axes, position + i)
                    store_float(target + i * out_step, value, kind)
                if shared > 0:
                    position += shared
                    continue
                if settings[EDGE] != 0:
                    beside = 1  # the next one may share columns again
                for i in range(beside):
                    place = target + i * out_step
                    if sure_from > 0.0:
                        value = load_float(place, kind)
                        if not (0.0 < value < sure_from or value > sure_to):
                            continue
                    window = window_of(spatial, axes, position + i, box)
                    first = x + x_offset + window.offset
                    if p > 0:
                        value = window_norm(first, window.box, p, scratch, kind)
                    else:
                        value = window_sum(first, window.box, scratch, kind)
                        value /= divisor_of(spatial, axes, position + i)
                    store_float(place, value, kind)
                position += beside
        release(scratch)

    return chunk
