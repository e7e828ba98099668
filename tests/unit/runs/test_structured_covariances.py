"""`variances.TERM.structure` from the analysis file to the run folder: REML, sampling, what is refused."""

import numpy as np
import polars as pl
import pytest
from helpers.estimates import covariance_matrix
from helpers.selection import first
from scipy.optimize import minimize

import mmgibbs
from mmgibbs.errors import ConfigError, MmgibbsError, ModelError
from mmgibbs.report.make import make_report

TRAITS = ["a", "b", "c", "d"]
LOADINGS, SPECIFIC = np.array([1.0, 0.8, 0.9, 0.5]), np.array([0.2, 0.3, 0.1, 0.5])
G = np.outer(LOADINGS, LOADINGS) + np.diag(SPECIFIC)
KINDS = ["factor_analytic", "compound_symmetry", "ar1", "antedependence"]
LINES, REPLICATES = 60, 2


@pytest.fixture(scope="module")
def records():
    """Every line has two records of each trait, each of one trait: residuals of two traits do not covary."""
    rng = np.random.default_rng(3)
    u = rng.multivariate_normal(np.zeros(4), G, size=LINES)
    rows = []
    for line in range(LINES):
        for t in range(4):
            for _ in range(REPLICATES):
                rows.append({"line": f"l{line}"} | dict.fromkeys(TRAITS))
                rows[-1][TRAITS[t]] = 5.0 + u[line, t] + 0.7 * rng.standard_normal()
    return pl.DataFrame(rows, schema={"line": pl.String} | dict.fromkeys(TRAITS, pl.Float64))


def analysis(records, path, structure, variances=None, **sampler):
    return {
        "data": {"phenotypes": records},
        "traits": TRAITS,
        "model": {"random": {"line": {}}},
        "variances": {"line": {"structure": structure} | (variances or {}), "residual": {"structure": "diagonal"}},
        "sampler": sampler,
        "output": {"directory": str(path)},
    }


def run(records, path, structure, variances=None, **sampler):
    return mmgibbs.run(analysis(records, path, structure, variances, **sampler), overwrite=True, progress=False)


def matrix(result):
    return covariance_matrix(result, "line", TRAITS)


# ------------------------------------------------------------------------------------------------ REML


def dense_likelihood(records, matrix_of, n):
    """-2 log L as a function of (parameters of G, log of the residual variances), without 2 pi and log|X'X|.

    Lines are independent and have the same records, so that V has equal blocks.
    """
    Y = records.select(pl.coalesce(TRAITS)).to_series().to_numpy().reshape(LINES, -1)
    X = np.repeat(np.eye(4), REPLICATES, axis=0)

    def value(parameters):
        V = X @ matrix_of(parameters[:n]) @ X.T + np.diag(X @ np.exp(parameters[n:]))
        inverse = np.linalg.inv(V)
        information = LINES * X.T @ inverse @ X
        e = Y - X @ np.linalg.solve(information, X.T @ inverse @ Y.sum(axis=0))
        squares = np.sum((e @ inverse) * e)
        return LINES * np.linalg.slogdet(V)[1] + np.linalg.slogdet(information)[1] + squares

    return value


DENSE = {
    "factor_analytic": (8, lambda p: np.outer(p[:4], p[:4]) + np.diag(np.exp(p[4:8]))),
    "compound_symmetry": (
        5,
        lambda p: np.outer(np.exp(p[:4]), np.exp(p[:4])) * (np.eye(4) + np.tanh(p[4]) * (1 - np.eye(4))),
    ),
    "ar1": (
        5,
        lambda p: (
            np.outer(np.exp(p[:4]), np.exp(p[:4]))
            * np.tanh(p[4]) ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
        ),
    ),
    "antedependence": (
        7,
        lambda p: (A := np.linalg.inv(np.eye(4) - np.diag(p[4:7], -1))) @ np.diag(np.exp(p[:4])) @ A.T,
    ),
}
STARTS = {"factor_analytic": [0.8] * 4 + [-1.5] * 4, "antedependence": [-0.5] * 4 + [0.6] * 3}


@pytest.mark.parametrize("kind", KINDS)
def test_reml_is_the_maximum_of_the_dense_likelihood(records, tmp_path, kind):
    result = run(records, tmp_path / "run", kind, method="reml")
    n, matrix_of = DENSE[kind]
    value = dense_likelihood(records, matrix_of, n)
    best = minimize(value, [*STARTS.get(kind, [-0.2] * 4 + [0.8]), *[-0.7] * 4], options={"gtol": 1e-5})
    assert result.info["converged"]
    at_0 = sum("on the boundary" in note for note in result.info["notes"])
    assert result.info["estimated_elements"] == n + 4 - at_0
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(-0.5 * best.fun, abs=1e-4)
    np.testing.assert_allclose(matrix(result), matrix_of(best.x[:n]), rtol=2e-3, atol=2e-3)
    of_lines = pl.col("parameter").str.starts_with("line.")
    without = set(result.summary.filter(of_lines & pl.col("sd").is_null())["parameter"])
    expected = {"line.specific[c]", "line.explained[c]"} if kind == "factor_analytic" else set()
    assert at_0 == len(expected) / 2 and without == expected


