"""Words for what was run."""

import pytest
from helpers.finished_run import describe_random

from mmgibbs.models.engine_kinds import ENGINES
from mmgibbs.report.figure_words import chosen_words, key_of_figures
from mmgibbs.report.method_words import (
    engine_words,
    genomic_reliability_words,
    interweaved_words,
    reliability_words,
    reml_words,
    scale_words,
    values_words,
)
from mmgibbs.report.model_words import (
    fixed_prior_words,
    model_equations,
    model_table,
    prior_words,
    residuals_words,
    structure_clause,
    underlying_words,
)
from mmgibbs.report.page import facts

IW, HALF_T = "inverse-Wishart prior with", "half-t prior of standard deviations with"


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("flat", "flat prior"),
        (None, "flat prior"),
        ({"df": 5.0, "scale": 1.0}, f"{IW} 5 degrees of freedom and scale 1"),
        ({"df": 4.0, "scale": [[0.8]]}, f"{IW} 4 degrees of freedom and scale 0.8"),
        ({"df": 3, "scale": [[3, 1], [1, 60]]}, f"{IW} 3 degrees of freedom and a diagonal of the scale of 3 and 60"),
        ({"half_t": {"df": 2.0, "scale": [1.0, 2.5]}}, f"{HALF_T} 2 degrees of freedom and scales 1 and 2.5"),
        ({"h2": "uniform"}, "share of the variance (its own plus the residual's) uniform on (0, 1)"),
        ({"half_t": {"df": 2.0, "scale": None}}, f"{HALF_T} 2 degrees of freedom"),
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


def test_left_sides_of_the_model():
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
    assert scale_words({"sick": traits["sick"]}) == "on the scale of the trait (for sick, that of its liability)"
    traits = {"cases": {"type": "count", "exposure": "months"}, "eggs": {"type": "count", "exposure": None}}
    left = [name for name, _ in model_equations({"traits": traits, "model": {}})]
    assert left == ["log rate of cases per unit of months", "log rate of eggs"]
    assert dict(facts({"data": {"animals": 3}, "analysis": {"traits": traits}})[0][1])["Exposure"] == "months, of cases"


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ([{"type": "normal"}], ""),
        ([{"type": "normal"}, {"type": "binary"}, {"type": "ordinal"}], "the liability behind it"),
        ([{"type": "count"}], "the log rate behind it"),
        ([{"type": "ordinal"}, {"type": "count"}], "the liability or log rate behind it"),
        ([{"type": "censored", "log": True}], "its logarithm"),
        ([{"type": "censored", "log": True}, {"type": "count"}], "the log rate behind it, or its logarithm"),
    ],
)
def test_what_is_behind_records_by_kind_of_trait(types, told):
    assert underlying_words({str(k): spec for k, spec in enumerate(types)}) == told


def test_records():
    analysis = {"traits": {"milk": {"type": "normal"}}, "model": {}, "data": {"weights": "tests"}}
    assert model_table({"analysis": analysis}).rows[-1][:2] == ("residual", "random; weighted by tests")
    divided = "tests: residual variances are divided by it"
    with_shares = {"milk": {"h2": "the trait's own"}}
    for scales, they in ((with_shares, "they, and heritabilities,"), ({}, "they")):  # without breeding values
        shown = dict(facts({"analysis": analysis, "scales": scales})[0][1])["Weights"]
        assert shown == f"{divided}; {they} are shown for a weight of 1"
    data = {"observations": {"milk": 9, "days": 1554}, "observed_as": {"days": {"exact": 812, "right-censored": 742}}}
    shown = dict(facts({"data": data})[0][1])["Observations"]
    assert shown == "milk 9 and days 1,554 (812 exact and 742 right-censored)"
    record = {"analysis": {"data": {"weights": None}}, "data": {"records": {"used": 9}, "observations": {"milk": 9}}}
    assert residuals_words(record) == ""
    record["data"]["observations"]["fat"] = 7
    assert residuals_words(record) == "between records with different observed traits"
    record["analysis"] = {"data": {"weights": "n"}, "variances": {"residual": {"by": "herd"}}}
    expected = "between records with different observed traits, weight or residual class (herd)"
    assert residuals_words(record) == expected


