"""The steps of a trait that is not normal: its thresholds, its liabilities, and the scale of both.

1. Thresholds given theta and the other residuals, *liabilities integrated out* (Cowles 1996): a random walk on the
   logarithms of the gaps d_k = log(t_k - t_{k-1}), k = 2 ... K - 1, accepted with

       sum_r log P(c_r | t') - log P(c_r | t)  +  sum_k (d'_k - d_k)            the last sum is the Jacobian; t is flat

   P(c) is of the *conditional* normal of the record's liability given its other traits. Its scale adapts in burn-in.
   So does the residual variance of each further class of records (residual_scales.py).
2. Liabilities given thresholds, theta and the other residuals, always right after, so that 1 and 2 are one joint draw.
3. The scale of the liability (Liu & Sabatti 2000): l, theta of the trait and t_2 ... go to g times themselves, where

       p(g) ~ g^(M-1) exp(-a g^2/2 - b g)
       a = sum_r w Q_tt e_t^2 + ...,    b = sum_r w e_t sum_{o != t} Q_to e_o + ...,    M = n_t + (K - 2) + ...

   and a term adds, for each of its components of the trait,

       G moves along (row and column times g)       its prior and the Jacobian: flat M += k + 1; a scale prior with its
                                                    auxiliary variable as it says (models/priors)
       G stays, or a normal prior of precision P    M += equations in force,   a += P_tt S_tt,   b += P_to S_ot
       flat fixed effects                           M += equations in force

   with P = G^-1 and S = Theta' K^-1 Theta, or the prior precision and Theta' Theta. G moves along where it is sampled,
   no level is set to 0, and its prior allows it; then heritability moves with the scale, which it would hardly do
   else. The step is for traits in categories, whose R_tt = 1 and t_1 = 0 leave the rest to move together slowly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import LIABILITY_SCALE, THRESHOLD, stream
from mmgibbs.engines.base import HostState, LiabilityEngine
from mmgibbs.engines.device_sweep import (
    DeviceVariances,
    ObservedTrait,
    VariancePlan,
    cuts_name,
    log_step_name,
    moved_name,
    scale_moved_name,
    scale_step_name,
)
from mmgibbs.posterior.draw_names import RESIDUAL, matrix_name, threshold_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices, is_independent
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.residual_scales import ResidualScale

TARGET = {1: 0.44, 2: 0.35}  # acceptance that the walk aims at, by the number of gaps; beyond: 0.28
ACCEPT = 200  # draw number of the decision; normals of the walk use lower ones


class LiabilityStep:
    """Thresholds, liabilities and their scale, of one response of the design; key = (seed, chain).

    collapsed: their scale is drawn by another step (marginal/liabilities.py), and liabilities are over-relaxed, but of
    counts, now and then, and where thresholds moved: given others they are drawn anew, as 2 says.
    """

    def __init__(
        self,
        model: MixedModel,
        response: int,
        engine: LiabilityEngine,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        burn_in: int,
        collapsed: bool = False,
    ):
        self.model, self.response, self.engine, self.matrices, self.key = model, response, engine, matrices, key
        r = model.design.responses[response]
        self.trait, self.burn_in = r.trait, burn_in
        self.over_relaxed = collapsed and r.is_truncated
        self.unit = r.has_unit_residual
        # with SNP effects, which a change of scale would have to move too, it is left out
        self.scaled = not collapsed and self.unit and all(m.trait != self.trait for m in model.design.markers)
        self.cuts, self.n_gaps = r.start_of_cuts(), r.n_free_thresholds  # gaps of t_2 ... t_{K-1}
        self.log_step = np.zeros(1)
        if self.n_gaps:
            counts = np.array([*r.tally().values()])
            self.step = 2.4 / np.sqrt(self.n_gaps * np.minimum(counts[1:-1], counts[2:]))
        self.n_records = int(model.design.patterns[:, self.trait][model.design.pattern].sum())
        self.name = threshold_name(self.trait)
        self.fact = f"threshold_acceptance[{model.design.traits[self.trait]}]"
        unit_in = [self.trait in m.unit for m in model.residual.matrices]
        self.moving = {i: (matrix_name(i), model.covariance(i)) for i in model.random_terms if self._moves_along(i)}
        of_trait = {i: term.component_trait == self.trait for i, term in enumerate(model.design.terms)}
        self.components = {i: np.flatnonzero(mask).tolist() for i, mask in of_trait.items() if mask.any()}
        staying = [i for i in self.components if i not in self.moving]
        self.power = float(self.n_records + self.n_gaps)  # what M is whatever the draws are
        self.power += sum(self._count_active(i) for i in staying)
        # terms whose prior is not flat: where their precision joins components of the trait, and these with others
        is_flat = lambda i: model.covariances[i] is None and model.design.terms[i].prior_precision is None
        self.with_prior = [
            (i, np.ix_(of_trait[i], of_trait[i]), None if of_trait[i].all() else np.ix_(of_trait[i], ~of_trait[i]))
            for i in self.components
            if not is_flat(i)
        ]
        self.scale_stream = stream(LIABILITY_SCALE, response)
        self.residual_scales = [
            ResidualScale(model, response, c, engine, matrices, key, burn_in)
            for c, covariance in enumerate(model.residual.matrices)
            if self.unit and not unit_in[c] and not covariance.fixed
        ]
        self.parameters = {}
        if self.n_gaps:
            self.parameters = {self.name: Parameter((f"{self.name}_gap",), "thresholds t_2 ... t_{K-1}; t_1 is 0")}

    def __call__(self, number: int) -> dict[str, float]:
        if RESIDUAL in self.matrices.changed:  # liabilities depend on R alone
            self.matrices.give(self.engine)
        facts = {self.fact: self._draw_thresholds(number)} if self.n_gaps else {}
        for scale in self.residual_scales:
            facts |= scale(number, self.cuts)
        if self.over_relaxed and not is_independent(number) and not facts.get(self.fact):
            assert isinstance(self.engine, HostState), "other engines integrate no locations out of liabilities"
            self.engine.responses.reflect(self.response, self.cuts, number, self.key)
            return facts
        of_residuals = self.engine.responses.draw(self.response, self.cuts, number, self.key)
        if self.scaled:
            self._draw_scale(number, *of_residuals)
        return facts

    def _moves_along(self, i: int) -> bool:
        """Check whether G of a random term can move with the scale of the trait."""
        term, covariance = self.model.design.terms[i], self.model.covariance(i)
        held = term.active is not None and not np.all(term.active[:, term.component_trait == self.trait])
        on_trait = bool(np.any(term.component_trait == self.trait))
        return (
            on_trait
            and not covariance.fixed
            and not held
            and not term.groups_fixed
            and (covariance.flat or covariance.prior.mixture is not None)
        )

    def _draw_thresholds(self, number: int) -> float:
        """1 where the proposal is accepted, else 0."""
        site = number, self.trait, stream(THRESHOLD, self.response)
        gaps = np.diff(self.cuts[1:-1])
        z = np.array([normal(*site, j, *self.key) for j in range(self.n_gaps)])
        moved = np.exp(self.log_step) * self.step * z  # of the logarithms
        proposed = self.cuts.copy()
        proposed[2:-1] = np.cumsum(gaps * np.exp(moved))
        log_ratio = self.engine.responses.compare_cuts(self.response, self.cuts, proposed) + moved.sum()
        u, _ = uniform_pair(*site, draw_word(ACCEPT, 0), *self.key)
        if number <= self.burn_in:
            self.log_step += (min(1.0, np.exp(min(log_ratio, 0.0))) - TARGET.get(self.n_gaps, 0.28)) / np.sqrt(number)
        accepted = bool(np.log(u) < log_ratio)
        if accepted:
            self.cuts = proposed
        return float(accepted)

    def _draw_scale(self, number: int, a: float, b: float) -> None:
        """a and b: what the residuals add to those of the density."""
        M, a, b = self.scale_density(a, b)
        g = draw_scale(M, a, b, (number, self.trait, self.scale_stream), self.key)
        self.engine.responses.scale_trait(self.trait, g)
        self.cuts[2:-1] *= g
        for i in self.moving:
            self._scale_matrix(i, g)

    def _scale_matrix(self, term: int, g: float) -> None:
        """Rows and columns of the trait in G of a term, and the auxiliaries of its prior."""
        name, covariance = self.moving[term]
        G = self.matrices[name].copy()
        for component in self.components[term]:
            G[component, :] *= g
            G[:, component] *= g
            if covariance.prior.mixture is not None:
                moved = covariance.prior.mixture.scaled(self.matrices.auxiliaries[name], component, g)
                self.matrices.take_auxiliaries(name, moved)
        self.matrices[name] = G

    def _count_active(self, term: int) -> int:
        """Effects on the trait that are not set to 0."""
        active, components = self.model.design.terms[term].active, self.components[term]
        if active is None:
            return self.model.design.terms[term].n_levels * len(components)
        return int(np.count_nonzero(active[:, components]))

    def scale_density(self, a: float, b: float) -> tuple[float, float, float]:
        """M, a and b of the scale g (see above), given what the residuals add."""
        M = self.power
        for i, joined, crossed in self.with_prior:
            if i in self.moving:
                power, square = self._moving_prior(i)
                M, a = M + power, a + square
                continue
            G, P = self.matrices.G[i], self.model.design.terms[i].prior_precision
            if G is not None:
                P, S = np.linalg.inv(G), self.engine.quadratic_form(i)
            else:
                S = self.engine.sums_of_products(i)
            assert P is not None, "flat terms are left out"
            a += np.add.reduce(P[joined] * S[joined], axis=None)
            b += 0.0 if crossed is None else np.add.reduce(P[crossed] * S[crossed], axis=None)
        return M, float(a), float(b)

    def _moving_prior(self, term: int) -> tuple[float, float]:
        """Return (M, a) of the prior of a matrix that moves along: p(G) and the Jacobian are g^M exp(-a g^2 / 2)."""
        (name, covariance), components = self.moving[term], self.components[term]
        mixture = covariance.prior.mixture
        if mixture is None:  # flat in each block: nu = -(k + 1)
            return float(np.sum(covariance.size_of_block[components] + 1)), 0.0
        auxiliaries = self.matrices.auxiliaries[name]
        M, a = 0.0, 0.0
        for component in components:
            power, square = mixture.scale_exponents(auxiliaries, component)
            M, a = M + power, a + square
        return M, a

    # On a device: see resident.DeviceStep

    can_launch = True

    def add_to_plan(self, plan: VariancePlan) -> None:
        """Add this step to the plan: see resident.DeviceStep."""
        moving = {i: tuple(self.components[i]) for i in self.moving}
        staying = {i: tuple(self.components[i]) for i, *_ in self.with_prior if i not in self.moving}
        self.number_in_plan = len(plan.traits)
        plan.traits.append(
            ObservedTrait(
                response=self.response,
                trait=self.trait,
                log_gap_steps=self.step if self.n_gaps else np.empty(0),
                wanted_acceptance=TARGET.get(self.n_gaps, 0.28),
                is_scaled=self.scaled,
                power=self.power + sum(self._moving_prior(i)[0] for i in moving),
                moving=tuple(moving.items()),
                staying=tuple(staying.items()) if self.scaled else (),
                residual_scales=tuple(scale.describe() for scale in self.residual_scales),
            )
        )
        of = self.response
        plan.values |= {cuts_name(of): (len(self.cuts),), log_step_name(of): (1,), moved_name(of): (1,)}
        for scale in self.residual_scales:
            plan.values |= {scale_step_name(scale.name): (1,), scale_moved_name(scale.name): (1,)}

    def launch(self, variances: DeviceVariances) -> None:
        """Launch this step: see resident.DeviceStep."""
        variances.launch_trait(self.number_in_plan)

    def list_values(self) -> dict[str, np.ndarray]:
        """List the values of the step that a device holds."""
        of_scales = {scale_step_name(scale.name): scale.log_step for scale in self.residual_scales}
        return {cuts_name(self.response): self.cuts, log_step_name(self.response): self.log_step} | of_scales

    def put_drawn(self, values: Mapping[str, np.ndarray]) -> None:
        """Take what a device has drawn."""
        self.cuts, self.log_step = (values[f(self.response)].copy() for f in (cuts_name, log_step_name))
        for scale in self.residual_scales:
            scale.log_step = values[scale_step_name(scale.name)].copy()

    def find_draws(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the cuts of a kept draw of a device."""
        return {self.name: values[cuts_name(self.response)][2:-1]} if self.n_gaps else {}

    def find_facts(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return the facts of a kept draw of a device."""
        facts = {scale.fact: float(values[scale_moved_name(scale.name)][0]) for scale in self.residual_scales}
        return facts | ({self.fact: float(values[moved_name(self.response)][0])} if self.n_gaps else {})

    def draws(self) -> dict[str, np.ndarray]:
        return {self.name: self.cuts[2:-1]} if self.n_gaps else {}

    def state(self) -> dict[str, np.ndarray]:
        own = {f"{self.name}.cuts": self.cuts, f"{self.name}.log_step": self.log_step}
        return own | {name: value for scale in self.residual_scales for name, value in scale.state().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.cuts, self.log_step = (state[f"{self.name}.{what}"].copy() for what in ("cuts", "log_step"))
        for scale in self.residual_scales:
            scale.restore(state)


def draw_scale(M: float, a: float, b: float, site: tuple[int, int, int], key: tuple[int, int]) -> float:
    """g with density ~ g^(M-1) exp(-a g^2/2 - b g): exactly where b = 0, else a Metropolis step from g = 1.

    The proposal is log-normal about the mode, so that nearly every one is accepted.
    """
    if b == 0.0:
        return float(np.sqrt(2 * gamma(0.5 * M, *site, 0, *key) / a))
    mode = (-b + np.sqrt(b * b + 4 * a * M)) / (2 * a)
    sd = 1 / np.sqrt(2 * a * mode**2 + b * mode)
    centre, s = np.log(mode), np.log(mode) + sd * normal(*site, 0, *key)

    def log_weight(x: float) -> float:
        """Log of the target over the proposal, at log g = x."""
        return M * x - 0.5 * a * np.exp(2 * x) - b * np.exp(x) + 0.5 * ((x - centre) / sd) ** 2

    u, _ = uniform_pair(*site, draw_word(ACCEPT, 0), *key)
    return float(np.exp(s)) if np.log(u) < log_weight(s) - log_weight(0.0) else 1.0
