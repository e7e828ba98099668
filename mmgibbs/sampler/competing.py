"""A joint draw of the variances of two terms that compete (engines/competing.py), and of their effects, given the
sum s of both: it leaves every residual as it is.

G_a and G_p given all effects, one after the other, creep: where records hardly tell a from p, each matrix is held by
the effects that the other leaves. Here the effects of the levels C, which no relationship joins, are integrated out;
and the effects of the others either stay, or move with their standard deviations, as in interweaving (Yu & Meng 2011).
Of component t, which goes with m(t) of a,

    sd of a_m(t) times exp(delta),  sd of p_t times exp(eps),  effects a_m(t) outside C times exp(gamma)

by random walks with gamma = 0 and with gamma = delta, all correlations left alone. The orbit of a point under these
scalings has the density (Liu & Sabatti 2000), nu and q those of each matrix,

    p(G_a, G_p, effects outside C | s) exp((size_a + 1) delta + (size_p + 1) eps + n gamma)

n the levels of a outside C, size the size of the block of the component: the Jacobians of G -> D G D and of the
effects. The walk sees bins of levels; where the diagonals within a bin differ, all of it is one proposal, accepted by
the density of each level by itself (Liu 2001, section 9.4.3: the walk is reversible, as each step picks t anew).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.draws.normal import fill_normals, normal_pair
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import COMPETING, COMPETING_LEVEL, stream
from mmgibbs.draws.small_matrices import SINGULAR, cholesky
from mmgibbs.engines.base import HostState, refuse_singular
from mmgibbs.machine.kernel_options import ENTRY
from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.model.design import Design
from mmgibbs.model.shared_levels import SharedLevels, shared_levels
from mmgibbs.posterior.parameters import Parameter, matrix_name
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.interweave import reason_not_interweaved
from mmgibbs.sampler.mixed_model import MixedModel

ROUNDS = 2  # of scales and effects outside C, for one draw of those of C
STEPS = 60  # of the walk, for each component
STEP_SIZES = np.array([1.5, 5.0, 15.0])  # in units of 1 / sqrt(2 n), the error of log sd from n effects that are known
SD_A, SD_P, EFFECTS = 0, 1, 2  # rows of a point (3, k_p): delta, eps, gamma


class CompetingVariances:
    """G and theta of two terms, given the sum of their effects. It says how many steps of its walk were accepted.

    The matrices are those of other steps (covariances.TermCovariance), theta the engine's: nothing here is its own.
    """

    parameters: dict[str, Parameter] = {}

    def __init__(
        self,
        model: MixedModel,
        shared: SharedLevels,
        engine: HostState,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
    ):
        self.model, self.shared, self.engine, self.matrices, self.key = model, shared, engine, matrices, key
        self.levels = engine.competing_terms(shared)
        terms, self.terms = model.design.terms, (shared.a, shared.p)
        self.n_levels = [terms[i].n_levels for i in self.terms]
        self.fixed_prior = self._prior()
        self.fact = f"joint_draw_acceptance[{terms[shared.a].name}, {terms[shared.p].name}]"
        self.streams = [stream(purpose, shared.a * len(terms) + shared.p) for purpose in (COMPETING, COMPETING_LEVEL)]
        self.sizes = STEP_SIZES / np.sqrt(2 * len(self.levels))

    def __call__(self, number: int) -> dict[str, float]:
        levels, k, names = self.levels, len(self.levels.components), [matrix_name(i) for i in self.terms]
        theta = [self.engine.theta[i] for i in self.terms]
        levels.take(*theta)
        A, Q = (np.linalg.inv(self.matrices[name]) for name in names)
        normals, accepted = self._normals(levels.outside_code, ROUNDS * k, number), 0
        for turn in range(ROUNDS):
            at, steps = self._scales(A, Q, number, turn)
            accepted += steps
            sd_a, sd_p = np.ones(len(A)), np.exp(at[SD_P])
            sd_a[levels.components] = np.exp(at[SD_A])
            A, Q = A / sd_a[:, None] / sd_a, Q / sd_p[:, None] / sd_p
            for name, sd in zip(names, (sd_a, sd_p), strict=True):
                self.matrices[name] = self.matrices[name] * sd[:, None] * sd
            failed = levels.sweep(A, Q, normals[:, turn * k : (turn + 1) * k])
            if failed >= 0:
                refuse_singular(self.engine.equations, self.terms[0], failed)
        levels.draw(self._normals(levels.code, k, number))
        for term, effects in zip(self.terms, levels.effects(*theta), strict=True):
            self.engine.put_theta(term, effects)
        return {self.fact: accepted / (ROUNDS * STEPS * k)}

    def _scales(self, A: np.ndarray, Q: np.ndarray, number: int, turn: int) -> tuple[np.ndarray, int]:
        """A point (3, k_p) of the orbit, and how many steps of the walk there were accepted; effects outside C move."""
        levels, given = self.levels, (A, Q, *(self._prior() if self.matrices.priors else self.fixed_prior))
        sums, at = levels.sums(), np.zeros((3, len(levels.components)))
        steps = STEPS * len(levels.components)
        first, stream = turn * (steps + 1), self.streams[0]
        accepted = walk(at, sums, *given, self.sizes, first, steps, number, stream, *self.key)
        end = weights(at, sums.components, A, Q)
        if not levels.alike and accepted:
            begin = weights(np.zeros_like(at), sums.components, A, Q)
            ratio = levels.of_levels(*end) - levels.of_levels(*begin) - of_bins(*end, sums) + of_bins(*begin, sums)
            u, _ = uniform_pair(number, first + steps, stream, draw_word(1, 0), *self.key)
            if not np.log(u) < ratio:
                at, end, accepted = np.zeros_like(at), begin, 0
        levels.expect(end, np.exp(at[EFFECTS]))
        return at, accepted

    def _normals(self, code: np.ndarray, each: int, number: int) -> np.ndarray:
        """(levels, each)"""
        out = np.empty((len(code), each))
        fill_normals(out, number, code, self.streams[1], *self.key)
        return out

    def _prior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S of both inverse Wisharts as they are now, and (3, k_p) what a unit of each row of a point adds to the log
        density beside the sums: p(G) under G -> D G D has exp(-nu delta), q effects of that sd exp(-q delta)."""
        matrices, m = self.matrices, self.levels.components
        (nu_a, S_a), (nu_p, S_p) = (
            prior_of(matrices.priors.get(matrix_name(i), self.model.covariance(i))) for i in self.terms
        )
        q_a, q_p = self.n_levels
        return S_a, S_p, np.stack([-nu_a[m] - q_a, -nu_p - q_p, np.full(m.size, float(q_a - len(self.levels)))])

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def prior_of(covariance: CovarianceModel) -> tuple[np.ndarray, np.ndarray]:
    """nu (k,) of the block of each component, and S (k, k), 0 outside the blocks."""
    k = len(covariance.start)
    nu, S = np.empty(k), np.zeros((k, k))
    for block in covariance.blocks:
        nu[list(block)], S[np.ix_(block, block)] = covariance.prior(block)
    return nu, S


