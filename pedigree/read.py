"""Read a pedigree table into checked, parents-first codes. Errors name file and row, what was found and needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from mmgibbs.pedigree.births import read_births
from mmgibbs.pedigree.columns import PedigreeColumns, choose_columns
from mmgibbs.pedigree.errors import PedigreeError, UnknownColumns
from mmgibbs.pedigree.group_names import GROUP_PARENTS, GroupsInParents, take_groups
from mmgibbs.pedigree.groups import group_codes
from mmgibbs.pedigree.parents import find_rows, place_parents, question_codes_as_ids, question_founders
from mmgibbs.pedigree.problems import Problems
from mmgibbs.pedigree.recode import IdIndex, parents_first_order, recode
from mmgibbs.pedigree.row_checks import (
    cut_loops,
    question_alike,
    question_columns,
    question_last_row,
    refuse_both_sexes,
    refuse_one_parent_as_both,
    refuse_own_parents,
    take_rows,
)
from mmgibbs.pedigree.spelling import are_unknown_codes, normal_forms
from mmgibbs.pedigree.tables import Separator, Source, Table, agreeing, counted, quoted


@dataclass(frozen=True)
class Pedigree:
    """A checked pedigree. Animals have codes 0 .. n - 1, parents before their progeny.

    Attributes
    ----------
    ids : polars.Series of String, shape (n,)
        Id of each code.
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents; -1 is unknown, and n .. n + n_groups - 1 are unknown-parent groups.
    birth : ndarray of float64, shape (n,), or None
        Births, NaN where unknown; None without a column of births.
    row : ndarray of int64, shape (n,)
        Line of the file (`Table.line`); -1 for an animal without a row.
    file_order : ndarray of int32, shape (n,)
        Codes in the order of the file, then the founders that were added.
    groups : tuple of str
        Names of the unknown-parent groups.
    notes : tuple of str
        Decisions that were made while reading.
    more : mapping from str to polars.Series
        Other columns that were asked for, (n,) String by code, null where empty.
    name : str
        Name of the file, for messages.
    warnings : tuple of str
        What may be wrong and changes results.
    possible_groups : tuple of str
        Names of parents without a row that look like unknown-parent groups and were not taken for these; "*" stands for
        any characters.
    """

    ids: pl.Series
    sire: np.ndarray
    dam: np.ndarray
    birth: np.ndarray | None
    row: np.ndarray
    file_order: np.ndarray
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    more: Mapping[str, pl.Series] = field(default_factory=dict)
    name: str = "pedigree"
    warnings: tuple[str, ...] = ()
    possible_groups: tuple[str, ...] = ()

    @property
    def n_animals(self) -> int:
        """Number of animals n."""
        return self.sire.size

    @property
    def n_groups(self) -> int:
        """Number of unknown-parent groups."""
        return len(self.groups)

    def spelled(self, ids: pl.Series) -> pl.Series:
        """Spell ids as the pedigree does.

        Parameters
        ----------
        ids : polars.Series
            Ids of another table.

        Returns
        -------
        polars.Series
            Ids as in the pedigree, where it has them; the others unchanged.
        """
        code = pl.DataFrame({"code": find_rows(IdIndex(self.ids), ids)})["code"]
        known = code >= 0
        return self.ids.gather(code.clip(0)).zip_with(known, ids).alias(ids.name) if known.any() else ids

    def codes(self, ids: pl.Series) -> pl.Series:
        """Look up the codes of ids. '5.0' is '5' if the pedigree has no '5.0'.

        Parameters
        ----------
        ids : polars.Series
            Ids of another table.

        Returns
        -------
        polars.Series of Int32
            Codes; null where an id is null or not in the pedigree.
        """
        code = find_rows(IdIndex(self.ids), ids.cast(pl.String))
        return (
            pl.DataFrame({"code": code}).select(pl.when(pl.col("code") >= 0).then("code").alias(ids.name)).to_series()
        )


@dataclass(frozen=True)
class ParentGroups:
    """Source of the groups of unknown parents of a pedigree: a column, or names among sires and dams.

    Parameters
    ----------
    column : str, int or None, default None
        Name or 1-based position of the column of the group of each animal's unknown parents.
    parents : sequence of str, default ()
        Names in the columns of sires and dams that are groups, not animals; "*" stands for any characters ("UPG_*").
        Cannot be combined with `column`.
    required : bool, default True
        Refuse an unknown parent without a group where there are groups. False leaves it unknown.

    Examples
    --------
    >>> from mmgibbs.pedigree import ParentGroups
    >>> ParentGroups(parents=["UPG_*"]).is_stated
    True
    """

    column: str | int | None = None
    parents: Sequence[str] = ()
    required: bool = True

    @property
    def is_stated(self) -> bool:
        """True if there are groups."""
        return self.column is not None or bool(self.parents)

    def _find_column(self, table: Table) -> str | None:
        """Return the name of the column of groups. Raises PedigreeError where both are given."""
        if self.column is not None and self.parents:
            raise PedigreeError(
                f"{table.name}: a column of groups cannot be combined with {GROUP_PARENTS}; expected one of them"
            )
        return None if self.column is None else table.column(self.column)


def read_pedigree(
    source: Source,
    *,
    columns: Mapping[str, str | int | None] | None = None,
    header: bool | None = None,
    separator: Separator = None,
    unknown: tuple[str, ...] = ("", "NA", "0"),
    groups: ParentGroups = ParentGroups(),
    founders: Iterable[str] | None = None,
    hermaphrodites: bool = False,
    more: Sequence[str] = (),
    name: str | None = None,
    recorded: Callable[[], pl.Series] | None = None,
    encoding: str | None = None,
    problems: Problems | None = None,
) -> Pedigree:
    """Read and check a pedigree.

    Ids are strings and stay strings ('007' is not '7'), except that '5.0' is '5' if it has no row itself. Parents
    without a row become founders, counted in the notes. A code for unknown among them ('.', 'UNK', '00', '-9') is an
    unknown parent, with a warning if it is none of `unknown`, unless `unknown` is empty.

    Parameters
    ----------
    source : path-like or polars.DataFrame
        A csv, tsv, white-space separated, parquet or arrow file, gzipped or not, or a frame.
    columns : mapping or None, default None
        Name or 1-based position of the columns "id", "sire", "dam" and "birth"; None for a sire or dam that the table
        does not have. Columns that are not given are recognised by name, the ids by their values if names do not tell.
        In a file without names, the first three columns are taken; a note says so.
    header : bool or None, default None
        Whether the first line has names. None decides from the line; a note says so.
    separator : str, sequence of int, or None, default None
        One character, " " for any white space, or the widths of columns. None guesses.
    unknown : tuple of str, default ("", "NA", "0")
        Values that mean an unknown parent.
    groups : ParentGroups, default ParentGroups()
        Where the groups of unknown parents are. By default there are none.
    founders : iterable of str or None, default None
        Ids to add as animals without parents if they have no row.
    hermaphrodites : bool, default False
        Allow an id to be both sire and dam.
    more : sequence of str, default ()
        Columns to keep unchanged.
    name : str or None, default None
        Name of the file in messages. None takes that of the path.
    recorded : callable or None, default None
        Returns the ids of other tables, which help to decide which of two columns has the ids.
    encoding : str or None, default None
        Encoding of a text file, such as "cp850". None takes UTF-8, else Windows-1252.
    problems : mmgibbs.pedigree.problems.Problems or None, default None
        Takes everything that is wrong, and the pedigree is read without it. None raises one error with all of it.

    Returns
    -------
    Pedigree
        The animals, parents first.

    Raises
    ------
    TableError
        The table cannot be read.
    UnknownColumns
        Columns have names, but none is recognised as a parent, or two may be the ids.
    PedigreeError
        The pedigree is impossible: a duplicate animal, a loop, an animal as its own parent, one that is both sire and
        dam, a parent younger than its progeny, a row without id or group, or most parents spelled unlike the ids.

    Examples
    --------
    >>> from mmgibbs.pedigree import read_pedigree
    >>> herd_book = read_pedigree("data_samples/beef/pedigree.csv")
    >>> herd_book.n_animals
    3500
    """
    unknown = tuple(str(value) for value in unknown if str(value) not in groups.parents)
    table, chosen = choose_columns(source, columns, header, separator, unknown, name, recorded, encoding)
    own = Problems()
    try:
        checked = _check(table, chosen, unknown, groups, founders, hermaphrodites, more, own)
    except UnknownColumns:
        raise
    except PedigreeError as error:
        own.add(str(error))
        raise PedigreeError(_describe(own, chosen)) from None
    if own and problems is None:
        raise PedigreeError(_describe(own, chosen))
    for text in own.texts:
        problems.add(text)  # type: ignore[union-attr]
    return checked


def _describe(problems: Problems, chosen: PedigreeColumns) -> str:
    taken = f" (columns taken: {chosen.described}; name them if that is wrong)" if chosen.guessed else ""
    return f"{problems.describe()}{taken}"


def _check(
    table: Table,
    chosen: PedigreeColumns,
    unknown: tuple[str, ...],
    stated_groups: ParentGroups,
    founders: Iterable[str] | None,
    hermaphrodites: bool,
    more: Sequence[str],
    problems: Problems,
) -> Pedigree:
    notes, warnings = [*table.notes, *chosen.notes], list(chosen.warnings)
    if len({chosen.id, *chosen.parents}) < 1 + len(chosen.parents):
        columns = ", ".join((chosen.id, *chosen.parents))
        raise PedigreeError(f"{table.name}: id, sire and dam must be three columns, found {columns}")
    group = stated_groups._find_column(table)
    used = [chosen.id, *chosen.parents, chosen.birth, group, *(table.column(c) for c in more)]
    frame = table.read(list(dict.fromkeys(c for c in used if c is not None)))
    table, frame, of_rows = take_rows(table, frame, chosen, unknown, problems)
    notes += of_rows
    if not table.n_rows:
        raise PedigreeError(problems.describe())
    ids, parents = _id_columns(frame, chosen, unknown)
    index = IdIndex(ids)
    n_rows = len(ids)
    in_parents = take_groups(table, ids, parents, tuple(stated_groups.parents)) if stated_groups.parents else None
    parents = parents if in_parents is None else in_parents.parents
    placed = place_parents(table.name, ids, index, parents, unknown, not stated_groups.is_stated, problems)
    warnings += question_codes_as_ids(table, ids, index, placed.rows)
    warnings += question_alike(table, ids, placed.rows)
    warnings += question_last_row(table, ids, placed.rows)
    del index
    notes += placed.notes
    warnings += placed.warnings
    parents, added, (sire, dam) = placed.texts, placed.added, placed.rows
    if len(added):
        notes.append(_founder_note(added))
        warnings += [] if problems else question_columns(table, frame, chosen, unknown, placed.rows, len(added))
        if unknown:  # else every text is an animal
            warnings += question_founders(table.name, added, placed.rows, ids, placed.possible_groups)
    refuse_own_parents(table, ids, sire, dam, problems)
    if not hermaphrodites:
        refuse_one_parent_as_both(table, ids, parents, sire, dam, placed.possible_groups, problems)
        refuse_both_sexes(table, pl.concat([ids, added]), sire, dam, n_rows, placed.possible_groups, problems)
    extra = _extra_founders(founders, pl.concat([ids, added]) if founders is not None else ids, unknown)
    if len(extra):
        notes.append(
            f"{counted(len(extra), 'animal')} without a row in {table.name} added as founders "
            f"(the first: {quoted(extra[0])})"
        )
    all_ids = pl.concat([ids, added, extra]) if len(added) or len(extra) else ids
    del ids, added, parents
    n = len(all_ids)
    unknown_parents = np.full(n - n_rows, -1, np.int32)
    sire, dam = np.concatenate([sire, unknown_parents]), np.concatenate([dam, unknown_parents])

    generation = cut_loops(table, all_ids, sire, dam, problems)
    birth = (
        None
        if chosen.birth is None
        else read_births(table, frame[chosen.birth], chosen, unknown, all_ids, sire, dam, notes, warnings, problems)
    )
    order = parents_first_order(sire, dam, generation)
    code, sire, dam = recode(sire, dam, order)
    lines = np.concatenate([table.lines(), np.full(n - n_rows, -1, np.int64)])[order]
    in_order = all_ids if np.array_equal(order[:1], [0]) and np.all(np.diff(order) == 1) else all_ids.gather(order)
    pedigree = Pedigree(
        ids=in_order.alias("id"),
        sire=sire,
        dam=dam,
        birth=None if birth is None else birth[order],
        row=lines,
        file_order=code,
        groups=(),
        notes=tuple(notes),
        more={c: frame[c].extend_constant(None, n - n_rows).gather(order) for c in more},
        name=table.name,
        warnings=tuple(warnings),
        possible_groups=placed.possible_groups,
    )
    if in_parents is not None:
        return _with_group_parents(pedigree, table, in_parents, order, stated_groups.required)
    if group is not None:
        return _with_groups(pedigree, table, frame[group], order, unknown, stated_groups.required)
    return pedigree


def _id_columns(
    frame: pl.DataFrame, chosen: PedigreeColumns, unknown: tuple[str, ...]
) -> tuple[pl.Series, list[pl.Series]]:
    """Return the ids, none of them missing, and the sires and dams, null where unknown."""
    named = [u for u in unknown if u != ""]  # empty values are null already
    ids, known = frame[chosen.id], pl.col(chosen.parents)
    if named:
        frame = frame.select(pl.when(known.is_in(named)).then(None).otherwise(known).name.keep())
    parents = [
        pl.Series(role, [None], pl.String).new_from_index(0, len(ids)) if column is None else frame[column]
        for role, column in (("sire", chosen.sire), ("dam", chosen.dam))
    ]
    return ids, parents


def _founder_note(added: pl.Series) -> str:
    return f"{counted(len(added), 'parent')} without a row of their own became founders (the first: {quoted(added[0])})"


def _extra_founders(founders: Iterable[str] | None, known: pl.Series, unknown: tuple[str, ...]) -> pl.Series:
    if founders is None:
        return pl.Series("id", [], pl.String)
    wanted = pl.Series("id", founders).cast(pl.String).drop_nulls().unique(maintain_order=True)
    wanted = wanted.filter(~wanted.is_in(list(unknown)))
    wanted = wanted.filter(pl.Series(find_rows(IdIndex(known), wanted) < 0))
    return wanted.filter(~are_unknown_codes(wanted)) if unknown else wanted


def _with_group_parents(
    pedigree: Pedigree, table: Table, in_parents: GroupsInParents, order: np.ndarray, required: bool
) -> Pedigree:
    (of_sire, of_dam), names = in_parents.codes(pedigree.n_animals, order)
    sire, dam = (
        np.where(parent < 0, group, parent).astype(np.int32)
        for parent, group in ((pedigree.sire, of_sire), (pedigree.dam, of_dam))
    )
    without = np.flatnonzero((sire < 0) | (dam < 0))
    if required and without.size:
        i = int(without[np.argmin(order[without])])
        line, role = int(pedigree.row[i]), "sire" if sire[i] < 0 else "dam"
        where = f"{table.name} row {line}" if line >= 0 else table.name
        row = "" if line >= 0 else ", which has no row of its own,"
        more = f" ({without.size:,} such animals)" if without.size > 1 else ""
        raise PedigreeError(
            f"{where}: the {role} of {quoted(pedigree.ids[i])}{row} is unknown and no group; where parents are groups, "
            f"every unknown parent needs one, such as {quoted(names[0])}; a code such as '0' can be named as "
            f"a group too{more}"
        )
    warnings = (*pedigree.warnings, *_question_groups(pedigree, table, names, GROUP_PARENTS))
    return replace(pedigree, sire=sire, dam=dam, groups=names, warnings=warnings)


def _with_groups(
    pedigree: Pedigree, table: Table, text: pl.Series, order: np.ndarray, unknown: tuple[str, ...], required: bool
) -> Pedigree:
    column = text.name
    text = text.set(text.is_in([u for u in unknown if u not in ("", "0")]), None)
    padded = text.extend_constant(None, pedigree.n_animals - len(text)) if pedigree.n_animals > len(text) else text
    sire, dam, groups, without = group_codes(pedigree.sire, pedigree.dam, padded.gather(order))
    if required and without.size:
        i = int(without[np.argmin(order[without])])
        animal, line = quoted(pedigree.ids[i]), int(pedigree.row[i])
        more = f" ({without.size} such animals)" if without.size > 1 else ""
        if line < 0:
            raise PedigreeError(
                f"{table.name}: {animal} has no row of its own, so its unknown parents have no group; "
                f"needed a row with a group in '{column}'{more}"
            )
        raise PedigreeError(
            f"{table.name} row {line}: {animal} has an unknown parent but no group in column '{column}'; "
            f"needed a group{more}"
        )
    warnings = (*pedigree.warnings, *_question_groups(pedigree, table, groups, f"column '{column}'"))
    return replace(pedigree, sire=sire, dam=dam, groups=groups, warnings=warnings)


def _codes_among_groups(names: pl.Series) -> pl.Series:
    """Find the groups that may mean none: numbers from 0 or from -1 downwards are groups like others."""
    codes = names.filter(are_unknown_codes(names))
    if names.cast(pl.Int64, strict=False).null_count():
        return codes
    of_a_series = [first for first, second in (("0", "1"), ("-1", "-2")) if second in names]
    return codes.filter(~codes.is_in(of_a_series))


def _question_groups(pedigree: Pedigree, table: Table, groups: tuple[str, ...], where: str) -> list[str]:
    """Warnings of groups that have the name of an animal, of another group in another spelling, or mean unknown."""
    names = pl.Series("group", groups, pl.String)
    out = []
    animals = names.filter(names.is_in(pedigree.ids.implode()))
    if len(animals):
        shown = ", ".join(quoted(a) for a in animals.head(3))
        out.append(
            f"{table.name}: {where}: {counted(len(animals), 'group')} of unknown parents "
            f"{agreeing(len(animals), 'has')} the id of an animal ({shown}): the solutions have two rows of this "
            "level, of the animal and of the group. Give the groups other names"
        )
    alike = pl.DataFrame({"group": names, "form": normal_forms(names)}).group_by("form", maintain_order=True).all()
    for pair in alike.filter(pl.col("group").list.len() > 1)["group"].head(3).to_list():
        out.append(
            f"{table.name}: {where}: {' and '.join(quoted(g) for g in pair)} are groups of their own, but "
            "may be one in different spellings: write each group in one way"
        )
    codes = _codes_among_groups(names)
    if len(codes) and len(names) > 1:
        shown = ", ".join(quoted(c) for c in codes.head(3))
        out.append(
            f"{table.name}: {where}: {shown} {agreeing(len(codes), 'counts')} as any other group of unknown "
            "parents: if it means no group, give these animals the group that their parents come from"
        )
    return out
