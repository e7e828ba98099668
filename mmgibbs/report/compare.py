"""Several finished runs side by side: what differs, their parameters, and whether they rank animals alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.report import model_words, plots
from mmgibbs.report.agreement import compute_agreement, rank_levels
from mmgibbs.report.findings import warnings
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.report.html_tables import (
    NORMAL_95,
    Column,
    Number,
    Table,
    as_number,
    cell_column,
    counted,
    counts,
    decimals,
    interval,
    known,
    listed,
    make_table,
    number,
    number_column,
    numbers,
    text_column,
)
from mmgibbs.report.likelihood_ratio import (
    LikelihoodRatio,
    describe_restrictions,
    describe_test,
    likelihood_ratio,
    p_in_words,
)
from mmgibbs.report.page import facts, model_section, subtitle, traits_with_intercept
from mmgibbs.report.parameters import drop_mirrored
from mmgibbs.report.render import render
from mmgibbs.results.tables import was_drawn

FIGURES = 24  # parameters drawn; the table holds all


def write_comparison(directories: Sequence[str | os.PathLike], output: str | os.PathLike, top: int = 20) -> Path:
    """Write the comparison of finished runs to `output` and return its path; ConfigError as `page.write_report`."""
    return render("comparison.html.j2", comparison([read_finished(d) for d in directories], top), Path(output))


def comparison(runs: Sequence[Finished], top: int = 20) -> dict:
    """Prepare the values that the template shows."""
    above = drop_mirrored(runs[0].summary)  # in the order of the first run for all, so that they share what is left
    runs = [replace(run, summary=run.summary.filter(~pl.col("parameter").is_in(above))) for run in runs]
    figures, names = plots.Figures(), run_names(runs)
    return {
        "title": f"Comparison of {len(runs)} runs",
        "runs": [
            {
                "colour": i % len(plots.SERIES) + 1,
                "name": name,
                "subtitle": subtitle(run.record),
                "directory": str(run.directory),
                "warnings": warnings(run),
            }
            for i, (name, run) in enumerate(zip(names, runs, strict=True))
        ],
        "facts": facts_table(runs, names),
        "parameters": parameter_table(runs, names),
        "intervals": interval_words([was_drawn(run.summary) for run in runs]),
        "figures": parameter_figures(runs, figures),
        "tests": likelihood_ratio_tests(runs, names),
        "breeding": breeding_values(runs, names, figures, top),
    }


def run_names(runs: Sequence[Finished]) -> list[str]:
    """The analysis names where they differ, else the folders' names; numbered where these are alike too."""
    for names in ([r.name for r in runs], [r.directory.name for r in runs]):
        if len(set(names)) == len(runs):
            return names
    return [f"{name} ({i})" for i, name in enumerate(names, 1)]


def facts_table(runs: Sequence[Finished], names: Sequence[str]) -> Table:
    """A row per fact, a column per run; those on which the runs differ come first and are marked."""
    facts_of_runs = [
        model_facts(run) | {name: value for _, items in facts(run.record) for name, value in items} for run in runs
    ]
    order = list(dict.fromkeys(key for facts_of_run in facts_of_runs for key in facts_of_run))
    rows = [(key, *(facts_of_run.get(key, "") for facts_of_run in facts_of_runs)) for key in order]
    differs = [len(set(row[1:])) > 1 for row in rows]
    rows = [
        (row[0], "yes" if d else "", *row[1:])
        for d, row in sorted(zip(differs, rows, strict=True), key=lambda pair: not pair[0])
    ]
    return Table("What was run", [Column("Fact"), Column("Differs"), *(Column(n) for n in names)], rows)


def model_facts(run: Finished) -> dict[str, str]:
    """'Model of weight': what it is the sum of; 'Term animal': what it is, with how its levels are related. Nothing of
    a regression."""
    section = model_section(run.record, intercept=traits_with_intercept(run))
    if section is None:
        return {}
    sums = {f"Model of {trait}": " + ".join(parts) for trait, parts in section["equations"]}
    return sums | {f"Term {name}": what for name, what, *_ in section["terms"].rows if name != "residual"}


# ------------------------------------------------------------------------------------------------ parameters


def _rows(run: Finished) -> dict[str, dict]:
    return {row["parameter"]: row for row in run.summary.iter_rows(named=True)}