@njit(cache=True, **ENTRY)
def weights(at, components, A, Q):
    """P_a and P_p (k_p, k_p) and B (k_p, k_a + 2 k_p) at a point (3, k_p): P = kappa^a P_a + kappa^p P_p and b = B z
    with z = (r, g, d) as they are now."""
    k, k_a = components.size, len(A)
    P_a, P_p, B = np.empty((k, k)), np.empty((k, k)), np.empty((k, k_a + 2 * k))
    for t in range(k):
        m = components[t]
        for j in range(k_a):
            B[t, j] = -A[m, j] * np.exp(-at[SD_A, t])
        for u in range(k):
            j = components[u]
            B[t, j] *= np.exp(at[EFFECTS, u] - at[SD_A, u])
            P_a[t, u] = A[m, j] * np.exp(-at[SD_A, t] - at[SD_A, u])
            P_p[t, u] = Q[t, u] * np.exp(-at[SD_P, t] - at[SD_P, u])
            B[t, k_a + u] = P_p[t, u]
            B[t, k_a + k + u] = P_p[t, u] * (1.0 - np.exp(at[EFFECTS, u]))
    return P_a, P_p, B


@njit(cache=True, **ENTRY)
def log_density(at, sums, A, Q, prior_a, prior_p, linear):
    """Of a point (3, k_p) of the orbit, up to a constant, as `of_bins` has it."""
    k, k_a = sums.components.size, len(A)
    P_a, P_p, B = weights(at, sums.components, A, Q)
    total = 0.0
    sd, scale = np.ones(k_a), np.ones(k_a)
    for t in range(k):
        sd[sums.components[t]], scale[sums.components[t]] = np.exp(at[SD_A, t]), np.exp(at[EFFECTS, t])
        for row in range(3):
            total += linear[row, t] * at[row, t]
    for i in range(k_a):
        for j in range(k_a):
            squares = prior_a[i, j] + scale[i] * scale[j] * sums.squares_a[i, j]
            total -= 0.5 * A[i, j] / (sd[i] * sd[j]) * squares
    for t in range(k):
        to_t = 1.0 - scale[sums.components[t]]
        for u in range(k):
            to_u = 1.0 - scale[sums.components[u]]
            of_p = sums.squares_p[t, u] + to_t * sums.squares_p[k + t, u]
            of_p += to_u * (sums.squares_p[t, k + u] + to_t * sums.squares_p[k + t, k + u])
            of_p += sums.cross[t, u] + to_t * sums.cross[k + t, u] + sums.cross[u, t] + to_u * sums.cross[k + u, t]
            total -= 0.5 * P_p[t, u] * (prior_p[t, u] + of_p - sums.own[t, u])
    return total + of_bins(P_a, P_p, B, sums)


