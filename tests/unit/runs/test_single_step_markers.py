"""SNP effects from the records of animals without genotypes too: against H and the dense equations written out."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws
from helpers.single_step_herd import POLYGENIC, SNPS, N, analysis, covariances, data, dense_solution, prepared_of
from scipy import stats

import mmgibbs
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError

__all__ = ["data"]


def test_columns_and_what_they_leave_are_those_of_h(data, tmp_path):
    """H of the whole pedigree by its own formula: H^-1 = A^-1 + (G^-1 - A_gg^-1)."""
    A, columns, left, _ = covariances(data)
    genotyped = data[3][2]
    rng = np.random.default_rng(0)
    G = columns[genotyped] @ columns[genotyped].T + 0.1 * np.eye(len(genotyped))  # of full rank
    extra = np.linalg.cholesky(0.1 * np.eye(len(genotyped)))
    more = np.zeros((N, len(genotyped)))
    others = np.setdiff1d(np.arange(N), genotyped)
    P = A[np.ix_(others, genotyped)] @ np.linalg.inv(A[np.ix_(genotyped, genotyped)])
    more[genotyped], more[others] = extra, P @ extra
    H_inverse = np.linalg.inv(A)
    H_inverse[np.ix_(genotyped, genotyped)] += np.linalg.inv(G) - np.linalg.inv(A[np.ix_(genotyped, genotyped)])
    whole = np.column_stack([columns, more])
    np.testing.assert_allclose(np.linalg.inv(H_inverse), whole @ whole.T + left, atol=1e-8)
    # and the program's columns are these
    found = prepared_of(data, tmp_path)
    m, labels = found.design.markers[0], found.markers[0]
    place = np.array([int(i[1:]) for i in labels.animals])
    v = rng.standard_normal(SNPS)
    product = m.genotypes.product(m.genotypes.every, m.genotypes.values(m.centre, m.scale, m.mean), v)
    np.testing.assert_allclose(product, columns[place] @ v, atol=1e-4)
    np.testing.assert_allclose(labels.unexplained, left[place, place], atol=1e-9)
    assert m.n_genotyped == len(genotyped) and set(place[: m.n_genotyped]) == set(genotyped)
    term = next(t for t in found.design.terms if t.name == "genetic")
    assert term.n_prior_levels == N - len(genotyped)


def test_totals_are_those_of_the_dense_equations(data, tmp_path):
    b, total, sd = dense_solution(data)
    result = mmgibbs.run(analysis(data, tmp_path / "run"), overwrite=True, progress=False)
    rows = result.solutions
    on_j = rows.filter(pl.col("term") == "J")
    assert abs(on_j["mean"][0] - b[1]) < 4 * on_j["mcse"][0]
    found = rows.filter(pl.col("effect") == "total").sort("level")
    place = np.array([int(i[1:]) for i in found["level"]])
    off = (found["mean"].to_numpy() - total[place]) / found["mcse"].to_numpy()
    assert np.abs(off).max() < 4.5 and np.sqrt(np.mean(off**2)) < 1.6
    np.testing.assert_allclose(found["sd"].to_numpy(), sd[place], rtol=0.12)
    without_j = (found["mean"].to_numpy() - (total - b[1] * covariances(data)[3])[place]) / found["mcse"].to_numpy()
    assert np.sqrt(np.mean(without_j**2)) > 5
    of_pedigree = rows.filter((pl.col("term") == "genetic") & (pl.col("effect") != "total"))
    genotyped = {f"a{i}" for i in data[3][2]}
    assert not genotyped & set(of_pedigree["level"])
    left = covariances(data)[2]
    known = of_pedigree.filter(pl.col("reliability").is_not_null())
    at = np.array([int(i[1:]) for i in known["level"]])
    pev = known["pev"].to_numpy()
    np.testing.assert_allclose(known["reliability"], 1 - pev / (POLYGENIC * left[at, at]), rtol=1e-9)
    assert 0 < known.height < of_pedigree.height  # of animals with records
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert any("predicted from those of relatives" in note for note in record["notes"])


def test_the_same_chain_on_two_threads_with_the_scale_of_epsilon_moved(data, tmp_path):
    own, runs = {"variance": {"share": 0.4}}, []
    for threads in (1, 2):
        sampler = {"chains": 1, "burn_in": 10, "samples": 30, "thin": 1, "seed": 5}
        changes = {"variances": {}, "sampler": sampler | {"engine": "structured", "threads": threads}}
        runs.append(mmgibbs.run(analysis(data, tmp_path / str(threads), own, **changes), progress=False))
    assert_same_draws(*runs)
    assert "interweaving_acceptance[genetic]" in str(runs[0].draws["sample_stats"])


@pytest.fixture(scope="module")
def sampled(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("sampled") / "run"
    changes = {"variances": {}, "sampler": {"chains": 2, "burn_in": 10, "samples": 40, "thin": 1, "seed": 5}}
    output = {"output": {"directory": str(path), "save_marker_draws": 80}}
    return mmgibbs.run(analysis(data, path, {"variance": {"share": 0.4}}, **changes, **output), progress=False)


def test_h2_is_that_of_genotyped_animals(sampled):
    """They have nothing of the random effect: h2 = var(g) / (var(g) + residual variance), draw by draw."""
    result = sampled
    of = {name: values.to_numpy() for name, values in result.draws["posterior"].data_vars.items()}
    g, e = of["snps.var[milk]"], of["residual.var[milk]"]
    np.testing.assert_allclose(of["h2[milk]"], g / (g + e), rtol=1e-12)


def test_new_animals_get_j_too(data, sampled):
    """The genotyped animals of the run, as if they were new: their totals, deviations and reliabilities are those."""
    found = mmgibbs.predict(sampled.directory, data[2]).values
    total = found.filter(effect="total").join(sampled.solutions, on=["term", "effect", "trait", "level"])
    assert total.height == len(data[3][2])
    for name, tolerance in (("mean", 1e-5), ("sd", 1e-4), ("reliability", 1e-3)):
        np.testing.assert_allclose(total[name], total[f"{name}_right"], rtol=tolerance, atol=tolerance)
    off = found.filter(effect="gebv")["mean"].to_numpy() - found.filter(effect="total")["mean"].to_numpy()
    slope = sampled.solutions.filter(term="J")["mean"][0]
    np.testing.assert_allclose(off, slope, rtol=1e-6)
    assert abs(slope) > 1e-2


def test_new_animals_without_some_genotypes(data, sampled, tmp_path):
    """The total of an animal has the variance of the draws of g + J b, and 2pq E(b^2) of each SNP that it lacks."""
    snps = pl.read_parquet(sampled.directory / "markers.parquet").filter("kept")
    p, centre = snps["frequency"].to_numpy(), snps["centre"].to_numpy()
    codes = pl.read_csv(data[2])
    names = snps["snp"].to_list()
    chip = codes.select(codes.columns[0], *names[: len(names) // 2])
    chip.write_csv(tmp_path / "chip.csv")
    found = mmgibbs.predict(sampled.directory, tmp_path / "chip.csv").values.filter(effect="total")
    with np.load(sampled.directory / "marker_draws.npz") as file:
        b, v = file["effects.0"].reshape(-1, len(p)).astype(float), float(file["prior_variance.0"])
        slope = file["slope.0"].ravel().astype(float)
    x = np.tile(2 * p - centre, (chip.height, 1))
    x[:, : chip.width - 1] = chip.select(names[: chip.width - 1]).to_numpy() - centre[: chip.width - 1]
    w = np.where(np.arange(len(p)) < chip.width - 1, 0.0, 2 * p * (1 - p))
    pev = (b @ x.T - slope[:, None]).var(axis=0, ddof=1) + w @ (b.mean(axis=0) ** 2 + b.var(axis=0, ddof=1))
    np.testing.assert_allclose(found["pev"], pev, rtol=1e-4)
    np.testing.assert_allclose(found["reliability"], 1 - pev / ((x**2).sum(axis=1) + w.sum()) / v, rtol=1e-3, atol=1e-4)


def binary(data, path, **sampler):
    phenotypes, pedigree, genotypes, truth = data
    records = phenotypes.with_columns(alive=(pl.col("milk") > pl.col("milk").median()).cast(pl.Int8))
    own = analysis((records, pedigree, genotypes, truth), path, {"variance": {"share": 0.4}})
    return own | {
        "traits": {"alive": {"type": "binary"}},
        "variances": {"genetic": {"prior": {"half_t": {"scale": 1}}}},
        "sampler": {"chains": 2, "burn_in": 10, "samples": 20, "thin": 1, "seed": 5} | sampler,
        "output": {"directory": str(path), "save_levels": ["intercept", "genetic", "J"], "save_marker_draws": 40,
                   "probabilities": ["alive"]},
    }  # fmt: skip


def test_records_of_a_binary_trait(data, tmp_path):
    """Incidence, heritability and probabilities by their formulas, with the variance that each animal has left."""
    result = mmgibbs.run(binary(data, tmp_path), progress=False)
    d = {name: values.to_numpy() for name, values in result.draws["posterior"].data_vars.items()}
    _, columns, left, j = covariances(data)
    animal = data[3][3]
    effects = np.load(tmp_path / "marker_draws.npz")["effects.0"].astype(float)
    g, b = np.einsum("cdj,aj->cda", effects, columns), d["J"][..., 0, :]
    var, d_i = d["genetic.var[alive]"][..., None], np.diag(left)
    own = g[..., animal]
    spread, mean = own.var(-1)[..., None], own.mean(-1)[..., None]
    V = 1 + var * d_i[animal] + spread
    eta = d["intercept"][..., 0] + b * j[animal] + mean
    z = eta / np.sqrt(V)
    p, psi = stats.norm.cdf(z).mean(-1), (stats.norm.pdf(z) / np.sqrt(V)).mean(-1)
    direct = (spread + var * d_i[animal].mean())[..., 0]
    np.testing.assert_allclose(d["incidence[alive]"], p, rtol=1e-4)
    np.testing.assert_allclose(d["h2_observed[alive]"], psi**2 * direct / (p * (1 - p)), rtol=1e-3)
    one_for_all = psi**2 * (spread + var)[..., 0] / (p * (1 - p))
    assert np.median(np.abs(one_for_all / d["h2_observed[alive]"] - 1)) > 0.01  # ten times the tolerance
    rows = result.solutions.filter(effect="total")
    level = rows["level"].to_list()
    at = [int(i[1:]) for i in level]
    stored = result.draws["/posterior"]["genetic"].sel(genetic_level=level).to_numpy()[..., 0]
    liability = d["intercept"][..., 0] + g[..., at] + stored + b * j[at]
    np.testing.assert_allclose(rows["probability[1]"], stats.norm.cdf(liability).mean((0, 1)), rtol=1e-4)
    without_j = stats.norm.cdf(liability - b * j[at]).mean((0, 1))
    assert np.abs(rows["probability[1]"].to_numpy() - without_j).max() > 1e-3
    of_random = result.solutions.filter((pl.col("term") == "genetic") & (pl.col("effect") != "total"))
    assert of_random["probability[1]"].null_count() == of_random.height  # a part has none


def test_only_genotyped_animals_with_records(data, tmp_path):
    phenotypes, pedigree, genotypes, _ = data
    known = pl.read_csv(genotypes)["animal"].implode()
    own = analysis((phenotypes.filter(pl.col("animal").is_in(known)), pedigree, genotypes, None), tmp_path)
    with pytest.raises(DataError, match="no record has information about model.random.genetic"):
        prepare(mmgibbs.load_config(own))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"other": {"prior": "rr"}}, "single_step: found none beside epsilon in snps"),
        ({"other": {"single_step": "epsilon", "level": "one"}}, "found one, but animal in snps"),
    ],
)
def test_other_terms_see_the_same_animals(data, tmp_path, more, words):
    given = analysis(data, tmp_path)
    given["model"]["markers"] |= more
    with pytest.raises(ConfigError, match=words):
        mmgibbs.load_config(given)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"random": {}}, "no random effect"),
        ({"random": {"g": {"relationship": "pedigree", "effects": {"d": {"level": "animal"}, "m": {"level": "dam"}}}}},
         "effects: or covariates"),
        ({"random": {"g": {"level": "animal", "relationship": "pedigree"}}, "fixed": {"J": {"column": "one"}}},
         "adds a fixed effect J"),
    ],
)  # fmt: skip
def test_models_that_it_does_not_go_with(data, tmp_path, model, words):
    given = analysis(data, tmp_path)
    given["model"] = model | {"markers": {"snps": {"single_step": "epsilon"}}}
    given["variances"] = {}
    with pytest.raises(ConfigError, match=words):
        mmgibbs.load_config(given)


def test_a_pedigree_of_genotyped_animals_alone(data, tmp_path):
    phenotypes, pedigree, genotypes, _ = data
    known = set(pl.read_csv(genotypes)["animal"])
    small = pedigree.filter(pl.col("id").is_in(known)).with_columns(
        pl.when(pl.col(c).is_in(known)).then(c).alias(c) for c in ("sire", "dam")
    )
    own = analysis((phenotypes.filter(pl.col("animal").is_in(known)), small, genotypes, None), tmp_path)
    with pytest.raises(DataError, match="every animal of the pedigree is genotyped"):
        prepare(mmgibbs.load_config(own))
