# mypy: allow-untyped-defs, no-check-untyped-defs
"""Compiled functions that call a kernel's chunk by its address, here or on several threads.

They are compiled once for all kernels. A chunk takes four addresses (its walk, the input, the output, and one more) and
the items to work on, begin to end.

Threads that help lie in wait in `serve`, each with a mailbox on a board. A call leaves the address of its job in
mailboxes that are free, works itself, and takes back what nobody has begun: it waits for no thread that does not run,
as where other processes keep the cores busy (0.02 of the time of OpenMP there).
"""

from __future__ import annotations

from numba import types

from atomics import acquire, add, give_way, load, relax, replace, store, ticks, unlock, words
from call_chunk import LAUNCH, call, fails
from compiled import helper, launcher, starter

PARALLEL = types.int64(*LAUNCH.args, types.int64, types.int64)  # of parallel
SERVE = types.void(types.int64)  # of serve

WORD = 8  # bytes
LINE = 16  # words between what different threads write: two cache lines, which are fetched together

# A board: the functions that wait for a lock, that let go of one, and that let others have the core (0 where the system
# has none); when the last job ended, in ticks; from LINE on a row for each worker.
ACQUIRE = 0
RELEASE = 1
GIVE_WAY = 2
LAST = 3
# A row: a mailbox; the lock for which the worker waits when it sleeps, and that with which it tells that it is done;
# its number, from 1 on; how often it looks for another job before it sleeps.
BELL = 1
DONE = 2
NUMBER = 3
PATIENCE = 4
# A mailbox: the address of a job, 0 if there is none, plus what becomes of it.
FREE = 0  # the worker will see it
ASLEEP = 1  # the worker sleeps
BEGUN = 2
AWAITED = 3  # begun, and the caller sleeps until it is done

# A job: the arguments of `serial` up to `other`; then these, and a counter for each share.
ITEMS = 5
SHARES = 6
BOARD = 7
WORKERS = 8
FAILED = 9
LONG = 10  # 1 if sleepers are worth waking
PIECES = 8  # of a share: a thread that is late, or is stopped, keeps at most one from the others

WAKES = 2  # sleepers that each thread wakes when it has found work
# In ticks: what a job takes for which that is done, as it takes 10 us; how long ago the last job ended, at most, where
# it is done for any, as workers that are awake will be so for the next. It is for jobs of few items, too, of which no
# small part tells how long they take.
WORTH = 1 << 17
RECENT = 1 << 20
# Of a caller's first piece this part tells how long a job takes, or the rest of it, where the part takes fewer ticks.
SAMPLE = 8
SURE = 1 << 13
# Looks, some 25 ns each. Whoever waits by looking keeps a core busy that the thread it waits for may need: beside busy
# processes calls of 0.05 to 0.5 ms took 1 to 10 ms where workers gave no way. Whoever sleeps may wake up on the core of
# the thread that woke it, and both stay there for a while: calls of more than 0.5 ms took up to 3 times as long where
# callers looked 1000 times.
SPINS = 20000  # before a worker sleeps until there is a job
FEW_SPINS = 1000  # the same of one that has no core of its own, or had nothing to do
CALLER_SPINS = 10000  # at most, before a caller sleeps until a worker is done
TURN = 32  # from one time that a worker gives way to the next; giving way counts as so many


@launcher
def serial(chunk, walk, x, out, other, begin, end):
    """Items begin to end, in this thread."""
    call(chunk, walk, x, out, other, begin, end)


@helper
def _wake(job):
    """Ring for some of those that sleep while there is a job in their mailbox."""
    board = load(job + WORD * BOARD)
    woken = 0
    for worker in range(1, load(job + WORD * WORKERS) + 1):
        row = board + WORD * LINE * worker
        if load(row) == job + ASLEEP and replace(row, job + ASLEEP, job):
            unlock(load(board + WORD * RELEASE), load(row + WORD * BELL))
            woken += 1
            if woken == WAKES:
                return


@helper
def _work(job, begin, end):
    """Items begin to end; whether the chunk raised is kept for the caller."""
    if begin < end:
        chunk, walk, x = load(job), load(job + WORD), load(job + 2 * WORD)
        out, other = load(job + 3 * WORD), load(job + 4 * WORD)
        if fails(chunk, walk, x, out, other, begin, end) != 0:
            store(job + WORD * FAILED, 1)


