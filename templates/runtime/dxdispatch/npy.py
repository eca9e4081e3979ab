"""NumPy's file format, as far as DxDispatch reads and writes it."""

from __future__ import annotations

import ast
import io
import math
from typing import BinaryIO

import numpy as np

from specops.dxdispatch.files import Refused
from specops.dxdispatch.values import ALLOWED_TYPES, BUFFER_TYPES

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 4096  # of a file of one array of numbers


def header(file: BinaryIO, size: int) -> tuple[np.dtype, int, int]:
    """Data type, number of elements and place of the data of a file of `size` bytes."""
    start = file.read(8)
    version = start[6:7]
    if start[:6] != _MAGIC or version not in (b"\x01", b"\x02", b"\x03"):
        raise Refused("no .npy file of version 1 to 3")
    width = 2 if version == b"\x01" else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        raise Refused(f"a header of {length} bytes; at most {_LONGEST_HEADER} are read")
    try:
        text = file.read(length).decode("utf-8" if version == b"\x03" else "latin-1")
        entries = ast.literal_eval(text.strip())
        descr, shape = entries["descr"], entries["shape"]
        dtype = np.dtype(descr) if isinstance(descr, str) else None
        sized = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        fortran = entries["fortran_order"]
    except Exception:  # a damaged header can be anything
        raise Refused("a damaged .npy header") from None
    if dtype is None or dtype not in BUFFER_TYPES.values():
        raise Refused(f"data type {descr}", f"DxDispatch reads {ALLOWED_TYPES}")
    if not sized or fortran not in (True, False):
        raise Refused("a damaged .npy header")
    if fortran and sum(n > 1 for n in shape) > 1:
        raise Refused("column-major order", "save it with numpy.ascontiguousarray(x)")
    count = math.prod(shape)
    begin = 8 + width + length
    if count * dtype.itemsize > size - begin:
        raise Refused(f"{size - begin} bytes of data, where the header says {count} x {dtype}")
    return dtype, count, begin


def prefix(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """All that stands in a file before the data."""
    file = io.BytesIO()
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()
