"""Code run in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

SMALL = """
import sys, warnings
import numpy as np
import specops
x = np.array([[1, 9, 3], [4, 5, 6]], np.float32)
print(specops.argmax(x), specops.argmax(x, 0).tolist())
"""
SMALL_RESULT = "1 [1, 0, 1]\n"
KERNELS = """
import gc
from numba.core.dispatcher import Dispatcher
kernels = [k for k in gc.get_objects() if isinstance(k, Dispatcher)]
kernels = [k for k in kernels if k.py_func.__module__.startswith("specops.")]
assert len(kernels) > 3
"""


def python(
    code: str, *arguments: str, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a new process."""
    command = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, **environment},
    )


def done(result: subprocess.CompletedProcess[str], stdout: str = "done\n") -> None:
    assert (result.returncode, result.stdout) == (0, stdout), result.stderr
