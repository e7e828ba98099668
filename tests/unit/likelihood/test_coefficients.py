"""C and its factor of every model against dense NumPy: log|C|, solutions, C^-1, traces."""

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.coefficients import coefficients


def blocks_of(example):
    of_terms = [None if g is None else (tuple(range(len(g))),) for g in example.G]
    R = np.asarray(example.R)
    T = example.design.n_traits
    joined = (R if R.ndim == 2 else R.sum(axis=0)) != 0
    of_residual = (tuple(range(T)),) if joined.all() else tuple((t,) for t in range(T))
    return of_terms, [of_residual] * max(1, len(example.design.residual_classes))


@pytest.fixture(params=["columns", "supernodes"])
def form(request, monkeypatch):
    """The factor has this form, whatever it costs."""
    longest = np.inf if request.param == "columns" else 0
    monkeypatch.setattr("mmgibbs.likelihood.cholesky.factor.MAX_FLOPS_PER_ELEMENT", longest)


def coefficients_of(example):
    return coefficients(example.design, *blocks_of(example))


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model(form, name):
    example = models.example(name)
    truth = dense.build(example.design, example.G, example.R)
    c = coefficients_of(example)
    factor = c.factor(example.G, example.R)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(truth.C)[1], rtol=1e-11)
    np.testing.assert_allclose(factor.solve(truth.rhs), truth.solution, rtol=1e-8, atol=1e-10)
    Z = c.selected_inverse(factor)
    np.testing.assert_allclose(c.diagonal(Z), np.diag(truth.covariance), rtol=1e-9)
    traces = c.traces(Z)
    for i in example.random_terms():
        np.testing.assert_allclose(traces.of_terms[i], trace_of_term(truth, i), rtol=1e-8, atol=1e-10)
    design = example.design
    for p, observed in enumerate(design.patterns):
        W, w = truth.W[design.pattern == p], design.weight[design.pattern == p]
        expected = np.einsum("r,rti,ij,ruj->tu", w, W, truth.covariance, W)
        joined = np.outer(observed, observed) & (np.asarray(example.R) != 0)
        np.testing.assert_allclose(traces.of_records[p][joined], expected[joined], rtol=1e-8, atol=1e-10)


def trace_of_term(truth, i):
    term = truth.design.terms[i]
    kappa, k = dense.relationship_inverse(term), term.n_components
    out = np.zeros((k, k))
    numbers = [(number, level, c) for number, (t, level, c) in enumerate(truth.labels) if t == i]
    for x, level, a in numbers:
        for y, other, b in numbers:
            out[a, b] += kappa[level, other] * truth.covariance[x, y]
    return out


def test_a_singular_matrix_is_refused_by_name(form):
    from dataclasses import replace

    example = models.example("univariate_inbreeding_ignored")  # its second class effect has a level set to 0
    herd, sex, genetic = example.design.terms
    design = replace(example.design, terms=(herd, replace(sex, active=None), genetic))
    with pytest.raises(ModelError, match=r"not positive definite, first at effect (herd|sex) \(trait1\), level number"):
        coefficients(design, [None, None, ((0,),)], [((0,),)]).factor(example.G, example.R)
