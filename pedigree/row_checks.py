"""What the rows of a pedigree must not have (refuse_...), and what may be wrong in them (question_...)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from pedigree.columns import RECOGNISED, PedigreeColumns, has_role_name, question_ids
from pedigree.errors import PedigreeError, UnknownColumns
from pedigree.group_names import match_groups, suggest_groups
from pedigree.parents import UNKNOWN_VALUES
from pedigree.spelling import normal_forms
from pedigree.tables import Table, quoted

_ROUNDED = re.compile(r"[0-9][.,]([0-9]+)[eE][+]([0-9]{1,3})")
_MAX_IDS_COMPARED = 1_000_000
_SHOWN_ALIKE = 3
_TOTALS = r"^\(?(?:(?:grand)?totals?|sums?|count|average|mean|n=[0-9]+|[0-9]+(?:rows?|animals?|records?).*)\)?:?$"


def refuse_lost_digits(table: Table, ids: pl.Series) -> None:
    """Refuse ids that lost digits: a spreadsheet writes 123456789012 as 1.23457E+11."""
    for row in ids.str.contains_any(["E+", "e+"]).arg_true():
        if match := _ROUNDED.fullmatch(ids[row]):
            if len(match[1]) < int(match[2]):
                raise PedigreeError(
                    f"{table.name} row {table.line(row)}: the id {quoted(ids[row])} is a number that has lost digits; "
                    "needed all of them (in the spreadsheet, format the column as text or as a number without "
                    "decimals before it is saved)"
                )


def refuse_header_again(table: Table, frame: pl.DataFrame, chosen: PedigreeColumns) -> None:
    """Refuse a second header line, as two files put together have one.

    A comment above the names also makes these an animal called 'id' of sire 'sire'.
    """
    roles = [(role, c) for role, c in (("id", chosen.id), ("sire", chosen.sire), ("dam", chosen.dam)) if c is not None]
    again = [
        row
        for row in _rows_with_names(frame, [c for _, c in roles])
        if all(frame[c][row] == c or has_role_name(frame[c][row] or "", role) for role, c in roles)
    ]
    if not table.has_header and again[:1] == [0]:
        again = again[1:]  # the first line: who says that it is an animal has been warned
    if again:
        names = ", ".join(str(frame[c][again[0]]) for _, c in roles)
        which = "again " if table.has_header else ""
        above = "" if table.has_header or again[0] > 5 else ", and no lines above the names of the columns"
        raise PedigreeError(
            f"{table.name} row {table.line(again[0])}: found the names of the columns {which}({names}); "
            f"needed an animal{above}"
        )


def _rows_with_names(frame: pl.DataFrame, columns: Sequence[str]) -> list[int]:
    """Rows whose parents are words that columns of parents are called by; the columns' names among them."""
    words = {name for names in RECOGNISED.values() for name in names}
    last = frame[columns[-1]]
    plain = last.str.replace_all(r"[\W_]+", "").str.to_lowercase()
    return (plain.is_in(list(words)) | (last == columns[-1])).fill_null(False).arg_true().to_list()


def question_alike(table: Table, ids: pl.Series, parents: Sequence[np.ndarray]) -> list[str]:
    """Warn of animals with a row each whose ids differ in spelling alone: one animal in two rows, perhaps.

    Two animals may be called 'A' and 'a'. Asked about is one of which nothing is known, neither parents nor progeny,
    beside one with some.
    """
    if len(ids) > _MAX_IDS_COMPARED:
        return []
    forms = normal_forms(ids)
    if forms.n_unique() == len(forms):
        return []
    repeated = pl.DataFrame({"form": forms, "row": np.arange(len(ids))}).filter(pl.col("form").is_duplicated())
    groups = repeated.group_by("form", maintain_order=True).agg("row")["row"].to_list()
    is_related = (parents[0] >= 0) | (parents[1] >= 0)
    for rows in parents:
        is_related[rows[(rows >= 0) & (rows < len(ids))]] = True
    groups = [rows for rows in groups if is_related[rows].any() and not is_related[rows].all()]
    if not groups:
        return []
    shown = "; ".join(
        f"{quoted(ids[rows[0]])} (row {table.line(rows[0])}) and {quoted(ids[rows[1]])} (row {table.line(rows[1])})"
        for rows in groups[:_SHOWN_ALIKE]
    )
    more = f"; and {len(groups) - _SHOWN_ALIKE:,} more such" if len(groups) > _SHOWN_ALIKE else ""
    return [
        f"{table.name}: ids that differ only in how they are written are different animals: {shown}{more}. Where they "
        "are one animal, write its id in one way and give it one row"
    ]


def question_last_row(table: Table, ids: pl.Series, parents: Sequence[np.ndarray]) -> list[str]:
    """Warn where the last row has a total, as 'Total', 'n=40' or '(40 rows affected)', and no progeny."""
    last = len(ids) - 1
    is_total = normal_forms(ids.tail(1)).str.contains(_TOTALS)[0]
    if last < 1 or not is_total or any((p == last).any() for p in parents):
        return []
    return [
        f"{table.name} row {table.line(last)}: the last animal is {quoted(ids[last])}: is it a line of totals? Then "
        "delete it"
    ]


