"""What a call is refused for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specops import ValidationError, Violation


def refused(call: Callable[[], Any]) -> Violation:
    """The one violation that a call is refused for."""
    with pytest.raises(ValidationError) as caught:
        call()
    (violation,) = caught.value.violations
    assert violation.found in str(caught.value) and violation.allowed in str(caught.value)
    return violation
