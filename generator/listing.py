"""The files of a folder of templates."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path) -> list[Path]:
    """In order, without what editors, tools and systems keep there: caches, backups, and what is hidden.

    Raises OSError where a folder cannot be read: what was generated of it is not to be removed.
    """

    def refuse(error: OSError) -> None:
        raise error

    paths: list[Path] = []
    for at, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        paths += [Path(at, name) for name in names if name[0] != "." and name[-1] != "~"]
    return sorted(path for path in paths if path.is_file())


def modules_below(folder: Path) -> list[Path]:
    """Those of Python."""
    return [path for path in files_below(folder) if path.suffix == ".py"]
