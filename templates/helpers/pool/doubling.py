"""States of windows joined by doubling: shifted copies of lines with each other, along lines or across rows."""

from __future__ import annotations

from compiled import helper
from memory import VECTOR_BYTES, ceildiv, element_size, least, most, split
from pool_line import Pieces, clear_states, fold_block, fold_line
from pool_settings import LINE
from pool_state import state_size
from windows import DILATION, STRIDE, WINDOW

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
def _fold_blocks(settings, axis, folded, doubled, several, some, plane_states, low, high, kind):
    """As fold_window_rows, block by block of windows that have a row in common, to lines at `doubled`.

    A line has a vector at least: what is written of one beyond `high` is padding, of the next line before `low` too.
    """
    size = state_size(kind)
    line = settings[LINE] * size
    window, dilation = axis[WINDOW], axis[DILATION]
    clear_states(doubled, several * some * settings[LINE], kind)
    for first in range(dilation):
        for row in range(first, some, window * dilation):
            at = row * line + low * size
            fold_block(
                doubled + at,
                folded + at,
                several,
                some * line,
                plane_states * size,
                dilation * line,
                most(high - low, VECTOR_BYTES // size),
                window,
                least(window, ceildiv(some - row, dilation)),
                kind,
            )


@helper
def fold_window_rows(settings, axis, scratch, several, some, plane_states, low, high, kind):
    """Fold the lines of the input's rows, of `several` planes, to lines of `some` rows of windows.

    In a line the states from `low` to `high` - 1 are not padding. Returns where the new lines are: over the old ones,
    or in the other buffer.
    """
    folded, doubled, rest = scratch.lines, scratch.doubled, scratch.rest
    size, line = state_size(kind), settings[LINE]
    window, stride, dilation = axis[WINDOW], axis[STRIDE], axis[DILATION]
    by_blocks = stride == 1 and window >= _BLOCK_WINDOW and line * size >= VECTOR_BYTES
    if rest is not None:
        # Rows are added one by one: of sums no wider than elements the error would grow with the window. In float32
        # that of 4096 rows is below half the last place of 16 bits.
        by_blocks = by_blocks and size > element_size(kind)
    if by_blocks:
        _fold_blocks(settings, axis, folded, doubled, several, some, plane_states, low, high, kind)
        return doubled
    source, pieces = double_lines(
        doubled, rest, folded, several * plane_states, window, dilation * line, kind
    )
    # Rows that move together. In place only if the vector more that is written is not read later.
    alike = some if stride == 1 else 1
    in_place = alike == some and (window - 1) * dilation * line * size >= VECTOR_BYTES
    target = doubled
    if source == doubled and not in_place:
        target = folded
    for i in range(several * some // alike):
        plane, row = split(i * alike, some)
        row *= stride
        fold_line(
            target + i * alike * line * size,
            source + (plane * plane_states + row * line) * size,
            alike * line,
            pieces,
            kind,
        )
    return target
