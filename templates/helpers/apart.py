"""Vectors of elements that lie apart in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from llvm import _width
from memory import _load
from shuffles import _collected

# Steps, in elements, so short that elements are picked out of whole vectors.
NEAR_STEPS = (1, 2, 3, 4)


def _picked(builder: Any, address: Any, step: int, vector: Any) -> Any:
    """A vector of elements that lie `step` elements apart; nothing before the first or behind the last is read."""
    lanes = vector.count
    wanted = [step * lane for lane in range(lanes)]
    begins = [min(part * lanes, wanted[-1] - lanes + 1) for part in range(step)]
    pointer = builder.inttoptr(address, vector.element.as_pointer())
    parts = [_load(builder, builder.gep(pointer, [ir.IntType(32)(n)]), vector) for n in begins]
    # The last part begins earlier than behind the one before it.
    places = [at // lanes * lanes + at - begins[at // lanes] for at in wanted]
    return _collected(builder, parts, places)


def _pointers(builder: Any, address: Any, step: Any, count: Any, vector: Any) -> list[Any]:
    """One pointer for each lane, `step` bytes apart; the lanes behind the first `count` repeat the last of these.

    One access for each lane is twice as fast as a masked gather or scatter instruction, and needs no branches.
    """
    pointers = []
    for lane in range(vector.count):
        if lane:
            further = builder.add(address, step)
            if count is not None:
                inside = builder.icmp_signed("<", ir.IntType(64)(lane), count)
                further = builder.select(inside, further, address)
            address = further
        pointers.append(builder.inttoptr(address, vector.element.as_pointer()))
    return pointers


def _one_by_one(builder: Any, address: Any, step: Any, vector: Any, count: Any) -> Any:
    """As _load_apart, an element after the other."""
    value = ir.Constant(vector, ir.Undefined)
    for lane, pointer in enumerate(_pointers(builder, address, step, count, vector)):
        element = builder.load(pointer, align=1)
        value = builder.insert_element(value, element, ir.IntType(32)(lane))
    return value


def _load_apart(builder: Any, address: Any, step: Any, vector: Any, count: Any = None) -> Any:
    """The elements at address, address + step, ..: a whole vector, or the first `count`; other lanes repeat the last.

    Of a whole vector, elements that lie near to each other are picked out of all that lies between the first and the
    last: 0.2 to 0.7 of the time. Others are loaded one by one.
    """
    if count is not None:
        return _one_by_one(builder, address, step, vector, count)

    def one_by_one() -> Any:
        return _one_by_one(builder, address, step, vector, None)

    return _load_near(builder, address, step, vector, NEAR_STEPS, one_by_one)


def _load_near(
    builder: Any,
    address: Any,
    step: Any,
    vector: Any,
    steps: tuple[int, ...],
    otherwise: Callable[[], Any],
) -> Any:
    """A whole vector, picked as _load_apart does it, where the step is one of `steps`; of others `otherwise()`."""
    size = _width(vector) // 8
    value = cgutils.alloca_once(builder, vector)

    def choose(steps: tuple[int, ...]) -> None:
        if not steps:
            builder.store(otherwise(), value)
            return
        near = builder.icmp_signed("==", step, step.type(steps[0] * size))
        with builder.if_else(near) as (then, other):
            with then:
                builder.store(_picked(builder, address, steps[0], vector), value)
            with other:
                choose(steps[1:])

    choose(steps)
    return builder.load(value)