def test_an_intercept_and_the_coefficients_of_covariates_are_counted():
    fixed = {"age": {"kind": "covariate", "degree": 2, "traits": ["milk"]}}
    analysis = {"traits": {"milk": {}}, "model": {"fixed": fixed}}
    table = model_table({"analysis": analysis, "levels": {"intercept": 1, "age": 1}}, ["milk"], {"age": 2})
    assert [(row[0], row[3].text) for row in table.rows[:2]] == [("intercept", "1"), ("age", "2")]
    assert table.rows[0][1:3] == ("fixed", "milk") and table.rows[0][-1] == "flat prior"
    assert table.columns[3].label == "Levels or coefficients"
    without = model_table({"analysis": analysis, "levels": {"age": 1}})
    assert without.rows[0][0] == "age" and without.columns[3].label == "Levels"


@pytest.mark.parametrize(
    ("effect", "n", "words"),
    [
        ("random", 2, "related by the pedigree, with 2 random unknown-parent groups among its levels"),
        ("fixed", 1, "related by the pedigree, with 1 fixed unknown-parent group among its levels"),
        ("metafounders", 2, "related by the pedigree"),
        (None, 0, "related by the pedigree"),
    ],
)
def test_unknown_parent_groups_are_levels_of_their_term(effect, n, words):
    random = {"animal": {"relationship": "pedigree"}, "litter": {"relationship": "identity"}}
    data = {"groups": {"column": "origin", "effect": effect} if effect else None}
    analysis = {"traits": {"milk": {}}, "model": {"random": random}, "data": data}
    rows = model_table({"analysis": analysis, "relationships": describe_random(analysis), "data": {"groups": n}}).rows
    assert rows[0][1].endswith(f"; {words}") and rows[1][1].endswith("; independent levels")


@pytest.mark.parametrize("path", ["/home/anna/lines/kinship.txt", r"C:\lines\kinship.txt", "kinship.txt"])
def test_a_relationship_file_is_named_without_its_folder(path):
    analysis = {"traits": {"yield": {}}, "model": {"random": {"line": {"relationship": path, "level": "line"}}}}
    kind = {"symbol": "K", "related": True, "of_pedigree": False, "sentence": f"related by {path}"}
    record = {"analysis": analysis, "relationships": {"line": kind}}
    assert model_table(record).rows[0][1] == "random effect of line; related by kinship.txt"


def _residual_words(types, by=None):
    analysis = {"traits": {name: {"type": of} for name, of in types.items()}, "model": {}}
    analysis["variances"] = {"residual": {"by": by, "prior": "flat"}}
    return model_table({"analysis": analysis, "data": {"records": {"used": 3}}}).rows[-1][-1]


def test_what_is_known_of_variances_and_effects():
    assert _residual_words({"milk": "normal"}) == "sampled, flat prior"
    assert _residual_words({"sick": "binary"}) == "1 by convention"
    two = _residual_words({"sick": "ordinal", "milk": "normal"})
    assert two == "1 by convention for sick; else sampled, flat prior"
    classes = _residual_words({"sick": "binary"}, by="sex")
    assert classes.startswith("1 by convention in one class of sex; else sampled")
    analysis = {"traits": {"milk": {"type": "normal"}}, "model": {}, "variances": {"residual": {"prior": "flat"}}}
    assert model_table({"analysis": analysis, "method": "reml"}).rows[-1][-1] == "estimated by REML"
    assert values_words({"analysis": analysis, "method": "reml"}).endswith("with the estimated variance.")
    assert values_words({"analysis": analysis, "method": "blup"}).startswith("BLUP on the scale of the trait;")
    assert values_words({"analysis": analysis}).startswith("Posterior means on the scale of the trait;")
    assert "the mean \u00b1 1.96 posterior standard deviations" in values_words({"analysis": analysis})
    assert "the solution \u00b1 1.96 standard errors" in values_words({"analysis": analysis, "method": "blup"})
    without = values_words({"analysis": analysis, "method": "blup"}, False, False)
    assert without == "BLUP on the scale of the trait, without standard errors of prediction: a note above says why."
    analysis = {"traits": {"milk": {"type": "normal"}}, "model": {"fixed": {"herd": {"prior": "flat"}}}}
    for method, words in (("reml", "none"), ("blup", "none"), ("gibbs", "flat prior")):
        assert model_table({"analysis": analysis, "method": method}).rows[0][-1] == words


def test_coefficients_of_curves_are_not_on_the_scale_of_the_trait():
    record = {"analysis": {"traits": {"sick": {"type": "binary"}}, "model": {}}}
    assert values_words(record, coefficients="all").startswith(
        "Posterior means of the coefficients of curves, on the scale of the trait (for sick, that of its liability) "
        "per unit of what they multiply; intervals are"
    )
    assert values_words(record | {"method": "blup"}, coefficients="some").startswith(
        "BLUP on the scale of the trait (for sick, that of its liability), coefficients of curves per unit of what "
        "they multiply; intervals are"
    )
    assert "coefficients" not in values_words(record)


