"""Places of output: a command replaces and removes what it wrote itself, and nothing else.

A folder of results has a record, run.json or its twin (gwas.json, comparison.json, ...), whose `files` list what was
written there. These names, as far as the command can have written them, are its files; all others are the user's. A
single file is known by its content. What a command reads is never written over; no link within a folder is followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.machine.files import REPLACED, WORK

FILES = "files"  # key of a record: the names of all files that were written with it
LEFT_BY_SYSTEMS = {".ds_store", ".localized", "thumbs.db", "ehthumbs.db", "desktop.ini", ".directory"}
MAX_NAMED = 3  # files in a message
MAX_RECORD_BYTES = 1_000_000_000


@dataclass(frozen=True)
class OutputKind:
    """A kind of output that a command writes into a folder.

    files: every name that it may write; record: the one of them that lists what was written. what: that these are, such
    as 'an association'. working: names that it uses while it works. is_alone: the folder must hold nothing else.
    is_asked: earlier results are replaced only on request. place: how messages name the folder, by default --output.
    """

    record: str
    files: frozenset[str]
    what: str
    working: frozenset[str] = frozenset()
    is_alone: bool = True
    is_asked: bool = True
    place: str | None = None

    @property
    def place_name(self) -> str:
        return self.place or option_name("output")

    @property
    def prepared(self) -> frozenset[str]:
        """Names that the command may have left within WORK."""
        return self.files

    def list_written(self, folder: Path) -> set[str]:
        """Names of the files in a folder that an earlier command of this kind wrote, by its record.

        A command that was killed while results took their places has left records within WORK.
        """
        work = folder / WORK
        names: set[str] = set()
        for place in (folder, *(() if work.is_symlink() else (work, work / REPLACED))):
            names |= _read_manifest(place / self.record) & self.files
        return {name for name in names if os.path.lexists(folder / name)}

    def list_strange(self, folder: Path) -> set[str]:
        """Names within WORK that no command of this kind left there: all in WORK is removed with the next results."""
        work = folder / WORK
        return (list_names(work) - self.prepared - {REPLACED}) | (list_names(work / REPLACED) - self.prepared)

    def refuse_others(self, path: Path, written: Collection[str], shown: str) -> None:
        """ConfigError where a folder holds files that no command of this kind wrote, and must not."""
        foreign = list_names(path) - set(written) - self.working - {WORK}
        if self.is_alone and foreign:
            raise ConfigError(f"{shown} holds other files ({name_some(foreign)}); choose another one")

    def describe_earlier(self, written: Collection[str]) -> str:
        """Message about earlier results that are not replaced without being asked for."""
        return f"holds {self.what} ({name_some(written)}); choose another one"


def list_names(folder: Path) -> set[str]:
    """Names in a folder, without those that file managers leave there (.DS_Store, Thumbs.db); none without a folder."""
    if not folder.is_dir():
        return set()
    return {p.name for p in folder.iterdir() if p.name.lower() not in LEFT_BY_SYSTEMS and not p.name.startswith("._")}


def name_results_folder(directory: str | os.PathLike, ending: str) -> str:
    """Return the name of a folder of results beside the folder that they come from."""
    path = Path(directory)
    path = path.resolve() if path.name in ("", "..") else path
    return os.fspath(path.with_name(f"{path.name}-{ending}"))


def check_output_folder(
    kind: OutputKind, directory: str | os.PathLike, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Path:
    """Return the absolute path, once it is sure that the command may write there: call it before any work is done.

    inputs: paths that the command reads. ConfigError where the folder cannot be written, holds files of others in the
    places of the new ones, or holds earlier results that nobody asked to replace.
    """
    path = Path(directory).resolve()
    shown = f"{kind.place_name}: '{directory}'"
    check_folder_can_be_written(path, shown)
    refuse_links(path, (*kind.files, *kind.working, WORK), shown)
    written = kind.list_written(path)
    kind.refuse_others(path, written, shown)
    refuse_foreign(path, kind, written, shown)
    if kind.is_asked and written and not overwrite:
        raise ConfigError(f"{shown} {kind.describe_earlier(written)}, or give {option('overwrite')}")
    refuse_inputs([path / name for name in sorted(kind.files)], inputs, kind.place_name)
    return path


def refuse_foreign(path: Path, kind: OutputKind, written: Collection[str], shown: str) -> None:
    """ConfigError where a file of another origin is in the place of one that the command may write."""
    foreign = {name for name in kind.files - set(written) if os.path.lexists(path / name)}
    if foreign:
        raise ConfigError(
            f"{shown} holds {name_some(foreign)}, which no {kind.record} lists as {kind.what}; choose another one, "
            "or move that file"
        )
    work = path / WORK
    if os.path.lexists(work) and not work.is_dir():
        raise ConfigError(f"{shown} holds {WORK}, which no command wrote; choose another one, or move that file")
    strange = kind.list_strange(path)
    if strange:
        raise ConfigError(f"{shown}: its folder {WORK} holds other files ({name_some(strange)}); choose another one")


def check_folder_can_be_written(path: Path, shown: str) -> None:
    """ConfigError where a path is a file, or no folder can be made or written there."""
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{shown} is a file, needed a directory")
    above = next(p for p in (path, *path.parents) if p.exists())
    if not above.is_dir():
        raise ConfigError(f"{shown} cannot be created, since '{above}' is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError(f"{shown} cannot be written: no permission to write in '{above}'")


def refuse_links(path: Path, names: Iterable[str], shown: str) -> None:
    """ConfigError where a name is a link: its target, which someone else may have chosen, would be written."""
    for name in sorted(names):
        if (path / name).is_symlink():
            raise ConfigError(
                f"{shown} has a link in place of {name}, and a command writes to where it leads; needed a directory "
                "without links"
            )


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[object], place: str) -> None:
    """ConfigError where a file to be written is one that is read, also by another path or name.

    inputs: paths, or (what it is, path). place: 'predict: --output', or an option alone.
    """
    sources = [(what, path) for what, path in map(_name_input, inputs) if path is not None]
    for target in targets:
        for what, source in sources:
            if is_same_file(target, source):
                raise ConfigError(
                    f"{place}: '{target}', the file to write, is {what}; needed another {_name_option(place)}"
                )


def check_output_file(
    path: Path,
    what: str,
    is_written: Callable[[Path], bool],
    *,
    inputs: Iterable[object] = (),
    overwrite: bool | None = None,
    place: str | None = None,
) -> None:
    """ConfigError where a file may not be written: it is read, a link, a folder, or of another origin.

    what: the file is to be, such as 'a page of mmgibbs report'. is_written: whether a file is such a one, by its
    content. overwrite: None where these are replaced without being asked for. An empty file may be replaced. inputs,
    place: see `refuse_inputs`.
    """
    place = place or option_name("output")
    if path.is_dir():
        raise ConfigError(f"{place}: '{path}' is a folder, needed the name of a file for {_name_option(place)}")
    refuse_inputs([path], inputs, place)
    if path.is_symlink():
        raise ConfigError(f"{place}: '{path}' is a link; needed the name of a file")
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    if not path.is_file() or not is_written(path):
        raise ConfigError(f"{place}: '{path}' exists and is not {what}; choose another name, or move that file")
    if overwrite is False:
        choose = f"choose another {_name_option(place)}, or give {option('overwrite')}"
        raise ConfigError(f"{place}: '{path}' exists; {choose}")


def _name_option(place: str) -> str:
    return place.rpartition(": ")[2]


def begins_with(path: Path, marks: Collection[bytes], n_bytes: int = 4096) -> bool:
    """Check whether one of the marks is among the first bytes of a file."""
    try:
        with open(path, "rb") as file:
            head = file.read(n_bytes)
    except OSError:
        return False
    return any(mark in head for mark in marks)


def page_mark(kind: str) -> str:
    """Return the mark in the head of a page: that the program wrote it, and its kind."""
    return f'<meta name="generator" content="mmgibbs {kind}">'


def is_page(path: Path, kind: str) -> bool:
    """Check whether a file is a page of this kind that the program wrote."""
    return begins_with(path, (page_mark(kind).encode(),))


def list_paths(value: object) -> Iterator[Path]:
    """List every absolute path within nested mappings and lists, such as the analysis in run.json."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from list_paths(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from list_paths(inner)
    elif isinstance(value, (str, os.PathLike)) and os.path.isabs(value):
        yield Path(value)


