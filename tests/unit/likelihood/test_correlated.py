"""The likelihood of correlated residuals against dense matrices: values, derivatives, solutions and their errors."""

import numpy as np
import polars as pl
import pytest
from reference.dense import information, projection, restricted_log_likelihood

from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis
from mmgibbs.equations.base import layout
from mmgibbs.likelihood.base import Place
from mmgibbs.likelihood.correlated import CorrelatedLikelihood, RenewableResidual
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import join_all

ROWS, COLUMNS = 5, 4


def trial():
    """Two sites of 20 plots, some of which are empty, with 6 lines."""
    rng = np.random.default_rng(3)
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    frames = [
        pl.DataFrame(
            {
                "site": [site] * row.size,
                "row": row,
                "column": column,
                "line": [f"L{i}" for i in rng.integers(0, 6, row.size)],
                "x": rng.normal(size=row.size),
                "y": rng.normal(size=row.size),
            }
        ).sample(17, seed=seed)
        for seed, site in enumerate(("A", "B"))
    ]
    return pl.concat(frames)


def make_design(traits, **residual):
    kind = {"kind": "ar1", "row": "row", "column": "column", "rho": {"row": 0.4, "column": -0.3}}
    source = {
        "data": {"phenotypes": trial()},
        "traits": traits,
        "model": {"fixed": {"x": {"kind": "covariate"}, "site": {}}, "random": {"line": {}}},
        "variances": {"residual": {"relationship": kind, **residual}},
        "sampler": {"method": "reml"},
    }
    return prepare(load_analysis(source)).design


SHAPES = {
    "classes": ({"y": {}}, {"by": "site"}, Variances([None, None, np.array([[0.7]])], np.array([[[1.3]], [[0.6]]]))),
    "traits": (
        {"y": {"by": "site"}},
        {},
        Variances([None, None, np.array([[0.7, 0.2], [0.2, 0.5]])], np.array([[[1.3, 0.0], [0.0, 0.6]]])),
    ),
}


def ar1(n, rho):
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def dense(design, variances, rho):
    """(y, X, Z, G, V) of the observations, R by the plots of each site; rho: (row, column) of each."""
    frame = trial()
    site, line = frame["site"].to_numpy(), frame["line"].to_numpy()
    plot = frame["row"].to_numpy() * COLUMNS + frame["column"].to_numpy()
    R = np.zeros((len(frame),) * 2)
    for g, name in enumerate("AB"):
        K = np.kron(ar1(ROWS, rho[g][0]), ar1(COLUMNS, rho[g][1]))
        of_site = np.flatnonzero(site == name)
        scale = variances.R[g][0, 0] if len(variances.R) > 1 else variances.R[0][g, g]
        R[np.ix_(of_site, of_site)] = scale * K[np.ix_(plot[of_site], plot[of_site])]
    lines = sorted(set(line))
    G = variances.G[-1]
    if len(G) == 1:
        Z, of_levels = (line[:, None] == np.array(lines)).astype(float), G[0, 0] * np.eye(len(lines))
    else:
        number = (site == "B").astype(int)
        Z = np.zeros((len(frame), 2 * len(lines)))
        Z[np.arange(len(frame)), 2 * np.array([lines.index(name) for name in line]) + number] = 1.0
        of_levels = np.kron(np.eye(len(lines)), G)
    return Z, of_levels, R


def dense_log_likelihood(design, variances, rho):
    Z, G, R = dense(design, variances, rho)
    seen = design.patterns[design.pattern].ravel()
    fixed = sum(t.n_levels * t.n_components for t in design.terms if t.kind == "fixed")
    W = Incidence(design).matrix.toarray()[seen]
    X = W[:, :fixed][:, layout(design).active[:fixed]]
    y = design.y.ravel()[seen]
    V = Z @ G @ Z.T + R
    P = projection(X, V)
    u = G @ Z.T @ P @ y
    return restricted_log_likelihood(y, X, V), u, np.diag(G - G @ Z.T @ P @ Z @ G), P, y


RHO = [(0.4, -0.3), (0.4, -0.3)]


