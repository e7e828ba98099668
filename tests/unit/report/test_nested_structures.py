"""Which structures of a covariance matrix are nested in which, and the tests that follow."""

import copy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from mmgibbs.models.structures import STRUCTURES
from mmgibbs.models.structures.antedependence import Antedependence
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.loadings import WithLoadings
from mmgibbs.models.structures.reduced_rank import ReducedRank
from mmgibbs.report.finished import Finished
from mmgibbs.report.likelihood_ratio import LikelihoodRatio, describe_test, likelihood_ratio
from mmgibbs.report.nested import count_parameters, count_surplus, find_restriction, make_form, simplify_form

TRAITS = ["a", "b", "c", "d", "e"]
FACTORS = {n: {"kind": "factor_analytic", "factors": n, "variances": "free"} for n in (1, 2, 3)}
RANK = {n: {"kind": "reduced_rank", "factors": n, "variances": "free"} for n in (1, 2)}
EQUAL = {kind: {"kind": kind, "variances": "equal"} for kind in ("compound_symmetry", "ar1", "antedependence")}
FREE = {kind: {"kind": kind, "variances": "free"} for kind in EQUAL}


def model(structure, log_likelihood=-100.0, rho=0.5, traits=TRAITS, random=None, **record):
    names = [f"line.var[{t}]" for t in traits] + ["line.rho"] + [f"residual.var[{t}]" for t in traits]
    if structure == "full":
        names += [f"line.cov[{a},{b}]" for i, a in enumerate(traits) for b in traits[i + 1 :]]
    summary = pl.DataFrame({"parameter": names, "mean": [rho] * len(names), "sd": [0.1] * len(names)})
    analysis = {
        "data": {}, "traits": dict.fromkeys(traits),
        "model": {"random": random or {"line": {"level": "line", "traits": traits}}, "fixed": {}, "intercept": "auto"},
        "variances": {"residual": {}, "line": {"structure": structure}},
    }  # fmt: skip
    made = {"method": "reml", "analysis": analysis, "log_likelihood": log_likelihood, "degrees_of_freedom": 90}
    return Finished(Path("."), made | {"data": {"records": {"read": 100}}} | record, summary)


@pytest.mark.parametrize(
    ("small", "large", "parameters", "most"),
    [
        ("diagonal", FACTORS[1], 5, 10),
        ("diagonal", FREE["compound_symmetry"], 1, 1),
        ("diagonal", FREE["antedependence"], 4, 4),
        (FACTORS[1], FACTORS[2], 4, 5),
        (FACTORS[2], "full", 1, 1),
        (FACTORS[1], "full", 5, 5),
        (FREE["compound_symmetry"], "full", 9, 9),
        (FREE["compound_symmetry"], FACTORS[1], 4, 4),
        (FREE["compound_symmetry"], FACTORS[2], 8, 9),
        (EQUAL["compound_symmetry"], FREE["compound_symmetry"], 4, 4),
        (FREE["ar1"], FREE["antedependence"], 3, 3),
        (EQUAL["ar1"], FREE["antedependence"], 7, 7),
        (FREE["antedependence"], "full", 6, 6),
        (RANK[1], RANK[2], 4, 10),
        (RANK[1], FACTORS[1], 5, 10),
        (RANK[2], FACTORS[2], 5, 6),
        (RANK[2], "full", 6, 6),
    ],
)
def test_nested_structures(small, large, parameters, most):
    test = likelihood_ratio(model(small), model(large, -95.0))
    assert isinstance(test, LikelihoodRatio) and (test.small, test.large, test.statistic) == ("a", "b", 10.0)
    assert test.variances + test.covariances == parameters
    assert test.p == pytest.approx(chi2.sf(10.0, most))
    assert test.p_without_boundary == pytest.approx(chi2.sf(10.0, parameters))
    assert test.exact == (most == parameters and test.most is None)
    assert find_restriction("line", large, small, len(TRAITS), 0.5) is None
    turned = likelihood_ratio(model(large, -95.0), model(small))
    assert (turned.small, turned.p) == ("b", test.p)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (FREE["ar1"], FREE["compound_symmetry"]),
        (FREE["ar1"], FACTORS[1]),
        (FREE["antedependence"], FACTORS[2]),
        (EQUAL["ar1"], EQUAL["antedependence"]),
        ("diagonal", EQUAL["compound_symmetry"]),
        ("diagonal", RANK[1]),
        (RANK[2], FACTORS[1]),
        (RANK[1], FREE["compound_symmetry"]),
    ],
)
def test_structures_that_are_not_nested(a, b):
    said = likelihood_ratio(model(a), model(b))
    assert said.startswith("no test: neither model is nested in the other (the covariance matrix of line is ")


