"""Proofs that run for as long as they are told to: `python -m stress VERB`.

Each verb prints its findings, each with what repeats it alone, and one line of counts at its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests"))  # the oracle, and what is drawn at random
sys.path.insert(0, str(PROJECT / "generated" / "tests"))  # the tables of cases
