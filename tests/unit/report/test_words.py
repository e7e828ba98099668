"""Words for what was run."""

import pytest

from mmgibbs.report.words import prior_words


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