def _shared(runs: Sequence[Finished]) -> list[str]:
    """Parameters that at least two runs have, in the order of the first run that has them."""
    counted_in: dict[str, int] = {}
    for run in runs:
        for name in run.summary["parameter"]:
            counted_in[name] = counted_in.get(name, 0) + 1
    return [name for name, n in counted_in.items() if n > 1]


def parameter_table(runs: Sequence[Finished], names: Sequence[str]) -> Table | None:
    """Mean and interval of every run (estimate and standard error, of REML), and the difference from the first run, of
    several the largest, in these standard deviations or errors; none for what the first run does not have.
    """
    shared, rows, drawn = _shared(runs), [_rows(run) for run in runs], [was_drawn(run.summary) for run in runs]
    if not shared:
        return None
    spreads = [
        [r[name]["sd"] for r in rows if name in r and known(r[name]["sd"]) and r[name]["sd"] > 0] for name in shared
    ]
    places = [decimals(min(s)) if s else 3 for s in spreads]
    columns = [text_column("Parameter", shared)]
    for run_name, run, of_draws in zip(names, rows, drawn, strict=True):
        rows_of_run = [run.get(name, {}) for name in shared]
        columns.append(number_column(run_name, [row.get("mean") for row in rows_of_run], places))
        ends = [(row.get("hpd_low"), row.get("hpd_high")) for row in rows_of_run]
        if not of_draws:
            errors = [row.get("sd") or None for row in rows_of_run]
            columns.append(number_column("SE", errors, places, "standard error"))
        elif any(known(low) for low, _ in ends):
            intervals = [interval(*low_high, p) for low_high, p in zip(ends, places, strict=True)]
            columns.append(text_column("95 % interval", intervals, "id"))
    apart = []
    for name, spread in zip(shared, spreads, strict=True):
        means = [r[name]["mean"] if name in r and known(r[name]["mean"]) else None for r in rows]
        differences = [mean - means[0] for mean in means[1:] if mean is not None] if means[0] is not None else []
        farthest = max(differences, key=abs, default=None)
        apart.append(farthest / float(np.mean(spread)) if spread and farthest is not None else None)
    if not any(spreads):  # of BLUP the variances were given
        return make_table("Parameters", columns)
    label, column_help = difference_column(drawn)
    columns.append(cell_column(label, signed(numbers(apart, 2)), column_help))
    return make_table("Parameters", columns, columns_words(drawn))


def _with_intervals(rows: dict[str, dict]) -> dict[str, dict]:
    """Estimates with intervals by their standard errors, where they have one."""
    ends = {"hpd_low": -NORMAL_95, "hpd_high": NORMAL_95}
    return {
        name: row | {key: row["mean"] + z * row["sd"] if row["sd"] else None for key, z in ends.items()}
        for name, row in rows.items()
    }


def interval_words(drawn: Sequence[bool]) -> str:
    """Describe the bars of the figures."""
    of_draws = "posterior means with 95 % highest-density intervals"
    of_estimates = "estimates by REML with 1.96 standard errors on either side"
    said = " and ".join([of_draws] * any(drawn) + [of_estimates] * (not all(drawn)))
    return f"{said[0].upper()}{said[1:]}."


def columns_words(drawn: Sequence[bool]) -> str:
    """Describe the columns with a short head (standard errors, and differences), for those who cannot point at it."""
    error = "SE: standard error, from the average information matrix of REML (how sharply the likelihood falls). "
    label, column_help = difference_column(drawn)
    return f"{error * (not all(drawn))}{label}: {column_help}."


def signed(column: Sequence[Number]) -> list[Number]:
    """A plus before what is above 0; what is shown as 0 has no sign."""
    return [
        replace(n, text=f"+{n.text}") if n.value is not None and n.value > 0 and n.text.strip("0.") else n
        for n in column
    ]


def difference_column(drawn: Sequence[bool]) -> tuple[str, str]:
    """Label and help of the column of differences of means, or estimates, from the first run."""
    label = "Run 2 \u2212 run 1" if len(drawn) == 2 else "Farthest run \u2212 run 1"
    if not any(drawn):
        return f"{label}, SE", "difference of the estimates in standard errors (SE)"
    of = "means in posterior standard deviations (SD)"
    of = of if all(drawn) else "means and estimates in the mean of their posterior standard deviations (SD) and SEs"
    return f"{label}, SD", f"difference of the {of}"


