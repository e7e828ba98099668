"""SNP effects on several traits with one prior: the sets of traits that SNPs act on, and how effects go together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Column,
    Number,
    Table,
    as_number,
    bars,
    counted,
    counts,
    decimals,
    lines_words,
    listed,
    number,
    numbers,
)
from mmgibbs.results.markers import column_suffix

PLOTTED = 3  # pairs of traits whose effects are drawn against each other
LIKELY = 0.5  # probability from which a SNP is counted
STATE = "state_"  # columns of markers.parquet
NONE = ("none", "no trait")  # the state without effects; the second where a trait has the name of the first


def joint_items(run: Finished, figures: plots.Figures, top: int) -> list[dict]:
    """One for each term whose effects on several traits depend on each other, each with label, figures and tables."""
    items = []
    terms = run.record["analysis"]["model"]["markers"]
    every = list(run.record["analysis"]["traits"])
    for name, section in terms.items():
        traits = list(section.get("traits") or every)
        if len(traits) > 1 and (section.get("across_traits") or "independent") != "independent":
            items.append(_item(run, name, traits, list(terms), figures, top))
    return items


def _item(run: Finished, term: str, traits: list[str], terms: list[str], figures: plots.Figures, top: int) -> dict:
    assert run.markers is not None
    states = _states(run.markers, term, traits, terms)
    snps = run.markers.filter(pl.col(f"effect_{column_suffix(term, traits[0], terms)}").is_not_null())
    tables = [_correlations(run.summary, term, traits)]
    if states:
        tables += [_shares(run.summary, snps, term, states), _top_snps(snps, term, traits, terms, states, top)]
    pairs = list(combinations(traits, 2))[:PLOTTED]
    return {
        "label": f"{term}: {', '.join(traits[:-1])} and {traits[-1]} together",
        "figures": [_pair(snps, term, a, b, terms, figures) for a, b in pairs],
        "tables": [t for t in tables if t.rows],
    }


def _states(markers: pl.DataFrame, term: str, traits: list[str], terms: list[str]) -> dict[str, str]:
    """Set of traits -> its column, in the order of the file; {} where classes are shared, or there are none."""
    start = STATE + (f"{term}_" if len(terms) > 1 else "")
    sets = {"+".join(subset) for n in range(1, len(traits) + 1) for subset in combinations(traits, n)}
    known = {start + label: label for label in (*NONE, *sets)}
    return {known[c]: c for c in markers.columns if c in known}


def _correlations(summary: pl.DataFrame, term: str, traits: list[str]) -> Table:
    """Of effects under the prior, and of breeding values as they are."""
    kinds = (("effect_corr", "effects of a SNP with effects on both"), ("corr", "breeding values of the genotyped"))
    wanted = [(a, b, kind, words) for a, b in combinations(traits, 2) for kind, words in kinds]
    rows = [
        (f"{a} and {b}", words, summary.filter(pl.col("parameter") == f"{term}.{kind}[{a},{b}]"))
        for a, b, kind, words in wanted
    ]
    known = [(pair, words, estimates.row(0, named=True)) for pair, words, estimates in rows if estimates.height]
    mean, sd, low, high = ([estimates[c] for _, _, estimates in known] for c in ("mean", "sd", "hpd_low", "hpd_high"))
    columns = [
        Column("Traits", "id"),
        Column("Correlation of"),
        Column("Mean", "number"),
        Column("SD", "number", "posterior standard deviation"),
        Column("Low", "number", "of the 95 % interval of highest density"),
        Column("High", "number"),
        Column("Interval, \u22121 to 1", "bar"),
    ]
    cells = [
        [pair for pair, _, _ in known],
        [words for _, words, _ in known],
        *(numbers(values, 3) for values in (mean, sd, low, high)),
        drawn := bars(mean, low, high, (-1.0, 1.0)),
    ]
    note = " ".join(lines_words(drawn))
    return Table(f"{term}: correlations between traits", columns, list(zip(*cells, strict=True)), note)


def _shares(summary: pl.DataFrame, snps: pl.DataFrame, term: str, states: dict[str, str]) -> Table:
    share = [summary.filter(pl.col("parameter") == f"{term}.pi[{state}]") for state in states]
    of = lambda column: [100 * estimates[column][0] if estimates.height else None for estimates in share]
    mean, low, high = of("mean"), of("hpd_low"), of("hpd_high")
    chances = [snps[column].to_numpy() for column in states.values()]
    columns = [
        Column("Effects on", "id"),
        Column("Share %", "number", "of the SNPs under the prior, posterior mean of pi"),
        Column("Low", "number", "of the 95 % interval of highest density"),
        Column("High", "number"),
        Column("Interval, 0 to 100", "bar"),
        Column("SNPs", "number", "expected number: the sum of the probabilities of all SNPs"),
        Column(f"P ≥ {LIKELY}", "number", f"SNPs with a probability of {LIKELY} or more"),
    ]
    cells = [
        [_words(state) for state in states],
        *(numbers(values, 2) for values in (mean, low, high)),
        drawn := bars(mean, low, high, (0.0, 100.0)),
        numbers([float(np.nansum(p)) for p in chances], 1),
        counts([int(np.count_nonzero(p >= LIKELY)) for p in chances]),
    ]
    note = f"Of {counted(snps.height, 'SNP')}. Neighbours that are inherited together share the probability of one QTL."
    note = " ".join([note, *lines_words(drawn)])
    return Table(f"{term}: sets of traits that a SNP acts on", columns, list(zip(*cells, strict=True)), note)


def _words(state: str) -> str:
    return listed(state.split("+"))


def _top_snps(
    snps: pl.DataFrame, term: str, traits: list[str], terms: list[str], states: dict[str, str], top: int
) -> Table:
    """Those most probably with effects on several traits."""
    several = [column for state, column in states.items() if "+" in state]
    frame = snps.with_columns(several=pl.sum_horizontal(several)).sort("several", descending=True).head(top)
    chances = frame.select(several).to_numpy()
    best, names = chances.argmax(axis=1), [state for state in states if "+" in state]
    columns = [
        Column("Rank", "number"),
        Column("SNP", "id"),
        Column("P(several)", "number", "posterior probability of effects on two traits or more"),
        Column("Most likely", "id", "of these sets of traits"),
        Column("P", "number", "posterior probability of effects on just these traits"),
        *(Column(f"Effect on {t}", "number", "of one copy of the counted allele, posterior mean") for t in traits),
    ]
    effects = [frame[f"effect_{column_suffix(term, trait, terms)}"] for trait in traits]
    cells: list[Sequence[str | Number]] = [
        counts(range(1, frame.height + 1)),
        frame["snp"].to_list(),
        numbers(frame["several"].to_list(), 3),
        [_words(names[k]) for k in best],
        numbers([float(p[k]) for p, k in zip(chances, best, strict=True)], 3),
        *(numbers(of.to_list(), decimals(as_number(of.abs().median()))) for of in effects),
    ]
    note = f"{frame.height:,} of {snps.height:,}; markers.parquet has all." if frame.height < snps.height else ""
    return Table(f"{term}: SNPs with effects on several traits", columns, list(zip(*cells, strict=True)), note)


def _pair(
    snps: pl.DataFrame, term: str, a: str, b: str, terms: list[str], figures: plots.Figures
) -> tuple[str, str, str]:
    x, y = (snps[f"effect_{column_suffix(term, trait, terms)}"].to_numpy() for trait in (a, b))
    scaled = [v / v.std() if v.std() > 0 else v for v in (x, y)]
    r = float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else float("nan")
    same = np.count_nonzero(x * y > 0) / max(1, len(x))
    caption = (
        f"Effect on {b} (up) against effect on {a} (right), each in its standard deviations, posterior means "
        f"of {counted(len(x), 'SNP')}: correlation {number(r, 2) or 'unknown'}, {number(100 * same, 0)} % have the "
        "same sign in both. "
        "Means of uncertain effects are drawn together: the table has the correlation under the model."
    )
    heading = f"Effects on {a} and {b}"
    paint = plots.paint_cloud(scaled[0], scaled[1])
    return heading, figures.draw(paint, f"{heading}, {term}", caption, x_label=f"effect on {a}"), caption
