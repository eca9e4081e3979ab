# mypy: allow-untyped-defs, no-check-untyped-defs
"""Where the greatest element of each reduced group stands, for any type, layout, tie rule and NaN rule.

The place is stored as an index, one for each group, or as a mark in an output of the input's shape, 0 elsewhere.

Elements are compared by order keys (`flip` turns the order round, `nan_key` ranks NaN). Addresses are raw and strides
are in bytes, so that only the element's width, and whether it is a float, make a new compiled version. Chunks are apart
because a call needs one of them: a third of the time to compile.

    walk     the settings below, then six tables of axes, whose ranks are among the settings
      kept     (size, input stride, output stride), one row at least
      reduced  (size, input stride, index weight), one row at least, visited in this order; the first element
               visited of several equal ones wins, or, where `ORDERED` is 0, the least (`LAST`: greatest) index
      marks    (size, output stride, 0) of the reduced axes in the order of the index, where marks are stored
      zeros    (size, output stride, index weight) of the reduced axes in the order of memory, where a group's elements
               are stored as soon as it is searched, see `STORED`; with ZEROS_FIRST weights of 0
      preferred  (size, input stride, index weight) of the reduced axes in the order of preference, of dense groups
      beside   the same of those along which rows are taken as one
    partial  (key, index) of each group, part by part, where groups are split into parts; a search whose outputs have
             PAIR_BYTES stores such pairs there, too
"""

from __future__ import annotations

import numpy as np

from axes import (
    AXIS_BYTES,
    AXIS_OTHER_STRIDE,
    AXIS_SIZE,
    AXIS_STRIDE,
    Axes,
    _axis,
    _entry,
    _run_at,
    _unravel,
    _volume,
)
from columns import ROWS_AHEAD, apart_ahead, list_ahead, one_by_one, rows_ahead
from compiled import entry, helper, inlined
from key_run import pack, place_in_run, run_key
from lanes import (
    SEARCHED_ROWS,
    greatest_place,
    greatest_place_of_many,
    search_planes,
    search_rows,
    search_rows_apart,
    store_places,
)
from marks import MARKED_VECTORS, MORE_PLACES, mark_planes, mark_run, one_hot_run, store_one_hot
from memory import (
    VECTOR_BYTES,
    aligned,
    allocate,
    ceildiv,
    drain_stores,
    item_size,
    least,
    load_integer,
    most,
    release,
    split,
    store_integer,
)
from order_key import load_key
from planes import columns_before, planes_ahead, planes_together
from target import bytes_ahead
from vectors import prefer_wide_vectors
from walk import integers, lane_types, rule_of
from zero import store_element, zero_run

CONTIGUOUS = 0  # rows: the innermost reduced axis is contiguous; columns: the innermost kept one
LAST = 1  # of several equal elements the last wins
LATE = 2  # contiguous rows: of several equal elements in one innermost run the one at the highest address wins
ORDERED = 3  # reduced elements are visited in the order of preference
BASE = 4  # index of the first element visited
TILE = 5  # columns: those taken together
PARTS = 6  # parts that each group is split into
WIDTH = 7  # bytes of an output element; PAIR_BYTES: of the greatest element's key and index
BLANKS = 8  # a group of nothing but NaN gives index 0
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
CEILING = 19  # the greatest key that an element can have
STORED = 20  # how elements of the input's shape are stored: one of the following
RULE = 21  # flip, nan_key and inf
UNCACHED = 24  # columns: input that no cache holds
LAST_COLUMNS = 25  # planes: columns of the last of those that one is cut into; others have the innermost kept axis
PREFERRED_AT = 26  # bytes from a group's first element to the first of `preferred`
PREFERRED_INDEX = 27  # the index of that
OVERLAP = 28  # bytes that the last row of an innermost axis begins before the end of that before it
OVERLAP_INDEX = 29  # the same in the index
SETTINGS = 30

# Of the walk that `zero` takes.
ZERO_WIDTH = 0  # bytes of an element
ZERO_PAST = 1  # zeros go past the caches
ZERO_RANK = 2  # axes of the table
ZERO_SETTINGS = 3

ZEROS_FIRST = 0  # zeros, then marks
BY_ROWS = 1  # rows of columns, of marks and zeros
BY_GROUPS = 2  # groups, each of which is one contiguous run in the order of the index

PAIR_BYTES = 16