def parameter_figures(runs: Sequence[Finished], figures: plots.Figures) -> list[tuple[str, str, str]]:
    """Means and intervals of the runs, a figure per parameter: variances and their shares, not covariances.

    Estimates that were not drawn have intervals of 1.96 standard errors.
    """
    rows = [_rows(run) if was_drawn(run.summary) else _with_intervals(_rows(run)) for run in runs]
    chosen = [name for name in _shared(runs) if ".cov[" not in name][:FIGURES]
    out = []
    for name in chosen:
        draws_of_runs = [r.get(name, {}) for r in rows]
        mean, low, high = ([o.get(key) for o in draws_of_runs] for key in ("mean", "hpd_low", "hpd_high"))
        spread = [o["sd"] for o in draws_of_runs if known(o.get("sd")) and o["sd"] > 0]
        places = decimals(min(spread)) if spread else 3
        caption = "; ".join(
            f"run {i}: "
            + (number(m, places) or "none")
            + (f" ({interval(a, b, places)})" if interval(a, b, places) else "")
            for i, (m, a, b) in enumerate(zip(mean, low, high, strict=True), 1)
        )
        paint, described = plots.paint_intervals(mean, low, high), f"{caption[0].upper()}{caption[1:]}."
        out.append((name, figures.draw(paint, f"{name} by run", described, left=0.08, size=plots.SMALL), caption))
    return out


# ------------------------------------------------------------------------------------------------ likelihood ratios


def likelihood_ratio_tests(runs: Sequence[Finished], names: Sequence[str]) -> dict | None:
    """Test every two runs by REML; None without two such runs.

    The result has words for each test, then for all pairs that have none for one reason, and a table of the tests.
    """
    called = [f"run {i} ({name})" for i, name in enumerate(names, 1)]
    words_of_tests, tests = [], []
    without: dict[str, list[tuple[int, int]]] = {}  # reason -> pairs
    for i, j in combinations(range(len(runs)), 2):
        test = likelihood_ratio(runs[i], runs[j])
        if test is None:
            continue
        if isinstance(test, str):
            without.setdefault(test, []).append((i, j))
            continue
        of = {"a": called[i], "b": called[j]}
        first, lacks, distribution = describe_test(test, of[test.small], of[test.large])
        words_of_tests.append([f"Test of {first}.", f"{lacks[0].upper()}{lacks[1:]}; {distribution}."])
        tests.append((of[test.small], of[test.large], test))
    words_of_tests += [[f"{pairs_in_words(pairs, called)}: {reason}."] for reason, pairs in without.items()]
    return {"words": words_of_tests, "table": _table_of_tests(tests)} if words_of_tests else None


def pairs_in_words(pairs: Sequence[tuple[int, int]], called: Sequence[str]) -> str:
    """'Every two of a, b and c', or 'C with each of a and b; d and e'; called: what each of all runs is."""
    every = lambda places: listed([called[k] for k in sorted(places)], most=len(called))
    remaining, parts = set(pairs), []
    met = {k for pair in pairs for k in pair}
    if len(met) > 2 and len(remaining) == len(met) * (len(met) - 1) // 2:
        remaining, parts = set(), [f"every two of {every(met)}"]
    while remaining:  # the run first that most of the others are paired with
        hub = max(sorted(met), key=lambda k: sum(k in pair for pair in remaining))
        hub_pairs = {pair for pair in remaining if hub in pair}
        partners = {k for pair in hub_pairs for k in pair} - {hub}
        parts.append(f"{called[hub]} with each of {every(partners)}" if len(hub_pairs) > 1 else every({hub, *partners}))
        remaining -= hub_pairs
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}"


def _table_of_tests(rows: Sequence[tuple[str, str, LikelihoodRatio]]) -> Table | None:
    """rows: (the smaller model, the larger one, their test)."""
    tests = [test for *_, test in rows]
    statistics = [Number(number(test.statistic, 4), test.statistic) for test in tests]
    lacking = [", ".join([*test.lacking, *describe_restrictions(test)]) for test in tests]
    freedom = [test.degrees_of_freedom for test in tests]
    without_boundary = [test.p_without_boundary for test in tests]
    columns = [
        text_column("Smaller model", [small for small, *_ in rows]),
        text_column("Larger model", [large for _, large, _ in rows]),
        text_column("What the smaller lacks", lacking),
        cell_column("D", statistics, "twice the difference of the log likelihoods"),
        text_column("Degrees of freedom", freedom, "id", "of the chi-squares that D is compared with"),
        cell_column("p", [Number(p_in_words(test.p), test.p) for test in tests]),
        cell_column(
            "p, no boundary",
            [Number(p_in_words(p), p) for p in without_boundary],
            "as if no variance were on the boundary of its range",
        ),
    ]
    return make_table("Likelihood-ratio tests", columns) if rows else None


