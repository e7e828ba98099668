"""What the draws of a run depend on, by which runs are told apart: settings of the analysis, contents of its files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgibbs.config import Analysis
from mmgibbs.errors import ConfigError
from mmgibbs.results.plain_values import plain

if TYPE_CHECKING:
    import polars as pl

# Keys that change no draw. Paths are left out too: what counts is what the files hold.
FREE = (
    "name",
    "functions",
    "output.directory",
    "output.csv",
    "output.escape_formulas",
    "output.fitted",
    "output.snp_effects",
    "sampler.checkpoint_every",
    "sampler.threads",
)


PATHS_IN = (
    ".relationship",
    "data.genotypes",
    "residual.known.files",
    ".snps.file",
    "output.save_levels",
)  # keys with paths below them


NO_FILE = "no file"  # in place of a SHA-256


def fingerprint(analysis: Analysis) -> dict:
    """List all that the draws depend on.

    These are the settings (dotted key -> value as JSON), and the SHA-256 of each data file.
    """
    return {
        "analysis": settings(plain(analysis.resolved())),
        "files": {key: _sha256(table) for key, table in _tables(analysis)},
    }


def settings(tree: Mapping) -> dict[str, str]:
    """The leaves of a resolved analysis by dotted key, without those that change no draw."""
    values = {}

    def visit(value: Any, place: tuple[str, ...]) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                visit(inner, (*place, str(key)))
        else:
            values[".".join(place)] = json.dumps(value, sort_keys=True)

    visit(tree, ())
    values["sampler.device"] = '"auto"'  # chains continue on another device
    paths = ("data.phenotypes", "data.pedigree", "decisions.candidates.file")
    kept = {key: text for key, text in values.items() if key not in (*FREE, *paths)}
    return {
        key: '"file"' if any(part in key for part in PATHS_IN) and _is_path(text) else text
        for key, text in kept.items()
    }


def _is_path(text: str) -> bool:
    """A value as JSON is an absolute path, as those of a resolved analysis are, or a list of such paths."""
    value = json.loads(text)
    paths = value if isinstance(value, list) and value else [value]
    return all(isinstance(path, str) and Path(path).is_absolute() for path in paths)


def _tables(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, Path | pl.DataFrame]]:
    """(dotted key, Path or data frame) of every table of an analysis."""
    if place == ("path",):
        return
    if place == ("output",):
        yield from _tables(value.save_levels, (*place, "save_levels"))
        return
    if isinstance(value, Path) or hasattr(value, "write_ipc"):
        yield ".".join(place), value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _tables(inner, (*place, str(key)))
    elif isinstance(value, tuple) and any(isinstance(inner, Path) for inner in value):
        for number, inner in enumerate(value, 1):
            yield from _tables(inner, (*place, str(number)))
    elif hasattr(type(value), "model_fields"):
        is_path = isinstance(value.as_file(), str)  # a section that is written as one path counts as that path
        for name in type(value).model_fields:
            yield from _tables(getattr(value, name), place if is_path else (*place, name))


def is_of_files(analysis: Analysis) -> bool:
    """Check that all tables are files, none a data frame."""
    return all(isinstance(table, Path) for _, table in _tables(analysis))


def states_of_files(analysis: Analysis) -> dict[Path, tuple[int, ...] | None]:
    """Return values that show whether a data file has been written or replaced since; None where there is no file.

    The time of the last change (`st_ctime_ns`) is set by the system: no program can put it back.
    """
    states: dict[Path, tuple[int, ...] | None] = {}
    for _, table in _tables(analysis):
        if isinstance(table, Path):
            try:
                status = table.stat()
                states[table] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            except OSError:
                states[table] = None
    return states


def _sha256(table: Path | pl.DataFrame) -> str:
    if not isinstance(table, Path):
        buffer = io.BytesIO()
        table.write_ipc(buffer)
        return hashlib.sha256(buffer.getbuffer()).hexdigest()
    try:
        if not table.is_file():
            return NO_FILE  # what reads it will say so
        with open(table, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{table}: cannot be read: {error.strerror}") from error


def changes(then: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """List the differences between two `fingerprint`, a line each; none of files where `then` has no files."""
    lines = [
        f"{key}: was {_shown(then['analysis'], key)}, now {_shown(now['analysis'], key)}"
        for key in _differing(then["analysis"], now["analysis"])
    ]
    files = _differing(then["files"], now["files"]) if "files" in then else []
    return lines + [f"the contents of the file of {key} have changed" for key in files]


def _differing(then: Mapping, now: Mapping) -> list[str]:
    """Keys whose values differ, in their order; a key that a version does not have is as good as null."""
    return [key for key in dict.fromkeys([*then, *now]) if then.get(key, "null") != now.get(key, "null")]


def _shown(values: Mapping[str, str], key: str) -> str:
    text = values.get(key, "not there")
    return text if len(text) <= 60 else f"{text[:57]}..."
