"""A trial of lines on plots: at one site or several, in replicates and blocks, in rows and columns.

The names of the columns decide, and the records must agree with them: lines stand on several plots, and rows and
columns are a grid only if each plot of a site has its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.draft.columns import Column

LINES = """line gen geno genotype entry variety cultivar hybrid clone accession""".split()
SITES = """site location loc environment env trial county""".split()
REPLICATES = """rep reps replicate replicates replication""".split()
BLOCKS = """block blk iblock incblock incomplete_block""".split()
PLOTS = """plot plots plotno plot_number unit""".split()
ROWS = """row rows rowno row_number""".split()
COLUMNS = """col cols column columns colno col_number column_number bed range""".split()
MIN_LINES = 3
MIN_GRID = 4  # rows, and columns, of a grid whose trend can be estimated
MIN_PLOTS_PER_LINE = 1.05  # within a site, from which the variance of lines is told from that of plots


@dataclass(frozen=True)
class Trial:
    """Columns of the records; None where there is none.

    line: what is tested. site, replicate, block: groups of plots. row, column: place of a plot, both or neither.
    plot: a number of its own for each plot of a site. is_replicated: lines stand on several plots of a site.
    is_nested: levels of `block` come again in other replicates.
    """

    line: Column
    site: Column | None
    replicate: Column | None
    block: Column | None
    row: Column | None
    column: Column | None
    plot: Column | None
    is_replicated: bool
    is_nested: bool

    def uses(self) -> dict[str, str]:
        """Column -> what it is in the trial."""
        named = {
            "lines of a trial": self.line,
            "sites of a trial": self.site,
            "replicates of a trial": self.replicate,
            "blocks of a trial": self.block,
            "rows of a trial": self.row,
            "columns of a trial": self.column,
            "plots of a trial, one record each": self.plot,
        }
        return {column.name: what for what, column in named.items() if column is not None}

    def group_names(self, by_site: bool) -> tuple[str | None, str | None]:
        """Effects of replicates and of blocks as an analysis file names them, 'site:rep' and 'site:rep:block'."""
        outer = [] if by_site or self.site is None else [self.site.name]
        replicates = None if self.replicate is None else [*outer, self.replicate.name]
        if self.block is None:
            blocks = None
        elif self.is_nested and replicates is not None:
            blocks = [*replicates, self.block.name]
        else:
            blocks = [*outer, self.block.name]
        return _interaction(replicates), _interaction(blocks)

    @property
    def lacks_replicates(self) -> bool:
        """True if some site has fewer replicates than another.

        Means over fixed replicates of all sites are then not determined.
        """
        if self.site is None or self.replicate is None:
            return False
        pairs = pl.DataFrame({"site": self.site.text, "replicate": self.replicate.text}).drop_nulls().unique()
        return pairs.height < self.site.levels * self.replicate.levels

    def describe(self) -> str:
        """'a trial of 24 lines (gen) at 4 sites (site), in replicates (rep) and rows and columns (row, col)'."""
        parts = [f"a trial of {self.line.levels:,} lines ({self.line.name})"]
        if self.site is not None:
            parts.append(f"at {self.site.levels:,} sites ({self.site.name})")
        design = []
        if self.replicate is not None:
            design.append(f"replicates ({self.replicate.name})")
        if self.block is not None:
            design.append(f"blocks ({self.block.name})")
        if self.row is not None and self.column is not None:
            design.append(f"rows and columns ({self.row.name}, {self.column.name})")
        return f"{' '.join(parts)}{', in ' + ', '.join(design) if design else ''}"


def _interaction(columns: list[str] | None) -> str | None:
    return None if columns is None else ":".join(columns)


def find_trial(columns: Sequence[Column], line: Column | None = None) -> Trial | None:
    """The trial that the columns describe, None if they describe none; line: the column of lines, where it is known."""
    line = line or _find_column(columns, LINES)
    if line is None or line.levels < MIN_LINES:
        return None
    rest = [c for c in columns if c is not line]
    site, replicate = _find_column(rest, SITES), _find_column(rest, REPLICATES)
    block, row, column = _find_column(rest, BLOCKS), _find_column(rest, ROWS), _find_column(rest, COLUMNS)
    if not _is_grid(site, row, column):
        row = column = None
    if replicate is None and row is None:  # blocks alone are of any experiment
        return None
    plots = _count_plots(line, site)
    if site is None and plots < MIN_PLOTS_PER_LINE:
        return None
    is_nested = block is not None and replicate is not None and _recurs(block, replicate, site)
    plot = _find_column(rest, PLOTS)
    plot = None if plot is None or _count_plots(plot, site) > 1 else plot
    return Trial(line, site, replicate, block, row, column, plot, plots >= MIN_PLOTS_PER_LINE, is_nested)


def _find_column(columns: Sequence[Column], names: Collection[str]) -> Column | None:
    """The first column with one of the names and several levels."""
    return next((c for c in columns if c.name.lower() in names and c.levels > 1), None)


def _is_grid(site: Column | None, row: Column | None, column: Column | None) -> bool:
    """Rows and columns are whole numbers, several of each, and no plot of a site comes twice."""
    if row is None or column is None or not (row.whole and column.whole) or row.missing or column.missing:
        return False
    if min(row.levels, column.levels) < MIN_GRID:
        return False
    place = [row.text.alias("row"), column.text.alias("column"), *([] if site is None else [site.text.alias("site")])]
    return not pl.DataFrame(place).is_duplicated().any()


def _count_plots(line: Column, site: Column | None) -> float:
    """Plots of a line, on average, at the site where it has the fewest of them."""
    counts = _groups(line, site).drop_nulls().group_by("site").agg(plots=pl.len() / pl.col("level").n_unique())
    return float(np.min(counts["plots"].to_numpy()))


def _recurs(block: Column, replicate: Column, site: Column | None) -> bool:
    """Check whether some block has the same name as one of another replicate of the site."""
    groups = _groups(block, site).with_columns(replicate=replicate.text).drop_nulls()
    return bool((groups.group_by("site", "level").agg(pl.col("replicate").n_unique())["replicate"] > 1).any())


def _groups(column: Column, site: Column | None) -> pl.DataFrame:
    """(n,) level and site of each record; one site where there is no column of them."""
    sites = pl.Series("site", ["all"] * column.n) if site is None else site.text.alias("site")
    return pl.DataFrame([column.text.alias("level"), sites])
