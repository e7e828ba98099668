"""The column of a pedigree that may have the groups of unknown parents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mmgibbs.pedigree.columns import choose_columns
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import Separator, Source

_NAMES = "group upg upgroup geneticgroup unknownparentgroup phantomgroup parentgroup gg origin mf metafounder".split()
_MAX_GROUPS, _MIN_ANIMALS_OF_GROUP = 500, 2


def find_group_column(
    source: Source,
    pedigree: Pedigree,
    *,
    columns: Mapping[str, str | int | None] | None = None,
    separator: Separator = None,
    unknown: Sequence[str] = ("", "NA", "0"),
    encoding: str | None = None,
) -> str | None:
    """Return the column that by its name and its values may have the groups of unknown parents, None without one.

    source and the rest are what the pedigree was read from. Every animal with an unknown parent has a value in it.
    """
    table, chosen = choose_columns(source, columns, None, separator, tuple(unknown), None, None, encoding)
    if not table.has_header and table.first_record is not None:
        return None
    table = table.keep(np.isin(table.lines(), pedigree.row))  # without copies of rows
    rows = np.asarray(pedigree.file_order[: table.n_rows], np.int64)
    is_missing = pl.Series(((pedigree.sire < 0) | (pedigree.dam < 0))[rows])
    for name in table.names:
        if name in (chosen.id, *chosen.parents, chosen.birth):
            continue
        if re.sub(r"[\W_]", "", name).lower() not in _NAMES:
            continue
        groups = table.read([name])[name].filter(is_missing)
        n_groups = groups.n_unique()
        if not groups.null_count() and 1 < n_groups <= min(_MAX_GROUPS, len(groups) / _MIN_ANIMALS_OF_GROUP):
            return name
    return None
