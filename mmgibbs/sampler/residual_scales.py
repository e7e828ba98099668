"""The residual standard deviation of a trait in categories, in each class of records but the one where it is 1.

Given the liabilities R_c has its inverse Wishart, but the liabilities hold it where it is. So first, with the
*liabilities of the trait integrated out* (they are drawn right after), row and column t of R_c go to s times themselves
(R' = D R D, D the identity with s at t), s from a random walk of log s, accepted with

    sum_r log P(c_r | R') - log P(c_r | R)  -  nu log s  -  (tr(S R'^-1) - tr(S R^-1)) / 2

over the records r of the class, IW(nu, S) the prior of the block that t is in: |D R D| = s^2 |R| and the Jacobian
s^(k+1) of R -> D R D leave s^-nu. The model is that of Foulley & Gianola (1996). The walk adapts in burn-in.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import RESIDUAL_SCALE, stream
from mmgibbs.engines.base import LiabilityEngine
from mmgibbs.engines.device_sweep import ScaledResidual, scale_step_name
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.posterior.draw_names import RESIDUAL, class_matrix_name
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel

TARGET = 0.44  # acceptance that the walk aims at
ACCEPT = 200  # draw number of the decision


class ResidualScale:
    """s of one class of residuals, for one response of the design; key = (seed, chain)."""

    def __init__(
        self,
        model: MixedModel,
        response: int,
        of_class: int,
        engine: LiabilityEngine,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        burn_in: int,
    ):
        self.response, self.of_class, self.burn_in = response, of_class, burn_in
        self.engine, self.matrices, self.key = engine, matrices, key
        self.trait, self.covariance = model.design.responses[response].trait, model.residual.matrices[of_class]
        trait, name = model.design.traits[self.trait], model.residual.classes[of_class]
        self.fact, self.name = f"residual_scale_acceptance[{trait}|{name}]", f"residual_scale.{response}.{of_class}"
        observed = model.design.patterns[:, self.trait] & (model.design.class_of_pattern == of_class)
        self.step = 2.4 / np.sqrt(1 + observed[model.design.pattern].sum())
        self.log_step = np.zeros(1)

    def __call__(self, number: int, cuts: np.ndarray) -> dict[str, float]:
        """Given the cuts (K + 1,); 1 where the proposal is accepted, else 0."""
        site = number, self.of_class, stream(RESIDUAL_SCALE, self.response)
        log_s = float(np.exp(self.log_step[0]) * self.step * normal(*site, 0, *self.key))
        self.matrices.give(self.engine)
        log_ratio = self.engine.responses.compare_residual_scales(self.response, cuts, self.of_class, np.exp(log_s))
        log_ratio += self._log_prior_ratio(log_s)
        u, _ = uniform_pair(*site, draw_word(ACCEPT, 0), *self.key)
        if number <= self.burn_in:
            self.log_step += (min(1.0, np.exp(min(log_ratio, 0.0))) - TARGET) / np.sqrt(number)
        accepted = bool(np.log(u) < log_ratio)
        if accepted:
            R = self.matrices.R.copy()
            R[self.of_class] = scaled(R[self.of_class], self.trait, np.exp(log_s))
            self.matrices[RESIDUAL] = R
            self.matrices.give(self.engine)
        return {self.fact: float(accepted)}

    def describe(self) -> ScaledResidual:
        """Describe the scale for a device."""
        return ScaledResidual(self.name, self.of_class, float(self.step), TARGET)

    def _log_prior_ratio(self, log_s: float) -> float:
        """Log prior of R of the class, the standard deviation of the trait times s, less that of R as it is."""
        prior = self.matrices.prior(class_matrix_name(self.of_class), self.covariance)
        return log_prior_ratio(prior, self.matrices.R[self.of_class], self.trait, log_s)

    def state(self) -> dict[str, np.ndarray]:
        return {scale_step_name(self.name): self.log_step}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.log_step = state[scale_step_name(self.name)].copy()


def log_prior_ratio(prior: CovarianceModel, R: np.ndarray, trait: int, log_s: float) -> float:
    """-nu log s - (tr(S R'^-1) - tr(S R^-1)) / 2, of the block (k, k) that the trait is in."""
    block = next(b for b in prior.blocks if trait in b)
    nu, S = prior.inverse_wishart(block)
    now = R[np.ix_(block, block)]
    changed = np.linalg.inv(scaled(now, block.index(trait), np.exp(log_s))) - np.linalg.inv(now)
    return float(-nu * log_s - 0.5 * np.sum(S * changed))


def scaled(R: np.ndarray, trait: int, s: float) -> np.ndarray:
    """D R D (k, k)."""
    out = R.copy()
    out[trait, :] *= s
    out[:, trait] *= s
    return out
