"""Hierarchical logit, 500 groups of 500 observations: slice sampling against random-walk Metropolis, in one process.

Mahani (2012) reports 2 s a block of coefficients in serial code and 20 ms on a GTX 580, on data of his own; ours are
simulated with p = 10 predictors and an intercept. The baseline is compiled and tuned as well: the same packed columns,
the same vector exponential, one logarithm for 512 factors, proposals adapted to the best acceptance in the burn-in,
0.44 a coordinate or 0.234 a group (proposals there from the curvature at the group's mode). Both share the draws of
population and covariance. Chains, one for each sampler, take turns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mmgibbs.draws.elementary import log
from mmgibbs.draws.exponential import exponential
from mmgibbs.draws.normal import normal
from mmgibbs.draws.purpose import REGRESSION_ACCEPT, REGRESSION_MOMENTUM, stream
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.hierarchical.grouped import Groups
from mmgibbs.regressions.hierarchical.likelihood import bounded_exp, linear_predictor
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceOptions, HierarchicalSliceSampler
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

PUBLISHED = "2 s serial, 20 ms GTX 580 a block"
PROPOSAL, ACCEPT = stream(REGRESSION_MOMENTUM, 0), stream(REGRESSION_ACCEPT, 0)
TURN = 5  # sweeps of one sampler before the next takes over
STEPS = 8  # of a group in a sweep of the walk of groups
FACTORS = 512  # of 1 ... 2, multiplied before one logarithm


@dataclass(frozen=True)
class HierarchicalRow:
    setting: str
    sampler: str
    published: str
    seconds_per_sweep: float
    nanoseconds_per_term: float  # a term: one observation, one coordinate
    ess_per_sweep: float  # median over the coefficients of all groups
    ess_per_second: float
    least_ess_per_second: float
    population_ess_per_second: float  # median over Delta
    times_the_walk_of_groups: float
    times_the_walk_of_coordinates: float


@kernel(fastmath={"reassoc", "contract", "nsz"})
def moved_loss(psi, x, d, moved):
    """sum log(1 + exp(psi + x d)), and moved = psi + x d."""
    total = 0.0
    n, factors = np.uint64(psi.size), np.uint64(FACTORS)
    for first in range(np.uint64(0), n, factors):
        product, positive = 1.0, 0.0
        for r in range(first, min(first + factors, n)):
            z = psi[r] + x[r] * d
            moved[r] = z
            positive += z if z > 0.0 else 0.0
            product *= 1.0 + bounded_exp(-abs(z))
        total += positive + log(product)
    return total


@kernel
def coordinate_walk(groups, Q, mean, scale, beta, accepted, sweep, stream, accept, seed, chain):
    """Metropolis steps of each coordinate of every group: N(0, scale^2) proposals; accepted (G, D) counts."""
    D = beta.shape[1]
    for i in range(beta.shape[0]):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        psi, moved = np.empty(n), np.empty(n)
        linear_predictor(block, beta[i], groups.centre, groups.factor, psi)
        here = moved_loss(psi, block[0], 0.0, moved)
        for j in range(D):
            d = scale[i, j] * normal(sweep, i, stream, j, seed, chain)
            there = moved_loss(psi, block[j], d, moved)
            pull = -0.5 * Q[j, j] * d
            for m in range(D):
                pull -= Q[j, m] * (beta[i, m] - mean[i, m])
            if d * (groups.cross[i, 0, j] + pull) - (there - here) > -exponential(sweep, i, accept + j, 0, seed, chain):
                beta[i, j] += d
                psi, moved, here = moved, psi, there
                accepted[i, j] += 1


@kernel
def group_walk(groups, Q, mean, scale, roots, beta, accepted, sweep, stream, accept, seed, chain):
    """One Metropolis step of all coefficients of every group: proposals scale_i root_i z; roots (G, D, D), accepted
    (G,)."""
    D = beta.shape[1]
    z, step = np.empty(D), np.empty(D)
    for i in range(beta.shape[0]):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        psi, moved, spare = np.empty(n), np.empty(n), np.empty(n)
        linear_predictor(block, beta[i], groups.centre, groups.factor, psi)
        here = moved_loss(psi, psi, 0.0, spare)
        for k in range(STEPS):
            for j in range(D):
                z[j] = normal(sweep, i, stream + k, j, seed, chain)
            gain = 0.0
            for j in range(D):
                step[j] = 0.0
                for m in range(D):
                    step[j] += scale[i] * roots[i, j, m] * z[m]
                gain += groups.cross[i, 0, j] * step[j]
            for j in range(D):
                for m in range(D):
                    gain -= step[j] * Q[j, m] * (beta[i, m] - mean[i, m] + 0.5 * step[m])
            linear_predictor(block, step, groups.centre, groups.factor, moved)
            there = moved_loss(psi, moved, 1.0, spare)
            if gain - (there - here) > -exponential(sweep, i, accept + k, 0, seed, chain):
                beta[i] += step
                accepted[i] += 1.0 / STEPS
                psi, spare, here = spare, psi, there


class CoordinateWalk:
    """Steps adapted to an acceptance of 0.44 by Robbins & Monro during the burn-in."""

    target = 0.44

    def __init__(self, sampler: HierarchicalSliceSampler):
        self.groups, self.burn_in = sampler.groups, 0
        self.log_scale: np.ndarray = np.log(2.4 / np.sqrt(np.asarray(sampler.information) + 1.0))
        self.accepted: np.ndarray = np.zeros(self.log_scale.shape)

    def __call__(
        self, beta: np.ndarray, Q: np.ndarray, mean: np.ndarray, width: np.ndarray, sweep: int, keys: Keys
    ) -> None:
        self.accepted[:] = 0
        self.walk(beta[0], Q[0], mean[0], sweep, (keys.seed, keys.chains[0]))
        if sweep <= self.burn_in:
            self.log_scale += (self.accepted - self.target) / sweep**0.6

    def walk(self, beta: np.ndarray, Q: np.ndarray, mean: np.ndarray, sweep: int, key: tuple[int, int]) -> None:
        coordinate_walk(
            self.groups, Q, mean, np.exp(self.log_scale), beta, self.accepted, sweep, PROPOSAL, ACCEPT, *key
        )


class GroupWalk(CoordinateWalk):
    """Proposals from the curvature at each group's mode under a wide prior, their size adapted to an acceptance of
    0.234."""

    target = 0.234

    def __init__(self, sampler: HierarchicalSliceSampler):
        self.groups, self.burn_in = sampler.groups, 0
        D = sampler.D
        self.roots = np.array([root_at_mode(self.groups, i, D) for i in range(len(self.groups.ptr) - 1)])
        self.log_scale = np.full(len(self.roots), np.log(2.38 / np.sqrt(D)))
        self.accepted = np.zeros(len(self.roots))

    def walk(self, beta: np.ndarray, Q: np.ndarray, mean: np.ndarray, sweep: int, key: tuple[int, int]) -> None:
        group_walk(
            self.groups, Q, mean, np.exp(self.log_scale), self.roots, beta, self.accepted, sweep, PROPOSAL, ACCEPT, *key
        )


def root_at_mode(groups: Groups, i: int, D: int) -> np.ndarray:
    """A with A A' the inverse curvature of the log posterior of group i at its mode, prior N(0, I)."""
    a, b = groups.ptr[i : i + 2]
    X = (groups.columns[D * a : D * b].reshape(D, -1).T - groups.centre) * groups.factor
    beta = np.zeros(D)
    for _ in range(12):
        p = 1 / (1 + np.exp(-X @ beta))
        H = X.T @ (X * (p * (1 - p))[:, None]) + np.eye(D)
        beta += np.linalg.solve(H, groups.cross[i, 0] - X.T @ p - beta)
    return np.linalg.inv(np.linalg.cholesky(H)).T


