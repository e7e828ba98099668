"""`functions`: arithmetic of parameters, with the errors of REML and of each draw; anything else is refused."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.functions import ParameterFunction, add_functions

DRAWS = {
    "cow.var[milk]": np.array([[1.0, 4.0, 9.0]]),
    "cow.var[milk fat]": np.array([[2.0, 2.0, 2.0]]),
    "h2[milk]": np.array([[0.25, 0.5, 0.75]]),
    "rho": np.array([[-0.5, 0.0, 0.5]]),
}
V, H = DRAWS["cow.var[milk]"], DRAWS["h2[milk]"]


def compute(text):
    return ParameterFunction("f", text).compute(DRAWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h2[milk]", H),
        ("1 - h2[milk]", 1 - H),
        ("  0.5*h2[milk]*sqrt(cow.var[milk])", 0.5 * H * np.sqrt(V)),
        ("-(cow.var[milk] - cow.var[milk fat]) / 1e1", (2 - V) / 10),
        ("cow.var[milk]**2 ** .5", V ** (2**0.5)),
        ("log(exp(h2[milk])) + abs(rho)", H + np.abs(DRAWS["rho"])),
        ("cow.var[milk]/\n (cow.var[milk]+cow.var[milk fat])", V / (V + 2)),
    ],
)
def test_arithmetic(text, expected):
    np.testing.assert_allclose(compute(text)[0], expected)


def test_names_that_a_function_depends_on():
    assert compute("h2[milk] + 2 * h2[milk] - rho")[1] == {"h2[milk]", "rho"}
    draws, fixed = dict(DRAWS), {"rho"}
    add_functions([ParameterFunction("a", "rho + 1"), ParameterFunction("b", "rho + h2[milk]")], draws, fixed)
    assert fixed == {"rho", "a"} and list(draws)[-2:] == ["a", "b"]


def test_a_draw_without_a_value_is_none():
    assert np.isnan(compute("log(rho)")[0]).tolist() == [[True, True, False]]
    assert np.isnan(compute("1 / rho")[0]).tolist() == [[False, True, False]]
    _, notes = add_functions([ParameterFunction("root", "sqrt(rho)")], dict(DRAWS), set())
    assert notes[0].startswith("functions.root: 1 of 3 values are not finite")


def test_what_a_few_matrices_do_not_have_is_left_out():
    draws = {"h2[milk]": H}
    depends, _ = add_functions([ParameterFunction("a", "rho + 1"), ParameterFunction("b", "2*h2[milk]")], draws, set())
    assert depends == {"b": {"h2[milk]"}} and list(draws) == ["h2[milk]", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h2[mlik]", "there is no parameter 'h2[mlik]'; did you mean 'h2[milk]'?"),
        ("cow.var", "there is no parameter 'cow.var'"),
        ("h2[milk] + __import__('os').getpid()", "there is no parameter '__import__'"),
        ("h2[milk].real", "is not arithmetic"),
        ("h2[milk] < 1", "is not arithmetic"),
        ("[h2[milk]]", "is not arithmetic"),
        ("sqrt(h2[milk], 2)", "is not arithmetic"),
        ("h2[milk] + True", "there is no parameter 'True'"),
        ("h2[milk] rho", "cannot be read"),
        ("h2[milk] +", "cannot be read"),
        ("(" * 500 + "rho" + ")" * 500, "cannot be read"),
        ("", "cannot be read"),
        ("2 * 3", "has no parameter in it"),
        ("rho # rho", "has a comment"),
        ("h2[milk", "there is no parameter 'h2[milk'"),
        ("rho + 1" + "0" * 400, "cannot be read"),
        (" + ".join(["rho"] * 400), "expected at most 2,000 characters, got 2,397"),
    ],
)
def test_anything_else_is_refused(text, message):
    with pytest.raises(ConfigError) as raised:
        compute(text)
    assert str(raised.value).startswith("functions.f: ") and message in str(raised.value)


def test_the_name_of_a_parameter_is_refused():
    with pytest.raises(ConfigError, match="functions.rho: is the name of a parameter"):
        ParameterFunction("rho", "h2[milk]").compute(DRAWS)


# ------------------------------------------------------------------------------------------------ runs


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(8)
    sire, pen = rng.integers(0, 25, 300), rng.integers(0, 12, 300)
    y = rng.standard_normal(25)[sire] + 0.7 * rng.standard_normal(12)[pen] + 1.5 * rng.standard_normal(300)
    z = rng.standard_normal(25)[sire] + 0.6 * y + rng.standard_normal(300)
    return pl.DataFrame({"sire": [f"s{i}" for i in sire], "pen": [f"p {i}" for i in pen], "y": y, "z": z})


FUNCTIONS = {
    "share of pens": "pen.var[y] / (pen.var[y] + sire.var[y] + residual.var[y])",
    "correlation": "sire.cov[y,z] / sqrt(sire.var[y] * sire.var[z])",
    "difference": "ratio[sire:y] - ratio[sire:z]",
}


def run(records, tmp_path, functions=None, **sampler):
    source = as_mapping(records, ("y", "z"), random={"sire": {}, "pen": {}}, functions=functions or FUNCTIONS)
    return mmgibbs.run(source | {"sampler": sampler}, directory=tmp_path / "run", progress=False, overwrite=True)


def rows(result):
    return {row["parameter"]: row for row in result.summary.iter_rows(named=True)}


def test_estimates_and_errors_of_reml(records, tmp_path):
    """Those that the program reports itself, by the same delta method."""
    found = rows(run(records, tmp_path, method="reml"))
    for name, same in (("share of pens", "ratio[pen:y]"), ("correlation", "sire.corr[y,z]")):
        assert found[name]["mean"] == pytest.approx(found[same]["mean"], rel=1e-9)
        assert found[name]["sd"] == pytest.approx(found[same]["sd"], rel=1e-5)
    assert found["difference"]["mean"] == pytest.approx(found["ratio[sire:y]"]["mean"] - found["ratio[sire:z]"]["mean"])
    assert 0 < found["difference"]["sd"] < found["ratio[sire:y]"]["sd"] + found["ratio[sire:z]"]["sd"]


def test_every_draw_of_a_chain(records, tmp_path):
    result = run(records, tmp_path, method="gibbs", chains=2, burn_in=20, samples=100, thin=2)
    posterior = result.draws["posterior"]
    expected = posterior["ratio[sire:y]"].to_numpy() - posterior["ratio[sire:z]"].to_numpy()
    np.testing.assert_allclose(posterior["difference"], expected)
    assert rows(result)["difference"]["mean"] == pytest.approx(expected.mean())


def test_a_function_of_an_unknown_parameter_is_refused_before_the_run(records, tmp_path):
    with pytest.raises(ConfigError, match=r"functions.f: there is no parameter 'h2\[x\]'"):
        run(records, tmp_path, {"f": "h2[x]"}, method="gibbs")
    assert not (tmp_path / "run").exists()


def test_parameters_of_structures(records, tmp_path):
    source = as_mapping(
        records, ("y", "z"), random={"sire": {}}, functions={"twice": "2 * sire.rho"},
        variances={"sire": {"structure": "compound_symmetry"}}, method="reml",
    )  # fmt: skip
    found = rows(mmgibbs.run(source, directory=tmp_path / "run", progress=False))
    assert found["twice"]["mean"] == pytest.approx(2 * found["sire.rho"]["mean"])
    assert found["twice"]["sd"] == pytest.approx(2 * found["sire.rho"]["sd"], rel=1e-5)


def test_parameters_that_are_no_variances(records, tmp_path):
    """They are not there where progress is shown, and in `validate`."""
    ill = records.with_columns(ill=(pl.col("y") > 0).replace_strict({True: "yes", False: "no"}))
    functions = {"odds": "incidence[ill] / (1 - incidence[ill])", "cv": "sqrt(fixed_var[z] + 1) / mean[z]"}
    source = as_mapping(
        ill, {"ill": {"type": "binary", "positive": "yes"}, "z": {}}, random={"sire": {}}, functions=functions,
        variances={"sire": {"structure": "diagonal"}},
    )  # fmt: skip
    source |= {"sampler": {"chains": 1, "burn_in": 20, "samples": 60, "thin": 1}, "output": {"moments": ["z"]}}
    posterior = mmgibbs.run(source, directory=tmp_path / "run", progress=False).draws["posterior"]
    p = posterior["incidence[ill]"].to_numpy()
    np.testing.assert_allclose(posterior["odds"], p / (1 - p))
    assert np.isfinite(posterior["cv"]).all()


def test_no_error_of_a_function_of_an_estimated_correlation(tmp_path):
    """The Jacobian of REML is that of the covariance matrices alone."""
    rng = np.random.default_rng(2)
    plots = pl.DataFrame({"row": np.tile(np.arange(1, 13), 12), "column": np.repeat(np.arange(1, 13), 12)})
    trend = np.cumsum(rng.standard_normal((12, 12)), axis=1).ravel() / 2
    plots = plots.with_columns(y=pl.Series(trend + rng.standard_normal(144)))
    field = {"relationship": {"kind": "ar1", "row": "row", "column": "column"}}
    functions = {"mixed": "field.rho[row] * residual.var[y]", "plain": "2 * residual.var[y]"}
    source = as_mapping(plots, random={"field": field}, functions=functions, method="reml")
    found = rows(mmgibbs.run(source, directory=tmp_path / "run", progress=False))
    assert found["mixed"]["sd"] is None
    assert found["plain"]["sd"] == pytest.approx(2 * found["residual.var[y]"]["sd"], rel=1e-5)
