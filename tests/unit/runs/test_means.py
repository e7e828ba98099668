"""Adjusted means against generalised least squares with dense matrices, by every method."""

import numpy as np
import polars as pl
import pytest
from helpers.support import ROOT
from scipy import stats

import mmgibbs
from mmgibbs.errors import MmgibbsError

VARIETIES, BLOCKS = 5, 4
ALPHA = ROOT.parent / "shared" / "data" / "agridat" / "john.alpha.txt"
VARIANCES = {"mode": "fixed", "block": 0.7, "residual": 1.3}


def trial():
    """Unequal numbers of records, a covariate, and a class crossed with the varieties."""
    rng = np.random.default_rng(5)
    n = 120
    frame = pl.DataFrame(
        {
            "variety": [f"V{i}" for i in np.arange(n) % VARIETIES],
            "block": [f"B{i}" for i in rng.integers(0, BLOCKS, n)],
            "system": [("dry", "wet", "wet")[i] for i in rng.integers(0, 3, n)],
            "age": rng.normal(30.0, 4.0, n),
        }
    )
    return frame.with_columns(y=pl.Series(rng.standard_normal(n)) + 0.2 * pl.col("age"))


def analysis(directory, fixed=("variety", "system"), method="blup", means=("variety",), **sections):
    return {
        "data": {"phenotypes": trial()},
        "traits": ["y"],
        "model": {"fixed": dict.fromkeys(fixed) | {"age": {"kind": "covariate", "degree": 2}}, "random": {"block": {}}},
        "variances": VARIANCES,
        "sampler": {"method": method},
        "output": {"means": list(means), "directory": str(directory)},
    } | sections


def dense_means(fixed):
    """(mean, covariance) of the varieties by GLS, rank of X; `fixed` may have the interaction variety:system."""
    frame = trial()
    age = frame["age"].to_numpy()
    columns = [np.ones(len(age)), age, age**2]
    average = [1.0, age.mean(), (age**2).mean()]
    K = np.tile(average, (VARIETIES, 1))
    for name in fixed:
        cells = frame[name].to_numpy() if ":" not in name else (frame["variety"] + ":" + frame["system"]).to_numpy()
        levels = sorted(set(cells))
        columns += [(cells == level).astype(float) for level in levels]
        if name == "variety":
            weights = np.eye(VARIETIES)
        elif ":" in name:
            weights = np.array([[level.startswith(f"V{i}:") / 2 for level in levels] for i in range(VARIETIES)])
        else:
            weights = np.full((VARIETIES, len(levels)), 1 / len(levels))
        K = np.hstack([K, weights])
    X = np.column_stack(columns)
    Z = (frame["block"].to_numpy()[:, None] == np.array([f"B{i}" for i in range(BLOCKS)])).astype(float)
    V = VARIANCES["block"] * Z @ Z.T + VARIANCES["residual"] * np.eye(len(age))
    W = np.linalg.inv(V)
    inverse = np.linalg.pinv(X.T @ W @ X, rcond=1e-11)
    return (
        K @ inverse @ X.T @ W @ frame["y"].to_numpy(),
        K @ inverse @ K.T,
        np.linalg.matrix_rank(X / np.abs(X).max(axis=0)),
    )


@pytest.mark.parametrize("fixed", [("variety", "system"), ("variety", "system", "variety:system")])
def test_means_are_those_of_generalised_least_squares(fixed, tmp_path):
    result = mmgibbs.run(analysis(tmp_path / "run", fixed), progress=False)
    mean, covariance, rank = dense_means(fixed)
    assert result.means["level"].to_list() == [f"V{i}" for i in range(VARIETIES)]
    assert result.means["mean"].to_numpy() == pytest.approx(mean, abs=1e-6)
    assert result.means["se"].to_numpy() == pytest.approx(np.sqrt(np.diag(covariance)), abs=1e-8)
    difference, error = result.contrast("variety", {"V0": 1, "V3": -1})
    assert difference == pytest.approx(mean[0] - mean[3], abs=1e-6)
    assert error == pytest.approx(np.sqrt(covariance[0, 0] + covariance[3, 3] - 2 * covariance[0, 3]), abs=1e-8)
    (facts,) = result.info["means"]
    first, second = np.triu_indices(VARIETIES, 1)
    seds = np.sqrt(np.diag(covariance)[first] + np.diag(covariance)[second] - 2 * covariance[first, second])
    assert facts["sed"]["mean"] == pytest.approx(seds.mean()) and facts["sed"]["max"] == pytest.approx(seds.max())
    assert facts["lsd"] == pytest.approx(stats.t.ppf(0.975, facts["freedom"]) * seds.mean())
    assert facts["freedom"] == 120 - rank


