"""A comparison for people to read."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mmgibbs.comparison.sides import Side
from mmgibbs.comparison.solutions import Pair
from mmgibbs.comparison.unmatched import explain_unmatched
from mmgibbs.errors import option_name
from mmgibbs.report.html_tables import count_decimals
from mmgibbs.report.likelihood_ratio import INSTEAD, LikelihoodRatio, describe_test
from mmgibbs.report.terminal import with_decimals
from mmgibbs.results.tables import was_drawn
from pedigree.tables import counted

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
    """Both means to two digits of the smaller of their errors, or to their own digits where neither has one."""
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
