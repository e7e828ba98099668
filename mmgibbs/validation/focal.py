"""Which animals the LR method compares, and whose records the partial data lack."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.levels import lookup
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.folds import birth_year_of
from pedigree.read import Pedigree
from pedigree.tables import counted, quoted

FEWEST = 3  # animals to compare


@dataclass(frozen=True)
class Focal:
    animals: pl.Series  # (m,) String ids of those compared
    masked: np.ndarray  # (n,) bool: records that the partial data lack
    what: str  # whose records these are
    cutoff: float | None  # birth year
    notes: list[str]
    file: str | None = None  # that lists the animals
    lines: tuple[int, ...] = ()  # of the file, for each of them

    def levels(self, ids: pl.Series, term: str) -> np.ndarray:
        """(m,) int64 level codes of the animals among the ids of a term. ConfigError for one that is none of them."""
        code = lookup(self.animals, ids)
        if code.null_count():
            first = int(code.is_null().to_numpy().argmax())
            where = "validate" if self.file is None else f"{option('focal', str(self.file))} line {self.lines[first]}"
            raise ConfigError(f"{where}: focal animal {quoted(self.animals[first])} is not a level of '{term}'")
        return code.to_numpy().astype(np.int64)


def choose_focal(
    records: Recorded, pedigree: Pedigree | None, codes: np.ndarray, cutoff: float | None, file: str | None
) -> Focal:
    """The records of animals born from `cutoff` on, or of the animals of `file` where there is no cutoff, are left out.

    codes: (n,) pedigree code of each record's animal. Without both, the last birth year with records is the cutoff.
    Compared are the animals of `file`, by default those whose records are left out. ConfigError: none or all of the
    records, too few animals, no birth years.
    """
    listed, lines = (None, ()) if file is None else read_ids(file)
    notes = []
    if listed is not None and cutoff is None:
        masked = records.animal.is_in(listed.implode()).fill_null(False).to_numpy()
        what = f"the {records.units} of {file}"
    else:
        otherwise = f"{option('focal', 'FILE')}, or {option('method', 'kfold')}"
        year = birth_year_of(pedigree, codes, "the LR method", otherwise)
        unknown = np.isnan(year)
        cutoff = float(np.max(year, initial=-np.inf, where=~unknown)) if cutoff is None else cutoff
        masked, what = year >= cutoff, f"{records.units} born from {cutoff:.15g} on"
        if unknown.any():
            notes.append(
                f"{counted(int(np.count_nonzero(unknown)), 'record')} of {records.units} without a birth year, left in "
                "the partial data"
            )
    if not masked.any() or masked.all():
        share = "all" if masked.any() else "none"
        raise ConfigError(
            f"validate: {what} have {share} of the {masked.size:,} records; needed some of them, not all "
            f"({option_name('cutoff')}, {option_name('focal')})"
        )
    own = records.animal.filter(pl.Series(masked)).drop_nulls().unique(maintain_order=True)
    animals = own if listed is None else listed
    if len(animals) < FEWEST:
        raise ConfigError(f"validate: found {len(animals)} focal {records.units}, needed at least {FEWEST}")
    return Focal(animals, masked, what, cutoff, notes, file, lines)


def read_ids(file: str | os.PathLike) -> tuple[pl.Series, tuple[int, ...]]:
    """The ids of a text file, one per line, each once, and the lines where they are."""
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"{option('focal', str(file))}: cannot be read: {reason}") from None
    first = {line: n for n, line in reversed(list(enumerate(lines, 1))) if line}
    first = dict(sorted(first.items(), key=lambda item: item[1]))
    return pl.Series("id", list(first), pl.String), tuple(first.values())
