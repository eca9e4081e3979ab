"""In which order a search visits the elements of its groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from specops.lowering.axes import Axis, by_memory, coalesce, elements, reverse
from specops.lowering.plans import Strides
from specops.tensor import packed_strides


@dataclass
class Visit:
    """The elements in the order in which they are visited, for one set of strides."""

    kept: list[Axis]  # (size, input stride, output stride)
    reduced_out: list[Axis]  # those of an output that has them: (size, output stride, index weight)
    reduced: list[Axis]  # (size, input stride, index weight)
    shift: int  # bytes from the input's element [0, 0, ..] to the first visited
    out_shift: int
    base: int  # index of the first element visited
    repeated: tuple[slice, ...] | None  # kept axes of stride 0 cut to one element
    last: bool  # of equal elements that of the greatest index is preferred

    @property
    def groups(self) -> int:
        return elements(self.kept)

    @property
    def total(self) -> int:
        """Steps along the reduced axes."""
        return elements(self.reduced)

    @property
    def ordered(self) -> bool:
        """Whether reduced elements come in the order of preference, but for the direction of the innermost axis."""
        weights = [abs(axis.other_stride) for axis in self.reduced]
        directions = all((axis.other_stride < 0) == self.last for axis in self.reduced[:-1])
        return directions and weights == sorted(weights, reverse=True)

    def turn(self, i: int) -> None:
        """Walk a reduced axis from its other end."""
        self.reduced[i], moved, index = reverse(self.reduced[i])
        self.shift += moved
        self.base += index


def visited(
    sizes: Sequence[int],
    axes: Collection[int],
    last: bool,
    strides: Strides,
    out_strides: Strides,
) -> Visit:
    """Kept axes by memory, all strides positive; reduced ones so that the preferred element comes first.

    Args:
        sizes: of the input's axes.
        axes: the reduced ones.
        last: whether of equal elements that of the greatest index is preferred, else that of the least.
        strides: of the input's axes, in bytes.
        out_strides: of the output's, which may lack the reduced ones.
    """
    shift = out_shift = base = 0
    dropped = len(out_strides) < len(strides)
    remaining = iter(out_strides)
    order = sorted(axes)
    weights = packed_strides([sizes[a] for a in order])
    weight_of = dict(zip(order, weights, strict=True))
    kept, reduced_out = [], []
    repeated: list[slice] = []
    for a, (n, stride) in enumerate(zip(sizes, strides, strict=True)):
        if a in axes:
            if not dropped:
                reduced_out.append(Axis(n, next(remaining), weight_of[a]))
                repeated.append(slice(None))
            continue
        out_stride = next(remaining)
        computed_once = n > 1 and stride == 0  # then copied
        repeated.append(slice(0, 1) if computed_once else slice(None))
        if n == 1 or computed_once:
            continue
        axis = Axis(n, stride, out_stride)
        if stride < 0:
            axis, moved, out_moved = reverse(axis)
            shift += moved
            out_shift += out_moved
        kept.append(axis)
    logical = coalesce(Axis(sizes[a], strides[a], weight) for a, weight in weight_of.items())
    varying = []
    for axis in logical:
        if axis.stride:
            varying.append(axis)
        elif last:  # all its elements are equal: only the preferred one is visited
            base += (axis.size - 1) * axis.other_stride
    reduced = by_memory(varying)
    visit = Visit(
        kept=coalesce(by_memory(kept)),
        reduced_out=reduced_out,
        reduced=reduced,
        shift=shift,
        out_shift=out_shift,
        base=base,
        repeated=tuple(repeated) if slice(0, 1) in repeated else None,
        last=last,
    )
    if last:  # so that the first visited is the preferred one
        for i in range(len(reduced)):
            visit.turn(i)
    return visit
