# mypy: allow-untyped-defs, no-check-untyped-defs
"""One number of each group of elements: a sum, a product, the greatest, and what follows from these; for any layout.

Addresses are raw and strides are in bytes, so that only the data type and the operation make a new compiled version, a
`fold` (see below). There are `rows`, `narrow_rows`, `runs`, `columns` and `planes` because a call needs one of
them: less to compile.

    walk     the settings below, then two tables of axes, whose ranks are among the settings
      kept     (size, input stride, output stride), one row at least
      reduced  (size, input stride, 0), one row at least, visited in this order
    partial  states of each part of each group, where groups are split into parts: of the first part of all groups, then
             of the second, ..
"""

from __future__ import annotations

from typing import Any, NamedTuple

from axes import (
    AXIS_OTHER_STRIDE,
    AXIS_SIZE,
    AXIS_STRIDE,
    Axes,
    axis_entries,
    axis_entry,
    run_at,
    two_tables,
    unravel,
    volume_of,
)
from columns import ROWS_AHEAD, apart_ahead, list_ahead, one_by_one, rows_ahead
from compiled import entry, helper, inlined
from fold import Fold, fetches_runs, fold_lanes, lane_bytes, settles, state_arrays
from fold_down import fold_down, fold_planes
from fold_finish import finish, finishes_fast, reduce_planes
from fold_groups import fold_groups
from fold_run import Lead, fold_run
from fold_short import fold_short, short_row
from fold_state import reset
from folds import (
    FOLD,
    FOLD_FAST,
    GROUPS,
    copy_states,
    fold_few,
    fold_rows,
    fold_scattered,
    is_settled,
    join,
    store_across,
)
from memory import (
    VECTOR_BYTES,
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
from narrow import transpose
from planes import SmallPlanes, columns_before, planes_ahead, planes_together
from target import bytes_ahead
from vectors import prefer_wide_vectors
from walk import integers

PARTS = 0  # parts that each group is split into
TILE = 1  # columns: those taken together; runs: groups of the innermost kept axis that are
BESIDE = 2  # columns: rows that adjoin in memory and are taken as one; the innermost reduced axis counts such rows
LAST = 3  # columns: rows that are taken as the last one of that axis
SEVERAL = 4  # columns: such rows of the next kept axis that adjoin, too, and are taken together
UNCACHED = 5  # columns: input that no cache holds
LAST_COLUMNS = 6  # planes: columns of the last of those that one is cut into; others have the innermost kept axis
NEAR = 7  # short rows, runs, columns: input that the caches may hold, of which nothing is fetched ahead
DOWN = 8  # columns: rows that are folded together while states stay in registers; 0 where that does not pay
KEPT_RANK = 9  # axes of each table
REDUCED_RANK = 10
PAST = 11  # planes: results go past the caches
RULE = 12  # six words, as a fold takes them
SETTINGS = 18

BLOCK_ROWS = 1024  # rows of columns whose offsets are tabled together
SETTLING = 1 << 15  # bytes after which a group may end: nothing changes a greatest element of 255
# Bytes that short runs are fetched ahead, in whole steps of the other reduced axes: without 1.1 to 2.2 times as long,
# with 1, 8 or 16 KiB 0.9 to 1.6.
RUNS_AHEAD = 1 << 12
# Groups of few vectors whose results are stored together, a multiple of GROUPS: 1.2 times as fast as with GROUPS.
SHORT_GROUPS = 64
NARROW_VECTORS = 4  # of narrow rows that are transposed before they are folded


@helper
def _lead(fold, reduced, pitch):
    """What is fetched ahead of the first element of a run; runs are `pitch` bytes apart."""
    n, step, _ = axis_entries(reduced, reduced.rank - 1)
    run_bytes, ahead = most(n * step, 1), bytes_ahead()
    fetches = fetches_runs(fold, run_bytes) or (run_bytes < ahead and run_bytes != pitch)
    return Lead(fetches, ahead % run_bytes, pitch, ahead // run_bytes * pitch)


@inlined
def _lead_within(lead, passed):
    """The same for a fold that begins `passed` bytes behind the run's first element."""
    return Lead(lead.fetches, lead.ahead, lead.pitch - passed, lead.skipped)


@helper
def _fold_group(fold, rule, at, gap, reduced, x, lead, begin, end):
    """Fold positions begin to end of the group that begins at `x` into all lanes of a vector of states."""
    n, step, _ = axis_entries(reduced, reduced.rank - 1)
    together = SETTLING // element_size(fold) if settles(fold) else n
    position = begin
    while position < end:
        offset, _, left = run_at(reduced, position, position + n)
        count = least(least(left, together), end - position)
        here = _lead_within(lead, (n - left) * step)
        fold_run(fold, rule, at, gap, position == begin, x + offset, count, left, step, here)
        if is_settled(fold, at):
            return
        position += count


def rows(dtype, operation):
    """Chunk with lanes along the innermost reduced axis; an item is a part of a group."""
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        rule = walk + 8 * RULE
        size, lane = element_size(fold), lane_bytes(fold)
        vector = fold_lanes(fold) * lane
        gap, result_gap = GROUPS * vector, SHORT_GROUPS * lane
        states = allocate(state_arrays(fold) * (gap + result_gap))
        results = states + state_arrays(fold) * gap
        parts = settings[PARTS]
        groups, total = volume_of(kept), volume_of(reduced)
        share = ceildiv(total, parts)
        _, step, out_step = axis_entries(kept, kept.rank - 1)
        inner = reduced.rank - 1
        n, n_step, _ = axis_entries(reduced, inner)
        short = inner == 0 and parts == 1 and n <= short_row(fold)
        short = short and n_step == size
        short_ahead = 0
        if settings[NEAR] == 0 and fetches_runs(fold, n * size):
            short_ahead = step * most(bytes_ahead() // most(abs(step), 1), 1)
        together = SHORT_GROUPS if short else GROUPS
        settling = settles(fold) and share > SETTLING // size
        # The next run is one of the same group, or of the next.
        lead = _lead(
            fold,
            reduced,
            axis_entry(reduced, inner - 1, AXIS_STRIDE) if inner > 0 and share > n else step,
        )
        item = begin
        while item < end:
            part, group = split(item, groups)
            offset, out_offset, left = run_at(kept, group, group + end - item)
            address, target = x + offset, out + out_offset
            count = least(together, left)
            first = part * share
            stop = least(first + share, total)
            if short:
                for g in range(0, count, GROUPS):
                    some = least(GROUPS, count - g)
                    first_run = address + g * step
                    fold_groups(
                        fold,
                        rule,
                        states,
                        gap,
                        results + g * lane,
                        result_gap,
                        first_run,
                        n,
                        step,
                        some,
                        short_ahead,
                    )
            else:
                start, _, left_of_run = run_at(reduced, first, first + n)
                start += address
                one_run = stop - first <= left_of_run
                here = _lead_within(lead, (n - left_of_run) * n_step)
                for g in range(count):
                    at = states + g * vector
                    if one_run and not settling:
                        # With no call: 1.1 to 1.5 times as fast.
                        some = stop - first
                        fold_run(fold, rule, at, gap, True, start, some, left_of_run, n_step, here)
                    else:
                        _fold_group(fold, rule, at, gap, reduced, address, lead, first, stop)
                    address += step
                    start += step
                store_across(fold, states, gap, results, result_gap)
            if parts > 1:
                place = partial + item * lane
                copy_states(fold, place, parts * groups * lane, results, result_gap, count)
            else:
                finish(fold, rule, results, result_gap, target, out_step, count)
            item += count
        release(states)

    return chunk


def runs(dtype, operation):
    """Chunk with lanes along the innermost reduced axis, of many short runs a group; an item is some groups of a tile.

    The runs of all groups of a tile at one position in the other reduced axes are folded before those at the next.
    Parts are of such positions.
    """
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        rule = walk + 8 * RULE
        lane = lane_bytes(fold)
        vector = fold_lanes(fold) * lane
        gap, result_gap = SHORT_GROUPS * vector, SHORT_GROUPS * lane
        states = allocate(state_arrays(fold) * (gap + result_gap))
        results = states + state_arrays(fold) * gap
        parts, tile = settings[PARTS], settings[TILE]
        inner = kept.rank - 1
        across, step, out_step = axis_entries(kept, inner)
        tiles = ceildiv(across, tile)
        groups = volume_of(kept)
        whole = groups // across * tiles
        n, _, _ = axis_entries(reduced, reduced.rank - 1)
        positions = Axes(reduced.entries, reduced.rank - 1)
        pitch = axis_entry(reduced, reduced.rank - 2, AXIS_STRIDE)
        # Where nothing is to be fetched ahead, what is read is fetched: no branch for it.
        ahead = 0 if settings[NEAR] != 0 else pitch * most(RUNS_AHEAD // most(pitch, 1), 1)
        total = volume_of(positions)
        share = ceildiv(total, parts)
        for item in range(begin, end):
            part, rest = split(item, whole)
            outer, column = split(rest, tiles)
            column *= tile
            count = least(tile, across - column)
            offset, out_offset = unravel(kept, inner, outer)
            start = x + offset + column * step
            reset(fold, states, gap, count * fold_lanes(fold))
            position = part * share
            stop = least(position + share, total)
            settled = 0  # groups of the tile, from the first on, that nothing changes
            while position < stop and settled < count:
                run_offset, _, left = run_at(positions, position, stop)
                position += left
                address = start + run_offset
                while left > 0 and settled < count:
                    fold_short(fold, rule, states, gap, address, n, step, count, ahead)
                    address += pitch
                    left -= 1
                    while settled < count and is_settled(fold, states + settled * vector):
                        settled += 1
            for g in range(0, count, GROUPS):
                store_across(fold, states + g * vector, gap, results + g * lane, result_gap)
            if parts > 1:
                place = partial + (part * groups + outer * across + column) * lane
                copy_states(fold, place, parts * groups * lane, results, result_gap, count)
            else:
                target = out + out_offset + column * out_step
                finish(fold, rule, results, result_gap, target, out_step, count)
        release(states)

    return chunk


@helper
def _fold_apart(fold, rule, states, gap, fresh, start, table, rows, columns, step, ahead):
    """As fold_scattered, in a function of its own: amid the chunk it takes up to 1.4 times as long."""
    prefer_wide_vectors()
    fold_scattered(fold, rule, states, gap, fresh, start, table, rows, columns, step, ahead)


class Tiling(NamedTuple):
    """How columns are cut into tiles, and in which order these are items."""

    items: Any  # of each part
    tile: Any  # columns of one
    tiles: Any  # along the innermost kept axis
    outers: Any  # positions in the kept axes but that
    swapped: Any  # items go along the outer axes first, as memory does
    several: Any  # rows of the next kept axis that are taken together, of `next_size`
    next_size: Any


@inlined
def _tile_of(item, tiling):
    """Part, position in the outer axes, first column, and how many rows of the next kept axis, of an item."""
    part, rest = split(item, tiling.items)
    taken = 1
    if tiling.several > 1:
        above, digit = split(rest, ceildiv(tiling.next_size, tiling.several))
        digit *= tiling.several
        taken = least(tiling.several, tiling.next_size - digit)
        outer, column = above * tiling.next_size + digit, 0
    elif tiling.swapped:
        column, outer = split(rest, tiling.outers)
    else:
        outer, column = split(rest, tiling.tiles)
    return part, outer, column * tiling.tile, taken


class Extent(NamedTuple):
    """The columns of a tile."""

    start: Any  # address of the first element of the first one
    wide: Any  # how many there are, with those of rows that are taken as one
    last: Any  # how many the rows have that are taken as the last one of the innermost axis; 0: as many as others


@inlined
def _fold_in_registers(fold, rule, states, gap, reduced, extent, together, ahead, begin, end):
    """Fold rows begin to end, so many `together` while states stay in registers, and fetch so many bytes ahead."""
    n, row_step, _ = axis_entries(reduced, reduced.rank - 1)
    position = begin
    while position < end:
        fresh = position == begin
        offset, _, rows = run_at(reduced, position, least(end, position + together))
        first = extent.start + offset
        position += rows
        whole = rows - 1 if extent.last > 0 and position % n == 0 else rows
        fold_down(fold, rule, states, gap, fresh, first, whole, row_step, extent.wide, ahead)
        if whole < rows:
            first += whole * row_step
            fold_down(fold, rule, states, gap, False, first, 1, row_step, extent.last, 0)


@inlined
def _list_whole_rows(fold, rule, states, gap, reduced, extent, table, position, stop):
    """List how far rows lie from the tile's start; those that have fewer columns than others are folded at once.

    How many are listed, and the position behind them.
    """
    n, row_step, _ = axis_entries(reduced, reduced.rank - 1)
    offsets = integers(table)
    rows = 0
    while position < stop and rows < BLOCK_ROWS:
        till = least(stop, position + BLOCK_ROWS - rows)
        offset, _, count = run_at(reduced, position, till)
        position += count
        for r in range(count):
            offsets[rows + r] = offset + r * row_step
        rows += count
        if extent.last > 0 and position % n == 0:
            rows -= 1
            fold_few(fold, rule, states, gap, False, extent.start, table + 8 * rows, 1, extent.last)
    return rows, position


def columns(dtype, operation):
    """Chunk with lanes along the innermost kept axis; an item is a part of a tile of groups."""
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        rule = walk + 8 * RULE
        size, lane = element_size(fold), lane_bytes(fold)
        parts, tile = settings[PARTS], settings[TILE]
        beside, several = settings[BESIDE], settings[SEVERAL]
        gap = aligned((tile * beside * several + fold_lanes(fold) + GROUPS) * lane)
        states = allocate(state_arrays(fold) * gap + 8 * (BLOCK_ROWS + ROWS_AHEAD))
        table = states + state_arrays(fold) * gap
        offsets = integers(table)
        inner = kept.rank - 1
        across, step, out_step = axis_entries(kept, inner)
        contiguous = step == size
        tiles = ceildiv(across, tile)
        groups = volume_of(kept)
        outers = groups // across
        next_size, next_out_step = 1, 0
        if several > 1:
            next_size, _, next_out_step = axis_entries(kept, inner - 1)
        whole = outers // next_size * ceildiv(next_size, several) * tiles
        swapped = inner > 0 and step > axis_entry(kept, inner - 1, AXIS_STRIDE)
        row_step = axis_entry(reduced, reduced.rank - 1, AXIS_STRIDE)
        total = volume_of(reduced)
        share = ceildiv(total, parts)
        partial_last = settings[LAST] < beside
        further_apart = apart_ahead(step, size, total) if settings[NEAR] == 0 else 0
        tiling = Tiling(whole, tile, tiles, outers, swapped, several, next_size)
        part, outer, column, taken = _tile_of(begin, tiling)
        offset, out_offset = unravel(kept, inner, outer)
        for item in range(begin, end):
            later = least(item + 1, end - 1)
            next_part, next_outer, next_column, next_taken = _tile_of(later, tiling)
            next_offset, next_out_offset = unravel(kept, inner, next_outer)
            columns = least(tile, across - column)
            each = columns * beside
            wide = each * taken
            singly = settings[UNCACHED] != 0 and one_by_one(row_step, wide * size)
            ahead = 0 if settings[NEAR] != 0 else rows_ahead(wide * size, 1 if singly else FOLD)
            start = x + offset + column * step
            away = x + next_offset + next_column * step - start
            extent = Extent(start, wide, columns * settings[LAST] if partial_last else 0)
            if partial_last:
                reset(fold, states, gap, wide)
            position = part * share
            stop = least(position + share, total)
            first = True
            top_row = 0
            if settings[DOWN] != 0:
                together, further = settings[DOWN], ahead * row_step
                _fold_in_registers(
                    fold, rule, states, gap, reduced, extent, together, further, position, stop
                )
                position = stop
            while position < stop:
                rows, position = _list_whole_rows(
                    fold, rule, states, gap, reduced, extent, table, position, stop
                )
                fresh = first and not partial_last
                if not contiguous:
                    _fold_apart(
                        fold,
                        rule,
                        states,
                        gap,
                        fresh,
                        start,
                        table,
                        rows,
                        columns,
                        step,
                        further_apart,
                    )
                    first = False
                    continue
                if first:
                    top_row = offsets[0]
                if singly or rows >= FOLD_FAST:  # of fewer none are fetched
                    goes_on = position < stop
                    list_ahead(offsets, rows, rows, ahead, row_step, goes_on, first, top_row, away)
                done = fold_rows(
                    fold, rule, states, gap, fresh, start, table, rows, ahead, wide, singly
                )
                if done < rows:
                    few, fresh = table + 8 * done, fresh and done == 0
                    fold_few(fold, rule, states, gap, fresh, start, few, rows - done, wide)
                first = False
            for number in range(taken):
                at = states + number * each * lane
                together = beside
                while together > 1:
                    half = (together + 1) // 2
                    join(fold, at, at + half * columns * lane, gap, (together - half) * columns)
                    together = half
                if parts > 1:
                    group = (outer + number) * across + column
                    place = partial + (part * groups + group) * lane
                    copy_states(fold, place, parts * groups * lane, at, gap, columns)
                else:
                    target = out + out_offset + number * next_out_step + column * out_step
                    finish(fold, rule, at, gap, target, out_step, columns)
            part, outer, column, taken = next_part, next_outer, next_column, next_taken
            offset, out_offset = next_offset, next_out_offset
        release(states)

    return chunk


def planes(dtype, operation):
    """Chunk with lanes along the innermost kept axis, of small planes; an item is one, or a piece of a long one."""
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        rule = walk + 8 * RULE
        lane = lane_bytes(fold)
        inner = kept.rank - 1
        columns, _, out_step = axis_entries(kept, inner)
        outer = Axes(kept.entries, inner)
        in_row, step, next_out = axis_entries(kept, inner - 1)
        n, row_step, _ = axis_entries(reduced, 0)
        together = planes_together(columns, settings[LAST_COLUMNS])
        gap = aligned((together * columns + fold_lanes(fold)) * lane)
        states = allocate(state_arrays(fold) * gap)
        row_bytes = columns * element_size(fold)
        ahead = planes_ahead(n, row_bytes) * step
        one_run = next_out == columns * out_step
        straight = out_step == element_size(fold) and finishes_fast(fold, columns)
        past = settings[PAST] != 0
        item = begin
        while item < end:
            offset, out_offset, count = run_at(outer, item, least(item + together, end))
            item += count
            some = columns_before(item, in_row, columns, settings[LAST_COLUMNS])
            start, target = x + offset, out + out_offset
            folded = SmallPlanes(start, count, step, n, row_step, some, ahead)
            if straight:
                reduce_planes(fold, rule, target, next_out, past, folded)
                continue
            fold_planes(fold, rule, states, gap, folded)
            if one_run:
                finish(fold, rule, states, gap, target, out_step, count * some)
            else:
                for number in range(count):
                    at = states + number * some * lane
                    finish(fold, rule, at, gap, target, out_step, some)
                    target += next_out
        if past:
            drain_stores()
        release(states)

    return chunk


def narrow_rows(dtype, operation):
    """Chunk of groups that are each one contiguous run of few elements; an item is a group.

    Rows are transposed in scratch, where they are the columns of a small plane.
    """
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        prefer_wide_vectors()
        settings, kept, reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        rule = walk + 8 * RULE
        size, lane = element_size(fold), lane_bytes(fold)
        across, step, out_step = axis_entries(kept, kept.rank - 1)
        n = axis_entry(reduced, 0, AXIS_SIZE)
        lanes = VECTOR_BYTES // size
        gap = VECTOR_BYTES * NARROW_VECTORS
        state_gap = aligned((lanes * NARROW_VECTORS + fold_lanes(fold)) * lane)
        columns = allocate(n * gap + VECTOR_BYTES + state_arrays(fold) * state_gap)
        states = columns + n * gap + VECTOR_BYTES
        straight = out_step == size and finishes_fast(fold, lanes)
        ahead = 0 if settings[NEAR] != 0 else step * most(bytes_ahead() // (n * size), 1)
        item = begin
        while item < end:
            offset, out_offset, count = run_at(
                kept, item, least(end, item + lanes * NARROW_VECTORS)
            )
            # Whole vectors of rows are read, from rows before these where the axis ends.
            _, row = split(item, across)
            some = most(count, lanes)
            before = most(row + some - across, 0)
            transpose(columns, gap, x + offset - before * step, step, some, n, ahead, fold)
            folded = SmallPlanes(columns + before * size, 1, 0, n, gap, count, 0)
            target = out + out_offset
            if straight:
                reduce_planes(fold, rule, target, 0, False, folded)
            else:
                fold_planes(fold, rule, states, state_gap, folded)
                finish(fold, rule, states, state_gap, target, out_step, count)
            item += count
        release(columns)

    return chunk


def combine(dtype, operation):
    """Chunk that joins the parts of each group; an item is a group."""
    fold = Fold(dtype, operation)

    @entry
    def chunk(walk, _x, out, partial, begin, end):
        settings, kept, _reduced = two_tables(walk, SETTINGS, KEPT_RANK, REDUCED_RANK)
        lane, groups, parts = lane_bytes(fold), volume_of(kept), settings[PARTS]
        gap = parts * groups * lane
        first = partial + begin * lane
        for part in range(1, parts):
            join(fold, first, first + part * groups * lane, gap, end - begin)
        out_step = axis_entry(kept, kept.rank - 1, AXIS_OTHER_STRIDE)
        group = begin
        while group < end:
            _, out_offset, count = run_at(kept, group, end)
            states = partial + group * lane
            finish(fold, walk + 8 * RULE, states, gap, out + out_offset, out_step, count)
            group += count

    return chunk