def refuse_duplicates(table: Table, ids: pl.Series, first: np.ndarray) -> None:
    """Refuse a second row of an animal. first: (n,) the first row with the id of each."""
    again = np.flatnonzero(first != np.arange(first.size, dtype=np.int32))
    if again.size:
        i = int(again[0])
        more = f" ({again.size} such rows)" if again.size > 1 else ""
        raise PedigreeError(
            f"{table.name} row {table.line(i)}: animal {quoted(ids[i])} has a row already, row {table.line(first[i])}; "
            f"needed one row for each animal{more}"
        )


def question_columns(
    table: Table,
    frame: pl.DataFrame,
    chosen: PedigreeColumns,
    unknown: tuple[str, ...],
    parents: Sequence[np.ndarray],
    n_added: int,
) -> list[str]:
    """Question the columns where most parents have no row, and another column may have them.

    UnknownColumns if the ids were guessed, else a warning.
    """
    is_parent = np.zeros(frame.height + n_added, bool)
    for rows in parents:
        is_parent[rows[rows >= 0]] = True
    if np.count_nonzero(is_parent[: frame.height]) >= n_added:
        return []
    question = question_ids(table, frame, chosen, unknown)
    if question is None:
        return []
    if chosen.asked:
        return [f"{table.name}: {question}"]
    raise UnknownColumns(f"{table.name}: {question}")


def refuse_own_parents(table: Table, ids: pl.Series, sire: np.ndarray, dam: np.ndarray) -> None:
    """Refuse an animal that is its own sire or dam. sire, dam: (n,) rows of the parents, -1 unknown."""
    row = np.arange(sire.size, dtype=np.int32)
    rows = np.flatnonzero((sire == row) | (dam == row))
    if rows.size:
        i = int(rows[0])
        as_what = "sire" if sire[i] == i else "dam"
        raise PedigreeError(
            f"{table.name} row {table.line(i)}: animal {quoted(ids[i])} is its own {as_what}; needed another animal"
        )


def refuse_one_parent_as_both(
    table: Table,
    ids: pl.Series,
    parents: list[pl.Series],
    sire: np.ndarray,
    dam: np.ndarray,
    possible_groups: Sequence[str],
) -> None:
    """Refuse an animal whose sire and dam are one. parents: sire and dam as they are written."""
    same = np.flatnonzero((sire == dam) & (sire >= 0))
    if same.size:
        i = int(same[0])
        raise PedigreeError(
            f"{table.name} row {table.line(i)}: {quoted(parents[0][i])} is both sire and dam of {quoted(ids[i])}; "
            f"needed two parents{_or_unknown(int(sire[i]), ids, parents[0][i], possible_groups)}"
        )


def _or_unknown(row: int, ids: pl.Series, parent: str, possible_groups: Sequence[str]) -> str:
    """Write what else a parent without a row may be."""
    if row < len(ids):
        return ""
    if possible_groups and match_groups(pl.Series([parent]), possible_groups)[0]:
        return f"; it has no row of its own and looks like a genetic group: {suggest_groups(possible_groups)}"
    return f"; it has no row of its own: if it means an unknown parent, add it to {UNKNOWN_VALUES}"


def refuse_both_sexes(
    table: Table, ids: pl.Series, sire: np.ndarray, dam: np.ndarray, n_rows: int, possible_groups: Sequence[str]
) -> None:
    """Refuse an animal that is a sire in one row and a dam in another. n_rows: of the ids, those with a row."""
    first = []  # of each id, the first row as a sire and as a dam, -1 for none: the last one written is the first row
    for parent in (sire, dam):
        rows = np.flatnonzero(parent >= 0)[::-1]
        row_of = np.full(len(ids), -1, np.int32)
        row_of[parent[rows]] = rows
        first.append(row_of)
    both = np.flatnonzero((first[0] >= 0) & (first[1] >= 0))
    if both.size:
        b = int(both[np.argmin(np.maximum(first[0], first[1])[both])])
        s, d = int(first[0][b]), int(first[1][b])
        more = f" ({both.size} such ids)" if both.size > 1 else ""
        raise PedigreeError(
            f"{table.name} row {table.line(max(s, d))}: {quoted(ids[b])} is a sire in row {table.line(s)} "
            f"and a dam in row {table.line(d)}; needed one or the other{more}"
            f"{_or_unknown(b, ids.head(n_rows), ids[b], possible_groups)}"
        )


def describe_loop(table: Table, ids: pl.Series, loop: np.ndarray) -> str:
    """Write the loop of an animal that is its own ancestor. loop: rows, each followed by a parent."""
    start = int(np.argmin(loop))  # begin at the first row of the file
    loop = np.roll(loop, -start)
    shown = [quoted(ids[int(i)]) for i in loop]
    if len(shown) > 20:
        shown = [*shown[:10], "...", *shown[-9:]]
    steps = " -> ".join([*shown, shown[0]])
    row = table.line(int(loop[0]))
    return (
        f"{table.name} row {row}: {shown[0]} is its own ancestor: {steps} (each followed by a parent); "
        "needed parents older than their progeny"
    )
