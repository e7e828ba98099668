"""gwas.html: tests along the genome, against what chance gives, and the strongest SNPs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from scipy import stats

from mmgibbs.association.results import Association, describe_association, format_p, list_tests, strongest
from mmgibbs.association.tables import trait_columns
from mmgibbs.report import plots
from mmgibbs.report.genomic import chromosome_ticks, concatenate_positions
from mmgibbs.report.html_tables import (
    FilledColumn,
    Number,
    Table,
    cell_column,
    decimals,
    drop_empty_columns,
    make_table,
    number_column,
    text_column,
)
from mmgibbs.report.render import render

TOP = 20  # SNPs of a table
QUANTILES = 2000  # points of a quantile-quantile plot


def write_page(association: Association, path: Path) -> Path:
    """Write the page and return its path."""
    return render("gwas.html.j2", page(association), path)


def page(association: Association) -> dict[str, Any]:
    """Prepare the values that the template shows."""
    facts, figures = association.facts, plots.Figures()
    frame = concatenate_positions(association.values.filter(pl.col("left_out").is_null()))
    sections = []
    for number, (name, column) in enumerate(list_tests(facts).items()):
        tested = frame.filter(pl.col(column).is_not_null())
        sections.append(
            {
                "id": f"test-{number}",
                "heading": name,
                "wide": [_manhattan(tested, name, column, facts, figures)],
                "figures": [_quantiles(tested, name, column, facts, figures)],
                "tables": [t for t in _tables(association, tested, name, column) if t is not None],
            }
        )
    return {
        "title": f"Tests of SNPs: {Path(facts['run']).name}",
        "subtitle": describe_association(association)[0],
        "facts": _facts(facts),
        "sections": sections,
        "notes": association.notes,
    }


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    left_out = [f"{n:,} ({why})" for why, n in facts["left_out"].items() if n]
    animals = f"{facts['animals']:,} with genotypes and records ({facts['level']}), {facts['records']:,} records"
    variances = {"reml": "estimated by REML", "blup": "as the analysis gives them"}
    return [
        ("Run", facts["run"]),
        ("Variances", variances.get(facts["method"], "posterior means")),
        ("Genotypes", facts["genotypes"]),
        ("Animals", animals),
        *_more_facts(facts),
        ("SNPs tested", f"{facts['tested']:,}, of which {facts['exact']:,} exactly"),
        ("SNPs left out", ", ".join(left_out) or "none"),
        ("Threshold", f"p = {10 ** -facts['threshold_log10_p']:.2g}: {facts['threshold']}"),
    ]


def _more_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe tests with a chromosome left out, and traits in several environments."""
    rows = [("Relationships", "without the SNPs of the tested chromosome")] if facts.get("loco") else []
    for name, traits in facts.get("environments", {}).items():
        rows.append((name, f"the mean of the effects in {len(traits)} environments, and their differences"))
    return rows


def _manhattan(
    tested: pl.DataFrame, name: str, column: str, facts: dict[str, Any], figures: plots.Figures
) -> tuple[str, str, str]:
    log_p, threshold = tested[column].to_numpy(), facts["threshold_log10_p"]
    best = tested.row(int(np.argmax(log_p)), named=True)
    where = "" if best["chromosome"] is None else f" on chromosome {best['chromosome']}"
    caption = (
        f"-log10 p of {tested.height:,} SNPs. The highest is {best['snp']}{where}, p = {format_p(best[column])}; the "
        f"line is the threshold, p = {10**-threshold:.2g}."
    )
    along = plots.paint_along_genome(
        tested["at"].to_numpy(), log_p, tested["chromosome_number"].to_numpy(), chromosome_ticks(tested)
    )

    def paint(axes: Axes) -> None:
        along(axes)
        axes.set_ylim(0, 1.05 * max(threshold, float(log_p.max())))
        axes.axhline(threshold, color=plots.FAINT, linewidth=0.8, dashes=(4, 3))

    heading = "Tests along the genome"
    label = "SNP number" if tested["chromosome"].null_count() else "chromosome"
    return heading, figures.draw(paint, f"{heading}, {name}", caption, 0.07, label, size=plots.WIDE), caption


