"""OpenVINO on the CPU, the input shared, float32 kept as float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino
from openvino import properties

from benchmarks.cells import Array, Cell
from benchmarks.implementations import Unsupported
from benchmarks.onnx_models import model


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    x = np.ascontiguousarray(x)  # it takes nothing else, so its copy is not counted
    core = openvino.Core()
    settings = {
        properties.inference_num_threads(): threads,
        properties.hint.performance_mode(): properties.hint.PerformanceMode.LATENCY,
        properties.hint.execution_mode(): properties.hint.ExecutionMode.ACCURACY,
    }
    try:
        read = core.read_model(model(cell, x).SerializeToString())
        request = core.compile_model(read, "CPU", settings).create_infer_request()
        request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
    except RuntimeError as error:
        raise Unsupported(str(error).splitlines()[0]) from error
    count = len(request.model_outputs)

    def run(_alive: Array = x) -> tuple[Array, ...]:  # the tensor does not keep its memory
        request.start_async()
        request.wait()
        return tuple(request.get_output_tensor(i).data for i in range(count))

    return run
