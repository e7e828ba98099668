"""Structured covariance matrices: derivatives, scales, and the matrix nearest another one."""

import numpy as np
import pytest

from mmgibbs.models.structures.antedependence import Antedependence
from mmgibbs.models.structures.base import StructureForm
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry, Correlated
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.loadings import principal_axes
from mmgibbs.models.structures.reduced_rank import ReducedRank
from mmgibbs.models.structures.shrunken_factors import ShrunkenFactors
from mmgibbs.models.structures.unstructured import Diagonal

K = 5
SIZE = np.array([1.0, 10.0, 3.0, 0.1, 50.0])


def structures(equal, k=K, size=SIZE, nu=2.0, factors=2):
    return {
        "compound_symmetry": CompoundSymmetry(k, equal, size, nu),
        "ar1": Autoregressive(k, equal, size, nu),
        "ar1_of_numbers": Autoregressive(k, equal, size, nu, (1.0, 2.0, 4.0, 9.0, 9.5)[:k]),
        "antedependence": Antedependence(k, equal, size, size, nu),
        "factor_analytic": FactorAnalytic(k, factors, equal, size, size, nu),
        "shrunken_factors": ShrunkenFactors(k, factors, equal, size, size, nu),
        "reduced_rank": ReducedRank(k, factors, size),
    }


CASES = [(name, equal) for equal in (False, True) for name in structures(False) if not equal or name != "reduced_rank"]


def parameters(structure, seed=1):
    phi = 0.5 * np.random.default_rng(seed).standard_normal(len(structure.free))
    phi[~structure.free] = 0.0
    return phi


@pytest.mark.parametrize("name, equal", CASES)
def test_derivatives_are_differences(name, equal):
    structure = structures(equal)[name]
    phi, h = parameters(structure), 1e-6
    steps = np.eye(len(phi)) * h
    differences = [(structure.matrix(phi + d) - structure.matrix(phi - d)) / (2 * h) for d in steps]
    np.testing.assert_allclose(structure.derivatives(phi), differences, atol=1e-7)


@pytest.mark.parametrize("name, equal", CASES)
def test_scales_of_components_are_scales_of_parameters(name, equal):
    structure = structures(equal)[name]
    phi, scale = parameters(structure), np.full(K, 7.0) if equal else SIZE
    expected = structure.matrix(phi) * scale[:, None] * scale
    np.testing.assert_allclose(structure.matrix(structure.rescaled(phi, scale)), expected)


@pytest.mark.parametrize("name, equal", [case for case in CASES if case[0] != "reduced_rank"])
def test_the_jacobian_of_scales_is_the_determinant(name, equal):
    """Of (scales, other parameters) -> phi: d phi / d scale is compared at two scales, by differences."""
    structure = structures(equal)[name]
    phi = parameters(structure, 3)
    groups = np.ones((1, K)) if equal else np.eye(K)
    first = structure.n_loadings if isinstance(structure, FactorAnalytic) else 0
    others = np.delete(np.arange(len(phi)), np.arange(first, first + len(groups)))

    def image(values):
        """phi of the scales and the other parameters, at which the logarithms of the scales are 0."""
        start = np.zeros(len(phi))
        start[others] = values[len(groups) :]
        return structure.rescaled(start, values[: len(groups)] @ groups)

    def log_determinant(scale):
        at = np.concatenate([scale, phi[others]])
        h = 1e-5
        J = np.array([(image(at + d) - image(at - d)) / (2 * h) for d in np.eye(len(at)) * h])
        return np.linalg.slogdet(J)[1]

    one, two = np.full(len(groups), 1.0), np.linspace(0.6, 1.7, len(groups)) if not equal else np.array([1.7])
    expected = log_determinant(two) - log_determinant(one)
    found = structure.log_jacobian(two @ groups) - structure.log_jacobian(one @ groups)
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name, equal", CASES)
def test_the_nearest_matrix_of_the_structure_is_itself(name, equal):
    structure = structures(equal)[name]
    scale = np.full(K, 7.0) if equal else SIZE
    G = structure.matrix(structure.rescaled(parameters(structure), scale))
    np.testing.assert_allclose(structure.matrix(structure.fit(G)) / np.sqrt(np.outer(np.diag(G), np.diag(G))),
                               G / np.sqrt(np.outer(np.diag(G), np.diag(G))), atol=1e-5)  # fmt: skip


