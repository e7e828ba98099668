"""Which columns of the records name the animal, its sire and its dam, judged by their names and by the pedigree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.draft.columns import Column
from mmgibbs.pedigree.columns import RECOGNISED
from mmgibbs.pedigree.parents import find_rows
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.spelling import find_respelled

# Without a pedigree, what else may be one level per plant or line.
OF_PLANTS = ("line", "genotype", "entry", "variety", "cultivar", "hybrid", "clone", "accession", "tree", "plant")
_MOST_IDS = 0.5  # share of the ids of a column that must be in the pedigree
_NEARLY_ALL_IDS = 0.8  # of a column that no name and no parents show to have animals
_MIN_NUMBERED_ANIMALS = 100  # numbers in such a column
_AGREE = 0.95  # share of the records on which a column must name the parent that the pedigree has
_PAIRS = 10  # known parents from which agreement says more than the name of a column
_OTHER = {"sire": "dam", "dam": "sire"}


class Absent(NamedTuple):
    """A column with the name of one of animals, most of whose ids are not in the pedigree."""

    column: str
    known: int  # distinct ids that are in the pedigree
    distinct: int
    example: str  # one that is not
    alike: str | None  # an id of the pedigree that differs from the example in spelling alone


@dataclass(frozen=True)
class Animals:
    """Columns of the records; None where there is none. `of_parents`: the pedigree knows the sires alone."""

    animal: Column | None
    sire: Column | None
    dam: Column | None
    known: int = 0  # distinct ids of the animals' column (of the sires', without one) that are in the pedigree
    distinct: int = 0
    why: str = ""
    absent: Absent | None = None  # where most ids of a column named for animals are not in the pedigree

    @property
    def crossed(self) -> Column | None:
        """A column named for the dam that has the sires of the pedigree, or the other way round."""
        for column, role in ((self.sire, "dam"), (self.dam, "sire")):
            if column is not None and recognised(column.name, role):
                return column
        return None

    @property
    def all(self) -> list[Column]:
        return [c for c in (self.animal, self.sire, self.dam) if c is not None]


def recognised(name: str, role: str) -> bool:
    return "".join(c for c in name.lower() if c.isalnum()) in RECOGNISED[role]


class KnownIds:
    """The ids of a pedigree or of a file of genotypes."""

    def __init__(self, ids: pl.Series) -> None:
        self.ids = ids
        self._index = IdIndex(ids)

    def spell(self, column: Column) -> pl.Series:
        """(n,) String: the values as these ids are written where they are among them, '5.0' as '5', else as they
        are.
        """
        rows = pl.Series(find_rows(self._index, column.text))
        is_known = rows >= 0
        return self.ids.gather(rows.clip(0)).zip_with(is_known, column.text) if is_known.any() else column.text

    def have(self, ids: pl.Series) -> pl.Series:
        """(n,) Boolean: which are among them."""
        return pl.Series(find_rows(self._index, ids) >= 0)

    def count(self, column: Column) -> tuple[int, int]:
        """(ids of the column that are among them, all its ids)."""
        ids = self.spell(column).drop_nulls().unique()
        return int(self.have(ids).sum()), len(ids)


def find_animals(
    columns: Sequence[Column],
    pedigree: Pedigree | None,
    genotyped: pl.Series | None = None,
    id_column: str | None = None,
) -> Animals:
    """The columns that name animals and their parents; genotyped: ids of a file of genotypes, which without a pedigree
    say which column has the animals; id_column: what the pedigree calls its ids, as the records may.
    """
    named = {role: next((c for c in columns if recognised(c.name, role)), None) for role in ("id", "sire", "dam")}
    if pedigree is None:
        animal = named["id"] or next((c for c in columns if c.name.lower() in OF_PLANTS), None)
        with_genotypes = None if genotyped is None else KnownIds(genotyped)
        of_genotypes = None if with_genotypes is None else _genotyped_column(columns, with_genotypes)
        if with_genotypes is None or of_genotypes is None:
            return Animals(animal, named["sire"], named["dam"], why="by its name")
        known, distinct = with_genotypes.count(of_genotypes)
        why = f"{known:,} of its {distinct:,} ids have genotypes"
        return Animals(of_genotypes, named["sire"], named["dam"], why=why)
    kin = _Kin(KnownIds(pedigree.ids), _extract_parents(pedigree))
    scores = [_score(c, columns, kin, id_column) for c in columns]
    if max(scores, default=0.0) <= 0:
        found = _try_sire_model(named["id"], named["sire"], named["dam"], kin.known)
        is_parent = lambda c: recognised(c.name, "sire") or recognised(c.name, "dam")
        others = [c for c in columns if c.numbers is None and not is_parent(c)]
        nearest = _best_matching_column(others, kin.known) if found.animal is None and found.sire is None else None
        return found if nearest is None else replace(found, absent=_absent(nearest, kin.known))
    best = columns[scores.index(max(scores))]
    sire, dam = (_agreeing(best, columns, kin, role) or named[role] for role in ("sire", "dam"))
    known, distinct = kin.known.count(best)
    return Animals(best, sire, dam, known, distinct, f"{known:,} of its {distinct:,} ids are in the pedigree")


class _Kin(NamedTuple):
    """Animals of the pedigree, and their parents: id, sire, dam as text."""

    known: KnownIds
    parents: pl.DataFrame


def _genotyped_column(columns: Sequence[Column], genotyped: KnownIds) -> Column | None:
    """The column with the genotyped animals: one that is named for animals, if any of its ids has genotypes; else the
    one that has most of the ids.
    """
    candidates = [c for c in columns if not recognised(c.name, "sire") and not recognised(c.name, "dam")]
    of_animals = [c for c in candidates if recognised(c.name, "id")]
    of_plants = [c for c in candidates if c.name.lower() in OF_PLANTS]
    for likely in (of_animals, of_plants):
        best = _best_matching_column(likely, genotyped)
        if best is not None:
            return best
    best = _best_matching_column(candidates, genotyped)
    if best is None or best.numbers is None:
        return best
    known, distinct = genotyped.count(best)  # weights and numbers of herds are numbers of animals too
    return best if known > _MOST_IDS * min(distinct, genotyped.ids.n_unique()) else None


def _best_matching_column(columns: Sequence[Column], ids: KnownIds) -> Column | None:
    """The column with most of these ids, and among those that have as many, the one with fewest others."""
    counts = {c.name: ids.count(c) for c in columns}
    with_some = [c for c in columns if counts[c.name][0] > 0]
    return max(with_some, key=lambda c: (counts[c.name][0], -counts[c.name][1]), default=None)


def _extract_parents(pedigree: Pedigree) -> pl.DataFrame:
    """id, sire, dam as text."""
    ids = pedigree.ids
    return pl.DataFrame(
        {
            "id": ids,
            "sire": [ids[int(s)] if 0 <= s < len(ids) else None for s in pedigree.sire],
            "dam": [ids[int(d)] if 0 <= d < len(ids) else None for d in pedigree.dam],
        },
        schema={"id": pl.String, "sire": pl.String, "dam": pl.String},
    )


def _score(column: Column, columns: Sequence[Column], kin: _Kin, id_column: str | None) -> float:
    """Score how well a column names the animals: its name, parents that agree with the pedigree, its number of ids."""
    known, distinct = kin.known.count(column)
    share = known / max(distinct, 1)
    if share < _MOST_IDS or recognised(column.name, "sire") or recognised(column.name, "dam"):
        return 0.0
    agree = sum(_agreeing(column, columns, kin, role) is not None for role in ("sire", "dam"))
    named = recognised(column.name, "id") or column.name == id_column
    if not named and not agree and (share < _NEARLY_ALL_IDS or not _may_number_animals(column, distinct)):
        return 0.0
    return 4 * named + 2 * agree + share * distinct / max(column.known, 1)


def _may_number_animals(column: Column, distinct: int) -> bool:
    """Numbers of herds and of records are ids of animals too: those of animals are many, and do not count from 1."""
    if column.numbers is None:
        return True
    counts_records = column.numbers[0] in (0, 1) and bool((np.diff(column.numbers) == 1).all())
    return distinct >= max(_MIN_NUMBERED_ANIMALS, column.known / 2) and not counts_records


def _agreeing(animal: Column, columns: Sequence[Column], kin: _Kin, role: str) -> Column | None:
    """The column that names this parent of the animals as the pedigree does; one that is named for it comes first.

    A column that is named for the other parent agrees with both where plants are selfed, and keeps the role of its
    name; a few known parents may agree by chance.
    """
    ids = pl.DataFrame({"id": kin.known.spell(animal)})
    records = ids.join(kin.parents, on="id", how="left", maintain_order="left")
    agreeing = [c for c in columns if c is not animal and _agrees(c, records[role], kin.known)]
    recognised_column = next((c for c in agreeing if recognised(c.name, role)), None)
    if recognised_column is not None:
        return recognised_column
    for column in agreeing:
        pairs = int((column.text.is_not_null() & records[role].is_not_null()).sum())
        crossed = recognised(column.name, _OTHER[role])
        if crossed and pairs >= _PAIRS and not _agrees(column, records[_OTHER[role]], kin.known):
            return column
        if not crossed and pairs >= min(_PAIRS, column.known / 2):
            return column
    return None


def _agrees(column: Column, of_pedigree: pl.Series, known: KnownIds) -> bool:
    """The column has these parents, (n,) ids, wherever both are known."""
    pair = pl.DataFrame({"of_records": known.spell(column), "of_pedigree": of_pedigree}).drop_nulls()
    return pair.height > 0 and float((pair["of_records"] == pair["of_pedigree"]).mean() or 0) >= _AGREE  # type: ignore[arg-type]


def _absent(animal: Column, known: KnownIds) -> Absent:
    ids = known.spell(animal).drop_nulls().unique(maintain_order=True)
    missing = ids.filter(~known.have(ids))
    pairs = find_respelled(missing, known.ids)
    example, alike = pairs.row(0)[:2] if pairs.height else (str(missing[0]), None)
    return Absent(animal.name, len(ids) - len(missing), len(ids), example, alike)


def _try_sire_model(animal: Column | None, sire: Column | None, dam: Column | None, ids: KnownIds) -> Animals:
    """Try a sire model where no column has the animals of the pedigree, if it has the sires; else other ids."""
    absent = None if animal is None or not animal.levels else _absent(animal, ids)
    if sire is not None:
        known, distinct = ids.count(sire)
        if known >= _MOST_IDS * distinct:
            why = f"the pedigree has {known:,} of {distinct:,} sires"
            return Animals(None, sire, dam, known, distinct, why, absent)
    if animal is None:
        return Animals(None, sire, dam, why="no column has the ids of the pedigree")
    known, distinct = ids.count(animal)
    return Animals(
        animal, sire, dam, known, distinct, f"only {known:,} of its {distinct:,} ids are in the pedigree", absent
    )
