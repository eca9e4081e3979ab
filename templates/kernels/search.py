# mypy: allow-untyped-defs, no-check-untyped-defs
"""Where the greatest element of each reduced group stands, for any type, layout, tie rule and NaN rule.

The place is stored as an index, one for each group, or as a mark in an output of the input's shape, 0 elsewhere.

Elements are compared by order keys (`flip` turns the order round, `nan_key` ranks NaN). Addresses are raw and strides
are in bytes, so that only the element's width, and whether it is a float, make a new compiled version. There are
several chunks because a call needs one of them, which takes a third of the time to compile.

    walk     the settings below, then six tables of axes, whose ranks are among the settings
      kept     (size, input stride, output stride), one row at least
      reduced  (size, input stride, index weight), one row at least, visited in this order; the first element
               visited of several equal ones wins, or, where `ORDERED` is 0, the least (`LAST`: greatest) index
      marks    (size, output stride, index weight) of the reduced axes in the order of the index, where marks are stored
      zeros    (size, output stride, index weight) of the reduced axes in the order of memory, where a group's elements
               are stored as soon as it is searched, see `STORED`; with ZEROS_FIRST weights of 0
      preferred  (size, input stride, index weight) of the reduced axes in the order of preference, of dense groups
      beside   the same of those along which rows are taken as one
    partial  (key, index) of each group, part by part, where groups are split into parts; a search whose outputs have
             PAIR_BYTES stores such pairs there, too
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apart import NEAR_STEPS
from axes import (
    AXIS_BYTES,
    AXIS_OTHER_STRIDE,
    AXIS_SIZE,
    AXIS_STRIDE,
    Axes,
    axis_entries,
    axis_entry,
    run_at,
    unravel,
    volume_of,
)
from column_lanes import SEARCHED_ROWS, search_planes, search_rows, store_indices
from column_search import (
    BLOCK_ROWS,
    BYTE_ROWS,
    Found,
    Listed,
    Winners,
    first_winners,
    join_winners,
    later_winners,
    list_rows,
    place_of,
    search_apart,
)
from columns import ROWS_AHEAD, apart_ahead, list_ahead, one_by_one, rows_ahead
from compiled import entry, helper, inlined
from few_vectors import few_elements
from marks import (
    MORE_PLACES,
    mark_planes,
    one_hot_run,
    store_marked,
    store_one_hot,
    store_one_hot_of_few,
    zero_positions,
)
from memory import (
    VECTOR_BYTES,
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    element_size,
    least,
    load_integer,
    most,
    release,
    split,
    store_element,
    store_integer,
)
from planes import SmallPlanes, columns_before, planes_ahead, planes_together
from preference import Preference, is_preferred
from row_lanes import greatest_place, greatest_place_of_few, greatest_place_of_many
from row_search import BLOCK_BYTES, Preferred, search_dense_row, search_row, search_strided_row
from rows_transposed import mark_near_rows, search_transposed
from target import bytes_ahead
from vectors import prefer_wide_vectors
from walk import integers, lane_types, rule_of
from zero import zero_run, zero_run_past

CONTIGUOUS = 0  # rows: the innermost reduced axis is contiguous; columns: the innermost kept one
LAST = 1  # of several equal elements the last wins
LATE = 2  # contiguous rows: of several equal elements in one innermost run the one at the highest address wins
ORDERED = 3  # reduced elements are visited in the order of preference
BASE = 4  # index of the first element visited
TILE = 5  # columns: those taken together
PARTS = 6  # parts that each group is split into
OUT_BYTES = 7  # of an output element; PAIR_BYTES: of the greatest element's key and index
NAN_IS_0 = 8  # a group of nothing but NaN gives index 0
MARK = 9  # the bits stored at the element's place; 0 where its index is stored
KEPT_RANK = 10  # axes of each table
REDUCED_RANK = 11
MARKS_RANK = 12
ZEROS_RANK = 13
PREFERRED_RANK = 14  # rows: 0 unless all elements of a group adjoin (it is dense), though not in the order of the index
BESIDE_RANK = 15  # columns: 0 unless rows adjoin in memory; reduced axes count what is taken as one
ZERO_ROWS = 16  # columns: rows that adjoin in the output and are stored at once; BY_ROWS in the order of the index
PAST = 17  # zeros, and marks that are stored with them, go past the caches; of planes without marks the indices
PART_WEIGHT = 18  # what is added to the index from one part to the next
CEILING = 19  # the greatest key that an element can have, which ends a search (of bytes 0.06 to 1 of the time)
STORED = 20  # how elements of the input's shape are stored: one of the following
RULE = 21  # flip, nan_key and inf
UNCACHED = 24  # columns: input that no cache holds
LAST_COLUMNS = 25  # planes: columns of the last of those that one is cut into; others have the innermost kept axis
PREFERRED_AT = 26  # bytes from a group's first element to the first of `preferred`
PREFERRED_INDEX = 27  # the index of that
OVERLAP = 28  # bytes that the last row of an innermost axis begins before the end of that before it
OVERLAP_INDEX = 29  # the same in the index
SOON = 30  # short rows: one vector is searched first, as it mostly has what none can beat (0.03 to 0.45 of the time)
TRANSPOSED = 31  # short rows: as many as a vector has lanes are searched together
SETTINGS = 32

# Of the walk that `zero` takes.
ZERO_BYTES = 0  # of an element
ZERO_PAST = 1  # zeros go past the caches
ZERO_RANK = 2  # axes of the table
ZERO_SETTINGS = 3

ZEROS_FIRST = 0  # zeros, then marks
BY_ROWS = 1  # rows of columns, of marks and zeros
BY_GROUPS = 2  # groups, each of which is one contiguous run in the order of the index

PAIR_BYTES = 16


@helper
def _tables(walk):
    """The settings, then the tables kept, reduced, marks and zeros."""
    settings = integers(walk)
    kept = walk + 8 * SETTINGS
    reduced = kept + AXIS_BYTES * settings[KEPT_RANK]
    marks = reduced + AXIS_BYTES * settings[REDUCED_RANK]
    zeros = marks + AXIS_BYTES * settings[MARKS_RANK]
    return (
        settings,
        Axes(integers(kept), settings[KEPT_RANK]),
        Axes(integers(reduced), settings[REDUCED_RANK]),
        Axes(integers(marks), settings[MARKS_RANK]),
        Axes(integers(zeros), settings[ZEROS_RANK]),
    )


@inlined
def _more_tables(walk):
    """The tables behind these: preferred and beside."""
    settings = integers(walk)
    rows = settings[KEPT_RANK] + settings[REDUCED_RANK]
    rows += settings[MARKS_RANK] + settings[ZEROS_RANK]
    preferred = walk + 8 * SETTINGS + AXIS_BYTES * rows
    beside = preferred + AXIS_BYTES * settings[PREFERRED_RANK]
    return (
        Axes(integers(preferred), settings[PREFERRED_RANK]),
        Axes(integers(beside), settings[BESIDE_RANK]),
    )


@inlined
def _preference(settings):
    ordered, last, late = settings[ORDERED] != 0, settings[LAST] != 0, settings[LATE] != 0
    return Preference(settings[BASE], ordered, last, late, settings[CEILING])


@inlined
def _preferred(walk, settings):
    axes, _ = _more_tables(walk)
    return Preferred(axes, settings[PREFERRED_AT], settings[PREFERRED_INDEX])


@helper
def _store_index_or_mark(address, index, out_bytes, mark, marks):
    """Store an index at `address`, or a mark at its place in the group that begins there."""
    if mark != 0:
        address += unravel(marks, marks.rank, index)[0]
        index = mark
    store_element(address, index, out_bytes)


@inlined
def _store_pair(address, key, index):
    store_integer(np.int64(0), address, np.int64(key))
    store_integer(np.int64(0), address + 8, index)


@inlined
def _index_or_0(best, index, nan_is_0, rule):
    """The index of a group's greatest element; if `nan_is_0`, 0 in a group of nothing but NaN."""
    return 0 if nan_is_0 and best == rule.nan_key else index


