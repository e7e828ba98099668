"""Which animals the LR method compares, and whose records the partial data lack."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.validate.evaluation import Recorded
from mmgibbs.validate.folds import birth_year_of

FEWEST = 3  # animals to compare


@dataclass(frozen=True)
class Focal:
    animals: pl.Series  # (m,) String ids of those compared
    masked: np.ndarray  # (n,) bool: records that the partial data lack
    what: str  # whose records these are
    cutoff: float | None  # birth year
    notes: list[str]


def choose_focal(records: Recorded, pedigree, codes: np.ndarray, cutoff: float | None, file: str | None) -> Focal:
    """The records of animals born from `cutoff` on, or of the animals of `file` where there is no cutoff, are left out.

    codes: (n,) pedigree code of each record's animal. Without both, the last birth year with records is the cutoff.
    Compared are the animals of `file`, by default those whose records are left out. ConfigError: none or all of the
    records, too few animals, no birth years.
    """
    listed, notes = None if file is None else read_ids(file), []
    if listed is not None and cutoff is None:
        masked = records.animal.is_in(listed.implode()).fill_null(False).to_numpy()
        what = f"the animals of {file}"
    else:
        year = birth_year_of(pedigree, codes, "the LR method", "--focal FILE, or --method kfold")
        unknown = np.isnan(year)
        cutoff = float(np.max(year, initial=-np.inf, where=~unknown)) if cutoff is None else cutoff
        masked, what = year >= cutoff, f"animals born from {cutoff:g} on"
        if unknown.any():
            notes.append(
                f"{np.count_nonzero(unknown):,} records of animals without a birth year stay in the partial data"
            )
    if not masked.any() or masked.all():
        share = "all" if masked.any() else "none"
        raise ConfigError(
            f"validate: {what} have {share} of the {masked.size:,} records; needed some of them (--cutoff, --focal)"
        )
    own = records.animal.filter(pl.Series(masked)).drop_nulls().unique(maintain_order=True)
    animals = own if listed is None else listed
    if len(animals) < FEWEST:
        raise ConfigError(f"validate: found {len(animals)} focal animals, needed at least {FEWEST}")
    return Focal(animals, masked, what, cutoff, notes)


def read_ids(file: str | os.PathLike) -> pl.Series:
    """The ids of a text file, one per line."""
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"--focal {file}: cannot be read: {reason}") from None
    return pl.Series("id", [line for line in lines if line], pl.String).unique(maintain_order=True)
