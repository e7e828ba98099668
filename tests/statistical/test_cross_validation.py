"""What k-fold statistics are expected to be, and where nothing is:
records drawn from the model, solved by matrices written out in full.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import compare
from helpers.validation_data import analysis_of, beef_frames, small_beef
from reference.dense import build

from mmgibbs.config import load_config
from mmgibbs.posterior.fitted import fitted
from mmgibbs.validation import kfold
from mmgibbs.validation.evaluation import evaluate, read_recorded
from mmgibbs.validation.splits import balanced_folds, families, forward_folds

DRAWS = 400
MATERNAL = {  # the dam's own genes and environment weigh more than the calf's
    "random": {
        "genetic": {
            "relationship": "pedigree",
            "effects": {"direct": {"level": "animal"}, "maternal": {"level": "dam"}},
        },
        "maternal_environment": {"level": "dam"},
    },
    "variances": {"genetic": [[60.0, -20.0], [-20.0, 120.0]], "maternal_environment": 80.0, "residual": 100.0},
}
REPEATED = {  # two records of each animal
    "random": {"genetic": {"relationship": "pedigree", "level": "animal"}, "environment": {"level": "animal"}},
    "variances": {"genetic": 60.0, "environment": 120.0, "residual": 60.0},
}


class Folded:
    """Predictions p = P y and corrected records y* = M y of a model, fold by fold."""

    def __init__(self, model: dict, by: str):
        phenotypes, pedigree = beef_frames(small_beef(220, 3, 4))
        if model is REPEATED:
            later = phenotypes.with_columns(pl.col("year") + 1)
            phenotypes = pl.concat([phenotypes, later[::2], later[::2].with_columns(pl.col("year") + 1)])
        analysis = analysis_of(phenotypes, pedigree, group="herd")
        analysis["model"]["random"], analysis["variances"] = model["random"], model["variances"]
        records = read_recorded(load_config(analysis))
        whole = evaluate(records.analysis)
        pedigree, self.design = whole.prepared.pedigree, whole.design
        codes = pedigree.codes(records.animal).to_numpy()
        year = records.phenotypes.frame["year"].to_numpy().astype(float)
        units = {"random": codes, "family": families(pedigree, codes)}
        rng = np.random.default_rng(1)
        self.folds = forward_folds(year, 2) if by == "time" else balanced_folds(units[by], 3, rng, "units")
        self.predictors = kfold.predictors(whole)
        starts = [None if c is None else c.start for c in whole.assembled.model.covariances]
        self.dense = build(self.design, starts, whole.assembled.model.residual.start)
        self.W, self.R = self.dense.W[:, 0], whole.assembled.model.residual.start[0, 0]
        self.random = np.array([self.design.terms[t].kind == "random" for t, _, _ in self.dense.labels])

    def solved(self, seen: np.ndarray) -> np.ndarray:
        """(equations, records) solutions from the records that are seen."""
        W = self.W * seen[:, None]
        return np.linalg.pinv(W.T @ W / self.R + self.dense.prior, hermitian=True) @ W.T / self.R

    def effects(self, predictor: kfold.Predictor) -> np.ndarray:
        """(records, equations) the part of W that a predictor takes."""
        unit = [np.zeros((t.n_levels, t.n_components, len(self.dense.labels))) for t in self.design.terms]
        for j, (t, level, component) in enumerate(self.dense.labels):
            unit[t][level, component, j] = 1.0
        return fitted(self.design, unit, predictor.chosen)[:, 0]

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """(theta (equations, draws), y (records, draws)) with fixed effects 0."""
        rng, at = np.random.default_rng(5), np.flatnonzero(self.random)
        theta = np.zeros((len(self.random), DRAWS))
        half = np.linalg.cholesky(np.linalg.inv(self.dense.prior[np.ix_(at, at)]))
        theta[at] = half @ rng.standard_normal((at.size, DRAWS))
        return theta, self.W @ theta + np.sqrt(self.R) * rng.standard_normal((len(self.W), DRAWS))

    @cache  # noqa: B019  one for each test run
    def beyond(self, predictor: kfold.Predictor) -> np.ndarray:
        """(draws, 3 folds) of each fold: cov(y*, p) - var(p), cov(y*, p) - cov(u, p) and mean(p) - mean(y*);
        expected 0.
        """
        theta, y = self.draw()
        fixed = self.W * ~self.random
        corrected, out = y - fixed @ (self.solved(np.ones(len(y), bool)) @ y), []
        Z = self.effects(predictor)
        for fold in self.folds:
            p, u = Z @ (self.solved(~fold.masked) @ y), Z @ theta
            for k in range(DRAWS):
                of = [v[fold.tested, k] for v in (corrected, p, u)]
                found, var = kfold.fold_statistics(of[0], of[1], None), of[1].var(ddof=1)
                out.append(
                    [
                        (found["dispersion"] - 1) * var,
                        found["dispersion"] * var - np.cov(of[2], of[1])[0, 1],
                        found["bias"],
                    ]
                )
        return np.array(out).reshape(len(self.folds), DRAWS, 3).transpose(1, 0, 2).reshape(DRAWS, -1)


folded = cache(lambda name, by: Folded({"maternal": MATERNAL, "repeated": REPEATED}[name], by))


@pytest.mark.parametrize(
    ("name", "by", "known"),
    [
        pytest.param("maternal", "random", ["genetic maternal", "maternal_environment"], marks=pytest.mark.slow),
        pytest.param("maternal", "family", ["genetic maternal", "maternal_environment"], marks=pytest.mark.slow),
        pytest.param("repeated", "random", [], marks=pytest.mark.slow),
        ("repeated", "time", ["environment"]),
    ],
)
def test_predictions_are_expected_to_hold_where_nothing_else_is_known(name, by, known):
    population = folded(name, by)
    direct, every = population.predictors
    for predictor, effects in ((direct, known), (every, [])):
        found = {e for fold in population.folds for e in kfold.known_effects(population.design, predictor, fold)}
        assert found == set(effects), predictor
        agreement = compare(population.beyond(predictor), np.zeros(3 * len(population.folds)))
        assert agreement.agrees == (not found), (predictor, agreement)  # without the rule it would be stated, and wrong


@pytest.mark.slow
def test_a_trait_of_chosen_records_is_not_expected_to_hold():
    """Half sibs with two traits, the second recorded where the first is above its mean:
    the first is as expected, the second not.
    """
    rng, (sires, sibs), G, R = (
        np.random.default_rng(2),
        (18, 6),
        np.array([[0.5, 0.3], [0.3, 0.5]]),
        np.array([[0.5, 0.3], [0.3, 0.5]]),
    )
    n, draws, found = sires * sibs, 200, []
    A = np.kron(np.eye(sires), 0.25 + 0.75 * np.eye(sibs))
    of_u, X = np.kron(G, A), np.kron(np.eye(2), np.ones((n, 1)))
    V = of_u + np.kron(R, np.eye(n))
    half, fold = np.linalg.cholesky(V), np.arange(n) % 3

    def solved(seen: np.ndarray, y: np.ndarray):
        k = np.flatnonzero(seen)
        Vy, VX = np.hsplit(np.linalg.solve(V[np.ix_(k, k)], np.column_stack([y[k], X[k]])), [1])
        b = np.linalg.solve(X[k].T @ VX, X[k].T @ Vy)
        return b[:, 0], (of_u[:, k] @ (Vy - VX @ b)).reshape(2, n)

    for _ in range(draws):
        y = half @ rng.standard_normal(2 * n)
        observed = np.stack([np.ones(n, bool), y[:n] > 0])
        b, _ = solved(observed.ravel(), y)
        for f in range(3):
            _, p = solved((observed & (fold != f)).ravel(), y)
            for t in (0, 1):
                own = observed[t] & (fold == f)
                s = kfold.fold_statistics(y.reshape(2, n)[t, own] - b[t], p[t, own], None)
                found.append([s["bias"], (s["dispersion"] - 1) * p[t, own].var(ddof=1)])
    first, second = np.array(found).reshape(draws, 3, 2, 2).mean(axis=1).transpose(1, 0, 2)
    assert (agreement := compare(first, [0, 0])).agrees, agreement
    for statistic in second.T:
        agreement = compare(statistic[:, None], [0])
        assert not agreement.agrees and agreement.z[0] < 0, agreement
