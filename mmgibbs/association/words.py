"""What an association says in words, on the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from mmgibbs.association.results import trait_columns
from pedigree.tables import counted

if TYPE_CHECKING:
    from mmgibbs.association.fine_map import FineMap
    from mmgibbs.association.run import Association

SHOWN_SNPS = 5


def list_tests(facts: dict[str, Any]) -> dict[str, str]:
    """What is tested -> its column of -log10 p: each trait, and all of several."""
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
