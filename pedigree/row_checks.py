"""What the rows of a pedigree must not have (refuse_...), and what may be wrong in them (question_...)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mmgibbs.pedigree.columns import RECOGNISED, PedigreeColumns, has_role_name, question_ids
from mmgibbs.pedigree.errors import PedigreeError, UnknownColumns
from mmgibbs.pedigree.group_names import match_groups, suggest_groups
from mmgibbs.pedigree.parents import UNKNOWN_VALUES
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED, Problems, list_rows
from mmgibbs.pedigree.recode import parents_first
from mmgibbs.pedigree.spelling import have_lost_digits, normal_forms
from mmgibbs.pedigree.tables import Table, counted, quoted

_MAX_LOOPS = 20  # that are looked for one after another
_MAX_IDS_COMPARED = 1_000_000
_SHOWN_ALIKE = 3
_TOTALS = r"^\(?(?:(?:grand)?totals?|sums?|count|average|mean|n=[0-9]+|[0-9]+(?:rows?|animals?|records?).*)\)?:?$"


SELFING = (
    "where these are plants or lines, name a column of the pedigree with the generations of selfing, which may be "
    "empty: relationship: {kind: pedigree, selfing: COLUMN}"
)
LOST_DIGITS = (
    "all digits of the id: in the spreadsheet, format the column of ids as text, write these ids again or take them "
    "from their source, and save it anew"
)


def take_rows(
    table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, unknown: tuple[str, ...], problems: Problems
) -> tuple[Table, pl.DataFrame, list[str]]:
    """Return the table and its frame with one row for each animal, and notes.

    Left out are copies of a row, which are counted in a note, and with a problem: names of columns as an animal, rows
    without an id, and rows that contradict an earlier one of the same animal.
    """
    of_header = _refuse_header_again(table, frame, chosen, problems)
    without_id = _refuse_missing_ids(table, frame[chosen.id], unknown, problems)
    _refuse_lost_digits(table, frame, chosen, problems)
    keep = ~(of_header | without_id)
    ids, notes = frame[chosen.id], []
    repeated = (ids.is_duplicated() & pl.Series(keep)).arg_true()
    if len(repeated):
        known = pl.col([c for c in chosen.parents if c is not None])
        alike = frame.with_columns(pl.when(~known.is_in(list(unknown))).then(known))  # unknown parents in one way
        copies, others = _split_repeated(alike[repeated], chosen.id, repeated.to_numpy())
        if copies.size:
            first = table.line(int(copies[0]))
            notes.append(
                f"{table.name}: {counted(copies.size, 'row', 'is')} the same as an earlier one of the animal: taken "
                f"once (the first such: row {first})"
            )
        _refuse_repeated(table, alike, chosen, others, problems)
        keep[[row for row, _ in others]] = False
        keep[copies] = False
    if keep.all():
        return table, frame, notes
    return table.keep(keep), frame.filter(pl.Series(keep)), notes


def _split_repeated(
    repeated: pl.DataFrame, id_column: str, rows: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """(rows that are copies of earlier ones, (row, first row of the animal) of the others but the first)."""
    is_first = repeated.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    first: dict[str, int] = {}
    others = []
    for animal, row in zip(repeated[id_column].to_list(), rows.tolist(), strict=True):
        first.setdefault(animal, row)
    for animal, row, distinct in zip(repeated[id_column].to_list(), rows.tolist(), is_first.tolist(), strict=True):
        if distinct and first[animal] != row:
            others.append((row, first[animal]))
    return rows[~is_first], others


def _refuse_repeated(
    table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, others: list[tuple[int, int]], problems: Problems
) -> None:
    """Rows that contradict an earlier one of the same animal are a problem, but for ids that lost their digits."""
    if not others:
        return
    spoiled = have_lost_digits(frame[chosen.id].gather([row for row, _ in others])).to_list()  # said already
    said = [pair for pair, lost in zip(others, spoiled, strict=True) if not lost]
    if said:
        lines = [table.line(row) for row, _ in said]
        found = [_describe_repeated(table, frame, chosen, row, first) for row, first in said[:MAX_ROWS_LISTED]]
        problems.add(list_rows(table.name, lines, found, "one row for each animal"))


def _describe_repeated(table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, row: int, first: int) -> str:
    said = f"animal {quoted(frame[chosen.id][row])} has a row already, row {table.line(first)}"
    differing = [c for c in frame.columns if frame[c][row] != frame[c][first]]
    cells = [
        f"{quoted(c)} is {_show_cell(frame[c][row])} here and {_show_cell(frame[c][first])} there" for c in differing
    ]
    return f"{said}: {', '.join(cells)}"


def _show_cell(value: str | None) -> str:
    return "empty" if value is None else quoted(value)


def _refuse_missing_ids(table: Table, ids: pl.Series, unknown: tuple[str, ...], problems: Problems) -> np.ndarray:
    """(n,) bool, which rows have no id: a problem."""
    named = [u for u in unknown if u != ""]  # empty values are null already
    missing = (ids.is_null() | ids.is_in(named)).to_numpy()
    rows = np.flatnonzero(missing)
    if rows.size:
        found = [
            f"column '{ids.name}' has "
            + ("an empty value" if ids[i] is None else f"{quoted(ids[i])}, which means an unknown parent")
            for i in rows[:MAX_ROWS_LISTED].tolist()
        ]
        problems.add(list_rows(table.name, table.lines()[rows].tolist(), found, "an animal's id"))
    return missing


def _refuse_lost_digits(table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, problems: Problems) -> None:
    """Ids that lost digits are a problem: a spreadsheet writes 123456789012 as 1.23457E+11."""
    cells = [
        (int(row), f"the id {quoted(frame[column][row])} (column '{column}') is a number that has lost digits")
        for column in (chosen.id, *chosen.parents)
        for row in have_lost_digits(frame[column]).arg_true()
    ]
    if cells:
        rows, found = zip(*sorted(cells), strict=True)
        problems.add(list_rows(table.name, table.lines()[list(rows)].tolist(), found, LOST_DIGITS))


def _refuse_header_again(table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, problems: Problems) -> np.ndarray:
    """(n,) bool, which rows are a second header line, as two files put together have one: a problem.

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
    is_header = np.zeros(frame.height, bool)
    is_header[again] = True
    if again:
        names = ", ".join(str(frame[c][again[0]]) for _, c in roles)
        which = "again " if table.has_header else ""
        above = "" if table.has_header or again[0] > 5 else ", and no lines above the names of the columns"
        problems.add(
            f"{table.name} row {table.line(again[0])}: found the names of the columns {which}({names}); "
            f"needed an animal{above}"
        )
    return is_header


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


