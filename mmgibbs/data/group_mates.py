"""The other animals of a record's group, such as its pen mates: a random effect with several levels per record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.pedigree.kernels import kernel


class Mates(NamedTuple):
    """Animals of the groups of n records."""

    ids: pl.Series  # (m,) String, of every animal of a group, each once
    mate: np.ndarray  # (n, s) int32 place in ids of each mate, -1 for none; s: of the record with most


def find_mates(groups: pl.Series, animals: pl.Series, records: np.ndarray, others: bool) -> Mates:
    """The animals of the group of each of some records, each once, in the order in which they come.

    groups, animals (rows,) String, null where unknown: of every row of the table, with or without a record of a trait.
    records (n,) int64: rows. others: without the record's own animal.
    """
    members = pl.DataFrame({"group": groups, "animal": animals}).drop_nulls().unique(maintain_order=True)
    ids = members["animal"].unique(maintain_order=True)
    code = lambda column, known: column.replace_strict(known, np.arange(len(known)), default=-1, return_dtype=pl.Int32)
    names = members["group"].unique(maintain_order=True)
    group_of_member = code(members["group"], names).to_numpy()
    by_group = np.argsort(group_of_member, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(group_of_member, minlength=len(names)))]).astype(np.int64)
    member = code(members["animal"], ids).to_numpy()[by_group]
    group, own = (code(column, known).to_numpy()[records] for column, known in ((groups, names), (animals, ids)))
    most = int(np.diff(first)[group[group >= 0]].max(initial=1))
    mate = np.full((records.size, most), -1, np.int32)
    _fill_mates(first, member, group, own if others else np.full_like(own, -1), mate)
    is_used = (mate >= 0).any(axis=0)
    return Mates(ids, np.ascontiguousarray(mate[:, : max(1, int(is_used.sum()))]))


@kernel
def _fill_mates(first, member, group, without, mate):
    """mate[r] = the members of the group of record r but one, from the left; rows come as -1."""
    for r in range(group.size):
        filled = 0
        if group[r] >= 0:
            for i in range(first[group[r]], first[group[r] + 1]):
                if member[i] != without[r]:
                    mate[r, filled] = member[i]
                    filled += 1
