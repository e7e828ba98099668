"""`mmgibbs compare`: two runs, or two programs' solutions, read, compared and written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mmgibbs.comparison.sides import read_side
from mmgibbs.comparison.solutions import Pair, pairs, parameter_table
from mmgibbs.comparison.text import as_text
from mmgibbs.comparison.unmatched import why_unmatched
from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.files import replaced_files
from mmgibbs.report.likelihood_ratio import LikelihoodRatio, likelihood_ratio
from mmgibbs.results.csv_files import write_csv

FILES = ("comparison.txt", "comparison.csv", "levels.csv", "parameters.csv")


def compare(
    a: str | os.PathLike,
    b: str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    levels: str | os.PathLike | None = None,
    top: int = 20,
    escape_formulas: bool = False,
) -> str:
    """Compare two run folders or files of solutions; the text of the comparison. See `compared`.

    Raises ConfigError and DataError where one of them cannot be read, or `top` is below 1.
    """
    return compared(a, b, output, levels=levels, top=top, escape_formulas=escape_formulas).text


@dataclass(frozen=True)
class Comparison:
    """text: for people; nothing: why nothing could be compared, '' where something was."""

    text: str
    nothing: str = ""


def compared(
    a: str | os.PathLike,
    b: str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    levels: str | os.PathLike | None = None,
    top: int = 20,
    escape_formulas: bool = False,
) -> Comparison:
    """Compare two run folders or files of solutions.

    output: a folder for comparison.txt, comparison.csv (a row for each component), levels.csv (a row for each level,
    with its ranks and difference) and, of two runs, parameters.csv. levels: table with the columns effect, level and
    id, for a BLUPF90 file that has none beside it. top: how many of the highest count as selected. escape_formulas: in
    csv files, put an apostrophe before text that a spreadsheet would take for a formula.

    Raises ConfigError and DataError where one of them cannot be read, or `top` is below 1.
    """
    if top < 1:
        raise ConfigError(f"compare: {option_name('top')}: found {top}, needed at least 1")
    sides = tuple(read_side(Path(side), None if levels is None else Path(levels)) for side in (a, b))
    found = pairs(sides[0], sides[1])
    parameters = parameter_table(sides[0], sides[1])
    runs = [side.run for side in sides if side.run is not None]
    test = likelihood_ratio(runs[0], runs[1]) if len(runs) == 2 else None
    text = as_text((sides[0], sides[1]), found, parameters, test, top)
    some = bool(found) or (parameters is not None and parameters.height > 0) or isinstance(test, LikelihoodRatio)
    if output is not None and some:
        _write(Path(output), text, found, parameters, top, escape_formulas)
    return Comparison(text, "" if some else why_unmatched(sides[0], sides[1]))


def _write(
    folder: Path, text: str, found: list[Pair], parameters: pl.DataFrame | None, top: int, escaped: bool
) -> None:
    """Write all files together, or none."""
    try:
        with replaced_files(folder, FILES) as new:
            (new / FILES[0]).write_text(text + "\n", encoding="utf-8")
            rows = [pair.statistics(top) for pair in found]
            write_csv(pl.DataFrame(rows, infer_schema_length=None), new / FILES[1], escaped)
            by_level = [pair.table.select(pl.lit(pair.label).alias("component"), pl.all()) for pair in found]
            if by_level:
                write_csv(pl.concat(by_level), new / FILES[2], escaped)
            if parameters is not None:
                write_csv(parameters, new / FILES[3], escaped)
    except OSError as error:
        raise ConfigError(f"compare: cannot write '{folder}': {error.strerror or error}") from None