def list_run_inputs(directory: Path, record: Mapping[str, Any]) -> list[Path]:
    """List the inputs of a finished run: the files of its folder, and those that its analysis names."""
    files = [name for name in record.get(FILES, ()) if isinstance(name, str)]
    return [*(directory / name for name in ("run.json", "run.log", *files)), *list_paths(record.get("analysis", {}))]


def is_same_file(a: Path, b: Path) -> bool:
    """Check whether two paths are one file, also by links and other spellings."""
    try:
        return a.samefile(b)
    except OSError:
        return a.absolute() == b.absolute()


def name_some(names: Collection[str]) -> str:
    """'a.csv, b.csv, c.csv and 2 more'."""
    more = len(names) - MAX_NAMED
    return ", ".join(sorted(names)[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _name_input(source: object) -> tuple[str, Path | None]:
    """Name an input and return its path; None for a table in memory, and for nothing."""
    what, path = source if isinstance(source, tuple) else ("one of the files that are read", source)
    return what, Path(path) if isinstance(path, (str, os.PathLike)) and str(path) else None


def _read_manifest(record: Path) -> set[str]:
    """The names that a record lists; none where there is no record that a command can have written."""
    try:
        if record.is_symlink() or not record.is_file() or record.stat().st_size > MAX_RECORD_BYTES:
            return set()
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return set()
    listed = content.get(FILES) if isinstance(content, dict) else None
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