SHORT_BYTES = 127 * 64  # of a row searched without blocks: numbers of its vectors fit a byte
BLOCK_BYTES = 4096  # scanned for its greatest key before the position matters
LEAST_PACKED = 48  # elements of a run that had better be packed: fewer take up to 1.4 times as long
TIES = 64  # greatest elements of a dense group that are compared, whatever its size
TIE_ELEMENTS = 512  # of it, for each further one
RUN_ELEMENTS = 4  # loaded one by one while a short run is searched
BLOCK_ROWS = 1024  # rows of columns whose numbers fit the keys
BYTE_ROWS = 256  # of 8 bits


@helper
def _tables(walk):
    """The settings, then the tables kept, reduced, marks and zeros."""
    how = integers(walk)
    kept = walk + 8 * SETTINGS
    reduced = kept + AXIS_BYTES * how[KEPT_RANK]
    marks = reduced + AXIS_BYTES * how[REDUCED_RANK]
    zeros = marks + AXIS_BYTES * how[MARKS_RANK]
    return (
        how,
        Axes(integers(kept), how[KEPT_RANK]),
        Axes(integers(reduced), how[REDUCED_RANK]),
        Axes(integers(marks), how[MARKS_RANK]),
        Axes(integers(zeros), how[ZEROS_RANK]),
    )


@helper
def _more_tables(walk):
    """The tables behind these: preferred and beside."""
    how = integers(walk)
    rows = how[KEPT_RANK] + how[REDUCED_RANK] + how[MARKS_RANK] + how[ZEROS_RANK]
    preferred = walk + 8 * SETTINGS + AXIS_BYTES * rows
    beside = preferred + AXIS_BYTES * how[PREFERRED_RANK]
    return (
        Axes(integers(preferred), how[PREFERRED_RANK]),
        Axes(integers(beside), how[BESIDE_RANK]),
    )


@helper
def _store_place(address, index, width, mark, marks):
    """Store an index at `address`, or a mark at its place in the group that begins there."""
    if mark != 0:
        address += _unravel(marks, marks.rank, index)[0]
        index = mark
    store_element(address, index, width)


@helper
def _store_pair(address, key, index):
    store_integer(np.int64(0), address, np.int64(key))
    store_integer(np.int64(0), address + 8, index)


@helper
def _zero(table, address, width, past, begin, end):
    """Set the elements at positions begin to end of a row-major walk to 0."""
    step = _entry(table, table.rank - 1, AXIS_STRIDE)
    position = begin
    while position < end:
        offset, _, count = _run_at(table, position, end)
        position += count
        zero_run(address + offset, count, step, width, past)


@helper
def _row(how, reduced, x, rule, begin, end):
    """(key, index) of positions begin to end of one group whose innermost runs are contiguous.

    Of a long run only the greatest key of each block is computed, and the one block that holds the winner is searched.
    What comes after an element that none can beat is not looked at.
    """
    size, ceiling = item_size(rule.flip), how[CEILING]
    block = BLOCK_BYTES // size
    weight = _entry(reduced, reduced.rank - 1, AXIS_OTHER_STRIDE)
    last, late, ordered = how[LAST] != 0, how[LATE] != 0, how[ORDERED] != 0
    best = np.int64(0)
    index = 0
    none = True
    position = begin
    while position < end:
        offset, base, count = _run_at(reduced, position, end)
        base += how[BASE]
        address = x + offset
        position += count
        short = VECTOR_BYTES <= count * size <= SHORT_BYTES
        place = 0
        found = 0
        if short:
            key, place = greatest_place_of_many(address, count, bytes_ahead(), late, rule)
        else:
            key = np.int64(0)
            for first in range(0, count, block):
                some = least(count - first, block)
                block_key = np.int64(run_key(address + first * size, some, rule))
                if first == 0 or block_key > key or (late and block_key == key):
                    key = block_key
                    found = first
                if key == ceiling and not late:
                    break
        if none or key > best or (key == best and not ordered):
            if not short:
                some = least(count - found, block)
                start = address + found * size
                place = found + place_in_run(start, some, key, late, rule)
            key_index = base + place * weight
            if none or key > best or (key_index < index) != last:
                none = False
                best = key
                index = key_index
        if best == ceiling and ordered:
            break
    return best, index


