"""Short runs of the proofs that go on for as long as they are told to: `python -m stress`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stress import children, mutants, specs


@pytest.mark.parametrize("part", range(4))
def test_specs(part: int, tmp_path: Path) -> None:
    """Damaged specs give diagnostics or sound Python."""
    seen = []
    for number in range(part * 25, (part + 1) * 25):
        outcome = specs.Case(0, number).run(tmp_path)
        assert outcome in specs.GOOD, f"python -m stress specs --seed 0 --case {number}\n{outcome}"
        seen.append(outcome)
    assert set(seen) == {*specs.GOOD}


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        ({"specops/x.py": "import os\n"}, "imports"),
        ({"specops/x.py": "x = eval('1')\n"}, "calls"),
        ({"specops/x.py": "while True:\n    pass\n"}, "kinds"),
    ],
)
def test_specs_would_notice(files: dict[str, str], finding: str) -> None:
    assert finding in specs.judge(files, specs.BASES[0], False)


def test_specs_would_notice_a_sentence_in_the_code() -> None:
    good = specs.BASES[0]
    before, _ = specs.known(good)
    path = "specops/directml/argmax.py"
    said = specs.judge({path: before[path] + "\nx = 1\n"}, good, True)
    assert said == f"a sentence changed the code of {path}"


def test_children_that_hang_or_die() -> None:
    """They are findings, and the cases behind them run."""

    def run(number: int) -> str:
        while number == 1:
            pass
        if number == 3:
            os._exit(3)
        return f"case {number}"

    found = dict(children.outcomes(run, 5, 1.0))
    assert [found[i] for i in (0, 2, 4)] == ["case 0", "case 2", "case 4"]
    assert "not ended" in found[1]
    assert "status" in found[3]


@pytest.mark.parametrize("label", ["directml/activation_softmax1", "plain/softmax"])
def test_mutants_of_a_validator(label: str) -> None:
    """Each damage makes a test fail."""
    assert mutants.validators(label, float("inf")) == 0
