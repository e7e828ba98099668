"""Engine marginal against exact posteriors, the grids of gryphon and simdata."""

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare, mean_and_variance, with_squares
from helpers.support import published
from published import test_gryphon as gryphon
from published import test_simdata as simdata

import mmgibbs

MARGINAL = {"engine": "marginal", "chains": 4, "burn_in": 500, "samples": 15_000, "thin": 2, "seed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["m1", "m2"])
@pytest.mark.parametrize("prior", ["exact_flat", "exact_IW"])
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
