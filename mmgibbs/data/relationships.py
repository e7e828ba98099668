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

from mmgibbs.config.genomic_relationships import Dominance, Genomic, GenotypeRelationship, SingleStep
from mmgibbs.config.relationship_base import Relationship
from mmgibbs.config.relationships import File, Identity, Pedigree
from mmgibbs.config.smooth_relationships import Autoregression, RandomWalk, Spline
from mmgibbs.data.autoregression import build_autoregression
from mmgibbs.data.genomic_relationships import build_genomic_matrix, single_step
from mmgibbs.data.prepared import LevelLabels
from mmgibbs.data.random_walks import build_random_walk, missing_polynomial, unwritten_curves
from mmgibbs.data.relationship_files import not_inverted, read_relationship
from mmgibbs.data.relationships_by_core import genomic_by_core, products_suffice, single_step_by_core
from mmgibbs.data.splines import build_spline, missing_planes
from mmgibbs.errors import DataError
from mmgibbs.genotypes.on_device import device_matrices
from mmgibbs.models.relationships import base, groups, identity, selfing
from mmgibbs.models.relationships.metafounders import metafounders
from mmgibbs.models.relationships.pedigree import Pedigree as AMatrix
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.metafounders import metafounder_relatives
from mmgibbs.pedigree.relationship import relatives
from mmgibbs.pedigree.selfing import relatives_of_lines

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data
    from mmgibbs.data.random import RandomTerms
    from mmgibbs.pedigree.read import Pedigree as ReadPedigree


@dataclass(frozen=True)
class Read:
    """Result of a reader."""

    relationship: base.Relationship
    labels: LevelLabels
    levels: Sequence[np.ndarray]  # per effect (n,) int32, -1: the record does not meet it
    factor: np.ndarray | None = None  # (n,) what the effects of a level are multiplied by in each record; None: by 1


@dataclass(frozen=True)
class Kin:
    """The pedigree as random effects need it, and the matrices made of it: one for each way of relating animals."""

    pedigree: ReadPedigree
    data: Data  # its section of the analysis
    gamma: np.ndarray | None = None  # relationships of metafounders
    _made: dict = field(default_factory=dict)

    def additive(self, spec: Relationship) -> AMatrix:
        """A by the rules of a kind, made once; PedigreeError where it has no inverse."""
        key = spec if isinstance(spec, Pedigree) else Pedigree()
        if key not in self._made:
            self._made[key] = additive(key, self.pedigree, self.data, self.gamma)
        return self._made[key]

    def labels(self, made: AMatrix) -> LevelLabels:
        """The animals, then any groups."""
        ids, order, F = self.pedigree.ids.rename("id"), self.pedigree.file_order, made.relatives.inbreeding
        if g := len(self.pedigree.groups):
            ids = pl.concat([ids, pl.Series("id", self.pedigree.groups, dtype=pl.String)])
            order = np.concatenate([order, np.arange(len(order), len(order) + g, dtype=order.dtype)])
            F = np.concatenate([F, np.full(g, np.nan)])
        return LevelLabels(ids, order, F, g)


def additive(spec: Relationship, read: ReadPedigree, data: Data, gamma: np.ndarray | None = None) -> AMatrix:
    """A of the animals, by the rules that the kind and the section `data` set."""
    if gamma is not None:
        made = {"metafounders": {"names": list(read.groups), "gamma": gamma.tolist()}}
        return metafounders(metafounder_relatives(read.sire, read.dam, gamma), gamma, made)
    random_groups = data.groups is not None and data.groups.effect == "random"
    if isinstance(spec, Pedigree) and spec.selfing is not None:
        return selfing.SelfedPedigree(*relatives_of_lines(read, spec.selfing, random_groups))
    F = inbreeding(read.sire, read.dam) if data.inbreeding == "account" else None
    kin = relatives(read.sire, read.dam, F, len(read.groups), random_groups)
    return groups.GroupedPedigree(kin) if kin.n_groups else AMatrix(kin)


Column = pl.Series | np.ndarray  # level of each record: ids, null where none; or codes of the pedigree, -1 where none
Reader = Callable[["RandomTerms", str, Relationship, Sequence[Column]], Read]


