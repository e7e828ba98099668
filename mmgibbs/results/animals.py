"""animals.parquet: the pedigree in the user's own ids, so that a report can speak of parents and birth years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from pedigree.read import Pedigree


def animals_file(pedigree: Pedigree | None) -> dict[str, Callable[[Path], None]]:
    """The file and its writer, for `folder.write_run_folder`; nothing without a pedigree."""
    return {} if pedigree is None else {"animals.parquet": lambda path: animals_frame(pedigree).write_parquet(path)}


def animals_frame(pedigree: Pedigree) -> pl.DataFrame:
    """id, sire, dam (blank: unknown, or a group), birth (as read, or blank), in the order of the pedigree file."""
    order = np.asarray(pedigree.file_order, np.int64)
    n = len(order)

    def parents(codes: np.ndarray) -> pl.Series:
        pedigree_codes = pl.Series(codes[order].astype(np.int64))
        return pedigree.ids.gather(
            pl.select(pl.when((pedigree_codes >= 0) & (pedigree_codes < n)).then(pedigree_codes)).to_series()
        )

    birth = np.full(n, np.nan) if pedigree.birth is None else pedigree.birth
    return pl.DataFrame(
        {
            "id": pedigree.ids.gather(order),
            "sire": parents(pedigree.sire),
            "dam": parents(pedigree.dam),
            "birth": pl.Series(birth[order], dtype=pl.Float64, nan_to_null=True),
        }
    )
