"""What a chain keeps: moments where the engine keeps its state, draws of chosen levels, facts of kept sweeps."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.support import mixed_model, saved_draws
from reference import models

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.posterior.moments import Moments
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.schedule import Schedule

KEY = (11, 2)
SCHEDULE = Schedule(4, 23, thin=2, chains=3)


class OwnMoments:
    """Moments and the draw last added, as an engine with its state elsewhere would have them."""

    def __init__(self, engine, batch_length: int):
        self.engine, self.batch_length, self.reads = engine, batch_length, 0
        design = engine.equations.design
        self.moments = Moments([(t.n_levels, t.n_components) for t in design.terms], batch_length, 1)

    def add(self):
        self.draw = self.engine.equations.design.to_original_scale(SerialEngine.fetch(self.engine))
        self.moments.add(self.draw)

    def levels(self, term, codes):
        self.reads += 1
        return self.draw[term][codes].copy()

    def state(self):
        return self.moments.state()

    def restore(self, state):
        self.moments = Moments.from_state(state)


class FarEngine(SerialEngine):
    """A serial engine that offers its own moments, and counts what is fetched."""

    fetched = 0
    notes = ("the state is far away",)

    def moments(self, batch_length):
        self.own = OwnMoments(self, batch_length)
        return self.own

    def fetch(self):
        self.fetched += 1
        return super().fetch()


def chain_of(make, saved=("genetic",), **schedule):
    example = models.example("bivariate_missing")
    priors = {i: (len(g) + 4.0, 3.0 * g) for i, g in enumerate(example.G) if g is not None}
    model = mixed_model(example.design, example.G, example.R, priors | {"residual": (6.0, 3.0 * example.R)}, saved)
    engine = make(equations_of(example, "term"))
    return sample_chain(model, engine, Schedule(**(vars(SCHEDULE) | schedule)), KEY), engine


def test_an_engines_own_moments_are_those_of_fetched_draws():
    plain, _ = chain_of(SerialEngine)
    far, engine = chain_of(FarEngine)
    assert engine.fetched == 0 and engine.own.reads == SCHEDULE.n_kept == 11
    assert plain.notes == () and far.notes == FarEngine.notes
    for part, values in plain.moments.state().items():
        np.testing.assert_array_equal(far.moments.state()[part], values)
    np.testing.assert_array_equal(saved_draws(far)["genetic"], saved_draws(plain)["genetic"])
    assert plain.moments.n_draws == 11 and plain.moments.n_batches > 1


def test_the_facts_of_kept_sweeps():
    """The number of the sweep, and of each interwoven term whether its proposal was accepted."""
    result, _ = chain_of(SerialEngine, interweave=(2,))
    np.testing.assert_array_equal(result.sample_stats["sweep"], np.arange(6, 28, 2))
    accepted = result.sample_stats["interweaving_acceptance[genetic]"]
    assert set(accepted) == {0.0, 1.0}
    assert set(chain_of(SerialEngine)[0].sample_stats) == {"sweep"}


@pytest.mark.parametrize("fixed", [True, False])
def test_what_pcg_did_for_each_draw(fixed):
    """A tolerance that is a thousandth takes more iterations, and is reached."""
    found = []
    for tolerance in (1e-4, 1e-7):
        result, _ = chain_of(EngineChoice("pcg", variances_fixed=fixed, tolerance=tolerance).build, samples=10, thin=1)
        stats = result.sample_stats
        assert stats["pcg_iterations"].dtype == np.int64 and stats["pcg_iterations"].shape == (10,)
        assert np.all(stats["pcg_error"] <= tolerance) and np.all(stats["pcg_relative_residual"] < 100 * tolerance)
        found.append(stats["pcg_iterations"].mean())
    assert found[0] < found[1]
