"""An operator that is validated and ready to run many times; operators compiled ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from specops import arrays, launch, types
from specops.errors import NoMemoryError
from specops.tensor import Tensor
from specops.validation import Operator


class Lowered(Protocol):
    """An operator's host side, for fixed data types, shapes and attributes: one of the classes of `lowering`.

    One whose output may lack axes of the input has these as `axes`.
    """

    def __call__(self, *arrays: np.ndarray) -> None:
        """Compute the outputs, the last of the arrays, from the inputs."""

    def chunks(self) -> list[launch.Chunk]:
        """All that calls may run."""


def _no_memory(operator: Operator, error: MemoryError) -> NoMemoryError:
    return NoMemoryError(f"{operator.name}: {str(error) or 'not enough memory'}")


class CompiledOperator:
    """Runs one operator on arrays of the described data types and shapes; made by `compile` of a description.

    Each call checks data type, shape and overlap, nothing else, and honours each array's own strides. It can be copied,
    and pickled for another process.
    """

    def __init__(
        self, operator: Operator, values: Mapping[str, Any], *, described: bool = True
    ) -> None:
        """From the validated value of each field; None for an optional output that is not there.

        Outputs that it makes have the described strides or, where nobody described any, the memory order of the
        input's axes that are left.
        """
        self._operator, self._values, self._described = operator, values, described
        tensors = [(f, values[f.name]) for f in operator.fields if f.type == "tensor"]
        self._inputs = {f.name: t for f, t in tensors if f.kind == "input" and t is not None}
        self._outputs = {f.name: t for f, t in tensors if f.kind == "output" and t is not None}
        self._only = next(iter(self._outputs.items())) if len(self._outputs) == 1 else None
        try:
            self._lowered: Lowered = operator.lower(values)
        except MemoryError as error:  # of a kernel's module
            raise _no_memory(operator, error) from None

    def __reduce__(self) -> tuple[Callable[..., CompiledOperator], tuple[Any, ...]]:
        # By what it was made of: another process has its chunks elsewhere.
        return _compiled, (type(self), self._operator, dict(self._values), self._described)

    @property
    def outputs(self) -> Mapping[str, Tensor]:
        """The described outputs, in the order in which they are returned."""
        return self._outputs

    def __repr__(self) -> str:
        tensors = {**self._inputs, **self._outputs}
        shown = ", ".join(f"{name}: {t.dtype} {list(t.sizes)}" for name, t in tensors.items())
        return f"<{self._operator.name}({shown})>"

    def __call__(
        self, *inputs: types.Array, out: np.ndarray | Sequence[np.ndarray | None] | None = None
    ) -> np.ndarray | Any:
        """Run on the inputs, in the order of the fields.

        Args:
            inputs: arrays of the described data types and shapes, with any strides; they are never written to.
            out: array of the described data type and shape to write to, or a tuple of one for each output where there
                may be several; allocated where it, or an entry of it, is None.

        Returns:
            The output, or a tuple of them.

        Raises:
            ValidationError: an array does not fit its description, or `out` lies in an input's range of memory.
            NoMemoryError: there is no memory for an output, or for a thread's scratch; a MemoryError.
            SpecopsError: NUMBA_DISABLE_JIT is set, so that no kernel can be compiled.
        """
        return self.run(self.checked(inputs), out)

    def checked(self, inputs: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
        """The inputs as NumPy arrays over the same memory.

        Raises:
            ValidationError: one does not fit its description.
        """
        operator = self._operator
        if len(inputs) != len(self._inputs):
            names = ", ".join(self._inputs)
            allowed = f"{len(self._inputs)}, for {names}"
            raise operator.refusal("input_count", names, f"{len(inputs)} arrays", allowed)
        given: list[np.ndarray] = []
        for field, tensor in self._inputs.items():
            array = arrays.as_array(inputs[len(given)], operator, field)
            arrays.check(array, tensor, operator, field)
            given.append(array)
        return tuple(given)

    def run(self, inputs: tuple[np.ndarray, ...], out: Any) -> Any:
        """As a call, without a check of the inputs: of others than `checked` gives, memory beside them is read."""
        try:
            if self._only is not None:
                if type(out) in (tuple, list):
                    out = self._alone(out)
                result = self._result(out, inputs, (), *self._only)
                self._lowered(*inputs, result)
                return result if out is None else out
            results: list[np.ndarray] = []
            asked, allocates = self._several(out), False
            for field, tensor in self._outputs.items():
                array = asked[len(results)]
                allocates = allocates or array is None
                results.append(self._result(array, inputs, tuple(results), field, tensor))
            self._lowered(*inputs, *results)
            if allocates:
                return tuple(results)
            return out if isinstance(out, tuple) else tuple(out)
        except NoMemoryError:
            raise
        except MemoryError as error:  # of compiled code
            raise _no_memory(self._operator, error) from None

    def warm_up(self) -> None:
        """Compile all that a call may run, so that none waits for it.

        It is what calls of other strides and shapes may run, too: of a pooling more than its own shape needs.
        """
        launch.warm_up(self._lowered.chunks())

    @cached_property
    def _left(self) -> tuple[int | slice, ...]:
        """Of the input, what the axes index that a reduction leaves."""
        reduced: frozenset[int] = getattr(self._lowered, "axes", frozenset())
        rank = len(next(iter(self._inputs.values())).sizes)
        return tuple(0 if axis in reduced else slice(None) for axis in range(rank))

    def _alone(self, out: Sequence[Any]) -> Any:
        """The only entry, where the operator can have another output, too: callers of both give a tuple."""
        optional = any(f.optional is not None for f in self._operator.fields)
        return out[0] if optional and len(out) == 1 else out

    def _several(self, out: Any) -> Sequence[Any]:
        """One entry for each output: an array to write to, or None."""
        count = len(self._outputs)
        if out is None:
            return (None,) * count
        if not isinstance(out, tuple | list) or len(out) != count:
            named = f"a value of type {type(out).__name__}"
            found = f"{len(out)} arrays" if isinstance(out, tuple | list) else named
            allowed = (
                f"a tuple of {count} arrays, for its {count} outputs {', '.join(self._outputs)}"
            )
            raise self._operator.refusal("output_count", "out", found, allowed)
        return out

    def _result(
        self,
        out: Any,
        sources: tuple[np.ndarray, ...],
        results: tuple[np.ndarray, ...],
        field: str,
        tensor: Tensor,
    ) -> np.ndarray:
        """The array to write to: the caller's, or a new one."""
        if out is None:
            like = None if self._described else sources[0]
            if like is not None and 1 < len(tensor.sizes) < like.ndim and like.size:
                like = like[self._left]
            return arrays.allocate(tensor, self._operator.name, field, like)
        return arrays.as_output(out, sources, results, tensor, self._operator, field)


