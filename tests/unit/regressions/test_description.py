"""Every regression says in words and symbols what it is, with its priors, its reference class and its groups."""

import numpy as np
import pytest

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.description import Columns, label, labels, predictors_words
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel
from mmgibbs.regressions.lasso import Lasso
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

N = 40
ILL, BIRTH = np.array(["no", "yes"] * 20), np.array(["assisted", "difficult", "easy", "easy"] * 10)
HERDS = np.array([f"H{i % 5}" for i in range(N)])


def described(plugin, response, columns=("y",), groups=None, of_groups=(), standardise=True, p=2, **options):
    random = np.random.default_rng(4)
    X = read_predictors(random.normal(size=(N, p)), [f"x{i}" for i in range(p)], standardise)
    values = random.normal(size=(5, len(of_groups))) if of_groups else None
    data = RegressionData(X, response, ", ".join(columns), None if groups is None else HERDS, values)
    sampler = plugin.prepare(data, fill_options(plugin.Options, options), Host(1))
    return sampler.describe(Columns(columns, groups, of_groups))


def test_a_horseshoe_probit():
    told = described(HorseshoeProbitModel, ILL, ("ill",), global_scale=0.5)
    assert told.model.startswith("Horseshoe probit: probit regression of ill on 2 predictors, ")
    assert told.equations == ("P(ill = yes) = Φ(α + zβ)",)
    assert told.priors[0] == "β_{j} ~ N(0, τ² λ_{j}²)" and told.priors[2:] == (
        "τ ~ half-Cauchy(0, 0.5)",
        "α ~ N(0, 1000²)",
    )
    slab = described(HorseshoeProbitModel, ILL, slab_scale=2.0, intercept_prior_sd=None)
    assert slab.priors[3:] == ("c⁻² ~ Gamma(2, rate 8)", "p(α) ∝ 1 (flat)")


def test_a_lasso():
    y = np.random.default_rng(1).normal(size=N)
    told = described(Lasso, y, ("weight",))
    assert told.equations == ("weight = α + zβ + e", "e ~ N(0, σ²)")
    assert told.priors[1:3] == ("λ² ~ Gamma(1, rate 1.78)", "p(σ²) ∝ 1 / σ²")
    assert told.model.endswith("which shrink small coefficients by a larger share than large ones.")
    given = described(Lasso, y, penalty=3.0, residual_shape=2.0, residual_scale=1.5)
    assert given.priors[1:3] == ("λ = 3, given", "σ² ~ inverse gamma(2, 1.5)")


def test_the_reference_class_of_a_multinomial_is_the_last():
    told = described(MultinomialPGModel, BIRTH, ("birth",))
    assert told.model == "Multinomial logit: regression of birth, 3 classes, on 2 predictors."
    assert told.equations == ("log [ P(birth = k) / P(birth = easy) ] = α_{k} + zβ_{k}",)
    assert told.priors == ("β_{jk} ~ N(0, variance 10)", "p(α_{k}) ∝ 1 (flat)")
    assert told.where[0].startswith(
        "The reference (baseline) class is easy, whose coefficients are 0; k stands for each other class, assisted and "
        "difficult, "
    )
    tables = described(MultinomialPGModel, BIRTH, prior_precision=[[1.0, 2.0], [1.0, 1.0]])
    assert tables.priors[0] == "β_{jk} normal, with means and precisions as given (prior_mean, prior_precision)"


def test_counts_of_classes_go_by_their_columns():
    counts = np.random.default_rng(2).integers(1, 5, (N, 2))
    told = described(MultinomialPGModel, counts, ("calves", "lambs"), standardise=False, intercept=False, p=1)
    assert told.model == "Binary logit: regression of the counts of calves, lambs, 2 classes, on 1 predictor."
    assert told.equations == ("log [ P(k) / P(lambs) ] = zβ_{k}",) and told.priors == ("β_{jk} ~ N(0, variance 10)",)
    assert told.where[1:] == ("z has the predictor of a record as given.",)


@pytest.mark.parametrize("prior, law", [("cauchy", "Cauchy(0, 2.5)"), ("normal", "N(0, 2.5²)")])
def test_both_priors_of_hamiltonian_monte_carlo(prior, law):
    told = described(MultinomialHMCModel, BIRTH, ("birth",), prior=prior)
    assert told.priors == (f"β_{{jk}} ~ {law}", f"α_{{k}} ~ {law.replace('2.5', '10')}")
    assert told.equations == described(MultinomialPGModel, BIRTH, ("birth",)).equations


def test_groups_are_named_and_counted():
    told = described(HierarchicalSliceModel, ILL, ("ill",), "herd", standardise=False, p=1)
    assert told.equations == ("logit P(ill = yes) = α_{i} + zβ_{i}",)
    assert told.priors == (
        "b_{i} ~ N(Δ, V)",
        "Δ_{j} ~ N(0, 10²)",
        "V ~ inverse Wishart with 5 degrees of freedom and mean I",
    )
    assert told.where[0] == "The groups i are the levels of herd: 5 of them." and "each herd has" in told.model
    assert told.where[-1] == (
        "Δ is population: population[intercept,x0] is the mean of the coefficients of x0 and "
        "population[intercept,intercept] that of the intercepts. V is covariance, of the groups about these means."
    )
    several = described(HierarchicalSliceModel, BIRTH, ("birth",), "herd", ("size",), p=1, covariance_mean=0.5)
    assert several.equations == ("log [ P(birth = k) / P(birth = easy) ] = α_{ik} + zβ_{ik}",)
    assert several.priors[0] == "b_{i} ~ N(Δ'w_{i}, V)" and several.priors[2].endswith("mean 0.5 I")
    assert "w_{i} has a 1 and size of the group." in several.where[2]
    assert several.where[-1].startswith(
        "Δ is population: population[intercept,x0,assisted] is the mean of the coefficients of x0 for assisted where "
        "size is 0, population[z0,x0,assisted] what one unit of size adds to it and "
        "population[intercept,intercept,assisted] that of the intercepts for assisted where size is 0. "
    )
    numbers = described(HierarchicalSliceModel, np.arange(N) % 3 + 1.0, ("score",), "herd", p=1)
    assert "population[intercept,x0,1.0] is the mean of the coefficients of x0 for 1 and" in numbers.where[-1]
    counts = described(HierarchicalSliceModel, np.arange(N) % 4, ("cases",), "herd", family="poisson")
    assert counts.equations == ("log E(cases) = α_{i} + zβ_{i}",)


def test_labels_are_those_of_the_user():
    assert label(1.0) == "1" and label("easy") == "easy" and labels(["a"]) == "a"
    assert labels(list("abcdefghij")) == "a, b, c, d, e, f, g and 3 more"


def test_predictors_say_what_was_done_to_them():
    X = read_predictors(np.random.default_rng(3).normal(5.0, 2.0, size=(N, 3)), None, True)
    assert (
        "the 3 predictors of a record, each centred and divided by its standard deviation. Priors"
        in predictors_words(X)
    )