@helper
def _first_of_key(how, preferred, x, key, limit, rule, begin, end):
    """Index of the first element, in the order of preference, whose key is `key`; and whether it is found.

    Of a dense group's places `begin` to `end` in memory; about `limit` elements are looked at.
    """
    _, step, weight = _axis(preferred, preferred.rank - 1)
    x += how[PREFERRED_AT]
    size = item_size(rule.flip)
    volume = _volume(preferred)
    position = looked = 0
    while position < volume and looked < limit:
        offset, index, count = _run_at(preferred, position, volume)
        position += count
        # The elements of this run that lie within the part: those before it, and those before its end.
        place = (how[PREFERRED_AT] + offset) // size
        before, until = begin - place, end - place
        if step < 0:
            before, until = 1 - until, 1 - before
        apart = abs(step) // size
        first = ceildiv(before, apart) if before > 0 else 0
        stop = least(count, ceildiv(until, apart)) if until > 0 else 0
        for i in range(first, stop):
            if np.int64(load_key(x + offset, i * step, rule)) == key:
                return how[PREFERRED_INDEX] + index + i * weight, True
        looked += 1 + stop - least(first, stop)
    return 0, False


@helper
def _compare_ties(how, reduced, x, key, place, last, index, most, rule):
    """Go on from one of several elements of a key, by place and index, to at most so many others; the preferred one."""
    size = item_size(rule.flip)
    while most > 0 and place < last:
        most -= 1
        place += 1
        place += place_in_run(x + place * size, last - place + 1, key, False, rule)
        other = _unravel(reduced, reduced.rank, place)[1]
        if (other < index) != (how[LAST] != 0):
            index = other
    return place, index


@helper
def _dense_row(how, reduced, preferred, x, rule, begin, end):
    """As _row, of a dense group: 0.01 to 0.3 of the time of short runs; and whether the index was found.

    Of several greatest elements a few are compared; of more, one is soon met in the order of preference, if they are
    not all at its end. Then more are compared, and in the end all runs searched: that takes twice as long at most.
    """
    size = item_size(rule.flip)
    block = BLOCK_BYTES // size
    best = np.int64(0)
    first = last = begin
    for start in range(begin, end, block):
        key = np.int64(run_key(x + start * size, least(end - start, block), rule))
        if start == begin or key > best:
            best = key
            first = start
        if key == best:
            last = start
    first += place_in_run(x + first * size, least(end - first, block), best, False, rule)
    last += place_in_run(x + last * size, least(end - last, block), best, True, rule)
    index = _unravel(reduced, reduced.rank, first)[1]
    place, index = _compare_ties(how, reduced, x, best, first, last, index, TIES, rule)
    if place < last:
        runs = ceildiv(end - begin, _entry(reduced, reduced.rank - 1, AXIS_SIZE))
        limit = least(RUN_ELEMENTS * runs, end - begin)
        met, found = _first_of_key(how, preferred, x, best, limit, rule, begin, end)
        if found:
            return best, met, True
        more = (end - begin) // TIE_ELEMENTS
        place, index = _compare_ties(how, reduced, x, best, place, last, index, more, rule)
    return best, how[BASE] + index, place >= last


@helper
def _greatest_apart(address, step, count, rule):
    """The greatest key of elements that lie `step` bytes apart, and its place among them."""
    key = load_key(address, 0, rule)
    place = 0
    for i in range(1, count):
        other = load_key(address, i * step, rule)
        if other > key:
            key = other
            place = i
    return np.int64(key), place


@helper
def _strided_row(how, reduced, x, packed, rule, begin, end):
    """(key, index) of positions begin to end of one group; blocks of long runs are packed: 0.12 to 1 of the time."""
    size, ceiling = item_size(rule.flip), how[CEILING]
    block = BLOCK_BYTES // size
    _, step, weight = _axis(reduced, reduced.rank - 1)
    last, ordered = how[LAST] != 0, how[ORDERED] != 0
    best = np.int64(0)
    index = 0
    none = True
    position = begin
    while position < end:
        offset, base, count = _run_at(reduced, position, least(end, position + block))
        base += how[BASE]
        address = x + offset
        position += count
        packs = count >= LEAST_PACKED
        place = 0
        if packs:
            pack(packed, address, step, count, rule.flip)
            key = np.int64(run_key(packed, count, rule))
        else:
            key, place = _greatest_apart(address, step, count, rule)
        if none or key > best or (key == best and not ordered):
            if packs:
                place = place_in_run(packed, count, key, False, rule)
            key_index = base + place * weight
            if none or key > best or (key_index < index) != last:
                none = False
                best = key
                index = key_index
        if best == ceiling and ordered:
            break
    return best, index


