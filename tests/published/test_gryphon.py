"""The gryphons of the ecologist's guide: birth weight, against exact posteriors (grid integration) and REML.

m1: bwt ~ 1, m2: bwt ~ sex, m3: bwt ~ sex + byear; animals random, in m3 birth years too. Priors: flat, or IW with df
and scale 0.002.
"""

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare, mean_and_variance, with_squares
from helpers.support import published, shared_data

import mmgibbs

FIXED = {"m1": {}, "m2": {"sex": {}}, "m3": {"sex": {}}}
CASE = {"m1": "m1 bwt~1", "m2": "m2 bwt~sex", "m3": "m3 +byear"}
PRIOR = {"exact_flat": "flat", "exact_IW": {"df": 0.002, "scale": 0.002}}


def expected(model):
    return published("gryphon")["expected"][CASE[model]]


def run(directory, model, prior="exact_flat", **sampler):
    random = {"genetic": {"level": "animal", "relationship": "pedigree"}}
    if model == "m3":
        random["byear"] = {}
    config = {
        "name": "gryphon",
        "data": {
            "phenotypes": str(shared_data("data/gryphon/gryphon.csv")),
            "pedigree": str(shared_data("data/gryphon/gryphonped.csv")),
            "pedigree_columns": {"id": "id", "sire": "father", "dam": "mother"},
        },
        "traits": ["bwt"],
        "model": {"fixed": FIXED[model], "random": random},
        "variances": {name: {"prior": PRIOR[prior]} for name in [*random, "residual"]},
        "sampler": sampler,
        "output": {"directory": str(directory), "save_levels": [next(iter(FIXED[model]), "intercept")]},
    }
    return mmgibbs.run(config, progress=False)


def variance_draws(result, *names):
    """(chains, draws, parameters)."""
    posterior = result.draws["/posterior"]
    return np.stack([posterior[f"{name}[bwt]"].to_numpy() for name in names], axis=-1)


def against_exact(result, model, prior):
    values = expected(model)[prior]
    mean, sd = np.array([values[k] for k in ("VA", "VR", "h2")]).T
    draws = variance_draws(result, "genetic.var", "residual.var", "h2")
    return compare(chain_batches(with_squares(draws, mean)), mean_and_variance(mean, sd))


def check_fixed_effects_of_m2(result):
    """b = (mean of sex 1, sex 2 minus sex 1): REML holds the variances, the posterior averages over them."""
    levels = result.draws["/posterior"]["sex"].to_numpy().reshape(-1, 2)
    b = np.stack([levels[:, 0], levels[:, 1] - levels[:, 0]], axis=1)
    reml = expected("m2")["REML"]
    deviation = (b.mean(axis=0) - reml["b"]) / reml["bse"]
    assert np.abs(deviation).max() < 0.15, deviation
    np.testing.assert_allclose(b.std(axis=0), reml["bse"], rtol=0.08)


@pytest.mark.slow
def test_m2_inverse_wishart(tmp_path):
    result = run(tmp_path / "run", "m2", "exact_IW", chains=2, burn_in=300, samples=8000, thin=1, seed=7)
    comparison = against_exact(result, "m2", "exact_IW")
    assert comparison.agrees, comparison
    check_fixed_effects_of_m2(result)
    # Without sex the variances are others: these draws must not pass for m1.
    assert not against_exact(result, "m1", "exact_IW").agrees
