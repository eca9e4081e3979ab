"""OpenVINO on the CPU, the input shared, float32 kept as float32."""

from __future__ import annotations

from collections.abc import Callable

import openvino
from openvino import properties

from benchmarks.cells import Array, Cell
from benchmarks.implementations import Unsupported
from benchmarks.onnx_models import inputs, model


def prepare(cell: Cell, x: Array, threads: int) -> Callable[[], tuple[Array, ...]]:
    given = inputs(cell, x)
    core = openvino.Core()
    settings = {
        properties.inference_num_threads(): threads,
        properties.hint.performance_mode(): properties.hint.PerformanceMode.LATENCY,
        properties.hint.execution_mode(): properties.hint.ExecutionMode.ACCURACY,
    }
    try:
        read = core.read_model(model(cell, x, given).SerializeToString())
        request = core.compile_model(read, "CPU", settings).create_infer_request()
        for i, array in enumerate(given.values()):
            request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
    except RuntimeError as error:
        raise Unsupported(str(error).splitlines()[0]) from error
    count = len(request.model_outputs)

    # Tensors do not keep their memory: `_alive` does.
    def run(_alive: dict[str, Array] = given) -> tuple[Array, ...]:
        request.start_async()
        request.wait()
        return tuple(request.get_output_tensor(i).data for i in range(count))

    return run