def _related(**symbols):
    kinds = {name: {"symbol": symbol, "related": symbol != "I"} for name, symbol in symbols.items()}
    return {"analysis": {"model": {"random": {key: {} for key in symbols}}}, "relationships": kinds}


def test_reliability_is_said_with_the_diagonal_of_the_relationships():
    pedigree = _related(animal="A", litter="I")
    assert reliability_words(pedigree) == "1 − PEV / ((1 + F) variance)"
    assert reliability_words(pedigree | {"inbreeding": "ignore"}) == "1 − PEV / variance"
    single_step = "1 − PEV / (d variance), where d is the animal’s diagonal element of H"
    assert reliability_words(_related(animal="H", litter="I")) == single_step
    assert reliability_words(_related(animal="H", dominance="D")) == single_step + " and D"
    assert reliability_words(_related(animal="H", line="A")).endswith("; for terms of the pedigree alone, d is 1 + F")


@pytest.mark.parametrize(
    ("symbol", "more", "single_step", "own"),
    [
        ("A", {}, "none", "a is (1 + F) times the variance of animal, and g is"),
        ("A", {"inbreeding": "ignore"}, "none", "a is the variance of animal, and g is"),
        ("H", {}, "none", "a is the animal’s diagonal element of H times the variance of animal, and g is"),
        ("A", {}, "epsilon", "a is the variance of animal times the share of it that genotypes leave to the animal"),
    ],
)
def test_reliability_of_sums_is_said_with_what_the_polygenic_part_has(symbol, more, single_step, own):
    record = _related(animal=symbol) | more
    record["analysis"]["model"]["markers"] = {"snps": {"single_step": single_step}}
    assert own in genomic_reliability_words(record, "animal")
    assert genomic_reliability_words(record).startswith("Reliability is 1 − PEV / g, where g is the sum of squares")


def test_figures_of_chains():
    several, one = key_of_figures(4, True), key_of_figures(1, False)
    assert several["Trace"] == several["Autocorrelation"] == "one line for each chain"
    key = "thick line: all chains; thin lines: each chain; shaded: 95\u00a0% interval; dashed: mean"
    assert several["Posterior density"] == key
    assert one["Trace"] == "" and one["Posterior density"] == "dashed: mean"
    assert chosen_words(5, 5, 0).startswith("The parameters that mix worst come first, by how far")
    start = "Of 31 parameters these are the 12 that mix worst, the worst first"
    assert chosen_words(31, 12, 0).startswith(f"{start}; draws.nc has all of them. How well")
    assert chosen_words(31, 12, 1).startswith(f"{start}, and after them 1 heritability that mixes better; draws.nc")
    assert f"{start}, and after them 2 heritabilities that mix better; draws.nc" in chosen_words(31, 12, 2)
    assert all(chosen_words(n, 12, 0).endswith("relative to its limit (1.05 and 100).") for n in (12, 13))


def test_how_it_was_computed():
    assert interweaved_words([]) == "none"
    assert interweaved_words(["a", "b"]).startswith("a and b: variances are drawn again")
    why = "auto, by estimates: 0.32 ms per sweep of serial, 0.17 ms per factorisation (21,709 elements)"
    said = engine_words({"engine": "serial", "engine_chosen_because": why})
    assert said == "serial: draws the levels of all effects one after another (chosen by auto; run.json says why)"
    assert engine_words({"engine": "hybrid", "engine_chosen_because": "asked for"}).endswith("(asked for)")
    shown = dict(facts({"engine": "structured", "equations": 9, "nonzeros": 81})[1][1])
    assert list(shown) == ["Equations"]  # what a matrix would have is no matter of the reader
    assert not any("matrix" in w or "factor" in w for w in (kind.words for kind in ENGINES.values()))
    shown = dict(facts({"seconds": {"data": 0.6, "sampling": 12.0, "summary": 0.03}})[-1][1])
    assert shown["Time"] == "data 0.6\u00a0s and sampling 12.0\u00a0s"
    assert "Work" not in dict(facts({"seconds": {"summary": 0.03}}))
    record = {"log_likelihood": -2645.7609, "aic": 5297.52, "bic": 5314.96, "iterations": 9}
    assert reml_words(record) == "REML: log likelihood −2,645.761, AIC 5,297.5, BIC 5,315.0, 9 iterations"


def test_a_structure_of_a_later_version_is_named():
    assert structure_clause({"kind": "toeplitz", "variances": "equal"}) == ", structure toeplitz, equal variances"
    assert structure_clause(None) == "" == structure_clause("full")
