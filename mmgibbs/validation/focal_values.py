"""Breeding values of focal animals, draw by draw: of random terms, SNP effects, and both together.

Running moments of predictions, and what their Monte Carlo error adds to the variance over records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.totals import make_total
from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.models.markers import Markers
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.expected import ConditionalExpectation
from mmgibbs.pedigree.tables import counted
from mmgibbs.posterior.draw_names import MEAN_VARIANCE, marker_name
from mmgibbs.posterior.moments import Moments, batches_per_chain, pool
from mmgibbs.posterior.thinned import ThinnedDraws
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.validation.chains import Draw
from mmgibbs.validation.evaluation import label
from mmgibbs.validation.splits import MIN_FOCAL_ANIMALS, Focal, related_terms


def make_moments(size: int, n_draws: int) -> Moments:
    """Make the moments of (size, 1) values and of their (1, 1) mean."""
    return Moments([(size, 1), (1, 1)], n_draws, batches_per_chain(n_draws, 1))


def means_and_noise(moments: Moments) -> tuple[tuple[np.ndarray, float], float]:
    """((size,) means, mean of the values), and what Monte Carlo error adds to the variance of the means over them:
    the mean of its squares less that of their common mean. 0 where it is unknown.
    """
    pooled = pool([moments])
    mcse_of_each, common = pooled.mcse
    noise = float((mcse_of_each**2).mean() - common[0, 0] ** 2)
    return (pooled.mean[0][:, 0], float(pooled.mean[1][0, 0])), max(noise, 0.0) if np.isfinite(noise) else 0.0


MOST_DRAWS = 1000  # of the values of the focal animals that are kept


@dataclass(frozen=True)
class BreedingValue:
    """A kind of breeding value on one trait, of the focal animals that have it."""

    term: str
    effect: str
    trait: str
    animals: np.ndarray  # (m,) int64 their numbers among the focal animals
    random: tuple[int, int] | None  # term and component
    codes: np.ndarray  # (m,) int64 their levels of that term
    markers: tuple[int, ...]  # numbers of the terms of SNP effects
    places: np.ndarray  # (m,) int64 of the animals in the stores of those
    regression: tuple[int, int, np.ndarray] | None = None  # a fixed term, its component and (m,) values: J

    @property
    def label(self) -> str:
        return label(self.term, self.effect, self.trait)

    def evaluate(self, draw: Draw) -> np.ndarray:
        """(m,)."""
        out = np.zeros(self.animals.size)
        if self.random is not None:
            term, component = self.random
            out += draw.theta[term][self.codes, component]
        for j in self.markers:
            out += draw.genomic[j][self.places]
        if self.regression is not None:
            i, c, x = self.regression
            out += x * draw.slope(i, c)
        return out

    def variance(
        self,
        design: Design,
        parameters: Mapping[str, np.ndarray],
        matrices: Mapping[int, str],
        known: Left | None = None,
    ) -> float:
        """Compute the variance of the values among these animals under the prior, at the posterior means of variances.

        For a random term it is (1 + Fbar - 2 fbar) sigma2_u, for SNPs v sum_j var(x_aj), v the mean variance of an
        effect.

        parameters: name -> (draws, ...); matrices: term -> name of the draws of its covariance matrix. known: as of
        `residual_spread`, which values of the same animals share. NaN where that is.
        """
        out = 0.0
        if self.random is not None:
            term, c = self.random
            free = active(design.terms[term], self.codes, c)
            if free.any():
                kin, has_residual = design.terms[term].relationship, any(m.epsilon for m in design.markers)
                held = is_held(design.terms[term])
                several = has_residual and held.any()
                spread = residual_spread(kin, held, self.codes, known) if several else kin.spread(self.codes)
                out += spread * float(parameters[matrices[term]][:, c, c].mean())
        for j in self.markers:
            v = float(parameters[marker_name(design.markers[j].key, MEAN_VARIANCE)].mean())
            out += v * spread_of_genotypes(design.markers[j], self.places)
        return out


def is_held(term: Term) -> np.ndarray:
    """(q,) bool: every component of the level is set to 0."""
    return np.zeros(term.n_levels, bool) if term.active is None else np.logical_not(term.active.any(axis=1))


Left = dict[bytes, tuple[float, float]]  # levels as bytes -> tr(V), 1'V 1 of what genotypes leave to them


def residual_spread(kin: Relationship, held: np.ndarray, codes: np.ndarray, known: Left | None = None) -> float:
    """tr(V) / n - 1'V 1 / n^2 of what predicted genotypes leave to these levels: V the block of (A^nn)^-1, n the levels
    that are not held, and 0 of those that are. NaN of more than MOST_SOLVED of them: each takes a solution.

    known: of sets of levels that were met before; this one is added.
    """
    assert isinstance(kin, Pedigree), "checked with the analysis"
    codes_met, known = np.unique(codes[~held[codes]]), {} if known is None else known
    if codes_met.size > MOST_SOLVED:
        return np.nan
    key = codes_met.tobytes()
    if key not in known:
        expected = ConditionalExpectation(kin.relatives, np.flatnonzero(held), codes_met)
        known[key] = float(expected.unexplained().sum()), expected.total_unexplained()
    trace, total = known[key]
    return trace / codes.size - total / codes.size**2


def active(term: Term, codes: np.ndarray, component: int) -> np.ndarray:
    """(m,) bool: which of these levels are not set to 0 (genotyped animals are, beside predicted genotypes)."""
    return np.ones(codes.size, bool) if term.active is None else term.active[codes, component]


def spread_of_genotypes(markers: Markers, places: np.ndarray) -> float:
    """sum_j var(x_aj) over the animals at these places: the expected variance of their breeding values, in units of
    that of an effect.
    """
    store, total = markers.genotypes, 0.0
    values = store.values(markers.centre, markers.scale, markers.mean)
    for first in range(0, store.n_snps, 1024):
        x = store.decode(store.every[first : first + 1024], values)[:, places]
        total += float(x.var(axis=1, dtype=np.float64).sum())
    return total


def choose_values(assembled: Assembled, prepared: Prepared, focal: Focal) -> tuple[list[BreedingValue], list[str]]:
    """List every kind of breeding value that enough of the focal animals have, and notes on those that lack one."""
    out, notes = _random_term_values(assembled, prepared, focal), []
    genomic = _marker_values(prepared, focal) + _totals(assembled, prepared, focal)
    for value in genomic:
        lost = len(focal.animals) - value.animals.size
        if value.animals.size >= MIN_FOCAL_ANIMALS:
            out.append(value)
        if lost and value.effect == GEBV:
            few = (
                ""
                if value.animals.size >= MIN_FOCAL_ANIMALS
                else f": fewer than {MIN_FOCAL_ANIMALS} are left, and nothing is compared"
            )
            notes.append(
                f"{value.label}: {counted(lost, 'focal animal', 'is')} not genotyped, without genomic value{few}"
            )
    return out, notes


def _random_term_values(assembled: Assembled, prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    infos, every, none = {t.name: t for t in assembled.terms}, np.arange(len(focal.animals)), np.empty(0, np.int64)
    for i in related_terms(design):
        info, codes = infos[design.terms[i].name], focal.levels(prepared.levels[i].ids, design.terms[i].name)
        for c, component in enumerate(info.components):
            trait = design.traits[info.trait_of_component[c]]
            effect = component.removesuffix(trait).removesuffix(":")
            if active(design.terms[i], codes, c).any():
                out.append(BreedingValue(info.name, effect, trait, every, (i, c), codes, (), none))
    return out


def _marker_values(prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    for j, (markers, labels) in enumerate(zip(design.markers, prepared.markers, strict=True)):
        animals, places = _places(focal.animals, labels.animals.head(labels.n_genotyped))
        trait = design.traits[markers.trait]
        out.append(BreedingValue(markers.name, GEBV, trait, animals, None, np.empty(0, np.int64), (j,), places))
    return out


def _totals(assembled: Assembled, prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    for t, trait in enumerate(design.traits):
        total = make_total(t, assembled.terms, prepared)
        if total is None:
            continue
        animals, places = _places(focal.animals, prepared.markers[total.markers[0]].animals)
        code_at = np.full(prepared.markers[total.markers[0]].animals.len(), -1)
        code_at[total.places] = total.codes
        is_known = code_at[places] >= 0
        animals, places = animals[is_known], places[is_known]
        name = "+".join([design.terms[total.term].name, *(design.markers[j].name for j in total.markers)])
        random, of_codes = (total.term, total.component), total.of_codes(code_at[places])
        out.append(
            BreedingValue(
                name,
                TOTAL,
                trait,
                animals,
                random,
                of_codes.codes,
                of_codes.markers,
                of_codes.places,
                of_codes.regression,
            )
        )
    return out


def _places(wanted: pl.Series, ids: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """(numbers among the wanted ones, places among the ids) of those that are there."""
    code = lookup(wanted, ids)
    known_rows = np.flatnonzero(code.is_not_null().to_numpy())
    return known_rows, code.drop_nulls().to_numpy().astype(np.int64)


@dataclass(frozen=True)
class FocalValue:
    """Posterior mean, Monte Carlo error and some draws of one kind of breeding value."""

    mean: np.ndarray  # (m,)
    noise: float  # what Monte Carlo error adds to the variance of the means
    draws: np.ndarray  # (draws, m) float32, evenly spaced


class FocalValueAccumulator:
    """Accumulator of the focal values of one chain."""

    def __init__(self, value: BreedingValue, n_draws: int):
        self.value, size = value, value.animals.size
        self.moments, self.kept = make_moments(size, n_draws), ThinnedDraws(MOST_DRAWS, size)

    def add(self, draw: Draw) -> None:
        u = self.value.evaluate(draw)
        self.moments.add([u[:, None], u.mean(keepdims=True)[:, None]])
        self.kept.add_vector(u)

    def found(self) -> FocalValue:
        (mean, _), noise = means_and_noise(self.moments)
        return FocalValue(mean, noise, self.kept.draws)
