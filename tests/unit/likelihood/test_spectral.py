"""The spectral form of the restricted likelihood against the form by a sparse factor."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.likelihoods import elsewhere, likelihood_of, parts
from helpers.mutants import mutant
from reference import models

import mmgibbs.likelihood.choice as choice
import mmgibbs.likelihood.spectral as module
from mmgibbs.engines.direct.standard_errors import original_scale_sd
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.models.design import CentringShift, Rescale
from mmgibbs.models.relationships.genomic import Genomic
from mmgibbs.reml.elements import free_elements
from mmgibbs.reml.information import average_information, gradient
from mmgibbs.reml.units import model_units, point_units


def made(traits, relationship, n=30, covariate=False, unmet=0, weights=True):
    """An example: a class, a fixed covariate, one random term of 12 levels, of which 2 have no records."""
    rng, q = np.random.default_rng(5), 12
    every = tuple(range(traits))
    level = rng.integers(0, q - 2, n)
    level[:unmet] = -1
    z = rng.uniform(0.5, 2.0, (n, 1)) if covariate else None
    effect = models.Effect("", level.astype(np.int32), every, z)
    x = models.Effect("", np.zeros(n, np.int32), every, rng.standard_normal((n, 1)))
    terms = [
        models.class_term("herd", np.arange(n) % 3, 3, every),
        models.Term("x", models.Levels((x,), 1)),
        models.random_term("line", [effect], relationship(rng, q), q),
    ]
    G = np.diag(np.arange(1.0, traits + 1)) + 0.4
    w = rng.uniform(0.5, 3.0, n) if weights else None
    variances = [None, None, G], np.eye(traits) + 0.2
    return models.Example("made", models.with_records(rng, n, terms, *variances, weight=w), *variances)


def dense_inverse(rng, q):
    S = rng.standard_normal((q, 2 * q))
    return np.linalg.inv(S @ S.T / (2 * q) + 0.1 * np.eye(q))


def genomic(rng, q):
    inverse = dense_inverse(rng, q)
    return Genomic(models.DenseBlock(np.arange(q, dtype=np.int32), inverse), np.diag(np.linalg.inv(inverse)).copy(), {})


def pedigree(rng, q):
    return models.pedigree_relationship(*models.looped_pedigree(rng, q, 3))


KINDS = {
    "identity": lambda rng, q: models.Identity(q),
    "pedigree": pedigree,
    "genomic": genomic,
    "user's inverse": lambda rng, q: models.user_inverse(dense_inverse(rng, q)),
}
CASES = {
    **{f"{name}, {traits}": (traits, kind, {}) for name, kind in KINDS.items() for traits in (1, 2)},
    "covariate": (2, genomic, {"covariate": True, "unmet": 4}),
    "without weights": (3, pedigree, {"weights": False}),
}


def example_of(case):
    traits, kind, options = CASES[case]
    return made(traits, kind, **options)


def both_forms(example, source=module):
    sparse, _, start = likelihood_of(example)
    known = source.one_relationship(example.design)
    return sparse, source.SpectralLikelihood(known), start


def elements_of(example, likelihood):
    return free_elements(example.design, *parts(example), model_units(likelihood))


@pytest.mark.parametrize("case", CASES)
def test_both_forms_agree(case):
    example = example_of(case)
    sparse, spectral, start = both_forms(example)
    assert (spectral.freedom, spectral.n_observations) == (sparse.freedom, sparse.n_observations)
    elements = elements_of(example, sparse)
    # an unknown diagonal of K is that of the levels with records in one form, of some levels in the other
    np.testing.assert_allclose(
        elements_of(example, spectral).scale, elements.scale, rtol=0.1 if "user" in case else 1e-3
    )
    for variances in (start, elsewhere(start)):
        a, b = sparse.evaluate(variances), spectral.evaluate(variances)
        np.testing.assert_allclose(b.log_likelihood, a.log_likelihood, rtol=1e-11)
        np.testing.assert_allclose(gradient(b, elements), gradient(a, elements), rtol=1e-8, atol=1e-9)
        information = average_information(a, elements)
        np.testing.assert_allclose(average_information(b, elements), information, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(b.residuals, a.residuals, rtol=1e-8, atol=1e-9)
        for of_b, of_a in zip(b.solutions, a.solutions, strict=True):
            np.testing.assert_allclose(of_b, of_a, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(b.inverse_diagonal, a.inverse_diagonal, rtol=1e-8)
        for of_b, of_a in zip(point_units(b).G, point_units(a).G, strict=True):
            assert (of_b is None) == (of_a is None)


@pytest.mark.parametrize("case", ["pedigree, 2", "covariate"])
def test_errors_on_the_users_scale(case):
    """A covariate that was centred and scaled: what its slope and the classes are on the user's scale."""
    example = example_of(case)
    means = np.array([[0.7]])
    shifts = tuple(CentringShift(0, t, 1, (t,), np.zeros(3, np.int32), means) for t in range(example.design.n_traits))
    scaled = tuple(Rescale(1, (t,), np.array([[1.7]])) for t in range(example.design.n_traits))
    example = replace(example, design=replace(example.design, rescale=scaled, shifts=shifts))
    sparse, spectral, start = both_forms(example)
    of_sparse, of_spectral = (
        original_scale_sd(example.design, point.inverse_diagonal, point.solve_equations)
        for point in (sparse.evaluate(start), spectral.evaluate(start))
    )
    for a, b in zip(of_sparse, of_spectral, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-8)
    assert of_sparse[1][0, 0] != pytest.approx(
        np.sqrt(sparse.evaluate(start).inverse_diagonal[3 * example.design.n_traits])
    )