# ------------------------------------------------------------------------------------------------ breeding values


def breeding_values(runs: Sequence[Finished], names: Sequence[str], figures: plots.Figures, top: int) -> list[dict]:
    """The first run against each other one, by component: correlations, a scatter, the ranks of the top animals."""
    chosen = [(c, k) for c in _related(runs[0]) for k in range(1, len(runs)) if c in _related(runs[k])]
    items = [_compare_component(runs, names, component, k, figures, top) for component, k in chosen]
    return [item for item in items if item is not None]


def polygenic_words(runs: Sequence[int]) -> str:
    """Says of which runs, by their numbers, the values are not all of a breeding value; '' if of none."""
    which = listed([f"run {n}" for n in runs])
    return f" In {which} these are polygenic values, without what the effects of SNPs add to them." if runs else ""


def _related(run: Finished) -> list[tuple[str, str, str]]:
    return [c for c in run.components if c[0] in run.related]


def _compare_component(
    runs: Sequence[Finished],
    names: Sequence[str],
    component: tuple[str, str, str],
    k: int,
    figures: plots.Figures,
    top: int,
) -> dict | None:
    """Run k against the first, of the levels that both have; None where there are few, or values do not vary."""
    both = {1: runs[0], k + 1: runs[k]}
    a, b = (run.component(*component).select("level", "mean").drop_nulls() for run in both.values())
    joined = a.rename({"mean": "a"}).join(b.rename({"mean": "b"}), on="level", maintain_order="left")
    ranked = rank_levels(joined)
    facts = compute_agreement(ranked, top)
    if facts["correlation"] is None:
        return None
    term, effect, trait = component
    label = model_words.component_label(effect, trait, term)
    values, (called, head) = runs[0].value_name(*component), runs[0].level_names(term)
    farthest = ranked.row(ranked["places"].abs().arg_max(), named=True)
    caption = (
        f"{counted(ranked.height, called)} in both runs: correlation {facts['correlation']:.4f}, of the ranks "
        f"{facts['rank_correlation']:.4f}. {facts['in_both_top']} of the {facts['top']} highest of run 1 are among the "
        f"{facts['top']} highest of run {k + 1}; half of all {called}s move by at most {facts['median_places']:,.0f} "
        f"places, {farthest['level']} by {facts['most_places']:,} (from {farthest['rank_a']:,} to "
        f"{farthest['rank_b']:,}).{polygenic_words([n for n, run in both.items() if component in run.polygenic])}"
    )
    title = f"{values.capitalize()}s of run {k + 1} against run 1, {label}"
    paint = plots.paint_scatter(ranked["a"].to_numpy(), ranked["b"].to_numpy())
    return {
        "label": label,
        "runs": f"run 1 and run {k + 1}",
        "caption": caption,
        "figure": figures.draw(paint, title, caption, x_label="run 1"),
        "table": _ranks(ranked, label, (names[0], names[k]), facts["top"], called, head),
    }


def _ranks(pair: pl.DataFrame, label: str, names: tuple[str, str], top: int, called: str, head: str) -> Table:
    """Levels among the `top` of either run: values and ranks in both, and the change."""
    shown = pair.filter((pl.col("rank_a") <= top) | (pl.col("rank_b") <= top)).sort("rank_a")
    places = decimals(as_number(pair["a"].std()))
    change = signed(counts(shown["rank_a"] - shown["rank_b"]))
    columns = [
        number_column("Rank", shown["rank_a"], help=names[0]),
        text_column(head, shown["level"], "id"),
        number_column(names[0], shown["a"], places),
        number_column(names[1], shown["b"], places),
        number_column("New rank", shown["rank_b"], help=names[1]),
        cell_column("Change", change, "places gained, or lost where negative"),
    ]
    return make_table(
        f"{label}: {called}s among the {top} highest of {listed(names, 'or')}",
        columns,
        f"Rank: by {names[0]}, from the highest. New rank: by {names[1]}. Change: places gained, or lost if negative.",
    )
