"""An operator that is validated and ready to run many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specops import arrays
from specops.errors import SpecopsError
from specops.tensor import Tensor, packed_strides
from specops.validation import Operator


class CompiledOperator:
    """Runs one operator on arrays of the described data types and shapes; made by `compile` of a description.

    Each call checks data type, shape and overlap, nothing else, and honours each array's own strides.
    """

    def __init__(
        self,
        operator: Operator,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        kernel: Callable[..., None],
    ) -> None:
        self._operator, self._inputs, self._outputs, self._kernel = (
            operator,
            inputs,
            outputs,
            kernel,
        )

    def __repr__(self) -> str:
        tensors = {**self._inputs, **self._outputs}
        shown = ", ".join(f"{name}: {t.dtype} {list(t.sizes)}" for name, t in tensors.items())
        return f"<{self._operator.name}({shown})>"

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Run on the inputs, in the order of the fields.

        Args:
            inputs: arrays of the described data types and shapes, with any strides; they are never written to.
            out: array of the described data type and shape to write to, or a tuple of them where there are several
                outputs; allocated where it is None.

        Returns:
            The output, or a tuple of them.

        Raises:
            ValidationError: an array does not fit its description, or `out` shares memory with an input.
        """
        operator = self._operator
        if len(inputs) != len(self._inputs):
            raise SpecopsError(
                f"{operator.name} takes {len(self._inputs)} input arrays, found {len(inputs)}"
            )
        given = []
        for value, (field, tensor) in zip(inputs, self._inputs.items(), strict=True):
            array = arrays.as_array(value, operator, field)
            arrays.check(array, tensor, operator, field)
            given.append(array)
        sources = tuple(given)
        single = len(self._outputs) == 1
        outs = (out,) if single else out if out is not None else (None,) * len(self._outputs)
        results = tuple(
            self._allocate(tensor) if o is None else self._output(o, sources, field, tensor)
            for o, (field, tensor) in zip(outs, self._outputs.items(), strict=True)
        )
        self._kernel(*sources, *results)
        if out is not None:
            return out
        return results[0] if single else results

    def _output(
        self, out: Any, sources: tuple[np.ndarray, ...], field: str, tensor: Tensor
    ) -> np.ndarray:
        array = arrays.check_output(out, sources, self._operator, field)
        arrays.check(array, tensor, self._operator, field)
        return array

    def _allocate(self, tensor: Tensor) -> np.ndarray:
        if tensor.strides == packed_strides(tensor.sizes):
            return np.empty(tensor.sizes, tensor.numpy_dtype)
        return arrays.view(np.empty(tensor.total_bytes, np.uint8), 0, tensor)
