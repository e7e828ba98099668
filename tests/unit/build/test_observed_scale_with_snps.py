"""Incidences, heritabilities and probabilities of traits with SNP effects, by plain formulas from draws of effects."""

import numpy as np
import polars as pl
import pytest
from helpers.other_traits import draws_of, tables
from scipy import stats

import mmgibbs

SNPS, DRAWS = 12, 20
UNGENOTYPED = ["a3", "a50"]  # with records; a95 .. a99 are genotyped, without records and pedigree
TRAITS = {"alive": {"type": "binary"}, "score": {"type": "ordinal"}, "cases": {"type": "count", "exposure": "months"}}
GENETIC = {"genetic": {"level": "animal", "relationship": "pedigree"}}


def genotypes():
    """animal -> copies; in an order of their own."""
    rng = np.random.default_rng(3)
    ids = [f"a{i}" for i in rng.permutation(100) if not (90 <= i < 95) and f"a{i}" not in UNGENOTYPED]
    return ids, rng.binomial(2, 0.3, (len(ids), SNPS))


def config(path, traits, random=GENETIC, **more):
    phenotypes, pedigree = tables()
    ids, X = genotypes()
    path.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"animal": ids} | {f"s{j}": X[:, j] for j in range(SNPS)}).write_csv(path / "genotypes.csv")
    quality = {"parent_progeny": "ignore", "maf": 0}
    data = {"phenotypes": phenotypes, "genotypes": {"file": str(path / "genotypes.csv"), "quality": quality}}
    markers = {"snps": {"without_genotypes": "keep", "variance": {"share": 0.6}}}
    return {
        "name": "observed",
        "data": data | ({"pedigree": pedigree} if random else {}),
        "traits": {t: TRAITS[t] for t in traits},
        "model": {"intercept": True, "random": random, "markers": markers},
        "variances": {"genetic": {"prior": {"half_t": {"scale": 1}}}} if random else {},
        "sampler": {"chains": 2, "burn_in": 10, "samples": DRAWS, "thin": 1, "seed": 4},
        "output": {
            "directory": str(path / "run"), "save_levels": ["intercept", *random], "save_marker_draws": 2 * DRAWS,
            "probabilities": list(traits),
        },
    } | more  # fmt: skip


def run(*arguments, **more):
    return mmgibbs.run(config(*arguments, **more), overwrite=True, progress=False)


def genomic_values(found):
    """(chains, draws, animals) of the file, in its order, from the kept draws of effects and the centres."""
    kept = np.load(found.directory / "marker_draws.npz")
    assert kept["effects.0"].shape[:2] == (2, DRAWS)
    centre = pl.read_parquet(found.directory / "markers.parquet")["centre"].to_numpy()
    return np.einsum("cdj,aj->cda", kept["effects.0"].astype(float), genotypes()[1] - centre)


def of_animals(found, animals):
    """(chains, draws, n) genomic values, 0 of those without genotypes, and which have some."""
    ids, g = genotypes()[0], genomic_values(found)
    places = np.array([ids.index(a) if a in ids else -1 for a in animals])
    return np.where(places >= 0, g[..., places], 0.0), places >= 0


@pytest.fixture(scope="module")
def score(tmp_path_factory):
    return run(tmp_path_factory.mktemp("score"), ["score"])


