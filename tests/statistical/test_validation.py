"""LR statistics over simulated data of known bias, dispersion and accuracy.

The pedigree, the herds and who is weighed are those of `mmgibbs.simulation.simulate`; breeding values and records are
drawn anew in each replicate, and solved by matrices written out in full, so that every expectation is known. What the
statistics themselves are made of comes from the program.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
from helpers.monte_carlo import compare
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef
from reference.dense import build, incidence, relationship_inverse

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.simulation.simulate import animal_ids
from mmgibbs.validation import lr
from mmgibbs.validation.evaluation import evaluate, evaluate_masked, read_recorded
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import examine

REPLICATES = 1000


class Population:
    """u = B y of the focal animals, from whole and partial data at the true variances, and the covariance of their
    errors C.
    """

    def __init__(self):
        records = read_recorded(load_config(analysis_of(*beef_frames(small_beef(350, 5, 6)), group="herd")))
        year = records.phenotypes.frame["year"].to_numpy()
        self.records, self.masked = records, year == year.max()
        self.designs = [prepare(records.without(m)).design for m in (np.zeros_like(self.masked), self.masked)]
        animal = self.designs[0].terms[-1]
        self.level = animal.effects[0].level
        self.focal = self.level[self.masked]
        self.A_inverse = relationship_inverse(animal)
        self.A = np.linalg.inv(self.A_inverse)
        self.spread = animal.relationship.spread(self.focal)

    def solutions(self, which: int) -> tuple[np.ndarray, np.ndarray]:
        """(B (focal, records of the whole data), C (focal, focal)); which: 0 whole data, 1 partial."""
        design = self.designs[which]
        parts = [incidence(t, 1)[:, 0][:, ... if t.active is None else t.active[:, 0]] for t in design.terms]
        W, q = np.concatenate(parts, axis=1), len(self.A)
        C = W.T @ W / R
        C[-q:, -q:] += self.A_inverse / G
        inverse, own = np.linalg.inv(C), C.shape[0] - q + self.focal
        B = np.zeros((self.focal.size, self.masked.size))
        B[:, slice(None) if which == 0 else ~self.masked] = inverse[own] @ W.T / R
        return B, inverse[np.ix_(own, own)]

    def draw(self, n: int, seed: int = 11) -> np.ndarray:
        """y (records, n): fixed effects are 0, which no contrast sees."""
        rng = np.random.default_rng(seed)
        u = np.linalg.cholesky(self.A * G) @ rng.standard_normal((len(self.A), n))
        return u[self.level] + np.sqrt(R) * rng.standard_normal((self.level.size, n))


population = cache(Population)
solutions = cache(lambda which: population().solutions(which))


def statistics(w: np.ndarray, p: np.ndarray, spread: float = 1.0) -> dict[str, np.ndarray]:
    """(replicates,) each, from (focal, replicates)."""
    family = np.zeros(len(w), int)
    sums = np.concatenate([lr.family_sums(a, b, family) for a, b in zip(w.T, p.T, strict=True)])
    return lr.lr_statistics(sums, spread)


def moments(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(replicates,) covariance over focal animals, divisor n."""
    return ((a - a.mean(axis=0)) * (b - b.mean(axis=0))).mean(axis=0)


def standardised(p: np.ndarray, found: dict, difference: np.ndarray) -> np.ndarray:
    """(replicates, 4): (estimate - expected) / standard error of bias and dispersion, and the squares of these."""
    slope = (p - p.mean(axis=0)) / (len(p) * moments(p, p))
    bias = found["bias"] / np.sqrt(difference.mean())
    dispersion = (found["dispersion"] - 1) / np.sqrt(np.einsum("ir,ij,jr->r", slope, difference, slope))
    z = np.stack([bias, dispersion], axis=1)
    return np.concatenate([z, z**2], axis=1)


def test_unbiased_within_standard_errors_that_are_right():
    """z of bias and dispersion has mean 0 and mean square 1: the estimates and their standard errors at once."""
    y = population().draw(REPLICATES)
    w, p = (solutions(i)[0] @ y for i in (0, 1))
    found, difference, expected = statistics(w, p), solutions(1)[1] - solutions(0)[1], [0, 0, 1, 1]
    assert (agreement := compare(standardised(p, found, difference), expected)).agrees, agreement
    mutants = {
        "regression of p on w": (statistics(p, w), difference),
        "a bias of 0.1 genetic standard deviations": (found | {"bias": found["bias"] + 0.1 * np.sqrt(G)}, difference),
        "a dispersion of 0.95": (found | {"dispersion": 0.95 * found["dispersion"]}, difference),
        "standard errors of animals that are not related": (found, np.diag(np.diag(difference))),
    }
    for name, mutant in mutants.items():
        assert not compare(standardised(p, *mutant), expected).agrees, name