@njit(cache=True, **ENTRY)
def of_bins(P_a, P_p, B, sums):
    """sum_C (b'P^-1 b - log|P|) / 2, levels of a bin with its diagonals; -inf where a P is not positive definite."""
    k, total = len(P_a), 0.0
    P, L, X = np.empty((k, k)), np.empty((k, k)), np.empty(B.shape)
    for i in range(len(sums.n)):
        for t in range(k):
            for u in range(k):
                P[t, u] = sums.kappa[i, 0] * P_a[t, u] + sums.kappa[i, 1] * P_p[t, u]
        if not cholesky(P, L, SINGULAR):
            return -np.inf
        for t in range(k):  # X = L^-1 B
            total -= sums.n[i] * np.log(L[t, t])
            for v in range(B.shape[1]):
                X[t, v] = B[t, v]
                for u in range(t):
                    X[t, v] -= L[t, u] * X[u, v]
                X[t, v] /= L[t, t]
            for v in range(B.shape[1]):
                for w in range(B.shape[1]):
                    total += 0.5 * X[t, v] * sums.products[i, v, w] * X[t, w]
    return total


@njit(cache=True, **ENTRY)
def walk(at, sums, A, Q, prior_a, prior_p, linear, sizes, first, steps, number, stream, seed, chain):
    """Move `at` (3, k_p), which begins at 0, by Metropolis steps; how many were accepted."""
    k, accepted = sums.components.size, 0
    now, proposal = log_density(at, sums, A, Q, prior_a, prior_p, linear), at.copy()
    for step in range(steps):
        of_a, of_p = normal_pair(number, first + step, stream, 0, seed, chain)
        which, u = uniform_pair(number, first + step, stream, draw_word(1, 0), seed, chain)
        kind = int(which * 2 * sizes.size * k)
        t, size = kind // (2 * sizes.size), sizes[kind // 2 % sizes.size]
        proposal[:] = at
        proposal[SD_A, t] += size * of_a
        proposal[SD_P, t] += size * of_p
        if kind % 2:
            proposal[EFFECTS, t] += size * of_a
        then = log_density(proposal, sums, A, Q, prior_a, prior_p, linear)
        if np.log(u) < then - now:
            at[:], now, accepted = proposal, then, accepted + 1
    return accepted


def reason_not_joint(model: MixedModel, i: int) -> str | None:
    """Why the variances of random term i cannot be drawn together with another's; None where they can."""
    term, covariance = model.design.terms[i], model.covariance(i)
    if covariance.unit:
        return "a variance of it is 1 by convention"
    if term.groups_fixed:
        return "its unknown-parent groups are fixed"
    if term.active is not None:
        return "some effects of its levels are set to 0"
    if term.relationship.dense is not None:
        return "its relationships are dense"
    return reason_not_interweaved(model, i)


def competing_terms(model: MixedModel, wanted: bool = True) -> tuple[SharedLevels, ...]:
    """The pairs of random terms to draw together. `wanted` is `sampler.joint_variances`.

    Of two, a is the one with relatives, or else the one that comes first. Nothing is drawn together unless it is asked
    for: a draw costs as much as a sweep or more, and pays only where records hardly tell the terms apart
    (tests/bench/competing_terms.py).
    """
    if not wanted:
        return ()
    terms = model.design.terms
    able = [i for i in model.random_terms if reason_not_joint(model, i) is None]
    able.sort(key=lambda i: not terms[i].relationship.related)
    pairs = [(a, p) for n, a in enumerate(able) for p in able[n + 1 :]]
    found = (shared_levels(model.design, a, p) or shared_levels(model.design, p, a) for a, p in pairs)
    return tuple(shared for shared in found if shared is not None)


def bytes_drawn_together(design: Design, shared: SharedLevels) -> int:
    """Of one pair while a chain is at work: float64 copies of both effects, and what is kept of each level, K^-1 of a
    (some eight elements a level of a pedigree) in parts included."""
    a, p = (design.terms[i] for i in (shared.a, shared.p))
    k = p.n_components
    of_level = 2 * a.n_components + 4 * k + 2 * k * k + ROUNDS * k + 2 * 12
    return 8 * (a.n_levels * of_level + p.n_levels * 4 * k)


def reasons_not_competing(model: MixedModel) -> list[str]:
    """Why there are no pairs, for the user."""
    names = {i: model.design.terms[i].name for i in model.random_terms}
    why = {i: reason_not_joint(model, i) for i in names}
    out = [f"term '{names[i]}': {reason}" for i, reason in why.items() if reason is not None]
    if sum(reason is None for reason in why.values()) >= 2 or len(names) <= 1:
        out.append(
            "no two random effects compete: needed two on the same traits, where each level of one goes with one "
            "level of the other, such as an animal and its permanent environment"
        )
    return out
