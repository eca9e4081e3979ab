"""States of windows joined by doubling: shifted copies of lines with each other, along lines or across rows."""

from __future__ import annotations

from compiled import helper
from memory import VECTOR_BYTES, ceildiv, element_size, least, most, split
from pool_line import Lines, Pieces, Runs, Strided, clear_states, fold_block, fold_line
from pool_settings import LINE, PITCH
from pool_state import state_size

PIECES = 4  # of a window that are joined at once, when the rest was doubled
SUM_PIECES = 7
_BLOCK_WINDOW = 9  # rows of windows that are joined block by block, at least: 0.7 to 1 of the time


@helper
def double_lines(target, rest, source, n, window, unit, kind):
    """Join each of the n states of lines with others behind it, `unit` states apart: 2 of them, 4, 8, ..

    That is done until few such pieces make a window. Returns where the lines are then, and the Pieces. The last piece
    overlaps the one before it; of sums it may not, and is what does not fill a whole piece, in lines at `rest` (of
    others None).
    """
    have = 1
    if rest is None:
        while have * PIECES < window:
            shift = have * unit
            fold_line(target, source, n - shift, Pieces(1, 2, shift, shift), kind)
            source = target
            have *= 2
        return source, Pieces(1, ceildiv(window, have), have * unit, (window - have) * unit)
    size = state_size(kind)
    left = window
    fresh = True
    while have * SUM_PIECES < left:
        if left & have:
            left -= have
            shift = left * unit
            if fresh:
                fold_line(rest, source, n - shift, Pieces(1, 1, 0, shift), kind)
            else:
                away = shift + (source - rest) // size
                fold_line(rest, rest, n - shift, Pieces(1, 2, 0, away), kind)
            fresh = False
        shift = have * unit
        fold_line(target, source, n - shift, Pieces(1, 2, shift, shift), kind)
        source = target
        have *= 2
    pieces = left // have
    last = (pieces - 1) * have * unit
    if not fresh:
        pieces += 1
        last = (rest - source) // size
    return source, Pieces(1, pieces, have * unit, last)


@helper
def _fold_blocks(tables, scratch, item, lines, kind):
    """As fold_window_rows, block by block of windows that have a row in common, to lines at scratch.doubled.

    A line has a vector at least: what is written of one behind its columns is padding, of the next line before its
    columns, too.
    """
    axis, pitch, size = tables.rows, tables.settings[PITCH], state_size(kind)
    planes, rows, columns, line = item.planes.count, item.rows.count, item.columns, lines.line_step
    clear_states(scratch.doubled, planes * rows * tables.settings[LINE], kind)
    n = most((columns.high - columns.low) * pitch, VECTOR_BYTES // size)
    for first in range(axis.dilation):
        for row in range(first, rows, axis.window * axis.dilation):
            at = row * line + columns.low * pitch * size
            count = least(axis.window, ceildiv(rows - row, axis.dilation))
            fold_block(
                Strided(scratch.doubled + at, rows * line, axis.dilation * line),
                Strided(lines.address + at, lines.plane_step, axis.dilation * line),
                Runs(planes, count, n),
                axis.window,
                kind,
            )


@helper
def fold_window_rows(tables, scratch, item, lines, kind):
    """Fold lines, one for each row of the input, to one for each row of windows: over the old ones, or at doubled."""
    axis, n, size = tables.rows, tables.settings[LINE], state_size(kind)
    planes, rows, line = item.planes.count, item.rows.count, lines.line_step
    by_blocks = axis.stride == 1 and axis.window >= _BLOCK_WINDOW and line >= VECTOR_BYTES
    if scratch.rest is not None:
        # Rows are added one by one: of sums no wider than elements the error would grow with the window. In float32
        # that of 4096 rows is below half the last place of 16 bits.
        by_blocks = by_blocks and size > element_size(kind)
    target = scratch.doubled
    if by_blocks:
        _fold_blocks(tables, scratch, item, lines, kind)
    else:
        source, pieces = double_lines(
            scratch.doubled,
            scratch.rest,
            lines.address,
            planes * (lines.plane_step // size),
            axis.window,
            axis.dilation * n,
            kind,
        )
        if source == scratch.doubled:
            target = lines.address
        alike = rows if axis.stride == 1 else 1  # of windows, that move together
        for i in range(planes * rows // alike):
            plane, row = split(i * alike, rows)
            place = source + plane * lines.plane_step + row * axis.stride * line
            fold_line(target + i * alike * line, place, alike * n, pieces, kind)
    return Lines(target, rows * line, line, lines.step, lines.pieces)
