"""Simulation-based calibration (Talts et al. 2018): parameters from the prior, records given them, a chain on the
records. The rank of each true value among thinned draws is uniform.

A flat prior is drawn from between bounds, and draws beyond these are left out: what stays is the posterior under the
bounded prior. Flat location effects may have any true values, as nothing but these themselves depends on them.

Truth and records come from NumPy and SciPy, the incidence and relationship matrices of `reference.dense`.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from helpers.goodness import transform_z
from reference import dense, models
from scipy import stats
from scipy.stats import invwishart

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models import priors
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks, full_block
from mmgibbs.models.design import Design
from mmgibbs.models.families import Categories, Count, Interval
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.markers.joint import JointMarkerEffects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

FALSE_ALARM = 1e-3


class Length(NamedTuple):
    """Data sets, and of each chain its kept draws."""

    sets: int = 60
    draws: int = 20
    thin: int = 7
    burn_in: int = 60


def uniforms(case, length, seed=1):
    """(sets, m) values that should be uniform. case: draw(rng) -> (truth (m,), records); sample(records, length, key)
    -> (draws, m); within(draws) -> (draws,) bool, those that the bounded prior allows. A set without such draws gives
    uniform values, whatever the sampler does: most sets must have some.
    """
    rng, out, n_empty = np.random.default_rng(seed), [], 0
    for i in range(length.sets):
        truth, records = case.draw(rng)
        draws = np.array(case.sample(records, length, (seed, i)))
        draws = draws[case.within(draws)]
        n_empty += len(draws) == 0
        below, ties = np.sum(draws < truth, axis=0), np.sum(draws == truth, axis=0)  # 0 in both
        out.append((below + rng.uniform(size=truth.size) * (ties + 1)) / (len(draws) + 1))
    assert n_empty <= length.sets // 4, f"{n_empty} of {length.sets} data sets have no draws"
    return np.array(out)


def p_value(u):
    """Of the largest departure of any column (m) from U(0, 1), times their number: see goodness.transform_z."""
    z = np.array([transform_z(column) for column in u.T])
    z[:, 1:] = np.abs(z[:, 1:])  # the first, of the largest distance from the distribution, has an upper tail alone
    return min(1.0, 2 * stats.norm.sf(z.max()) * z.size)


def spoil(monkeypatch, owner, name, right, wrong):
    """A function of a module, or a method of a class, with one piece of its source replaced."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    assert source.count(right) == 1, f"found {right!r} {source.count(right)} times in {name}, needed once"
    module = owner if inspect.ismodule(owner) else sys.modules[owner.__module__]
    names = dict(vars(module))
    exec(compile(source.replace(right, wrong), f"<mutant of {name}>", "exec"), names)
    monkeypatch.setattr(owner, name, names[name])


def root(M):
    """A root of a matrix that may be singular."""
    values, vectors = np.linalg.eigh(M)
    return vectors * np.sqrt(np.maximum(values, 0.0))


# Priors of covariance matrices: draw(rng), and `covariance`, the program's


@dataclass(frozen=True)
class Wishart:
    """IW(df, scale) of each block."""

    df: float
    scale: np.ndarray
    diagonal: bool = False
    unit: tuple[int, ...] = ()  # components whose variance is 1; correlated with others, of two components at most

    def draw(self, rng):
        k = len(self.scale)
        if self.unit:
            return self._with_unit_variance(rng)
        if self.diagonal:
            return np.diag(np.diag(self.scale) / rng.chisquare(self.df, k))
        return invwishart.rvs(self.df, self.scale, random_state=rng).reshape(k, k)

    def _with_unit_variance(self, rng):
        """IW restricted to R_cc = 1: R_cc, then the others given it (Korsgaard, Andersen & Sorensen 1999)."""
        k, c, S = len(self.scale), list(self.unit), self.scale
        f = [i for i in range(k) if i not in c]
        R_cc = np.eye(len(c))
        if len(c) == 2:
            r, n = np.linspace(-0.999, 0.999, 4001), len(f)
            log_p = -0.5 * (self.df - n + 3) * np.log(1 - r**2)
            log_p -= 0.5 * (S[c[0], c[0]] + S[c[1], c[1]] - 2 * r * S[c[0], c[1]]) / (1 - r**2)
            p = np.exp(log_p - log_p.max())
            R_cc[0, 1] = R_cc[1, 0] = rng.choice(r, p=p / p.sum())
        R = np.eye(k)
        R[np.ix_(c, c)] = R_cc
        if f:
            W, M = S[np.ix_(c, c)], np.linalg.solve(S[np.ix_(c, c)], S[np.ix_(c, f)])
            D = invwishart.rvs(self.df, S[np.ix_(f, f)] - S[np.ix_(f, c)] @ M, random_state=rng).reshape(len(f), -1)
            B = M + root(np.linalg.inv(W)) @ rng.standard_normal(M.shape) @ root(D).T
            R[np.ix_(c, f)], R[np.ix_(f, c)] = R_cc @ B, (R_cc @ B).T
            R[np.ix_(f, f)] = D + B.T @ R_cc @ B
        return R

    @property
    def covariance(self):
        k = len(self.scale)
        blocks = diagonal_blocks(k) if self.diagonal else full_block(k)
        is_fixed, prior = self.unit == tuple(range(k)) and k == 1, priors.InverseWishart(self.df, self.scale)
        return CovarianceModel(np.eye(k), is_fixed, blocks, prior, unit=self.unit)


