"""SNP effects on several traits with one prior: the sets of traits that SNPs act on, and how effects go together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Table,
    as_number,
    bar_column,
    bars,
    counted,
    decimals,
    describe_shown_rows,
    lines_words,
    listed,
    make_table,
    number,
    number_column,
    percent,
    text_column,
)
from mmgibbs.results.markers import column_suffix

PLOTTED = 3  # pairs of traits whose effects are drawn against each other
LIKELY = 0.5  # probability from which a SNP is counted
STATE = "state_"  # columns of markers.parquet
NONE = ("none", "no trait")  # the state without effects; the second where a trait has the name of the first


def joint_items(run: Finished, figures: plots.Figures, top: int) -> list[dict]:
    """Make label, figures and tables for each term whose effects on several traits depend on each other."""
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
    """Make the table of correlations of effects under the prior, and of breeding values as they are."""
    kinds = (("effect_corr", "effects of a SNP with effects on both"), ("corr", "breeding values of the genotyped"))
    wanted = [(a, b, kind, words) for a, b in combinations(traits, 2) for kind, words in kinds]
    rows = [
        (f"{a} and {b}", words, summary.filter(pl.col("parameter") == f"{term}.{kind}[{a},{b}]"))
        for a, b, kind, words in wanted
    ]
    known = [(pair, words, estimates.row(0, named=True)) for pair, words, estimates in rows if estimates.height]
    mean, sd, low, high = ([estimates[c] for _, _, estimates in known] for c in ("mean", "sd", "hpd_low", "hpd_high"))
    drawn = bars(mean, low, high, (-1.0, 1.0))
    columns = [
        text_column("Traits", [pair for pair, _, _ in known], "id"),
        text_column("Correlation of", [words for _, words, _ in known]),
        number_column("Mean", mean, 3),
        number_column("SD", sd, 3, "posterior standard deviation"),
        number_column("Low", low, 3, "of the 95 % interval of highest density"),
        number_column("High", high, 3),
        bar_column("Interval, \u22121 to 1", drawn),
    ]
    return make_table(f"{term}: correlations between traits", columns, *lines_words(drawn))


def _shares(summary: pl.DataFrame, snps: pl.DataFrame, term: str, states: dict[str, str]) -> Table:
    share = [summary.filter(pl.col("parameter") == f"{term}.pi[{state}]") for state in states]
    mean, low, high = (
        percent(estimates[column][0] if estimates.height else None for estimates in share)
        for column in ("mean", "hpd_low", "hpd_high")
    )
    chances = [snps[column].to_numpy() for column in states.values()]
    likely = [int(np.count_nonzero(p >= LIKELY)) for p in chances]
    drawn = bars(mean, low, high, (0.0, 100.0))
    sum_help = "expected number: the sum of the probabilities of all SNPs"
    columns = [
        text_column("Effects on", [_words(state) for state in states], "id"),
        number_column("Share %", mean, 2, "of the SNPs under the prior, posterior mean of pi"),
        number_column("Low", low, 2, "of the 95 % interval of highest density"),
        number_column("High", high, 2),
        bar_column("Interval, 0 to 100", drawn),
        number_column("SNPs", [float(np.nansum(p)) for p in chances], 1, sum_help),
        number_column(f"P ≥ {LIKELY}", likely, help=f"SNPs with a probability of {LIKELY} or more"),
    ]
    return make_table(
        f"{term}: sets of traits that a SNP acts on",
        columns,
        f"Of {counted(snps.height, 'SNP')}. Neighbours that are inherited together share the probability of one QTL.",
        *lines_words(drawn),
    )


def _words(state: str) -> str:
    return listed(state.split("+"))


def _top_snps(
    snps: pl.DataFrame, term: str, traits: list[str], terms: list[str], states: dict[str, str], top: int
) -> Table:
    """List the SNPs that are most probable to have effects on several traits."""
    several = [column for state, column in states.items() if "+" in state]
    frame = snps.with_columns(several=pl.sum_horizontal(several)).sort("several", descending=True).head(top)
    chances = frame.select(several).to_numpy()
    best, names = chances.argmax(axis=1), [state for state in states if "+" in state]
    effects = {trait: frame[f"effect_{column_suffix(term, trait, terms)}"] for trait in traits}
    columns = [
        number_column("Rank", range(1, frame.height + 1)),
        text_column("SNP", frame["snp"], "id"),
        number_column("P(several)", frame["several"], 3, "posterior probability of effects on two traits or more"),
        text_column("Most likely", [_words(names[k]) for k in best], "id", "of these sets of traits"),
        number_column("P", chances.max(axis=1).tolist(), 3, "posterior probability of effects on just these traits"),
        *(
            number_column(
                f"Effect on {trait}",
                values,
                decimals(as_number(values.abs().median())),
                "of one copy of the counted allele, posterior mean",
            )
            for trait, values in effects.items()
        ),
    ]
    return make_table(
        f"{term}: SNPs with effects on several traits",
        columns,
        describe_shown_rows(frame.height, snps.height, "markers.parquet"),
    )


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
