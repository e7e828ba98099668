"""Files that are complete on the disk or not there at all: checksums, flushing, replacing."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

MAX_FILES_AT_ONCE = 4  # that are hashed or flushed side by side
WORK = ".writing"  # the folder in which `replaced_files` prepares files


def sha256_of_file(path: Path) -> str:
    """SHA-256 of the content, as `sha256sum` prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_file(path: Path) -> None:
    """Wait until the content is on the disk: without this, a file may be empty after a power cut."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Wait until the names are on the disk: without this, a rename may be lost in a power cut.

    Does nothing on Windows, where a folder cannot be opened.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_and_hash(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    """Flush files to the disk; name -> {"bytes": size, "sha256": checksum} of each."""

    def flushed(path: Path) -> dict[str, int | str]:
        flush_file(path)
        return {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)}

    paths = list(paths)
    with ThreadPoolExecutor(MAX_FILES_AT_ONCE) as pool:
        return {path.name: sums for path, sums in zip(paths, pool.map(flushed, paths), strict=True)}


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Yields the path of a new file beside `path`, which takes its place at the end of the block, complete.

    If the block fails, the new file is removed and `path` stays as it was.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield new
        flush_file(new)
        os.replace(new, path)
        flush_folder(path.parent)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@contextmanager
def replaced_files(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yields a new folder within `folder`; the files that the block writes there take their places at its end.

    Files of these names that the block has not written are removed, as they are of an earlier state. If the block or a
    rename fails, the earlier files stay. If the process ends between two renames, both states are complete within
    WORK, and the next call finishes the replacement.
    """
    work, aside = folder / WORK, folder / WORK / "replaced"
    if aside.is_dir():
        for path in work.iterdir():
            if path != aside:
                os.replace(path, folder / path.name)
    remove_folder(work)
    work.mkdir(parents=True)
    try:
        yield work
        new = sorted(path.name for path in work.iterdir())
        for name in new:
            flush_file(work / name)
        flush_folder(work)
        aside.mkdir()
        earlier = [name for name in names if os.path.lexists(folder / name)]
        move_all([*((folder / n, aside / n) for n in earlier), *((work / n, folder / n) for n in new)])
        flush_folder(folder)
    finally:
        remove_folder(work)


def move_all(moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename (source, target) in order; where one fails, those before are moved back."""
    moved = []
    try:
        for source, target in moves:
            source.rename(target)
            moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            target.rename(source)
        raise


def remove_folder(folder: Path) -> None:
    """Remove a folder with all its files, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
