"""What the draws say of the records of a trait that is not normal: incidences, heritabilities on the observed scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmgibbs.engines.base import LiabilityEngine
from mmgibbs.models.residual import stack_classes
from mmgibbs.posterior.observed_scale import OF_GENOMIC, OF_LIABILITY, ObservedScale, Population, observed_values
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.liabilities import LiabilityStep
from mmgibbs.sampler.markers.followed import EffectsFollowed


class ObservedValues:
    """A step that draws nothing: functions of what the others drew, computed for the sweeps that are kept."""

    def __init__(
        self,
        scale: ObservedScale,
        liabilities: LiabilityStep,
        engine: LiabilityEngine,
        matrices: CovarianceMatrices,
        markers: Sequence[EffectsFollowed] = (),
    ):
        self.scale, self.liabilities, self.engine, self.matrices = scale, liabilities, engine, matrices
        self.markers = markers  # of every term of SNP effects
        self.population = to_sweep_order(scale.population, [lists.code for lists in engine.equations.terms])
        self.given_own = self.population if scale.own is None else self.population.without(*scale.own)
        known = OF_LIABILITY + (OF_GENOMIC if scale.population.genomic else ())
        self.parameters = {
            scale.draws: Parameter((f"{scale.draws}_value",), "on the observed scale: " + ", ".join(scale.names)),
            scale.liability: Parameter((f"{scale.liability}_value",), "of the liability: " + ", ".join(known)),
        }

    def __call__(self, number: int) -> None:
        pass

    def draws(self) -> dict[str, np.ndarray]:
        """Incidences and heritabilities; OF_LIABILITY."""
        people, matrices = self.population, dict(self.matrices.items())
        residual = stack_classes(self.matrices.R)[:, people.trait, people.trait]
        eta, V = people.fixed_predictor(self.engine.theta), people.variance(matrices, residual)
        direct = 0.0
        if self.scale.direct is not None:
            name, c = self.scale.direct
            direct = matrices[name][c, c] * self.scale.direct_diagonal
        rest = people.weight @ self.given_own.variance(matrices, residual)
        without_own = []  # mean of the liability, for OF_GENOMIC
        if people.genomic is not None:
            values = [step.breeding_values() for step in self.markers]
            others = tuple(j for j in people.genomic.markers if j not in self.scale.own_markers)
            (g, of_all), (of_others, v) = people.genomic.moments(values), people.genomic.moments(values, others)
            genotyped = people.genomic.genotyped
            without_own = [people.weight @ (eta + genotyped * of_others) + people.origin]
            if self.scale.own_regression is not None:
                term, component, mean = self.scale.own_regression
                without_own[0] -= mean * self.engine.theta[term][0, component]
            eta, V = eta + genotyped * g, V + genotyped * of_all
            rest += people.weight @ genotyped * v
            direct += of_all if self.scale.genomic_heritability else 0.0
        mean = people.weight @ eta
        of_liability = [mean + people.origin, people.weight @ (eta - mean) ** 2, people.weight @ V, rest, *without_own]
        return {
            self.scale.draws: observed_values(self.scale, eta, V, self.liabilities.cuts, direct),
            self.scale.liability: np.array(of_liability),
        }

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def to_sweep_order(population: Population, codes: Sequence[np.ndarray]) -> Population:
    """The population with levels as the engine orders them; codes: model-order level of each position, by term."""
    fixed = tuple(replace(p, level=np.argsort(codes[p.term])[p.level]) for p in population.fixed)
    return replace(population, fixed=fixed)
