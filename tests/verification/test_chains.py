"""A chain is a function of its seed and number alone: not of processes, order, thinning or burn-in.

Everything here is bit for bit.
"""

import numpy as np
from helpers.support import chain, mixed_model, random_draws, saved_draws
from reference import models

import mmgibbs
import mmgibbs.runs.local
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.posterior.moments import pool
from mmgibbs.runs.chains import run_chains
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.mixed_model_chains import MixedModelFactory
from mmgibbs.sampler.schedule import Schedule

SEED = 111


def sampled_model():
    """Two traits, missing patterns, weights, an inbred pedigree; G and R sampled, all draws kept."""
    example = models.example("bivariate_missing")
    names = [t.name for t in example.design.terms]
    priors = {2: (6.0, 3.0 * np.asarray(example.G[2])), "residual": None}
    return mixed_model(example.design, example.G, example.R, priors, saved=names)


def in_processes(monkeypatch, n, chains=3):
    monkeypatch.setattr(mmgibbs.runs.local, "count_processes", lambda *_: n)
    model = sampled_model()
    equations = structured_equations(model.design, partition(model.design))
    schedule = Schedule(10, 60, 2, chains=chains)
    factory = MixedModelFactory(model, equations, EngineChoice("serial", "level"), schedule, SEED)
    return run_chains(factory, LocalExecutor())


def everything(result) -> dict:
    state = {f"moments {k}": v for k, v in result.moments.state().items()}
    saved = {f"saved {k}": v for k, v in saved_draws(result).items()}
    variances = {f"variances {i}": v for i, v in enumerate(random_draws(result))}
    return {"residual": result.draws["R"], **variances, **saved, **state}


def same(a, b) -> bool:
    a, b = everything(a), everything(b)
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_chains_in_processes_are_those_of_one_process(monkeypatch):
    alone, together = in_processes(monkeypatch, 1), in_processes(monkeypatch, 2)
    assert [r.chain for r in together] == [0, 1, 2]
    assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    assert not same(alone[0], alone[1])


def test_the_order_of_chains_does_not_matter(monkeypatch):
    together = in_processes(monkeypatch, 1)
    for number in (2, 0, 1):
        model = sampled_model()
        again = chain(model, 60, burn_in=10, thin=2, key=(SEED, number))
        a, b = everything(again), everything(together[number])
        kept = [k for k in a if not k.startswith("moments")]  # batches are planned over all chains
        assert all(np.array_equal(a[k], b[k]) for k in kept)
        assert not np.array_equal(a["residual"], everything(together[(number + 1) % 3])["residual"])


def draws(samples, burn_in, thin, **options):
    return everything(chain(sampled_model(), samples, burn_in, thin, key=(SEED, 0), **options))


KEPT = ("residual", "variances 0", "saved herd", "saved season", "saved genetic")


def test_thinning_keeps_every_second_draw():
    every, second, third = draws(60, 7, 1), draws(60, 7, 2), draws(61, 7, 3)
    for name in KEPT:
        assert np.array_equal(second[name], every[name][1::2]), name
        assert third[name].shape[0] == 20 and np.array_equal(third[name], every[name][2::3]), name
    assert not np.array_equal(second["residual"], every["residual"][::2])


def test_burn_in_is_what_is_thrown_away():
    whole, later = draws(60, 0, 1), draws(40, 20, 1)
    for name in KEPT:
        assert np.array_equal(later[name], whole[name][20:]), name


def test_moments_are_those_of_the_kept_draws():
    result = chain(sampled_model(), 90, 11, 3, key=(SEED, 0))
    pooled = pool([result.moments])
    assert pooled.n_draws == 30
    for term, mean, sd in zip(sampled_model().design.terms, pooled.mean, pooled.sd, strict=True):
        np.testing.assert_allclose(mean, saved_draws(result)[term.name].mean(axis=0), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(sd, saved_draws(result)[term.name].std(axis=0, ddof=1), rtol=1e-10, atol=1e-13)
