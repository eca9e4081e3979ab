"""Names: from those of a page to those of Python."""

from __future__ import annotations

import keyword
import math
import re

# Windows has no files of these names, whatever their ending.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{i}" for d in ("com", "lpt") for i in range(10))}
# What a dialect's package exports beside its operators, whose functions may not have these names.
PACKAGE_NAMES = {
    "directml": ["CompiledOperator"],
    "onnx": ["CompiledOperator"],
    "plain": [
        "NoMemoryError",
        "SpecopsError",
        "ThreadLimitError",
        "ValidationError",
        "Violation",
        "__version__",
        "get_num_threads",
        "num_threads",
        "set_num_threads",
        "warm_up",
    ],
}
# What `is_module` asks, in words.
MODULE_NAME = (
    "up to 64 of a-z, 0-9 and _, a letter first, no keyword of Python, and no name that Windows"
    " keeps for a device"
)


def snake_case(name: str) -> str:
    """
    >>> snake_case("AxisDirection")
    'axis_direction'
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def array_argument(name: str) -> str:
    """The argument of a function for an input array that is not its first.

    >>> array_argument("InputGradientTensor")
    'input_gradient'
    """
    return snake_case(name.removesuffix("Tensor"))


def is_module(name: str) -> bool:
    """Whether a spec may have this name, which becomes that of a module, of ONNX without its version.

    >>> [is_module(name) for name in ("max_pool_10", "class", "2d", "Max", "aux", "com1_13")]
    [True, False, False, False, False, False]
    """
    module = family(name)
    return (
        re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) is not None
        and not keyword.iskeyword(module)
        and module not in _DEVICES
    )


def file_name(operator: str, dialect: str) -> str:
    """The name of an operator's file, of ONNX without the version.

    >>> file_name("DML_OPERATOR_MAX_POOLING1", "directml"), file_name("ReduceL1", "onnx"), file_name("max", "plain")
    ('max_pooling1', 'reduce_l1', 'max')
    """
    if dialect == "directml":
        return operator.removeprefix("DML_OPERATOR_").lower()
    return snake_case(operator) if dialect == "onnx" else operator


def description_class(name: str) -> str:
    """
    >>> description_class("max_pooling1")
    'MaxPooling1OperatorDesc'
    """
    return _capitalized(name) + "OperatorDesc"


def host_class(kernel: str) -> str:
    """The class of a kernel's host side.

    >>> host_class("arg_reduce")
    'ArgReduce'
    """
    return _capitalized(kernel)


def _capitalized(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def family(name: str) -> str:
    """The name of all versions of an operator.

    >>> family("log_softmax_13")
    'log_softmax'
    """
    return re.sub(r"_[0-9]+$", "", name)


def natural(name: str) -> list[tuple[int, str]]:
    """A key by which 8 sorts before 10.

    >>> sorted(["max_pool_10", "max_pool_8"], key=natural)
    ['max_pool_8', 'max_pool_10']
    """
    return [(int(p), "") if p.isdigit() else (0, p) for p in re.split(r"(\d+)", name)]


def stands_for(name: str, id: str) -> bool:
    """Whether a name on the command line means this operator: with or without dialect, of ONNX also all versions.

    >>> [stands_for(name, "onnx/hardmax_13") for name in ("hardmax", "onnx/hardmax", "hardmax_13", "hardmax_1")]
    [True, True, True, False]
    """
    ids = [id, family(id)] if id.startswith("onnx/") else [id]
    return any(name in (i, i.split("/")[-1]) for i in ids)


def is_quoted_number(value: object) -> bool:
    """Whether it is a text that is a whole number, as YAML reads one in quotes.

    >>> is_quoted_number("-3"), is_quoted_number(-3)
    (True, False)
    """
    return isinstance(value, str) and value.lstrip("-").isdecimal()


def yaml_word(value: object) -> str:
    """A scalar, or a list of them, as YAML writes it.

    >>> yaml_word([True, None, float("nan"), "a"])
    '[true, null, .nan, a]'
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(yaml_word, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}".replace("nan", ".nan").replace("inf", ".inf")
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def capitalised(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
