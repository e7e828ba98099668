"""Which columns of a table are id, sire, dam and birth, and whether its first line holds their names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from mmgibbs.pedigree.errors import PedigreeError, TableError, UnknownColumns
from mmgibbs.pedigree.spelling import are_unknown_codes, normal_forms
from mmgibbs.pedigree.tables import Separator, Source, Table, counted, open_table, quoted

_ROLES = ("id", "sire", "dam", "birth")
_SHOWN = 8  # columns named one by one
# Compared in lower case without punctuation: 'Birth_Year' is 'birthyear'.
RECOGNISED = {
    "id": "id animal animalid idanimal animalnumber animalno individual individualid ind indiv iid calf progeny "
    "offspring tag eartag tier tiernr tiernummer ohrmarke kalb veau".split(),
    "sire": "sire sireid idsire sireno sirenumber father fatherid idfather dad pollenparent maleparent vater vaternr "
    "père pere padre".split(),
    "dam": "dam damid iddam damno damnumber mother motherid idmother mum mom seedparent femaleparent mutter mutternr "
    "mère mere madre".split(),
    "birth": "birth birthyear yearofbirth byear yob birthdate dateofbirth dob born geburtsdatum geburtsjahr geburt "
    "naissance datedenaissance datenaissance".split(),
}
GRANDSIRES = """mgs mgsire matgs maternalgrandsire maternalgsire matgrandsire damsire damssire siredam sireofdam
    grandsire maternalgrandfather mothersfather fatherofmother""".split()
_MIN_DISTINCT = (
    0.9  # share of the rows of a column of ids that have an id of their own; some may stand twice by mistake
)
_MIN_RATIO = 2.0  # of the parents that one column has and another has: from here the first is the ids
_MAX_ROWS_COMPARED = 200_000  # of a table whose ids have a recognised name and number the rows
_MIN_NUMBERS = 0.95  # share of the values below a line of words that have a digit where these are names of columns


@dataclass(frozen=True)
class PedigreeColumns:
    """Names of the columns in the opened table. sire or dam is None where the table has no such column."""

    id: str
    sire: str | None
    dam: str | None
    birth: str | None
    birth_asked: bool = False
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    guessed: bool = False  # a column was taken by its place or its values: errors say which
    asked: bool = False  # whoever asked has named the column of ids

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(c for c in (self.sire, self.dam) if c is not None)

    @property
    def described(self) -> str:
        """'id = 'Nr', sire = 'V', dam = 'M''."""
        chosen = {role: getattr(self, role) for role in _ROLES}
        return ", ".join(f"{role} = {_shown(column)}" for role, column in chosen.items() if column is not None)


def has_role_name(column: str, role: str) -> bool:
    """Return whether a column has a recognised name of a role: 'id', 'sire', 'dam' or 'birth'."""
    return _plain(column) in RECOGNISED[role]


def choose_columns(
    source: Source,
    columns: Mapping[str, str | int | None] | None,
    header: bool | None,
    separator: Separator,
    unknown: tuple[str, ...],
    name: str | None,
    recorded: Callable[[], pl.Series] | None = None,
    encoding: str | None = None,
) -> tuple[Table, PedigreeColumns]:
    """Open the table and find its columns.

    columns: by role, or None (see read_pedigree). recorded: makes the ids that other tables have, which say where more
    than one column may be the ids.
    """
    guess = _Guess(unknown, recorded)
    if columns is not None:
        return _given(source, dict(columns), header, separator, name, guess, encoding)
    table = open_table(source, separator, False, name, encoding)
    if table.first_record is None:  # a frame, parquet, arrow: its columns always have names
        if chosen := _recognise_columns(table, {}, guess):
            return table, chosen
        raise _neither_parent(table.names, table.name)
    if header is False:
        return table, _first_three(table, "", _names_taken_as_animal(table, table.names[:3]))
    if _has_parent(table.first_record):
        table = table.with_header()
        chosen = _recognise_columns(table, {}, guess)
        assert chosen is not None, "a parent has a recognised name"
        return table, chosen
    if header is None and _first_line_is_data(table, unknown):
        return table, _first_three(table, "the first line was taken as an animal, not as column names; ", ())
    raise _neither_parent(table.first_record or (), table.name)


@dataclass(frozen=True)
class _Guess:
    """Facts by which columns are judged."""

    unknown: tuple[str, ...]
    recorded: Callable[[], pl.Series] | None

    def known_ids(self, values: Sequence[pl.Series]) -> pl.Series:
        """Unique ids of some columns, without codes for unknown."""
        ids = pl.concat([v.rename("id") for v in values]).drop_nulls().unique()
        return ids.filter(~ids.is_in(list(self.unknown)) & ~are_unknown_codes(ids))


def _given(
    source: Source,
    columns: Mapping[str, str | int | None],
    header: bool | None,
    separator: Separator,
    name: str | None,
    guess: _Guess,
    encoding: str | None,
) -> tuple[Table, PedigreeColumns]:
    for role in columns:
        if role not in _ROLES:
            raise PedigreeError(f"columns of a pedigree are id, sire, dam and birth; '{role}' is none of them")
    wanted = {role: c for role, c in columns.items() if c is not None}
    without = [role for role in ("sire", "dam") if role in columns and columns[role] is None]
    if len(without) == 2:
        raise PedigreeError("columns of the pedigree: found neither a sire nor a dam; needed one of them at least")
    if not any(isinstance(c, int) for c in wanted.values()):
        table = open_table(source, separator, True if header is None else header, name, encoding)
        given = {role: table.column(c) for role, c in wanted.items()} | dict.fromkeys(without)
        if all(role in given for role in _ROLES[:3]):
            return table, _collect_columns(given, given)
        chosen = _recognise_columns(table, given, guess)
        if chosen is None:
            raise _neither_parent(table.names, table.name)
        return table, chosen
    for role in _ROLES[:3]:
        if role not in wanted and role not in without:
            either = "" if role == "id" else f" ({role}: null for a pedigree without {role}s)"
            raise PedigreeError(f"columns of the pedigree: '{role}' is missing; needed id, sire and dam{either}")
    table = open_table(source, separator, False, name, encoding)
    roles = [role for role in _ROLES[:3] if role in wanted]
    at = [table.names.index(table.column(wanted[role])) for role in roles]
    warnings: tuple[str, ...] = ()
    if table.first_record is not None:
        fields = [table.first_record[i] for i in at]
        line = ", ".join(quoted(f) for f in fields)
        is_named = any(has_role_name(f, role) for f, role in zip(fields, roles, strict=True))
        if header is None and (is_named or _is_above_numbers(table, at)):
            warnings = (
                f"{table.name}: the first line ({line}) was taken as a header, the names of the columns, and not as an "
                "animal: state whether there is a header",
            )
            header = True
        elif header is False:
            warnings = _names_taken_as_animal(table, [table.names[i] for i in at])
        elif header and not is_named and _first_line_is_data(table, guess.unknown, at):
            warnings = (
                f"{table.name}: the first line was taken as names of the columns, as stated, but looks like an animal "
                f"({line}): is there a header?",
            )
        table = table.with_header() if header else table
    given = {role: table.column(c) for role, c in wanted.items()}
    return table, _collect_columns(given, given, (), warnings)


def _collect_columns(
    chosen: Mapping[str, str | None],
    given: Mapping[str, str | None],
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    guessed: bool = False,
) -> PedigreeColumns:
    id_column, birth_asked = chosen["id"], given.get("birth") is not None
    assert id_column is not None, "there is always a column of ids"
    sire, dam, birth = (chosen.get(role) for role in _ROLES[1:])
    asked = given.get("id") is not None
    return PedigreeColumns(id_column, sire, dam, birth, birth_asked, tuple(notes), tuple(warnings), guessed, asked)


def _has_parent(columns: Sequence[str]) -> bool:
    return any(has_role_name(c, role) for c in columns for role in ("sire", "dam"))


def _recognise_columns(table: Table, given: Mapping[str, str | None], guess: _Guess) -> PedigreeColumns | None:
    """The given columns, and the others by their names; None where neither parent is recognised.

    given: column by role; None for a parent that the table does not have.
    """
    chosen: dict[str, str | None] = dict(given)
    named: dict[str, list[str]] = {}
    for role, names in RECOGNISED.items():
        taken = set(chosen.values())
        named[role] = [c for wanted in names for c in table.names if _plain(c) == wanted and c not in taken]
        if role not in chosen and role != "id" and named[role]:
            chosen[role] = named[role][0]
    said: list[str] = []
    warnings: list[str] = []
    for role in ("sire", "dam"):
        if role not in given and len(named[role]) > 1:
            chosen[role] = _parent_column(table, role, named, chosen, guess, said, warnings)
    if chosen.get("sire") is None and chosen.get("dam") is None:
        return None
    if "id" not in chosen:
        chosen["id"] = _id_column(table, chosen, named["id"], guess, said, warnings)
    for role in ("sire", "dam"):
        if role not in chosen:
            chosen[role] = None
            warnings.append(_no_parent(table, role, chosen))
    note = "columns recognised: " + ", ".join(
        f"{role} = '{chosen[role]}'" for role in _ROLES if chosen.get(role) is not None
    )
    return _collect_columns(chosen, given, (note + "".join(said),), warnings, guessed=bool(said))


def _parent_column(
    table: Table,
    role: str,
    named: Mapping[str, Sequence[str]],
    chosen: Mapping[str, str | None],
    guess: _Guess,
    said: list[str],
    warnings: list[str],
) -> str:
    """Choose among several columns named as a parent is the one with most animals in it.

    Such columns are the breed and the id of a sire.
    """
    columns = named[role]
    parents = {c for r in ("sire", "dam") for c in named[r]}
    ids = (
        [chosen["id"]] if chosen.get("id") is not None else named["id"] or [c for c in table.names if c not in parents]
    )
    frame = _readable(table, [*columns, *(c for c in ids if c is not None)])
    columns = [c for c in columns if c in frame.columns]
    known = guess.known_ids([frame[c] for c in ids if c in frame.columns])
    n_animals = dict(zip(columns, _count_known(known, [frame[c] for c in columns]).values(), strict=True))
    most = max(columns, key=lambda c: n_animals[c])
    if n_animals[most] > n_animals[columns[0]]:
        said.append(f" ({_shown(most)} is the {role}: {n_animals[most]:,} of its values are ids of animals)")
        return most
    if any(n_animals[c] == n_animals[columns[0]] and not frame[c].equals(frame[columns[0]]) for c in columns[1:]):
        warnings.append(
            f"{table.name}: which column is the {role}? {_shown(columns[0])} was taken, and "
            f"{_either(columns[1:])} may be it too: name the columns if that is wrong"
        )
    return columns[0]


# ------------------------------------------------------------------------------------------------ the column of ids


def _id_column(
    table: Table,
    chosen: Mapping[str, str | None],
    named: Sequence[str],
    guess: _Guess,
    said: list[str],
    warnings: list[str],
) -> str:
    """The column of ids: the one with a recognised name, else the one whose values are those of the parents."""
    rest = [c for c in table.names if c not in chosen.values()]
    named = [c for c in named if c in rest]
    if len(named) == 1:
        warnings.extend(_question_row_numbers(table, named[0], rest, chosen, guess))
        return named[0]
    if not rest:
        raise UnknownColumns(f"{table.name}: which column is the id? {_columns_and_names(table.names, ('id',))}")
    if len(rest) == 1:
        said.append(f" (the {'first' if rest[0] == table.names[0] else 'other'} column is taken as the id)")
        return rest[0]
    candidates = _Candidates.among(table, named or rest, chosen, guess)
    column = candidates.best()
    if column is None and named and not any(candidates.n_parents.values()):
        column = named[0]  # no value speaks against its name
    if column is None:
        raise UnknownColumns(
            f"{table.name}: which column is the id, {_either(candidates.likely)}? "
            f"{_columns_and_names(table.names, ('id',))}"
        )
    said.append(f" ({candidates.reason(column)})")
    numbers = [c for c in candidates.row_numbers if c != column and candidates.n_parents[c]]
    if numbers:
        warnings.append(
            f"{table.name}: which column is the id? Column {_shown(column)} was taken, as {_shown(numbers[0])} "
            "numbers the rows: name the columns if that is wrong"
        )
    return column


def _question_row_numbers(
    table: Table, column: str, rest: Sequence[str], chosen: Mapping[str, str | None], guess: _Guess
) -> list[str]:
    """A warning where the column that is named for the ids numbers the rows, and another has all parents as well."""
    if len(rest) == 1 or table.n_rows > _MAX_ROWS_COMPARED or not _numbers_rows(table.read([column]).to_series()):
        return []
    candidates = _Candidates.among(table, rest, chosen, guess)
    all_parents = [c for c in candidates.likely if c != column and candidates.n_parents[c] == candidates.n_known >= 2]
    if not all_parents:
        return []
    return [
        f"{table.name}: which column is the id? {_shown(column)} was taken by its name and numbers the rows, but "
        f"{_either(all_parents)} has all parents too: name the columns if that is wrong"
    ]


@dataclass(frozen=True)
class _Candidates:
    """Columns that may be the ids, judged by their values."""

    likely: list[str]  # those that are not out of the question
    n_parents: dict[str, int]  # known parents among the values of each
    n_known: int  # known parents
    row_numbers: list[str]  # columns that number the rows
    recorded: dict[str, int] = field(default_factory=dict)  # ids of other tables among the values of each

    @classmethod
    def among(
        cls, table: Table, columns: Sequence[str], chosen: Mapping[str, str | None], guess: _Guess
    ) -> _Candidates:
        of_parents = [c for c in (chosen.get("sire"), chosen.get("dam")) if c is not None]
        frame = _readable(table, [*of_parents, *columns])
        columns = [c for c in columns if c in frame.columns]
        distinct = {c: frame[c].drop_nulls().n_unique() for c in columns}
        likely = [c for c in columns if distinct[c] >= _MIN_DISTINCT * frame.height] or list(columns)
        likely = [c for i, c in enumerate(likely) if not any(frame[c].equals(frame[e]) for e in likely[:i])]
        known = guess.known_ids([frame[c] for c in of_parents])
        n_parents = _count_known(known, [frame[c] for c in likely])
        numbers = [c for c in likely if _numbers_rows(frame[c])]
        recorded = {}
        if len(likely) > 1 and guess.recorded is not None:
            recorded = _count_known(guess.known_ids([guess.recorded()]), [frame[c] for c in likely])
        return cls(likely, n_parents, len(known), numbers, recorded)

    def best(self) -> str | None:
        """The column that is the ids; None where two may be."""
        rest = [c for c in self.likely if c not in self.row_numbers]
        most = max(self.n_parents.values())
        # numbers of rows are ids where no other column has the parents: 1..n of a renumbered pedigree
        rest = [c for c in rest if _MIN_RATIO * self.n_parents[c] >= most] or list(self.likely)
        for count in (self.n_parents, self.recorded):
            if len(rest) > 1 and count:
                rest = [c for c in rest if _MIN_RATIO * count[c] > max(count[d] for d in rest)] or rest
        return rest[0] if len(rest) == 1 else None

    def reason(self, column: str) -> str:
        if len(self.likely) == 1:
            return f"column '{column}' is taken as the id, as values of the others stand in many rows"
        if self.n_known and self.n_parents[column]:
            return (
                f"column '{column}' is taken as the id: it has {self.n_parents[column]:,} of the "
                f"{counted(self.n_known, 'known parent')}"
            )
        return f"column '{column}' is taken as the id"


def _count_known(ids: pl.Series, columns: Sequence[pl.Series]) -> dict[str, int]:
    """Count the unique ids that each column has: as they are written, or, if none has any, in any spelling."""
    counts = {c.name: int(ids.is_in(c.implode()).sum()) for c in columns}
    if any(counts.values()):
        return counts
    forms = normal_forms(ids).unique()
    return {c.name: int(forms.is_in(normal_forms(c).implode()).sum()) for c in columns}


def _readable(table: Table, columns: Sequence[str]) -> pl.DataFrame:
    """Read those of the columns that have text or numbers, as text."""
    series = []
    for column in columns:
        with contextlib.suppress(TableError):
            series.append(table.read([column]).to_series())
    return pl.DataFrame(series)


def _numbers_rows(values: pl.Series) -> bool:
    """1, 2, 3, ... or 0, 1, 2, ... down the table."""
    if values.null_count() or values[0] not in ("0", "1"):
        return False
    first = int(values[0])
    numbers = pl.Series(np.arange(first, first + len(values))).cast(pl.String)
    return bool((values == numbers).all())


def question_ids(table: Table, frame: pl.DataFrame, chosen: PedigreeColumns, unknown: tuple[str, ...]) -> str | None:
    """Ask whether another column has the parents that the column of ids lacks; None where none has.

    Asked where fewer than half of the parents have a row. frame: the chosen columns.
    """
    used = (chosen.id, *chosen.parents)
    rest = [c for c in table.names if c not in used]
    if not rest:
        return None
    guess = _Guess(unknown, None)
    known = normal_forms(guess.known_ids([frame[c] for c in chosen.parents])).unique()
    n_rows = int(known.is_in(normal_forms(frame[chosen.id]).implode()).sum())
    for values in _readable(table, rest):
        column = values.name
        if values.drop_nulls().n_unique() < _MIN_DISTINCT * len(values):
            continue
        n = int(known.is_in(normal_forms(values).implode()).sum())
        if 2 * n > len(known) and n >= _MIN_RATIO * n_rows:
            return (
                f"which column is the id? Column {_shown(chosen.id)} was taken, which has {n_rows:,} of the "
                f"{counted(len(known), 'known parent')}; column {_shown(column)} has {n:,} of them"
            )
    return None


def _no_parent(table: Table, role: str, chosen: Mapping[str, str | None]) -> str:
    """The warning for a pedigree without sires, or without dams; UnknownColumns where a column may be these."""
    rest = [c for c in table.names if c not in chosen.values()]
    grandsires = next((c for c in rest if role == "dam" and _plain(c) in GRANDSIRES), None)
    if grandsires is not None:
        raise UnknownColumns(
            f"{table.name}: found no column of dams, but maternal grandsires ({_shown(grandsires)}). Give each animal "
            f"X with one a dam of its own under a new id, such as dam_of_X, and this dam a row with the grandsire as "
            f"her sire. {_columns_and_names(table.names, ('dam',))}"
        )
    if rest:
        raise UnknownColumns(
            f"{table.name}: which column is the {role}? It may be {_either(rest)}; where there are no {role}s, state "
            f"{role}: null. {_columns_and_names(table.names, (role,))}"
        )
    columns = ", ".join(_shown(c) for c in table.names[:_SHOWN])
    return (
        f"{table.name}: found no column of {role}s ({columns}): every {role} is unknown. State {role}: null if that is "
        "right, else name its column"
    )


def _either(columns: Sequence[str]) -> str:
    shown = [_shown(c) for c in columns[:_SHOWN]]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _shown(column: str) -> str:
    return quoted(column) if column else "without a name"


# ------------------------------------------------------------------------------------------------ words


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


# ------------------------------------------------------------------------------------------------ the first line


def _first_three(table: Table, said: str, warnings: tuple[str, ...]) -> PedigreeColumns:
    """Take the first three columns of a file without a header."""
    if len(table.names) < 3:
        raise PedigreeError(f"{table.name}: found {counted(len(table.names), 'column')}, needed id, sire and dam")
    a, b, c = table.names[:3]
    note = f"{said}the first three columns are taken as id, sire and dam"
    return PedigreeColumns(a, b, c, None, False, (note,), warnings, guessed=True)


def _names_taken_as_animal(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """A warning where a first line that is stated to be an animal has names of columns."""
    fields = [(table.first_record or ())[table.names.index(c)] for c in columns]
    if not any(has_role_name(f, role) for f, role in zip(fields, _ROLES, strict=False)):
        return ()
    return (
        f"{table.name}: the first line was taken as an animal, as stated, but has names of columns "
        f"({', '.join(quoted(f) for f in fields)}): is it a header?",
    )


def _is_above_numbers(bare: Table, at: Sequence[int]) -> bool:
    """Check whether the first line has words alone, and nearly all values below it have digits or are unknown."""
    fields = [(bare.first_record or ())[i] for i in at]
    if bare.n_rows < 2 or any(not f or any(c.isdigit() for c in f) for f in fields):
        return False
    if are_unknown_codes(pl.Series(fields)).any():
        return False
    below = bare.read([i + 1 for i in at])[1:]
    if below.to_series(0).null_count() == below.height:
        return False
    for values in below:
        known = values.drop_nulls()
        is_number = known.str.contains("[0-9]") | are_unknown_codes(known)
        if len(known) and is_number.mean() < _MIN_NUMBERS:  # type: ignore[operator]
            return False
    return True


def _first_line_is_data(bare: Table, unknown: tuple[str, ...], at: Sequence[int] = (0, 1, 2)) -> bool:
    """Check whether the first line is an animal: a digit, an unknown parent, or a value that is in another row.

    It is none where one of its fields is a usual name of the column of ids: 'animal,weight1,weight2' has a digit.
    """
    record = bare.first_record or ()
    first = [record[i] for i in at if i < len(record)]
    if any(_plain(value) in RECOGNISED["id"] for value in first) or not first[0]:
        return False
    if len(first) < len(at) or any(any(c.isdigit() for c in value) for value in first):
        return True
    if any(value in unknown for value in first) or are_unknown_codes(pl.Series(first)).any():
        return True
    rest = bare.read([i + 1 for i in at])[1:]
    return any((rest[column] == value).any() for column in rest.columns for value in first)