@dataclass(frozen=True)
class Flat:
    """A variance uniform up to a bound."""

    highest: float

    def draw(self, rng):
        return rng.uniform(0, self.highest, (1, 1))

    @property
    def covariance(self):
        return CovarianceModel(np.eye(1), False, full_block(1))


@dataclass(frozen=True)
class HalfT:
    """Standard deviations half-t (Huang & Wand 2013)."""

    nu: float
    A: np.ndarray

    def draw(self, rng):
        k, a = len(self.A), 1 / rng.gamma(0.5, self.A**2)
        return invwishart.rvs(self.nu + k - 1, np.diag(2 * self.nu / a), random_state=rng).reshape(k, k)

    @property
    def covariance(self):
        k = len(self.A)
        return CovarianceModel(np.eye(k), False, full_block(k), prior=priors.HalfT(self.nu, self.A))


class UniformHeritability:
    def draw(self, rng):
        h2 = rng.uniform()
        return np.array([[h2 / (1 - h2)]])

    covariance = CovarianceModel(np.eye(1), False, full_block(1), prior=priors.UniformHeritability())


@dataclass(frozen=True)
class Structured:
    """G of a structure; drawn: rng -> G."""

    structure: object
    drawn: Callable

    def draw(self, rng):
        return self.drawn(rng)

    @property
    def covariance(self):
        k = self.structure.k
        return CovarianceModel(np.eye(k), False, full_block(k), structure=self.structure)


# Kinds of traits: observe(rng, values (n,), seen (n,)) -> (values as the sampler takes them, response, cuts)


@dataclass(frozen=True)
class Classes:
    """K categories; t_2 ... uniform up to `highest`."""

    K: int = 2
    highest: float = 3.0

    def observe(self, rng, trait, y, seen):
        cuts = np.sort(rng.uniform(0, self.highest, self.K - 2))
        category = np.where(seen, np.searchsorted(np.append(0.0, cuts), y), -1).astype(np.int16)
        response = Categories(trait, tuple("abcdef"[: self.K]), category)
        if np.any(np.bincount(category[seen], minlength=self.K) == 0):
            return None, None, None  # each has to occur: all holds given that
        return response.start(), response, cuts


class Bounds:
    """Every third record exact, every third known to be higher than a bound, or to be lower, the others in an
    interval."""

    def observe(self, rng, trait, y, seen):
        number, step = np.arange(y.size), np.floor(y)
        end = 0.4 * (number % 2)
        lower = np.choose(number % 3, [y, np.where(y > end, end, -np.inf), step])
        upper = np.choose(number % 3, [y, np.where(y > end, np.inf, end), step + 1])
        response = Interval(trait, np.where(seen, lower, np.nan), np.where(seen, upper, np.nan))
        return response.start(), response, np.zeros(0)


class Counts:
    def observe(self, rng, trait, y, seen):
        exposure = 0.5 + np.arange(y.size) % 3
        count = np.where(seen, rng.poisson(exposure * np.exp(np.clip(y, None, 20))), np.nan)
        response = Count(trait, count, exposure)
        return response.start(), response, np.zeros(0)


