"""Traits by environment: `traits: {yield: {by: site}}` stands for one trait for each level of a column.

The trait `yield|S1` has the records of `yield` whose column `site` is S1. An effect on `yield` is an effect on each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.config.orders import GuessedOrder, Levels
from mmgibbs.config.paths import with_absolute_paths
from mmgibbs.config.tables import Data
from mmgibbs.config.text import is_nothing, show
from mmgibbs.config.traits import Trait
from mmgibbs.errors import ConfigError

BETWEEN_TRAIT_AND_LEVEL = "|"
SHOWN = 5  # levels in a message
MAX_LEVELS = 250  # traits; with more, a column of plots or lines was named
OF_TRAITS = ("traits", "moments")  # keys of the sections `model` and `output` whose values are names of traits
VALUE_COLUMNS = ("column", "lower", "upper")

# The section `data`, the YAML path of the trait, its column of environments, its columns of values, the cells that
# columns of its records have (`where`) -> levels
FindLevels = Callable[[Data, str, str, Sequence[str], Mapping[str, str]], Levels]


def write_out_environments(
    tree: object, folder: Path, find_levels: FindLevels | None
) -> tuple[object, dict[str, GuessedOrder]]:
    """Write a trait for each level in place of each trait with the key `by`.

    tree: the analysis file as plain values. folder: what paths to data are relative to. find_levels: reads the levels
    of a column from the table of records; None: such traits are refused. Beside the tree: trait -> the order of its
    level and the others, where nothing says what it is.
    """
    if not isinstance(tree, dict) or not isinstance(tree.get("traits"), dict):
        return tree, {}
    columns = {trait: _read_column(keys) for trait, keys in tree["traits"].items()}
    if not any(columns.values()):
        return tree, {}
    try:
        for keys in tree["traits"].values():
            Trait.model_validate(keys)
        data = with_absolute_paths(Data.model_validate(tree.get("data")), folder)
    except ValidationError:
        return tree, {}  # it is validated again, with all that is wrong
    traits: dict[str, Any] = {}
    written: dict[str, list[str]] = {}
    guessed: dict[str, GuessedOrder] = {}
    for trait, keys in tree["traits"].items():
        by = columns[trait]
        if by is None:
            traits[trait] = keys
            continue
        levels, is_ordered = _find_levels(trait, keys, by, data, find_levels)
        names = [f"{trait}{BETWEEN_TRAIT_AND_LEVEL}{level}" for level in levels]
        for name in names:
            if name in tree["traits"]:
                raise ConfigError(f"traits.{name}: expected another name, got that of {trait} by {by}")
        traits |= {n: _write_trait(trait, keys, by, level) for n, level in zip(names, levels, strict=True)}
        written[trait] = names
        guessed |= {} if is_ordered else dict.fromkeys(names, GuessedOrder(by, tuple(levels)))
    sections = {key: _write_out_names(tree[key], written) for key in ("model", "output") if key in tree}
    return tree | {"traits": traits} | sections, guessed


def _read_column(keys: object) -> str | None:
    """Return the column of the environments; None of a trait without."""
    by = keys.get("by") if isinstance(keys, dict) else None
    return None if is_nothing(by) or isinstance(by, (list, dict)) else str(by).strip()


def _find_levels(trait: str, keys: Mapping[str, Any], by: str, data: Data, find_levels: FindLevels | None) -> Levels:
    path = f"traits.{trait}.by"
    if find_levels is None:
        raise ConfigError(
            f"{path}: expected the table of records to be at hand, got the analysis alone; mmgibbs.check and "
            "mmgibbs.run read the levels from it"
        )
    values = [keys[key] for key in VALUE_COLUMNS if isinstance(keys.get(key), str)] or [trait]
    where = Trait.model_validate(keys).where
    found = find_levels(data, f"traits.{trait}", by, values, where)
    levels = found.names
    if not levels:
        also = f" and {', '.join(f'{c}: {cell}' for c, cell in where.items())} (where)" if where else ""
        raise ConfigError(f"{path}: expected records with a value of {trait} and of column {show(by)}{also}, got none")
    if len(levels) > MAX_LEVELS:
        raise ConfigError(
            f"{path}: expected a column of at most {MAX_LEVELS} environments, got {show(by)} with {len(levels):,} "
            "levels; what has so many is a random effect"
        )
    unsuitable = [level for level in levels if any(c in NOT_IN_A_NAME for c in level)]
    if unsuitable:
        listed = ", ".join(show(level) for level in unsuitable[:SHOWN]) + (", ..." if len(unsuitable) > SHOWN else "")
        raise ConfigError(
            f"{path}: expected levels without any of {NOT_IN_A_NAME}, which stand between the parts of a parameter's "
            f"name; got {listed} in column {show(by)}; write them in another way in the table of records"
        )
    return found


def _write_trait(trait: str, keys: Mapping[str, Any], by: str, level: str) -> dict[str, Any]:
    """Keys of the trait in one level."""
    rest = {key: value for key, value in keys.items() if key != "by"}
    column = {} if any(key in keys for key in VALUE_COLUMNS) else {"column": trait}
    where = {} if is_nothing(rest.get("where")) else rest["where"]
    return rest | column | {"where": where | {by: level}}


def _write_out_names(section: Any, written: Mapping[str, Sequence[str]]) -> Any:
    """The section with the traits of all levels in place of a trait, in every list of traits."""
    if not isinstance(section, dict):
        return section
    return {
        key: _write_out_list(value, written) if key in OF_TRAITS else _write_out_names(value, written)
        for key, value in section.items()
    }


def _write_out_list(names: Any, written: Mapping[str, Sequence[str]]) -> Any:
    if isinstance(names, str):
        return list(written.get(names, [names]))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return names
    return [name for listed in names for name in written.get(listed, [listed])]
