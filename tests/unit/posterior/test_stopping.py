"""Targets to stop at: what is measured, what is worst, what cannot be known yet."""

import numpy as np
import pytest

from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.moments import Moments, pool
from mmgibbs.posterior.stopping import NOTHING_MOVES, Wanted, assess, largest_error, matching, pauses

RNG = np.random.default_rng(5)
RHAT, ESS, EBV = Wanted("rhat", 1.01), Wanted("ess", 400.0), Wanted("mcse_ebv", 0.05)


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
    rhat, ess = assess([RHAT, ESS], parameters)
    assert (rhat.at, rhat.found) == ("apart", rows["apart"]["rhat"]) and not rhat.met
    worst = min(rows, key=lambda name: min(rows[name]["ess_bulk"], rows[name]["ess_tail"]))
    assert ess.at == worst and ess.found == min(rows[worst]["ess_bulk"], rows[worst]["ess_tail"]) and not ess.met
    assert all(t.met for t in assess([RHAT, ESS], {"good": parameters["good"]}))


def test_the_error_of_breeding_values_is_the_largest_of_all():
    """0.05 of the posterior SD is 400 effective draws: the definition, and a level that mixes slowly is found."""
    draws = RNG.normal(size=(4, 500, 30, 2)) * 7
    draws[:, :, 11, 1] = slow() + 100
    moments = moments_of(draws)
    found, at = largest_error(moments, [0], label)
    assert at == "0, level 11, component 1" and found == pytest.approx(1 / np.sqrt(moments.ess[0][11, 1]))
    (target,) = assess([EBV], {}, lambda: largest_error(moments, [0], label))
    assert (
        not target.met
        and "largest MCSE of a breeding value" in str(target)
        and "level 11" in str(target)
        and "missed" in str(target)
    )
    (target,) = assess([Wanted("mcse_ebv", found * 1.01)], {}, lambda: largest_error(moments, [0], label))
    assert target.met and str(target).endswith("met")


def test_levels_that_never_move_do_not_count():
    draws = RNG.normal(size=(2, 200, 3, 2))
    draws[:, :, 1] = 0.0
    assert largest_error(moments_of(draws), [0], label)[0] < 0.2
    assert largest_error(moments_of(draws[:, :, 1:2]), [0], label) == (0.0, "no level moves")


def test_what_is_not_known_yet_is_not_met():
    few = {"a": RNG.normal(size=(2, 3)), "b": RNG.normal(size=(2, 3))}
    moments = moments_of(RNG.normal(size=(1, 20, 3, 1)))
    rhat, ess, mcse = assess([RHAT, ESS, EBV], few, lambda: largest_error(moments, [0], label))
    assert np.isnan([rhat.found, ess.found, mcse.found]).all()
    assert not (rhat.met or ess.met or mcse.met)
    assert "unknown (a)" in str(rhat) and "unknown (0, level 0" in str(mcse)


def test_pauses():
    assert pauses(1000, 1000, 10) == (1000,)
    assert pauses(1000, 1330, 10) == (1000, 1100, 1210, 1330)
    assert pauses(10, 35, 7) == (10, 17, 24, 31, 35)
    long = pauses(100, 10**9, 1)
    assert long[-1] == 10**9 and len(long) < 200 and all(b > a for a, b in zip(long, long[1:]))


def test_patterns_name_parameters():
    names = ["beta[x.1]", "beta[x11]", "intercept", "h2[a|b]", "beta[a\nb]"]
    assert matching(["beta[*]"], names) == ["beta[x.1]", "beta[x11]", "beta[a\nb]"]
    assert matching(["beta[x.1]"], names) == ["beta[x.1]"]  # all but * stands for itself
    assert matching(["*]"], names) == [names[0], names[1], names[3], names[4]] and matching(["*"], names) == names
    assert matching(["*x*", "intercept"], names) == names[:3] and matching(["beta"], names) == []


def test_errors_by_pattern_are_in_the_unit_of_the_parameter():
    """Each pattern has its own error; parameters that no pattern names do not count."""
    parameters = {"beta[a]": 100 * RNG.normal(size=(4, 500)), "beta[b]": RNG.normal(size=(4, 500)), "tau": slow() * 1e6}
    rows = {name: diagnose(draws) for name, draws in parameters.items()}
    wide, narrow = Wanted("mcse", 5.0, ("beta[*]",)), Wanted("mcse", 1e-3, ("*[b]",))
    first, second = assess([wide, narrow], parameters)
    assert (first.at, first.found, first.met) == ("beta[a]", rows["beta[a]"]["mcse"], True)
    assert (second.at, second.found, second.met) == ("beta[b]", rows["beta[b]"]["mcse"], False)
    assert "largest Monte Carlo standard error" in str(second) and second.wanted.key == "mcse.*[b]"
    (ess,) = assess([Wanted("ess", 100, ("beta[b]",))], parameters)
    assert ess.at == "beta[b]" and ess.met


def test_parameters_that_never_change_do_not_count():
    """A penalty fixed, beside one that moves; alone it can meet no target."""
    parameters = {"lambda": np.full((4, 500), 2.5), "beta": RNG.normal(size=(4, 500))}
    rhat, ess = assess([RHAT, ESS], parameters)
    assert rhat.at == ess.at == "beta" and rhat.met and ess.met
    (alone,) = assess([Wanted("rhat", 1.01, ("lambda",))], parameters)
    assert alone.at == NOTHING_MOVES and not alone.met and "unknown" in str(alone)
