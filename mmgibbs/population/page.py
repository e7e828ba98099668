"""pedigree.html: figures of a population, inbreeding and completeness by birth year, and the major ancestors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgibbs.population.words import fact_lines
from mmgibbs.report import plots
from mmgibbs.report.html_tables import Column, Number, Table, figure, numbers
from mmgibbs.report.render import render

if TYPE_CHECKING:
    from mmgibbs.population.facts import PedigreeFacts

SHOWN_ANCESTORS = 30
BY_YEAR = {
    "inbreeding": ("Mean inbreeding by birth year", "inbreeding"),
    "equivalent_generations": ("Equivalent generations by birth year", "equivalent generations known"),
    "animals": ("Animals by birth year", "animals"),
}


def write_page(described: PedigreeFacts, path: Path) -> Path:
    """Write the page and return its path."""
    return render("pedigree.html.j2", page(described), path)


def page(described: PedigreeFacts) -> dict[str, Any]:
    """What the template shows."""
    pictures = plots.Figures()
    return {
        "title": f"Pedigree {described.facts['pedigree']}",
        "subtitle": f"{described.facts['animals']:,} animals",
        "facts": fact_lines(described.facts),
        "figures": _figures(described, pictures),
        "ancestors": _ancestors(described),
        "notes": described.notes,
    }


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
    columns = [
        Column("Ancestor", "id"),
        Column("Born", "number"),
        Column("Share, %", "number", "of the genes of the reference animals that no ancestor above explains"),
        Column("Together, %", "number"),
    ]
    cells = [
        top["ancestor"].to_list(),
        [None if year is None else Number(str(year), year) for year in top["birth_year"].to_list()],
        numbers([100 * share for share in top["marginal_share"].to_list()], 1),
        numbers([100 * share for share in top["cumulative_share"].to_list()], 1),
    ]
    note = "Ancestors are chosen one after another, each by the genes that those above it leave (Boichard et al. 1997)."
    return Table("Major ancestors", columns, [list(row) for row in zip(*cells, strict=True)], note)