def test_standard_errors_are_those_of_the_observed_information(records, tmp_path):
    """Of rho by the curvature of the dense likelihood; average information is near it."""
    result = run(records, tmp_path / "run", "compound_symmetry", method="reml")
    value = dense_likelihood(records, DENSE["compound_symmetry"][1], 5)
    best = minimize(value, [-0.2] * 4 + [0.8] + [-0.7] * 4, options={"gtol": 1e-5}).x
    steps = np.eye(9) * 1e-3
    signs = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
    differences = [[sum(c * value(best + s * a + t * b) for s, t, c in signs) for b in steps] for a in steps]
    error = np.sqrt(np.linalg.inv(np.array(differences) / 8e-6)[4, 4]) * (1 - np.tanh(best[4]) ** 2)
    found = result.summary.filter(parameter="line.rho")["sd"][0]
    assert found == pytest.approx(error, rel=0.15)


def test_full_and_factor_analytic_with_enough_factors_are_the_same_likelihood(records, tmp_path):
    """Three factors of four components have more parameters than a full matrix."""
    full = run(records, tmp_path / "full", "full", method="reml")
    factors = run(records, tmp_path / "fa", {"kind": "factor_analytic", "factors": 3}, method="reml")
    assert factors.info["log_likelihood"] == pytest.approx(full.info["log_likelihood"], abs=2e-3)
    np.testing.assert_allclose(matrix(factors), matrix(full), rtol=0.05, atol=0.02)


def test_each_boundary_is_said_once(tmp_path):
    """Blocks have little variance: a note for each of their variances at 0, whatever their matrix is."""
    rng = np.random.default_rng(3)
    u = rng.standard_normal((40, 2)) @ [[1.0, 0.5], [0.0, 0.8]]
    rows = [
        {"line": f"l{i}", "block": f"b{rng.integers(6)}"} | {t: u[i, j] + 0.7 * rng.standard_normal()}
        for i in range(40) for j, t in enumerate("ab") for _ in range(2)
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema={"line": pl.String, "block": pl.String, "a": pl.Float64, "b": pl.Float64})
    config = analysis(table, tmp_path / "run", "compound_symmetry", method="reml")
    config |= {"traits": ["a", "b"], "model": {"random": {"line": {}, "block": {}}}}
    config["variances"]["block"] = {"structure": "diagonal"}
    result = mmgibbs.run(config, progress=False)
    notes = [note for note in result.info["notes"] if "on the boundary" in note]
    at_0 = result.summary.filter(pl.col("parameter").str.starts_with("block.var[") & pl.col("sd").is_null())
    of = [name.removeprefix("block.var[").removesuffix("]") for name in at_0["parameter"]]
    assert of and [note.partition(" is on")[0] for note in notes] == [f"block: the variance of {t}" for t in of]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_variances_have_fewer_parameters(records, tmp_path, kind):
    free = run(records, tmp_path / "free", kind, method="reml")
    equal = run(records, tmp_path / "equal", {"kind": kind, "variances": "equal"}, method="reml")
    at_0 = sum("on the boundary" in note for note in free.info["notes"])
    assert free.info["estimated_elements"] + at_0 - equal.info["estimated_elements"] == 3
    assert free.info["log_likelihood"] > equal.info["log_likelihood"]
    if kind in ("compound_symmetry", "ar1"):
        assert np.ptp(np.diag(matrix(equal))) < 1e-9


# ------------------------------------------------------------------------------------------------ sampling

SHORT = {"chains": 1, "burn_in": 5, "samples": 20, "thin": 1, "seed": 4}


@pytest.mark.parametrize("kind", first(1, KINDS[::2]))
def test_engines_give_the_same_chain_and_a_run_in_pieces_is_the_run_in_one_go(records, tmp_path, kind):
    serial = run(records, tmp_path / "serial", kind, engine="serial", **SHORT)
    other = run(records, tmp_path / "structured", kind, engine="structured", **SHORT)
    np.testing.assert_allclose(matrix(other), matrix(serial), rtol=1e-6)
    config = analysis(records, tmp_path / "pieces", kind, engine="serial", **SHORT | {"samples": 9})
    mmgibbs.run(config, progress=False)
    pieces = mmgibbs.run(config, extend=11, progress=False)
    assert pieces.summary.equals(serial.summary)


def test_every_chain_begins_apart(records, tmp_path):
    result = run(records, tmp_path / "run", "ar1", **SHORT | {"chains": 2})
    draws = result.draws["posterior"]["line.rho"] if "posterior" in result.draws else None
    assert draws is not None and not np.allclose(draws[0], draws[1])


