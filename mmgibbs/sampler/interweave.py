"""Interweaving of a covariance matrix with its effects (Yu & Meng 2011): after (theta, G), redraw G given the
standardised effects v.

With theta_l = L v_l and G = L L', L lower triangular, the data are linear in the elements of L, and

    p(L | v, y) is proportional to  N(y; W(L v), R)  p(G = L L')  prod_i |l_ii|^(k - i + 1)          i = 1 ... k

the last factor being the Jacobian of G -> L. Proposed by over-relaxation of the Gaussian part
(draws/over_relaxation.py), which leaves that part as it is, and so accepted with the ratio of the other two, whose
prior is IW(nu, S) in each block of G. L may be proposed with a negative diagonal: the sign of a column of L and of its
v are one and the same.

Nothing is standardised in fact: with L_new = M L the new effects are theta_l <- M theta_l, and the data are Gaussian in
M, which is I to begin with (equations/scaling.py); as L is fixed, it is the same proposal and the same ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.normal import MAX_NORMALS, normal
from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import INTERWEAVE, stream
from mmgibbs.draws.small_matrices import SINGULAR, cholesky
from mmgibbs.engines.base import Engine
from mmgibbs.engines.device_sweep import DeviceVariances, ScaledTerm, VariancePlan, accepted_name
from mmgibbs.models.covariance import CovarianceModel, count_elements
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.posterior.draw_names import matrix_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel


class CholeskyPrior(NamedTuple):
    """L of one matrix: its elements (c, j), j <= c, both in one block of G, and

    log p(G) + log Jacobian = exponents . log|l_ii| - tr(S G^-1) / 2
    """

    row: np.ndarray  # (elements,) int64 c
    column: np.ndarray  # (elements,) int64 j
    exponents: np.ndarray  # (k,)
    S: np.ndarray  # (k, k), 0 outside the blocks

    @property
    def elements(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.row.tolist(), self.column.tolist(), strict=True))


def cholesky_prior(covariance: CovarianceModel) -> CholeskyPrior:
    """Derive the prior of the elements of L from the inverse Wishart of each block of G."""
    k = len(covariance.start)
    S, exponents = np.zeros((k, k)), jacobian_exponents(covariance.blocks)
    for block in covariance.blocks:
        nu, S[np.ix_(block, block)] = covariance.inverse_wishart(block)
        exponents[list(block)] -= nu + len(block) + 1  # |G|^(-(nu + k + 1)/2), |G| = prod l_ii^2
    row, column = np.array(sorted((c, j) for b in covariance.blocks for c in b for j in b if j <= c), np.int64).T
    return CholeskyPrior(row.copy(), column.copy(), exponents, S)


def jacobian_exponents(blocks: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the powers of |l_ii| in the Jacobian of G -> L, (k,): k - i + 1 for component i of a block of k."""
    out = np.zeros(sum(map(len, blocks)))
    for block in blocks:
        out[list(block)] = np.arange(len(block), 0, -1)
    return out


