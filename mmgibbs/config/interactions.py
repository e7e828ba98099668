"""Interactions: effects of several columns at once, `sex:age`, as a class, a covariate, or a covariate within a class.

Columns that are classes make one class of all their combinations that occur; columns of numbers make one covariate,
their product. Both get the name of their columns with ':' between them, by which `data.phenotypes` knows them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mmgibbs.config.messages import Problems, wrong
from mmgibbs.config.smooth_relationships import Spline
from mmgibbs.config.text import is_nothing, show

if TYPE_CHECKING:
    from mmgibbs.config.analysis import Analysis
    from mmgibbs.config.effects import Fixed, Random, RandomEffect
    from mmgibbs.config.relationship_base import Relationship

BETWEEN_COLUMNS = ":"
OF_AN_INTERACTION = "interaction"  # the key


def join_columns(columns: tuple[str, ...]) -> str:
    """Name the class of all combinations, or the product, of columns."""
    return BETWEEN_COLUMNS.join(columns)


def write_out_names(effects: object, is_whole: bool = False) -> object:
    """Give every effect whose name has ':' its key `interaction`, unless it has one.

    is_whole: a mapping with the key `effects` says the levels of each effect there.
    """
    if not isinstance(effects, dict):
        return effects
    return {name: _write_out_name(name, keys, is_whole) for name, keys in effects.items()}


def _write_out_name(name: object, keys: object, is_whole: bool) -> object:
    if not isinstance(name, str) or BETWEEN_COLUMNS not in name:
        return keys
    if is_nothing(keys):
        keys = {}
    if not isinstance(keys, dict) or OF_AN_INTERACTION in keys or (is_whole and "effects" in keys):
        return keys
    columns = [column.strip() for column in name.split(BETWEEN_COLUMNS)]
    return keys | {OF_AN_INTERACTION: columns} if all(columns) else keys


def check_interaction(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Check that there are two or more columns, of which a class and a covariate are made."""
    if len(columns) == 1:
        raise wrong(f"found the one column {show(columns[0])}, needed two or more")
    return columns


def complete_fixed(name: str, effect: Fixed, every: Mapping[str, Fixed], problems: Problems) -> Fixed:
    """Say what an interaction is: `kind`, `column` and `by` as those of an effect of one column."""
    if not effect.interaction:
        return effect.model_copy(update={"column": effect.column or name})
    place = ("model", "fixed", name)
    covariates = _find_covariates(effect, effect.interaction, every, place, problems)
    classes = tuple(column for column in effect.interaction if column not in covariates)
    derived: dict[str, Any] = {
        "covariates": covariates or None,
        "kind": "covariate" if covariates else "class",
        "column": join_columns(covariates or classes),
        "by": join_columns(classes) if covariates and classes else None,
    }
    _refuse_other_values(effect, derived, place, problems)
    for key in ("degree", "legendre") if len(covariates) != 1 else ():
        if key in effect.model_fields_set and getattr(effect, key) not in (None, 1):
            problems.add((*place, key), f"{_count_covariates(covariates)}; needed one for a curve")
    if covariates and effect.reference is not None:
        problems.add(
            (*place, "reference"), "cannot be combined with a covariate; it belongs to an interaction of classes"
        )
    return effect.model_copy(update=derived)


def _find_covariates(
    effect: Fixed,
    columns: tuple[str, ...],
    every: Mapping[str, Fixed],
    place: tuple[str, ...],
    problems: Problems,
) -> tuple[str, ...]:
    """Columns of numbers: those that the effect names, or else those that are covariates elsewhere in the model."""
    for column in effect.covariates or ():
        if column not in columns:
            listed = ", ".join(columns)
            problems.add((*place, "covariates"), f"found {show(column)}, needed columns of the interaction ({listed})")
    if effect.covariates:
        return tuple(column for column in columns if column in effect.covariates)
    if "kind" in effect.model_fields_set and effect.kind == "class":
        return ()
    kinds: dict[str, set[str]] = {column: set() for column in columns}
    for name, single in every.items():
        column = single.column or name
        if not single.interaction and column in kinds:
            kinds[column].add(single.kind)
    both = [column for column, kind in kinds.items() if len(kind) > 1]
    if both:
        problems.add(
            (*place, "covariates"),
            f"missing, needed the columns that are numbers: {show(both[0])} is a class and a covariate elsewhere "
            "(kind: class says that none is)",
        )
    covariates = tuple(column for column, kind in kinds.items() if kind == {"covariate"})
    if "kind" in effect.model_fields_set and not covariates and not both:
        problems.add((*place, "covariates"), "missing, needed the columns of the interaction that are numbers")
    return covariates


