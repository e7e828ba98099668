"""`mmgibbs init`: from tables to an analysis file that `mmgibbs check` accepts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmgibbs.config import load_config
from mmgibbs.config.schema import write_schema
from mmgibbs.data.prepare import prepare
from mmgibbs.draft.guess import guess
from mmgibbs.draft.write import analysis_text, what_was_guessed
from mmgibbs.errors import ConfigError, MmgibbsError, option, option_name


class Draft(NamedTuple):
    path: Path
    said: list[str]  # what was seen and guessed
    refused: str | None  # why the data do not go with the file; None: they do


def draft(
    phenotypes: str | os.PathLike,
    pedigree: str | os.PathLike | None = None,
    genotypes: str | os.PathLike | None = None,
    traits: Sequence[str] = (),
    output: str | os.PathLike = "analysis.yaml",
    *,
    overwrite: bool = False,
    widths: Sequence[int] | None = None,
    pedigree_widths: Sequence[int] | None = None,
) -> Draft:
    """Look at the tables and write a commented analysis file, with its schema beside it.

    The file is checked against the tables before it takes its place. Raises ConfigError where the file exists (unless
    `overwrite`) or is one of the tables, and for tables without anything that could be a trait; DataError for tables
    that cannot be read. widths, pedigree_widths: of the columns in characters, where they are fixed.
    """
    path = Path(output)
    tables = [Path(table) for table in (phenotypes, pedigree, genotypes) if table is not None]
    _refuse(path, tables, overwrite)
    of_animals = None if pedigree is None else Path(pedigree)
    of_genotypes = None if genotypes is None else Path(genotypes)
    found = guess(Path(phenotypes), of_animals, of_genotypes, traits, widths, pedigree_widths)
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(analysis_text(found, path), encoding="utf-8")
        refused = _problem(new)
        write_schema(path.parent)
        new.replace(path)
    except OSError as error:
        raise ConfigError(f"init: cannot write '{path}': {error.strerror or error}") from None
    finally:
        new.unlink(missing_ok=True)
    return Draft(path, what_was_guessed(found), refused)


def _refuse(path: Path, tables: Sequence[Path], overwrite: bool) -> None:
    for table in tables:
        if path.exists() and table.exists() and path.samefile(table):
            raise ConfigError(f"init: '{path}' is one of the tables; needed another {option_name('output')}")
    if path.is_dir():
        raise ConfigError(f"init: '{path}' is a folder, needed the name of a file for {option_name('output')}")
    if path.exists() and not overwrite:
        raise ConfigError(
            f"init: '{path}' exists; choose another {option_name('output')}, or give {option('overwrite')}"
        )


def _problem(path: Path) -> str | None:
    """What `mmgibbs check` would refuse."""
    try:
        prepare(load_config(path))
    except MmgibbsError as error:
        return str(error).replace(f"{path}: ", "")
    return None