class ShortRows(NamedTuple):
    """Rows that are each one contiguous run of n elements, and what their indices are: base + place * weight."""

    n: Any
    step: Any  # bytes from one row to the next
    out_step: Any
    ahead: Any  # bytes from a row to what is fetched
    late: Any
    base: Any
    weight: Any
    nan_is_0: Any
    out_bytes: Any  # of what is stored


class RowMarks(NamedTuple):
    """How a row's mark is stored: at `step` bytes for each index, among zeros."""

    mark: Any
    step: Any
    zero_count: Any
    zero_step: Any
    one_run: Any  # whether a row's marks and zeros adjoin, and are stored at once


@helper
def _mark_found(places, target, n, mark, flip):
    """Store as many rows as a vector has lanes, of n elements each, that adjoin: `mark` at the row's place, else 0."""
    size = element_size(flip)
    if n <= NEAR_STEPS[-1]:
        mark_near_rows(target, n, places, mark, flip)
        return
    zero_run(target, n * (VECTOR_BYTES // size), size, size)
    for at in range(places, places + VECTOR_BYTES, size):
        place = np.int64(load_integer(flip, at))
        store_element(target + place * size, mark, size)
        target += n * size


@inlined
def _mark_rows(rows, mark, address, target, count, rule):
    """Store the marks of so many rows, and what is 0 beside them."""
    n, step, out_step, ahead, late = rows.n, rows.step, rows.out_step, rows.ahead, rows.late
    base, weight, nan_is_0 = rows.base, rows.weight, rows.nan_is_0
    lanes = VECTOR_BYTES // element_size(rule.flip)
    # A loop for each case, as short as can be: the processor overlaps more rows then (0.6 to 0.9 of the time).
    if n <= lanes and mark.one_run:
        for _ in range(count):
            best, place = greatest_place(address, n, late, rule)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_one_hot(target, n, index, mark.mark, rule.flip)
            address += step
            target += out_step
    elif n <= few_elements(rule.flip) and mark.one_run:
        for _ in range(count):
            best, place = greatest_place_of_few(address, n, ahead, late, rule)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_one_hot_of_few(target, n, index, mark.mark, rule.flip)
            address += step
            target += out_step
    else:
        for _ in range(count):
            if n <= lanes:
                best, place = greatest_place(address, n, late, rule)
            else:
                best, place = greatest_place_of_many(address, n, ahead, late, rule)
            if mark.zero_count > 0:
                zero_run(target, mark.zero_count, mark.zero_step, rows.out_bytes)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_element(target + index * mark.step, mark.mark, rows.out_bytes)
            address += step
            target += out_step


@inlined
def _index_rows(rows, address, target, count, rule):
    """Store the indices of so many rows, or pairs."""
    n, step, out_step, ahead, late = rows.n, rows.step, rows.out_step, rows.ahead, rows.late
    out_bytes = rows.out_bytes
    lanes = VECTOR_BYTES // element_size(rule.flip)
    base, weight, nan_is_0 = rows.base, rows.weight, rows.nan_is_0
    # A loop for each case, as in _mark_rows.
    if out_bytes == PAIR_BYTES:
        for _ in range(count):
            if n <= lanes:
                best, place = greatest_place(address, n, late, rule)
            else:
                best, place = greatest_place_of_many(address, n, ahead, late, rule)
            _store_pair(target, best, base + place * weight)
            address += step
            target += out_step
    elif n <= lanes:
        for _ in range(count):
            best, place = greatest_place(address, n, late, rule)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_element(target, index, out_bytes)
            address += step
            target += out_step
    elif n <= few_elements(rule.flip):
        for _ in range(count):
            best, place = greatest_place_of_few(address, n, ahead, late, rule)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_element(target, index, out_bytes)
            address += step
            target += out_step
    else:
        for _ in range(count):
            best, place = greatest_place_of_many(address, n, ahead, late, rule)
            index = _index_or_0(best, base + place * weight, nan_is_0, rule)
            store_element(target, index, out_bytes)
            address += step
            target += out_step


@inlined
def _index_soon(rows, ceiling, address, target, count, rule):
    """As _index_rows, but one vector is searched first: see SOON."""
    n, late = rows.n, rows.late
    lanes = VECTOR_BYTES // element_size(rule.flip)
    first = n - lanes if late else 0
    for _ in range(count):
        best, place = greatest_place(address + first * element_size(rule.flip), lanes, late, rule)
        place += first
        if best < ceiling:
            best, place = greatest_place_of_many(address, n, rows.ahead, late, rule)
        store_element(target, rows.base + place * rows.weight, rows.out_bytes)
        address += rows.step
        target += rows.out_step


def short_rows(width, is_float, one_hot):
    """Chunk of groups that are each one contiguous run of at most SHORT_BYTES, without what `rows` does for each group.

    With `one_hot`, here and in the next three, marks are stored and the zeros beside them; else indices, or pairs.
    """
    lane, float_lane = lane_types(width, is_float)
    of_bytes = width == 8

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        out_bytes = settings[OUT_BYTES]
        as_pairs = out_bytes == PAIR_BYTES
        if as_pairs:
            out = partial
        _, step, out_step = axis_entries(kept, kept.rank - 1)
        n, _, weight = axis_entries(reduced, reduced.rank - 1)
        # Whether the rows' indices adjoin, or the marks and zeros of each row.
        one_run = out_step == out_bytes and not as_pairs
        if one_hot:
            mark_step = axis_entry(marks, 0, AXIS_STRIDE)
            zero_count, zero_step = 0, 0
            if zeros.rank > 0:
                zero_count, zero_step, _ = axis_entries(zeros, zeros.rank - 1)
            one_run = settings[STORED] == BY_GROUPS and zero_count == n
            mark = RowMarks(settings[MARK], mark_step, zero_count, zero_step, one_run)
            one_run = one_run and out_step == n * out_bytes
        size = element_size(rule.flip)
        lanes = VECTOR_BYTES // size
        together = one_run and settings[TRANSPOSED] != 0
        found = allocate(2 * VECTOR_BYTES)
        places = found + VECTOR_BYTES
        # Rows further on, by their own bytes: by their step, those with gaps take up to twice as long.
        ahead = step * most(bytes_ahead() // (n * size), 1)
        base, late, nan_is_0 = settings[BASE], settings[LATE] != 0, settings[NAN_IS_0] != 0
        soon = settings[SOON] != 0 and n > few_elements(rule.flip) and not as_pairs
        rows = ShortRows(n, step, out_step, ahead, late, base, weight, nan_is_0, out_bytes)
        item = begin
        while item < end:
            offset, out_offset, count = run_at(kept, item, end)
            address, target = x + offset, out + out_offset
            item += count
            while together and count >= lanes:
                search_transposed(found, places, address, step, n, ahead, late, rule)
                to = places if one_hot else target
                store_indices(
                    to, lanes, found, places, base, weight, nan_is_0, out_bytes, False, rule
                )
                if one_hot:
                    _mark_found(places, target, n, mark.mark, rule.flip)
                address += step * lanes
                target += out_step * lanes
                count -= lanes
            if one_hot:
                _mark_rows(rows, mark, address, target, count, rule)
            elif of_bytes and soon:
                _index_soon(rows, settings[CEILING], address, target, count, rule)
            else:
                _index_rows(rows, address, target, count, rule)
        release(found)

    return chunk


def rows(width, is_float, one_hot):
    """Chunk with the innermost axis reduced; an item is a part of a group."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        pairs = integers(partial)
        if settings[OUT_BYTES] == PAIR_BYTES:
            out = partial
        parts, out_bytes, mark = settings[PARTS], settings[OUT_BYTES], settings[MARK]
        contiguous, dense = settings[CONTIGUOUS] != 0, settings[PREFERRED_RANK] != 0
        preference = _preference(settings)
        preferred = _preferred(walk, settings)
        nan_is_0, past = settings[NAN_IS_0] != 0, settings[PAST] != 0
        volume = volume_of(zeros)
        total = volume_of(reduced)
        share = ceildiv(total, parts)
        groups = volume_of(kept)
        packed = 0 if contiguous else allocate(BLOCK_BYTES)
        for item in range(begin, end):
            part, group = split(item, groups)
            first = part * share
            offset, out_offset = unravel(kept, kept.rank, group)
            stop = least(first + share, total)
            best, index, found = np.int64(0), 0, False
            if dense:
                best, index, found = search_dense_row(
                    preference, reduced, preferred, x + offset, rule, first, stop
                )
            if contiguous and not found:
                best, index = search_row(preference, reduced, x + offset, rule, first, stop)
            elif not found:
                best, index = search_strided_row(
                    preference, reduced, x + offset, packed, rule, first, stop
                )
            target = out + out_offset
            if one_hot and zeros.rank > 0 and settings[STORED] == ZEROS_FIRST:
                begin_zero, end_zero = volume * part // parts, volume * (part + 1) // parts
                zero_positions(zeros, target, out_bytes, past, begin_zero, end_zero)
            if parts > 1:
                pairs[2 * item] = best
                pairs[2 * item + 1] = index
            elif out_bytes == PAIR_BYTES:
                _store_pair(target, best, index)
            else:
                index = _index_or_0(best, index, nan_is_0, rule)
                if not one_hot:
                    store_element(target, index, out_bytes)
                elif settings[STORED] == BY_GROUPS:
                    one_hot_run(target, volume, index, mark, past, rule.flip)
                else:
                    _store_index_or_mark(target, index, out_bytes, mark, marks)
        if one_hot and past:
            drain_stores()
        if not contiguous:
            release(packed)

    return chunk


def columns(width, is_float, one_hot):
    """Chunk with the innermost axis kept; an item is a part of a tile of groups.

    The outer loop goes down the rows, the inner one along the columns. Rows of few columns that adjoin in memory are
    taken as one row of several times the columns, whose winners are joined at the end.
    """
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        pairs = integers(partial)
        size = element_size(rule.flip)
        tile, parts = settings[TILE], settings[PARTS]
        out_bytes, mark = settings[OUT_BYTES], settings[MARK]
        preference, nan_is_0 = _preference(settings), settings[NAN_IS_0] != 0
        contiguous = settings[CONTIGUOUS] != 0
        overlap = settings[OVERLAP], settings[OVERLAP_INDEX]
        _, beside_axes = _more_tables(walk)
        beside = volume_of(beside_axes)
        block = BYTE_ROWS if size == 1 else BLOCK_ROWS
        line, table_bytes = aligned(tile * size), 8 * (block + SEARCHED_ROWS + ROWS_AHEAD)
        scratch = allocate(3 * line + 2 * table_bytes + 16 * tile + MORE_PLACES)
        best, where = scratch, scratch + line
        found = Found(best, where)
        table = scratch + 2 * line
        offsets, indices = integers(table), integers(table + table_bytes)
        listed = Listed(offsets, indices)
        winners_at = table + 2 * table_bytes
        winners = Winners(integers(winners_at), integers(winners_at + 8 * tile))
        places = winners_at + 16 * tile  # the indices, for rows of marks
        kept_inner = kept.rank - 1
        across, step, out_step = axis_entries(kept, kept_inner)
        tiles = ceildiv(across, tile)
        groups = volume_of(kept)
        whole = groups // across * tiles
        _, row_step, weight = axis_entries(reduced, reduced.rank - 1)
        total = volume_of(reduced)
        stored, past = settings[STORED], settings[PAST] != 0
        volume = volume_of(zeros)
        share = ceildiv(total, parts)
        # Whether indices are stored as they are found, in one block of all rows, and no winners are kept (0.65 to 1 of
        # the time).
        at_once = parts == 1 and beside == 1 and reduced.rank == 1 and total <= block
        at_once = at_once and (stored == BY_ROWS if one_hot else out_step == out_bytes)
        further_apart = apart_ahead(step, size, total) if settings[UNCACHED] != 0 else 0
        listed_from = -1  # the first position that is listed
        rows = top_row = 0
        for item in range(begin, end):
            part, outer, column = place_of(item, whole, tiles, tile)
            columns = least(tile, across - column)
            wide = columns * beside
            singly = settings[UNCACHED] != 0 and one_by_one(row_step, wide * size)
            ahead = rows_ahead(wide * size, 1 if singly else SEARCHED_ROWS)
            offset, out_offset = unravel(kept, kept_inner, outer)
            start = x + offset + column * step
            target = out + out_offset + column * out_step
            _, next_outer, next_column = place_of(least(item + 1, end - 1), whole, tiles, tile)
            next_start = x + unravel(kept, kept_inner, next_outer)[0] + next_column * step
            position = part * share
            stop = least(position + share, total)
            if one_hot and zeros.rank > 0 and stored == ZEROS_FIRST:
                zeroed = columns * settings[ZERO_ROWS]
                for row in range(volume * part // parts, volume * (part + 1) // parts):
                    zero_offset, _ = unravel(zeros, zeros.rank, row)
                    zero_run_past(target + zero_offset, zeroed, out_step, out_bytes, past)
            first = True
            while position < stop:
                # Else they are those of the tile before: 0.75 to 0.95 of the time of tiles of few rows.
                if listed_from != position:
                    # Of blocks after the first, the greatest number means that no row was better.
                    end_of_block = least(stop, position + block - (0 if first else SEARCHED_ROWS))
                    rows = list_rows(listed, preference, reduced, overlap, position, end_of_block)
                    listed_from = position
                position += rows
                fresh = first or not preference.ordered
                if contiguous:
                    if first:
                        top_row = offsets[0]
                    goes_on, away = position < stop, next_start - start
                    folded = rows + -rows % SEARCHED_ROWS
                    list_ahead(
                        offsets, rows, folded, ahead, row_step, goes_on, first, top_row, away
                    )
                    search_rows(best, where, start, table, folded, ahead, wide, fresh, singly, rule)
                else:
                    search_apart(found, start, table, rows, wide, step, further_apart, fresh, rule)
                if at_once:
                    to, to_bytes = (places, size) if one_hot else (target, out_bytes)
                    base = indices[0]
                    store_indices(
                        to, columns, best, where, base, weight, nan_is_0, to_bytes, False, rule
                    )
                elif first:
                    first_winners(winners, found, indices, wide, rule)
                    first = False
                else:
                    later_winners(winners, found, indices, wide, preference, rule)
            if beside > 1:
                join_winners(winners, beside_axes, columns, preference.last)
            if one_hot and stored == BY_ROWS:
                if not at_once:
                    for c in range(columns):
                        index = _index_or_0(winners.keys[c], winners.indices[c], nan_is_0, rule)
                        store_integer(rule.flip, places + c * size, index)
                store_marked(
                    zeros, target, places, columns, settings[ZERO_ROWS], mark, past, rule.flip
                )
            elif at_once:
                continue
            elif parts > 1:
                place = 2 * (part * groups + outer * across + column)
                for c in range(columns):
                    pairs[place + 2 * c] = winners.keys[c]
                    pairs[place + 2 * c + 1] = winners.indices[c]
            else:  # functions for these stores, and for the zeros, would take 1.15 times as long to compile
                for c in range(columns):
                    address = target + c * out_step
                    index = _index_or_0(winners.keys[c], winners.indices[c], nan_is_0, rule)
                    if not one_hot:
                        store_element(address, index, out_bytes)
                    elif stored == BY_GROUPS:
                        one_hot_run(address, volume, index, mark, past, rule.flip)
                    else:
                        _store_index_or_mark(address, index, out_bytes, mark, marks)
        if one_hot and past:
            drain_stores()
        release(scratch)

    return chunk


def planes(width, is_float, one_hot):
    """Chunk with the innermost axis kept, of small planes; an item is one, or a piece of a long one."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced, marks, _zeros = _tables(walk)
        rule = rule_of(settings, RULE, lane, float_lane)
        size, out_bytes = element_size(rule.flip), settings[OUT_BYTES]
        nan_is_0, past = settings[NAN_IS_0] != 0, settings[PAST] != 0
        inner = kept.rank - 1
        columns = axis_entry(kept, inner, AXIS_SIZE)
        outer = Axes(kept.entries, inner)
        in_row, step, next_out = axis_entries(kept, inner - 1)
        n, row_step, weight = axis_entries(reduced, 0)
        row_bytes = columns * size
        ahead = planes_ahead(n, row_bytes) * step
        one_run = next_out == columns * out_bytes
        together = planes_together(columns, settings[LAST_COLUMNS])
        line = aligned(together * row_bytes + VECTOR_BYTES)
        best = allocate(2 * line)
        where = best + line
        item = begin
        while item < end:
            offset, out_offset, count = run_at(outer, item, least(item + together, end))
            item += count
            some = columns_before(item, in_row, columns, settings[LAST_COLUMNS])
            start, target = x + offset, out + out_offset
            searched = SmallPlanes(start, count, step, n, row_step, some, ahead)
            if one_hot:
                out_row_step, mark = axis_entry(marks, 0, AXIS_STRIDE), settings[MARK]
                mark_planes(
                    target, next_out, out_row_step, weight < 0, nan_is_0, mark, searched, rule
                )
            else:
                search_planes(best, where, searched, rule)
                stored = count * some if one_run else some
                for first in range(0, count * some, stored):
                    at = first * size
                    store_indices(
                        target,
                        stored,
                        best + at,
                        where + at,
                        settings[BASE],
                        weight,
                        nan_is_0,
                        out_bytes,
                        past,
                        rule,
                    )
                    target += next_out
        if past:
            drain_stores()
        release(best)

    return chunk


@entry
def combine(walk, _x, out, partial, begin, end):
    """Chunk that finds the best part of each group; an item is a group."""
    settings, kept, _reduced, marks, _zeros = _tables(walk)
    pairs, groups = integers(partial), volume_of(kept)
    parts, last = settings[PARTS], settings[LAST] != 0
    out_bytes, mark = settings[OUT_BYTES], settings[MARK]
    nan_is_0, nan_key, weight = settings[NAN_IS_0] != 0, settings[RULE + 1], settings[PART_WEIGHT]
    step = axis_entry(kept, kept.rank - 1, AXIS_OTHER_STRIDE)
    item = begin
    while item < end:
        _, offset, count = run_at(kept, item, end)
        target = out + offset
        for group in range(item, item + count):
            best, index = pairs[2 * group], pairs[2 * group + 1]
            for p in range(1, parts):
                place = 2 * (p * groups + group)
                key, other = pairs[place], pairs[place + 1] + p * weight
                if key > best or (key == best and is_preferred(other, index, last)):
                    best, index = key, other
            if nan_is_0 and best == nan_key:
                index = 0
            _store_index_or_mark(target, index, out_bytes, mark, marks)
            target += step
        item += count


@entry
def zero(walk, _x, out, _partial, begin, end):
    """Chunk that sets elements to 0, by position.

    The walk: ZERO_SETTINGS settings, then a table as `zeros`.
    """
    settings = integers(walk)
    table = Axes(integers(walk + 8 * ZERO_SETTINGS), settings[ZERO_RANK])
    out_bytes, past = settings[ZERO_BYTES], settings[ZERO_PAST] != 0
    zero_positions(table, out, out_bytes, past, begin, end)
    if past:
        drain_stores()
