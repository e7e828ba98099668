"""Trends of fields, times and curves: draws of their correlations leave the joint distribution of parameters and
effects as it is, and sweeps at known variances have the exact mean and variance of every effect; mutants of both."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.goodness import agree, transform_z
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from helpers.selection import first
from helpers.trends import Trend, lag_matrix
from scipy import stats
from scipy.linalg import block_diag

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.data import autoregression as reader
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.relationships import ar1
from mmgibbs.sampler import correlations
from mmgibbs.sampler.covariances import CovarianceMatrices

DF, SCALE, REPLICATES = 6.0, 8.0, 400
GAPS = np.array([0, 1, 3, 0, 2, 1, 1, 0.0])


def plots_in_rows_and_columns(module):
    structure = module.Field((module.Lattice(2, 4),), ("row", "column"))
    return module.FirstOrder.build(structure, ("row", "column"), (0.1, 0.2), False)


def unequal_times(module):
    return module.FirstOrder.build(module.TimeSeries(GAPS, "day", 1.0), ("time",), (0.1,), False)


def plain_matrix(name, rho):
    if name == "plots":
        return np.kron(lag_matrix(rho[0], np.arange(2)), lag_matrix(rho[1], np.arange(4)))
    series = np.split(GAPS, np.flatnonzero(GAPS == 0)[1:])
    return block_diag(*(lag_matrix(rho[0], np.cumsum(gaps)) for gaps in series))


MAKE = {"plots": plots_in_rows_and_columns, "times": unequal_times}


def after_draws(name, step=correlations, module=ar1, seed=1):
    """z of rho, of the variance and of the size of the effects after two draws of both given the effects."""
    rng, relationship = np.random.default_rng(seed), MAKE[name](module)
    bounds, rhos, scales, sizes = relationship.parameter_bounds, [], [], []
    term = SimpleNamespace(relationship=relationship, name="trend", n_prior_levels=len(GAPS))
    covariance = CovarianceModel(np.ones((1, 1)), False, ((0,),), InverseWishart(DF, np.array([[SCALE]])))
    design = SimpleNamespace(terms=[term], markers=[])
    model = SimpleNamespace(design=design, covariance=lambda _: covariance)
    for replicate in range(REPLICATES):
        rho, variance = rng.uniform(*bounds.T), SCALE / rng.chisquare(DF)
        theta = np.sqrt(variance) * np.linalg.cholesky(plain_matrix(name, rho)) @ rng.standard_normal((len(GAPS), 1))
        matrices = CovarianceMatrices([np.array([[variance]])], np.eye(1))
        drawing = step.CorrelationsAndCovariance(model, 0, Trend(theta, relationship), matrices, (replicate, 0))
        drawing.restore({"G.0": np.array([[variance]]), "rho.0": rho})
        for number in (1, 2):
            drawing(number)
        rho, variance = drawing.correlations.rho, matrices["G.0"][0, 0]
        rhos.append((rho - bounds[:, 0]) / np.ptp(bounds, axis=1))
        scales.append(stats.chi2(DF).cdf(SCALE / variance))
        square = (theta.T @ np.linalg.solve(plain_matrix(name, rho), theta)).item()
        sizes.append(stats.chi2(len(GAPS)).cdf(square / variance))
    return [*map(transform_z, np.array(rhos).T), transform_z(scales), transform_z(sizes)]


@pytest.mark.parametrize("name", MAKE)
def test_draws_of_correlations(name):
    assert agree(after_draws(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, where, right, wrong",
    [
        ("plots", ar1, "log_determinant -= pairs *", "log_determinant -= 0.5 * pairs *"),
        ("times", ar1, "float(-pairs @ np.log1p(-(phi**2)))", "0.0"),
        ("plots", correlations, "0.5 * (nu + self.n_levels)", "0.5 * nu"),
    ],
)
def test_spoiled_draws_of_correlations_are_noticed(name, where, right, wrong):
    spoilt = mutant(where, right, wrong, compiled=False)
    step, module = (correlations, spoilt) if where is ar1 else (spoilt, ar1)
    assert not agree(after_draws(name, step, module))


# ------------------------------------------------------------------------------------------------ known variances

G = {"field": 2.0, "growth": 1.0, "curve": 3.0}


@cache
def records():
    """Plots of a small field, and animals on some days of a season."""
    rng, n = np.random.default_rng(4), 20
    row, column = (x.ravel() + 1 for x in np.indices((5, 4)))
    day = np.concatenate([np.sort(rng.choice(12, 5, replace=False)) for _ in range(4)])
    return pl.DataFrame(
        {"row": row, "column": column, "day": day, "animal": np.arange(n) // 5, "y": rng.normal(size=n)}
    )


def prepared_model():
    known = {"fixed": True}
    random = {
        "field": {"kind": "ar1", "row": "row", "column": "column", "rho": {"row": 0.6, "column": -0.3}} | known,
        "growth": {"kind": "ar1", "time": "day", "within": "animal", "rho": 0.8} | known,
        "curve": {"kind": "random_walk", "of": "day", "order": 1},
    }
    config = load_config(
        {
            "data": {"phenotypes": records()},
            "traits": ["y"],
            "model": {"random": {name: {"relationship": relationship} for name, relationship in random.items()}},
            "variances": {"mode": "fixed", "residual": 1.0} | G,
            "sampler": {"engine": "serial"},
            "output": {"directory": "run"},
        }
    )
    return assemble(config, prepare(config)).model


@cache
def exact():
    """Mean and variance of what each trend adds to each record, (3 n,), from matrices in plain form."""
    row, column, day, animal, y = (records()[name].to_numpy() for name in ("row", "column", "day", "animal", "y"))
    walk = prepared_model().design.terms[3].relationship
    since = (day - day.min()) / walk.unit / walk.scale
    parts = [
        G["field"] * lag_matrix(0.6, row) * lag_matrix(-0.3, column),
        G["growth"] * lag_matrix(0.8, day) * (animal[:, None] == animal),
        G["curve"] * np.minimum.outer(since, since),
    ]
    W = np.linalg.inv(sum(parts) + np.eye(len(y)))
    one = W.sum(axis=1)
    P = W - np.outer(one, one) / one.sum()
    means = [K @ P @ y for K in parts]
    return np.concatenate(means), np.concatenate([np.diag(K - K @ P @ K) for K in parts])


def compare_sweeps(engine, sweeps=6_000):
    """Of sweeps at known variances with what is exact."""
    model, matrices = prepared_model(), [None, *(np.array([[v]]) for v in G.values())]
    kind = "colour" if engine == "structured" else "term"
    equations = structured_equations(model.design, partition(model.design, kind))
    made = EngineChoice(engine, variances_fixed=True, tolerance=TOLERANCES["gibbs"]).build(equations)
    made.set_variances(matrices, np.eye(1))
    mean, variance = exact()
    # curves begin at 0: records of the first day have no level
    is_known = variance > 1e-12
    levels = [term.effects[0].level for term in model.design.terms[1:]]
    kept = np.empty((sweeps, 2 * is_known.sum()))
    for number in range(-200, sweeps):
        made.sweep(number + 201, (3, 0))
        if number >= 0:
            theta = [np.append(t[:, 0], 0.0) for t in made.fetch()[1:]]
            x = np.concatenate([t[level] for t, level in zip(theta, levels, strict=True)]) - mean
            kept[number] = np.append(x[is_known], x[is_known] ** 2)
    return compare(batches(kept), np.append(np.zeros(is_known.sum()), variance[is_known]))


@pytest.mark.parametrize("engine", first(2, ["serial", "structured", "pcg"]))
def test_sweeps_have_the_exact_mean_and_variance_of_each_trend(engine):
    comparison = compare_sweeps(engine)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize(
    "right, wrong",
    [("np.array([1.0, rho**2, -rho]),", "np.array([1.0, rho**2, rho]),"), ("(-phi * w,", "(-0.8 * phi * w,")],
)
def test_a_wrong_trend_is_noticed(monkeypatch, right, wrong):
    exact()  # of the right one
    spoilt = mutant(ar1, right, wrong, compiled=False)
    for name in ("FirstOrder", "Field", "TimeSeries"):
        monkeypatch.setattr(reader, name, getattr(spoilt, name))
    assert not compare_sweeps("serial").agrees
