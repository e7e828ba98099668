"""Columns of ids that an analysis takes for numbers: a trait or a covariate whose cells only name animals."""

from __future__ import annotations

from collections.abc import Iterator

from mmgibbs.config import Analysis
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.random import ANIMAL_COLUMNS
from mmgibbs.data.responses import response_columns
from mmgibbs.errors import DataError
from pedigree.problems import MAX_ROWS_LISTED, Problems, list_rows
from pedigree.row_checks import LOST_DIGITS
from pedigree.spelling import have_lost_digits
from pedigree.tables import quoted


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
