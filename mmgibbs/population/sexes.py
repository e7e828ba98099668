"""Animals that are sires in one row of a pedigree and dams in another."""

from __future__ import annotations

import numpy as np

from mmgibbs.data.phenotypes import SHOWN
from pedigree.read import Pedigree
from pedigree.tables import counted, quoted


def question_both_sexes(read: Pedigree) -> list[str]:
    """A warning with their number; a note where a plant is both parents of one progeny, as others may then be both."""
    n = read.n_animals
    none = np.iinfo(np.int64).max
    first = []  # of each animal, the first row as a sire and as a dam
    is_selfed = (read.sire == read.dam) & (read.sire >= 0) & (read.sire < n)
    for parent in (read.sire, read.dam):
        rows, is_known = np.full(n, none), (parent >= 0) & (parent < n) & ~is_selfed
        np.minimum.at(rows, parent[is_known], read.row[is_known])
        first.append(rows)
    both = np.flatnonzero((first[0] < none) & (first[1] < none))
    if not both.size:
        return []
    both = both[np.argsort(np.maximum(*first)[both], kind="stable")]
    shown = "; ".join(
        f"{quoted(read.ids[int(b)])} is a sire in row {first[0][b]} and a dam in row {first[1][b]}"
        for b in both[:SHOWN]
    )
    more = f"; and {both.size - SHOWN:,} more" if both.size > SHOWN else ""
    said = f"{read.name}: {counted(both.size, 'animal', 'is')} sire of some and dam of others: {shown}{more}"
    if is_selfed.any():
        return [f"{said}. Some are both parents of one progeny: these are plants"]
    return [
        f"warning: {said}. Plants may be both; among animals, sire and dam of a row are exchanged, or two have one id"
    ]
