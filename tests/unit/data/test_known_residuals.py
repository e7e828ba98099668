"""Records that are adjusted means of a first analysis: matched to their covariances, refused where they cannot be."""

import numpy as np
import polars as pl
import pytest
from helpers.selection import first

import mmgibbs
from mmgibbs.errors import MmgibbsError

SITES = ("A", "B")


@pytest.fixture(scope="module")
def stage_one(tmp_path_factory):
    """(folder, means): one run of two sites, whose means have traits y|A and y|B, and a run of each site."""
    rng = np.random.default_rng(4)
    line = [f"L{i}" for i in np.arange(72) % 6]
    site = [SITES[i] for i in (np.arange(72) // 6) % 2]
    block = [f"B{i}" for i in rng.integers(0, 3, 72)]
    effects_of_lines = rng.normal(size=(6, 2)) + 2.0 * rng.normal(size=(6, 1))
    y = rng.normal(size=72) + effects_of_lines[np.arange(72) % 6, (np.arange(72) // 6) % 2]
    frame = pl.DataFrame({"line": line, "site": site, "block": block, "y": y})
    folder = tmp_path_factory.mktemp("stage")

    def run(records, traits, name, block, residual):
        return mmgibbs.run(
            {
                "data": {"phenotypes": records},
                "traits": traits,
                "model": {"fixed": {"line": {}}, "random": {"block": {}}},
                "variances": {"mode": "fixed", "block": block, "residual": residual},
                "sampler": {"method": "blup", "tolerance": 1e-13},
                "output": {"means": ["line"], "directory": str(folder / name)},
            },
            progress=False,
        )

    of_sites = {"A": 1.0, "B": 1.2}
    both = run(
        frame, {"y": {"by": "site"}}, "both", [[0.3, 0.0], [0.0, 0.3]], np.diag(list(of_sites.values())).tolist()
    )
    for name, residual in of_sites.items():
        run(frame.filter(site=name), ["y"], name, 0.3, residual)
    return folder, both.means


def source(folder, means, known, traits=("mean",), **sampler):
    return {
        "data": {"phenotypes": means},
        "traits": list(traits) if isinstance(traits, tuple) else traits,
        "model": {"fixed": {"trait": {}}, "random": {"level": {}}},
        "variances": {"residual": {"known": known}},
        "sampler": {"method": "reml", **sampler},
        "output": {"directory": str(folder / "two")},
    }


def estimate(*arguments, **keys):
    return mmgibbs.run(source(*arguments, **keys), progress=False, overwrite=True)


def path(folder, name):
    return str(folder / name / "means_covariance.npz")


def dense_log_likelihood(folder, means, variance):
    """Of the means of both sites, a fixed mean of each and random lines, the covariance of the means known."""
    with np.load(path(folder, "both")) as file:
        blocks = [file[f"line.y|{site}"] for site in SITES]
    R = np.zeros((12, 12))
    R[:6, :6], R[6:, 6:] = blocks
    X = np.kron(np.eye(2), np.ones((6, 1)))
    Z = np.kron(np.ones((2, 1)), np.eye(6))
    V = variance * Z @ Z.T + R
    inverse = np.linalg.inv(V)
    C = X.T @ inverse @ X
    P = inverse - inverse @ X @ np.linalg.solve(C, X.T @ inverse)
    y = means["mean"].to_numpy()
    return -0.5 * (np.linalg.slogdet(V)[1] + np.linalg.slogdet(C)[1] + y @ P @ y)


def test_one_file_several_files_and_files_by_site(stage_one):
    folder, means = stage_one
    one = estimate(folder, means, path(folder, "both"))
    found = dict(one.summary.select("parameter", "mean").iter_rows())
    assert one.info["log_likelihood_without_2_pi"] == pytest.approx(
        dense_log_likelihood(folder, means, found["level.var[mean]"]), abs=1e-6
    )
    with np.load(path(folder, "both")) as file:
        average = np.mean([np.diag(file[f"line.y|{site}"]) for site in SITES])
    assert found["residual.var[mean]"] == pytest.approx(average)
    assert one.info["estimated_elements"] == 1
    renamed = means.with_columns(site=pl.col("trait").str.tail(1)).rename({"level": "line"})
    by_site = {"files": {site: path(folder, site) for site in SITES}, "by": "site", "level": "line"}
    shuffled = renamed.sample(fraction=1.0, shuffle=True, seed=1)
    other = source(folder, shuffled, by_site)
    other["model"] = {"fixed": {"site": {}}, "random": {"line": {}}}
    two = mmgibbs.run(other, progress=False, overwrite=True)
    assert two.info["log_likelihood"] == pytest.approx(one.info["log_likelihood"], abs=1e-8)


def test_traits_by_environment(stage_one):
    """Each site a trait of the second analysis; its records have one of them."""
    folder, means = stage_one
    analysis = source(folder, means, path(folder, "both"), traits={"mean": {"by": "trait"}})
    analysis["model"] = {"random": {"level": {}}}
    analysis["variances"]["level"] = {"structure": "compound_symmetry"}
    result = mmgibbs.run(analysis, progress=False, overwrite=True)
    assert result.info["converged"] and result.info["likelihood"] == "correlated residuals"


@pytest.mark.parametrize("samples", first(1, [80, 4000]))
def test_draws_are_those_of_the_likelihood(samples, stage_one):
    """Engine marginal; the slow draws against the posterior under a flat prior on a grid."""
    folder, means = stage_one
    sampler = {"method": "gibbs", "samples": samples, "burn_in": max(samples // 8, 100), "chains": 2, "seed": 3}
    result = estimate(folder, means, path(folder, "both"), **sampler)
    assert result.info["engine"] == "marginal" and result.solutions.filter(term="trait")["mean"].is_finite().all()
    if samples == 80:
        return
    grid = (np.arange(5000) + 0.5) * 0.02
    values = np.array([dense_log_likelihood(folder, means, v) for v in grid])
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    row = result.summary.filter(parameter="level.var[mean]").row(0, named=True)
    median = grid[np.searchsorted(np.cumsum(weights), 0.5)]
    assert row["median"] == pytest.approx(median, rel=0.1)


def test_means_without_records_are_named(stage_one):
    folder, means = stage_one
    dropped = means.filter(~((pl.col("trait") == "y|A") & (pl.col("level") == "L3")))
    result = estimate(folder, dropped, path(folder, "both"))
    assert any("1 mean of line.y|A has no record ('L3')" in text for text in result.info["warnings"])


def expect(message, folder, means, known, **sampler):
    with pytest.raises(MmgibbsError) as error:
        mmgibbs.check(source(folder, means, known, **sampler))
    assert message in str(error.value)


def test_mistakes_are_named(stage_one, tmp_path):
    folder, means = stage_one
    known = path(folder, "both")
    strange = means.with_columns(level=pl.col("level").replace({"L2": "X2"}))
    expect("row 3: found 'X2' in column 'level', which has no mean in means_covariance.npz", folder, strange, known)
    expect(
        "found a second record of the mean of 'L0' in line.y|A, as in row 1", folder, pl.concat([means, means]), known
    )
    expect("there is no column 'level'", folder, means.rename({"level": "line"}), known)
    nameless = source(folder, means.rename({"trait": "site"}), known)
    nameless["model"]["fixed"] = {"site": {}}
    with pytest.raises(MmgibbsError, match=r"may be a mean of line\.y\|A of means_covariance\.npz"):
        mmgibbs.check(nameless)
    expect("there is no such file", folder, means, str(folder / "none.npz"))
    expect("missing, needed the column whose values", folder, means, {"files": {"A": path(folder, "A")}})
    by = {"files": {"A": path(folder, "A"), "C": path(folder, "B")}, "by": "trait"}
    expect("found 'y|A' in column 'trait', which has no file", folder, means, by)
    old = tmp_path / "old.npz"
    np.savez(old, **{"line.y": np.eye(3)})
    expect("expected covariances of means with the ids of their levels", folder, means, str(old))
    text = tmp_path / "text.npz"
    text.write_text("level,mean")
    expect("expected means_covariance.npz of a run", folder, means, str(text))


def save_means(target, covariance, is_random=False):
    n = len(covariance)
    levels = np.array([f"L{i}" for i in range(n)])
    np.savez(
        target,
        **{
            "line.y": covariance,
            "line.y:names": np.array(["line", "y"]),
            "line.y:levels": levels,
            "line.y:random": np.array(is_random),
        },
    )
    return pl.DataFrame({"level": levels, "trait": ["y"] * n, "mean": np.arange(n) + 0.5})


def test_covariances_that_cannot_be_used(stage_one, tmp_path):
    folder, _ = stage_one
    target = tmp_path / "file.npz"
    records = save_means(target, np.ones((4, 4)))
    expect("expected a positive definite covariance matrix", folder, records, str(target))
    records = save_means(target, np.eye(4), is_random=True)
    expect("got those of the random effect 'line', which are shrunken", folder, records, str(target))


def test_means_of_one_effect_belong_to_one_trait(tmp_path):
    """Covariances between two traits of the second analysis would be lost."""
    target = tmp_path / "file.npz"
    records = save_means(target, np.eye(4)).with_columns(half=pl.Series(["a", "a", "b", "b"]))
    split = source(tmp_path, records, str(target), traits={"mean": {"by": "half"}})
    split["model"] = {"random": {"level": {}}}
    with pytest.raises(MmgibbsError, match="expected means of one trait of the analysis"):
        mmgibbs.check(split)


def test_means_of_another_effect_need_no_records(tmp_path):
    target = tmp_path / "file.npz"
    records = save_means(target, np.eye(4)).with_columns(effect=pl.lit("line"))
    with np.load(target) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= {name.replace("line", "block", 1): values for name, values in arrays.items()}
    np.savez(target, **arrays | {"block.y:names": np.array(["block", "y"])})
    given = source(tmp_path, records, str(target), method="blup")
    given["model"] = {"random": {"level": {}}}
    given["variances"] |= {"mode": "fixed", "level": 1.0}
    assert not any("no record" in text for text in mmgibbs.run(given, progress=False).info["warnings"])


def test_what_cannot_be_combined_with_known(stage_one):
    folder, means = stage_one
    known = path(folder, "both")
    for engine in ("serial", "structured", "hybrid", "pcg"):
        expect(f"cannot be combined with sampler.engine: {engine}", folder, means, known, method="gibbs", engine=engine)
    expect("found pcg, which cannot be combined with correlated residuals", folder, means, known, engine="pcg")
    weighted = source(folder, means, known)
    weighted["data"]["weights"] = "records"
    for analysis, message in (
        (weighted, "cannot be combined with data.weights"),
        (source(folder, means, known) | {"variances": {"residual": {"known": known, "start": 1.0}}},
         "variances.residual.start: cannot be combined with known"),
    ):  # fmt: skip
        with pytest.raises(MmgibbsError, match=message):
            mmgibbs.check(analysis)
    wide = means.with_columns(second=pl.col("mean") + 1)
    analysis = source(folder, wide, known, traits=("mean", "second"))
    with pytest.raises(MmgibbsError, match="one trait in each row"):
        mmgibbs.check(analysis)
