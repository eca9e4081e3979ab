"""One module for each implementation: `prepare(cell, x, threads)` gives what runs the cell and returns its outputs.

What is compiled, it compiles beforehand. It raises `Unsupported` where the implementation cannot compute the cell.
"""

from __future__ import annotations

NAMES = ("specops", "onnxruntime", "torch", "openvino", "numpy")
LIMIT = "limit"  # reads the input's bytes and writes the output's


class Unsupported(Exception):
    """The implementation has no such operator, or not for this data type."""