def _refuse_other_values(effect: Fixed, derived: Mapping[str, Any], place: tuple[str, ...], problems: Problems) -> None:
    """Add a problem for keys of one column that say something else; a completed file writes them as they are."""
    columns = ", ".join(effect.interaction or ())
    for key in ("column", "by"):
        given = getattr(effect, key, None)
        if given and key in derived and given != derived[key]:
            problems.add(
                (*place, key),
                f"found {show(given)}, which cannot be combined with an interaction of {columns}; needed one of them",
            )


def _count_covariates(covariates: tuple[str, ...]) -> str:
    return f"found the covariates {', '.join(covariates)}" if covariates else "found an interaction of classes"


def complete_level(
    term: str, effect: RandomEffect, relationship: Relationship, place: tuple[str, ...], problems: Problems
) -> dict[str, Any]:
    """Say the column of the levels of a random effect, and the columns that it is made of."""
    columns = relationship.level_columns or effect.interaction
    if not columns:
        return {"level": effect.level or term}
    level = join_columns(columns)
    of_kind = f"relationship {relationship.name}, whose levels are those of {level}"
    if relationship.level_columns and effect.interaction not in (None, columns):
        problems.add((*place, OF_AN_INTERACTION), f"cannot be combined with {of_kind}")
    elif effect.level not in ("", level):
        other = of_kind if relationship.level_columns else f"an interaction of {', '.join(columns)}"
        problems.add(
            (*place, "level"), f"found {show(effect.level)}, which cannot be combined with {other}; needed one of them"
        )
    return {"level": level, "interaction": columns if len(columns) > 1 else None}


def check_relationship(random: Random, place: tuple[str, ...], problems: Problems) -> None:
    """Combinations of columns are no animals of a pedigree or of genotypes."""
    kind = random.relationship
    if (kind.of_pedigree or kind.of_genotypes) and any(effect.interaction for effect in random.effects.values()):
        problems.add(
            (*place, "relationship"),
            f"found {kind.name}, which relates animals and cannot be combined with an interaction; needed identity, or "
            "a level that is a column of animals",
        )
    if isinstance(kind, Spline):
        if len(random.effects) > 1:
            problems.add((*place, "effects"), "found several with relationship spline, needed one effect")
        for name, effect in random.effects.items():
            for key in ("covariates", "legendre"):
                if getattr(effect, key) is not None:
                    at = (*place, "effects", name, key)
                    problems.add(at, "cannot be combined with relationship spline; needed by: COLUMN in it, or neither")


def list_interactions(analysis: Analysis) -> dict[str, dict[str, tuple[str, ...]]]:
    """Name of each joined class or product -> its columns, with the cells that mean a missing value in each.

    A column has the missing cells of the interaction, and those of every effect of this column alone.
    """
    model = analysis.model
    singles: dict[str, set[str]] = {}
    for fixed in model.fixed.values():
        if not fixed.interaction:
            singles.setdefault(fixed.column, set()).update(fixed.missing)
    effects = [effect for random in model.random.values() for effect in random.effects.values()]
    every = [effect for effect in effects if not effect.has_several_levels]
    for effect in every:
        if not effect.interaction:
            singles.setdefault(effect.level, set()).update(effect.missing)
    joined = {columns for fixed in model.fixed.values() for columns in (fixed.class_columns, fixed.number_columns)}
    joined |= {effect.level_columns for effect in every}
    return {
        join_columns(columns): {column: tuple(sorted(singles.get(column, ()))) for column in columns}
        for columns in sorted(joined)
        if len(columns) > 1
    }
