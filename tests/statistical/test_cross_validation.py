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
        ("repeated", "time", ["environment"]),
        pytest.param("maternal", "random", ["genetic maternal", "maternal_environment"], marks=pytest.mark.slow),
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
