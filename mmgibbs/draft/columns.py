"""What each column of a table of records looks like: numbers or text, how many levels, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.data.dates import are_dates
from mmgibbs.data.decimal_commas import with_points
from pedigree.tables import agreeing, counted, in_full

MISSING = ("", "NA")  # what an analysis takes for a missing value where it says nothing else
# What other programs write for a missing value; taken for one in a column whose other values are numbers.
ALSO_MISSING = (".", "*", "?", "-", "NaN", "nan", "null", "NULL", "N/A", "n/a", "None", "none", "na")
FEW = 20  # whole numbers of at most so many values may be codes of classes
_MOST_ODD, _FEW_ODD = 100, 0.05  # values, and their share, that may be slips of the pen in a column of numbers
_LARGE = 1e5  # from here six figures would lose the unit
_REPEATED = 0.7  # and of at most this share of the records


@dataclass(frozen=True)
class Column:
    """A column of the records.

    text: (n,) String, null where missing. numbers: (n,) float64 with NaN where missing, None where some value is no
    number.
    """

    name: str
    text: pl.Series
    numbers: np.ndarray | None
    levels: int  # distinct values
    missing: int  # records without a value
    commas: bool = False  # the numbers have decimal commas
    odd: pl.Series | None = None  # (n,) Boolean: the few values that are no finite numbers where all others are

    @property
    def n(self) -> int:
        return len(self.text)

    @property
    def known(self) -> int:
        return self.n - self.missing

    @property
    def whole(self) -> bool:
        """Every value is a whole number."""
        return self.numbers is not None and bool(np.all(self.numbers[~np.isnan(self.numbers)] % 1 == 0))

    @property
    def few(self) -> bool:
        """Few whole numbers, each several times, which may be codes."""
        return self.whole and self.of_few_values

    @property
    def of_few_values(self) -> bool:
        """Few values, numbers or not, each several times."""
        return self.levels <= min(FEW, _REPEATED * self.known)

    @property
    def years(self) -> bool:
        """Whole numbers that look like calendar years."""
        if not self.whole or self.numbers is None or self.known == 0:
            return False
        return bool(np.nanmin(self.numbers) >= 1900 and np.nanmax(self.numbers) <= 2100)

    @property
    def dates(self) -> bool:
        return self.numbers is None and are_dates(self.text)

    @property
    def odd_ones(self) -> str:
        """'2 values that are none (8..3, missing)'."""
        assert self.odd is not None
        found = self.text.filter(self.odd).unique(maintain_order=True).to_list()
        shown = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        return f"{counted(int(self.odd.sum()), 'value')} that {agreeing(int(self.odd.sum()), 'is')} none ({shown})"

    @property
    def records_per_level(self) -> float:
        return self.known / max(self.levels, 1)

    def values(self) -> list[str]:
        """Distinct values, the most frequent first, ties in order of the text."""
        counts = self.text.drop_nulls().value_counts().sort(["count", self.text.name], descending=[True, False])
        return counts[self.text.name].to_list()

    def describe(self, slips: bool = True) -> str:
        """'numbers from 2.1 to 3.5', 'text, 3 levels (a, b, c)', and how many are missing; slips: values that are no
        numbers where all others are, are wrong, not names.
        """
        gaps = f", {self.missing:,} missing" if self.missing else ""
        if self.numbers is not None and self.known:
            low, high = np.nanmin(self.numbers), np.nanmax(self.numbers)
            kind = "whole numbers" if self.whole else "numbers"
            commas = " with decimal commas" if self.commas else ""
            return f"{kind}{commas} from {_shown(low)} to {_shown(high)}, {self.levels:,} different{gaps}"
        if self.odd is not None and slips:
            return f"numbers, and {self.odd_ones}, {self.levels:,} different{gaps}"
        shown = ", ".join(self.values()[:4]) + (", ..." if self.levels > 4 else "")
        kind = "dates" if self.dates and self.known else "text"
        return f"{kind}, {self.levels:,} different{f' ({shown})' if self.levels else ''}{gaps}"


def missing_tokens(frame: pl.DataFrame) -> tuple[str, ...]:
    """Further texts that mean a missing value: the only texts of a column that else has numbers."""
    found: list[str] = []
    for name in frame.columns:
        text = frame[name].drop_nulls()
        text = text.filter(~text.is_in(list(MISSING)))
        points = with_points(text, ALSO_MISSING)
        numbers = (text if points is None else points).cast(pl.Float64, strict=False)
        no_number = text.filter(numbers.is_null() | text.is_in(list(ALSO_MISSING)))
        tokens = no_number.unique().to_list()
        if tokens and len(no_number) < len(text) and set(tokens) <= set(ALSO_MISSING):
            found += [t for t in sorted(tokens) if t not in found]
    return tuple(found)


def look_at(frame: pl.DataFrame, missing: Iterable[str]) -> list[Column]:
    """Every column of a frame of text."""
    absent = [m for m in missing if m != ""]
    return [_column(name, frame[name], absent) for name in frame.columns]


def _column(name: str, text: pl.Series, absent: list[str]) -> Column:
    text = text.to_frame().select(pl.when(~pl.col(name).is_in(absent)).then(pl.col(name))).to_series()
    numbers = text.cast(pl.Float64, strict=False)
    points = with_points(text, ()) if numbers.null_count() > text.null_count() else None
    numbers = numbers if points is None else points.cast(pl.Float64, strict=False)
    wrong = text.is_not_null() & ~numbers.is_finite().fill_null(False)
    numeric = not wrong.any()
    few = 0 < int(wrong.sum()) <= min(_MOST_ODD, _FEW_ODD * (len(text) - text.null_count()))
    few = few and bool((numbers.filter(~wrong) % 1 != 0).any())  # whole numbers may be ids or codes, and so '12b'
    return Column(
        name=name,
        text=text,
        numbers=numbers.to_numpy().astype(float) if numeric else None,
        levels=text.drop_nulls().n_unique(),
        missing=text.null_count(),
        commas=points is not None,
        odd=wrong if few else None,
    )


def _shown(value: float) -> str:
    """Six figures, and all of those of a whole number or a large one."""
    return in_full(value) if value % 1 == 0 or abs(value) >= _LARGE else f"{value:g}"


def words_of(name: str) -> list[str]:
    """'calvingYear' and 'calving_year' are calving, year."""
    return [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def determines(fine: Column, coarse: Column) -> bool:
    """Every value of `fine` is found with one value of `coarse` alone, as each herd-year lies in one herd."""
    pair = pl.DataFrame({"fine": fine.text, "coarse": coarse.text}).drop_nulls()
    return pair.height > 0 and pair.n_unique() == pair["fine"].n_unique()