def _quantiles(
    tested: pl.DataFrame, name: str, column: str, facts: dict[str, Any], figures: plots.Figures
) -> tuple[str, str, str]:
    log_p = np.sort(tested[column].to_numpy())[::-1]
    n = log_p.size
    rank = np.unique(np.round(np.geomspace(1, n, min(n, QUANTILES))).astype(np.int64))
    expected = -np.log10((rank - 0.5) / n)
    low, high = (-np.log10(stats.beta.ppf(q, rank, n - rank + 1)) for q in (0.975, 0.025))
    inflation = facts["lambda"].get(name)
    inflation_words = (
        "" if inflation is None else f" Lambda, the ratio of their medians as chi-squares, is {inflation:.3f}."
    )
    caption = (
        "-log10 p found (up) against that expected if no SNP had an effect (right); the band is where 95 % of each "
        f"would be, of independent SNPs.{inflation_words}"
    )

    def paint(axes: Axes) -> None:
        axes.fill_between(expected, low, high, color=plots.BAND, linewidth=0)
        axes.plot(expected, expected, color=plots.INK, linewidth=0.8, dashes=(4, 3))
        axes.plot(expected, log_p[rank - 1], "o", color=plots.SERIES[0], markersize=1.8, markeredgewidth=0)
        axes.grid()

    heading = "Against chance"
    return heading, figures.draw(paint, f"{heading}, {name}", caption, 0.1, "-log10 p expected", (3.6, 2.6)), caption


def _tables(association: Association, tested: pl.DataFrame, name: str, column: str) -> list[Table | None]:
    """Make the tables of one test: SNPs, regions, windows."""
    return [_table(tested, name, column), _regions_table(association, name), _windows_table(association, name)]


def _regions_table(association: Association, name: str) -> Table | None:
    """The regions that passed; None without any."""
    regions = pl.DataFrame() if association.regions is None else association.regions.filter(test=name)
    if not regions.height:
        return None
    is_placed = pl.col("chromosome").is_not_null()
    regions = regions.with_columns(pl.when(is_placed).then(pl.col("start", "end")))
    columns = [
        number_column("Region", regions["region"]),
        text_column("Chromosome", regions["chromosome"]),
        _place_column("Begins at", regions["start"]),
        _place_column("Ends at", regions["end"]),
        number_column("SNPs", regions["snps"]),
        number_column("Beyond the threshold", regions["significant"]),
        text_column("Strongest SNP", regions["lead_snp"], "id"),
        _p_column(regions["log10_p"]),
    ]
    return drop_empty_columns(make_table(f"Regions beyond the threshold: {name}", columns))


def _place_column(label: str, places: pl.Series) -> FilledColumn:
    return number_column(label, [None if place is None else round(place) for place in places])


def _p_column(log10_p: pl.Series, help: str = "") -> FilledColumn:
    return cell_column("p", [Number(format_p(value), 10.0**-value) for value in log10_p], help)


def _q_column(q: pl.Series, help: str) -> FilledColumn:
    return cell_column("q", [Number(f"{value:.2g}", value) for value in q], help)


def _table(tested: pl.DataFrame, name: str, column: str) -> Table:
    top, names = strongest(tested, column, TOP), trait_columns(name)
    q = column.replace("log10_p_", "q_", 1)
    columns = [
        text_column("SNP", top["snp"], "id"),
        text_column("Chromosome", top["chromosome"]),
        _place_column("Position", top["position"]),
        text_column("Counted allele", top["counted"]),
        number_column("Frequency", top["frequency"], 3, "of the counted allele, among the animals with records"),
    ]
    if names.effect in top.columns:
        places = decimals(float(top[names.error].median() or 1.0))  # type: ignore[arg-type]
        columns += [
            number_column("Effect", top[names.effect], places, "of one copy of the counted allele"),
            number_column("SE", top[names.error], places),
        ]
    columns += [_p_column(top[column]), _q_column(top[q], "false discovery rate (Benjamini & Hochberg 1995)")]
    return drop_empty_columns(make_table(f"Strongest SNPs: {name}", columns))


def _windows_table(association: Association, name: str) -> Table | None:
    """The strongest windows of a trait; None where none were tested."""
    frame, names = association.windows, trait_columns(name)
    if frame is None or names.log_p not in frame.columns:
        return None
    top = strongest(frame, names.log_p, TOP)
    columns = [
        number_column("Window", top["window"]),
        text_column("Chromosome", top["chromosome"]),
        _place_column("Begins at", top["start"]),
        number_column("SNPs", top["snps"]),
        text_column("First SNP", top["first_snp"], "id"),
        text_column("Last SNP", top["last_snp"], "id"),
        _p_column(top[names.log_p], "that no SNP of the window has an effect"),
        _q_column(top[names.q], "false discovery rate"),
    ]
    return drop_empty_columns(make_table(f"Strongest windows: {name}", columns))