@dataclass(frozen=True)
class Snps:
    """SNP effects. terms: of the design; x (p, n) what a record meets; drawn: (rng, p) -> (effects (p, T),
    hyperparameters); named: these of the draws of a chain."""

    terms: tuple
    x: np.ndarray
    drawn: Callable
    named: Callable


@dataclass(frozen=True)
class Mixed:
    """A mixed model. priors: term -> prior of G; residual: prior of R, or of R of each class of records; kinds: traits
    that are not normal; rho: term -> (bounds of its parameters, K given them)."""

    design: Design
    priors: dict
    residual: object
    kinds: dict = field(default_factory=dict)
    rho: dict = field(default_factory=dict)
    snps: Snps | None = None
    interweave: tuple[int, ...] = ()
    engine: str = "serial"
    of_record: np.ndarray | None = None  # class of each record

    @property
    def residuals(self):
        return self.residual if isinstance(self.residual, tuple) else (self.residual,)

    @cached_property
    def _incidence(self):
        return [dense.incidence(term, self.design.n_traits) for term in self.design.terms]

    @cached_property
    def _roots(self):
        related = [i for i in self.priors if i not in self.rho]
        return {i: root(np.linalg.inv(dense.relationship_inverse(self.design.terms[i]))) for i in related}

    def draw(self, rng):
        while True:
            drawn = self._draw(rng)
            if drawn is not None:
                return drawn

    def _draw(self, rng):
        design, G, rho, theta = self.design, {}, {}, []
        n, T = design.y.shape
        R = [prior.draw(rng) for prior in self.residuals]
        of_record = np.zeros(n, int) if self.of_record is None else self.of_record
        e = np.einsum("rtu,ru->rt", np.array([root(r) for r in R])[of_record], rng.standard_normal((n, T)))
        y = e / np.sqrt(design.weight)[:, None]
        for i, (term, W) in enumerate(zip(design.terms, self._incidence, strict=True)):
            values = rng.standard_normal((term.n_levels, term.n_components))
            if i in self.priors:
                K = self._roots.get(i)
                if i in self.rho:
                    bounds, correlate = self.rho[i]
                    rho[i] = rng.uniform(*np.transpose(bounds))
                    K = root(correlate(rho[i]))
                G[i] = self.priors[i].draw(rng)
                values = K @ values @ root(G[i]).T
            elif term.prior_precision is not None:
                values = values @ root(np.linalg.inv(term.prior_precision)).T
            theta.append(values)
            y = y + W @ values.ravel()
        of_snps, a = [], np.zeros((0, T))
        if self.snps is not None:
            a, of_snps = self.snps.drawn(rng, len(self.snps.x))
            y = y + self.snps.x.T @ a
        seen, responses, cuts = ~np.isnan(design.y), [], []
        for t, kind in self.kinds.items():
            values, response, own = kind.observe(rng, t, y[:, t], seen[:, t])
            if response is None:
                return None
            y[:, t] = values
            responses.append(response)
            cuts.append(own)
        truth = self._ranked(G, np.array(R), rho, theta, cuts, a, of_snps)
        return truth, (np.where(seen, y, np.nan), tuple(responses))

    def _ranked(self, G, R, rho, theta, cuts, a, of_snps):
        """Free elements of the matrices, correlations, cuts, effects of the first and last level, sizes of all (not
        where they are flat: of those nothing but differences from the truth is calibrated), SNP effects."""
        out = []
        for matrix, prior in [*((G[i], p) for i, p in self.priors.items()), *zip(R, self.residuals, strict=True)]:
            of = prior.covariance
            block_of = np.argmax([np.isin(np.arange(len(matrix)), block) for block in of.blocks], axis=0)
            free = [
                (i, j)
                for i, j in zip(*np.tril_indices(len(matrix)), strict=True)
                if block_of[i] == block_of[j] and not (i == j and i in of.unit)
            ]
            out += [matrix[place] for place in free]
        out += [x for i in self.rho for x in rho[i]] + [x for own in cuts for x in own]
        out += [x for values in theta for x in (*values[0], *values[-1])]
        flat = [t.kind == "fixed" and t.prior_precision is None for t in self.design.terms]
        out += [np.sum(values**2) for values, skip in zip(theta, flat, strict=True) if not skip]
        return np.array([*out, *a[:2].ravel(), *np.sum(a**2, axis=0), *of_snps])

    def within(self, draws):
        """Flat variances and cuts are the parameters that have bounds."""
        matrices = [*self.priors.values(), *self.residuals]
        inside, at = np.ones(len(draws), bool), 0
        for prior in matrices:
            if isinstance(prior, Flat):
                inside &= draws[:, at] < prior.highest
            k = len(prior.covariance.start)
            at += k if len(prior.covariance.blocks) == k else k * (k + 1) // 2
            at -= len(prior.covariance.unit)
        at += sum(len(bounds) for bounds, _ in self.rho.values())
        for kind in self.kinds.values():
            K = getattr(kind, "K", 2)
            if K > 2:
                at += K - 2
                inside &= draws[:, at - 1] < kind.highest
        return inside

    def model(self, y, responses):
        design = replace(self.design, y=y, responses=responses)
        G = tuple(self.priors[i].covariance if i in self.priors else None for i in range(len(design.terms)))
        R = tuple(prior.covariance for prior in self.residuals)
        if self.snps is not None:
            design = replace(design, markers=self.snps.terms)
        if self.of_record is None:
            return MixedModel(design, G, R[0])
        classes = tuple("abc"[: len(R)])
        pattern, patterns, of_pattern = fold_classes(design.pattern, design.patterns, self.of_record, len(R))
        design = replace(design, pattern=pattern, patterns=patterns, pattern_class=of_pattern)
        return MixedModel(replace(design, residual_classes=classes), G, ResidualModel(R, classes))

    def sample(self, records, length, key):
        model = self.model(*records)
        equations = structured_equations(model.design, partition(model.design))
        engine = EngineChoice(self.engine, tolerance=TOLERANCES["gibbs"]).build(equations)
        schedule = Schedule(length.burn_in, length.draws * length.thin, length.thin, interweave=self.interweave)
        chain = Chain(model, engine, schedule, key)
        step = next((s for s in chain.steps if isinstance(s, MarkerEffects | JointMarkerEffects)), None)
        kept = []
        for last in range(length.burn_in + length.thin, schedule.n_sweeps + 1, length.thin):
            chain.advance(last)
            now, T = chain.draws(), self.design.n_traits
            a, of_snps = np.zeros((0, T)), []
            if step is not None:
                a, of_snps = np.reshape(step.a, (-1, T)), self.snps.named(now)
            G, rho = {i: now[f"G.{i}"] for i in self.priors}, {i: now.get(f"rho.{i}", ()) for i in self.rho}
            cuts = [now[f"threshold.{t}"] for t in self.kinds if f"threshold.{t}" in now]
            R = now["R"] if self.of_record is not None else now["R"][None]
            kept.append(self._ranked(G, R, rho, engine.fetch(), cuts, a, of_snps))
        return kept


