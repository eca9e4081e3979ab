"""The files of a folder of templates."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path) -> list[Path]:
    """In order. Raises OSError where a folder cannot be read: what was generated of it is not to be removed."""

    def refuse(error: OSError) -> None:
        raise error

    paths = [Path(at, name) for at, _, names in os.walk(folder, onerror=refuse) for name in names]
    return sorted(path for path in paths if path.is_file())


def modules_below(folder: Path) -> list[Path]:
    """Those of Python; hidden ones are those of editors and systems."""
    return [p for p in files_below(folder) if p.suffix == ".py" and p.name[0] != "."]
