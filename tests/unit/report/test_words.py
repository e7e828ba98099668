"""Words for what was run."""

import pytest

from mmgibbs.report.page import facts
from mmgibbs.report.words import fixed_prior_words, model_equations, model_table, prior_words, scale_words, values_words


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("flat", "flat prior"),
        (None, "flat prior"),
        ({"df": 5.0, "scale": 1.0}, "inverse-Wishart prior with 5 degrees of freedom"),
        ({"h2": "uniform"}, "h2 uniform on (0, 1)"),
        ({"half_t": {"df": 2.0, "scale": None}}, "half-t prior of standard deviations with 2 degrees of freedom"),
    ],
)
def test_every_prior_of_a_covariance_matrix(prior, words):
    assert prior_words(prior) == words


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("flat", "flat prior"),
        ({"variance": 10}, "normal prior with variance 10"),
        ({"variance": {"sick": 10, "milk": 2.5}}, "normal prior with variance 10 for sick and 2.5 for milk"),
        ({"variance": {"sick": 10.0}}, "normal prior with variance 10 for sick; flat for milk"),
    ],
)
def test_every_prior_of_a_fixed_effect(prior, words):
    assert fixed_prior_words(prior, ["sick", "milk"]) == words


def test_a_prior_by_trait_of_the_one_trait_names_it_not():
    assert fixed_prior_words({"variance": {"sick": 10.0}}, ["sick"]) == "normal prior with variance 10"


def test_sums_are_of_what_follows_the_model():
    traits = {
        "milk": {"type": "normal"},
        "sick": {"type": "binary"},
        "cases": {"type": "count"},
        "days": {"type": "censored", "log": True},
        "age": {"type": "censored", "log": False},
    }
    model = {"random": {"animal": {"relationship": "pedigree"}}}
    left = [name for name, _ in model_equations({"traits": traits, "model": model})]
    assert left == ["milk", "liability of sick", "log rate of cases", "log of days", "age"]
    assert scale_words({"milk": traits["milk"]}) == "on the scale of the trait"
    assert scale_words({"sick": traits["sick"]}) == "on the scale of the trait (of sick, of its liability)"


def _residual_words(types, by=None):
    analysis = {
        "traits": {name: {"type": of} for name, of in types.items()},
        "model": {},
        "variances": {"residual": {"by": by, "prior": "flat"}},
    }
    return model_table({"analysis": analysis, "data": {"records": {"used": 3}}}).rows[-1][-1]


def test_residual_variances_of_categories_are_said_to_be_one():
    assert _residual_words({"milk": "normal"}) == "sampled, flat prior"
    assert _residual_words({"sick": "binary"}) == "1 by convention"
    two = _residual_words({"sick": "ordinal", "milk": "normal"})
    assert two == "1 by convention for sick; else sampled, flat prior"
    classes = _residual_words({"sick": "binary"}, by="sex")
    assert classes.startswith("1 by convention in one class of sex; else sampled")


def test_estimates_are_not_said_to_be_sampled():
    analysis = {"traits": {"milk": {"type": "normal"}}, "model": {}, "variances": {"residual": {"prior": "flat"}}}
    assert model_table({"analysis": analysis, "method": "reml"}).rows[-1][-1] == "estimated by REML"
    assert values_words({"analysis": analysis, "method": "reml"}).endswith("with the estimated variance.")
    assert values_words({"analysis": analysis, "method": "blup"}).startswith("BLUP on the scale of the trait;")
    assert values_words({"analysis": analysis}).startswith("Posterior means on the scale of the trait;")


def test_observations_by_what_is_known_of_them():
    data = {"observations": {"milk": 9, "days": 1554}, "observed_as": {"days": {"exact": 812, "right-censored": 742}}}
    shown = dict(facts({"data": data})[0][1])["Observations"]
    assert shown == "milk 9 and days 1,554 (812 exact and 742 right-censored)"
