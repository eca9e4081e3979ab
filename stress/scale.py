"""Sizes from which another strategy is chosen, drawn small: then small arrays take every one that large ones take."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from draw import Random

from specops import launch, lowering
from specops.lowering import machine

KEPT = {(machine, "CACHE_LINE")}  # what is so, not what is chosen
LEAST = 64  # of drawn bytes, a vector's, and of the columns of a tile


def modules() -> list[ModuleType]:
    found = pkgutil.iter_modules(lowering.__path__, f"{lowering.__name__}.")
    return [launch, *(importlib.import_module(module.name) for module in found)]


def sizes() -> list[tuple[ModuleType, str]]:
    """The whole numbers by which the host's side chooses a strategy."""
    names = [(module, name) for module in modules() for name in vars(module)]
    return [
        (module, name)
        for module, name in names
        if name.isupper()
        and not name.startswith("_")
        and type(vars(module)[name]) is int
        and (module, name) not in KEPT
    ]


@contextmanager
def drawn(random: Random) -> Iterator[None]:
    """Each size is kept or made smaller, for all operators that are compiled meanwhile."""
    places = sizes()
    before = [vars(module)[name] for module, name in places]
    often = random.choice([0.3, 0.6, 0.9])
    for (module, name), size in zip(places, before, strict=True):
        if random.random() < often:
            wide = name.endswith(("_BYTES", "TILE"))
            least = min(size, LEAST if wide else 1)
            setattr(module, name, int(least * (size / least) ** random.random() ** 3))
    forget()
    try:
        yield
    finally:
        for (module, name), size in zip(places, before, strict=True):
            setattr(module, name, size)
        forget()


def forget(kept: tuple[str, ...] = ()) -> None:
    """Functions forget the operators that they have compiled, but for modules whose names begin with one of these."""
    for name, module in list(sys.modules.items()):
        if name.startswith("specops.") and not name.startswith(kept):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
