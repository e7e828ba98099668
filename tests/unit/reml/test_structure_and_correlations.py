"""REML of a structured matrix beside correlations of plots: the dense likelihood and a general optimiser."""

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from helpers.trends import lag_matrix as lag
from reference.dense import restricted_log_likelihood
from scipy import optimize

import mmgibbs
from mmgibbs.machine.threads import blas_threads
from mmgibbs.reml import estimate, structured

SITES, ROWS, COLUMNS, LINES = 3, 8, 6, 12
FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "site"}
CELLS = {"kind": "ar1", "row": "row", "column": "column"}


@pytest.fixture(scope="module")
def trial():
    return simulate()


def simulate(seed=30, rho=(0.6, 0.6), trend=4.0):
    """Three sites of 6 x 5 plots, ten lines in three replicates, a trend in each field."""
    rng, frames = np.random.default_rng(seed), []
    common, (row, column) = rng.normal(size=LINES), (x.ravel() + 1 for x in np.indices((ROWS, COLUMNS)))
    for site in range(SITES):
        of_plots = np.linalg.cholesky(trend * lag(rho[0], row) * lag(rho[1], column)) @ rng.normal(size=row.size)
        line = rng.permutation(np.resize(np.arange(LINES), row.size))
        value = (1.5 + 0.3 * site) * common + 1.3 * rng.normal(size=LINES)
        y, other = (10 + value[line] + of_plots + rng.normal(size=row.size) for _ in range(2))
        columns = {"site": f"S{site}", "row": row, "column": column, "gen": line.astype(str), "y": y, "z": other}
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames).filter(~pl.Series(rng.permutation(SITES * ROWS * COLUMNS) < 2))


def by_site(trial, structure, directory, fields=(), residual=None):
    """Lines with a structure between sites; trends at some sites, or residuals that are correlated."""
    random = {"gen": {}} | {f"field_{s}": {"traits": [f"y|{s}"], "relationship": FIELD} for s in fields}
    variances = {"gen": {"structure": structure}} | ({} if residual is None else {"residual": residual})
    return {
        "data": {"phenotypes": trial},
        "traits": {"y": {"by": "site"}},
        "model": {"random": random},
        "variances": variances,
        "sampler": {"method": "reml", "tolerance": 1e-5},
        "output": {"directory": str(directory)},
    }


def maximise(function, start):
    """The largest value, from a place near this start; points outside have none."""

    def minus(x):
        try:
            value = function(x)
        except np.linalg.LinAlgError:
            return 1e6
        return -value if np.isfinite(value) else 1e6

    options = {"ftol": 1e-14, "gtol": 1e-5, "maxiter": 300, "maxls": 40}
    with blas_threads(1):
        return -optimize.minimize(minus, start + 0.02, method="L-BFGS-B", options=options).fun


def factor_analytic(x):
    loadings, log_specific = x[:SITES], x[SITES:]
    return np.outer(loadings, loadings) + np.diag(np.exp(log_specific))


def compound_symmetry(x):
    sd, rho = np.exp(x[:SITES]), np.tanh(x[SITES])
    return np.outer(sd, sd) * (rho + (1 - rho) * np.eye(SITES))


def antedependence(x):
    """u_1 = e_1, u_t = b_t u_(t-1) + e_t."""
    T = np.eye(SITES) - np.diag(x[SITES : 2 * SITES - 1], -1)
    inverse = np.linalg.inv(T)
    return inverse @ np.diag(np.exp(2 * x[:SITES])) @ inverse.T


def sites_and_lines(trial):
    site, gen = (trial[c].to_numpy() for c in ("site", "gen"))
    _, number = np.unique(site, return_inverse=True)
    return number, gen[:, None] == gen, trial["row"].to_numpy(), trial["column"].to_numpy()


def values(run):
    return dict(run.summary.select("parameter", "mean").iter_rows())


def start_of_lines(structure, found):
    variances = np.array([found[f"gen.var[y|S{s}]"] for s in range(SITES)])
    if structure == "compound_symmetry":
        return np.append(np.log(variances) / 2, np.arctanh(min(found["gen.rho"], 0.99)))
    if structure == "factor_analytic":
        loadings = [found[f"gen.loading[y|S{s}:1]"] for s in range(SITES)]
        return np.append(loadings, np.log([found[f"gen.specific[y|S{s}]"] for s in range(SITES)]))
    covariances = [found[f"gen.cov[y|S{s},y|S{s + 1}]"] for s in range(SITES - 1)]
    b = covariances / variances[:-1]
    innovations = variances - np.append(0.0, b**2 * variances[:-1])
    return np.append(np.log(innovations) / 2, b)


