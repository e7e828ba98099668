"""An association and a fine-mapping, and what they say in words, on the terminal and on the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.association.tables import trait_columns
from mmgibbs.pedigree.tables import counted

SHOWN_SNPS = 5


@dataclass(frozen=True)
class Association:
    """Tests of the SNPs of a file in the model of a run.

    Attributes
    ----------
    values : polars.DataFrame
        A row for each SNP of the file: effect, standard error, -log10 p and q of each trait.
    facts : dict
        What was done: SNPs tested and left out, calibration, inflation, threshold.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    directory : pathlib.Path or None
        Where they were written.
    snp_effects : polars.DataFrame or None
        Of a run with genomic or single-step relationships: effects of its SNPs, from the breeding values of the run.
    windows : polars.DataFrame or None
        A row for each window of neighbouring SNPs: -log10 p and q of each trait. None where none were asked for.
    regions : polars.DataFrame
        A row for each region of the genome with SNPs beyond the threshold, by test.
    """

    values: pl.DataFrame
    facts: dict[str, Any]
    notes: tuple[str, ...]
    directory: Path | None
    snp_effects: pl.DataFrame | None = None
    windows: pl.DataFrame | None = None
    regions: pl.DataFrame | None = None

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        return lines_as_html(describe_association(self), self.notes)


@dataclass(frozen=True)
class FineMap:
    """Probabilities of the SNPs of some regions, and their credible sets.

    Attributes
    ----------
    values : polars.DataFrame
        A row for each SNP of a region: its PIP, effect, and whether it is in the credible set.
    sets : polars.DataFrame
        A row for each region: the probability that it has an effect, and its credible set.
    analysis : dict
        The analysis that was drafted and run.
    directory : pathlib.Path
        Where they were written.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    """

    values: pl.DataFrame
    sets: pl.DataFrame
    analysis: dict[str, Any]
    directory: Path
    notes: tuple[str, ...]

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        return lines_as_html(describe_fine_map(self), self.notes)


def list_tests(facts: dict[str, Any]) -> dict[str, str]:
    """List the tests -> their columns of -log10 p: each trait, and all of several."""
    columns = {trait: trait_columns(trait).log_p for trait in facts["lambda"]}
    environments = facts.get("environments", {})
    if len(columns) - len(environments) > 1:
        columns["all traits"] = "log10_p_joint"
    return columns | {
        f"{name}: differences between environments": f"log10_p_differences_{name}" for name in environments
    }


def strongest(values: pl.DataFrame, column: str, n: int) -> pl.DataFrame:
    """The n SNPs with the smallest p values."""
    return values.filter(pl.col(column).is_not_null()).sort(column, descending=True, maintain_order=True).head(n)


def describe_association(association: Association) -> list[str]:
    """Lines for the terminal."""
    facts = association.facts
    threshold = facts["threshold_log10_p"]
    kind = "exact" if facts["exact"] == facts["tested"] else f"calibrated, {facts['exact']:,} of them exact"
    lines = [
        f"{counted(facts['tested'], 'SNP')} tested ({kind}), {facts['animals']:,} animals with {facts['records']:,} "
        f"records; threshold p = {10**-threshold:.2g} ({facts['effective_tests']:,.0f} effective tests)"
    ]
    for name, column in list_tests(facts).items():
        inflation = facts["lambda"].get(name)
        inflation_words = "" if inflation is None else f", lambda {inflation:.3f}"
        lines.append(f"{name}: {counted(facts['significant'][column], 'SNP')} beyond the threshold{inflation_words}")
        n_regions = 0 if association.regions is None else association.regions.filter(test=name).height
        if n_regions:
            lines[-1] += f", in {counted(n_regions, 'region')}"
        for row in strongest(association.values, column, SHOWN_SNPS).iter_rows(named=True):
            place = "" if row["chromosome"] is None else f", chromosome {row['chromosome']}"
            place += "" if row["position"] is None else f":{row['position']:.0f}"
            lines.append(f"  {row['snp']}{place}: p = {format_p(row[column])}{_effect_words(row, name)}")
    return lines


def _effect_words(row: dict[str, Any], trait: str) -> str:
    names = trait_columns(trait)
    if row.get(names.effect) is None:
        return ""
    allele = "" if row["counted"] is None else f" of {row['counted']}"
    return f", effect{allele} {row[names.effect]:.3g} (SE {row[names.error]:.2g})"


def format_p(log10_p: float) -> str:
    """'3.2e-08' from -log10 p, however small p is."""
    exponent = int(log10_p)
    return f"{10**-log10_p:.2g}" if exponent < 300 else f"1e-{exponent}"


def describe_fine_map(made: FineMap) -> list[str]:
    """Lines for the terminal: a region each."""
    lines = []
    for row in made.sets.iter_rows(named=True):
        place = "" if row["chromosome"] is None else f", chromosome {row['chromosome']}"
        line = (
            f"region {row['region']}{place}, {counted(row['snps'], 'SNP')}: effect with probability {row['p_any']:.3f}"
        )
        if row["size"] is not None:
            names = row["credible_set"].split()
            more = f" and {len(names) - SHOWN_SNPS:,} more" if len(names) > SHOWN_SNPS else ""
            line += f"; credible set of {counted(row['size'], 'SNP')}: {', '.join(names[:SHOWN_SNPS])}{more}"
        lines.append(line + f"; highest PIP {row['best_pip']:.3f} ({row['best_snp']})")
    return lines
