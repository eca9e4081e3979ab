"""The same results on processors that lack what this one has."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding
from processes import done, python


def test_a_processor_without_half_precision() -> None:
    """float16 is compared by its bits: right on a processor that is told to have no extensions."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from test_arg_reduce import check_case
for number in range(60):
    check_case("FLOAT16", number)
print("done")
"""
    done(python(code, str(Path(__file__).parent), NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""))


def test_a_processor_without_wide_vectors() -> None:
    """Exponentials are right where vectors cannot be permuted, and where multiplying and adding are not fused."""
    code = """
import ml_dtypes
import numpy as np
import specops
random = np.random.default_rng(1)
for dtype, least in ((np.float16, 6e-4), (ml_dtypes.bfloat16, 5e-3), (np.float32, 2e-6)):
    for shape, axis in (((40, 700), 1), ((300, 50), 0), ((70, 9), 1)):
        x = random.uniform(-9, 9, shape).astype(dtype)
        wide = x.astype(np.float64)
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        exact = powers / powers.sum(axis, keepdims=True)
        found = specops.softmax(x, axis=axis).astype(np.float64)
        # Of 16-bit types, subnormal results have fewer digits.
        assert (np.abs(found - exact) <= least * np.maximum(exact, 1e-4)).all()
        total = np.log(powers.sum(axis)) + wide.max(axis)
        found = specops.logsumexp(x, axis=axis).astype(np.float64)
        assert (np.abs(found - total) <= least * np.abs(total)).all()
print("done")
"""
    done(python(code, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""))


def test_sums_are_the_same_on_all_processors() -> None:
    """A Zen adds in other ways, which round as those of the others do, and takes rows one by one where input is large.

    Where elements cancel out, all that is left is what was rounded: any other order of additions shows.
    """
    code = """
import hashlib
import os
import ml_dtypes
import numpy as np
import specops
from specops import onnx
from specops.lowering import machine
machine.UNCACHED_BYTES = int(os.environ.get("UNCACHED_BYTES", machine.UNCACHED_BYTES))
random = np.random.default_rng(2)
x = random.standard_normal((37, 1003)).astype(np.float32)
half = np.ldexp(random.standard_normal((41, 41)), random.integers(0, 60, (41, 41)))
cancelling = random.permuted(np.concatenate((half, -half)), axis=0).astype(np.float32)
digest = hashlib.sha256()
for sums in (
    onnx.reduce_sum(x, axes=[1]),
    onnx.reduce_sum(x.astype(np.float16), axes=[1]),
    onnx.reduce_sum(x.astype(ml_dtypes.bfloat16)[:, 5:21], axes=[1]),
    specops.l1_norm(x, axis=0),
    specops.l2_norm(x, axis=1),
    specops.l2_norm(x.astype(np.float16), axis=0),
    onnx.reduce_sum(cancelling, axes=[0]),
    onnx.reduce_sum(np.ascontiguousarray(cancelling.T), axes=[1]),
    onnx.reduce_sum(np.ldexp(cancelling, -50).astype(np.float16), axes=[0]),
    onnx.reduce_sum(cancelling.astype(np.float64), axes=[0]),
):
    digest.update(sums.tobytes())
print(digest.hexdigest())
"""
    here = python(code)
    assert len(here.stdout) == 65, here.stderr
    done(python(code, UNCACHED_BYTES="0"), here.stdout)
    features = llvmlite.binding.get_host_cpu_features()
    processors = {"generic": ""}
    if features.get("avx2"):
        # With the features of this processor, and without those that it lacks.
        processors |= dict.fromkeys(("znver1", "znver5"), features.flatten())
    for name, has in processors.items():
        large = "0" if name == "znver5" else "33554432"
        there = python(code, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=has, UNCACHED_BYTES=large)
        done(there, here.stdout)
