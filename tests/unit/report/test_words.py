"""Words for what was run."""

import pytest

from mmgibbs.report.words import fixed_prior_words, model_table, prior_words


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("flat", "flat prior"),
        (None, "flat prior"),
        ({"df": 5, "scale": 1.0}, "inverse-Wishart prior with 5 degrees of freedom"),
        ({"h2": "uniform"}, "h2 uniform on (0, 1)"),
        ({"half_t": {"df": 2, "scale": None}}, "half-t prior of standard deviations with 2 degrees of freedom"),
    ],
)
def test_every_prior_of_a_covariance_matrix(prior, words):
    assert prior_words(prior) == words


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("flat", "flat prior"),
        ({"variance": 10}, "normal prior with variance 10"),
        ({"variance": {"sick": 10, "milk": 2.5}}, "normal prior with variance 10 for sick, 2.5 for milk"),
    ],
)
def test_every_prior_of_a_fixed_effect(prior, words):
    assert fixed_prior_words(prior).startswith(words)


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
