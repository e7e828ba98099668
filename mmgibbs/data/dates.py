"""Dates, which tables have in many forms and no effect can use as they are, and years of birth."""

from __future__ import annotations

import polars as pl

_DAY, _MONTH, _TIME = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:[T ]\d{1,2}:\d{2}.*)?"
_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY_2, _MONTH_2 = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"  # with a year of two digits: 1.2.12 may be a code
_FORMS = (
    rf"\d{{4}}-{_MONTH}-{_DAY}",
    rf"\d{{4}}/{_MONTH}/{_DAY}",
    rf"{_DAY}\.{_MONTH}\.\d{{4}}",
    rf"{_DAY_2}\.{_MONTH_2}\.\d{{2}}",
    rf"{_DAY}-{_MONTH}-\d{{4}}",
    rf"(?:{_DAY}/{_MONTH}|{_MONTH}/{_DAY})/(?:\d{{4}}|\d{{2}})",
    rf"{_DAY}[- ]{_NAME}[- ](?:\d{{4}}|\d{{2}})",
)
_CENTURY = r"(?:19|20)\d{2}"
_AS_NUMBERS = (rf"{_CENTURY}{_MONTH_2}{_DAY_2}", rf"{_DAY}{_MONTH_2}{_CENTURY}", rf"{_CENTURY}{_MONTH_2}")
_AS_SIX_DIGITS = (rf"\d{{2}}{_MONTH_2}{_DAY_2}", rf"{_DAY_2}{_MONTH_2}\d{{2}}")  # where a name says that they are dates
_MIN_DIFFERENT = 3  # numbers that are dates by no chance
PATTERN = "|".join(f"^{form}{_TIME}$" for form in _FORMS)
_PARSED = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%d-%m-%Y", "%d/%m/%Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y")
AMONG_NUMBERS = "; has a spreadsheet made a date of a number?"


def needed(path: str) -> str:
    """Describe what a column of dates at this YAML path has to be, where numbers are read."""
    if path.startswith("traits."):
        return "a number, and a date is none: an age in days, say, or the days between two dates"
    if path == "data.weights":
        return "a number, and a date is none"
    a_class = "; for a class (without kind: covariate) their year, month or season"
    return (
        "a number, and a date is none: days since the first of them, say, or an age in days"
        f"{a_class if path.startswith('model.fixed.') else ''}"
    )


def are_dates(text: pl.Series) -> bool:
    """Check that every value (String, null where missing) is a date, and that there is one."""
    known = text.drop_nulls()
    return len(known) > 0 and bool(known.str.contains(PATTERN).all())


def share_of_dates(text: pl.Series) -> float:
    """Return the share of the values (String, null where missing) that are dates, 0 where there is none."""
    known = text.drop_nulls()
    return float(known.str.contains(PATTERN).mean() or 0.0) if len(known) else 0.0  # type: ignore[arg-type]


def are_dates_as_numbers(text: pl.Series, is_named: bool = False) -> bool:
    """Check that every value (String, null where missing) is a date without separators, as 20110304 or 201103.

    is_named: the name of the column is that of a date, which 110304 may be as well.
    """
    known = text.drop_nulls().unique()
    if len(known) < _MIN_DIFFERENT:
        return False
    forms = (*_AS_NUMBERS, *(_AS_SIX_DIGITS if is_named else ()))
    return any(bool(known.str.contains(rf"^{form}(?:\.0+)?$").all()) for form in forms)


def parse_dates(text: pl.Series) -> pl.Series | None:
    """(n,) Date of texts that all have one of these forms, the day before the month; None for others."""
    plain = text.str.replace(r"[T ]\d{1,2}:\d{2}.*$", "")
    for form in _PARSED:
        parsed = plain.str.to_date(form, strict=False)
        if parsed.null_count() == 0:
            return parsed
    return None


MAX_BIRTH_YEARS = 60  # of a trend


def birth_years(births: pl.Series) -> pl.Series:
    """Int64: the year of each birth, null where it is unknown.

    Births are years, years with a fraction (dates), or numbers like 20110304, whose year is taken.
    """
    number = pl.DataFrame({"birth": births.cast(pl.Float64)})
    as_date = pl.col("birth").is_between(1e7, 1e8)
    year = pl.when(as_date).then(pl.col("birth") / 10_000).otherwise(pl.col("birth")).floor().cast(pl.Int64)
    return number.select(year).to_series()


def group_years(years: pl.Series, max_groups: int = MAX_BIRTH_YEARS) -> pl.Series:
    """Int64: each year, or the first of several where there would be more than `max_groups`."""
    if years.null_count() == len(years) or years.n_unique() <= max_groups:
        return years
    known = years.drop_nulls().to_numpy()
    first, span = int(known.min()), int(known.max() - known.min()) + 1
    width = -(-span // max_groups)
    return years if width == 1 else (years - first) // width * width + first
