"""What each column of a table of records looks like: numbers or text, how many levels, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.effects import RESERVED
from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.config.markers import J
from mmgibbs.config.tables import MISSING
from mmgibbs.data.dates import are_dates, are_dates_as_numbers, share_of_dates
from mmgibbs.data.number_format import Decimal, parse_column
from mmgibbs.pedigree.spelling import are_unknown_codes, have_lost_digits, is_unknown_code
from mmgibbs.pedigree.tables import agreeing, counted, format_number

# The terms that `init` itself writes.
TERMS = ("genetic", "permanent_environment", "maternal_environment", "snps")
FEW = 20  # whole numbers of at most so many values may be codes of classes
_MAX_ODD = 0.05  # share of the values that may be slips of the pen in a column of numbers
_MAX_ODD_AMONG_WHOLE = 0.02  # of whole numbers, which may be ids as well, ...
_MAX_DIFFERENT_IDS = 0.9  # ... where they are different in more than this share of the records
_MAX_WORDS, _MAX_SHARE_OF_WORDS = 5, 0.3  # different words, and their share, in a column of numbers
_MIN_NUMBERS = 0.7  # share of the values beside which codes mean a missing value
_MIN_DATES = 0.95  # share of the values of a column of dates
_CHANCE = 0.01  # that records with a common value agree in another column
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
    label: str = ""  # of its trait or effect in the analysis file
    in_groups: str = ""  # a cell that is a number where the decimal mark is stated, as 115,763 and 4 441.85
    odd: pl.Series | None = None  # (n,) Boolean: the few values that are no finite numbers where all others are

    @property
    def n(self) -> int:
        return len(self.text)

    @property
    def known(self) -> int:
        return self.n - self.missing

    @property
    def whole(self) -> bool:
        """True if every value is a whole number."""
        return self.numbers is not None and bool(np.all(self.numbers[~np.isnan(self.numbers)] % 1 == 0))

    @property
    def few(self) -> bool:
        """Few whole numbers, each several times, which may be codes."""
        return self.whole and self.has_few_values

    @property
    def has_few_values(self) -> bool:
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
        """Dates, or numbers that are dates without separators; few of them, such as 201103, may be classes."""
        if self.numbers is None:
            return are_dates(self.text) or share_of_dates(self.text) >= _MIN_DATES
        is_named = any(word in ("date", "dob") or word.endswith("date") for word in split_words(self.name))
        return self.whole and not self.few and are_dates_as_numbers(self.text, is_named)

    @property
    def odd_ones(self) -> str:
        """'2 values that are none (8..3, missing)'."""
        assert self.odd is not None
        tokens = self.text.filter(self.odd).unique(maintain_order=True).to_list()
        shown = ", ".join(tokens[:3]) + (", ..." if len(tokens) > 3 else "")
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
        if self.numbers is not None and self.known and not self.dates:
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
    """Further texts that mean a missing value: codes such as '.' and '#N/A' in a column that else has numbers."""
    missing: list[str] = []
    for name in frame.columns:
        text = frame[name].drop_nulls()
        text = text.filter(~text.is_in(list(MISSING)))
        is_code = are_unknown_codes(text, "value") | text.str.to_lowercase().is_in(["nan"])
        rest = text.filter(~is_code)
        if not is_code.any() or not len(rest):
            continue
        parsed = min(parse_column(rest, (), mark).values.null_count() for mark in (None, ","))
        if parsed <= (1 - _MIN_NUMBERS) * len(rest):
            missing += [t for t in sorted(text.filter(is_code).unique()) if t not in missing]
    return tuple(missing)


def find_codes_among_levels(
    frame: pl.DataFrame, columns: Iterable[Column], missing: Sequence[str]
) -> list[tuple[str, str, int]]:
    """(code, column, records) of each text in `missing` that may be a level of a column of few words, as '-' beside
    '+'. frame: the table as it was read.
    """
    codes = [code for code in missing if not is_unknown_code(code, "level")]
    found = []
    for c in columns:
        if c.numbers is None and c.odd is None and not c.dates and 0 < c.levels <= FEW:
            found += [(code, c.name, int((frame[c.name] == code).sum())) for code in codes]
    return [(code, name, times) for code, name, times in found if times]


def is_ambiguous(cell: str) -> bool:
    """The comma of 115,763 may be decimal or separate thousands."""
    return re.fullmatch(r"[+-]?[0-9]{1,3},[0-9]{3}", cell) is not None


def choose_decimal(frame: pl.DataFrame, missing: Sequence[str], guessed: Decimal) -> Decimal:
    """The decimal mark with which most columns are numbers: `guessed`, unless the other makes more of them so."""
    grouped = frame.select(pl.all().str.contains(r"[0-9][.,'\s\x{2019}][0-9]{3}").any()).row(0)
    asked = frame.select([c for c, is_grouped in zip(frame.columns, grouped, strict=True) if is_grouped])
    marks: tuple[Decimal, ...] = (guessed, "." if guessed == "," else ",")
    return max(marks, key=lambda mark: sum(c.numbers is not None for c in describe_columns(asked, missing, mark)))


def describe_columns(frame: pl.DataFrame, missing: Iterable[str], decimal: Decimal = None) -> list[Column]:
    """Describe every column of a frame of text; decimal: the mark of numbers that can be read in two ways."""
    absent = [m for m in missing if m != ""]
    labels = _labels(frame.columns)
    return [_column(name, frame[name], absent, decimal, labels[name]) for name in frame.columns]


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Column -> the name of its trait or effect: its name where an analysis file takes it and no other column and no
    term of `init` has it.
    """
    labels: dict[str, str] = {}
    taken = {*RESERVED, J, *TERMS}
    clean = {n: "".join("_" if x in NOT_IN_A_NAME or not x.isprintable() else x for x in n).strip() for n in names}
    for name in sorted(names, key=lambda n: clean[n] != n):  # those that can keep their name come first
        label = f"{clean[name]}_effect" if clean[name] in taken else clean[name] or "column"
        number = 2
        while label in taken:
            label, number = f"{clean[name]}_{number}", number + 1
        taken.add(label)
        labels[name] = label
    return labels


