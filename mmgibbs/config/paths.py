"""Paths of an analysis file, which are relative to its folder, as absolute ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mmgibbs.config.sampling import SavedFile, SavedLevels
from mmgibbs.config.tables import Data


def absolute(path: Path, folder: Path) -> Path:
    """Return the path from the folder, without '..' and links."""
    try:
        return (folder / path).resolve()
    except (OSError, RuntimeError):  # a loop of symbolic links: the reader will say so
        return Path(os.path.abspath(folder / path))


def with_absolute_files(saved: SavedLevels, folder: Path) -> SavedLevels:
    """Return the levels whose draws are kept with the paths of their files as absolute ones."""
    if not isinstance(saved, dict):
        return saved
    return {
        term: SavedFile.model_construct(file=absolute(ids.file, folder)) if isinstance(ids, SavedFile) else ids
        for term, ids in saved.items()
    }


def with_absolute_paths(data: Data, folder: Path) -> Data:
    """Return the section with the paths of all tables as absolute ones."""
    tables = {key: getattr(data, key) for key in ("phenotypes", "pedigree")}
    paths: dict[str, Any] = {key: absolute(t, folder) for key, t in tables.items() if isinstance(t, Path)}
    if data.genotypes is not None:
        paths["genotypes"] = data.genotypes.completed().with_paths(lambda path: absolute(path, folder))
    if data.groups is not None and isinstance(data.groups.gamma, Path):
        paths["groups"] = data.groups.model_copy(update={"gamma": absolute(data.groups.gamma, folder)})
    return data.model_copy(update=paths)
