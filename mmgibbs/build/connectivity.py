"""Traits of different records, such as environments: how many levels of a random effect each pair has in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect, Levels, Related, Term


@dataclass(frozen=True)
class Connectivity:
    """Levels of one effect with records of each pair of its traits."""

    term: str
    traits: tuple[str, ...]
    counts: np.ndarray  # (T, T): levels with records of both, on the diagonal of each
    is_related: bool  # levels without records of a trait have relatives that may have them

    def as_dict(self) -> dict:
        """The counts as plain values."""
        return {"term": self.term, "traits": list(self.traits), "levels": self.counts.tolist()}


def count_common_levels(design: Design) -> list[Connectivity]:
    """Count for each effect of a random term that acts on traits which no record has together."""
    patterns = design.patterns.astype(np.int64)
    is_together = patterns.T @ patterns > 0
    return [
        _count(design, term, effect)
        for term in design.terms
        if isinstance(term.prior, Related) and isinstance(term.incidence, Levels)
        for effect in term.incidence.effects
        if not is_together[np.ix_(effect.traits, effect.traits)].all()
    ]


def _count(design: Design, term: Term, effect: Effect) -> Connectivity:
    assert isinstance(term.prior, Related), "asked before"
    traits = list(effect.traits)
    has = sp.csr_matrix((term.n_levels, len(traits)))
    for level in effect.slots:
        record, column = np.nonzero(design.patterns[design.pattern][:, traits] & (level >= 0)[:, None])
        has = has + sp.csr_matrix((np.ones(len(record)), (level[record], column)), has.shape)
    has.data[:] = 1  # once for each level, whatever the number of its records
    names = tuple(design.traits[t] for t in traits)
    is_related = not isinstance(term.prior.relationship, Identity)
    return Connectivity(term.name, names, (has.T @ has).toarray().astype(np.int64), is_related)


def warn_of_separate_traits(
    connectivities: list[Connectivity], covariances: dict[str, CovarianceModel | None]
) -> Iterator[str]:
    """Warn of traits without levels in common where a structure says their covariances, from which they get some.

    Of full matrices, each covariance that the records do not determine is named elsewhere (estimable/).
    """
    for c in connectivities:
        covariance = covariances.get(c.term)
        if c.is_related or covariance is None or covariance.fixed or covariance.structure is None:
            continue
        n_sets, label = connected_components(sp.csr_matrix(np.sign(c.counts)), directed=False)
        if n_sets > 1:
            sizes = np.bincount(label)
            apart = [name for name, k in zip(c.traits, label, strict=True) if k != sizes.argmax()]
            yield (
                f"variances.{c.term}: expected levels of {c.term} with records of several traits, which tell how they "
                f"are correlated; got {', '.join(apart)} without a level in common with the others. These correlations "
                "come from the structure and the prior alone: use a relationship between levels, or analyse them apart"
            )
