"""How the outputs of an item lie, as its states do."""

from __future__ import annotations

from typing import Any, NamedTuple

from compiled import helper
from pool_line import lane_runs
from pool_settings import PITCH


class Outputs(NamedTuple):
    """How many outputs are stored: planes, lanes that stand side by side, rows and columns."""

    planes: Any
    lanes: Any
    rows: Any
    columns: Any


class Layout(NamedTuple):
    """Lines one by one, all runs of one at once; or all lines at once, each of which is a run of n outputs.

    With the bytes from one line, and from one run, to the next: of states, outputs, and in the other array.
    """

    lines: Any
    line_states: Any
    line_out: Any
    line_other: Any
    runs: Any
    run_states: Any
    run_out: Any
    run_other: Any
    n: Any


@helper
def layout_of(tables, outputs, lines, adjoin):
    """See Layout; `adjoin`: the lanes of an output adjoin those of the next, in the line and in the output."""
    rows, columns, step = tables.rows, tables.columns, lines.line_step
    runs, n = lane_runs(tables.settings[PITCH], outputs.lanes, outputs.columns, adjoin)
    if runs == 1:
        out, other = rows.out_step, rows.other_step
        return Layout(1, 0, 0, 0, outputs.rows, step, out, other, n)
    return Layout(
        outputs.rows,
        step,
        rows.out_step,
        rows.other_step,
        runs,
        lines.step,
        columns.out_step,
        columns.other_step,
        n,
    )
