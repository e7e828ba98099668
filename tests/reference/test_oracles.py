"""The oracles against mathematics written another way."""

import numpy as np
import pytest
from reference import dense, models, tabular

from mmgibbs.draws.over_relaxation import OVER_RELAXED


@pytest.mark.parametrize("name", models.NAMES)
def test_examples_are_small_and_have_one_solution(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    assert 20 <= equations.size == example.design.n_equations <= 60
    assert np.linalg.cond(equations.C) < 1e4
    assert models.example(name) is example


def test_inbreeding_by_hand():
    # parents 0, 1; full sibs 2, 3; their calf 4; 4 selfed is 5
    sire, dam = [-1, -1, 0, 0, 2, 4], [-1, -1, 1, 1, 3, 4]
    assert tabular.inbreeding(sire, dam) == pytest.approx([0, 0, 0, 0, 0.25, 0.625])


@pytest.mark.parametrize("name", ["bivariate_missing", "direct_maternal"])
def test_mixed_model_equations_are_generalised_least_squares(name):
    """beta = (X'V^-1X)^-1 X'V^-1 y and u = D Z'V^-1 (y - X beta), V = Z D Z' + R; likelihood from V likewise."""
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    observed = ~np.isnan(example.design.y)
    W = equations.W[observed]
    y = example.design.y[observed]
    random = np.array([example.G[term] is not None for term, _, _ in equations.labels])
    X, Z = W[:, ~random], W[:, random]

    def parts(G, R):
        blocks = dense.build(example.design, G, R)
        D = np.linalg.inv(blocks.prior[np.ix_(random, random)])
        full = np.zeros((observed.size, observed.size))
        T = len(R)
        for r, w in enumerate(example.design.weight):
            full[r * T : (r + 1) * T, r * T : (r + 1) * T] = R / w
        keep = observed.ravel()
        V = Z @ D @ Z.T + full[np.ix_(keep, keep)]
        V_inverse = np.linalg.inv(V)
        information = X.T @ V_inverse @ X
        beta = np.linalg.solve(information, X.T @ V_inverse @ y)
        residual = V_inverse @ (y - X @ beta)
        log_likelihood = -0.5 * (
            np.linalg.slogdet(V)[1] + np.linalg.slogdet(information)[1] + (y - X @ beta) @ residual
        )
        return beta, D @ Z.T @ residual, log_likelihood

    beta, u, at_start = parts(example.G, example.R)
    np.testing.assert_allclose(equations.solution[~random], beta, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(equations.solution[random], u, rtol=1e-8, atol=1e-9)
    other = [None if g is None else 1.7 * g + 0.3 * np.eye(len(g)) for g in example.G], 0.6 * example.R
    change = parts(*other)[2] - at_start
    ours = dense.log_marginal_likelihood(example.design, *other)
    ours -= dense.log_marginal_likelihood(example.design, example.G, example.R)
    assert ours == pytest.approx(change, rel=1e-9)


@pytest.mark.parametrize("blocks, a", [(dense.sites, 0.0), (dense.levels, OVER_RELAXED)])
def test_a_sweep_is_its_conditionals_in_turn_and_leaves_the_posterior_alone(blocks, a):
    equations = dense.build(*(lambda e: (e.design, e.G, e.R))(models.example("direct_maternal")))
    rng = np.random.default_rng(2)
    order = blocks(equations)
    order = [order[i] for i in rng.permutation(len(order))]
    start = rng.standard_normal(equations.size)
    mean, _ = dense.gibbs_sweep(equations, start, order, a)
    step = start.copy()
    for block in order:
        step[block] = (1 - a) * dense.conditional(equations, step, block)[0] + a * step[block]
    np.testing.assert_allclose(mean, step, atol=1e-10)

    stationary, covariance = dense.gibbs_sweep(equations, equations.solution, order, a)
    np.testing.assert_allclose(stationary, equations.solution, atol=1e-10)
    unit = np.eye(equations.size)
    B = np.stack([dense.gibbs_sweep(equations, row, order, a)[0] for row in unit], axis=1)
    B -= dense.gibbs_sweep(equations, np.zeros(equations.size), order, a)[0][:, None]
    np.testing.assert_allclose(B @ equations.covariance @ B.T + covariance, equations.covariance, atol=1e-10)