MUTANTS = {
    "without log|X'X|": ("- self.design.n_traits * log_gram", "- 0.0 * log_gram"),
    "without weights": ("self.constant = self.log_weights", "self.constant = 0.0"),
    "fixed effects in the directions": ("vectors = vectors[:, p:]", "vectors = vectors[:, :-p]"),
}


@pytest.mark.parametrize("right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_likelihood_is_seen(right, wrong):
    sparse, spectral, start = both_forms(example_of("genomic, 2"), mutant(module, right, wrong))
    assert abs(spectral.evaluate(start).log_likelihood - sparse.evaluate(start).log_likelihood) > 1e-3


def several_parents():
    """One random term of one effect on every trait, that of the parents of crosses."""
    design = models.example("diallel").design
    return replace(design, terms=design.terms[:2])


def own_fixed_effects():
    """Of one trait, in a class."""
    example, active = example_of("genomic, 2"), np.ones((3, 2), bool)
    active[2, 1] = False
    herd = replace(example.design.terms[0], active=active)
    return replace(example.design, terms=(herd, *example.design.terms[1:]))


SPARSE = ["bivariate_missing", "direct_maternal", "random_regression", "fixed_groups", "same_effect_twice"]


OTHERS = [*(models.example(name).design for name in SPARSE), several_parents(), own_fixed_effects()]


@pytest.mark.parametrize("design", OTHERS)
def test_other_designs_keep_the_sparse_form(design):
    assert module.one_relationship(design) is None


def test_fixed_effects_that_depend_on_each_other_keep_the_sparse_form():
    example = example_of("genomic, 1")
    herd = replace(example.design.terms[0], name="again")
    design = replace(example.design, terms=(*example.design.terms, herd))
    with pytest.raises(np.linalg.LinAlgError):
        module.SpectralLikelihood(module.one_relationship(design))


def test_a_dense_relationship_is_diagonalised_and_a_sparse_one_is_not():
    for kind, form in ((genomic, module.SpectralLikelihood), (KINDS["identity"], RestrictedLikelihood)):
        example = made(2, kind, n=14)
        covariances, residual = parts(example)
        chosen = choice.restricted_likelihood(example.design, covariances, residual)
        assert isinstance(chosen, form), kind


def test_a_matrix_without_an_inverse_is_named():
    example = example_of("genomic, 2")
    singular = Variances([None, None, np.ones((2, 2))], np.eye(2)[None])
    for likelihood in both_forms(example)[:2]:
        with pytest.raises(ModelError, match=r"variances\.line: expected a positive definite covariance matrix"):
            likelihood.evaluate(singular)
        with pytest.raises(ModelError, match=r"variances\.residual: .* is not above 1e-12 of its variance"):
            likelihood.evaluate(Variances([None, None, np.eye(2)], np.ones((1, 2, 2))))
