"""Targets to stop at: what is measured, what is worst, what cannot be known yet."""

import numpy as np
import pytest

from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.moments import Moments, pool
from mmgibbs.posterior.stopping import judge, largest_error, pauses

RNG = np.random.default_rng(5)
WANTED = {"rhat": 1.01, "ess": 400.0, "mcse_ebv": 0.05}


def slow(chains=4, draws=500, rho=0.9):
    x = RNG.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] += rho * x[:, t - 1]
    return x


def moments_of(draws, batch=25):
    """PooledMoments of draws (chains, draws, q, k), one term."""
    chains = []
    for chain in draws:
        m = Moments([chain.shape[1:]], len(chain), len(chain) // batch)
        for draw in chain:
            m.add([draw])
        chains.append(m)
    return pool(chains)


def label(term, level, component):
    return f"{term}, level {level}, component {component}"


def test_the_worst_parameter_decides():
    parameters = {
        "good": RNG.normal(size=(4, 500)),
        "slow": slow(),
        "apart": RNG.normal(size=(4, 500)) + 0.3 * np.arange(4)[:, None],
    }
    rows = {name: diagnose(draws) for name, draws in parameters.items()}
    rhat, ess = judge({"rhat": 1.01, "ess": 400}, parameters, None, [], label)
    assert (rhat.at, rhat.found) == ("apart", rows["apart"]["rhat"]) and not rhat.met
    worst = min(rows, key=lambda name: min(rows[name]["ess_bulk"], rows[name]["ess_tail"]))
    assert ess.at == worst and ess.found == min(rows[worst]["ess_bulk"], rows[worst]["ess_tail"]) and not ess.met
    assert all(t.met for t in judge({"rhat": 1.01, "ess": 400}, {"good": parameters["good"]}, None, [], label))


def test_the_error_of_breeding_values_is_the_largest_of_all():
    """0.05 of the posterior SD is 400 effective draws: the definition, and a level that mixes slowly is found."""
    draws = RNG.normal(size=(4, 500, 30, 2)) * 7
    draws[:, :, 11, 1] = slow() + 100
    moments = moments_of(draws)
    found, at = largest_error(moments, [0], label)
    assert at == "0, level 11, component 1" and found == pytest.approx(1 / np.sqrt(moments.ess[0][11, 1]))
    (target,) = judge({"mcse_ebv": 0.05}, {}, moments, [0], label)
    assert (
        not target.met
        and "largest MCSE of a breeding value" in str(target)
        and "level 11" in str(target)
        and "missed" in str(target)
    )
    (target,) = judge({"mcse_ebv": found * 1.01}, {}, moments, [0], label)
    assert target.met and str(target).endswith("met")


def test_levels_that_never_move_do_not_count():
    draws = RNG.normal(size=(2, 200, 3, 2))
    draws[:, :, 1] = 0.0
    assert largest_error(moments_of(draws), [0], label)[0] < 0.2
    assert largest_error(moments_of(draws[:, :, 1:2]), [0], label) == (0.0, "no level moves")


def test_what_is_not_known_yet_is_not_met():
    few = {"a": RNG.normal(size=(2, 3)), "b": RNG.normal(size=(2, 3))}
    rhat, ess, mcse = judge(WANTED, few, moments_of(RNG.normal(size=(1, 20, 3, 1))), [0], label)
    assert np.isnan([rhat.found, ess.found, mcse.found]).all()
    assert not (rhat.met or ess.met or mcse.met)
    assert "unknown (a)" in str(rhat) and "unknown (0, level 0" in str(mcse)


def test_other_terms_do_not_count():
    draws = RNG.normal(size=(2, 100, 3, 1))
    pooled = moments_of(draws)
    pooled.mcse[0][:] = 100.0
    assert largest_error(pooled, [], label)[0] == 0.0


def test_pauses():
    assert pauses(1000, 1000, 10) == (1000,)
    assert pauses(1000, 1330, 10) == (1000, 1100, 1210, 1330)
    assert pauses(10, 35, 7) == (10, 17, 24, 31, 35)
    long = pauses(100, 10**9, 1)
    assert long[-1] == 10**9 and len(long) < 200 and all(b > a for a, b in zip(long, long[1:]))