class Interweaving:
    """G and theta of one term, given its v, the other effects and R. It says whether its proposal was accepted.

    G is the matrix of another step (covariances.TermCovariance), theta the engine's: nothing here is its own.
    """

    parameters: dict[str, Parameter] = {}

    def __init__(
        self, model: MixedModel, term: int, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        self.term, self.engine, self.matrices, self.key = term, engine, matrices, key
        self.covariance, self.name = model.covariance(term), matrix_name(term)
        self._prior = cholesky_prior(self.covariance.given())
        self.elements = self._prior.elements
        self.fact = f"interweaving_acceptance[{model.design.terms[term].name}]"
        self.can_launch = not model.design.terms[term].groups_fixed

    @property
    def prior(self) -> CholeskyPrior:
        """The prior at present: auxiliary variables move its S, which is diagonal."""
        given = self.matrices.prior(self.name, self.covariance)
        if given is self.covariance:
            return self._prior
        row, column, exponents, _ = self._prior
        return CholeskyPrior(row, column, exponents, given.prior.scale_matrix(len(given.start)))

    def __call__(self, number: int) -> dict[str, float]:
        G = self.matrices[self.name]
        prior = self.prior
        H, s = self.engine.scaling_products(self.term, self.elements)
        M, accepted = draw_scaling(prior, H, s, G, number, self.term, self.key)
        if accepted:
            self.engine.transform_term(self.term, M)
            moved = M @ G @ M.T
            self.matrices[self.name] = (moved + moved.T) / 2
        return {self.fact: float(accepted)}

    def add_to_plan(self, plan: VariancePlan) -> None:
        """Add this step to the plan: see resident.DeviceStep."""
        plan.scaled[self.term] = ScaledTerm(self.elements, self._prior.exponents)
        plan.values[accepted_name(self.term)] = (1,)

    def find_facts(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return the facts of a kept draw of a device."""
        return {self.fact: float(values[accepted_name(self.term)][0])}

    def launch(self, variances: DeviceVariances) -> None:
        """Launch this step: see resident.DeviceStep."""
        variances.launch_scaling(self.term)

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def draw_scaling(
    prior: CholeskyPrior, H: np.ndarray, s: np.ndarray, G: np.ndarray, number: int, term: int, key: tuple[int, int]
) -> tuple[np.ndarray, bool]:
    """M with L_new = M L by a Metropolis step on p(L | v, y), and whether it moved L (False: M is I).

    H (p, p), s (p,): the records' normal equations for the elements of M, at M = I. Where they are singular (fewer
    records than elements) L stays: whether they are depends on v and y alone, so that is a valid step too.
    """
    M = np.zeros(G.shape)
    moved = _draw_scaling(H, s, G, prior, M, number, stream(INTERWEAVE, term), *key)
    return (M, True) if moved else (np.eye(len(G)), False)


@kernel
def _draw_scaling(H, s, G, prior, proposal, number, stream, seed, chain):
    """Propose to scale L by M, written to `proposal` (k, k), zeros on entry; return True if it is accepted."""
    k, p = G.shape[0], H.shape[0]
    row, column, exponents, S = prior.row, prior.column, prior.exponents, prior.S
    factor, at, shift = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    L, moved_L, X = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
    if not (cholesky(H, factor, SINGULAR) and cholesky(G, L, SINGULAR)):
        return False
    now = _log_factors(L, exponents, S, X)
    number, stream, seed, chain = np.uint64(number), np.uint64(stream), np.uint64(seed), np.uint64(chain)
    # The Gaussian part is factor' (M - I) ~ N(at, I), at = factor^-1 s; it is 0 now.
    for a in range(p):
        for b in range(a):
            at[a] -= factor[a, b] * at[b]
        at[a] = (at[a] + s[a]) / factor[a, a]
    for a in range(p - 1, -1, -1):
        shift[a] = TOWARDS_MEAN * at[a] + NOISE * normal(number, np.uint64(0), stream, a, seed, chain)
        for b in range(a + 1, p):
            shift[a] -= factor[b, a] * shift[b]
        shift[a] /= factor[a, a]
    for a in range(p):
        proposal[row[a], column[a]] = shift[a] + (1.0 if row[a] == column[a] else 0.0)
    for a in range(k):
        for b in range(a + 1):
            for m in range(b, a + 1):
                moved_L[a, b] += proposal[a, m] * L[m, b]
    then = _log_factors(moved_L, exponents, S, X)
    u, _ = uniform_pair(number, np.uint64(1), stream, draw_word(np.uint64(0), np.uint64(0)), seed, chain)
    return np.log(u) < then - now


@kernel
def _log_factors(L, exponents, S, X):
    """sum_i exponents_i log|l_ii| - tr(S G^-1) / 2, G = L L': the trace is the sum over X = L^-1 of x_i' S x_i.

    X (k, k) is written over."""
    k = L.shape[0]
    total = 0.0
    for i in range(k):
        total += exponents[i] * np.log(np.abs(L[i, i]))
        for j in range(i + 1):
            t = 1.0 if i == j else 0.0
            for m in range(j, i):
                t -= L[i, m] * X[m, j]
            X[i, j] = t / L[i, i]
        for a in range(i + 1):
            for b in range(i + 1):
                total -= 0.5 * X[i, a] * S[a, b] * X[i, b]
    return total


def reason_not_interweaved(model: MixedModel, i: int) -> str | None:
    """Why G of random term i cannot be redrawn given v; None where it can."""
    term, covariance = model.design.terms[i], model.covariance(i)
    if covariance.fixed:
        return "its covariance matrix is fixed"
    if any(m.left is not None and m.left.term == term.name for m in model.design.markers):
        return "its variance is implied by that of SNP effects, with which it is scaled"
    if term.active is not None:
        active = term.active[: term.n_without_fixed_groups]
        if np.any(active.any(axis=1) != active.all(axis=1)):
            return "some effects of its levels are set to 0, which a change of scale would move"
    if i in model.design.n_scores:
        return "its loadings are drawn given the records and the scores of its levels"
    structured = covariance.structure is not None
    elements = len(covariance.start) if structured else count_elements([covariance])
    if elements > MAX_NORMALS:
        return f"its covariance matrix has {elements} elements to propose at once, needed at most {MAX_NORMALS}"
    return None


def terms_to_interweave(model: MixedModel, wanted: str | bool = "auto") -> tuple[int, ...]:
    """List the random terms whose G is redrawn given v. `wanted` is `sampler.interweave`: auto, true or false.

    auto means every term that can be: the step costs a sixth to a third of a sweep and gives two to twenty times the
    effective draws of G where animals have few records each (benchmarks/interweaving.py), most where heritability is
    low; where a level has hundreds of records and the chain mixes well without it, it gains nothing and loses that
    little.
    """
    if wanted is False:
        return ()
    return tuple(i for i in model.random_terms if reason_not_interweaved(model, i) is None)
