"""Which models are nested in which, whatever their effects are called; and what cannot be judged."""

import copy
import re
from pathlib import Path

import polars as pl
import pytest

from mmgibbs.report.finished import Finished
from mmgibbs.report.likelihood_ratio import LikelihoodRatio, likelihood_ratio
from mmgibbs.report.nested import Nested, NotNested, Unknown, fixed_effects_key, nested

ANIMAL = {"level": "animal", "traits": ["y"], "unknown_level": "error"}


def term(relationship="pedigree", **effects):
    """One effect without a name, or several with names."""
    if not effects:
        return {"relationship": relationship, **ANIMAL}
    return {"relationship": relationship, "effects": {name: ANIMAL | keys for name, keys in effects.items()}}


def legendre(degree, column="age", span=None):
    return {"legendre": {"column": column, "degree": degree, "range": span}}


def model(random, names, fixed_at=None, by=None, log_likelihood=-100.0, fixed=None):
    """A run by REML: names of its variances and covariances, and values of those that are not estimated."""
    rows = [{"parameter": name, "mean": 1.0, "sd": 0.1} for name in names]
    rows += [{"parameter": name, "mean": value, "sd": 0.0} for name, value in (fixed_at or {}).items()]
    analysis = {
        "data": {}, "traits": {"y": {}},
        "model": {"random": random, "fixed": fixed or {}, "intercept": "auto"},
        "variances": {"residual": {"by": by}},
    }  # fmt: skip
    record = {"method": "reml", "analysis": analysis, "log_likelihood": log_likelihood, "degrees_of_freedom": 90}
    return Finished(Path("."), record | {"data": {"records": {"read": 100}}}, pl.DataFrame(rows))


R = "residual.var[y]"
INTERCEPT = model({"animal": term()}, ["animal.var[y]", R])
NAMED = model({"genetic": term(mean={})}, ["genetic.var[mean:y]", R])
OF_LINE = ["curve.var[rr.0:y]", "curve.cov[rr.0:y,rr.1:y]", "curve.var[rr.1:y]", R]
LINE = model({"curve": term(rr=legendre(1))}, OF_LINE, log_likelihood=-96.0)
DIAGONAL = model({"curve": term(rr=legendre(1))}, ["curve.var[rr.0:y]", "curve.var[rr.1:y]", R])
QUADRATIC = model(
    {"rr": term(a=legendre(2))},
    [f"rr.var[a.{i}:y]" for i in range(3)] + [f"rr.cov[a.{i}:y,a.{j}:y]" for i in range(3) for j in range(i)] + [R],
)
OF_SLOPE = ["g.var[one:y]", "g.cov[one:y,slope.0:y]", "g.var[slope.0:y]", R]
SLOPE = model({"g": term(one={}, slope={"covariates": ["age"]})}, OF_SLOPE)
APART = model({"g": term(), "s": term(rr={"covariates": ["age"]})}, ["g.var[y]", "s.var[rr.0:y]", R])
COLUMNS = model({"g": term(rr={"covariates": ["one", "age"]})}, ["g.var[rr.0:y]", "g.var[rr.1:y]", R])
DAM = model({"dam": {"relationship": "identity", **ANIMAL, "level": "dam"}}, ["dam.var[y]", R])
NOTHING = model({}, [R])
FIXED = model({"animal": term()}, [R], {"animal.var[y]": 2.0})
ON_AGE = model({"s": term(rr={"covariates": ["age"]})}, ["s.var[rr.0:y]", R])