def test_categories_have_the_realised_variance_of_the_recorded_animals(score):
    d, table = draws_of(score), tables()[0]
    g, known = of_animals(score, table["animal"])
    assert (~known).sum() == 2
    mean, variance = g[..., known].mean(-1)[..., None], g[..., known].var(-1)[..., None]
    genetic = d["genetic.var[score]"][..., None]
    eta, V = d["intercept"][..., 0] + known * mean, 1 + genetic + known * variance
    sd, t = np.sqrt(V), d["threshold[score:2|3]"][..., None]
    below = [0 * sd, stats.norm.cdf(-eta / sd), stats.norm.cdf((t - eta) / sd), 1 + 0 * sd]
    density = [0 * sd, stats.norm.pdf(-eta / sd) / sd, stats.norm.pdf((t - eta) / sd) / sd, 0 * sd]
    p, psi = np.diff(below, axis=0).mean(-1), -np.diff(density, axis=0).mean(-1)
    s2 = (genetic + variance)[..., 0]
    for k in range(3):
        np.testing.assert_allclose(d[f"incidence[score:{k + 1}]"], p[k], rtol=1e-5)
        np.testing.assert_allclose(d[f"h2_observed[score:{k + 1}]"], psi[k] ** 2 * s2 / (p[k] * (1 - p[k])), rtol=1e-4)
    without = psi[0] ** 2 * genetic[..., 0] / (p[0] * (1 - p[0]))
    assert (d["h2_observed[score:1]"] > 1.1 * without).mean() > 0.9  # SNPs left out would be seen


def test_probabilities_of_animals_have_their_genomic_values(score):
    d = draws_of(score)
    rows = score.solutions.filter(term="genetic", trait="score", effect="")
    g, known = of_animals(score, rows["level"])
    assert (~known).sum() == 2
    liability, t = d["intercept"][..., 0] + d["genetic"][..., 0] + g, d["threshold[score:2|3]"][..., None]
    for k, p in enumerate((stats.norm.cdf(-liability), None, 1 - stats.norm.cdf(t - liability))):
        if p is not None:
            np.testing.assert_allclose(rows[f"probability[{k + 1}]"], p.mean(axis=(0, 1)), rtol=1e-4)
            sd = p.reshape(-1, rows.height).std(0, ddof=1)
            np.testing.assert_allclose(rows[f"probability_sd[{k + 1}]"], sd, rtol=1e-3)
    assert score.solutions.filter(effect="gebv")["probability[1]"].null_count() == len(genotypes()[0])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Without a pedigree; animals without genotypes are left to the intercept."""
    return run(tmp_path_factory.mktemp("alone"), ["cases"], {})


def test_counts_of_snps_alone(alone):
    d, table = draws_of(alone), tables()[0]
    g, known = of_animals(alone, table["animal"])
    mean, variance = g[..., known].mean(-1)[..., None], g[..., known].var(-1)[..., None]
    eta = d["intercept"][..., 0] + known * mean + np.log(table["months"].to_numpy())
    V = d["residual.var[cases]"][..., None] + known * variance
    m = np.exp(eta + V / 2).mean(-1)
    exact = m**2 * variance[..., 0] / (np.exp(2 * eta + 2 * V).mean(-1) - m**2 + m)
    np.testing.assert_allclose(d["h2_observed[cases]"], exact, rtol=1e-4)


def test_probabilities_of_snps_alone_stand_beside_the_genomic_values(alone):
    """Of every genotyped animal, with records or not."""
    d, rows = draws_of(alone), alone.solutions.filter(effect="gebv")
    g, known = of_animals(alone, rows["level"])
    assert known.all() and "a97" in rows["level"]
    rate = d["intercept"][..., 0] + g + d["residual.var[cases]"][..., None] / 2
    np.testing.assert_allclose(rows["expected_count"], np.exp(rate).mean(axis=(0, 1)), rtol=1e-4)


def test_an_index_of_probabilities_is_of_their_genomic_values_too(tmp_path):
    wanted = config(tmp_path, ["alive"]) | {"decisions": {"index": {"merit": {"probability[alive]": 1.0}}, "top": [10]}}
    found = mmgibbs.run(wanted, overwrite=True, progress=False)
    scores = found.decisions.filter(criterion="merit")
    rows = found.solutions.filter(term="genetic", trait="alive", effect="")
    joined = scores.join(rows, on="level", suffix="_of_run")
    assert joined.height == scores.height and not set(UNGENOTYPED) & set(scores["level"])
    np.testing.assert_allclose(joined["mean"], joined["probability[1]"], rtol=1e-6)