def _column(name: str, text: pl.Series, absent: list[str], decimal: Decimal, label: str) -> Column:
    text = text.to_frame().select(pl.when(~pl.col(name).is_in(absent)).then(pl.col(name))).to_series()
    numbers, plain, _ = parse_column(text, (), None)
    in_groups = ""
    if decimal is not None and numbers.null_count() > text.null_count():
        stated, plain_if_stated, _ = parse_column(text, (), decimal)
        if stated.null_count() == text.null_count():
            in_groups = str(text.filter(numbers.is_null() & text.is_not_null()).first())
            numbers, plain = stated, plain_if_stated
    wrong = text.is_not_null() & ~numbers.is_finite().fill_null(False)
    if have_lost_digits(text).any() and bool((numbers.drop_nulls() % 1 == 0).all()):
        wrong = text.is_not_null()  # ids
    numeric = not wrong.any()
    few = _are_few(text, numbers, wrong)
    return Column(
        name=name,
        text=text,
        numbers=numbers.to_numpy().astype(float) if numeric else None,
        levels=text.drop_nulls().n_unique(),
        missing=text.null_count(),
        commas=bool((plain != text).any()) and not (in_groups and decimal == "."),
        label=label,
        in_groups=in_groups,
        odd=wrong if few else None,
    )


def _are_few(text: pl.Series, numbers: pl.Series, wrong: pl.Series) -> bool:
    """Check whether the values that are no numbers are slips of the pen, or few words, in a column of numbers."""
    n, n_wrong = len(text) - text.null_count(), int(wrong.sum())
    if not 0 < n_wrong < n:
        return False
    others = numbers.filter(~wrong).drop_nulls()
    if (others % 1 != 0).any():
        words = text.filter(wrong).n_unique()
        return n_wrong <= _MAX_ODD * n or (words <= _MAX_WORDS and n_wrong <= _MAX_SHARE_OF_WORDS * n)
    are_ids = others.n_unique() > _MAX_DIFFERENT_IDS * len(others)  # and so may be '12b'
    return not are_ids and others.n_unique() > FEW and n_wrong <= _MAX_ODD_AMONG_WHOLE * n


def _shown(value: float) -> str:
    """Six figures, and all of those of a whole number or a large one."""
    return format_number(value) if value % 1 == 0 or abs(value) >= _LARGE else f"{value:g}"


def split_words(name: str) -> list[str]:
    """'calvingYear' and 'calving_year' are calving, year."""
    return [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def determines(fine: Column, coarse: Column) -> bool:
    """Check that every value of `fine` is found with one value of `coarse` alone, by more than chance.

    Each herd-year lies in one herd, say. Records that share a value of `fine` have to be so many that this is no
    chance.
    """
    pair = pl.DataFrame({"fine": fine.text, "coarse": coarse.text}).drop_nulls()
    levels = pair["fine"].n_unique()
    if pair.height == levels or pair.n_unique() != levels:
        return False
    shares = pair["coarse"].value_counts(normalize=True)["proportion"]
    chance_of_a_pair = float((shares**2).sum())
    return chance_of_a_pair ** (pair.height - levels) < _CHANCE
