"""A Metropolis step of the shares of the classes with the scale of the effects, whose proposal is a whole sweep.

Given the classes of p SNPs, of which n are not 0, a share moves by about 1/sqrt(n) of itself in a sweep, and a variance
given their effects by as much, while the records say little of them but for their product. This step moves a share pi_k
far along the ridge on which the mean variance of an effect, v sum_k gamma_k pi_k, stays as it is:

    logit(pi_k') = logit(pi_k) + step                    the other shares keep their proportions
    v' = v (sum_k gamma_k pi_k) / (sum_k gamma_k pi_k')    where v is sampled, and with it every v_j of a single SNP

then draws class and effect of every SNP in turn under (pi', v'). The reverse of that proposal is a sweep under (pi, v)
in the opposite order, which meets each SNP in the same company, so that all but the sums of the weights cancels:

    ratio = p(pi', v') / p(pi, v)  prod_j  sum_k pi_k' f_jk(v') / sum_k pi_k f_jk(v)

f_jk is the density of q_j in class k, the effect integrated out (sweep.py). The logarithm of the ratio varies by the
information on the class of a SNP, not by the number of SNPs that change: steps are long where a SNP tells little of its
class. A sweep goes forward or backward with equal chance. If the proposal is refused, all is as before. This is a
tempered transition (Neal 1996, Stat Comput 6:353) of one step.

Steps of a share go in one direction until one is refused, then in the other (guided walk, Gustafson 1998, Stat Comput
8:357): as most are accepted, the share does not go to and fro.

p(pi, v) is in the coordinates logit(pi_k), the proportions of the other shares, and log v: Dirichlet shares with counts
c give pi_k^c_k (1 - pi_k)^(c - c_k), c the sum of the counts, as the proportions of the others are independent of pi_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import MARKER_SHARE_STEP, stream
from mmgibbs.sampler.markers.priors.base import Mixture, ScalePrior, Site
from mmgibbs.sampler.markers.priors.common import Shares

SWEEPS_BETWEEN = 2  # from one proposal to the next
START_STEP = 0.4  # of logit(pi_k), root of the mean square
TARGET = 0.7  # acceptance that the steps aim at
MAX_LOGIT = 700.0  # of which the exponential is finite
ACCEPT = 1  # draw of the uniforms, apart from those of the normal


@dataclass(frozen=True)
class Proposal:
    """Shares pi (K,) and variances of effects times `square`, reached by a step of class k."""

    k: int
    pi: np.ndarray
    square: float
    log_prior_ratio: float
    is_backward: bool
    u: float

    def changed(self, mixture: Mixture) -> Mixture:
        """The prior of the effects under the proposal."""
        return Mixture(mixture.variance * self.square, np.log(self.pi))


class ShareMoves:
    """Proposals of the shares of one prior in one chain; the size of their steps adapts in burn-in.

    factor (K,): the variances of the classes in units of the common one.
    """

    def __init__(self, shares: Shares, factor: np.ndarray, site: Site, burn_in: int):
        self.shares, self.factor, self.site, self.burn_in = shares, factor, site, burn_in
        self.log_steps = np.full(len(factor), np.log(START_STEP))  # of each class; class 0 moves with the others
        self.direction = np.ones(len(factor))  # 1 or -1
        self.accepted = 0.0  # 1 where the last proposal was, else 0

    def propose(self, number: int, scaling: ScalePrior | None) -> Proposal | None:
        """Make the proposal of a sweep, if it has one; a share that cannot move turns round."""
        shares, turn = self.shares, number // SWEEPS_BETWEEN
        if shares.counts is None or number % SWEEPS_BETWEEN:
            return None
        k = 1 + turn % (len(shares.pi) - 1)
        place = number, k, stream(MARKER_SHARE_STEP, self.site.term)
        step = self.direction[k] * exp(self.log_steps[k]) * abs(normal(*place, 0, *self.site.key))
        u, u_order = uniform_pair(*place, draw_word(ACCEPT, 0), *self.site.key)
        pi = shifted_shares(shares.pi, k, step)
        if pi is None:
            self.direction[k] *= -1
            return None
        square = 1.0 if scaling is None else float(self.factor @ shares.pi / (self.factor @ pi))
        ratio = 0.0 if scaling is None else scaling.log_ratio(square)
        c, total = shares.counts[k], shares.counts.sum()
        ratio += c * log(pi[k] / shares.pi[k]) + (total - c) * log((1 - pi[k]) / (1 - shares.pi[k]))
        return Proposal(k, pi, square, ratio, bool(u_order < 0.5), float(u))

    def decide(self, proposal: Proposal, log_ratio: float, number: int) -> bool:
        """Decide on the proposal; log_ratio: of the sums of the weights, over all SNPs."""
        log_ratio += proposal.log_prior_ratio
        if number <= self.burn_in:
            turn = number / (SWEEPS_BETWEEN * (len(self.factor) - 1))
            self.log_steps[proposal.k] += (exp(min(log_ratio, 0.0)) - TARGET) / np.sqrt(1 + turn)
        accepted = log(proposal.u) < log_ratio
        self.accepted = float(accepted)
        if not accepted:
            self.direction[proposal.k] *= -1
        return accepted

    def state(self) -> dict[str, np.ndarray]:
        return {"log_steps": self.log_steps, "direction": self.direction, "accepted": np.array(self.accepted)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.log_steps, self.direction = state["log_steps"].copy(), state["direction"].copy()
        self.accepted = float(state["accepted"])


def shifted_shares(pi: np.ndarray, k: int, step: float) -> np.ndarray | None:
    """Shares with logit(pi_k) + step, the others in the same proportions; None where one is 0 or all of them."""
    if not 0.0 < pi[k] < 1.0 or log((1.0 - pi[k]) / pi[k]) - step > MAX_LOGIT:
        return None
    share = 1.0 / (1.0 + (1.0 - pi[k]) / pi[k] * exp(-step))
    moved = pi * ((1.0 - share) / (1.0 - pi[k]))
    moved[k] = share
    return moved if np.all(moved > 0.0) and share < 1.0 else None
