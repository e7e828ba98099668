"""Which animals the LR method compares, and whose records the partial data lack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.levels import lookup
from mmgibbs.errors import ConfigError, option
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
    notes, year = [], np.full(codes.size, np.nan)
    if listed is not None and cutoff is None:
        masked = records.animal.is_in(listed.implode()).fill_null(False).to_numpy()
        what = f"the {records.units} of {file}"
    else:
        year = birth_year_of(pedigree, codes, "the LR method", others(OR_A_FILE))
        unknown = np.isnan(year)
        if unknown.all():
            raise ConfigError(
                f"validate: found no birth year of {records.units} with records, which the LR method needs; needed "
                f"births of them (data.pedigree_columns.birth), or {others(OR_A_FILE)}"
            )
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
            f"validate: {what} have {share} of the {masked.size:,} records, of which the LR method leaves out some; "
            f"needed {others(ways_that_work(year, records, listed is None))}"
        )
    own = records.animal.filter(pl.Series(masked)).drop_nulls().unique(maintain_order=True)
    animals = own if listed is None else listed
    if len(animals) < FEWEST:
        found = f"validate: found {len(animals)} focal {records.units}, needed at least {FEWEST}"
        if listed is not None:
            raise ConfigError(f"{found} in {file}")
        raise ConfigError(f"{found}: {what} are too few; needed {others(ways_that_work(year, records, True))}")
    return Focal(animals, masked, what, cutoff, notes, file, lines)


Way = tuple[str, object, str]  # what would do: option, its value, what is said of it
FOLDS: Way = ("method", "kfold", ", which needs no young animals")
OR_A_FILE: list[Way] = [("focal", "FILE", " (ids, one per line)"), FOLDS]


def others(ways: Sequence[Way]) -> str:
    """'--cutoff 2010, or --focal FILE (ids, one per line), or ...'."""
    return ", or ".join(f"{option(name, value)}{said}" for name, value, said in ways)


def ways_that_work(year: np.ndarray, records: Recorded, compared: bool) -> list[Way]:
    """What leaves out some records, not all: the last birth year with enough animals from it on, where there is one,
    and what needs none. year: (n,) of the records, NaN where it is not known or not asked for; compared: it is the
    animals whose records are left out that are compared, not those of a file.
    """
    for last in np.unique(year[~np.isnan(year)])[::-1].tolist():
        masked = year >= last
        n = records.animal.filter(pl.Series(masked)).drop_nulls().n_unique()
        if n >= (FEWEST if compared else 1) and not masked.all():
            shown = int(last) if last.is_integer() else last
            return [("cutoff", shown, f" ({n:,} {records.units} with records)"), *OR_A_FILE]
    return OR_A_FILE


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