@helper
def _sample(job, begin, end, least):
    """Items begin to end.

    Sleepers are woken where these take so many ticks at least, and all items seem to take long enough.
    """
    start = ticks()
    _work(job, begin, end)
    took = ticks() - start
    long = float(took) * load(job + WORD * ITEMS) >= WORTH * (end - begin)
    if begin < end and long and took >= least and load(job + WORD * LONG) == 0:
        store(job + WORD * LONG, 1)
        _wake(job)


@helper
def _take_part(job, own, samples):
    """Work until no piece is left: those of one share first, which adjoin, then those of others; their number."""
    shares, items = load(job + WORD * SHARES), load(job + WORD * ITEMS)
    pieces = PIECES * shares
    done = 0
    for number in range(own, own + shares):
        share = number % shares
        while True:
            taken = add(job + WORD * LINE * (share + 1), 1)
            if taken >= PIECES:
                break
            piece = share * PIECES + taken
            begin, end = items * piece // pieces, items * (piece + 1) // pieces
            if done == 0 and samples:
                middle = begin + (end - begin + SAMPLE - 1) // SAMPLE
                _sample(job, begin, middle, SURE)
                _sample(job, middle, end, 0)
            else:
                if done == 0 and load(job + WORD * LONG) != 0:
                    _wake(job)
                _work(job, begin, end)
            done += 1
    return done


@starter
def serve(row):
    """Take part in the jobs that are left for a worker, for ever."""
    worker = load(row + WORD * NUMBER)
    board = row - WORD * LINE * worker
    patience = load(row + WORD * PATIENCE)
    left = patience
    while True:
        job = load(row)
        if job > AWAITED and job % 4 == FREE and replace(row, job, job + BEGUN):
            # The same share each time: the core's cache may hold some of it.
            done = _take_part(job, worker, False)
            if not replace(row, job + BEGUN, FREE):
                # The caller frees the mailbox when it wakes: nobody else is to wait for this lock before.
                unlock(load(board + WORD * RELEASE), load(row + WORD * DONE))
            left = patience if done > 0 else min(patience, FEW_SPINS)
        elif left <= 0 and replace(row, FREE, ASLEEP):
            acquire(load(board + WORD * ACQUIRE), load(row + WORD * BELL))
            left = min(patience, FEW_SPINS)
        else:
            left -= 1
            relax()
            if left % TURN == 0:
                give_way(load(board + WORD * GIVE_WAY))
                left -= TURN


@helper
def _take_back(job, row):
    """Empty a mailbox that has a job; if it has begun, when it is done."""
    left = min(CALLER_SPINS, load(row + WORD * PATIENCE))
    while True:
        state = load(row) - job
        if FREE <= state <= ASLEEP:
            if replace(row, job + state, state):
                return
        elif state != BEGUN:
            return
        elif left > 0:
            left -= 1
            relax()
        elif replace(row, job + BEGUN, job + AWAITED):
            board = load(job + WORD * BOARD)
            acquire(load(board + WORD * ACQUIRE), load(row + WORD * DONE))
            store(row, FREE)
            return


@launcher
def parallel(chunk, walk, x, out, other, items, shares, board, workers):
    """All items, in so many shares (nearly) alike, with the help of workers that have no job; 1 if a chunk raised.

    All that a chunk can raise is that there is no memory for a thread's scratch.
    """
    job = words(LINE * (shares + 1))
    store(job, chunk)
    store(job + WORD, walk)
    store(job + 2 * WORD, x)
    store(job + 3 * WORD, out)
    store(job + 4 * WORD, other)
    store(job + WORD * ITEMS, items)
    store(job + WORD * SHARES, shares)
    store(job + WORD * BOARD, board)
    store(job + WORD * WORKERS, workers)
    recent = ticks() - load(board + WORD * LAST) < RECENT
    wakes = recent or items < PIECES * shares
    store(job + WORD * LONG, int(wakes))
    helpers = sleepers = 0
    for worker in range(1, workers + 1):
        row = board + WORD * LINE * worker
        state = load(row)
        if state <= ASLEEP and helpers < shares - 1 and replace(row, state, job + state):
            helpers += 1
            sleepers += state
    _take_part(job, 0, sleepers > 0 and not wakes)
    store(board + WORD * LAST, ticks())
    for worker in range(1, workers + 1):
        _take_back(job, board + WORD * LINE * worker)
    return load(job + WORD * FAILED)
