"""`mmgibbs compare`: two runs, or two programs' solutions, read, compared and written."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.comparison.sides import read_side
from mmgibbs.comparison.solutions import pairs, parameter_table
from mmgibbs.comparison.text import as_text
from mmgibbs.comparison.unmatched import explain_unmatched
from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder
from mmgibbs.report.likelihood_ratio import LikelihoodRatio, likelihood_ratio
from mmgibbs.report.make import check_page, make_report
from mmgibbs.report.notebook import text_as_html
from mmgibbs.results.csv_files import csv_writer, is_escaped
from mmgibbs.results.output_folder import write_files
from mmgibbs.results.reading import list_inputs

FILES = ("comparison.txt", "comparison.csv", "levels.csv", "parameters.csv", "comparison.json")
KIND = OutputKind("comparison.json", frozenset(FILES), "a comparison", is_alone=False, is_asked=False)


@dataclass(frozen=True)
class Comparison:
    """Two runs, or the solutions of two programs, side by side.

    text: for people to read. components: a row for each effect and trait, with correlations, regressions and ranks.
    levels: a row for each level, with both solutions, their ranks and their difference. parameters: those of two runs,
    else None. directory, page: the folder and the page that were written, else None.
    """

    text: str
    components: pl.DataFrame
    levels: pl.DataFrame
    parameters: pl.DataFrame | None
    directory: Path | None = None
    page: Path | None = None

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return text_as_html(self.text)


def compare(
    a: str | os.PathLike,
    b: str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    levels: str | os.PathLike | None = None,
    top: int = 20,
    escape_formulas: bool = False,
    page: str | os.PathLike | None = None,
) -> Comparison:
    """Compare two runs, or a run with the solutions of another program.

    The arguments are those of `mmgibbs compare`.

    Parameters
    ----------
    a, b : str or path
        Run folder, file `solutions` of a BLUPF90 program, or table (csv, tsv, parquet) with a column of ids and
        columns of numbers.
    output : str or path, optional
        Folder for comparison.txt, comparison.csv (a row for each component), levels.csv (a row for each level) and,
        of two runs, parameters.csv.
    levels : str or path, optional
        Table with the columns effect, level and id, for a BLUPF90 file that has none beside it.
    top : int, default 20
        How many of the highest are looked at: how many of these both have.
    escape_formulas : bool, default False
        In csv files, put an apostrophe before text that a spreadsheet would take for a formula.
    page : str or path, optional
        Also write a page about two runs to this file.

    Returns
    -------
    Comparison
        The text of the comparison, and its tables as Polars frames.

    Raises
    ------
    ConfigError
        If one side cannot be read, `top` is below 1, or the sides have nothing in common.
    DataError
        If a table cannot be used.

    See Also
    --------
    run : The run folders that are compared.

    Examples
    --------
    >>> import mmgibbs, polars as pl
    >>> ids = [f"a{i}" for i in range(30)]
    >>> pl.DataFrame({"id": ids, "ebv": range(30)}).write_csv("first.csv")
    >>> pl.DataFrame({"id": ids, "ebv": range(1, 31)}).write_csv("second.csv")
    >>> both = mmgibbs.compare("first.csv", "second.csv", top=5)
    >>> both.components["correlation"].round(6).to_list(), both.levels["difference"].unique().to_list()
    ([1.0], [1.0])
    """
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise ConfigError(f"compare: {option_name('top')}: found {top}, needed at least 1")
    for name, given in {"a": a, "b": b, "output": output, "levels": levels, "page": page}.items():
        if not isinstance(given, (str, os.PathLike)) and (given is not None or name in "ab"):
            raise ConfigError(f"compare: {name}: found {reprlib.repr(given)}, needed a path")
    read = [a, b, levels, *list_inputs(a, "compare: "), *list_inputs(b, "compare: ")]
    if output is not None:
        check_output_folder(KIND, output, inputs=read)
    if page is not None:
        check_page(page, "comparison", read, option_name("page"))
    sides = tuple(read_side(Path(side), None if levels is None else Path(levels)) for side in (a, b))
    matched = pairs(sides[0], sides[1])
    parameters = parameter_table(sides[0], sides[1])
    runs = [side.run for side in sides if side.run is not None]
    test = likelihood_ratio(runs[0], runs[1]) if len(runs) == 2 else None
    if not matched and (parameters is None or not parameters.height) and not isinstance(test, LikelihoodRatio):
        raise ConfigError(f"compare: nothing to compare: {explain_unmatched(sides[0], sides[1])}")
    text = as_text((sides[0], sides[1]), matched, parameters, test, top)
    components = pl.DataFrame([pair.statistics(top) for pair in matched], infer_schema_length=None)
    by_level = [pair.table.select(pl.lit(pair.label).alias("component"), pl.all()) for pair in matched]
    made = Comparison(text, components, pl.concat(by_level) if by_level else pl.DataFrame(), parameters)
    if output is not None:
        escaped = escape_formulas or any(is_escaped(finished.record) for finished in runs)
        _write(made, Path(output), escaped, (a, b))
        made = replace(made, directory=Path(output))
    if page is not None:
        made = replace(made, page=make_report([a, b], page, top))
    return made


def _write(made: Comparison, folder: Path, escaped: bool, sides: Sequence[str | os.PathLike]) -> None:
    """Write all files together, or none."""
    text = made.text + "\n"
    writers: dict[str, Callable[[Path], object]] = {
        "comparison.txt": lambda path: path.write_text(text, encoding="utf-8"),
        "comparison.csv": csv_writer(made.components, escaped),
    }
    if made.levels.width:
        writers["levels.csv"] = csv_writer(made.levels, escaped)
    if made.parameters is not None:
        writers["parameters.csv"] = csv_writer(made.parameters, escaped)
    write_files(KIND, folder.resolve(), writers, {"compared": [os.fspath(side) for side in sides]})
