"""What a notebook shows of estimators and results: HTML of their own, with names escaped."""

import html
import inspect
import json
import typing
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run

import mmgibbs
from mmgibbs.association import results
from mmgibbs.association.results import Association
from mmgibbs.config import Analysis
from mmgibbs.errors import ConfigError
from mmgibbs.regressions.notebook import MAX_ROWS, as_html
from mmgibbs.runs.model import MixedModel
from mmgibbs.runs.predict import Predicted
from mmgibbs.runs.several import Scenario
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


def test_calls_and_digits_of_estimators():
    for estimator in (mmgibbs.HorseshoeProbit(chains=3), MixedModel(traits="<y>")):
        shown = estimator._repr_html_()
        Balanced(shown)
        assert type(estimator).__name__ in shown and "<table" not in shown and "<y>" not in shown
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


def _returned(function):
    """The classes of what a public function returns; of a list, of what is in it."""
    kind = typing.get_type_hints(function)["return"]
    return set(typing.get_args(kind)) or {kind}


def test_everything_that_the_public_functions_return_has_html():
    public = [getattr(mmgibbs, name) for name in mmgibbs.__all__]
    classes = {kind for kind in public if inspect.isclass(kind) and not issubclass(kind, Exception)}
    classes |= set().union(*(_returned(function) for function in public if inspect.isfunction(function)))
    assert len(classes) > 12
    # Some are what is asked, not what comes out; of `check`, see below.
    asked = {Analysis, mmgibbs.Genome, mmgibbs.Matings, mmgibbs.ValidationPlan}
    assert [kind for kind in classes - {dict} - asked if not hasattr(kind, "_repr_html_")] == []


def test_simulations_drafts_checks_and_pedigrees_show_what_their_commands_print(tmp_path):
    made = mmgibbs.simulate(tmp_path / "<calves>", animals=300, years=5)
    draft = mmgibbs.init(
        made.directory / "phenotypes.csv", pedigree=made.directory / "pedigree.csv", traits="yearling_weight",
        output=tmp_path / "<draft>.yaml",
    )  # fmt: skip
    counts = mmgibbs.check(draft.path)
    assert isinstance(counts, dict) and json.loads(json.dumps(counts)) == counts
    facts = mmgibbs.describe_pedigree(made.directory / "pedigree.csv")
    expected = (
        (made, f"{made.text}\nwrote "),
        (draft, "written to "),
        (counts, f"{counts['equations']:,} equations"),
        (facts, "Effective population size"),
    )
    for value, text in expected:
        shown = value._repr_html_()
        Balanced(shown)
        assert html.escape(text) in shown and "<calves>" not in shown and "<draft>" not in shown


def test_predictions_associations_and_scenarios_show_their_notes(tmp_path):
    values = pl.DataFrame({"level": ["<a>", "b"], "mean": [1.0, 2.0]})
    shown = Predicted(values, ("warning: <few> SNPs", "no sd"))._repr_html_()
    assert "genomic breeding values of 2 animals" in shown
    assert shown.count("<li") == 2 and shown.count('style="color') == 1
    assert "<few>" not in shown and "<a>" not in shown and "&lt;a&gt;" in shown
    failed = Scenario("<one>", None, ConfigError("expected <x>"))._repr_html_()
    assert "&lt;one&gt;: expected &lt;x&gt;" in failed
    result = mmgibbs.open_run(write_run(tmp_path / "<run>"))
    shown = Scenario("ignore", result)._repr_html_()
    Balanced(shown)
    assert "ignore" in shown and result._repr_html_() in shown


def test_an_association_shows_its_lines(monkeypatch):
    monkeypatch.setattr(
        results, "describe_association", lambda association: [f"{len(association.values)} <SNPs> tested"]
    )
    shown = Association(pl.DataFrame({"snp": ["a"]}), {}, ("warning: few",), None)._repr_html_()
    Balanced(shown)
    assert "1 &lt;SNPs&gt; tested" in shown and "warning: few" in shown
