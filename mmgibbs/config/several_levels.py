"""Several levels in one effect: y_r = ... + sum_j w_rj u_l(r,j), such as the mates in a pen or the parents of a cross.

`level` is then a list of columns, or says of which group the other animals are; see `levels` and `mates`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmgibbs.config.fields import Boolean, Column, Section, Share
from mmgibbs.config.messages import Problems
from mmgibbs.config.text import show

if TYPE_CHECKING:
    from mmgibbs.config.effects import RandomEffect
    from mmgibbs.config.relationship_base import Relationship

OF_SEVERAL_LEVELS = ("levels", "weights", "mates")  # the keys


class GroupMates(Section):
    """The animals of the group of a record, such as its pen mates. An animal counts once, with or without records."""

    group: Column
    """Column of the groups."""

    of: Column = ""
    """Column of the animals. Default: the level of the first effect of the term that has one level per record."""

    others: Boolean = True
    """true: without the animal of the record itself; false: with it."""

    weight: Column | None = None
    """Column of a number for each record, by which the effects of its mates on it are multiplied."""

    dilution: Share = 0.0
    """d in the weight n^-d of each of n mates: 0, an effect of each mate whatever their number; 1, their mean."""


def split_level(value: object) -> object:
    """Put a list of columns in `level` in `levels`, and a mapping in `mates`."""
    if not isinstance(value, dict) or not isinstance(value.get("level"), (list, tuple, dict)):
        return value
    key = "mates" if isinstance(value["level"], dict) else "levels"
    if key in value:
        return value
    return {k: v for k, v in value.items() if k != "level"} | {key: value["level"]}


def complete_several(
    effect: RandomEffect,
    siblings: dict[str, RandomEffect],
    relationship: Relationship,
    place: tuple[str, ...],
    problems: Problems,
) -> dict[str, Any]:
    """Name the levels of an effect with several per record, and refuse what it cannot be combined with."""
    key = "levels" if effect.levels is not None else "mates"
    if relationship.level_columns:
        problems.add((*place, key), f"cannot be combined with relationship {relationship.name}, which has one level")
    others = ("level", "interaction", "covariates", "legendre", *(("mates",) if key == "levels" else ()))
    for other in others:
        if getattr(effect, other) and not (other == "level" and effect.level == describe_levels(effect)):
            problems.add((*place, key), f"cannot be combined with {other}; needed one of them")
    if effect.levels is not None:
        if effect.weights is not None and len(effect.weights) != len(effect.levels):
            problems.add(
                (*place, "weights"),
                f"found {len(effect.weights)} columns, needed one for each of the {len(effect.levels)} of level",
            )
        return {"level": describe_levels(effect)}
    assert effect.mates is not None, "one of both"
    if effect.weights is not None:
        problems.add(
            (*place, "weights"),
            f"found without a list of columns in level; needed level: {{group: {effect.mates.group}, weight: COLUMN}}, "
            "a column of one number for each record",
        )
    own = next((e.level for e in siblings.values() if e.level and not e.has_several_levels), "")
    mates = effect.mates.model_copy(update={"of": effect.mates.of or own})
    if not mates.of:
        problems.add(
            (*place, "mates", "of"),
            f"missing, needed the column of the animals, as level: {{group: {mates.group}, of: animal}}; without it "
            "they are those of the first effect of the term that has a column as its level",
        )
    if mates.of == mates.group:
        problems.add((*place, "mates", "of"), f"found {show(mates.of)}, which is the column of the groups as well")
    completed = effect.model_copy(update={"mates": mates})
    return {"mates": mates, "level": describe_levels(completed)}


def describe_levels(effect: RandomEffect) -> str:
    """The levels of an effect with several per record, in words."""
    if effect.levels is not None:
        return " + ".join(effect.levels)
    if effect.mates is None:
        return ""
    return f"{'others' if effect.mates.others else 'all'} of the same {effect.mates.group}"


def advise_key(key: str) -> str | None:
    """Advise what to write where a key of `mates` is beside `level`; None for other keys."""
    if key not in GroupMates.fields_by_key():
        return None
    example = {"group": "group: COLUMN"}.get(key, f"group: COLUMN, {key}: ...")
    return f"unknown key; it belongs within level: {{{example}}}, for the mates of a group"