MATRICES = {f.__name__: f for f in (factor_analytic, compound_symmetry, antedependence)}
N_OF_LINES = {"factor_analytic": 2 * SITES, "compound_symmetry": SITES + 1, "antedependence": 2 * SITES - 1}


def dense_maximum(trial, structure, found, fields):
    """Parameters: those of lines, log variance and atanh correlations of each field, log residual variances."""
    site, same, row, column = sites_and_lines(trial)
    X, y, n = np.eye(SITES)[site], trial["y"].to_numpy(), N_OF_LINES[structure]

    def at(x):
        V = MATRICES[structure](x[:n])[np.ix_(site, site)] * same
        for log_v, of_row, of_column, where in zip(*x[n:-SITES].reshape(-1, 3).T, fields, strict=True):
            there = site == int(where[1])
            V += np.exp(log_v) * lag(np.tanh(of_row), row) * lag(np.tanh(of_column), column) * np.outer(there, there)
        return restricted_log_likelihood(y, X, V + np.diag(np.exp(x[-SITES:])[site]))

    of_fields = [
        (
            np.log(found[f"field_{s}.var[y|{s}]"]),
            np.arctanh(found[f"field_{s}.rho[row]"]),
            np.arctanh(found[f"field_{s}.rho[column]"]),
        )
        for s in fields
    ]
    residual = [np.log(found[f"residual.var[y|S{s}]"]) for s in range(SITES)]
    start = np.concatenate([start_of_lines(structure, found), *of_fields, residual])
    return at(start), maximise(at, start)


@pytest.mark.parametrize(
    ("structure", "fields"),
    [("factor_analytic", ["S0", "S2"]), ("compound_symmetry", ["S0"]), ("antedependence", ["S2"])],
)
def test_lines_with_a_structure_beside_trends_of_fields(trial, tmp_path, structure, fields):
    run = mmgibbs.run(by_site(trial, structure, tmp_path / "run", fields), progress=False)
    there, best = dense_maximum(trial, structure, values(run), fields)
    assert run.info["converged"]
    assert run.info["log_likelihood"] == pytest.approx(there, abs=1e-6)
    assert run.info["log_likelihood"] == pytest.approx(best, abs=1e-6)


def test_a_wrong_slope_misses_the_maximum(trial, tmp_path, monkeypatch):
    right = "self.correlations.gradient(point, z)"
    spoilt = mutant(structured, right, f"0.9 * {right} + 0.05")
    monkeypatch.setattr(estimate, "maximise_structured", spoilt.maximise_structured)
    monkeypatch.setattr(estimate, "StructuredMaximum", spoilt.StructuredMaximum)
    run = mmgibbs.run(by_site(trial, "compound_symmetry", tmp_path / "run", ["S0"]), progress=False, report=False)
    _, best = dense_maximum(trial, "compound_symmetry", values(run), ["S0"])
    assert run.info["log_likelihood"] < best - 1e-6


def test_lines_with_a_structure_beside_correlated_residuals(trial, tmp_path):
    """Without a nugget: each site has its variance and correlations."""
    source = by_site(trial, "factor_analytic", tmp_path / "run", residual={"relationship": FIELD})
    run = mmgibbs.run(source, progress=False, report=False)
    found = values(run)
    site, same, row, column = sites_and_lines(trial)
    X, y = np.eye(SITES)[site], trial["y"].to_numpy()

    def at(x):
        V = factor_analytic(x[: 2 * SITES])[np.ix_(site, site)] * same
        for s, (log_v, of_row, of_column) in enumerate(x[2 * SITES :].reshape(SITES, 3)):
            there = site == s
            V += np.exp(log_v) * lag(np.tanh(of_row), row) * lag(np.tanh(of_column), column) * np.outer(there, there)
        return restricted_log_likelihood(y, X, V)

    of_sites = [
        (
            np.log(found[f"residual.var[y|S{s}]"]),
            np.arctanh(found[f"residual.rho[y|S{s}:row]"]),
            np.arctanh(found[f"residual.rho[y|S{s}:column]"]),
        )
        for s in range(SITES)
    ]
    start = np.concatenate([start_of_lines("factor_analytic", found), *of_sites])
    assert run.info["log_likelihood"] == pytest.approx(at(start), abs=1e-6)
    assert run.info["log_likelihood"] == pytest.approx(maximise(at, start), abs=1e-6)


