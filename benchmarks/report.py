"""The benchmark's table, summary and picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.implementations import NAMES
from benchmarks.measure import Row

LARGE_SECONDS = 1e-4  # cells that count in the mean: those that take longer
LARGE_BYTES = 1 << 24  # of input from which a share of the streaming limit is wanted
SHARE = 0.7  # wanted, of the streaming limit,
SHARES = {  # but of these
    "softmax": 0.5,
    "log_softmax": 0.5,
    "max_pool_with_indices": 0.5,
    "logsumexp": 0.5,
}
COLORS = {"onnxruntime": "#d55e00", "torch": "#cc79a7", "openvino": "#009e73", "numpy": "#0072b2"}

HEADER = f"{'cell':<66}{'specops':>10}{'best peer':>23}{'ratio':>8}{'of the limit':>14}"


def line(row: Row) -> str:
    """One row of the table."""
    peer = row.best_peer
    best = "no peer" if peer is None else f"{peer} {_time(row.seconds[peer])}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    note = f"  differs: {', '.join(row.differs)}" if row.differs else ""
    return f"{row.cell.name:<66}{_time(row.ours):>10}{best:>23}{ratio:>8}{row.share:>14.2f}{note}"


def summary(rows: Sequence[Row]) -> list[str]:
    """The figures that the README quotes, and the cells that miss them."""
    counted = [r for r in rows if r.ratio is not None and counts(r)]
    out = []
    if counted:
        behind = [r for r in counted if (r.ratio or 1) < 1]
        out.append(
            f"{len(counted)} cells above {LARGE_SECONDS * 1e6:.0f} us with a peer: "
            f"geometric mean of the ratios {_mean(counted):.1f}, "
            f"{len(behind)} behind the fastest peer"
        )
        for operator in dict.fromkeys(r.cell.operator for r in counted):
            some = [r for r in counted if r.cell.operator == operator]
            out.append(f"{_mean(some):8.1f}  {operator}, {len(some)} cells")
        out += [f"        {r.ratio:.2f}  {r.cell.name} ({r.best_peer})" for r in behind]
    large = [r for r in rows if r.cell.moved_bytes()[0] > LARGE_BYTES]
    if large:
        below = [r for r in large if r.share < SHARES.get(r.cell.operator, SHARE)]
        out.append(
            f"{len(large)} cells beyond {LARGE_BYTES >> 20} MiB: "
            f"{len(below)} below the wanted share of the streaming limit"
        )
        out += [f"    {r.share:.2f}  {r.cell.name}" for r in below]
    halves = [(a, b) for a, b in _halves(rows) if counts(a)]
    if halves:
        slower = [(a, b) for a, b in halves if a.ours > b.ours]
        out.append(f"float16 against float32: {len(slower)} of {len(halves)} cells slower")
        out += [f"    {b.ours / a.ours:.2f}  {a.cell.name}" for a, b in slower]
    return out


def _mean(rows: Sequence[Row]) -> float:
    """Geometric mean of the ratios."""
    return math.exp(sum(math.log(r.ratio or 1) for r in rows) / len(rows))


def counts(row: Row) -> bool:
    """Whether the cell takes long enough to be compared: below, calls are compared, not kernels."""
    peer = row.best_peer
    return max(row.ours, row.seconds[peer] if peer else 0) >= LARGE_SECONDS


def _halves(rows: Iterable[Row]) -> Iterable[tuple[Row, Row]]:
    """(float16, float32) of one cell."""
    names = {r.cell.name: r for r in rows}
    for row in rows:
        if row.cell.dtype == "float16":
            other = names.get(row.cell.name.replace("float16", "float32"))
            if other is not None:
                yield row, other


def picture(rows: Sequence[Row], path: Path) -> None:
    """The ratios as dots, a line for each operator and data type, coloured by the fastest peer."""
    import matplotlib as mpl  # noqa: PLC0415 (of the extra [bench]; the table does without)

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "specops"
    from matplotlib import pyplot  # noqa: PLC0415

    counted = [r for r in rows if r.ratio is not None and counts(r)]
    groups = list(dict.fromkeys((r.cell.operator, r.cell.dtype) for r in counted))[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 0.6 + 0.32 * len(groups)), layout="constrained")
    for peer in (name for name in NAMES if name in COLORS):
        some = [r for r in counted if r.best_peer == peer]
        axes.scatter(
            [r.ratio for r in some],
            [groups.index((r.cell.operator, r.cell.dtype)) for r in some],
            s=28,
            alpha=0.7,
            color=COLORS[peer],
            label=f"{peer} is the fastest peer",
            linewidths=0,
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    greatest = max((r.ratio or 1 for r in counted), default=1)
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if t <= greatest * 1.5]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(groups)), [" ".join(g).replace("_", " ") for g in groups])
    axes.set_xlabel("time of the fastest peer / time of specops, one dot for each layout")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
