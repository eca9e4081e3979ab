"""Examples beside each other: of the same inputs and attributes they expect the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from generator.diagnostics import Note, Report
from generator.model import Example, TensorData
from generator.source import Document
from generator.tensors import shape


def check_contradictions(examples: Sequence[Example], document: Document, report: Report) -> None:
    """An output of another data type or other sizes may have been asked for."""
    told: set[str] = set()
    for (i, one), (j, other) in itertools.combinations(enumerate(examples), 2):
        if other.id in told or not _same(one.given, other.given):
            continue
        for name in (n for n in one.expect if n in other.expect):
            if _contradict(one.expect[name], other.expect[name]):
                told.add(other.id)
                there = document.span(("examples", i, "expect", name, "data"))
                report.add(
                    "E228",
                    f"example `{other.id}` gives what `{one.id}` does, and expects another {name}",
                    document.span(("examples", j, "expect", name, "data")),
                    "differs",
                    notes=[Note(there, "expected here")],
                    help="correct one of them, or what is given",
                )


def _contradict(one: TensorData, other: TensorData) -> bool:
    alike = one.dtype == other.dtype and shape(one.data) == shape(other.data)
    return alike and not _same(one.data, other.data)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return bool(one == other)
