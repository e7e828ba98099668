"""What a notebook shows of estimators and results: HTML of their own, with names escaped."""

from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.regressions.notebook import MAX_ROWS, as_html
from mmgibbs.runs.model import MixedModel
from mmgibbs.validation.results import SCHEMA, Validation


class Balanced(HTMLParser):
    """Counts tags, and fails where they are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows = [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def lasso():
    rng = np.random.default_rng(1)
    X = pl.DataFrame(rng.standard_normal((60, 30)), schema=[f"<b{i}>" for i in range(30)])
    y = X["<b0>"].to_numpy() + rng.standard_normal(60)
    with pytest.warns(UserWarning, match="few effective draws|has not mixed|R-hat"):
        return mmgibbs.BayesianLasso(chains=2, burn_in=5, samples=20, seed=1, progress=False).fit(X, y)


def test_a_regression_shows_its_parameters(lasso):
    shown = lasso._repr_html_()
    assert Balanced(shown).rows == MAX_ROWS + 1
    assert "BayesianLasso(chains=2" in shown and "more parameters are in <code>summary()</code>" in shown
    assert "&lt;b0&gt;" in shown and "<b0>" not in shown
    parameter = lasso.summary()["parameter"][0]
    assert str(parameter).replace("<", "&lt;").replace(">", "&gt;") in shown


def test_an_estimator_that_is_not_fitted_shows_its_call():
    for estimator in (mmgibbs.HorseshoeProbit(chains=3), MixedModel(traits="<y>")):
        shown = estimator._repr_html_()
        Balanced(shown)
        assert type(estimator).__name__ in shown and "<table" not in shown and "<y>" not in shown


def test_digits_follow_the_error():
    summary = {
        "parameter": np.array(["a"]), "mean": np.array([1.23456]), "sd": np.array([0.012]), "hpd_low": np.array([1.2]),
        "hpd_high": np.array([np.nan]), "ess_bulk": np.array([1234.5]), "rhat": np.array([1.0]),
    }  # fmt: skip
    shown = as_html("A()", summary, 1)
    assert ">1.235<" in shown and ">1,234<" in shown and ">1.000<" in shown and "nan" not in shown
    assert "more parameters" not in shown


def test_comparisons_and_validations_show_their_text(tmp_path):
    for name in ("a", "b"):
        pl.DataFrame({"id": [f"<{i}>" for i in range(30)], "ebv": range(30)}).write_csv(tmp_path / f"{name}.csv")
    shown = mmgibbs.compare(tmp_path / "a.csv", tmp_path / "b.csv")._repr_html_()
    Balanced(shown)
    assert "correlation 1.0000" in shown
    row = ("kfold", "animal", "", "weight", "accuracy", 0.5, 0.1, None, "folds", 20)
    table = pl.DataFrame([row], schema=SCHEMA, orient="row")
    shown = Validation(table, pl.DataFrame(), {})._repr_html_()
    Balanced(shown)
    assert "accuracy" in shown and "0.50" in shown
