"""ONNX Runtime on the CPU, input and output bound beforehand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime as runtime

from benchmarks.cells import Array, Cell
from benchmarks.implementations import Unsupported
from benchmarks.onnx_models import inputs, model


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    given = inputs(cell, x)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(
            model(cell, x, given).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        shape = cell.output_shape(x)
        outputs = [np.empty(shape, cell.output_dtype())]
        if cell.operator == "max_pool_with_indices":
            outputs.append(np.empty(shape, np.int64))
        binding = session.io_binding()
        for name, array in given.items():
            binding.bind_ortvalue_input(name, runtime.OrtValue.ortvalue_from_numpy(array))
        for output, array in zip(session.get_outputs(), outputs, strict=True):
            binding.bind_output(output.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    except Exception as error:  # its exceptions have no common type of their own
        raise Unsupported(str(error).splitlines()[0]) from error

    def run() -> tuple[Array, ...]:
        session.run_with_iobinding(binding)
        return tuple(outputs)

    return run