@pytest.mark.parametrize(
    ("small", "large", "lacking", "variances"),
    [
        (NOTHING, INTERCEPT, ("animal.var[y]",), 1),
        (INTERCEPT, LINE, ("curve.cov[rr.0:y,rr.1:y]", "curve.var[rr.1:y]"), 1),
        (NAMED, LINE, ("curve.cov[rr.0:y,rr.1:y]", "curve.var[rr.1:y]"), 1),
        (DIAGONAL, LINE, ("curve.cov[rr.0:y,rr.1:y]",), 0),
        (LINE, QUADRATIC, ("rr.var[a.2:y]", "rr.cov[a.2:y,a.0:y]", "rr.cov[a.2:y,a.1:y]"), 1),
        (INTERCEPT, QUADRATIC, tuple(QUADRATIC.summary["parameter"][1:6]), 2),
        (INTERCEPT, SLOPE, ("g.cov[one:y,slope.0:y]", "g.var[slope.0:y]"), 1),
        (APART, SLOPE, ("g.cov[one:y,slope.0:y]",), 0),
        (INTERCEPT, NAMED, (), 0),
    ],
)
def test_nested(small, large, lacking, variances):
    found = nested(small, large)
    assert isinstance(found, Nested) and sorted(found.lacking) == sorted(lacking)
    assert found.variances == variances and found.equal == 0
    if lacking:
        assert not isinstance(nested(large, small), Nested)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (DAM, INTERCEPT, "dam is in one of them alone, or related in another way"),
        (INTERCEPT, DAM, "animal is in one of them alone"),
        (model({"animal": term("identity")}, ["animal.var[y]", R]), INTERCEPT, "related in another way"),
        (LINE, INTERCEPT, "curve has the covariate age that the other model lacks"),
        (LINE, DIAGONAL, "is 0 in one of them"),
        (SLOPE, APART, "the covariate age that the other model lacks"),
        (INTERCEPT, FIXED, "animal.var\\[y\\] is fixed in one of them"),
        (NOTHING, FIXED, "is fixed in one model, and the other lacks"),
    ],
)
def test_not_nested(a, b, why):
    found = nested(a, b)
    assert isinstance(found, NotNested)
    assert re.search(why, found.why), found.why


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (INTERCEPT, COLUMNS, "whether the covariates of g have an intercept of animal among them"),
        (ON_AGE, LINE, "the covariate age of s among them"),
        (model({"s": term(rr=legendre(1, span=[0, 9]))}, ["s.var[rr.0:y]", "s.var[rr.1:y]", R]), QUADRATIC, "age"),
    ],
)
def test_what_cannot_be_judged_is_said(a, b, why):
    found = nested(a, b)
    assert isinstance(found, Unknown) and why in found.why
    said = likelihood_ratio(a, b)
    assert said.startswith("no test: whether one model is nested in the other cannot be judged: ")


def test_residual_classes():
    """Two variances that are equal in the smaller model: inside, not on the boundary."""
    classes = model({"animal": term()}, ["animal.var[y]", "residual.var[y|1]", "residual.var[y|2]"], by="sex")
    assert nested(INTERCEPT, classes) == Nested((), 0, 1)
    assert isinstance(nested(classes, INTERCEPT), NotNested)
    other = model({"animal": term()}, ["animal.var[y]", "residual.var[y|a]", "residual.var[y|b]"], by="herd")
    assert nested(other, classes) == Unknown("whether the classes of sex divide those of herd")
    assert isinstance(nested(classes, classes), Nested)
    test = likelihood_ratio(INTERCEPT, classes)
    assert isinstance(test, LikelihoodRatio) and (test.variances, test.covariances, test.equal) == (0, 1, 1)


def test_correlated_residuals():
    """Two models with the same correlations of residuals are compared, others are not."""
    plots = copy.deepcopy(INTERCEPT), copy.deepcopy(NOTHING)
    for run in plots:
        run.record["analysis"]["variances"]["residual"]["relationship"] = {"kind": "ar1", "row": "row"}
    assert isinstance(nested(plots[1], plots[0]), Nested)
    found = nested(NOTHING, plots[0])
    assert found == Unknown("the residuals are correlated in one of them, or in another way")
    by_class = copy.deepcopy(INTERCEPT)
    by_class.record["analysis"]["variances"]["residual"]["classes"] = {"A": {"relationship": {"kind": "ar1"}}}
    assert nested(NOTHING, by_class) == found


def test_a_random_intercept_within_intercept_and_slope():
    test = likelihood_ratio(INTERCEPT, LINE)
    assert (test.small, test.large, test.statistic, test.exact) == ("a", "b", 8.0, True)
    assert test.degrees_of_freedom == "1 and 2, half each"
    assert likelihood_ratio(INTERCEPT, NAMED) == "no test: both are the same model"
    said = likelihood_ratio(DAM, INTERCEPT)
    assert said.startswith("no test: neither model is nested in the other (") and said.endswith("AIC or BIC")


def test_fixed_effects_are_the_same_whatever_their_order_names_and_references():
    herd = {"column": "herd", "kind": "class", "traits": ["y"], "prior": "flat", "reference": None}
    year = herd | {"column": "year"}
    of = lambda fixed, intercept="auto": fixed_effects_key({"model": {"fixed": fixed, "intercept": intercept}})
    assert of({"herd": herd, "year": year}) == of({"y": year | {"reference": "2001"}, "h": herd})
    assert of({"herd": herd}) == of({"herd": herd}, True) == of({"herd": herd}, False)
    assert of({}) != of({}, False) and of({"herd": herd}) != of({"year": year})
    a, b = (model({}, [R], fixed={"herd": herd | {"reference": r}}) for r in ("h1", "h2"))
    assert likelihood_ratio(a, b) == "no test: both are the same model"
    assert "the fixed effects of the two runs differ" in likelihood_ratio(a, model({}, [R], fixed={"year": year}))
