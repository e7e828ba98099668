"""Files that are complete on the disk or not there at all: checksums, flushing, replacing."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_FILES_AT_ONCE = 4  # that are hashed or flushed side by side
WORK = ".writing"  # the folder in which `replaced_files` prepares files
REPLACED = "replaced"  # in WORK: the earlier files
CHECKPOINT_FILE = re.compile(r"\.?(run|reml|chains|chain-\d+)(\.previous|\.\d+)?\.npz")  # in a folder of checkpoints


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
def replaced_files(
    folder: Path, earlier: Iterable[str] = (), last: str | None = None, moved: Mapping[str, Path] | None = None
) -> Iterator[Path]:
    """Yields a new folder within `folder`; the files that the block writes there take their places at its end.

    earlier: files that are replaced: those that the block has not written are removed. last: a file that says that the
    others are complete: its earlier state goes first, and the new one comes when all others are on the disk. moved:
    files and folders made elsewhere that take their places with the others, by name. If the block or a rename fails,
    the earlier files stay, and folders made here are removed. If the process ends between two renames, both states are
    complete within WORK, and the next call finishes the replacement.
    """
    earlier, moved = list(earlier), dict(moved or {})
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    work, aside = folder / WORK, folder / WORK / REPLACED
    if aside.is_dir() and not work.is_symlink():
        waiting = sorted((path for path in work.iterdir() if path != aside), key=lambda path: (path.name == last, path))
        for path in waiting:
            os.replace(path, folder / path.name)
            earlier.append(path.name)
    remove_folder(work)
    try:
        work.mkdir(parents=True)
        yield work
        for path in work.iterdir():
            flush_file(path)
        flush_folder(work)
        for name, source in moved.items():
            source.rename(work / name)
        new = sorted((path.name for path in work.iterdir()), key=lambda name: (name == last, name))
        aside.mkdir()
        old = sorted({n for n in earlier if os.path.lexists(folder / n)}, key=lambda name: (name != last, name))
        moves = [*((folder / n, aside / n) for n in old), *((work / n, folder / n) for n in new)]
        n_before = len(moves) - (last in new)
        move_all(moves[:n_before])
        try:
            flush_folder(folder)  # the others have their names on the disk before the last says that they are complete
            move_all(moves[n_before:])
        except BaseException:
            move_all([(target, source) for source, target in reversed(moves[:n_before])])
            raise
        flush_folder(folder)
    except BaseException:
        for name, source in moved.items():
            if (work / name).exists() and not source.exists():
                (work / name).rename(source)
        remove_folder(work)
        for path in made:  # innermost first
            with suppress(OSError):
                path.rmdir()
        raise
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


def remove_files(folder: Path, is_known: Callable[[str], object]) -> None:
    """Remove the files of a folder whose names are known, and the folder where nothing else is in it."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_known(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    with suppress(OSError):  # it holds something else, or is not there
        folder.rmdir()


def remove_folder(folder: Path) -> None:
    """Remove a folder with all its files, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
