"""Unknown-parent groups that are written in place of parents: 'UPG_2010' or '-3' in the columns of sires and dams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.spelling import are_unknown_codes
from mmgibbs.pedigree.tables import Table, counted, quoted

GROUP_PARENTS = "the names of groups among the parents"  # what messages call `ParentGroups.parents`
_SHOWN = 3  # names listed one by one
_MAX_GROUPS = 500
_MIN_PARENTS_OF_GROUP = 2  # times that a group stands in place of a parent, on average
_MIN_PARENTS_OF_WORD = 10  # the same, where nothing but its use as both parents says that a name is a group
_MIN_SHARE_OF_BOTH = 0.5  # of the groups, those in place of sires and of dams
_WORDS = "g gr grp group groups gg ggrp geneticgroup upg ug uppg pg ppg phg phantom mf metafounder fg".split()
_STEM = r"^([^0-9]*[^0-9]|-)[0-9]+$"  # 'UPG_' of 'UPG_2010', '-' of '-3'


@dataclass(frozen=True)
class GroupsInParents:
    """Parents that are groups.

    parents: sire and dam, (n,) String, null where unknown and where a group. groups: the same, the group's name where
    the parent is one, else null.
    """

    parents: list[pl.Series]
    groups: list[pl.Series]

    def codes(self, n_animals: int, order: np.ndarray) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Return sire and dam, (n_animals,) int32 in `order`, n_animals + g for group g, -1 for none; and the names.

        order: (n_animals,) rows of the table, and behind them animals without a row.
        """
        names = pl.concat([g.rename("group") for g in self.groups]).drop_nulls().unique().sort()
        index = IdIndex(names)
        codes = []
        for groups in self.groups:
            rank = np.full(n_animals, -1, np.int32)
            rank[: len(groups)] = index.find(groups)
            codes.append(np.where(rank >= 0, rank + np.int32(n_animals), np.int32(-1)).astype(np.int32)[order])
        return codes, tuple(names)


def match_groups(texts: pl.Series, patterns: Sequence[str]) -> pl.Series:
    """(n,) Boolean: which texts have one of the names; '*' stands for one character or more."""
    forms = "|".join(".+".join(re.escape(part) for part in pattern.split("*")) for pattern in patterns)
    return texts.str.contains(f"^(?:{forms})$").fill_null(False)


def take_groups(table: Table, ids: pl.Series, parents: Sequence[pl.Series], patterns: Sequence[str]) -> GroupsInParents:
    """Take the groups out of the columns of sires and dams.

    PedigreeError where a group has a row as an animal, or a name is that of no parent.
    """
    has_row = match_groups(ids, patterns)
    if has_row.any():
        row = int(has_row.arg_max() or 0)
        more = f" ({int(has_row.sum()):,} such rows)" if has_row.sum() > 1 else ""
        raise PedigreeError(
            f"{table.name} row {table.line(row)}: {quoted(ids[row])} is one of {GROUP_PARENTS} "
            f"({', '.join(map(quoted, patterns))}), and has a row as an animal; expected rows of animals only: delete "
            f"the rows of groups, or name the groups so that no animal is among them{more}"
        )
    is_group = [match_groups(p, patterns) for p in parents]
    unused = [pattern for pattern in patterns if not any(match_groups(p, [pattern]).any() for p in parents)]
    if unused:
        raise PedigreeError(
            f"{table.name}: {GROUP_PARENTS}: no sire or dam is called {quoted(unused[0])}; expected names as they are "
            "written in the columns of sires and dams, '*' for any characters"
        )
    null = pl.lit(None, pl.String)
    taken, groups = [], []
    for text, chosen in zip(parents, is_group, strict=True):
        frame = pl.DataFrame({"text": text, "is_group": chosen})
        taken.append(frame.select(pl.when("is_group").then(null).otherwise("text").alias(text.name)).to_series())
        groups.append(frame.select(pl.when("is_group").then("text").otherwise(null).alias(text.name)).to_series())
    return GroupsInParents(taken, groups)