def test_covariates_that_are_not_centred(tmp_path):
    """Without a constant in the model: the mean of the records, in their own units, times the curve."""
    model = {"intercept": False, "fixed": {"age": {"kind": "covariate", "degree": 2}}, "random": {"variety": {}}}
    variances = {"mode": "fixed", "variety": 0.7, "residual": 1.3}
    source = analysis(tmp_path / "run", model=model, variances=variances)
    result = mmgibbs.run(source, progress=False)
    frame = trial()
    age, y = frame["age"].to_numpy(), frame["y"].to_numpy()
    X = np.column_stack([age, age**2])
    Z = (frame["variety"].to_numpy()[:, None] == np.array([f"V{i}" for i in range(VARIETIES)])).astype(float)
    W = np.linalg.inv(0.7 * Z @ Z.T + 1.3 * np.eye(len(y)))
    b = np.linalg.solve(X.T @ W @ X, X.T @ W @ y)
    mean = X.mean(axis=0) @ b + 0.7 * Z.T @ W @ (y - X @ b)
    assert result.means["mean"].to_numpy() == pytest.approx(mean, abs=1e-6)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """With means and without."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        mmgibbs.run(analysis(folder / name, means=means), progress=False, report=True)
        for name, means in (("means", ["variety"]), ("none", []))
    ]


def test_the_page_has_the_means(runs):
    result, without = runs
    page = (result.directory / "report.html").read_text(encoding="utf-8")
    assert '<a href="#adjusted-means">' in page and "variety: y" in page
    sed = result.info["means"][0]["sed"]["mean"]
    assert f"Standard error of a difference: {sed:.3f} on average" in page
    assert "adjusted-means" not in (without.directory / "report.html").read_text(encoding="utf-8")


def test_draws_have_the_same_means(tmp_path):
    sampler = {"samples": 4000, "burn_in": 200, "chains": 2, "seed": 3}
    result = mmgibbs.run(analysis(tmp_path / "run", method="gibbs", sampler=sampler), progress=False)
    mean, covariance, _ = dense_means(("variety", "system"))
    error = np.sqrt(np.diag(covariance))
    assert result.means["mean"].to_numpy() == pytest.approx(mean, abs=0.1 * error.max())
    assert result.means["se"].to_numpy() == pytest.approx(error, rel=0.12)


def test_a_resumed_run_has_the_same_means(tmp_path):
    sampler = {"samples": 60, "burn_in": 10, "chains": 1, "seed": 3, "checkpoint_every": 20}
    whole = mmgibbs.run(analysis(tmp_path / "a", method="gibbs", sampler=sampler), progress=False)
    shorter = analysis(tmp_path / "b", method="gibbs", sampler=sampler | {"samples": 40})
    mmgibbs.run(shorter, progress=False)
    extended = mmgibbs.run(shorter, progress=False, extend=20)
    assert extended.means.equals(whole.means)


@pytest.mark.skipif(not ALPHA.exists(), reason="needs ../shared/data/agridat")
def test_heritabilities_of_an_alpha_design(tmp_path):
    """John & Williams (1995), 24 varieties random: Cullis and Oakey .8091 (Schmidt et al. 2019)."""
    result = mmgibbs.run(
        {
            "data": {"phenotypes": str(ALPHA)},
            "traits": ["yield"],
            "model": {"fixed": {"rep": {}}, "random": {"gen": {}, "rep:block": {}}},
            "sampler": {"method": "reml"},
            "output": {"means": ["gen"], "directory": str(tmp_path / "run")},
        },
        progress=False,
    )
    (facts,) = result.info["means"]
    assert facts["h2_cullis"] == pytest.approx(0.8091, abs=5e-5)
    assert facts["h2_oakey"] == pytest.approx(0.8091, abs=5e-5)
    estimates = dict(result.summary.select("parameter", "mean").iter_rows())
    assert estimates["gen.var[yield]"] == pytest.approx(0.1429, abs=1e-4)
    assert estimates["rep:block.var[yield]"] == pytest.approx(0.07022, abs=1e-4)
    assert estimates["residual.var[yield]"] == pytest.approx(0.08162, abs=1e-4)
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(16.8098, abs=5e-5)


def field_analysis(directory, rho=None, variances=None):
    rng = np.random.default_rng(2)
    row, column = np.divmod(np.arange(48), 6)
    trend = np.sin(row / 2) + np.cos(column / 2)
    frame = pl.DataFrame({"row": row + 1, "column": column + 1, "variety": [f"V{i}" for i in rng.permutation(48) % 6]})
    kind = {"kind": "ar1", "row": "row", "column": "column"} | ({} if rho is None else {"rho": rho, "fixed": True})
    return {
        "data": {"phenotypes": frame.with_columns(y=pl.Series(trend + 0.5 * rng.standard_normal(48)))},
        "traits": ["y"],
        "model": {"fixed": {"variety": {}}, "random": {"field": {"relationship": kind}}},
        "variances": variances or {},
        "sampler": {"method": "reml" if rho is None else "blup"},
        "output": {"means": ["variety"], "directory": str(directory)},
    }


def test_means_are_at_the_correlations_that_were_estimated(tmp_path):
    estimated = mmgibbs.run(field_analysis(tmp_path / "a"), progress=False)
    found = dict(estimated.summary.select("parameter", "mean").iter_rows())
    rho = {name: found[f"field.rho[{name}]"] for name in ("row", "column")}
    variances = {"field": found["field.var[y]"], "residual": found["residual.var[y]"]}
    known = mmgibbs.run(field_analysis(tmp_path / "b", rho, variances), progress=False)
    assert estimated.means["mean"].to_numpy() == pytest.approx(known.means["mean"].to_numpy(), abs=1e-5)
    assert any("the correlation is at its bound, 0.995" in warning for warning in estimated.info["warnings"])
    assert estimated.means["se"].null_count() == estimated.means.height, "the bound decides the variance"
    assert known.means["se"].null_count() == 0
    assert estimated.info["means"][0]["sed"] == pytest.approx(known.info["means"][0]["sed"], rel=1e-5)


def expect(message, directory, **changes):
    with pytest.raises(MmgibbsError) as error:
        mmgibbs.check(analysis(directory, **changes))
    assert message in str(error.value)


def test_mistakes_are_named(tmp_path):
    expect("output.means: expected a class effect, got the covariate 'age'", tmp_path, means=["age"])
    expect("output.means: 'varety' is not a class effect of the model; did you mean", tmp_path, means=["varety"])


def test_contrasts_name_what_there_is(runs):
    result, without = runs
    with pytest.raises(MmgibbsError, match="'V9' is no level of these means"):
        result.contrast("variety", {"V9": 1})
    with pytest.raises(MmgibbsError, match="'sytem' is no effect of these means"):
        result.contrast("sytem", {"dry": 1})
    assert without.means is None
    with pytest.raises(MmgibbsError, match="expected a run with adjusted means"):
        without.contrast("variety", {"V0": 1})


def of_plots(directory, frame, traits=("y",)):
    rng = np.random.default_rng(4)
    varieties = pl.Series("variety", [f"V{i}" for _ in range(frame.height // 60) for i in rng.permutation(60) % 6])
    analysis = {
        "data": {"phenotypes": frame.with_columns(varieties)},
        "traits": traits,
        "model": {"fixed": {"variety": {}}},
        "variances": {"residual": {"relationship": {"kind": "ar1", "row": "row", "column": "column"}}},
        "sampler": {"method": "reml"},
        "output": {"means": ["variety"], "directory": str(directory)},
    }
    return mmgibbs.run(analysis, progress=False)


def field(y, site="field"):
    row, column = np.divmod(np.arange(60), 6)
    return pl.DataFrame({"site": site, "row": row + 1, "column": column + 1, "y": y})


def test_only_the_site_whose_correlation_is_at_its_bound_loses_its_errors(tmp_path):
    """Residuals of two fields, one with a trend over its rows and one without."""
    rng, row = np.random.default_rng(4), np.arange(60) // 6
    dry = field(0.4 * row + 0.02 * rng.standard_normal(60), "dry")
    found = of_plots(tmp_path / "run", pl.concat([dry, field(rng.standard_normal(60), "wet")]), {"y": {"by": "site"}})
    nulls = found.means.group_by("trait").agg(pl.col("se").null_count()).sort("trait")
    assert nulls.rows() == [("y|dry", 6), ("y|wet", 0)]


def test_a_correlation_at_its_lower_bound_leaves_the_errors(tmp_path):
    """Rows that alternate add little to a mean: it is known well."""
    noise = 0.02 * np.random.default_rng(6).standard_normal(60)
    found = of_plots(tmp_path / "run", field(np.where(np.arange(60) // 6 % 2 == 0, 1.0, -1.0) + noise))
    rows = [text for text in found.info["warnings"] if "rho[row]: the correlation is at its bound, -0.995" in text]
    assert len(rows) == 1 and "leaves blank" not in rows[0] and found.means["se"].null_count() == 0


def test_means_keep_their_errors_where_many_animals_tell_the_variance(tmp_path):
    rng = np.random.default_rng(3)
    animal, day = np.divmod(np.arange(240), 6)
    y = 2.0 * rng.standard_normal(40)[animal] + 0.5 * rng.standard_normal(animal.size)
    analysis = {
        "data": {"phenotypes": pl.DataFrame({"animal": animal, "day": day, "pen": animal % 2, "y": y})},
        "traits": ["y"],
        "model": {
            "fixed": {"pen": {}},
            "random": {"lasting": {"relationship": {"kind": "ar1", "time": "day", "within": "animal"}}},
        },
        "sampler": {"method": "reml"},
        "output": {"means": ["pen"], "directory": str(tmp_path / "run")},
    }
    found = mmgibbs.run(analysis, progress=False)
    (warning,) = [text for text in found.info["warnings"] if "the correlation is at its bound, 0.995" in text]
    assert "means.csv leaves blank" not in warning and found.means["se"].null_count() == 0
