"""Priors of covariance matrices against numerical integration over their auxiliary variables."""

import numpy as np
import pytest
from reference import dense
from scipy import special, stats

from mmgibbs.models.priors import HalfT, InverseWishart, UniformHeritability
from mmgibbs.models.priors.base import describe_degrees
from mmgibbs.models.priors.mixture import Mixture

LOG_W = np.linspace(-30, 30, 6001)
MIXTURES = {
    "half-t": HalfT(2.5, np.array([0.7, 1.8])).mixture,
    "uniform heritability": UniformHeritability().mixture,
    "gammas": Mixture(3.0, 1.4, 0.8, np.array([0.5, 2.0])),
    "gamma of one": Mixture(3.0, 1.4, 0.8, np.array([0.5]), is_of_one=True),
}


def points(k, n=4):
    rng = np.random.default_rng(3)
    return [L @ L.T for L in rng.standard_normal((n, k, k + 2)).copy()]


def value(density, G):
    """log p(G) of a LogDensity."""
    inverse, L = np.linalg.inv(G), np.linalg.cholesky(G)
    t = np.diag(G) if density.of_variances else np.diag(inverse)
    logs = density.exponents @ np.log(density.factors * t + density.offsets) if density.exponents.any() else 0.0
    return -density.powers @ np.log(np.diag(L)) - logs - 0.5 * np.trace(density.scale @ inverse)


def integrated(mixture, G):
    """log of the integral over w of IW(G; nu + k - 1, 2 factor diag(w)) p(w): given G the w_i are independent."""
    k, inverse = len(G), np.linalg.inv(G)
    out = -0.5 * (mixture.nu + 2 * k) * np.linalg.slogdet(G)[1]
    for i in range(k):
        w = np.exp(LOG_W)
        terms = 0.5 * (mixture.nu + k - 1) * LOG_W - mixture.factor * w * inverse[i, i]
        terms += stats.gamma.logpdf(w, mixture.shape, scale=mixture.unit[i]) + LOG_W
        out += special.logsumexp(terms)
    return out


@pytest.mark.parametrize("name", MIXTURES)
def test_density_without_the_auxiliary_variables(name):
    mixture = MIXTURES[name]
    k = len(mixture.unit)
    density = mixture.log_density([tuple(range(k))])
    differences = [value(density, G) - integrated(mixture, G) for G in points(k)]
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)


def test_density_of_an_inverse_wishart():
    """Block by block, the scale of each that of its components."""
    S = np.array([[2.0, 0.3, 0.4], [0.3, 1.5, 0.2], [0.4, 0.2, 1.0]])
    blocks = [(0, 2), (1,)]
    prior = InverseWishart(6.0, S)
    within = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    differences = []
    for G in points(3):
        expected = sum(dense.log_inverse_wishart(G[np.ix_(b, b)], 6.0, S[np.ix_(b, b)]) for b in blocks)
        differences.append(value(prior.log_density(blocks), G * within) - expected)
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", MIXTURES)
def test_scale_of_a_component(name):
    """p(G, a) and the Jacobians of a move of G and a together are g^M exp(-c g^2 / 2)."""
    mixture = MIXTURES[name]
    k = len(mixture.unit)
    (G,), a, j = points(k, 1), np.linspace(0.6, 1.7, k), k - 1
    power, c = mixture.scale_exponents(a, j)

    def log_density(g):
        D = np.eye(k)
        D[j, j] = g
        moved = mixture.scaled(a, j, g)
        df, S = mixture.inverse_wishart(moved)
        out = stats.invwishart.logpdf(D @ G @ D, df + k, S) + (k + 1) * np.log(g)
        w = 1 / moved if mixture.is_inverse else moved
        out += (
            stats.gamma.logpdf(w, mixture.shape, scale=mixture.unit).sum()
            - 2 * mixture.is_inverse * np.log(moved).sum()
        )
        return out + (-2 if mixture.is_inverse else 2) * np.log(g)

    differences = [log_density(g) - (power * np.log(g) - 0.5 * c * g**2) for g in (0.5, 1.0, 1.9)]
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (np.arange(1, 9), "1, 2, 3, 4, 5, 6, 7 and 8"),
        (np.arange(1, 10), "1, 2, 3, 4, 5, 6, 7 and 2 more"),
    ],
)
def test_many_scales_are_counted(scale, words):
    assert describe_degrees(2.0, scale) == f"2 degrees of freedom and scales {words}"
