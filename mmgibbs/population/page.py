"""pedigree.html: figures of a population, inbreeding and completeness by birth year, and the major ancestors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.population.parentage import Parentage
from mmgibbs.population.results import PedigreeFacts, fact_lines
from mmgibbs.report import plots
from mmgibbs.report.html_tables import (
    Number,
    Table,
    cell_column,
    describe_shown_rows,
    figure,
    make_table,
    number_column,
    percent,
    text_column,
)
from mmgibbs.report.render import render

SHOWN_ANCESTORS = 30
SHOWN_ROWS = 100  # of tables of genotyped animals
BY_YEAR = {
    "inbreeding": ("Mean inbreeding by birth year", "inbreeding"),
    "equivalent_generations": ("Equivalent generations by birth year", "equivalent generations known"),
    "animals": ("Animals by birth year", "animals"),
}


def write_page(described: PedigreeFacts, path: Path) -> Path:
    """Write the page and return its path."""
    return render("pedigree.html.j2", page(described), path)


def page(described: PedigreeFacts) -> dict[str, Any]:
    """Prepare the values that the template shows."""
    pictures = plots.Figures()
    return {
        "title": f"Pedigree {described.facts['pedigree']}",
        "subtitle": f"{described.facts['animals']:,} animals",
        "facts": fact_lines(described.facts),
        "figures": _figures(described, pictures),
        "ancestors": _ancestors(described),
        "parentage": [] if described.parentage is None else _parentage(described.parentage),
        "notes": described.notes,
    }


def _parentage(parentage: Parentage) -> list[Table]:
    """Conflicts, likely parents and animals with the same genotypes, those that there are."""
    shares = parentage.conflicts.with_columns(share=100 * pl.col("share"))
    likely = parentage.likely_parents.with_columns(
        born_before=pl.col("born_before").replace_strict({True: "before", False: "after"}, default=None)
    )
    tables = [
        ("Conflicts of parents and progeny", shares, {"progeny": "Progeny", "parent": "Parent", "role": "As",
         "opposing": "Opposing", "compared": "SNPs", "share": "Share, %", "limit": "At most",
         "most_likely": "Most likely"}),
        ("Likely parents", likely, {"animal": "Animal", "role": "As", "candidate": "Candidate", "opposing": "Opposing",
         "compared": "SNPs", "born_before": "Born"}),
        ("Animals with the same genotypes", parentage.duplicates, {"first": "Animal", "second": "Animal ",
         "compared": "SNPs", "different": "Different"}),
    ]  # fmt: skip
    return [_plain_table(title, frame, heads) for title, frame, heads in tables if frame.height]


def _plain_table(title: str, frame: pl.DataFrame, heads: dict[str, str]) -> Table:
    """The first rows of a table: ids as they are, whole numbers, shares with two decimals."""
    shown = frame.head(SHOWN_ROWS)
    columns = [
        number_column(head, shown[name], 2 if shown[name].dtype.is_float() else 0)
        if shown[name].dtype.is_numeric()
        else text_column(head, shown[name], "id")
        for name, head in heads.items()
    ]
    return make_table(title, columns, describe_shown_rows(shown.height, frame.height, "the folder", "rows"))


def _figures(described: PedigreeFacts, pictures: plots.Figures) -> list[tuple[str, str, str]]:
    years = described.years
    if years.height < 2:
        return []
    at, out = years["birth_year"].to_numpy(), []
    for column, (title, what) in BY_YEAR.items():
        values = years[column].cast(float).to_numpy()
        caption = (
            f"{what[0].upper()}{what[1:]}, from {figure(values[0])} in {at[0]} to {figure(values[-1])} in {at[-1]}."
        )
        paint = plots.paint_lines([(what, at, np.asarray(values))])
        out.append((title, pictures.draw(paint, title, caption, x_label="birth year"), caption))
    return out


def _ancestors(described: PedigreeFacts) -> Table:
    top = described.ancestors.head(SHOWN_ANCESTORS)
    share_help = "of the genes of the reference animals that no ancestor above explains"
    columns = [
        text_column("Ancestor", top["ancestor"], "id"),
        cell_column("Born", [None if year is None else Number(str(year), year) for year in top["birth_year"]]),
        number_column("Share, %", percent(top["marginal_share"]), 1, share_help),
        number_column("Together, %", percent(top["cumulative_share"]), 1),
    ]
    note = "Ancestors are chosen one after another, each by the genes that those above it leave (Boichard et al. 1997)."
    return make_table("Major ancestors", columns, note)
