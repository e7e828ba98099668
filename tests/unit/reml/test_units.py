"""Units of variances: those of the records about their fixed effects, whatever the starts."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.likelihoods import CLASSES, example_of, likelihood_of, parts
from helpers.mutants import mutant
from reference import dense, models

import mmgibbs.reml.units as module
from mmgibbs.errors import ModelError
from mmgibbs.models.terms import Related
from mmgibbs.reml.elements import free_elements, starting_variances
from mmgibbs.reml.units import model_units

NEAR = 2e-3  # random effects take up a little


def about_fixed_effects(design, trait):
    """(n,) residuals of ordinary least squares of one trait, NaN where it is missing."""
    y, seen = design.y[:, trait], ~np.isnan(design.y[:, trait])
    X = [
        dense.incidence(term, design.n_traits)[:, trait]
        for term in design.terms
        if term.kind == "fixed" and term.prior_precision is None
    ]
    W, root = np.hstack(X), np.sqrt(design.weight)[:, None]
    b = np.linalg.lstsq((root * W)[seen], (root[:, 0] * y)[seen], rcond=None)[0]
    return y - W @ b


def against_least_squares(example, units):
    likelihood = likelihood_of(example)[0]
    design, share = example.design, likelihood.n_observations / likelihood.freedom
    of_record = design.class_of_pattern[design.pattern]
    for t in range(design.n_traits):
        squares, w = about_fixed_effects(design, t) ** 2, design.weight
        seen = ~np.isnan(squares)
        for c in range(len(units.R)):
            own = seen & (of_record == c)
            expected = squares[own].sum() / (1 / w[own]).sum() * share
            np.testing.assert_allclose(units.R[c, t] ** 2, expected, rtol=NEAR, err_msg=f"{c} {t}")
        for term, unit in zip(design.terms, units.G, strict=True):
            assert (unit is None) == (term.kind == "fixed")
            for component in np.flatnonzero(term.component_trait == t) if unit is not None else ():
                effect = term.effects[term.component_effect[component]]
                z = 1.0
                if effect.covariates is not None:
                    first = np.searchsorted(term.regressor_effect, term.component_effect[component])
                    z = effect.covariates[effect.level >= 0, term.component_regressor[component] - first]
                expected = (w * squares)[seen].sum() / w[seen].sum() * share / np.mean(np.square(z))
                np.testing.assert_allclose(unit[component] ** 2, expected, rtol=NEAR, err_msg=f"{term.name} {t}")


@pytest.mark.parametrize("name", ["univariate_animal", "direct_maternal", "bivariate_missing", CLASSES])
def test_records_about_their_fixed_effects(name):
    example = example_of(name)
    against_least_squares(example, model_units(likelihood_of(example)[0]))


def test_covariates_are_divided_by_their_size():
    example = models.example("random_regression")
    against_least_squares(example, model_units(likelihood_of(example)[0]))
    wrong = mutant(module, "np.sum(effect.covariates[met] ** 2, axis=0)", "np.ones(effect.n_regressors)")
    with pytest.raises(AssertionError):
        against_least_squares(example, wrong.model_units(likelihood_of(example)[0]))


def test_weights_are_in_the_unit_of_residuals_alone():
    """Weights of 1 / SE^2 say nothing of the variance of breeding values."""
    example = models.example("univariate_animal")
    heavy = replace(example, design=replace(example.design, weight=1e6 * example.design.weight))
    one, million = (model_units(likelihood_of(e)[0]) for e in (example, heavy))
    np.testing.assert_allclose(million.G[1], one.G[1], rtol=NEAR)
    np.testing.assert_allclose(million.R**2, 1e6 * one.R**2, rtol=NEAR)


def test_without_a_factor_the_units_are_those_of_the_starts(monkeypatch):
    example = models.example("univariate_animal")
    likelihood = likelihood_of(example)[0]

    def refused(at):
        raise ModelError("C has no factor")

    monkeypatch.setattr(likelihood, "evaluate", refused)
    units = model_units(likelihood)
    assert (units.R == 0).all() and (units.G[1] == 0).all()


def test_starts_do_not_enter():
    example = models.example("direct_maternal")
    far = replace(example, G=[None if g is None else 1e6 * g for g in example.G], R=1e-6 * example.R)
    of = [likelihood_of(e)[1].scale for e in (example, far)]
    np.testing.assert_array_equal(*of)


def test_a_trait_that_the_fixed_effects_fit_has_the_unit_of_its_start():
    example = models.example("univariate_animal")
    X = dense.incidence(example.design.terms[0], 1)[:, 0]
    fitted = replace(example.design, y=X @ np.arange(1.0, 1.0 + X.shape[1])[:, None])
    likelihood, _, _ = likelihood_of(example)
    units = module.model_units(type(likelihood)(fitted, [None, ((0,),)], [((0,),)]))
    assert (units.R == 0).all() and (units.G[1] == 0).all()
    covariances, residual = parts(example)
    elements = free_elements(fitted, covariances, residual, units)
    np.testing.assert_allclose(elements.scale, elements.vector(starting_variances(covariances, residual)))


def test_relationships_known_by_their_inverse_are_divided_by_their_size():
    """K a thousand times as large leaves variances a thousandth as large."""
    example = models.example("univariate_animal")
    term = example.design.terms[1]
    inverse = dense.relationship_inverse(term)

    def unit(factor):
        related = replace(term, prior=Related(models.user_inverse(inverse / factor)))
        design = replace(example.design, terms=(example.design.terms[0], related))
        return likelihood_of(replace(example, design=design))[1].scale[0]

    known = likelihood_of(example)[1].scale[0]
    expected = known / np.mean(np.diag(np.linalg.inv(inverse)))
    np.testing.assert_allclose([unit(1.0), 1000.0 * unit(1000.0)], expected, rtol=NEAR)