def test_standard_errors_and_expectations_by_simulation():
    """The simulation of the program against replicates that are drawn and solved by matrices."""
    y = population().draw(REPLICATES)
    found = statistics(*(solutions(i)[0] @ y for i in (0, 1)), population().spread * G)
    whole, masked = evaluate(population().records.analysis), population().masked
    partial, place = evaluate_masked(population().records, masked, "the last year"), len(whole.design.terms) - 1
    ((mean, sd, _),) = lr.simulated_moments(
        whole, partial, masked, {place: population().focal}, 400, 3, LocalExecutor()
    )[place]
    for name, values in found.items():
        values = values[np.isfinite(values)]
        assert abs(mean[name] - values.mean()) < 4 * np.hypot(sd[name] / 20, values.std() / np.sqrt(REPLICATES)), name
        # the standard error of log s is 1 / sqrt(2 n) of normal values, and more where tails are long
        assert abs(np.log(sd[name] / values.std())) < 6 * np.sqrt(1 / 800 + 1 / (2 * REPLICATES)), name


def test_fixed_groups_by_simulation():
    """Fixed unknown-parent groups: dispersion is not 1, and what the simulation says of it is right, at the effects of
    the groups.
    """
    phenotypes, pedigree = beef_frames(small_beef(220, 3, 4))
    origin = pl.format("group {}", pl.int_range(pl.len()) % 10)
    analysis = analysis_of(phenotypes, pedigree.with_columns(origin=origin), group="herd")
    analysis["data"]["groups"] = {"column": "origin", "effect": "fixed"}
    records = read_recorded(load_config(analysis))
    year = records.phenotypes.frame["year"].to_numpy()
    masked = year == year.max()
    whole, partial = evaluate(records.analysis), evaluate_masked(records, masked, "the last year")
    place, term, rng = len(whole.design.terms) - 1, whole.design.terms[-1], np.random.default_rng(8)
    kin, level = term.relationship.relatives, term.effects[0].level
    focal, q = level[masked], kin.n_animals
    groups = np.where(term.active[q:, 0], np.sqrt(G) * np.resize([1, -1, 0], 10), 0.0)
    assert np.count_nonzero(~term.active[q:]) == 1  # the last is set to 0
    mean = np.concatenate([np.zeros(q), groups])
    for i in range(q):
        mean[i] = sum(mean[p] for p in (kin.sire[i], kin.dam[i]) if p >= 0) / 2
    A = relationship_block(kin.sire, kin.dam, kin.inbreeding, np.arange(q))
    u = mean[:q, None] + np.linalg.cholesky(A * G) @ rng.standard_normal((q, REPLICATES))
    y = u[level] + np.sqrt(R) * rng.standard_normal((level.size, REPLICATES))
    solved = []
    for evaluation, seen in ((whole, np.ones(masked.size, bool)), (partial, ~masked)):
        last = len(evaluation.design.terms) - 1
        dense = build(evaluation.design, [None] * last + [np.array([[G]])], np.array([[R]]))
        own = [dense.index(last, animal, 0) for animal in focal]
        solved.append(np.linalg.solve(dense.C, dense.W[:, 0].T @ y[seen] / R)[own])
    found = statistics(*solved)
    del found["accuracy"]  # there is none
    true = [np.zeros(t.shape) for t in whole.theta]
    true[-1][q:, 0] = groups
    simulate = lambda theta: lr.simulated_moments(
        replace(whole, theta=theta), partial, masked, {place: focal}, 400, 3, LocalExecutor()
    )
    ((mean, sd, _),) = simulate(true)[place]
    away = lambda expected, name: (
        abs(expected - np.nanmean(found[name])) / np.hypot(sd[name] / 20, np.nanstd(found[name]) / np.sqrt(REPLICATES))
    )
    for name, values in found.items():
        assert away(mean[name], name) < 4, name
        assert abs(np.log(sd[name] / np.nanstd(values))) < 6 * np.sqrt(1 / 800 + 1 / (2 * REPLICATES)), name
    assert (
        np.isnan(mean["accuracy"]) and away(1.0, "dispersion") > 6
    )  # which is that of breeding values without fixed groups
    ((of_no_groups, _, _),) = simulate([0 * t for t in whole.theta])[place]
    assert away(of_no_groups["dispersion"], "dispersion") > 6


def test_simulated_populations():
    """Simulated cattle from end to end: bias and dispersion within their standard errors, accuracy near that of the
    true values.
    """
    beef = small_beef(1200, 20, 12)
    records = read_recorded(load_config(analysis_of(*beef_frames(beef))))
    found = examine(records, ValidationPlan(method="lr", cutoff=float(beef.birth_year.max() - 1)), lambda text: None)
    rows = {row["statistic"]: row for row in found.table.to_dicts()}
    for name in ("bias", "dispersion"):
        assert abs(rows[name]["estimate"] - rows[name]["expected"]) < 4 * rows[name]["se"]
    focal = animal_ids(beef).is_in(found.predictions["animal"].implode()).to_numpy()
    true = dict(zip(animal_ids(beef).filter(focal), beef.breeding_values[focal, 0], strict=True))
    accuracy = np.corrcoef([true[a] for a in found.predictions["animal"]], found.predictions["predicted"])[0, 1]
    assert abs(rows["accuracy"]["estimate"] - accuracy) < 4 * rows["accuracy"]["se"]
