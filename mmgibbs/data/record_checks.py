"""Rows of the phenotypes that contradict each other, the pedigree or their column.

Rows that are the same as an earlier one are named only where chance can hardly explain them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, RandomEffect
from mmgibbs.data.animal_ids import explain_respelled, guess_parent_role
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, read_phenotypes
from mmgibbs.data.random import ANIMAL_COLUMNS, animal_column, unknown_values
from mmgibbs.data.responses import response_columns
from mmgibbs.errors import DataError
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED, Problems, list_rows
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.row_checks import LOST_DIGITS
from mmgibbs.pedigree.spelling import are_unknown_codes, have_lost_digits
from mmgibbs.pedigree.tables import counted, quoted

_ALIKE, _BY_CHANCE = 10.0, 0.1
_PARENTS = ("sire", "dam")
_MAX_IDS_COMPARED, _LIKENESS = 20_000, 0.8  # of other ids, letter by letter


def warn_of_doubles(analysis: Analysis, phenotypes: Phenotypes) -> tuple[str, ...]:
    """A warning where records are the same as earlier ones in every column of the table. phenotypes: with a trait."""
    of_traits = {c for trait in analysis.traits for c, _ in response_columns(trait)}
    read = _comparable(phenotypes.frame)  # the columns that the analysis uses
    if (
        not any(_has_fractions(read[c]) for c in of_traits.intersection(read.columns))
        or not _same_as_earlier(read).any()
    ):
        return ()
    table = _every_column(analysis, phenotypes)
    again = _same_as_earlier(table)
    if not again.any():
        return ()
    measured = [c for c in table.columns if _has_fractions(table[c])]
    values = [c for c in table.columns if c in of_traits or c in measured]
    keys = [c for c in table.columns if c not in values]
    values = _varying_columns(table.filter(~again), keys, values) if keys else values
    keys = [c for c in table.columns if c not in values]
    if not keys or not any(_has_fractions(table[c].filter(again)) for c in of_traits.intersection(measured, values)):
        return ()
    share = _pairs(table, values) / (table.height * (table.height - 1) / 2)
    if _ALIKE * share * _pairs(table, keys) > _BY_CHANCE * _pairs(table, table.columns):
        return ()
    rows = phenotypes.rows[again.to_numpy()]
    shown = ", ".join(str(row) for row in rows[:SHOWN]) + (", ..." if len(rows) > SHOWN else "")
    return (
        f"{phenotypes.name}: {counted(len(rows), 'row', 'is')} the same as an earlier one in every column (row"
        f"{'' if len(rows) == 1 else 's'} {shown}): entered twice? Each counts as a record",
    )


def _same_as_earlier(frame: pl.DataFrame) -> pl.Series:
    """(n,) Boolean. Only rows of equal hashes are compared: to compare all of them takes 200 bytes a row."""
    out, hashes = np.zeros(frame.height, bool), frame.hash_rows()
    if hashes.n_unique() < frame.height:
        alike = hashes.is_duplicated().arg_true()
        earlier = frame[alike].select(pl.struct(pl.all()).is_first_distinct()).to_series()
        out[alike.filter(~earlier)] = True
    return pl.Series(out)


def _every_column(analysis: Analysis, phenotypes: Phenotypes) -> pl.DataFrame:
    """Return the records with all columns of the table, of which an analysis reads those that it uses."""
    every = phenotypes.table or read_phenotypes(analysis.data)
    return _comparable(every.frame.filter(pl.Series(np.isin(every.rows, phenotypes.rows))))


def _comparable(frame: pl.DataFrame) -> pl.DataFrame:
    uncomparable = (pl.Binary, pl.Object, pl.Duration, pl.Null)
    return frame.select(c for c in frame.iter_columns() if not c.dtype.is_nested() and c.dtype not in uncomparable)


def _has_fractions(cells: pl.Series) -> bool:
    """Check whether some cells are numbers, and not whole."""
    text = cells.cast(pl.String).str.strip_chars().str.replace(",", ".", literal=True)
    numbers = text.cast(pl.Float64, strict=False)
    return bool((numbers.is_finite() & (numbers % 1 != 0)).any())  # 'NaN' and 'inf' are none


def _varying_columns(distinct: pl.DataFrame, keys: list[str], values: list[str]) -> list[str]:
    """List those of `values` that vary in rows of equal keys; all, where no distinct rows have equal keys."""
    n = distinct.n_unique(keys)
    if n == distinct.height:
        return values
    return [c for c in values if distinct.n_unique([*keys, c]) > n]


def _pairs(frame: pl.DataFrame, columns: Sequence[str]) -> float:
    """Pairs of rows that are equal in these columns."""
    size = frame.group_by(columns).len()["len"].cast(pl.Float64)
    return float((size * (size - 1)).sum()) / 2


_MANY = 10  # animals with several records, and one in so many, from which they are no accident


def warn_of_repeated_records(analysis: Analysis, terms: Sequence[Term], observed: np.ndarray) -> tuple[str, ...]:
    """A warning for each normal trait with several records of animals that have no effect but their breeding value.

    observed: (n, T) Boolean.
    """
    built, animals = {term.name: term for term in terms}, []
    for name, random in analysis.model.random.items():
        if random.relationship.of_pedigree or random.relationship.of_genotypes:
            written = zip(random.effects.values(), built[name].effects, strict=False)  # groups come after them
            animals += [(w.level, effect) for w, effect in written if w.level in ANIMAL_COLUMNS]
    every = [effect for term in terms for effect in term.effects if not effect.has_several_levels]
    out = []
    for t, trait in enumerate(analysis.traits):
        column, animal_effect = next(((c, e) for c, e in animals if t in e.traits), ("", None))
        if animal_effect is None or not trait.is_normal or animal_effect.covariates is not None:
            continue
        rows = observed[:, t] & (animal_effect.level >= 0)
        animal = animal_effect.level[rows]
        records = np.bincount(animal)
        several, distinct = int((records > 1).sum()), int((records > 0).sum())
        if several < _MANY or several * _MANY < distinct:
            continue
        if not any(_is_nested(e.level[rows], animal) for e in every if e is not animal_effect and t in e.traits):
            out.append(
                f"traits.{trait.name}: {several:,} of {distinct:,} animals (column {quoted(column)}) have several "
                "records, and no effect beside their breeding value: what else their records share counts as genetic; "
                f"needed model.random.permanent_environment: {{level: {column}}}"
            )
    return tuple(out)


def _is_nested(level: np.ndarray, animal: np.ndarray) -> bool:
    """Levels (n,), -1 where a record has none, lie within animals, as their own ones do, and have several records."""
    has = level >= 0
    level, animal = level[has], animal[has]
    if not len(level) or (count := np.bincount(level)).max() <= 1:
        return False
    of = np.zeros(len(count), animal.dtype)
    of[level] = animal
    return bool((of[level] == animal).all())


def refuse_ids_as_numbers(analysis: Analysis, phenotypes: Phenotypes) -> None:
    """DataError for a trait or a fixed covariate in a column whose cells are ids of animals."""
    ids = _columns_of_ids(analysis)
    for column, path, what in _numbers(analysis):
        if column in ids:
            raise DataError(
                f"{phenotypes.name}: found column {quoted(column)} as the values of a {what} ({path}), and as ids of "
                f"animals ({ids[column]}); needed a column of numbers that measure something"
                + (f", or no {what}" if what == "covariate" else "")
            )


def refuse_rounded_ids(analysis: Analysis, phenotypes: Phenotypes) -> None:
    """DataError for ids of animals that a spreadsheet has written as rounded numbers."""
    problems = Problems()
    for column, path in _columns_of_ids(analysis).items():
        if phenotypes.has(column) and column not in phenotypes.interactions:
            ids = phenotypes.text(column, path)
            rows = have_lost_digits(ids).arg_true()
            if len(rows):
                found = [
                    f"found {quoted(ids[row])} in column {quoted(column)} ({path}), a number that has lost digits"
                    for row in rows.head(MAX_ROWS_LISTED)
                ]
                problems.add(list_rows(phenotypes.name, phenotypes.rows[rows.to_numpy()].tolist(), found, LOST_DIGITS))
    problems.refuse(DataError)


def warn_of_ids_as_numbers(analysis: Analysis, phenotypes: Phenotypes) -> tuple[str, ...]:
    """A warning for each trait and fixed covariate in a column that is named as those of ids are."""
    return tuple(
        f"{phenotypes.name}: {path}: column {quoted(column)} has ids, by its name: are its numbers those of a {what}?"
        for column, path, what in _numbers(analysis)
        if column in ANIMAL_COLUMNS or guess_parent_role(column) is not None
    )


def _numbers(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    """(column, YAML path, 'trait' or 'covariate') of what is no class."""
    for trait in analysis.traits:
        for column, path in response_columns(trait):
            yield column, path, "trait"
    for name, fixed in analysis.model.fixed.items():
        for column in fixed.number_columns:
            yield column, f"model.fixed.{name}", "covariate"


def _columns_of_ids(analysis: Analysis) -> dict[str, str]:
    """Column -> YAML path that says that its cells are ids of animals of the pedigree or with genotypes. Levels that a
    file relates may be days, of which the records have a trend too.
    """
    out = {m.level: f"model.markers.{name}.level" for name, m in analysis.model.markers.items()}
    for name, random in analysis.model.random.items():
        if random.relationship.of_pedigree or random.relationship.of_genotypes:
            for of_effect, effect in random.effects.items():
                path = f"model.random.{name}" + (f".effects.{of_effect}.level" if of_effect else ".level")
                out |= dict.fromkeys(effect.id_columns, path)
    return out


class _ParentColumn(NamedTuple):
    """A column of the records with sires or dams that is the level of an effect."""

    path: str
    role: str
    effect: RandomEffect


def _parent_columns(analysis: Analysis, phenotypes: Phenotypes) -> list[_ParentColumn]:
    """List the columns that are named for a parent, or as the pedigree names its column, each once."""
    stated = analysis.data.pedigree_columns
    roles = {str(column): role for role, column in (() if stated is None else stated.given.items()) if role in _PARENTS}
    out = {}
    for name, path in ((name, f"model.random.{name}") for name in analysis.model.random):
        for of_effect, effect in analysis.model.random[name].effects.items():
            role = roles.get(effect.level) or guess_parent_role(effect.level)
            if role is not None and phenotypes.has(effect.level):
                place = f"{path}.effects.{of_effect}.level" if of_effect else f"{path}.level"
                out[effect.level] = _ParentColumn(place, role, effect)
    return list(out.values())


def warn_of_nicknames(analysis: Analysis, phenotypes: Phenotypes, pedigree: Pedigree) -> tuple[str, ...]:
    """A warning for each column of sires or dams whose animals are mostly not in the pedigree.

    Effects of relatives refuse such animals; the levels of independent effects may be anything.
    """
    out = []
    for path, role, effect in _parent_columns(analysis, phenotypes):
        text = phenotypes.text(effect.level, path, unknown_values(effect, True, analysis.data))
        ids = text.filter(~are_unknown_codes(text)).unique(maintain_order=True)
        absent = ids.filter(pedigree.codes(ids).is_null())
        if 2 * len(absent) <= len(ids):
            continue
        respelled = explain_respelled(absent, pedigree.ids, pedigree.name)
        known = pedigree.ids.head(_MAX_IDS_COMPARED).to_list()
        close = {i: difflib.get_close_matches(i, known, 1, _LIKENESS) for i in absent.head(SHOWN)}
        like = ", ".join(f"{quoted(of[0])} for {quoted(i)}" for i, of in close.items() if of)
        hint = respelled or (f"{pedigree.name} has ids that are like them: {like}" if like else "")
        shown = ", ".join(map(quoted, absent.head(SHOWN)))
        out.append(
            f"{phenotypes.name}: column {quoted(effect.level)} ({path}) has {len(absent):,} of {len(ids):,} {role}s "
            f"that are not in the pedigree, such as {shown}{f' ({hint})' if hint else ''}: are they other names of its "
            f"animals? A {role} of two names counts as two. Write ids as in the pedigree, or leave the column out: the "
            f"{role}s are then the pedigree's. It is right for recipients and foster parents without a row"
        )
    return tuple(out)


def warn_of_other_parents(analysis: Analysis, phenotypes: Phenotypes, pedigree: Pedigree) -> tuple[str, ...]:
    """A warning for each column of sires or dams, used as a level, whose animals are not the pedigree's parents.

    Both must be known. It may be right: the dam of a record is the recipient of an embryo, or a foster mother.
    """
    animal = animal_column(analysis.model.random, phenotypes)
    columns = [c for c in _parent_columns(analysis, phenotypes) if c.effect.level != animal]
    if animal is None or not phenotypes.has(animal) or not columns:
        return ()
    codes = _codes(pedigree, phenotypes, animal, analysis.data.unknown_parent)
    out = []
    for _, role, effect in columns:
        column = effect.level
        pedigree_parents = np.where(codes >= 0, getattr(pedigree, role)[codes], -1)
        pedigree_parents = np.where(
            pedigree_parents < len(pedigree.ids), pedigree_parents, -1
        )  # an unknown-parent group is no animal
        text = phenotypes.text(column, "level", unknown_values(effect, True, analysis.data))
        stated = pedigree.codes(text).fill_null(-1).to_numpy()
        both = (pedigree_parents >= 0) & (stated >= 0)
        differs = np.flatnonzero(both & (pedigree_parents != stated))
        if not differs.size:
            continue
        shown = "; ".join(
            f"row {phenotypes.rows[i]}, animal {quoted(pedigree.ids[int(codes[i])])}: {quoted(text[int(i)])}, in the "
            f"pedigree {quoted(pedigree.ids[int(pedigree_parents[i])])}"
            for i in differs[:SHOWN]
        )
        out.append(
            f"{phenotypes.name}: column {quoted(column)} names another {role} than the pedigree in {differs.size:,} of "
            f"{counted(int(both.sum()), 'record')} with both ({shown}). It is used as it is, which is right for "
            f"recipients and foster parents; else correct it, or leave it out: the {role}s are then the pedigree's"
        )
    return tuple(out)


def _codes(pedigree: Pedigree, phenotypes: Phenotypes, column: str, unknown: tuple[str, ...]) -> np.ndarray:
    """(n,) int code of each record's animal, -1 where it is not in the pedigree."""
    return pedigree.codes(phenotypes.text(column, "level", unknown)).fill_null(-1).to_numpy()