@pytest.mark.parametrize("name", SHAPES)
def test_value_solutions_and_errors(name):
    traits, residual, variances = SHAPES[name]
    design = make_design(traits, **residual)
    point = CorrelatedLikelihood(design, join_all(variances.G)).evaluate(variances)
    value, u, pev, _, _ = dense_log_likelihood(design, variances, RHO)
    assert point.log_likelihood == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(point.solutions[-1].ravel(), u, atol=1e-10)
    np.testing.assert_allclose(point.inverse_diagonal[-u.size :], pev, atol=1e-10)
    n = point.likelihood.n_equations
    columns = point.solve_equations(np.eye(n))
    np.testing.assert_allclose(np.diag(columns), point.inverse_diagonal, atol=1e-10)


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_differences(name):
    traits, residual, variances = SHAPES[name]
    design = make_design(traits, **residual)
    likelihood = CorrelatedLikelihood(design, join_all(variances.G))
    point, step = likelihood.evaluate(variances), 1e-5

    def difference(change):
        values = []
        for sign in (step, -step):
            moved = variances.copy_matrices()
            change(moved, sign)
            values.append(dense_log_likelihood(design, moved, RHO)[0])
        return (values[0] - values[1]) / (2 * step)

    for i, j in np.ndindex(*variances.G[-1].shape):

        def change(at, by, i=i, j=j):
            at.G[-1][i, j] += by
            if i != j:
                at.G[-1][j, i] += by

        twice = 1.0 if i == j else 2.0
        assert twice * point.derivatives.G[-1][i, j] == pytest.approx(difference(change), abs=1e-6)
    for c, t, _ in zip(*np.nonzero(variances.R), strict=True):

        def change(at, by, c=c, t=t):
            at.R[c, t, t] += by

        assert point.derivatives.R[c, t, t] == pytest.approx(difference(change), abs=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_by_correlations(name):
    traits, residual, variances = SHAPES[name]
    design = make_design(traits, **residual)
    likelihood = CorrelatedLikelihood(design, join_all(variances.G))
    point, step = likelihood.evaluate(variances), 1e-5
    for g in range(2):
        renewable = RenewableResidual(likelihood, g)
        gradient = renewable.gradient(point)
        for p in range(2):
            values = []
            for sign in (step, -step):
                rho = [list(pair) for pair in RHO]
                rho[g][p] += sign
                values.append(dense_log_likelihood(design, variances, rho)[0])
            assert gradient[p] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)
        renewable.renew(np.array([0.1, 0.6]))
        rho = [pair if i != g else (0.1, 0.6) for i, pair in enumerate(RHO)]
        renewed = likelihood.evaluate(variances).log_likelihood
        assert renewed == pytest.approx(dense_log_likelihood(design, variances, rho)[0], abs=1e-9)
        renewable.renew(np.array(RHO[g]))


def test_information_is_that_of_dense_matrices():
    """1/2 F'PF with F = (dV / dpsi) P y."""
    traits, residual, variances = SHAPES["classes"]
    design = make_design(traits, **residual)
    likelihood = CorrelatedLikelihood(design, join_all(variances.G))
    point = likelihood.evaluate(variances)
    places = [Place(2, 0, 0, 0), Place(None, 0, 0, 0), Place(None, 1, 0, 0)]
    renewable = RenewableResidual(likelihood, 0)
    F = np.concatenate([point.working_variates(places), renewable.working_variates(point)], axis=1)
    computed = point.project(F)

    Z, _, R = dense(design, variances, RHO)
    _, _, _, P, y = dense_log_likelihood(design, variances, RHO)
    site, step = trial()["site"].to_numpy(), 1e-6
    of_sites = [R * np.outer(site == name, site == name) / s for name, s in (("A", 1.3), ("B", 0.6))]
    of_rho = []
    for p in range(2):
        moved = []
        for sign in (step, -step):
            rho = [list(pair) for pair in RHO]
            rho[0][p] += sign
            moved.append(dense(design, variances, rho)[2])
        of_rho.append((moved[0] - moved[1]) / (2 * step))
    expected = information(P, y, (Z @ Z.T, *of_sites, *of_rho))
    np.testing.assert_allclose(computed, expected, rtol=1e-6, atol=1e-8)