@helper
def _search_apart(best, where, address, offsets, rows, columns, step, ahead, fresh, rule):
    """As search_rows_apart, in a function of its own."""
    prefer_wide_vectors()
    search_rows_apart(best, where, address, offsets, rows, columns, step, ahead, fresh, rule)


@helper
def _better(key, index, keys, winners, c, last):
    best = keys[c]
    return (key > best) | ((key == best) & ((index < winners[c]) != last))


@helper
def _tile_of(item, whole, tiles, tile):
    """Part, position in the outer axes, and first column of an item."""
    part, rest = split(item, whole)
    outer, number = split(rest, tiles)
    return part, outer, number * tile


@helper
def _list_rows(offsets, indices, how, reduced, position, stop):
    """List rows from `position` to `stop`, or, where they are not visited in the order of preference, to a run's end.

    How many they are. The last one is listed several times, up to a multiple of SEARCHED_ROWS.
    """
    n, step, weight = _axis(reduced, reduced.rank - 1)
    rows = 0
    while position < stop and (how[ORDERED] != 0 or rows == 0):
        offset, index, count = _run_at(reduced, position, stop)
        index += how[BASE]
        for r in range(count):
            offsets[rows + r] = offset + r * step
            indices[rows + r] = index + r * weight
        rows += count
        position += count
        if position % n == 0:
            offsets[rows - 1] -= how[OVERLAP]
            indices[rows - 1] -= how[OVERLAP_INDEX]
    for r in range(rows, rows + -rows % SEARCHED_ROWS):
        offsets[r] = offsets[rows - 1]
        indices[r] = indices[rows - 1]
    return rows


@inlined
def _row_number(where, c, rule):
    """The number of the row in which search_rows found the best key of column `c`, and whether it found one."""
    size = item_size(rule.flip)
    none = 0xFF if size == 1 else -1
    number = np.int64(load_integer(rule.flip, where + c * size)) & none
    return number, number != none


@inlined
def _first_winners(keys, winners, best, where, indices, columns, rule):
    """Keys and indices of what search_rows found in the first block."""
    for c in range(columns):
        number, _ = _row_number(where, c, rule)
        keys[c] = load_integer(rule.flip, best + c * item_size(rule.flip))
        winners[c] = indices[number]


@inlined
def _later_winners(keys, winners, best, where, indices, columns, ordered, last, rule):
    """What search_rows found in a later block takes the place of what is not as good."""
    size = item_size(rule.flip)
    word = 8 // size
    for c in range(0, columns, word):
        if load_integer(np.int64(0), where + c * size) == -1:
            continue  # nothing better in this block
        for d in range(c, least(c + word, columns)):
            number, changed = _row_number(where, d, rule)
            key = np.int64(load_integer(rule.flip, best + d * size))
            index = indices[number if changed else 0]
            if not ordered:
                changed = _better(key, index, keys, winners, d, last)
            keys[d] = key if changed else keys[d]
            winners[d] = index if changed else winners[d]


@helper
def _join_rows(keys, winners, beside, columns, last):
    """Join the winners of the rows that were taken as one, along the axes `beside`, to those of the first."""
    weight = _entry(beside, beside.rank - 1, AXIS_OTHER_STRIDE)
    rows = _volume(beside)
    row = 1
    while row < rows:
        _, further, count = _run_at(beside, row, rows)
        for c in range(row * columns, (row + count) * columns, columns):
            for d in range(columns):
                key, index = keys[c + d], winners[c + d] + further
                better = _better(key, index, keys, winners, d, last)
                keys[d] = key if better else keys[d]
                winners[d] = index if better else winners[d]
            further += weight
        row += count


@helper
def _index(best, index, blanks, rule):
    """The index of a group's greatest element; 0 in a group of nothing but NaN, where there are `blanks`."""
    return 0 if blanks and best == rule.nan_key else index