def records(rng, n, terms, T, observed=None, weight=None):
    """A design without records as yet."""
    G = [None if term.kind == "fixed" else np.eye(term.n_components) for term in terms]
    return models.with_records(rng, n, terms, G, np.eye(T), observed, weight)


@dataclass(frozen=True)
class Regression:
    """A regression sampler. drawn: rng -> (truth, response); ranked: its log of a state -> (m,)."""

    plugin: type
    options: dict
    X: np.ndarray
    drawn: Callable
    ranked: Callable
    beside: dict = field(default_factory=dict)  # groups and their predictors

    def draw(self, rng):
        return self.drawn(rng)

    def within(self, draws):
        return np.ones(len(draws), bool)

    def sample(self, response, length, key):
        data = RegressionData(read_predictors(self.X), response, **self.beside)
        sampler = self.plugin.prepare(data, self.plugin.Options(**self.options), Host(1))
        keys = Keys(key[0], (key[1],))
        sampler.adapt_until(length.burn_in)
        state, kept = sampler.start(keys), []
        for sweep in range(1, length.burn_in + length.draws * length.thin + 1):
            state = sampler.step(state, sweep, keys)
            if sweep > length.burn_in and (sweep - length.burn_in) % length.thin == 0:
                kept.append(self.ranked({name: values[0] for name, values in sampler.log(state).items()}))
        return kept
