"""Files of the folder that the page is about; no other is read, written or named to a command."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mmgibbs.config.text import read_yaml
from mmgibbs.errors import MmgibbsError
from mmgibbs.genotypes.formats import FORMATS
from mmgibbs.results.folder import RECORD, WORKING

TABLES = (".csv", ".tsv", ".txt", ".dat", ".prn", ".ped", ".parquet", ".arrow", ".feather")
GENOTYPES = (*(ending for form in FORMATS.values() for ending in form.endings), ".txt", ".gen", ".geno", ".raw")
ANALYSES = (".yaml", ".yml")
MAX_DEPTH = 3  # folders below the folder
MAX_FILES = 1000  # in a list


class Files(NamedTuple):
    """Names of files, relative to the folder."""

    tables: list[str]
    genotypes: list[str]
    analyses: list[str]


def find_inside(folder: Path, name: str) -> Path | None:
    """Return the path of this name in the folder (which is resolved), that need not exist.

    None for a place outside of it, also by links, and for hidden files and what is in hidden folders.
    """
    try:
        path = (folder / name).resolve()
        parts = path.relative_to(folder).parts
    except (OSError, ValueError, RuntimeError):  # a null byte, a loop of links, another place
        return None
    return path if parts and not any(part.startswith(".") for part in (*parts, *Path(name).parts)) else None


def list_files(folder: Path) -> Files:
    """List tables, genotypes and analyses in the folder and below, without those in run folders."""
    names: list[str] = []
    for place, below, files in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        is_run = RECORD in files or bool(WORKING & {*below, *files})
        below[:] = [] if is_run or depth == MAX_DEPTH else sorted(name for name in below if name[0] != ".")
        here = [] if is_run else [Path(place, name).relative_to(folder).as_posix() for name in sorted(files)]
        names += [name for name in here if find_inside(folder, name) is not None]
        if len(names) > MAX_FILES:
            break
    tables = [name for name in names if name.lower().removesuffix(".gz").endswith(TABLES)]
    genotypes = [name for name in names if name.lower().endswith(GENOTYPES)]
    return Files(tables, genotypes, [name for name in names if name.lower().endswith(ANALYSES)])


def guess_file(names: Iterable[str], *words: str) -> str:
    """Return the first name with one of these words in it, '' without any."""
    return next((name for name in names if any(word in Path(name).name.lower() for word in words)), "")


def name_new_analysis(folder: Path) -> str:
    """Return analysis.yaml, or analysis-2.yaml and so on, whichever does not exist."""
    names = ("analysis.yaml", *(f"analysis-{n}.yaml" for n in range(2, MAX_FILES)))
    return next((name for name in names if not (folder / name).exists()), "")


def find_run_folder(folder: Path, file: str) -> Path:
    """Return the run folder of an analysis that runs in this folder, as its text says; it need not exist."""
    output: object = None
    name: object = None
    try:
        tree = read_yaml(folder / file)
    except MmgibbsError:
        tree = None
    if isinstance(tree, dict):
        name = tree.get("name")
        output = tree["output"].get("directory") if isinstance(tree.get("output"), dict) else None
    if not isinstance(output, str):
        output = os.path.join("runs", str(name or Path(file).stem))
    return Path(os.path.abspath(folder / os.path.expanduser(output)))
