"""All interleavings of callers and workers at the board of `specops.kernels.chunks`, in a model of it.

No job may be read after its caller has returned, nor a caller return before its pieces are done; no lock is released
twice or waited for by two; nobody waits for ever, and no worker sleeps on while its mailbox says that it looks.

One step of the model is one atomic access of a shared word or lock. A worker may fall asleep whenever it has no job.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

FREE, ASLEEP, BEGUN, AWAITED = range(4)
NOBODY = 0
Row = tuple[int, int]  # the caller whose job lies in the mailbox, and the state


class Thread(NamedTuple):
    """Where a caller or a worker is in its program, the worker that it is about, and the job that it takes part in."""

    at: str
    worker: int = 0
    caller: int = NOBODY
    job: int = 0  # its number
    woken: int = -1  # sleepers that it has woken for it; -1 before it has had a piece


class Job(NamedTuple):
    """The job of a caller, always at the same address."""

    number: int = 0
    lives: bool = False
    left: int = 0  # pieces that nobody has taken
    undone: int = 0


class Board(NamedTuple):
    """All that is shared, and all threads: the callers first."""

    rows: tuple[Row, ...]
    bells: tuple[bool, ...]  # whether they are held
    dones: tuple[bool, ...]
    jobs: tuple[Job, ...]
    threads: tuple[Thread, ...]


class Wrong(Exception):
    pass


def _with(of: tuple[Any, ...], place: int, value: object) -> tuple[Any, ...]:
    return (*of[:place], value, *of[place + 1 :])


class Model:
    """So many workers, and callers that make so many calls each, of so many pieces; each thread wakes `wakes`."""

    def __init__(self, workers: int, callers: int, calls: int, pieces: int, wakes: int) -> None:
        self.workers, self.callers = workers, callers
        self.calls, self.pieces, self.wakes = calls, pieces, wakes

    def begin(self) -> Board:
        closed = (True,) * self.workers
        threads = (Thread("call"),) * self.callers + (Thread("look"),) * self.workers
        rows = ((NOBODY, FREE),) * self.workers
        return Board(rows, closed, closed, (Job(),) * self.callers, threads)

    def states(self) -> int:
        """Look at all that can come; how many there are."""
        seen, new = {self.begin()}, [self.begin()]
        while new:
            board = new.pop()
            following = [after for i in range(len(board.threads)) for after in self.step(board, i)]
            if not following:
                self.check_end(board)
            for after in following:
                if after not in seen:
                    seen.add(after)
                    new.append(after)
        return len(seen)

    def check_end(self, board: Board) -> None:
        for thread in board.threads[: self.callers]:
            if thread.at != "over":
                raise Wrong(f"a caller waits for ever: {thread}")
        for row, bell, thread in zip(
            board.rows, board.bells, board.threads[self.callers :], strict=True
        ):
            if thread.at != "asleep" or row != (NOBODY, ASLEEP) or not bell:
                raise Wrong(f"a worker is lost: {thread}, {row}, bell held {bell}")

    def step(self, board: Board, number: int) -> Iterator[Board]:
        """What one thread may do next."""
        thread = board.threads[number]
        if thread.at in ("take", "wake", "ring", "finish"):
            step = self.take_part(board, number, thread)
        elif number < self.callers:
            step = self.call(board, number, thread)
        else:
            step = self.serve(board, number, thread)
        for after, then in step:
            yield after._replace(threads=_with(board.threads, number, then))

    def take_part(self, board: Board, number: int, at: Thread) -> Iterator[tuple[Board, Thread]]:
        job, place = board.jobs[at.caller - 1], at.caller - 1
        if not job.lives or job.number != at.job:
            raise Wrong(f"a job is read when it is gone: {at}")
        if at.at == "take":
            if job.left == 0:
                over = "back" if number < self.callers else "leave"
                yield board, at._replace(at=over, worker=0, woken=-1)
                return
            taken = board._replace(jobs=_with(board.jobs, place, job._replace(left=job.left - 1)))
            first = at.woken < 0
            yield (
                taken,
                at._replace(at="wake" if first else "finish", worker=0, woken=max(0, at.woken)),
            )
        elif at.at == "wake":
            if at.worker == self.workers or at.woken == self.wakes:
                yield board, at._replace(at="finish")
            elif board.rows[at.worker] == (at.caller, ASLEEP):
                row = _with(board.rows, at.worker, (at.caller, FREE))
                yield board._replace(rows=row), at._replace(at="ring")
            else:
                yield board, at._replace(worker=at.worker + 1)
        elif at.at == "ring":
            if not board.bells[at.worker]:
                raise Wrong(f"a bell rings twice: {at}")
            rung = board._replace(bells=_with(board.bells, at.worker, False))
            yield rung, at._replace(at="wake", worker=at.worker + 1, woken=at.woken + 1)
        else:
            done = job._replace(undone=job.undone - 1)
            yield board._replace(jobs=_with(board.jobs, place, done)), at._replace(at="take")

    def call(self, board: Board, number: int, at: Thread) -> Iterator[tuple[Board, Thread]]:
        me, job = number + 1, board.jobs[number]
        if at.at == "call" and job.number < self.calls:
            new = Job(job.number + 1, True, self.pieces, self.pieces)
            posting = Thread("post", 0, me, new.number)
            yield board._replace(jobs=_with(board.jobs, number, new)), posting
        elif at.at == "call":
            yield board, Thread("over")
        elif at.at == "post":
            if at.worker == self.workers:
                yield board, at._replace(at="take", worker=0)
                return
            owner, state = board.rows[at.worker]
            rows = board.rows
            if owner == NOBODY:
                rows = _with(rows, at.worker, (me, state))
            yield board._replace(rows=rows), at._replace(worker=at.worker + 1)
        elif at.at == "back":
            if at.worker == self.workers:
                if job.undone:
                    raise Wrong("a caller returns before its job is done")
                gone = job._replace(lives=False)
                yield board._replace(jobs=_with(board.jobs, number, gone)), Thread("call")
                return
            owner, state = board.rows[at.worker]
            further = at._replace(worker=at.worker + 1)
            if owner != me:
                yield board, further
            elif state in (FREE, ASLEEP):
                yield board._replace(rows=_with(board.rows, at.worker, (NOBODY, state))), further
            else:  # after a while it sleeps
                row = _with(board.rows, at.worker, (me, AWAITED))
                yield board._replace(rows=row), at._replace(at="await")
        elif at.at == "await":
            waiting = [t for t in board.threads if t.at == "await" and t.worker == at.worker]
            if len(waiting) > 1:
                raise Wrong(f"two wait for one worker: {at}")
            if not board.dones[at.worker]:
                yield (
                    board._replace(dones=_with(board.dones, at.worker, True)),
                    at._replace(at="free"),
                )
        elif at.at == "free":
            row = _with(board.rows, at.worker, (NOBODY, FREE))
            yield board._replace(rows=row), at._replace(at="back", worker=at.worker + 1)

    def serve(self, board: Board, number: int, at: Thread) -> Iterator[tuple[Board, Thread]]:
        me = number - self.callers
        owner, state = board.rows[me]
        if at.at == "look":
            if owner != NOBODY and state == FREE:
                job = board.jobs[owner - 1].number
                begun = board._replace(rows=_with(board.rows, me, (owner, BEGUN)))
                yield begun, Thread("take", 0, owner, job)
            elif (owner, state) == (NOBODY, FREE):
                row = _with(board.rows, me, (NOBODY, ASLEEP))
                yield board._replace(rows=row), Thread("asleep")
        elif at.at == "asleep" and not board.bells[me]:
            yield board._replace(bells=_with(board.bells, me, True)), Thread("look")
        elif at.at == "leave":
            if state == BEGUN:
                yield board._replace(rows=_with(board.rows, me, (NOBODY, FREE))), Thread("look")
            else:
                yield board, at._replace(at="tell")
        elif at.at == "tell":
            if not board.dones[me]:
                raise Wrong("a worker tells twice that it is done")
            yield board._replace(dones=_with(board.dones, me, False)), Thread("look")


SIZES = [(1, 2, 2, 1, 2), (2, 1, 2, 2, 1), (2, 2, 1, 1, 1), (3, 1, 1, 2, 1), (1, 3, 1, 1, 1)]
LARGE = [(2, 2, 2, 1, 2), (2, 2, 2, 2, 1), (2, 2, 3, 1, 1), (3, 1, 2, 2, 1), (3, 2, 1, 1, 1)]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--large", action="store_true", help="larger models, too, which takes two minutes more"
    )


def run(options: argparse.Namespace) -> int:
    findings = 0
    for workers, callers, calls, pieces, wakes in SIZES + LARGE * options.large:
        what = f"workers {workers}, callers {callers} of {calls} calls, pieces {pieces}"
        try:
            print(
                f"{what}: {Model(workers, callers, calls, pieces, wakes).states()} states",
                flush=True,
            )
        except Wrong as error:
            findings += 1
            print(f"finding: {what}: {error}", flush=True)
    print(f"board: {findings} findings")
    return findings
