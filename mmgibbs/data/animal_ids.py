"""Columns of the records with ids of animals: what their names say, codes for unknown, ids in another spelling."""

from __future__ import annotations

import polars as pl

from mmgibbs.config import Data
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.pedigree.columns import has_role_name
from mmgibbs.pedigree.contents import ENCODING
from mmgibbs.pedigree.group_names import GROUP_PARENTS
from mmgibbs.pedigree.parents import UNKNOWN_VALUES
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.spelling import are_unknown_codes, find_respelled, find_similar
from mmgibbs.pedigree.tables import quoted


def guess_parent_role(column: str) -> str | None:
    """'sire' or 'dam' where a column of the records is named for one ('Dam_ID', 'father'), else None."""
    return next((role for role in ("sire", "dam") if has_role_name(column, role)), None)


def codes_for_unknown(ids: pl.Series, data: Data, pedigree: Pedigree | None) -> pl.DataFrame:
    """List the texts of a column of animals that are codes for unknown and no animals of the pedigree.

    Such codes are '.', 'UNK', '0.0'; columns id and count (records).
    """
    counts = pl.DataFrame({"id": ids}).drop_nulls().group_by("id", maintain_order=True).agg(count=pl.len())
    if not data.unknown_parent:
        return counts.clear()
    is_code = are_unknown_codes(counts["id"])
    if pedigree is not None and is_code.any():
        is_code &= pedigree.codes(counts["id"]).is_null()
    return counts.filter(is_code)


def explain_respelled(absent: pl.Series, ids: pl.Series, name: str) -> str | None:
    """A line about absent ids that the table `name` has in another spelling; None where it has none."""
    pairs = find_respelled(absent, ids)
    if not pairs.height:
        pairs = find_similar(absent, ids)
    if not pairs.height:
        return None
    shown = ", ".join(f"{quoted(i)} for {quoted(t)}" for t, i, _ in pairs.head(SHOWN).iter_rows())
    n = absent.n_unique()
    return (
        f"{name} has {pairs.height:,} of {n:,} such {'id' if n == 1 else 'ids'} in another spelling: {shown}; write "
        "ids in one way in both tables"
    )


def name_keys(message: str) -> str:
    """A message of the pedigree with the keys of the analysis file that it speaks of."""
    message = message.replace("name the columns if", "write data.pedigree_columns: {id: COLUMN, ...} if")
    message = message.replace(UNKNOWN_VALUES, "data.unknown_parent").replace(GROUP_PARENTS, "data.groups.parents")
    return message.replace(ENCODING, "data.pedigree_encoding")
