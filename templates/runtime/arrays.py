"""Arrays in and out: what is taken as an input, and what may be written to."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np

from specops.errors import NoMemoryError, ValidationError, Violation
from specops.rule_functions import nested
from specops.tensor import Tensor, native
from specops.validation import Subject
from specops.vocabulary import DATA_TYPES


def as_array(value: object, subject: Subject, field: str) -> np.ndarray:
    """A NumPy array over the caller's own memory; what would have to be copied is refused."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        allowed = "an array without a mask: use x.filled(value)"
        raise subject.refusal("array", field, "a masked array", allowed)
    if issubclass(type(value), np.ndarray | np.generic):
        return np.asarray(value)
    if _is_negated(value):
        found, allowed = (
            "a tensor that is stored negated",
            "a tensor as stored: use its resolve_neg()",
        )
        raise subject.refusal("array", field, found, allowed)
    why = ""
    if (
        not isinstance(value, list | tuple | str | bytes | bool | int | float | complex)
        and value is not None
    ):
        for attempt in (_dlpack, _array_interface, _buffer):
            try:
                array = attempt(value)
            except Exception as error:  # other libraries raise what they like
                why = why or " ".join(str(error).split())[:120]
                continue
            if array is not None:
                return array
    found = f"a value of type {type(value).__name__}"
    allowed = "a NumPy array, or an object that shares its memory"
    if isinstance(value, list | tuple | bool | int | float | complex):
        allowed += "; numpy.asarray makes one"
    if isinstance(value, bytes):
        allowed += "; numpy.frombuffer(x, dtype) makes one"
    if why:
        found += f" ({why})"
        allowed = f"a NumPy array, or an object that shares its memory{_of_torch(value)}"
        if "Unable to avoid copy" in why:  # NumPy's words
            allowed += "; numpy.asarray makes one"
    raise subject.refusal("array", field, found, allowed)


def _of_torch(tensor: object) -> str:
    """A hint what gives an array over the memory of a tensor of torch; empty for all else, and where nothing does."""
    if ("torch", "Tensor") not in (
        (kind.__module__, kind.__name__) for kind in type(tensor).__mro__
    ):
        return ""
    device, layout, dtype = (str(getattr(tensor, n, "")) for n in ("device", "layout", "dtype"))
    known = {f"torch.{entry.numpy.name}" for entry in DATA_TYPES.values()}
    if device != "cpu" or layout != "torch.strided" or dtype not in known:
        return ""
    if dtype == "torch.bfloat16":  # torch has no NumPy array of it
        return ": use its detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)"
    return ": use its detach().numpy()"


def _is_negated(tensor: object) -> bool:
    """Whether it is one of torch whose memory has the elements with another sign, which DLPack does not tell."""
    try:
        return tensor.is_neg() is True  # type: ignore[attr-defined]
    except Exception:  # other libraries raise what they like
        return False


def _dlpack(value: object) -> np.ndarray | None:
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else None


def _array_interface(value: object) -> np.ndarray | None:
    names = ("__array__", "__array_interface__", "__array_struct__")
    if not any(hasattr(value, name) for name in names):
        return None
    return np.asarray(value, copy=False if _takes_copy(value) else None)


def _takes_copy(value: object) -> bool:
    """Whether `__array__` can be asked not to copy; of one that cannot, NumPy would warn the caller."""
    try:
        parameters = inspect.signature(value.__array__).parameters  # type: ignore[attr-defined]
    except Exception:  # there is none, or it does not tell
        return True
    return "copy" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _buffer(value: object) -> np.ndarray | None:
    try:
        return np.asarray(memoryview(value))  # type: ignore[arg-type]
    except TypeError:  # no buffer
        return None


def no_data_type(
    dtype: np.dtype, subject: Subject, field: str, allowed: Sequence[str]
) -> Violation:
    """What is told of a data type that the vocabulary does not have."""
    text = f"one of {', '.join(allowed)}"
    return subject.violation("data_type", field, f"dtype {dtype}", text)


def byte_order(
    dtype: np.dtype, subject: Subject, field: str, *, is_output: bool = False
) -> Violation:
    """What is told of a data type whose bytes are in another order than this machine's."""
    allowed = f"native byte order, dtype {native(dtype)}"
    if not is_output:
        allowed += ', which x.astype(x.dtype.newbyteorder("=")) makes of an array x'
    return subject.violation("byte_order", field, f"dtype {dtype.str}", allowed)