def _compiled(
    kind: type[CompiledOperator], operator: Operator, values: Mapping[str, Any], described: bool
) -> CompiledOperator:
    return kind(operator, values, described=described)


def warm_up(*operators: str, dtype: npt.DTypeLike | Iterable[npt.DTypeLike] = "FLOAT32") -> None:
    """Compile ahead what calls of operators may run, so that none waits for it.

    It does what the command `specops warmup` does, with the same words: whatever the shapes, strides and arguments of a
    later call, it finds its code compiled. Numba's cache on disk keeps it for other processes.

    Args:
        operators: names, as "softmax" for all that `specops list` has of this name, "plain/softmax" or
            "specops.softmax" for the NumPy function alone, or "onnx/softmax_11" for a version that is not the newest.
            Without a name, all operators, of ONNX in their newest versions.
        dtype: data type of the first input, or several: FLOAT32, FLOAT16, ..., in any case, or NumPy dtypes; "all"
            means all that an operator has. An operator is left out of those that it does not have.

    Raises:
        SpecopsError: a name or a data type stands for nothing, or none of the operators has any of the data types; then
            nothing is compiled. Or Numba is set up so that nothing can be.

    >>> import numpy as np
    >>> import specops
    >>> specops.warm_up("max_unpool", dtype=["float32", np.float16])
    >>> specops.max_unpool(np.array([5, 7], np.float16), np.array([0, 3]), [4])
    array([5., 0., 0., 7.], dtype=float16)
    """
    from specops import ahead

    for step in ahead.steps(operators, dtype):
        step.compile()
