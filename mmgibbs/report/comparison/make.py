"""`mmgibbs compare`: reads two runs, or solutions of two programs, and writes text and tables of their differences."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder
from mmgibbs.pedigree.tables import counted
from mmgibbs.report.comparison.sides import Side, read_side
from mmgibbs.report.comparison.solutions import Pair, explain_unmatched, pairs, parameter_table
from mmgibbs.report.html_tables import count_decimals
from mmgibbs.report.likelihood_ratio import INSTEAD, LikelihoodRatio, describe_test, likelihood_ratio
from mmgibbs.report.make import check_page, make_report
from mmgibbs.report.notebook import text_as_html
from mmgibbs.report.terminal import with_decimals
from mmgibbs.results.csv_files import is_escaped
from mmgibbs.results.output_folder import Content, write_files
from mmgibbs.results.reading import list_inputs
from mmgibbs.results.tables import was_drawn

MOST_PARAMETERS = 40


def as_text(
    sides: tuple[Side, Side],
    pairs: Sequence[Pair],
    parameters: pl.DataFrame | None,
    test: LikelihoodRatio | str | None,
    top: int,
) -> str:
    a, b = sides
    lines = [f"a: {a.name} ({_KINDS[a.kind]})", f"b: {b.name} ({_KINDS[b.kind]})"]
    if test is not None:
        lines += ["", *_test_text(test, sides)]
    for pair in pairs:
        lines += ["", *_pair_text(pair, top)]
    if not pairs:
        lines += ["", f"nothing to compare: {explain_unmatched(a, b)}"]
    if parameters is not None and parameters.height:
        drawn = {side.run is None or was_drawn(side.run.summary) for side in sides}
        unit, of_what = ("SD", "posterior standard deviations") if True in drawn else ("SE", "standard errors")
        of_what = "the posterior standard deviation and the standard error" if len(drawn) > 1 else f"both {of_what}"
        lines += ["", *_parameters_text(parameters, f"b - a, {unit}"), f"  b - a, {unit}: in the mean of {of_what}"]
    return "\n".join(lines)


_KINDS = {"run": "run folder", "blupf90": "solutions of BLUPF90", "table": "table"}


def _number(value: float | int | str | None, digits: int = 4) -> str:
    return "none" if value is None else f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def _pair_text(pair: Pair, top: int) -> list[str]:
    s = pair.statistics(top)
    title = pair.label if pair.label == pair.label_b else f"{pair.label}  |  {pair.label_b}"
    missing = [f"{n:,} in {x} alone" for x, n in (("a", pair.only_a), ("b", pair.only_b)) if n]
    lines = [
        f"{title}: {counted(int(s['levels'] or 0), 'level')} in both" + (f", {', '.join(missing)}" if missing else "")
    ]
    lines += [f"  {note}" for note in pair.notes]
    if s["correlation"] is not None:
        lines += [
            f"  correlation {_number(s['correlation'])}, of the ranks {_number(s['rank_correlation'])}",
            f"  regression of b on a {_number(s['regression_of_b_on_a'])}, "
            f"of a on b {_number(s['regression_of_a_on_b'])}; "
            f"SD {_number(s['sd_a'])} and {_number(s['sd_b'])}",
            f"  means {_number(s['mean_a'])} and {_number(s['mean_b'])}",
            f"  {s['in_both_top']} of the {s['top']} highest of a are among those of b; "
            f"ranks of half of the levels change by at most {s['median_places']:,.0f} places, "
            f"the largest change is {s['most_places']:,}",
        ]
    shown = pair.farthest(5)
    if pair.table.height and float(s["largest_difference"] or 0) > 0:
        lines.append("  largest differences (level: a, b, b - a, places gained):")
        lines += [
            f"    {r['level']}: {r['a']:.4f}, {r['b']:.4f}, {r['difference']:+.4f}, {r['places']:+,}"
            for r in shown.iter_rows(named=True)
        ]
    return lines


def _parameters_text(table: pl.DataFrame, difference_in: str) -> list[str]:
    width = max(len(name) for name in table["parameter"].head(MOST_PARAMETERS))
    lines = [f"{'parameter':<{width}}  {'a':>12}  {'b':>12}  {difference_in:>9}"]
    for row in table.head(MOST_PARAMETERS).iter_rows(named=True):
        apart = "" if row["apart"] is None else f"{row['apart']:+.2f}"
        means = _to_digits_of_errors(row)
        lines.append(f"{row['parameter']:<{width}}  {means[0]:>12}  {means[1]:>12}  {apart:>9}")
    rest = table.height - MOST_PARAMETERS
    return lines + (
        [f"... and {rest} more: parameters.csv has all of them ({option_name('output')})"] if rest > 0 else []
    )


def _to_digits_of_errors(row: dict[str, float | None]) -> list[str]:
    """Write both means to two digits of the smaller of their errors, or to their own digits where neither has one."""
    errors = [error for c in ("sd_a", "sd_b") if (error := row[c])]
    means = [row["mean_a"], row["mean_b"]]
    places = max(count_decimals(m, min(errors) if errors else None) for m in means)
    return [with_decimals(m, places) for m in means]


def _test_text(test: LikelihoodRatio | str, sides: tuple[Side, Side]) -> list[str]:
    if isinstance(test, str):
        criteria = _criteria_text(sides) if test.endswith(INSTEAD) else []
        return [f"likelihood-ratio test: {test}", *criteria]
    names = {letter: f"{letter} ({side.name})" for letter, side in zip("ab", sides, strict=True)}
    first, *rest = describe_test(test, names[test.small], names[test.large])
    return [f"likelihood-ratio test of {first}", *(f"  {line}" for line in rest)]


def _criteria_text(sides: tuple[Side, Side]) -> list[str]:
    """AIC and BIC of both runs, which are by REML with the same records and fixed effects."""
    records = {letter: side.run.record for letter, side in zip("ab", sides, strict=True) if side.run is not None}
    return [
        f"  {key.upper()} (smaller is better): " + ", ".join(f"{x} {record[key]:.2f}" for x, record in records.items())
        for key in ("aic", "bic")
        if all(key in record for record in records.values())
    ]


FILES = ("comparison.txt", "comparison.csv", "levels.csv", "parameters.csv", "comparison.json")
KIND = OutputKind("comparison.json", frozenset(FILES), "a comparison", is_alone=False, is_asked=False)


@dataclass(frozen=True)
class Comparison:
    """Comparison of two runs, or of the solutions of two programs, side by side.

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
        contents: dict[str, Content] = {
            "comparison.txt": made.text + "\n",
            "comparison.csv": made.components,
            "levels.csv": made.levels if made.levels.width else None,
            "parameters.csv": made.parameters,
        }
        write_files(KIND, Path(output).resolve(), contents, {"compared": [os.fspath(a), os.fspath(b)]}, escaped)
        made = replace(made, directory=Path(output))
    if page is not None:
        made = replace(made, page=make_report([a, b], page, top))
    return made
