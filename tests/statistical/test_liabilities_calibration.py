"""Simulation-based calibration (Talts et al. 2018) of traits that are not normal.

Parameters from their proper prior, data from the parameters, a chain on the data: the rank of each true value among
thinned draws is uniform. A binary and an ordinal trait (thresholds uniform where they are below a bound, so that their
prior is proper), a mixture of three, a right-censored trait, counts, and a binary trait with two residual classes.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from reference import dense, models
from scipy.stats import invwishart

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models import priors
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.models.response import Categories, Count, Interval
from mmgibbs.sampler import liabilities
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

ANIMALS, RECORDS, HERDS = 12, 40, 3
DRAWS, THIN, BURN_IN, DATA_SETS = 60, 12, 150, 150
HIGHEST = 3.0  # the last threshold is below it
DF = 9.0


def one(value):
    return np.array([[float(value)]])


class Case:
    """A prior, data from it, and what of a chain is ranked. unit: traits with R = 1; K: categories of each of them."""

    T = 1
    unit: tuple[int, ...] = ()
    K: dict[int, int] = {}
    classes: tuple[str, ...] = ()
    scale_G = one(6)
    scale_R = one(8)

    def __init__(self, rng):
        sire, dam = models.looped_pedigree(rng, ANIMALS, 4)
        kin = models.pedigree_relationship(sire, dam)
        animal = np.concatenate([np.arange(ANIMALS), rng.integers(0, ANIMALS, RECORDS - ANIMALS)]).astype(np.int32)
        herd = np.arange(RECORDS) % HERDS
        self.terms = [
            models.class_term("herd", herd, HERDS, range(self.T), prior_precision=np.eye(self.T)),
            models.random_term("genetic", [models.Effect("", animal, tuple(range(self.T)))], kin, ANIMALS),
        ]
        self.herd, self.animal = herd, animal
        self.root = np.linalg.cholesky(np.linalg.inv(dense.relationship_inverse(self.terms[1])))
        self.of_record = np.arange(RECORDS) % 2
        self.rng = rng

    def residual(self):
        return invwishart.rvs(DF, self.scale_R, random_state=self.rng).reshape(self.T, self.T)

    def truth(self):
        """(G, R (classes, T, T), cuts by trait, b, u) from the prior."""
        rng, T = self.rng, self.T
        G, self.prior_of_G = self.genetic()
        R = np.stack([self.residual(), *(self.residual_of_the_second() for _ in self.classes[1:])])
        cuts = {t: np.sort(rng.uniform(0, HIGHEST, K - 2)) for t, K in self.K.items()}
        b = rng.standard_normal((HERDS, T))
        u = self.root @ rng.standard_normal((ANIMALS, T)) @ np.linalg.cholesky(G).T
        return G, R, cuts, b, u

    def residual_of_the_second(self):
        return one(self.scale_R[0, 0] / self.rng.chisquare(DF))

    def with_all_categories(self):
        """A truth and data of it, again until each category occurs, as an analysis asks: calibration holds given what
        is known of the data.
        """
        while True:
            truth = self.truth()
            y, responses = self.data(*truth[1:])
            if all(len(np.unique(r.category)) == len(r.labels) for r in responses if isinstance(r, Categories)):
                return *truth, y, responses

    def data(self, R, cuts, b, u):
        root = np.linalg.cholesky(R)[self.of_record if self.classes else np.zeros(RECORDS, int)]
        e = np.einsum("rtu,ru->rt", root, self.rng.standard_normal((RECORDS, self.T)))
        return self.observed(b[self.herd] + u[self.animal] + e, cuts)

    def observed(self, y, cuts):
        """(y, responses) as the sampler takes them."""
        responses = []
        for t, K in self.K.items():
            edges = np.concatenate([[0.0], cuts[t]])
            category = np.searchsorted(edges, y[:, t]).astype(np.int16)
            r = Categories(t, tuple(map(str, range(K))), category)
            y[:, t] = np.concatenate([[-1.0], 0.5 * (edges[:-1] + edges[1:]), [edges[-1] + 1]])[category]
            responses.append(r)
        return y, tuple(responses)

    def genetic(self):
        """(G, prior) of the genetic term."""
        drawn = invwishart.rvs(DF, self.scale_G, random_state=self.rng).reshape(self.T, self.T)
        return drawn, {"df": DF, "scale": self.scale_G}

    def model(self, y, responses):
        plain = models.with_records(
            np.random.default_rng(0), RECORDS, self.terms, [None, np.eye(self.T)], np.eye(self.T)
        )
        design = replace(plain, y=y, responses=responses)
        block = full_block(self.T)
        G = CovarianceModel(np.eye(self.T), False, block, **self.prior_of_G)
        held = self.unit == tuple(range(self.T)) and self.T == 1
        R = CovarianceModel(np.eye(self.T), held, block, DF, self.scale_R, unit=self.unit)
        if not self.classes:
            return MixedModel(design, (None, G), R)
        pattern, patterns, of_pattern = fold_classes(design.pattern, design.patterns, self.of_record, 2)
        design = replace(design, pattern=pattern, patterns=patterns, pattern_class=of_pattern)
        free = CovarianceModel(np.eye(self.T), False, block, DF, self.scale_R)
        return MixedModel(
            replace(design, residual_classes=self.classes), (None, G), ResidualModel((R, free), self.classes)
        )

    def ranked(self, G, R, cuts, b, u):
        lower = np.tril_indices(self.T)
        free = [R[c][i, j] for c in range(len(R)) for i, j in zip(*lower, strict=True)]
        held = [c == 0 and i == j and i in self.unit for c in range(len(R)) for i, j in zip(*lower, strict=True)]
        out = [*G[lower], *(x for x, h in zip(free, held, strict=True) if not h), *b[0], *u[0], *u[-1]]
        return np.array([*out, *(x for t in sorted(cuts) for x in cuts[t])])


class Binary(Case):
    unit, K = (0,), {0: 2}

    def residual(self):
        return one(1)


class Ordinal(Binary):
    K = {0: 4}


class Censored(Case):
    def observed(self, y, cuts):
        end = 0.5 + 0.3 * np.arange(RECORDS) % 2
        lived = y[:, 0] > end
        lower = np.where(lived, end, y[:, 0])
        return np.where(lived[:, None], end[:, None], y), (Interval(0, lower, np.where(lived, np.inf, y[:, 0])),)


class Counts(Case):
    scale_G, scale_R = one(3), one(5)

    def observed(self, y, cuts):
        exposure = 0.5 + np.arange(RECORDS) % 3
        count = self.rng.poisson(exposure * np.exp(np.minimum(y[:, 0], 20))).astype(float)
        response = Count(0, count, exposure)
        return response.start()[:, None], (response,)


class TwoClasses(Binary):
    classes = ("a", "b")


class Mixture(Case):
    """Normal, binary and ordinal with a full R: R_cc a correlation matrix, the rest as in sampler/unit_diagonals.py."""

    T, unit, K = 3, (1, 2), {1: 2, 2: 3}
    scale_G = np.diag([7.0, 6.0, 6.0]) + 1
    scale_R = np.array([[9.0, 2.0, -1.0], [2.0, 8.0, 2.0], [-1.0, 2.0, 8.0]])

    def residual(self):
        S, rng = self.scale_R, self.rng
        rho = np.linspace(-0.999, 0.999, 4001)
        log_p = -0.5 * (DF - 1 + 2 + 1) * np.log(1 - rho**2)
        log_p -= 0.5 * (S[1, 1] + S[2, 2] - 2 * rho * S[1, 2]) / (1 - rho**2)
        r = rng.choice(rho, p=np.exp(log_p - log_p.max()) / np.exp(log_p - log_p.max()).sum())
        R_cc = np.array([[1.0, r], [r, 1.0]])
        W_cc, W_cf = S[1:, 1:], S[1:, :1]
        D = (S[0, 0] - W_cf.T @ np.linalg.solve(W_cc, W_cf)) / rng.chisquare(DF)
        B = np.linalg.solve(W_cc, W_cf) + np.linalg.cholesky(np.linalg.inv(W_cc)) @ rng.standard_normal(
            (2, 1)
        ) * np.sqrt(D)
        R = np.empty((3, 3))
        R[1:, 1:], R[1:, :1], R[:1, 1:] = R_cc, R_cc @ B, (R_cc @ B).T
        R[0, 0] = (D + B.T @ R_cc @ B).item()
        return R


class UniformHeritability(Binary):
    """h2 uniform: the scale of the liability takes G along."""

    def genetic(self):
        h2 = self.rng.uniform()
        return one(h2 / (1 - h2)), {"scale_prior": priors.UniformHeritability()}


class HalfT(Mixture):
    """Standard deviations of G half-t with 2 df, of three traits of which two are in categories."""

    def genetic(self):
        A = np.array([1.0, 0.6, 0.8])
        a = 1 / self.rng.gamma(0.5, A**2)
        S = 2 * 2.0 * np.diag(1 / a)
        return invwishart.rvs(4, S, random_state=self.rng), {"scale_prior": priors.HalfT(2.0, A)}


def within_the_bound(step):
    """The step under a prior of thresholds that ends at HIGHEST: proposals beyond it are refused."""
    engine, ratio = step.engine, step.engine.ratio_of_cuts

    def bounded_ratio(response, cuts, proposed):
        beyond = response == step.response and proposed[-2] > HIGHEST
        return -np.inf if beyond else ratio(response, cuts, proposed)

    draw_scale = step._draw_scale

    def bounded_scale(number, a, b):
        before = step.cuts.copy(), {name: m.copy() for name, m in step.matrices.items()}
        auxiliaries = {name: value.copy() for name, value in step.matrices.auxiliaries.items()}
        y, theta = engine.y.copy(), [t.copy() for t in engine.theta]
        draw_scale(number, a, b)
        if step.cuts[-2] < HIGHEST:
            return
        step.cuts = before[0]
        for name, matrix in before[1].items():
            step.matrices[name] = matrix
        for name, value in auxiliaries.items():
            step.matrices.take_auxiliaries(name, value)
        for term, values in enumerate(theta):
            engine.put_theta(term, values)
        engine.take_y(y)
        engine.refresh()

    engine.ratio_of_cuts, step._draw_scale = bounded_ratio, bounded_scale


def ranks(kind, n=DATA_SETS, spoil=lambda steps: None):
    """(n, quantities) of values that should be uniform: true values among thinned draws of their own chain."""
    rng, out = np.random.default_rng(91), []
    case = kind(rng)
    for i in range(n):
        G, R, cuts, b, u, y, responses = case.with_all_categories()
        model = case.model(y, responses)
        engine = SerialEngine(structured_equations(model.design, partition(model.design)))
        steps = gibbs_steps(model, engine, Schedule(BURN_IN, DRAWS * THIN, interweave=(1,)), (i, 0))
        thresholds = {s.trait: s for s in steps if isinstance(s, liabilities.LiabilityStep) and s.n_gaps}
        for step in thresholds.values():
            within_the_bound(step)
        spoil(steps)
        kept = []
        for number in range(1, BURN_IN + DRAWS * THIN + 1):
            for step in steps:
                step(number)
            if number > BURN_IN and number % THIN == 0:
                draws = {name: value for s in steps for name, value in s.draws().items()}
                R_now = draws["R"] if case.classes else draws["R"][None]
                now = {t: thresholds[t].cuts[2:-1] if t in thresholds else np.zeros(0) for t in case.K}
                kept.append(case.ranked(draws["G.1"], R_now, now, *engine.fetch()))
        below = (np.array(kept) < case.ranked(G, R, cuts, b, u)).sum(axis=0)
        out.append((below + rng.uniform(size=len(below))) / (DRAWS + 1))
    return np.array(out)


def calibrated(u):
    return agree([transform_z(column) for column in u.T])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Binary, Ordinal, Mixture, Censored, Counts, TwoClasses, UniformHeritability, HalfT])
def test_ranks_are_uniform(kind):
    u = ranks(kind)
    assert calibrated(u), (u.mean(axis=0), u.std(axis=0))


def wrong_variance(steps):
    """Liabilities drawn with a residual variance of a half."""
    passes = steps[0].engine.liabilities
    draw = passes.draw
    passes.draw = lambda response, cuts, y, e, Rinv, *site: draw(response, cuts, y, e, 2 * Rinv, *site)


def jacobian_forgotten(steps):
    """G and its auxiliary variable scaled by g^2 each, and no g^4 in the density of g."""
    of_moving = steps[0]._moving_prior

    def spoiled(term):
        power, square = of_moving(term)
        return power - 4, square

    steps[0]._moving_prior = spoiled


@pytest.mark.slow
def test_a_forgotten_jacobian_is_seen():
    assert not calibrated(ranks(UniformHeritability, spoil=jacobian_forgotten))


@pytest.mark.slow
def test_a_wrong_variance_is_seen():
    assert not calibrated(ranks(Ordinal, spoil=wrong_variance))