def refuse_own_parents(table: Table, ids: pl.Series, sire: np.ndarray, dam: np.ndarray, problems: Problems) -> None:
    """Refuse animals that are their own sire or dam, and make these parents unknown.

    sire, dam: (n,) rows of the parents, -1 unknown.
    """
    row = np.arange(sire.size, dtype=np.int32)
    rows = np.flatnonzero((sire == row) | (dam == row))
    if rows.size:
        found = [
            f"animal {quoted(ids[i])} is its own {'sire' if sire[i] == i else 'dam'}"
            for i in rows[:MAX_ROWS_LISTED].tolist()
        ]
        problems.add(list_rows(table.name, table.lines()[rows].tolist(), found, "another animal"))
        for parent in (sire, dam):
            parent[parent == row] = -1


def refuse_one_parent_as_both(
    table: Table,
    ids: pl.Series,
    parents: list[pl.Series],
    sire: np.ndarray,
    dam: np.ndarray,
    possible_groups: Sequence[str],
    problems: Problems,
) -> None:
    """Refuse animals whose sire and dam are one, and make these unknown. parents: sire and dam as they are written."""
    same = np.flatnonzero((sire == dam) & (sire >= 0))
    has_row = sire[same] < len(ids)
    describe_both = lambda i: f"{quoted(parents[0][i])} is both sire and dam of {quoted(ids[i])}"
    rows = same[has_row]
    if rows.size:
        found = [describe_both(i) for i in rows[:MAX_ROWS_LISTED].tolist()]
        problems.add(list_rows(table.name, table.lines()[rows].tolist(), found, "two parents", SELFING))
    codes = same[~has_row]  # parents without a row: each may be a code
    _, first, times = np.unique(sire[codes], return_index=True, return_counts=True)
    for i, n in sorted(zip(codes[first].tolist(), times.tolist(), strict=True))[:MAX_ROWS_LISTED]:
        more = f" ({n:,} such rows)" if n > 1 else ""
        problems.add(
            f"{table.name} row {table.line(i)}: {describe_both(i)}; "
            f"needed two parents{more}{_or_unknown(int(sire[i]), ids, parents[0][i], possible_groups)}"
        )
    is_same = (sire == dam) & (sire >= 0)
    sire[is_same] = dam[is_same] = -1


def _or_unknown(row: int, ids: pl.Series, parent: str, possible_groups: Sequence[str]) -> str:
    """Write what else a parent without a row may be."""
    if row < len(ids):
        return ""
    if possible_groups and match_groups(pl.Series([parent]), possible_groups)[0]:
        return f"; it has no row of its own and looks like a genetic group: {suggest_groups(possible_groups)}"
    return f"; it has no row of its own: if it means an unknown parent, add it to {UNKNOWN_VALUES}"


def refuse_both_sexes(
    table: Table,
    ids: pl.Series,
    sire: np.ndarray,
    dam: np.ndarray,
    n_rows: int,
    possible_groups: Sequence[str],
    problems: Problems,
) -> None:
    """Refuse animals that are sires in some rows and dams in others. n_rows: of the ids, those with a row."""
    first = []  # of each id, the first row as a sire and as a dam, -1 for none: the last one written is the first row
    for parent in (sire, dam):
        rows = np.flatnonzero(parent >= 0)[::-1]
        row_of = np.full(len(ids), -1, np.int32)
        row_of[parent[rows]] = rows
        first.append(row_of)
    both = np.flatnonzero((first[0] >= 0) & (first[1] >= 0))
    if not both.size:
        return
    both = both[np.argsort(np.maximum(first[0], first[1])[both], kind="stable")]
    lines: list[int] = []
    found = []
    for b in both[:MAX_ROWS_LISTED].tolist():
        s, d = int(first[0][b]), int(first[1][b])
        lines.append(table.line(max(s, d)))
        found.append(f"{quoted(ids[b])} is a sire in row {table.line(s)} and a dam in row {table.line(d)}")
    b = int(both[0])
    more = f" ({both.size:,} such ids)" if both.size > 1 else ""
    needed = f"one or the other{more}{_or_unknown(b, ids.head(n_rows), ids[b], possible_groups)}"
    problems.add(list_rows(table.name, lines, found, needed, SELFING if both[0] < n_rows else None))


def cut_loops(table: Table, ids: pl.Series, sire: np.ndarray, dam: np.ndarray, problems: Problems) -> np.ndarray:
    """Return the generation of each animal, (n,) int32; loops are problems, and their first animals lose parents."""
    for _ in range(_MAX_LOOPS):
        generation, loop = parents_first(sire, dam)
        if not loop.size:
            return generation
        problems.add(describe_loop(table, ids, loop))
        start = int(loop.min())
        sire[start] = dam[start] = -1
    raise PedigreeError(problems.describe())


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