def _build_pedigree(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert builder.kin is not None, "a pedigree that is needed has been read"
    relationship = builder.kin.additive(spec)
    return Read(relationship, builder.kin.labels(relationship), _pedigree_levels(builder, name, columns))


def _single_step(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert builder.kin is not None and builder.genotypes is not None and isinstance(spec, SingleStep)
    of_pedigree = builder.kin.additive(spec)
    sampler, given = builder.analysis.sampler, (name, spec, builder.genotypes, builder.kin.pedigree, of_pedigree)
    if products_suffice(spec, sampler, of_pedigree):
        relationship, notes = single_step_by_core(*given)
    else:
        relationship, notes = single_step(*given, device_matrices(sampler.device))
    builder.notes += notes
    return Read(relationship, builder.kin.labels(of_pedigree), _pedigree_levels(builder, name, columns))


def _build_genomic(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert builder.genotypes is not None and isinstance(spec, GenotypeRelationship)
    of_pedigree = builder.kin.additive(spec) if spec.needs_pedigree and builder.kin is not None else None
    if isinstance(spec, Genomic) and products_suffice(spec, builder.analysis.sampler, of_pedigree):
        relationship, notes = genomic_by_core(name, spec, builder.genotypes, of_pedigree)
    else:
        on = device_matrices(builder.analysis.sampler.device)
        relationship, notes = build_genomic_matrix(name, spec, builder.genotypes, of_pedigree, on)
    builder.notes += notes
    ids = builder.genotypes.animals["animal"].rename("id")
    effects = builder.slots(name)
    levels = [builder.genotyped_levels(name, e, builder.texts(c), ids) for e, c in zip(effects, columns, strict=True)]
    return Read(relationship, LevelLabels(ids, np.arange(len(ids))), levels)


def _pedigree_levels(builder: RandomTerms, name: str, columns: Sequence[Column]) -> list[np.ndarray]:
    return [
        ids if isinstance(ids, np.ndarray) else builder.codes(ids, e.level)
        for e, ids in zip(builder.slots(name), columns, strict=True)
    ]


def _independent(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    ids, levels = builder.coded(columns)
    if len(ids) == 0:
        raise DataError(
            f"{builder.phenotypes.name}: found no levels for model.random.{name}; needed at least one "
            "record with a level of it"
        )
    return Read(identity.Identity(len(ids)), LevelLabels(ids, np.arange(len(ids))), levels)


def _build_file(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert isinstance(spec, File)
    relationship, ids, notes = read_relationship(spec.file, name)
    builder.notes += notes
    builder.warnings += not_inverted(spec.file, name, relationship)
    levels = [
        builder.file_levels(name, e, builder.texts(c), ids, spec.file)
        for e, c in zip(builder.slots(name), columns, strict=True)
    ]
    return Read(relationship, LevelLabels(ids, np.arange(len(ids))), levels)


def _build_autoregression(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert isinstance(spec, Autoregression)
    levels = [builder.texts(column).is_not_null().to_numpy() for column in columns]
    traits = [e.traits for e in builder.analysis.model.random[name].effects.values()]
    found = build_autoregression(builder.phenotypes, f"model.random.{name}", spec, levels)
    builder.add_steps(name, found.steps)
    builder.warnings += found.find_repeated(builder.phenotypes, name, builder.observed_traits(traits))
    labels = LevelLabels(found.ids, np.arange(len(found.ids)), plots=found.plots)
    return Read(found.relationship, labels, found.levels)


def _build_random_walk(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert isinstance(spec, RandomWalk)
    is_met = [builder.texts(column).is_not_null().to_numpy() for column in columns]
    walk = build_random_walk(builder.phenotypes, name, spec, is_met)
    builder.warnings += missing_polynomial(builder.analysis, name, spec)
    builder.notes += unwritten_curves(builder.analysis, name, walk.labels)
    return Read(walk.relationship, walk.labels, walk.levels)


def _build_spline(builder: RandomTerms, name: str, spec: Relationship, columns: Sequence[Column]) -> Read:
    assert isinstance(spec, Spline)
    is_met = [builder.texts(column).is_not_null().to_numpy() for column in columns]
    spline = build_spline(builder.phenotypes, name, spec, is_met)
    if spec.part in (None, "surface"):  # the other parts are of the same plots
        builder.add_steps(name, spline.steps)
    builder.warnings += missing_polynomial(builder.analysis, name, spec)
    builder.warnings += missing_planes(builder.analysis, name, spec)
    builder.notes += unwritten_curves(builder.analysis, name, spline.labels)
    return Read(spline.relationship, spline.labels, spline.levels, spline.factor)


READERS: dict[type[Relationship], Reader] = {
    Identity: _independent,
    Pedigree: _build_pedigree,
    Autoregression: _build_autoregression,
    RandomWalk: _build_random_walk,
    Spline: _build_spline,
    File: _build_file,
    Genomic: _build_genomic,
    Dominance: _build_genomic,
    SingleStep: _single_step,
}
