"""The parameters rho of the relationships of a likelihood as REML moves them, z = atanh(rho), and their estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint, Source
from mmgibbs.likelihood.correlated import CorrelatedLikelihood, CorrelatedPoint, RenewableResidual
from mmgibbs.likelihood.renewable import RenewableRelationship
from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood
from mmgibbs.models.design import Design
from mmgibbs.models.labels import correlation_label
from mmgibbs.models.terms import Related
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.information import element_places

OTHER_STARTS = (-0.5, 0.2, 0.9)
MIN_INDEPENDENT = 10  # trials, or animals over time, whose differences tell a variance whatever the correlation is


class CorrelationsWatch(Protocol):
    """A watch of the iteration that is told of the correlations first."""

    correlations: np.ndarray | None

    def __call__(self, iteration: int, point: LikelihoodPoint, distance: float) -> bool:
        """Return True to stop."""


@dataclass(frozen=True)
class CorrelationEstimates:
    """Parameters of relationships, and how their errors add to those of the variances."""

    sources: tuple[Source, ...]  # (P,) of each
    names: tuple[str, ...]  # (P,)
    values: np.ndarray  # (P,)
    covariance: np.ndarray  # (P, P); NaN of what is at a bound, and of what the data do not determine
    of_variances: np.ndarray  # (p, p) what their errors add to the covariance of the scaled elements
    words: tuple[str, ...]  # of those without a standard error
    decides_variance: np.ndarray  # (P,) bool: it is at its upper bound, and the variance is what the bound makes of it

    @property
    def n_estimated(self) -> int:
        return int(np.count_nonzero(np.isfinite(np.diag(self.covariance))))

    def renew(self, design: Design) -> Design:
        """The design with the relationships at these values."""
        terms, correlated = list(design.terms), list(design.correlated)
        for source, values in self.group_values().items():
            if source.term is not None:
                term = terms[source.term]
                terms[source.term] = replace(term, prior=Related(term.relationship.renewed(values)))
            elif source.group is not None:
                group = correlated[source.group]
                correlated[source.group] = replace(group, relationship=group.relationship.renewed(values))
        return replace(design, terms=tuple(terms), correlated=tuple(correlated))

    def group_values(self) -> dict[Source, np.ndarray]:
        """The values of each relationship."""
        return {
            source: self.values[[other == source for other in self.sources]] for source in dict.fromkeys(self.sources)
        }

    def labels(self, design: Design) -> list[str]:
        """Label the parameters (P,): 'field.rho[row]', 'residual.rho[row]'."""
        return [_label(design, *of_parameter) for of_parameter in zip(self.sources, self.names, strict=True)]


def _label(design: Design, source: Source, name: str) -> str:
    if source.term is not None:
        return f"{design.terms[source.term].name}.rho[{name}]"
    assert source.group is not None, "a parameter is of one or the other"
    return correlation_label(design, source.group, name)


def has_correlations(likelihood: Likelihood) -> bool:
    """Check whether some relationship has parameters to estimate."""
    return bool(_free_terms(likelihood) or _free_groups(likelihood))


def _free_terms(likelihood: Likelihood) -> list[int]:
    return [i for i in likelihood.random if likelihood.design.terms[i].relationship.has_free_parameters]


def _free_groups(likelihood: Likelihood) -> list[int]:
    groups = likelihood.design.correlated
    return [g for g, group in enumerate(groups) if group.relationship.has_free_parameters]


def _make_renewable(likelihood: Likelihood) -> list[RenewableRelationship] | list[RenewableResidual]:
    """List the parts of a likelihood that change with the correlations; ModelError where its form has none."""
    if isinstance(likelihood, CorrelatedLikelihood):
        terms = _free_terms(likelihood)
        if terms:
            name = likelihood.design.terms[terms[0]].name
            raise ModelError(
                f"sampler.method: reml: found correlations of model.random.{name} that are estimated beside correlated "
                "residuals (variances.residual); needed one of them, or known correlations (rho, and fixed: true)"
            )
        return [RenewableResidual(likelihood, group) for group in _free_groups(likelihood)]
    assert isinstance(likelihood, RestrictedLikelihood), "the form of every relationship that has parameters"
    return [RenewableRelationship(likelihood, term) for term in _free_terms(likelihood)]


class CorrelationParameters:
    """All parameters of relationships that are estimated, and the likelihood that changes with them."""

    def __init__(self, likelihood: Likelihood):
        self.design = likelihood.design
        self._renewables: Sequence[Any] = _make_renewable(likelihood)
        self._cuts = np.cumsum([len(renewable.parameters) for renewable in self._renewables])[:-1]
        bounds = np.concatenate([renewable.relationship.parameter_bounds for renewable in self._renewables])
        self.low, self.high = np.arctanh(bounds).T  # (P,) of z

    def __len__(self) -> int:
        return len(self.low)

    @property
    def terms(self) -> set[int]:
        """Random terms whose relationship has such parameters."""
        return {renewable.source.term for renewable in self._renewables} - {None}

    def start(self, correlations: np.ndarray | None) -> np.ndarray:
        """Return z (P,) of these correlations, by default those of the model."""
        of_model = np.concatenate([renewable.parameters for renewable in self._renewables])
        return np.clip(np.arctanh(of_model if correlations is None else correlations), self.low, self.high)

    def other_starts(self) -> list[np.ndarray]:
        """z from which a second maximum may be reached: all relationships have the same correlations."""
        related = [renewable.relationship for renewable in self._renewables]
        sizes = [len(relationship.parameters) for relationship in related]
        every = (
            np.concatenate([k.place_usual(np.array(rho[:size])) for k, size in zip(related, sizes, strict=True)])
            for rho in product(OTHER_STARTS, repeat=max(sizes))
        )
        return [np.clip(np.arctanh(rho), self.low, self.high) for rho in every]

    def renew(self, z: np.ndarray) -> None:
        """Let the likelihood be that of z."""
        for renewable, rho in zip(self._renewables, np.split(np.tanh(z), self._cuts), strict=True):
            renewable.renew(rho)

    def gradient(self, point: LikelihoodPoint, z: np.ndarray) -> np.ndarray:
        """Compute d log p / dz (P,) at a point of z, to which the likelihood was renewed last."""
        of_rho = np.concatenate([renewable.gradient(point) for renewable in self._renewables])
        return of_rho * (1 - np.tanh(z) ** 2)

    def information(self, point: LikelihoodPoint, z: np.ndarray, elements: Elements, scale: np.ndarray) -> np.ndarray:
        """Compute the average information (p + P, p + P) of functions of the elements, and of z.

        `scale` (elements, p) has the derivatives of these functions.
        """
        assert isinstance(point, (Point, CorrelatedPoint)), "of such a likelihood"
        of_variances = point.working_variates(element_places(elements)) @ scale
        of_rho = np.concatenate([renewable.working_variates(point) for renewable in self._renewables], axis=-1)
        return point.project(np.concatenate([of_variances, of_rho * (1 - np.tanh(z) ** 2)], axis=-1))

    def estimates(
        self, z: np.ndarray, covariance: np.ndarray, of_variances: np.ndarray, at_bound: np.ndarray, known: np.ndarray
    ) -> CorrelationEstimates:
        """covariance: (P, P) of z; at_bound, known: (P,) whether the likelihood rises beyond a bound, and whether the
        data say something of it.
        """
        rho = np.tanh(z)
        covariance = covariance * np.outer(1 - rho**2, 1 - rho**2)
        without = at_bound | ~known
        covariance[without] = covariance[:, without] = np.nan
        sources = tuple(renewable.source for renewable in self._renewables for _ in renewable.parameters)
        names = tuple(name for renewable in self._renewables for name in renewable.relationship.parameters)
        related = [renewable.relationship for renewable in self._renewables for _ in renewable.parameters]
        has_few = [K.n_independent is not None and K.n_independent < MIN_INDEPENDENT for K in related]
        decides_variance = at_bound & (rho > 0) & np.array(has_few, bool)
        words = []
        for n in np.flatnonzero(without):
            name = _label(self.design, sources[n], names[n])
            if at_bound[n] and 0 < self.low[n] >= z[n]:
                words.append(
                    f"{name}: the correlation over a step is at its lower bound, {rho[n]:.3g}: the likelihood rises "
                    "below it, as where most times are less than a step apart; it has no standard error. Needed a "
                    "shorter step (relationship.step)"
                )
            elif at_bound[n]:
                of_level = (
                    "The variance is then what this bound makes of it, and with it the standard error of a mean, which "
                    "means.csv leaves blank; those of differences do not depend on it. "
                )
                words.append(
                    f"{name}: the correlation is at its bound, {rho[n]:.6g}: the likelihood rises beyond it, as where "
                    "a trend over the whole field or time is no autoregression; it has no standard error. "
                    f"{of_level if decides_variance[n] else ''}"
                    "Needed a fixed effect for this trend, such as a covariate or class of rows or columns"
                )
            else:
                words.append(
                    f"{name}: the data say nothing of this correlation, as where the variance of its term is 0: the "
                    "estimate comes from its start alone and has no standard error; needed a model without the term"
                )
        return CorrelationEstimates(sources, names, rho, covariance, of_variances, tuple(words), decides_variance)
