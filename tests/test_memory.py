"""No copy of an input or output is made, in whatever layout: calls on 8 MiB take hardly any memory."""

from __future__ import annotations

import importlib

import pytest
from draw import MEBI, check_resident_memory, check_traced_memory

import specops

# Each has `memory_calls()`: calls of a kernel on arrays of each layout.
MODULES = ["arg_reduce", "hardmax", "max_pool", "pool_grads", "reduce", "softmax", "sum_pool"]
LIMIT = 2 * MEBI  # for two threads, 1 MiB for each


@pytest.mark.parametrize("module", MODULES)
def test_no_copy_is_made(module: str) -> None:
    """Of the memory that NumPy and Python take."""
    with specops.num_threads(2):
        check_traced_memory(importlib.import_module(f"test_{module}").memory_calls(), LIMIT)


@pytest.mark.parametrize("module", MODULES)
def test_compiled_code_makes_no_copy(module: str) -> None:
    """Of what compiled code allocates by itself."""
    check_resident_memory(f"test_{module}", LIMIT)
