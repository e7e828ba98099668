"""The hybrid engine on a real device: the worker threads' chain bit for bit, streamed or resident."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import models

from mmgibbs.engines.hybrid import device as device_updates
from mmgibbs.engines.hybrid.engine import HybridEngine

pytestmark = pytest.mark.gpu
KEY = (7, 3)
CASES = [
    ("direct_maternal", "colour", "level"),
    ("three_traits_maternal", "effect", "site"),
    ("fixed_covariates", "equal", "level"),
    ("same_effect_twice", "term", "site"),
]


def run(engine, G, R, sweeps):
    for number in range(1, sweeps + 1):
        if number in (1, 4) or number > sweeps - 4:
            engine.set_variances([None if g is None else g * (1 + 0.1 * number) for g in G], R * (1 + 0.05 * number))
        engine.sweep(number, KEY)
    return engine.fetch()


def identical(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name, kind, update", CASES)
def test_the_chain_of_the_worker_threads_bit_for_bit(device, name, kind, update, precision):
    example = models.example(name)
    equations = equations_of(example.design, kind, precision)
    expected = run(HybridEngine(equations, update, threads=1), example.G, example.R, 200)
    assert identical(run(HybridEngine(equations, update, device), example.G, example.R, 200), expected)


def beef(animals: int):
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    herds = simulate_beef(animals, 1)
    return beef_design(herds), herds.G, herds.R


def test_long_rows_and_streamed_blocks(device, monkeypatch):
    """20,000 animals: rows of sexes and dam ages are longer than a piece."""
    design, G, R = beef(20_000)
    equations = equations_of(design, precision="single")
    expected = run(HybridEngine(equations, threads=2), G, R, 10)
    assert identical(run(HybridEngine(equations, device=device), G, R, 10), expected)

    def refuse(self, part):
        raise device_updates.DeviceMemoryError

    monkeypatch.setattr(device_updates.DeviceUpdates, "_allocate_lists", refuse)
    with pytest.warns(RuntimeWarning, match="copied there in every sweep"):
        engine = HybridEngine(equations, device=device)
    assert identical(run(engine, G, R, 10), expected)
