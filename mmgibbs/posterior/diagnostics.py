"""How far draws can be trusted: R-hat, effective sample sizes, Monte Carlo standard error; and their interval.

The estimators are those of `arviz_stats` (imported when first used): rank-normalised split R-hat, bulk and tail ESS (5
and 95 % quantiles) and the MCSE of the mean after Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021). What cannot be
estimated is NaN.
"""

from __future__ import annotations

import sys

import numpy as np

from mmgibbs.errors import DeviceError

MIN_DRAWS_PER_CHAIN = 4  # of arviz_stats: two per half chain
MIN_DRAWS_FOR_INTERVAL = 20  # 95 % of fewer draws is all of them
HPD_PROBABILITY = 0.95
COLUMNS = ("mean", "median", "sd", "mcse", "ess_bulk", "ess_tail", "rhat", "hpd_low", "hpd_high")


def refuse_without_docstrings() -> None:
    """DeviceError under `python -OO` (PYTHONOPTIMIZE=2): it removes docstrings, to which `arviz_stats` adds."""
    if sys.flags.optimize > 1:
        raise DeviceError(
            "Python runs without docstrings (python -OO, or the environment variable PYTHONOPTIMIZE=2), but the "
            "library arviz_stats needs them for diagnostics; needed Python without that option (PYTHONOPTIMIZE=1 is "
            "fine)"
        )


def diagnose(draws: np.ndarray, fixed: bool = False) -> dict[str, float]:
    """The columns of a summary for one parameter, draws (chains, draws).

    A parameter that never changes keeps its value and sd 0, the rest is NaN; one draw alone has no sd, unless it is
    `fixed`. R-hat needs two chains. With fewer than 4 draws per chain the ESS, MCSE and R-hat are NaN, with fewer than
    20 in all the interval too.
    """
    draws = np.atleast_2d(np.asarray(draws, np.float64))
    out = dict.fromkeys(COLUMNS, np.nan)
    out["mean"], out["median"] = float(draws.mean()), float(np.median(draws))
    if fixed or np.ptp(draws) <= 1e-14 * np.abs(draws).max():
        out["mean"] = out["median"] = float(draws[0, 0])
        out["sd"] = 0.0 if fixed or draws.size > 1 else np.nan
        return out
    if not np.isfinite(draws).all():
        return out
    refuse_without_docstrings()
    from arviz_stats.base.array import array_stats

    out["sd"] = sd = float(draws.std(ddof=1))
    if draws.size >= MIN_DRAWS_FOR_INTERVAL:
        out["hpd_low"], out["hpd_high"] = (float(v) for v in array_stats.hdi(draws.reshape(-1), HPD_PROBABILITY))
    if draws.shape[1] < MIN_DRAWS_PER_CHAIN:
        return out
    z = (draws - draws.mean()) / sd  # arviz_stats takes a range below 1e-15 for a constant, whatever the unit
    with np.errstate(divide="ignore", invalid="ignore"):  # a chain that stands still has no variance
        out["mcse"] = sd / float(np.sqrt(array_stats.ess(z, method="mean")))
        out["ess_bulk"] = float(array_stats.ess(z, method="bulk"))
        out["ess_tail"] = float(array_stats.ess(z, method="tail", prob=(0.05, 0.95)))
        if len(draws) > 1:
            out["rhat"] = float(array_stats.rhat(z, method="rank"))
    return out