def short_rows(width, is_float, one_hot):
    """Chunk of groups that are each one contiguous run of at most SHORT_BYTES.

    No bookkeeping, which would take longer than the row.

    Here and in the next two, `one_hot` stores marks, and what is 0 beside them; else indices are stored, or pairs.
    """
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        how, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(how, RULE, lane, float_lane)
        as_pairs = how[WIDTH] == PAIR_BYTES
        if as_pairs:
            out = partial
        _, step, out_step = _axis(kept, kept.rank - 1)
        n, _, weight = _axis(reduced, 0)
        base, late, width = how[BASE], how[LATE] != 0, how[WIDTH]
        blanks, mark = how[BLANKS] != 0, how[MARK]
        if one_hot:
            mark_step = _entry(marks, 0, AXIS_STRIDE)
            zero_count, zero_step, _ = _axis(zeros, 0) if zeros.rank > 0 else (0, 0, 0)
            one_run = how[STORED] == BY_GROUPS and zero_count == n
        size = item_size(rule.flip)
        narrow = n <= VECTOR_BYTES // size
        # Rows further on, by their own bytes: by their step, those with gaps take up to twice as long.
        ahead = step * most(bytes_ahead() // (n * size), 1)
        item = begin
        while item < end:
            offset, out_offset, count = _run_at(kept, item, end)
            address, out_address = x + offset, out + out_offset
            item += count
            # A loop for each case: of so little that the processor overlaps more rows (0.6 to 0.9 of the time).
            if one_hot and narrow and one_run:
                for _ in range(count):
                    best, place = greatest_place(address, n, late, rule)
                    index = _index(best, base + place * weight, blanks, rule)
                    store_one_hot(out_address, n, index, mark, rule.flip)
                    address += step
                    out_address += out_step
            elif one_hot:
                for _ in range(count):
                    if narrow:
                        best, place = greatest_place(address, n, late, rule)
                    else:
                        best, place = greatest_place_of_many(address, n, ahead, late, rule)
                    if zero_count > 0:
                        zero_run(out_address, zero_count, zero_step, width, False)
                    index = _index(best, base + place * weight, blanks, rule)
                    store_element(out_address + index * mark_step, mark, width)
                    address += step
                    out_address += out_step
            elif as_pairs:
                for _ in range(count):
                    if narrow:
                        best, place = greatest_place(address, n, late, rule)
                    else:
                        best, place = greatest_place_of_many(address, n, ahead, late, rule)
                    _store_pair(out_address, best, base + place * weight)
                    address += step
                    out_address += out_step
            elif narrow:
                for _ in range(count):
                    best, place = greatest_place(address, n, late, rule)
                    index = _index(best, base + place * weight, blanks, rule)
                    store_element(out_address, index, width)
                    address += step
                    out_address += out_step
            else:
                for _ in range(count):
                    best, place = greatest_place_of_many(address, n, ahead, late, rule)
                    index = _index(best, base + place * weight, blanks, rule)
                    store_element(out_address, index, width)
                    address += step
                    out_address += out_step

    return chunk


def rows(width, is_float, one_hot):
    """Chunk with the innermost axis reduced; an item is a part of a group."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        how, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(how, RULE, lane, float_lane)
        pairs = integers(partial)
        if how[WIDTH] == PAIR_BYTES:
            out = partial
        parts, width, mark = how[PARTS], how[WIDTH], how[MARK]
        contiguous, dense = how[CONTIGUOUS] != 0, how[PREFERRED_RANK] != 0
        preferred, _ = _more_tables(walk)
        blanks, past = how[BLANKS] != 0, how[PAST] != 0
        volume = _volume(zeros)
        total = _volume(reduced)
        share = ceildiv(total, parts)
        groups = _volume(kept)
        packed = 0 if contiguous else allocate(BLOCK_BYTES)
        for item in range(begin, end):
            part, group = split(item, groups)
            first = part * share
            offset, out_offset = _unravel(kept, kept.rank, group)
            stop = least(first + share, total)
            best, index, found = np.int64(0), 0, False
            if dense:
                best, index, found = _dense_row(
                    how, reduced, preferred, x + offset, rule, first, stop
                )
            if contiguous and not found:
                best, index = _row(how, reduced, x + offset, rule, first, stop)
            elif not found:
                best, index = _strided_row(how, reduced, x + offset, packed, rule, first, stop)
            target = out + out_offset
            if one_hot and zeros.rank > 0 and how[STORED] == ZEROS_FIRST:
                begin_zero, end_zero = volume * part // parts, volume * (part + 1) // parts
                _zero(zeros, target, width, past, begin_zero, end_zero)
            if parts > 1:
                pairs[2 * item] = best
                pairs[2 * item + 1] = index
            elif width == PAIR_BYTES:
                _store_pair(target, best, index)
            else:
                index = _index(best, index, blanks, rule)
                if not one_hot:
                    store_element(target, index, width)
                elif how[STORED] == BY_GROUPS:
                    one_hot_run(target, volume, index, mark, past, rule.flip)
                else:
                    _store_place(target, index, width, mark, marks)
        if one_hot and past:
            drain_stores()
        if not contiguous:
            release(packed)

    return chunk


@helper
def _list_places(places, keys, winners, columns, blanks, rule):
    """The indices of columns, in the elements' own width."""
    for c in range(columns):
        index = _index(keys[c], winners[c], blanks, rule)
        store_integer(rule.flip, places + c * item_size(rule.flip), index)


@helper
def _store_marked(zeros, out, places, columns, rows, mark, past, flip):
    """Store all elements of a tile's groups, of which `rows` rows adjoin."""
    size = item_size(flip)
    lanes = VECTOR_BYTES // size
    together = least(rows, ceildiv(MARKED_VECTORS * lanes, columns))
    period = together * columns
    for c in range(columns, period + lanes):  # see mark_run
        place = load_integer(flip, places + (c - columns) * size)
        store_integer(flip, places + c * size, np.int64(place) - 1)
    _, step, weight = _axis(zeros, zeros.rank - 1)
    position = 0
    volume = _volume(zeros)
    while position < volume:
        offset, index, count = _run_at(zeros, position, volume)
        position += count
        for _ in range(count):
            mark_run(
                out + offset, rows * columns, places, period, together, index, mark, past, flip
            )
            offset += step
            index += weight


def columns(width, is_float, one_hot):
    """Chunk with the innermost axis kept; an item is a part of a tile of groups.

    Down the rows outside, compare and select along the columns inside.

    Best keys and row numbers stand in the keys' own width, so nothing is widened; row numbers therefore
    count within a block of rows, after which those that changed go to `winners` (key, index). Rows of few columns that
    adjoin in memory are taken as one row of several times the columns, merged at the end.
    """
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, partial, begin, end):
        prefer_wide_vectors()
        how, kept, reduced, marks, zeros = _tables(walk)
        rule = rule_of(how, RULE, lane, float_lane)
        pairs = integers(partial)
        size = item_size(rule.flip)
        tile, parts, width, mark = how[TILE], how[PARTS], how[WIDTH], how[MARK]
        last, ordered, blanks = how[LAST] != 0, how[ORDERED] != 0, how[BLANKS] != 0
        contiguous = how[CONTIGUOUS] != 0
        _, beside_axes = _more_tables(walk)
        beside = _volume(beside_axes)
        block = BYTE_ROWS if size == 1 else BLOCK_ROWS
        line, table = aligned(tile * size), 8 * (block + SEARCHED_ROWS + ROWS_AHEAD)
        best_at = allocate(3 * line + 2 * table + 16 * tile + MORE_PLACES)
        where_at = best_at + line
        offsets_at = where_at + line
        offsets, indices = integers(offsets_at), integers(offsets_at + table)
        # Of each column the best key so far, and its index.
        keys = integers(offsets_at + 2 * table)
        winners = integers(offsets_at + 2 * table + 8 * tile)
        places = offsets_at + 2 * table + 16 * tile  # the indices, for rows of marks
        kept_inner = kept.rank - 1
        across, step, out_step = _axis(kept, kept_inner)
        tiles = ceildiv(across, tile)
        groups = _volume(kept)
        whole = groups // across * tiles
        _, row_step, weight = _axis(reduced, reduced.rank - 1)
        total = _volume(reduced)
        stored, past = how[STORED], how[PAST] != 0
        volume = _volume(zeros)
        share = ceildiv(total, parts)
        # Whether the indices of a block that has all rows can be stored as they are found.
        placed = parts == 1 and beside == 1 and reduced.rank == 1
        placed = placed and (stored == BY_ROWS if one_hot else out_step == width)
        further_apart = apart_ahead(step, size, total) if how[UNCACHED] != 0 else 0
        listed = -1  # the first position that `offsets` tells
        rows = top_row = 0
        for item in range(begin, end):
            part, outer, column = _tile_of(item, whole, tiles, tile)
            columns = least(tile, across - column)
            wide = columns * beside
            singly = how[UNCACHED] != 0 and one_by_one(row_step, wide * size)
            ahead = rows_ahead(wide * size, 1 if singly else SEARCHED_ROWS)
            offset, out_offset = _unravel(kept, kept_inner, outer)
            start = x + offset + column * step
            target = out + out_offset + column * out_step
            _, next_outer, next_column = _tile_of(least(item + 1, end - 1), whole, tiles, tile)
            next_start = x + _unravel(kept, kept_inner, next_outer)[0] + next_column * step
            position = part * share
            stop = least(position + share, total)
            if one_hot and zeros.rank > 0 and stored == ZEROS_FIRST:
                for run in range(volume * part // parts, volume * (part + 1) // parts):
                    zero_offset, _ = _unravel(zeros, zeros.rank, run)
                    zero_run(target + zero_offset, columns * how[ZERO_ROWS], out_step, width, past)
            first = True
            while position < stop:
                if listed != position:  # else they are those of the tile before
                    # Of blocks after the first, the greatest number means that no row was better.
                    end_of_block = least(stop, position + block - (0 if first else SEARCHED_ROWS))
                    rows = _list_rows(offsets, indices, how, reduced, position, end_of_block)
                    listed = position
                position += rows
                fresh = first or not ordered
                if contiguous:
                    if first:
                        top_row = offsets[0]
                    goes_on, away = position < stop, next_start - start
                    folded = rows + -rows % SEARCHED_ROWS
                    list_ahead(
                        offsets, rows, folded, ahead, row_step, goes_on, first, top_row, away
                    )
                    search_rows(
                        best_at,
                        where_at,
                        start,
                        offsets_at,
                        folded,
                        ahead,
                        wide,
                        fresh,
                        singly,
                        rule,
                    )
                else:
                    _search_apart(
                        best_at,
                        where_at,
                        start,
                        offsets_at,
                        rows,
                        wide,
                        step,
                        further_apart,
                        fresh,
                        rule,
                    )
                if first and placed and position == stop:
                    to, to_width = (places, size) if one_hot else (target, width)
                    store_places(
                        to,
                        columns,
                        best_at,
                        where_at,
                        indices[0],
                        weight,
                        blanks,
                        to_width,
                        False,
                        rule,
                    )
                    continue
                if first:
                    _first_winners(keys, winners, best_at, where_at, indices, wide, rule)
                    first = False
                else:
                    _later_winners(
                        keys, winners, best_at, where_at, indices, wide, ordered, last, rule
                    )
            if beside > 1:
                _join_rows(keys, winners, beside_axes, columns, last)
            if one_hot and stored == BY_ROWS:
                if not first:
                    _list_places(places, keys, winners, columns, blanks, rule)
                _store_marked(zeros, target, places, columns, how[ZERO_ROWS], mark, past, rule.flip)
            elif first:
                continue  # stored already
            elif parts > 1:
                place = 2 * (part * groups + outer * across + column)
                for c in range(columns):
                    pairs[place + 2 * c] = keys[c]
                    pairs[place + 2 * c + 1] = winners[c]
            else:
                for c in range(columns):
                    address = target + c * out_step
                    index = _index(keys[c], winners[c], blanks, rule)
                    if not one_hot:
                        store_element(address, index, width)
                    elif stored == BY_GROUPS:
                        one_hot_run(address, volume, index, mark, past, rule.flip)
                    else:
                        _store_place(address, index, width, mark, marks)
        if one_hot and past:
            drain_stores()
        release(best_at)

    return chunk


def planes(width, is_float, one_hot):
    """Chunk with the innermost axis kept, of small planes; an item is one, or a piece of a long one."""
    lane, float_lane = lane_types(width, is_float)

    @entry
    def chunk(walk, x, out, _partial, begin, end):
        prefer_wide_vectors()
        how, kept, reduced, marks, _zeros = _tables(walk)
        rule = rule_of(how, RULE, lane, float_lane)
        size, width, blanks = item_size(rule.flip), how[WIDTH], how[BLANKS] != 0
        past = how[PAST] != 0
        inner = kept.rank - 1
        columns = _entry(kept, inner, AXIS_SIZE)
        outer = Axes(kept.entries, inner)
        in_row, step, next_out = _axis(kept, inner - 1)
        n, row_step, weight = _axis(reduced, 0)
        row_bytes = columns * size
        ahead = planes_ahead(n, row_bytes) * step
        one_run = next_out == columns * width
        together = planes_together(columns, how[LAST_COLUMNS])
        line = aligned(together * row_bytes + VECTOR_BYTES)
        best = allocate(2 * line)
        where = best + line
        item = begin
        while item < end:
            offset, out_offset, count = _run_at(outer, item, least(item + together, end))
            item += count
            some = columns_before(item, in_row, columns, how[LAST_COLUMNS])
            start, target = x + offset, out + out_offset
            if one_hot:
                out_row_step = _entry(marks, 0, AXIS_STRIDE)
                mark_planes(
                    target,
                    next_out,
                    out_row_step,
                    weight < 0,
                    blanks,
                    how[MARK],
                    start,
                    count,
                    step,
                    n,
                    row_step,
                    some,
                    ahead,
                    rule,
                )
            else:
                search_planes(best, where, start, count, step, n, row_step, some, ahead, rule)
                stored = count * some if one_run else some
                for first in range(0, count * some, stored):
                    at = first * size
                    store_places(
                        target,
                        stored,
                        best + at,
                        where + at,
                        how[BASE],
                        weight,
                        blanks,
                        width,
                        past,
                        rule,
                    )
                    target += next_out
        if past:
            drain_stores()
        release(best)

    return chunk


def marked(width):
    """Chunk that stores all elements of groups, by rows of columns, whose places were found before; an item is a tile.

    At `places` there is one for each group, in the elements' own width; the kept axes' input stride is that of these.
    """
    flip, _ = lane_types(width, False)

    @entry
    def chunk(walk, places, out, _partial, begin, end):
        prefer_wide_vectors()
        how, kept, _reduced, _marks, zeros = _tables(walk)
        size, tile, past = item_size(flip), how[TILE], how[PAST] != 0
        across = _entry(kept, kept.rank - 1, AXIS_SIZE)
        tiles = ceildiv(across, tile)
        some = allocate(aligned(tile * size) + MORE_PLACES)
        for item in range(begin, end):
            outer, number = split(item, tiles)
            columns = least(tile, across - number * tile)
            offset, out_offset = _unravel(kept, kept.rank - 1, outer)
            column = number * tile * size
            for c in range(columns):
                place = load_integer(flip, places + offset + column + c * size)
                store_integer(flip, some + c * size, place)
            target = out + out_offset + column
            _store_marked(zeros, target, some, columns, how[ZERO_ROWS], how[MARK], past, flip)
        if past:
            drain_stores()
        release(some)

    return chunk


@entry
def combine(walk, _x, out, partial, begin, end):
    """Chunk that finds the best part of each group; an item is a group."""
    how, kept, _reduced, marks, _zeros = _tables(walk)
    pairs, groups = integers(partial), _volume(kept)
    parts, width, mark, last = how[PARTS], how[WIDTH], how[MARK], how[LAST] != 0
    blanks, blank, weight = how[BLANKS] != 0, how[RULE + 1], how[PART_WEIGHT]
    step = _entry(kept, kept.rank - 1, AXIS_OTHER_STRIDE)
    item = begin
    while item < end:
        _, offset, count = _run_at(kept, item, end)
        target = out + offset
        for group in range(item, item + count):
            best, index = pairs[2 * group], pairs[2 * group + 1]
            for p in range(1, parts):
                place = 2 * (p * groups + group)
                key, other = pairs[place], pairs[place + 1] + p * weight
                if key > best or (key == best and (other < index) != last):
                    best, index = key, other
            if blanks and best == blank:
                index = 0
            _store_place(target, index, width, mark, marks)
            target += step
        item += count


@entry
def zero(walk, _x, out, _partial, begin, end):
    """Chunk that sets elements to 0, by position.

    The walk: ZERO_SETTINGS settings, then a table as `zeros`.
    """
    how = integers(walk)
    table = Axes(integers(walk + 8 * ZERO_SETTINGS), how[ZERO_RANK])
    width, past = how[ZERO_WIDTH], how[ZERO_PAST] != 0
    _zero(table, out, width, past, begin, end)
    if past:
        drain_stores()