def check(
    array: np.ndarray, tensor: Tensor, subject: Subject, field: str, *, is_output: bool = False
) -> None:
    """An array must have the described data type and sizes; its strides are its own."""
    dtype, described = array.dtype, tensor.numpy_dtype
    # Most are one object: 0.03 us less than to compare them.
    if dtype is not described and (dtype != described or not dtype.isnative):
        if native(dtype) == described:
            raise ValidationError([byte_order(dtype, subject, field, is_output=is_output)])
        raise subject.refusal("data_type", field, f"dtype {dtype}", f"dtype {described}")
    if array.shape != tensor.sizes:
        raise subject.refusal("shape", field, f"shape {array.shape}", f"shape {tensor.sizes}")


def as_output(
    array: object,
    inputs: tuple[np.ndarray, ...],
    outputs: tuple[np.ndarray, ...],
    tensor: Tensor,
    subject: Subject,
    field: str,
) -> np.ndarray:
    """An output must be a writable array as described, whose elements share memory with no other array."""
    if type(array) is not np.ndarray:
        if isinstance(array, np.ma.MaskedArray):
            allowed = "an array without a mask: give its data"
            raise subject.refusal("array", field, "a masked array", allowed)
        if not isinstance(array, np.ndarray) or not issubclass(type(array), np.ndarray):
            found = f"a value of type {type(array).__name__}"
            allowed = f"a NumPy array to write to{_of_torch(array)}"
            raise subject.refusal("array", field, found, allowed)
        # A derived class may say of itself what is not so.
        array = np.ndarray.view(array, np.ndarray)
    flags = array.flags
    if not flags.writeable:
        raise subject.refusal("writable", field, "a read-only array", "a writable array")
    if not flags.c_contiguous and array.size > 1:
        steps = [abs(stride) for stride in array.strides]
        if not nested(array.shape, steps, array.dtype.itemsize):
            found = f"strides {array.strides} for shape {array.shape}"
            raise subject.refusal(
                "output_overlap",
                field,
                found,
                "strides each of which, sorted, steps over all that lies inside it",
            )
    for number, other in enumerate(inputs + outputs):
        if np.may_share_memory(array, other):
            what = "an input" if number < len(inputs) else "another output"
            found = f"a range of memory, from first to last byte, that meets that of {what}"
            raise subject.refusal("overlap", field, found, "memory of its own")
    check(array, tensor, subject, field, is_output=True)
    return array


def allocate(
    tensor: Tensor, operator: str, field: str, like: np.ndarray | None = None
) -> np.ndarray:
    """A new array of the described layout, uninitialised; in the memory order of `like` where that is given."""
    try:
        if like is not None and like.ndim == len(tensor.sizes) and not like.flags.c_contiguous:
            like = _without_repeats(like)
            return np.empty_like(like, tensor.numpy_dtype, subok=False, shape=tensor.sizes)
        if tensor.is_packed:
            return np.empty(tensor.sizes, tensor.numpy_dtype)
        return view(np.empty(tensor.total_bytes, np.uint8), 0, tensor)
    except (MemoryError, ValueError):
        sizes = list(tensor.sizes)
        raise NoMemoryError(f"{operator}: no memory for {field} of sizes {sizes}") from None


def _without_repeats(like: np.ndarray) -> np.ndarray:
    """What tells empty_like the memory order: an axis that repeats elements lies outside those that come after it.

    As in what NumPy's functions return; empty_like would make it the innermost.
    """
    if 0 not in like.strides:
        return like
    strides: list[int] = []
    for n, step in zip(like.shape[::-1], like.strides[::-1], strict=True):
        strides.append(max(map(abs, strides), default=0) if n > 1 and step == 0 else step)
    return np.lib.stride_tricks.as_strided(like, strides=strides[::-1], writeable=False)


def view(buffer: np.ndarray, byte_offset: int, tensor: Tensor) -> np.ndarray:
    """The described view of a buffer of bytes."""
    item = tensor.numpy_dtype.itemsize
    strides = tuple(stride * item for stride in tensor.strides)
    return np.ndarray(tensor.sizes, tensor.numpy_dtype, buffer, byte_offset, strides)
