"""A sweep of a small model is mostly Python: the calls that it makes, counted, have a budget."""

import cProfile
import pstats

import numpy as np
import polars as pl
import pytest
from helpers.mixed_models import equations_of

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule

BUDGET = 150
BUDGET_OF_DRAWN_LIABILITIES = 170  # given theta
BUDGET_OF_LIABILITIES = 260  # of draws of all variances, locations and liabilities: each draw is worth several
BURN_IN, WARM, SWEEPS, THIN = 20, 60, 200, 10


def chain(trait, engine):
    rng = np.random.default_rng(5)
    ids = [f"a{i}" for i in range(60)]
    sire = [None if i < 20 else f"a{rng.integers(0, 10)}" for i in range(60)]
    dam = [None if i < 20 else f"a{rng.integers(10, 20)}" for i in range(60)]
    y = rng.normal(size=60)
    records = pl.DataFrame({"animal": ids, "sex": ["m", "f"] * 30, "y": (y > 0).astype(int) if trait else y})
    analysis = load_config(
        {
            "name": "calls",
            "data": {"phenotypes": records, "pedigree": pl.DataFrame({"id": ids, "sire": sire, "dam": dam})},
            "traits": {"y": trait},
            "model": {"fixed": {} if trait else {"sex": {}}, "random": {"animal": {"relationship": "pedigree"}}},
        }
    )
    model = assemble(analysis, prepare(analysis)).model
    equations = equations_of(model, "term")
    interweave = () if engine == "marginal" else terms_to_interweave(model)
    schedule = Schedule(BURN_IN, WARM + SWEEPS, thin=THIN, interweave=interweave)
    return Chain(model, EngineChoice(engine).build(equations), schedule, (5, 0))


def calls_per_sweep(running):
    running.advance(WARM)  # compiles
    profile = cProfile.Profile()
    profile.enable()
    running.advance(WARM + SWEEPS, lambda _chain: False)
    profile.disable()
    return pstats.Stats(profile).total_calls / SWEEPS


@pytest.mark.parametrize(
    ("trait", "engine", "budget"),
    [
        ({}, "serial", BUDGET),
        ({"type": "binary"}, "serial", BUDGET_OF_DRAWN_LIABILITIES),
        ({}, "marginal", BUDGET),
        ({"type": "binary"}, "marginal", BUDGET_OF_LIABILITIES),
    ],
    ids=str,
)
def test_a_sweep_stays_within_its_budget(trait, engine, budget):
    running = chain(trait, engine)
    calls = calls_per_sweep(running)
    assert running.number == WARM + SWEEPS and 10 < calls <= budget, f"{calls:.0f} calls a sweep"