def test_fixed_at_the_variances_of_a_run(records, tmp_path):
    """Posterior means of a factor-analytic matrix need not be factor-analytic: fixed matrices are taken as they are."""
    sampled = run(records, tmp_path / "gibbs", "factor_analytic", **SHORT)
    config = analysis(records, tmp_path / "blup", "factor_analytic", method="blup")
    residual = [sampled.summary.filter(parameter=f"residual.var[{t}]")["mean"][0] for t in TRAITS]
    config["variances"]["line"]["start"] = matrix(sampled).tolist()
    config["variances"]["residual"]["start"] = np.diag(residual).tolist()
    assert mmgibbs.run(config, overwrite=True, progress=False).solutions.height == 4 * LINES + 4


def test_the_page_says_the_structure(records, tmp_path):
    result = run(records, tmp_path / "run", {"kind": "factor_analytic", "factors": 2}, **SHORT)
    assert "factor-analytic with 2 factors" in make_report([result.directory], tmp_path / "page.html").read_text()
    again = mmgibbs.open_run(result.directory)
    assert again.summary.equals(result.summary)
    structure = {"kind": "factor_analytic", "factors": 2, "variances": "free"}
    assert again.info["analysis"]["variances"]["line"]["structure"] == structure


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "structure, variances, said",
    [
        ("heterogeneous", {}, "structure"),
        ({"kind": "ar1", "factors": 2}, {}, "variances.line.structure.factors: expected no factors for kind: ar1"),
        ({"kind": "factor_analytic", "factors": 4}, {}, "expected at most 3 for 4 components, got 4"),
        ({"kind": "full", "variances": "equal"}, {}, "variances.line.structure.variances"),
        ("ar1", {"prior": {"df": 5, "scale": np.eye(4).tolist()}}, "variances.line.prior: expected half_t"),
    ],
)
def test_mistakes_are_named(records, tmp_path, structure, variances, said):
    with pytest.raises(ConfigError, match=said.replace("[", r"\[")):
        run(records, tmp_path / "run", structure, variances, **SHORT)


def test_residuals_have_no_structure(records, tmp_path):
    config = analysis(records, tmp_path / "run", "full", **SHORT)
    config["variances"]["residual"] = {"structure": "ar1"}
    with pytest.raises(ConfigError, match=r"variances\.residual\.structure: expected full or diagonal"):
        mmgibbs.run(config, progress=False)


def test_one_component_has_no_factors(records, tmp_path):
    config = analysis(records, tmp_path / "run", {"kind": "factor_analytic", "factors": 1}, method="reml")
    with pytest.raises(ConfigError, match=r"line\.structure\.kind: expected full for the single component a"):
        mmgibbs.run(config | {"traits": ["a"]}, progress=False)


def test_marginal_is_refused(records, tmp_path):
    with pytest.raises(MmgibbsError, match="variances.line.structure: ar1, got marginal"):
        run(records, tmp_path / "run", "ar1", engine="marginal", chains=1, burn_in=500, samples=20)


def test_too_few_levels_are_named(records, tmp_path):
    few = records.filter(pl.col("line").is_in(["l0", "l1", "l2", "l3"]))
    with pytest.raises(ModelError, match="expected at least 5 levels of line"):
        run(few, tmp_path / "run", "factor_analytic", **SHORT)


def test_structures_of_which_neither_is_a_case_of_the_other_have_aic_and_bic(records, tmp_path):
    records.write_csv(tmp_path / "records.csv")
    data = {"data": {"phenotypes": str(tmp_path / "records.csv")}}
    configs = [analysis(records, tmp_path / kind, kind, method="reml") | data for kind in ("factor_analytic", "ar1")]
    a, b = (mmgibbs.run(config, progress=False) for config in configs)
    text = mmgibbs.compare(a.directory, b.directory).text
    assert "likelihood-ratio test: no test: neither model is nested in the other" in text
    for key in ("aic", "bic"):
        assert f"{key.upper()} (smaller is better): a {a.info[key]:.2f}, b {b.info[key]:.2f}" in text


def test_components_without_a_level_in_common_are_no_reason_to_warn(records, tmp_path):
    """Lines of a and d are others; with one factor their covariance follows from those with b and c."""
    halves = pl.col("line").str.slice(1).cast(pl.Int64) < LINES // 2
    apart = records.filter((pl.col("a").is_null() | halves) & (pl.col("d").is_null() | ~halves))
    full = run(apart, tmp_path / "full", "full", method="reml")
    assert any("covariance of line (a with d)" in warning for warning in full.info["warnings"])
    result = run(apart, tmp_path / "run", "factor_analytic", method="reml")
    assert result.info["warnings"] == [] and result.info["converged"]
    assert result.summary.filter(parameter="line.cov[a,d]")["sd"][0] > 0
