"""Years or dates of birth as numbers, none after those of the progeny."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.pedigree.columns import PedigreeColumns
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED, Problems, list_rows
from mmgibbs.pedigree.spelling import are_unknown_codes
from mmgibbs.pedigree.tables import Table, counted, quoted


def read_births(
    table: Table,
    text: pl.Series,
    chosen: PedigreeColumns,
    unknown: tuple[str, ...],
    ids: pl.Series,
    sire: np.ndarray,
    dam: np.ndarray,
    notes: list[str],
    warnings: list[str],
    problems: Problems,
) -> np.ndarray | None:
    """Return (n,) float64 births, checked against those of the parents; None where a column not asked for holds others.

    What means an unknown parent means an unknown birth as well: old files write 0. Where most values of a column that
    was not asked for are births, others are slips, of which there is a warning: results lack the births then.
    """
    text = text.set(text.is_in([*unknown, "NA"]), None)
    number = birth_numbers(text)
    bad = (number.is_null() & text.is_not_null()).arg_true()
    if len(bad):
        means_unknown = are_unknown_codes(text.gather(bad), "value") | text.gather(bad).str.contains(_NO_DATE)
        text = text.clone().scatter(bad.filter(means_unknown), None)
        bad = bad.filter(~means_unknown)
    if "0" in unknown and (zero := (number == 0).fill_null(False)).any():  # also '0.0'
        number = number.set(zero, None)
    if len(bad):
        needed = "a year (a number) or a date as 2011-03-04 or 04.03.2011"
        if chosen.birth_asked:
            found = [f"column '{chosen.birth}' has {quoted(text[row])}" for row in bad.head(MAX_ROWS_LISTED)]
            problems.add(list_rows(table.name, table.lines()[bad.to_numpy()].tolist(), found, needed))
            return None
        problem = f"{table.name} row {table.line(bad[0])}: column '{chosen.birth}' has {quoted(text[bad[0]])}, "
        problem += f"needed {needed}"
        n_values = len(text) - text.null_count()
        messages = warnings if 2 * len(bad) < n_values else notes
        messages.append(f"births are not used: {problem} ({len(bad):,} of {counted(n_values, 'value')} cannot be read)")
        return None
    birth = np.full(len(ids), np.nan)
    birth[: len(text)] = number.to_numpy()
    for parent, role in ((sire, "sire"), (dam, "dam")):
        years = birth[: parent.size]
        of_parent = np.where(parent >= 0, birth[parent], np.nan)
        younger = np.flatnonzero(of_parent > years)
        if younger.size:
            found = [
                f"{role} {quoted(ids[int(parent[i])])} is younger than its calf {quoted(ids[i])} "
                f"(born {text[int(parent[i])]} > {text[i]})"
                for i in younger[:MAX_ROWS_LISTED].tolist()
            ]
            needed = "parents older than their progeny"
            if not chosen.birth_asked:
                needed += f"; column '{chosen.birth}' was recognised as the birth: name the columns to leave it out"
            problems.add(list_rows(table.name, table.lines()[younger].tolist(), found, needed))
        equal = int(np.count_nonzero(of_parent == years))
        if equal:
            notes.append(f"same birth as the {role}, tolerated: {counted(equal, 'animal')}")
    return birth


def birth_numbers(text: pl.Series) -> pl.Series:
    """Convert births to Float64; null where they are neither numbers nor dates.

    Numbers stay as they are; dates yyyy-mm-dd or dd.mm.yyyy become year + (day of the year - 1) / 366. 31.12.99 is
    null: which century is for the user to say.
    """
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() == text.null_count():
        return number
    date = _dates(text, _YEAR_FIRST, "%Y-%m-%d").fill_null(_dates(text, _DAY_FIRST, "%d.%m.%Y"))
    by_date = date.dt.year().cast(pl.Float64) + (date.dt.ordinal_day() - 1).cast(pl.Float64) / 366
    return number.fill_null(by_date)


# of the text, without a time that may follow; %Y alone takes 99 for the year 99
_YEAR_FIRST = r"^(\d{4}-\d{1,2}-\d{1,2})(?:\D|$)"
_NO_DATE = r"^[0./\- :]+$"  # 0000-00-00 of databases
_DAY_FIRST = r"^(\d{1,2}\.\d{1,2}\.\d{4})(?:\D|$)"


def _dates(text: pl.Series, form: str, written: str) -> pl.Series:
    return text.str.extract(form, 1).str.to_date(written, strict=False)
