"""Engine marginal against exact posteriors, the grids of gryphon and simdata, and against engine serial on examples."""

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare, mean_and_variance, with_squares
from helpers.support import ROOT, published
from published import test_gryphon as gryphon
from published import test_simdata as simdata

import mmgibbs

MARGINAL = {"engine": "marginal", "chains": 4, "burn_in": 500, "samples": 15_000, "thin": 2, "seed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("model, prior", [("m1", "exact_IW"), ("m2", "exact_flat"), ("m2", "exact_IW")])
def test_gryphon(tmp_path, model, prior):
    result = gryphon.run(tmp_path / "run", model, prior, **MARGINAL)
    comparison = gryphon.against_exact(result, model, prior)
    assert comparison.agrees, comparison
    # The other prior shifts the means by less than a tenth of a posterior SD.
    assert not gryphon.against_exact(result, model, "exact_flat" if prior == "exact_IW" else "exact_IW").agrees
    if model == "m2":
        gryphon.check_fixed_effects_of_m2(result)


@pytest.mark.slow
@pytest.mark.parametrize("inbreeding", ["ignore", "account"])
def test_simdata(tmp_path, inbreeding):
    config = simdata.analysis(inbreeding, tmp_path / "run", **MARGINAL | {"samples": 3000})
    posterior = mmgibbs.run(config, progress=False).draws["/posterior"]
    draws = np.stack(
        [posterior[name].to_numpy() for name in ("genetic.var[y1]", "residual.var[y1]", "h2[y1]")], axis=-1
    )
    exact = published("simdata_trait1")["expected"][simdata.EXACT_POSTERIOR[inbreeding]]
    mean, sd = np.array([exact[name] for name in ("s2u", "s2e", "h2")]).T
    comparison = compare(chain_batches(with_squares(draws, mean)), mean_and_variance(mean, sd))
    assert comparison.agrees, comparison


CONFIGS = ["covariates", "relationship_file", "residual_classes", "selfing", "unknown_parent_groups", "weights"]
SHORT = {"sampler.chains": 2, "sampler.thin": 5, "sampler.seed": 5}


def summary(name, folder, **sampler):
    settings = [f"{key}={value}" for key, value in (SHORT | sampler).items()]
    table = mmgibbs.run(ROOT / "configs" / f"{name}.yaml", settings, directory=folder, progress=False).summary
    return {row["parameter"]: row for row in table.iter_rows(named=True) if row["mcse"] is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_as_serial(tmp_path, name):
    """Means of all parameters within Monte Carlo error, where both engines know them well."""
    own = summary(
        name, tmp_path / "own", **{"sampler.engine": "marginal", "sampler.burn_in": 800, "sampler.samples": 6000}
    )
    other = summary(
        name, tmp_path / "other", **{"sampler.engine": "serial", "sampler.burn_in": 1500, "sampler.samples": 15_000}
    )
    assert own.keys() == other.keys()
    known = [p for p in own if min(own[p]["ess_bulk"], other[p]["ess_bulk"]) > 100]
    assert len(known) >= len(own) // 2, {p: (own[p]["ess_bulk"], other[p]["ess_bulk"]) for p in own}
    z = {p: (own[p]["mean"] - other[p]["mean"]) / np.hypot(own[p]["mcse"], other[p]["mcse"]) for p in known}
    assert max(map(abs, z.values())) < 4.5, z