def simulate(n_groups: int, n_each: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (n, p) standard normal, labels y (n,), groups (n,): beta_i ~ N(0, 0.25 I)."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), n_each)
    X, beta = rng.standard_normal((len(groups), p)), 0.5 * rng.standard_normal((n_groups, p + 1))
    eta = (X * beta[groups, :p]).sum(1) + beta[groups, p]
    return X, (rng.random(len(groups)) < 1 / (1 + np.exp(-eta))).astype(np.int8), groups


def row(
    n_groups: int = 500,
    n_each: int = 500,
    p: int = 10,
    sweeps: int = 600,
    burn_in: int = 400,
    threads: int = 1,
    seed: int = 1,
) -> list[HierarchicalRow]:
    """A row for slice sampling in double and single precision and for each walk; `sweeps` after the burn-in, in turns
    of 50."""
    from arviz_stats.base.array import array_stats

    X, y, groups = simulate(n_groups, n_each, p, seed)
    arrays, keys = Host(threads), Keys(seed, (0,))
    data = RegressionData(read_predictors(X), y, "y", groups)
    make = lambda **options: HierarchicalSliceSampler(data, HierarchicalSliceOptions(method="slice", **options), arrays)
    samplers = {
        "slice": make(),
        "slice, single": make(precision="single"),
        "walk of coordinates": make(),
        "walk of groups": make(),
    }
    for name, walk in (("walk of coordinates", CoordinateWalk), ("walk of groups", GroupWalk)):
        visit = walk(samplers[name])
        visit.burn_in = burn_in
        samplers[name].update_groups = visit
    states = {name: sampler.start(keys) for name, sampler in samplers.items()}
    spent = dict.fromkeys(samplers, 0.0)
    kept: dict[str, list[np.ndarray]] = {n: [] for n in samplers}
    population: dict[str, list[np.ndarray]] = {n: [] for n in samplers}
    fastest = dict.fromkeys(samplers, np.inf)
    for first in range(1, burn_in + sweeps + 1, TURN):
        for name, sampler in samplers.items():
            for sweep in range(first, min(first + TURN, burn_in + sweeps + 1)):
                started = time.perf_counter()
                states[name] = sampler.step(states[name], sweep, keys)
                seconds = time.perf_counter() - started
                if sweep > burn_in:
                    spent[name] += seconds
                    fastest[name] = min(fastest[name], seconds)
                    kept[name].append(states[name]["beta"][0].ravel())
                    population[name].append(states[name]["population"][0].ravel())
    ess = lambda draws: np.array([float(array_stats.ess(column[None])) for column in np.array(draws).T])
    some = np.random.default_rng(0).choice(n_groups * (p + 1), min(400, n_groups * (p + 1)), replace=False)
    figures = {name: (ess(np.array(kept[name])[:, some]), ess(population[name])) for name in samplers}
    per_second = {name: np.median(figures[name][0]) / sweeps / fastest[name] for name in samplers}
    setting = (
        f"hierarchical logit, {n_groups} groups x {n_each}, p = {p} and an intercept, {threads} "
        f"thread{'s' * (threads > 1)}"
    )
    return [
        HierarchicalRow(
            setting,
            name,
            PUBLISHED,
            fastest[name],
            1e9 * fastest[name] / (len(y) * (p + 1)),
            float(np.median(figures[name][0]) / sweeps),
            float(per_second[name]),
            float(figures[name][0].min() / sweeps / fastest[name]),
            float(np.median(figures[name][1]) / sweeps / fastest[name]),
            float(per_second[name] / per_second["walk of groups"]),
            float(per_second[name] / per_second["walk of coordinates"]),
        )
        for name in samplers
    ]
