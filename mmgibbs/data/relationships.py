"""From `relationship:` of a random term to its relationship matrix and the levels that records meet.

A reader takes the kind's section of the analysis and gives the matrix, the labels of its levels and, for each effect of
the term, the level of each record. A new kind is a reader and a line in READERS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.config.relationships import File, Identity, Pedigree, Relationship
from mmgibbs.data.levels import code_levels
from mmgibbs.data.prepared import LevelLabels
from mmgibbs.data.relationship_file import read_relationship
from mmgibbs.errors import DataError
from mmgibbs.model.relationships import base, groups, identity, selfing
from mmgibbs.model.relationships.pedigree import Pedigree as AMatrix
from pedigree.inbreeding import inbreeding
from pedigree.relationship import relatives
from pedigree.selfing import relatives_of_lines

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data
    from mmgibbs.data.random import RandomTerms
    from pedigree.read import Pedigree as ReadPedigree


@dataclass(frozen=True)
class Read:
    """What a reader found."""

    relationship: base.Relationship
    labels: LevelLabels
    levels: Sequence[np.ndarray]  # per effect (n,) int32, -1: the record does not meet it


@dataclass(frozen=True)
class Kin:
    """The pedigree as random effects need it, and the matrices made of it: one for each way of relating animals."""

    pedigree: ReadPedigree
    data: Data  # its section of the analysis
    _made: dict = field(default_factory=dict)

    def related(self, spec: Relationship) -> tuple[AMatrix, LevelLabels]:
        """The relationships of the animals, made once; PedigreeError where A has no inverse."""
        if spec not in self._made:
            self._made[spec] = self._labelled(additive(spec, self.pedigree, self.data))
        return self._made[spec]

    def _labelled(self, made: AMatrix) -> tuple[AMatrix, LevelLabels]:
        n, g = len(self.pedigree.ids), len(self.pedigree.groups)
        ids = pl.concat([self.pedigree.ids.rename("id"), pl.Series("id", self.pedigree.groups, dtype=pl.String)])
        order = np.concatenate([np.asarray(self.pedigree.file_order, np.int64), np.arange(n, n + g)])
        F = np.concatenate([made.relatives.inbreeding, np.full(g, np.nan)])
        return made, LevelLabels(ids, order, F, g)


def additive(spec: Relationship, read: ReadPedigree, data: Data) -> AMatrix:
    """A of the animals, by the rules that the kind and the section `data` set."""
    random_groups = data.groups is not None and data.groups.effect == "random"
    if isinstance(spec, Pedigree) and spec.selfing is not None:
        return selfing.SelfedPedigree(*relatives_of_lines(read, spec.selfing, random_groups))
    F = inbreeding(read.sire, read.dam) if data.inbreeding == "account" else None
    kin = relatives(read.sire, read.dam, F, len(read.groups), random_groups)
    return groups.GroupedPedigree(kin) if kin.n_groups else AMatrix(kin)


Column = pl.Series | np.ndarray  # level of each record: ids, null where none; or codes of the pedigree, -1 where none
Reader = Callable[["RandomTerms", str, Relationship, Sequence[Column]], Read]


def _of_pedigree(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert builder.kin is not None, "a pedigree that is needed has been read"
    relationship, labels = builder.kin.related(spec)
    effects = builder.analysis.model.random[name].effects.values()
    levels = [
        ids if isinstance(ids, np.ndarray) else builder.codes(ids, e.level)
        for e, ids in zip(effects, columns, strict=True)
    ]
    return Read(relationship, labels, levels)


def _independent(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    ids, levels = code_levels([builder.texts(column) for column in columns])
    if len(ids) == 0:
        raise DataError(
            f"{builder.phenotypes.name}: found no levels for model.random.{name}; needed at least one "
            "record that meets it"
        )
    return Read(identity.Identity(len(ids)), LevelLabels(ids, np.arange(len(ids))), levels)


def _of_file(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert isinstance(spec, File)
    relationship, ids, notes = read_relationship(spec.file, name)
    builder.notes += notes
    effects = builder.analysis.model.random[name].effects.values()
    levels = [
        builder.file_levels(name, e, builder.texts(c), ids, spec.file) for e, c in zip(effects, columns, strict=True)
    ]
    return Read(relationship, LevelLabels(ids, np.arange(len(ids))), levels)


READERS: dict[type[Relationship], Reader] = {Identity: _independent, Pedigree: _of_pedigree, File: _of_file}