def test_known_correlations():
    phi = np.zeros(K + 1)
    np.testing.assert_allclose(structures(False)["compound_symmetry"].matrix(phi)[0, 1:], 0.375)  # middle of -1/4 to 1
    np.testing.assert_allclose(structures(False)["ar1"].matrix(phi), np.eye(K))
    phi[-1] = np.log((0.995 + 0.5) / (0.995 - 0.5))
    lag = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    np.testing.assert_allclose(structures(False)["ar1"].matrix(phi), 0.5**lag)
    of_numbers = structures(False)["ar1_of_numbers"]
    rho, at = of_numbers.named(phi, tuple("abcde"))["rho"], np.array([1.0, 2, 4, 9, 9.5])
    np.testing.assert_allclose(of_numbers.matrix(phi), rho ** np.abs(np.subtract.outer(at, at)))
    assert rho ** (8.5 / 4) == pytest.approx(of_numbers.rho(phi))  # over the mean distance


def test_ante_dependence_is_a_chain_of_regressions():
    """cov(u_1, u_3) = b_2 b_3 v_1, and the precision is tridiagonal."""
    structure = structures(False)["antedependence"]
    phi = parameters(structure, 2)
    G, b, v = structure.matrix(phi), phi[K:], np.exp(2 * phi[:K])
    assert G[0, 2] == pytest.approx(b[0] * b[1] * v[0])
    assert G[1, 1] == pytest.approx(v[1] + b[0] ** 2 * v[0])
    np.testing.assert_allclose(np.triu(np.linalg.inv(G), 2), 0.0, atol=1e-10)


def test_two_components_of_equal_variance_have_one_form():
    """Whatever the kind, they are one variance and one correlation; no order of theirs is needed."""

    class OfALaterVersion(Correlated):
        kind = "of_a_later_version"

    expected = StructureForm("compound_symmetry", 2, equal=True)
    for kind in (CompoundSymmetry, Autoregressive, OfALaterVersion):
        assert kind.simplify(StructureForm(kind.kind, 2, equal=True)) == expected
        assert kind.simplify(StructureForm(kind.kind, 2)) == StructureForm("full", 2)


def test_a_diagonal_matrix_has_no_methods_of_a_full_one():
    with pytest.raises(TypeError, match="abstract"):
        Diagonal()


def test_reported_loadings_are_principal_axes():
    rng = np.random.default_rng(5)
    L = rng.standard_normal((3, 2, K, 2))
    turned = principal_axes(L)
    np.testing.assert_allclose(turned @ np.swapaxes(turned, -1, -2), L @ np.swapaxes(L, -1, -2), atol=1e-12)
    products = np.swapaxes(turned, -1, -2) @ turned
    np.testing.assert_allclose(products[..., 0, 1], 0.0, atol=1e-12)
    assert np.all(products[..., 0, 0] >= products[..., 1, 1])
    structure = structures(False)["factor_analytic"]
    phi = structure.phi(L[0, 0], SIZE**2)
    named = structure.named(phi[None], tuple("abcde"))
    assert named["specific[b]"] == pytest.approx(100.0)
    common = np.sum(L[0, 0][1] ** 2)
    assert named["explained[b]"] == pytest.approx(common / (common + 100.0))
    assert named["explained[1]"] + named["explained[2]"] == pytest.approx(
        np.sum(L[0, 0] ** 2) / np.trace(structure.matrix(phi))
    )
