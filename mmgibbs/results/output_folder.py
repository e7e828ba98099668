"""The folder that a command writes its files into, other than a run folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.machine.files import WORK, replaced_files


def check_output_folder(directory: str | os.PathLike, overwrite: bool, files: Collection[str], what: str) -> Path:
    """The absolute path, once it is sure that it may be written; what: that files of these names are: a validation."""
    path = Path(directory).resolve()
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option_name('output')}: '{directory}' is a file, needed a directory")
    names = {p.name for p in path.iterdir()} - {WORK} if path.is_dir() else set()
    if names - set(files):
        raise ConfigError(f"{option_name('output')}: '{directory}' holds other files; choose another one")
    if names and not overwrite:
        raise ConfigError(
            f"{option_name('output')}: '{directory}' holds {what}; choose another one, or give {option('overwrite')}"
        )
    return path


def write_files(folder: Path, writers: Mapping[str, Callable[[Path], object]], files: Collection[str]) -> None:
    """Write files, whole or not at all; those of `files` that are not written again are removed."""
    try:
        with replaced_files(folder, files) as work:
            for name, write in writers.items():
                write(work / name)
    except OSError as error:
        raise ConfigError(f"{option_name('output')}: cannot write '{folder}': {error.strerror}") from None
