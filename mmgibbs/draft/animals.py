"""Which columns of the records name the animal, its sire and its dam, judged by their names and by the pedigree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from mmgibbs.draft.columns import Column
from pedigree.columns import RECOGNISED
from pedigree.parents import WHOLE_AS_FLOAT
from pedigree.read import Pedigree
from pedigree.spelling import find_respelled

# Without a pedigree, what else may be one level per plant or line.
OF_PLANTS = ("line", "genotype", "entry", "variety", "cultivar", "hybrid", "clone", "accession", "tree", "plant")
_MOST_IDS = 0.5  # share of the ids of a column that must be in the pedigree
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
        for column, other in ((self.sire, "dam"), (self.dam, "sire")):
            if column is not None and recognised(column.name, other):
                return column
        return None

    @property
    def all(self) -> list[Column]:
        return [c for c in (self.animal, self.sire, self.dam) if c is not None]


def recognised(name: str, role: str) -> bool:
    return "".join(c for c in name.lower() if c.isalnum()) in RECOGNISED[role]


def ids_of(column: Column) -> pl.Series:
    """(n,) String: the values as ids, without the '.0' that all of them have where whole numbers became floats."""
    start = column.text.drop_nulls().head(1)
    if not len(start) or not start[0].endswith(".0"):
        return column.text
    is_whole = column.text.str.contains(WHOLE_AS_FLOAT)
    return column.text.str.replace(r"\.0+$", "") if is_whole.all() else column.text


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
        of_genotypes = None if genotyped is None else _genotyped_column(columns, genotyped)
        if genotyped is None or of_genotypes is None:
            return Animals(animal, named["sire"], named["dam"], why="by its name")
        known, distinct = _known(of_genotypes, genotyped)
        why = f"{known:,} of its {distinct:,} ids have genotypes"
        return Animals(of_genotypes, named["sire"], named["dam"], why=why)
    parents = _parents_of(pedigree)
    best = max(columns, key=lambda c: _score(c, columns, parents, id_column), default=None)
    if best is None or _score(best, columns, parents, id_column) <= 0:
        return _of_sires(named["id"], named["sire"], named["dam"], parents)
    sire, dam = (_agreeing(best, columns, parents, role) or named[role] for role in ("sire", "dam"))
    known, distinct = _known(best, parents["id"])
    return Animals(best, sire, dam, known, distinct, f"{known:,} of its {distinct:,} ids are in the pedigree")


def _genotyped_column(columns: Sequence[Column], ids: pl.Series) -> Column | None:
    """The column with the genotyped animals: one that is named for animals, if any of its ids has genotypes; else the
    one that has most of the ids.
    """
    own = [c for c in columns if not recognised(c.name, "sire") and not recognised(c.name, "dam")]
    of_animals = [c for c in own if recognised(c.name, "id")]
    of_plants = [c for c in own if c.name.lower() in OF_PLANTS]
    for likely in (of_animals, of_plants):
        best = _most_of(likely, ids)
        if best is not None:
            return best
    best = _most_of(own, ids)
    if best is None or best.numbers is None:
        return best
    known, distinct = _known(best, ids)  # weights and numbers of herds are numbers of animals too
    return best if known > _MOST_IDS * min(distinct, ids.n_unique()) else None


def _most_of(columns: Sequence[Column], ids: pl.Series) -> Column | None:
    """The column with most of these ids, and among those that have as many, the one with fewest others."""
    found = {c.name: _known(c, ids) for c in columns}
    with_some = [c for c in columns if found[c.name][0] > 0]
    return max(with_some, key=lambda c: (found[c.name][0], -found[c.name][1]), default=None)


def _parents_of(pedigree: Pedigree) -> pl.DataFrame:
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


def _score(column: Column, columns: Sequence[Column], parents: pl.DataFrame, id_column: str | None) -> float:
    """How well a column names the animals: its name, parents that agree with the pedigree, how many ids it has."""
    ids = ids_of(column).drop_nulls().unique()
    share = float(ids.is_in(parents["id"].to_list()).mean() or 0)  # type: ignore[arg-type]
    if share < _MOST_IDS or recognised(column.name, "sire") or recognised(column.name, "dam"):
        return 0.0
    agree = sum(_agreeing(column, columns, parents, role) is not None for role in ("sire", "dam"))
    named = recognised(column.name, "id") or column.name == id_column
    if not named and not agree and (column.numbers is not None or share < 1):
        return 0.0  # numbers of herds are numbers of animals too
    return 4 * named + 2 * agree + share * len(ids) / max(column.known, 1)


def _agreeing(animal: Column, columns: Sequence[Column], parents: pl.DataFrame, role: str) -> Column | None:
    """The column that names this parent of the animals as the pedigree does; one that is named for it comes first.

    A column that is named for the other parent agrees with both where plants are selfed, and keeps the role of its
    name; a few known parents may agree by chance.
    """
    records = pl.DataFrame({"id": ids_of(animal)}).join(parents, on="id", how="left", maintain_order="left")
    agreeing = [c for c in columns if c is not animal and _agrees(c, records[role])]
    own = next((c for c in agreeing if recognised(c.name, role)), None)
    if own is not None:
        return own
    for column in agreeing:
        pairs = int((column.text.is_not_null() & records[role].is_not_null()).sum())
        crossed = recognised(column.name, _OTHER[role])
        if crossed and pairs >= _PAIRS and not _agrees(column, records[_OTHER[role]]):
            return column
        if not crossed and pairs >= min(_PAIRS, column.known / 2):
            return column
    return None


def _agrees(column: Column, there: pl.Series) -> bool:
    """The column has these parents, (n,) ids, wherever both are known."""
    pair = pl.DataFrame({"here": ids_of(column), "there": there}).drop_nulls()
    return pair.height > 0 and float((pair["here"] == pair["there"]).mean() or 0) >= _AGREE  # type: ignore[arg-type]


def _known(column: Column, ids: pl.Series) -> tuple[int, int]:
    """(ids of the column that are among `ids`, all its ids)."""
    own = ids_of(column).drop_nulls().unique()
    return int(own.is_in(ids.to_list()).sum()), len(own)


def _absent(animal: Column, parents: pl.DataFrame) -> Absent:
    own = ids_of(animal).drop_nulls().unique(maintain_order=True)
    missing = own.filter(~own.is_in(parents["id"].to_list()))
    pairs = find_respelled(missing, parents["id"])
    example, alike = pairs.row(0)[:2] if pairs.height else (str(missing[0]), None)
    return Absent(animal.name, len(own) - len(missing), len(own), example, alike)


def _of_sires(animal: Column | None, sire: Column | None, dam: Column | None, parents: pl.DataFrame) -> Animals:
    """Where no column has the animals of the pedigree: a sire model, if it has the sires; else other ids."""
    absent = None if animal is None or not animal.levels else _absent(animal, parents)
    if sire is not None:
        known, distinct = _known(sire, parents["id"])
        if known >= _MOST_IDS * distinct:
            why = f"the pedigree has {known:,} of {distinct:,} sires"
            return Animals(None, sire, dam, known, distinct, why, absent)
    if animal is None:
        return Animals(None, sire, dam, why="no column has the ids of the pedigree")
    known, distinct = _known(animal, parents["id"])
    return Animals(
        animal, sire, dam, known, distinct, f"only {known:,} of its {distinct:,} ids are in the pedigree", absent
    )
