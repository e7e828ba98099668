"""Which columns of a table are id, sire, dam and birth, and whether its first line holds their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pedigree.errors import PedigreeError, UnknownColumns
from pedigree.tables import Separator, Source, Table, counted, open_table, quoted

_ROLES = ("id", "sire", "dam", "birth")
_SHOWN = 8  # columns named one by one
# Compared in lower case without punctuation: 'Birth_Year' is 'birthyear'.
RECOGNISED = {
    "id": "id animal animalid idanimal animalnumber individual ind indiv calf progeny offspring tag eartag".split(),
    "sire": "sire sireid idsire father fatherid idfather dad pollenparent maleparent".split(),
    "dam": "dam damid iddam mother motherid idmother mum mom seedparent femaleparent".split(),
    "birth": "birth birthyear yearofbirth byear yob birthdate dateofbirth dob born".split(),
}


@dataclass(frozen=True)
class PedigreeColumns:
    """Names of the columns in the opened table; notes say what was guessed."""

    id: str
    sire: str
    dam: str
    birth: str | None
    birth_asked: bool
    notes: tuple[str, ...]


def choose_columns(
    source: Source,
    columns: Mapping[str, str | int | None] | None,
    header: bool | None,
    separator: Separator,
    unknown: tuple[str, ...],
    name: str | None,
) -> tuple[Table, PedigreeColumns]:
    """Open the table and find its columns. `columns`: a dict by role, or None (see read_pedigree)."""
    if columns is not None:
        return _given(source, dict(columns), header, separator, name)
    table = open_table(source, separator, False, name)
    if table.first_record is None:  # a frame, parquet, arrow: its columns always have names
        if found := _by_name(table.names, table.name):
            return table, found
        raise _neither_parent(table.names, table.name)
    if header is False:
        return table, _first_three(table, "")
    if found := _by_name(table.first_record, table.name):
        return table.with_header(), found
    if header is None and _first_line_is_data(table, unknown):
        return table, _first_three(table, "the first line was taken as an animal, not as column names; ")
    raise _neither_parent(table.first_record, table.name)


def _given(
    source: Source,
    columns: Mapping[str, str | int | None],
    header: bool | None,
    separator: Separator,
    name: str | None,
) -> tuple[Table, PedigreeColumns]:
    for role in columns:
        if role not in _ROLES:
            raise PedigreeError(f"columns of a pedigree are id, sire, dam and birth; '{role}' is none of them")
    wanted = {role: c for role, c in columns.items() if c is not None}
    for role in _ROLES[:3]:
        if role not in wanted:
            raise PedigreeError(f"columns of the pedigree: '{role}' is missing; needed id, sire and dam")
    positions = any(isinstance(c, int) for c in wanted.values())
    table = open_table(source, separator, not positions if header is None else header, name)
    chosen = {role: table.column(c) for role, c in wanted.items()}
    return table, PedigreeColumns(
        chosen["id"], chosen["sire"], chosen["dam"], chosen.get("birth"), "birth" in chosen, ()
    )


def _by_name(columns: tuple[str, ...], where: str) -> PedigreeColumns | None:
    """Columns with recognised names; None where neither parent is recognised."""
    found = {}
    for role, names in RECOGNISED.items():
        at = [c for wanted in names for c in columns if _plain(c) == wanted]
        if at:
            found[role] = at[0]
    if "sire" not in found and "dam" not in found:
        return None
    said = ""
    if "id" not in found:
        if columns[0] not in found.values():
            found["id"] = columns[0]
            said = " (the first column is taken as the id)"
    for role in _ROLES[:3]:
        if role not in found:
            raise UnknownColumns(f"{where}: which column is the {role}? {_columns_and_names(columns, (role,))}")
    note = "columns recognised: " + ", ".join(f"{role} = '{found[role]}'" for role in _ROLES if role in found) + said
    return PedigreeColumns(found["id"], found["sire"], found["dam"], found.get("birth"), False, (note,))


def _plain(column: str) -> str:
    return re.sub(r"[\W_]+", "", column.lower())


def _neither_parent(columns: tuple[str, ...], where: str) -> UnknownColumns:
    """The first three of some other table would make herds the parents: none is taken for a parent by its place."""
    return UnknownColumns(
        f"{where}: found no column named as a sire or a dam: is this a pedigree? "
        + _columns_and_names(columns, ("sire", "dam"))
    )


def _columns_and_names(columns: tuple[str, ...], roles: tuple[str, ...]) -> str:
    """The end of a message about columns whose role is not known, in several lines."""
    shown = ", ".join(quoted(c) for c in columns[:_SHOWN]) + (", ..." if len(columns) > _SHOWN else "")
    known = "\n".join(f"recognised as the {role}: {', '.join(RECOGNISED[role])}" for role in roles)
    return f"Its columns are {shown}\n{known}"


def _first_three(table: Table, said: str) -> PedigreeColumns:
    """Of a file without names."""
    if len(table.names) < 3:
        raise PedigreeError(f"{table.name}: found {counted(len(table.names), 'column')}, needed id, sire and dam")
    a, b, c = table.names[:3]
    return PedigreeColumns(a, b, c, None, False, (f"{said}the first three columns are taken as id, sire and dam",))


def _first_line_is_data(bare: Table, unknown: tuple[str, ...]) -> bool:
    """Whether the first line is an animal: a digit, an unknown parent, or a value that stands in another row.

    It is none where one of its fields is a usual name of the column of ids: 'animal,weight1,weight2' has a digit.
    """
    first = (bare.first_record or ())[:3]
    if any(_plain(field) in RECOGNISED["id"] for field in first):
        return False
    if len(first) < 3 or any(value in unknown or any(c.isdigit() for c in value) for value in first):
        return True
    rest = bare.read([1, 2, 3])[1:]
    return any((rest[column] == value).any() for column in rest.columns for value in first)
