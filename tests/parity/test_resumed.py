"""A chain that pauses and goes on elsewhere has the bits of the same chain in one go, for every engine."""

from functools import partial

import numpy as np
import pytest
from helpers.mixed_models import equations_of, one_trait
from helpers.support import exact_draws, mixed_model, random_draws, saved_draws
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.direct.engine import MarginalEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import VersionError
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule

KEY = (11, 1)
ENGINES = {  # name -> partition, engine of equations
    "serial": ("term", SerialEngine),
    "serial, site": ("effect", lambda eq: SerialEngine(eq, "site")),
    "structured": ("colour", lambda eq: StructuredEngine(eq, threads=2)),
    "hybrid": ("equal", lambda eq: HybridEngine(eq, threads=2)),
    "hybrid, effects": ("effect", lambda eq: HybridEngine(eq, "site", threads=3)),
    "pcg": ("term", exact_draws),
    "marginal": ("term", MarginalEngine),
    "pcg, fixed variances": ("term", partial(exact_draws, variances_fixed=True, draws_at_once=4)),
}
SCHEDULE = Schedule(burn_in=5, samples=13, thin=2, refresh_every=4, chains=2)


def chains_of(name, example_name, precision="double", interweave=True, planned=SCHEDULE):
    """A function that makes the chain, from a state or from the start."""
    kind, engine = ENGINES[name]
    example = models.example(example_name)
    fixed = name == "pcg, fixed variances"
    priors = {i: (len(g) + 4.0, 3.0 * g) for i, g in enumerate(example.G) if g is not None} | {
        "residual": (9.0, 9.0 * example.R)
    }
    model = mixed_model(
        example.design, example.G, example.R, None if fixed else priors, saved=[example.design.terms[-1].name]
    )
    equations = equations_of(example, kind, precision)
    schedule = Schedule(
        **vars(planned) | {"interweave": terms_to_interweave(model) if interweave and not fixed else ()}
    )
    return lambda state=None: Chain(model, engine(equations), schedule, KEY, state)


def same(one, other):
    for a, b in zip((*random_draws(one), one.draws["R"]), (*random_draws(other), other.draws["R"]), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in saved_draws(one):
        np.testing.assert_array_equal(saved_draws(one)[name], saved_draws(other)[name])
    for part, values in one.moments.state().items():
        np.testing.assert_array_equal(values, other.moments.state()[part])
    assert one.sweeps == other.sweeps and one.sample_stats.keys() == other.sample_stats.keys()
    np.testing.assert_array_equal(one.sample_stats["sweep"], other.sample_stats["sweep"])


@pytest.mark.parametrize("name", ENGINES)
def test_the_same_draws(name, tmp_path):
    make = chains_of(name, "direct_maternal")
    whole = make()
    whole.advance(SCHEDULE.n_sweeps)
    checkpoints = Checkpoints(tmp_path, "")
    chain = make()
    for pause in (2, 9, 11):  # in burn-in, at a kept sweep, between two
        chain.advance(pause)
        checkpoints.write("chain", chain.state(), {})
        chain = make(checkpoints.read("chain")[0].arrays)
        assert chain.number == pause and chain.seconds > 0
    chain.advance(SCHEDULE.n_sweeps)
    same(chain.result(), whole.result())


def test_engine_marginal_learns_the_same_in_pieces():
    """The shape of its proposals and a surrogate of the density: half-way, at three quarters, at the end of burn-in."""
    planned = Schedule(burn_in=100, samples=20, thin=2, refresh_every=4, chains=2)
    make = chains_of("marginal", "bivariate_missing", planned=planned)
    whole, chain = make(), make()
    whole.advance(planned.n_sweeps)
    for pause in (49, 50, 51, 74, 75, 76, 99, 100, 101, 110):
        chain.advance(pause)
        chain = make({name: array.copy() for name, array in chain.state().items()})
    assert any("surrogate" in name for name in chain.state())
    chain.advance(planned.n_sweeps)
    same(chain.result(), whole.result())


@pytest.mark.parametrize("kind", ["binary", "ordinal", "censored", "counts"])
def test_engine_marginal_goes_on_with_liabilities(kind):
    """The reference at which liabilities are summarised, half-way; the regression, at three quarters and at the end."""
    planned = Schedule(burn_in=200, samples=20, thin=2, chains=2)
    model = one_trait(kind)
    equations = equations_of(model, "term")
    whole, chain = (Chain(model, MarginalEngine(equations), planned, KEY) for _ in range(2))
    whole.advance(planned.n_sweeps)
    for pause in (2, 49, 50, 51, 99, 100, 101, 149, 150, 151, 199, 200, 201, 210):
        chain.advance(pause)
        state = {name: array.copy() for name, array in chain.state().items()}
        chain = Chain(model, MarginalEngine(equations), planned, KEY, state)
    assert any("regression" in name for name in chain.state())
    chain.advance(planned.n_sweeps)
    same(chain.result(), whole.result())


def test_looking_at_the_state_changes_nothing():
    make = chains_of("serial", "direct_maternal")
    plain, watched = make(), make()
    plain.advance(SCHEDULE.n_sweeps)
    watched.advance(SCHEDULE.n_sweeps, lambda chain: chain.state() is None)
    same(watched.result(), plain.result())


def test_a_chain_that_goes_on_beyond_its_plan_has_the_draws_of_a_longer_one():
    """An extension: draws alike; the moments' batches keep the length they were planned with."""
    make = chains_of("serial", "direct_maternal")
    longer = make()
    longer.schedule = Schedule(**vars(longer.schedule) | {"samples": 30})
    longer.advance(35)
    chain = make()
    chain.advance(SCHEDULE.n_sweeps)
    chain = make(chain.state())
    chain.advance(35)
    one, other = chain.result(), longer.result()
    np.testing.assert_array_equal(one.draws["R"], other.draws["R"])
    assert one.moments.n_draws == 15


def test_residuals_computed_afresh_would_not_be_the_same_bits():
    """Why e is part of the state: the test can fail."""
    make = chains_of("serial", "direct_maternal")
    chain = make()
    chain.advance(9)
    state = chain.state()
    fresh = make(state)
    fresh.engine.refresh()
    assert np.abs(fresh.engine.e - state["engine.e"]).max() > 0


def test_a_state_of_another_order_is_refused(monkeypatch):
    """Theta and e are kept in sweep order: of another one, as another version may have, they are those of others."""
    make = chains_of("structured", "three_traits_maternal")
    chain = make()
    chain.advance(3)
    state = chain.state()
    assert make(state).number == 3
    monkeypatch.setattr("mmgibbs.equations.reading_order.MANY", 0)
    with pytest.raises(VersionError, match="chain 2: its checkpoint has levels or records in another order"):
        chains_of("structured", "three_traits_maternal")(state)
    del state["order"]
    with pytest.raises(VersionError, match="lacks 'order'"):
        make(state)
