"""SNP effects on the page: along the genome, by size, against the pedigree; the best SNPs, windows and animals."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.report import method_words, plots
from mmgibbs.report.breeding import dated, extremes, trend_of_means
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    FilledColumn,
    Number,
    Table,
    as_number,
    bar_column,
    bars,
    bars_words,
    cell_column,
    counted,
    decimals,
    describe_shown_rows,
    figure,
    interval_range,
    make_table,
    number,
    number_column,
    percent,
    text_column,
)
from mmgibbs.report.joint_markers import joint_items
from mmgibbs.results.markers import GEBV, TOTAL, column_suffix

LARGEST = 100  # effects that are shown in their order
LIKELY = 0.5  # probability from which a SNP is counted in words
PARAMETERS = {  # end of the name before '[' -> in words
    "var": "variance of the genomic breeding values among the genotyped animals: with their linkage "
    "disequilibrium and relationships, not the sum of 2pqa²",
    "effect_var": "variance of the effect of one copy of an allele under the prior (of an effect that is not 0; of the "
    "class of factor 1), on the scale of the analysis",
    "cov": "covariance of the genomic breeding values of two traits among the genotyped animals",
    "corr": "genomic correlation: of the breeding values of two traits among the genotyped animals",
    "effect_cov": "covariance of the effects of a SNP on two traits under the prior, of SNPs with an effect on both",
    "effect_corr": "correlation of the effects of a SNP on two traits under the prior, of SNPs with an effect on both",
    "pi": "share of the SNPs in each class (or with effects on a set of traits), 0 for no effect; it trades off with "
    "the variance of an effect, so that both are known less well than the variance of the breeding values",
    "in_class": "number of SNPs in each class",
    "scale": "scale S of the variances of single SNPs",
    "lambda2": "lambda² of the lasso: the larger, the smaller the effects",
    "tau2": "square of the global scale of the horseshoe, which all effects share",
}
OF_CHROMOSOMES = (
    "Chromosomes covary, so that their variances alone do not add up to that of the genomic values, nor the shares to "
    "100 %: all variances and all covariances with the rest together do."
)


class _Term(NamedTuple):
    term: str
    trait: str
    label: str
    ending: str  # of its columns in markers.parquet


def genomic_section(run: Finished, figures: plots.Figures, top: int) -> dict | None:
    """Make the section of SNP effects; None for a run without them, or whose solutions are gone."""
    terms = run.record.get("analysis", {}).get("model", {}).get("markers") or {}
    if run.markers is None or run.solutions is None or not terms:
        return None
    traits = list(run.record["analysis"]["traits"])
    sections = [
        _Term(name, trait, f"{name}, {trait}", column_suffix(name, trait, terms))
        for name, section in terms.items()
        for trait in section.get("traits") or traits
    ]
    return {
        "items": [_item(run, term, figures, top) for term in sections],
        "together": joint_items(run, figures, top),
        "quality": quality_table(run.record.get("data", {}).get("genotypes", {})),
        "parameters": explained(run.summary["parameter"].to_list(), list(terms)),
    }


def _item(run: Finished, of: _Term, figures: plots.Figures, top: int) -> dict:
    assert run.markers is not None
    snps = concatenate_positions(run.markers.filter(pl.col(f"effect_{of.ending}").is_not_null()))
    wide = [_manhattan(snps, of, figures)]
    windows = None if run.windows is None else run.windows.filter(term=of.term, trait=of.trait)
    if windows is not None and windows.height:
        wide.append(_window_figure(windows, of, figures))
    values = _values(run, of)
    tables = [_top_snps(snps, of, top)]
    if windows is not None and windows.height:
        tables.append(_top_windows(windows, of, top))
    if run.chromosomes is not None:
        chromosomes = run.chromosomes.filter(term=of.term, trait=of.trait)
        tables.append(_chromosome_table(chromosomes, of, run.marker_draws))
    small = [_effect_sizes(snps, of, figures), *_plot_against_pedigree(values, of, figures)]
    best = dated(run, values["best"])
    if best.height:
        alone = "These are the genotyped animals alone."
        small += trend_of_means(best, values["what"], figures, values["called"], alone)
    return {
        "label": of.label,
        "wide": wide,
        "figures": small,
        "tables": [t for t in tables if t.rows],
        "animals": extremes(best, values["what"], top, run.solved, of_reliability=values["reliability"])
        if best.height
        else None,
    }


# ------------------------------------------------------------------------------------------------ along the genome


def concatenate_positions(frame: pl.DataFrame, place: str = "position") -> pl.DataFrame:
    """Add `at`, positions with chromosomes one after another, else numbers, and `chromosome_number`, from 0."""
    frame = frame.with_row_index("row")
    number = pl.col("chromosome").cast(pl.Float64, strict=False)
    frame = frame.sort(number, "chromosome", place, "row", nulls_last=True, maintain_order=True)
    frame = frame.with_columns(chromosome_number=pl.struct("chromosome").rle_id().cast(pl.Int64))
    if frame[place].null_count() or frame["chromosome"].null_count():
        return frame.with_columns(at=pl.int_range(1, pl.len() + 1).cast(pl.Float64))
    lengths = frame.group_by("chromosome_number").agg(length=pl.col(place).max()).sort("chromosome_number")
    starts = lengths.select("chromosome_number", before=pl.col("length").cum_sum() - pl.col("length"))
    joined = frame.join(starts, on="chromosome_number", how="left", maintain_order="left")
    return joined.with_columns(at=pl.col(place) + pl.col("before")).drop("before")


def chromosome_ticks(frame: pl.DataFrame) -> list[tuple[float, str]]:
    """(middle, name) of each chromosome; names that are longer than a number are left out of a drawing."""
    middles = frame.group_by("chromosome_number", "chromosome").agg((pl.col("at").min() + pl.col("at").max()) / 2)
    plain = re.compile(r"[0-9A-Za-z]{1,3}")
    return [
        (at, name if name is not None and plain.fullmatch(name) else "")
        for _, name, at in middles.sort("chromosome_number").iter_rows()
    ]


def _manhattan(snps: pl.DataFrame, of: _Term, figures: plots.Figures) -> tuple[str, str, str]:
    pip = f"pip_{of.ending}"
    by_chance = pip in snps.columns
    heights = snps[pip] if by_chance else snps[f"effect_{of.ending}"].abs()
    values = heights.to_numpy()
    highest = int(np.nanargmax(values))
    name, where = snps["snp"][highest], snps["chromosome"][highest]
    peak = f"the highest is {name}" + (f" on chromosome {where}" if where is not None else "")
    if by_chance:
        likely = int(np.count_nonzero(values >= LIKELY))
        caption = (
            f"Posterior probability that a SNP has an effect, {counted(len(values), 'SNP')}; {peak} with "
            f"{number(values[highest], 3)}, {likely:,} {'is' if likely == 1 else 'are'} at {LIKELY} or above. "
            "Neighbours that are inherited together share the probability of one QTL."
        )
    else:
        caption = (
            f"Size of the effect of one copy of an allele, without its sign, {counted(len(values), 'SNP')}; {peak} "
            f"with {figure(values[highest])}. Under this prior every SNP has an effect."
        )
    paint = plots.paint_along_genome(
        snps["at"].to_numpy(), values, snps["chromosome_number"].to_numpy(), chromosome_ticks(snps), ceiling=by_chance
    )
    heading = "Probability of an effect along the genome" if by_chance else "Size of effects along the genome"
    label = "SNP number" if snps["chromosome"].null_count() else "chromosome"
    return heading, figures.draw(paint, f"{heading}, {of.label}", caption, 0.07, label, size=plots.WIDE), caption


def _window_figure(windows: pl.DataFrame, of: _Term, figures: plots.Figures) -> tuple[str, str, str]:
    frame = concatenate_positions(windows, "start")
    values = 100 * frame["share"].to_numpy()
    best, above = int(np.argmax(values)), windows["above"][0]
    likely = int((windows["ppa"] >= LIKELY).sum())
    caption = (
        f"Share of the genetic variance of each of {counted(len(values), 'window')}, in per cent; the largest has "
        f"{number(values[best], 1)} % (from {frame['first_snp'][best]} to {frame['last_snp'][best]}). {likely:,} "
        f"{'has' if likely == 1 else 'have'} more than {100 * above:g} % with a probability of {LIKELY} or above."
    )
    paint = plots.paint_along_genome(
        frame["at"].to_numpy(), values, frame["chromosome_number"].to_numpy(), chromosome_ticks(frame), stems=True
    )
    heading = "Genetic variance along the genome, in per cent"
    label = "window number" if windows["chromosome"].null_count() else "chromosome"
    return heading, figures.draw(paint, f"{heading}, {of.label}", caption, 0.07, label, size=plots.WIDE), caption


# ------------------------------------------------------------------------------------------------ sizes, and animals


def _effect_sizes(snps: pl.DataFrame, of: _Term, figures: plots.Figures) -> tuple[str, str, str]:
    effects = np.sort(np.abs(snps[f"effect_{of.ending}"].to_numpy()))[::-1]
    squares = np.cumsum(effects**2)
    half = int(np.searchsorted(squares, squares[-1] / 2)) + 1 if squares[-1] > 0 else 0
    caption = (
        f"Sizes of the effects (posterior means) in order, the largest first: from {figure(effects[0])} down to a "
        f"median of {figure(float(np.median(effects)))}. The {half:,} largest have half of the sum of squares."
    )
    caption += f" Shown are the first {LARGEST}." if len(effects) > LARGEST else ""
    paint = plots.paint_in_order(effects[:LARGEST])
    title = f"Sizes of effects in order, {of.label}"
    return "Sizes of effects", figures.draw(paint, title, caption, x_label="SNPs, largest effect first"), caption


def _values(run: Finished, of: _Term) -> dict:
    """Genomic and polygenic values, side by side where there are both; what is best to select by."""
    assert run.solutions is not None, "only mixed models have SNP effects"
    solutions = run.solutions.filter(trait=of.trait)
    gebv, total = solutions.filter(term=of.term, effect=GEBV), solutions.filter(effect=TOTAL)
    total = total.filter(pl.col("term").str.split("+").list.contains(of.term))
    if not total.height:
        return {
            "best": gebv,
            "what": f"{of.label}, genomic",
            "called": "genomic breeding value",
            "both": None,
            "reliability": method_words.genomic_reliability_words(run.record),
        }
    term = total["term"][0].partition("+")[0]
    polygenic = solutions.filter(pl.col("term") == term)
    both = gebv.select("level", gebv="mean").join(polygenic.select("level", polygenic="mean"), on="level")
    what = f"{of.trait}, genomic and polygenic"
    called = "sum of genomic and polygenic value"
    return {
        "best": total,
        "what": what,
        "called": called,
        "both": both.drop_nulls(),
        "reliability": method_words.genomic_reliability_words(run.record, term),
    }


def _plot_against_pedigree(values: dict, of: _Term, figures: plots.Figures) -> list[tuple[str, str, str]]:
    both = values["both"]
    if both is None or both.height < 3:
        return []
    x, y = (both[c].to_numpy() for c in ("gebv", "polygenic"))
    apart = "the pedigree adds little to the SNPs" if x.std() > 3 * y.std() else "both contribute"
    if y.std() > 3 * x.std():
        apart = "the SNPs explain little"
    r = float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else float("nan")
    caption = (
        f"Polygenic value (up) against genomic value (right) of {counted(both.height, 'animal')}: standard deviations "
        f"{figure(float(y.std()))} and {figure(float(x.std()))}, correlation {number(r, 2) or 'unknown'}; {apart}."
    )
    paint = plots.paint_cloud(x, y)
    title = f"Polygenic against genomic values, {of.label}"
    return [("Genomic and polygenic values", figures.draw(paint, title, caption, x_label="genomic value"), caption)]


# ------------------------------------------------------------------------------------------------ tables


def _top_snps(snps: pl.DataFrame, of: _Term, top: int) -> Table:
    effect, sd, pip = (f"{name}_{of.ending}" for name in ("effect", "effect_sd", "pip"))
    by = [pl.col(pip)] if pip in snps.columns else []
    chosen = snps.sort(*by, pl.col(effect).abs(), descending=True).head(top)
    places = decimals(as_number(chosen[sd].median()))
    columns = [
        number_column("Rank", range(1, chosen.height + 1)),
        text_column("SNP", chosen["snp"], "id"),
        *_place_columns(chosen, "position"),
    ]
    if chosen["counted"].count():
        columns.append(text_column("Allele", chosen["counted"], help="whose copies are counted"))
    columns += [
        number_column("Frequency", chosen["frequency"], 3, "of the counted allele among the genotyped animals"),
        number_column("Effect", chosen[effect], places, "of one copy of the counted allele, posterior mean"),
        number_column("SD", chosen[sd], places, "posterior standard deviation"),
    ]
    if by:
        columns.append(number_column("PIP", chosen[pip], 3, "posterior probability that the effect is not 0"))
    what = "the most probable effects" if by else "the largest effects"
    return make_table(
        f"{of.label}: {what}", columns, describe_shown_rows(chosen.height, snps.height, "markers.parquet")
    )


def _place_columns(frame: pl.DataFrame, place: str) -> list[FilledColumn]:
    """Chromosome and place, where they are known."""
    columns = []
    if frame["chromosome"].count():
        numbered = [as_number(v) for v in frame["chromosome"].cast(pl.Float64, strict=False)]
        cells = [Number(name or "", v) for name, v in zip(frame["chromosome"], numbered, strict=True)]
        columns.append(cell_column("Chromosome", cells))
    if frame[place].count():
        are_integers = all(v is None or v == int(v) for v in frame[place])
        columns.append(number_column(place.capitalize(), frame[place], 0 if are_integers else 3))
    return columns


def _top_windows(windows: pl.DataFrame, of: _Term, top: int) -> Table:
    chosen = windows.sort("ppa", "share", descending=True).head(top)
    share, low, high = (percent(chosen[c]) for c in ("share", "share_low", "share_high"))
    above = 100 * windows["above"][0]
    drawn = bars(share, low, high)
    columns = [
        number_column("Rank", range(1, chosen.height + 1)),
        text_column("From", chosen["first_snp"], "id"),
        text_column("To", chosen["last_snp"], "id"),
        *_place_columns(chosen, "start"),
        number_column("SNPs", chosen["snps"]),
        number_column("Share %", share, 2, "of the genetic variance among the genotyped animals"),
        number_column("Low", low, 2, "2.5 % of the draws"),
        number_column("High", high, 2, "97.5 % of the draws"),
        bar_column("95 % interval", drawn),
        number_column(f"P(> {above:g} %)", chosen["ppa"], 3, "posterior probability that the share is larger"),
    ]
    if chosen["p_any"].count():
        columns.append(number_column("P(any)", chosen["p_any"], 3, "posterior probability that some SNP has an effect"))
    return make_table(
        f"{of.label}: windows",
        columns,
        describe_shown_rows(chosen.height, windows.height, "windows.parquet"),
        f"From {windows['draws'][0]:,} draws of the effects. Shares need not add up to 100 %: windows covary.",
        *bars_words({"": interval_range(low, high)}, drawn, 2),
    )


def _chromosome_table(chromosomes: pl.DataFrame, of: _Term, draws: int | None) -> Table:
    """draws: of the effects, which it was made from; None where unknown."""
    low, high = chromosomes["variance_low"], chromosomes["variance_high"]
    drawn = bars(chromosomes["variance"], low, high)
    places = decimals(as_number(chromosomes["variance_sd"].median()))
    share_help = "variance in per cent of that of the genomic values"
    columns = [
        text_column("Chromosome", ["no place" if v is None else str(v) for v in chromosomes["chromosome"]]),
        number_column("SNPs", chromosomes["snps"]),
        number_column(
            "Variance", chromosomes["variance"], places, "of the sum of its effects among the genotyped animals"
        ),
        number_column("Low", low, places, "2.5 % of the draws"),
        number_column("High", high, places, "97.5 % of the draws"),
        bar_column("95 % interval", drawn),
        number_column("Covariance with the rest", chromosomes["covariance_with_rest"], places, "of the genome"),
        number_column("Share %", percent(chromosomes["share"]), 1, share_help),
    ]
    return make_table(
        f"{of.label}: chromosomes",
        columns,
        f"From {f'{draws:,}' if draws else 'the kept'} draws of the effects (output.save_marker_draws), while "
        f"{of.term}.var in the tables of variances is from every draw.",
        OF_CHROMOSOMES * (chromosomes.height > 1),
        *bars_words({"": interval_range(low, high)}, drawn, places),
    )


def quality_table(counted_: dict) -> Table | None:
    """Make the table of what quality control left out, and why."""
    if not {"read", "dropped", "kept"} <= set(counted_):
        return None
    rows = [("read", counted_["read"])]
    rows += [(f"{d['what']} left out: {d['why']}", {d["what"]: d["count"]}) for d in counted_["dropped"]]
    rows.append(("kept", counted_["kept"]))
    return make_table(
        f"Quality control of {counted_.get('file', 'the genotypes')}",
        [
            text_column("Step", [name for name, _ in rows]),
            number_column("SNPs", [of.get("SNPs") for _, of in rows]),
            number_column("Animals", [of.get("animals") for _, of in rows]),
        ],
        "Steps in this order; markers.parquet says of each SNP why it was left out.",
    )


def explained(parameters: list[str], terms: list[str]) -> list[tuple[str, str]]:
    """(name, meaning) of each kind of genomic parameter of the summary."""
    kinds = dict.fromkeys(p.partition("[")[0] for p in parameters)
    names = [(f"{term}.{kind}", words) for term in terms for kind, words in PARAMETERS.items()]
    return [(name, words) for name, words in names if name in kinds]