def test_the_matrix_of_a_trend_has_a_structure_itself(trial, tmp_path):
    """Two traits of the plots of one site: their trends have one variance and a correlation."""
    plots = trial.filter(pl.col("site") == "S0")
    source = {
        "data": {"phenotypes": plots},
        "traits": ["y", "z"],
        "model": {"random": {"field": {"relationship": CELLS}}},
        "variances": {"field": {"structure": {"kind": "compound_symmetry", "variances": "equal"}}},
        "sampler": {"method": "reml", "tolerance": 1e-5},
        "output": {"directory": str(tmp_path / "run")},
    }
    run = mmgibbs.run(source, progress=False, report=False)
    found = values(run)
    y = plots.select("y", "z").to_numpy().T.ravel()
    row, column, X = plots["row"].to_numpy(), plots["column"].to_numpy(), np.kron(np.eye(2), np.ones((plots.height, 1)))

    def at(x):
        """(log variance of trends, atanh correlations of traits, rows and columns, Cholesky factor of residuals)."""
        G = np.exp(x[0]) * np.array([[1.0, np.tanh(x[1])], [np.tanh(x[1]), 1.0]])
        L = np.array([[np.exp(x[4]), 0.0], [x[5], np.exp(x[6])]])
        K = lag(np.tanh(x[2]), row) * lag(np.tanh(x[3]), column)
        return restricted_log_likelihood(y, X, np.kron(G, K) + np.kron(L @ L.T, np.eye(len(row))))

    R = [[found["residual.var[y]"], found["residual.cov[y,z]"]], [found["residual.cov[y,z]"], found["residual.var[z]"]]]
    L = np.linalg.cholesky(np.array(R))
    rho = [found[name] for name in ("field.rho", "field.rho[row]", "field.rho[column]")]
    start = np.array([np.log(found["field.var[y]"]), *np.arctanh(rho), np.log(L[0, 0]), L[1, 0], np.log(L[1, 1])])
    assert run.info["log_likelihood"] == pytest.approx(at(start), abs=1e-6)
    assert run.info["log_likelihood"] == pytest.approx(maximise(at, start), abs=1e-6)


@pytest.mark.parametrize("seed", [4, 7])
def test_competing_plots_have_their_maximum_from_the_first_correlations(tmp_path, seed):
    """Correlations below 0, from starts above 0 and near them; of seed 4 lines have a correlation of 1 between sites,
    which ends the iteration at its bound.
    """
    rivals, found = simulate(seed, (-0.8, -0.8)), []
    for name, start in (("first", {}), ("near", {"rho": -0.8})):
        source = by_site(rivals, "compound_symmetry", tmp_path / name, ["S0"])
        source["model"]["random"]["field_S0"]["relationship"] = FIELD | start
        run = mmgibbs.run(source, progress=False, report=False)
        assert run.info["converged"] and run.info["warnings"] == []
        found.append(run.info["log_likelihood"])
        at_bound = any("gen: the correlation of the structure is at its bound" in note for note in run.info["notes"])
        assert at_bound == (seed == 4)
        (rho,) = run.summary.filter(parameter="gen.rho").iter_rows(named=True)
        assert (rho["sd"] is None) == at_bound == (rho["mean"] > 0.9999)
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert values(run)["field_S0.rho[row]"] < -0.5


def test_other_correlations_are_tried_where_a_trend_has_no_variance(tmp_path):
    """From correlations of 0.9 the variance of competing plots goes to 0, where the likelihood has another maximum."""
    rivals, runs = simulate(3, (-0.8, -0.8)), []
    for name, rho, limit in (("far", 0.9, 100), ("near", -0.8, 100), ("limited", 0.9, 25)):
        source = by_site(rivals, "compound_symmetry", tmp_path / name, ["S0"])
        source["model"]["random"]["field_S0"]["relationship"] = FIELD | {"rho": rho}
        source["sampler"]["max_iterations"] = limit
        runs.append(mmgibbs.run(source, progress=False, report=False).info)
    far, near, limited = runs
    assert far["converged"] and far["log_likelihood"] == pytest.approx(near["log_likelihood"], abs=1e-5)
    assert limited["iterations"] == 25 and not limited["converged"]


def test_the_iteration_begins_at_correlations_that_are_given(trial, tmp_path, monkeypatch):
    """As a run does that is resumed; what follows the iteration, and keeps them, has them too."""
    maximise_structured, given, watches = estimate.maximise_structured, np.array([0.3, -0.2]), []

    def begin(*arguments):
        watches.append(arguments[5])
        return maximise_structured(*arguments[:4], 0, arguments[5], given)

    monkeypatch.setattr(estimate, "maximise_structured", begin)
    run = mmgibbs.run(by_site(trial, "compound_symmetry", tmp_path / "run", ["S0"]), progress=False, report=False)
    found = [values(run)[f"field_S0.rho[{side}]"] for side in ("row", "column")]
    np.testing.assert_allclose(found, given)
    np.testing.assert_allclose(watches[0].correlations, given)
