"""simdata, trait 1, 4,641 animals, weights: exact posteriors on a grid, exact BLUP and PEV solved directly."""

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import chain_batches, compare, mean_and_variance, with_squares
from helpers.support import chain, published, random_draws, shared_data

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare

VARIANCES = {"genetic": {"start": 38.538}, "residual": {"start": 62.691}}
EXACT_FILE = {"ignore": "noinb", "account": "inb"}
EXACT_POSTERIOR = {"ignore": "exact_flat_prior_posterior", "account": "exact_flat_prior_posterior_with_inbreeding"}


def analysis(inbreeding, directory="unused", mode="sample", **sampler):
    return {
        "name": "simdata",
        "data": {
            "phenotypes": str(shared_data("data/simdata/simdata.txt")),
            "header": "animal sire dam weight mu farm sex year y1 y2 y3 y4".split(),
            "pedigree": str(shared_data("data/simdata/simped.txt")),
            "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
            "weights": "weight",
            "inbreeding": inbreeding,
        },
        "traits": {"y1": {"missing": [0]}},
        "model": {
            "fixed": {"farm": {}, "sex": {}, "year": {}},
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
        },
        "variances": {**VARIANCES, "mode": mode},
        "sampler": sampler,
        "output": {"directory": str(directory)},
    }


def exact(inbreeding):
    """Rows by animal: u, pev, F."""
    return pl.read_csv(shared_data(f"data/simdata/exact_blup_trait1_{EXACT_FILE[inbreeding]}.csv")).with_columns(
        pl.col("animal").cast(pl.String)
    )


def beside_exact(solutions, inbreeding):
    """Our rows of the genetic term and the exact ones, animal by animal."""
    ours = solutions.filter(pl.col("term") == "genetic")
    joined = ours.join(exact(inbreeding), left_on="level", right_on="animal", suffix="_exact", validate="1:1")
    assert joined.height == ours.height == 4641
    return joined


def prepared_model(config):
    loaded = load_config(config)
    return assemble(loaded, prepare(loaded)).model


@pytest.mark.parametrize("inbreeding", ["ignore", "account"])
def test_blup_breeding_values(tmp_path, inbreeding):
    config = analysis(inbreeding, tmp_path / "run", mode="fixed", method="blup", pev_limit=0)
    found = beside_exact(mmgibbs.run(config, progress=False).solutions, inbreeding)
    np.testing.assert_allclose(found["mean"], found["u"], rtol=1e-6, atol=2e-8)
    np.testing.assert_allclose(found["inbreeding"], found["F"], atol=1e-8)
    assert found["pev"].null_count() == 4641
    other = beside_exact(
        found.select(pl.col("term", "level", "mean")), "account" if inbreeding == "ignore" else "ignore"
    )
    assert np.abs(other["mean"] - other["u"]).max() > 1e-3  # the choice shows


def variance_draws(result):
    """(chains, draws, 3): genetic and residual variance, heritability."""
    posterior = result.draws["/posterior"]
    return np.stack([posterior[f"{name}[y1]"].to_numpy() for name in ("genetic.var", "residual.var", "h2")], axis=-1)


def against_exact(draws, inbreeding):
    values = published("simdata_trait1")["expected"][EXACT_POSTERIOR[inbreeding]]
    mean, sd = np.array([values[k] for k in ("s2u", "s2e", "h2")]).T
    return compare(chain_batches(with_squares(draws, mean)), mean_and_variance(mean, sd))


def test_sampled_variances(tmp_path):
    config = analysis("ignore", tmp_path / "run", chains=2, burn_in=300, samples=2500, seed=5)
    result = mmgibbs.run(config, progress=False)
    comparison = against_exact(variance_draws(result), "ignore")
    assert comparison.agrees, comparison
    rows = {r["parameter"]: r for r in result.summary.iter_rows(named=True)}
    assert rows["h2[y1]"]["rhat"] < 1.05
    expected = published("simdata_trait1")["expected"]["exact_flat_prior_posterior"]["h2"]
    assert abs(rows["h2[y1]"]["mean"] - expected[0]) < 4 * rows["h2[y1]"]["mcse"]


def parent_average_of_0_45(engine):
    """u'A^-1u = sum of m^2/d with one wrong factor: m = u - 0.45 (u_sire + u_dam)."""
    at = next(i for i, t in enumerate(engine.equations.design.terms) if t.kind == "random")
    kind = engine.equations.design.terms[at].relationship.relatives

    def quadratic_form(i):
        assert i == at
        u = np.append(engine.fetch()[i][:, 0], 0.0)  # -1, an unknown parent, is the last
        m = u[:-1] - 0.45 * (u[kind.sire] + u[kind.dam])
        return np.array([[np.sum(kind.dinv * m**2)]])

    engine.quadratic_form = quadratic_form


@pytest.mark.slow
def test_a_spoiled_sampler_of_variances_is_seen():
    model = prepared_model(analysis("ignore"))
    result = chain(model, 1500, burn_in=300, key=(5, 0), mutate=parent_average_of_0_45)
    genetic, residual = random_draws(result)[0][:, 0, 0], result.draws["R"][:, 0, 0]
    draws = np.stack([genetic, residual, genetic / (genetic + residual)], axis=-1)[None]
    assert not against_exact(draws, "ignore").agrees