def test_negative_correlations_and_turned_components_have_no_test():
    said = likelihood_ratio(model(FREE["compound_symmetry"], rho=-0.1), model(FACTORS[1]))
    assert said.startswith("no test: neither model is nested in the other")
    turned = copy.deepcopy(model(FREE["ar1"]))
    turned.record["analysis"]["model"]["random"]["line"]["traits"] = TRAITS[::-1]
    said = likelihood_ratio(model(FREE["ar1"]), turned)
    assert "cannot be judged: the covariance matrix of line is ar1 in one of them, and its components" in said


@pytest.mark.parametrize("structure", ["hankel", {"kind": "hankel", "order": 2}])
def test_a_structure_of_a_later_version_cannot_be_judged(structure):
    said = likelihood_ratio(model(FACTORS[1]), model(structure))
    assert "cannot be judged: the covariance matrix of line is hankel in one of them, which this version does" in said
    random = {"line": {"level": "line", "traits": TRAITS}, "block": {"level": "block", "traits": ["a"]}}
    larger = model("full", random=random)
    larger.record["analysis"]["variances"]["block"] = {"structure": structure}
    assert "the covariance matrix of block is hankel" in likelihood_ratio(model("full"), larger)


def test_the_same_structure_beside_another_difference():
    """A term less, with the structure of both: a variance on its boundary."""
    random = {"line": {"level": "line", "traits": TRAITS}, "block": {"level": "block", "traits": ["a"]}}
    large = model(FACTORS[1], -97.0, random=random)
    block = pl.DataFrame({"parameter": ["block.var[a]"], "mean": [1.0], "sd": [0.1]})
    large = Finished(large.directory, large.record, pl.concat([large.summary, block]))
    test = likelihood_ratio(model(FACTORS[1]), large)
    assert (test.lacking, test.variances, test.covariances, test.restrictions) == (("block.var[a]",), 1, 0, ())
    assert likelihood_ratio(model(FACTORS[1]), model(FACTORS[1])) == "no test: both are the same model"


def test_what_the_data_do_not_determine_does_not_count():
    small, large = model(FREE["compound_symmetry"]), model("full", -95.0, undetermined_elements=2)
    test = likelihood_ratio(small, large)
    assert test.covariances == 7 and test.p == pytest.approx(chi2.sf(10.0, 7))
    assert "the data do not determine 2 of what it lacks" in describe_test(test, "a", "b")[1]
    nothing = model("full", undetermined_elements=9)
    said = likelihood_ratio(small, nothing)
    assert said.startswith("no test: the data determine as many parameters of one model as of the other")
    four = TRAITS[:4]
    large = model(FACTORS[2], -95.0, traits=four, undetermined_elements=1)
    test = likelihood_ratio(model(FACTORS[1], traits=four), large)
    assert (test.covariances, test.most, test.undetermined) == (2, 2, 0)
    assert count_surplus(FACTORS[2], 4) == 1
    assert count_surplus(FACTORS[2] | {"variances": "equal"}, 4) == 0
    terms = {name: {"level": name, "traits": ["a"]} for name in ("block", "row")}
    large = model("full", -97.0, random={"line": {"level": "line", "traits": TRAITS}, **terms}, undetermined_elements=1)
    added = pl.DataFrame({"parameter": ["block.var[a]", "row.var[a]"], "mean": [1.0] * 2, "sd": [0.1] * 2})
    test = likelihood_ratio(model("full"), Finished(large.directory, large.record, pl.concat([large.summary, added])))
    assert (test.variances, test.covariances, test.undetermined) == (1, 0, 1)
    assert test.p == pytest.approx(chi2.sf(6.0, 1) / 2)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("equal", [False, True])
def test_parameters_are_the_rank_of_the_derivatives(k, equal):
    """As many as the matrix has directions to go."""
    one = np.ones(k)
    structures = [CompoundSymmetry(k, equal, one), Autoregressive(k, equal, one), Antedependence(k, equal, one, one)]
    structures += [FactorAnalytic(k, f, equal, one, one) for f in range(1, k)]
    structures += [ReducedRank(k, f, one) for f in range(1, k)]  # without variances that may be equal
    assert {structure.kind for structure in structures} == {name for name, s in STRUCTURES.items() if s.is_structured}
    rng = np.random.default_rng(k)
    for structure in structures:
        phi = rng.uniform(0.2, 0.9, len(structure.free))
        rank = np.linalg.matrix_rank(structure.derivatives(phi).reshape(len(phi), -1), tol=1e-7)
        section = {"kind": structure.kind, "variances": "equal" if structure.equal else "free"}
        factors = {"factors": structure.factors} if isinstance(structure, WithLoadings) else {}
        assert count_parameters(simplify_form(make_form(section | factors, k))) == rank, (structure.kind, factors)
