"""Unknown parents of a pedigree (codes such as '.', groups, a column of groups), and pedigrees of sires and maternal
grandsires, as sire evaluations have them.

Half of an animal's genes are its dam's, and half of these her sire's. A dam of the animal's own, known by her sire
alone, says the same: the relationships among the animals are those of sires and maternal grandsires (Henderson 1975,
J. Dairy Sci. 58:1917).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.config.tables import UNKNOWN_PARENT
from mmgibbs.draft.animals import recognised
from mmgibbs.draft.yaml_text import yaml_list, yaml_text
from mmgibbs.pedigree.columns import GRANDSIRES, choose_columns
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.group_columns import find_group_column
from mmgibbs.pedigree.group_names import find_group_names, match_groups
from mmgibbs.pedigree.parents import find_codes
from mmgibbs.pedigree.read import ParentGroups, Pedigree
from mmgibbs.pedigree.tables import counted, open_table


@dataclass(frozen=True)
class UnknownParents:
    """Statements of an analysis about unknown parents.

    codes: values that mean one, None for the usual ones. groups: names of groups in place of parents. column: the
    column of groups. offered_column: one that may be. is_guessed: the groups were found, not given.
    """

    codes: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    column: str | int | None = None
    offered_column: str | None = None
    is_guessed: bool = False

    @property
    def has_groups(self) -> bool:
        return bool(self.groups) or self.column is not None

    @property
    def all_codes(self) -> tuple[str, ...]:
        """Values that mean an unknown parent, the usual ones where none were given or found."""
        return UNKNOWN_PARENT if self.codes is None else self.codes

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of `read_pedigree`."""
        return {"unknown": self.all_codes, "groups": ParentGroups(self.column, self.groups)}

    def as_data(self) -> dict[str, Any]:
        """Keys of the section `data` that were given."""
        data: dict[str, Any] = {} if self.codes is None else {"unknown_parent": list(self.codes)}
        if self.groups:
            data["groups"] = {"parents": list(self.groups)}
        elif self.column is not None:
            data["groups"] = {"column": str(self.column)}
        return data

    def lines(self, pedigree: Pedigree | None, is_single_step: bool) -> list[str]:
        """Lines of the section `data`, with alternatives as comments; single step has metafounders for groups."""
        effect = "effect: metafounders, gamma: genotypes}" if is_single_step else "effect: random}"
        alternative = "their relationships are those of the genotypes" if is_single_step else "or effect: fixed"
        out = [] if self.codes is None else [f"  unknown_parent: {yaml_list(self.codes)}"]
        if self.groups:
            n = "" if pedigree is None else f"{counted(pedigree.n_groups, 'group')} in place of parents; "
            out.append(f"  groups: {{parents: {yaml_list(self.groups)}, {effect}  # {n}{alternative}")
        elif self.column is not None:
            out.append(f"  groups: {{column: {yaml_text(str(self.column))}, {effect}  # {alternative}")
        elif self.offered_column is not None:
            out.append(
                f"  # groups: {{column: {yaml_text(self.offered_column)}, effect: random}}  # it has a value where a "
                "parent is unknown"
            )
        return out

    def explain(self, pedigree: Pedigree, name: str) -> list[str]:
        """Say what was found, a line each."""
        out = []
        if self.is_guessed and pedigree.groups:
            shown = ", ".join(pedigree.groups[:3]) + (", ..." if pedigree.n_groups > 3 else "")
            out.append(
                f"{name}: {counted(pedigree.n_groups, 'parent')} without a row ({shown}) look like genetic groups and "
                "are taken for these (data.groups.parents)"
            )
        if self.offered_column is not None:
            out.append(
                f"{name}: column '{self.offered_column}' may have the groups of unknown parents (see data.groups)"
            )
        return out


def find_unknown_parents(path: Path, of_file: Mapping[str, Any], stated: UnknownParents) -> UnknownParents:
    """Find the codes of unknown parents and the groups in place of parents that were not given."""
    try:
        table, chosen = choose_columns(
            path, None, None, of_file["separator"], stated.all_codes, None, None, of_file["encoding"]
        )
        frame = table.read([chosen.id, *chosen.parents])
    except (PedigreeError, TableError):
        return stated  # read_pedigree says what is wrong
    ids = frame[chosen.id].drop_nulls()
    null = pl.lit(None, pl.String)
    codes = list(stated.all_codes)
    parents = [
        frame.select(pl.when(pl.col(c).is_in(codes)).then(null).otherwise(pl.col(c)).alias(c)).to_series()
        for c in chosen.parents
    ]
    found = stated
    if not stated.groups and stated.column is None and len(parents) == 2:
        groups = find_group_names(ids, parents)
        found = replace(found, groups=groups, is_guessed=bool(groups))
    if stated.codes is None:
        odd = find_codes(ids, parents)
        if found.groups:
            odd = odd.filter(~match_groups(odd, found.groups))
        found = replace(found, codes=(*UNKNOWN_PARENT, *sorted(odd)) if len(odd) else None)
    return found


def offer_group_column(
    path: Path, of_file: Mapping[str, Any], found: UnknownParents, pedigree: Pedigree
) -> UnknownParents:
    """Offer a column of groups where nothing says what the groups are."""
    if found.groups or found.column is not None:
        return found
    return replace(found, offered_column=find_group_column(path, pedigree, unknown=found.all_codes, **of_file))


def grandsire_column(path: Path, of_file: Mapping[str, Any]) -> str | None:
    """The column of maternal grandsires of a pedigree that has sires and no dams; of_file: separator and encoding."""
    try:
        names = open_table(path, **of_file).names
    except TableError:
        return None  # whoever reads the pedigree says what is wrong
    if any(recognised(name, "dam") for name in names) or not any(recognised(name, "sire") for name in names):
        return None
    return next((name for name in names if re.sub(r"[\W_]+", "", name.lower()) in GRANDSIRES), None)


def advise(path: Path, column: str) -> list[str]:
    """Lines for a reader: what the file is, and the pedigree to write from it."""
    return [
        f"{path.name}: {column} is the maternal grandsire: a pedigree of sires and maternal grandsires, without dams.",
        "It is not used, as relationships are those of sires and dams. Write a pedigree that says the same: give each",
        f"animal X with a {column} a dam of its own under a new id, such as dam_of_X, and add a row for this dam, with",
        "the grandsire as her sire and no dam: X,SIRE,dam_of_X and dam_of_X,GRANDSIRE,. Then use that file.",
    ]