def find_group_names(ids: pl.Series, parents: Sequence[pl.Series]) -> tuple[str, ...]:
    """Names of parents that look like groups, as `take_groups` takes them: 'UPG_*', '-*', 'Angus'.

    They have no row, and either they are a word for groups with a number, or negative numbers, or they stand in place
    of sires and of dams as no animal does. parents: sire and dam, (n,) String, null where unknown.
    """
    texts = pl.concat([p.alias("text") for p in parents]).drop_nulls()
    counts = pl.DataFrame({"text": texts.unique(maintain_order=True)})
    counts = counts.filter(pl.Series(IdIndex(ids).find(counts["text"]) < 0))
    if counts.is_empty():
        return ()
    uses = [p.alias("text").drop_nulls().value_counts(name=role) for p, role in zip(parents, ("s", "d"), strict=True)]
    for frame in uses:
        counts = counts.join(frame, on="text", how="left", maintain_order="left")
    counts = counts.with_columns(pl.col("s", "d").fill_null(0)).with_columns(
        uses=pl.col("s") + pl.col("d"),
        is_both=(pl.col("s") > 0) & (pl.col("d") > 0),
        stem=pl.col("text").str.extract(_STEM),
    )
    stems = [stem["stem"] for stem in _frequent_stems(counts) if _are_groups(stem, ids)]
    words = counts.filter(
        pl.col("stem").is_null()
        & pl.col("is_both")
        & (pl.col("uses") >= _MIN_PARENTS_OF_WORD)
        & ~pl.col("text").str.contains("[0-9]")
        & ~are_unknown_codes(counts["text"])
    )["text"]
    has_numbers = ids.gather_every(max(1, len(ids) // 1000)).str.contains("[0-9]").all()
    is_set = 1 < len(words) <= _MAX_GROUPS and has_numbers
    return (*(f"{stem}*" for stem in stems), *(words.to_list() if is_set else ()))


def _frequent_stems(counts: pl.DataFrame) -> list[dict[str, Any]]:
    """Stems of names that stand in place of parents often enough, each with its names."""
    stems = counts.drop_nulls("stem").group_by("stem", maintain_order=True)
    return (
        stems.agg(n=pl.len(), uses=pl.col("uses").mean(), is_both=pl.col("is_both").mean(), names=pl.col("text"))
        .filter(pl.col("n").is_between(1, _MAX_GROUPS), pl.col("uses") >= _MIN_PARENTS_OF_GROUP)
        .rows(named=True)
    )


def _are_groups(stem: dict[str, Any], ids: pl.Series) -> bool:
    """Check whether the parents without a row with this stem, a row of `_frequent_stems`, are groups."""
    text = stem["stem"]
    if text == "-":  # one negative number is a code, several are groups, but for -9 and -99 beside -1
        looks_like_groups = sum(not re.fullmatch("-9+", name) for name in stem["names"]) > 1
    elif re.sub(r"[\W_]", "", text).lower() in _WORDS:
        looks_like_groups = stem["n"] > 1 or stem["is_both"] == 1
    else:
        is_both, n_uses = stem["is_both"] >= _MIN_SHARE_OF_BOTH, stem["uses"]
        looks_like_groups = stem["n"] > 1 and is_both and n_uses >= _MIN_PARENTS_OF_WORD
    return looks_like_groups and not match_groups(ids, [f"{text}*"]).any()


def question_groups(name: str, parents: Sequence[pl.Series], patterns: Sequence[str]) -> str:
    """Warn of parents that look like groups. parents: sire and dam, those without a row."""
    texts = pl.concat([p.alias("text") for p in parents])
    counts = (
        texts.filter(match_groups(texts, patterns))
        .value_counts(sort=True, name="n")
        .sort("n", "text", descending=[True, False])
    )
    shown = ", ".join(f"{quoted(text)} ({counted(n, 'time')})" for text, n in counts.head(_SHOWN).iter_rows())
    more = f" and {counts.height - _SHOWN:,} more" if counts.height > _SHOWN else ""
    return (
        f"{name}: {shown}{more} look like genetic groups (unknown-parent groups) in place of parents, and are not "
        f"taken for groups: {suggest_groups(patterns)}"
    )


def suggest_groups(patterns: Sequence[str]) -> str:
    """Write what makes these parents groups."""
    return f"if they are, give {GROUP_PARENTS}: [{', '.join(patterns)}]"
