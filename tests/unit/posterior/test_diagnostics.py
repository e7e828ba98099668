"""Diagnostics against arviz_stats and known series; what cannot be estimated is NaN, never a crash."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import signal

from mmgibbs.posterior.diagnostics import COLUMNS, diagnose


def series(rho=0.0, chains=4, n=1000, seed=1):
    noise = np.random.default_rng(seed).normal(size=(chains, n + 200)) * np.sqrt(1 - rho**2)
    return signal.lfilter([1], [1, -rho], noise, axis=1)[:, 200:]


def known(**values):
    return dict.fromkeys(COLUMNS, pytest.approx(np.nan, nan_ok=True)) | values


@pytest.mark.parametrize("rho", [0.0, 0.8])
@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e12])
def test_figures_equal_arviz_whatever_the_unit(rho, unit):
    x = series(rho)
    found = diagnose(x * unit)
    low, high = np.sort(x.ravel())[[0, -1]]
    assert low < found["hpd_low"] / unit < found["hpd_high"] / unit < high
    in_units = {c: found[c] / unit for c in ("mean", "median", "sd", "mcse")}
    assert in_units == pytest.approx(
        {
            "mean": x.mean(),
            "median": np.median(x),
            "sd": x.std(ddof=1),
            "mcse": float(array_stats.mcse(x, method="mean")),
        }
    )
    assert found["ess_bulk"] == pytest.approx(float(array_stats.ess(x, method="bulk")))
    assert found["ess_tail"] == pytest.approx(float(array_stats.ess(x, method="tail", prob=(0.05, 0.95))))
    assert found["rhat"] == pytest.approx(float(array_stats.rhat(x, method="rank")))


def test_known_series():
    independent, slow = diagnose(series(0.0, n=5000)), diagnose(series(0.8, n=5000))
    assert independent["ess_bulk"] == pytest.approx(20_000, rel=0.1)
    assert slow["ess_bulk"] == pytest.approx(20_000 * 0.2 / 1.8, rel=0.15)
    assert slow["mcse"] == pytest.approx(np.sqrt(1.8 / 0.2 / 20_000), rel=0.1)
    assert max(independent["rhat"], slow["rhat"]) < 1.01
    assert (independent["hpd_low"], independent["hpd_high"]) == pytest.approx((-1.96, 1.96), abs=0.12)
    apart = series(0.0)
    apart[0] += 1
    assert diagnose(apart)["rhat"] > 1.05


@pytest.mark.parametrize("value", [38.841, 0.0, -1e-300, 1e300])
def test_a_fixed_variance_has_its_value_sd_0_and_blanks(value):
    assert diagnose(np.full((4, 500), value)) == known(mean=value, median=value, sd=0.0)
    assert diagnose(np.full((1, 1), value), fixed=True) == known(mean=value, median=value, sd=0.0)


@pytest.mark.parametrize("chains", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 10, 19, 20])
def test_few_draws_leave_blanks(chains, n):
    found = diagnose(series(chains=chains, n=n))
    assert np.isfinite([found["mean"], found["median"]]).all()
    assert np.isfinite(found["sd"]) == (chains * n > 1)
    assert np.isfinite(found["hpd_low"]) == np.isfinite(found["hpd_high"]) == (chains * n >= 20)
    assert np.isfinite(found["ess_bulk"]) == np.isfinite(found["mcse"]) == (n >= 4)
    assert np.isfinite(found["rhat"]) == (n >= 4 and chains > 1)


def test_chains_that_stand_still_at_different_values_are_not_called_converged():
    found = diagnose(np.repeat([[1.0], [2.0]], 100, axis=1))
    assert found["rhat"] > 10 and found["sd"] > 0


def test_draws_that_are_not_numbers_do_not_crash():
    x = series(n=100)
    x[1, 3] = np.nan
    assert np.isnan(diagnose(x)["mean"]) and np.isnan(diagnose(x)["rhat"])
