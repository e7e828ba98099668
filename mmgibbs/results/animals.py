"""animals.parquet: the pedigree in the user's own ids, so that a report can speak of parents and birth years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from pedigree.read import Pedigree


def animals_file(pedigree: Pedigree | None, generations: np.ndarray | None = None) -> dict[str, Callable[[Path], None]]:
    """The file and its writer, for `folder.write_run_folder`; nothing without a pedigree."""
    if pedigree is None:
        return {}
    return {"animals.parquet": lambda path: animals_frame(pedigree, generations).write_parquet(path)}


def animals_frame(pedigree: Pedigree, generations: np.ndarray | None = None) -> pl.DataFrame:
    """id, sire, dam (blank: unknown, or a group), birth (as read, or blank), in the order of the pedigree file.

    generations: (n,) of selfing by code, the column selfings; None: there is no such column.
    """
    order = np.asarray(pedigree.file_order, np.int64)
    n = len(order)

    def parents(codes: np.ndarray) -> pl.Series:
        pedigree_codes = pl.Series(codes[order].astype(np.int64))
        return pedigree.ids.gather(
            pl.select(pl.when((pedigree_codes >= 0) & (pedigree_codes < n)).then(pedigree_codes)).to_series()
        )

    birth = np.full(n, np.nan) if pedigree.birth is None else pedigree.birth
    more = {} if generations is None else {"selfings": generations[order]}
    return pl.DataFrame(
        {
            "id": pedigree.ids.gather(order),
            "sire": parents(pedigree.sire),
            "dam": parents(pedigree.dam),
            "birth": pl.Series(birth[order], dtype=pl.Float64, nan_to_null=True),
            **more,
        }
    )
